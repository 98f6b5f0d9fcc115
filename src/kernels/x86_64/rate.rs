//! The machine's limits: how many multiplications, each added to a sum, a core does a second when nothing else is in
//! the way.

use std::arch::asm;
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

rate!(
    pairs_avx2,
    "avx2",
    __m256i,
    ymm_reg,
    12,
    _mm256_set1_epi32(0x0003_0005),
    ["vpmaddwd {t}, {a}, {a}", "vpaddd {sum}, {sum}, {t}"]
);
rate!(
    pairs_avx512,
    "avx512f,avx512bw",
    __m512i,
    zmm_reg,
    24,
    _mm512_set1_epi32(0x0003_0005),
    ["vpmaddwd {t}, {a}, {a}", "vpaddd {sum}, {sum}, {t}"]
);
rate!(
    pairs_vnni,
    "avx512f,avx512vnni",
    __m512i,
    zmm_reg,
    24,
    _mm512_set1_epi32(0x0003_0005),
    ["vpdpwssd {sum}, {a}, {a}", "/* {t} */"]
);
rate!(
    bytes_avx_vnni,
    "avx2,avxvnni",
    __m256i,
    ymm_reg,
    12,
    _mm256_set1_epi32(0x0302_0105),
    ["{{vex}} vpdpbusd {sum}, {a}, {a}", "/* {t} */"]
);
rate!(
    bytes_vnni,
    "avx512f,avx512vnni",
    __m512i,
    zmm_reg,
    24,
    _mm512_set1_epi32(0x0302_0105),
    ["vpdpbusd {sum}, {a}, {a}", "/* {t} */"]
);
rate!(
    ifma52,
    "avx512f,avx512ifma",
    __m512i,
    zmm_reg,
    24,
    _mm512_set1_epi64(0x9e37_79b9),
    ["vpmadd52luq {sum}, {a}, {a}", "/* {t} */"]
);

/// Whether a core issues one `vpmadd52luq` on 512 bits a cycle and not two: by the time of one chain of them, each of
/// which waits for the one before, over that of many chains at once.
///
/// All processors with the instructions take four cycles for one, so that the quotient is 4 or 8, whatever the clock
/// does. Takes half a millisecond.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn issues_one() -> bool {
    const TURNS: u32 = 20_000;
    const CHAINS: usize = 24;
    let factor = _mm512_set1_epi64(0x9e37_79b9);
    let (mut alone, mut together) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..4 {
        let mut sums = [factor; CHAINS];
        let start = Instant::now();
        for _ in 0..TURNS {
            // SAFETY: a register instruction without memory or flags, of the features of the function.
            unsafe {
                asm!("vpmadd52luq {0}, {1}, {1}", inout(zmm_reg) sums[0], in(zmm_reg) factor,
                    options(pure, nomem, nostack, preserves_flags));
            }
        }
        let middle = Instant::now();
        for _ in 0..TURNS / 4 {
            for sum in &mut sums {
                // SAFETY: a register instruction without memory or flags, of the features of the function.
                unsafe {
                    asm!("vpmadd52luq {0}, {1}, {1}", inout(zmm_reg) *sum, in(zmm_reg) factor,
                        options(pure, nomem, nostack, preserves_flags));
                }
            }
        }
        let end = Instant::now();
        std::hint::black_box(sums);
        alone = alone.min((middle - start).as_secs_f64() / f64::from(TURNS));
        together = together.min((end - middle).as_secs_f64() / f64::from(TURNS / 4 * CHAINS as u32));
    }
    alone < 6.0 * together
}
