//! The cost of a cut in addition to the products themselves: conversions done again, product planes passed over again.
//!
//! In nanoseconds of one worker on a CPU with AVX-512, fitted to measurements from 256 to 2048 bits; only their
//! proportions matter, and only for which of the cuts that fit is chosen.

use crate::plan::{BLOCK, Cut, PlanInput};

/// Reading an entry and cutting its digits, for each limb: once for each batch of primes.
const CUT_NANOSECONDS_PER_LIMB: f64 = 3.3;

/// One residue of an entry, for each limb.
const RESIDUE_NANOSECONDS_PER_LIMB: f64 = 0.27;

/// Reading and writing a word of a product plane once more, for each chunk of rows after the first.
const PASS_NANOSECONDS: f64 = 3.5;

/// Reading a byte from a disk of 2 GB a second, which all workers share. Much of it overlaps with the products.
const READ_NANOSECONDS_PER_BYTE: f64 = 0.5;

impl PlanInput<'_> {
    /// Nanoseconds of conversions, of passes over product planes and of reading operands from a disk under `cut`.
    pub fn cost(&self, cut: &Cut) -> f64 {
        let (batches, chunks) = (self.batches(cut) as f64, self.chunks(cut) as f64);
        let limbs = self.operand_limbs as f64;
        let entry = limbs * (batches * CUT_NANOSECONDS_PER_LIMB + self.primes as f64 * RESIDUE_NANOSECONDS_PER_LIMB);
        let entries = self.converted_panels(cut) * (BLOCK * self.contracted) as f64;
        let blocks = self.left_panels as f64 * self.right_panels as f64 / if self.triangle { 2.0 } else { 1.0 };
        let words = blocks * (self.block_words * self.primes) as f64;
        let read = self
            .disk
            .as_ref()
            .map_or(0.0, |disk| batches * disk.entry_bytes as f64 * self.workers as f64 * READ_NANOSECONDS_PER_BYTE);
        entries * (entry + read) + (chunks - 1.0) * words * PASS_NANOSECONDS
    }

    /// Panels that are converted for each prime and row: a band that stays in its slot from one pair of bands to the
    /// next is converted once, but only where there is a single batch and a single chunk.
    fn converted_panels(&self, cut: &Cut) -> f64 {
        let stays = self.batches(cut) == 1 && self.chunks(cut) == 1;
        let (left, right) = (self.left_panels as f64, self.right_panels as f64);
        let (row_bands, col_bands) = self.bands(cut);
        let (row_bands, col_bands) = (row_bands as f64, col_bands as f64);
        match (self.triangle, stays) {
            (true, true) => left * (row_bands + 1.0) / 2.0,
            (true, false) => left * row_bands,
            (false, true) => left + right * row_bands,
            (false, false) => left * col_bands + right * row_bands,
        }
    }
}
