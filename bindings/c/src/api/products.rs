//! SYRK and GEMM.

use crate::api::{op_of, operands, part_of, scalar, symmetric, symmetric_of};
use crate::array::{Operand, Part};
use crate::call::{Call, Input, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};
use rug::Float;
use sunzi::advanced::calls::ProductTerms;
use sunzi::{Destination, GemmOptions, Matrix, Op, SymmetricDestination, SymmetricMatrix, SyrkOptions, Uplo};

/// Computes `C := alpha A A^T + beta C` (`trans = SUNZI_NO_TRANS`) or `C := alpha A^T A + beta C` (`SUNZI_TRANS`).
///
/// Arguments:
/// - `uplo`: the triangle of C that is read and written. With `SUNZI_BOTH` the whole symmetric C is written; if C is
///   read, its two triangles must hold the same numbers (else `SUNZI_NOT_SYMMETRIC`). The other triangle is neither
///   read nor written.
/// - `alpha`, `beta`: 1 x 1; null means 1 for `alpha` and 0 for `beta`. If `alpha` is 0, A is not read; if `beta` is 0,
///   C is not read.
/// - `a`: n x k for `SUNZI_NO_TRANS`, k x n for `SUNZI_TRANS`.
/// - `c`: n x n.
///
/// Accuracy, for `alpha = 1` and `beta = 0`: `|computed - exact|_ij <= 2^(1 - p) (|A| |A|^T)_ij`; under `SUNZI_NORM`,
/// `2^(1 - p) norm(a_i) norm(a_j)`. With scalars the product has the same error; the sum of alpha times this product
/// and beta C is rounded once. Then each entry is rounded to its own precision.
///
/// Cost: n^2 k / 2 word products per prime.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_syrk(
    ctx: *const sunzi_context,
    uplo: i32,
    trans: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let (uplo, op) = (symmetric_of(uplo)?, op_of("trans", trans)?);
            let [a, c] = operands(["a", "c"], [a, c])?;
            let terms = terms_of(call, alpha, beta)?;
            syrk(call, uplo, Applied { matrix: &a, op }, &terms, &c)
        })
    }
}

/// Computes `C := alpha A diag(d) A^T + beta C` (`trans = SUNZI_NO_TRANS`) or `C := alpha A^T diag(d) A + beta C`
/// (`SUNZI_TRANS`).
///
/// Arguments:
/// - `d`: k x 1 or 1 x k, weights of either sign. If `alpha` is 0, d is not read.
/// - all others as in `sunzi_syrk`.
///
/// Accuracy, for `alpha = 1` and `beta = 0`: `|computed - exact|_ij <= 2^(1 - p) (|A| |D| |A|^T)_ij`; under
/// `SUNZI_NORM`, `2^(1 - p) r_i r_j`, where `r_i` is the square root of `(A |D| A^T)_ii`. Scalars as in `sunzi_syrk`.
///
/// Cost: between half and five eighths of that of `sunzi_gemm`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_weighted_gram(
    ctx: *const sunzi_context,
    uplo: i32,
    trans: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_matrix,
    d: *const sunzi_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let (uplo, op) = (symmetric_of(uplo)?, op_of("trans", trans)?);
            let [a, d, c] = operands(["a", "d", "c"], [a, d, c])?;
            let terms = terms_of(call, alpha, beta)?;
            let (_, contracted) = Applied { matrix: &a, op }.shape();
            if d.rows() != 1 || d.cols() != contracted {
                d.check_shape(contracted, 1)?;
            }
            symmetric_product(call, uplo, Applied { matrix: &a, op }, Some(&d), &terms, &c)
        })
    }
}

/// Computes `C := alpha op(A) op(B) + beta C`.
///
/// Arguments:
/// - `alpha`, `beta`: 1 x 1; null means 1 for `alpha` and 0 for `beta`. If `alpha` is 0, A and B are not read; if
///   `beta` is 0, C is not read.
/// - `a`, `b`, `c`: `op(A)` is m x k, `op(B)` is k x n, and C is m x n.
///
/// Accuracy, for `alpha = 1` and `beta = 0`: `|computed - exact|_ij <= 2^(1 - p) (|op(A)| |op(B)|)_ij`; under
/// `SUNZI_NORM`, `2^(1 - p) norm(row i of op(A)) norm(column j of op(B))`. Scalars as in `sunzi_syrk`.
///
/// Cost: m n k word products per prime.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_gemm(
    ctx: *const sunzi_context,
    trans_a: i32,
    trans_b: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_matrix,
    b: *const sunzi_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let (op_a, op_b) = (op_of("trans_a", trans_a)?, op_of("trans_b", trans_b)?);
            let [a, b, c] = operands(["a", "b", "c"], [a, b, c])?;
            let terms = terms_of(call, alpha, beta)?;
            gemm(call, Applied { matrix: &a, op: op_a }, Applied { matrix: &b, op: op_b }, &terms, &c)
        })
    }
}

/// A matrix as a product takes it: as it is, or as its transpose.
#[derive(Clone, Copy)]
pub(crate) struct Applied<M> {
    pub matrix: M,
    pub op: Op,
}

impl Applied<&Operand> {
    /// Rows and columns of `op(matrix)`.
    pub(crate) fn shape(self) -> (usize, usize) {
        let (rows, cols) = (self.matrix.rows(), self.matrix.cols());
        if self.op == Op::NoTranspose { (rows, cols) } else { (cols, rows) }
    }

    /// Rows and columns of the product with `right`, whose rows must be as many as the columns here.
    pub(crate) fn times(self, right: Applied<&Operand>) -> Outcome<(usize, usize)> {
        let ((rows, inner), (right_rows, cols)) = (self.shape(), right.shape());
        if inner != right_rows {
            let sizes = format!("op(A) is {rows} x {inner} and op(B) is {right_rows} x {cols}");
            let message = format!("{sizes}; the inner sizes must agree");
            return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, "b", message));
        }
        Ok((rows, cols))
    }
}

/// The choices of a product besides its operands. A scalar that is `None` is 1 for alpha and 0 for beta.
pub(crate) struct Terms {
    pub alpha: Option<Float>,
    pub beta: Option<Float>,
}

impl Terms {
    /// Whether alpha is 0: as in the BLAS, the operands of the product are then not read.
    pub(crate) fn without_product(&self) -> bool {
        self.alpha.as_ref().is_some_and(Float::is_zero)
    }

    /// The scalars and the added matrix of a call over ranks.
    pub(crate) fn over_ranks(&self) -> ProductTerms<'_> {
        ProductTerms { alpha: self.alpha.as_ref(), beta: self.beta.as_ref() }
    }

    /// `c := beta c` on a part of it.
    ///
    /// # Safety
    /// The header's rules.
    pub(crate) unsafe fn scale(&self, call: &Call<'_>, c: &Operand, part: Part) -> Outcome<()> {
        let (rows, cols) = (c.rows(), c.cols());
        let nothing = (Matrix::zeros(rows, 0, 2)?, Matrix::zeros(0, cols, 2)?);
        // SAFETY: by contract, for all below.
        unsafe {
            let (bits, added) = (call.result_bits(c, part)?, self.added(call, c, part)?);
            let options = GemmOptions::new().accuracy(call.accuracy()).beta(added.as_ref().and(self.beta.as_ref()));
            let options = options.accumulate(added.as_ref().map(Matrix::view));
            let mut result = call.result(rows, cols, bits)?;
            let done = sunzi::gemm_into(&call.context(), &nothing.0, &nothing.1, bits, &options, &mut result);
            call.note_product(&call.done(done)?);
            finish(call, [None, None], added);
            call.write(c, part, result)
        }
    }

    /// The matrix that is added, where one is.
    ///
    /// # Safety
    /// The header's rules.
    pub(crate) unsafe fn added(&self, call: &Call<'_>, c: &Operand, part: Part) -> Outcome<Option<Matrix>> {
        match &self.beta {
            Some(beta) if !beta.is_zero() => {
                // SAFETY: by contract.
                Ok(Some(unsafe { call.read_copy(c, part) }?))
            }
            _ => Ok(None),
        }
    }
}

/// `c := alpha op(a) op(a)^T + beta c` on a triangle, or on both.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn syrk(
    call: &Call<'_>,
    uplo: Option<Uplo>,
    a: Applied<&Operand>,
    terms: &Terms,
    c: &Operand,
) -> Outcome<()> {
    // SAFETY: by contract.
    unsafe { symmetric_product(call, uplo, a, None, terms, c) }
}

/// `c := alpha op(a) diag(weights) op(a)^T + beta c`; all weights are 1 where there are none.
///
/// # Safety
/// The header's rules.
unsafe fn symmetric_product(
    call: &Call<'_>,
    uplo: Option<Uplo>,
    a: Applied<&Operand>,
    weights: Option<&Operand>,
    terms: &Terms,
    c: &Operand,
) -> Outcome<()> {
    let (order, _) = a.shape();
    c.check_shape(order, order)?;
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = call.result_bits(c, part_of(uplo))?;
        // The library's own op names what is contracted: rows for `NoTranspose`.
        let (input, op) = match a.op {
            _ if terms.without_product() => (nothing(0, order)?, Op::NoTranspose),
            Op::NoTranspose => (call.read(a.matrix, Part::All)?, Op::Transpose),
            Op::Transpose => (call.read(a.matrix, Part::All)?, Op::NoTranspose),
        };
        let weights = match weights {
            Some(_) if terms.without_product() => Some(nothing(0, 1)?),
            Some(weights) => Some(call.read(weights, Part::All)?),
            None => None,
        };
        let added = terms.added(call, c, part_of(uplo))?;
        let accumulate = added.as_ref().map(|added| symmetric(c.name, added.view(), uplo)).transpose()?;
        let options = SyrkOptions::new()
            .op(op)
            .uplo(uplo.unwrap_or_default())
            .accuracy(call.accuracy())
            .alpha(terms.alpha.as_ref())
            .beta(added.as_ref().and(terms.beta.as_ref()))
            .accumulate(accumulate);
        let mut result = call.result(order, order, bits)?;
        let triangle = SymmetricDestination::Triangle(Destination::Matrix(&mut result));
        let ctx = &call.context();
        let done = match &weights {
            Some(d) => sunzi::weighted_gram_into(ctx, input.view(), d.view(), bits, &options, triangle),
            None => sunzi::syrk_into(ctx, input.view(), bits, &options, triangle),
        };
        call.note_product(&call.done(done)?);
        finish(call, [Some(input), weights], added);
        let result = match uplo {
            Some(_) => result,
            None => SymmetricMatrix::from_triangle(result, Uplo::Lower)?.into_matrix(),
        };
        call.write(c, part_of(uplo), result)
    }
}

/// `c := alpha op(a) op(b) + beta c`.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn gemm(
    call: &Call<'_>,
    a: Applied<&Operand>,
    b: Applied<&Operand>,
    terms: &Terms,
    c: &Operand,
) -> Outcome<()> {
    let (rows, cols) = a.times(b)?;
    c.check_shape(rows, cols)?;
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = call.result_bits(c, Part::All)?;
        let (left, right, op_a, op_b) = if terms.without_product() {
            (nothing(rows, 0)?, nothing(0, cols)?, Op::NoTranspose, Op::NoTranspose)
        } else {
            (call.read(a.matrix, Part::All)?, call.read(b.matrix, Part::All)?, a.op, b.op)
        };
        let added = terms.added(call, c, Part::All)?;
        let options = GemmOptions::new()
            .op_a(op_a)
            .op_b(op_b)
            .accuracy(call.accuracy())
            .alpha(terms.alpha.as_ref())
            .beta(added.as_ref().and(terms.beta.as_ref()))
            .accumulate(added.as_ref().map(Matrix::view));
        let mut result = call.result(rows, cols, bits)?;
        let done = sunzi::gemm_into(&call.context(), left.view(), right.view(), bits, &options, &mut result);
        call.note_product(&call.done(done)?);
        finish(call, [Some(left), Some(right)], added);
        call.write(c, Part::All, result)
    }
}

/// An operand of a product that does not count.
pub(crate) fn nothing<'a>(rows: usize, cols: usize) -> Outcome<Input<'a>> {
    Ok(Input::Copied(Matrix::zeros(rows, cols, 2)?, false))
}

/// Keeps the copies of a product for the next one.
pub(crate) fn finish(call: &Call<'_>, inputs: [Option<Input<'_>>; 2], added: Option<Matrix>) {
    inputs.into_iter().flatten().for_each(|input| call.keep_input(input));
    if let Some(matrix) = added {
        call.keep(matrix);
    }
}

/// The scalars of a call on arrays.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn terms_of(
    call: &Call<'_>,
    alpha: *const sunzi_matrix,
    beta: *const sunzi_matrix,
) -> Outcome<Terms> {
    // SAFETY: by contract.
    let (alpha, beta) = unsafe { (scalar(call, "alpha", alpha)?, scalar(call, "beta", beta)?) };
    Ok(Terms { alpha, beta })
}
