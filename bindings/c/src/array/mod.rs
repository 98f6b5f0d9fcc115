//! Matrices in the caller's memory: checked descriptions, and how numbers get out of them and into them.
//!
//! Depends on: the layouts of `mpfr_t`, of `mpf_t` and of raw limbs. Independent of: contexts, operations. Promise: an
//! entry outside the requested part is neither read nor written. Entries are copied out of the caller's memory and
//! written through pointers, so that operands may overlap; only arrays of limbs are also lent as views, to read from
//! before anything is written, and then to write into.

mod entry;
mod grid;
mod limbs;
mod mpf;
mod mpfr;

pub use entry::{Entry, Flaw, Value};
pub use grid::{Grid, Part};
pub use limbs::LimbArray;
pub use mpf::MpfEntry;
pub use mpfr::MpfrEntry;

use crate::failure::{Failure, Outcome};
use crate::types::*;
use sunzi::MatrixViewMut;
use sunzi::advanced::calls::LocalArray;

/// The three kinds of entries.
#[derive(Clone, Copy)]
pub enum Array {
    /// `mpfr_t`.
    Mpfr(Grid<MpfrEntry>),
    /// `mpf_t`.
    Mpf(Grid<MpfEntry>),
    /// Heads and limbs.
    Limbs(LimbArray),
}

/// An argument that is a matrix, with its sizes checked.
#[derive(Clone, Copy)]
pub struct Operand {
    /// Its name in the header, for messages.
    pub name: &'static str,
    /// Its entries.
    pub array: Array,
}

impl Operand {
    /// Checks the description `matrix`.
    ///
    /// # Safety
    /// `matrix` is null or points to a `sunzi_matrix` whose pointers are null or point to the number of live entries
    /// that its sizes state; they stay so, and no other thread writes to them, while the operand is in use.
    pub unsafe fn new(name: &'static str, matrix: *const sunzi_matrix) -> Outcome<Operand> {
        // SAFETY: null or live by contract.
        let Some(matrix) = (unsafe { matrix.as_ref() }) else { return Err(Failure::null(name)) };
        let shape = Shape::new(name, matrix)?;
        let missing = |what: &str| {
            let message = format!("the pointer to the {what} of the {} x {} matrix is null", matrix.rows, matrix.cols);
            Err(Failure::of(sunzi_status::SUNZI_NULL_POINTER, name, message))
        };
        if matrix.entries.is_null() && !shape.is_empty() {
            return missing("entries");
        }
        // Of the other formats `limbs` may be anything.
        let limbs_aligned = matrix.format != SUNZI_LIMBS || matrix.limbs.is_aligned();
        if !matrix.entries.cast::<u64>().is_aligned() || !limbs_aligned {
            return Err(invalid(name, "the addresses of entries and limbs must be multiples of 8 bytes"));
        }
        let array = match matrix.format {
            SUNZI_MPFR => Array::Mpfr(shape.grid(matrix.entries.cast())),
            SUNZI_MPF => Array::Mpf(shape.grid(matrix.entries.cast())),
            SUNZI_LIMBS if matrix.limbs.is_null() && !shape.is_empty() => return missing("limbs"),
            SUNZI_LIMBS => Array::Limbs(LimbArray::new(name, shape.grid(matrix.entries.cast()), matrix)?),
            other => {
                let known = "choose SUNZI_MPFR (1), SUNZI_MPF (2) or SUNZI_LIMBS (3)";
                return Err(invalid(name, format!("the format {other} is not valid; {known}")));
            }
        };
        Ok(Operand { name, array })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        match &self.array {
            Array::Mpfr(grid) => grid.rows,
            Array::Mpf(grid) => grid.rows,
            Array::Limbs(array) => array.heads.rows,
        }
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        match &self.array {
            Array::Mpfr(grid) => grid.cols,
            Array::Mpf(grid) => grid.cols,
            Array::Limbs(array) => array.heads.cols,
        }
    }

    /// The same entries as the transpose.
    pub fn transposed(self) -> Operand {
        let array = match self.array {
            Array::Mpfr(grid) => Array::Mpfr(grid.transposed()),
            Array::Mpf(grid) => Array::Mpf(grid.transposed()),
            Array::Limbs(array) => Array::Limbs(array.transposed()),
        };
        Operand { array, ..self }
    }

    /// The column of a matrix of one column at another distance between its entries, which lie behind each other where
    /// it is negative. The caller has checked that they can be addressed.
    pub fn with_step(self, step: isize) -> Operand {
        let array = match self.array {
            Array::Mpfr(grid) => Array::Mpfr(grid.with_step(step)),
            Array::Mpf(grid) => Array::Mpf(grid.with_step(step)),
            limbs @ Array::Limbs(_) => limbs,
        };
        Operand { array, ..self }
    }

    /// The array, where it is in the library's form with just these bits.
    fn limbs_for(&self, precision_bits: u32) -> Option<&LimbArray> {
        match &self.array {
            Array::Limbs(array) if array.precision_bits() == precision_bits => Some(array),
            _ => None,
        }
    }

    /// Refuses a matrix that is not square.
    pub fn check_square(&self) -> Outcome<()> {
        if self.rows() == self.cols() {
            return Ok(());
        }
        let message = format!("the matrix is {} x {}; it must be square", self.rows(), self.cols());
        Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, self.name, message))
    }

    /// Refuses another shape than `rows x cols`.
    pub fn check_shape(&self, rows: usize, cols: usize) -> Outcome<()> {
        if (self.rows(), self.cols()) == (rows, cols) {
            return Ok(());
        }
        let message = format!("the matrix is {} x {}; it must be {rows} x {cols}", self.rows(), self.cols());
        Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, self.name, message))
    }
}

impl LocalArray for Operand {
    fn name(&self) -> &'static str {
        self.name
    }

    fn rows(&self) -> usize {
        self.rows()
    }

    fn cols(&self) -> usize {
        self.cols()
    }

    fn transposed(self) -> Operand {
        self.transposed()
    }

    fn is_in_place(&self) -> bool {
        matches!(&self.array, Array::Limbs(_))
    }

    fn has_place_for(&self, precision_bits: u32) -> bool {
        self.limbs_for(precision_bits).is_some_and(|array| array.is_packed() && self.rows() * self.cols() > 0)
    }

    fn place_for(&mut self, precision_bits: u32) -> Option<MatrixViewMut<'_>> {
        // SAFETY: the entries are live while the operand is in use, by the contract of `Operand::new`; the header's
        // rules keep other threads away from a result, and views of operands are gone when it is stored.
        self.limbs_for(precision_bits).and_then(|array| unsafe { array.view_mut() })
    }
}

/// An argument that is not valid.
pub fn invalid(name: &'static str, message: impl AsRef<str>) -> Failure {
    Failure::of(sunzi_status::SUNZI_INVALID_ARGUMENT, name, message)
}

/// The sizes of a matrix, checked.
struct Shape {
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
}

impl Shape {
    fn new(name: &'static str, matrix: &sunzi_matrix) -> Outcome<Shape> {
        let sunzi_matrix { layout, rows, cols, ld, .. } = *matrix;
        let refuse = |message: String| Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message));
        let (Ok(row_count), Ok(col_count)) = (usize::try_from(rows), usize::try_from(cols)) else {
            return refuse(format!("the size {rows} x {cols} must not be negative"));
        };
        let (line, of) = match layout {
            SUNZI_ROW_MAJOR => (cols, "columns of a row-major matrix"),
            SUNZI_COL_MAJOR => (rows, "rows of a column-major matrix"),
            other => {
                let known = "choose SUNZI_ROW_MAJOR (101) or SUNZI_COL_MAJOR (102)";
                return Err(invalid(name, format!("the layout {other} is not valid; {known}")));
            }
        };
        let least = line.max(1);
        if ld < least {
            return refuse(format!(
                "the leading dimension {ld} is too small; it must be at least {least} for {line} {of}"
            ));
        }
        // The last entry must lie within the address space; entries have 32 bytes at most, the limbs are elsewhere.
        let lines = (rows.max(cols) as i128 * ld as i128).saturating_mul(32);
        if row_count.min(col_count) > 0 && lines > isize::MAX as i128 {
            return refuse(format!("a {rows} x {cols} matrix with the leading dimension {ld} is too large to address"));
        }
        let ld = ld as isize;
        let (row_stride, col_stride) = if layout == SUNZI_ROW_MAJOR { (ld, 1) } else { (1, ld) };
        Ok(Shape { rows: row_count, cols: col_count, row_stride, col_stride })
    }

    fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    fn grid<T>(&self, first: *mut T) -> Grid<T> {
        let Shape { rows, cols, row_stride, col_stride } = *self;
        Grid { first, rows, cols, row_stride, col_stride, flipped: false }
    }
}
