//! What a factorisation tells about itself: tiles, times of the tasks, memory.

use crate::kernels::tiles::TileTraffic;
use serde::Serialize;
use std::time::Instant;

/// The kinds of tasks in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Entries of the matrix to residues.
    Load,
    /// `C := C - X X^T` for a tile on the diagonal alone.
    Syrk,
    /// `C := C - X Y^T` for a strip of tiles.
    Gemm,
    /// Factor of a diagonal tile.
    Potrf,
    /// A tile below it solved.
    Trsm,
    /// Integers to entries of the factor.
    Store,
}

/// One task in time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Span {
    /// The worker that ran it.
    pub worker: usize,
    /// What it was.
    pub kind: TaskKind,
    /// Tile row; loads and updates take a strip of a tile column at once, and name its first tile.
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
pub struct TaskTimes {
    /// Entries of the matrix to residues.
    pub load: f64,
    /// Updates of tiles: all the cubic work but that inside a tile column.
    pub update: f64,
    /// Diagonal tiles.
    pub potrf: f64,
    /// Tiles below them.
    pub trsm: f64,
    /// Rounding and storing the factor (wall-clock).
    pub store: f64,
}

/// The plan and the timings of one factorisation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CholeskyReport {
    /// `cholesky`.
    pub operation: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Precision asked for.
    pub precision_bits: u32,
    /// Fixed-point bits inside.
    pub working_bits: u32,
    /// Worker threads used.
    pub threads: usize,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Planes.
    pub primes: usize,
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Tile rows.
    pub tiles: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Seconds of the tasks, summed over the workers.
    pub tasks: TaskTimes,
    /// Bytes the plan allows for: tiles, scratch, tables and the factor.
    pub planned_bytes: u64,
    /// What the device has moved that ran the updates, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<TileTraffic>,
    /// Every task with its time; for a trace, not part of a report.
    #[serde(skip)]
    pub spans: Vec<Span>,
}

/// Times of one call.
pub(crate) struct Clock {
    start: Instant,
    pub spans: Vec<Span>,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { start: Instant::now(), spans: Vec::new() }
    }

    /// Seconds since the call began.
    pub fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub fn add(&mut self, spans: Vec<Span>) {
        self.spans.extend(spans);
    }

    /// Sums by kind.
    pub fn times(&self) -> TaskTimes {
        let mut times = TaskTimes::default();
        for span in &self.spans {
            let sum = match span.kind {
                TaskKind::Load => &mut times.load,
                TaskKind::Syrk | TaskKind::Gemm => &mut times.update,
                TaskKind::Potrf => &mut times.potrf,
                TaskKind::Trsm => &mut times.trsm,
                TaskKind::Store => &mut times.store,
            };
            *sum += span.end - span.start;
        }
        times
    }
}
