//! Functions of python-flint's balls: results that hold the exact one for every point of the operands.
//!
//! Where an operand is an `arb_mat`, or holds `arb`, the others are points, and the errors of rounding them on reading
//! go into the radii. Results are `arb_mat` where an operand is, else in the container of the first balls.

use crate::call::Call;
use crate::choices::{Named, json, op};
use crate::collector::CollectorPause;
use crate::input::Operand;
use crate::kind::{Container, NumberKind};
use crate::output::{Builder, Shape};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rug::Float;
use rug::float::Round;
use serde::Serialize;
use sunzi::ball::{self, Ball, BallMatrix};
use sunzi::{TrsmOptions, Uplo};

/// Bits of radii.
const RADIUS_BITS: u32 = 64;

/// Operands that are balls, in messages.
pub const OPERANDS: &str = "balls: the radii of the result bound its errors";

/// Whether a call is one on balls: some operand is one, and no exact result of integers is requested.
///
/// # Errors
/// `TypeError`.
pub fn are_wanted(call: &Call<'_>, operands: &[Option<&Operand<'_>>]) -> PyResult<bool> {
    Ok(operands.iter().flatten().any(|operand| operand.is_ball()) && !call.flag("exact")?)
}

/// `alpha P^T P + beta C`.
///
/// # Errors
/// As [`Operand::balls`] and [`Call::run`].
pub fn syrk<'py>(
    mut call: Call<'py>,
    p: Operand<'py>,
    c: Option<Operand<'py>>,
    uplo: Option<Named>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = call.py();
    let c_bits = c.as_ref().and_then(|c| c.natural_bits);
    let bits = call.precision_bits(&[p.natural_bits, c_bits])?;
    let container = container_of(&[Some(&p), c.as_ref()]);
    let orientation = op(call.flag("transpose")?);
    let (alpha, beta) = (scalar(&call, "alpha", bits)?, scalar(&call, "beta", bits)?);
    check_beta(beta.as_ref(), c.is_some())?;
    let p = p.balls(py, bits)?;
    let c = c.map(|c| symmetric(c.balls(py, bits)?, uplo)).transpose()?;
    let result = call.run(|ctx| {
        let added = scaled_by(c.as_ref(), beta.as_ref())?;
        let Some(alpha) = &alpha else { return ball::syrk(ctx, (&p, orientation), added.as_ref(), bits) };
        // alpha P^T P is a product of two operands; where both triangles differ by a rounding the lower one serves.
        let scaled = p.scaled(alpha)?;
        let other = if orientation == sunzi::Op::Transpose { sunzi::Op::NoTranspose } else { sunzi::Op::Transpose };
        let whole = ball::gemm(ctx, (&scaled, other), (&p, orientation), added.as_ref(), bits)?;
        mirrored(&whole, Mirror::Lower)
    })?;
    give(call, &result, container, "syrk")
}

/// `alpha op(A) op(B) + beta C`.
///
/// # Errors
/// As [`syrk`].
pub fn gemm<'py>(
    mut call: Call<'py>,
    a: Operand<'py>,
    b: Operand<'py>,
    c: Option<Operand<'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = call.py();
    let bits = call.precision_bits(&[a.natural_bits, b.natural_bits, c.as_ref().and_then(|c| c.natural_bits)])?;
    let container = container_of(&[Some(&a), Some(&b), c.as_ref()]);
    let (op_a, op_b) = (op(call.flag("transpose_a")?), op(call.flag("transpose_b")?));
    let rows = if op_a == sunzi::Op::Transpose { a.cols } else { a.rows };
    call.expect(rows, if op_b == sunzi::Op::Transpose { b.rows } else { b.cols })?;
    let (alpha, beta) = (scalar(&call, "alpha", bits)?, scalar(&call, "beta", bits)?);
    check_beta(beta.as_ref(), c.is_some())?;
    let (a, b) = (a.balls(py, bits)?, b.balls(py, bits)?);
    let c = c.map(|c| c.balls(py, bits)).transpose()?;
    let result = call.run(|ctx| {
        let (scaled, added) = (scaled_by(Some(&a), alpha.as_ref())?, scaled_by(c.as_ref(), beta.as_ref())?);
        ball::gemm(ctx, (scaled.as_ref().unwrap_or(&a), op_a), (&b, op_b), added.as_ref(), bits)
    })?;
    give(call, &result, container, "gemm")
}

/// The solution of `A X = B`.
///
/// # Errors
/// As [`Operand::balls`] and [`Call::run`]; `ValueError` for `factor_precision`.
pub fn solve<'py>(
    mut call: Call<'py>,
    a: Operand<'py>,
    uplo: Option<Named>,
    b: Operand<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(bits) = call.bits("factor_precision")? {
        let message =
            format!("factor_precision={bits} is not accepted for balls; their factor has as many bits as it needs");
        return Err(PyValueError::new_err(message));
    }
    let py = call.py();
    let bits = call.precision_bits(&[a.natural_bits, b.natural_bits])?;
    let container = container_of(&[Some(&b), Some(&a)]);
    let (a, b) = (symmetric(a.balls(py, bits)?, uplo)?, b.balls(py, bits)?);
    let result = call.run(|ctx| ball::solve(ctx, &a, &b, bits))?;
    give(call, &result, container, "solve")
}

/// The inverse.
///
/// # Errors
/// As [`Operand::balls`] and [`Call::run`].
pub fn inverse<'py>(mut call: Call<'py>, a: Operand<'py>, uplo: Option<Named>) -> PyResult<Bound<'py, PyAny>> {
    let (bits, container) = (call.precision_bits(&[a.natural_bits])?, container_of(&[Some(&a)]));
    call.expect(a.rows, a.cols)?;
    let a = symmetric(a.balls(call.py(), bits)?, uplo)?;
    let result = call.run(|ctx| ball::inverse(ctx, &a, bits))?;
    give(call, &result, container, "inverse")
}

/// The Cholesky factor; the upper one where the upper triangle is named.
///
/// # Errors
/// As [`Operand::balls`] and [`Call::run`].
pub fn cholesky<'py>(mut call: Call<'py>, a: Operand<'py>, uplo: Option<Named>) -> PyResult<Bound<'py, PyAny>> {
    let (bits, container) = (call.precision_bits(&[a.natural_bits])?, container_of(&[Some(&a)]));
    call.expect(a.rows, a.cols)?;
    let a = symmetric(a.balls(call.py(), bits)?, uplo)?;
    let is_upper = uplo.is_some_and(|named| named.uplo == Uplo::Upper);
    let result = call.run(|ctx| {
        let lower = ball::cholesky(ctx, &a, bits)?;
        if is_upper { mirrored(&lower, Mirror::Transpose) } else { Ok(lower) }
    })?;
    give(call, &result, container, "cholesky")
}

/// The logarithm of the determinant, an `arb`.
///
/// # Errors
/// As [`Operand::balls`] and [`Call::run`].
pub fn log_det<'py>(mut call: Call<'py>, a: Operand<'py>, uplo: Option<Named>) -> PyResult<Bound<'py, PyAny>> {
    let (py, bits) = (call.py(), call.precision_bits(&[a.natural_bits])?);
    let a = symmetric(a.balls(py, bits)?, uplo)?;
    let found = call.run(|ctx| ball::log_det(ctx, &a, bits))?;
    one(call, &found)
}

/// An interval around the logarithm of the determinant of a matrix before its numbers were rounded, and of every point
/// of balls.
///
/// # Errors
/// As [`Operand::balls`] and [`Call::run`].
pub fn log_det_interval(call: &mut Call<'_>, a: Operand<'_>, uplo: Option<Named>) -> PyResult<[Float; 2]> {
    let bits = call.precision_bits(&[a.natural_bits])?;
    let a = symmetric(a.balls(call.py(), bits)?, uplo)?;
    let Ball { midpoint, radius } = call.run(|ctx| ball::log_det(ctx, &a, bits))?;
    let bits = bits.saturating_add(RADIUS_BITS);
    let low = Float::with_val_round(bits, &midpoint - &radius, Round::Down).0;
    Ok([low, Float::with_val_round(bits, &midpoint + &radius, Round::Up).0])
}

/// The determinant, an `arb`.
///
/// # Errors
/// As [`Operand::balls`] and [`Call::run`].
pub fn det<'py>(mut call: Call<'py>, a: Operand<'py>, uplo: Option<Named>) -> PyResult<Bound<'py, PyAny>> {
    let (py, bits) = (call.py(), call.precision_bits(&[a.natural_bits])?);
    let a = symmetric(a.balls(py, bits)?, uplo)?;
    let found = call.run(|ctx| ball::det(ctx, &a, bits))?;
    one(call, &found)
}

/// The solution of a triangular system.
///
/// # Errors
/// As [`Operand::balls`] and [`Call::run`].
pub fn trsm<'py>(
    mut call: Call<'py>,
    t: Operand<'py>,
    b: Operand<'py>,
    options: &TrsmOptions<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = call.py();
    let bits = call.precision_bits(&[t.natural_bits, b.natural_bits])?;
    let container = container_of(&[Some(&b), Some(&t)]);
    let alpha = scalar(&call, "alpha", bits)?;
    let (t, b) = (t.balls(py, bits)?, b.balls(py, bits)?);
    let result = call.run(|ctx| {
        let scaled = scaled_by(Some(&b), alpha.as_ref())?;
        ball::trsm(ctx, &t, scaled.as_ref().unwrap_or(&b), bits, options)
    })?;
    give(call, &result, container, "trsm")
}

/// One ball as an `arb`.
///
/// # Errors
/// `MemoryError`.
pub fn one<'py>(mut call: Call<'py>, Ball { midpoint, radius }: &Ball) -> PyResult<Bound<'py, PyAny>> {
    let cell = |value: &Float| sunzi::Matrix::from_floats(1, 1, value.prec(), std::slice::from_ref(value));
    let found = call.run(|_| BallMatrix::new(cell(midpoint)?, &cell(radius)?))?;
    let mut numbers = numbers(call.py(), &found)?;
    numbers.pop().ok_or_else(|| PyValueError::new_err("no number"))
}

/// The container of results: `arb_mat` where an operand is one, else that of the first balls.
fn container_of(operands: &[Option<&Operand<'_>>]) -> Container {
    let given: Vec<Origin> = operands.iter().flatten().map(|operand| Origin::of(operand)).collect();
    container_among(&given)
}

/// The container of an operand, and whether its numbers are balls: the container of a result depends on both.
#[derive(Clone, Copy)]
pub struct Origin {
    container: Container,
    is_ball: bool,
}

impl Origin {
    /// From an operand.
    pub fn of(operand: &Operand<'_>) -> Origin {
        Origin { container: operand.container, is_ball: operand.is_ball() }
    }

    /// Balls in an `arb_mat`.
    pub const ARB_MAT: Origin = Origin { container: Container::ArbMat, is_ball: true };
}

/// The container of a result of these.
pub fn container_among(given: &[Origin]) -> Container {
    if given.iter().any(|given| given.container == Container::ArbMat) {
        return Container::ArbMat;
    }
    let first = given.iter().find(|given| given.is_ball).or(given.first());
    let own = given.first().map_or(Container::Rows, |given| given.container);
    match own {
        Container::Matrix | Container::MpmathMatrix => first.map_or(own, |first| first.container),
        _ => own.holding(NumberKind::Flint),
    }
}

/// A scalar as a ball.
fn scalar(call: &Call<'_>, name: &str, bits: u32) -> PyResult<Option<Ball>> {
    let Some(object) = call.object(name)? else { return Ok(None) };
    let named = |error: PyErr| match error.is_instance_of::<PyValueError>(call.py()) {
        true => PyValueError::new_err(error.value(call.py()).to_string().replace("entry at row 0, column 0", name)),
        false => error,
    };
    let found = Operand::number(&object).and_then(|number| number.balls(call.py(), bits)).map_err(named)?;
    Ok(Some(Ball { midpoint: found.midpoint().float(0, 0), radius: found.radius().float(0, 0) }))
}

fn check_beta(beta: Option<&Ball>, has_added: bool) -> PyResult<()> {
    match beta {
        Some(_) if !has_added => Err(PyValueError::new_err("beta= is given, but c= is not")),
        _ => Ok(()),
    }
}

/// A matrix times a scalar; the matrix as it is where there is none.
fn scaled_by(matrix: Option<&BallMatrix>, factor: Option<&Ball>) -> sunzi::Result<Option<BallMatrix>> {
    match (matrix, factor) {
        (Some(matrix), Some(factor)) => matrix.scaled(factor).map(Some),
        (matrix, _) => Ok(matrix.cloned()),
    }
}

/// Both triangles of a symmetric matrix of which one is named; else balls that hold an entry and its mirror image where
/// the two overlap.
///
/// # Errors
/// `ValueError`, `MemoryError`.
pub fn symmetric(a: BallMatrix, uplo: Option<Named>) -> PyResult<BallMatrix> {
    let refused = |error: sunzi::Error| PyValueError::new_err(error.to_string());
    if a.rows() != a.cols() {
        return Ok(a);
    }
    match uplo.map(|named| named.uplo) {
        Some(Uplo::Lower) => mirrored(&a, Mirror::Lower).map_err(refused),
        Some(Uplo::Upper) => mirrored(&a, Mirror::Upper).map_err(refused),
        None => overlapping(a).map_err(refused),
    }
}

/// The source of the entries of a matrix.
#[derive(Clone, Copy)]
enum Mirror {
    /// The lower triangle, for both.
    Lower,
    /// The upper triangle, for both.
    Upper,
    /// The transpose.
    Transpose,
}

impl Mirror {
    /// Row and column of the entry that comes to a row and a column.
    fn source(self, row: usize, col: usize) -> (usize, usize) {
        match self {
            Mirror::Lower => (row.max(col), row.min(col)),
            Mirror::Upper => (row.min(col), row.max(col)),
            Mirror::Transpose => (col, row),
        }
    }
}

/// The balls at other places.
fn mirrored(a: &BallMatrix, mirror: Mirror) -> sunzi::Result<BallMatrix> {
    let order = a.rows();
    let at = |matrix: &sunzi::Matrix, row: usize, col: usize| {
        let (row, col) = mirror.source(row, col);
        matrix.float(row, col)
    };
    let bits = a.midpoint().precision_bits();
    let midpoint = sunzi::Matrix::from_fn(order, order, bits, |row, col| at(a.midpoint(), row, col))?;
    let radius = sunzi::Matrix::from_fn(order, order, RADIUS_BITS, |row, col| at(a.radius(), row, col))?;
    BallMatrix::new(midpoint, &radius)
}

/// The same balls with one midpoint for each entry and its mirror image, where their midpoints differ and they overlap.
fn overlapping(a: BallMatrix) -> sunzi::Result<BallMatrix> {
    let order = a.rows();
    let (mut midpoint, mut radius) = (None, None);
    for (row, col) in (0..order).flat_map(|col| (col + 1..order).map(move |row| (row, col))) {
        let (lower, upper) = (a.midpoint().float(row, col), a.midpoint().float(col, row));
        let apart = Float::with_val_round(RADIUS_BITS, &lower - &upper, Round::AwayZero).0.abs();
        let sizes = [a.radius().float(row, col), a.radius().float(col, row)];
        let reach = Float::with_val_round(RADIUS_BITS, &sizes[0] + &sizes[1], Round::Down).0;
        if apart.is_zero() || apart > reach {
            continue;
        }
        let [own, other] = sizes;
        let wide = Float::with_val_round(RADIUS_BITS, &own.max(&other) + &apart, Round::Up).0;
        midpoint.get_or_insert_with(|| a.midpoint().clone()).set_float(col, row, &lower)?;
        let radius = radius.get_or_insert_with(|| a.radius().clone());
        radius.set_float(row, col, &wide)?;
        radius.set_float(col, row, &wide)?;
    }
    match (midpoint, radius) {
        (Some(midpoint), Some(radius)) => BallMatrix::new(midpoint, &radius),
        _ => Ok(a),
    }
}

/// The result in its container, and the report.
///
/// # Errors
/// As [`Call::finish_objects`].
pub fn give<'py>(
    call: Call<'py>,
    result: &BallMatrix,
    container: Container,
    operation: &'static str,
) -> PyResult<Bound<'py, PyAny>> {
    let container = if result.cols() == 1 { container } else { container.of_two_dimensions() };
    let (shape, rows, cols) = (Shape { container, kind: NumberKind::Flint }, result.rows(), result.cols());
    let numbers = numbers(call.py(), result)?;
    let digits = call.wants_report().then(|| proven_digits(result));
    let report = json(&Told { operation, digits })?;
    call.finish_objects(numbers, rows, cols, shape, result.midpoint().precision_bits(), report)
}

/// Digits of the worst column that the radii prove, in the maximum norm: those of all bits where radii are 0.
fn proven_digits(balls: &BallMatrix) -> f64 {
    let largest = |matrix: &sunzi::Matrix, col: usize| {
        let sizes = (0..matrix.rows()).map(|row| matrix.float(row, col).abs());
        sizes.fold(Float::new(RADIUS_BITS), |most, size| if size > most { size } else { most })
    };
    let all = f64::from(balls.midpoint().precision_bits()) * std::f64::consts::LOG10_2;
    let digits = (0..balls.cols()).map(|col| {
        let (radius, size) = (largest(balls.radius(), col), largest(balls.midpoint(), col));
        if radius.is_zero() { all } else { Float::with_val(RADIUS_BITS, size / radius).log10().to_f64() }
    });
    digits.fold(all, f64::min).max(0.0)
}

/// The contents of a report besides times.
#[derive(Serialize)]
struct Told {
    operation: &'static str,
    digits: Option<f64>,
}

/// The entries as `arb`, row by row.
fn numbers<'py>(py: Python<'py>, balls: &BallMatrix) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let _pause = CollectorPause::begin(py)?;
    let mut builder = Builder::new(py, NumberKind::Flint, balls.midpoint().precision_bits())?;
    let mut numbers = Vec::with_capacity(balls.rows() * balls.cols());
    for (row, col) in (0..balls.rows()).flat_map(|row| (0..balls.cols()).map(move |col| (row, col))) {
        numbers.push(builder.ball(balls.midpoint().get(row, col), balls.radius().get(row, col), row, col)?);
    }
    Ok(numbers)
}
