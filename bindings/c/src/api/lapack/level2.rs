//! Twins of the level 2 BLAS: sums entry by entry, on limbs.

use crate::api::lapack::{Entries, Place, diag_of, info, op_of, sizes, step_of, twins, uplo_of};
use crate::api::triangle;
use crate::api::triangular::part_read;
use crate::array::{Operand, Part};
use crate::call::{Call, Input};
use crate::failure::Outcome;
use rug::Float;
use std::ffi::{c_char, c_void};
use sunzi::blas::{GemvOptions, GerOptions, SymvOptions, TriangleVectorOptions};
use sunzi::blas::{gemv_into, ger_into, symv_into, trmv_into, trsv_into};
use sunzi::report::VectorReport;
use sunzi::{Context, Matrix, MatrixView, Op, Symmetric};

twins! {
/// The arguments of `Rgemv`.
struct Rgemv {
    trans: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    x: *const c_void,
    incx: i64,
    beta: *const c_void,
    y: *mut c_void,
    incy: i64,
}

/// Computes `y := alpha op(A) x + beta y`, with the arguments of `Rgemv`. A is m x n; `incx` and `incy` must not be 0.
/// The call does nothing if m or n is 0.
///
/// Accuracy: `|computed - exact|_i <= 2^(1 - p) (|alpha| (|op(A)| |x|)_i + |beta| |y_i|)`. Then each entry is rounded
/// to its own precision.
///
/// Cost: one product of two numbers for each entry of A.
fn sunzi_rgemv, sunzi_rgemv_mpf => info(Rgemv::run);
}

impl Rgemv {
    /// `y := alpha op(a) x + beta y`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let op = op_of("trans", self.trans)?;
            let [m, n] = sizes(["m", "n"], [self.m, self.n])?;
            let alpha = entries.scalar(call, "alpha", self.alpha)?;
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), m, n)?;
            let (of_y, of_x) = if op == Op::NoTranspose { (m, n) } else { (n, m) };
            let x = entries.outer_vector(&Place::new("x", self.x, "incx", self.incx), of_x)?;
            let beta = entries.scalar(call, "beta", self.beta)?;
            let y = entries.outer_vector(&Place::new("y", self.y, "incy", self.incy), of_y)?;
            let update = Update { alpha, beta, y };
            if m == 0 || n == 0 || update.is_nothing() {
                return Ok(());
            }
            if update.alpha.is_zero() {
                return update.scale(call);
            }
            let (a, x) = (call.read(&a, Part::All)?, call.read(&x, Part::All)?);
            update.run(call, |ctx, added, bits, result| {
                let options = GemvOptions::new().op(op).alpha(&update.alpha).beta(&update.beta);
                let options = options.accumulate(added.map(Matrix::view));
                gemv_into(ctx, a.view(), x.view(), bits, &options, result)
            })?;
            keep(call, [a, x]);
            Ok(())
        }
    }
}

twins! {
/// The arguments of `Rsymv`.
struct Rsymv {
    uplo: *const c_char,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    x: *const c_void,
    incx: i64,
    beta: *const c_void,
    y: *mut c_void,
    incy: i64,
}

/// Computes `y := alpha A x + beta y` for a symmetric A, with the arguments of `Rsymv`. A is n x n, and its triangle
/// `uplo` is read; `incx` and `incy` must not be 0. Accuracy as `sunzi_rgemv`.
fn sunzi_rsymv, sunzi_rsymv_mpf => info(Rsymv::run);
}

impl Rsymv {
    /// `y := alpha a x + beta y`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let uplo = uplo_of(self.uplo)?;
            let [n] = sizes(["n"], [self.n])?;
            let alpha = entries.scalar(call, "alpha", self.alpha)?;
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), n, n)?;
            let x = entries.outer_vector(&Place::new("x", self.x, "incx", self.incx), n)?;
            let beta = entries.scalar(call, "beta", self.beta)?;
            let y = entries.outer_vector(&Place::new("y", self.y, "incy", self.incy), n)?;
            let update = Update { alpha, beta, y };
            if n == 0 || update.is_nothing() {
                return Ok(());
            }
            if update.alpha.is_zero() {
                return update.scale(call);
            }
            let (a, x) = (call.read(&a, triangle(uplo))?, call.read(&x, Part::All)?);
            update.run(call, |ctx, added, bits, result| {
                let options = SymvOptions::new().alpha(&update.alpha).beta(&update.beta);
                let options = options.accumulate(added.map(Matrix::view));
                symv_into(ctx, Symmetric::triangle(a.view(), uplo), x.view(), bits, &options, result)
            })?;
            keep(call, [a, x]);
            Ok(())
        }
    }
}

twins! {
/// The arguments of `Rger`.
struct Rger {
    m: i64,
    n: i64,
    alpha: *const c_void,
    x: *const c_void,
    incx: i64,
    y: *const c_void,
    incy: i64,
    a: *mut c_void,
    lda: i64,
}

/// Computes `A := alpha x y^T + A`, with the arguments of `Rger`. A is m x n, `x` has m entries, and `y` has n entries;
/// `incx` and `incy` must not be 0. The call does nothing if m, n or `alpha` is 0.
///
/// Accuracy: each entry is the exact number, rounded once to p bits and then to its own precision.
fn sunzi_rger, sunzi_rger_mpf => info(Rger::run);
}

impl Rger {
    /// `a := alpha x y^T + a`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let [m, n] = sizes(["m", "n"], [self.m, self.n])?;
            let alpha = entries.scalar(call, "alpha", self.alpha)?;
            let x = entries.outer_vector(&Place::new("x", self.x, "incx", self.incx), m)?;
            let y = entries.outer_vector(&Place::new("y", self.y, "incy", self.incy), n)?;
            let target = entries.matrix(&Place::new("a", self.a, "lda", self.lda), m, n)?;
            if m == 0 || n == 0 || alpha.is_zero() {
                return Ok(());
            }
            let bits = call.result_bits(&target, Part::All)?;
            let (x, y, a) = (call.read(&x, Part::All)?, call.read(&y, Part::All)?, call.read_copy(&target, Part::All)?);
            let options = GerOptions::new().alpha(&alpha).accumulate(a.view());
            let mut result = call.result(target.rows(), target.cols(), bits)?;
            let done = ger_into(&call.context(), x.view(), y.view(), bits, &options, &mut result);
            call.note_plan(call.done(done)?.planned_bytes);
            keep(call, [x, y]);
            call.keep(a);
            call.write(&target, Part::All, result)
        }
    }
}

twins! {
/// The arguments of `Rtrmv` and of `Rtrsv`.
struct TriangleAndVector {
    uplo: *const c_char,
    trans: *const c_char,
    diag: *const c_char,
    n: i64,
    a: *const c_void,
    lda: i64,
    x: *mut c_void,
    incx: i64,
}

/// Computes `x := op(T) x` for a triangular T, with the arguments of `Rtrmv`. `a` holds the n x n matrix T, whose
/// triangle `uplo` is read (without its diagonal for `diag` "U"); `incx` must not be 0. Accuracy as `sunzi_rgemv`.
fn sunzi_rtrmv, sunzi_rtrmv_mpf => info(TriangleAndVector::multiply);

/// Computes `x := op(T)^-1 x` for a triangular T by substitution, with the arguments of `Rtrsv`. T and `incx` as in
/// `sunzi_rtrmv`.
///
/// Accuracy: `|b - op(T) x|_i <= 2^(1 - p) (|op(T)| |x|)_i` for each row, where b is the value of `x` before the call.
/// Then each entry is rounded to its own precision.
///
/// Returns info: `i > 0` if entry (i, i) of T, counted from 1, is 0.
fn sunzi_rtrsv, sunzi_rtrsv_mpf => info(TriangleAndVector::solve);
}

/// The function of the library that computes a new vector from a triangle and a vector.
type ByTriangle = fn(
    &Context,
    MatrixView<'_>,
    MatrixView<'_>,
    u32,
    &TriangleVectorOptions,
    &mut Matrix,
) -> sunzi::Result<VectorReport>;

impl TriangleAndVector {
    /// `x := op(t) x`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn multiply(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract.
        unsafe {
            self.replace(call, entries, |ctx, t, x, bits, options, made| trmv_into(ctx, t, x, bits, options, made))
        }
    }

    /// `x := op(t)^-1 x`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn solve(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract.
        unsafe {
            self.replace(call, entries, |ctx, t, x, bits, options, made| trsv_into(ctx, t, x, bits, options, made))
        }
    }

    /// Stores the result of `work` in x.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn replace(&self, call: &Call<'_>, entries: Entries, work: ByTriangle) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (uplo, op, diag) = (uplo_of(self.uplo)?, op_of("trans", self.trans)?, diag_of(self.diag)?);
            let [n] = sizes(["n"], [self.n])?;
            let t = entries.matrix(&Place::new("a", self.a, "lda", self.lda), n, n)?;
            let target = entries.outer_vector(&Place::new("x", self.x, "incx", self.incx), n)?;
            let bits = call.result_bits(&target, Part::All)?;
            let (t, x) = (call.read(&t, part_read(uplo, diag))?, call.read(&target, Part::All)?);
            let options = TriangleVectorOptions::new().uplo(uplo).op(op).diag(diag);
            let mut result = call.result(target.rows(), 1, bits)?;
            let done = work(&call.context(), t.view(), x.view(), bits, &options, &mut result);
            call.note_plan(call.done(done)?.planned_bytes);
            keep(call, [t, x]);
            call.write(&target, Part::All, result)
        }
    }
}

/// The combination of the product with y in GEMV and SYMV.
struct Update {
    alpha: Float,
    beta: Float,
    y: Operand,
}

impl Update {
    /// Whether y stays as it is.
    fn is_nothing(&self) -> bool {
        self.alpha.is_zero() && self.beta == 1
    }

    /// `y := beta y`: the product does not count, and its operands are not looked at.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn scale(&self, call: &Call<'_>) -> Outcome<()> {
        let nothing = Matrix::zeros(self.y.rows(), 0, 2)?;
        let none = Matrix::zeros(0, 1, 2)?;
        // SAFETY: by contract.
        unsafe {
            self.run(call, |ctx, added, bits, result| {
                let options = GemvOptions::new().beta(&self.beta).accumulate(added.map(Matrix::view));
                gemv_into(ctx, &nothing, &none, bits, &options, result)
            })
        }
    }

    /// Runs `product` with the vector that is added to it, and stores its result in y.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(
        &self,
        call: &Call<'_>,
        product: impl FnOnce(&Context, Option<&Matrix>, u32, &mut Matrix) -> sunzi::Result<VectorReport>,
    ) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let bits = call.result_bits(&self.y, Part::All)?;
            let added = if self.beta.is_zero() { None } else { Some(call.read_copy(&self.y, Part::All)?) };
            let mut result = call.result(self.y.rows(), 1, bits)?;
            let done = product(&call.context(), added.as_ref(), bits, &mut result);
            call.note_plan(call.done(done)?.planned_bytes);
            added.into_iter().for_each(|matrix| call.keep(matrix));
            call.write(&self.y, Part::All, result)
        }
    }
}

impl Entries {
    /// A vector of level 2, whose entries must lie apart.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn outer_vector(self, place: &Place, count: i64) -> Outcome<Operand> {
        step_of(place.ld_name, place.ld)?;
        // SAFETY: by contract.
        unsafe { self.vector(place, count) }
    }
}

/// Keeps the copies of operands for the next call.
fn keep(call: &Call<'_>, inputs: [Input<'_>; 2]) {
    inputs.into_iter().for_each(|input| call.keep_input(input));
}
