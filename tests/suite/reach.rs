//! Precisions at the end of the preferred kernel's moduli, and beyond it on the kernels that reach further.
//!
//! Which kernel is the preferred one is the processor's affair: the last test runs the others once more as a processor
//! with AVX2 alone would, whose preferred kernel is not the one that reaches furthest.

use crate::common::definite::Known;
use crate::common::{Kind, by_norms, effort, matrix};
use rug::Integer;
use sunzi::advanced::kernels;
use sunzi::advanced::tile::TileMap;
use sunzi::batch::{cholesky_batch, syrk_batch};
use sunzi::comm::{Transport, local};
use sunzi::distributed::{self, DistMatrix, DistOptions, RankGrid, Team, TeamOptions};
use sunzi::plans::{plan_cholesky, plan_inverse, plan_solve, plan_solve_refined};
use sunzi::{
    Accuracy, CholeskyOptions, Context, Error, GemmOptions, LdltOptions, Matrix, RefineOptions, SyrkOptions, Uplo,
    cholesky_with, gemm_with, inverse, inverse_with, ldlt_with, solve_refined_with, solve_with, syr2k, syrk_with, trmm,
    trsm,
};

/// Contracted rows and columns of products, and rows of factors: none goes past planes.
const ROWS: usize = 120;
const COLS: usize = 48;
const ORDER: usize = 72;

fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

/// The kernel whose code is nothing but the definition, which reaches as far as any other.
fn reference() -> Context {
    Context::builder().threads(1).kernel("reference").build().unwrap()
}

/// Moduli of all kernels that a free context may choose: the preferred one's, then of each that reaches further than
/// all before it. The reference, which takes minutes where these take seconds, is never chosen.
fn reaches() -> Vec<(&'static str, u32)> {
    let own = context().kernel();
    let mut reaches = vec![(own.name(), own.maximum_modulus_bits())];
    for kernel in kernels::available().into_iter().filter(|kernel| kernel.name() != "reference") {
        if kernel.maximum_modulus_bits() > reaches[reaches.len() - 1].1 {
            reaches.push((kernel.name(), kernel.maximum_modulus_bits()));
        }
    }
    reaches
}

/// The last precision of a product of [`ROWS`] rows with moduli of so many bits: `2 (b + 8) + 2` of them are needed.
fn last_of_product(modulus_bits: u32) -> u32 {
    (modulus_bits - 2) / 2 - 8
}

/// The last precision of a factor: `2 (b + 2) + 3`.
fn last_of_factor(modulus_bits: u32) -> u32 {
    (modulus_bits - 3) / 2 - 2
}

fn assert_refused<T>(result: Result<T, Error>, bits: u32, most: u32) {
    match result {
        Err(Error::Precision { precision_bits, maximum_bits, .. }) => {
            assert_eq!((precision_bits, maximum_bits), (bits.into(), most.into()));
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{bits} bits"),
    }
}

#[test]
fn products_go_on_with_the_next_kernel() {
    let (ctx, reaches) = (context(), reaches());
    for (at, &(kernel, modulus_bits)) in reaches.iter().enumerate() {
        let last = last_of_product(modulus_bits);
        for (bits, kernel) in [(last, Some(kernel)), (last + 1, reaches.get(at + 1).map(|(name, _)| *name))] {
            let p = matrix(Kind::Unit, ROWS, COLS, bits, 3);
            let q = syrk_with(&ctx, &p, bits, &SyrkOptions::new().accuracy(Accuracy::Norm));
            let plan = by_norms::plan_syrk(&ctx, ROWS, COLS, bits);
            let Some(kernel) = kernel else {
                assert_refused(q, bits, last);
                assert_refused(plan, bits, last);
                continue;
            };
            let (q, plan) = (q.unwrap(), plan.unwrap());
            assert_eq!((q.report.kernel, plan.kernel), (kernel, kernel), "{bits} bits");
            assert_eq!(q.report.planned_bytes, plan.planned_bytes, "{bits} bits");
            let want = syrk_with(&reference(), &p, bits, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap();
            assert!(q.result == want.result, "{bits} bits on {kernel}");
        }
    }
}

#[test]
fn factors_go_on_with_the_next_kernel() {
    let (ctx, reaches) = (context(), reaches());
    for (at, &(kernel, modulus_bits)) in reaches.iter().enumerate() {
        let last = last_of_factor(modulus_bits);
        for (bits, kernel) in [(last, Some(kernel)), (last + 1, reaches.get(at + 1).map(|(name, _)| *name))] {
            let a = Known::Kms.matrix(ORDER, bits);
            let options = CholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(40);
            let l = cholesky_with(&ctx, &a, bits, &options);
            let plan = plan_cholesky(&ctx, ORDER, bits, &options);
            let Some(kernel) = kernel else {
                assert_refused(l, bits, last);
                assert_refused(plan, bits, last);
                continue;
            };
            let (l, plan) = (l.unwrap(), plan.unwrap());
            assert_eq!((l.report.kernel, plan.kernel), (kernel, kernel), "{bits} bits");
            assert_eq!(l.report.planned_bytes, plan.planned_bytes, "{bits} bits");
            let want = cholesky_with(&reference(), &a, bits, &options).unwrap();
            assert!(l.result.factor() == want.result.factor(), "{bits} bits on {kernel}");
        }
    }
}

/// A forced kernel stays, and refuses.
#[test]
fn forced_kernels_end_where_their_moduli_do() {
    for kernel in kernels::available() {
        let ctx = Context::builder().threads(1).kernel(kernel.name()).build().unwrap();
        let last = last_of_product(kernel.maximum_modulus_bits());
        let p = matrix(Kind::Unit, ROWS, 8, last + 1, 3);
        assert_refused(syrk_with(&ctx, &p, last + 1, &SyrkOptions::new().accuracy(Accuracy::Norm)), last + 1, last);
    }
}

/// Norms of the columns decide how long the moduli of exact products are.
#[test]
fn exact_products_go_on_with_the_next_kernel() {
    let (ctx, reaches) = (context(), reaches());
    let options = SyrkOptions::new().accuracy(Accuracy::Norm).exact_integers(true);
    for (at, &(_, modulus_bits)) in reaches.iter().enumerate() {
        for (bits, holds) in [((modulus_bits - 2) / 2, true), ((modulus_bits - 2) / 2 + 1, at + 1 < reaches.len())] {
            // One entry to a column, just below 2 to the power.
            let size = (Integer::from(1) << bits) - 1u32;
            let entries = (0..ROWS * COLS).map(|at| if at / ROWS == at % ROWS { size.clone() } else { 0.into() });
            let p = Matrix::from_integers(ROWS, COLS, bits, &entries.collect::<Vec<_>>()).unwrap();
            let q = syrk_with(&ctx, &p, 2, &options);
            if !holds {
                assert!(matches!(q, Err(Error::Precision { .. })), "{bits} bits");
                continue;
            }
            let want = syrk_with(&reference(), &p, 2, &options).unwrap();
            assert!(q.unwrap().result == want.result, "{bits} bits");
        }
    }
}

/// All verbs in one process, by name.
fn verbs(ctx: &Context, bits: u32) -> Vec<(&'static str, Matrix)> {
    let (a, b) = (matrix(Kind::Unit, 24, 60, bits, 1), matrix(Kind::Unit, 60, 16, bits, 2));
    let graded = matrix(Kind::Graded, 60, 9, bits, 3);
    let (definite, right) = (Known::Kms.matrix(ORDER, bits), matrix(Kind::Unit, ORDER, 4, bits, 4));
    let factor = sunzi::cholesky(ctx, &definite, bits).unwrap();
    let entrywise = CholeskyOptions::new().accuracy(Accuracy::Entrywise).tile_rows(40);
    // With few bits in the factor there are many corrections.
    let options = RefineOptions::new().factor_bits(2000);
    let refined = solve_refined_with(ctx, &definite, &right, bits, &options).unwrap().result;
    let gemm =
        |accuracy, b: &Matrix| gemm_with(ctx, &a, b, bits, &GemmOptions::new().accuracy(accuracy)).unwrap().result;
    let mut all = vec![
        ("gemm", gemm(Accuracy::Norm, &b)),
        ("gemm, entry by entry", gemm(Accuracy::Entrywise, &graded)),
        ("syr2k", syr2k(ctx, &a, &a, bits).unwrap().into_matrix()),
        ("trmm", trmm(ctx, factor.factor(), &right, bits).unwrap()),
        ("trsm", trsm(ctx, factor.factor(), &right, bits).unwrap()),
        ("solve", factor.solve(ctx, &right, bits).unwrap()),
        ("solve, one right side", factor.solve(ctx, right.view().block(0..ORDER, 0..1).unwrap(), bits).unwrap()),
        ("cholesky, entry by entry", cholesky_with(ctx, &definite, bits, &entrywise).unwrap().result.into_factor()),
        ("solve, refined", refined),
        ("inverse", inverse(ctx, &Known::Kms.matrix(16, bits), bits).unwrap().into_matrix()),
    ];
    all.extend(syrk_batch(ctx, [&a, &b, &graded], bits).unwrap().into_iter().map(|q| ("syrk_batch", q.into_matrix())));
    let factors = cholesky_batch(ctx, [&definite, &Known::Minij.matrix(20, bits)], bits).unwrap();
    all.extend(factors.into_iter().map(|l| ("cholesky_batch", l.into_factor())));
    all
}

#[test]
fn every_verb_goes_on_with_the_next_kernel() {
    let reaches = reaches();
    if reaches.len() > 1 {
        let bits = last_of_factor(reaches[0].1) + 1;
        let (free, want) = (verbs(&context(), bits), verbs(&reference(), bits));
        for ((name, found), (_, want)) in free.into_iter().zip(want) {
            assert!(found == want, "{name} at {bits} bits");
        }
    }
}

/// Reports and plans name the kernel that products ran on.
#[test]
fn reports_name_the_next_kernel() {
    let (ctx, reaches) = (context(), reaches());
    if reaches.len() == 1 {
        return;
    }
    let (own, next, bits) = (reaches[0].0, reaches[1].0, last_of_factor(reaches[0].1) + 1);
    let (a, b) = (Known::Kms.matrix(40, bits), matrix(Kind::Unit, 40, 4, bits, 4));
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
    for (columns, kernel) in [(4, next), (1, own)] {
        let b = b.view().block(0..40, 0..columns).unwrap();
        let solved = solve_with(&ctx, &a, b, bits, &options).unwrap().report;
        let plan = plan_solve(&ctx, (40, columns), bits, &options).unwrap();
        // Dot products with one vector have no moduli.
        assert_eq!((solved.kernel, plan.kernel), (kernel, kernel), "{columns} right sides");
    }
    let inverted = inverse_with(&ctx, &a, bits, &options).unwrap().report;
    assert_eq!((inverted.kernel, plan_inverse(&ctx, 40, bits, &options).unwrap().kernel), (next, next));
    assert_eq!(ldlt_with(&ctx, &a, bits, &LdltOptions::new().accuracy(Accuracy::Norm)).unwrap().report.kernel, next);
    // The residuals of refined solves pass the end at some precision near it.
    let options = RefineOptions::new().factor_bits(2000);
    let planned = |bits| plan_solve_refined(&ctx, (40, 4), bits, &options).unwrap().kernel;
    let beyond = (0..20).map(|step| bits - 200 + 16 * step).find(|&bits| planned(bits) == next).unwrap();
    for (bits, kernel) in [(beyond - 16, own), (beyond, next)] {
        let refined = solve_refined_with(&ctx, &a, &b, bits, &options).unwrap().report;
        assert_eq!((refined.kernel, planned(bits)), (kernel, kernel), "{bits} bits");
    }
}

#[test]
fn verbs_over_ranks_go_on_with_the_next_kernel() {
    let reaches = reaches();
    let bits = last_of_product(reaches[0].1) + 1;
    let (p, a) = (matrix(Kind::Unit, ROWS, COLS, bits, 3), Known::Kms.matrix(ORDER, bits));
    let b = matrix(Kind::Unit, ORDER, 16, bits, 4);
    let factor_bits = last_of_factor(reaches[0].1) + 1;
    let want = (reaches.len() > 1).then(|| {
        let ctx = reference();
        let l = sunzi::cholesky(&ctx, &a, bits).unwrap();
        let l_beyond = sunzi::cholesky(&ctx, &a, factor_bits).unwrap();
        let q = syrk_with(&ctx, &p, bits, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap().result;
        (q, l_beyond.into_factor(), l.solve(&ctx, &b, bits).unwrap(), l.into_factor())
    });
    local::run(2, |rank| {
        let (ctx, mut team) = (context(), Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap());
        let rows = rank.rank() * ROWS / 2..(rank.rank() + 1) * ROWS / 2;
        let own = p.view().block(rows, 0..COLS).unwrap();
        let q = distributed::syrk(&ctx, &mut team, &[own], bits, &DistOptions::new().accuracy(Accuracy::Norm));
        let grid = RankGrid::for_ranks(2);
        let scatter = |whole: &Matrix, triangle| {
            let map = TileMap { rows: whole.rows(), cols: whole.cols(), tile_size: 24, grid, triangle };
            DistMatrix::scatter(rank, 0, (rank.rank() == 0).then_some(whole), map, bits).unwrap()
        };
        let l = distributed::cholesky(&ctx, &team, &scatter(&a, Some(Uplo::Lower)), factor_bits);
        let Some((want_q, want_l, want_x, factor)) = &want else {
            assert!(matches!(q, Err(Error::Precision { .. })) && matches!(l, Err(Error::Precision { .. })));
            return;
        };
        let x = distributed::solve(&ctx, &team, &scatter(factor, Some(Uplo::Lower)), &scatter(&b, None), bits).unwrap();
        let (q, l) = (q.unwrap(), l.unwrap());
        assert_eq!((q.report.kernel, l.report.kernel), (reaches[1].0, reaches[1].0));
        let same =
            |found: &DistMatrix, want: &Matrix| found.gather(rank, 0).unwrap().is_none_or(|whole| whole == *want);
        assert!(same(&l.factor, want_l) && same(&x.solution, want_x));
        let whole = q.result.gather(team.world(), 0).unwrap();
        assert!(whole.is_none_or(|whole| whole == *want_q));
        team.close().unwrap();
    });
}

/// The moduli of 5000 bits are those of the slower kernels there, which takes some seconds: with little effort products
/// and all verbs, in one process and over ranks.
#[test]
fn so_it_is_on_a_processor_with_avx2() {
    const VARIABLE: &str = "SUNZI_CPU";
    if !cfg!(target_arch = "x86_64") || std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let left_out: &[&str] = if effort() > 1 { &[] } else { &["exact_products", "factors_go_on", "reports_name"] };
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["reach::", "--skip", "so_it_is"])
        .args(left_out.iter().flat_map(|name| ["--skip", name]))
        .env(VARIABLE, "avx2")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains(&format!("{} passed", 7 - left_out.len())), "{said}");
}
