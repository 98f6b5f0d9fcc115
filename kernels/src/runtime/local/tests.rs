//! Random jobs over random objects above a disk that answers in any order.

use super::*;
use crate::runtime::policy::Draw;
use std::collections::BTreeSet;

/// The real contents of the disk and of the memory.
struct World {
    scheduler: LocalScheduler<u32, usize>,
    limits: Limits,
    sizes: Vec<u64>,
    on_disk: BTreeSet<u32>,
    here: BTreeSet<u32>,
    fetching: Vec<u32>,
    writing: Vec<u32>,
    running: Vec<(Ticket, usize)>,
}

impl World {
    /// Begins all moves that were requested.
    fn begin_moves(&mut self) {
        while let Some(step) = self.scheduler.next_move() {
            match step {
                Move::Fetch(object) => {
                    assert!(self.on_disk.contains(&object), "{object} is fetched and was never written");
                    assert!(!self.here.contains(&object));
                    self.fetching.push(object);
                }
                Move::WriteBack(object) => {
                    assert!(self.here.contains(&object));
                    self.writing.push(object);
                }
                Move::Drop(object) => {
                    assert!(!self.writing.contains(&object), "{object} leaves while it is written");
                    assert!(self.here.remove(&object), "{object} leaves and is not here");
                }
            }
            let bytes = self.here.iter().chain(&self.fetching).map(|&one| self.sizes[one as usize]).sum::<u64>();
            assert!(bytes <= self.limits.bytes && self.here.len() + self.fetching.len() <= self.limits.tiles);
        }
    }
}

impl World {
    /// Plans all jobs that are ready, in a random order, until there is no room.
    fn plan_ready(&mut self, draw: &mut Draw, waiting: &mut BTreeSet<usize>, jobs: &[Work], made: &BTreeSet<u32>) {
        let mut ready = waiting.iter().copied().collect::<Vec<_>>();
        ready.retain(|&at| jobs[at].inputs.iter().all(|input| made.contains(input)));
        while !ready.is_empty() {
            let at = ready.swap_remove(draw.below(ready.len()));
            match self.scheduler.plan(at, &jobs[at].uses(&self.sizes), NO_SPARE) {
                (Planned::Yes, None) => drop(waiting.remove(&at)),
                (Planned::Later, Some(back)) => assert_eq!(back, at),
                other => panic!("{other:?}"),
            }
            self.begin_moves();
        }
    }
}

/// A job: the objects that it reads, and those that it makes.
struct Work {
    inputs: Vec<u32>,
    output: u32,
}

impl Work {
    fn uses(&self, sizes: &[u64]) -> Vec<TileUse<u32>> {
        let one = |&object: &u32| reads(object, sizes[object as usize]);
        let made = creates(self.output, sizes[self.output as usize]);
        self.inputs.iter().map(one).chain([made]).collect()
    }
}

fn jobs(draw: &mut Draw, count: usize, first: u32) -> Vec<Work> {
    let work = |at: usize| {
        let known = first as usize + at;
        let inputs = (0..draw.below(4)).map(|_| draw.below(known) as u32).collect::<BTreeSet<_>>();
        Work { inputs: inputs.into_iter().collect(), output: known as u32 }
    };
    (0..count).map(work).collect()
}

/// Runs random jobs in any order that their inputs allow; every one comes to its end.
fn run(seed: u64) -> CacheCounters {
    let draw = &mut Draw::new(seed);
    let (first, count) = (6u32, 60);
    let jobs = jobs(draw, count, first);
    let sizes = (0..first as usize + count).map(|_| 1 + draw.below(5) as u64).collect::<Vec<_>>();
    let most = jobs.iter().map(|job| job.uses(&sizes).iter().map(|one| one.bytes).sum::<u64>()).max().unwrap();
    let limits = Limits { bytes: most + draw.below(20) as u64, tiles: 4 + draw.below(10) };
    let mut world = World {
        scheduler: LocalScheduler::new(limits, Eviction::ALL[draw.below(2)]),
        limits,
        sizes,
        on_disk: (0..first).collect(),
        here: BTreeSet::new(),
        fetching: Vec::new(),
        writing: Vec::new(),
        running: Vec::new(),
    };
    let mut made: BTreeSet<u32> = (0..first).collect();
    let mut waiting = (0..count).collect::<BTreeSet<_>>();
    let mut done = 0;
    while done < count {
        world.plan_ready(draw, &mut waiting, &jobs, &made);
        while let Some(job) = world.scheduler.next_job() {
            let work = &jobs[job.1];
            assert!(work.inputs.iter().all(|input| world.here.contains(input)), "an input is not here");
            world.here.insert(work.output);
            world.running.push(job);
        }
        let events = world.fetching.len() + world.writing.len() + world.running.len();
        assert!(events > 0, "seed {seed}: {done} of {count} jobs done and nothing under way");
        let at = draw.below(events);
        if at < world.fetching.len() {
            let object = world.fetching.swap_remove(at);
            world.here.insert(object);
            world.scheduler.fetched(object);
        } else if at < world.fetching.len() + world.writing.len() {
            let object = world.writing.swap_remove(at - world.fetching.len());
            world.on_disk.insert(object);
            world.scheduler.written(object);
        } else {
            let (ticket, job) = world.running.swap_remove(at - world.fetching.len() - world.writing.len());
            world.scheduler.done(ticket);
            made.insert(jobs[job].output);
            done += 1;
            let last = |object: &u32| !waiting.iter().any(|&at| jobs[at].inputs.contains(object));
            let unread = jobs[job].inputs.iter().copied().filter(last).collect::<Vec<_>>();
            let held = |object: u32| world.running.iter().any(|(_, at)| jobs[*at].inputs.contains(&object));
            let planned = world.scheduler.planned() > world.running.len();
            if draw.below(2) == 0 && !planned {
                let free = unread.into_iter().filter(|&object| !held(object) && world.scheduler.has(object));
                let free = free.filter(|object| !world.fetching.contains(object)).collect::<Vec<_>>();
                free.into_iter().for_each(|object| world.scheduler.forget(object));
            }
        }
        world.begin_moves();
    }
    world.scheduler.counters()
}

#[test]
fn every_job_comes_to_its_end_within_the_limits_whatever_the_disk_answers_first() {
    let mut sum = CacheCounters::default();
    for seed in 0..300 {
        let counters = run(seed);
        sum.evictions += counters.evictions;
        sum.write_backs += counters.write_backs;
        sum.hits += counters.hits;
    }
    assert!(sum.evictions > 1000 && sum.write_backs > 1000 && sum.hits > 1000, "{sum:?}");
}

#[test]
fn fetches_of_later_jobs_begin_before_earlier_ones_are_done() {
    let mut scheduler = LocalScheduler::new(Limits { bytes: 4, tiles: 9 }, Eviction::Lru);
    for at in 0..4u32 {
        assert_eq!(scheduler.plan(at, &[reads(at, 1)], NO_SPARE).0, Planned::Yes);
        assert_eq!(scheduler.next_move(), Some(Move::Fetch(at)));
    }
    assert_eq!(scheduler.plan(4, &[reads(4, 1)], NO_SPARE), (Planned::Later, Some(4)));
    assert!(scheduler.next_job().is_none());
    scheduler.fetched(2);
    let (ticket, job) = scheduler.next_job().unwrap();
    assert_eq!(job, 2);
    scheduler.done(ticket);
    assert_eq!(scheduler.plan(4, &[reads(4, 1)], NO_SPARE).0, Planned::Yes);
    assert_eq!((scheduler.next_move(), scheduler.next_move()), (Some(Move::Drop(2)), Some(Move::Fetch(4))));
    assert_eq!((scheduler.planned(), scheduler.in_flight()), (4, 4));
}

#[test]
fn what_cannot_be_read_again_stays_until_it_is_written() {
    let mut scheduler = LocalScheduler::new(Limits { bytes: 2, tiles: 9 }, Eviction::Lru);
    assert_eq!(scheduler.plan('a', &[creates('a', 1)], NO_SPARE).0, Planned::Yes);
    let (made, _) = scheduler.next_job().unwrap();
    scheduler.done(made);
    assert_eq!(scheduler.plan('b', &[reads('b', 1), reads('c', 1)], NO_SPARE), (Planned::Later, Some('b')));
    assert_eq!((scheduler.next_move(), scheduler.next_move()), (Some(Move::WriteBack('a')), None));
    // It is requested once, however often there is no room.
    assert_eq!(scheduler.plan('b', &[reads('b', 1), reads('c', 1)], NO_SPARE), (Planned::Later, Some('b')));
    assert_eq!(scheduler.next_move(), None);
    scheduler.written('a');
    assert_eq!(scheduler.plan('b', &[reads('b', 1), reads('c', 1)], NO_SPARE).0, Planned::Yes);
    let moves = [Move::Drop('a'), Move::Fetch('b'), Move::Fetch('c')].map(Some);
    assert_eq!([scheduler.next_move(), scheduler.next_move(), scheduler.next_move()], moves);
}

#[test]
fn room_that_is_to_be_spared_is_not_taken() {
    let mut scheduler = LocalScheduler::new(Limits { bytes: 10, tiles: 10 }, Eviction::Lru);
    let spare = |bytes| Limits { bytes, tiles: 0 };
    assert_eq!(scheduler.plan(0, &[reads(0, 4)], spare(7)).0, Planned::Later);
    assert_eq!(scheduler.plan(0, &[reads(0, 4)], spare(6)).0, Planned::Yes);
    assert_eq!(scheduler.plan(1, &[reads(1, 4)], spare(3)).0, Planned::Later);
    // An object that another job holds costs nothing more.
    assert_eq!(scheduler.plan(1, &[reads(0, 4)], spare(6)).0, Planned::Yes);
    assert_eq!(scheduler.plan(2, &[reads(2, 11)], spare(1)).0, Planned::TooLarge { bytes: 11, tiles: 1 });
}

#[test]
fn an_object_that_nobody_wants_goes_when_its_write_has_ended() {
    let mut scheduler = LocalScheduler::new(Limits { bytes: 4, tiles: 4 }, Eviction::Lru);
    for object in ['a', 'b'] {
        scheduler.plan(object, &[creates(object, 1)], NO_SPARE);
        let (ticket, _) = scheduler.next_job().unwrap();
        scheduler.done(ticket);
    }
    scheduler.write('a');
    assert_eq!(scheduler.next_move(), Some(Move::WriteBack('a')));
    scheduler.forget('a');
    scheduler.forget('b');
    assert_eq!((scheduler.next_move(), scheduler.next_move()), (Some(Move::Drop('b')), None));
    scheduler.written('a');
    assert_eq!(scheduler.next_move(), Some(Move::Drop('a')));
    assert_eq!(scheduler.used_bytes(), 0);
}
