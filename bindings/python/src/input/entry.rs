//! One number of any accepted type, as an integer times a power of two, or as an object that has to be rounded.

use crate::input::integers::{Integers, magnitude};
use crate::kind::NumberKind;
use crate::native::flint::Arbs;
use crate::native::gmpy2::{Gmpy2, Parts};
use crate::packages::loaded;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString, PyTuple, PyType};
use rug::{Float, Rational};
use sunzi::Error;
use sunzi::advanced::math::float::{LIMB_BITS, bit_length};
use sunzi::io::{NumberError, NumberParser};

/// One number, as it was found.
pub enum Entry<'py> {
    /// 0, or an entry that is not read.
    Zero,
    /// An object of gmpy2 whose limbs are read where they lie.
    InPlace(Bound<'py, PyAny>),
    /// `(-1)^negative * m * 2^exponent`, the limbs of `m` from `start` to `end` among those of all entries.
    Binary { negative: bool, start: usize, end: usize, exponent: i64 },
    /// A fraction, to be rounded.
    Ratio(Box<Rational>),
    /// A text of a number, to be rounded.
    Decimal(Box<str>),
}

/// The types that numbers may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberType {
    /// `gmpy2.mpfr`.
    Mpfr,
    /// `gmpy2.mpz`.
    Mpz,
    /// Something with `numerator` and `denominator`: `gmpy2.mpq`, `fractions.Fraction`.
    Ratio(NumberKind),
    /// `mpmath.mpf`.
    Mpf,
    /// `flint.arb`.
    Arb,
    /// `flint.fmpz`.
    Fmpz,
    /// `flint.fmpq`.
    Fmpq,
    /// `int`, and its equivalents (NumPy's integers).
    Int,
    /// `numpy.longdouble`.
    LongDouble,
    /// `float`.
    Float,
    /// `decimal.Decimal`.
    Decimal,
    /// `str`.
    Text,
}

impl NumberType {
    /// The type of result that entries of this type request.
    pub fn kind(self) -> NumberKind {
        match self {
            NumberType::Mpfr | NumberType::Mpz => NumberKind::Gmpy2,
            NumberType::Ratio(kind) => kind,
            NumberType::Mpf => NumberKind::Mpmath,
            NumberType::Arb | NumberType::Fmpz | NumberType::Fmpq => NumberKind::Flint,
            NumberType::Int => NumberKind::Fraction,
            NumberType::LongDouble => NumberKind::LongDouble,
            NumberType::Float => NumberKind::Float,
            NumberType::Decimal => NumberKind::Decimal,
            NumberType::Text => NumberKind::Text,
        }
    }

    /// The number type that objects of `class` have, if it is one that is accepted.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<NumberType>> {
        let py = object.py();
        if let Some(gmpy2) = Gmpy2::loaded(py)? {
            let class = object.get_type();
            let is = |known: &Py<PyType>| class.is(known.bind(py));
            if is(&gmpy2.mpfr) {
                return Ok(Some(NumberType::Mpfr));
            } else if is(&gmpy2.mpz) {
                return Ok(Some(NumberType::Mpz));
            } else if is(&gmpy2.mpq) {
                return Ok(Some(NumberType::Ratio(NumberKind::Gmpy2)));
            }
        }
        if object.is_instance_of::<PyInt>() {
            return Ok(Some(NumberType::Int));
        } else if object.is_instance_of::<PyFloat>() {
            return Ok(Some(NumberType::Float));
        } else if object.is_instance_of::<PyString>() {
            return Ok(Some(NumberType::Text));
        }
        let class = object.get_type();
        let place = class.getattr(intern!(py, "__module__"))?.extract::<String>().unwrap_or_default();
        if place.starts_with("flint.") {
            match class.name()?.to_str()? {
                "arb" => return Ok(Some(NumberType::Arb)),
                "fmpz" => return Ok(Some(NumberType::Fmpz)),
                "fmpq" => return Ok(Some(NumberType::Fmpq)),
                _ => return Ok(None),
            }
        }
        // After flint, whose balls have this attribute too, rounded.
        if object.hasattr(intern!(py, "_mpf_"))? {
            return Ok(Some(NumberType::Mpf));
        }
        if object.is_instance(&py.import("numbers")?.getattr("Rational")?)? {
            return Ok(Some(NumberType::Ratio(NumberKind::Fraction)));
        }
        if let Some(decimal) = loaded(py, "decimal")?
            && object.is_instance(&decimal.getattr("Decimal")?)?
        {
            return Ok(Some(NumberType::Decimal));
        }
        // NumPy's doubles are floats; its narrower floats and its integers are neither float nor int.
        if place == "numpy" && object.hasattr(intern!(py, "dtype"))? {
            let letter = object.getattr("dtype")?.getattr("char")?.extract::<String>()?;
            return Ok(match letter.as_str() {
                "e" | "f" | "d" => Some(NumberType::Float),
                "g" => Some(NumberType::LongDouble),
                _ if "bhilqpBHILQP".contains(&letter) => Some(NumberType::Int),
                _ => None,
            });
        }
        Ok(None)
    }
}

/// Reads numbers one after the other; keeps their limbs together.
pub struct Reader<'py> {
    py: Python<'py>,
    gmpy2: Option<&'static Gmpy2>,
    arbs: Option<&'static Arbs>,
    last: Option<(Bound<'py, PyType>, NumberType)>,
    integers: Integers<'py>,
    texts: NumberParser,
    /// Limbs of all integers.
    pub limbs: Vec<u64>,
    /// Bits that hold all entries that are taken exactly.
    pub exact_bits: u32,
    /// Whether some entry has to be rounded.
    pub rounds: bool,
    /// Largest precision of an `mpfr`.
    pub mpfr_bits: u32,
    /// The number types seen, as a set of bits.
    types_seen: u32,
    /// The radius of the number read last, where it is a ball with one: an integer times a power of two.
    radius: Option<(u64, i64)>,
}

/// The reason why a number was refused, without its place.
pub enum Refusal {
    /// An error of the library, to which the place is added.
    NotFinite(&'static str),
    /// Not a number.
    Type,
    /// A message that follows the place.
    Value(String),
    /// An exception from Python.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Refusal {
        Refusal::Raised(error)
    }
}

impl Refusal {
    /// The exception for an object refused at a place.
    pub fn exception(self, object: &Bound<'_, PyAny>, row: usize, column: usize) -> PyErr {
        match self {
            Refusal::NotFinite(kind) => PyValueError::new_err(Error::NotFinite { row, column, kind }.to_string()),
            Refusal::Value(message) => PyValueError::new_err(format!("entry at row {row}, column {column} {message}")),
            Refusal::Raised(error) => error,
            Refusal::Type => {
                let name =
                    object.get_type().fully_qualified_name().map_or_else(|_| "?".into(), |name| name.to_string());
                PyTypeError::new_err(format!(
                    "entry at row {row}, column {column} is of type {name}: use mpmath.mpf, gmpy2.mpfr, mpz or mpq, \
                     flint.arb, fmpz or fmpq, fractions.Fraction, decimal.Decimal, int, float, numpy.longdouble, or a \
                     decimal string"
                ))
            }
        }
    }
}

impl<'py> Reader<'py> {
    /// Nothing read yet.
    pub fn new(py: Python<'py>) -> PyResult<Reader<'py>> {
        Ok(Reader {
            py,
            gmpy2: Gmpy2::loaded(py)?,
            arbs: Arbs::loaded(py)?,
            last: None,
            integers: Integers::new(py)?,
            texts: NumberParser::new(2),
            limbs: Vec::new(),
            exact_bits: 2,
            rounds: false,
            mpfr_bits: 0,
            types_seen: 0,
            radius: None,
        })
    }

    /// The kind of result that the entries read request.
    pub fn kind(&self) -> NumberKind {
        let seen = |kind: &NumberKind| self.types_seen & (1 << *kind as u32) != 0;
        NumberKind::ALL.into_iter().find(seen).unwrap_or(NumberKind::Fraction)
    }

    /// Whether an entry of this type was read.
    pub fn has_seen(&self, number: NumberType) -> bool {
        self.types_seen & (1 << (8 + number.bit())) != 0
    }

    /// Reads one number.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn read(&mut self, object: &Bound<'py, PyAny>) -> Result<Entry<'py>, Refusal> {
        let class = object.get_type();
        let number = match &self.last {
            Some((known, number)) if known.is(&class) => *number,
            _ => {
                let number = NumberType::of(object)?.ok_or(Refusal::Type)?;
                self.types_seen |= 1 << number.kind() as u32 | 1 << (8 + number.bit());
                self.last = Some((class, number));
                number
            }
        };
        match number {
            NumberType::Mpfr => self.mpfr(object),
            NumberType::Mpf => self.mpf(object),
            NumberType::Arb => self.arb(object),
            NumberType::Float => self.double(object.extract::<f64>()?),
            NumberType::Mpz | NumberType::Fmpz | NumberType::Int => self.integer(object, 0, false),
            NumberType::Ratio(_) => self.ratio(object, intern!(self.py, "numerator"), intern!(self.py, "denominator")),
            NumberType::Fmpq => self.ratio(object, intern!(self.py, "p"), intern!(self.py, "q")),
            NumberType::LongDouble => self.long_double(object),
            NumberType::Decimal => self.decimal(object),
            NumberType::Text => self.text(&object.extract::<String>()?),
        }
    }

    fn mpfr(&mut self, object: &Bound<'py, PyAny>) -> Result<Entry<'py>, Refusal> {
        let Some(layout) = self.gmpy2.and_then(|gmpy2| gmpy2.layout.as_ref()) else {
            return self.mpfr_by_methods(object);
        };
        let bits = layout.precision_bits(object);
        self.mpfr_bits = self.mpfr_bits.max(bits);
        match layout.mpfr(object) {
            Parts::Zero => Ok(Entry::Zero),
            Parts::Nan => Err(Refusal::NotFinite("NaN")),
            Parts::Infinite => Err(Refusal::NotFinite("infinite")),
            Parts::Finite { .. } => {
                self.exact_bits = self.exact_bits.max(bits);
                Ok(Entry::InPlace(object.clone()))
            }
        }
    }

    /// Reads an `mpfr` through its methods, if gmpy2's memory layout is not known.
    fn mpfr_by_methods(&mut self, object: &Bound<'py, PyAny>) -> Result<Entry<'py>, Refusal> {
        self.mpfr_bits = self.mpfr_bits.max(object.getattr(intern!(self.py, "precision"))?.extract::<u32>()?);
        if !object.call_method0(intern!(self.py, "is_finite"))?.extract::<bool>()? {
            let nan = object.call_method0(intern!(self.py, "is_nan"))?.extract::<bool>()?;
            return Err(Refusal::NotFinite(if nan { "NaN" } else { "infinite" }));
        }
        let (mantissa, exponent): (Bound<'py, PyAny>, i64) =
            object.call_method0(intern!(self.py, "as_mantissa_exp"))?.extract()?;
        self.integer(&mantissa, exponent, false)
    }

    fn mpf(&mut self, object: &Bound<'py, PyAny>) -> Result<Entry<'py>, Refusal> {
        let parts = object.getattr(intern!(self.py, "_mpf_"))?;
        let parts = parts.cast_into::<PyTuple>().map_err(|_| Refusal::Type)?;
        let negative = parts.get_item(0)?.extract::<i64>()? != 0;
        let mantissa = parts.get_item(1)?;
        let power = parts.get_item(2)?;
        let exponent = power
            .extract::<i64>()
            .map_err(|_| Refusal::Value(format!("has the exponent {power}, which is out of range")))?;
        match self.integer(&mantissa, exponent, negative)? {
            Entry::Zero if exponent == 0 => Ok(Entry::Zero),
            // mpmath's special numbers have no mantissa, and an exponent that tells which it is.
            Entry::Zero => Err(Refusal::NotFinite(if exponent == -123 { "NaN" } else { "infinite" })),
            entry => Ok(entry),
        }
    }

    /// The midpoint; the radius is kept where it is not 0.
    fn arb(&mut self, object: &Bound<'py, PyAny>) -> Result<Entry<'py>, Refusal> {
        if let Some(number) = self.arbs.and_then(|arbs| arbs.exact(object)) {
            let bits = number.limbs.len() as i64 * i64::from(LIMB_BITS);
            return Ok(self.keep(number.negative, number.limbs, number.exponent - bits));
        }
        let man_exp = intern!(self.py, "man_exp");
        let parts = match object.call_method0(man_exp) {
            Ok(parts) => parts,
            Err(_) => {
                if !object.call_method0(intern!(self.py, "is_finite"))?.extract::<bool>()? {
                    let nan = object.call_method0(intern!(self.py, "is_nan"))?.extract::<bool>()?;
                    return Err(Refusal::NotFinite(if nan { "NaN" } else { "infinite" }));
                }
                let radius = object.call_method0(intern!(self.py, "rad"))?;
                let (mantissa, power): (Bound<'py, PyAny>, Bound<'py, PyAny>) =
                    radius.call_method0(man_exp)?.extract()?;
                let refused = || Refusal::Value(format!("has the radius {radius}, which is out of range"));
                let mantissa = self.integers.small(&mantissa)?.ok_or_else(refused)?.unsigned_abs();
                self.radius = Some((mantissa, self.integers.small(&power)?.ok_or_else(refused)?));
                object.call_method0(intern!(self.py, "mid"))?.call_method0(man_exp)?
            }
        };
        let (mantissa, power): (Bound<'py, PyAny>, Bound<'py, PyAny>) = parts.extract()?;
        let exponent = self.integers.small(&power)?;
        let exponent =
            exponent.ok_or_else(|| Refusal::Value(format!("has the exponent {power}, which is out of range")))?;
        self.integer(&mantissa, exponent, false)
    }

    /// The radius of the number read last, once.
    pub fn take_radius(&mut self) -> Option<(u64, i64)> {
        self.radius.take()
    }

    fn double(&mut self, value: f64) -> Result<Entry<'py>, Refusal> {
        self.binary_of_double(value).ok_or(Refusal::NotFinite(if value.is_nan() { "NaN" } else { "infinite" }))
    }

    fn binary_of_double(&mut self, value: f64) -> Option<Entry<'py>> {
        let (integer, exponent) = Float::with_val(53, value).to_integer_exp()?;
        Some(self.keep(value < 0.0, magnitude(&integer), exponent.into()))
    }

    /// `(-1)^negated * object * 2^exponent` for an integer of any type.
    fn integer(&mut self, object: &Bound<'py, PyAny>, exponent: i64, negated: bool) -> Result<Entry<'py>, Refusal> {
        let start = self.limbs.len();
        let negative = self.integers.append(object, &mut self.limbs)?;
        Ok(self.kept(negative != negated, start, exponent))
    }

    fn keep(&mut self, negative: bool, limbs: &[u64], exponent: i64) -> Entry<'py> {
        let start = self.limbs.len();
        self.limbs.extend_from_slice(limbs);
        self.kept(negative, start, exponent)
    }

    /// The entry of the limbs from `start` on, which are the last; whole limbs of zeros below are dropped.
    fn kept(&mut self, negative: bool, start: usize, exponent: i64) -> Entry<'py> {
        let limbs = &self.limbs[start..];
        let length = bit_length(limbs);
        let Some(low) = limbs.iter().position(|&limb| limb != 0) else {
            self.limbs.truncate(start);
            return Entry::Zero;
        };
        let zeros = low as u64 * u64::from(LIMB_BITS) + u64::from(limbs[low].trailing_zeros());
        self.exact_bits = self.exact_bits.max(u32::try_from(length - zeros).unwrap_or(u32::MAX));
        let exponent = exponent.saturating_add(low as i64 * i64::from(LIMB_BITS));
        Entry::Binary { negative, start: start + low, end: self.limbs.len(), exponent }
    }

    fn ratio(
        &mut self,
        object: &Bound<'py, PyAny>,
        numerator: &Bound<'py, PyString>,
        denominator: &Bound<'py, PyString>,
    ) -> Result<Entry<'py>, Refusal> {
        let numerator = self.integers.integer(&object.getattr(numerator)?)?;
        let denominator = self.integers.integer(&object.getattr(denominator)?)?;
        if denominator == 0 {
            return Err(Refusal::Value("has the denominator 0".into()));
        }
        if denominator == 1 {
            return Ok(self.keep(numerator < 0, magnitude(&numerator), 0));
        }
        self.rounds = true;
        Ok(Entry::Ratio(Box::new(Rational::from((numerator, denominator)))))
    }

    /// Exactly: its own ratio of integers, of which the lower one is a power of two.
    fn long_double(&mut self, object: &Bound<'py, PyAny>) -> Result<Entry<'py>, Refusal> {
        if object.ne(object)? {
            return Err(Refusal::NotFinite("NaN"));
        }
        let Ok(ratio) = object.call_method0(intern!(self.py, "as_integer_ratio")) else {
            return Err(Refusal::NotFinite("infinite"));
        };
        let (numerator, denominator): (Bound<'py, PyAny>, Bound<'py, PyAny>) = ratio.extract()?;
        let bits = denominator.call_method0(intern!(self.py, "bit_length"))?.extract::<i64>()?;
        self.integer(&numerator, 1 - bits, false)
    }

    /// As the text that it is written as.
    fn decimal(&mut self, object: &Bound<'py, PyAny>) -> Result<Entry<'py>, Refusal> {
        if !object.call_method0(intern!(self.py, "is_finite"))?.extract::<bool>()? {
            let nan = object.call_method0(intern!(self.py, "is_nan"))?.extract::<bool>()?;
            return Err(Refusal::NotFinite(if nan { "NaN" } else { "infinite" }));
        }
        self.text(&object.str()?.to_string())
    }

    /// A text, by the syntax of numbers in files.
    fn text(&mut self, text: &str) -> Result<Entry<'py>, Refusal> {
        self.rounds = true;
        match self.texts.parse(text) {
            Ok(parsed) if parsed.exact => {
                let (integer, exponent) = parsed.value.to_integer_exp().unwrap_or_default();
                Ok(self.keep(integer < 0, magnitude(&integer), exponent.into()))
            }
            // An exponent out of range is refused where it is stored.
            Ok(_) | Err(NumberError::ExponentRange) => Ok(Entry::Decimal(text.trim().into())),
            Err(NumberError::NotFinite(kind)) => Err(Refusal::NotFinite(kind)),
            Err(NumberError::TooLong(bits)) => Err(Refusal::Value(format!("has {bits} significant bits"))),
            Err(_) => {
                Err(Refusal::Value(format!("is the string {text:?}: use a decimal number, or a fraction such as 1/3")))
            }
        }
    }
}

impl NumberType {
    /// A number of its own for each type.
    fn bit(self) -> u32 {
        match self {
            NumberType::Mpfr => 0,
            NumberType::Mpz => 1,
            NumberType::Ratio(_) => 2,
            NumberType::Mpf => 3,
            NumberType::Arb => 4,
            NumberType::Fmpz => 5,
            NumberType::Fmpq => 6,
            NumberType::Int => 7,
            NumberType::Float => 8,
            NumberType::Text => 9,
            NumberType::LongDouble => 10,
            NumberType::Decimal => 11,
        }
    }
}
