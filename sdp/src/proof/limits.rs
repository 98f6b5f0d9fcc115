//! What files may ask for: limits of their numbers, and of the numbers that are made from them.
//!
//! A word of a few letters can name a number of many bits, and a product of many such numbers more than any memory
//! holds. So each word, power and common denominator has a limit that no program or certificate in use comes near, and
//! the bytes of all numbers that are made are counted before they are: at most [`BYTES_PER_BYTE`] for each byte of the
//! files, beside [`FREE_BYTES`]. Does not know: files, programs.

use super::number::exact_number;
use rug::{Integer, Rational};
use std::cell::Cell;

/// Exponents of two and bits behind the point in a certificate, at most: those in use are a few times the precision.
pub const MAXIMUM_EXPONENT: i64 = 1 << 16;

/// Exponents of ten, and a quarter of those of two, in a number of a program, at most.
pub const MAXIMUM_POWER: i64 = 20_000;

/// Letters of a number in a file, at most.
pub const MAXIMUM_WORD: usize = 1 << 16;

/// Bits of a denominator that many numbers have in common, at most.
pub const MAXIMUM_DENOMINATOR_BITS: u32 = 1 << 19;

/// Bits behind the point of sample points and of the coefficients of a basis, at most.
pub const MAXIMUM_SAMPLING_BITS: u32 = 1 << 14;

/// Rows of a block, at most.
pub const MAXIMUM_ORDER: usize = 10_000_000;

/// Files that lists of files name, at most.
pub const MAXIMUM_FILES: usize = 1 << 16;

/// Bytes of numbers that reading a program, and checking a certificate, may each make for each byte of the files.
pub const BYTES_PER_BYTE: u64 = 256;

/// Products of two numbers that checking a certificate may make for each byte of the files, beside [`FREE_STEPS`]. An
/// honest factor of n rows whose numbers have d letters takes n / (3 d) for each of its bytes, and d is 30 at least.
pub const STEPS_PER_BYTE: u64 = 128;

/// Products that may be made from any files: they take a second or two.
pub const FREE_STEPS: u64 = 1 << 27;

/// Bytes that the members of an archive have for each of its own, beside [`FREE_INFLATED`], at most. Archives in use
/// have 2 to 4; JSON takes about 64 bytes of memory for each of its own, so this is [`BYTES_PER_BYTE`] twice.
pub const INFLATED_PER_BYTE: u64 = 8;

/// Bytes that the members of any archive may have: those whose JSON takes [`FREE_BYTES`].
pub const FREE_INFLATED: u64 = FREE_BYTES / 64;

/// Bytes of memory that a number of a table takes beside its digits.
pub const NUMBER_BYTES: u64 = 64;

/// Bytes of numbers that may be made from any files.
pub const FREE_BYTES: u64 = 64 << 20;

/// The bytes and the products that may still be made.
pub struct Room {
    left: Cell<u64>,
    steps: Cell<u64>,
    files: Cell<u64>,
}

impl Room {
    /// Room for what is made from files of so many bytes together.
    pub fn new(bytes: u64) -> Room {
        let room = Room { left: Cell::new(FREE_BYTES), steps: Cell::new(FREE_STEPS), files: Cell::new(0) };
        room.grow(bytes);
        room
    }

    /// Counts another file.
    pub fn grow(&self, bytes: u64) {
        self.files.set(self.files.get().saturating_add(bytes));
        self.left.set(self.left.get().saturating_add(bytes.saturating_mul(BYTES_PER_BYTE)));
        self.steps.set(self.steps.get().saturating_add(bytes.saturating_mul(STEPS_PER_BYTE)));
    }

    /// Bytes of the files.
    pub fn files(&self) -> u64 {
        self.files.get()
    }

    /// Takes room for numbers that are about to be made.
    ///
    /// # Errors
    /// A text with both limits where there is too little left.
    pub fn take(&self, bytes: u64) -> Result<(), String> {
        let left = self.left.get().checked_sub(bytes).ok_or_else(|| {
            format!(
                "the numbers that are named would take more than {FREE_BYTES} bytes and {BYTES_PER_BYTE} for each of \
                 the {} bytes of the files",
                self.files.get()
            )
        })?;
        self.left.set(left);
        Ok(())
    }

    /// Takes products that are about to be made. Bytes do not bound these: a matrix of numbers of one letter has
    /// as many pairs of rows as one of long numbers.
    ///
    /// # Errors
    /// A text with the limits where there are too few left.
    pub fn take_steps(&self, count: u64) -> Result<(), String> {
        let left = self.steps.get().checked_sub(count).ok_or_else(|| {
            format!(
                "the check would take more than {FREE_STEPS} products of numbers and {STEPS_PER_BYTE} for each of \
                 the {} bytes of the files",
                self.files.get()
            )
        })?;
        self.steps.set(left);
        Ok(())
    }

    /// The number that a word of a file is.
    ///
    /// # Errors
    /// Those of [`exact_number`] and [`Room::take`].
    pub fn number(&self, word: &str) -> Result<Rational, String> {
        let value = exact_number(word)?;
        self.take(bytes_of(&value))?;
        Ok(value)
    }
}

/// Bytes of both parts of a number.
pub fn bytes_of(value: &Rational) -> u64 {
    bytes_of_bits(u64::from(value.numer().significant_bits())) + bytes_of_bits(value.denom().significant_bits().into())
}

/// Bytes of a number of so many bits, in whole words.
pub fn bytes_of_bits(bits: u64) -> u64 {
    bits.div_ceil(64) * 8
}

/// Bytes of so many numbers, each of so many bits.
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
                "numbers whose common denominator has more than {MAXIMUM_DENOMINATOR_BITS} bits stand together"
            ));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_ends_where_it_says() {
        let room = Room::new(3);
        room.grow(2);
        assert_eq!(room.files(), 5);
        room.take(FREE_BYTES).unwrap();
        room.take(5 * BYTES_PER_BYTE).unwrap();
        room.take(0).unwrap();
        let refusal = room.take(1).unwrap_err();
        assert!(refusal.contains("67108864 bytes and 256 for each of the 5 bytes"), "{refusal}");
        room.take_steps(FREE_STEPS + 5 * STEPS_PER_BYTE).unwrap();
        let refusal = room.take_steps(1).unwrap_err();
        assert!(refusal.contains("134217728 products of numbers and 128 for each of the 5 bytes"), "{refusal}");
    }

    #[test]
    fn a_common_denominator_has_a_limit_and_reaches_it() {
        let last = Integer::from(1) << (MAXIMUM_DENOMINATOR_BITS - 1);
        assert_eq!(common([&last, &Integer::from(4)]), Ok(last.clone()));
        assert!(common([&last, &Integer::from(3)]).unwrap_err().contains("524288 bits"));
        assert_eq!(bytes_of(&Rational::from((1, 3))), 16);
        assert_eq!((bytes_of_many(3, 1), longest(&[Integer::from(5), Integer::from(-9)])), (48, 4));
    }
}
