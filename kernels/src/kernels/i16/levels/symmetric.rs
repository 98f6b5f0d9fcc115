//! `X^T X` by five block products: one level below the classical count, exact modulo any odd prime.
//!
//! With `A = X^T` in halves of columns and of rows, and `Y` with `Y Y^T = -1`:
//! `S1 = (A21 - A11) Y`, `S2 = A22 - A21 Y`, `S3 = S1 - A22`, `S4 = S3 + A12`;
//! `P1 = A11 A11^T`, `P2 = A12 A12^T`, `P3 = A22 S4^T`, `P4 = S1 S2^T`, `P5 = S3 S3^T`;
//! `C11 = P1 + P2`, `C21 = P1 + P5 + P4 + P3`, `C22 = P1 + P5 + P4 + P4^T`.
//! Three of the products are triangles: 3.5 half-size squares instead of 4. P2 and P3 go straight into C11 and C21.
//! `Y` is made of blocks `(a, -b; b, a)` on its diagonal with `a^2 + b^2 = -1`, which act on pairs of rows.
//! Source: Dumas, Pernet, Sedoglavic, ISSAC 2020 (arXiv 2001.04109).
#![forbid(unsafe_code)]

use super::sums::OperandQuarters;
use super::{
    I16Scheme, I16Work, LEAST_PANELS, Modular, RESIDUES_PER_WORD, most_slab_rows, multiply_area, plane_words, slab_rows,
};
use crate::kernels::area::Area;
use crate::kernels::i16::lanes::{I16Task, INTERLEAVED, Lanes};
use crate::kernels::i16::operand::{I16Operand, SchemeSums};
use crate::kernels::i16::product::I16Operands;
use crate::kernels::i16::rules::{SymmetricSums, plus, put};
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};

/// Words of scratch for up to `rows` rows.
pub fn scratch_words(rows: usize, panels: usize) -> usize {
    let half = I16SymmetricHalves::of_most_words(rows, panels);
    let inner = |shape| super::scratch_words(half.slab, shape);
    let own = 2 * plane_words(half.triangle.len()) + plane_words(half.square.len()) + half.sum_words();
    own + inner(half.triangle).max(inner(half.square))
}

/// How the operand is cut: an odd number of panels is made even by one more, of zeros or of any words that follow,
/// whose part of C does not exist and whose share of the other parts cancels; the few rows that may be left are done
/// classically.
struct I16SymmetricHalves {
    panels: usize,
    rows: usize,
    slab: usize,
    triangle: BlockGrid,
    square: BlockGrid,
    least: usize,
}

impl I16SymmetricHalves {
    fn new(rows: usize, panels: usize, least: usize) -> I16SymmetricHalves {
        let (panels, rows) = (panels.div_ceil(2), rows / 2 / INTERLEAVED * INTERLEAVED);
        let columns = panels * BLOCK;
        let (triangle, square) = (BlockGrid::triangle(columns), BlockGrid::rectangle(columns, columns));
        I16SymmetricHalves { panels, rows, slab: slab_rows(rows), triangle, square, least }
    }

    /// As [`I16SymmetricHalves::new`], with the slab of up to `rows` rows that takes most words.
    fn of_most_words(rows: usize, panels: usize) -> I16SymmetricHalves {
        let half = I16SymmetricHalves::new(rows, panels, LEAST_PANELS);
        I16SymmetricHalves { slab: most_slab_rows(half.rows), ..half }
    }

    /// Words of the sums, where they are not formed while they are packed.
    fn sum_words(&self) -> usize {
        if self.is_last(self.slab) { 0 } else { 4 * self.panels * self.slab * BLOCK / RESIDUES_PER_WORD }
    }

    /// Whether products of halves over `depth` rows are classical.
    fn is_last(&self, depth: usize) -> bool {
        I16Scheme::choose(depth, self.triangle, self.least) == I16Scheme::Classical
    }
}

/// `C := C + X^T X` or `C := X^T X` for a triangle.
pub fn multiply_triangle(modular: Modular<'_>, operands: I16Operands<'_>, area: &Area, work: I16Work<'_>) {
    let I16Work { c, adds, scratch } = work;
    let half = I16SymmetricHalves::new(operands.rows, area.rows.len(), modular.least_panels());
    let (x, rows) = (operands.x.panels(), operands.rows);
    let (triangle_words, h) = (plane_words(half.triangle.len()), half.panels);
    let (products, rest) = scratch.split_at_mut(2 * triangle_words + plane_words(half.square.len()));
    let (p1, others) = bytemuck::cast_slice_mut::<u64, i16>(products).split_at_mut(half.triangle.len() * BLOCK_WORDS);
    let (p5, p4) = others.split_at_mut(half.triangle.len() * BLOCK_WORDS);
    let (sums, inner) = rest.split_at_mut(half.sum_words());
    let sums: &mut [i16] = bytemuck::cast_slice_mut(sums);
    let (triangle, square) = (Area::whole(half.triangle), Area::whole(half.square));
    let (top_left, bottom_left) = (area.part(0..h, 0..h), area.part(h..area.rows.len(), 0..h));
    let rule = SymmetricSums { prime: modular.factors.field.prime, rotation: modular.factors.rotation };
    for first in (0..half.rows).step_by(half.slab) {
        let depth = half.slab.min(half.rows - first);
        let (own, shared) = (first > 0, first > 0 || adds);
        let (a11, a12) = (x.from(0, first), x.from(0, half.rows + first));
        let (a21, a22) = (x.from(h, first), x.from(h, half.rows + first));
        let parts = OperandQuarters { parts: [a11, a12, a21, a22], panels: h, depth };
        let out = if half.is_last(depth) { None } else { Some(&mut *sums) };
        let [s1, s2, s3, s4] = parts.sums(modular.isa, SchemeSums::Symmetric(rule), out);
        let [a11, a12, a22] = [a11, a12, a22].map(I16Operand::Panels);
        let mut part = |x, y, area: &Area, c: &mut [i16], adds| {
            multiply_area(modular, I16Operands { x, y, rows: depth }, area, I16Work { c, adds, scratch: inner });
        };
        part(a11, None, &triangle, p1, own);
        part(a12, None, &top_left, c, shared);
        part(a22, Some(s4), &bottom_left, c, shared);
        part(s3, None, &triangle, p5, own);
        part(s1, Some(s2), &square, p4, own);
    }
    let prime = modular.factors.field.prime.value();
    modular.isa.run(SymmetricCombine { prime, half: &half, products: [p1, p4, p5], area, c: &mut *c, adds });
    let panels = area.rows.len();
    if 2 * half.rows < rows {
        let last = I16Operands { x: I16Operand::Panels(x.from(0, 2 * half.rows)), y: None, rows: rows - 2 * half.rows };
        modular.multiply(last, &area.target(0..panels, 0..panels), I16Work { c, adds: true, scratch });
    }
}

/// Adds to C the products in scratch: C11 and C21 have P2 and P3 already.
struct SymmetricCombine<'a> {
    prime: i16,
    half: &'a I16SymmetricHalves,
    /// P1, P4 and P5.
    products: [&'a [i16]; 3],
    area: &'a Area,
    c: &'a mut [i16],
    /// Whether the product is added to C22.
    adds: bool,
}

impl I16Task for SymmetricCombine<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let SymmetricCombine { prime, half, products, area, c, adds } = self;
        let [p1, p4, p5] = products.map(|product| product.as_chunks::<BLOCK_WORDS>().0);
        let (c, h) = (c.as_chunks_mut::<BLOCK_WORDS>().0, half.panels);
        for col in 0..h {
            for row in 0..h {
                let lower = half.triangle.index(row.max(col), row.min(col));
                let symmetric = plus(&p1[lower], &p5[lower]);
                let mirrored = if row < col { L::transpose(&symmetric) } else { symmetric };
                let both = plus(&mirrored, &p4[half.square.index(row, col)]);
                let is_there = h + row < area.rows.len();
                if is_there {
                    put(prime, &mut c[area.index(h + row, col)], &both, true);
                }
                if row >= col {
                    let across = L::transpose(&p4[half.square.index(col, row)]);
                    if is_there {
                        put(prime, &mut c[area.index(h + row, h + col)], &plus(&both, &across), adds);
                    }
                    put(prime, &mut c[area.index(row, col)], &p1[lower], true);
                }
            }
        }
    }
}
