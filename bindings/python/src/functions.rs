//! The functions: SYRK, GEMM, TRSM, Cholesky, solves, log-determinants and plans on any operands.
//!
//! Each takes its operands and a dictionary of options; the Python layer has the signatures and the documentation.

use crate::answers::{GivenSystem, RequestedDigits, SystemOperands, answer};
use crate::balls;
use crate::call::{Call, beside};
use crate::choices::*;
use crate::errors::{OrRaise, of_balls, with_accepted, with_remark};
use crate::general::{Factors, with_factors};
use crate::input::{Bits, Operand, ReadPart, scalar};
use crate::kind::{Container, NumberKind};
use crate::output::{Builder, ResultForm, Shape};
use crate::symmetric::Symmetric;
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rug::Float;
use sunzi::plans::ProductPlanOptions;
use sunzi::{
    Accuracy, CholeskyOptions, Diag, Error, GemmOptions, Outcome, RefineOptions, SyrkOptions, TrsmOptions, Uplo,
};

/// The call that solves with symmetric matrices of which one triangle is named, if they are not positive definite.
const FOR_SYMMETRIC: &str = "sunzi.Ldlt(a, uplo=uplo).solve(b)";

/// The operands of a product in addition to its matrices.
pub struct ProductTerms {
    pub precision_bits: u32,
    pub accuracy: Accuracy,
    pub bits: Bits,
    pub alpha: Option<Float>,
    pub beta: Option<Float>,
    pub accumulate: Option<View>,
}

impl ProductTerms {
    /// Reads `alpha`, `beta` and `c`; the precision is that of a product of `operands`.
    ///
    /// # Errors
    /// As [`Operand::of`]; `ValueError` for `beta` without `c`.
    pub fn of(call: &Call<'_>, operands: &[Option<u32>], part: ReadPart) -> PyResult<ProductTerms> {
        ProductTerms::with(call, operands, ProductTerms::added(call, part)?)
    }

    /// Checks `c` without converting its numbers.
    ///
    /// # Errors
    /// As [`Operand::of`].
    pub fn added<'py>(call: &Call<'py>, part: ReadPart) -> PyResult<Option<Operand<'py>>> {
        call.object("c")?.map(|c| Operand::of(&c, "c", part)).transpose()
    }

    /// As [`ProductTerms::of`], for an operand `c` that has been checked.
    ///
    /// # Errors
    /// As [`ProductTerms::of`].
    pub fn with(call: &Call<'_>, operands: &[Option<u32>], c: Option<Operand<'_>>) -> PyResult<ProductTerms> {
        let all: Vec<Option<u32>> = operands.iter().copied().chain(c.as_ref().map(|c| c.natural_bits)).collect();
        let (precision_bits, bits) = if call.flag("exact")? {
            (call.least_bits(), Bits::Integers)
        } else {
            let precision_bits = call.precision_bits(&all)?;
            (precision_bits, Bits::Round(precision_bits))
        };
        let read = |name: &str| scalar(call.object(name)?.as_ref(), name, bits);
        let (alpha, beta) = (read("alpha")?, read("beta")?);
        if beta.is_some() && c.is_none() {
            return Err(PyValueError::new_err("beta= is given, but c= is not"));
        }
        let accumulate = c.map(|c| c.view(call.py(), bits)).transpose()?;
        let accuracy = call.choice("accuracy", ACCURACIES)?;
        Ok(ProductTerms { precision_bits, accuracy, bits, alpha, beta, accumulate })
    }

    /// Runs the product. The error for an exact product with too many bits states that the result has these bits.
    ///
    /// # Errors
    /// As [`Call::run`].
    pub fn run<R: Send>(
        &self,
        call: &mut Call<'_>,
        work: impl FnOnce(&sunzi::Context) -> sunzi::Result<R> + Send,
    ) -> PyResult<R> {
        let exact = self.bits == Bits::Integers;
        call.run(|ctx| {
            work(ctx).map_err(|error| match error {
                Error::Precision { precision_bits, maximum_bits } if exact => Error::InvalidArgument(format!(
                    "the exact result may have {precision_bits} bits, but products have at most {maximum_bits}: use \
                     smaller integers, or precision= for a rounded product"
                )),
                other => other,
            })
        })
    }
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn syrk<'py>(p: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let py = call.py();
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let transpose = call.flag("transpose")?;
    let p = Operand::of(p, "p", ReadPart::Whole)?;
    let order = if transpose { p.rows } else { p.cols };
    call.expect(order, order)?;
    let c = ProductTerms::added(&call, part_of(uplo))?;
    if balls::are_wanted(&call, &[Some(&p), c.as_ref()])? {
        return balls::syrk(call, p, c, uplo);
    }
    let shape = Shape { container: p.container, kind: p.kind };
    let terms = ProductTerms::with(&call, &[p.natural_bits], c)?;
    let p = p.view(py, terms.bits)?;
    let exact_integers = call.flag("exact")?;
    let outcome = terms.run(&mut call, |ctx| {
        let options = SyrkOptions::new()
            .op(op(transpose))
            .exact_integers(exact_integers)
            .accuracy(terms.accuracy)
            .alpha(terms.alpha.as_ref())
            .beta(terms.beta.as_ref())
            .accumulate(terms.accumulate.as_ref().map(|c| symmetric(c, uplo)));
        sunzi::syrk_with(ctx, p.entries(), terms.precision_bits, &options)
    })?;
    give_product(call, general(outcome), ResultForm::Symmetric, shape)
}

/// The outcome with its result as a matrix like any other.
pub fn general(outcome: Outcome<sunzi::SymmetricMatrix>) -> Outcome {
    Outcome { result: outcome.result.into_matrix(), report: outcome.report }
}

fn give_product<'py>(call: Call<'py>, outcome: Outcome, form: ResultForm, shape: Shape) -> PyResult<Bound<'py, PyAny>> {
    let report = json(&outcome.report)?;
    call.finish(outcome.result, form, shape, report)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn gemm<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let py = call.py();
    let (a, b) = (Operand::of(a, "a", ReadPart::Whole)?, Operand::of(b, "b", ReadPart::Whole)?);
    let c = ProductTerms::added(&call, ReadPart::Whole)?;
    if balls::are_wanted(&call, &[Some(&a), Some(&b), c.as_ref()])? {
        return balls::gemm(call, a, b, c);
    }
    let terms = ProductTerms::with(&call, &[a.natural_bits, b.natural_bits], c)?;
    let shape = Shape { container: a.container, kind: a.kind.min(b.kind) };
    let oriented = |operand: Operand<'py>, name: &str| -> PyResult<View> {
        let view = operand.view(py, terms.bits)?;
        Ok(if call.flag(name)? { view.transpose() } else { view })
    };
    let (a, b) = (oriented(a, "transpose_a")?, oriented(b, "transpose_b")?);
    call.expect(a.rows(), b.cols())?;
    let exact = call.flag("exact")?;
    let (outcome, form) = terms.run(&mut call, |ctx| multiply(ctx, &a, &b, &terms, exact))?;
    give_product(call, outcome, form, shape)
}

/// `alpha * A B + beta * C`; a product of a matrix with its own transpose is a SYRK.
fn multiply(
    ctx: &sunzi::Context,
    a: &View,
    b: &View,
    terms: &ProductTerms,
    exact_integers: bool,
) -> sunzi::Result<(Outcome, ResultForm)> {
    let (alpha, beta, bits) = (terms.alpha.as_ref(), terms.beta.as_ref(), terms.precision_bits);
    if a.is_transpose_of(b) && terms.accumulate.is_none() {
        let options = SyrkOptions::new().exact_integers(exact_integers).accuracy(terms.accuracy).alpha(alpha);
        return Ok((general(sunzi::syrk_with(ctx, b.entries(), bits, &options)?), ResultForm::Symmetric));
    }
    let accumulate = terms.accumulate.as_ref().map(View::to_whole).transpose()?;
    let options = GemmOptions::new()
        .exact_integers(exact_integers)
        .accuracy(terms.accuracy)
        .alpha(alpha)
        .beta(beta)
        .accumulate(accumulate.as_ref().map(|c| c.view()));
    Ok((sunzi::gemm_with(ctx, a.entries(), b.entries(), bits, &options)?, ResultForm::General))
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn trsm<'py>(
    t: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let py = call.py();
    let side = call.choice("side", SIDES)?;
    let uplo = call.choice("uplo", TRIANGLES)?;
    let diag = if call.flag("unit")? { Diag::Unit } else { Diag::NonUnit };
    let op = op(call.flag("transpose")?);
    let part = if diag == Diag::Unit { ReadPart::StrictTriangle(uplo) } else { ReadPart::Triangle(uplo) };
    let (t, b) = (Operand::of(t, "t", part)?, Operand::of(b, "b", ReadPart::Whole)?);
    call.expect(b.rows, b.cols)?;
    let options = TrsmOptions::new().side(side).uplo(uplo).op(op).diag(diag);
    if balls::are_wanted(&call, &[Some(&t), Some(&b)])? {
        return balls::trsm(call, t, b, &options);
    }
    let bits = call.precision_bits(&[t.natural_bits, b.natural_bits])?;
    let alpha = scalar(call.object("alpha")?.as_ref(), "alpha", Bits::Round(bits))?;
    let shape = Shape { container: b.container, kind: b.kind.min(t.kind) };
    let (t, b) = (t.view(py, Bits::Round(bits))?, b.view(py, Bits::Round(bits))?);
    let accuracy = call.choice("accuracy", ACCURACIES)?;
    let options = options.alpha(alpha.as_ref()).accuracy(accuracy);
    let Outcome { result, report } = call.run(|ctx| sunzi::trsm_with(ctx, t.entries(), b.entries(), bits, &options))?;
    call.finish(result, ResultForm::General, shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn cholesky<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let a = Operand::of(a, "a", part_of(uplo))?;
    let py = call.py();
    if a.is_ball() {
        return balls::cholesky(call, a, uplo).map_err(|error| of_balls(py, error, "cholesky"));
    }
    let a = Symmetric::read(&call, a, &[])?;
    call.expect(a.view.rows(), a.view.cols())?;
    let factored = call.run(|ctx| match a.uplo {
        // The upper factor is made in addition to the lower one.
        Some(Named { uplo: Uplo::Upper, .. }) => {
            let bytes = sunzi::Matrix::bytes_for(a.view.rows(), a.view.rows(), a.precision_bits);
            let Outcome { result, mut report } = beside(ctx, bytes, |own| a.factor_or_reason(own))?;
            report.planned_bytes += bytes;
            Ok((result.factor().view().transposed().to_matrix()?, report))
        }
        _ => a.factor_or_reason(ctx).map(|Outcome { result, report }| (result.into_factor(), report)),
    });
    let (factor, report) = factored.map_err(|error| with_accepted(py, error, "cholesky", "sunzi.ldlt(a)"))?;
    call.finish(factor, ResultForm::General, a.shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn solve<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let requested = RequestedDigits::take(options)?;
    let mut call = Call::new(options)?;
    let (system, b) = (GivenSystem { a, b: Some(b) }, Operand::of(b, "b", ReadPart::Whole)?);
    call.expect(b.rows, b.cols)?;
    let factor_bits = call.bits("factor_precision")?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let a = Operand::of(a, "a", part_of(uplo))?;
    let are_balls = balls::are_wanted(&call, &[Some(&a), Some(&b)])?;
    if let Some(requested) = requested {
        if are_balls || factor_bits.is_some() {
            requested.refuse_with(if are_balls { balls::OPERANDS } else { "factor_precision=" })?;
        }
        let answered = answer(call, &system, SystemOperands { a, b: Some(b) }, requested);
        return answered.map_err(|error| with_factors(options.py(), error, "solve", FOR_SYMMETRIC));
    }
    if are_balls {
        return balls::solve(call, a, uplo, b);
    }
    let factors = Factors::of(&call)?;
    let a = Symmetric::read(&call, a, &[b.natural_bits])?;
    let bits = a.precision_bits;
    let shape = Shape { container: b.container, kind: b.kind.min(a.shape.kind) };
    let b = b.view(call.py(), Bits::InFull(bits))?;
    let options = a.options().digits(call.wants_report()).rounding(a.rounding(Some(&b)));
    let rounding = call.wants_report().then(|| a.rounding(Some(&b)));
    let solved = call.run(|ctx| {
        let explained = |error| a.explained(ctx, error);
        let Some(factor_bits) = factor_bits else {
            let solved = sunzi::solve_with(ctx, a.operand(), b.entries(), bits, &options);
            return match solved {
                Ok(Outcome { result, report }) => Ok((result, serde_json::to_string(&report).ok())),
                Err(error) if factors.fall_back(&error) => a.general().answer(ctx, Some(b.entries()), rounding),
                Err(error) => Err(explained(error)),
            };
        };
        let options = RefineOptions::new().factor_bits(factor_bits);
        let solved = sunzi::solve_refined_with(ctx, a.operand(), b.entries(), bits, &options);
        let Outcome { result, report } = solved.map_err(explained)?;
        Ok((result, serde_json::to_string(&report).ok()))
    });
    let py = call.py();
    let (solution, report) = solved.map_err(|error| match factor_bits {
        Some(factor_bits) if error.is_instance_of::<PyValueError>(py) => {
            with_remark(py, error, &format!("factor_precision={factor_bits} for a result of {bits} bits"))
        }
        _ => with_factors(py, error, "solve", FOR_SYMMETRIC),
    })?;
    call.finish(solution, ResultForm::General, shape, report)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn log_det<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let a = Operand::of(a, "a", part_of(uplo))?;
    if call.flag("certified")? {
        let found = balls::log_det_interval(&mut call, a, uplo);
        let ends = found.map_err(|error| with_accepted(call.py(), error, "log_det", "sunzi.det(a)"))?;
        let shape = Shape { container: Container::Flat, kind: NumberKind::Fraction };
        let ends = [number(call.py(), &ends[0], shape)?, number(call.py(), &ends[1], shape)?];
        return Ok(PyTuple::new(call.py(), ends)?.into_any());
    }
    if a.is_ball() {
        return balls::log_det(call, a, uplo).map_err(|error| of_balls(options.py(), error, "log_det"));
    }
    let a = Symmetric::read(&call, a, &[])?;
    let value = call.run(|ctx| Ok(a.factor_or_reason(ctx)?.result.log_det()));
    let value = value.map_err(|error| with_accepted(call.py(), error, "log_det", "sunzi.det(a)"))?;
    number(call.py(), &value, a.shape)
}

/// A number of its own, of the type that a matrix has.
///
/// # Errors
/// As [`Builder::number`].
pub fn number<'py>(py: Python<'py>, value: &Float, shape: Shape) -> PyResult<Bound<'py, PyAny>> {
    let bits = value.prec();
    let mut cell = sunzi::Matrix::zeros(1, 1, bits).or_raise(py)?;
    cell.set_float(0, 0, value).or_raise(py)?;
    Builder::new(py, shape.kind, bits)?.number(cell.get(0, 0), 0, 0)
}

/// The name of an accuracy.
pub fn accuracy_name(accuracy: Accuracy) -> &'static str {
    ACCURACIES.iter().find(|(_, known)| *known == accuracy).map_or("norm", |(name, _)| name)
}

/// The accuracy of that name.
///
/// # Errors
/// `ValueError` that lists the names.
pub fn accuracy_of(name: &str) -> PyResult<Accuracy> {
    let known = || ACCURACIES.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    let found = ACCURACIES.iter().find(|(known, _)| *known == name).map(|(_, accuracy)| *accuracy);
    found.ok_or_else(|| PyValueError::new_err(format!("accuracy='{name}' is not valid; use one of {}", known())))
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn plan<'py>(operation: &str, sizes: Vec<usize>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let call = Call::new(options)?;
    let (py, ctx, bits) = (call.py(), call.context()?, call.precision_bits(&[])?);
    let (accuracy, range_bits) = (call.choice("accuracy", ACCURACIES)?, call.count("range_bits")?);
    let refinement = call.bits("factor_precision")?.map(|bits| RefineOptions::new().factor_bits(bits));
    let refused = match (range_bits, refinement.is_some(), operation) {
        (Some(bits), _, "trsm") => {
            Some(format!("range_bits={bits} is not accepted for 'trsm', which needs no such bits"))
        }
        (Some(bits), true, _) => Some(format!("range_bits={bits} is not accepted together with factor_precision=")),
        (Some(bits), ..) if accuracy == Accuracy::Norm => {
            Some(format!("range_bits={bits} requires accuracy='entrywise'"))
        }
        (_, true, other) if other != "solve" => {
            Some(format!("factor_precision= is only accepted for 'solve', not for '{other}'"))
        }
        _ => None,
    };
    if let Some(text) = refused {
        return Err(PyValueError::new_err(text));
    }
    let product = ProductPlanOptions::new().accuracy(accuracy).range_bits(range_bits);
    let factor = CholeskyOptions::new().accuracy(accuracy).range_bits(range_bits.unwrap_or(0));
    let numbers = match (operation, &sizes[..]) {
        ("syrk", &[rows, cols]) => {
            json(&sunzi::plans::plan_syrk_with(&ctx, (rows, cols), bits, &product).or_raise(py)?)?
        }
        ("gemm", &[rows, cols, contracted]) => {
            json(&sunzi::plans::plan_gemm_with(&ctx, (rows, cols), contracted, bits, &product).or_raise(py)?)?
        }
        ("cholesky", &[order]) => json(&sunzi::plans::plan_cholesky(&ctx, order, bits, &factor).or_raise(py)?)?,
        ("trsm", &[order, columns]) => {
            json(&sunzi::plans::plan_trsm(&ctx, (order, columns), bits, accuracy).or_raise(py)?)?
        }
        ("solve", &[order, columns]) if let Some(options) = &refinement => {
            json(&sunzi::plans::plan_solve_refined(&ctx, (order, columns), bits, options).or_raise(py)?)?
        }
        ("solve", &[order, columns]) => {
            json(&sunzi::plans::plan_solve(&ctx, (order, columns), bits, &factor).or_raise(py)?)?
        }
        ("inverse", &[order]) => json(&sunzi::plans::plan_inverse(&ctx, order, bits, &factor).or_raise(py)?)?,
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no plan of '{operation}' with {} sizes; use ('syrk', rows, cols), ('gemm', rows, cols, \
                 contracted), ('cholesky', order), ('trsm', order, columns), ('solve', order, columns) or \
                 ('inverse', order)",
                sizes.len()
            )));
        }
    };
    py.import("json")?.call_method1("loads", (numbers.unwrap_or_default(),))
}
