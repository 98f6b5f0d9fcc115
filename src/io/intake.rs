//! Words of a text file, converted to numbers, and the errors for words that are not numbers.
//!
//! Rows and columns in messages count from 1, as in the files. Independent of: formats.

use crate::error::{Error, Result};
use crate::io::ReadOptions;
use crate::io::elements::Elements;
use crate::io::number::{Field, NumberReader, Refusal};
use crate::io::scan::{BufferSpan, Scanner, shown};
use crate::matrix::{EntryIndex, MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS};
use crate::store::zeroed;
use std::io::Read;

/// The numbers read so far, and the reader of the next one.
pub(super) struct Intake {
    pub numbers: NumberReader,
    pub elements: Elements,
}

/// Where an entry belongs.
#[derive(Clone, Copy)]
pub(super) struct ReadPosition {
    pub place: EntryIndex,
    /// Rows of the matrix, where elements come with their places.
    pub rows: usize,
    pub field: Field,
}

/// A word that was refused, and its place.
pub(super) struct Rejected {
    pub refusal: Refusal,
    pub place: EntryIndex,
}

impl Intake {
    /// Decimals are rounded to `decimal_bits`; without them a mark of Mathematica must state the bits.
    pub fn new(decimal_bits: impl Into<Option<u32>>, elements: Elements) -> Intake {
        Intake { numbers: NumberReader::new(decimal_bits), elements }
    }

    /// The same, which keeps rounded numbers as they were written where the options request it.
    pub fn keeping(mut self, options: &ReadOptions) -> Intake {
        if options.keep_written {
            self.numbers.keep_written();
            self.elements.keep_written();
        }
        self
    }

    /// Adds the entry at `place`, any number.
    ///
    /// # Errors
    /// As [`Intake::push_at`].
    #[inline]
    pub fn push<R: Read>(&mut self, scanner: &Scanner<'_, R>, word: BufferSpan, place: EntryIndex) -> Result<()> {
        self.push_at(scanner, word, ReadPosition { place, rows: 0, field: Field::Real })
    }

    /// Adds the entry at a place.
    ///
    /// # Errors
    /// [`Error::Format`] with the line, the place and the word; [`Error::OutOfMemory`], [`Error::MemoryLimit`].
    #[inline]
    pub fn push_at<R: Read>(&mut self, scanner: &Scanner<'_, R>, word: BufferSpan, at: ReadPosition) -> Result<()> {
        let word = scanner.bytes(word);
        self.put(word, at).map_err(|refusal| refused(refusal, word, at.place, |text| scanner.error(text)))
    }

    /// Stores the number in `word`, which need not be in a scanner.
    #[inline]
    pub fn put(&mut self, word: &[u8], at: ReadPosition) -> std::result::Result<(), Refusal> {
        let number = self.numbers.read(word, at.field)?;
        if !number.exact {
            self.elements.raise_precision(number.bits);
        }
        self.elements.push(&mut self.numbers, number, at.place, at.rows)
    }
}

/// The error for a word at a place; `error` adds the file and the line.
pub(super) fn refused(
    refusal: Refusal,
    word: &[u8],
    EntryIndex { row, col }: EntryIndex,
    error: impl FnOnce(String) -> Error,
) -> Error {
    let found = shown(word);
    let at = format!("entry at row {}, column {} (counted from 1)", row + 1, col + 1);
    error(match refusal {
        Refusal::OutOfMemory(bytes) => return Error::OutOfMemory { bytes },
        Refusal::MemoryLimit(limit_bytes, minimum_bytes) => {
            return Error::MemoryLimit { limit_bytes, minimum_bytes };
        }
        Refusal::NotFinite(kind) => format!("{at} is {kind}: every entry must be finite"),
        Refusal::NotANumber => format!("{at} is not a number: {found}"),
        Refusal::NotAnInteger => {
            format!("{at} is not an integer, although the first line of the file announces integers: {found}")
        }
        Refusal::NoPrecision => {
            format!(
                "{at} must be rounded, but the file does not state its precision: give the precision in bits; found \
                 {found}"
            )
        }
        Refusal::ExponentRange => format!("{at} has a binary exponent outside +-{MAXIMUM_EXPONENT}: {found}"),
        Refusal::TooLong(bits) => {
            format!("{at} has {bits} significant bits, more than {MAXIMUM_PRECISION_BITS}: {found}")
        }
    })
}

/// A set of places of a matrix, one bit each.
pub(super) struct Places {
    words: Vec<u64>,
}

impl Places {
    /// None of `count` places.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(count: usize) -> Result<Places> {
        Ok(Places { words: zeroed(count.div_ceil(64))? })
    }

    /// Adds a place; `false` where it was there already.
    pub fn insert(&mut self, place: usize) -> bool {
        let (word, bit) = (&mut self.words[place / 64], 1 << (place % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
