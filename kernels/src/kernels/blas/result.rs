//! The properties that OpenBLAS reports, as a `Result`: whether it can run on only the calling thread.

use super::sys;

/// Sets OpenBLAS to run each call on the thread that makes it.
///
/// # Errors
/// A text for the user if the library is an OpenMP build: its number of threads is set for each calling thread, so that
/// every worker would start its own team.
pub fn use_one_thread() -> Result<(), &'static str> {
    // SAFETY: the function takes nothing and only reads what was fixed when the library was built.
    let parallel = unsafe { sys::openblas_get_parallel() };
    if parallel == 2 {
        return Err("the installed OpenBLAS is an OpenMP build: install a pthread or serial build of it");
    }
    // SAFETY: the function takes any positive number and guards its own state.
    unsafe { sys::openblas_set_num_threads(1) };
    Ok(())
}
