//! Processes above disks: bytes as the library counts them and as a real run moves them, times between their bounds.

use super::*;
use sunzi::advanced::runtime::protocol::DeliveryKind;
use sunzi::advanced::runtime::{CholeskyGraph, LevelBytes, LevelTraffic, Owner, Policy, count_level};
use sunzi::advanced::storage::Caching;
use sunzi::advanced::tile::RankGrid;
use sunzi::gallery::{self, Kind, Size};
use sunzi::io::{self, Symmetry, WriteOptions};
use sunzi::out_of_core::{self, OutOfCoreOptions};
use sunzi::{Context, Error};

const ALONE: RankGrid = RankGrid { rows: 1, cols: 1 };

/// A disk that takes no time that could be seen.
const AT_ONCE: f64 = 1e300;

/// Tiles of 100 x 100 elements of 8 bytes, an update of one in 2 ms, a disk of its own for each process.
fn machine(room_tiles: u64, workers: usize, bandwidth: f64) -> Cluster {
    let mut machine = Cluster::built_in("tsubame2.5").unwrap();
    (machine.device, machine.disk) = (None, Some(Disk::with_bandwidth(bandwidth)));
    machine.tiles = Tiles { rows: 100, element_bytes: 8 };
    (machine.layout.workers, machine.layout.host_memory_bytes) = (workers, 80_000 * room_tiles);
    machine.rates = Rates { potrf: 1e9, trsm: 1e9, syrk: 1e9, gemm: 1e9 };
    machine.checked().unwrap()
}

fn options(machine: &Cluster, grid: RankGrid, tiles: u64) -> SimulationOptions {
    SimulationOptions { watch: true, ..SimulationOptions::new(grid, 100 * tiles) }.above_disk(machine)
}

fn run(machine: &Cluster, options: &SimulationOptions) -> Simulation {
    simulate(machine, options, &mut Recorder::none(), &|| true).unwrap()
}

fn figures(simulation: &Simulation) -> DiskFigures {
    simulation.disk.expect("there is a disk")
}

/// The moves of a process by the library's count.
fn counted(options: &SimulationOptions, machine: &Cluster, number: usize) -> LevelTraffic {
    let (shape, owner) = (options.level_shape(machine).unwrap(), Owner { grid: options.grid, number });
    let bytes = LevelBytes { entries: &|_| 80_000, finished: &|_| 80_000 };
    count_level(CholeskyGraph { tiles: options.tiles(machine) }, owner, shape, bytes)
}

#[test]
fn bytes_are_those_that_the_library_counts() {
    for (tiles, room) in [(1, 3), (2, 3), (9, 3), (9, 5), (16, 12), (20, 30), (24, 48), (24, 400)] {
        let counted = |options: &SimulationOptions, machine: &Cluster| counted(options, machine, 0);
        let machine_at_once = machine(room, 1, AT_ONCE);
        let options_at_once = options(&machine_at_once, ALONE, tiles);
        let disk = figures(&run(&machine_at_once, &options_at_once));
        assert_eq!(disk.traffic, counted(&options_at_once, &machine_at_once), "{tiles} tiles, room for {room}");
        assert!(disk.peak_tiles as u64 <= room && disk.reused_bytes + disk.traffic.operand_bytes > 0 || tiles == 1);
        // A disk that answers late changes little.
        for (workers, bandwidth) in [(2, 400e6), (2, 40e6), (4, 10e6)] {
            let machine = machine(room, workers, bandwidth);
            let options = options(&machine, ALONE, tiles);
            let disk = figures(&run(&machine, &options));
            let (read, counted) = (disk.read_bytes as f64, counted(&options, &machine));
            let what = format!("{tiles} tiles, room for {room}, {workers} workers, {bandwidth}: {disk:?}");
            assert!(read <= 1.12 * counted.read_bytes() as f64 && read >= 0.88 * counted.read_bytes() as f64, "{what}");
            assert_eq!(
                (disk.traffic.entry_bytes, disk.traffic.written_bytes),
                (counted.entry_bytes, counted.written_bytes)
            );
        }
    }
}

#[test]
fn bytes_are_those_of_a_real_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let matrix = gallery::generate(Kind::Lehmer, Size { rows: 200, cols: 200, precision_bits: 100 }, 0).unwrap();
    io::write(path("a.bin"), &matrix, &WriteOptions::new().symmetry(Symmetry::SymmetricLower)).unwrap();
    let factoring = OutOfCoreOptions::new().tile_rows(8).caching(Caching::Cached);
    let limited = |bytes: u64| Context::builder().threads(1).memory_bytes(bytes).build().unwrap();
    let refused = out_of_core::plan_cholesky(&limited(1), &path("a.bin"), 100, &factoring).unwrap_err();
    let Error::MemoryLimit { minimum_bytes, .. } = refused else { panic!("{refused}") };
    let ctx = limited(minimum_bytes + (1 << 18));
    let files = (path("a.bin"), path("l.bin"));
    let report = out_of_core::cholesky(&ctx, (&files.0, &files.1), &path("tiles"), 100, &factoring).unwrap();
    // Tiles of 8 rows take a block of the disk each.
    let mut machine = machine(report.plan.room_tiles as u64, 1, AT_ONCE);
    machine.tiles = Tiles { rows: 8, element_bytes: 4096 / 64 };
    machine.layout.host_memory_bytes = 4096 * report.plan.room_tiles as u64;
    machine.disk.as_mut().unwrap().in_flight_bytes = Some(4096 * report.plan.strip_tiles as u64);
    let options = SimulationOptions::new(ALONE, 200).above_disk(&machine);
    let disk = figures(&run(&machine, &options));
    let planned = report.plan.traffic;
    assert_eq!(disk.block_tiles, report.plan.block_tiles);
    assert_eq!(
        (disk.traffic.operand_bytes, disk.traffic.written_bytes),
        (planned.operand_bytes, planned.written_bytes)
    );
    // The run reads the tiles once more to round them, and its disk answers at any time.
    let read = (report.disk.read_bytes - planned.entry_bytes - planned.written_bytes) as f64;
    assert!((read / disk.traffic.operand_bytes as f64 - 1.0).abs() < 0.2, "{read}: {disk:?}");
}

#[test]
fn a_disk_of_no_time_changes_the_order_alone() {
    for room in [3, 12, 60, 400] {
        let work = run(&machine(room, 1, AT_ONCE), &options(&machine(room, 1, AT_ONCE), ALONE, 20));
        assert!((work.makespan_seconds / work.work_seconds - 1.0).abs() < 1e-9, "{work:?}");
        assert!(figures(&work).busy < 1e-200);
    }
    let with_disk = machine(400, 4, AT_ONCE);
    let above = run(&with_disk, &options(&with_disk, ALONE, 24));
    let without = Cluster { disk: None, ..with_disk };
    let options = SimulationOptions { policy: Policy::Leftmost, ..SimulationOptions::new(ALONE, 2400) };
    let in_memory = run(&without, &options);
    assert!(in_memory.disk.is_none());
    let ratio = above.makespan_seconds / in_memory.makespan_seconds;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn one_worker_or_the_disk_is_always_at_work() {
    for (bandwidth, convert) in [(1e9, None), (80e6, Some(200e6)), (20e6, None), (5e6, Some(20e6)), (1e6, Some(1e9))] {
        for room in [3, 10, 30, 80] {
            let mut machine = machine(room, 1, bandwidth);
            machine.disk.as_mut().unwrap().convert_bandwidth = convert;
            let simulation = run(&machine, &options(&machine, ALONE, 18));
            let (time, disk) = (simulation.makespan_seconds, figures(&simulation));
            let moving = (disk.read_bytes + disk.traffic.written_bytes) as f64 / bandwidth;
            let work = simulation.work_seconds + convert.map_or(0.0, |rate| disk.read_bytes as f64 / rate);
            let what = format!("{bandwidth} bytes/s, room for {room}: {simulation:?}");
            assert!(time >= 0.999_999 * moving.max(work), "{what}");
            assert!(time <= 1.000_001 * (moving + work), "{what}");
            assert!((disk.busy * time / moving - 1.0).abs() < 1e-9, "{what}");
            let waiting = (disk.waiting_for_tiles + disk.waiting_to_write) * time;
            assert!(waiting <= time - 0.999_999 * work, "{what}");
            // Tasks wait only for the disk; at the end the last block is written.
            let last = (disk.block_tiles.0 * disk.block_tiles.1) as f64 * 80_000.0 / bandwidth;
            assert!(waiting + work + last >= 0.999_999 * time, "{what}");
        }
    }
}

#[test]
fn processes_above_disks_come_to_their_end() {
    for (grid, tiles) in [((1, 2), 9), ((2, 1), 9), ((2, 2), 17), ((2, 3), 20), ((3, 3), 5)] {
        let grid = RankGrid { rows: grid.0, cols: grid.1 };
        for (room, bandwidth, shared) in [(3, 1e6, false), (5, 1e9, true), (12, 50e6, true), (40, AT_ONCE, false)] {
            let mut machine = machine(room, 2, bandwidth);
            machine.disk.as_mut().unwrap().shared = shared;
            let base = options(&machine, grid, tiles);
            let counted = (0..grid.size()).map(|process| counted(&base, &machine, process).read_bytes()).sum::<u64>();
            for delivery in [DeliveryKind::CsList, DeliveryKind::PointToPoint, DeliveryKind::Binomial] {
                let simulation = run(&machine, &SimulationOptions { delivery, ..base.clone() });
                let (disk, all) = (figures(&simulation), tiles * (tiles + 1) / 2);
                let traffic = disk.traffic;
                assert_eq!(traffic.entry_bytes, 80_000 * all);
                let ratio = disk.read_bytes as f64 / counted as f64;
                assert!((0.8..1.2).contains(&ratio), "{grid:?}, {tiles} tiles, room for {room}: {ratio}");
                assert_eq!(traffic.written_bytes, 80_000 * (all + simulation.messages.tiles.total));
                assert!(disk.sent_bytes >= 80_000 * u64::from(simulation.messages.tiles.total > 0));
                assert!(disk.sent_bytes <= 80_000 * simulation.messages.tiles.total);
                assert!(disk.busiest <= 1.0 && disk.busiest >= disk.busy && disk.peak_tiles as u64 <= room);
            }
        }
    }
}

#[test]
fn shared_disks_few_bytes_under_way_and_conversions_take_their_time() {
    let grid = RankGrid { rows: 2, cols: 2 };
    let seconds = |change: &dyn Fn(&mut Disk)| {
        let mut machine = machine(20, 2, 60e6);
        machine.layout.processes_per_node = 4;
        change(machine.disk.as_mut().unwrap());
        run(&machine.clone().checked().unwrap(), &options(&machine, grid, 24)).makespan_seconds
    };
    let own = seconds(&|_| {});
    assert!(seconds(&|disk| disk.shared = true) > 1.5 * own);
    assert!(seconds(&|disk| disk.convert_bandwidth = Some(60e6)) > 1.1 * own);
    let late = |in_flight: Option<u64>| seconds(&|disk| (disk.latency, disk.in_flight_bytes) = (0.01, in_flight));
    assert!(late(Some(1)) > 1.5 * late(None), "{} {}", late(Some(1)), late(None));
}

#[test]
fn a_seed_gives_the_same_again_above_a_disk() {
    let machine = machine(20, 2, 60e6);
    let base = options(&machine, RankGrid { rows: 2, cols: 2 }, 20);
    let case = |seed| {
        let simulation = run(&machine, &SimulationOptions { seed, jitter: 0.3, ..base.clone() });
        Simulation { wall_seconds: 0.0, ..simulation }
    };
    assert_eq!(case(1), case(1));
    assert_ne!(case(1).makespan_seconds, case(2).makespan_seconds);
}

#[test]
fn reads_and_writes_are_recorded() {
    let mut machine = machine(20, 2, 60e6);
    machine.disk.as_mut().unwrap().convert_bandwidth = Some(1e9);
    let mut recorder = Recorder::none().with_trace(1, 100_000).with_samples();
    simulate(&machine, &options(&machine, ALONE, 12), &mut recorder, &|| true).unwrap();
    let count = |track: Track| recorder.spans.iter().filter(|span| span.track == track).count();
    assert!(count(Track::DiskRead) >= 78 && count(Track::DiskWrite) > 10);
    assert_eq!(count(Track::Convert), count(Track::DiskRead));
    let most = recorder.samples.iter().map(|sample| sample.held_tiles.most).fold(0.0, f64::max);
    assert!(most > 3.0 && most <= 20.0, "{most}");
}

#[test]
fn what_a_disk_cannot_be_combined_with_is_refused_with_numbers() {
    let machine = machine(20, 2, 60e6);
    let base = options(&machine, ALONE, 12);
    let refused = |options: &SimulationOptions| {
        simulate(&machine, options, &mut Recorder::none(), &|| true).unwrap_err().to_string()
    };
    let blocks = |rows, cols| SimulationOptions { policy: Policy::Blocks { rows, cols }, ..base.clone() };
    assert!(refused(&blocks(5, 4)).contains("blocks of 5 x 4 tiles need memory for"));
    assert!(
        refused(&SimulationOptions { policy: Policy::Fifo, ..base.clone() })
            .contains("policy fifo cannot run out of core")
    );
    assert!(refused(&SimulationOptions { slots: Some(7), ..base.clone() }).contains("7 slots"));
    let synchronous = SimulationOptions { delivery: DeliveryKind::Synchronous, ..base.clone() };
    assert!(refused(&synchronous).contains("synchronous algorithm cannot run out of core"));
    let refused = |machine: Cluster| machine.checked().unwrap_err().to_string();
    let device = Cluster::built_in("tsubame2.5").unwrap().device;
    assert!(refused(Cluster { device, ..machine.clone() }).contains("device and disk"));
    let mut small = machine.clone();
    small.layout.host_memory_bytes = 239_999;
    assert!(refused(small).contains("239999: out of core a task needs 3 tiles of 80000 bytes"));
    let bad = Disk { read_bandwidth: 0.0, ..Disk::with_bandwidth(1.0) };
    assert!(refused(Cluster { disk: Some(bad), ..machine }).contains("disk.read_bandwidth = 0"));
}
