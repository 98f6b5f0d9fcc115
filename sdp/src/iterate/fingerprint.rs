//! The fingerprint by which a checkpoint recognises its program.
//!
//! At the same precision a program is the one whose numbers have the same hash. At another one every number was rounded
//! elsewhere, and those of sampled polynomials were computed with other errors: there a weighted sum of all numbers
//! counts, each relative to the sum of its column or its block, and the logarithms of these, which are the same to
//! 2^-30. So an edited number is always detected at the same precision. At another one it is detected where the change,
//! relative to the sum of magnitudes that it belongs to or to 2^-65 where that is more, is above 2^-30 after
//! multiplication by both its weights. These are spread from -1 to 1: places where they are nearly 0 hide larger
//! changes.
//! Independent of: files, points.

use crate::iterate::outline::Outline;
use crate::iterate::visit::{Visitor, visit};
use crate::problem::{Entry, Problem, SparseCone};
use rug::Float;
use sunzi::{Head, Matrix};

/// The distance between the sums of one program at two precisions.
const TOLERANCE: f64 = 1.0 / (1 << 30) as f64;

/// Numbers below this power of two count as small ones of that size: they may come from a 0 by rounding.
const LEAST_EXPONENT: i64 = -64;

/// The numbers that are kept of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fingerprint {
    /// The precision of its numbers.
    pub precision_bits: u32,
    /// The hash of all of them.
    pub digest: u64,
    /// The weighted sum of all of them.
    pub sum: f64,
}

impl Fingerprint {
    /// The fingerprint of a program. Cost: a pass over its numbers.
    pub fn of(problem: &Problem) -> Fingerprint {
        let mut both = Both { outline: Outline::new("program"), sums: Sums::default() };
        visit(problem, &mut both);
        let (digest, sum) = (both.outline.digest(), both.sums.total);
        Fingerprint { precision_bits: problem.precision_bits, digest, sum }
    }

    /// Whether both are of one program, at the same precision or at two.
    pub fn is_like(&self, other: &Fingerprint) -> bool {
        match self.precision_bits == other.precision_bits {
            true => self.digest == other.digest,
            false => (self.sum - other.sum).abs() <= TOLERANCE,
        }
    }
}

/// A number of -1 to 1 that depends on two others.
fn weight(part: u64, at: u64) -> f64 {
    // Source: S. Vigna's splitmix64.
    let mut word = part.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^= word >> 31;
    (word >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// The weighted sum, part by part.
#[derive(Default)]
struct Sums {
    parts: u64,
    total: f64,
}

impl Sums {
    /// Adds numbers with their places; `top` is the largest of their exponents.
    fn add(&mut self, top: Option<i64>, numbers: impl Iterator<Item = (u64, Float)>) {
        let top = top.unwrap_or(LEAST_EXPONENT).max(LEAST_EXPONENT);
        let (mut sum, mut size) = (0.0, 0.0);
        for (at, number) in numbers {
            let (fraction, exponent) = number.to_f64_exp();
            let below = (i64::from(exponent) - top).clamp(-1100, 0) as i32;
            let value = fraction * 2f64.powi(below);
            sum += weight(self.parts, at) * value;
            size += value.abs();
        }
        // The largest number, where it counts, is 1/2 at least.
        let magnitude = (size.log2() + top as f64).max(LEAST_EXPONENT as f64);
        self.total += weight(u64::MAX, self.parts) * sum / size.max(0.5) + weight(self.parts, u64::MAX) * magnitude;
        self.parts += 1;
    }
}

impl Visitor for Sums {
    fn shape(&mut self, _: &str) {}

    fn presence(&mut self, _: bool) {}

    fn number(&mut self, value: &Float) {
        self.add(value.get_exp().map(i64::from), std::iter::once((0, value.clone())));
    }

    /// Adds a matrix, column by column.
    fn matrix(&mut self, matrix: &Matrix) {
        let heads = matrix.parts().0;
        for col in 0..matrix.cols() {
            let heads = heads[col * matrix.rows()..][..matrix.rows()].iter().map(|&head| Head(head));
            let top = heads.filter(|head| !head.is_zero()).map(|head| head.exponent()).max();
            self.add(top, (0..matrix.rows()).map(|row| (row as u64, matrix.float(row, col))));
        }
    }

    /// Adds the matrices of the variables, and the constant one.
    fn block(&mut self, cone: &SparseCone) {
        let of_variables = cone.active.iter().zip(&cone.entries);
        let all = of_variables.flat_map(|(&variable, list)| list.iter().map(move |entry| (1 + variable, entry)));
        let constant = || cone.constant.iter().map(|entry| (0, entry));
        let top = |list: &mut dyn Iterator<Item = (usize, &Entry)>| {
            list.filter_map(|(_, entry)| entry.value.get_exp()).max().map(i64::from)
        };
        let place = |(variable, entry): (usize, &Entry)| {
            let at = ((entry.row as u64) << 40) ^ ((entry.col as u64) << 20) ^ variable as u64;
            (at, entry.value.clone())
        };
        self.add(top(&mut all.clone()), all.map(place));
        self.add(top(&mut constant()), constant().map(place));
    }
}

/// A visitor that forms both the hash and the sum of the numbers of a program, in one pass.
struct Both {
    outline: Outline,
    sums: Sums,
}

impl Visitor for Both {
    fn shape(&mut self, text: &str) {
        self.outline.shape(text);
    }

    fn presence(&mut self, is_there: bool) {
        self.outline.presence(is_there);
    }

    fn number(&mut self, value: &Float) {
        self.outline.number(value);
        self.sums.number(value);
    }

    fn matrix(&mut self, matrix: &Matrix) {
        self.outline.matrix(matrix);
        self.sums.matrix(matrix);
    }

    fn block(&mut self, cone: &SparseCone) {
        self.outline.block(cone);
        self.sums.block(cone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolynomialMatrix, PolynomialProgram, Sampling};
    use rug::ops::Pow;
    use sunzi::Result;

    /// A polynomial program with this number in it, at `bits` bits.
    fn fingerprint(number: &Float, bits: u32) -> Result<Fingerprint> {
        let float = |value: f64| Float::with_val(64, value);
        let third = || Float::with_val(600, 1) / 3u32;
        let matrix = |shift: f64| PolynomialMatrix {
            dim: 1,
            entries: vec![vec![
                vec![float(7.0 + shift), third(), float(-4.0), float(0.0), float(1.0)],
                vec![float(-1.0)],
                vec![number.clone(), float(1e-9)],
            ]],
            sampling: Sampling::default(),
        };
        let objective = vec![float(0.0), float(1.0), third()];
        let matrices = vec![matrix(0.0), matrix(3.0)];
        Ok(Fingerprint::of(&PolynomialProgram { objective, normalization: None, matrices }.problem(bits)?))
    }

    #[test]
    fn a_program_is_known_again_at_any_precision_and_an_edited_one_is_not() -> Result<()> {
        let number = Float::with_val(600, 2).sqrt();
        let first = fingerprint(&number, 200)?;
        assert_eq!(first, fingerprint(&number, 200)?);
        for bits in [128, 199, 201, 333, 1000] {
            assert!(first.is_like(&fingerprint(&number, bits)?), "{bits}");
        }
        // In the last bit at the same precision; at another one, a change far above rounding.
        let shifted = |power: i32| Float::with_val(600, &number + Float::with_val(64, 2).pow(power));
        assert!(!first.is_like(&fingerprint(&shifted(-190), 200)?));
        assert!(first.is_like(&fingerprint(&shifted(-190), 300)?));
        assert!(!first.is_like(&fingerprint(&shifted(-20), 300)?));
        Ok(())
    }

    #[test]
    fn what_rounding_leaves_of_a_zero_does_not_count() {
        let total = |value: f64| {
            let mut sums = Sums::default();
            let number = Float::with_val(64, value);
            sums.add(number.get_exp().map(i64::from), std::iter::once((3, number)));
            sums.total
        };
        let off = |one: f64, other: f64| (total(one) - total(other)).abs();
        assert!(off(0.0, 1e-40) < TOLERANCE / 4.0 && off(0.0, -1e-60) < TOLERANCE / 4.0);
        assert!(off(1.0, 0.0) > 1.0 && off(1.0, -1.0) > TOLERANCE && off(1.0, 8.0) > 0.01);
    }

    #[test]
    fn weights_are_spread() {
        let all = (0..1000).map(|at| weight(at % 7, at)).collect::<Vec<_>>();
        assert!(all.iter().all(|weight| weight.abs() <= 1.0));
        assert!(all.iter().filter(|weight| **weight > 0.0).count().abs_diff(500) < 80);
        assert_ne!(weight(1, 2), weight(2, 1));
    }
}
