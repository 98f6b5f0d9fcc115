//! Declarations of OpenBLAS beyond CBLAS; nothing else.

use std::ffi::c_int;

pub use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_UPLO, cblas_dgemm, cblas_dsyrk};

// SAFETY: the declarations are those of OpenBLAS's own header.
unsafe extern "C" {
    /// Sets the number of threads of every later call of a serial or pthread build.
    pub fn openblas_set_num_threads(count: c_int);
    /// 0 for a serial build, 1 for pthreads, 2 for OpenMP.
    pub fn openblas_get_parallel() -> c_int;
}
