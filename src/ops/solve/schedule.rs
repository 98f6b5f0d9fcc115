//! The order of a solve by parts: which block of the triangle takes part in which step.
//!
//! Promise: the solve and the read-ahead follow one order. Independent of: entries.

use crate::io::Block;
use crate::ops::solve::cut::TriangleCut;
use std::ops::Range;

/// A step of a solve by parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PartStep {
    /// The products of a block with the known unknowns of its columns are subtracted from the right-hand sides of its
    /// rows.
    Update(Block),
    /// A block on the diagonal is solved scalar by scalar.
    Scalar(Range<usize>),
}

impl PartStep {
    /// The block of the triangle that it needs.
    pub fn block(&self) -> Block {
        match self {
            PartStep::Update(block) => block.clone(),
            PartStep::Scalar(rows) => Block { rows: rows.clone(), cols: rows.clone() },
        }
    }
}

/// A range of rows that is cut, under way.
struct Frame {
    /// The parts to come, in the order in which their unknowns are found.
    parts: Box<dyn Iterator<Item = Range<usize>> + Send>,
    /// The rows of those before.
    known: Option<Range<usize>>,
}

/// The steps of a solve by parts.
pub(crate) struct SolveSchedule {
    cut: TriangleCut,
    is_lower: bool,
    /// Right-hand sides are 0 above this row, for a lower triangle.
    first: usize,
    /// The ranges that the one under way is part of, from the outermost on.
    frames: Vec<Frame>,
    /// The rest of an update.
    update: Option<Block>,
    /// The part to solve next, once its update is done.
    part: Option<Range<usize>>,
}

impl SolveSchedule {
    /// The steps with a lower or an upper triangle that is cut so, for right-hand sides that are 0 above row `first`.
    pub fn new(cut: TriangleCut, is_lower: bool, first: usize) -> SolveSchedule {
        SolveSchedule { cut, is_lower, first, frames: Vec::new(), update: None, part: Some(0..cut.order) }
    }

    /// The next piece of the update under way.
    fn piece(&mut self) -> Option<PartStep> {
        let rest = self.update.as_mut()?;
        let end = rest.rows.end.min(rest.rows.start.saturating_add(self.cut.pieces.rows_together()));
        let piece = Block { rows: rest.rows.start..end, cols: rest.cols.clone() };
        rest.rows.start = end;
        if rest.rows.is_empty() {
            self.update = None;
        }
        Some(PartStep::Update(piece))
    }

    /// Continues with the parts of `rows`, or with its step where it is not cut.
    fn enter(&mut self, rows: Range<usize>) -> Option<PartStep> {
        let Some(parts) = self.cut.parts(&rows) else { return Some(PartStep::Scalar(rows)) };
        let first = self.first;
        let parts: Box<dyn Iterator<Item = Range<usize>> + Send> = match self.is_lower {
            true => Box::new(parts.filter(move |part| part.end > first)),
            false => Box::new(parts.rev()),
        };
        self.frames.push(Frame { parts, known: None });
        None
    }
}

impl Iterator for SolveSchedule {
    type Item = PartStep;

    fn next(&mut self) -> Option<PartStep> {
        loop {
            if let Some(piece) = self.piece() {
                return Some(piece);
            }
            if let Some(step) = self.part.take().and_then(|rows| self.enter(rows)) {
                return Some(step);
            }
            let frame = self.frames.last_mut()?;
            match frame.parts.next() {
                None => drop(self.frames.pop()),
                Some(rows) => {
                    let both = |known: &Range<usize>| known.start.min(rows.start)..known.end.max(rows.end);
                    let known = frame.known.as_ref().map_or(rows.clone(), both);
                    self.update = frame.known.replace(known).map(|cols| Block { rows: rows.clone(), cols });
                    self.part = Some(rows);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::product::problem::Accuracy;
    use crate::ops::solve::cut::TrianglePieces;

    #[test]
    fn every_entry_of_the_triangle_takes_part_once_and_in_time() {
        for (order, rows) in [(0, 16), (1, 16), (16, 16), (17, 16), (40, usize::MAX), (129, 24), (300, 16), (600, 128)]
        {
            for (is_lower, first) in [(true, 0), (true, order / 2), (false, 0)] {
                let pieces = TrianglePieces { rows, row_bytes: 0, entry_bytes: 0, ranks: 1 };
                let cut =
                    TriangleCut { order, working_bits: 100, first_try_bits: None, accuracy: Accuracy::Norm, pieces };
                let (mut known, mut taken) = (vec![false; order], vec![0; order * order]);
                for step in SolveSchedule::new(cut, is_lower, first) {
                    match step {
                        PartStep::Update(Block { rows: some, cols }) => {
                            assert!(!some.is_empty() && some.len() <= rows);
                            assert!(cols.clone().all(|col| known[col] || col < first));
                            assert!(some.clone().all(|row| !known[row]));
                            let places = some.flat_map(|row| cols.clone().map(move |col| row * order + col));
                            places.for_each(|place| taken[place] += 1);
                        }
                        PartStep::Scalar(own) => {
                            for row in own.clone() {
                                let cols = if is_lower { own.start..row } else { row + 1..own.end };
                                cols.for_each(|col| taken[row * order + col] += 1);
                                known[row] = true;
                            }
                        }
                    }
                }
                for (row, col) in (first..order).flat_map(|row| (first..order).map(move |col| (row, col))) {
                    let is_inside = if is_lower { col < row } else { col > row };
                    assert!(
                        known[row] && taken[row * order + col] == u32::from(is_inside),
                        "({row}, {col}) of {order}"
                    );
                }
            }
        }
    }
}
