//! Norm, trace and diagonal of any matrix.

use crate::arithmetic::{rounded, trace as sum_of_diagonal};
use crate::call::Call;
use crate::errors::OrRaise;
use crate::functions::number;
use crate::input::{Bits, Operand, ReadPart};
use crate::output::{ResultForm, Shape, give};
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rug::Float;
use sunzi::MatrixView;

/// Bits beyond those of the result, for sums of many entries.
const SPARE_BITS: u32 = 64;

/// The norms that are there.
#[derive(Clone, Copy)]
enum Norm {
    Frobenius,
    One,
    Infinity,
    Largest,
}

impl Norm {
    /// A norm by NumPy's name for it.
    fn of(name: &Bound<'_, PyAny>) -> PyResult<Norm> {
        let number = name.extract::<f64>().ok();
        match (name.extract::<String>().ok().as_deref(), number) {
            (Some("fro"), _) => Ok(Norm::Frobenius),
            (Some("max"), _) => Ok(Norm::Largest),
            (Some("inf"), _) => Ok(Norm::Infinity),
            (_, Some(1.0)) => Ok(Norm::One),
            (_, Some(infinity)) if infinity == f64::INFINITY => Ok(Norm::Infinity),
            _ => Err(PyValueError::new_err(format!(
                "ord={} is not valid; use 'fro' (root of the sum of squares), 1 (the largest sum of magnitudes in a \
                 column), inf (the largest in a row) or 'max' (the largest magnitude of an entry); \
                 sunzi.extreme_eigenvalue(sunzi.syrk(a), which='largest') is the square of the spectral norm",
                name.repr()?
            ))),
        }
    }

    /// The norm, rounded to `bits` bits.
    fn find(self, ctx: &sunzi::Context, view: &View, bits: u32) -> sunzi::Result<Float> {
        if matches!(self, Norm::Frobenius) {
            let whole = view.to_whole()?;
            let count = whole.rows() * whole.cols();
            let column = MatrixView::from_parts(whole.parts(), (count, 1), count.max(1), whole.precision_bits())?;
            return sunzi::blas::nrm2(ctx, column, bits);
        }
        let wide = view.rounded(view.precision_bits().max(bits + SPARE_BITS))?;
        let found = match self {
            Norm::Infinity => wide.transpose().to_whole()?.one_norm(),
            Norm::One => wide.to_whole()?.one_norm(),
            _ => wide.to_whole()?.max_norm(),
        };
        Ok(Float::with_val(bits, found))
    }
}

/// An operand, the precision of the result, and its form.
struct Measured {
    view: View,
    bits: u32,
    shape: Shape,
}

impl Measured {
    fn of(call: &Call<'_>, a: &Bound<'_, PyAny>) -> PyResult<Measured> {
        let a = Operand::of(a, "a", ReadPart::Whole)?;
        let bits = call.precision_bits(&[a.natural_bits])?;
        let shape = Shape { container: a.container, kind: a.kind };
        Ok(Measured { view: a.view(call.py(), Bits::Round(bits))?, bits, shape })
    }
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn norm<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let which = call.object("ord")?.map_or(Ok(Norm::Frobenius), |name| Norm::of(&name))?;
    let Measured { view, bits, shape } = Measured::of(&call, a)?;
    let value = call.run(|ctx| which.find(ctx, &view, bits))?;
    number(call.py(), &value, shape)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn trace<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let call = Call::new(options)?;
    let Measured { view, bits, shape } = Measured::of(&call, a)?;
    number(call.py(), &sum_of_diagonal(&view, bits), shape)
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn diagonal<'py>(a: &Bound<'py, PyAny>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let call = Call::new(options)?;
    let Measured { view, bits, shape } = Measured::of(&call, a)?;
    let column = rounded(call.py(), &view.diagonal().or_raise(call.py())?, bits)?;
    let whole = column.entries().to_matrix().or_raise(call.py())?;
    give(call.py(), whole, ResultForm::General, Shape { container: shape.container.of_one_dimension(), ..shape })
}
