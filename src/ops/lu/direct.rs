//! Few rows: one leaf of all columns, on the calling thread and without residues. The same rules, so the same bits.

use crate::context::{Context, Progress};
use crate::matrix::EntryIndex;
use crate::ops::lu::leaf::{Leaf, Rules};
use crate::ops::lu::problem::{FactorPlace, LuProblem, LuStop};
use crate::ops::lu::run::{Factors, LuOperands, growth_of, in_places, store};

/// The kernel name in reports of this path.
pub(super) const NAME: &str = "direct";

/// Rows up to which residues cost more than they save.
const MOST_ROWS: usize = 24;

/// Whether this path is the fastest; a forced kernel keeps its residues.
pub(super) fn is_best(ctx: &Context, problem: &LuProblem) -> bool {
    problem.order <= MOST_ROWS && ctx.forced_kernel().is_none()
}

/// Bytes beyond those of the factors.
pub(super) fn bytes(problem: &LuProblem, rules: &Rules) -> u64 {
    Leaf::bytes(rules, problem.order, problem.order) + 16 * problem.order as u64
}

/// Factors a matrix.
///
/// # Errors
/// [`LuStop`].
pub(super) fn factor(
    ctx: &Context,
    LuOperands { a, memory: mut factors }: LuOperands<'_>,
    problem: &LuProblem,
    rules: Rules,
) -> Result<Factors, LuStop> {
    let order = problem.order;
    if order == 0 {
        return Ok(Factors { entries: factors, rows: Vec::new(), growth_bits: 0 });
    }
    ctx.report_progress(Progress::new("factor", 0, order as u64))?;
    let mut leaf = Leaf::new(rules, order, order)?;
    let rest = rules.headroom.widths.rest;
    for (row, of_leaf) in leaf.rows().enumerate() {
        for (col, out) in of_leaf.rests.chunks_exact_mut(rest).enumerate() {
            problem.scaled_limbs(a.get(row, col), EntryIndex { row, col }, out);
        }
    }
    let mut rows = (0..order).collect::<Vec<_>>();
    leaf.factor(1, |one, other| rows.swap(one, other))?;
    let mut growth_bits = 0;
    for (place, &row) in rows.iter().enumerate() {
        for (col, &pivot) in rows.iter().enumerate() {
            let is_upper = place <= col;
            let entry = if is_upper { leaf.upper(place, col) } else { leaf.lower(place, col) };
            let pivot = (!is_upper).then_some(pivot);
            store(problem, entry, FactorPlace { row, col, pivot }, &mut factors)?;
            growth_bits = growth_bits.max(if is_upper { growth_of(&rules, entry) } else { 0 });
        }
    }
    Ok(Factors { entries: in_places(factors, &rows)?, rows, growth_bits })
}
