//! Functions that use a factor: LDL^T, inverse, determinant, condition.

use crate::answers::{GivenSystem, RequestedDigits, SystemOperands, answer};
use crate::balls;
use crate::call::Call;
use crate::choices::{SYMMETRIC, json, part_of};
use crate::errors::{SINGULAR, exception, with_remark};
use crate::functions::number;
use crate::general::{Factors, with_factors};
use crate::input::Operand;
use crate::output::{ResultForm, Shape, give};
use crate::symmetric::Symmetric;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sunzi::{Error, LdltOptions, Outcome};

/// The call that inverts symmetric matrices of which one triangle is named, if they are not positive definite.
const FOR_SYMMETRIC: &str = "sunzi.Ldlt(a, uplo=uplo).solve(sunzi.eye(n, precision=bits))";

impl Symmetric {
    /// `A = L D L^T`.
    ///
    /// # Errors
    /// As [`sunzi::ldlt()`].
    pub fn ldlt(&self, ctx: &sunzi::Context) -> sunzi::Result<Outcome<sunzi::Ldlt, sunzi::report::SolveReport>> {
        sunzi::ldlt_with(ctx, self.operand(), self.precision_bits, &LdltOptions::new().accuracy(self.accuracy))
    }

    /// `A = L D L^T`; the exception for a pivot that is 0 states that the matrix is singular if that is proven.
    ///
    /// # Errors
    /// As [`Symmetric::ldlt`].
    pub fn ldlt_in(&self, call: &mut Call<'_>) -> PyResult<Outcome<sunzi::Ldlt, sunzi::report::SolveReport>> {
        call.run(|ctx| Ok(self.ldlt(ctx).map_err(|error| (self.is_singular(ctx).unwrap_or(false), error))))?.map_err(
            |(is_singular, error)| match error {
                Error::Singular { .. } if is_singular => with_remark(call.py(), exception(call.py(), error), SINGULAR),
                error => exception(call.py(), error),
            },
        )
    }
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn ldlt<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let a = Symmetric::of(&call, a, &[])?;
    let Outcome { result: factors, report } = a.ldlt_in(&mut call)?;
    let (py, pivots) = (call.py(), factors.pivots().clone());
    let lower = call.finish(factors.lower().clone(), ResultForm::General, a.shape, json(&report)?)?;
    let column = Shape { container: a.shape.container.of_one_dimension(), ..a.shape };
    let pivots = give(py, pivots, ResultForm::General, column)?;
    Ok(PyTuple::new(py, [lower, pivots])?.into_any())
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn inverse<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let requested = RequestedDigits::take(options)?;
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let (system, a) = (GivenSystem { a, b: None }, Operand::of(a, "a", part_of(uplo))?);
    if let Some(requested) = requested {
        if a.is_ball() {
            requested.refuse_with(balls::OPERANDS)?;
        }
        call.expect(a.rows, a.cols)?;
        let answered = answer(call, &system, SystemOperands { a, b: None }, requested);
        return answered.map_err(|error| with_factors(options.py(), error, "inverse", FOR_SYMMETRIC));
    }
    if a.is_ball() {
        return balls::inverse(call, a, uplo);
    }
    let a = Symmetric::read(&call, a, &[])?;
    call.expect(a.view.rows(), a.view.cols())?;
    let (factors, options) = (Factors::of(&call)?, a.options().digits(call.wants_report()));
    let rounding = call.wants_report().then(|| a.rounding(None));
    let inverted = call.run(|ctx| match sunzi::inverse_with(ctx, a.operand(), a.precision_bits, &options) {
        Ok(Outcome { result, report }) => {
            Ok((result.into_matrix(), ResultForm::Symmetric, serde_json::to_string(&report).ok()))
        }
        Err(error) if factors.fall_back(&error) => {
            let (result, report) = a.general().answer(ctx, None, rounding)?;
            Ok((result, ResultForm::General, report))
        }
        Err(error) => Err(a.explained(ctx, error)),
    });
    let accepted = |error| with_factors(call.py(), error, "inverse", FOR_SYMMETRIC);
    let (inverse, form, report) = inverted.map_err(accepted)?;
    call.finish(inverse, form, a.shape, report)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn det<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let a = Operand::of(a, "a", part_of(uplo))?;
    if a.is_ball() {
        return balls::det(call, a, uplo);
    }
    let (factors, a) = (Factors::of(&call)?, Symmetric::read(&call, a, &[])?);
    let value = call.run(|ctx| match a.factor(ctx) {
        Ok(made) => made.result.det(),
        Err(error) if factors.fall_back(&error) => a.general().factor(ctx)?.result.det(),
        Err(error) => Err(a.explained(ctx, error)),
    });
    let accepted = |error| with_factors(call.py(), error, "det", "sunzi.Ldlt(a, uplo=uplo).det()");
    let value = value.map_err(accepted)?;
    number(call.py(), &value, a.shape)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn condition<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let scaled = call.flag("scaled")?;
    let a = Symmetric::of(&call, a, &[])?;
    let value = call.run(|ctx| {
        let factor = a.factor_or_reason(ctx)?.result;
        match scaled {
            true => factor.scaled_condition(ctx),
            false => factor.condition_estimate(ctx, &a.operand().one_norm()?),
        }
    })?;
    number(call.py(), &value, a.shape)
}
