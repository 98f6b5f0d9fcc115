//! Whether a symmetric matrix is singular, decided in exact arithmetic: the numbers of a matrix are dyadic rationals,
//! so the question has an answer, whatever the precision.
//!
//! A matrix of full rank modulo one odd prime is nonsingular: its determinant is an integer over a power of two, and
//! not 0 modulo the prime. That a matrix is singular is claimed only beside an exact solution of `A x = 0`, which is
//! found by p-adic lifting and then multiplied out. Does not know: factorisations, rounding.

mod lifting;
mod modular;

use crate::error::Result;
use crate::math::prime::is_prime;
use crate::matrix::{MatrixView, Symmetric};
use modular::Elimination;
use rug::Integer;

/// Rows of the largest matrix that is examined.
const MOST_ROWS: usize = 300;

/// Primes at which a matrix is examined that is singular modulo the first.
const PRIMES: usize = 3;

/// What exact arithmetic says of a symmetric matrix.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Singularity {
    /// Proven: the determinant is not 0, since it is not modulo some prime.
    Nonsingular,
    /// Proven: `A x = 0` for the integers `x`, which are not all 0.
    Singular {
        /// The rank modulo a prime, which the rank of the matrix is at least.
        rank_at_least: usize,
        /// `x`, without a common divisor.
        null_vector: Vec<Integer>,
    },
    /// Nothing is proven: the determinant is 0 modulo several primes above `2^60`, and no solution of `A x = 0` was
    /// found within the effort.
    ProbablySingular {
        /// The largest rank modulo one of the primes, which the rank of the matrix is at least.
        rank_at_least: usize,
        /// How many primes.
        primes: usize,
    },
    /// The matrix has more than 300 rows.
    TooLarge,
}

impl Singularity {
    /// Whether the matrix is proven to be singular.
    pub fn is_proven_singular(&self) -> bool {
        matches!(self, Singularity::Singular { .. })
    }
}

/// Whether the symmetric `n x n` matrix `A` is singular, taking its numbers as exact.
///
/// Eliminates modulo up to three primes between `2^60` and `2^61`. Where `A` has full rank modulo one of them, it is
/// nonsingular. Else the first column that depends on those before it is written as their combination, which is
/// unique: its numbers are lifted p-adically (Dixon 1982), reconstructed as fractions (Wang 1981), and the combination
/// is checked exactly. A matrix without rows is nonsingular.
///
/// Cost: `n^3 / 3` products of words for each prime, about 0.3 s for 300 rows. A proof that the matrix is singular
/// takes `n^3` of them and, for each 60 bits of the combination's numerators and denominators, `n^2` products of a
/// word and an entry; it is given up after some seconds. Exponents may lie anywhere, but a proof is also given up
/// where the entries, with rows and columns scaled to integers, have more than 32,768 bits or more than 64 MiB
/// together.
///
/// # Errors
/// [`crate::Error::NotSquare`], [`crate::Error::NotSymmetric`].
pub fn singularity<'a>(a: impl Into<Symmetric<'a>>) -> Result<Singularity> {
    let exact = Exact(a.into().lower_view("singularity")?);
    let rows = exact.rows();
    if rows > MOST_ROWS {
        return Ok(Singularity::TooLarge);
    }
    let primes = (1u64 << 60..).filter(|&number| is_prime(number)).take(PRIMES);
    let mut best: Option<Elimination> = None;
    for prime in primes {
        let found = Elimination::of(exact, prime);
        if found.rank() == rows {
            return Ok(Singularity::Nonsingular);
        }
        // Of a prime that divides a minor by chance, the first dependent column comes too early.
        if best.as_ref().is_none_or(|best| best.leading_rank() < found.leading_rank()) {
            best = Some(found);
        }
    }
    let best = best.expect("there are primes");
    let rank_at_least = best.rank();
    Ok(match lifting::null_vector(exact, &best) {
        Some(null_vector) => Singularity::Singular { rank_at_least, null_vector },
        None => Singularity::ProbablySingular { rank_at_least, primes: PRIMES },
    })
}

/// A symmetric matrix by its lower triangle, entries as integers times powers of two.
#[derive(Clone, Copy)]
struct Exact<'a>(MatrixView<'a>);

impl Exact<'_> {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Entry `(i, j)` as `integer * 2^exponent`, the integer odd; `None` for 0.
    fn entry(&self, i: usize, j: usize) -> Option<(Integer, i64)> {
        let entry = self.0.get(i.max(j), i.min(j));
        if entry.head.is_zero() {
            return None;
        }
        let (mut integer, exponent) = entry.to_integer_exponent();
        let zeros = integer.find_one(0).unwrap_or(0);
        integer >>= zeros;
        Some((integer, exponent + i64::from(zeros)))
    }
}
