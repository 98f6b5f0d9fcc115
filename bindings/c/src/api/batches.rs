//! Many small problems in one call: SYRK, GEMM, Cholesky, TRSM.

use crate::api::cholesky::store_factor;
use crate::api::products::{Applied, Terms, nothing, terms_of};
use crate::api::triangular::part_read;
use crate::api::{diag_of, op_of, part_of, scalar, side_of, symmetric_of, uplo_of};
use crate::array::{Operand, Part};
use crate::call::{Call, Input, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};
use rug::Float;
use std::borrow::Cow;
use sunzi::advanced::calls::TriangularKind;
use sunzi::batch::{cholesky_batch_into, gemm_batch_into, syrk_batch_into, trsm_batch_into};
use sunzi::report::BatchReport;
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Destination, Error, GemmOptions, Matrix, MatrixView, Op, Progress,
    Side, Symmetric, SymmetricDestination, SymmetricMatrix, SyrkOptions, TrsmOptions, Uplo,
};

/// Computes `C_i := alpha A_i A_i^T + beta C_i` or `C_i := alpha A_i^T A_i + beta C_i` for `count` independent
/// problems.
///
/// Arguments:
/// - `a`, `c`: arrays of `count` descriptions; shapes and precisions may differ between problems.
/// - `statuses`: array for the status of each problem, or null.
/// - All other arguments as in `sunzi_syrk`, common to all problems. The arrays of different problems must not overlap
///   if one of them is written.
///
/// The threads of the context share the problems. Each result has the same bits as the single call.
///
/// Errors: a problem that fails leaves its own result unchanged and does not affect the others; the call then returns
/// the status of the first such problem, and `sunzi_last_error` names its number, counted from 0. Four failures end the
/// whole call before anything is written, with the same status for all problems: a description or an entry that cannot
/// be read, shapes that do not match, a memory limit that is too small for the plan of the batch, and cancellation.
/// Under a memory limit a single problem may be refused if `SUNZI_ENTRYWISE` needs more bits for it than planned.
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
        enter_batch(ctx, count, statuses, |call, batch| {
            let (uplo, op) = (symmetric_of(uplo)?, op_of("trans", trans)?);
            let (a, c) = (batch.operands("a", a)?, batch.operands("c", c)?);
            let terms = terms_of(call, alpha, beta)?;
            batch.syrk(call, uplo, Applied { matrix: &a, op }, &c, &terms)
        })
    }
}

/// Computes `C_i := alpha op(A_i) op(B_i) + beta C_i` for `count` independent problems. `a`, `b` and `c` are arrays of
/// `count` descriptions; everything else as in `sunzi_syrk_batch` and `sunzi_gemm`.
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
        enter_batch(ctx, count, statuses, |call, batch| {
            let (op_a, op_b) = (op_of("trans_a", trans_a)?, op_of("trans_b", trans_b)?);
            let (a, b, c) = (batch.operands("a", a)?, batch.operands("b", b)?, batch.operands("c", c)?);
            let terms = terms_of(call, alpha, beta)?;
            let (a, b) = (Applied { matrix: &a[..], op: op_a }, Applied { matrix: &b[..], op: op_b });
            batch.gemm(call, a, b, &c, &terms)
        })
    }
}

/// Replaces each of `count` symmetric positive definite matrices by its Cholesky factor. `a` is an array of `count`
/// descriptions; everything else as in `sunzi_syrk_batch` and `sunzi_cholesky`.
///
/// A matrix that is not positive definite is unchanged and has the status `SUNZI_NOT_POSITIVE_DEFINITE`; all other
/// matrices become their factors.
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
        enter_batch(ctx, count, statuses, |call, batch| {
            let uplo = symmetric_of(uplo)?;
            let a = batch.operands("a", a)?;
            batch.cholesky(call, uplo, &a)
        })
    }
}

/// Solves `count` independent triangular systems in place. `t` and `b` are arrays of `count` descriptions; everything
/// else as in `sunzi_syrk_batch` and `sunzi_trsm`.
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
        enter_batch(ctx, count, statuses, |call, batch| {
            let (side, uplo) = (side_of(side)?, uplo_of(uplo)?);
            let (op, diag) = (op_of("trans", trans)?, diag_of(diag)?);
            let (t, b) = (batch.operands("t", t)?, batch.operands("b", b)?);
            let alpha = scalar(call, "alpha", alpha)?;
            batch.trsm(call, TriangularKind { side, uplo, op, diag }, alpha.as_ref(), &t, &b)
        })
    }
}

/// The outcome of each problem.
type Outcomes = Vec<Outcome<()>>;

/// The library's result of a batch.
type BatchAnswer = sunzi::Result<sunzi::Outcome<Vec<sunzi::Result<()>>, BatchReport>>;

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
    count: i64,
    statuses: *mut sunzi_status,
    work: impl FnOnce(&Call<'_>, Batch) -> Outcome<Outcomes>,
) -> sunzi_status {
    let mut each = None;
    let run = |call: &Call<'_>| {
        let count = usize::try_from(count).map_err(|_| {
            Failure::of(
                sunzi_status::SUNZI_INVALID_SIZE,
                "count",
                format!("the number of problems, {count}, must not be negative"),
            )
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

/// A context whose progress counts the problems of the precisions before as well.
fn counting(ctx: &Context, before: usize, total: usize) -> Context {
    let (outer, before, total) = (ctx.clone(), before as u64, total as u64);
    ctx.with_progress(move |own| outer.report_progress(Progress::new(own.phase, before + own.done, total)).is_ok())
}

impl<'a> Applied<&'a [Operand]> {
    /// The operand of one problem.
    fn at(self, problem: usize) -> Applied<&'a Operand> {
        Applied { matrix: &self.matrix[problem], op: self.op }
    }
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

    /// Runs the problems, those of one precision together; returns their results, which have the shapes of `targets`,
    /// and the outcome of each. `symmetric` names the operand that may turn out not to be.
    fn run(
        self,
        call: &Call<'_>,
        bits: &[u32],
        targets: &[Operand],
        symmetric: &'static str,
        run: impl Fn(&Context, &[usize], u32, &mut [Matrix]) -> BatchAnswer,
    ) -> Outcome<(Vec<Matrix>, Outcomes)> {
        let own = |outcome: sunzi::Result<()>| match outcome {
            // The library counts within a group.
            Err(Error::Problem { error, .. }) => match *error {
                error @ Error::NotSymmetric { .. } => Err(Failure::about(symmetric, error)),
                error => call.done(Err(error)),
            },
            outcome => call.done(outcome),
        };
        let mut order = (0..self.count).collect::<Vec<_>>();
        order.sort_by_key(|&at| bits[at]);
        let mut results = (0..self.count).map(|_| Matrix::empty()).collect::<Vec<_>>();
        let mut outcomes = (0..self.count).map(|_| Ok(())).collect::<Outcomes>();
        let (mut reached, mut started) = (Vec::new(), 0);
        for group in order.chunk_by(|&x, &y| bits[x] == bits[y]) {
            let own_bits = bits[group[0]];
            let made = group.iter().map(|&at| call.result(targets[at].rows(), targets[at].cols(), own_bits));
            let mut made = made.collect::<Outcome<Vec<_>>>()?;
            let ctx = match group.len() == self.count {
                true => call.context(),
                false => Cow::Owned(counting(&call.context(), started, self.count)),
            };
            started += group.len();
            let done = call.done(run(&ctx, group, own_bits, &mut made))?;
            call.note_plan(done.report.planned_bytes);
            reached.push((done.report.accuracy, done.report.range_bits));
            let bytes = made.iter().map(Matrix::bytes).sum();
            for ((&at, matrix), outcome) in group.iter().zip(made).zip(done.result) {
                results[at] = matrix;
                outcomes[at] = own(outcome);
            }
            call.hold_bytes(bytes)?;
        }
        let by_norms = reached.iter().any(|&(accuracy, _)| accuracy == Accuracy::Norm);
        let range_bits = reached.iter().map(|&(_, range_bits)| range_bits).max().unwrap_or(0);
        call.note_accuracy(if by_norms { Accuracy::Norm } else { call.accuracy() }, range_bits);
        Ok((results, outcomes))
    }

    /// Stores the results of the problems that have one.
    fn store(
        self,
        results: Vec<Matrix>,
        outcomes: Outcomes,
        mut store: impl FnMut(usize, Matrix) -> Outcome<()>,
    ) -> Outcomes {
        let each = results.into_iter().zip(outcomes).enumerate().map(|(at, (result, outcome))| {
            outcome.and_then(|()| store(at, result)).map_err(|failure| self.at(at, failure))
        });
        each.collect()
    }

    /// The matrices that are added, where any are.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn added(self, call: &Call<'_>, terms: &Terms, c: &[Operand], part: Part) -> Outcome<Vec<Matrix>> {
        // SAFETY: by contract.
        let added = self.each(|at| unsafe { terms.added(call, &c[at], part) })?;
        Ok(added.into_iter().flatten().collect())
    }

    /// # Safety
    /// The header's rules.
    unsafe fn syrk(
        self,
        call: &Call<'_>,
        uplo: Option<Uplo>,
        a: Applied<&[Operand]>,
        c: &[Operand],
        terms: &Terms,
    ) -> Outcome<Outcomes> {
        let part = part_of(uplo);
        self.each(|at| {
            let order = a.at(at).shape().0;
            c[at].check_shape(order, order)
        })?;
        // SAFETY: by contract.
        let bits = self.each(|at| unsafe { call.result_bits(&c[at], part) })?;
        let (without, order) = (terms.without_product(), |at: usize| c[at].rows());
        let inputs = self.each(|at| match without {
            true => nothing(0, order(at)),
            // SAFETY: by contract.
            false => unsafe { call.read(a.at(at).matrix, Part::All) },
        })?;
        // SAFETY: by contract.
        let added = unsafe { self.added(call, terms, c, part) }?;
        let addend = |at: usize| match uplo {
            Some(uplo) => Symmetric::triangle(added[at].view(), uplo),
            None => added[at].view().into(),
        };
        // The library's own op names what is contracted: rows for `NoTranspose`.
        let contracted = if a.op == Op::NoTranspose && !without { Op::Transpose } else { Op::NoTranspose };
        let options = SyrkOptions::new().op(contracted).uplo(uplo.unwrap_or_default()).accuracy(call.accuracy());
        let options = options.alpha(terms.alpha.as_ref()).beta(terms.beta.as_ref().filter(|_| !added.is_empty()));
        let run = |ctx: &Context, group: &[usize], bits: u32, results: &mut [Matrix]| {
            let places = results.iter_mut().map(|result| SymmetricDestination::Triangle(Destination::Matrix(result)));
            let views = || group.iter().map(|&at| inputs[at].view());
            if added.is_empty() {
                return syrk_batch_into(ctx, views(), bits, &options, places);
            }
            let both = views().zip(group.iter().map(|&at| addend(at)));
            syrk_batch_into::<(MatrixView<'_>, Symmetric<'_>), _>(ctx, both, bits, &options, places)
        };
        let (results, outcomes) = self.run(call, &bits, c, "c", run)?;
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
        a: Applied<&[Operand]>,
        b: Applied<&[Operand]>,
        c: &[Operand],
        terms: &Terms,
    ) -> Outcome<Outcomes> {
        self.each(|at| {
            let (rows, cols) = a.at(at).times(b.at(at))?;
            c[at].check_shape(rows, cols)
        })?;
        // SAFETY: by contract.
        let bits = self.each(|at| unsafe { call.result_bits(&c[at], Part::All) })?;
        let without = terms.without_product();
        let inputs = self.each(|at| match without {
            true => Ok((nothing(c[at].rows(), 0)?, nothing(0, c[at].cols())?)),
            // SAFETY: by contract.
            false => unsafe { Ok((call.read(a.at(at).matrix, Part::All)?, call.read(b.at(at).matrix, Part::All)?)) },
        })?;
        // SAFETY: by contract.
        let added = unsafe { self.added(call, terms, c, Part::All) }?;
        let (op_a, op_b) = if without { (Op::NoTranspose, Op::NoTranspose) } else { (a.op, b.op) };
        let options = GemmOptions::new().op_a(op_a).op_b(op_b).accuracy(call.accuracy()).alpha(terms.alpha.as_ref());
        let options = options.beta(terms.beta.as_ref().filter(|_| !added.is_empty()));
        let run = |ctx: &Context, group: &[usize], bits: u32, results: &mut [Matrix]| {
            let views = || group.iter().map(|&at| (inputs[at].0.view(), inputs[at].1.view()));
            if added.is_empty() {
                return gemm_batch_into(ctx, views(), bits, &options, results);
            }
            let triples = views().zip(group).map(|(pair, &at)| (pair, added[at].view()));
            gemm_batch_into(ctx, triples, bits, &options, results)
        };
        let (results, outcomes) = self.run(call, &bits, c, "", run)?;
        // SAFETY: by contract.
        Ok(self.store(results, outcomes, |at, result| unsafe { call.write(&c[at], Part::All, result) }))
    }

    /// # Safety
    /// The header's rules.
    unsafe fn cholesky(self, call: &Call<'_>, uplo: Option<Uplo>, a: &[Operand]) -> Outcome<Outcomes> {
        self.each(|at| a[at].check_square())?;
        // SAFETY: by contract.
        let bits = self.each(|at| unsafe { call.result_bits(&a[at], part_of(uplo)) })?;
        // SAFETY: by contract.
        let inputs = self.each(|at| unsafe { call.read(&a[at], part_of(uplo)) })?;
        let options = CholeskyOptions::new().accuracy(call.accuracy());
        let run = |ctx: &Context, group: &[usize], bits: u32, results: &mut [Matrix]| {
            let operand = |&at: &usize| match uplo {
                Some(uplo) => Symmetric::triangle(inputs[at].view(), uplo),
                None => inputs[at].view().into(),
            };
            let memory = results.iter_mut().map(|result| Cholesky::with_memory(std::mem::take(result)));
            let mut factors = memory.collect::<Vec<_>>();
            let operands = group.iter().map(operand);
            let done = cholesky_batch_into(ctx, operands, bits, &options, &mut factors);
            results.iter_mut().zip(factors).for_each(|(result, factor)| *result = factor.into_factor());
            done
        };
        let (results, outcomes) = self.run(call, &bits, a, "a", run)?;
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
        TriangularKind { side, uplo, op, diag }: TriangularKind,
        alpha: Option<&Float>,
        t: &[Operand],
        b: &[Operand],
    ) -> Outcome<Outcomes> {
        self.each(|at| {
            let (t, b) = (&t[at], &b[at]);
            t.check_square()?;
            let (rows, cols) = if side == Side::Left { (t.rows(), b.cols()) } else { (b.rows(), t.rows()) };
            b.check_shape(rows, cols)
        })?;
        // SAFETY: by contract.
        let bits = self.each(|at| unsafe { call.result_bits(&b[at], Part::All) })?;
        if alpha.is_some_and(Float::is_zero) {
            // As in the single call, no triangle is looked at. One result after the other.
            let largest = (0..self.count).map(|at| Matrix::bytes_for(b[at].rows(), b[at].cols(), bits[at])).max();
            call.hold_bytes(largest.unwrap_or(0))?;
            call.note_plan(0);
            call.note_accuracy(call.accuracy(), 0);
            let zeros = |at: usize| Matrix::zeros(b[at].rows(), b[at].cols(), bits[at]);
            // SAFETY: by contract.
            let store = |at: usize, _| unsafe { call.store(&b[at], Part::All, &zeros(at)?) };
            let empty = || (0..self.count).map(|_| Matrix::empty()).collect();
            return Ok(self.store(empty(), (0..self.count).map(|_| Ok(())).collect(), store));
        }
        // SAFETY: by contract.
        let read =
            |at: usize| unsafe { Ok((call.read(&t[at], part_read(uplo, diag))?, call.read(&b[at], Part::All)?)) };
        let inputs: Vec<(Input<'_>, Input<'_>)> = self.each(read)?;
        let options = TrsmOptions::new().side(side).uplo(uplo).op(op).diag(diag).accuracy(call.accuracy());
        let options = options.alpha(alpha);
        let run = |ctx: &Context, group: &[usize], bits: u32, results: &mut [Matrix]| {
            let pairs = group.iter().map(|&at| (inputs[at].0.view(), inputs[at].1.view()));
            trsm_batch_into(ctx, pairs, bits, &options, results)
        };
        let (results, outcomes) = self.run(call, &bits, b, "", run)?;
        // SAFETY: by contract.
        Ok(self.store(results, outcomes, |at, result| unsafe { call.write(&b[at], Part::All, result) }))
    }
}
