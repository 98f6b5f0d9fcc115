//! Raw arrays of heads and limbs in the library's own form: operands are read where they are.

use crate::array::entry::{Flaw, Value, check_exponent};
use crate::array::grid::{Grid, Part};
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};
use sunzi::advanced::math::float::limbs_for;
use sunzi::{FloatRef, Head, MAXIMUM_PRECISION_BITS, Matrix, MatrixView, MatrixViewMut};

/// Heads, and at the same index the limbs of each.
#[derive(Clone, Copy)]
pub struct LimbArray {
    /// Heads: `exponent << 2 | 2 | sign`, or 0 for the number 0.
    pub heads: Grid<u64>,
    limbs: *mut u64,
    precision_bits: u32,
}

// SAFETY: numbers and pointers, which are only followed where their targets are proven to be this thread's.
unsafe impl Send for LimbArray {}
// SAFETY: as above.
unsafe impl Sync for LimbArray {}

impl LimbArray {
    /// The array of `matrix`, whose sizes are those of `heads`.
    pub fn new(name: &'static str, heads: Grid<u64>, matrix: &sunzi_matrix) -> Outcome<LimbArray> {
        let bits = u32::try_from(matrix.precision_bits).unwrap_or(0);
        if !(2..=MAXIMUM_PRECISION_BITS).contains(&bits) {
            let given = matrix.precision_bits;
            let message = format!("the precision of {given} bits is not valid; choose 2 to {MAXIMUM_PRECISION_BITS}");
            return Err(Failure::of(sunzi_status::SUNZI_PRECISION, name, message));
        }
        let array = LimbArray { heads, limbs: matrix.limbs, precision_bits: bits };
        if array.span() as u128 * limbs_for(bits) as u128 * 8 > isize::MAX as u128 {
            let (rows, cols) = (matrix.rows, matrix.cols);
            let message = format!("a {rows} x {cols} matrix of {bits} bits is too large to address");
            return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message));
        }
        Ok(array)
    }

    /// Bits of every significand.
    pub fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    /// The same entries as the transpose.
    pub fn transposed(self) -> LimbArray {
        LimbArray { heads: self.heads.transposed(), ..self }
    }

    /// The diagonal, copied into one column.
    ///
    /// # Safety
    /// As [`LimbArray::view`].
    pub unsafe fn diagonal(&self, name: &'static str) -> Outcome<Matrix> {
        let diagonal = LimbArray { heads: self.heads.diagonal(), ..*self };
        let mut column = Matrix::zeros(diagonal.heads.rows, 1, self.precision_bits)?;
        for row in 0..diagonal.heads.rows {
            // SAFETY: an entry of the array, live by contract.
            let number = unsafe { diagonal.number(row, 0) };
            check(number, self.precision_bits).map_err(|flaw| flaw.at(name, row, row))?;
            column.set(row, 0, number);
        }
        Ok(column)
    }

    /// Number of places between the first entry and the last, both included.
    fn span(&self) -> usize {
        let Grid { rows, cols, row_stride, col_stride, .. } = self.heads;
        let last = |count: usize, stride: isize| (count - 1) * stride.unsigned_abs();
        if rows == 0 || cols == 0 { 0 } else { last(rows, row_stride) + last(cols, col_stride) + 1 }
    }

    /// Refuses the first number of `part` in column `col` that breaks the form.
    ///
    /// # Safety
    /// As [`LimbArray::view`].
    pub unsafe fn check_column(&self, name: &'static str, part: Part, col: usize) -> Outcome<()> {
        for row in part.rows(col, self.heads.rows) {
            // SAFETY: an entry of the array, live by contract.
            let number = unsafe { self.number(row, col) };
            check(number, self.precision_bits).map_err(|flaw| self.heads.flaw(name, row, col, flaw))?;
        }
        Ok(())
    }

    /// The matrix as a view of the caller's memory; its numbers are not checked. It is not made of single columns: an
    /// operand of which one triangle counts would have to be copied, and would take its memory twice.
    ///
    /// # Safety
    /// Heads and limbs are live, and no thread writes to them or between them while the view is in use.
    pub unsafe fn view<'a>(&self, name: &'static str) -> Outcome<MatrixView<'a>> {
        let row_major = self.heads.is_row_major();
        let along = if row_major { self.heads.transposed() } else { self.heads };
        let (span, width) = (self.span(), limbs_for(self.precision_bits));
        let (heads, limbs): (&[u64], &[u64]) = match span {
            0 => (&[], &[]),
            // SAFETY: the first entry up to the last lie in one array, live by contract; `Shape` has checked that it
            // can be addressed. The slices reach over gaps and the other triangle, as a view has one stride for all
            // columns. The header's rules make these places part of the operand, to which no thread writes during a
            // call; they were made by the caller's allocator, beyond what the compiler of this library sees, so a word
            // that was never written is some word, and it is never looked at.
            _ => unsafe {
                let heads = std::slice::from_raw_parts(self.heads.first, span);
                (heads, std::slice::from_raw_parts(self.limbs, span * width))
            },
        };
        let ld = along.col_stride.unsigned_abs().max(along.rows);
        let view = MatrixView::from_parts((heads, limbs), (along.rows, along.cols), ld, self.precision_bits);
        let view = view.map_err(|error| Failure::about(name, error))?;
        Ok(if row_major { view.transposed() } else { view })
    }

    /// Whether its columns follow each other without gaps.
    pub fn is_packed(&self) -> bool {
        let Grid { rows, cols, row_stride, col_stride, .. } = self.heads;
        (rows <= 1 || row_stride == 1) && (cols <= 1 || col_stride == rows as isize)
    }

    /// The matrix for writing, where it [is packed](LimbArray::is_packed).
    ///
    /// # Safety
    /// Heads and limbs are live, and no other thread uses them while the view is in use.
    pub unsafe fn view_mut<'a>(&self) -> Option<MatrixViewMut<'a>> {
        let Grid { rows, cols, .. } = self.heads;
        let (count, width) = (rows * cols, limbs_for(self.precision_bits));
        if count == 0 || !self.is_packed() {
            return None;
        }
        // SAFETY: the entries follow each other, are live and used by no one else by contract; `Shape` has checked that
        // they can be addressed.
        let parts = unsafe {
            let heads = std::slice::from_raw_parts_mut(self.heads.first, count);
            (heads, std::slice::from_raw_parts_mut(self.limbs, count * width))
        };
        MatrixViewMut::from_parts(parts, (rows, cols), rows, self.precision_bits).ok()
    }

    /// # Safety
    /// The entry is live, and no thread writes to it while the number is in use.
    unsafe fn number<'a>(&self, row: usize, col: usize) -> FloatRef<'a> {
        let (head, limbs) = self.place(row, col);
        // SAFETY: live by contract.
        unsafe {
            let limbs = std::slice::from_raw_parts(limbs, limbs_for(self.precision_bits));
            FloatRef { head: Head(head.read()), limbs }
        }
    }

    fn place(&self, row: usize, col: usize) -> (*mut u64, *mut u64) {
        let index = row * self.heads.row_stride.unsigned_abs() + col * self.heads.col_stride.unsigned_abs();
        (self.heads.first.wrapping_add(index), self.limbs.wrapping_add(index * limbs_for(self.precision_bits)))
    }

    /// Stores a number, rounded to nearest even at the array's precision.
    ///
    /// # Safety
    /// The entry is live, and no other thread uses it.
    pub unsafe fn write(&self, row: usize, col: usize, value: Value<'_>) {
        let (head, limbs) = self.place(row, col);
        // SAFETY: live, and used by no one else by contract.
        unsafe {
            let limbs = std::slice::from_raw_parts_mut(limbs, limbs_for(self.precision_bits));
            head.write(value.fit(self.precision_bits, limbs).0);
        }
    }
}

/// Refuses a number that breaks the form of `sunzi::advanced::math::float`.
fn check(number: FloatRef<'_>, precision_bits: u32) -> Result<(), Flaw> {
    let FloatRef { head, limbs } = number;
    if head.is_zero() {
        let zeros = limbs.iter().all(|&limb| limb == 0);
        return if zeros { Ok(()) } else { Err(Flaw::Malformed("has the head 0 and limbs other than 0".into())) };
    }
    check_exponent(head.exponent())?;
    let spare = limbs.len() as u32 * 64 - precision_bits;
    let fault = if head.0 & 2 == 0 {
        format!("has the head {:#x}, whose bit 1 must be set", head.0)
    } else if limbs[limbs.len() - 1] >> 63 == 0 {
        "has a significand whose top bit is 0".into()
    } else if limbs[0] & !(u64::MAX << spare) != 0 {
        format!("has bits beyond its precision of {precision_bits} bits")
    } else {
        return Ok(());
    };
    Err(Flaw::Malformed(fault))
}
