//! Choices of a factorisation, in one process and over ranks. Except for the accuracy none of them changes a bit of the
//! result.

use crate::comm::say_fields;
use crate::ops::input_rounding::InputRounding;
use crate::ops::product::problem::Accuracy;
use crate::options::setters;
use crate::runtime::Policy;
use crate::runtime::protocol::{DeliveryKind, Termination};
use crate::tile::RankGrid;

/// Options of a factorisation in addition to the matrix and the precision.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CholeskyOptions {
    /// Rows of a tile; with `None` they are chosen by size and precision. It never changes the result.
    pub tile_rows: Option<usize>,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// The first attempt at entrywise accuracy has at least this number of additional bits. If a similar matrix has
    /// been factored before, pass the number of additional bits from its report: this can save repetitions of the
    /// factorisation. Unused for accuracy by norms.
    pub range_bits: u32,
    /// Whether [`crate::solve_with`] and [`crate::inverse_with`] also estimate the number of correct digits of their
    /// result, for the report. A call that only factors ignores this option.
    pub digits: bool,
    /// A bound of the difference between the operands and the numbers that they represent; it affects only the
    /// estimated and proven digits.
    pub rounding: InputRounding,
}

setters! { new CholeskyOptions {
    tile_rows: impl Into<Option<usize>>,
    accuracy: Accuracy,
    range_bits: u32,
    digits: bool,
    rounding: InputRounding,
} }

/// Options of a distributed factorisation; the same on all ranks, except for `policy`. Only `accuracy` and `range_bits`
/// affect the bits of the result.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DistCholeskyOptions {
    /// Rows of a tile, a multiple of 8 of at most 4088; with `None` they are chosen by order, grid and kernel.
    pub tile_rows: Option<usize>,
    /// The grid of ranks; with `None` it is the grid of the matrix.
    pub grid: Option<RankGrid>,
    /// The algorithm that sends finished tiles to ranks.
    pub delivery: DeliveryKind,
    /// The method by which a rank detects that it will receive no further request.
    pub termination: Termination,
    /// The order of ready tasks; `None` selects [`Policy::Leftmost`] if all ranks read each other's tiles in place,
    /// else [`Policy::CriticalPath`].
    pub policy: Option<Policy>,
    /// Tiles of other ranks that a rank can hold; `None` chooses a number within the memory limit. If the ranks of one
    /// node read each other's tiles in place, no tiles are received, so any number is sufficient.
    pub slots: Option<usize>,
    /// Whether to record the times of each rank's tasks.
    pub spans: bool,
    /// Accuracy promised for each entry; the same on all ranks.
    pub accuracy: Accuracy,
    /// As [`CholeskyOptions::range_bits`].
    pub range_bits: u32,
}

// The fields under `apart` are each rank's own choice.
say_fields! { DistCholeskyOptions { tile_rows, grid, delivery, termination, accuracy, range_bits } apart {
    policy,
    slots,
    spans,
} }

setters! { new DistCholeskyOptions {
    tile_rows: impl Into<Option<usize>>,
    grid: impl Into<Option<RankGrid>>,
    delivery: DeliveryKind,
    termination: Termination,
    policy: impl Into<Option<Policy>>,
    slots: impl Into<Option<usize>>,
    spans: bool,
    accuracy: Accuracy,
    range_bits: u32,
} }
