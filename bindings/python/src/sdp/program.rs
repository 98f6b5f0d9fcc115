//! A program of matrices of Python's numbers: checked first, and converted when the precision is known.

use crate::errors::{OrRaise, exception, with_remark};
use crate::input::{Bits, Operand, ReadPart};
use crate::kind::NumberKind;
use crate::output::Shape as ResultShape;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::BTreeMap;
use sunzi::Error;
use sunzi_sdp::block::Shape;
use sunzi_sdp::{Entry, Problem, SparseCone};

/// An entry of a dictionary; absent and `None` are the same.
///
/// # Errors
/// `TypeError`.
pub fn read<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    match options.get_item(name)?.filter(|value| !value.is_none()) {
        None => Ok(None),
        Some(value) => crate::argument::argument(name, &value).map(Some),
    }
}

/// A matrix of a block.
enum Given<'py> {
    /// All entries of a square matrix, or a diagonal as a column.
    Whole(Operand<'py>),
    /// Some places of the lower triangle, and their numbers.
    Places(Vec<(usize, usize)>, Operand<'py>),
}

/// A block of C and of all matrices `A_p`.
struct PendingBlock<'py> {
    name: String,
    constant: Option<Given<'py>>,
    matrices: Vec<Option<Given<'py>>>,
}

/// A program whose numbers have been checked.
pub struct Pending<'py> {
    costs: Operand<'py>,
    blocks: Vec<PendingBlock<'py>>,
    equations: Option<(Operand<'py>, Operand<'py>)>,
}

/// The items of a list or a tuple.
fn items<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return object.try_iter()?.collect();
    }
    let kind = object.get_type().fully_qualified_name()?;
    Err(PyTypeError::new_err(format!("{name} must be a list, but its type is {kind}")))
}

/// The two items of a pair.
fn pair<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<[Bound<'py, PyAny>; 2]> {
    let items = items(object, name)?;
    let count = items.len();
    items.try_into().map_err(|_| PyValueError::new_err(format!("{name} must be a pair, but it has {count} items")))
}

impl<'py> Given<'py> {
    /// A matrix, a diagonal, or a dictionary of entries; nothing for `None`.
    fn of(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Given<'py>>> {
        if object.is_none() {
            return Ok(None);
        }
        let Ok(entries) = object.cast::<PyDict>() else {
            let whole = Operand::of(object, name, ReadPart::Whole)?;
            if whole.cols != 1 && whole.rows != whole.cols {
                let (rows, cols) = (whole.rows, whole.cols);
                let text = format!("{name} is {rows} x {cols}; it must be square, or a flat list for a diagonal");
                return Err(PyValueError::new_err(text));
            }
            return Ok(Some(Given::Whole(whole)));
        };
        let mut numbers = BTreeMap::new();
        for (place, number) in entries {
            let wrong = |_| PyTypeError::new_err(format!("{name}: {place} is not a pair of indices, counted from 0"));
            let (row, col) = place.extract::<(usize, usize)>().map_err(wrong)?;
            let place = (row.max(col), row.min(col));
            if numbers.insert(place, number).is_some() {
                let text = format!("{name}: the entry at {place:?} is given twice, once above the diagonal");
                return Err(PyValueError::new_err(text));
            }
        }
        let (places, numbers): (Vec<_>, Vec<_>) = numbers.into_iter().unzip();
        let numbers = PyList::new(object.py(), numbers)?;
        Ok(Some(Given::Places(places, Operand::of(numbers.as_any(), name, ReadPart::Whole)?)))
    }

    fn operand(&self) -> &Operand<'py> {
        match self {
            Given::Whole(operand) | Given::Places(_, operand) => operand,
        }
    }

    /// The entries of the lower triangle that are not 0.
    fn entries(self, py: Python<'py>, name: &str, bits: u32) -> PyResult<Vec<Entry>> {
        let named = |error: PyErr| with_remark(py, error, name);
        let (places, operand) = match self {
            Given::Whole(operand) => (None, operand),
            Given::Places(places, operand) => (Some(places), operand),
        };
        let view = operand.view(py, Bits::Round(bits)).map_err(named)?;
        let (numbers, bits) = (view.entries(), view.precision_bits());
        let entry = |row, col, at: (usize, usize)| Entry { row, col, value: numbers.get(at.0, at.1).to_float(bits) };
        if let Some(places) = places {
            return Ok(places.into_iter().enumerate().map(|(at, (row, col))| entry(row, col, (at, 0))).collect());
        }
        let mut found = Vec::new();
        let is_diagonal = numbers.cols() == 1;
        for row in 0..numbers.rows() {
            if is_diagonal && !numbers.get(row, 0).head.is_zero() {
                found.push(entry(row, row, (row, 0)));
            }
            for col in 0..if is_diagonal { 0 } else { row + 1 } {
                let (lower, upper) = (numbers.get(row, col), numbers.get(col, row));
                if lower.to_float(bits) != upper.to_float(bits) {
                    return Err(named(exception(py, Error::NotSymmetric { row, column: col })));
                }
                if !lower.head.is_zero() {
                    found.push(entry(row, col, (row, col)));
                }
            }
            crate::signals::look_for_signals(py, row)?;
        }
        Ok(found)
    }
}

impl<'py> PendingBlock<'py> {
    fn of(object: &Bound<'py, PyAny>, number: usize, variables: usize) -> PyResult<PendingBlock<'py>> {
        let name = format!("block {number}");
        let [constant, matrices] = pair(object, &format!("{name}, which is (C, [A_0, A_1, ...]),"))?;
        let matrices = items(&matrices, &format!("{name}: the list of its matrices"))?;
        if matrices.len() != variables {
            let count = matrices.len();
            let text =
                format!("{name} has {count} matrices, but c has {variables} numbers; use None for a zero matrix");
            return Err(PyValueError::new_err(text));
        }
        let constant = Given::of(&constant, &format!("{name}: C"))?;
        let read = |(at, matrix): (usize, &Bound<'py, PyAny>)| Given::of(matrix, &format!("{name}: A_{at}"));
        let matrices = matrices.iter().enumerate().map(read).collect::<PyResult<_>>()?;
        Ok(PendingBlock { name, constant, matrices })
    }

    fn parts(&self) -> impl Iterator<Item = &Given<'py>> {
        self.matrices.iter().chain([&self.constant]).flatten()
    }

    /// Kind and order, on which all matrices agree: diagonal where none has an entry outside the diagonal.
    fn shape(&self) -> PyResult<Shape> {
        let (mut known, mut least, mut beside): (Option<Shape>, usize, bool) = (None, 0, false);
        for part in self.parts() {
            match part {
                Given::Whole(whole) => {
                    let shape = if whole.cols == 1 { Shape::Diagonal(whole.rows) } else { Shape::Dense(whole.rows) };
                    if known.is_some_and(|known| known != shape) {
                        let text = format!("{}: its matrices differ in shape: {shape:?} and {known:?}", self.name);
                        return Err(PyValueError::new_err(text));
                    }
                    known = Some(shape);
                }
                Given::Places(places, _) => {
                    least = places.iter().map(|place| place.0 + 1).fold(least, usize::max);
                    beside |= places.iter().any(|place| place.0 != place.1);
                }
            }
        }
        let shape = known.unwrap_or(if beside { Shape::Dense(least) } else { Shape::Diagonal(least) });
        if least > shape.order() || (beside && matches!(shape, Shape::Diagonal(_))) {
            let text = format!("{}: a dictionary has an entry outside of the block, which is {shape:?}", self.name);
            return Err(PyValueError::new_err(text));
        }
        Ok(shape)
    }

    fn cone(self, py: Python<'py>, bits: u32) -> PyResult<SparseCone> {
        let shape = self.shape()?;
        let (mut active, mut entries) = (Vec::new(), Vec::new());
        let name = self.name;
        for (variable, matrix) in self.matrices.into_iter().enumerate() {
            let Some(matrix) = matrix else { continue };
            active.push(variable);
            entries.push(matrix.entries(py, &format!("{name}: A_{variable}"), bits)?);
        }
        let constant = match self.constant {
            Some(constant) => constant.entries(py, &format!("{name}: C"), bits)?,
            None => Vec::new(),
        };
        Ok(SparseCone { shape, active, entries, constant })
    }
}

impl<'py> Pending<'py> {
    /// Checks the numbers of a program.
    ///
    /// # Errors
    /// `TypeError` and `ValueError` with block, matrix and place of an entry that cannot be taken.
    pub fn of(
        c: &Bound<'py, PyAny>,
        blocks: &Bound<'py, PyAny>,
        equations: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Pending<'py>> {
        let costs = Operand::of(c, "c", ReadPart::Whole)?;
        if costs.cols != 1 {
            let (rows, cols) = (costs.rows, costs.cols);
            return Err(PyValueError::new_err(format!("c is {rows} x {cols}; it must be a flat list, or one column")));
        }
        let blocks = items(blocks, "blocks")?;
        let read = |(at, block)| PendingBlock::of(block, at, costs.rows);
        let blocks = blocks.iter().enumerate().map(read).collect::<PyResult<_>>()?;
        let equations = match equations {
            None => None,
            Some(equations) => {
                let [matrix, right] = pair(equations, "equations, which is (B, b),")?;
                Some((Operand::of(&matrix, "B", ReadPart::Whole)?, Operand::of(&right, "b", ReadPart::Whole)?))
            }
        };
        Ok(Pending { costs, blocks, equations })
    }

    fn operands(&self) -> impl Iterator<Item = &Operand<'py>> {
        let of_blocks = self.blocks.iter().flat_map(PendingBlock::parts).map(Given::operand);
        let equations = self.equations.iter().flat_map(|(matrix, right)| [matrix, right]);
        [&self.costs].into_iter().chain(of_blocks).chain(equations)
    }

    /// The largest precision that numbers bring along.
    pub fn natural_bits(&self) -> Option<u32> {
        self.operands().filter_map(|operand| operand.natural_bits).max()
    }

    /// The form of results: the container of c, and the number type that decides.
    pub fn shape(&self) -> ResultShape {
        let kind = self.operands().map(|operand| operand.kind).min().unwrap_or(NumberKind::Fraction);
        ResultShape { container: self.costs.container, kind }
    }

    /// The program at `bits` bits.
    ///
    /// # Errors
    /// As [`Operand::view`]; `NotSymmetricError`; the errors of [`Problem::standard`].
    pub fn problem(self, py: Python<'py>, bits: u32) -> PyResult<Problem> {
        let rounded = |operand: Operand<'py>| -> PyResult<sunzi::Matrix> {
            operand.view(py, Bits::Round(bits))?.entries().rounded(bits).or_raise(py)
        };
        let costs = rounded(self.costs)?;
        let blocks = self.blocks.into_iter().map(|block| block.cone(py, bits)).collect::<PyResult<_>>()?;
        let equations = match self.equations {
            None => None,
            Some((matrix, right)) => Some((rounded(matrix)?, rounded(right)?)),
        };
        Problem::standard(bits, costs, blocks, equations).or_raise(py)
    }
}
