//! Twins of the level 3 BLAS with symmetric operands or results, other than SYRK.

use crate::api::lapack::{Arguments, Entries, Place, info, op_of, side_of, sizes, terms, uplo_of};
use crate::api::products::finish;
use crate::api::triangle;
use crate::array::Part;
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::{SUNZI_MPF, SUNZI_MPFR};
use std::ffi::{c_char, c_void};
use sunzi::{Destination, Matrix, Op, Side, SymmOptions, Symmetric, SymmetricDestination, Syr2kOptions};

/// The arguments of `Rsymm`.
struct Symm {
    side: *const c_char,
    uplo: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    lda: i64,
    b: *const c_void,
    ldb: i64,
    beta: *const c_void,
    c: *mut c_void,
    ldc: i64,
}

impl Arguments for Symm {
    const NAMES: &'static [&'static str] =
        &["side", "uplo", "m", "n", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc"];

    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (side, uplo) = (side_of(self.side)?, uplo_of(self.uplo)?);
            let [m, n] = sizes([("m", self.m), ("n", self.n)])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let order = if side == Side::Left { m } else { n };
            let a = entries.matrix(&Place::new("a", self.a, ("lda", self.lda)), order, order)?;
            let b = entries.matrix(&Place::new("b", self.b, ("ldb", self.ldb)), m, n)?;
            let beta = entries.number("beta", self.beta)?;
            let c = entries.matrix(&Place::new("c", self.c, ("ldc", self.ldc)), m, n)?;
            let Some(terms) = terms(call, (&alpha, &beta), (&c, order))? else { return Ok(()) };
            if terms.without_product() {
                return terms.scale(call, &c, Part::All);
            }
            let bits = call.result_bits(&c, Part::All)?;
            let (a, b) = (call.read(&a, triangle(uplo))?, call.read(&b, Part::All)?);
            let added = terms.added(call, &c, Part::All)?;
            let options = SymmOptions::new().side(side).accuracy(call.accuracy()).alpha(terms.alpha.as_ref());
            let options = options.beta(added.as_ref().and(terms.beta.as_ref()));
            let options = options.accumulate(added.as_ref().map(Matrix::view));
            let mut result = call.result(c.rows(), c.cols(), bits)?;
            let operand = Symmetric::triangle(a.view(), uplo);
            let done = sunzi::symm_into(&call.context(), operand, b.view(), bits, &options, &mut result);
            call.note_product(&call.done(done)?);
            finish(call, [Some(a), Some(b)], added);
            call.write(&c, Part::All, result)
        }
    }
}

/// Computes `C := alpha A B + beta C` (`side` "L") or `C := alpha B A + beta C` (`side` "R") for a symmetric A, with
/// the arguments of `Rsymm`. The triangle `uplo` of A is read; B and C are m x n. Accuracy as `sunzi_rgemm`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rsymm(
    ctx: *const sunzi_context,
    side: *const c_char,
    uplo: *const c_char,
    m: i64,
    n: i64,
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
    unsafe { info(ctx, SUNZI_MPFR, &Symm { side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc }) }
}

/// Same as `sunzi_rsymm`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rsymm_mpf(
    ctx: *const sunzi_context,
    side: *const c_char,
    uplo: *const c_char,
    m: i64,
    n: i64,
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
    unsafe { info(ctx, SUNZI_MPF, &Symm { side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc }) }
}

/// The arguments of `Rsyr2k`.
struct Syr2k {
    uplo: *const c_char,
    trans: *const c_char,
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

impl Arguments for Syr2k {
    const NAMES: &'static [&'static str] =
        &["uplo", "trans", "n", "k", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc"];

    unsafe fn call(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (uplo, op) = (uplo_of(self.uplo)?, op_of("trans", self.trans)?);
            let [n, k] = sizes([("n", self.n), ("k", self.k)])?;
            let alpha = entries.number("alpha", self.alpha)?;
            // The library's own op names what is contracted: rows for `NoTranspose`.
            let (rows, cols, op) = match op {
                Op::NoTranspose => (n, k, Op::Transpose),
                Op::Transpose => (k, n, Op::NoTranspose),
            };
            let a = entries.matrix(&Place::new("a", self.a, ("lda", self.lda)), rows, cols)?;
            let b = entries.matrix(&Place::new("b", self.b, ("ldb", self.ldb)), rows, cols)?;
            let beta = entries.number("beta", self.beta)?;
            let c = entries.matrix(&Place::new("c", self.c, ("ldc", self.ldc)), n, n)?;
            let Some(terms) = terms(call, (&alpha, &beta), (&c, k))? else { return Ok(()) };
            let part = triangle(uplo);
            if terms.without_product() {
                return terms.scale(call, &c, part);
            }
            let bits = call.result_bits(&c, part)?;
            let (a, b) = (call.read(&a, Part::All)?, call.read(&b, Part::All)?);
            let added = terms.added(call, &c, part)?;
            let options = Syr2kOptions::new().op(op).uplo(uplo).accuracy(call.accuracy()).alpha(terms.alpha.as_ref());
            let options = options.beta(added.as_ref().and(terms.beta.as_ref()));
            let options = options.accumulate(added.as_ref().map(|added| Symmetric::triangle(added.view(), uplo)));
            let mut result = call.result(c.rows(), c.cols(), bits)?;
            let target = SymmetricDestination::Triangle(Destination::Matrix(&mut result));
            let done = sunzi::syr2k_into(&call.context(), a.view(), b.view(), bits, &options, target);
            call.note_product(&call.done(done)?);
            finish(call, [Some(a), Some(b)], added);
            call.write(&c, part, result)
        }
    }
}

/// Computes `C := alpha (A B^T + B A^T) + beta C` (`trans` "N") or `C := alpha (A^T B + B^T A) + beta C` (`trans` "T"),
/// with the arguments of `Rsyr2k`. C is n x n, and its triangle `uplo` is read and written; A and B are n x k or k x n.
/// Accuracy as `sunzi_rgemm`, for both products.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rsyr2k(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    trans: *const c_char,
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
    unsafe { info(ctx, SUNZI_MPFR, &Syr2k { uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc }) }
}

/// Same as `sunzi_rsyr2k`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_rsyr2k_mpf(
    ctx: *const sunzi_context,
    uplo: *const c_char,
    trans: *const c_char,
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
    unsafe { info(ctx, SUNZI_MPF, &Syr2k { uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc }) }
}
