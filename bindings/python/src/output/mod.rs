//! Results in the form that the operands had.

mod mpmath;
mod numbers;

use crate::collector::CollectorPause;
use crate::input::{is_array, long_double_bits};
use crate::kind::{Container, NumberKind};
use crate::matrix_object::Matrix;
use crate::signals::look_for_signals;
pub use numbers::{Builder, double};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};
use sunzi::MatrixView;

/// Selects the entries of a result that determine all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultForm {
    /// Every entry is its own.
    General,
    /// Symmetric: objects of the lower triangle serve for the upper one.
    Symmetric,
}

/// The form of a result.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The container of the numbers.
    pub container: Container,
    /// Their type.
    pub kind: NumberKind,
}

/// Bits of the numbers of a result where its container holds fewer bits than were computed: the bits of doubles and
/// long doubles.
///
/// # Errors
/// `ImportError`.
pub fn held_bits(py: Python<'_>, shape: Shape) -> PyResult<Option<u32>> {
    let kind = shape.container.kind_of(shape.kind);
    match (shape.container.holding(kind), kind) {
        (Container::Matrix, _) => Ok(None),
        (Container::Doubles | Container::FlatDoubles, _) | (_, NumberKind::Float) => Ok(Some(f64::MANTISSA_DIGITS)),
        (_, NumberKind::LongDouble) => long_double_bits(py).map(Some),
        _ => Ok(None),
    }
}

/// Correct digits, in the maximum norm, of an answer with this number of them after its entries have been rounded to
/// `bits` bits.
pub fn digits_held(digits: f64, bits: u32) -> f64 {
    (-(10f64.powf(-digits) + 2f64.powi(-(bits as i32))).log10()).max(0.0)
}

/// The result as a Python object.
///
/// # Errors
/// `MemoryError`, `ImportError`; `OverflowError` for a number that no `float` can hold.
pub fn give<'py>(
    py: Python<'py>,
    result: sunzi::Matrix,
    form: ResultForm,
    shape: Shape,
) -> PyResult<Bound<'py, PyAny>> {
    let kind = shape.container.kind_of(shape.kind);
    let container = shape.container.holding(kind);
    let container = if result.cols() == 1 { container } else { container.of_two_dimensions() };
    if container == Container::Matrix {
        return Ok(Bound::new(py, Matrix::new(result.into(), shape.kind))?.into_any());
    }
    assemble(py, &result.view(), form, Shape { container, kind })
}

/// The entries of a view in a container other than [`Container::Matrix`].
///
/// # Errors
/// As [`give`].
pub fn assemble<'py>(
    py: Python<'py>,
    view: &MatrixView<'_>,
    form: ResultForm,
    shape: Shape,
) -> PyResult<Bound<'py, PyAny>> {
    let (rows, cols) = (view.rows(), view.cols());
    if matches!(shape.container, Container::Doubles | Container::FlatDoubles) {
        let numpy = py.import("numpy")?;
        let bytes = doubles(py, view, form)?.into_iter().flat_map(f64::to_le_bytes).collect::<Vec<u8>>();
        let array = numpy.call_method1("frombuffer", (PyByteArray::new(py, &bytes), "<f8"))?;
        return shaped(array, rows, cols, shape.container);
    }
    let _pause = CollectorPause::begin(py)?;
    contain(py, objects(py, view, form, shape.kind)?, rows, cols, shape)
}

/// An array with two dimensions, unless its container has one.
fn shaped<'py>(
    array: Bound<'py, PyAny>,
    rows: usize,
    cols: usize,
    container: Container,
) -> PyResult<Bound<'py, PyAny>> {
    if container.is_flat() { Ok(array) } else { array.call_method1("reshape", (rows, cols)) }
}

/// Numbers, row by row, in a container that holds objects.
///
/// # Errors
/// As [`give`].
pub fn contain<'py>(
    py: Python<'py>,
    numbers: Vec<Bound<'py, PyAny>>,
    rows: usize,
    cols: usize,
    shape: Shape,
) -> PyResult<Bound<'py, PyAny>> {
    match shape.container {
        Container::Flat => Ok(PyList::new(py, numbers)?.into_any()),
        Container::Objects | Container::FlatObjects => {
            let array = py.import("numpy")?.call_method1("empty", (numbers.len(), "O"))?;
            array.set_item(pyo3::types::PySlice::full(py), PyList::new(py, numbers)?)?;
            let array = match shape.kind {
                NumberKind::LongDouble => array.call_method1("astype", ("g",))?,
                _ => array,
            };
            shaped(array, rows, cols, shape.container)
        }
        Container::ArbMat => py.import("flint")?.getattr("arb_mat")?.call1((rows, cols, PyList::new(py, numbers)?)),
        Container::MpmathMatrix => match mpmath::matrix(py, &numbers, rows, cols)? {
            Some(matrix) => Ok(matrix),
            None => py.import("mpmath")?.getattr("matrix")?.call1((nested(py, numbers, rows, cols)?,)),
        },
        _ => Ok(nested(py, numbers, rows, cols)?.into_any()),
    }
}

/// The numbers row by row; a symmetric matrix has each object of its lower triangle twice.
fn objects<'py>(
    py: Python<'py>,
    view: &MatrixView<'_>,
    form: ResultForm,
    kind: NumberKind,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (rows, cols) = (view.rows(), view.cols());
    let mut builder = Builder::new(py, kind, view.precision_bits())?;
    let mut numbers: Vec<Bound<'py, PyAny>> = Vec::new();
    let refused =
        |_| pyo3::exceptions::PyMemoryError::new_err(format!("there is no memory for {rows} x {cols} numbers"));
    numbers.try_reserve_exact(rows * cols).map_err(refused)?;
    for row in 0..rows {
        for col in 0..cols {
            numbers.push(match form {
                // Filled in below, when the rows that hold it are there.
                ResultForm::Symmetric if col > row => py.None().into_bound(py),
                _ => builder.number(view.get(row, col), row, col)?,
            });
            look_for_signals(py, row * cols + col)?;
        }
    }
    if form == ResultForm::Symmetric {
        for row in 0..rows {
            for col in row + 1..cols {
                numbers[row * cols + col] = numbers[col * cols + row].clone();
            }
        }
    }
    Ok(numbers)
}

fn nested<'py>(
    py: Python<'py>,
    numbers: Vec<Bound<'py, PyAny>>,
    rows: usize,
    cols: usize,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for row in 0..rows {
        list.append(PyList::new(py, &numbers[row * cols..(row + 1) * cols])?)?;
    }
    Ok(list)
}

fn doubles(py: Python<'_>, view: &MatrixView<'_>, form: ResultForm) -> PyResult<Vec<f64>> {
    let bits = view.precision_bits();
    let mut numbers = Vec::with_capacity(view.rows() * view.cols());
    for row in 0..view.rows() {
        for col in 0..view.cols() {
            let place = if form == ResultForm::Symmetric && col > row { (col, row) } else { (row, col) };
            numbers.push(double(view.get(place.0, place.1), bits, row, col)?);
            look_for_signals(py, row * view.cols() + col)?;
        }
    }
    Ok(numbers)
}

/// An array of the caller that takes the result.
pub struct Destination<'py> {
    array: Bound<'py, PyAny>,
    container: Container,
}

impl<'py> Destination<'py> {
    /// Looks whether `array` can take a result of `rows x cols`.
    ///
    /// # Errors
    /// `TypeError` if it is not an array of objects or doubles; `ValueError` if it is read-only or its shape differs.
    pub fn new(array: Bound<'py, PyAny>, rows: usize, cols: usize) -> PyResult<Destination<'py>> {
        let container = Destination::container_of(&array)?;
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        if shape != [rows, cols] && !(cols == 1 && shape == [rows]) {
            let message = format!("out= has the shape {shape:?}, but the result is {rows} x {cols}");
            return Err(PyValueError::new_err(message));
        }
        if !array.getattr("flags")?.getattr("writeable")?.extract::<bool>()? {
            return Err(PyValueError::new_err(format!("out=, an array of shape {shape:?}, is read-only")));
        }
        Ok(Destination { array, container })
    }

    /// The container that an array is.
    ///
    /// # Errors
    /// `TypeError` if it is not an array of objects or doubles.
    pub fn container_of(array: &Bound<'py, PyAny>) -> PyResult<Container> {
        if !is_array(array)? {
            let name = array.get_type().fully_qualified_name()?;
            return Err(PyTypeError::new_err(format!("out= must be a NumPy array, but its type is {name}")));
        }
        let dtype = array.getattr("dtype")?;
        match dtype.getattr("char")?.extract::<String>()?.as_str() {
            "O" => Ok(Container::Objects),
            "d" => Ok(Container::Doubles),
            _ => Err(PyTypeError::new_err(format!("out= has the dtype {dtype}; it must be object or float64"))),
        }
    }

    /// The shape of the result here, with numbers of this kind.
    pub fn shape(&self, kind: NumberKind) -> Shape {
        Shape { container: self.container, kind }
    }

    /// Writes the result into the array and returns the array.
    ///
    /// # Errors
    /// As [`give`].
    pub fn fill(self, result: &sunzi::Matrix, form: ResultForm, kind: NumberKind) -> PyResult<Bound<'py, PyAny>> {
        let py = self.array.py();
        let whole = assemble(py, &result.view(), form, self.shape(kind))?;
        self.set(&whole)
    }

    /// The same of numbers that are objects, row by row.
    ///
    /// # Errors
    /// As [`give`]; `TypeError` for an array of doubles.
    pub fn fill_objects(
        self,
        numbers: Vec<Bound<'py, PyAny>>,
        rows: usize,
        cols: usize,
        kind: NumberKind,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.container == Container::Doubles {
            return Err(PyTypeError::new_err("out= has the dtype float64; a result of balls needs the dtype object"));
        }
        let whole = contain(self.array.py(), numbers, rows, cols, Shape { container: self.container, kind })?;
        self.set(&whole)
    }

    fn set(self, whole: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.array.py();
        let fitting = whole.call_method1("reshape", (self.array.getattr("shape")?,))?;
        self.array.set_item(py.Ellipsis(), fitting)?;
        Ok(self.array)
    }
}
