//! Chooses for each product, whole or part of a larger one, between the classical way and the sub-cubic schemes.
//!
//! `symmetric` and `winograd` call back here for their own products, so that large ones use several levels.

mod symmetric;
mod winograd;

use crate::kernels::area::Area;
use crate::kernels::x86_64::ifma52::micro::Fold;
use crate::kernels::x86_64::ifma52::product::{Ifma52Operands, KC, Store, depth_of_passes, multiply};
use crate::plan::BlockGrid;

/// The destination of a product, and the memory that it may overwrite during the computation.
pub struct Ifma52Work<'a> {
    /// The plane.
    pub c: &'a mut [u64],
    /// The combination of the product with its old words.
    pub into: Store,
    /// At least [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Constants that all products of one prime share.
#[derive(Clone, Copy)]
pub struct PrimeConstants<'a> {
    /// Reduces modulo the prime.
    pub fold: &'a Fold,
    /// A square root of -1.
    pub root: u64,
}

/// The method of one product.
#[derive(Clone, Copy)]
enum Ifma52Scheme {
    /// Block by block.
    Classical,
    /// Five products of parts, for a triangle: see `symmetric`.
    Symmetric,
    /// Seven products of parts, for a rectangle: see `winograd`.
    Winograd,
}

impl Ifma52Scheme {
    /// For a product over `rows` rows into an area of this shape.
    fn choose(rows: usize, shape: BlockGrid) -> Ifma52Scheme {
        let BlockGrid { rows: m, cols: n, triangle } = shape;
        if triangle && symmetric::pays(rows, m) {
            Ifma52Scheme::Symmetric
        } else if !triangle && winograd::pays(rows, m, n) {
            Ifma52Scheme::Winograd
        } else {
            Ifma52Scheme::Classical
        }
    }

    /// Words of scratch.
    fn scratch_words(self, rows: usize, shape: BlockGrid) -> usize {
        match self {
            Ifma52Scheme::Classical => 0,
            Ifma52Scheme::Symmetric => symmetric::scratch_words(rows, shape.rows),
            Ifma52Scheme::Winograd => winograd::scratch_words(rows, shape.rows, shape.cols),
        }
    }

    /// `C := C + X^T Y` or `C := X^T Y` on an area.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn multiply(self, field: PrimeConstants<'_>, operands: &Ifma52Operands<'_>, area: &Area, work: Ifma52Work<'_>) {
        match self {
            Ifma52Scheme::Classical => {
                let (m, n) = area.panels();
                multiply(field.fold, operands, &area.target(0..m, 0..n), work.c, work.into);
            }
            Ifma52Scheme::Symmetric => symmetric::multiply_triangle(field, operands, area, work),
            Ifma52Scheme::Winograd => winograd::multiply_rectangle(field, operands, area, work),
        }
    }
}

/// Words of scratch for a product over `rows` rows into an area of this shape.
pub fn scratch_words(rows: usize, shape: BlockGrid) -> usize {
    Ifma52Scheme::choose(rows, shape).scratch_words(rows, shape)
}

/// The most words of [`scratch_words`] for up to `rows` rows.
///
/// Slabs are cut evenly, so that a little more rows may need less; most takes a single slab of full depth.
pub fn most_scratch_words(rows: usize, shape: BlockGrid) -> usize {
    let full = 2 * most_slab_rows(shape.rows.min(shape.cols) / 2);
    scratch_words(rows.min(full), shape)
}

/// Rows of each half that one slab takes, where the halves are to be cut into parts of `panels` panels.
pub fn slab_rows(half_rows: usize, panels: usize) -> usize {
    depth_of_passes(half_rows, most_slab_rows(panels))
}

fn most_slab_rows(panels: usize) -> usize {
    if panels >= winograd::LEAST_PANELS { 2 * KC } else { KC }
}

/// `C := C + X^T Y` or `C := X^T Y` on an area.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn multiply_area(field: PrimeConstants<'_>, operands: &Ifma52Operands<'_>, area: &Area, work: Ifma52Work<'_>) {
    Ifma52Scheme::choose(operands.rows, area.shape()).multiply(field, operands, area, work);
}
