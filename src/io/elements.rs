//! Numbers collected in the order of a file, before the precision of their matrix is known.
//!
//! Promise: the words held never exceed those of the finished matrix plus one per placed element; no page is touched
//! for elements that have not arrived. The finished matrix has the least precision that holds all exact numbers, at
//! least the requested one. Independent of: files, text.

use crate::error::Error;
use crate::io::number::{Number, NumberReader, Refusal};
use crate::io::{Loaded, WrittenEntry};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::{EntryIndex, Matrix};
use crate::store::with_room;
use rug::Rational;

/// Words of one block: 33 MiB. The C library maps blocks above 32 MiB one by one, so that each goes back to the system
/// when it is dropped; smaller ones might stay in the process. Pages that no element has reached are not touched.
const BLOCK_WORDS: usize = 33 << 17;

/// The largest number of elements whose text is kept.
const MOST_WRITTEN: usize = 100_000;

/// Elements of one width: for each a place (where places are kept), a head and `limbs` limbs.
struct ElementBlock {
    limbs: usize,
    words: Vec<u64>,
}

/// The places in the matrix of the elements of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// All elements, column by column.
    Columns,
    /// The lower triangle, column by column.
    LowerColumns,
    /// All elements, row by row.
    Rows,
    /// Each element comes with its place.
    Placed,
}

/// A growing list of numbers. When a longer number comes, a new block of wider elements is opened.
pub(super) struct Elements {
    order: Order,
    precision_bits: u32,
    /// The number of elements, if it is known.
    expected: Option<u64>,
    /// Bytes that elements and matrix may take, where their number is not known before.
    limit_bytes: u64,
    count: u64,
    words: u64,
    blocks: Vec<ElementBlock>,
    /// The fewest bits to which an element was rounded that has more.
    rounded_bits: Option<u32>,
    /// The elements that were rounded, as they were written; `None` where they are not kept, or one could not be.
    written: Option<Vec<WrittenEntry>>,
}

/// The layout of the finished matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MatrixLayout {
    pub rows: usize,
    pub cols: usize,
    /// Whether each element below the diagonal is copied to the other side.
    pub mirrored: bool,
}

impl Elements {
    /// An empty list for `expected` elements of at least `precision_bits` bits.
    pub fn new(order: Order, precision_bits: u32, expected: u64) -> Self {
        Elements { expected: Some(expected), ..Elements::within(order, precision_bits, u64::MAX) }
    }

    /// An empty list for any number of elements, which with their matrix take at most `limit_bytes`.
    pub fn within(order: Order, precision_bits: u32, limit_bytes: u64) -> Self {
        Elements {
            order,
            precision_bits,
            expected: None,
            limit_bytes,
            count: 0,
            words: 0,
            blocks: Vec::new(),
            rounded_bits: None,
            written: None,
        }
    }

    /// Raises the least precision of the matrix.
    pub fn raise_precision(&mut self, precision_bits: u32) {
        self.precision_bits = self.precision_bits.max(precision_bits);
    }

    /// Keeps rounded elements as they were written from now on.
    pub fn keep_written(&mut self) {
        self.written = Some(Vec::new());
    }

    /// Keeps the element at `place` of the matrix; with no value, or after [`MOST_WRITTEN`] of them, none is kept.
    fn keep(&mut self, EntryIndex { row, col }: EntryIndex, value: Option<Rational>) {
        let kept = self.written.take().filter(|kept| kept.len() < MOST_WRITTEN);
        self.written = kept.zip(value).map(|(mut kept, value)| {
            kept.push(WrittenEntry { row, col, value });
            kept
        });
    }

    /// Number of elements so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Words in front of the limbs of each element.
    fn prefix(&self) -> usize {
        if self.order == Order::Placed { 2 } else { 1 }
    }

    /// Appends the number that `reader` has just read, with its `place`; `rows` is the number of rows of the
    /// matrix where elements come with their places.
    ///
    /// # Errors
    /// [`Refusal::ExponentRange`], [`Refusal::OutOfMemory`].
    pub fn push(
        &mut self,
        reader: &mut NumberReader,
        number: Number,
        place: EntryIndex,
        rows: usize,
    ) -> Result<(), Refusal> {
        if number.exact {
            self.precision_bits = self.precision_bits.max(number.bits);
        } else if reader.is_rounded(number) {
            self.rounded_bits = Some(self.rounded_bits.map_or(number.bits, |bits| bits.min(number.bits)));
            self.keep(place, reader.take_written());
        }
        let prefix = self.prefix();
        let block = self.block_for(limbs_for(self.precision_bits))?;
        let start = block.words.len();
        block.words.resize(start + prefix + block.limbs, 0);
        let (words, out) = block.words[start..].split_at_mut(prefix);
        words[0] = reader.store(number, out)?.0;
        if let Some(word) = words.get_mut(1) {
            *word = place.row as u64 + place.col as u64 * rows as u64;
        }
        self.count += 1;
        Ok(())
    }

    /// The last block, or a new one where that is full or its elements have fewer than `limbs` limbs.
    fn block_for(&mut self, limbs: usize) -> Result<&mut ElementBlock, Refusal> {
        let words_each = self.prefix() + limbs;
        let fits =
            |block: &ElementBlock| block.limbs >= limbs && block.words.len() + words_each <= block.words.capacity();
        if !self.blocks.last().is_some_and(fits) {
            let elements = self.next_elements(words_each);
            let bytes = (elements * words_each) as u64 * 8;
            self.words += (elements * words_each) as u64;
            // The blocks go as the matrix is filled, whose pages may all be touched by the first of them.
            let needed = self.words.saturating_mul(16);
            if self.expected.is_none() && needed > self.limit_bytes {
                return Err(Refusal::MemoryLimit(self.limit_bytes, needed));
            }
            let words = with_room(elements * words_each).map_err(|_| Refusal::OutOfMemory(bytes))?;
            self.blocks.push(ElementBlock { limbs, words });
        }
        self.blocks.last_mut().ok_or(Refusal::OutOfMemory(0))
    }

    /// Elements of the next block: the number still to come, or, where that is unknown, an eighth of those that have
    /// come.
    fn next_elements(&self, words_each: usize) -> usize {
        let most = (BLOCK_WORDS / words_each).max(1) as u64;
        let elements = match self.expected {
            Some(expected) => expected.saturating_sub(self.count),
            None => (self.count / 8).max(64),
        };
        elements.clamp(1, most) as usize
    }

    /// All that was read of a file.
    ///
    /// # Errors
    /// The errors of [`Matrix::zeros`].
    pub fn loaded(mut self, layout: MatrixLayout) -> Result<Loaded, Error> {
        let (rounded_bits, written) = (self.rounded_bits, self.written.take());
        Ok(Loaded { rounded_bits, written, symmetric: layout.mirrored, ..Loaded::new(self.finish(layout)?) })
    }

    /// The matrix of all elements, each given back as soon as it is copied.
    ///
    /// # Errors
    /// The errors of [`Matrix::zeros`].
    pub fn finish(self, layout: MatrixLayout) -> Result<Matrix, Error> {
        let mut matrix = Matrix::zeros(layout.rows, layout.cols, self.precision_bits)?;
        let width = matrix.limbs_per_element();
        let mut wide = vec![0; width];
        let (prefix, order) = (self.prefix(), self.order);
        let (mut row, mut col) = (0, 0);
        for block in self.blocks {
            for element in block.words.chunks_exact(prefix + block.limbs) {
                if order == Order::Placed {
                    (row, col) = (element[1] as usize % layout.rows, element[1] as usize / layout.rows);
                }
                let (low, high) = wide.split_at_mut(width - block.limbs);
                low.fill(0);
                high.copy_from_slice(&element[prefix..]);
                let value = FloatRef { head: Head(element[0]), limbs: &wide };
                matrix.set(row, col, value);
                if layout.mirrored && row != col {
                    matrix.set(col, row, value);
                }
                if order == Order::Rows {
                    col += 1;
                    (row, col) = if col == layout.cols { (row + 1, 0) } else { (row, col) };
                    continue;
                }
                row += 1;
                if row == layout.rows {
                    col += 1;
                    row = if order == Order::LowerColumns { col } else { 0 };
                }
            }
        }
        Ok(matrix)
    }
}
