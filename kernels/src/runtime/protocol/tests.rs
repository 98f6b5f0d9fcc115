//! Whole runs in one thread: messages and work end in an order drawn from a seed.

use super::*;
use crate::runtime::{CholeskyGraph, Task};
use crate::testing::effort;
use crate::tile::RankGrid;
use std::collections::HashSet;

/// Messages and work on their way.
enum Flight {
    Message { from: usize, to: usize, message: Message },
    Work { rank: usize, run: TileRun },
    Sent { rank: usize, tile: TileId },
    Import { rank: usize, tile: TileId },
}

struct World {
    grid: RankGrid,
    graph: CholeskyGraph,
    options: ProtocolOptions,
    machines: Vec<TaskMachine>,
    flights: Vec<Flight>,
    memories: Memories,
    /// Data that each rank holds.
    data: Vec<HashSet<TileId>>,
    /// Tiles of others that each rank was notified it may read where they lie.
    near: Vec<HashSet<TileId>>,
    done: HashSet<Task>,
    /// Tiles that a run has begun on.
    begun: HashSet<TileId>,
    finished: usize,
    seed: u64,
}

fn options(delivery: DeliveryKind, policy: Policy, slots: usize) -> ProtocolOptions {
    ProtocolOptions {
        delivery,
        termination: Termination::Lists,
        policy,
        slots,
        workers: 2,
        devices: None,
        most_updates: 1,
        strip_tiles: 1,
        updates_at_once: false,
        loads_ahead: false,
        imports: false,
        room_tiles: 8,
    }
}

impl World {
    fn new(grid: RankGrid, tiles: usize, options: ProtocolOptions, seed: u64) -> World {
        World::sharing(&Memories::apart(), grid, tiles, options, seed)
    }

    fn sharing(memories: &Memories, grid: RankGrid, tiles: usize, options: ProtocolOptions, seed: u64) -> World {
        let graph = CholeskyGraph { tiles };
        let machine = |rank: usize| TaskMachine::new(grid, memories, graph, rank, options).unwrap();
        World {
            grid,
            graph,
            options,
            machines: (0..grid.size()).map(machine).collect(),
            flights: Vec::new(),
            memories: memories.clone(),
            data: vec![HashSet::new(); grid.size()],
            near: vec![HashSet::new(); grid.size()],
            done: HashSet::new(),
            begun: HashSet::new(),
            finished: 0,
            seed,
        }
    }

    fn draw(&mut self, limit: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % limit
    }

    fn poll(&mut self, rank: usize) {
        while let Some(action) = self.machines[rank].poll() {
            match action {
                ProtocolAction::Send { to, message } => {
                    if let Message::Tile { tile, .. } = message {
                        assert!(self.data[rank].contains(&tile), "{rank} sends {tile:?}, which it has not");
                        self.flights.push(Flight::Sent { rank, tile });
                    }
                    self.flights.push(Flight::Message { from: rank, to, message });
                }
                ProtocolAction::Run(run) => {
                    self.check(rank, &run);
                    self.flights.push(Flight::Work { rank, run });
                    self.check_sites(rank);
                }
                ProtocolAction::Release(tile) => {
                    let held = self.data[rank].contains(&tile);
                    assert!(held, "{rank} releases {tile:?}, which it has not");
                    if self.grid.owner(tile) != rank {
                        self.data[rank].remove(&tile);
                    }
                }
                ProtocolAction::Finished => self.finished += 1,
            }
            let held = self.data[rank].iter().filter(|&&tile| self.grid.owner(tile) != rank).count();
            assert!(held <= self.options.slots, "{rank} holds {held} tiles");
        }
    }

    /// Every operand is present, every task runs once and in order.
    fn check(&mut self, rank: usize, run: &TileRun) {
        if run.is_ahead() {
            assert!(self.options.loads_ahead && run.count == 1 && self.machines[rank].ready() == 0, "{run:?}");
            assert!(self.grid.owner(run.tile) == rank && self.begun.insert(run.tile), "{run:?} comes late");
            return;
        }
        self.begun.extend(run.tiles());
        assert!(run.count <= self.options.strip_tiles, "{run:?}");
        let mut own = HashSet::new();
        for tile in run.tiles() {
            assert_eq!(self.grid.owner(tile), rank);
            let updates = run.updates.clone().map(|k| self.graph.update(tile, k));
            for task in updates.chain(run.finish.then(|| self.graph.finish(tile))) {
                for input in self.graph.inputs(task) {
                    let is_here = [&self.data[rank], &self.near[rank], &own].iter().any(|tiles| tiles.contains(&input));
                    assert!(is_here, "{task:?} lacks {input:?}");
                }
                assert!(self.graph.predecessors(task).iter().all(|last| self.done.contains(last)), "{task:?}");
                assert!(self.done.insert(task), "{task:?} came twice");
            }
            own.extend(run.finish.then_some(tile));
        }
    }

    /// No site does more than it has workers for, and POTRF is a run of its own where it has a site of its own.
    fn check_sites(&self, rank: usize) {
        let sites = Sites::new(self.grid, &self.options);
        let mut running = vec![0; sites.count()];
        for flight in &self.flights {
            if let Flight::Work { rank: owner, run } = flight
                && *owner == rank
            {
                running[sites.of_run(run)] += 1;
                let joined = run.finish && !run.updates.is_empty() && run.tile.row == run.tile.col;
                assert!(!joined || self.options.devices.is_none(), "{run:?}");
            }
        }
        assert!((0..sites.count()).all(|site| running[site] <= sites.workers(site)), "{running:?}");
    }

    fn step(&mut self) {
        let at = self.draw(self.flights.len());
        let rank = match self.flights.swap_remove(at) {
            Flight::Message { from, to, message } => {
                let tile = if let Message::Tile { tile, .. } = message { Some(tile) } else { None };
                if let Some(tile) = tile {
                    assert!(self.data[to].insert(tile), "{to} gets {tile:?} twice");
                    assert!(!self.memories.share(self.grid.owner(tile), to), "{to} gets {tile:?}, which it could read");
                }
                if let Message::Shown(tile) = message {
                    assert!(self.memories.share(from, to) && self.data[from].contains(&tile), "{from} shows {tile:?}");
                    assert!(self.near[to].insert(tile), "{to} hears of {tile:?} twice");
                }
                self.machines[to].handle(ProtocolEvent::Message { from, message });
                if let Some(tile) = tile.filter(|_| self.options.imports) {
                    self.flights.push(Flight::Import { rank: to, tile });
                }
                to
            }
            Flight::Work { rank, run } => {
                if run.finish {
                    self.data[rank].extend(run.tiles());
                }
                self.machines[rank].handle(ProtocolEvent::Done(run));
                rank
            }
            Flight::Sent { rank, tile } => {
                self.machines[rank].handle(ProtocolEvent::Sent(tile));
                rank
            }
            Flight::Import { rank, tile } => {
                self.machines[rank].handle(ProtocolEvent::Imported(tile));
                rank
            }
        };
        self.poll(rank);
    }

    fn run(mut self) -> World {
        (0..self.grid.size()).for_each(|rank| self.poll(rank));
        while !self.flights.is_empty() {
            self.step();
        }
        self
    }
}

fn all_grids(most: usize) -> impl Iterator<Item = RankGrid> {
    (1..=most).flat_map(move |rows| (1..=most / rows).map(move |cols| RankGrid { rows, cols }))
}

/// Ranks without a common memory, all in one memory, in memories of two neighbours, and in two that alternate with one
/// rank by itself.
fn all_memories(ranks: usize) -> [Memories; 4] {
    let of = |place: &dyn Fn(usize) -> usize| Memories::new((0..ranks).map(place).collect());
    [Memories::apart(), of(&|_| 0), of(&|rank| rank / 2), of(&|rank| if rank == 2 { 9 } else { rank % 2 })]
}

#[test]
fn every_run_ends_with_all_tasks_done_and_the_fewest_slots_are_enough() {
    let others = [Policy::Fifo, Policy::Lifo, Policy::Random(3), Policy::ByIj, Policy::Greedy, Policy::CriticalPath];
    let policies = others.into_iter().chain([Policy::Leftmost; 6]).collect::<Vec<_>>();
    for grid in all_grids(8) {
        for tiles in [0, 1, 2, 3, 5, 8, 13] {
            for delivery in DeliveryKind::ALL {
                for (seed, &policy) in policies.iter().enumerate() {
                    let memories = &all_memories(grid.size())[(seed + tiles) % 4];
                    let slots = memories.least_slots(grid, tiles) + seed % 2 * 3;
                    let mut options = options(delivery, policy, slots);
                    options.workers = 1 + seed % 3;
                    options.most_updates = [1, usize::MAX, 3][seed % 3];
                    options.strip_tiles = [1, 8, 2][(seed + tiles) % 3];
                    options.updates_at_once = seed % 4 == 3;
                    options.imports = seed % 2 == 1;
                    options.loads_ahead = (seed + tiles) % 5 < 3;
                    let devices = [(1, 1), (1, 2), (2, 2)].map(|(rows, cols)| DeviceSites {
                        grid: RankGrid { rows, cols },
                        workers: 2,
                        lookahead: None,
                    });
                    options.devices = devices.get((seed + tiles) % 4).copied();
                    options.termination = [Termination::Lists, Termination::AllToAll][seed / 2 % 2];
                    let world = World::sharing(memories, grid, tiles, options, seed as u64 + tiles as u64).run();
                    let place = format!("{grid:?}, {tiles} tiles, {} {policy:?}, {memories:?}", delivery.name());
                    assert_eq!(world.done.len(), world.graph.tasks().count(), "{place}");
                    assert_eq!(world.finished, grid.size(), "{place}");
                    let foreign =
                        |(rank, data): (usize, &HashSet<TileId>)| data.iter().any(|&tile| grid.owner(tile) != rank);
                    assert!(!world.data.iter().enumerate().any(foreign), "{place}: tiles are kept");
                    let finished = world.machines.iter().map(|machine| machine.counters().finished).sum::<u64>();
                    let all = (grid.size() * (grid.size() - 1)) as u64;
                    let expected = if options.termination == Termination::Lists { 0 } else { all };
                    assert_eq!(finished, expected, "{place}");
                }
            }
        }
    }
}

#[test]
fn ranks_that_have_finished_any_of_their_tiles_before_do_the_rest() {
    for grid in all_grids(6) {
        for (tiles, seed) in [1, 2, 5, 9].into_iter().flat_map(|tiles| (0..8).map(move |seed| (tiles, seed))) {
            for delivery in DeliveryKind::ALL.into_iter().filter(|delivery| *delivery != DeliveryKind::Synchronous) {
                let memories = &all_memories(grid.size())[(seed as usize + tiles) % 4];
                let slots = memories.least_slots(grid, tiles) + seed as usize % 3 * 20;
                let mut options = options(delivery, Policy::Blocks { rows: 2, cols: 1 }, slots);
                (options.imports, options.most_updates, options.strip_tiles) = (seed % 2 == 1, 2, 2);
                let mut world = World::sharing(memories, grid, tiles, options, seed);
                let share = [1, 2, 10][seed as usize % 3];
                let finished = world.graph.all_tiles().filter(|_| world.draw(share) == 0).collect::<HashSet<_>>();
                for &tile in &finished {
                    world.data[grid.owner(tile)].insert(tile);
                    let updates = (0..tile.col).map(|k| world.graph.update(tile, k));
                    world.done.extend(updates.chain([world.graph.finish(tile)]));
                }
                world.machines.iter_mut().for_each(|machine| machine.resume(&|tile| finished.contains(&tile)));
                let world = world.run();
                let place = format!("{grid:?}, {tiles} tiles, {} {}", delivery.name(), finished.len());
                assert_eq!(world.done.len(), world.graph.tasks().count(), "{place}");
                assert_eq!(world.finished, grid.size(), "{place}");
            }
        }
    }
}

#[test]
fn one_worker_takes_strips_of_a_column_at_once() {
    let (grid, graph) = (RankGrid { rows: 1, cols: 1 }, CholeskyGraph { tiles: 10 });
    let base = options(DeliveryKind::CsListAhead, Policy::Leftmost, 0);
    let options = ProtocolOptions { workers: 1, most_updates: usize::MAX, strip_tiles: 8, ..base };
    let mut machine = TaskMachine::new(grid, &Memories::apart(), graph, 0, options).unwrap();
    let mut strips = Vec::new();
    while let Some(ProtocolAction::Run(run)) = machine.poll() {
        assert!(!run.is_ahead() && run.finish && run.updates == (0..run.tile.col));
        strips.push((run.tile.col, run.tile.row..run.tile.row + run.count));
        machine.handle(ProtocolEvent::Done(run));
    }
    assert_eq!(strips[..4], [(0, 0..8), (0, 8..10), (1, 1..9), (1, 9..10)]);
    assert!(machine.is_finished() && strips.len() == 12);
}

#[test]
fn a_worker_that_finds_nothing_to_do_takes_tiles_in_until_there_is() {
    let (grid, graph) = (RankGrid { rows: 1, cols: 2 }, CholeskyGraph { tiles: 4 });
    let memories = Memories::new(vec![0, 0]);
    let base = options(DeliveryKind::CsListAhead, Policy::Leftmost, 0);
    let options = ProtocolOptions { workers: 1, most_updates: usize::MAX, loads_ahead: true, ..base };
    let machine = |options| TaskMachine::new(grid, &memories, graph, 1, options).unwrap();
    let mut patient = machine(ProtocolOptions { loads_ahead: false, ..options });
    assert_eq!(patient.poll(), None);
    let mut machine = machine(options);
    let mut next = || match machine.poll() {
        Some(ProtocolAction::Run(run)) => {
            assert_eq!(machine.poll(), None, "one worker has one run");
            machine.handle(ProtocolEvent::Done(run.clone()));
            Some((run.tile.row, run.tile.col, run.is_ahead()))
        }
        action => {
            assert_eq!(action, None);
            None
        }
    };
    assert_eq!((next(), next()), (Some((1, 1, true)), Some((2, 1, true))));
    machine.handle(ProtocolEvent::Message { from: 0, message: Message::Shown(TileId { row: 1, col: 0 }) });
    let mut next = || match machine.poll() {
        Some(ProtocolAction::Run(run)) => {
            machine.handle(ProtocolEvent::Done(run.clone()));
            Some((run.tile.row, run.tile.col, run.is_ahead()))
        }
        _ => None,
    };
    // Tasks that can be done come first; tiles that were begun are not taken in, and the last one of the next column
    // is.
    assert_eq!(next(), Some((1, 1, false)));
    assert_eq!((next(), next()), (Some((3, 1, true)), Some((3, 3, true))));
    assert_eq!(next(), None);
}

#[test]
fn a_tree_keeps_an_owner_to_the_logarithm_of_its_readers() {
    // 32 readers of a tile on 16 x 16 ranks, and with more effort 64 of them on 32 x 32.
    for (edge, least_readers, most_sends) in [(16, 30, 6), (32, 60, 8)] {
        let (grid, tiles) = (RankGrid { rows: edge, cols: edge }, 2 * edge + 4);
        assert!(grid.clients(tiles, TileId { row: edge + 3, col: 2 }).len() >= least_readers);
        for delivery in [DeliveryKind::CsList, DeliveryKind::CsListAhead] {
            // The larger grid has 1024 ranks, which take seconds.
            if edge == 32 && effort() == 1 {
                continue;
            }
            let world = World::new(grid, tiles, options(delivery, Policy::Fifo, grid.least_slots(tiles)), 7).run();
            let most = world.machines.iter().map(|machine| machine.counters().most_sends).max().unwrap();
            assert!(most <= most_sends, "{}: {most} sends", delivery.name());
            assert_eq!(world.finished, grid.size());
        }
    }
}

#[test]
fn one_slot_too_few_is_refused_with_the_number() {
    let grid = RankGrid { rows: 2, cols: 3 };
    let least = grid.least_slots(9);
    assert!(least > 0);
    let graph = CholeskyGraph { tiles: 9 };
    let new = |slots| {
        TaskMachine::new(grid, &Memories::apart(), graph, 0, options(DeliveryKind::CsList, Policy::Fifo, slots))
            .map(|_| ())
    };
    assert!(new(least).is_ok());
    assert!(new(least - 1).unwrap_err().to_string().contains(&format!("at least {least}")));
    let empty = RankGrid { rows: 0, cols: 3 };
    assert!(empty.check(9, 100).is_err());
}

#[test]
fn the_fewest_slots_are_those_of_the_worst_column() {
    for grid in all_grids(9) {
        for tiles in 0..14 {
            let graph = CholeskyGraph { tiles };
            let reads = |rank: usize, tile: TileId| {
                let own = |task: &Task| grid.owner(graph.output(*task)) == rank;
                grid.owner(tile) != rank && graph.successors(graph.finish(tile)).iter().any(own)
            };
            for memories in all_memories(grid.size()) {
                let is_sent = |rank: usize, tile: TileId| reads(rank, tile) && !memories.share(grid.owner(tile), rank);
                let count =
                    |rank: usize, col: usize| (col..tiles).filter(|&row| is_sent(rank, TileId { row, col })).count();
                let most = (0..grid.size()).flat_map(|rank| (0..tiles).map(move |col| (rank, col)));
                let most = most.map(|(rank, col)| count(rank, col)).max().unwrap_or(0);
                assert_eq!(memories.least_slots(grid, tiles), most, "{grid:?} {tiles} {memories:?}");
            }
            for tile in graph.all_tiles() {
                let mut clients = grid.clients(tiles, tile);
                clients.sort_unstable();
                let expected = (0..grid.size()).filter(|&rank| reads(rank, tile)).map(|rank| rank as u32);
                assert_eq!(clients, expected.collect::<Vec<_>>(), "{grid:?} {tiles} {tile:?}");
            }
        }
    }
}

#[test]
fn all_processes_end_when_one_fails() {
    let mut failed = 0;
    for grid in all_grids(7) {
        for seed in 0..20 {
            for delivery in DeliveryKind::ALL {
                let slots = grid.least_slots(7);
                let mut world = World::new(grid, 7, options(delivery, Policy::Fifo, slots), seed);
                (0..grid.size()).for_each(|rank| world.poll(rank));
                for _ in 0..seed * 5 {
                    if !world.flights.is_empty() {
                        world.step();
                    }
                }
                let failing = seed as usize % grid.size();
                let fails = !world.machines[failing].is_finished();
                if fails {
                    world.machines[failing].handle(ProtocolEvent::Failed);
                    world.poll(failing);
                }
                while !world.flights.is_empty() {
                    world.step();
                }
                assert_eq!(world.finished, grid.size(), "{grid:?} {seed} {}", delivery.name());
                assert!(world.machines.iter().all(|machine| machine.is_stopped() == fails), "{grid:?} {seed}");
                failed += usize::from(fails);
            }
        }
    }
    assert!(failed > 1000, "{failed} runs fail");
}
