//! `mpf_t`: exponents count limbs, the top limb need not be full, and a number has up to one limb more than its
//! precision, which GMP's own results fill.

use crate::array::entry::{Entry, Flaw, Value, check_exponent};
use std::ffi::{c_int, c_long};
use sunzi::advanced::math::float::limbs_for;
use sunzi::{Head, MAXIMUM_PRECISION_BITS};

/// The members of `mpf_t`, which are part of GMP's binary interface.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MpfEntry {
    /// Limbs of the precision; one more is there.
    precision: c_int,
    /// Limbs in use, negative for negative numbers.
    size: c_int,
    /// Limbs before the point.
    exponent: c_long,
    limbs: *mut u64,
}

const _: () = assert!(size_of::<MpfEntry>() == size_of::<gmp_mpfr_sys::gmp::mpf_t>());

// SAFETY: numbers and a pointer, which is only followed where its target is proven to be this thread's.
unsafe impl Send for MpfEntry {}
// SAFETY: as above.
unsafe impl Sync for MpfEntry {}

impl MpfEntry {
    /// Limbs in use: they may be more than its precision, where that was lowered by `mpf_set_prec_raw`.
    #[inline]
    fn used(self) -> Result<usize, Flaw> {
        let used = self.size.unsigned_abs();
        let most = (MAXIMUM_PRECISION_BITS / 64) as c_int;
        if (2..=most).contains(&self.precision) && used <= most as u32 && !self.limbs.is_null() {
            return Ok(used as usize);
        }
        Err(self.flaw())
    }

    /// The flaw of the number.
    #[cold]
    fn flaw(self) -> Flaw {
        let used = self.size.unsigned_abs();
        if !(2..=MAXIMUM_PRECISION_BITS / 64).contains(&self.precision.unsigned_abs()) || self.precision < 0 {
            let message = format!("has a precision of {} limbs; it may be uninitialised", self.precision);
            return Flaw::Malformed(message);
        }
        Flaw::Malformed(format!("uses {used} limbs; it may be uninitialised"))
    }
}

impl Entry for MpfEntry {
    fn bits(self) -> Result<u32, Flaw> {
        Ok(self.used()?.max(1) as u32 * 64)
    }

    /// A limb more than `mpf_get_prec` returns: as many bits as a sum of GMP's can have, whose top limb may be full.
    /// Where the top limb is not full, the lowest bits lie in the limb beyond the precision.
    fn result_bits(self) -> Result<u32, Flaw> {
        self.used()?;
        Ok(self.precision as u32 * 64)
    }

    #[inline]
    unsafe fn read(self, precision_bits: u32, limbs: &mut [u64]) -> Result<Head, Flaw> {
        let used = self.used()?;
        if used == 0 {
            limbs.fill(0);
            return Ok(Head::ZERO);
        }
        if used as u64 * 64 > u64::from(precision_bits) {
            return Err(Flaw::Wider);
        }
        let (low, own) = limbs.split_at_mut(limbs.len() - used);
        if !low.is_empty() {
            low.fill(0); // a call, also for nothing
        }
        // SAFETY: the entry's limbs, as many as its size states, by contract; no thread writes to them.
        let source = unsafe { std::slice::from_raw_parts(self.limbs, used) };
        let top = source[used - 1];
        if top == 0 {
            return Err(Flaw::Malformed("has a top limb of 0; it may be uninitialised".into()));
        }
        let (shift, mut below) = (top.leading_zeros(), 0);
        for (own, &limb) in own.iter_mut().zip(source) {
            // In two steps: a limb cannot be shifted by all of its bits.
            *own = limb << shift | (below >> 1) >> (63 - shift);
            below = limb;
        }
        let exponent = self.exponent.saturating_mul(64).saturating_sub(shift.into());
        Ok(Head::new(self.size < 0, check_exponent(exponent)?))
    }

    unsafe fn write(place: *mut Self, value: Value<'_>) -> Result<(), Flaw> {
        // SAFETY: an initialised entry that no one else uses, by contract.
        let mut entry = unsafe { place.read() };
        let own_bits = entry.result_bits()?.min(value.precision_bits);
        let count = limbs_for(own_bits);
        // SAFETY: it has room for one limb more than its precision, by contract, which is one more than those of
        // `own_bits`; no one else uses them.
        let limbs = unsafe { std::slice::from_raw_parts_mut(entry.limbs, count + 1) };
        let (number, extra) = limbs.split_at_mut(count);
        let head = value.fit(own_bits, number);
        if head.is_zero() {
            (entry.size, entry.exponent) = (0, 0);
        } else {
            let exponent = check_exponent(head.exponent())?;
            entry.exponent = exponent.div_euclid(64) + i64::from(exponent.rem_euclid(64) != 0);
            let down = (entry.exponent * 64 - exponent) as u32;
            extra[0] = 0;
            let size = place_limbs(limbs, down);
            entry.size = if head.is_negative() { -size } else { size };
        }
        // SAFETY: as for the read above.
        unsafe { place.write(entry) };
        Ok(())
    }
}

/// Moves a significand, whose limbs have a free one above them, `down` bits (below 64) from the place where the free
/// limb is not needed, and cuts limbs of 0 off at its lower end. Returns the limbs in use.
fn place_limbs(limbs: &mut [u64], down: u32) -> c_int {
    let count = limbs.len() - 1;
    let mut used = count;
    if down > 0 {
        // Limb by limb from the top: one limb up, then `down` bits down.
        for at in (0..=count).rev() {
            let above = if at < count { limbs[at] << (64 - down) } else { 0 };
            let below = if at > 0 { limbs[at - 1] >> down } else { 0 };
            limbs[at] = above | below;
        }
        used = count + 1;
    }
    let zeros = limbs[..used].iter().take_while(|&&limb| limb == 0).count();
    limbs.copy_within(zeros..used, 0);
    (used - zeros) as c_int
}
