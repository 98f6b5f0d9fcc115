//! Twins of BLAS and LAPACK: the arguments of MPLAPACK's routines behind a context, column-major.
//!
//! Each routine has two entry points, `sunzi_rsyrk` on `mpfr_t` and `sunzi_rsyrk_mpf` on `mpf_t`, which fill one struct
//! of arguments; all else is written once, for both.

// In the order of the header.
mod level1;
mod level2;
mod level3;
mod symmetric;

mod factors;

pub use factors::*;
pub use level1::*;
pub use level2::*;
pub use level3::*;
pub use symmetric::*;

use crate::api::products::Terms;
use crate::api::triangular::Triangle;
use crate::array::{MpfEntry, MpfrEntry, Operand, invalid};
use crate::call::{Call, run};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::*;
use rug::Float;
use std::ffi::{c_char, c_void};
use sunzi::{Diag, Op, Side, Uplo};

/// The arguments of one routine.
trait Arguments {
    /// Their names in the header, in their order.
    const NAMES: &'static [&'static str];

    /// Checks them and carries out the routine.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()>;
}

/// Calls a routine on entries of `format`; returns what LAPACK calls info.
///
/// # Safety
/// The header's rules.
unsafe fn info<A: Arguments>(ctx: *const sunzi_context, format: i32, arguments: &A) -> i64 {
    // SAFETY: by contract.
    let Err(failure) = (unsafe { run(ctx, |call| arguments.call(call, Entries { format })) }) else { return 0 };
    info_of(A::NAMES, &failure, -1000)
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
    /// The leading dimension, by its name as an argument.
    ld: (&'static str, i64),
}

impl Place {
    fn new(name: &'static str, entries: *const c_void, ld: (&'static str, i64)) -> Place {
        Place { name, entries, ld }
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
        let (name, ld) = place.ld;
        if ld < rows.max(1) {
            let least = rows.max(1);
            let message =
                format!("the leading dimension {ld} is too small; it must be at least {least} for {rows} rows");
            return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message));
        }
        // SAFETY: by contract.
        unsafe { Operand::new(place.name, &self.described(place.entries, (rows, cols), ld)) }
    }

    /// An array as a vector of `count` entries, a column; with a negative distance the first entry is the last in
    /// memory. A distance of 0, one entry for all, will do where none is written.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn vector(self, place: &Place, count: i64) -> Outcome<Operand> {
        let (name, distance) = place.ld;
        let Some(step) = isize::try_from(distance).ok().filter(|step| step.checked_abs().is_some()) else {
            return Err(Failure::of(
                sunzi_status::SUNZI_INVALID_SIZE,
                name,
                format!("the distance {distance} is too large"),
            ));
        };
        let row_major = sunzi_matrix {
            layout: SUNZI_ROW_MAJOR,
            ..self.described(place.entries, (count, 1), distance.abs().max(1))
        };
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
        unsafe { Operand::new(name, &self.described(number, (1, 1), 1)) }
    }

    /// The address of the entry that has `count` entries before it.
    pub(crate) fn behind(self, entries: *const c_void, count: usize) -> *const c_void {
        let size = if self.format == SUNZI_MPF { size_of::<MpfEntry>() } else { size_of::<MpfrEntry>() };
        entries.wrapping_byte_add(count * size)
    }

    /// A column-major array as the header describes it.
    pub(crate) fn described(self, entries: *const c_void, (rows, cols): (i64, i64), ld: i64) -> sunzi_matrix {
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
unsafe fn terms(
    call: &Call<'_>,
    (alpha, beta): (&Operand, &Operand),
    (c, depth): (&Operand, i64),
) -> Outcome<Option<Terms>> {
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

/// How a triangle is used, from the letters of a TRSM.
///
/// # Safety
/// As [`choice`].
pub(crate) unsafe fn sides_of(
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
) -> Outcome<Triangle> {
    // SAFETY: by contract.
    unsafe {
        let (side, uplo, op) = (side_of(side)?, uplo_of(uplo)?, op_of("transa", transa)?);
        Ok(Triangle { side, uplo, op, diag: diag_of(diag)? })
    }
}

/// # Safety
/// As [`choice`].
unsafe fn side_of(text: *const c_char) -> Outcome<Side> {
    // SAFETY: by contract.
    unsafe { choice("side", text, &[(b'L', Side::Left), (b'R', Side::Right)]) }
}

/// # Safety
/// As [`choice`].
unsafe fn diag_of(text: *const c_char) -> Outcome<Diag> {
    // SAFETY: by contract.
    unsafe { choice("diag", text, &[(b'N', Diag::NonUnit), (b'U', Diag::Unit)]) }
}

pub(crate) fn sizes<const N: usize>(named: [(&'static str, i64); N]) -> Outcome<[i64; N]> {
    match named.iter().find(|(_, size)| *size < 0) {
        Some((name, size)) => {
            Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, format!("the size {size} must not be negative")))
        }
        None => Ok(named.map(|(_, size)| size)),
    }
}

/// The value that the first letter of a text stands for.
///
/// # Safety
/// `text` is null or ends with a zero.
unsafe fn choice<T: Copy>(name: &'static str, text: *const c_char, known: &[(u8, T)]) -> Outcome<T> {
    if text.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the first of at least one letter, by contract.
    let letter = unsafe { text.read() } as u8;
    let found = known.iter().find(|(known, _)| *known == letter.to_ascii_uppercase());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let choices = known.iter().map(|(letter, _)| format!("'{}'", char::from(*letter))).collect::<Vec<_>>();
        invalid(name, format!("'{}' is not a valid value; choose {}", letter.escape_ascii(), choices.join(" or ")))
    })
}

/// # Safety
/// As [`choice`].
pub(crate) unsafe fn uplo_of(text: *const c_char) -> Outcome<Uplo> {
    // SAFETY: by contract.
    unsafe { choice("uplo", text, &[(b'U', Uplo::Upper), (b'L', Uplo::Lower)]) }
}

/// # Safety
/// As [`choice`].
pub(crate) unsafe fn op_of(name: &'static str, text: *const c_char) -> Outcome<Op> {
    // SAFETY: by contract.
    unsafe { choice(name, text, &[(b'N', Op::NoTranspose), (b'T', Op::Transpose), (b'C', Op::Transpose)]) }
}
