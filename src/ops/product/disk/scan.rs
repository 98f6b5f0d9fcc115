//! The pass over an operand before a product: every number and the checksum are checked, and the norms of the columns
//! are found. Only a few numbers for each column are kept.

use crate::context::ProgressCallback;
use crate::error::Result;
use crate::io::HeadVisitor;
use crate::math::float::{FloatRef, Head};
use crate::math::scale::{norm_exponent, square_bound};
use crate::ops::product::streamed::FileOperand;
use std::sync::Arc;

/// Norms of columns under way: first the largest exponents, then the sums of the squares' bounds in the units which
/// these fix.
struct ColumnNorms {
    transposed: bool,
    /// Whether each entry off the diagonal stands for its mirror image too.
    mirrored: bool,
    largest: Vec<i64>,
    sums: Vec<u128>,
}

impl ColumnNorms {
    /// The columns of the operand that contain an entry of the file.
    fn columns(&self, row: usize, col: usize) -> (usize, Option<usize>) {
        let (own, mirror) = if self.transposed { (row, col) } else { (col, row) };
        (own, (self.mirrored && row != col).then_some(mirror))
    }
}

impl HeadVisitor for ColumnNorms {
    fn first(&mut self, row: usize, col: usize, head: Head) -> Result<()> {
        if !head.is_zero() {
            let (own, mirror) = self.columns(row, col);
            for at in [Some(own), mirror].into_iter().flatten() {
                self.largest[at] = self.largest[at].max(head.exponent());
            }
        }
        Ok(())
    }

    fn second(&mut self, row: usize, col: usize, FloatRef { head, .. }: FloatRef<'_>) -> Result<()> {
        if !head.is_zero() {
            let (own, mirror) = self.columns(row, col);
            for at in [Some(own), mirror].into_iter().flatten() {
                self.sums[at] += u128::from(square_bound(head, self.largest[at]));
            }
        }
        Ok(())
    }
}

/// The norm exponents of an operand's columns, and the checksum of its file.
///
/// # Errors
/// The errors of [`crate::io::MatrixFile::check`].
pub(super) fn scan(operand: &FileOperand, progress: Option<Arc<ProgressCallback>>) -> Result<(Vec<i64>, u64)> {
    let cols = operand.cols();
    let mut norms = ColumnNorms {
        transposed: operand.transposed,
        mirrored: operand.file.is_symmetric(),
        largest: vec![i64::MIN; cols],
        sums: vec![0; cols],
    };
    let checksum = operand.file.check_heads(progress, &mut norms)?;
    let both = norms.sums.iter().zip(&norms.largest);
    Ok((both.map(|(&sum, &largest)| norm_exponent(sum, largest)).collect(), checksum))
}
