//! 32-bit integers side by side, each also a pair of 16-bit integers, and which instructions compute with them:
//! AVX-512 with VNNI, AVX-512, AVX2 with AVX-VNNI, AVX2, NEON, or plain Rust.
//!
//! An algorithm is an [`I16Task`], written once over [`Lanes`]; [`I16Isa::run`] compiles it once per instruction set
//! and calls the instance that the holder of the `I16Isa` has proven the CPU to have. Independent of: what is computed.
//!
//! The task's code must reach the operations through `#[inline(always)]` functions and plain loops, never through
//! closures: only then is it compiled with the instructions of its instance.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::kernels::rate;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::math::processor::processor_has;

use plain::I16PlainLanes;

/// Rows that are made pairs at a time.
pub const INTERLEAVED: usize = 4;

/// Four rows of a panel of 8 columns.
pub type InterleavedRows = [i16; INTERLEAVED * 8];

/// Pairs of rows of [`InterleavedRows`], in integers of 32 bits.
pub const PAIRS: usize = INTERLEAVED / 2 * 8;

/// Halves of lanes: arithmetic of their 16-bit integers, and how halves of vectors are joined.
pub trait HalfwordLanes: Copy {
    /// Lower halves of `self` below those of `high`.
    fn pair(self, high: Self) -> Self;
    /// Upper halves of `self` below those of `high`.
    fn pair_upper(self, high: Self) -> Self;
    /// The lower halves of all lanes of `self`, then of `other`, in an order of the instruction set's own.
    fn low_halves(self, other: Self) -> Self;
    /// The upper halves in the same order.
    fn high_halves(self, other: Self) -> Self;
    /// Halves of 8 columns that came in that order, two columns in each: panel by panel of a vector 8 columns of 8
    /// rows.
    fn in_blocks(columns: [Self; 4]) -> [Self; 4];
    /// Of each half the product with that of `other`, modulo `2^16`.
    fn multiply_halves(self, other: Self) -> Self;
    /// Of each half the product with that of `other` over `2^15`, to nearest, ties up; `-2^15` has no such square.
    fn multiply_halves_high(self, other: Self) -> Self;
    /// Of each half the product with that of `other`, over `2^16` and rounded down.
    fn multiply_halves_top(self, other: Self) -> Self;
    /// Of each half the sum with that of `other`, modulo `2^16`.
    fn add_halves(self, other: Self) -> Self;
    /// Of each half the difference to that of `other`, modulo `2^16`.
    fn sub_halves(self, other: Self) -> Self;
    /// Of each half and that of `other` the lesser one, without signs.
    fn min_halves(self, other: Self) -> Self;
}

/// Rows of 8 columns in vectors, as they are and as rows of pairs.
pub trait RowPairs: Copy {
    /// Vector number `part` of four rows of 8 columns, row after row.
    fn load_rows(rows: &InterleavedRows, part: usize) -> Self;
    /// Writes such a vector to its place in four rows of 8 columns.
    fn store_rows(self, to: &mut InterleavedRows, part: usize);
    /// Rows of 8 columns, row after row, as rows of 8 pairs: rows 0 and 1, then rows 2 and 3.
    fn paired(self) -> Self;
    /// Rows of 8 pairs as rows of 8 columns again.
    fn apart(self) -> Self;
    /// Writes vector number `part` of two rows of pairs to its place there.
    fn store_paired(self, to: [&mut [i32; 8]; INTERLEAVED / 2], part: usize);
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

/// Some 32-bit integers.
pub trait Lanes: HalfwordLanes + RowPairs {
    /// Their number.
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
    /// `sums`, and the products of the lanes with pair number `first + c` of `factors` in column `c`: four columns, or
    /// eight. Pair after pair, where the instruction set has no better way.
    #[inline(always)]
    fn add_products<const V: usize, const C: usize>(
        mut sums: [[Self; V]; C],
        lanes: [Self; V],
        factors: &[i32; 8],
        first: usize,
    ) -> [[Self; V]; C] {
        for c in 0..C {
            let factor = Self::splat(factors[first + c]);
            for v in 0..V {
                sums[c][v] = sums[c][v].multiply_add(lanes[v], factor);
            }
        }
        sums
    }
    /// `self` and `other`, bit by bit unequal.
    fn xor(self, other: Self) -> Self;
    /// Whether [`Lanes::stream`] goes past the caches.
    const STREAMS: bool = false;
    /// Writes the lanes to the front of `to`, past the caches where the instruction set can and `to` is aligned.
    #[inline(always)]
    fn stream(self, to: &mut [i32]) {
        self.store(to);
    }
    /// Waits for all that was streamed.
    #[inline(always)]
    fn fence() {}
    /// Prefetches the cache line at `from`, which is not read.
    #[inline(always)]
    fn prefetch<T>(_from: *const T) {}
}

/// Work that can run on any instruction set.
pub trait I16Task {
    /// Does the work with `V * C + V + 1` vectors in registers. Must be `#[inline(always)]`.
    fn run<L: Lanes, const V: usize, const C: usize>(self);
}

/// An instruction set that this CPU has been seen to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct I16Isa(I16Level);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum I16Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Plain Rust in the shapes of AVX-512: the joined panels and the tile that fits only into its registers.
    #[cfg(test)]
    Wide,
}

impl I16Isa {
    /// Every instruction set of this CPU, the best first; the portable one is always there.
    pub fn available() -> impl Iterator<Item = I16Isa> {
        #[cfg(target_arch = "x86_64")]
        let levels = {
            let avx2 = processor_has!(Avx2: "avx2");
            let avx_vnni = avx2 && processor_has!(AvxVnni: "avxvnni");
            let avx512 = avx2 && processor_has!(Avx512: "avx512f", "avx512bw", "avx512dq", "avx512vl");
            let vnni = avx512 && processor_has!(Vnni: "avx512vnni");
            [
                vnni.then_some(I16Level::Vnni),
                avx512.then_some(I16Level::Avx512),
                avx_vnni.then_some(I16Level::AvxVnni),
                avx2.then_some(I16Level::Avx2),
                Some(I16Level::Portable),
            ]
        };
        #[cfg(target_arch = "aarch64")]
        let levels = [processor_has!(Neon: "neon").then_some(I16Level::Neon), Some(I16Level::Portable)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let levels = [Some(I16Level::Portable)];
        levels.into_iter().flatten().map(I16Isa)
    }

    /// Every instruction set of this CPU, then the one that only tests have.
    #[cfg(test)]
    pub fn all() -> impl Iterator<Item = I16Isa> {
        I16Isa::available().chain([I16Isa(I16Level::Wide)])
    }

    /// The best instruction set of this CPU.
    pub fn detect() -> I16Isa {
        I16Isa::available().next().expect("the portable one is always there")
    }

    /// Whether it is plain Rust.
    pub fn is_portable(self) -> bool {
        self.0 == I16Level::Portable
    }

    /// Whether its vectors have 16 lanes.
    pub fn is_wide(self) -> bool {
        matches!(self.name(), "avx512" | "vnni" | "wide")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            I16Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            I16Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            I16Level::AvxVnni => "avx-vnni",
            #[cfg(target_arch = "x86_64")]
            I16Level::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            I16Level::Vnni => "vnni",
            #[cfg(target_arch = "aarch64")]
            I16Level::Neon => "neon",
            #[cfg(test)]
            I16Level::Wide => "wide",
        }
    }

    /// Products of 16-bit integers that the calling thread can add to sums in a second, nothing else in the way; the
    /// best of `trials` runs of some milliseconds. `None` for plain Rust.
    pub fn issue_rate(self, trials: usize) -> Option<f64> {
        let _ = trials;
        match self.0 {
            I16Level::Portable => None,
            #[cfg(test)]
            I16Level::Wide => None,
            // SAFETY: only `available` makes this level, after the CPU reported AVX2.
            #[cfg(target_arch = "x86_64")]
            I16Level::Avx2 => Some(16.0 * unsafe { rate::pairs_avx2(trials) }),
            // SAFETY: only `available` makes this level, after the CPU reported AVX2 and AVX-VNNI.
            #[cfg(target_arch = "x86_64")]
            I16Level::AvxVnni => Some(16.0 * unsafe { rate::pairs_avx_vnni(trials) }),
            // SAFETY: only `available` makes this level, after the CPU reported AVX-512 F and BW.
            #[cfg(target_arch = "x86_64")]
            I16Level::Avx512 => Some(32.0 * unsafe { rate::pairs_avx512(trials) }),
            // SAFETY: only `available` makes this level, after the CPU reported AVX-512 F and VNNI.
            #[cfg(target_arch = "x86_64")]
            I16Level::Vnni => Some(32.0 * unsafe { rate::pairs_vnni(trials) }),
            // SAFETY: only `available` makes this level, after the CPU reported NEON.
            #[cfg(target_arch = "aarch64")]
            I16Level::Neon => Some(4.0 * unsafe { rate::pairs_neon(trials) }),
        }
    }

    /// Runs `task` on this instruction set.
    pub fn run(self, task: impl I16Task) {
        match self.0 {
            I16Level::Portable => task.run::<I16PlainLanes<8>, 1, 4>(),
            #[cfg(test)]
            I16Level::Wide => task.run::<I16PlainLanes<16>, 3, 8>(),
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx2` needs.
            #[cfg(target_arch = "x86_64")]
            I16Level::Avx2 => unsafe { x86::run_avx2(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx_vnni` needs.
            #[cfg(target_arch = "x86_64")]
            I16Level::AvxVnni => unsafe { x86::run_avx_vnni(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx512` needs.
            #[cfg(target_arch = "x86_64")]
            I16Level::Avx512 => unsafe { x86::run_avx512(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_vnni` needs.
            #[cfg(target_arch = "x86_64")]
            I16Level::Vnni => unsafe { x86::run_vnni(task) },
            // SAFETY: only `available` makes this level, after the CPU reported NEON.
            #[cfg(target_arch = "aarch64")]
            I16Level::Neon => unsafe { neon::run(task) },
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;
