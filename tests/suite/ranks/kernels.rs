//! Which kernel a product, a factor or a solve over ranks runs on.

use super::solve::{factor, scatter};
use crate::common::definite::Known;
use crate::common::{Kind, by_norms, effort, matrix};
use sunzi::advanced::kernels;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{
    DistCholeskyOptions, DistOptions, RankGrid, Team, TeamOptions, cholesky_tiles, cholesky_with, plan_cholesky, solve,
    syrk, trsm_with,
};
use sunzi::{Accuracy, Cholesky, Context, Op, SyrkOptions, TrsmOptions, Uplo, syrk_with};

/// A context of one thread: with the kernel of that name, or free to choose.
fn context(kernel: Option<&str>) -> Context {
    let builder = Context::builder().threads(1);
    kernel.into_iter().fold(builder, |builder, name| builder.kernel(name)).build().unwrap()
}

fn team(rank: &local::LocalRank) -> Team {
    Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap()
}

/// The kernels that two ranks are told: none, the same or different ones.
fn told(own: &str) -> [[Option<&str>; 2]; 5] {
    [[None, None], [Some(own), None], [None, Some(own)], [Some("f64"), None], [None, Some("i8")]]
}

/// Large products go on the kernel of one process where all ranks would choose it, else on the one that all prefer;
/// the bits are the same.
#[test]
fn ranks_agree_on_the_kernel_of_a_large_product() {
    let (rows, cols, bits) = (200, 256, 64);
    let p = matrix(Kind::Unit, rows, cols, bits, 5);
    let free = || Context::builder().threads(1).build().unwrap();
    let preferred = free().kernel().name();
    let one = syrk_with(&free(), p.view(), bits, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap();
    for (forced, kernel) in [(None, one.report.kernel), (Some(0), preferred), (Some(1), preferred)] {
        local::run(2, |rank| {
            let ctx = match forced {
                Some(which) if which == rank.rank() => Context::builder().threads(1).kernel(preferred).build().unwrap(),
                _ => free(),
            };
            let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
            let own = p.view().block(rank.rank() * rows / 2..(rank.rank() + 1) * rows / 2, 0..cols).unwrap();
            let outcome = syrk(&ctx, &mut team, &[own], bits, &DistOptions::new().accuracy(Accuracy::Norm)).unwrap();
            assert_eq!(outcome.report.kernel, kernel, "forced on {forced:?}");
            let whole = outcome.result.gather(team.world(), 0).unwrap();
            assert!(whole.is_none_or(|whole| whole == one.result), "forced on {forced:?}");
            team.close().unwrap();
        });
    }
}

/// The ranks of a node take the kernel of one process for the tiles of a factor where all would choose it, else that of
/// their contexts; ranks with different kernels have the same tiles and the same factor.
#[test]
fn ranks_of_a_node_agree_on_the_kernel_of_the_tiles_of_a_factor() {
    let (own, large) = (context(None).kernel().name(), kernels::preferred_for_large_factors());
    let chosen = large.map_or(own, |(kernel, _)| kernel.name());
    let (order, bits) = (large.map_or(470, |(_, costs)| costs.least_rows(200)), 64);
    let a = Known::Kms.matrix(order, bits);
    let want = by_norms::cholesky(&context(Some(own)), &a, bits).unwrap().into_factor();
    let all_told = told(own).map(|told| (told, 96)).into_iter();
    for (told, tile_rows) in all_told.chain([([None, None], 88), ([Some("f64"), None], 88)]) {
        local::run(2, |rank| {
            let (told, all_free) = (told[rank.rank()], told.iter().all(Option::is_none));
            let map = TileMap {
                rows: order,
                cols: order,
                tile_size: tile_rows,
                grid: RankGrid::for_ranks(2),
                triangle: Some(Uplo::Lower),
            };
            let (part, options) =
                (scatter(rank, &a, map), DistCholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(tile_rows));
            let made = cholesky_with(&context(told), &team(rank), &part, bits, &options).unwrap();
            let kernel = told.unwrap_or(if tile_rows < 96 || !all_free { own } else { chosen });
            assert_eq!(made.report.kernel, kernel, "told {told:?}, tiles of {tile_rows}");
            let whole = made.factor.gather(rank, 0).unwrap();
            assert!(whole.is_none_or(|whole| whole == want), "told {told:?}, tiles of {tile_rows}");
        });
    }
}

/// What ranks say of tiles and memory before there is a matrix is what they do, also where their kernels differ.
#[test]
fn ranks_with_different_kernels_agree_on_tiles() {
    let own = context(None).kernel().name();
    for (order, bits) in [(470, 64), (2000, 64), (2000, 768), (4000, 768), (4000, 2048)] {
        for told in told(own) {
            let tiles = local::run(2, |rank| {
                let (ctx, team, options) =
                    (context(told[rank.rank()]), team(rank), DistCholeskyOptions::new().accuracy(Accuracy::Norm));
                let tiles = cholesky_tiles(&ctx, &team, order, bits, &options).unwrap();
                let other = TileMap { tile_size: tiles.tile_size + 8, ..tiles };
                let plan = |map| plan_cholesky(&ctx, &team, (map, bits), bits, &options).unwrap();
                assert!(
                    plan(&other) > plan(&tiles),
                    "{order} rows, {bits} bits: matrices in such tiles are not copied"
                );
                tiles
            });
            assert_eq!(tiles[0], tiles[1], "{order} rows, {bits} bits, told {told:?}");
        }
    }
}

/// Solves with so many rows and right-hand sides that another kernel suits them have the bits of the context's kernel.
#[test]
fn large_solves_have_the_bits_of_one_process_on_another_kernel() {
    let order = kernels::preferred_for_large_solves().map_or(700, |(_, costs)| costs.least_rows(200));
    let (columns, bits) = (416, 60);
    let (l, b) = (factor(order, bits, 4, 1), matrix(Kind::Unit, order, columns, bits, 2));
    let own = context(None).kernel().name();
    let alone = context(Some(own));
    let upper = TrsmOptions::new().accuracy(Accuracy::Norm).op(Op::Transpose);
    let want = [
        sunzi::trsm_with(&alone, &l, &b, bits, &upper).unwrap().result,
        Cholesky::from_factor(l.clone()).unwrap().solve(&alone, &b, bits).unwrap(),
    ];
    // Each solve takes part of a second: with little effort ranks are free, or one of them has the other's own kernel.
    let all_told = told(own).into_iter().enumerate().filter(|(at, _)| effort() > 1 || [0, 1].contains(at));
    for (told, ranks_per_node) in all_told.map(|(_, told)| (told, 2)).chain([([None, None], 1)]) {
        local::run(2, |rank| {
            let team = Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(ranks_per_node)).unwrap();
            let map =
                |cols, triangle| TileMap { rows: order, cols, tile_size: 64, grid: RankGrid::for_ranks(2), triangle };
            let (ctx, right) = (context(told[rank.rank()]), scatter(rank, &b, map(columns, None)));
            let held = scatter(rank, &l, map(order, Some(Uplo::Lower)));
            let one = trsm_with(&ctx, &team, &held, &right, bits, &upper);
            // Two triangles take their kernels as one does.
            let is_free = told.iter().all(Option::is_none);
            let both = is_free.then(|| solve(&ctx, &team, &held, &right, bits));
            for (found, want) in [Some(one), both].into_iter().flatten().zip(&want) {
                let whole = found.unwrap().solution.gather(rank, 0).unwrap();
                assert!(whole.is_none_or(|whole| whole == *want), "told {told:?}, {ranks_per_node} ranks a node");
            }
        });
    }
}
