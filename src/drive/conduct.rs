//! Runs a tiled factorisation on devices: one thread for each, which does what its conductor says.
//!
//! All threads share one task queue. A task counts as done when its work is submitted: later work on the same device
//! waits for its events, and who reads a tile of another device locks its home, which waits for the copy to it.
//! Knows: threads, locks, steps. Does not know: numbers, what a task computes.
#![forbid(unsafe_code)]

use super::Stop;
use super::device::{Home, Lane};
use crate::device::{Device, Event, Region, Stream};
use crate::error::{Error, Result};
use crate::runtime::{Access, CholeskyGraph, Conductor, Step, Task, TaskQueue};
use crate::tile::TileId;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What the tasks of a factorisation are.
pub trait TileTasks: Sync {
    /// Host memory of this device that holds a tile, or is to hold it.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    fn home(&self, device: usize, tile: TileId) -> Result<Home>;

    /// Submits TRSM, SYRK or GEMM; the regions hold the inputs of the task in the graph's order, then its output.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    fn submit(&self, device: &dyn Device, stream: Stream, task: Task, regions: &[Region]) -> Result<()>;

    /// Factors tile `(k, k)` at its home.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], [`Error::DeviceLost`].
    fn factor(&self, k: usize) -> Result<()>;

    /// Takes in that a task is done or submitted.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    fn advanced(&self, task: Task) -> Result<()>;
}

/// One device with what it decides by.
pub struct Player<B> {
    /// The device.
    pub lane: Lane<TileId>,
    /// Its decisions.
    pub conductor: Conductor<B>,
    /// Tasks that may be submitted and not done.
    pub in_flight: usize,
    /// Tasks run on the device.
    pub task_count: u64,
    /// Seconds of the device's clock, once finished.
    pub seconds: f64,
    under_way: VecDeque<Event>,
}

impl<B> Player<B> {
    /// A player that has done nothing.
    pub fn new(lane: Lane<TileId>, conductor: Conductor<B>, in_flight: usize) -> Player<B> {
        Player { lane, conductor, in_flight, task_count: 0, seconds: 0.0, under_way: VecDeque::new() }
    }

    /// Waits until no more pieces of work are under way than may be.
    fn throttle(&mut self) -> Result<()> {
        while self.under_way.len() > self.in_flight {
            let oldest = self.under_way.pop_front().expect("there is one");
            self.lane.device().synchronize(&oldest)?;
        }
        Ok(())
    }
}

struct Stage<'a, W> {
    queue: Mutex<TaskQueue>,
    changed: Condvar,
    stop: Stop,
    tasks: &'a W,
    graph: CholeskyGraph,
}

impl<W> Stage<'_, W> {
    fn queue(&self) -> MutexGuard<'_, TaskQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all players; whoever is about to wait does so first, and is woken.
    fn end(&self, error: Error) {
        self.stop.set(error);
        drop(self.queue());
        self.changed.notify_all();
    }
}

/// Ends the others where one player panics: they would wait for it for ever.
struct Alarm<'a, 's, W>(&'a Stage<'s, W>);

impl<W> Drop for Alarm<'_, '_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(Error::Cancelled);
        }
    }
}

/// Runs all tasks of `queue`, one player for each of its devices.
///
/// # Errors
/// The first error of any player; what is on the devices then is of no use.
pub fn conduct<B, W>(players: &mut [Player<B>], queue: TaskQueue, tasks: &W) -> Result<()>
where
    B: Fn(TileId) -> u64 + Send,
    W: TileTasks,
{
    let graph = queue.graph();
    let stage = Stage { queue: Mutex::new(queue), changed: Condvar::new(), stop: Stop::default(), tasks, graph };
    let play = |index: usize, player: &mut Player<B>| {
        let alarm = Alarm(&stage);
        if let Err(error) = player.play(index, &stage) {
            stage.end(error);
        }
        drop(alarm);
    };
    match players {
        [only] => play(0, only),
        several => std::thread::scope(|scope| {
            for (index, player) in several.iter_mut().enumerate() {
                let play = &play;
                scope.spawn(move || play(index, player));
            }
        }),
    }
    stage.stop.into_result()
}

impl<B: Fn(TileId) -> u64> Player<B> {
    fn play<W: TileTasks>(&mut self, index: usize, stage: &Stage<'_, W>) -> Result<()> {
        let home = |tile| stage.tasks.home(index, tile);
        while !stage.stop.is_set() {
            match self.next(stage) {
                Step::Run { task, before, after } => {
                    self.lane.carry_out(&before, home)?;
                    let mut tiles =
                        stage.graph.inputs(task).into_iter().map(|tile| (tile, Access::Read)).collect::<Vec<_>>();
                    tiles.push((stage.graph.output(task), Access::Update));
                    let submit = |device: &dyn Device, stream, regions: &[Region]| {
                        stage.tasks.submit(device, stream, task, regions)
                    };
                    self.under_way.push_back(self.lane.work(&tiles, submit)?);
                    self.lane.carry_out(&after, home)?;
                    self.task_count += 1;
                    self.done(task, stage)?;
                    self.throttle()?;
                }
                Step::Fetch(moves) => self.lane.carry_out(&moves, home)?,
                Step::Factor { k } => {
                    stage.tasks.factor(k)?;
                    self.done(Task::Potrf { k }, stage)?;
                }
                Step::Wait => {}
                Step::Finished => {
                    self.seconds = self.lane.finish()?;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The next step that is not to wait, unless the others have stopped.
    fn next<W>(&mut self, stage: &Stage<'_, W>) -> Step {
        let mut queue = stage.queue();
        loop {
            match self.conductor.poll(&mut queue) {
                Step::Wait if !stage.stop.is_set() => {
                    queue = stage.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                step => return step,
            }
        }
    }

    fn done<W: TileTasks>(&mut self, task: Task, stage: &Stage<'_, W>) -> Result<()> {
        self.conductor.done(&mut stage.queue(), task);
        stage.changed.notify_all();
        stage.tasks.advanced(task)
    }
}
