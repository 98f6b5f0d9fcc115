//! Definiteness by an approximate factor and an exact residual.
//!
//! `S - tau I - L L^T` of Frobenius norm at most `tau / 2` shows `S >= (tau / 2) I`, whatever L is: docs/CHECKS.md,
//! "Certificates of semidefinite programs". Independent of: where S comes from.

use super::scaled::{Fixed, Scaled, floor_shifted, packed, triangle};
use rug::{Complete, Integer};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// A proof that a matrix is positive definite.
#[derive(Clone, PartialEq, Debug)]
pub struct Witness {
    /// `tau` is 2 to this power.
    pub exponent: i64,
    /// The lower triangle `L`; empty for a diagonal matrix.
    pub factor: Fixed,
}

/// A factor with the places of its numbers that are not 0. Products pass over all others: a zero takes two letters of a
/// file, and a file of zeros must not cost a step for each pair of them.
struct FactorLines<'a> {
    factor: &'a Fixed,
    /// Columns, row by row.
    places: Vec<Vec<usize>>,
}

impl FactorLines<'_> {
    fn new(factor: &Fixed, order: usize) -> FactorLines<'_> {
        let line = |row: usize| factor.values[triangle(row)..][..=row].iter().enumerate();
        let places = |row: usize| line(row).filter(|(_, value)| !value.is_zero()).map(|(col, _)| col).collect();
        FactorLines { factor, places: (0..order).map(places).collect() }
    }

    /// `(L L^T)_ij` in units of `2^(-2 bits)`: the sum over the row with fewer numbers.
    fn product(&self, row: usize, col: usize) -> Integer {
        let line = |row: usize| &self.factor.values[triangle(row)..];
        let (left, right) = (line(row), line(col));
        let few = [row, col].map(|row| &self.places[row]).into_iter().min_by_key(|places| places.len());
        let mut sum = Integer::new();
        for &at in few.into_iter().flatten().take_while(|at| **at <= row.min(col)) {
            sum += &left[at] * &right[at];
        }
        sum
    }
}

impl Witness {
    /// Products of two numbers that `L L^T` takes, at most; none where the factor does not have `order` rows.
    pub(crate) fn steps(&self, order: usize) -> u64 {
        if self.factor.values.len() != triangle(order) {
            return 0;
        }
        let line = |row: usize| &self.factor.values[triangle(row)..][..=row];
        let count = |row: usize| line(row).iter().filter(|value| !value.is_zero()).count() as u64;
        let mut counts = (0..order).map(count).collect::<Vec<_>>();
        counts.sort_unstable();
        let pairs = counts.iter().zip((1..=order as u64).rev());
        pairs.map(|(count, pairs)| count.saturating_mul(pairs)).fold(0, u64::saturating_add)
    }
}

/// `L L^T + tau I`, with twice the bits of L; `None` where tau is below them.
pub fn shifted_product(witness: &Witness, order: usize) -> Option<Fixed> {
    let bits = witness.factor.bits.checked_mul(2)?;
    let shift = u32::try_from(i64::from(bits) + witness.exponent).ok()?;
    let lines = FactorLines::new(&witness.factor, order);
    let mut values = Vec::with_capacity(triangle(order));
    for row in 0..order {
        for col in 0..=row {
            values.push(lines.product(row, col));
        }
        if let Some(last) = values.last_mut() {
            *last += Integer::from(1) << shift;
        }
    }
    Some(Fixed { bits, values })
}

/// Whether `witness` shows that `D S D - (tau / 2) I` is positive semidefinite, with `D` the powers of two of `scales`.
pub fn is_definite(matrix: &Scaled, scales: &[i64], witness: &Witness, threads: usize) -> bool {
    let order = scales.len();
    let doubled = 2 * i64::from(witness.factor.bits);
    let shift = doubled + witness.exponent;
    let fits = matrix.numerators.len() == triangle(order) && witness.factor.values.len() == triangle(order);
    let Some(shift) = u32::try_from(shift).ok().filter(|_| fits) else { return false };
    let tau = Integer::from(1) << shift;
    let lines = FactorLines::new(&witness.factor, order);
    // The squares of all entries of a row, with those above the diagonal.
    let row_norm = |row: usize| {
        let mut sum = Integer::new();
        for col in 0..=row {
            let numerator = &matrix.numerators[packed(row, col)];
            let mut rest = floor_shifted(numerator, doubled + scales[row] + scales[col], &matrix.denominator);
            rest -= lines.product(row, col);
            if row == col {
                rest -= &tau;
            }
            // Rounding down left out less than a unit.
            let rest = rest.abs() + 1u32;
            sum += rest.square() * if row == col { 1u32 } else { 2 };
        }
        sum
    };
    let limit = tau.square_ref().complete() >> 2u32;
    sum_of_rows(order, threads, &limit, row_norm) <= limit
}

/// The sum of `row_norm` over all rows, or of as many as are beyond `limit`: a factor that is far off ends it early.
fn sum_of_rows(order: usize, threads: usize, limit: &Integer, row_norm: impl Fn(usize) -> Integer + Sync) -> Integer {
    if threads < 2 || order < 32 {
        let mut sum = Integer::new();
        for row in 0..order {
            sum += row_norm(row);
            if sum > *limit {
                break;
            }
        }
        return sum;
    }
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(Integer::new()));
    let work = || {
        let mut own = Integer::new();
        loop {
            // The last rows have most terms.
            let taken = next.fetch_add(1, Ordering::Relaxed);
            if taken >= order || own > *limit {
                break;
            }
            own += row_norm(order - 1 - taken);
        }
        *sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += own;
    };
    std::thread::scope(|scope| {
        // Where the system refuses a thread, the others do its part.
        let refused = |_: &usize| Builder::new().spawn_scoped(scope, work).is_err();
        let _ = (1..threads.min(order)).find(refused);
        work();
    });
    sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::Rational;

    fn scaled(values: &[(i32, u32)]) -> Scaled {
        Scaled::new(&values.iter().map(|&value| Rational::from(value)).collect::<Vec<_>>())
    }

    fn witness(exponent: i64, bits: u32, values: &[i32]) -> Witness {
        Witness { exponent, factor: Fixed { bits, values: values.iter().map(|&value| Integer::from(value)).collect() } }
    }

    /// `[[2, 1], [1, 2]]` has the eigenvalues 1 and 3.
    #[test]
    fn a_factor_near_enough_is_a_proof_and_none_proves_what_is_wrong() {
        let matrix = scaled(&[(2, 1), (1, 1), (2, 1)]);
        // 2 - 1/2 = 1.5: the factor [[1.2247, 0], [0.8165, 0.9129]] in units of 2^-10.
        let right = witness(-1, 10, &[1254, 836, 935]);
        assert!(is_definite(&matrix, &[0, 0], &right, 1));
        // tau / 2 must be at most 1, whatever the factor.
        for exponent in [2, 5, 40] {
            assert!(!is_definite(&matrix, &[0, 0], &witness(exponent, 10, &[1254, 836, 935]), 1));
            assert!(!is_definite(&matrix, &[0, 0], &witness(exponent, 10, &[0, 0, 0]), 1));
        }
        let singular = scaled(&[(1, 1), (1, 1), (1, 1)]);
        for exponent in -12..4 {
            for last in [0, 1, 30] {
                assert!(!is_definite(&singular, &[0, 0], &witness(exponent, 10, &[1024, 1024, last]), 1));
            }
        }
        assert!(!is_definite(&matrix, &[0], &right, 1) && !is_definite(&matrix, &[0, 0, 0], &right, 1));
        // tau below the last bit of the squares.
        assert!(!is_definite(&matrix, &[0, 0], &witness(-21, 10, &[1254, 836, 935]), 1));
    }

    #[test]
    fn scales_are_a_congruence() {
        // D = diag(2, 1/2) takes [[1/2, 1], [1, 8]] to [[2, 1], [1, 2]].
        let matrix = scaled(&[(1, 2), (1, 1), (8, 1)]);
        assert!(is_definite(&matrix, &[1, -1], &witness(-1, 10, &[1254, 836, 935]), 1));
        assert!(!is_definite(&matrix, &[0, 0], &witness(-1, 10, &[1254, 836, 935]), 1));
    }

    #[test]
    fn threads_change_nothing() {
        let order = 70;
        let values = (0..triangle(order)).map(|at| Rational::from((at as u32 % 7, 3))).collect::<Vec<_>>();
        let mut matrix = Scaled::new(&values);
        (0..order).for_each(|row| matrix.numerators[packed(row, row)] += 3000);
        let diagonal = |row: usize| matrix.numerators[packed(row, row)].clone();
        let whole = (0..order).map(diagonal).fold(Integer::new(), |sum, next| sum + next);
        let norm = |threads, limit: &Integer| sum_of_rows(order, threads, limit, diagonal);
        // Beyond a limit it need not be whole, and stays beyond.
        let below = Integer::from(&whole - 1);
        for threads in [1, 2, 5] {
            assert_eq!(norm(threads, &whole), whole);
            assert!(norm(threads, &below) > below);
        }
        assert_eq!(norm(1, &Integer::from(1)), diagonal(0));
        let mut identity = Fixed::zeros(triangle(order), 4);
        (0..order).for_each(|row| identity.values[packed(row, row)] = Integer::from(32 * 16));
        for threads in [1, 2, 3] {
            assert!(!is_definite(
                &matrix,
                &vec![0; order],
                &Witness { exponent: 0, factor: identity.clone() },
                threads
            ));
        }
    }

    /// Products that pass over zeros are those of all numbers, and as many as are counted at most.
    #[test]
    fn zeros_are_passed_over() {
        let order = 23;
        for spread in 1..6usize {
            let is_kept = |at: usize| at * at % 7 < spread || at.is_multiple_of(spread * 11);
            let value = |at: usize| if is_kept(at) { Integer::from(at * at % 31) - 15u32 } else { Integer::new() };
            let factor = Fixed { bits: 3, values: (0..triangle(order)).map(value).collect() };
            let lines = FactorLines::new(&factor, order);
            let mut made = 0;
            for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
                let all =
                    (0..=col).map(|at| (&factor.values[packed(row, at)] * &factor.values[packed(col, at)]).complete());
                assert_eq!(lines.product(row, col), all.fold(Integer::new(), |sum, next| sum + next), "{row} {col}");
                made += lines.places[row].len().min(lines.places[col].len()) as u64;
            }
            let witness = Witness { exponent: 0, factor: factor.clone() };
            assert_eq!((witness.steps(order), witness.steps(order + 1)), (made, 0));
        }
    }

    #[test]
    fn a_factor_and_its_shift_are_a_matrix() {
        let found = shifted_product(&witness(-2, 3, &[8, 4, 16]), 2).unwrap();
        // L = [[1, 0], [1/2, 2]], tau = 1/4.
        assert_eq!(
            (found.bits, found.values),
            (6, vec![Integer::from(80), Integer::from(32), Integer::from(64 * 4 + 32)])
        );
        assert!(shifted_product(&witness(-7, 3, &[8, 4, 16]), 2).is_none());
    }
}
