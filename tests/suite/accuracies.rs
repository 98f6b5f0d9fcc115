//! The accuracy that reports and plans name is the one that was asked for, on every path.

use sunzi::batch::{cholesky_batch_with, gemm_batch_with, syrk_batch_with, trsm_batch_with};
use sunzi::comm::{Transport, local};
use sunzi::distributed::{self, DistCholeskyOptions, DistMatrix, Team, TeamOptions, TileMap};
use sunzi::plans::{ProductPlanOptions, plan_cholesky, plan_gemm_with, plan_solve, plan_syrk_with, plan_trsm};
use sunzi::rug::Float;
use sunzi::{Accuracy, CholeskyOptions, Context, GemmOptions, Matrix, SymmOptions, Symmetric, Syr2kOptions};
use sunzi::{SyrkOptions, TrmmOptions, TrsmOptions};
use sunzi::{
    cholesky_with, gemm_with, inverse_with, solve_with, symm_with, syr2k_with, syrk_with, trmm_with, trsm_with,
};

const BITS: u32 = 200;

/// Diagonally dominant, with entries of one size.
fn matrix(order: usize) -> Matrix {
    Matrix::from_fn(order, order, BITS, |row, col| {
        let value = if row == col { 4.0 * order as f64 } else { 1.0 + ((row + col) % 3) as f64 };
        Float::with_val(BITS, value)
    })
    .unwrap()
}

/// What each verb's report names, for a matrix of that order.
fn of_verbs(ctx: &Context, order: usize, accuracy: Accuracy) -> Vec<(&'static str, Accuracy)> {
    let a = matrix(order);
    let lower = Symmetric::lower(a.view());
    let syrk = SyrkOptions::new().accuracy(accuracy);
    let gemm = GemmOptions::new().accuracy(accuracy);
    let factor = CholeskyOptions::new().accuracy(accuracy);
    let trsm = TrsmOptions::new().accuracy(accuracy);
    vec![
        ("syrk", syrk_with(ctx, &a, BITS, &syrk).unwrap().report.accuracy),
        ("gemm", gemm_with(ctx, &a, &a, BITS, &gemm).unwrap().report.accuracy),
        ("syr2k", syr2k_with(ctx, &a, &a, BITS, &Syr2kOptions::new().accuracy(accuracy)).unwrap().report.accuracy),
        ("symm", symm_with(ctx, lower, &a, BITS, &SymmOptions::new().accuracy(accuracy)).unwrap().report.accuracy),
        ("trmm", trmm_with(ctx, &a, &a, BITS, &TrmmOptions::new().accuracy(accuracy)).unwrap().report.accuracy),
        ("cholesky", cholesky_with(ctx, lower, BITS, &factor).unwrap().report.accuracy),
        ("trsm", trsm_with(ctx, &a, &a, BITS, &trsm).unwrap().report.accuracy),
        ("solve", solve_with(ctx, lower, &a, BITS, &factor).unwrap().report.accuracy),
        ("syrk_batch", syrk_batch_with(ctx, [&a, &a], BITS, &syrk).unwrap().report.accuracy),
        ("gemm_batch", gemm_batch_with(ctx, [(&a, &a)], BITS, &gemm).unwrap().report.accuracy),
        ("cholesky_batch", cholesky_batch_with(ctx, [&a, &a], BITS, &factor).unwrap().report.accuracy),
        ("trsm_batch", trsm_batch_with(ctx, [(&a, &a)], BITS, &trsm).unwrap().report.accuracy),
    ]
}

/// What each plan names.
fn of_plans(ctx: &Context, order: usize, accuracy: Accuracy) -> Vec<(&'static str, Accuracy)> {
    let product = ProductPlanOptions::new().accuracy(accuracy);
    let factor = CholeskyOptions::new().accuracy(accuracy);
    vec![
        ("plan of syrk", plan_syrk_with(ctx, (order, order), BITS, &product).unwrap().accuracy),
        ("plan of gemm", plan_gemm_with(ctx, (order, order), order, BITS, &product).unwrap().accuracy),
        ("plan of cholesky", plan_cholesky(ctx, order, BITS, &factor).unwrap().accuracy),
        ("plan of solve", plan_solve(ctx, (order, 3), BITS, &factor).unwrap().accuracy),
        ("plan of trsm", plan_trsm(ctx, (order, 3), BITS, accuracy).unwrap().accuracy),
    ]
}

#[test]
fn reports_and_plans_name_the_accuracy_that_was_asked_for() {
    let ctx = Context::builder().threads(1).build().unwrap();
    for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
        // On limbs, in lanes of small problems, and in tiles.
        for order in [1, 2, 5, 16, 40, 90] {
            // The bound of an inverse is by the square roots of its diagonal, whatever its factor has.
            let a = matrix(order);
            let options = CholeskyOptions::new().accuracy(accuracy);
            let inverse = inverse_with(&ctx, Symmetric::lower(a.view()), BITS, &options).unwrap();
            assert_eq!(inverse.report.accuracy, Accuracy::Norm, "{order} rows");
            let found = of_verbs(&ctx, order, accuracy).into_iter().chain(of_plans(&ctx, order, accuracy));
            for (what, found) in found {
                assert_eq!(found, accuracy, "{what}, {order} rows");
            }
        }
    }
}

#[test]
fn factors_over_ranks_name_it_too() {
    for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
        let found = local::run(2, |rank| {
            let ctx = Context::builder().threads(1).build().unwrap();
            let team = Team::new(rank.split(0).unwrap(), TeamOptions::new()).unwrap();
            let whole = matrix(20);
            let a = (rank.rank() == 0).then_some(&whole);
            let a = DistMatrix::scatter(team.world(), 0, a, TileMap::symmetric(20, 8), BITS).unwrap();
            let options = DistCholeskyOptions::default().accuracy(accuracy);
            distributed::cholesky_with(&ctx, &team, &a, BITS, &options).unwrap().report.accuracy
        });
        assert_eq!(found, [accuracy; 2]);
    }
}
