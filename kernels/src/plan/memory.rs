//! The memory plan of a product: how many primes, columns and rows are in the windows at the same time.
//!
//! Depends on: the numbers an engine and a shape supply. Independent of: engines, matrices, the machine. Promise: the
//! bytes of a cut cover all that the call allocates; the cut chosen for a limit never exceeds it; where none fits, the
//! least limit named is exactly the bytes of the smallest cut.
//!
//! A product that does not fit is cut three ways. Fewer primes at a time (batches) read and cut the operands once more
//! for each batch; fewer rows at a time (chunks) pass over the product planes once more for each chunk; both shrink
//! only the operand window. Bands of the result shrink the product window too, and convert the operands again. Of all
//! cuts that fit, the one with the least [`PlanInput::cost`] is chosen.

use crate::plan::overhead;
use crate::plan::{BlockGrid, JobList, plan_jobs};
use serde::Serialize;

/// Rows of the smallest chunk: for smaller chunks, reading and writing the product plane costs more than it saves.
pub const LEAST_CHUNK_ROWS: usize = 256;

/// The same where pieces of the operands are read from a disk: bands of more columns read less, which pays for passes.
const LEAST_READ_ROWS: usize = 64;

/// The largest number of rows of a chunk that is read from a disk: passes over product planes are few then, and reads
/// long.
const MOST_READ_ROWS: usize = 2048;

/// Several chunks have a multiple of this many rows each, but for the last.
const CHUNK_STEP_ROWS: usize = 64;

/// The same where they are read from a disk, as memory is scarce there.
const READ_STEP_ROWS: usize = 8;

/// Parts into which the primes of a product are cut so that the exchange of one is hidden behind the products of the
/// next: nine tenths of it at best.
const MOST_PARTS: usize = 10;

/// Words of a part without which it is not worth the fences around it.
const LEAST_PART_WORDS: usize = 1 << 12;

/// Primes of each of `parts` parts of a batch, except the last.
pub fn part_primes(batch_primes: usize, parts: usize) -> usize {
    batch_primes.div_ceil(parts.max(1))
}

/// The blocking of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cut {
    /// Primes whose operand planes are in the window at the same time.
    pub batch_primes: usize,
    /// Panels (8 columns each) of a band of the result, in both directions.
    pub band_panels: usize,
    /// Contracted rows in the window at the same time.
    pub chunk_rows: usize,
}

impl Cut {
    /// The same cut with every part at least 1 and at most that of `whole`.
    pub fn within(self, whole: &Cut) -> Cut {
        Cut {
            batch_primes: self.batch_primes.clamp(1, whole.batch_primes),
            band_panels: self.band_panels.clamp(1, whole.band_panels),
            chunk_rows: self.chunk_rows.clamp(1, whole.chunk_rows),
        }
    }
}

/// The numbers from which a plan is computed; the functions come from the engine.
pub struct PlanInput<'a> {
    /// Contracted rows; at least 1.
    pub contracted: usize,
    /// Panels of the operand for the result's rows; at least 1.
    pub left_panels: usize,
    /// Panels of the operand for the result's columns; the same panels for a triangle.
    pub right_panels: usize,
    /// Whether the result is one triangle of `X^T X`.
    pub triangle: bool,
    /// Residue planes, including a redundant one.
    pub primes: usize,
    /// Worker threads.
    pub workers: usize,
    /// Smallest number of workers that share the planes of a batch: fewer than `workers` if the plan is for several
    /// nodes.
    pub least_workers: usize,
    /// Bytes of the result, also counted if the caller supplies it, so that both cases use the same cut.
    pub result_bytes: u64,
    /// Bytes of the engine's tables.
    pub table_bytes: u64,
    /// Bytes of scale exponents and other lists that grow with the shape.
    pub list_bytes: u64,
    /// Bytes of the integers of one block, for each worker.
    pub integer_bytes: u64,
    /// Words of a block of a product plane.
    pub block_words: usize,
    /// Limbs of a scaled entry.
    pub operand_limbs: usize,
    /// Words of one operand panel of a given number of rows.
    pub panel_words: &'a dyn Fn(usize) -> usize,
    /// Words of scratch memory of one worker for a given number of rows and a grid.
    pub scratch_words: &'a dyn Fn(usize, &BlockGrid) -> usize,
    /// The same if no worker multiplies a whole plane.
    pub part_scratch_words: &'a dyn Fn(usize, &BlockGrid) -> usize,
    /// Bytes that a kernel call of one worker allocates for itself for a given number of rows and a grid.
    pub call_bytes: &'a dyn Fn(usize, &BlockGrid) -> u64,
    /// Bytes of a window of a given number of words, alignment included.
    pub window_bytes: &'a dyn Fn(usize) -> u64,
    /// Bytes of a given number of words of scratch memory.
    pub scratch_bytes: &'a dyn Fn(usize) -> u64,
    /// The use of a disk, if operands and result are on a disk.
    pub disk: Option<DiskInput<'a>>,
    /// Whether nodes exchange the products.
    pub exchanges: bool,
}

/// Operands that are read piece by piece, and a result that is written tile by tile.
pub struct DiskInput<'a> {
    /// Bytes of memory for the pieces of a band and a chunk, by the panels of the band and the rows of the chunk.
    pub piece_bytes: &'a dyn Fn(usize, usize) -> u64,
    /// Bytes of an entry on the disk.
    pub entry_bytes: u64,
    /// Panels of a tile of the result; bands are whole tiles.
    pub tile_panels: usize,
    /// Largest number of panels of a band: whole tiles.
    pub most_band_panels: usize,
    /// Bytes that do not depend on the cut.
    pub fixed_bytes: u64,
}

/// Bytes of every part of a call, exactly as allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PlanBytes {
    /// The result matrix.
    pub result: u64,
    /// Residues of the operands: one batch, one or two bands, one chunk.
    pub operand_window: u64,
    /// Residues of the product: all primes, one pair of bands.
    pub product_window: u64,
    /// Kernel scratch of all workers, with the allocations of the kernel calls themselves.
    pub scratch: u64,
    /// Reconstructed integers of all workers.
    pub integers: u64,
    /// Moduli and conversion tables.
    pub tables: u64,
    /// Scale exponents, job lists and queues.
    pub lists: u64,
    /// Pieces of operands that are read from a disk.
    #[serde(skip_serializing_if = "is_zero")]
    pub pieces: u64,
}

/// Whether there are no pieces.
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl PlanBytes {
    /// The part that the context keeps for later calls, until the memory is needed.
    pub fn windows(&self) -> u64 {
        let parts = [self.operand_window, self.product_window, self.scratch, self.integers];
        parts.iter().fold(0, |sum, &part| sum.saturating_add(part))
    }

    /// Sum of all parts.
    pub fn total(&self) -> u64 {
        let PlanBytes { result, tables, lists, pieces, .. } = *self;
        [self.windows(), result, tables, lists, pieces].iter().fold(0, |sum, &part| sum.saturating_add(part))
    }
}

/// Sizes of the windows and of the scratch of one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowWords {
    /// Words of the operand window.
    pub operands: usize,
    /// Words of the product window.
    pub products: usize,
    /// Words of scratch of one worker.
    pub scratch: usize,
    /// Bytes that a kernel call of one worker allocates for itself.
    pub call_bytes: u64,
}

impl PlanInput<'_> {
    /// The cut that keeps everything in memory at once, in the widest possible bands.
    pub fn whole(&self) -> Cut {
        let most = self.disk.as_ref().map_or(usize::MAX, |disk| disk.most_band_panels);
        let band_panels = self.left_panels.max(self.right_panels).min(most);
        Cut { batch_primes: self.primes, band_panels, chunk_rows: self.contracted }
    }

    /// Bands of the result's rows and of its columns under `cut`.
    pub fn bands(&self, cut: &Cut) -> (usize, usize) {
        (self.left_panels.div_ceil(cut.band_panels), self.right_panels.div_ceil(cut.band_panels))
    }

    /// Chunks of rows under `cut`.
    pub fn chunks(&self, cut: &Cut) -> usize {
        self.contracted.div_ceil(cut.chunk_rows)
    }

    /// Batches of primes under `cut`.
    pub fn batches(&self, cut: &Cut) -> usize {
        self.primes.div_ceil(cut.batch_primes)
    }

    /// Parts of a batch that are multiplied one after the other, so that products are exchanged while the next ones are
    /// computed; 1 if little or nothing is exchanged.
    pub fn parts(&self, cut: &Cut) -> usize {
        if !self.exchanges {
            return 1;
        }
        let mut words = 0;
        self.for_each_grid(cut, |grid| words = words.max(self.primes * grid.len() * self.block_words));
        (words / LEAST_PART_WORDS).clamp(1, MOST_PARTS).div_ceil(self.batches(cut))
    }

    /// Panels that fit the operand window: one band of the left operand and one of the right, or a single band if the
    /// product is one triangle.
    pub fn slot_panels(&self, cut: &Cut) -> (usize, usize) {
        let left = cut.band_panels.min(self.left_panels);
        let one_triangle = self.triangle && self.bands(cut).0 == 1;
        (left, if one_triangle { 0 } else { cut.band_panels.min(self.right_panels) })
    }

    /// The jobs of one full batch on the largest pair of bands.
    pub fn jobs(&self, cut: &Cut) -> JobList {
        let panels = |total: usize| total.min(cut.band_panels);
        let (rows, cols) = (panels(self.left_panels), panels(self.right_panels));
        let triangle = self.triangle && self.bands(cut).0 == 1;
        plan_jobs(cut.batch_primes, BlockGrid { rows, cols, triangle }.len(), self.workers)
    }

    /// Words of everything that `cut` keeps in windows.
    pub fn window_words(&self, cut: &Cut) -> WindowWords {
        let chunks = self.chunks(cut);
        let last_rows = self.contracted - (chunks - 1) * cut.chunk_rows;
        let panel = (self.panel_words)(cut.chunk_rows).max((self.panel_words)(last_rows));
        let (left, right) = self.slot_panels(cut);
        let operands = cut.batch_primes * (left + right) * panel;
        let mut words = WindowWords { operands, products: 0, scratch: 0, call_bytes: 0 };
        let part = part_primes(cut.batch_primes, self.parts(cut));
        let most_primes = if chunks > 1 { cut.batch_primes } else { part };
        self.for_each_grid(cut, |grid| {
            words.products = words.products.max(self.primes * grid.len() * self.block_words);
            for rows in [cut.chunk_rows, last_rows] {
                words.scratch = words.scratch.max(self.worker_scratch(most_primes, rows, grid));
                words.call_bytes = words.call_bytes.max((self.call_bytes)(rows, grid));
            }
        });
        words
    }

    /// Words of scratch of one worker. Where fewer primes are multiplied at a time than there are workers, all planes
    /// are cut.
    fn worker_scratch(&self, primes: usize, rows: usize, grid: &BlockGrid) -> usize {
        let largest_share = (primes as u128 * grid.len() as u128).div_ceil(self.least_workers as u128);
        let cut_up = primes < self.least_workers && largest_share < grid.len() as u128;
        if cut_up { (self.part_scratch_words)(rows, grid) } else { (self.scratch_words)(rows, grid) }
    }

    /// Visits every shape of grid that the pairs of bands have.
    fn for_each_grid(&self, cut: &Cut, mut visit: impl FnMut(&BlockGrid)) {
        let sizes = |panels: usize| {
            let bands = panels.div_ceil(cut.band_panels);
            let last = panels - (bands - 1) * cut.band_panels;
            (bands, if bands > 1 { cut.band_panels } else { last }, last)
        };
        let (bands, full, last) = sizes(self.left_panels);
        if !self.triangle {
            let (_, right_full, right_last) = sizes(self.right_panels);
            for (rows, cols) in [(full, right_full), (full, right_last), (last, right_full), (last, right_last)] {
                visit(&BlockGrid { rows, cols, triangle: false });
            }
            return;
        }
        for size in [full, last] {
            visit(&BlockGrid { rows: size, cols: size, triangle: true });
        }
        if bands > 1 {
            visit(&BlockGrid { rows: last, cols: full, triangle: false });
        }
        if bands > 2 {
            visit(&BlockGrid { rows: full, cols: full, triangle: false });
        }
    }

    /// Bytes of every part under `cut`.
    pub fn bytes(&self, cut: &Cut) -> PlanBytes {
        let words = self.window_words(cut);
        let workers = self.workers as u64;
        let fixed = self.disk.as_ref().map_or(0, |disk| disk.fixed_bytes);
        let per_prime = overhead::PRIME * (cut.batch_primes as u64 + workers) + 16 * cut.batch_primes as u64 * workers;
        PlanBytes {
            result: self.result_bytes,
            operand_window: (self.window_bytes)(words.operands),
            product_window: (self.window_bytes)(words.products),
            scratch: workers * ((self.scratch_bytes)(words.scratch) + words.call_bytes),
            integers: workers * self.integer_bytes,
            tables: self.table_bytes,
            lists: self.list_bytes.saturating_add(fixed + overhead::CALL + overhead::WORKER * workers + per_prime),
            pieces: self.disk.as_ref().map_or(0, |disk| {
                let panels = cut.band_panels.min(self.left_panels.max(self.right_panels));
                (disk.piece_bytes)(panels, cut.chunk_rows)
            }),
        }
    }

    /// The cheapest cut whose bytes are within `limit_bytes`, or the smallest limit that suffices.
    ///
    /// # Errors
    /// The bytes of the finest cut, if even that exceeds the limit; with that limit the call succeeds.
    pub fn choose(&self, limit_bytes: u64) -> Result<Cut, u64> {
        let fits = |cut: &Cut| self.bytes(cut).total() <= limit_bytes;
        let least_chunk = if self.disk.is_some() { LEAST_READ_ROWS } else { LEAST_CHUNK_ROWS }.min(self.contracted);
        let mut minimum_bytes = u64::MAX;
        let mut best: Option<(f64, Cut)> = None;
        // Bands are whole tiles, which are single panels where the result is in memory.
        let tile = self.disk.as_ref().map_or(1, |disk| disk.tile_panels);
        let (left, right) = (self.left_panels.div_ceil(tile), self.right_panels.div_ceil(tile));
        let most = self.disk.as_ref().map_or(usize::MAX, |disk| disk.most_band_panels / tile);
        let mut band_tiles = left.max(right).min(most);
        loop {
            let band_panels = band_tiles * tile;
            let uncut = Cut { batch_primes: self.primes, band_panels, chunk_rows: self.contracted };
            if best.is_some_and(|(cost, _)| cost <= self.cost(&uncut)) {
                break; // narrower bands cost more still
            }
            let finest = Cut { batch_primes: 1, band_panels, chunk_rows: least_chunk };
            minimum_bytes = minimum_bytes.min(self.bytes(&finest).total());
            if fits(&finest) {
                best = self.cheapest_in_bands(&finest, fits, best);
            }
            if band_tiles == 1 {
                break;
            }
            // The next size that gives more bands in some direction.
            let next = |tiles: usize| tiles.div_ceil(tiles.div_ceil(band_tiles) + 1).min(band_tiles - 1);
            band_tiles = next(left).max(next(right));
        }
        best.map(|(_, cut)| cut).ok_or(minimum_bytes)
    }

    /// The cheapest cut into the bands of `finest`, which fits, unless `best` is as cheap.
    fn cheapest_in_bands(
        &self,
        finest: &Cut,
        fits: impl Fn(&Cut) -> bool,
        mut best: Option<(f64, Cut)>,
    ) -> Option<(f64, Cut)> {
        let mut batches = 1;
        while batches <= self.primes {
            let even = self.primes.div_ceil(batches);
            let cut = Cut { batch_primes: even, ..*finest };
            if fits(&cut) {
                let cut = self.fewest_chunks(cut, &fits);
                // A multiple of the workers leaves no plane to cut, as long as it fits.
                let whole = Cut { batch_primes: even.next_multiple_of(self.workers).min(self.primes), ..cut };
                let cut = if fits(&whole) { whole } else { cut };
                let cost = self.cost(&cut);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, cut));
                }
                if cut.chunk_rows == self.most_chunk_rows() {
                    break; // more batches only cost more
                }
            }
            // The next number of batches that makes them smaller.
            batches = if even == 1 { self.primes + 1 } else { self.primes.div_ceil(even - 1) };
        }
        best
    }

    /// The largest number of rows of a chunk.
    fn most_chunk_rows(&self) -> usize {
        if self.disk.is_some() { self.contracted.min(MOST_READ_ROWS) } else { self.contracted }
    }

    /// `finest`, which fits, with the fewest chunks that fit.
    fn fewest_chunks(&self, finest: Cut, fits: impl Fn(&Cut) -> bool) -> Cut {
        let step = if self.disk.is_some() { READ_STEP_ROWS } else { CHUNK_STEP_ROWS };
        let with = |count: usize| {
            let height = self.contracted.div_ceil(count).next_multiple_of(step);
            Cut { chunk_rows: height.clamp(finest.chunk_rows, self.most_chunk_rows()), ..finest }
        };
        // The bytes grow with the height, so the counts that fit are those from some count on.
        let (mut low, mut high) = (0, self.contracted.div_ceil(finest.chunk_rows));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(&with(middle)) { high = middle } else { low = middle }
        }
        if fits(&with(high)) { with(high) } else { finest }
    }
}

#[cfg(test)]
mod tests;
