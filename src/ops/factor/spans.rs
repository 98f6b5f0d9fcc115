//! The work of the workers of a factorisation: the kinds of tasks, their times, their spans.

use crate::tile::TileId;
use serde::Serialize;
use std::time::Instant;

/// The kinds of tasks in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Conversion of entries of the matrix to residues.
    Load,
    /// The update `C := C - X X^T`, for a tile on the diagonal.
    Syrk,
    /// The update `C := C - X Y^T`, for a strip of tiles.
    Gemm,
    /// The factorisation of a diagonal tile.
    Potrf,
    /// The triangular solve for a tile below the diagonal.
    Trsm,
    /// Conversion of integers to entries of the factor.
    Store,
}

/// One task and its time span.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct Span {
    /// The worker that ran it.
    pub worker: usize,
    /// The kind of task.
    pub kind: TaskKind,
    /// Tile row; loads and updates process a strip of a tile column at once, and have the row of the first tile of the
    /// strip.
    pub row: usize,
    /// Tile column.
    pub col: usize,
    /// Seconds from the start of the call.
    pub start: f64,
    /// Seconds from the start of the call.
    pub end: f64,
}

/// Seconds of all workers, by kind of task.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TaskTimes {
    /// Conversion of entries of the matrix to residues.
    pub load: f64,
    /// Updates of tiles: all cubic work except within tile columns.
    pub update: f64,
    /// Factorisations of diagonal tiles.
    pub potrf: f64,
    /// Triangular solves for tiles below the diagonal.
    pub trsm: f64,
    /// Rounding and storing the factor (wall-clock).
    pub store: f64,
}

impl TaskTimes {
    fn of(&mut self, kind: TaskKind) -> &mut f64 {
        match kind {
            TaskKind::Load => &mut self.load,
            TaskKind::Syrk | TaskKind::Gemm => &mut self.update,
            TaskKind::Potrf => &mut self.potrf,
            TaskKind::Trsm => &mut self.trsm,
            TaskKind::Store => &mut self.store,
        }
    }

    /// By kind, in seconds.
    pub(crate) fn to_array(self) -> [f64; 5] {
        [self.load, self.update, self.potrf, self.trsm, self.store]
    }

    /// The times of [`TaskTimes::to_array`].
    pub(crate) fn from_array([load, update, potrf, trsm, store]: [f64; 5]) -> TaskTimes {
        TaskTimes { load, update, potrf, trsm, store }
    }

    fn add(&mut self, other: &TaskTimes) {
        self.load += other.load;
        self.update += other.update;
        self.potrf += other.potrf;
        self.trsm += other.trsm;
        self.store += other.store;
    }
}

/// The times of one worker's tasks.
pub(crate) struct TaskLog {
    start: Instant,
    worker: usize,
    /// Seconds from the start of the call to that of the task under way.
    since: f64,
    times: TaskTimes,
    spans: Option<Vec<Span>>,
}

impl TaskLog {
    /// Sums, and every task where `spans` are wanted.
    pub fn new(start: Instant, worker: usize, spans: bool) -> TaskLog {
        TaskLog { start, worker, since: 0.0, times: TaskTimes::default(), spans: spans.then(Vec::new) }
    }

    /// A task begins now.
    pub fn begin(&mut self) {
        self.since = self.start.elapsed().as_secs_f64();
    }

    /// Notes a task on a strip that begins with `tile`, which ends now; another one may begin.
    pub fn add(&mut self, kind: TaskKind, TileId { row, col }: TileId) {
        let start = self.since;
        self.begin();
        let end = self.since;
        *self.times.of(kind) += end - start;
        if let Some(spans) = &mut self.spans {
            spans.push(Span { worker: self.worker, kind, row, col, start, end });
        }
    }
}

/// Times of one call.
pub(crate) struct Clock {
    pub start: Instant,
    pub times: TaskTimes,
    pub spans: Vec<Span>,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { start: Instant::now(), times: TaskTimes::default(), spans: Vec::new() }
    }

    /// Seconds since the call began.
    pub fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Adds the logs of the workers.
    pub fn add(&mut self, logs: impl Iterator<Item = TaskLog>) {
        for log in logs {
            self.times.add(&log.times);
            self.spans.append(&mut log.spans.unwrap_or_default());
        }
    }
}
