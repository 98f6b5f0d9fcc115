//! Many small problems in one call: SYRK, GEMM, Cholesky, TRSM.

use crate::api::cholesky::store_factor;
use crate::api::triangular::{Triangle, part_read};
use crate::api::{diag_of, op_of, part_of, scalar, shape_of, side_of, symmetric, symmetric_of, uplo_of};
use crate::array::{Operand, Part};
use crate::call::{Call, Input, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};
use rug::Float;
use sunzi::{
    BatchReport, Cholesky, CholeskyOptions, Destination, Error, GemmOptions, Matrix, MatrixView, Op, Side, Symmetric,
    SymmetricDestination, SymmetricMatrix, SyrkOptions, TrsmOptions, Uplo, cholesky_batch_into, gemm_batch_into,
    syrk_batch_into, trsm_batch_into,
};

/// `sunzi_syrk` on `count` pairs: `C_i := alpha * A_i A_i^T + beta * C_i`, or with `A_i^T A_i`.
///
/// `a` and `c` are arrays of `count` descriptions, whose shapes and precisions may differ. Each result has the bits of
/// the single call. The threads of the context share out the problems. `statuses` takes the status of each problem; it
/// may be null.
/// One problem that fails leaves its own result as it was and costs the others nothing; the call returns the status of
/// the first such problem, and `sunzi_last_error` says its number, from 0. A description or an entry that cannot be
/// read, a memory limit that is too small, or a stop ends the whole call before anything is written, with that status
/// for all. The arrays of different problems must not overlap where one is written.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_syrk_batch(
    ctx: *const sunzi_context,
    uplo: i32,
    trans: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_matrix,
    count: i64,
    statuses: *mut sunzi_status,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter_batch(ctx, (count, statuses), |call, batch| {
            let (uplo, op) = (symmetric_of(uplo)?, op_of("trans", trans)?);
            let (a, c) = (batch.operands("a", a)?, batch.operands("c", c)?);
            let scalars = (scalar(call, "alpha", alpha)?, scalar(call, "beta", beta)?);
            batch.syrk(call, (uplo, op), (&a, &c), &scalars)
        })
    }
}

/// `sunzi_gemm` on `count` triples: `C_i := alpha * op(A_i) op(B_i) + beta * C_i`; the rest as in `sunzi_syrk_batch`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_gemm_batch(
    ctx: *const sunzi_context,
    trans_a: i32,
    trans_b: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_matrix,
    b: *const sunzi_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_matrix,
    count: i64,
    statuses: *mut sunzi_status,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter_batch(ctx, (count, statuses), |call, batch| {
            let ops = (op_of("trans_a", trans_a)?, op_of("trans_b", trans_b)?);
            let (a, b, c) = (batch.operands("a", a)?, batch.operands("b", b)?, batch.operands("c", c)?);
            let scalars = (scalar(call, "alpha", alpha)?, scalar(call, "beta", beta)?);
            batch.gemm(call, ops, (&a, &b, &c), &scalars)
        })
    }
}

/// `sunzi_cholesky` on `count` matrices, each in place; the rest as in `sunzi_syrk_batch`.
///
/// A matrix that is not positive definite stays as it was and has `SUNZI_NOT_POSITIVE_DEFINITE` among `statuses`; all
/// others become their factors.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_cholesky_batch(
    ctx: *const sunzi_context,
    uplo: i32,
    a: *const sunzi_matrix,
    count: i64,
    statuses: *mut sunzi_status,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter_batch(ctx, (count, statuses), |call, batch| {
            let uplo = symmetric_of(uplo)?;
            let a = batch.operands("a", a)?;
            batch.cholesky(call, uplo, &a)
        })
    }
}

/// `sunzi_trsm` on `count` pairs, each in place; the rest as in `sunzi_syrk_batch`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_trsm_batch(
    ctx: *const sunzi_context,
    side: i32,
    uplo: i32,
    trans: i32,
    diag: i32,
    alpha: *const sunzi_matrix,
    t: *const sunzi_matrix,
    b: *const sunzi_matrix,
    count: i64,
    statuses: *mut sunzi_status,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter_batch(ctx, (count, statuses), |call, batch| {
            let (side, uplo) = (side_of(side)?, uplo_of(uplo)?);
            let (op, diag) = (op_of("trans", trans)?, diag_of(diag)?);
            let (t, b) = (batch.operands("t", t)?, batch.operands("b", b)?);
            let alpha = scalar(call, "alpha", alpha)?;
            batch.trsm(call, Triangle { side, uplo, op, diag }, alpha.as_ref(), (&t, &b))
        })
    }
}

/// What became of each problem.
type Outcomes = Vec<sunzi::Result<()>>;

/// What the library says of a batch.
type Answer = sunzi::Result<sunzi::Outcome<Outcomes, BatchReport>>;

/// The problems of a call.
#[derive(Clone, Copy)]
struct Batch {
    count: usize,
}

/// Runs a batch, and gives each problem its status.
///
/// # Safety
/// `statuses` is null or has room for `count`; the header's rules.
unsafe fn enter_batch(
    ctx: *const sunzi_context,
    (count, statuses): (i64, *mut sunzi_status),
    work: impl FnOnce(&Call<'_>, Batch) -> Outcome<Vec<Outcome<()>>>,
) -> sunzi_status {
    let mut each = None;
    let run = |call: &Call<'_>| {
        let count = usize::try_from(count).map_err(|_| {
            Failure::of(sunzi_status::SUNZI_INVALID_SIZE, "count", format!("{count} problems: there are 0 or more"))
        })?;
        let outcomes = work(call, Batch { count })?;
        let first = outcomes.iter().find_map(|outcome| outcome.as_ref().err().cloned());
        each = Some(outcomes);
        first.map_or(Ok(()), Err)
    };
    // SAFETY: by contract.
    let status = unsafe { enter(ctx, run) };
    if !statuses.is_null() {
        let own = |at: usize| match &each {
            Some(outcomes) => outcomes[at].as_ref().err().map_or(sunzi_status::SUNZI_OK, |failure| failure.status),
            None => status,
        };
        for at in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: room for `count` by contract.
            unsafe { statuses.add(at).write(own(at)) };
        }
    }
    status
}

impl Batch {
    /// The descriptions in an array.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn operands(self, name: &'static str, first: *const sunzi_matrix) -> Outcome<Vec<Operand>> {
        if first.is_null() && self.count > 0 {
            return Err(Failure::null(name));
        }
        // SAFETY: an array of `count` descriptions by contract.
        let each = (0..self.count).map(|at| unsafe { Operand::new(name, first.add(at)) }.map_err(|f| self.at(at, f)));
        each.collect()
    }

    /// A failure with the number of its problem.
    fn at(self, problem: usize, failure: Failure) -> Failure {
        Failure { message: format!("problem {problem} of {}: {}", self.count, failure.message), ..failure }
    }

    /// `make` of every problem.
    fn each<T>(self, make: impl FnMut(usize) -> Outcome<T>) -> Outcome<Vec<T>> {
        let mut make = make;
        (0..self.count).map(|at| make(at).map_err(|failure| self.at(at, failure))).collect()
    }

    /// Runs the problems, those of one precision together; their results, and what became of each.
    fn run(
        self,
        call: &Call<'_>,
        bits: &[u32],
        places: &[(usize, usize)],
        run: impl Fn(&[usize], u32, &mut [Matrix]) -> Answer,
    ) -> Outcome<(Vec<Matrix>, Outcomes)> {
        let mut order = (0..self.count).collect::<Vec<_>>();
        order.sort_by_key(|&at| bits[at]);
        let mut results = (0..self.count).map(|_| Matrix::empty()).collect::<Vec<_>>();
        let mut outcomes = (0..self.count).map(|_| Ok(())).collect::<Outcomes>();
        for group in order.chunk_by(|&x, &y| bits[x] == bits[y]) {
            let own_bits = bits[group[0]];
            let made = group.iter().map(|&at| call.result(places[at].0, places[at].1, own_bits));
            let mut made = made.collect::<Outcome<Vec<_>>>()?;
            let done = call.done(run(group, own_bits, &mut made))?;
            call.note_plan(done.report.planned_bytes);
            call.note_accuracy(done.report.accuracy, 0);
            call.hold_bytes(made.iter().map(Matrix::bytes).sum())?;
            for ((&at, matrix), outcome) in group.iter().zip(made).zip(done.result) {
                results[at] = matrix;
                outcomes[at] = outcome;
            }
        }
        Ok((results, outcomes))
    }

    /// Stores the results of the problems that have one.
    fn store(
        self,
        results: Vec<Matrix>,
        outcomes: Outcomes,
        mut store: impl FnMut(usize, Matrix) -> Outcome<()>,
    ) -> Vec<Outcome<()>> {
        let each = results.into_iter().zip(outcomes).enumerate().map(|(at, (result, outcome))| {
            // The library counts within a group.
            let own = |error| match error {
                Error::Problem { error, .. } => *error,
                other => other,
            };
            let outcome = outcome.map_err(|error| Failure::from(own(error)));
            outcome.and_then(|()| store(at, result)).map_err(|failure| self.at(at, failure))
        });
        each.collect()
    }

    /// The matrices that are added, where any are.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn added(self, call: &Call<'_>, beta: Option<&Float>, c: &[Operand], part: Part) -> Outcome<Vec<Matrix>> {
        match beta.is_some_and(|beta| !beta.is_zero()) {
            // SAFETY: by contract.
            true => self.each(|at| unsafe { call.read_copy(&c[at], part) }),
            false => Ok(Vec::new()),
        }
    }

    /// # Safety
    /// The header's rules.
    unsafe fn syrk(
        self,
        call: &Call<'_>,
        (uplo, op): (Option<Uplo>, Op),
        (a, c): (&[Operand], &[Operand]),
        (alpha, beta): &(Option<Float>, Option<Float>),
    ) -> Outcome<Vec<Outcome<()>>> {
        let part = part_of(uplo);
        let places = self.each(|at| {
            let order = shape_of(&a[at], op).0;
            c[at].check_shape(order, order).map(|()| (order, order))
        })?;
        // SAFETY: by contract.
        let bits = self.each(|at| unsafe { call.result_bits(&c[at], part) })?;
        // SAFETY: by contract.
        let inputs = self.each(|at| unsafe { call.read(&a[at], Part::All) })?;
        // SAFETY: by contract.
        let added = unsafe { self.added(call, beta.as_ref(), c, part) }?;
        let addend = |at: usize| added.get(at).map(|added| symmetric(c[at].name, added.view(), uplo)).transpose();
        let addends = self.each(addend)?;
        // The library's own op says what is contracted: rows for `NoTranspose`.
        let contracted = if op == Op::NoTranspose { Op::Transpose } else { Op::NoTranspose };
        let options = SyrkOptions::new().op(contracted).uplo(uplo.unwrap_or_default()).accuracy(call.accuracy());
        let options = options.alpha(alpha.as_ref()).beta(beta.as_ref().filter(|_| !added.is_empty()));
        let run = |group: &[usize], bits: u32, results: &mut [Matrix]| {
            let places = results.iter_mut().map(|result| SymmetricDestination::Triangle(Destination::Matrix(result)));
            let views = || group.iter().map(|&at| inputs[at].view());
            if added.is_empty() {
                return syrk_batch_into(&call.context(), views(), bits, &options, places);
            }
            let both = views().zip(group.iter().filter_map(|&at| addends[at]));
            syrk_batch_into::<(MatrixView<'_>, Symmetric<'_>), _>(&call.context(), both, bits, &options, places)
        };
        let (results, outcomes) = self.run(call, &bits, &places, run)?;
        Ok(self.store(results, outcomes, |at, result| {
            let result = match uplo {
                Some(_) => result,
                None => SymmetricMatrix::from_triangle(result, Uplo::Lower)?.into_matrix(),
            };
            // SAFETY: by contract.
            unsafe { call.write(&c[at], part, result) }
        }))
    }

    /// # Safety
    /// The header's rules.
    unsafe fn gemm(
        self,
        call: &Call<'_>,
        (op_a, op_b): (Op, Op),
        (a, b, c): (&[Operand], &[Operand], &[Operand]),
        (alpha, beta): &(Option<Float>, Option<Float>),
    ) -> Outcome<Vec<Outcome<()>>> {
        let places = self.each(|at| {
            let ((rows, inner), (right_rows, cols)) = (shape_of(&a[at], op_a), shape_of(&b[at], op_b));
            if inner != right_rows {
                let sizes = format!("op(A) is {rows} x {inner}, op(B) {right_rows} x {cols}");
                let message = format!("{sizes}: the inner sizes must agree");
                return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, "b", message));
            }
            c[at].check_shape(rows, cols).map(|()| (rows, cols))
        })?;
        // SAFETY: by contract.
        let bits = self.each(|at| unsafe { call.result_bits(&c[at], Part::All) })?;
        // SAFETY: by contract.
        let inputs = self.each(|at| unsafe { Ok((call.read(&a[at], Part::All)?, call.read(&b[at], Part::All)?)) })?;
        // SAFETY: by contract.
        let added = unsafe { self.added(call, beta.as_ref(), c, Part::All) }?;
        let options = GemmOptions::new().op_a(op_a).op_b(op_b).accuracy(call.accuracy()).alpha(alpha.as_ref());
        let options = options.beta(beta.as_ref().filter(|_| !added.is_empty()));
        let run = |group: &[usize], bits: u32, results: &mut [Matrix]| {
            let views = || group.iter().map(|&at| (inputs[at].0.view(), inputs[at].1.view()));
            if added.is_empty() {
                return gemm_batch_into(&call.context(), views(), bits, &options, results);
            }
            let triples = views().zip(group).map(|(pair, &at)| (pair, added[at].view()));
            gemm_batch_into(&call.context(), triples, bits, &options, results)
        };
        let (results, outcomes) = self.run(call, &bits, &places, run)?;
        // SAFETY: by contract.
        Ok(self.store(results, outcomes, |at, result| unsafe { call.write(&c[at], Part::All, result) }))
    }

    /// # Safety
    /// The header's rules.
    unsafe fn cholesky(self, call: &Call<'_>, uplo: Option<Uplo>, a: &[Operand]) -> Outcome<Vec<Outcome<()>>> {
        let places = self.each(|at| a[at].check_square().map(|()| (a[at].rows(), a[at].rows())))?;
        // SAFETY: by contract.
        let bits = self.each(|at| unsafe { call.result_bits(&a[at], part_of(uplo)) })?;
        // SAFETY: by contract.
        let inputs = self.each(|at| unsafe { call.read(&a[at], part_of(uplo)) })?;
        let options = CholeskyOptions::new().accuracy(call.accuracy());
        let run = |group: &[usize], bits: u32, results: &mut [Matrix]| {
            let operand = |&at: &usize| match uplo {
                Some(uplo) => Symmetric::triangle(inputs[at].view(), uplo),
                None => inputs[at].view().into(),
            };
            let memory = results.iter_mut().map(|result| Cholesky::with_memory(std::mem::take(result)));
            let mut factors = memory.collect::<Vec<_>>();
            let operands = group.iter().map(operand);
            let done = cholesky_batch_into(&call.context(), operands, bits, &options, &mut factors);
            results.iter_mut().zip(factors).for_each(|(result, factor)| *result = factor.into_factor());
            done
        };
        let (results, outcomes) = self.run(call, &bits, &places, run)?;
        Ok(self.store(results, outcomes, |at, result| {
            // SAFETY: by contract.
            unsafe { store_factor(call, uplo, &a[at], &result) }?;
            call.keep(result);
            Ok(())
        }))
    }

    /// # Safety
    /// The header's rules.
    unsafe fn trsm(
        self,
        call: &Call<'_>,
        Triangle { side, uplo, op, diag }: Triangle,
        alpha: Option<&Float>,
        (t, b): (&[Operand], &[Operand]),
    ) -> Outcome<Vec<Outcome<()>>> {
        let places = self.each(|at| {
            let (t, b) = (&t[at], &b[at]);
            t.check_square()?;
            let (rows, cols) = if side == Side::Left { (t.rows(), b.cols()) } else { (b.rows(), t.rows()) };
            b.check_shape(rows, cols).map(|()| (rows, cols))
        })?;
        // SAFETY: by contract.
        let bits = self.each(|at| unsafe { call.result_bits(&b[at], Part::All) })?;
        // SAFETY: by contract.
        let read =
            |at: usize| unsafe { Ok((call.read(&t[at], part_read(uplo, diag))?, call.read(&b[at], Part::All)?)) };
        let inputs: Vec<(Input<'_>, Input<'_>)> = self.each(read)?;
        let options = TrsmOptions::new().side(side).uplo(uplo).op(op).diag(diag).accuracy(call.accuracy());
        let options = options.alpha(alpha);
        let run = |group: &[usize], bits: u32, results: &mut [Matrix]| {
            let pairs = group.iter().map(|&at| (inputs[at].0.view(), inputs[at].1.view()));
            trsm_batch_into(&call.context(), pairs, bits, &options, results)
        };
        let (results, outcomes) = self.run(call, &bits, &places, run)?;
        // SAFETY: by contract.
        Ok(self.store(results, outcomes, |at, result| unsafe { call.write(&b[at], Part::All, result) }))
    }
}
