//! `Cholesky`: a factor that stays in Rust, for several solves and the log-determinant.

use crate::arithmetic::rounded;
use crate::ball_factor::{BallFactor, no_digits};
use crate::call::{Call, checked_bits, options};
use crate::choices::{SYMMETRIC, part_of};
use crate::context::Context;
use crate::errors::{OrRaise, with_accepted};
use crate::functions::{accuracy_name, accuracy_of, number};
use crate::input::{Bits, Operand, ReadPart, working_bits};
use crate::kind::{Container, NumberKind};
use crate::matrix_object::Matrix;
use crate::output::{ResultForm, Shape};
use crate::runner::Runner;
use crate::symmetric::Symmetric;
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sunzi::Uplo;
use sunzi::estimate::InputRounding;

/// The Cholesky factor `L` of a symmetric positive definite `A = L Lᵀ`, kept for several solves.
///
/// `Cholesky(a, *, uplo=None, accuracy="entrywise", precision=None, context=None, progress=None)`
///
/// Arguments, accuracy, cost and errors as in `sunzi.cholesky`. For a matrix of balls (an `arb_mat`, or entries that
/// are `arb`) all results are balls, and `L` and `U` are an `arb_mat`; the object also keeps the matrix, and
/// each method factors the midpoint of the matrix with as many bits as the method needs.
///
/// >>> import sunzi
/// >>> factor = sunzi.Cholesky([["4", "2"], ["2", "10"]], precision=100)
/// >>> factor.solve(["8", "13"])[0][:20]
/// '1.500000000000000000'
/// >>> factor.log_det()[:20]
/// '3.583518938456110001'
#[pyclass(frozen, module = "sunzi")]
pub struct Cholesky {
    factor: sunzi::Cholesky,
    kind: NumberKind,
    /// The rounding of the given numbers, which bounds their distance from the matrix.
    rounding: InputRounding,
    /// Of balls: `factor` is then that of midpoints.
    balls: Option<BallFactor>,
}

impl Cholesky {
    fn of_balls(balls: BallFactor) -> sunzi::Result<Cholesky> {
        let factor = sunzi::Cholesky::from_factor(balls.midpoint().clone())?;
        Ok(Cholesky { factor, kind: NumberKind::Flint, rounding: InputRounding::new(), balls: Some(balls) })
    }

    /// Refuses balls, of whose answers no digits are counted.
    fn check_points(&self) -> PyResult<()> {
        if self.balls.is_some() { Err(no_digits()) } else { Ok(()) }
    }

    fn part<'py>(&self, py: Python<'py>, is_upper: bool) -> PyResult<Bound<'py, PyAny>> {
        match &self.balls {
            Some(balls) => balls.factor(Call::new(&options(py, None::<i64>, None, None)?)?, is_upper),
            None => {
                let lower = Matrix::new(self.factor.factor().clone().into(), self.kind);
                let part = if is_upper { lower.transposed() } else { lower };
                Ok(Bound::new(py, part)?.into_any())
            }
        }
    }

    fn bits(&self) -> u32 {
        self.factor.factor().precision_bits()
    }

    /// Digits that a certificate proves; 0 where there is none.
    fn proven(
        &self,
        ctx: &sunzi::Context,
        a: &Symmetric,
        right: Option<&View>,
        digits: impl FnOnce(&sunzi::estimate::Certificate<'_>) -> sunzi::Result<f64>,
    ) -> sunzi::Result<f64> {
        self.factor.certify_with(ctx, a.operand(), a.rounding(right))?.map_or(Ok(0.0), |proof| digits(&proof))
    }
}

#[pymethods]
impl Cholesky {
    #[new]
    #[pyo3(signature = (a, *, uplo=None, accuracy="entrywise", precision=None, context=None, progress=None))]
    fn new<'py>(
        a: &Bound<'py, PyAny>,
        uplo: Option<&str>,
        accuracy: &str,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Cholesky> {
        let given = options(a.py(), precision, context, progress)?;
        given.set_item("uplo", uplo)?;
        given.set_item("accuracy", accuracy)?;
        let mut call = Call::new(&given)?;
        let uplo = call.choice("uplo", SYMMETRIC)?;
        let operand = Operand::of(a, "a", part_of(uplo))?;
        if operand.is_ball() {
            return Cholesky::of_balls(BallFactor::of(&mut call, operand, uplo)?).or_raise(a.py());
        }
        let a = Symmetric::read(&call, operand, &[])?;
        let rounding = a.rounding(None);
        let factored = call.run(|ctx| a.factor_or_reason(ctx));
        let factor = factored.map_err(|error| with_accepted(call.py(), error, "Cholesky", "sunzi.Ldlt(a)"))?.result;
        Ok(Cholesky { factor, kind: a.shape.kind, rounding, balls: None })
    }

    /// A `Cholesky` object from an existing factor `l`: a square matrix without zeros on its diagonal, of which the
    /// lower triangle is read. `accuracy` is the accuracy of solves; `entrywise` requires a factor of that accuracy.
    #[staticmethod]
    #[pyo3(signature = (l, *, accuracy="norm", precision=None))]
    fn from_factor(l: &Bound<'_, PyAny>, accuracy: &str, precision: Option<i64>) -> PyResult<Cholesky> {
        let py = l.py();
        let operand = Operand::of(l, "l", ReadPart::Triangle(Uplo::Lower))?;
        let kind = operand.kind;
        let bits = working_bits(checked_bits(py, "precision", precision)?, &[operand.natural_bits])?;
        let view = rounded(py, &operand.view(py, Bits::Round(bits))?, bits)?;
        let accuracy = accuracy_of(accuracy)?;
        let make = || Ok(sunzi::Cholesky::from_factor(view.entries().to_matrix()?)?.with_accuracy(accuracy));
        Ok(Cholesky { factor: py.detach(make).or_raise(py)?, kind, rounding: InputRounding::new(), balls: None })
    }

    /// For pickles.
    #[staticmethod]
    #[pyo3(signature = (l, accuracy, working_bits, rounded_bits=None))]
    fn _restored(
        l: &Bound<'_, PyAny>,
        accuracy: &str,
        working_bits: Option<u32>,
        rounded_bits: Option<u32>,
    ) -> PyResult<Cholesky> {
        let Cholesky { factor, kind, .. } = Cholesky::from_factor(l, accuracy, None)?;
        let rounding = InputRounding::new().matrix_bits(rounded_bits);
        Ok(Cholesky { factor: factor.with_working_bits(working_bits), kind, rounding, balls: None })
    }

    /// For pickles of balls.
    #[staticmethod]
    fn _of_balls(midpoint: &Bound<'_, Matrix>, radius: &Bound<'_, Matrix>, precision: i64) -> PyResult<Cholesky> {
        let mut call = Call::new(&options(midpoint.py(), precision, None, None)?)?;
        let balls = BallFactor::restored(&mut call, midpoint.get(), radius.get())?;
        Cholesky::of_balls(balls).or_raise(midpoint.py())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(balls) = &this.balls {
            let [midpoint, radius] = balls.parts();
            let state = (midpoint, radius, this.bits());
            return (slf.get_type().getattr("_of_balls")?, state.into_pyobject(py)?).into_pyobject(py);
        }
        let (accuracy, rounded_bits) = (accuracy_name(this.factor.accuracy()), this.rounding.matrix_bits);
        let state = (this.part(py, false)?, accuracy, this.factor.working_bits(), rounded_bits);
        (slf.get_type().getattr("_restored")?, state.into_pyobject(py)?).into_pyobject(py)
    }

    /// The lower triangular factor as a `Matrix`; for balls, as an `arb_mat`.
    #[getter(L)]
    fn lower<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, false)
    }

    /// The upper triangular factor `Lᵀ` as a `Matrix`, a view of the same numbers; for balls, as an `arb_mat`.
    #[getter(U)]
    fn upper<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, true)
    }

    /// Number of rows of the matrix.
    #[getter]
    fn order(&self) -> usize {
        self.factor.factor().rows()
    }

    /// Precision of the factor in bits.
    #[getter]
    fn precision(&self) -> u32 {
        self.bits()
    }

    /// The solution of `A X = B`, of the same kind as `b`; see `sunzi.solve`.
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
        if let Some(balls) = &self.balls {
            return balls.solve(call, b);
        }
        let bits = call.precision_bits(&[b.natural_bits, Some(self.bits())])?;
        let shape = Shape { container: b.container, kind: b.kind.min(self.kind) };
        let b = b.view(call.py(), Bits::InFull(bits))?;
        let solution = call.run(|ctx| self.factor.solve(ctx, b.entries(), bits))?;
        call.finish(solution, ResultForm::General, shape, None)
    }

    /// The inverse of `A` as a symmetric `Matrix`; for balls, in the container of `A`.
    ///
    /// Accuracy: `|computed - Z|_ij <= 2^(2 - precision) sqrt(z_ii z_jj)` with `Z = (L Lᵀ)⁻¹`.
    #[pyo3(signature = (*, precision=None, context=None, progress=None))]
    fn inverse<'py>(
        &self,
        py: Python<'py>,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut call = Call::new(&options(py, precision, context, progress)?)?;
        if let Some(balls) = &self.balls {
            return balls.inverse(call);
        }
        let bits = call.precision_bits(&[Some(self.bits())])?;
        let inverse = call.run(|ctx| self.factor.inverse(ctx, bits))?;
        call.finish(
            inverse.into_matrix(),
            ResultForm::Symmetric,
            Shape { container: Container::Matrix, kind: self.kind },
            None,
        )
    }

    /// The logarithm `log det A = 2 sum log l_ii`, to nearly the precision of the factor; for balls, a ball.
    fn log_det<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(balls) = &self.balls {
            return balls.determinant(Call::new(&options(py, None::<i64>, None, None)?)?, true);
        }
        let value = Runner::new(py, None, None)?.run(|_| Ok(self.factor.log_det()))?;
        number(py, &value, Shape { container: Container::Flat, kind: self.kind })
    }

    /// The determinant, to the precision of the factor; for balls, a ball. See `sunzi.det`.
    fn det<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(balls) = &self.balls {
            return balls.determinant(Call::new(&options(py, None::<i64>, None, None)?)?, false);
        }
        let value = Runner::new(py, None, None)?.run(|_| self.factor.det())?;
        number(py, &value, Shape { container: Container::Flat, kind: self.kind })
    }

    /// An estimate of the number of correct digits of `log_det()`; with `certified`, a proven lower bound, which
    /// requires `a`, the matrix that was factored.
    #[pyo3(signature = (a=None, *, uplo=None, certified=false, context=None))]
    fn log_det_digits<'py>(
        &self,
        py: Python<'py>,
        a: Option<&Bound<'py, PyAny>>,
        uplo: Option<&str>,
        certified: bool,
        context: Option<Bound<'py, Context>>,
    ) -> PyResult<f64> {
        self.check_points()?;
        let mut call = digits_call(py, uplo, context)?;
        match (a, certified) {
            (Some(a), true) => {
                let a = Symmetric::of(&call, a, &[Some(self.bits())])?;
                call.run(|ctx| self.proven(ctx, &a, None, |proof| proof.log_det_digits(ctx)))
            }
            (None, true) => Err(PyValueError::new_err("certified=True requires a=, the matrix that was factored")),
            (_, false) => call.run(|ctx| self.factor.log_det_digits_with(ctx, self.rounding)),
        }
    }

    /// An estimate of the number of correct digits of a solution `x` of `A X = B`, in the maximum norm of the worst
    /// column; with `certified`, a proven lower bound. `a` is the matrix that was factored.
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
        self.check_points()?;
        let mut call = digits_call(a.py(), uplo, context)?;
        let a = Symmetric::of(&call, a, &[Some(self.bits())])?;
        let (b, x) = (read_beside(&call, b, "b", self.bits())?, read_beside(&call, x, "x", self.bits())?);
        call.run(|ctx| match certified {
            true => self.proven(ctx, &a, Some(&b), |proof| proof.solution_digits(ctx, b.entries(), x.entries())),
            false => {
                let rounding = a.rounding(Some(&b));
                self.factor.solution_digits_with(ctx, a.operand(), b.entries(), x.entries(), rounding)
            }
        })
    }

    /// An estimate of the number of correct digits of an inverse, in the maximum norm; with `certified`, a proven lower
    /// bound. `a` is the matrix that was factored.
    #[pyo3(signature = (a, inverse, *, uplo=None, certified=false, context=None))]
    fn inverse_digits<'py>(
        &self,
        a: &Bound<'py, PyAny>,
        inverse: &Bound<'py, PyAny>,
        uplo: Option<&str>,
        certified: bool,
        context: Option<Bound<'py, Context>>,
    ) -> PyResult<f64> {
        self.check_points()?;
        let mut call = digits_call(a.py(), uplo, context)?;
        let a = Symmetric::of(&call, a, &[Some(self.bits())])?;
        let x = read_beside(&call, inverse, "inverse", self.bits())?;
        call.run(|ctx| match certified {
            true => self.proven(ctx, &a, None, |proof| proof.inverse_digits(ctx, x.entries())),
            false => self.factor.inverse_digits_with(ctx, a.operand(), x.entries(), a.rounding(None)),
        })
    }

    /// An estimate of the norm of the inverse of `A` after its diagonal has been scaled to about 1. Its logarithm to
    /// base 2 is about the number of bits that solves lose.
    #[pyo3(signature = (*, context=None))]
    fn scaled_condition<'py>(
        &self,
        py: Python<'py>,
        context: Option<Bound<'py, Context>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = digits_call(py, None, context)?.run(|ctx| self.factor.scaled_condition(ctx))?;
        number(py, &value, Shape { container: Container::Flat, kind: self.kind })
    }

    fn __repr__(&self) -> String {
        format!("Cholesky({0} x {0}, {1} bits)", self.order(), self.bits())
    }
}

/// An operand at its own precision, at least that of a factor.
///
/// # Errors
/// The errors of [`Operand::of`] and [`Operand::view`].
pub fn read_beside(call: &Call<'_>, numbers: &Bound<'_, PyAny>, name: &str, factor_bits: u32) -> PyResult<View> {
    let operand = Operand::of(numbers, name, ReadPart::Whole)?;
    let bits = call.precision_bits(&[operand.natural_bits, Some(factor_bits)])?;
    operand.view(call.py(), Bits::InFull(bits))
}

/// A call that estimates or proves digits.
pub fn digits_call<'py>(
    py: Python<'py>,
    uplo: Option<&str>,
    context: Option<Bound<'py, Context>>,
) -> PyResult<Call<'py>> {
    let given = options(py, None::<i64>, context, None)?;
    given.set_item("uplo", uplo)?;
    Call::new(&given)
}
