//! The state machine of one rank.

mod readers;
mod reads;

use super::admission::SlotAdmission;
use super::counters::Counters;
use super::lists::{ClientList, Route};
use super::progress::{MOST_SLOTS, Operand, Progress, RunLimits, UpdateOrder};
use super::ready::Ready;
use super::{
    Client, Delivery, Memories, Message, ProtocolAction, ProtocolEvent, ProtocolOptions, Sites, Termination, TileRun,
};
use crate::error::Result;
use crate::runtime::CholeskyGraph;
use crate::runtime::policy::{BlockShape, Priorities};
use crate::tile::{RankGrid, TileId, count_in};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The state of sending an own tile.
#[derive(Default)]
struct Outbox {
    list: ClientList,
    finished: bool,
    sending: usize,
    sends: u32,
}

/// The work at one site.
struct AtSite {
    ready: Ready,
    /// Runs under way.
    running: usize,
}

/// One rank's part of the factorisation: events in, actions out.
pub struct TaskMachine {
    grid: RankGrid,
    graph: CholeskyGraph,
    rank: usize,
    memories: Memories,
    options: ProtocolOptions,
    delivery: &'static dyn Delivery,
    progress: Progress,
    admission: SlotAdmission,
    sites: Sites,
    at_sites: Vec<AtSite>,
    /// Own tiles that some rank has not received yet.
    outboxes: FxHashMap<TileId, Outbox>,
    actions: VecDeque<ProtocolAction>,
    /// Ranks that are not known to have finished, under all-to-all termination.
    unheard: usize,
    told: bool,
    stopped: bool,
    finished: bool,
    counters: Counters,
}

impl TaskMachine {
    /// Rank `rank` of `grid`, for `graph.tiles` tile rows, if the ranks have the memories `memories`.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for an empty grid and for fewer slots than [`Memories::least_slots`].
    pub fn new(
        grid: RankGrid,
        memories: &Memories,
        graph: CholeskyGraph,
        rank: usize,
        options: ProtocolOptions,
    ) -> Result<TaskMachine> {
        memories.check(grid, graph.tiles, options.slots)?;
        Ok(TaskMachine::in_memories(grid, memories, graph, rank, options))
    }

    /// [`TaskMachine::new`] for ranks with separate memories, and for a grid and a number of slots that
    /// [`RankGrid::check`] has accepted: a simulation has thousands of ranks.
    pub fn unchecked(grid: RankGrid, graph: CholeskyGraph, rank: usize, options: ProtocolOptions) -> TaskMachine {
        TaskMachine::in_memories(grid, &Memories::apart(), graph, rank, options)
    }

    fn in_memories(
        grid: RankGrid,
        memories: &Memories,
        graph: CholeskyGraph,
        rank: usize,
        options: ProtocolOptions,
    ) -> TaskMachine {
        assert!(rank < grid.size(), "rank {rank} of {}", grid.size());
        let delivery = options.delivery.rule();
        let order = UpdateOrder {
            in_steps: delivery.in_steps(),
            at_once: options.updates_at_once && grid.size() == 1 && !delivery.in_steps(),
        };
        let progress = Progress::new(grid, graph, rank, order);
        let sites = Sites::new(grid, &options);
        let at_site = |site: usize| {
            let owns = |tile| grid.owner(tile) == rank && sites.of_tile(tile) == site;
            let priorities = match delivery.in_steps() {
                true => Priorities::Steps,
                false => Priorities::new(options.policy, grid, graph, options.room_tiles, owns),
            };
            let ready = Ready::new(options.policy, graph, priorities, sites.lookahead(site));
            AtSite { ready, running: 0 }
        };
        let unheard = if options.termination == Termination::AllToAll { grid.size() - 1 } else { 0 };
        let mut machine = TaskMachine {
            grid,
            graph,
            rank,
            memories: memories.clone(),
            options,
            delivery,
            progress,
            admission: SlotAdmission::new(grid, memories, graph.tiles, rank, options.slots.min(MOST_SLOTS)),
            sites,
            at_sites: (0..sites.count()).map(at_site).collect(),
            outboxes: FxHashMap::default(),
            actions: VecDeque::new(),
            unheard,
            told: false,
            stopped: false,
            finished: false,
            counters: Counters::default(),
        };
        if graph.tiles > 0 && grid.owner(TileId { row: 0, col: 0 }) == rank {
            machine.offer(TileId { row: 0, col: 0 });
        }
        machine.admit();
        machine
    }

    /// Records that some own tiles were finished before: their tasks are not started. It is called before any other
    /// method.
    ///
    /// Tiles of other ranks are still requested and passed on, as those ranks may rely on it.
    pub fn resume(&mut self, finished: &dyn Fn(TileId) -> bool) {
        let (done, left) = self.progress.resume(finished);
        for tile in done {
            if self.grid.size() > 1 {
                self.was_done(tile);
                self.tell_clients(tile);
            }
            drop(self.progress.arrived(tile, Operand::InPlace));
        }
        left.into_iter().for_each(|tile| self.offer(tile));
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The counters until now.
    pub fn counters(&self) -> Counters {
        Counters { peak_slots: self.admission.peak() as u64, ..self.counters }
    }

    /// Ready tiles that no worker has started.
    pub fn ready(&self) -> usize {
        self.progress.ready()
    }

    /// Slots in use.
    pub fn slots_in_use(&self) -> usize {
        self.admission.in_use()
    }

    /// Whether [`ProtocolAction::Finished`] has been returned.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether this rank or another one has had an error.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The next action, if all tiles are equally close.
    pub fn poll(&mut self) -> Option<ProtocolAction> {
        self.poll_near(&|_, _| true, &|_| true)
    }

    /// The next action; `resident` decides whether a tile is at a site, `admits` whether a run on a tile is wanted now.
    /// A run that is not wanted delays the runs after it.
    pub fn poll_near(
        &mut self,
        resident: &dyn Fn(usize, TileId) -> bool,
        admits: &dyn Fn(TileId) -> bool,
    ) -> Option<ProtocolAction> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        if !self.stopped
            && let Some(run) = (0..self.sites.count()).find_map(|site| self.next_run(site, resident, admits))
        {
            return Some(ProtocolAction::Run(run));
        }
        if !self.finished && self.at_sites.iter().all(|site| site.running == 0) && (self.stopped || self.is_complete())
        {
            self.finished = true;
            return Some(ProtocolAction::Finished);
        }
        // The message about the end that was just added.
        self.actions.pop_front()
    }

    /// A run at a site that has a worker for it.
    fn next_run(
        &mut self,
        site: usize,
        resident: &dyn Fn(usize, TileId) -> bool,
        admits: &dyn Fn(TileId) -> bool,
    ) -> Option<TileRun> {
        if self.at_sites[site].running >= self.sites.workers(site) {
            return None;
        }
        let (ready, progress) = (&mut self.at_sites[site].ready, &self.progress);
        let tile = loop {
            let Some(tile) = ready.pop(&|tile| resident(site, tile), |tile| progress.is_whole(tile)) else {
                return self.run_ahead(site);
            };
            // Others have gone with a run on a tile above them.
            if progress.is_ready(tile) {
                break tile;
            }
        };
        if !admits(tile) {
            let k = self.progress.applied(tile);
            ready.push(self.graph.next_task(tile, k));
            return None;
        }
        self.at_sites[site].running += 1;
        let run = self.progress.start(tile, &self.limits(site, tile));
        run.tiles().skip(1).for_each(|tile| self.at_sites[site].ready.remove(tile));
        Some(run)
    }

    /// Work for a worker of a site where no task can be done: it spares the first task of a tile some time.
    fn run_ahead(&mut self, site: usize) -> Option<TileRun> {
        let is_wanted = self.options.loads_ahead && self.options.devices.is_none() && site == Sites::HOST;
        let run = if is_wanted { self.progress.start_ahead() } else { None }?;
        self.at_sites[site].running += 1;
        Some(run)
    }

    /// The largest run that begins with a tile: several workers share a column, and wait for its diagonal tile.
    fn limits(&self, site: usize, tile: TileId) -> RunLimits {
        let (grid, most) = (self.grid, self.options.strip_tiles);
        let blocks = BlockShape::of(self.options.policy, grid);
        let is_alone = grid.size() == 1 && self.sites.workers(site) == 1;
        let (strip, strip_on_diagonal) = match is_alone {
            _ if self.options.devices.is_some() => (1, 1), // neighbours belong to other devices
            _ if blocks.is_some() => (blocks.map_or(most, |blocks| blocks.rows_left(tile.row, grid.rows)).min(most), 1),
            true => (most, most),
            false => {
                let tiles = count_in(tile.col..self.graph.tiles, tile.row % grid.rows, grid.rows);
                ((tiles / (2 * self.sites.workers(site))).clamp(1, most), 1)
            }
        };
        let apart = self.sites.finishes_apart(tile);
        RunLimits { updates: self.options.most_updates, apart, strip, strip_on_diagonal }
    }

    fn is_complete(&mut self) -> bool {
        let tasks_done = self.progress.unfinished() == 0 && self.admission.is_done() && self.outboxes.is_empty();
        if tasks_done && !self.told && self.options.termination == Termination::AllToAll {
            self.told = true;
            self.counters.finished = self.say_to_all(&Message::Finished);
        }
        tasks_done && self.unheard == 0 && self.actions.is_empty()
    }

    fn say_to_all(&mut self, message: &Message) -> u64 {
        let others = (0..self.grid.size()).filter(|&to| to != self.rank);
        self.actions.extend(others.map(|to| ProtocolAction::Send { to, message: message.clone() }));
        self.grid.size() as u64 - 1
    }

    /// Processes an event.
    pub fn handle(&mut self, event: ProtocolEvent) {
        match event {
            ProtocolEvent::Done(run) => self.done(&run),
            ProtocolEvent::Failed => self.fail(),
            ProtocolEvent::Message { message: Message::Stop, .. } => self.stop(),
            _ if self.stopped => {}
            ProtocolEvent::Imported(tile) => {
                // Where own tasks that read it were done before, its slot may be free already.
                if let Some((slot, _)) = self.admission.find(tile) {
                    self.arrive(tile, Operand::Slot(slot));
                }
            }
            ProtocolEvent::Sent(tile) => self.sent(tile),
            ProtocolEvent::Message { message, .. } => self.receive(message),
        }
    }

    /// An error of this rank: all others are notified, once.
    fn fail(&mut self) {
        if !self.stopped {
            self.stop();
            self.say_to_all(&Message::Stop);
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.actions.clear();
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Notice(tile) => match self.admission.find(tile) {
                Some(_) => self.request(tile),
                None => self.admission.announce(tile),
            },
            Message::Shown(tile) => self.was_shown(tile),
            Message::Request { tile, client, hops } => self.requested(tile, client, hops),
            Message::Tile { tile, clients, depth } => self.tile_came(tile, clients, depth),
            Message::Finished => self.unheard -= 1,
            Message::Stop => self.stop(),
        }
    }

    /// Requests a tile that has a slot.
    fn request(&mut self, tile: TileId) {
        // Where owners send notices, the sender of the notice is asked.
        let to = if self.delivery.sends_notices() { self.grid.owner(tile) } else { self.server(tile) };
        self.counters.requests += 1;
        let message = Message::Request { tile, client: self.rank as u32, hops: 0 };
        self.actions.push_back(ProtocolAction::Send { to, message });
    }

    /// The rank that this rank asks by the rule.
    fn server(&self, tile: TileId) -> usize {
        let (clients, own) = self.readers(tile);
        match self.delivery.server(clients.len() + 1, own) {
            0 => self.grid.owner(tile),
            number => clients[number - 1] as usize,
        }
    }

    /// Gives free slots out and requests the tiles that are known to be finished.
    fn admit(&mut self) {
        let ahead = !self.delivery.sends_notices();
        let mut wanted = Vec::new();
        self.admission.admit(|tile, announced| wanted.extend((ahead || announced).then_some(tile)));
        wanted.into_iter().for_each(|tile| self.request(tile));
    }

    fn requested(&mut self, tile: TileId, client: u32, hops: u32) {
        if self.grid.owner(tile) != self.rank {
            let found = self.admission.find(tile).filter(|(_, slot)| slot.depth.is_some());
            let Some((place, slot)) = found else {
                // It will be answered here: a forwarded request waits for the rank that got the tile before.
                self.counters.hops = self.counters.hops.max(hops);
                return self.admission.ask_early(tile, client);
            };
            match slot.list.request(client) {
                Route::Here => self.counters.hops = self.counters.hops.max(hops),
                Route::Forward(server) => self.forward(tile, client, hops, server),
            }
            return self.serve_slot(place);
        }
        match self.outbox(tile).list.request(client) {
            Route::Here => self.counters.hops = self.counters.hops.max(hops),
            Route::Forward(server) => self.forward(tile, client, hops, server),
        }
        self.serve_own(tile);
    }

    fn forward(&mut self, tile: TileId, client: u32, hops: u32, server: u32) {
        self.counters.forwards += 1;
        let message = Message::Request { tile, client, hops: hops + 1 };
        self.actions.push_back(ProtocolAction::Send { to: server as usize, message });
    }

    /// The outbox of an own tile; made when it is first needed.
    fn outbox(&mut self, tile: TileId) -> &mut Outbox {
        let (memories, grid, tiles, delivery) = (&self.memories, self.grid, self.graph.tiles, self.delivery);
        self.outboxes.entry(tile).or_insert_with(|| {
            let clients = memories.clients(grid, tiles, tile);
            let served = delivery.served_by(clients.len() + 1, 0).into_iter();
            let list = ClientList::new(served.map(|number| Client { rank: clients[number - 1], asked: false }));
            Outbox { list, ..Outbox::default() }
        })
    }

    /// Sends an own tile to the ranks that have requested it, once it is finished.
    fn serve_own(&mut self, tile: TileId) {
        let Some(outbox) = self.outboxes.get_mut(&tile) else { return };
        if outbox.finished {
            while let Some((client, clients)) = outbox.list.serve(self.delivery) {
                outbox.sending += 1;
                outbox.sends += 1;
                self.counters.tiles += 1;
                self.counters.most_sends = self.counters.most_sends.max(outbox.sends);
                let message = Message::Tile { tile, clients, depth: 1 };
                self.actions.push_back(ProtocolAction::Send { to: client as usize, message });
            }
            if outbox.sending == 0 && outbox.list.is_empty() {
                self.outboxes.remove(&tile);
                self.actions.push_back(ProtocolAction::Release(tile));
            }
        }
    }

    /// Sends a tile on to the ranks that have requested it, and frees its slot if it is not needed any more.
    fn serve_slot(&mut self, place: usize) {
        let slot = self.admission.slot(place);
        let tile = slot.tile;
        let Some(depth) = slot.depth else { return };
        while let Some((client, clients)) = slot.list.serve(self.delivery) {
            slot.sending += 1;
            self.counters.tiles += 1;
            let message = Message::Tile { tile, clients, depth: depth + 1 };
            self.actions.push_back(ProtocolAction::Send { to: client as usize, message });
        }
        if slot.is_done() {
            self.admission.free(place);
            self.actions.push_back(ProtocolAction::Release(tile));
            self.admit();
        }
    }

    fn sent(&mut self, tile: TileId) {
        if self.grid.owner(tile) == self.rank {
            self.outboxes.get_mut(&tile).expect("it is being sent").sending -= 1;
            self.serve_own(tile);
        } else {
            let (place, slot) = self.admission.find(tile).expect("a tile that is sent stays");
            slot.sending -= 1;
            self.serve_slot(place);
        }
    }

    fn tile_came(&mut self, tile: TileId, mut clients: Vec<Client>, depth: u32) {
        let early = self.admission.take_early(tile);
        let served = self.served_here(tile);
        clients.extend(served.into_iter().map(|rank| Client { rank, asked: false }));
        for client in &mut clients {
            client.asked |= early.contains(&client.rank);
        }
        let (place, slot) = self.admission.find(tile).expect("a tile arrives only after a request");
        slot.depth = Some(depth);
        slot.list = ClientList::new(clients);
        self.counters.depth = self.counters.depth.max(depth);
        self.serve_slot(place);
        if !self.options.imports {
            self.arrive(tile, Operand::Slot(place));
        }
    }

    /// Lets tasks read a finished tile.
    fn arrive(&mut self, tile: TileId, operand: Operand) {
        self.progress.arrived(tile, operand).for_each(|waiting| self.offer(waiting));
    }

    /// Puts a tile into the ready queue, if something can be done on it.
    fn offer(&mut self, tile: TileId) {
        if let Some(k) = self.progress.take(tile) {
            let task = self.graph.next_task(tile, k);
            self.at_sites[self.sites.of_task(task, tile)].ready.push(task);
            self.counters.peak_ready = self.counters.peak_ready.max(self.ready() as u64);
        }
    }

    fn done(&mut self, run: &TileRun) {
        self.at_sites[self.sites.of_run(run)].running -= 1;
        if self.stopped {
            return;
        }
        self.counters.tasks += (run.count * run.tasks_each()) as u64;
        let mut offered = Vec::new();
        self.progress.done(run, |tile| offered.push(tile));
        if self.grid.size() > 1 {
            self.operands_read(run);
        }
        for tile in run.tiles() {
            if run.finish { self.tile_finished(tile) } else { self.offer(tile) }
        }
        offered.into_iter().for_each(|tile| self.offer(tile));
    }

    fn tile_finished(&mut self, tile: TileId) {
        if self.grid.size() > 1 {
            self.tell_clients(tile);
        }
        self.arrive(tile, Operand::InPlace);
    }
}
