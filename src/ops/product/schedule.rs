//! The order of a product: pairs of bands, in each all batches of primes, in each all chunks of rows; and which bands
//! are converted for which of these steps.
//!
//! Promise: the runner, the count of its work and the read-ahead of operands follow one order. Independent of:
//! operands.

use crate::plan::{BandPair, BlockGrid, Cut, band_pairs, part_primes, pieces};
use std::ops::Range;
use std::sync::Arc;

/// How a product is cut, the same on all ranks.
#[derive(Clone, Copy)]
pub(crate) struct Cutting {
    /// Batches and bands.
    pub cut: Cut,
    /// Chunks of rows, of which every rank cuts its own.
    pub chunks: usize,
    /// Panels that fit the operand window, of the left and of the right operand.
    pub slot_panels: (usize, usize),
}

/// One batch of primes and one chunk of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProductStep {
    pub primes: Range<usize>,
    pub chunk: usize,
}

/// The part of a step whose products are formed together, before those of the next part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StepPart {
    pub primes: Range<usize>,
    /// The first of them among the primes of the step.
    pub first_plane: usize,
    pub chunk: usize,
}

/// Which operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The operand that provides the rows of the result.
    Left,
    /// The operand that provides the columns of the result.
    Right,
}

/// A band to be converted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BandLoad {
    pub side: Side,
    pub panels: Range<usize>,
    pub step: ProductStep,
}

/// The content of the two slots of the operand window: a band, and the step it was converted for.
#[derive(Default)]
pub(crate) struct HeldBands([Option<(Range<usize>, ProductStep)>; 2]);

impl HeldBands {
    /// The bands to convert before a step on a pair of bands; they count as held from then on.
    pub fn loads(&mut self, pair: &BandPair, step: &ProductStep) -> impl Iterator<Item = BandLoad> + use<> {
        let right = (!pair.grid.triangle).then(|| (Side::Right, pair.right.clone()));
        let wanted = [Some((Side::Left, pair.left.clone())), right];
        let mut loads = [None, None];
        for ((held, wanted), load) in self.0.iter_mut().zip(wanted).zip(&mut loads) {
            let Some((side, panels)) = wanted else { continue };
            let wanted = Some((panels.clone(), step.clone()));
            if *held != wanted {
                *held = wanted;
                *load = Some(BandLoad { side, panels, step: step.clone() });
            }
        }
        loads.into_iter().flatten()
    }
}

/// The pairs of bands of a product.
#[derive(Clone)]
enum Pairs {
    /// All pairs, computed rather than stored: narrow bands make many.
    All { panels: BlockGrid, band_panels: usize },
    /// The wanted pairs.
    Some(Arc<[BandPair]>),
}

/// The order of a product.
#[derive(Clone)]
pub(crate) struct ProductSchedule {
    pairs: Pairs,
    primes: usize,
    batch_primes: usize,
    chunks: usize,
    /// Parts of a batch whose products are formed one after the other.
    parts: usize,
}

impl ProductSchedule {
    /// The whole product modulo `primes` primes of operands whose panels are the rows and columns of `panels`.
    pub fn new(cutting: &Cutting, panels: BlockGrid, primes: usize) -> ProductSchedule {
        let Cutting { cut, chunks, .. } = *cutting;
        let pairs = Pairs::All { panels, band_panels: cut.band_panels };
        ProductSchedule { pairs, primes, batch_primes: cut.batch_primes, chunks, parts: 1 }
    }

    /// The same without the pairs that are not wanted.
    pub fn of_pairs(self, is_wanted: impl FnMut(&BandPair) -> bool) -> ProductSchedule {
        let pairs = Pairs::Some(self.pairs().filter(is_wanted).collect());
        ProductSchedule { pairs, ..self }
    }

    /// The same with the products of the last chunk of each batch in `parts` parts: each is in transit to other nodes
    /// while the next one is multiplied.
    pub fn in_parts(self, parts: usize) -> ProductSchedule {
        ProductSchedule { parts: parts.max(1), ..self }
    }

    /// The parts of a step that are multiplied one after the other, and whether the products of each are finished then.
    pub fn parts(&self, step: &ProductStep) -> (impl Iterator<Item = StepPart> + use<>, bool) {
        let (first, chunk, is_last) = (step.primes.start, step.chunk, step.chunk + 1 == self.chunks);
        let size = if is_last { part_primes(step.primes.len(), self.parts) } else { step.primes.len() };
        let part = move |planes: Range<usize>| {
            let primes = first + planes.start..first + planes.end;
            StepPart { primes, first_plane: planes.start, chunk }
        };
        (pieces(step.primes.len(), size.max(1)).map(part), is_last)
    }

    /// The same with all primes at a time.
    pub fn in_one_batch(self) -> ProductSchedule {
        ProductSchedule { batch_primes: self.primes, ..self }
    }

    /// The pairs of bands in order.
    pub fn pairs(&self) -> Box<dyn Iterator<Item = BandPair> + Send> {
        match &self.pairs {
            &Pairs::All { panels, band_panels } => Box::new(band_pairs(panels, band_panels)),
            Pairs::Some(pairs) => {
                let pairs = pairs.clone();
                Box::new((0..pairs.len()).map(move |at| pairs[at].clone()))
            }
        }
    }

    /// The steps of each pair: all batches of primes, and within each all chunks of rows.
    pub fn steps(&self) -> impl Iterator<Item = ProductStep> + use<> {
        let chunks = self.chunks;
        pieces(self.primes, self.batch_primes)
            .flat_map(move |primes| (0..chunks).map(move |chunk| ProductStep { primes: primes.clone(), chunk }))
    }

    /// All conversions, in order.
    pub fn loads(&self) -> impl Iterator<Item = BandLoad> + Send + use<> {
        let (schedule, mut held) = (self.clone(), HeldBands::default());
        let steps = self.pairs().flat_map(move |pair| schedule.steps().map(move |step| (pair.clone(), step)));
        steps.flat_map(move |(pair, step)| held.loads(&pair, &step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX_PANELS: BlockGrid = BlockGrid { rows: 6, cols: 6, triangle: true };

    fn schedule(panels: BlockGrid, cut: Cut, chunks: usize) -> ProductSchedule {
        ProductSchedule::new(&Cutting { cut, chunks, slot_panels: (0, 0) }, panels, 5)
    }

    #[test]
    fn every_step_finds_its_bands_converted() {
        for (rows, cols, triangle) in [(7, 7, true), (7, 4, false), (1, 9, false)] {
            let panels = BlockGrid { rows, cols, triangle };
            for (band_panels, batch_primes, chunks) in [(3, 2, 1), (3, 5, 1), (2, 5, 3), (9, 5, 1), (1, 1, 2)] {
                let cut = Cut { batch_primes, band_panels, chunk_rows: 1 };
                let schedule = schedule(panels, cut, chunks);
                let (mut loads, mut slots) = (schedule.loads(), [None, None]);
                let (mut count, mut held) = (0, HeldBands::default());
                for pair in schedule.pairs() {
                    for step in schedule.steps() {
                        for load in held.loads(&pair, &step) {
                            assert_eq!(loads.next(), Some(load.clone()));
                            slots[load.side as usize] = Some((load.panels, load.step));
                            count += 1;
                        }
                        assert_eq!(slots[0], Some((pair.left.clone(), step.clone())));
                        assert!(pair.grid.triangle || slots[1] == Some((pair.right.clone(), step)));
                    }
                }
                assert_eq!(loads.next(), None);
                let most = 2 * schedule.pairs().count() * schedule.steps().count();
                assert!(count <= most, "{count} of {most}");
            }
        }
    }

    #[test]
    fn parts_of_a_batch_cover_it_once_and_only_the_last_chunk_is_cut() {
        let cut = Cut { batch_primes: 3, band_panels: 2, chunk_rows: 1 };
        let schedule = schedule(SIX_PANELS, cut, 2).in_parts(2);
        let parts = schedule.steps().map(|step| {
            let (parts, finished) = schedule.parts(&step);
            let primes = parts.map(|part| {
                assert_eq!((part.first_plane, part.chunk), (part.primes.start - step.primes.start, step.chunk));
                (part.primes.start, part.primes.end)
            });
            (primes.collect::<Vec<_>>(), finished)
        });
        let want =
            [(vec![(0, 3)], false), (vec![(0, 2), (2, 3)], true), (vec![(3, 5)], false), (vec![(3, 4), (4, 5)], true)];
        assert_eq!(parts.collect::<Vec<_>>(), want);
    }

    #[test]
    fn a_band_that_stays_is_converted_once() {
        let cut = Cut { batch_primes: 5, band_panels: 2, chunk_rows: 1 };
        // Three bands: each row of pairs loads its left band once, and turns round at the right one; pairs on the
        // diagonal need no second one.
        let loads = schedule(SIX_PANELS, cut, 1).loads().collect::<Vec<_>>();
        let of = |side| loads.iter().filter(|load| load.side == side).count();
        assert_eq!((of(Side::Left), of(Side::Right)), (3, 2));
        let wanted = schedule(SIX_PANELS, cut, 1).of_pairs(|pair| pair.grid.triangle);
        assert_eq!((wanted.pairs().count(), wanted.loads().count()), (3, 3));
    }
}
