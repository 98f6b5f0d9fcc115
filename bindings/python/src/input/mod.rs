//! Operands: any objects that hold numbers. They are checked first, and converted to matrices when the precision is
//! known.
//!
//! Promise: binary numbers (`mpfr`, `mpf`, `arb`, integers, doubles) are taken exactly, whatever their precision;
//! fractions and decimals are rounded once, to nearest, ties to even.

mod balls;
mod container;
mod entry;
mod exact;
mod integers;
mod seen;
mod triangles;

use crate::arithmetic::rounded;
use crate::errors::OrRaise;
use crate::kind::{Container, NumberKind};
use crate::matrix_object::Matrix;
use crate::native::gmpy2::{Gmpy2, Parts};
use crate::signals::look_for_signals;
use crate::view::View;
use balls::Radius;
pub use container::is_array;
use container::{Items, unpack};
use entry::{Entry, NumberType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use rug::float::Round;
use rug::{Float, Rational};
use seen::{Seen, look_at};
use sunzi::advanced::math::float::round_integer;
use sunzi::io::{NumberParser, WrittenEntry};
use sunzi::{Error, FloatRef, Head, MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS, Uplo};
use triangles::OtherTriangle;

/// Selects the entries of an operand that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadPart {
    /// All.
    Whole,
    /// One triangle with the diagonal; the other is not read.
    Triangle(Uplo),
    /// One triangle of a symmetric matrix with the diagonal; the other has to go with it.
    Symmetric(Uplo),
    /// One triangle without the diagonal.
    StrictTriangle(Uplo),
}

impl ReadPart {
    fn holds(self, row: usize, col: usize) -> bool {
        match self {
            ReadPart::Whole => true,
            ReadPart::Triangle(Uplo::Lower) | ReadPart::Symmetric(Uplo::Lower) => row >= col,
            ReadPart::Triangle(Uplo::Upper) | ReadPart::Symmetric(Uplo::Upper) => row <= col,
            ReadPart::StrictTriangle(uplo) => row != col && ReadPart::Triangle(uplo).holds(row, col),
        }
    }
}

/// Bits beyond the precision of a call to which fractions and decimals are rounded that are factored or solved for.
const SPARE_BITS: u32 = 64;

/// Entries of a symmetric matrix that are kept as they were given, at most: larger ones are not examined in exact
/// arithmetic.
const MOST_WRITTEN: usize = 100_000;

/// The treatment of fractions and decimals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bits {
    /// They are rounded to this number of bits.
    Round(u32),
    /// They are rounded to [`SPARE_BITS`] more, so that an ill-conditioned matrix costs fewer digits of a solution: the
    /// program reads files in the same way.
    InFull(u32),
    /// They have to be integers, and are taken exactly.
    Integers,
}

/// An operand whose numbers have been checked.
pub struct Operand<'py> {
    /// The container of the numbers.
    pub container: Container,
    /// The number type of results.
    pub kind: NumberKind,
    /// The precision that the numbers bring along, if they do.
    pub natural_bits: Option<u32>,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    source: Source<'py>,
    /// The other triangle of a symmetric matrix of which one triangle is named.
    other: Option<OtherTriangle<'py>>,
    /// The radii of balls that are not 0.
    radii: Vec<Radius<'py>>,
}

/// The numbers of an operand.
struct ReadNumbers {
    view: View,
    /// Places of entries that were rounded.
    rounded: Vec<(usize, usize)>,
    /// These entries as they were given; `None` where they are not kept, or not known.
    written: Option<Vec<WrittenEntry>>,
}

impl ReadNumbers {
    /// Numbers that are not rounded now.
    fn of(view: View) -> ReadNumbers {
        let written = view.rounded_bits().is_none().then(Vec::new);
        ReadNumbers { view, rounded: Vec::new(), written }
    }
}

enum Source<'py> {
    Ready(View),
    Doubles(Vec<f64>, ReadPart),
    Entries { entries: Vec<Entry<'py>>, limbs: Vec<u64>, exact_bits: u32, rounds: bool },
}

impl<'py> Operand<'py> {
    /// Checks the numbers of `object`; `name` is the name of the operand in errors.
    ///
    /// # Errors
    /// `TypeError` and `ValueError` with the place of an entry that cannot be taken.
    pub fn of(object: &Bound<'py, PyAny>, name: &str, part: ReadPart) -> PyResult<Operand<'py>> {
        if let Ok(matrix) = object.cast::<Matrix>() {
            let matrix = matrix.get();
            let view = matrix.view();
            return Ok(Operand {
                container: Container::Matrix,
                kind: matrix.number_kind(),
                natural_bits: Some(view.precision_bits()),
                rows: view.rows(),
                cols: view.cols(),
                source: Source::Ready(view),
                other: OtherTriangle::of_matrix(part),
                radii: Vec::new(),
            });
        }
        if let Some(stacked) = stacked(object, name)? {
            return Ok(Operand { other: OtherTriangle::of_matrix(part), ..stacked });
        }
        let unpacked = unpack(object, name)?;
        let (container, rows, cols) = (unpacked.container, unpacked.rows, unpacked.cols);
        let other = OtherTriangle::of_items(object.py(), &unpacked.items, cols, part)?;
        let (seen, source) = match unpacked.items {
            Items::Doubles(values) => (Seen::doubles(), Source::Doubles(values, part)),
            Items::Objects(objects) => look_at(object.py(), &objects, cols, part)?,
        };
        let Seen { kind, natural_bits, radii } = seen;
        Ok(Operand { container, kind: container.kind_of(kind), natural_bits, rows, cols, source, other, radii })
    }

    /// An operand of a comparison; `None` for an object that holds no numbers, which equals no matrix.
    ///
    /// # Errors
    /// `MemoryError`, and exceptions of a signal handler other than `TypeError` and `ValueError`.
    pub fn of_numbers(object: &Bound<'py, PyAny>) -> PyResult<Option<Operand<'py>>> {
        let py = object.py();
        match Operand::of(object, "the other operand", ReadPart::Whole) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py) => {
                Ok(None)
            }
            operand => operand.map(Some),
        }
    }

    /// Whether `object` is one number of a type that is accepted.
    ///
    /// # Errors
    /// The exception of an attribute of it.
    pub fn is_number(object: &Bound<'py, PyAny>) -> PyResult<bool> {
        Ok(!is_array(object)? && NumberType::of(object)?.is_some())
    }

    /// One number as an operand of one entry.
    ///
    /// # Errors
    /// As [`Operand::of`].
    pub fn number(object: &Bound<'py, PyAny>) -> PyResult<Operand<'py>> {
        let (seen, source) = look_at(object.py(), std::slice::from_ref(object), 1, ReadPart::Whole)?;
        let Seen { kind, natural_bits, radii } = seen;
        Ok(Operand { container: Container::Flat, kind, natural_bits, rows: 1, cols: 1, source, other: None, radii })
    }

    /// The numbers as a matrix; numbers that have to be rounded are rounded to `bits`.
    ///
    /// # Errors
    /// `ValueError` for an exponent out of range, for a ball with a radius and for a fraction where integers are
    /// requested, `MemoryError`; `NotSymmetricError` where the triangle that is not named contradicts the one that is.
    pub fn view(self, py: Python<'py>, bits: Bits) -> PyResult<View> {
        match self.radii.first() {
            Some(radius) => Err(radius.refused(self.cols)),
            None => Ok(self.midpoints(py, bits, false)?.view),
        }
    }

    /// The same, and the entries that were rounded as they were given; `None` where these are not known, as those of a
    /// `Matrix` that was rounded before.
    ///
    /// # Errors
    /// As [`Operand::view`].
    pub fn view_and_written(self, py: Python<'py>, bits: Bits) -> PyResult<(View, Option<Vec<WrittenEntry>>)> {
        match self.radii.first() {
            Some(radius) => Err(radius.refused(self.cols)),
            None => {
                let keeps = self.rows.saturating_mul(self.cols) <= MOST_WRITTEN;
                let ReadNumbers { view, written, .. } = self.midpoints(py, bits, keeps)?;
                Ok((view, written))
            }
        }
    }

    /// The same without a look at radii; with `keeps` the entries that are rounded are kept as they were given.
    fn midpoints(self, py: Python<'py>, bits: Bits, keeps: bool) -> PyResult<ReadNumbers> {
        let read = self.source.read(py, self.rows, self.cols, bits, keeps)?;
        match self.other {
            Some(other) if self.rows == self.cols => {
                let known_bits = match bits {
                    Bits::Round(bits) | Bits::InFull(bits) => self.natural_bits.unwrap_or(bits),
                    Bits::Integers => MAXIMUM_PRECISION_BITS,
                };
                other.check(py, &read.view, bits, known_bits)?;
            }
            _ => {}
        }
        Ok(read)
    }
}

impl<'py> Source<'py> {
    /// See [`Operand::view`].
    fn view(self, py: Python<'py>, rows: usize, cols: usize, bits: Bits) -> PyResult<View> {
        Ok(self.read(py, rows, cols, bits, false)?.view)
    }

    /// The same, and the entries that were rounded.
    fn read(self, py: Python<'py>, rows: usize, cols: usize, bits: Bits, keeps: bool) -> PyResult<ReadNumbers> {
        let source = if bits == Bits::Integers { self.integers(py, cols)? } else { self };
        let precision_bits = match bits {
            Bits::Round(bits) => bits,
            Bits::InFull(bits) => bits.saturating_add(SPARE_BITS).min(MAXIMUM_PRECISION_BITS),
            Bits::Integers => 2,
        };
        match source {
            Source::Ready(view) => Ok(ReadNumbers::of(view)),
            Source::Doubles(values, part) => Ok(ReadNumbers::of(doubles(py, rows, cols, &values, part)?)),
            Source::Entries { entries, limbs, exact_bits, rounds } => {
                let bits = if rounds { exact_bits.max(precision_bits) } else { exact_bits };
                let mut matrix = sunzi::Matrix::zeros(rows, cols, bits).or_raise(py)?;
                let gmpy2 = Gmpy2::loaded(py)?;
                let mut texts = NumberParser::new(precision_bits);
                let written = keeps.then(Vec::new);
                if keeps {
                    texts.keep_written();
                }
                let (limbs, scratch, rounded) = (&limbs[..], Vec::new(), Vec::new());
                let mut store =
                    Store { matrix: &mut matrix, limbs, precision_bits, gmpy2, texts, scratch, rounded, written };
                for (index, entry) in entries.iter().enumerate() {
                    store.put(entry, index / cols, index % cols).or_raise(py)?;
                    look_for_signals(py, index)?;
                }
                let Store { rounded, written, .. } = store;
                let rounded_bits = (!rounded.is_empty()).then_some(precision_bits);
                Ok(ReadNumbers { view: View::from(matrix).after_rounding(rounded_bits), rounded, written })
            }
        }
    }
}

/// Matrices in a list, one below the other: `list(matrix)` gives its rows.
fn stacked<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Operand<'py>>> {
    let py = object.py();
    let Ok(list) = object.cast::<PyList>() else { return Ok(None) };
    if list.is_empty() || !list.iter().all(|item| item.is_instance_of::<Matrix>()) {
        return Ok(None);
    }
    let parts = list.iter().map(|item| Ok(item.cast::<Matrix>()?.clone())).collect::<PyResult<Vec<_>>>()?;
    let kind = parts.iter().map(|part| part.get().number_kind()).min().expect("there is a part");
    let views: Vec<View> = parts.iter().map(|part| part.get().view()).collect();
    let cols = views[0].cols();
    if let Some((at, other)) = views.iter().map(View::cols).enumerate().find(|(_, other)| *other != cols) {
        return Err(PyValueError::new_err(format!("{name}: matrix {at} has {other} columns, but matrix 0 has {cols}")));
    }
    let (rows, bits) = (views.iter().map(View::rows).sum(), View::largest_precision(&views));
    let rounded_bits = views.iter().filter_map(View::rounded_bits).min();
    let whole = stack(py, &views, bits)?.after_rounding(rounded_bits);
    let source = Source::Ready(whole);
    Ok(Some(Operand {
        container: Container::Matrix,
        kind,
        natural_bits: Some(bits),
        rows,
        cols,
        source,
        other: None,
        radii: Vec::new(),
    }))
}

/// Bits of the significand of `numpy.longdouble` on this machine.
///
/// # Errors
/// `ImportError`.
pub fn long_double_bits(py: Python<'_>) -> PyResult<u32> {
    let numpy = py.import("numpy")?;
    let fraction_bits: u32 =
        numpy.call_method1("finfo", (numpy.getattr("longdouble")?,))?.getattr("nmant")?.extract()?;
    Ok(fraction_bits + 1)
}

/// Matrices of as many columns, one below the other, rounded to `bits` bits.
///
/// # Errors
/// `MemoryError`; the exception of a signal handler.
pub fn stack(py: Python<'_>, views: &[View], bits: u32) -> PyResult<View> {
    let (rows, cols) = (views.iter().map(View::rows).sum(), views.first().map_or(0, View::cols));
    let mut whole = sunzi::Matrix::zeros(rows, cols, bits).or_raise(py)?;
    let (mut first, mut rounded_bits) = (0, None);
    for view in views {
        let part = rounded(py, view, bits)?;
        rounded_bits = rounded_bits.into_iter().chain(part.rounded_bits()).min();
        let entries = part.entries();
        for (row, col) in (0..part.rows()).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            whole.set(first + row, col, entries.get(row, col));
            look_for_signals(py, row * cols + col)?;
        }
        first += part.rows();
    }
    Ok(View::from(whole).after_rounding(rounded_bits))
}

fn doubles(py: Python<'_>, rows: usize, cols: usize, values: &[f64], part: ReadPart) -> PyResult<View> {
    let mut matrix = sunzi::Matrix::zeros(rows, cols, 53).or_raise(py)?;
    for (index, &value) in values.iter().enumerate() {
        let (row, col) = (index / cols, index % cols);
        if part.holds(row, col) {
            matrix.set_f64(row, col, value).or_raise(py)?;
        }
        look_for_signals(py, index)?;
    }
    Ok(matrix.into())
}

/// Writes entries into a matrix that has room for their bits.
struct Store<'a> {
    matrix: &'a mut sunzi::Matrix,
    limbs: &'a [u64],
    precision_bits: u32,
    gmpy2: Option<&'static Gmpy2>,
    texts: NumberParser,
    scratch: Vec<u64>,
    /// Places of numbers that are not those given.
    rounded: Vec<(usize, usize)>,
    /// These numbers as they were given; `None` where they are not kept, or one cannot be.
    written: Option<Vec<WrittenEntry>>,
}

impl Store<'_> {
    /// Takes note of a number that is not the one given, which is `value` where that is kept.
    fn note_rounded(&mut self, row: usize, col: usize, value: Option<Rational>) {
        self.rounded.push((row, col));
        self.written = self.written.take().zip(value).map(|(mut written, value)| {
            written.push(WrittenEntry { row, col, value });
            written
        });
    }

    fn put(&mut self, entry: &Entry<'_>, row: usize, col: usize) -> sunzi::Result<()> {
        match entry {
            Entry::Zero => Ok(()),
            Entry::InPlace(object) => self.put_in_place(object, row, col),
            Entry::Binary { negative, start, end, exponent } => {
                let limbs = &self.limbs[*start..*end];
                self.put_integer(*negative, limbs, *exponent, row, col)
            }
            Entry::Ratio(ratio) => {
                let bits = self.precision_bits;
                let rounded = |round| Float::with_val_round(bits, &**ratio, round).0;
                let zero = **ratio == 0;
                let (near, low) = (rounded(Round::Nearest), || rounded(Round::Zero));
                if near != **ratio {
                    self.note_rounded(row, col, self.written.is_some().then(|| (**ratio).clone()));
                }
                self.put_rounded(&near, !zero && is_too_small(&near, low), row, col)
            }
            Entry::Decimal(text) => match self.texts.parse(text) {
                Ok(parsed) => {
                    if parsed.rounded {
                        let value = self.texts.take_written();
                        self.note_rounded(row, col, value);
                    }
                    self.matrix.set_float(row, col, &parsed.value)
                }
                Err(_) => {
                    // It has been parsed before, so its exponent is too large, either way.
                    let is_small = text.contains("e-") || text.contains("E-") || text.contains("^-");
                    let exponent = if is_small { -MAXIMUM_EXPONENT - 1 } else { MAXIMUM_EXPONENT + 1 };
                    Err(Error::ExponentRange { row, column: col, exponent, limit: MAXIMUM_EXPONENT })
                }
            },
        }
    }

    /// Copies the limbs of an `mpfr` object, which have MPFR's form as the matrix's own have.
    fn put_in_place(&mut self, object: &Bound<'_, PyAny>, row: usize, col: usize) -> sunzi::Result<()> {
        let layout = self.gmpy2.and_then(|gmpy2| gmpy2.layout.as_ref()).expect("it has been read before");
        let Parts::Finite { negative, exponent, limbs } = layout.mpfr(object) else {
            unreachable!("numbers never change");
        };
        self.check(exponent, row, col)?;
        self.scratch.clear();
        self.scratch.resize(self.matrix.limbs_per_element() - limbs.len(), 0);
        self.scratch.extend_from_slice(limbs);
        self.matrix.set(row, col, FloatRef { head: Head::new(negative, exponent), limbs: &self.scratch });
        Ok(())
    }

    fn put_integer(
        &mut self,
        negative: bool,
        limbs: &[u64],
        exponent: i64,
        row: usize,
        col: usize,
    ) -> sunzi::Result<()> {
        let top = exponent.saturating_add(sunzi::advanced::math::float::bit_length(limbs) as i64);
        self.check(top, row, col)?;
        self.scratch.resize(self.matrix.limbs_per_element(), 0);
        let head = round_integer(negative, limbs, exponent, self.matrix.precision_bits(), &mut self.scratch);
        self.matrix.set(row, col, FloatRef { head, limbs: &self.scratch });
        Ok(())
    }

    /// Stores a rounded number; `too_small` where its exponent is below those that exist.
    fn put_rounded(&mut self, value: &Float, too_small: bool, row: usize, col: usize) -> sunzi::Result<()> {
        if value.is_infinite() || too_small {
            let exponent = if value.is_infinite() { MAXIMUM_EXPONENT + 1 } else { -MAXIMUM_EXPONENT - 1 };
            return Err(Error::ExponentRange { row, column: col, exponent, limit: MAXIMUM_EXPONENT });
        }
        self.matrix.set_float(row, col, value)
    }

    fn check(&self, exponent: i64, row: usize, column: usize) -> sunzi::Result<()> {
        if exponent.unsigned_abs() > MAXIMUM_EXPONENT as u64 {
            return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
        }
        Ok(())
    }
}

/// Whether a number other than 0 lies below the least one: `near` is the nearest to it that there is, `low` rounds
/// towards 0.
fn is_too_small(near: &Float, low: impl Fn() -> Float) -> bool {
    near.get_exp().is_none_or(|exponent| i64::from(exponent) <= -MAXIMUM_EXPONENT) && low().is_zero()
}

/// The precision of a result: the requested one, else the largest of the operands.
///
/// # Errors
/// `ValueError` where there is neither.
pub fn working_bits(asked: Option<u32>, operands: &[Option<u32>]) -> PyResult<u32> {
    let natural = operands.iter().flatten().max().copied();
    asked.or(natural).ok_or_else(|| {
        PyValueError::new_err(
            "int, Fraction and str entries have no precision of their own; pass precision= in bits, or to solve and \
             inverse digits=, the number of correct digits that you need",
        )
    })
}

/// A scalar such as alpha, rounded to `bits` where it is a fraction or a decimal.
///
/// # Errors
/// As [`Operand::of`], with the name of the scalar.
pub fn scalar(object: Option<&Bound<'_, PyAny>>, name: &str, bits: Bits) -> PyResult<Option<Float>> {
    let Some(object) = object else { return Ok(None) };
    let py = object.py();
    let named = |error: PyErr| {
        let text = || error.value(py).to_string().replace("entry at row 0, column 0", name);
        if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(text())
        } else if error.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(text())
        } else {
            error
        }
    };
    let operand = Operand::number(object).map_err(named)?;
    let view = operand.view(py, bits).map_err(named)?;
    Ok(Some(view.entries().get(0, 0).to_float(view.precision_bits())))
}
