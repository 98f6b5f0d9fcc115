//! How many bytes and products may still be made of the numbers of files, within the limits. Independent of: files,
//! programs.

use super::limits::{BYTES_PER_BYTE, FREE_BYTES, FREE_STEPS, STEPS_PER_BYTE, bytes_of};
use super::number::exact_number;
use rug::Rational;
use std::cell::Cell;

/// The bytes and the products that may still be made.
pub struct Room {
    left: Cell<u64>,
    steps: Cell<u64>,
    files: Cell<u64>,
}

impl Room {
    /// Room for the numbers made from files of `bytes` bytes in total.
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
                "the numbers would take more than {FREE_BYTES} bytes plus {BYTES_PER_BYTE} for each of the {} bytes of \
                 the files, which is the limit for untrusted files",
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
                "the check would take more than {FREE_STEPS} products of numbers plus {STEPS_PER_BYTE} for each of the \
                 {} bytes of the files, which is the limit for untrusted files",
                self.files.get()
            )
        })?;
        self.steps.set(left);
        Ok(())
    }

    /// The number that a word of a file stands for.
    ///
    /// # Errors
    /// The errors of [`exact_number`] and [`Room::take`].
    pub fn number(&self, word: &str) -> Result<Rational, String> {
        let value = exact_number(word)?;
        self.take(bytes_of(&value))?;
        Ok(value)
    }
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
        assert!(refusal.contains("67108864 bytes plus 256 for each of the 5 bytes"), "{refusal}");
        room.take_steps(FREE_STEPS + 5 * STEPS_PER_BYTE).unwrap();
        let refusal = room.take_steps(1).unwrap_err();
        assert!(refusal.contains("134217728 products of numbers plus 128 for each of the 5 bytes"), "{refusal}");
    }
}
