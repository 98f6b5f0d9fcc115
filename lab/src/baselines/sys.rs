//! Declarations of C functions that the binding crates omit; no other code.
//!
//! FLINT's conversions to and from GMP and MPFR and those of packed floats are missing in `flint3-sys`, OpenBLAS's own
//! (non-CBLAS) functions are missing in `cblas-sys`. Signatures follow the headers of FLINT 3.6
//! and OpenBLAS 0.3, and the sources of ScaLAPACK 2.2.

#[cfg(any(feature = "blas", flint_blas))]
use std::ffi::c_char;
#[cfg(any(feature = "blas", feature = "flint", flint_blas))]
use std::ffi::c_int;
#[cfg(feature = "flint")]
use std::ffi::c_void;

#[cfg(feature = "flint")]
pub use flint3_sys::*;

// SAFETY: names, argument types and results are those of the headers of FLINT 3.6.
#[cfg(feature = "flint")]
unsafe extern "C" {
    /// Sets an integer to an `mpf` rounded towards zero.
    #[cfg(feature = "blas")]
    pub fn fmpz_set_mpf(rop: *mut fmpz, op: *const gmp_mpfr_sys::gmp::mpf_t);
    /// Sets an `mpf` to an integer, rounded towards zero to the precision of the `mpf`.
    #[cfg(feature = "blas")]
    pub fn fmpz_get_mpf(rop: *mut gmp_mpfr_sys::gmp::mpf_t, op: *const fmpz);
    /// The version of FLINT as a string; only its address is of use.
    pub static flint_version: std::ffi::c_char;
    /// Sets an `arf` to an MPFR number, exactly.
    pub fn arf_set_mpfr(rop: *mut arf_struct, op: *const gmp_mpfr_sys::mpfr::mpfr_t);
    /// Sets an MPFR number to an `arf`, rounded to the precision of the MPFR number.
    pub fn arf_get_mpfr(
        rop: *mut gmp_mpfr_sys::mpfr::mpfr_t,
        op: *const arf_struct,
        round: gmp_mpfr_sys::mpfr::rnd_t,
    ) -> c_int;
    /// Sets a packed float to an `arf`, rounded to its precision; a status.
    pub fn nfloat_set_arf(res: *mut c_void, x: *const arf_struct, ctx: *mut gr_ctx_struct) -> c_int;
    /// Sets an `arf` to a packed float, exactly; a status.
    pub fn nfloat_get_arf(res: *mut arf_struct, x: *const c_void, ctx: *mut gr_ctx_struct) -> c_int;
}

// SAFETY: names, argument types and results are those of the source of OpenBLAS 0.3.
#[cfg(any(feature = "blas", flint_blas))]
unsafe extern "C" {
    /// Sets how many threads one BLAS call may use (in an OpenMP build: calls of this thread).
    pub fn openblas_set_num_threads(threads: c_int);
    /// How the library was built: 0 serial, 1 POSIX threads, 2 OpenMP.
    pub fn openblas_get_parallel() -> c_int;
    /// The name of the kernel set in use, a static string.
    pub fn openblas_get_corename() -> *const c_char;
    /// Version and build options, a static string.
    pub fn openblas_get_config() -> *const c_char;
}

// SAFETY: names, argument types and results are those of the sources of ScaLAPACK 2.2 with 32-bit integers.
#[cfg(feature = "scalapack")]
unsafe extern "C" {
    /// A handle for a communicator.
    pub fn Csys2blacs_handle(comm: sunzi::comm::mpi::MPI_Comm) -> c_int;
    /// Releases the handle of a communicator.
    pub fn Cfree_blacs_system_handle(handle: c_int);
    /// A grid of ranks; `context` is the handle of a communicator and becomes that of the grid.
    pub fn Cblacs_gridinit(context: *mut c_int, order: *const c_char, rows: c_int, cols: c_int);
    /// Closes a grid.
    pub fn Cblacs_gridexit(context: c_int);
    /// Waits for the ranks of a row, of a column, or of the whole grid.
    pub fn Cblacs_barrier(context: c_int, scope: *const c_char);
    /// The Cholesky factor of a distributed matrix; Fortran passes the length of `uplo` last.
    pub fn pdpotrf_(
        uplo: *const c_char,
        order: *const c_int,
        words: *mut f64,
        first_row: *const c_int,
        first_col: *const c_int,
        descriptor: *const c_int,
        info: *mut c_int,
        uplo_len: usize,
    );
}
