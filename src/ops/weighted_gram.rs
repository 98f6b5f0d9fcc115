//! `weighted_gram`: `Q := alpha * P^T diag(d) P + beta * C`, a symmetric matrix, for weights `d` of either sign.
//!
//! The page of the verb: its forms, its contract. It is one triangle of a product of two operands, `product::weights`;
//! everything else is that of every product, `ops::product`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Destination, MatrixView, SymmetricDestination, SymmetricMatrix};
use crate::ops::product::call;
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::plan::{Plan, PlanRequest, ProductPlanOptions, larger_refusal, plan_request, plan_size};
use crate::ops::product::problem::{ProductOperand, ProductProblem, ProductSize};
use crate::ops::product::report::{Outcome, Report};
use crate::ops::product::weights::{WeightedOperand, weights_of};
use crate::ops::syrk::SyrkOptions;
use std::time::Instant;

/// `Q := P^T diag(d) P`; see [`weighted_gram_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?; // column by column
/// let d = Matrix::from_f64s(2, 1, 128, &[10.0, -1.0])?;
/// let q = sunzi::weighted_gram(&ctx, &p, &d, 128)?;
/// assert_eq!(q.view().to_f64s(), [6.0, 22.0, 22.0, 74.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`weighted_gram_with`].
pub fn weighted_gram<'a, 'd>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    d: impl Into<MatrixView<'d>>,
    precision_bits: u32,
) -> Result<SymmetricMatrix> {
    Ok(weighted_gram_with(ctx, p, d, precision_bits, &SyrkOptions::default())?.result)
}

/// `Q := alpha * P^T diag(d) P + beta * C` for a big-float matrix `P`, a vector `d` of weights and a symmetric `C`,
/// rounded to `precision_bits` bits.
///
/// Weighted least squares and the normal equations of interior-point methods (`A D A^T`, with
/// [`crate::Op::Transpose`]) have this form.
///
/// Shapes: `p` is `K x N` (either may be 0), read only; `d` has `K` entries, as a column or a row, of either sign, at a
/// precision of its own. With [`crate::Op::Transpose`], `p` is `N x K` and the result is `P diag(d) P^T`. The result
/// and `accumulate` are `N x N`; one triangle is computed and mirrored, and `uplo` does not affect the bits.
///
/// Accuracy: componentwise, `|computed - exact|_ij <= 2^(1 - precision_bits) (|P|^T |D| |P|)_ij` or, with
/// [`Accuracy::Norm`](crate::Accuracy::Norm), `2^(1 - precision_bits) r_i r_j` with `r_i^2 = (P^T |D| P)_ii`. With
/// scalars the first bound becomes `2^(1 - precision_bits) (|alpha| |P|^T |D| |P| + |beta| |C|)_ij`. The weighted
/// matrix is exact: only its scaling and the result are rounded. With `exact_integers`, matrix and weights are integers
/// and the result is exact. The exponents of the weights may spread over any number of bits, and a row of weight 0 adds
/// nothing to the result or to the bounds. Matrices hold neither infinities nor NaN.
///
/// Cost: between half and five eighths of the word products of [`crate::gemm_with`], and one multiplication for each
/// entry of `P`. Memory: that of a product; in addition the weighted matrix, whose precision is the sum of those of `P`
/// and `d`, and a word for each entry of `P`.
///
/// ```
/// use sunzi::{Context, Matrix, Op, Symmetric, SyrkOptions};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(1, 3, 128, &[1.0, 2.0, 3.0])?;
/// let d = Matrix::from_f64s(3, 1, 64, &[4.0, 0.0, -0.5])?;
/// let identity = Matrix::identity(1, 128)?;
/// let options = SyrkOptions::new().op(Op::Transpose).accumulate(Symmetric::lower(&identity));
/// let q = sunzi::weighted_gram_with(&ctx, &a, &d, 128, &options)?; // A D A^T + I
/// assert_eq!(q.result.view().to_f64s(), [0.5]);
/// assert_eq!(q.report.operation, "weighted_gram");
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::syrk_with`]; [`crate::Error::ShapeMismatch`] also if `d` does not have `K` entries.
pub fn weighted_gram_with<'a, 'd>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    d: impl Into<MatrixView<'d>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
) -> Result<Outcome<SymmetricMatrix>> {
    let mut result = SymmetricMatrix::default();
    let report = weighted_gram_into(ctx, p, d, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`weighted_gram_with`] into the caller's memory, as [`crate::syrk_into`].
///
/// # Errors
/// As [`weighted_gram_with`] and [`crate::syrk_into`].
pub fn weighted_gram_into<'a, 'd, 'r>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    d: impl Into<MatrixView<'d>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    result: impl Into<SymmetricDestination<'r>>,
) -> Result<Report> {
    let product = WeightedProduct::new(ctx, p.into(), d.into(), precision_bits, options)?;
    call::fill_symmetric(result.into(), |result, mirrored| product.run(result, mirrored))
}

/// The plan of [`weighted_gram`] for a `rows x cols` operand; `operand_bits` is the precision of the matrix plus that
/// of the weights.
///
/// ```
/// use sunzi::{Context, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_weighted_gram(&ctx, 1000, 100, 512, 256, &plans::ProductPlanOptions::new())?;
/// assert_eq!((plan.operation, plan.contracted, plan.rows, plan.cols), ("weighted_gram", 1000, 100, 100));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::plans::plan_syrk_with`].
pub fn plan_weighted_gram(
    ctx: &Context,
    rows: usize,
    cols: usize,
    operand_bits: u32,
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    let half = Some(SyrkOptions::default().uplo);
    let size = ProductSize { contracted: rows, rows: cols, cols, triangle: false, half };
    let bytes = WeightedOperand::bytes(rows.saturating_mul(cols), rows, cols, operand_bits);
    let plan = plan_size(&ctx.holding(bytes), size, precision_bits, options)?;
    Ok(Plan { planned_bytes: plan.planned_bytes.saturating_add(bytes), ..plan })
}

/// A call whose operands have been checked.
struct WeightedProduct<'a> {
    ctx: &'a Context,
    p: ProductOperand<'a>,
    weights: MatrixView<'a>,
    precision_bits: u32,
    options: &'a SyrkOptions<'a>,
    epilogue: Epilogue<'a>,
}

impl<'a> WeightedProduct<'a> {
    fn new(
        ctx: &'a Context,
        p: MatrixView<'a>,
        d: MatrixView<'a>,
        precision_bits: u32,
        options: &'a SyrkOptions<'a>,
    ) -> Result<WeightedProduct<'a>> {
        let p = ProductOperand::new(p, options.op);
        let weights = weights_of(d, p.view.rows())?;
        let view = options.accumulate.map(|matrix| matrix.triangle_view(options.uplo, "accumulate")).transpose()?;
        let addend = view.map(|view| AddedMatrix::Triangle(view, options.uplo));
        let epilogue = Epilogue::new(options.alpha, options.beta, addend);
        let product = WeightedProduct { ctx, p, weights, precision_bits, options, epilogue };
        product.problem([p; 2]).check(ctx.maximum_modulus_bits())?;
        Ok(product)
    }

    fn problem<'p>(&'p self, operands: [ProductOperand<'p>; 2]) -> ProductProblem<'p> {
        let SyrkOptions { uplo, exact_integers, accuracy, hooks, .. } = *self.options;
        let problem = ProductProblem::half(operands, uplo, self.precision_bits);
        ProductProblem { epilogue: self.epilogue, exact_integers, accuracy, hooks, ..problem }
    }

    fn run(&self, result: Destination<'_>, mirrored: bool) -> Result<Report> {
        let (start, p, weights) = (Instant::now(), self.p, self.weights);
        let bytes = WeightedOperand::bytes_of(&p.view, &weights);
        let inner = self.ctx.holding(bytes);
        if let Err(refusal) = self.ctx.admit(bytes) {
            let unweighted = self.problem([p; 2]);
            let request = PlanRequest::of(&unweighted, unweighted.scaled_bits());
            larger_refusal(Err(refusal), plan_request(&inner, &request))?;
        }
        let operand = WeightedOperand::new(self.ctx, p.view, weights, self.options.exact_integers)?;
        let operands = operand.views().map(|view| ProductOperand { view, ..p });
        let report = call::run(&inner, &ProductProblem { mirrored, ..self.problem(operands) }, result)?;
        let planned_bytes = report.planned_bytes.saturating_add(bytes);
        Ok(Report { planned_bytes, seconds: start.elapsed().as_secs_f64(), ..report })
    }
}
