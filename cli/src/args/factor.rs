//! Options of `cholesky`, `solve`, `inverse` and `trsm`.

use super::values::{PrecisionChoice, accuracy, broadcast, digits, grid, positive, precision, precision_or_auto, side};
use super::values::{caching, size, termination, uplo};
use super::{ElementType, EngineArgs, GIVE_BITS_OR_DIGITS, Output, PLAIN, Precision, SolutionOutput};
use clap::{Args, ValueHint};
use rug::Float;
use std::path::PathBuf;
use sunzi::advanced::runtime::Policy;
use sunzi::advanced::runtime::protocol::{DeliveryKind, Termination};
use sunzi::advanced::storage::Caching;
use sunzi::distributed::RankGrid;
use sunzi::{Accuracy, Diag, Error, Op, Result, Side, TrsmOptions, Uplo};
use sunzi_session::engine::Engine;

/// Selects the triangle of a symmetric matrix that is read.
#[derive(Args, Clone, Debug)]
pub struct Triangle {
    /// Read the lower triangle of A; the upper one must be zero or equal to it up to rounding [default: both triangles,
    /// which must be equal].
    #[arg(long, conflicts_with = "upper", group = "named_triangle")]
    lower: bool,
    /// Read the upper triangle of A; the lower one must be zero or equal to it up to rounding. A factor of A is then U
    /// with A = U^T U.
    #[arg(long, group = "named_triangle")]
    upper: bool,
    /// Do not check the other triangle; it may hold anything.
    #[arg(long, requires = "named_triangle")]
    ignore_other_triangle: bool,
}

impl Triangle {
    /// The triangle that is read; `None` for both, which must be equal.
    pub fn uplo(&self) -> Option<Uplo> {
        match (self.lower, self.upper) {
            (_, true) => Some(Uplo::Upper),
            (true, _) => Some(Uplo::Lower),
            _ => None,
        }
    }

    /// The triangle that is read, and the permitted contents of the other one.
    pub fn named(&self) -> Option<NamedTriangle> {
        self.uplo().map(|uplo| NamedTriangle { uplo, ignores_other: self.ignore_other_triangle })
    }
}

/// A triangle selected on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedTriangle {
    /// The selected triangle.
    pub uplo: Uplo,
    /// Whether the contents of the other triangle are ignored.
    pub ignores_other: bool,
}

/// A symmetric positive definite matrix and the options of its factorisation.
#[derive(Args, Clone, Debug)]
pub struct Factor {
    /// The symmetric positive definite matrix A; with --general, any square matrix.
    pub a: PathBuf,
    #[command(flatten)]
    pub triangle: Triangle,
    #[command(flatten)]
    pub precision: FactorPrecision,
    /// Number of rows of a tile; every choice gives bitwise the same result [default: from size and precision].
    #[arg(long = "tile", value_name = "NB", value_parser = positive, help_heading = PLAIN)]
    pub tile_rows: Option<usize>,
    /// Also print the logarithm of the determinant, to its correct digits.
    #[arg(long, help_heading = PLAIN)]
    pub log_det: bool,
    /// Also print an estimate of the condition number in the 1-norm.
    #[arg(long, help_heading = PLAIN)]
    pub condition: bool,
    #[command(flatten)]
    pub digits: DigitChoices,
    /// Also write a timeline of the steps, as JSON for ui.perfetto.dev or chrome://tracing.
    #[arg(long, value_name = "FILE", help_heading = PLAIN)]
    pub trace: Option<PathBuf>,
    /// Also plot the factorisation over time: busy workers and finished tiles or, on several ranks, ready tiles, busy
    /// workers and the memory of tiles in transit.
    #[arg(long, value_name = "FILE.svg", help_heading = PLAIN)]
    pub plot: Option<PathBuf>,
    /// Error bound of entry (i, j) of the residual: a small multiple of 2^-B times the sum of the absolute values of
    /// its terms, (|L| |L^T|)_ij for a factor (entrywise, also called componentwise), or times a product of norms of
    /// rows (norm). --storage requires norm for big floats.
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy(), help_heading = PLAIN)]
    pub accuracy: Accuracy,
    #[command(flatten)]
    pub engine: EngineArgs,
}

impl Factor {
    /// Returns an error for a precision that the kernel does not support, and for one that must be found although A is
    /// `general`.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`], [`sunzi::Error::InvalidArgument`].
    pub fn check(&self, general: bool) -> Result<()> {
        if general && self.precision.automatic().is_some() {
            let message = "--precision auto cannot be used with --general: give the number of bits";
            return Err(Error::InvalidArgument(message.into()));
        }
        self.precision.check(&self.engine)
    }
}

/// Precision of a factorisation and of its input.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Precision")]
pub struct FactorPrecision {
    /// Bits of every significand, from 2 to the kernel's maximum (at least 5000, shown by `sunzi info`); auto searches
    /// for the smallest precision at which the result has --digits correct digits [default: as stated in the first
    /// input file].
    #[arg(long = "precision", short = 'p', value_name = "B|auto", value_parser = precision_or_auto)]
    choice: Option<PrecisionChoice>,
    /// Number of correct decimal digits that --precision auto must reach; this option implies --precision auto
    /// [default: 30].
    #[arg(long, value_name = "D", value_parser = digits)]
    digits: Option<u32>,
    /// Bits to which decimal input is rounded [default: as stated in the file, else the precision plus 64].
    #[arg(long = "input-precision", value_name = "B", value_parser = precision)]
    pub input_bits: Option<u32>,
}

/// Digits that --precision auto reaches where no number was given.
const AUTOMATIC_DIGITS: u32 = 30;

impl FactorPrecision {
    /// The digits to reach at any precision; `None` if the precision is given.
    pub fn automatic(&self) -> Option<u32> {
        match (self.choice, self.digits) {
            (Some(PrecisionChoice::Automatic), digits) => Some(digits.unwrap_or(AUTOMATIC_DIGITS)),
            (None, digits) => digits,
            (Some(PrecisionChoice::Bits(_)), _) => None,
        }
    }

    /// The option that lets the precision be found.
    pub fn automatic_option(&self) -> &'static str {
        if self.digits.is_some() { "--digits" } else { "--precision auto" }
    }

    /// The precision for reading matrices, if the precision is given, or for `bits`.
    pub fn typed(&self, bits: Option<u32>) -> Precision {
        let given = match self.choice {
            Some(PrecisionChoice::Bits(bits)) => Some(bits),
            _ => None,
        };
        Precision { bits: bits.or(given), input_bits: self.input_bits, advice: GIVE_BITS_OR_DIGITS }
    }

    /// Returns an error for a precision that the kernel does not support, and for digits together with a precision.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`], [`sunzi::Error::InvalidArgument`].
    pub fn check(&self, engine: &Engine) -> Result<()> {
        if let (Some(PrecisionChoice::Bits(bits)), Some(digits)) = (self.choice, self.digits) {
            let message = format!("--digits {digits} requires --precision auto, but --precision {bits} is given");
            return Err(Error::InvalidArgument(message));
        }
        self.typed(None).check(engine)
    }
}

/// Options for correct digits.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Correct digits")]
pub struct DigitChoices {
    /// Also prove how many digits are correct, which about doubles the work.
    #[arg(long, conflicts_with = "no_estimate")]
    pub certified: bool,
    /// Do not estimate how many digits of the answer are correct.
    #[arg(long)]
    pub no_estimate: bool,
    /// Print all digits of the logarithm of the determinant, with the digits that may be wrong in brackets.
    #[arg(long)]
    pub all_digits: bool,
}

/// Options of a factorisation on several ranks.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "On several ranks (mpirun)")]
pub struct RankChoices {
    /// Rows and columns of the grid of ranks, such as 2x3 [default: nearly square].
    #[arg(long, value_name = "PxQ", value_parser = grid)]
    pub grid: Option<RankGrid>,
    /// Algorithm that sends a finished tile to the ranks that need it [default: cs_list_ahead].
    #[arg(long, value_name = "WAY", value_parser = broadcast())]
    pub broadcast: Option<DeliveryKind>,
    /// Scheduling policy, which orders the ready tiles: fifo, lifo, random, random:SEED, by_ij, greedy, critical_path,
    /// panels, leftmost, blocks, blocks:RxC [default: leftmost on one node, else critical_path].
    #[arg(long, value_name = "NAME", value_parser = Policy::by_name)]
    pub policy: Option<Policy>,
    /// The method by which a rank detects that no other rank needs a tile from it any more [default: lists].
    #[arg(long, value_name = "WAY", value_parser = termination())]
    pub termination: Option<Termination>,
    /// Largest number of tiles of other ranks that a rank holds at a time [default: from the memory limit].
    #[arg(long, value_name = "N", value_parser = size)]
    pub remote_tiles: Option<usize>,
}

/// Options of a matrix larger than memory, whose tiles are kept in a directory.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Larger than memory")]
pub struct StorageChoices {
    /// Compute out of core, within the limit of --memory: finished tiles are kept in this directory, and an interrupted
    /// run resumes from them. All files must be binary.
    #[arg(long = "storage", value_name = "DIR", value_hint = ValueHint::DirPath, requires = "path",
        conflicts_with_all = ["upper", "log_det", "condition", "certified", "all_digits", "digits",
            "broadcast", "policy", "termination", "remote_tiles", "plot", "hex", "trace", "input_bits"])]
    pub directory: Option<PathBuf>,
    /// Use of the system's page cache: direct (bypass it), cached, or drop-behind (drop each piece after its use).
    #[arg(long = "storage-io", value_name = "WAY", default_value = "direct", requires = "directory",
        value_parser = caching())]
    pub caching: Caching,
}

/// `sunzi cholesky`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("a", |arg| arg.help("The symmetric positive definite matrix A")))]
#[command(after_help = "Examples:\n  sunzi cholesky A.mtx -o L.mtx --precision 512\n  \
                        sunzi cholesky A.mtx --log-det --precision 512\n  \
                        sunzi cholesky A.mtx -o L.mtx --precision auto --digits 30\n  \
                        sunzi cholesky A.bin -o L.bin --accuracy norm --storage tiles --memory 2G\n  \
                        sunzi cholesky A.bin -o L.bin --storage t --memory 2G --element-type double\n  \
                        mpirun -n 4 sunzi cholesky A.bin -o L.bin --threads 1 --grid 2x2")]
pub struct Cholesky {
    #[command(flatten)]
    pub factor: Factor,
    #[command(flatten)]
    pub ranks: RankChoices,
    #[command(flatten)]
    pub output: FactorOutput,
    #[command(flatten)]
    pub storage: StorageChoices,
    /// Number type of a factorisation with --storage: big floats, or doubles (the entries are rounded to them).
    #[arg(long, value_name = "TYPE", value_enum, default_value = "big", help_heading = "Larger than memory")]
    pub element_type: ElementType,
}

impl Cholesky {
    /// Returns an error for a precision that the kernel does not support, and for options that do not apply to doubles.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`], [`sunzi::Error::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        let Factor { precision, engine, .. } = &self.factor;
        precision.check(engine)?;
        if self.element_type == ElementType::Big {
            return Ok(());
        }
        if self.storage.directory.is_none() {
            let message = "--element-type double requires --storage DIR; sunzi bench cholesky --element-type double \
                           factors doubles in memory";
            return Err(Error::InvalidArgument(message.into()));
        }
        let given = [
            ("--precision", precision.choice.is_some()),
            ("--kernel", engine.kernel.is_some()),
            ("--device", !engine.devices.is_empty()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                Err(Error::InvalidArgument(format!("{option} cannot be used with --element-type double")))
            }
            None => Ok(()),
        }
    }
}

/// The optional output of a factor.
#[derive(Args, Clone, Debug)]
pub struct FactorOutput {
    /// Output file; its suffix gives the format, `-` is standard output [default: none with --log-det or --condition].
    #[arg(long = "output", short = 'o', value_name = "FILE", required_unless_present_any = ["log_det", "condition"])]
    path: Option<PathBuf>,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long, requires = "path")]
    hex: bool,
}

impl FactorOutput {
    /// The output, if there is one.
    pub fn given(self) -> Option<Output> {
        self.path.map(|path| Output { path, hex: self.hex })
    }
}

/// Options that apply to symmetric positive definite matrices only, in `solve` and `inverse`.
const DEFINITE_ONLY: [&str; 10] = [
    "lower",
    "upper",
    "ignore_other_triangle",
    "tile_rows",
    "log_det",
    "digits",
    "all_digits",
    "plot",
    "device",
    "device_memory",
];

/// `sunzi solve`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi solve A.mtx B.mtx\n  \
                        sunzi solve A.mtx B.mtx -o X.mtx --certified\n  \
                        sunzi solve A.mtx B.mtx -o X.mtx --precision auto --digits 50\n  \
                        sunzi solve A.mtx B.mtx -o X.mtx --refine-from 200\n  \
                        sunzi solve A.mtx B.mtx --sweep digits.svg\n  \
                        sunzi solve A.mtx B.mtx --general --certified\n  \
                        sunzi solve A.bin B.bin -o X.bin --accuracy norm --storage work --memory 2G")]
pub struct Solve {
    #[command(flatten)]
    pub factor: Factor,
    /// The right-hand sides B.
    #[arg(help_heading = PLAIN)]
    pub b: PathBuf,
    /// Accept any square matrix A: factor it by LU with partial pivoting, in one process.
    #[arg(long, help_heading = PLAIN, conflicts_with_all = DEFINITE_ONLY, conflicts_with_all = ["refine_from", "sweep",
        "grid", "broadcast", "policy", "termination", "remote_tiles", "directory"])]
    pub general: bool,
    /// Factor at this precision in bits and refine the solution to the full precision.
    #[arg(long, value_name = "BITS", value_parser = precision, help_heading = PLAIN,
        conflicts_with_all = ["log_det", "condition", "tile_rows", "certified", "digits", "directory", "accuracy"])]
    pub refine_from: Option<u32>,
    /// Write no solution, but plot and print the time and the correct digits of two series of solves: at 1/8, 2/8, ...,
    /// 8/8 of the precision, and for the leading submatrices with 1/8, 2/8, ..., 8/8 of the rows.
    #[arg(long, value_name = "FILE.svg", help_heading = PLAIN,
        conflicts_with_all = ["refine_from", "path", "hex", "log_det", "condition",
        "digits", "no_estimate", "all_digits", "trace", "plot", "directory"])]
    pub sweep: Option<PathBuf>,
    #[command(flatten)]
    pub ranks: RankChoices,
    #[command(flatten)]
    pub output: SolutionOutput,
    #[command(flatten)]
    pub storage: StorageChoices,
}

/// `sunzi inverse`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi inverse A.mtx -o X.mtx --certified\n  \
                        sunzi inverse A.mtx -o X.mtx --general\n  \
                        sunzi inverse A.bin -o X.bin --precision auto --digits 50 --memory 8G")]
pub struct Inverse {
    #[command(flatten)]
    pub factor: Factor,
    /// Accept any square matrix A: factor it by LU with partial pivoting.
    #[arg(long, help_heading = PLAIN, conflicts_with_all = DEFINITE_ONLY)]
    pub general: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Options of a triangular system.
#[derive(Args, Clone, Debug)]
pub struct TriangularSystem {
    /// left solves op(T) X = alpha B, right solves X op(T) = alpha B.
    #[arg(long, value_name = "SIDE", default_value = "left", value_parser = side())]
    pub side: Side,
    /// Triangle of T to read.
    #[arg(long, value_name = "TRIANGLE", default_value = "lower", value_parser = uplo())]
    pub uplo: Uplo,
    /// Use T transposed.
    #[arg(long)]
    pub transpose: bool,
    /// Use ones as the diagonal of T.
    #[arg(long)]
    pub unit: bool,
    /// Scalar that multiplies B: decimal, integer or hexadecimal float [default: 1].
    #[arg(long, value_name = "X")]
    pub alpha: Option<String>,
}

impl TriangularSystem {
    /// The system with a scalar.
    pub fn options<'a>(&self, alpha: Option<&'a Float>) -> TrsmOptions<'a> {
        let op = if self.transpose { Op::Transpose } else { Op::NoTranspose };
        let diag = if self.unit { Diag::Unit } else { Diag::NonUnit };
        TrsmOptions::new().side(self.side).uplo(self.uplo).op(op).diag(diag).alpha(alpha)
    }
}

/// Options of a triangular solve larger than memory, whose finished columns are kept in a directory.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Larger than memory")]
pub struct TriangularStorage {
    /// Compute out of core, within the limit of --memory: finished columns are kept in this directory, and an
    /// interrupted run resumes from them. All files must be binary.
    #[arg(long = "storage", value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "hex")]
    pub directory: Option<PathBuf>,
    /// Use of the system's page cache: direct (bypass it), cached, or drop-behind (drop each piece after its use).
    #[arg(long = "storage-io", value_name = "WAY", default_value = "direct", requires = "directory",
        value_parser = caching())]
    pub caching: Caching,
}

/// `sunzi trsm`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi trsm L.mtx B.mtx -o X.mtx --transpose\n  \
                        sunzi trsm U.bin B.bin -o X.bin --side right --uplo upper\n  \
                        sunzi trsm L.bin B.bin -o X.bin --accuracy norm --storage work --memory 2G")]
pub struct Trsm {
    /// The triangular matrix T.
    pub t: PathBuf,
    /// The right-hand sides B.
    pub b: PathBuf,
    #[command(flatten)]
    pub system: TriangularSystem,
    /// Error bound of each entry of the residual: a small multiple of 2^-B times the sum of the absolute values of its
    /// terms (entrywise, also called componentwise), or times the product of the norms of its row and column (norm).
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy())]
    pub accuracy: Accuracy,
    #[command(flatten)]
    pub precision: Precision,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub storage: TriangularStorage,
}
