//! Plans of the library's calls at one precision, entry by entry.

use crate::numbers::exponent;
use rug::Float;
use sunzi::plans::{Plan, ProductPlanOptions};
use sunzi::plans::{plan_cholesky, plan_gemm_with, plan_solve, plan_syrk_with, plan_trsm};
use sunzi::{Accuracy, CholeskyOptions, Context, Matrix, Result};

/// The name of the kernel of products that are formed number by number.
const DIRECT: &str = "direct";

/// Orders below which a product has no narrower bands to go to, so that it is planned with all the bits that it may
/// need.
const NARROW_ORDER: usize = 24;

/// Bits for the range of exponents of a larger product: one that needs more takes narrower bands.
const PRODUCT_RANGE_BITS: u32 = 40;

/// Bits for the range of exponents in addition to those that depend on the gap.
const RANGE_BITS: u32 = 40;

/// Bytes of a row of a factor that is made number by number, in addition to its entries.
const ROW_BYTES: u64 = 64;

/// Bytes of lists of a solve.
const SOLVE_BYTES: u64 = 1 << 10;

/// Bits that the library's `syr2k` adds to those of its product.
const SYR2K_BITS: u32 = 2;

/// Bits by which eigenvalues of X and Y differ near the optimum: those of the gap at which a run ends.
#[derive(Clone, Copy, Debug)]
pub struct Gap(pub u32);

impl Gap {
    /// The gap of a threshold.
    pub fn of(threshold: &Float) -> Gap {
        Gap(-exponent(threshold).clamp(-4096, 0) as u32)
    }
}

/// Plans in one context. Ranges of exponents may exceed those that a kernel reaches: neither plans nor calls take more
/// bits for them than all kernels have.
#[derive(Clone, Copy)]
pub struct Calls<'c> {
    /// The context, with the number of threads and the kernel.
    pub ctx: &'c Context,
    /// Precision of operands and results.
    pub bits: u32,
    /// The final gap of the run.
    pub gap: Gap,
}

/// The memory of the calls on a dense block, their results included.
#[derive(Clone, Copy, Debug)]
pub struct BlockCalls {
    /// A product of two blocks.
    pub gemm: u64,
    /// The symmetric part of one.
    pub syr2k: u64,
    /// A Gram matrix.
    pub syrk: u64,
    /// A solve for as many right-hand sides as rows.
    pub trsm: u64,
    /// The factor, where exponents spread as little as in most matrices.
    pub cholesky: u64,
    /// The bytes of a factorisation of any matrix that a run may produce.
    pub any_cholesky: u64,
}

impl Calls<'_> {
    fn product_range(&self, order: usize) -> u32 {
        if order < NARROW_ORDER { self.gap.0 + RANGE_BITS } else { PRODUCT_RANGE_BITS }
    }

    /// The bytes of a product of `order` rows or columns at most. One that is formed number by number has no bands.
    fn product(&self, order: usize, plan: impl Fn(&ProductPlanOptions) -> Result<Plan>) -> Result<u64> {
        let with = |range| plan(&ProductPlanOptions::new().accuracy(Accuracy::Entrywise).range_bits(range));
        let first = with(self.product_range(order))?;
        if first.kernel != DIRECT || order < NARROW_ORDER {
            return Ok(first.planned_bytes);
        }
        Ok(with(2 * self.gap.0 + RANGE_BITS)?.planned_bytes)
    }

    /// The Gram matrix of the columns of a `rows x cols` matrix.
    ///
    /// # Errors
    /// The errors of the library's plans, as of all others here.
    pub fn syrk(&self, rows: usize, cols: usize) -> Result<u64> {
        self.product(cols, |options| plan_syrk_with(self.ctx, (rows, cols), self.bits, options))
    }

    /// The bytes of a SYRK with accuracy by norms.
    pub fn gram(&self, rows: usize, cols: usize) -> Result<u64> {
        let options = ProductPlanOptions::new().accuracy(Accuracy::Norm);
        Ok(plan_syrk_with(self.ctx, (rows, cols), self.bits, &options)?.planned_bytes)
    }

    /// A `rows x contracted` matrix times a `contracted x cols` one.
    pub fn gemm(&self, rows: usize, cols: usize, contracted: usize) -> Result<u64> {
        let plan =
            |options: &ProductPlanOptions| plan_gemm_with(self.ctx, (rows, cols), contracted, self.bits, options);
        self.product(rows.max(cols), plan)
    }

    /// The factor of a Schur complement: numbers that spread further are factored one by one.
    pub fn system_cholesky(&self, order: usize) -> Result<u64> {
        let planned = self.cholesky(order, self.gap.0 / 2 + RANGE_BITS / 4)?;
        Ok(planned.max(self.any_cholesky(order)?))
    }

    /// The memory of a factor of numbers that spread far: one that is made number by number, where its tiles have no
    /// room for them; but a kernel that is forced, and devices, keep their tiles, with bits for twice the gap.
    fn any_cholesky(&self, order: usize) -> Result<u64> {
        let range = 2 * self.gap.0 + RANGE_BITS;
        if self.ctx.forced_kernel().is_some() || !self.ctx.devices().is_empty() {
            return self.cholesky(order, range);
        }
        let entries = (order * order) as u64 * 8 * (2 + u64::from((self.bits + range).div_ceil(64)));
        Ok(Matrix::bytes_for(order, order, self.bits) + entries + ROW_BYTES * order as u64)
    }

    /// The factor of a matrix, by norms.
    pub fn norm_cholesky(&self, order: usize) -> Result<u64> {
        let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
        Ok(plan_cholesky(self.ctx, order, self.bits, &options)?.planned_bytes)
    }

    fn cholesky(&self, order: usize, range_bits: u32) -> Result<u64> {
        let options = CholeskyOptions::new().accuracy(Accuracy::Entrywise).range_bits(range_bits);
        Ok(plan_cholesky(self.ctx, order, self.bits, &options)?.planned_bytes)
    }

    /// A triangular solve for `columns` columns. The plan takes pivots near the norms of their rows; smaller ones take
    /// more bits, or narrower bands, for the narrowest of which there is room whatever the numbers are. Small ones have
    /// only this room.
    pub fn trsm(&self, order: usize, columns: usize) -> Result<u64> {
        let plan = plan_trsm(self.ctx, (order, columns), self.bits, Accuracy::Entrywise)?;
        let is_small = order.max(columns) < NARROW_ORDER;
        Ok(if is_small { plan.least_bytes } else { plan.planned_bytes.max(plan.least_bytes) })
    }

    /// A solve for one column with a factor of this accuracy, which is no plan's guess: it is made of sums.
    pub fn solve(&self, order: usize, accuracy: Accuracy) -> Result<u64> {
        if order == 0 {
            return Ok(0);
        }
        let plan = plan_solve(self.ctx, (order, 1), self.bits, &CholeskyOptions::new().accuracy(accuracy))?;
        Ok(plan.planned_bytes.saturating_sub(plan.factorisation_bytes) + SOLVE_BYTES)
    }

    /// The calls on a dense block.
    pub fn on_block(&self, order: usize) -> Result<BlockCalls> {
        let wider = Calls { bits: self.bits + SYR2K_BITS, ..*self };
        Ok(BlockCalls {
            gemm: self.gemm(order, order, order)?,
            syr2k: wider.gemm(order, order, order)? + Matrix::bytes_for(order, order, self.bits),
            syrk: self.syrk(order, order)?,
            trsm: self.trsm(order, order)?,
            cholesky: self.cholesky(order, RANGE_BITS)?,
            any_cholesky: self.cholesky(order, RANGE_BITS)?.max(self.any_cholesky(order)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::cholesky_with;

    /// Near the end of a kernel's precisions a factor takes the bits that remain, and has room for them.
    #[test]
    fn factors_near_the_end_of_a_forced_kernel_keep_their_plan() -> Result<()> {
        let (order, bits, options) = (40, 4900, CholeskyOptions::new().accuracy(Accuracy::Entrywise));
        // A tridiagonal matrix: the entries of its factor fall away from the diagonal, and no bits are enough for them.
        let a = Matrix::from_fn(order, order, bits, |row, col| {
            Float::with_val(bits, [1.0, 2f64.powi(-100)].get(row.abs_diff(col)).copied().unwrap_or(0.0))
        })?;
        for kernel in ["f64", "i8"] {
            let builder = Context::builder().threads(1).kernel(kernel);
            let ctx = builder.clone().build()?;
            let calls = Calls { ctx: &ctx, bits, gap: Gap(100) };
            let (any, even) = (calls.any_cholesky(order)?, calls.cholesky(order, 0)?);
            let under =
                |limit_bytes| cholesky_with(&builder.clone().memory_bytes(limit_bytes).build()?, &a, bits, &options);
            let report = under(any)?.report;
            assert!(report.range_bits > 100 && report.kernel != DIRECT, "{kernel}: {}", report.range_bits);
            assert!(
                even < any && matches!(under(even), Err(sunzi::Error::MemoryLimit { .. })),
                "{kernel}: {even}, {any}"
            );
        }
        Ok(())
    }
}
