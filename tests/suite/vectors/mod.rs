//! Verbs on vectors: every entry against exact sums, over shapes, strides, triangles and exponents.

mod products;
mod refusals;
mod triangles;
mod updates;

use crate::common::oracle::Exact;
use crate::common::{Kind, Rng, matrix};
use std::cmp::Ordering;
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

fn magnitude(value: &Exact) -> Exact {
    Exact { integer: value.integer.clone().abs(), exponent: value.exponent }
}

/// The sum of some numbers, and of their magnitudes.
fn sums(terms: &[Exact]) -> (Exact, Exact) {
    let add = |sum: Exact, term: Exact| sum.plus(term);
    let sizes = terms.iter().map(magnitude).fold(Exact::zero(), add);
    (terms.iter().cloned().fold(Exact::zero(), add), sizes)
}

/// Asserts `|got - sum of terms| <= 2^(1 - bits) (sum of their magnitudes)`.
fn assert_beside_terms(got: &Exact, terms: &[Exact], bits: u32, label: &str) {
    let (sum, size) = sums(terms);
    let error = magnitude(&sum.negated().plus(got.clone()));
    let promise = Exact { exponent: size.exponent + 1 - i64::from(bits), ..size };
    assert_ne!(error.compare(&promise), Ordering::Greater, "{label}: beyond the promise");
}
