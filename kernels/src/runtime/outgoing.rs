//! Tiles that other ranks receive from the disk of this one: requested, read, in transit.
//!
//! Depends on: tiles, and how many copies are in memory. Independent of: who the readers are, what moves a tile.

use crate::tile::TileId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The largest number of tiles that a rank above a disk receives at a time, and of copies in transit from it.
pub const MOST_TRANSFERS: usize = 4;

/// A tile whose words are in memory for others.
#[derive(Default)]
struct Leaving {
    /// Transfers that have not ended.
    transfers: usize,
    /// Copies of the words that they are sent from.
    copies: usize,
}

/// The readers that have requested a tile that was not read since.
struct Request<R> {
    readers: Vec<R>,
    /// Whether it is ready, or being read.
    is_queued: bool,
}

/// The tiles that other ranks receive; `R` identifies the receiver of a tile and the data sent with it.
pub struct Outgoing<R> {
    asked: FxHashMap<TileId, Request<R>>,
    /// Tiles on the disk that were requested, and that are not being read.
    ready: VecDeque<TileId>,
    leaving: FxHashMap<TileId, Leaving>,
    /// Copies that are being read or sent.
    copies: usize,
}

impl<R> Default for Outgoing<R> {
    fn default() -> Outgoing<R> {
        Outgoing { asked: FxHashMap::default(), ready: VecDeque::new(), leaving: FxHashMap::default(), copies: 0 }
    }
}

impl<R> Outgoing<R> {
    /// Records that a rank will receive a tile, which is on the disk or will be written to it.
    pub fn ask(&mut self, tile: TileId, reader: R, is_written: bool) {
        let asked = self.asked.entry(tile).or_insert_with(|| Request { readers: Vec::new(), is_queued: false });
        asked.readers.push(reader);
        if is_written {
            self.written(tile);
        }
    }

    /// Records that a tile lies on the disk now. A reader may have requested it before; it is read only once all the
    /// same.
    pub fn written(&mut self, tile: TileId) {
        let waiting = self.asked.get_mut(&tile).filter(|asked| !asked.is_queued);
        if let Some(asked) = waiting {
            asked.is_queued = true;
            self.ready.push_back(tile);
        }
    }

    /// The next tile to be read; `None` if `most` copies are being read or sent.
    pub fn next(&mut self, most: usize) -> Option<TileId> {
        let tile = if self.copies < most { self.ready.pop_front() } else { None }?;
        self.copies += 1;
        Some(tile)
    }

    /// Records that a tile was read; returns the readers that have requested it by now.
    pub fn read(&mut self, tile: TileId) -> Vec<R> {
        let readers = self.asked.remove(&tile).expect("it is read for somebody").readers;
        let leaving = self.leaving.entry(tile).or_default();
        leaving.transfers += readers.len();
        leaving.copies += 1;
        readers
    }

    /// Records that a transfer has ended.
    pub fn sent(&mut self, tile: TileId) {
        let leaving = self.leaving.get_mut(&tile).expect("it was being sent");
        leaving.transfers -= 1;
        if leaving.transfers == 0 {
            self.copies -= leaving.copies;
            self.leaving.remove(&tile);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: TileId = TileId { row: 3, col: 1 };

    #[test]
    fn a_tile_that_was_known_to_be_written_before_it_is_told_is_read_once() {
        let mut outgoing = Outgoing::default();
        outgoing.ask(TILE, 'a', true);
        outgoing.written(TILE);
        assert_eq!((outgoing.next(2), outgoing.next(2)), (Some(TILE), None));
        outgoing.written(TILE);
        assert_eq!(outgoing.read(TILE), ['a']);
        outgoing.sent(TILE);
        // No copy stays under way, or one day there would be no room for another tile.
        assert_eq!(outgoing.copies, 0);
        outgoing.written(TILE);
        assert_eq!(outgoing.next(2), None, "nobody asks");
        outgoing.ask(TILE, 'b', true);
        assert_eq!((outgoing.next(1), outgoing.read(TILE)), (Some(TILE), vec!['b']));
    }

    #[test]
    fn a_tile_is_read_once_for_all_who_have_asked() {
        let mut outgoing = Outgoing::default();
        outgoing.ask(TILE, 'a', false);
        assert_eq!(outgoing.next(2), None, "it is not on the disk");
        outgoing.written(TILE);
        outgoing.ask(TILE, 'b', true);
        assert_eq!((outgoing.next(2), outgoing.next(2)), (Some(TILE), None));
        assert_eq!(outgoing.read(TILE), ['a', 'b']);
        outgoing.sent(TILE);
        outgoing.ask(TILE, 'c', true);
        assert_eq!(outgoing.next(1), None, "the copy is still under way");
        outgoing.sent(TILE);
        assert_eq!(outgoing.next(1), Some(TILE));
        assert_eq!(outgoing.read(TILE), ['c']);
    }
}
