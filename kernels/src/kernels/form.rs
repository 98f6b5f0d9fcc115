//! The layout of the rows of an operand panel.
#![forbid(unsafe_code)]

use crate::kernels::RowRuns;
use crate::plan::BLOCK;
use std::ops::Range;

/// Residues of 16 bits in a word.
const WORD: usize = 4;

/// The order of 8 columns of rows of 16 bits each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Row after row: several threads can write rows, with any division of them.
    Rows,
    /// Pairs of neighbouring rows, with the two residues of a column next to each other, as the multiplier reads them;
    /// an odd number of rows is followed by a row of zeros. Parts of a panel begin with an even row.
    Pairs,
}

impl Form {
    /// Rows that lie together.
    fn rows(self) -> usize {
        match self {
            Form::Rows => 1,
            Form::Pairs => 2,
        }
    }

    /// Words of a panel of `rows` rows.
    #[inline]
    pub fn panel_words(self, rows: usize) -> usize {
        rows.next_multiple_of(self.rows()) * BLOCK / WORD
    }

    /// The words of some rows of a panel.
    pub fn row_runs(self, part: Range<usize>) -> RowRuns {
        assert!(part.start.is_multiple_of(self.rows()), "no part of a panel begins within a pair");
        RowRuns { first: self.panel_words(part.start), words: self.panel_words(part.len()), count: 1, stride: 0 }
    }

    /// The number of a residue within its panel.
    #[inline]
    pub fn place(self, row: usize, column: usize) -> usize {
        let rows = self.rows();
        (row / rows * BLOCK + column) * rows + row % rows
    }

    /// Clears the words after the last of `rows` rows.
    pub fn clear_behind(self, rows: usize, words: &mut [u64]) {
        if self == Form::Pairs && !rows.is_multiple_of(2) {
            // The upper half of each 32 bits.
            words[self.panel_words(rows - 1)..self.panel_words(rows)].iter_mut().for_each(|word| *word &= LOWER_ROW);
        }
    }
}

/// The residues of the first row of a pair in a word.
const LOWER_ROW: u64 = 0x0000_ffff_0000_ffff;
