//! The three steps of a product on planes, each a list of work for all workers of a rank: residues of some panels of an
//! operand (`Conversion`), products of planes (`Multiplication`), entries of the result (`Recovery`).

use crate::context::{Context, WorkerSpace};
use crate::drive::{self, Meter};
use crate::error::{Error, Result};
use crate::kernels::{BlockResidues, IntegerBlock, PanelSource, PlaneEngine, PlaneProduct};
use crate::math::bound::range_check_bits;
use crate::math::float::bit_length;
use crate::matrix::{EntryIndex, MatrixView};
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::combine::Epilogue;
use crate::ops::product::inner_check::{InnerCheck, RowSums};
use crate::ops::product::problem::{Bits, OperandRows};
use crate::ops::product::sink::{ColumnPiece, Region, Segment};
use crate::plan::{BLOCK, BlockGrid, Job};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The private memory of one worker during a call.
pub(crate) struct Space<'a> {
    /// Scratch for the kernel.
    pub scratch: &'a mut [u64],
    /// The integers of one block.
    pub integers: &'a mut IntegerBlock,
}

/// The private memory of each of `workers`: integers of `limbs` limbs, and `scratch_words` words of scratch.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub(crate) fn worker_spaces(workers: &mut [WorkerSpace], limbs: usize, scratch_words: usize) -> Result<Vec<Space<'_>>> {
    let mut spaces = Vec::with_capacity(workers.len());
    for WorkerSpace { scratch, integers } in workers {
        if integers.limbs != limbs {
            *integers = IntegerBlock::new(limbs);
        }
        spaces.push(Space { scratch: scratch.words(scratch_words)?, integers });
    }
    Ok(spaces)
}

/// Work units of one row of one panel modulo one prime, where a plane product counts one for a row of a block.
/// Measured: 11 to 33 with moduli of up to 16 bits, 27 to 31 with those of 52, at 256 and 1024 bits (AVX-512 and AMX).
pub(crate) const CONVERT_UNITS: u64 = 24;

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

/// One batch of plane products.
pub(crate) struct Multiplication<'a> {
    /// Does the products.
    pub engine: &'a dyn PlaneEngine,
    /// Primes of the batch.
    pub primes: Range<usize>,
    /// Shape of the product planes.
    pub grid: BlockGrid,
    /// Rows of this chunk.
    pub rows: usize,
    /// The operand window.
    pub operands: &'a [u64],
    /// Words of one operand plane in the window.
    pub plane_words: usize,
    /// Words of the left panels within an operand plane.
    pub left: Range<usize>,
    /// Words of the right panels within an operand plane.
    pub right: Range<usize>,
    /// Whether to add to the product window.
    pub accumulate: bool,
}

/// A job and the words it fills.
pub(crate) struct Task<'w> {
    /// The job.
    pub job: Job,
    /// The words of its blocks.
    pub words: &'w mut [u64],
}

impl Multiplication<'_> {
    /// Runs the tasks, a queue for each worker.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn run(&self, queues: Vec<VecDeque<Task<'_>>>, spaces: &mut [Space<'_>], meter: &Meter<'_>) -> Result<()> {
        drive::parallel_queues(spaces, queues, |space, Task { job, words }| {
            let units = (self.rows * job.blocks.len()) as u64;
            if self.rows == 0 {
                if !self.accumulate {
                    words.fill(0);
                }
                return Ok(());
            }
            let operands = &self.operands[job.prime * self.plane_words..][..self.plane_words];
            let product = PlaneProduct {
                x: &operands[self.left.clone()],
                y: &operands[self.right.clone()],
                rows: self.rows,
                grid: self.grid,
                blocks: job.blocks,
                accumulate: self.accumulate,
            };
            self.engine.multiply(self.primes.start + job.prime, &product, words, space.scratch);
            meter.add("product", units)
        })
    }
}

/// Work units of one block for each pair of primes, where a plane product counts one for a row of a block.
pub(crate) const RECOVER_UNITS: u64 = 2;

/// The inputs for one pair of bands of the result.
pub(crate) struct Recovery<'a> {
    /// Does the reconstruction.
    pub engine: &'a dyn PlaneEngine,
    /// The product window.
    pub window: &'a [u64],
    /// The region of the result that the product fills.
    pub region: Region,
    /// The last steps on the product.
    pub rounding: Rounding<'a>,
}

/// From the exact integers of a scaled product to entries of the result, on CPUs and for what devices leave to the
/// host: the range check, the scale, the epilogue, one rounding.
#[derive(Clone, Copy)]
pub(crate) struct Rounding<'a> {
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

impl<'a> Rounding<'a> {
    /// The last steps on a product of operands with these shifts; the range is checked where the context has a
    /// redundant prime.
    pub fn new(
        ctx: &Context,
        left: &OperandRows<'a>,
        right: &OperandRows<'a>,
        bits: &Bits,
        epilogue: Epilogue<'a>,
        check: Option<&'a InnerCheck>,
    ) -> Rounding<'a> {
        Rounding {
            left_shifts: left.shifts,
            right_shifts: right.shifts,
            epilogue,
            largest_bits: ctx.self_check().then(|| range_check_bits(bits.modulus)),
            precision_bits: bits.result,
            check,
        }
    }

    /// Writes the limbs of entry `(-1)^negative * magnitude` at `place`, and returns its head; adds the integer to the
    /// `sums` of Freivalds' test.
    ///
    /// # Errors
    /// [`Error::SelfCheck`], [`Error::ExponentRange`].
    #[inline]
    pub fn finish(
        &self,
        place: EntryIndex,
        negative: bool,
        magnitude: &[u64],
        sums: Option<&mut RowSums>,
        limbs: &mut [u64],
    ) -> Result<u64> {
        if let (Some(check), Some(sums)) = (self.check, sums) {
            check.add(sums, place, negative, magnitude);
        }
        if self.largest_bits.is_some_and(|bits| bit_length(magnitude) > u64::from(bits)) {
            return Err(Error::SelfCheck { row: place.row, column: place.col });
        }
        // A triangle's product is symmetric in the shifts, so the stored transpose needs no exchange.
        let exponent = -(self.left_shifts[place.row] + self.right_shifts[place.col]);
        let exact = ExactEntry { negative, magnitude, exponent };
        Ok(self.epilogue.finish(exact, place, self.precision_bits, limbs)?.0)
    }
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
    /// The time at which the last block was stored.
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
        let check = self.rounding.check;
        let sums = || check.map(InnerCheck::row_sums);
        let start = Instant::now();
        let local = |space| RecoveryMemory { space, time: RecoveryTime::default(), last: start, sums: sums() };
        let mut locals = spaces.iter_mut().map(local).collect::<Vec<_>>();
        drive::parallel_for(&mut locals, |_| segments.next(), |local, segment| self.fill(local, segment, meter))?;
        if let Some(check) = check {
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
                    let (negative, magnitude) = (integers.negative[entry], integers.magnitude(entry));
                    *head = self.rounding.finish(place, negative, magnitude, sums.as_deref_mut(), limbs)?;
                }
            }
        }
        Ok(())
    }
}
