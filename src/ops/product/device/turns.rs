//! The order of messages: at each turn the sender, the receiver and the owner of the entries.
//!
//! Pure: numbers of ranks and nodes. Independent of: residues, messages.

use crate::site::NodeLayout;
use crate::tile::TileMap;

/// One step of this rank: it sends its residues of one owner's entries to the rank of its node that collects them, and
/// takes the residues that another rank of the node has for the owner for which it collects itself.
pub(super) struct ExchangeTurn {
    /// Distance in nodes from this rank's node to that of the owners.
    pub nodes_on: usize,
    /// Number of ranks of that node for which each rank here has collected already.
    pub number: usize,
    /// The collecting rank; at first this rank.
    pub to: usize,
    /// The owner of these entries; none where the other node has fewer ranks.
    pub owner: Option<usize>,
    /// The rank whose residues this rank takes.
    pub from: usize,
    /// The owner that this rank collects for.
    pub collected: Option<usize>,
    /// Whether nothing has been collected yet, and whether this is the last part.
    pub ends: (bool, bool),
}

/// The ranks, and the rows and entries of a product that each has.
#[derive(Clone, Copy)]
pub(crate) struct Owners<'a> {
    /// This rank.
    pub rank: usize,
    /// The nodes of the ranks.
    pub layout: &'a NodeLayout,
    /// Tiles of the result.
    pub map: &'a TileMap,
    /// Whether each rank has rows of the operands, and so residues.
    pub sends: &'a [bool],
}

impl Owners<'_> {
    /// All turns of a round, in an order without deadlock: at the same turn the sender of a message has its receiver as
    /// `to`, and the receiver has the sender as `from`.
    pub(super) fn turns(&self) -> Vec<ExchangeTurn> {
        let Owners { rank, layout, .. } = *self;
        let (node, local, nodes) = (layout.node_of[rank], layout.local_of[rank], layout.nodes.len());
        let own = &layout.nodes[node];
        let sizes = layout.nodes.iter().map(Vec::len);
        let (least, most) = (sizes.clone().min().unwrap_or(1), sizes.max().unwrap_or(1));
        let mut turns = Vec::new();
        for (nodes_on, number) in (0..nodes).flat_map(|on| (0..most.div_ceil(least)).map(move |number| (on, number))) {
            let owners = &layout.nodes[(node + nodes_on) % nodes];
            let collects_for = |local: usize| owners.get(local + number * own.len()).copied();
            turns.extend((0..own.len()).map(|step| ExchangeTurn {
                nodes_on,
                number,
                to: own[(local + step) % own.len()],
                owner: collects_for((local + step) % own.len()),
                from: own[(local + own.len() - step) % own.len()],
                collected: collects_for(local),
                ends: (step == 0, step + 1 == own.len()),
            }));
        }
        turns
    }

    /// The rank that sends this rank the sums of the node `nodes_on` places before its own, if it does so at turn
    /// `number`.
    pub(super) fn sender(&self, nodes_on: usize, number: usize) -> Option<usize> {
        let Owners { rank, layout, .. } = *self;
        let nodes = layout.nodes.len();
        let from = &layout.nodes[(layout.node_of[rank] + nodes - nodes_on) % nodes];
        let local = layout.local_of[rank];
        let sends = from.iter().any(|&rank| self.sends[rank]) && number == local / from.len();
        sends.then(|| from[local % from.len()])
    }

    /// Bytes that this rank sends, where messages about the entries of a rank have the words that `message_words` lists
    /// for it.
    pub fn sent_bytes(&self, message_words: &[u64]) -> u64 {
        let words_of = |owner: Option<usize>| owner.map_or(0, |owner| message_words[owner]);
        let of_turn = |turn: &ExchangeTurn| {
            let given = turn.owner.filter(|_| self.sends[self.rank] && turn.to != self.rank);
            let forwarded = turn.collected.filter(|_| self.node_sends() && turn.ends.1 && turn.nodes_on > 0);
            words_of(given) + words_of(forwarded)
        };
        8 * self.turns().iter().map(of_turn).sum::<u64>()
    }

    /// Whether some rank of this rank's node has rows.
    pub(super) fn node_sends(&self) -> bool {
        self.layout.nodes[self.layout.node_of[self.rank]].iter().any(|&rank| self.sends[rank])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::RankGrid;

    /// For any nodes, at every turn the sender of a message and its receiver name each other, and in the end every
    /// owner has been given the residues of all ranks, once.
    #[test]
    fn every_owner_gets_the_residues_of_all_ranks_once() {
        let grid = RankGrid { rows: 1, cols: 1 };
        let map = &TileMap { rows: 1, cols: 1, tile_size: 8, grid, triangle: None };
        for machine_of in [vec![0], vec![0, 0, 0], vec![0, 1], vec![0, 0, 1, 1, 2], vec![0, 1, 1, 1, 1, 1, 2, 0]] {
            let (layout, ranks) = (&NodeLayout::new(&machine_of, None), machine_of.len());
            let sends = &vec![true; ranks][..];
            let owners = |rank: usize| Owners { rank, layout, map, sends };
            let turns = (0..ranks).map(|rank| owners(rank).turns()).collect::<Vec<_>>();
            assert!(turns.iter().all(|of_rank| of_rank.iter().filter(|turn| turn.owner.is_some()).count() == ranks));
            // The residues that a rank has collected for its owner, and those that owners have.
            let mut collected = vec![Vec::new(); ranks];
            let mut own = vec![Vec::new(); ranks];
            let longest = turns.iter().map(Vec::len).max().unwrap();
            let place = |turn: &ExchangeTurn| (turn.nodes_on, turn.number);
            for (rank, of_rank) in turns.iter().enumerate() {
                for (index, turn) in of_rank.iter().enumerate() {
                    let Some(owner) = turn.owner else { continue };
                    let partner = &turns[turn.to][index];
                    assert_eq!((partner.from, partner.collected, place(partner)), (rank, Some(owner), place(turn)));
                }
            }
            assert!(longest >= ranks.div_ceil(layout.nodes.len()));
            for (rank, of_rank) in turns.iter().enumerate() {
                for turn in of_rank {
                    if turn.ends.0 {
                        collected[rank].clear();
                    }
                    collected[rank].push(turn.from);
                    let Some(owner) = turn.collected.filter(|_| turn.ends.1) else { continue };
                    let of_owner = owners(owner).sender(turn.nodes_on, turn.number);
                    assert!(if turn.nodes_on == 0 { owner == rank } else { of_owner == Some(rank) });
                    own[owner].extend(std::mem::take(&mut collected[rank]));
                }
            }
            for got in &mut own {
                got.sort_unstable();
                assert_eq!(*got, (0..ranks).collect::<Vec<_>>(), "{machine_of:?}");
            }
        }
    }
}
