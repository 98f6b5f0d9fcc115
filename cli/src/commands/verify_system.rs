//! `sunzi verify cholesky`, `lu`, `solve`, `trsm` and `inverse`: checks a stored factor or solution. It succeeds if and
//! only if every tested residual is within its bound.

use super::trsm::scalar;
use super::verify::{counted_from_one, tests_made};
use crate::args::{SystemCheck, VerifyCholesky, VerifyInverse, VerifyLu, VerifySolve, VerifyTrsm};
use crate::files::has_blocks;
use crate::input::{Announced, Reader};
use crate::progress::{Stage, product_seconds};
use crate::session::{Session, Work};
use crate::signals::{Mode, in_mode};
use crate::triangles::FACTORED;
use serde_json::json;
use std::path::Path;
use std::time::Instant;
use sunzi::advanced::store::available_bytes;
use sunzi::io::MatrixFile;
use sunzi::verify::{FileFactorOptions, Verification, VerifyOptions};
use sunzi::verify::{verify_cholesky, verify_cholesky_files, verify_inverse, verify_lu, verify_solve, verify_trsm};
use sunzi::{Context, Error, IndexBase, Lu, Matrix, Result, Side, Uplo};
use sunzi_session::engine::limited;
use sunzi_session::session::Session as _;

/// A stored result and the equation that it should satisfy.
struct Claim<'a> {
    start: Instant,
    choices: &'a SystemCheck,
    /// The file of the result, whose precision is that of the bound.
    result: &'a Path,
    operation: &'static str,
    /// The equation that it should satisfy, as a formula.
    equation: &'static str,
}

pub fn cholesky(session: &mut Session, config: &VerifyCholesky) -> Result<()> {
    let is_upper = config.triangle.uplo() == Some(Uplo::Upper);
    let equation = if is_upper { "A = U^T U" } else { "A = L L^T" };
    let claim =
        Claim { start: Instant::now(), choices: &config.choices, result: &config.l, operation: "cholesky", equation };
    let reader = claim.reader(session)?.in_full(0);
    claim.expect(session, &reader, &[&config.a, &config.l]);
    let triangle = config.triangle.uplo();
    let found = if is_above_memory(&reader, config)? {
        session.follow_phases();
        FACTORED.check_file(&MatrixFile::open(&config.a)?, config.triangle.named())?;
        claim.decide(session, &reader, |ctx, bits, options| {
            let options = FileFactorOptions::new().triangle(triangle).seed(options.seed);
            verify_cholesky_files(ctx, (&config.a, &config.l), bits, &options)
        })?
    } else {
        let a = reader.symmetric(&config.a, config.triangle.named(), &FACTORED)?;
        let l = reader.matrix(&config.l)?;
        let uplo = triangle.unwrap_or_default();
        claim.decide(session, &reader, |ctx, bits, options| {
            verify_cholesky(ctx, &a, &l, bits, &options.clone().uplo(uplo))
        })?
    };
    let place = |(row, col)| format!(" at {}", IndexBase::One.place(row, col));
    let place = found.worst_place.map_or(String::new(), place);
    let (entries, worst, seed) = (found.entry_count, found.worst_entry, found.seed);
    let tests = format!("all {entries} entries; largest residual {worst:.3} of the bound{place}; seed {seed}");
    let bits = reader.precision_bits();
    claim.report(session, bits, &found, &tests)
}

/// Whether both files are read block by block: where the matrices would leave little room, under the memory limit or on
/// this machine.
fn is_above_memory(reader: &Reader<'_>, config: &VerifyCholesky) -> Result<bool> {
    let files = [config.a.as_path(), config.l.as_path()];
    if !files.iter().all(|path| has_blocks(path)) {
        return Ok(false);
    }
    let Some(matrices) = reader.announced(&files)? else { return Ok(false) };
    let bytes = matrices.iter().map(Announced::bytes).fold(0, u64::saturating_add);
    let limit = config.choices.engine.budget(0).map(|budget| budget.left()).or_else(available_bytes);
    Ok(limit.is_some_and(|limit| bytes > limit / 2))
}

pub fn lu(session: &mut Session, config: &VerifyLu) -> Result<()> {
    let claim = Claim {
        start: Instant::now(),
        choices: &config.choices,
        result: &config.l,
        operation: "lu",
        equation: "P A = L U",
    };
    let reader = claim.reader(session)?.in_full(0);
    claim.expect(session, &reader, &[&config.a, &config.l, &config.u]);
    let a = reader.matrix(&config.a)?;
    let (l, u) = (reader.matrix(&config.l)?, reader.matrix(&config.u)?);
    let factors = Lu::from_factors(in_one(&l, &u)?, row_order(&reader.matrix(&config.p)?)?)?;
    let found = claim.decide(session, &reader, |ctx, bits, options| verify_lu(ctx, &a, &factors, bits, options))?;
    let bits = reader.precision_bits();
    claim.report(session, bits, &found, &tests_made(&found))
}

/// `L` and `U` in one matrix; they must be a unit lower and an upper triangle of the same order.
fn in_one(l: &Matrix, u: &Matrix) -> Result<Matrix> {
    let shapes = [(l.rows(), l.cols()), (u.rows(), u.cols())];
    if shapes[0] != shapes[1] {
        return Err(Error::shape_mismatch("verify lu", shapes[0], shapes[1]));
    }
    let (order, operation) = (l.rows(), "verify lu");
    if l.cols() != order {
        return Err(Error::NotSquare { operation, rows: order, cols: l.cols() });
    }
    let wrong = |name: &str, kind: &str, place: (usize, usize)| {
        let place = IndexBase::One.place(place.0, place.1);
        let message = format!("{operation}: the entry of {name} at {place} is not that of {kind} triangular matrix");
        Err(Error::verification(message))
    };
    let mut entries = Matrix::zeros(order, order, l.precision_bits().max(u.precision_bits()))?;
    for (row, col) in (0..order).flat_map(|col| (0..order).map(move |row| (row, col))) {
        let (lower, upper) = (l.float(row, col), u.float(row, col));
        if row <= col && lower != u32::from(row == col) {
            return wrong("L", "a unit lower", (row, col));
        }
        if row > col && !upper.is_zero() {
            return wrong("U", "an upper", (row, col));
        }
        entries.set_float(row, col, if row > col { &lower } else { &upper })?;
    }
    Ok(entries)
}

/// The numbers of the rows, counted from 0, of a row or a column of numbers counted from 1.
fn row_order(numbers: &Matrix) -> Result<Vec<usize>> {
    let count = numbers.rows() * numbers.cols();
    if numbers.rows() != count && numbers.cols() != count {
        let (rows, cols) = (numbers.rows(), numbers.cols());
        let message = format!("the order of the rows must be one row or one column, but it is {rows} x {cols}");
        return Err(Error::InvalidArgument(message));
    }
    let number = |at: usize| {
        let value = if numbers.cols() == 1 { numbers.float(at, 0) } else { numbers.float(0, at) };
        let integer = value.to_integer().filter(|integer| *integer == value && *integer >= 1 && *integer <= count);
        let wrong =
            || format!("entry {} of the order of {count} rows is {value}: it must be from 1 to {count}", at + 1);
        integer.and_then(|integer| integer.to_usize()).map(|number| number - 1).ok_or_else(wrong)
    };
    (0..count).map(number).collect::<std::result::Result<_, _>>().map_err(Error::InvalidArgument)
}

pub fn solve(session: &mut Session, config: &VerifySolve) -> Result<()> {
    let claim = Claim {
        start: Instant::now(),
        choices: &config.choices,
        result: &config.x,
        operation: "solve",
        equation: "A X = B",
    };
    let reader = claim.reader(session)?.in_full(0);
    claim.expect(session, &reader, &[&config.a, &config.b, &config.x]);
    let a = reader.symmetric(&config.a, config.triangle.named(), &FACTORED)?;
    let (b, x) = (reader.matrix(&config.b)?, reader.matrix(&config.x)?);
    let found = claim.decide(session, &reader, |ctx, bits, options| verify_solve(ctx, (&a, &b), &x, bits, options))?;
    let bits = reader.precision_bits();
    claim.report(session, bits, &found, &tests_made(&found))
}

pub fn trsm(session: &mut Session, config: &VerifyTrsm) -> Result<()> {
    let equation = match config.system.side {
        Side::Left => "op(T) X = alpha B",
        Side::Right => "X op(T) = alpha B",
    };
    let claim =
        Claim { start: Instant::now(), choices: &config.choices, result: &config.x, operation: "trsm", equation };
    let reader = claim.reader(session)?;
    let alpha = scalar(&config.system, reader.precision_bits())?;
    claim.expect(session, &reader, &[&config.t, &config.b, &config.x]);
    let (t, b, x) = (reader.matrix(&config.t)?, reader.matrix(&config.b)?, reader.matrix(&config.x)?);
    let system = config.system.options(alpha.as_ref());
    let found = claim
        .decide(session, &reader, |ctx, bits, options| verify_trsm(ctx, (&t, &b), &x, bits, (&system, options)))?;
    let bits = reader.precision_bits();
    claim.report(session, bits, &found, &tests_made(&found))
}

pub fn inverse(session: &mut Session, config: &VerifyInverse) -> Result<()> {
    let claim = Claim {
        start: Instant::now(),
        choices: &config.choices,
        result: &config.x,
        operation: "inverse",
        equation: "A X = I",
    };
    let reader = claim.reader(session)?.in_full(0);
    claim.expect(session, &reader, &[&config.a, &config.x]);
    let a = reader.symmetric(&config.a, config.triangle.named(), &FACTORED)?;
    let x = reader.matrix(&config.x)?;
    let found = claim.decide(session, &reader, |ctx, bits, options| verify_inverse(ctx, &a, &x, bits, options))?;
    let bits = reader.precision_bits();
    claim.report(session, bits, &found, &tests_made(&found))
}

impl Claim<'_> {
    /// Reads at the precision of the result.
    fn reader<'b>(&'b self, session: &'b Session) -> Result<Reader<'b>> {
        Reader::new(session, &self.choices.engine, &self.choices.precision, self.result)
    }

    /// Announces the stages to the session: the files that are read, then the tests.
    fn expect(&self, session: &Session, reader: &Reader<'_>, files: &[&Path]) {
        let bits = reader.precision_bits();
        session.expect(files, bits, |infos| {
            let order = infos[0].rows;
            let seconds = match self.operation {
                // Row `i` of the factor has `i` entries: a third of a product of full rows.
                "cholesky" => product_seconds(order, order, order, true, bits) / 3.0,
                // A few big products for each entry.
                _ => product_seconds(order, order, 8, false, bits.saturating_mul(2)),
            };
            Work { stages: vec![Stage::calls("verify", seconds)], output: None }
        });
    }

    /// Makes the tests within the memory limit.
    fn decide(
        &self,
        session: &Session,
        reader: &Reader<'_>,
        verify: impl FnOnce(&Context, u32, &VerifyOptions) -> Result<Verification>,
    ) -> Result<Verification> {
        session.stage("verify");
        let engine = &self.choices.engine;
        let (builder, restate) = limited(session.context(engine)?, engine.budget(reader.held_bytes()));
        let (ctx, options) = (builder.build()?, VerifyOptions::new().seed(self.choices.seed));
        in_mode(Mode::Computing, || verify(&ctx, reader.precision_bits(), &options).map_err(&restate))
    }

    /// Writes the report and the line.
    fn report(&self, session: &mut Session, precision_bits: u32, found: &Verification, tests: &str) -> Result<()> {
        session.finish_report(&json!({
            "operation": "verify",
            "product": self.operation,
            "precision_bits": precision_bits,
            "verification": counted_from_one(found),
            "seconds": self.start.elapsed().as_secs_f64(),
        }))?;
        session.say(&format!("{}: {} to {precision_bits} bits ({tests})", self.result.display(), self.equation))
    }
}
