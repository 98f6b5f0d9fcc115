//! Checks of results by means that share no code with what made them.

use crate::call::Call;
use crate::functions::{SYMMETRIC, json, op, part_of, symmetric};
use crate::input::{Bits, Operand, Part};
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sunzi::Uplo;
use sunzi::verify::{VerifyOptions, verify_cholesky, verify_gemm, verify_syrk};

/// The operations whose results can be checked, with the names of their operands.
const OPERATIONS: [(&str, &[&str]); 3] = [("syrk", &["p", "q"]), ("gemm", &["a", "b", "c"]), ("cholesky", &["a", "l"])];

/// See the Python layer.
#[pyfunction]
pub fn verify<'py>(
    operation: &str,
    operands: Vec<Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let names = OPERATIONS.iter().find(|(name, names)| *name == operation && names.len() == operands.len());
    let Some((_, names)) = names else {
        let known = OPERATIONS.map(|(name, names)| format!("('{name}', {})", names.join(", "))).join(", ");
        let message = format!("no check of '{operation}' with {} matrices: use {known}", operands.len());
        return Err(PyValueError::new_err(message));
    };
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let part = |at: usize| match (operation, at) {
        ("syrk", 1) | ("cholesky", 0) => part_of(uplo),
        _ => Part::Whole,
    };
    let read = |(at, object): (usize, &Bound<'py, PyAny>)| Operand::of(object, names[at], part(at));
    let operands = operands.iter().enumerate().map(read).collect::<PyResult<Vec<_>>>()?;
    // The last operand is the result, and was rounded to its precision.
    let exact = call.flag("exact")?;
    let bits = match exact {
        true => call.least_bits(),
        false => call.precision_bits(&[operands.last().and_then(|result| result.natural_bits)])?,
    };
    let read_as = if exact { Bits::Integers } else { Bits::Round(bits) };
    let views = operands.into_iter().map(|operand| operand.view(call.py(), read_as));
    let views = views.collect::<PyResult<Vec<View>>>()?;
    let choices = VerifyOptions::default()
        .op(op(call.flag("transpose_a")?))
        .op_b(op(call.flag("transpose_b")?))
        .uplo(uplo.unwrap_or(Uplo::Lower))
        .exact_integers(exact)
        .seed(call.seed("seed")?);
    let found = call.run(|ctx| match &views[..] {
        [a, b, c] => verify_gemm(ctx, (a.entries(), b.entries()), c.entries(), bits, &choices),
        [p, q] if operation == "syrk" => verify_syrk(ctx, p.entries(), symmetric(q, uplo), bits, &choices),
        [a, l] => verify_cholesky(ctx, symmetric(a, uplo), l.entries(), bits, &choices),
        _ => unreachable!("the number of operands has been checked"),
    })?;
    let json = json(&found)?.unwrap_or_default();
    call.py().import("json")?.call_method1("loads", (json,))
}
