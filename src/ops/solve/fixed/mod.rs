//! Triangular solves in fixed point: exact updates on tiles of residues, one rounding per unknown.
//!
//! Each right side has one power of two for all of its unknowns. The growth of the unknowns relative to the right-hand
//! side is guessed from the diagonal; a column that exceeds the guess is detected exactly, and solved again with more
//! bits or left to recursive splitting. Promise: the result of a column depends only on the triangle, the column and
//! the precision. Proof: docs/ALGORITHM.md, "Solves in fixed point".

mod check;
mod run;
mod together;

use crate::comm::window::{Shown, WindowPieces};
use crate::context::Context;
use crate::error::Result;
use crate::math::float::FloatRef;
use crate::math::pivot::round_shift;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::band::{Band, Spaces, gather, scatter, with_column, within_reach};
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::memory::Retry;
use crate::ops::solve::tiles::{TilePlan, TrySize, first_bits, piece_rows, tries};
use crate::ops::solve::triangle::{Triangle, backwards};
use crate::site::Team;
use rug::Integer;
use std::ops::Range;

/// A triangle as a lower one, its unknowns in the order in which they are found.
pub(crate) struct LowerForm {
    /// Whether rows and columns of the caller's triangle run backwards in the one that is lower.
    pub reversed: bool,
    /// Whether the diagonal is ones.
    pub unit: bool,
    /// Row `i` has a norm of about `2^exponents[i]`, by which it is scaled.
    pub exponents: Vec<i64>,
}

/// A triangle whose rows are scaled by powers of two to norms of about 1, its unknowns in the order in which they are
/// found. Its entries come from [`TriangleRows`].
struct FixedPoint {
    form: LowerForm,
    working_bits: u32,
    accuracy: Accuracy,
    /// Bits beyond those of the unknowns at which the first try is made.
    first_bits: i64,
}

impl FixedPoint {
    /// Power of two below the scaled pivot `i`.
    fn pivot_exponent(&self, rows: &dyn TriangleRows, i: usize) -> i64 {
        let exponent = if self.form.unit { 1 } else { rows.pivot(i).head.exponent() };
        exponent - 1 - self.form.exponents[i]
    }

    /// The scaled pivots as integers with `fixed_bits` after the point.
    fn pivots(&self, rows: &dyn TriangleRows, fixed_bits: u32) -> Vec<Integer> {
        let pivot = |i: usize| {
            let (integer, exponent) = match self.form.unit {
                true => (Integer::from(1), 0),
                false => rows.pivot(i).to_integer_exponent(),
            };
            round_shift(&integer, exponent + i64::from(fixed_bits) - self.form.exponents[i])
        };
        (0..self.order()).map(pivot).collect()
    }

    /// Rows of the triangle.
    fn order(&self) -> usize {
        self.form.exponents.len()
    }
}

/// A triangle in fixed point, and the source of its rows.
pub(crate) struct FixedTriangle<'a> {
    fixed: FixedPoint,
    rows: Box<dyn TriangleRows + 'a>,
}

impl<'a> FixedTriangle<'a> {
    /// A triangle in memory, for unknowns of `working_bits` bits; it is reversed if needed so that it is lower.
    pub fn new(triangle: &Triangle<'a>, working_bits: u32, accuracy: Accuracy) -> FixedTriangle<'a> {
        let reversed = !triangle.is_lower();
        let lower = if reversed { backwards(triangle.view()) } else { triangle.view() };
        let mut exponents = triangle.row_exponents(&(0..triangle.order()));
        if reversed {
            exponents.reverse();
        }
        let form = LowerForm { reversed, unit: triangle.is_unit(), exponents };
        FixedTriangle::of_rows(Box::new(lower), form, working_bits, accuracy)
    }

    /// A lower triangle whose rows come from elsewhere, for unknowns of `working_bits` bits.
    pub fn of_rows(
        rows: Box<dyn TriangleRows + 'a>,
        form: LowerForm,
        working_bits: u32,
        accuracy: Accuracy,
    ) -> FixedTriangle<'a> {
        let mut fixed = FixedPoint { form, working_bits, accuracy, first_bits: 0 };
        // Unknowns are about as large as the reciprocal of the least pivot.
        let growth = (0..fixed.order()).map(|i| -fixed.pivot_exponent(&*rows, i)).max().unwrap_or(0);
        fixed.first_bits = first_bits(growth, accuracy);
        FixedTriangle { fixed, rows }
    }

    /// The bits after the point that are tried, one after the other.
    pub fn tries(&self) -> impl Iterator<Item = u32> + use<> {
        let FixedPoint { working_bits, first_bits, .. } = self.fixed;
        tries(working_bits, first_bits).map(move |extra_bits| working_bits + extra_bits)
    }

    /// Replaces the columns `live` of `spaces.w` by their solutions where some try holds them; returns the numbers of
    /// the other columns, which stay unchanged. Collective.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place in the solution; [`crate::Error::Cancelled`];
    /// [`crate::Error::OutOfMemory`]; the errors of `rows`.
    pub fn run(
        &mut self,
        band: &Band<'_>,
        cut: &TriangleCut,
        live: Vec<usize>,
        spaces: &mut Spaces,
    ) -> Result<Vec<usize>> {
        let (columns, site) = (spaces.w.cols(), band.site());
        let mut left = live;
        for (index, fixed_bits) in self.tries().enumerate() {
            let whole = index == 0 && left.len() == columns;
            let in_place =
                if whole { band.memory.tries_in_place(cut, band.columns, fixed_bits) } else { Ok(left.is_empty()) };
            let retry = in_place.and_then(|in_place| match in_place {
                true => Ok(None),
                false => band.memory.retry(band.columns).map(Some),
            });
            let retry = site.agreed(retry)?;
            let most = retry.map_or(columns.max(1), |retry| retry.columns);
            let rounds = site.largest(left.len().div_ceil(most) as u64)?;
            if rounds == 0 {
                break;
            }
            // Later tries have few columns; for them each rank makes all tiles itself.
            let together = match band.memory.together.filter(|_| index == 0) {
                Some(ranks) if site.smallest(u64::from(retry.is_none()))? == 1 => Some(ranks),
                _ => None,
            };
            let is_first = index == 0 && retry.is_none();
            let kernel = if is_first { band.memory.first_kernel(band.columns) } else { None };
            let mut rest = Vec::new();
            for round in 0..rounds as usize {
                let end = left.len().min((round + 1) * most);
                let some = &left[end.min(round * most)..end];
                let size = band.memory.try_size(cut, some.len(), fixed_bits, together, kernel);
                rest.extend(self.attempt(band, cut, size, retry, some, spaces)?);
            }
            left = rest;
            if retry.is_some() {
                spaces.again = Matrix::zeros(0, 0, 2)?; // the next step counts on its memory
            }
        }
        Ok(left)
    }

    /// One try on some columns, in place on all columns of a band, or on copies within the limits of `retry`; returns
    /// the columns that outgrow it. Collective.
    fn attempt(
        &mut self,
        band: &Band<'_>,
        cut: &TriangleCut,
        size: TrySize,
        retry: Option<Retry>,
        some: &[usize],
        spaces: &mut Spaces,
    ) -> Result<Vec<usize>> {
        let (ctx, memory, site, together) = (band.ctx(), band.memory, band.site(), size.together);
        let copied = if retry.is_some() { some.len() } else { 0 };
        let limit_bytes = retry.map_or(band.limit_bytes, |retry| Some(retry.limit_bytes));
        if retry.is_some() {
            ctx.release(); // under a limit the tables of the next engine take the room of the last round's windows
        }
        let beside = |held_bytes: u64| ctx.memory().within(limit_bytes).holding(held_bytes);
        let made = match some.is_empty() && together.is_none() {
            true => Ok(None),
            false => memory
                .held_by_try(cut, band.columns, copied)
                .and_then(|bytes| plan_try(ctx, limit_bytes, bytes, size).map(Some)),
        };
        let plan = site.agreed(made)?;
        // All ranks use the pieces of the rank with the least memory for them; a rank without columns also takes part,
        // since it has rows that others need.
        let idle_rows = || piece_rows(beside(cut.right_bytes(band.columns)), &size);
        let own_rows = plan.as_ref().map_or_else(idle_rows, |plan| plan.tile_rows);
        let tile_rows = site.smallest(own_rows as u64)? as usize;
        let plan = plan.map(|plan| plan.with_tile_rows(tile_rows));
        match (&plan, self.rows.together().filter(|_| together.is_some())) {
            (Some(plan), Some(rows)) => rows.begin(plan.most_strip_entries(), plan.window_words())?,
            _ => site.agreed(self.rows.begin(tile_rows))?,
        }
        let left = match plan {
            None => Ok(Vec::new()),
            Some(plan) if retry.is_none() => run::run(ctx, self, &plan, &mut spaces.w, band.first_row),
            Some(plan) => self.attempt_copies(band, &plan, some, spaces),
        };
        let finished = match self.rows.together().filter(|_| together.is_some()) {
            Some(rows) => rows.end(),
            None => self.rows.finish(),
        };
        site.agreed(finished.and(left).map_err(|error| band.placed(error)))
    }

    /// One try on copies of some columns.
    fn attempt_copies(
        &mut self,
        band: &Band<'_>,
        plan: &TilePlan,
        some: &[usize],
        spaces: &mut Spaces,
    ) -> Result<Vec<usize>> {
        let Spaces { w, again, .. } = spaces;
        gather(w, some, again)?;
        let rest = run::run(band.ctx(), self, plan, again, band.first_row).map_err(|error| with_column(error, some))?;
        scatter(again, some, &rest, w);
        Ok(rest.into_iter().map(|at| some[at]).collect())
    }
}

/// The plan of a try that holds `held_bytes` bytes already, within `planned_bytes`; a later try may need more than the
/// plan reserved.
fn plan_try(ctx: &Context, planned_bytes: Option<u64>, held_bytes: u64, size: TrySize) -> Result<TilePlan> {
    let memory = |bytes| ctx.memory().within(bytes).holding(held_bytes);
    within_reach(planned_bytes, ctx.memory_bytes(), |bytes| TilePlan::new(ctx, memory(bytes), size))
}

/// A lower triangle, row by row.
pub(crate) trait TriangleRows {
    /// The pivot of row `row`; not used where the diagonal is ones.
    fn pivot(&self, row: usize) -> FloatRef<'_>;

    /// Begins a pass over the rows, in pieces of `_piece_rows` rows. Collective where the rows come from ranks.
    ///
    /// # Errors
    /// The errors of the source that brings the rows.
    fn begin(&mut self, _piece_rows: usize) -> Result<()> {
        Ok(())
    }

    /// The rows `rows`, at least as far as their diagonal. Called from the first row to the last.
    ///
    /// # Errors
    /// The errors of the source that brings the rows.
    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>>;

    /// Ends the pass, whether or not all rows were read. Collective where the rows come from ranks.
    ///
    /// # Errors
    /// The errors of the source that brings the rows.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// The same rows for ranks that make the tiles of a row together; `None` where there is one rank.
    fn together(&mut self) -> Option<&mut dyn SharedRows> {
        None
    }
}

/// A lower triangle, row by row, whose tiles the ranks of each node make together: all of a node read the entries of a
/// row of tiles in one window, write its tiles into another, and publish each to the others when it is finished.
pub(crate) trait SharedRows {
    /// The team: all ranks, and their nodes.
    fn team(&self) -> &Team;

    /// Begins a pass over the rows, in pieces of at most `piece_entries` entries, with tiles of `tile_words` words in
    /// all. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`]; on every rank.
    fn begin(&mut self, piece_entries: usize, tile_words: usize) -> Result<()>;

    /// Brings some rows to each node, from a column on up to the diagonal; entries from another node arrive at the rank
    /// whose columns `cols(rank)` contain them. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn share(&mut self, from: RowsFrom<'_>, cols: &dyn Fn(usize) -> Range<usize>) -> Result<()>;

    /// The rows brought last, and the tiles to make from them, once no rank works on those of another row. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn making<'a>(&'a mut self, tiles: &'a WindowPieces) -> Result<Making<'a>>;

    /// The pass is over. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn end(&mut self) -> Result<()>;
}

/// A row of tiles on its way from entries to residues.
pub(crate) struct Making<'a> {
    /// The entries.
    pub piece: RowPiece<'a>,
    /// The tiles that this rank makes, in order.
    pub own: Vec<&'a mut [u64]>,
    /// Publishes this rank's tiles and finds those of the other ranks of the node.
    pub shown: Shown<'a>,
}

/// Rows of a triangle from a column on.
#[derive(Clone, Copy)]
pub(crate) struct RowsFrom<'a> {
    pub rows: &'a Range<usize>,
    pub first_col: usize,
}

/// Some rows of a triangle.
pub(crate) struct RowPiece<'a> {
    /// Their entries; nothing above the diagonal is read.
    pub view: MatrixView<'a>,
    /// The row of the triangle that is the first of the view.
    pub first: usize,
    /// The column of the triangle that is the first of the view.
    pub first_col: usize,
}

impl TriangleRows for MatrixView<'_> {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        self.get(row, row)
    }

    fn rows(&mut self, _rows: Range<usize>) -> Result<RowPiece<'_>> {
        Ok(RowPiece { view: *self, first: 0, first_col: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::kernels;
    use crate::matrix::{Diag, MAXIMUM_EXPONENT, Uplo};
    use crate::ops::solve::cut::TrianglePieces;
    use crate::ops::solve::memory::{SolveMemory, UnsolvedColumns};

    const ORDER: usize = 80;

    /// 1 on the diagonal, -8 below it: a right side `e_s` has the unknowns `8^(i - s)`.
    fn growing() -> Matrix {
        let mut t = Matrix::zeros(ORDER, ORDER, 90).unwrap();
        for i in 0..ORDER {
            t.set_f64(i, i, 1.0).unwrap();
            if i > 0 {
                t.set_f64(i, i - 1, -8.0).unwrap();
            }
        }
        t
    }

    /// Solves all columns of `w` in one band without parts; returns the columns that remain.
    fn run(ctx: &Context, (triangle, diag): (MatrixView<'_>, Diag), uplo: Uplo, w: &mut Matrix) -> Result<Vec<usize>> {
        let triangle = Triangle::new(triangle, uplo, diag).unwrap();
        let mut fixed = FixedTriangle::new(&triangle, 100, Accuracy::Norm);
        let first_try_bits = fixed.tries().next();
        let (accuracy, pieces) = (Accuracy::Norm, TrianglePieces::WHOLE);
        let cut = TriangleCut { order: ORDER, working_bits: 100, first_try_bits, accuracy, pieces };
        let memory = SolveMemory { left: UnsolvedColumns::Stay, ..SolveMemory::new(ctx.clone(), vec![cut]) };
        let band = Band::first(&memory, 9, None);
        let empty = || Matrix::zeros(0, 0, 2).unwrap();
        let mut spaces = Spaces { w: std::mem::replace(w, empty()), result: empty(), again: empty() };
        let left = fixed.run(&band, &cut, (0..9).collect(), &mut spaces);
        *w = spaces.w;
        left
    }

    #[test]
    fn columns_that_outgrow_every_try_are_left_alone() {
        let t = growing();
        // How often the unknowns of each column grow; the tries hold 29 and 61 bits of growth.
        let growths = [79usize, 0, 5, 12, 8, 30, 15, 1, 17];
        for (kernel, uplo) in kernels::available().into_iter().flat_map(|k| [(k, Uplo::Lower), (k, Uplo::Upper)]) {
            let ctx = Context::builder().threads(2).kernel(kernel.name()).build().unwrap();
            let view = if uplo == Uplo::Lower { t.view() } else { t.transposed() };
            let place = |step: usize| if uplo == Uplo::Lower { ORDER - 1 - step } else { step };
            for diag in [Diag::NonUnit, Diag::Unit] {
                let mut w = Matrix::zeros(ORDER, 9, 100).unwrap();
                for (col, &growth) in growths.iter().enumerate() {
                    w.set_f64(place(growth), col, -3.0).unwrap();
                }
                let before = w.clone();
                assert_eq!(run(&ctx, (view, diag), uplo, &mut w).unwrap(), [0, 5], "{}", kernel.name());
                for (col, &growth) in growths.iter().enumerate() {
                    for step in 0..ORDER {
                        let got = w.float(place(step), col).to_f64();
                        let want = match [0, 5].contains(&col) {
                            true => before.float(place(step), col).to_f64(),
                            false if step <= growth => -3.0 * 8f64.powi((growth - step) as i32),
                            false => 0.0,
                        };
                        assert_eq!(got, want, "{} {uplo:?} {diag:?} column {col}, step {step}", kernel.name());
                    }
                }
            }
        }
    }

    #[test]
    fn unknowns_beyond_the_exponent_range_are_named_by_their_column_of_the_right_sides() {
        let (t, ctx) = (growing(), Context::builder().threads(1).build().unwrap());
        let mut w = Matrix::zeros(ORDER, 9, 100).unwrap();
        for col in 0..9 {
            // Columns 4 and 7 take a second try; one of them ends beyond the range.
            let (row, exponent) = match col {
                4 => (ORDER - 16, MAXIMUM_EXPONENT - 10),
                7 => (ORDER - 16, 0),
                _ => (ORDER - 1, 0),
            };
            w.set_integer_exponent(row, col, &Integer::from(1), exponent).unwrap();
        }
        match run(&ctx, (t.view(), Diag::NonUnit), Uplo::Lower, &mut w) {
            Err(Error::ExponentRange { column: 4, row, .. }) => assert!(row > ORDER - 16),
            other => panic!("{other:?}"),
        }
    }
}
