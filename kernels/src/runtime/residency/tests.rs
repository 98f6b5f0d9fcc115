//! The cache against a model of homes and copies with version numbers: small cases in full, larger ones at random.

use super::*;
use std::collections::BTreeMap;

/// Homes and copies as numbers of the last write that they hold.
#[derive(Clone)]
struct World {
    cache: Residency<u8>,
    sizes: Vec<u64>,
    homes: BTreeMap<u8, u64>,
    copies: BTreeMap<u8, u64>,
    last_write: BTreeMap<u8, u64>,
    writes: u64,
    traffic: (u64, u64),
    holds: BTreeMap<u8, usize>,
}

impl World {
    fn new(sizes: &[u64], limits: Limits, eviction: Eviction) -> World {
        let each = || (0..sizes.len() as u8).map(|tile| (tile, 0));
        World {
            cache: Residency::new(limits, eviction),
            sizes: sizes.to_vec(),
            homes: each().collect(),
            copies: BTreeMap::new(),
            last_write: each().collect(),
            writes: 0,
            traffic: (0, 0),
            holds: each().map(|(tile, _)| (tile, 0)).collect(),
        }
    }

    fn uses(&self, accesses: &[(u8, Access)]) -> Vec<TileUse<u8>> {
        let one = |&(tile, access)| TileUse { tile, bytes: self.sizes[usize::from(tile)], access };
        accesses.iter().map(one).collect()
    }

    fn carry_out(&mut self, moves: &[Move<u8>]) {
        for step in moves {
            match *step {
                Move::WriteBack(tile) => {
                    self.homes.insert(tile, self.copies[&tile]);
                    self.traffic.1 += self.sizes[usize::from(tile)];
                }
                Move::Drop(tile) => {
                    assert_eq!(self.holds[&tile], 0, "a held tile leaves");
                    self.copies.remove(&tile).expect("what leaves was here");
                }
                Move::Fetch(tile) => {
                    assert!(self.copies.insert(tile, self.homes[&tile]).is_none());
                    self.traffic.0 += self.sizes[usize::from(tile)];
                }
            }
            self.check_room();
        }
    }

    fn check_room(&self) {
        let bytes = self.copies.keys().map(|&tile| self.sizes[usize::from(tile)]).sum::<u64>();
        assert!(bytes <= self.cache.limits.bytes && self.copies.len() <= self.cache.limits.tiles, "over the limits");
    }

    /// Acquires tiles and does to them what the task would do.
    fn acquire(&mut self, accesses: &[(u8, Access)]) -> Option<Lease<u8>> {
        let uses = self.uses(accesses);
        let before = (self.cache.counters(), self.cache.used_bytes());
        match self.cache.acquire(&uses) {
            Admission::Granted { moves, lease } => {
                self.carry_out(&moves);
                for one in merged(&uses) {
                    let copy = self.copies[&one.tile];
                    assert_eq!(copy, self.last_write[&one.tile], "a reader sees an older write");
                    if one.access != Access::Read {
                        self.writes += 1;
                        self.copies.insert(one.tile, self.writes);
                        self.last_write.insert(one.tile, self.writes);
                    }
                    *self.holds.get_mut(&one.tile).unwrap() += 1;
                }
                Some(lease)
            }
            Admission::Busy => {
                assert!(self.holds.values().any(|&count| count > 0), "busy though nothing is held");
                assert_eq!(before, (self.cache.counters(), self.cache.used_bytes()));
                None
            }
            Admission::TooLarge { bytes, tiles } => {
                assert!(bytes > self.cache.limits.bytes || tiles > self.cache.limits.tiles);
                assert_eq!(before, (self.cache.counters(), self.cache.used_bytes()));
                None
            }
            Admission::Unwritten(_) => unreachable!("writes are among the moves"),
        }
    }

    fn release(&mut self, lease: Lease<u8>) {
        lease.0.iter().for_each(|tile| *self.holds.get_mut(tile).unwrap() -= 1);
        self.cache.release(lease);
    }

    fn check(&self) {
        let counters = self.cache.counters();
        assert_eq!(self.traffic, (counters.up_bytes, counters.down_bytes));
        for tile in 0..self.sizes.len() as u8 {
            let newest = self.last_write[&tile];
            let expected = match self.copies.get(&tile) {
                None => TileState::Invalid,
                Some(_) if self.homes[&tile] != newest => TileState::Modified,
                Some(_) => TileState::Shared,
            };
            assert_eq!(self.cache.state(tile), expected, "tile {tile}");
            assert!(expected == TileState::Modified || self.homes[&tile] == newest, "a write is lost");
            assert_eq!(self.cache.hold_count(tile), self.holds[&tile]);
        }
        assert_eq!(self.cache.tile_count(), self.copies.len());
    }

    fn flush(&mut self) {
        let moves = self.cache.flush();
        self.carry_out(&moves);
        self.check();
        assert_eq!(self.homes, self.last_write, "a write is lost");
    }
}

const ACCESSES: [Access; 2] = [Access::Read, Access::Update];

/// Every request for one or two of `tiles` tiles, in every way.
fn requests(tiles: u8) -> Vec<Vec<(u8, Access)>> {
    let single = (0..tiles).flat_map(|tile| ACCESSES.map(|access| (tile, access))).collect::<Vec<_>>();
    let pair = |&first: &(u8, Access)| single.iter().map(move |&second| vec![first, second]).collect::<Vec<_>>();
    single.iter().map(|&one| vec![one]).chain(single.iter().flat_map(pair)).collect()
}

/// All sequences of `depth` steps from here: a request that keeps its lease or gives it back, or the oldest lease
/// released, or a flush, or a tile written back and discarded.
fn explore(world: &World, leases: &[Vec<u8>], requests: &[Vec<(u8, Access)>], depth: usize, seen: &mut u64) {
    world.check();
    world.clone().flush();
    *seen += 1;
    if depth == 0 {
        return;
    }
    for request in requests {
        let mut next = world.clone();
        let Some(lease) = next.acquire(request) else { continue };
        let mut kept = leases.to_vec();
        kept.push(lease.0.clone());
        explore(&next, &kept, requests, depth - 1, seen);
        next.release(lease);
        explore(&next, leases, requests, depth - 1, seen);
    }
    if let Some((oldest, rest)) = leases.split_first() {
        let mut next = world.clone();
        next.release(Lease(oldest.clone()));
        explore(&next, rest, requests, depth - 1, seen);
    }
    for tile in (0..world.sizes.len() as u8).filter(|tile| world.holds[tile] == 0) {
        let mut next = world.clone();
        let moves = next.cache.write_back(tile).into_iter().chain(next.cache.discard(tile)).collect::<Vec<_>>();
        next.carry_out(&moves);
        explore(&next, leases, requests, depth - 1, seen);
    }
}

#[test]
fn every_short_history_of_small_memories_keeps_the_promises() {
    let mut seen = 0;
    for eviction in Eviction::ALL {
        for tiles in 1..=3 {
            let limits = Limits { bytes: u64::MAX, tiles };
            explore(&World::new(&[8, 8, 8], limits, eviction), &[], &requests(3), 2, &mut seen);
        }
        for bytes in [3, 5, 6] {
            let limits = Limits { bytes, tiles: usize::MAX };
            explore(&World::new(&[1, 2, 3], limits, eviction), &[], &requests(3), 2, &mut seen);
        }
        // Two tiles in room for one are enough for every transition, so longer histories can be tried.
        let limits = Limits { bytes: 1, tiles: 1 };
        let single = requests(2).into_iter().filter(|request| request.len() == 1).collect::<Vec<_>>();
        explore(&World::new(&[1, 1], limits, eviction), &[], &single, 5, &mut seen);
    }
    assert!(seen > 10_000, "{seen}");
}

#[test]
fn long_random_histories_keep_the_promises() {
    for seed in 0..60u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let sizes = (0..12).map(|_| 1 + draw(4) as u64).collect::<Vec<_>>();
        let limits = Limits { bytes: 4 + draw(20) as u64, tiles: 3 + draw(8) };
        let mut world = World::new(&sizes, limits, Eviction::ALL[draw(2)]);
        let mut leases = Vec::new();
        let (mut granted, mut refused) = (0, 0);
        for _ in 0..600 {
            let request =
                (0..1 + draw(3)).map(|_| (draw(12) as u8, ACCESSES[draw(ACCESSES.len())])).collect::<Vec<_>>();
            match world.acquire(&request) {
                Some(lease) => {
                    granted += 1;
                    leases.push(lease);
                }
                None => refused += 1,
            }
            if !leases.is_empty() && draw(3) > 0 {
                let at = draw(leases.len());
                world.release(leases.swap_remove(at));
            }
            world.check();
        }
        leases.drain(..).for_each(|lease| world.release(lease));
        world.flush();
        assert!(granted > 20 && refused > 0, "seed {seed}: {granted} granted, {refused} refused");
    }
}

#[test]
fn a_modified_tile_is_written_back_before_it_leaves() {
    let mut cache = Residency::new(Limits { bytes: 2, tiles: 9 }, Eviction::Lru);
    let one = |tile: char, access| TileUse { tile, bytes: 1, access };
    let mut run = |uses: &[TileUse<char>]| match cache.acquire(uses) {
        Admission::Granted { moves, lease } => {
            cache.release(lease);
            moves
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(run(&[one('a', Access::Update)]), [Move::Fetch('a')]);
    assert_eq!(run(&[one('b', Access::Read)]), [Move::Fetch('b')]);
    assert_eq!(run(&[one('c', Access::Read)]), [Move::WriteBack('a'), Move::Drop('a'), Move::Fetch('c')]);
    assert_eq!(run(&[one('a', Access::Update)]), [Move::Drop('b'), Move::Fetch('a')]);
    assert_eq!(cache.flush(), [Move::WriteBack('a')]);
    assert_eq!(cache.flush(), []);
    let counters = cache.counters();
    assert_eq!((counters.uploads, counters.write_backs, counters.evictions), (4, 2, 2));
    assert_eq!((counters.up_bytes, counters.down_bytes), (4, 2));
}

#[test]
fn a_request_beyond_the_limits_is_named() {
    let mut cache = Residency::new(Limits { bytes: 10, tiles: 2 }, Eviction::Fifo);
    let uses = [1, 2, 3].map(|tile| TileUse { tile, bytes: 5, access: Access::Read });
    assert!(matches!(cache.acquire(&uses), Admission::TooLarge { bytes: 15, tiles: 3 }));
    let Admission::Granted { lease, .. } = cache.acquire(&uses[..2]) else { panic!() };
    assert!(matches!(cache.acquire(&uses[2..]), Admission::Busy));
    cache.release(lease);
    assert!(matches!(cache.acquire(&uses[2..]), Admission::Granted { .. }));
}
