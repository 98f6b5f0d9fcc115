//! Freivalds' test modulo a random 61-bit prime: is an integer matrix exactly the product of two others?
//!
//! Promise: a right result always passes. Independent of: bounds, floats with fractions. Source: R. Freivalds, "Fast
//! probabilistic algorithms", 1979; docs/CHECKS.md, "Verification".

use super::{ClaimedProduct, Verification, VerifyOptions, fresh_seed, map_indices};
use crate::context::Context;
use crate::error::{Error, ErrorText, Result};
use crate::math::check_field::CheckField;
use crate::math::float::FloatRef;
use crate::matrix::{MatrixView, Symmetric};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Tests whether integers `q` are exactly `P^T P` (or `P P^T`), by one random vector modulo one random prime.
///
/// The test compares `P^T (P x)` with `Q x` modulo a prime drawn from all primes between `2^60` and `2^61`, where `x`
/// is uniform modulo the prime. A wrong `q` passes with probability below `2^-60 + h 2^-60`, where `h` is the number of
/// bits of the largest wrong difference: a difference is 0 modulo the prime for fewer than `h / 60` of more than `2^54`
/// primes, and otherwise only one value of some `x_j` hides it. Shapes and triangle as in
/// [`verify_syrk`](super::verify_syrk). Cost: two reductions and two word products for each entry of `p`.
///
/// ```
/// use sunzi::verify::{VerifyOptions, freivalds_syrk};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let q = Matrix::from_f64s(2, 2, 128, &[5.0, 11.0, 11.0, 25.0])?;
/// assert!(freivalds_syrk(&ctx, &p, &q, &VerifyOptions::new())?.prime.is_some());
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Verification`] names the first row that differs; [`Error::NotInteger`] names the first entry of `p`, then
/// of `q`, that is not an integer; [`Error::ShapeMismatch`].
pub fn freivalds_syrk<'a, 'b>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    q: impl Into<Symmetric<'b>>,
    options: &VerifyOptions,
) -> Result<Verification> {
    run(ctx, &ClaimedProduct::syrk(p.into(), q.into(), options)?, options)
}

/// Tests whether integers `c` are exactly `op(A) op(B)`; as [`freivalds_syrk`].
///
/// ```
/// use sunzi::verify::{VerifyOptions, freivalds_gemm};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let right = Matrix::from_f64s(2, 2, 128, &[7.0, 10.0, 15.0, 22.0])?;
/// let wrong = Matrix::from_f64s(2, 2, 128, &[7.0, 10.0, 15.0, 23.0])?;
/// assert!(freivalds_gemm(&ctx, (&a, &a), &right, &VerifyOptions::new()).is_ok());
/// assert!(freivalds_gemm(&ctx, (&a, &a), &wrong, &VerifyOptions::new()).is_err());
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`freivalds_syrk`].
pub fn freivalds_gemm<'a, 'b, 'c>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    c: impl Into<MatrixView<'c>>,
    options: &VerifyOptions,
) -> Result<Verification> {
    run(ctx, &ClaimedProduct::gemm(operands.0.into(), operands.1.into(), c.into(), options)?, options)
}

fn run(ctx: &Context, problem: &ClaimedProduct<'_>, options: &VerifyOptions) -> Result<Verification> {
    let mut outcome = Verification { seed: options.seed.unwrap_or_else(fresh_seed), ..Verification::default() };
    test(ctx, problem, options, &mut outcome)?;
    Ok(outcome)
}

/// The test itself; fills in the prime.
pub(super) fn test(
    ctx: &Context,
    problem: &ClaimedProduct<'_>,
    options: &VerifyOptions,
    outcome: &mut Verification,
) -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(outcome.seed);
    rng.set_stream(2);
    let field = CheckField::random(&mut rng);
    let prime = field.prime();
    outcome.prime = Some(prime);
    outcome.vector_count = 1;
    let x = (0..problem.right.cols()).map(|_| field.draw(&mut rng)).collect::<Vec<_>>();
    let image = multiply(ctx, &field, problem.right.rows(), &x, |row, col| problem.right.get(row, col))
        .map_err(|(row, col)| not_integer(problem, options, ProductMatrix::Right, row, col))?;
    let left = multiply(ctx, &field, problem.left.cols(), &image, |row, k| problem.left.get(k, row))
        .map_err(|(row, k)| not_integer(problem, options, ProductMatrix::Left, k, row))?;
    let right = multiply(ctx, &field, problem.left.cols(), &x, |row, col| problem.entry(row, col))
        .map_err(|(row, col)| not_integer(problem, options, ProductMatrix::Result, row, col))?;
    match left.iter().zip(&right).position(|(want, got)| want != got) {
        None => Ok(()),
        Some(row) => Err(Error::verification(ErrorText::counted(|base| {
            let (operation, row, seed) = (problem.operation, base.one("row", row), outcome.seed);
            format!("{operation}: {row} of the integer product is wrong (Freivalds modulo {prime}, seed {seed})")
        }))),
    }
}

/// Which matrix an index belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProductMatrix {
    Left,
    Right,
    Result,
}

/// Names a fraction by its place in the matrix the caller gave.
fn not_integer(
    problem: &ClaimedProduct<'_>,
    options: &VerifyOptions,
    part: ProductMatrix,
    row: usize,
    column: usize,
) -> Error {
    use crate::matrix::Op;
    let swapped = match part {
        ProductMatrix::Left if problem.triangle.is_none() => options.op == Op::NoTranspose,
        ProductMatrix::Left => options.op == Op::Transpose,
        ProductMatrix::Right if problem.triangle.is_none() => options.op_b == Op::Transpose,
        ProductMatrix::Right => options.op == Op::Transpose,
        ProductMatrix::Result => false,
    };
    if swapped { Error::NotInteger { row: column, column: row } } else { Error::NotInteger { row, column } }
}

/// `rows` inner products modulo the prime; the place of the first entry that is no integer otherwise.
fn multiply<'a>(
    ctx: &Context,
    field: &CheckField,
    rows: usize,
    x: &[u64],
    entry: impl Fn(usize, usize) -> FloatRef<'a> + Send + Sync,
) -> std::result::Result<Vec<u64>, (usize, usize)> {
    let sums = map_indices(ctx, rows, |row| {
        let mut sum = field.product_sum();
        for (col, &factor) in x.iter().enumerate() {
            let residue = field.residue(entry(row, col)).ok_or((row, col))?;
            sum.add(residue, factor);
        }
        Ok(sum.residue())
    });
    sums.into_iter().collect()
}
