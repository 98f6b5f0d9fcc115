//! Up to eight small products of one shape side by side, each in a lane of its own.
//!
//! The same scaled integers, the same exact sums and the same rounding as one after the other, so the same bits. A
//! problem with an error is left to the single call; with entrywise accuracy so is a problem whose entries need another
//! number of bits than most of its neighbours, or separate sums.

use crate::context::{Context, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::kernels::problem_lanes::{PROBLEMS, ProblemColumns, ProblemLanes, ProblemProducts};
use crate::math::float::Head;
use crate::matrix::{Destination, EntryIndex, MatrixViewMut};
use crate::ops::product::call::scale_operands;
use crate::ops::product::entrywise::{choice_bytes, takes_all};
use crate::ops::product::path::goes_side_by_side;
use crate::ops::product::problem::{Accuracy, Bits, ProductProblem, ProductSize};
use crate::store::Buffer;
use bytemuck::cast_slice_mut;
use std::cmp::Reverse;

/// Bytes of the digits of eight problems beyond which they leave the nearest caches, and single calls are as fast.
const MOST_BYTES: u64 = 2 << 20;

/// The largest number of bits for the range of exponents that lanes have room for: entries of similar size ask for 8 or
/// 16.
pub(crate) const MOST_RANGE_BITS: u32 = 32;

/// Products of one size and precision.
pub(crate) struct LaneProducts {
    lanes: ProblemLanes,
    size: ProductSize,
    /// The largest number of bits that the lanes can hold.
    bits: Bits,
    accuracy: Accuracy,
}

/// The results of problems that were computed at once.
#[derive(Clone, Copy, Default)]
pub(crate) struct LanesDone {
    /// A bit for each problem that is done.
    pub mask: u8,
    /// The bits beyond those of norms that they took.
    pub range_bits: u32,
}

impl LaneProducts {
    /// The path where this processor has it, and single calls of that size take longer.
    pub fn choose(ctx: &Context, size: ProductSize, precision_bits: u32, accuracy: Accuracy) -> Option<LaneProducts> {
        size.check(ctx.maximum_modulus_bits(), precision_bits).ok()?;
        let bits = Bits::scaled(precision_bits, size.contracted);
        let is_entrywise = accuracy == Accuracy::Entrywise;
        if !goes_side_by_side(ctx, &size, bits.working) || is_entrywise && takes_all(&size, precision_bits) {
            return None;
        }
        let bits = bits.with_range(if is_entrywise { MOST_RANGE_BITS } else { 0 });
        let together = LaneProducts { lanes: ProblemLanes::new(bits.operand)?, size, bits, accuracy };
        (size.contracted <= together.lanes.most_terms() && together.bytes() <= MOST_BYTES).then_some(together)
    }

    /// Words of the shifts, and of the lanes.
    fn words(&self) -> usize {
        let columns = self.size.operand_columns();
        columns * PROBLEMS + self.lanes.product_words(columns, self.size.contracted, self.bits.result)
    }

    /// Bytes in addition to the results.
    pub fn bytes(&self) -> u64 {
        let choice = if self.accuracy == Accuracy::Entrywise { choice_bytes(&self.size) } else { 0 };
        Buffer::bytes_for(self.words()) + (self.size.operand_columns() * size_of::<i64>()) as u64 + choice
    }

    /// Computes up to eight products without scalars and added matrices, at the accuracy of these lanes.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Cancelled`].
    pub fn run(
        &self,
        ctx: &Context,
        problems: &[Option<ProductProblem<'_>>; PROBLEMS],
        destinations: [Option<Destination<'_>>; PROBLEMS],
    ) -> Result<LanesDone> {
        let (size, planned_bytes) = (&self.size, self.bytes());
        let memory = ctx.memory_beside_tables();
        if memory.admit(planned_bytes).is_err() {
            return Ok(LanesDone::default()); // tables of larger problems leave no room for eight at a time
        }
        let mut workspace = ctx.workspace();
        let workspace = &mut *workspace;
        let operand_bytes = Buffer::bytes_for(self.words());
        let needs = WorkspaceNeeds { operand_bytes, planned_bytes, ..WorkspaceNeeds::default() };
        workspace.trim(memory, &needs);
        let mut buffer = std::mem::take(&mut workspace.operands);
        let (left_shifts, words) = buffer.words(self.words())?.split_at_mut(size.rows * PROBLEMS);
        let right_columns = size.operand_columns() - size.rows;
        let (right_shifts, words) = words.split_at_mut(right_columns * PROBLEMS);
        let (left_shifts, right_shifts) = (cast_slice_mut(left_shifts), cast_slice_mut(right_shifts));
        let mut ranges = [None; PROBLEMS];
        for (lane, problem) in problems.iter().enumerate() {
            let Some(problem) = problem else { continue };
            let ready = problem.check(ctx.maximum_modulus_bits());
            match ready.and_then(|()| scale_operands(ctx, 1, problem, workspace)) {
                Err(error @ (Error::Cancelled | Error::OutOfMemory { .. })) => return Err(error),
                Err(_) => continue,
                Ok(own) => ranges[lane] = own.common_range(),
            }
            for (shifts, all) in
                [(&workspace.left_shifts, &mut *left_shifts), (&workspace.right_shifts, &mut *right_shifts)]
            {
                all.iter_mut().skip(lane).step_by(PROBLEMS).zip(shifts).for_each(|(own, &shift)| *own = shift);
            }
        }
        let Some(range_bits) = most_frequent(&ranges, MOST_RANGE_BITS) else {
            workspace.operands = buffer;
            return Ok(LanesDone::default());
        };
        let mut results: [Option<MatrixViewMut<'_>>; PROBLEMS] = std::array::from_fn(|_| None);
        for (lane, (problem, destination)) in problems.iter().zip(destinations).enumerate() {
            let (Some(problem), Some(destination)) = (problem, destination) else { continue };
            if ranges[lane] != Some(range_bits) {
                continue;
            }
            match destination.prepare(problem.result_shape(), self.bits.result) {
                Err(error @ (Error::Cancelled | Error::OutOfMemory { .. })) => return Err(error),
                Err(_) => continue,
                Ok(view) => results[lane] = Some(view),
            }
        }
        let bits = Bits::scaled(self.bits.result, size.contracted).with_range(range_bits);
        let lanes = ProblemLanes::new(bits.operand);
        let mask =
            lanes.map_or(0, |lanes| self.multiply(&lanes, problems, [left_shifts, right_shifts], words, &mut results));
        workspace.operands = buffer;
        for (result, problem) in results.into_iter().zip(problems) {
            if let (Some(view), Some(problem)) = (result, problem) {
                problem.complete(ctx, view);
            }
        }
        Ok(LanesDone { mask, range_bits })
    }

    /// Multiplies the operands of the problems that have a place for their result.
    fn multiply(
        &self,
        lanes: &ProblemLanes,
        problems: &[Option<ProductProblem<'_>>; PROBLEMS],
        [left_shifts, right_shifts]: [&mut [i64]; 2],
        words: &mut [u64],
        results: &mut [Option<MatrixViewMut<'_>>; PROBLEMS],
    ) -> u8 {
        // Lanes without a problem repeat the work of the first one.
        let there = |lane: &usize| results[*lane].is_some();
        let Some((first, Some(problem))) = (0..PROBLEMS).find(there).map(|first| (first, &problems[first])) else {
            return 0;
        };
        let source: [usize; PROBLEMS] = std::array::from_fn(|lane| if there(&lane) { lane } else { first });
        for all in left_shifts.chunks_exact_mut(PROBLEMS).chain(right_shifts.chunks_exact_mut(PROBLEMS)) {
            let shifts: [i64; PROBLEMS] = std::array::from_fn(|lane| all[source[lane]]);
            all.copy_from_slice(&shifts);
        }
        let of = |at: usize| problems[at].as_ref().unwrap_or(problem);
        let left = ProblemColumns { views: source.map(|at| of(at).left.view), shifts: left_shifts };
        let right_views = || source.map(|at| of(at).right_operand().view);
        let right = (!self.size.triangle).then(|| ProblemColumns { views: right_views(), shifts: right_shifts });
        let epilogue = problem.epilogue;
        let wanted = |row: usize, col: usize| problem.wants(row, col);
        let products = ProblemProducts { left, right, precision_bits: self.bits.result, wanted: &wanted };
        let mut beyond = 0;
        lanes.multiply(&products, words, &mut |(row, col), heads, limbs| {
            for (lane, result) in results.iter_mut().enumerate() {
                let Some(result) = result else { continue };
                if epilogue.check_rounded(Head(heads[lane]), EntryIndex { row, col }).is_err() {
                    beyond |= 1 << lane;
                    continue; // no matrix holds such a number
                }
                let (at, width) = (row + col * result.leading_dimension(), result.limbs_per_element());
                let (own, significands) = result.reborrow().into_parts();
                own[at] = heads[lane];
                significands[at * width..][..width].copy_from_slice(&limbs[lane * width..][..width]);
            }
        });
        let there = (0..PROBLEMS).filter(|&lane| results[lane].is_some()).fold(0, |bits, lane| bits | 1 << lane);
        there & !beyond
    }
}

/// The bits for the range of exponents that most of these problems ask for, of at most `most_bits`.
pub(crate) fn most_frequent(ranges: &[Option<u32>; PROBLEMS], most_bits: u32) -> Option<u32> {
    let fitting = || ranges.iter().flatten().copied().filter(|&bits| bits <= most_bits);
    fitting().max_by_key(|&bits| (fitting().filter(|&other| other == bits).count(), Reverse(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::problem_lanes::on_all_lanes;
    use crate::matrix::{MAXIMUM_EXPONENT, Matrix, Op};
    use crate::ops::product::report::Outcome;
    use rug::{Float, Integer, rand::RandState};

    /// Random entries times `2^scale`, some of them 0.
    fn random((rows, cols): (usize, usize), bits: u32, scale: i32, rng: &mut RandState<'_>) -> Matrix {
        let mut a = Matrix::zeros(rows, cols, bits).unwrap();
        for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            let value = Float::with_val(bits, Float::random_bits(rng)) - 0.5f64;
            let value = if rng.below(7) == 0 { Float::new(bits) } else { value << scale };
            a.set_float(row, col, &value).unwrap();
        }
        a
    }

    /// Products of scales that are thousands of bits apart, one of zeros, one without a problem, one beyond all
    /// exponents.
    #[test]
    fn products_side_by_side_are_those_of_single_calls() {
        on_all_lanes(check_products);
    }

    fn check_products() {
        for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
            check_accuracy(accuracy);
        }
    }

    fn check_accuracy(accuracy: Accuracy) {
        let ctx = Context::builder().threads(1).build().unwrap();
        let mut rng = RandState::new();
        rng.seed(&Integer::from(74));
        let beyond = MAXIMUM_EXPONENT as i32 / 2 + 20;
        let mut groups = 0;
        for (bits, (contracted, rows, cols)) in [
            (64u32, (8usize, 4usize, 4usize)),
            (150, (20, 10, 10)),
            (256, (20, 10, 10)),
            (256, (9, 6, 11)),
            (400, (12, 7, 7)),
            (768, (16, 8, 8)),
        ] {
            for triangle in [true, false].into_iter().filter(|&triangle| !triangle || rows == cols) {
                let size = ProductSize { contracted, rows, cols, triangle, half: None };
                let Some(together) = LaneProducts::choose(&ctx, size, bits, accuracy) else { continue };
                groups += 1;
                let scales = [0, 1 << 20, -(1 << 20), 3, beyond, 0, -9, 5000];
                let make = |at: usize, columns: usize, rng: &mut RandState<'_>| match at {
                    5 => Matrix::zeros(contracted, columns, bits).unwrap(),
                    _ => random((contracted, columns), bits + 3 * at as u32, scales[at], rng),
                };
                let operands = (0..PROBLEMS).map(|at| (make(at, rows, &mut rng), make(at, cols, &mut rng)));
                let operands = operands.collect::<Vec<_>>();
                let problems: [_; PROBLEMS] = std::array::from_fn(|at| {
                    let (a, b) = &operands[at];
                    let one = match triangle {
                        true => {
                            ProductProblem { mirrored: true, ..ProductProblem::syrk(a.view(), Op::NoTranspose, bits) }
                        }
                        false => ProductProblem::gemm(a.view(), Op::Transpose, b.view(), Op::NoTranspose, bits),
                    };
                    (at != 6).then_some(ProductProblem { accuracy, ..one })
                });
                let mut results = vec![Matrix::empty(); PROBLEMS];
                let mut places = results.iter_mut().map(|result| Some(Destination::Matrix(result)));
                let destinations = std::array::from_fn(|_| places.next().flatten());
                drop(places);
                let LanesDone { mask: done, range_bits } = together.run(&ctx, &problems, destinations).unwrap();
                for (at, ((a, b), got)) in operands.iter().zip(&results).enumerate() {
                    let want = match triangle {
                        true => {
                            let options = crate::SyrkOptions::new().accuracy(accuracy);
                            let single = crate::syrk_with(&ctx, a, bits, &options);
                            single.map(|Outcome { result, report }| (result.into_matrix(), report))
                        }
                        false => {
                            let options = crate::GemmOptions::new().accuracy(accuracy).op_a(Op::Transpose);
                            let single = crate::gemm_with(&ctx, a, b, bits, &options);
                            single.map(|Outcome { result, report }| (result, report))
                        }
                    };
                    let what = format!("{size:?} at {bits} bits, lane {at}");
                    let is_done = done >> at & 1 == 1;
                    assert_eq!(want.is_err(), at == 4, "{what}");
                    let Ok((want, report)) = want else {
                        assert!(!is_done, "{what}");
                        continue;
                    };
                    // Entrywise the lanes take the problems with the same bits for the range, and no single entries.
                    let fits = report.range_bits == range_bits && report.single_entries == 0;
                    assert_eq!(is_done, fits && at != 6, "{what}: {} bits of {range_bits}", report.range_bits);
                    assert!(!is_done || *got == want, "{what}");
                    assert!(!is_done || at == 5 || range_bits > 0 || accuracy == Accuracy::Norm, "{what}");
                }
            }
        }
        assert!(groups > 0 || ProblemLanes::new(100).is_none(), "no product goes side by side");
    }
}
