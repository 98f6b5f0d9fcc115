//! Vectors of eight doubles, and the instructions that compute them: AVX-512, AVX2 with FMA, or plain Rust.
//!
//! An algorithm is an [`F64Task`], written once over [`DoubleVector`]; [`F64Isa::run`] compiles it once per instruction
//! set and calls the instance for the instruction set that the `F64Isa` proves to be present. Independent of: the
//! computation.
//!
//! The task's code must reach the vector operations through `#[inline(always)]` functions and plain loops, never
//! through closures: only then is it compiled with the instructions of its instance.
#[cfg(target_arch = "x86_64")]
use crate::math::processor::processor_has;

/// Doubles in a [`DoubleVector`].
pub const LANES: usize = 8;

/// Eight doubles, added and multiplied lane by lane.
pub trait DoubleVector: Copy {
    /// `x` in every lane.
    fn splat(x: f64) -> Self;
    /// The eight doubles at `from`.
    fn load(from: &[f64; LANES]) -> Self;
    /// Writes the eight doubles.
    fn store(self, to: &mut [f64; LANES]);
    /// Writes the eight doubles past the caches where the CPU can and `to` is one cache line; [`DoubleVector::fence`]
    /// must follow before another thread may read them.
    fn stream(self, to: &mut [f64; LANES]);
    /// Orders all that was streamed before whatever is written later.
    fn fence();
    /// Prefetches the cache line of `at`; changes nothing.
    fn prefetch(at: &[f64; LANES]);
    /// As [`DoubleVector::prefetch`], into the second cache and not the first.
    fn prefetch_far(at: &[f64; LANES]);
    /// `self + other`.
    fn add(self, other: Self) -> Self;
    /// `self - other`.
    fn sub(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once or twice: callers must not depend on which.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `self / divisor`, given `1 / divisor` rounded: rounded to nearest, where nothing over- or underflows.
    ///
    /// From the quotient by the inverse, which is at most a unit in the last place away, and its exact remainder.
    /// Source: Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM J. Res.
    /// Dev. 34 (1990).
    #[inline(always)]
    fn quotient(self, divisor: Self, inverse: Self) -> Self {
        let zero = Self::splat(0.0);
        let near = self.mul_add(inverse, zero);
        let remainder = near.mul_add(zero.sub(divisor), self);
        remainder.mul_add(inverse, near)
    }
    /// Each lane limited to `[low, high]`; NaN becomes a value in that range.
    fn clamp(self, low: Self, high: Self) -> Self;
}

/// Work that can run on any instruction set.
pub trait F64Task {
    /// Does the work with vectors `V`, of which about `6 * N + N + 1` fit in registers. Must be `#[inline(always)]`.
    fn run<V: DoubleVector, const N: usize>(self);
}

/// An instruction set that this CPU was found to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct F64Isa(F64Level);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum F64Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl F64Isa {
    /// Every instruction set of this CPU, the best first; the portable one is always included.
    pub fn available() -> impl Iterator<Item = F64Isa> {
        let levels: [Option<F64Level>; 3] = [
            #[cfg(target_arch = "x86_64")]
            processor_has!(Avx512: "avx512f", "avx512dq", "avx512vl", "bmi2").then_some(F64Level::Avx512),
            #[cfg(not(target_arch = "x86_64"))]
            None,
            #[cfg(target_arch = "x86_64")]
            processor_has!(Avx2: "avx2", "fma", "bmi2").then_some(F64Level::Avx2),
            #[cfg(not(target_arch = "x86_64"))]
            None,
            Some(F64Level::Portable),
        ];
        levels.into_iter().flatten().map(F64Isa)
    }

    /// The best instruction set of this CPU.
    pub fn detect() -> F64Isa {
        F64Isa::available().next().expect("the portable one is always there")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            F64Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            F64Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            F64Level::Avx512 => "avx512",
        }
    }

    /// Runs `task` on this instruction set.
    pub fn run(self, task: impl F64Task) {
        match self.0 {
            F64Level::Portable => task.run::<PlainDoubles, 1>(),
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx2` needs.
            #[cfg(target_arch = "x86_64")]
            F64Level::Avx2 => unsafe { x86::run_avx2(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx512` needs.
            #[cfg(target_arch = "x86_64")]
            F64Level::Avx512 => unsafe { x86::run_avx512(task) },
        }
    }
}

/// Eight doubles in plain Rust.
#[derive(Clone, Copy)]
struct PlainDoubles([f64; LANES]);

impl PlainDoubles {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(f64, f64) -> f64) -> Self {
        PlainDoubles(std::array::from_fn(|lane| op(self.0[lane], other.0[lane])))
    }
}

impl DoubleVector for PlainDoubles {
    #[inline(always)]
    fn splat(x: f64) -> Self {
        PlainDoubles([x; LANES])
    }

    #[inline(always)]
    fn load(from: &[f64; LANES]) -> Self {
        PlainDoubles(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f64; LANES]) {
        *to = self.0;
    }

    #[inline(always)]
    fn stream(self, to: &mut [f64; LANES]) {
        self.store(to);
    }

    #[inline(always)]
    fn fence() {}

    #[inline(always)]
    fn prefetch(_at: &[f64; LANES]) {}

    #[inline(always)]
    fn prefetch_far(_at: &[f64; LANES]) {}

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        // A fused operation without the instruction is a slow library call; aarch64 always has it.
        if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
            PlainDoubles(std::array::from_fn(|lane| self.0[lane].mul_add(factor.0[lane], term.0[lane])))
        } else {
            PlainDoubles(std::array::from_fn(|lane| self.0[lane] * factor.0[lane] + term.0[lane]))
        }
    }

    #[inline(always)]
    fn quotient(self, divisor: Self, _inverse: Self) -> Self {
        self.zip(divisor, |a, b| a / b) // without a fused operation there is no exact remainder
    }

    #[inline(always)]
    fn clamp(self, low: Self, high: Self) -> Self {
        self.zip(low, f64::max).zip(high, f64::min)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{DoubleVector, F64Task, LANES};
    use std::arch::x86_64::*;

    // The vector types below never leave this module but as the type parameter of a task that `run_avx2` or
    // `run_avx512` runs, so their methods only execute on a CPU that has the instructions.

    #[inline(always)]
    fn is_cache_line(to: &[f64; LANES]) -> bool {
        (to.as_ptr() as usize).is_multiple_of(64)
    }

    /// # Safety
    /// The CPU has AVX2, FMA and BMI2.
    #[target_feature(enable = "avx2,fma,bmi2")]
    pub unsafe fn run_avx2<T: F64Task>(task: T) {
        task.run::<Avx2, 1>();
    }

    /// # Safety
    /// The CPU has AVX-512 F, DQ and VL, and BMI2.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma,bmi2")]
    pub unsafe fn run_avx512<T: F64Task>(task: T) {
        task.run::<Avx512, 4>();
    }

    /// Two 256-bit registers.
    #[derive(Clone, Copy)]
    struct Avx2(__m256d, __m256d);

    impl DoubleVector for Avx2 {
        #[inline(always)]
        fn splat(x: f64) -> Self {
            // SAFETY: see the note on top of this module.
            unsafe { Avx2(_mm256_set1_pd(x), _mm256_set1_pd(x)) }
        }

        #[inline(always)]
        fn load(from: &[f64; LANES]) -> Self {
            // SAFETY: see the note on top of this module; both loads lie inside the array.
            unsafe { Avx2(_mm256_loadu_pd(from.as_ptr()), _mm256_loadu_pd(from.as_ptr().add(4))) }
        }

        #[inline(always)]
        fn store(self, to: &mut [f64; LANES]) {
            // SAFETY: see the note on top of this module; both stores lie inside the array.
            unsafe {
                _mm256_storeu_pd(to.as_mut_ptr(), self.0);
                _mm256_storeu_pd(to.as_mut_ptr().add(4), self.1);
            }
        }

        #[inline(always)]
        fn stream(self, to: &mut [f64; LANES]) {
            if !is_cache_line(to) {
                return self.store(to);
            }
            // SAFETY: see the note on top of this module; both stores lie inside the array and are aligned.
            unsafe {
                _mm256_stream_pd(to.as_mut_ptr(), self.0);
                _mm256_stream_pd(to.as_mut_ptr().add(4), self.1);
            }
        }

        #[inline(always)]
        fn fence() {
            // SAFETY: see the note on top of this module.
            unsafe { _mm_sfence() };
        }

        #[inline(always)]
        fn prefetch(at: &[f64; LANES]) {
            // SAFETY: see the note on top of this module; the address is that of a live array.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().cast()) };
        }

        #[inline(always)]
        fn prefetch_far(at: &[f64; LANES]) {
            // SAFETY: see the note on top of this module; the address is that of a live array.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(at.as_ptr().cast()) };
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: see the note on top of this module.
            unsafe { Avx2(_mm256_add_pd(self.0, other.0), _mm256_add_pd(self.1, other.1)) }
        }

        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: see the note on top of this module.
            unsafe { Avx2(_mm256_sub_pd(self.0, other.0), _mm256_sub_pd(self.1, other.1)) }
        }

        #[inline(always)]
        fn mul_add(self, factor: Self, term: Self) -> Self {
            // SAFETY: see the note on top of this module.
            unsafe { Avx2(_mm256_fmadd_pd(self.0, factor.0, term.0), _mm256_fmadd_pd(self.1, factor.1, term.1)) }
        }

        #[inline(always)]
        fn clamp(self, low: Self, high: Self) -> Self {
            // SAFETY: see the note on top of this module. `max` gives its second operand where one is NaN.
            unsafe {
                Avx2(
                    _mm256_min_pd(_mm256_max_pd(self.0, low.0), high.0),
                    _mm256_min_pd(_mm256_max_pd(self.1, low.1), high.1),
                )
            }
        }
    }

    /// One 512-bit register.
    #[derive(Clone, Copy)]
    struct Avx512(__m512d);

    impl DoubleVector for Avx512 {
        #[inline(always)]
        fn splat(x: f64) -> Self {
            // SAFETY: see the note on top of this module.
            unsafe { Avx512(_mm512_set1_pd(x)) }
        }

        #[inline(always)]
        fn load(from: &[f64; LANES]) -> Self {
            // SAFETY: see the note on top of this module; the load is the whole array.
            unsafe { Avx512(_mm512_loadu_pd(from.as_ptr())) }
        }

        #[inline(always)]
        fn store(self, to: &mut [f64; LANES]) {
            // SAFETY: see the note on top of this module; the store is the whole array.
            unsafe { _mm512_storeu_pd(to.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn stream(self, to: &mut [f64; LANES]) {
            if !is_cache_line(to) {
                return self.store(to);
            }
            // SAFETY: see the note on top of this module; the store is the whole array, which is aligned.
            unsafe { _mm512_stream_pd(to.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn fence() {
            // SAFETY: see the note on top of this module.
            unsafe { _mm_sfence() };
        }

        #[inline(always)]
        fn prefetch(at: &[f64; LANES]) {
            // SAFETY: see the note on top of this module; the address is that of a live array.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().cast()) };
        }

        #[inline(always)]
        fn prefetch_far(at: &[f64; LANES]) {
            // SAFETY: see the note on top of this module; the address is that of a live array.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(at.as_ptr().cast()) };
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: see the note on top of this module.
            unsafe { Avx512(_mm512_add_pd(self.0, other.0)) }
        }

        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: see the note on top of this module.
            unsafe { Avx512(_mm512_sub_pd(self.0, other.0)) }
        }

        #[inline(always)]
        fn mul_add(self, factor: Self, term: Self) -> Self {
            // SAFETY: see the note on top of this module.
            unsafe { Avx512(_mm512_fmadd_pd(self.0, factor.0, term.0)) }
        }

        #[inline(always)]
        fn clamp(self, low: Self, high: Self) -> Self {
            // SAFETY: see the note on top of this module. `max` gives its second operand where one is NaN.
            unsafe { Avx512(_mm512_min_pd(_mm512_max_pd(self.0, low.0), high.0)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Arithmetic<'a> {
        a: &'a [f64; LANES],
        b: &'a [f64; LANES],
        out: &'a mut [[f64; LANES]; 6],
    }

    impl F64Task for Arithmetic<'_> {
        #[inline(always)]
        fn run<V: DoubleVector, const N: usize>(self) {
            let (a, b) = (V::load(self.a), V::load(self.b));
            a.add(b).store(&mut self.out[0]);
            a.sub(b).store(&mut self.out[1]);
            a.mul_add(b, V::splat(3.0)).store(&mut self.out[2]);
            a.clamp(V::splat(-4.0), V::splat(2.0)).store(&mut self.out[3]);
            a.stream(&mut self.out[4]);
            V::fence();
            V::prefetch(self.a);
            V::prefetch_far(self.b);
            let (_, unaligned) = self.out.as_flattened_mut().split_at_mut(33);
            b.stream(unaligned.first_chunk_mut().unwrap());
        }
    }

    #[test]
    fn every_instruction_set_computes_the_same() {
        let a = [1.0, -2.0, 3.0, 1e300, f64::NAN, f64::NEG_INFINITY, -0.5, 8.0];
        let b = [5.0, 6.0, -7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
        for isa in F64Isa::available() {
            let mut out = [[0.0; LANES]; 6];
            isa.run(Arithmetic { a: &a, b: &b, out: &mut out });
            for lane in [0, 1, 2, 6, 7] {
                assert_eq!(out[0][lane], a[lane] + b[lane], "{isa:?}");
                assert_eq!(out[1][lane], a[lane] - b[lane], "{isa:?}");
                assert_eq!(out[2][lane], a[lane] * b[lane] + 3.0, "{isa:?}");
            }
            assert_eq!(out[3], [1.0, -2.0, 2.0, 2.0, -4.0, -4.0, -0.5, 2.0], "{isa:?}");
            assert_eq!((out[4][0], &out[4][1..], out[5][0]), (1.0, &b[..7], 12.0), "{isa:?}");
        }
    }
}
