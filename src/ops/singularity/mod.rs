//! Whether a symmetric matrix is singular, decided in exact arithmetic: the numbers of a matrix are dyadic rationals,
//! so the question has an answer, whatever the precision.
//!
//! A matrix of full rank modulo one odd prime is nonsingular: its determinant is an integer over a power of two, and
//! not 0 modulo the prime. That a matrix is singular is claimed only together with an exact solution of `A x = 0`,
//! which is found by p-adic lifting and then multiplied out. Independent of: factorisations, rounding.

mod lifting;
mod modular;

use crate::error::{Error, Result};
use crate::io::WrittenEntry;
use crate::math::prime::is_prime;
use crate::matrix::{MatrixView, Symmetric};
use modular::Elimination;
use rug::{Integer, Rational};
use std::collections::HashMap;

/// Rows of the largest matrix that is examined.
const MOST_ROWS: usize = 300;

/// Primes at which a matrix is examined that is singular modulo the first.
const PRIMES: usize = 3;

/// The result of an exact singularity test of a symmetric matrix.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Singularity {
    /// Proven nonsingular: the determinant is not 0 modulo some prime.
    Nonsingular,
    /// Proven singular: `A x = 0` for the integers `x`, which are not all 0.
    Singular {
        /// The rank modulo a prime, a lower bound of the rank of the matrix.
        rank_at_least: usize,
        /// The vector `x`, whose entries have no common divisor.
        null_vector: Vec<Integer>,
    },
    /// Not decided: the determinant is 0 modulo several primes above `2^60`, and no solution of `A x = 0` was found
    /// within the limits of effort.
    ProbablySingular {
        /// The largest rank modulo one of the primes, a lower bound of the rank of the matrix.
        rank_at_least: usize,
        /// How many primes.
        primes: usize,
    },
    /// Not tested: the matrix has more than 300 rows.
    TooLarge,
}

impl Singularity {
    /// Whether the matrix is proven to be singular.
    pub fn is_proven_singular(&self) -> bool {
        matches!(self, Singularity::Singular { .. })
    }
}

/// Decides whether the symmetric `n x n` matrix `A` is singular, taking its numbers as exact.
///
/// The matrix is eliminated modulo up to three primes between `2^60` and `2^61`. If `A` has full rank modulo one of
/// them, it is nonsingular. Otherwise the first column that depends on the columns before it is written as their unique
/// linear combination: the coefficients are lifted p-adically (Dixon 1982) and reconstructed as fractions (Wang 1981),
/// and the combination is checked exactly. A matrix without rows is nonsingular.
///
/// Cost: `n^3 / 3` products of words for each prime, about 0.3 s for 300 rows. A proof that the matrix is singular
/// needs `n^3` products of words and, for each 60 bits of the combination's numerators and denominators, `n^2` products
/// of a word and an entry; it is abandoned after some seconds. Exponents are not limited, but a proof is also abandoned
/// if the entries, with rows and columns scaled to integers, have more than 32,768 bits or more than 64 MiB in total.
///
/// ```
/// use sunzi::Matrix;
/// use sunzi::estimate::{Singularity, singularity};
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 2.0, 4.0])?;
/// let Singularity::Singular { rank_at_least, null_vector } = singularity(&a)? else { panic!("det A = 0") };
/// assert_eq!(rank_at_least, 1);
/// assert_eq!(null_vector[0].clone() + 2 * null_vector[1].clone(), 0);
/// assert!(matches!(singularity(&Matrix::identity(2, 128)?)?, Singularity::Nonsingular));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::NotSquare`], [`Error::NotSymmetric`].
pub fn singularity<'a>(a: impl Into<Symmetric<'a>>) -> Result<Singularity> {
    singularity_as_written(a, &[])
}

/// [`singularity()`] of the matrix `A` in which some numbers were rounded when they were read: each entry of `written`
/// replaces the entry at its place, and at the mirrored place. For a matrix from a file they are
/// [`crate::io::Loaded::written`].
///
/// Cost: that of [`singularity()`], and for each prime one inverse for each denominator. A proof that the matrix is
/// singular is also abandoned if the least common denominator of a row has more than 32,768 bits.
///
/// ```
/// use sunzi::io::{self, ReadOptions};
/// use sunzi::estimate::{singularity, singularity_as_written};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("a.csv");
/// std::fs::write(&path, "1,1/3\n1/3,1/9\n").unwrap(); // singular, but not once its fractions are rounded
/// let loaded = io::read(&path, &ReadOptions::new(64).keep_written(true))?;
/// let written = loaded.written.as_deref().unwrap_or_default();
/// assert!(!singularity(&loaded.matrix)?.is_proven_singular());
/// assert!(singularity_as_written(&loaded.matrix, written)?.is_proven_singular());
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`singularity()`]; [`Error::InvalidArgument`] for an entry outside the matrix.
pub fn singularity_as_written<'a>(a: impl Into<Symmetric<'a>>, written: &[WrittenEntry]) -> Result<Singularity> {
    let view = a.into().lower_view("singularity")?;
    if let Some(outside) = written.iter().find(|entry| entry.row.max(entry.col) >= view.rows()) {
        let WrittenEntry { row, col, .. } = outside;
        return Err(Error::InvalidArgument(format!(
            "an entry at row {row}, column {col} (counted from 0) is outside a matrix of {} rows",
            view.rows()
        )));
    }
    Ok(decide(&Exact::new(view, written)))
}

fn decide(exact: &Exact<'_>) -> Singularity {
    let rows = exact.rows();
    if rows > MOST_ROWS {
        return Singularity::TooLarge;
    }
    let primes = (1u64 << 60..).filter(|&number| is_prime(number)).take(PRIMES);
    let (mut best, mut used) = (None::<Elimination>, 0);
    for prime in primes {
        let Some(found) = Elimination::of(exact, prime) else { continue };
        used += 1;
        if found.rank() == rows {
            return Singularity::Nonsingular;
        }
        // With a prime that divides a minor by chance, the first dependent column comes too early.
        if best.as_ref().is_none_or(|best| best.leading_rank() < found.leading_rank()) {
            best = Some(found);
        }
    }
    let rank_at_least = best.as_ref().map_or(0, Elimination::rank);
    match best.and_then(|best| lifting::null_vector(exact, &best)) {
        Some(null_vector) => Singularity::Singular { rank_at_least, null_vector },
        None => Singularity::ProbablySingular { rank_at_least, primes: used },
    }
}

/// A symmetric matrix by its lower triangle, its numbers as they were written.
struct Exact<'a> {
    view: MatrixView<'a>,
    /// Entries that replace those of the view, by row and column of the lower triangle.
    written: HashMap<(usize, usize), &'a Rational>,
}

/// `numerator * 2^exponent / denominator`, the numerator and the denominator odd.
struct RationalEntry {
    numerator: Integer,
    exponent: i64,
    denominator: Integer,
}

impl<'a> Exact<'a> {
    fn new(view: MatrixView<'a>, written: &'a [WrittenEntry]) -> Exact<'a> {
        let place = |entry: &WrittenEntry| (entry.row.max(entry.col), entry.row.min(entry.col));
        Exact { view, written: written.iter().map(|entry| (place(entry), &entry.value)).collect() }
    }

    fn rows(&self) -> usize {
        self.view.rows()
    }

    /// Entry `(i, j)`; `None` for 0.
    fn entry(&self, i: usize, j: usize) -> Option<RationalEntry> {
        let (row, col) = (i.max(j), i.min(j));
        if let Some(&written) = self.written.get(&(row, col)) {
            let (numerator, up) = odd_part(written.numer().clone())?;
            let (denominator, down) = odd_part(written.denom().clone())?;
            return Some(RationalEntry { numerator, exponent: up - down, denominator });
        }
        let entry = self.view.get(row, col);
        if entry.head.is_zero() {
            return None;
        }
        let (integer, exponent) = entry.to_integer_exponent();
        let (numerator, zeros) = odd_part(integer)?;
        Some(RationalEntry { numerator, exponent: exponent + zeros, denominator: Integer::from(1) })
    }
}

/// The odd part of an integer, and the power of two that it was multiplied by; `None` for 0.
fn odd_part(integer: Integer) -> Option<(Integer, i64)> {
    let zeros = integer.find_one(0).filter(|_| integer != 0)?;
    Some((integer >> zeros, i64::from(zeros)))
}
