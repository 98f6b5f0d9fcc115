//! Twins of the level 1 BLAS.

use crate::api::cholesky::write_number;
use crate::api::lapack::{Entries, Place, info, step_of, twins};
use crate::array::Part;
use crate::call::Call;
use crate::failure::Outcome;
use std::ffi::c_void;
use sunzi::blas::{axpy_into, dot, nrm2};

twins! {
/// The arguments of `Rdot`.
struct Rdot {
    n: i64,
    x: *const c_void,
    incx: i64,
    y: *const c_void,
    incy: i64,
    result: *mut c_void,
}

/// Computes `*result := x^T y`, with the arguments of `Rdot`. `x` and `y` have n entries at the distances `incx` and
/// `incy`; `result` points to one `mpfr_t`. For n <= 0 the result is 0.
///
/// Accuracy: `|computed - exact| <= 2^(1 - p) |x|^T |y|` with p the precision of `result`; the result is rounded once.
///
/// Cost: one product of two numbers for each entry.
fn sunzi_rdot, sunzi_rdot_mpf => info(Rdot::run);
}

impl Rdot {
    /// `result := x^T y`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let n = self.n.max(0);
            let x = entries.vector(&Place::new("x", self.x, "incx", self.incx), n)?;
            let y = entries.vector(&Place::new("y", self.y, "incy", self.incy), n)?;
            let result = entries.number("result", self.result)?;
            let bits = call.result_bits(&result, Part::All)?;
            let (x, y) = (call.read(&x, Part::All)?, call.read(&y, Part::All)?);
            let sum = call.done(dot(&call.context(), x.view(), y.view(), bits))?;
            [x, y].into_iter().for_each(|input| call.keep_input(input));
            write_number(call, &result, &sum, bits)
        }
    }
}

twins! {
/// The arguments of `Rnrm2`.
struct Rnrm2 {
    n: i64,
    x: *const c_void,
    incx: i64,
    result: *mut c_void,
}

/// Computes `*result := sqrt(x^T x)`, with the arguments of `Rnrm2`. `x` has n entries at the distance `incx`; `result`
/// points to one `mpfr_t`. For n <= 0 the result is 0.
///
/// Accuracy: `|computed - exact| <= 2^(1 - p) exact` with p the precision of `result`. No square overflows.
fn sunzi_rnrm2, sunzi_rnrm2_mpf => info(Rnrm2::run);
}

impl Rnrm2 {
    /// `result := sqrt(x^T x)`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let x = entries.vector(&Place::new("x", self.x, "incx", self.incx), self.n.max(0))?;
            let result = entries.number("result", self.result)?;
            let bits = call.result_bits(&result, Part::All)?;
            let x = call.read(&x, Part::All)?;
            let norm = call.done(nrm2(&call.context(), x.view(), bits))?;
            call.keep_input(x);
            write_number(call, &result, &norm, bits)
        }
    }
}

twins! {
/// The arguments of `Raxpy`.
struct Raxpy {
    n: i64,
    alpha: *const c_void,
    x: *const c_void,
    incx: i64,
    y: *mut c_void,
    incy: i64,
}

/// Computes `y := alpha x + y`, with the arguments of `Raxpy`. `x` and `y` have n entries at the distances `incx` and
/// `incy`; `incy` must not be 0. The call does nothing for n <= 0 or `alpha = 0`.
///
/// Accuracy: each entry is the exact number, rounded once to p bits and then to its own precision.
fn sunzi_raxpy, sunzi_raxpy_mpf => info(Raxpy::run);
}

impl Raxpy {
    /// `y := alpha x + y`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let n = self.n.max(0);
            let alpha = entries.scalar(call, "alpha", self.alpha)?;
            let x = entries.vector(&Place::new("x", self.x, "incx", self.incx), n)?;
            step_of("incy", self.incy)?;
            let target = entries.vector(&Place::new("y", self.y, "incy", self.incy), n)?;
            if alpha.is_zero() || n == 0 {
                return Ok(());
            }
            let bits = call.result_bits(&target, Part::All)?;
            let (x, y) = (call.read(&x, Part::All)?, call.read(&target, Part::All)?);
            let mut result = call.result(target.rows(), 1, bits)?;
            let done = axpy_into(&call.context(), &alpha, x.view(), y.view(), bits, &mut result);
            call.note_plan(call.done(done)?.planned_bytes);
            [x, y].into_iter().for_each(|input| call.keep_input(input));
            call.write(&target, Part::All, result)
        }
    }
}
