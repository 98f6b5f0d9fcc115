//! The columns of a Cholesky factor one after the other, where they are few.
#![forbid(unsafe_code)]

use super::BadPivot;
use crate::kernels::f64::simd::{DoubleVector, F64Task};

/// The largest number of columns that are factored one after the other.
pub const LEAF_COLUMNS: usize = 16;

/// Factors the diagonal block of at most [`LEAF_COLUMNS`] columns at the start of `a`, whose columns are `stride` words
/// apart; the products of earlier columns are subtracted already. `bad` becomes the first bad pivot.
pub struct Leaf<'a> {
    pub a: &'a mut [f64],
    pub order: usize,
    pub stride: usize,
    pub bad: &'a mut Option<BadPivot>,
}

impl F64Task for Leaf<'_> {
    #[inline(always)]
    fn run<V: DoubleVector, const N: usize>(self) {
        let mut block = [[0.0; LEAF_COLUMNS]; LEAF_COLUMNS];
        for j in 0..self.order {
            block[j][j..self.order].copy_from_slice(&self.a[j * self.stride..][j..self.order]);
        }
        for j in 0..self.order {
            let pivot = block[j][j];
            if !(pivot > 0.0 && pivot < f64::INFINITY) {
                *self.bad = Some(BadPivot { index: j, pivot });
                return;
            }
            let root = pivot.sqrt();
            // Rows before the diagonal are zero; those past the order too, and stay so.
            for entry in &mut block[j] {
                *entry /= root;
            }
            block[j][j] = root;
            let own = block[j];
            for later in j + 1..self.order {
                for i in 0..LEAF_COLUMNS {
                    block[later][i] -= own[i] * own[later];
                }
            }
        }
        for j in 0..self.order {
            self.a[j * self.stride..][j..self.order].copy_from_slice(&block[j][j..self.order]);
        }
    }
}
