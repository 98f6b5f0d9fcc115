//! Functions on vectors: products with a matrix, substitution, updates, sums. A vector is a flat operand, or a matrix
//! of one column or one row.

use crate::call::Call;
use crate::choices::{SYMMETRIC, TRIANGLES, json, op, part_of, symmetric};
use crate::functions::{ProductTerms, number};
use crate::input::{Bits, Operand, ReadPart, scalar};
use crate::output::{ResultForm, Shape};
use crate::view::View;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sunzi::blas::{GemvOptions, GerOptions, SymvOptions, TriangleVectorOptions};
use sunzi::{Diag, Outcome};

/// The entries of a vector that is added.
fn added(terms: &ProductTerms) -> Option<sunzi::MatrixView<'_>> {
    terms.accumulate.as_ref().map(View::entries)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn gemv<'py>(
    a: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let (a, x) = (Operand::of(a, "a", ReadPart::Whole)?, Operand::of(x, "x", ReadPart::Whole)?);
    let terms = ProductTerms::of(&call, &[a.natural_bits, x.natural_bits], ReadPart::Whole)?;
    let shape = Shape { container: x.container, kind: x.kind.min(a.kind) };
    let transpose = call.flag("transpose")?;
    call.expect(if transpose { a.cols } else { a.rows }, 1)?;
    let (a, x) = (a.view(call.py(), terms.bits)?, x.view(call.py(), terms.bits)?);
    let Outcome { result, report } = call.run(|ctx| {
        let options = GemvOptions::new().op(op(transpose)).alpha(terms.alpha.as_ref()).beta(terms.beta.as_ref());
        let options = options.accumulate(added(&terms));
        sunzi::blas::gemv_with(ctx, a.entries(), x.entries(), terms.precision_bits, &options)
    })?;
    call.finish(result, ResultForm::General, shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn symv<'py>(
    a: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let (a, x) = (Operand::of(a, "a", part_of(uplo))?, Operand::of(x, "x", ReadPart::Whole)?);
    let terms = ProductTerms::of(&call, &[a.natural_bits, x.natural_bits], ReadPart::Whole)?;
    let shape = Shape { container: x.container, kind: x.kind.min(a.kind) };
    call.expect(a.rows, 1)?;
    let (a, x) = (a.view(call.py(), terms.bits)?, x.view(call.py(), terms.bits)?);
    let Outcome { result, report } = call.run(|ctx| {
        let options = SymvOptions::new().alpha(terms.alpha.as_ref()).beta(terms.beta.as_ref());
        let options = options.accumulate(added(&terms));
        sunzi::blas::symv_with(ctx, symmetric(&a, uplo), x.entries(), terms.precision_bits, &options)
    })?;
    call.finish(result, ResultForm::General, shape, json(&report)?)
}

/// `trmv` or `trsv`.
fn triangular<'py>(
    t: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
    solves: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", TRIANGLES)?;
    let diag = if call.flag("unit")? { Diag::Unit } else { Diag::NonUnit };
    let part = if diag == Diag::Unit { ReadPart::StrictTriangle(uplo) } else { ReadPart::Triangle(uplo) };
    let name = if solves { "b" } else { "x" };
    let (t, x) = (Operand::of(t, "t", part)?, Operand::of(x, name, ReadPart::Whole)?);
    let bits = call.precision_bits(&[t.natural_bits, x.natural_bits])?;
    let alpha = scalar(call.object("alpha")?.as_ref(), "alpha", Bits::Round(bits))?;
    let shape = Shape { container: x.container, kind: x.kind.min(t.kind) };
    call.expect(t.rows, 1)?;
    let (t, x) = (t.view(call.py(), Bits::Round(bits))?, x.view(call.py(), Bits::Round(bits))?);
    let options = TriangleVectorOptions::new().uplo(uplo).op(op(call.flag("transpose")?)).diag(diag);
    let options = options.alpha(alpha.as_ref());
    let Outcome { result, report } = call.run(|ctx| match solves {
        true => sunzi::blas::trsv_with(ctx, t.entries(), x.entries(), bits, &options),
        false => sunzi::blas::trmv_with(ctx, t.entries(), x.entries(), bits, &options),
    })?;
    call.finish(result, ResultForm::General, shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn trmv<'py>(
    t: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    triangular(t, x, options, false)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn trsv<'py>(
    t: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    triangular(t, b, options, true)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn ger<'py>(
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let (x, y) = (Operand::of(x, "x", ReadPart::Whole)?, Operand::of(y, "y", ReadPart::Whole)?);
    let terms = ProductTerms::of(&call, &[x.natural_bits, y.natural_bits], ReadPart::Whole)?;
    let shape = Shape { container: x.container, kind: x.kind.min(y.kind) };
    call.expect(x.rows * x.cols, y.rows * y.cols)?;
    let (x, y) = (x.view(call.py(), terms.bits)?, y.view(call.py(), terms.bits)?);
    let Outcome { result, report } = call.run(|ctx| {
        let options = GerOptions::new().alpha(terms.alpha.as_ref()).accumulate(added(&terms));
        sunzi::blas::ger_with(ctx, x.entries(), y.entries(), terms.precision_bits, &options)
    })?;
    call.finish(result, ResultForm::General, shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn axpy<'py>(
    alpha: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let (x, y) = (Operand::of(x, "x", ReadPart::Whole)?, Operand::of(y, "y", ReadPart::Whole)?);
    let bits = call.precision_bits(&[x.natural_bits, y.natural_bits])?;
    let alpha = scalar(Some(alpha), "alpha", Bits::Round(bits))?.unwrap_or_else(|| rug::Float::with_val(2, 1));
    let shape = Shape { container: y.container, kind: y.kind.min(x.kind) };
    call.expect(y.rows * y.cols, 1)?;
    let (x, y) = (x.view(call.py(), Bits::Round(bits))?, y.view(call.py(), Bits::Round(bits))?);
    let result = call.run(|ctx| sunzi::blas::axpy(ctx, &alpha, x.entries(), y.entries(), bits))?;
    call.finish(result, ResultForm::General, shape, None)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn dot<'py>(
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let (x, y) = (Operand::of(x, "x", ReadPart::Whole)?, Operand::of(y, "y", ReadPart::Whole)?);
    let bits = call.precision_bits(&[x.natural_bits, y.natural_bits])?;
    let shape = Shape { container: x.container, kind: x.kind.min(y.kind) };
    let (x, y) = (x.view(call.py(), Bits::Round(bits))?, y.view(call.py(), Bits::Round(bits))?);
    let value = call.run(|ctx| sunzi::blas::dot(ctx, x.entries(), y.entries(), bits))?;
    number(call.py(), &value, shape)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn nrm2<'py>(x: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let x = Operand::of(x, "x", ReadPart::Whole)?;
    let bits = call.precision_bits(&[x.natural_bits])?;
    let shape = Shape { container: x.container, kind: x.kind };
    let x = x.view(call.py(), Bits::Round(bits))?;
    let value = call.run(|ctx| sunzi::blas::nrm2(ctx, x.entries(), bits))?;
    number(call.py(), &value, shape)
}
