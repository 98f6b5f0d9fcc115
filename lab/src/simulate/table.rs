//! Figures of simulations as text: one in full, or several in a table.

use super::{DiskFigures, Messages, Simulation};
use sunzi::advanced::runtime::protocol::Termination;
use sunzi_session::units::{format_bytes, format_seconds};

fn termination(simulation: &Simulation) -> &'static str {
    if simulation.termination == Termination::Lists { "lists" } else { "all_to_all" }
}

/// The head of a table.
pub fn heading(simulation: &Simulation) -> String {
    let columns = format!(
        "{:<15} {:<10} {:<13} {:<6} {:>10} {:>9} {:>7} {:>6} {:>6} {:>6} {:>6} {:>5} {:>6} {:>11} {:>11}",
        "delivery",
        "end",
        "policy",
        "eviction",
        "seconds",
        "TFLOP/s",
        "devices",
        "up",
        "down",
        "out",
        "in",
        "sends",
        "slots",
        "up bytes",
        "down bytes"
    );
    let disk = if simulation.disk.is_some() { DISK_COLUMNS } else { "" };
    format!("{}\n{columns}{disk}", shape(simulation))
}

/// A line of a table.
pub fn row(simulation: &Simulation) -> String {
    let busy = &simulation.busy;
    let percent = |part: f64| format!("{:.1}%", 100.0 * part);
    let row = format!(
        "{:<15} {:<10} {:<13} {:<6} {:>10.1} {:>9.1} {:>7} {:>6} {:>6} {:>6} {:>6} {:>5} {:>6} {:>11} {:>11}",
        simulation.delivery.name(),
        termination(simulation),
        simulation.policy,
        simulation.eviction.name(),
        simulation.makespan_seconds,
        simulation.tflops,
        percent(busy.devices),
        percent(busy.copies_up),
        percent(busy.copies_down),
        percent(busy.out_links),
        percent(busy.in_links),
        simulation.most_sends,
        simulation.peak_slots,
        format_bytes(simulation.up_bytes),
        format_bytes(simulation.down_bytes)
    );
    let disk = simulation.disk.map_or(String::new(), |disk| {
        let (read, written) = (format_bytes(disk.read_bytes), format_bytes(disk.traffic.written_bytes));
        format!(" {:>6} {:>7} {read:>11} {written:>11}", percent(disk.busy), percent(disk.waiting_for_tiles))
    });
    row + &disk
}

/// Further columns in a table above disks: how busy these are, how long workers wait, bytes for tasks, bytes written.
const DISK_COLUMNS: &str = "   disk   waits  disk reads disk writes";

fn shape(simulation: &Simulation) -> String {
    let Simulation { machine, grid, order, tiles, slots, workers, .. } = simulation;
    format!(
        "A = L L^T: {order} x {order}, {tiles} tile rows, on {} x {} processes of {machine}, {workers} workers, \
         {slots} slots",
        grid.rows, grid.cols
    )
}

/// One simulation.
pub fn describe(simulation: &Simulation) -> String {
    let (messages, busy) = (&simulation.messages, &simulation.busy);
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let count = |name: &str, one: Messages| format!("  {name:<13} {:>13}  most of one process {}", one.total, one.most);
    let part = |name: &str, part: f64| format!("  {name:<20} {:>7}", percent(part));
    let moved = simulation.up_bytes + simulation.down_bytes;
    let saved = 1.0 - moved as f64 / simulation.baseline_bytes.max(1) as f64;
    let seconds = format_seconds;
    let lines = [
        shape(simulation),
        format!(
            "choices         {}, termination {}, policy {}, eviction {}",
            simulation.delivery.name(),
            termination(simulation),
            simulation.policy,
            simulation.eviction.name()
        ),
        format!("time            {}, {:.1} TFLOP/s", seconds(simulation.makespan_seconds), simulation.tflops),
        format!(
            "at least        {} by the critical path, {} by the work",
            seconds(simulation.critical_path_seconds),
            seconds(simulation.work_seconds)
        ),
        format!("messages        {} tasks", simulation.tasks),
        count("notices", messages.notices),
        count("requests", messages.requests),
        count("forwards", messages.forwards),
        count("tiles", messages.tiles),
        count("finished", messages.finished),
        format!(
            "trees           at most {} sends of a tile by its owner, depth {}, {} hops of a request",
            simulation.most_sends, simulation.tree_depth, simulation.hops
        ),
        format!(
            "at most         {} slots ({}), {} ready tasks, {} on a device",
            simulation.peak_slots,
            format_bytes(simulation.peak_slot_bytes),
            simulation.peak_ready,
            format_bytes(simulation.peak_device_bytes)
        ),
        format!(
            "copies          {} up, {} down: {} less than copying all operands of every task ({})",
            format_bytes(simulation.up_bytes),
            format_bytes(simulation.down_bytes),
            percent(saved),
            format_bytes(simulation.baseline_bytes)
        ),
        "busy".to_string(),
        part("devices", busy.devices),
        part("processors", busy.processors),
        part("copies up", busy.copies_up),
        part("copies down", busy.copies_down),
        part("links out", busy.out_links),
        part("busiest link out", busy.busiest_out_link),
        part("links in", busy.in_links),
        part("copies in nodes", busy.local_links),
        part("progress threads", busy.progress_threads),
        part("workers loading", busy.workers_loading),
        part("workers queueing", busy.workers_queueing),
    ];
    let disk = simulation.disk.iter().flat_map(describe_disk);
    let end = format!("simulation      {} events in {}", simulation.events, seconds(simulation.wall_seconds));
    lines.into_iter().chain(disk).chain([end]).collect::<Vec<_>>().join("\n")
}

/// The work of the disks.
fn describe_disk(disk: &DiskFigures) -> [String; 4] {
    let DiskFigures { block_tiles: (rows, cols), room_tiles, peak_tiles, traffic, .. } = disk;
    let (bytes, percent) = (format_bytes, |part: f64| format!("{:.1} %", 100.0 * part));
    [
        format!(
            "memory          blocks of {rows} x {cols} tiles, memory for {room_tiles}, at most {peak_tiles} in use"
        ),
        format!(
            "disk            {} read for tasks ({} of the matrix; such blocks require at least {}), {} written",
            bytes(disk.read_bytes),
            bytes(traffic.entry_bytes),
            bytes(disk.least_read_bytes),
            bytes(traffic.written_bytes)
        ),
        format!(
            "                {} read for other processes, {} still in memory when tasks read them",
            bytes(disk.sent_bytes),
            bytes(disk.reused_bytes)
        ),
        format!(
            "                busy for {}, the busiest for {}; workers wait {} of the time for tiles, {} to write",
            percent(disk.busy),
            percent(disk.busiest),
            percent(disk.waiting_for_tiles),
            percent(disk.waiting_to_write)
        ),
    ]
}
