//! Digits of eight numbers as limbs.

use super::vectors::{__m512i, _mm512_storeu_si512};
use crate::plan::BLOCK;

const DIGIT_BITS: u32 = 52;

/// Bytes of eight digits.
const GROUP_BYTES: usize = DIGIT_BITS as usize;

/// Writes 8 digits of 8 entries as limbs: digits `8 group ..` of the entries whose `limbs` limbs follow one another in
/// `out`; digits beyond an entry's limbs are dropped.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn pack_group(digits: [__m512i; BLOCK], group: usize, limbs: usize, out: &mut [u64]) {
    let start = group * GROUP_BYTES;
    assert!(out.len() == BLOCK * limbs && start < 8 * limbs);
    let mut words = [[0u64; BLOCK]; BLOCK];
    for (words, digit) in words.iter_mut().zip(digits) {
        // SAFETY: the array has 8 words.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), digit) };
    }
    for (lane, entry) in out.chunks_exact_mut(limbs).enumerate() {
        // An odd group begins within a limb, of which the group before has written the rest.
        let (first, mut bits) = (start / 8, start as u32 % 8 * 8);
        let mut held = if bits > 0 { u128::from(entry[first]) & ((1 << bits) - 1) } else { 0 };
        let mut places = entry[first..].iter_mut();
        for digits in &words {
            held |= u128::from(digits[lane]) << bits;
            bits += DIGIT_BITS;
            if bits >= 64 {
                let Some(place) = places.next() else { break };
                *place = held as u64;
                (held, bits) = (held >> 64, bits - 64);
            }
        }
        if let (true, Some(place)) = (bits > 0, places.next()) {
            *place = held as u64;
        }
    }
}
