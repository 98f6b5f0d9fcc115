//! `X^T X` by five block products: one level below the classical count, exact modulo a prime that is 1 mod 4.
//!
//! With `A = X^T` in halves of columns and of rows, and `i` a square root of -1:
//! `S1 = i (A21 - A11)`, `S2 = A22 - i A21`, `S3 = S1 - A22`, `S4 = S3 + A12`;
//! `P1 = A11 A11^T`, `P2 = A12 A12^T`, `P3 = A22 S4^T`, `P4 = S1 S2^T`, `P5 = S3 S3^T`;
//! `C11 = P1 + P2`, `C21 = P1 + P5 + P4 + P3`, `C22 = P1 + P5 + P4 + P4^T`.
//! Three of the products are triangles: 3.5 half-size squares instead of 4. P2 and P3 go straight into C11 and C21.
//! Source: Dumas, Pernet, Sedoglavic, ISSAC 2020 (arXiv 2001.04109).

use super::{Ifma52Work, PrimeConstants, multiply_area, slab_rows};
use crate::kernels::area::Area;
use crate::kernels::x86_64::ifma52::blocks::{VectorBlock, add_blocks, load_block, store_block};
use crate::kernels::x86_64::ifma52::micro::Fold;
use crate::kernels::x86_64::ifma52::product::{Ifma52Operands, MC_PANELS, Next, Store, multiply};
use crate::kernels::x86_64::ifma52::sums::{form_sums, sum};
use crate::kernels::x86_64::ifma52::transpose::transpose;
use crate::plan::{BLOCK, BlockGrid};
use std::arch::x86_64::*;

/// Fewest panels for which the level pays (measured).
const LEAST_PANELS: usize = 24;

/// Fewest rows for which the level pays: the five results are combined once per product.
const LEAST_ROWS: usize = 256;

/// Whether the scheme is used for a triangle of `panels` panels.
pub fn pays(rows: usize, panels: usize) -> bool {
    panels >= LEAST_PANELS && rows >= LEAST_ROWS
}

/// Words of scratch.
pub fn scratch_words(rows: usize, panels: usize) -> usize {
    let half = Ifma52SymmetricHalves::new(rows, panels);
    let inner = |shape| super::scratch_words(half.slab, shape);
    2 * half.triangle.words()
        + half.square.words()
        + 4 * half.panels * half.slab * BLOCK
        + inner(half.triangle).max(inner(half.square))
}

/// The division of the operand; an odd panel and an odd row that are left are multiplied classically.
struct Ifma52SymmetricHalves {
    panels: usize,
    rows: usize,
    slab: usize,
    triangle: BlockGrid,
    square: BlockGrid,
}

impl Ifma52SymmetricHalves {
    fn new(rows: usize, panels: usize) -> Ifma52SymmetricHalves {
        let panels = panels / 2;
        let columns = panels * BLOCK;
        Ifma52SymmetricHalves {
            panels,
            rows: rows / 2,
            slab: slab_rows(rows / 2, panels),
            triangle: BlockGrid::triangle(columns),
            square: BlockGrid::rectangle(columns, columns),
        }
    }
}

/// `C := C + X^T X` or `C := X^T X` for a triangle.
#[inline(never)] // the schemes call each other: each keeps a frame of its own
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn multiply_triangle(field: PrimeConstants<'_>, operands: &Ifma52Operands<'_>, area: &Area, work: Ifma52Work<'_>) {
    let (Ifma52Work { c, into, scratch }, fold) = (work, field.fold);
    let half = Ifma52SymmetricHalves::new(operands.rows, area.rows.len());
    let Ifma52Operands { x, rows, next, .. } = *operands;
    let (p1, rest) = scratch.split_at_mut(half.triangle.words());
    let (p5, rest) = rest.split_at_mut(half.triangle.words());
    let (p4, rest) = rest.split_at_mut(half.square.words());
    let h = half.panels;
    let (words, inner) = rest.split_at_mut(4 * h * half.slab * BLOCK);
    let (triangle, square) = (Area::whole(half.triangle), Area::whole(half.square));
    let (top_left, bottom_left) = (area.part(0..h, 0..h), area.part(h..2 * h, 0..h));
    let wide_root = _mm512_set1_epi64(field.root as i64);
    for first in (0..half.rows).step_by(half.slab) {
        let depth = half.slab.min(half.rows - first);
        let (own, shared) = if first > 0 { (Store::Add, Store::Add) } else { (Store::Overwrite, into) };
        let (a11, a12) = (x.from(0, first), x.from(0, half.rows + first));
        let (a21, a22) = (x.from(h, first), x.from(h, half.rows + first));
        let words = &mut words[..4 * h * depth * BLOCK];
        form_sums([a11, a12, a21, a22], h, depth, words, |[a11, a12, a21, a22]| {
            let s1 = fold.multiply(fold.subtract(a21, a11), wide_root);
            let s2 = fold.subtract(a22, fold.multiply(a21, wide_root));
            let s3 = fold.subtract(s1, a22);
            [s1, s2, s3, fold.add(s3, a12)]
        });
        // Each product fetches the operands with which the following one begins; the last, the next slab.
        let begin = |panels| Some(Next::new(panels, h.min(MC_PANELS), depth));
        let later = first + depth;
        let left = half.slab.min(half.rows - later);
        let slab = if left == 0 { next } else { Some(Next::new(x.from(0, later), 2 * h, left)) };
        let sum = |number| sum(words, number, depth);
        let mut part = |x, y, next, area: &Area, c: &mut [u64], into| {
            let operands = Ifma52Operands { x, y, rows: depth, next };
            multiply_area(field, &operands, area, Ifma52Work { c, into, scratch: inner });
        };
        part(a11, a11, begin(a12), &triangle, p1, own);
        part(a12, a12, begin(a22), &top_left, c, shared);
        part(a22, sum(3), begin(sum(2)), &bottom_left, c, shared);
        part(sum(2), sum(2), begin(sum(0)), &triangle, p5, own);
        part(sum(0), sum(1), slab, &square, p4, own);
    }
    combine(fold, &half, [p1, p4, p5], area, c, into);
    let (done, panels) = (2 * half.panels, area.rows.len());
    if done < panels {
        multiply(fold, operands, &area.target(done..panels, 0..panels), c, into);
    }
    if !rows.is_multiple_of(2) {
        let end = x.from(0, rows - 1);
        let last = Ifma52Operands { x: end, y: end, rows: 1, next: None };
        multiply(fold, &last, &area.target(0..done, 0..done), c, Store::Add);
    }
}

/// Adds to C the products in scratch: C11 and C21 have P2 and P3 already.
#[target_feature(enable = "avx512f,avx512ifma")]
fn combine(
    fold: &Fold,
    half: &Ifma52SymmetricHalves,
    products: [&mut [u64]; 3],
    area: &Area,
    c: &mut [u64],
    into: Store,
) {
    let [p1, p4, p5] = products.map(|product| &*product);
    let h = half.panels;
    let mut store = |row: usize, col: usize, value: VectorBlock, into: Store| {
        let index = area.index(row, col);
        let value = if into == Store::Add { add_blocks(fold, load_block(c, index), value) } else { value };
        store_block(c, index, value);
    };
    for col in 0..h {
        for row in 0..h {
            let lower = half.triangle.index(row.max(col), row.min(col));
            let first = load_block(p1, lower);
            let symmetric = add_blocks(fold, first, load_block(p5, lower));
            let mirrored = if row < col { transpose(symmetric) } else { symmetric };
            let both = add_blocks(fold, mirrored, load_block(p4, half.square.index(row, col)));
            store(h + row, col, both, Store::Add);
            if row >= col {
                let across = transpose(load_block(p4, half.square.index(col, row)));
                store(h + row, h + col, add_blocks(fold, both, across), into);
                store(row, col, first, Store::Add);
            }
        }
    }
}
