//! This rank's parts of matrices over ranks, in the memory of `Matrix` objects.

use sunzi::advanced::calls::{DistributionNumbers, LocalArray};
use sunzi::distributed::{Along, GridOrder};
use sunzi::{FloatRef, Matrix, MatrixView, MatrixViewMut};

use super::failure::RankFailure;

/// Where the numbers of a part are.
enum PartNumbers<'a> {
    /// A matrix, a block of one or a transpose, that is read.
    Read(MatrixView<'a>),
    /// A matrix that is written to, or its transpose.
    Write(&'a mut Matrix),
    /// Nowhere: a matrix that a plan is made for, of these rows, columns and bits.
    Planned([usize; 2], u32),
}

/// This rank's part of a matrix.
pub struct RankPart<'a> {
    name: &'static str,
    numbers: PartNumbers<'a>,
    /// Whether it is the transpose of what is written to.
    is_turned: bool,
}

impl<'a> RankPart<'a> {
    /// The argument `name`, which is read.
    pub fn read(name: &'static str, view: MatrixView<'a>) -> RankPart<'a> {
        RankPart { name, numbers: PartNumbers::Read(view), is_turned: false }
    }

    /// The argument `name`, which is read and written to.
    pub fn write(name: &'static str, matrix: &'a mut Matrix) -> RankPart<'a> {
        RankPart { name, numbers: PartNumbers::Write(matrix), is_turned: false }
    }

    /// The argument `name` of a plan.
    pub fn planned(name: &'static str, shape: [usize; 2], bits: u32) -> RankPart<'static> {
        RankPart { name, numbers: PartNumbers::Planned(shape, bits), is_turned: false }
    }

    /// Rows and columns of the matrix where it is.
    fn stored_shape(&self) -> [usize; 2] {
        match &self.numbers {
            PartNumbers::Read(view) => [view.rows(), view.cols()],
            PartNumbers::Write(matrix) => [matrix.rows(), matrix.cols()],
            PartNumbers::Planned(shape, _) => *shape,
        }
    }

    /// Bits of its entries.
    pub fn precision_bits(&self) -> u32 {
        match &self.numbers {
            PartNumbers::Read(view) => view.precision_bits(),
            PartNumbers::Write(matrix) => matrix.precision_bits(),
            PartNumbers::Planned(_, bits) => *bits,
        }
    }

    /// The numbers as a view; `None` for a plan, which has no numbers.
    pub fn view(&self) -> Option<MatrixView<'_>> {
        match &self.numbers {
            PartNumbers::Read(view) => Some(*view),
            PartNumbers::Write(matrix) if self.is_turned => Some(matrix.transposed()),
            PartNumbers::Write(matrix) => Some(matrix.view()),
            PartNumbers::Planned(..) => None,
        }
    }

    /// Stores a number, rounded to nearest if the part has fewer bits than its `bits`.
    ///
    /// # Errors
    /// None but those of the library for an exponent that rounding brings out of range.
    pub fn set(&mut self, row: usize, col: usize, number: FloatRef<'_>, bits: u32) -> sunzi::Result<()> {
        let (row, col) = if self.is_turned { (col, row) } else { (row, col) };
        match &mut self.numbers {
            PartNumbers::Write(matrix) if matrix.precision_bits() == bits => matrix.set(row, col, number),
            PartNumbers::Write(matrix) => {
                let own = matrix.precision_bits();
                matrix.set_float(row, col, &number.to_float(own))?;
            }
            PartNumbers::Read(_) | PartNumbers::Planned(..) => {}
        }
        Ok(())
    }
}

impl LocalArray for RankPart<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn rows(&self) -> usize {
        self.stored_shape()[usize::from(self.is_turned)]
    }

    fn cols(&self) -> usize {
        self.stored_shape()[usize::from(!self.is_turned)]
    }

    fn transposed(self) -> Self {
        match self.numbers {
            PartNumbers::Read(view) => RankPart { numbers: PartNumbers::Read(view.transposed()), ..self },
            numbers => RankPart { numbers, is_turned: !self.is_turned, ..self },
        }
    }

    fn is_in_place(&self) -> bool {
        true
    }

    fn has_place_for(&self, precision_bits: u32) -> bool {
        let [rows, cols] = self.stored_shape();
        // A row and its transpose are the same words.
        let fits = rows * cols > 0 && (!self.is_turned || rows == 1 || cols == 1);
        fits && self.precision_bits() == precision_bits && !matches!(self.numbers, PartNumbers::Read(_))
    }

    fn place_for(&mut self, precision_bits: u32) -> Option<MatrixViewMut<'_>> {
        if !self.has_place_for(precision_bits) {
            return None;
        }
        let (rows, cols) = (self.rows(), self.cols());
        match &mut self.numbers {
            PartNumbers::Write(matrix) => {
                MatrixViewMut::from_parts(matrix.parts_mut(), (rows, cols), rows, precision_bits).ok()
            }
            PartNumbers::Read(_) | PartNumbers::Planned(..) => None,
        }
    }
}

/// The beginning of a sentence about each number of a distribution.
pub const NUMBERS: [&str; 11] = [
    "rows is",
    "cols is",
    "grid_rows is",
    "grid_cols is",
    "grid_order is",
    "row_along is",
    "col_along is",
    "row_block is",
    "col_block is",
    "row_first is",
    "col_first is",
];

/// The distribution in the numbers of `sunzi.mpi`, which are those of [`NUMBERS`].
///
/// # Errors
/// A number that stands for no order or direction.
pub fn distribution(name: &'static str, numbers: &[i64; 11]) -> Result<DistributionNumbers, RankFailure> {
    let [rows, cols, grid_rows, grid_cols, order, row_along, col_along, row_block, col_block, row_first, col_first] =
        *numbers;
    let along = |number: i64| match number {
        0 => Ok(None),
        1 => Ok(Some(Along::GridRow)),
        2 => Ok(Some(Along::GridCol)),
        3 => Ok(Some(Along::ColumnMajor)),
        4 => Ok(Some(Along::RowMajor)),
        other => {
            let known = "use 0 (none), 1 (rows of the grid), 2 (columns of the grid), 3 (column-major order) or 4 \
                         (row-major order)";
            Err(RankFailure::invalid(name, format!("{other} is not a valid distribution along a grid; {known}")))
        }
    };
    let order = match order {
        101 => GridOrder::RowMajor,
        102 => GridOrder::ColumnMajor,
        other => {
            let known = "use 101 (by rows) or 102 (by columns)";
            return Err(RankFailure::invalid(
                name,
                format!("{other} is not a valid order of ranks in a grid; {known}"),
            ));
        }
    };
    let (row_along, col_along) = (along(row_along)?, along(col_along)?);
    Ok(DistributionNumbers {
        rows,
        cols,
        grid_rows,
        grid_cols,
        order,
        row_along,
        col_along,
        row_block,
        col_block,
        row_first,
        col_first,
    })
}
