//! Tile kernels of a Cholesky factorisation: the trait that schedulers drive, whatever runs below.
//!
//! A tile is `rows x cols` integers of the scaled matrix, held as residues and, once it is factored, as integers too.
//! All updates are exact, so the order in which they come cannot show in the factor.
//! Knows: `math`, `matrix` views as input. Does not know: the task graph, threads, files.

use crate::math::pivot::RowWeight;
use crate::matrix::MatrixView;
use rug::Integer;
use std::ops::Range;

/// Rows of a panel; tiles begin at multiples of it.
pub const PANEL_ROWS: usize = 8;

/// Rows and columns of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileShape {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Whether the tile lies on the diagonal, so that only its lower triangle counts.
    pub diagonal: bool,
}

impl TileShape {
    /// Panels of 8 rows, the last one padded with zeros.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(PANEL_ROWS)
    }

    /// Columns, padded to whole panels.
    pub fn padded_cols(&self) -> usize {
        self.cols.next_multiple_of(PANEL_ROWS)
    }
}

/// Where a tile's entries come from.
#[derive(Clone)]
pub struct TileSource<'a> {
    /// The lower triangle of the matrix; nothing above the diagonal is read.
    pub lower: MatrixView<'a>,
    /// Rows of the tile.
    pub rows: Range<usize>,
    /// Columns of the tile.
    pub cols: Range<usize>,
    /// `2 working_bits - s_i` for every row of the matrix.
    pub row_shifts: &'a [i64],
    /// `-s_j` for every column of the matrix.
    pub col_shifts: &'a [i64],
}

/// One pair of factored tiles of an update: `C := C - X Y^T`, over all columns of both.
#[derive(Clone, Copy)]
pub struct TilePair<'a> {
    /// The tile in the row of C.
    pub x: &'a [u64],
    /// The tile in the row that is C's column.
    pub y: &'a [u64],
}

/// A pivot that is not positive, or whose row was rejected before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedPivot {
    /// Column within the tile.
    pub column: usize,
    /// The pivot, scaled by `2^(2 working_bits)`, where it was computed.
    pub value: Option<Integer>,
}

/// What a factored diagonal tile has beside its words, for the tiles below it.
pub trait DiagonalData: Send + Sync {
    /// For the kernel that made it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Kernels of one factorisation, for one precision. `words` are a tile's own, in the kernel's own layout; all methods
/// take only slices of their own, so that calls on different tiles may run at the same time.
pub trait TileEngine: Send + Sync {
    /// Planes of a tile.
    fn primes(&self) -> usize;
    /// Words of a tile.
    fn tile_words(&self, shape: TileShape) -> usize;
    /// Words of scratch that one call below needs for tiles of at most `tile_rows` rows and columns.
    fn scratch_words(&self, tile_rows: usize) -> usize;
    /// Bytes of what a factored diagonal tile of `cols` columns has beside its words.
    fn diagonal_bytes(&self, cols: usize) -> u64;
    /// Bytes of the engine's tables.
    fn table_bytes(&self) -> u64;
    /// Most bytes that one call below allocates for itself; none by default.
    fn call_bytes(&self, _tile_rows: usize) -> u64 {
        0
    }
    /// Rows of a tile at which the kernels are fastest.
    fn preferred_rows(&self) -> usize;
    /// `T := round(a_ij 2^(row_shifts[i] + col_shifts[j]))`, to nearest, ties to even. `words` is dirty before.
    fn load(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]);
    /// `T := T - sum of X Y^T` over all pairs, tiles of `depth` columns with as many rows as T has rows and columns;
    /// the lower triangle alone for a diagonal tile (SYRK), which is its own X and Y, else the whole tile (GEMM).
    fn update(&self, shape: TileShape, words: &mut [u64], pairs: &[TilePair<'_>], depth: usize, scratch: &mut [u64]);
    /// POTRF: the factor of a diagonal tile, all of whose updates are in. `weights` are those of the tile's rows.
    ///
    /// # Errors
    /// The first pivot that is not positive.
    fn factor(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> Result<Box<dyn DiagonalData>, FailedPivot>;
    /// TRSM: `T := T L^-T` for a tile below the factored diagonal tile `diagonal`, whose data `factor` gave.
    fn solve(&self, tile: SolveTile<'_>, diagonal: (&[u64], &dyn DiagonalData), scratch: &mut [u64]);
    /// The 8 entries of panel `panel` in column `col` of a factored tile: limbs into `magnitudes`, `entry_limbs` each,
    /// and a sign bit each. What lies above the diagonal is 0.
    fn entries(&self, shape: TileShape, words: &[u64], at: (usize, usize), magnitudes: &mut [u64]) -> u8;
    /// Limbs of an entry of the factor.
    fn entry_limbs(&self) -> usize;
}

/// A tile to solve.
pub struct SolveTile<'a> {
    /// Its shape.
    pub shape: TileShape,
    /// Its words.
    pub words: &'a mut [u64],
    /// Running sums of its rows.
    pub weights: &'a mut [RowWeight],
}
