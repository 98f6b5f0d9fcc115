//! Functions of symmetric matrices that go by a factor: LDL^T, inverse, determinant, condition.

use crate::answers::{GivenSystem, RequestedDigits, SystemOperands, answer};
use crate::balls;
use crate::call::Call;
use crate::choices::{SYMMETRIC, json, part_of};
use crate::errors::{SINGULAR, exception, of_symmetric, with_accepted, with_remark};
use crate::functions::number;
use crate::input::Operand;
use crate::output::{ResultForm, Shape, give};
use crate::symmetric::Symmetric;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sunzi::{Error, LdltOptions, Outcome};

/// The call that inverts symmetric matrices that are not positive definite.
const FOR_SYMMETRIC: &str = "sunzi.Ldlt(a).solve(sunzi.eye(n, precision=bits))";

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
        return answered.map_err(|error| with_accepted(options.py(), error, "inverse", FOR_SYMMETRIC));
    }
    if a.is_ball() {
        return balls::inverse(call, a, uplo).map_err(|error| of_symmetric(options.py(), error, "inverse"));
    }
    let a = Symmetric::read(&call, a, &[])?;
    call.expect(a.view.rows(), a.view.cols())?;
    let options = a.options().digits(call.wants_report());
    let inverted = call.run(|ctx| {
        let inverted = sunzi::inverse_with(ctx, a.operand(), a.precision_bits, &options);
        inverted.map_err(|error| a.explained(ctx, error))
    });
    let accepted = |error| with_accepted(call.py(), error, "inverse", FOR_SYMMETRIC);
    let Outcome { result, report } = inverted.map_err(accepted)?;
    call.finish(result.into_matrix(), ResultForm::Symmetric, a.shape, json(&report)?)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn det<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let uplo = call.choice("uplo", SYMMETRIC)?;
    let a = Operand::of(a, "a", part_of(uplo))?;
    if a.is_ball() {
        return balls::det(call, a, uplo).map_err(|error| of_symmetric(options.py(), error, "det"));
    }
    let a = Symmetric::read(&call, a, &[])?;
    let value = call.run(|ctx| a.factor_or_reason(ctx)?.result.det());
    let value = value.map_err(|error| with_accepted(call.py(), error, "det", "sunzi.Ldlt(a).det()"))?;
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
