//! Times of an operation at quarters of a precision and of its sizes: a table, and a picture of the times against bits
//! and n.

use super::report::BenchReport;
use super::{Bench, measure};
use crate::baselines::Operation;
use serde::Serialize;
use std::path::Path;
use sunzi::Result;
use sunzi_session::plot::{Chart, Line, Scale, draw_lines};
use sunzi_session::report::check_writable;
use sunzi_session::session::Session;
use sunzi_session::units::format_seconds;

/// Steps up to the whole precision, and up to the whole sizes.
const STEPS: usize = 4;

/// The contents of the report.
#[derive(Serialize)]
struct SweepReport {
    operation: &'static str,
    /// Times at parts of the precision.
    by_bits: Vec<BenchReport>,
    /// Times at parts of the sizes.
    by_rows: Vec<BenchReport>,
}

/// Times an operation in this process at parts of its precision and sizes, reports the times, and draws them.
///
/// # Errors
/// The errors of [`super::run`] and of the picture; timing stops after a wrong result.
pub fn run(session: &mut dyn Session, config: &Bench, picture: &Path) -> Result<()> {
    check_writable(picture)?;
    session.hide_progress();
    let by_bits = parts(config.precision_bits as usize, 2)
        .map(|bits| measure(session, &Bench { precision_bits: bits as u32, ..config.clone() })?.into_right());
    let by_bits = by_bits.collect::<Result<Vec<_>>>()?;
    let by_rows = parts(config.rows, 0).map(|rows| measure(session, &smaller(config, rows))?.into_right());
    let by_rows = by_rows.collect::<Result<Vec<_>>>()?;
    let report = SweepReport { operation: config.operation.name(), by_bits, by_rows };
    session.write_file(&mut || draw(&report, picture))?;
    session.finish_report(&report)?;
    session.say(&format!("{}\n{}: times against bits and n", table(&report), picture.display()))
}

/// Quarters of `whole`, but none below `least`.
fn parts(whole: usize, least: usize) -> impl Iterator<Item = usize> {
    let mut parts = (1..=STEPS).map(|step| (whole * step / STEPS).max(least)).collect::<Vec<_>>();
    parts.dedup();
    parts.into_iter()
}

/// The same with fewer rows, and with fewer columns unless these are right-hand sides of a solve.
fn smaller(config: &Bench, rows: usize) -> Bench {
    let cols = match config.operation {
        Operation::Solve => config.cols,
        _ => (config.cols * rows).checked_div(config.rows).unwrap_or(config.cols),
    };
    Bench { rows, cols, ..config.clone() }
}

/// The times of Sunzi and of all baselines, as one line each.
fn lines(all: &[BenchReport], along: impl Fn(&BenchReport) -> f64) -> Vec<Line> {
    let height = |seconds: f64| seconds.max(f64::MIN_POSITIVE).log10();
    let ours = all.iter().map(|report| (along(report), height(report.seconds.median)));
    let mut lines = vec![Line { label: "sunzi", points: ours.collect() }];
    for (at, baseline) in all.first().iter().flat_map(|report| report.baselines.iter().enumerate()) {
        let points = all.iter().map(|report| (along(report), height(report.baselines[at].seconds.median)));
        lines.push(Line { label: baseline.name, points: points.collect() });
    }
    lines
}

fn draw(report: &SweepReport, path: &Path) -> Result<()> {
    let chart = |caption, count, lines| Chart { caption, count, scale: Scale::Logarithmic, lines };
    let bits = lines(&report.by_bits, |report| f64::from(report.precision_bits));
    let rows = lines(&report.by_rows, |report| report.rows as f64);
    draw_lines(&[chart("seconds against precision", "bits", bits), chart("seconds against size", "n", rows)], path)
}

/// Median times, a line for each size.
fn table(report: &SweepReport) -> String {
    let all = || report.by_bits.iter().chain(&report.by_rows);
    let names = report.by_bits.iter().take(1).flat_map(|report| &report.baselines).map(|baseline| baseline.name);
    let names = ["sunzi"].into_iter().chain(names).map(|name| format!(" {name:>10}")).collect::<String>();
    let mut lines = vec![format!("{:<10} {:>8} {:>8} {:>8}{names}", report.operation, "rows", "cols", "bits")];
    lines.extend(all().map(|report| {
        let BenchReport { rows, cols, precision_bits, seconds, baselines, .. } = report;
        let times = [seconds].into_iter().chain(baselines.iter().map(|baseline| &baseline.seconds));
        let times = times.map(|seconds| format!(" {:>10}", format_seconds(seconds.median))).collect::<String>();
        format!("{:<10} {rows:>8} {cols:>8} {precision_bits:>8}{times}", "")
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_rise_to_the_whole() {
        assert_eq!(parts(1024, 2).collect::<Vec<_>>(), [256, 512, 768, 1024]);
        assert_eq!(parts(3, 2).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(parts(0, 0).collect::<Vec<_>>(), [0]);
    }
}
