//! Chooses for each product, whole or part of a larger one, between the classical way and the sub-cubic schemes.
//!
//! `symmetric` and `winograd` call back here for their own products, so that large ones use several levels.
#![forbid(unsafe_code)]

mod sums;
mod symmetric;
mod winograd;

use super::lanes::I16Isa;
use super::product::{self, I16Multiply, I16Operands, depth_of_passes};
use super::tables::ProductConstants;
use crate::kernels::area::{Area, Target};
use crate::plan::{BLOCK_WORDS, BlockGrid};

/// The largest number of rows of each half that are added up at a time, so that the sums stay in a cache.
const SLAB_ROWS: usize = 2048;

/// Fewest panels on either side for which a level pays (measured). Unit tests see several levels of small products.
/// Plans count with these, since no part of a product needs more scratch with fewer levels.
const LEAST_PANELS: usize = if cfg!(test) { 4 } else { 28 };

/// The same where vectors have 512 bits, so that sums and copies take a larger part of the time.
const LEAST_PANELS_OF_WIDE: usize = if cfg!(test) { 5 } else { 40 };

/// Fewest rows for which a level pays: results are combined once a product.
const LEAST_ROWS: usize = if cfg!(test) { 32 } else { 512 };

/// Residues of 16 bits in a word.
const RESIDUES_PER_WORD: usize = 4;

/// The destination of a product, and the memory that it may overwrite during the computation.
pub struct I16Work<'a> {
    /// The plane.
    pub c: &'a mut [i16],
    /// Whether the product is added to C.
    pub adds: bool,
    /// At least [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Constants that all products of one prime share.
#[derive(Clone, Copy)]
pub struct Modular<'a> {
    /// The instructions that multiply.
    pub isa: I16Isa,
    /// The prime and its constants.
    pub factors: &'a ProductConstants,
}

impl Modular<'_> {
    /// Fewest panels on either side for which a level pays.
    fn least_panels(self) -> usize {
        if self.isa.is_wide() { LEAST_PANELS_OF_WIDE } else { LEAST_PANELS }
    }

    /// `C := C + X^T Y` or `C := X^T Y` on the blocks of `target`, block by block.
    pub fn multiply(self, operands: I16Operands<'_>, target: &Target, I16Work { c, adds, scratch }: I16Work<'_>) {
        I16Multiply { field: self.factors.field, operands, target, c, adds, scratch }.run_on(self.isa);
    }
}

/// The method of one product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum I16Scheme {
    /// Block by block.
    Classical,
    /// Five products of parts, for a triangle: see `symmetric`.
    Symmetric,
    /// Seven products of parts, for a rectangle: see `winograd`.
    Winograd,
}

impl I16Scheme {
    /// For a product over `rows` rows into an area of this shape, where a level pays from `least` panels on.
    fn choose(rows: usize, shape: BlockGrid, least: usize) -> I16Scheme {
        match rows >= LEAST_ROWS && shape.rows.min(shape.cols) >= least {
            true if shape.triangle => I16Scheme::Symmetric,
            true => I16Scheme::Winograd,
            false => I16Scheme::Classical,
        }
    }
}

/// Words of scratch for a product over up to `rows` rows into an area of this shape.
pub fn scratch_words(rows: usize, shape: BlockGrid) -> usize {
    let schemes = match I16Scheme::choose(rows, shape, LEAST_PANELS) {
        I16Scheme::Classical => 0,
        I16Scheme::Symmetric => symmetric::scratch_words(rows, shape.rows),
        I16Scheme::Winograd => winograd::scratch_words(rows, shape),
    };
    // The remainder is done classically, over all rows and over the few last ones.
    schemes.max(product::scratch_words(rows, shape.cols))
}

/// Rows of each half that one slab takes.
fn slab_rows(half_rows: usize) -> usize {
    depth_of_passes(half_rows, SLAB_ROWS)
}

/// The most rows of [`slab_rows`] for up to `half_rows` rows of a half: slabs are equal, so that a few rows more may
/// make shorter ones.
fn most_slab_rows(half_rows: usize) -> usize {
    half_rows.min(SLAB_ROWS)
}

/// Words of a plane of `blocks` blocks.
fn plane_words(blocks: usize) -> usize {
    blocks * BLOCK_WORDS / RESIDUES_PER_WORD
}

/// `C := C + X^T Y` or `C := X^T Y` on an area.
pub fn multiply_area(modular: Modular<'_>, operands: I16Operands<'_>, area: &Area, work: I16Work<'_>) {
    match I16Scheme::choose(operands.rows, area.shape(), modular.least_panels()) {
        I16Scheme::Classical => {
            let (m, n) = area.panels();
            modular.multiply(operands, &area.target(0..m, 0..n), work);
        }
        I16Scheme::Symmetric => symmetric::multiply_triangle(modular, operands, area, work),
        I16Scheme::Winograd => winograd::multiply_rectangle(modular, operands, area, work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::i16::lanes::INTERLEAVED;

    #[test]
    fn scratch_covers_all_products_of_fewer_rows() {
        for panels in [3, 4, 7, 9, 17, 33, 65, 70] {
            for triangle in [false, true] {
                let area = BlockGrid { rows: panels, cols: panels + usize::from(!triangle), triangle };
                let mut most = 0;
                for rows in (0..9_000).step_by(3).chain(9_000..9_050) {
                    let words = scratch_words(rows, area);
                    assert!(words >= most, "{rows} rows, {panels} panels: {words} words, before {most}");
                    let half = rows / 2 / INTERLEAVED * INTERLEAVED;
                    assert!(slab_rows(half) <= most_slab_rows(half).max(INTERLEAVED), "{rows} rows");
                    most = words;
                }
            }
        }
    }
}
