//! `Lu`: the factors of any square matrix, for several solves.

use crate::call::{Call, options};
use crate::choices::{ACCURACIES, json};
use crate::context::Context;
use crate::errors::OrRaise;
use crate::functions::number;
use crate::general::General;
use crate::input::{Bits, Operand, ReadPart};
use crate::kind::{Container, NumberKind};
use crate::matrix_object::Matrix;
use crate::output::{ResultForm, Shape};
use crate::runner::Runner;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sunzi::Outcome;

/// The factors `P A = L U` of any square `A` with partial pivoting, kept for several solves.
///
/// `Lu(a, *, accuracy="entrywise", precision=None, context=None, progress=None)`
///
/// Arguments, accuracy, cost and errors as in `sunzi.lu`, which returns an object of this class and can write a report.
///
/// >>> import sunzi
/// >>> factors = sunzi.Lu([[1.0, 2.0], [4.0, 4.0]])
/// >>> factors.solve([5.0, 12.0]), factors.rows, factors.det()
/// ([1.0, 2.0], [1, 0], -4.0)
#[pyclass(frozen, module = "sunzi")]
pub struct Lu {
    factors: sunzi::Lu,
    kind: NumberKind,
}

impl Lu {
    fn matrix(&self, py: Python<'_>, part: impl FnOnce() -> sunzi::Result<sunzi::Matrix> + Send) -> PyResult<Matrix> {
        Ok(Matrix::new(py.detach(part).or_raise(py)?.into(), self.kind))
    }

    /// Reads a matrix, and factors it in a call that then has its report.
    fn of(call: &mut Call<'_>, a: &Bound<'_, PyAny>) -> PyResult<Lu> {
        let a = Operand::of(a, "a", ReadPart::Whole)?;
        let (bits, kind) = (call.precision_bits(&[a.natural_bits])?, a.kind);
        let accuracy = call.choice("accuracy", ACCURACIES)?;
        let a = a.view(call.py(), Bits::InFull(bits))?;
        let Outcome { result: factors, report } =
            call.run(|ctx| General { entries: a.entries(), precision_bits: bits, accuracy }.factor(ctx))?;
        call.tell(json(&report)?)?;
        Ok(Lu { factors, kind })
    }
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn lu(a: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Lu> {
    Lu::of(&mut Call::new(options)?, a)
}

#[pymethods]
impl Lu {
    #[new]
    #[pyo3(signature = (a, *, accuracy="entrywise", precision=None, context=None, progress=None))]
    fn new<'py>(
        a: &Bound<'py, PyAny>,
        accuracy: &str,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Lu> {
        let given = options(a.py(), precision, context, progress)?;
        given.set_item("accuracy", accuracy)?;
        Lu::of(&mut Call::new(&given)?, a)
    }

    /// The unit lower triangular factor `L` as a `Matrix`.
    #[getter]
    fn lower(&self, py: Python<'_>) -> PyResult<Matrix> {
        self.matrix(py, || self.factors.lower())
    }

    /// The upper triangular factor `U` as a `Matrix`.
    #[getter]
    fn upper(&self, py: Python<'_>) -> PyResult<Matrix> {
        self.matrix(py, || self.factors.upper())
    }

    /// The order of the rows, a list of integers: row `i` of `P A` is row `rows[i]` of `A`.
    #[getter]
    fn rows(&self) -> Vec<usize> {
        self.factors.rows().to_vec()
    }

    /// Number of rows of the matrix.
    #[getter]
    fn order(&self) -> usize {
        self.factors.order()
    }

    /// Precision of the factors in bits.
    #[getter]
    fn precision(&self) -> u32 {
        self.factors.factors().precision_bits()
    }

    /// The solution of `A X = B`, with `transposed` of `Aᵀ X = B`, of the same kind as `b`.
    ///
    /// Accuracy: `|b - A x| <= 2^(4 - p) Pᵀ |L| |U| |x|` for every entry of each column, with `p` the smaller of
    /// `precision` and the precision of the factors; with `transposed` `|b - Aᵀ x| <= 2^(4 - p) |Uᵀ| |Lᵀ| |P x|`. With
    /// `accuracy="norm"` the error of the factors is added, see `sunzi.lu`. The number of correct digits of `x` depends
    /// on the condition of `A`; `sunzi.solve` estimates or proves it.
    #[pyo3(signature = (b, *, transposed=false, precision=None, context=None, progress=None))]
    fn solve<'py>(
        &self,
        b: &Bound<'py, PyAny>,
        transposed: bool,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut call = Call::new(&options(b.py(), precision, context, progress)?)?;
        let b = Operand::of(b, "b", ReadPart::Whole)?;
        let bits = call.precision_bits(&[b.natural_bits, Some(self.precision())])?;
        let shape = Shape { container: b.container, kind: b.kind.min(self.kind) };
        let b = b.view(call.py(), Bits::InFull(bits))?;
        let solution = call.run(|ctx| match transposed {
            true => self.factors.solve_transposed(ctx, b.entries(), bits),
            false => self.factors.solve(ctx, b.entries(), bits),
        })?;
        call.finish(solution, ResultForm::General, shape, None)
    }

    /// The inverse of `A` as a `Matrix`: the solution for the columns of the identity, with the bound of `solve`.
    #[pyo3(signature = (*, precision=None, context=None, progress=None))]
    fn inverse(
        &self,
        py: Python<'_>,
        precision: Option<i64>,
        context: Option<Bound<'_, Context>>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Matrix> {
        let mut call = Call::new(&options(py, precision, context, progress)?)?;
        let bits = call.precision_bits(&[Some(self.precision())])?;
        let inverse = call.run(|ctx| self.factors.inverse(ctx, bits))?;
        Ok(Matrix::new(inverse.into(), self.kind))
    }

    /// The determinant of `Pᵀ L U`, to one unit in the last place; its sign is that of the order of the rows times the
    /// signs of the diagonal of `U`.
    ///
    /// Its error with respect to `det A` depends on the condition of `A`, and is not known. A second factorisation at a
    /// higher precision shows which digits agree.
    fn det<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = Runner::new(py, None, None)?.run(|_| self.factors.det())?;
        number(py, &value, Shape { container: Container::Flat, kind: self.kind })
    }

    /// For pickles.
    #[staticmethod]
    fn _restored(factors: &Matrix, rows: Vec<usize>, py: Python<'_>) -> PyResult<Lu> {
        let make = || sunzi::Lu::from_factors(factors.view().entries().to_matrix()?, rows);
        Ok(Lu { factors: make().or_raise(py)?, kind: factors.number_kind() })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        let factors = Matrix::new(this.factors.factors().clone().into(), this.kind);
        (slf.get_type().getattr("_restored")?, (factors, this.rows()).into_pyobject(py)?).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        format!("Lu({0} x {0}, {1} bits)", self.order(), self.precision())
    }
}
