//! The other ways to do our operations on big floats, for comparison with ours.
//!
//! A [`Baseline`] takes its input in the number type native to it, prepared outside the clock, and
//! turns it into a result in that same type: all that a user of the baseline would wait for. Products
//! have three: `sdpb` (one BLAS product per prime, as SDPB does it), `flint` (`fmpz_mat_mul`) and
//! `mpfr` (a blocked triple loop). Operations with a triangular factor have `flint` (`arb_mat`),
//! `mpfr` (blocked loops again), and for the factorisation `nfloat` (FLINT's LU of packed floats).
//! Separate from the trait is `scalapack` (cargo feature of that name): doubles on ranks under MPI.
//! Nothing in the library depends on this module; its only promises are that results are right to
//! the bound that [`Operation`] states and that the baselines are as fast as their own methods allow.
//!
//! The thread counts of FLINT and of OpenBLAS are properties of the process. Each run sets them
//! under a lock, so runs of the baselines that use them never overlap.

#[cfg(all(feature = "blas", feature = "flint"))]
mod comb;
#[cfg(feature = "flint")]
mod factor_flint;
mod factor_mpfr;
#[cfg(test)]
mod factor_tests;
#[cfg(feature = "flint")]
mod flint;
mod mpfr;
#[cfg(feature = "flint")]
mod native;
#[cfg(feature = "flint")]
mod nfloat;
pub mod openblas;
mod problem;
#[cfg(feature = "scalapack")]
pub mod scalapack;
#[cfg(all(feature = "blas", feature = "flint"))]
mod sdpb;
#[allow(dead_code)]
mod sys;
#[cfg(test)]
mod tests;

pub use problem::{Operation, Problem};

#[cfg(feature = "flint")]
use std::ffi::CStr;

use rayon::prelude::*;
use rug::Float;

/// One other implementation, bound to one problem.
pub trait Baseline {
    /// Its name for [`by_name`].
    fn name(&self) -> &'static str;

    /// Which form runs, with the versions of the libraries behind it, for reports.
    fn form(&self) -> String;

    /// Does the whole operation once, from native input to native output: the part to time.
    fn run(&mut self);

    /// Entry (i, j) of the last run's result, as [`Operation`] describes it; no number after a run that failed, and
    /// arbitrary before the first.
    ///
    /// # Panics
    /// When an index lies outside the result.
    fn entry(&self, i: usize, j: usize) -> Float;

    /// The phases of the last run in order, each with its wall time in seconds; empty where the
    /// baseline has no phases worth telling apart.
    fn phases(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// The names that [`by_name`] accepts for an operation, in the order in which reports list them.
pub fn names(operation: Operation) -> &'static [&'static str] {
    match operation {
        Operation::Syrk | Operation::Gemm => &["sdpb", "flint", "mpfr"],
        Operation::Cholesky => &["flint", "nfloat", "mpfr"],
        Operation::Trsm | Operation::Solve => &["flint", "mpfr"],
    }
}

/// Refuses a baseline that [`by_name`] could not make for any problem of that operation and precision.
///
/// # Errors
/// When the operation has no baseline of that name, the feature it needs was not built, or the
/// precision is not one that the baseline has; the text is one line for the user.
pub fn admit(name: &str, operation: Operation, precision_bits: u32) -> Result<(), String> {
    let known = names(operation);
    if !known.contains(&name) {
        return Err(format!("unknown baseline '{name}' of {}: choose from {}", operation.name(), known.join(", ")));
    }
    match name {
        "sdpb" if !cfg!(all(feature = "blas", feature = "flint")) => {
            Err("baseline sdpb needs the features `blas` and `flint`".into())
        }
        "flint" | "nfloat" if !cfg!(feature = "flint") => Err(format!("baseline {name} needs the feature `flint`")),
        #[cfg(feature = "flint")]
        "nfloat" => nfloat::check_precision(precision_bits),
        _ => {
            let _ = precision_bits;
            Ok(())
        }
    }
}

/// Refuses a baseline that no measurement should name: as [`admit`], or where OpenBLAS, which it calls, uses
/// instructions that `SUNZI_CPU` hides.
///
/// # Errors
/// The message is one line for the user.
pub fn check_for_timing(name: &str, operation: Operation, precision_bits: u32) -> Result<(), String> {
    admit(name, operation, precision_bits)?;
    if name == "sdpb" || cfg!(flint_blas) && ["flint", "nfloat"].contains(&name) {
        openblas::check_core()?;
    }
    Ok(())
}

/// Prepares the baseline of that name for a problem; the native copy of the input is made here.
///
/// # Errors
/// The errors of [`admit`], or when the problem is not one that the baselines take; the text is one line for the user.
pub fn by_name(name: &str, problem: Problem) -> Result<Box<dyn Baseline>, String> {
    admit(name, problem.operation, problem.precision_bits)?;
    problem.check()?;
    let is_product = matches!(problem.operation, Operation::Syrk | Operation::Gemm);
    match name {
        #[cfg(all(feature = "blas", feature = "flint"))]
        "sdpb" => Ok(Box::new(sdpb::Sdpb::new(problem)?)),
        #[cfg(feature = "flint")]
        "flint" if is_product => Ok(Box::new(flint::Flint::new(problem)?)),
        #[cfg(feature = "flint")]
        "flint" => Ok(Box::new(factor_flint::FactorFlint::new(problem))),
        #[cfg(feature = "flint")]
        "nfloat" => Ok(Box::new(nfloat::Nfloat::new(problem)?)),
        _ if is_product => Ok(Box::new(mpfr::Mpfr::new(problem)?)),
        _ => Ok(Box::new(factor_mpfr::FactorMpfr::new(problem)?)),
    }
}

/// The version of the FLINT linked, such as `3.6.0`.
#[cfg(feature = "flint")]
fn flint_version() -> String {
    // SAFETY: `flint_version` is a constant string that ends in a zero.
    unsafe { CStr::from_ptr(&raw const sys::flint_version) }.to_string_lossy().into_owned()
}

/// Holds off other runs that would change the thread counts of FLINT or OpenBLAS.
#[cfg(feature = "flint")]
fn process_settings() -> std::sync::MutexGuard<'static, ()> {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The threads of one baseline: its own pool, or none at all for a single thread.
struct Workers {
    pool: Option<rayon::ThreadPool>,
}

impl Workers {
    /// A pool of `threads` threads; with one thread all work stays on the calling thread.
    fn new(threads: usize) -> Result<Self, String> {
        if threads <= 1 {
            return Ok(Self { pool: None });
        }
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        #[cfg(feature = "flint")]
        let builder = builder.exit_handler(|_| {
            // SAFETY: FLINT frees the caches of this thread, which runs no FLINT function after this.
            unsafe { sys::flint_cleanup() }
        });
        let pool = builder.build().map_err(|error| format!("cannot start {threads} threads: {error}"))?;
        Ok(Self { pool: Some(pool) })
    }

    /// Calls `body` once per item, in any order, each thread with a state of its own from `init`.
    fn for_each<T: Send, S>(
        &self,
        items: impl Iterator<Item = T>,
        init: impl Fn() -> S + Send + Sync,
        body: impl Fn(&mut S, T) + Send + Sync,
    ) {
        match &self.pool {
            None => {
                let mut state = init();
                items.for_each(|item| body(&mut state, item));
            }
            Some(pool) => {
                let items: Vec<T> = items.collect();
                pool.install(|| items.into_par_iter().with_max_len(1).for_each_init(&init, &body));
            }
        }
    }
}
