//! Twins of ScaLAPACK: Cholesky factors and solves with them.

use super::checks::{Checks, SubMatrix};
use super::{Arguments, info};
use crate::api::lapack::uplo_of;
use crate::api::mpi::DistOperand;
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::{SUNZI_MPF, SUNZI_MPFR};
use std::ffi::{c_char, c_int, c_void};
use sunzi::Uplo;
use sunzi::advanced::calls::{cholesky_over, cholesky_solve_over};
use sunzi::distributed::Team;

/// The arguments of `PDPOTRF`.
struct Potrf {
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    ia: i64,
    ja: i64,
    desca: *const c_int,
}

impl Arguments for Potrf {
    const NAMES: &'static [&'static str] = &["uplo", "n", "a", "ia", "ja", "desca"];

    type Checked = (Uplo, DistOperand);

    unsafe fn check(&self, checks: &mut Checks<'_, '_>) -> Outcome<(Uplo, DistOperand)> {
        // SAFETY: by contract, for all below.
        unsafe {
            let uplo = checks.global("uplo", uplo_of(self.uplo))?;
            let n = ("n", checks.size("n", self.n)?);
            let names = ["a", "ia", "ja", "desca"];
            let shape = [n, n];
            let a = SubMatrix { names, entries: self.a, first: (self.ia, self.ja), desc: self.desca, shape };
            Ok((uplo, checks.matrix(&a)?))
        }
    }

    unsafe fn run(call: &Call<'_>, team: &mut Team, checked: (Uplo, DistOperand)) -> Outcome<()> {
        let (uplo, a) = checked;
        cholesky_over(call, team, Some(uplo), a)
    }
}

/// Replaces a symmetric positive definite A by its Cholesky factor as `sunzi_mpi_cholesky` does, with the arguments of
/// `PDPOTRF`. A is n x n, and its triangle `uplo` is read and written.
///
/// Returns info: `i > 0` if the i-th pivot, as computed and counted from 1, is not positive; A is unchanged then.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rpotrf(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    ia: i64,
    ja: i64,
    desca: *const c_int,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Potrf { uplo, n, a, ia, ja, desca }) }
}

/// Same as `psunzi_rpotrf`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rpotrf_mpf(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    ia: i64,
    ja: i64,
    desca: *const c_int,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Potrf { uplo, n, a, ia, ja, desca }) }
}

/// The arguments of `PDPOTRS`.
struct Potrs {
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

impl Arguments for Potrs {
    const NAMES: &'static [&'static str] = &["uplo", "n", "nrhs", "a", "ia", "ja", "desca", "b", "ib", "jb", "descb"];

    type Checked = CheckedPotrs;

    unsafe fn check(&self, checks: &mut Checks<'_, '_>) -> Outcome<CheckedPotrs> {
        // SAFETY: by contract, for all below.
        unsafe {
            let uplo = checks.global("uplo", uplo_of(self.uplo))?;
            let n = ("n", checks.size("n", self.n)?);
            let columns = ("nrhs", checks.size("nrhs", self.nrhs)?);
            let names = ["a", "ia", "ja", "desca"];
            let shape = [n, n];
            let a = SubMatrix { names, entries: self.a, first: (self.ia, self.ja), desc: self.desca, shape };
            let a = checks.matrix(&a)?;
            let names = ["b", "ib", "jb", "descb"];
            let shape = [n, columns];
            let b = SubMatrix { names, entries: self.b, first: (self.ib, self.jb), desc: self.descb, shape };
            Ok(CheckedPotrs { uplo, a, b: checks.matrix(&b)? })
        }
    }

    unsafe fn run(call: &Call<'_>, team: &mut Team, checked: CheckedPotrs) -> Outcome<()> {
        let CheckedPotrs { uplo, a, b } = checked;
        if b.is_empty() {
            return Ok(()); // as in LAPACK, the factor is not looked at
        }
        cholesky_solve_over(call, team, uplo, a, b)
    }
}

/// Computes `B := A^-1 B` from the factor that `psunzi_rpotrf` has left in `a`, with the arguments of `PDPOTRS`. `a` is
/// n x n, and B is n x nrhs.
///
/// Returns info: `i > 0` if entry (i, i) of the factor, counted from 1, is 0.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rpotrs(
    ctx: *const sunzi_context,
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
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Potrs { uplo, n, nrhs, a, ia, ja, desca, b, ib, jb, descb }) }
}

/// Same as `psunzi_rpotrs`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rpotrs_mpf(
    ctx: *const sunzi_context,
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
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Potrs { uplo, n, nrhs, a, ia, ja, desca, b, ib, jb, descb }) }
}

/// The checked arguments of [`Potrs`].
struct CheckedPotrs {
    uplo: Uplo,
    a: DistOperand,
    b: DistOperand,
}
