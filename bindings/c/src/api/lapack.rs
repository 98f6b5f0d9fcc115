//! Twins of BLAS and LAPACK on `mpfr_t`: the arguments of MPLAPACK's `Rsyrk`, `Rgemm`, `Rtrsm`, `Rpotrf` and `Rpotrs`
//! behind a context, column-major.

use crate::api::{cholesky, products, triangular};
use crate::array::{Operand, invalid};
use crate::call::{Call, run};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::*;
use std::ffi::{c_char, c_void};
use sunzi::{Diag, Op, Side, Uplo};

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
    let names = ["uplo", "trans", "n", "k", "alpha", "a", "lda", "beta", "c", "ldc"];
    // SAFETY: by contract, for all below.
    unsafe {
        info(ctx, &names, |call| {
            let (uplo, op) = (uplo_of(uplo)?, op_of("trans", trans)?);
            let ([n, k], a) = (sizes([("n", n), ("k", k)])?, Array { name: "a", entries: a, ld: ("lda", lda) });
            let alpha = Some(products::scalar_at(call, "alpha", &one_by_one(alpha))?);
            let (rows, cols) = if op == Op::NoTranspose { (n, k) } else { (k, n) };
            let a = a.operand(rows, cols)?;
            let beta = Some(products::scalar_at(call, "beta", &one_by_one(beta))?);
            let c = Array { name: "c", entries: c, ld: ("ldc", ldc) }.operand(n, n)?;
            products::syrk(call, (Some(uplo), op), &a, &products::Scalars { alpha, beta }, &c)
        })
    }
}

/// `sunzi_gemm` with the arguments of `Rgemm`; returns info as `sunzi_rsyrk` does.
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
    let names = ["transa", "transb", "m", "n", "k", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc"];
    // SAFETY: by contract, for all below.
    unsafe {
        info(ctx, &names, |call| {
            let (op_a, op_b) = (op_of("transa", transa)?, op_of("transb", transb)?);
            let [m, n, k] = sizes([("m", m), ("n", n), ("k", k)])?;
            let alpha = Some(products::scalar_at(call, "alpha", &one_by_one(alpha))?);
            let (rows, cols) = if op_a == Op::NoTranspose { (m, k) } else { (k, m) };
            let a = Array { name: "a", entries: a, ld: ("lda", lda) }.operand(rows, cols)?;
            let (rows, cols) = if op_b == Op::NoTranspose { (k, n) } else { (n, k) };
            let b = Array { name: "b", entries: b, ld: ("ldb", ldb) }.operand(rows, cols)?;
            let beta = Some(products::scalar_at(call, "beta", &one_by_one(beta))?);
            let c = Array { name: "c", entries: c, ld: ("ldc", ldc) }.operand(m, n)?;
            products::gemm(call, (&a, op_a), (&b, op_b), &products::Scalars { alpha, beta }, &c)
        })
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
    let names = ["side", "uplo", "transa", "diag", "m", "n", "alpha", "a", "lda", "b", "ldb"];
    // SAFETY: by contract, for all below.
    unsafe {
        info(ctx, &names, |call| {
            let side = choice("side", side, &[(b'L', Side::Left), (b'R', Side::Right)])?;
            let (uplo, op) = (uplo_of(uplo)?, op_of("transa", transa)?);
            let diag = choice("diag", diag, &[(b'N', Diag::NonUnit), (b'U', Diag::Unit)])?;
            let [m, n] = sizes([("m", m), ("n", n)])?;
            let alpha = products::scalar_at(call, "alpha", &one_by_one(alpha))?;
            let order = if side == Side::Left { m } else { n };
            let a = Array { name: "a", entries: a, ld: ("lda", lda) }.operand(order, order)?;
            let b = Array { name: "b", entries: b, ld: ("ldb", ldb) }.operand(m, n)?;
            triangular::trsm(call, triangular::Triangle { side, uplo, op, diag }, Some(&alpha), &a, &b)
        })
    }
}

/// `sunzi_cholesky` with the arguments of `Rpotrf`, info returned: `i > 0` where the leading minor of order i is not
/// positive.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rpotrf(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    n: i64,
    a: *mut c_void,
    lda: i64,
) -> i64 {
    let names = ["uplo", "n", "a", "lda"];
    // SAFETY: by contract, for all below.
    unsafe {
        info(ctx, &names, |call| {
            let uplo = uplo_of(uplo)?;
            let [n] = sizes([("n", n)])?;
            let a = Array { name: "a", entries: a, ld: ("lda", lda) }.operand(n, n)?;
            cholesky::factor_in_place(call, Some(uplo), &a)
        })
    }
}

/// `sunzi_cholesky_solve` with the arguments of `Rpotrs`; returns info as `sunzi_rsyrk` does, and `i > 0` where entry
/// (i, i) of the factor is 0.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rpotrs(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    n: i64,
    nrhs: i64,
    a: *const c_void,
    lda: i64,
    b: *mut c_void,
    ldb: i64,
) -> i64 {
    let names = ["uplo", "n", "nrhs", "a", "lda", "b", "ldb"];
    // SAFETY: by contract, for all below.
    unsafe {
        info(ctx, &names, |call| {
            let uplo = uplo_of(uplo)?;
            let [n, columns] = sizes([("n", n), ("nrhs", nrhs)])?;
            let a = Array { name: "a", entries: a, ld: ("lda", lda) }.operand(n, n)?;
            let b = Array { name: "b", entries: b, ld: ("ldb", ldb) }.operand(n, columns)?;
            cholesky::solve_factored(call, uplo, &a, &b)
        })
    }
}

/// Runs `work` as one call on `ctx`; returns what LAPACK calls info.
///
/// # Safety
/// As [`run`].
unsafe fn info(ctx: *const sunzi_context, names: &[&str], work: impl FnOnce(&Call<'_>) -> Outcome<()>) -> i64 {
    // SAFETY: by contract.
    let Err(failure) = (unsafe { run(ctx, work) }) else { return 0 };
    let minor = matches!(failure.status, sunzi_status::SUNZI_NOT_POSITIVE_DEFINITE | sunzi_status::SUNZI_SINGULAR);
    let position = failure.argument.and_then(|argument| names.iter().position(|name| *name == argument));
    match (failure.place, position) {
        (Some((index, _)), _) if minor => index as i64 + 1,
        (_, Some(position)) => -(position as i64) - 1,
        _ => -1000 - failure.status as i64,
    }
}

/// An array argument.
struct Array {
    name: &'static str,
    entries: *const c_void,
    ld: (&'static str, i64),
}

impl Array {
    /// The array as a matrix, its leading dimension checked.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn operand(&self, rows: i64, cols: i64) -> Outcome<Operand> {
        let (name, ld) = self.ld;
        if ld < rows.max(1) {
            let message = format!("leading dimension {ld} is too small: at least {} for {rows} rows", rows.max(1));
            return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message));
        }
        // SAFETY: by contract.
        unsafe { Operand::new(self.name, &described(self.entries, rows, cols, ld)) }
    }
}

fn described(entries: *const c_void, rows: i64, cols: i64, ld: i64) -> sunzi_matrix {
    let (format, layout) = (SUNZI_MPFR, SUNZI_COL_MAJOR);
    let limbs = std::ptr::null_mut();
    sunzi_matrix { format, layout, rows, cols, ld, entries: entries.cast_mut(), limbs, precision_bits: 0 }
}

fn one_by_one(number: *const c_void) -> sunzi_matrix {
    described(number, 1, 1, 1)
}

fn sizes<const N: usize>(named: [(&'static str, i64); N]) -> Outcome<[i64; N]> {
    match named.iter().find(|(_, size)| *size < 0) {
        Some((name, size)) => {
            Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, format!("{size}: sizes must not be negative")))
        }
        None => Ok(named.map(|(_, size)| size)),
    }
}

/// The value that the first letter of a text stands for.
///
/// # Safety
/// `text` is null or ends with a zero.
unsafe fn choice<T: Copy>(name: &'static str, text: *const c_char, known: &[(u8, T)]) -> Outcome<T> {
    if text.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the first of at least one letter, by contract.
    let letter = unsafe { text.read() } as u8;
    let found = known.iter().find(|(known, _)| *known == letter.to_ascii_uppercase());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let choices = known.iter().map(|(letter, _)| format!("'{}'", char::from(*letter))).collect::<Vec<_>>();
        invalid(name, format!("'{}' is no choice: {}", letter.escape_ascii(), choices.join(" or ")))
    })
}

/// # Safety
/// As [`choice`].
unsafe fn uplo_of(text: *const c_char) -> Outcome<Uplo> {
    // SAFETY: by contract.
    unsafe { choice("uplo", text, &[(b'U', Uplo::Upper), (b'L', Uplo::Lower)]) }
}

/// # Safety
/// As [`choice`].
unsafe fn op_of(name: &'static str, text: *const c_char) -> Outcome<Op> {
    // SAFETY: by contract.
    unsafe { choice(name, text, &[(b'N', Op::NoTranspose), (b'T', Op::Transpose), (b'C', Op::Transpose)]) }
}
