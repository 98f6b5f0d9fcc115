//! What is typed after `cholesky`, `solve`, `inverse`, `trsm` and `verify cholesky`: names, help texts and strings.

use super::{RawEngine, RawOutput};
use clap::Args;
use std::path::PathBuf;

/// Which triangle of a symmetric matrix counts.
#[derive(Args, Debug)]
pub struct RawTriangle {
    /// Read the lower triangle of A only [default: both, which must agree].
    #[arg(long, conflicts_with = "upper")]
    pub lower: bool,
    /// Read the upper triangle of A only; a factor is then U with A = U^T U.
    #[arg(long)]
    pub upper: bool,
}

/// Precision of a result and of its input.
#[derive(Args, Debug)]
pub struct RawPrecision {
    /// Bits of every significand [default: what the first input file states].
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: Option<String>,
    /// Bits to which decimal input is rounded [default: the precision].
    #[arg(long, value_name = "B", allow_hyphen_values = true)]
    pub input_precision: Option<String>,
}

/// A symmetric positive definite matrix and how it is factored.
#[derive(Args, Debug)]
pub struct RawFactor {
    /// The symmetric positive definite matrix A.
    pub a: PathBuf,
    #[command(flatten)]
    pub triangle: RawTriangle,
    #[command(flatten)]
    pub precision: RawPrecision,
    /// Rows of a tile; any number gives the same bits [default: by size and precision].
    #[arg(long, value_name = "NB", allow_hyphen_values = true)]
    pub tile: Option<String>,
    /// Also print the logarithm of the determinant.
    #[arg(long)]
    pub log_det: bool,
    /// Also print an estimate of the condition number in the 1-norm.
    #[arg(long)]
    pub condition: bool,
    /// Also write when each step ran, as JSON for a trace viewer.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub ranks: RawRanks,
    #[command(flatten)]
    pub engine: RawEngine,
}

/// How a factorisation runs on several ranks.
#[derive(Args, Debug)]
#[command(next_help_heading = "On several ranks (mpirun)")]
pub struct RawRanks {
    /// Rows and columns of ranks, such as 2x3 [default: nearly square].
    #[arg(long, value_name = "PxQ")]
    pub grid: Option<String>,
    /// Who sends a finished tile to whom: point_to_point, cs_list, cs_list_ahead, binomial, synchronous [default:
    /// cs_list_ahead].
    #[arg(long, value_name = "WAY")]
    pub delivery: Option<String>,
    /// Which tile is worked on next: fifo, lifo, random, random:SEED, by_ij, greedy, critical_path, panels,
    /// leftmost [default: critical_path].
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// How a rank finds out that it will not be asked any more: lists, all_to_all [default: lists].
    #[arg(long, value_name = "WAY")]
    pub termination: Option<String>,
    /// Tiles of other ranks that a rank has room for [default: within the memory limit].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub slots: Option<String>,
    /// Also draw ready tiles, busy workers and held bytes over time.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

/// `sunzi cholesky`.
#[derive(Args, Debug)]
pub struct RawCholesky {
    #[command(flatten)]
    pub factor: RawFactor,
    #[command(flatten)]
    pub output: RawOutput,
}

/// `sunzi solve`.
#[derive(Args, Debug)]
pub struct RawSolve {
    #[command(flatten)]
    pub factor: RawFactor,
    /// The right-hand sides B.
    pub b: PathBuf,
    /// Factor at so many bits and refine the solution to the full precision.
    #[arg(long, value_name = "BITS", allow_hyphen_values = true, conflicts_with_all = ["log_det", "condition", "tile"])]
    pub refine_from: Option<String>,
    #[command(flatten)]
    pub output: RawOutput,
}

/// `sunzi inverse`.
#[derive(Args, Debug)]
pub struct RawInverse {
    #[command(flatten)]
    pub factor: RawFactor,
    #[command(flatten)]
    pub output: RawOutput,
}

/// `sunzi trsm`.
#[derive(Args, Debug)]
pub struct RawTrsm {
    /// The triangular matrix T.
    pub t: PathBuf,
    /// The right-hand sides B.
    pub b: PathBuf,
    /// left solves op(T) X = alpha B, right solves X op(T) = alpha B.
    #[arg(long, value_name = "SIDE", default_value = "left")]
    pub side: String,
    /// The triangle of T that is read: lower or upper.
    #[arg(long, value_name = "TRIANGLE", default_value = "lower")]
    pub uplo: String,
    /// Use T transposed.
    #[arg(long)]
    pub transpose: bool,
    /// Take the diagonal of T as ones.
    #[arg(long)]
    pub unit: bool,
    /// Factor of B: decimal, integer or hexadecimal float [default: 1].
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub alpha: Option<String>,
    #[command(flatten)]
    pub precision: RawPrecision,
    #[command(flatten)]
    pub engine: RawEngine,
    #[command(flatten)]
    pub output: RawOutput,
}

/// `sunzi verify cholesky`.
#[derive(Args, Debug)]
pub struct RawVerifyCholesky {
    /// The symmetric matrix A.
    pub a: PathBuf,
    /// Its factor L, or U with --upper.
    pub l: PathBuf,
    #[command(flatten)]
    pub triangle: RawTriangle,
    /// Precision of the bound [default: what the factor's file states].
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: Option<String>,
    /// Bits to which decimal input was rounded [default: the precision].
    #[arg(long, value_name = "B", allow_hyphen_values = true)]
    pub input_precision: Option<String>,
    /// Seed of the random test of the product [default: fresh].
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub seed: Option<String>,
    #[command(flatten)]
    pub engine: RawEngine,
}
