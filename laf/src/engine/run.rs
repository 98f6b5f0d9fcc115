//! Actions of the task machine, carried out.

use super::EngineOptions;
use super::disk::{Disk, Purpose};
use super::workers::{Ended, Held, Job, Kernel, Workers};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;
use sunzi::advanced::runtime::Ticket;
use sunzi::advanced::runtime::graph::{
    CopySource, GraphAction, Machine, NodeOptions, NodeState, ObjectId, TaskId, TaskSpec,
};
use sunzi::advanced::storage::{Completion, StorageStatistics};
use sunzi::advanced::store::IoBuffer;
use sunzi::{Error, Result};
use tempfile::TempDir;

/// An event: something that has ended.
enum Event {
    Task(Ended),
    Disk { node: usize, completion: Completion },
}

/// Transfers and computing time of a node.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NodeTraffic {
    /// Bytes that came from other nodes.
    pub received_bytes: u64,
    /// Bytes of objects read from its disk, for itself and for others.
    pub read_bytes: u64,
    /// Bytes of objects written to its disk.
    pub written_bytes: u64,
    /// Seconds in which at least one request to its disk was active.
    pub disk_seconds: f64,
    /// Seconds of tasks, summed over the threads.
    pub task_seconds: f64,
    /// Tasks.
    pub tasks: u64,
    /// The largest number of bytes of its objects.
    pub peak_bytes: u64,
}

/// The state of a node at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Time since the engine was made.
    pub seconds: f64,
    /// The number of the node.
    pub node: usize,
    /// Its tasks and memory.
    pub state: NodeState,
    /// Number of tasks assigned to its threads that have not ended; some of them may wait for a thread.
    pub running_tasks: usize,
    /// Requests to its disk, its own and those of other nodes, that have no answer yet: the disk works on at least one
    /// of them.
    pub disk_requests: usize,
}

impl Sample {
    /// Whether the node stands as it did in an earlier sample.
    fn is_like(&self, before: &Sample) -> bool {
        let figures = |one: &Sample| (one.state, one.running_tasks, one.disk_requests);
        figures(self) == figures(before)
    }
}

/// Nodes at work.
pub struct Engine {
    machine: Machine,
    options: EngineOptions,
    kernels: FxHashMap<TaskId, Kernel>,
    /// Words of each object.
    words: FxHashMap<ObjectId, usize>,
    memory: Vec<FxHashMap<ObjectId, Held>>,
    workers: Vec<Workers>,
    /// Tasks at work on each node.
    running: Vec<usize>,
    /// Objects of each node that its disk is writing.
    writing: Vec<FxHashSet<ObjectId>>,
    /// Tasks that update such an object: they begin when it is written, since a copy would take memory that is not
    /// theirs.
    delayed: Vec<(usize, Ticket, TaskId)>,
    disks: Vec<Disk>,
    events: Receiver<Event>,
    traffic: Vec<NodeTraffic>,
    trace: Vec<Sample>,
    /// The newest sample of each node.
    last: Vec<Option<Sample>>,
    start: Instant,
    /// Set after a failed evaluation: objects may be missing from then on.
    failed: Option<String>,
    // Behind the disks: directories go last.
    _folders: Vec<TempDir>,
}

impl Engine {
    /// # Errors
    /// [`Error::InvalidArgument`] for no nodes or threads; [`Error::Threads`]; the errors of directories.
    pub fn new(options: EngineOptions) -> Result<Engine> {
        if options.nodes == 0 || options.threads == 0 {
            let (nodes, threads) = (options.nodes, options.threads);
            return Err(Error::InvalidArgument(format!(
                "{nodes} nodes of {threads} threads are not possible; choose at least 1 of each"
            )));
        }
        let node = NodeOptions { memory_bytes: options.memory_bytes, has_disk: options.folder.is_some() };
        let (sender, events) = channel();
        let (mut disks, mut folders) = (Vec::new(), Vec::new());
        for node in 0..if options.folder.is_some() { options.nodes } else { 0 } {
            let (disk, folder) = open_disk(&options, node, sender.clone())?;
            disks.push(disk);
            folders.push(folder);
        }
        let workers = (0..options.nodes).map(|_| {
            let sender = sender.clone();
            Workers::start(options.threads, move |ended| drop(sender.send(Event::Task(ended))))
        });
        Ok(Engine {
            machine: Machine::new(&vec![node; options.nodes]),
            kernels: FxHashMap::default(),
            words: FxHashMap::default(),
            memory: (0..options.nodes).map(|_| FxHashMap::default()).collect(),
            workers: workers.collect::<Result<_>>()?,
            running: vec![0; options.nodes],
            writing: vec![FxHashSet::default(); options.nodes],
            delayed: Vec::new(),
            last: vec![None; options.nodes],
            disks,
            events,
            traffic: vec![NodeTraffic::default(); options.nodes],
            trace: Vec::new(),
            start: Instant::now(),
            failed: None,
            _folders: folders,
            options,
        })
    }

    /// Declares an object of `words` words, with one handle on it. Nothing is allocated.
    pub fn declare(&mut self, words: usize) -> ObjectId {
        let object = self.machine.declare(IoBuffer::memory_bytes(8 * words as u64));
        self.words.insert(object, words);
        object
    }

    /// Adds a task: see [`Machine::add`].
    pub fn add(&mut self, spec: TaskSpec, kernel: Kernel) -> TaskId {
        let task = self.machine.add(spec);
        self.kernels.insert(task, kernel);
        task
    }

    /// Removes one handle of an object.
    pub fn release(&mut self, object: ObjectId) {
        self.machine.release(object);
        // An error here is reported by the next evaluation.
        if let Err(error) = self.carry_out() {
            self.failed.get_or_insert(error.to_string());
        }
    }

    /// Runs all tasks that are needed for an object, until it exists.
    ///
    /// # Errors
    /// The errors of the tasks; [`Error::MemoryLimit`]; the errors of disks. After an error nothing can be evaluated
    /// any more.
    pub fn evaluate(&mut self, object: ObjectId) -> Result<()> {
        if let Some(reason) = &self.failed {
            return Err(Error::InvalidArgument(format!("an earlier evaluation failed: {reason}")));
        }
        let outcome = self.run_until(object);
        if let Err(error) = &outcome {
            self.failed = Some(error.to_string());
        }
        outcome
    }

    /// Requests an object in addition to the object of the next evaluation, and does not wait for it.
    pub fn want(&mut self, object: ObjectId) {
        self.machine.want(object);
    }

    fn run_until(&mut self, object: ObjectId) -> Result<()> {
        self.machine.want(object);
        loop {
            self.carry_out()?;
            if self.machine.is_made(object) {
                return Ok(());
            }
            if let Some(found) = self.machine.too_small() {
                let limit_bytes = self.options.memory_bytes;
                let minimum_bytes = found.minimum_bytes.max(limit_bytes + 1);
                return Err(Error::MemoryLimit { limit_bytes, minimum_bytes });
            }
            match self.events.recv() {
                Ok(event) => self.take_in(event)?,
                Err(_) => return Err(Error::InvalidArgument("the threads have ended".to_string())),
            }
        }
    }

    fn take_in(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Task(Ended { node, ticket, task, writes, result, seconds }) => {
                self.running[node] -= 1;
                result?;
                self.traffic[node].task_seconds += seconds;
                self.traffic[node].tasks += 1;
                let objects = self.machine.spec(task).writes().collect::<Vec<_>>();
                self.memory[node].extend(objects.into_iter().zip(writes));
                self.machine.done(node, ticket, task);
            }
            Event::Disk { node, completion } => {
                let Some(purpose) = self.disks[node].purpose(completion.tag) else { return Ok(()) };
                completion.result?;
                match purpose {
                    Purpose::Read { to, object } => {
                        let Some(buffer) = completion.buffer else { return Ok(()) };
                        let held = Held { buffer: Arc::new(buffer), words: self.words[&object] };
                        self.memory[to].insert(object, held);
                        self.machine.fetched(to, object);
                    }
                    Purpose::Write { object, version } => {
                        self.disks[node].written(object, version)?;
                        self.machine.written(node, object);
                        self.writing[node].remove(&object);
                        self.begin_delayed()?;
                    }
                    Purpose::Delete => {}
                }
            }
        }
        self.note();
        Ok(())
    }

    /// Begins all actions that the machine requests.
    fn carry_out(&mut self) -> Result<()> {
        while let Some(action) = self.machine.next_action() {
            match action {
                GraphAction::Fetch { node, object, source } => self.fetch(node, object, source)?,
                GraphAction::Write { node, object } => {
                    let held = &self.memory[node][&object];
                    let bytes = 8 * held.words as u64;
                    self.traffic[node].written_bytes += bytes;
                    self.disks[node].write(object, Arc::clone(&held.buffer), bytes)?;
                    self.writing[node].insert(object);
                }
                GraphAction::Drop { node, object } => drop(self.memory[node].remove(&object)),
                GraphAction::Delete { node, object } => self.disks[node].delete(object)?,
                GraphAction::Run { node, ticket, task } if self.must_wait(node, task) => {
                    self.delayed.push((node, ticket, task));
                }
                GraphAction::Run { node, ticket, task } => self.begin(node, ticket, task)?,
            }
        }
        self.note();
        Ok(())
    }

    /// Whether a task updates an object that the disk is writing.
    fn must_wait(&self, node: usize, task: TaskId) -> bool {
        self.machine.spec(task).updates.iter().any(|object| self.writing[node].contains(object))
    }

    /// Gives a task to the threads of its node.
    fn begin(&mut self, node: usize, ticket: Ticket, task: TaskId) -> Result<()> {
        let (reads, writes) = self.operands(node, task)?;
        let kernel = self.kernels.remove(&task).expect("a task has a kernel and runs once");
        self.running[node] += 1;
        self.workers[node].run(Job { node, ticket, task, kernel, reads, writes });
        Ok(())
    }

    /// Begins the delayed tasks that need not wait any more.
    fn begin_delayed(&mut self) -> Result<()> {
        for (node, ticket, task) in std::mem::take(&mut self.delayed) {
            if self.must_wait(node, task) {
                self.delayed.push((node, ticket, task));
            } else {
                self.begin(node, ticket, task)?;
            }
        }
        Ok(())
    }

    /// The objects of a task that is to run: those that it updates are its own meanwhile, as no task reads them yet.
    fn operands(&mut self, node: usize, task: TaskId) -> Result<(Vec<Held>, Vec<Held>)> {
        let spec = self.machine.spec(task);
        let memory = &mut self.memory[node];
        let share = |object| {
            let held: &Held = &memory[object];
            Held { buffer: Arc::clone(&held.buffer), words: held.words }
        };
        let reads = spec.reads.iter().map(share).collect();
        let taken = spec.updates.iter().map(|object| memory.remove(object).expect("an updated object is in memory"));
        let mut writes = taken.collect::<Vec<_>>();
        for object in &spec.creates {
            let words = self.words[object];
            writes.push(Held { buffer: Arc::new(IoBuffer::new(8 * words)?), words });
        }
        Ok((reads, writes))
    }

    fn fetch(&mut self, node: usize, object: ObjectId, source: CopySource) -> Result<()> {
        let words = self.words[&object];
        let bytes = 8 * words as u64;
        let mut buffer = IoBuffer::new(8 * words)?;
        let from = match source {
            CopySource::Memory(from) | CopySource::Disk(from) => from,
        };
        if from != node {
            self.traffic[node].received_bytes += bytes;
        }
        match source {
            CopySource::Memory(from) => {
                let held = &self.memory[from][&object];
                buffer.words_mut()[..words].copy_from_slice(&held.buffer.words()[..words]);
                self.memory[node].insert(object, Held { buffer: Arc::new(buffer), words });
                self.machine.fetched(node, object);
                Ok(())
            }
            CopySource::Disk(from) => {
                self.traffic[from].read_bytes += bytes;
                self.disks[from].read(object, node, buffer)
            }
        }
    }

    /// Takes down how the nodes stand.
    fn note(&mut self) {
        for node in 0..self.options.nodes {
            let state = self.machine.node_state(node);
            let peak = &mut self.traffic[node].peak_bytes;
            *peak = state.used_bytes.max(*peak);
            if self.options.trace {
                let (seconds, running_tasks) = (self.start.elapsed().as_secs_f64(), self.running[node]);
                let disk_requests = self.disks.get(node).map_or(0, Disk::requests);
                let sample = Sample { seconds, node, state, running_tasks, disk_requests };
                if self.last[node].is_none_or(|before| !sample.is_like(&before)) {
                    self.last[node] = Some(sample);
                    self.trace.push(sample);
                }
            }
        }
    }

    /// The transfers and computing time of each node until now.
    pub fn traffic(&self) -> Vec<NodeTraffic> {
        let mut traffic = self.traffic.clone();
        for (one, disk) in traffic.iter_mut().zip(&self.disks) {
            one.disk_seconds = disk.statistics().busy_seconds;
        }
        traffic
    }

    /// The transfers of the directory of each node, including headers and padding.
    pub fn storage_statistics(&self) -> Vec<StorageStatistics> {
        self.disks.iter().map(Disk::statistics).collect()
    }

    /// The recorded states of the nodes, if they are recorded.
    pub fn trace(&self) -> &[Sample] {
        &self.trace
    }
}

impl Drop for Engine {
    /// Waits for the tasks that run.
    fn drop(&mut self) {
        while self.running.iter().any(|&count| count > 0) {
            match self.events.recv() {
                Ok(Event::Task(ended)) => self.running[ended.node] -= 1,
                Ok(Event::Disk { .. }) => {}
                Err(_) => return,
            }
        }
    }
}

fn open_disk(options: &EngineOptions, node: usize, sender: Sender<Event>) -> Result<(Disk, TempDir)> {
    let folder = options.folder.clone().unwrap_or_default();
    let made = tempfile::Builder::new().prefix(&format!("node-{node}-")).tempdir_in(&folder);
    let made = made.map_err(|source| Error::Io { path: folder, action: "create a directory there", source })?;
    let deliver = move |completion| drop(sender.send(Event::Disk { node, completion }));
    Ok((Disk::open(&made.path().join("objects"), deliver)?, made))
}
