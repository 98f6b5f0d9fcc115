//! Factorisations above the disks of several ranks.

use super::cholesky::{Case, options};
use super::{damage, ended_after, groups};
use crate::common::definite::{integer_gram, set_both};
use crate::common::in_turn;
use std::fs;
use sunzi::advanced::tile::{RankGrid, TileId, TileMap};
use sunzi::comm::Transport;
use sunzi::comm::local;
use sunzi::distributed::{self, DistMatrix, Team, TeamOptions};
use sunzi::out_of_core::{self, OutOfCoreOptions, OutOfCoreReport};
use sunzi::rug::Float;
use sunzi::{Context, Error, Result, Uplo};

/// The outcomes of all ranks.
fn run(case: &Case, ranks: usize, ctx: &Context, options: &OutOfCoreOptions) -> Vec<Result<OutOfCoreReport>> {
    let (matrix, factor) = (case.path("a.bin"), case.path("l.bin"));
    local::run(ranks, |rank| {
        let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
        let files = (matrix.as_path(), factor.as_path());
        let tiles = case.path("tiles");
        let made = out_of_core::cholesky_over_ranks(ctx, &team, files, &tiles, case.precision_bits, options);
        team.close().unwrap();
        made
    })
}

fn least_limit(case: &Case, ranks: usize, ctx: &Context, options: &OutOfCoreOptions) -> u64 {
    let refused = run(case, ranks, &ctx.with_memory_bytes(Some(1)), options);
    let least = refused.into_iter().map(|outcome| match outcome {
        Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
        other => panic!("{other:?}"),
    });
    let least = least.collect::<Vec<_>>();
    assert!(least.iter().all(|bytes| *bytes == least[0]), "{least:?}");
    least[0]
}

#[test]
fn the_file_is_that_of_memory_for_all_grids_and_limits() {
    for (at, (order, tile_rows)) in [(0, 8), (1, 8), (9, 8), (67, 8), (130, 24)].into_iter().enumerate() {
        let case = Case::new(integer_gram(order + 5, order, 150, 1), 150);
        let ctx = Context::builder().threads(2).build().unwrap();
        let grids = [(2, None), (3, Some((3, 1))), (4, None), (6, Some((2, 2))), (6, Some((2, 3)))];
        for (turn, (ranks, grid)) in grids.into_iter().enumerate() {
            let options = options().tile_rows(tile_rows).grid(grid.map(|(rows, cols)| RankGrid { rows, cols }));
            let least = least_limit(&case, ranks, &ctx, &options);
            // Each order and each grid meet the limits in turns.
            for limit in in_turn(3, at + turn).map(|which| [Some(least), Some(least + least / 30), None][which]) {
                let what = format!("{order} rows, {ranks} ranks, {grid:?}, limit {limit:?}");
                for outcome in run(&case, ranks, &ctx.with_memory_bytes(limit), &options) {
                    let report = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(report.plan.planned_bytes <= limit.unwrap_or(u64::MAX) / ranks as u64, "{what}");
                    assert_eq!(report.ranks.unwrap().ranks, ranks);
                }
                case.check(&what);
                case.forget_tiles();
            }
            let refused = run(&case, ranks, &ctx.with_memory_bytes(Some(least - 1)), &options);
            assert!(refused.iter().all(Result::is_err), "{refused:?}");
        }
    }
}

#[test]
fn a_limit_gives_back_what_factors_in_memory_have_kept() {
    let case = Case::new(integer_gram(40, 30, 150, 1), 150);
    let ctx = Context::builder().threads(1).build().unwrap();
    let limited = ctx.with_memory_bytes(Some(1 << 30));
    local::run(2, |rank| {
        let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
        let grid = RankGrid::for_ranks(2);
        let map = TileMap { rows: 30, cols: 30, tile_size: 8, grid, triangle: Some(Uplo::Lower) };
        let mut a = DistMatrix::zeros(map, rank.rank(), 150).unwrap();
        let own = |id: TileId| (id.row == id.col).then(|| map.row_range(id.row).len());
        for (id, tile) in a.tiles_mut() {
            (0..own(*id).unwrap_or(0)).for_each(|i| tile.set_f64(i, i, 1.0).unwrap());
        }
        distributed::cholesky(&ctx, &team, &a, 150).unwrap();
        assert!(team.window_bytes() > 0);
        let files = (case.path("a.bin"), case.path("l.bin"));
        let files = (files.0.as_path(), files.1.as_path());
        let tiles = case.path("tiles");
        // The limit of one rank is enough.
        let ctx = if rank.rank() == 1 { &limited } else { &ctx };
        out_of_core::cholesky_over_ranks(ctx, &team, files, &tiles, case.precision_bits, &options()).unwrap();
        assert_eq!(team.window_bytes(), 0);
        team.close().unwrap();
    });
    case.check("in a team with a window");
}

#[test]
fn ranks_that_were_ended_go_on_also_in_other_numbers() {
    let case = Case::new(integer_gram(120 + 5, 120, 120, 1), 120);
    let options = options().tile_rows(16);
    let base = Context::builder().threads(2).build().unwrap();
    let mut found = Vec::new();
    for round in 0..40 {
        let ranks = [4, 4, 2, 3][round as usize % 4];
        let least = least_limit(&case, ranks, &base, &options);
        let most = if round > 30 { u64::MAX } else { 2 + round * 7 % 11 };
        let limit = least + (round % 3) * (least / 20);
        let ctx = ended_after(most, "factor", (1 + (round % 2) as usize, limit));
        let outcomes = run(&case, ranks, &ctx, &options);
        if outcomes.iter().all(Result::is_ok) {
            found.push(outcomes[0].as_ref().unwrap().disk.tiles_found);
            break;
        }
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Cancelled))), "{outcomes:?}");
        assert!(!case.path("l.bin").exists());
    }
    case.check("resumed");
    assert!(found.first().is_some_and(|&tiles| tiles > 0), "the last run found nothing: {found:?}");
}

#[test]
fn damaged_tiles_of_a_rank_are_made_again() {
    let case = Case::new(integer_gram(100 + 5, 100, 100, 1), 100);
    let options = options().tile_rows(16);
    let ctx = Context::builder().threads(1).build().unwrap();
    run(&case, 4, &ctx, &options).into_iter().for_each(|outcome| drop(outcome.unwrap()));
    case.check("whole");
    for rank in 0..4 {
        let of_rank = |rank: usize| groups(&case.path("tiles").join(format!("rank-{rank}")));
        let own = of_rank(rank);
        damage(&own[rank % own.len()], 2 * rank as u64);
        // What is left of the others is made again from the tiles that are there.
        of_rank((rank + 1) % 4).iter().step_by(3).for_each(|path| fs::remove_file(path).unwrap());
        run(&case, 4, &ctx, &options).into_iter().for_each(|outcome| drop(outcome.unwrap()));
        case.check("mended");
    }
}

#[test]
fn all_ranks_say_where_a_matrix_is_not_positive_definite() {
    let mut matrix = integer_gram(95, 90, 100, 1);
    set_both(&mut matrix, 61, 61, &Float::with_val(100, 1));
    let case = Case::new(matrix, 100);
    let ctx = Context::builder().threads(2).build().unwrap();
    let alone = out_of_core::cholesky(
        &ctx,
        (&case.path("a.bin"), &case.path("l.bin")),
        &case.path("alone"),
        case.precision_bits,
        &options().tile_rows(16),
    );
    let Err(Error::NotPositiveDefinite { index, .. }) = alone else { panic!("{alone:?}") };
    for outcome in run(&case, 4, &ctx, &options().tile_rows(16)) {
        assert!(matches!(&outcome, Err(Error::NotPositiveDefinite { index: at, .. }) if *at == index), "{outcome:?}");
    }
}
