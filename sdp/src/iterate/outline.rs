//! A hash of programs and states with all their numbers, by which ranks find out whether they have the same.

use crate::iterate::best::{Best, Course, Merit};
use crate::iterate::outcome::State;
use crate::iterate::outset::Outset;
use crate::iterate::point::Point;
use crate::iterate::quality::Quality;
use crate::iterate::visit::Visitor;
use crate::options::SolverOptions;
use crate::problem::{Entry, SparseCone};
use rug::Float;
use sunzi::Matrix;
use xxhash_rust::xxh3::Xxh3;

/// The stream of data that is hashed. Every list and every number is written with its length, so no two streams run
/// together.
pub struct Outline {
    hash: Xxh3,
}

impl Visitor for Outline {
    fn shape(&mut self, text: &str) {
        self.text(text);
    }

    fn number(&mut self, value: &Float) {
        self.float(value);
    }

    fn matrix(&mut self, matrix: &Matrix) {
        let (heads, limbs) = matrix.parts();
        self.text(&format!("{} {} {}", matrix.rows(), matrix.cols(), matrix.precision_bits()));
        heads.iter().chain(limbs).for_each(|&word| self.word(word));
    }

    fn presence(&mut self, is_there: bool) {
        self.word(u64::from(is_there));
    }

    fn block(&mut self, cone: &SparseCone) {
        self.text(&format!("{:?} {}", cone.shape, cone.active.len()));
        cone.active.iter().for_each(|&variable| self.word(variable as u64));
        cone.entries.iter().chain([&cone.constant]).for_each(|entries| self.entries(entries));
    }
}

impl Outline {
    /// Begins with a text.
    pub fn new(text: &str) -> Outline {
        let mut outline = Outline { hash: Xxh3::new() };
        outline.text(text);
        outline
    }

    /// The hash of all that was written.
    pub fn digest(&self) -> u64 {
        self.hash.digest()
    }

    /// A number of 64 bits.
    pub fn word(&mut self, word: u64) {
        self.hash.update(&word.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        self.hash.update(text.as_bytes());
    }

    /// The number; its precision does not count.
    fn float(&mut self, value: &Float) {
        match value.to_integer_exp() {
            Some((digits, exponent)) => {
                // The same number has more zeros at the end where it is kept with more bits.
                let zeros = digits.find_one(0).unwrap_or(0);
                self.text(&format!("{:x}p{}", digits >> zeros, i64::from(exponent) + i64::from(zeros)));
            }
            None => self.text(&value.to_string()),
        }
    }

    fn entries(&mut self, entries: &[Entry]) {
        self.word(entries.len() as u64);
        for Entry { row, col, value } in entries {
            self.word(*row as u64);
            self.word(*col as u64);
            self.float(value);
        }
    }

    /// All data on which the course of a run depends.
    pub fn options(&mut self, options: &SolverOptions) {
        let SolverOptions {
            find_primal_feasible,
            find_dual_feasible,
            detect_primal_feasible_jump,
            detect_dual_feasible_jump,
            max_iterations,
            max_runtime,
            duality_gap_threshold,
            primal_error_threshold,
            dual_error_threshold,
            initial_matrix_scale_primal,
            initial_matrix_scale_dual,
            feasible_centering_parameter,
            infeasible_centering_parameter,
            step_length_reduction,
            min_primal_step,
            min_dual_step,
            max_complementarity,
            infeasibility_threshold,
            lower_bound,
            upper_bound,
            ramp,
            measures_centre,
        } = options;
        let choices = [find_primal_feasible, find_dual_feasible, detect_primal_feasible_jump];
        let others = [detect_dual_feasible_jump, ramp, measures_centre];
        choices.into_iter().chain(others).for_each(|&choice| self.word(choice.into()));
        [max_iterations, max_runtime].into_iter().for_each(|&most| self.word(most));
        let thresholds = [duality_gap_threshold, primal_error_threshold, dual_error_threshold, infeasibility_threshold];
        let scales = [initial_matrix_scale_primal, initial_matrix_scale_dual, step_length_reduction];
        let centre = [feasible_centering_parameter, infeasible_centering_parameter, max_complementarity];
        let numbers = thresholds.into_iter().chain(scales).chain(centre).chain([min_primal_step, min_dual_step]);
        numbers.for_each(|number| self.float(number));
        for bound in [lower_bound, upper_bound] {
            self.word(bound.is_some().into());
            bound.iter().for_each(|bound| self.float(bound));
        }
    }

    /// Adds the part of a state that is equal on all ranks: everything except the blocks of its points.
    pub fn shared(&mut self, state: &State) {
        let State { iterations, precision_bits, reached, is_ended, .. } = state;
        self.text(&format!("{iterations} {precision_bits} {reached:?} {is_ended}"));
        self.float(&state.steps.0);
        self.float(&state.steps.1);
        self.matrix(&state.point.y);
        let Outset { mu, small } = &state.outset;
        self.word(*small);
        mu.iter().flat_map(|(first, last)| [first, last]).for_each(|mu| self.float(mu));
        self.word(u64::from(state.course.is_some()));
        state.course.iter().for_each(|course| self.course(course));
    }

    /// The whole points of a state.
    pub fn points(&mut self, state: &State) {
        self.point(&state.point);
        let best = state.course.as_ref().and_then(|course| course.best.as_deref());
        best.iter().for_each(|best| self.point(&best.point));
    }

    fn course(&mut self, course: &Course) {
        let Course { best, feasible, seen, worse, thresholds } = course;
        self.text(&format!("{feasible:?} {worse} {} {}", seen.is_some(), best.is_some()));
        let seen = seen.iter().flat_map(|seen| [&seen.least_size, &seen.least_error, &seen.error]);
        seen.chain(thresholds).for_each(|number| self.float(number));
        let Some(best) = best else { return };
        let Best { point, quality, iterations, merit: Merit { is_feasible, size } } = &**best;
        self.text(&format!("{iterations} {is_feasible}"));
        self.float(size);
        let Quality { primal_objective, dual_objective, gap, primal_matrix_error, primal_free_error, dual_error } =
            quality;
        [primal_objective, dual_objective, gap, primal_matrix_error, primal_free_error, dual_error]
            .into_iter()
            .for_each(|number| self.float(number));
        self.matrix(&point.y);
    }

    fn point(&mut self, point: &Point) {
        let Point { x, primal, dual, y: _ } = point;
        self.text(&format!("{} {} {}", x.len(), primal.len(), dual.len()));
        x.iter().for_each(|x| self.matrix(x));
        for block in primal.iter().chain(dual) {
            self.text(&format!("{:?}", block.shape()));
            self.matrix(block.stored());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Form;

    #[test]
    fn numbers_count_and_their_precision_does_not() {
        let digest = |value: Float| {
            let mut outline = Outline::new("");
            outline.float(&value);
            outline.digest()
        };
        let third = Float::with_val(64, 1) / 3u32;
        assert_eq!(digest(third.clone()), digest(Float::with_val(300, &third)));
        let mut other = third.clone();
        other.next_up();
        let all = [third.clone(), -third.clone(), third.clone() * 2u32, other, Float::new(64), Float::with_val(64, 1)];
        let digests = all.map(digest);
        for (at, one) in digests.iter().enumerate() {
            assert!(digests[..at].iter().all(|two| one != two), "{at}");
        }
    }

    #[test]
    fn every_option_is_told() {
        let digest = |options: &SolverOptions| {
            let mut outline = Outline::new("options");
            outline.options(options);
            outline.digest()
        };
        let other = || Float::with_val(64, 0.125);
        let changes: [fn(&mut SolverOptions, Float); 22] = [
            |of, _| of.find_primal_feasible ^= true,
            |of, _| of.find_dual_feasible ^= true,
            |of, _| of.detect_primal_feasible_jump ^= true,
            |of, _| of.detect_dual_feasible_jump ^= true,
            |of, _| of.max_iterations += 1,
            |of, _| of.max_runtime -= 1,
            |of, value| of.duality_gap_threshold = value,
            |of, value| of.primal_error_threshold = value,
            |of, value| of.dual_error_threshold = value,
            |of, value| of.initial_matrix_scale_primal = value,
            |of, value| of.initial_matrix_scale_dual = value,
            |of, value| of.feasible_centering_parameter = value,
            |of, value| of.infeasible_centering_parameter = value,
            |of, value| of.step_length_reduction = value,
            |of, value| of.min_primal_step = value,
            |of, value| of.min_dual_step = value,
            |of, value| of.max_complementarity = value,
            |of, value| of.infeasibility_threshold = value,
            |of, value| of.lower_bound = Some(value),
            |of, value| of.upper_bound = Some(value),
            |of, _| of.ramp ^= true,
            |of, _| of.measures_centre ^= true,
        ];
        let plain = SolverOptions::new(Form::Sdpb);
        let mut digests = std::collections::HashSet::from([digest(&plain)]);
        for (at, change) in changes.iter().enumerate() {
            let mut options = plain.clone();
            change(&mut options, other());
            assert!(digests.insert(digest(&options)), "option {at}");
        }
    }
}
