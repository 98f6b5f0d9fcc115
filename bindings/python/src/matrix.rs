//! `Matrix`: big floats that stay in Rust between calls.

mod operands;

use crate::argument::argument;
use crate::arithmetic::{equal, holds, multiple, negated, quotient, rounded, trace, with_signs};
use crate::assign::{assign, value_for};
use crate::call::{checked_bits, number_kind, options};
use crate::context::Context;
use crate::decimals::to_decimals;
use crate::errors::OrRaise;
use crate::factors;
use crate::files;
use crate::functions;
use crate::index::{Chosen, Line, Selection};
use crate::input::{Bits, Operand, ReadPart, scalar, working_bits};
use crate::kind::{Container, NumberKind};
use crate::matrix_object::Matrix;
use crate::output::{Builder, Shape};
use crate::runner::Runner;
use crate::text::{self, NumberFormat};
use crate::view::View;
use pyo3::exceptions::{PyTypeError, PyValueError, PyZeroDivisionError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::PoisonError;
use sunzi::Head;

#[pymethods]
impl Matrix {
    /// None, which makes NumPy leave operators to this class.
    #[classattr]
    #[pyo3(name = "__array_ufunc__")]
    fn array_ufunc(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    #[new]
    #[pyo3(signature = (data, *, precision=None, numbers=None))]
    fn of(data: &Bound<'_, PyAny>, precision: Option<i64>, numbers: Option<&str>) -> PyResult<Matrix> {
        let py = data.py();
        let asked = checked_bits(py, "precision", precision)?;
        let operand = Operand::of(data, "data", ReadPart::Whole)?;
        let kind = numbers.map_or(Ok(operand.kind), number_kind)?;
        let bits = working_bits(asked, &[operand.natural_bits])?;
        let view = operand.view(py, Bits::Round(bits))?;
        let bits = asked.unwrap_or(bits.max(view.precision_bits()));
        Ok(Matrix::new(rounded(py, &view, bits)?, kind))
    }

    /// A matrix of zeros.
    #[staticmethod]
    #[pyo3(signature = (rows, cols, *, precision, numbers="fraction"))]
    fn zeros(rows: &Bound<'_, PyAny>, cols: &Bound<'_, PyAny>, precision: i64, numbers: &str) -> PyResult<Matrix> {
        let py = rows.py();
        let (rows, cols) = (argument("rows", rows)?, argument("cols", cols)?);
        let bits = checked_bits(py, "precision", Some(precision))?.unwrap_or(2);
        Ok(Matrix::new(sunzi::Matrix::zeros(rows, cols, bits).or_raise(py)?.into(), number_kind(numbers)?))
    }

    /// The identity matrix with `order` rows.
    #[staticmethod]
    #[pyo3(signature = (order, *, precision, numbers="fraction"))]
    fn identity(order: &Bound<'_, PyAny>, precision: i64, numbers: &str) -> PyResult<Matrix> {
        let (py, order) = (order.py(), argument("order", order)?);
        let bits = checked_bits(py, "precision", Some(precision))?.unwrap_or(2);
        Ok(Matrix::new(sunzi::Matrix::identity(order, bits).or_raise(py)?.into(), number_kind(numbers)?))
    }

    /// The tuple `(rows, columns)`.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        let view = self.view();
        (view.rows(), view.cols())
    }

    /// The number of dimensions, always 2.
    #[getter]
    fn ndim(&self) -> usize {
        2
    }

    /// Number of entries.
    #[getter]
    fn size(&self) -> usize {
        self.shape().0 * self.shape().1
    }

    /// Precision of the entries in bits.
    #[getter]
    fn precision(&self) -> u32 {
        self.view().precision_bits()
    }

    /// The type of single entries, as a value of `numbers=`.
    #[getter]
    fn numbers(&self) -> &'static str {
        self.kind.name()
    }

    /// Bytes of the numbers; for a view, of the whole matrix that it is a part of.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.view().bytes()
    }

    /// The transpose, as a view.
    #[getter(T)]
    pub fn transposed(&self) -> Matrix {
        Matrix { line: self.line.transposed(), taken: true, ..self.like(self.view().transpose()) }
    }

    /// The same matrix with another type of single entries.
    fn astype(&self, numbers: &str) -> PyResult<Matrix> {
        Ok(Matrix { kind: number_kind(numbers)?, ..self.like(self.view()) })
    }

    /// The same matrix at another precision; a smaller precision rounds to nearest, ties to even.
    fn rounded(&self, py: Python<'_>, bits: i64) -> PyResult<Matrix> {
        let bits = checked_bits(py, "bits", Some(bits))?.unwrap_or(2);
        Ok(self.like(rounded(py, &self.view(), bits)?))
    }

    /// The matrix with each entry rounded to `ndigits` decimal places, as NumPy's and Python's `round` do.
    ///
    /// The nearest multiple of `10^-ndigits` (ties to even) is found exactly and then rounded to the precision of the
    /// matrix, which is unchanged.
    #[pyo3(signature = (ndigits=0))]
    fn round(&self, py: Python<'_>, ndigits: i32) -> PyResult<Matrix> {
        Ok(self.like(to_decimals(py, &self.view(), ndigits.into())?))
    }

    #[pyo3(signature = (ndigits=None))]
    fn __round__(&self, py: Python<'_>, ndigits: Option<i32>) -> PyResult<Matrix> {
        self.round(py, ndigits.unwrap_or(0))
    }

    /// A copy in its own memory; a view keeps the whole matrix that it is a part of.
    fn copy(&self, py: Python<'_>) -> PyResult<Matrix> {
        let view = self.view();
        let copy = py.detach(|| view.entries().to_matrix()).or_raise(py)?;
        Ok(self.like(View::from(copy).after_rounding(view.rounded_bits())))
    }

    fn __len__(&self) -> usize {
        if self.line == Line::Row { self.shape().1 } else { self.shape().0 }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let view = self.view();
        let chosen = Chosen::new(key, view.rows(), view.cols(), self.line)?;
        let part = match &chosen {
            Chosen::Block { rows: Selection::One(row), cols: Selection::One(col) } => {
                let builder = Builder::new(py, self.kind, view.precision_bits());
                return builder?.number(view.entries().get(*row, *col), *row, *col);
            }
            Chosen::Block { rows, cols } => match (rows.range(), cols.range()) {
                (Some(rows), Some(cols)) => view.block(rows, cols),
                _ => py.detach(|| view.gather(&rows.list(), &cols.list())).or_raise(py)?,
            },
            Chosen::Entries { rows, cols } => py.detach(|| view.gather_column(rows, cols)).or_raise(py)?,
        };
        Ok(Bound::new(py, Matrix { line: chosen.line(), taken: true, ..Matrix::new(part, self.kind) })?.into_any())
    }

    /// Assigns numbers, rounded to the precision of the matrix: one number for all selected entries, or a list, an
    /// array or a matrix of the selected shape. Earlier slices and transposes keep their values.
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.taken {
            return Err(PyValueError::new_err(
                "this Matrix is a part or a transpose of another one; assign to the other one, as in a[0, 1] = 2, or \
                 to a copy()",
            ));
        }
        let view = self.view();
        let chosen = Chosen::new(key, view.rows(), view.cols(), self.line)?;
        let value = value_for(value, &chosen, view.precision_bits())?;
        drop(view);
        let done = assign(&mut self.view.lock().unwrap_or_else(PoisonError::into_inner), &chosen, &value);
        done.or_raise(key.py())
    }

    /// The product, a `Matrix` with the larger precision; a matrix times its own transpose runs as SYRK, with the same
    /// bits.
    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        functions::gemm(slf.as_any(), other, &PyDict::new(slf.py()))
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let operand = Operand::of(other, "the left operand", ReadPart::Whole)?;
        let kind = operand.kind;
        let bits = working_bits(None, &[Some(slf.get().precision()), operand.natural_bits])?;
        let left = Bound::new(py, Matrix::new(operand.view(py, Bits::Round(bits))?, kind))?;
        functions::gemm(left.as_any(), slf.as_any(), &PyDict::new(py))
    }

    /// The sum with a matrix, or with a number, which is added to each entry. Each entry is rounded once: to the larger
    /// precision of the two matrices or, with a number, to the precision of the matrix.
    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.sum(other, false)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.sum(other, false)
    }

    /// The difference; see `+`.
    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.sum(other, true)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.__neg__(other.py())?.sum(other, false)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Matrix> {
        Ok(self.like(negated(py, &self.view())?))
    }

    /// The product with a number; each entry is rounded once to the precision of the matrix.
    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        let py = other.py();
        if other.is_instance_of::<Matrix>() {
            return Err(PyTypeError::new_err("the product of two matrices is written a @ b"));
        }
        let view = self.view();
        let number = scalar(Some(other), "the factor", Bits::Round(view.precision_bits()))?;
        Ok(self.like(multiple(py, &view, &number.expect("a factor was given"))?))
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.__mul__(other)
    }

    /// The quotient by a number; each entry is rounded once to the precision of the matrix.
    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        let py = other.py();
        if other.is_instance_of::<Matrix>() {
            return Err(PyTypeError::new_err(
                "a matrix cannot be divided by a matrix; sunzi.solve(a, b) computes A^-1 B",
            ));
        }
        let view = self.view();
        let number = scalar(Some(other), "the divisor", Bits::Round(view.precision_bits()))?;
        let number = number.filter(|number| !number.is_zero());
        let number = number.ok_or_else(|| PyZeroDivisionError::new_err("a matrix cannot be divided by 0"))?;
        Ok(self.like(quotient(py, &view, &number)?))
    }

    /// The absolute values of all entries.
    fn __abs__(&self, py: Python<'_>) -> PyResult<Matrix> {
        let magnitude = |head: Head| if head.is_negative() { head.negated() } else { head };
        Ok(self.like(with_signs(py, &self.view(), magnitude)?))
    }

    /// Whether the shapes and all numbers are equal, at any precision: one value, not an array. A list or an array is
    /// converted as `Matrix` would convert it, with decimals and fractions at the precision of this matrix.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = other.py();
        let Some(operand) = Operand::of_numbers(other)? else { return Ok(false) };
        let view = self.view();
        let bits = view.precision_bits().max(operand.natural_bits.unwrap_or(2));
        equal(py, &view, &self.beside(operand, py, bits)?)
    }

    /// Whether an entry is equal to this number.
    fn __contains__(&self, number: &Bound<'_, PyAny>) -> PyResult<bool> {
        let operand = Operand::number(number)?;
        let view = self.view();
        let bits = view.precision_bits().max(operand.natural_bits.unwrap_or(2));
        let number_view = operand.view(number.py(), Bits::Round(bits))?;
        holds(number.py(), &view, number_view.entries().get(0, 0))
    }

    /// The sum of the diagonal entries, rounded once to the precision of the matrix.
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let view = self.view();
        let sum = trace(&view, view.precision_bits());
        functions::number(py, &sum, Shape { container: Container::Matrix, kind: self.kind })
    }

    /// A list of the diagonal entries.
    fn diagonal<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let view = self.view();
        let mut builder = Builder::new(py, self.kind, view.precision_bits())?;
        (0..view.rows().min(view.cols())).map(|i| builder.number(view.entries().get(i, i), i, i)).collect()
    }

    /// The Cholesky factor as a `Matrix`; see `sunzi.cholesky`. For several solves use `sunzi.Cholesky`.
    #[pyo3(signature = (*, uplo=None, precision=None, context=None, progress=None))]
    fn cholesky<'py>(
        slf: &Bound<'py, Self>,
        uplo: Option<&str>,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = options(slf.py(), precision, context, progress)?;
        given.set_item("uplo", uplo)?;
        functions::cholesky(slf.as_any(), &given)
    }

    /// The solution of `A X = B` for this square matrix `A`, of the same kind as `b`.
    ///
    /// The options are those of `sunzi.solve`.
    #[pyo3(signature = (b, *, uplo=None, digits=None, certified=false, dps=None, precision=None, context=None,
        progress=None, report=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn solve<'py>(
        slf: &Bound<'py, Self>,
        b: &Bound<'py, PyAny>,
        uplo: Option<&str>,
        digits: Option<Bound<'py, PyAny>>,
        certified: bool,
        dps: Option<Bound<'py, PyAny>>,
        precision: Option<Bound<'py, PyAny>>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
        report: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = options(slf.py(), precision, context, progress)?;
        given.set_item("uplo", uplo)?;
        given.set_item("digits", digits)?;
        given.set_item("certified", certified)?;
        given.set_item("dps", dps)?;
        given.set_item("report", report)?;
        functions::solve(slf.as_any(), b, &given)
    }

    /// The inverse of this square matrix, a `Matrix`.
    ///
    /// The options are those of `sunzi.inverse`.
    #[pyo3(signature = (*, uplo=None, digits=None, certified=false, dps=None, precision=None, context=None,
        progress=None, report=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn inverse<'py>(
        slf: &Bound<'py, Self>,
        uplo: Option<&str>,
        digits: Option<Bound<'py, PyAny>>,
        certified: bool,
        dps: Option<Bound<'py, PyAny>>,
        precision: Option<Bound<'py, PyAny>>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
        report: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = options(slf.py(), precision, context, progress)?;
        given.set_item("uplo", uplo)?;
        given.set_item("digits", digits)?;
        given.set_item("certified", certified)?;
        given.set_item("dps", dps)?;
        given.set_item("report", report)?;
        factors::inverse(slf.as_any(), &given)
    }

    /// `log det A` for this symmetric positive definite `A`; see `sunzi.log_det`.
    #[pyo3(signature = (*, uplo=None, precision=None, context=None, progress=None))]
    fn log_det<'py>(
        slf: &Bound<'py, Self>,
        uplo: Option<&str>,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = options(slf.py(), precision, context, progress)?;
        given.set_item("uplo", uplo)?;
        functions::log_det(slf.as_any(), &given)
    }

    /// The determinant of this square matrix; see `sunzi.det`.
    #[pyo3(signature = (*, uplo=None, precision=None, context=None, progress=None))]
    fn det<'py>(
        slf: &Bound<'py, Self>,
        uplo: Option<&str>,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = options(slf.py(), precision, context, progress)?;
        given.set_item("uplo", uplo)?;
        factors::det(slf.as_any(), &given)
    }

    /// A list of rows with numbers of the type `numbers`, by default the type of single entries.
    #[pyo3(signature = (numbers=None))]
    fn to_list<'py>(&self, py: Python<'py>, numbers: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        self.assemble(py, Container::Rows, self.kind_or(numbers)?)
    }

    /// The same as `to_list`, under the name of NumPy's method.
    #[pyo3(signature = (numbers=None))]
    fn tolist<'py>(&self, py: Python<'py>, numbers: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        self.to_list(py, numbers)
    }

    /// A NumPy array: of doubles if the type is `float`, else of objects.
    #[pyo3(signature = (numbers=None))]
    fn to_numpy<'py>(&self, py: Python<'py>, numbers: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let kind = self.kind_or(numbers)?;
        let container = if kind == NumberKind::Float { Container::Doubles } else { Container::Objects };
        self.assemble(py, container, kind)
    }

    /// An `mpmath.matrix` with the exact numbers.
    fn to_mpmath<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.assemble(py, Container::MpmathMatrix, NumberKind::Mpmath)
    }

    /// A list of rows of `gmpy2.mpfr` with the exact numbers.
    fn to_gmpy2<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.assemble(py, Container::Rows, NumberKind::Gmpy2)
    }

    /// A `flint.arb_mat` with the exact numbers, as balls of radius 0.
    fn to_flint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.assemble(py, Container::ArbMat, NumberKind::Flint)
    }

    /// For `numpy.asarray`; see `to_numpy`.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("a sunzi.Matrix cannot become an array without a copy"));
        }
        let array = self.to_numpy(py, None)?;
        dtype.map_or(Ok(array.clone()), |dtype| array.call_method1("astype", (dtype,)))
    }

    /// The matrix as bytes in the binary format of `sunzi`, with a checksum.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &files::to_bytes(py, &self.view())?))
    }

    /// The matrix from the bytes of `to_bytes`.
    #[staticmethod]
    #[pyo3(signature = (data, numbers="fraction"))]
    fn from_bytes(py: Python<'_>, data: &[u8], numbers: &str) -> PyResult<Matrix> {
        let kind = number_kind(numbers)?;
        Ok(Matrix::new(files::from_bytes(py, data)?, kind))
    }

    /// Writes the matrix to a file, which appears complete or not at all.
    ///
    /// The ending of the name selects the format (`.mtx`, `.bin`, `.csv`, `.npy`, `.json`, `.m`, ..., optionally
    /// followed by `.gz` or `.zst`), unless `format` does (`mtx`, `bin`, ...).
    #[pyo3(signature = (path, *, format=None, progress=None))]
    fn save<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        format: Option<&str>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        files::save(&Runner::new(py, None, progress)?, &self.view(), &path, format)
    }

    /// Reads a file in one of the formats of `save`, or a matrix inside a file (`block.json:B`).
    ///
    /// Parameters
    /// ----------
    /// path : path
    ///     Name of the file.
    /// format : str, optional
    ///     Format of the file; the default is the one of its ending.
    /// header : bool, optional
    ///     Whether the first line of a table holds headings. The default is True if the line has no number. A line that
    ///     counts 0, 1, 2, as pandas writes it, is refused.
    /// precision : int, optional
    ///     Precision in bits, to which decimals are rounded; the default is the precision that the file states.
    /// numbers : str
    ///     Type of single entries; see `Matrix`.
    /// context, progress
    ///     Options of all functions; see `help(sunzi)`. The memory limit of `context` applies to the matrix.
    #[staticmethod]
    #[pyo3(signature = (path, *, format=None, header=None, precision=None, numbers="fraction", context=None,
        progress=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn load<'py>(
        py: Python<'py>,
        path: PathBuf,
        format: Option<&str>,
        header: Option<bool>,
        precision: Option<i64>,
        numbers: &str,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Matrix> {
        let (bits, kind) = (checked_bits(py, "precision", precision)?, number_kind(numbers)?);
        let form = files::FileForm { format, header };
        Ok(Matrix::new(files::load(&Runner::new(py, context, progress)?, &path, form, bits)?, kind))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, matrix) = (slf.py(), slf.get());
        if matrix.line != Line::None {
            let whole = (Matrix::new(matrix.view(), matrix.kind), matrix.line == Line::Row).into_pyobject(py)?;
            return (py.import("sunzi._sunzi")?.getattr("line")?, whole).into_pyobject(py);
        }
        let arguments = (matrix.to_bytes(py)?, matrix.kind.name(), matrix.view().rounded_bits()).into_pyobject(py)?;
        (py.import("sunzi._sunzi")?.getattr("restored")?, arguments).into_pyobject(py)
    }

    /// At most eight rows and eight columns, with six digits of each entry.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        text::representation(py, &self.view(), self.kind.name())
    }

    /// All entries in a format of Python for floats, row by row in brackets: `f"{a:.6g}"`, `f"{a:12.3e}"`.
    ///
    /// The types are `e`, `f` and `g`, the default. Digits are rounded once, to nearest, from the exact number.
    fn __format__(&self, py: Python<'_>, spec: &str) -> PyResult<String> {
        match spec.is_empty() {
            true => self.__str__(py),
            false => text::formatted(py, &self.view(), &NumberFormat::parse(spec)?),
        }
    }

    /// A table for notebooks, with the entries that `repr` shows.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        text::table(py, &self.view(), self.kind.name())
    }

    /// At most eight rows and eight columns, with six digits of each entry.
    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let (rows, cols) = self.shape();
        let corner = self.view().block(0..rows.min(9), 0..cols.min(9)).to_whole().or_raise(py)?.to_string();
        let entries = corner.split_once('\n').map_or("", |(_, entries)| entries);
        Ok(format!("{rows} x {cols} matrix of {}-bit floats\n{}", self.precision(), entries.trim_end()))
    }
}
