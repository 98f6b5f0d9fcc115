//! The lanes of AArch64 with the extension I8MM, whose `usdot` multiplies unsigned with signed bytes.
//!
//! The vector type never leaves this module but as the type parameter of a task that `run` runs, so its methods only
//! execute on a CPU that has the instructions.

use super::{ByLanes, I8Lanes};
use crate::kernels::i8::tiles::I8Task;
use crate::kernels::i8::vectors;
use std::arch::aarch64::*;
use std::arch::asm;

/// # Safety
/// The CPU has NEON and I8MM.
#[target_feature(enable = "neon,i8mm")]
pub unsafe fn run<T: I8Task>(task: T) {
    // Sums of 4 rows by 16 columns are 16 of 32 registers.
    task.run::<ByLanes<I8mm, 4, 2>>();
}

/// Eight lanes, the first four in the first register.
#[derive(Clone, Copy)]
struct I8mm([int32x4_t; 2]);

impl I8Lanes for I8mm {
    const WIDTH: usize = 8;
    type Vectors = vectors::PlainVector;

    #[inline(always)]
    fn zero() -> Self {
        I8mm::splat(0)
    }

    #[inline(always)]
    fn splat(x: u32) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { I8mm([vdupq_n_s32(x as i32); 2]) }
    }

    #[inline(always)]
    fn load(from: &[u32]) -> Self {
        assert!(from.len() >= Self::WIDTH);
        // SAFETY: see the note on top of this module; the slice is long enough.
        unsafe { I8mm([vld1q_s32(from.as_ptr().cast()), vld1q_s32(from.as_ptr().add(4).cast())]) }
    }

    #[inline(always)]
    fn store(self, to: &mut [i32]) {
        assert!(to.len() >= Self::WIDTH);
        // SAFETY: see the note on top of this module; the slice is long enough.
        unsafe {
            vst1q_s32(to.as_mut_ptr(), self.0[0]);
            vst1q_s32(to.as_mut_ptr().add(4), self.0[1]);
        }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { I8mm([veorq_s32(self.0[0], other.0[0]), veorq_s32(self.0[1], other.0[1])]) }
    }

    #[inline(always)]
    fn add_products(self, unsigned: Self, signed: Self) -> Self {
        let mut sums = self.0;
        for (at, sum) in sums.iter_mut().enumerate() {
            // SAFETY: see the note on top of this module; an instruction on registers.
            unsafe {
                // Rust has no stable function for it.
                asm!(
                    ".arch_extension i8mm",
                    "usdot {sum:v}.4s, {unsigned:v}.16b, {signed:v}.16b",
                    sum = inout(vreg) *sum,
                    unsigned = in(vreg) unsigned.0[at],
                    signed = in(vreg) signed.0[at],
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
        }
        I8mm(sums)
    }
}
