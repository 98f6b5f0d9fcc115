//! The verbs with accuracy by norms, for tests of what holds of it alone.

use sunzi::distributed::{DistCholeskyOptions, DistOptions};
use sunzi::plans::{Plan, ProductPlanOptions, plan_syrk_with};
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, GemmOptions, Matrix, MatrixView, Result, Symmetric, SymmetricMatrix,
    SyrkOptions, cholesky_with, solve_with, syrk_with,
};

fn factors() -> CholeskyOptions {
    CholeskyOptions::new().accuracy(Accuracy::Norm)
}

pub fn cholesky<'a>(ctx: &Context, a: impl Into<Symmetric<'a>>, bits: u32) -> Result<Cholesky> {
    Ok(cholesky_with(ctx, a, bits, &factors())?.result)
}

pub fn solve(ctx: &Context, a: &Matrix, b: &Matrix, bits: u32) -> Result<Matrix> {
    Ok(solve_with(ctx, a, b, bits, &factors())?.result)
}

pub fn plan_syrk(ctx: &Context, rows: usize, cols: usize, bits: u32) -> Result<Plan> {
    plan_syrk_with(ctx, (rows, cols), bits, &ProductPlanOptions::new().accuracy(Accuracy::Norm))
}

pub fn syrk_options<'a>() -> SyrkOptions<'a> {
    SyrkOptions::new().accuracy(Accuracy::Norm)
}

pub fn gemm_options<'a>() -> GemmOptions<'a> {
    GemmOptions::new().accuracy(Accuracy::Norm)
}

pub fn dist_options<'a>() -> DistOptions<'a> {
    DistOptions::new().accuracy(Accuracy::Norm)
}

pub fn dist_factors() -> DistCholeskyOptions {
    DistCholeskyOptions::new().accuracy(Accuracy::Norm)
}

pub fn syrk<'a>(ctx: &Context, p: impl Into<MatrixView<'a>>, bits: u32) -> Result<SymmetricMatrix> {
    Ok(syrk_with(ctx, p, bits, &syrk_options())?.result)
}
