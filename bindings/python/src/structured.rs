//! Products with triangular and symmetric matrices, symmetric sums of two products, extreme eigenvalues.

use crate::call::Call;
use crate::choices::{Named, SIDES, SYMMETRIC, TRIANGLES, json, op, part_of, symmetric};
use crate::errors::if_not_symmetric;
use crate::functions::{ProductTerms, general, number};
use crate::input::{Bits, Operand, ReadPart};
use crate::kind::NumberKind;
use crate::output::{ResultForm, Shape};
use crate::view::View;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sunzi::eigenvalue::{EigenvalueInterval, EigenvalueOptions, Extreme};
use sunzi::{Diag, Outcome, SymmOptions, Syr2kOptions, SyrkOptions, TrmmOptions, Uplo};

/// Bits of an interval where the caller gives none: a few digits.
const FEW_BITS: u32 = 32;

/// The remark for a matrix that is not symmetric.
const NO_GENERAL: &str =
    "eigenvalues are enclosed only for symmetric matrices; sunzi has no eigenvalues of general matrices";

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn trmm<'py>(
    t: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let (side, uplo) = (call.choice("side", SIDES)?, call.choice("uplo", TRIANGLES)?);
    let diag = if call.flag("unit")? { Diag::Unit } else { Diag::NonUnit };
    let part = if diag == Diag::Unit { ReadPart::StrictTriangle(uplo) } else { ReadPart::Triangle(uplo) };
    let (t, b) = (Operand::of(t, "t", part)?, Operand::of(b, "b", ReadPart::Whole)?);
    call.expect(b.rows, b.cols)?;
    let terms = ProductTerms::of(&call, &[t.natural_bits, b.natural_bits], ReadPart::Whole)?;
    let shape = Shape { container: b.container, kind: b.kind.min(t.kind) };
    let (t, b) = (t.view(call.py(), terms.bits)?, b.view(call.py(), terms.bits)?);
    let options = TrmmOptions::new().side(side).uplo(uplo).op(op(call.flag("transpose")?)).diag(diag);
    let options = options.alpha(terms.alpha.as_ref()).accuracy(terms.accuracy);
    let bits = terms.precision_bits;
    let Outcome { result, report } = call.run(|ctx| sunzi::trmm_with(ctx, t.entries(), b.entries(), bits, &options))?;
    call.finish(result, ResultForm::General, shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn symm<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let (side, uplo) = (call.choice("side", SIDES)?, call.choice("uplo", SYMMETRIC)?);
    let (a, b) = (Operand::of(a, "a", part_of(uplo))?, Operand::of(b, "b", ReadPart::Whole)?);
    call.expect(b.rows, b.cols)?;
    let terms = ProductTerms::of(&call, &[a.natural_bits, b.natural_bits], ReadPart::Whole)?;
    let shape = Shape { container: b.container, kind: b.kind.min(a.kind) };
    let (a, b) = (a.view(call.py(), terms.bits)?, b.view(call.py(), terms.bits)?);
    let Outcome { result, report } = call.run(|ctx| {
        let options = SymmOptions::new().side(side).accuracy(terms.accuracy).alpha(terms.alpha.as_ref());
        let options = options.beta(terms.beta.as_ref()).accumulate(terms.accumulate.as_ref().map(View::entries));
        sunzi::symm_with(ctx, symmetric(&a, uplo), b.entries(), terms.precision_bits, &options)
    })?;
    call.finish(result, ResultForm::General, shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn syr2k<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let transpose = call.flag("transpose")?;
    let (a, b) = (Operand::of(a, "a", ReadPart::Whole)?, Operand::of(b, "b", ReadPart::Whole)?);
    let order = if transpose { a.rows } else { a.cols };
    call.expect(order, order)?;
    let terms = ProductTerms::of(&call, &[a.natural_bits, b.natural_bits], part_of(uplo))?;
    let shape = Shape { container: a.container, kind: a.kind.min(b.kind) };
    let (a, b) = (a.view(call.py(), terms.bits)?, b.view(call.py(), terms.bits)?);
    let outcome = call.run(|ctx| {
        let options = Syr2kOptions::new().op(op(transpose)).accuracy(terms.accuracy).alpha(terms.alpha.as_ref());
        let options = options.beta(terms.beta.as_ref());
        let options = options.accumulate(terms.accumulate.as_ref().map(|c| symmetric(c, uplo)));
        sunzi::syr2k_with(ctx, a.entries(), b.entries(), terms.precision_bits, &options)
    })?;
    let Outcome { result, report } = general(outcome);
    call.finish(result, ResultForm::Symmetric, shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn weighted_gram<'py>(
    p: &Bound<'py, PyAny>,
    d: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let (uplo, transpose, exact) = (call.choice("uplo", SYMMETRIC)?, call.flag("transpose")?, call.flag("exact")?);
    let (p, d) = (Operand::of(p, "p", ReadPart::Whole)?, Operand::of(d, "d", ReadPart::Whole)?);
    let order = if transpose { p.rows } else { p.cols };
    call.expect(order, order)?;
    let terms = ProductTerms::of(&call, &[p.natural_bits, d.natural_bits], part_of(uplo))?;
    let shape = Shape { container: p.container, kind: p.kind.min(d.kind) };
    let (p, d) = (p.view(call.py(), terms.bits)?, d.view(call.py(), terms.bits)?);
    let outcome = terms.run(&mut call, |ctx| {
        let options = SyrkOptions::new().op(op(transpose)).exact_integers(exact).accuracy(terms.accuracy);
        let options = options.alpha(terms.alpha.as_ref()).beta(terms.beta.as_ref());
        let options = options.accumulate(terms.accumulate.as_ref().map(|c| symmetric(c, uplo)));
        sunzi::weighted_gram_with(ctx, p.entries(), d.entries(), terms.precision_bits, &options)
    })?;
    let Outcome { result, report } = general(outcome);
    call.finish(result, ResultForm::Symmetric, shape, json(&report)?)
}

/// The operands of a search for an eigenvalue: a symmetric one, and `l` where there is one.
struct Search {
    a: View,
    l: Option<View>,
    uplo: Option<Named>,
    shape: Shape,
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
#[pyo3(signature = (a, l, options))]
pub fn eigenvalue<'py>(
    a: &Bound<'py, PyAny>,
    l: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let which = call.choice("which", &[("smallest", Extreme::Smallest), ("largest", Extreme::Largest)])?;
    let bits = call.bits("precision")?.unwrap_or(FEW_BITS);
    let a = Operand::of(a, if l.is_some() { "x" } else { "a" }, part_of(uplo))?;
    let l = l.map(|l| Operand::of(l, "l", ReadPart::Triangle(Uplo::Lower))).transpose()?;
    let natural = l.as_ref().and_then(|l| l.natural_bits).max(a.natural_bits).unwrap_or(0);
    // Roundings of what is read move no eigenvalue by more than the least width of an interval of these bits.
    let read = Bits::Round(natural.max(2 * bits + 64));
    let shape = Shape { container: a.container, kind: NumberKind::Fraction };
    let l = l.map(|l| l.view(call.py(), read)).transpose()?;
    let search = Search { a: a.view(call.py(), read)?, l, uplo, shape };
    let options = EigenvalueOptions::new().which(which);
    let outcome = call.run(|ctx| match &search.l {
        Some(l) => sunzi::eigenvalue::pencil_eigenvalue_with(
            ctx,
            l.entries(),
            symmetric(&search.a, search.uplo),
            bits,
            &options,
        ),
        None => sunzi::eigenvalue::extreme_eigenvalue_with(ctx, symmetric(&search.a, search.uplo), bits, &options),
    });
    let outcome = outcome.map_err(|error| if_not_symmetric(call.py(), error, NO_GENERAL))?;
    let interval = match search.a.rounded_bits() {
        Some(rounded_bits) if search.l.is_none() => {
            outcome.result.widened_by_rounding(search.a.entries(), rounded_bits)
        }
        _ => outcome.result,
    };
    let EigenvalueInterval { lower, upper } = interval;
    let ends = [number(call.py(), &lower, search.shape)?, number(call.py(), &upper, search.shape)?];
    Ok(PyTuple::new(call.py(), ends)?.into_any())
}
