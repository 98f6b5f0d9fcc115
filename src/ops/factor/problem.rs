//! The problem of a factorisation: the triangle that is read, its scaling, and how far it can go; from a view, from the
//! tiles of ranks, or from a file.
//!
//! All follow the same rules, so that the bits and the row at which the matrix fails are the same, too.

use crate::comm::{Reduction, Transport};
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::kernels::limbs;
use crate::kernels::max_plus::Spread;
use crate::math::bound::{cholesky_modulus_bits, cholesky_working_bits};
use crate::math::float::{FloatRef, Head, limbs_for, round_shifted};
use crate::math::pivot::{RowWeight, diagonal_exponent, round_shift};
use crate::matrix::{EntryIndex, Matrix, MatrixView, Uplo};
use crate::ops::disk::progress_of;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::rect::Rect;
use crate::site::Site;
use rug::Integer;
use std::cell::OnceCell;
use std::iter;

/// Limbs of a scaled diagonal entry that is kept on the stack.
const SHORT_LIMBS: usize = 80;

/// Added to exponents that travel: then all are positive, and 0 marks a missing one.
const EXPONENT_BIAS: i64 = 1 << 62;

/// A symmetric matrix to factor at one precision; the same on all ranks that share it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FactorProblem {
    /// Rows of the whole matrix.
    pub rows: usize,
    /// Rows to factor: all, or those before the first that already shows the matrix to be indefinite.
    pub order: usize,
    /// Precision of the factor.
    pub precision_bits: u32,
    /// Fixed-point bits of the scaled factor.
    pub working_bits: u32,
    /// `s_i`: the scaled matrix is `a_ij 2^(-s_i - s_j)`; one for each row of `order`.
    pub exponents: Vec<i64>,
    /// Empty running sums of all rows of `order`.
    pub weights: Vec<RowWeight>,
}

impl FactorProblem {
    /// Checks the shape and scales the diagonal of the matrix whose lower triangle is that of `lower`, for a factor of
    /// `precision_bits` that is computed with `working_bits`.
    ///
    /// # Errors
    /// [`Error::NotSquare`] where it is not square.
    pub fn new(lower: MatrixView<'_>, precision_bits: u32, working_bits: u32) -> Result<FactorProblem> {
        FactorProblem::in_lists(Vec::new(), Vec::new(), lower, precision_bits, working_bits)
    }

    /// As [`FactorProblem::new`], in the memory of lists that are no longer needed.
    ///
    /// # Errors
    /// As [`FactorProblem::new`].
    pub fn in_lists(
        mut exponents: Vec<i64>,
        mut weights: Vec<RowWeight>,
        lower: MatrixView<'_>,
        precision_bits: u32,
        working_bits: u32,
    ) -> Result<FactorProblem> {
        let problem = FactorProblem::unscaled(lower.rows(), lower.cols(), precision_bits, working_bits)?;
        exponents.clear();
        weights.clear();
        let mut problem = FactorProblem { exponents, weights, ..problem };
        problem.exponents.reserve(problem.rows);
        problem.exponents.extend((0..problem.rows).map_while(|i| row_exponent(lower.get(i, i).head)));
        let mut order = problem.exponents.len();
        // By columns, as the entries lie in memory; mostly there are no such entries.
        let may_exceed = spread(&lower, &problem.exponents).largest >= 1;
        for (j, &other) in problem.exponents.iter().enumerate().filter(|_| may_exceed) {
            let beyond = |&i: &usize| {
                is_beyond_one(lower.head(i, j), problem.exponents[i] + other, working_bits, || lower.get(i, j))
            };
            order = (j + 1..order).find(beyond).unwrap_or(order);
        }
        problem.cut(order);
        // A scaled diagonal entry is below 1, but may be rounded up to it.
        let count = limbs_for(2 * working_bits + 1);
        let (mut short, mut long) = ([0; SHORT_LIMBS], Vec::new());
        let scaled = if count > SHORT_LIMBS {
            long.resize(count, 0);
            &mut long[..]
        } else {
            &mut short[..count]
        };
        let FactorProblem { exponents, weights, order, .. } = &mut problem;
        weights.extend(
            exponents
                .iter()
                .enumerate()
                .take(*order)
                .map(|(i, &exponent)| first_weight(lower.get(i, i), exponent, working_bits, scaled)),
        );
        Ok(problem)
    }

    /// Only the shape, which is checked.
    ///
    /// # Errors
    /// [`Error::NotSquare`] where it is not square.
    pub(super) fn unscaled(rows: usize, cols: usize, precision_bits: u32, working_bits: u32) -> Result<FactorProblem> {
        check_square(rows, cols)?;
        let (exponents, weights) = (Vec::new(), Vec::new());
        Ok(FactorProblem { rows, order: rows, precision_bits, working_bits, exponents, weights })
    }

    /// The range of the exponents of the entries of `lower` in the rows to factor, below the norms of their rows.
    pub fn spread(&self, lower: &MatrixView<'_>) -> Spread {
        spread(lower, &self.exponents)
    }

    /// Drops the rows from `order` on.
    fn cut(&mut self, order: usize) {
        self.order = order;
        self.exponents.truncate(order);
        self.weights.truncate(order);
    }

    /// Exponents, and the limits of the first weights, of all rows from the first on that can be tried.
    fn take(&mut self, exponents: impl Iterator<Item = i64>, limits: &[u64]) {
        self.exponents = exponents.collect();
        self.weights = limits.iter().map(|&limit| RowWeight { sum: 0, limit }).collect();
        self.cut(self.exponents.len());
    }

    /// Whether the square of an entry with this head is beyond its two diagonal entries.
    fn is_beyond_one<'e>(
        &self,
        EntryIndex { row, col }: EntryIndex,
        head: Head,
        entry: impl FnOnce() -> FloatRef<'e>,
    ) -> bool {
        is_beyond_one(head, self.exponents[row] + self.exponents[col], self.working_bits, entry)
    }

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
            return Err(Error::InvalidArgument(
                "the matrix stores its upper triangle, but a factorisation on several ranks reads the lower one"
                    .to_string(),
            ));
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
        let mut scaled = vec![0; limbs_for(2 * self.working_bits + 1)];
        for (id, tile) in a.tiles().iter().filter(|(id, _)| id.row == id.col) {
            for (at, row) in a.map().row_range(id.row).enumerate() {
                let entry = tile.get(at, at);
                if let Some(exponent) = row_exponent(entry.head) {
                    exponents[row] = (exponent + EXPONENT_BIAS) as u64;
                    limits[row] = first_weight(entry, exponent, self.working_bits, &mut scaled).limit;
                }
            }
        }
        group.all_reduce(Reduction::Max, &mut words)?;
        let (exponents, limits) = words.split_at(self.rows);
        let known = exponents.iter().take_while(|&&word| word > 0);
        self.take(known.map(|&word| word as i64 - EXPONENT_BIAS), limits);
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
            self.is_beyond_one(EntryIndex { row, col }, entry.head, || entry)
        })
    }

    /// The problem of a square file that stores a lower triangle, all of whose entries are checked, and their checksum:
    /// rank 0 reads the file once and its heads twice, does `check`, and sends the problem to all ranks. Collective.
    ///
    /// # Errors
    /// The errors of [`MatrixFile::check`] and of `check`; [`Error::Transport`].
    pub(super) fn of_file(
        site: Site<'_>,
        file: &MatrixFile,
        precision_bits: u32,
        working_bits: u32,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<(FactorProblem, u64)> {
        let unscaled = || FactorProblem::unscaled(file.rows(), file.cols(), precision_bits, working_bits);
        let words = site.root_finds(|| {
            let mut problem = unscaled()?;
            let checksum = problem.scan(site, file)?;
            check()?;
            let exponents = problem.exponents.iter().map(|&exponent| exponent as u64);
            let limits = problem.weights.iter().map(|weight| weight.limit);
            Ok(iter::once(checksum).chain(exponents).chain(limits).collect())
        })?;
        let (&checksum, words) = words.split_first().expect("the checksum was sent");
        let (exponents, limits) = words.split_at(words.len() / 2);
        let mut problem = unscaled()?;
        problem.take(exponents.iter().map(|&word| word as i64), limits);
        Ok((problem, checksum))
    }

    /// Exponents and weights of all rows of a file that can be tried, and the checksum of its entries.
    fn scan(&mut self, site: Site<'_>, file: &MatrixFile) -> Result<u64> {
        let working_bits = self.working_bits;
        let diagonal = file.diagonal_heads()?;
        self.exponents = diagonal.iter().copied().map_while(row_exponent).collect();
        let (problem, mut order) = (&*self, self.exponents.len());
        let checksum = file.check(progress_of(site.ctx), |row, col, head| {
            if row >= order || row <= col {
                return Ok(());
            }
            let (limbs, mut failed) = (OnceCell::new(), None);
            let entry = || {
                let limbs = limbs.get_or_init(|| {
                    file.entry_limbs(row, col).unwrap_or_else(|error| {
                        failed = Some(error);
                        vec![0; file.limbs()]
                    })
                });
                FloatRef { head, limbs }
            };
            if problem.is_beyond_one(EntryIndex { row, col }, head, entry) {
                order = row;
            }
            failed.map_or(Ok(()), Err)
        })?;
        self.cut(order);
        let mut scaled = vec![0; limbs_for(2 * working_bits + 1)];
        for ((row, &head), &exponent) in diagonal.iter().enumerate().zip(&self.exponents) {
            let limbs = file.entry_limbs(row, row)?;
            self.weights.push(first_weight(FloatRef { head, limbs: &limbs }, exponent, working_bits, &mut scaled));
        }
        Ok(checksum)
    }

    /// Whether all rows can be tried.
    pub fn is_whole(&self) -> bool {
        self.order == self.rows
    }
}

/// The input of a factorisation in one process.
#[derive(Clone, Copy)]
pub(crate) struct FactorInput<'a> {
    /// The scaling of the matrix.
    pub problem: &'a FactorProblem,
    /// The matrix, of which the lower triangle is read.
    pub lower: MatrixView<'a>,
}

impl FactorInput<'_> {
    /// Entry `(i, j)` as an integer of the scaled matrix.
    pub fn scaled_entry(&self, i: usize, j: usize) -> Integer {
        let FactorProblem { exponents, working_bits, .. } = self.problem;
        scaled_entry(self.lower.get(i, j), exponents[i] + exponents[j], *working_bits)
    }

    /// The same integer into all of `out`, in two's complement.
    #[inline]
    pub fn scaled_limbs(&self, EntryIndex { row, col }: EntryIndex, out: &mut [u64]) {
        let FactorProblem { exponents, working_bits, .. } = self.problem;
        let entry = self.lower.get(row, col);
        scaled_limbs(entry, exponents[row] + exponents[col], *working_bits, out);
        if entry.head.is_negative() {
            limbs::negate(out);
        }
    }
}

/// The operation named where a matrix that is not square is refused.
pub(crate) const SQUARE: &str = "cholesky";

/// Refuses a matrix that is not square.
///
/// # Errors
/// [`Error::NotSquare`].
pub(crate) fn check_square(rows: usize, cols: usize) -> Result<()> {
    if rows == cols {
        return Ok(());
    }
    Err(Error::NotSquare { operation: SQUARE, rows, cols })
}

/// Fixed-point bits of a factor of `precision_bits`, with moduli up to `2^maximum_modulus_bits`.
///
/// # Errors
/// [`Error::Precision`] where no such moduli are enough.
pub(crate) fn working_bits(precision_bits: u32, maximum_modulus_bits: u32) -> Result<u32> {
    let fits = |bits: u32| cholesky_modulus_bits(cholesky_working_bits(bits)) <= maximum_modulus_bits;
    if precision_bits < 2 || precision_bits > maximum_modulus_bits / 2 || !fits(precision_bits) {
        let maximum_bits = (2..=maximum_modulus_bits / 2).rev().find(|&bits| fits(bits)).unwrap_or(0);
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: maximum_bits.into() });
    }
    Ok(cholesky_working_bits(precision_bits))
}

/// `s_i` of a row by its diagonal entry; `None` where that is not positive.
fn row_exponent(diagonal: Head) -> Option<i64> {
    let is_positive = !diagonal.is_zero() && !diagonal.is_negative();
    is_positive.then(|| diagonal_exponent(diagonal.exponent()))
}

/// The range of the exponents of the entries in the rows that have one of `exponents`, below these and those of their
/// columns.
fn spread(lower: &MatrixView<'_>, exponents: &[i64]) -> Spread {
    let heads = lower.all_heads();
    (0..exponents.len()).fold(Spread::EMPTY, |spread, at| match (lower.row_stride(), lower.col_stride()) {
        (1, _) => spread.with(&heads[lower.element_index(at, at)..], &exponents[at..], exponents[at]),
        (_, 1) => spread.with(&heads[lower.element_index(at, 0)..], &exponents[..=at], exponents[at]),
        _ => (at..exponents.len())
            .fold(spread, |spread, row| spread.with(&[lower.head(row, at).0], &exponents[row..=row], exponents[at])),
    })
}

/// `round(a_ij 2^(2 working_bits - exponents))`, ties to even; `exponents` is `s_i + s_j`.
fn scaled_entry(entry: FloatRef<'_>, exponents: i64, working_bits: u32) -> Integer {
    if entry.head.is_zero() {
        return Integer::new();
    }
    let (integer, exponent) = entry.to_integer_exponent();
    round_shift(&integer, exponent + 2 * i64::from(working_bits) - exponents)
}

/// The magnitude of [`scaled_entry`] into all of `out`, which has room for it.
fn scaled_limbs(entry: FloatRef<'_>, exponents: i64, working_bits: u32, out: &mut [u64]) {
    if entry.head.is_zero() {
        return out.fill(0);
    }
    let exponent = entry.head.exponent() - 64 * entry.limbs.len() as i64;
    round_shifted(entry.limbs, exponents - exponent - 2 * i64::from(working_bits), out);
}

/// Whether the scaled integer of an entry exceeds `2^(2 working_bits)`: its square is then beyond its two diagonal
/// entries. The head nearly always decides; `entry` is called where it does not.
#[inline]
fn is_beyond_one<'a>(head: Head, exponents: i64, working_bits: u32, entry: impl FnOnce() -> FloatRef<'a>) -> bool {
    let exponent = head.exponent() - exponents;
    if head.is_zero() || exponent < 1 {
        return false; // below 1, and rounding is monotone
    }
    exponent > 1 || {
        let scaled = scaled_entry(entry(), exponents, working_bits);
        scaled.significant_bits() > 2 * working_bits + 1 || scaled.abs() > Integer::from(1) << (2 * working_bits)
    }
}

/// The weight of a row with nothing added, from its diagonal entry; `scaled` has room for that entry.
fn first_weight(diagonal: FloatRef<'_>, exponent: i64, working_bits: u32, scaled: &mut [u64]) -> RowWeight {
    scaled_limbs(diagonal, 2 * exponent, working_bits, scaled);
    RowWeight::of_limbs(scaled, working_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
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
