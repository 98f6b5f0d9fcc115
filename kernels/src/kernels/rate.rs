//! The limits of this processor: how many multiplications, each added to a sum, a core does a second when nothing else
//! is in the way.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;
use std::arch::asm;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::time::Instant;

/// Turns of a run: a few milliseconds.
const TURNS: u32 = 400_000;

/// Runs one loop over independent sums in registers and gives the sums that it added to a second, best of `trials`.
macro_rules! rate {
    ($name:ident, $features:literal, $register:ty, $class:ident, $sums:literal, $start:expr, [$($line:literal),+]) => {
        /// Sums of vectors that are added to a second on the calling thread.
        #[target_feature(enable = $features)]
        pub fn $name(trials: usize) -> f64 {
            let factor: $register = $start;
            let mut best = 0.0f64;
            for _ in 0..trials.max(1) {
                let mut sums = [factor; $sums];
                let start = Instant::now();
                for _ in 0..TURNS {
                    for sum in &mut sums {
                        // SAFETY: register instructions without memory or flags, of the features that the function is
                        // compiled with.
                        unsafe {
                            asm!($($line),+, sum = inout($class) *sum, a = in($class) factor, t = out($class) _,
                                options(pure, nomem, nostack, preserves_flags));
                        }
                    }
                }
                let seconds = start.elapsed().as_secs_f64();
                std::hint::black_box(sums);
                best = best.max(f64::from(TURNS) * f64::from($sums) / seconds);
            }
            best
        }
    };
}

#[cfg(target_arch = "x86_64")]
rate!(
    pairs_avx2,
    "avx2",
    __m256i,
    ymm_reg,
    12,
    _mm256_set1_epi32(0x0003_0005),
    ["vpmaddwd {t}, {a}, {a}", "vpaddd {sum}, {sum}, {t}"]
);
#[cfg(target_arch = "x86_64")]
rate!(
    pairs_avx_vnni,
    "avx2,avxvnni",
    __m256i,
    ymm_reg,
    12,
    _mm256_set1_epi32(0x0003_0005),
    ["{{vex}} vpdpwssd {sum}, {a}, {a}", "/* {t} */"]
);
#[cfg(target_arch = "x86_64")]
rate!(
    pairs_avx512,
    "avx512f,avx512bw",
    __m512i,
    zmm_reg,
    24,
    _mm512_set1_epi32(0x0003_0005),
    ["vpmaddwd {t}, {a}, {a}", "vpaddd {sum}, {sum}, {t}"]
);
#[cfg(target_arch = "x86_64")]
rate!(
    pairs_vnni,
    "avx512f,avx512vnni",
    __m512i,
    zmm_reg,
    24,
    _mm512_set1_epi32(0x0003_0005),
    ["vpdpwssd {sum}, {a}, {a}", "/* {t} */"]
);
#[cfg(target_arch = "x86_64")]
rate!(
    bytes_avx_vnni,
    "avx2,avxvnni",
    __m256i,
    ymm_reg,
    12,
    _mm256_set1_epi32(0x0302_0105),
    ["{{vex}} vpdpbusd {sum}, {a}, {a}", "/* {t} */"]
);
#[cfg(target_arch = "x86_64")]
rate!(
    bytes_vnni,
    "avx512f,avx512vnni",
    __m512i,
    zmm_reg,
    24,
    _mm512_set1_epi32(0x0302_0105),
    ["vpdpbusd {sum}, {a}, {a}", "/* {t} */"]
);
#[cfg(target_arch = "x86_64")]
rate!(
    ifma52,
    "avx512f,avx512ifma",
    __m512i,
    zmm_reg,
    24,
    _mm512_set1_epi64(0x9e37_79b9),
    ["vpmadd52luq {sum}, {a}, {a}", "/* {t} */"]
);
#[cfg(target_arch = "aarch64")]
rate!(
    pairs_neon,
    "neon",
    int32x4_t,
    vreg,
    16,
    vdupq_n_s32(0x0003_0005),
    ["smlal {sum:v}.4s, {a:v}.4h, {a:v}.4h", "/* {t} */"]
);
