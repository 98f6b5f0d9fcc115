//! Runs of workers: their tiles are brought to the device, they compute, and the result is made ready for others.

use super::clock::EventKind;
use super::record::Track;
use super::world::{Job, World, code};
use sunzi::Result;
use sunzi::advanced::runtime::protocol::{ProtocolEvent, Sites, TileRun};
use sunzi::advanced::runtime::{Access, Task, TileUse};
use sunzi::advanced::tile::TileId;

impl World<'_> {
    /// A worker takes a run.
    pub(super) fn start(&mut self, process: usize, run: TileRun) -> Result<()> {
        self.watch.start(process, &run)?;
        let devices = self.hosts[process].devices.len();
        let device = self.sites.of_tile(run.tile).saturating_sub(Sites::FIRST_DEVICE);
        let (begun, started) = (self.now, self.now);
        let job = self.jobs.put(Job { process, device, run, lease: None, begun, started });
        match (devices, self.task(job)) {
            (0, _) => self.compute_on_worker(job),
            (_, Task::Potrf { .. }) => self.factor(job),
            _ => self.load(job),
        }
        Ok(())
    }

    /// The first task of a job.
    fn task(&mut self, job: u32) -> Task {
        self.jobs.get(job).run.tasks(self.graph).next().expect("a run has a task")
    }

    /// Seconds of a task, apart from noise.
    pub(super) fn seconds(&self, task: Task) -> f64 {
        let rows =
            |row: usize| if row + 1 == self.graph.tiles { self.last_rows } else { self.machine.tiles.rows } as f64;
        operations(task, rows) / self.machine.rate(task)
    }

    /// Seconds of a task on whole tiles.
    pub(super) fn whole_seconds(&self, task: Task) -> f64 {
        operations(task, |_| self.machine.tiles.rows as f64) / self.machine.rate(task)
    }

    /// A worker of a machine without devices does all tasks of a job itself.
    fn compute_on_worker(&mut self, job: u32) {
        let Job { process, run, .. } = self.jobs.get(job);
        let (process, run) = (*process, run.clone());
        let seconds = run.tasks(self.graph).map(|task| self.seconds(task)).sum::<f64>();
        let seconds = seconds * self.noise.factor() * self.hosts[process].slowness;
        self.statistics.worker_seconds += seconds;
        self.record(process, Track::Kernel, run.tile, self.now, self.now + seconds);
        self.clock.set(self.now + seconds, EventKind::Done, process, job);
    }

    /// A diagonal tile is factored by the processors: its updates must be there, and its copy on the device goes.
    fn factor(&mut self, job: u32) {
        let Job { process, device, run, .. } = self.jobs.get(job);
        let (process, device, tile) = (*process, *device, run.tile);
        let mut start = self.now;
        if let Some(copies) = &mut self.copies {
            let device = &mut self.hosts[process].devices[device];
            let written = device.write_back(code(tile), self.now, process, copies, &mut self.noise);
            start = written.map_or(start, |span| span.end);
            device.invalidate(code(tile));
        }
        let seconds = self.seconds(Task::Potrf { k: tile.row }) * self.noise.factor() * self.hosts[process].slowness;
        let processor = &mut self.hosts[process].processor;
        let start = start.max(processor.free);
        processor.free = start + seconds;
        processor.busy += seconds;
        self.record(process, Track::Processor, tile, start, start + seconds);
        self.clock.set(start + seconds, EventKind::Done, process, job);
    }

    /// Brings the tiles of a job to its device; where others hold too much, it waits for them.
    fn load(&mut self, number: u32) {
        let task = self.task(number);
        let Job { process, device, .. } = *self.jobs.get(number);
        let bytes = self.machine.tile_bytes();
        let one = |tile: TileId, access: Access| TileUse { tile: code(tile), bytes, access };
        let mut uses = vec![one(self.graph.output(task), Access::Update)];
        uses.extend(self.graph.inputs(task).into_iter().map(|tile| one(tile, Access::Read)));
        let in_steps = self.in_steps();
        let Some(copies) = &mut self.copies else { return };
        let device = &mut self.hosts[process].devices[device];
        if in_steps {
            device.read_in_step(step_of(task), uses[1..].iter().map(|one| one.tile));
        }
        let Some(loading) = device.load(&uses, self.now, process, copies, &mut self.noise) else {
            device.waiting.push_back(number);
            return;
        };
        let job = self.jobs.get(number);
        job.lease = Some(loading.lease);
        let target = job.run.tile;
        for (span, track) in loading.spans.into_iter().zip([Track::Up, Track::Down]) {
            if let Some(span) = span {
                self.record(process, track, target, span.start, span.end);
            }
        }
        if loading.ready > self.now {
            self.clock.set(loading.ready, EventKind::Loaded, process, number);
        } else {
            self.compute(number);
        }
    }

    /// The tiles are there: the kernel is next on its device.
    pub(super) fn compute(&mut self, number: u32) {
        let task = self.task(number);
        let launch = self.machine.device.as_ref().map_or(0.0, |device| device.launch_seconds);
        let Job { process, device, begun, .. } = *self.jobs.get(number);
        let slowness = self.hosts[process].slowness;
        let seconds = (launch + self.seconds(task)) * self.noise.factor() * slowness;
        let kernels = &mut self.hosts[process].devices[device].kernels;
        let start = self.now.max(kernels.free);
        kernels.free = start + seconds;
        kernels.busy += seconds;
        self.statistics.loading_seconds += self.now - begun;
        self.statistics.queueing_seconds += start - self.now;
        let job = self.jobs.get(number);
        job.started = start;
        let tile = job.run.tile;
        if start > begun {
            self.record(process, Track::Wait, tile, begun, start);
        }
        self.record(process, Track::Kernel, tile, start, start + seconds);
        self.clock.set(start + seconds, EventKind::Computed, process, number);
    }

    /// A kernel has ended: a finished tile that others read goes to the host, under the synchronous algorithm any.
    pub(super) fn computed(&mut self, number: u32) -> Result<()> {
        let in_steps = self.in_steps();
        let job = self.jobs.get(number);
        let (process, device, tile, finish) = (job.process, job.device, job.run.tile, job.run.finish);
        let lease = job.lease.take();
        let to_host = in_steps || finish && self.has_clients(tile);
        let Some(copies) = &mut self.copies else { return Ok(()) };
        let accelerator = &mut self.hosts[process].devices[device];
        lease.into_iter().for_each(|lease| accelerator.release(lease));
        let mut end = self.now;
        let written =
            if to_host { accelerator.write_back(code(tile), self.now, process, copies, &mut self.noise) } else { None };
        if let Some(span) = written {
            end = span.end;
            self.record(process, Track::Down, tile, span.start, span.end);
        }
        let accelerator = &mut self.hosts[process].devices[device];
        if in_steps {
            accelerator.invalidate(code(tile));
        }
        let waiting = std::mem::take(&mut accelerator.waiting);
        waiting.into_iter().for_each(|waiting| self.load(waiting));
        if end > self.now {
            self.clock.set(end, EventKind::Done, process, number);
            return Ok(());
        }
        self.done(number)
    }

    fn has_clients(&self, tile: TileId) -> bool {
        !self.options.grid.clients(self.graph.tiles, tile).is_empty()
    }

    /// A run is done, and its result is available to others.
    pub(super) fn done(&mut self, number: u32) -> Result<()> {
        let (now, Job { process, run, .. }) = (self.now, self.jobs.get(number));
        if self.levels.get_mut(*process).is_some_and(|level| !level.hands_over(run, number, now)) {
            return Ok(());
        }
        let Job { process, run, .. } = self.jobs.take(number);
        self.watch.done(process, &run);
        if let Some(level) = self.levels.get_mut(process) {
            level.done(&run, now);
        }
        self.processes[process].handle(ProtocolEvent::Done(run));
        self.poll(process)
    }
}

/// Operations of a task, by the rows of tiles.
fn operations(task: Task, rows: impl Fn(usize) -> f64) -> f64 {
    match task {
        Task::Potrf { k } => rows(k).powi(3) / 3.0,
        Task::Trsm { i, k } => rows(i) * rows(k).powi(2),
        Task::Syrk { i, k } => rows(i).powi(2) * rows(k),
        Task::Gemm { i, j, k } => 2.0 * rows(i) * rows(j) * rows(k),
    }
}

/// The tile column by which a task updates; a tile is finished while updates by others may go on.
fn step_of(task: Task) -> Option<usize> {
    match task {
        Task::Potrf { .. } | Task::Trsm { .. } => None,
        Task::Syrk { k, .. } | Task::Gemm { k, .. } => Some(k),
    }
}
