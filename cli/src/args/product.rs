//! Options of `syrk` and `gemm`, and of their verification.

use super::factor::VerifyCholesky;
use super::values::{accuracy, precision, threads, uplo, window};
use super::{EngineArgs, Output, Precision};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use sunzi::comm::window::WindowKind;
use sunzi::{Accuracy, Result, Uplo};
use sunzi_lab::units::parse_count;

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
    /// What is promised of each entry: an error beside the norms of its row and column, or beside its own terms.
    #[arg(long, value_name = "PROMISE", default_value = "norm", value_parser = accuracy())]
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
    /// Also write when each step ran, on all ranks, as JSON for a trace viewer.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Memory shared by the ranks of a node; heap is that of one process.
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = window())]
    pub window: WindowKind,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// `sunzi syrk`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi syrk P.mtx -o Q.mtx --precision 512 --self-check --memory 2G")]
pub struct Syrk {
    /// The matrix P.
    pub p: PathBuf,
    /// Compute P P^T instead of P^T P.
    #[arg(long)]
    pub transpose: bool,
    /// Compute the upper triangle; it is written as the lower triangle of a symmetric file all the same.
    #[arg(long)]
    pub upper: bool,
    /// The triangle of the matrix to add that is read [default: both, which must agree].
    #[arg(long, value_name = "TRIANGLE", requires = "accumulate", value_parser = uplo())]
    pub accumulate_triangle: Option<Uplo>,
    #[command(flatten)]
    pub choices: ProductArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `sunzi gemm`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi gemm A.mtx B.mtx -o C.mtx --transpose-a --alpha -2.5")]
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
}

/// `sunzi verify`.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true, after_help = "Example:\n  sunzi verify syrk P.mtx Q.mtx")]
pub struct Verify {
    /// What is verified.
    #[command(subcommand)]
    pub operation: VerifyOperation,
}

/// What is verified.
#[derive(Subcommand, Debug)]
pub enum VerifyOperation {
    /// Q = P^T P.
    Syrk(VerifySyrk),
    /// C = A B.
    Gemm(VerifyGemm),
    /// A = L L^T.
    Cholesky(VerifyCholesky),
}

impl Verify {
    /// Checks precision and kernel together.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`].
    pub fn check(&self) -> Result<()> {
        match &self.operation {
            VerifyOperation::Cholesky(args) => args.precision.check(&args.engine),
            _ => Ok(()),
        }
    }
}

/// `sunzi verify syrk`.
#[derive(Args, Clone, Debug)]
pub struct VerifySyrk {
    /// The matrix P.
    pub p: PathBuf,
    /// The result Q.
    pub q: PathBuf,
    /// The result is P P^T.
    #[arg(long)]
    pub transpose: bool,
    #[command(flatten)]
    pub check: Check,
}

/// `sunzi verify gemm`.
#[derive(Args, Clone, Debug)]
pub struct VerifyGemm {
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
    pub check: Check,
}

/// Choices of a verification.
#[derive(Args, Clone, Debug)]
pub struct Check {
    /// Precision of the bound [default: what the result's file states].
    #[arg(long = "precision", short = 'p', value_name = "B", value_parser = precision)]
    pub bits: Option<u32>,
    /// Bits to which decimal input was rounded [default: the precision].
    #[arg(long = "input-precision", value_name = "B", value_parser = precision)]
    pub input_bits: Option<u32>,
    /// The result is an exact product of integers.
    #[arg(long)]
    pub exact_integers: bool,
    /// Seed of the random signs and sampled entries [default: fresh].
    #[arg(long, value_name = "S", value_parser = parse_count)]
    pub seed: Option<u64>,
    /// Worker threads [default: all processors].
    #[arg(long, value_name = "T", value_parser = threads)]
    pub threads: Option<usize>,
}
