//! A solution of `A x = 0` in integers, found p-adically and multiplied out exactly.
//!
//! Independent of: how the rank modulo the prime was found.

use super::modular::{Elimination, PrimeField};
use super::{Exact, RationalEntry};
use rug::{Assign, Integer};

/// Bits of the largest entry that is lifted, after rows and columns have been scaled to integers.
const MOST_BITS: u32 = 1 << 15;

/// Bits of all entries together, at most: 64 MiB.
const MOST_BITS_TOGETHER: u64 = 1 << 29;

/// Limbs that are multiplied by words, at most, for one proof: some seconds.
const MOST_WORK: u64 = 2_000_000_000;

/// Limbs that the call of one product takes the time of.
const CALL_LIMBS: u64 = 8;

/// Integers `x`, not all 0 and without a common divisor, with `A x = 0`; `None` where none is found within the effort.
///
/// The columns before the first dependent one modulo the prime are independent, modulo it and so over the rationals.
/// If the next column is their combination, the combination is unique, and the numbers of it that are found modulo a
/// power of the prime are those. That it is one is checked in all rows.
pub(super) fn null_vector(matrix: &Exact<'_>, elimination: &Elimination) -> Option<Vec<Integer>> {
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
