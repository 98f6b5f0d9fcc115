//! Random graphs in random orders of completion; the order of planning against Algorithm 1 as it is written; the
//! lemma of the source.

use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

/// A random graph: objects with handles, and the specification of each task.
struct Built {
    graph: TaskGraph,
    specs: BTreeMap<TaskId, TaskSpec>,
    handles: Vec<ObjectId>,
}

fn build(rng: &mut StdRng, count: usize) -> Built {
    let mut graph = TaskGraph::new();
    let present = (0..3).map(|_| graph.declare_present(rng.random_range(1..50))).collect::<Vec<_>>();
    let (mut specs, mut handles) = (BTreeMap::new(), present.clone());
    let (mut readable, mut open) = (present, Vec::<ObjectId>::new());
    for _ in 0..count {
        let mut spec = TaskSpec::default();
        for _ in 0..rng.random_range(0..4) {
            let object = readable[rng.random_range(0..readable.len())];
            if !spec.reads.contains(&object) {
                spec.reads.push(object);
            }
        }
        if !open.is_empty() && rng.random_bool(0.6) {
            spec.updates.push(open[rng.random_range(0..open.len())]);
        }
        for _ in 0..rng.random_range(usize::from(spec.updates.is_empty())..3) {
            let object = graph.declare(rng.random_range(1..50));
            handles.push(object);
            spec.creates.push(object);
        }
        let created = spec.creates.clone();
        specs.insert(graph.add(spec.clone()), spec);
        for object in created {
            if rng.random_bool(0.5) { readable.push(object) } else { open.push(object) }
        }
        if !open.is_empty() && rng.random_bool(0.3) {
            readable.push(open.swap_remove(rng.random_range(0..open.len())));
        }
    }
    Built { graph, specs, handles }
}

/// The last tasks that write the objects of a task before it.
fn earlier(specs: &BTreeMap<TaskId, TaskSpec>, task: TaskId) -> BTreeSet<TaskId> {
    let writer = |object| specs.range(..task).rev().find(|(_, spec)| spec.writes().any(|one| one == object));
    specs[&task].inputs().filter_map(|object| writer(object).map(|(&task, _)| task)).collect()
}

#[test]
fn every_wanted_task_runs_once_behind_what_it_needs_and_objects_go_when_nothing_needs_them() {
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let Built { mut graph, specs, handles } = build(&mut rng, 40);
        let last = |object: ObjectId| specs.iter().rev().find(|(_, spec)| spec.writes().any(|one| one == object));
        let (mut wanted, mut done, mut freed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut held = handles.iter().copied().collect::<BTreeSet<_>>();
        let mut ready = Vec::new();
        for step in 0.. {
            if step < 200 && rng.random_bool(0.15) && !held.is_empty() {
                let object = *held.iter().nth(rng.random_range(0..held.len())).unwrap();
                if rng.random_bool(0.5) {
                    held.remove(&object);
                    let changes = graph.release(object);
                    assert!(changes.freed.into_iter().all(|object| freed.insert(object)));
                } else {
                    let changes = graph.want(object);
                    for &task in &changes.wanted {
                        assert!(wanted.insert(task), "wanted twice");
                        assert!(earlier(&specs, task).is_subset(&wanted), "{seed}: behind what it waits for");
                    }
                    assert!(last(object).is_none_or(|(task, _)| wanted.contains(task)));
                    ready.extend(changes.wanted.into_iter().filter(|&task| graph.before(task).is_empty()));
                }
            } else if !ready.is_empty() {
                let task = ready.swap_remove(rng.random_range(0..ready.len()));
                assert!(earlier(&specs, task).is_subset(&done), "{seed}: {task:?} ran too early");
                assert!(specs[&task].objects().all(|object| !freed.contains(&object)), "{seed}: an input has gone");
                assert!(done.insert(task));
                let changes = graph.done(task);
                let is_ready = |task: &TaskId| graph.before(*task).is_empty() && graph.is_wanted(*task);
                ready.extend(changes.released.into_iter().filter(is_ready));
                assert!(changes.freed.into_iter().all(|object| freed.insert(object)));
            } else if step >= 200 {
                break;
            }
        }
        assert_eq!(wanted, done, "{seed}");
        assert!(freed.is_disjoint(&held));
        for object in held {
            freed.extend(graph.release(object).freed);
        }
        assert_eq!((graph.len(), freed.len()), (0, handles.len()), "{seed}: nothing is left");
    }
}

/// Algorithm 1 as it stands in the source, on tasks that are sets of objects; gives the tasks in their order.
fn algorithm_1(tasks: &[Vec<usize>], bytes: &[u64], available: &BTreeSet<usize>, memory: u64) -> Vec<usize> {
    let (mut available, mut memory, mut order) = (available.clone(), memory, Vec::new());
    let mut open = (0..tasks.len()).collect::<Vec<_>>();
    while !open.is_empty() {
        let cost = |task: usize| tasks[task].iter().filter(|one| !available.contains(one)).map(|&one| bytes[one]).sum();
        let next = *open.iter().min_by_key(|&&task| (cost(task), task)).unwrap();
        let needed: u64 = cost(next);
        if needed > memory {
            break;
        }
        memory -= needed;
        available.extend(&tasks[next]);
        order.push(next);
        open.retain(|&task| task != next);
    }
    order
}

/// The same by [`TaskOrder`].
fn by_order(tasks: &[Vec<usize>], bytes: &[u64], available: &BTreeSet<usize>, memory: u64) -> Vec<usize> {
    let mut order = TaskOrder::default();
    let object = |one: usize| ObjectId(one as u64);
    let (early, late) = available.iter().partition::<Vec<_>, _>(|one| **one % 2 == 0);
    early.into_iter().for_each(|one| order.came(object(one)));
    for (task, inputs) in tasks.iter().enumerate() {
        order
            .add(TaskId(task as u64), inputs.iter().map(|&one| SizedObject { object: object(one), bytes: bytes[one] }));
    }
    late.into_iter().for_each(|one| order.came(object(one)));
    let (mut memory, mut found) = (memory, Vec::new());
    while let Some((task, missing)) = order.first().filter(|&(_, missing)| missing <= memory) {
        memory -= missing;
        assert!(order.remove(task) && !order.remove(task));
        let task = task.0 as usize;
        tasks[task].iter().for_each(|&one| order.came(object(one)));
        found.push(task);
    }
    assert_eq!(order.len() + found.len(), tasks.len());
    found
}

#[test]
fn the_order_is_that_of_algorithm_1() {
    for seed in 0..200 {
        let mut rng = StdRng::seed_from_u64(seed);
        let bytes = (0..20).map(|_| rng.random_range(1..30)).collect::<Vec<_>>();
        let tasks = (0..25).map(|_| {
            let inputs = (0..rng.random_range(0..4)).map(|_| rng.random_range(0..20)).collect::<BTreeSet<usize>>();
            inputs.into_iter().collect()
        });
        let tasks = tasks.collect::<Vec<Vec<usize>>>();
        let available = (0..20).filter(|_| rng.random_bool(0.3)).collect::<BTreeSet<_>>();
        let memory = rng.random_range(0..400);
        let expected = algorithm_1(&tasks, &bytes, &available, memory);
        assert_eq!(by_order(&tasks, &bytes, &available, memory), expected, "{seed}");
    }
}

#[test]
fn what_leaves_is_missing_again() {
    let mut order = TaskOrder::default();
    let [small, large] = [ObjectId(1), ObjectId(2)];
    let (five, nine) = (SizedObject { object: small, bytes: 5 }, SizedObject { object: large, bytes: 9 });
    order.add(TaskId(1), [five, five]);
    order.add(TaskId(2), [nine]);
    assert_eq!(order.first(), Some((TaskId(1), 5)));
    order.came(large);
    order.came(large);
    assert_eq!(order.first(), Some((TaskId(2), 0)));
    order.left(large);
    order.left(large);
    assert_eq!(order.iter().collect::<Vec<_>>(), [(TaskId(1), 5), (TaskId(2), 9)]);
}

/// Blocks of one node's rows, whose parts of the vector are here, are taken column by column where the sizes of blocks
/// differ by less than a part of the vector.
#[test]
fn the_lemma_of_column_major_order() {
    for seed in 0..100 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (chunks, rows) = (12, rng.random_range(0..6)..rng.random_range(7..13));
        let vector_bytes = 100;
        let (mut tasks, mut bytes, mut places) = (Vec::new(), vec![vector_bytes; chunks], Vec::new());
        // The tasks in any order.
        let mut all = rows.clone().flat_map(|i| (0..chunks).map(move |j| (i, j))).collect::<Vec<_>>();
        for k in (1..all.len()).rev() {
            all.swap(k, rng.random_range(0..=k));
        }
        for (i, j) in all {
            let block = bytes.len();
            bytes.push(500 + rng.random_range(0..vector_bytes));
            tasks.push([i, j, block].into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
            places.push((i, j));
        }
        let order = by_order(&tasks, &bytes, &rows.clone().collect(), u64::MAX);
        let columns = order.iter().map(|&task| places[task].1).collect::<Vec<_>>();
        let own = rows.len() * rows.len();
        // Columns whose part of the vector is here from the start need only the block, and come first, mixed.
        assert!(columns[..own].iter().all(|column| rows.contains(column)), "{seed}: {columns:?}");
        let mut seen = BTreeSet::new();
        for column in columns[own..].chunk_by(|one, other| one == other) {
            assert_eq!(column.len(), rows.len(), "{seed}: {columns:?}");
            assert!(seen.insert(column[0]));
        }
    }
}

#[test]
fn tasks_go_where_their_inputs_lie() {
    let mut place = Placement::new(3);
    let object = |number: u64| SizedObject { object: ObjectId(number), bytes: 10 * (number + 1) };
    let [a, b, c] = [object(0), object(1), object(2)];
    assert_eq!(place.best(&[a]), 0, "the lowest of those alike");
    place.came(a.object, 0);
    place.came(b.object, 1);
    place.came(c.object, 2);
    assert_eq!((place.best(&[a, b]), place.best(&[a, b, c])), (1, 2), "most bytes");
    place.came(a.object, 2);
    assert_eq!(place.best(&[a]), 0);
    place.assign(TaskId(1), 0, 40, &[c.object]);
    assert_eq!((place.best(&[a]), place.best(&[c]), place.node_of(TaskId(1))), (2, 0, Some(0)), "least to do");
    assert_eq!((place.holder(a.object), place.holder(c.object)), (Some(0), Some(0)));
    place.done(TaskId(1));
    place.done(TaskId(1));
    place.left(a.object, 2);
    place.left(a.object, 0);
    assert_eq!((place.best(&[a]), place.holder(a.object), place.node_of(TaskId(1))), (0, Some(0), None));
    place.forget(a.object);
    assert_eq!(place.holder(a.object), None);
}
