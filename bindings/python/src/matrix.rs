//! `Matrix`: big floats that stay in Rust between calls.

use crate::arithmetic::{equal, holds, over, trace, with_signs};
use crate::call::{argument, checked_bits, number_kind, options};
use crate::context::Context;
use crate::errors::OrRaise;
use crate::functions;
use crate::index::{Selection, selections};
use crate::input::{Bits, Operand, Part, scalar, working_bits};
use crate::kind::{Container, NumberKind};
use crate::output::{Builder, Form, Shape, assemble};
use crate::view::View;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError, PyZeroDivisionError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::ffi::CString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use sunzi::io::{self, FileFormat, ReadOptions, Source, WriteOptions};
use sunzi::{Error, Head};

/// Entries of sums and multiples between two looks for signals.
const ENTRIES_AT_A_TIME: usize = 1 << 14;

/// A matrix of big floats of one precision, which never changes.
///
/// `Matrix(data, *, precision=None, numbers=None)`
///
/// data: a list of rows, a flat list (one column), a NumPy array, an `mpmath.matrix`, a `flint.arb_mat` or a `Matrix`.
/// precision: bits to which entries are rounded, to nearest; by default as many as the entries bring along and need.
/// numbers: the type of single entries and lists made of it: `gmpy2`, `mpmath`, `flint`, `float`, `str` or `fraction`;
/// by default that of the data.
///
/// Slices and transposes are views: they share the numbers and cost nothing. `A.T @ A` and `A @ A.T` run as SYRK.
///
/// >>> import sunzi
/// >>> a = sunzi.Matrix([[1, 2], [3, 4], [5, 6]], precision=200)
/// >>> a.T @ a
/// Matrix(2 x 2, 200 bits, fraction)
/// >>> (a.T @ a).to_list("float")
/// [[35.0, 44.0], [44.0, 56.0]]
/// >>> a[1, 0], a[1:, ::-1].to_list("float")
/// (Fraction(3, 1), [[4.0, 3.0], [6.0, 5.0]])
#[pyclass(frozen, module = "sunzi")]
pub struct Matrix {
    view: View,
    kind: NumberKind,
}

impl Matrix {
    /// A matrix whose entries are shown as numbers of this kind.
    pub fn new(view: View, kind: NumberKind) -> Matrix {
        Matrix { view, kind }
    }

    /// The numbers.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The type of single entries.
    pub fn number_kind(&self) -> NumberKind {
        self.kind
    }

    fn like(&self, view: View) -> Matrix {
        Matrix { view, kind: self.kind }
    }

    fn kind_or(&self, name: Option<&str>) -> PyResult<NumberKind> {
        name.map_or(Ok(self.kind), number_kind)
    }

    fn assemble<'py>(&self, py: Python<'py>, container: Container, kind: NumberKind) -> PyResult<Bound<'py, PyAny>> {
        assemble(py, &self.view.entries(), Form::General, Shape { container, kind })
    }

    /// `self + other`, or `self - other`.
    fn sum<'py>(&self, other: &Bound<'py, PyAny>, minus: bool) -> PyResult<Matrix> {
        let py = other.py();
        let other = Operand::of(other, "the other operand", Part::Whole)?;
        let bits = working_bits(None, &[Some(self.view.precision_bits()), other.natural_bits])?;
        let kind = self.kind.min(other.kind);
        let other = other.view(py, Bits::Round(bits))?;
        let other = if minus { negated(&other).or_raise(py)? } else { other };
        let (shape, addends) = (self.shape(), (other.rows(), other.cols()));
        if shape != addends {
            let (left_rows, left_cols, right_rows, right_cols) = (shape.0, shape.1, addends.0, addends.1);
            return Err(Error::ShapeMismatch { operation: "add", left_rows, left_cols, right_rows, right_cols })
                .or_raise(py);
        }
        let sum = self.by_columns(py, bits, |part, cols| {
            part.to_whole()?.add(other.block(0..other.rows(), cols).entries(), bits)
        });
        Ok(Matrix { view: sum?.into(), kind })
    }

    /// A matrix of this shape and of `bits` bits, made from some columns at a time; looks for signals in between.
    fn by_columns(
        &self,
        py: Python<'_>,
        bits: u32,
        make: impl Fn(&View, Range<usize>) -> sunzi::Result<sunzi::Matrix> + Sync,
    ) -> PyResult<sunzi::Matrix> {
        let (rows, cols) = self.shape();
        let step = (ENTRIES_AT_A_TIME / rows.max(1)).max(1);
        let mut whole = sunzi::Matrix::zeros(rows, cols, bits).or_raise(py)?;
        let limbs = whole.limbs_per_element();
        for start in (0..cols).step_by(step) {
            let end = cols.min(start.saturating_add(step));
            let part = py.detach(|| make(&self.view.block(0..rows, start..end), start..end)).or_raise(py)?;
            let (heads, all_limbs) = whole.parts_mut();
            heads[start * rows..end * rows].copy_from_slice(part.parts().0);
            all_limbs[start * rows * limbs..end * rows * limbs].copy_from_slice(part.parts().1);
            py.check_signals()?;
        }
        Ok(whole)
    }
}

fn negated(view: &View) -> sunzi::Result<View> {
    with_signs(view, Head::negated)
}

#[pymethods]
impl Matrix {
    /// NumPy leaves operators to this class.
    #[classattr]
    #[pyo3(name = "__array_ufunc__")]
    fn array_ufunc(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    #[new]
    #[pyo3(signature = (data, *, precision=None, numbers=None))]
    fn of(data: &Bound<'_, PyAny>, precision: Option<i64>, numbers: Option<&str>) -> PyResult<Matrix> {
        let py = data.py();
        let asked = checked_bits(py, precision)?;
        let operand = Operand::of(data, "data", Part::Whole)?;
        let kind = numbers.map_or(Ok(operand.kind), number_kind)?;
        let bits = working_bits(asked, &[operand.natural_bits])?;
        let view = operand.view(py, Bits::Round(bits))?;
        let bits = asked.unwrap_or(bits.max(view.precision_bits()));
        Ok(Matrix { view: py.detach(|| view.rounded(bits)).or_raise(py)?, kind })
    }

    /// The zero matrix.
    #[staticmethod]
    #[pyo3(signature = (rows, cols, *, precision, numbers="fraction"))]
    fn zeros(rows: &Bound<'_, PyAny>, cols: &Bound<'_, PyAny>, precision: i64, numbers: &str) -> PyResult<Matrix> {
        let py = rows.py();
        let (rows, cols) = (argument("rows", rows)?, argument("cols", cols)?);
        let bits = checked_bits(py, Some(precision))?.unwrap_or(2);
        Ok(Matrix { view: sunzi::Matrix::zeros(rows, cols, bits).or_raise(py)?.into(), kind: number_kind(numbers)? })
    }

    /// The identity of so many rows.
    #[staticmethod]
    #[pyo3(signature = (order, *, precision, numbers="fraction"))]
    fn identity(order: &Bound<'_, PyAny>, precision: i64, numbers: &str) -> PyResult<Matrix> {
        let (py, order) = (order.py(), argument("order", order)?);
        let bits = checked_bits(py, Some(precision))?.unwrap_or(2);
        let matrix = sunzi::Matrix::identity(order, bits).or_raise(py)?;
        Ok(Matrix { view: matrix.into(), kind: number_kind(numbers)? })
    }

    /// `(rows, columns)`.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.view.rows(), self.view.cols())
    }

    /// 2: of rows, of columns.
    #[getter]
    fn ndim(&self) -> usize {
        2
    }

    /// Number of entries.
    #[getter]
    fn size(&self) -> usize {
        self.view.rows() * self.view.cols()
    }

    /// Bits of every entry.
    #[getter]
    fn precision(&self) -> u32 {
        self.view.precision_bits()
    }

    /// The type of single entries: `gmpy2`, `mpmath`, `flint`, `float`, `str` or `fraction`.
    #[getter]
    fn numbers(&self) -> &'static str {
        self.kind.name()
    }

    /// Bytes of the numbers, those outside a view included.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.view.bytes()
    }

    /// The transpose, a view.
    #[getter(T)]
    fn transposed(&self) -> Matrix {
        self.like(self.view.transpose())
    }

    /// The same numbers, shown as another type.
    fn astype(&self, numbers: &str) -> PyResult<Matrix> {
        Ok(Matrix { view: self.view.clone(), kind: number_kind(numbers)? })
    }

    /// The same numbers at another precision, rounded to nearest where it is less.
    fn round(&self, py: Python<'_>, precision: i64) -> PyResult<Matrix> {
        let bits = checked_bits(py, Some(precision))?.unwrap_or(2);
        Ok(self.like(py.detach(|| self.view.rounded(bits)).or_raise(py)?))
    }

    /// The numbers in memory of their own: a view keeps all that it is a part of.
    fn copy(&self, py: Python<'_>) -> PyResult<Matrix> {
        Ok(self.like(py.detach(|| self.view.entries().to_matrix()).or_raise(py)?.into()))
    }

    fn __len__(&self) -> usize {
        self.view.rows()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (rows, cols) = selections(key, self.shape())?;
        if let (Selection::One(row), Selection::One(col)) = (&rows, &cols) {
            let builder = Builder::new(py, self.kind, self.view.precision_bits());
            return builder?.number(self.view.entries().get(*row, *col), (*row, *col));
        }
        let part = match (rows.range(), cols.range()) {
            (Some(rows), Some(cols)) => self.view.block(rows, cols),
            _ => self.view.gather(&rows.list(), &cols.list()).or_raise(py)?,
        };
        Ok(Bound::new(py, self.like(part))?.into_any())
    }

    /// The product, a `Matrix` of the larger precision; of a matrix with its own transpose a SYRK, with the same bits.
    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        functions::gemm(slf.as_any(), other, &PyDict::new(slf.py()))
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let operand = Operand::of(other, "the left operand", Part::Whole)?;
        let kind = operand.kind;
        let bits = working_bits(None, &[Some(slf.get().view.precision_bits()), operand.natural_bits])?;
        let left = Bound::new(py, Matrix { view: operand.view(py, Bits::Round(bits))?, kind })?;
        functions::gemm(left.as_any(), slf.as_any(), &PyDict::new(py))
    }

    /// The sum, each entry rounded once to the larger precision.
    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.sum(other, false)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.sum(other, false)
    }

    /// The difference, each entry rounded once to the larger precision.
    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.sum(other, true)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.__neg__(other.py())?.sum(other, false)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Matrix> {
        Ok(self.like(py.detach(|| negated(&self.view)).or_raise(py)?))
    }

    /// Every entry times a number, rounded once to the matrix's precision.
    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        let py = other.py();
        if other.is_instance_of::<Matrix>() {
            return Err(PyTypeError::new_err("a matrix times a matrix is written a @ b"));
        }
        let number = scalar(Some(other), "the factor", Bits::Round(self.view.precision_bits()))?;
        let number = number.expect("a factor was given");
        let scaled = self.by_columns(py, self.view.precision_bits(), |part, _| part.to_whole()?.scale(&number));
        Ok(self.like(scaled?.into()))
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        self.__mul__(other)
    }

    /// Every entry over a number, rounded once to the matrix's precision.
    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        let py = other.py();
        if other.is_instance_of::<Matrix>() {
            return Err(PyTypeError::new_err(
                "a matrix over a matrix has no meaning here: sunzi.solve(a, b) is A^-1 B",
            ));
        }
        let number = scalar(Some(other), "the divisor", Bits::Round(self.view.precision_bits()))?;
        let number = number.expect("a divisor was given");
        if number.is_zero() {
            return Err(PyZeroDivisionError::new_err("a matrix over 0"));
        }
        let quotients = self.by_columns(py, self.view.precision_bits(), |part, _| over(part, &number));
        Ok(self.like(quotients?.into()))
    }

    /// The magnitudes of all entries.
    fn __abs__(&self, py: Python<'_>) -> PyResult<Matrix> {
        let magnitude = |head: Head| if head.is_negative() { head.negated() } else { head };
        Ok(self.like(py.detach(|| with_signs(&self.view, magnitude)).or_raise(py)?))
    }

    /// Whether shapes and all numbers are equal, whatever their precision; a list or an array is taken as `Matrix`
    /// would take it, decimals and fractions at the precision of this matrix. True or False, not an array of them.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = other.py();
        // What holds no numbers is no equal matrix.
        let Ok(operand) = Operand::of(other, "the other operand", Part::Whole) else { return Ok(false) };
        let bits = self.view.precision_bits().max(operand.natural_bits.unwrap_or(2));
        equal(py, &self.view, &operand.view(py, Bits::Round(bits))?)
    }

    /// Whether some entry is this number.
    fn __contains__(&self, number: &Bound<'_, PyAny>) -> PyResult<bool> {
        let operand = Operand::number(number)?;
        let bits = self.view.precision_bits().max(operand.natural_bits.unwrap_or(2));
        let number_view = operand.view(number.py(), Bits::Round(bits))?;
        holds(number.py(), &self.view, number_view.entries().get(0, 0))
    }

    /// The sum of the diagonal entries, rounded once to the matrix's precision.
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bits = self.view.precision_bits();
        let mut sum = sunzi::Matrix::zeros(1, 1, bits).or_raise(py)?;
        sum.set_float(0, 0, &trace(&self.view, bits)).or_raise(py)?;
        Builder::new(py, self.kind, bits)?.number(sum.get(0, 0), (0, 0))
    }

    /// A list of the diagonal entries.
    fn diagonal<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (rows, cols) = self.shape();
        let mut builder = Builder::new(py, self.kind, self.view.precision_bits())?;
        (0..rows.min(cols)).map(|i| builder.number(self.view.entries().get(i, i), (i, i))).collect()
    }

    /// The lower triangular factor, a `Matrix`; see `sunzi.cholesky`. `sunzi.Cholesky` is for several solves.
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

    /// The solution of `A X = B` for this symmetric positive definite `A`, of the same kind as `b`; see `sunzi.solve`.
    #[pyo3(signature = (b, *, precision=None, context=None, progress=None))]
    fn solve<'py>(
        slf: &Bound<'py, Self>,
        b: &Bound<'py, PyAny>,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        functions::solve(slf.as_any(), b, &options(slf.py(), precision, context, progress)?)
    }

    /// `log det A` for this symmetric positive definite `A`; see `sunzi.log_det`.
    #[pyo3(signature = (*, precision=None, context=None, progress=None))]
    fn log_det<'py>(
        slf: &Bound<'py, Self>,
        precision: Option<i64>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        functions::log_det(slf.as_any(), &options(slf.py(), precision, context, progress)?)
    }

    /// A list of rows, of this type of number or of another.
    #[pyo3(signature = (numbers=None))]
    fn to_list<'py>(&self, py: Python<'py>, numbers: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        self.assemble(py, Container::Rows, self.kind_or(numbers)?)
    }

    /// `to_list` by the name that NumPy's arrays have for it.
    #[pyo3(signature = (numbers=None))]
    fn tolist<'py>(&self, py: Python<'py>, numbers: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        self.to_list(py, numbers)
    }

    /// A NumPy array: of doubles where the type is `float`, else of objects.
    #[pyo3(signature = (numbers=None))]
    fn to_numpy<'py>(&self, py: Python<'py>, numbers: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let kind = self.kind_or(numbers)?;
        let container = if kind == NumberKind::Float { Container::Doubles } else { Container::Objects };
        self.assemble(py, container, kind)
    }

    /// An `mpmath.matrix`, exactly.
    fn to_mpmath<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.assemble(py, Container::MpmathMatrix, NumberKind::Mpmath)
    }

    /// A list of rows of `gmpy2.mpfr`, exactly.
    fn to_gmpy2<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.assemble(py, Container::Rows, NumberKind::Gmpy2)
    }

    /// A `flint.arb_mat` of balls with radius 0, exactly.
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

    /// The matrix in the binary format of `sunzi`, with a checksum.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let write = || {
            let mut bytes = Vec::new();
            let (path, options) = (Path::new("bytes"), WriteOptions::default());
            io::write_stream(&mut bytes, path, FileFormat::Binary, self.view.entries(), &options)?;
            Ok(bytes)
        };
        Ok(PyBytes::new(py, &py.detach(write).or_raise(py)?))
    }

    /// The matrix of `to_bytes`.
    #[staticmethod]
    #[pyo3(signature = (data, numbers="fraction"))]
    fn from_bytes(py: Python<'_>, data: &[u8], numbers: &str) -> PyResult<Matrix> {
        let kind = number_kind(numbers)?;
        let source = Source::new(Path::new("bytes"), FileFormat::Binary).bytes(data.len() as u64);
        let read = || io::read_stream(data, &source, &ReadOptions::new(2));
        Ok(Matrix { view: py.detach(read).or_raise(py)?.matrix.into(), kind })
    }

    /// Writes a file in the format of its ending (`.mtx`, `.bin`, `.csv`, `.npy`, `.json`, `.m`, ..., with `.gz` or
    /// `.zst` behind it or not), which appears complete or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| io::write(path, self.view.entries(), &WriteOptions::default())).or_raise(py)
    }

    /// Reads a file of any of these formats, or a matrix inside of one (`block.json:B`). Decimals are rounded to
    /// `precision` bits, by default those that the file names.
    #[staticmethod]
    #[pyo3(signature = (path, *, precision=None, numbers="fraction"))]
    fn load(py: Python<'_>, path: PathBuf, precision: Option<i64>, numbers: &str) -> PyResult<Matrix> {
        let (asked, kind) = (checked_bits(py, precision)?, number_kind(numbers)?);
        let named = || py.detach(|| io::read_info(&path)).map(|info| info.precision_bits_comment);
        let bits = if asked.is_some() { asked } else { named().or_raise(py)? };
        let bits = bits.ok_or_else(|| {
            PyValueError::new_err(format!("{}: the file names no precision: pass precision= in bits", path.display()))
        })?;
        let loaded = py.detach(|| io::read(&path, &ReadOptions::new(bits))).or_raise(py)?;
        for remark in &loaded.remarks {
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(remark.as_str())?, 2)?;
        }
        Ok(Matrix { view: loaded.matrix.into(), kind })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, matrix) = (slf.py(), slf.get());
        let arguments = (matrix.to_bytes(py)?, matrix.kind.name()).into_pyobject(py)?;
        (slf.get_type().getattr("from_bytes")?, arguments).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        let (rows, cols) = self.shape();
        format!("Matrix({rows} x {cols}, {} bits, {})", self.precision(), self.kind.name())
    }

    /// At most eight rows and columns, six digits each.
    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let (rows, cols) = self.shape();
        let corner = self.view.block(0..rows.min(9), 0..cols.min(9)).to_whole().or_raise(py)?.to_string();
        let entries = corner.split_once('\n').map_or("", |(_, entries)| entries);
        Ok(format!("{rows} x {cols} matrix of {}-bit floats\n{}", self.precision(), entries.trim_end()))
    }
}
