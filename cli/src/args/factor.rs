//! Options of `cholesky`, `solve`, `inverse` and `trsm`.

use super::values::{PrecisionChoice, accuracy, broadcast, digits, grid, positive, precision, precision_or_auto, side};
use super::values::{caching, size, termination, uplo};
use super::{ElementType, EngineArgs, Output, Precision};
use clap::{Args, ValueHint};
use rug::Float;
use std::path::PathBuf;
use sunzi::advanced::runtime::Policy;
use sunzi::advanced::runtime::protocol::{DeliveryKind, Termination};
use sunzi::advanced::storage::Caching;
use sunzi::distributed::RankGrid;
use sunzi::{Accuracy, Diag, Error, Op, Result, Side, TrsmOptions, Uplo};
use sunzi_lab::engine::Engine;

/// Which triangle of a symmetric matrix counts.
#[derive(Args, Clone, Debug)]
pub struct Triangle {
    /// The lower triangle of A counts; the other one is empty (all 0), or the same up to rounding [default: both, which
    /// must agree].
    #[arg(long, conflicts_with = "upper", group = "named_triangle")]
    lower: bool,
    /// The upper triangle of A counts, likewise; a factor is then U with A = U^T U.
    #[arg(long, group = "named_triangle")]
    upper: bool,
    /// Whatever the triangle holds that is not named, it is ignored.
    #[arg(long, requires = "named_triangle")]
    ignore_other_triangle: bool,
}

impl Triangle {
    /// The triangle that is read; `None` for both, which must agree.
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

/// A triangle that the command line names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedTriangle {
    /// Which.
    pub uplo: Uplo,
    /// Whether the other one may hold anything.
    pub ignores_other: bool,
}

/// A symmetric positive definite matrix and how it is factored.
#[derive(Args, Clone, Debug)]
pub struct Factor {
    /// The symmetric positive definite matrix A.
    pub a: PathBuf,
    #[command(flatten)]
    pub triangle: Triangle,
    #[command(flatten)]
    pub precision: FactorPrecision,
    /// Rows of a tile; any number gives the same bits [default: by size and precision].
    #[arg(long = "tile", value_name = "NB", value_parser = positive)]
    pub tile_rows: Option<usize>,
    /// Also print the logarithm of the determinant, as far as its digits are right.
    #[arg(long)]
    pub log_det: bool,
    /// Also print an estimate of the condition number in the 1-norm.
    #[arg(long)]
    pub condition: bool,
    #[command(flatten)]
    pub digits: DigitChoices,
    /// Also write when each step ran, as JSON for ui.perfetto.dev or
    /// chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// What is promised of each entry: an error beside its own terms (entrywise), or beside the norms of rows (norm),
    /// which with --storage is all there is.
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy())]
    pub accuracy: Accuracy,
    #[command(flatten)]
    pub ranks: RankChoices,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Precision of a factorisation and of its input.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Precision")]
pub struct FactorPrecision {
    /// Bits of every significand, 2 to 5000 or as far as the kernel goes (`sunzi info`), or auto: the fewest at which
    /// the answer has the digits asked for [default: what the first input file states].
    #[arg(long = "precision", short = 'p', value_name = "B|auto", value_parser = precision_or_auto)]
    choice: Option<PrecisionChoice>,
    /// Correct decimal digits of the answer that --precision auto is to reach [default: 30].
    #[arg(long, value_name = "D", value_parser = digits)]
    digits: Option<u32>,
    /// Bits to which decimal input is rounded [default: what the file states, else the precision and 64 more].
    #[arg(long = "input-precision", value_name = "B", value_parser = precision)]
    pub input_bits: Option<u32>,
}

/// Digits that --precision auto reaches where no number was given.
const AUTOMATIC_DIGITS: u32 = 30;

impl FactorPrecision {
    /// The digits to reach at any precision that this takes; `None` where the precision is given.
    pub fn automatic(&self) -> Option<u32> {
        match (self.choice, self.digits) {
            (Some(PrecisionChoice::Automatic), digits) => Some(digits.unwrap_or(AUTOMATIC_DIGITS)),
            (None, digits) => digits,
            (Some(PrecisionChoice::Bits(_)), _) => None,
        }
    }

    /// The precision for a reader of matrices, at the precision given or at `bits`.
    pub fn typed(&self, bits: Option<u32>) -> Precision {
        let given = match self.choice {
            Some(PrecisionChoice::Bits(bits)) => Some(bits),
            _ => None,
        };
        Precision { bits: bits.or(given), input_bits: self.input_bits }
    }

    /// Refuses a precision that the kernel cannot serve, and digits together with a precision.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`], [`sunzi::Error::InvalidArgument`].
    pub fn check(&self, engine: &Engine) -> Result<()> {
        if let (Some(PrecisionChoice::Bits(bits)), Some(digits)) = (self.choice, self.digits) {
            let message = format!("--digits {digits} is for --precision auto: {bits} bits are given");
            return Err(Error::InvalidArgument(message));
        }
        self.typed(None).check(engine)
    }
}

/// What is said of correct digits.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Correct digits")]
pub struct DigitChoices {
    /// Also prove how many digits of the answer are right: about as much work again.
    #[arg(long, conflicts_with = "no_estimate")]
    pub certified: bool,
    /// Do not estimate how many digits of the answer are right.
    #[arg(long)]
    pub no_estimate: bool,
    /// Print all digits of the logarithm; those that mean nothing stand in brackets.
    #[arg(long)]
    pub all_digits: bool,
}

/// How a factorisation runs on several ranks.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "On several ranks (mpirun)")]
pub struct RankChoices {
    /// Rows and columns of ranks, such as 2x3 [default: nearly square].
    #[arg(long, value_name = "PxQ", value_parser = grid)]
    pub grid: Option<RankGrid>,
    /// Who sends a finished tile to whom [default: cs_list_ahead].
    #[arg(long, value_name = "WAY", value_parser = broadcast())]
    pub broadcast: Option<DeliveryKind>,
    /// Which tile is worked on next: fifo, lifo, random, random:SEED, by_ij, greedy, critical_path, panels,
    /// leftmost, blocks, blocks:RxC [default: leftmost on one node, else critical_path].
    #[arg(long, value_name = "NAME", value_parser = Policy::by_name)]
    pub policy: Option<Policy>,
    /// How a rank finds out that it will not be asked any more [default: lists].
    #[arg(long, value_name = "WAY", value_parser = termination())]
    pub termination: Option<Termination>,
    /// Tiles of other ranks that a rank has room for [default: within the memory limit].
    #[arg(long, value_name = "N", value_parser = size)]
    pub remote_tiles: Option<usize>,
    /// Also draw ready tiles, busy workers and held bytes over time.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

/// A matrix larger than memory: its tiles go to a directory.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Larger than memory")]
pub struct StorageChoices {
    /// Work from file to file within --memory, with finished tiles in this directory; a run that was ended goes on
    /// from them. Both files are binary.
    #[arg(long = "storage", value_name = "DIR", value_hint = ValueHint::DirPath, requires = "path",
        conflicts_with_all = ["upper", "log_det", "condition", "certified", "all_digits", "digits",
            "broadcast", "policy", "termination", "remote_tiles", "plot", "hex", "trace", "input_bits"])]
    pub directory: Option<PathBuf>,
    /// What the system's cache is used for: direct (nothing), cached, or drop-behind (each piece is dropped at once).
    #[arg(long = "storage-io", value_name = "WAY", default_value = "direct", requires = "directory",
        value_parser = caching())]
    pub caching: Caching,
}

/// `sunzi cholesky`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi cholesky A.mtx -o L.mtx --precision 512\n  \
                        sunzi cholesky A.mtx --log-det --precision 512\n  \
                        sunzi cholesky A.mtx -o L.mtx --precision auto --digits 30\n  \
                        sunzi cholesky A.bin -o L.bin --accuracy norm --storage tiles --memory 2G\n  \
                        sunzi cholesky A.bin -o L.bin --storage tiles --memory 2G --element-type double\n  \
                        mpirun -n 4 sunzi cholesky A.bin -o L.bin --threads 1 --grid 2x2")]
pub struct Cholesky {
    #[command(flatten)]
    pub factor: Factor,
    #[command(flatten)]
    pub output: FactorOutput,
    #[command(flatten)]
    pub storage: StorageChoices,
    /// What is factored with --storage: big floats, or the entries rounded to doubles, in doubles.
    #[arg(long, value_name = "TYPE", value_enum, default_value = "big", help_heading = "Larger than memory")]
    pub element_type: ElementType,
}

impl Cholesky {
    /// Refuses a precision that the kernel cannot serve, and options without a meaning for doubles.
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
            let message = "--element-type double goes with --storage DIR; in memory doubles are factored by sunzi \
                           bench cholesky --element-type double";
            return Err(Error::InvalidArgument(message.into()));
        }
        let given = [
            ("--precision", precision.choice.is_some()),
            ("--kernel", engine.kernel.is_some()),
            ("--device", !engine.devices.is_empty()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                Err(Error::InvalidArgument(format!("{option} means nothing to --element-type double")))
            }
            None => Ok(()),
        }
    }
}

/// Where a factor goes, if anywhere.
#[derive(Args, Clone, Debug)]
pub struct FactorOutput {
    /// Output file; its ending says the format, `-` is standard output [default: none with --log-det or --condition].
    #[arg(long = "output", short = 'o', value_name = "FILE", required_unless_present_any = ["log_det", "condition"])]
    path: Option<PathBuf>,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long, requires = "path")]
    hex: bool,
}

impl FactorOutput {
    /// The output, where there is one.
    pub fn given(self) -> Option<Output> {
        self.path.map(|path| Output { path, hex: self.hex })
    }
}

/// `sunzi solve`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi solve A.mtx B.mtx -o X.mtx --certified\n  \
                        sunzi solve A.mtx B.mtx -o X.mtx --precision auto --digits 50\n  \
                        sunzi solve A.mtx B.mtx -o X.mtx --refine-from 200\n  \
                        sunzi solve A.bin B.bin -o X.bin --accuracy norm --storage work --memory 2G")]
pub struct Solve {
    #[command(flatten)]
    pub factor: Factor,
    /// The right-hand sides B.
    pub b: PathBuf,
    /// Factor at so many bits and refine the solution to the full precision.
    #[arg(long, value_name = "BITS", value_parser = precision,
        conflicts_with_all = ["log_det", "condition", "tile_rows", "certified", "digits", "directory", "accuracy"])]
    pub refine_from: Option<u32>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub storage: StorageChoices,
}

/// `sunzi inverse`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi inverse A.mtx -o X.mtx --certified\n  \
                        sunzi inverse A.bin -o X.bin --precision auto --digits 50 --memory 8G")]
pub struct Inverse {
    #[command(flatten)]
    pub factor: Factor,
    #[command(flatten)]
    pub output: Output,
}

/// Which triangular system is meant.
#[derive(Args, Clone, Debug)]
pub struct TriangularSystem {
    /// left solves op(T) X = alpha B, right solves X op(T) = alpha B.
    #[arg(long, value_name = "SIDE", default_value = "left", value_parser = side())]
    pub side: Side,
    /// The triangle of T that is read.
    #[arg(long, value_name = "TRIANGLE", default_value = "lower", value_parser = uplo())]
    pub uplo: Uplo,
    /// Use T transposed.
    #[arg(long)]
    pub transpose: bool,
    /// Take the diagonal of T as ones.
    #[arg(long)]
    pub unit: bool,
    /// Scalar of B: decimal, integer or hexadecimal float [default: 1].
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

/// A triangular solve larger than memory: finished columns go to a directory.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Larger than memory")]
pub struct TriangularStorage {
    /// Work from file to file within --memory, with finished columns in this directory; a run that was ended goes on
    /// from them. All files are binary.
    #[arg(long = "storage", value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "hex")]
    pub directory: Option<PathBuf>,
    /// What the system's cache is used for: direct (nothing), cached, or drop-behind (each piece is dropped at once).
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
    /// What is promised of each entry of the residual: norm (beside the norms of row and column) or entrywise (beside
    /// its own terms).
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
