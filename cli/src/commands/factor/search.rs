//! Precisions that are not given: the least one at which an answer has the requested digits, and one at which a matrix
//! has a factor.

use super::alone::{at_precision, factors_at};
use super::singular::{Examined, InFile, examine, examine_as_read, no_digit, no_factor, singular_refused};
use super::{ComputedFactor, Factoring, ReadAt};
use crate::input::Reader;
use crate::session::Session;
use std::time::{Duration, Instant};
use sunzi::advanced::{PrecisionSearch, PrecisionTry};
use sunzi::{Error, IndexBase, MAXIMUM_PRECISION_BITS, MoreBits, Result};
use sunzi_session::engine::check_reach;
use sunzi_session::trace::Trace;

/// Precisions are multiples of this number of bits.
const STEP_BITS: u32 = 8;

/// A search goes on for as long as this, or as many times the time of the factorisation that failed.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_FACTOR: u32 = 8;

/// Reads and computes the task within the memory limit; at the precision given, or at one that gives the requested
/// digits.
///
/// # Errors
/// The errors of reading, and of the operations; where the matrix is not positive definite at a precision that was
/// given, with one at which it has a factor, if there is any.
pub fn compute(session: &Session, config: &Factoring, trace: &mut Trace) -> Result<ComputedFactor> {
    if let Some(digits) = config.factor.precision.automatic() {
        return automatic(session, config, digits, trace);
    }
    let start = Instant::now();
    let computed = at_precision(session, config, ReadAt::default(), trace);
    computed.map_err(|error| general_advice(config, explain(session, config, error, start.elapsed())))
}

/// Adds the option that solves with any square matrix to the refusal of one that has no Cholesky factor at any
/// precision, where the option would be accepted.
fn general_advice(config: &Factoring, error: Error) -> Error {
    match &error {
        Error::NotPositiveDefinite { more_bits: MoreBits::Never, .. } if config.could_be_general() => {
            let text = error.text();
            let message = format!("{}; --general accepts any square matrix", text.in_base(IndexBase::One));
            Error::Format { path: config.factor.a.clone(), message }
        }
        _ => error,
    }
}

/// Computes the task at the least precision, to some bits, at which its answers have `digits` digits; see
/// [`PrecisionSearch`].
///
/// # Errors
/// The errors of the task; [`Error::Verification`] where no precision within reach suffices; [`Error::Format`] where no
/// digit is correct, with what is known of the matrix.
pub fn automatic(session: &Session, config: &Factoring, digits: u32, trace: &mut Trace) -> Result<ComputedFactor> {
    let (mut search, mut best, mut stated) = (PrecisionSearch::new(digits), None::<ComputedFactor>, 0.0);
    // Decimals that were read once more are read to as many bits at once the next time.
    let (mut decimal_bits, mut is_examined) = (0, false);
    check_digits(digits, search.bits(), config.factor.engine.kernel)?;
    loop {
        let bits = search.bits();
        if check_reach(bits, config.factor.engine.kernel).is_err() {
            break;
        }
        let at = ReadAt { precision_bits: Some(bits), decimal_bits, ..ReadAt::default() };
        let computed = at_precision(session, config, at, trace);
        if !std::mem::replace(&mut is_examined, true) {
            refuse_singular(session, config, bits, &computed)?;
        }
        let outcome = match computed {
            Ok(computed) => {
                decimal_bits = decimal_bits.max(computed.decimal_bits);
                stated = computed.digits.least(config.factor.digits.certified).unwrap_or(0.0);
                if stated >= f64::from(digits) {
                    best = Some(ComputedFactor { chosen_bits: Some(bits), ..computed });
                }
                PrecisionTry::Digits(stated)
            }
            Err(Error::NotPositiveDefinite { more_bits, .. }) if more_bits.might_help() => PrecisionTry::NoFactor,
            Err(error) => return Err(error),
        };
        if !search.record(outcome) {
            break;
        }
    }
    best.ok_or_else(|| {
        let too_few = search.too_few_bits();
        // Numbers that were rounded to few bits may leave no digit, whatever the matrix is.
        if stated < 1.0 && config.factor.precision.input_bits.is_none() {
            let in_file = examine(session, config, Some(too_few)).map_or(InFile::Unknown, |seen| seen.in_file);
            return no_digit(config, in_file, too_few);
        }
        Error::verification(format!(
            "no precision tried, up to {too_few} bits, gives {digits} correct digits: about {stated:.0} were reached"
        ))
    })
}

/// Refuses more digits than the largest precision could give, whatever the matrix is.
///
/// # Errors
/// [`Error::InvalidArgument`].
fn check_digits(digits: u32, first_bits: u32, kernel: Option<&'static str>) -> Result<()> {
    check_reach(first_bits, kernel).map_err(|_| {
        Error::InvalidArgument(format!(
            "{digits} correct digits require at least {first_bits} bits of precision, more than any kernel can use"
        ))
    })
}

/// Refuses a matrix that is singular, where the first try has given no digit: more bits would be tried in vain.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] where there was no factor; [`Error::Format`] where rounding made one.
fn refuse_singular(session: &Session, config: &Factoring, bits: u32, computed: &Result<ComputedFactor>) -> Result<()> {
    let is_doubtful = match computed {
        Ok(computed) => computed.digits.least(config.factor.digits.certified).unwrap_or(0.0) < 1.0,
        Err(Error::NotPositiveDefinite { more_bits, .. }) => more_bits.might_help(),
        Err(_) => false,
    };
    if !is_doubtful || !examine(session, config, Some(bits)).is_ok_and(|seen| seen.in_file == InFile::Singular) {
        return Ok(());
    }
    let refused = computed.as_ref().err().and_then(|error| hinted(error, MoreBits::Singular, None));
    Err(refused.unwrap_or_else(|| singular_refused(config)))
}

/// A refusal of a pivot with another hint; `None` for other errors.
fn hinted(error: &Error, more_bits: MoreBits, enough_bits: Option<u32>) -> Option<Error> {
    let Error::NotPositiveDefinite { index, pivot, diagonal, .. } = error else { return None };
    let (index, pivot, diagonal) = (*index, pivot.clone(), diagonal.clone());
    Some(Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits })
}

/// Adds to a refusal which precision would suffice, or that none does, where either is found; `taken` is the time that
/// the refusal took.
pub fn explain(session: &Session, config: &Factoring, error: Error, taken: Duration) -> Error {
    let Error::NotPositiveDefinite { more_bits, .. } = error else { return error };
    if !more_bits.might_help() {
        return error; // by more than reading can have moved the numbers
    }
    let found = examine(session, config, None).and_then(|first| match first.in_file {
        InFile::Singular => Ok(FoundPrecision::Singular),
        _ => find(session, config, first, taken),
    });
    let hint = match found {
        Ok(FoundPrecision::At(bits)) => hinted(&error, more_bits, Some(bits)),
        Ok(FoundPrecision::Never(proof)) => Some(proof),
        Ok(FoundPrecision::Singular) => hinted(&error, MoreBits::Singular, None),
        Ok(FoundPrecision::SingularAsRead(bits)) => hinted(&error, MoreBits::SingularAsRead { bits }, None),
        Ok(FoundPrecision::NotUpTo { bits, in_file }) => Some(no_factor(config, in_file, &error, bits)),
        Err(Error::Cancelled) => Some(Error::Cancelled),
        // An error of the search is not the error to report.
        Err(_) => None,
    };
    hint.unwrap_or(error)
}

/// The result of a search for a precision.
enum FoundPrecision {
    At(u32),
    /// None up to `bits` bits.
    NotUpTo {
        bits: u32,
        in_file: InFile,
    },
    /// The error of a factorisation at a precision at which rounding cannot explain the pivot.
    Never(Error),
    /// The matrix in the file is singular.
    Singular,
    /// Nothing is known of the matrix in the file. Read to this number of bits it is singular: those of the refusal, or
    /// else of the first reading after that.
    SingularAsRead(u32),
}

/// Doubles the precision until the matrix has a factor, then halves the last step once. `first` is the matrix that was
/// refused, `taken` the time of the refusal.
///
/// A factor of a matrix that is singular as read does not count: reading it at more bits may give another matrix.
fn find(session: &Session, config: &Factoring, first: Examined, taken: Duration) -> Result<FoundPrecision> {
    let (start, choices) = (Instant::now(), &config.factor);
    let typed = choices.precision.typed(None);
    let mut too_few = Reader::new(session, &choices.engine, &typed, &choices.a)?.precision_bits();
    let patience = PATIENCE.max(taken * PATIENCE_FACTOR);
    let allowed = |bits: u32| {
        bits <= MAXIMUM_PRECISION_BITS && check_reach(bits, choices.engine.kernel).is_ok() && start.elapsed() < patience
    };
    let to_say = |seen: Examined| {
        let is_open = matches!(first.in_file, InFile::Unknown | InFile::ProbablySingular { .. });
        (is_open && seen.is_singular_as_read).then_some(FoundPrecision::SingularAsRead(seen.bits))
    };
    let mut singular = to_say(first);
    let mut bits = too_few.saturating_mul(2).next_multiple_of(STEP_BITS);
    loop {
        if !allowed(bits) {
            return Ok(singular.unwrap_or(FoundPrecision::NotUpTo { bits: too_few, in_file: first.in_file }));
        }
        match factors_at(session, config, bits) {
            Err(Error::NotPositiveDefinite { more_bits, .. }) if more_bits.might_help() => {}
            Err(proof @ Error::NotPositiveDefinite { .. }) => return Ok(FoundPrecision::Never(proof)),
            Err(error) => return Err(error),
            Ok(()) => match examine_as_read(session, config, bits)? {
                seen if seen.is_singular_as_read => singular = singular.or_else(|| to_say(seen)),
                _ => break,
            },
        }
        too_few = bits;
        bits *= 2;
    }
    let middle = too_few.midpoint(bits).next_multiple_of(STEP_BITS);
    let enough = middle < bits
        && allowed(middle)
        && factors_at(session, config, middle).is_ok()
        && !examine_as_read(session, config, middle)?.is_singular_as_read;
    Ok(FoundPrecision::At(if enough { middle } else { bits }))
}
