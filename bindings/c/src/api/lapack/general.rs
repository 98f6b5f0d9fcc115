//! Twins of LAPACK: LU of general square matrices, solves and inverses with the factors.

use crate::api::lapack::{Entries, Place, info, op_of, sizes, twins};
use crate::api::lu::{self, Integers};
use crate::array::{Operand, Part};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::types::sunzi_status;
use std::ffi::{c_char, c_void};
use sunzi::{Matrix, Op};

twins! {
/// The arguments of `Rgetrf`.
struct Rgetrf {
    m: i64,
    n: i64,
    a: *mut c_void,
    lda: i64,
    ipiv: *mut i64,
}

/// Replaces A by the factors of `P A = L U` as `sunzi_lu` does, with the arguments of `Rgetrf`. A is m x n and must be
/// square. `ipiv` receives n row numbers from 1: rows i and `ipiv[i - 1]` change places, for i from 1 to n.
///
/// Returns info: `i > 0` if all candidates for the i-th pivot are 0 at the working precision. Then A and `ipiv` are
/// unchanged, whereas LAPACK completes the factorisation with a zero at entry (i, i) of U.
fn sunzi_rgetrf, sunzi_rgetrf_mpf => info(Rgetrf::run);
}

impl Rgetrf {
    /// Replaces a matrix by its factors.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let [m, n] = sizes(["m", "n"], [self.m, self.n])?;
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), m, n)?;
            if m == 0 || n == 0 {
                return Ok(());
            }
            if m != n {
                let message = format!("A is {m} x {n}; only square matrices have factors here");
                return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, "n", message));
            }
            let ipiv = Integers::new("ipiv", self.ipiv, a.rows())?;
            let bits = call.result_bits(&a, Part::All)?;
            let (factors, _) = lu::factor(call, &a, bits)?;
            let rows = lu::store_factors(call, &a, factors)?;
            ipiv.write(pivots_of(&rows)?);
            Ok(())
        }
    }
}

twins! {
/// The arguments of `Rgetrs`.
struct Rgetrs {
    trans: *const c_char,
    n: i64,
    nrhs: i64,
    a: *const c_void,
    lda: i64,
    ipiv: *const i64,
    b: *mut c_void,
    ldb: i64,
}

/// Computes `B := op(A)^-1 B` from the factors of A in an array as `sunzi_lu_solve` does, with the arguments of
/// `Rgetrs`. `a` and `ipiv` hold what `sunzi_rgetrf` has stored for an A of order n; B is n x nrhs.
///
/// Returns info: `i > 0` if entry (i, i) of U, counted from 1, is 0.
fn sunzi_rgetrs, sunzi_rgetrs_mpf => info(Rgetrs::run);
}

impl Rgetrs {
    /// `b := op(a)^-1 b` with the factors of a.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let op = op_of("trans", self.trans)?;
            let [n, columns] = sizes(["n", "nrhs"], [self.n, self.nrhs])?;
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), n, n)?;
            let ipiv = Integers::new("ipiv", self.ipiv.cast_mut(), a.rows())?;
            let b = entries.matrix(&Place::new("b", self.b, "ldb", self.ldb), n, columns)?;
            if n == 0 || columns == 0 {
                return Ok(()); // as in LAPACK, the factors are not looked at
            }
            lu::solve_factored(call, op, &a, order_of(&ipiv)?, &b)
        }
    }
}

twins! {
/// The arguments of `Rgesv`.
struct Rgesv {
    n: i64,
    nrhs: i64,
    a: *mut c_void,
    lda: i64,
    ipiv: *mut i64,
    b: *mut c_void,
    ldb: i64,
}

/// Computes `B := A^-1 B` for any square A of order n, which its factors replace as in `sunzi_rgetrf`, with the
/// arguments of `Rgesv`. B is n x nrhs. A is factored at the larger one of the precisions of A and B.
///
/// Returns info: `i > 0` as `sunzi_rgetrf`; A, `ipiv` and B are unchanged then.
fn sunzi_rgesv, sunzi_rgesv_mpf => info(Rgesv::run);
}

impl Rgesv {
    /// `b := a^-1 b`, and the factors of a.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let [n, columns] = sizes(["n", "nrhs"], [self.n, self.nrhs])?;
            let a = entries.matrix(&Place::new("a", self.a, "lda", self.lda), n, n)?;
            let ipiv = Integers::new("ipiv", self.ipiv, a.rows())?;
            let b = entries.matrix(&Place::new("b", self.b, "ldb", self.ldb), n, columns)?;
            if n == 0 {
                return Ok(());
            }
            let bits = [call.result_bits(&a, Part::All)?, call.result_bits(&b, Part::All)?];
            let (factors, report) = lu::factor(call, &a, bits[0].max(bits[1]))?;
            call.hold_bytes(factors.factors().bytes())?;
            let solved = match columns {
                0 => None,
                _ => Some(lu::solution(call, Op::NoTranspose, &factors, &b, bits[1])?),
            };
            let rows = lu::store_factors(call, &a, factors)?;
            ipiv.write(pivots_of(&rows)?);
            if let Some((solution, solved)) = solved {
                call.write_solution(&b, Part::All, solution, &solved)?;
            }
            call.note_accuracy(report.accuracy, report.range_bits);
            Ok(())
        }
    }
}

twins! {
/// The arguments of `Rgetri`.
struct Rgetri {
    n: i64,
    a: *mut c_void,
    lda: i64,
    ipiv: *const i64,
    work: *mut c_void,
    lwork: i64,
}

/// Replaces the factors of A by its inverse as `sunzi_lu_inverse` computes it, with the arguments of `Rgetri`. `a` and
/// `ipiv` hold what `sunzi_rgetrf` has stored for an A of order n. `lwork`, the length of `work`, must be at least
/// `max(n, 1)`, which `work[0]` receives; the rest of `work` is neither read nor written. If `lwork` is -1, the call
/// only stores this number, and reads neither `a` nor `ipiv`.
///
/// Returns info: `i > 0` if entry (i, i) of U, counted from 1, is 0; A is unchanged then.
fn sunzi_rgetri, sunzi_rgetri_mpf => info(Rgetri::run);
}

impl Rgetri {
    /// `a := a^-1` with the factors of a.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(&self, call: &Call<'_>, entries: Entries) -> Outcome<()> {
        // SAFETY: by contract, for all below.
        unsafe {
            let [n] = sizes(["n"], [self.n])?;
            let (place, least) = (Place::new("a", self.a, "lda", self.lda), n.max(1));
            place.check_ld(n)?;
            let work = entries.number("work", self.work)?;
            let is_query = self.lwork == -1;
            if self.lwork < least && !is_query {
                let message = format!("the length {} is too small; it must be at least {least}", self.lwork);
                return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, "lwork", message));
            }
            call.result_bits(&work, Part::All)?; // it is initialised
            if n > 0 && !is_query {
                let a = entries.matrix(&place, n, n)?;
                let ipiv = Integers::new("ipiv", self.ipiv.cast_mut(), a.rows())?;
                lu::invert_factored(call, &a, order_of(&ipiv)?, &a)?;
            }
            store_size(call, &work, least)
        }
    }
}

/// Stores a size in an entry.
///
/// # Safety
/// The header's rules.
unsafe fn store_size(call: &Call<'_>, target: &Operand, size: i64) -> Outcome<()> {
    let mut number = Matrix::zeros(1, 1, 64)?;
    number.set_float(0, 0, &rug::Float::with_val(64, size))?;
    // SAFETY: by contract.
    unsafe { call.store(target, Part::All, &number) }
}

/// LAPACK's list of interchanges, counted from 1, for an order of rows.
fn pivots_of(rows: &[usize]) -> Outcome<impl Iterator<Item = i64>> {
    Ok(lu::interchanges(rows)?.into_iter().map(|place| place as i64 + 1))
}

/// The order of rows that LAPACK's list of interchanges stands for.
///
/// # Safety
/// The header's rules.
unsafe fn order_of(ipiv: &Integers<i64>) -> Outcome<Vec<usize>> {
    // SAFETY: by contract.
    let pivots = unsafe { ipiv.read() };
    let count = pivots.len();
    let mut rows = (0..count).collect::<Vec<_>>();
    for (at, &pivot) in pivots.iter().enumerate() {
        let place = usize::try_from(pivot).ok().and_then(|pivot| pivot.checked_sub(1)).filter(|&place| place < count);
        let place = place.ok_or_else(|| ipiv.refuse(at, format!("{pivot} is not one of the rows 1 to {count}")))?;
        rows.swap(at, place);
    }
    Ok(rows)
}
