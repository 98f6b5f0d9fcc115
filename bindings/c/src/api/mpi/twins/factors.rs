//! Twins of ScaLAPACK: Cholesky factors and solves with them.

use super::checks::{A, B, Checks, SubMatrix};
use super::{checked, info};
use crate::api::lapack::{Entries, twins, uplo_of};
use crate::call::Call;
use crate::failure::Outcome;
use std::ffi::{c_char, c_int, c_void};
use sunzi::advanced::calls::{cholesky_over, cholesky_solve_over};

twins! {
/// The arguments of `PDPOTRF`.
struct Pdpotrf {
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    ia: i64,
    ja: i64,
    desca: *const c_int,
}

/// Replaces a symmetric positive definite A by its Cholesky factor as `sunzi_mpi_cholesky` does, with the arguments of
/// `PDPOTRF`. A is n x n, and its triangle `uplo` is read and written.
///
/// Returns info: `i > 0` if the i-th pivot, as computed and counted from 1, is not positive; A is unchanged then.
fn psunzi_rpotrf, psunzi_rpotrf_mpf => info(Pdpotrf::run);
}

impl Pdpotrf {
    /// Replaces a matrix by its Cholesky factor. Collective.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let check = |checks: &mut Checks<'_, '_>| {
                let uplo = checks.global("uplo", uplo_of(self.uplo))?;
                let n = checks.size("n", self.n)?;
                let first = [self.ia, self.ja];
                let a = SubMatrix { names: A, entries: self.a, first, desc: self.desca, shape: [n, n] };
                Ok((uplo, checks.matrix(&a)?))
            };
            checked(call, entries, Self::NAMES, check, |team, (uplo, a)| cholesky_over(call, team, Some(uplo), a))
        }
    }
}

twins! {
/// The arguments of `PDPOTRS`.
struct Pdpotrs {
    uplo: *const c_char,
    n: i64,
    nrhs: i64,
    a: *const c_void,
    ia: i64,
    ja: i64,
    desca: *const c_int,
    b: *mut c_void,
    ib: i64,
    jb: i64,
    descb: *const c_int,
}

/// Computes `B := A^-1 B` from the factor that `psunzi_rpotrf` has left in `a`, with the arguments of `PDPOTRS`. `a` is
/// n x n, and B is n x nrhs.
///
/// Returns info: `i > 0` if entry (i, i) of the factor, counted from 1, is 0.
fn psunzi_rpotrs, psunzi_rpotrs_mpf => info(Pdpotrs::run);
}

impl Pdpotrs {
    /// `b := a^-1 b` with the factor of a. Collective.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let check = |checks: &mut Checks<'_, '_>| {
                let uplo = checks.global("uplo", uplo_of(self.uplo))?;
                let (n, columns) = (checks.size("n", self.n)?, checks.size("nrhs", self.nrhs)?);
                let first = [self.ia, self.ja];
                let a = SubMatrix { names: A, entries: self.a, first, desc: self.desca, shape: [n, n] };
                let a = checks.matrix(&a)?;
                let first = [self.ib, self.jb];
                let b = SubMatrix { names: B, entries: self.b, first, desc: self.descb, shape: [n, columns] };
                Ok((uplo, a, checks.matrix(&b)?))
            };
            checked(call, entries, Self::NAMES, check, |team, (uplo, a, b)| {
                // As in LAPACK, the factor is not looked at where there are no right sides.
                if b.is_empty() { Ok(()) } else { cholesky_solve_over(call, team, uplo, a, b) }
            })
        }
    }
}
