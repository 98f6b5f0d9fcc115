//! The fixed order in which partial results are summed.
//!
//! Partial results are numbered like the chunks from which they are computed. Groups of [`ARITY`] consecutive partial
//! results are added from left to right, then groups of [`ARITY`] of these sums, and so on, until one sum remains. The
//! sum does not depend on where or when a partial result is computed. Each group can be summed in place as its parts
//! arrive, so that at most one sum of each level is open in addition to the parts that arrived early.

use std::ops::Range;

/// The number of partial results in a group.
pub const ARITY: usize = 5;

/// One sum of a tree: its parts are partial results, or sums of the level below.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// The level: 0 for sums of partial results.
    pub level: usize,
    /// The index of the sum within its level.
    pub number: usize,
    /// The parts, in the order in which they are added.
    pub parts: Range<usize>,
}

/// All sums of a tree over `parts` partial results, each after its parts; the last sum is the total. Empty if there is
/// at most one part.
pub fn tree(parts: usize, arity: usize) -> Vec<Run> {
    let (mut runs, mut open, mut level) = (Vec::new(), parts, 0);
    while open > 1 {
        let count = open.div_ceil(arity.max(2));
        for number in 0..count {
            let start = number * arity.max(2);
            runs.push(Run { level, number, parts: start..(start + arity.max(2)).min(open) });
        }
        (open, level) = (count, level + 1);
    }
    runs
}

/// `total := total + part`, entry by entry.
pub fn add(total: &mut [f64], part: &[f64]) {
    debug_assert_eq!(total.len(), part.len());
    pulp::Arch::new().dispatch(|| total.iter_mut().zip(part).for_each(|(total, part)| *total += part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_in_one_sum() {
        for parts in 0..200 {
            let runs = tree(parts, ARITY);
            let mut levels = vec![parts];
            for run in &runs {
                assert!(run.parts.len() <= ARITY && !run.parts.is_empty());
                assert!(run.parts.end <= levels[run.level], "level {} of {parts}", run.level);
                if levels.len() == run.level + 1 {
                    levels.push(0);
                }
                assert_eq!(run.number, levels[run.level + 1]);
                assert_eq!(run.parts.start, run.number * ARITY);
                levels[run.level + 1] += 1;
            }
            assert_eq!(levels.last(), Some(&parts.min(1)));
        }
        assert_eq!(tree(7, 100).len(), 1);
    }
}
