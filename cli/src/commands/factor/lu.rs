//! `sunzi lu`: any square matrix in, its LU factors, determinant or condition out.
//!
//! Nothing is written unless all went well. Independent of: how a matrix is factored.

use super::general::{LU_WORK, description, figures};
use super::needs::usual_range_bits;
use super::steps::Steps;
use crate::args::{Lu as LuArgs, Output};
use crate::files::{header, shown_output};
use crate::input::Reader;
use crate::progress::{Stage, factor_seconds};
use crate::session::{Session, Work, check_output};
use crate::signals::{Mode, in_mode};
use rug::Float;
use serde_json::json;
use std::time::Instant;
use sunzi::estimate::InputRounding;
use sunzi::io::{FileInfo, Symmetry};
use sunzi::plans::plan_lu;
use sunzi::report::LuReport;
use sunzi::{Error, Lu, LuOptions, Matrix, Outcome, Result, lu_with};
use sunzi_session::engine::least_bytes;
use sunzi_session::memory::peak_resident_bytes;
use sunzi_session::session::Session as _;
use sunzi_session::units::format_seconds;

/// Bits of the numbers of rows.
const ROW_BITS: u32 = 64;

/// Factors, and the numbers that were requested of them.
struct Factored {
    factors: Lu,
    report: LuReport,
    determinant: Option<Determinant>,
    condition: Option<Float>,
    seconds: f64,
}

/// A determinant, and how many of its digits are proven.
struct Determinant {
    value: Float,
    digits: f64,
}

/// A part of the factors that is written.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Lower,
    Upper,
    RowOrder,
}

/// A part, and where it is written.
struct WrittenPart {
    part: Part,
    output: Output,
}

pub fn run(session: &mut Session, config: &LuArgs) -> Result<()> {
    let outputs = outputs(config);
    outputs.iter().try_for_each(|written| check_output(&written.output))?;
    let reader = Reader::new(session, &config.engine, &config.precision(), &config.a)?.in_full(0);
    if let Some(FileInfo { rows, cols, .. }) = header(&config.a)? {
        check_square(rows, cols)?;
    }
    reader.admit(&[&config.a], |infos| {
        let FileInfo { rows, .. } = infos[0];
        let (options, bits) = (options(config).range_bits(usual_range_bits(rows)), reader.precision_bits());
        let matrix_bits = reader.bits_of(&infos[0]);
        least_bytes(session.context(&config.engine)?, |ctx| plan_lu(ctx, rows, matrix_bits, bits, &options))
    })?;
    expect(session, config, &reader, &outputs);
    let start = Instant::now();
    let a = reader.matrix(&config.a)?;
    check_square(a.rows(), a.cols())?;
    let rounding = InputRounding::new().matrix_bits(reader.rounded_bits());
    let input_seconds = start.elapsed().as_secs_f64();
    let steps = Steps::new(session, &config.engine, reader.held_bytes())?;
    let bits = reader.precision_bits();
    session.stage("factor");
    let factored = in_mode(Mode::Computing, || factor(&steps, config, &a, bits, rounding))?;
    drop(a);
    let start = Instant::now();
    for WrittenPart { part, output } in &outputs {
        session.write(output, &factored.part(*part)?, Symmetry::General)?;
    }
    finish(session, config, &factored, [input_seconds, start.elapsed().as_secs_f64()])
}

fn options(config: &LuArgs) -> LuOptions {
    LuOptions::new().accuracy(config.accuracy)
}

/// The parts that are written, and where.
fn outputs(config: &LuArgs) -> Vec<WrittenPart> {
    let parts =
        [(Part::Lower, &config.lower_factor), (Part::Upper, &config.upper_factor), (Part::RowOrder, &config.row_order)];
    let output = |path: &std::path::PathBuf| Output { path: path.clone(), hex: config.hex };
    parts.into_iter().filter_map(|(part, path)| Some(WrittenPart { part, output: output(path.as_ref()?) })).collect()
}

fn check_square(rows: usize, cols: usize) -> Result<()> {
    if rows == cols { Ok(()) } else { Err(Error::NotSquare { operation: "lu", rows, cols }) }
}

/// Announces the stages to the session.
fn expect(session: &Session, config: &LuArgs, reader: &Reader<'_>, outputs: &[WrittenPart]) {
    let bits = reader.precision_bits();
    session.expect(&[&config.a], bits, |infos| {
        let order = infos[0].rows;
        let stages = vec![Stage::calls("factor", LU_WORK * factor_seconds(order, bits))];
        let matrix = outputs.iter().find(|written| written.part != Part::RowOrder);
        Work { stages, output: matrix.map(|written| (written.output.path.as_path(), (order, order))) }
    });
}

fn factor(steps: &Steps<'_>, config: &LuArgs, a: &Matrix, bits: u32, rounding: InputRounding) -> Result<Factored> {
    let start = Instant::now();
    let Outcome { result: factors, report } = steps.run(|ctx| lu_with(ctx, a, bits, &options(config)))?;
    steps.hold(factors.factors());
    let determinant = || -> Result<Determinant> {
        let prove = |ctx: &sunzi::Context| match factors.certify(ctx, a, rounding)? {
            Some(certificate) => certificate.det_digits(ctx),
            None => Ok(0.0),
        };
        Ok(Determinant { value: factors.det()?, digits: steps.run(prove)? })
    };
    let determinant = config.det.then(determinant).transpose()?;
    let condition = || steps.run(|ctx| factors.condition_estimate(ctx, &a.one_norm()));
    let condition = config.condition.then(condition).transpose()?;
    Ok(Factored { factors, report, determinant, condition, seconds: start.elapsed().as_secs_f64() })
}

impl Factored {
    fn part(&self, part: Part) -> Result<Matrix> {
        match part {
            Part::Lower => self.factors.lower(),
            Part::Upper => self.factors.upper(),
            Part::RowOrder => {
                let mut order = Matrix::zeros(self.factors.order(), 1, ROW_BITS)?;
                for (place, &row) in self.factors.rows().iter().enumerate() {
                    order.set_f64(place, 0, (row + 1) as f64)?;
                }
                Ok(order)
            }
        }
    }
}

impl Determinant {
    /// All proven digits.
    fn text(&self) -> String {
        let digits = self.digits.floor() as usize;
        match digits {
            0 => format!("determinant of A: about {:.1e}, no digit is proven", self.value),
            _ => {
                let value = self.value.to_string_radix(10, Some(digits));
                format!("determinant of A: {value} ({digits} digits proven)")
            }
        }
    }
}

/// Writes the report and the lines.
fn finish(session: &mut Session, config: &LuArgs, factored: &Factored, files: [f64; 2]) -> Result<()> {
    let Factored { factors, report, determinant, condition, seconds } = factored;
    let (order, precision_bits) = (factors.order(), report.precision_bits);
    let [input_seconds, output_seconds] = files;
    session.finish_report(&json!({
        "operation": "lu",
        "order": order,
        "precision_bits": precision_bits,
        "determinant": determinant.as_ref().map(|determinant| determinant.value.to_string_radix(10, None)),
        "determinant_certified": determinant.as_ref().map(|determinant| determinant.digits),
        "condition": condition.as_ref().map(|value| format!("{value:.6e}")),
        "factorisation": report,
        "seconds": seconds,
        "input_seconds": input_seconds,
        "output_seconds": output_seconds,
        "peak_resident_bytes": peak_resident_bytes(),
    }))?;
    let written = outputs(config).iter().map(|written| shown_output(&written.output.path)).collect::<Vec<_>>();
    let written = if written.is_empty() { String::new() } else { format!("{}: ", written.join(", ")) };
    session.say(&format!(
        "{written}{order} x {order} at {precision_bits} bits ({}) in {} (files {})\n{}",
        figures(report),
        format_seconds(*seconds),
        format_seconds(input_seconds + output_seconds),
        description(report),
    ))?;
    let condition = condition.as_ref().map(|value| format!("condition of A in the 1-norm: about {value:.3e}"));
    session.answer(&determinant.iter().map(Determinant::text).chain(condition).collect::<Vec<_>>())
}
