//! Arguments and results of cells of digits of a factorisation with pivots: places, floats, and the largest
//! candidates. Independent of: instructions.
#![forbid(unsafe_code)]

use crate::plan::BLOCK;

/// An entry of a block.
#[derive(Clone, Copy)]
pub struct CellLane {
    /// The cell.
    pub cell: usize,
    /// The lane of the cell.
    pub lane: usize,
}

/// Where the floats of a cell go.
pub struct Finished<'a> {
    /// A power of two for each lane.
    pub exponents: &'a [i64; BLOCK],
    /// The heads.
    pub heads: &'a mut [u64; BLOCK],
    /// The significands, one after the other.
    pub limbs: &'a mut [u64],
}

/// The largest magnitude in each of eight lanes so far.
pub struct LargestLanes {
    /// Their digits.
    pub digits: Vec<u64>,
    /// The panels of eight rows that have them; `None` for 0.
    pub panels: [Option<usize>; BLOCK],
}

impl LargestLanes {
    /// No magnitudes, with room for those of `words` words in all lanes together.
    pub fn new(words: usize) -> LargestLanes {
        LargestLanes { digits: vec![0; words], panels: [None; BLOCK] }
    }

    /// Removes all magnitudes.
    pub fn clear(&mut self) {
        self.digits.fill(0);
        self.panels = [None; BLOCK];
    }

    /// The row of the largest magnitude of `all`, the first one among equals; `None` where all are 0.
    pub fn first_largest(all: &[LargestLanes]) -> Option<usize> {
        let mut best: Option<(usize, &LargestLanes, usize)> = None;
        for (own, lane) in all.iter().flat_map(|own| (0..BLOCK).map(move |lane| (own, lane))) {
            let Some(panel) = own.panels[lane] else { continue };
            let row = panel * BLOCK + lane;
            let is_better = best.is_none_or(|(best_row, other, other_lane)| {
                let digits = |of: &'_ LargestLanes, lane: usize| {
                    of.digits.chunks_exact(BLOCK).rev().map(|digits| digits[lane]).collect::<Vec<_>>()
                };
                let order = digits(own, lane).cmp(&digits(other, other_lane));
                order.is_gt() || (order.is_eq() && row < best_row)
            });
            best = if is_better { Some((row, own, lane)) } else { best };
        }
        best.map(|(row, ..)| row)
    }
}
