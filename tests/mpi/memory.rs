//! What each rank of a solve allocates, counted by its own process: no more than its plan, which is not far above it.
//!
//! Ranks that are threads are counted together, and at their peaks at times of their own.

use crate::{Case, Run};
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::advanced::tile::TileMap;
use sunzi::comm::mpi::MpiRank;
use sunzi::comm::{Reduction, Transport, barrier};
use sunzi::distributed::{DistMatrix, RankGrid, Team, TeamOptions, plan_solve, solve_with};
use sunzi::gallery::{Kind, Size, generate};
use sunzi::{Accuracy, Context, Matrix, Uplo};

/// The cases of this file.
pub const CASES: &[Case] = &[Case {
    name: "memory::each_rank_of_a_solve_keeps_its_plan",
    ranks: &[1, 2, 3, 4],
    run: Run::Group(few_right_sides),
}];

/// Bytes that lists and MPI's own calls may add.
const SLACK_BYTES: u64 = 32 << 10;

/// A factor near the identity, so that no unknown outgrows a try.
fn factor(order: usize, precision_bits: u32) -> Matrix {
    let random = generate(Kind::Random, Size { rows: order, cols: order, precision_bits }, 8).unwrap();
    let mut l = Matrix::identity(order, precision_bits).unwrap();
    for (row, col) in (0..order).flat_map(|row| (0..row).map(move |col| (row, col))) {
        l.set_float(row, col, &(random.float(row, col) >> 6)).unwrap();
    }
    l
}

/// One to seven right sides, by norms: each rank keeps its plan, and from four on the one that takes most needs at
/// least 95 % of it.
fn few_right_sides(rank: MpiRank) {
    let (order, bits) = (700, 400);
    let (l, is_root, grid) = (factor(order, bits), rank.rank() == 0, RankGrid::for_ranks(rank.size()));
    let scatter = |whole: &Matrix, triangle| {
        let map = TileMap { rows: order, cols: whole.cols(), tile_size: 64, grid, triangle };
        DistMatrix::scatter(&rank, 0, is_root.then_some(whole), map, bits).unwrap()
    };
    let held = scatter(&l, Some(Uplo::Lower));
    drop(l);
    let team = Team::new(rank.split(0).unwrap(), TeamOptions::new()).unwrap();
    for columns in [1, 3, 4, 7] {
        let b = generate(Kind::Random, Size { rows: order, cols: columns, precision_bits: bits }, 9).unwrap();
        let right = scatter(&b, None);
        let builder = || Context::builder().threads(1).build().unwrap();
        let planned = plan_solve(&builder(), &team, (order, columns), (bits, bits), Accuracy::Norm).unwrap();
        barrier(&rank).unwrap();
        let ctx = builder();
        let before = allocated_bytes();
        reset_peak_bytes();
        drop(solve_with(&ctx, &team, &held, &right, bits, Accuracy::Norm).unwrap());
        let taken = peak_bytes() - before;
        let what = format!("{columns} right sides on rank {} of {}: {taken} of {planned}", rank.rank(), rank.size());
        println!("{what}");
        assert!(taken <= planned + SLACK_BYTES, "{what}");
        let mut most = [taken];
        rank.all_reduce(Reduction::Max, &mut most).unwrap();
        if columns < 4 {
            continue; // substituted for as vectors, whose plan is a bound for sums of any length
        }
        assert!(planned * 100 <= most[0] * 105 + SLACK_BYTES * 100, "{what}, at most {}", most[0]);
    }
}
