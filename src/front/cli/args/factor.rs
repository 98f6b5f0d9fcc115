//! What is typed after `cholesky` and `verify cholesky`: names, help texts and strings.

use super::{RawEngine, RawOutput};
use clap::Args;
use std::path::PathBuf;

/// Which triangle of a symmetric matrix counts.
#[derive(Args, Debug)]
pub struct RawTriangle {
    /// Read the lower triangle only [default: both, which must agree].
    #[arg(long, conflicts_with = "upper")]
    pub lower: bool,
    /// Read the upper triangle only; the factor is U with A = U^T U.
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
    /// Also write when each step ran, as JSON for a trace viewer.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub engine: RawEngine,
}

/// `sunzi cholesky`.
#[derive(Args, Debug)]
pub struct RawCholesky {
    #[command(flatten)]
    pub factor: RawFactor,
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
