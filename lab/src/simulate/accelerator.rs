//! A device of a process: the tiles in its memory, and the times at which its copy engines and its processor are free.

use super::Cluster;
use super::clock::Noise;
use super::links::CopySpan;
use std::collections::VecDeque;
use sunzi::advanced::runtime::{
    Admission, CacheCounters, Eviction, Lease, Limits, Move, Residency, TileState, TileUse,
};

/// Copies between hosts and devices.
pub(super) struct Copies {
    tile_bytes: f64,
    up_bandwidth: f64,
    down_bandwidth: f64,
    latency: f64,
    node_bandwidth: Option<f64>,
    /// The times at which the resources that the devices of a node share are free.
    node_free: Vec<f64>,
    per_node: usize,
}

impl Copies {
    /// The copies of `processes` processes; `None` for a machine without devices.
    pub fn new(machine: &Cluster, processes: usize) -> Option<Copies> {
        let device = machine.device.as_ref()?;
        Some(Copies {
            tile_bytes: machine.tile_bytes() as f64,
            up_bandwidth: device.up_bandwidth,
            down_bandwidth: device.down_bandwidth,
            latency: device.latency,
            node_bandwidth: device.node_bandwidth,
            node_free: vec![0.0; processes.div_ceil(machine.layout.processes_per_node)],
            per_node: machine.layout.processes_per_node,
        })
    }

    /// A copy of a tile by an engine that is free at `free`, where it can begin at `now`.
    fn copy(&mut self, process: usize, engine: &mut SerialEngine, bandwidth: f64, now: f64, factor: f64) -> CopySpan {
        let start = now.max(engine.free);
        let mut end = start + self.latency + self.tile_bytes / bandwidth * factor;
        if let Some(bandwidth) = self.node_bandwidth {
            let free = &mut self.node_free[process / self.per_node];
            *free = start.max(*free) + self.tile_bytes / bandwidth * factor;
            end = end.max(*free);
        }
        engine.free = end;
        engine.busy += end - start;
        CopySpan { start, end }
    }
}

/// A part that does one thing at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct SerialEngine {
    /// The time at which it is free.
    pub free: f64,
    /// Seconds of work so far.
    pub busy: f64,
}

/// A device.
pub(super) struct Accelerator {
    cache: Residency<u32>,
    up: SerialEngine,
    down: SerialEngine,
    /// Its kernels.
    pub kernels: SerialEngine,
    /// Tiles in transit to the device, and to the host, with the ends of their transfers.
    coming: Vec<(u32, f64)>,
    going: Vec<(u32, f64)>,
    /// Jobs that wait until others release tiles.
    pub waiting: VecDeque<u32>,
    /// Under the synchronous algorithm: the step, and the finished tiles that came in it.
    step: Option<usize>,
    panel: Vec<u32>,
    /// The largest number of bytes of tiles.
    pub peak_bytes: u64,
}

/// The loads that a job waits for.
pub(super) struct Loading {
    /// Its holds.
    pub lease: Lease<u32>,
    /// The time at which its tiles are on the device.
    pub ready: f64,
    /// The copies up and down, from the first start to the last end, for the record.
    pub spans: [Option<CopySpan>; 2],
}

fn joined(span: Option<CopySpan>, other: CopySpan) -> Option<CopySpan> {
    Some(span.map_or(other, |span| CopySpan { start: span.start.min(other.start), end: span.end.max(other.end) }))
}

impl Accelerator {
    /// An empty device.
    pub fn new(memory_bytes: u64, eviction: Eviction) -> Accelerator {
        let limits = Limits { bytes: memory_bytes, tiles: usize::MAX };
        Accelerator {
            cache: Residency::new(limits, eviction),
            up: SerialEngine::default(),
            down: SerialEngine::default(),
            kernels: SerialEngine::default(),
            coming: Vec::new(),
            going: Vec::new(),
            waiting: VecDeque::new(),
            step: None,
            panel: Vec::new(),
            peak_bytes: 0,
        }
    }

    /// Whether a tile is in the memory of the device.
    pub fn holds(&self, code: u32) -> bool {
        self.cache.state(code) != TileState::Invalid
    }

    /// The counters of the moves.
    pub fn counters(&self) -> CacheCounters {
        self.cache.counters()
    }

    /// Bytes of the tiles on the device.
    pub fn used_bytes(&self) -> u64 {
        self.cache.used_bytes()
    }

    /// Seconds that the copy engines were busy: up, down.
    pub fn copying(&self) -> [f64; 2] {
        [self.up.busy, self.down.busy]
    }

    /// Brings the tiles of a task to the device; `None` where other tasks hold too much.
    pub fn load(
        &mut self,
        uses: &[TileUse<u32>],
        now: f64,
        process: usize,
        copies: &mut Copies,
        noise: &mut Noise,
    ) -> Option<Loading> {
        let Admission::Granted { moves, lease } = self.cache.acquire(uses) else { return None };
        self.peak_bytes = self.peak_bytes.max(self.cache.used_bytes());
        self.coming.retain(|&(_, end)| end > now);
        self.going.retain(|&(_, end)| end > now);
        let (mut room, mut spans) = (now, [None, None]);
        for one in moves {
            match one {
                Move::WriteBack(code) => {
                    let span = self.download(code, now, process, copies, noise);
                    room = room.max(span.end);
                    spans[1] = joined(spans[1], span);
                }
                Move::Fetch(code) => {
                    let at_home = self.going.iter().find(|(tile, _)| *tile == code).map_or(now, |&(_, end)| end);
                    let (bandwidth, begin) = (copies.up_bandwidth, room.max(at_home));
                    let span = copies.copy(process, &mut self.up, bandwidth, begin, noise.factor());
                    self.coming.push((code, span.end));
                    spans[0] = joined(spans[0], span);
                }
                Move::Drop(_) => {}
            }
        }
        let here = self.coming.iter().filter(|(code, _)| uses.iter().any(|one| one.tile == *code));
        let ready = here.map(|&(_, end)| end).fold(room, f64::max);
        Some(Loading { lease, ready, spans })
    }

    fn download(&mut self, code: u32, now: f64, process: usize, copies: &mut Copies, noise: &mut Noise) -> CopySpan {
        let bandwidth = copies.down_bandwidth;
        let span = copies.copy(process, &mut self.down, bandwidth, now, noise.factor());
        self.going.push((code, span.end));
        span
    }

    /// Releases the tiles of a job.
    pub fn release(&mut self, lease: Lease<u32>) {
        self.cache.release(lease);
    }

    /// Writes a tile back if the copy on the host is older.
    pub fn write_back(
        &mut self,
        code: u32,
        now: f64,
        process: usize,
        copies: &mut Copies,
        noise: &mut Noise,
    ) -> Option<CopySpan> {
        self.cache.write_back(code)?;
        Some(self.download(code, now, process, copies, noise))
    }

    /// Removes a tile that no job holds and of which the host has a copy.
    pub fn invalidate(&mut self, code: u32) {
        self.cache.discard(code);
    }

    /// Under the synchronous algorithm: records that an update of `step`, or another task, reads some tiles, and
    /// removes those of earlier steps, which are not read any more.
    pub fn read_in_step(&mut self, step: Option<usize>, codes: impl Iterator<Item = u32>) {
        if step > self.step {
            self.step = step;
            let old = std::mem::take(&mut self.panel);
            let (held, gone) = old.into_iter().partition::<Vec<_>, _>(|&code| self.cache.hold_count(code) > 0);
            gone.into_iter().for_each(|code| self.invalidate(code));
            self.panel = held;
        }
        for code in codes.filter(|&code| self.cache.state(code) == TileState::Invalid) {
            self.panel.push(code);
        }
    }

    /// Writes all tiles back: the end of the last copy, if there was any.
    pub fn flush(&mut self, now: f64, process: usize, copies: &mut Copies, noise: &mut Noise) -> f64 {
        let moves = self.cache.flush();
        moves.into_iter().fold(now, |end, one| match one {
            Move::WriteBack(code) => end.max(self.download(code, now, process, copies, noise).end),
            _ => end,
        })
    }
}
