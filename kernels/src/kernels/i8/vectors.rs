//! 64 bytes as 32 numbers of 16 bits or 16 of 32 bits: the vectors that pack operands and reduce sums.
//!
//! The code around the products of tiles is written once over [`Vector`]: AVX-512, or plain Rust, which every other CPU
//! runs and which tests compare with. Independent of: moduli, tiles.

use bytemuck::cast;

/// Numbers of 16 bits in a vector.
pub const HALVES: usize = 32;

/// Numbers of 32 bits in a vector.
pub const WORDS: usize = 16;

/// `1.5 * 2^23`: adding it rounds a single-precision number to an integer, which the low bits of the sum then hold.
pub const ROUNDER: f32 = 12_582_912.0;

/// 64 bytes as 32 numbers of 16 bits, and as bytes; sums and products wrap.
pub trait HalfwordVector: Copy {
    /// The halves of `from`.
    fn load_halves(from: &[u16; HALVES]) -> Self;
    /// Writes all to `to`.
    fn store_halves(self, to: &mut [u16; HALVES]);
    /// Writes all to `to`, past the caches where that can be had and `to` begins a cache line.
    fn stream_halves(self, to: &mut [u16; HALVES]) {
        self.store_halves(to);
    }
    /// Waits for all that was streamed.
    fn fence() {}
    /// Prefetches the cache lines of `from` where it can, up to the second-level cache.
    fn prefetch(_from: &[u16]) {}
    /// `x` in each half.
    fn splat_half(x: u16) -> Self;
    /// Sums of halves.
    fn add_halves(self, other: Self) -> Self;
    /// Differences of halves.
    fn subtract_halves(self, other: Self) -> Self;
    /// Products of halves.
    fn multiply_halves(self, other: Self) -> Self;
    /// The least of each two halves without signs.
    fn least_halves(self, other: Self) -> Self;
    /// Of each half `x` with a sign the digits of `x = 128 high + low`, `-64 <= low < 64`, modulo 256: `low` in the low
    /// byte, `high` in the high one.
    fn digits(self) -> Self;
    /// The bytes of four rows of eight halves, as words of the four rows: in quarter 0 the low bytes of the even
    /// columns, in quarter 1 those of the odd ones, in quarters 2 and 3 the high bytes.
    fn group_rows(self) -> Self;
    /// Sums of bytes.
    fn add_bytes(self, other: Self) -> Self;
    /// The low half of each word of `self`, and above it that of `high`.
    fn join_low_halves(self, high: Self) -> Self;
}

/// 64 bytes as 16 numbers of 32 bits; sums and products wrap.
pub trait Vector: HalfwordVector {
    /// The words of `from`.
    fn load(from: &[u32; WORDS]) -> Self;
    /// Writes all to `to`.
    fn store(self, to: &mut [u32; WORDS]);
    /// `x` in each word.
    fn splat(x: u32) -> Self;
    /// Bits of one of the two.
    fn xor(self, other: Self) -> Self;
    /// Sums of words.
    fn add(self, other: Self) -> Self;
    /// Differences of words.
    fn subtract(self, other: Self) -> Self;
    /// Products of words.
    fn multiply(self, other: Self) -> Self;
    /// `self + a_0 b_0 + a_1 b_1` for the halves with signs of each word.
    fn add_products(self, a: Self, b: Self) -> Self;
    /// The least of each two words without signs.
    fn least(self, other: Self) -> Self;
    /// Words times `2^7`.
    fn shift_left_7(self) -> Self;
    /// The bits of `x * inverse + ROUNDER` in single precision, for words `x` with signs: the low bits are those of the
    /// rounded product.
    fn round_product(self, inverse: f32) -> Self;
    /// In each quarter `q`, word `w` of vector `v` becomes word `v` of result `w`.
    fn turn_quarters(vectors: [Self; 4]) -> [Self; 4];
    /// Quarter `q` of vector `v` becomes quarter `v` of result `q`.
    fn swap_quarters(vectors: [Self; 4]) -> [Self; 4];
    /// Word `w` of vector `v` becomes word `v` of result `w`.
    #[inline(always)]
    fn turn(vectors: [Self; WORDS]) -> [Self; WORDS] {
        let mut parts = vectors;
        for part in parts.as_chunks_mut::<4>().0 {
            *part = Self::turn_quarters(*part);
        }
        // Quarter `q` of `parts[4 v + w]`: word `4 q + w` of the vectors `4 v` to `4 v + 3`.
        let mut out = vectors;
        for word in 0..4 {
            let turned = Self::swap_quarters([parts[word], parts[4 + word], parts[8 + word], parts[12 + word]]);
            for quarter in 0..4 {
                out[4 * quarter + word] = turned[quarter];
            }
        }
        out
    }
    /// 512 bits from bit `first` of a number on; bits that the number lacks are 0.
    fn bits_from(limbs: &[u64], first: i64) -> Self;
}

/// The byte of a vector that becomes each byte of [`HalfwordVector::group_rows`].
const GROUP_ROWS: [u8; 4 * WORDS] = {
    let mut from = [0; 4 * WORDS];
    let mut at = 0;
    while at < from.len() {
        let (word, row) = (at / 4, at % 4);
        let (digit, parity, pair) = (word / 8, word / 4 % 2, word % 4);
        from[at] = (16 * row + 2 * (2 * pair + parity) + digit) as u8;
        at += 1;
    }
    from
};

/// Plain Rust.
#[derive(Clone, Copy)]
pub struct PlainVector([u32; WORDS]);

impl PlainVector {
    #[inline(always)]
    fn halves(self) -> [u16; HALVES] {
        cast(self.0)
    }

    #[inline(always)]
    fn of_halves(self, other: Self, mut of: impl FnMut(u16, u16) -> u16) -> Self {
        let (a, b, mut out) = (self.halves(), other.halves(), [0; HALVES]);
        for (at, out) in out.iter_mut().enumerate() {
            *out = of(a[at], b[at]);
        }
        PlainVector(cast(out))
    }

    #[inline(always)]
    fn of_words(self, other: Self, mut of: impl FnMut(u32, u32) -> u32) -> Self {
        let mut out = [0; WORDS];
        for (at, out) in out.iter_mut().enumerate() {
            *out = of(self.0[at], other.0[at]);
        }
        PlainVector(out)
    }
}

impl HalfwordVector for PlainVector {
    #[inline(always)]
    fn load_halves(from: &[u16; HALVES]) -> Self {
        PlainVector(cast(*from))
    }

    #[inline(always)]
    fn store_halves(self, to: &mut [u16; HALVES]) {
        *to = self.halves();
    }

    #[inline(always)]
    fn splat_half(x: u16) -> Self {
        PlainVector(cast([x; HALVES]))
    }

    #[inline(always)]
    fn add_halves(self, other: Self) -> Self {
        self.of_halves(other, u16::wrapping_add)
    }

    #[inline(always)]
    fn subtract_halves(self, other: Self) -> Self {
        self.of_halves(other, u16::wrapping_sub)
    }

    #[inline(always)]
    fn multiply_halves(self, other: Self) -> Self {
        self.of_halves(other, u16::wrapping_mul)
    }

    #[inline(always)]
    fn least_halves(self, other: Self) -> Self {
        self.of_halves(other, u16::min)
    }

    #[inline(always)]
    fn digits(self) -> Self {
        self.of_halves(self, |x, _| {
            let shifted = x.wrapping_add(64);
            (shifted & 127).wrapping_sub(64) & 0xff | (shifted >> 7) << 8
        })
    }

    #[inline(always)]
    fn group_rows(self) -> Self {
        let (bytes, mut out): ([u8; 4 * WORDS], _) = (cast(self.0), [0u8; 4 * WORDS]);
        for (at, out) in out.iter_mut().enumerate() {
            *out = bytes[GROUP_ROWS[at] as usize];
        }
        PlainVector(cast(out))
    }

    #[inline(always)]
    fn add_bytes(self, other: Self) -> Self {
        let (mut sums, other): ([u8; 4 * WORDS], [u8; 4 * WORDS]) = (cast(self.0), cast(other.0));
        for (sum, other) in sums.iter_mut().zip(other) {
            *sum = sum.wrapping_add(other);
        }
        PlainVector(cast(sums))
    }

    #[inline(always)]
    fn join_low_halves(self, high: Self) -> Self {
        self.of_words(high, |low, high| low & 0xffff | high << 16)
    }
}

impl Vector for PlainVector {
    #[inline(always)]
    fn load(from: &[u32; WORDS]) -> Self {
        PlainVector(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [u32; WORDS]) {
        *to = self.0;
    }

    #[inline(always)]
    fn splat(x: u32) -> Self {
        PlainVector([x; WORDS])
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self.of_words(other, |a, b| a ^ b)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.of_words(other, u32::wrapping_add)
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        self.of_words(other, u32::wrapping_sub)
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        self.of_words(other, u32::wrapping_mul)
    }

    #[inline(always)]
    fn add_products(self, a: Self, b: Self) -> Self {
        let product = |x: u32, y: u32| i32::from(x as u16 as i16) * i32::from(y as u16 as i16);
        let products = a.of_words(b, |a, b| product(a, b).wrapping_add(product(a >> 16, b >> 16)) as u32);
        self.add(products)
    }

    #[inline(always)]
    fn least(self, other: Self) -> Self {
        self.of_words(other, u32::min)
    }

    #[inline(always)]
    fn shift_left_7(self) -> Self {
        self.of_words(self, |x, _| x << 7)
    }

    #[inline(always)]
    fn round_product(self, inverse: f32) -> Self {
        self.of_words(self, |x, _| (x as i32 as f32 * inverse + ROUNDER).to_bits())
    }

    #[inline(always)]
    fn turn_quarters(vectors: [Self; 4]) -> [Self; 4] {
        let mut out = vectors;
        for (word, out) in out.iter_mut().enumerate() {
            for at in 0..WORDS {
                out.0[at] = vectors[at % 4].0[at / 4 * 4 + word];
            }
        }
        out
    }

    #[inline(always)]
    fn swap_quarters(vectors: [Self; 4]) -> [Self; 4] {
        let mut out = vectors;
        for (quarter, out) in out.iter_mut().enumerate() {
            for at in 0..WORDS {
                out.0[at] = vectors[at / 4].0[4 * quarter + at % 4];
            }
        }
        out
    }

    #[inline(always)]
    fn bits_from(limbs: &[u64], first: i64) -> Self {
        let (start, right) = (first.div_euclid(64), first.rem_euclid(64) as u32);
        let limb = |at: i64| usize::try_from(at).ok().and_then(|at| limbs.get(at)).copied().unwrap_or(0);
        let mut out = [0u64; WORDS / 2];
        let mut current = limb(start);
        for (at, out) in (1..).zip(&mut out) {
            let next = limb(start + at);
            *out = current >> right | (next << 1) << (63 - right);
            current = next;
        }
        PlainVector(cast(out))
    }
}

#[cfg(target_arch = "x86_64")]
pub mod x86;

#[cfg(test)]
mod tests;
