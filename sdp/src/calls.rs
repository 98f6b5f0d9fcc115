//! The calls of the library that a run makes, and how long each takes by itself.
//!
//! [`time_calls`] runs some work of this thread with every call done again, warm and with nothing between, on the very
//! operands it had. The sum of these times is what the calls of an iteration take by themselves; the rest of an
//! iteration's time are the solver's own loops, and cache misses of the calls. Without it a call is only made. Does not
//! know: who calls, programs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;
use sunzi::blas::GemvOptions;
use sunzi::eigenvalue::EigenvalueInterval;
use sunzi::report::{CholeskyReport, SolveReport, VectorReport};
use sunzi::rug::Float;
use sunzi::sparse::SparseView;
use sunzi::{
    Cholesky, CholeskyOptions, Context, GemmOptions, Matrix, MatrixView, Outcome, Result, Symmetric, SymmetricMatrix,
    Syr2kOptions, SyrkOptions, TrsmOptions,
};

/// The properties of a call that determine its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Call {
    /// Name of the verb of the library.
    pub verb: &'static str,
    /// Rows and columns of the result, and the number of terms of its sums; for sparse matrices the number of entries.
    pub shape: (usize, usize, usize),
    /// Precision of the result.
    pub bits: u32,
}

/// The number of times that a call was made, and the seconds of all of them when they are timed separately.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CallTime {
    /// Calls.
    pub count: u64,
    /// Their total seconds: for each call the shortest of several measured times.
    pub seconds: f64,
}

/// Calls with their times, in the order of verbs and shapes.
pub type CallTimes = BTreeMap<Call, CallTime>;

/// The number of repetitions of a call.
const TIMES: usize = 3;

thread_local! {
    /// The times that this thread records, where it does.
    static RECORD: RefCell<Option<CallTimes>> = const { RefCell::new(None) };
}

/// The result of `work`, and the calls that it made on this thread; these are all calls if its context has one thread.
/// Results have the same bits; the run takes several times as long. The progress of a call is reported once for each
/// repetition. The memory of a repeated call exceeds its plan by one result.
pub fn time_calls<R>(work: impl FnOnce() -> R) -> (R, CallTimes) {
    let mut outer = Outer(RECORD.replace(Some(CallTimes::new())));
    let result = work();
    let own = RECORD.take().unwrap_or_default();
    if let Some(outer) = &mut outer.0 {
        own.iter().for_each(|(call, time)| outer.entry(*call).or_default().add(*time));
    }
    (result, own)
}

/// The record of a call of [`time_calls`] around this one, which goes on after it, also where that panics.
struct Outer(Option<CallTimes>);

impl Drop for Outer {
    fn drop(&mut self) {
        RECORD.set(self.0.take());
    }
}

impl CallTime {
    fn add(&mut self, other: CallTime) {
        *self = CallTime { count: self.count + other.count, seconds: self.seconds + other.seconds };
    }
}

/// Makes a call of the library: once, or again where calls are timed.
pub(crate) fn call<R>(call: Call, mut make: impl FnMut() -> Result<R>) -> Result<R> {
    let made = make()?;
    if RECORD.with_borrow(Option::is_none) {
        return Ok(made);
    }
    let mut least = f64::INFINITY;
    for _ in 0..TIMES {
        let start = Instant::now();
        drop(make()?);
        least = least.min(start.elapsed().as_secs_f64());
    }
    RECORD.with_borrow_mut(|record| {
        let time = record.get_or_insert_default().entry(call).or_default();
        time.add(CallTime { count: 1, seconds: least });
    });
    Ok(made)
}

/// [`sunzi::gemm_with`].
///
/// # Errors
/// The errors of [`sunzi::gemm_with`].
pub(crate) fn gemm_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    bits: u32,
    options: &GemmOptions<'_>,
) -> Result<Outcome> {
    let (a, b) = (a.into(), b.into());
    call(Call { verb: "gemm", shape: (a.rows(), b.cols(), a.cols()), bits }, || {
        sunzi::gemm_with(ctx, a, b, bits, options)
    })
}

/// [`sunzi::syrk_with`].
pub(crate) fn syrk_with<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    bits: u32,
    options: &SyrkOptions<'_>,
) -> Result<Outcome<SymmetricMatrix>> {
    let p = p.into();
    call(Call { verb: "syrk", shape: (p.cols(), p.cols(), p.rows()), bits }, || sunzi::syrk_with(ctx, p, bits, options))
}

/// [`sunzi::syr2k_with`].
pub(crate) fn syr2k_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    bits: u32,
    options: &Syr2kOptions<'_>,
) -> Result<Outcome<SymmetricMatrix>> {
    let (a, b) = (a.into(), b.into());
    call(Call { verb: "syr2k", shape: (a.cols(), a.cols(), a.rows()), bits }, || {
        sunzi::syr2k_with(ctx, a, b, bits, options)
    })
}

/// [`sunzi::trsm_with`].
pub(crate) fn trsm_with<'a, 'b>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<Outcome<Matrix, SolveReport>> {
    let (t, b) = (t.into(), b.into());
    call(Call { verb: "trsm", shape: (b.rows(), b.cols(), t.rows()), bits }, || {
        sunzi::trsm_with(ctx, t, b, bits, options)
    })
}

/// [`sunzi::cholesky_with`].
pub(crate) fn cholesky_with<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    bits: u32,
    options: &CholeskyOptions,
) -> Result<Outcome<Cholesky, CholeskyReport>> {
    let a = a.into();
    call(Call { verb: "cholesky", shape: (a.order(), a.order(), a.order()), bits }, || {
        sunzi::cholesky_with(ctx, a, bits, options)
    })
}

/// [`sunzi::blas::gemv_with`].
pub(crate) fn gemv_with<'a, 'x>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    x: impl Into<MatrixView<'x>>,
    bits: u32,
    options: &GemvOptions<'_>,
) -> Result<Outcome<Matrix, VectorReport>> {
    let (a, x) = (a.into(), x.into());
    call(Call { verb: "gemv", shape: (a.rows(), a.cols(), 1), bits }, || {
        sunzi::blas::gemv_with(ctx, a, x, bits, options)
    })
}

/// [`sunzi::sparse::spmm`].
pub(crate) fn spmm<'a, 'b>(
    ctx: &Context,
    a: impl Into<SparseView<'a>>,
    b: impl Into<MatrixView<'b>>,
    bits: u32,
) -> Result<Matrix> {
    let (a, b) = (a.into(), b.into());
    call(Call { verb: "spmm", shape: (a.rows(), b.cols(), a.entries()), bits }, || sunzi::sparse::spmm(ctx, a, b, bits))
}

/// [`sunzi::sparse::sddmm`].
pub(crate) fn sddmm<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    positions: &[(usize, usize)],
    bits: u32,
) -> Result<Matrix> {
    let (a, b) = (a.into(), b.into());
    call(Call { verb: "sddmm", shape: (positions.len(), 1, a.cols()), bits }, || {
        sunzi::sparse::sddmm(ctx, a, b, positions, bits)
    })
}

/// [`sunzi::blas::dot`].
pub(crate) fn dot(ctx: &Context, x: MatrixView<'_>, y: MatrixView<'_>, bits: u32) -> Result<Float> {
    call(Call { verb: "dot", shape: (1, 1, x.rows()), bits }, || sunzi::blas::dot(ctx, x, y, bits))
}

/// [`sunzi::blas::axpy`].
pub(crate) fn axpy(ctx: &Context, alpha: &Float, x: MatrixView<'_>, y: MatrixView<'_>, bits: u32) -> Result<Matrix> {
    call(Call { verb: "axpy", shape: (x.rows(), 1, 2), bits }, || sunzi::blas::axpy(ctx, alpha, x, y, bits))
}

/// [`sunzi::blas::trsv`].
pub(crate) fn trsv(ctx: &Context, t: &Matrix, b: &Matrix, bits: u32) -> Result<Matrix> {
    call(Call { verb: "trsv", shape: (b.rows(), 1, b.rows()), bits }, || sunzi::blas::trsv(ctx, t, b, bits))
}

/// [`sunzi::eigenvalue::extreme_eigenvalue`].
pub(crate) fn extreme_eigenvalue(ctx: &Context, a: Symmetric<'_>, bits: u32) -> Result<EigenvalueInterval> {
    call(Call { verb: "extreme_eigenvalue", shape: (a.order(), a.order(), 1), bits }, || {
        sunzi::eigenvalue::extreme_eigenvalue(ctx, a, bits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::Error;

    #[test]
    fn calls_are_counted_where_they_are_asked_for() {
        let mut made = 0;
        let mut one = |bits| {
            call(Call { verb: "dot", shape: (1, 1, 7), bits }, || {
                made += 1;
                if bits == 0 { Err(Error::Cancelled) } else { Ok(made) }
            })
        };
        assert_eq!(one(64).unwrap(), 1);
        let (last, times) = time_calls(|| {
            one(64)?;
            one(64)?;
            one(128)
        });
        assert_eq!(last.unwrap(), 1 + 2 * (1 + TIMES) + 1);
        assert_eq!(times.iter().map(|(call, time)| (call.bits, time.count)).collect::<Vec<_>>(), [(64, 2), (128, 1)]);
        assert!(times.values().all(|time| time.seconds.is_finite() && time.seconds >= 0.0));
        assert!(time_calls(|| one(0)).0.is_err());
        one(64).unwrap();
        assert_eq!(made, 1 + 3 * (1 + TIMES) + 1 + 1);
    }

    fn counts(times: &CallTimes) -> Vec<(u32, u64)> {
        times.iter().map(|(call, time)| (call.bits, time.count)).collect()
    }

    #[test]
    fn an_inner_record_counts_in_the_outer_one() {
        let one = |bits| call(Call { verb: "dot", shape: (1, 1, 7), bits }, || Ok(())).unwrap();
        let (inner, outer) = time_calls(|| {
            one(64);
            let ((), inner) = time_calls(|| [64, 128].into_iter().for_each(one));
            one(256);
            inner
        });
        assert_eq!(counts(&inner), [(64, 1), (128, 1)]);
        assert_eq!(counts(&outer), [(64, 2), (128, 1), (256, 1)]);
        assert!(RECORD.with_borrow(Option::is_none));
    }

    #[test]
    fn an_outer_record_goes_on_after_a_panic() {
        let one = |bits| call(Call { verb: "dot", shape: (1, 1, 7), bits }, || Ok(())).unwrap();
        let (failed, outer) = time_calls(|| {
            one(64);
            let failed = std::panic::catch_unwind(|| {
                time_calls(|| {
                    one(128);
                    std::panic::resume_unwind(Box::new("ended"));
                })
            });
            one(256);
            failed
        });
        assert!(failed.is_err());
        // The times of the inner record are lost with it.
        assert_eq!(counts(&outer), [(64, 1), (256, 1)]);
        let failed = std::panic::catch_unwind(|| time_calls(|| std::panic::resume_unwind(Box::new("ended"))));
        assert!(failed.is_err() && RECORD.with_borrow(Option::is_none));
    }
}
