//! Requests to the ranks of a communicator, and their answers.
#![cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "nothing asks without MPI"))]

use super::factor::Factor;
use sunzi::{Matrix, MatrixView};

/// This rank's part of a matrix that is read, and the numbers of its distribution, in the order of `sunzi_dist_matrix`.
#[derive(Clone, Copy)]
pub struct RankPart<'a> {
    pub local: MatrixView<'a>,
    pub numbers: [i64; 11],
}

/// This rank's part of a matrix that is written to.
pub struct Target<'a> {
    pub local: &'a mut Matrix,
    pub numbers: [i64; 11],
}

/// The scalars of a product, matrices of one entry; `None` is 1, and 0 for beta.
#[derive(Clone, Copy)]
pub struct ScalarTerms<'a> {
    pub alpha: Option<&'a Matrix>,
    pub beta: Option<&'a Matrix>,
}

/// One call, its choices in the numbers of the C library.
pub enum Verb<'a> {
    /// `C := alpha op(A) op(A)^T + beta C`.
    Syrk { uplo: i32, trans: i32, terms: ScalarTerms<'a>, a: RankPart<'a>, c: Target<'a> },
    /// `C := alpha op(A) op(B) + beta C`.
    Gemm { trans: [i32; 2], terms: ScalarTerms<'a>, a: RankPart<'a>, b: RankPart<'a>, c: Target<'a> },
    /// `B := alpha op(T)^-1 B`, or from the right: side, triangle, `op`, diagonal.
    Trsm { kind: [i32; 4], alpha: Option<&'a Matrix>, t: RankPart<'a>, b: Target<'a> },
    /// `B := A^-1 B`.
    Solve { uplo: i32, a: RankPart<'a>, b: Target<'a> },
    /// The same with a factor that is kept.
    FactorSolve { factor: &'a Factor, b: Target<'a> },
    /// `X := A^-1` with a factor that is kept.
    Inverse { factor: &'a Factor, x: Target<'a> },
    /// The logarithm of the determinant, a matrix of one entry.
    LogDet { factor: &'a Factor, result: &'a mut Matrix },
    /// The factor in the lower triangle of `a`.
    Lower { factor: &'a Factor, a: Target<'a> },
}

/// A matrix that a plan is made for: the rows and columns of this rank's part, and the numbers of its distribution.
#[derive(Clone, Copy)]
pub struct Planned {
    pub shape: [i64; 2],
    pub numbers: [i64; 11],
}

/// The call that a plan is made for, its choices in the numbers of the C library.
#[derive(Clone, Copy)]
pub enum PlanOf {
    /// `op`, A and C.
    Syrk(i32, [Planned; 2]),
    /// `op` of A and of B; A, B and C.
    Gemm([i32; 2], [Planned; 3]),
    /// The triangle; A.
    Cholesky(i32, Planned),
    /// The side and the diagonal; T and B.
    Trsm([i32; 2], [Planned; 2]),
    /// The triangle; A, `None` for a factor that is kept, and B.
    Solve(i32, Option<Planned>, Planned),
}

/// Choices of a context on ranks.
pub struct RankOptions {
    pub threads: i64,
    /// 0 sets no limit.
    pub memory_bytes: u64,
    pub kernel: Option<String>,
    /// Names with commas between them.
    pub devices: Option<String>,
    pub entrywise: bool,
    pub freivalds: bool,
}

/// Why a call failed: the status of the C library, its message, and a place or -1.
pub struct Failed {
    pub status: i32,
    pub message: String,
    pub place: [i64; 2],
}
