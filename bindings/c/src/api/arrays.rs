//! Descriptions of matrices, and heads of raw numbers.

use crate::types::*;
use std::ffi::{c_int, c_void};
use sunzi::Head;
use sunzi::advanced::math::float::limbs_for;

/// Returns the description of a `rows x cols` matrix of `mpfr_t`; `entries` points to the first entry, `ld` is the
/// leading dimension.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_mpfr_matrix(
    layout: i32,
    rows: i64,
    cols: i64,
    entries: *const c_void,
    ld: i64,
) -> sunzi_matrix {
    described(SUNZI_MPFR, layout, rows, cols, ld, entries)
}

/// Returns the description of a `rows x cols` matrix of `mpf_t`; `entries` points to the first entry, `ld` is the
/// leading dimension.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_mpf_matrix(layout: i32, rows: i64, cols: i64, entries: *const c_void, ld: i64) -> sunzi_matrix {
    described(SUNZI_MPF, layout, rows, cols, ld, entries)
}

/// Returns the description of a `rows x cols` matrix in raw limbs. The entry with index i (see `layout` and `ld`) has
/// the head `heads[i]` and the w limbs `limbs[i * w]` to `limbs[i * w + w - 1]`, where
/// `w = sunzi_limbs_for(precision_bits)`. The library reads operands of this format in place, without a copy.
///
/// Format: a number is `(-1)^sign * 0.s * 2^exponent`. The significand s is stored with the least limb first; the top
/// bit of the last limb is set, and the bits below the precision are 0. `sunzi_head` packs sign and exponent. The
/// number 0 has the head 0 and limbs of 0.
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
    let matrix = described(SUNZI_LIMBS, layout, rows, cols, ld, heads.cast());
    sunzi_matrix { limbs: limbs.cast_mut(), precision_bits, ..matrix }
}

fn described(format: i32, layout: i32, rows: i64, cols: i64, ld: i64, first: *const c_void) -> sunzi_matrix {
    let (entries, limbs) = (first.cast_mut(), std::ptr::null_mut());
    sunzi_matrix { format, layout, rows, cols, ld, entries, limbs, precision_bits: 0 }
}

/// Returns the number of limbs of a number with `precision_bits` bits; 0 for a precision below 1.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_limbs_for(precision_bits: i64) -> i64 {
    u32::try_from(precision_bits).map_or(0, |bits| limbs_for(bits) as i64)
}

/// Returns the head of a number other than 0: `exponent << 2 | 2 | negative`. Returns 0 if the exponent lies outside
/// +-(2^30 - 1).
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_head(negative: c_int, exponent: i64) -> u64 {
    let fits = exponent.unsigned_abs() <= sunzi::MAXIMUM_EXPONENT as u64;
    if fits { Head::new(negative != 0, exponent).0 } else { 0 }
}

/// Returns the exponent in a head.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_head_exponent(head: u64) -> i64 {
    Head(head).exponent()
}
