//! Choices of a factorisation, in one process and over ranks. Except for the accuracy none of them changes a bit of the
//! result.

use crate::comm::say_fields;
use crate::ops::input_rounding::InputRounding;
use crate::ops::product::problem::Accuracy;
use crate::options::setters;
use crate::runtime::Policy;
use crate::runtime::protocol::{DeliveryKind, Termination};
use crate::tile::RankGrid;

/// Choices of a factorisation beyond the matrix and the precision.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CholeskyOptions {
    /// Rows of a tile; `None` chooses by size and precision. It never changes the result.
    pub tile_rows: Option<usize>,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Bits beyond those of the norms with which accuracy entry by entry begins, at least: the number that an earlier
    /// matrix of the kind took saves a repetition. Unused for accuracy by norms.
    pub range_bits: u32,
    /// Whether [`crate::solve_with`] and [`crate::inverse_with`] also estimate how many digits of their answer are
    /// right, for their report. A factor has no such estimate.
    pub digits: bool,
    /// How far the operands may lie from the numbers that they stand for: affects only those digits.
    pub rounding: InputRounding,
}

setters! { new CholeskyOptions {
    tile_rows: impl Into<Option<usize>>,
    accuracy: Accuracy,
    range_bits: u32,
    digits: bool,
    rounding: InputRounding,
} }

/// Choices of a distributed factorisation; the same on all ranks, but for `policy`. Only the accuracy, and the bits
/// with which it begins, affect the bits of the result.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DistCholeskyOptions {
    /// Rows of a tile, a multiple of 8 of up to 4088; `None` chooses by order, grid and kernel.
    pub tile_rows: Option<usize>,
    /// The grid of ranks; `None` keeps that of the matrix.
    pub grid: Option<RankGrid>,
    /// The senders and receivers of finished tiles.
    pub delivery: DeliveryKind,
    /// How a rank detects that no further request will come.
    pub termination: Termination,
    /// Which ready tile is worked on next; `None` takes [`Policy::Leftmost`] where all ranks read each other's tiles in
    /// place, else [`Policy::CriticalPath`].
    pub policy: Option<Policy>,
    /// Tiles of other ranks that a rank has room for; `None` chooses within the memory limit. Where the ranks of one
    /// node read each other's tiles in place, none is received, so any number is enough.
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
