//! The data of the whole matrix that a factorisation on many ranks needs: exponents and first weights of all rows, and
//! how far it can go.
//!
//! The rules are those of one process (`ops::factor::scaling`), so that the bits and the failing row are the same, too.

use crate::comm::{Reduction, Transport};
use crate::error::{Error, Result};
use crate::math::pivot::RowWeight;
use crate::matrix::{Matrix, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::rect::Rect;
use crate::ops::factor::problem::FactorProblem;
use crate::ops::factor::scaling::{is_beyond_one, row_exponent, scaled_entry};

/// Added to exponents that travel: then all are positive, and 0 marks a missing one.
const EXPONENT_BIAS: i64 = 1 << 62;

impl FactorProblem {
    /// Checks the shape of `a` and scales its diagonal, for a factor of `precision_bits` and the `working_bits` that it
    /// takes; the lower triangle is read. Collective over `group`, the ranks of the matrix: two reductions, of 2 words
    /// for each row and of one.
    ///
    /// # Errors
    /// [`Error::NotSquare`] where `a` is not square, [`Error::InvalidArgument`] where its lower triangle is not
    /// held, [`Error::Transport`]; on every rank.
    pub fn over_ranks(
        group: &dyn Transport,
        a: &DistMatrix,
        precision_bits: u32,
        working_bits: u32,
    ) -> Result<FactorProblem> {
        a.check_group(group)?;
        let mut problem = FactorProblem::unscaled(a.map().rows, a.map().cols, precision_bits, working_bits)?;
        if a.map().triangle == Some(Uplo::Upper) {
            return Err(Error::InvalidArgument("a factorisation on many ranks reads the lower triangle".to_string()));
        }
        problem.share_diagonal(group, a)?;
        let mut least = [problem.first_beyond_one(a) as u64];
        group.all_reduce(Reduction::Min, &mut least)?;
        problem.cut(least[0] as usize);
        Ok(problem)
    }

    /// Exponents and weights of all rows before the first with a diagonal entry of at most 0.
    fn share_diagonal(&mut self, group: &dyn Transport, a: &DistMatrix) -> Result<()> {
        let mut words = vec![0; 2 * self.rows];
        let (exponents, limits) = words.split_at_mut(self.rows);
        for (id, tile) in a.tiles().iter().filter(|(id, _)| id.row == id.col) {
            for (at, row) in a.map().row_range(id.row).enumerate() {
                let entry = tile.get(at, at);
                if let Some(exponent) = row_exponent(entry.head) {
                    let scaled = scaled_entry(entry, 2 * exponent, self.working_bits);
                    exponents[row] = (exponent + EXPONENT_BIAS) as u64;
                    limits[row] = RowWeight::new(&scaled, self.working_bits).limit;
                }
            }
        }
        group.all_reduce(Reduction::Max, &mut words)?;
        let (exponents, limits) = words.split_at(self.rows);
        let known = exponents.iter().take_while(|&&word| word > 0);
        self.exponents = known.map(|&word| word as i64 - EXPONENT_BIAS).collect();
        self.weights = limits.iter().map(|&limit| RowWeight { sum: 0, limit }).collect();
        self.cut(self.exponents.len());
        Ok(())
    }

    /// The first row of `order` with an entry in one of this rank's tiles whose square is beyond its two diagonal
    /// entries; `order` where there is none.
    fn first_beyond_one(&self, a: &DistMatrix) -> usize {
        let tiles = a.tiles().iter().filter(|(id, _)| id.col <= id.row);
        tiles.fold(self.order, |first, (id, tile)| {
            let place = Rect::of_tile(a.map(), *id);
            let mut rows = place.rows.start..place.rows.end.min(first);
            rows.find(|&row| self.is_row_beyond_one(row, &place, tile)).unwrap_or(first)
        })
    }

    fn is_row_beyond_one(&self, row: usize, place: &Rect, tile: &Matrix) -> bool {
        (place.cols.start..place.cols.end.min(row)).any(|col| {
            let entry = tile.get(row - place.rows.start, col - place.cols.start);
            is_beyond_one(entry.head, self.exponents[row] + self.exponents[col], self.working_bits, || entry)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::ops::factor::problem::working_bits;
    use crate::testing::effort;
    use crate::tile::{RankGrid, TileMap};
    use rug::{Float, Integer, rand::RandState};

    const MODULUS_BITS: u32 = 11_000;

    /// A matrix with a large diagonal, its rows and columns scaled by powers of two up to `2^spread`.
    fn scaled(n: usize, spread: u32, rng: &mut RandState<'_>) -> Matrix {
        let shifts = (0..n).map(|_| i64::from(rng.below(2 * spread + 1)) - i64::from(spread)).collect::<Vec<_>>();
        let mut a = Matrix::zeros(n, n, 100).unwrap();
        for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let size = Integer::from(Integer::random_bits(90, rng));
            let value = if i == j { size + (Integer::from(1) << 90) } else { size - (Integer::from(1) << 89) };
            a.set_integer_exponent(i, j, &value, shifts[i] + shifts[j]).unwrap();
        }
        a
    }

    /// Tiles of one size on each number of ranks, with more effort or more turns of all sizes.
    fn check(a: &Matrix, precision_bits: u32, turn: usize, what: &str) -> usize {
        let bits = working_bits(precision_bits, MODULUS_BITS).unwrap();
        let want = FactorProblem::new(a.view(), precision_bits, bits).unwrap();
        for ranks in 1..=7 {
            let tiles = [(8, Some(Uplo::Lower)), (16, None), (40, Some(Uplo::Lower))];
            let all = tiles.into_iter().enumerate();
            for (_, (tile_size, triangle)) in all.filter(|(at, _)| effort() > 1 || *at == (ranks + turn) % 3) {
                let grid = RankGrid::for_ranks(ranks);
                let map = TileMap { rows: a.rows(), cols: a.cols(), tile_size, grid, triangle };
                local::run(ranks, |rank| {
                    let part = DistMatrix::scatter(rank, 0, (rank.rank() == 0).then_some(a), map, 100).unwrap();
                    let got = FactorProblem::over_ranks(rank, &part, precision_bits, bits).unwrap();
                    let place = format!("{what}: rank {} of {ranks}, tiles of {tile_size}", rank.rank());
                    assert_eq!(got, want, "{place}");
                });
            }
        }
        want.order
    }

    #[test]
    fn all_ranks_know_what_one_process_knows() {
        let mut rng = RandState::new();
        for (n, spread) in [(0, 0), (1, 3), (9, 0), (40, 5000), (67, 1 << 28)] {
            let a = scaled(n, spread, &mut rng);
            for turn in 0..3 {
                let order = check(&a, 90, turn, &format!("{n} rows, spread {spread}"));
                assert_eq!(order, n, "off the diagonal all entries are small");
            }
        }
    }

    #[test]
    fn the_first_row_that_shows_the_matrix_indefinite_is_the_same() {
        let mut rng = RandState::new();
        let mut orders = Vec::new();
        for case in 0..30 {
            let mut a = scaled(50, [0, 300][case % 2], &mut rng);
            // Some bad diagonal entries and some entries whose squares are beyond, or exactly at, their diagonal's.
            for _ in 0..rng.below(3) {
                let i = rng.below(50) as usize;
                a.set_float(i, i, &Float::with_val(100, -i64::from(rng.below(2)))).unwrap();
            }
            for _ in 0..1 + rng.below(4) {
                let i = 1 + rng.below(49) as usize;
                let j = rng.below(i as u32) as usize;
                let root = (a.float(i, i).abs() * a.float(j, j).abs()).sqrt();
                a.set_float(i, j, &(root << (2 * rng.below(2)))).unwrap();
            }
            orders.push(check(&a, [20, 98][case % 2], case / 2, &format!("case {case}")));
        }
        orders.sort_unstable();
        orders.dedup();
        assert!(orders.len() > 10, "{orders:?}");
    }

    #[test]
    fn what_cannot_be_factored_is_refused_on_all_ranks() {
        let grid = RankGrid::for_ranks(3);
        let map = TileMap { rows: 20, cols: 20, tile_size: 8, grid, triangle: None };
        local::run(3, |rank| {
            let of = |map| DistMatrix::zeros(map, rank.rank(), 100).unwrap();
            let new = |map| FactorProblem::over_ranks(rank, &of(map), 90, working_bits(90, MODULUS_BITS).unwrap());
            assert!(matches!(new(TileMap { cols: 21, ..map }), Err(Error::NotSquare { .. })));
            let upper = TileMap { triangle: Some(Uplo::Upper), ..map };
            assert!(matches!(new(upper), Err(Error::InvalidArgument(_))));
            assert_eq!(new(map).unwrap().order, 0);
        });
    }
}
