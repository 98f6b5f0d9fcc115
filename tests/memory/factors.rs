//! What factors over ranks take, and what one takes that lies where the last one was.
//!
//! The ranks are threads here, so that their windows and messages are on the one heap that is counted.

use crate::{alone, matrix};
use sunzi::advanced::store::{allocated_bytes, peak_bytes, requested_bytes, reset_peak_bytes};
use sunzi::advanced::testing::effort;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, barrier, local};
use sunzi::distributed::{DistCholeskyOptions, DistMatrix, RankGrid, Team, TeamOptions, plan_cholesky};
use sunzi::{Accuracy, CholeskyOptions, Context, Matrix, Symmetric, distributed};

/// Ranks, and how many of them are on a node.
type Ranks = (usize, usize);

fn context(kernel: Option<&str>) -> Context {
    let builder = Context::builder().threads(1);
    kernel.map_or(builder.clone(), |kernel| builder.kernel(kernel)).build().unwrap()
}

fn team(rank: &local::LocalRank, ranks_per_node: usize) -> Team {
    Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(ranks_per_node)).unwrap()
}

/// A matrix with a large diagonal.
fn definite(order: usize, bits: u32) -> Matrix {
    let mut a = Matrix::zeros(order, order, bits).unwrap();
    (0..order).for_each(|i| (0..=i).for_each(|j| a.set_f64(i, j, 0.5f64.powi((i - j) as i32)).unwrap()));
    a
}

/// What each rank holds of a matrix, in tiles of so many rows.
fn held(a: &Matrix, ranks: usize, tile_size: usize) -> Vec<DistMatrix> {
    let (grid, bits) = (RankGrid::for_ranks(ranks), a.precision_bits());
    let map = TileMap { grid, ..TileMap::symmetric(a.rows(), tile_size) };
    local::run(ranks, |rank| DistMatrix::scatter(rank, 0, (rank.rank() == 0).then_some(a), map, bits).unwrap())
}

/// The bytes that ranks take together at the peak of a first factor, and what their plans say.
fn peak_and_plan(held: &[DistMatrix], ranks_per_node: usize, kernel: Option<&str>) -> (u64, u64, &'static str) {
    let (map, bits) = (*held[0].map(), held[0].precision_bits());
    let options = DistCholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(map.tile_size);
    let plan = |rank: &local::LocalRank| {
        plan_cholesky(&context(kernel), &team(rank, ranks_per_node), (&map, bits), bits, &options).unwrap()
    };
    let plans = local::run(held.len(), plan);
    let made = local::run(held.len(), |rank| {
        let (ctx, team) = (context(kernel), team(rank, ranks_per_node));
        barrier(rank).unwrap();
        if rank.rank() == 0 {
            reset_peak_bytes();
        }
        let before = allocated_bytes();
        barrier(rank).unwrap();
        let made = distributed::cholesky_with(&ctx, &team, &held[rank.rank()], bits, &options).unwrap();
        barrier(rank).unwrap();
        (peak_bytes() - before, made.report)
    });
    assert_eq!(made[0].1.planned_bytes, *plans.iter().max().unwrap());
    (made[0].0, plans.iter().sum(), made[0].1.kernel)
}

/// Factors of one tile to a dozen of tile rows, on one node and on two: no more than the plan, and nearly all of it. On
/// three nodes and four there is room for the words of all tiles that may be passed on, which are there in unlucky
/// orders alone.
#[test]
fn factors_over_ranks_keep_their_plan() {
    let _alone = alone();
    let mut missed = Vec::new();
    let layouts: [Ranks; 10] = [(1, 1), (2, 2), (2, 1), (3, 3), (3, 2), (4, 4), (4, 2), (4, 3), (3, 1), (4, 1)];
    let sizes =
        [(96, 96, 128), (180, 96, 128), (280, 96, 300), (400, 96, 128), (700, 96, 128), (700, 64, 128), (760, 64, 200)];
    for (size, (order, tile_size, bits)) in sizes.into_iter().enumerate() {
        let a = definite(order, bits);
        for (turn, (ranks, ranks_per_node)) in layouts.into_iter().enumerate() {
            // Two sizes, of one order, take turns at the layouts.
            if effort() == 1 && order == 700 && turn % 2 == size % 2 {
                continue;
            }
            let held = held(&a, ranks, tile_size);
            let percent = match (ranks, ranks_per_node, order) {
                (3 | 4, 1, _) => 120,
                // Two ranks of the four own tiles of few rows, and have more on their way than the factor takes, each
                // at a time of its own.
                (4, 2, 400) => 110,
                _ => 105,
            };
            // Sizes and layouts take turns at the kernels.
            let kernels = [Some("i16"), None].into_iter().enumerate();
            for (_, kernel) in kernels.filter(|(at, _)| effort() > 1 || (at + turn + size).is_multiple_of(2)) {
                let (peak, planned, kernel) = peak_and_plan(&held, ranks_per_node, kernel);
                let what = format!(
                    "{order} rows at {bits} bits, {kernel}, {ranks} ranks, {ranks_per_node} a node: {peak} of {planned}"
                );
                println!("{what}, {:.4}", planned as f64 / peak as f64);
                if peak > planned || planned * 100 > peak * percent {
                    missed.push(what);
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// A second factor in the memory of the first: a rank asks for little, in a window of the node and where tiles travel,
/// and for nothing as large as its tiles of the factor.
#[test]
fn a_factor_over_ranks_lies_in_the_memory_of_the_last_one() {
    let _alone = alone();
    let a = definite(400, 300);
    for (ranks, ranks_per_node) in [(2, 2), (2, 1), (3, 2)] {
        let bits = a.precision_bits();
        let held = held(&a, ranks, 48);
        let options = DistCholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(48);
        let requested = local::run(ranks, |rank| {
            let (ctx, team) = (context(None), team(rank, ranks_per_node));
            let (a, mut factor) = (&held[rank.rank()], DistMatrix::zeros(*held[0].map(), rank.rank(), 2).unwrap());
            let mut requested = || {
                let before = requested_bytes();
                distributed::cholesky_into(&ctx, &team, a, bits, &options, &mut factor).unwrap();
                requested_bytes() - before
            };
            let both = [requested(), requested()];
            (both, factor.bytes())
        });
        for ([first, second], factor) in requested {
            let what = format!("{ranks} ranks, {ranks_per_node} a node: {first}, then {second}, a factor of {factor}");
            println!("{what}");
            assert!(first > factor && second < factor / 2, "{what}");
        }
    }
}

/// The same in one process.
#[test]
fn a_factor_lies_in_the_memory_of_the_last_one() {
    let _alone = alone();
    let (order, bits) = (300, 300);
    let mut a = matrix(order, order, bits, 1);
    (0..order).for_each(|i| a.set_f64(i, i, 300.0).unwrap());
    for (threads, memory_bytes) in [(1, None), (2, None), (1, Some(1 << 30))] {
        let builder = Context::builder().threads(threads);
        let ctx = memory_bytes.map_or(builder.clone(), |bytes| builder.memory_bytes(bytes)).build().unwrap();
        let mut factor = sunzi::Cholesky::default();
        let mut requested = || {
            let before = requested_bytes();
            sunzi::cholesky_into(
                &ctx,
                Symmetric::lower(&a),
                bits,
                &CholeskyOptions::new().accuracy(Accuracy::Norm),
                &mut factor,
            )
            .unwrap();
            requested_bytes() - before
        };
        let [first, second] = [requested(), requested()];
        let bytes = factor.factor().bytes();
        let what = format!("{threads} threads, limit {memory_bytes:?}: {first}, then {second}, a factor of {bytes}");
        println!("{what}");
        assert!(first > bytes && second < bytes / 2, "{what}");
    }
}
