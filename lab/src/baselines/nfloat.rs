//! FLINT's LU factorisation of packed floats (`nfloat` through the generic `gr_mat_lu`).
//!
//! FLINT has no Cholesky factorisation of these numbers, its fastest ones, so a symmetric matrix costs it twice the
//! multiply-adds; its recursion reaches products with fewer multiplications than the plain loop. From `A = L U` with a
//! unit diagonal in L, `F = L sqrt(D)` and `G = sqrt(D)^-1 U` with the diagonal D of U are the factors that
//! [`Operation::Cholesky`](super::Operation::Cholesky) describes; they are formed entry by entry on request, beyond the
//! precision, so that the check sees only the errors of L and U. Rows must stay where they are: a run that swaps any
//! counts as failed.
//!
//! A number has whole limbs, at most [`MAXIMUM_BITS`]. FLINT distributes products over threads only where they go
//! through its integer matrices; no other part uses threads.

use std::ffi::{c_int, c_long};

use rug::Float;
use rug::float::Special;

use super::native::Arf;
use super::sys::{self, gr_ctx_struct, gr_mat_struct};
use super::{Baseline, Problem, flint_version, openblas, process_settings};

/// Bits of a limb, of which every precision is a multiple.
const LIMB_BITS: u32 = 64;

/// The largest precision: `NFLOAT_MAX_LIMBS` of FLINT 3.6.
const MAXIMUM_BITS: u32 = 66 * LIMB_BITS;

/// The status of a generic function that did its work.
const SUCCESS: c_int = 0;

/// Refuses a precision that these numbers do not have.
pub(super) fn check_precision(precision_bits: u32) -> Result<(), String> {
    if precision_bits.is_multiple_of(LIMB_BITS) && (LIMB_BITS..=MAXIMUM_BITS).contains(&precision_bits) {
        return Ok(());
    }
    Err(format!("baseline nfloat has no precision of {precision_bits} bits: only multiples of 64 up to {MAXIMUM_BITS}"))
}

/// The baseline `nfloat`.
pub(super) struct Nfloat {
    dimension: usize,
    precision_bits: u32,
    threads: usize,
    matrix: PackedMatrix,
    /// L below the diagonal, its unit diagonal left out; U on and above it.
    factors: PackedMatrix,
    /// Row `i` of the factors belongs to row `permutation[i]` of the matrix.
    permutation: Vec<c_long>,
    succeeded: bool,
}

impl Nfloat {
    /// Copies the matrix and allocates the factors.
    pub(super) fn new(problem: Problem) -> Result<Self, String> {
        let (dimension, precision_bits) = (problem.rows, problem.precision_bits);
        let matrix = PackedMatrix::new(dimension, precision_bits)?;
        for (index, float) in problem.a.iter().enumerate() {
            matrix.set(index % dimension, index / dimension, &Arf::from_float(float))?;
        }
        Ok(Self {
            dimension,
            precision_bits,
            threads: problem.threads,
            matrix,
            factors: PackedMatrix::new(dimension, precision_bits)?,
            permutation: (0..dimension as c_long).collect(),
            succeeded: true,
        })
    }
}

impl Baseline for Nfloat {
    fn name(&self) -> &'static str {
        "nfloat"
    }

    fn form(&self) -> String {
        format!("FLINT {} nfloat, gr_mat_lu (L U, not L L^T), {} thread(s)", flint_version(), self.threads)
    }

    fn run(&mut self) {
        let _guard = process_settings();
        let threads = c_int::try_from(self.threads).unwrap_or(c_int::MAX);
        // SAFETY: no FLINT function that uses threads is running, as the guard is held.
        unsafe { sys::flint_set_num_threads(threads) };
        openblas::set_threads(self.threads);
        let mut rank = 0;
        let permutation = self.permutation.as_mut_ptr();
        let (factors, context) = (&raw mut self.factors.raw, &raw mut self.factors.context);
        // SAFETY: both matrices are initialised in rings of the same kind and have the dimension of the permutation.
        let status =
            unsafe { sys::gr_mat_lu(&raw mut rank, permutation, factors, &raw const self.matrix.raw, 0, context) };
        let in_order = self.permutation.iter().enumerate().all(|(place, &row)| place as c_long == row);
        self.succeeded = status == SUCCESS && rank == self.dimension as c_long && in_order;
    }

    fn entry(&self, i: usize, j: usize) -> Float {
        let bits = self.precision_bits + LIMB_BITS;
        let root = |k: usize| Float::with_val(bits, self.factors.float(k, k, bits).sqrt());
        match i.cmp(&j) {
            _ if !self.succeeded => Float::with_val(bits, Special::Nan),
            std::cmp::Ordering::Greater => self.factors.float(i, j, bits) * root(j),
            std::cmp::Ordering::Equal => root(i),
            std::cmp::Ordering::Less => self.factors.float(i, j, bits) / root(i),
        }
    }
}

/// A square matrix of packed floats that frees itself, with its ring.
struct PackedMatrix {
    raw: gr_mat_struct,
    context: gr_ctx_struct,
}

impl PackedMatrix {
    /// A matrix of zeros.
    fn new(dimension: usize, precision_bits: u32) -> Result<Self, String> {
        check_precision(precision_bits)?;
        let (mut raw, mut context) = (gr_mat_struct::default(), gr_ctx_struct::default());
        // SAFETY: the ring is ours to fill in; it holds no pointer into itself.
        if unsafe { sys::nfloat_ctx_init(&raw mut context, precision_bits.into(), 0) } != SUCCESS {
            return Err(format!("FLINT {} has no nfloat of {precision_bits} bits", flint_version()));
        }
        // SAFETY: `raw` is ours, its old content needs no freeing, and the ring is initialised.
        unsafe { sys::gr_mat_init(&raw mut raw, dimension as c_long, dimension as c_long, &raw mut context) };
        Ok(Self { raw, context })
    }

    /// Where the number at (i, j) lies, which must exist.
    fn place(&self, i: usize, j: usize) -> *mut std::ffi::c_void {
        let (rows, cols) = (self.raw.r as usize, self.raw.c as usize);
        assert!(i < rows && j < cols, "({i}, {j}) is outside {rows} x {cols}");
        let offset = (i * self.raw.stride as usize + j) * self.context.sizeof_elem as usize;
        // SAFETY: the place lies within the matrix by the assertion.
        unsafe { self.raw.entries.byte_add(offset) }
    }

    /// Sets the number at (i, j).
    fn set(&self, i: usize, j: usize, value: &Arf) -> Result<(), String> {
        // SAFETY: both numbers are initialised, the ring is the matrix's own and only read.
        let status =
            unsafe { sys::nfloat_set_arf(self.place(i, j), value.as_raw(), (&raw const self.context).cast_mut()) };
        if status == SUCCESS { Ok(()) } else { Err(format!("nfloat cannot represent the entry at ({i}, {j})")) }
    }

    /// The number at (i, j), exactly where `precision_bits` suffice.
    fn float(&self, i: usize, j: usize, precision_bits: u32) -> Float {
        let mut value = Arf::zero();
        let context = (&raw const self.context).cast_mut();
        // SAFETY: both numbers are initialised, the ring is the matrix's own and only read.
        let status = unsafe { sys::nfloat_get_arf(value.as_raw_mut(), self.place(i, j), context) };
        if status == SUCCESS { value.to_float(precision_bits) } else { Float::with_val(precision_bits, Special::Nan) }
    }
}

impl Drop for PackedMatrix {
    fn drop(&mut self) {
        // SAFETY: matrix and ring are initialised and not used again; such a ring owns no memory.
        unsafe { sys::gr_mat_clear(&raw mut self.raw, &raw mut self.context) }
    }
}
