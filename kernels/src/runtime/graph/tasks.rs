//! The tasks and objects: which tasks wait for which, which are wanted, which have become useless.

use super::{ObjectId, SizedObject, TaskId};
use rustc_hash::FxHashMap;

/// The objects that a task reads, updates and creates; each is named once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskSpec {
    /// Read, not changed.
    pub reads: Vec<ObjectId>,
    /// Read and changed; no task has read them before.
    pub updates: Vec<ObjectId>,
    /// Created: no task has written them before.
    pub creates: Vec<ObjectId>,
    /// The node of the task, if the caller chooses it rather than the scheduler.
    pub node: Option<usize>,
}

impl TaskSpec {
    /// All objects that must exist before.
    pub fn inputs(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.reads.iter().chain(&self.updates).copied()
    }

    /// All objects that the task writes.
    pub fn writes(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.updates.iter().chain(&self.creates).copied()
    }

    /// All objects of the task.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.inputs().chain(self.creates.iter().copied())
    }
}

#[derive(Clone, Debug)]
struct Object {
    bytes: u64,
    /// Handles on it.
    handles: usize,
    /// Tasks that name it and are not done.
    uses: usize,
    /// The last task that was added of the tasks that write it, until it is done.
    writer: Option<TaskId>,
    /// Whether a task that reads it was added.
    is_read: bool,
    /// Whether a task that writes it has been started, or it existed from the beginning.
    is_written: bool,
}

#[derive(Clone, Debug)]
struct GraphTask {
    spec: TaskSpec,
    /// Tasks that must be done before.
    before: Vec<TaskId>,
    /// Tasks that wait for this one.
    after: Vec<TaskId>,
    is_wanted: bool,
}

/// The effects of a call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Tasks that are newly needed, each after the tasks that it waits for.
    pub wanted: Vec<TaskId>,
    /// Tasks that wait for one task less.
    pub released: Vec<TaskId>,
    /// Objects that are no longer used.
    pub freed: Vec<ObjectId>,
}

/// Tasks that are not done, and objects in use.
#[derive(Clone, Debug, Default)]
pub struct TaskGraph {
    objects: FxHashMap<ObjectId, Object>,
    tasks: FxHashMap<TaskId, GraphTask>,
    next_object: u64,
    next_task: u64,
}

impl TaskGraph {
    /// An empty graph.
    pub fn new() -> TaskGraph {
        TaskGraph::default()
    }

    /// Declares an object that tasks will make, with one handle on it. Nothing is allocated.
    pub fn declare(&mut self, bytes: u64) -> ObjectId {
        self.object(bytes, false)
    }

    /// Declares an object that exists already, with one handle on it.
    pub fn declare_present(&mut self, bytes: u64) -> ObjectId {
        self.object(bytes, true)
    }

    fn object(&mut self, bytes: u64, is_written: bool) -> ObjectId {
        let id = ObjectId(self.next_object);
        self.next_object += 1;
        let object = Object { bytes, handles: 1, uses: 0, writer: None, is_read: false, is_written };
        self.objects.insert(id, object);
        id
    }

    /// Adds a task after all tasks that were added before.
    ///
    /// Its objects must be declared and named once; objects that it creates have no writer yet, objects that it reads
    /// or updates have one, objects that it updates have no reader, and it writes at least one object (asserted).
    pub fn add(&mut self, spec: TaskSpec) -> TaskId {
        assert!(spec.writes().next().is_some(), "a task that writes nothing could never be wanted");
        let task = TaskId(self.next_task);
        self.next_task += 1;
        let mut before = Vec::new();
        for object in spec.inputs() {
            let known = self.known(object);
            assert!(known.is_written, "{object:?} is used before anybody writes it");
            before.extend(known.writer);
        }
        for &object in &spec.reads {
            self.known(object).is_read = true;
        }
        for object in spec.writes() {
            let known = self.known(object);
            assert!(!known.is_read, "{object:?} has been read, and does not change any more");
            (known.writer, known.is_written) = (Some(task), true);
        }
        for object in spec.objects() {
            self.known(object).uses += 1;
        }
        before.sort_unstable();
        before.dedup();
        for earlier in &before {
            self.tasks.get_mut(earlier).expect("a writer is not done").after.push(task);
        }
        self.tasks.insert(task, GraphTask { spec, before, after: Vec::new(), is_wanted: false });
        task
    }

    fn known(&mut self, object: ObjectId) -> &mut Object {
        self.objects.get_mut(&object).unwrap_or_else(|| panic!("{object:?} is declared and of use"))
    }

    /// Requests an object: all tasks that are needed to make it are wanted from now on.
    pub fn want(&mut self, object: ObjectId) -> Changes {
        let mut changes = Changes::default();
        let mut open = self.known(object).writer.into_iter().map(|task| (task, false)).collect::<Vec<_>>();
        while let Some((task, is_closed)) = open.pop() {
            if is_closed {
                changes.wanted.push(task);
                continue;
            }
            let known = self.tasks.get_mut(&task).expect("a writer is not done");
            if !std::mem::replace(&mut known.is_wanted, true) {
                open.push((task, true));
                open.extend(known.before.iter().rev().map(|&earlier| (earlier, false)));
            }
        }
        changes
    }

    /// Records that a task is done.
    pub fn done(&mut self, task: TaskId) -> Changes {
        let known = self.tasks.remove(&task).expect("the task is not done");
        assert!(known.is_wanted && known.before.is_empty(), "{task:?} could not run");
        let mut changes = Changes { released: known.after, ..Changes::default() };
        for &later in &changes.released {
            let waiting = self.tasks.get_mut(&later).expect("a later task is not done");
            waiting.before.retain(|&earlier| earlier != task);
        }
        self.unuse(task, &known.spec, &mut changes.freed);
        changes
    }

    /// One more handle on an object.
    pub fn hold(&mut self, object: ObjectId) {
        self.known(object).handles += 1;
    }

    /// Removes one handle: an object without handles and uses is freed, and unneeded tasks that write no other used
    /// object are removed.
    pub fn release(&mut self, object: ObjectId) -> Changes {
        let mut changes = Changes::default();
        let known = self.known(object);
        known.handles -= 1;
        let mut open = vec![object];
        while let Some(object) = open.pop() {
            let Some(known) = self.objects.get(&object).filter(|known| known.handles == 0) else { continue };
            if known.uses == 0 {
                self.free(object, &mut changes.freed);
                continue;
            }
            let Some(task) = known.writer.filter(|&task| self.is_useless(task)) else { continue };
            let spec = self.discard(task, &mut changes.freed);
            open.extend(spec.objects());
        }
        changes
    }

    /// Whether the task is not wanted, and nothing that it writes is of use.
    fn is_useless(&self, task: TaskId) -> bool {
        let known = &self.tasks[&task];
        let useless = |object: ObjectId| {
            self.objects.get(&object).is_none_or(|known| known.handles == 0 && known.writer == Some(task))
        };
        !known.is_wanted && known.after.is_empty() && known.spec.writes().all(useless)
    }

    /// Takes a useless task away.
    fn discard(&mut self, task: TaskId, freed: &mut Vec<ObjectId>) -> TaskSpec {
        let known = self.tasks.remove(&task).expect("the task is not done");
        for earlier in &known.before {
            let earlier = self.tasks.get_mut(earlier).expect("an earlier task is not done");
            earlier.after.retain(|&later| later != task);
        }
        for &object in &known.spec.updates {
            // The last of the tasks that wrote it before is the writer again, unless it is done.
            let writes = |earlier: &&TaskId| self.tasks[*earlier].spec.writes().any(|written| written == object);
            let earlier = known.before.iter().rev().find(writes).copied();
            self.known(object).writer = earlier;
        }
        self.unuse(task, &known.spec, freed);
        known.spec
    }

    /// Ends the uses of a task.
    fn unuse(&mut self, task: TaskId, spec: &TaskSpec, freed: &mut Vec<ObjectId>) {
        for object in spec.objects() {
            let known = self.known(object);
            known.uses -= 1;
            if known.writer == Some(task) {
                known.writer = None;
            }
            if known.uses == 0 && known.handles == 0 {
                self.free(object, freed);
            }
        }
    }

    fn free(&mut self, object: ObjectId, freed: &mut Vec<ObjectId>) {
        self.objects.remove(&object);
        freed.push(object);
    }

    /// The objects and the node of a task that is not done.
    pub fn spec(&self, task: TaskId) -> &TaskSpec {
        &self.tasks[&task].spec
    }

    /// Tasks that must be done before this one.
    pub fn before(&self, task: TaskId) -> &[TaskId] {
        &self.tasks[&task].before
    }

    /// Tasks that wait for this one.
    pub fn after(&self, task: TaskId) -> &[TaskId] {
        &self.tasks[&task].after
    }

    /// Whether a task is needed and not done.
    pub fn is_wanted(&self, task: TaskId) -> bool {
        self.tasks.get(&task).is_some_and(|task| task.is_wanted)
    }

    /// A used object and its size.
    pub fn sized(&self, object: ObjectId) -> SizedObject {
        SizedObject { object, bytes: self.bytes(object) }
    }

    /// Size of a used object.
    pub fn bytes(&self, object: ObjectId) -> u64 {
        self.objects[&object].bytes
    }

    /// Whether an object is in use.
    pub fn has(&self, object: ObjectId) -> bool {
        self.objects.contains_key(&object)
    }

    /// Whether an object exists: all tasks that write it are done.
    pub fn is_made(&self, object: ObjectId) -> bool {
        self.objects.get(&object).is_some_and(|known| known.is_written && known.writer.is_none())
    }

    /// Tasks that are not done.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether all tasks are done.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}
