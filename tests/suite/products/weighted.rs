//! Weighted Gram matrices: the bits and the bounds on every path, against exact sums.

use crate::common::oracle::{Exact, Factors, assert_beside_terms, expected, expected_integers, magnitude, mirrored};
use crate::common::{KINDS, Kind, Rng, effort, forced, integer_matrix, kernel_names, matrix};
use rug::{Float, Integer};
use std::cmp::Ordering;
use std::sync::Arc;
use sunzi::advanced::Hooks;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::batch::{WeightedGramProblem, weighted_gram_batch_with};
use sunzi::comm::{Transport, local};
use sunzi::distributed::{self, DistOptions, Team, TeamOptions};
use sunzi::plans::{ProductPlanOptions, plan_weighted_gram};
use sunzi::verify::{VerifyOptions, verify_weighted_gram};
use sunzi::{
    Accuracy, Context, Error, Matrix, Op, Symmetric, SymmetricDestination, SyrkOptions, Uplo, weighted_gram,
    weighted_gram_into, weighted_gram_with,
};

/// Weights of both signs, spread over `spread` bits, about one in seven of them 0.
fn weights(count: usize, bits: u32, spread: usize, seed: u64) -> Matrix {
    let mut rng = Rng::new(seed);
    let mut weights = Matrix::zeros(count, 1, bits).unwrap();
    for row in (0..count).filter(|row| row % 7 != 4) {
        let exponent = rng.within(spread as i64 + 1) - i64::from(bits);
        weights.set_integer_exponent(row, 0, &(rng.integer(bits) | 1u32), exponent).unwrap();
    }
    weights
}

/// `X` and `Y` with `P^T diag(d) P = X^T Y`, each within a factor of 2 of the other in size. Rows of weight 0 are as
/// small in `X` as makes no difference.
fn operands(p: &Matrix, d: &Matrix) -> (Matrix, Matrix) {
    let bits = p.precision_bits() + d.precision_bits();
    let shift = |row: usize| d.float(row, 0).get_exp().unwrap_or(0).div_euclid(2);
    let places = || (0..p.cols()).flat_map(|col| (0..p.rows()).map(move |row| (row, col)));
    let exponents = places().filter_map(|(row, col)| Some(p.float(row, col).get_exp()? + shift(row)));
    let least = exponents.min().unwrap_or(0);
    let (mut x, mut y) = (
        Matrix::zeros(p.rows(), p.cols(), p.precision_bits()).unwrap(),
        Matrix::zeros(p.rows(), p.cols(), bits).unwrap(),
    );
    for (row, col) in places() {
        let (entry, weight) = (p.float(row, col), d.float(row, 0));
        let product = Float::with_val(bits, &entry * &weight) >> shift(row);
        let kept = match entry.get_exp() {
            Some(exponent) if weight.is_zero() => entry << (least - 100 - exponent),
            _ => entry << shift(row),
        };
        x.set_float(row, col, &kept).unwrap();
        y.set_float(row, col, &product).unwrap();
    }
    (x, y)
}

/// The terms of an entry.
fn terms(p: &Matrix, d: &Matrix, row: usize, col: usize) -> Vec<Exact> {
    let entry = |k: usize, col: usize| Exact::entry(&p.view(), k, col);
    (0..p.rows()).map(|k| entry(k, row).times(&entry(k, col)).times(&Exact::entry(&d.view(), k, 0))).collect()
}

fn norms<'a>() -> SyrkOptions<'a> {
    SyrkOptions::new().accuracy(Accuracy::Norm)
}

/// The shapes at and beside the edges of blocks, and one of several bands.
const SHAPES: [(usize, usize); 13] =
    [(0, 0), (0, 3), (3, 0), (1, 1), (5, 1), (1, 7), (20, 7), (8, 8), (7, 9), (65, 17), (33, 64), (64, 65), (12, 150)];

#[test]
fn bits_are_the_expected_ones_on_every_kernel_in_every_form() {
    let contexts = kernel_names().into_iter().enumerate().map(|(at, name)| forced(name, 1 + at % 2).build().unwrap());
    let free = Context::builder().threads(2).build().unwrap();
    let checked = Context::builder().threads(2).self_check(true).freivalds(true).build().unwrap();
    let contexts = contexts.chain([free, checked]).collect::<Vec<_>>();
    let (alpha, beta) = (Float::with_val(70, 7) / 3u32, Float::with_val(20, -0.375));
    for (case, &(rows, cols)) in SHAPES.iter().enumerate() {
        let mut rng = Rng::new(case as u64);
        let kind = if rows * cols > 300 { rng.pick(&KINDS[..3]) } else { KINDS[case % KINDS.len()] };
        let bits = rng.pick(&[53, 64, 100, 256]);
        let p = matrix(kind, rows, cols, rng.pick(&[53, 100, 192]), rng.word());
        let d = weights(rows, rng.pick(&[2, 53, 130]), rng.pick(&[1, 40, 1500]), rng.word());
        let added = matrix(Kind::Unit, cols, cols, 80, rng.word());
        let (x, y) = operands(&p, &d);
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let added = mirrored(&added, uplo);
            let factors = Factors { alpha: Some(&alpha), beta: Some(&beta), accumulate: Some(&added) };
            for factors in [Factors::default(), factors] {
                let want = mirrored(&expected(&x.view(), &y.view(), bits, factors), Uplo::Lower);
                for (at, ctx) in contexts.iter().enumerate() {
                    let op = if (at + case) % 2 == 0 { Op::NoTranspose } else { Op::Transpose };
                    let stored = if op == Op::Transpose { p.transposed() } else { p.view() };
                    let weights = if at % 2 == 0 { d.view() } else { d.transposed() };
                    let options = norms().op(op).uplo(uplo).alpha(factors.alpha).beta(factors.beta);
                    let options = options.accumulate(factors.accumulate.map(|added| Symmetric::triangle(added, uplo)));
                    let got = weighted_gram_with(ctx, stored, weights, bits, &options).unwrap();
                    assert!(got.result == want, "{kind:?} {rows} x {cols}, {uplo:?}, {op:?}, context {at}");
                    assert_eq!((got.report.operation, got.report.accuracy), ("weighted_gram", Accuracy::Norm));
                }
            }
        }
    }
}

#[test]
fn entries_meet_the_componentwise_bound_with_the_same_bits_on_every_path() {
    let tallest = if effort() == 1 { 40 } else { 90 };
    for (case, &(rows, cols, spread)) in
        [(9, 5, 1), (tallest, 9, 4000), (33, 40, 60), (17, 24, 9000), (5, 150, 300)].iter().enumerate()
    {
        let kind = [Kind::Unit, Kind::Graded, Kind::ZeroColumns][case % 3];
        let (p, d) = (matrix(kind, rows, cols, 100, case as u64), weights(rows, 64, spread, 7 + case as u64));
        let one = Context::builder().threads(1).build().unwrap();
        let want = weighted_gram(&one, &p, &d, 90).unwrap();
        for (row, col) in (0..cols).flat_map(|col| (0..cols).map(move |row| (row, col))) {
            let got = Exact::entry(&want.view(), row, col);
            assert_beside_terms(&got, &terms(&p, &d, row, col), 90, &format!("case {case}, ({row}, {col})"));
        }
        let names = kernel_names();
        for (at, ctx) in names.iter().map(|name| forced(name, 2).build().unwrap()).enumerate() {
            let uplo = if at % 2 == 0 { Uplo::Upper } else { Uplo::Lower };
            let got = weighted_gram_with(&ctx, &p, &d, 90, &SyrkOptions::new().uplo(uplo)).unwrap().result;
            assert!(got == want, "case {case}, {}", names[at]);
        }
    }
}

#[test]
fn a_bound_by_norms_holds_and_is_nearly_reached() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let (bits, mut worst) = (53, 0.0f64);
    for seed in 0..30 {
        let (kind, rows) = (KINDS[seed as usize % KINDS.len()], 1 + seed as usize % 4);
        let (p, mut d) = match seed {
            // A product just below the middle of two neighbouring numbers.
            0 => (Matrix::from_fn(1, 4, 120, |_, _| Float::with_val(120, 1)).unwrap(), weights(1, 120, 0, 0)),
            _ => (matrix(kind, rows, 4, 120, seed), weights(rows, 70, 900, seed)),
        };
        if seed == 0 {
            let below = (Float::with_val(120, 1) << 53) + 1u32 - (Float::with_val(120, 1) >> 40);
            d.set_float(0, 0, &(below >> 53)).unwrap();
        }
        let q = weighted_gram_with(&ctx, &p, &d, bits, &norms()).unwrap().result;
        let size = |col: usize| terms(&p, &d, col, col).iter().map(magnitude).fold(Exact::zero(), Exact::plus);
        for (row, col) in (0..4).flat_map(|col| (0..4).map(move |row| (row, col))) {
            let sum = terms(&p, &d, row, col).into_iter().fold(Exact::zero(), Exact::plus);
            let error = sum.negated().plus(Exact::entry(&q.view(), row, col));
            let unit = Exact { integer: Integer::from(1), exponent: 2 - 2 * i64::from(bits) };
            let bound = size(row).times(&size(col)).times(&unit);
            assert_ne!(error.times(&error).compare(&bound), Ordering::Greater, "seed {seed}, ({row}, {col})");
            if error.integer != 0 {
                worst = worst.max((error.times(&error).round(53) / bound.round(53)).to_f64().sqrt());
            }
        }
    }
    assert!(worst > 0.499, "the largest error is {worst} of its bound");
}

#[test]
fn integers_are_exact() {
    let ctx = Context::builder().threads(2).build().unwrap();
    for (case, (rows, cols)) in [(1, 1), (9, 8), (40, 17)].into_iter().enumerate() {
        let (p, d) = (integer_matrix(rows, cols, 70, case as u64), integer_matrix(rows, 1, 33, 5 + case as u64));
        let mut y = Matrix::zeros(rows, cols, 103).unwrap();
        for (row, col) in (0..cols).flat_map(|col| (0..rows).map(move |row| (row, col))) {
            y.set_float(row, col, &Float::with_val(103, &p.float(row, col) * &d.float(row, 0))).unwrap();
        }
        let options = SyrkOptions::new().exact_integers(true);
        let got = weighted_gram_with(&ctx, &p, &d, 20, &options).unwrap().result.into_matrix();
        assert!(got == expected_integers(&p.view(), &y.view(), &got, Factors::default()), "{rows} x {cols}");
        let check = VerifyOptions::new().exact_integers(true);
        assert!(verify_weighted_gram(&ctx, &p, &d, &got, 20, &check).unwrap().prime.is_some());
    }
    let half = Matrix::from_f64s(1, 1, 60, &[0.5]).unwrap();
    let options = SyrkOptions::new().exact_integers(true);
    let refused = weighted_gram_with(&ctx, &Matrix::identity(1, 60).unwrap(), &half, 60, &options);
    assert!(matches!(refused, Err(Error::NotInteger { .. })), "{refused:?}");
}

#[test]
fn a_limit_is_kept_and_the_least_one_suffices() {
    let (rows, cols, bits) = (300, 150, 128);
    let (p, d) = (matrix(Kind::Unit, rows, cols, bits, 3), weights(rows, bits, 9, 4));
    let free = Context::builder().threads(2).build().unwrap();
    let want = weighted_gram_with(&free, &p, &d, bits, &norms()).unwrap();
    let options = ProductPlanOptions::new().accuracy(Accuracy::Norm);
    let plan = plan_weighted_gram(&free, rows, cols, 2 * bits, bits, &options).unwrap();
    assert_eq!(plan.planned_bytes, want.report.planned_bytes);
    let (mut limit, mut cuts) = (plan.planned_bytes - 1, 0);
    loop {
        let ctx = Context::builder().threads(2).memory_bytes(limit).build().unwrap();
        match weighted_gram_with(&ctx, &p, &d, bits, &norms()) {
            Ok(got) => {
                assert!(got.report.planned_bytes <= limit && got.result == want.result, "{limit} bytes");
                (limit, cuts) = (limit / 2, cuts + 1);
            }
            Err(Error::MemoryLimit { minimum_bytes, .. }) => {
                let ctx = Context::builder().threads(2).memory_bytes(minimum_bytes).build().unwrap();
                let got = weighted_gram_with(&ctx, &p, &d, bits, &norms()).unwrap();
                assert!(got.report.planned_bytes <= minimum_bytes && got.result == want.result);
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(cuts > 0);
}

#[test]
fn one_triangle_is_written_and_one_read() {
    let ctx = Context::builder().threads(2).build().unwrap();
    for (rows, cols) in [(6, 5), (30, 140)] {
        let (p, d) = (matrix(Kind::Unit, rows, cols, 80, 1), weights(rows, 80, 5, 2));
        let whole = weighted_gram_with(&ctx, &p, &d, 80, &norms()).unwrap().result;
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let mut result = Matrix::from_fn(cols, cols, 80, |_, _| Float::with_val(80, 99)).unwrap();
            let target = SymmetricDestination::Triangle((&mut result).into());
            weighted_gram_into(&ctx, &p, &d, 80, &norms().uplo(uplo), target).unwrap();
            for (row, col) in (0..cols).flat_map(|col| (0..cols).map(move |row| (row, col))) {
                let inside = if uplo == Uplo::Lower { row >= col } else { row <= col };
                let want = if inside { whole.view().get(row, col).to_float(80) } else { Float::with_val(80, 99) };
                assert_eq!(result.float(row, col), want, "{uplo:?}, ({row}, {col})");
            }
        }
    }
}

#[test]
fn weights_of_another_number_are_refused() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let p = Matrix::zeros(3, 2, 64).unwrap();
    for (rows, cols) in [(2, 1), (1, 2), (3, 3), (0, 0), (4, 1)] {
        let d = Matrix::zeros(rows, cols, 64).unwrap();
        let refused = weighted_gram(&ctx, &p, &d, 64);
        assert!(matches!(refused, Err(Error::ShapeMismatch { operation: "weighted_gram", .. })), "{rows} x {cols}");
        let q = Matrix::zeros(2, 2, 64).unwrap();
        assert!(verify_weighted_gram(&ctx, &p, &d, &q, 64, &VerifyOptions::new()).is_err());
    }
}

#[test]
fn damage_in_a_plane_is_found() {
    let (p, d) = (matrix(Kind::Unit, 40, 140, 100, 1), weights(40, 60, 3, 2));
    // A whole plane of one prime, in both triangles.
    let fault = |window: &mut [u64], plane_words: usize| window[..plane_words].rotate_left(plane_words / 2 + 1);
    for name in kernel_names() {
        let options = norms().hooks(Hooks::fault(&fault));
        for (self_check, freivalds) in [(true, false), (false, true)] {
            let ctx = forced(name, 2).self_check(self_check).freivalds(freivalds).build().unwrap();
            let refused = weighted_gram_with(&ctx, &p, &d, 100, &options);
            let found = matches!(refused, Err(Error::SelfCheck { .. } | Error::Verification(..)));
            assert!(found, "{name}, self-check {self_check}, Freivalds {freivalds}");
            weighted_gram_with(&ctx, &p, &d, 100, &norms()).unwrap();
        }
    }
}

#[test]
fn wrong_results_are_found_and_right_ones_pass() {
    let ctx = Context::builder().threads(2).build().unwrap();
    for (case, kind) in [Kind::Unit, Kind::Graded, Kind::ZeroColumns].into_iter().enumerate() {
        let (p, d) = (matrix(kind, 30, 12, 100, case as u64), weights(30, 64, 2000, case as u64));
        for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
            let options = SyrkOptions::new().accuracy(accuracy);
            let mut q = weighted_gram_with(&ctx, &p, &d, 90, &options).unwrap().result.into_matrix();
            let check = VerifyOptions::new();
            assert!(verify_weighted_gram(&ctx, &p, &d, &q, 90, &check).unwrap().worst_entry <= 1.0);
            let place = (0..12).find(|&at| !q.float(at, at).is_zero()).unwrap();
            let wrong = q.float(place, place) * 1.0001f64;
            q.set_float(place, place, &wrong).unwrap();
            let refused = verify_weighted_gram(&ctx, &p, &d, &q, 90, &check);
            assert!(matches!(refused, Err(Error::Verification(..))), "{kind:?}, {accuracy:?}");
        }
    }
}

#[test]
fn ranks_give_the_bits_of_one_process() {
    let one = Context::builder().threads(1).build().unwrap();
    for (case, (rows, cols, ranks, per_node)) in
        [(0, 5, 2, 1), (20, 9, 1, 1), (41, 30, 3, 2), (100, 150, 4, 2), (64, 70, 4, 1)].into_iter().enumerate()
    {
        let (p, d) = (matrix(Kind::Graded, rows, cols, 100, case as u64), weights(rows, 64, 300, case as u64));
        for (accuracy, uplo) in [(Accuracy::Norm, Uplo::Lower), (Accuracy::Entrywise, Uplo::Upper)] {
            let want = weighted_gram_with(&one, &p, &d, 90, &SyrkOptions::new().accuracy(accuracy)).unwrap().result;
            for freivalds in [false, true] {
                let got = local::run(ranks, |rank| {
                    let ctx = Context::builder().threads(1).freivalds(freivalds).self_check(freivalds).build().unwrap();
                    let options = TeamOptions::new().ranks_per_node(per_node);
                    let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
                    let own = rows * rank.rank() / ranks..rows * (rank.rank() + 1) / ranks;
                    let block = p.view().block(own.clone(), 0..cols).unwrap();
                    let weights = d.view().block(own, 0..1).unwrap();
                    let options = DistOptions::new().accuracy(accuracy).uplo(uplo);
                    let q = distributed::weighted_gram(&ctx, &mut team, &[block], &[weights], 90, &options).unwrap();
                    let whole = q.result.gather(team.world(), 0).unwrap();
                    team.close().unwrap();
                    whole
                });
                let whole = got.into_iter().next().flatten().unwrap();
                assert!(*want.as_matrix() == whole, "case {case}, {accuracy:?}, {ranks} ranks, checks {freivalds}");
            }
        }
    }
}

#[test]
fn devices_give_the_bits_of_the_processor() {
    let cpu = Context::builder().threads(1).build().unwrap();
    for (case, (rows, cols)) in [(1, 1), (30, 17), (90, 70), (40, 150)].into_iter().enumerate() {
        let (p, d) = (matrix(Kind::Unit, rows, cols, 100, case as u64), weights(rows, 64, 30, case as u64));
        let added = mirrored(&matrix(Kind::Unit, cols, cols, 80, 9), Uplo::Lower);
        for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let options = SyrkOptions::new().accuracy(accuracy).uplo(uplo);
                let options =
                    if case % 2 == 0 { options } else { options.accumulate(Symmetric::triangle(&added, uplo)) };
                let want = weighted_gram_with(&cpu, &p, &d, 90, &options).unwrap().result;
                for (family, freivalds) in [("cuda-f64", false), ("cuda-i8", true)] {
                    let device =
                        || Arc::new(SoftDevice::new(SoftOptions::default())) as Arc<dyn sunzi::devices::Device>;
                    let devices = (0..1 + case % 2).map(|_| device()).collect();
                    let builder = Context::builder().threads(2).devices(devices).kernel(family);
                    let ctx = builder.freivalds(freivalds).self_check(freivalds).build().unwrap();
                    let got = weighted_gram_with(&ctx, &p, &d, 90, &options).unwrap();
                    assert!(got.result == want, "{rows} x {cols}, {family}, {uplo:?}, {accuracy:?}");
                }
            }
        }
    }
}

#[test]
fn a_batch_has_the_bits_of_single_calls_within_its_limit() {
    let one = Context::builder().threads(1).build().unwrap();
    let shapes = [(3, 2), (0, 4), (5, 0), (30, 9), (12, 40), (3, 2)];
    let operand = |at: usize| matrix(Kind::Unit, shapes[at].0, shapes[at].1, 100, at as u64);
    let ps = (0..shapes.len()).map(operand).collect::<Vec<_>>();
    let ds = (0..shapes.len()).map(|at| weights(shapes[at].0, 60, 20, at as u64)).collect::<Vec<_>>();
    let problems = || ps.iter().zip(&ds).map(|(p, d)| WeightedGramProblem::new(p, d));
    for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
        let options = SyrkOptions::new().accuracy(accuracy).uplo(Uplo::Upper);
        let want = |at: usize| weighted_gram_with(&one, &ps[at], &ds[at], 90, &options).unwrap().result;
        let ctx = Context::builder().threads(2).build().unwrap();
        let all = weighted_gram_batch_with(&ctx, problems(), 90, &options).unwrap();
        assert_eq!((all.report.operation, all.report.failed), ("weighted_gram_batch", 0));
        let limited = Context::builder().threads(2).memory_bytes(1).build().unwrap();
        let refused = weighted_gram_batch_with(&limited, problems(), 90, &options);
        let Err(Error::MemoryLimit { minimum_bytes, .. }) = refused else { panic!("a limit of one byte suffices") };
        let limited = Context::builder().threads(2).memory_bytes(minimum_bytes).build().unwrap();
        let least = weighted_gram_batch_with(&limited, problems(), 90, &options).unwrap();
        for (at, (all, least)) in all.result.into_iter().zip(least.result).enumerate() {
            assert!(all.unwrap() == want(at) && least.unwrap() == want(at), "{accuracy:?}, problem {at}");
        }
    }
    let short = Matrix::zeros(2, 1, 60).unwrap();
    let failed = weighted_gram_batch_with(
        &one,
        [WeightedGramProblem::new(&ps[0], &ds[0]), WeightedGramProblem::new(&ps[0], &short)],
        90,
        &SyrkOptions::new(),
    )
    .unwrap();
    assert!(failed.result[0].is_ok() && matches!(failed.result[1], Err(Error::Problem { .. })));
}
