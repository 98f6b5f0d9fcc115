//! Verbs on vectors: every entry against exact sums, over shapes, strides, triangles and exponents.

mod hadamard;
mod products;
mod refusals;
mod sparse;
mod triangles;
mod updates;

use crate::common::oracle::Exact;
use crate::common::{Kind, Rng, matrix};
use sunzi::{Context, Matrix, MatrixView};

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

/// A matrix of which a vector is a piece: a column, a row, or a piece of either inside a larger matrix.
struct Lying {
    matrix: Matrix,
    len: usize,
    row: bool,
    inside: bool,
}

impl Lying {
    fn new(kind: Kind, len: usize, bits: u32, seed: u64) -> Lying {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let (row, inside) = (rng.coin(), rng.coin());
        let around = if inside { 2 } else { 0 };
        let (rows, cols) = if row { (1, len) } else { (len, 1) };
        Lying { matrix: matrix(kind, rows + around, cols + around, bits, seed), len, row, inside }
    }

    fn view(&self) -> MatrixView<'_> {
        let first = usize::from(self.inside);
        let (rows, cols) = if self.row { (1, self.len) } else { (self.len, 1) };
        self.matrix.view().block(first..first + rows, first..first + cols).unwrap()
    }

    /// Entry `index`, exactly.
    fn at(&self, index: usize) -> Exact {
        entry(&self.view(), index)
    }
}

/// An entry of a row or a column, exactly.
fn entry(view: &MatrixView<'_>, index: usize) -> Exact {
    if view.rows() == 1 { Exact::entry(view, 0, index) } else { Exact::entry(view, index, 0) }
}
