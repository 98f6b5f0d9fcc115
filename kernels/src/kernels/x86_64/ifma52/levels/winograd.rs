//! `X^T Y` by seven block products: one level of Strassen's method in Winograd's form, exact modulo a prime.
//!
//! With `A = X^T` and `B = Y` in halves: `S1 = A21 + A22`, `S2 = S1 - A11`, `S3 = A11 - A21`, `S4 = A12 - S2`;
//! `T1 = B12 - B11`, `T2 = B22 - T1`, `T3 = B22 - B12`, `T4 = B21 - T2`;
//! `P1 = A11 B11`, `P2 = A12 B21`, `P3 = S4 B22`, `P4 = A22 T4`, `P5 = S1 T1`, `P6 = S2 T2`, `P7 = S3 T3`;
//! `C11 = P1 + P2`, `C12 = P1 + P6 + P5 + P3`, `C21 = P1 + P6 + P7 + P4`, `C22 = P1 + P6 + P7 + P5`.
//! P2, P3 and P4 go straight into C11, C12 and C21. The sums are formed slab by slab, so that they stay in cache.
//! Source: Winograd 1971; Strassen 1969.

use super::{Ifma52Work, PrimeConstants, multiply_area, slab_rows};
use crate::kernels::area::Area;
use crate::kernels::x86_64::ifma52::blocks::{VectorBlock, add_blocks, load_block, store_block};
use crate::kernels::x86_64::ifma52::micro::Fold;
use crate::kernels::x86_64::ifma52::product::{Ifma52Operands, MC_PANELS, Next, Store, multiply};
use crate::kernels::x86_64::ifma52::sums::{form_sums, sum};
use crate::plan::{BLOCK, BlockGrid};

/// Fewest panels on either side for which the level pays (measured).
pub const LEAST_PANELS: usize = 24;

/// Fewest rows for which the level pays: the results are combined once per product.
const LEAST_ROWS: usize = 192;

/// Whether the scheme is used for a rectangle of `m x n` panels.
pub fn pays(rows: usize, m: usize, n: usize) -> bool {
    m.min(n) >= LEAST_PANELS && rows >= LEAST_ROWS
}

/// Words of scratch.
pub fn scratch_words(rows: usize, m: usize, n: usize) -> usize {
    let half = Ifma52WinogradHalves::new(rows, m, n);
    4 * half.quarter.words()
        + 4 * (half.x_panels + half.y_panels) * half.slab * BLOCK
        + super::scratch_words(half.slab, half.quarter)
}

/// The division of the operands; odd panels and an odd row that are left are multiplied classically.
struct Ifma52WinogradHalves {
    x_panels: usize,
    y_panels: usize,
    rows: usize,
    slab: usize,
    quarter: BlockGrid,
}

impl Ifma52WinogradHalves {
    fn new(rows: usize, m: usize, n: usize) -> Ifma52WinogradHalves {
        let (x_panels, y_panels) = (m / 2, n / 2);
        let quarter = BlockGrid::rectangle(x_panels * BLOCK, y_panels * BLOCK);
        Ifma52WinogradHalves {
            x_panels,
            y_panels,
            rows: rows / 2,
            slab: slab_rows(rows / 2, x_panels.min(y_panels)),
            quarter,
        }
    }
}

/// `C := C + X^T Y` or `C := X^T Y` for a rectangle.
#[inline(never)] // the schemes call each other: each keeps a frame of its own
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn multiply_rectangle(field: PrimeConstants<'_>, operands: &Ifma52Operands<'_>, area: &Area, work: Ifma52Work<'_>) {
    let (Ifma52Work { c, into, scratch }, fold) = (work, field.fold);
    let half = Ifma52WinogradHalves::new(operands.rows, area.rows.len(), area.cols.len());
    let Ifma52Operands { x, y, rows, next } = *operands;
    let (products, rest) = scratch.split_at_mut(4 * half.quarter.words());
    let quarter = Area::whole(half.quarter);
    let (m, n) = (half.x_panels, half.y_panels);
    let (words, inner) = rest.split_at_mut(4 * (m + n) * half.slab * BLOCK);
    let corner = |row: usize, col: usize| area.part(row * m..(row + 1) * m, col * n..(col + 1) * n);
    for first in (0..half.rows).step_by(half.slab) {
        let depth = half.slab.min(half.rows - first);
        let (own, shared) = if first > 0 { (Store::Add, Store::Add) } else { (Store::Overwrite, into) };
        let second = half.rows + first;
        let a = [x.from(0, first), x.from(0, second), x.from(m, first), x.from(m, second)];
        let b = [y.from(0, first), y.from(n, first), y.from(0, second), y.from(n, second)];
        let (s_words, t_words) = (m * depth * BLOCK, n * depth * BLOCK);
        let (s, t) = words.split_at_mut(4 * s_words);
        let t = &mut t[..4 * t_words];
        form_sums(a, m, depth, s, |[a11, a12, a21, a22]| {
            let s1 = fold.add(a21, a22);
            let s2 = fold.subtract(s1, a11);
            [s1, s2, fold.subtract(a11, a21), fold.subtract(a12, s2)]
        });
        form_sums(b, n, depth, t, |[b11, b12, b21, b22]| {
            let t1 = fold.subtract(b12, b11);
            let t2 = fold.subtract(b22, t1);
            [t1, t2, fold.subtract(b22, b12), fold.subtract(b21, t2)]
        });
        let begin = |panels, count: usize| Some(Next::new(panels, count.min(MC_PANELS), depth));
        // The last product fetches the operands with which the next slab begins.
        let (later, left) = (first + depth, half.slab.min(half.rows - (first + depth)));
        let slab = if left > 0 { Some(Next::new(x.from(0, later), 2 * m, left)) } else { next };
        let mut own_products = products.chunks_exact_mut(half.quarter.words());
        let [p1, p5, p6, p7] = std::array::from_fn(|_| own_products.next().expect("scratch holds four products"));
        let (sum, other) = (|number| sum(s, number, depth), |number| sum(t, number, depth));
        let mut part = |x, y, next, area: &Area, c: &mut [u64], into| {
            let operands = Ifma52Operands { x, y, rows: depth, next };
            multiply_area(field, &operands, area, Ifma52Work { c, into, scratch: inner });
        };
        part(a[0], b[0], begin(a[1], m), &quarter, p1, own);
        part(a[1], b[2], begin(a[3], m), &corner(0, 0), c, shared);
        part(a[3], other(3), begin(sum(3), m), &corner(1, 0), c, shared);
        part(sum(3), b[3], begin(sum(0), m), &corner(0, 1), c, shared);
        part(sum(0), other(0), begin(sum(1), m), &quarter, p5, own);
        part(sum(1), other(1), begin(sum(2), m), &quarter, p6, own);
        part(sum(2), other(2), slab, &quarter, p7, own);
    }
    combine(fold, &half, products, area, c, into);
    let (rows_done, cols_done) = (2 * half.x_panels, 2 * half.y_panels);
    let (m, n) = (area.rows.len(), area.cols.len());
    multiply(fold, operands, &area.target(rows_done..m, 0..n), c, into);
    multiply(fold, operands, &area.target(0..rows_done, cols_done..n), c, into);
    if !rows.is_multiple_of(2) {
        let last = Ifma52Operands { x: x.from(0, rows - 1), y: y.from(0, rows - 1), rows: 1, next: None };
        multiply(fold, &last, &area.target(0..rows_done, 0..cols_done), c, Store::Add);
    }
}

/// Adds to C the products in scratch: three of its quarters have P2, P3 and P4 already.
#[target_feature(enable = "avx512f,avx512ifma")]
fn combine(fold: &Fold, half: &Ifma52WinogradHalves, products: &[u64], area: &Area, c: &mut [u64], into: Store) {
    let words = half.quarter.words();
    let mut store = |row: usize, col: usize, value: VectorBlock, into: Store| {
        let index = area.index(row, col);
        let value = if into == Store::Add { add_blocks(fold, load_block(c, index), value) } else { value };
        store_block(c, index, value);
    };
    for col in 0..half.y_panels {
        for row in 0..half.x_panels {
            let index = half.quarter.index(row, col);
            let [p1, p5, p6, p7] =
                std::array::from_fn(|number| load_block(&products[number * words..][..words], index));
            let u2 = add_blocks(fold, p1, p6);
            let u3 = add_blocks(fold, u2, p7);
            store(row, col, p1, Store::Add);
            store(row, half.y_panels + col, add_blocks(fold, u2, p5), Store::Add);
            store(half.x_panels + row, col, u3, Store::Add);
            store(half.x_panels + row, half.y_panels + col, add_blocks(fold, u3, p5), into);
        }
    }
}
