//! Plain Rust, which compilers vectorise: it runs everywhere, and instruction sets are compared with it.
#![forbid(unsafe_code)]

use super::{HalfwordLanes, INTERLEAVED, InterleavedRows, Lanes, RowPairs};

/// `N` integers: 8, or 16 in tests.
#[derive(Clone, Copy)]
pub struct I16PlainLanes<const N: usize>([i32; N]);

impl<const N: usize> I16PlainLanes<N> {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(i32, i32) -> i32) -> Self {
        I16PlainLanes(std::array::from_fn(|lane| op(self.0[lane], other.0[lane])))
    }

    /// Half number `place` of all lanes.
    #[inline(always)]
    fn half(self, place: usize) -> i32 {
        self.0[place / 2] >> (16 * (place % 2))
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

impl<const N: usize> HalfwordLanes for I16PlainLanes<N> {
    #[inline(always)]
    fn pair(self, high: Self) -> Self {
        self.zip(high, |low, high| (low & 0xffff) | high << 16)
    }

    #[inline(always)]
    fn pair_upper(self, upper: Self) -> Self {
        self.zip(upper, |low, upper| (low >> 16 & 0xffff) | high(upper) << 16)
    }

    #[inline(always)]
    fn low_halves(self, other: Self) -> Self {
        I16PlainLanes(std::array::from_fn(|lane| {
            let of = |at: usize| if at < N { self.0[at] } else { other.0[at - N] };
            (of(2 * lane) & 0xffff) | of(2 * lane + 1) << 16
        }))
    }

    #[inline(always)]
    fn high_halves(self, other: Self) -> Self {
        I16PlainLanes(self.0.map(high)).low_halves(I16PlainLanes(other.0.map(high)))
    }

    #[inline(always)]
    fn in_blocks(columns: [Self; 4]) -> [Self; 4] {
        let mut blocks = columns;
        for (number, block) in blocks.iter_mut().enumerate() {
            for (at, pair) in block.0.iter_mut().enumerate() {
                // Four pairs are a column of a panel, half a vector of one column before.
                let place = number * N + at;
                let (panel, column, quarter) = (place / 32, place / 4 % 8, place % 4);
                let from = column * N / 2 + panel * 4 + quarter;
                *pair = columns[from / N].0[from % N];
            }
        }
        blocks
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
}

impl<const N: usize> RowPairs for I16PlainLanes<N> {
    #[inline(always)]
    fn load_rows(rows: &InterleavedRows, part: usize) -> Self {
        I16PlainLanes(std::array::from_fn(|lane| {
            let at = 2 * (part * N + lane);
            (i32::from(rows[at]) & 0xffff) | i32::from(rows[at + 1]) << 16
        }))
    }

    #[inline(always)]
    fn store_rows(self, to: &mut InterleavedRows, part: usize) {
        for (pair, to) in self.0.into_iter().zip(to.as_chunks_mut::<2>().0.iter_mut().skip(part * N)) {
            *to = [low(pair) as i16, high(pair) as i16];
        }
    }

    #[inline(always)]
    fn paired(self) -> Self {
        I16PlainLanes(std::array::from_fn(|lane| {
            let place = lane / 8 * 16 + lane % 8;
            (self.half(place) & 0xffff) | self.half(place + 8) << 16
        }))
    }

    #[inline(always)]
    fn apart(self) -> Self {
        let from = |place: usize| 2 * (place / 16 * 8 + place % 8) + place / 8 % 2;
        I16PlainLanes(std::array::from_fn(|lane| {
            (self.half(from(2 * lane)) & 0xffff) | self.half(from(2 * lane + 1)) << 16
        }))
    }

    #[inline(always)]
    fn store_paired(self, to: [&mut [i32; 8]; INTERLEAVED / 2], part: usize) {
        for (pairs, to) in self.0.chunks_exact(8).zip(to.into_iter().skip(part * N / 8)) {
            to.copy_from_slice(pairs);
        }
    }
}

impl<const N: usize> Lanes for I16PlainLanes<N> {
    const WIDTH: usize = N;

    #[inline(always)]
    fn splat(x: i32) -> Self {
        I16PlainLanes([x; N])
    }

    #[inline(always)]
    fn load(from: &[i32]) -> Self {
        I16PlainLanes(*from.first_chunk().expect("a whole vector"))
    }

    #[inline(always)]
    fn join(low: &[i32; 8], high: &[i32; 8]) -> Self {
        I16PlainLanes(std::array::from_fn(|lane| if lane < 8 { low[lane] } else { high[lane - 8] }))
    }

    #[inline(always)]
    fn store(self, to: &mut [i32]) {
        to[..N].copy_from_slice(&self.0);
    }

    #[inline(always)]
    fn widen(from: &[i16]) -> Self {
        let from: &[i16; N] = from.first_chunk().expect("a whole vector");
        I16PlainLanes(from.map(i32::from))
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
}
