//! Twins of the level 3 BLAS: products and triangular solves.

use crate::api::lapack::{Entries, Place, info, op_of, sides_of, sizes, terms, twins, uplo_of};
use crate::api::products::Applied;
use crate::api::{number, products, triangular};
use crate::array::Operand;
use crate::call::Call;
use crate::failure::Outcome;
use std::ffi::{c_char, c_void};
use sunzi::advanced::calls::TriangularKind;
use sunzi::{Op, Side};

twins! {
/// The arguments of `Rsyrk`.
struct Rsyrk {
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

/// Computes `C := alpha A A^T + beta C` (`trans` "N") or `C := alpha A^T A + beta C` (`trans` "T") as `sunzi_syrk`
/// does, with the arguments of `Rsyrk`. C is n x n, and its triangle `uplo` is read and written; A is n x k or k x n.
///
/// Returns info; see BLAS and LAPACK at the top of this header.
fn sunzi_rsyrk, sunzi_rsyrk_mpf => info(Rsyrk::run);
}

impl Rsyrk {
    /// `c := alpha op(a) op(a)^T + beta c`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (uplo, op) = (uplo_of(self.uplo)?, op_of("trans", self.trans)?);
            let [n, k] = sizes(["n", "k"], [self.n, self.k])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let (rows, cols) = if op == Op::NoTranspose { (n, k) } else { (k, n) };
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), rows, cols)?;
            let beta = entries.number("beta", self.beta)?;
            let c = entries.matrix(&Place::new("c", self.c, "ldc", self.ldc), n, n)?;
            match terms(call, &alpha, &beta, &c, k)? {
                Some(terms) => products::syrk(call, Some(uplo), Applied { matrix: &a, op }, &terms, &c),
                None => Ok(()),
            }
        }
    }
}

twins! {
/// The arguments of `Rgemm`.
struct Rgemm {
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

/// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_gemm` does, with the arguments of `Rgemm`. `op(A)` is m x k,
/// `op(B)` is k x n, and C is m x n.
fn sunzi_rgemm, sunzi_rgemm_mpf => info(Rgemm::run);
}

impl Rgemm {
    /// `c := alpha op(a) op(b) + beta c`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (op_a, op_b) = (op_of("transa", self.transa)?, op_of("transb", self.transb)?);
            let [m, n, k] = sizes(["m", "n", "k"], [self.m, self.n, self.k])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let (rows, cols) = if op_a == Op::NoTranspose { (m, k) } else { (k, m) };
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), rows, cols)?;
            let (rows, cols) = if op_b == Op::NoTranspose { (k, n) } else { (n, k) };
            let b = entries.matrix(&Place::new("b", self.b, "ldb", self.ldb), rows, cols)?;
            let beta = entries.number("beta", self.beta)?;
            let c = entries.matrix(&Place::new("c", self.c, "ldc", self.ldc), m, n)?;
            match terms(call, &alpha, &beta, &c, k)? {
                Some(terms) => {
                    let (a, b) = (Applied { matrix: &a, op: op_a }, Applied { matrix: &b, op: op_b });
                    products::gemm(call, a, b, &terms, &c)
                }
                None => Ok(()),
            }
        }
    }
}

twins! {
/// The arguments of `Rtrsm` and of `Rtrmm`.
struct TriangleAndMatrix {
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

/// Solves a triangular system in place as `sunzi_trsm` does, with the arguments of `Rtrsm`: `B := alpha op(T)^-1 B`
/// (`side` "L") or `B := alpha B op(T)^-1` (`side` "R"). `a` holds T; B is m x n.
///
/// Returns info: `i > 0` if entry (i, i) of T, counted from 1, is 0.
fn sunzi_rtrsm, sunzi_rtrsm_mpf => info(TriangleAndMatrix::solve);

/// Computes `B := alpha op(T) B` (`side` "L") or `B := alpha B op(T)` (`side` "R") for a triangular T, with the
/// arguments of `Rtrmm`. `a` holds T; B is m x n. Accuracy as `sunzi_rgemm`.
fn sunzi_rtrmm, sunzi_rtrmm_mpf => info(TriangleAndMatrix::multiply);
}

impl TriangleAndMatrix {
    /// `b := alpha op(t)^-1 b`, or from the right.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn solve(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract.
        unsafe {
            self.replace(entries, |kind, alpha, t, b| triangular::trsm(call, kind, Some(&number(call, alpha)?), t, b))
        }
    }

    /// `b := alpha op(t) b`, or from the right.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn multiply(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract.
        unsafe { self.replace(entries, |kind, alpha, t, b| triangular::trmm(call, kind, &number(call, alpha)?, t, b)) }
    }

    /// Checks the arguments, and hands them to `work` if there are entries.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn replace(
        &self,
        entries: Entries,
        work: impl FnOnce(TriangularKind, &Operand, &Operand, &Operand) -> Outcome<()>,
    ) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let kind = sides_of(self.side, self.uplo, self.transa, self.diag)?;
            let [m, n] = sizes(["m", "n"], [self.m, self.n])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let order = if kind.side == Side::Left { m } else { n };
            let t = entries.matrix(&Place::new("a", self.a, "lda", self.lda), order, order)?;
            let b = entries.matrix(&Place::new("b", self.b, "ldb", self.ldb), m, n)?;
            if m == 0 || n == 0 {
                return Ok(()); // as in the BLAS, neither alpha nor the triangle is looked at
            }
            work(kind, &alpha, &t, &b)
        }
    }
}
