//! Eight small problems of one shape computed together: each problem is one lane of every vector.
//!
//! There is no padding, and the steps that lanes cannot speed up within one problem, roots and reciprocals of pivots,
//! carries and rounding, are done for eight problems at once. Products are summed from the first column of digits that
//! the result needs (`sums`); if the omitted products could change a rounding, the lane is abandoned, and the caller
//! computes that problem separately. Bounds: docs/ALGORITHM.md, "Eight problems in lanes".

mod columns;
mod cut;
mod factor;
pub(super) mod numbers;
mod pivots;
mod products;
mod remainder;
mod solve;
mod sums;

use super::factor::weights::WeightRule;
use crate::kernels::problems::{Matrices, PROBLEMS, ProblemColumns, ProblemProducts, Rounded, Systems};
use crate::kernels::x86_64::cpu;
use crate::math::bound::lane_problem_terms;
use cut::words as cut_words;

/// The layout of integers of one length in digits. A value exists only if the CPU has the instructions.
pub struct ProblemLanes {
    digits: usize,
    bits: u32,
    rule: WeightRule,
}

impl ProblemLanes {
    /// For integers `|x| < 2^(bits + 1)`, and sums of products `|s| <= 2^(2 bits)`; `None` if this processor lacks the
    /// instructions, or if there are too few or too many digits.
    pub fn new(bits: u32) -> Option<ProblemLanes> {
        cpu::has_ifma52().ok()?;
        let digits = (bits as usize + 2).div_ceil(numbers::DIGIT_BITS);
        let rule = WeightRule::new(bits, digits);
        (2..=sums::MOST_DIGITS).contains(&digits).then_some(ProblemLanes { digits, bits, rule })
    }

    /// Digits of an integer.
    pub fn digits(&self) -> usize {
        self.digits
    }

    /// Largest number of terms of a sum.
    pub fn most_terms(&self) -> usize {
        lane_problem_terms(self.digits)
    }

    /// Words for factors of that order.
    pub fn factor_words(&self, order: usize, precision_bits: u32) -> usize {
        factor::words(self, order, precision_bits)
    }

    /// Factors eight matrices of at most [`ProblemLanes::most_terms`] rows, with [`ProblemLanes::factor_words`] words:
    /// passes on the entries one by one, by columns, and returns the lanes in which all of them agree with the
    /// definition.
    pub fn factor(&self, matrices: &Matrices<'_>, words: &mut [u64], out: &mut Rounded<'_>) -> u8 {
        let order = matrices.order;
        assert!(order <= self.most_terms() && matrices.exponents.len() == order * PROBLEMS);
        assert!(matrices.limits.len() == order * PROBLEMS);
        assert!(matrices.views.iter().all(|view| view.rows() >= order && view.cols() >= order));
        // SAFETY: the CPU has the instructions, as there is a `ProblemLanes`.
        unsafe { factor::factor(self, matrices, words, out) }
    }

    /// Words for systems of that order.
    pub fn solve_words(&self, order: usize, precision_bits: u32) -> usize {
        solve::words(self, order, precision_bits)
    }

    /// Solves eight systems of at least one and at most [`ProblemLanes::most_terms`] rows, with
    /// [`ProblemLanes::solve_words`] words: passes on the unknowns one by one, right-hand side by right-hand side, and
    /// returns the lanes in which all of them agree with the definition.
    pub fn solve(&self, systems: &Systems<'_>, words: &mut [u64], out: &mut Rounded<'_>) -> u8 {
        let (order, columns) = (systems.order, systems.columns);
        assert!((1..=self.most_terms()).contains(&order));
        assert!(systems.exponents.len() == order * PROBLEMS && systems.scales.len() == columns * PROBLEMS);
        assert!(systems.triangles.iter().all(|view| view.rows() >= order && view.cols() >= order));
        assert!(systems.rights.iter().all(|view| view.rows() >= order && view.cols() >= columns));
        // SAFETY: the CPU has the instructions, as there is a `ProblemLanes`.
        unsafe { solve::solve(self, systems, words, out) }
    }

    /// Words for products of operands with `columns` columns in total, and `rows` rows.
    pub fn product_words(&self, columns: usize, rows: usize, precision_bits: u32) -> usize {
        products::words(self, columns, rows, precision_bits)
    }

    /// Multiplies operands of at most [`ProblemLanes::most_terms`] rows, with [`ProblemLanes::product_words`] words:
    /// passes on the selected entries, exact and then rounded.
    pub fn multiply(&self, products: &ProblemProducts<'_>, words: &mut [u64], out: &mut Rounded<'_>) {
        let rows = products.left.views[0].rows();
        assert!((1..=self.most_terms()).contains(&rows));
        for columns in [Some(&products.left), products.right.as_ref()].into_iter().flatten() {
            let shape = (rows, columns.views[0].cols());
            assert!(columns.views.iter().all(|view| (view.rows(), view.cols()) == shape));
            assert!(columns.shifts.len() == shape.1 * PROBLEMS);
        }
        // SAFETY: the CPU has the instructions, as there is a `ProblemLanes`.
        unsafe { products::multiply(self, products, words, out) }
    }
}

#[cfg(test)]
mod tests;
