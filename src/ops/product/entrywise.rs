//! Accuracy entry by entry: how many bits beyond those of the norms a product takes, and which entries it leaves to
//! sums of their own.
//!
//! For entry `(i, j)` the norms of its columns are 2 to the power `e_i` and `f_j` at most, its largest term lies below
//! 2 to the power `m_ij`, and `e_i + f_j - m_ij` bits of the norm-wise promise are lost on it. A product in the
//! (max, +) semiring finds these numbers. The bits are chosen by cost: entries beyond them are summed term by term.
//! Promise: the choice depends on the exponents, the precision and the shape alone, so every path makes the same.
//! Source: docs/ALGORITHM.md, "Entry by entry".

use crate::context::Context;
use crate::drive;
use crate::error::{Error, Result};
use crate::kernels::max_plus::{EMPTY, PANEL, Row, depth, largest_sums};
use crate::math::bound::{COMMON_WORKING_BITS, RANGE_STEP_BITS, guard_bits, range_bits};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::{MatrixView, MatrixViewMut};
use crate::ops::columns::each_column;
use crate::ops::fixed_sum::{FixedSum, Sign};
use crate::ops::product::combine::Place;
use crate::ops::product::path::plane_nanoseconds;
use crate::ops::product::problem::Problem;
use crate::ops::product::segments::in_triangle;

/// Bytes of a row of a panel.
const ROW_BYTES: u64 = size_of::<Row>() as u64;

/// What accuracy entry by entry asks of one product.
#[derive(Default)]
pub(crate) struct Entrywise {
    /// Bits of the scaled integers beyond those of the norms.
    pub range_bits: u32,
    /// Entries that are summed term by term.
    pub singles: Singles,
}

/// Which entries of a result are summed term by term.
#[derive(Default)]
pub(crate) enum Singles {
    /// None of them.
    #[default]
    None,
    /// All of them: the product is not formed.
    All,
    /// Those with a bit set: one column after the other, each from a new word on.
    Some(Vec<u64>),
}

/// Whether the product is so small that sums term by term take less time, whatever the entries are.
pub(crate) fn takes_all(problem: &Problem<'_>) -> bool {
    let size = problem.size();
    let bits = problem.scaled_bits().working + RANGE_STEP_BITS;
    problem.is_entrywise() && size.entries() * single_nanoseconds(problem) < plane_nanoseconds(&size, bits)
}

/// Estimate for one entry summed term by term.
fn single_nanoseconds(problem: &Problem<'_>) -> f64 {
    let limbs = limbs_for(problem.precision_bits) as f64 + 2.0;
    30.0 + problem.contracted() as f64 * (25.0 + 0.9 * limbs * limbs)
}

/// Bytes of the exponents of both operands while the choice is made.
pub(crate) fn choice_bytes(problem: &Problem<'_>) -> u64 {
    let (rows, cols) = problem.result_shape();
    let panels = rows.div_ceil(PANEL) + if problem.triangle() { 0 } else { cols.div_ceil(PANEL) };
    (panels as u64).saturating_mul(problem.contracted() as u64).saturating_mul(ROW_BYTES)
}

/// Chooses for operands whose columns have norms of at most 2 to these powers.
///
/// # Errors
/// [`Error::MemoryLimit`], [`Error::OutOfMemory`].
pub(crate) fn choose(
    ctx: &Context,
    workers: usize,
    problem: &Problem<'_>,
    (left, right): (&[i64], &[i64]),
) -> Result<Entrywise> {
    let depths = Depths::new(ctx, workers, problem, (left, right))?;
    let needs = depths.needs(ctx, workers, problem)?;
    let range_bits = cheapest(problem, &needs);
    let singles = match needs.iter().skip((range_bits / RANGE_STEP_BITS) as usize + 1).any(|&count| count > 0) {
        true => Singles::Some(depths.beyond(ctx, workers, problem, range_bits)?),
        false => Singles::None,
    };
    Ok(Entrywise { range_bits, singles })
}

/// The bits, in steps, that make product and single entries cost least; `needs[s]` entries need `s` steps, those in the
/// last place more than all kernels have.
fn cheapest(problem: &Problem<'_>, needs: &[u64]) -> u32 {
    let (size, bits) = (problem.size(), problem.scaled_bits().working);
    let mut singles = needs.iter().sum::<u64>();
    let mut best = (f64::INFINITY, 0);
    for (step, &count) in (0..).zip(&needs[..needs.len() - 1]) {
        singles -= count;
        if count > 0 || step == 0 {
            let range_bits = step * RANGE_STEP_BITS;
            let cost = plane_nanoseconds(&size, bits + range_bits) + singles as f64 * single_nanoseconds(problem);
            if cost < best.0 {
                best = (cost, range_bits);
            }
        }
    }
    best.1
}

/// Steps that every kernel has beyond the bits of the norms.
fn most_steps(problem: &Problem<'_>) -> usize {
    let working = problem.precision_bits.saturating_add(guard_bits(problem.contracted()));
    (COMMON_WORKING_BITS.saturating_sub(working) / RANGE_STEP_BITS) as usize
}

/// The depths of both operands, panel by panel.
struct Depths {
    contracted: usize,
    left: Vec<Row>,
    /// Empty where it is the left operand.
    right: Vec<Row>,
}

impl Depths {
    fn new(ctx: &Context, workers: usize, problem: &Problem<'_>, norms: (&[i64], &[i64])) -> Result<Depths> {
        let left = panels(ctx, workers, problem.left.view, norms.0)?;
        let right = match problem.right {
            Some(right) => panels(ctx, workers, right.view, norms.1)?,
            None => Vec::new(),
        };
        Ok(Depths { contracted: problem.contracted(), left, right })
    }

    /// How many entries need how many steps; the last place is for more than there are.
    fn needs(&self, ctx: &Context, workers: usize, problem: &Problem<'_>) -> Result<Vec<u64>> {
        let most = most_steps(problem);
        let mut found = vec![vec![0u64; most + 2]; workers];
        let mut panels = 0..problem.result_shape().1.div_ceil(PANEL);
        let count = |found: &mut Vec<u64>, panel: usize| {
            self.visit(problem, panel, |_, depth| {
                found[((range_bits(depth) / RANGE_STEP_BITS) as usize).min(most + 1)] += 1;
            });
            Ok(())
        };
        ctx.install(|| drive::parallel_for(&mut found, |_| panels.next(), count))?;
        let mut all = found.pop().unwrap_or_default();
        found.iter().for_each(|part| all.iter_mut().zip(part).for_each(|(all, part)| *all += part));
        Ok(all)
    }

    /// Marks the entries that need more than `most` bits.
    fn beyond(&self, ctx: &Context, workers: usize, problem: &Problem<'_>, most: u32) -> Result<Vec<u64>> {
        let (rows, cols) = problem.result_shape();
        let words = rows.div_ceil(64);
        let mut marks = vec![0u64; words * cols];
        let mut panels = marks.chunks_mut(PANEL * words).enumerate();
        let mut locals = vec![(); workers];
        let mark = |(): &mut (), (panel, marks): (usize, &mut [u64])| {
            self.visit(problem, panel, |Place { row, col }, depth| {
                if range_bits(depth) > most {
                    marks[(col - panel * PANEL) * words + row / 64] |= 1 << (row % 64);
                }
            });
            Ok(())
        };
        ctx.install(|| drive::parallel_for(&mut locals, |()| panels.next(), mark))?;
        Ok(marks)
    }

    /// Shows all wanted entries of a panel of columns that are sums of more than zeros, and how far their largest term
    /// lies below the product of the norms.
    fn visit(&self, problem: &Problem<'_>, panel: usize, mut see: impl FnMut(Place, u32)) {
        let (rows, cols) = problem.result_shape();
        let right = if problem.triangle() { &self.left } else { &self.right };
        let rows_of = |index: usize| index * self.contracted..(index + 1) * self.contracted;
        let right = &right[rows_of(panel)];
        let mut sums = [[0; PANEL]; PANEL];
        for other in 0..rows.div_ceil(PANEL) {
            let wanted = |row: usize, col: usize| !problem.triangle() || in_triangle(problem.uplo, row, col);
            if problem.triangle() && other != panel && !wanted(other, panel) {
                continue;
            }
            largest_sums(&self.left[rows_of(other)], right, &mut sums);
            for (row, sums) in (other * PANEL..rows).zip(&sums) {
                for (col, &sum) in (panel * PANEL..cols).zip(sums) {
                    if sum != EMPTY && wanted(row, col) {
                        see(Place { row, col }, u32::from(sum.unsigned_abs()));
                    }
                }
            }
        }
    }
}

/// The depths of all columns of an operand, in panels one after the other; columns beyond the last are empty.
fn panels(ctx: &Context, workers: usize, view: MatrixView<'_>, norms: &[i64]) -> Result<Vec<Row>> {
    let (rows, count) = (view.rows(), view.cols().div_ceil(PANEL));
    let mut panels = Vec::new();
    let bytes = (rows * count) as u64 * ROW_BYTES;
    panels.try_reserve_exact(rows * count).map_err(|_| Error::OutOfMemory { bytes })?;
    panels.resize(rows * count, [EMPTY; PANEL]);
    let mut parts = panels.chunks_mut(rows.max(1)).enumerate();
    let mut locals = vec![(); workers];
    let fill = |(): &mut (), (panel, part): (usize, &mut [Row])| {
        let first = panel * PANEL;
        let norms = &norms[first..norms.len().min(first + PANEL)];
        for (row, depths) in part.iter_mut().enumerate() {
            let heads = view.all_heads()[view.element_index(row, first)..].iter().step_by(view.col_stride().max(1));
            for ((own, &norm), &head) in depths.iter_mut().zip(norms).zip(heads) {
                *own = depth(Head(head), norm);
            }
        }
        Ok(())
    };
    ctx.install(|| drive::parallel_for(&mut locals, |()| parts.next(), fill))?;
    Ok(panels)
}

impl Singles {
    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        if let Singles::Some(marks) = self { 8 * marks.len() as u64 } else { 0 }
    }

    /// How many entries these are.
    pub fn count(&self, problem: &Problem<'_>) -> u64 {
        match self {
            Singles::None => 0,
            Singles::All => problem.size().entries() as u64,
            Singles::Some(marks) => marks.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }

    /// Replaces these entries of `result`: the sum of all terms, with the scalars and the matrix added, rounded once.
    ///
    /// # Errors
    /// [`Error::ExponentRange`], [`Error::Cancelled`].
    pub fn fill(&self, ctx: &Context, problem: &Problem<'_>, result: MatrixViewMut<'_>) -> Result<()> {
        let (rows, words) = (result.rows(), result.rows().div_ceil(64));
        let marks = match self {
            Singles::None => return Ok(()),
            Singles::All => None,
            Singles::Some(marks) => Some(marks),
        };
        let (left, right) = (problem.left.view, problem.right_operand().view);
        let precision_bits = result.precision_bits();
        let meter = drive::Meter::new(ctx, result.cols() as u64);
        each_column(
            ctx,
            result,
            || FixedSum::new(precision_bits),
            |sum, mut column| {
                let col = column.index;
                for row in (0..rows).filter(|&row| !problem.triangle() || in_triangle(problem.uplo, row, col)) {
                    if marks.is_some_and(|marks| marks[col * words + row / 64] >> (row % 64) & 1 == 0) {
                        continue;
                    }
                    let pairs = (0..problem.contracted()).map(|k| (left.get(k, row), right.get(k, col)));
                    sum.set(FloatRef { head: Head::ZERO, limbs: &[0] }, pairs, Sign::Plus);
                    column.try_set(row, |limbs| {
                        problem.combination.finish(sum.exact(), Place { row, col }, precision_bits, limbs)
                    })?;
                }
                meter.add("entries", 1)
            },
        )
    }
}
