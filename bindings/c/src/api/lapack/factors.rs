//! Twins of LAPACK: Cholesky factors and solves with them.

use crate::api::cholesky;
use crate::api::lapack::{Arguments, Entries, Place, info, sizes, uplo_of};
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::{SUNZI_MPF, SUNZI_MPFR};
use std::ffi::{c_char, c_void};

/// The arguments of `Rpotrf`.
struct Potrf {
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    lda: i64,
}

impl Arguments for Potrf {
    const NAMES: &'static [&'static str] = &["uplo", "n", "a", "lda"];

    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let uplo = uplo_of(self.uplo)?;
            let [n] = sizes([("n", self.n)])?;
            let a = entries.matrix(&Place::new("a", self.a, ("lda", self.lda)), n, n)?;
            cholesky::factor_in_place(call, Some(uplo), &a)
        }
    }
}

/// Replaces a symmetric positive definite A by its Cholesky factor as `sunzi_cholesky` does, with the arguments of
/// `Rpotrf`. A is n x n, and its triangle `uplo` is read and written.
///
/// Returns info: `i > 0` if the i-th pivot, as computed and counted from 1, is not positive.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rpotrf(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    lda: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Potrf { uplo, n, a, lda }) }
}

/// Same as `sunzi_rpotrf`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rpotrf_mpf(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    lda: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Potrf { uplo, n, a, lda }) }
}

/// The arguments of `Rpotrs`.
struct Potrs {
    uplo: *const c_char,
    n: i64,
    nrhs: i64,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
}

impl Arguments for Potrs {
    const NAMES: &'static [&'static str] = &["uplo", "n", "nrhs", "a", "lda", "b", "ldb"];

    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let uplo = uplo_of(self.uplo)?;
            let [n, columns] = sizes([("n", self.n), ("nrhs", self.nrhs)])?;
            let a = entries.matrix(&Place::new("a", self.a, ("lda", self.lda)), n, n)?;
            let b = entries.matrix(&Place::new("b", self.b, ("ldb", self.ldb)), n, columns)?;
            if n == 0 || columns == 0 {
                return Ok(()); // as in LAPACK, the factor is not looked at
            }
            cholesky::solve_factored(call, uplo, &a, &b)
        }
    }
}

/// Computes `B := A^-1 B` from a Cholesky factor in an array as `sunzi_cholesky_solve` does, with the arguments of
/// `Rpotrs`. `a` holds the n x n factor in its triangle `uplo`; B is n x nrhs.
///
/// Returns info: `i > 0` if entry (i, i) of the factor, counted from 1, is 0.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rpotrs(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    n: i64,
    nrhs: i64,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Potrs { uplo, n, nrhs, a, lda, b, ldb }) }
}

/// Same as `sunzi_rpotrs`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rpotrs_mpf(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    n: i64,
    nrhs: i64,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Potrs { uplo, n, nrhs, a, lda, b, ldb }) }
}
