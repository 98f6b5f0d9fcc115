//! Batches: the bits and errors of single calls for every problem, whatever threads and limits there are.

mod calls;
mod failures;
mod limits;

use crate::common::{Kind, Rng, matrix};
use sunzi::{Context, Matrix, SymmetricMatrix, syrk};

/// Shapes of products, rows contracted first: empty ones, single entries, edges of lanes and digits, two that take
/// planes.
const SHAPES: [(usize, usize); 12] =
    [(0, 0), (0, 3), (3, 0), (1, 1), (2, 1), (1, 5), (20, 10), (31, 16), (7, 4), (8, 33), (60, 40), (3, 100)];

/// Orders of factors and triangles.
const ORDERS: [usize; 12] = [0, 1, 2, 3, 8, 12, 13, 20, 24, 56, 57, 70];

fn context(threads: usize, memory_bytes: Option<u64>) -> Context {
    let builder = Context::builder().threads(threads);
    memory_bytes.map_or(builder.clone(), |bytes| builder.memory_bytes(bytes)).build().unwrap()
}

/// Operands of [`SHAPES`], of several kinds and precisions of their own.
fn operands(bits: u32, seed: u64) -> Vec<Matrix> {
    let mut rng = Rng::new(seed);
    let kinds = [Kind::Unit, Kind::Graded, Kind::ZeroColumns];
    let each = SHAPES.iter().enumerate().map(|(at, &(rows, cols))| {
        let own_bits = rng.pick(&[bits, 53, bits + 70]);
        matrix(kinds[at % kinds.len()], rows, cols, own_bits, seed + at as u64)
    });
    each.collect()
}

/// Positive definite matrices of [`ORDERS`].
fn definite(bits: u32, seed: u64) -> Vec<SymmetricMatrix> {
    let ctx = context(1, None);
    let gram = |(at, &order): (usize, &usize)| {
        let p = matrix(Kind::Unit, order + 3, order, bits, seed + at as u64);
        syrk(&ctx, &p, bits).unwrap()
    };
    ORDERS.iter().enumerate().map(gram).collect()
}
