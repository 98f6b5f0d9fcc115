//! Texts of errors that name rows and columns: counted from 0, as code indexes, or from 1, as files and the program do.
//!
//! Independent of: which error a text belongs to.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// The number of the first row and of the first column in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexBase {
    /// 0, as in Rust, Python and C.
    Zero,
    /// 1, as in files and in all output of the program.
    One,
}

impl IndexBase {
    /// The number, in this base, of the row or column with `index` from 0.
    pub fn number(self, index: usize) -> usize {
        match self {
            IndexBase::Zero => index,
            IndexBase::One => index.saturating_add(1),
        }
    }

    /// A row or other single index, with its base: `row 4 (from 1)` for the arguments `row` and 3.
    pub fn one(self, what: &str, index: usize) -> String {
        format!("{what} {} (from {})", self.number(index), self.number(0))
    }

    /// A place in a matrix, with its base: `row 4, column 1 (from 1)` for the arguments 3 and 0.
    pub fn place(self, row: usize, column: usize) -> String {
        format!("row {}, {}", self.number(row), self.one("column", column))
    }
}

/// The text of an error, one line, in both bases of its row and column numbers.
///
/// In its `Display` form, and in the string to which it dereferences, rows and columns are counted from 0.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ErrorText {
    from_zero: String,
    from_one: String,
}

impl ErrorText {
    /// The text for both bases of the indices, as `say` returns it for each of them.
    pub fn counted(say: impl Fn(IndexBase) -> String) -> ErrorText {
        ErrorText { from_zero: say(IndexBase::Zero), from_one: say(IndexBase::One) }
    }

    /// The text in one base.
    pub fn in_base(&self, base: IndexBase) -> &str {
        match base {
            IndexBase::Zero => &self.from_zero,
            IndexBase::One => &self.from_one,
        }
    }
}

impl<T: Into<String>> From<T> for ErrorText {
    /// A text that names no places.
    fn from(text: T) -> ErrorText {
        let from_zero = text.into();
        ErrorText { from_one: from_zero.clone(), from_zero }
    }
}

impl Deref for ErrorText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.from_zero
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.from_zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, MoreBits};
    use rug::Float;

    #[test]
    fn both_bases_name_the_same_places() {
        let (pivot, diagonal) = (Float::with_val(60, -2), Float::with_val(60, 3));
        let more_bits = MoreBits::Never;
        let cases = [
            (Error::NotInteger { row: 2, column: 0 }, "entry at row 2, column 0 is", "entry at row 3, column 1 is"),
            (Error::NotFinite { row: 0, column: 7, kind: "NaN" }, "row 0, column 7 is NaN", "row 1, column 8 is NaN"),
            (Error::SelfCheck { row: 4, column: 4 }, "row 4, column 4:", "row 5, column 5:"),
            (Error::NoPivot { index: 4, working_bits: 90 }, "in column 4 all", "in column 5 all"),
            (Error::Singular { index: 0 }, "diagonal at index 0: the", "diagonal at index 1: the"),
            (
                Error::NotSymmetric { row: 1, column: 0 },
                "at row 1, column 0 and at row 0, column 1 differ",
                "at row 2, column 1 and at row 1, column 2 differ",
            ),
            (
                Error::NotPositiveDefinite { index: 9, pivot, diagonal, more_bits, enough_bits: None },
                "index 9: pivot -2.00e0",
                "index 10: pivot -2.00e0",
            ),
            (
                Error::verification(ErrorText::counted(|base| base.place(3, 5))),
                "verification failed: row 3, column 5 (from 0)",
                "verification failed: row 4, column 6 (from 1)",
            ),
            (
                Error::Rank {
                    rank: 2,
                    exit_code: 3,
                    message: Error::NotInteger { row: 0, column: 1 }.text(),
                    own: None,
                },
                "rank 2: entry at row 0, column 1 is",
                "rank 2: entry at row 1, column 2 is",
            ),
            (Error::Cancelled, "cancelled", "cancelled"),
        ];
        for (error, from_zero, from_one) in cases {
            let text = error.text();
            assert_eq!(text.in_base(IndexBase::Zero), error.to_string());
            assert!(text.in_base(IndexBase::Zero).contains(from_zero), "{text}");
            assert!(text.in_base(IndexBase::One).contains(from_one), "{}", text.in_base(IndexBase::One));
        }
    }
}
