//! The scaled integer of a big float, limb by limb.
//!
//! Promise: with the rounding added, equal to `math::scale::scaled_integer`. Inlined functions are compiled with the
//! instructions of their caller.
#![forbid(unsafe_code)]

use crate::math::float::FloatRef;

/// A big float times a power of two, cut into an integer and the bits that are rounded off.
#[derive(Clone, Copy)]
pub struct Scaled<'a> {
    /// The significand; nothing where the value is less than one half.
    pub limbs: &'a [u64],
    /// The bit of the significand that becomes bit 0 of the integer; negative where zeros follow the significand.
    pub low: i64,
    /// Whether the integer must be increased by one to be the nearest (ties to even).
    pub rounds_up: bool,
}

impl<'a> Scaled<'a> {
    /// Zero.
    pub const ZERO: Scaled<'static> = Scaled { limbs: &[], low: 0, rounds_up: false };

    /// `|value| * 2^shift`.
    #[inline(always)]
    pub fn new(value: FloatRef<'a>, shift: i64) -> Scaled<'a> {
        let limbs = value.limbs;
        let bits = limbs.len() as i64 * 64;
        let low = bits.saturating_sub(value.head.exponent().saturating_add(shift));
        if value.head.is_zero() || low > bits {
            return Scaled::ZERO;
        }
        Scaled { limbs, low, rounds_up: low > 0 && rounds_up(limbs, low as usize) }
    }
}

/// Writes the integer part of `|value| * 2^shift`, the lowest limb first, and returns whether it must be increased by
/// one to be the nearest integer (ties to even). It fits in the words.
#[inline(always)]
pub fn write_scaled<'w>(value: FloatRef<'_>, shift: i64, mut rest: impl Iterator<Item = &'w mut u64>) -> bool {
    let Scaled { limbs, low, rounds_up } = Scaled::new(value, shift);
    if limbs.is_empty() {
        rest.for_each(|word| *word = 0);
        return false;
    }
    // Word `w` of the integer straddles limbs `first + w` and `first + w + 1`; limbs outside the number are 0.
    let (first, right) = (low.div_euclid(64), low.rem_euclid(64) as u32);
    let (mut current, following) = match usize::try_from(first) {
        Ok(first) if first < limbs.len() => (limbs[first], &limbs[first + 1..]),
        Ok(_) => (0, &limbs[..0]),
        Err(_) => {
            rest.by_ref().take((-first - 1) as usize).for_each(|word| *word = 0);
            (0, limbs)
        }
    };
    for (&next, word) in following.iter().zip(rest.by_ref()) {
        *word = (current >> right) | ((next << 1) << (63 - right));
        current = next;
    }
    if let Some(word) = rest.next() {
        *word = current >> right;
        rest.for_each(|word| *word = 0);
    }
    rounds_up
}

/// Whether the significand without its lowest `low` bits, `1 <= low <= 64 limbs`, must be increased by one.
///
/// No branch depends on random bits: only an apparent tie looks at all the limbs below.
#[inline(always)]
fn rounds_up(limbs: &[u64], low: usize) -> bool {
    let (word, bit) = ((low - 1) / 64, (low - 1) % 64);
    let half = (limbs[word] >> bit) & 1 == 1;
    let odd = limbs.get(low / 64).is_some_and(|limb| (limb >> (low % 64)) & 1 == 1);
    let near = limbs[word] & ((1 << bit) - 1) != 0;
    let tie_so_far = half & !odd & !near;
    half & (odd | near) || (tie_so_far && limbs[..word].iter().any(|&limb| limb != 0))
}
