//! Processes above a disk, in the loop over events: requests to disks, their answers, and the work of each worker.

use super::clock::EventKind;
use super::level::{DiskWork, Request, WorkerWork};
use super::record::Track;
use super::world::{World, code, tile_of};
use sunzi::Result;
use sunzi::advanced::runtime::protocol::ProtocolEvent;
use sunzi::advanced::tile::TileId;

impl World<'_> {
    /// Begins the moves that the level of a process requests, and gives its workers the runs that they can do.
    pub(super) fn advance_level(&mut self, process: usize) -> Result<()> {
        let now = self.now;
        let Some(level) = self.levels.get_mut(process) else { return Ok(()) };
        level.begin_moves(now)?;
        while let Some(request) = self.levels[process].next_request() {
            self.begin_request(process, request);
        }
        while let Some(work) = self.levels[process].next_work(now) {
            match work {
                WorkerWork::Place(tile) => self.convert(process, tile),
                WorkerWork::Run(run) => {
                    self.levels[process].begin_run(&run)?;
                    self.start(process, run)?;
                }
            }
        }
        Ok(())
    }

    fn begin_request(&mut self, process: usize, request: Request) {
        let (factor, writes, tile) = (self.noise.factor(), request.work.writes(), request.work.tile());
        let Some(disks) = &mut self.disks else { return };
        let span = disks.serve(process, self.now, &request, factor);
        self.record(process, if writes { Track::DiskWrite } else { Track::DiskRead }, tile, span.start, span.end);
        let number = self.requests.put(request);
        self.clock.set(span.end, EventKind::Moved, process, number);
    }

    /// A worker converts a tile from the form on disk to the form that tasks read.
    fn convert(&mut self, process: usize, tile: TileId) {
        let Some(bandwidth) = self.conversions() else { return };
        let seconds = self.machine.tile_bytes() as f64 / bandwidth * self.noise.factor() * self.hosts[process].slowness;
        self.record(process, Track::Convert, tile, self.now, self.now + seconds);
        self.clock.set(self.now + seconds, EventKind::Placed, process, code(tile));
    }

    fn conversions(&self) -> Option<f64> {
        self.machine.disk.as_ref()?.convert_bandwidth
    }

    /// A worker has put a tile into its place.
    pub(super) fn placed(&mut self, process: usize, code: u32) -> Result<()> {
        self.levels[process].placed_by_worker(tile_of(code), self.now);
        self.poll(process)
    }

    /// A disk has answered.
    pub(super) fn moved(&mut self, process: usize, number: u32) -> Result<()> {
        let Request { work, bytes } = self.requests.take(number);
        let (at_once, now) = (self.conversions().is_none(), self.now);
        let level = &mut self.levels[process];
        match work {
            DiskWork::Fetch(tile) => level.fetched(tile, bytes, at_once),
            DiskWork::Write(run) => {
                level.written(&run, bytes);
                self.wrote(process);
                let blocked = self.levels[process].take_blocked(now);
                blocked.into_iter().try_for_each(|job| self.done(job))?;
            }
            DiskWork::Send(tile) => {
                for (to, message) in level.read_to_send(tile) {
                    self.send(process, to, message)?;
                }
            }
            DiskWork::Keep(tile) => {
                let next = level.kept(tile);
                self.wrote(process);
                self.processes[process].handle(ProtocolEvent::Imported(tile));
                next.into_iter().for_each(|envelope| self.ship(process, envelope));
            }
        }
        self.poll(process)
    }

    /// A process ends when its last tile is written.
    fn wrote(&mut self, process: usize) {
        if let Some(finished) = &mut self.hosts[process].finished {
            *finished = self.now;
        }
    }
}
