//! Sums of residues over nodes: each rank gets the blocks that it owns from all other nodes, and adds them up.
//!
//! Node by node: in round `s` every node sends to the node `s` places further and receives from the one `s` places
//! before. A rank receives from the rank of equal number within the sending node (modulo that node's ranks), so that
//! every link carries each residue once, in as many bits as its modulus has (`packing`). Sums modulo primes are exact:
//! no order of nodes can change a bit. Planes are sent in groups: while one group is in transit the next is multiplied.

use crate::comm::window::{Beside, Level, Partition, Rest, Run, Shares};
use crate::comm::{Incoming, Outgoing};
use crate::error::Result;
use crate::kernels::PlaneEngine;
use crate::ops::product::packing::Packing;
use crate::ops::product::segments::Region;
use crate::ops::product::shares::{OwnedBlocks, ShareStream, block_owners};
use crate::plan::pieces;
use crate::site::Team;
use crate::tile::TileMap;
use std::ops::Range;

/// Words whose residues make the largest message between two ranks; each rank has room for one message to each partner
/// of a node and one that it receives.
pub(crate) const MESSAGE_WORDS: usize = 1 << 16;

/// The exchange of one pair of bands.
pub(crate) struct Exchange<'a> {
    team: &'a Team,
    engine: &'a dyn PlaneEngine,
    owners: Vec<OwnedBlocks>,
    plane_words: usize,
}

/// The exchange of some planes of a pair of bands.
pub(crate) struct PlaneExchange<'e, 'a> {
    exchange: &'e Exchange<'a>,
    planes: Range<usize>,
}

/// Such an exchange under way.
struct PlaneRound<'e, 'a> {
    exchange: &'e Exchange<'a>,
    planes: Range<usize>,
    packing: Packing,
}

impl<'a> Exchange<'a> {
    /// The exchange of the planes of `region` of a result that `map` distributes.
    pub fn new(team: &'a Team, engine: &'a dyn PlaneEngine, map: &TileMap, region: &Region) -> Exchange<'a> {
        let owners = block_owners(map, region);
        Exchange { team, engine, owners, plane_words: engine.plane_words(&region.grid) }
    }

    /// The exchange of these planes.
    pub fn of(&self, planes: Range<usize>) -> PlaneExchange<'_, 'a> {
        PlaneExchange { exchange: self, planes }
    }
}

impl PlaneExchange<'_, '_> {
    /// The blocks of each rank of this node in the planes belong to that rank; those of other nodes are only read.
    pub fn partition(&self) -> Partition {
        let Exchange { team, engine, owners, plane_words } = self.exchange;
        let layout = team.layout();
        let node = layout.node_of[team.rank()];
        let own = owners.iter().filter(|run| layout.node_of[run.owner] == node);
        let block = engine.block_words();
        let runs = own.map(|run| Run {
            words: run.blocks.start * block..run.blocks.end * block,
            rank: layout.local_of[run.owner],
        });
        let outer = Level { count: self.planes.len(), stride: *plane_words };
        let partition = Partition::new(layout.nodes[node].len(), outer, Level::ONCE, runs.collect());
        partition.at(self.planes.start * plane_words)
    }

    /// The same for a phase in which other planes are written.
    pub fn beside<'p>(&self, partition: &'p Partition) -> Beside<'p> {
        Beside { partition, end: self.planes.end * self.exchange.plane_words }
    }

    /// Sends the residues of the planes that other nodes' ranks own and adds those received for this rank; returns
    /// the words sent. Collective over all nodes.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub fn run(self, shares: Shares<'_>) -> Result<u64> {
        let PlaneExchange { exchange, planes } = self;
        let packing = Packing::of_planes(exchange.engine, planes.clone());
        PlaneRound { exchange, planes, packing }.run(shares)
    }
}

impl PlaneRound<'_, '_> {
    fn run(&self, shares: Shares<'_>) -> Result<u64> {
        let Exchange { team, engine, owners, .. } = self.exchange;
        let layout = team.layout();
        let (own, rest) = shares.with_rest();
        let mut own = own.collect::<Vec<_>>();
        let rank = team.rank();
        let share = |owner| ShareStream::new(owners, owner, self.planes.len(), engine.block_words());
        let stream = share(rank);
        let (nodes, node) = (layout.nodes.len(), layout.node_of[rank]);
        // Packed residues are never longer.
        let mut received = vec![0; MESSAGE_WORDS.min(stream.len())];
        let mut sent_words = 0;
        for step in 1..nodes {
            let to = &layout.nodes[(node + step) % nodes];
            let from = &layout.nodes[(node + nodes - step) % nodes];
            let local = layout.local_of[rank];
            let mine = layout.nodes[node].len();
            let served = to.iter().copied().skip(local).step_by(mine);
            let streams = served.map(|other| (other, share(other)));
            let streams = streams.collect::<Vec<_>>();
            let sender = from[local % from.len()];
            let longest = streams.iter().map(|(_, stream)| stream.len()).max().unwrap_or(0).max(stream.len());
            for range in pieces(longest, MESSAGE_WORDS) {
                let messages = streams.iter().map(|(to, stream)| (*to, self.pack(stream, &range, &rest)));
                let messages = messages.filter(|(_, words)| !words.is_empty()).collect::<Vec<_>>();
                let sends = messages.iter().map(|(to, words)| Outgoing { to: *to, words }).collect::<Vec<_>>();
                sent_words += messages.iter().map(|(_, words)| words.len() as u64).sum::<u64>();
                let wanted = within(&stream, &range);
                let words = &mut received[..self.packing.message_words(&stream, wanted.clone())];
                let mut receives = Vec::new();
                if !words.is_empty() {
                    receives.push(Incoming { from: sender, words });
                }
                team.world().exchange(&sends, &mut receives)?;
                self.add(&stream, wanted, &received, &mut own);
            }
        }
        Ok(sent_words)
    }

    /// The words `range` of a stream, as far as it goes, packed.
    fn pack(&self, stream: &ShareStream, range: &Range<usize>, rest: &Rest<'_>) -> Vec<u64> {
        self.packing.pack(stream, within(stream, range), |plane, words| rest.words((plane, 0), words))
    }

    /// Adds a message to this rank's blocks.
    fn add(&self, stream: &ShareStream, range: Range<usize>, message: &[u64], own: &mut [&mut [u64]]) {
        let runs = own.len() / self.planes.len();
        self.packing.unpack(message, stream, range, |plane, run, within, words| {
            self.exchange.engine.add(self.planes.start + plane, &mut own[plane * runs + run][within], words);
        });
    }
}

/// As much of a range as a stream has.
fn within(stream: &ShareStream, range: &Range<usize>) -> Range<usize> {
    range.start.min(stream.len())..range.end.min(stream.len())
}
