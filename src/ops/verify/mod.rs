//! Checks of stored results, independent of the computation. The checks are exact residuals, sampled entries, and
//! Freivalds' test modulo a prime.
//!
//! Promise: a result that meets the bound of [`syrk_with`](crate::syrk_with) or [`gemm_with`](crate::gemm_with) is
//! never rejected; an accepted result exceeds its tested bounds by less than one part in 2^40. No product is rounded:
//! sums of big floats are exact integers, for any exponents. The checks share no code with the products that they
//! check; the check of Cholesky factors uses these products, and tests each of them. Source: docs/CHECKS.md,
//! "Verification".

mod cholesky;
mod exact;
mod lu;
mod product;
mod system;
mod weighted;

pub use cholesky::{FileFactorOptions, verify_cholesky, verify_cholesky_files};
pub use lu::verify_lu;
pub use product::{freivalds_gemm, freivalds_syrk};
pub use system::{verify_inverse, verify_solve, verify_trsm};

use crate::context::Context;
use crate::drive::map_indices;
use crate::error::{Error, ErrorText, IndexBase, Result};
use crate::math::bound::ceil_log2;
use crate::math::float::FloatRef;
use crate::matrix::{EntryIndex, MAXIMUM_PRECISION_BITS, MatrixView, Op, Symmetric, Uplo};
use crate::ops::seed::fresh_seed;
use crate::options::setters;
use exact::{ColumnSize, KEEP_ALL, UpperBound, column_size};
use serde::Serialize;

/// Options of a verification; the first four describe the computation, the others the effort of the check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// SYRK: `NoTranspose` for `P^T P`, `Transpose` for `P P^T`. GEMM: whether `A` was used transposed.
    pub op: Op,
    /// GEMM: whether `B` was used transposed. SYRK ignores it.
    pub op_b: Op,
    /// Cholesky: whether the factor is `L` with `A = L L^T` or `U` with `A = U^T U`. Products ignore it.
    pub uplo: Uplo,
    /// Operands and result are integers and the result must be exact.
    pub exact_integers: bool,
    /// Random vectors of the residual test, at most 65,536; every fourth has entries 1 and -1, the others compensate
    /// the scales of the columns.
    pub vector_count: usize,
    /// Entries that are compared one by one; all entries if the result has no more.
    pub sample_count: usize,
    /// Seed of all random choices; `None` draws a random seed, see [`Verification::seed`].
    pub seed: Option<u64>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions {
            op: Op::NoTranspose,
            op_b: Op::NoTranspose,
            uplo: Uplo::Lower,
            exact_integers: false,
            vector_count: 4,
            sample_count: 256,
            seed: None,
        }
    }
}

setters! { new VerifyOptions {
    op: Op,
    op_b: Op,
    uplo: Uplo,
    exact_integers: bool,
    vector_count: usize,
    sample_count: usize,
    seed: impl Into<Option<u64>>,
} }

impl VerifyOptions {
    /// The outcome before any test, with the seed of all of them.
    fn first_outcome(&self) -> Verification {
        Verification { seed: self.seed.unwrap_or_else(fresh_seed), ..Verification::default() }
    }
}

/// The extent of a successful verification, and the largest errors in units of their bounds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// Random vectors multiplied.
    pub vector_count: usize,
    /// Entries compared one by one.
    pub entry_count: usize,
    /// Largest `|r_i|` in units of its bound; 0 for exact integers.
    pub worst_residual: f64,
    /// Largest error of a compared entry in units of its bound; 0 for exact integers.
    pub worst_entry: f64,
    /// Row and column, counted from 0, of that entry.
    pub worst_place: Option<(usize, usize)>,
    /// The prime of Freivalds' test, if that test was made.
    pub prime: Option<u64>,
    /// Seed with which the random choices can be repeated.
    pub seed: u64,
}

/// Checks that `q` is `P^T P` (or `P P^T`) to `precision_bits` bits.
///
/// There are three tests, and all must pass. (1) No entry exceeds the Cauchy-Schwarz bound. (2) For random vectors `x`
/// with `x_j = +-2^(s_j)`, the residual `r = P^T (P x) - Q x`, without any rounding, has
/// `|r_i| <= 2^(1-b) ||p_i|| sum_j ||p_j|| |x_j|`: every fourth vector has `s_j = 0`, the others `||p_j|| |x_j|` in
/// (1/4, 1]. (3) Sampled entries have `|Q_ij - (P^T P)_ij| <= 2^(1-b) ||p_i|| ||p_j||`, decided in exact integer
/// arithmetic. With `exact_integers`, (2) is Freivalds' test modulo a random prime ([`freivalds_syrk`]) and (3)
/// requires equality.
///
/// An error in an entry that is not compared is found by (2): always if it exceeds `8 N` times its bound and the rest
/// of its row is right, and with probability at least `1 - 2^-v` if it exceeds `4 N` times its bound, where `v` is the
/// number of scaled vectors (3 by default). A smaller error in such an entry may pass.
///
/// Norms are rounded up, by less than one part in 2^40 for up to a million rows. If the exponents of one column spread
/// over more than 2^20 bits, bits that cannot matter are cut off, and their sum, below `2^-60` of the bound, is added
/// to the bound. Shapes: `p` is `K x N` (`N x K` for `Transpose`), `q` is `N x N`, given as a plain matrix, a symmetric
/// matrix, or one triangle, see [`Symmetric`]. Cost: `K N` multiplications of big integers for each vector and `K` for
/// each compared entry, on the context's threads.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_syrk};
/// use sunzi::{Context, Error, Matrix};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(3, 2, 128, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let q = sunzi::syrk(&ctx, &p, 128)?;
/// assert_eq!(verify_syrk(&ctx, &p, &q, 128, &VerifyOptions::new())?.entry_count, 3); // those of one triangle
/// let wrong = Matrix::from_f64s(2, 2, 128, &[14.0, 32.0, 32.0, 76.0])?;
/// assert!(matches!(verify_syrk(&ctx, &p, &wrong, 128, &VerifyOptions::new()), Err(Error::Verification(..))));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::Verification`] names the worst entry or row, its error and the bound, or reports that `q` is not symmetric;
/// [`Error::ShapeMismatch`];
/// [`Error::Precision`] for fewer than 2 bits; [`Error::NotInteger`] in exact mode.
pub fn verify_syrk<'a, 'b>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    q: impl Into<Symmetric<'b>>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    let problem = ClaimedProduct::syrk(p.into(), q.into(), options)?;
    verify(ctx, &problem, precision_bits, options)
}

/// Checks that `c` is `op(A) op(B)` to `precision_bits` bits, where `operands` is `(A, B)`.
///
/// As [`verify_syrk`], with the norms of the rows of `op(A)` and of the columns of `op(B)`.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_gemm};
/// use sunzi::{Context, GemmOptions, Matrix, Op};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let c = sunzi::gemm_with(&ctx, &a, &b, 128, &GemmOptions::new().op_a(Op::Transpose))?.result;
/// let checked = verify_gemm(&ctx, (&a, &b), &c, 128, &VerifyOptions::new().op(Op::Transpose))?;
/// assert!(checked.worst_entry <= 1.0); // in units of the bound
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`verify_syrk`].
pub fn verify_gemm<'a, 'b, 'c>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    c: impl Into<MatrixView<'c>>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    let problem = ClaimedProduct::gemm(operands.0.into(), operands.1.into(), c.into(), options)?;
    verify(ctx, &problem, precision_bits, options)
}

/// Checks that `q` is `P^T diag(d) P` (or `P diag(d) P^T`) to `precision_bits` bits.
///
/// As [`verify_syrk`], with `n_i n_j` in place of the product of the norms: `n_i` lies between `r_i` and `sqrt(2) r_i`,
/// where `r_i^2 = (P^T |D| P)_ii`. A result that meets the bound of [`weighted_gram_with`](crate::weighted_gram_with)
/// is never rejected; an accepted result exceeds its tested bounds by at most a factor of 2.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_weighted_gram};
/// use sunzi::{Context, Error, Matrix};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let d = Matrix::from_f64s(2, 1, 128, &[10.0, -1.0])?;
/// let q = sunzi::weighted_gram(&ctx, &p, &d, 128)?;
/// assert!(verify_weighted_gram(&ctx, &p, &d, &q, 128, &VerifyOptions::new())?.worst_entry <= 1.0);
/// let wrong = Matrix::from_f64s(2, 2, 128, &[6.0, 22.0, 22.0, 75.0])?;
/// let refused = verify_weighted_gram(&ctx, &p, &d, &wrong, 128, &VerifyOptions::new());
/// assert!(matches!(refused, Err(Error::Verification(..))));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`verify_syrk`].
pub fn verify_weighted_gram<'a, 'd, 'b>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    d: impl Into<MatrixView<'d>>,
    q: impl Into<Symmetric<'b>>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    let (operation, p, q) = ("verify weighted_gram", p.into(), q.into());
    let p = if options.op == Op::NoTranspose { p } else { p.transposed() };
    let operands = weighted::operands(operation, p, d.into(), options.exact_integers)?;
    let uplo = q.named().unwrap_or_default();
    let result = q.triangle_view(uplo, operation).map_err(|error| asymmetric_result(operation, error))?;
    let (left, right, triangle) = (operands[0].view(), operands[1].view(), Some(uplo));
    let problem = ClaimedProduct { operation, left, right, result, triangle, claim: weighted::CLAIM }.checked()?;
    match options.exact_integers {
        true => verify(ctx, &problem, precision_bits, options),
        false => {
            check_bits(precision_bits)?;
            judge(ctx, &problem, &weighted::bounds(ctx, &problem, precision_bits), options)
        }
    }
}

fn verify(
    ctx: &Context,
    problem: &ClaimedProduct<'_>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    check_bits(precision_bits)?;
    if options.exact_integers {
        let mut outcome = options.first_outcome();
        product::test_modulo_prime(ctx, problem, options, &mut outcome)?;
        return product::compare_exactly(ctx, problem, options, outcome);
    }
    judge(ctx, problem, &Bounds::new(ctx, problem, precision_bits), options)
}

/// Refuses fewer bits than a matrix has.
fn check_bits(precision_bits: u32) -> Result<()> {
    if precision_bits < 2 { Err(Error::precision(precision_bits, MAXIMUM_PRECISION_BITS)) } else { Ok(()) }
}

/// The tests of a rounded result: its sizes, random vectors, sampled entries.
fn judge(
    ctx: &Context,
    problem: &ClaimedProduct<'_>,
    bounds: &Bounds,
    options: &VerifyOptions,
) -> Result<Verification> {
    let mut outcome = options.first_outcome();
    product::check_sizes(problem, bounds)?;
    product::test_vectors(ctx, problem, bounds, options, &mut outcome)?;
    product::compare(ctx, problem, bounds, options, outcome)
}

/// The claim to be checked: `result` is the product `left^T right`.
pub(crate) struct ClaimedProduct<'a> {
    operation: &'static str,
    /// `K x M`.
    left: MatrixView<'a>,
    /// `K x N`.
    right: MatrixView<'a>,
    /// `M x N`.
    result: MatrixView<'a>,
    /// The only triangle of `result` that is read, where the result is symmetric.
    triangle: Option<Uplo>,
    claim: Claim,
}

/// The claim about the errors of a result, and their names.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    /// The bound is `2^(power - b)` times the norms.
    power: i64,
    /// Whether the size of the result's own entry belongs to the norms.
    with_result: bool,
    /// The quantity whose error is named.
    subject: &'static str,
    /// The bound of an entry in words, and that of a row.
    unit: &'static str,
    row_unit: &'static str,
    /// Whether the caller's matrices are the transposed ones.
    transposed: bool,
}

impl Claim {
    /// A product, rounded once.
    const PRODUCT: Claim = Claim {
        power: 1,
        with_result: false,
        subject: "the entry",
        unit: "2^(1-b) ||p_i|| ||p_j||",
        row_unit: "2^(1-b) ||p_i|| sum_j ||p_j|| |x_j|",
        transposed: false,
    };

    /// The caller's row and column of an entry.
    fn place(&self, place: EntryIndex) -> EntryIndex {
        if self.transposed { place.transposed() } else { place }
    }
}

/// A result that has to be symmetric and is not.
fn asymmetric_result(operation: &'static str, error: Error) -> Error {
    let Error::NotSymmetric { .. } = error else { return error };
    let text = error.text();
    Error::verification(ErrorText::counted(|base| format!("{operation}: {}", text.in_base(base))))
}

impl<'a> ClaimedProduct<'a> {
    fn syrk(p: MatrixView<'a>, q: Symmetric<'a>, options: &VerifyOptions) -> Result<ClaimedProduct<'a>> {
        let operation = "verify syrk";
        let p = if options.op == Op::NoTranspose { p } else { p.transposed() };
        let uplo = q.named().unwrap_or_default();
        let result = q.triangle_view(uplo, operation).map_err(|error| asymmetric_result(operation, error))?;
        ClaimedProduct { operation, left: p, right: p, result, triangle: Some(uplo), claim: Claim::PRODUCT }.checked()
    }

    fn gemm(
        a: MatrixView<'a>,
        b: MatrixView<'a>,
        c: MatrixView<'a>,
        options: &VerifyOptions,
    ) -> Result<ClaimedProduct<'a>> {
        let left = if options.op == Op::NoTranspose { a.transposed() } else { a };
        let right = if options.op_b == Op::NoTranspose { b } else { b.transposed() };
        ClaimedProduct { operation: "verify gemm", left, right, result: c, triangle: None, claim: Claim::PRODUCT }
            .checked()
    }

    fn checked(self) -> Result<ClaimedProduct<'a>> {
        let mismatch = |left: (usize, usize), right: (usize, usize)| {
            Error::shape_mismatch(self.operation, (left.0, left.1), (right.0, right.1))
        };
        if self.left.rows() != self.right.rows() {
            let left = (self.left.cols(), self.left.rows());
            return Err(mismatch(left, (self.right.rows(), self.right.cols())));
        }
        if (self.result.rows(), self.result.cols()) != (self.left.cols(), self.right.cols()) {
            let product = (self.left.cols(), self.right.cols());
            return Err(mismatch(product, (self.result.rows(), self.result.cols())));
        }
        Ok(self)
    }

    /// The stored entry `(row, col)`, or its mirror image where that is the stored one.
    fn entry(&self, row: usize, col: usize) -> FloatRef<'a> {
        match self.triangle {
            Some(Uplo::Lower) if row < col => self.result.get(col, row),
            Some(Uplo::Upper) if row > col => self.result.get(col, row),
            _ => self.result.get(row, col),
        }
    }

    /// Names an entry the way its owner stored it.
    fn name(&self, row: usize, col: usize, base: IndexBase) -> String {
        let mirrored = match self.triangle {
            Some(Uplo::Lower) => row < col,
            Some(Uplo::Upper) => row > col,
            None => false,
        };
        let place = EntryIndex { row, col };
        let EntryIndex { row, col } = self.claim.place(if mirrored { place.transposed() } else { place });
        format!("{}: {} at {}", self.operation, self.claim.subject, base.place(row, col))
    }
}

/// Norms of all columns, and the bits that may be cut off where exponents spread too far to be kept whole.
pub(crate) struct Bounds {
    left: Vec<ColumnSize>,
    right: Vec<ColumnSize>,
    precision_bits: u32,
    /// As [`Claim::power`].
    power: i64,
    /// Bits below the largest exponent that are kept where a column is cut.
    kept_bits: i64,
}

/// Widest spread of exponents, in bits, that is kept whole.
const WIDEST_SPREAD_BITS: i64 = 1 << 20;

impl Bounds {
    fn new(ctx: &Context, problem: &ClaimedProduct<'_>, precision_bits: u32) -> Bounds {
        let sizes = |view: MatrixView<'_>| map_indices(ctx, view.cols(), |col| column_size(view, col));
        let left = sizes(problem.left);
        let right = if problem.triangle.is_some() { left.clone() } else { sizes(problem.right) };
        Bounds::with_sizes(problem, left, right, precision_bits)
    }

    /// Bounds by other norms, which are at least `2^-4` times the largest entries of their columns.
    fn with_sizes(
        problem: &ClaimedProduct<'_>,
        left: Vec<ColumnSize>,
        right: Vec<ColumnSize>,
        precision_bits: u32,
    ) -> Bounds {
        let terms = ceil_log2(problem.left.rows()) + ceil_log2(problem.right.cols());
        let kept_bits = i64::from(precision_bits) + i64::from(terms) + 66;
        Bounds { left, right, precision_bits, power: problem.claim.power, kept_bits }
    }

    /// Floor for numbers with exponents from `low` to `top`: [`KEEP_ALL`] unless they spread too far.
    ///
    /// With floors `kept_bits` below the largest exponents `E` and `F` of a column and of a vector of `N` terms, a sum
    /// of `K N` products moves by less than `2 K N 2^(E + F - kept_bits) = 2^-65 * 2^(E + F - b)`, and the bound
    /// is at least `2^(1-b) 2^(E-1) 2^(F-1)`: less than `2^-62` of it is lost.
    fn floor(&self, low: i64, top: i64) -> i64 {
        if top - low > WIDEST_SPREAD_BITS { top - self.kept_bits } else { KEEP_ALL }
    }

    /// `size * 2^(power - b)`, plus `2^-60` of it for the terms that were cut.
    fn allowance(&self, size: UpperBound) -> UpperBound {
        let bound = size.times(UpperBound::power_of_two(self.power - i64::from(self.precision_bits)));
        bound.plus(bound.times(UpperBound::power_of_two(-60)))
    }
}

#[cfg(test)]
mod tests;
