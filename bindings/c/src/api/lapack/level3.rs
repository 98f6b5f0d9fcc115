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

/// Computes `C := alpha A A^T + beta C` (`trans` "N") or `C := alpha A^T A + beta C` (`trans` "T") as `sunzi_syrk`
/// does, with the arguments of `Rsyrk`. C is n x n, and its triangle `uplo` is read and written; A is n x k or k x n.
///
/// Returns info; see BLAS and LAPACK at the top of this header.
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

/// Same as `sunzi_rsyrk`, for scalars and arrays of `mpf_t`.
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

/// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_gemm` does, with the arguments of `Rgemm`. `op(A)` is m x k,
/// `op(B)` is k x n, and C is m x n.
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

/// Same as `sunzi_rgemm`, for scalars and arrays of `mpf_t`.
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

/// Solves a triangular system in place as `sunzi_trsm` does, with the arguments of `Rtrsm`: `B := alpha op(T)^-1 B`
/// (`side` "L") or `B := alpha B op(T)^-1` (`side` "R"). `a` holds T; B is m x n.
///
/// Returns info: `i > 0` if entry (i, i) of T, counted from 1, is 0.
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

/// Same as `sunzi_rtrsm`, for scalars and arrays of `mpf_t`.
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

/// Computes `B := alpha op(T) B` (`side` "L") or `B := alpha B op(T)` (`side` "R") for a triangular T, with the
/// arguments of `Rtrmm`. `a` holds T; B is m x n. Accuracy as `sunzi_rgemm`.
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

/// Same as `sunzi_rtrmm`, for scalars and arrays of `mpf_t`.
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
