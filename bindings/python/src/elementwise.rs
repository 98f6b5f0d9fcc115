//! Elementary functions of all entries, each value rounded to nearest: those of MPFR.

use crate::arithmetic::{NoValue, mapped};
use crate::call::Call;
use crate::errors::OrRaise;
use crate::input::{Bits, Operand, ReadPart};
use crate::output::{ResultForm, Shape, give};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rug::Float;
use rug::float::{FreeCache, free_cache};

/// Entries between two looks for signals: at 5000 bits one may take a tenth of a millisecond.
const ENTRIES_AT_A_TIME: usize = 256;

/// Exponents of arguments of the functions that take as many bits of pi.
const REDUCED_EXPONENT: i32 = 100_000;

/// A function by its name in `sunzi`, and its value at a precision.
struct EntryFunction {
    name: &'static str,
    value: fn(&Float, u32) -> Float,
}

macro_rules! functions {
    ($($name:literal $method:ident,)*) => {
        &[
            EntryFunction { name: "sign", value: sign },
            $(EntryFunction { name: $name, value: |x, bits| Float::with_val(bits, x.$method()) }),*
        ]
    };
}

/// -1, 0 or 1.
fn sign(x: &Float, bits: u32) -> Float {
    Float::with_val(bits, x.cmp0().map_or(0, |order| order as i32))
}

/// The functions that are there.
const FUNCTIONS: &[EntryFunction] = functions! {
    "absolute" abs_ref,
    "arccos" acos_ref,
    "arccosh" acosh_ref,
    "arcsin" asin_ref,
    "arcsinh" asinh_ref,
    "arctan" atan_ref,
    "arctanh" atanh_ref,
    "cbrt" cbrt_ref,
    "ceil" ceil_ref,
    "cos" cos_ref,
    "cosh" cosh_ref,
    "exp" exp_ref,
    "expm1" exp_m1_ref,
    "floor" floor_ref,
    "log" ln_ref,
    "log10" log10_ref,
    "log1p" ln_1p_ref,
    "log2" log2_ref,
    "reciprocal" recip_ref,
    "rint" round_even_ref,
    "sin" sin_ref,
    "sinh" sinh_ref,
    "sqrt" sqrt_ref,
    "square" square_ref,
    "tan" tan_ref,
    "tanh" tanh_ref,
    "trunc" trunc_ref,
};

impl EntryFunction {
    /// The value, rounded to nearest at `bits` bits.
    fn at(&self, x: &Float, bits: u32) -> Result<Float, NoValue> {
        let shown = |x: &Float| format!("{:.6e}", x);
        let top = x.get_exp().unwrap_or(0);
        if matches!(self.name, "sin" | "cos" | "tan") && top > REDUCED_EXPONENT {
            return Err(NoValue::Undefined(format!(
                "{} is only computed for numbers below 2^{REDUCED_EXPONENT}, but the entry is about 2^{top}",
                self.name
            )));
        }
        if self.is_pole(x) {
            return Err(NoValue::Undefined(format!("{} of {} is infinite", self.name, x.to_f64())));
        }
        let value = (self.value)(x, bits);
        // Of a number other than 0 these two are not 0, unless their exponents are below all that there are.
        let vanishes = value.is_zero() && (self.name == "exp" || self.name == "square" && !x.is_zero());
        if value.is_nan() {
            return Err(NoValue::Undefined(format!("{} of {} is not a real number", self.name, shown(x))));
        }
        match value.is_infinite() {
            true => Err(NoValue::TooLarge),
            false if vanishes => Err(NoValue::TooSmall),
            false => Ok(value),
        }
    }

    /// Whether the function grows beyond all bounds there.
    fn is_pole(&self, x: &Float) -> bool {
        match self.name {
            "log" | "log2" | "log10" | "reciprocal" => x.is_zero(),
            "log1p" => *x == -1,
            "arctanh" => *x == 1 || *x == -1,
            _ => false,
        }
    }
}

/// The native part of the functions of entries in `sunzi`.
#[pyfunction]
pub fn elementwise<'py>(
    name: &str,
    a: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = Call::new(options)?;
    let py = call.py();
    let function = FUNCTIONS.iter().find(|function| function.name == name);
    let function = function.ok_or_else(|| PyValueError::new_err(format!("there is no function '{name}'")))?;
    let a = Operand::of(a, "a", ReadPart::Whole)?;
    let bits = call.precision_bits(&[a.natural_bits])?;
    let shape = Shape { container: a.container, kind: a.kind };
    let view = a.view(py, Bits::Round(bits))?;
    let values = mapped(py, ENTRIES_AT_A_TIME, &view, bits, |x| function.at(x, bits));
    // MPFR keeps what it has computed of pi and log 2 for the thread.
    free_cache(FreeCache::Local);
    let values = values?.into_whole().or_raise(py)?;
    give(py, values, ResultForm::General, shape)
}
