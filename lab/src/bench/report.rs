//! The report and the printed form of a comparison.

use super::spread::Spread;
use super::task::{Cut, Phases};
use crate::baselines::openblas;
use crate::machine::Machine;
use serde::Serialize;
use sunzi::Accuracy;
use sunzi::advanced::kernels::tiles::TileTraffic;
use sunzi::report::DeviceReport;
use sunzi_session::units::{counted, format_bytes, format_seconds};

/// The contents of `--report`. Figures that an operation does not report are null.
#[derive(Serialize)]
pub struct BenchReport {
    pub operation: &'static str,
    pub rows: usize,
    pub cols: usize,
    pub precision_bits: u32,
    pub working_bits: Option<u32>,
    pub threads: usize,
    pub kernel: &'static str,
    pub accuracy: Accuracy,
    pub self_check: bool,
    pub primes: Option<usize>,
    #[serde(flatten)]
    pub cut: Cut,
    pub runs: usize,
    pub seconds: Spread,
    pub phases: Phases,
    /// The least time with the kernel of this run, where its rate is measured.
    pub kernel_limit_seconds: Option<f64>,
    pub kernel_limit_ratio: Option<f64>,
    pub kernel_multiply_adds_per_second: Option<Spread>,
    /// The least time of the machine, with any kernel.
    pub limit_seconds: Option<f64>,
    pub limit_ratio: Option<f64>,
    /// The kernel whose family has the least time.
    pub limit_kernel: Option<&'static str>,
    /// The multiply-adds per second that the instructions of the kernel could do in one plane.
    pub multiply_adds_per_second: Option<Spread>,
    pub read_bytes_per_second: Option<Spread>,
    pub planned_bytes: Option<u64>,
    pub peak_bytes: u64,
    pub checked: bool,
    pub worst_error: f64,
    pub baselines: Vec<BaselineReport>,
    /// The work of each device in that run; empty on the CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceReport>,
    /// The moves of each device of a factorisation in that run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiles: Vec<TileTraffic>,
    /// Whether any devices were requested.
    #[serde(skip)]
    pub on_devices: bool,
    pub machine: Machine,
}

/// The report of a baseline.
#[derive(Serialize)]
pub struct BaselineReport {
    pub name: &'static str,
    pub form: String,
    /// The number of timed runs, which is lower than ours where they take long.
    pub runs: usize,
    pub seconds: Spread,
    pub ratio: f64,
    pub phases: Vec<(&'static str, f64)>,
    pub checked: bool,
}

/// Our times and those of all baselines, under a line of headings.
pub fn rows_of_sides(seconds: &Spread, baselines: &[BaselineReport]) -> Vec<String> {
    let row = |name: &str, seconds: &Spread, last: String| {
        let [min, median, max] = [seconds.min, seconds.median, seconds.max].map(format_seconds);
        format!("{name:<10} {min:>10} {median:>10} {max:>10}  {last}").trim_end().to_string()
    };
    let mut lines = vec![
        format!("{:<10} {:>10} {:>10} {:>10}  over sunzi", "", "least", "median", "most"),
        row("sunzi", seconds, String::new()),
    ];
    for baseline in baselines {
        let wrong = if baseline.checked { "" } else { "  WRONG RESULT" };
        let last = format!("{:.2}{wrong}  {}; {}", baseline.ratio, baseline.form, counted(baseline.runs, "run"));
        lines.push(row(baseline.name, &baseline.seconds, last));
    }
    lines
}

/// The report for people.
pub fn table(report: &BenchReport) -> String {
    let mut lines = vec![heading(report)];
    lines.extend(cut(report));
    lines.extend(rows_of_sides(&report.seconds, &report.baselines));
    let parts = report.phases.0.iter().map(|(name, seconds)| format!("{name} {}", format_seconds(*seconds)));
    let parts = parts.collect::<Vec<_>>();
    if !parts.is_empty() {
        lines.push(format!("phases     {}", parts.join(", ")));
    }
    lines.extend(report.devices.iter().map(device));
    lines.extend(report.tiles.iter().map(tiles));
    lines.extend(limits(report));
    if let Some(core) = openblas::core() {
        lines.push(format!("openblas   {core} kernels"));
    }
    let planned = report.planned_bytes.map_or(String::new(), |bytes| format!("planned {}, ", format_bytes(bytes)));
    lines.push(format!("memory     {planned}peak {}", format_bytes(report.peak_bytes)));
    let verdict = if report.checked { "every run right" } else { "WRONG" };
    lines
        .push(format!("answers    {verdict}: largest error {:.3} of the bound in sampled entries", report.worst_error));
    lines.join("\n")
}

fn heading(report: &BenchReport) -> String {
    format!(
        "{} {} x {}, {} bits, {}, kernel {}",
        report.operation,
        report.rows,
        report.cols,
        report.precision_bits,
        counted(report.threads, "thread"),
        report.kernel,
    )
}

/// The sizes of the parts of the work, where they are known.
fn cut(report: &BenchReport) -> Option<String> {
    report.primes.map(|primes| format!("{:<10} {primes} primes{}", "cut", report.cut.describe()))
}

/// A time divided by a limit, with three digits or more.
fn times(ratio: f64) -> String {
    if ratio < 9.9995 { format!("{ratio:.3}") } else { format!("{ratio:.1}") }
}

/// The work of a device.
fn device(report: &DeviceReport) -> String {
    let DeviceReport { kind, index, planes, device_bytes, traffic, seconds, ranks, .. } = report;
    format!(
        "{kind} {index:<5} {planes} planes in {}: products {}, conversions {}, reconstruction and rounding {}; {} of \
         its memory{}, {} copied to it, {} copied from it",
        format_seconds(seconds.total),
        format_seconds(seconds.product),
        format_seconds(seconds.to_residues),
        format_seconds(seconds.reconstruct + seconds.round),
        format_bytes(*device_bytes),
        shared(*ranks),
        format_bytes(traffic.h2d_bytes),
        format_bytes(traffic.d2h_bytes),
    )
}

/// The moves of the device of a factorisation.
fn tiles(report: &TileTraffic) -> String {
    let moved = report.traffic.h2d_bytes + report.traffic.d2h_bytes;
    let spared = 100.0 * (1.0 - moved as f64 / report.baseline_bytes.max(1) as f64);
    format!(
        "{} {:<5} updates by {}, {} moduli: {} copied to it, {} copied from it, {spared:.1} % less than without \
         resident tiles; {} of its memory{}",
        report.device.kind,
        report.device.index,
        report.kernel,
        report.moduli,
        format_bytes(report.traffic.h2d_bytes),
        format_bytes(report.traffic.d2h_bytes),
        format_bytes(report.device_bytes),
        shared(report.ranks),
    )
}

/// The other users of a device.
fn shared(ranks: usize) -> String {
    if ranks > 1 { format!(" (shared by {ranks} ranks)") } else { String::new() }
}

/// The limit with the kernel of this run, then the limit of the machine where another kernel is faster.
fn limits(report: &BenchReport) -> Vec<String> {
    if report.on_devices {
        return vec!["limit      not known on devices: sunzi gpu-check compares with plain products".into()];
    }
    let reading = report
        .read_bytes_per_second
        .map_or(String::new(), |rate| format!(", {}/s read", format_bytes(rate.median as u64)));
    let line = |name: &str, kernel: &str, remark: &str, [seconds, ratio]: [f64; 2], rate: &Spread| {
        let (seconds, giga) = (format_seconds(seconds), rate.median / 1e9);
        [
            format!("{name:<10} {seconds} with {kernel}{remark}: sunzi takes {} times that", times(ratio)),
            format!("{:<10} ({giga:.2} G multiply-adds per second modulo one prime{reading})", ""),
        ]
    };
    let (Some(seconds), Some(ratio), Some(kernel), Some(rate)) =
        (report.limit_seconds, report.limit_ratio, report.limit_kernel, &report.multiply_adds_per_second)
    else {
        return vec!["limit      not known: no work, or no instructions with a measured rate".into()];
    };
    let machine = line("machine", kernel, ", its fastest kernel", [seconds, ratio], rate);
    let own = (report.kernel_limit_seconds, report.kernel_limit_ratio, &report.kernel_multiply_adds_per_second);
    match own {
        (Some(own), Some(own_ratio), Some(own_rate)) => {
            let own = line("limit", report.kernel, ", the kernel at work", [own, own_ratio], own_rate);
            let machine = machine.into_iter().filter(|_| kernel != report.kernel);
            own.into_iter().chain(machine).collect()
        }
        _ => {
            let unknown = format!("{:<10} not known for {}, the kernel at work", "limit", report.kernel);
            [unknown].into_iter().chain(machine).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of which only the limits are used.
    fn report(kernel: &'static str, own: Option<f64>) -> BenchReport {
        let (seconds, rate) = (Spread::of(&[2.0]), |rate| Spread::of(&[rate]));
        BenchReport {
            operation: "syrk",
            rows: 4,
            cols: 4,
            precision_bits: 64,
            working_bits: None,
            threads: 1,
            kernel,
            accuracy: Accuracy::Entrywise,
            self_check: false,
            primes: None,
            cut: Cut::Unknown {},
            runs: 1,
            seconds,
            phases: Phases::default(),
            kernel_limit_seconds: own,
            kernel_limit_ratio: own.map(|own| 2.0 / own),
            kernel_multiply_adds_per_second: own.map(|_| rate(29.5e9)),
            limit_seconds: Some(0.02),
            limit_ratio: Some(100.0),
            limit_kernel: Some("i8"),
            multiply_adds_per_second: Some(rate(3.3e12)),
            read_bytes_per_second: None,
            planned_bytes: None,
            peak_bytes: 0,
            checked: true,
            worst_error: 0.0,
            baselines: Vec::new(),
            devices: Vec::new(),
            tiles: Vec::new(),
            on_devices: false,
            machine: Machine::look(),
        }
    }

    #[test]
    fn the_limit_of_the_kernel_at_work_comes_first() {
        let machine = [
            "machine    20.0 ms with i8, its fastest kernel: sunzi takes 100.0 times that",
            "           (3300.00 G multiply-adds per second modulo one prime)",
        ];
        let own = [
            "limit      1.60 s with ifma52, the kernel at work: sunzi takes 1.250 times that",
            "           (29.50 G multiply-adds per second modulo one prime)",
        ];
        assert_eq!(limits(&report("ifma52", Some(1.6))), [own, machine].concat());
        let unknown = "limit      not known for f64, the kernel at work";
        assert_eq!(limits(&report("f64", None)), [&[unknown][..], &machine[..]].concat());
        // One pair of lines where the kernel at work is the fastest.
        assert_eq!(limits(&report("i8", Some(0.02))).len(), 2);
        assert!(own.iter().chain(&machine).all(|line| line.len() <= 80));
    }
}
