//! Rounding of eight entries, from their limbs or from their digits.

use super::super::digits::{GROUP_DIGITS, cut_integers};
use super::round::{Magnitudes, Rounding};
use super::{DIGIT_BITS, MASK, load, store};
use crate::kernels::tiles::{EightEntries, EntryForm};
use crate::kernels::x86_64::cpu;
use crate::math::float::{LIMB_BITS, limbs_for};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Rounds magnitudes of one form to one precision. Made only where the CPU has the instructions, so that a value proves
/// them.
#[derive(Clone, Copy)]
pub struct EightRounding {
    rounding: Rounding,
    form: EntryForm,
    precision_bits: u32,
}

impl EightRounding {
    /// `None` if this processor lacks the instructions.
    pub fn new(form: EntryForm, precision_bits: u32) -> Option<EightRounding> {
        cpu::has_ifma52().ok()?;
        Some(EightRounding { rounding: Rounding::new(precision_bits), form, precision_bits })
    }

    /// Words of scratch memory: digits to be cut, in whole groups, scratch memory of rounding, and the significands.
    pub fn words(&self) -> usize {
        self.cut_words() + self.rounding.scratch_words() + BLOCK * limbs_for(self.precision_bits)
    }

    fn cut_words(&self) -> usize {
        match self.form {
            EntryForm::Limbs(limbs) => digits_of(limbs).next_multiple_of(GROUP_DIGITS) * BLOCK,
            EntryForm::Digits(_) => 0,
        }
    }

    /// Writes the heads, and the significands of all eight entries one after the other.
    pub fn round<'s>(&self, eight: &EightEntries<'_>, heads: &mut [u64; BLOCK], scratch: &'s mut [u64]) -> &'s [u64] {
        assert!(eight.magnitudes.len() == self.form.words());
        let (cut, rest) = scratch.split_at_mut(self.cut_words());
        let (window, rest) = rest.split_at_mut(self.rounding.scratch_words());
        let limbs = &mut rest[..BLOCK * limbs_for(self.precision_bits)];
        let mut magnitudes = Magnitudes { digits: eight.magnitudes, exponents: &eight.exponents, signs: eight.signs };
        // SAFETY: the CPU has the instructions, as there is an `EightRounding`.
        unsafe {
            if let EntryForm::Limbs(limbs) = self.form {
                magnitudes.digits = digits(eight.magnitudes, &mut *cut, digits_of(limbs));
            }
            self.rounding.round(magnitudes, heads, limbs, window);
        }
        limbs
    }
}

/// Digits of `limbs` limbs.
fn digits_of(limbs: usize) -> usize {
    (limbs * LIMB_BITS as usize).div_ceil(DIGIT_BITS)
}

/// Cuts the digits of eight integers out of their limbs.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn digits<'c>(integers: &[u64], cut: &'c mut [u64], count: usize) -> &'c [u64] {
    cut_integers::<BLOCK>(integers, cut);
    for at in 0..count {
        store(cut, at, _mm512_and_si512(load(cut, at), _mm512_set1_epi64(MASK)));
    }
    &cut[..count * BLOCK]
}
