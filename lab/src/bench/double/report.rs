//! What a factorisation of doubles on devices is written and printed as.

use crate::bench::spread::Spread;
use crate::machine::Machine;
use crate::units::{format_bytes, format_seconds};
use serde::Serialize;
use sunzi::double::DoubleReport;

/// Bytes moved under one rule of eviction.
#[derive(Serialize)]
pub struct Moved {
    pub victim: &'static str,
    pub h2d_bytes: u64,
    pub d2h_bytes: u64,
    pub saved: f64,
}

/// Bytes that would move under one choice.
#[derive(Serialize)]
pub struct Counted {
    pub policy: &'static str,
    #[serde(flatten)]
    pub traffic: Moved,
}

/// What is written by `--report`.
#[derive(Serialize)]
pub struct DoubleBenchReport {
    pub operation: &'static str,
    pub element: &'static str,
    pub rows: usize,
    pub runs: usize,
    /// From tiles to tiles.
    pub seconds: Spread,
    pub gflops: f64,
    /// Of one large product, summed over the devices; null where there is no room for one.
    pub product_gflops: Option<Spread>,
    pub product_ratio: Option<f64>,
    pub product_clock: &'static str,
    /// Measured, the rule that was timed first.
    pub moved: Vec<Moved>,
    /// Counted without running, for one device.
    pub counted: Vec<Counted>,
    pub checked: bool,
    pub residual: f64,
    pub not_measured: Vec<String>,
    /// The fastest run.
    pub factor: DoubleReport,
    pub machine: Machine,
}

/// The report for people.
pub fn describe(report: &DoubleBenchReport) -> String {
    let factor = &report.factor;
    let [min, median, max] = [report.seconds.min, report.seconds.median, report.seconds.max].map(format_seconds);
    let mut lines = vec![
        format!(
            "cholesky of doubles {0} x {0}: {1} x {1} tiles of {2} rows, policy {3}, {4} stream(s), {5} thread(s)",
            report.rows,
            factor.tiles,
            factor.tile_rows,
            factor.policy.name(),
            factor.streams,
            factor.threads
        ),
        format!("factor     {median} ({min} to {max}): {:.2} GFLOP/s", report.gflops),
        products(report),
        format!(
            "host       tiles in {}, diagonal tiles {}, tiles out {}, {} for tiles",
            format_seconds(factor.load_seconds),
            format_seconds(factor.potrf_seconds),
            format_seconds(factor.store_seconds),
            format_bytes(factor.host_bytes)
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
    lines.push(format!("moved      every task for itself {}", format_bytes(factor.baseline_bytes)));
    lines
        .extend(report.moved.iter().map(|moved| format!("           {} (measured)", row(factor.policy.name(), moved))));
    lines.extend(report.counted.iter().map(|counted| format!("           {}", row(counted.policy, &counted.traffic))));
    let verdict = if report.checked { "right" } else { "WRONG" };
    lines.push(format!("answer     {verdict}: residual {:.3e} of rows eps |A|", report.residual));
    lines.extend(report.not_measured.iter().map(|reason| format!("not measured: {reason}")));
    lines.join("\n")
}

fn products(report: &DoubleBenchReport) -> String {
    match (&report.product_gflops, report.product_ratio) {
        (Some(rate), Some(ratio)) => format!(
            "dgemm      {:.2} GFLOP/s by the {}'s clock: the factorisation reaches {:.1} % of it",
            rate.median,
            report.product_clock,
            100.0 * ratio
        ),
        _ => "dgemm      not measured: no room on the device for operands worth timing".into(),
    }
}

fn row(policy: &str, moved: &Moved) -> String {
    let (h2d, d2h) = (format_bytes(moved.h2d_bytes), format_bytes(moved.d2h_bytes));
    format!("{policy:<13} {:<4} h2d {h2d:>10}, d2h {d2h:>10}: {:.1} % less", moved.victim, 100.0 * moved.saved)
}
