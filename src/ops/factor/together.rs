//! Factors of up to eight small matrices of one order side by side, each in a lane of its own.
//!
//! The same integers by the same rules (`math::pivot`), so the same bits as one after the other. A matrix that is not
//! positive definite, or with a rounding too close to call, is left to the single call; so is one whose entrywise
//! accuracy takes other bits than that of most of its neighbours.

use crate::context::{Context, WorkspaceNeeds};
use crate::error::Result;
use crate::kernels::problem_lanes::{Matrices, PROBLEMS, ProblemLanes};
use crate::math::float::{Head, limbs_for};
use crate::math::pivot::RowWeight;
use crate::matrix::{Matrix, MatrixView, check_exponent};
use crate::ops::factor::entrywise::{RangeBits, check_bytes, deepest_entry, needed_bits};
use crate::ops::factor::options::CholeskyOptions;
use crate::ops::factor::problem::{FactorInput, FactorProblem, working_bits};
use crate::ops::product::together::{LanesDone, MOST_RANGE_BITS, most_frequent};
use crate::store::Buffer;
use bytemuck::cast_slice_mut;

/// Bytes of the words of eight factors beyond which they leave the nearest caches, and single calls are as fast.
const MOST_BYTES: u64 = 2 << 20;

/// Factors of one order and precision.
pub(crate) struct LaneFactors {
    lanes: ProblemLanes,
    order: usize,
    precision_bits: u32,
    /// Fixed-point bits by norms.
    working_bits: u32,
    /// The bits beyond them for matrices with entries of similar size; `None` by norms.
    range: Option<RangeBits>,
}

/// The most bits for the range of exponents that lanes have room for.
fn most_range_bits(range: Option<RangeBits>) -> u32 {
    range.map_or(0, |range| range.at_least(range.bits + MOST_RANGE_BITS).bits)
}

impl LaneFactors {
    /// The path where this processor has it, and neither tiles, a kernel nor devices are requested.
    pub fn choose(ctx: &Context, order: usize, precision_bits: u32, options: &CholeskyOptions) -> Option<LaneFactors> {
        let is_plain = options.tile_rows.is_none() && ctx.forced_kernel().is_none() && ctx.devices().is_empty();
        if !is_plain || order == 0 {
            return None;
        }
        let range = RangeBits::for_accuracy(options.accuracy, order, precision_bits, options.range_bits);
        let working_bits = working_bits(precision_bits, ctx.maximum_modulus_bits()).ok()?;
        let lanes = ProblemLanes::new(working_bits + most_range_bits(range))?;
        let together = LaneFactors { lanes, order, precision_bits, working_bits, range };
        (order <= together.lanes.most_terms() && together.bytes() <= MOST_BYTES).then_some(together)
    }

    /// Fixed-point bits of factors with these bits for the range of exponents.
    pub fn working_bits(&self, range_bits: u32) -> u32 {
        self.working_bits + range_bits
    }

    /// A matrix scaled for the bits that the single call begins with, and these bits for the range of exponents.
    fn scaled(
        &self,
        exponents: Vec<i64>,
        weights: Vec<RowWeight>,
        lower: MatrixView<'_>,
    ) -> Result<(FactorProblem, u32)> {
        let in_lists = |exponents, weights, range_bits| {
            FactorProblem::in_lists(exponents, weights, lower, self.precision_bits, self.working_bits(range_bits))
        };
        let Some(range) = self.range else { return Ok((in_lists(exponents, weights, 0)?, 0)) };
        let problem = in_lists(exponents, weights, range.bits)?;
        let needed = range.for_depth(deepest_entry(FactorInput { problem: &problem, lower })).bits;
        if needed == range.bits {
            return Ok((problem, needed));
        }
        Ok((in_lists(problem.exponents, problem.weights, needed)?, needed))
    }

    /// The lanes among those that are done whose factors keep the promise of entrywise accuracy with their bits.
    fn promised(
        &self,
        ctx: &Context,
        exponents: &[i64],
        lowers: &[MatrixView<'_>],
        factors: &[Matrix],
        LanesDone { mask, range_bits }: LanesDone,
    ) -> Result<u8> {
        let (order, mut promised) = (self.order, 0);
        let working_bits = self.working_bits(range_bits);
        let mut problem = FactorProblem::unscaled(order, order, self.precision_bits, working_bits)?;
        for lane in (0..lowers.len()).filter(|lane| mask >> lane & 1 == 1) {
            problem.exponents.clear();
            problem.exponents.extend(exponents.iter().skip(lane).step_by(PROBLEMS));
            let input = FactorInput { problem: &problem, lower: lowers[lane] };
            let needed = needed_bits(ctx, input, &factors[lane], range_bits)?;
            promised |= u8::from(needed <= range_bits) << lane;
        }
        Ok(promised)
    }

    /// Words of the lists of exponents and weights, and of the lanes.
    fn words(&self) -> usize {
        2 * self.order * PROBLEMS + self.lanes.factor_words(self.order, self.precision_bits)
    }

    /// Bytes in addition to the factors.
    pub fn bytes(&self) -> u64 {
        let lists = (self.order * (size_of::<i64>() + 2 * size_of::<u64>())) as u64;
        // The exponents of a matrix once more while its factor is checked.
        let check = if self.range.is_some() { check_bytes(self.order) + 8 * self.order as u64 } else { 0 };
        Buffer::bytes_for(self.words()) + lists + check
    }

    /// Factors the matrices with these lower triangles, up to eight, into `factors` of their order and precision.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn factor(&self, ctx: &Context, lowers: &[MatrixView<'_>], factors: &mut [Matrix]) -> Result<LanesDone> {
        let order = self.order;
        let memory = ctx.memory_beside_tables();
        if memory.admit(self.bytes()).is_err() {
            return Ok(LanesDone::default()); // tables of larger problems leave no room for eight at a time
        }
        assert!(lowers.len() <= PROBLEMS && lowers.len() == factors.len());
        let mut workspace = ctx.workspace();
        let workspace = &mut *workspace;
        let operand_bytes = Buffer::bytes_for(self.words());
        let needs = WorkspaceNeeds { operand_bytes, planned_bytes: self.bytes(), ..WorkspaceNeeds::default() };
        workspace.trim(memory, &needs);
        let mut shifts = std::mem::take(&mut workspace.left_shifts);
        let mut weights = std::mem::take(&mut workspace.weights[1]);
        let (exponents, words) = workspace.operands.words(self.words())?.split_at_mut(order * PROBLEMS);
        let (limits, words) = words.split_at_mut(order * PROBLEMS);
        let exponents = cast_slice_mut::<u64, i64>(exponents);
        let mut ranges = [None; PROBLEMS];
        for (lane, lower) in lowers.iter().enumerate() {
            let (problem, range_bits) = self.scaled(shifts, weights, *lower)?;
            if problem.is_whole() && problem.weights.iter().all(|weight| weight.sum == 0) {
                ranges[lane] = Some(range_bits);
                for (row, (exponent, weight)) in problem.exponents.iter().zip(&problem.weights).enumerate() {
                    (exponents[row * PROBLEMS + lane], limits[row * PROBLEMS + lane]) = (*exponent, weight.limit);
                }
            }
            (shifts, weights) = (problem.exponents, problem.weights);
        }
        let range_bits = most_frequent(&ranges, most_range_bits(self.range)).unwrap_or(0);
        let lanes = ProblemLanes::new(self.working_bits(range_bits));
        let of_group = |lane: &usize| lanes.is_some() && ranges[*lane] == Some(range_bits);
        let whole = (0..lowers.len()).filter(of_group).fold(0u8, |mask, lane| mask | 1 << lane);
        let first = whole.trailing_zeros() as usize;
        let mut done = 0;
        if let Some(lanes) = lanes.filter(|_| whole != 0) {
            // Lanes without a matrix repeat the work of the first one.
            let is_whole = |lane: usize| whole >> lane & 1 == 1;
            for lane in (0..PROBLEMS).filter(|&lane| !is_whole(lane)) {
                for row in (0..order).map(|row| row * PROBLEMS) {
                    (exponents[row + lane], limits[row + lane]) = (exponents[row + first], limits[row + first]);
                }
            }
            let views = std::array::from_fn(|lane| lowers[if is_whole(lane) { lane } else { first }]);
            let precision_bits = self.precision_bits;
            let matrices = Matrices { views, order, exponents, limits, precision_bits };
            let mut beyond = 0u8;
            done = whole
                & lanes.factor(&matrices, words, &mut |(row, col), heads, limbs| {
                    beyond |= scatter(row, col, heads, limbs, factors);
                });
            done &= !beyond;
        }
        let mut done = LanesDone { mask: done, range_bits };
        if self.range.is_some() {
            done.mask = self.promised(ctx, exponents, lowers, factors, done)?;
        }
        (workspace.left_shifts, workspace.weights[1]) = (shifts, weights);
        Ok(done)
    }
}

/// Writes an entry of each factor; those whose exponent is beyond all limits.
fn scatter(row: usize, col: usize, heads: &[u64; PROBLEMS], limbs: &[u64], factors: &mut [Matrix]) -> u8 {
    let mut beyond = 0;
    for (lane, factor) in factors.iter_mut().enumerate() {
        let width = limbs_for(factor.precision_bits());
        let at = row + col * factor.rows();
        let (own, significands) = factor.parts_mut();
        if check_exponent(Head(heads[lane]).exponent(), row, col).is_err() {
            beyond |= 1 << lane;
            continue; // no matrix holds such a number
        }
        own[at] = heads[lane];
        significands[at * width..][..width].copy_from_slice(&limbs[lane * width..][..width]);
    }
    beyond
}

#[cfg(test)]
mod tests {
    //! Factors side by side against the definition.

    use super::*;
    use crate::kernels::problem_lanes::on_all_lanes;
    use crate::math::float::limbs_for;
    use crate::ops::factor::problem::FactorInput;
    use crate::ops::factor::reference;
    use crate::ops::product::problem::Accuracy;
    use rug::{Float, Integer, rand::RandState};

    /// A matrix of random entries below `2^-spread` with ones and more on its diagonal, whose rows grow by `2^step`
    /// each.
    fn random(order: usize, bits: u32, (spread, step): (i32, i32), rng: &mut RandState<'_>) -> Matrix {
        let mut a = Matrix::zeros(order, order, bits).unwrap();
        for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let value = Float::with_val(bits, Float::random_bits(rng)) - 0.5f64;
            let value = if row == col { value + 1.5f64 } else { value >> spread };
            let value = if rng.below(9) == 0 && row != col { Float::new(bits) } else { value };
            a.set_float(row, col, &(value << (step * (row + col) as i32))).unwrap();
        }
        a
    }

    #[test]
    fn factors_are_those_of_the_definition() {
        on_all_lanes(check_factors);
    }

    fn check_factors() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let mut rng = RandState::new();
        rng.seed(&Integer::from(73));
        let mut all = 0;
        for (case, bits) in [52u32, 64, 100, 155, 256, 320, 510, 640, 768, 832, 1024, 1200].into_iter().enumerate() {
            for order in [1usize, 2, 3, 8, 13] {
                let Some(together) =
                    LaneFactors::choose(&ctx, order, bits, &CholeskyOptions::new().accuracy(Accuracy::Norm))
                else {
                    continue;
                };
                // Well conditioned; with pivots that fall by many bits; and some that have no factor.
                let forms = [(4, 0), (1, 0), (1, 3), (0, -7), (4, 1), (-3, 0), (5, 40), (3, 0)];
                let count = 1 + (case + order) % PROBLEMS;
                let matrices = (0..count).map(|lane| random(order, bits + 5 * lane as u32, forms[lane], &mut rng));
                let matrices = matrices.collect::<Vec<_>>();
                let lowers = matrices.iter().map(Matrix::view).collect::<Vec<_>>();
                let mut factors = vec![Matrix::zeros(order, order, bits).unwrap(); count];
                let done = together.factor(&ctx, &lowers, &mut factors).unwrap().mask;
                for (lane, (lower, got)) in lowers.iter().zip(&factors).enumerate() {
                    let problem = FactorProblem::new(*lower, bits, together.working_bits(0)).unwrap();
                    let want = reference::factor(FactorInput { problem: &problem, lower: *lower })
                        .map(|rows| rows.to_matrix(&problem).unwrap());
                    let is_done = done >> lane & 1 == 1;
                    let what = format!("{bits} bits, {order} rows, lane {lane} of {count}");
                    match want {
                        Ok(want) if problem.is_whole() => {
                            // A matrix far from singular must not be left to the single call.
                            assert!(is_done || lane > 2, "{what}");
                            assert!(!is_done || *got == want, "{what}");
                            all += u32::from(is_done);
                        }
                        _ => assert!(!is_done, "{what} is not positive definite"),
                    }
                }
                assert!(limbs_for(bits) == factors[0].limbs_per_element());
            }
        }
        assert!(all > 150 || ProblemLanes::new(100).is_none(), "{all} factors");
    }

    /// Lanes whose matrices are scaled by thousands of bits against each other.
    #[test]
    fn scales_of_other_lanes_do_not_matter() {
        on_all_lanes(check_scales);
    }

    fn check_scales() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let mut rng = RandState::new();
        rng.seed(&Integer::from(75));
        let (order, bits) = (9, 256);
        let Some(together) = LaneFactors::choose(&ctx, order, bits, &CholeskyOptions::new().accuracy(Accuracy::Norm))
        else {
            return println!("skipped: no lanes");
        };
        let scales = [0, 1 << 20, -(1 << 20), 1, 1 << 28, -(1 << 28), 5000, -333];
        let matrices = scales.map(|scale| {
            let mut a = random(order, bits, (4, 0), &mut rng);
            for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
                let value = a.float(row, col) << scale;
                a.set_float(row, col, &value).unwrap();
            }
            a
        });
        let lowers = matrices.iter().map(Matrix::view).collect::<Vec<_>>();
        let mut factors = vec![Matrix::zeros(order, order, bits).unwrap(); PROBLEMS];
        assert_eq!(together.factor(&ctx, &lowers, &mut factors).unwrap().mask, u8::MAX);
        for (lower, got) in lowers.iter().zip(&factors) {
            let problem = FactorProblem::new(*lower, bits, together.working_bits(0)).unwrap();
            let want = reference::factor(FactorInput { problem: &problem, lower: *lower })
                .map(|rows| rows.to_matrix(&problem).unwrap());
            assert!(want.is_ok_and(|want| *got == want));
        }
    }

    /// Entrywise: a factor that is done here has the bits and the range of the single call.
    #[test]
    fn entrywise_factors_are_those_of_single_calls() {
        on_all_lanes(check_entrywise);
    }

    fn check_entrywise() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let mut rng = RandState::new();
        rng.seed(&Integer::from(76));
        let (mut done_here, mut left, mut ranges) = (0, 0, std::collections::BTreeSet::new());
        for (case, bits) in [64u32, 155, 256, 510, 768, 1024].into_iter().enumerate() {
            for order in [1usize, 2, 9, 31, 32, 33, 40] {
                for least_bits in [0, 40] {
                    let options = CholeskyOptions::new().range_bits(least_bits);
                    let Some(together) = LaneFactors::choose(&ctx, order, bits, &options) else { continue };
                    // Entries of similar size, and rows and columns that fall by many bits or have small entries.
                    let forms = [(4, 0), (3, 0), (1, 3), (20, 0), (60, 0), (4, -9), (150, 1), (2, 0)];
                    let count = 1 + (case + order) % PROBLEMS;
                    let matrices = (0..count).map(|lane| random(order, bits + 5 * lane as u32, forms[lane], &mut rng));
                    let matrices = matrices.collect::<Vec<_>>();
                    let lowers = matrices.iter().map(Matrix::view).collect::<Vec<_>>();
                    let mut factors = vec![Matrix::zeros(order, order, bits).unwrap(); count];
                    let LanesDone { mask: done, range_bits } = together.factor(&ctx, &lowers, &mut factors).unwrap();
                    let choices = lowers.iter().map(|lower| {
                        let (problem, range_bits) = together.scaled(Vec::new(), Vec::new(), *lower).unwrap();
                        problem.is_whole().then_some(range_bits)
                    });
                    let choices = choices.collect::<Vec<_>>();
                    assert!(choices.contains(&Some(range_bits)) || done == 0, "{choices:?}: {range_bits}");
                    for (lane, (matrix, got)) in matrices.iter().zip(&factors).enumerate() {
                        let lower = crate::matrix::Symmetric::lower(matrix);
                        let single = crate::cholesky_with(&ctx, lower, bits, &options);
                        let is_done = done >> lane & 1 == 1;
                        let what = format!("{bits} bits, {order} rows, lane {lane} of {count}, at least {least_bits}");
                        let Ok(single) = single else {
                            assert!(!is_done, "{what} has no factor");
                            continue;
                        };
                        let same_range = single.report.range_bits == range_bits;
                        assert!(!is_done || same_range, "{what}");
                        assert!(!is_done || *got == *single.result.factor(), "{what}");
                        assert!(!is_done || single.report.accuracy == Accuracy::Entrywise, "{what}");
                        assert!(is_done || lane > 1 || !same_range, "{what} is left to the single call");
                        ranges.insert(range_bits);
                        (done_here, left) = (done_here + u32::from(is_done), left + u32::from(!is_done));
                    }
                }
            }
        }
        assert!(
            (done_here > 100 && left > 10 && ranges.len() > 2) || ProblemLanes::new(100).is_none(),
            "{done_here} done, {left} left"
        );
    }
}
