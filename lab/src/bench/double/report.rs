//! The report and the printed form of a factorisation of doubles.

use super::baseline::BaselineTimes;
use crate::bench::spread::Spread;
use crate::machine::Machine;
use serde::Serialize;
use sunzi::Result;
use sunzi::comm::{Reduction, Transport};
use sunzi::double::DoubleReport;
use sunzi_session::units::{counted, format_bytes, format_seconds};

/// Bytes that the devices of all ranks moved under one rule of eviction.
#[derive(Serialize)]
pub struct Moved {
    pub eviction: &'static str,
    pub devices: u64,
    pub h2d_bytes: u64,
    pub d2h_bytes: u64,
    /// Bytes that would move if each task moved all of its tiles.
    pub baseline_h2d_bytes: u64,
    pub baseline_d2h_bytes: u64,
    /// The number of tiles that were already on the device when a task needed them.
    pub hits: u64,
}

impl Moved {
    /// The sums over all ranks; `None` where none has a device. Collective.
    pub fn of(world: &dyn Transport, own: &DoubleReport) -> Result<Option<Moved>> {
        let hits = own.devices.iter().map(|share| share.cache.hits).sum();
        let baseline = [own.baseline_h2d_bytes, own.baseline_d2h_bytes];
        let mut sums = [own.devices.len() as u64, own.h2d_bytes, own.d2h_bytes, baseline[0], baseline[1], hits];
        world.all_reduce(Reduction::Sum, &mut sums)?;
        let [devices, h2d_bytes, d2h_bytes, baseline_h2d_bytes, baseline_d2h_bytes, hits] = sums;
        let eviction = own.eviction.name();
        let moved = Moved { eviction, devices, h2d_bytes, d2h_bytes, baseline_h2d_bytes, baseline_d2h_bytes, hits };
        Ok((devices > 0).then_some(moved))
    }

    fn describe(&self, policy: &str) -> String {
        let less = |bytes: u64, baseline: u64| 100.0 * (1.0 - bytes as f64 / baseline.max(1) as f64);
        let both = (self.h2d_bytes + self.d2h_bytes, self.baseline_h2d_bytes + self.baseline_d2h_bytes);
        format!(
            "{policy:<13} {:<4} h2d {:>10}, d2h {:>10}: {:.1} % and {:.1} % less, in total {:.1} % less (measured)",
            self.eviction,
            format_bytes(self.h2d_bytes),
            format_bytes(self.d2h_bytes),
            less(self.h2d_bytes, self.baseline_h2d_bytes),
            less(self.d2h_bytes, self.baseline_d2h_bytes),
            less(both.0, both.1)
        )
    }
}

/// Bytes that would move under one choice.
#[derive(Serialize)]
pub struct Counted {
    pub policy: &'static str,
    pub eviction: &'static str,
    pub h2d_bytes: u64,
    pub d2h_bytes: u64,
    pub saved: f64,
}

/// The contents of `--report`.
#[derive(Serialize)]
pub struct DoubleBenchReport {
    pub operation: &'static str,
    pub element: &'static str,
    pub rows: usize,
    pub ranks: usize,
    pub threads: usize,
    pub runs: usize,
    /// Seconds of the factorisation from tiles to tiles, on the slowest rank.
    pub seconds: Spread,
    pub gflops: f64,
    /// The time of the baseline divided by ours, of the medians: above 1 ours is faster.
    pub ratio: Option<f64>,
    pub baseline: Option<BaselineTimes>,
    /// The rate of one large product, summed over the devices of this rank; null where the memory is too small for one.
    pub product_gflops: Option<Spread>,
    pub product_ratio: Option<f64>,
    pub product_clock: &'static str,
    /// Measured traffic, first under the rule that was timed; empty where no device works.
    pub moved: Vec<Moved>,
    /// Traffic that was counted without running, for one device.
    pub counted: Vec<Counted>,
    pub checked: bool,
    pub residual: f64,
    /// Seconds of computation, summed over all workers of all ranks.
    pub busy_seconds: f64,
    pub wait_seconds: f64,
    /// Bytes of tiles sent by all ranks.
    pub sent_bytes: u64,
    pub not_measured: Vec<String>,
    /// The fastest run, as measured on the root.
    pub factor: DoubleReport,
    pub machine: Machine,
}

/// The report as text for the terminal.
pub fn describe(report: &DoubleBenchReport) -> String {
    let factor = &report.factor;
    let row = |name: &str, seconds: &Spread, gflops: f64| {
        let [min, median, max] = [seconds.min, seconds.median, seconds.max].map(format_seconds);
        format!("{name:<10} {median} ({min} to {max}): {gflops:.2} GFLOP/s")
    };
    let mut lines = vec![
        format!(
            "cholesky of doubles {0} x {0} on {1} x {2} ranks of {3}: {4} x {4} tiles of {5} rows, \
             {6} slots, policy {7}",
            report.rows,
            factor.grid.rows,
            factor.grid.cols,
            counted(report.threads, "thread"),
            factor.tiles,
            factor.tile_rows,
            factor.slots,
            factor.policy.name()
        ),
        row("factor", &report.seconds, report.gflops),
    ];
    lines.extend(report.baseline.iter().map(|baseline| row(&baseline.name, &baseline.seconds, baseline.gflops)));
    lines.extend(report.ratio.map(|ratio| format!("sunzi is {ratio:.3} times as fast")));
    lines.push(format!(
        "workers    busy for {}, waiting for {}, on all ranks; {} sent",
        format_seconds(report.busy_seconds),
        format_seconds(report.wait_seconds),
        format_bytes(report.sent_bytes)
    ));
    if !factor.devices.is_empty() {
        lines.extend(on_devices(report));
    }
    let verdict = if report.checked { "right" } else { "WRONG" };
    lines.push(format!("answer     {verdict}: residual {:.3e} of rows eps |A|", report.residual));
    lines.extend(report.not_measured.iter().map(|reason| format!("not measured: {reason}")));
    lines.join("\n")
}

fn on_devices(report: &DoubleBenchReport) -> Vec<String> {
    let factor = &report.factor;
    let mut lines = vec![
        products(report),
        format!(
            "host       tiles in {}, diagonal tiles {}, tiles out {}, {} in addition to the matrix; {} per device",
            format_seconds(factor.load_seconds),
            format_seconds(factor.potrf_seconds),
            format_seconds(factor.store_seconds),
            format_bytes(factor.host_bytes),
            counted(factor.streams, "stream")
        ),
    ];
    for share in &factor.devices {
        lines.push(format!(
            "device     {} {} ({}): room for {} tiles, {} tasks, {} on its clock, peak {}",
            share.device.kind,
            share.device.index,
            share.device.name,
            share.room_tiles,
            share.tasks,
            format_seconds(share.device_seconds),
            format_bytes(share.peak_bytes)
        ));
    }
    let baseline = factor.baseline_h2d_bytes + factor.baseline_d2h_bytes;
    lines.push(format!("moved      if every task copied its operands {}", format_bytes(baseline)));
    lines.extend(report.moved.iter().map(|moved| format!("           {}", moved.describe(factor.policy.name()))));
    lines.extend(report.counted.iter().map(|counted| {
        let Counted { policy, eviction, h2d_bytes, d2h_bytes, saved } = counted;
        let (h2d, d2h) = (format_bytes(*h2d_bytes), format_bytes(*d2h_bytes));
        format!("           {policy:<13} {eviction:<4} h2d {h2d:>10}, d2h {d2h:>10}: {:.1} % less", 100.0 * saved)
    }));
    lines
}

fn products(report: &DoubleBenchReport) -> String {
    match (&report.product_gflops, report.product_ratio) {
        (Some(rate), Some(ratio)) => format!(
            "dgemm      {:.2} GFLOP/s by the {}'s clock: the factorisation reaches {:.1} % of it",
            rate.median,
            report.product_clock,
            100.0 * ratio
        ),
        _ => "dgemm      not measured: the device memory is too small for operands worth timing".into(),
    }
}
