//! Options of `bench` and `gpu-check`.

use super::engine::hidden;
use super::values::{accuracy, device, eviction, positive, precision, runs, size, threads, window};
use super::{CpuEngineArgs, EngineArgs};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};
use std::ops::Deref;
use std::path::PathBuf;
use sunzi::advanced::device::DeviceName;
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::advanced::runtime::{Eviction, Policy};
use sunzi::comm::window::WindowKind;
use sunzi::{Accuracy, Error, Result};
use sunzi_session::engine::check_reach;

/// `sunzi bench`.
#[derive(Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  sunzi bench syrk --rows 4000 --cols 1000 --precision 1024 --against sdpb,flint\n  \
                        sunzi bench cholesky --rows 500 --precision 512 --threads 1 --report r.json"
)]
pub struct Bench {
    /// The operation to time.
    #[command(subcommand)]
    pub operation: BenchOperation,
}

/// The operation to time.
#[derive(Subcommand, Debug)]
pub enum BenchOperation {
    /// Product Q = P^T P.
    #[command(
        after_help = "Example:\n  sunzi bench syrk --rows 4000 --cols 1000 --precision 1024 --against sdpb,flint"
    )]
    Syrk(BenchSyrk),
    /// Product C = A^T B of two K x N matrices A and B.
    #[command(after_help = "Example:\n  sunzi bench gemm --rows 1000 --cols 1000 --precision 512 --against mpfr")]
    Gemm(BenchGemm),
    /// Cholesky factorisation A = L L^T.
    #[command(after_help = "Example:\n  sunzi bench cholesky --rows 500 --precision 512 --threads 1 --report r.json")]
    Cholesky(BenchCholesky),
    /// Triangular system L X = B.
    #[command(after_help = "Example:\n  sunzi bench trsm --rows 500 --cols 500 --precision 512")]
    Trsm(BenchTrsm),
    /// System L L^T X = B for a given factor L.
    #[command(after_help = "Example:\n  sunzi bench solve --rows 500 --cols 1 --precision 512 --against mpfr")]
    Solve(BenchSolve),
    /// Many small problems in one batched call.
    #[command(after_help = "Example:\n  sunzi bench batch --operation cholesky --count 1000 --rows 16 \\\n      \
                            --precision 768 --against mpfr,calls")]
    Batch(BenchBatch),
    /// One step of an interior-point method as in SDPB, in one process or on several ranks.
    #[command(after_help = "Example:\n  mpirun -n 4 sunzi bench step --blocks 200 --order 31 --cols 500 \\\n      \
                            --threads 1 --against sdpb")]
    Step(BenchStep),
    /// One product of residue matrices modulo one prime; its rate is compared with the rate that the instructions
    /// allow.
    #[command(after_help = "Example:\n  sunzi bench kernel --runs 3")]
    Kernel(BenchKernel),
}

/// The timing of an operation on big floats, and the implementations to compare with.
#[derive(Args, Clone, Debug)]
pub struct Comparison {
    /// Error bound of each entry that Sunzi computes: a small multiple of 2^-B times the sum of the absolute values of
    /// its terms (entrywise), or times a product of norms (norm). It has no effect on doubles.
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy())]
    pub accuracy: Accuracy,
    /// Bits of every significand [default: 1024].
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: Option<u32>,
    /// Other implementations to time in the same run, separated by commas: for products sdpb, flint, mpfr; for cholesky
    /// flint, nfloat (FLINT's LU of packed floats), mpfr; for trsm and solve flint, mpfr.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub against: Vec<String>,
    /// Number of timed runs of each implementation; the implementations take turns.
    #[arg(long, value_name = "R", default_value = "5", value_parser = runs)]
    pub runs: usize,
    /// Also time all implementations at 1/4, 2/4, 3/4 and 4/4 of the precision and of the sizes, and plot the times
    /// against both; only in one process, and for big floats.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

impl Comparison {
    /// The given precision, else 1024 bits.
    pub fn precision_bits(&self) -> u32 {
        self.precision.unwrap_or(1024)
    }
}

/// The comparison of a batch, which runs on the CPU and has no plot: its help does not show the options for devices and
/// plots, and an error names them if they are given.
#[derive(Clone, Debug)]
pub struct BatchComparison(Comparison);

impl Deref for BatchComparison {
    type Target = Comparison;

    fn deref(&self) -> &Comparison {
        &self.0
    }
}

impl FromArgMatches for BatchComparison {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<BatchComparison, clap::Error> {
        Comparison::from_arg_matches(matches).map(BatchComparison)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Args for BatchComparison {
    fn augment_args(command: Command) -> Command {
        hidden(Comparison::augment_args(command), &["plot", "device", "device_memory"])
    }

    fn augment_args_for_update(command: Command) -> Command {
        BatchComparison::augment_args(command)
    }
}

/// `sunzi bench syrk`.
#[derive(Args, Clone, Debug)]
pub struct BenchSyrk {
    /// Number of rows of P (K).
    #[arg(long, value_name = "K", default_value = "4000", value_parser = size)]
    pub rows: usize,
    /// Number of columns of P (N).
    #[arg(long, value_name = "N", default_value = "1000", value_parser = size)]
    pub cols: usize,
    /// Include the redundant prime of the self-check.
    #[arg(long)]
    pub self_check: bool,
    /// Also time the product under memory limits that are fractions of the memory that it takes without a limit, such
    /// as 3,10 for a third and a tenth.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::values::positive_count,
        help_heading = "On several ranks (mpirun)")]
    pub memory_fractions: Vec<u64>,
    /// Kind of shared memory for the ranks of a node.
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = window(),
        help_heading = "On several ranks (mpirun)")]
    pub window: WindowKind,
    #[command(flatten)]
    pub comparison: Comparison,
}

/// `sunzi bench gemm`.
#[derive(Args, Clone, Debug)]
pub struct BenchGemm {
    /// Rows of both operands (K).
    #[arg(long, value_name = "K", default_value = "4000", value_parser = size)]
    pub rows: usize,
    /// Columns of both operands (N).
    #[arg(long, value_name = "N", default_value = "1000", value_parser = size)]
    pub cols: usize,
    /// Include the redundant prime of the self-check.
    #[arg(long)]
    pub self_check: bool,
    #[command(flatten)]
    pub comparison: Comparison,
}

/// The number type of the entries of a matrix.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementType {
    /// Big floats.
    Big,
    /// Doubles, in tiles.
    Double,
}

/// `sunzi bench cholesky`.
#[derive(Args, Clone, Debug)]
pub struct BenchCholesky {
    /// Number of rows of the matrix [default: 1000, or 2000 for doubles].
    #[arg(long, value_name = "K", value_parser = size)]
    pub rows: Option<usize>,
    /// Rows of a tile [default: chosen by size and precision].
    #[arg(long, value_name = "NB", value_parser = positive)]
    pub tile: Option<usize>,
    /// Number type of the entries. Doubles are factored on the devices of --device; without that option, on the
    /// software device `soft` in one process, and by the CPUs on several ranks.
    #[arg(long, value_name = "TYPE", value_enum, default_value = "big")]
    pub element_type: ElementType,
    /// Scheduling policy, which orders the ready tasks: fifo, lifo, random, by_ij, greedy, critical_path, panels,
    /// leftmost [default: panels; on several ranks greedy with devices, else critical_path].
    #[arg(long, value_name = "NAME", value_parser = Policy::by_name, help_heading = "With --element-type double")]
    pub policy: Option<Policy>,
    /// Rule that chooses the tile to evict from a full device [default: lru].
    #[arg(long, value_name = "NAME", value_parser = eviction(), help_heading = "With --element-type double")]
    pub eviction: Option<Eviction>,
    #[command(flatten)]
    pub comparison: Comparison,
}

/// `sunzi bench trsm`.
#[derive(Args, Clone, Debug)]
pub struct BenchTrsm {
    /// Rows of the triangle.
    #[arg(long, value_name = "K", default_value = "1000", value_parser = size)]
    pub rows: usize,
    /// Number of right-hand sides [default: as --rows].
    #[arg(long, value_name = "N", value_parser = size)]
    pub cols: Option<usize>,
    #[command(flatten)]
    pub comparison: Comparison,
}

/// `sunzi bench solve`.
#[derive(Args, Clone, Debug)]
pub struct BenchSolve {
    /// Rows of the factor.
    #[arg(long, value_name = "K", default_value = "1000", value_parser = size)]
    pub rows: usize,
    /// Number of right-hand sides.
    #[arg(long, value_name = "N", default_value = "1", value_parser = size)]
    pub cols: usize,
    #[command(flatten)]
    pub comparison: Comparison,
}

/// The operation of a batch.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchOperation {
    /// Product Q = P^T P.
    Syrk,
    /// Product C = A^T B of two K x N matrices A and B.
    Gemm,
    /// Cholesky factorisation A = L L^T.
    Cholesky,
    /// Triangular system L X = B.
    Trsm,
}

/// `sunzi bench batch`.
#[derive(Args, Clone, Debug)]
pub struct BenchBatch {
    /// Operation of each problem. With a batch, --against also accepts `calls`, one call of Sunzi for each problem.
    #[arg(long, value_name = "NAME", value_enum, default_value = "cholesky")]
    pub operation: BatchOperation,
    /// Number of problems, all different.
    #[arg(long, value_name = "C", default_value = "1000", value_parser = size)]
    pub count: usize,
    /// Rows of each matrix (K).
    #[arg(long, value_name = "K", default_value = "16", value_parser = size)]
    pub rows: usize,
    /// Columns of each operand of a product, or right-hand sides of a triangular solve [default: as --rows].
    #[arg(long, value_name = "N", value_parser = size)]
    pub cols: Option<usize>,
    #[command(flatten)]
    pub comparison: BatchComparison,
}

/// `sunzi bench step`: V_j = L_j^-1 B_j, Q = sum_j V_j^T V_j, Q = L L^T, and two solves with one right side each.
#[derive(Args, Clone, Debug)]
pub struct BenchStep {
    /// Total number of blocks on all ranks.
    #[arg(long, value_name = "J", default_value = "200", value_parser = size)]
    pub blocks: usize,
    /// Rows of each block.
    #[arg(long, value_name = "K", default_value = "31", value_parser = size)]
    pub order: usize,
    /// Columns of each block and rows of Q; at most the total number of rows of all blocks.
    #[arg(long, value_name = "N", default_value = "500", value_parser = size)]
    pub cols: usize,
    /// Bits of every significand.
    #[arg(long, short, value_name = "B", default_value = "768", value_parser = precision)]
    pub precision: u32,
    /// Other implementations to time in the same run, separated by commas: sdpb (Q as SDPB computes it, MPFR loops for
    /// the rest), mpfr (loops for everything).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub against: Vec<String>,
    /// Number of timed runs of each implementation; the implementations take turns.
    #[arg(long, value_name = "R", default_value = "5", value_parser = runs)]
    pub runs: usize,
    #[command(flatten)]
    pub engine: CpuEngineArgs,
}

/// `sunzi bench kernel`.
#[derive(Args, Clone, Debug)]
pub struct BenchKernel {
    /// Number of rows of the operands (K); each entry of the product is a sum of K terms.
    #[arg(long, value_name = "K", default_value = "4096", value_parser = positive)]
    pub rows: usize,
    /// Rows and columns of the product.
    #[arg(long, value_name = "N", default_value = "960", value_parser = positive)]
    pub cols: usize,
    /// Number of timed runs.
    #[arg(long, value_name = "R", default_value = "5", value_parser = runs)]
    pub runs: usize,
    #[command(flatten)]
    pub engine: CpuEngineArgs,
}

impl Bench {
    /// Checks precision and kernel together, and the options of one element type.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], [`Error::Precision`].
    pub fn check(&self) -> Result<()> {
        let comparison = match &self.operation {
            BenchOperation::Syrk(args) => &args.comparison,
            BenchOperation::Gemm(args) => &args.comparison,
            BenchOperation::Cholesky(args) => {
                args.check()?;
                &args.comparison
            }
            BenchOperation::Trsm(args) => &args.comparison,
            BenchOperation::Solve(args) => &args.comparison,
            BenchOperation::Batch(args) => {
                args.check()?;
                &args.comparison
            }
            BenchOperation::Step(args) => {
                if args.cols > args.blocks.saturating_mul(args.order) {
                    let (cols, rows) = (args.cols, args.blocks * args.order);
                    let message = format!("--cols {cols} exceeds the {rows} rows of all blocks: Q would be singular");
                    return Err(Error::InvalidArgument(message));
                }
                return check_reach(args.precision, args.engine.kernel);
            }
            BenchOperation::Kernel(args) => {
                let what = "the benchmark of residue matrices (sunzi gpu-check times devices)";
                return args.engine.refuse_devices(what);
            }
        };
        check_reach(comparison.precision_bits(), comparison.engine.kernel)
    }
}

impl BenchBatch {
    fn check(&self) -> Result<()> {
        let is_square = self.operation == BatchOperation::Cholesky;
        match self.cols {
            Some(cols) if is_square && cols != self.rows => Err(Error::InvalidArgument(format!(
                "--cols {cols} differs from --rows {}: a matrix to factor must be square",
                self.rows
            ))),
            _ if self.comparison.plot.is_some() => {
                Err(Error::InvalidArgument("--plot cannot be used with a batch".into()))
            }
            _ => self.comparison.engine.refuse_devices("a batch"),
        }
    }
}

impl BenchCholesky {
    fn check(&self) -> Result<()> {
        let (comparison, kernel) = (&self.comparison, self.comparison.engine.kernel);
        let (other, given) = match self.element_type {
            ElementType::Big => {
                let given = [("--policy", self.policy.is_some()), ("--eviction", self.eviction.is_some())];
                ("big", given.into_iter().find(|(_, given)| *given))
            }
            ElementType::Double => {
                let given = [
                    ("--precision", comparison.precision.is_some()),
                    ("--against", !comparison.against.is_empty()),
                    ("--kernel", kernel.is_some()),
                    ("--plot", comparison.plot.is_some()),
                ];
                ("double", given.into_iter().find(|(_, given)| *given))
            }
        };
        match given {
            Some((option, _)) => {
                Err(Error::InvalidArgument(format!("{option} cannot be used with --element-type {other}")))
            }
            None => Ok(()),
        }
    }
}

/// `sunzi gpu-check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi gpu-check --device soft --quick")]
pub struct GpuCheck {
    /// Devices to check, separated by commas: numbers of CUDA devices, `all` CUDA devices, `soft` or `soft:SIZE` (a
    /// software device in main memory), `host` (the CPU). Rates are measured on the first device and on all of them
    /// together.
    #[arg(long, value_name = "LIST", default_value = "all", value_delimiter = ',', value_parser = device)]
    pub device: Vec<DeviceName>,
    /// Worker threads [default: all processors].
    #[arg(long, value_name = "T", value_parser = threads)]
    pub threads: Option<usize>,
    /// Check small sizes only, without measuring rates.
    #[arg(long, conflicts_with_all = ["rows", "cols", "precision"])]
    pub quick: bool,
    /// Number of rows of the operand of the timed product (K), reduced if the memory is too small [default: 16384 on a
    /// GPU].
    #[arg(long, value_name = "K", value_parser = positive)]
    pub rows: Option<usize>,
    /// Number of columns of that operand (N), reduced if the memory is too small [default: 8192 on a GPU].
    #[arg(long, value_name = "N", value_parser = positive)]
    pub cols: Option<usize>,
    /// Bits of every significand of that operand [default: 1024 on a GPU].
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: Option<u32>,
}

impl GpuCheck {
    /// Returns an error for a precision that the kernels of devices do not support.
    ///
    /// # Errors
    /// [`Error::Precision`].
    pub fn check(&self) -> Result<()> {
        let Some(bits) = self.precision else { return Ok(()) };
        DeviceFamily::ALL.iter().try_for_each(|family| check_reach(bits, Some(family.name())))
    }
}
