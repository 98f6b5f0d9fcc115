//! Precisions that nobody gave: the least one at which an answer has the digits asked for, and one at which a matrix
//! has a factor.

use super::alone::{at_precision, factors_at};
use super::singular::{AsRead, examine};
use super::{Computed, Factoring, ReadAt};
use crate::input::Reader;
use crate::session::Session;
use std::time::{Duration, Instant};
use sunzi::{Error, MAXIMUM_PRECISION_BITS, MoreBits, Result};
use sunzi_lab::engine::check_reach;
use sunzi_lab::trace::Trace;

/// Precisions are multiples of so many bits.
const STEP_BITS: u32 = 8;

/// Fewest bits that are tried.
const FIRST_BITS: u32 = 64;

/// Precisions that are tried, at most.
const TRIES: usize = 24;

/// A search goes on for as long as this, or as many times the time of the factorisation that failed.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_FACTOR: u32 = 8;

/// Bits of so many decimal digits, in whole steps.
fn bits_of(digits: f64) -> u32 {
    ((digits * std::f64::consts::LOG2_10).max(0.0).ceil() as u32).next_multiple_of(STEP_BITS)
}

/// Computes the task at the least precision, to some bits, at which its answers have so many digits.
///
/// The first try has the bits of the digits. Where the matrix has no factor, or nothing is right, the precision is
/// doubled; where some digits are right, the missing ones are added; where there are more than were asked for, as many
/// fewer bits are tried.
///
/// # Errors
/// Those of the task; [`Error::Verification`] where no precision within reach does.
pub fn automatic(session: &Session, config: &Factoring, digits: u32, trace: &mut Trace) -> Result<Computed> {
    let goal = f64::from(digits);
    let mut bits = bits_of(goal + 2.0).max(FIRST_BITS);
    let (mut best, mut too_few, mut stated) = (None::<(u32, Computed)>, 0, 0.0);
    // Decimals that were read once more are read to as many bits at once the next time.
    let mut decimal_bits = 0;
    for _ in 0..TRIES {
        if check_reach(bits, config.factor.engine.kernel).is_err() {
            break;
        }
        let at = ReadAt { precision_bits: Some(bits), decimal_bits, is_last: false };
        let mut next = match at_precision(session, config, at, trace) {
            Ok(computed) => {
                decimal_bits = decimal_bits.max(computed.decimal_bits);
                stated = computed.digits.least(config.factor.digits.certified).unwrap_or(0.0);
                match stated >= goal {
                    true => {
                        let fewer = bits_of(stated - goal - 0.5);
                        best = Some((bits, computed));
                        bits.saturating_sub(fewer)
                    }
                    false if stated < 1.0 => 2 * bits,
                    false => bits + bits_of(goal - stated + 0.5).max(STEP_BITS),
                }
            }
            Err(Error::NotPositiveDefinite { more_bits, .. }) if more_bits.might_help() => 2 * bits,
            Err(error) => return Err(error),
        };
        match &best {
            Some((least, _)) if *least == bits => next = next.max(too_few + STEP_BITS).max(FIRST_BITS),
            _ => too_few = too_few.max(bits),
        }
        if let Some((least, _)) = &best
            && next >= *least
        {
            break;
        }
        bits = next;
    }
    match best {
        Some((bits, computed)) => Ok(Computed { chosen_bits: Some(bits), ..computed }),
        None => Err(Error::verification(format!(
            "no precision up to {too_few} bits gives {digits} correct digits: about {stated:.0} are right there"
        ))),
    }
}

/// Says in a refusal which precision would do, or that none does, where one of them is found; `taken` is how long it
/// took to refuse.
pub fn explain(session: &Session, config: &Factoring, error: Error, taken: Duration) -> Error {
    let Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, .. } = &error else { return error };
    if !more_bits.might_help() {
        return error; // by more than reading can have moved the numbers
    }
    let refusal = |more_bits, enough_bits| {
        let (index, pivot, diagonal) = (*index, pivot.clone(), diagonal.clone());
        Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits }
    };
    let found = examine(session, config, None).and_then(|first| match first {
        AsRead { is_rounded: false, is_singular: true, .. } => Ok(Found::Singular(first)),
        _ => find(session, config, (first, taken)),
    });
    match found {
        Ok(Found::At(bits)) => refusal(*more_bits, Some(bits)),
        Ok(Found::Never(proof)) => proof,
        Ok(Found::Singular(AsRead { bits, is_rounded: true, .. })) => refusal(MoreBits::SingularAsRead { bits }, None),
        Ok(Found::Singular(_)) => refusal(MoreBits::Singular, None),
        Ok(Found::NotUpTo(bits)) => {
            session.note(&format!("no factor at any precision tried, up to {bits} bits"));
            refusal(*more_bits, None)
        }
        Err(Error::Cancelled) => Error::Cancelled,
        // What hinders the search is not what went wrong.
        Err(_) => error,
    }
}

/// What a search for a precision finds.
enum Found {
    At(u32),
    NotUpTo(u32),
    /// The error of a factorisation with so many bits that rounding cannot explain it.
    Never(Error),
    /// The matrix as read is singular: with the numbers that were refused, or else with those read first after them.
    Singular(AsRead),
}

/// Doubles the precision until the matrix has a factor, then halves the last step once. `first` is the matrix that was
/// refused.
///
/// A factor of a matrix that is singular as read does not count: reading it at more bits may give another matrix.
fn find(session: &Session, config: &Factoring, (first, taken): (AsRead, Duration)) -> Result<Found> {
    let (start, choices) = (Instant::now(), &config.factor);
    let typed = choices.precision.typed(None);
    let mut too_few = Reader::new(session, &choices.engine, &typed, &choices.a)?.precision_bits();
    let patience = PATIENCE.max(taken * PATIENCE_FACTOR);
    let allowed = |bits: u32| {
        bits <= MAXIMUM_PRECISION_BITS && check_reach(bits, choices.engine.kernel).is_ok() && start.elapsed() < patience
    };
    let mut singular = first.is_singular.then_some(first);
    let mut bits = too_few.saturating_mul(2).next_multiple_of(STEP_BITS);
    loop {
        if !allowed(bits) {
            return Ok(singular.map_or(Found::NotUpTo(too_few), Found::Singular));
        }
        match factors_at(session, config, bits) {
            Err(Error::NotPositiveDefinite { more_bits, .. }) if more_bits.might_help() => {}
            Err(proof @ Error::NotPositiveDefinite { .. }) => return Ok(Found::Never(proof)),
            Err(error) => return Err(error),
            Ok(()) => match examine(session, config, Some(bits))? {
                seen if seen.is_singular => singular = singular.or(Some(seen)),
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
        && !examine(session, config, Some(middle))?.is_singular;
    Ok(Found::At(if enough { middle } else { bits }))
}
