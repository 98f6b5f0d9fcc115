//! The command line as typed: names, help texts and strings. No value is judged here; see `config`.

mod device;
mod double;
mod factor;
mod simulate;

pub use device::*;
pub use double::RawDouble;
pub use factor::*;
pub use simulate::*;

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Big-float linear algebra through word-size residues: fast, and the same bits on every machine.
///
/// Files are Matrix Market (.mtx) or binary (.bin), chosen by name. Counts may be written 1e5; sizes take K, M, G, T
/// (powers of 1024) and decimals. Exit codes: 0 done, 2 wrong arguments, 3 wrong input, 4 not enough memory,
/// 5 a check failed, 6 ranks out of reach, 7 a device failed, 130 stopped.
#[derive(Parser, Debug)]
#[command(name = "sunzi", version, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<RawCommand>,
    /// Print errors only.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Also write a report as JSON.
    #[arg(long, global = true, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

impl Arguments {
    /// Whether times will be measured.
    pub fn is_bench(&self) -> bool {
        matches!(self.command, Some(RawCommand::Bench(_)))
    }
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum RawCommand {
    /// Show the CPU's abilities, the kernels and how far they reach, and the memory.
    Info,
    /// Write a test matrix.
    Gen(RawGen),
    /// Q := P^T P (or P P^T), one triangle.
    Syrk(RawSyrk),
    /// C := A B, either operand transposed or not.
    Gemm(RawGemm),
    /// A = L L^T for a symmetric positive definite A.
    Cholesky(RawCholesky),
    /// X with A X = B for a symmetric positive definite A.
    Solve(RawSolve),
    /// The inverse of a symmetric positive definite A.
    Inverse(RawInverse),
    /// X with op(T) X = alpha B or X op(T) = alpha B for a triangular T.
    Trsm(RawTrsm),
    /// Check a stored result against its error bound; exit code 0 if and only if it holds.
    #[command(arg_required_else_help = false)]
    Verify(RawVerify),
    /// Copy a matrix into another format.
    Convert(RawConvert),
    /// Show the first and the largest difference of two matrices.
    Compare(RawCompare),
    /// Show how a product or a factorisation would run, here or on a cluster: bytes, cuts, jobs. Computes nothing.
    Plan(RawPlan),
    /// Time an operation beside other implementations, check every answer, compare with the machine's limit.
    Bench(RawBench),
    /// Check the devices of this machine and measure them; exit code 5 if anything is wrong.
    #[command(name = "gpu-check")]
    GpuCheck(RawGpuCheck),
    /// Let a factorisation run on a cluster in virtual time: how long, which messages, what waits for what.
    Simulate(RawSimulate),
    /// A tour in under a minute: an ill-conditioned Gram matrix, computed, checked, verified, timed.
    Demo(RawDemo),
}

/// Choices of the engine.
#[derive(Args, Debug, Default)]
pub struct RawEngine {
    /// Worker threads [default: all processors].
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub threads: Option<String>,
    /// Memory limit for the whole process, such as 2G [default: none].
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub memory: Option<String>,
    /// Kernel: auto, or a name that `sunzi info` lists.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub kernel: String,
    /// Devices for products and factorisations: numbers of CUDA cards, `all` of them, `soft` or `soft:SIZE` (plain
    /// memory behind the same code), `host` (the processors as one more device); several with commas [default: none].
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub device: Option<String>,
    /// Most memory to use of each device, such as 5000M [default: all it has].
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, requires = "device")]
    pub device_memory: Option<String>,
}

/// Choices of the arithmetic of a product.
#[derive(Args, Debug)]
pub struct RawProduct {
    /// Bits of every significand [default: what the first input file states].
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: Option<String>,
    /// Bits to which decimal input is rounded [default: the precision].
    #[arg(long, value_name = "B", allow_hyphen_values = true)]
    pub input_precision: Option<String>,
    /// Check every entry of the result with one more prime.
    #[arg(long)]
    pub self_check: bool,
    /// Test the product with a random vector before it is rounded.
    #[arg(long)]
    pub freivalds: bool,
    /// Inputs hold integers; compute the exact integer result.
    #[arg(long)]
    pub exact_integers: bool,
    /// Factor of the product: decimal, integer or hexadecimal float [default: 1].
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub alpha: Option<String>,
    /// Factor of the matrix given by --accumulate [default: 1].
    #[arg(long, value_name = "X", allow_hyphen_values = true, requires = "accumulate")]
    pub beta: Option<String>,
    /// A matrix to add to the product.
    #[arg(long, value_name = "FILE")]
    pub accumulate: Option<PathBuf>,
    /// Also write when each step ran, on all ranks, as JSON for a trace viewer.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Memory shared by the ranks of a node: auto, mpi, posix or heap (one process).
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub window: String,
    #[command(flatten)]
    pub engine: RawEngine,
}

/// Where a result goes.
#[derive(Args, Debug)]
pub struct RawOutput {
    /// Output file, .mtx or .bin.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long)]
    pub hex: bool,
}

/// `sunzi gen`.
#[derive(Args, Debug)]
pub struct RawGen {
    /// random, graded, hilbert, cauchy, lehmer, minij, pascal, moler, kms, lauchli or bootstrap1d.
    pub kind: String,
    /// Number of rows.
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    pub rows: String,
    /// Number of columns.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub cols: String,
    /// Bits of every significand.
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: String,
    /// Seed of the random kinds.
    #[arg(long, value_name = "S", default_value = "0", allow_hyphen_values = true)]
    pub seed: String,
    #[command(flatten)]
    pub output: RawOutput,
}

/// `sunzi syrk`.
#[derive(Args, Debug)]
pub struct RawSyrk {
    /// The matrix P.
    pub p: PathBuf,
    /// Compute P P^T instead of P^T P.
    #[arg(long)]
    pub transpose: bool,
    /// Compute the upper triangle; it is written as the lower triangle of a symmetric file all the same.
    #[arg(long)]
    pub upper: bool,
    #[command(flatten)]
    pub product: RawProduct,
    #[command(flatten)]
    pub output: RawOutput,
}

/// `sunzi gemm`.
#[derive(Args, Debug)]
pub struct RawGemm {
    /// The matrix A.
    pub a: PathBuf,
    /// The matrix B.
    pub b: PathBuf,
    /// Use A transposed.
    #[arg(long)]
    pub transpose_a: bool,
    /// Use B transposed.
    #[arg(long)]
    pub transpose_b: bool,
    #[command(flatten)]
    pub product: RawProduct,
    #[command(flatten)]
    pub output: RawOutput,
}

/// `sunzi verify`.
#[derive(Args, Debug)]
pub struct RawVerify {
    #[command(subcommand)]
    pub operation: RawVerifyOperation,
}

/// What is verified.
#[derive(Subcommand, Debug)]
pub enum RawVerifyOperation {
    /// Q = P^T P.
    Syrk(RawVerifySyrk),
    /// C = A B.
    Gemm(RawVerifyGemm),
    /// A = L L^T.
    Cholesky(RawVerifyCholesky),
}

/// `sunzi verify syrk`.
#[derive(Args, Debug)]
pub struct RawVerifySyrk {
    /// The matrix P.
    pub p: PathBuf,
    /// The result Q.
    pub q: PathBuf,
    /// The result is P P^T.
    #[arg(long)]
    pub transpose: bool,
    #[command(flatten)]
    pub check: RawCheck,
}

/// `sunzi verify gemm`.
#[derive(Args, Debug)]
pub struct RawVerifyGemm {
    /// The matrix A.
    pub a: PathBuf,
    /// The matrix B.
    pub b: PathBuf,
    /// The result C.
    pub c: PathBuf,
    /// A was used transposed.
    #[arg(long)]
    pub transpose_a: bool,
    /// B was used transposed.
    #[arg(long)]
    pub transpose_b: bool,
    #[command(flatten)]
    pub check: RawCheck,
}

/// Choices of a verification.
#[derive(Args, Debug)]
pub struct RawCheck {
    /// Precision of the bound [default: what the result's file states].
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: Option<String>,
    /// Bits to which decimal input was rounded [default: the precision].
    #[arg(long, value_name = "B", allow_hyphen_values = true)]
    pub input_precision: Option<String>,
    /// The result is an exact product of integers.
    #[arg(long)]
    pub exact_integers: bool,
    /// Seed of the random signs and sampled entries [default: fresh].
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub seed: Option<String>,
    /// Worker threads [default: all processors].
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub threads: Option<String>,
}

/// `sunzi convert`.
#[derive(Args, Debug)]
pub struct RawConvert {
    /// Input file, .mtx or .bin.
    pub input: PathBuf,
    /// Output file, .mtx or .bin.
    pub output: PathBuf,
    /// Bits to which decimal input is rounded [default: what the file states].
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: Option<String>,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long)]
    pub hex: bool,
}

/// `sunzi compare`.
#[derive(Args, Debug)]
pub struct RawCompare {
    /// One matrix.
    pub left: PathBuf,
    /// The other.
    pub right: PathBuf,
    /// Bits to which decimal input is rounded [default: what each file states].
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: Option<String>,
}

/// `sunzi plan`.
#[derive(Args, Debug)]
pub struct RawPlan {
    /// syrk, gemm or cholesky.
    #[arg(default_value = "syrk")]
    pub operation: String,
    /// Rows contracted (K), or rows of the matrix to factor.
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    pub rows: String,
    /// Columns of a product (N).
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub cols: Option<String>,
    /// Rows of a gemm's result [default: as --cols].
    #[arg(long, value_name = "M", allow_hyphen_values = true)]
    pub result_rows: Option<String>,
    /// Bits of every significand.
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: String,
    /// Rows of a tile of cholesky [default: chosen by size and precision].
    #[arg(long, value_name = "NB", allow_hyphen_values = true)]
    pub tile: Option<String>,
    /// With the redundant prime of the self-check (products only).
    #[arg(long)]
    pub self_check: bool,
    /// Nodes of a cluster to plan a syrk for; --memory is then the limit of a node [default: 1 with --ranks-per-node].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub nodes: Option<String>,
    /// Ranks of each node; --threads are then those of a rank [default: 1 rank with --nodes; 1 thread].
    #[arg(long, value_name = "R", allow_hyphen_values = true)]
    pub ranks_per_node: Option<String>,
    #[command(flatten)]
    pub engine: RawEngine,
}

/// `sunzi bench`.
#[derive(Args, Debug)]
pub struct RawBench {
    /// syrk (P^T P), gemm (A^T B, both K x N), cholesky (A = L L^T), trsm (L X = B), solve (L L^T X = B, L given) or
    /// kernel (one plane product against the instruction rate).
    pub operation: String,
    /// Rows of each operand (K) [default: 4000; cholesky, trsm, solve: 1000; kernel: 4096].
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    pub rows: Option<String>,
    /// Columns of each operand of a product, right-hand sides of a system (N) [default: 1000; trsm: as --rows; solve:
    /// 1; kernel: 960].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub cols: Option<String>,
    /// Bits of every significand [default: 1024].
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: Option<String>,
    /// Other implementations to time in the same run, by comma: sdpb, flint, mpfr; of cholesky: flint, nfloat (FLINT's
    /// LU of packed floats), mpfr; of trsm and solve: flint, mpfr.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub rivals: Vec<String>,
    /// Timed runs of each, interleaved.
    #[arg(long, value_name = "R", default_value = "5", allow_hyphen_values = true)]
    pub runs: String,
    /// Rows of a tile of cholesky [default: chosen by size and precision].
    #[arg(long, value_name = "NB", allow_hyphen_values = true)]
    pub tile: Option<String>,
    /// With the redundant prime of the self-check (products only).
    #[arg(long)]
    pub self_check: bool,
    /// On several ranks: also time the product within these parts of the memory it takes without limit, such as 3,10
    /// for a third and a tenth.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub memory_parts: Vec<String>,
    /// On several ranks: memory shared by the ranks of a node: auto, mpi, posix.
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub window: String,
    #[command(flatten)]
    pub double: RawDouble,
    #[command(flatten)]
    pub engine: RawEngine,
}

/// `sunzi demo`.
#[derive(Args, Debug)]
pub struct RawDemo {
    #[command(flatten)]
    pub engine: RawEngine,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
