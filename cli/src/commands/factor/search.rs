//! Precisions that nobody gave: the least one at which an answer has the digits asked for, and one at which a matrix is
//! positive definite.

use super::alone::{at_precision, factors_at};
use super::{Computed, Factoring, ReadAt};
use crate::input::Reader;
use crate::session::Session;
use std::time::{Duration, Instant};
use sunzi::{Error, MAXIMUM_PRECISION_BITS, Result};
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
        let at = ReadAt { precision_bits: Some(bits), decimal_bits };
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
            Err(Error::NotPositiveDefinite { more_bits: Some(_), .. }) => 2 * bits,
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

/// Says in a refusal which precision would do, where one is found; `seconds` is how long it took to refuse.
pub fn explain(session: &Session, config: &Factoring, error: Error, taken: Duration) -> Error {
    let Error::NotPositiveDefinite { index, pivot, diagonal, more_bits: Some(more_bits), .. } = error else {
        return error;
    };
    let refusal = |enough_bits| {
        let (pivot, diagonal) = (pivot.clone(), diagonal.clone());
        Error::NotPositiveDefinite { index, pivot, diagonal, more_bits: Some(more_bits), enough_bits }
    };
    match find(session, config, taken) {
        Ok(Found::At(bits)) => refusal(Some(bits)),
        Ok(Found::Never(proof)) => proof,
        Ok(Found::NotUpTo(bits)) => {
            session.note(&format!("not positive definite at any precision tried, up to {bits} bits"));
            refusal(None)
        }
        Err(Error::Cancelled) => Error::Cancelled,
        // What hinders the search is not what went wrong.
        Err(_) => refusal(None),
    }
}

/// What a search for a precision finds.
enum Found {
    At(u32),
    NotUpTo(u32),
    /// The error of a factorisation with so many bits that rounding cannot explain it.
    Never(Error),
}

/// Doubles the precision until the matrix has a factor, then halves the last step once.
fn find(session: &Session, config: &Factoring, taken: Duration) -> Result<Found> {
    let (start, choices) = (Instant::now(), &config.factor);
    let typed = choices.precision.typed(None);
    let mut too_few = Reader::new(session, &choices.engine, &typed, &choices.a)?.precision_bits();
    let patience = PATIENCE.max(taken * PATIENCE_FACTOR);
    let allowed = |bits: u32| {
        bits <= MAXIMUM_PRECISION_BITS && check_reach(bits, choices.engine.kernel).is_ok() && start.elapsed() < patience
    };
    let mut bits = too_few.saturating_mul(2).next_multiple_of(STEP_BITS);
    loop {
        if !allowed(bits) {
            return Ok(Found::NotUpTo(too_few));
        }
        match factors_at(session, config, bits) {
            Ok(()) => break,
            Err(Error::NotPositiveDefinite { more_bits: Some(_), .. }) => too_few = bits,
            Err(error @ Error::NotPositiveDefinite { .. }) => return Ok(Found::Never(error)),
            Err(error) => return Err(error),
        }
        bits *= 2;
    }
    let middle = too_few.midpoint(bits).next_multiple_of(STEP_BITS);
    let enough = middle < bits && allowed(middle) && factors_at(session, config, middle).is_ok();
    Ok(Found::At(if enough { middle } else { bits }))
}
