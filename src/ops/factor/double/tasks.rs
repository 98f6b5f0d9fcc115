//! The tasks on one tile of doubles on a CPU, for tiles in any memory.
//!
//! The updates of a tile are applied in the order of their columns, each by a product of its own: the bits of a tile
//! depend only on its entries and its operands.

use crate::kernels::f64::tile::{BadPivot, Tile, TileKernels, TileMut};
use crate::runtime::protocol::TileRun;
use crate::tile::{TileId, TileMap};
use std::ops::{Deref, Range};

/// Tiles of a matrix; `operand` returns finished ones.
pub(super) struct CpuTasks<'a, F> {
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
    pub fn finish(&self, kernels: &mut TileKernels, tile: TileId, words: &mut [u64]) -> Result<(), BadPivot> {
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
    pub fn run(&self, kernels: &mut TileKernels, run: &TileRun, words: &mut [u64]) -> Result<(), BadPivot> {
        self.update(kernels, run.tile, run.updates.clone(), words);
        if run.finish { self.finish(kernels, run.tile, words) } else { Ok(()) }
    }
}
