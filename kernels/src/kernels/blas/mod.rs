//! The kernel `blas`: the `f64` family on CBLAS dgemm and dsyrk, through OpenBLAS on one thread per caller.
//!
//! Three levels: `sys` declares the functions, `result` turns the library's properties into a `Result`, `safe` checks
//! shapes, so that no other code needs `unsafe`. Without the cargo feature `blas` only [`probe`] exists, and returns an
//! error. Independent of: moduli, blocks, threads.

#[cfg(feature = "blas")]
pub mod result;
#[cfg(feature = "blas")]
pub mod safe;
#[cfg(feature = "blas")]
mod sys;

#[cfg(all(test, feature = "blas"))]
mod mock;

use crate::kernels::PlaneKernel;

/// The kernel `blas`, if OpenBLAS can be used from many threads.
#[cfg(feature = "blas")]
pub fn probe() -> Result<&'static dyn PlaneKernel, &'static str> {
    use crate::kernels::f64::F64Kernel;
    use safe::OpenBlas;
    use std::sync::OnceLock;

    static KERNEL: OnceLock<Result<F64Kernel<OpenBlas>, &'static str>> = OnceLock::new();
    let kernel = KERNEL.get_or_init(|| Ok(F64Kernel::new("blas", OpenBlas::probe()?)));
    kernel.as_ref().map(|kernel| kernel as &dyn PlaneKernel).map_err(|reason| *reason)
}

/// The error of a build without the feature.
#[cfg(not(feature = "blas"))]
pub fn probe() -> Result<&'static dyn PlaneKernel, &'static str> {
    Err("this build has no BLAS (cargo feature `blas`)")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_is_there_exactly_when_it_was_built() {
        assert_eq!(super::probe().map(|kernel| kernel.name()).ok(), cfg!(feature = "blas").then_some("blas"));
    }
}
