//! Options of `gen`, `convert` and `compare`, and where results go.

use super::values::{digits, kind, precision, size, tolerance};
use clap::Args;
use rug::Float;
use std::path::PathBuf;
use sunzi::gallery::{Kind, Size};
use sunzi::io::{NumberForm, Tolerance};
use sunzi_session::units::parse_count;

/// Standard input or output.
const STANDARD: &str = "-";

/// The output file and its form.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Output file; its suffix gives the format (.mtx, .bin, .csv, .npy, .json, ...), `-` is standard output.
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    pub path: PathBuf,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long)]
    pub hex: bool,
}

impl Output {
    /// Decimal or hexadecimal.
    pub fn number_form(&self) -> NumberForm {
        if self.hex { NumberForm::Hex } else { NumberForm::Decimal }
    }
}

/// Where a solution goes: printed unless a file is named.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct SolutionOutput {
    /// Output file; its suffix gives the format, `-` is standard output [default: -, as Matrix Market text].
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    path: Option<PathBuf>,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long)]
    hex: bool,
}

impl SolutionOutput {
    /// Its destination.
    pub fn chosen(&self) -> Output {
        Output { path: self.path.clone().unwrap_or_else(|| STANDARD.into()), hex: self.hex }
    }
}

/// `sunzi gen`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi gen hilbert --rows 100 --cols 100 --precision 512 -o H.mtx --hex\n  \
    sunzi gen lehmer --rows 2e4 --cols 2e4 --precision 768 --symmetric -o A.bin\n\nA binary file (.bin) is written \
    block by block and may be larger than memory.")]
pub struct Gen {
    /// Kind of matrix.
    #[arg(value_parser = kind())]
    pub kind: Kind,
    /// Number of rows.
    #[arg(long, value_name = "K", value_parser = size)]
    rows: usize,
    /// Number of columns.
    #[arg(long, value_name = "N", value_parser = size)]
    cols: usize,
    /// Bits of every significand, from 2 to 2^24; operations accept at most the kernel's maximum (at least 5000, shown
    /// by `sunzi info`).
    #[arg(long, short, value_name = "B", value_parser = precision)]
    precision: u32,
    /// Seed of the random kinds.
    #[arg(long, value_name = "S", default_value = "0", value_parser = parse_count)]
    pub seed: u64,
    /// Write a symmetric file, which stores only the lower triangle; the matrix must be square and of a symmetric kind.
    #[arg(long)]
    pub symmetric: bool,
    #[command(flatten)]
    pub output: Output,
}

impl Gen {
    /// Shape and precision.
    pub fn size(&self) -> Size {
        Size { rows: self.rows, cols: self.cols, precision_bits: self.precision }
    }
}

/// `sunzi convert`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi convert A.mtx A.bin\n  sunzi convert A.csv -o A.npy --precision 256\n  \
                        sunzi convert theta1.dat-s:1/1 F.mtx.gz --precision 64")]
pub struct Convert {
    /// Input file; `-` is standard input.
    pub input: PathBuf,
    /// Output file; its suffix gives the format, `-` is standard output.
    #[arg(required_unless_present = "path")]
    output: Option<PathBuf>,
    /// Output file, as an option instead of the second argument.
    #[arg(long = "output", short = 'o', value_name = "FILE", conflicts_with = "output")]
    path: Option<PathBuf>,
    /// Bits to which decimal input is rounded, 2 to 2^24 [default: as stated in the file].
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: Option<u32>,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long)]
    hex: bool,
}

impl Convert {
    /// The output of the copy.
    pub fn output(&self) -> Output {
        // The parser requires one of the two.
        let path = self.output.as_ref().or(self.path.as_ref()).cloned().unwrap_or_default();
        Output { path, hex: self.hex }
    }
}

/// The end of `sunzi compare --help`.
const COMPARE: &str = "Examples:\n  sunzi compare X.mtx Y.mtx\n  sunzi compare X.mtx Y.mtx --digits 70\n  \
    sunzi compare X.csv Y.npy --relative 1e-12 --absolute 1e-300 --precision 256\n\n\
    Two entries agree if their difference is within at least one of the given tolerances. Exit codes: 0 if all \
    entries are \
    equal or agree; 1 if some do not; 2 for wrong arguments; 3 for files that cannot be read or matrices of different \
    shapes.";

/// `sunzi compare`.
#[derive(Args, Clone, Debug)]
#[command(after_help = COMPARE)]
pub struct Compare {
    /// First matrix.
    pub left: PathBuf,
    /// Second matrix.
    pub right: PathBuf,
    /// Bits to which decimal input is rounded, 2 to 2^24 [default: as stated in each file].
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: Option<u32>,
    /// Accept a difference of at most R times the larger of the two entries in magnitude.
    #[arg(long, value_name = "R", help_heading = "Tolerance", value_parser = tolerance)]
    relative: Option<Float>,
    /// Accept a difference of at most T.
    #[arg(long, value_name = "T", help_heading = "Tolerance", value_parser = tolerance)]
    absolute: Option<Float>,
    /// Accept a difference of at most 10^-D times the largest entry of both matrices: D digits agree in the maximum
    /// norm.
    #[arg(long, value_name = "D", help_heading = "Tolerance", value_parser = digits)]
    digits: Option<u32>,
}

impl Compare {
    /// The accepted differences.
    pub fn tolerance(&self) -> Tolerance {
        let start = self.digits.map_or(Tolerance::new(), Tolerance::digits);
        start.relative(self.relative.clone()).absolute(self.absolute.clone())
    }
}
