//! How many digits of an answer are right, and how that is reported.

use super::steps::Steps;
use super::{FactorInputs, Factoring, Task};
use crate::session::Session;
use rug::Float;
use rug::float::Round;
use serde::Serialize;
use sunzi::advanced::optional_estimate;
use sunzi::estimate::InputRounding;
use sunzi::{Cholesky, Context, Matrix, Result};
use sunzi_session::trace::Trace;

/// Digits of the logarithm that are printed, where as many are right.
const SHOWN_DIGITS: usize = 30;

/// Below this number of correct digits a warning is printed.
pub(super) const FEW_DIGITS: f64 = 3.0;

/// Correct digits of the answer. Estimates and proven bounds are absent if they were not requested, or if the memory
/// limit is too small for them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Digits {
    /// An estimate of the correct digits of the solution or the inverse.
    pub digits: Option<f64>,
    /// A proven lower bound of them.
    pub certified: Option<f64>,
    /// An estimate of the correct digits of the logarithm.
    pub log_det_digits: Option<f64>,
    /// A proven lower bound of them.
    pub log_det_certified: Option<f64>,
    /// An estimate of the error of the logarithm.
    pub log_det_error: Option<String>,
    /// A proven bound of its error, where none of its digits is proven.
    pub log_det_certified_error: Option<String>,
    /// Estimate of the norm of the inverse of the matrix, scaled to a diagonal of about 1: the factor by which solves
    /// lose accuracy.
    pub scaled_condition: Option<String>,
    /// Its logarithm to base 2.
    #[serde(skip)]
    lost_bits: Option<f64>,
    /// An estimate of the correct decimal places of the logarithm: for one near 0 no digit need be correct.
    #[serde(skip)]
    log_det_places: Option<f64>,
    /// A proven lower bound of them.
    #[serde(skip)]
    log_det_certified_places: Option<f64>,
    /// Whether it is that of the matrix; else the factor exists by the luck of its roundings.
    #[serde(skip)]
    tells_condition: bool,
    /// Bits to which decimals would have to be read, where their rounding leaves fewer digits than the precision gives.
    #[serde(skip)]
    pub missing_decimal_bits: Option<u32>,
}

/// The answer that was computed in this process.
pub struct Answer<'a> {
    pub factor: &'a Cholesky,
    pub inputs: &'a FactorInputs,
    /// The solution or the inverse.
    pub matrix: Option<&'a Matrix>,
    /// Whether the logarithm of the determinant is requested.
    pub log_det: bool,
}

impl Answer<'_> {
    /// Estimates the correct digits, and proves some where that was requested.
    ///
    /// # Errors
    /// The errors of the estimates, except lack of memory or of precision.
    pub fn digits(&self, steps: &Steps<'_>, config: &Factoring, trace: &mut Trace) -> Result<Digits> {
        let choices = &config.factor.digits;
        if choices.no_estimate || (self.matrix.is_none() && !self.log_det) {
            return Ok(Digits::default());
        }
        let mut found = trace.span("estimate", || self.estimate(steps, &config.task))?.0;
        let automatic = config.factor.precision.automatic().is_some();
        let may_read_again = !self.inputs.is_last && config.factor.precision.input_bits.is_none();
        if may_read_again && (choices.certified || automatic) {
            found.missing_decimal_bits = steps.run(|ctx| self.missing_decimal_bits(ctx, config, &found))?;
        }
        // If decimals are read once more, the proof is made then.
        if choices.certified && found.missing_decimal_bits.is_none() {
            let error;
            (found.certified, found.log_det_certified, error) =
                trace.span("certify", || self.certify(steps, &config.task))?.0;
            found.log_det_certified_places = error.as_ref().map(|error| -error.clone().log10().to_f64());
            found.log_det_certified_error = error.map(|error| rounded_up(&error));
            // Proven digits are correct.
            found.digits = found.digits.map(|digits| digits.max(found.certified.unwrap_or(0.0)));
            found.log_det_digits =
                found.log_det_digits.map(|digits| digits.max(found.log_det_certified.unwrap_or(0.0)));
        }
        Ok(found)
    }

    /// Bits to which decimals are to be read for the digits that the computation leaves, where they were read to fewer.
    fn missing_decimal_bits(&self, ctx: &Context, config: &Factoring, found: &Digits) -> Result<Option<u32>> {
        let InputRounding { matrix_bits, right_bits, .. } = self.inputs.rounding;
        let Some(read_bits) = matrix_bits.into_iter().chain(right_bits).min() else { return Ok(None) };
        if !found.tells_condition {
            return Ok(None);
        }
        let exact = self.estimates(ctx, &config.task, InputRounding::new())?;
        let digits = exact.into_iter().flatten().fold(0.0, f64::max);
        // The logarithm of a determinant takes no more bits than a solution of one scale.
        let nothing = Matrix::zeros(self.factor.factor().rows(), 0, 2)?;
        let needed_bits = self.factor.input_bits(ctx, self.matrix.unwrap_or(&nothing), digits)?;
        Ok((needed_bits > read_bits).then_some(needed_bits))
    }

    /// About how many digits of the answer, and of the logarithm, are right.
    fn estimates(&self, ctx: &Context, task: &Task, rounding: InputRounding) -> Result<[Option<f64>; 2]> {
        let Answer { factor, inputs: FactorInputs { a, b, .. }, .. } = self;
        let digits = match (task, b, self.matrix) {
            (Task::Solve { .. }, Some(b), Some(x)) => factor.solution_digits_with(ctx, a, b, x, rounding).map(Some),
            (Task::Inverse, _, Some(x)) => factor.inverse_digits_with(ctx, a, x, rounding).map(Some),
            _ => Ok(None),
        };
        let log_det = if self.log_det { factor.log_det_digits_with(ctx, rounding).map(Some) } else { Ok(None) };
        Ok([optional_estimate(digits)?.flatten(), optional_estimate(log_det)?.flatten()])
    }

    fn estimate(&self, steps: &Steps<'_>, task: &Task) -> Result<Digits> {
        let condition = optional_estimate(steps.run(|ctx| self.factor.scaled_condition(ctx)))?;
        let tells_condition = optional_estimate(steps.run(|ctx| self.factor.tells_condition(ctx)))?;
        let rounding = self.inputs.rounding;
        let [digits, log_det_digits] = steps.run(|ctx| self.estimates(ctx, task, rounding))?;
        let error = || optional_estimate(steps.run(|ctx| self.factor.log_det_error(ctx, rounding)));
        let log_det_error = if self.log_det { error()?.flatten() } else { None };
        Ok(Digits {
            digits,
            log_det_digits,
            log_det_places: log_det_error.as_ref().map(|value| -value.clone().log10().to_f64()),
            log_det_error: log_det_error.map(|value| format!("{value:.1e}")),
            lost_bits: condition.as_ref().map(|value| value.clone().log2().to_f64().max(0.0)),
            scaled_condition: condition.map(|value| format!("{value:.6e}")),
            tells_condition: tells_condition == Some(true),
            ..Digits::default()
        })
    }

    /// Proven digits of the answer and of the logarithm, 0 where no proof is found, and the error of the logarithm
    /// where it has less than one.
    fn certify(&self, steps: &Steps<'_>, task: &Task) -> Result<(Option<f64>, Option<f64>, Option<Float>)> {
        let FactorInputs { a, b, rounding, .. } = self.inputs;
        let Some(certificate) = steps.run(|ctx| self.factor.certify_with(ctx, a, *rounding))? else {
            return Ok((self.matrix.map(|_| 0.0), self.log_det.then_some(0.0), None));
        };
        let answer = match (task, b, self.matrix) {
            (Task::Solve { .. }, Some(b), Some(x)) => Some(steps.run(|ctx| certificate.solution_digits(ctx, b, x))?),
            (Task::Inverse, _, Some(x)) => Some(steps.run(|ctx| certificate.inverse_digits(ctx, x))?),
            _ => None,
        };
        let log_det = self.log_det.then(|| steps.run(|ctx| certificate.log_det_digits(ctx))).transpose()?;
        let error = match log_det {
            Some(digits) if digits < 1.0 => steps.run(|ctx| certificate.log_det_error(ctx))?,
            _ => None,
        };
        Ok((answer, log_det, error))
    }
}

impl Digits {
    /// The least number of digits stated for any answer, proven where that was requested; `None` where none is. Of a
    /// logarithm between -1 and 1 decimal places count.
    pub fn least(&self, certified: bool) -> Option<f64> {
        let stated = match certified {
            true => [self.certified, or_places(self.log_det_certified, self.log_det_certified_places)],
            false => [self.digits, self.log_det_digits_or_places()],
        };
        stated.into_iter().flatten().reduce(f64::min)
    }

    fn log_det_digits_or_places(&self) -> Option<f64> {
        or_places(self.log_det_digits, self.log_det_places)
    }

    /// The line about a solution or an inverse.
    pub fn line(&self, what: &str, precision_bits: u32) -> Option<String> {
        let digits = stated(self.digits?, self.certified);
        let about = if self.tells_condition { "about" } else { "at least about" };
        let lost = self.lost_bits.map_or(String::new(), |lost| format!(", scaled condition {about} 2^{lost:.0}"));
        Some(format!("{what}: {digits} ({precision_bits} bits{lost})"))
    }

    /// The line about the logarithm, with the digits that are right, or with all.
    pub fn log_det_line(&self, value: &Float, all: bool) -> String {
        let Some(digits) = self.log_det_digits else {
            return format!("log det A = {value:.SHOWN_DIGITS$e} (correct digits not estimated)");
        };
        let (right, said) = (digits as usize, stated(digits, self.log_det_certified));
        if all {
            return format!("log det A = {} ({said}; digits in brackets may be wrong)", bracketed(value, right));
        }
        let proven = self.log_det_certified_error.as_ref().map(|error| format!("{error} (proven)"));
        match (right, proven.or(self.log_det_error.as_ref().map(|error| format!("about {error}")))) {
            (0, Some(error)) => {
                format!("log det A = {value:.3e}, error at most {error}: none of its digits is known to be correct")
            }
            (0, None) => format!("log det A: no digit is known to be correct; computed as {value:.3e}"),
            _ => format!("log det A = {value:.*e} ({said})", right.min(SHOWN_DIGITS)),
        }
    }

    /// Warns of answers with hardly any correct digits.
    pub fn warn(&self, session: &Session, what: &str) {
        let log_det = self.log_det_digits_or_places();
        for (digits, what) in [(self.digits, what), (log_det, "logarithm of the determinant")] {
            if let Some(digits) = digits.filter(|digits| *digits < FEW_DIGITS) {
                session.note(&format!(
                    "warning: about {digits:.1} digits of the {what} are correct: give more bits or --precision auto"
                ));
            }
        }
    }
}

/// Digits of a logarithm, or its decimal places where there are more.
fn or_places(digits: Option<f64>, places: Option<f64>) -> Option<f64> {
    digits.map(|digits| digits.max(places.unwrap_or(0.0)))
}

/// A bound with two digits, none below it.
fn rounded_up(bound: &Float) -> String {
    bound.to_string_radix_round(10, Some(2), Round::Up)
}

/// `about 45 correct digits, at least 44 proven`.
pub(super) fn stated(digits: f64, certified: Option<f64>) -> String {
    let proven = certified.map_or(String::new(), |digits| format!(", at least {} proven", digits as usize));
    let count = digits as usize;
    format!("about {count} correct {}{proven}", if count == 1 { "digit" } else { "digits" })
}

/// All digits of a number; those after the first `right` significant ones in brackets.
fn bracketed(value: &Float, right: usize) -> String {
    let text = format!("{value:e}");
    let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut count = 0;
    let end = number.char_indices().find(|(_, letter)| {
        count += usize::from(letter.is_ascii_digit());
        count > right
    });
    match end {
        Some((at, _)) => format!("{}[{}]e{exponent}", &number[..at], &number[at..]),
        None => format!("{number}e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{self, Arguments, Command};
    use sunzi::{SymmetricMatrix, cholesky};

    /// A system of decimals that were read to few bits more than the precision.
    fn digits_where(is_last: bool) -> Digits {
        let words = "sunzi solve A.csv B.csv -o X.mtx -p 100 --threads 1 --certified".split(' ');
        let Arguments { command, global, .. } = args::parse(words.map(Into::into)).unwrap();
        let Command::Solve(solve) = command else { panic!("another command") };
        let config = Factoring::from(solve);
        let session = Session::begin(global, true, None).unwrap();
        let steps = Steps::new(&session, &config.factor.engine, 0).unwrap();
        let a = Matrix::from_f64s(2, 2, 100, &[2.0, 1.0, 1.0, 3.0]).unwrap();
        let b = Matrix::from_f64s(2, 1, 100, &[1.0, 1.0]).unwrap();
        let ctx = Context::builder().threads(1).build().unwrap();
        let factor = cholesky(&ctx, &a, 100).unwrap();
        let x = factor.solve(&ctx, &b, 100).unwrap();
        let rounding = InputRounding::new().matrix_bits(110).right_bits(110);
        let (a, b) = (SymmetricMatrix::new(a).unwrap(), Some(b));
        let inputs = FactorInputs { a, b, precision_bits: 100, rounding, is_last, bytes: 0 };
        let answer = Answer { factor: &factor, inputs: &inputs, matrix: Some(&x), log_det: false };
        answer.digits(&steps, &config, &mut Trace::begin(None).unwrap()).unwrap()
    }

    #[test]
    fn the_last_reading_is_proven_though_it_asks_for_more_bits() {
        let (first, last) = (digits_where(false), digits_where(true));
        assert!(first.missing_decimal_bits.is_some_and(|bits| bits > 110) && first.certified.is_none(), "{first:?}");
        assert!(last.missing_decimal_bits.is_none(), "{last:?}");
        let (proven, stated) = (last.certified.unwrap(), last.digits.unwrap());
        assert!(proven > 20.0 && stated >= proven, "{last:?}");
    }

    #[test]
    fn digits_without_meaning_are_left_out_or_marked() {
        let value = Float::with_val(60, -1234.5678);
        let line = |digits, all| Digits { log_det_digits: Some(digits), ..Digits::default() }.log_det_line(&value, all);
        assert_eq!(line(5.9, false), "log det A = -1.2346e3 (about 5 correct digits)");
        assert_eq!(line(1.2, false), "log det A = -1e3 (about 1 correct digit)");
        assert_eq!(line(0.9, false), "log det A: no digit is known to be correct; computed as -1.23e3");
        let all = line(5.0, true);
        assert!(all.starts_with("log det A = -1.2345[6") && all.contains("]e3 (about 5 correct digits; "), "{all}");
        assert!(Digits::default().log_det_line(&value, false).ends_with("(correct digits not estimated)"));
        let digits = Digits { digits: Some(8.7), certified: Some(7.99), lost_bits: Some(249.3), ..Digits::default() };
        for (tells_condition, condition) in [(true, "about 2^249"), (false, "at least about 2^249")] {
            let line = Digits { tells_condition, ..digits.clone() }.line("solution", 275).unwrap();
            let said = "solution: about 8 correct digits, at least 7 proven (275 bits, scaled condition";
            assert_eq!(line, format!("{said} {condition})"));
        }
    }
}
