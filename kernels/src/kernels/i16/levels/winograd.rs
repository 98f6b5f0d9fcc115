//! `X^T Y` by seven block products: one level of Strassen's method in Winograd's form, exact modulo a prime.
//!
//! With `A = X^T` and `B = Y` in halves: `S1 = A21 + A22`, `S2 = S1 - A11`, `S3 = A11 - A21`, `S4 = A12 - S2`;
//! `T1 = B12 - B11`, `T2 = B22 - T1`, `T3 = B22 - B12`, `T4 = B21 - T2`;
//! `P1 = A11 B11`, `P2 = A12 B21`, `P3 = S4 B22`, `P4 = A22 T4`, `P5 = S1 T1`, `P6 = S2 T2`, `P7 = S3 T3`;
//! `C11 = P1 + P2`, `C12 = P1 + P6 + P5 + P3`, `C21 = P1 + P6 + P7 + P4`, `C22 = P1 + P6 + P7 + P5`.
//! P2, P3 and P4 go straight into C11, C12 and C21. The sums are formed slab by slab, so that they stay in cache.
//! Source: Winograd 1971; Strassen 1969.
#![forbid(unsafe_code)]

use super::sums::OperandQuarters;
use super::{
    I16Scheme, I16Work, LEAST_PANELS, Modular, RESIDUES_PER_WORD, most_slab_rows, multiply_area, plane_words, slab_rows,
};
use crate::kernels::area::Area;
use crate::kernels::i16::lanes::{I16Task, INTERLEAVED, Lanes};
use crate::kernels::i16::operand::{I16Operand, SchemeSums};
use crate::kernels::i16::product::I16Operands;
use crate::kernels::i16::rules::{WinogradLeft, WinogradRight, plus, put};
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};

/// Words of scratch for up to `rows` rows.
pub fn scratch_words(rows: usize, shape: BlockGrid) -> usize {
    let half = I16WinogradHalves::of_most_words(rows, shape);
    4 * plane_words(half.quarter.len()) + half.sum_words() + super::scratch_words(half.slab, half.quarter)
}

/// How the operands are cut: an odd number of panels is made even by one more, of zeros or of any words that follow,
/// whose part of C does not exist and whose share of the other parts cancels; the few rows that may be left are done
/// classically.
struct I16WinogradHalves {
    x_panels: usize,
    y_panels: usize,
    rows: usize,
    slab: usize,
    quarter: BlockGrid,
    least: usize,
}

impl I16WinogradHalves {
    fn new(rows: usize, shape: BlockGrid, least: usize) -> I16WinogradHalves {
        let (x_panels, y_panels) = (shape.rows.div_ceil(2), shape.cols.div_ceil(2));
        let rows = rows / 2 / INTERLEAVED * INTERLEAVED;
        let quarter = BlockGrid { rows: x_panels, cols: y_panels, triangle: false };
        I16WinogradHalves { x_panels, y_panels, rows, slab: slab_rows(rows), quarter, least }
    }

    /// As [`I16WinogradHalves::new`], with the slab of up to `rows` rows that takes most words.
    fn of_most_words(rows: usize, shape: BlockGrid) -> I16WinogradHalves {
        let half = I16WinogradHalves::new(rows, shape, LEAST_PANELS);
        I16WinogradHalves { slab: most_slab_rows(half.rows), ..half }
    }

    /// Words of the sums, where they are not formed while they are packed.
    fn sum_words(&self) -> usize {
        if self.is_last(self.slab) {
            0
        } else {
            4 * (self.x_panels + self.y_panels) * self.slab * BLOCK / RESIDUES_PER_WORD
        }
    }

    /// Whether products of quarters over `depth` rows are classical.
    fn is_last(&self, depth: usize) -> bool {
        I16Scheme::choose(depth, self.quarter, self.least) == I16Scheme::Classical
    }
}

/// `C := C + X^T Y` or `C := X^T Y` for a rectangle.
pub fn multiply_rectangle(modular: Modular<'_>, operands: I16Operands<'_>, area: &Area, work: I16Work<'_>) {
    let I16Work { c, adds, scratch } = work;
    let half = I16WinogradHalves::new(operands.rows, area.shape(), modular.least_panels());
    let (x, y, rows) = (operands.x.panels(), operands.right().panels(), operands.rows);
    let (products, rest) = scratch.split_at_mut(4 * plane_words(half.quarter.len()));
    let products: &mut [i16] = bytemuck::cast_slice_mut(products);
    let (sums, inner) = rest.split_at_mut(half.sum_words());
    let sums: &mut [i16] = bytemuck::cast_slice_mut(sums);
    let (quarter, m, n) = (Area::whole(half.quarter), half.x_panels, half.y_panels);
    let (x_end, y_end) = area.panels();
    let corner =
        |row: usize, col: usize| area.part(row * m..((row + 1) * m).min(x_end), col * n..((col + 1) * n).min(y_end));
    let prime = modular.factors.field.prime;
    for first in (0..half.rows).step_by(half.slab) {
        let depth = half.slab.min(half.rows - first);
        let (own, shared, second) = (first > 0, first > 0 || adds, half.rows + first);
        let a = [x.from(0, first), x.from(0, second), x.from(m, first), x.from(m, second)];
        let b = [y.from(0, first), y.from(n, first), y.from(0, second), y.from(n, second)];
        let [left, right] = if half.is_last(depth) {
            [None, None]
        } else {
            let (left, right) = sums.split_at_mut(4 * m * depth * BLOCK);
            [Some(left), Some(right)]
        };
        let (of_a, of_b) =
            (OperandQuarters { parts: a, panels: m, depth }, OperandQuarters { parts: b, panels: n, depth });
        let [s1, s2, s3, s4] = of_a.sums(modular.isa, SchemeSums::Left(WinogradLeft(prime)), left);
        let [t1, t2, t3, t4] = of_b.sums(modular.isa, SchemeSums::Right(WinogradRight(prime)), right);
        let (a, b) = (a.map(I16Operand::Panels), b.map(I16Operand::Panels));
        let mut own_products = products.chunks_exact_mut(half.quarter.len() * BLOCK_WORDS);
        let [p1, p5, p6, p7] = std::array::from_fn(|_| own_products.next().expect("scratch holds four products"));
        let mut part = |x, y, area: &Area, c: &mut [i16], adds| {
            multiply_area(
                modular,
                I16Operands { x, y: Some(y), rows: depth },
                area,
                I16Work { c, adds, scratch: inner },
            );
        };
        part(a[0], b[0], &quarter, p1, own);
        part(a[1], b[2], &corner(0, 0), c, shared);
        part(a[3], t4, &corner(1, 0), c, shared);
        part(s4, b[3], &corner(0, 1), c, shared);
        part(s1, t1, &quarter, p5, own);
        part(s2, t2, &quarter, p6, own);
        part(s3, t3, &quarter, p7, own);
    }
    modular.isa.run(WinogradCombine { prime: prime.value(), half: &half, products, area, c: &mut *c, adds });
    if 2 * half.rows < rows {
        let [x, y] = [x, y].map(|operand| I16Operand::Panels(operand.from(0, 2 * half.rows)));
        let last = I16Operands { x, y: Some(y), rows: rows - 2 * half.rows };
        modular.multiply(last, &area.target(0..x_end, 0..y_end), I16Work { c, adds: true, scratch });
    }
}

/// Adds to C the products in scratch: three of its quarters have P2, P3 and P4 already.
struct WinogradCombine<'a> {
    prime: i16,
    half: &'a I16WinogradHalves,
    /// P1, P5, P6 and P7, one after the other.
    products: &'a [i16],
    area: &'a Area,
    c: &'a mut [i16],
    /// Whether the product is added to C22.
    adds: bool,
}

impl I16Task for WinogradCombine<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let WinogradCombine { prime, half, products, area, c, adds } = self;
        let (c, size) = (c.as_chunks_mut::<BLOCK_WORDS>().0, half.quarter.len());
        let products = products.as_chunks::<BLOCK_WORDS>().0;
        let (x_end, y_end) = area.panels();
        for col in 0..half.y_panels {
            for row in 0..half.x_panels {
                let index = half.quarter.index(row, col);
                let [p1, p5, p6, p7] = [0, 1, 2, 3].map(|number| &products[number * size + index]);
                let u2 = plus(p1, p6);
                let u3 = plus(&u2, p7);
                let (u4, u7) = (plus(&u2, p5), plus(&u3, p5));
                let (below, beside) = (half.x_panels + row, half.y_panels + col);
                // C11, C12, C21, C22: a panel that made a number of panels even is not there.
                for (row, col, value, adds) in [
                    (row, col, p1, true),
                    (row, beside, &u4, true),
                    (below, col, &u3, true),
                    (below, beside, &u7, adds),
                ] {
                    if row < x_end && col < y_end {
                        put(prime, &mut c[area.index(row, col)], value, adds);
                    }
                }
            }
        }
    }
}
