//! What the processor has, beyond what `std` tells.

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// Whether the crate `gemm` has code for this processor: it goes by one extension of several that it then relies on,
/// and ends the program where another is missing (AMD's Piledriver has FMA and no AVX2).
#[cfg(target_arch = "x86_64")]
pub fn dgemm_crate_runs() -> bool {
    use gemm_common::simd::{MixedSimd, V3, V4};
    static RUNS: LazyLock<bool> = LazyLock::new(|| match () {
        () if is_x86_feature_detected!("avx512f") => <V4 as MixedSimd<f64, f64, f64, f64>>::try_new().is_some(),
        () if is_x86_feature_detected!("fma") => <V3 as MixedSimd<f64, f64, f64, f64>>::try_new().is_some(),
        () => true,
    });
    *RUNS
}

#[cfg(not(target_arch = "x86_64"))]
pub fn dgemm_crate_runs() -> bool {
    true
}
