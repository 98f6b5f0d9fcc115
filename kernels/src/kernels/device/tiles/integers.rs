//! Signed integers of a tile: a sign word, 0 or 1, and limbs.
#![forbid(unsafe_code)]

use crate::math::float::{FloatRef, round_shifted};

/// Writes `round(value * 2^shift)`, to nearest, ties to even.
pub(super) fn round_into(value: FloatRef<'_>, shift: i64, slot: &mut [u64]) {
    slot.fill(0);
    if value.head.is_zero() {
        return;
    }
    // The significand is a fraction: as an integer it is 2^(64 limbs) times as large.
    let drop = value.limbs.len() as i64 * 64 - value.head.exponent() - shift;
    round_shifted(value.limbs, drop, &mut slot[1..]);
    slot[0] = u64::from(value.head.is_negative() && slot[1..].iter().any(|&limb| limb != 0));
}

/// Adds `magnitude`, with the sign given by `negative`, to the integer in `slot`, which has room for the sum.
///
/// A magnitude that is too long, which only a faulty device gives, loses its higher limbs.
pub(super) fn add_signed(slot: &mut [u64], negative: bool, magnitude: &[u64]) {
    let (sign, limbs) = slot.split_first_mut().expect("a sign");
    let top = magnitude.iter().rposition(|&limb| limb != 0).map_or(0, |top| top + 1);
    let magnitude = &magnitude[..top];
    if (*sign == 1) == negative {
        let mut carry = false;
        for (at, limb) in limbs.iter_mut().enumerate() {
            if at >= top && !carry {
                break;
            }
            let (sum, over) = limb.overflowing_add(magnitude.get(at).copied().unwrap_or(0));
            let (sum, more) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, over || more);
        }
        return;
    }
    let mut borrow = false;
    for (at, limb) in limbs.iter_mut().enumerate() {
        if at >= top && !borrow {
            break;
        }
        let (rest, under) = limb.overflowing_sub(magnitude.get(at).copied().unwrap_or(0));
        let (rest, more) = rest.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (rest, under || more);
    }
    if borrow {
        // The magnitude was the larger one: negate.
        *sign ^= 1;
        let mut carry = true;
        for limb in limbs.iter_mut() {
            (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
        }
    }
    if limbs.iter().all(|&limb| limb == 0) {
        *sign = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::Integer;
    use rug::integer::Order;

    fn slot_of(value: &Integer) -> Vec<u64> {
        let mut slot = vec![0; 5];
        slot[0] = u64::from(*value < 0);
        slot[1..1 + value.as_limbs().len()].copy_from_slice(value.as_limbs());
        slot
    }

    #[test]
    fn sums_are_those_of_integers() {
        let big = |bits: u32| Integer::from(1) << bits;
        let values = [
            Integer::new(),
            Integer::from(1),
            Integer::from(-1),
            big(64) - 1u32,
            -big(64),
            big(192) - 1u32,
            -big(128) + 1u32,
            big(200) + 77u32,
            -big(200),
        ];
        for x in &values {
            for y in &values {
                let mut slot = slot_of(x);
                add_signed(&mut slot, *y < 0, &slot_of(y)[1..]);
                let got = Integer::from_digits(&slot[1..], Order::Lsf);
                let got = if slot[0] == 1 { -got } else { got };
                assert_eq!(got, Integer::from(x + y), "{x} + {y}");
                assert!(slot[0] == 0 || got != 0);
            }
        }
    }
}
