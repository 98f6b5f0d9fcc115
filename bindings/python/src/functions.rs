//! The functions: SYRK, GEMM, TRSM, Cholesky, solves, log-determinants and plans on any operands.
//!
//! Each takes its operands and a dictionary of options; the Python layer has the signatures and the documentation.

use crate::context::Context;
use crate::errors::OrRaise;
use crate::input::{Bits, Part, Survey, factor};
use crate::job::{Job, checked_bits};
use crate::output::{Form, Maker, Shape};
use crate::window::Window;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rug::Float;
use serde::Serialize;
use sunzi::{CholeskyOptions, Diag, GemmOptions, Op, Outcome, RefineOptions, Side, SyrkOptions, TrsmOptions, Uplo};

const TRIANGLES: &[(&str, Uplo)] = &[("lower", Uplo::Lower), ("upper", Uplo::Upper)];

/// Which triangle of a symmetric matrix counts: both, which must agree, unless one is named.
const SYMMETRIC: &[(&str, Option<Uplo>)] =
    &[("full", None), ("lower", Some(Uplo::Lower)), ("upper", Some(Uplo::Upper))];

fn part_of(uplo: Option<Uplo>) -> Part {
    uplo.map_or(Part::Whole, Part::Triangle)
}

fn symmetric(window: &Window, uplo: Option<Uplo>) -> sunzi::Symmetric<'_> {
    match uplo {
        Some(uplo) => sunzi::Symmetric::triangle(window.view(), uplo),
        None => window.view().into(),
    }
}

fn op(transpose: bool) -> Op {
    if transpose { Op::Transpose } else { Op::NoTranspose }
}

fn json(numbers: &impl Serialize) -> PyResult<Option<String>> {
    serde_json::to_string(numbers).map(Some).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The operands of a product beside its matrices.
struct Terms {
    precision_bits: u32,
    bits: Bits,
    alpha: Option<Float>,
    beta: Option<Float>,
    accumulate: Option<Window>,
}

impl Terms {
    /// Reads `alpha`, `beta` and `c`; the precision is that of a product of `operands`.
    fn of(job: &Job<'_>, operands: &[Option<u32>], part: Part) -> PyResult<Terms> {
        let c = job.object("c")?.map(|c| Survey::of(&c, "c", part)).transpose()?;
        let all: Vec<Option<u32>> = operands.iter().copied().chain(c.as_ref().map(|c| c.natural_bits)).collect();
        let (precision_bits, bits) = if job.flag("exact")? {
            (job.least_bits(), Bits::Integers)
        } else {
            let precision_bits = job.precision_bits(&all)?;
            (precision_bits, Bits::Round(precision_bits))
        };
        let read = |name: &str| factor(job.object(name)?.as_ref(), name, bits);
        let (alpha, beta) = (read("alpha")?, read("beta")?);
        if beta.is_some() && c.is_none() {
            return Err(PyValueError::new_err("beta is given without c"));
        }
        let accumulate = c.map(|c| c.window(job.py(), bits)).transpose()?;
        Ok(Terms { precision_bits, bits, alpha, beta, accumulate })
    }
}

/// See the Python layer.
#[pyfunction]
pub fn syrk<'py>(p: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut job = Job::new(options)?;
    let py = job.py();
    let uplo = job.choice("uplo", SYMMETRIC)?;
    let transpose = job.flag("transpose")?;
    let p = Survey::of(p, "p", Part::Whole)?;
    let order = if transpose { p.rows } else { p.cols };
    job.expect(order, order)?;
    let shape = Shape { container: p.container, kind: p.kind };
    let terms = Terms::of(&job, &[p.natural_bits], part_of(uplo))?;
    let p = p.window(py, terms.bits)?;
    let exact_integers = job.flag("exact")?;
    let outcome = job.run(|ctx| {
        let options = SyrkOptions::new()
            .op(op(transpose))
            .exact_integers(exact_integers)
            .alpha(terms.alpha.as_ref())
            .beta(terms.beta.as_ref())
            .accumulate(terms.accumulate.as_ref().map(|c| symmetric(c, uplo)));
        sunzi::syrk_with(ctx, p.view(), terms.precision_bits, &options)
    })?;
    give_product(job, general(outcome), Form::Symmetric, shape)
}

/// The outcome with its result as a matrix like any other.
fn general(outcome: Outcome<sunzi::SymmetricMatrix>) -> Outcome {
    Outcome { result: outcome.result.into_matrix(), report: outcome.report }
}

fn give_product<'py>(job: Job<'py>, outcome: Outcome, form: Form, shape: Shape) -> PyResult<Bound<'py, PyAny>> {
    let report = json(&outcome.report)?;
    job.finish(outcome.result, form, shape, report)
}

/// See the Python layer.
#[pyfunction]
pub fn gemm<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut job = Job::new(options)?;
    let py = job.py();
    let (a, b) = (Survey::of(a, "a", Part::Whole)?, Survey::of(b, "b", Part::Whole)?);
    let terms = Terms::of(&job, &[a.natural_bits, b.natural_bits], Part::Whole)?;
    let shape = Shape { container: a.container, kind: a.kind.min(b.kind) };
    let oriented = |survey: Survey<'py>, name: &str| -> PyResult<Window> {
        let window = survey.window(py, terms.bits)?;
        Ok(if job.flag(name)? { window.transpose() } else { window })
    };
    let (a, b) = (oriented(a, "transpose_a")?, oriented(b, "transpose_b")?);
    job.expect(a.rows(), b.cols())?;
    let exact = job.flag("exact")?;
    let (outcome, form) = job.run(|ctx| multiply(ctx, (&a, &b), &terms, exact))?;
    give_product(job, outcome, form, shape)
}

/// `alpha * A B + beta * C`; a product of a matrix with its own transpose is a SYRK, with the same bits.
fn multiply(
    ctx: &sunzi::Context,
    (a, b): (&Window, &Window),
    terms: &Terms,
    exact_integers: bool,
) -> sunzi::Result<(Outcome, Form)> {
    let (alpha, beta, bits) = (terms.alpha.as_ref(), terms.beta.as_ref(), terms.precision_bits);
    if a.is_transpose_of(b) && terms.accumulate.is_none() {
        let options = SyrkOptions::new().exact_integers(exact_integers).alpha(alpha);
        return Ok((general(sunzi::syrk_with(ctx, b.view(), bits, &options)?), Form::Symmetric));
    }
    let accumulate = terms.accumulate.as_ref().map(Window::to_whole).transpose()?;
    let options = GemmOptions::new()
        .exact_integers(exact_integers)
        .alpha(alpha)
        .beta(beta)
        .accumulate(accumulate.as_ref().map(|c| c.view()));
    Ok((sunzi::gemm_with(ctx, a.view(), b.view(), bits, &options)?, Form::General))
}

/// See the Python layer.
#[pyfunction]
pub fn trsm<'py>(
    t: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut job = Job::new(options)?;
    let py = job.py();
    let side = job.choice("side", &[("left", Side::Left), ("right", Side::Right)])?;
    let uplo = job.choice("uplo", TRIANGLES)?;
    let diag = if job.flag("unit")? { Diag::Unit } else { Diag::NonUnit };
    let op = op(job.flag("transpose")?);
    let part = if diag == Diag::Unit { Part::StrictTriangle(uplo) } else { Part::Triangle(uplo) };
    let (t, b) = (Survey::of(t, "t", part)?, Survey::of(b, "b", Part::Whole)?);
    job.expect(b.rows, b.cols)?;
    let bits = job.precision_bits(&[t.natural_bits, b.natural_bits])?;
    let alpha = factor(job.object("alpha")?.as_ref(), "alpha", Bits::Round(bits))?;
    let shape = Shape { container: b.container, kind: b.kind.min(t.kind) };
    let (t, b) = (t.window(py, Bits::Round(bits))?, b.window(py, Bits::Round(bits))?);
    let options = TrsmOptions::new().side(side).uplo(uplo).op(op).diag(diag).alpha(alpha.as_ref());
    let Outcome { result, report } = job.run(|ctx| sunzi::trsm_with(ctx, t.view(), b.view(), bits, &options))?;
    job.finish(result, Form::General, shape, json(&report)?)
}

/// A symmetric matrix, the triangle that counts where one is named, and the precision of what is computed from it.
pub struct Symmetric {
    pub window: Window,
    pub uplo: Option<Uplo>,
    pub precision_bits: u32,
    pub shape: Shape,
}

impl Symmetric {
    /// Reads `a` at the precision of a call that has `others` as operands.
    ///
    /// # Errors
    /// As [`Survey::of`].
    pub fn of(job: &Job<'_>, a: &Bound<'_, PyAny>, others: &[Option<u32>]) -> PyResult<Symmetric> {
        let uplo = job.choice("uplo", SYMMETRIC)?;
        let a = Survey::of(a, "a", part_of(uplo))?;
        let all: Vec<Option<u32>> = others.iter().copied().chain([a.natural_bits]).collect();
        let precision_bits = job.precision_bits(&all)?;
        let shape = Shape { container: a.container, kind: a.kind };
        Ok(Symmetric { window: a.window(job.py(), Bits::Round(precision_bits))?, uplo, precision_bits, shape })
    }

    /// The operand.
    fn operand(&self) -> sunzi::Symmetric<'_> {
        symmetric(&self.window, self.uplo)
    }

    /// The factor.
    ///
    /// # Errors
    /// As [`sunzi::cholesky()`].
    pub fn factor(&self, ctx: &sunzi::Context) -> sunzi::Result<Outcome<sunzi::Cholesky, sunzi::CholeskyReport>> {
        sunzi::cholesky_with(ctx, self.operand(), self.precision_bits, &CholeskyOptions::default())
    }
}

/// See the Python layer.
#[pyfunction]
pub fn cholesky<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut job = Job::new(options)?;
    let a = Symmetric::of(&job, a, &[])?;
    job.expect(a.window.rows(), a.window.cols())?;
    let Outcome { result: factor, report } = job.run(|ctx| a.factor(ctx))?;
    job.finish(factor.into_factor(), Form::General, a.shape, json(&report)?)
}

/// See the Python layer.
#[pyfunction]
pub fn solve<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut job = Job::new(options)?;
    let b = Survey::of(b, "b", Part::Whole)?;
    job.expect(b.rows, b.cols)?;
    let factor_bits = job.bits("factor_precision")?;
    let a = Symmetric::of(&job, a, &[b.natural_bits])?;
    let bits = a.precision_bits;
    let shape = Shape { container: b.container, kind: b.kind.min(a.shape.kind) };
    let b = b.window(job.py(), Bits::Round(bits))?;
    let (solution, report) = job.run(|ctx| {
        let Some(factor_bits) = factor_bits else {
            let options = CholeskyOptions::default();
            let Outcome { result, report } = sunzi::solve_with(ctx, a.operand(), b.view(), bits, &options)?;
            return Ok((result, serde_json::to_string(&report).ok()));
        };
        let options = RefineOptions::new().factor_bits(factor_bits);
        let Outcome { result, report } = sunzi::solve_refined_with(ctx, a.operand(), b.view(), bits, &options)?;
        Ok((result, serde_json::to_string(&report).ok()))
    })?;
    job.finish(solution, Form::General, shape, report)
}

/// See the Python layer.
#[pyfunction]
pub fn log_det<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut job = Job::new(options)?;
    let a = Symmetric::of(&job, a, &[])?;
    let value = job.run(|ctx| Ok(a.factor(ctx)?.result.log_det()))?;
    number(job.py(), &value, a.shape)
}

/// A number of its own, of the type that a matrix has.
///
/// # Errors
/// As [`Maker::number`].
pub fn number<'py>(py: Python<'py>, value: &Float, shape: Shape) -> PyResult<Bound<'py, PyAny>> {
    let bits = value.prec();
    let mut cell = sunzi::Matrix::zeros(1, 1, bits).or_raise(py)?;
    cell.set_float(0, 0, value).or_raise(py)?;
    Maker::new(py, shape.kind, bits)?.number(cell.get(0, 0), (0, 0))
}

/// See the Python layer.
#[pyfunction]
pub fn plan<'py>(
    operation: &str,
    sizes: Vec<usize>,
    precision: i64,
    context: Option<Bound<'py, Context>>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let bits = checked_bits(py, Some(precision))?.unwrap_or(2);
    let ctx = context.map_or_else(|| Context::shared(py), Ok)?.get().get(py)?;
    let numbers = match (operation, &sizes[..]) {
        ("syrk", &[rows, cols]) => json(&sunzi::plan_syrk(&ctx, rows, cols, bits).or_raise(py)?)?,
        ("gemm", &[rows, cols, contracted]) => {
            json(&sunzi::plan_gemm(&ctx, rows, cols, contracted, bits).or_raise(py)?)?
        }
        ("cholesky", &[order]) => {
            json(&sunzi::plan_cholesky(&ctx, order, bits, &CholeskyOptions::default()).or_raise(py)?)?
        }
        ("trsm", &[order, columns]) => json(&sunzi::plan_trsm(&ctx, order, columns, bits).or_raise(py)?)?,
        ("solve", &[order, columns]) => json(&sunzi::plan_solve(&ctx, order, columns, bits).or_raise(py)?)?,
        _ => {
            return Err(PyValueError::new_err(format!(
                "no plan of '{operation}' with {} sizes: use ('syrk', rows, cols), ('gemm', rows, cols, contracted), \
                 ('cholesky', order), ('trsm', order, columns) or ('solve', order, columns)",
                sizes.len()
            )));
        }
    };
    py.import("json")?.call_method1("loads", (numbers.unwrap_or_default(),))
}
