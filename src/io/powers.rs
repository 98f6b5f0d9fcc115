//! Powers of five, kept for later numbers.
//!
//! Numbers of one file have similar exponents, so each power is computed about once. Independent of: files.

use rug::{Assign, Integer};

/// Largest exponent that is kept; larger ones go through MPFR, whose cost grows only with the precision.
pub(super) const MAXIMUM_POWER: u32 = 4096;

/// `5^k` for `k` up to [`MAXIMUM_POWER`], computed when first needed. All of them take 2.5 MB.
#[derive(Default)]
pub(super) struct PowersOfFive {
    powers: Vec<Integer>,
}

impl PowersOfFive {
    /// `5^exponent`. The exponent must not exceed [`MAXIMUM_POWER`] (asserted).
    pub fn get(&mut self, exponent: u32) -> &Integer {
        assert!(exponent <= MAXIMUM_POWER, "5^{exponent} is beyond the table");
        let index = exponent as usize;
        if self.powers.len() <= index {
            self.powers.resize_with(index + 1, Integer::new);
        }
        let power = &mut self.powers[index];
        if power.is_zero() {
            power.assign(Integer::u_pow_u(5, exponent));
        }
        &self.powers[index]
    }
}
