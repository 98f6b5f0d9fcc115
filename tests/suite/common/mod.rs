//! What the integration tests share: matrices of many kinds, and an exact oracle for products and their bounds.
//!
//! Effort: the environment variable `SUNZI_TEST_EFFORT` (default 1) multiplies the number of seeds and cases.
//! Every failure message carries the seed. The oracle works with big integers; of the library it uses the storage,
//! and the scale exponents, whose defining property it checks.

pub mod by_norms;
pub mod definite;
pub mod oracle;
pub mod rational;
pub mod residency;
mod rng;
pub mod sdplib;
pub mod solves;
pub mod tally;
pub mod traffic;

use rug::Integer;
use sunzi::advanced::kernels;
use sunzi::{Context, ContextBuilder, Matrix};

pub use rng::{Rng, claims, effort};

/// `count` seeds, more with more effort.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    0..count * effort()
}

/// The choices that case number `turn` takes of so many: one after the other, or all of them with more effort.
///
/// Where several axes take turns by sums of their cases, every two values of different axes meet.
pub fn in_turn(count: usize, turn: usize) -> std::ops::Range<usize> {
    if effort() > 1 { 0..count } else { turn % count..turn % count + 1 }
}

/// The bytes of residue number `entry` in a plane of so many blocks, of which kernels have 2 or 8.
pub fn residue(plane: &mut [u64], blocks: usize, entry: usize) -> &mut [u8] {
    let bytes = size_of_val(plane) / (64 * blocks);
    &mut bytemuck::cast_slice_mut(plane)[entry * bytes..][..bytes]
}

/// Writes one residue of a plane over another.
pub fn copy_residue(plane: &mut [u64], blocks: usize, (from, to): (usize, usize)) {
    let bytes = residue(plane, blocks, from).to_vec();
    residue(plane, blocks, to).copy_from_slice(&bytes);
}

/// Names of the kernels that can run here.
pub fn kernel_names() -> Vec<&'static str> {
    kernels::available().iter().map(|kernel| kernel.name()).collect()
}

/// A context builder with a forced kernel and a number of threads.
pub fn forced(kernel: &str, threads: usize) -> ContextBuilder {
    Context::builder().kernel(kernel).threads(threads)
}

/// How the entries of a test matrix are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Random significands, exponents within a few bits.
    Unit,
    /// Row and column scales spread over thousands of bits.
    Graded,
    /// A third of the columns and some single entries are 0.
    ZeroColumns,
    /// Every exponent on its own between -100000 and 100000.
    Extreme,
    /// Plus or minus one power of two in each column: norms at and beside powers of two, products at their bound.
    Flat,
    /// Significands of ones alone, so that scaling rounds all of them up.
    Ones,
    /// Few significant bits, as doubles have.
    Doubles,
}

/// All kinds.
pub const KINDS: [Kind; 7] =
    [Kind::Unit, Kind::Graded, Kind::ZeroColumns, Kind::Extreme, Kind::Flat, Kind::Ones, Kind::Doubles];

/// A `rows x cols` matrix of `precision_bits` bits.
pub fn matrix(kind: Kind, rows: usize, cols: usize, precision_bits: u32, seed: u64) -> Matrix {
    let mut rng = Rng::new(seed);
    let mut matrix = Matrix::zeros(rows, cols, precision_bits).unwrap();
    let row_scales = (0..rows).map(|_| rng.within(3000)).collect::<Vec<_>>();
    for col in 0..cols {
        let column_scale = rng.within(if kind == Kind::Graded { 5000 } else { 60 });
        if kind == Kind::ZeroColumns && rng.below(3) == 0 {
            continue;
        }
        for (row, row_scale) in row_scales.iter().enumerate() {
            let significand = match kind {
                Kind::ZeroColumns if rng.below(4) == 0 => continue,
                Kind::Flat => Integer::from(if rng.coin() { 1 } else { -1 }),
                Kind::Ones => ((Integer::from(1) << precision_bits) - 1u32) * if rng.coin() { 1 } else { -1 },
                Kind::Doubles => rng.integer(53.min(precision_bits)),
                _ => rng.integer(precision_bits),
            };
            let top = match kind {
                Kind::Unit | Kind::ZeroColumns | Kind::Doubles => rng.within(4),
                Kind::Graded => row_scale + column_scale + rng.within(3),
                Kind::Extreme => rng.within(100_000),
                Kind::Flat | Kind::Ones => column_scale,
            };
            let low = top - i64::from(significand.significant_bits());
            matrix.set_integer_exponent(row, col, &significand, low).unwrap();
        }
    }
    matrix
}

/// Integers of up to `bits` bits, some 0, some at the very end of the range.
pub fn integer_matrix(rows: usize, cols: usize, bits: u32, seed: u64) -> Matrix {
    let mut rng = Rng::new(seed);
    let values = (0..rows * cols).map(|_| match rng.below(8) {
        0 => Integer::new(),
        1 => ((Integer::from(1) << bits) - 1u32) * if rng.coin() { 1 } else { -1 },
        2 => Integer::from(1),
        _ => {
            let length = 1 + rng.below(bits as usize) as u32;
            rng.integer(length)
        }
    });
    Matrix::from_integers(rows, cols, bits.max(2), &values.collect::<Vec<_>>()).unwrap()
}
