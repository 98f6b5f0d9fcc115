//! Whether a file that stores all entries is that of a symmetric matrix, or of one whose triangle may be named.

use crate::error::{Error, Result};
use crate::io::{Block, MatrixFile};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{EntryIndex, TriangleCheck, TriangleConflict, Uplo};
use crate::store::zeroed;
use std::ops::Range;

/// Words of a block in which triangles are compared, unless one entry has more.
const BLOCK_WORDS: usize = 1 << 17;

impl MatrixFile {
    /// Compares both triangles of a file that stores all entries of a square matrix, in blocks of `step` rows and
    /// columns; needs memory for two blocks.
    ///
    /// # Errors
    /// [`Error::NotSymmetric`] with the first entry found, block by block, that differs from its mirror image;
    /// [`Error::NotSquare`], [`Error::Io`], [`Error::OutOfMemory`].
    pub fn check_symmetric(&self, step: usize) -> Result<()> {
        self.visit_mirrored(step, |place, lower, upper| match lower == upper {
            true => Ok(()),
            false => Err(Error::NotSymmetric { row: place.row, column: place.col }),
        })
    }

    /// Whether the triangle other than `uplo` contradicts the mirror image of `uplo`, in the sense of
    /// [`triangle_conflict`](crate::matrix::triangle_conflict), in a file read at its stated precision; block by block.
    /// Needs memory for two blocks of at most 1 MiB and the diagonal.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::OutOfMemory`].
    pub fn triangle_conflict(&self, uplo: Uplo) -> Result<Option<TriangleConflict>> {
        let mut check = TriangleCheck::new(self.precision_bits());
        if !self.is_symmetric() && self.rows() == self.cols() {
            let (heads, limbs) = (self.diagonal_heads()?, self.limbs());
            let mut words = zeroed(heads.len() * limbs)?;
            for (row, words) in words.chunks_exact_mut(limbs.max(1)).enumerate() {
                words.copy_from_slice(&self.entry_limbs(row, row)?);
            }
            let diagonal = |row: usize| FloatRef { head: heads[row], limbs: &words[row * limbs..(row + 1) * limbs] };
            let step = (BLOCK_WORDS / (1 + limbs)).isqrt();
            self.visit_mirrored(step, |at, lower, upper| {
                let (named, other) = if uplo == Uplo::Lower { (lower, upper) } else { (upper, lower) };
                if at.row > at.col {
                    check.pair(at, named, other, [diagonal(at.row), diagonal(at.col)]);
                }
                Ok(())
            })?;
        }
        let mirrored = |found: TriangleConflict| match uplo {
            Uplo::Lower => found,
            Uplo::Upper => TriangleConflict { row: found.column, column: found.row, ..found },
        };
        Ok(check.conflict().map(mirrored))
    }

    /// Passes each entry of the lower triangle and its mirror image to `visit`, block by block; none of a file that
    /// stores only one triangle.
    fn visit_mirrored(
        &self,
        step: usize,
        mut visit: impl FnMut(EntryIndex, FloatRef<'_>, FloatRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let n = self.rows();
        if n != self.cols() {
            return Err(Error::NotSquare { operation: "a symmetric file", rows: n, cols: self.cols() });
        }
        if self.is_symmetric() {
            return Ok(());
        }
        let step = step.clamp(1, n.max(1));
        let words = step * step * (1 + self.limbs());
        let (mut lower, mut upper) = (zeroed(words)?, zeroed(words)?);
        let pieces = |from: usize| (from..n).step_by(step).map(move |start| start..(start + step).min(n));
        for cols in pieces(0) {
            for rows in pieces(cols.start) {
                self.read_mirrored(&rows, &cols, &mut lower, &mut upper)?;
                let (count, limbs) = (rows.len() * cols.len(), self.limbs());
                for (row, col) in (0..cols.len()).flat_map(|col| (0..rows.len()).map(move |row| (row, col))) {
                    let entry = |words: &[u64], at: usize| Head(words[at]);
                    let limbs_of = |at: usize| count + at * limbs..count + (at + 1) * limbs;
                    let (one, other) = (row + col * rows.len(), col + row * cols.len());
                    let below = FloatRef { head: entry(&lower, one), limbs: &lower[limbs_of(one)] };
                    let above = FloatRef { head: entry(&upper, other), limbs: &upper[limbs_of(other)] };
                    visit(EntryIndex { row: rows.start + row, col: cols.start + col }, below, above)?;
                }
            }
        }
        Ok(())
    }

    fn read_mirrored(
        &self,
        rows: &Range<usize>,
        cols: &Range<usize>,
        lower: &mut [u64],
        upper: &mut [u64],
    ) -> Result<()> {
        let block = |rows: &Range<usize>, cols: &Range<usize>| Block { rows: rows.clone(), cols: cols.clone() };
        let words = self.block_words(&block(rows, cols));
        self.read_block(&block(rows, cols), &mut lower[..words])?;
        self.read_block(&block(cols, rows), &mut upper[..words])?;
        Ok(())
    }
}
