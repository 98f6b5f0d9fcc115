//! Twins of LAPACK: Cholesky factors and solves with them.

use crate::api::cholesky;
use crate::api::lapack::{Entries, Place, info, sizes, twins, uplo_of};
use crate::call::Call;
use crate::failure::Outcome;
use std::ffi::{c_char, c_void};

twins! {
/// The arguments of `Rpotrf`.
struct Rpotrf {
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    lda: i64,
}

/// Replaces a symmetric positive definite A by its Cholesky factor as `sunzi_cholesky` does, with the arguments of
/// `Rpotrf`. A is n x n, and its triangle `uplo` is read and written.
///
/// Returns info: `i > 0` if the i-th pivot, as computed and counted from 1, is not positive.
fn sunzi_rpotrf, sunzi_rpotrf_mpf => info(Rpotrf::run);
}

impl Rpotrf {
    /// Replaces a matrix by its Cholesky factor.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let uplo = uplo_of(self.uplo)?;
            let [n] = sizes(["n"], [self.n])?;
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), n, n)?;
            cholesky::factor_in_place(call, Some(uplo), &a)
        }
    }
}

twins! {
/// The arguments of `Rpotrs`.
struct Rpotrs {
    uplo: *const c_char,
    n: i64,
    nrhs: i64,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
}

/// Computes `B := A^-1 B` from a Cholesky factor in an array as `sunzi_cholesky_solve` does, with the arguments of
/// `Rpotrs`. `a` holds the n x n factor in its triangle `uplo`; B is n x nrhs.
///
/// Returns info: `i > 0` if entry (i, i) of the factor, counted from 1, is 0.
fn sunzi_rpotrs, sunzi_rpotrs_mpf => info(Rpotrs::run);
}

impl Rpotrs {
    /// `b := a^-1 b` with the factor of a.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let uplo = uplo_of(self.uplo)?;
            let [n, columns] = sizes(["n", "nrhs"], [self.n, self.nrhs])?;
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), n, n)?;
            let b = entries.matrix(&Place::new("b", self.b, "ldb", self.ldb), n, columns)?;
            if n == 0 || columns == 0 {
                return Ok(()); // as in LAPACK, the factor is not looked at
            }
            cholesky::solve_factored(call, uplo, &a, &b)
        }
    }
}
