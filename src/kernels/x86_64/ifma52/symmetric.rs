//! `X^T X` by five block products: one level below the classical count, exact modulo a prime that is 1 mod 4.
//!
//! With `A = X^T` in halves of columns and of rows, and `i` a square root of -1:
//! `S1 = i (A21 - A11)`, `S2 = A22 - i A21`, `S3 = S1 - A22`, `S4 = S3 + A12`;
//! `P1 = A11 A11^T`, `P2 = A12 A12^T`, `P3 = A22 S4^T`, `P4 = S1 S2^T`, `P5 = S3 S3^T`;
//! `C11 = P1 + P2`, `C21 = P1 + P5 + P4 + P3`, `C22 = P1 + P5 + P4 + P4^T`.
//! Three of the products are triangles: 3.5 half-size squares instead of 4. The sums are formed slab by slab, so
//! that they stay in cache. Source: Dumas, Pernet, Sedoglavic, ISSAC 2020 (arXiv 2001.04109).

use super::micro::Fold;
use super::product::{Into, Next, Operands, Panels, Target, depth_of_passes, multiply};
use super::transpose::transpose;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::arch::x86_64::*;

/// Fewest panels for which the level pays (measured).
const LEAST_PANELS: usize = 56;

/// Fewest rows for which the level pays: the five results are combined once per product.
const LEAST_ROWS: usize = 256;

/// Whether the scheme is used for a whole triangle of this shape.
pub fn pays(rows: usize, grid: &BlockGrid) -> bool {
    grid.triangle && grid.rows >= LEAST_PANELS && rows >= LEAST_ROWS
}

/// Words of scratch.
pub fn scratch_words(rows: usize, grid: &BlockGrid) -> usize {
    let half = Halves::new(rows, grid);
    3 * half.triangle.words() + 2 * half.square.words() + 4 * half.panels * half.slab * BLOCK
}

/// How the operand is cut; the odd panel and the odd row that may be left are done classically.
struct Halves {
    panels: usize,
    rows: usize,
    slab: usize,
    triangle: BlockGrid,
    square: BlockGrid,
}

impl Halves {
    fn new(rows: usize, grid: &BlockGrid) -> Halves {
        let panels = grid.rows / 2;
        let columns = panels * BLOCK;
        Halves {
            panels,
            rows: rows / 2,
            slab: depth_of_passes(rows / 2),
            triangle: BlockGrid::triangle(columns),
            square: BlockGrid::rectangle(columns, columns),
        }
    }
}

/// `C := C + X^T X` or `C := X^T X` for a whole triangle; `root` is a square root of -1 modulo the prime.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn multiply_triangle(fold: &Fold, root: u64, operands: &Operands<'_>, grid: BlockGrid, work: Work<'_>) {
    let Work { c, into, scratch } = work;
    let half = Halves::new(operands.rows, &grid);
    let Operands { x, rows, next, .. } = *operands;
    let (p1, rest) = scratch.split_at_mut(half.triangle.words());
    let (p2, rest) = rest.split_at_mut(half.triangle.words());
    let (p5, rest) = rest.split_at_mut(half.triangle.words());
    let (p3, rest) = rest.split_at_mut(half.square.words());
    let (p4, sums) = rest.split_at_mut(half.square.words());
    let (triangle, square) = (Target::whole(half.triangle), Target::whole(half.square));
    for first in (0..half.rows).step_by(half.slab) {
        let depth = half.slab.min(half.rows - first);
        let into = if first > 0 { Into::Add } else { Into::Overwrite };
        let (a11, a12) = (x.from(0, first), x.from(0, half.rows + first));
        let (a21, a22) = (x.from(half.panels, first), x.from(half.panels, half.rows + first));
        let words = half.panels * depth * BLOCK;
        form_sums(fold, root, [a11, a12, a21, a22], &mut sums[..4 * words], depth);
        let sum = |number: usize| Panels { words: &sums[number * words..][..words], stride: depth * BLOCK };
        // Each product fetches what the following one begins with; the two squares, the next slab.
        let begin = |panels| Some(Next::new(panels, half.panels.min(24), depth));
        let later = first + depth;
        let slab = |row: usize| {
            let rows = half.slab.min(half.rows - later.min(half.rows));
            if rows == 0 { next } else { Some(Next::new(x.from(0, row), 2 * half.panels, rows)) }
        };
        let pair = |x, y, next| Operands { x, y, rows: depth, next };
        multiply(fold, &pair(a11, a11, begin(a12)), &triangle, p1, into);
        multiply(fold, &pair(a12, a12, begin(sum(2))), &triangle, p2, into);
        multiply(fold, &pair(sum(2), sum(2), begin(a22)), &triangle, p5, into);
        multiply(fold, &pair(a22, sum(3), slab(later)), &square, p3, into);
        multiply(fold, &pair(sum(0), sum(1), slab(half.rows + later)), &square, p4, into);
    }
    combine(fold, &half, [p1, p2, p3, p4, p5], grid, Work { c, into, scratch: &mut [] });
    let done = 2 * half.panels;
    if done < grid.rows {
        let last = Target { row_window: done..grid.rows, ..Target::whole(grid) };
        multiply(fold, operands, &last, c, into);
    }
    if !rows.is_multiple_of(2) {
        let end = x.from(0, rows - 1);
        let inner = Target { row_window: 0..done, col_window: 0..done, ..Target::whole(grid) };
        multiply(fold, &Operands { x: end, y: end, rows: 1, next: None }, &inner, c, Into::Add);
    }
}

/// Where a whole product goes, and what it may overwrite on the way.
pub struct Work<'a> {
    /// The plane.
    pub c: &'a mut [u64],
    /// What happens to its old words.
    pub into: Into,
    /// At least `scratch_words` words.
    pub scratch: &'a mut [u64],
}

/// `S1, S2, S3, S4` of one slab, one after the other in `out`.
#[target_feature(enable = "avx512f,avx512ifma")]
fn form_sums(fold: &Fold, root: u64, quarters: [Panels<'_>; 4], out: &mut [u64], depth: usize) {
    let root = _mm512_set1_epi64(root as i64);
    let words = out.len() / 4;
    let (s12, s34) = out.split_at_mut(2 * words);
    let ((s1, s2), (s3, s4)) = (s12.split_at_mut(words), s34.split_at_mut(words));
    for panel in 0..words / (depth * BLOCK) {
        let at = panel * depth * BLOCK;
        let inputs = quarters.map(|quarter| &quarter.words[panel * quarter.stride..][..depth * BLOCK]);
        let outputs = [&mut *s1, s2, s3, s4].map(|sum| sum[at..][..depth * BLOCK].as_mut_ptr());
        for offset in (0..depth * BLOCK).step_by(BLOCK) {
            // SAFETY: all inputs and outputs have `depth * BLOCK` words from their pointers.
            unsafe {
                let [a11, a12, a21, a22] = inputs.map(|input| _mm512_loadu_si512(input.as_ptr().add(offset).cast()));
                let s1 = fold.multiply(fold.subtract(a21, a11), root);
                let s2 = fold.subtract(a22, fold.multiply(a21, root));
                let s3 = fold.subtract(s1, a22);
                let s4 = fold.add(s3, a12);
                for (pointer, sum) in outputs.iter().zip([s1, s2, s3, s4]) {
                    _mm512_storeu_si512(pointer.add(offset).cast(), sum);
                }
            }
        }
    }
}

/// Block number `index` of a plane, as 8 columns.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_block(words: &[u64], index: usize) -> [__m512i; BLOCK] {
    let block = &words[index * BLOCK_WORDS..][..BLOCK_WORDS];
    // SAFETY: the block has 64 words.
    std::array::from_fn(|column| unsafe { _mm512_loadu_si512(block.as_ptr().add(column * BLOCK).cast()) })
}

/// Writes the halves of C from the five products.
#[target_feature(enable = "avx512f,avx512ifma")]
fn combine(fold: &Fold, half: &Halves, products: [&mut [u64]; 5], grid: BlockGrid, work: Work<'_>) {
    let [p1, p2, p3, p4, p5] = products.map(|product| &*product);
    let Work { c, into, .. } = work;
    let h = half.panels;
    let add = |a: [__m512i; BLOCK], b: [__m512i; BLOCK]| -> [__m512i; BLOCK] {
        std::array::from_fn(|column| fold.add(a[column], b[column]))
    };
    let mut store = |row: usize, col: usize, value: [__m512i; BLOCK]| {
        let index = grid.index(row, col);
        let value = if into == Into::Add { add(load_block(c, index), value) } else { value };
        let block = &mut c[index * BLOCK_WORDS..][..BLOCK_WORDS];
        // SAFETY: the block has 64 words.
        unsafe {
            for (column, vector) in value.into_iter().enumerate() {
                _mm512_storeu_si512(block.as_mut_ptr().add(column * BLOCK).cast(), vector);
            }
        }
    };
    for col in 0..h {
        for row in 0..h {
            let square = half.square.index(row, col);
            let lower = half.triangle.index(row.max(col), row.min(col));
            let first = load_block(p1, lower);
            let symmetric = add(first, load_block(p5, lower));
            let mirrored = if row < col { transpose(symmetric) } else { symmetric };
            let both = add(mirrored, load_block(p4, square));
            store(h + row, col, add(both, load_block(p3, square)));
            if row >= col {
                let across = transpose(load_block(p4, half.square.index(col, row)));
                store(h + row, h + col, add(both, across));
                store(row, col, add(first, load_block(p2, lower)));
            }
        }
    }
}
