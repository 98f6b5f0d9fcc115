//! Options of `verify`.

use super::factor::{Triangle, TriangularSystem};
use super::values::{precision, threads};
use super::{EngineArgs, PLAIN, Precision};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use sunzi::Result;
use sunzi_session::units::parse_count;

/// The end of `sunzi verify --help`.
const EXAMPLES: &str = "Examples:\n  sunzi verify syrk P.mtx Q.mtx\n  sunzi verify cholesky A.mtx L.mtx\n  \
    sunzi verify lu A.mtx L.mtx U.mtx P.csv\n  sunzi verify solve A.mtx B.mtx X.mtx\n  \
    sunzi verify trsm L.mtx B.mtx X.mtx --transpose\n  sunzi verify inverse A.mtx X.mtx\n  \
    sunzi verify sdp theta1.dat-s out/certificate\n\nThe exit code is 5 if the bound does not hold.";

/// `sunzi verify`.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Verify {
    /// The result to verify.
    #[command(subcommand)]
    pub operation: VerifyOperation,
}

/// The result to verify.
#[derive(Subcommand, Debug)]
pub enum VerifyOperation {
    /// A product Q = P^T P.
    Syrk(VerifySyrk),
    /// A product C = A B.
    Gemm(VerifyGemm),
    /// A Cholesky factor L with A = L L^T; every entry of the residual is checked.
    Cholesky(VerifyCholesky),
    /// LU factors of A with P A = L U.
    Lu(VerifyLu),
    /// A solution X of A X = B for a symmetric positive definite A.
    Solve(VerifySolve),
    /// A solution X of op(T) X = alpha B or X op(T) = alpha B for a triangular T.
    Trsm(VerifyTrsm),
    /// An inverse X of a symmetric positive definite A.
    Inverse(VerifyInverse),
    /// A certificate: bounds of the optimal value of a semidefinite program, checked in exact arithmetic.
    Sdp(VerifySdp),
}

impl Verify {
    /// Checks precision and kernel together.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`].
    pub fn check(&self) -> Result<()> {
        match &self.operation {
            VerifyOperation::Syrk(_) | VerifyOperation::Gemm(_) | VerifyOperation::Sdp(_) => Ok(()),
            VerifyOperation::Cholesky(VerifyCholesky { choices, .. })
            | VerifyOperation::Lu(VerifyLu { choices, .. })
            | VerifyOperation::Solve(VerifySolve { choices, .. })
            | VerifyOperation::Trsm(VerifyTrsm { choices, .. })
            | VerifyOperation::Inverse(VerifyInverse { choices, .. }) => choices.precision.check(&choices.engine),
        }
    }
}

/// `sunzi verify syrk`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi verify syrk P.mtx Q.mtx --seed 7")]
pub struct VerifySyrk {
    /// The matrix P.
    pub p: PathBuf,
    /// The result Q.
    pub q: PathBuf,
    /// Check P P^T instead of P^T P.
    #[arg(long)]
    pub transpose: bool,
    /// Weights d: the result is P^T diag(d) P or, with --transpose, P diag(d) P^T.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    #[command(flatten)]
    pub check: Check,
}

/// `sunzi verify gemm`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi verify gemm A.mtx B.mtx C.mtx --transpose-a")]
pub struct VerifyGemm {
    /// The matrix A.
    pub a: PathBuf,
    /// The matrix B.
    pub b: PathBuf,
    /// The result C.
    pub c: PathBuf,
    /// Use A transposed.
    #[arg(long)]
    pub transpose_a: bool,
    /// Use B transposed.
    #[arg(long)]
    pub transpose_b: bool,
    #[command(flatten)]
    pub check: Check,
}

/// Choices of a verification.
#[derive(Args, Clone, Debug)]
pub struct Check {
    /// Precision B for which the result is checked, in bits: its error must be within the bound for B bits [default: as
    /// stated in the result's file].
    #[arg(long = "precision", short = 'p', value_name = "B", value_parser = precision)]
    pub bits: Option<u32>,
    /// Bits to which decimal input was rounded [default: the precision].
    #[arg(long = "input-precision", value_name = "B", value_parser = precision)]
    pub input_bits: Option<u32>,
    /// Check that the result is the exact product of matrices of integers.
    #[arg(long)]
    pub exact_integers: bool,
    /// Seed of the random signs and sampled entries [default: random].
    #[arg(long, value_name = "S", value_parser = parse_count)]
    pub seed: Option<u64>,
    /// Worker threads [default: all processors].
    #[arg(long, value_name = "T", value_parser = threads)]
    pub threads: Option<usize>,
}

/// Choices of the verification of a factor or a solution.
#[derive(Args, Clone, Debug)]
pub struct SystemCheck {
    #[command(flatten)]
    pub precision: Precision,
    /// Seed of the random tests [default: random].
    #[arg(long, value_name = "S", value_parser = parse_count, help_heading = PLAIN)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// `sunzi verify cholesky`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi verify cholesky A.mtx L.mtx\n  sunzi verify cholesky A.mtx U.mtx --upper")]
pub struct VerifyCholesky {
    /// The symmetric matrix A.
    pub a: PathBuf,
    /// Its factor L, or U with --upper.
    pub l: PathBuf,
    #[command(flatten)]
    pub triangle: Triangle,
    #[command(flatten)]
    pub choices: SystemCheck,
}

/// `sunzi verify lu`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi verify lu A.mtx L.mtx U.mtx P.csv\n\nThe bound of entry (i, j) of the \
                        residual P A - L U is 2^(2-b) ||l_i|| ||u_j||, where l_i is row i of L and u_j column j of U.")]
pub struct VerifyLu {
    /// The matrix A.
    pub a: PathBuf,
    /// The factor L, unit lower triangular.
    pub l: PathBuf,
    /// The factor U, upper triangular.
    pub u: PathBuf,
    /// The order of the rows, as `sunzi lu --row-order` writes it.
    pub p: PathBuf,
    #[command(flatten)]
    pub choices: SystemCheck,
}

/// `sunzi verify solve`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  sunzi verify solve A.mtx B.mtx X.mtx\n\nThe bound of entry (i, j) of the residual \
                        B - A X is 2^(4-b) (sqrt(a_ii) sum_k sqrt(a_kk) |x_kj| + |b_ij|)."
)]
pub struct VerifySolve {
    /// The symmetric matrix A.
    pub a: PathBuf,
    /// The right-hand sides B.
    pub b: PathBuf,
    /// The solution X.
    pub x: PathBuf,
    #[command(flatten)]
    pub triangle: Triangle,
    #[command(flatten)]
    pub choices: SystemCheck,
}

/// `sunzi verify trsm`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi verify trsm L.mtx B.mtx X.mtx --transpose\n\nThe bound of entry (i, j) of \
                        the residual is 2^(1-b) (||t_i|| ||x_j|| + |alpha b_ij|), where t_i is row i of op(T) and x_j \
                        column j of X.")]
pub struct VerifyTrsm {
    /// The triangular matrix T.
    pub t: PathBuf,
    /// The right-hand sides B.
    pub b: PathBuf,
    /// The solution X.
    pub x: PathBuf,
    #[command(flatten)]
    pub system: TriangularSystem,
    #[command(flatten)]
    pub choices: SystemCheck,
}

/// `sunzi verify inverse`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  sunzi verify inverse A.mtx X.mtx\n\nThe bound of entry (i, j) of the residual A X \
                        - I is 2^(4-b) sqrt(a_ii x_jj) sum_k sqrt(a_kk x_kk)."
)]
pub struct VerifyInverse {
    /// The symmetric matrix A.
    pub a: PathBuf,
    /// Its inverse X.
    pub x: PathBuf,
    #[command(flatten)]
    pub triangle: Triangle,
    #[command(flatten)]
    pub choices: SystemCheck,
}

/// `sunzi verify sdp`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  sunzi verify sdp theta1.dat-s out/certificate\n\nThe decimals of the program are \
                        exact rational numbers, and every step of the proof is checked in integers. A certificate is \
                        valid only for the files for which it was made, byte by byte.")]
pub struct VerifySdp {
    /// Semidefinite program: SDPB's blocks in a directory or a zip archive, a polynomial program (.json, .m, .nsv), or
    /// a file in SDPA's sparse format (.dat-s).
    pub input: PathBuf,
    /// Certificate written by `sunzi sdp --certify`.
    pub certificate: PathBuf,
    /// Worker threads [default: all processors].
    #[arg(long, value_name = "T", value_parser = threads)]
    pub threads: Option<usize>,
}
