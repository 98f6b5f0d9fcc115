//! Residues of some panels of an operand, for one batch of primes and one chunk of rows.

use crate::drive::{self, Meter};
use crate::error::Result;
use crate::kernels::{PanelSource, PlaneEngine};
use crate::matrix::MatrixView;
use crate::ops::product::space::Space;
use crate::plan::BLOCK;
use std::ops::Range;

/// Work units of one row of one panel modulo one prime, where a plane product counts one for a row of a block.
pub(crate) const CONVERT_UNITS: u64 = 4;

/// Panels to convert.
pub(crate) struct Conversion<'a> {
    /// Does the conversion.
    pub engine: &'a dyn PlaneEngine,
    /// The rows, one part after the other; all parts have the same columns.
    pub parts: &'a [MatrixRows<'a>],
    /// Scale shift of each column.
    pub shifts: &'a [i64],
    /// Panels of the operand.
    pub panels: Range<usize>,
    /// Primes of the batch.
    pub primes: Range<usize>,
    /// Slices for each prime of a panel: 1, or the number of runs where the parts are not all rows of the panels.
    pub runs: usize,
}

/// Rows of a matrix.
#[derive(Clone)]
pub(crate) struct MatrixRows<'a> {
    /// The matrix.
    pub view: MatrixView<'a>,
    /// A range of its rows.
    pub rows: Range<usize>,
}

struct ConversionMemory<'s, 'w> {
    scratch: &'s mut [u64],
    /// Where the current panel is written, prime by prime.
    runs: Vec<&'w mut [u64]>,
    /// The pieces of `runs` for one of several parts.
    pieces: Vec<&'w mut [u64]>,
}

impl<'a> Conversion<'a> {
    /// Writes the residues, panel by panel on all workers.
    ///
    /// `places` gives `runs` slices for each prime, for the first panel, then for the next.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn run<'w>(
        &self,
        mut places: impl Iterator<Item = &'w mut [u64]> + Send,
        spaces: &mut [Space<'_>],
        meter: &Meter<'_>,
    ) -> Result<()> {
        let groups = self.prime_groups(spaces.len());
        let group_bounds = |group: usize| group * self.primes.len() / groups;
        let mut items = self.panels.clone().flat_map(|panel| (0..groups).map(move |group| (panel, group)));
        let capacity = self.primes.len().div_ceil(groups) * self.runs;
        let mut locals = Vec::with_capacity(spaces.len());
        for space in spaces {
            let (runs, pieces) = (Vec::with_capacity(capacity), Vec::new());
            locals.push(ConversionMemory { scratch: &mut *space.scratch, runs, pieces });
        }
        let mut next = move |runs: &mut Vec<_>| {
            let (panel, group) = items.next()?;
            let primes = group_bounds(group)..group_bounds(group + 1);
            runs.clear();
            runs.extend(places.by_ref().take(primes.len() * self.runs));
            assert_eq!(runs.len(), primes.len() * self.runs, "a place for each panel");
            Some((panel, self.primes.start + primes.start..self.primes.start + primes.end))
        };
        drive::parallel_for(
            &mut locals,
            |local| next(&mut local.runs),
            |local, (panel, primes)| {
                let rows = self.convert(panel, primes.clone(), local);
                meter.add("to_residues", CONVERT_UNITS * (rows * primes.len()) as u64)
            },
        )
    }

    /// One panel modulo some primes; returns its rows.
    fn convert(&self, panel: usize, primes: Range<usize>, local: &mut ConversionMemory<'_, '_>) -> usize {
        let columns = panel * BLOCK..((panel + 1) * BLOCK).min(self.shifts.len());
        let source = |part: &MatrixRows<'a>| PanelSource {
            view: part.view,
            columns: columns.clone(),
            rows: part.rows.clone(),
            shifts: self.shifts,
        };
        if let [part] = self.parts {
            self.engine.to_residues(primes, &source(part), &mut local.runs, local.scratch);
            return part.rows.len();
        }
        let rows = self.parts.iter().map(|part| part.rows.len()).sum::<usize>();
        // Words of a run for each row: all runs have the same, and parts follow one another in each.
        let row_words = local.runs[0].len() / rows.max(1);
        for part in self.parts {
            local.pieces.clear();
            for run in &mut local.runs {
                let (piece, rest) = std::mem::take(run).split_at_mut(part.rows.len() * row_words);
                *run = rest;
                local.pieces.push(piece);
            }
            self.engine.to_residues(primes.clone(), &source(part), &mut local.pieces, local.scratch);
        }
        rows
    }

    /// Groups of primes that a panel is converted in: one, unless there are too few panels to keep all workers busy.
    /// Each further group reads the panel once more.
    fn prime_groups(&self, workers: usize) -> usize {
        if workers == 1 || self.panels.is_empty() {
            return 1;
        }
        (4 * workers).div_ceil(self.panels.len()).min(self.primes.len().div_ceil(4)).max(1)
    }
}
