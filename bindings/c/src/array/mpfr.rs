//! `mpfr_t`: its significand has the very form of the library's, so that reading is a copy of limbs.

use crate::array::entry::{Entry, Flaw, Value, check_exponent, copy_limbs};
use std::ffi::{c_int, c_long};
use sunzi::advanced::math::float::limbs_for;
use sunzi::{Head, MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS};

/// The members of `mpfr_t`, which are part of MPFR's binary interface.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MpfrEntry {
    precision: c_long,
    sign: c_int,
    exponent: c_long,
    limbs: *mut u64,
}

const _: () = assert!(size_of::<MpfrEntry>() == size_of::<gmp_mpfr_sys::mpfr::mpfr_t>());

// Exponents below the regular ones stand for the other values.
const ZERO: c_long = -c_long::MAX;
const NAN: c_long = ZERO + 1;
const INFINITE: c_long = ZERO + 2;

// SAFETY: numbers and a pointer, which is only followed where its target is proven to be this thread's.
unsafe impl Send for MpfrEntry {}
// SAFETY: as above.
unsafe impl Sync for MpfrEntry {}

impl MpfrEntry {
    #[inline]
    fn check(self) -> Result<u32, Flaw> {
        if (1..=c_long::from(MAXIMUM_PRECISION_BITS)).contains(&self.precision) && !self.limbs.is_null() {
            return Ok(self.precision as u32);
        }
        Err(self.flaw())
    }

    /// The flaw of the number.
    #[cold]
    fn flaw(self) -> Flaw {
        if !(1..=c_long::from(MAXIMUM_PRECISION_BITS)).contains(&self.precision) {
            // The first two members of an `mpf_t` are two numbers of half the size.
            let message = format!("has a precision of {} bits; it may be uninitialised, or an mpf_t", self.precision);
            return Flaw::Malformed(message);
        }
        Flaw::Malformed("has no limbs; it may be uninitialised".into())
    }
}

impl Entry for MpfrEntry {
    fn bits(self) -> Result<u32, Flaw> {
        self.check()
    }

    fn result_bits(self) -> Result<u32, Flaw> {
        self.check()
    }

    #[inline]
    unsafe fn read(self, precision_bits: u32, limbs: &mut [u64]) -> Result<Head, Flaw> {
        let own_bits = self.check()?;
        match self.exponent {
            ZERO => {
                limbs.fill(0);
                return Ok(Head::ZERO);
            }
            NAN => return Err(Flaw::NotFinite("NaN")),
            INFINITE => return Err(Flaw::NotFinite("infinite")),
            _ if own_bits > precision_bits => return Err(Flaw::Wider),
            _ => {}
        }
        let (low, own) = limbs.split_at_mut(limbs.len() - limbs_for(own_bits));
        if !low.is_empty() {
            low.fill(0); // a call, also for nothing
        }
        // SAFETY: the entry's limbs, as many as its precision needs, by contract; no thread writes to them.
        copy_limbs(own, unsafe { std::slice::from_raw_parts(self.limbs, own.len()) });
        let spare = own.len() as u32 * 64 - own_bits;
        if own[own.len() - 1] >> 63 == 0 || own[0] & !(u64::MAX << spare) != 0 {
            return Err(Flaw::Malformed("has a significand that is not normalised: is it initialised?".into()));
        }
        Ok(Head::new(self.sign < 0, check_exponent(self.exponent)?))
    }

    /// A regular number of just that precision.
    #[inline(always)]
    unsafe fn read_plain(place: *const Self, precision_bits: u32, limbs: &mut [u64]) -> Option<Head> {
        // SAFETY: an initialised entry, by contract.
        let MpfrEntry { precision, sign, exponent, limbs: source } = unsafe { place.read() };
        // Exponents of zeros, NaN and infinities lie far beyond those of a matrix.
        let regular = exponent.unsigned_abs() <= MAXIMUM_EXPONENT as u64;
        if precision != c_long::from(precision_bits) || !regular || source.is_null() {
            return None;
        }
        // SAFETY: the entry's limbs, as many as its precision needs, by contract; no thread writes to them.
        copy_limbs(limbs, unsafe { std::slice::from_raw_parts(source, limbs.len()) });
        let spare = limbs.len() as u32 * 64 - precision_bits;
        let normalised = limbs[limbs.len() - 1] >> 63 == 1 && limbs[0] & !(u64::MAX << spare) == 0;
        normalised.then(|| Head::new(sign < 0, exponent))
    }

    unsafe fn write(place: *mut Self, value: Value<'_>) -> Result<(), Flaw> {
        // SAFETY: an initialised entry that no one else uses, by contract.
        let mut entry = unsafe { place.read() };
        let own_bits = entry.check()?;
        // SAFETY: it has room for the limbs of its precision, by contract; no one else uses them.
        let limbs = unsafe { std::slice::from_raw_parts_mut(entry.limbs, limbs_for(own_bits)) };
        let head = value.fit(own_bits, limbs);
        entry.sign = if head.is_negative() { -1 } else { 1 };
        entry.exponent = if head.is_zero() { ZERO } else { check_exponent(head.exponent())? };
        // SAFETY: as for the read above.
        unsafe { place.write(entry) };
        Ok(())
    }
}
