//! Plane kernels: residues in, exact products modulo each prime, integers out; one trait, one table.
//!
//! Depends on: `math`, `device`, `matrix` views as input, `plan::BlockGrid` as the output layout. Independent of:
//! threads, files, memory limits, operations. To add a kernel: a folder with its `PlaneKernel`, and a row in [`TABLE`].
//!
//! Layouts that all kernels share, so that all code above them is written once:
//! - an operand plane is a row of *panels* of 8 columns, `panel_words(rows)` words each; the order inside a panel is
//!   defined by the kernel (`to_residues` writes it, `multiply` reads it);
//! - a product plane is the block list of [`BlockGrid`], `block_words()` words a block, whose residues have the
//!   kernel's own form (`multiply` writes it, `reconstruct` reads it).

pub(crate) mod area;
pub mod blas;
mod costs;
pub mod device;
pub mod digit_lanes;
pub mod digit_sums;
pub mod dots;
pub mod entries;
pub mod f64;
#[cfg(test)]
mod fenced;
pub mod form;
pub mod i16;
pub mod i8;
pub mod integer_tiles;
#[cfg(any(target_arch = "x86_64", test))]
mod inverse_roots;
mod large;
pub mod limbs;
pub mod max_plus;
#[cfg(test)]
mod on_model;
mod pivot_cells;
pub mod pivot_lanes;
pub mod plane_tiles;
pub mod problem_lanes;
pub mod problems;
pub(crate) mod radix;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod rate;
pub mod reference;
pub mod rounding;
pub mod row_lanes;
mod rows;
pub(crate) mod scaled;
#[cfg(test)]
mod test_integers;
pub mod tiles;
#[cfg(target_arch = "x86_64")]
pub mod x86_64;

pub use costs::{ConversionCosts, FactorCosts, Multipliers};
pub use large::{for_large_products, multipliers, preferred_for_large_factors, preferred_for_large_solves};

use crate::error::{Error, Result};
use crate::math::bound::cholesky_modulus_bits;
use crate::matrix::MatrixView;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
pub use rows::{DIGIT_COLUMNS, DigitConversions, NextRows, PanelRows, RowsProduct};
use rug::Integer;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tiles::TileEngine;

/// The requirements for an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct EngineSpec {
    /// Scaled operand entries satisfy `|x| <= 2^operand_bits (1 + 2^-24)`: the weights of finished rows are rounded.
    pub operand_bits: u32,
    /// The moduli's product must exceed `2^modulus_bits`.
    pub modulus_bits: u32,
    /// Whether one more prime is held for the range check.
    pub redundant: bool,
}

/// The choice of a kernel: its instructions, their measured speed, and where it is faster than other kernels.
pub trait KernelSelection: Send + Sync {
    /// The instructions that the kernel has chosen on this CPU, where it has a choice.
    fn instructions(&self) -> Option<&'static str> {
        None
    }
    /// Where it has measured which of several sets of instructions is the fastest, the seconds of a small product with
    /// its conversions on each, the first one that which it takes unless another is a tenth faster.
    fn instruction_seconds(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    /// Measures which of several sets of instructions is the fastest, where that many multiplications for each thread,
    /// with moduli of that many bits, are worth it. Takes memory of its own, so it is called before an operation takes
    /// its planned memory.
    fn settle_instructions(&self, _multiplications: f64, _modulus_bits: u32) {}
    /// Multiply-adds of residues that the calling thread could issue in a second if nothing else were in the way; the
    /// best of `trials` runs of some milliseconds. `None` where that is not measured.
    ///
    /// Over the number of planes, the least time of a classical product: the limit that benchmarks quote.
    fn issue_rate(&self, _trials: usize) -> Option<f64> {
        None
    }
    /// Whether this CPU runs it faster than the kernels before it in [`TABLE`].
    fn is_preferred(&self) -> bool {
        false
    }
    /// The cost of its conversions beyond those of the preferred kernel, where a processor with these multipliers
    /// multiplies planes so much faster with it that large products gain.
    fn large_products_with(&self, _multipliers: &Multipliers) -> Option<ConversionCosts> {
        None
    }
    /// The same on this CPU.
    fn large_products(&self) -> Option<ConversionCosts> {
        self.large_products_with(&multipliers())
    }
    /// The cost of its tiles beyond those of the preferred kernel, where this CPU multiplies planes so much faster with
    /// it that large factorisations gain.
    fn large_factors(&self) -> Option<FactorCosts> {
        None
    }
    /// The same for triangular solves with many right-hand sides.
    fn large_solves(&self) -> Option<FactorCosts> {
        None
    }
}

/// Kernels for triangles of few rows, and the number of rows up to which these are faster than the kernel's other
/// tiles.
pub trait SmallTriangles: Send + Sync {
    /// Rows up to which a factorisation on limbs, one entry after the other, is faster than any tiles of this kernel,
    /// as far as that is not the same for all.
    fn most_rows_on_limbs(&self, _working_bits: u32) -> usize {
        usize::MAX
    }
    /// Rows of a triangle up to which [`SmallTriangles::small_tile_engine`] is faster than
    /// [`PlaneKernel::tile_engine`].
    fn most_rows_in_small_tiles(&self, _working_bits: u32) -> usize {
        integer_tiles::MOST_ROWS
    }
    /// The same where the triangle is a factor that is made in one tile on the calling thread.
    fn most_rows_in_one_tile(&self, working_bits: u32) -> usize {
        self.most_rows_in_small_tiles(working_bits)
    }
    /// Tile kernels for triangles of few rows: the same bits, no tables.
    fn small_tile_engine(&self, working_bits: u32) -> Arc<dyn TileEngine> {
        Arc::new(integer_tiles::IntegerTiles::new(working_bits))
    }
}

/// A method of multiplying residue planes: its modulus family and its instructions.
pub trait PlaneKernel: KernelSelection + SmallTriangles {
    /// Name on the command line and in reports.
    fn name(&self) -> &'static str;
    /// Name of the modulus family: `ifma52`, `f64`, `i16` or `i8`.
    fn family(&self) -> &'static str;
    /// Largest `modulus_bits` the family's primes reach, the redundant one included.
    fn maximum_modulus_bits(&self) -> u32;
    /// Number of planes an engine of this spec would hold, without making it; the spec is in range (asserted).
    fn plane_count(&self, spec: &EngineSpec) -> usize;
    /// A representative of all specs that have the same engine.
    fn class(&self, spec: EngineSpec) -> EngineSpec {
        spec
    }
    /// Moduli and conversion tables for `spec`.
    ///
    /// # Errors
    /// [`Error::Precision`] where the family has too few primes.
    fn prepare(&self, spec: &EngineSpec) -> Result<Arc<dyn PlaneEngine>>;
    /// The same for tiles, which one program writes and reads: the order in a panel may be one that
    /// [`PlaneEngine::multiply_rows`] reads as it lies, where parts of a panel begin at multiples of [`BLOCK`] rows.
    ///
    /// # Errors
    /// As [`PlaneKernel::prepare`].
    fn prepare_tiles(&self, spec: &EngineSpec) -> Result<Arc<dyn PlaneEngine>> {
        self.prepare(spec)
    }
    /// Exact sums of products with one vector; see [`dots::by_limbs`].
    fn dots(&self, sources: &[dots::DotSource<'_>], vector: &dots::FixedVector, sums: &mut [Integer; BLOCK]) {
        dots::in_vectors(sources, vector, sums);
    }
    /// The largest number of bytes that [`PlaneKernel::dots`] allocates for itself, for a vector of `digits` digits.
    fn dots_bytes(&self, digits: usize) -> u64 {
        dots::vector_bytes(digits)
    }
    /// Tile kernels for factorisations of `working_bits`: general ones over the plane kernel, unless it has its own.
    ///
    /// # Errors
    /// [`Error::Precision`] where the family has too few primes.
    fn tile_engine(&self, working_bits: u32) -> Result<Arc<dyn TileEngine>> {
        let modulus_bits = cholesky_modulus_bits(working_bits);
        let engine = self.prepare_tiles(&EngineSpec { operand_bits: working_bits, modulus_bits, redundant: false })?;
        Ok(plane_tiles::over(engine, working_bits))
    }
}

/// The moduli of an engine, the storage format of its planes, and the workspace and tables that it needs.
pub trait PlaneFormat: Send + Sync {
    /// The moduli in plane order, a redundant one last.
    fn moduli(&self) -> &[u64];
    /// Limbs of a reconstructed magnitude.
    fn magnitude_limbs(&self) -> usize;
    /// Words of one operand panel of `rows` rows.
    fn panel_words(&self, rows: usize) -> usize;
    /// Words of one block of a product plane: one for each entry by default.
    fn block_words(&self) -> usize {
        BLOCK_WORDS
    }
    /// Words of a product plane on `grid`.
    fn plane_words(&self, grid: &BlockGrid) -> usize {
        grid.len() * self.block_words()
    }
    /// The layout of residues in a word of a product plane.
    fn residue_lanes(&self) -> ResidueLanes {
        ResidueLanes::Words
    }
    /// Words of scratch that any call of the [`PlaneEngine`] may need, for products of up to `rows` rows on `grid`.
    fn scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize;
    /// The same where every call of [`PlaneEngine::multiply`] is for a part of `grid` only.
    fn part_scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize {
        self.scratch_words(rows, grid)
    }
    /// Words of scratch for [`PlaneEngine::multiply_rows`] with up to `rows` rows of each operand, and for all calls
    /// that [`PlaneFormat::scratch_words`] names.
    fn rows_scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize {
        rows::gathered_scratch_words(self, rows, grid)
    }
    /// Bytes of the engine's own tables.
    fn table_bytes(&self) -> u64;
    /// The largest number of bytes that a call of the [`PlaneEngine`] allocates for itself, such as a library's packing
    /// buffers; none by default.
    fn call_bytes(&self, _rows: usize, _grid: &BlockGrid) -> u64 {
        0
    }
    /// Which words of a panel of `rows` rows its rows `part` take: where the rows of a panel are written by several
    /// hands.
    fn row_runs(&self, _rows: usize, part: Range<usize>) -> RowRuns {
        RowRuns { first: part.start * BLOCK, words: part.len() * BLOCK, count: 1, stride: 0 }
    }
}

/// A kernel with its moduli and tables: the three steps of a product.
///
/// All methods access only their own slices, so that calls on disjoint slices may run at the same time.
pub trait PlaneEngine: PlaneFormat {
    /// Writes one panel of scaled residues: for each prime in `primes`, `planes[prime - primes.start]` takes the
    /// panel's `panel_words(source.rows.len())` words. Columns beyond `source.columns` are zero. Scratch is dirty.
    ///
    /// Where the source's rows are only a part of a panel, `planes` holds the part's runs instead ([`RowRuns`]), those
    /// of the first prime first.
    fn to_residues(
        &self,
        primes: Range<usize>,
        source: &PanelSource<'_>,
        planes: &mut [&mut [u64]],
        scratch: &mut [u64],
    );
    /// `C := X^T Y` or `C := C + X^T Y` modulo prime number `prime`, on the blocks `product.blocks`.
    fn multiply(&self, prime: usize, product: &PlaneProduct<'_>, c: &mut [u64], scratch: &mut [u64]);
    /// `C := sum of X^T Y` or `C := C + sum of X^T Y` modulo prime number `prime`, over some rows of several operands.
    ///
    /// By default each of them as panels of its own, for which there is [`PlaneFormat::rows_scratch_words`].
    fn multiply_rows(&self, prime: usize, product: &RowsProduct<'_>, c: &mut [u64], scratch: &mut [u64]) {
        rows::multiply_gathered(self, prime, product, c, scratch);
    }
    /// Whether [`PlaneEngine::multiply_rows`] reads rows where they lie and copies nothing.
    fn reads_rows_in_place(&self) -> bool {
        false
    }
    /// Conversions of integers that lie in lanes as digits of 52 bits, where the engine has them.
    fn digit_conversions(&self) -> Option<&dyn DigitConversions> {
        None
    }
    /// `sum := sum + words` modulo prime number `prime`, for words of a product plane.
    fn add(&self, prime: usize, sum: &mut [u64], words: &[u64]) {
        let prime = self.moduli()[prime];
        for (sum, &word) in sum.iter_mut().zip(words) {
            // Both lie below 2^52, so neither the sum nor its excess over the prime wraps; the lesser is the residue.
            let whole = sum.wrapping_add(word);
            *sum = whole.min(whole.wrapping_sub(prime));
        }
    }
    /// The 64 signed integers of one block from their residues modulo all primes.
    fn reconstruct(&self, residues: &BlockResidues<'_>, integers: &mut IntegerBlock, scratch: &mut [u64]);
}

/// The form of the residues in a word of a product plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResidueLanes {
    /// One least residue.
    Words,
    /// Two least residues of 32 bits.
    Pairs,
    /// Four least residues of 16 bits.
    Halves,
    /// Four balanced residues of 16 bits, in two's complement.
    BalancedHalves,
    /// One balanced residue, a double.
    Doubles,
}

impl ResidueLanes {
    /// Number of residues in a word.
    pub fn count(self) -> usize {
        64 / self.bits() as usize
    }

    /// Bits of a residue in a word.
    pub fn bits(self) -> u32 {
        match self {
            ResidueLanes::Words | ResidueLanes::Doubles => 64,
            ResidueLanes::Pairs => 32,
            ResidueLanes::Halves | ResidueLanes::BalancedHalves => 16,
        }
    }

    /// The least residue modulo `modulus` of the number in a lane, whose magnitude is below the modulus.
    pub fn least(self, lane: u64, modulus: u64) -> u64 {
        let of_signed = |value: i64| if value < 0 { value.cast_unsigned().wrapping_add(modulus) } else { value as u64 };
        match self {
            ResidueLanes::Words | ResidueLanes::Pairs | ResidueLanes::Halves => lane,
            ResidueLanes::BalancedHalves => of_signed((lane as u16).cast_signed().into()),
            ResidueLanes::Doubles => of_signed(f64::from_bits(lane) as i64),
        }
    }

    /// The number in a lane that represents a least residue.
    pub fn lane(self, least: u64, modulus: u64) -> u64 {
        let balanced = || if least > modulus / 2 { least as i64 - modulus as i64 } else { least as i64 };
        match self {
            ResidueLanes::Words | ResidueLanes::Pairs | ResidueLanes::Halves => least,
            ResidueLanes::BalancedHalves => (balanced() as u16).into(),
            ResidueLanes::Doubles => (balanced() as f64).to_bits(),
        }
    }
}

/// Up to 8 columns of a matrix, which are scaled by powers of two and rounded to integers.
///
/// Entry `(k, j)` represents the integer `round(a_kj * 2^shifts[j])`, to nearest, ties to even, whose magnitude is at
/// most `2^operand_bits (1 + 2^-24)` for the engine's spec. Significands may have leading zeros.
#[derive(Clone)]
pub struct PanelSource<'a> {
    /// The matrix; `columns` and `rows` index it.
    pub view: MatrixView<'a>,
    /// One to eight columns.
    pub columns: Range<usize>,
    /// The rows of this chunk.
    pub rows: Range<usize>,
    /// Scale shift of every column of the view (indexed like the view).
    pub shifts: &'a [i64],
}

/// Windows larger than this bypass the caches: they would be evicted before the products read them.
const STREAM_BYTES: usize = 24 << 20;

impl PanelSource<'_> {
    /// Whether residues of 16 bits modulo `planes` primes bypass the caches.
    fn streams_halves(&self, planes: usize) -> bool {
        self.halves_bytes(planes) > STREAM_BYTES
    }

    /// Bytes of residues of 16 bits modulo `planes` primes, of all columns.
    fn halves_bytes(&self, planes: usize) -> usize {
        2 * planes * self.rows.len() * self.view.cols()
    }
}

/// Words of a panel for some of its rows: `count` runs of `words` words each, `stride` apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowRuns {
    /// First word of the first run.
    pub first: usize,
    /// Words of a run.
    pub words: usize,
    /// Number of runs.
    pub count: usize,
    /// Words from the start of one run to the start of the next.
    pub stride: usize,
}

/// Operands and extent of one plane product.
#[derive(Clone)]
pub struct PlaneProduct<'a> {
    /// Panels for the rows of C: block row `I` contracts panel `I`.
    pub x: &'a [u64],
    /// Panels for the columns of C; the same slice as `x` for a triangle.
    pub y: &'a [u64],
    /// Rows of both operands in this chunk.
    pub rows: usize,
    /// Shape of the whole plane.
    pub grid: BlockGrid,
    /// The linear indices of the blocks in `c`, which begins with block `blocks.start`.
    pub blocks: Range<usize>,
    /// Whether to add to the contents of `c` (a further chunk) or to overwrite them (uninitialised memory).
    pub accumulate: bool,
}

/// The place of the residues of one block: those of prime `i` begin at `window[i * plane_words + offset]`.
#[derive(Clone, Copy)]
pub struct BlockResidues<'a> {
    /// The product window, prime-major.
    pub window: &'a [u64],
    /// Words of one product plane.
    pub plane_words: usize,
    /// First word of the block within a plane.
    pub offset: usize,
}

impl<'a> BlockResidues<'a> {
    /// The residues of prime number `prime`, one in each word.
    #[inline]
    pub fn of_prime(&self, prime: usize) -> &'a [u64] {
        self.words_of_prime(prime, BLOCK_WORDS)
    }

    /// The residues of prime number `prime`, in `words` words.
    #[inline]
    pub fn words_of_prime(&self, prime: usize, words: usize) -> &'a [u64] {
        &self.window[prime * self.plane_words + self.offset..][..words]
    }
}

/// Sixty-four signed integers of equal width: entry `(r, c)` of a block has number `8 c + r`.
pub struct IntegerBlock {
    /// Limbs of each magnitude.
    pub limbs: usize,
    /// Whether the integer is negative.
    pub negative: [bool; BLOCK_WORDS],
    /// Magnitudes, little-endian, `limbs` each.
    pub magnitudes: Vec<u64>,
}

impl IntegerBlock {
    /// A block of zeros.
    pub fn new(limbs: usize) -> IntegerBlock {
        IntegerBlock { limbs, negative: [false; BLOCK_WORDS], magnitudes: vec![0; BLOCK_WORDS * limbs] }
    }

    /// Magnitude of entry number `entry`.
    #[inline]
    pub fn magnitude(&self, entry: usize) -> &[u64] {
        &self.magnitudes[entry * self.limbs..][..self.limbs]
    }
}

/// The result of creating one kernel of the table: the kernel, or the name of the feature that this CPU or build lacks.
pub type Probe = fn() -> std::result::Result<&'static dyn PlaneKernel, &'static str>;

/// All kernels, in order of preference, unless a kernel has another preference on this CPU; `reference` is always
/// included.
pub const TABLE: &[(&str, Probe)] = &[
    #[cfg(target_arch = "x86_64")]
    ("ifma52", x86_64::ifma52::probe),
    ("blas", blas::probe),
    ("f64", f64::probe),
    ("i16", i16::probe),
    ("i8", i8::probe),
    (reference::NAME, reference::probe),
];

/// The kernel called `name`.
///
/// # Errors
/// [`Error::UnknownKernel`] with the known names; [`Error::KernelUnavailable`] with the missing feature.
pub fn by_name(name: &str) -> Result<&'static dyn PlaneKernel> {
    let Some(&(name, probe)) = TABLE.iter().find(|(known, _)| *known == name) else {
        let known = TABLE.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        return Err(Error::UnknownKernel { name: name.to_string(), known: format!("auto, {known}") });
    };
    probe().map_err(|reason| Error::KernelUnavailable { name, reason })
}

/// The preferred kernel among those that can run here.
pub fn preferred() -> &'static dyn PlaneKernel {
    let kernels = || TABLE.iter().filter_map(|(_, probe)| probe().ok());
    let asks = kernels().find(|kernel| kernel.is_preferred());
    asks.or_else(|| kernels().next()).expect("the reference kernel needs nothing")
}

/// The largest modulus product of [`preferred`] and its fallback kernels, in bits.
pub fn largest_modulus_bits() -> u32 {
    static BITS: OnceLock<u32> = OnceLock::new();
    *BITS.get_or_init(|| {
        let kernels = std::iter::once(preferred()).chain(beyond_preferred());
        kernels.map(|kernel| kernel.maximum_modulus_bits()).max().unwrap_or(0)
    })
}

/// The fallback kernels for moduli beyond those of [`preferred`], in the order in which they are tried. `reference` is
/// not among them: it is too slow to be used without a request.
pub fn beyond_preferred() -> impl Iterator<Item = &'static dyn PlaneKernel> {
    let reach = preferred().maximum_modulus_bits();
    let kernels = TABLE.iter().filter(|(name, _)| *name != reference::NAME).filter_map(|(_, probe)| probe().ok());
    kernels.filter(move |kernel| kernel.maximum_modulus_bits() > reach)
}

/// The preferred kernel among those that can run here and whose modulus product can exceed `2^modulus_bits`:
/// [`preferred`], unless its primes do not suffice. If no kernel suffices, it is [`preferred`], which then returns an
/// error.
pub fn preferred_for(modulus_bits: u32) -> &'static dyn PlaneKernel {
    let reaches = |kernel: &dyn PlaneKernel| modulus_bits <= kernel.maximum_modulus_bits();
    let own = preferred();
    if reaches(own) { own } else { beyond_preferred().find(|&kernel| reaches(kernel)).unwrap_or(own) }
}

/// Every kernel that can run here, the preferred first.
pub fn available() -> Vec<&'static dyn PlaneKernel> {
    let others = TABLE.iter().filter(|(name, _)| *name != preferred().name());
    std::iter::once(preferred()).chain(others.filter_map(|(_, probe)| probe().ok())).collect()
}

/// IFMA instructions per second that the calling thread can issue, measured now; `None` if the CPU has none.
///
/// One big-float multiply-add costs `primes * 2 / 8` of them: the limit that benchmarks quote.
pub fn instruction_rate(trials: usize) -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    return x86_64::cpu::ifma_rate(trials);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = trials;
        None
    }
}
