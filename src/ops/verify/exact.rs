//! Exact sums of big floats of any exponents, and upper bounds of norms in one word.
//!
//! Promise: [`Accumulator`] loses no bit; every operation of [`UpperBound`] rounds up, by less than `2^-62` of the
//! result.
//! Independent of: matrices of results, random vectors, threads.

use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use rug::integer::Order;
use rug::ops::NegAssign;
use rug::{Assign, Integer};
use std::cmp::Ordering;

/// The number `integer * 2^exponent`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dyadic {
    /// The integer.
    pub integer: Integer,
    /// The power of two that it is multiplied by.
    pub exponent: i64,
}

impl Dyadic {
    /// The value of a big float.
    pub fn of(value: FloatRef<'_>) -> Dyadic {
        let (integer, exponent) = value.to_integer_exponent();
        Dyadic { integer, exponent }
    }

    /// The square.
    pub fn square(self) -> Dyadic {
        Dyadic { integer: self.integer.square(), exponent: 2 * self.exponent }
    }

    /// Compares two numbers, neither below 0; exponents far apart cost nothing.
    pub fn compare(&self, other: &Dyadic) -> Ordering {
        let (x, y) = (&self.integer, &other.integer);
        if *x == 0 || *y == 0 {
            return (*x != 0).cmp(&(*y != 0));
        }
        let top = |number: &Dyadic| i64::from(number.integer.significant_bits()) + number.exponent;
        top(self).cmp(&top(other)).then_with(|| {
            // Equal top bits: the exponents differ by no more than the longer of the two numbers.
            let drop = self.exponent - other.exponent;
            if drop >= 0 { Integer::from(x << drop as u32).cmp(y) } else { x.cmp(&Integer::from(y << -drop as u32)) }
        })
    }

    /// `|self| / sqrt(square)` for `square > 0`, to about 50 bits.
    pub fn over_root(&self, square: &Dyadic) -> f64 {
        if self.integer == 0 {
            return 0.0;
        }
        let ((x, x_bits), (y, y_bits)) = (self.integer.to_f64_exp(), square.integer.to_f64_exp());
        let (top, square_top) = (i64::from(x_bits) + self.exponent, i64::from(y_bits) + square.exponent);
        let root = (y * 2f64.powi(square_top.rem_euclid(2) as i32)).sqrt();
        let power = (top - square_top.div_euclid(2)).clamp(-1000, 1000) as i32;
        x.abs() / root * 2f64.powi(power)
    }
}

/// No bits are cut off a number.
pub const KEEP_ALL: i64 = i64::MIN;

/// A nonzero number as limbs without zero limbs below; its lowest bit weighs `2^low`.
#[derive(Clone, Copy)]
pub struct Term<'a> {
    /// Whether the number is negative.
    pub negative: bool,
    /// Magnitude, least limb first.
    pub limbs: &'a [u64],
    /// Exponent of the lowest bit of `limbs`.
    pub low: i64,
}

/// The number without limbs that lie wholly below `2^floor`; `None` where no limb remains.
///
/// The part cut off is smaller than `2^floor`; [`KEEP_ALL`] cuts nothing.
#[inline]
pub fn term(value: FloatRef<'_>, floor: i64) -> Option<Term<'_>> {
    if value.head.is_zero() {
        return None;
    }
    let low = value.head.exponent() - value.limbs.len() as i64 * 64;
    let cut = (floor.saturating_sub(low)).div_euclid(64).clamp(0, value.limbs.len() as i64) as usize;
    let skip = cut + value.limbs[cut..].iter().position(|&limb| limb != 0)?;
    Some(Term { negative: value.head.is_negative(), limbs: &value.limbs[skip..], low: low + 64 * skip as i64 })
}

/// An exact sum of numbers `limbs * 2^low`.
///
/// Positive and negative numbers are summed apart, so that carries stay short; the memory is the span of the
/// exponents met, twice.
#[derive(Default)]
pub struct Accumulator {
    /// Weight of the first limb of both sides, in limbs.
    base: i64,
    positive: Vec<u64>,
    negative: Vec<u64>,
}

impl Accumulator {
    /// Adds `(-1)^negative * limbs * 2^low`. Cost: linear in `limbs`, but for the growth of the sum's span.
    pub fn add(&mut self, negative: bool, limbs: &[u64], low: i64) {
        let word = low.div_euclid(64);
        if self.positive.is_empty() && self.negative.is_empty() {
            self.base = word;
        }
        if word < self.base {
            // Some room below for what follows, so that falling exponents do not move the sum at each step.
            let grown = (self.base - word) as usize + (self.positive.len().max(self.negative.len())) / 4;
            self.positive.splice(0..0, std::iter::repeat_n(0, grown));
            self.negative.splice(0..0, std::iter::repeat_n(0, grown));
            self.base -= grown as i64;
        }
        let side = if negative { &mut self.negative } else { &mut self.positive };
        add_shifted(side, (word - self.base) as usize, limbs, low.rem_euclid(64) as u32);
    }

    /// The sum, its integer odd or 0; the accumulator is 0 afterwards.
    pub fn take(&mut self) -> Dyadic {
        let side = |limbs: &[u64]| Integer::from_digits(limbs, Order::Lsf);
        let mut sum = side(&self.positive) - side(&self.negative);
        self.positive.clear();
        self.negative.clear();
        let zeros = sum.find_one(0).unwrap_or(0);
        sum >>= zeros;
        Dyadic { integer: sum, exponent: self.base * 64 + i64::from(zeros) }
    }
}

/// Adds `limbs * 2^shift` at limb `at` of `sum`, which grows as needed; `shift < 64`.
fn add_shifted(sum: &mut Vec<u64>, at: usize, limbs: &[u64], shift: u32) {
    let end = at + limbs.len() + 1;
    if sum.len() < end {
        sum.resize(end, 0);
    }
    let (mut below, mut carry) = (0u64, false);
    let mut put = |slot: &mut u64, limb: u64| {
        let piece = (limb << shift) | (below >> 1 >> (63 - shift));
        let (partial, over) = slot.overflowing_add(piece);
        let (total, again) = partial.overflowing_add(u64::from(carry));
        *slot = total;
        carry = over | again;
        below = limb;
    };
    let (window, last) = sum[at..end].split_at_mut(limbs.len());
    window.iter_mut().zip(limbs).for_each(|(slot, &limb)| put(slot, limb));
    put(&mut last[0], 0);
    let mut next = end;
    while carry {
        if next == sum.len() {
            sum.push(0);
        }
        (sum[next], carry) = sum[next].overflowing_add(1);
        next += 1;
    }
}

/// One column of a view, its bits cut below `2^floor`.
#[derive(Clone, Copy)]
pub struct CutColumn<'a> {
    /// The matrix.
    pub view: MatrixView<'a>,
    /// The number of the column.
    pub index: usize,
    /// As in [`term`].
    pub floor: i64,
}

impl<'a> CutColumn<'a> {
    /// The column with all its bits.
    pub fn whole(view: MatrixView<'a>, index: usize) -> CutColumn<'a> {
        CutColumn { view, index, floor: KEEP_ALL }
    }
}

/// Multiplies numbers exactly and adds the products up, without a fresh allocation for each.
#[derive(Default)]
pub struct ProductSum {
    left: Integer,
    right: Integer,
    product: Integer,
}

impl ProductSum {
    /// Takes the left factor of the products that follow.
    pub fn set_left(&mut self, left: Term<'_>) {
        self.left.assign_digits(left.limbs, Order::Lsf);
        if left.negative {
            self.left.neg_assign();
        }
    }

    /// Adds `left * right`; both lie `2^low` above their own lowest bits.
    pub fn add_to(&mut self, sum: &mut Accumulator, right: &Integer, low: i64) {
        self.product.assign(&self.left * right);
        sum.add(self.product.is_negative(), self.product.as_limbs(), low);
    }

    /// Adds `sum_k left_k * right_k` to `sum`, exactly except for the parts below the floors.
    pub fn add_dot(&mut self, sum: &mut Accumulator, left: CutColumn<'_>, right: CutColumn<'_>) {
        for row in 0..left.view.rows() {
            let Some(x) = term(left.view.get(row, left.index), left.floor) else { continue };
            let Some(y) = term(right.view.get(row, right.index), right.floor) else { continue };
            self.set_left(x);
            self.right.assign_digits(y.limbs, Order::Lsf);
            self.product.assign(&self.left * &self.right);
            sum.add(self.product.is_negative() != y.negative, self.product.as_limbs(), x.low + y.low);
        }
    }
}

/// An upper bound `significand * 2^exponent`: the top bit of the significand is set, or the bound is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UpperBound {
    significand: u64,
    exponent: i64,
}

impl UpperBound {
    /// The bound 0.
    pub const ZERO: UpperBound = UpperBound { significand: 0, exponent: 0 };

    /// `2^exponent`, exactly.
    pub fn power_of_two(exponent: i64) -> UpperBound {
        UpperBound { significand: 1 << 63, exponent: exponent - 63 }
    }

    /// The least bound at or above `value * 2^exponent`.
    pub fn new(value: u128, exponent: i64) -> UpperBound {
        if value == 0 {
            return UpperBound::ZERO;
        }
        let drop = 64 - value.leading_zeros() as i64;
        if drop <= 0 {
            return UpperBound { significand: (value as u64) << -drop, exponent: exponent + drop };
        }
        let kept = value >> drop;
        let rounded = kept + u128::from(kept << drop != value);
        match u64::try_from(rounded) {
            Ok(significand) => UpperBound { significand, exponent: exponent + drop },
            Err(_) => UpperBound { significand: 1 << 63, exponent: exponent + drop + 1 },
        }
    }

    /// A bound of `|value|`.
    pub fn of(value: FloatRef<'_>) -> UpperBound {
        let Some((&top, rest)) = value.limbs.split_last().filter(|_| !value.head.is_zero()) else {
            return UpperBound::ZERO;
        };
        let is_more = rest.iter().any(|&limb| limb != 0);
        UpperBound::new(u128::from(top) + u128::from(is_more), value.head.exponent() - 64)
    }

    /// Whether the bound is 0.
    pub fn is_zero(self) -> bool {
        self.significand == 0
    }

    /// The least `e` with `bound < 2^e`; 0 for the bound 0.
    pub fn top_exponent(self) -> i64 {
        if self.is_zero() { 0 } else { self.exponent + 64 }
    }

    /// A bound of the product.
    pub fn times(self, other: UpperBound) -> UpperBound {
        let product = u128::from(self.significand) * u128::from(other.significand);
        UpperBound::new(product, self.exponent + other.exponent)
    }

    /// A bound of the sum.
    pub fn plus(self, other: UpperBound) -> UpperBound {
        let (high, low) = if self.top_exponent() >= other.top_exponent() { (self, other) } else { (other, self) };
        match (high.is_zero(), low.is_zero()) {
            (true, _) => low,
            (_, true) => high,
            _ => {
                // One bit is kept free for the carry; the bits shifted out count as one unit.
                let shift = (high.exponent - low.exponent).min(127) as u32;
                let scaled = u128::from(low.significand) << 63;
                let moved = scaled >> shift;
                let lost = u128::from(moved << shift != scaled);
                UpperBound::new((u128::from(high.significand) << 63) + moved + lost, high.exponent - 63)
            }
        }
    }

    /// A bound of the square root.
    pub fn square_root(self) -> UpperBound {
        let odd = self.exponent.rem_euclid(2);
        let value = u128::from(self.significand) << (62 + odd);
        let root = value.isqrt();
        let ceiling = root + u128::from(root * root != value);
        UpperBound::new(ceiling, (self.exponent - 62 - odd) / 2)
    }

    /// The exact comparison of `|value|` with the bound.
    pub fn compare(self, value: &Dyadic) -> Ordering {
        if self.is_zero() || value.integer == 0 {
            return (value.integer != 0).cmp(&!self.is_zero());
        }
        let size = Dyadic { integer: Integer::from(value.integer.abs_ref()), exponent: value.exponent };
        size.compare(&Dyadic { integer: Integer::from(self.significand), exponent: self.exponent })
    }

    /// `|value|` in units of the bound, to about 50 bits; infinite where only the bound is 0.
    pub fn ratio(self, value: &Dyadic) -> f64 {
        if value.integer == 0 {
            return 0.0;
        }
        if self.is_zero() {
            return f64::INFINITY;
        }
        let (fraction, bits) = value.integer.to_f64_exp();
        let quotient = fraction.abs() / (self.significand as f64 / 2f64.powi(64));
        let power = (i64::from(bits) + value.exponent - self.top_exponent()).clamp(-1100, 1100) as i32;
        // Infinity stands only for a bound of 0.
        (quotient * 2f64.powi(power / 2) * 2f64.powi(power - power / 2)).min(f64::MAX)
    }
}

/// Bits of an entry that count towards its column's norm.
const NORM_BITS: i64 = 63;

/// The size of one column before its products are formed.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSize {
    /// At least the column's Euclidean norm, above it by less than `(rows + 8) * 2^-61` of it.
    pub norm: UpperBound,
    /// Largest exponent of an entry; 0 for a zero column.
    pub top: i64,
    /// Exponent of the lowest bit of a nonzero limb; 0 for a zero column.
    pub low: i64,
}

/// Norm and extent of column `col`.
pub fn column_size(view: MatrixView<'_>, col: usize) -> ColumnSize {
    let terms = || (0..view.rows()).filter_map(|row| Some((view.get(row, col), term(view.get(row, col), KEEP_ALL)?)));
    let extent = terms().map(|(value, term)| (term.low, value.head.exponent()));
    let Some((low, top)) = extent.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))) else {
        return ColumnSize { norm: UpperBound::ZERO, top: 0, low: 0 };
    };
    // Entries rounded up to integers in units of 2^(top - 63): at most 2^63, squares at most 2^126.
    let (mut sum, mut overflows) = (0u128, 0u64);
    for (value, term) in terms() {
        let drop = (top - value.head.exponent()).min(NORM_BITS) as u32 + 1;
        let leading = term.limbs[term.limbs.len() - 1];
        let kept = leading.checked_shr(drop).unwrap_or(0);
        let exact = kept.checked_shl(drop).unwrap_or(0) == leading && term.limbs.len() == 1;
        let root = u128::from(kept) + u128::from(!exact);
        let (next, over) = sum.overflowing_add(root * root);
        sum = next;
        overflows += u64::from(over);
    }
    let unit = 2 * (top - NORM_BITS);
    let square = UpperBound::new(sum, unit).plus(UpperBound::new(u128::from(overflows), unit + 128));
    ColumnSize { norm: square.square_root(), top, low }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use rug::Float;
    use rug::rand::RandState;

    fn random(seed: u32) -> RandState<'static> {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(seed));
        rng
    }

    #[test]
    fn sums_are_exact_for_any_order_of_exponents() {
        for seed in 0..40u32 {
            let mut rng = random(seed);
            let (mut sum, mut want) = (Accumulator::default(), Integer::new());
            for _ in 0..rng.below(60) {
                let bits = 1 + rng.below(300);
                let value = Integer::from(Integer::random_bits(bits, &mut rng));
                let low = i64::from(rng.below(6000)) - 3000;
                let negative = rng.bits(1) == 1;
                sum.add(negative, value.as_limbs(), low);
                let shifted = value << (low + 3000) as u32;
                want += if negative { -shifted } else { shifted };
            }
            let Dyadic { integer: got, exponent } = sum.take();
            assert!(got == 0 || got.is_odd());
            if want == 0 {
                assert_eq!(got, 0);
            } else {
                assert_eq!(got << (exponent + 3000) as u32, want, "seed {seed}");
            }
            assert_eq!(sum.take().integer, 0, "the accumulator is empty afterwards");
        }
    }

    #[test]
    fn a_carry_runs_through_ones() {
        let mut sum = Accumulator::default();
        sum.add(false, &[u64::MAX; 5], 7);
        sum.add(false, &[1], 7);
        assert_eq!(sum.take(), Dyadic { integer: Integer::from(1), exponent: 7 + 320 });
    }

    #[test]
    fn cut_terms_differ_by_less_than_the_floor() {
        let matrix = Matrix::from_floats(1, 1, 256, &[Float::with_val(256, rug::float::Constant::Pi)]).unwrap();
        let value = matrix.get(0, 0); // 0.s * 2^2, limbs from 2^-254 up
        assert_eq!(term(value, KEEP_ALL).unwrap().limbs.len(), 4);
        assert_eq!(term(value, -254 + 63).unwrap().limbs.len(), 4);
        assert_eq!(term(value, -254 + 64).unwrap().limbs.len(), 3);
        assert_eq!(term(value, 1).unwrap().limbs.len(), 1);
        assert!(term(value, 2).is_none() && term(value, i64::MAX).is_none());
    }

    #[test]
    fn bounds_round_up_and_stay_close() {
        let mut rng = random(3);
        let exact = |bound: UpperBound| Float::with_val(400, bound.significand) << bound.exponent as i32;
        for case in 0..2000 {
            let mut draw = || {
                let shift = rng.below(128);
                let value = (u128::from(rng.bits(32)) << 96 | u128::from(rng.bits(32)) << 32 | 0xffff_fff0) >> shift;
                (value, i64::from(rng.below(300)) - 150)
            };
            let ((a, ea), (b, eb)) = (draw(), draw());
            let (x, y) = (UpperBound::new(a, ea), UpperBound::new(b, eb));
            let value = |v: u128, e: i64| Float::with_val(400, v) << e as i32;
            let check = |bound: UpperBound, want: Float| {
                let slack = Float::with_val(400, &want >> 62);
                assert!(exact(bound) >= want && exact(bound) <= want + slack, "case {case}: {a} {ea} {b} {eb}");
            };
            check(x, value(a, ea));
            check(x.times(y), exact(x) * exact(y));
            check(x.plus(y), exact(x) + exact(y));
            check(x.square_root(), exact(x).sqrt());
        }
    }

    #[test]
    fn comparisons_are_exact_at_the_bound() {
        let bound = UpperBound::new(12_345, -40);
        let dyadic = |integer: i32, exponent| Dyadic { integer: Integer::from(integer), exponent };
        for (integer, exponent, want) in [
            (12_345, -40, Ordering::Equal),
            (-12_345, -40, Ordering::Equal),
            (24_691, -41, Ordering::Greater),
            (24_689, -41, Ordering::Less),
            (1, 900, Ordering::Greater),
            (1, -900, Ordering::Less),
            (0, 5, Ordering::Less),
        ] {
            assert_eq!(bound.compare(&dyadic(integer, exponent)), want, "{integer} * 2^{exponent}");
        }
        assert_eq!(UpperBound::ZERO.compare(&dyadic(0, 3)), Ordering::Equal);
        assert_eq!(UpperBound::ZERO.compare(&dyadic(1, -3000)), Ordering::Greater);
        assert!((bound.ratio(&dyadic(49_380, -41)) - 2.0).abs() < 1e-12);
        assert!(UpperBound::ZERO.ratio(&dyadic(1, 0)).is_infinite());
    }

    #[test]
    fn norms_are_bounds_and_close() {
        for columns in [&[3.0, 4.0][..], &[1.0; 1000], &[1e-300, 1e300, -1e300], &[0.1, 0.0, 1e-18], &[-0.75]] {
            let matrix = Matrix::from_f64s(columns.len(), 1, 70, columns).unwrap();
            let size = column_size(matrix.view(), 0);
            let norm = columns.iter().fold(Float::new(3000), |sum, &x| sum + Float::with_val(3000, x).square()).sqrt();
            let bound = Float::with_val(3000, size.norm.significand) << size.norm.exponent as i32;
            assert!(bound >= norm && bound <= norm * (1.0 + columns.len() as f64 * 2f64.powi(-50)), "{columns:?}");
        }
        let zero = Matrix::zeros(5, 1, 64).unwrap();
        assert!(column_size(zero.view(), 0).norm.is_zero());
    }
}
