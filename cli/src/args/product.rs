//! Options of `syrk` and `gemm`.

use super::values::{accuracy, caching, uplo, window};
use super::{EngineArgs, Output, Precision};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use sunzi::advanced::storage::Caching;
use sunzi::comm::window::WindowKind;
use sunzi::{Accuracy, Uplo};

/// What both products can do.
#[derive(Args, Clone, Debug)]
pub struct ProductArgs {
    #[command(flatten)]
    pub precision: Precision,
    /// Check every entry of the result with one more prime.
    #[arg(long)]
    pub self_check: bool,
    /// Test the product with a random vector before it is rounded.
    #[arg(long)]
    pub freivalds: bool,
    /// Inputs hold integers; compute the exact integer result.
    #[arg(long)]
    pub exact_integers: bool,
    /// What is promised of each entry: an error beside its own terms (entrywise), or beside the norms of its row and
    /// column (norm), which with --storage is all there is.
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy())]
    pub accuracy: Accuracy,
    /// Scalar of the product: decimal, integer or hexadecimal float [default: 1].
    #[arg(long, value_name = "X")]
    pub alpha: Option<String>,
    /// Scalar of the matrix given by --accumulate [default: 1].
    #[arg(long, value_name = "X", requires = "accumulate")]
    pub beta: Option<String>,
    /// A matrix to add to the product; to that of syrk, a symmetric one.
    #[arg(long, value_name = "FILE")]
    pub accumulate: Option<PathBuf>,
    /// Also write when each step ran, on all ranks, as JSON for ui.perfetto.dev or
    /// chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Memory shared by the ranks of a node; heap is that of one process.
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = window())]
    pub window: WindowKind,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// A product larger than memory: finished tiles of the result go to a directory.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Larger than memory")]
pub struct ProductStorage {
    /// Work from file to file within --memory, with finished tiles of the result in this directory; a run that was
    /// ended goes on from them. All files are binary.
    #[arg(long = "storage", value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["freivalds",
        "exact_integers", "alpha", "beta", "accumulate", "trace", "window", "hex"])]
    pub directory: Option<PathBuf>,
    /// What the system's cache is used for: direct (nothing), cached, or drop-behind (each piece is dropped at once).
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
    /// Compute the upper triangle; it is written as the lower triangle of a symmetric file all the same.
    #[arg(long)]
    pub upper: bool,
    /// The triangle of the matrix to add that counts; the other one is empty (all 0), or the same up to rounding
    /// [default: both, which must agree].
    #[arg(long, value_name = "TRIANGLE", requires = "accumulate", value_parser = uplo())]
    pub accumulate_triangle: Option<Uplo>,
    /// Whatever the triangle of the matrix to add holds that is not named, it is ignored.
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
