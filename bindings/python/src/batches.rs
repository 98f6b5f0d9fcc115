//! Many small problems in one call: SYRK, GEMM, Cholesky, TRSM on lists of operands.
//!
//! Problems of one precision go to the library together, so that each result has the bits of the single call.

use crate::call::Call;
use crate::errors::{OrRaise, exception};
use crate::functions::{ACCURACIES, SIDES, SYMMETRIC, TRIANGLES, json, op, part_of, symmetric};
use crate::input::{Bits, Operand, Part, scalar};
use crate::output::{Form, Shape, give};
use crate::view::View;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rug::Float;
use std::sync::Arc;
use sunzi::{
    Accuracy, BatchReport, Cholesky, CholeskyOptions, Context, Diag, Error, GemmOptions, GemmProblem, Matrix,
    MatrixView, Outcome, Side, SyrkOptions, SyrkProblem, TrsmOptions, TrsmProblem, Uplo,
};

/// Results, or why there is none.
type Results = Vec<sunzi::Result<Matrix>>;

/// The verb of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Syrk,
    Gemm,
    Cholesky,
    Trsm,
}

/// What all problems share.
struct Choices {
    verb: Verb,
    symmetric: Option<Uplo>,
    triangle: Uplo,
    side: Side,
    diag: Diag,
    /// Whether the first and the second operand are transposed.
    transposed: (bool, bool),
    accuracy: Accuracy,
    alpha: Option<Float>,
    beta: Option<Float>,
}

/// One problem that has been taken in.
struct Problem {
    first: View,
    second: Option<View>,
    added: Option<Arc<Matrix>>,
    precision_bits: u32,
    shape: Shape,
}

/// See the Python layer. A problem without a result has its exception in its place.
#[pyfunction]
pub fn batch<'py>(
    operation: &str,
    problems: Vec<Vec<Bound<'py, PyAny>>>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut call = Call::new(options)?;
    let py = call.py();
    let verb = match operation {
        "syrk" => Verb::Syrk,
        "gemm" => Verb::Gemm,
        "cholesky" => Verb::Cholesky,
        "trsm" => Verb::Trsm,
        other => return Err(PyValueError::new_err(format!("no batch of '{other}'"))),
    };
    let mut choices = Choices {
        verb,
        symmetric: call.choice("uplo", SYMMETRIC)?,
        triangle: if verb == Verb::Trsm { call.choice("uplo", TRIANGLES)? } else { Uplo::Lower },
        side: call.choice("side", SIDES)?,
        diag: if call.flag("unit")? { Diag::Unit } else { Diag::NonUnit },
        transposed: (call.flag("transpose")?, call.flag("transpose_b")?),
        accuracy: call.choice("accuracy", ACCURACIES)?,
        alpha: None,
        beta: None,
    };
    let taken = problems
        .iter()
        .enumerate()
        .map(|(at, operands)| choices.take(&call, operands).map_err(|error| numbered(py, error, at, problems.len())));
    let taken = taken.collect::<PyResult<Vec<Problem>>>()?;
    let most_bits = taken.iter().map(|problem| problem.precision_bits).max().unwrap_or(2);
    let read = |name: &str| scalar(call.object(name)?.as_ref(), name, Bits::Round(most_bits));
    (choices.alpha, choices.beta) = (read("alpha")?, read("beta")?);
    let (results, report) = call.run(|ctx| choices.run_all(ctx, &taken))?;
    let form = if verb == Verb::Syrk { Form::Symmetric } else { Form::General };
    let each = results.into_iter().zip(&taken).map(|(result, problem)| match result {
        Ok(matrix) => give(py, matrix, form, problem.shape),
        Err(error) => Ok(exception(py, error).into_value(py).into_bound(py).into_any()),
    });
    let each = each.collect::<PyResult<Vec<_>>>()?;
    call.tell(json(&report)?)?;
    Ok(each)
}

/// The same exception, with the number of its problem.
fn numbered(py: Python<'_>, error: PyErr, problem: usize, count: usize) -> PyErr {
    let value = error.value(py);
    match value.setattr("args", (format!("problem {problem} of {count}: {value}"),)) {
        Ok(()) => error,
        Err(other) => other,
    }
}

impl Problem {
    fn second(&self) -> MatrixView<'_> {
        self.second.as_ref().expect("two operands were read").entries()
    }
}

impl Choices {
    /// Reads the operands of a problem.
    fn take<'py>(&self, call: &Call<'py>, operands: &[Bound<'py, PyAny>]) -> PyResult<Problem> {
        let (py, verb) = (call.py(), self.verb);
        let strict = self.diag == Diag::Unit;
        let (names, parts) = match verb {
            Verb::Syrk => (["p", "", "c"], [Part::Whole, Part::Whole, part_of(self.symmetric)]),
            Verb::Gemm => (["a", "b", "c"], [Part::Whole; 3]),
            Verb::Cholesky => (["a", "", ""], [part_of(self.symmetric), Part::Whole, Part::Whole]),
            Verb::Trsm if strict => (["t", "b", ""], [Part::StrictTriangle(self.triangle), Part::Whole, Part::Whole]),
            Verb::Trsm => (["t", "b", ""], [Part::Triangle(self.triangle), Part::Whole, Part::Whole]),
        };
        let wanted = names.iter().zip(parts).filter(|(name, _)| !name.is_empty());
        let least = if matches!(verb, Verb::Gemm | Verb::Trsm) { 2 } else { 1 };
        if operands.len() < least || operands.len() > wanted.clone().count() {
            return Err(PyTypeError::new_err(format!("{} operands: wanted {least}", operands.len())));
        }
        let read = wanted.zip(operands).map(|((name, part), operand)| Operand::of(operand, name, part));
        let mut read = read.collect::<PyResult<Vec<_>>>()?;
        let bits = call.precision_bits(&read.iter().map(|operand| operand.natural_bits).collect::<Vec<_>>())?;
        let kind = read.iter().take(least).map(|operand| operand.kind).min().expect("at least one operand");
        let container = read[if verb == Verb::Trsm { 1 } else { 0 }].container;
        let added = if read.len() > least { read.pop() } else { None };
        let whole = |added: Operand<'py>| added.view(py, Bits::Round(bits))?.to_whole().or_raise(py);
        let added = added.map(whole).transpose()?;
        let mut views = read.into_iter().map(|operand| operand.view(py, Bits::Round(bits)));
        let (first, second) = (views.next().expect("at least one operand")?, views.next().transpose()?);
        Ok(Problem { first, second, added, precision_bits: bits, shape: Shape { container, kind } })
    }

    /// All problems, those of one precision together.
    fn run_all(&self, ctx: &Context, problems: &[Problem]) -> sunzi::Result<(Results, BatchReport)> {
        let mut order = (0..problems.len()).collect::<Vec<_>>();
        order.sort_by_key(|&at| problems[at].precision_bits);
        let mut results = (0..problems.len()).map(|_| Ok(Matrix::empty())).collect::<Results>();
        let mut all = BatchReport::default();
        for group in order.chunk_by(|&x, &y| problems[x].precision_bits == problems[y].precision_bits) {
            let Outcome { result, report } = self.run(ctx, problems, group)?;
            for (&at, result) in group.iter().zip(result) {
                // The library counts within a group.
                results[at] = result.map_err(|error| match error {
                    Error::Problem { error, .. } => Error::Problem { problem: at, count: problems.len(), error },
                    other => other,
                });
            }
            let (problems, failed) = (all.problems + report.problems, all.failed + report.failed);
            let planned_bytes = all.planned_bytes.max(report.planned_bytes);
            let (direct, seconds) = (all.direct + report.direct, all.seconds + report.seconds);
            all = report;
            (all.problems, all.failed, all.direct) = (problems, failed, direct);
            (all.planned_bytes, all.seconds) = (planned_bytes, seconds);
        }
        Ok((results, all))
    }

    /// Problems of one precision.
    fn run(
        &self,
        ctx: &Context,
        problems: &[Problem],
        group: &[usize],
    ) -> sunzi::Result<Outcome<Results, BatchReport>> {
        let bits = problems[group[0]].precision_bits;
        let each = || group.iter().map(|&at| &problems[at]);
        let (alpha, accuracy) = (self.alpha.as_ref(), self.accuracy);
        match self.verb {
            Verb::Syrk => {
                let options = SyrkOptions::new().op(op(self.transposed.0)).accuracy(accuracy).alpha(alpha);
                let options = options.beta(self.beta.as_ref());
                let problems = each().map(|problem| match &problem.added {
                    Some(added) => SyrkProblem::from((problem.first.entries(), self.symmetric_of(added))),
                    None => SyrkProblem::from(problem.first.entries()),
                });
                let Outcome { result, report } = sunzi::syrk_batch_with(ctx, problems, bits, &options)?;
                let result = result.into_iter().map(|result| result.map(Into::into)).collect();
                Ok(Outcome { result, report })
            }
            Verb::Gemm => {
                let (op_a, op_b) = (op(self.transposed.0), op(self.transposed.1));
                let options = GemmOptions::new().op_a(op_a).op_b(op_b).accuracy(accuracy).alpha(alpha);
                let options = options.beta(self.beta.as_ref());
                let problems = each().map(|problem| match &problem.added {
                    Some(added) => GemmProblem::from(((problem.first.entries(), problem.second()), added.view())),
                    None => GemmProblem::from((problem.first.entries(), problem.second())),
                });
                sunzi::gemm_batch_with(ctx, problems, bits, &options)
            }
            Verb::Cholesky => {
                let options = CholeskyOptions::new().accuracy(accuracy);
                let matrices = each().map(|problem| symmetric(&problem.first, self.symmetric));
                let Outcome { result, report } = sunzi::cholesky_batch_with(ctx, matrices, bits, &options)?;
                let factor = |factor: Cholesky| match self.symmetric {
                    Some(Uplo::Upper) => factor.factor().view().transposed().to_matrix(),
                    _ => Ok(factor.into_factor()),
                };
                let result = result.into_iter().map(|result| result.and_then(factor)).collect();
                Ok(Outcome { result, report })
            }
            Verb::Trsm => {
                let options = TrsmOptions::new().side(self.side).uplo(self.triangle).op(op(self.transposed.0));
                let options = options.diag(self.diag).alpha(alpha).accuracy(accuracy);
                let problems = each().map(|problem| TrsmProblem::from((problem.first.entries(), problem.second())));
                sunzi::trsm_batch_with(ctx, problems, bits, &options)
            }
        }
    }

    fn symmetric_of<'m>(&self, added: &'m Matrix) -> sunzi::Symmetric<'m> {
        match self.symmetric {
            Some(uplo) => sunzi::Symmetric::triangle(added, uplo),
            None => added.into(),
        }
    }
}
