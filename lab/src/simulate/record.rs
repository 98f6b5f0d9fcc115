//! Recordings of a run: spans for a trace, and figures over time. Both have a maximum size.

use super::host::Host;
use super::level::DiskLevel;
use sunzi::advanced::runtime::protocol::TaskMachine;
use sunzi::advanced::tile::TileId;

/// Figures over time that are kept: where twice as many would be, every second one goes.
const SAMPLES: usize = 512;

/// The first distance of figures, in seconds.
const FIRST_INTERVAL: f64 = 1e-3;

/// The track on which something is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Track {
    /// The kernels of a device, or the workers without one.
    Kernel,
    /// The processors, factoring diagonal tiles.
    Processor,
    /// Copies to a device.
    Up,
    /// Copies from a device.
    Down,
    /// Tiles leaving.
    Out,
    /// Tiles coming.
    In,
    /// Workers that wait for the device or for tiles in transit to it.
    Wait,
    /// Reads of a disk.
    DiskRead,
    /// Writes of a disk.
    DiskWrite,
    /// Workers converting tiles from the form on disk to the form that tasks read.
    Convert,
}

impl Track {
    /// All of them.
    pub const ALL: [Track; 10] = [
        Track::Kernel,
        Track::Processor,
        Track::Up,
        Track::Down,
        Track::Out,
        Track::In,
        Track::Wait,
        Track::DiskRead,
        Track::DiskWrite,
        Track::Convert,
    ];

    /// Its name in a trace.
    pub fn name(self) -> &'static str {
        match self {
            Track::Kernel => "kernel",
            Track::Processor => "processor",
            Track::Up => "copy up",
            Track::Down => "copy down",
            Track::Out => "send",
            Track::In => "receive",
            Track::Wait => "wait",
            Track::DiskRead => "disk read",
            Track::DiskWrite => "disk write",
            Track::Convert => "convert",
        }
    }
}

/// An activity with its duration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceSpan {
    /// The process.
    pub process: usize,
    /// The track.
    pub track: Track,
    /// The tile.
    pub tile: TileId,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
}

/// A figure of all processes at one time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FigureSummary {
    /// Mean of the processes.
    pub mean: f64,
    /// Most of any.
    pub most: f64,
}

/// Figures at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// The time.
    pub time: f64,
    /// Ready tasks.
    pub ready: FigureSummary,
    /// Slots in use.
    pub slots: FigureSummary,
    /// Bytes on devices.
    pub device_bytes: FigureSummary,
    /// Tiles in memories above disks.
    pub held_tiles: FigureSummary,
}

/// A recorder of activities.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recorder {
    trace: Option<(usize, usize)>,
    interval: Option<f64>,
    next: f64,
    /// Spans, by their ends in the order in which they were known.
    pub spans: Vec<TraceSpan>,
    /// Figures over time.
    pub samples: Vec<Sample>,
}

impl Recorder {
    /// Records nothing.
    pub fn none() -> Recorder {
        Recorder::default()
    }

    /// Also records spans of the first `processes` processes, at most `spans`.
    pub fn with_trace(self, processes: usize, spans: usize) -> Recorder {
        Recorder { trace: Some((processes, spans)), ..self }
    }

    /// Also records figures over time.
    pub fn with_samples(self) -> Recorder {
        Recorder { interval: Some(FIRST_INTERVAL), ..self }
    }

    pub(super) fn span(&mut self, process: usize, track: Track, tile: TileId, start: f64, end: f64) {
        if self.trace.is_some_and(|(processes, spans)| process < processes && self.spans.len() < spans) {
            self.spans.push(TraceSpan { process, track, tile, start, end });
        }
    }

    /// Records that nothing happens before `time`.
    pub(super) fn advance(&mut self, time: f64, processes: &[TaskMachine], hosts: &[Host], levels: &[DiskLevel]) {
        let Some(interval) = self.interval else { return };
        if time < self.next {
            return;
        }
        let level = |of: &dyn Fn(usize) -> u64| {
            let (sum, most) = (0..processes.len()).map(of).fold((0, 0), |(sum, most), one| (sum + one, one.max(most)));
            FigureSummary { mean: sum as f64 / processes.len() as f64, most: most as f64 }
        };
        let bytes = |process: usize| hosts[process].devices.iter().map(|device| device.used_bytes()).sum();
        self.samples.push(Sample {
            time,
            ready: level(&|process| processes[process].ready() as u64),
            slots: level(&|process| processes[process].slots_in_use() as u64),
            device_bytes: level(&bytes),
            held_tiles: level(&|process| levels.get(process).map_or(0, |memory| memory.held_tiles() as u64)),
        });
        self.next = time + interval;
        if self.samples.len() == 2 * SAMPLES {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.interval = Some(2.0 * interval);
        }
    }
}
