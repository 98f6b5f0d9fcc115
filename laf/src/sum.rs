//! The one order in which partial results are added up.
//!
//! Partial results are numbered, as the chunks are that they come from. Runs of [`ARITY`] neighbours are added from
//! left to right into one, runs of [`ARITY`] of those again, until one is left. The sum does not depend on where a
//! partial result comes from, or when. Each run can be added up as its parts arrive, in place, so that at most one sum
//! of each level is open in addition to the parts that came too early.

use std::ops::Range;

/// Partial results that are added into one.
pub const ARITY: usize = 5;

/// One sum of a tree: its parts are partial results, or sums of the level below.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// 0 for sums of partial results.
    pub level: usize,
    /// Its number in the level.
    pub number: usize,
    /// The parts, in the order in which they are added.
    pub parts: Range<usize>,
}

/// All sums of a tree over `parts` partial results, each behind its parts; the last one is the whole. Empty where there
/// is at most one part.
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
