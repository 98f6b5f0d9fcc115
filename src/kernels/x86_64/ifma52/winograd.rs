//! `X^T Y` by seven block products: one level of Strassen's method in Winograd's form, exact modulo a prime.
//!
//! With `A = X^T` and `B = Y` in halves: `S1 = A21 + A22`, `S2 = S1 - A11`, `S3 = A11 - A21`, `S4 = A12 - S2`;
//! `T1 = B12 - B11`, `T2 = B22 - T1`, `T3 = B22 - B12`, `T4 = T2 - B21`;
//! `P1 = A11 B11`, `P2 = A12 B21`, `P3 = S4 B22`, `P4 = A22 T4`, `P5 = S1 T1`, `P6 = S2 T2`, `P7 = S3 T3`;
//! `C11 = P1 + P2`, `C12 = P1 + P6 + P5 + P3`, `C21 = P1 + P6 + P7 - P4`, `C22 = P1 + P6 + P7 + P5`.
//! The sums are formed slab by slab, so that they stay in cache. Source: Winograd 1971; Strassen 1969.

use super::micro::Fold;
use super::product::{Into, Next, Operands, Panels, Target, depth_of_passes, multiply};
use super::symmetric::{Work, load_block};
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::arch::x86_64::*;

/// Fewest panels on either side for which the level pays (measured).
const LEAST_PANELS: usize = 56;

/// Fewest rows for which the level pays: the seven results are combined once per product.
const LEAST_ROWS: usize = 512;

/// Whether the scheme is used for a whole rectangle of this shape.
pub fn pays(rows: usize, grid: &BlockGrid) -> bool {
    !grid.triangle && grid.rows.min(grid.cols) >= LEAST_PANELS && rows >= LEAST_ROWS
}

/// Words of scratch.
pub fn scratch_words(rows: usize, grid: &BlockGrid) -> usize {
    let half = Halves::new(rows, grid);
    7 * half.quarter.words() + 4 * (half.x_panels + half.y_panels) * half.slab * BLOCK
}

/// How the operands are cut; the odd panels and the odd row that may be left are done classically.
struct Halves {
    x_panels: usize,
    y_panels: usize,
    rows: usize,
    slab: usize,
    quarter: BlockGrid,
}

impl Halves {
    fn new(rows: usize, grid: &BlockGrid) -> Halves {
        let (x_panels, y_panels) = (grid.rows / 2, grid.cols / 2);
        let quarter = BlockGrid::rectangle(x_panels * BLOCK, y_panels * BLOCK);
        Halves { x_panels, y_panels, rows: rows / 2, slab: depth_of_passes(rows / 2), quarter }
    }
}

/// `C := C + X^T Y` or `C := X^T Y` for a whole rectangle.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn multiply_rectangle(fold: &Fold, operands: &Operands<'_>, grid: BlockGrid, work: Work<'_>) {
    let Work { c, into, scratch } = work;
    let half = Halves::new(operands.rows, &grid);
    let Operands { x, y, rows, .. } = *operands;
    let (products, sums) = scratch.split_at_mut(7 * half.quarter.words());
    let whole = Target::whole(half.quarter);
    for first in (0..half.rows).step_by(half.slab) {
        let depth = half.slab.min(half.rows - first);
        let step = if first > 0 { Into::Add } else { Into::Overwrite };
        let second = half.rows + first;
        let a = [x.from(0, first), x.from(0, second), x.from(half.x_panels, first), x.from(half.x_panels, second)];
        let b = [y.from(0, first), y.from(half.y_panels, first), y.from(0, second), y.from(half.y_panels, second)];
        let (s_words, t_words) = (half.x_panels * depth * BLOCK, half.y_panels * depth * BLOCK);
        let (s, t) = sums.split_at_mut(4 * s_words);
        form_sums(a, &mut s[..4 * s_words], depth, |[a11, a12, a21, a22]| {
            let s1 = fold.add(a21, a22);
            let s2 = fold.subtract(s1, a11);
            [s1, s2, fold.subtract(a11, a21), fold.subtract(a12, s2)]
        });
        form_sums(b, &mut t[..4 * t_words], depth, |[b11, b12, b21, b22]| {
            let t1 = fold.subtract(b12, b11);
            let t2 = fold.subtract(b22, t1);
            [t1, t2, fold.subtract(b22, b12), fold.subtract(t2, b21)]
        });
        let sum = |number: usize| Panels { words: &s[number * s_words..][..s_words], stride: depth * BLOCK };
        let other = |number: usize| Panels { words: &t[number * t_words..][..t_words], stride: depth * BLOCK };
        let pairs = [
            (a[0], b[0]),
            (a[1], b[2]),
            (sum(3), b[3]),
            (a[3], other(3)),
            (sum(0), other(0)),
            (sum(1), other(1)),
            (sum(2), other(2)),
        ];
        // The last four products fetch the quarters of the next slab.
        let (later, rest) = (first + depth, half.slab.min(half.rows - (first + depth)));
        let fetch = |panels, count| (rest > 0).then_some(Next::new(panels, count, rest));
        let ahead = [
            fetch(x.from(0, later), 2 * half.x_panels),
            fetch(x.from(0, half.rows + later), 2 * half.x_panels),
            fetch(y.from(0, later), 2 * half.y_panels),
            fetch(y.from(0, half.rows + later), 2 * half.y_panels),
        ];
        let products = products.chunks_exact_mut(half.quarter.words());
        for (number, ((x, y), product)) in pairs.into_iter().zip(products).enumerate() {
            let next = number.checked_sub(3).and_then(|number| ahead[number]);
            multiply(fold, &Operands { x, y, rows: depth, next }, &whole, product, step);
        }
    }
    combine(fold, &half, products, grid, c, into);
    let done = (2 * half.x_panels, 2 * half.y_panels);
    let bottom = Target { row_window: done.0..grid.rows, ..Target::whole(grid) };
    multiply(fold, operands, &bottom, c, into);
    let right = Target { row_window: 0..done.0, col_window: done.1..grid.cols, ..Target::whole(grid) };
    multiply(fold, operands, &right, c, into);
    if !rows.is_multiple_of(2) {
        let last = Operands { x: x.from(0, rows - 1), y: y.from(0, rows - 1), rows: 1, next: None };
        let inner = Target { row_window: 0..done.0, col_window: 0..done.1, ..Target::whole(grid) };
        multiply(fold, &last, &inner, c, Into::Add);
    }
}

/// Four sums of the four quarters of an operand over one slab, one after the other in `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn form_sums(quarters: [Panels<'_>; 4], out: &mut [u64], depth: usize, sums_of: impl Fn([__m512i; 4]) -> [__m512i; 4]) {
    let words = out.len() / 4;
    for panel in 0..words / (depth * BLOCK) {
        let inputs = quarters.map(|quarter| &quarter.words[panel * quarter.stride..][..depth * BLOCK]);
        for offset in (0..depth * BLOCK).step_by(BLOCK) {
            // SAFETY: each input has `depth * BLOCK` words, and `out` four times `words`.
            unsafe {
                let sums = sums_of(inputs.map(|input| _mm512_loadu_si512(input.as_ptr().add(offset).cast())));
                for (number, sum) in sums.into_iter().enumerate() {
                    let at = number * words + panel * depth * BLOCK + offset;
                    _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), sum);
                }
            }
        }
    }
}

/// Writes the quarters of C from the seven products.
#[target_feature(enable = "avx512f,avx512ifma")]
fn combine(fold: &Fold, half: &Halves, products: &[u64], grid: BlockGrid, c: &mut [u64], into: Into) {
    let words = half.quarter.words();
    let load = |number: usize, index: usize| load_block(&products[number * words..][..words], index);
    let add = |a: [__m512i; BLOCK], b: [__m512i; BLOCK]| -> [__m512i; BLOCK] {
        std::array::from_fn(|column| fold.add(a[column], b[column]))
    };
    let mut store = |row: usize, col: usize, value: [__m512i; BLOCK]| {
        let index = grid.index(row, col);
        let value = if into == Into::Add { add(load_block(c, index), value) } else { value };
        let block = &mut c[index * BLOCK_WORDS..][..BLOCK_WORDS];
        for (column, vector) in value.into_iter().enumerate() {
            // SAFETY: the block has 64 words.
            unsafe { _mm512_storeu_si512(block.as_mut_ptr().add(column * BLOCK).cast(), vector) };
        }
    };
    for col in 0..half.y_panels {
        for row in 0..half.x_panels {
            let index = half.quarter.index(row, col);
            let [p1, p2, p3, p4, p5, p6, p7] = std::array::from_fn(|number| load(number, index));
            let u2 = add(p1, p6);
            let u3 = add(u2, p7);
            let less: [__m512i; BLOCK] = std::array::from_fn(|column| fold.subtract(u3[column], p4[column]));
            store(row, col, add(p1, p2));
            store(row, half.y_panels + col, add(add(u2, p5), p3));
            store(half.x_panels + row, col, less);
            store(half.x_panels + row, half.y_panels + col, add(u3, p5));
        }
    }
}
