//! `Ranks` and `RankFactor`, the native half of `sunzi.mpi`: verbs over a communicator on matrices made ready.
//!
//! Calls run on the calling thread, which may be the only one that MPI allows, without the interpreter's lock.

use crate::errors::{
    CheckError, DeviceError, MemoryLimitError, NotPositiveDefiniteError, NotSymmetricError, SingularError,
};
use crate::kind::NumberKind;
use crate::matrix_object::Matrix;
use crate::native::factor::Factor;
use crate::native::ranks;
use crate::native::verbs::{Failed, PlanOf, Planned, RankOptions, RankPart, ScalarTerms, Target, Verb};
use crate::view::View;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// A matrix of this rank's and the numbers of its distribution.
type Described<'py> = (Bound<'py, Matrix>, [i64; 11]);

/// The communicator of `sunzi.mpi.Ranks`. Freeing its context is collective, but the garbage collector is not, so an
/// object that is never closed stays until the end of the process.
#[pyclass(frozen, module = "sunzi._sunzi")]
pub struct Ranks(RwLock<Option<ranks::Ranks>>);

/// The factor of `sunzi.mpi.Cholesky`.
#[pyclass(frozen, module = "sunzi._sunzi")]
pub struct RankFactor(RwLock<Factor>);

impl RankFactor {
    fn get(&self) -> RwLockReadGuard<'_, Factor> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An operand of a call, where it lies.
struct RankOperand {
    local: View,
    numbers: [i64; 11],
}

/// A result of a call, in memory of its own.
struct Output {
    local: sunzi::Matrix,
    kind: NumberKind,
    numbers: [i64; 11],
}

impl RankOperand {
    fn of((matrix, numbers): &Described<'_>) -> RankOperand {
        RankOperand { local: matrix.get().view(), numbers: *numbers }
    }

    fn part(&self) -> RankPart<'_> {
        RankPart { local: self.local.entries(), numbers: self.numbers }
    }
}

impl Output {
    /// The numbers of `matrix`, or zeros of its shape, to be written over; a copy where others have them too. The
    /// matrix was made for this call, and is empty afterwards.
    fn of((matrix, numbers): &Described<'_>) -> PyResult<Output> {
        Ok(Output { local: own(matrix)?, kind: matrix.get().number_kind(), numbers: *numbers })
    }

    fn target(&mut self) -> Target<'_> {
        Target { local: &mut self.local, numbers: self.numbers }
    }

    fn into_matrix(self) -> Matrix {
        Matrix::new(self.local.into(), self.kind)
    }
}

fn whole(matrix: &Bound<'_, Matrix>) -> PyResult<Arc<sunzi::Matrix>> {
    matrix.get().view().to_whole().map_err(|error| PyMemoryError::new_err(error.to_string()))
}

/// The numbers of a matrix that was made for a call, which is empty afterwards.
fn own(matrix: &Bound<'_, Matrix>) -> PyResult<sunzi::Matrix> {
    let mut held = matrix.get().view.lock().unwrap_or_else(PoisonError::into_inner);
    let view = std::mem::replace(&mut *held, sunzi::Matrix::default().into());
    view.into_whole().map_err(|error| PyMemoryError::new_err(error.to_string()))
}

/// A scalar, a matrix of one entry.
fn number(scalar: Option<&Bound<'_, Matrix>>) -> PyResult<Option<Arc<sunzi::Matrix>>> {
    scalar.map(whole).transpose()
}

/// The exception for a call that failed.
fn exception(py: Python<'_>, failed: &Failed) -> PyErr {
    let text = failed.message.clone();
    let with = |error: PyErr, name: &str, value: Option<(i64, i64)>| {
        let set = match value {
            Some(place) => error.value(py).setattr(name, place),
            None => error.value(py).setattr(name, failed.place[0]),
        };
        set.err().unwrap_or(error)
    };
    match failed.status {
        8 => {
            let error = with(NotPositiveDefiniteError::new_err(text), "index", None);
            // The C library passes the text and the index on, without further numbers.
            let unknown = ["more_bits", "more_bits_might_help"];
            let set = unknown.into_iter().try_for_each(|name| error.value(py).setattr(name, py.None()));
            set.err().unwrap_or(error)
        }
        9 => with(SingularError::new_err(text), "index", None),
        10 => MemoryLimitError::new_err(text),
        11 => PyMemoryError::new_err(text),
        13 => CheckError::new_err(text),
        16 => DeviceError::new_err(text),
        18 => with(NotSymmetricError::new_err(text), "place", Some(failed.place.into())),
        1..=7 => PyValueError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

#[pymethods]
impl Ranks {
    #[new]
    fn new(
        py: Python<'_>,
        handle: i32,
        threads: i64,
        memory: u64,
        names: (Option<String>, Option<String>),
        checks: (bool, bool),
    ) -> PyResult<Ranks> {
        let ((kernel, devices), (entrywise, freivalds)) = (names, checks);
        let options = RankOptions { threads, memory_bytes: memory, kernel, devices, entrywise, freivalds };
        let made = py.detach(|| ranks::Ranks::new(handle, &options));
        made.map(|made| Ranks(RwLock::new(Some(made)))).map_err(|failed| exception(py, &failed))
    }

    /// Releases the communicator.
    fn close(&self, py: Python<'_>) {
        // A call of another thread may last, and Python's other threads need not wait for its end.
        py.detach(|| {
            let taken = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
            taken.map(ranks::Ranks::close)
        });
    }

    /// Computes `alpha op(A) op(A)^T + beta C`.
    #[pyo3(signature = (choices, a, c, alpha=None, beta=None))]
    fn syrk(
        &self,
        py: Python<'_>,
        choices: (i32, i32),
        a: Described<'_>,
        c: Described<'_>,
        alpha: Option<Bound<'_, Matrix>>,
        beta: Option<Bound<'_, Matrix>>,
    ) -> PyResult<Matrix> {
        let (uplo, trans) = choices;
        let (a, mut c) = (RankOperand::of(&a), Output::of(&c)?);
        let (alpha, beta) = (number(alpha.as_ref())?, number(beta.as_ref())?);
        let terms = ScalarTerms { alpha: alpha.as_deref(), beta: beta.as_deref() };
        self.run(py, Verb::Syrk { uplo, trans, terms, a: a.part(), c: c.target() })?;
        Ok(c.into_matrix())
    }

    /// Computes `alpha op(A) op(B) + beta C`.
    #[pyo3(signature = (trans, operands, c, alpha=None, beta=None))]
    fn gemm(
        &self,
        py: Python<'_>,
        trans: [i32; 2],
        operands: (Described<'_>, Described<'_>),
        c: Described<'_>,
        alpha: Option<Bound<'_, Matrix>>,
        beta: Option<Bound<'_, Matrix>>,
    ) -> PyResult<Matrix> {
        let (a, b, mut c) = (RankOperand::of(&operands.0), RankOperand::of(&operands.1), Output::of(&c)?);
        let (alpha, beta) = (number(alpha.as_ref())?, number(beta.as_ref())?);
        let terms = ScalarTerms { alpha: alpha.as_deref(), beta: beta.as_deref() };
        self.run(py, Verb::Gemm { trans, terms, a: a.part(), b: b.part(), c: c.target() })?;
        Ok(c.into_matrix())
    }

    /// Computes `alpha op(T)^-1 B`, or `alpha B op(T)^-1`.
    #[pyo3(signature = (kind, t, b, alpha=None))]
    fn trsm(
        &self,
        py: Python<'_>,
        kind: [i32; 4],
        t: Described<'_>,
        b: Described<'_>,
        alpha: Option<Bound<'_, Matrix>>,
    ) -> PyResult<Matrix> {
        let (t, mut b, alpha) = (RankOperand::of(&t), Output::of(&b)?, number(alpha.as_ref())?);
        self.run(py, Verb::Trsm { kind, alpha: alpha.as_deref(), t: t.part(), b: b.target() })?;
        Ok(b.into_matrix())
    }

    /// Computes `A^-1 B`.
    fn solve(&self, py: Python<'_>, uplo: i32, a: Described<'_>, b: Described<'_>) -> PyResult<Matrix> {
        let (a, mut b) = (RankOperand::of(&a), Output::of(&b)?);
        self.run(py, Verb::Solve { uplo, a: a.part(), b: b.target() })?;
        Ok(b.into_matrix())
    }

    /// Computes the factor of a matrix and keeps it in the library.
    fn factor(&self, py: Python<'_>, uplo: i32, precision: i64, a: Described<'_>) -> PyResult<RankFactor> {
        let a = RankOperand::of(&a);
        let made = py.detach(|| self.open(|ranks| ranks.factor(uplo, precision, &a.part())));
        made?.map(|made| RankFactor(RwLock::new(made))).map_err(|failed| exception(py, &failed))
    }

    /// Computes the factor of another matrix in the memory of `factor`.
    fn renew(&self, py: Python<'_>, factor: &RankFactor, uplo: i32, precision: i64, a: Described<'_>) -> PyResult<()> {
        let a = RankOperand::of(&a);
        self.work(py, |ranks| {
            let mut factor = factor.0.write().unwrap_or_else(PoisonError::into_inner);
            ranks.renew(uplo, precision, &a.part(), &mut factor)
        })
    }

    /// Computes the bytes that a call would take; `sunzi.mpi` has checked the number of matrices.
    fn plan(
        &self,
        py: Python<'_>,
        operation: &str,
        choices: Vec<i32>,
        placed: Vec<([i64; 2], [i64; 11])>,
        bits: [i64; 2],
    ) -> PyResult<[u64; 3]> {
        let placed = placed.into_iter().map(|(shape, numbers)| Planned { shape, numbers }).collect::<Vec<_>>();
        let of = match (operation, &choices[..], &placed[..]) {
            ("syrk", &[trans], &[a, c]) => PlanOf::Syrk(trans, [a, c]),
            ("gemm", &[of_a, of_b], &[a, b, c]) => PlanOf::Gemm([of_a, of_b], [a, b, c]),
            ("cholesky", &[uplo], &[a]) => PlanOf::Cholesky(uplo, a),
            ("trsm", &[side, diag], &[t, b]) => PlanOf::Trsm([side, diag], [t, b]),
            ("solve", &[uplo], &[a, b]) => PlanOf::Solve(uplo, Some(a), b),
            ("solve", &[uplo], &[b]) => PlanOf::Solve(uplo, None, b),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "there is no plan of '{operation}' with {} matrices",
                    placed.len()
                )));
            }
        };
        let planned = py.detach(|| self.open(|ranks| ranks.plan(of, bits)));
        planned?.map_err(|failed| exception(py, &failed))
    }

    /// Computes `A^-1 B` with a kept factor.
    fn factor_solve(&self, py: Python<'_>, factor: &RankFactor, b: Described<'_>) -> PyResult<Matrix> {
        let mut b = Output::of(&b)?;
        self.work(py, |ranks| ranks.call(Verb::FactorSolve { factor: &factor.get(), b: b.target() }))?;
        Ok(b.into_matrix())
    }

    /// Computes `A^-1` with a kept factor, in a matrix like `x`.
    fn inverse(&self, py: Python<'_>, factor: &RankFactor, x: Described<'_>) -> PyResult<Matrix> {
        let mut x = Output::of(&x)?;
        self.work(py, |ranks| ranks.call(Verb::Inverse { factor: &factor.get(), x: x.target() }))?;
        Ok(x.into_matrix())
    }

    /// Computes the logarithm of the determinant of the factored matrix, in a 1 x 1 matrix like `like`.
    fn log_det(&self, py: Python<'_>, factor: &RankFactor, like: Bound<'_, Matrix>) -> PyResult<Matrix> {
        let mut result = own(&like)?;
        self.work(py, |ranks| ranks.call(Verb::LogDet { factor: &factor.get(), result: &mut result }))?;
        Ok(Matrix::new(result.into(), like.get().number_kind()))
    }

    /// Copies the factor into the lower triangle of a matrix.
    fn lower(&self, py: Python<'_>, factor: &RankFactor, a: Described<'_>) -> PyResult<Matrix> {
        let mut a = Output::of(&a)?;
        self.work(py, |ranks| ranks.call(Verb::Lower { factor: &factor.get(), a: a.target() }))?;
        Ok(a.into_matrix())
    }
}

impl Ranks {
    fn run(&self, py: Python<'_>, verb: Verb<'_>) -> PyResult<()> {
        self.work(py, |ranks| ranks.call(verb))
    }

    /// A call without the interpreter's lock, also while it waits for calls of other threads that renew a factor.
    fn work(&self, py: Python<'_>, call: impl FnOnce(&ranks::Ranks) -> Result<(), Failed> + Send) -> PyResult<()> {
        py.detach(|| self.open(call))?.map_err(|failed| exception(py, &failed))
    }

    /// Calls that overlap share the communicator; an end of its use waits for them.
    fn open<T>(&self, work: impl FnOnce(&ranks::Ranks) -> T) -> PyResult<T> {
        let open = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let closed = || PyValueError::new_err("this Ranks object is closed");
        Ok(work(open.as_ref().ok_or_else(closed)?))
    }
}

#[pymethods]
impl RankFactor {
    /// Number of rows of the factored matrix.
    #[getter]
    fn order(&self, py: Python<'_>) -> i64 {
        py.detach(|| self.get().order())
    }

    /// Precision of the factor in bits.
    #[getter]
    fn precision(&self, py: Python<'_>) -> i64 {
        py.detach(|| self.get().precision_bits())
    }
}
