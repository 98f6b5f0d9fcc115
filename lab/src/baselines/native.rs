//! Numbers of the C libraries as Rust values that free themselves: `fmpz`, `arf` and `mpf`.
//!
//! Each type promises that its number is initialised as long as it lives; the operations are the
//! few that the baselines need.

use std::ffi::c_long;
#[cfg(feature = "blas")]
use std::mem::MaybeUninit;

#[cfg(feature = "blas")]
use gmp_mpfr_sys::gmp::{self, mpf_t};
use gmp_mpfr_sys::mpfr;
use rug::Float;

use super::sys::{self, arf_struct, fmpz};

/// A FLINT integer. A small one is the word itself; a large one owns memory.
#[repr(transparent)]
pub(super) struct Fmpz(pub(super) fmpz);

impl Fmpz {
    /// `count` zeros, which need no memory of their own yet.
    pub(super) fn zeros(count: usize) -> Vec<Self> {
        std::iter::repeat_with(|| Self(0)).take(count).collect()
    }
}

impl Drop for Fmpz {
    fn drop(&mut self) {
        // SAFETY: the number is initialised and not used again.
        unsafe { sys::fmpz_clear(&raw mut self.0) }
    }
}

/// A FLINT big float.
pub(super) struct Arf(arf_struct);

// SAFETY: an `arf` owns its memory, FLINT lets one thread change or free what another made, and
// reading a number changes nothing in it.
unsafe impl Send for Arf {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Arf {}

impl Arf {
    /// The number zero.
    pub(super) fn zero() -> Self {
        let mut raw = arf_struct::default();
        // SAFETY: `raw` is ours and its old content needs no freeing.
        unsafe { sys::arf_init(&raw mut raw) };
        Self(raw)
    }

    /// The same number, exactly.
    pub(super) fn from_float(float: &Float) -> Self {
        let mut number = Self::zero();
        // SAFETY: both numbers are initialised.
        unsafe { sys::arf_set_mpfr(&raw mut number.0, float.as_raw()) };
        number
    }

    /// The number rounded to nearest at a precision.
    pub(super) fn to_float(&self, precision_bits: u32) -> Float {
        let mut float = Float::new(precision_bits);
        // SAFETY: both numbers are initialised.
        unsafe { sys::arf_get_mpfr(float.as_raw_mut(), &raw const self.0, mpfr::rnd_t::RNDN) };
        float
    }

    /// The number as FLINT's functions take it.
    pub(super) fn as_raw(&self) -> *const arf_struct {
        &raw const self.0
    }

    /// The number as FLINT's functions set it; it must stay initialised.
    pub(super) fn as_raw_mut(&mut self) -> *mut arf_struct {
        &raw mut self.0
    }

    /// The least e with `|x| < 2^e`; `None` for zero.
    pub(super) fn exponent(&self) -> Option<i64> {
        // SAFETY: the number is initialised; an empty mantissa means zero, as inputs are finite.
        (self.0.size != 0).then(|| unsafe { sys::arf_abs_bound_lt_2exp_si(&raw const self.0) })
    }

    /// Sets an integer to `x 2^-exponent`, cut towards zero.
    pub(super) fn truncate_to(&self, integer: &mut Fmpz, exponent: i64) {
        // SAFETY: both numbers are initialised.
        unsafe { sys::arf_get_fmpz_fixed_si(&raw mut integer.0, &raw const self.0, exponent) };
    }

    /// Becomes `integer 2^exponent`, rounded to nearest.
    pub(super) fn set_scaled(&mut self, integer: &fmpz, exponent: c_long, precision_bits: c_long) {
        // A word below 2^62 in magnitude is an `fmpz` as it stands; sums of MPFR exponents
        // reach that only where MPFR itself would overflow.
        let exponent: fmpz = exponent;
        // SAFETY: all numbers are initialised, and `exponent` is a valid small `fmpz`.
        unsafe {
            let round = sys::arf_rnd_t_ARF_RND_NEAR;
            sys::arf_set_round_fmpz_2exp(&raw mut self.0, integer, &exponent, precision_bits, round);
        }
    }
}

impl Drop for Arf {
    fn drop(&mut self) {
        // SAFETY: the number is initialised and not used again.
        unsafe { sys::arf_clear(&raw mut self.0) }
    }
}

/// A GMP big float, which rounds towards zero and keeps at least its precision.
#[cfg(feature = "blas")]
pub(super) struct Mpf(mpf_t);

// SAFETY: an `mpf` owns its memory, which comes from the process-wide allocator, and reading a
// number changes nothing in it.
#[cfg(feature = "blas")]
unsafe impl Send for Mpf {}
// SAFETY: as above; shared references only read.
#[cfg(feature = "blas")]
unsafe impl Sync for Mpf {}

#[cfg(feature = "blas")]
impl Mpf {
    /// The number zero, of a precision.
    pub(super) fn zero(precision_bits: u32) -> Self {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `mpf_init2` initialises the whole number.
        unsafe {
            gmp::mpf_init2(raw.as_mut_ptr(), precision_bits.into());
            Self(raw.assume_init())
        }
    }

    /// `count` zeros of one precision.
    pub(super) fn zeros(count: usize, precision_bits: u32) -> Vec<Self> {
        std::iter::repeat_with(|| Self::zero(precision_bits)).take(count).collect()
    }

    /// The same number at the same precision, exactly.
    pub(super) fn from_float(float: &Float) -> Self {
        let mut number = Self::zero(float.prec());
        // SAFETY: both numbers are initialised.
        unsafe { mpfr::get_f(&raw mut number.0, float.as_raw(), mpfr::rnd_t::RNDN) };
        number
    }

    /// The number rounded to nearest at a precision.
    pub(super) fn to_float(&self, precision_bits: u32) -> Float {
        let mut float = Float::new(precision_bits);
        // SAFETY: both numbers are initialised.
        unsafe { mpfr::set_f(float.as_raw_mut(), &raw const self.0, mpfr::rnd_t::RNDN) };
        float
    }

    /// Whether the number is zero.
    pub(super) fn is_zero(&self) -> bool {
        self.0.size == 0
    }

    /// Becomes the square root of the sum of squares; `square` is scratch of the same precision.
    pub(super) fn set_norm(&mut self, entries: &[Self], square: &mut Self) {
        let (norm, square) = (&raw mut self.0, &raw mut square.0);
        // SAFETY: all numbers are initialised; GMP lets result and operand be the same.
        unsafe {
            gmp::mpf_set_ui(norm, 0);
            for entry in entries {
                gmp::mpf_mul(square, &raw const entry.0, &raw const entry.0);
                gmp::mpf_add(norm, norm, square);
            }
            gmp::mpf_sqrt(norm, norm);
        }
    }

    /// Becomes `entry / divisor`, for a divisor that is not zero.
    pub(super) fn set_quotient(&mut self, entry: &Self, divisor: &Self) {
        assert!(!divisor.is_zero(), "division by a zero norm");
        // SAFETY: all numbers are initialised and the divisor is not zero.
        unsafe { gmp::mpf_div(&raw mut self.0, &raw const entry.0, &raw const divisor.0) }
    }

    /// Sets an integer to `x 2^shift_bits`, cut towards zero; the number itself is scaled too.
    pub(super) fn scale_to(&mut self, integer: &mut Fmpz, shift_bits: u64) {
        let raw = &raw mut self.0;
        // SAFETY: both numbers are initialised; GMP lets result and operand be the same.
        unsafe {
            gmp::mpf_mul_2exp(raw, raw, shift_bits);
            sys::fmpz_set_mpf(&raw mut integer.0, raw);
        }
    }

    /// Becomes `integer 2^-shift_bits left right`.
    pub(super) fn set_restored(&mut self, integer: &Fmpz, shift_bits: u64, left: &Self, right: &Self) {
        let raw = &raw mut self.0;
        // SAFETY: all numbers are initialised; GMP lets result and operand be the same.
        unsafe {
            sys::fmpz_get_mpf(raw, &raw const integer.0);
            gmp::mpf_div_2exp(raw, raw, shift_bits);
            gmp::mpf_mul(raw, raw, &raw const left.0);
            gmp::mpf_mul(raw, raw, &raw const right.0);
        }
    }
}

#[cfg(feature = "blas")]
impl Drop for Mpf {
    fn drop(&mut self) {
        // SAFETY: the number is initialised and not used again.
        unsafe { gmp::mpf_clear(&raw mut self.0) }
    }
}
