//! The results of a run, in the form of the operands.

use crate::choices::json;
use crate::errors::OrRaise;
use crate::functions::number;
use crate::output::{ResultForm, Shape, give as give_matrix};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rug::Float;
use sunzi_sdp::block::Block;
use sunzi_sdp::{Iteration, Solution};

/// The results of a run.
pub struct Found {
    /// The solution.
    pub solution: Solution,
    /// Its errors as benchmarks state them.
    pub dimacs_errors: [f64; 6],
}

/// A column of its own; in containers of one dimension where there are such.
fn column<'py>(py: Python<'py>, matrix: &sunzi::Matrix, shape: Shape) -> PyResult<Bound<'py, PyAny>> {
    give_matrix(
        py,
        matrix.clone(),
        ResultForm::General,
        Shape { container: shape.container.of_one_dimension(), ..shape },
    )
}

/// A block: a square matrix, or the diagonal.
fn block<'py>(py: Python<'py>, block: &Block, shape: Shape) -> PyResult<Bound<'py, PyAny>> {
    match block {
        Block::Diagonal(diagonal) => column(py, diagonal, shape),
        Block::Dense(matrix) => {
            let shape = Shape { container: shape.container.of_two_dimensions(), ..shape };
            give_matrix(py, matrix.clone(), ResultForm::General, shape)
        }
    }
}

/// All parts of x, one below the other.
fn joined(parts: &[sunzi::Matrix], bits: u32) -> sunzi::Result<sunzi::Matrix> {
    let rows = parts.iter().map(sunzi::Matrix::rows).sum();
    let mut whole = sunzi::Matrix::zeros(rows, 1, bits)?;
    let mut first = 0;
    for part in parts {
        (0..part.rows()).for_each(|row| whole.set(first + row, 0, part.get(row, 0)));
        first += part.rows();
    }
    Ok(whole)
}

/// The solution as a dictionary.
///
/// # Errors
/// As [`crate::output::give`].
pub fn give<'py>(py: Python<'py>, result: &Found, shape: Shape) -> PyResult<Bound<'py, PyDict>> {
    let Found { solution, dimacs_errors } = result;
    let (point, quality) = (&solution.point, &solution.quality);
    let bits = point.y.precision_bits();
    let found = PyDict::new(py);
    let single = |value: &Float| number(py, &Float::with_val(bits, value), shape);
    let blocks = |list: &[Block]| {
        let list = list.iter().map(|entry| block(py, entry, shape)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, list)
    };
    found.set_item("termination", solution.termination.to_string())?;
    found.set_item("remark", solution.remark.as_deref())?;
    found.set_item("iterations", solution.iterations)?;
    found.set_item("primal_objective", single(&quality.primal_objective)?)?;
    found.set_item("dual_objective", single(&quality.dual_objective)?)?;
    found.set_item("gap", quality.gap.to_f64())?;
    found.set_item("primal_error", quality.primal_error().to_f64())?;
    found.set_item("dual_error", quality.dual_error.to_f64())?;
    found.set_item("dimacs_errors", PyTuple::new(py, dimacs_errors)?)?;
    found.set_item("x", column(py, &joined(&point.x, bits).or_raise(py)?, shape)?)?;
    found.set_item("y", column(py, &point.y, shape)?)?;
    found.set_item("X", blocks(&point.primal)?)?;
    found.set_item("Y", blocks(&point.dual)?)?;
    found.set_item("precision_bits", bits)?;
    found.set_item("seconds", solution.seconds)?;
    let phases = json(&solution.phases)?.unwrap_or_default();
    found.set_item("phases", py.import("json")?.call_method1("loads", (phases,))?)?;
    Ok(found)
}

/// An iteration as the callback gets it.
///
/// # Errors
/// The errors of Python's dictionaries.
pub fn iteration<'py>(py: Python<'py>, iteration: &Iteration) -> PyResult<Bound<'py, PyAny>> {
    let quality = &iteration.quality;
    let numbers = PyDict::new(py);
    numbers.set_item("number", iteration.number)?;
    numbers.set_item("seconds", iteration.seconds.0)?;
    numbers.set_item("precision_bits", iteration.precision_bits)?;
    let values = [
        ("mu", &iteration.mu),
        ("primal_objective", &quality.primal_objective),
        ("dual_objective", &quality.dual_objective),
        ("gap", &quality.gap),
        ("primal_matrix_error", &quality.primal_matrix_error),
        ("primal_free_error", &quality.primal_free_error),
        ("dual_error", &quality.dual_error),
        ("primal_step", &iteration.primal_step),
        ("dual_step", &iteration.dual_step),
        ("beta", &iteration.beta),
    ];
    for (name, value) in values {
        numbers.set_item(name, value.to_f64())?;
    }
    py.import("sunzi.sdp")?.getattr("Iteration")?.call((), Some(&numbers))
}
