//! Random graphs on random nodes, with memory and disks that end their work in random order.

use super::machine::*;
use super::*;
use crate::runtime::Ticket;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

/// The real contents of memories and disks: the number of tasks that have written an object, which a reader must find.
#[derive(Default)]
struct World {
    memory: BTreeMap<(usize, ObjectId), u32>,
    disk: BTreeMap<(usize, ObjectId), u32>,
    fetching: Vec<(usize, ObjectId, u32)>,
    writing: Vec<(usize, ObjectId, u32)>,
    running: Vec<(usize, Ticket, TaskId)>,
    ran: BTreeSet<TaskId>,
}

/// The contents that the tasks should find.
struct Meant {
    specs: BTreeMap<TaskId, TaskSpec>,
    sizes: BTreeMap<ObjectId, u64>,
}

impl Meant {
    /// Tasks before `task` that write an object.
    fn writers(&self, task: TaskId, object: ObjectId) -> u32 {
        self.specs.range(..task).filter(|(_, spec)| spec.writes().any(|one| one == object)).count() as u32
    }
}

impl World {
    fn carry_out(&mut self, machine: &mut Machine, meant: &Meant, options: &[NodeOptions]) {
        while let Some(action) = machine.next_action() {
            match action {
                GraphAction::Fetch { node, object, source } => {
                    let version = match source {
                        CopySource::Memory(from) => self.memory[&(from, object)],
                        CopySource::Disk(from) => self.disk[&(from, object)],
                    };
                    self.fetching.push((node, object, version));
                }
                GraphAction::Write { node, object } => self.writing.push((node, object, self.memory[&(node, object)])),
                GraphAction::Drop { node, object } => {
                    assert!(self.writing.iter().all(|one| (one.0, one.1) != (node, object)));
                    // An object whose task never ran was never here.
                    self.memory.remove(&(node, object));
                }
                GraphAction::Delete { node, object } => drop(self.disk.remove(&(node, object))),
                GraphAction::Run { node, ticket, task } => {
                    assert!(self.ran.insert(task), "{task:?} ran twice");
                    for object in meant.specs[&task].inputs() {
                        let found = self.memory[&(node, object)];
                        assert_eq!(found, meant.writers(task, object), "{task:?} finds an old {object:?}");
                    }
                    self.memory.extend(meant.specs[&task].creates.iter().map(|&object| ((node, object), 0)));
                    self.running.push((node, ticket, task));
                }
            }
            for (node, options) in options.iter().enumerate() {
                let here = self.memory.keys().filter(|one| one.0 == node).map(|one| meant.sizes[&one.1]);
                let coming = self.fetching.iter().filter(|one| one.0 == node).map(|one| meant.sizes[&one.1]);
                assert!(here.chain(coming).sum::<u64>() <= options.memory_bytes, "the limit of node {node}");
            }
        }
    }

    /// Ends something that is under way; `false` where nothing is.
    fn end_one(&mut self, machine: &mut Machine, meant: &Meant, rng: &mut StdRng) -> bool {
        let counts = [self.fetching.len(), self.writing.len(), self.running.len()];
        let total = counts.iter().sum::<usize>();
        if total == 0 {
            return false;
        }
        let at = rng.random_range(0..total);
        if at < counts[0] {
            let (node, object, version) = self.fetching.swap_remove(at);
            self.memory.insert((node, object), version);
            machine.fetched(node, object);
        } else if at < counts[0] + counts[1] {
            let (node, object, version) = self.writing.swap_remove(at - counts[0]);
            self.disk.insert((node, object), version);
            machine.written(node, object);
        } else {
            let (node, ticket, task) = self.running.swap_remove(at - counts[0] - counts[1]);
            for object in meant.specs[&task].writes() {
                *self.memory.get_mut(&(node, object)).expect("what is written is here") += 1;
            }
            machine.done(node, ticket, task);
        }
        true
    }
}

/// A random task on objects that may be read, and others that are still open.
fn random_task(rng: &mut StdRng, readable: &[ObjectId], open: &[ObjectId], nodes: usize) -> TaskSpec {
    let mut spec = TaskSpec::default();
    for _ in 0..rng.random_range(0..4).min(readable.len()) {
        let object = readable[rng.random_range(0..readable.len())];
        if !spec.reads.contains(&object) {
            spec.reads.push(object);
        }
    }
    if !open.is_empty() && rng.random_bool(0.6) {
        spec.updates.push(open[rng.random_range(0..open.len())]);
    }
    spec.node = rng.random_bool(0.3).then(|| rng.random_range(0..nodes));
    spec
}

fn run(seed: u64, has_disk: bool) -> usize {
    let mut rng = StdRng::seed_from_u64(seed);
    let nodes = rng.random_range(1..5);
    // Each task has up to six objects of at most 20 bytes.
    let memory_bytes = if has_disk { rng.random_range(120..300) } else { 3000 };
    let options = vec![NodeOptions { memory_bytes, has_disk }; nodes];
    let (mut machine, mut world) = (Machine::new(&options), World::default());
    let mut meant = Meant { specs: BTreeMap::new(), sizes: BTreeMap::new() };
    let (mut readable, mut open, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if has_disk { 6 } else { 0 } {
        let (bytes, node) = (rng.random_range(1..=20), rng.random_range(0..nodes));
        let object = machine.declare_on_disk(bytes, node);
        world.disk.insert((node, object), 0);
        meant.sizes.insert(object, bytes);
        readable.push(object);
        held.push(object);
    }
    for _ in 0..60 {
        let mut spec = random_task(&mut rng, &readable, &open, nodes);
        for _ in 0..rng.random_range(usize::from(spec.updates.is_empty())..3) {
            let object = machine.declare(rng.random_range(1..=20));
            meant.sizes.insert(object, machine.bytes(object));
            spec.creates.push(object);
            held.push(object);
        }
        open.extend(&spec.creates);
        meant.specs.insert(machine.add(spec.clone()), spec);
        if open.len() > 3 {
            readable.push(open.swap_remove(rng.random_range(0..open.len())));
        }
        if rng.random_bool(0.2) {
            machine.want(held[rng.random_range(0..held.len())]);
        }
        world.carry_out(&mut machine, &meant, &options);
        for _ in 0..rng.random_range(0..6) {
            world.end_one(&mut machine, &meant, &mut rng);
            world.carry_out(&mut machine, &meant, &options);
        }
        // An object that may still be read or updated keeps its handle.
        let at = rng.random_range(0..held.len());
        if rng.random_bool(0.3) && !readable.contains(&held[at]) && !open.contains(&held[at]) {
            machine.release(held.swap_remove(at));
        }
    }
    held.iter().for_each(|&object| machine.want(object));
    world.carry_out(&mut machine, &meant, &options);
    while world.end_one(&mut machine, &meant, &mut rng) {
        world.carry_out(&mut machine, &meant, &options);
    }
    assert_eq!((machine.tasks(), machine.too_small(), machine.is_busy()), (0, None, false), "{seed}");
    held.into_iter().for_each(|object| machine.release(object));
    world.carry_out(&mut machine, &meant, &options);
    while world.end_one(&mut machine, &meant, &mut rng) {
        world.carry_out(&mut machine, &meant, &options);
    }
    assert!(world.memory.is_empty() && world.disk.is_empty(), "{seed}: something is left");
    world.ran.len()
}

#[test]
fn every_task_runs_once_on_what_it_needs_within_the_memory() {
    for seed in 0..150 {
        assert_eq!(run(seed, true), 60);
        assert_eq!(run(seed, false), 60);
    }
}

#[test]
fn memory_that_is_too_small_is_named() {
    for (memory_bytes, has_disk, minimum_bytes) in [(29, true, 30), (29, false, 30), (49, false, 50)] {
        let mut machine = Machine::new(&[NodeOptions { memory_bytes, has_disk }]);
        let objects = [10, 20, 20].map(|bytes| machine.declare(bytes));
        let create = |object: ObjectId| TaskSpec { creates: vec![object], ..TaskSpec::default() };
        let mut specs = vec![create(objects[0])];
        specs.push(TaskSpec { reads: vec![objects[0]], ..create(objects[1]) });
        specs.push(create(objects[2]));
        for spec in specs {
            machine.add(spec);
        }
        objects.iter().for_each(|&object| machine.want(object));
        loop {
            match machine.next_action() {
                Some(GraphAction::Run { node, ticket, task }) => machine.done(node, ticket, task),
                Some(GraphAction::Write { node, object }) => machine.written(node, object),
                Some(GraphAction::Fetch { node, object, .. }) => machine.fetched(node, object),
                Some(_) => {}
                None => break,
            }
        }
        assert_eq!(machine.too_small(), Some(TooSmall { node: 0, minimum_bytes }), "{memory_bytes} {has_disk}");
    }
}
