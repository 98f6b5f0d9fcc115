//! The parts that all functions share: options, precision, the call, the form of the result, the report.

use crate::argument::argument;
use crate::context::Context;
use crate::errors::exception;
use crate::input::working_bits;
use crate::kind::{Container, NumberKind};
use crate::output::{Destination, ResultForm, Shape, contain, digits_held, give, held_bits};
use crate::runner::Runner;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::time::Instant;
use sunzi::{Error, MAXIMUM_PRECISION_BITS};

/// One call of a function, from its options to its result.
pub struct Call<'py> {
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    asked_bits: Option<u32>,
    runner: Runner<'py>,
    out: Option<Bound<'py, PyAny>>,
    report: Option<Bound<'py, PyDict>>,
    clock: Clock,
}

/// Seconds of the three parts of a call.
struct Clock {
    start: Instant,
    computing: Option<Instant>,
    computed: Option<Instant>,
}

impl<'py> Call<'py> {
    /// Reads the options that all functions share: `precision`, `context`, `progress`, `out`, `report`.
    ///
    /// # Errors
    /// `TypeError`, `ValueError`.
    pub fn new(options: &Bound<'py, PyDict>) -> PyResult<Call<'py>> {
        let py = options.py();
        let call = Call {
            py,
            asked_bits: checked_bits(py, "precision", given(options, "precision")?)?,
            runner: Runner::new(py, given(options, "context")?, given(options, "progress")?)?,
            out: given(options, "out")?,
            report: given(options, "report")?,
            options: options.clone(),
            clock: Clock { start: Instant::now(), computing: None, computed: None },
        };
        // Statistics of an earlier call are not those of this one.
        if let Some(report) = &call.report {
            report.clear();
        }
        match call.runner.progress.as_ref().filter(|progress| !progress.is_callable()) {
            Some(other) => {
                let name = other.get_type().fully_qualified_name()?;
                Err(PyTypeError::new_err(format!(
                    "progress= must be callable with (done, total), but its type is {name}"
                )))
            }
            None => Ok(call),
        }
    }

    /// The interpreter.
    pub fn py(&self) -> Python<'py> {
        self.py
    }

    /// An option that is a flag.
    ///
    /// # Errors
    /// `TypeError`.
    pub fn flag(&self, name: &str) -> PyResult<bool> {
        Ok(given(&self.options, name)?.unwrap_or(false))
    }

    /// An option that is a word, as its place among `words`; the first where it is absent.
    ///
    /// # Errors
    /// `ValueError` that lists the words.
    pub fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> PyResult<T> {
        let Some(word) = given::<String>(&self.options, name)? else { return Ok(words[0].1) };
        words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
            PyValueError::new_err(format!("{name}='{word}' is not valid; use one of {}", known.join(", ")))
        })
    }

    /// An option that is any object.
    ///
    /// # Errors
    /// Only exceptions that a dictionary raises.
    pub fn object(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        given(&self.options, name)
    }

    /// An option that is a precision.
    ///
    /// # Errors
    /// `ValueError`.
    pub fn bits(&self, name: &str) -> PyResult<Option<u32>> {
        checked_bits(self.py, name, given(&self.options, name)?)
    }

    /// The library's context of the call.
    ///
    /// # Errors
    /// As [`Context::get`].
    pub fn context(&self) -> PyResult<Arc<sunzi::Context>> {
        self.runner.context.get().get(self.py)
    }

    /// An option that is a small number.
    ///
    /// # Errors
    /// `TypeError`, `ValueError`.
    pub fn count(&self, name: &str) -> PyResult<Option<u32>> {
        given(&self.options, name)
    }

    /// An option that is the seed of random choices.
    ///
    /// # Errors
    /// `TypeError`, `ValueError`.
    pub fn seed(&self, name: &str) -> PyResult<Option<u64>> {
        given(&self.options, name)
    }

    /// The precision of the result.
    ///
    /// # Errors
    /// `ValueError` where neither the caller nor an operand has one.
    pub fn precision_bits(&self, operands: &[Option<u32>]) -> PyResult<u32> {
        working_bits(self.asked_bits, operands)
    }

    /// The precision of an exact result: no more than a lower bound.
    pub fn least_bits(&self) -> u32 {
        self.asked_bits.unwrap_or(2)
    }

    /// Checks `out` before anything is computed.
    ///
    /// # Errors
    /// As [`Destination::new`].
    pub fn expect(&self, rows: usize, cols: usize) -> PyResult<()> {
        self.out.as_ref().map_or(Ok(()), |out| Destination::new(out.clone(), rows, cols).map(drop))
    }

    /// Whether the caller requested a report.
    pub fn wants_report(&self) -> bool {
        self.report.is_some()
    }

    /// Runs the work; see [`Runner::run`].
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn run<R: Send>(&mut self, work: impl FnOnce(&sunzi::Context) -> sunzi::Result<R> + Send) -> PyResult<R> {
        self.clock.computing = Some(Instant::now());
        let result = self.runner.run(work);
        self.clock.computed = Some(Instant::now());
        result
    }

    /// The report of a call with many results: `numbers` is that of the library, as JSON.
    ///
    /// # Errors
    /// The errors of Python's dictionaries.
    pub fn tell(&self, numbers: Option<String>) -> PyResult<()> {
        let Some(report) = &self.report else { return Ok(()) };
        if let Some(numbers) = numbers {
            let json = self.py.import("json")?;
            report.update(json.call_method1("loads", (numbers,))?.cast::<PyDict>()?.as_mapping())?;
        }
        let Clock { start, computing, computed } = self.clock;
        let computing = computing.unwrap_or(start);
        let computed = computed.unwrap_or(computing);
        report.set_item("input_seconds", (computing - start).as_secs_f64())?;
        report.set_item("compute_seconds", (computed - computing).as_secs_f64())?;
        report.set_item("output_seconds", computed.elapsed().as_secs_f64())
    }

    /// The result in the form that the caller requests, and the report: `numbers` is that of the library, as JSON.
    ///
    /// # Errors
    /// As [`give`] and [`Destination::fill`].
    pub fn finish(
        mut self,
        result: sunzi::Matrix,
        form: ResultForm,
        shape: Shape,
        numbers: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (rows, cols, bits) = (result.rows(), result.cols(), result.precision_bits());
        let held_bits = self.held_bits(shape)?;
        let object = match self.out.take() {
            Some(out) => Destination::new(out, rows, cols)?.fill(&result, form, shape.kind)?,
            None => give(self.py, result, form, shape)?,
        };
        self.describe(bits, numbers)?;
        self.correct_digits(held_bits)?;
        Ok(object)
    }

    /// As [`Call::finish`], for a result whose numbers are already Python objects, row by row.
    ///
    /// # Errors
    /// As [`contain`] and [`Destination::fill_objects`].
    pub fn finish_objects(
        mut self,
        numbers: Vec<Bound<'py, PyAny>>,
        rows: usize,
        cols: usize,
        shape: Shape,
        precision_bits: u32,
        report: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let object = match self.out.take() {
            Some(out) => Destination::new(out, rows, cols)?.fill_objects(numbers, rows, cols, shape.kind)?,
            None => contain(self.py, numbers, rows, cols, shape)?,
        };
        self.describe(precision_bits, report)?;
        Ok(object)
    }

    /// Bits of the numbers of the result, where they are fewer than are computed: see [`held_bits`].
    ///
    /// # Errors
    /// As [`held_bits`] and [`Destination::container_of`].
    pub fn held_bits(&self, shape: Shape) -> PyResult<Option<u32>> {
        let Some(out) = &self.out else { return held_bits(self.py, shape) };
        match Destination::container_of(out)? {
            Container::Doubles => Ok(Some(f64::MANTISSA_DIGITS)),
            container => held_bits(self.py, Shape { container, ..shape }),
        }
    }

    /// Limits the digits in the report to the digits that the numbers of the result hold.
    fn correct_digits(&self, held_bits: Option<u32>) -> PyResult<()> {
        let (Some(report), Some(bits)) = (&self.report, held_bits) else { return Ok(()) };
        for name in ["digits", "certified"] {
            let stated = report.get_item(name)?.and_then(|digits| digits.extract::<f64>().ok());
            if let Some(stated) = stated {
                report.set_item(name, digits_held(stated, bits))?;
            }
        }
        Ok(())
    }

    /// The report of a call with one result of `precision_bits` bits.
    fn describe(&self, precision_bits: u32, numbers: Option<String>) -> PyResult<()> {
        self.tell(numbers)?;
        self.report.as_ref().map_or(Ok(()), |report| report.set_item("precision_bits", precision_bits))
    }
}

/// Runs `work` with the part of the memory limit that `held_bytes` bytes leave; limits in its error are stated as the
/// caller gave them.
///
/// # Errors
/// The errors of `work`.
pub fn beside<R>(
    ctx: &sunzi::Context,
    held_bytes: u64,
    work: impl FnOnce(&sunzi::Context) -> sunzi::Result<R>,
) -> sunzi::Result<R> {
    let left_bytes = ctx.memory_bytes().map(|limit| limit.saturating_sub(held_bytes));
    work(&ctx.with_memory_bytes(left_bytes)).map_err(|error| restated(ctx, held_bytes, error))
}

/// An error of a call that ran while `held_bytes` bytes were held.
pub fn restated(ctx: &sunzi::Context, held_bytes: u64, error: Error) -> Error {
    match error {
        Error::MemoryLimit { minimum_bytes, .. } => Error::MemoryLimit {
            limit_bytes: ctx.memory_bytes().unwrap_or(u64::MAX),
            minimum_bytes: minimum_bytes.saturating_add(held_bytes),
        },
        other => other,
    }
}

/// An entry of a dictionary; absent and `None` are the same.
fn given<'py, T: for<'a> FromPyObject<'a, 'py>>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    match options.get_item(name)?.filter(|value| !value.is_none()) {
        None => Ok(None),
        Some(value) => argument(name, &value).map(Some),
    }
}

/// A number of bits that a matrix can have, the argument of this name.
///
/// # Errors
/// `ValueError`.
pub fn checked_bits(py: Python<'_>, name: &str, bits: Option<i64>) -> PyResult<Option<u32>> {
    let Some(bits) = bits else { return Ok(None) };
    if bits < 0 {
        return Err(PyValueError::new_err(format!("{name}={bits}: the precision of {bits} bits is negative")));
    }
    let maximum_bits = MAXIMUM_PRECISION_BITS.into();
    match u32::try_from(bits).ok().filter(|bits| (2..=MAXIMUM_PRECISION_BITS).contains(bits)) {
        Some(bits) => Ok(Some(bits)),
        None => {
            let error = exception(py, Error::Precision { precision_bits: bits.unsigned_abs(), maximum_bits });
            Err(PyValueError::new_err(format!("{name}={bits}: {}", error.value(py))))
        }
    }
}

/// The number type of this name.
///
/// # Errors
/// `ValueError` that lists the names.
pub fn number_kind(name: &str) -> PyResult<NumberKind> {
    NumberKind::by_name(name).ok_or_else(|| {
        let known = NumberKind::ALL.map(NumberKind::name).join(", ");
        PyValueError::new_err(format!("numbers='{name}' is not valid; use one of {known}"))
    })
}

/// The context and the progress callback of a method.
///
/// # Errors
/// As [`Runner::new`].
pub fn options<'py>(
    py: Python<'py>,
    precision: impl IntoPyObject<'py>,
    context: Option<Bound<'py, Context>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = PyDict::new(py);
    options.set_item("precision", precision)?;
    options.set_item("context", context)?;
    options.set_item("progress", progress)?;
    Ok(options)
}
