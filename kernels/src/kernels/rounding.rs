//! Rounding of integers to floats, eight entries of a column at a time: all at once if the processor has the vector
//! instructions for 52-bit integers, else one after the other. Same bits: `math::float::round_integer`.

use crate::kernels::limbs;
use crate::kernels::tiles::{EightEntries, EntryForm, TileEngine};
use crate::math::family::IFMA52_BITS;
use crate::math::float::{LIMB_BITS, limbs_for, round_integer};
#[cfg(target_arch = "x86_64")]
use crate::plan::BLOCK;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use crate::kernels::x86_64::ifma52::row_lanes::eights::EightRounding;

/// Rounds magnitudes of one form to one precision.
pub struct EntryRounding {
    form: EntryForm,
    precision_bits: u32,
    #[cfg(target_arch = "x86_64")]
    lanes: Option<EightRounding>,
}

impl EntryRounding {
    /// For magnitudes of that form and significands of `precision_bits`.
    pub fn new(form: EntryForm, precision_bits: u32) -> EntryRounding {
        EntryRounding {
            form,
            precision_bits,
            #[cfg(target_arch = "x86_64")]
            lanes: EightRounding::new(form, precision_bits),
        }
    }

    /// Words of scratch.
    pub fn words(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        if let Some(lanes) = &self.lanes {
            return lanes.words();
        }
        self.limbs()
    }

    /// Limbs of a magnitude.
    fn limbs(&self) -> usize {
        match self.form {
            EntryForm::Limbs(limbs) => limbs,
            EntryForm::Digits(digits) => (digits * IFMA52_BITS as usize).div_ceil(LIMB_BITS as usize),
        }
    }

    /// Writes heads and significands of some of the eight.
    pub fn round(
        &self,
        eight: &EightEntries<'_>,
        wanted: Range<usize>,
        heads: &mut [u64],
        limbs: &mut [u64],
        scratch: &mut [u64],
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(lanes) = &self.lanes {
            let (width, mut all) = (limbs_for(self.precision_bits), [0; BLOCK]);
            let rounded = lanes.round(eight, &mut all, scratch);
            heads.copy_from_slice(&all[wanted.clone()]);
            limbs.copy_from_slice(&rounded[wanted.start * width..wanted.end * width]);
            return;
        }
        self.round_each(eight, wanted, heads, limbs, scratch);
    }

    /// The same one after the other.
    fn round_each(
        &self,
        eight: &EightEntries<'_>,
        wanted: Range<usize>,
        heads: &mut [u64],
        limbs: &mut [u64],
        scratch: &mut [u64],
    ) {
        let magnitude = &mut scratch[..self.limbs()];
        let width = limbs_for(self.precision_bits);
        for ((head, limbs), lane) in heads.iter_mut().zip(limbs.chunks_exact_mut(width)).zip(wanted) {
            match self.form {
                EntryForm::Limbs(count) => magnitude.copy_from_slice(&eight.magnitudes[lane * count..][..count]),
                EntryForm::Digits(_) => limbs::from_lane(eight.magnitudes, lane, magnitude),
            }
            let negative = eight.signs >> lane & 1 == 1;
            *head = round_integer(negative, magnitude, eight.exponents[lane], self.precision_bits, limbs).0;
        }
    }
}

/// Words for eight magnitudes while they are rounded.
pub fn rounding_words(form: EntryForm, precision_bits: u32) -> usize {
    form.words() + EntryRounding::new(form, precision_bits).words()
}

/// Words of scratch memory for any task on a tile of `tile_rows` rows, including its rounding.
pub fn scratch_words(engine: &dyn TileEngine, tile_rows: usize, precision_bits: u32) -> usize {
    engine.scratch_words(tile_rows).max(rounding_words(engine.entry_form(), precision_bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::test_integers::{eight_of, in_form, limbs};
    use rug::{Integer, rand::RandState};

    /// Both forms, side by side and one after the other, against the definition.
    #[test]
    fn eight_entries_are_rounded_like_one() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(19));
        for case in 0..2000u32 {
            let precision = [2u32, 53, 64, 65, 128, 256, 257, 510, 768, 1664][case as usize % 10];
            let count = 1 + rng.below(17) as usize;
            let form = [EntryForm::Limbs(count), EntryForm::Digits(count)][case as usize % 2];
            let numbers = eight_of(form, &mut rng);
            let magnitudes = in_form(form, &numbers);
            let exponents = std::array::from_fn(|lane| 10 * lane as i64 - 40);
            let eight = EightEntries { magnitudes: &magnitudes, signs: rng.below(256) as u8, exponents };
            let start = rng.below(9) as usize;
            let wanted = start..start + rng.below(9 - start as u32) as usize;
            let (rounding, width) = (EntryRounding::new(form, precision), limbs_for(precision));
            let run = |each: bool| {
                let (mut heads, mut out) = (vec![7; wanted.len()], vec![9; wanted.len() * width]);
                let mut scratch = vec![0xdead_beef; rounding.words().max(rounding.limbs())];
                match each {
                    true => rounding.round_each(&eight, wanted.clone(), &mut heads, &mut out, &mut scratch),
                    false => rounding.round(&eight, wanted.clone(), &mut heads, &mut out, &mut scratch),
                }
                (heads, out)
            };
            let (mut heads, mut out) = (Vec::new(), Vec::new());
            for lane in wanted.clone() {
                let (mut significand, limbs) = (vec![0; width], limbs(&numbers[lane], count.max(1)));
                let negative = eight.signs >> lane & 1 == 1;
                heads.push(round_integer(negative, &limbs, exponents[lane], precision, &mut significand).0);
                out.extend(significand);
            }
            assert_eq!(run(false), (heads.clone(), out.clone()), "case {case}: {form:?} to {precision} bits");
            assert_eq!(run(true), (heads, out), "case {case}: {form:?} to {precision} bits, one by one");
        }
    }
}
