//! Twins of BLAS and LAPACK: the arguments of MPLAPACK's routines behind a context, column-major.
//!
//! Each routine has two entry points, `sunzi_rsyrk` on `mpfr_t` and `sunzi_rsyrk_mpf` on `mpf_t`, which `twins!` makes
//! of one list of arguments; all else is written once, for both.

mod twins;

// In the order of the header.
mod level1;
mod level2;
mod level3;
mod symmetric;

mod factors;
mod general;

pub use factors::*;
pub use general::*;
pub use level1::*;
pub use level2::*;
pub use level3::*;
pub use symmetric::*;

pub(crate) use twins::twins;

use crate::api::products::Terms;
use crate::array::{MpfEntry, MpfrEntry, Operand, invalid};
use crate::call::{Call, run};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::*;
use rug::Float;
use std::ffi::{c_char, c_void};
use sunzi::advanced::calls::TriangularKind;
use sunzi::{Diag, Op, Side, Uplo};

/// Calls a routine with arguments of these names on entries of `format`; returns what LAPACK calls info.
///
/// # Safety
/// The header's rules.
unsafe fn info(
    ctx: *const sunzi_context,
    format: i32,
    names: &[&str],
    routine: impl FnOnce(&Call<'_>, Entries) -> Outcome<()>,
) -> i64 {
    // SAFETY: by contract.
    let outcome = unsafe { run(ctx, |call| routine(call, Entries { format })) };
    outcome.map_or_else(|failure| info_of(names, &failure, -1000), |()| 0)
}

/// The info of a failure of a routine with arguments of these names; `others` less the status for a failure without
/// such a number.
pub(crate) fn info_of(names: &[&str], failure: &Failure, others: i64) -> i64 {
    let minor = matches!(failure.status, sunzi_status::SUNZI_NOT_POSITIVE_DEFINITE | sunzi_status::SUNZI_SINGULAR);
    match (failure.place, position_of(names, failure)) {
        (Some((index, _)), _) if minor => index as i64 + 1,
        (_, Some((position, Some(entry)))) => -((position * 100 + entry) as i64),
        (_, Some((position, None))) => -(position as i64),
        _ => others - failure.status as i64,
    }
}

/// The argument that is at fault, counted from 1, and its entry.
pub(crate) fn position_of(names: &[&str], failure: &Failure) -> Option<(usize, Option<usize>)> {
    let position = names.iter().position(|name| Some(*name) == failure.argument)?;
    Some((position + 1, failure.entry))
}

/// An array argument.
struct Place {
    name: &'static str,
    entries: *const c_void,
    /// The name of its leading dimension, or of its distance between entries.
    ld_name: &'static str,
    ld: i64,
}

impl Place {
    fn new(name: &'static str, entries: *const c_void, ld_name: &'static str, ld: i64) -> Place {
        Place { name, entries, ld_name, ld }
    }

    /// Refuses a leading dimension that is too small for `rows` rows.
    fn check_ld(&self, rows: i64) -> Outcome<()> {
        let (ld, least) = (self.ld, rows.max(1));
        if ld >= least {
            return Ok(());
        }
        let message = format!("the leading dimension {ld} is too small; it must be at least {least} for {rows} rows");
        Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, self.ld_name, message))
    }
}

/// The kind of all entries of a call.
#[derive(Clone, Copy)]
pub(crate) struct Entries {
    /// `SUNZI_MPFR` or `SUNZI_MPF`.
    pub format: i32,
}

impl Entries {
    /// An array as a matrix, column-major, its leading dimension checked.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn matrix(self, place: &Place, rows: i64, cols: i64) -> Outcome<Operand> {
        place.check_ld(rows)?;
        // SAFETY: by contract.
        unsafe { Operand::new(place.name, &self.described(place.entries, rows, cols, place.ld)) }
    }

    /// An array as a vector of `count` entries, a column; with a negative distance the first entry is the last in
    /// memory. A distance of 0, one entry for all, will do where none is written.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn vector(self, place: &Place, count: i64) -> Outcome<Operand> {
        let distance = place.ld;
        let Some(step) = isize::try_from(distance).ok().filter(|step| step.checked_abs().is_some()) else {
            return Err(Failure::of(
                sunzi_status::SUNZI_INVALID_SIZE,
                place.ld_name,
                format!("the distance {distance} is too large"),
            ));
        };
        let row_major =
            sunzi_matrix { layout: SUNZI_ROW_MAJOR, ..self.described(place.entries, count, 1, distance.abs().max(1)) };
        // SAFETY: by contract.
        Ok(unsafe { Operand::new(place.name, &row_major) }?.with_step(step))
    }

    /// A scalar that the caller must pass.
    ///
    /// # Safety
    /// The header's rules.
    pub(crate) unsafe fn scalar(self, call: &Call<'_>, name: &'static str, number: *const c_void) -> Outcome<Float> {
        // SAFETY: by contract.
        unsafe { super::number(call, &self.number(name, number)?) }
    }

    /// One number.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn number(self, name: &'static str, number: *const c_void) -> Outcome<Operand> {
        if number.is_null() {
            return Err(Failure::null(name));
        }
        // SAFETY: by contract.
        unsafe { Operand::new(name, &self.described(number, 1, 1, 1)) }
    }

    /// The address of the entry that has `count` entries before it.
    pub(crate) fn behind(self, entries: *const c_void, count: usize) -> *const c_void {
        let size = if self.format == SUNZI_MPF { size_of::<MpfEntry>() } else { size_of::<MpfrEntry>() };
        entries.wrapping_byte_add(count * size)
    }

    /// A column-major array as the header describes it.
    pub(crate) fn described(self, entries: *const c_void, rows: i64, cols: i64, ld: i64) -> sunzi_matrix {
        let (format, layout) = (self.format, SUNZI_COL_MAJOR);
        let limbs = std::ptr::null_mut();
        sunzi_matrix { format, layout, rows, cols, ld, entries: entries.cast_mut(), limbs, precision_bits: 0 }
    }
}

/// The scalars of a product of `depth` terms that goes to `c`; `None` where the BLAS returns at once, because there are
/// no entries, or none that change. Scalars are checked last: a wrong leading dimension is reported before a NaN in
/// them.
///
/// # Safety
/// The header's rules.
unsafe fn terms(call: &Call<'_>, alpha: &Operand, beta: &Operand, c: &Operand, depth: i64) -> Outcome<Option<Terms>> {
    if c.rows() == 0 || c.cols() == 0 {
        return Ok(None);
    }
    // SAFETY: by contract.
    let (alpha, beta) = unsafe { (super::number(call, alpha)?, super::number(call, beta)?) };
    let terms = Terms { alpha: Some(alpha), beta: Some(beta) };
    Ok((!leaves_as_it_is(&terms, depth == 0)).then_some(terms))
}

/// Whether a product changes nothing, so that the BLAS look at no entry; of none where its terms are none.
pub(crate) fn leaves_as_it_is(terms: &Terms, is_empty: bool) -> bool {
    (terms.without_product() || is_empty) && terms.beta.as_ref().is_some_and(|beta| *beta == 1)
}

/// Refuses a distance of 0 between entries.
fn step_of(name: &'static str, distance: i64) -> Outcome<()> {
    match distance {
        0 => Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, "the distance between entries must not be 0")),
        _ => Ok(()),
    }
}

/// The use of a triangle, from the letters of a TRSM.
///
/// # Safety
/// As [`choice`].
pub(crate) unsafe fn sides_of(
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
) -> Outcome<TriangularKind> {
    // SAFETY: by contract.
    unsafe {
        let (side, uplo, op) = (side_of(side)?, uplo_of(uplo)?, op_of("transa", transa)?);
        Ok(TriangularKind { side, uplo, op, diag: diag_of(diag)? })
    }
}

/// # Safety
/// As [`choice`].
unsafe fn side_of(text: *const c_char) -> Outcome<Side> {
    // SAFETY: by contract.
    unsafe { choice("side", text, b"LR", [Side::Left, Side::Right]) }
}

/// # Safety
/// As [`choice`].
unsafe fn diag_of(text: *const c_char) -> Outcome<Diag> {
    // SAFETY: by contract.
    unsafe { choice("diag", text, b"NU", [Diag::NonUnit, Diag::Unit]) }
}

/// Sizes that must not be negative, with their names.
pub(crate) fn sizes<const N: usize>(names: [&'static str; N], sizes: [i64; N]) -> Outcome<[i64; N]> {
    match sizes.iter().position(|size| *size < 0) {
        Some(at) => {
            let message = format!("the size {} must not be negative", sizes[at]);
            Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, names[at], message))
        }
        None => Ok(sizes),
    }
}

/// The value that the first letter of a text stands for: that at the letter's place among `letters`.
///
/// # Safety
/// `text` is null or ends with a zero.
unsafe fn choice<T: Copy, const N: usize>(
    name: &'static str,
    text: *const c_char,
    letters: &[u8; N],
    values: [T; N],
) -> Outcome<T> {
    if text.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the first of at least one letter, by contract.
    let letter = unsafe { text.read() } as u8;
    let found = letters.iter().position(|known| *known == letter.to_ascii_uppercase());
    found.map(|at| values[at]).ok_or_else(|| {
        let choices = letters.map(|letter| format!("'{}'", char::from(letter)));
        invalid(name, format!("'{}' is not a valid value; choose {}", letter.escape_ascii(), choices.join(" or ")))
    })
}

/// # Safety
/// As [`choice`].
pub(crate) unsafe fn uplo_of(text: *const c_char) -> Outcome<Uplo> {
    // SAFETY: by contract.
    unsafe { choice("uplo", text, b"UL", [Uplo::Upper, Uplo::Lower]) }
}

/// # Safety
/// As [`choice`].
pub(crate) unsafe fn op_of(name: &'static str, text: *const c_char) -> Outcome<Op> {
    // SAFETY: by contract.
    unsafe { choice(name, text, b"NTC", [Op::NoTranspose, Op::Transpose, Op::Transpose]) }
}
