//! Options of `gen`, `convert` and `compare`, and where results go.

use super::values::{kind, precision, size};
use clap::Args;
use std::path::PathBuf;
use sunzi::gallery::{Kind, Size};
use sunzi::io::NumberForm;
use sunzi_lab::units::parse_count;

/// Where a result goes and in which form.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Output file; its ending says the format (.mtx, .bin, .csv, .npy, .json, ...), `-` is standard output.
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

/// `sunzi gen`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi gen hilbert --rows 100 --cols 100 --precision 512 -o H.mtx --hex")]
pub struct Gen {
    /// The kind of matrix.
    #[arg(value_parser = kind())]
    pub kind: Kind,
    /// Number of rows.
    #[arg(long, value_name = "K", value_parser = size)]
    rows: usize,
    /// Number of columns.
    #[arg(long, value_name = "N", value_parser = size)]
    cols: usize,
    /// Bits of every significand.
    #[arg(long, short, value_name = "B", value_parser = precision)]
    precision: u32,
    /// Seed of the random kinds.
    #[arg(long, value_name = "S", default_value = "0", value_parser = parse_count)]
    pub seed: u64,
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
#[command(after_help = "Examples:\n  sunzi convert A.mtx A.bin\n  sunzi convert A.csv A.npy --precision 256\n  \
                        sunzi convert theta1.dat-s:1/1 F.mtx.gz --precision 64")]
pub struct Convert {
    /// Input file; `-` is standard input.
    pub input: PathBuf,
    /// Output file, in the format that its ending says; `-` is standard output.
    output: PathBuf,
    /// Bits to which decimal input is rounded [default: what the file states].
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: Option<u32>,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long)]
    hex: bool,
}

impl Convert {
    /// Where the copy goes.
    pub fn output(&self) -> Output {
        Output { path: self.output.clone(), hex: self.hex }
    }
}

/// `sunzi compare`.
#[derive(Args, Clone, Debug)]
pub struct Compare {
    /// One matrix.
    pub left: PathBuf,
    /// The other.
    pub right: PathBuf,
    /// Bits to which decimal input is rounded [default: what each file states].
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: Option<u32>,
}
