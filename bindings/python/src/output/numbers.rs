//! Entries of a matrix as numbers of one of the Python types, exactly (decimals: so that they can be read back).

use crate::input::long_double_bits;
use crate::kind::NumberKind;
use crate::native::flint::{ArbRadius, ArbTemplates, Arbs, ExactArb};
use crate::native::gmpy2::{Gmpy2, Parts};
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyModule, PyString};
use rug::Float;
use sunzi::FloatRef;
use sunzi::advanced::math::float::{LIMB_BITS, bit_length, shift_down};

/// Makes numbers of one type and precision.
pub struct Builder<'py> {
    py: Python<'py>,
    precision_bits: u32,
    way: Way<'py>,
    zero: Option<Bound<'py, PyAny>>,
}

enum Way<'py> {
    /// `gmpy2.mpfr`, by layout or through hexadecimal digits.
    Mpfr(&'static Gmpy2),
    /// `mpmath.mpf`, made as `mpmath.mp.make_mpf` makes it, and how its mantissa is made.
    Mpf {
        new: Bound<'py, PyAny>,
        class: Bound<'py, PyAny>,
        mantissa: Mantissa<'py>,
    },
    /// `flint.arb`, by layout or from integers.
    Arb {
        class: Bound<'py, PyAny>,
        mantissa: Mantissa<'py>,
        arbs: Option<&'static Arbs>,
        templates: ArbTemplates<'py>,
    },
    /// `fractions.Fraction`.
    Fraction {
        class: Bound<'py, PyAny>,
        mantissa: Mantissa<'py>,
    },
    /// `numpy.longdouble` with this number of bits.
    LongDouble {
        numpy: Bound<'py, PyModule>,
        bits: u32,
    },
    Float,
    /// `decimal.Decimal`.
    Decimal {
        class: Bound<'py, PyAny>,
    },
    Text,
}

/// Makes integers from bytes.
enum Mantissa<'py> {
    /// `int.from_bytes`.
    Int(Bound<'py, PyAny>),
    /// `gmpy2.from_binary`.
    Mpz(Bound<'py, PyAny>),
}

impl<'py> Mantissa<'py> {
    fn int(py: Python<'py>) -> PyResult<Mantissa<'py>> {
        Ok(Mantissa::Int(py.get_type::<PyInt>().getattr("from_bytes")?))
    }

    /// The integer of these limbs, which is positive.
    fn make(&self, py: Python<'py>, limbs: &[u64]) -> PyResult<Bound<'py, PyAny>> {
        match (self, limbs) {
            (Mantissa::Int(_), &[small]) => Ok(small.into_pyobject(py)?.into_any()),
            (Mantissa::Int(from_bytes), _) => from_bytes.call1((little_endian(&[], limbs, py)?, intern!(py, "little"))),
            // One byte for the type, one for the sign.
            (Mantissa::Mpz(from_binary), _) => from_binary.call1((little_endian(&[1, 1], limbs, py)?,)),
        }
    }
}

fn little_endian<'py>(head: &[u8], limbs: &[u64], py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, head.len() + 8 * limbs.len(), |bytes| {
        let (first, rest) = bytes.split_at_mut(head.len());
        first.copy_from_slice(head);
        for (place, limb) in rest.chunks_exact_mut(8).zip(limbs) {
            place.copy_from_slice(&limb.to_le_bytes());
        }
        Ok(())
    })
}

impl<'py> Builder<'py> {
    /// A builder of numbers with `precision_bits` bits.
    ///
    /// # Errors
    /// `ImportError` where the package of the type is not installed.
    pub fn new(py: Python<'py>, kind: NumberKind, precision_bits: u32) -> PyResult<Builder<'py>> {
        let way = match kind {
            NumberKind::Gmpy2 => Way::Mpfr(Gmpy2::import(py)?),
            NumberKind::Mpmath => {
                let mpmath = py.import("mpmath")?;
                let integer = mpmath.getattr("libmp")?.getattr("MPZ")?;
                let from_gmpy2 = integer.getattr("__module__")?.extract::<String>()? == "gmpy2";
                let mantissa = match from_gmpy2 {
                    true => Mantissa::Mpz(py.import("gmpy2")?.getattr("from_binary")?),
                    false => Mantissa::int(py)?,
                };
                let new = py.get_type::<PyAny>().getattr("__new__")?;
                Way::Mpf { new, class: mpmath.getattr("mp")?.getattr("mpf")?, mantissa }
            }
            NumberKind::Flint => Way::Arb {
                class: py.import("flint")?.getattr("arb")?,
                mantissa: Mantissa::int(py)?,
                arbs: Arbs::loaded(py)?,
                templates: ArbTemplates::default(),
            },
            NumberKind::Fraction => {
                Way::Fraction { class: py.import("fractions")?.getattr("Fraction")?, mantissa: Mantissa::int(py)? }
            }
            NumberKind::LongDouble => Way::LongDouble { numpy: py.import("numpy")?, bits: long_double_bits(py)? },
            NumberKind::Float => Way::Float,
            NumberKind::Decimal => Way::Decimal { class: py.import("decimal")?.getattr("Decimal")? },
            NumberKind::Text => Way::Text,
        };
        Ok(Builder { py, precision_bits, way, zero: None })
    }

    /// The number at a row and a column. All zeros are the same object.
    ///
    /// # Errors
    /// As [`double`], and exceptions of Python, such as `MemoryError`.
    pub fn number(&mut self, value: FloatRef<'_>, row: usize, col: usize) -> PyResult<Bound<'py, PyAny>> {
        if !value.head.is_zero() {
            return self.other_than_zero(value, row, col);
        }
        if self.zero.is_none() {
            self.zero = Some(self.make_zero()?);
        }
        Ok(self.zero.clone().expect("it has just been made"))
    }

    fn make_zero(&self) -> PyResult<Bound<'py, PyAny>> {
        match &self.way {
            Way::Mpfr(gmpy2) => match &gmpy2.layout {
                Some(layout) => layout.make_mpfr(self.py, self.precision_bits, Parts::Zero),
                None => gmpy2.mpfr.bind(self.py).call1((0, self.precision_bits)),
            },
            Way::Mpf { .. } => self.py.import("mpmath")?.getattr("mp")?.getattr("zero"),
            Way::Arb { class, .. } | Way::Fraction { class, .. } | Way::Decimal { class } => class.call1((0,)),
            Way::LongDouble { numpy, .. } => numpy.call_method1("longdouble", (0,)),
            Way::Float => Ok(PyFloat::new(self.py, 0.0).into_any()),
            Way::Text => Ok(PyString::new(self.py, "0").into_any()),
        }
    }

    /// A ball of python-flint.
    ///
    /// # Errors
    /// As [`Builder::number`].
    pub fn ball(
        &mut self,
        midpoint: FloatRef<'_>,
        radius: FloatRef<'_>,
        row: usize,
        col: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if radius.head.is_zero() {
            return self.number(midpoint, row, col);
        }
        if let Way::Arb { arbs: Some(arbs), templates, .. } = &mut self.way
            && !midpoint.head.is_zero()
            && let &[limb] = radius.limbs
        {
            let radius = ArbRadius::at_least(limb, radius.head.exponent());
            return arbs.make(self.py, templates, normalised(midpoint), radius);
        }
        let (midpoint, radius) = (self.number(midpoint, row, col)?, self.number(radius, row, col)?);
        midpoint.get_type().call1((midpoint, radius))
    }

    fn other_than_zero(&mut self, value: FloatRef<'_>, row: usize, col: usize) -> PyResult<Bound<'py, PyAny>> {
        let negative = value.head.is_negative();
        if let Way::Arb { arbs: Some(arbs), templates, .. } = &mut self.way {
            return arbs.make(self.py, templates, normalised(value), ArbRadius::default());
        }
        match &self.way {
            Way::Mpfr(gmpy2) => match &gmpy2.layout {
                Some(layout) => {
                    let parts = Parts::Finite { negative, exponent: value.head.exponent(), limbs: value.limbs };
                    layout.make_mpfr(self.py, self.precision_bits, parts)
                }
                None => gmpy2.mpfr.bind(self.py).call1((
                    hexadecimal(value),
                    self.precision_bits,
                    16,
                    gmpy2.widest.bind(self.py),
                )),
            },
            Way::Mpf { new, class, mantissa } => {
                let (limbs, exponent) = odd(value);
                let integer = mantissa.make(self.py, &limbs)?;
                let parts = (u8::from(negative), integer, exponent, bit_length(&limbs)).into_pyobject(self.py)?;
                let number = new.call1((class,))?;
                number.setattr(intern!(self.py, "_mpf_"), parts)?;
                Ok(number)
            }
            Way::Arb { class, mantissa, .. } => {
                let (integer, exponent) = self.signed(mantissa, value)?;
                let parts = (integer, exponent).into_pyobject(self.py)?;
                class.call1((parts,))
            }
            Way::Fraction { class, mantissa } => {
                let (integer, exponent) = self.signed(mantissa, value)?;
                match u64::try_from(exponent) {
                    Ok(up) => class.call1((integer.lshift(up)?,)),
                    Err(_) => class.call1((integer, 1u8.into_pyobject(self.py)?.lshift(exponent.unsigned_abs())?)),
                }
            }
            Way::Float => Ok(PyFloat::new(self.py, double(value, self.precision_bits, row, col)?).into_any()),
            Way::LongDouble { numpy, bits } => long_double(numpy, value.to_float(self.precision_bits), *bits, row, col),
            Way::Decimal { class } => class.call1((self.decimal(value),)),
            Way::Text => Ok(PyString::new(self.py, &self.decimal(value)).into_any()),
        }
    }

    /// Enough digits to be read back.
    fn decimal(&self, value: FloatRef<'_>) -> String {
        let digits = (f64::from(self.precision_bits) * std::f64::consts::LOG10_2).ceil() as usize + 1;
        value.to_float(self.precision_bits).to_string_radix(10, Some(digits))
    }

    /// The number as a Python integer times a power of two.
    fn signed(&self, mantissa: &Mantissa<'py>, value: FloatRef<'_>) -> PyResult<(Bound<'py, PyAny>, i64)> {
        let (limbs, exponent) = odd(value);
        let integer = mantissa.make(self.py, &limbs)?;
        Ok((if value.head.is_negative() { integer.neg()? } else { integer }, exponent))
    }
}

/// The nearest double, ties to even, of the number at a row and a column.
///
/// # Errors
/// `OverflowError` where it is beyond the largest double.
pub fn double(value: FloatRef<'_>, precision_bits: u32, row: usize, col: usize) -> PyResult<f64> {
    let double = value.to_float(precision_bits).to_f64();
    if double.is_infinite() {
        let exponent = value.head.exponent();
        let message = format!("entry at row {row}, column {col} is about 2^{exponent}: too large for a float");
        return Err(PyOverflowError::new_err(message));
    }
    Ok(double)
}

/// The nearest `numpy.longdouble`, of `bits` bits, ties to even.
///
/// # Errors
/// As [`double`].
fn long_double<'py>(
    numpy: &Bound<'py, PyModule>,
    value: Float,
    bits: u32,
    row: usize,
    col: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (integer, exponent) = Float::with_val(bits, &value).to_integer_exp().unwrap_or_default();
    let mantissa = numpy.py().get_type::<PyInt>().call1((integer.to_string(),))?;
    let whole = numpy.call_method1("longdouble", (mantissa,))?;
    let top = i64::from(value.get_exp().unwrap_or(0));
    if top > numpy.call_method1("finfo", (numpy.getattr("longdouble")?,))?.getattr("maxexp")?.extract::<i64>()? {
        let message = format!("entry at row {row}, column {col} is about 2^{top}: too large for a numpy.longdouble");
        return Err(PyOverflowError::new_err(message));
    }
    numpy.call_method1("ldexp", (whole, exponent))
}

/// A number other than 0 without limbs of zeros below.
fn normalised(value: FloatRef<'_>) -> ExactArb<'_> {
    let low = value.limbs.iter().position(|&limb| limb != 0).unwrap_or(0);
    ExactArb { negative: value.head.is_negative(), exponent: value.head.exponent(), limbs: &value.limbs[low..] }
}

/// The significand as an odd integer, and the exponent that goes with it.
fn odd(value: FloatRef<'_>) -> (Vec<u64>, i64) {
    let low = value.limbs.iter().position(|&limb| limb != 0).unwrap_or(0);
    let zeros = low as i64 * i64::from(LIMB_BITS) + i64::from(value.limbs[low].trailing_zeros());
    let bits = value.limbs.len() as i64 * i64::from(LIMB_BITS);
    let mut limbs = vec![0; (bits - zeros).unsigned_abs().div_ceil(u64::from(LIMB_BITS)) as usize];
    shift_down(value.limbs, zeros, &mut limbs);
    (limbs, value.head.exponent() - bits + zeros)
}

/// MPFR's hexadecimal form: a significand below 1, and the exponent in digits after `@`.
fn hexadecimal(value: FloatRef<'_>) -> String {
    let exponent = value.head.exponent();
    // Digits are four bits: the point is moved so that the rest of the exponent is a multiple of four.
    let (digits, up) = (exponent.div_euclid(4) + 1, 4 - exponent.rem_euclid(4));
    let mut limbs = vec![0; value.limbs.len() + 1];
    shift_down(value.limbs, up - i64::from(LIMB_BITS), &mut limbs);
    let figures: String = limbs.iter().rev().map(|limb| format!("{limb:016x}")).collect();
    format!("{}0.{figures}@{digits}", if value.head.is_negative() { "-" } else { "" })
}
