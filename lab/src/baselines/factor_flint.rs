//! FLINT's ball arithmetic on a triangular factor: `arb_mat_cho`, `arb_mat_solve_tril`, `arb_mat_solve_cho_precomp`.
//!
//! Native numbers are `arb` balls; the input has exact midpoints. A result is useful to a caller who needs b bits once
//! its radii are below `2^-b` of the rows' or columns' size, so the functions work at `b + guard_bits`, which
//! [`FactorFlint::form`] states together with the radii of the result. Only `arb_mat_solve_tril` uses threads: through
//! `arb_mat_mul`, from 40 right-hand sides on.

use std::ffi::{c_int, c_long};

use rug::Float;
use rug::float::Special;

use super::sys::{self, arb_mat_struct, arb_struct};
use super::{Baseline, Operation, Problem, flint_version, openblas, process_settings};

/// The baseline `flint` for operations with a triangular factor.
pub(super) struct FactorFlint {
    operation: Operation,
    precision_bits: u32,
    working_bits: c_long,
    threads: usize,
    left: BallMatrix,
    /// Empty for a factorisation.
    right: BallMatrix,
    result: BallMatrix,
    succeeded: bool,
}

impl FactorFlint {
    /// Copies the operands and allocates the result.
    pub(super) fn new(problem: Problem) -> Self {
        let Problem { operation, rows, cols, precision_bits, a, b, threads } = problem;
        Self {
            operation,
            precision_bits,
            working_bits: c_long::from(precision_bits + guard_bits(operation, rows)),
            threads,
            left: BallMatrix::from_floats(rows, rows, a),
            right: b.map_or_else(|| BallMatrix::new(0, 0), |b| BallMatrix::from_floats(rows, cols, b)),
            result: BallMatrix::new(rows, cols),
            succeeded: true,
        }
    }

    /// `log2` of the largest radius of the result over the size of its row (a factor) or column (a solution); negative
    /// infinity where all is exact.
    fn radius_log2(&self) -> f64 {
        let (rows, cols) = (self.result.rows(), self.result.cols());
        let line = |index: usize| match self.operation {
            Operation::Cholesky => (0..=index).map(|j| (index, j)).collect::<Vec<_>>(),
            _ => (0..rows).map(|i| (i, index)).collect(),
        };
        let lines = if self.operation == Operation::Cholesky { rows } else { cols };
        let of_line = |index: usize| {
            let places = line(index);
            let radius = places.iter().map(|&(i, j)| self.result.radius_log2(i, j)).fold(f64::NEG_INFINITY, f64::max);
            let squares = places.iter().map(|&(i, j)| self.result.midpoint(i, j, 64).square());
            let norm = squares.fold(Float::new(64), |sum, square| sum + square).sqrt();
            radius - norm.log2().to_f64()
        };
        (0..lines).map(of_line).filter(|ratio| !ratio.is_nan()).fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Baseline for FactorFlint {
    fn name(&self) -> &'static str {
        "flint"
    }

    fn form(&self) -> String {
        let (function, size, is_threaded) = match self.operation {
            Operation::Cholesky => ("arb_mat_cho", "sqrt(a_ii)", false),
            Operation::Trsm => ("arb_mat_solve_tril", "||x_j||", true),
            _ => ("arb_mat_solve_cho_precomp", "||x_j||", false),
        };
        let radius = match self.radius_log2() {
            ratio if ratio.is_finite() => format!("radii below 2^{:.0} {size}", ratio.ceil()),
            _ => "radii 0".to_owned(),
        };
        let threads = if is_threaded { self.threads } else { 1 };
        let (version, bits) = (flint_version(), self.working_bits);
        format!("FLINT {version} {function} at {bits} bits, {radius}, {threads} thread(s)")
    }

    fn run(&mut self) {
        let _guard = process_settings();
        let threads = c_int::try_from(self.threads).unwrap_or(c_int::MAX);
        // SAFETY: no FLINT function that uses threads is running, as the guard is held.
        unsafe { sys::flint_set_num_threads(threads) };
        openblas::set_threads(self.threads);
        let (result, left, right) = (&raw mut self.result.0, &raw const self.left.0, &raw const self.right.0);
        // SAFETY: the three matrices are distinct and initialised, and by the check of the problem they have the shapes
        // that the functions need: square on the left, those of the solution on the right.
        unsafe {
            match self.operation {
                Operation::Cholesky => self.succeeded = sys::arb_mat_cho(result, left, self.working_bits) != 0,
                Operation::Trsm => sys::arb_mat_solve_tril(result, left, right, 0, self.working_bits),
                _ => sys::arb_mat_solve_cho_precomp(result, left, right, self.working_bits),
            }
        }
    }

    fn entry(&self, i: usize, j: usize) -> Float {
        let (i, j) = if self.operation == Operation::Cholesky { (i.max(j), i.min(j)) } else { (i, j) };
        if self.succeeded {
            self.result.midpoint(i, j, self.precision_bits)
        } else {
            Float::with_val(self.precision_bits, Special::Nan)
        }
    }
}

/// Bits beyond the precision that the functions work at.
///
/// Balls grow with every operation. On the matrices of the benchmark, whose diagonals are dominant, a factorisation and
/// a solve lose 3 bits for 3 rows and 9 for 1000, a triangular system 3 at most, in the size of rows and columns.
fn guard_bits(operation: Operation, rows: usize) -> u32 {
    match operation {
        Operation::Trsm => 4,
        _ => 5 + (usize::BITS - rows.leading_zeros()).div_ceil(2),
    }
}

/// An `arb` matrix that frees itself.
struct BallMatrix(arb_mat_struct);

impl BallMatrix {
    /// A matrix of zeros.
    fn new(rows: usize, cols: usize) -> Self {
        let mut raw = arb_mat_struct::default();
        // SAFETY: `raw` is ours and its old content needs no freeing.
        unsafe { sys::arb_mat_init(&raw mut raw, rows as c_long, cols as c_long) };
        Self(raw)
    }

    /// The exact balls of column-major numbers.
    fn from_floats(rows: usize, cols: usize, entries: &[Float]) -> Self {
        assert_eq!(entries.len(), rows * cols);
        let matrix = Self::new(rows, cols);
        for (index, float) in entries.iter().enumerate() {
            let ball = matrix.ball(index % rows, index / rows).cast_mut();
            // SAFETY: the ball is initialised, lies in the matrix that we own, and nothing else refers to it; its
            // radius stays the zero that it began with.
            unsafe { sys::arf_set_mpfr(&raw mut (*ball).mid, float.as_raw()) };
        }
        matrix
    }

    fn rows(&self) -> usize {
        self.0.r as usize
    }

    fn cols(&self) -> usize {
        self.0.c as usize
    }

    /// The ball at (i, j), which must exist.
    fn ball(&self, i: usize, j: usize) -> *const arb_struct {
        assert!(i < self.rows() && j < self.cols(), "({i}, {j}) is outside {} x {}", self.rows(), self.cols());
        // SAFETY: the place lies within the matrix by the assertion.
        unsafe { self.0.entries.add(i * self.0.stride as usize + j) }
    }

    /// The midpoint at (i, j), rounded to nearest.
    fn midpoint(&self, i: usize, j: usize, precision_bits: u32) -> Float {
        let (ball, mut float) = (self.ball(i, j), Float::new(precision_bits));
        let round = gmp_mpfr_sys::mpfr::rnd_t::RNDN;
        // SAFETY: both numbers are initialised, and the ball is not written while we borrow the matrix.
        unsafe { sys::arf_get_mpfr(float.as_raw_mut(), &raw const (*ball).mid, round) };
        float
    }

    /// About `log2` of the radius at (i, j); negative infinity for an exact number.
    fn radius_log2(&self, i: usize, j: usize) -> f64 {
        let ball = self.ball(i, j);
        // SAFETY: the ball is initialised, and is not written while we borrow the matrix.
        unsafe { sys::mag_get_d_log2_approx(&raw const (*ball).rad) }
    }
}

impl Drop for BallMatrix {
    fn drop(&mut self) {
        // SAFETY: the matrix is initialised and not used again.
        unsafe { sys::arb_mat_clear(&raw mut self.0) }
    }
}
