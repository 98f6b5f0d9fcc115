//! The machine's limit: how many IFMA instructions a core issues a second when nothing else is in the way.

use std::arch::asm;
use std::arch::x86_64::*;
use std::time::Instant;

/// `vpmadd52luq` instructions a second on the calling thread, from 24 independent chains in registers.
///
/// The best of `trials` runs of about 5 ms each.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn instruction_rate(trials: usize) -> f64 {
    const TURNS: u32 = 1_000_000;
    let factor = _mm512_set_epi64(0x9e37_79b9, 0x1ce4_e5b9, 0x1331_11eb, 0x5851_f42d, 5, 0x369d_ea0f, 77, 0x27bb_2ee6);
    let mut best = 0.0f64;
    for _ in 0..trials.max(1) {
        let mut sums = [factor; 24];
        let start = Instant::now();
        for _ in 0..TURNS {
            for sum in &mut sums {
                // SAFETY: one register instruction without memory or flags; the CPU has AVX-512 IFMA.
                unsafe {
                    asm!("vpmadd52luq {0}, {1}, {1}", inout(zmm_reg) *sum, in(zmm_reg) factor,
                        options(pure, nomem, nostack, preserves_flags));
                }
            }
        }
        let total = sums.into_iter().fold(factor, |a, b| _mm512_add_epi64(a, b));
        std::hint::black_box(_mm512_reduce_add_epi64(total));
        best = best.max(f64::from(TURNS) * 24.0 / start.elapsed().as_secs_f64());
    }
    best
}

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
            // SAFETY: as in `instruction_rate`.
            unsafe {
                asm!("vpmadd52luq {0}, {1}, {1}", inout(zmm_reg) sums[0], in(zmm_reg) factor,
                    options(pure, nomem, nostack, preserves_flags));
            }
        }
        let middle = Instant::now();
        for _ in 0..TURNS / 4 {
            for sum in &mut sums {
                // SAFETY: as in `instruction_rate`.
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
