//! From residues of the product to entries of the result: reconstruct, check the range, round, store.

use crate::drive::{self, Meter};
use crate::error::{Error, Result};
use crate::kernels::{BlockResidues, IntegerBlock, PlaneEngine};
use crate::math::float::bit_length;
use crate::matrix::EntryIndex;
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::combine::Epilogue;
use crate::ops::product::inner_check::{InnerCheck, RowSums};
use crate::ops::product::segments::{ColumnPiece, Region, Segment};
use crate::ops::product::space::Space;
use crate::plan::BLOCK;
use std::time::{Duration, Instant};

/// Work units of one block for each pair of primes, where a plane product counts one for a row of a block.
pub(crate) const RECOVER_UNITS: u64 = 2;

/// The inputs for one pair of bands of the result.
pub(crate) struct Recovery<'a> {
    /// Does the reconstruction.
    pub engine: &'a dyn PlaneEngine,
    /// The product window.
    pub window: &'a [u64],
    /// Where in the result the product lies.
    pub region: Region,
    /// Scale shift of each left column.
    pub left_shifts: &'a [i64],
    /// Scale shift of each right column.
    pub right_shifts: &'a [i64],
    /// The last steps on the product.
    pub epilogue: Epilogue<'a>,
    /// Bit length that no product may exceed, where the redundant prime is used to check it.
    pub largest_bits: Option<u32>,
    /// Precision of the result.
    pub precision_bits: u32,
    /// Freivalds' test, where it is enabled.
    pub check: Option<&'a InnerCheck>,
}

/// Time of all workers, summed.
#[derive(Clone, Copy, Default)]
pub(crate) struct RecoveryTime {
    /// In reconstruction.
    pub reconstruct: Duration,
    /// In checking, rounding and storing.
    pub unscale: Duration,
}

impl RecoveryTime {
    /// Adds the time of another pair of bands.
    pub fn add(&mut self, other: RecoveryTime) {
        self.reconstruct += other.reconstruct;
        self.unscale += other.unscale;
    }
}

struct RecoveryMemory<'l, 's> {
    space: &'l mut Space<'s>,
    time: RecoveryTime,
    /// When the last block was stored.
    last: Instant,
    sums: Option<RowSums>,
}

impl Recovery<'_> {
    /// Fills `segments`, which lie in this pair of bands.
    ///
    /// # Errors
    /// [`Error::SelfCheck`], [`Error::ExponentRange`], [`Error::Cancelled`].
    pub fn run<'w>(
        &self,
        mut segments: impl Iterator<Item = Segment<'w>> + Send,
        spaces: &mut [Space<'_>],
        meter: &Meter<'_>,
    ) -> Result<RecoveryTime> {
        let sums = || self.check.map(InnerCheck::row_sums);
        let start = Instant::now();
        let local = |space| RecoveryMemory { space, time: RecoveryTime::default(), last: start, sums: sums() };
        let mut locals = spaces.iter_mut().map(local).collect::<Vec<_>>();
        drive::parallel_for(&mut locals, |_| segments.next(), |local, segment| self.fill(local, segment, meter))?;
        if let Some(check) = self.check {
            locals.iter_mut().filter_map(|local| local.sums.take()).for_each(|sums| check.collect(sums));
        }
        let sum = |part: fn(&RecoveryTime) -> Duration| locals.iter().map(|local| part(&local.time)).sum();
        Ok(RecoveryTime { reconstruct: sum(|time| time.reconstruct), unscale: sum(|time| time.unscale) })
    }

    fn fill(&self, local: &mut RecoveryMemory<'_, '_>, mut segment: Segment<'_>, meter: &Meter<'_>) -> Result<()> {
        let plane_words = self.engine.plane_words(&self.region.grid);
        let (integers, scratch) = (&mut *local.space.integers, &mut *local.space.scratch);
        for row in segment.rows.clone() {
            let offset = self.region.block_index(row, segment.col) * self.engine.block_words();
            let residues = BlockResidues { window: self.window, plane_words, offset };
            self.engine.reconstruct(&residues, integers, scratch);
            let reconstructed = Instant::now();
            self.store(integers, row, &mut segment, local.sums.as_mut())?;
            let stored = Instant::now();
            local.time.reconstruct += reconstructed - local.last;
            local.time.unscale += stored - reconstructed;
            local.last = stored;
        }
        let primes = self.engine.moduli().len() as u64;
        meter.add("reconstruct", RECOVER_UNITS * primes * primes * segment.rows.len() as u64)
    }

    /// Rounds the integers of one block into blocks of rows `row` of the segment.
    fn store(
        &self,
        integers: &IntegerBlock,
        row: usize,
        segment: &mut Segment<'_>,
        mut sums: Option<&mut RowSums>,
    ) -> Result<()> {
        let first = (row - segment.rows.start) * BLOCK;
        for (c, ColumnPiece { heads, limbs }) in segment.columns.iter_mut().enumerate() {
            if heads.is_empty() {
                break; // beyond the last column of the matrix
            }
            let width = limbs.len() / heads.len();
            let last = (first + BLOCK).min(heads.len());
            let entries = heads[first..last].iter_mut().zip(limbs[first * width..last * width].chunks_exact_mut(width));
            for (r, (head, limbs)) in entries.enumerate() {
                let place = EntryIndex { row: row * BLOCK + r, col: segment.col * BLOCK + c };
                if self.region.holds(place.row, place.col) {
                    let entry = self.region.entry(r, c);
                    if let (Some(check), Some(sums)) = (self.check, sums.as_deref_mut()) {
                        check.add(sums, place, integers.negative[entry], integers.magnitude(entry));
                    }
                    *head = self.round(integers, entry, place, limbs)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn round(&self, integers: &IntegerBlock, entry: usize, place: EntryIndex, limbs: &mut [u64]) -> Result<u64> {
        let magnitude = integers.magnitude(entry);
        if self.largest_bits.is_some_and(|bits| bit_length(magnitude) > u64::from(bits)) {
            return Err(Error::SelfCheck { row: place.row, column: place.col });
        }
        // A triangle's product is symmetric in the shifts, so the stored transpose needs no exchange.
        let exponent = -(self.left_shifts[place.row] + self.right_shifts[place.col]);
        let exact = ExactEntry { negative: integers.negative[entry], magnitude, exponent };
        Ok(self.epilogue.finish(exact, place, self.precision_bits, limbs)?.0)
    }
}
