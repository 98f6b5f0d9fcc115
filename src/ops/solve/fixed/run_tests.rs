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

/// A lower triangle with a large diagonal, and right-hand sides.
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
            // The last ones first; the middle ones last; one at a time in a mixed order; all at once, after a while.
            let orders: [fn(usize, usize) -> usize; 4] =
                [|row, col| row - col, |row, col| col.min(row - col), |row, col| (5 * col + row) % 7, |_, _| 40];
            for (at, late) in orders.into_iter().enumerate() {
                let what = format!("{}, {threads} threads, {accuracy:?}, order {at}", kernel.name());
                assert!(solved(&ctx, accuracy, late) == want, "{what}");
            }
        }
    }
}
