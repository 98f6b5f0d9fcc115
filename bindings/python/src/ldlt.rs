//! `Ldlt`: the factors of a symmetric matrix that need not be positive definite, for several solves.

use crate::call::{Call, options};
use crate::context::Context;
use crate::errors::OrRaise;
use crate::factor::{digits_call, read_beside};
use crate::functions::{accuracy_name, accuracy_of, number};
use crate::index::Line;
use crate::input::{Bits, Operand, ReadPart};
use crate::kind::{Container, NumberKind};
use crate::matrix_object::Matrix;
use crate::output::{ResultForm, Shape};
use crate::runner::Runner;
use crate::symmetric::Symmetric;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rug::Float;

/// The factors of a symmetric `A = L D Lᵀ` without pivoting, kept for several solves.
///
/// `Ldlt(a, *, uplo=None, accuracy="entrywise", precision=None, context=None, progress=None)`
///
/// `L` is unit lower triangular, and `d` is the diagonal of `D`. Arguments, accuracy, cost and errors as in
/// `sunzi.ldlt`.
///
/// >>> import sunzi
/// >>> factors = sunzi.Ldlt([[1.0, 2.0], [2.0, -3.0]])
/// >>> factors.solve([5.0, -4.0]), factors.inertia, factors.det()
/// ([1.0, 2.0], (1, 1), -7.0)
#[pyclass(frozen, module = "sunzi")]
pub struct Ldlt {
    factors: sunzi::Ldlt,
    kind: NumberKind,
}

impl Ldlt {
    fn shape(&self) -> Shape {
        Shape { container: Container::Flat, kind: self.kind }
    }
}

#[pymethods]
impl Ldlt {
    #[new]
    #[pyo3(signature = (a, *, uplo=None, accuracy="entrywise", precision=None, context=None, progress=None))]
    fn new<'py>(
        a: &Bound<'py, PyAny>,
        uplo: Option<&str>,
        accuracy: &str,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Ldlt> {
        let given = options(a.py(), precision, context, progress)?;
        given.set_item("uplo", uplo)?;
        given.set_item("accuracy", accuracy)?;
        let mut call = Call::new(&given)?;
        let a = Symmetric::of(&call, a, &[])?;
        Ok(Ldlt { factors: a.ldlt_in(&mut call)?.result, kind: a.shape.kind })
    }

    /// The unit lower triangular factor as a `Matrix`.
    #[getter(L)]
    fn lower(&self) -> Matrix {
        Matrix::new(self.factors.lower().clone().into(), self.kind)
    }

    /// The diagonal of `D` as a `Matrix` of one column.
    #[getter]
    fn d(&self) -> Matrix {
        Matrix::new(self.factors.pivots().clone().into(), self.kind).along(Line::Column)
    }

    /// Number of rows of the matrix.
    #[getter]
    fn order(&self) -> usize {
        self.factors.lower().rows()
    }

    /// Precision of the factors in bits.
    #[getter]
    fn precision(&self) -> u32 {
        self.factors.lower().precision_bits()
    }

    /// The numbers `(positive, negative)` of entries of `d`, which are also the numbers of positive and negative
    /// eigenvalues of `L D Lᵀ`.
    #[getter]
    fn inertia(&self) -> (usize, usize) {
        let inertia = self.factors.inertia();
        (inertia.positive, inertia.negative)
    }

    /// The largest entry of `|L| |D| |Lᵀ|` divided by the largest of `|A|`, as a `float`, infinite beyond 1.8e308. Its
    /// logarithm to base 2 is the number of bits that are lost because there is no pivoting.
    #[getter]
    fn growth(&self) -> f64 {
        self.factors.growth().to_f64()
    }

    /// The solution of `A X = B`, of the same kind as `b`.
    ///
    /// Accuracy: `|b - A x| <= 2^(4 - p) (|L| |D| |Lᵀ| |x| + |b|)` for every entry of each column, with `p` the smaller
    /// of `precision` and the precision of the factors; with `accuracy="norm"` the bound by norms, as in `sunzi.ldlt`.
    #[pyo3(signature = (b, *, precision=None, context=None, progress=None))]
    fn solve<'py>(
        &self,
        b: &Bound<'py, PyAny>,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut call = Call::new(&options(b.py(), precision, context, progress)?)?;
        let b = Operand::of(b, "b", ReadPart::Whole)?;
        let bits = call.precision_bits(&[b.natural_bits, Some(self.precision())])?;
        let shape = Shape { container: b.container, kind: b.kind.min(self.kind) };
        let b = b.view(call.py(), Bits::InFull(bits))?;
        let solution = call.run(|ctx| self.factors.solve(ctx, b.entries(), bits))?;
        call.finish(solution, ResultForm::General, shape, None)
    }

    /// An estimate of the number of correct digits of a solution `x` of `A X = B`, in the maximum norm of the worst
    /// column; with `certified`, a proven lower bound. `a` is the matrix that was factored. The number is 0 if the
    /// growth of the factors leaves too few bits for an estimate.
    ///
    /// >>> import sunzi
    /// >>> a = sunzi.Matrix([["1e-40", 1], [1, 1]], precision=100)
    /// >>> factors = sunzi.Ldlt(a)
    /// >>> factors.solution_digits(a, [1, 2], factors.solve([1, 2]))
    /// 0.0
    #[pyo3(signature = (a, b, x, *, uplo=None, certified=false, context=None))]
    fn solution_digits<'py>(
        &self,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        x: &Bound<'py, PyAny>,
        uplo: Option<&str>,
        certified: bool,
        context: Option<Bound<'py, Context>>,
    ) -> PyResult<f64> {
        let mut call = digits_call(a.py(), uplo, context)?;
        let a = Symmetric::of(&call, a, &[Some(self.precision())])?;
        let (b, x) = (read_beside(&call, b, "b", self.precision())?, read_beside(&call, x, "x", self.precision())?);
        let rounding = a.rounding(Some(&b));
        call.run(|ctx| match certified {
            true => {
                let proof = self.factors.certify(ctx, a.operand(), rounding)?;
                proof.map_or(Ok(0.0), |proof| proof.solution_digits(ctx, b.entries(), x.entries()))
            }
            false => self.factors.solution_digits(ctx, a.operand(), b.entries(), x.entries(), rounding),
        })
    }

    /// The determinant of `L D Lᵀ`, the product of the entries of `d`, to one unit in the last place.
    ///
    /// Its error with respect to `det A` is not known: without pivoting it depends on `growth` and on the condition of
    /// `A`. A second factorisation at a higher precision shows which digits agree.
    fn det<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = Runner::new(py, None, None)?.run(|_| self.factors.det())?;
        number(py, &value, self.shape())
    }

    /// For pickles.
    #[staticmethod]
    fn _restored(l: &Matrix, d: &Matrix, growth: (u64, i32), accuracy: &str, py: Python<'_>) -> PyResult<Ldlt> {
        let accuracy = accuracy_of(accuracy)?;
        let growth = Float::with_val(53, growth.0) << growth.1;
        let make = || {
            let (lower, pivots) = (l.view().entries().to_matrix()?, d.view().entries().to_matrix()?);
            Ok(sunzi::Ldlt::from_factors(lower, pivots, growth)?.with_accuracy(accuracy))
        };
        Ok(Ldlt { factors: make().or_raise(py)?, kind: l.number_kind() })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        let (mantissa, exponent) = this.factors.growth().to_integer_exp().unwrap_or_default();
        let growth = (mantissa.to_u64().unwrap_or(0), exponent);
        let state = (this.lower(), this.d(), growth, accuracy_name(this.factors.accuracy()));
        (slf.get_type().getattr("_restored")?, state.into_pyobject(py)?).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        format!("Ldlt({0} x {0}, {1} bits)", self.order(), self.precision())
    }
}
