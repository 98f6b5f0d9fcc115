//! `sunzi solve --sweep`: the time of a solve and the digits of its solution, against the precision and against the
//! number of rows, as a picture and a table.

use super::alone::at_precision;
use super::{ComputedFactor, Factoring, ReadAt, reader};
use crate::files::header;
use crate::session::Session;
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use sunzi::{Error, Result};
use sunzi_session::plot::{Chart, Line, Scale, draw_lines};
use sunzi_session::report::check_writable;
use sunzi_session::session::Session as _;
use sunzi_session::trace::Trace;
use sunzi_session::units::format_seconds;

/// Steps up to the whole precision, and up to all rows.
const STEPS: usize = 8;

/// One solve.
#[derive(Serialize)]
struct SweepPoint {
    rows: usize,
    precision_bits: u32,
    /// `None` where the matrix has no factor at this precision.
    seconds: Option<f64>,
    /// Correct digits of the solution, proven where that was requested; `None` where they are not known, and without a
    /// factor.
    digits: Option<f64>,
}

/// Solves at 1/8, 2/8, ..., 8/8 of the precision, then the leading submatrices with 1/8, 2/8, ..., 8/8 of the rows.
///
/// # Errors
/// [`Error::InvalidArgument`] for a stream, and those of a solve; a matrix without a factor is a point without a time.
pub fn run(session: &mut Session, config: &Factoring, picture: &Path) -> Result<()> {
    if config.factor.precision.automatic().is_some() {
        return Err(Error::InvalidArgument("--sweep requires a precision in bits, not --precision auto".into()));
    }
    check_writable(picture)?;
    let bits = reader(session, config, ReadAt::default())?.precision_bits();
    let infos = config.files().into_iter().map(header).collect::<Result<Option<Vec<_>>>>()?;
    let Some(order) = infos.map(|infos| infos[0].rows) else {
        return Err(Error::InvalidArgument(
            "--sweep reads its files several times, but a stream can be read only once: give files".into(),
        ));
    };
    let at = |bits: u32, rows: usize| point(session, config, bits, rows);
    let by_bits = eighths(bits as usize, 2).map(|bits| at(bits as u32, order)).collect::<Result<Vec<_>>>()?;
    let by_rows = eighths(order, 1).map(|rows| at(bits, rows)).collect::<Result<Vec<_>>>()?;
    session.write_file(&mut || draw(&by_bits, &by_rows, picture))?;
    session.finish_report(&json!({ "operation": "solve_sweep", "by_bits": by_bits, "by_rows": by_rows }))?;
    session.say(&table(&by_bits, &by_rows))?;
    session.say(&format!("{}: time and digits against bits and n", picture.display()))
}

/// 1/8, 2/8, ..., 8/8 of `whole`, but none below `least`.
fn eighths(whole: usize, least: usize) -> impl Iterator<Item = usize> {
    let mut parts = (1..=STEPS).map(|step| (whole * step / STEPS).max(least.min(whole))).collect::<Vec<_>>();
    parts.dedup();
    parts.into_iter()
}

fn point(session: &Session, config: &Factoring, precision_bits: u32, rows: usize) -> Result<SweepPoint> {
    let at = ReadAt { precision_bits: Some(precision_bits), leading_rows: Some(rows), ..ReadAt::default() };
    match at_precision(session, config, at, &mut Trace::begin(None)?) {
        Ok(ComputedFactor { digits, figures, .. }) => {
            let digits = digits.least(config.factor.digits.certified);
            Ok(SweepPoint { rows, precision_bits, seconds: Some(figures.seconds), digits })
        }
        Err(Error::NotPositiveDefinite { .. }) => Ok(SweepPoint { rows, precision_bits, seconds: None, digits: None }),
        Err(error) => Err(error),
    }
}

/// Writes the picture.
fn draw(by_bits: &[SweepPoint], by_rows: &[SweepPoint], path: &Path) -> Result<()> {
    let bits = |point: &SweepPoint| f64::from(point.precision_bits);
    let rows = |point: &SweepPoint| point.rows as f64;
    let charts = [
        digits_chart("correct digits against precision", "bits", by_bits, bits),
        seconds_chart("seconds against precision", "bits", by_bits, bits),
        digits_chart("correct digits against size", "n", by_rows, rows),
        seconds_chart("seconds against size", "n", by_rows, rows),
    ];
    draw_lines(&charts, path)
}

fn digits_chart(
    caption: &'static str,
    count: &'static str,
    all: &[SweepPoint],
    along: impl Fn(&SweepPoint) -> f64,
) -> Chart {
    let points = all.iter().filter_map(|point| Some((along(point), point.digits?))).collect();
    Chart { caption, count, scale: Scale::Linear, lines: vec![Line { label: "digits", points }] }
}

fn seconds_chart(
    caption: &'static str,
    count: &'static str,
    all: &[SweepPoint],
    along: impl Fn(&SweepPoint) -> f64,
) -> Chart {
    let points = all.iter().filter_map(|point| Some((along(point), point.seconds?.max(f64::MIN_POSITIVE).log10())));
    Chart { caption, count, scale: Scale::Logarithmic, lines: vec![Line { label: "solve", points: points.collect() }] }
}

fn table(by_bits: &[SweepPoint], by_rows: &[SweepPoint]) -> String {
    let line = |point: &SweepPoint| {
        let SweepPoint { rows, precision_bits, seconds, digits } = point;
        let digits = match (digits, seconds) {
            (Some(digits), _) => format!("{:.0}", digits.floor()),
            (None, Some(_)) => "not known".into(),
            (None, None) => String::new(),
        };
        let seconds = seconds.map_or("no factor".into(), format_seconds);
        format!("{rows:>10} {precision_bits:>10} {seconds:>12} {digits:>10}").trim_end().into()
    };
    let heading = format!("{:>10} {:>10} {:>12} {:>10}", "n", "bits", "time", "digits");
    [heading].into_iter().chain(by_bits.iter().chain(by_rows).map(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_rise_to_the_whole() {
        assert_eq!(eighths(800, 2).collect::<Vec<_>>(), [100, 200, 300, 400, 500, 600, 700, 800]);
        assert_eq!(eighths(3, 1).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(eighths(0, 1).collect::<Vec<_>>(), [0]);
    }
}
