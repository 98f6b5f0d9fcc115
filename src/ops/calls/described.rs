//! Descriptions of matrices over ranks: a rule for the rows and one for the columns, in numbers of a caller.

use super::caller::{ArgumentFault, CallFailure, LocalArray};
use super::matrix::PlacedMatrix;
use super::shapes::RankShapes;
use crate::tile::{Along, Axis, Distribution, GridOrder, RankGrid};
use std::marker::PhantomData;

/// A distribution in a caller's description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DistributionNumbers {
    /// Rows of the matrix, or -1 for their sum over the ranks.
    pub rows: i64,
    /// Columns of the matrix, or -1 for their sum over the ranks.
    pub cols: i64,
    /// Rows of the grid of ranks.
    pub grid_rows: i64,
    /// Columns of the grid of ranks.
    pub grid_cols: i64,
    /// The order of the ranks in the grid.
    pub order: GridOrder,
    /// The coordinate of the ranks over which the rows are distributed; `None` if every rank has all rows.
    pub row_along: Option<Along>,
    /// The same for the columns.
    pub col_along: Option<Along>,
    /// Rows of a block of the distribution; 0 for consecutive rows.
    pub row_block: i64,
    /// The same for the columns.
    pub col_block: i64,
    /// The coordinate of the ranks that have the first row.
    pub row_first: i64,
    /// The same for the first column.
    pub col_first: i64,
}

/// A rule for the rows or the columns of a matrix.
#[derive(Clone, Copy)]
struct AxisRule {
    length: i64,
    along: Option<Along>,
    block: usize,
    first: usize,
}

/// A described matrix, before the ranks have exchanged the sizes of their parts.
pub struct DescribedMatrix<A, F> {
    local: A,
    /// The number of the matrix among those of the call.
    at: usize,
    grid: RankGrid,
    order: GridOrder,
    row_rule: AxisRule,
    col_rule: AxisRule,
    failure: PhantomData<F>,
}

impl<A: LocalArray, F: CallFailure> DescribedMatrix<A, F> {
    /// The matrix that is the `at`-th of its call.
    ///
    /// # Errors
    /// A number that is out of range.
    pub(super) fn new(local: A, numbers: &DistributionNumbers, at: usize) -> Result<DescribedMatrix<A, F>, F> {
        let name = local.name();
        let count = |value: i64, what: &str| {
            let message = || format!("{what} = {value} is out of range; choose 0 to {}", u32::MAX);
            let found = usize::try_from(value).ok().filter(|&value| value <= u32::MAX as usize);
            found.ok_or_else(|| F::refused(name, ArgumentFault::Value, message()))
        };
        let grid =
            RankGrid { rows: count(numbers.grid_rows, "grid_rows")?, cols: count(numbers.grid_cols, "grid_cols")? };
        let row_rule = AxisRule {
            length: numbers.rows,
            along: numbers.row_along,
            block: count(numbers.row_block, "row_block")?,
            first: count(numbers.row_first, "row_first")?,
        };
        let col_rule = AxisRule {
            length: numbers.cols,
            along: numbers.col_along,
            block: count(numbers.col_block, "col_block")?,
            first: count(numbers.col_first, "col_first")?,
        };
        Ok(DescribedMatrix { local, at, grid, order: numbers.order, row_rule, col_rule, failure: PhantomData })
    }

    /// The matrix with its distribution, after a check that its description is the same on all ranks and fits the parts
    /// of all ranks: every rank returns the same result.
    ///
    /// # Errors
    /// Numbers that are not a distribution, and parts whose shapes differ from it.
    pub fn place(self, shapes: &RankShapes) -> Result<PlacedMatrix<A>, F> {
        let (rows, row_axis) = self.axis(self.row_rule, 0, shapes)?;
        let (cols, col_axis) = self.axis(self.col_rule, 1, shapes)?;
        let DescribedMatrix { local, at, grid, order, .. } = self;
        let distribution = Distribution { rows, cols, grid, order, row_axis, col_axis };
        distribution.check(shapes.ranks()).map_err(|error| F::about(local.name(), error))?;
        for rank in 0..shapes.ranks() {
            let ([has_rows, has_cols], (rows, cols)) = (shapes.of(rank, at), distribution.local_shape(rank));
            if (has_rows, has_cols) != (rows, cols) {
                let own = format!("the distribution assigns {rows} x {cols} entries to it");
                let message = format!("rank {rank} has {has_rows} x {has_cols} entries, but {own}");
                return Err(F::refused(local.name(), ArgumentFault::Size, message));
            }
        }
        Ok(PlacedMatrix { local, distribution })
    }

    /// The length of the matrix along its rows (0) or columns (1), and which rank has which part of it.
    fn axis(&self, rule: AxisRule, which: usize, shapes: &RankShapes) -> Result<(usize, Axis), F> {
        let AxisRule { length, along, block, first } = rule;
        let refuse = |message| Err(F::refused(self.local.name(), ArgumentFault::Size, message));
        let what = ["rows", "columns"][which];
        if length < -1 {
            return refuse(format!(
                "{length} {what} are not valid; pass their number, or -1 for the sum over the ranks"
            ));
        }
        let known = usize::try_from(length).ok();
        match (along, known) {
            (None, known) => Ok((known.unwrap_or_else(|| shapes.of(0, self.at)[which]), Axis::Whole)),
            (Some(along), _) if block == 0 && self.grid.size() <= shapes.ranks() => {
                let starts = self.starts(along, which, shapes)?;
                let sum = starts.last().copied().unwrap_or(0);
                match known {
                    Some(known) if known != sum => {
                        refuse(format!("the ranks have {sum} {what} together, but the matrix has {known}"))
                    }
                    _ => Ok((sum, Axis::Consecutive { starts, along })),
                }
            }
            (Some(along), Some(known)) => Ok((known, Axis::Cyclic { block, first, offset: 0, along })),
            (Some(_), None) => refuse(format!("{length} {what} are only valid with a block size of 0")),
        }
    }

    /// Where the consecutive rows or columns of each number begin, and where the last ends.
    fn starts(&self, along: Along, which: usize, shapes: &RankShapes) -> Result<Vec<usize>, F> {
        let refuse = |message| Err(F::refused(self.local.name(), ArgumentFault::Size, message));
        let what = ["rows", "columns"][which];
        // The numbers of the ranks, from a matrix of one row.
        let deal = Distribution::entry_cyclic((1, 1), (self.grid, self.order), (Some(along), None), (0, 0));
        let most = (0..self.grid.size()).filter_map(|rank| deal.numbers(rank)).map(|(at, _)| at + 1).max();
        let mut counts = vec![None; most.unwrap_or(0)];
        for rank in 0..self.grid.size() {
            let Some((at, _)) = deal.numbers(rank) else { continue };
            let own = shapes.of(rank, self.at)[which];
            match counts[at] {
                Some(count) if count != own => {
                    return refuse(format!("ranks with the same number have {count} and {own} {what}"));
                }
                _ => counts[at] = Some(own),
            }
        }
        let (mut starts, mut sum) = (vec![0], 0_usize);
        for count in counts {
            let Some(next) = sum.checked_add(count.unwrap_or(0)) else {
                return refuse(format!("the sum of the {what} over the ranks is too large"));
            };
            sum = next;
            starts.push(sum);
        }
        Ok(starts)
    }
}
