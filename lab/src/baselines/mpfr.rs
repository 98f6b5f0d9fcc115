//! The plain MPFR product: three nested loops, blocked for the cache, `mpfr_mul` and `mpfr_add`.
//!
//! Sums run over k in ascending order with two roundings per term. `mpfr_fma`, which rounds once,
//! was slower in most runs from 128 to 4096 bits, as it forms the whole product.
//! With one thread a run allocates one temporary; with more, columns of the result are distributed.

use gmp_mpfr_sys::mpfr;
use rug::{Assign, Float};

use super::problem::entry_index;
use super::{Baseline, Operation, Problem, Workers};

/// Columns of the result per block, in both directions.
const BLOCK_COLS: usize = 16;

/// Terms per block: two blocks of operands at 512 bits then take a quarter of a megabyte.
const BLOCK_ROWS: usize = 64;

/// The baseline `mpfr`.
pub(super) struct Mpfr {
    shape: Shape,
    precision_bits: u32,
    threads: usize,
    workers: Workers,
    left: Vec<Float>,
    /// Empty for `Operation::Syrk`, where the left operand is also the right one.
    right: Vec<Float>,
    /// Column-major and square; above the diagonal unused for `Operation::Syrk`.
    result: Vec<Float>,
}

impl Mpfr {
    /// Copies the operands and allocates the result.
    pub(super) fn new(problem: Problem) -> Result<Self, String> {
        Ok(Self {
            shape: Shape { operation: problem.operation, rows: problem.rows, cols: problem.cols },
            precision_bits: problem.precision_bits,
            threads: problem.threads,
            workers: Workers::new(problem.threads)?,
            left: problem.a.to_vec(),
            right: problem.b.map(<[Float]>::to_vec).unwrap_or_default(),
            result: vec![Float::new(problem.precision_bits); problem.cols * problem.cols],
        })
    }
}

impl Baseline for Mpfr {
    fn name(&self) -> &'static str {
        "mpfr"
    }

    fn form(&self) -> String {
        let version = mpfr::VERSION_MAJOR;
        let (minor, patch) = (mpfr::VERSION_MINOR, mpfr::VERSION_PATCHLEVEL);
        format!("MPFR {version}.{minor}.{patch} mpfr_mul + mpfr_add, blocked triple loop, {} thread(s)", self.threads)
    }

    fn run(&mut self) {
        let shape = self.shape;
        let (left, precision_bits) = (&self.left, self.precision_bits);
        let right = if shape.operation == Operation::Syrk { left } else { &self.right };
        let bands = self.result.chunks_mut((shape.cols * BLOCK_COLS).max(1)).enumerate();
        self.workers.for_each(
            bands,
            || Float::new(precision_bits),
            |product, (band_index, entries)| {
                let first_col = band_index * BLOCK_COLS;
                multiply_band(shape, first_col, &mut Band { entries, product }, left, &right[first_col * shape.rows..]);
            },
        );
    }

    fn entry(&self, i: usize, j: usize) -> Float {
        self.result[entry_index(self.shape.operation, self.shape.cols, i, j)].clone()
    }
}

/// The shape of the product, as every band of it needs it.
#[derive(Clone, Copy)]
struct Shape {
    operation: Operation,
    rows: usize,
    cols: usize,
}

impl Shape {
    /// The first wanted row of a column of the result.
    fn first_row(self, col: usize) -> usize {
        if self.operation == Operation::Syrk { col } else { 0 }
    }
}

/// A few whole columns of the result, with scratch for one product.
struct Band<'a> {
    entries: &'a mut [Float],
    product: &'a mut Float,
}

/// Fills whole columns of the result, from `first_col` on, with dot products of the columns of
/// `left` and those of `right`; the first column of `right` belongs to the first of the band.
fn multiply_band(shape: Shape, first_col: usize, band: &mut Band, left: &[Float], right: &[Float]) {
    let Shape { rows, cols, .. } = shape;
    let Band { entries, product } = band;
    for (j, column) in entries.chunks_mut(cols).enumerate() {
        column[shape.first_row(first_col + j)..].iter_mut().for_each(|sum| sum.assign(0));
    }
    for k0 in (0..rows).step_by(BLOCK_ROWS) {
        let terms = k0..rows.min(k0 + BLOCK_ROWS);
        for i0 in (shape.first_row(first_col)..cols).step_by(BLOCK_COLS) {
            for (j, column) in entries.chunks_mut(cols).enumerate() {
                let y = &right[j * rows..][terms.clone()];
                for i in i0.max(shape.first_row(first_col + j))..cols.min(i0 + BLOCK_COLS) {
                    add_products(&mut column[i], product, &left[i * rows..][terms.clone()], y);
                }
            }
        }
    }
}

/// Adds `x_k y_k` for every k in turn; `product` is scratch of the same precision.
fn add_products(sum: &mut Float, product: &mut Float, x: &[Float], y: &[Float]) {
    for (x, y) in x.iter().zip(y) {
        product.assign(x * y);
        *sum += &*product;
    }
}
