//! Sums of residues over nodes: each rank gets the blocks that it owns from all other nodes, and adds them up.
//!
//! Node by node: in round `s` every node sends to the node `s` places further and receives from the one `s` places
//! before. A rank receives from the rank of equal number within the sending node (modulo that node's ranks), so that
//! every link carries each residue once, in as many bits as its modulus has. Sums modulo primes are exact: no order of
//! nodes can change a bit. Planes are sent in groups: while one group is in transit the next is multiplied. Three
//! parts: the rounds (`Exchange`), the stream of words that a rank is sent (`ShareStream`), and residues packed bit by
//! bit (`Packing`), which know neither ranks nor owners.

use crate::comm::window::{Beside, Level, Partition, Rest, Run, Shares};
use crate::comm::{Incoming, Outgoing};
use crate::error::Result;
use crate::kernels::{PlaneEngine, ResidueLanes};
use crate::matrix::Uplo;
use crate::ops::product::sink::Region;
use crate::plan::{BLOCK, pieces};
use crate::site::Team;
use crate::tile::{TileId, TileMap};
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

    /// The planes as a second part of a phase in which other planes are written.
    pub fn beside<'p>(&self, partition: &'p Partition) -> Beside<'p> {
        Beside { partition, end: self.planes.end * self.exchange.plane_words }
    }

    /// Sends the residues of the planes that other nodes' ranks own and adds those received for this rank; returns
    /// the words sent. Collective over all nodes.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub fn run(&self, shares: Shares<'_>) -> Result<u64> {
        let Exchange { team, engine, owners, .. } = self.exchange;
        let packing = Packing::of_planes(*engine, self.planes.clone());
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
                let messages = streams.iter().map(|(to, stream)| (*to, pack(&packing, stream, &range, &rest)));
                let messages = messages.filter(|(_, words)| !words.is_empty()).collect::<Vec<_>>();
                let sends = messages.iter().map(|(to, words)| Outgoing { to: *to, words }).collect::<Vec<_>>();
                sent_words += messages.iter().map(|(_, words)| words.len() as u64).sum::<u64>();
                let wanted = within(&stream, &range);
                let words = &mut received[..packing.message_words(&stream, wanted.clone())];
                let mut receives = Vec::new();
                if !words.is_empty() {
                    receives.push(Incoming { from: sender, words });
                }
                team.world().exchange(&sends, &mut receives)?;
                self.add(&packing, &stream, wanted, &received, &mut own);
            }
        }
        Ok(sent_words)
    }

    /// Adds a message to this rank's blocks.
    fn add(
        &self,
        packing: &Packing,
        stream: &ShareStream,
        range: Range<usize>,
        message: &[u64],
        own: &mut [&mut [u64]],
    ) {
        let runs = own.len() / self.planes.len();
        packing.unpack(message, stream, range, |plane, run, within, words| {
            self.exchange.engine.add(self.planes.start + plane, &mut own[plane * runs + run][within], words);
        });
    }
}

/// The words `range` of a stream, as far as it goes, packed.
fn pack(packing: &Packing, stream: &ShareStream, range: &Range<usize>, rest: &Rest<'_>) -> Vec<u64> {
    packing.pack(stream, within(stream, range), |plane, words| rest.words((plane, 0), words))
}

/// As much of a range as a stream has.
fn within(stream: &ShareStream, range: &Range<usize>) -> Range<usize> {
    range.start.min(stream.len())..range.end.min(stream.len())
}

/// Neighbouring blocks of a plane, by linear index, whose entries live on one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedBlocks {
    /// Linear block indices.
    pub blocks: Range<usize>,
    /// The rank.
    pub owner: usize,
}

/// The owners of all blocks of `region`, in the order of the blocks.
pub(crate) fn block_owners(map: &TileMap, region: &Region) -> Vec<OwnedBlocks> {
    let tile_blocks = map.tile_size / BLOCK;
    let grid = &region.grid;
    let mut owners: Vec<OwnedBlocks> = Vec::new();
    let mut next = 0;
    for col in 0..grid.cols {
        let mut row = grid.first_row(col);
        while row < grid.rows {
            // Blocks down to the end of the tile that the first of them lies in.
            let (left, right) = (region.first_left + row, region.first_right + col);
            let last = ((left / tile_blocks + 1) * tile_blocks - region.first_left).min(grid.rows);
            let (left, right) = (left / tile_blocks, right / tile_blocks);
            let tile = match region.uplo {
                Uplo::Lower => TileId { row: left, col: right },
                Uplo::Upper => TileId { row: right, col: left },
            };
            let (owner, blocks) = (map.owner(tile), next..next + last - row);
            next = blocks.end;
            row = last;
            match owners.last_mut() {
                Some(before) if before.owner == owner => before.blocks.end = blocks.end,
                _ => owners.push(OwnedBlocks { blocks, owner }),
            }
        }
    }
    owners
}

/// The words of all planes that belong to one rank, as one stream: plane by plane, in each its blocks in order.
#[derive(Clone, Debug)]
pub(crate) struct ShareStream {
    /// Words of a plane.
    runs: Vec<Range<usize>>,
    /// Where each run begins in the stream of one plane, and at last the words of that stream.
    starts: Vec<usize>,
    planes: usize,
}

/// A piece of a stream that is contiguous in a plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamPiece {
    /// The plane.
    pub plane: usize,
    /// The number of the run among the rank's runs.
    pub run: usize,
    /// Words, counted from the start of the run.
    pub within: Range<usize>,
    /// The same words, counted from the start of the plane.
    pub words: Range<usize>,
}

impl ShareStream {
    /// The share of `owner` in `planes` planes with blocks of `block_words` words.
    pub fn new(owners: &[OwnedBlocks], owner: usize, planes: usize, block_words: usize) -> ShareStream {
        let of_owner = owners.iter().filter(|run| run.owner == owner);
        let runs = of_owner.map(|run| run.blocks.start * block_words..run.blocks.end * block_words).collect::<Vec<_>>();
        let mut starts = vec![0];
        for run in &runs {
            starts.push(starts[starts.len() - 1] + run.len());
        }
        ShareStream { runs, starts, planes }
    }

    /// Words of the whole stream.
    pub fn len(&self) -> usize {
        self.starts[self.runs.len()] * self.planes
    }

    /// Visits the pieces of the words `range` of the stream, in order.
    pub fn for_each(&self, range: Range<usize>, mut visit: impl FnMut(StreamPiece)) {
        let plane_words = self.starts[self.runs.len()];
        let mut at = range.start;
        while at < range.end {
            let (plane, place) = (at / plane_words, at % plane_words);
            let run = self.starts.partition_point(|&start| start <= place) - 1;
            let start = place - self.starts[run];
            let count = (self.runs[run].len() - start).min(range.end - at);
            let first = self.runs[run].start + start;
            visit(StreamPiece { plane, run, within: start..start + count, words: first..first + count });
            at += count;
        }
    }
}

/// Words that are unpacked at a time.
const TOGETHER: usize = 256;

/// The packing of the residues of an engine's product planes.
pub(crate) struct Packing {
    lanes: ResidueLanes,
    /// Of each plane.
    moduli: Vec<u64>,
    /// Bits of the least residues of each plane.
    bits: Vec<u32>,
}

impl Packing {
    /// The packing of all planes of an engine.
    pub fn new(engine: &dyn PlaneEngine) -> Packing {
        Packing::of(engine.residue_lanes(), engine.moduli())
    }

    /// The packing of some planes of an engine, counted from the first of them.
    pub fn of_planes(engine: &dyn PlaneEngine, planes: Range<usize>) -> Packing {
        Packing::of(engine.residue_lanes(), &engine.moduli()[planes])
    }

    /// The packing for planes whose words hold residues as `lanes` describes, modulo `moduli`.
    pub fn of(lanes: ResidueLanes, moduli: &[u64]) -> Packing {
        let bits = moduli.iter().map(|modulus| (u64::BITS - (modulus - 1).leading_zeros()).max(1));
        Packing { lanes, bits: bits.collect(), moduli: moduli.to_vec() }
    }

    /// `sums := sums + words` modulo the modulus of a plane, for least residues.
    pub fn add(&self, plane: usize, sums: &mut [u64], words: &[u64]) {
        let (lane_bits, modulus) = (self.lanes.bits(), self.moduli[plane]);
        let mask = u64::MAX >> (64 - lane_bits);
        for (sum, &word) in sums.iter_mut().zip(words) {
            let lane = |word: u64, lane: usize| word >> (lane as u32 * lane_bits) & mask;
            *sum = (0..self.lanes.count()).fold(0, |all, at| {
                let whole = lane(*sum, at) + lane(word, at);
                // The lesser of the sum and its excess over the modulus: both of them lie below 2^63.
                all | whole.min(whole.wrapping_sub(modulus)) << (at as u32 * lane_bits)
            });
        }
    }

    /// Bits of the residues of `words` words of each plane.
    pub fn plane_bits(&self, words: usize) -> u64 {
        let lanes = (words * self.lanes.count()) as u64;
        self.bits.iter().map(|&bits| lanes * u64::from(bits)).sum()
    }

    /// Words of a message with the words `range` of a stream.
    pub fn message_words(&self, stream: &ShareStream, range: Range<usize>) -> usize {
        let mut total = 0;
        stream.for_each(range, |piece| {
            total += piece.words.len() * self.lanes.count() * self.bits[piece.plane] as usize;
        });
        total.div_ceil(64)
    }

    /// The message with the words `range` of a stream; `words` returns the words of a plane.
    pub fn pack<'w>(
        &self,
        stream: &ShareStream,
        range: Range<usize>,
        words: impl Fn(usize, Range<usize>) -> &'w [u64],
    ) -> Vec<u64> {
        let mut packed = vec![0; self.message_words(stream, range.clone())];
        let mut message = Message { words: &mut packed, at: 0 };
        stream.for_each(range, |piece| self.append(&mut message, piece.plane, words(piece.plane, piece.words)));
        packed
    }

    /// Words of a message with `words` words of a plane.
    pub fn words_of_plane(&self, plane: usize, words: usize) -> usize {
        (words * self.lanes.count() * self.bits[plane] as usize).div_ceil(64)
    }

    /// A message with words of one plane, into zeroed words; their number is that of [`Packing::words_of_plane`].
    pub fn pack_plane(&self, plane: usize, words: &[u64], message: &mut [u64]) {
        self.append(&mut Message { words: message, at: 0 }, plane, words);
    }

    /// Adds the words in such a message to `sums`, for least residues.
    pub fn add_packed(&self, plane: usize, message: &[u64], sums: &mut [u64]) {
        let (mut message, mut words) = (MessageBits { words: message, at: 0 }, [0; TOGETHER]);
        for sums in sums.chunks_mut(TOGETHER) {
            self.take(plane, &mut message, &mut words[..sums.len()]);
            self.add(plane, sums, &words[..sums.len()]);
        }
    }

    /// Appends the residues of some words of a plane.
    fn append(&self, message: &mut Message<'_>, plane: usize, words: &[u64]) {
        let (bits, modulus) = (self.bits[plane], self.moduli[plane]);
        let (lane_bits, count) = (self.lanes.bits(), self.lanes.count());
        let mask = u64::MAX >> (64 - lane_bits);
        for &word in words {
            for lane in 0..count as u32 {
                let lane = word >> (lane * lane_bits) & mask;
                message.push(self.lanes.least(lane, modulus), bits);
            }
        }
    }

    /// The next words of a plane in a message.
    fn take(&self, plane: usize, message: &mut MessageBits<'_>, words: &mut [u64]) {
        let (bits, modulus) = (self.bits[plane], self.moduli[plane]);
        let (lane_bits, count) = (self.lanes.bits(), self.lanes.count());
        for word in words {
            *word = 0;
            for lane in 0..count {
                *word |= self.lanes.lane(message.next(bits), modulus) << (lane as u32 * lane_bits);
            }
        }
    }

    /// Passes the words `range` of a stream to `take` unpacked, a part of a piece at a time: the plane, the run, where
    /// in the run, and the words.
    pub fn unpack(
        &self,
        message: &[u64],
        stream: &ShareStream,
        range: Range<usize>,
        mut take: impl FnMut(usize, usize, Range<usize>, &[u64]),
    ) {
        let mut message = MessageBits { words: message, at: 0 };
        let mut words = [0; TOGETHER];
        stream.for_each(range, |piece| {
            for start in piece.within.clone().step_by(TOGETHER) {
                let within = start..piece.within.end.min(start + TOGETHER);
                self.take(piece.plane, &mut message, &mut words[..within.len()]);
                take(piece.plane, piece.run, within.clone(), &words[..within.len()]);
            }
        });
    }
}

/// A message under way, in words that were 0.
struct Message<'m> {
    words: &'m mut [u64],
    /// Bits that are taken.
    at: usize,
}

impl Message<'_> {
    /// Appends the lowest bits of a word, whose others are 0.
    fn push(&mut self, value: u64, bits: u32) {
        let (word, shift) = (self.at / 64, self.at as u32 % 64);
        self.words[word] |= value << shift;
        if shift + bits > 64 {
            self.words[word + 1] = value >> (64 - shift);
        }
        self.at += bits as usize;
    }
}

/// A message that is read.
struct MessageBits<'m> {
    words: &'m [u64],
    /// Bits that were read.
    at: usize,
}

impl MessageBits<'_> {
    /// The next bits.
    fn next(&mut self, bits: u32) -> u64 {
        let (word, shift) = (self.at / 64, self.at as u32 % 64);
        let mut value = self.words[word] >> shift;
        if shift + bits > 64 {
            value |= self.words[word + 1] << (64 - shift);
        }
        self.at += bits as usize;
        value & (u64::MAX >> (64 - bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BlockGrid, band_pairs};
    use crate::tile::RankGrid;

    #[test]
    fn owners_of_all_bands_agree_with_the_tiles() {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            for (size, tile_size, ranks, band) in [(67, 16, 6, 3), (200, 8, 4, 25), (9, 256, 3, 1), (130, 24, 13, 7)] {
                let map = TileMap {
                    rows: size,
                    cols: size,
                    tile_size,
                    grid: RankGrid::for_ranks(ranks),
                    triangle: Some(uplo),
                };
                let panels = size.div_ceil(BLOCK);
                for pair in band_pairs(BlockGrid { rows: panels, cols: panels, triangle: true }, band) {
                    let (first_left, first_right) = (pair.left.start, pair.right.start);
                    let region = Region { grid: pair.grid, first_left, first_right, uplo, half: None };
                    let owners = block_owners(&map, &region);
                    let mut index = 0;
                    for col in 0..pair.grid.cols {
                        for row in pair.grid.first_row(col)..pair.grid.rows {
                            let found = owners.iter().find(|run| run.blocks.contains(&index)).unwrap();
                            let (row, col) = (first_left + row, first_right + col);
                            let (row, col) = if uplo == Uplo::Lower { (row, col) } else { (col, row) };
                            let tile = TileId { row: row * BLOCK / tile_size, col: col * BLOCK / tile_size };
                            assert_eq!(found.owner, map.owner(tile));
                            index += 1;
                        }
                    }
                    assert_eq!(index, pair.grid.len());
                    let words: usize = (0..ranks).map(|rank| ShareStream::new(&owners, rank, 3, 64).len()).sum();
                    assert_eq!(words, 3 * pair.grid.words());
                }
            }
        }
    }

    #[test]
    fn pieces_of_a_stream_are_the_stream() {
        let map =
            TileMap { rows: 90, cols: 90, tile_size: 16, grid: RankGrid::for_ranks(4), triangle: Some(Uplo::Lower) };
        let region =
            Region { grid: BlockGrid::triangle(90), first_left: 0, first_right: 0, uplo: Uplo::Lower, half: None };
        let owners = block_owners(&map, &region);
        let stream = ShareStream::new(&owners, 1, 5, 64);
        let mut whole = Vec::new();
        stream.for_each(0..stream.len(), |piece| {
            whole.extend(piece.words.clone().map(|word| (piece.plane, piece.run, word)));
            assert_eq!(piece.within.len(), piece.words.len());
        });
        assert_eq!(whole.len(), stream.len());
        assert!(whole.is_sorted());
        for size in [1, 63, 64, 1000, stream.len()] {
            let mut joined = Vec::new();
            for range in pieces(stream.len(), size) {
                stream.for_each(range, |piece| {
                    joined.extend(piece.words.clone().map(|word| (piece.plane, piece.run, word)));
                });
            }
            assert_eq!(joined, whole);
        }
    }

    /// A message of one plane has the bits of a stream of only that plane, and its words are added correctly.
    fn planes_alone(packing: &Packing, plane: usize, words: &[u64]) {
        let (lanes, modulus) = (packing.lanes, packing.moduli[plane]);
        let alone = Packing::of(lanes, &[modulus]);
        let stream = ShareStream::new(&[OwnedBlocks { blocks: 0..words.len(), owner: 0 }], 0, 1, 1);
        let want = alone.pack(&stream, 0..words.len(), |_, range| &words[range]);
        let mut message = vec![0; packing.words_of_plane(plane, words.len())];
        packing.pack_plane(plane, words, &mut message);
        assert_eq!(message, want);
        if !matches!(lanes, ResidueLanes::Pairs | ResidueLanes::Halves) {
            return;
        }
        let mut sums = words.iter().rev().copied().collect::<Vec<_>>();
        packing.add_packed(plane, &message, &mut sums);
        let lane = |word: u64, at: usize| word >> (at as u32 * lanes.bits()) & (u64::MAX >> (64 - lanes.bits()));
        for (at, &sum) in sums.iter().enumerate() {
            let terms = [words[at], words[words.len() - 1 - at]];
            for number in 0..lanes.count() {
                let want = terms.iter().map(|&word| lane(word, number)).sum::<u64>() % modulus;
                assert_eq!(lane(sum, number), want, "{lanes:?} modulo {modulus}");
            }
        }
    }

    #[test]
    fn messages_hold_what_was_packed_in_as_few_words_as_there_can_be() {
        let mut state = 5u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) % below
        };
        for (lanes, moduli) in [
            (ResidueLanes::Words, vec![(1u64 << 52) - 47, 3, 65_537, (1 << 51) + 1]),
            (ResidueLanes::Pairs, vec![(1 << 23) - 15, 3, 65_537, (1 << 31) - 1]),
            (ResidueLanes::Halves, vec![251, 16_381, 256, 2]),
            (ResidueLanes::BalancedHalves, vec![8191, 8179, 4093, 2039]),
            (ResidueLanes::Doubles, vec![(1 << 23) - 15, 8_388_593, 101]),
        ] {
            let packing = Packing::of(lanes, &moduli);
            let block = 64 / lanes.count();
            let owners = [0..3, 3..4, 4..9, 9..20].map(|blocks| OwnedBlocks { owner: blocks.start % 2, blocks });
            let planes = moduli.iter().map(|&modulus| {
                let word = |_| {
                    (0..lanes.count()).fold(0, |word, lane| {
                        let least = if random(9) == 0 { modulus - 1 } else { random(modulus) };
                        let balanced = if least > modulus / 2 { least as i64 - modulus as i64 } else { least as i64 };
                        let value = match lanes {
                            ResidueLanes::BalancedHalves => u64::from(balanced as u16),
                            ResidueLanes::Doubles => (balanced as f64).to_bits(),
                            ResidueLanes::Words | ResidueLanes::Pairs | ResidueLanes::Halves => least,
                        };
                        word | value << (lane as u32 * lanes.bits())
                    })
                };
                (0..20 * block).map(word).collect::<Vec<u64>>()
            });
            let planes = planes.collect::<Vec<_>>();
            for (plane, words) in planes.iter().enumerate() {
                planes_alone(&packing, plane, words);
            }
            for owner in [0, 1] {
                let stream = ShareStream::new(&owners, owner, moduli.len(), block);
                for size in [1, 7, 64, 1000, stream.len()] {
                    for start in (0..stream.len()).step_by(size) {
                        let range = start..stream.len().min(start + size);
                        let message = packing.pack(&stream, range.clone(), |plane, words| &planes[plane][words]);
                        assert_eq!(message.len(), packing.message_words(&stream, range.clone()));
                        let mut want = Vec::new();
                        stream
                            .for_each(range.clone(), |piece| want.extend_from_slice(&planes[piece.plane][piece.words]));
                        let mut got = Vec::new();
                        packing.unpack(&message, &stream, range, |_, _, within, words| {
                            assert_eq!(within.len(), words.len());
                            got.extend_from_slice(words);
                        });
                        assert_eq!(got, want, "{lanes:?}, owner {owner}, {size} words at a time");
                    }
                }
                let words = packing.message_words(&stream, 0..stream.len()) as u64;
                assert_eq!(words, packing.plane_bits(stream.len() / moduli.len()).div_ceil(64));
            }
        }
    }
}
