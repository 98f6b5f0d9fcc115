//! Conversion of big floats to the residues of 16 bits of kernel `i16`: first modulo products of four of its primes, by
//! 52-bit digits, and then modulo each prime.
//!
//! A product `M` of four primes is below `2^52`, so that the sums of digits times radix powers are those of `ifma52`,
//! with a quarter of the moduli: half the instructions of the method by pairs of 16 bits. Montgomery's reduction
//! divides by `2^52`, which the radix powers have in advance; a multiple of `M` then brings the number below `M + 768`,
//! and a quotient with a balanced remainder is taken for each prime. Layout of the output: 4 rows of 8 columns, 16 bits
//! each, are a vector, row after row or pair of rows after pair ([`Form`]). Bounds: docs/ALGORITHM.md, "Residues of 16
//! bits".

use super::digits::{Cutter, ROWS, load_bytes};
use super::to_residues::{DigitRows, PrimeSums, scratch_words as strip_words, sums};
use crate::kernels::PanelSource;
use crate::kernels::form::Form;
use crate::kernels::x86_64::cpu;
use crate::math::modulus::{Modulus, inverse_modulo_word};
use crate::plan::BLOCK;
use std::arch::x86_64::*;
use std::ops::Range;

/// Primes of a product.
const GROUP: usize = 4;

/// Strips of rows whose digits are held: as many neighbouring lines of a plane are written together.
const STRIPS: usize = 16;

/// Bits of a digit.
const DIGIT_BITS: u32 = 52;

/// Bits of a reduced sum that its quotient does not need.
const DROPPED_BITS: u32 = 7;

/// The largest number of digits: with one more, a reduced sum could exceed `2^59`, and its reduction 52 bits.
const MOST_DIGITS: usize = 126;

/// Bits behind the point of a quotient by a prime.
const QUOTIENT_BITS: u32 = 10;

/// One prime.
struct Divisor {
    prime: i16,
    /// `(p - 1) / 2`.
    half: i16,
    /// `floor(2^62 / p)`.
    reciprocal: u64,
    /// `floor(half * reciprocal / 2^52)`: the offset that makes remainders balanced.
    offset: u64,
}

/// A product `M` of four primes.
struct FourPrimes {
    modulus: u64,
    /// `-1 / M` modulo `2^52`.
    inverse: u64,
    /// `floor(2^(51 + b) / M)` for an `M` of `b` bits.
    reciprocal: u64,
    /// `b - 8`.
    shift: u64,
    /// `2^52 - M`.
    complement: u64,
    /// `2^52` modulo `M`: one in Montgomery's form.
    unit: u64,
    divisors: [Divisor; GROUP],
}

/// The tables for some primes and operands; a value proves that the CPU has the instructions.
pub struct Composites {
    form: Form,
    count: usize,
    digits: usize,
    groups: Vec<FourPrimes>,
    /// `2^(52 (d + 1))` modulo product `g` at `g * digits + d`.
    powers: Vec<u64>,
}

impl Divisor {
    fn new(prime: u64) -> Divisor {
        let (half, reciprocal) = (prime / 2, (1 << (DIGIT_BITS + QUOTIENT_BITS)) / prime);
        let offset = ((u128::from(half) * u128::from(reciprocal)) >> DIGIT_BITS) as u64;
        Divisor { prime: prime as i16, half: half as i16, reciprocal, offset }
    }
}

impl FourPrimes {
    /// The last of fewer primes than four counts several times.
    fn new(primes: &[u64]) -> FourPrimes {
        let prime = |at: usize| primes[at.min(primes.len() - 1)];
        let modulus: u64 = (0..GROUP).map(prime).product();
        let bits = modulus.ilog2() + 1;
        assert!(bits <= DIGIT_BITS && bits > 8);
        let digit = (1u64 << DIGIT_BITS) - 1;
        FourPrimes {
            modulus,
            inverse: inverse_modulo_word(modulus).wrapping_neg() & digit,
            reciprocal: ((1u128 << (DIGIT_BITS - 1 + bits)) / u128::from(modulus)) as u64,
            shift: u64::from(bits - DROPPED_BITS - 1),
            complement: digit + 1 - modulus,
            unit: (1 << DIGIT_BITS) % modulus,
            divisors: std::array::from_fn(|at| Divisor::new(prime(at))),
        }
    }
}

impl Composites {
    /// The tables for odd primes between `2^10` and `2^13` and operands of at most `2^operand_bits`, if the CPU has the
    /// instructions and the operands are not too long; panels are written in this form.
    pub fn new(primes: &[u64], operand_bits: u32, form: Form) -> Option<Composites> {
        let digits = (operand_bits / DIGIT_BITS + 1) as usize;
        if cpu::has_ifma52().is_err() || digits > MOST_DIGITS {
            return None;
        }
        assert!(primes.iter().all(|prime| (1 << QUOTIENT_BITS..1 << 13).contains(prime)));
        let groups: Vec<_> = primes.chunks(GROUP).map(FourPrimes::new).collect();
        let mut powers = Vec::with_capacity(groups.len() * digits);
        for group in &groups {
            let (modulus, mut power) = (Modulus::new(group.modulus), group.unit);
            for _ in 0..digits {
                powers.push(power);
                power = modulus.multiply(power, group.unit);
            }
        }
        Some(Composites { form, count: primes.len(), digits, groups, powers })
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        (self.powers.len() * 8 + self.groups.len() * size_of::<FourPrimes>()) as u64
    }

    /// Words of scratch for one call.
    pub fn scratch_words(&self) -> usize {
        STRIPS * strip_words(self.digits)
    }

    /// Fills one panel of the planes of `primes` with balanced residues, bypassing the caches if `streams` is set; see
    /// `PlaneEngine::to_residues`.
    pub fn to_residues(
        &self,
        primes: Range<usize>,
        source: &PanelSource<'_>,
        streams: bool,
        planes: &mut [&mut [u64]],
        scratch: &mut [u64],
    ) {
        let rows = source.rows.len();
        assert!(source.columns.len() <= BLOCK && source.columns.end <= source.view.cols());
        assert!(source.rows.end <= source.view.rows() && source.shifts.len() >= source.columns.end);
        assert!(planes.len() == primes.len());
        assert!(planes.iter().all(|plane| plane.len() >= self.form.panel_words(rows)));
        assert!(primes.end <= self.count);
        let aligned = planes.iter().all(|plane| (plane.as_ptr() as usize).is_multiple_of(64));
        let call = Call { primes, rows, streams: streams && aligned };
        // SAFETY: only `new` makes this, after the CPU reported all instructions.
        unsafe { self.convert(&call, source, planes, scratch) }
    }

    /// Digits of an operand.
    pub fn digits(&self) -> usize {
        self.digits
    }

    /// Residues of integers that are digits already; see `DigitConversions::residues_of_digits`.
    pub fn of_digits(&self, digits: &[u64], signs: &[u8], planes: &mut [&mut [u64]]) {
        let rows = signs.len();
        assert!(planes.len() == self.count && planes.iter().all(|plane| plane.len() >= self.form.panel_words(rows)));
        let call = Call { primes: 0..self.count, rows, streams: false };
        // SAFETY: only `new` makes this, after the CPU reported all instructions.
        unsafe { self.strips(&call, digits, signs, planes) }
    }

    #[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512vbmi")]
    fn strips(&self, call: &Call, digits: &[u64], signs: &[u8], planes: &mut [&mut [u64]]) {
        let words = (self.digits + 1) * ROWS * BLOCK;
        let strips = digits.chunks_exact(words).zip(signs.chunks(ROWS));
        for (number, (words, own)) in strips.enumerate() {
            let mut signs = [0; ROWS];
            signs[..own.len()].copy_from_slice(own);
            let digits = DigitRows { words, carries: [0; ROWS] };
            let strip = DigitStrip { digits, signs, rows: number * ROWS..number * ROWS + own.len() };
            for group in (0..self.groups.len()).step_by(2) {
                match self.groups.len() - group {
                    1 => self.several::<1>(group, call, &strip, planes),
                    _ => self.several::<2>(group, call, &strip, planes),
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
    fn convert(&self, call: &Call, source: &PanelSource<'_>, planes: &mut [&mut [u64]], scratch: &mut [u64]) {
        let words = strip_words(self.digits);
        let digits = &mut scratch[..STRIPS * words];
        let mut cutter = Cutter::new(source);
        for first in (0..call.rows).step_by(STRIPS * ROWS) {
            let rows = first..(first + STRIPS * ROWS).min(call.rows);
            let mut ends = [([0u8; ROWS], [0u8; ROWS]); STRIPS];
            for row in 0..rows.len() {
                let (strip, offset) = (row / ROWS, row % ROWS);
                let out = &mut digits[strip * words..][..words];
                let cut = cutter.next_row(&mut out[offset * BLOCK..]);
                (ends[strip].0[offset], ends[strip].1[offset]) = (cut.signs, cut.carries);
            }
            // A short last strip reads what earlier rows left in `digits` and stores only its own rows.
            let strip = |at: usize| DigitStrip {
                digits: DigitRows { words: &digits[at * words..][..words], carries: ends[at].1 },
                signs: ends[at].0,
                rows: first + at * ROWS..(first + (at + 1) * ROWS).min(call.rows),
            };
            let (mut group, end) = (call.primes.start / GROUP, call.primes.end.div_ceil(GROUP));
            while group < end {
                for at in 0..rows.len().div_ceil(ROWS) {
                    // Two at a time: 16 sums in registers, and each digit loaded serves four multiply-adds.
                    match end - group {
                        1 => self.several::<1>(group, call, &strip(at), planes),
                        _ => self.several::<2>(group, call, &strip(at), planes),
                    }
                }
                group += 2;
            }
        }
        _mm_sfence(); // streamed words must be visible before another thread is told of them
    }

    /// The residues of a strip modulo the primes of `GROUPS` neighbouring products.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512vbmi")]
    fn several<const GROUPS: usize>(
        &self,
        group: usize,
        call: &Call,
        strip: &DigitStrip<'_>,
        planes: &mut [&mut [u64]],
    ) {
        let powers = &self.powers[group * self.digits..][..GROUPS * self.digits];
        let composites = &self.groups[group..group + GROUPS];
        let units = std::array::from_fn(|at| composites[at].unit);
        let sums = sums::<GROUPS>(powers, units, &strip.digits);
        let lanes = StripLanes::new(self.form, strip.signs);
        for (at, composite) in composites.iter().enumerate() {
            let residues = residues(composite, &sums[at], &lanes);
            for (prime, vector) in ((group + at) * GROUP..).zip(residues) {
                if call.primes.contains(&prime) {
                    write(planes[prime - call.primes.start], self.form, strip, vector, call.streams);
                }
            }
        }
    }
}

/// The arguments of a call.
struct Call {
    primes: Range<usize>,
    rows: usize,
    streams: bool,
}

/// Up to `ROWS` rows of digits; `rows` are counted within the panel.
struct DigitStrip<'a> {
    digits: DigitRows<'a>,
    signs: [u8; ROWS],
    rows: Range<usize>,
}

/// The positions of the entries of a strip in the vector that is written.
struct StripLanes {
    /// The source of each byte.
    order: __m512i,
    /// The negative entries, in place.
    negative: u32,
}

impl StripLanes {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(form: Form, signs: [u8; ROWS]) -> StripLanes {
        match form {
            Form::Rows => StripLanes { order: load_bytes(&ROW_BYTES), negative: u32::from_le_bytes(signs) },
            Form::Pairs => {
                // The bits of both rows of a pair alternate.
                let [a, b, c, d] = signs.map(u32::from);
                let negative = spread(a | c << 16) | spread(b | d << 16) << 1;
                StripLanes { order: load_bytes(&PAIR_BYTES), negative }
            }
        }
    }
}

/// The lower 8 bits of both halves, with a 0 behind each.
#[inline]
fn spread(bits: u32) -> u32 {
    let bits = (bits | bits << 4) & 0x0f0f_0f0f;
    let bits = (bits | bits << 2) & 0x3333_3333;
    (bits | bits << 1) & 0x5555_5555
}

/// Writes the residues of a strip to one plane.
#[inline]
#[target_feature(enable = "avx512f")]
fn write(plane: &mut [u64], form: Form, strip: &DigitStrip<'_>, residues: __m512i, streams: bool) {
    let out = &mut plane[form.panel_words(strip.rows.start)..form.panel_words(strip.rows.end)];
    if strip.rows.len() == ROWS {
        assert!(out.len() == ROWS * BLOCK / 4);
        // SAFETY: `out` is as long as a vector; strips begin on 64-byte boundaries where `streams` is set.
        unsafe {
            let to = out.as_mut_ptr().cast();
            if streams { _mm512_stream_si512(to, residues) } else { _mm512_storeu_si512(to, residues) }
        }
        return;
    }
    let mut words = [0u64; ROWS * BLOCK / 4];
    // SAFETY: the array is as long as a vector.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), residues) };
    form.clear_behind(strip.rows.len(), &mut words);
    out.copy_from_slice(&words[..out.len()]);
}

/// Balanced residues of a strip modulo the four primes.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512vbmi")]
fn residues(composite: &FourPrimes, sums: &PrimeSums, lanes: &StripLanes) -> [__m512i; GROUP] {
    let values: [__m512i; ROWS] = std::array::from_fn(|row| reduce(composite, sums[row]));
    let [v0, v1, v2, v3] = values;
    let low = merge([v0, _mm512_slli_epi64::<16>(v1), _mm512_slli_epi64::<32>(v2), _mm512_slli_epi64::<48>(v3)]);
    std::array::from_fn(|at| {
        let divisor = &composite.divisors[at];
        let (reciprocal, offset) =
            (_mm512_set1_epi64(divisor.reciprocal as i64), _mm512_set1_epi64(divisor.offset as i64));
        let [q0, q1, q2, q3] = values.map(|value| _mm512_madd52hi_epu64(offset, value, reciprocal));
        let quotients = merge([
            _mm512_srli_epi64::<QUOTIENT_BITS>(q0),
            _mm512_slli_epi64::<{ 16 - QUOTIENT_BITS }>(q1),
            _mm512_slli_epi64::<{ 32 - QUOTIENT_BITS }>(q2),
            _mm512_slli_epi64::<{ 48 - QUOTIENT_BITS }>(q3),
        ]);
        let (prime, half) = (_mm512_set1_epi16(divisor.prime), _mm512_set1_epi16(divisor.half));
        let rest = _mm512_sub_epi16(low, _mm512_mullo_epi16(quotients, prime));
        // The quotient is right or one too small.
        let rest = _mm512_mask_sub_epi16(rest, _mm512_cmpgt_epi16_mask(rest, half), rest, prime);
        let rest = _mm512_permutexvar_epi8(lanes.order, rest);
        _mm512_mask_sub_epi16(rest, lanes.negative, _mm512_setzero_si512(), rest)
    })
}

/// A sum divided by `2^52`, modulo `M`: in the lower 52 bits, a number below `M + 768`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduce(composite: &FourPrimes, (lo, hi): (__m512i, __m512i)) -> __m512i {
    let zero = _mm512_setzero_si512();
    let constant = |word: u64| _mm512_set1_epi64(word as i64);
    let modulus = constant(composite.modulus);
    // With q M the lower 52 bits are a multiple of 2^52: none where they are 0, else one more.
    let q = _mm512_madd52lo_epu64(zero, lo, constant(composite.inverse));
    let carry = _mm512_srli_epi64::<DIGIT_BITS>(_mm512_add_epi64(lo, constant((1 << DIGIT_BITS) - 1)));
    let sum = _mm512_add_epi64(_mm512_madd52hi_epu64(hi, q, modulus), carry);
    let top = _mm512_srli_epi64::<DROPPED_BITS>(sum);
    let quotient = _mm512_madd52hi_epu64(zero, top, constant(composite.reciprocal));
    let quotient = _mm512_srlv_epi64(quotient, constant(composite.shift));
    _mm512_madd52lo_epu64(sum, quotient, constant(composite.complement))
}

/// Of each 64 bits the lowest 16 from the first vector, the next 16 from the second, and so on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn merge([a, b, c, d]: [__m512i; ROWS]) -> __m512i {
    let ab = _mm512_mask_mov_epi16(a, 0x2222_2222, b);
    _mm512_mask_mov_epi16(_mm512_mask_mov_epi16(ab, 0x4444_4444, c), 0x8888_8888, d)
}

/// The positions of the bytes of 4 rows of 8 columns among those of 8 columns of 4 rows.
const ROW_BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 64 {
        let (row, col) = (at / 16, at % 16 / 2);
        bytes[at] = (8 * col + 2 * row + at % 2) as u8;
        at += 1;
    }
    bytes
};

/// The same for two pairs of rows.
const PAIR_BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 64 {
        let (row, col) = (at / 32 * 2 + at % 4 / 2, at % 32 / 4);
        bytes[at] = (8 * col + 2 * row + at % 2) as u8;
        at += 1;
    }
    bytes
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::x86_64::ifma52::digits::padded;
    use crate::math::family_i16::i16_primes;
    use rug::Integer;
    use rug::rand::RandState;

    /// Residues of integers of `digits` digits, straight from digits, against those of big integers.
    fn check(form: Form, primes: &[u64], digits: usize, digit: impl Fn(usize, usize) -> u64) {
        let Some(composites) = Composites::new(primes, digits as u32 * DIGIT_BITS - 1, form) else {
            return println!("skipped: no AVX-512 IFMA");
        };
        assert_eq!(composites.digits, digits);
        let mut words = vec![u64::MAX; padded(digits) * ROWS * BLOCK];
        let mut integers = vec![Integer::new(); ROWS * BLOCK];
        for (entry, integer) in integers.iter_mut().enumerate() {
            for at in 0..digits {
                let value = digit(entry, at);
                words[(at + 1) * ROWS * BLOCK + entry] = value | (entry as u64) << 52; // garbage above a digit
                *integer += Integer::from(value) << (52 * at as u32);
            }
        }
        let (signs, carries) = ([0x5a, 0xff, 0, 0x81], [0, 0xff, 0x0f, 0x33]);
        for (entry, integer) in integers.iter_mut().enumerate() {
            let bit = |bytes: [u8; ROWS]| bytes[entry / BLOCK] >> (entry % BLOCK) & 1 == 1;
            *integer += u32::from(bit(carries));
            if bit(signs) {
                *integer *= -1;
            }
        }
        let call = Call { primes: 0..primes.len(), rows: ROWS, streams: false };
        let strip = DigitStrip { digits: DigitRows { words: &words, carries }, signs, rows: 0..ROWS };
        let mut window = vec![0u64; primes.len() * ROWS * BLOCK / 4];
        let mut planes: Vec<&mut [u64]> = window.chunks_exact_mut(ROWS * BLOCK / 4).collect();
        for group in 0..primes.len().div_ceil(GROUP) {
            // SAFETY: `new` looked for the instructions.
            unsafe { composites.several::<1>(group, &call, &strip, &mut planes) };
        }
        for (plane, &prime) in planes.iter().zip(primes) {
            let residues: &[i16] = bytemuck::cast_slice(plane);
            for (entry, integer) in integers.iter().enumerate() {
                let residue = i64::from(residues[form.place(entry / BLOCK, entry % BLOCK)]);
                assert!(residue.unsigned_abs() <= prime / 2, "{residue} is not balanced modulo {prime}");
                let difference = Integer::from(integer - residue);
                assert!(difference.is_divisible_u(prime as u32), "entry {entry}: {residue} modulo {prime}");
            }
        }
    }

    #[test]
    fn residues_are_those_of_the_integers() {
        let primes = i16_primes();
        let mut rng = RandState::new();
        let random: Vec<_> =
            (0..8000).map(|_| Integer::from(Integer::random_bits(52, &mut rng)).to_u64_wrapping()).collect();
        let ones = (1u64 << 52) - 1;
        for (first, count) in [(0, 1), (0, 4), (0, 41), (3, 8), (primes.len() - 6, 6), (primes.len() / 2, 7)] {
            let primes = &primes[first..first + count];
            for digits in [1, 2, 7, 8, 9, 40, MOST_DIGITS] {
                for form in [Form::Rows, Form::Pairs] {
                    check(form, primes, digits, |entry, at| random[(entry * 131 + at * 7) % random.len()]);
                    check(form, primes, digits, |entry, at| if (entry + at) % 9 == 0 { 0 } else { ones });
                    check(form, primes, digits, |_, _| ones);
                    check(form, primes, digits, |_, _| 0);
                    check(form, primes, digits, |entry, at| if at == 0 { entry as u64 } else { 0 });
                }
            }
        }
    }

    /// The conditions of the proof on the constants, for all products that are used, at the largest number and one more
    /// digit.
    #[test]
    fn bounds_hold_for_all_products_and_at_most_so_many_digits() {
        let digit = Integer::from(1) << 52;
        // hi < K 2^52, hi52(q M) < 2^52, ceil(lo / 2^52) <= K + 1.
        let largest = |digits: usize| Integer::from(&digit * (digits as u32 + 1)) + digits as u32 + 1;
        let fits = |sum: &Integer| Integer::from(sum >> DROPPED_BITS) < digit;
        assert!(fits(&largest(MOST_DIGITS)) && !fits(&largest(MOST_DIGITS + 1)));
        for primes in i16_primes().chunks(GROUP) {
            let composite = FourPrimes::new(primes);
            assert!(composite.reciprocal < 1 << 52 && composite.shift + 8 <= 52);
            // The quotient is short by less than 3 units of 2^-shift, each less than 2^8 in the remainder.
            assert!(composite.modulus + 3 * 256 < 1 << 52);
            let negated = u128::from(composite.modulus) * u128::from(composite.inverse) % (1 << 52);
            assert_eq!(negated, (1 << 52) - 1);
            for divisor in &composite.divisors {
                // A remainder that is one prime too large still fits, and is seen to be.
                let prime = i64::from(divisor.prime);
                assert!(divisor.reciprocal < 1 << 52 && 3 * prime / 1024 + 1 < prime);
            }
        }
    }
}
