//! Several nodes that work on one graph: events in, actions out.
//!
//! Each node has a memory of its own ([`LocalScheduler`]) and plans its tasks in the order of Algorithm 1: those whose
//! inputs exist, or will because a task that is planned there makes them. A task goes to a node once all that it waits
//! for is done or placed on that node. An object that a node lacks comes from the memory or the disk of the node that
//! holds it. Promise: as [`LocalScheduler`]; every wanted task runs once; an object that no task and no handle needs is
//! deleted at once. With a disk, a limit that suffices for each single task is enough. Independent of: what tasks
//! compute, how bytes move.

use super::{Changes, ObjectId, Placement, TaskGraph, TaskId, TaskOrder, TaskSpec};
use crate::runtime::{Access, Eviction, Limits, LocalScheduler, Move, NO_SPARE, Planned, Ticket, TileUse};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeSet, VecDeque};

/// The source of the bytes of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopySource {
    /// The memory of another node.
    Memory(usize),
    /// The disk of this node or of another one.
    Disk(usize),
}

/// An action, to be carried out in this order; actions with an event end later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphAction {
    /// Reserve memory for an object and copy it; ends with [`Machine::fetched`].
    Fetch {
        /// The node of the destination.
        node: usize,
        /// The object.
        object: ObjectId,
        /// The source of the object. An object in a memory is copied at once.
        source: CopySource,
    },
    /// Write an object to the node's disk; ends with [`Machine::written`].
    Write {
        /// The node with this memory and disk.
        node: usize,
        /// The object.
        object: ObjectId,
    },
    /// Release the memory of an object.
    Drop {
        /// The node with this memory.
        node: usize,
        /// The object.
        object: ObjectId,
    },
    /// Delete the copy of an object on a disk, if there is one.
    Delete {
        /// The node with this disk.
        node: usize,
        /// The object.
        object: ObjectId,
    },
    /// Run a task; ends with [`Machine::done`].
    Run {
        /// The node that runs the task.
        node: usize,
        /// The ticket by which the end is reported.
        ticket: Ticket,
        /// The task.
        task: TaskId,
    },
}

/// The options of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeOptions {
    /// Bytes of all objects in its memory.
    pub memory_bytes: u64,
    /// Whether it has a disk for objects that do not fit.
    pub has_disk: bool,
}

/// The reason why no task can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooSmall {
    /// The node whose memory is too small.
    pub node: usize,
    /// Bytes with which the next task could run.
    pub minimum_bytes: u64,
}

/// One node.
struct Node {
    order: TaskOrder,
    memory: LocalScheduler<ObjectId, TaskId>,
    options: NodeOptions,
    /// Objects that have to stay in memory, as there is no disk.
    kept: FxHashSet<ObjectId>,
    /// Objects that were changed elsewhere or became useless, and that leave memory when their write has ended.
    stale: FxHashSet<ObjectId>,
    /// Tasks whose objects are here, and that wait for other tasks planned here.
    blocked: FxHashMap<TaskId, Ticket>,
}

/// Nodes that work on one graph.
pub struct Machine {
    graph: TaskGraph,
    place: Placement,
    nodes: Vec<Node>,
    /// The node that holds the last version of an object, in memory or on its disk.
    home: FxHashMap<ObjectId, usize>,
    /// For a task that is assigned and not planned, the tasks that it waits for which are not planned.
    unplanned: FxHashMap<TaskId, usize>,
    planned: FxHashSet<TaskId>,
    actions: VecDeque<GraphAction>,
    too_small: Option<TooSmall>,
}

impl Machine {
    /// Nodes without tasks; at least one (asserted).
    pub fn new(nodes: &[NodeOptions]) -> Machine {
        let node = |&options: &NodeOptions| Node {
            order: TaskOrder::default(),
            memory: LocalScheduler::new(Limits { bytes: options.memory_bytes, tiles: usize::MAX }, Eviction::Lru),
            options,
            kept: FxHashSet::default(),
            stale: FxHashSet::default(),
            blocked: FxHashMap::default(),
        };
        Machine {
            graph: TaskGraph::new(),
            place: Placement::new(nodes.len()),
            nodes: nodes.iter().map(node).collect(),
            home: FxHashMap::default(),
            unplanned: FxHashMap::default(),
            planned: FxHashSet::default(),
            actions: VecDeque::new(),
            too_small: None,
        }
    }

    /// Declares an object that tasks will make, with one handle on it.
    pub fn declare(&mut self, bytes: u64) -> ObjectId {
        self.graph.declare(bytes)
    }

    /// Declares an object that lies on the disk of a node, with one handle on it.
    pub fn declare_on_disk(&mut self, bytes: u64, node: usize) -> ObjectId {
        let object = self.graph.declare_present(bytes);
        self.home.insert(object, node);
        self.place.came(object, node);
        object
    }

    /// Adds a task: see [`TaskGraph::add`].
    pub fn add(&mut self, spec: TaskSpec) -> TaskId {
        self.graph.add(spec)
    }

    /// Adds one handle to an object.
    pub fn hold(&mut self, object: ObjectId) {
        self.graph.hold(object);
    }

    /// Removes one handle of an object.
    pub fn release(&mut self, object: ObjectId) {
        let changes = self.graph.release(object);
        self.take_in(changes);
    }

    /// Requests an object: all tasks that are needed to make it will run.
    pub fn want(&mut self, object: ObjectId) {
        let changes = self.graph.want(object);
        self.take_in(changes);
    }

    /// Records that a fetch has ended.
    pub fn fetched(&mut self, node: usize, object: ObjectId) {
        self.nodes[node].memory.fetched(object);
        self.place.came(object, node);
        self.go_on(node);
    }

    /// Records that a write has ended.
    pub fn written(&mut self, node: usize, object: ObjectId) {
        self.nodes[node].memory.written(object);
        self.nodes[node].stale.remove(&object);
        if self.home.get(&object) != Some(&node) {
            // It became useless, or was changed elsewhere, while it was written.
            self.actions.push_back(GraphAction::Delete { node, object });
        }
        self.go_on(node);
    }

    /// Records that a task is done.
    pub fn done(&mut self, node: usize, ticket: Ticket, task: TaskId) {
        let writes = self.graph.spec(task).writes().collect::<Vec<_>>();
        for object in writes {
            let before = self.home.insert(object, node);
            if let Some(before) = before.filter(|&before| before != node) {
                self.forget(before, object);
                self.go_on(before);
            }
        }
        self.nodes[node].memory.done(ticket);
        self.place.done(task);
        self.planned.remove(&task);
        let changes = self.graph.done(task);
        self.take_in(changes);
        self.go_on(node);
    }

    /// The next action.
    pub fn next_action(&mut self) -> Option<GraphAction> {
        self.actions.pop_front()
    }

    /// Whether a task is planned, running or waiting for its inputs; if none is although tasks are required,
    /// [`Machine::too_small`] returns the reason.
    pub fn is_busy(&self) -> bool {
        !self.planned.is_empty()
            || !self.actions.is_empty()
            || self.nodes.iter().any(|node| node.memory.in_flight() > node.kept.len())
    }

    /// The memory that is too small for a task, or for the objects that have to stay in it.
    pub fn too_small(&self) -> Option<TooSmall> {
        self.too_small.or_else(|| {
            let stuck = |node: &usize| !self.nodes[*node].order.is_empty();
            let node = (0..self.nodes.len()).find(stuck).filter(|_| !self.is_busy())?;
            let (task, _) = self.nodes[node].order.first()?;
            let memory = &self.nodes[node].memory;
            let missing = |object: &ObjectId| !memory.has(*object);
            let bytes =
                self.graph.spec(task).objects().filter(missing).map(|object| self.graph.bytes(object)).sum::<u64>();
            Some(TooSmall { node, minimum_bytes: memory.used_bytes() + bytes })
        })
    }

    /// Tasks that are added and not done.
    pub fn tasks(&self) -> usize {
        self.graph.len()
    }

    /// Tasks that wait in a node's order, are planned there, and the bytes of its memory that are in use.
    pub fn node_state(&self, node: usize) -> NodeState {
        let Node { order, memory, .. } = &self.nodes[node];
        NodeState { waiting_tasks: order.len(), planned_tasks: memory.planned(), used_bytes: memory.used_bytes() }
    }

    /// Whether an object exists: all tasks that write it are done.
    pub fn is_made(&self, object: ObjectId) -> bool {
        self.graph.is_made(object)
    }

    /// Size of an object.
    pub fn bytes(&self, object: ObjectId) -> u64 {
        self.graph.bytes(object)
    }

    /// The objects and the node of a task that is not done.
    pub fn spec(&self, task: TaskId) -> &TaskSpec {
        self.graph.spec(task)
    }

    fn take_in(&mut self, changes: Changes) {
        let mut touched = BTreeSet::new();
        for object in changes.freed {
            self.home.remove(&object);
            for node in 0..self.nodes.len() {
                if self.forget(node, object) {
                    touched.insert(node);
                }
            }
            self.place.forget(object);
        }
        let mut open = changes.wanted;
        for task in changes.released {
            if let Some(node) = self.place.node_of(task) {
                if self.graph.before(task).is_empty()
                    && let Some(ticket) = self.nodes[node].blocked.remove(&task)
                {
                    self.actions.push_back(GraphAction::Run { node, ticket, task });
                }
            } else if self.graph.is_wanted(task) {
                open.push(task);
            }
        }
        open.reverse();
        while let Some(task) = open.pop() {
            let Some(node) = self.try_place(task) else { continue };
            touched.insert(node);
            let later = self.graph.after(task).iter().rev();
            open.extend(later.filter(|&&later| self.graph.is_wanted(later) && self.place.node_of(later).is_none()));
        }
        touched.into_iter().for_each(|node| self.go_on(node));
    }

    /// Removes an object from a node's memory and disk; `true` where it was in memory.
    fn forget(&mut self, node: usize, object: ObjectId) -> bool {
        let Node { memory, kept, stale, order, .. } = &mut self.nodes[node];
        let was_here = memory.has(object);
        if was_here {
            memory.forget(object);
            if kept.remove(&object) {
                memory.written(object);
            }
            if memory.has(object) {
                stale.insert(object);
            }
        }
        order.left(object);
        self.place.left(object, node);
        self.moves(node);
        if self.nodes[node].options.has_disk {
            self.actions.push_back(GraphAction::Delete { node, object });
        }
        was_here
    }

    /// Gives a task to a node, if all objects that it waits for exist.
    fn try_place(&mut self, task: TaskId) -> Option<usize> {
        if self.place.node_of(task).is_some() {
            return None;
        }
        let spec = self.graph.spec(task);
        let inputs = spec.inputs().map(|object| self.graph.sized(object)).collect::<Vec<_>>();
        let node = match spec.node {
            Some(node) => node % self.nodes.len(),
            None => self.place.best(&inputs),
        };
        let before = self.graph.before(task);
        if before.iter().any(|&earlier| self.place.node_of(earlier) != Some(node)) {
            return None;
        }
        let load_bytes = spec.objects().map(|object| self.graph.bytes(object)).sum();
        let writes = spec.writes().collect::<Vec<_>>();
        let unplanned = before.iter().filter(|earlier| !self.planned.contains(earlier)).count();
        self.place.assign(task, node, load_bytes, &writes);
        self.unplanned.insert(task, unplanned);
        if unplanned == 0 {
            self.nodes[node].order.add(task, inputs);
        }
        Some(node)
    }

    /// Plans what a node can plan, and hands out the actions that follow.
    fn go_on(&mut self, node: usize) {
        while let Some((task, _)) = self.nodes[node].order.first() {
            let uses = self.uses(task);
            if uses.iter().any(|one| self.nodes[node].stale.contains(&one.tile)) {
                break;
            }
            match self.nodes[node].memory.plan(task, &uses, NO_SPARE).0 {
                Planned::Yes => self.has_planned(node, task),
                Planned::Later => break,
                Planned::TooLarge { bytes, .. } => {
                    self.too_small.get_or_insert(TooSmall { node, minimum_bytes: bytes });
                    break;
                }
            }
        }
        self.moves(node);
        while let Some((ticket, task)) = self.nodes[node].memory.next_job() {
            if self.graph.before(task).is_empty() {
                self.actions.push_back(GraphAction::Run { node, ticket, task });
            } else {
                self.nodes[node].blocked.insert(task, ticket);
            }
        }
    }

    fn uses(&self, task: TaskId) -> Vec<TileUse<ObjectId>> {
        let spec = self.graph.spec(task);
        let uses = |list: &[ObjectId], access| {
            let one = |&tile: &ObjectId| TileUse { tile, bytes: self.graph.bytes(tile), access };
            list.iter().map(one).collect::<Vec<_>>()
        };
        let mut all = uses(&spec.reads, Access::Read);
        all.extend(uses(&spec.updates, Access::Update));
        all.extend(uses(&spec.creates, Access::Create));
        all
    }

    /// Records that a task was planned.
    fn has_planned(&mut self, node: usize, task: TaskId) {
        self.nodes[node].order.remove(task);
        self.unplanned.remove(&task);
        self.planned.insert(task);
        for object in self.graph.spec(task).objects() {
            self.nodes[node].order.came(object);
        }
        for &later in self.graph.after(task) {
            let Some(unplanned) = self.unplanned.get_mut(&later) else { continue };
            *unplanned -= 1;
            if *unplanned == 0 {
                let inputs = self.graph.spec(later).inputs().map(|object| self.graph.sized(object));
                self.nodes[node].order.add(later, inputs);
            }
        }
    }

    /// Hands out the moves that a memory requests.
    fn moves(&mut self, node: usize) {
        while let Some(step) = self.nodes[node].memory.next_move() {
            match step {
                Move::Fetch(object) => {
                    let source = self.source(node, object);
                    self.actions.push_back(GraphAction::Fetch { node, object, source });
                }
                Move::WriteBack(object) if self.nodes[node].options.has_disk => {
                    self.actions.push_back(GraphAction::Write { node, object });
                }
                Move::WriteBack(object) => drop(self.nodes[node].kept.insert(object)),
                Move::Drop(object) => {
                    self.nodes[node].order.left(object);
                    self.place.left(object, node);
                    self.actions.push_back(GraphAction::Drop { node, object });
                }
            }
        }
    }

    fn source(&self, node: usize, object: ObjectId) -> CopySource {
        let home = *self.home.get(&object).expect("an object that is fetched was made");
        let is_there = home != node && self.nodes[home].memory.is_here(object);
        if is_there { CopySource::Memory(home) } else { CopySource::Disk(home) }
    }
}

/// The state of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeState {
    /// Tasks that can be planned and are not.
    pub waiting_tasks: usize,
    /// Tasks that are planned, ready or at work.
    pub planned_tasks: usize,
    /// Bytes of the objects in memory.
    pub used_bytes: u64,
}
