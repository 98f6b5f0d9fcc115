//! Eight small problems of one shape side by side: a lane of every vector for each of them.
//!
//! Nothing is padded, and the steps that lanes cannot speed up within one problem, roots and reciprocals of pivots,
//! carries and rounding, are done for eight at once. Products are summed from the column of digits on that the result
//! takes (`sums`); where the products left out could change a rounding, the lane is given up, and the caller does that
//! problem by itself. Bounds: docs/ALGORITHM.md, "Eight problems in lanes".

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

/// How integers of one length lie in digits. Made only where the CPU has the instructions, so that a value proves them.
pub struct ProblemLanes {
    digits: usize,
    bits: u32,
    rule: WeightRule,
}

impl ProblemLanes {
    /// For integers `|x| < 2^(bits + 1)`, and sums of products `|s| <= 2^(2 bits)`; `None` where this processor lacks
    /// the instructions, or digits are too few or too many.
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

    /// Terms of a sum, at most.
    pub fn most_terms(&self) -> usize {
        lane_problem_terms(self.digits)
    }

    /// Words for factors of that order.
    pub fn factor_words(&self, order: usize, precision_bits: u32) -> usize {
        factor::words(self, order, precision_bits)
    }

    /// Factors eight matrices of no more than [`ProblemLanes::most_terms`] rows, with as many words as
    /// [`ProblemLanes::factor_words`]: passes on the entries one by one, by columns, and returns the lanes in which all
    /// of them agree with the definition.
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

    /// Solves eight systems of no more than [`ProblemLanes::most_terms`] rows and at least one, with as many words as
    /// [`ProblemLanes::solve_words`]: passes on the unknowns one by one, right side by right side, and returns the
    /// lanes in which all of them agree with the definition.
    pub fn solve(&self, systems: &Systems<'_>, words: &mut [u64], out: &mut Rounded<'_>) -> u8 {
        let (order, columns) = (systems.order, systems.columns);
        assert!((1..=self.most_terms()).contains(&order));
        assert!(systems.exponents.len() == order * PROBLEMS && systems.scales.len() == columns * PROBLEMS);
        assert!(systems.triangles.iter().all(|view| view.rows() >= order && view.cols() >= order));
        assert!(systems.rights.iter().all(|view| view.rows() >= order && view.cols() >= columns));
        // SAFETY: the CPU has the instructions, as there is a `ProblemLanes`.
        unsafe { solve::solve(self, systems, words, out) }
    }

    /// Words for products of operands of `columns` columns in all, and `rows` rows.
    pub fn product_words(&self, columns: usize, rows: usize, precision_bits: u32) -> usize {
        products::words(self, columns, rows, precision_bits)
    }

    /// Multiplies operands of no more than [`ProblemLanes::most_terms`] rows, with as many words as
    /// [`ProblemLanes::product_words`]: passes on the wanted entries, exact and then rounded.
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
