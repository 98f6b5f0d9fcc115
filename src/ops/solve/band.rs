//! A band of right-hand sides in progress, and single columns of it.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::ops::solve::memory::SolveMemory;
use crate::site::{Site, Team};

/// A band of right-hand sides under way.
pub(crate) struct Band<'a> {
    pub memory: &'a SolveMemory,
    /// The ranks that solve for their columns together.
    pub team: &'a Team,
    /// Columns of the widest band of the call: the memory of this one too.
    pub columns: usize,
    /// Bytes of the call that its bands were planned for; `None` without a memory limit.
    pub limit_bytes: Option<u64>,
    /// Column of the call that is the first of the band.
    pub first_column: usize,
    /// Right-hand sides are 0 above this row; 0 for an upper triangle.
    pub first_row: usize,
    /// Whether the caller's right-hand sides are the transposes.
    pub transposed: bool,
}

impl Band<'_> {
    /// The context of the call.
    pub fn ctx(&self) -> &Context {
        &self.memory.ctx
    }

    /// Where its steps run.
    pub fn site(&self) -> Site<'_> {
        Site { ctx: self.ctx(), team: self.team }
    }

    /// The error with its place in the caller's right-hand sides.
    pub fn placed(&self, error: Error) -> Error {
        match error {
            Error::ExponentRange { row, column, exponent, limit } => {
                let (row, column) = match self.transposed {
                    false => (row, column + self.first_column),
                    true => (column + self.first_column, row),
                };
                Error::ExponentRange { row, column, exponent, limit }
            }
            Error::SelfCheck { row, column } => Error::SelfCheck { row, column: column + self.first_column },
            other => other,
        }
    }
}

/// Copies columns of `source` side by side.
pub(crate) fn gather(source: &Matrix, columns: &[usize], target: &mut Matrix) -> Result<()> {
    target.reshape(source.rows(), columns.len(), source.precision_bits())?;
    for (at, &col) in columns.iter().enumerate() {
        for row in 0..source.rows() {
            target.set(row, at, source.get(row, col));
        }
    }
    Ok(())
}

/// Copies the columns of `source`, except those in `without`, to their places in `target`.
pub(crate) fn scatter(source: &Matrix, columns: &[usize], without: &[usize], target: &mut Matrix) {
    for (at, &col) in columns.iter().enumerate().filter(|(at, _)| !without.contains(at)) {
        for row in 0..source.rows() {
            target.set(row, col, source.get(row, at));
        }
    }
}

/// The error with the column that `columns` gives for the one it names.
pub(crate) fn with_column(error: Error, columns: &[usize]) -> Error {
    match error {
        Error::ExponentRange { row, column, exponent, limit } => {
            Error::ExponentRange { row, column: columns[column], exponent, limit }
        }
        other => other,
    }
}
