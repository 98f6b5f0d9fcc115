//! Finished own tiles packed for sending, at most the number in memory that a plan allows.
//!
//! A tile is packed when it is finished, where there is room, else when a reader requests it. Room is made by dropping
//! words that are not being sent: they are packed again where a reader still requests them. Words being sent leave
//! eventually, so there is always room for the next tile in the end.

use super::disk_state::Reader;
use crate::comm::mailbox::Payload;
use crate::tile::TileId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Words of own tiles, and the readers that wait for some.
pub(super) struct PackedTiles {
    tiles: FxHashMap<TileId, Payload>,
    /// Transfers of a tile that have begun and not ended.
    sending: FxHashMap<TileId, usize>,
    /// The readers of a tile once it is packed.
    readers: FxHashMap<TileId, Vec<Reader>>,
    /// Tiles with such readers that no worker packs yet, in the order of their requests.
    wanted: VecDeque<TileId>,
    /// Tiles that workers pack.
    under_way: usize,
    /// The largest number of tiles, including those being packed.
    most: usize,
    bytes: u64,
    peak_bytes: u64,
}

impl PackedTiles {
    /// Room for `most` tiles, at least one.
    pub fn new(most: usize) -> PackedTiles {
        PackedTiles {
            tiles: FxHashMap::default(),
            sending: FxHashMap::default(),
            readers: FxHashMap::default(),
            wanted: VecDeque::new(),
            under_way: 0,
            most: most.max(1),
            bytes: 0,
            peak_bytes: 0,
        }
    }

    /// Bytes now.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The largest number of bytes at a time.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    fn has_room(&self) -> bool {
        self.tiles.len() + self.under_way < self.most
    }

    /// Sets room aside for a tile that has just been finished, where there is some.
    pub fn set_aside(&mut self) -> bool {
        let has_room = self.has_room();
        self.under_way += usize::from(has_room);
        has_room
    }

    /// Stores the words of a tile for which memory was set aside, and returns the readers that wait for them.
    pub fn keep(&mut self, tile: TileId, words: Payload) -> Vec<Reader> {
        self.under_way -= 1;
        self.bytes += bytes_of(&words);
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        self.tiles.insert(tile, words);
        let readers = self.readers.remove(&tile).unwrap_or_default();
        if !readers.is_empty() {
            *self.sending.entry(tile).or_default() += readers.len();
        }
        readers
    }

    /// The words of a tile for a reader, to which they are sent at once; without them it waits until they are packed.
    pub fn ask(&mut self, tile: TileId, reader: impl FnOnce() -> Reader) -> Option<Payload> {
        if let Some(words) = self.tiles.get(&tile) {
            *self.sending.entry(tile).or_default() += 1;
            return Some(words.clone());
        }
        let readers = self.readers.entry(tile).or_default();
        if readers.is_empty() {
            self.wanted.push_back(tile);
        }
        readers.push(reader());
        None
    }

    /// Notes that a tile has left once.
    pub fn left(&mut self, tile: TileId) {
        if let Some(count) = self.sending.get_mut(&tile) {
            *count -= 1;
            if *count == 0 {
                self.sending.remove(&tile);
            }
        }
    }

    /// A tile whose words may be dropped: the last one in the order in which readers request tiles.
    fn idle(&self) -> Option<TileId> {
        let idle = self.tiles.keys().filter(|tile| !self.sending.contains_key(tile));
        idle.max_by_key(|tile| (tile.col, tile.row)).copied()
    }

    /// Tiles that workers could begin to pack now.
    pub fn jobs(&self) -> usize {
        if !self.wanted.is_empty() && (self.has_room() || self.idle().is_some()) { 1 } else { 0 }
    }

    /// A tile to be packed now, with room set aside for it.
    pub fn next_job(&mut self) -> Option<TileId> {
        if self.wanted.is_empty() {
            return None;
        }
        if !self.has_room() {
            let idle = self.idle()?;
            self.release(idle);
        }
        self.under_way += 1;
        self.wanted.pop_front()
    }

    /// The words of a tile are not needed any more.
    pub fn release(&mut self, tile: TileId) {
        if let Some(words) = self.tiles.remove(&tile) {
            self.bytes -= bytes_of(&words);
        }
    }
}

fn bytes_of(words: &Payload) -> u64 {
    size_of_val(words.as_slice()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn tile(row: usize, col: usize) -> TileId {
        TileId { row, col }
    }

    fn words() -> Payload {
        Arc::new(vec![0; 4])
    }

    #[test]
    fn what_finds_no_room_is_packed_when_it_is_asked_for() {
        let mut packed = PackedTiles::new(2);
        for row in [1, 2] {
            assert!(packed.set_aside());
            assert!(packed.keep(tile(row, 0), words()).is_empty());
        }
        assert!(!packed.set_aside(), "a third tile");
        assert!(packed.ask(tile(1, 0), || (1, vec![])).is_some());
        assert!(packed.ask(tile(3, 0), || (1, vec![7])).is_none() && packed.ask(tile(3, 0), || (2, vec![8])).is_none());
        // The second tile is dropped, as it is not being sent; it is requested later and waits for the first.
        assert_eq!((packed.jobs(), packed.next_job(), packed.next_job()), (1, Some(tile(3, 0)), None));
        assert_eq!(packed.keep(tile(3, 0), words()), [(1, vec![7]), (2, vec![8])]);
        assert!(packed.ask(tile(2, 0), || (1, vec![9])).is_none());
        assert_eq!((packed.jobs(), packed.next_job()), (0, None), "all is on its way");
        packed.left(tile(3, 0));
        assert_eq!(packed.jobs(), 0, "one of two readers has it");
        packed.left(tile(1, 0));
        assert_eq!(packed.next_job(), Some(tile(2, 0)));
        assert_eq!(packed.keep(tile(2, 0), words()), [(1, vec![9])]);
        assert_eq!((packed.bytes(), packed.peak_bytes()), (64, 64));
        [tile(2, 0), tile(3, 0)].into_iter().for_each(|tile| packed.release(tile));
        assert_eq!((packed.bytes(), packed.jobs()), (0, 0));
    }
}
