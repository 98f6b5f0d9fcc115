//! What calls allocate, counted by the allocator or by the system: what their plan says, and never more than the limit.
//!
//! A program of its own, since the counters see all threads of the process: its tests run one at a time.

mod batches;
mod calls;
mod cluster;
mod devices;
mod disk;
mod factors;
#[cfg(target_os = "linux")]
mod files;
mod lu;
mod solves;
mod storage;

use std::sync::{Mutex, MutexGuard, PoisonError};
use sunzi::advanced::store::{CountingAllocator, allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::gallery::{Kind, Size, generate};
use sunzi::plans::{Plan, ProductPlanOptions, plan_gemm_with, plan_syrk_with};
use sunzi::{Accuracy, Context, Matrix, Result};

#[global_allocator]
static COUNTER: CountingAllocator = CountingAllocator;

/// Holds off all other tests while the returned guard lives.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing behind that the next one counts.
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes by which the memory in use rose above where it was, at its peak within `work`.
fn rise<R>(work: impl FnOnce() -> R) -> (u64, R) {
    let before = allocated_bytes();
    reset_peak_bytes();
    let result = work();
    (peak_bytes() - before, result)
}

/// A matrix of random entries.
fn matrix(rows: usize, cols: usize, precision_bits: u32, seed: u64) -> Matrix {
    generate(Kind::Random, Size { rows, cols, precision_bits }, seed).unwrap()
}

fn by_norms() -> ProductPlanOptions {
    ProductPlanOptions::new().accuracy(Accuracy::Norm)
}

/// What a product by norms takes: its bits do not depend on the entries.
fn plan_syrk(ctx: &Context, rows: usize, cols: usize, precision_bits: u32) -> Result<Plan> {
    plan_syrk_with(ctx, (rows, cols), precision_bits, &by_norms())
}

fn plan_gemm(ctx: &Context, rows: usize, cols: usize, contracted: usize, precision_bits: u32) -> Result<Plan> {
    plan_gemm_with(ctx, (rows, cols), contracted, precision_bits, &by_norms())
}
