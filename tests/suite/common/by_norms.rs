//! The verbs with accuracy by norms, for tests of what holds of it alone.

use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Matrix, Plan, ProductPlanOptions, Result, Symmetric, cholesky_with,
    plan_syrk_with, solve_with,
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
