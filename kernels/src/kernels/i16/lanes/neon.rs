//! The lanes of AArch64: two registers of NEON, which every such processor has.
//!
//! NEON adds no products of neighbours to sums of 32 bits. It multiplies four 16-bit integers by one of another
//! register and adds the products at once: so the lower halves of 8 lanes are gathered in one register and the upper
//! halves in another, once for all columns, and 16 products take 4 instructions.
//!
//! The vector type never leaves this module but as the type parameter of a task that `run` runs, so its methods only
//! execute on a CPU that has the instructions.

use super::{HalfwordLanes, I16Task, INTERLEAVED, InterleavedRows, Lanes, RowPairs};
use std::arch::aarch64::*;
use std::arch::asm;

/// # Safety
/// The CPU has NEON.
#[target_feature(enable = "neon")]
pub unsafe fn run<T: I16Task>(task: T) {
    // Sums of 16 lanes in 4 columns are 16 of 32 registers; their left factors take 4, the right ones 1.
    task.run::<Neon, 2, 4>();
}

/// Eight lanes, the first four in the first register.
#[derive(Clone, Copy)]
struct Neon([int32x4_t; 2]);

impl Neon {
    /// Both registers as 16-bit integers.
    #[inline(always)]
    fn halves(self) -> [int16x8_t; 2] {
        // SAFETY: see the note on top of this module.
        unsafe { [vreinterpretq_s16_s32(self.0[0]), vreinterpretq_s16_s32(self.0[1])] }
    }

    #[inline(always)]
    fn of_halves([first, second]: [int16x8_t; 2]) -> Neon {
        // SAFETY: see the note on top of this module.
        unsafe { Neon([vreinterpretq_s32_s16(first), vreinterpretq_s32_s16(second)]) }
    }

    /// The lower halves of all lanes, then the upper ones.
    #[inline(always)]
    fn separated(self) -> [int16x8_t; 2] {
        let [first, second] = self.halves();
        // SAFETY: see the note on top of this module.
        unsafe { [vuzp1q_s16(first, second), vuzp2q_s16(first, second)] }
    }
}

/// An operation on each half and that of another vector.
macro_rules! on_halves {
    ($name:ident, |$a:ident, $b:ident| $value:expr) => {
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            let (left, right) = (self.halves(), other.halves());
            let mut halves = left;
            for at in 0..2 {
                let ($a, $b) = (left[at], right[at]);
                // SAFETY: see the note on top of this module.
                halves[at] = unsafe { $value };
            }
            Neon::of_halves(halves)
        }
    };
}

impl HalfwordLanes for Neon {
    on_halves!(pair, |low, high| vtrn1q_s16(low, high));
    on_halves!(pair_upper, |low, high| vtrn2q_s16(low, high));
    on_halves!(multiply_halves, |a, b| vmulq_s16(a, b));
    on_halves!(multiply_halves_high, |a, b| vqrdmulhq_s16(a, b));
    on_halves!(multiply_halves_top, |a, b| {
        let (lower, upper) = (vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
        vuzp2q_s16(vreinterpretq_s16_s32(lower), vreinterpretq_s16_s32(upper))
    });
    on_halves!(add_halves, |a, b| vaddq_s16(a, b));
    on_halves!(sub_halves, |a, b| vsubq_s16(a, b));
    on_halves!(min_halves, |a, b| {
        vreinterpretq_s16_u16(vminq_u16(vreinterpretq_u16_s16(a), vreinterpretq_u16_s16(b)))
    });

    #[inline(always)]
    fn low_halves(self, other: Self) -> Self {
        Neon::of_halves([self.separated()[0], other.separated()[0]])
    }

    #[inline(always)]
    fn high_halves(self, other: Self) -> Self {
        Neon::of_halves([self.separated()[1], other.separated()[1]])
    }

    #[inline(always)]
    fn in_blocks(columns: [Self; 4]) -> [Self; 4] {
        columns
    }
}

impl RowPairs for Neon {
    #[inline(always)]
    fn load_rows(rows: &InterleavedRows, part: usize) -> Self {
        let rows = &rows.as_chunks::<16>().0[part];
        // SAFETY: see the note on top of this module; both loads lie inside the array.
        unsafe { Neon::of_halves([vld1q_s16(rows.as_ptr()), vld1q_s16(rows.as_ptr().add(8))]) }
    }

    #[inline(always)]
    fn store_rows(self, to: &mut InterleavedRows, part: usize) {
        let [upper, lower] = self.halves();
        let to = &mut to.as_chunks_mut::<16>().0[part];
        // SAFETY: see the note on top of this module; both stores lie inside the array.
        unsafe {
            vst1q_s16(to.as_mut_ptr(), upper);
            vst1q_s16(to.as_mut_ptr().add(8), lower);
        }
    }

    #[inline(always)]
    fn paired(self) -> Self {
        let [upper, lower] = self.halves();
        // SAFETY: see the note on top of this module.
        unsafe { Neon::of_halves([vzip1q_s16(upper, lower), vzip2q_s16(upper, lower)]) }
    }

    #[inline(always)]
    fn apart(self) -> Self {
        Neon::of_halves(self.separated())
    }

    #[inline(always)]
    fn store_paired(self, to: [&mut [i32; 8]; INTERLEAVED / 2], part: usize) {
        self.store(to[part]);
    }

    #[inline(always)]
    fn transpose(rows: &[i16; 64]) -> [i16; 64] {
        let mut columns = [0; 64];
        // SAFETY: see the note on top of this module; loads and stores are eighths of arrays.
        unsafe {
            let mut lines: [int16x8_t; 8] = [vdupq_n_s16(0); 8];
            for (at, line) in lines.iter_mut().enumerate() {
                *line = vld1q_s16(rows.as_ptr().add(8 * at));
            }
            // Each step moves the highest bit of a place to its end: after three steps rows and columns have changed.
            for _ in 0..3 {
                let before = lines;
                for at in 0..4 {
                    lines[2 * at] = vzip1q_s16(before[at], before[at + 4]);
                    lines[2 * at + 1] = vzip2q_s16(before[at], before[at + 4]);
                }
            }
            for (at, line) in lines.into_iter().enumerate() {
                vst1q_s16(columns.as_mut_ptr().add(8 * at), line);
            }
        }
        columns
    }
}

impl Lanes for Neon {
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(x: i32) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { Neon([vdupq_n_s32(x); 2]) }
    }

    #[inline(always)]
    fn load(from: &[i32]) -> Self {
        assert!(from.len() >= Self::WIDTH);
        // SAFETY: see the note on top of this module; the slice is long enough.
        unsafe { Neon([vld1q_s32(from.as_ptr()), vld1q_s32(from.as_ptr().add(4))]) }
    }

    #[inline(always)]
    fn join(low: &[i32; 8], _high: &[i32; 8]) -> Self {
        Neon::load(low)
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
    fn widen(from: &[i16]) -> Self {
        assert!(from.len() >= Self::WIDTH);
        // SAFETY: see the note on top of this module; the slice is long enough.
        unsafe {
            let halves = vld1q_s16(from.as_ptr());
            Neon([vmovl_s16(vget_low_s16(halves)), vmovl_high_s16(halves)])
        }
    }

    #[inline(always)]
    fn multiply_add(self, a: Self, b: Self) -> Self {
        let ([a_low, a_high], [b_low, b_high]) = (a.separated(), b.separated());
        let [mut first, mut second] = self.0;
        // SAFETY: see the note on top of this module.
        unsafe {
            first = vmlal_s16(first, vget_low_s16(a_low), vget_low_s16(b_low));
            second = vmlal_high_s16(second, a_low, b_low);
            first = vmlal_s16(first, vget_low_s16(a_high), vget_low_s16(b_high));
            second = vmlal_high_s16(second, a_high, b_high);
        }
        Neon([first, second])
    }

    #[inline(always)]
    fn add_products<const V: usize, const C: usize>(
        mut sums: [[Self; V]; C],
        lanes: [Self; V],
        factors: &[i32; 8],
        first: usize,
    ) -> [[Self; V]; C] {
        const { assert!(C.is_multiple_of(4)) };
        let mut separated = [lanes[0].halves(); V];
        for v in 0..V {
            separated[v] = lanes[v].separated();
        }
        for four in (0..C).step_by(4) {
            let from = &factors[first + four..][..4];
            // SAFETY: see the note on top of this module; four integers are a register.
            let factors = unsafe { vreinterpretq_s16_s32(vld1q_s32(from.as_ptr())) };
            for v in 0..V {
                add_column::<0, 1>(&mut sums[four][v], separated[v], factors);
                add_column::<2, 3>(&mut sums[four + 1][v], separated[v], factors);
                add_column::<4, 5>(&mut sums[four + 2][v], separated[v], factors);
                add_column::<6, 7>(&mut sums[four + 3][v], separated[v], factors);
            }
        }
        sums
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { Neon([veorq_s32(self.0[0], other.0[0]), veorq_s32(self.0[1], other.0[1])]) }
    }

    #[inline(always)]
    fn prefetch<T>(from: *const T) {
        // SAFETY: a hint, which reads nothing, whatever the address is.
        unsafe {
            asm!("prfm pldl2keep, [{from}]", from = in(reg) from, options(readonly, nostack, preserves_flags));
        }
    }
}

/// Adds the products of halves of 8 lanes, lower ones and upper ones, with integers number `LOW` and `HIGH` of
/// `factors`.
#[inline(always)]
fn add_column<const LOW: i32, const HIGH: i32>(sum: &mut Neon, [low, high]: [int16x8_t; 2], factors: int16x8_t) {
    let [first, second] = &mut sum.0;
    // SAFETY: see the note on top of this module.
    unsafe {
        *first = vmlal_laneq_s16::<LOW>(*first, vget_low_s16(low), factors);
        *second = vmlal_high_laneq_s16::<LOW>(*second, low, factors);
        *first = vmlal_laneq_s16::<HIGH>(*first, vget_low_s16(high), factors);
        *second = vmlal_high_laneq_s16::<HIGH>(*second, high, factors);
    }
}
