//! Descriptions of matrices, and heads of raw numbers.

use crate::types::*;
use std::ffi::{c_int, c_void};
use sunzi::Head;
use sunzi::advanced::math::float::limbs_for;

/// A matrix whose entries are `mpfr_t`, the first at `entries`.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_mpfr_matrix(
    layout: i32,
    rows: i64,
    cols: i64,
    entries: *const c_void,
    ld: i64,
) -> sunzi_matrix {
    described((SUNZI_MPFR, layout), (rows, cols, ld), entries)
}

/// A matrix whose entries are `mpf_t`, the first at `entries`.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_mpf_matrix(layout: i32, rows: i64, cols: i64, entries: *const c_void, ld: i64) -> sunzi_matrix {
    described((SUNZI_MPF, layout), (rows, cols, ld), entries)
}

/// A matrix of raw numbers: the entry of index i has the head `heads[i]` and the limbs from `limbs[i * w]` on, where
/// `w = sunzi_limbs_for(precision_bits)`. Operands of this form are read where they are, without a copy.
///
/// A number is `(-1)^sign * 0.s * 2^exponent`: s is the significand, least limb first, with the top bit of the last
/// limb set and the bits below the precision 0. `sunzi_head` packs sign and exponent; the number 0 is the head 0 with
/// limbs 0.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_limb_matrix(
    layout: i32,
    rows: i64,
    cols: i64,
    heads: *const u64,
    limbs: *const u64,
    ld: i64,
    precision_bits: i64,
) -> sunzi_matrix {
    let matrix = described((SUNZI_LIMBS, layout), (rows, cols, ld), heads.cast());
    sunzi_matrix { limbs: limbs.cast_mut(), precision_bits, ..matrix }
}

fn described((format, layout): (i32, i32), (rows, cols, ld): (i64, i64, i64), first: *const c_void) -> sunzi_matrix {
    let (entries, limbs) = (first.cast_mut(), std::ptr::null_mut());
    sunzi_matrix { format, layout, rows, cols, ld, entries, limbs, precision_bits: 0 }
}

/// Limbs of a number of `precision_bits` bits; 0 for a precision below 1.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_limbs_for(precision_bits: i64) -> i64 {
    u32::try_from(precision_bits).map_or(0, |bits| limbs_for(bits) as i64)
}

/// The head of a number other than 0: `exponent << 2 | 2 | negative`; 0 where the exponent is beyond +-(2^30 - 1).
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_head(negative: c_int, exponent: i64) -> u64 {
    let fits = exponent.unsigned_abs() <= sunzi::MAXIMUM_EXPONENT as u64;
    if fits { Head::new(negative != 0, exponent).0 } else { 0 }
}

/// The exponent of a head.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_head_exponent(head: u64) -> i64 {
    Head(head).exponent()
}
