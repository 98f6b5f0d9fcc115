//! Residues of some panels of an operand, for one batch of primes and one chunk of rows.

use crate::drive::{self, Meter};
use crate::error::Result;
use crate::kernels::{PanelSource, PlaneEngine};
use crate::matrix::MatrixView;
use crate::ops::planes::Space;
use crate::plan::BLOCK;
use std::ops::Range;

/// Work units of one row of one panel modulo one prime, where a plane product counts one for a row of a block.
pub(crate) const CONVERT_UNITS: u64 = 4;

/// Panels to convert and where they go.
pub(crate) struct Conversion<'a> {
    /// Does the conversion.
    pub engine: &'a dyn PlaneEngine,
    /// The operand.
    pub view: MatrixView<'a>,
    /// Scale shift of each of its columns.
    pub shifts: &'a [i64],
    /// Panels of the operand.
    pub panels: Range<usize>,
    /// Rows of the operand.
    pub rows: Range<usize>,
    /// Primes of the batch.
    pub primes: Range<usize>,
    /// Words of one operand plane in the window.
    pub plane_words: usize,
    /// Word of the plane at which the first panel goes.
    pub offset: usize,
}

struct Local<'s, 'w> {
    scratch: &'s mut [u64],
    planes: Vec<&'w mut [u64]>,
}

impl Conversion<'_> {
    /// Fills this part of the operand window, panel by panel on all workers.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn run(&self, window: &mut [u64], spaces: &mut [Space<'_>], meter: &Meter<'_>) -> Result<()> {
        let panel_words = self.engine.panel_words(self.rows.len());
        let groups = self.prime_groups(spaces.len());
        let group_bounds = |group: usize| group * self.primes.len() / groups;
        // One walk over the panels for each prime; a panel takes the next piece of every walk.
        let mut walks = window
            .chunks_exact_mut(self.plane_words)
            .take(self.primes.len())
            .map(|plane| plane[self.offset..][..self.panels.len() * panel_words].chunks_exact_mut(panel_words))
            .collect::<Vec<_>>();
        let mut items = self.panels.clone().flat_map(|panel| (0..groups).map(move |group| (panel, group)));
        let capacity = self.primes.len().div_ceil(groups);
        let mut locals = spaces
            .iter_mut()
            .map(|space| Local { scratch: &mut *space.scratch, planes: Vec::with_capacity(capacity) })
            .collect::<Vec<_>>();
        let mut next = move |planes: &mut Vec<_>| {
            let (panel, group) = items.next()?;
            let primes = group_bounds(group)..group_bounds(group + 1);
            planes.clear();
            planes.extend(walks[primes.clone()].iter_mut().map(|walk| walk.next().expect("a piece for each panel")));
            Some((panel, primes))
        };
        drive::share(
            &mut locals,
            |local| next(&mut local.planes),
            |local, (panel, primes)| {
                let primes = self.primes.start + primes.start..self.primes.start + primes.end;
                let columns = panel * BLOCK..((panel + 1) * BLOCK).min(self.view.cols());
                let source = PanelSource { view: self.view, columns, rows: self.rows.clone(), shifts: self.shifts };
                self.engine.to_residues(primes.clone(), &source, &mut local.planes, local.scratch);
                meter.add("to_residues", CONVERT_UNITS * (self.rows.len() * primes.len()) as u64)
            },
        )
    }

    /// Groups of primes that a panel is converted in: one, unless there are too few panels to keep all workers busy.
    /// Each further group reads the panel once more.
    fn prime_groups(&self, workers: usize) -> usize {
        if workers == 1 {
            return 1;
        }
        (4 * workers).div_ceil(self.panels.len()).min(self.primes.len().div_ceil(4)).max(1)
    }
}
