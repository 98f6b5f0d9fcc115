//! Plain MPFR loops over a triangular factor: Cholesky, one triangular system, the two of a solve.
//!
//! A factor is kept row by row, its rows up to the diagonal only, and right-hand sides column by column, so that all
//! sums run over consecutive numbers. Loops are blocked for the cache; sums run in ascending order with two roundings
//! per term, as in the product of the same name. Factoring and the forward system are left-looking: a block of entries
//! takes all terms before it, block of terms by block of terms. The backward system subtracts each row of the factor,
//! times its unknowns, from the rest of the right-hand sides.
//! With one thread a run allocates one temporary; with more, rows of the factor or right-hand sides are distributed, so
//! a single right-hand side is the work of one thread.

use std::ops::Range;

use gmp_mpfr_sys::mpfr;
use rug::float::Special;
use rug::{Assign, Float};

use super::{Baseline, Operation, Problem, Workers};

/// Rows of the factor per block, and rows or right-hand sides that go through it together.
const BLOCK_ROWS: usize = 16;

/// Terms per block: two blocks of rows at 512 bits then take a quarter of a megabyte.
const BLOCK_TERMS: usize = 64;

/// The baseline `mpfr` for operations with a triangular factor.
pub(super) struct FactorMpfr {
    operation: Operation,
    precision_bits: u32,
    threads: usize,
    workers: Workers,
    /// The lower triangle of the first operand.
    left: Vec<Vec<Float>>,
    /// The columns of the right-hand sides; none for a factorisation.
    right: Vec<Vec<Float>>,
    /// The rows of the factor, or the columns of the solution.
    result: Vec<Vec<Float>>,
}

impl FactorMpfr {
    /// Copies the operands and allocates the result.
    pub(super) fn new(problem: Problem) -> Result<Self, String> {
        let rows = problem.rows;
        let row = |i: usize| (0..=i).map(|j| problem.a[j * rows + i].clone()).collect::<Vec<_>>();
        let left = (0..rows).map(row).collect::<Vec<_>>();
        let entries = problem.b.unwrap_or_default();
        let right = (0..if problem.b.is_some() { problem.cols } else { 0 })
            .map(|j| entries[j * rows..][..rows].to_vec())
            .collect::<Vec<_>>();
        let model = if problem.operation == Operation::Cholesky { &left } else { &right };
        let zeros = |row: &Vec<Float>| vec![Float::new(problem.precision_bits); row.len()];
        Ok(Self {
            operation: problem.operation,
            precision_bits: problem.precision_bits,
            threads: problem.threads,
            workers: Workers::new(problem.threads)?,
            result: model.iter().map(zeros).collect(),
            left,
            right,
        })
    }

    /// `L L^T = A`, block row by block row.
    fn factor(&mut self) {
        let bits = self.precision_bits;
        copy(&mut self.result, &self.left);
        for first in (0..self.result.len()).step_by(BLOCK_ROWS) {
            let end = self.result.len().min(first + BLOCK_ROWS);
            let (above, below) = self.result.split_at_mut(end);
            let block = &mut above[first..];
            factor_block(block, first, &mut Float::new(bits));
            let block = &above[first..];
            let bands = below.chunks_mut(BLOCK_ROWS);
            self.workers.for_each(
                bands,
                || Float::new(bits),
                |product, band| {
                    subtract_known(band, block, first, product);
                    solve_block(band, block, first, product);
                },
            );
        }
    }

    /// `L X = B`, and `L L^T X = B` where that is requested.
    fn solve(&mut self) {
        let (bits, factor) = (self.precision_bits, &self.left);
        let is_whole = self.operation == Operation::Solve;
        copy(&mut self.result, &self.right);
        let bands = self.result.chunks_mut(BLOCK_ROWS);
        self.workers.for_each(
            bands,
            || Float::new(bits),
            |product, band| {
                for (index, block) in factor.chunks(BLOCK_ROWS).enumerate() {
                    subtract_known(band, block, index * BLOCK_ROWS, product);
                    solve_block(band, block, index * BLOCK_ROWS, product);
                }
                if is_whole {
                    for (index, block) in factor.chunks(BLOCK_ROWS).enumerate().rev() {
                        solve_block_transposed(band, block, index * BLOCK_ROWS, product);
                    }
                }
            },
        );
    }
}

impl Baseline for FactorMpfr {
    fn name(&self) -> &'static str {
        "mpfr"
    }

    fn form(&self) -> String {
        let version = mpfr::VERSION_MAJOR;
        let (minor, patch) = (mpfr::VERSION_MINOR, mpfr::VERSION_PATCHLEVEL);
        let loops = match self.operation {
            Operation::Cholesky => "blocked left-looking loop",
            Operation::Trsm => "blocked forward substitution",
            _ => "blocked forward and backward substitution",
        };
        let usable = if self.operation == Operation::Cholesky { usize::MAX } else { self.right.len().max(1) };
        let threads = self.threads.min(usable);
        format!("MPFR {version}.{minor}.{patch} mpfr_mul + mpfr_sub, {loops}, {threads} thread(s)")
    }

    fn run(&mut self) {
        match self.operation {
            Operation::Cholesky => self.factor(),
            _ => self.solve(),
        }
    }

    fn entry(&self, i: usize, j: usize) -> Float {
        let (i, j) = if self.operation == Operation::Cholesky { (i.max(j), i.min(j)) } else { (j, i) };
        let entry = &self.result[i][j];
        // The square root of a negative pivot and all that comes of it.
        if entry.is_finite() { entry.clone() } else { Float::with_val(self.precision_bits, Special::Nan) }
    }
}

/// Copies all numbers, in the memory that is there.
fn copy(to: &mut [Vec<Float>], from: &[Vec<Float>]) {
    for (to, from) in to.iter_mut().flatten().zip(from.iter().flatten()) {
        to.assign(from);
    }
}

/// Turns a block of rows of A, the first of them row `first`, into rows of L; those above are done.
fn factor_block(block: &mut [Vec<Float>], first: usize, product: &mut Float) {
    for i in 0..block.len() {
        let (above, rest) = block.split_at_mut(i);
        subtract_known(&mut rest[..1], above, first, product);
        solve_block(&mut rest[..1], above, first, product);
        let (known, pivot) = rest[0].split_at_mut(first + i);
        subtract_products(&mut pivot[0], product, known, known);
        pivot[0].sqrt_mut();
    }
}

/// In each vector of the band, subtracts from the entries that belong to the rows of `block` the contributions of the
/// entries before `first`, where the block begins.
fn subtract_known(band: &mut [Vec<Float>], block: &[Vec<Float>], first: usize, product: &mut Float) {
    for start in (0..first).step_by(BLOCK_TERMS) {
        let terms: Range<usize> = start..first.min(start + BLOCK_TERMS);
        for vector in band.iter_mut() {
            let (known, rest) = vector.split_at_mut(first);
            for (entry, row) in rest.iter_mut().zip(block) {
                subtract_products(entry, product, &known[terms.clone()], &row[terms.clone()]);
            }
        }
    }
}

/// Forward substitution in each vector of the band with the diagonal block of `block`, which begins at `first`.
fn solve_block(band: &mut [Vec<Float>], block: &[Vec<Float>], first: usize, product: &mut Float) {
    for vector in band {
        for (j, row) in block.iter().enumerate() {
            let (known, rest) = vector[first..].split_at_mut(j);
            subtract_products(&mut rest[0], product, known, &row[first..first + j]);
            rest[0] /= &row[first + j];
        }
    }
}

/// Backward substitution with the rows of `block`, which begins at `first`: their unknowns, then all entries above.
fn solve_block_transposed(band: &mut [Vec<Float>], block: &[Vec<Float>], first: usize, product: &mut Float) {
    for vector in band.iter_mut() {
        for (j, row) in block.iter().enumerate().rev() {
            let (above, rest) = vector.split_at_mut(first + j);
            rest[0] /= &row[first + j];
            subtract_multiple(&mut above[first..], product, &rest[0], &row[first..first + j]);
        }
    }
    for start in (0..first).step_by(BLOCK_TERMS) {
        let terms: Range<usize> = start..first.min(start + BLOCK_TERMS);
        for vector in band.iter_mut() {
            let (above, rest) = vector.split_at_mut(first);
            for (unknown, row) in rest.iter().zip(block) {
                subtract_multiple(&mut above[terms.clone()], product, unknown, &row[terms.clone()]);
            }
        }
    }
}

/// Takes `x_k y_k` off a sum for every k in turn; `product` is scratch of the same precision.
fn subtract_products(sum: &mut Float, product: &mut Float, x: &[Float], y: &[Float]) {
    for (x, y) in x.iter().zip(y) {
        product.assign(x * y);
        *sum -= &*product;
    }
}

/// Takes `factor x_k` off entry k for every k; `product` is scratch of the same precision.
fn subtract_multiple(entries: &mut [Float], product: &mut Float, factor: &Float, x: &[Float]) {
    for (entry, x) in entries.iter_mut().zip(x) {
        product.assign(factor * x);
        *entry -= &*product;
    }
}
