//! The memory that a run takes in addition to its matrices: lists, threads, tables of contexts, loops between calls.
//!
//! These are most of the numbers of a plan that were measured. Independent of: programs.

/// Bytes of all that is no matrix and belongs to no block: the state of the run, lists, a context.
const BASE_BYTES: u64 = 7 << 10;

/// Bytes of each of several threads, and of its context: the most that was measured beyond the counted bytes.
const THREAD_BYTES: u64 = 32 << 10;

/// Bytes of the tables that a context keeps of products and factors, by the rows of the largest.
fn table_bytes(rows: usize) -> u64 {
    match rows {
        0..=12 => 0,
        13..=23 => 2 << 10,
        _ => 16 << 10,
    }
}

/// Bytes of scratch of a sum or a product with a vector, in addition to its result, at few bits.
const PLAIN_BYTES: u64 = 2 << 10;

/// Bytes of the data of a block other than matrices: places in lists, and single numbers.
const BLOCK_BYTES: u64 = 3 << 9;

/// The same in the ledger of each precision.
const LEDGER_BYTES: u64 = 256;

/// Numbers that loops between calls make one by one take at most this part of the blocks.
const BETWEEN: u64 = 128;

/// Bytes at most that a checkpoint is looked through in.
const READING_BYTES: u64 = 1 << 20;

/// Bytes that depend on no precision, on `threads` threads, with `rows` rows in the largest matrix.
pub fn base(threads: usize, rows: usize) -> u64 {
    let several = if threads > 1 { threads as u64 } else { 0 };
    BASE_BYTES + THREAD_BYTES * several + table_bytes(rows) * (1 + several)
}

/// Bytes of `count` blocks, in a run at `precisions` precisions.
pub fn of_blocks(count: usize, precisions: usize) -> u64 {
    (BLOCK_BYTES + LEDGER_BYTES * precisions as u64) * count as u64
}

/// Scratch of a sum.
pub fn plain(bits: u32) -> u64 {
    PLAIN_BYTES + u64::from(bits)
}

/// Bytes that loops between calls take in addition to blocks of `blocks` bytes.
pub fn between(blocks: u64) -> u64 {
    blocks / BETWEEN
}

/// Bytes that a rank takes to read through a checkpoint of points of `points` bytes and numbers of `bits` bits, in
/// addition to its part: limbs, and the heads of as many numbers.
pub fn reading(points: u64, bits: u32) -> u64 {
    let limbs = READING_BYTES.min(points);
    limbs + limbs / u64::from(bits.div_ceil(64))
}
