//! Tiles of big floats out of core: their conversion when they are read, and their words on the disk.

use super::{TileStore, WorkerMemory, unpoisoned};
use crate::error::Result;
use crate::ops::factor::file_tiles::FileTiles;
use crate::ops::factor::slots::Slots;
use crate::ops::factor::spans::TaskKind;
use crate::ops::factor::tile_file::{Encoded, TileFile};
use crate::store::IoBuffer;
use crate::tile::TileId;

impl<'w> TileStore<'_, 'w> {
    /// POTRF or TRSM of an out-of-core tile, and its bytes for the disk: only here are its integers available.
    pub(super) fn finish_above_disk(
        &self,
        local: &mut WorkerMemory<'w>,
        tile: TileId,
        words: &mut [u64],
        tile_file: &TileFile,
    ) -> Result<()> {
        let whole_words = self.work.engine.tile_words(self.work.shape(tile));
        if whole_words <= words.len() {
            self.finish(local, tile, words)?;
            return self.encode_tile(local, tile, words, tile_file);
        }
        let whole = std::mem::take(&mut local.whole_tile);
        let (tile_words, _) = whole.split_at_mut(whole_words);
        tile_words[..words.len()].copy_from_slice(words);
        let mut finished = self.finish(local, tile, tile_words);
        if finished.is_ok() {
            words.copy_from_slice(&tile_words[..words.len()]);
            finished = self.encode_tile(local, tile, tile_words, tile_file);
        }
        local.whole_tile = whole;
        finished
    }

    fn encode_tile(
        &self,
        local: &mut WorkerMemory<'w>,
        tile: TileId,
        words: &[u64],
        tile_file: &TileFile,
    ) -> Result<()> {
        let weights = unpoisoned(self.weights[tile.row].lock());
        let WorkerMemory { encoded, scratch, .. } = local;
        tile_file.encode(encoded, tile, |payload| self.work.pack(tile, words, &weights, payload, scratch))
    }
}

/// Message of the panic where tiles have no file; only out-of-core calls use it.
const HOME: &str = "the tiles are above a disk";

impl<'w> FileTiles<WorkerMemory<'w>> for TileStore<'_, 'w> {
    fn tile_file(&self) -> (&TileFile, &Slots) {
        (self.tile_file.as_ref().expect(HOME), self.slots.as_ref().expect(HOME))
    }

    fn take_in(&self, local: &mut WorkerMemory<'w>, tile: TileId, read: &IoBuffer) -> Result<()> {
        let tile_file = self.tile_file().0;
        let mut words = unpoisoned(self.own(tile).write());
        local.log.begin();
        if tile_file.is_published(tile) {
            let payload = tile_file.finished(tile, read.words());
            let words = &mut words[..self.work.operand_words(tile)];
            let data = self.work.unpack(tile, payload, words, local.scratch);
            if let Some(data) = data {
                *unpoisoned(self.diagonals[tile.col].write()) = Some(data.into());
            }
            tile_file.keep_weights(tile, self.work.unpack_weights(tile, payload));
        } else {
            let words = &mut words[..self.tile_words(tile)];
            self.work.load(tile, tile_file.entries(tile, read.words())?, words, local.scratch);
        }
        local.log.add(TaskKind::Load, tile);
        Ok(())
    }

    fn encoded<'l>(local: &'l mut WorkerMemory<'w>) -> &'l mut Encoded {
        &mut local.encoded
    }

    fn forget(&self, tile: TileId) {
        self.tile_file().0.forget_weights(tile);
        if tile.row == tile.col {
            *unpoisoned(self.diagonals[tile.col].write()) = None;
        }
    }

    fn wait(&self) -> Result<()> {
        self.meter.add("factor", 0)
    }
}
