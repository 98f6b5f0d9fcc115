//! Sums of integers, one for each entry of a tile, of a fixed number of words.
//!
//! Promise: exact, as long as every sum fits its words with its sign. Independent of: where the integers come from.

use crate::context::Context;
use crate::drive::parallel_for;
use crate::error::Result;
use crate::math::float::FloatRef;
use crate::matrix::Matrix;
use crate::ops::verify::exact::{KEEP_ALL, term};
use crate::store::zeroed;
use rug::Integer;
use rug::integer::Order;

/// Sums in two's complement, the lowest word first.
pub(super) struct IntegerSums {
    rows: usize,
    width: usize,
    words: Vec<u64>,
}

impl IntegerSums {
    /// Words of a sum below `2^bits` in size.
    pub fn width(bits: i64) -> usize {
        usize::try_from(bits).map_or(1, |bits| bits / 64 + 1)
    }

    /// Sums of 0, each below `2^bits` in size at any time.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(rows: usize, cols: usize, bits: i64) -> Result<IntegerSums> {
        let width = IntegerSums::width(bits);
        Ok(IntegerSums { rows, width, words: zeroed(rows * cols * width)? })
    }

    /// Adds the integers of a matrix of the same shape, column by column on all threads of the context.
    ///
    /// # Errors
    /// The errors of [`parallel_for`].
    pub fn add(&mut self, ctx: &Context, integers: &Matrix) -> Result<()> {
        let width = self.width;
        let mut columns = self.words.chunks_exact_mut(self.rows * width).enumerate();
        let add = |_: &mut (), (col, sums): (usize, &mut [u64])| {
            let sums = sums.chunks_exact_mut(width).enumerate();
            sums.for_each(|(row, sum)| add_one(sum, integers.get(row, col)));
            Ok(())
        };
        let mut locals = vec![(); ctx.threads()];
        ctx.install(|| parallel_for(&mut locals, |_| columns.next(), add))
    }

    /// A sum.
    pub fn get(&self, row: usize, col: usize) -> Integer {
        let words = &self.words[(row + col * self.rows) * self.width..][..self.width];
        if words[self.width - 1] >> 63 == 0 {
            return Integer::from_digits(words, Order::Lsf);
        }
        // The complement of all bits is -1 less than the opposite.
        let opposite = words.iter().map(|word| !word).collect::<Vec<_>>();
        -(Integer::from_digits(&opposite, Order::Lsf) + 1u32)
    }
}

/// Adds an integer to a sum.
fn add_one(sum: &mut [u64], value: FloatRef<'_>) {
    let Some(term) = term(value, KEEP_ALL) else { return };
    // Bits below 1 are 0: they may fill a part of the lowest word that is there.
    let (word, shift) = (term.low.div_euclid(64), term.low.rem_euclid(64) as u32);
    let (mut below, mut carry) = (0u64, false);
    for at in word..sum.len() as i64 {
        let limb = usize::try_from(at - word).ok().and_then(|from| term.limbs.get(from)).copied().unwrap_or(0);
        let piece = (limb << shift) | (below >> 1 >> (63 - shift));
        below = limb;
        let Ok(at) = usize::try_from(at) else { continue };
        let change = if term.negative { u64::overflowing_sub } else { u64::overflowing_add };
        let (first, one) = change(sum[at], piece);
        let (second, other) = change(first, u64::from(carry));
        (sum[at], carry) = (second, one | other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::rand::RandState;

    #[test]
    fn sums_are_those_of_integers() {
        let (mut rng, ctx) = (RandState::new(), Context::new().unwrap());
        for (case, bits) in [1u32, 20, 63, 64, 65, 127, 128, 300, 1000].into_iter().enumerate() {
            let mut sums = IntegerSums::new(2, 3, i64::from(bits) + 5).unwrap();
            let mut wanted = vec![Integer::new(); 6];
            for round in 0..30 {
                let mut integers = Matrix::zeros(2, 3, bits.max(2) + 70 * (round % 3)).unwrap();
                for (at, wanted) in wanted.iter_mut().enumerate() {
                    let size = Integer::from(Integer::random_bits(1 + (round * 7 + case as u32) % bits, &mut rng));
                    let value = if rng.bits(1) == 1 { -size } else { size };
                    integers.set_integer_exponent(at % 2, at / 2, &value, 0).unwrap();
                    *wanted += value;
                }
                sums.add(&ctx, &integers).unwrap();
            }
            for (at, wanted) in wanted.iter().enumerate() {
                assert_eq!(&sums.get(at % 2, at / 2), wanted, "{bits} bits");
            }
        }
    }
}
