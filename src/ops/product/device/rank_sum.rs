//! Sums over ranks of the residues on their devices: each rank gets the sums for the entries in its own tiles.
//!
//! Ranks send each other residues in as many bits as their modulus has (`Packing`), as nodes of CPUs do. Ranks of a
//! node first add up their residues for a rank of another node, so that every residue travels between nodes once. Sums
//! modulo the moduli are exact: no order of ranks can change a bit.
//! A rank holds a bounded number of entries at a time (`DeviceInput::exchanged`), however large the result is.
//! Two parts: the messages and sums (`RankSum`), and their order (`Owners`): at each turn the sender, the receiver and
//! the owner of the entries, as pure numbers of ranks and nodes.

use crate::comm::{Incoming, Outgoing, Transport, agree, agreed};
use crate::context::Context;
use crate::device::{Event, Region};
use crate::drive::{Meter, parallel_for};
use crate::error::{Error, Result};
use crate::kernels::ResidueLanes;
use crate::kernels::device::{Residues, Select};
use crate::ops::product::device::lane::Lane;
use crate::ops::product::device::portions::{Portion, copies_of, entries_of};
use crate::ops::product::device::recover::Finish;
use crate::ops::product::device::stage::EntrySink;
use crate::ops::product::exchange::Packing;
use crate::ops::product::sink::ResultTarget;
use crate::plan::{DeviceCut, DeviceInput, Strip};
use crate::site::NodeLayout;
use crate::tile::TileMap;
use std::ops::Range;

/// The layout of the residues of some entries in the host's memory, modulo one modulus after the other. The residues
/// modulo each modulus fill whole words of a message, so that moduli are packed and added independently.
#[derive(Clone, Copy)]
struct PackedPlanes {
    /// Entries.
    count: usize,
    /// Bytes of a residue.
    size: usize,
    /// Number of moduli.
    moduli: usize,
}

impl PackedPlanes {
    /// Words of each modulus.
    fn words(&self) -> usize {
        self.count.next_multiple_of(u64::BITS as usize) * self.size / 8
    }

    /// Residues from one modulus to the next.
    fn stride(&self) -> usize {
        self.words() * 8 / self.size
    }

    /// Words of a message.
    fn message_words(&self, packing: &Packing) -> usize {
        (0..self.moduli).map(|plane| packing.words_of_plane(plane, self.words())).sum()
    }

    /// The part of each modulus of a message.
    fn parts<'m>(&self, packing: &'m Packing, message: &'m mut [u64]) -> impl Iterator<Item = &'m mut [u64]> + use<'m> {
        let (words, mut rest) = (self.words(), message);
        (0..self.moduli).map(move |plane| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(packing.words_of_plane(plane, words));
            rest = after;
            part
        })
    }

    /// Packs the words of each modulus into a message.
    fn pack<'w>(
        &self,
        ctx: &Context,
        packing: &Packing,
        words: &(dyn Fn(usize) -> &'w [u64] + Sync),
        message: &mut [u64],
    ) -> Result<()> {
        let parts = self.parts(packing, message);
        PackedPlanes::for_each(ctx, parts, |plane, part| packing.pack_plane(plane, words(plane), part))
    }

    /// Runs `work` on the item of `each` for every modulus, in parallel.
    fn for_each<T: Send>(
        ctx: &Context,
        each: impl Iterator<Item = T> + Send,
        work: impl Fn(usize, T) + Sync,
    ) -> Result<()> {
        let (mut each, mut locals) = (each.enumerate(), vec![(); ctx.threads()]);
        let work = |_: &mut (), (plane, item): (usize, T)| {
            work(plane, item);
            Ok(())
        };
        ctx.install(|| parallel_for(&mut locals, |_| each.next(), work))
    }

    /// Bytes of the residues modulo some moduli.
    fn bytes(&self, moduli: Range<usize>) -> Range<usize> {
        moduli.start * self.words() * 8..moduli.end * self.words() * 8
    }
}

/// Sums of residues, and the residues received from other ranks.
struct Buffers {
    /// This rank.
    rank: usize,
    /// Sums for this rank's own entries.
    own: Vec<u64>,
    /// Sums for an owner on another node.
    collected: Vec<u64>,
    received: Vec<u64>,
}

impl Buffers {
    /// Room for the largest copies, for the ranks of `layout`.
    fn new(rank: usize, layout: &NodeLayout, planes: &PackedPlanes, packing: &Packing) -> Result<Buffers> {
        let room = |words: usize| {
            let mut buffer = Vec::new();
            let refused = |_| Error::OutOfMemory { bytes: 8 * words as u64 };
            buffer.try_reserve_exact(words).map_err(refused).map(|()| buffer)
        };
        let (sums, message) = (planes.moduli * planes.words(), planes.message_words(packing));
        Ok(Buffers {
            rank,
            own: room(sums)?,
            collected: room(if layout.nodes.len() > 1 { sums } else { 0 })?,
            received: room(if layout.node_of.len() > 1 { message } else { 0 })?,
        })
    }

    /// The sums for an owner: this rank, or one on another node.
    fn sums(&mut self, owner: usize) -> &mut Vec<u64> {
        if owner == self.rank { &mut self.own } else { &mut self.collected }
    }
}

/// The sums of one band.
pub(super) struct RankSum<'a, 'b> {
    pub world: &'a dyn Transport,
    pub owners: Owners<'a>,
    pub sink: &'a EntrySink<'b>,
    /// Called to decide whether to continue.
    pub meter: &'a Meter<'a>,
    pub strips: Vec<Strip>,
    /// Entries of the band.
    pub entries: usize,
    /// The event of each lane after which its residues are in memory.
    pub done: &'a [Event],
}

/// One round of the exchange: the next copy of every rank's entries.
struct CopyRound<'r> {
    world: &'r dyn Transport,
    owners: Owners<'r>,
    ctx: &'r Context,
    lanes: &'r [Lane],
    done: &'r [Event],
    /// The copy of each owner; empty where that has none left.
    copies: &'r [Vec<Portion>],
    /// Entries of the band.
    entries: usize,
    packing: &'r Packing,
    /// Owners whose residues this rank has to give, in the order of its turns.
    given: Vec<usize>,
    /// The numbers of requested and of received ones.
    asked: usize,
    taken: usize,
    /// The first error of a device. The messages of the round are sent nevertheless: others wait for them.
    failed: Option<Error>,
    sent_words: u64,
}

/// A message that a rank waits for.
struct Expected {
    /// The owner of the entries whose residues it has.
    owner: usize,
    /// Its sender.
    from: usize,
}

/// Bytes of the host's memory for sums and messages, for the ranks of `layout`.
pub(super) fn buffer_bytes(layout: &NodeLayout, moduli: &[u64], input: &DeviceInput, cut: &DeviceCut) -> u64 {
    let planes = PackedPlanes { count: input.made_entries(cut), size: input.residue_bytes, moduli: moduli.len() };
    let message = 8 * planes.message_words(&Packing::of(lanes_of(input), moduli)) as u64;
    // Own sums and those for another node, an outgoing message and an incoming one.
    let sums = if layout.nodes.len() > 1 { 2 } else { 1 };
    let messages = if layout.node_of.len() > 1 { 2 } else { 0 };
    sums * planes.bytes(0..planes.moduli).len() as u64 + messages * message
}

/// Bytes of the lists of portions: one copy of each rank, the next copy of one of them, and the `pending` copies.
pub(super) fn list_bytes(
    map: &TileMap,
    ranks: usize,
    input: &DeviceInput,
    cut: &DeviceCut,
    band: Range<usize>,
    pending: usize,
) -> u64 {
    let strips = input.strips(cut, band);
    let copies = |owner: usize| copies_of(map, owner, &strips, input.made_entries(cut));
    let longest = |owner: usize| copies(owner).map(|copy| copy.capacity()).max().unwrap_or(0);
    let (sum, most) = (0..ranks).map(longest).fold((0, 0), |(sum, most), one| (sum + one, one.max(most)));
    ((sum + (pending + 1) * most) * size_of::<Portion>()) as u64
}

/// Words of the messages about the entries of each rank, of all bands.
pub(super) fn message_words(
    map: &TileMap,
    ranks: usize,
    moduli: &[u64],
    input: &DeviceInput,
    cut: &DeviceCut,
) -> Vec<u64> {
    let packing = Packing::of(lanes_of(input), moduli);
    let (mut words, mut last) = (vec![0; ranks], (0, 0));
    for band in input.bands(cut) {
        let strips = input.strips(cut, band);
        for (owner, words) in words.iter_mut().enumerate() {
            for count in copies_of(map, owner, &strips, input.made_entries(cut)).map(|copy| entries_of(&copy)) {
                if count != last.0 {
                    let planes = PackedPlanes { count, size: input.residue_bytes, moduli: moduli.len() };
                    last = (count, planes.message_words(&packing) as u64);
                }
                *words += last.1;
            }
        }
    }
    words
}

/// The layout of residues in the words of a copy.
fn lanes_of(input: &DeviceInput) -> ResidueLanes {
    if input.residue_bytes == 2 { ResidueLanes::Halves } else { ResidueLanes::Pairs }
}

impl RankSum<'_, '_> {
    /// Adds up the band and fills this rank's tiles; returns the words sent. Collective.
    ///
    /// # Errors
    /// [`Error::SelfCheck`], [`Error::ExponentRange`], [`Error::DeviceLost`], [`Error::Cancelled`], on all ranks;
    /// [`Error::Transport`].
    pub fn run(&self, lanes: &mut [Lane], target: &mut ResultTarget<'_>) -> Result<u64> {
        let Owners { rank, layout, map, sends } = self.owners;
        let largest = lanes.iter().map(|lane| lane.input.made_entries(&lane.cut)).min().expect("a lane");
        let turns = self.owners.turns();
        let packing = Packing::of(lanes_of(&lanes[0].input), lanes[0].engine.moduli());
        let mut finish = Finish::new(self.sink, lanes);
        let made = Buffers::new(rank, layout, &planes_of(lanes, largest), &packing);
        let (mut buffers, mut sent_words) = (agreed(self.world, made)?, 0);
        let mut each =
            (0..self.world.size()).map(|owner| copies_of(map, owner, &self.strips, largest)).collect::<Vec<_>>();
        loop {
            let copies = each.iter_mut().map(|copies| copies.next().unwrap_or_default()).collect::<Vec<_>>();
            if copies.iter().all(Vec::is_empty) {
                break;
            }
            let has_entries = |owner: usize| sends[rank] && !copies[owner].is_empty();
            let mut round = CopyRound {
                world: self.world,
                owners: self.owners,
                ctx: self.sink.ctx,
                lanes,
                done: self.done,
                copies: &copies,
                entries: self.entries,
                packing: &packing,
                given: turns.iter().filter_map(|turn| turn.owner).filter(|&owner| has_entries(owner)).collect(),
                asked: 0,
                taken: 0,
                failed: None,
                sent_words: 0,
            };
            for turn in &turns {
                round.collect(turn, &mut buffers)?;
                if turn.ends.1 && turn.nodes_on > 0 {
                    round.forward(turn, &mut buffers)?;
                }
            }
            sent_words += round.sent_words;
            let outcome = round.failed.map_or_else(|| self.meter.add("exchange", 0), Err);
            let made = outcome.and_then(|()| match &copies[rank] {
                copy if copy.is_empty() => Ok(()),
                copy => {
                    let planes = planes_of(lanes, entries_of(copy));
                    let at = finish.place(lanes, planes.count, target)?;
                    let region = send_sums(&mut lanes[at.lane], &planes, &buffers.own)?;
                    let residues = Residues { region: &region, first_modulus: 0, stride: planes.stride(), offset: 0 };
                    finish.make(lanes, at, residues, copy.clone())
                }
            });
            agree(self.world, made)?;
        }
        agree(self.world, finish.store_all(lanes, target))?;
        Ok(sent_words)
    }
}

/// The layout of the residues of a copy of `count` entries.
fn planes_of(lanes: &[Lane], count: usize) -> PackedPlanes {
    PackedPlanes { count, size: lanes[0].input.residue_bytes, moduli: lanes[0].input.all_moduli }
}

/// Sends sums to a device, which reads them in the order of its compute stream.
fn send_sums(lane: &mut Lane, planes: &PackedPlanes, sums: &[u64]) -> Result<Region> {
    let slot = &lane.gathered[SUMS];
    let region = slot.region.region(planes.bytes(0..planes.moduli));
    slot.pinned.lock()?[..region.bytes()].copy_from_slice(bytemuck::cast_slice(sums));
    lane.device.upload(lane.streams.compute, &slot.pinned, 0, &region)?;
    Ok(region)
}

/// The slot of the sums; slots 0 and 1 alternate for residues on their way to the host.
const SUMS: usize = 2;

impl CopyRound<'_> {
    fn planes(&self, owner: usize) -> PackedPlanes {
        planes_of(self.lanes, entries_of(&self.copies[owner]))
    }

    /// Whether an owner has entries in this round.
    fn concerns(&self, owner: usize) -> bool {
        !self.copies[owner].is_empty()
    }

    /// A turn within the node.
    fn collect(&mut self, turn: &ExchangeTurn, buffers: &mut Buffers) -> Result<()> {
        let owners = self.owners;
        let collected = turn.collected.filter(|&owner| self.concerns(owner));
        if let (Some(owner), true) = (collected, turn.ends.0) {
            let (sums, planes) = (buffers.sums(owner), self.planes(owner));
            sums.clear();
            sums.resize(planes.moduli * planes.words(), 0);
        }
        let given = turn.owner.filter(|&owner| owners.sends[owners.rank] && self.concerns(owner));
        if turn.to == owners.rank {
            let Some(owner) = given else { return Ok(()) };
            let (ctx, planes, packing) = (self.ctx, self.planes(owner), self.packing);
            let sums = buffers.sums(owner).chunks_exact_mut(planes.words());
            self.give(owner, |words| {
                PackedPlanes::for_each(ctx, sums, |plane, sums| packing.add(plane, sums, words(plane)))
            });
            return Ok(());
        }
        let message = given.map_or(Vec::new(), |owner| self.message(owner));
        let incoming = collected.filter(|_| owners.sends[turn.from]);
        self.trade(turn.to, message, incoming.map(|owner| Expected { owner, from: turn.from }), buffers)
    }

    /// After the last turn within the node: sends the collected sums to their owner, and receives the sums that another
    /// node has collected for this rank.
    fn forward(&mut self, turn: &ExchangeTurn, buffers: &mut Buffers) -> Result<()> {
        let (owners, rank) = (self.owners, self.owners.rank);
        let collected = turn.collected.filter(|&owner| owners.node_sends() && self.concerns(owner));
        let packed = |owner: usize| {
            let planes = self.planes(owner);
            let mut message = vec![0; planes.message_words(self.packing)];
            let sums = |plane: usize| &buffers.collected[plane * planes.words()..][..planes.words()];
            planes.pack(self.ctx, self.packing, &sums, &mut message).map(|()| message)
        };
        let message = collected.map(packed).transpose()?.unwrap_or_default();
        let sender = owners.sender(turn.nodes_on, turn.number).filter(|_| self.concerns(rank));
        let to = collected.unwrap_or(rank);
        self.trade(to, message, sender.map(|from| Expected { owner: rank, from }), buffers)
    }

    /// Sends a message, if it has words, and adds an incoming one for an owner to the sums of its entries.
    fn trade(&mut self, to: usize, message: Vec<u64>, incoming: Option<Expected>, buffers: &mut Buffers) -> Result<()> {
        self.sent_words += message.len() as u64;
        let send = Outgoing { to, words: &message };
        let sends = if message.is_empty() { &[][..] } else { std::slice::from_ref(&send) };
        let Some(Expected { owner, from }) = incoming else { return self.world.exchange(sends, &mut []) };
        let planes = self.planes(owner);
        let mut received = std::mem::take(&mut buffers.received);
        received.resize(planes.message_words(self.packing), 0);
        self.world.exchange(sends, &mut [Incoming { from, words: &mut received }])?;
        let sums = buffers.sums(owner).chunks_exact_mut(planes.words());
        let parts = planes.parts(self.packing, &mut received).zip(sums);
        let add = |plane: usize, (part, sums): (&mut [u64], &mut [u64])| self.packing.add_packed(plane, part, sums);
        PackedPlanes::for_each(self.ctx, parts, add)?;
        buffers.received = received;
        Ok(())
    }

    /// This rank's residues of the entries of `owner`, packed.
    fn message(&mut self, owner: usize) -> Vec<u64> {
        let (ctx, planes, packing) = (self.ctx, self.planes(owner), self.packing);
        // It is not used where the device has failed.
        let mut message = vec![0; planes.message_words(packing)];
        self.give(owner, |words| planes.pack(ctx, packing, words, &mut message));
        message
    }

    /// Lets `take` read this rank's residues of the entries of `owner`, the next in the list of those that it gives,
    /// and requests the residues that come after them. Notes an error.
    fn give(&mut self, owner: usize, take: impl for<'w> FnOnce(&(dyn Fn(usize) -> &'w [u64] + Sync)) -> Result<()>) {
        if self.failed.is_none() {
            self.failed = self.try_give(owner, take).err();
        }
    }

    fn try_give(
        &mut self,
        owner: usize,
        take: impl for<'w> FnOnce(&(dyn Fn(usize) -> &'w [u64] + Sync)) -> Result<()>,
    ) -> Result<()> {
        assert_eq!(self.given[self.taken], owner, "residues are given in the order of the turns");
        let slot = self.taken % 2;
        self.taken += 1;
        while self.asked < self.given.len().min(self.taken + 1) {
            self.ask(self.given[self.asked], self.asked % 2)?;
            self.asked += 1;
        }
        let planes = self.planes(owner);
        let mut guards = self.lanes.iter().map(|lane| lane.gathered[slot].pinned.lock()).collect::<Result<Vec<_>>>()?;
        let (rest, bytes) = (planes.count * planes.size, planes.words() * 8);
        for (lane, guard) in self.lanes.iter().zip(&mut guards) {
            // The last word of a modulus is sent whole.
            let own = &mut guard[planes.bytes(lane.moduli.clone())];
            own.chunks_exact_mut(bytes).for_each(|plane| plane[rest..].fill(0));
        }
        let lane_of = |plane: usize| self.lanes.iter().position(|lane| lane.moduli.contains(&plane)).expect("a lane");
        let words = |plane: usize| bytemuck::cast_slice(&guards[lane_of(plane)][planes.bytes(plane..plane + 1)]);
        take(&words)
    }

    /// Submits the copy of the residues of an owner's entries to the host.
    fn ask(&self, owner: usize, slot: usize) -> Result<()> {
        let planes = self.planes(owner);
        for (lane, done) in self.lanes.iter().zip(self.done) {
            let (store, gathered) = (lane.streams.store, &lane.gathered[slot]);
            lane.device.wait(store, done)?;
            for portion in &self.copies[owner] {
                lane.launcher(store).select(&Select {
                    from: Residues {
                        region: &lane.residues,
                        first_modulus: lane.moduli.start,
                        stride: self.entries,
                        offset: portion.first,
                    },
                    leading: portion.leading,
                    rows: portion.piece.rows.len(),
                    cols: portion.piece.cols.len(),
                    moduli: lane.moduli.clone(),
                    to: Residues {
                        region: &gathered.region,
                        first_modulus: 0,
                        stride: planes.stride(),
                        offset: portion.at,
                    },
                })?;
            }
            let bytes = planes.bytes(lane.moduli.clone());
            lane.device.download(store, &gathered.region.region(bytes.clone()), &gathered.pinned, bytes.start)?;
        }
        Ok(())
    }
}

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
    /// Whether this is the first part, and whether it is the last part.
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

    /// Bytes that this rank sends; `message_words[r]` is the number of words of the messages about the entries of rank
    /// `r`.
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
