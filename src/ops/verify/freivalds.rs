//! Freivalds' test modulo a random 61-bit prime: is an integer matrix exactly the product of two others?
//!
//! Promise: a right result always passes. Does not know: bounds, floats with fractions.
//! Source: R. Freivalds, "Fast probabilistic algorithms", 1979; docs/ALGORITHM.md, "Verification".

use super::{Problem, Verification, VerifyOptions, fresh_seed, map_indices};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::float::FloatRef;
use crate::math::modulus::Modulus;
use crate::math::prime::is_prime;
use crate::matrix::MatrixView;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Whether integers `q` are exactly `P^T P` (or `P P^T`), by one random vector modulo one random prime.
///
/// Tests `P^T (P x) = Q x` modulo a prime drawn from all primes between `2^60` and `2^61`, `x` uniform modulo it.
/// A wrong `q` passes with probability below `2^-60 + h 2^-60`, `h` the bits of the largest wrong difference: a
/// difference is 0 modulo the prime for fewer than `h / 60` of more than `2^54` primes, and otherwise one value of
/// some `x_j` hides it.
/// Shapes and triangle as in [`verify_syrk`](super::verify_syrk). Cost: two reductions and two word products for
/// each entry of `p`.
///
/// # Errors
/// [`Error::Verification`] names the first row that differs; [`Error::NotInteger`] the first fraction in `p`, then in
/// `q`; [`Error::ShapeMismatch`].
pub fn freivalds_syrk<'a, 'b>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    q: impl Into<MatrixView<'b>>,
    options: &VerifyOptions,
) -> Result<Verification> {
    run(ctx, &Problem::syrk(p.into(), q.into(), options)?, options)
}

/// Whether integers `c` are exactly `op(A) op(B)`; as [`freivalds_syrk`].
///
/// # Errors
/// As [`freivalds_syrk`].
pub fn freivalds_gemm<'a, 'b, 'c>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    c: impl Into<MatrixView<'c>>,
    options: &VerifyOptions,
) -> Result<Verification> {
    run(ctx, &Problem::gemm((operands.0.into(), operands.1.into()), c.into(), options)?, options)
}

fn run(ctx: &Context, problem: &Problem<'_>, options: &VerifyOptions) -> Result<Verification> {
    let mut outcome = Verification { seed: options.seed.unwrap_or_else(fresh_seed), ..Verification::default() };
    test(ctx, problem, options, &mut outcome)?;
    Ok(outcome)
}

/// The test itself; fills in the prime.
pub(super) fn test(
    ctx: &Context,
    problem: &Problem<'_>,
    options: &VerifyOptions,
    outcome: &mut Verification,
) -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(outcome.seed);
    rng.set_stream(2);
    let field = Field::new(random_prime(&mut rng));
    let prime = field.modulus.prime();
    outcome.prime = Some(prime);
    outcome.vector_count = 1;
    let x = (0..problem.right.cols())
        .map(|_| ((u128::from(rng.next_u64()) * u128::from(prime)) >> 64) as u64)
        .collect::<Vec<_>>();
    let image = multiply(ctx, &field, problem.right.rows(), &x, |row, col| problem.right.get(row, col))
        .map_err(|(row, col)| not_integer(problem, options, Part::Right, row, col))?;
    let left = multiply(ctx, &field, problem.left.cols(), &image, |row, k| problem.left.get(k, row))
        .map_err(|(row, k)| not_integer(problem, options, Part::Left, k, row))?;
    let right = multiply(ctx, &field, problem.left.cols(), &x, |row, col| problem.entry(row, col))
        .map_err(|(row, col)| not_integer(problem, options, Part::Result, row, col))?;
    match left.iter().zip(&right).position(|(want, got)| want != got) {
        None => Ok(()),
        Some(row) => Err(Error::Verification(format!(
            "{}: row {row} (from 0) of the integer product is wrong (Freivalds modulo {prime}, seed {})",
            problem.operation, outcome.seed
        ))),
    }
}

/// Which matrix an index belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Left,
    Right,
    Result,
}

/// Names a fraction by its place in the matrix the caller gave.
fn not_integer(problem: &Problem<'_>, options: &VerifyOptions, part: Part, row: usize, column: usize) -> Error {
    use crate::matrix::Op;
    let swapped = match part {
        Part::Left if problem.triangle.is_none() => options.op == Op::NoTranspose,
        Part::Left => options.op == Op::Transpose,
        Part::Right if problem.triangle.is_none() => options.op_b == Op::Transpose,
        Part::Right => options.op == Op::Transpose,
        Part::Result => false,
    };
    if swapped { Error::NotInteger { row: column, column: row } } else { Error::NotInteger { row, column } }
}

/// A random prime between `2^60` and `2^61`; about 1 in 21 odd numbers is one.
fn random_prime(rng: &mut ChaCha8Rng) -> u64 {
    loop {
        let candidate = (1 << 60) | (rng.next_u64() >> 4) | 1;
        if is_prime(candidate) {
            return candidate;
        }
    }
}

/// `rows` inner products modulo the prime; the place of the first entry that is no integer otherwise.
fn multiply<'a>(
    ctx: &Context,
    field: &Field,
    rows: usize,
    x: &[u64],
    entry: impl Fn(usize, usize) -> FloatRef<'a> + Send + Sync,
) -> std::result::Result<Vec<u64>, (usize, usize)> {
    let sums = map_indices(ctx, rows, |row| {
        let mut sum = 0u128;
        for (col, &factor) in x.iter().enumerate() {
            let residue = field.residue(entry(row, col)).ok_or((row, col))?;
            // Residues are below 2^61: a product is below 2^122, so that the sum never passes 2^123.
            sum += u128::from(residue) * u128::from(factor);
            if sum >> 122 != 0 {
                sum %= u128::from(field.modulus.prime());
            }
        }
        Ok((sum % u128::from(field.modulus.prime())) as u64)
    });
    sums.into_iter().collect()
}

/// One prime with what makes the residue of a big float cheap.
struct Field {
    modulus: Modulus,
    /// `floor(2^64 / p)`.
    reciprocal: u64,
    /// `2^64 mod p`.
    radix: u64,
    /// `floor(radix * 2^64 / p)`.
    radix_quotient: u64,
    /// `2^e mod p` for `e` from -63 on.
    powers: Vec<u64>,
}

/// Exponents that [`Field`] keeps the powers of two for.
const KEPT_POWERS: usize = 4096;

impl Field {
    fn new(prime: u64) -> Field {
        let modulus = Modulus::new(prime);
        let divide = |high: u64| ((u128::from(high) << 64) / u128::from(prime)) as u64;
        let radix = ((1u128 << 64) % u128::from(prime)) as u64;
        let mut power = modulus.power(modulus.inverse(2), 63);
        let mut powers = Vec::with_capacity(KEPT_POWERS);
        for _ in 0..KEPT_POWERS {
            powers.push(power);
            power = modulus.add(power, power);
        }
        Field { modulus, reciprocal: divide(1), radix, radix_quotient: divide(radix), powers }
    }

    /// The least residue of an integer, `None` where the number has a fraction.
    fn residue(&self, value: FloatRef<'_>) -> Option<u64> {
        if value.head.is_zero() {
            return Some(0);
        }
        let skip = value.limbs.iter().position(|&limb| limb != 0)?;
        let limbs = &value.limbs[skip..];
        let low = value.head.exponent() - 64 * limbs.len() as i64;
        if low < -i64::from(limbs[0].trailing_zeros()) {
            return None;
        }
        let prime = self.modulus.prime();
        let magnitude = limbs.iter().rev().fold(0u64, |high, &limb| {
            // Shoup's products: each estimate of a quotient is at most one too small, so both parts are below 2 p.
            let quotient = ((u128::from(high) * u128::from(self.radix_quotient)) >> 64) as u64;
            let carried = high.wrapping_mul(self.radix).wrapping_sub(quotient.wrapping_mul(prime));
            let whole = ((u128::from(limb) * u128::from(self.reciprocal)) >> 64) as u64;
            carried + (limb - whole * prime)
        });
        let power = match self.powers.get((low + 63) as usize) {
            Some(&power) => power,
            None => self.modulus.power(2, low as u64),
        };
        let least = self.modulus.multiply(magnitude, power);
        Some(if value.head.is_negative() { self.modulus.subtract(0, least) } else { least })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use rug::Integer;
    use rug::rand::RandState;

    #[test]
    fn residues_equal_the_big_integer() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(5));
        let mut draw = ChaCha8Rng::seed_from_u64(8);
        for case in 0..400u32 {
            let field = Field::new(random_prime(&mut draw));
            let bits = 1 + rng.below(500);
            let shift = if case % 4 == 0 { rng.below(9000) } else { rng.below(80) };
            let mut integer = Integer::from(Integer::random_bits(bits, &mut rng)) << shift;
            if case % 2 == 1 {
                integer = -integer;
            }
            let matrix = Matrix::from_integers(1, 1, 520, std::slice::from_ref(&integer)).unwrap();
            let want = Integer::from(integer.modulo_ref(&Integer::from(field.modulus.prime())));
            assert_eq!(field.residue(matrix.get(0, 0)).map(Integer::from), Some(want), "case {case}");
        }
    }

    #[test]
    fn fractions_are_seen() {
        let field = Field::new((1 << 61) - 1);
        for (value, whole) in [(0.5, false), (3.0, true), (-2.25, false), (1e300, true), (1e-300, false), (0.0, true)] {
            let matrix = Matrix::from_f64s(1, 1, 100, &[value]).unwrap();
            assert_eq!(field.residue(matrix.get(0, 0)).is_some(), whole, "{value}");
        }
    }
}
