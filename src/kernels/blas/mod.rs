//! The kernel `blas`: the `f64` family on CBLAS dgemm and dsyrk, through OpenBLAS on one thread per caller.
//!
//! Three floors: `sys` declares, `result` turns what the library says of itself into answers, `safe` checks shapes, so
//! that nothing above needs `unsafe`. Without the cargo feature `blas` only [`probe`] exists, and says so.
//! Does not know: moduli, blocks, threads.

#[cfg(feature = "blas")]
pub mod result;
#[cfg(feature = "blas")]
pub mod safe;
#[cfg(feature = "blas")]
mod sys;

#[cfg(all(test, feature = "blas"))]
mod mock;

use crate::kernels::PlaneKernel;

/// The kernel `blas`, once OpenBLAS is known to be usable from many threads.
#[cfg(feature = "blas")]
pub fn probe() -> Result<&'static dyn PlaneKernel, &'static str> {
    use crate::kernels::f64::F64Kernel;
    use safe::OpenBlas;
    use std::sync::OnceLock;

    static KERNEL: OnceLock<Result<F64Kernel<OpenBlas>, &'static str>> = OnceLock::new();
    let kernel = KERNEL.get_or_init(|| Ok(F64Kernel::new("blas", OpenBlas::probe()?)));
    kernel.as_ref().map(|kernel| kernel as &dyn PlaneKernel).map_err(|reason| *reason)
}

/// Says that the build lacks the feature.
#[cfg(not(feature = "blas"))]
pub fn probe() -> Result<&'static dyn PlaneKernel, &'static str> {
    Err("this build has no BLAS (cargo feature `blas`)")
}

/// Name of the processor type whose routines OpenBLAS chose when it was loaded, such as `SkylakeX`; `None` in a build
/// without BLAS.
pub fn core_name() -> Option<String> {
    #[cfg(feature = "blas")]
    return Some(result::core_name());
    #[cfg(not(feature = "blas"))]
    return None;
}

/// The value of `OPENBLAS_CORETYPE` that would make OpenBLAS use this CPU's vector instructions, where it does not.
///
/// Some environments preset a lesser type, and older versions know newer CPUs not at all (they fall back to SSE2 code,
/// five times slower). OpenBLAS reads the variable when it is loaded, so only a process started with it can benefit.
pub fn better_core_type() -> Option<&'static str> {
    core_name().and_then(|name| better_than(&name))
}

fn better_than(name: &str) -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let avx512 = ["SkylakeX", "Cooperlake", "Sapphirerapids", "GraniteRapids"];
        let avx2 = ["Haswell", "Zen"];
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw");
        if has_avx512 && !is_one_of(&avx512) {
            return Some("SKYLAKEX");
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && !is_one_of(&avx2) && !has_avx512 {
            return Some("HASWELL");
        }
    }
    let _ = name;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_type_below_the_cpu_is_named() {
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl");
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let best = if avx512 { Some("SKYLAKEX") } else { avx2.then_some("HASWELL") };
            assert_eq!(better_than("Prescott"), best);
            assert_eq!(better_than("SkylakeX").filter(|_| avx512), None);
            assert_eq!(better_than("Haswell"), best.filter(|_| avx512));
        }
        assert_eq!(probe().is_ok(), core_name().is_some() && cfg!(feature = "blas"));
    }
}
