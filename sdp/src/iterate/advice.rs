//! The bits that a run should have had which ended for lack of them.
//!
//! The equation for the direction has eigenvalues from the complementarity to its inverse, so its condition grows with
//! the inverse square of the gap: a gap that is `2^-k` times one that was reached at some precision takes `2 k` bits
//! more. Errors of the equations are those of solves, in proportion to `2^-bits`: one that is `2^k` above its threshold
//! takes `k` bits more. If a side has no interior the condition grows faster than that, and no number of bits need be
//! sufficient: the advice is not a guarantee, and states what follows if it was followed in vain.

use crate::iterate::quality::Quality;
use crate::iterate::ramp;
use crate::options::SolverOptions;
use rug::Float;

/// Bits in addition to those that gap and errors need.
const SPARE_BITS: f64 = 32.0;

/// An advised precision is a multiple of this.
const STEP: u32 = 32;

/// Powers of two by which a value stands above its threshold; none where no value is below it.
fn excess(value: &Float, threshold: &Float) -> Option<f64> {
    match (*threshold > 0, value.is_zero()) {
        (false, _) => None,
        (true, true) => Some(0.0),
        (true, false) => Some(Float::with_val(64, value / threshold).log2().to_f64().max(0.0)),
    }
}

/// See the module.
pub struct Advice {
    /// The precision that would suffice; none where a threshold is 0, which no precision reaches.
    pub bits: Option<u32>,
    /// The advice as a sentence.
    pub sentence: String,
}

impl Advice {
    /// The advice after a run with too few `bits`, from the gap and the errors of its solution.
    pub fn new(options: &SolverOptions, bits: u32, reached: &Quality) -> Advice {
        // A smaller gap is one that these bits do not show.
        let gap = &reached.gap.clone().max(&ramp::least_gap(bits));
        let (primal, dual) = (reached.primal_error(), &reached.dual_error);
        let found = advised_bits(options, bits, gap, [primal, dual]);
        let sentence = match found {
            Some(found) => format!(
                "{found} bits should suffice if both sides have an interior: with {bits} bits the run reached a gap of \
                 {gap:.2e}, a primal error of {primal:.2e} and a dual error of {dual:.2e}; if a run with {found} bits \
                 ends like this too, one of the sides has probably no interior, and more bits gain little"
            ),
            None => "no precision reaches these thresholds".into(),
        };
        Advice { bits: found, sentence }
    }
}

fn advised_bits(options: &SolverOptions, bits: u32, gap: &Float, errors: [&Float; 2]) -> Option<u32> {
    let gap = excess(gap, &options.duality_gap_threshold)?;
    let primal = excess(errors[0], &options.primal_error_threshold)?;
    let dual = excess(errors[1], &options.dual_error_threshold)?;
    let more = 2.0 * gap + primal.max(dual) + SPARE_BITS;
    let steps = (f64::from(bits) + more) / f64::from(STEP);
    (steps < f64::from(u32::MAX / STEP)).then(|| steps.ceil() as u32 * STEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Form;

    #[test]
    fn bits_follow_from_gap_and_errors() {
        let mut options = SolverOptions::new(Form::Sdpa);
        let power = |exponent: i32| Float::with_val(64, 1) << exponent;
        options.duality_gap_threshold = power(-100);
        options.primal_error_threshold = power(-90);
        let (none, some) = (Float::new(64), power(-50));
        let advised = |options: &SolverOptions, bits: u32, gap: &Float, primal: &Float| {
            advised_bits(options, bits, gap, [primal, &none])
        };
        assert_eq!(advised(&options, 112, &power(-60), &none), Some(224));
        assert_eq!(advised(&options, 144, &power(-60), &none), Some(256));
        assert_eq!(advised(&options, 145, &power(-60), &none), Some(288));
        assert_eq!(advised(&options, 144, &power(-60), &some), Some(256 + 64));
        // A gap that is below its threshold needs no further bits.
        assert_eq!(advised(&options, 96, &power(-120), &none), Some(128));
        assert_eq!(advised(&options, 96, &none, &none), Some(128));
        options.duality_gap_threshold = Float::new(64);
        assert_eq!(advised(&options, 128, &power(-60), &none), None);
    }
}
