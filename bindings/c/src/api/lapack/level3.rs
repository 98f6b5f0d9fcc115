//! Twins of the level 3 BLAS: products and triangular solves.

use crate::api::lapack::{Arguments, Entries, Place, info, op_of, sides_of, sizes, terms, uplo_of};
use crate::api::{number, products, triangular};
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::{SUNZI_MPF, SUNZI_MPFR};
use std::ffi::{c_char, c_void};
use sunzi::{Op, Side};

/// The arguments of `Rsyrk`.
struct Syrk {
    uplo: *const c_char,
    trans: *const c_char,
    n: i64,
    k: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    beta: *const c_void,
    c: *mut c_void,
    ldc: i64,
}

impl Arguments for Syrk {
    const NAMES: &'static [&'static str] = &["uplo", "trans", "n", "k", "alpha", "a", "lda", "beta", "c", "ldc"];

    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (uplo, op) = (uplo_of(self.uplo)?, op_of("trans", self.trans)?);
            let [n, k] = sizes([("n", self.n), ("k", self.k)])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let (rows, cols) = if op == Op::NoTranspose { (n, k) } else { (k, n) };
            let a = entries.matrix(&Place::new("a", self.a, ("lda", self.lda)), rows, cols)?;
            let beta = entries.number("beta", self.beta)?;
            let c = entries.matrix(&Place::new("c", self.c, ("ldc", self.ldc)), n, n)?;
            match terms(call, (&alpha, &beta), (&c, k))? {
                Some(terms) => products::syrk(call, (Some(uplo), op), &a, &terms, &c),
                None => Ok(()),
            }
        }
    }
}

/// `sunzi_syrk` with the arguments of `Rsyrk`: `uplo` "U" or "L", `trans` "N" or "T"; `alpha`, `beta` point to an
/// `mpfr_t`, `a` and `c` to the first of an array, column-major.
///
/// Returns info: 0, or `-i` where argument i is wrong, counted from 1 after `ctx` as LAPACK does, or `-1000 - status`
/// for all other failures; `sunzi_last_error` has the message.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rsyrk(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    trans: *const c_char,
    n: i64,
    k: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    beta: *const c_void,
    c: *mut c_void,
    ldc: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Syrk { uplo, trans, n, k, alpha, a, lda, beta, c, ldc }) }
}

/// `sunzi_rsyrk` on `mpf_t`: scalars and arrays.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rsyrk_mpf(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    trans: *const c_char,
    n: i64,
    k: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    beta: *const c_void,
    c: *mut c_void,
    ldc: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Syrk { uplo, trans, n, k, alpha, a, lda, beta, c, ldc }) }
}

/// The arguments of `Rgemm`.
struct Gemm {
    transa: *const c_char,
    transb: *const c_char,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *const c_void,
    ldb: i64,
    beta: *const c_void,
    c: *mut c_void,
    ldc: i64,
}

impl Arguments for Gemm {
    const NAMES: &'static [&'static str] =
        &["transa", "transb", "m", "n", "k", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc"];

    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (op_a, op_b) = (op_of("transa", self.transa)?, op_of("transb", self.transb)?);
            let [m, n, k] = sizes([("m", self.m), ("n", self.n), ("k", self.k)])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let (rows, cols) = if op_a == Op::NoTranspose { (m, k) } else { (k, m) };
            let a = entries.matrix(&Place::new("a", self.a, ("lda", self.lda)), rows, cols)?;
            let (rows, cols) = if op_b == Op::NoTranspose { (k, n) } else { (n, k) };
            let b = entries.matrix(&Place::new("b", self.b, ("ldb", self.ldb)), rows, cols)?;
            let beta = entries.number("beta", self.beta)?;
            let c = entries.matrix(&Place::new("c", self.c, ("ldc", self.ldc)), m, n)?;
            match terms(call, (&alpha, &beta), (&c, k))? {
                Some(terms) => products::gemm(call, (&a, op_a), (&b, op_b), &terms, &c),
                None => Ok(()),
            }
        }
    }
}

/// `sunzi_gemm` with the arguments of `Rgemm`, entry by entry; returns info as `sunzi_rsyrk` does.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rgemm(
    ctx: *const sunzi_context,
    transa: *const c_char,
    transb: *const c_char,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *const c_void,
    ldb: i64,
    beta: *const c_void,
    c: *mut c_void,
    ldc: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Gemm { transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc }) }
}

/// `sunzi_rgemm` on `mpf_t`: scalars and arrays.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rgemm_mpf(
    ctx: *const sunzi_context,
    transa: *const c_char,
    transb: *const c_char,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *const c_void,
    ldb: i64,
    beta: *const c_void,
    c: *mut c_void,
    ldc: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Gemm { transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc }) }
}

/// The arguments of `Rtrsm`.
struct Trsm {
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
}

impl Arguments for Trsm {
    const NAMES: &'static [&'static str] =
        &["side", "uplo", "transa", "diag", "m", "n", "alpha", "a", "lda", "b", "ldb"];

    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let kind = sides_of(self.side, self.uplo, self.transa, self.diag)?;
            let [m, n] = sizes([("m", self.m), ("n", self.n)])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let order = if kind.side == Side::Left { m } else { n };
            let a = entries.matrix(&Place::new("a", self.a, ("lda", self.lda)), order, order)?;
            let b = entries.matrix(&Place::new("b", self.b, ("ldb", self.ldb)), m, n)?;
            if m == 0 || n == 0 {
                return Ok(()); // as in the BLAS, the triangle is not looked at
            }
            triangular::trsm(call, kind, Some(&number(call, &alpha)?), &a, &b)
        }
    }
}

/// `sunzi_trsm` with the arguments of `Rtrsm`: `side` "L" or "R", `diag` "N" or "U"; the triangle is `a`, the right
/// sides `b`.
///
/// Returns info as `sunzi_rsyrk` does, and `i > 0` where entry (i, i) of the triangle, from 1, is 0.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rtrsm(
    ctx: *const sunzi_context,
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Trsm { side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb }) }
}

/// `sunzi_rtrsm` on `mpf_t`: scalars and arrays.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rtrsm_mpf(
    ctx: *const sunzi_context,
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Trsm { side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb }) }
}

/// The arguments of `Rtrmm`.
struct Trmm {
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
}

impl Arguments for Trmm {
    const NAMES: &'static [&'static str] =
        &["side", "uplo", "transa", "diag", "m", "n", "alpha", "a", "lda", "b", "ldb"];

    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let kind = sides_of(self.side, self.uplo, self.transa, self.diag)?;
            let [m, n] = sizes([("m", self.m), ("n", self.n)])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let order = if kind.side == Side::Left { m } else { n };
            let a = entries.matrix(&Place::new("a", self.a, ("lda", self.lda)), order, order)?;
            let b = entries.matrix(&Place::new("b", self.b, ("ldb", self.ldb)), m, n)?;
            if m == 0 || n == 0 {
                return Ok(());
            }
            triangular::trmm(call, kind, &number(call, &alpha)?, &a, &b)
        }
    }
}

/// `B := alpha op(T) B` or `alpha B op(T)` for a triangular T with the arguments of `Rtrmm`, those of `sunzi_rtrsm`.
///
/// Accuracy: that of `sunzi_rgemm`. Returns info as `sunzi_rsyrk` does.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rtrmm(
    ctx: *const sunzi_context,
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Trmm { side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb }) }
}

/// `sunzi_rtrmm` on `mpf_t`: scalars and arrays.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rtrmm_mpf(
    ctx: *const sunzi_context,
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Trmm { side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb }) }
}
