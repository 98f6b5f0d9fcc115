//! Products of digits in the lanes of AVX2 and carries through their sums.

/// The products on a processor that has the instructions: there is no value of this type on another one.
#[derive(Clone, Copy, Debug)]
pub struct DigitLaneProducts(());

impl DigitLaneProducts {
    /// Whether this processor has the instructions.
    pub fn are_there() -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            crate::math::processor::processor_has!(Avx2: "avx2")
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            false
        }
    }

    /// For tables that the compiler makes.
    ///
    /// # Safety
    /// The value is used where [`DigitLaneProducts::are_there`].
    pub const unsafe fn assume() -> DigitLaneProducts {
        DigitLaneProducts(())
    }
}

#[cfg(target_arch = "x86_64")]
impl DigitLaneProducts {
    /// Adds the products of `digits` digits of `x` with as many of each lane of `y` to `2 digits` sums, over all rows,
    /// which are `stride` apart; `x` begins at its lane.
    pub fn add(self, x: &[i32], y: &[i32], digits: usize, stride: usize, sums: &mut [i64]) {
        // SAFETY: the processor has AVX2, as there is a value of this type.
        unsafe { avx2::add(x, y, digits, stride, sums) }
    }

    /// Makes all sums but the last of each lane balanced digits.
    pub fn carry(self, sums: &mut [i64], bits: u32) {
        // SAFETY: as above.
        unsafe { avx2::carry(sums, bits) }
    }

    /// Combines the sums of blocks, and makes plain digits of the result, in pairs, with the part above them.
    pub fn finish(self, sums: &mut [i64], block: usize, levels: u32, bits: u32) {
        // SAFETY: as above.
        unsafe { avx2::finish(sums, block, levels, bits) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl DigitLaneProducts {
    pub fn add(self, _x: &[i32], _y: &[i32], _digits: usize, _stride: usize, _sums: &mut [i64]) {
        unreachable!("`are_there` is false");
    }

    pub fn carry(self, _sums: &mut [i64], _bits: u32) {
        unreachable!("`are_there` is false");
    }

    pub fn finish(self, _sums: &mut [i64], _block: usize, _levels: u32, _bits: u32) {
        unreachable!("`are_there` is false");
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use crate::kernels::digit_lanes::LANES;
    use std::arch::x86_64::*;

    /// Digits of `x` at a time, whose sums with two digits of `y` stay in registers over the rows.
    const GROUP: usize = 10;

    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn add(x: &[i32], y: &[i32], digits: usize, stride: usize, sums: &mut [i64]) {
        let rows = (y.len() + stride - digits * LANES) / stride;
        assert!(digits.is_multiple_of(2) && digits * LANES <= stride && sums.len() == 2 * digits * LANES);
        let last = (rows - 1) * stride + digits * LANES;
        assert!(rows > 0 && y.len() >= last && x.len() + LANES > last);
        for from in (0..digits).step_by(GROUP) {
            macro_rules! with_group {
                ($($count:literal $sums:literal)*) => {
                    match digits - from {
                        // SAFETY: the processor has AVX2, and the lengths are those that were asserted.
                        $($count => unsafe {
                            add_group::<$count, $sums>((x, y), (rows, stride), (digits, from), sums);
                        })*
                        // SAFETY: as above.
                        _ => unsafe {
                            add_group::<10, 11>((x, y), (rows, stride), (digits, from), sums);
                        }
                    }
                };
            }
            with_group!(2 3 4 5 6 7 8 9);
        }
    }

    /// The products of `D` digits of `x`, the first of them `from`, with all of `y`; there are `S = D + 1` sums.
    ///
    /// # Safety
    /// The processor has AVX2; `y` has `stride` entries for each row but the last, and four times `digits` for that,
    /// `x` at most three less in all, `sums` twice four times `digits`, and `from + D` is at most `digits`, which is
    /// even.
    #[target_feature(enable = "avx2")]
    unsafe fn add_group<const D: usize, const S: usize>(
        (x, y): (&[i32], &[i32]),
        (rows, stride): (usize, usize),
        (digits, from): (usize, usize),
        sums: &mut [i64],
    ) {
        assert!(S == D + 1 && from + D <= digits);
        let mut place = sums.as_mut_ptr().wrapping_add(from * LANES).cast::<__m256i>();
        // SAFETY: the processor has AVX2 (the caller's promise). The largest place read of `x` is `(rows - 1) stride +
        // (from + D - 1) LANES`, of `y` `(rows - 1) stride + (second + 1) LANES + 3`; of `sums` the places `from +
        // second + s <= digits + digits - 2 + 1` of four are read and written. All lie inside (the caller's promise).
        unsafe {
            // Sums move down by two places from one pair of digits of `y` to the next, and two more follow.
            let mut own = [_mm256_setzero_si256(); S];
            // Closures, since loops of one place after the other would keep the sums in memory.
            (0..S - 2).for_each(|s| own[s] = _mm256_loadu_si256(place.add(s)));
            for second in (0..digits).step_by(2) {
                own[S - 2] = _mm256_loadu_si256(place.add(S - 2));
                own[S - 1] = _mm256_loadu_si256(place.add(S - 1));
                let (mut x, mut y) = (x.as_ptr().add(from * LANES), y.as_ptr().add(second * LANES));
                for _ in 0..rows {
                    let low = _mm256_cvtepi32_epi64(_mm_loadu_si128(y.cast()));
                    let high = _mm256_cvtepi32_epi64(_mm_loadu_si128(y.add(LANES).cast()));
                    // Written out: a loop of ten digits would stay one, and its sums in memory.
                    macro_rules! multiply_digits {
                        ($($i:literal)*) => {
                            $(if $i < D {
                                let digit = _mm256_set1_epi32(*x.add($i * LANES));
                                own[$i] = _mm256_add_epi64(own[$i], _mm256_mul_epi32(digit, low));
                                own[$i + 1] = _mm256_add_epi64(own[$i + 1], _mm256_mul_epi32(digit, high));
                            })*
                        };
                    }
                    multiply_digits!(0 1 2 3 4 5 6 7 8 9);
                    (x, y) = (x.wrapping_add(stride), y.wrapping_add(stride));
                }
                _mm256_storeu_si256(place, own[0]);
                _mm256_storeu_si256(place.add(1), own[1]);
                place = place.add(2);
                (0..S - 2).for_each(|s| own[s] = own[s + 2]);
            }
            (0..S - 2).for_each(|s| _mm256_storeu_si256(place.add(s), own[s]));
        }
    }

    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn carry(sums: &mut [i64], bits: u32) {
        let shift = Shift::new(bits);
        let half = _mm256_set1_epi64x(1 << (bits - 1));
        let (sums, last) = sums.split_at_mut(sums.len() - LANES);
        let mut up = _mm256_setzero_si256();
        for sum in sums.as_chunks_mut::<LANES>().0 {
            let own = _mm256_add_epi64(load(sum), up);
            up = shift.right(_mm256_add_epi64(own, half));
            store(sum, _mm256_sub_epi64(own, shift.left(up)));
        }
        let last = last.as_chunks_mut::<LANES>().0;
        let top = _mm256_add_epi64(load(&last[0]), up);
        store(&mut last[0], top);
    }

    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn finish(sums: &mut [i64], block: usize, levels: u32, bits: u32) {
        let shift = Shift::new(bits);
        let mask = _mm256_set1_epi64x((1 << bits) - 1);
        let mut up = _mm256_setzero_si256();
        let sums = sums.as_chunks_mut::<LANES>().0;
        let digits = block << levels;
        for level in (0..levels).rev() {
            for part in 0..3usize.pow(level) {
                interpolate(sums, part, digits >> level);
            }
        }
        for pair in 0..digits {
            let low = _mm256_add_epi64(load(&sums[2 * pair]), up);
            let high = _mm256_add_epi64(load(&sums[2 * pair + 1]), shift.right(low));
            up = shift.right(high);
            let high = shift.left(_mm256_and_si256(high, mask));
            store(&mut sums[pair], _mm256_or_si256(_mm256_and_si256(low, mask), high));
        }
        store(&mut sums[digits], up);
    }

    /// Puts the sums of products of two halves and of their sums together, `digits` numbers each, the last in the
    /// place of triple `part`; the result goes to the place of pair `part`.
    ///
    /// Differences wrap where sums have been carried: the final results are small again (docs/ALGORITHM.md).
    #[inline]
    #[target_feature(enable = "avx2")]
    fn interpolate(sums: &mut [[i64; LANES]], part: usize, digits: usize) {
        let (from, half) = (3 * part * digits, digits / 2);
        let (outer, sum) = sums[from..from + 3 * digits].split_at_mut(2 * digits);
        let (low, high) = outer.split_at_mut(digits);
        let ((low, low_end), (high, high_end)) = (low.split_at_mut(half), high.split_at_mut(half));
        let (sum, sum_end) = sum.split_at_mut(half);
        for at in 0..half {
            let (inner, next) = (load(&low_end[at]), load(&high[at]));
            let middle = _mm256_sub_epi64(load(&sum[at]), _mm256_add_epi64(load(&low[at]), next));
            let end = _mm256_sub_epi64(load(&sum_end[at]), _mm256_add_epi64(inner, load(&high_end[at])));
            store(&mut low_end[at], _mm256_add_epi64(inner, middle));
            store(&mut high[at], _mm256_add_epi64(next, end));
        }
        sums.copy_within(from..from + 2 * digits, 2 * part * digits);
    }

    /// Shifts of signed numbers by the bits of a digit.
    #[derive(Clone, Copy)]
    struct Shift {
        bits: __m128i,
        sign: __m256i,
        moved_sign: __m256i,
    }

    impl Shift {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn new(bits: u32) -> Shift {
            let sign = _mm256_set1_epi64x(i64::MIN);
            Shift { bits: _mm_cvtsi32_si128(bits as i32), sign, moved_sign: _mm256_set1_epi64x(1 << (63 - bits)) }
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn left(self, number: __m256i) -> __m256i {
            _mm256_sll_epi64(number, self.bits)
        }

        /// Rounded down. There is an instruction only for unsigned numbers; flipping the sign bit makes them such.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn right(self, number: __m256i) -> __m256i {
            let shifted = _mm256_srl_epi64(_mm256_xor_si256(number, self.sign), self.bits);
            _mm256_sub_epi64(shifted, self.moved_sign)
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(lanes: &[i64; LANES]) -> __m256i {
        // SAFETY: the processor has AVX2 (the feature of this function), and four words are read where they are.
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(lanes: &mut [i64; LANES], number: __m256i) {
        // SAFETY: as for loads.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), number) }
    }
}
