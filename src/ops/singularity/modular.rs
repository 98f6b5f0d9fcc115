//! Matrices modulo one prime below `2^61`: elimination with pivots, and the inverse.
//!
//! Independent of: where the numbers come from, beyond [`Exact`].

use super::Exact;
use rug::Integer;
use rug::integer::IntegerExt64;

/// Number of products of two residues that fit a sum of 128 bits in addition to a residue: each is below `2^122`.
const PRODUCTS_AT_ONCE: usize = 32;

/// The field of residues modulo an odd prime below `2^61`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrimeField {
    pub prime: u64,
}

impl PrimeField {
    pub fn product(self, a: u64, b: u64) -> u64 {
        (u128::from(a) * u128::from(b) % u128::from(self.prime)) as u64
    }

    pub fn power(self, base: u64, exponent: u64) -> u64 {
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
    pub fn inverse(self, a: u64) -> u64 {
        self.power(a, self.prime - 2)
    }

    pub fn residue(self, number: &Integer) -> u64 {
        number.mod_u64(self.prime)
    }

    /// `2^exponent`; negative exponents are no exception, as the prime is odd.
    fn power_of_two(self, exponent: i64) -> u64 {
        self.power(2, exponent.rem_euclid(self.prime as i64 - 1) as u64)
    }

    /// `sum_k a_k b_k`.
    pub fn dot(self, a: &[u64], b: &[u64]) -> u64 {
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
    pub fn inverse_matrix(self, rows: &[Vec<u64>]) -> Option<Vec<Vec<u64>>> {
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
pub(super) struct Elimination {
    pub field: PrimeField,
    /// The column and the row of each pivot, in the order of the columns.
    pivots: Vec<(usize, usize)>,
}

impl Elimination {
    /// Eliminates a matrix modulo a prime; `None` where that divides a denominator.
    pub fn of(matrix: &Exact<'_>, prime: u64) -> Option<Elimination> {
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
    pub fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// Columns before the first that depends on those before it.
    pub fn leading_rank(&self) -> usize {
        self.pivots.iter().enumerate().take_while(|(at, (col, _))| at == col).count()
    }

    /// Rows in which the columns before the first dependent one are independent, one for each of these columns.
    pub fn leading_rows(&self) -> Vec<usize> {
        self.pivots[..self.leading_rank()].iter().map(|&(_, row)| row).collect()
    }
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
}
