//! Symmetric matrices: one that is known to be symmetric, and the operand of an operation that needs one.
//!
//! A [`SymmetricMatrix`] holds both triangles, so everything that reads a matrix reads it as it is; it is made by
//! operations, or from a plain matrix that is either checked or of which the caller names a triangle. A [`Symmetric`]
//! is an operand: a symmetric matrix, a plain one to be checked, or a triangle that the caller names.
//! Source of the design: docs/decisions/022-triangles-are-types.md.

use crate::error::{Error, Result};
use crate::matrix::mirror::{Workers, mirror};
use crate::matrix::{Matrix, MatrixView, Uplo};
use std::ops::Deref;

/// Rows and columns of the blocks in which triangles are compared: both stay in the nearest cache.
const BLOCK: usize = 16;

/// A symmetric matrix: entry `(i, j)` equals entry `(j, i)` for all i and j.
///
/// Both triangles are stored, so it can be used like a [`Matrix`] in products, views, transposes and files. A symmetric
/// matrix cannot be changed; [`SymmetricMatrix::into_matrix`] converts it to a [`Matrix`], which can.
///
/// ```
/// # mod sunzi { pub use {rug, sunzi_kernels::{Error, matrix::*}}; }
/// use sunzi::{Matrix, SymmetricMatrix, Uplo};
/// let plain = Matrix::from_f64s(2, 2, 256, &[4.0, 2.0, 1.0, 5.0])?;
/// // A plain matrix is checked; a triangle counts only where it is named.
/// assert!(SymmetricMatrix::new(plain.clone()).is_err());
/// let q = SymmetricMatrix::from_triangle(plain, Uplo::Lower)?;
/// assert_eq!(q.view().to_f64s(), [4.0, 2.0, 2.0, 5.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SymmetricMatrix {
    whole: Matrix,
}

impl SymmetricMatrix {
    /// Converts a matrix that equals its transpose.
    ///
    /// Cost: one comparison for each pair of entries.
    ///
    /// # Errors
    /// [`Error::NotSymmetric`] with the first entry below the diagonal, column by column, that differs from its mirror
    /// image; [`Error::NotSquare`] if the matrix is not square.
    pub fn new(matrix: Matrix) -> Result<SymmetricMatrix> {
        Symmetric::from(&matrix).lower_view("a symmetric matrix")?;
        Ok(SymmetricMatrix { whole: matrix })
    }

    /// The symmetric matrix with the triangle `uplo` of a square matrix; the entries of the other triangle are
    /// replaced.
    ///
    /// # Errors
    /// [`Error::NotSquare`] if the matrix is not square.
    pub fn from_triangle(mut matrix: Matrix, uplo: Uplo) -> Result<SymmetricMatrix> {
        check_square("a symmetric matrix", &matrix.view())?;
        mirror(matrix.view_mut(), uplo, Workers::One);
        Ok(SymmetricMatrix { whole: matrix })
    }

    /// Converts a matrix that an operation has made symmetric.
    #[doc(hidden)]
    pub fn trusted(whole: Matrix) -> SymmetricMatrix {
        debug_assert!(Symmetric::from(&whole).lower_view("a symmetric matrix").is_ok());
        SymmetricMatrix { whole }
    }

    /// Sets every element to 0 and keeps the memory.
    pub fn clear(&mut self) {
        self.whole.clear();
    }

    /// The matrix with both triangles.
    pub fn as_matrix(&self) -> &Matrix {
        &self.whole
    }

    /// The matrix with both triangles, by value, so that it can be changed.
    pub fn into_matrix(self) -> Matrix {
        self.whole
    }
}

impl Deref for SymmetricMatrix {
    type Target = Matrix;

    fn deref(&self) -> &Matrix {
        &self.whole
    }
}

impl AsRef<Matrix> for SymmetricMatrix {
    fn as_ref(&self) -> &Matrix {
        &self.whole
    }
}

impl From<SymmetricMatrix> for Matrix {
    fn from(matrix: SymmetricMatrix) -> Matrix {
        matrix.whole
    }
}

impl TryFrom<Matrix> for SymmetricMatrix {
    type Error = Error;

    /// [`SymmetricMatrix::new`].
    fn try_from(matrix: Matrix) -> Result<SymmetricMatrix> {
        SymmetricMatrix::new(matrix)
    }
}

impl<'a> From<&'a SymmetricMatrix> for MatrixView<'a> {
    fn from(matrix: &'a SymmetricMatrix) -> Self {
        matrix.whole.view()
    }
}

impl PartialEq<Matrix> for SymmetricMatrix {
    fn eq(&self, other: &Matrix) -> bool {
        self.whole == *other
    }
}

impl PartialEq<SymmetricMatrix> for Matrix {
    fn eq(&self, other: &SymmetricMatrix) -> bool {
        *self == other.whole
    }
}

/// At most eight rows and columns, as a [`Matrix`].
impl std::fmt::Display for SymmetricMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.whole.fmt(f)
    }
}

/// Order and precision only: a matrix can be huge.
impl std::fmt::Debug for SymmetricMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SymmetricMatrix({} x {}, {} bits)", self.rows(), self.cols(), self.precision_bits())
    }
}

/// A symmetric operand, borrowed.
///
/// A `&SymmetricMatrix` converts to a symmetric operand at no cost, and so does a plain matrix or view, whose triangles
/// are compared when an operation reads it. [`Symmetric::lower`] and [`Symmetric::upper`] select the triangle to be
/// read.
#[derive(Clone, Copy, Debug)]
pub struct Symmetric<'a> {
    view: MatrixView<'a>,
    source: SymmetrySource,
}

/// The reason why a view may be read as a symmetric matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SymmetrySource {
    /// It is known to be symmetric.
    Known,
    /// The caller selects one triangle.
    Named(Uplo),
    /// Not known to be symmetric: it is checked.
    Plain,
}

impl<'a> From<&'a SymmetricMatrix> for Symmetric<'a> {
    fn from(matrix: &'a SymmetricMatrix) -> Self {
        Symmetric { view: matrix.whole.view(), source: SymmetrySource::Known }
    }
}

impl<'a> From<&'a Matrix> for Symmetric<'a> {
    fn from(matrix: &'a Matrix) -> Self {
        Symmetric { view: matrix.view(), source: SymmetrySource::Plain }
    }
}

impl<'a> From<MatrixView<'a>> for Symmetric<'a> {
    fn from(view: MatrixView<'a>) -> Self {
        Symmetric { view, source: SymmetrySource::Plain }
    }
}

impl<'a> Symmetric<'a> {
    /// The symmetric matrix with the lower triangle of `matrix`; the other triangle is not read.
    pub fn lower(matrix: impl Into<MatrixView<'a>>) -> Self {
        Symmetric::triangle(matrix, Uplo::Lower)
    }

    /// The symmetric matrix with the upper triangle of `matrix`; the other triangle is not read.
    pub fn upper(matrix: impl Into<MatrixView<'a>>) -> Self {
        Symmetric::triangle(matrix, Uplo::Upper)
    }

    /// [`Symmetric::lower`] or [`Symmetric::upper`].
    pub fn triangle(matrix: impl Into<MatrixView<'a>>, uplo: Uplo) -> Self {
        Symmetric { view: matrix.into(), source: SymmetrySource::Named(uplo) }
    }

    /// The triangle that the caller selected, or `None` if both triangles are used.
    pub fn named(&self) -> Option<Uplo> {
        match self.source {
            SymmetrySource::Named(uplo) => Some(uplo),
            SymmetrySource::Known | SymmetrySource::Plain => None,
        }
    }

    /// Rows and columns.
    pub fn order(&self) -> usize {
        self.view.rows()
    }

    /// A view whose triangle `uplo` contains the matrix; the contents of the other triangle are undefined.
    ///
    /// Cost: none, except for a plain matrix one comparison for each pair of entries.
    ///
    /// # Errors
    /// [`Error::NotSquare`] with `operation` if the operand is not square; [`Error::NotSymmetric`] with the first entry
    /// below the diagonal of a plain matrix, column by column, that differs from its mirror image.
    pub fn triangle_view(&self, uplo: Uplo, operation: &'static str) -> Result<MatrixView<'a>> {
        check_square(operation, &self.view)?;
        match self.source {
            SymmetrySource::Named(named) if named != uplo => Ok(self.view.transposed()),
            SymmetrySource::Plain => check_symmetric(&self.view).map(|()| self.view),
            _ => Ok(self.view),
        }
    }

    /// [`Symmetric::triangle_view`] of the lower triangle.
    ///
    /// # Errors
    /// As [`Symmetric::triangle_view`].
    pub fn lower_view(&self, operation: &'static str) -> Result<MatrixView<'a>> {
        self.triangle_view(Uplo::Lower, operation)
    }

    /// A copy with both triangles.
    ///
    /// # Errors
    /// As [`Symmetric::triangle_view`]; [`Error::OutOfMemory`].
    pub fn to_symmetric(&self) -> Result<SymmetricMatrix> {
        let copy = self.lower_view("a symmetric matrix")?.to_matrix()?;
        SymmetricMatrix::from_triangle(copy, Uplo::Lower)
    }
}

fn check_square(operation: &'static str, view: &MatrixView<'_>) -> Result<()> {
    let (rows, cols) = (view.rows(), view.cols());
    if rows == cols {
        return Ok(());
    }
    Err(Error::NotSquare { operation, rows, cols })
}

/// Refuses a square view that is not its own transpose.
fn check_symmetric(view: &MatrixView<'_>) -> Result<()> {
    let order = view.rows();
    let differ = |row: usize, col: usize| view.get(row, col) != view.get(col, row);
    let starts = || (0..order).step_by(BLOCK);
    let block_differs = |first_row: usize, first_col: usize| {
        let cols = first_col..(first_col + BLOCK).min(order);
        let rows = |col: usize| first_row.max(col + 1)..(first_row + BLOCK).min(order);
        cols.into_iter().any(|col| rows(col).any(|row| differ(row, col)))
    };
    if !starts().any(|col| (col..order).step_by(BLOCK).any(|row| block_differs(row, col))) {
        return Ok(());
    }
    let places = (0..order).flat_map(|col| (col + 1..order).map(move |row| (row, col)));
    let first = places.into_iter().find(|&(row, col)| differ(row, col));
    first.map_or(Ok(()), |(row, column)| Err(Error::NotSymmetric { row, column }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(order: usize, entry: impl Fn(usize, usize) -> usize) -> Matrix {
        let values = (0..order * order).map(|at| entry(at % order, at / order) as f64).collect::<Vec<_>>();
        Matrix::from_f64s(order, order, 100, &values).unwrap()
    }

    #[test]
    fn a_plain_matrix_is_refused_with_the_first_entry_that_differs() {
        let symmetric = |i: usize, j: usize| 100 * i.max(j) + i.min(j);
        for order in [0, 1, 2, 16, 17, 40] {
            let whole = numbered(order, symmetric);
            assert!(SymmetricMatrix::new(whole.clone()).unwrap() == whole);
            for (row, col) in (0..order).flat_map(|row| (0..order).map(move |col| (row, col))) {
                if row == col {
                    continue;
                }
                let wrong = numbered(order, |i, j| symmetric(i, j) + usize::from((i, j) == (row, col)));
                let (at, mirrored) = (row.max(col), row.min(col));
                for view in [wrong.view(), wrong.transposed()] {
                    let found = Symmetric::from(view).lower_view("test").map(|_| ());
                    let Err(Error::NotSymmetric { row, column }) = found else { panic!("{order} ({row}, {col})") };
                    assert_eq!((row, column), (at, mirrored));
                }
            }
        }
        let two = numbered(4, |i, j| symmetric(i, j) + usize::from((i, j) == (3, 0)) + usize::from((i, j) == (1, 2)));
        assert!(matches!(SymmetricMatrix::new(two), Err(Error::NotSymmetric { row: 3, column: 0 })));
        let flat = Matrix::zeros(2, 3, 64).unwrap();
        assert!(matches!(SymmetricMatrix::new(flat), Err(Error::NotSquare { .. })));
    }

    #[test]
    fn a_named_triangle_is_all_that_counts() {
        let lower = numbered(5, |i, j| if i >= j { 10 * i + j + 1 } else { 77 });
        let whole = numbered(5, |i, j| 10 * i.max(j) + i.min(j) + 1);
        let upper = lower.transposed().to_matrix().unwrap();
        assert!(Symmetric::lower(&lower).to_symmetric().unwrap() == whole);
        assert!(Symmetric::upper(&upper).to_symmetric().unwrap() == whole);
        assert!(SymmetricMatrix::from_triangle(lower, Uplo::Lower).unwrap() == whole);
        assert!(SymmetricMatrix::from_triangle(upper.clone(), Uplo::Upper).unwrap() == whole);
        assert!(SymmetricMatrix::from_triangle(upper, Uplo::Lower).unwrap() != whole);
    }
}
