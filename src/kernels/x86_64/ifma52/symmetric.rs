//! `X^T X` by five block products: one level below the classical count, exact modulo a prime that is 1 mod 4.
//!
//! With `A = X^T` in halves of columns and of rows, and `i` a square root of -1:
//! `S1 = i (A21 - A11)`, `S2 = A22 - i A21`, `S3 = S1 - A22`, `S4 = S3 + A12`;
//! `P1 = A11 A11^T`, `P2 = A12 A12^T`, `P3 = A22 S4^T`, `P4 = S1 S2^T`, `P5 = S3 S3^T`;
//! `C11 = P1 + P2`, `C21 = P1 + P5 + P4 + P3`, `C22 = P1 + P5 + P4 + P4^T`.
//! Three of the products are triangles: 3.5 half-size squares instead of 4. P2 and P3 go straight into C11 and C21.
//! Source: Dumas, Pernet, Sedoglavic, ISSAC 2020 (arXiv 2001.04109).

use super::micro::Fold;
use super::product::{Into, Next, Operands, Target, depth_of_passes, multiply};
use super::sums::{form_sums, sum};
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
    2 * half.triangle.words() + half.square.words() + 4 * half.panels * half.slab * BLOCK
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
    let (p5, rest) = rest.split_at_mut(half.triangle.words());
    let (p4, words) = rest.split_at_mut(half.square.words());
    let h = half.panels;
    let (triangle, square) = (Target::whole(half.triangle), Target::whole(half.square));
    let (top_left, bottom_left) = (Target::window(grid, 0..h, 0..h), Target::window(grid, h..2 * h, 0..h));
    let wide_root = _mm512_set1_epi64(root as i64);
    for first in (0..half.rows).step_by(half.slab) {
        let depth = half.slab.min(half.rows - first);
        let (own, shared) = if first > 0 { (Into::Add, Into::Add) } else { (Into::Overwrite, into) };
        let (a11, a12) = (x.from(0, first), x.from(0, half.rows + first));
        let (a21, a22) = (x.from(h, first), x.from(h, half.rows + first));
        let words = &mut words[..4 * h * depth * BLOCK];
        form_sums([a11, a12, a21, a22], (h, depth), words, |[a11, a12, a21, a22]| {
            let s1 = fold.multiply(fold.subtract(a21, a11), wide_root);
            let s2 = fold.subtract(a22, fold.multiply(a21, wide_root));
            let s3 = fold.subtract(s1, a22);
            [s1, s2, s3, fold.add(s3, a12)]
        });
        // Each product fetches what the following one begins with; the last, the next slab.
        let begin = |panels| Some(Next::new(panels, h.min(24), depth));
        let later = first + depth;
        let left = half.slab.min(half.rows - later);
        let slab = if left == 0 { next } else { Some(Next::new(x.from(0, later), 2 * h, left)) };
        let pair = |x, y, next| Operands { x, y, rows: depth, next };
        multiply(fold, &pair(a11, a11, begin(a12)), &triangle, p1, own);
        multiply(fold, &pair(a12, a12, begin(a22)), &top_left, c, shared);
        let sum = |number| sum(words, number, depth);
        multiply(fold, &pair(a22, sum(3), begin(sum(2))), &bottom_left, c, shared);
        multiply(fold, &pair(sum(2), sum(2), begin(sum(0))), &triangle, p5, own);
        multiply(fold, &pair(sum(0), sum(1), slab), &square, p4, own);
    }
    combine(fold, &half, [p1, p4, p5], grid, (c, into));
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

/// A block as 8 columns.
pub type Block = [__m512i; BLOCK];

/// Block number `index` of a plane.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_block(words: &[u64], index: usize) -> Block {
    let block = &words[index * BLOCK_WORDS..][..BLOCK_WORDS];
    // SAFETY: the block has 64 words.
    std::array::from_fn(|column| unsafe { _mm512_loadu_si512(block.as_ptr().add(column * BLOCK).cast()) })
}

/// Writes block number `index` of a plane.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn store_block(words: &mut [u64], index: usize, block: Block) {
    let words = &mut words[index * BLOCK_WORDS..][..BLOCK_WORDS];
    for (column, vector) in block.into_iter().enumerate() {
        // SAFETY: the block has 64 words.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().add(column * BLOCK).cast(), vector) };
    }
}

/// `a + b`, entry by entry.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn add_blocks(fold: &Fold, a: Block, b: Block) -> Block {
    std::array::from_fn(|column| fold.add(a[column], b[column]))
}

/// Adds to C what the products in scratch hold: C11 and C21 have P2 and P3 already.
#[target_feature(enable = "avx512f,avx512ifma")]
fn combine(fold: &Fold, half: &Halves, products: [&mut [u64]; 3], grid: BlockGrid, (c, into): (&mut [u64], Into)) {
    let [p1, p4, p5] = products.map(|product| &*product);
    let h = half.panels;
    let mut store = |row: usize, col: usize, value: Block, into: Into| {
        let index = grid.index(row, col);
        let value = if into == Into::Add { add_blocks(fold, load_block(c, index), value) } else { value };
        store_block(c, index, value);
    };
    for col in 0..h {
        for row in 0..h {
            let lower = half.triangle.index(row.max(col), row.min(col));
            let first = load_block(p1, lower);
            let symmetric = add_blocks(fold, first, load_block(p5, lower));
            let mirrored = if row < col { transpose(symmetric) } else { symmetric };
            let both = add_blocks(fold, mirrored, load_block(p4, half.square.index(row, col)));
            store(h + row, col, both, Into::Add);
            if row >= col {
                let across = transpose(load_block(p4, half.square.index(col, row)));
                store(h + row, h + col, add_blocks(fold, both, across), into);
                store(row, col, first, Into::Add);
            }
        }
    }
}
