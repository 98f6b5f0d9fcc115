//! Twins of the level 3 BLAS with symmetric operands or results, other than SYRK.

use crate::api::lapack::{Entries, Place, info, op_of, side_of, sizes, terms, twins, uplo_of};
use crate::api::products::finish;
use crate::api::triangle;
use crate::array::Part;
use crate::call::Call;
use crate::failure::Outcome;
use std::ffi::{c_char, c_void};
use sunzi::{Destination, Matrix, Op, Side, SymmOptions, Symmetric, SymmetricDestination, Syr2kOptions};

twins! {
/// The arguments of `Rsymm`.
struct Rsymm {
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

/// Computes `C := alpha A B + beta C` (`side` "L") or `C := alpha B A + beta C` (`side` "R") for a symmetric A, with
/// the arguments of `Rsymm`. The triangle `uplo` of A is read; B and C are m x n. Accuracy as `sunzi_rgemm`.
fn sunzi_rsymm, sunzi_rsymm_mpf => info(Rsymm::run);
}

impl Rsymm {
    /// `c := alpha a b + beta c`, or with the factors the other way round.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (side, uplo) = (side_of(self.side)?, uplo_of(self.uplo)?);
            let [m, n] = sizes(["m", "n"], [self.m, self.n])?;
            let alpha = entries.number("alpha", self.alpha)?;
            let order = if side == Side::Left { m } else { n };
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), order, order)?;
            let b = entries.matrix(&Place::new("b", self.b, "ldb", self.ldb), m, n)?;
            let beta = entries.number("beta", self.beta)?;
            let c = entries.matrix(&Place::new("c", self.c, "ldc", self.ldc), m, n)?;
            let Some(terms) = terms(call, &alpha, &beta, &c, order)? else { return Ok(()) };
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

twins! {
/// The arguments of `Rsyr2k`.
struct Rsyr2k {
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

/// Computes `C := alpha (A B^T + B A^T) + beta C` (`trans` "N") or `C := alpha (A^T B + B^T A) + beta C` (`trans` "T"),
/// with the arguments of `Rsyr2k`. C is n x n, and its triangle `uplo` is read and written; A and B are n x k or k x n.
/// Accuracy as `sunzi_rgemm`, for both products.
fn sunzi_rsyr2k, sunzi_rsyr2k_mpf => info(Rsyr2k::run);
}

impl Rsyr2k {
    /// `c := alpha (op(a) op(b)^T + op(b) op(a)^T) + beta c`.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let (uplo, op) = (uplo_of(self.uplo)?, op_of("trans", self.trans)?);
            let [n, k] = sizes(["n", "k"], [self.n, self.k])?;
            let alpha = entries.number("alpha", self.alpha)?;
            // The library's own op names what is contracted: rows for `NoTranspose`.
            let (rows, cols, op) = match op {
                Op::NoTranspose => (n, k, Op::Transpose),
                Op::Transpose => (k, n, Op::NoTranspose),
            };
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), rows, cols)?;
            let b = entries.matrix(&Place::new("b", self.b, "ldb", self.ldb), rows, cols)?;
            let beta = entries.number("beta", self.beta)?;
            let c = entries.matrix(&Place::new("c", self.c, "ldc", self.ldc), n, n)?;
            let Some(terms) = terms(call, &alpha, &beta, &c, k)? else { return Ok(()) };
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
