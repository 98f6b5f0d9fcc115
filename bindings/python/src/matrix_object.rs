//! The data of a `Matrix` of Python; `matrix` has its methods.

use crate::index::Line;
use crate::kind::NumberKind;
use crate::view::View;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A matrix of multiprecision numbers with one precision, in the library's memory.
///
/// `Matrix(data, *, precision=None, numbers=None)`
///
/// Parameters
/// ----------
/// data : matrix
///     A list of rows, a flat list (one column), a NumPy array, an `mpmath.matrix`, a `flint.arb_mat` or a `Matrix`.
/// precision : int, optional
///     Precision in bits, to which entries are rounded to nearest. The default is the largest precision that the
///     entries have or need.
/// numbers : str, optional
///     Type of single entries and of lists made from the matrix: `gmpy2`, `mpmath`, `flint`, `longdouble`, `float`,
///     `decimal`, `str` or `fraction`. The default is the type of the data.
///
/// Slices and transposes are views: they share the numbers without a copy. They keep their values if the original
/// matrix is changed by an assignment such as `a[0, 1] = 2`. `A.T @ A` and `A @ A.T` run as SYRK. A row or column that
/// an integer selects is a matrix whose single index counts entries: `a[1][0]` is `a[1, 0]`. Lists of integers and
/// masks select as in NumPy, with a copy: `a[[2, 0]]`, `a[:, mask]`; two lists, and a mask of the shape of the matrix,
/// select single entries, which form a column. `+`, `-`, `*` and `/` by a number act on each entry.
///
/// >>> import sunzi
/// >>> a = sunzi.Matrix([[1, 2], [3, 4], [5, 6]], precision=200)
/// >>> a.T @ a
/// Matrix([[35, 44],
///         [44, 56]], precision=200, numbers='fraction')
/// >>> print(f"{a / 3:.4g}")
/// [[0.3333, 0.6667],
///  [     1,  1.333],
///  [ 1.667,      2]]
/// >>> a[1, 0], a[1:, ::-1].to_list("float")
/// (Fraction(3, 1), [[4.0, 3.0], [6.0, 5.0]])
/// >>> a[[2, 0]].to_list("float"), a[[0, 1], [1, 0]].to_list("float")
/// ([[5.0, 6.0], [1.0, 2.0]], [[2.0], [3.0]])
/// >>> a[1, :] = [7, 8]
/// >>> a[1][0], list(a[:, 1])
/// (Fraction(7, 1), [Fraction(2, 1), Fraction(8, 1), Fraction(6, 1)])
#[pyclass(frozen, module = "sunzi")]
pub struct Matrix {
    pub(crate) view: Mutex<View>,
    pub(crate) kind: NumberKind,
    pub(crate) line: Line,
    /// Whether it was made by an index or a transpose: an assignment to it would not change the original matrix.
    pub(crate) taken: bool,
}

impl Matrix {
    /// A matrix whose entries are shown as numbers of this kind.
    pub fn new(view: View, kind: NumberKind) -> Matrix {
        Matrix { view: Mutex::new(view), kind, line: Line::None, taken: false }
    }

    /// The same matrix as a row or a column whose entries have one index.
    pub fn along(self, line: Line) -> Matrix {
        Matrix { line, ..self }
    }

    /// The numbers as they are now.
    pub fn view(&self) -> View {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The type of single entries.
    pub fn number_kind(&self) -> NumberKind {
        self.kind
    }
}
