//! The work on one tile of doubles on a CPU: the tasks of tiles in any memory, and POTRF of a tile on several threads.
//!
//! The updates of a tile are applied in the order of their columns, each by a product of its own: the bits of a tile
//! depend only on its entries and its operands.

use crate::drive;
use crate::error::Result;
use crate::kernels::f64::tile::{BadPivot, Tile, TileKernels, TileMut};
use crate::runtime::protocol::TileRun;
use crate::tile::{TileId, TileMap};
use std::ops::{Deref, Range};
use std::result;

/// Tiles of a matrix; `operand` returns finished ones.
pub(crate) struct CpuTasks<'a, F> {
    pub map: &'a TileMap,
    pub operand: F,
}

impl<W, F> CpuTasks<'_, F>
where
    W: Deref<Target: AsRef<[u64]>>,
    F: Fn(TileId) -> W,
{
    fn view<'w>(&self, tile: TileId, words: &'w W) -> Tile<'w> {
        let (rows, cols) = self.map.shape(tile);
        let words: &[u64] = (**words).as_ref();
        Tile::new(bytemuck::cast_slice(&words[..rows * cols]), rows, cols, rows)
    }

    fn view_mut<'w>(&self, tile: TileId, words: &'w mut [u64]) -> TileMut<'w> {
        let (rows, cols) = self.map.shape(tile);
        TileMut::new(bytemuck::cast_slice_mut(&mut words[..rows * cols]), rows, cols, rows)
    }

    /// Subtracts the products of some columns; the next operands are prefetched meanwhile.
    pub fn update(&self, kernels: &mut TileKernels, tile: TileId, updates: Range<usize>, words: &mut [u64]) {
        let own = self.view_mut(tile, words);
        let of_row = |row: usize| updates.clone().map(move |col| TileId { row, col });
        let held = |row: usize| of_row(row).map(|tile| (tile, (self.operand)(tile))).collect::<Vec<_>>();
        let left = held(tile.row);
        let x = left.iter().map(|(tile, words)| self.view(*tile, words));
        if tile.row == tile.col {
            return kernels.syrks(&x.collect::<Vec<_>>(), own);
        }
        let right = held(tile.col);
        let y = right.iter().map(|(tile, words)| self.view(*tile, words));
        kernels.gemms_nt(&x.zip(y).collect::<Vec<_>>(), own);
    }

    /// POTRF of a tile on the diagonal, TRSM of one below it.
    ///
    /// # Errors
    /// The first pivot that is not positive.
    pub fn finish(&self, kernels: &mut TileKernels, tile: TileId, words: &mut [u64]) -> result::Result<(), BadPivot> {
        let own = self.view_mut(tile, words);
        if tile.row == tile.col {
            return kernels.potrf(own);
        }
        let diagonal = TileId { row: tile.col, col: tile.col };
        kernels.trsm(self.view(diagonal, &(self.operand)(diagonal)), own);
        Ok(())
    }

    /// A run on its first tile.
    ///
    /// # Errors
    /// As [`CpuTasks::finish`].
    pub fn run(&self, kernels: &mut TileKernels, run: &TileRun, words: &mut [u64]) -> result::Result<(), BadPivot> {
        self.update(kernels, run.tile, run.updates.clone(), words);
        if run.finish { self.finish(kernels, run.tile, words) } else { Ok(()) }
    }
}

// POTRF of a tile on the diagonal for devices. One thread leaves it to the kernels of `kernels::f64::tile`. Several
// threads halve the columns until one thread is faster; at each level the earlier half is subtracted from the later one
// by a product, in strips of columns that threads share. Source: Gustavson, "Recursion leads to automatic variable
// blocking for dense linear-algebra algorithms", IBM J. Res. Dev. 41 (1997).

/// Columns that one thread factors.
const OWN_COLUMNS: usize = 64;

/// Columns of a strip.
const STRIP_COLUMNS: usize = 64;

/// Multiply-adds below which threads would cost more than they gain.
const SHARED_WORK: usize = 1 << 21;

/// `A = L L^T` in place of the lower triangle of the column-major `order x order` matrix `a`; entries above the
/// diagonal stay. Runs on as many threads of the pool it is called in as there are `kernels`, at least one (asserted).
pub(super) fn factor(a: &mut [f64], order: usize, kernels: &mut [TileKernels]) -> result::Result<(), BadPivot> {
    assert_eq!(a.len(), order * order);
    assert!(!kernels.is_empty());
    match kernels {
        [only] => only.potrf(TileMut::new(a, order, order, order)),
        _ => columns(a, order, 0..order, kernels),
    }
}

/// Factors some columns, from the diagonal to the last row; all previous columns have been subtracted.
fn columns(
    a: &mut [f64],
    order: usize,
    range: Range<usize>,
    kernels: &mut [TileKernels],
) -> result::Result<(), BadPivot> {
    let Range { start, end } = range;
    if range.len() <= OWN_COLUMNS {
        let own = TileMut::new(&mut a[start * order + start..], order - start, end - start, order);
        return kernels[0].factor_columns(own).map_err(|bad| BadPivot { index: start + bad.index, ..bad });
    }
    let middle = start + (range.len() / 2).next_multiple_of(OWN_COLUMNS).min(range.len() - 1);
    columns(a, order, start..middle, kernels)?;
    let (before, after) = a.split_at_mut(middle * order);
    let done = &before[start * order..];
    let depth = middle - start;
    let mut strips = after[..(end - middle) * order].chunks_mut(STRIP_COLUMNS * order).enumerate();
    let take_off = |kernels: &mut TileKernels, (index, strip): (usize, &mut [f64])| {
        let (first, width) = (middle + index * STRIP_COLUMNS, strip.len() / order);
        let x = Tile::new(&done[first..], order - first, depth, order);
        kernels.syrk(x, TileMut::new(&mut strip[first..], order - first, width, order));
    };
    if (order - middle) * (end - middle) * depth < SHARED_WORK {
        strips.for_each(|strip| take_off(&mut kernels[0], strip));
    } else {
        let shared: Result<()> = drive::parallel_for(
            kernels,
            |_| strips.next(),
            |kernels, strip| {
                take_off(kernels, strip);
                Ok(())
            },
        );
        shared.expect("strips do not fail");
    }
    columns(a, order, middle..end, kernels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    /// Entries of `L` that are exact in doubles, as are all sums of `L L^T`.
    fn exact_factor(order: usize) -> Vec<f64> {
        let entry = |at: usize| match (at % order, at / order) {
            (i, j) if i == j => 1.0 + (i % 3) as f64,
            (i, j) if i > j => ((i * 7 + j * 13) % 5) as f64 - 2.0,
            _ => 0.0,
        };
        (0..order * order).map(entry).collect()
    }

    fn gram(l: &[f64], order: usize) -> Vec<f64> {
        let sum = |at: usize| {
            let (i, j) = (at % order, at / order);
            if i < j { f64::NAN } else { (0..=j).map(|k| l[k * order + i] * l[k * order + j]).sum() }
        };
        (0..order * order).map(sum).collect()
    }

    #[test]
    fn factors_of_integers_come_back_exactly() {
        let ctx = Context::builder().threads(2).build().unwrap();
        for order in [0, 1, 2, 15, 16, 17, 33, 64, 100, 257] {
            for threads in [1, 2] {
                let l = exact_factor(order);
                let mut a = gram(&l, order);
                let mut kernels = (0..threads).map(|_| TileKernels::new()).collect::<Vec<_>>();
                ctx.install(|| factor(&mut a, order, &mut kernels)).unwrap();
                for at in 0..order * order {
                    let (i, j) = (at % order, at / order);
                    assert!(i < j || a[at] == l[at], "{order}, ({i}, {j}): {} instead of {}", a[at], l[at]);
                }
            }
        }
    }

    #[test]
    fn the_first_bad_pivot_is_named() {
        for (order, bad) in [(1, 0), (20, 0), (40, 17), (100, 99), (200, 150)] {
            for change in [-1e6, f64::NAN, f64::INFINITY] {
                let mut a = gram(&exact_factor(order), order);
                a[bad * order + bad] += change;
                for threads in [1, 2] {
                    let mut kernels = (0..threads).map(|_| TileKernels::new()).collect::<Vec<_>>();
                    let found = factor(&mut a.clone(), order, &mut kernels).unwrap_err();
                    assert_eq!(found.index, bad, "{order} rows, {change}, {threads} threads");
                }
            }
        }
    }
}
