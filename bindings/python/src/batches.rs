//! Many small problems in one call: SYRK, GEMM, Cholesky, TRSM on lists of operands.
//!
//! Problems of one precision go to the library together, so that each result has the bits of the single call.

use crate::call::{Call, beside, restated};
use crate::choices::{ACCURACIES, Named, SIDES, SYMMETRIC, TRIANGLES, json, op, part_of, symmetric};
use crate::errors::{OrRaise, exception};
use crate::input::{Bits, Operand, ReadPart, scalar};
use crate::output::{ResultForm, Shape, give};
use crate::signals::look_for_signals_now;
use crate::view::View;
use pyo3::exceptions::{PyBaseException, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rug::Float;
use std::collections::BTreeSet;
use std::sync::Arc;
use sunzi::batch::{GemmProblem, SyrkProblem, TrsmProblem};
use sunzi::report::BatchReport;
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Diag, Error, GemmOptions, Matrix, MatrixView, Outcome, Progress,
    Side, SyrkOptions, TrsmOptions, Uplo,
};

/// Results, or why there is none.
type Results = Vec<sunzi::Result<Matrix>>;

/// The verb of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchVerb {
    Syrk,
    Gemm,
    Cholesky,
    Trsm,
}

impl BatchVerb {
    fn operation(self) -> &'static str {
        match self {
            BatchVerb::Syrk => "syrk_batch",
            BatchVerb::Gemm => "gemm_batch",
            BatchVerb::Cholesky => "cholesky_batch",
            BatchVerb::Trsm => "trsm_batch",
        }
    }
}

/// The choices that all problems share.
struct BatchChoices {
    verb: BatchVerb,
    symmetric: Option<Named>,
    triangle: Uplo,
    side: Side,
    diag: Diag,
    /// Whether the first and the second operand are transposed.
    transposed: (bool, bool),
    accuracy: Accuracy,
}

/// The scalars of problems of one precision: the same as those of the single call.
struct Scalars {
    precision_bits: u32,
    alpha: Option<Float>,
    beta: Option<Float>,
}

/// One problem that has been taken in.
struct Problem {
    /// Its number in the call.
    number: usize,
    first: View,
    second: Option<View>,
    added: Option<Arc<Matrix>>,
    precision_bits: u32,
    shape: Shape,
}

/// The native part of the functions for batches. The result of a problem that fails is its exception.
#[pyfunction]
pub fn batch<'py>(
    operation: &str,
    problems: Vec<Vec<Bound<'py, PyAny>>>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut call = Call::new(options)?;
    let py = call.py();
    let verb = match operation {
        "syrk" => BatchVerb::Syrk,
        "gemm" => BatchVerb::Gemm,
        "cholesky" => BatchVerb::Cholesky,
        "trsm" => BatchVerb::Trsm,
        other => return Err(PyValueError::new_err(format!("there is no batch of '{other}'"))),
    };
    let choices = BatchChoices {
        verb,
        symmetric: call.choice("uplo", SYMMETRIC)?,
        triangle: if verb == BatchVerb::Trsm { call.choice("uplo", TRIANGLES)? } else { Uplo::Lower },
        side: call.choice("side", SIDES)?,
        diag: if call.flag("unit")? { Diag::Unit } else { Diag::NonUnit },
        transposed: (call.flag("transpose")?, call.flag("transpose_b")?),
        accuracy: call.choice("accuracy", ACCURACIES)?,
    };
    let count = problems.len();
    let mut each = (0..count).map(|_| py.None().into_bound(py)).collect::<Vec<_>>();
    let mut taken = Vec::with_capacity(count);
    for (number, operands) in problems.iter().enumerate() {
        match choices.take(&call, operands, number) {
            Ok(problem) => taken.push(problem),
            Err(error) => each[number] = placed(py, error, number, count)?,
        }
        look_for_signals_now(py)?;
    }
    let has_added = problems.iter().any(|operands| operands.len() > choices.least_operands());
    let scalars = scalars(&call, &taken, has_added || problems.is_empty())?;
    let (results, mut report) = call.run(|ctx| choices.run_all(ctx, &taken, &scalars, count))?;
    let form = if verb == BatchVerb::Syrk { ResultForm::Symmetric } else { ResultForm::General };
    for (result, problem) in results.into_iter().zip(&taken) {
        each[problem.number] = match result {
            Ok(matrix) => {
                let given = give(py, matrix, form, problem.shape);
                given.or_else(|error| placed(py, error, problem.number, count))?
            }
            Err(error) => exception(py, error).into_value(py).into_bound(py).into_any(),
        };
        look_for_signals_now(py)?;
    }
    report.problems = count;
    report.failed = each.iter().filter(|object| object.is_instance_of::<PyBaseException>()).count();
    call.tell(json(&report)?)?;
    Ok(each)
}

/// The object in place of a result: the exception for numbers that cannot be read, or that the form of the result
/// cannot hold, with the number of its problem. All others end the call.
fn placed<'py>(py: Python<'py>, error: PyErr, problem: usize, count: usize) -> PyResult<Bound<'py, PyAny>> {
    let of_numbers = error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOverflowError>(py);
    if !of_numbers && !error.is_instance_of::<PyTypeError>(py) {
        return Err(error);
    }
    let value = error.value(py);
    value.setattr("args", (format!("problem {problem} of {count}: {value}"),))?;
    value.setattr("problem", problem)?;
    if of_numbers { Ok(error.into_value(py).into_bound(py).into_any()) } else { Err(error) }
}

/// The scalars for each precision among the problems, in ascending order.
///
/// # Errors
/// As [`scalar`]; `ValueError` for `beta` where no problem has a `c`.
fn scalars(call: &Call<'_>, problems: &[Problem], takes_beta: bool) -> PyResult<Vec<Scalars>> {
    let (alpha, beta) = (call.object("alpha")?, call.object("beta")?);
    if beta.is_some() && !takes_beta {
        return Err(PyValueError::new_err("beta= is given, but no problem has a c"));
    }
    let each_bits = problems.iter().map(|problem| problem.precision_bits).collect::<BTreeSet<_>>();
    let of = |precision_bits: u32| {
        let read = |object: Option<&Bound<'_, PyAny>>, name| scalar(object, name, Bits::Round(precision_bits));
        Ok(Scalars { precision_bits, alpha: read(alpha.as_ref(), "alpha")?, beta: read(beta.as_ref(), "beta")? })
    };
    of(2)?; // what is no number is refused without any problem, too
    each_bits.into_iter().map(of).collect()
}

/// A context whose progress counts the problems of the precisions before as well.
fn counting(ctx: &Context, before: u64, total: u64) -> Context {
    let outer = ctx.clone();
    ctx.with_progress(move |own| outer.report_progress(Progress::new(own.phase, before + own.done, total)).is_ok())
}

/// The report of some problems and of those that ran after them, while `held_bytes` bytes of results are held.
fn both(first: BatchReport, second: BatchReport, held_bytes: u64) -> BatchReport {
    let mut both = second;
    if first.problems > 0 && first.accuracy == Accuracy::Norm {
        both.accuracy = Accuracy::Norm;
    }
    both.range_bits = both.range_bits.max(first.range_bits);
    both.direct += first.direct;
    both.seconds += first.seconds;
    both.planned_bytes = first.planned_bytes.max(both.planned_bytes.saturating_add(held_bytes));
    both.problems += first.problems;
    both
}

impl Problem {
    fn second(&self) -> MatrixView<'_> {
        self.second.as_ref().expect("two operands were read").entries()
    }
}

impl BatchChoices {
    /// Operands of a problem without a `c`.
    fn least_operands(&self) -> usize {
        if matches!(self.verb, BatchVerb::Gemm | BatchVerb::Trsm) { 2 } else { 1 }
    }

    /// Reads the operands of a problem.
    fn take<'py>(&self, call: &Call<'py>, operands: &[Bound<'py, PyAny>], number: usize) -> PyResult<Problem> {
        let (py, verb) = (call.py(), self.verb);
        let strict = self.diag == Diag::Unit;
        let (names, parts) = match verb {
            BatchVerb::Syrk => (["p", "", "c"], [ReadPart::Whole, ReadPart::Whole, part_of(self.symmetric)]),
            BatchVerb::Gemm => (["a", "b", "c"], [ReadPart::Whole; 3]),
            BatchVerb::Cholesky => (["a", "", ""], [part_of(self.symmetric), ReadPart::Whole, ReadPart::Whole]),
            BatchVerb::Trsm if strict => {
                (["t", "b", ""], [ReadPart::StrictTriangle(self.triangle), ReadPart::Whole, ReadPart::Whole])
            }
            BatchVerb::Trsm => (["t", "b", ""], [ReadPart::Triangle(self.triangle), ReadPart::Whole, ReadPart::Whole]),
        };
        let wanted = names.iter().zip(parts).filter(|(name, _)| !name.is_empty());
        let least = self.least_operands();
        if operands.len() < least || operands.len() > wanted.clone().count() {
            let most = wanted.count();
            let wanted = if least == most { least.to_string() } else { format!("{least} or {most}") };
            return Err(PyTypeError::new_err(format!(
                "the number of operands is {}; it must be {wanted}",
                operands.len()
            )));
        }
        let read = wanted.zip(operands).map(|((name, part), operand)| Operand::of(operand, name, part));
        let mut read = read.collect::<PyResult<Vec<_>>>()?;
        let bits = call.precision_bits(&read.iter().map(|operand| operand.natural_bits).collect::<Vec<_>>())?;
        let kind = read.iter().take(least).map(|operand| operand.kind).min().expect("at least one operand");
        let container = read[if verb == BatchVerb::Trsm { 1 } else { 0 }].container;
        let added = if read.len() > least { read.pop() } else { None };
        let whole = |added: Operand<'py>| added.view(py, Bits::Round(bits))?.to_whole().or_raise(py);
        let added = added.map(whole).transpose()?;
        let mut views = read.into_iter().map(|operand| operand.view(py, Bits::Round(bits)));
        let (first, second) = (views.next().expect("at least one operand")?, views.next().transpose()?);
        Ok(Problem { number, first, second, added, precision_bits: bits, shape: Shape { container, kind } })
    }

    /// All problems of a call with `count`, those of one precision together; `scalars` has each precision once.
    fn run_all(
        &self,
        ctx: &Context,
        problems: &[Problem],
        scalars: &[Scalars],
        count: usize,
    ) -> sunzi::Result<(Results, BatchReport)> {
        let mut results = (0..problems.len()).map(|_| Ok(Matrix::empty())).collect::<Results>();
        let mut all = BatchReport::default();
        (all.operation, all.accuracy) = (self.verb.operation(), self.accuracy);
        let (mut held_bytes, mut done) = (0, 0);
        for scalars in scalars {
            let is_own = |&at: &usize| problems[at].precision_bits == scalars.precision_bits;
            let group = (0..problems.len()).filter(is_own).collect::<Vec<_>>();
            // The upper factor is made in addition to the lower one.
            let is_turned =
                self.verb == BatchVerb::Cholesky && self.symmetric.is_some_and(|named| named.uplo == Uplo::Upper);
            let orders = group.iter().map(|&at| problems[at].first.rows()).filter(|_| is_turned);
            let turned_bytes = orders.map(|order| Matrix::bytes_for(order, order, scalars.precision_bits)).max();
            let beside_bytes = held_bytes + turned_bytes.unwrap_or(0);
            let outcome = beside(ctx, beside_bytes, |own| {
                self.run(&counting(own, done, problems.len() as u64), problems, &group, scalars)
            });
            let Outcome { result, report } = outcome?;
            let mut made_bytes = 0;
            for (&at, result) in group.iter().zip(result) {
                made_bytes += result.as_ref().map_or(0, Matrix::bytes);
                results[at] = result.map_err(|error| match error {
                    Error::Problem { error, .. } => {
                        let error = Box::new(restated(ctx, beside_bytes, *error));
                        Error::Problem { problem: problems[at].number, count, error }
                    }
                    other => other,
                });
            }
            done += group.len() as u64;
            all = both(all, report, beside_bytes);
            held_bytes += made_bytes;
        }
        Ok((results, all))
    }

    /// Problems of one precision.
    fn run(
        &self,
        ctx: &Context,
        problems: &[Problem],
        group: &[usize],
        scalars: &Scalars,
    ) -> sunzi::Result<Outcome<Results, BatchReport>> {
        let Scalars { precision_bits: bits, alpha, beta } = scalars;
        let each = || group.iter().map(|&at| &problems[at]);
        let (bits, alpha, beta, accuracy) = (*bits, alpha.as_ref(), beta.as_ref(), self.accuracy);
        match self.verb {
            BatchVerb::Syrk => {
                let options = SyrkOptions::new().op(op(self.transposed.0)).accuracy(accuracy).alpha(alpha);
                let options = options.beta(beta);
                let problems = each().map(|problem| match &problem.added {
                    Some(added) => SyrkProblem::from((problem.first.entries(), self.symmetric_of(added))),
                    None => SyrkProblem::from(problem.first.entries()),
                });
                let Outcome { result, report } = sunzi::batch::syrk_batch_with(ctx, problems, bits, &options)?;
                let result = result.into_iter().map(|result| result.map(Into::into)).collect();
                Ok(Outcome { result, report })
            }
            BatchVerb::Gemm => {
                let (op_a, op_b) = (op(self.transposed.0), op(self.transposed.1));
                let options = GemmOptions::new().op_a(op_a).op_b(op_b).accuracy(accuracy).alpha(alpha);
                let options = options.beta(beta);
                let problems = each().map(|problem| match &problem.added {
                    Some(added) => GemmProblem::from(((problem.first.entries(), problem.second()), added.view())),
                    None => GemmProblem::from((problem.first.entries(), problem.second())),
                });
                sunzi::batch::gemm_batch_with(ctx, problems, bits, &options)
            }
            BatchVerb::Cholesky => {
                let options = CholeskyOptions::new().accuracy(accuracy);
                let matrices = each().map(|problem| symmetric(&problem.first, self.symmetric));
                let Outcome { result, report } = sunzi::batch::cholesky_batch_with(ctx, matrices, bits, &options)?;
                let factor = |factor: Cholesky| match self.symmetric {
                    Some(Named { uplo: Uplo::Upper, .. }) => factor.factor().view().transposed().to_matrix(),
                    _ => Ok(factor.into_factor()),
                };
                let result = result.into_iter().map(|result| result.and_then(factor)).collect();
                Ok(Outcome { result, report })
            }
            BatchVerb::Trsm => {
                let options = TrsmOptions::new().side(self.side).uplo(self.triangle).op(op(self.transposed.0));
                let options = options.diag(self.diag).alpha(alpha).accuracy(accuracy);
                let problems = each().map(|problem| TrsmProblem::from((problem.first.entries(), problem.second())));
                sunzi::batch::trsm_batch_with(ctx, problems, bits, &options)
            }
        }
    }

    fn symmetric_of<'m>(&self, added: &'m Matrix) -> sunzi::Symmetric<'m> {
        match self.symmetric {
            Some(named) => sunzi::Symmetric::triangle(added, named.uplo),
            None => added.into(),
        }
    }
}
