//! The demands that files may make: limits of their numbers, and of the numbers that are made from them.
//!
//! A word of a few letters can name a number of many bits, and a product of many such numbers more than any memory
//! holds. So each word, power and common denominator has a limit that no program or certificate in use comes near, and
//! the bytes of all numbers that are made are counted before they are: at most [`BYTES_PER_BYTE`] for each byte of the
//! files, in addition to [`FREE_BYTES`]. Independent of: files, programs.

use rug::{Integer, Rational};

/// Largest exponent of two, and largest number of bits behind the binary point, in a certificate: certificates in use
/// have a few times the precision.
pub const MAXIMUM_EXPONENT: i64 = 1 << 16;

/// Largest exponent of ten, and a quarter of the largest exponent of two, of a number in a program.
pub const MAXIMUM_POWER: i64 = 20_000;

/// Largest number of characters of a number in a file.
pub const MAXIMUM_WORD: usize = 1 << 16;

/// Largest number of bits of a common denominator of many numbers.
pub const MAXIMUM_DENOMINATOR_BITS: u32 = 1 << 19;

/// Largest number of bits behind the binary point of sample points and of the coefficients of a basis.
pub const MAXIMUM_SAMPLING_BITS: u32 = 1 << 14;

/// Largest number of rows of a block.
pub const MAXIMUM_ORDER: usize = 10_000_000;

/// Largest number of files that lists of files name.
pub const MAXIMUM_FILES: usize = 1 << 16;

/// Bytes of numbers that reading a program, and checking a certificate, may each make for each byte of the files.
pub const BYTES_PER_BYTE: u64 = 256;

/// Products of two numbers that checking a certificate may make for each byte of the files, in addition to
/// [`FREE_STEPS`]. An honest factor of n rows whose numbers have d letters takes n / (3 d) for each of its bytes, and d
/// is 30 at least.
pub const STEPS_PER_BYTE: u64 = 128;

/// Products that may be made from any files: they take a second or two.
pub const FREE_STEPS: u64 = 1 << 27;

/// The largest number of uncompressed bytes of an archive for each of its own bytes, in addition to [`FREE_INFLATED`].
/// Archives in use have 2 to 4. A byte of JSON takes about 64 bytes of memory, so 8 of them take twice
/// [`BYTES_PER_BYTE`].
pub const INFLATED_PER_BYTE: u64 = 8;

/// Bytes that the members of any archive may have: those whose JSON takes [`FREE_BYTES`].
pub const FREE_INFLATED: u64 = FREE_BYTES / 64;

/// Bytes of memory that a number of a table takes in addition to its digits.
pub const NUMBER_BYTES: u64 = 64;

/// Bytes of numbers that may be made from any files.
pub const FREE_BYTES: u64 = 64 << 20;

/// Bytes of both parts of a number.
pub fn bytes_of(value: &Rational) -> u64 {
    bytes_of_bits(u64::from(value.numer().significant_bits())) + bytes_of_bits(value.denom().significant_bits().into())
}

/// Bytes of a number of `bits` bits, in whole words.
pub fn bytes_of_bits(bits: u64) -> u64 {
    bits.div_ceil(64) * 8
}

/// Bytes of `count` numbers, each of `bits` bits.
pub fn bytes_of_many(count: usize, bits: u64) -> u64 {
    (count as u64).saturating_mul(bytes_of_bits(bits.saturating_add(64)))
}

/// Bits of the longest of these numbers.
pub fn longest<'a>(numbers: impl IntoIterator<Item = &'a Integer>) -> u64 {
    numbers.into_iter().map(|number| u64::from(number.significant_bits())).max().unwrap_or(0)
}

/// The least common multiple of denominators.
///
/// # Errors
/// A text where it is longer than [`MAXIMUM_DENOMINATOR_BITS`].
pub fn common<'a>(denominators: impl IntoIterator<Item = &'a Integer>) -> Result<Integer, String> {
    let mut found = Integer::from(1);
    for denominator in denominators {
        if !found.is_divisible(denominator) {
            found.lcm_mut(denominator);
        }
        if found.significant_bits() > MAXIMUM_DENOMINATOR_BITS {
            return Err(format!(
                "the common denominator of some numbers has more bits than the limit of {MAXIMUM_DENOMINATOR_BITS} bits"
            ));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_denominator_has_a_limit_and_reaches_it() {
        let last = Integer::from(1) << (MAXIMUM_DENOMINATOR_BITS - 1);
        assert_eq!(common([&last, &Integer::from(4)]), Ok(last.clone()));
        assert!(common([&last, &Integer::from(3)]).unwrap_err().contains("524288 bits"));
        assert_eq!(bytes_of(&Rational::from((1, 3))), 16);
        assert_eq!((bytes_of_many(3, 1), longest(&[Integer::from(5), Integer::from(-9)])), (48, 4));
    }
}
