//! Random numbers of tests, and how many cases there are: shared by the tests of the library, the program and C.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rug::Integer;
use rug::integer::Order;
pub use sunzi::advanced::testing::effort;

/// The seeds of a test of what is said of a caller's matrix: fifty times `count` with the effort of a soak run, 20.
pub fn claims(count: u64) -> std::ops::Range<u64> {
    0..count * if effort() > 1 { 5 * effort() / 2 } else { 1 }
}

/// A small seeded source of numbers.
pub struct Rng(ChaCha8Rng);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.word()) * limit as u128) >> 64) as usize
    }

    /// Uniform in `-limit..=limit`.
    pub fn within(&mut self, limit: i64) -> i64 {
        self.below(2 * limit as usize + 1) as i64 - limit
    }

    pub fn coin(&mut self) -> bool {
        self.word() & 1 == 1
    }

    /// An integer of exactly `bits` bits (at least 1), of random sign.
    pub fn integer(&mut self, bits: u32) -> Integer {
        let limbs = (0..bits.div_ceil(64)).map(|_| self.word()).collect::<Vec<_>>();
        let mut value = Integer::from_digits(&limbs, Order::Lsf).keep_bits(bits);
        value.set_bit(bits - 1, true);
        if self.coin() { -value } else { value }
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
