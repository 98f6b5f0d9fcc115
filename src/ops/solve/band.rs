//! A band of right-hand sides in progress: its place in the call, the matrices that it is solved in, and the memory
//! that its steps may take.

use crate::context::{Context, MemoryBudget};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::solve::memory::SolveMemory;
use crate::site::{Site, Team};
use std::ops::Range;

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

impl<'a> Band<'a> {
    /// A band of right-hand sides of one process, the first of the call, with bands of at most `columns` columns.
    pub fn first(memory: &'a SolveMemory, columns: usize, limit_bytes: Option<u64>) -> Band<'a> {
        let team = Team::one_process();
        Band { memory, team, columns, limit_bytes, first_column: 0, first_row: 0, transposed: false }
    }

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

/// Copies all of `source` into the columns `columns` of `target`, its rows from `first` on.
pub(crate) fn copy_rows(
    ctx: &Context,
    source: &Matrix,
    first: usize,
    columns: &Range<usize>,
    target: &mut Matrix,
) -> Result<()> {
    each_column(
        ctx,
        target,
        || (),
        |_, mut column| {
            if columns.contains(&column.index) {
                column.copy_from(first, ColumnRef::of(source, 0..source.rows(), column.index - columns.start));
            }
            Ok(())
        },
    )
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

/// Matrices of arbitrary contents.
pub(crate) struct Spaces {
    /// The right-hand sides, which become the solutions.
    pub w: Matrix,
    /// The result of a product.
    pub result: Matrix,
    /// Right-hand sides that are tried again.
    pub again: Matrix,
}

impl Spaces {
    /// The spaces of an earlier call, or empty ones.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn take(ctx: &Context) -> Result<Spaces> {
        let mut kept = std::mem::take(&mut ctx.workspace().matrices).into_iter();
        let mut next = || kept.next().map_or_else(|| Matrix::zeros(0, 0, 2), Ok);
        Ok(Spaces { w: next()?, result: next()?, again: next()? })
    }

    /// Releases the memory of right-hand sides that were tried again, and of the product, which the next try needs.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn release_copies(&mut self) -> Result<()> {
        (self.result, self.again) = (Matrix::zeros(0, 0, 2)?, Matrix::zeros(0, 0, 2)?);
        Ok(())
    }

    /// Leaves the spaces to the next call, unless the context has a memory limit.
    pub fn give_back(self, ctx: &Context) {
        if ctx.memory_bytes().is_none() {
            ctx.workspace().matrices = vec![self.w, self.result, self.again];
        }
    }
}

/// The memory that steps may take.
pub(crate) struct Room<'a> {
    /// With the bytes of a plan as its limit.
    pub ctx: &'a Context,
    /// The limit of the call, up to which products may exceed the plan.
    pub limit_bytes: Option<u64>,
}

impl Room<'_> {
    /// The result of `work` within the plan, or within the larger memory that it requires. It may run more than once.
    ///
    /// # Errors
    /// The errors of `work`.
    pub fn within<T>(&self, mut work: impl FnMut(&Context) -> Result<T>) -> Result<T> {
        let memory = self.ctx.memory();
        let with = |bytes| self.ctx.with_memory(memory.within(bytes));
        within_reach(memory.limit_bytes(), self.limit_bytes, |bytes| work(&with(bytes)))
    }
}

/// The result of `work` within the bytes of a plan, `None` for no limit; or within more, where entries need more than
/// planned and the limit of the call has room for that. A refusal names the limit of the call.
///
/// # Errors
/// The errors of `work`.
pub(crate) fn within_reach<T>(
    mut planned_bytes: Option<u64>,
    limit_bytes: Option<u64>,
    mut work: impl FnMut(Option<u64>) -> Result<T>,
) -> Result<T> {
    loop {
        match (work(planned_bytes), planned_bytes) {
            (Err(Error::MemoryLimit { minimum_bytes, .. }), Some(tried)) if minimum_bytes > tried => {
                MemoryBudget::new(limit_bytes).admit_total(minimum_bytes)?;
                planned_bytes = Some(minimum_bytes);
            }
            (done, _) => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_outgrows_its_plan_gets_what_the_limit_of_the_call_has() {
        let needs = |steps: [u64; 2]| {
            let mut steps = steps.into_iter();
            let mut needed = steps.next().unwrap();
            move |bytes: Option<u64>| {
                let tried = MemoryBudget::new(bytes).admit_total(needed);
                needed = steps.next().unwrap_or(needed);
                tried
            }
        };
        for (planned, limit, steps, most) in [
            (Some(5), None, [9, 9], Some(9)),
            (Some(5), Some(20), [9, 20], Some(20)),
            (Some(9), Some(9), [9, 9], Some(9)),
            (None, None, [u64::MAX, 1], Some(u64::MAX)),
            (Some(5), Some(19), [9, 20], None),
            (Some(5), Some(8), [9, 9], None),
        ] {
            match (within_reach(planned, limit, needs(steps)), most) {
                (Ok(bytes), most) => assert_eq!(Some(bytes), most),
                (Err(Error::MemoryLimit { limit_bytes, minimum_bytes }), None) => {
                    assert!(Some(limit_bytes) == limit && minimum_bytes > limit_bytes);
                }
                (Err(error), _) => panic!("{error}"),
            }
        }
    }
}
