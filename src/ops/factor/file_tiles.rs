//! Out-of-core tiles of a rank, for any element type: the slots that they enter and leave, and their words on the disk.

use crate::drive::{DiskEvent, DiskTiles};
use crate::error::Result;
use crate::ops::factor::slots::Slots;
use crate::ops::factor::tile_file::{Encoded, TileFile};
use crate::runtime::LevelShape;
use crate::runtime::protocol::TileRun;
use crate::store::IoBuffer;
use crate::tile::TileId;

/// The differences between element types out of core; `L` is the private memory of a worker.
pub(super) trait FileTiles<L>: Sync {
    /// The file of the tiles that have no room in memory, and the slots of the others.
    fn tile_file(&self) -> (&TileFile, &Slots);

    /// Converts the entries or words read for a tile to the form that tasks use, in its slot.
    ///
    /// # Errors
    /// Any error that ends the factorisation.
    fn take_in(&self, local: &mut L, tile: TileId, read: &IoBuffer) -> Result<()>;

    /// The finished tiles of the run that the worker has under way.
    fn encoded(local: &mut L) -> &mut Encoded;

    /// The tile leaves its slot: the data kept in addition to its words may be dropped.
    fn forget(&self, _tile: TileId) {}

    /// Reports that no event happens.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn wait(&self) -> Result<()>;
}

impl<L, T: FileTiles<L>> DiskTiles<L> for T {
    fn shape(&self) -> LevelShape {
        self.tile_file().0.shape
    }

    fn was_finished(&self, tile: TileId) -> bool {
        self.tile_file().0.was_finished(tile)
    }

    fn fetch(&self, tile: TileId) -> Result<()> {
        let (tile_file, slots) = self.tile_file();
        slots.take(tile);
        tile_file.fetch(tile)
    }

    fn place(&self, local: &mut L, tile: TileId, read: IoBuffer) -> Result<()> {
        self.take_in(local, tile, &read)?;
        self.tile_file().0.give_back(read)
    }

    fn encode(&self, local: &mut L) -> Result<IoBuffer> {
        Ok(T::encoded(local).take())
    }

    fn abandon(&self, local: &mut L) {
        self.tile_file().0.abandon(T::encoded(local));
    }

    fn write(&self, run: &TileRun, bytes: IoBuffer) -> Result<()> {
        self.tile_file().0.publish(run.tiles().collect(), bytes)
    }

    fn drop_tile(&self, tile: TileId) {
        self.tile_file().1.give_back(tile);
        self.forget(tile);
    }

    fn is_written(&self, tile: TileId) -> bool {
        self.tile_file().0.is_published(tile)
    }

    fn transfers(&self) -> (usize, usize) {
        self.tile_file().0.transfers()
    }

    fn keep(&self, tile: TileId, words: &[u64]) -> Result<()> {
        self.tile_file().0.keep(tile, words)
    }

    fn fetch_to_send(&self, tile: TileId) -> Result<()> {
        self.tile_file().0.fetch_to_send(tile)
    }

    fn next_event(&self) -> Option<DiskEvent> {
        self.tile_file().0.next_event(|| self.wait())
    }

    fn close(&self) {
        self.tile_file().0.close();
    }
}
