//! python-flint's exact balls, read where they lie.
//!
//! An `arb` object of python-flint is a Python object head, a pointer to methods, and an `arb_t` (FLINT's header
//! `arb_types.h`): exponent, size and significand of the midpoint, exponent and significand of the radius. It holds for
//! as long as its object does and never changes. Before the first use, objects with known numbers must show them at
//! these places; else [`Arbs::loaded`] is `None`, and callers go through python-flint's methods. They do so as well for
//! balls with a radius, and for numbers that are not finite or have exponents of many words.

use crate::packages::loaded;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyType};

/// An `arb` object.
#[repr(C)]
struct ArbObject {
    head: [usize; 2],
    methods: usize,
    exponent: i64,
    /// Twice the number of limbs, and 1 for a negative number.
    size: usize,
    /// One or two limbs, or an allocated number of limbs and a pointer to them.
    limbs: [u64; 2],
    radius_exponent: i64,
    radius: u64,
}

/// Exponents of at least this magnitude, and below its negative, are pointers, or stand for what is not finite.
const LARGEST_EXPONENT: i64 = 1 << 60;

/// A value permits reading objects of python-flint by their layout.
pub struct Arbs {
    class: Py<PyType>,
}

/// A finite number that is exact, borrowed from its object: `(-1)^negative * 0.limbs * 2^exponent`, least limb first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactArb<'a> {
    pub negative: bool,
    pub exponent: i64,
    /// Empty for 0.
    pub limbs: &'a [u64],
}

impl Arbs {
    /// The layout, where python-flint has been imported and has it.
    ///
    /// # Errors
    /// Exceptions of python-flint.
    pub fn loaded(py: Python<'_>) -> PyResult<Option<&'static Arbs>> {
        static STATE: PyOnceLock<Option<Arbs>> = PyOnceLock::new();
        if let Some(known) = STATE.get(py) {
            return Ok(known.as_ref());
        }
        match loaded(py, "flint")? {
            Some(module) => Ok(STATE.get_or_try_init(py, || Arbs::open(&module))?.as_ref()),
            None => Ok(None),
        }
    }

    fn open(module: &Bound<'_, PyModule>) -> PyResult<Option<Arbs>> {
        let class = module.getattr("arb")?.cast_into::<PyType>()?;
        if size_of::<usize>() != 8 || class.getattr("__basicsize__")?.extract::<usize>()? != size_of::<ArbObject>() {
            return Ok(None);
        }
        let arbs = Arbs { class: class.unbind() };
        Ok(arbs.agrees(module.py()).unwrap_or(false).then_some(arbs))
    }

    /// Whether known numbers are read right: of no limb, one, two and three, and a ball with a radius.
    fn agrees(&self, py: Python<'_>) -> PyResult<bool> {
        let class = self.class.bind(py);
        let top = 0x8765_4321_0fed_cba9;
        let number = |mantissa: &str, exponent: i64| -> PyResult<Bound<'_, PyAny>> {
            let mantissa = py.get_type::<PyInt>().call1((mantissa, 16))?;
            class.call1(((mantissa, exponent),))
        };
        let cases: [(&str, i64, &[u64]); 4] = [
            ("0", 0, &[]),
            ("-87654321_0fedcba9", 36, &[top]),
            ("87654321_0fedcba9_00000000_00000003", 164, &[3, top]),
            ("-87654321_0fedcba9_00000000_00000000_11112222_33334445", 228, &[0x1111_2222_3333_4445, 0, top]),
        ];
        for (digits, exponent, limbs) in cases {
            let object = number(digits, exponent - 64 * limbs.len() as i64)?;
            let want = ExactArb { negative: digits.starts_with('-'), exponent, limbs };
            if self.exact(&object) != Some(want) {
                return Ok(false);
            }
        }
        let ball = class.call1((3, 0.25))?;
        let infinite = class.call1(("inf",))?;
        Ok(self.exact(&ball).is_none() && self.exact(&infinite).is_none())
    }

    /// The number that an `arb` object is, where it is exact and finite.
    pub fn exact<'a>(&self, object: &'a Bound<'_, PyAny>) -> Option<ExactArb<'a>> {
        if !object.get_type().is(self.class.bind(object.py())) {
            return None;
        }
        // SAFETY: the object is an `arb`, and `self` proves where its fields lie; the object outlives the reference.
        let arb = unsafe { &*object.as_ptr().cast::<ArbObject>() };
        let count = arb.size >> 1;
        let is_plain = arb.exponent.unsigned_abs() < LARGEST_EXPONENT.unsigned_abs();
        if arb.radius != 0 || arb.radius_exponent != 0 || !is_plain || count == 0 && arb.exponent != 0 {
            return None;
        }
        let limbs = match count {
            0..=2 => &arb.limbs[..count],
            // SAFETY: of more than two limbs the second word points to them; they live as long as the object.
            _ => unsafe { std::slice::from_raw_parts(arb.limbs[1] as *const u64, count) },
        };
        Some(ExactArb { negative: arb.size & 1 == 1, exponent: arb.exponent, limbs })
    }
}
