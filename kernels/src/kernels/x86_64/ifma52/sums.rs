//! Sums of the quarters of an operand, for the schemes that save products.

use super::product::Ifma52Panels;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Four sums of the four quarters of an operand, `panels` panels of `depth` rows, one whole sum after another in `out`.
///
/// # Panics
/// Where a slice is shorter than the shape requires.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn form_sums(
    quarters: [Ifma52Panels<'_>; 4],
    panels: usize,
    depth: usize,
    out: &mut [u64],
    sums_of: impl Fn([__m512i; 4]) -> [__m512i; 4],
) {
    let words = panels * depth * BLOCK;
    assert!(out.len() == 4 * words);
    for panel in 0..panels {
        let inputs = quarters.map(|quarter| &quarter.words[panel * quarter.stride..][..depth * BLOCK]);
        for offset in (0..depth * BLOCK).step_by(BLOCK) {
            // SAFETY: each input has `depth * BLOCK` words, and `out` four times `words`.
            unsafe {
                let sums = sums_of(inputs.map(|input| _mm512_loadu_si512(input.as_ptr().add(offset).cast())));
                for (number, sum) in sums.into_iter().enumerate() {
                    let at = number * words + panel * depth * BLOCK + offset;
                    _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), sum);
                }
            }
        }
    }
}

/// Sum number `number` that [`form_sums`] wrote.
pub fn sum(out: &[u64], number: usize, depth: usize) -> Ifma52Panels<'_> {
    let words = out.len() / 4;
    Ifma52Panels { words: &out[number * words..][..words], stride: depth * BLOCK }
}
