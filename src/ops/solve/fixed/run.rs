//! Carries out one try: tile row by tile row of the triangle, all right-hand sides of a strip at once.

use super::check::{RowDepths, UnknownDepths};
use super::{FixedPoint, FixedTriangle, RowPiece, TriangleRows};
use crate::comm::agreed;
use crate::comm::idle::{Idle, Patience};
use crate::context::{Context, Workspace};
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::kernels::tiles::{
    DiagonalData, DiagonalTile, PANEL_ROWS, PanelColumn, SolveTile, TileEngine, TilePart, TileShape, TileSource,
    UpdateTile,
};
use crate::math::bound::{TRSM_FIXED_SPARE_BITS, trsm_fixed_depth};
use crate::math::float::round_integer;
use crate::math::pivot::RowWeight;
use crate::matrix::{Matrix, MatrixView, check_exponent};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::tiles::TilePlan;
use rug::Integer;
use std::ops::Range;

/// The largest number of strips of right-hand sides that share the triangle's tiles in one step.
const STEP_STRIPS: usize = 8;

/// One try.
pub(super) struct FixedRun<'a> {
    fixed: &'a FixedPoint,
    pub plan: &'a TilePlan,
    pub engine: &'a dyn TileEngine,
    /// The right-hand sides as rows, in the order of the unknowns.
    right: MatrixView<'a>,
    /// The unknowns of right side `j` are integers times `2^(exponents[j] - fixed_bits)`.
    exponents: Vec<i64>,
    pub pivots: Vec<Integer>,
    /// Shifts of the rows of the triangle, and of its columns.
    triangle_shifts: (Vec<i64>, Vec<i64>),
    /// Shifts of the right-hand sides, and of their entries.
    right_shifts: (Vec<i64>, Vec<i64>),
    /// First row of tiles in which a right side is not 0.
    pub first: usize,
    /// Bits beyond those of the unknowns.
    extra_bits: u32,
}

/// The tiles of some right-hand sides.
pub(super) struct RightSideStrip<'w> {
    index: usize,
    /// One for each tile row of the triangle.
    tiles: Vec<&'w mut [u64]>,
    weights: Vec<RowWeight>,
    /// Of the unknowns so far, for accuracy entry by entry.
    depths: Option<UnknownDepths>,
}

impl RightSideStrip<'_> {
    /// Whether all of its right-hand sides have outgrown the try.
    pub fn is_rejected(&self) -> bool {
        self.weights.iter().all(|weight| weight.is_rejected())
    }
}

/// A tile row of the triangle, as a solve reads it.
pub(super) trait RowTiles: Sync {
    /// The tile in that column before the one on the diagonal, where it is finished.
    fn before(&self, col: usize) -> Option<&[u64]>;

    /// The tile on the diagonal, as soon as it is finished, with the other data that a solve needs.
    fn diagonal(&self) -> DiagonalTile<'_>;

    /// For accuracy entry by entry.
    fn depths(&self) -> Option<&RowDepths> {
        None
    }
}

/// A tile row that is loaded.
struct LoadedRow<'a> {
    /// Its tiles, the first one in column `first`.
    tiles: &'a [&'a mut [u64]],
    first: usize,
    data: Box<dyn DiagonalData>,
    depths: Option<RowDepths>,
}

impl RowTiles for LoadedRow<'_> {
    fn before(&self, col: usize) -> Option<&[u64]> {
        Some(&*self.tiles[col - self.first])
    }

    fn diagonal(&self) -> DiagonalTile<'_> {
        DiagonalTile { words: &*self.tiles[self.tiles.len() - 1], data: &*self.data }
    }

    fn depths(&self) -> Option<&RowDepths> {
        self.depths.as_ref()
    }
}

/// Replaces the columns of `w` that fit the scale by their solutions; returns the numbers of the other columns.
///
/// # Errors
/// The errors of [`FixedTriangle::run`].
pub fn run(
    ctx: &Context,
    triangle: &mut FixedTriangle<'_>,
    plan: &TilePlan,
    w: &mut Matrix,
    first: usize,
) -> Result<Vec<usize>> {
    let FixedTriangle { fixed, rows } = triangle;
    let mut workspace = ctx.workspace();
    let workspace = &mut *workspace;
    let taken = take_memory(plan, workspace);
    let ((words, row_words), mut scratch) = match rows.together().filter(|_| plan.size.together.is_some()) {
        Some(rows) => agreed(rows.team().world(), taken)?,
        None => taken?,
    };
    let run = FixedRun::new(fixed, &**rows, plan, w, first);
    let meter = Meter::new(ctx, ((plan.tiles() - run.first) * plan.strips()) as u64);
    let mut strips = run.strips(words);
    let solved = match rows.together().filter(|_| plan.size.together.is_some()) {
        Some(rows) => run.solve_together(&meter, rows, &mut strips, &mut scratch),
        None => run.solve(&meter, &mut **rows, &mut strips, row_words, &mut scratch),
    };
    run.engine.end_operation();
    solved?;
    let (exponents, first) = (run.exponents, run.first);
    let solved = Solved { fixed, plan, first_tile: first, strips: &strips, exponents: &exponents };
    solved.store(&meter, w, &mut scratch)?;
    let weights = strips.iter().flat_map(|strip| &strip.weights).enumerate();
    Ok(weights.filter(|(_, weight)| weight.is_rejected()).map(|(at, _)| at).collect())
}

/// Memory of a try, from the kept memory: for the solution and for a row of the triangle, and scratch of each worker.
type Taken<'m> = ((&'m mut [u64], &'m mut [u64]), Vec<&'m mut [u64]>);

/// Takes the memory of a try.
fn take_memory<'m>(plan: &TilePlan, workspace: &'m mut Workspace) -> Result<Taken<'m>> {
    plan.trim(workspace);
    workspace.reserve_workers(plan.threads);
    let Workspace { operands, products, workers, .. } = workspace;
    let mut scratch = Vec::with_capacity(plan.threads);
    for worker in &mut workers[..plan.threads] {
        scratch.push(worker.scratch.words(plan.scratch_words())?);
    }
    Ok(((operands.words(plan.solution_words())?, products.words(plan.own_row_words())?), scratch))
}

impl<'a> FixedRun<'a> {
    fn new(
        fixed: &'a FixedPoint,
        rows: &dyn TriangleRows,
        plan: &'a TilePlan,
        w: &'a Matrix,
        first: usize,
    ) -> FixedRun<'a> {
        let bits = i64::from(plan.size.fixed_bits);
        let right = if fixed.form.reversed { w.view().reversed_rows() } else { w.view() }.transposed();
        let extra_bits = plan.size.fixed_bits - fixed.working_bits;
        // Entry by entry, half of the bits are for rows far below the largest unknown.
        let growth_bits = if fixed.accuracy == Accuracy::Entrywise { extra_bits / 2 } else { extra_bits };
        let spare = i64::from(growth_bits) - i64::from(TRSM_FIXED_SPARE_BITS);
        let largest = |col: usize| {
            let sizes =
                fixed.form.exponents.iter().enumerate().map(|(row, exponent)| (right.get(col, row).head, exponent));
            sizes.filter(|(head, _)| !head.is_zero()).map(|(head, exponent)| head.exponent() - exponent).max()
        };
        let exponents = (0..w.cols()).map(|col| largest(col).unwrap_or(0) + spare).collect::<Vec<_>>();
        FixedRun {
            fixed,
            plan,
            engine: &*plan.engine,
            right,
            pivots: fixed.pivots(rows, plan.size.fixed_bits),
            triangle_shifts: (
                fixed.form.exponents.iter().map(|exponent| bits - exponent).collect(),
                vec![0; plan.size.order],
            ),
            right_shifts: (
                exponents.iter().map(|exponent| 2 * bits - exponent).collect(),
                fixed.form.exponents.iter().map(|exponent| -exponent).collect(),
            ),
            exponents,
            first: first / plan.tile_rows,
            extra_bits,
        }
    }

    /// The right-hand sides, with memory for their unknowns.
    fn strips<'w>(&self, mut words: &'w mut [u64]) -> Vec<RightSideStrip<'w>> {
        let plan = self.plan;
        // An entry of B is 1 at most, and so is the sum of squares of a row that is not rejected.
        let one = RowWeight::new(&(Integer::from(1) << (2 * plan.size.fixed_bits)), plan.size.fixed_bits);
        let mut strips = Vec::with_capacity(plan.strips());
        for index in 0..plan.strips() {
            let mut tiles = Vec::with_capacity(plan.tiles());
            for row in 0..plan.tiles() {
                let (own, rest) = words.split_at_mut(self.engine.tile_words(plan.solution_shape(index, row)));
                tiles.push(own);
                words = rest;
            }
            let rights = plan.rights(index).len();
            let depths = self.is_entrywise().then(|| UnknownDepths::new(plan.size.order, rights));
            strips.push(RightSideStrip { index, tiles, weights: vec![one; rights], depths });
        }
        strips
    }

    /// All unknowns that fit, tile row by tile row.
    fn solve(
        &self,
        meter: &Meter<'_>,
        rows: &mut dyn TriangleRows,
        strips: &mut [RightSideStrip<'_>],
        row_words: &mut [u64],
        scratch: &mut [&mut [u64]],
    ) -> Result<()> {
        let ctx = meter.ctx();
        for row in self.first..self.plan.tiles() {
            let (tiles, depths) = self.load_row(ctx, row, rows, row_words, scratch)?;
            let data = self.diagonal_data(row, &*tiles[tiles.len() - 1]);
            let row_tiles = LoadedRow { tiles: &tiles, first: self.first, data, depths };
            self.step_strips(meter, row, &row_tiles, strips, scratch)?;
            if strips.iter().all(RightSideStrip::is_rejected) {
                break;
            }
        }
        Ok(())
    }

    /// The data that a solve needs in addition to the words of the diagonal tile of tile row `row`.
    pub fn diagonal_data(&self, row: usize, words: &[u64]) -> Box<dyn DiagonalData> {
        self.engine.triangle(self.plan.triangle_shape(row, row), words, &self.pivots[self.plan.rows(row)])
    }

    /// Tile `row` of all strips, shared out among the workers.
    pub fn step_strips(
        &self,
        meter: &Meter<'_>,
        row: usize,
        row_tiles: &dyn RowTiles,
        strips: &mut [RightSideStrip<'_>],
        scratch: &mut [&mut [u64]],
    ) -> Result<()> {
        let ctx = meter.ctx();
        let mut steps = strips.chunks_mut(self.step_strip_count());
        let step = |scratch: &mut &mut [u64], step: &mut [RightSideStrip<'_>]| {
            self.step(row, step, row_tiles, scratch)?;
            meter.add("solve", step.len() as u64)
        };
        ctx.install(|| drive::parallel_for(scratch, |_| steps.next(), step))
    }

    /// Strips of a step.
    fn step_strip_count(&self) -> usize {
        self.plan.strips().div_ceil(self.plan.threads).clamp(1, STEP_STRIPS)
    }

    /// Panels of right-hand sides that the busiest worker has in a step, about.
    pub fn busiest_panels(&self) -> usize {
        let (strips, each) = (self.plan.strips(), self.step_strip_count());
        let turns = strips.div_ceil(each).div_ceil(self.plan.threads);
        (turns * each * self.plan.right_rows.div_ceil(PANEL_ROWS)).min(self.plan.size.columns.div_ceil(PANEL_ROWS))
    }

    fn is_entrywise(&self) -> bool {
        self.fixed.accuracy == Accuracy::Entrywise
    }

    /// Loads tile row `row` of the triangle, from the first tile with an unknown on.
    fn load_row<'w>(
        &self,
        ctx: &Context,
        row: usize,
        rows: &mut dyn TriangleRows,
        mut words: &'w mut [u64],
        scratch: &mut [&mut [u64]],
    ) -> Result<(Vec<&'w mut [u64]>, Option<RowDepths>)> {
        let (plan, engine) = (self.plan, self.engine);
        let mut tiles = Vec::with_capacity(row + 1);
        for col in self.first..=row {
            let (own, rest) = words.split_at_mut(engine.operand_words(plan.triangle_shape(row, col)));
            tiles.push(own);
            words = rest;
        }
        let own = plan.rows(row);
        let piece = rows.rows(own.clone())?;
        let depths = self.is_entrywise().then(|| RowDepths::new(self.fixed, &piece, own.clone()));
        let load = |scratch: &mut &mut [u64], (col, words): (usize, &mut &mut [u64])| {
            self.load_tile(row, col, &piece, words, scratch)
        };
        let mut items = (self.first..).zip(tiles.iter_mut());
        ctx.install(|| drive::parallel_for(scratch, |_| items.next(), load))?;
        Ok((tiles, depths))
    }

    /// Loads a tile of the triangle from a piece that has its entries.
    pub fn load_tile(
        &self,
        row: usize,
        col: usize,
        piece: &RowPiece<'_>,
        words: &mut [u64],
        scratch: &mut [u64],
    ) -> Result<()> {
        let (rows, cols) = (self.plan.rows(row), self.plan.rows(col));
        let diagonal = if self.fixed.form.unit { TilePart::StrictlyLower } else { TilePart::Lower };
        let inside = (
            rows.start - piece.first..rows.end - piece.first,
            cols.start - piece.first_col..cols.end - piece.first_col,
        );
        let source = TileSource {
            matrix: piece.view.block(inside.0, inside.1)?,
            part: if col == row { diagonal } else { TilePart::Whole },
            rows: 0..rows.len(),
            cols: 0..cols.len(),
            row_shifts: &self.triangle_shifts.0[rows],
            col_shifts: &self.triangle_shifts.1[cols],
        };
        self.engine.load_operand(&source, words, scratch);
        if row == col {
            let shape = self.plan.triangle_shape(row, row);
            self.engine.set_pivots(shape, words, &self.pivots[self.plan.rows(row)]);
        }
        Ok(())
    }

    /// Tile `row` of some strips: loaded, updated by the tiles before it, and solved.
    fn step(
        &self,
        row: usize,
        strips: &mut [RightSideStrip<'_>],
        row_tiles: &dyn RowTiles,
        scratch: &mut [u64],
    ) -> Result<()> {
        let (plan, engine) = (self.plan, self.engine);
        let mut tiles = Vec::with_capacity(strips.len());
        let mut columns = Vec::with_capacity(strips.len());
        let mut unknowns = Vec::with_capacity(strips.len());
        for strip in strips {
            let shape = plan.solution_shape(strip.index, row);
            let (before, own) = strip.tiles.split_at_mut(row);
            let words = &mut *own[0];
            let source = TileSource {
                matrix: self.right,
                part: TilePart::Whole,
                rows: plan.rights(strip.index),
                cols: plan.rows(row),
                row_shifts: &self.right_shifts.0,
                col_shifts: &self.right_shifts.1,
            };
            engine.load(&source, words, scratch);
            // A device keeps the strips whose tiles it updates.
            tiles.push(UpdateTile { shape, words, x: Vec::new(), device: strip.index % engine.device_count() });
            unknowns.push(&*before);
            columns.push((strip.index, &mut strip.weights, &mut strip.depths));
        }
        self.update(row, &mut tiles, &unknowns, row_tiles, scratch)?;
        let diagonal = row_tiles.diagonal();
        for (UpdateTile { shape, words, .. }, (strip, weights, unknowns)) in tiles.into_iter().zip(columns) {
            engine.solve(SolveTile { shape, words: &mut *words, weights: &mut *weights }, diagonal, scratch);
            if let (Some(unknowns), Some(depths)) = (unknowns, row_tiles.depths()) {
                self.take_depths(shape, words, plan.rows(row), unknowns, scratch);
                let deepest = trsm_fixed_depth(self.extra_bits, plan.size.order);
                unknowns.reject(depths, deepest, &self.right, plan.rights(strip).start, weights);
            }
        }
        Ok(())
    }

    /// Updates some tiles in row `row` of the solution by the tiles of the triangle before the diagonal, as these are
    /// finished, and by the earlier unknowns in the row of each tile.
    fn update<'t>(
        &self,
        row: usize,
        tiles: &mut [UpdateTile<'t>],
        unknowns: &[&'t [&mut [u64]]],
        row_tiles: &dyn RowTiles,
        scratch: &mut [u64],
    ) -> Result<()> {
        let (mut left, mut idle) = ((self.first..row).collect::<Vec<_>>(), Idle::new(Patience::Sleep));
        while !left.is_empty() {
            let (mut found, mut others) = (Vec::with_capacity(left.len()), Vec::with_capacity(left.len()));
            left.retain(|&col| {
                let tile = row_tiles.before(col);
                others.extend(tile);
                found.extend(tile.map(|_| col));
                tile.is_none()
            });
            if found.is_empty() {
                idle.pass_in_pool(); // another rank makes what is left
                continue;
            }
            idle = Idle::new(Patience::Sleep);
            for (tile, unknowns) in tiles.iter_mut().zip(unknowns) {
                tile.x = found.iter().map(|&col| &*unknowns[col]).collect();
            }
            self.engine.update(tiles, &others, self.plan.tile_rows, scratch)?;
        }
        Ok(())
    }

    /// Takes in the depths of the unknowns `rows`, which a tile has.
    fn take_depths(
        &self,
        shape: TileShape,
        words: &[u64],
        rows: Range<usize>,
        depths: &mut UnknownDepths,
        scratch: &mut [u64],
    ) {
        let magnitudes = &mut scratch[..PANEL_ROWS * self.engine.entry_limbs()];
        for (col, row) in rows.enumerate() {
            for panel in 0..shape.panels() {
                self.engine.entries(shape, words, PanelColumn { panel, col }, magnitudes);
                depths.set(row, panel * PANEL_ROWS, magnitudes, self.plan.size.fixed_bits);
            }
        }
    }
}

/// The unknowns of all right-hand sides.
struct Solved<'a> {
    fixed: &'a FixedPoint,
    plan: &'a TilePlan,
    /// Unknowns before this tile are 0, and already stored as 0.
    first_tile: usize,
    strips: &'a [RightSideStrip<'a>],
    exponents: &'a [i64],
}

impl Solved<'_> {
    /// Rounds the unknowns of all right-hand sides that are not rejected into their columns of `w`.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place in `w`; [`crate::Error::Cancelled`].
    fn store(&self, meter: &Meter<'_>, w: &mut Matrix, scratch: &mut [&mut [u64]]) -> Result<()> {
        let ctx = meter.ctx();
        let (rows, width) = (w.rows(), w.limbs_per_element());
        let (heads, limbs) = w.parts_mut();
        let panels = heads.chunks_mut(PANEL_ROWS * rows).zip(limbs.chunks_mut(PANEL_ROWS * rows * width));
        let mut panels = panels.enumerate();
        let work = |scratch: &mut &mut [u64], (panel, (heads, limbs)): (usize, (&mut [u64], &mut [u64]))| {
            let first = panel * PANEL_ROWS;
            let strip = &self.strips[first / self.plan.right_rows];
            let inside = (first - self.plan.rights(strip.index).start) / PANEL_ROWS;
            ResultColumns { solved: self, rows, first, heads, limbs }.store(strip, inside, scratch)?;
            meter.add("unscale", 0)
        };
        ctx.install(|| drive::parallel_for(scratch, |_| panels.next(), work))
    }
}

/// Up to 8 neighbouring columns of the result.
struct ResultColumns<'a> {
    solved: &'a Solved<'a>,
    rows: usize,
    first: usize,
    heads: &'a mut [u64],
    limbs: &'a mut [u64],
}

impl ResultColumns<'_> {
    /// Fills the columns with the unknowns of a panel of a strip.
    fn store(self, strip: &RightSideStrip<'_>, panel: usize, scratch: &mut [u64]) -> Result<()> {
        let ResultColumns { solved, rows, first, heads, limbs } = self;
        let Solved { fixed, plan, first_tile, exponents, .. } = *solved;
        let exponents = &exponents[first..];
        let (width, each) = (limbs.len() / heads.len(), plan.engine.entry_limbs());
        let magnitudes = &mut scratch[..PANEL_ROWS * each];
        let weights = strip.weights[panel * PANEL_ROWS..].iter().take(PANEL_ROWS).enumerate();
        let live = weights.filter(|(_, weight)| !weight.is_rejected()).map(|(lane, _)| lane).collect::<Vec<_>>();
        for (index, words) in strip.tiles.iter().enumerate().skip(first_tile) {
            let shape: TileShape = plan.solution_shape(strip.index, index);
            for (col, unknown) in plan.rows(index).enumerate() {
                let signs = plan.engine.entries(shape, words, PanelColumn { panel, col }, magnitudes);
                let row = if fixed.form.reversed { rows - 1 - unknown } else { unknown };
                for &lane in &live {
                    let magnitude = &magnitudes[lane * each..][..each];
                    let exponent = exponents[lane] - i64::from(plan.size.fixed_bits);
                    let at = lane * rows + row;
                    let out = &mut limbs[at * width..][..width];
                    let head = round_integer(signs >> lane & 1 == 1, magnitude, exponent, fixed.working_bits, out);
                    check_exponent(head.exponent(), row, first + lane)?;
                    heads[at] = head.0;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Tiles of the triangle that are finished late, and in any order, as those are that other ranks make.

    use super::*;
    use crate::kernels;
    use crate::matrix::{Diag, Uplo};
    use crate::ops::solve::tiles::TrySize;
    use crate::ops::solve::triangle::Triangle;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const ORDER: usize = 88;
    const COLUMNS: usize = 20;

    /// A row of tiles each of which is found only after some failed attempts.
    struct LateRow<'a> {
        row: LoadedRow<'a>,
        in_vain: Vec<AtomicUsize>,
    }

    impl RowTiles for LateRow<'_> {
        fn before(&self, col: usize) -> Option<&[u64]> {
            let left = self.in_vain[col].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            left.err().and_then(|_| self.row.before(col))
        }

        fn diagonal(&self) -> DiagonalTile<'_> {
            self.row.diagonal()
        }

        fn depths(&self) -> Option<&RowDepths> {
            self.row.depths()
        }
    }

    /// A lower triangle with a large diagonal, and right sides.
    fn system() -> [Matrix; 2] {
        let mut state = 9u64;
        let mut entry = move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let [mut t, mut b] = [ORDER, COLUMNS].map(|cols| Matrix::zeros(ORDER, cols, 100).unwrap());
        for row in 0..ORDER {
            (0..row).for_each(|col| t.set_f64(row, col, entry() / 8.0).unwrap());
            t.set_f64(row, row, 1.0).unwrap();
            (0..COLUMNS).for_each(|col| b.set_f64(row, col, entry()).unwrap());
        }
        [t, b]
    }

    /// The unknowns, where the tile in column `col` of row `row` is found only after `late(row, col)` failed attempts.
    fn solved(ctx: &Context, accuracy: Accuracy, late: impl Fn(usize, usize) -> usize) -> Matrix {
        let [t, mut w] = system();
        let triangle = Triangle::new(t.view(), Uplo::Lower, Diag::NonUnit).unwrap();
        let triangle = FixedTriangle::new(&triangle, 100, accuracy);
        let size = TrySize {
            order: ORDER,
            columns: COLUMNS,
            fixed_bits: triangle.tries().next().unwrap(),
            piece_row_bytes: 0,
            message_bytes: 0,
            accuracy,
            together: None,
            kernel: None,
        };
        let FixedTriangle { fixed, mut rows } = triangle;
        let plan = TilePlan::new(ctx, ctx.memory(), size).unwrap().with_tile_rows(16);
        let mut workspace = ctx.workspace();
        let ((words, row_words), mut scratch) = take_memory(&plan, &mut workspace).unwrap();
        let run = FixedRun::new(&fixed, &*rows, &plan, &w, 0);
        let meter = Meter::new(ctx, (plan.tiles() * plan.strips()) as u64);
        let mut strips = run.strips(words);
        for row in 0..plan.tiles() {
            let (tiles, depths) = run.load_row(ctx, row, &mut *rows, row_words, &mut scratch).unwrap();
            let data = run.diagonal_data(row, &*tiles[row]);
            let in_vain = (0..row).map(|col| AtomicUsize::new(late(row, col))).collect();
            let late = LateRow { row: LoadedRow { tiles: &tiles, first: 0, data, depths }, in_vain };
            run.step_strips(&meter, row, &late, &mut strips, &mut scratch).unwrap();
            assert!(late.in_vain.iter().all(|left| left.load(Ordering::Relaxed) == 0), "row {row} did not wait");
        }
        let exponents = run.exponents;
        assert!(!strips.iter().any(RightSideStrip::is_rejected));
        let solved = Solved { fixed: &fixed, plan: &plan, first_tile: 0, strips: &strips, exponents: &exponents };
        solved.store(&meter, &mut w, &mut scratch).unwrap();
        w
    }

    #[test]
    fn tiles_that_come_late_are_waited_for_and_give_the_same_unknowns() {
        for (kernel, threads) in kernels::available().into_iter().flat_map(|kernel| [(kernel, 1), (kernel, 2)]) {
            let ctx = Context::builder().threads(threads).kernel(kernel.name()).build().unwrap();
            for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
                let want = solved(&ctx, accuracy, |_, _| 0);
                // The last ones first; the middle ones last; one at a time in a mixed order; all at once, after a
                // while.
                let orders: [fn(usize, usize) -> usize; 4] =
                    [|row, col| row - col, |row, col| col.min(row - col), |row, col| (5 * col + row) % 7, |_, _| 40];
                for (at, late) in orders.into_iter().enumerate() {
                    let what = format!("{}, {threads} threads, {accuracy:?}, order {at}", kernel.name());
                    assert!(solved(&ctx, accuracy, late) == want, "{what}");
                }
            }
        }
    }
}
