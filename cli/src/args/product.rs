//! Options of `syrk` and `gemm`.

use super::values::{accuracy, caching, uplo, window};
use super::{EngineArgs, Output, PLAIN, Precision};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use sunzi::advanced::storage::Caching;
use sunzi::comm::window::WindowKind;
use sunzi::{Accuracy, Uplo};

/// Options of both products.
#[derive(Args, Clone, Debug)]
pub struct ProductArgs {
    #[command(flatten)]
    pub precision: Precision,
    /// Check every entry of the result with one redundant prime.
    #[arg(long, help_heading = PLAIN)]
    pub self_check: bool,
    /// Before rounding, check the exact product with a random vector (Freivalds' test).
    #[arg(long, help_heading = PLAIN)]
    pub freivalds: bool,
    /// Compute the exact product of matrices of integers.
    #[arg(long, help_heading = PLAIN)]
    pub exact_integers: bool,
    /// Error bound of entry (i, j) of a product A B: a small multiple of 2^-B times (|A| |B|)_ij (entrywise, also
    /// called componentwise), or times the norms of row i of A and column j of B (norm). --storage requires norm.
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy(), help_heading = PLAIN)]
    pub accuracy: Accuracy,
    /// Scalar that multiplies the product: decimal, integer or hexadecimal float [default: 1].
    #[arg(long, value_name = "X", help_heading = PLAIN)]
    pub alpha: Option<String>,
    /// Scalar that multiplies the matrix of --accumulate [default: 1].
    #[arg(long, value_name = "X", requires = "accumulate", help_heading = PLAIN)]
    pub beta: Option<String>,
    /// Matrix to add to the product; for syrk it must be symmetric.
    #[arg(long, value_name = "FILE", help_heading = PLAIN)]
    pub accumulate: Option<PathBuf>,
    /// Also write a timeline of the steps on all ranks, as JSON for ui.perfetto.dev or chrome://tracing.
    #[arg(long, value_name = "FILE", help_heading = PLAIN)]
    pub trace: Option<PathBuf>,
    /// Kind of shared memory for the ranks of a node; heap is for a single process only.
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = window(), help_heading = PLAIN)]
    pub window: WindowKind,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Options of a product larger than memory, whose finished tiles are kept in a directory.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Larger than memory")]
pub struct ProductStorage {
    /// Compute out of core, within the limit of --memory: finished tiles of the result are kept in this directory, and
    /// an interrupted run resumes from them. All files must be binary.
    #[arg(long = "storage", value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["freivalds",
        "exact_integers", "alpha", "beta", "accumulate", "trace", "window", "hex"])]
    pub directory: Option<PathBuf>,
    /// Use of the system's page cache: direct (bypass it), cached, or drop-behind (drop each piece after its use).
    #[arg(long = "storage-io", value_name = "WAY", default_value = "direct", requires = "directory",
        value_parser = caching())]
    pub caching: Caching,
}

/// `sunzi syrk`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi syrk P.mtx -o Q.mtx --precision 512 --self-check --memory 2G\n  \
                        sunzi syrk P.bin -o Q.bin --accuracy norm --storage tiles --memory 2G\n  \
                        mpirun -n 4 sunzi syrk P.bin -o Q.bin --threads 1")]
pub struct Syrk {
    /// The matrix P.
    pub p: PathBuf,
    /// Compute P P^T instead of P^T P.
    #[arg(long)]
    pub transpose: bool,
    /// Weights d, a vector: compute P^T diag(d) P or, with --transpose, P diag(d) P^T.
    #[arg(long, value_name = "FILE", conflicts_with = "directory")]
    pub weights: Option<PathBuf>,
    /// Compute the upper triangle; the output is a symmetric file, which stores the lower triangle in either case.
    #[arg(long)]
    pub upper: bool,
    /// Triangle of the matrix to add that is read; the other triangle must be zero or equal to it up to rounding
    /// [default: both triangles, which must be equal].
    #[arg(long, value_name = "TRIANGLE", requires = "accumulate", value_parser = uplo())]
    pub accumulate_triangle: Option<Uplo>,
    /// Do not check the other triangle of the matrix to add; it may hold anything.
    #[arg(long, requires = "accumulate_triangle")]
    pub ignore_other_triangle: bool,
    #[command(flatten)]
    pub choices: ProductArgs,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub storage: ProductStorage,
}

/// `sunzi gemm`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi gemm A.mtx B.mtx -o C.mtx --transpose-a --alpha -2.5\n  \
                        sunzi gemm A.bin B.bin -o C.bin --accuracy norm --storage tiles --memory 2G")]
pub struct Gemm {
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
    pub choices: ProductArgs,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub storage: ProductStorage,
}
