//! Products and solves above the disks of several ranks.

use super::products::{self, Product};
use super::solve::{self, BITS, context, triangle};
use super::{damage, ended_after, groups};
use crate::common::definite::integer_gram;
use crate::common::{Kind, in_turn};
use std::fs;
use std::path::Path;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{Team, TeamOptions};
use sunzi::out_of_core::{self, OutOfCoreProductOptions, OutOfCoreProductReport, OutOfCoreSolveOptions, SolvePaths};
use sunzi::{Accuracy, CholeskyOptions, Context, Error, Op, Result, Symmetric, TrsmOptions, solve_with, trsm_with};

/// The outcomes of all ranks.
fn run<T: Send>(ranks: usize, call: impl Fn(&Team) -> Result<T> + Sync) -> Vec<Result<T>> {
    local::run(ranks, |rank| {
        let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
        let made = call(&team);
        team.close().unwrap();
        made
    })
}

/// The least limit that all ranks name alike.
fn least<T: std::fmt::Debug>(outcomes: Vec<Result<T>>) -> u64 {
    let least = outcomes.into_iter().map(|outcome| match outcome {
        Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
        other => panic!("{other:?}"),
    });
    let least = least.collect::<Vec<_>>();
    assert!(least.iter().all(|bytes| *bytes == least[0]), "{least:?}");
    least[0]
}

fn multiply(
    case: &products::Case,
    ranks: usize,
    ctx: &Context,
    options: &OutOfCoreProductOptions,
) -> Vec<Result<OutOfCoreProductReport>> {
    run(ranks, |team| case.run_on(ctx, Some(team), options))
}

const PLAIN: Op = Op::NoTranspose;
const TURNED: Op = Op::Transpose;

#[test]
fn products_are_those_of_memory_for_all_numbers_of_ranks_and_limits() {
    let ctx = context(2);
    let shapes = [(0, 3, 2, 8), (1, 1, 1, 8), (70, 17, 9, 8), (90, 80, 33, 16), (5, 0, 4, 8)];
    for (at, (contracted, rows, cols, tile)) in shapes.into_iter().enumerate() {
        let verbs = [(PLAIN, None), (TURNED, None), (PLAIN, Some(TURNED)), (TURNED, Some(PLAIN))];
        for (turn, (a, b)) in verbs.into_iter().enumerate() {
            let product = Product { a, b, precision_bits: 150 };
            let case = products::Case::new(product, contracted, (rows, cols), Kind::Graded);
            let options = products::options(tile);
            // Shapes and verbs meet the numbers of ranks in turns.
            for ranks in in_turn(3, turn + at).map(|which| [2, 3, 5][which]) {
                let limited = |bytes| multiply(&case, ranks, &ctx.with_memory_bytes(bytes), &options);
                let least = least(limited(Some(1)));
                for limit in [Some(least), Some(least + least / 10), None] {
                    let what = format!("{product:?}, {contracted} {rows} {cols}, {ranks} ranks, limit {limit:?}");
                    for outcome in limited(limit) {
                        let report = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
                        let planned = report.plan.product.planned_bytes;
                        assert!(planned <= limit.unwrap_or(u64::MAX) / ranks as u64, "{what}");
                        assert_eq!((report.ranks, report.threads), (ranks, 2 * ranks), "{what}");
                    }
                    case.check(&what);
                    case.forget_tiles();
                }
                assert!(limited(Some(least - 1)).iter().all(Result::is_err));
            }
        }
    }
}

/// With enough tiles each rank makes some, and reads no more than its own bands.
#[test]
fn all_ranks_share_a_product() {
    let case = products::Case::new(Product { a: PLAIN, b: None, precision_bits: 100 }, 200, (160, 160), Kind::Graded);
    for ranks in [2, 4] {
        let outcomes = multiply(&case, ranks, &context(1), &products::options(8));
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            let OutOfCoreProductReport { plan, disk, .. } = outcome.unwrap();
            let made = groups(&case.path("tiles").join(format!("rank-{rank}"))).len();
            // Twenty rows of tiles: a triangle of 210.
            assert!((210 / ranks - 40..=210 / ranks + 40).contains(&made), "{made} tiles of rank {rank} of {ranks}");
            assert!(plan.read_bytes < 210 * disk.written_bytes, "{plan:?}");
            assert!(plan.product.bands > 1, "{plan:?}");
        }
        case.check("shared");
        case.forget_tiles();
    }
}

#[test]
fn products_that_were_ended_go_on_also_on_other_numbers_of_ranks() {
    let product = Product { a: PLAIN, b: Some(PLAIN), precision_bits: 120 };
    let case = products::Case::new(product, 100, (120, 90), Kind::Graded);
    let options = products::options(8);
    let mut found = Vec::new();
    for round in 0..40u64 {
        let ranks = [4, 4, 2, 3, 1][round as usize % 5];
        let least = least(multiply(&case, ranks, &context(1).with_memory_bytes(Some(1)), &options));
        // A kernel with many primes has many steps before the first tiles.
        let ctx = ended_after(if round > 30 { u64::MAX } else { 2 + round * 7 }, "product", (1, least));
        let outcomes = multiply(&case, ranks, &ctx, &options);
        if outcomes.iter().all(Result::is_ok) {
            found.extend(outcomes.iter().map(|outcome| outcome.as_ref().unwrap().disk.tiles_found));
            break;
        }
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Cancelled))), "{outcomes:?}");
        assert!(!case.path("c.bin").exists());
    }
    case.check("resumed");
    assert!(found.iter().any(|&tiles| tiles > 0), "the last run found nothing: {found:?}");
}

fn rank_groups(folder: &Path, ranks: usize) -> Vec<Vec<std::path::PathBuf>> {
    (0..ranks).map(|rank| groups(&folder.join(format!("rank-{rank}")))).collect()
}

#[test]
fn damaged_blocks_of_a_rank_are_made_again() {
    let product = Product { a: PLAIN, b: None, precision_bits: 120 };
    let case = products::Case::new(product, 60, (90, 90), Kind::Graded);
    let options = products::options(16);
    let ctx = context(1);
    multiply(&case, 3, &ctx, &options).into_iter().for_each(|outcome| drop(outcome.unwrap()));
    case.check("whole");
    for rank in 0..3 {
        let all = rank_groups(&case.path("tiles"), 3);
        damage(&all[rank][0], 2 * rank as u64);
        fs::remove_file(&all[(rank + 1) % 3][0]).unwrap();
        let outcomes = multiply(&case, 3, &ctx, &options);
        assert!(outcomes.into_iter().all(|outcome| outcome.unwrap().disk.groups_repaired == 1));
        case.check("mended");
    }
}

#[test]
fn solves_are_those_of_memory_for_all_numbers_of_ranks() {
    for (order, columns) in [(17, 8), (60, 33), (100, 17), (60, 5)] {
        let case = solve::Case::new(triangle(order, 0), columns);
        let options = TrsmOptions::new().accuracy(Accuracy::Norm);
        let x = trsm_with(&context(1), &case.matrix, &case.right, BITS, &options).unwrap().result;
        for ranks in [2, 3, 7] {
            let call = |ctx: &Context| {
                run(ranks, |team| {
                    let choices = OutOfCoreSolveOptions::new();
                    case.call(|paths| out_of_core::trsm_over_ranks(ctx, team, paths, BITS, &options, &choices))
                })
            };
            let least = least(call(&context(2).with_memory_bytes(Some(1))));
            for limit in [Some(least), None] {
                for outcome in call(&context(2).with_memory_bytes(limit)) {
                    let report = outcome.unwrap();
                    assert_eq!((report.ranks, report.bands > 0), (ranks, true));
                    assert!(report.planned_bytes <= limit.unwrap_or(u64::MAX) / ranks as u64);
                }
                case.check(&x, &format!("{order} x {columns}, {ranks} ranks"));
                case.forget();
            }
        }
    }
}

#[test]
fn a_factorisation_and_a_solve_are_those_of_memory_and_go_on() {
    let case = solve::Case::new(integer_gram(75, 70, 150, 3), 20);
    let a = Symmetric::lower(&case.matrix);
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
    let x = solve_with(&context(1), a, &case.right, BITS, &options).unwrap().result;
    let call = |ctx: &Context, ranks: usize| {
        run(ranks, |team| {
            let choices = OutOfCoreSolveOptions::new().tile_rows(16);
            case.call(|paths: SolvePaths<'_>| out_of_core::solve_over_ranks(ctx, team, paths, BITS, &choices))
        })
    };
    let least = least(call(&context(1).with_memory_bytes(Some(1)), 4));
    let ended = call(&ended_after(3, "solve", (1, least + least / 2)), 4);
    assert!(ended.iter().all(|outcome| matches!(outcome, Err(Error::Cancelled))), "{ended:?}");
    for (ranks, is_found) in [(3, true), (4, true)] {
        for outcome in call(&context(1).with_memory_bytes(Some(2 * least)), ranks) {
            let report = outcome.unwrap();
            assert_eq!((report.ranks, report.factorisation.is_none()), (ranks, is_found), "{report:?}");
        }
        case.check(&x, &format!("{ranks} ranks"));
    }
    case.forget();
    call(&context(1), 2).into_iter().for_each(|outcome| drop(outcome.unwrap()));
    case.check(&x, "from the beginning");
}

#[test]
fn solves_for_a_few_are_those_of_memory() {
    for columns in [1, 5] {
        let case = solve::Case::new(integer_gram(75, 70, 150, 3), columns);
        let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
        let x = solve_with(&context(1), Symmetric::lower(&case.matrix), &case.right, BITS, &options).unwrap().result;
        let outcomes = run(3, |team| {
            let choices = OutOfCoreSolveOptions::new().tile_rows(16);
            case.call(|paths| out_of_core::solve_over_ranks(&context(1), team, paths, BITS, &choices))
        });
        outcomes.into_iter().for_each(|outcome| assert_eq!(outcome.unwrap().bands, 1));
        case.check(&x, &format!("{columns} columns"));
    }
}

#[test]
fn what_one_rank_refuses_all_refuse() {
    let case = solve::Case::new(triangle(40, 0), 12);
    fs::write(case.path("a.bin"), b"no matrix").unwrap();
    let outcomes = run(3, |team| {
        let choices = OutOfCoreSolveOptions::new();
        case.call(|paths| {
            out_of_core::trsm_over_ranks(
                &context(1),
                team,
                paths,
                BITS,
                &TrsmOptions::new().accuracy(Accuracy::Norm),
                &choices,
            )
        })
    });
    assert!(outcomes.iter().all(Result::is_err));
    assert!(!case.path("x.bin").exists() && !case.path("work").exists());
}
