//! The matrix that is factored, and the random vectors that test its factor.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sunzi::advanced::store::available_bytes;
use sunzi::comm::Transport;
use sunzi::double::{DoubleMatrix, RankGrid};
use sunzi::{Error, Result};

/// Random vectors.
const VECTORS: u64 = 2;

/// Entry `(i, j)` of the matrix: a number in (-1/2, 1/2) that looks random, and a dominant diagonal.
pub fn entry(rows: usize) -> impl Fn(usize, usize) -> f64 + Copy {
    move |i, j| {
        let (row, col) = (i.max(j) as u64, i.min(j) as u64);
        let mixed = (row << 32 | col).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
        let noise = (mixed >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        if i == j { rows as f64 + noise } else { noise }
    }
}

/// This rank's tiles of a matrix with these entries, on all ranks of `world`.
///
/// # Errors
/// [`Error::DimensionOverflow`]; [`Error::OutOfMemory`] where the matrix and a copy do not fit the free memory;
/// [`Error::InvalidArgument`] for tiles of 0 rows.
pub fn matrix(world: &dyn Transport, rows: usize, tile_rows: usize) -> Result<DoubleMatrix> {
    let grid = RankGrid::for_ranks(world.size());
    let overflow = Error::DimensionOverflow { rows, cols: rows, precision_bits: f64::MANTISSA_DIGITS };
    let entries = rows.checked_mul(rows).filter(|&count| count < isize::MAX as usize / 8).ok_or(overflow)?;
    let bytes = (entries / grid.size()) as u64 * size_of::<f64>() as u64;
    if available_bytes().is_some_and(|free| bytes > free) {
        return Err(Error::OutOfMemory { bytes });
    }
    DoubleMatrix::from_fn(world.rank(), rows, tile_rows, grid, entry(rows))
}

/// The largest of `|A x - L L^T x| / (rows eps |A|_F |x|)` (Euclidean norms) over a few random vectors of signs, for
/// the factor `l` of [`matrix`]. Collective.
///
/// # Errors
/// [`Error::Transport`].
pub fn largest_residual(world: &dyn Transport, l: &DoubleMatrix) -> Result<f64> {
    let rows = l.map().rows;
    let random = |seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        (0..rows).map(|_| if random.random::<bool>() { 1.0 } else { -1.0 }).collect::<Vec<f64>>()
    };
    l.residual(world, entry(rows), &(0..VECTORS).map(random).collect::<Vec<_>>())
}
