//! Disks: each moves one request after the other, at its rates, and answers a latency after the last byte. Jitter also
//! multiplies the times of requests and conversions. Diagonal tiles take the bytes of whole tiles.

use super::Cluster;
use super::accelerator::SerialEngine;
use super::level::Request;
use super::links::CopySpan;

/// The disks of all processes: one for each, or one for each node.
pub(super) struct Disks {
    engines: Vec<SerialEngine>,
    /// Processes that share one.
    sharers: usize,
    latency: f64,
    read_bandwidth: f64,
    write_bandwidth: f64,
}

impl Disks {
    /// The disks below `processes` processes; `None` for a machine without.
    pub fn new(machine: &Cluster, processes: usize) -> Option<Disks> {
        let disk = machine.disk.as_ref()?;
        let sharers = if disk.shared { machine.layout.processes_per_node } else { 1 };
        Some(Disks {
            engines: vec![SerialEngine::default(); processes.div_ceil(sharers)],
            sharers,
            latency: disk.latency,
            read_bandwidth: disk.read_bandwidth,
            write_bandwidth: disk.write_bandwidth,
        })
    }

    /// A request that arrives now: from its turn to its answer.
    pub fn serve(&mut self, process: usize, now: f64, request: &Request, factor: f64) -> CopySpan {
        let engine = &mut self.engines[process / self.sharers];
        let start = now.max(engine.free);
        let bandwidth = if request.work.writes() { self.write_bandwidth } else { self.read_bandwidth };
        engine.free = start + request.bytes as f64 / bandwidth * factor;
        engine.busy += engine.free - start;
        CopySpan { start, end: engine.free + self.latency }
    }

    /// The fraction of `seconds` in which the disks moved data on average, and that of the busiest disk.
    pub fn busy(&self, seconds: f64) -> [f64; 2] {
        let seconds = seconds.max(f64::MIN_POSITIVE);
        let sum = self.engines.iter().map(|engine| engine.busy).sum::<f64>();
        let most = self.engines.iter().map(|engine| engine.busy).fold(0.0, f64::max);
        [sum / (self.engines.len() as f64 * seconds), most / seconds]
    }
}

#[cfg(test)]
mod tests {
    use super::super::level::DiskWork;
    use super::super::machine::Disk;
    use super::*;
    use sunzi::advanced::tile::TileId;

    const TILE: TileId = TileId { row: 0, col: 0 };

    fn read(bytes: u64) -> Request {
        Request { work: DiskWork::Fetch(TILE), bytes }
    }

    fn write(bytes: u64) -> Request {
        Request { work: DiskWork::Keep(TILE), bytes }
    }

    #[test]
    fn requests_follow_each_other_on_a_disk() {
        let mut machine = Cluster::built_in("tsubame2.5").unwrap();
        let disk = Disk { latency: 0.25, write_bandwidth: 5.0, ..Disk::with_bandwidth(10.0) };
        machine.disk = Some(disk.clone());
        let mut own = Disks::new(&machine, 4).unwrap();
        assert_eq!(own.serve(0, 1.0, &read(20), 1.0), CopySpan { start: 1.0, end: 3.25 });
        // The next one begins when the last byte has come, before the answer.
        assert_eq!(own.serve(0, 1.0, &write(20), 1.0), CopySpan { start: 3.0, end: 7.25 });
        assert_eq!(own.serve(1, 1.0, &write(20), 2.0), CopySpan { start: 1.0, end: 9.25 });
        assert_eq!(own.busy(8.0), [14.0 / 32.0, 8.0 / 8.0]);
        machine.disk = Some(Disk { shared: true, ..disk });
        let mut shared = Disks::new(&machine, 4).unwrap();
        shared.serve(0, 0.0, &read(20), 1.0);
        assert_eq!(shared.serve(2, 0.0, &read(10), 1.0).start, 2.0);
        assert_eq!(shared.serve(3, 0.0, &read(10), 1.0).start, 0.0, "the next node has another one");
    }
}
