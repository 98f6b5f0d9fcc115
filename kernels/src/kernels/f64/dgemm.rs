//! The product in doubles on which the `f64` family is based: one small trait, and its implementation in pure Rust.
//!
//! Promise: shapes are checked here, so that no caller needs `unsafe`; the entries may be summed in any order, since
//! the family's moduli make the sums exact. Independent of: moduli, blocks.

use crate::device::dgemm::function;
use crate::math::processor::dgemm_crate_runs;

/// Columns of a column-major matrix of doubles, `stride` words apart.
#[derive(Clone, Copy)]
pub struct DoubleColumns<'a> {
    words: &'a [f64],
    rows: usize,
    count: usize,
    stride: usize,
}

impl<'a> DoubleColumns<'a> {
    /// `count` columns of `rows` words each; column `j` starts at word `j * stride`.
    ///
    /// At least one row and one column, `rows <= stride`, and the last column ends inside `words` (all asserted).
    pub fn new(words: &'a [f64], rows: usize, count: usize, stride: usize) -> DoubleColumns<'a> {
        assert!(rows >= 1 && count >= 1 && rows <= stride, "{rows} x {count} columns with stride {stride}");
        assert!((count - 1) * stride + rows <= words.len(), "columns leave their {} words", words.len());
        DoubleColumns { words, rows, count, stride }
    }

    /// The words, beginning with the first column.
    pub fn words(&self) -> &'a [f64] {
        self.words
    }

    /// Words of a column.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Distance of the columns in words.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

/// The sizes at which an implementation is fast, in blocks of 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DgemmShape {
    /// Largest number of block rows of one call.
    pub rows: usize,
    /// Largest number of block columns of one call.
    pub cols: usize,
    /// Largest number of block columns of one call on the diagonal.
    pub diagonal: usize,
}

/// An implementation of the product of matrices of doubles on one thread.
pub trait Dgemm: Send + Sync + 'static {
    /// The sizes at which it is fast.
    fn tile(&self) -> DgemmShape;

    /// The largest number of bytes that a call allocates for itself, for operands of up to `_rows` rows, and `_left`
    /// and `_right` columns.
    fn call_bytes(&self, _rows: usize, _left: usize, _right: usize) -> u64 {
        0
    }

    /// `out := X^T Y`, column-major, `x.count()` rows without gaps. Reads nothing of `out`. Equal rows (asserted).
    fn product(&self, x: DoubleColumns<'_>, y: DoubleColumns<'_>, out: &mut [f64]);

    /// The lower triangle of `out := X^T X`; the entries above the diagonal are unspecified afterwards.
    fn gram(&self, x: DoubleColumns<'_>, out: &mut [f64]) {
        self.product(x, x, out);
    }
}

/// The pure-Rust crate `gemm`, which selects its instructions at run time.
#[derive(Clone, Copy, Debug, Default)]
pub struct GemmCrate;

/// Rows that one call of the crate takes: it packs them all at once, so that this also limits the memory it allocates.
const DEPTH: usize = 512;

/// Columns that the crate packs together: a multiple of all its register tiles.
const PACKED_COLUMNS: usize = 24;

impl Dgemm for GemmCrate {
    fn tile(&self) -> DgemmShape {
        // Multiples of 3 blocks: its register tile is 24 rows high with AVX-512. A diagonal tile is computed in full,
        // so it is small.
        DgemmShape { rows: 12, cols: 36, diagonal: 6 }
    }

    fn product(&self, x: DoubleColumns<'_>, y: DoubleColumns<'_>, out: &mut [f64]) {
        if !dgemm_crate_runs() {
            return Loops.product(x, y, out);
        }
        assert_eq!(x.rows(), y.rows(), "columns of different lengths");
        let out = &mut out[..x.count() * y.count()];
        let depth = x.rows().div_ceil(x.rows().div_ceil(DEPTH));
        for first in (0..x.rows()).step_by(depth) {
            // SAFETY: `DoubleColumns` keeps every element `(k, j)`, `k < rows`, `j < count`, at `k + j * stride` inside
            // its slice; here `k` runs from `first` to at most `rows`. `out` holds `x.count() * y.count()` words and is
            // borrowed mutably, so it overlaps neither operand. Its old contents are read only where `first > 0`.
            unsafe {
                function()(
                    x.count(),
                    y.count(),
                    depth.min(x.rows() - first),
                    out.as_mut_ptr(),
                    x.count() as isize,
                    1,
                    first > 0,
                    x.words()[first..].as_ptr(),
                    1,
                    x.stride() as isize,
                    y.words()[first..].as_ptr(),
                    y.stride() as isize,
                    1,
                    1.0,
                    1.0,
                    false,
                    false,
                    false,
                    gemm_common::Parallelism::None,
                );
            }
        }
    }

    fn call_bytes(&self, rows: usize, left: usize, right: usize) -> u64 {
        // It packs the left operand and, on aarch64 only, the right one; alignment and bookkeeping take below 1 KiB.
        let right = if cfg!(target_arch = "aarch64") { right.next_multiple_of(PACKED_COLUMNS) } else { 0 };
        (rows.min(DEPTH) * (left.next_multiple_of(PACKED_COLUMNS) + right) * 8 + 1024) as u64
    }
}

/// Plain loops, on four columns and eight rows at a time, which a compiler turns into vectors of two.
#[derive(Clone, Copy, Debug, Default)]
struct Loops;

impl Dgemm for Loops {
    fn tile(&self) -> DgemmShape {
        GemmCrate.tile()
    }

    fn product(&self, x: DoubleColumns<'_>, y: DoubleColumns<'_>, out: &mut [f64]) {
        const LANES: usize = 8;
        const TOGETHER: usize = 4;
        assert_eq!(x.rows(), y.rows(), "columns of different lengths");
        let rows = x.rows();
        for (j, out) in out.chunks_exact_mut(x.count()).take(y.count()).enumerate() {
            let right = &y.words()[j * y.stride()..][..rows];
            for (group, out) in out.chunks_mut(TOGETHER).enumerate() {
                // Columns beyond the last repeat it.
                let column = |at: usize| &x.words()[(group * TOGETHER + at.min(out.len() - 1)) * x.stride()..][..rows];
                let left: [&[f64]; TOGETHER] = std::array::from_fn(column);
                let mut sums = [[0.0; LANES]; TOGETHER];
                let whole = rows / LANES * LANES;
                for first in (0..whole).step_by(LANES) {
                    let right: &[f64; LANES] = right[first..first + LANES].try_into().expect("whole lanes");
                    for (sums, left) in sums.iter_mut().zip(left) {
                        let left: &[f64; LANES] = left[first..first + LANES].try_into().expect("whole lanes");
                        (0..LANES).for_each(|lane| sums[lane] += left[lane] * right[lane]);
                    }
                }
                for (at, entry) in out.iter_mut().enumerate() {
                    let rest = (whole..rows).map(|k| left[at][k] * right[k]).sum::<f64>();
                    *entry = sums[at].iter().sum::<f64>() + rest;
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Compares `product` and `gram` with the plain sums on odd shapes, with dirty output.
    pub fn check(dgemm: &dyn Dgemm) {
        for (rows, left, right, stride) in [(1, 1, 1, 1), (7, 8, 16, 9), (65, 40, 24, 65), (1100, 72, 8, 1112)] {
            let words = |seed: usize| -> Vec<f64> {
                (0..stride * 80).map(|at| ((at * 7919 + seed * 31) % 2001) as f64 - 1000.0).collect()
            };
            let (x, y) = (words(1), words(2));
            let sum = |a: &[f64], i: usize, b: &[f64], j: usize| -> f64 {
                (0..rows).map(|k| a[i * stride + k] * b[j * stride + k]).sum()
            };
            let (columns, others) =
                (DoubleColumns::new(&x, rows, left, stride), DoubleColumns::new(&y, rows, right, stride));
            let mut out = vec![f64::NAN; left * right + 3];
            dgemm.product(columns, others, &mut out);
            for (at, &got) in out.iter().enumerate().take(left * right) {
                assert_eq!(got, sum(&x, at % left, &y, at / left), "{rows} x {left} by {right}, entry {at}");
            }
            assert!(out[left * right..].iter().all(|word| word.is_nan()), "words past the result were written");
            let mut out = vec![f64::NAN; left * left];
            dgemm.gram(columns, &mut out);
            for (at, &got) in out.iter().enumerate().filter(|(at, _)| at % left >= at / left) {
                assert_eq!(got, sum(&x, at % left, &x, at / left), "gram {rows} x {left}, entry {at}");
            }
        }
    }

    #[test]
    fn the_crate_gives_the_plain_sums() {
        check(&GemmCrate);
        check(&Loops);
    }

    #[test]
    #[should_panic(expected = "columns leave")]
    fn columns_must_lie_inside_their_words() {
        DoubleColumns::new(&[0.0; 10], 3, 3, 4);
    }
}
