//! Residues of big numbers modulo one random 61-bit prime, for Freivalds' test.
//!
//! It shares no code with the kernels except `float`'s tests for single bits: its verdict on a product is independent
//! of the computation of the product.

use crate::math::float::{FloatRef, any_below, bit};
use crate::math::modulus::Modulus;
use crate::math::prime::is_prime;
use rand_chacha::rand_core::RngCore;

/// One prime with constants that make the reduction of a big number cheap.
pub struct CheckField {
    modulus: Modulus,
    /// `floor(2^64 / p)`.
    reciprocal: u64,
    /// `2^64 mod p`.
    radix: u64,
    /// `floor(radix * 2^64 / p)`.
    radix_quotient: u64,
    /// `2^e mod p` for `e` from -63 on.
    powers: Vec<u64>,
}

/// A sum of products of residues, reduced only if the next product might not fit.
pub struct ProductSum<'f> {
    field: &'f CheckField,
    /// Below `2^122` between two additions.
    sum: u128,
}

impl ProductSum<'_> {
    /// Adds `a * b` for least residues.
    #[inline]
    pub fn add(&mut self, a: u64, b: u64) {
        // Residues are below 2^61: a product is below 2^122, so that the sum never passes 2^123.
        self.sum += u128::from(a) * u128::from(b);
        if self.sum >> 122 != 0 {
            self.sum %= u128::from(self.field.prime());
        }
    }

    /// The least residue of the sum.
    pub fn residue(self) -> u64 {
        (self.sum % u128::from(self.field.prime())) as u64
    }
}

/// Exponents that a [`CheckField`] keeps the powers of two for.
const KEPT_POWERS: usize = 4096;

impl CheckField {
    /// Bytes of the table that a field allocates.
    pub const TABLE_BYTES: u64 = (KEPT_POWERS * size_of::<u64>()) as u64;

    /// The field of `prime`, which lies between `2^60` and `2^61` (asserted).
    pub fn new(prime: u64) -> CheckField {
        assert!(prime >> 60 == 1, "{prime} has not 61 bits");
        let modulus = Modulus::new(prime);
        let divide = |high: u64| ((u128::from(high) << 64) / u128::from(prime)) as u64;
        let radix = ((1u128 << 64) % u128::from(prime)) as u64;
        let mut power = modulus.power(modulus.inverse(2), 63);
        let mut powers = Vec::with_capacity(KEPT_POWERS);
        for _ in 0..KEPT_POWERS {
            powers.push(power);
            power = modulus.add(power, power);
        }
        CheckField { modulus, reciprocal: divide(1), radix, radix_quotient: divide(radix), powers }
    }

    /// The least residue of an integer, or `None` if the number has a fraction.
    pub fn residue(&self, value: FloatRef<'_>) -> Option<u64> {
        if value.head.is_zero() {
            return Some(0);
        }
        let skip = value.limbs.iter().position(|&limb| limb != 0)?;
        let limbs = &value.limbs[skip..];
        let low = value.head.exponent() - 64 * limbs.len() as i64;
        if low < -i64::from(limbs[0].trailing_zeros()) {
            return None;
        }
        let magnitude = self.fold(limbs);
        let least = self.modulus.multiply(magnitude, self.power_of_two(low));
        Some(if value.head.is_negative() { self.modulus.subtract(0, least) } else { least })
    }

    /// The prime.
    pub fn prime(&self) -> u64 {
        self.modulus.prime()
    }

    /// A field whose prime is drawn from all primes between `2^60` and `2^61`; about 1 in 21 odd numbers is prime.
    pub fn random(rng: &mut impl RngCore) -> CheckField {
        loop {
            let candidate = (1 << 60) | (rng.next_u64() >> 4) | 1;
            if is_prime(candidate) {
                return CheckField::new(candidate);
            }
        }
    }

    /// A random residue, uniform to within `2^-64` of the number of residues.
    pub fn draw(&self, rng: &mut impl RngCore) -> u64 {
        ((u128::from(rng.next_u64()) * u128::from(self.prime())) >> 64) as u64
    }

    /// The least residue of `(-1)^negative * magnitude`.
    pub fn integer(&self, negative: bool, magnitude: &[u64]) -> u64 {
        let least = self.fold(magnitude) % self.prime();
        if negative { self.modulus.subtract(0, least) } else { least }
    }

    /// The least residue of `round(value * 2^shift)`, to nearest, ties to even, without forming the integer.
    ///
    /// The significand `S` shifted right by `d` is `(S - (S mod 2^d)) / 2^d`, and division is exact modulo the prime.
    pub fn scaled(&self, value: FloatRef<'_>, shift: i64) -> u64 {
        if value.head.is_zero() {
            return 0;
        }
        let bits = 64 * value.limbs.len() as i64;
        let drop = bits - value.head.exponent() - shift;
        if drop > bits {
            return 0;
        }
        let magnitude = if drop <= 0 {
            self.modulus.multiply(self.fold(value.limbs), self.power_of_two(-drop))
        } else {
            let (word, offset) = (drop as usize / 64, drop as usize % 64);
            let kept = self.fold(&value.limbs[word..]) % self.prime();
            let cut = (value.limbs.get(word).copied().unwrap_or(0) & ((1 << offset) - 1)) % self.prime();
            let floor = self.modulus.multiply(self.modulus.subtract(kept, cut), self.power_of_two(-(offset as i64)));
            let up = bit(value.limbs, drop - 1) && (any_below(value.limbs, drop - 1) || bit(value.limbs, drop));
            self.modulus.add(floor, u64::from(up))
        };
        if value.head.is_negative() { self.modulus.subtract(0, magnitude) } else { magnitude }
    }

    /// `a * b`.
    pub fn multiply(&self, a: u64, b: u64) -> u64 {
        self.modulus.multiply(a, b)
    }

    /// `a + b` for least residues.
    pub fn add(&self, a: u64, b: u64) -> u64 {
        self.modulus.add(a, b)
    }

    /// A sum of products, initially empty.
    pub fn product_sum(&self) -> ProductSum<'_> {
        ProductSum { field: self, sum: 0 }
    }

    /// `2^exponent` for `exponent >= -63`.
    fn power_of_two(&self, exponent: i64) -> u64 {
        match self.powers.get((exponent + 63) as usize) {
            Some(&power) => power,
            None => self.modulus.power(2, exponent as u64),
        }
    }

    /// The integer of these limbs modulo the prime, below 4 times the prime.
    fn fold(&self, limbs: &[u64]) -> u64 {
        let prime = self.prime();
        limbs.iter().rev().fold(0u64, |high, &limb| {
            // Shoup's products: each estimate of a quotient is at most one too small, so both parts are below 2 p.
            let quotient = ((u128::from(high) * u128::from(self.radix_quotient)) >> 64) as u64;
            let carried = high.wrapping_mul(self.radix).wrapping_sub(quotient.wrapping_mul(prime));
            let whole = ((u128::from(limb) * u128::from(self.reciprocal)) >> 64) as u64;
            carried + (limb - whole * prime)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::scale::scaled_integer;
    use crate::matrix::Matrix;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;
    use rug::Integer;
    use rug::rand::RandState;

    #[test]
    fn the_table_has_the_bytes_that_are_planned() {
        let field = CheckField::new((1 << 61) - 1);
        assert_eq!(size_of_val(&field.powers[..]) as u64, CheckField::TABLE_BYTES);
        assert_eq!(field.powers.capacity(), field.powers.len());
    }

    #[test]
    fn residues_equal_the_big_integer() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(5));
        let mut draw = ChaCha8Rng::seed_from_u64(8);
        for case in 0..400u32 {
            let field = CheckField::random(&mut draw);
            let bits = 1 + rng.below(500);
            let shift = if case % 4 == 0 { rng.below(9000) } else { rng.below(80) };
            let mut integer = Integer::from(Integer::random_bits(bits, &mut rng)) << shift;
            if case % 2 == 1 {
                integer = -integer;
            }
            let matrix = Matrix::from_integers(1, 1, 520, std::slice::from_ref(&integer)).unwrap();
            let want = Integer::from(integer.modulo_ref(&Integer::from(field.prime())));
            assert_eq!(field.residue(matrix.get(0, 0)).map(Integer::from), Some(want), "case {case}");
        }
    }

    #[test]
    fn sums_of_products_equal_the_big_integer() {
        let mut draw = ChaCha8Rng::seed_from_u64(6);
        for largest in [true, false] {
            let field = CheckField::random(&mut draw);
            let (mut sum, mut want) = (field.product_sum(), Integer::new());
            for _ in 0..100 {
                let mut residue = || if largest { field.prime() - 1 } else { field.draw(&mut draw) };
                let (a, b) = (residue(), residue());
                sum.add(a, b);
                want += Integer::from(a) * b;
            }
            assert_eq!(sum.residue(), want.modulo(&Integer::from(field.prime())));
        }
        assert_eq!(CheckField::new((1 << 61) - 1).product_sum().residue(), 0);
    }

    #[test]
    fn fractions_are_seen() {
        let field = CheckField::new((1 << 61) - 1);
        for (value, whole) in [(0.5, false), (3.0, true), (-2.25, false), (1e300, true), (1e-300, false), (0.0, true)] {
            let matrix = Matrix::from_f64s(1, 1, 100, &[value]).unwrap();
            assert_eq!(field.residue(matrix.get(0, 0)).is_some(), whole, "{value}");
        }
    }

    #[test]
    fn scaled_residues_are_those_of_the_rounded_integer() {
        let mut draw = ChaCha8Rng::seed_from_u64(3);
        for case in 0..3000 {
            let field = CheckField::random(&mut draw);
            let bits = 1 + draw.next_u32() % 200;
            // Every third integer has few bits set, so that exact halves occur.
            let mut integer = Integer::from(draw.next_u64()) << (draw.next_u32() % 140);
            integer += if case % 3 == 0 { 0 } else { draw.next_u64() };
            integer.keep_bits_mut(bits);
            let matrix = Matrix::from_integers(1, 1, 210, &[if case % 2 == 0 { integer } else { -integer }]).unwrap();
            for shift in [-300, -70, -64, -3, -2, -1, 0, 1, 64, 90, 5000, -i64::from(bits), 1 - i64::from(bits)] {
                let want = scaled_integer(matrix.get(0, 0), shift);
                let residue = Integer::from(want.modulo_ref(&Integer::from(field.prime())));
                assert_eq!(field.scaled(matrix.get(0, 0), shift), residue.to_u64().unwrap(), "{want} from 2^{shift}");
                let (negative, limbs) = (want < 0, want.as_abs().to_digits::<u64>(rug::integer::Order::Lsf));
                assert_eq!(field.integer(negative, &limbs), residue.to_u64().unwrap());
            }
        }
    }
}
