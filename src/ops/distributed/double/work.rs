//! The tasks on tiles of doubles on one rank: a finished tile travels as it lies in memory.

use super::DoubleMatrix;
use super::matrix::Words;
use crate::comm::post::Body;
use crate::drive::{Meter, RankTiles};
use crate::error::{Error, Result};
use crate::kernels::f64::tile::{BadPivot, Tile, TileKernels, TileMut};
use crate::ops::double::failure;
use crate::runtime::protocol::TileRun;
use crate::tile::{TileId, TileMap};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// One factorisation under way.
pub(super) struct Work<'a> {
    map: TileMap,
    own: HashMap<TileId, Mutex<&'a mut Words>>,
    /// Finished tiles of other ranks.
    received: RwLock<HashMap<TileId, Body>>,
    /// The diagonal of the matrix in the own tiles, for what an error says.
    diagonals: HashMap<usize, Vec<f64>>,
    /// For tiles of other ranks.
    rooms: Mutex<Vec<Vec<u64>>>,
    meter: Meter<'a>,
}

impl<'a> Work<'a> {
    pub fn new(a: &'a mut DoubleMatrix, rooms: Vec<Vec<u64>>, meter: Meter<'a>) -> Work<'a> {
        let map = *a.map();
        let on_diagonal = a.tiles().filter(|(tile, _)| tile.row == tile.col);
        let diagonal = |(tile, entries): (TileId, &[f64])| {
            let step = map.row_range(tile.row).len() + 1;
            (tile.row, entries.iter().step_by(step).copied().collect())
        };
        let diagonals = on_diagonal.map(diagonal).collect();
        let own = a.own.iter_mut().map(|(&tile, words)| (tile, Mutex::new(words))).collect();
        Work { map, own, received: RwLock::default(), diagonals, rooms: Mutex::new(rooms), meter }
    }

    fn own(&self, tile: TileId) -> MutexGuard<'_, &'a mut Words> {
        self.own[&tile].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A finished tile.
    pub fn operand(&self, tile: TileId) -> Words {
        if self.own.contains_key(&tile) {
            return self.own(tile).clone();
        }
        let received = self.received.read().unwrap_or_else(PoisonError::into_inner);
        received.get(&tile).expect("a task runs when its operands are here").clone()
    }

    fn shape(&self, tile: TileId) -> (usize, usize) {
        (self.map.row_range(tile.row).len(), self.map.col_range(tile.col).len())
    }

    fn view<'w>(&self, tile: TileId, words: &'w Words) -> Tile<'w> {
        let (rows, cols) = self.shape(tile);
        Tile::new(bytemuck::cast_slice(words), rows, cols, rows)
    }

    /// Takes off the products of some columns, the next operands read ahead meanwhile.
    fn update(&self, kernels: &mut TileKernels, tile: TileId, updates: Range<usize>, own: TileMut<'_>) {
        let of_row = |row: usize| updates.clone().map(move |col| TileId { row, col });
        let held = |row: usize| of_row(row).map(|tile| (tile, self.operand(tile))).collect::<Vec<_>>();
        let left = held(tile.row);
        let x = left.iter().map(|(tile, words)| self.view(*tile, words));
        if tile.row == tile.col {
            return kernels.syrks(&x.collect::<Vec<_>>(), own);
        }
        let right = held(tile.col);
        let y = right.iter().map(|(tile, words)| self.view(*tile, words));
        kernels.gemms_nt(&x.zip(y).collect::<Vec<_>>(), own);
    }

    fn finish(&self, kernels: &mut TileKernels, tile: TileId, own: TileMut<'_>) -> Result<()> {
        let TileId { row, col } = tile;
        if row > col {
            let diagonal = TileId { row: col, col };
            kernels.trsm(self.view(diagonal, &self.operand(diagonal)), own);
            return Ok(());
        }
        kernels.potrf(own).map_err(|bad| self.failure(row, bad))
    }

    /// The error for a pivot in the tile on the diagonal of a tile row.
    pub fn failure(&self, row: usize, BadPivot { index, pivot }: BadPivot) -> Error {
        failure(self.map.row_range(row).start + index, pivot, self.diagonals[&row][index])
    }

    /// Puts the words of a finished own tile in their place.
    pub fn put(&self, tile: TileId, words: &[u64]) {
        // Nobody else has a handle before the tile is finished, so nothing is copied.
        Arc::make_mut(*self.own(tile)).copy_from_slice(words);
    }
}

impl RankTiles for Work<'_> {
    type Local = TileKernels;

    const UNPACKS: bool = false;

    fn run(&self, kernels: &mut TileKernels, run: &TileRun) -> Result<()> {
        let TileRun { tile, updates, finish, .. } = run;
        let (rows, cols) = self.shape(*tile);
        let mut own = self.own(*tile);
        // Nobody else has a handle before the tile is finished, so nothing is copied.
        let words: &mut Vec<u64> = Arc::make_mut(&mut own);
        let words = bytemuck::cast_slice_mut::<u64, f64>(words);
        self.update(kernels, *tile, updates.clone(), TileMut::new(words, rows, cols, rows));
        match finish {
            true => self.finish(kernels, *tile, TileMut::new(words, rows, cols, rows)),
            false => Ok(()),
        }
    }

    fn pack(&self, _kernels: &mut TileKernels, tile: TileId) -> Result<Body> {
        Ok(self.own(tile).clone())
    }

    fn payload_words(&self, tile: TileId) -> usize {
        let (rows, cols) = self.shape(tile);
        rows * cols
    }

    fn buffers(&self) -> Vec<Vec<u64>> {
        std::mem::take(&mut self.rooms.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn arrived(&self, tile: TileId, body: &Body) {
        self.received.write().unwrap_or_else(PoisonError::into_inner).insert(tile, body.clone());
    }

    fn release(&self, tile: TileId) {
        self.received.write().unwrap_or_else(PoisonError::into_inner).remove(&tile);
    }

    fn advanced(&self, run: &TileRun) -> Result<()> {
        self.meter.add("factor", run.updates.len() as u64 + u64::from(run.finish))
    }
}
