//! python-flint's balls: exact ones read where they lie, new ones written into copies that FLINT has made.
//!
//! An `arb` object of python-flint is a Python object head, a pointer to methods, and an `arb_t` (FLINT's header
//! `arb_types.h`): exponent, size and significand of the midpoint, exponent and significand of the radius. It holds for
//! as long as its object does and never changes. Before the first use, objects with known numbers must show them at
//! these places, and new ones must be equal to those that python-flint makes; else, or with `SUNZI_FLINT=portable` in
//! the environment, [`Arbs::loaded`] is `None`, and callers go through python-flint's methods. They do so as well to
//! read balls with a radius, and numbers that are not finite or have exponents of many words. FLINT itself allocates
//! and frees all limbs.

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

/// Bits of the significand of a radius.
const RADIUS_BITS: u32 = 30;

/// A value permits reading and making objects of python-flint by their layout.
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

/// A radius `significand * 2^(exponent - 30)`; of a radius other than 0 the significand has 30 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArbRadius {
    significand: u64,
    exponent: i64,
}

impl ArbRadius {
    /// The least radius that is at least `0.limb * 2^exponent`, where the limb has its top bit set.
    pub fn at_least(limb: u64, exponent: i64) -> ArbRadius {
        let dropped_bits = u64::BITS - RADIUS_BITS;
        let floor = limb >> dropped_bits;
        let significand = if floor << dropped_bits == limb { floor } else { floor + 1 };
        match significand >> RADIUS_BITS {
            0 => ArbRadius { significand, exponent },
            _ => ArbRadius { significand: significand >> 1, exponent: exponent + 1 },
        }
    }
}

/// Objects of which copies have the room for numbers of as many limbs.
#[derive(Default)]
pub struct ArbTemplates<'py> {
    by_limbs: Vec<Option<Bound<'py, PyAny>>>,
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
        let portable = std::env::var_os("SUNZI_FLINT").is_some_and(|value| value == "portable");
        if portable
            || size_of::<usize>() != 8
            || class.getattr("__basicsize__")?.extract::<usize>()? != size_of::<ArbObject>()
        {
            return Ok(None);
        }
        let arbs = Arbs { class: class.unbind() };
        Ok(arbs.agrees(module.py()).unwrap_or(false).then_some(arbs))
    }

    /// Whether known numbers are read right, of no limb, one, two and three, and new ones made right, with radii too.
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
        if self.exact(&ball).is_some() || self.exact(&infinite).is_some() {
            return Ok(false);
        }
        let mut templates = ArbTemplates::default();
        for (digits, exponent, limbs) in cases.into_iter().filter(|(.., limbs)| !limbs.is_empty()) {
            let known = number(digits, exponent - 64 * limbs.len() as i64)?;
            let want = ExactArb { negative: digits.starts_with('-'), exponent, limbs };
            let made = self.make(py, &mut templates, want, ArbRadius::default())?;
            let wide = self.make(py, &mut templates, want, ArbRadius::at_least((5 << 61) + 1, -7))?;
            // 5/8 of 2^-7, rounded up to 30 bits.
            let radius = class.call1((((5u64 << 27) + 1, -37),))?;
            let same = made.eq(&known)? && wide.call_method0("mid")?.eq(&known)?;
            if !same || !wide.call_method0("rad")?.eq(radius)? || !made.call_method0("is_exact")?.is_truthy()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A new `arb` object with this midpoint, which is not 0 and whose limbs have the top bit of the last one set and
    /// the first one other than 0 (asserted), and this radius.
    ///
    /// # Errors
    /// Exceptions of python-flint, such as `MemoryError`.
    pub fn make<'py>(
        &self,
        py: Python<'py>,
        templates: &mut ArbTemplates<'py>,
        midpoint: ExactArb<'_>,
        radius: ArbRadius,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ExactArb { negative, exponent, limbs } = midpoint;
        let count = limbs.len();
        assert!(limbs.first().is_some_and(|&limb| limb != 0) && limbs[count - 1] >> 63 == 1, "a normalised number");
        assert!(exponent.abs() < LARGEST_EXPONENT && radius.exponent.abs() < LARGEST_EXPONENT, "small exponents");
        let class = self.class.bind(py);
        if templates.by_limbs.len() <= count {
            templates.by_limbs.resize(count + 1, None);
        }
        if templates.by_limbs[count].is_none() {
            // An odd number has no limb that FLINT would leave out.
            let whole = 1u8.into_pyobject(py)?.lshift(64 * count)?.sub(1)?;
            templates.by_limbs[count] = Some(class.call1(((whole, 0),))?);
        }
        let template = templates.by_limbs[count].as_ref().expect("it is there now");
        let object = class.call1((template,))?;
        assert!(!object.is(template) && object.get_type().is(class), "a new object");
        // SAFETY: the object is a new `arb`, which no other code has, and `self` proves where its fields lie.
        let arb = unsafe { &mut *object.as_ptr().cast::<ArbObject>() };
        assert_eq!(arb.size >> 1, count, "limbs of a copy");
        match count {
            1 | 2 => arb.limbs[..count].copy_from_slice(limbs),
            // SAFETY: of more than two limbs the second word points to them, which FLINT has allocated for this object.
            _ => unsafe { std::slice::from_raw_parts_mut(arb.limbs[1] as *mut u64, count) }.copy_from_slice(limbs),
        }
        (arb.exponent, arb.size) = (exponent, count << 1 | usize::from(negative));
        (arb.radius_exponent, arb.radius) = (radius.exponent, radius.significand);
        Ok(object)
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
