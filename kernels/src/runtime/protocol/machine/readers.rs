//! The ranks that finished tiles go to: ranks that share the owner's memory are notified, the others are sent the tiles
//! that they request.

use super::TaskMachine;
use crate::runtime::protocol::progress::Operand;
use crate::runtime::protocol::{Message, ProtocolAction};
use crate::tile::TileId;

impl TaskMachine {
    /// The readers that a tile is sent to, and the number of this rank, which is one of them; the owner has number 0.
    pub(super) fn readers(&self, tile: TileId) -> (Vec<u32>, usize) {
        let clients = self.memories.clients(self.grid, self.graph.tiles, tile);
        let place = clients.iter().position(|&client| client as usize == self.rank).expect("a reader");
        (clients, 1 + place)
    }

    /// The ranks that this rank serves by a rule known in advance.
    pub(super) fn served_here(&self, tile: TileId) -> Vec<u32> {
        if self.delivery.sends_notices() || self.delivery.delegated(2) > 0 {
            return Vec::new(); // the list comes with the tile
        }
        let (clients, own) = self.readers(tile);
        let served = self.delivery.served_by(clients.len() + 1, own);
        served.into_iter().map(|number| clients[number - 1]).collect()
    }

    /// Lets the ranks that read a finished tile have it.
    pub(super) fn tell_clients(&mut self, tile: TileId) {
        let (grid, tiles) = (self.grid, self.graph.tiles);
        let neighbours = self.memories.neighbours(grid, tiles, tile);
        self.counters.notices += neighbours.len() as u64;
        let shown = |to: u32| ProtocolAction::Send { to: to as usize, message: Message::Shown(tile) };
        self.actions.extend(neighbours.into_iter().map(shown));
        let clients = self.memories.clients(grid, tiles, tile);
        if !clients.is_empty() {
            self.outbox(tile).finished = true;
            if self.delivery.sends_notices() {
                self.counters.notices += clients.len() as u64;
                let notice = |to: u32| ProtocolAction::Send { to: to as usize, message: Message::Notice(tile) };
                self.actions.extend(clients.into_iter().map(notice));
            }
            self.serve_own(tile);
        }
    }

    /// A tile of another rank can be read where it lies.
    pub(super) fn was_shown(&mut self, tile: TileId) {
        self.arrive(tile, Operand::InPlace);
    }
}
