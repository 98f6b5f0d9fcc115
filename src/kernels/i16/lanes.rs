//! 32-bit integers side by side, each also a pair of 16-bit integers, and which instructions compute with them:
//! AVX-512 with VNNI, AVX-512, AVX2, or plain Rust.
//!
//! An algorithm is a [`Task`], written once over [`Lanes`]; [`Isa::run`] compiles it once per instruction set and calls
//! the instance that the holder of the `Isa` has proven the CPU to have. Does not know: what is computed.
//!
//! The task's code must reach the operations through `#[inline(always)]` functions and plain loops, never through
//! closures: only then is it compiled with the instructions of its instance.
#[cfg(target_arch = "x86_64")]
use crate::kernels::x86_64::rate;
#[cfg(target_arch = "x86_64")]
use crate::math::processor::processor_has;

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
    /// The integers of `low`, and of `high` behind them where there is room.
    fn join(low: &[i32; 8], high: &[i32; 8]) -> Self;
    /// Writes the lanes to the front of `to`.
    fn store(self, to: &mut [i32]);
    /// The first [`Lanes::WIDTH`] integers of `from`.
    fn widen(from: &[i16]) -> Self;
    /// `self + a_0 b_0 + a_1 b_1` for the halves of `a` and `b`, modulo `2^32`.
    fn multiply_add(self, a: Self, b: Self) -> Self;
    /// `self` and `other`, bit by bit unequal.
    fn xor(self, other: Self) -> Self;
    /// Lower halves of `self` below those of `high`.
    fn pair(self, high: Self) -> Self;
    /// The lower halves of all lanes of `self`, then of `other`, in an order of the instruction set's own.
    fn low_halves(self, other: Self) -> Self;
    /// The upper halves in the same order.
    fn high_halves(self, other: Self) -> Self;
    /// Halves of 8 columns that came in that order, two columns in each: panel by panel of a vector 8 columns of 8
    /// rows.
    fn in_blocks(columns: [Self; 4]) -> [Self; 4];
    /// Writes halves that came in that order, those of the first vector before those of the second one.
    fn store_halves(self, to: &mut [i16]);
    /// Copies whole vectors of halves, past the caches where the instruction set can and `to` is aligned.
    #[inline(always)]
    fn stream_halves(from: &[i16], to: &mut [i16]) {
        to.copy_from_slice(from);
    }
    /// Waits for all that was streamed.
    #[inline(always)]
    fn fence() {}
    /// Of each half the product with that of `other`, modulo `2^16`.
    fn multiply_halves(self, other: Self) -> Self;
    /// Of each half the product with that of `other` over `2^15`, to nearest, ties up.
    fn multiply_halves_high(self, other: Self) -> Self;
    /// Of each half the product with that of `other`, over `2^16` and rounded down.
    fn multiply_halves_top(self, other: Self) -> Self;
    /// Of each half the sum with that of `other`, modulo `2^16`.
    fn add_halves(self, other: Self) -> Self;
    /// Of each half the difference to that of `other`, modulo `2^16`.
    fn sub_halves(self, other: Self) -> Self;
    /// Of each half and that of `other` the lesser one, without signs.
    fn min_halves(self, other: Self) -> Self;
    /// Four rows of 8 columns as two rows of 8 pairs: rows 0 and 1, rows 2 and 3.
    fn interleave(from: &[i16; INTERLEAVED * 8], to: [&mut [i32; 8]; INTERLEAVED / 2]);
    /// Asks for the cache line at `from`, which is not read by it.
    #[inline(always)]
    fn prefetch<T>(_from: *const T) {}
    /// The rows of 8 rows of 8 as columns.
    #[inline(always)]
    fn transpose(rows: &[i16; 64]) -> [i16; 64] {
        let mut columns = [0; 64];
        for at in 0..64 {
            columns[at] = rows[at % 8 * 8 + at / 8];
        }
        columns
    }
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
            let avx2 = processor_has!(Avx2: "avx2");
            let avx512 = avx2 && processor_has!(Avx512: "avx512f", "avx512bw", "avx512dq", "avx512vl");
            let vnni = avx512 && processor_has!(Vnni: "avx512vnni");
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

    /// Whether it is plain Rust.
    pub fn is_portable(self) -> bool {
        self.0 == Level::Portable
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

    /// Products of 16-bit integers that the calling thread can add to sums in a second, nothing else in the way; the
    /// best of `trials` runs of some milliseconds. `None` for plain Rust.
    pub fn issue_rate(self, trials: usize) -> Option<f64> {
        let _ = trials;
        match self.0 {
            Level::Portable => None,
            // SAFETY: only `available` makes this level, after the CPU reported AVX2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Some(16.0 * unsafe { rate::pairs_avx2(trials) }),
            // SAFETY: only `available` makes this level, after the CPU reported AVX-512 F and BW.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Some(32.0 * unsafe { rate::pairs_avx512(trials) }),
            // SAFETY: only `available` makes this level, after the CPU reported AVX-512 F and VNNI.
            #[cfg(target_arch = "x86_64")]
            Level::Vnni => Some(32.0 * unsafe { rate::pairs_vnni(trials) }),
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
    fn join(low: &[i32; 8], _high: &[i32; 8]) -> Self {
        Plain(*low)
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
    fn multiply_add(self, a: Self, b: Self) -> Self {
        let products = a.zip(b, |a, b| (low(a) * low(b)).wrapping_add(high(a) * high(b)));
        self.zip(products, i32::wrapping_add)
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
    fn low_halves(self, other: Self) -> Self {
        Plain(std::array::from_fn(|lane| {
            let of = |at: usize| if at < 8 { self.0[at] } else { other.0[at - 8] };
            (of(2 * lane) & 0xffff) | of(2 * lane + 1) << 16
        }))
    }

    #[inline(always)]
    fn high_halves(self, other: Self) -> Self {
        Plain(self.0.map(high)).low_halves(Plain(other.0.map(high)))
    }

    #[inline(always)]
    fn in_blocks(columns: [Self; 4]) -> [Self; 4] {
        columns
    }

    #[inline(always)]
    fn store_halves(self, to: &mut [i16]) {
        for (pair, to) in self.0.into_iter().zip(to.as_chunks_mut::<2>().0) {
            *to = [low(pair) as i16, high(pair) as i16];
        }
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
    fn multiply_halves_top(self, other: Self) -> Self {
        self.zip_halves(other, |a, b| (a * b) >> 16)
    }

    #[inline(always)]
    fn add_halves(self, other: Self) -> Self {
        self.zip_halves(other, |a, b| a + b)
    }

    #[inline(always)]
    fn sub_halves(self, other: Self) -> Self {
        self.zip_halves(other, |a, b| a - b)
    }

    #[inline(always)]
    fn min_halves(self, other: Self) -> Self {
        self.zip_halves(other, |a, b| i32::from((a as u16).min(b as u16)))
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
