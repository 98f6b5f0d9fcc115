//! Tile kernels of Cholesky factorisations and triangular solves: the traits that schedulers call, for any
//! implementation.
//!
//! A tile is `rows x cols` integers of the scaled matrix, stored as residues and, when it is finished, also as
//! integers. All updates are exact, so their order does not affect the result. Depends on: `math`, `matrix` views as
//! input. Independent of: the task graph, threads, files.

use crate::device::{Description, Traffic};
use crate::math::pivot::RowWeight;
use crate::matrix::MatrixView;
use crate::runtime::CacheCounters;
use rug::Integer;
use rug::integer::Order;
use serde::Serialize;
use std::ops::Range;

/// Rows of a panel; tiles begin at multiples of it.
pub const PANEL_ROWS: usize = 8;

/// The transfers of tiles since the engine was made.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TileTraffic {
    /// The device.
    pub device: Description,
    /// Name of the kernel of the device.
    pub kernel: &'static str,
    /// Moduli there.
    pub moduli: usize,
    /// Bytes copied to and from the device.
    pub traffic: Traffic,
    /// Bytes that would have been copied if every product of two tiles had copied both, and its sums in both
    /// directions.
    pub baseline_bytes: u64,
    /// Number of products of two tiles.
    pub products: u64,
    /// The counters of the cache.
    pub cache: CacheCounters,
    /// Largest number of bytes allocated on the device.
    pub device_bytes: u64,
    /// Ranks of the machine that share the device; 1 for a device that only this process uses.
    pub ranks: usize,
}

impl TileTraffic {
    /// The transfers since `earlier`.
    pub fn since(self, earlier: &TileTraffic) -> TileTraffic {
        TileTraffic {
            traffic: self.traffic.since(&earlier.traffic),
            baseline_bytes: self.baseline_bytes - earlier.baseline_bytes,
            products: self.products - earlier.products,
            cache: self.cache.since(&earlier.cache),
            ..self
        }
    }
}

/// Rows and columns of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileShape {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Whether the tile lies on the diagonal, so that only its lower triangle is used.
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

    /// Columns of a panel of rows, up to its last row if the tile lies on the diagonal.
    pub fn cols_of(&self, panel: usize) -> usize {
        if self.diagonal { self.cols.min((panel + 1) * PANEL_ROWS) } else { self.cols }
    }
}

/// Selects the entries of a tile that are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TilePart {
    /// All of them.
    Whole,
    /// The entries on and below the diagonal, of a tile whose rows and columns are the same.
    Lower,
    /// The entries below the diagonal.
    StrictlyLower,
}

/// The source of a tile's entries.
#[derive(Clone)]
pub struct TileSource<'a> {
    /// The matrix; nothing outside the selected part is read.
    pub matrix: MatrixView<'a>,
    /// The selected part; the rest of the tile becomes undefined and is not read.
    pub part: TilePart,
    /// Rows of the tile.
    pub rows: Range<usize>,
    /// Columns of the tile.
    pub cols: Range<usize>,
    /// Power of two for every row of the matrix.
    pub row_shifts: &'a [i64],
    /// Power of two for every column of the matrix.
    pub col_shifts: &'a [i64],
}

impl TileSource<'_> {
    /// Shape of the tile.
    pub fn shape(&self) -> TileShape {
        TileShape { rows: self.rows.len(), cols: self.cols.len(), diagonal: self.part != TilePart::Whole }
    }

    /// Distance of the part below the diagonal, or `None` for the whole tile.
    pub fn offset(&self) -> Option<usize> {
        match self.part {
            TilePart::Whole => None,
            TilePart::Lower => Some(0),
            TilePart::StrictlyLower => Some(1),
        }
    }
}

/// Eight entries of a tile: those of one panel in one column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PanelColumn {
    /// Panel of 8 rows within the tile.
    pub panel: usize,
    /// Column within the tile.
    pub col: usize,
}

/// The source of the integers of a finished tile, 8 at a time: the results of [`TileEngine::entries`], with the limbs
/// of the magnitudes. Calls come in any order; in a tile on the diagonal there are none for columns beyond the panel's
/// rows, and entries above the diagonal are undefined.
pub type EntrySource<'s> = dyn FnMut(PanelColumn, &mut [u64]) -> u8 + 's;

/// The integers of a finished tile, at most `limbs_for(working_bits + 2)` limbs each.
pub struct FinishedEntries<'s> {
    /// Limbs of each.
    pub limbs: usize,
    /// The source of the integers.
    pub source: &'s mut EntrySource<'s>,
}

impl FinishedEntries<'_> {
    /// Writes the 8 magnitudes of column `col` of panel `panel`; returns their sign bits.
    pub fn read(&mut self, panel: usize, col: usize, magnitudes: &mut [u64]) -> u8 {
        (self.source)(PanelColumn { panel, col }, magnitudes)
    }
}

/// Writes the integers of a finished tile into `slots` of a sign and limbs each: that of row `i` and column `j` goes to
/// slot `place(i, j)`. All else in `slots` becomes 0.
pub(crate) fn fill_slots(
    shape: TileShape,
    integers: &mut FinishedEntries<'_>,
    slots: &mut [u64],
    place: impl Fn(usize, usize) -> usize,
    scratch: &mut [u64],
) {
    slots.fill(0);
    let limbs = integers.limbs;
    let magnitudes = &mut scratch[..PANEL_ROWS * limbs];
    for panel in 0..shape.panels() {
        for col in 0..shape.cols_of(panel) {
            let signs = integers.read(panel, col, magnitudes);
            let rows = panel * PANEL_ROWS..((panel + 1) * PANEL_ROWS).min(shape.rows);
            for ((lane, row), magnitude) in rows.enumerate().zip(magnitudes.chunks_exact(limbs)) {
                let slot = &mut slots[place(row, col)..][..1 + limbs];
                slot[0] = u64::from(signs >> lane & 1);
                slot[1..].copy_from_slice(magnitude);
            }
        }
    }
}

/// A tile `C` to update, and the finished tiles in its row: `C := C - sum of X Y^T`.
pub struct UpdateTile<'a> {
    /// Shape of C.
    pub shape: TileShape,
    /// Words of C.
    pub words: &'a mut [u64],
    /// The operands X, one for each Y; for a tile on the diagonal the operands Y themselves.
    pub x: Vec<&'a [u64]>,
    /// The device for the updates of this tile, below [`TileDevices::device_count`]; it does not affect the bits.
    pub device: usize,
}

/// A pivot that is not positive, or whose row was rejected before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedPivot {
    /// Column within the tile.
    pub column: usize,
    /// The pivot, scaled by `2^(2 working_bits)`, if it was computed.
    pub value: Option<Integer>,
}

/// Data of a factored diagonal tile in addition to its words, for the tiles below it.
pub trait DiagonalData: Send + Sync {
    /// For the kernel that made it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A finished diagonal tile, in the form that the tiles below it use.
#[derive(Clone, Copy)]
pub struct DiagonalTile<'a> {
    /// Its words.
    pub words: &'a [u64],
    /// Operations that solves need in addition, by the same kernels.
    pub data: &'a dyn DiagonalData,
}

/// For a diagonal tile that needs no data in addition to its words.
pub(crate) struct NoData;

impl DiagonalData for NoData {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The storage format of tiles for one precision, and the workspace and tables of their kernels.
pub trait TileFormat: Send + Sync {
    /// Planes of a tile.
    fn primes(&self) -> usize;
    /// Words of a tile.
    fn tile_words(&self, shape: TileShape) -> usize;
    /// Words of a tile before its last task, POTRF or TRSM: the first of its words.
    fn update_words(&self, shape: TileShape) -> usize {
        self.tile_words(shape)
    }
    /// Words of a tile that is only an operand of updates.
    fn operand_words(&self, shape: TileShape) -> usize;
    /// Words of scratch that a call of the [`TileEngine`] needs for tiles of at most `tile_rows` rows and columns.
    fn scratch_words(&self, tile_rows: usize) -> usize;
    /// Bytes of the data that a factored diagonal tile of `cols` columns has in addition to its words.
    fn diagonal_bytes(&self, cols: usize) -> u64;
    /// Bytes of the engine's tables.
    fn table_bytes(&self) -> u64;
    /// The largest number of bytes that a call of the [`TileEngine`] allocates for itself; none by default.
    fn call_bytes(&self, _tile_rows: usize) -> u64 {
        0
    }
    /// Rows of a tile at which the kernels are fastest.
    fn preferred_rows(&self) -> usize;
    /// Limbs of an entry of the factor.
    fn entry_limbs(&self) -> usize;
    /// The form of entries that are to be rounded: limbs, or the digits in which they are held.
    fn entry_form(&self) -> EntryForm {
        EntryForm::Limbs(self.entry_limbs())
    }
    /// The name of the form of tiles, which no other form has. It must not change as long as tiles that these kernels
    /// wrote may be read.
    fn form(&self) -> &'static str;
    /// The layout of tiles, together with the name of the kernel and the number of words of tiles: another engine with
    /// the same layout, for the same bits, reads the tiles of this one.
    fn tile_layout(&self) -> TileLayout {
        let (form, entry_form) = (self.form(), self.entry_form());
        TileLayout { form, entry_form, entry_limbs: self.entry_limbs(), primes: self.primes() }
    }
}

/// Devices that compute for tile kernels, and the transfers to and from them; by default there are none.
pub trait TileDevices: Send + Sync {
    /// Gives memory back that is kept between calls of one operation: it has ended.
    fn end_operation(&self) {}
    /// Devices that work for the engine, or 1 where none does.
    fn device_count(&self) -> usize {
        1
    }
    /// The transfers of each device since the engine was made.
    fn traffic(&self) -> Vec<TileTraffic> {
        Vec::new()
    }
    /// Bytes that a finished tile of `tile_rows` rows takes on a device, where there are any.
    fn device_tile_bytes(&self, _device: usize, _tile_rows: usize) -> u64 {
        0
    }
}

/// Kernels for one fixed-point precision. `words` belong to a tile, in the kernel's own layout; all methods access only
/// their own slices, so that calls on different tiles may run at the same time.
pub trait TileEngine: TileFormat + TileDevices {
    /// Whether all updates of a tile should come in one call, since each call has costs of its own.
    fn updates_at_once(&self) -> bool {
        false
    }
    /// `T := round(a_ij 2^(row_shifts[i] + col_shifts[j]))`, to nearest, ties to even.
    ///
    /// At most `2^(2 working_bits + 2)` in magnitude. `words` is dirty before.
    fn load(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]);
    /// As [`TileEngine::load`], for a tile of at most `2^working_bits` that is an operand from now on.
    fn load_operand(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]);
    /// As [`TileEngine::load_operand`], from the integers of a finished tile for these bits.
    fn load_integers(&self, shape: TileShape, integers: FinishedEntries<'_>, words: &mut [u64], scratch: &mut [u64]);
    /// Makes a loaded operand on the diagonal one of these pivots, where a solve reads them from its words: none is 0,
    /// and none exceeds `2^working_bits`.
    fn set_pivots(&self, _shape: TileShape, _words: &mut [u64], _pivots: &[Integer]) {}
    /// The data that [`TileEngine::solve`] needs of an operand on the diagonal in addition to its words, after
    /// [`TileEngine::set_pivots`] with the same pivots: perhaps in another process, whose kernels are these.
    fn triangle(&self, shape: TileShape, words: &[u64], pivots: &[Integer]) -> Box<dyn DiagonalData>;
    /// The same for a tile that [`TileEngine::factor`] has finished, perhaps in another process whose kernels are
    /// these.
    fn factored(&self, shape: TileShape, words: &[u64]) -> Box<dyn DiagonalData>;
    /// `C := C - sum of X Y^T` for all of `tiles`, which have the same columns: over operands of `depth` columns with
    /// as many rows as C has rows and columns. Only the lower triangle for a diagonal tile (SYRK), else the whole tile
    /// (GEMM).
    ///
    /// # Errors
    /// The errors of a device, where a device does the work; none on a CPU. The place in [`crate::Error::SelfCheck`] is
    /// the place within the tile.
    fn update(
        &self,
        tiles: &mut [UpdateTile<'_>],
        y: &[&[u64]],
        depth: usize,
        scratch: &mut [u64],
    ) -> crate::Result<()>;
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
    /// [`TileEngine::factor`] of a matrix that is one tile: nothing is kept for tiles below.
    ///
    /// # Errors
    /// The first pivot that is not positive.
    fn factor_whole(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> Result<(), FailedPivot> {
        self.factor(shape, words, weights, scratch).map(drop)
    }
    /// TRSM: `T := T L^-T` for a tile below the factored diagonal tile `diagonal`, whose data `factor` gave.
    fn solve(&self, tile: SolveTile<'_>, diagonal: DiagonalTile<'_>, scratch: &mut [u64]);
    /// The 8 entries at `at` of a factored tile: limbs into `magnitudes`, `entry_limbs` each, and a sign bit each.
    /// Entries above the diagonal are undefined.
    fn entries(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8;
    /// [`TileEngine::entries`] in [`TileFormat::entry_form`].
    fn entries_in_form(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        self.entries(shape, words, at, magnitudes)
    }
}

/// The pivots of a factored tile on the diagonal.
pub(crate) fn pivots_of(engine: &dyn TileEngine, shape: TileShape, words: &[u64]) -> Vec<Integer> {
    let limbs = engine.entry_limbs();
    let mut magnitudes = vec![0; PANEL_ROWS * limbs];
    let pivot = |col: usize| {
        engine.entries(shape, words, PanelColumn { panel: col / PANEL_ROWS, col }, &mut magnitudes);
        Integer::from_digits(&magnitudes[col % PANEL_ROWS * limbs..][..limbs], Order::Lsf)
    };
    (0..shape.cols).map(pivot).collect()
}

/// The layout of the words of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileLayout {
    /// The form of this name.
    pub form: &'static str,
    /// The form in which entries are passed on.
    pub entry_form: EntryForm,
    /// Limbs of an entry.
    pub entry_limbs: usize,
    /// Primes of the residues.
    pub primes: usize,
}

/// Magnitudes of eight entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryForm {
    /// This number of limbs for each magnitude, one entry after the other.
    Limbs(usize),
    /// This number of digits of 52 bits for each magnitude: the lowest digits of all eight, then the next ones.
    Digits(usize),
}

impl EntryForm {
    /// Words of all eight magnitudes.
    pub fn words(self) -> usize {
        let (EntryForm::Limbs(count) | EntryForm::Digits(count)) = self;
        PANEL_ROWS * count
    }
}

/// Eight integers times powers of two.
#[derive(Clone, Copy)]
pub struct EightEntries<'a> {
    /// Their magnitudes, in the form that is rounded.
    pub magnitudes: &'a [u64],
    /// One bit for each negative integer.
    pub signs: u8,
    /// The powers.
    pub exponents: [i64; PANEL_ROWS],
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
