//! Twins of the level 3 PBLAS: products and triangular solves.

use super::checks::{Checks, SubMatrix};
use super::{Arguments, info};
use crate::api::lapack::{leaves_as_it_is, op_of, sides_of, uplo_of};
use crate::api::mpi::DistOperand;
use crate::api::products::Terms;
use crate::api::triangular::Triangle;
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::{SUNZI_MPF, SUNZI_MPFR};
use rug::Float;
use std::ffi::{c_char, c_int, c_void};
use sunzi::advanced::calls::{TriangularKind, gemm_over, syrk_over, trsm_over};
use sunzi::distributed::Team;
use sunzi::{Op, Side, Uplo};

/// The arguments of `PDSYRK`.
struct Syrk {
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

impl Arguments for Syrk {
    const NAMES: &'static [&'static str] =
        &["uplo", "trans", "n", "k", "alpha", "a", "ia", "ja", "desca", "beta", "c", "ic", "jc", "descc"];

    type Checked = CheckedSyrk;

    unsafe fn check(&self, checks: &mut Checks<'_, '_>) -> Outcome<CheckedSyrk> {
        // SAFETY: by contract, for all below.
        unsafe {
            let uplo = checks.global("uplo", uplo_of(self.uplo))?;
            let op = checks.global("trans", op_of("trans", self.trans))?;
            let (n, k) = (("n", checks.size("n", self.n)?), ("k", checks.size("k", self.k)?));
            let alpha = checks.scalar("alpha", self.alpha)?;
            let shape = if op == Op::NoTranspose { [n, k] } else { [k, n] };
            let names = ["a", "ia", "ja", "desca"];
            let a = SubMatrix { names, entries: self.a, first: (self.ia, self.ja), desc: self.desca, shape };
            let a = checks.matrix(&a)?;
            let beta = checks.scalar("beta", self.beta)?;
            let names = ["c", "ic", "jc", "descc"];
            let c = SubMatrix { names, entries: self.c, first: (self.ic, self.jc), desc: self.descc, shape: [n, n] };
            let c = checks.matrix(&c)?;
            Ok(CheckedSyrk { uplo, op, terms: Terms { alpha, beta }, a, c })
        }
    }

    unsafe fn run(call: &Call<'_>, team: &mut Team, checked: CheckedSyrk) -> Outcome<()> {
        let CheckedSyrk { uplo, op, terms, a, mut c } = checked;
        if c.is_empty() || leaves_as_it_is(&terms, a.is_empty()) {
            return Ok(());
        }
        syrk_over(call, team, Some(uplo), op, terms.over_ranks(), a, &mut c)
    }
}

/// Computes `C := alpha A A^T + beta C` (`trans` "N") or `C := alpha A^T A + beta C` (`trans` "T") as `sunzi_mpi_syrk`
/// does, with the arguments of `PDSYRK`. C is n x n, and its triangle `uplo` is read and written; A is n x k or k x n.
///
/// Returns info; see ScaLAPACK at the top of this header.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rsyrk(
    ctx: *const sunzi_context,
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
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPFR, &Syrk { uplo, trans, n, k, alpha, a, ia, ja, desca, beta, c, ic, jc, descc }) }
}

/// Same as `psunzi_rsyrk`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rsyrk_mpf(
    ctx: *const sunzi_context,
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
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Syrk { uplo, trans, n, k, alpha, a, ia, ja, desca, beta, c, ic, jc, descc }) }
}

/// The checked arguments of [`Syrk`].
struct CheckedSyrk {
    uplo: Uplo,
    op: Op,
    terms: Terms,
    a: DistOperand,
    c: DistOperand,
}

/// The arguments of `PDGEMM`.
struct Gemm {
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

impl Arguments for Gemm {
    const NAMES: &'static [&'static str] = &[
        "transa", "transb", "m", "n", "k", "alpha", "a", "ia", "ja", "desca", "b", "ib", "jb", "descb", "beta", "c",
        "ic", "jc", "descc",
    ];

    type Checked = CheckedGemm;

    unsafe fn check(&self, checks: &mut Checks<'_, '_>) -> Outcome<CheckedGemm> {
        // SAFETY: by contract, for all below.
        unsafe {
            let op_a = checks.global("transa", op_of("transa", self.transa))?;
            let op_b = checks.global("transb", op_of("transb", self.transb))?;
            let m = ("m", checks.size("m", self.m)?);
            let (n, k) = (("n", checks.size("n", self.n)?), ("k", checks.size("k", self.k)?));
            let alpha = checks.scalar("alpha", self.alpha)?;
            let shape = if op_a == Op::NoTranspose { [m, k] } else { [k, m] };
            let names = ["a", "ia", "ja", "desca"];
            let a = SubMatrix { names, entries: self.a, first: (self.ia, self.ja), desc: self.desca, shape };
            let a = checks.matrix(&a)?;
            let shape = if op_b == Op::NoTranspose { [k, n] } else { [n, k] };
            let names = ["b", "ib", "jb", "descb"];
            let b = SubMatrix { names, entries: self.b, first: (self.ib, self.jb), desc: self.descb, shape };
            let b = checks.matrix(&b)?;
            let beta = checks.scalar("beta", self.beta)?;
            let names = ["c", "ic", "jc", "descc"];
            let c = SubMatrix { names, entries: self.c, first: (self.ic, self.jc), desc: self.descc, shape: [m, n] };
            let c = checks.matrix(&c)?;
            Ok(CheckedGemm { ops: [op_a, op_b], terms: Terms { alpha, beta }, a, b, c })
        }
    }

    unsafe fn run(call: &Call<'_>, team: &mut Team, checked: CheckedGemm) -> Outcome<()> {
        let CheckedGemm { ops, terms, a, b, mut c } = checked;
        if c.is_empty() || leaves_as_it_is(&terms, a.is_empty()) {
            return Ok(());
        }
        gemm_over(call, team, ops, terms.over_ranks(), a, b, &mut c)
    }
}

/// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_mpi_gemm` does, with the arguments of `PDGEMM`. `op(A)` is m x
/// k, `op(B)` is k x n, and C is m x n.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rgemm(
    ctx: *const sunzi_context,
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
) -> i64 {
    // SAFETY: by contract.
    unsafe {
        info(
            ctx,
            SUNZI_MPFR,
            &Gemm { transa, transb, m, n, k, alpha, a, ia, ja, desca, b, ib, jb, descb, beta, c, ic, jc, descc },
        )
    }
}

/// Same as `psunzi_rgemm`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rgemm_mpf(
    ctx: *const sunzi_context,
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
) -> i64 {
    // SAFETY: by contract.
    unsafe {
        info(
            ctx,
            SUNZI_MPF,
            &Gemm { transa, transb, m, n, k, alpha, a, ia, ja, desca, b, ib, jb, descb, beta, c, ic, jc, descc },
        )
    }
}

/// The checked arguments of [`Gemm`].
struct CheckedGemm {
    ops: [Op; 2],
    terms: Terms,
    a: DistOperand,
    b: DistOperand,
    c: DistOperand,
}

/// The arguments of `PDTRSM`.
struct Trsm {
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

impl Arguments for Trsm {
    const NAMES: &'static [&'static str] =
        &["side", "uplo", "transa", "diag", "m", "n", "alpha", "a", "ia", "ja", "desca", "b", "ib", "jb", "descb"];

    type Checked = CheckedTrsm;

    unsafe fn check(&self, checks: &mut Checks<'_, '_>) -> Outcome<CheckedTrsm> {
        // SAFETY: by contract, for all below.
        unsafe {
            let kind = sides_of(self.side, self.uplo, self.transa, self.diag)?;
            checks.global("side", Ok(kind.side))?;
            checks.global("uplo", Ok(kind.uplo))?;
            checks.global("transa", Ok(kind.op))?;
            checks.global("diag", Ok(kind.diag))?;
            let (m, n) = (("m", checks.size("m", self.m)?), ("n", checks.size("n", self.n)?));
            let alpha = checks.scalar("alpha", self.alpha)?;
            let order = if kind.side == Side::Left { m } else { n };
            let names = ["a", "ia", "ja", "desca"];
            let shape = [order, order];
            let a = SubMatrix { names, entries: self.a, first: (self.ia, self.ja), desc: self.desca, shape };
            let a = checks.matrix(&a)?;
            let names = ["b", "ib", "jb", "descb"];
            let b = SubMatrix { names, entries: self.b, first: (self.ib, self.jb), desc: self.descb, shape: [m, n] };
            let b = checks.matrix(&b)?;
            Ok(CheckedTrsm { kind, alpha, a, b })
        }
    }

    unsafe fn run(call: &Call<'_>, team: &mut Team, checked: CheckedTrsm) -> Outcome<()> {
        let CheckedTrsm { kind, alpha, a, b } = checked;
        if b.is_empty() {
            return Ok(()); // as in the BLAS, the triangle is not looked at
        }
        let Triangle { side, uplo, op, diag } = kind;
        trsm_over(call, team, TriangularKind { side, uplo, op, diag }, alpha.as_ref(), a, b)
    }
}

/// Solves a triangular system in place as `sunzi_mpi_trsm` does, with the arguments of `PDTRSM`:
/// `B := alpha op(T)^-1 B` (`side` "L") or `B := alpha B op(T)^-1` (`side` "R"). `a` holds T; B is m x n.
///
/// Returns info: `i > 0` if entry (i, i) of T, counted from 1, is 0.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rtrsm(
    ctx: *const sunzi_context,
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
) -> i64 {
    // SAFETY: by contract.
    unsafe {
        info(ctx, SUNZI_MPFR, &Trsm { side, uplo, transa, diag, m, n, alpha, a, ia, ja, desca, b, ib, jb, descb })
    }
}

/// Same as `psunzi_rtrsm`, for scalars and arrays of `mpf_t`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psunzi_rtrsm_mpf(
    ctx: *const sunzi_context,
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
) -> i64 {
    // SAFETY: by contract.
    unsafe { info(ctx, SUNZI_MPF, &Trsm { side, uplo, transa, diag, m, n, alpha, a, ia, ja, desca, b, ib, jb, descb }) }
}

/// The checked arguments of [`Trsm`].
struct CheckedTrsm {
    kind: Triangle,
    alpha: Option<Float>,
    a: DistOperand,
    b: DistOperand,
}
