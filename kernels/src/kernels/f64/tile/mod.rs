//! Kernels on single tiles of doubles: the four tasks of a tiled Cholesky factorisation, on one thread.
//!
//! Tiles are column-major. Operands are packed into scratch memory of fixed size and multiplied in register tiles that
//! the best instructions of the CPU compute; solving and factoring use the same register tile. Sums may be rounded once
//! or twice per product and are added in their own order, so a result has no fixed bits across instruction sets;
//! on one of them it depends on only the operands and the shapes. Independent of: matrices, threads, ranks. Source:
//! Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Trans. Math. Softw. 34 (2008);
//! Gustavson, "Recursion leads to automatic variable blocking for dense linear-algebra algorithms", IBM J. Res. Dev. 41
//! (1997).
#![forbid(unsafe_code)]

mod factor;
mod micro;
mod pack;
mod product;
mod solve;
#[cfg(test)]
mod tests;

use super::simd::{F64Isa, LANES};
use factor::{LEAF_COLUMNS, Leaf};
use product::{COLS, DEPTH, Product, ROWS};
use solve::{PackTriangle, SOLVED_COLUMNS, Solve};
use std::ops::{Deref, DerefMut, Range};

/// A column-major matrix of doubles to read: entry `(i, j)` is word `i + j * stride`.
#[derive(Clone, Copy, Debug)]
pub struct Tile<'a> {
    words: &'a [f64],
    rows: usize,
    cols: usize,
    stride: usize,
}

/// A column-major matrix of doubles to change.
#[derive(Debug)]
pub struct TileMut<'a> {
    words: &'a mut [f64],
    rows: usize,
    cols: usize,
    stride: usize,
}

/// Whether all entries lie inside `words` words.
fn fits(words: usize, rows: usize, cols: usize, stride: usize) -> bool {
    rows <= stride.max(1) && (rows == 0 || cols == 0 || (cols - 1) * stride + rows <= words)
}

impl<'a> Tile<'a> {
    /// Columns `stride` words apart; `rows <= stride`, and all entries lie in `words` (asserted).
    pub fn new(words: &'a [f64], rows: usize, cols: usize, stride: usize) -> Tile<'a> {
        assert!(fits(words.len(), rows, cols, stride), "{rows} x {cols} with stride {stride} in {}", words.len());
        Tile { words, rows, cols, stride }
    }

    /// Rows `range` of it.
    fn of_rows(self, range: Range<usize>) -> Tile<'a> {
        Tile { words: &self.words[range.start.min(self.words.len())..], rows: range.len(), ..self }
    }

    /// The words of columns `range` where they have no gaps; else none.
    fn contiguous(self, range: Range<usize>) -> &'a [f64] {
        let words = range.start * self.stride..range.end * self.stride;
        if self.rows == self.stride { &self.words[words] } else { &[] }
    }
}

impl<'a> TileMut<'a> {
    /// Columns `stride` words apart; `rows <= stride`, and all entries lie in `words` (asserted).
    pub fn new(words: &'a mut [f64], rows: usize, cols: usize, stride: usize) -> TileMut<'a> {
        assert!(fits(words.len(), rows, cols, stride), "{rows} x {cols} with stride {stride} in {}", words.len());
        TileMut { words, rows, cols, stride }
    }

    fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }
}

/// A pivot that is not positive and finite: its index in the tile, and its value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BadPivot {
    /// Row and column of the pivot.
    pub index: usize,
    /// The pivot, which should have been positive; NaN if an entry was NaN.
    pub pivot: f64,
}

/// A multiple of all widths of packed strips on the left, with room for a triangle's rest.
const LEFT_WORDS: usize = ROWS * DEPTH;

/// As on the left; a triangle of [`SOLVED_COLUMNS`] takes less.
const RIGHT_WORDS: usize = COLS * DEPTH;

const _: () = assert!((SOLVED_COLUMNS + 8) * (SOLVED_COLUMNS + 8) <= RIGHT_WORDS);
const _: () = assert!((SOLVED_COLUMNS + 8) * 24 <= LEFT_WORDS);

/// Words on a cache line's boundary, so that no vector of a packed operand crosses one.
struct Aligned {
    words: Vec<f64>,
    start: usize,
}

impl Aligned {
    fn new(len: usize) -> Aligned {
        let words = vec![0.0; len + LANES];
        let start = (LANES - words.as_ptr() as usize / size_of::<f64>() % LANES) % LANES;
        Aligned { words, start }
    }
}

impl Deref for Aligned {
    type Target = [f64];

    #[inline(always)]
    fn deref(&self) -> &[f64] {
        &self.words[self.start..]
    }
}

impl DerefMut for Aligned {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.words[self.start..]
    }
}

/// Packed operands.
struct PackScratch {
    left: Aligned,
    right: Aligned,
}

/// The kernels with the scratch memory of one thread.
pub struct TileKernels {
    isa: F64Isa,
    scratch: PackScratch,
}

impl Default for TileKernels {
    fn default() -> TileKernels {
        TileKernels::new()
    }
}

impl TileKernels {
    /// Bytes of such a value.
    pub const BYTES: u64 = ((LEFT_WORDS + RIGHT_WORDS + 2 * LANES) * size_of::<f64>()) as u64;

    /// The kernels on the best instructions of this CPU.
    pub fn new() -> TileKernels {
        TileKernels::on(F64Isa::detect())
    }

    /// The name of the best instructions of this CPU, which [`TileKernels::new`] uses.
    pub fn instructions() -> &'static str {
        F64Isa::detect().name()
    }

    /// The kernels on the given instructions.
    pub fn on(isa: F64Isa) -> TileKernels {
        let scratch = PackScratch { left: Aligned::new(LEFT_WORDS), right: Aligned::new(RIGHT_WORDS) };
        TileKernels { isa, scratch }
    }

    /// GEMM: `C := C - X Y^T`. `C` is `x.rows x y.rows`, and both operands have the same number of columns (asserted).
    pub fn gemm_nt(&mut self, x: Tile<'_>, y: Tile<'_>, c: TileMut<'_>) {
        self.gemms_nt(&[(x, y)], c);
    }

    /// As [`TileKernels::gemm_nt`] for several pairs of operands, one after the other; the next pair is prefetched.
    pub fn gemms_nt(&mut self, pairs: &[(Tile<'_>, Tile<'_>)], c: TileMut<'_>) {
        let fits = |(x, y): &(Tile<'_>, Tile<'_>)| (x.rows, y.rows) == (c.rows, c.cols) && x.cols == y.cols;
        assert!(pairs.iter().all(fits), "shapes of a product");
        self.isa.run(Product { pairs, c, lower: false, scratch: &mut self.scratch });
    }

    /// SYRK: `C := C - X Y^T` on and below the diagonal of `C`, where `Y` is the first `c.cols` rows of `X`; the rest
    /// of `C` is neither read nor written. `C` has the rows of `X`, and no more columns than rows (asserted).
    pub fn syrk(&mut self, x: Tile<'_>, c: TileMut<'_>) {
        self.syrks(&[x], c);
    }

    /// As [`TileKernels::syrk`] for several operands, one after the other; the next one is prefetched.
    pub fn syrks(&mut self, operands: &[Tile<'_>], c: TileMut<'_>) {
        let fits = |x: &Tile<'_>| x.rows == c.rows && c.cols <= c.rows;
        assert!(operands.iter().all(fits), "shapes of a symmetric product");
        let pairs = operands.iter().map(|&x| (x, x.of_rows(0..c.cols))).collect::<Vec<_>>();
        self.isa.run(Product { pairs: &pairs, c, lower: true, scratch: &mut self.scratch });
    }

    /// TRSM: `B := B L^-T` for a lower triangular `L`, whose entries above the diagonal are ignored.
    ///
    /// `L` is square, and `B` has as many columns (asserted). Zeros on the diagonal give infinities and NaN.
    pub fn trsm(&mut self, l: Tile<'_>, b: TileMut<'_>) {
        assert!(l.rows == l.cols && b.cols == l.cols, "shapes of a triangular solve");
        if b.is_empty() {
            return;
        }
        let (stride, rows) = (b.stride, b.rows);
        let below = |cols: Range<usize>| l.of_rows(cols);
        for first in (0..l.cols).step_by(SOLVED_COLUMNS) {
            let width = SOLVED_COLUMNS.min(l.cols - first);
            let (solved, next) = b.words.split_at_mut(first * stride);
            if first > 0 {
                let x = Tile::new(solved, rows, first, stride);
                let y = Tile { cols: first, ..below(first..first + width) };
                self.gemm_nt(x, y, TileMut::new(next, rows, width, stride));
            }
            let triangle = Tile::new(&l.words[first * l.stride + first..], width, width, l.stride);
            let packed = self.pack(triangle);
            self.isa.run(Solve { triangle: packed, b: next, rows, stride, scratch: &mut self.scratch });
        }
    }

    /// POTRF: `A = L L^T` in place of the lower triangle of a square tile (asserted); the entries above the diagonal
    /// are neither read nor written.
    ///
    /// # Errors
    /// The first pivot that is not positive and finite; the contents of the tile are then undefined.
    pub fn potrf(&mut self, a: TileMut<'_>) -> Result<(), BadPivot> {
        assert!(a.rows == a.cols, "shape of a triangle");
        self.factor_columns(a)
    }

    /// The first `a.cols` columns of a Cholesky factor of `a.rows` rows, in place; at most as many (asserted).
    ///
    /// # Errors
    /// As [`TileKernels::potrf`].
    pub fn factor_columns(&mut self, a: TileMut<'_>) -> Result<(), BadPivot> {
        let TileMut { words, rows, cols, stride } = a;
        assert!(cols <= rows, "shape of columns");
        if cols <= LEAF_COLUMNS {
            return self.leaf(TileMut { words, rows, cols, stride });
        }
        let half = (cols / 2).next_multiple_of(LEAF_COLUMNS).min(cols - 1);
        self.factor_columns(TileMut { words: &mut *words, rows, cols: half, stride })?;
        let (done, rest) = words.split_at_mut(half * stride);
        let x = Tile { words: &done[half..], rows: rows - half, cols: half, stride };
        self.syrk(x, TileMut { words: &mut rest[half..], rows: rows - half, cols: cols - half, stride });
        let right = TileMut { words: &mut rest[half..], rows: rows - half, cols: cols - half, stride };
        self.factor_columns(right).map_err(|bad| BadPivot { index: half + bad.index, ..bad })
    }

    /// A few columns: the diagonal block by itself, then all rows below it.
    fn leaf(&mut self, a: TileMut<'_>) -> Result<(), BadPivot> {
        let TileMut { words, rows, cols, stride } = a;
        let mut bad = None;
        self.isa.run(Leaf { a: words, order: cols, stride, bad: &mut bad });
        bad.map_or(Ok(()), Err)?;
        if rows == cols || cols == 0 {
            return Ok(());
        }
        let triangle = self.pack(Tile { words, rows: cols, cols, stride });
        let b = &mut words[cols..];
        self.isa.run(Solve { triangle, b, rows: rows - cols, stride, scratch: &mut self.scratch });
        Ok(())
    }

    /// Packs a triangle for [`Solve`].
    fn pack(&mut self, l: Tile<'_>) -> solve::Triangle {
        let pack = PackTriangle { l, scratch: &mut self.scratch };
        let triangle = pack.triangle();
        self.isa.run(pack);
        triangle
    }
}
