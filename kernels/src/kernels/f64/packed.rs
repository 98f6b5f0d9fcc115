//! Substitutions in doubles for eight right-hand sides at once.
//!
//! Products are rounded before they are subtracted, so every instruction set gives the same bits. Independent of: big
//! floats, the use of the solutions, threads.

use super::simd::{DoubleVector, F64Isa, F64Task};

pub use super::simd::LANES;

/// One entry of each right-hand side.
pub type RightSideRow = [f64; LANES];

/// Replaces right-hand sides, row by row, by the solutions of `L L^T X = B`.
///
/// `lower` has the columns of `L` one after the other, each from its diagonal entry on: `n (n + 1) / 2` entries for the
/// `n` rows (asserted).
pub fn solve_packed(lower: &[f64], rows: &mut [RightSideRow]) {
    F64Isa::detect().run(PackedSolve { lower, rows });
}

struct PackedSolve<'a> {
    lower: &'a [f64],
    rows: &'a mut [RightSideRow],
}

impl F64Task for PackedSolve<'_> {
    #[inline(always)]
    fn run<V: DoubleVector, const N: usize>(self) {
        let (order, zero) = (self.rows.len(), V::splat(0.0));
        assert_eq!(self.lower.len(), order * (order + 1) / 2);
        let mut rest = self.lower;
        for col in 0..order {
            let (column, later) = rest.split_at(order - col);
            rest = later;
            divide(&mut self.rows[col], column[0]);
            let known = V::load(&self.rows[col]);
            for (row, &entry) in self.rows[col + 1..].iter_mut().zip(&column[1..]) {
                V::load(row).sub(known.mul_add(V::splat(entry), zero)).store(row);
            }
        }
        let mut rest = self.lower;
        for col in (0..order).rev() {
            let (earlier, column) = rest.split_at(rest.len() - (order - col));
            rest = earlier;
            let mut value = V::load(&self.rows[col]);
            for (row, &entry) in self.rows[col + 1..].iter().zip(&column[1..]) {
                value = value.sub(V::load(row).mul_add(V::splat(entry), zero));
            }
            value.store(&mut self.rows[col]);
            divide(&mut self.rows[col], column[0]);
        }
    }
}

#[inline(always)]
fn divide(row: &mut RightSideRow, divisor: f64) {
    for value in row {
        *value /= divisor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_are_the_same_with_all_instructions_and_small_ones_exact() {
        for order in [0, 1, 2, 7, 64, 65] {
            let mut lower = Vec::new();
            for col in 0..order {
                lower.extend(
                    (col..order).map(|row| if row == col { 2.0 } else { ((row * 5 + col * 3) % 7) as f64 - 3.0 }),
                );
            }
            let at = |row: usize, col: usize| lower[col * order - col * (col + 1) / 2 + row];
            // L L^T times small integers, exactly.
            let want = (0..order).map(|row| std::array::from_fn(|lane| ((row + lane) % 5) as f64 - 2.0));
            let want = want.collect::<Vec<RightSideRow>>();
            let apply = |vector: &[RightSideRow], entry: &dyn Fn(usize, usize) -> f64| -> Vec<RightSideRow> {
                let sum = |row: usize, lane: usize| (0..order).map(|k| entry(row, k) * vector[k][lane]).sum();
                (0..order).map(|row| std::array::from_fn(|lane| sum(row, lane))).collect()
            };
            let half = apply(&want, &|row, k| if k >= row { at(k, row) } else { 0.0 });
            let right = apply(&half, &|row, k| if k <= row { at(row, k) } else { 0.0 });
            let all = F64Isa::available().map(|isa| {
                let mut rows = right.clone();
                isa.run(PackedSolve { lower: &lower, rows: &mut rows });
                rows
            });
            let all = all.collect::<Vec<_>>();
            let mut found = right.clone();
            solve_packed(&lower, &mut found);
            assert!(all.iter().all(|rows| *rows == found));
            if order <= 7 {
                assert_eq!(found, want);
            }
        }
    }
}
