//! The choice of the node that runs a task: the node that has, or will have, most bytes of its inputs.
//!
//! Independent of: what a task waits for.

use super::{ObjectId, SizedObject, TaskId};
use rustc_hash::FxHashMap;

/// The places of objects, now or after the tasks that make them, and the work of each node.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Bytes of the objects of each node's tasks that are not done.
    load_bytes: Vec<u64>,
    tasks: FxHashMap<TaskId, (usize, u64)>,
    /// The node that holds the object, followed by the nodes that have copies.
    nodes: FxHashMap<ObjectId, Vec<usize>>,
}

impl Placement {
    /// `nodes` nodes, at least one (asserted), without objects.
    pub fn new(nodes: usize) -> Placement {
        assert!(nodes > 0, "there is a node");
        Placement { load_bytes: vec![0; nodes], tasks: FxHashMap::default(), nodes: FxHashMap::default() }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.load_bytes.len()
    }

    /// The node with most bytes of these objects; of several the node with the least work, then the lowest.
    pub fn best(&self, inputs: &[SizedObject]) -> usize {
        let mut here = vec![0u64; self.nodes()];
        for SizedObject { object, bytes } in inputs {
            self.nodes.get(object).into_iter().flatten().for_each(|&node| here[node] += bytes);
        }
        let rank = |&node: &usize| (std::cmp::Reverse(here[node]), self.load_bytes[node], node);
        (0..self.nodes()).min_by_key(rank).expect("there is a node")
    }

    /// Assigns a task to a node, which from then on is the only one that holds the written objects.
    pub fn assign(&mut self, task: TaskId, node: usize, load_bytes: u64, writes: &[ObjectId]) {
        self.load_bytes[node] += load_bytes;
        self.tasks.insert(task, (node, load_bytes));
        writes.iter().for_each(|&object| drop(self.nodes.insert(object, vec![node])));
    }

    /// The node of a task that was assigned and is not done.
    pub fn node_of(&self, task: TaskId) -> Option<usize> {
        self.tasks.get(&task).map(|&(node, _)| node)
    }

    /// Records that a task is done.
    pub fn done(&mut self, task: TaskId) {
        if let Some((node, bytes)) = self.tasks.remove(&task) {
            self.load_bytes[node] -= bytes;
        }
    }

    /// Records that an object lies on a node from the beginning, or was copied there.
    pub fn came(&mut self, object: ObjectId, node: usize) {
        let nodes = self.nodes.entry(object).or_default();
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }

    /// Records that a copy was removed; the node that holds the object keeps it.
    pub fn left(&mut self, object: ObjectId, node: usize) {
        if let Some(nodes) = self.nodes.get_mut(&object)
            && nodes.first() != Some(&node)
        {
            nodes.retain(|&known| known != node);
        }
    }

    /// The node that holds an object: a hint for nodes that need a copy.
    pub fn holder(&self, object: ObjectId) -> Option<usize> {
        self.nodes.get(&object)?.first().copied()
    }

    /// Records that an object is no longer used.
    pub fn forget(&mut self, object: ObjectId) {
        self.nodes.remove(&object);
    }
}
