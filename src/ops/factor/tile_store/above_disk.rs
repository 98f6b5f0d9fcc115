//! The tiles of a rank in a memory above a disk: places that they come to and leave, and their words on the disk.

use super::{Local, TileStore, number, unpoisoned};
use crate::drive::{DiskEvent, DiskTiles};
use crate::error::Result;
use crate::ops::factor::home::Home;
use crate::ops::factor::spans::TaskKind;
use crate::runtime::LevelShape;
use crate::runtime::protocol::TileRun;
use crate::store::IoBuffer;
use crate::tile::TileId;

impl<'w> TileStore<'_, 'w> {
    /// POTRF or TRSM of a tile above a disk, and its bytes for the disk: only here it has its integers.
    pub(super) fn finish_above_disk(
        &self,
        local: &mut Local<'w>,
        tile: TileId,
        words: &mut [u64],
        home: &Home,
    ) -> Result<()> {
        let whole_words = self.work.engine.tile_words(self.work.shape(tile));
        if whole_words <= words.len() {
            self.finish(local, tile, words)?;
            return self.encode_tile(local, tile, words, home);
        }
        let whole = std::mem::take(&mut local.whole_tile);
        let (tile_words, _) = whole.split_at_mut(whole_words);
        tile_words[..words.len()].copy_from_slice(words);
        let mut finished = self.finish(local, tile, tile_words);
        if finished.is_ok() {
            words.copy_from_slice(&tile_words[..words.len()]);
            finished = self.encode_tile(local, tile, tile_words, home);
        }
        local.whole_tile = whole;
        finished
    }

    fn encode_tile(&self, local: &mut Local<'w>, tile: TileId, words: &[u64], home: &Home) -> Result<()> {
        let (mut bytes, start) = match local.encoded.take() {
            Some(begun) => begun,
            None => (home.write_buffer()?, 0),
        };
        let payload = &mut bytes.words_mut()[start..][..self.work.payload_words(tile)];
        let weights = unpoisoned(self.weights[tile.row].lock());
        self.work.pack(tile, (words, &weights), payload, local.scratch);
        local.encoded = Some((bytes, start + home.object_words(tile)));
        Ok(())
    }
}

/// The home of tiles that come and go: asked for where there is one.
const HOME: &str = "the tiles are above a disk";

impl<'w> DiskTiles<Local<'w>> for TileStore<'_, 'w> {
    fn shape(&self) -> LevelShape {
        self.home.as_ref().expect(HOME).shape
    }

    fn was_finished(&self, tile: TileId) -> bool {
        self.home.as_ref().expect(HOME).was_finished(tile)
    }

    fn fetch(&self, tile: TileId) -> Result<()> {
        self.slots.as_ref().expect(HOME).take(number(tile));
        self.home.as_ref().expect(HOME).fetch(tile)
    }

    fn place(&self, local: &mut Local<'w>, tile: TileId, read: IoBuffer) -> Result<()> {
        let home = self.home.as_ref().expect(HOME);
        let mut words = unpoisoned(self.own(tile).write());
        local.log.begin();
        if home.is_published(tile) {
            let payload = &read.words()[..self.work.payload_words(tile)];
            let words = &mut words[..self.work.operand_words(tile)];
            let data = self.work.unpack(tile, payload, words, local.scratch);
            if let Some(data) = data {
                *unpoisoned(self.diagonals[tile.col].write()) = Some(data.into());
            }
            home.keep_weights(tile, self.work.unpack_weights(tile, payload));
        } else {
            let words = &mut words[..self.tile_words(tile)];
            self.work.load(tile, home.entries(tile, read.words())?, words, local.scratch);
        }
        local.log.add(TaskKind::Load, tile);
        home.give_back(read)
    }

    fn encode(&self, local: &mut Local<'w>) -> Result<IoBuffer> {
        Ok(local.encoded.take().expect("the run has finished tiles").0)
    }

    fn write(&self, run: &TileRun, bytes: IoBuffer) -> Result<()> {
        self.home.as_ref().expect(HOME).publish(run.tiles().collect(), bytes)
    }

    fn drop_tile(&self, tile: TileId) {
        self.slots.as_ref().expect(HOME).give_back(number(tile));
        self.home.as_ref().expect(HOME).forget_weights(tile);
        if tile.row == tile.col {
            *unpoisoned(self.diagonals[tile.col].write()) = None;
        }
    }

    fn is_written(&self, tile: TileId) -> bool {
        self.home.as_ref().expect(HOME).is_published(tile)
    }

    fn transfers(&self) -> (usize, usize) {
        self.home.as_ref().expect(HOME).transfers()
    }

    fn keep(&self, tile: TileId, words: &[u64]) -> Result<()> {
        self.home.as_ref().expect(HOME).keep(tile, words)
    }

    fn fetch_to_send(&self, tile: TileId) -> Result<()> {
        self.home.as_ref().expect(HOME).fetch_to_send(tile)
    }

    fn next_event(&self) -> Option<DiskEvent> {
        self.home.as_ref().expect(HOME).next_event(|| self.meter.add("factor", 0))
    }

    fn close(&self) {
        self.home.as_ref().expect(HOME).close();
    }
}
