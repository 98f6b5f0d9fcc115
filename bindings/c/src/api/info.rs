//! Version, features, and texts of codes.

use std::ffi::{CStr, c_char, c_int};

/// Returns the version of the library, such as `"0.1.0"`.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => c"unknown",
    };
    VERSION.as_ptr()
}

/// Returns 1 if this build has the feature `name` (`"mpi"`, `"blas"`, `"cuda"`) or if this machine has the kernel
/// `name` (`"ifma52"`, `"i16"`, `"i8"`, `"f64"`, `"blas"`, `"reference"`); else, and for null, 0.
///
/// # Safety
/// `name` must be null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_has(name: *const c_char) -> c_int {
    if name.is_null() {
        return 0;
    }
    // SAFETY: ends with a zero by contract.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let features = [("mpi", cfg!(feature = "mpi")), ("blas", cfg!(feature = "blas")), ("cuda", cfg!(feature = "cuda"))];
    let built = features.iter().any(|(feature, on)| *on && *feature == name);
    (built || sunzi::advanced::kernels::available().iter().any(|kernel| kernel.name() == name)).into()
}

/// Returns a short description of a status.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_status_text(status: c_int) -> *const c_char {
    let texts = [
        c"the call succeeded",
        c"a pointer is null",
        c"an argument is not valid",
        c"a size is negative or too small, or shapes do not match",
        c"an entry is not a valid number of its format",
        c"an entry is not finite",
        c"an exponent is out of range",
        c"a precision is out of range",
        c"the matrix is not positive definite",
        c"zero on the diagonal of a triangular matrix, or no pivot in L D L^T or L U",
        c"the memory limit is too small",
        c"the system refused memory",
        c"the call was cancelled",
        c"a self-check failed",
        c"a kernel or a feature is not available",
        c"communication failed",
        c"a device failed",
        c"the library has a defect",
        c"the matrix is not symmetric",
    ];
    let text = usize::try_from(status).ok().and_then(|at| texts.get(at));
    text.map_or(c"not a status of this library", |text| text).as_ptr()
}
