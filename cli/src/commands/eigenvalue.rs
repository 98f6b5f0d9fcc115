//! `sunzi eigenvalue`: intervals that contain the smallest and the largest eigenvalue of a symmetric matrix.
//!
//! Promise: an interval contains the eigenvalue of the matrix in the file, roundings of its decimals included, and so
//! do the decimals that are printed; decimals of a file that states its precision stand for numbers of that precision.
//! Independent of: the computation of an interval.

use crate::args::Eigenvalue;
use crate::input::Reader;
use crate::progress::{Stage, factor_seconds};
use crate::session::{Session, Work};
use crate::signals::{Mode, in_mode};
use crate::triangles::SPECTRAL;
use rug::Float;
use rug::float::Round;
use serde_json::{Value, json};
use std::time::Instant;
use sunzi::eigenvalue::{
    EigenvalueInterval, EigenvalueOptions, Extreme, extreme_eigenvalue_with, pencil_eigenvalue_with,
    plan_extreme_eigenvalue,
};
use sunzi::report::EigenvalueReport;
use sunzi::{Context, Matrix, Outcome, Result, SymmetricMatrix};
use sunzi_session::engine::{least_bytes, limited};
use sunzi_session::memory::peak_resident_bytes;
use sunzi_session::session::Session as _;
use sunzi_session::units::{counted, format_seconds};

/// Digits that are printed, at most; a report has all.
const SHOWN_DIGITS: usize = 40;

/// The largest number of bits of an interval that doubles may prove.
const DOUBLES_BITS: u32 = 32;

/// Bits of a factorisation beyond those of the interval.
const SPARE_BITS: u32 = 64;

/// The operands.
struct SpectralInputs {
    a: SymmetricMatrix,
    factor: Option<Matrix>,
    /// The fewest bits to which a number of A was rounded when the file was read.
    rounded_bits: Option<u32>,
    /// Whether numbers were rounded by which the intervals are not widened: those of a pencil.
    as_read: bool,
}

/// An end of the spectrum.
struct EigenvalueEnd {
    which: Extreme,
    interval: EigenvalueInterval,
    report: EigenvalueReport,
}

pub fn run(session: &mut Session, config: &Eigenvalue) -> Result<()> {
    let start = Instant::now();
    let reader = Reader::new(session, &config.engine, &config.precision(), &config.a)?.in_full(0);
    let bits = reader.precision_bits();
    let files = [&config.a].into_iter().chain(&config.factor).map(AsRef::as_ref).collect::<Vec<_>>();
    session.expect(&files, bits, |infos| {
        let seconds = factor_seconds(infos[0].rows, bits + SPARE_BITS) * (2 * config.which.each().len()) as f64;
        Work { stages: vec![Stage::calls("eigenvalue", seconds)], output: None }
    });
    admit(session, config, &reader)?;
    let operands = read(session, config, &reader)?;
    let input_seconds = start.elapsed().as_secs_f64();
    let (builder, restate) = limited(session.context(&config.engine)?, config.engine.budget(reader.held_bytes()));
    let ctx = builder.build()?;
    session.stage("eigenvalue");
    let start = Instant::now();
    let of = |&which: &Extreme| find(&ctx, &operands, bits, which).map_err(&restate);
    let ends = in_mode(Mode::Computing, || config.which.each().iter().map(of).collect::<Result<Vec<_>>>())?;
    let seconds = start.elapsed().as_secs_f64();
    let definiteness = definiteness(&ends);
    session.finish_report(&json!({
        "operation": if operands.factor.is_some() { "pencil_eigenvalue" } else { "extreme_eigenvalue" },
        "order": operands.a.rows(),
        "precision_bits": bits,
        "rounded_bits": operands.rounded_bits,
        "eigenvalues": ends.iter().map(|end| report(end, bits)).collect::<Vec<_>>(),
        "definiteness": definiteness,
        "threads": ctx.threads(),
        "seconds": seconds,
        "input_seconds": input_seconds,
        "peak_resident_bytes": peak_resident_bytes(),
    }))?;
    session.say(&format!(
        "{}: {order} x {order}, intervals of {bits} bits ({}) in {} (files {})",
        config.a.display(),
        counted(ctx.threads(), "thread"),
        format_seconds(seconds),
        format_seconds(input_seconds),
        order = operands.a.rows(),
    ))?;
    let lines = ends.iter().flat_map(|end| lines(end, bits));
    let proven = if operands.as_read { "proven for the matrices as they were read" } else { "proven" };
    session.answer(&lines.chain(definiteness.map(|words| format!("{words} ({proven})"))).collect::<Vec<_>>())
}

/// Refuses a memory limit that the search cannot run in, by the header of the file and before it is read; a search in
/// doubles, and one with a factor, is refused later.
fn admit(session: &Session, config: &Eigenvalue, reader: &Reader<'_>) -> Result<()> {
    let bits = reader.precision_bits();
    if config.factor.is_some() || bits <= DOUBLES_BITS {
        return Ok(());
    }
    reader.admit(&[&config.a], |infos| {
        let (order, matrix_bits) = (infos[0].rows, reader.bits_of(&infos[0]));
        least_bytes(session.context(&config.engine)?, |ctx| plan_extreme_eigenvalue(ctx, order, matrix_bits, bits))
    })
}

/// Reads the operands; the interval does not include roundings of a factor when its file is read.
fn read(session: &Session, config: &Eigenvalue, reader: &Reader<'_>) -> Result<SpectralInputs> {
    let a = reader.symmetric(&config.a, config.triangle.named(), &SPECTRAL)?;
    let rounded_bits = reader.rounded_bits();
    let factor = config.factor.as_ref().map(|path| reader.matrix(path)).transpose()?;
    let rounded = rounded_bits.into_iter().chain(reader.rounded_bits()).min().filter(|_| factor.is_some());
    if let Some(bits) = rounded {
        session.note(&format!(
            "the intervals are valid for the matrices as they were read, with decimals rounded to {bits} bits"
        ));
    }
    Ok(SpectralInputs { a, factor, rounded_bits, as_read: rounded.is_some() })
}

/// The interval of one end, widened by the bound on the change of an eigenvalue of A by the rounding of decimals.
fn find(ctx: &Context, operands: &SpectralInputs, bits: u32, which: Extreme) -> Result<EigenvalueEnd> {
    let SpectralInputs { a, factor, rounded_bits, .. } = operands;
    let options = EigenvalueOptions::new().which(which);
    let outcome = match factor {
        Some(factor) => pencil_eigenvalue_with(ctx, factor, a, bits, &options),
        None => extreme_eigenvalue_with(ctx, a, bits, &options),
    };
    let Outcome { result: interval, report } = outcome?;
    let interval = match (rounded_bits, factor) {
        (Some(rounded_bits), None) => interval.widened_by_rounding(a.as_matrix().view(), *rounded_bits),
        _ => interval,
    };
    Ok(EigenvalueEnd { which, interval, report })
}

/// The sign of all eigenvalues, as far as the intervals decide it. A factor does not change their signs.
fn definiteness(ends: &[EigenvalueEnd]) -> Option<&'static str> {
    let of = |which: Extreme| ends.iter().find(|end| end.which == which).map(|end| &end.interval);
    let (smallest, largest) = (of(Extreme::Smallest), of(Extreme::Largest));
    match (smallest, largest) {
        (Some(least), _) if least.lower > 0 => Some("positive definite"),
        (_, Some(most)) if most.upper < 0 => Some("negative definite"),
        (Some(least), Some(most)) if least.upper < 0 && most.lower > 0 => Some("indefinite"),
        (Some(least), _) if least.lower == 0 => Some("positive semidefinite"),
        (_, Some(most)) if most.upper == 0 => Some("negative semidefinite"),
        (Some(least), _) if least.upper < 0 => Some("not positive semidefinite"),
        (_, Some(most)) if most.lower > 0 => Some("not negative semidefinite"),
        _ => None,
    }
}

fn name(which: Extreme) -> &'static str {
    match which {
        Extreme::Smallest => "smallest",
        Extreme::Largest => "largest",
    }
}

/// A number in decimals, not above it (`Round::Down`) or not below it; exact, or in `digits` digits.
fn decimals(value: &Float, digits: Option<usize>, round: Round) -> String {
    value.to_string_radix_round(10, digits, round)
}

/// The decimals of both ends of an interval, rounded outwards.
fn both_decimals(interval: &EigenvalueInterval, digits: Option<usize>) -> [String; 2] {
    [decimals(&interval.lower, digits, Round::Down), decimals(&interval.upper, digits, Round::Up)]
}

fn report(end: &EigenvalueEnd, bits: u32) -> Value {
    let [lower, upper] = both_decimals(&end.interval, Some(digits_of(bits)));
    let EigenvalueReport { working_bits, lanczos_steps, factorisations, seconds, planned_bytes, .. } = end.report;
    json!({
        "which": name(end.which),
        "lower": lower,
        "upper": upper,
        "working_bits": working_bits,
        "lanczos_steps": lanczos_steps,
        "factorisations": factorisations,
        "seconds": seconds,
        "planned_bytes": planned_bytes,
    })
}

/// The number of decimal digits that shows an interval of `bits` bits, with a few more.
fn digits_of(bits: u32) -> usize {
    (f64::from(bits) * std::f64::consts::LOG10_2).ceil() as usize + 3
}

fn lines(end: &EigenvalueEnd, bits: u32) -> [String; 2] {
    let [lower, upper] = both_decimals(&end.interval, Some(digits_of(bits).min(SHOWN_DIGITS)));
    let eigenvalue = format!("{} eigenvalue", name(end.which));
    [format!("{eigenvalue:<20} at least {lower}"), format!("{:<20} at most  {upper}", "")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(which: Extreme, lower: f64, upper: f64) -> EigenvalueEnd {
        let float = |value: f64| Float::with_val(53, value);
        let interval = EigenvalueInterval { lower: float(lower), upper: float(upper) };
        EigenvalueEnd { which, interval, report: EigenvalueReport::default() }
    }

    #[test]
    fn decimals_hold_the_interval() {
        let end = end(Extreme::Smallest, 1.0 / 3.0, 2.0 / 3.0);
        let [lower, upper] = both_decimals(&end.interval, Some(3));
        assert_eq!([lower.as_str(), upper.as_str()], ["3.33e-1", "6.67e-1"]);
        let negative = EigenvalueInterval { lower: -end.interval.upper, upper: -end.interval.lower };
        assert_eq!(both_decimals(&negative, Some(3)), ["-6.67e-1", "-3.33e-1"]);
    }

    #[test]
    fn signs_are_stated_where_the_intervals_decide_them() {
        use Extreme::{Largest, Smallest};
        let of = |least: (f64, f64), most: (f64, f64)| {
            definiteness(&[end(Smallest, least.0, least.1), end(Largest, most.0, most.1)])
        };
        assert_eq!(of((0.5, 0.5), (2.0, 2.0)), Some("positive definite"));
        assert_eq!(of((-3.0, -2.0), (-2.0, -1.0)), Some("negative definite"));
        assert_eq!(of((-3.0, -2.0), (1.0, 2.0)), Some("indefinite"));
        assert_eq!(of((-1e-9, 1e-9), (1.0, 2.0)), Some("not negative semidefinite"));
        assert_eq!(of((-1e-9, 1e-9), (-1e-9, 1e-9)), None);
        assert_eq!(of((0.0, 0.0), (0.0, 0.0)), Some("positive semidefinite"));
        assert_eq!(definiteness(&[end(Smallest, -1.0, -0.5)]), Some("not positive semidefinite"));
        assert_eq!(definiteness(&[end(Largest, -1.0, -0.5)]), Some("negative definite"));
    }
}
