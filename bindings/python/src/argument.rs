//! Arguments as values of Rust.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// An argument as a value of Rust.
///
/// # Errors
/// `TypeError` for another type; `ValueError` for a number that is out of reach.
pub fn argument<'py, T: for<'a> FromPyObject<'a, 'py>>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<T> {
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            return PyValueError::new_err(format!("{name}={value} is out of range"));
        }
        if name == "precision" && value.extract::<&str>().is_ok_and(|text| text == "auto") {
            return PyTypeError::new_err(
                "precision='auto' is not accepted here: only solve and inverse search for a precision; pass a number \
                 of bits",
            );
        }
        let kind = value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("{name}={value} is of type {kind}, which is not accepted"))
    })
}

/// A number of bytes: an integer, or text such as `"2G"` or `"1.5M"`, in powers of 1024.
///
/// # Errors
/// `TypeError`, `ValueError`.
pub fn byte_count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let Ok(text) = value.extract::<String>() else { return argument(name, value) };
    let refused =
        || PyValueError::new_err(format!("{name}='{text}' is not a number of bytes, such as \"2G\" or 2**31"));
    let word = text.trim().trim_end_matches(['b', 'B']).trim_end_matches('i');
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = word.chars().last().and_then(|last| units.iter().find(|(name, _)| *name == last.to_ascii_uppercase()));
    let (number, power) = unit.map_or((word, 0), |(_, power)| (&word[..word.len() - 1], *power));
    let count = number.trim().parse::<f64>().map_err(|_| refused())? * f64::from(2u32).powi(power);
    if count.is_finite() && (0.0..1.8e19).contains(&count) { Ok(count as u64) } else { Err(refused()) }
}
