//! A big float as a head (sign and exponent) and a slice of limbs, and the rounding of an integer to it.
//!
//! A number is `(-1)^negative * 0.s * 2^exponent`, `s` the significand: little-endian 64-bit limbs, the top bit of the
//! last limb set, bits below the precision zero (MPFR's form). Zero has the head 0 and limbs 0, so that zeroed memory
//! is a zero matrix. There is one zero, without sign; NaN and infinity have no representation. Independent of:
//! matrices, files, rug.

/// Number of bits in a limb.
pub const LIMB_BITS: u32 = 64;

/// Limbs that hold `bits` bits.
pub const fn limbs_for(bits: u32) -> usize {
    bits.div_ceil(LIMB_BITS) as usize
}

/// Sign and exponent of one number, packed in a word; the zero word is the number 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Head(pub u64);

impl Head {
    /// The head of the number 0.
    pub const ZERO: Head = Head(0);

    /// Head of a number that is not 0.
    ///
    /// `exponent` must lie within +-2^60 (asserted).
    #[inline]
    pub fn new(negative: bool, exponent: i64) -> Head {
        assert!(exponent.unsigned_abs() < 1 << 60, "exponent {exponent} out of range");
        Head(((exponent as u64) << 2) | 2 | negative as u64)
    }

    /// Whether the number is 0.
    #[inline]
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether the number is negative.
    #[inline]
    pub fn is_negative(self) -> bool {
        self.0 & 1 == 1
    }

    /// Exponent `e` of `0.s * 2^e`; 0 for the number 0.
    #[inline]
    pub fn exponent(self) -> i64 {
        (self.0 as i64) >> 2
    }

    /// The head of the number with the opposite sign.
    #[inline]
    pub fn negated(self) -> Head {
        if self.is_zero() { self } else { Head(self.0 ^ 1) }
    }
}

/// A number borrowed from a matrix: its head and its limbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatRef<'a> {
    /// Sign and exponent.
    pub head: Head,
    /// Significand, least significant limb first.
    pub limbs: &'a [u64],
}

impl FloatRef<'_> {
    /// Nearest `f64` up to one unit in the last place; overflows to infinity, underflows to 0.
    pub fn to_f64(self) -> f64 {
        if self.head.is_zero() {
            return 0.0;
        }
        let top = self.limbs[self.limbs.len() - 1] as f64 / 18_446_744_073_709_551_616.0;
        let size = scale_f64(top, self.head.exponent());
        if self.head.is_negative() { -size } else { size }
    }
}

/// `x * 2^exponent` for any exponent, through two steps so that subnormal results are reached.
fn scale_f64(x: f64, exponent: i64) -> f64 {
    let clamped = exponent.clamp(-2200, 2200) as i32;
    let half = clamped / 2;
    x * 2f64.powi(half) * 2f64.powi(clamped - half)
}

/// Number of significant bits of a little-endian integer; 0 for 0.
pub fn bit_length(limbs: &[u64]) -> u64 {
    limbs
        .iter()
        .rposition(|&limb| limb != 0)
        .map_or(0, |top| (top as u64 + 1) * 64 - u64::from(limbs[top].leading_zeros()))
}

/// Rounds `(-1)^negative * magnitude * 2^exponent` to `precision_bits` bits, to nearest, ties to even.
///
/// The significand is written to `out`, which has `limbs_for(precision_bits)` limbs; the head is returned. `magnitude`
/// may have any number of limbs, also leading zeros. Cost: linear in the limbs.
pub fn round_integer(negative: bool, magnitude: &[u64], exponent: i64, precision_bits: u32, out: &mut [u64]) -> Head {
    assert_eq!(out.len(), limbs_for(precision_bits));
    /// With a number of limbs that is known at compile time.
    fn fixed<const W: usize>(negative: bool, magnitude: &[u64], exponent: i64, bits: u32, out: &mut [u64]) -> Head {
        let out: &mut [u64; W] = out.try_into().expect("W limbs");
        round_into(negative, magnitude, exponent, bits, out)
    }
    macro_rules! with_width {
        ($($width:literal)*) => {
            match out.len() {
                $($width => fixed::<$width>(negative, magnitude, exponent, precision_bits, out),)*
                _ => round_into(negative, magnitude, exponent, precision_bits, out),
            }
        };
    }
    with_width!(2 3 4 5 6 8)
}

/// [`round_integer`], with all lengths checked.
#[inline(always)]
fn round_into(negative: bool, magnitude: &[u64], exponent: i64, precision_bits: u32, out: &mut [u64]) -> Head {
    let length = bit_length(magnitude);
    if length == 0 {
        out.fill(0);
        return Head::ZERO;
    }
    // The significand's limbs are the bits [length - 64 * limbs, length) of the magnitude.
    let low = length as i64 - out.len() as i64 * 64;
    copy_bits(magnitude, low, out);
    let spare = out.len() as u32 * 64 - precision_bits; // 0..=63 bits of the lowest limb do not count
    let cut = low + i64::from(spare); // bit index of the last kept bit
    let mut top_exponent = length as i64 + exponent;
    let keep_mask = u64::MAX << spare;
    let odd = (out[0] >> spare) & 1 == 1;
    out[0] &= keep_mask;
    // The bits are random, so no branch depends on them: half of the time it would be taken wrongly.
    let up = cut > 0 && bit(magnitude, cut - 1) & (odd | any_below(magnitude, cut - 1));
    let mut carry = u64::from(up) << spare;
    for limb in out.iter_mut() {
        let (sum, over) = limb.overflowing_add(carry);
        *limb = sum;
        carry = u64::from(over);
        if carry == 0 {
            break;
        }
    }
    if carry == 1 {
        // All ones: the significand becomes exactly one half of the next power of two.
        let top = out.len() - 1;
        out[top] = 1 << 63;
        top_exponent += 1;
    }
    Head::new(negative, top_exponent)
}

/// Writes `round(magnitude * 2^-drop)`, to nearest, ties to even, into all of `out`; `drop` may be negative.
///
/// The rounded integer must fit in `out`: higher bits are lost. Cost: linear in the limbs.
pub fn round_shifted(magnitude: &[u64], drop: i64, out: &mut [u64]) {
    copy_bits(magnitude, drop, out);
    if drop > 0 && bit(magnitude, drop - 1) && (out[0] & 1 == 1 || any_below(magnitude, drop - 1)) {
        for limb in out {
            *limb = limb.wrapping_add(1);
            if *limb != 0 {
                break;
            }
        }
    }
}

/// Writes `floor(magnitude * 2^-drop)` into all of `out`; `drop` may be negative. Higher bits are lost.
pub fn shift_down(magnitude: &[u64], drop: i64, out: &mut [u64]) {
    copy_bits(magnitude, drop, out);
}

/// Copies the bits from `low` on into `out`; bits outside the source are 0 (`low` may be negative).
#[inline(always)]
fn copy_bits(source: &[u64], low: i64, out: &mut [u64]) {
    let (word, shift) = (low >> 6, low & 63);
    // In two steps: a limb cannot be shifted by all of its bits.
    let joined = |low: u64, high: u64| (low >> shift) | (high << 1 << (63 - shift));
    // Where every limb has its two source limbs, the loop needs no test for the ends.
    let inside = usize::try_from(word).ok().and_then(|word| source.get(word..word + out.len() + 1));
    if let Some(inside) = inside {
        let pairs = inside.iter().zip(&inside[1..]);
        out.iter_mut().zip(pairs).for_each(|(limb, (&low, &high))| *limb = joined(low, high));
        return;
    }
    let fetch = |at: i64| usize::try_from(at).ok().and_then(|at| source.get(at)).copied().unwrap_or(0);
    out.iter_mut().zip(word..).for_each(|(limb, at)| *limb = joined(fetch(at), fetch(at + 1)));
}

/// Bit `index` of a little-endian integer, which may lie beyond its limbs; `index` is not negative.
#[inline]
pub fn bit(limbs: &[u64], index: i64) -> bool {
    let (word, shift) = ((index / 64) as usize, (index % 64) as u32);
    word < limbs.len() && (limbs[word] >> shift) & 1 == 1
}

/// Whether any of the bits `[0, end)` of a little-endian integer is set; `end` may lie beyond its limbs, and is not
/// negative.
#[inline]
pub fn any_below(limbs: &[u64], end: i64) -> bool {
    let (word, shift) = ((end / 64) as usize, (end % 64) as u32);
    limbs.iter().take(word).any(|&limb| limb != 0)
        || (shift > 0 && word < limbs.len() && limbs[word] & ((1u64 << shift) - 1) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::{Float, Integer, integer::Order, rand::RandState};

    #[test]
    fn shifted_rounding_equals_the_definition() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(12));
        for case in 0..2000u32 {
            let mut value = Integer::from(Integer::random_bits(1 + rng.below(300), &mut rng));
            if case % 3 == 0 {
                value <<= rng.below(100);
            }
            let drop = i64::from(rng.below(500)) - 60;
            let mut want = Integer::from(&value << 60) >> (60 + drop) as u32;
            let twice_error = ((value.clone() << 60) - (want.clone() << (60 + drop) as u32)) * 2u32;
            let unit = Integer::from(1) << (60 + drop) as u32;
            if twice_error > unit || (twice_error == unit && want.is_odd()) {
                want += 1u32;
            }
            let mut out = [0xdead; 8];
            round_shifted(value.as_limbs(), drop, &mut out);
            assert_eq!(Integer::from_digits(&out, Order::Lsf), want, "case {case}: {value} dropped by {drop}");
        }
    }

    #[test]
    fn rounding_equals_mpfr() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(11));
        for case in 0..4000u32 {
            let bits = 1 + rng.below(900);
            let mut value = Integer::from(Integer::random_bits(bits, &mut rng));
            if case % 3 == 0 {
                value <<= rng.below(130); // ties and exact values
            }
            if case % 5 == 0 {
                value = (Integer::from(1) << bits) - 1u32;
            }
            let precision = 2 + rng.below(640);
            let limbs = value.to_digits::<u64>(Order::Lsf);
            let mut out = vec![0xdead; limbs_for(precision)];
            let head = round_integer(case % 2 == 0, &limbs, -37, precision, &mut out);
            let mut want: Float = Float::with_val(precision, &value) >> 37;
            if case % 2 == 0 {
                want = -want;
            }
            if value == 0 {
                assert!(head.is_zero());
                continue;
            }
            assert_eq!(Some(head.exponent() as i32), want.get_exp(), "case {case}");
            assert_eq!(head.is_negative(), want.is_sign_negative());
            let got = Integer::from_digits(&out, Order::Lsf);
            let (significand, _) = want.to_integer_exp().unwrap();
            let shift = out.len() as u32 * 64 - significand.significant_bits();
            assert_eq!(got, significand.abs() << shift, "case {case}");
        }
    }
}
