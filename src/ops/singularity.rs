//! Whether a square matrix is singular, decided in exact arithmetic: the numbers of a matrix are dyadic rationals,
//! so the question has an answer, whatever the precision.
//!
//! A matrix of full rank modulo one odd prime is nonsingular: its determinant is an integer over a power of two, and
//! not 0 modulo the prime. That a matrix is singular is claimed only together with an exact solution of `A x = 0`,
//! which is found by p-adic lifting and then multiplied out. Independent of: factorisations, rounding.

use crate::error::{Error, Result};
use crate::io::WrittenEntry;
use crate::math::prime::is_prime;
use crate::matrix::{MatrixView, Symmetric};
use rug::integer::IntegerExt64;
use rug::{Assign, Integer, Rational};
use std::collections::HashMap;

/// Rows of the largest matrix that is examined.
const MOST_ROWS: usize = 300;

/// Primes at which a matrix is examined that is singular modulo the first.
const PRIMES: usize = 3;

/// Bits of the largest entry that is lifted, after rows and columns have been scaled to integers.
const MOST_BITS: u32 = 1 << 15;

/// Bits of all entries together, at most: 64 MiB.
const MOST_BITS_TOGETHER: u64 = 1 << 29;

/// Limbs that are multiplied by words, at most, for one proof: some seconds.
const MOST_WORK: u64 = 2_000_000_000;

/// Limbs that the call of one product takes the time of.
const CALL_LIMBS: u64 = 8;

/// Number of products of two residues that fit a sum of 128 bits in addition to a residue: each is below `2^122`.
const PRODUCTS_AT_ONCE: usize = 32;

/// The result of an exact singularity test of a matrix.
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
        /// Number of these primes.
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
/// replaces the entry at its place, and at the mirrored place. For a matrix from a file these entries are
/// [`crate::io::Loaded::written`].
///
/// Cost: that of [`singularity()`], and for each prime the inverse of each denominator modulo the prime. A proof that
/// the matrix is singular is also abandoned if the least common denominator of a row has more than 32,768 bits.
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
    check_places(written, view.rows())?;
    Ok(decide(&Exact::new(view, written)))
}

/// [`singularity_as_written`] of any square matrix; `written` may be empty.
///
/// ```
/// use sunzi::Matrix;
/// use sunzi::estimate::general_singularity;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 6.0])?; // [1 3; 2 6]
/// assert!(general_singularity(&a, &[])?.is_proven_singular());
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::NotSquare`]; [`Error::InvalidArgument`] for an entry of `written` outside the matrix.
pub fn general_singularity<'a>(a: impl Into<MatrixView<'a>>, written: &[WrittenEntry]) -> Result<Singularity> {
    let view = a.into();
    if view.rows() != view.cols() {
        return Err(Error::NotSquare { operation: "singularity", rows: view.rows(), cols: view.cols() });
    }
    check_places(written, view.rows())?;
    Ok(decide(&Exact::general(view, written)))
}

/// Refuses entries outside a matrix of this order.
fn check_places(written: &[WrittenEntry], order: usize) -> Result<()> {
    match written.iter().find(|entry| entry.row.max(entry.col) >= order) {
        Some(WrittenEntry { row, col, .. }) => Err(Error::InvalidArgument(format!(
            "an entry at row {row}, column {col} (counted from 0) is outside a matrix of {order} rows"
        ))),
        None => Ok(()),
    }
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
    match best.and_then(|best| null_vector(exact, &best)) {
        Some(null_vector) => Singularity::Singular { rank_at_least, null_vector },
        None => Singularity::ProbablySingular { rank_at_least, primes: used },
    }
}

/// A square matrix, its numbers as they were written.
struct Exact<'a> {
    view: MatrixView<'a>,
    /// Whether the lower triangle is that of a symmetric matrix.
    is_symmetric: bool,
    /// Entries that replace those of the view, by row and column, in the lower triangle of a symmetric matrix.
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
        let written = written.iter().map(|entry| (place(entry), &entry.value)).collect();
        Exact { view, is_symmetric: true, written }
    }

    fn general(view: MatrixView<'a>, written: &'a [WrittenEntry]) -> Exact<'a> {
        let written = written.iter().map(|entry| ((entry.row, entry.col), &entry.value)).collect();
        Exact { view, is_symmetric: false, written }
    }

    fn rows(&self) -> usize {
        self.view.rows()
    }

    /// Entry `(i, j)`; `None` for 0.
    fn entry(&self, i: usize, j: usize) -> Option<RationalEntry> {
        let (row, col) = if self.is_symmetric { (i.max(j), i.min(j)) } else { (i, j) };
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

/// The field of residues modulo an odd prime below `2^61`.
#[derive(Clone, Copy, Debug)]
struct PrimeField {
    prime: u64,
}

impl PrimeField {
    fn product(self, a: u64, b: u64) -> u64 {
        (u128::from(a) * u128::from(b) % u128::from(self.prime)) as u64
    }

    fn power(self, base: u64, exponent: u64) -> u64 {
        let (mut result, mut square, mut left) = (1, base, exponent);
        while left > 0 {
            if left & 1 == 1 {
                result = self.product(result, square);
            }
            square = self.product(square, square);
            left >>= 1;
        }
        result
    }

    /// The inverse of a residue that is not 0.
    fn inverse(self, a: u64) -> u64 {
        self.power(a, self.prime - 2)
    }

    fn residue(self, number: &Integer) -> u64 {
        number.mod_u64(self.prime)
    }

    /// `2^exponent`; negative exponents are no exception, as the prime is odd.
    fn power_of_two(self, exponent: i64) -> u64 {
        self.power(2, exponent.rem_euclid(self.prime as i64 - 1) as u64)
    }

    /// `sum_k a_k b_k`.
    fn dot(self, a: &[u64], b: &[u64]) -> u64 {
        let mut sum = 0;
        for (a, b) in a.chunks(PRODUCTS_AT_ONCE).zip(b.chunks(PRODUCTS_AT_ONCE)) {
            let products = a.iter().zip(b).map(|(&a, &b)| u128::from(a) * u128::from(b));
            sum = (sum + products.sum::<u128>()) % u128::from(self.prime);
        }
        sum as u64
    }

    /// `row -= factor * other`, from column `from` on.
    fn subtract(self, row: &mut [u64], factor: u64, other: &[u64], from: usize) {
        let minus = self.prime - factor;
        for (entry, &other) in row[from..].iter_mut().zip(&other[from..]) {
            *entry = ((u128::from(minus) * u128::from(other) + u128::from(*entry)) % u128::from(self.prime)) as u64;
        }
    }

    /// The inverse of a square matrix, row by row; `None` where it has none.
    fn inverse_matrix(self, rows: &[Vec<u64>]) -> Option<Vec<Vec<u64>>> {
        let order = rows.len();
        let beside = |(i, row): (usize, &Vec<u64>)| {
            let unit = (0..order).map(|j| u64::from(i == j));
            row.iter().copied().chain(unit).collect::<Vec<_>>()
        };
        let mut rows = rows.iter().enumerate().map(beside).collect::<Vec<_>>();
        for col in 0..order {
            let at = (col..order).find(|&row| rows[row][col] != 0)?;
            rows.swap(col, at);
            let mut pivot = std::mem::take(&mut rows[col]);
            let scale = self.inverse(pivot[col]);
            pivot[col..].iter_mut().for_each(|entry| *entry = self.product(*entry, scale));
            for row in rows.iter_mut().filter(|row| row.get(col).is_some_and(|&entry| entry != 0)) {
                let factor = row[col];
                self.subtract(row, factor, &pivot, col);
            }
            rows[col] = pivot;
        }
        Some(rows.into_iter().map(|row| row[order..].to_vec()).collect())
    }
}

/// The result of elimination modulo a prime, by columns from the left.
struct Elimination {
    field: PrimeField,
    /// The column and the row of each pivot, in the order of the columns.
    pivots: Vec<(usize, usize)>,
}

impl Elimination {
    /// Eliminates a matrix modulo a prime; `None` where that divides a denominator.
    fn of(matrix: &Exact<'_>, prime: u64) -> Option<Elimination> {
        let (field, order) = (PrimeField { prime }, matrix.rows());
        let image = |i, j| {
            let Some(entry) = matrix.entry(i, j) else { return Some(0) };
            let dyadic = field.product(field.residue(&entry.numerator), field.power_of_two(entry.exponent));
            match field.residue(&entry.denominator) {
                0 => None,
                1 => Some(dyadic),
                denominator => Some(field.product(dyadic, field.inverse(denominator))),
            }
        };
        let row = |i| Some((i, (0..order).map(|j| image(i, j)).collect::<Option<Vec<_>>>()?));
        // The rows that have had no pivot yet, each with its number.
        let mut left = (0..order).map(row).collect::<Option<Vec<_>>>()?;
        let mut pivots = Vec::new();
        for col in 0..order {
            let Some(at) = left.iter().position(|(_, row)| row[col] != 0) else { continue };
            let (number, pivot) = left.swap_remove(at);
            let scale = field.inverse(pivot[col]);
            for (_, row) in left.iter_mut().filter(|(_, row)| row[col] != 0) {
                let factor = field.product(row[col], scale);
                field.subtract(row, factor, &pivot, col);
            }
            pivots.push((col, number));
        }
        Some(Elimination { field, pivots })
    }

    /// The rank modulo the prime.
    fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// Columns before the first that depends on those before it.
    fn leading_rank(&self) -> usize {
        self.pivots.iter().enumerate().take_while(|(at, (col, _))| at == col).count()
    }

    /// Rows in which the columns before the first dependent one are independent, one for each of these columns.
    fn leading_rows(&self) -> Vec<usize> {
        self.pivots[..self.leading_rank()].iter().map(|&(_, row)| row).collect()
    }
}

/// Integers `x`, not all 0 and without a common divisor, with `A x = 0`; `None` where none is found within the effort.
///
/// The columns before the first dependent one modulo the prime are independent, modulo it and so over the rationals.
/// If the next column is their combination, the combination is unique, and the numbers of it that are found modulo a
/// power of the prime are those. That it is one is checked in all rows.
fn null_vector(matrix: &Exact<'_>, elimination: &Elimination) -> Option<Vec<Integer>> {
    let scaled = ScaledColumns::new(matrix, elimination.leading_rank())?;
    let combination = scaled.combination(elimination)?;
    scaled.unscaled(combination, matrix.rows())
}

/// The leading columns of a matrix, its rows scaled by their common denominators, and rows and columns by powers of
/// two, so that all entries are integers.
struct ScaledColumns {
    rows: Vec<Vec<Integer>>,
    /// Entry `(i, j)` is that of the matrix times `d_i 2^-(r_i + c_j)`: here are the `c_j`.
    column_exponents: Vec<i64>,
    /// Bits of the largest entry.
    bits: u32,
}

impl ScaledColumns {
    /// The columns before `last` and that one; `None` where the integers would be too large.
    fn new(matrix: &Exact<'_>, last: usize) -> Option<ScaledColumns> {
        let row = |i| without_denominators((0..=last).map(|j| matrix.entry(i, j)).collect());
        let entries = (0..matrix.rows()).map(row).collect::<Option<Vec<_>>>()?;
        let least = |row: &Vec<Option<(Integer, i64)>>| row.iter().flatten().map(|(_, exponent)| *exponent).min();
        let row_exponents = entries.iter().map(|row| least(row).unwrap_or(0)).collect::<Vec<_>>();
        let in_column = |j: usize| {
            let above = |(row, r): (&Vec<Option<(Integer, i64)>>, &i64)| Some(row[j].as_ref()?.1 - r);
            entries.iter().zip(&row_exponents).filter_map(above).min().unwrap_or(0)
        };
        let column_exponents = (0..=last).map(in_column).collect::<Vec<_>>();
        let (mut bits, mut together) = (0, 0);
        let scaled = |(entry, shift): (Option<(Integer, i64)>, i64)| {
            let Some((integer, exponent)) = entry else { return Some(Integer::new()) };
            let shift = u32::try_from(exponent - shift).ok().filter(|&shift| shift <= MOST_BITS)?;
            let own = integer.significant_bits() + shift;
            (bits, together) = (bits.max(own), together + u64::from(own));
            (bits <= MOST_BITS && together <= MOST_BITS_TOGETHER).then(|| integer << shift)
        };
        let shifted = entries.into_iter().zip(row_exponents).flat_map(|(row, r)| {
            let shifts = column_exponents.iter().map(move |c| r + c);
            row.into_iter().zip(shifts)
        });
        let all = shifted.map(scaled).collect::<Option<Vec<_>>>()?;
        let rows = all.chunks(last + 1).map(<[Integer]>::to_vec).collect();
        Some(ScaledColumns { rows, column_exponents, bits })
    }

    /// The last column.
    fn last(&self) -> usize {
        self.column_exponents.len() - 1
    }

    /// Integers `z` with a sum of 0 over all columns times `z` in each row, the last of them not 0.
    fn combination(&self, elimination: &Elimination) -> Option<Vec<Integer>> {
        let last = self.last();
        let mut lifting = Lifting::new(self, elimination)?;
        // By Cramer's rule and Hadamard's bound numerators and denominators have no more bits than this, so more steps
        // than for twice as many bits cannot find a solution that fewer do not find.
        let largest = (last as u64 + 1) * (u64::from(self.bits) + u64::from((last + 1).ilog2()) + 1);
        let most_steps = largest * 2 / 60 + 2;
        let limbs = u64::from(self.bits.div_ceil(64)) + CALL_LIMBS;
        let affordable = MOST_WORK / (limbs * (last * last).max(1) as u64);
        let mut goal = 2;
        loop {
            let goal_now = goal.min(most_steps).min(affordable);
            while lifting.steps < goal_now {
                lifting.step();
            }
            if let Some(found) = lifting.reconstruct().filter(|found| self.is_solution(found)) {
                return Some(found);
            }
            if goal_now < goal {
                return None;
            }
            goal *= 2;
        }
    }

    /// Whether each row times `z` is 0.
    fn is_solution(&self, z: &[Integer]) -> bool {
        let product = |row: &Vec<Integer>| row.iter().zip(z).fold(Integer::new(), |sum, (entry, z)| sum + entry * z);
        z.last().is_some_and(|last| *last != 0) && self.rows.iter().all(|row| product(row) == 0)
    }

    /// The solution for the matrix as given, with 0 in the `order` columns that were left out.
    fn unscaled(&self, z: Vec<Integer>, order: usize) -> Option<Vec<Integer>> {
        let used = z.iter().zip(&self.column_exponents).filter(|(z, _)| **z != 0);
        let top = used.map(|(_, &exponent)| exponent).max()?;
        let shifted = z.into_iter().zip(&self.column_exponents).map(|(z, exponent)| {
            let shift = if z == 0 { 0 } else { top - exponent };
            u32::try_from(shift).ok().filter(|&shift| shift <= MOST_BITS).map(|shift| z << shift)
        });
        let mut x = shifted.collect::<Option<Vec<_>>>()?;
        let divisor = x.iter().fold(Integer::new(), |divisor, entry| divisor.gcd(entry));
        x.iter_mut().for_each(|entry| entry.div_exact_mut(&divisor));
        x.resize(order, Integer::new());
        Some(x)
    }
}

/// A row times the least common multiple of its denominators, each number as an integer times a power of two; `None`
/// where that has more than [`MOST_BITS`].
fn without_denominators(row: Vec<Option<RationalEntry>>) -> Option<Vec<Option<(Integer, i64)>>> {
    let mut common = Integer::from(1);
    for entry in row.iter().flatten() {
        common.lcm_mut(&entry.denominator);
        if common.significant_bits() > MOST_BITS {
            return None;
        }
    }
    let scaled = |entry: RationalEntry| {
        let factor = Integer::from(common.div_exact_ref(&entry.denominator));
        (entry.numerator * factor, entry.exponent)
    };
    Some(row.into_iter().map(|entry| entry.map(scaled)).collect())
}

/// The solution of `B y = b` modulo rising powers of a prime, for a square part `B` of a matrix and a right side `b`
/// from its other columns.
struct Lifting<'a> {
    field: PrimeField,
    rows: Vec<&'a [Integer]>,
    /// `B^-1` modulo the prime.
    inverse: Vec<Vec<u64>>,
    /// `(b - B y) / p^steps`.
    residual: Vec<Integer>,
    /// `y` modulo `p^steps`.
    solution: Vec<Integer>,
    steps: u64,
    /// `p^steps`.
    modulus: Integer,
}

impl<'a> Lifting<'a> {
    /// For minus the last column as a combination of the others.
    fn new(scaled: &'a ScaledColumns, elimination: &Elimination) -> Option<Lifting<'a>> {
        let (field, last) = (elimination.field, scaled.last());
        let rows = elimination.leading_rows().into_iter().map(|row| &scaled.rows[row][..]).collect::<Vec<_>>();
        let image = |row: &&[Integer]| row[..last].iter().map(|entry| field.residue(entry)).collect::<Vec<_>>();
        let inverse = field.inverse_matrix(&rows.iter().map(image).collect::<Vec<_>>())?;
        let residual = rows.iter().map(|row| Integer::from(-&row[last])).collect();
        let solution = vec![Integer::new(); last];
        Some(Lifting { field, rows, inverse, residual, solution, steps: 0, modulus: Integer::from(1) })
    }

    /// One more power of the prime (Dixon 1982).
    fn step(&mut self) {
        let (field, prime) = (self.field, Integer::from(self.field.prime));
        let residues = self.residual.iter().map(|entry| field.residue(entry)).collect::<Vec<_>>();
        let digits = self.inverse.iter().map(|row| Integer::from(field.dot(row, &residues))).collect::<Vec<_>>();
        let mut product = Integer::new();
        for (row, residual) in self.rows.iter().zip(&mut self.residual) {
            for (entry, digit) in row.iter().zip(&digits) {
                product.assign(entry * digit);
                *residual -= &product;
            }
            residual.div_exact_mut(&prime);
        }
        for (solution, digit) in self.solution.iter_mut().zip(&digits) {
            product.assign(digit * &self.modulus);
            *solution += &product;
        }
        self.modulus *= prime;
        self.steps += 1;
    }

    /// The numerators over one denominator, which comes last; `None` where the modulus is too small for that.
    fn reconstruct(&self) -> Option<Vec<Integer>> {
        let bound = Integer::from(&self.modulus >> 1).sqrt();
        let (mut numerators, mut denominator) = (Vec::<Integer>::new(), Integer::from(1));
        for entry in &self.solution {
            // Most entries have the denominator of those before them.
            let mut scaled = Integer::from(entry * &denominator).modulo(&self.modulus);
            if Integer::from(&scaled << 1) > self.modulus {
                scaled -= &self.modulus;
            }
            let (numerator, factor) = match scaled.cmp_abs(&bound).is_gt() {
                true => fraction(scaled.modulo(&self.modulus), &self.modulus, &bound)?,
                false => (scaled, Integer::from(1)),
            };
            numerators.iter_mut().for_each(|earlier| *earlier *= &factor);
            numerators.push(numerator);
            denominator *= factor;
            if denominator > bound {
                return None;
            }
        }
        numerators.push(denominator);
        Some(numerators)
    }
}

/// `n / d = residue` modulo the modulus with `|n|` and `d` up to the bound, by Euclid's algorithm stopped half-way
/// (Wang 1981).
fn fraction(residue: Integer, modulus: &Integer, bound: &Integer) -> Option<(Integer, Integer)> {
    let (mut remainders, mut factors) = ((modulus.clone(), residue), (Integer::new(), Integer::from(1)));
    while remainders.1 > *bound {
        let (quotient, rest) = remainders.0.div_rem(remainders.1.clone());
        remainders = (remainders.1, rest);
        let next = factors.0 - Integer::from(&quotient * &factors.1);
        factors = (factors.1, next);
    }
    let (numerator, denominator) = (remainders.1, factors.1);
    if denominator == 0 || denominator.cmp_abs(bound).is_gt() {
        return None;
    }
    Some(if denominator < 0 { (-numerator, -denominator) } else { (numerator, denominator) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: PrimeField = PrimeField { prime: (1 << 61) - 1 };

    #[test]
    fn residues_of_the_largest_size_do_not_overflow() {
        let most = FIELD.prime - 1; // -1
        assert_eq!(FIELD.product(most, most), 1);
        assert_eq!(FIELD.dot(&[most; 100], &[most; 100]), 100);
        assert_eq!(FIELD.product(FIELD.inverse(12_345), 12_345), 1);
        assert_eq!(FIELD.product(FIELD.power_of_two(-9), 512), 1);
        assert_eq!(FIELD.residue(&Integer::from(-1)), most);
        let mut row = [most, most];
        FIELD.subtract(&mut row, most, &[7, most], 1);
        assert_eq!(row, [most, FIELD.prime - 2]);
    }

    #[test]
    fn an_inverse_is_one_where_there_is_one() {
        let rows = [vec![0, 1, 2], vec![3, 0, 5], vec![1, 1, FIELD.prime - 1]];
        let inverse = FIELD.inverse_matrix(&rows).unwrap();
        for (i, row) in rows.iter().enumerate() {
            for j in 0..3 {
                let column = inverse.iter().map(|row| row[j]).collect::<Vec<_>>();
                assert_eq!(FIELD.dot(row, &column), u64::from(i == j), "({i}, {j})");
            }
        }
        assert!(FIELD.inverse_matrix(&[vec![1, 2], vec![2, 4]]).is_none());
        assert_eq!(FIELD.inverse_matrix(&[]), Some(Vec::new()));
    }

    #[test]
    fn fractions_are_found_up_to_the_bound_and_not_beyond() {
        let modulus = Integer::from((1u64 << 61) - 1);
        let bound = Integer::from(&modulus >> 1).sqrt();
        let residue = |n: i64, d: u64| {
            let inverse = Integer::from(d).invert(&modulus).unwrap();
            (Integer::from(n) * inverse).modulo(&modulus)
        };
        for (n, d) in [(1, 3), (-7, 12), (-1_073_741_000, 1_073_740_999), (5, 1)] {
            assert_eq!(fraction(residue(n, d), &modulus, &bound), Some((n.into(), d.into())), "{n} / {d}");
        }
        let far = fraction(residue(1_234_567_890_123, 987_654_321_987), &modulus, &bound);
        assert!(far.is_none_or(|(n, d)| n.cmp_abs(&bound).is_le() && d <= bound));
    }
}
