//! Random matrices made as fast as memory takes them: one counter for each entry, mixed by splitmix64.
//!
//! For measurements, where a matrix of many gigabytes must not take longer than its product. The numbers are as good as
//! any for that; the ones for users come from `random.rs`.
//! Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014), and Vigna's constants.

use super::Size;
use crate::error::Result;
use crate::math::float::Head;
use crate::matrix::Matrix;
use rayon::prelude::*;

/// The step of the counter: the golden ratio in 64 bits.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where exponents are spread, one entry of this number is 0.
const ZERO_ENTRIES: u64 = 29;

/// Entries with full random significands and signs; exponents are uniform in `[-spread_bits, spread_bits]`, and some
/// entries are 0 if `spread_bits` is more than 0.
///
/// The result has the same bits for the same arguments, on any number of threads. The entries are computed by the
/// threads of the current rayon pool.
///
/// # Errors
/// The errors of [`Matrix::zeros`].
pub fn counter_random(size: Size, spread_bits: u32, seed: u64) -> Result<Matrix> {
    let mut matrix = Matrix::zeros(size.rows, size.cols, size.precision_bits)?;
    let (rows, limbs) = (matrix.rows(), matrix.limbs_per_element());
    if rows == 0 || matrix.cols() == 0 {
        return Ok(matrix);
    }
    let spare_bits = limbs as u32 * 64 - matrix.precision_bits();
    let stream = mix(seed);
    let (heads, all_limbs) = matrix.parts_mut();
    let columns = heads.par_chunks_mut(rows).zip(all_limbs.par_chunks_mut(rows * limbs));
    columns.enumerate().for_each(|(col, (heads, all_limbs))| {
        for (row, (head, limbs)) in heads.iter_mut().zip(all_limbs.chunks_exact_mut(limbs)).enumerate() {
            // Every entry has a counter of its own, far from the others' by the mixing.
            let counter = mix(stream ^ (col as u64 * rows as u64 + row as u64));
            *head = entry(counter, spread_bits, spare_bits, limbs).0;
        }
    });
    Ok(matrix)
}

/// The finishing steps of splitmix64.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn entry(mut counter: u64, spread_bits: u32, spare_bits: u32, limbs: &mut [u64]) -> Head {
    let mut next = || {
        counter = counter.wrapping_add(STEP);
        mix(counter)
    };
    let choice = next();
    if spread_bits > 0 && (choice >> 1) % ZERO_ENTRIES == 0 {
        return Head::ZERO; // its limbs are 0 already
    }
    limbs.iter_mut().for_each(|limb| *limb = next());
    limbs[0] &= u64::MAX << spare_bits;
    limbs[limbs.len() - 1] |= 1 << 63;
    let exponent = (u128::from(next()) * (2 * u128::from(spread_bits) + 1)) >> 64;
    Head::new(choice & 1 == 1, exponent as i64 - i64::from(spread_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_numbers_with_full_significands() {
        let size = Size { rows: 40, cols: 30, precision_bits: 113 };
        for spread_bits in [0, 3000] {
            let matrix = counter_random(size, spread_bits, 7).unwrap();
            assert!(matrix == counter_random(size, spread_bits, 7).unwrap());
            assert!(matrix != counter_random(size, spread_bits, 8).unwrap());
            let (mut zeros, mut negative, mut far) = (0, 0, 0);
            for (row, col) in (0..30).flat_map(|col| (0..40).map(move |row| (row, col))) {
                let number = matrix.get(row, col);
                zeros += usize::from(number.head.is_zero());
                negative += usize::from(number.head.is_negative());
                far += usize::from(number.head.exponent().unsigned_abs() > 1000);
                let mut copy = Matrix::zeros(1, 1, 113).unwrap();
                copy.set_float(0, 0, &matrix.float(row, col)).unwrap();
                assert_eq!(copy.get(0, 0), number, "not in the form of a number");
            }
            assert!((400..800).contains(&negative));
            assert_eq!((zeros > 0, far > 0), (spread_bits > 0, spread_bits > 0));
        }
        assert_eq!(counter_random(Size { rows: 0, ..size }, 0, 1).unwrap().cols(), 30);
    }
}
