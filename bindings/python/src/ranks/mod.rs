//! `Ranks` and `RankFactor`, the native half of `sunzi.mpi`: verbs over a communicator on matrices made ready.
//!
//! Calls run on the calling thread, which may be the only one that MPI allows, without the interpreter's lock.

mod failure;
mod part;
mod plans;
mod team;

use crate::kind::NumberKind;
use crate::matrix_object::Matrix;
use crate::view::View;
use part::RankPart;
use plans::{AskedBits, PlannedCall, PlannedMatrix};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use sunzi::advanced::calls::{KeptFactor, TriangularKind};
use sunzi::{Accuracy, Diag, Op, Side, Uplo};
use team::{Answer, RankArgument, RankOptions, RankScalars, RankTeam};

/// A matrix of this rank's and the numbers of its distribution.
#[derive(FromPyObject)]
struct PlacedObject<'py>(Bound<'py, Matrix>, [i64; 11]);

/// The shape of this rank's part of a matrix and the numbers of its distribution.
#[derive(FromPyObject)]
struct PlannedObject([i64; 2], [i64; 11]);

/// Alpha and beta of a product, matrices of one entry.
#[derive(FromPyObject)]
struct ScalarObjects<'py>(Option<Bound<'py, Matrix>>, Option<Bound<'py, Matrix>>);

/// The choices of `sunzi.mpi.Ranks`, a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct OptionItems {
    threads: usize,
    memory: u64,
    kernel: Option<String>,
    devices: Option<String>,
    entrywise: bool,
    freivalds: bool,
}

/// The communicator of `sunzi.mpi.Ranks`. Freeing what its ranks share is collective, but the garbage collector is not,
/// so an object that is never closed stays until the end of the process.
#[pyclass(frozen, module = "sunzi._sunzi")]
pub struct Ranks(RwLock<Option<RankTeam>>);

impl Drop for Ranks {
    fn drop(&mut self) {
        std::mem::forget(self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The factor of `sunzi.mpi.Cholesky`.
#[pyclass(frozen, module = "sunzi._sunzi")]
pub struct RankFactor(RwLock<KeptFactor>);

impl RankFactor {
    fn get(&self) -> RwLockReadGuard<'_, KeptFactor> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An operand of a call, where it lies.
struct OperandPart {
    local: View,
    numbers: [i64; 11],
}

/// A result of a call, in memory of its own.
struct ResultPart {
    local: sunzi::Matrix,
    kind: NumberKind,
    numbers: [i64; 11],
}

impl OperandPart {
    fn of(placed: &PlacedObject<'_>) -> OperandPart {
        OperandPart { local: placed.0.get().view(), numbers: placed.1 }
    }

    fn argument(&self, name: &'static str) -> RankArgument<'_> {
        RankArgument { part: RankPart::read(name, self.local.entries()), numbers: self.numbers }
    }
}

impl ResultPart {
    /// The numbers of a matrix, or zeros of its shape, to be written over; a copy where others have them too. The
    /// matrix was made for this call, and is empty afterwards.
    fn of(placed: &PlacedObject<'_>) -> PyResult<ResultPart> {
        let kind = placed.0.get().number_kind();
        Ok(ResultPart { local: own(&placed.0)?, kind, numbers: placed.1 })
    }

    fn argument(&mut self, name: &'static str) -> RankArgument<'_> {
        RankArgument { part: RankPart::write(name, &mut self.local), numbers: self.numbers }
    }

    fn into_matrix(self) -> Matrix {
        Matrix::new(self.local.into(), self.kind)
    }
}

/// The numbers of a matrix that was made for a call, which is empty afterwards.
fn own(matrix: &Bound<'_, Matrix>) -> PyResult<sunzi::Matrix> {
    let mut held = matrix.get().view.lock().unwrap_or_else(PoisonError::into_inner);
    let view = std::mem::replace(&mut *held, sunzi::Matrix::default().into());
    view.into_whole().map_err(|error| PyMemoryError::new_err(error.to_string()))
}

/// A scalar, a matrix of one entry.
fn number(scalar: Option<&Bound<'_, Matrix>>) -> PyResult<Option<Arc<sunzi::Matrix>>> {
    let whole = |matrix: &Bound<'_, Matrix>| matrix.get().view().to_whole();
    scalar.map(whole).transpose().map_err(|error| PyMemoryError::new_err(error.to_string()))
}

/// The scalars of a product in the library's form.
struct TermMatrices {
    alpha: Option<Arc<sunzi::Matrix>>,
    beta: Option<Arc<sunzi::Matrix>>,
}

impl TermMatrices {
    fn of(ScalarObjects(alpha, beta): &ScalarObjects<'_>) -> PyResult<TermMatrices> {
        Ok(TermMatrices { alpha: number(alpha.as_ref())?, beta: number(beta.as_ref())? })
    }

    fn get(&self) -> RankScalars<'_> {
        RankScalars { alpha: self.alpha.as_deref(), beta: self.beta.as_deref() }
    }
}

/// The choice `name` that a number of `sunzi.mpi` stands for; the numbers are those of CBLAS.
fn chosen<T: Copy>(name: &str, number: i32, choices: &[T], first: i32) -> PyResult<T> {
    let found = usize::try_from(number - first).ok().and_then(|at| choices.get(at));
    found.copied().ok_or_else(|| {
        let last = first + choices.len() as i32 - 1;
        PyValueError::new_err(format!("{name} of a call over ranks cannot be {number}; use {first} to {last}"))
    })
}

fn op(number: i32) -> PyResult<Op> {
    chosen("transpose", number, &[Op::NoTranspose, Op::Transpose], 111)
}

/// The triangle of a symmetric matrix that counts; `None` for both.
fn symmetric(number: i32) -> PyResult<Option<Uplo>> {
    chosen("uplo", number, &[Some(Uplo::Upper), Some(Uplo::Lower), None], 121)
}

fn diag(number: i32) -> PyResult<Diag> {
    chosen("unit", number, &[Diag::NonUnit, Diag::Unit], 131)
}

fn side(number: i32) -> PyResult<Side> {
    chosen("side", number, &[Side::Left, Side::Right], 141)
}

/// A precision, the same on all ranks.
fn precision_bits(bits: i64) -> PyResult<u32> {
    let refused = |_| PyValueError::new_err(format!("precision_bits: a precision of {bits} bits is not valid"));
    u32::try_from(bits).map_err(refused)
}

#[pymethods]
impl Ranks {
    #[new]
    fn new(py: Python<'_>, handle: i32, options: OptionItems) -> PyResult<Ranks> {
        let OptionItems { threads, memory, kernel, devices, entrywise, freivalds } = options;
        let accuracy = if entrywise { Accuracy::Entrywise } else { Accuracy::Norm };
        let options = RankOptions { threads, memory_bytes: memory, kernel, devices, accuracy, freivalds };
        let made = py.detach(|| RankTeam::new(handle, &options));
        made.map(|made| Ranks(RwLock::new(Some(made)))).map_err(|failure| failure.raise(py))
    }

    /// Releases the communicator.
    fn close(&self, py: Python<'_>) {
        // A call of another thread may last, and Python's other threads need not wait for its end.
        py.detach(|| {
            let taken = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
            taken.map(RankTeam::close)
        });
    }

    /// Computes `alpha op(A) op(A)^T + beta C`.
    fn syrk(
        &self,
        py: Python<'_>,
        choices: [i32; 2],
        a: PlacedObject<'_>,
        c: PlacedObject<'_>,
        scalars: ScalarObjects<'_>,
    ) -> PyResult<Matrix> {
        let (uplo, op) = (symmetric(choices[0])?, op(choices[1])?);
        let (a, mut c, scalars) = (OperandPart::of(&a), ResultPart::of(&c)?, TermMatrices::of(&scalars)?);
        self.work(py, |team| team.syrk(uplo, op, scalars.get(), a.argument("a"), c.argument("c")))?;
        Ok(c.into_matrix())
    }

    /// Computes `alpha op(A) op(B) + beta C`.
    fn gemm(
        &self,
        py: Python<'_>,
        trans: [i32; 2],
        a: PlacedObject<'_>,
        b: PlacedObject<'_>,
        c: PlacedObject<'_>,
        scalars: ScalarObjects<'_>,
    ) -> PyResult<Matrix> {
        let ops = [op(trans[0])?, op(trans[1])?];
        let (a, b, mut c) = (OperandPart::of(&a), OperandPart::of(&b), ResultPart::of(&c)?);
        let scalars = TermMatrices::of(&scalars)?;
        self.work(py, |team| team.gemm(ops, scalars.get(), a.argument("a"), b.argument("b"), c.argument("c")))?;
        Ok(c.into_matrix())
    }

    /// Computes `alpha op(T)^-1 B`, or `alpha B op(T)^-1`.
    fn trsm(
        &self,
        py: Python<'_>,
        kind: [i32; 4],
        t: PlacedObject<'_>,
        b: PlacedObject<'_>,
        alpha: Option<Bound<'_, Matrix>>,
    ) -> PyResult<Matrix> {
        let uplo = chosen("uplo", kind[1], &[Uplo::Upper, Uplo::Lower], 121)?;
        let kind = TriangularKind { side: side(kind[0])?, uplo, op: op(kind[2])?, diag: diag(kind[3])? };
        let (t, mut b, alpha) = (OperandPart::of(&t), ResultPart::of(&b)?, number(alpha.as_ref())?);
        self.work(py, |team| team.trsm(kind, alpha.as_deref(), t.argument("t"), b.argument("b")))?;
        Ok(b.into_matrix())
    }

    /// Computes `A^-1 B`.
    fn solve(&self, py: Python<'_>, uplo: i32, a: PlacedObject<'_>, b: PlacedObject<'_>) -> PyResult<Matrix> {
        let (uplo, a, mut b) = (symmetric(uplo)?, OperandPart::of(&a), ResultPart::of(&b)?);
        self.work(py, |team| team.solve(uplo, a.argument("a"), b.argument("b")))?;
        Ok(b.into_matrix())
    }

    /// Computes the factor of a matrix and keeps it in the library.
    fn factor(&self, py: Python<'_>, uplo: i32, precision: i64, a: PlacedObject<'_>) -> PyResult<RankFactor> {
        let (uplo, a, bits) = (symmetric(uplo)?, OperandPart::of(&a), precision_bits(precision)?);
        let made = self.work(py, |team| team.factor(uplo, bits, a.argument("a")))?;
        Ok(RankFactor(RwLock::new(made)))
    }

    /// Computes the factor of another matrix in the memory of `factor`.
    fn renew(
        &self,
        py: Python<'_>,
        factor: &RankFactor,
        uplo: i32,
        precision: i64,
        a: PlacedObject<'_>,
    ) -> PyResult<()> {
        let (uplo, a, bits) = (symmetric(uplo)?, OperandPart::of(&a), precision_bits(precision)?);
        self.work(py, |team| {
            let mut factor = factor.0.write().unwrap_or_else(PoisonError::into_inner);
            team.renew(uplo, bits, a.argument("a"), &mut factor)
        })
    }

    /// Computes the bytes that a call would take; `sunzi.mpi` has checked the number of matrices.
    fn plan(
        &self,
        py: Python<'_>,
        operation: &str,
        choices: Vec<i32>,
        placed: Vec<PlannedObject>,
        bits: [i64; 2],
    ) -> PyResult<[u64; 3]> {
        let placed = placed.into_iter().map(|PlannedObject(shape, numbers)| PlannedMatrix { shape, numbers });
        let of = match (operation, &choices[..], &placed.collect::<Vec<_>>()[..]) {
            ("syrk", &[trans], &[a, c]) => PlannedCall::Syrk(op(trans)?, [a, c]),
            ("gemm", &[of_a, of_b], &[a, b, c]) => PlannedCall::Gemm([op(of_a)?, op(of_b)?], [a, b, c]),
            ("cholesky", &[uplo], &[a]) => PlannedCall::Cholesky(symmetric(uplo)?, a),
            ("trsm", &[of_t, of_diagonal], &[t, b]) => PlannedCall::Trsm(side(of_t)?, diag(of_diagonal)?, [t, b]),
            ("solve", &[uplo], &[a, b]) => PlannedCall::Solve(symmetric(uplo)?, Some(a), b),
            ("solve", &[uplo], &[b]) => PlannedCall::Solve(symmetric(uplo)?, None, b),
            (_, _, placed) => {
                let count = placed.len();
                return Err(PyValueError::new_err(format!("there is no plan of '{operation}' with {count} matrices")));
            }
        };
        let bits = AskedBits { operand: bits[0], result: bits[1] };
        let plan = self.work(py, |team| team.plan(of, bits))?;
        Ok([plan.copied_bytes, plan.rank_bytes, plan.node_bytes])
    }

    /// Computes `A^-1 B` with a kept factor.
    fn factor_solve(&self, py: Python<'_>, factor: &RankFactor, b: PlacedObject<'_>) -> PyResult<Matrix> {
        let mut b = ResultPart::of(&b)?;
        self.work(py, |team| team.factor_solve(&factor.get(), b.argument("b")))?;
        Ok(b.into_matrix())
    }

    /// Computes `A^-1` with a kept factor, in a matrix like `x`.
    fn inverse(&self, py: Python<'_>, factor: &RankFactor, x: PlacedObject<'_>) -> PyResult<Matrix> {
        let mut x = ResultPart::of(&x)?;
        self.work(py, |team| team.inverse(&factor.get(), x.argument("x")))?;
        Ok(x.into_matrix())
    }

    /// Computes the logarithm of the determinant of the factored matrix, in a 1 x 1 matrix like `like`.
    fn log_det(&self, py: Python<'_>, factor: &RankFactor, like: Bound<'_, Matrix>) -> PyResult<Matrix> {
        let bits = like.get().view().precision_bits();
        let result = self.work(py, |team| team.log_det(&factor.get(), bits))?;
        Ok(Matrix::new(result.into(), like.get().number_kind()))
    }

    /// Copies the factor into the lower triangle of a matrix.
    fn lower(&self, py: Python<'_>, factor: &RankFactor, a: PlacedObject<'_>) -> PyResult<Matrix> {
        let mut a = ResultPart::of(&a)?;
        self.work(py, |team| team.lower(&factor.get(), a.argument("a")))?;
        Ok(a.into_matrix())
    }
}

impl Ranks {
    /// A call without the interpreter's lock, also while it waits for calls of other threads that renew a factor. Calls
    /// that overlap share the communicator; an end of its use waits for them.
    fn work<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&RankTeam) -> Answer<T> + Send) -> PyResult<T> {
        let done = py.detach(|| {
            let open = self.0.read().unwrap_or_else(PoisonError::into_inner);
            open.as_ref().map(call)
        });
        let done = done.ok_or_else(|| PyValueError::new_err("this Ranks object is closed"))?;
        done.map_err(|failure| failure.raise(py))
    }
}

#[pymethods]
impl RankFactor {
    /// Number of rows of the factored matrix.
    #[getter]
    fn order(&self, py: Python<'_>) -> usize {
        py.detach(|| self.get().order())
    }

    /// Precision of the factor in bits.
    #[getter]
    fn precision(&self, py: Python<'_>) -> u32 {
        py.detach(|| self.get().precision_bits())
    }
}
