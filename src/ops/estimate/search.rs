//! The least precision at which an answer has a number of correct digits, found by tries.
//!
//! Does not know: how an answer is computed, and how its digits are estimated or proven.

/// Precisions are multiples of this number of bits.
const STEP_BITS: u32 = 8;

/// Fewest bits that are tried.
const FIRST_BITS: u32 = 64;

/// The largest number of precisions that are tried.
const TRIES: u32 = 24;

/// Bits of `digits` decimal digits, in whole steps.
fn bits_of(digits: f64) -> u32 {
    ((digits * std::f64::consts::LOG2_10).max(0.0).ceil() as u32).next_multiple_of(STEP_BITS)
}

/// The outcome of a try of a [`PrecisionSearch`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PrecisionTry {
    /// The number of correct digits of the answer, estimated or proven.
    Digits(f64),
    /// The matrix had no factor at this precision, and more bits might help.
    NoFactor,
}

/// A search for the least precision, to some bits, at which an answer has a number of correct digits.
///
/// The first try has as many bits as the digits. After a try without a factor, or without a correct digit, the
/// precision is doubled. After a try with too few correct digits, the bits of the missing digits are added, and twice
/// as many after each step that gives less than half of the missing digits. After a try with more digits than
/// requested, the bits of the excess digits are subtracted.
///
/// ```
/// use sunzi::advanced::{PrecisionSearch, PrecisionTry};
/// // An answer that loses 100 bits.
/// let digits_at = |bits: u32| (f64::from(bits) - 100.0) * std::f64::consts::LOG10_2;
/// let mut search = PrecisionSearch::new(30);
/// while search.record(PrecisionTry::Digits(digits_at(search.bits()))) {}
/// assert_eq!(search.least_bits(), Some(200)); // 30 digits are 100 bits
/// ```
#[derive(Clone, Debug)]
pub struct PrecisionSearch {
    goal: f64,
    bits: u32,
    tries: u32,
    least_bits: Option<u32>,
    too_few_bits: u32,
    /// The factor of the bits of the missing digits.
    growth: u32,
    /// Digits of the last try that had some.
    before: Option<f64>,
}

impl PrecisionSearch {
    /// A search for `digits` correct digits.
    pub fn new(digits: u32) -> PrecisionSearch {
        let goal = f64::from(digits);
        let bits = bits_of(goal + 2.0).max(FIRST_BITS);
        PrecisionSearch { goal, bits, tries: 0, least_bits: None, too_few_bits: 0, growth: 1, before: None }
    }

    /// The precision to try now.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The least precision so far that gave the digits.
    pub fn least_bits(&self) -> Option<u32> {
        self.least_bits
    }

    /// The largest precision so far that did not give them; 0 before the first such try.
    pub fn too_few_bits(&self) -> u32 {
        self.too_few_bits
    }

    /// Takes the outcome of the try at [`PrecisionSearch::bits`], and chooses the next precision; false where the
    /// search has ended.
    pub fn record(&mut self, outcome: PrecisionTry) -> bool {
        let tried = self.bits;
        let next = match outcome {
            PrecisionTry::Digits(digits) if digits >= self.goal => {
                self.least_bits = Some(tried);
                let fewer = tried.saturating_sub(bits_of(digits - self.goal - 0.5));
                fewer.max(self.too_few_bits.saturating_add(STEP_BITS)).max(FIRST_BITS)
            }
            other => {
                self.too_few_bits = self.too_few_bits.max(tried);
                match other {
                    PrecisionTry::Digits(digits) => self.more(digits),
                    PrecisionTry::NoFactor => tried.saturating_mul(2),
                }
            }
        };
        self.tries += 1;
        self.bits = next;
        self.tries < TRIES && self.least_bits.is_none_or(|least| next < least)
    }

    /// The precision to try after one that gave fewer digits than requested.
    fn more(&mut self, digits: f64) -> u32 {
        if digits < 1.0 {
            return self.bits.saturating_mul(2);
        }
        // The bits that a factor is computed with need not rise with those of the answer.
        let is_stuck = self.before.is_some_and(|before| digits - before < (self.goal - before) / 2.0);
        self.growth = if is_stuck { self.growth.saturating_mul(2) } else { 1 };
        self.before = Some(digits);
        let missing_bits = bits_of(self.goal - digits + 0.5).max(STEP_BITS);
        self.bits.saturating_add(missing_bits.saturating_mul(self.growth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The precisions that a search tries where they give these digits.
    fn tried(digits: u32, found: &[f64]) -> Vec<u32> {
        let mut search = PrecisionSearch::new(digits);
        let mut tried = vec![search.bits()];
        for &digits in found {
            assert!(search.record(PrecisionTry::Digits(digits)), "{search:?}");
            tried.push(search.bits());
        }
        tried
    }

    #[test]
    fn steps_grow_where_bits_bring_nothing() {
        // At 528 bits 51 digits are missing: 176 bits, with half a digit to spare and in whole steps.
        assert_eq!(tried(76, &[0.5, 25.0, 75.6, 75.6, 75.6, 75.9]), [264, 528, 704, 712, 728, 760, 768]);
    }

    #[test]
    fn the_least_precision_is_between_too_few_and_enough() {
        for lost_bits in [0u32, 7, 100, 1000] {
            let mut search = PrecisionSearch::new(40);
            let digits = |bits: u32| f64::from(bits.saturating_sub(lost_bits)) * std::f64::consts::LOG10_2;
            let outcome = |bits: u32| match bits < lost_bits {
                true => PrecisionTry::NoFactor,
                false => PrecisionTry::Digits(digits(bits)),
            };
            let mut tries = 1;
            while search.record(outcome(search.bits())) {
                tries += 1;
            }
            let least = search.least_bits().unwrap();
            assert!(digits(least) >= 40.0 && digits(least) < 45.0 && tries <= 8, "{lost_bits}: {least}, {tries} tries");
            assert!(search.too_few_bits() < least);
        }
    }

    #[test]
    fn a_search_ends_where_nothing_is_gained() {
        let mut search = PrecisionSearch::new(10);
        let mut tries = 1;
        while search.record(PrecisionTry::NoFactor) {
            tries += 1;
        }
        assert_eq!((search.least_bits(), tries), (None, TRIES));
    }
}
