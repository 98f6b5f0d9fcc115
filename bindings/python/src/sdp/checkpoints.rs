//! Checkpoints of runs: the checkpoint from which a run starts, the folder in which it writes checkpoints, and the
//! times.

use super::program::read;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use sunzi::{Error, Result};
use sunzi_sdp::{CheckpointLock, Problem, Solver, State};

/// Seconds between checkpoints: SDPB's default.
const CHECKPOINT_SECONDS: f64 = 3600.0;

/// The folders of a run.
pub struct Checkpoints {
    /// Where they are written.
    folder: Option<PathBuf>,
    /// Where a checkpoint must be to begin with.
    initial: Option<PathBuf>,
    interval: Duration,
    saved: Mutex<Instant>,
    /// The state after the last iteration, where it may have to be written.
    last: Mutex<Option<State>>,
}

impl Checkpoints {
    /// Reads `checkpoint`, `initial_checkpoint` and `checkpoint_interval`.
    ///
    /// # Errors
    /// `TypeError`; `ValueError` for an interval below 0, or without a folder.
    pub fn of(run: &Bound<'_, PyDict>) -> PyResult<Checkpoints> {
        let folder = read::<PathBuf>(run, "checkpoint")?;
        let seconds = read::<f64>(run, "checkpoint_interval")?;
        if folder.is_none() && seconds.is_some() {
            return Err(PyValueError::new_err("checkpoint_interval= is given, but checkpoint= is not"));
        }
        let interval = Duration::try_from_secs_f64(seconds.unwrap_or(CHECKPOINT_SECONDS));
        let interval =
            interval.map_err(|error| PyValueError::new_err(format!("checkpoint_interval= is not valid: {error}")))?;
        let initial = read(run, "initial_checkpoint")?;
        let (saved, last) = (Mutex::new(Instant::now()), Mutex::new(None));
        Ok(Checkpoints { folder, initial, interval, saved, last })
    }

    /// The checkpoints of a program, where a folder is named.
    pub fn of_program(&self, problem: &Problem) -> Option<sunzi_sdp::Checkpoints> {
        (self.folder.is_some() || self.initial.is_some()).then(|| sunzi_sdp::Checkpoints::new(problem))
    }

    /// Takes the folder in which checkpoints are written for this run.
    ///
    /// # Errors
    /// The errors of [`CheckpointLock::take`].
    pub fn lock(&self) -> Result<Option<CheckpointLock>> {
        self.folder.as_deref().map(CheckpointLock::take).transpose()
    }

    /// The state from which the run continues, or the initial state if no checkpoint exists and none is required.
    ///
    /// # Errors
    /// The errors of [`sunzi_sdp::Checkpoints::load`]; [`Error::InvalidArgument`] where the initial one is missing.
    pub fn first(&self, solver: &Solver<'_>, known: Option<&sunzi_sdp::Checkpoints>) -> Result<State> {
        let folder = self.initial.as_ref().or(self.folder.as_ref());
        let Some((folder, known)) = folder.zip(known) else { return solver.begin() };
        match known.load(solver, Some(folder), self.initial.is_some())? {
            None if self.initial.is_some() => {
                Err(Error::InvalidArgument(format!("{}: the directory has no checkpoint", folder.display())))
            }
            found => found.map_or_else(|| solver.begin(), Ok),
        }
    }

    /// Bytes of the state that is remembered, with a best point that the run may have left behind.
    pub fn kept_bytes(&self, problem: &Problem) -> u64 {
        if self.folder.is_some() { 2 * problem.point_bytes() } else { 0 }
    }

    /// Records a state for [`Checkpoints::keep_last`], if there is a folder.
    pub fn remember(&self, state: &State) {
        if self.folder.is_some() {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            // The old one goes first: there is room for one.
            *last = None;
            *last = Some(state.clone());
        }
    }

    /// Writes the state that was remembered last.
    ///
    /// # Errors
    /// The errors of [`sunzi_sdp::Checkpoints::save`].
    pub fn keep_last(&self, known: Option<&sunzi_sdp::Checkpoints>) -> Result<()> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map_or(Ok(()), |state| self.keep(known, state, true))
    }

    /// Writes a state where the interval is over, or it is the last one.
    ///
    /// # Errors
    /// The errors of [`sunzi_sdp::Checkpoints::save`].
    pub fn keep(&self, known: Option<&sunzi_sdp::Checkpoints>, state: &State, is_last: bool) -> Result<()> {
        let Some((folder, known)) = self.folder.as_ref().zip(known) else { return Ok(()) };
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        if is_last || saved.elapsed() >= self.interval {
            known.save(folder, state)?;
            *saved = Instant::now();
        }
        Ok(())
    }
}
