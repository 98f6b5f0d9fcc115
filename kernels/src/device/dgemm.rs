//! The pure-Rust crate `gemm` for doubles, with the instructions that may be used.
//!
//! By itself it uses AVX-512 wherever the processor has it; here `SUNZI_CPU` is respected as well.

/// The crate's function: rows, columns and depth; C with its strides, and whether it is read; A and B with theirs;
/// factors of C and of the product; conjugations; threads.
pub type Function = unsafe fn(
    usize,
    usize,
    usize,
    *mut f64,
    isize,
    isize,
    bool,
    *const f64,
    isize,
    isize,
    *const f64,
    isize,
    isize,
    f64,
    f64,
    bool,
    bool,
    bool,
    gemm_common::Parallelism,
);

/// The function to call, where [`crate::math::processor::dgemm_crate_runs`].
#[inline]
pub fn function() -> Function {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::math::processor::{Level, level};
        if level() < Level::Avx512 && is_x86_feature_detected!("fma") {
            return with_avx2;
        }
    }
    gemm_f64::gemm::f64::get_gemm_fn()
}

/// The function that the crate calls on a processor that has AVX2 and FMA, and no AVX-512.
///
/// # Safety
/// As for the crate's own function: all elements that the shapes and strides describe lie in their matrices, and C
/// overlaps no operand.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::too_many_arguments, reason = "the signature is the crate's")]
unsafe fn with_avx2(
    m: usize,
    n: usize,
    k: usize,
    c: *mut f64,
    c_column: isize,
    c_row: isize,
    reads: bool,
    a: *const f64,
    a_column: isize,
    a_row: isize,
    b: *const f64,
    b_column: isize,
    b_row: isize,
    scalar_of_c: f64,
    scalar: f64,
    conj_c: bool,
    conj_a: bool,
    conj_b: bool,
    parallelism: gemm_common::Parallelism,
) {
    use gemm_common::gemm::gemm_basic_generic;
    use gemm_common::simd::{MixedSimd, V3};
    use gemm_f64::microkernel::fma::f64::{H_M, H_N, H_UKR, MR_DIV_N, NR, UKR};
    const LANES: usize = 4;
    let simd = <V3 as MixedSimd<f64, f64, f64, f64>>::try_new().expect("the caller has looked for AVX2 and FMA");
    // SAFETY: the caller's promise; the kernels are those of the instructions that `simd` proves.
    unsafe {
        gemm_basic_generic::<_, f64, LANES, { MR_DIV_N * LANES }, NR, MR_DIV_N, H_M, H_N>(
            simd,
            m,
            n,
            k,
            c,
            c_column,
            c_row,
            reads,
            a,
            a_column,
            a_row,
            b,
            b_column,
            b_row,
            scalar_of_c,
            scalar,
            conj_c,
            conj_a,
            conj_b,
            |a, b, c| a * b + c,
            &UKR,
            &H_UKR,
            false,
            parallelism,
        );
    }
}
