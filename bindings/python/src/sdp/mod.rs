//! Semidefinite programs: `sunzi.sdp`, which has the signatures and the documentation.
//!
//! `program` reads a program from Python's numbers, `options` the choices of the solver, `checkpoints` the folders of
//! its states, `solution` the form of its results.

mod checkpoints;
mod options;
mod program;
mod solution;

use crate::call::{checked_bits, number_kind};
use crate::context::Context;
use crate::kind::Container;
use crate::output::Shape;
use crate::runner::Runner;
use checkpoints::Checkpoints;
use program::{Pending, read};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use solution::Found;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use sunzi::{Error, Progress};
use sunzi_sdp::{Control, Iteration, Problem, Solver, SolverOptions, read_problem};

/// Bits of all numbers where neither the caller nor a number has more: SDPB's default.
const DEFAULT_BITS: u32 = 400;

/// The native part of `sunzi.sdp.solve`.
#[pyfunction]
pub fn sdp_solve<'py>(
    c: &Bound<'py, PyAny>,
    blocks: &Bound<'py, PyAny>,
    equations: Option<Bound<'py, PyAny>>,
    run: &Bound<'py, PyDict>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let pending = Pending::of(c, blocks, equations.as_ref())?;
    let bits = asked_bits(run)?.unwrap_or_else(|| pending.natural_bits().unwrap_or(0).max(DEFAULT_BITS));
    let shape = pending.shape();
    let problem = pending.problem(c.py(), bits)?;
    solution::give(c.py(), &solve(run, options, |_| Ok(problem))?, shape)
}

/// The native part of `sunzi.sdp.solve_file`.
#[pyfunction]
pub fn sdp_solve_file<'py>(
    py: Python<'py>,
    path: PathBuf,
    numbers: &str,
    run: &Bound<'py, PyDict>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let shape = Shape { container: Container::Matrix, kind: number_kind(numbers)? };
    let bits = asked_bits(run)?.unwrap_or(DEFAULT_BITS);
    solution::give(py, &solve(run, options, |_| read_problem(&path, bits))?, shape)
}

/// The precision that the caller requests.
fn asked_bits(run: &Bound<'_, PyDict>) -> PyResult<Option<u32>> {
    checked_bits(run.py(), "precision", read(run, "precision")?)
}

/// Runs the solver on the program that `program` gives, reports its iterations, and handles signals.
fn solve(
    run: &Bound<'_, PyDict>,
    options: &Bound<'_, PyDict>,
    program: impl FnOnce(&sunzi::Context) -> sunzi::Result<Problem> + Send,
) -> PyResult<Found> {
    let py = run.py();
    let runner = Runner::new(py, read::<Bound<'_, Context>>(run, "context")?, None)?;
    let progress = read::<Bound<'_, PyAny>>(run, "progress")?;
    if let Some(other) = progress.as_ref().filter(|progress| !progress.is_callable()) {
        let name = other.get_type().fully_qualified_name()?;
        return Err(PyTypeError::new_err(format!(
            "progress= must be callable with an Iteration, but its type is {name}"
        )));
    }
    let (choices, checkpoints) = (options::CallerChoices::of(options)?, Checkpoints::of(run)?);
    let told = Mutex::new(Vec::<Iteration>::new());
    let callback = progress.map(Bound::unbind);
    let tell = |py: Python<'_>| -> PyResult<()> {
        let iterations = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(callback) = &callback else { return Ok(()) };
        for iteration in &iterations {
            callback.bind(py).call1((solution::iteration(py, iteration)?,))?;
        }
        Ok(())
    };
    let work = |ctx: &sunzi::Context| {
        let problem = program(ctx)?;
        let options = choices.apply(SolverOptions::new(problem.form));
        let most = options.max_iterations;
        // The state kept of the last iteration takes memory in addition to all that the run plans.
        let kept = checkpoints.kept_bytes(&problem);
        let beside = ctx.with_memory_bytes(ctx.memory_bytes().map(|limit| limit.saturating_sub(kept)));
        let more = |error| match error {
            Error::MemoryLimit { limit_bytes, minimum_bytes } => {
                Error::MemoryLimit { limit_bytes: limit_bytes + kept, minimum_bytes: minimum_bytes + kept }
            }
            other => other,
        };
        let solver = Solver::new(beside, &problem, options).map_err(more)?;
        let known = checkpoints.of_program(&problem);
        let _lock = checkpoints.lock()?;
        let state = checkpoints.first(&solver, known.as_ref())?;
        let ended = solver.run(state, |iteration, state| {
            told.lock().unwrap_or_else(PoisonError::into_inner).push(iteration.clone());
            let told = ctx.report_progress(Progress::new("iteration", iteration.number, most));
            checkpoints.keep(known.as_ref(), state, false)?;
            checkpoints.remember(state);
            told.map(|()| Control::Continue)
        });
        if matches!(ended, Err(Error::Cancelled)) {
            // A run that an exception or Ctrl-C ends, mostly in the middle of an iteration, can go on from the last
            // one.
            checkpoints.keep_last(known.as_ref())?;
        }
        let solution = ended.map_err(more)?;
        checkpoints.keep(known.as_ref(), &solution.state(), true)?;
        let dimacs_errors = solver.dimacs_errors(&solution)?;
        Ok(Found { solution, dimacs_errors })
    };
    runner.run_telling(work, &tell)
}
