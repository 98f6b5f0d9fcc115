//! Tiles of bytes: how operands lie, and the unit that multiplies them.
//!
//! A unit multiplies 32 rows of signed bytes with 32 columns of signed or unsigned ones, 64 terms at a step, as the
//! tile registers of AMX take them: 16 rows of 64 bytes, and 16 groups of 4 terms of 16 columns each. Independent of:
//! moduli.
#![forbid(unsafe_code)]

use super::vectors::Vector;

/// Rows, and columns, of a tile of sums.
pub const SIDE: usize = 32;

/// Terms of a step.
pub const STEP: usize = 64;

/// Neighbouring terms that lie in one word.
pub const GROUP: usize = 4;

/// Groups of a step.
pub const STEP_GROUPS: usize = STEP / GROUP;

/// Words of a step of rows, or of columns.
pub const STEP_WORDS: usize = SIDE * STEP_GROUPS;

/// A step of the signed operand: of each row 16 groups of 4 bytes.
pub type TileRows = [[u32; STEP_GROUPS]; SIDE];

/// A step of the other operand: for columns 0 to 15, then 16 to 31, of each group the 4 bytes of each column.
pub type TileColumns = [[[u32; 16]; STEP_GROUPS]; 2];

/// Sums of products, row after row; units are fastest where they begin a cache line.
pub type TileSums = [[i32; SIDE]; SIDE];

/// Words of the sums of a tile.
pub const SUM_WORDS: usize = SIDE * SIDE;

/// Sums that begin a cache line.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct AlignedSums(pub TileSums);

impl AlignedSums {
    /// Sums that are 0.
    pub const fn new() -> AlignedSums {
        AlignedSums([[0; SIDE]; SIDE])
    }
}

/// The part of a tile that is wanted; other sums may become anything.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Groups of terms; the rest of the last step is 0 in one operand at least.
    pub groups: usize,
    /// Rows, 32 at most.
    pub rows: usize,
    /// Columns, 32 at most.
    pub columns: usize,
}

/// Something that multiplies tiles.
pub trait Unit {
    /// The vectors that pack operands and reduce sums where the unit runs.
    type Vectors: Vector;
    /// `sums[m][n] := sum_k rows[m][k] columns[k][n]` modulo `2^32`; the bytes of columns have signs if `SIGNED`.
    fn multiply<const SIGNED: bool>(rows: &[TileRows], columns: &[TileColumns], extent: Extent, sums: &mut TileSums);
}

/// Work that can run on any unit.
pub trait I8Task {
    /// Does the work. Must be `#[inline(always)]`.
    fn run<U: Unit>(self);
}

/// The columns that a slice of words holds, one step after the other.
pub fn columns_mut(words: &mut [u32]) -> &mut [TileColumns] {
    words.as_chunks_mut::<16>().0.as_chunks_mut::<STEP_GROUPS>().0.as_chunks_mut::<2>().0
}

/// The rows that a slice of words holds, one step after the other.
pub fn rows_mut(words: &mut [u32]) -> &mut [TileRows] {
    words.as_chunks_mut::<STEP_GROUPS>().0.as_chunks_mut::<SIDE>().0
}

/// The sums that a slice of words holds, one tile after the other.
pub fn sums_mut(words: &mut [u32]) -> &mut [TileSums] {
    bytemuck::cast_slice_mut::<u32, i32>(words).as_chunks_mut::<SIDE>().0.as_chunks_mut::<SIDE>().0
}

/// Words of scratch by which a buffer of steps may begin too early for whole cache lines.
pub const LINE_WORDS: usize = 8;

/// The first whole cache line of scratch and all behind it, as words of a step.
pub fn aligned(scratch: &mut [u64]) -> &mut [u32] {
    let skipped = scratch.as_ptr().align_offset(8 * LINE_WORDS).min(LINE_WORDS);
    bytemuck::cast_slice_mut(&mut scratch[skipped..])
}
