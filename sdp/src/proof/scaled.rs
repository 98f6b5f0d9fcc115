//! Vectors of exact numbers: rational ones over one denominator, dyadic ones over one power of two.
//!
//! Symmetric matrices are their lower triangles, row by row. Independent of: programs, proofs.

use super::limits::{bytes_of_bits, common};
use super::room::Room;
use rug::ops::DivRounding;
use rug::{Complete, Integer, Rational};
use std::ops::Range;

/// The place of an entry of the lower triangle.
pub fn packed(row: usize, col: usize) -> usize {
    if row >= col { row * (row + 1) / 2 + col } else { col * (col + 1) / 2 + row }
}

/// Entries of a lower triangle.
pub fn triangle(order: usize) -> usize {
    order * (order + 1) / 2
}

/// `numerators / denominator`.
#[derive(Clone, PartialEq, Debug)]
pub struct Scaled {
    /// The numerators.
    pub numerators: Vec<Integer>,
    /// The common denominator, above 0.
    pub denominator: Integer,
}

/// `values 2^-bits`.
#[derive(Clone, PartialEq, Debug)]
pub struct Fixed {
    /// Bits after the binary point.
    pub bits: u32,
    /// The integers.
    pub values: Vec<Integer>,
}

impl Scaled {
    /// Bits of the longest of its integers.
    pub fn largest_bits(&self) -> u32 {
        let all = self.numerators.iter().chain([&self.denominator]);
        all.map(Integer::significant_bits).max().unwrap_or(0)
    }

    /// Zeros.
    pub fn zeros(count: usize) -> Scaled {
        Scaled { numerators: vec![Integer::new(); count], denominator: Integer::from(1) }
    }

    /// The numbers over their common denominator.
    pub fn new(values: &[Rational]) -> Scaled {
        let mut denominator = Integer::from(1);
        for value in values {
            if !denominator.is_divisible(value.denom()) {
                denominator.lcm_mut(value.denom());
            }
        }
        Scaled::over(values, denominator)
    }

    /// The numbers over a denominator that they have in common.
    fn over(values: &[Rational], denominator: Integer) -> Scaled {
        let numerator = |value: &Rational| value.numer() * denominator.div_exact_ref(value.denom()).complete();
        Scaled { numerators: values.iter().map(numerator).collect(), denominator }
    }

    /// Numbers of a file over their common denominator.
    ///
    /// # Errors
    /// The errors of [`Scaled::fits`].
    pub fn read(values: &[Rational], room: &Room) -> Result<Scaled, String> {
        Ok(Scaled::over(values, Scaled::fits(values.iter(), room)?))
    }

    /// Takes the room of numbers over their common denominator, which it returns.
    ///
    /// # Errors
    /// A text if the denominator is too long, or there is no memory for the numerators.
    pub fn fits<'a>(values: impl Iterator<Item = &'a Rational> + Clone, room: &Room) -> Result<Integer, String> {
        let denominator = common(values.clone().map(Rational::denom))?;
        let whole = u64::from(denominator.significant_bits());
        let bytes = |value: &Rational| match value.numer().significant_bits() {
            0 => 0,
            bits => bytes_of_bits(u64::from(bits) + whole + 1 - u64::from(value.denom().significant_bits())),
        };
        room.take(values.map(bytes).fold(0, u64::saturating_add))?;
        Ok(denominator)
    }

    /// A number.
    pub fn get(&self, at: usize) -> Rational {
        Rational::from((&self.numerators[at], &self.denominator))
    }

    /// The sum of the squares of the numbers in `range`, each counted `times(place)` times.
    pub fn squares(&self, range: Range<usize>, times: impl Fn(usize) -> u32) -> Rational {
        let mut sum = Integer::new();
        for (at, numerator) in self.numerators[range].iter().enumerate() {
            sum += numerator.square_ref().complete() * times(at);
        }
        Rational::from((sum, self.denominator.square_ref().complete()))
    }

    /// `sum_i self[first + i] other[i]`.
    pub fn dot(&self, first: usize, other: &Fixed) -> Rational {
        let mut sum = Integer::new();
        for (left, right) in self.numerators[first..].iter().zip(&other.values) {
            sum += left * right;
        }
        Rational::from((sum, (&self.denominator << other.bits).complete()))
    }
}

impl Fixed {
    /// Zeros.
    pub fn zeros(count: usize, bits: u32) -> Fixed {
        Fixed { bits, values: vec![Integer::new(); count] }
    }
}

/// Whether no two numbers are the same.
pub fn are_distinct<T: Ord>(numbers: impl Iterator<Item = T>) -> bool {
    let mut sorted = numbers.collect::<Vec<_>>();
    sorted.sort();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Files have no such exponents, and a proof must not pass by one that is cut off.
const TOO_LONG: &str = "exponents have 32 bits";

/// The largest integer that is at most `numerator 2^shift / denominator`.
pub fn floor_shifted(numerator: &Integer, shift: i64, denominator: &Integer) -> Integer {
    let amount = u32::try_from(shift.unsigned_abs()).expect(TOO_LONG);
    match shift >= 0 {
        true => (numerator << amount).complete().div_floor(denominator),
        false => numerator.clone().div_floor((denominator << amount).complete()),
    }
}

/// `2^exponent`.
pub fn power_of_two(exponent: i64) -> Rational {
    let amount = u32::try_from(exponent.unsigned_abs()).expect(TOO_LONG);
    let one = Rational::from(1);
    if exponent >= 0 { one << amount } else { one >> amount }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let values = [(1, 3), (-5, 4), (0, 1), (7, 6)].map(Rational::from);
        let scaled = Scaled::new(&values);
        assert_eq!(scaled.denominator, 12);
        assert!(values.iter().enumerate().all(|(at, value)| scaled.get(at) == *value));
        assert_eq!(scaled.squares(0..4, |at| 1 + (at == 0) as u32), Rational::from((2 * 16 + 225 + 196, 144)));
        let other = Fixed { bits: 1, values: vec![Integer::from(3), Integer::from(8)] };
        assert_eq!(scaled.dot(2, &other), Rational::from((14, 3)));
        assert_eq!(Scaled::new(&[]).denominator, 1);
    }

    #[test]
    fn quotients_are_rounded_down() {
        let floor = |n: i32, shift, d: i32| floor_shifted(&Integer::from(n), shift, &Integer::from(d));
        assert_eq!(
            (floor(7, 1, 3), floor(-7, 1, 3), floor(7, -1, 3), floor(-1, -70, 3)),
            (4.into(), (-5).into(), 1.into(), (-1).into())
        );
        assert_eq!((power_of_two(-2), power_of_two(3)), (Rational::from((1, 4)), Rational::from(8)));
        assert!(are_distinct([3, -1, 2].iter()) && are_distinct([0; 0].iter()) && !are_distinct([3, 2, 3].iter()));
        assert_eq!((packed(2, 1), packed(1, 2), triangle(3)), (4, 4, 6));
    }
}
