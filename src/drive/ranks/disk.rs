//! The disk below the tiles of a rank: moves that the level requests, and the events that answer them.

use super::state::{RankState, SharedState};
use super::{DiskEvent, RankTiles};
use crate::error::{Error, Result};
use crate::runtime::Move;
use crate::runtime::protocol::{ProtocolEvent, Sites, TileRun};
use crate::store::IoBuffer;
use crate::tile::TileId;

impl<W: RankTiles> SharedState<'_, W> {
    /// Begins the moves that the level requests, and hands out the runs whose tiles are in memory.
    pub(super) fn begin_moves(&self, state: &mut RankState) -> Result<()> {
        let (Some(disk), Some(tiles)) = (&mut state.disk, self.tiles.disk()) else { return Ok(()) };
        while let Some(step) = disk.level.next_move() {
            match step {
                Move::Fetch(tile) => tiles.fetch(tile)?,
                Move::Drop(tile) => tiles.drop_tile(tile),
                Move::WriteBack(_) => {} // the worker that finished the tile has its bytes
            }
        }
        let (_, most) = tiles.transfers();
        while let Some(tile) = disk.outgoing.next(most) {
            tiles.fetch_to_send(tile)?;
        }
        while let Some((ticket, run)) = disk.level.next_run() {
            disk.tickets.insert(run.tile, ticket);
            state.sites[self.sites.of_run(&run)].runs.push_back(run);
        }
        Ok(())
    }

    /// Notes that a run is done, with the bytes of the tiles that it finished.
    pub(super) fn run_done(&self, state: &mut RankState, run: &TileRun, bytes: Option<IoBuffer>) {
        let (Some(disk), Some(tiles)) = (&mut state.disk, self.tiles.disk()) else { return };
        let ticket = disk.tickets.remove(&run.tile).expect("a run that was planned");
        disk.level.done(ticket, run);
        if let Some(Err(error)) = bytes.map(|bytes| tiles.write(run, bytes)) {
            self.fail(state, error);
        }
    }

    /// Notes that a tile is in its place.
    pub(super) fn placed(&self, state: &mut RankState, tile: TileId) {
        if let Some(disk) = &mut state.disk {
            disk.level.fetched(tile);
        }
        self.advance(state);
    }

    /// Takes in the events of the disk, until the rank is done.
    pub(super) fn take_disk_events(&self) {
        let Some(tiles) = self.tiles.disk() else { return };
        while let Some(event) = tiles.next_event() {
            let state = &mut self.lock();
            match event {
                DiskEvent::Read(..) | DiskEvent::ReadToSend(..) if state.is_stopped() => {}
                DiskEvent::Read(tile, bytes) => {
                    state.disk.as_mut().expect("a rank above a disk").read.push_back((tile, bytes));
                    self.advance(state);
                }
                DiskEvent::ReadToSend(tile, words) => {
                    let readers = state.disk.as_mut().expect("a rank above a disk").outgoing.read(tile);
                    readers.into_iter().for_each(|reader| state.send(reader, tile, words.clone()));
                    self.advance(state);
                }
                DiskEvent::Written(written) => {
                    written.into_iter().for_each(|tile| self.is_on_disk(state, tile));
                    self.advance(state);
                }
                DiskEvent::Failed(error) => self.fail(state, error),
            }
        }
    }

    /// Notes that a finished tile lies on the disk.
    fn is_on_disk(&self, state: &mut RankState, tile: TileId) {
        let disk = state.disk.as_mut().expect("a rank above a disk");
        disk.outgoing.written(tile);
        if self.owns(state, tile) {
            state.disk.as_mut().expect("a rank above a disk").level.written(tile);
        } else {
            self.kept(state, tile);
        }
    }

    /// A tile of another rank lies on the disk: tasks may read it, and another one may come.
    fn kept(&self, state: &mut RankState, tile: TileId) {
        state.disk.as_mut().expect("a rank above a disk").coming -= 1;
        state.machine.handle(ProtocolEvent::Imported(tile));
        self.wake_progress_thread();
    }

    /// Takes in the words of a tile of another rank: they go to the disk, if they are not there.
    pub(super) fn keep(&self, state: &mut RankState, tile: TileId, words: &[u64]) {
        let Some(tiles) = self.tiles.disk() else { return };
        if tiles.is_written(tile) {
            self.kept(state, tile);
        } else if let Err(error) = tiles.keep(tile, words) {
            self.fail(state, error);
        }
    }

    /// Whether there is room for another tile on its way to the disk; it counts from then on.
    pub(super) fn disk_takes_another(&self, state: &mut RankState) -> bool {
        let (Some(disk), Some(tiles)) = (&mut state.disk, self.tiles.disk()) else { return true };
        let has_room = disk.coming < tiles.transfers().0;
        disk.coming += usize::from(has_room);
        has_room
    }

    /// Abandons the runs that no worker has, if the machine has stopped.
    pub(super) fn abandon_runs(&self, state: &mut RankState) {
        let Some(disk) = state.disk.as_mut().filter(|_| state.machine.is_stopped()) else { return };
        for run in disk.abandon() {
            state.machine.handle(ProtocolEvent::Done(run));
        }
        let waiting = std::mem::take(&mut state.sites[Sites::HOST].runs);
        for run in waiting {
            disk.tickets.remove(&run.tile);
            state.machine.handle(ProtocolEvent::Done(run));
        }
    }

    /// Ends the wait for events, where there are any.
    pub(super) fn close_disk(&self) {
        if let Some(tiles) = self.tiles.disk() {
            tiles.close();
        }
    }

    /// Records an error of a transfer between memory and disk.
    pub(super) fn fail_moves(&self, state: &mut RankState, error: Error) {
        state.machine.handle(ProtocolEvent::Failed);
        state.keep_error(error);
        self.abandon_runs(state);
    }
}
