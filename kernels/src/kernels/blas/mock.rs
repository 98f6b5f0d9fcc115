//! Counts of the BLAS calls of each thread, in tests: proof that the kernel `blas` computes by BLAS and nothing else.

use std::cell::Cell;

/// Calls and multiply-adds of one thread since [`take`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Calls of dgemm.
    pub dgemm_calls: usize,
    /// Calls of dsyrk.
    pub dsyrk_calls: usize,
    /// Multiply-adds requested by all these calls.
    pub multiply_adds: usize,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { dgemm_calls: 0, dsyrk_calls: 0, multiply_adds: 0 }) };
}

/// Notes a dgemm.
pub fn count_dgemm(multiply_adds: usize) {
    let counts = COUNTS.get();
    COUNTS.set(Counts {
        dgemm_calls: counts.dgemm_calls + 1,
        multiply_adds: counts.multiply_adds + multiply_adds,
        ..counts
    });
}

/// Notes a dsyrk.
pub fn count_dsyrk(multiply_adds: usize) {
    let counts = COUNTS.get();
    COUNTS.set(Counts {
        dsyrk_calls: counts.dsyrk_calls + 1,
        multiply_adds: counts.multiply_adds + multiply_adds,
        ..counts
    });
}

/// The counts of this thread, which start again at 0.
pub fn take() -> Counts {
    COUNTS.take()
}

mod tests {
    use super::*;
    use crate::kernels::{EngineSpec, PlaneProduct, by_name};
    use crate::plan::BlockGrid;

    #[test]
    fn the_kernel_blas_multiplies_by_blas() {
        let kernel = by_name("blas").expect("built with the feature");
        let engine = kernel.prepare(&EngineSpec { operand_bits: 30, modulus_bits: 62, redundant: false }).unwrap();
        for (columns, rows, grid) in [
            (600, 9, BlockGrid::triangle(600)),
            (100, 600, BlockGrid::triangle(100)),
            (64, 20, BlockGrid::rectangle(64, 64)),
        ] {
            let x = vec![0u64; engine.panel_words(rows) * columns / 8 + engine.panel_words(rows)];
            let mut c = vec![u64::MAX; grid.words()];
            let mut scratch = vec![u64::MAX; engine.scratch_words(rows, &grid)];
            let product = PlaneProduct { x: &x, y: &x, rows, grid, blocks: 0..grid.len(), accumulate: false };
            take();
            engine.multiply(0, &product, &mut c, &mut scratch);
            let counts = take();
            let least = if grid.triangle { columns * (columns + 1) / 2 } else { columns * columns } * rows;
            assert!(counts.multiply_adds >= least, "{counts:?}: some products bypassed BLAS");
            assert!(counts.multiply_adds <= least + least / 4, "{counts:?}: more than {least} needed");
            assert_eq!(counts.dsyrk_calls > 0, grid.triangle);
            assert!(counts.dgemm_calls > 0 || grid.triangle);
            assert!(c.iter().all(|&word| word == 0));
        }
    }
}
