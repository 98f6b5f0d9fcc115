//! 32-bit integers side by side, each also a pair of 16-bit integers, and which instructions compute with them:
//! AVX-512 with VNNI, AVX-512, AVX2, or plain Rust.
//!
//! An algorithm is a [`Task`], written once over [`Lanes`]; [`Isa::run`] compiles it once per instruction set and calls
//! the instance that the holder of the `Isa` has proven the CPU to have. Does not know: what is computed.
//!
//! The task's code must reach the operations through `#[inline(always)]` functions and plain loops, never through
//! closures: only then is it compiled with the instructions of its instance.

/// Rows that [`Lanes::interleave`] takes at a time.
pub const INTERLEAVED: usize = 4;

/// Some 32-bit integers.
pub trait Lanes: Copy {
    /// How many.
    const WIDTH: usize;
    /// `x` in every lane.
    fn splat(x: i32) -> Self;
    /// The first [`Lanes::WIDTH`] integers of `from`.
    fn load(from: &[i32]) -> Self;
    /// Writes the lanes to the front of `to`.
    fn store(self, to: &mut [i32]);
    /// The first [`Lanes::WIDTH`] integers of `from`.
    fn widen(from: &[i16]) -> Self;
    /// Writes the lanes, which are 16-bit integers, to the front of `to`.
    fn narrow(self, to: &mut [i16]);
    /// `self + a_0 b_0 + a_1 b_1` for the halves of `a` and `b`, modulo `2^32`.
    fn multiply_add(self, a: Self, b: Self) -> Self;
    /// `self - other`, modulo `2^32`.
    fn sub(self, other: Self) -> Self;
    /// `self` and `other`, bit by bit unequal.
    fn xor(self, other: Self) -> Self;
    /// Lower halves of `self` below those of `high`.
    fn pair(self, high: Self) -> Self;
    /// The integers nearest to `self * factor` in single precision, ties to even.
    fn times(self, factor: f32) -> Self;
    /// Of each half the product with that of `other`, modulo `2^16`.
    fn multiply_halves(self, other: Self) -> Self;
    /// Of each half the product with that of `other` over `2^15`, to nearest, ties up.
    fn multiply_halves_high(self, other: Self) -> Self;
    /// Of each half the difference to that of `other`, modulo `2^16`.
    fn sub_halves(self, other: Self) -> Self;
    /// Four rows of 8 columns as two rows of 8 pairs: rows 0 and 1, rows 2 and 3.
    fn interleave(from: &[i16; INTERLEAVED * 8], to: [&mut [i32; 8]; INTERLEAVED / 2]);
}

/// Work that can run on any instruction set.
pub trait Task {
    /// Does the work with `V * C + V + 1` vectors in registers. Must be `#[inline(always)]`.
    fn run<L: Lanes, const V: usize, const C: usize>(self);
}

/// An instruction set that this CPU has been seen to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Isa(Level);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Vnni,
}

impl Isa {
    /// Every instruction set of this CPU, the best first; the portable one is always there.
    pub fn available() -> impl Iterator<Item = Isa> {
        #[cfg(target_arch = "x86_64")]
        let levels = {
            let avx2 = is_x86_feature_detected!("avx2");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            let vnni = avx512 && is_x86_feature_detected!("avx512vnni");
            [
                vnni.then_some(Level::Vnni),
                avx512.then_some(Level::Avx512),
                avx2.then_some(Level::Avx2),
                Some(Level::Portable),
            ]
        };
        #[cfg(not(target_arch = "x86_64"))]
        let levels = [Some(Level::Portable)];
        levels.into_iter().flatten().map(Isa)
    }

    /// The best instruction set of this CPU.
    pub fn detect() -> Isa {
        Isa::available().next().expect("the portable one is always there")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Level::Vnni => "vnni",
        }
    }

    /// Runs `task` on this instruction set.
    pub fn run(self, task: impl Task) {
        match self.0 {
            Level::Portable => task.run::<Plain, 1, 4>(),
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx2` needs.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { x86::run_avx2(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx512` needs.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { x86::run_avx512(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_vnni` needs.
            #[cfg(target_arch = "x86_64")]
            Level::Vnni => unsafe { x86::run_vnni(task) },
        }
    }
}

/// Eight integers in plain Rust.
#[derive(Clone, Copy)]
struct Plain([i32; 8]);

impl Plain {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(i32, i32) -> i32) -> Self {
        Plain(std::array::from_fn(|lane| op(self.0[lane], other.0[lane])))
    }

    #[inline(always)]
    fn zip_halves(self, other: Self, op: impl Fn(i32, i32) -> i32) -> Self {
        self.zip(other, |a, b| {
            let (low, high) = (op(low(a), low(b)), op(high(a), high(b)));
            (low & 0xffff) | high << 16
        })
    }
}

#[inline(always)]
fn low(pair: i32) -> i32 {
    i32::from(pair as i16)
}

#[inline(always)]
fn high(pair: i32) -> i32 {
    pair >> 16
}

impl Lanes for Plain {
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(x: i32) -> Self {
        Plain([x; 8])
    }

    #[inline(always)]
    fn load(from: &[i32]) -> Self {
        Plain(*from.first_chunk().expect("eight integers"))
    }

    #[inline(always)]
    fn store(self, to: &mut [i32]) {
        to[..8].copy_from_slice(&self.0);
    }

    #[inline(always)]
    fn widen(from: &[i16]) -> Self {
        let from: &[i16; 8] = from.first_chunk().expect("eight integers");
        Plain(from.map(i32::from))
    }

    #[inline(always)]
    fn narrow(self, to: &mut [i16]) {
        to[..8].copy_from_slice(&self.0.map(|lane| lane as i16));
    }

    #[inline(always)]
    fn multiply_add(self, a: Self, b: Self) -> Self {
        let products = a.zip(b, |a, b| (low(a) * low(b)).wrapping_add(high(a) * high(b)));
        self.zip(products, i32::wrapping_add)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, i32::wrapping_sub)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }

    #[inline(always)]
    fn pair(self, high: Self) -> Self {
        self.zip(high, |low, high| (low & 0xffff) | high << 16)
    }

    #[inline(always)]
    fn times(self, factor: f32) -> Self {
        // Adding 1.5 * 2^23 rounds a float below 2^22 to the nearest integer, ties to even.
        const ROUNDER: f32 = 12_582_912.0;
        Plain(self.0.map(|lane| ((lane as f32 * factor + ROUNDER) - ROUNDER) as i32))
    }

    #[inline(always)]
    fn multiply_halves(self, other: Self) -> Self {
        self.zip_halves(other, |a, b| a * b)
    }

    #[inline(always)]
    fn multiply_halves_high(self, other: Self) -> Self {
        self.zip_halves(other, |a, b| (a * b + (1 << 14)) >> 15)
    }

    #[inline(always)]
    fn sub_halves(self, other: Self) -> Self {
        self.zip_halves(other, |a, b| a - b)
    }

    #[inline(always)]
    fn interleave(from: &[i16; INTERLEAVED * 8], to: [&mut [i32; 8]; INTERLEAVED / 2]) {
        for (rows, to) in from.chunks_exact(16).zip(to) {
            for column in 0..8 {
                to[column] = (i32::from(rows[column]) & 0xffff) | i32::from(rows[8 + column]) << 16;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;
