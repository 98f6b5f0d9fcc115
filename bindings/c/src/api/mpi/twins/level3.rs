//! Twins of the level 3 PBLAS: products and triangular solves.

use super::checks::{A, B, C, Checks, SubMatrix};
use super::{checked, info};
use crate::api::lapack::{Entries, leaves_as_it_is, op_of, sides_of, twins, uplo_of};
use crate::api::products::Terms;
use crate::call::Call;
use crate::failure::Outcome;
use std::ffi::{c_char, c_int, c_void};
use sunzi::advanced::calls::{gemm_over, syrk_over, trsm_over};
use sunzi::{Op, Side};

twins! {
/// The arguments of `PDSYRK`.
struct Pdsyrk {
    uplo: *const c_char,
    trans: *const c_char,
    n: i64,
    k: i64,
    alpha: *const c_void,
    a: *const c_void,
    ia: i64,
    ja: i64,
    desca: *const c_int,
    beta: *const c_void,
    c: *mut c_void,
    ic: i64,
    jc: i64,
    descc: *const c_int,
}

/// Computes `C := alpha A A^T + beta C` (`trans` "N") or `C := alpha A^T A + beta C` (`trans` "T") as `sunzi_mpi_syrk`
/// does, with the arguments of `PDSYRK`. C is n x n, and its triangle `uplo` is read and written; A is n x k or k x n.
///
/// Returns info; see ScaLAPACK at the top of this header.
fn psunzi_rsyrk, psunzi_rsyrk_mpf => info(Pdsyrk::run);
}

impl Pdsyrk {
    /// `c := alpha op(a) op(a)^T + beta c`. Collective.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let check = |checks: &mut Checks<'_, '_>| {
                let uplo = checks.global("uplo", uplo_of(self.uplo))?;
                let op = checks.global("trans", op_of("trans", self.trans))?;
                let (n, k) = (checks.size("n", self.n)?, checks.size("k", self.k)?);
                let alpha = checks.scalar("alpha", self.alpha)?;
                let (first, shape) = ([self.ia, self.ja], if op == Op::NoTranspose { [n, k] } else { [k, n] });
                let a = SubMatrix { names: A, entries: self.a, first, desc: self.desca, shape };
                let a = checks.matrix(&a)?;
                let beta = checks.scalar("beta", self.beta)?;
                let first = [self.ic, self.jc];
                let c = SubMatrix { names: C, entries: self.c, first, desc: self.descc, shape: [n, n] };
                Ok((uplo, op, Terms { alpha, beta }, a, checks.matrix(&c)?))
            };
            checked(call, entries, Self::NAMES, check, |team, (uplo, op, terms, a, mut c)| {
                if c.is_empty() || leaves_as_it_is(&terms, a.is_empty()) {
                    return Ok(());
                }
                syrk_over(call, team, Some(uplo), op, terms.over_ranks(), a, &mut c)
            })
        }
    }
}

twins! {
/// The arguments of `PDGEMM`.
struct Pdgemm {
    transa: *const c_char,
    transb: *const c_char,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const c_void,
    a: *const c_void,
    ia: i64,
    ja: i64,
    desca: *const c_int,
    b: *const c_void,
    ib: i64,
    jb: i64,
    descb: *const c_int,
    beta: *const c_void,
    c: *mut c_void,
    ic: i64,
    jc: i64,
    descc: *const c_int,
}

/// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_mpi_gemm` does, with the arguments of `PDGEMM`. `op(A)` is m x
/// k, `op(B)` is k x n, and C is m x n.
fn psunzi_rgemm, psunzi_rgemm_mpf => info(Pdgemm::run);
}

impl Pdgemm {
    /// `c := alpha op(a) op(b) + beta c`. Collective.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let check = |checks: &mut Checks<'_, '_>| {
                let op_a = checks.global("transa", op_of("transa", self.transa))?;
                let op_b = checks.global("transb", op_of("transb", self.transb))?;
                let (m, n, k) = (checks.size("m", self.m)?, checks.size("n", self.n)?, checks.size("k", self.k)?);
                let alpha = checks.scalar("alpha", self.alpha)?;
                let (first, shape) = ([self.ia, self.ja], if op_a == Op::NoTranspose { [m, k] } else { [k, m] });
                let a = SubMatrix { names: A, entries: self.a, first, desc: self.desca, shape };
                let a = checks.matrix(&a)?;
                let (first, shape) = ([self.ib, self.jb], if op_b == Op::NoTranspose { [k, n] } else { [n, k] });
                let b = SubMatrix { names: B, entries: self.b, first, desc: self.descb, shape };
                let b = checks.matrix(&b)?;
                let beta = checks.scalar("beta", self.beta)?;
                let first = [self.ic, self.jc];
                let c = SubMatrix { names: C, entries: self.c, first, desc: self.descc, shape: [m, n] };
                Ok(([op_a, op_b], Terms { alpha, beta }, a, b, checks.matrix(&c)?))
            };
            checked(call, entries, Self::NAMES, check, |team, (ops, terms, a, b, mut c)| {
                if c.is_empty() || leaves_as_it_is(&terms, a.is_empty()) {
                    return Ok(());
                }
                gemm_over(call, team, ops, terms.over_ranks(), a, b, &mut c)
            })
        }
    }
}

twins! {
/// The arguments of `PDTRSM`.
struct Pdtrsm {
    side: *const c_char,
    uplo: *const c_char,
    transa: *const c_char,
    diag: *const c_char,
    m: i64,
    n: i64,
    alpha: *const c_void,
    a: *const c_void,
    ia: i64,
    ja: i64,
    desca: *const c_int,
    b: *mut c_void,
    ib: i64,
    jb: i64,
    descb: *const c_int,
}

/// Solves a triangular system in place as `sunzi_mpi_trsm` does, with the arguments of `PDTRSM`:
/// `B := alpha op(T)^-1 B` (`side` "L") or `B := alpha B op(T)^-1` (`side` "R"). `a` holds T; B is m x n.
///
/// Returns info: `i > 0` if entry (i, i) of T, counted from 1, is 0.
fn psunzi_rtrsm, psunzi_rtrsm_mpf => info(Pdtrsm::run);
}

impl Pdtrsm {
    /// `b := alpha op(t)^-1 b`, or from the right. Collective.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let check = |checks: &mut Checks<'_, '_>| {
                let kind = sides_of(self.side, self.uplo, self.transa, self.diag)?;
                checks.global("side", Ok(kind.side))?;
                checks.global("uplo", Ok(kind.uplo))?;
                checks.global("transa", Ok(kind.op))?;
                checks.global("diag", Ok(kind.diag))?;
                let (m, n) = (checks.size("m", self.m)?, checks.size("n", self.n)?);
                let alpha = checks.scalar("alpha", self.alpha)?;
                let order = if kind.side == Side::Left { m } else { n };
                let first = [self.ia, self.ja];
                let a = SubMatrix { names: A, entries: self.a, first, desc: self.desca, shape: [order, order] };
                let a = checks.matrix(&a)?;
                let first = [self.ib, self.jb];
                let b = SubMatrix { names: B, entries: self.b, first, desc: self.descb, shape: [m, n] };
                Ok((kind, alpha, a, checks.matrix(&b)?))
            };
            checked(call, entries, Self::NAMES, check, |team, (kind, alpha, a, b)| {
                // As in the BLAS, the triangle is not looked at where there are no right sides.
                if b.is_empty() {
                    return Ok(());
                }
                trsm_over(call, team, kind, alpha.as_ref(), a, b)
            })
        }
    }
}
