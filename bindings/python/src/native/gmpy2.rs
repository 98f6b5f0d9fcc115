//! gmpy2's numbers, read where they lie and made through gmpy2's own C interface.
//!
//! An `mpfr` object of gmpy2 is a Python object head, an `mpfr_t`, a hash and a ternary value; an `mpz` is a head, an
//! `mpz_t` and a hash (gmpy2's header `gmpy2.h`). Both hold for as long as their object does and never change.
//! Before the first use, objects with known limbs must show them at these places; else, or with `SUNZI_GMPY2=portable`
//! in the environment, [`Gmpy2::layout`] is `None` and callers go through gmpy2's Python methods.

use crate::packages::loaded;
use gmp_mpfr_sys::gmp::mpz_t;
use gmp_mpfr_sys::mpfr::mpfr_t;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use std::ffi::{c_int, c_long, c_void};
use sunzi::advanced::math::float::limbs_for;

/// `exp` of a zero, a NaN and an infinity in an `mpfr_t`.
const EXPONENT_ZERO: i64 = i64::MIN + 1;
const EXPONENT_NAN: i64 = i64::MIN + 2;
const EXPONENT_INFINITE: i64 = i64::MIN + 3;

/// Places in the table of pointers that gmpy2 exports.
const MPZ_TYPE: usize = 0;
const MPFR_TYPE: usize = 4;
const NEW_MPFR: usize = 22;

/// An `mpfr` object.
#[repr(C)]
struct MpfrObject {
    head: [usize; 2],
    value: mpfr_t,
    hash: isize,
    ternary: c_int,
}

/// An `mpz` object.
#[repr(C)]
struct MpzObject {
    head: [usize; 2],
    value: mpz_t,
    hash: isize,
}

type NewMpfr = unsafe extern "C" fn(precision_bits: c_long, context: *mut c_void) -> *mut ffi::PyObject;

/// The module gmpy2, once it has been imported.
pub struct Gmpy2 {
    /// `gmpy2.mpfr`.
    pub mpfr: Py<PyType>,
    /// `gmpy2.mpz`.
    pub mpz: Py<PyType>,
    /// `gmpy2.mpq`.
    pub mpq: Py<PyType>,
    /// A context with the widest exponents: that of the caller may have narrow ones, or traps.
    pub widest: Py<PyAny>,
    /// Proof that the layout is the one stated above.
    pub layout: Option<Layout>,
}

/// A value permits reading and making objects of gmpy2 by their layout.
pub struct Layout {
    new_mpfr: NewMpfr,
}

/// A number of gmpy2, borrowed from its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts<'a> {
    /// 0.
    Zero,
    /// NaN.
    Nan,
    /// Plus or minus infinity.
    Infinite,
    /// `(-1)^negative * 0.limbs * 2^exponent`, least limb first, top bit of the last limb set for an `mpfr`.
    Finite {
        /// Whether it is below 0.
        negative: bool,
        /// The exponent; for an `mpz` 64 times the number of limbs.
        exponent: i64,
        /// The significand.
        limbs: &'a [u64],
    },
}

impl Gmpy2 {
    /// gmpy2, where it has been imported: else none of its objects can exist.
    pub fn loaded(py: Python<'_>) -> PyResult<Option<&'static Gmpy2>> {
        static STATE: PyOnceLock<Gmpy2> = PyOnceLock::new();
        if let Some(known) = STATE.get(py) {
            return Ok(Some(known));
        }
        match loaded(py, "gmpy2")? {
            Some(module) => STATE.get_or_try_init(py, || Gmpy2::open(&module)).map(Some),
            None => Ok(None),
        }
    }

    /// gmpy2, imported now where it was not.
    ///
    /// # Errors
    /// `ImportError` where it is not installed.
    pub fn import(py: Python<'_>) -> PyResult<&'static Gmpy2> {
        py.import("gmpy2")?;
        Ok(Gmpy2::loaded(py)?.expect("it has just been imported"))
    }

    fn open(module: &Bound<'_, PyModule>) -> PyResult<Gmpy2> {
        let class = |name: &str| -> PyResult<Py<PyType>> { Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind()) };
        let widest = PyDict::new(module.py());
        widest.set_item("emax", module.call_method0("get_emax_max")?)?;
        widest.set_item("emin", module.call_method0("get_emin_min")?)?;
        let widest = module.getattr("context")?.call((), Some(&widest))?.unbind();
        let (mpfr, mpz, mpq) = (class("mpfr")?, class("mpz")?, class("mpq")?);
        let mut gmpy2 = Gmpy2 { mpfr, mpz, mpq, widest, layout: None };
        let portable = std::env::var_os("SUNZI_GMPY2").is_some_and(|value| value == "portable");
        if !portable {
            gmpy2.layout = gmpy2.find_layout(module.py()).ok().flatten();
        }
        Ok(gmpy2)
    }

    /// The layout, where sizes, types and the contents of known numbers are as expected.
    fn find_layout(&self, py: Python<'_>) -> PyResult<Option<Layout>> {
        let size = |class: &Py<PyType>| class.bind(py).getattr("__basicsize__")?.extract::<usize>();
        let (mpfr_bytes, mpz_bytes) = (size_of::<MpfrObject>(), size_of::<MpzObject>());
        if size_of::<c_long>() != 8 || size(&self.mpfr)? != mpfr_bytes || size(&self.mpz)? != mpz_bytes {
            return Ok(None);
        }
        // SAFETY: the name is a C string; a capsule of this name holds the table that gmpy2.h describes.
        let table = unsafe { ffi::PyCapsule_Import(c"gmpy2._C_API".as_ptr(), 0) } as *const *mut c_void;
        if table.is_null() {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: the table has 30 entries in every version that has a capsule of this name.
        let (mpz_type, mpfr_type, new_mpfr) =
            unsafe { (*table.add(MPZ_TYPE), *table.add(MPFR_TYPE), *table.add(NEW_MPFR)) };
        let known = mpz_type == self.mpz.as_ptr().cast() && mpfr_type == self.mpfr.as_ptr().cast();
        if !known || new_mpfr.is_null() {
            return Ok(None);
        }
        // SAFETY: in addition to the types, which are where gmpy2.h has them, it names this entry GMPy_MPFR_New.
        let layout = Layout { new_mpfr: unsafe { std::mem::transmute::<*mut c_void, NewMpfr>(new_mpfr) } };
        Ok(self.agrees(py, &layout)?.then_some(layout))
    }

    /// Whether known numbers are read right, and a new one is printed right.
    fn agrees(&self, py: Python<'_>, layout: &Layout) -> PyResult<bool> {
        let mpfr = |text: &str| self.mpfr.bind(py).call1((text, 137, 16, self.widest.bind(py)));
        let limbs = [0x0fed_cba9_8765_4321 << 55, 0x0123_4567_89ab_cdef, 0x8000_0000_0000_0001];
        let digits = format!("{:016x}{:016x}{:016x}", limbs[2], limbs[1], limbs[0]);
        let number = mpfr(&format!("-0.{digits}@2"))?;
        let precision = layout.precision_bits(&number) == 137;
        let finite = Parts::Finite { negative: true, exponent: 8, limbs: &limbs };
        let mut same = precision && layout.mpfr(&number) == finite;
        for (text, want) in [("0", Parts::Zero), ("nan", Parts::Nan), ("-inf", Parts::Infinite)] {
            same = same && layout.mpfr(&mpfr(text)?) == want;
        }
        let integer = self.mpz.bind(py).call1((format!("-{digits}"), 16))?;
        same = same && layout.mpz(&integer) == Parts::Finite { negative: true, exponent: 192, limbs: &limbs };
        same = same && layout.mpz(&self.mpz.bind(py).call1((0,))?) == Parts::Zero;
        if !same {
            return Ok(false);
        }
        let made = layout.make_mpfr(py, 137, finite)?;
        let zero = layout.make_mpfr(py, 137, Parts::Zero)?;
        Ok(made.eq(&number)? && made.getattr("precision")?.extract::<u32>()? == 137 && zero.eq(0)?)
    }
}

impl Layout {
    /// Bits of an `mpfr` object.
    pub fn precision_bits(&self, object: &Bound<'_, PyAny>) -> u32 {
        // SAFETY: the caller hands over an `mpfr` object, and `self` proves where its `mpfr_t` lies.
        let value = unsafe { &(*object.as_ptr().cast::<MpfrObject>()).value };
        u32::try_from(value.prec).unwrap_or(u32::MAX)
    }

    /// The contents of an `mpfr` object.
    pub fn mpfr<'a>(&self, object: &'a Bound<'_, PyAny>) -> Parts<'a> {
        // SAFETY: as in `precision_bits`.
        let value = unsafe { &(*object.as_ptr().cast::<MpfrObject>()).value };
        match value.exp {
            EXPONENT_ZERO => Parts::Zero,
            EXPONENT_NAN => Parts::Nan,
            EXPONENT_INFINITE => Parts::Infinite,
            exponent => {
                let count = limbs_for(u32::try_from(value.prec).unwrap_or(0));
                // SAFETY: a regular number has this many limbs, which live as long as the object and never change.
                let limbs = unsafe { std::slice::from_raw_parts(value.d.as_ptr().cast::<u64>(), count) };
                Parts::Finite { negative: value.sign < 0, exponent, limbs }
            }
        }
    }

    /// The contents of an `mpz` object.
    pub fn mpz<'a>(&self, object: &'a Bound<'_, PyAny>) -> Parts<'a> {
        // SAFETY: the caller hands over an `mpz` object, and `self` proves where its `mpz_t` lies.
        let value = unsafe { &(*object.as_ptr().cast::<MpzObject>()).value };
        let count = value.size.unsigned_abs() as usize;
        if count == 0 {
            return Parts::Zero;
        }
        // SAFETY: an integer has this many limbs, which live as long as the object and never change.
        let limbs = unsafe { std::slice::from_raw_parts(value.d.as_ptr().cast::<u64>(), count) };
        Parts::Finite { negative: value.size < 0, exponent: count as i64 * 64, limbs }
    }

    /// A new `mpfr` object of `precision_bits` bits; `parts` has the limbs of that precision (asserted) in MPFR's form.
    ///
    /// # Errors
    /// `MemoryError`; `ValueError` for a precision that MPFR does not have.
    pub fn make_mpfr<'py>(
        &self,
        py: Python<'py>,
        precision_bits: u32,
        parts: Parts<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the function makes a new object of at least 2 bits without looking at a context, or sets an error.
        let object = unsafe { (self.new_mpfr)(c_long::from(precision_bits as i32), std::ptr::null_mut()) };
        // SAFETY: the function returns a new reference, or null with an error set.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, object) }?;
        // SAFETY: `self` proves where its fields lie; no other code has the new object.
        let MpfrObject { value, hash, ternary, .. } = unsafe { &mut *object.as_ptr().cast::<MpfrObject>() };
        if value.prec != c_long::from(precision_bits as i32) {
            return Err(PyMemoryError::new_err(format!("gmpy2 made a number of {} bits", value.prec)));
        }
        // Not computed yet, and exact: gmpy2 leaves the second as it was in an object used before.
        (*hash, *ternary) = (-1, 0);
        value.sign = 1;
        value.exp = EXPONENT_ZERO;
        match parts {
            Parts::Finite { negative, exponent, limbs } => {
                assert_eq!(limbs.len(), limbs_for(precision_bits), "limbs of {precision_bits} bits");
                // SAFETY: MPFR has allocated the limbs of the number's precision.
                let room = unsafe { std::slice::from_raw_parts_mut(value.d.as_ptr().cast::<u64>(), limbs.len()) };
                room.copy_from_slice(limbs);
                value.sign = if negative { -1 } else { 1 };
                value.exp = exponent;
            }
            Parts::Zero => {}
            Parts::Nan => value.exp = EXPONENT_NAN,
            Parts::Infinite => value.exp = EXPONENT_INFINITE,
        }
        Ok(object)
    }
}
