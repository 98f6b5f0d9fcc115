//! The product as SDPB computes it: one BLAS call per prime.
//!
//! Native numbers are GMP's `mpf`. Each column is divided by its norm and scaled to integers of b bits; FLINT's
//! subproduct tree computes their residues, which are stored balanced and as doubles in one window per operand, prime
//! after prime; `dsyrk` or `dgemm` multiplies prime by prime; the tree reconstructs the products, and norms and scale
//! are multiplied back in. The method and the rule for the primes are those of SDPB's `bigint_syrk`.
//!
//! Two things differ from SDPB, both to its advantage: threads take the place of ranks, and both
//! conversions visit entries in blocks, so that windows are read and written in runs of
//! consecutive numbers. As in SDPB, windows and number objects are made once, for all runs.

use std::marker::PhantomData;
use std::time::Instant;

use cblas_sys as cblas;
use rug::Float;

use super::comb::{BLOCK_ENTRIES, Comb, CombBlock};
use super::native::{Fmpz, Mpf};
use super::problem::entry_index;
use super::{Baseline, Operation, Problem, Workers, process_settings, sys};

/// The baseline `sdpb`.
pub(super) struct Sdpb {
    operation: Operation,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    threads: usize,
    workers: Workers,
    comb: Comb,
    left: SdpbOperand,
    /// Absent for `Operation::Syrk`, where the left operand is also the right one.
    right: Option<SdpbOperand>,
    /// The products modulo each prime: column-major squares, prime after prime.
    window: Vec<f64>,
    /// The combined products, column-major.
    integers: Vec<Fmpz>,
    /// Column-major and square; above the diagonal unused for `Operation::Syrk`.
    result: Vec<Mpf>,
    phases: Vec<(&'static str, f64)>,
}

impl Sdpb {
    /// Copies the operands and makes the windows, touching every page of them.
    pub(super) fn new(problem: Problem) -> Result<Self, String> {
        let Problem { operation, rows, cols, precision_bits, threads, .. } = problem;
        // SAFETY: the function takes nothing and returns a number.
        let openmp = unsafe { sys::openblas_get_parallel() } == 2;
        if openmp && threads > 1 && std::env::var("OMP_NUM_THREADS").as_deref() != Ok("1") {
            return Err("baseline sdpb on an OpenMP build of OpenBLAS needs OMP_NUM_THREADS=1".into());
        }
        let terms = rows.max(1) as u64;
        let length_bits = u64::from(u64::BITS - terms.leading_zeros());
        let comb = Comb::new(2 * u64::from(precision_bits) + 1 + length_bits, terms)?;
        let operand = |entries| SdpbOperand::new(entries, cols, precision_bits, comb.prime_count());
        Ok(Self {
            left: operand(problem.a),
            right: problem.b.map(operand),
            window: touched_window(comb.prime_count() * cols * cols),
            integers: Fmpz::zeros(cols * cols),
            result: Mpf::zeros(cols * cols, precision_bits),
            phases: Vec::new(),
            workers: Workers::new(threads)?,
            operation,
            rows,
            cols,
            precision_bits,
            threads,
            comb,
        })
    }

    /// Divides and scales the operands.
    fn normalise(&mut self) {
        for operand in [Some(&mut self.left), self.right.as_mut()].into_iter().flatten() {
            operand.normalise(&self.workers, self.rows, self.precision_bits);
        }
    }

    /// Takes the residues of the operands.
    fn fill_residues(&mut self) {
        for operand in [Some(&mut self.left), self.right.as_mut()].into_iter().flatten() {
            operand.fill_residues(&self.workers, &self.comb, self.rows);
        }
    }

    /// Multiplies prime by prime.
    fn multiply(&mut self) {
        let (operation, rows, cols) = (self.operation, self.rows, self.cols);
        let left = &self.left.window;
        let right = self.right.as_ref().map_or(left, |right| &right.window);
        let plane = rows * cols;
        let planes = self.window.chunks_exact_mut((cols * cols).max(1)).enumerate();
        self.workers.for_each(
            planes,
            || (),
            |(), (prime_index, product)| {
                let range = prime_index * plane..(prime_index + 1) * plane;
                multiply_plane(operation, rows, cols, &left[range.clone()], &right[range], product);
            },
        );
    }

    /// Puts the products together from their residues.
    fn reconstruct(&mut self) {
        let (operation, cols, comb) = (self.operation, self.cols, &self.comb);
        let window = &self.window;
        let columns = self.integers.chunks_mut(cols.max(1)).enumerate();
        self.workers.for_each(
            columns,
            || CombBlock::new(comb),
            |block, (j, column)| {
                let top = if operation == Operation::Syrk { j } else { 0 };
                for (block_index, integers) in column[top..].chunks_mut(BLOCK_ENTRIES).enumerate() {
                    let start = j * cols + top + block_index * BLOCK_ENTRIES;
                    for prime_index in 0..comb.prime_count() {
                        let products = &window[prime_index * cols * cols + start..][..integers.len()];
                        block.set_products(prime_index, products);
                    }
                    block.reconstruct(integers);
                }
            },
        );
    }

    /// Puts scale and norms back.
    fn restore(&mut self) {
        let (operation, cols) = (self.operation, self.cols);
        let shift_bits = 2 * u64::from(self.precision_bits);
        let left = &self.left.norms;
        let right = self.right.as_ref().map_or(left, |right| &right.norms);
        let columns = self.result.chunks_mut(cols.max(1)).zip(self.integers.chunks(cols.max(1)));
        self.workers.for_each(
            columns.enumerate(),
            || (),
            |(), (j, (column, integers))| {
                let top = if operation == Operation::Syrk { j } else { 0 };
                for (i, entry) in column.iter_mut().enumerate().skip(top) {
                    entry.set_restored(&integers[i], shift_bits, &left[i], &right[j]);
                }
            },
        );
    }

    /// Does one phase and notes its time.
    fn time(&mut self, name: &'static str, phase: fn(&mut Self)) {
        let start = Instant::now();
        phase(self);
        self.phases.push((name, start.elapsed().as_secs_f64()));
    }
}

impl Baseline for Sdpb {
    fn name(&self) -> &'static str {
        "sdpb"
    }

    fn form(&self) -> String {
        let (blas, primes, threads) = (super::openblas::version(), self.comb.prime_count(), self.threads);
        format!(
            "{blas}, 1 BLAS thread per worker; FLINT {} comb, {primes} primes; {threads} thread(s)",
            super::flint_version()
        )
    }

    fn run(&mut self) {
        let _guard = process_settings();
        super::openblas::set_threads(1);
        self.phases.clear();
        self.time("normalise", Self::normalise);
        self.time("residues", Self::fill_residues);
        self.time("blas", Self::multiply);
        self.time("crt", Self::reconstruct);
        self.time("restore", Self::restore);
    }

    fn entry(&self, i: usize, j: usize) -> Float {
        let index = entry_index(self.operation, self.cols, i, j);
        self.result[index].to_float(self.precision_bits)
    }

    fn phases(&self) -> Vec<(&'static str, f64)> {
        self.phases.clone()
    }
}

/// One operand in all its forms, each column-major.
struct SdpbOperand {
    entries: Vec<Mpf>,
    norms: Vec<Mpf>,
    integers: Vec<Fmpz>,
    /// Balanced residues, prime after prime.
    window: Vec<f64>,
}

impl SdpbOperand {
    /// Copies the entries and makes room for the other forms.
    fn new(entries: &[Float], cols: usize, precision_bits: u32, prime_count: usize) -> Self {
        Self {
            entries: entries.iter().map(Mpf::from_float).collect(),
            norms: Mpf::zeros(cols, precision_bits),
            integers: Fmpz::zeros(entries.len()),
            window: touched_window(prime_count * entries.len()),
        }
    }

    /// Finds each column's norm, divides by it and scales to integers of `precision_bits`.
    fn normalise(&mut self, workers: &Workers, rows: usize, precision_bits: u32) {
        let columns = self.entries.chunks(rows.max(1));
        let targets = self.norms.iter_mut().zip(self.integers.chunks_mut(rows.max(1)));
        workers.for_each(
            columns.zip(targets),
            || Mpf::zero(precision_bits),
            |scratch, (column, (norm, integers))| {
                norm.set_norm(column, scratch);
                if norm.is_zero() {
                    return; // All entries are zero, and so are the integers from the start.
                }
                for (entry, integer) in column.iter().zip(integers) {
                    scratch.set_quotient(entry, norm);
                    scratch.scale_to(integer, precision_bits.into());
                }
            },
        );
    }

    /// Fills the window with the residues of the integers.
    fn fill_residues(&mut self, workers: &Workers, comb: &Comb, rows: usize) {
        let window = SharedWindow::new(&mut self.window, self.integers.len());
        let columns = self.integers.chunks(rows.max(1)).enumerate();
        workers.for_each(
            columns,
            || CombBlock::new(comb),
            |block, (j, column)| {
                for (block_index, integers) in column.chunks(BLOCK_ENTRIES).enumerate() {
                    block.set_integers(integers);
                    let start = j * rows + block_index * BLOCK_ENTRIES;
                    for prime_index in 0..comb.prime_count() {
                        let residues = block.balanced(prime_index).take(integers.len());
                        // SAFETY: each column is visited once, and only its own places are written.
                        unsafe { window.write(prime_index, start, residues) };
                    }
                }
            },
        );
    }
}

/// A window whose planes several threads fill at once, each its own places.
struct SharedWindow<'a> {
    start: *mut f64,
    len: usize,
    plane_len: usize,
    owner: PhantomData<&'a mut [f64]>,
}

// SAFETY: `write` demands that no two threads write one place, and no thread reads meanwhile, as the window is borrowed
// mutably.
unsafe impl Sync for SharedWindow<'_> {}

impl<'a> SharedWindow<'a> {
    /// Shares a window with planes of `plane_len` numbers.
    fn new(window: &'a mut [f64], plane_len: usize) -> Self {
        Self { start: window.as_mut_ptr(), len: window.len(), plane_len, owner: PhantomData }
    }

    /// Writes consecutive places of one plane.
    ///
    /// # Safety
    /// No other thread may write any of these places as long as the window is shared.
    unsafe fn write(&self, plane: usize, offset: usize, values: impl Iterator<Item = f64>) {
        let first = plane * self.plane_len + offset;
        for (place, value) in (first..self.len).zip(values) {
            // SAFETY: the place is below the length, and by the caller's promise used by no one else.
            unsafe { self.start.add(place).write(value) };
        }
    }
}

/// A window of `len` doubles, written once so that its pages exist.
fn touched_window(len: usize) -> Vec<f64> {
    vec![1.0; len]
}

/// Multiplies one plane: lower triangle of `left^T left` or all of `left^T right`, exactly.
#[rustfmt::skip]
fn multiply_plane(operation: Operation, rows: usize, cols: usize, left: &[f64], right: &[f64], product: &mut [f64]) {
    assert!(left.len() == rows * cols && right.len() == rows * cols && product.len() == cols * cols);
    let (k, n) = (rows as i32, cols as i32);
    let (ld_in, ld_out) = (k.max(1), n.max(1));
    let (a, b, c) = (left.as_ptr(), right.as_ptr(), product.as_mut_ptr());
    let (layout, trans, no_trans) = (cblas::CblasColMajor, cblas::CblasTrans, cblas::CblasNoTrans);
    let lower = cblas::CblasLower;
    match operation {
        // SAFETY: the slices have the shapes that the call names, by the assertion, and both
        // dimensions fit an `i32`, by the check of the problem.
        Operation::Syrk => unsafe {
            cblas::cblas_dsyrk(layout, lower, trans, n, k, 1.0, a, ld_in, 0.0, c, ld_out);
        },
        // SAFETY: as above.
        _ => unsafe {
            cblas::cblas_dgemm(layout, trans, no_trans, n, n, k, 1.0, a, ld_in, b, ld_in, 0.0, c, ld_out);
        },
    }
}
