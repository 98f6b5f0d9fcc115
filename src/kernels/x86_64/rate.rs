//! Whether a core issues one or two multiplications of 52-bit integers a cycle.

use std::arch::asm;
use std::arch::x86_64::*;
use std::time::Instant;

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
