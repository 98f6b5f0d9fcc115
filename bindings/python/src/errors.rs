//! The library's errors as Python exceptions of the right class, with the numbers as attributes too.

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use sunzi::{Error, MoreBits};

create_exception!(
    sunzi,
    NotPositiveDefiniteError,
    PyValueError,
    "The matrix is not positive definite at this precision.\n\n`index` (from 0) is the first computed pivot that is \
     not positive. `more_bits_might_help` is True if rounding can explain the pivot, False if it is proven that no \
     precision helps, and None if neither is known. If it is True, `more_bits` is a lower bound of the additional \
     bits that decide the sign of the pivot; else `more_bits` is None. `singular` is True if it is proven that the \
     matrix is singular, and None if that is not known."
);
create_exception!(
    sunzi,
    NotSymmetricError,
    PyValueError,
    "A matrix that must be symmetric is not.\n\n`place` is the row and column, from 0, of the first entry below the \
     diagonal, column by column, that differs from its mirror image. If `uplo` names a triangle, `place` is the first \
     entry of that triangle that contradicts the other triangle."
);
create_exception!(
    sunzi,
    SingularError,
    PyValueError,
    "A triangular matrix has a zero on its diagonal, or a pivot is zero, at `index` (from 0).\n\nIn an LU \
     factorisation all candidates for the pivot are zero at the working precision: the matrix is singular, or a \
     singular one lies within the rounding."
);
create_exception!(
    sunzi,
    MemoryLimitError,
    PyMemoryError,
    "The memory limit `limit_bytes` is too small; the call needs at least `minimum_bytes`."
);
create_exception!(
    sunzi,
    CheckError,
    PyRuntimeError,
    "A self-check or Freivalds' test found a wrong product (faulty memory or processor), or `verify` a wrong result."
);
create_exception!(sunzi, DeviceError, PyRuntimeError, "A device is missing, was lost, or refused a call.");
create_exception!(sunzi, CancelledError, PyRuntimeError, "The call was cancelled.");

/// The result of a proof, where no factorisation stands in front of it.
pub const SINGULAR: &str = "the matrix is singular, as an exact solution of A x = 0 proves";

/// Adds the exceptions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("NotPositiveDefiniteError", py.get_type::<NotPositiveDefiniteError>())?;
    module.add("NotSymmetricError", py.get_type::<NotSymmetricError>())?;
    module.add("SingularError", py.get_type::<SingularError>())?;
    module.add("MemoryLimitError", py.get_type::<MemoryLimitError>())?;
    module.add("CheckError", py.get_type::<CheckError>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add("CancelledError", py.get_type::<CancelledError>())
}

/// The exception for an error of the library.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    let text = text_of(&error);
    match error {
        // The exception of the problem, with its number.
        Error::Problem { problem, error, .. } => {
            let inner = exception(py, *error);
            with(py, inner, |value| {
                value.setattr("args", (text,))?;
                value.setattr("problem", problem)
            })
        }
        Error::NotPositiveDefinite { index, more_bits, .. } => {
            let (bits, might_help) = in_python(more_bits);
            with(py, NotPositiveDefiniteError::new_err(text), |value| {
                value.setattr("index", index)?;
                value.setattr("more_bits", bits)?;
                value.setattr("more_bits_might_help", might_help)?;
                value.setattr("singular", (more_bits == MoreBits::Singular).then_some(true))
            })
        }
        Error::NotSymmetric { row, column } => not_symmetric(py, text, row, column),
        Error::Singular { index } | Error::NoPivot { index, .. } => {
            with(py, SingularError::new_err(text), |value| value.setattr("index", index))
        }
        Error::MemoryLimit { limit_bytes, minimum_bytes } | Error::DeviceLimit { limit_bytes, minimum_bytes, .. } => {
            with(py, MemoryLimitError::new_err(text), |value| {
                value.setattr("limit_bytes", limit_bytes)?;
                value.setattr("minimum_bytes", minimum_bytes)
            })
        }
        Error::OutOfMemory { .. } | Error::Threads { .. } | Error::DimensionOverflow { .. } => {
            PyMemoryError::new_err(text)
        }
        Error::SelfCheck { .. } | Error::Verification(_) => CheckError::new_err(text),
        Error::NoDevice(_) | Error::DeviceMemory { .. } | Error::DeviceLost(_) | Error::Device(_) => {
            DeviceError::new_err(text)
        }
        Error::Cancelled => CancelledError::new_err(text),
        Error::Io { path, source, .. } => match source.raw_os_error() {
            // Python chooses the subclass by the number: FileNotFoundError, PermissionError.
            Some(number) => {
                let text = source.to_string();
                let reason = text.split(" (os error").next().unwrap_or_default().to_string();
                PyOSError::new_err((number, reason, path.display().to_string()))
            }
            None => PyOSError::new_err(text),
        },
        Error::DiskFull { .. } => PyOSError::new_err(text),
        Error::Transport(_) | Error::Rank { .. } => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The text of the library's error, with the keywords of Python that it is about.
fn text_of(error: &Error) -> String {
    match error {
        Error::Problem { problem, count, error } => format!("problem {problem} of {count}: {}", text_of(error)),
        Error::NotSymmetric { row, column } => format!(
            "the matrix is not symmetric: the entries at row {row}, column {column} and at row {column}, column {row} \
             differ; uplo='lower_only' or uplo='upper_only' reads one triangle and ignores the other"
        ),
        Error::NotPositiveDefinite { more_bits: MoreBits::AtLeast(_), .. } => {
            format!("{error}: pass a larger precision=")
        }
        Error::NotInteger { row, column } => {
            format!("entry at row {row}, column {column} is not an integer: exact=True requires integer entries")
        }
        Error::MemoryLimit { .. } => format!("{error}; the limit is memory= of the context"),
        other => other.to_string(),
    }
}

/// The exception of a function of symmetric positive definite matrices, with the matrices that it accepts if this
/// one is not of that kind: `function` is the name of the function, `instead` names another for symmetric matrices.
pub fn with_accepted(py: Python<'_>, exception: PyErr, function: &str, instead: &str) -> PyErr {
    let accepted = format!("{function} accepts symmetric positive definite matrices");
    if exception.is_instance_of::<NotSymmetricError>(py) {
        return with_remark(py, exception, &format!("{accepted}; for general matrices use sunzi.lu(a)"));
    }
    if_not_positive(py, exception, &format!("{accepted}; for other symmetric matrices use {instead}"))
}

/// The exception of a function of balls, with the matrices that it accepts if this one is not of that kind.
pub fn of_balls(py: Python<'_>, exception: PyErr, function: &str) -> PyErr {
    let remark = format!(
        "{function} of balls accepts symmetric positive definite midpoints; solve, inverse and det of balls accept \
         general ones"
    );
    if_not_positive(py, exception, &remark)
}

/// The exception, with a remark if the matrix is not symmetric, or proven to have a negative eigenvalue.
pub fn if_not_positive(py: Python<'_>, exception: PyErr, remark: &str) -> PyErr {
    let is_indefinite = |value: &Bound<'_, PyAny>| {
        let might_help: Option<bool> = value.getattr("more_bits_might_help")?.extract()?;
        Ok::<_, PyErr>(might_help == Some(false) && !value.getattr("singular")?.is_truthy()?)
    };
    let is_refused = exception.is_instance_of::<NotPositiveDefiniteError>(py);
    if is_refused && is_indefinite(exception.value(py).as_any()).unwrap_or(false) {
        with_remark(py, exception, remark)
    } else {
        if_not_symmetric(py, exception, remark)
    }
}

/// The exception, with a remark if the matrix is not symmetric.
pub fn if_not_symmetric(py: Python<'_>, exception: PyErr, remark: &str) -> PyErr {
    match exception.is_instance_of::<NotSymmetricError>(py) {
        true => with_remark(py, exception, remark),
        false => exception,
    }
}

/// The attributes `more_bits` and `more_bits_might_help`.
fn in_python(more_bits: MoreBits) -> (Option<u32>, Option<bool>) {
    match more_bits {
        MoreBits::AtLeast(bits) => (Some(bits), Some(true)),
        MoreBits::Unknown | MoreBits::SingularAsRead { .. } => (None, None),
        proven => (None, Some(proven.might_help())),
    }
}

/// The exception for a matrix that has to be symmetric, with the row and column of an entry that shows that it is not.
pub fn not_symmetric(py: Python<'_>, text: String, row: usize, column: usize) -> PyErr {
    with(py, NotSymmetricError::new_err(text), |value| value.setattr("place", (row, column)))
}

/// The same exception, whose text has a further remark.
pub fn with_remark(py: Python<'_>, exception: PyErr, remark: &str) -> PyErr {
    let value = exception.value(py);
    match value.setattr("args", (format!("{value}: {remark}"),)) {
        Ok(()) => exception,
        Err(error) => error,
    }
}

/// The exception with attributes; an error in setting them takes its place.
fn with(py: Python<'_>, exception: PyErr, set: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> PyErr {
    match set(exception.value(py).as_any()) {
        Ok(()) => exception,
        Err(error) => error,
    }
}

/// Turns an error of the library into the exception.
pub trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for sunzi::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, error))
    }
}
