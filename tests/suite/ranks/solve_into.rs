//! Solves over ranks into results that are there.

use super::solve::{factor, scatter, threads};
use crate::common::{Kind, matrix};
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{DistMatrix, RankGrid, Team, TeamOptions, solve_into, solve_with, trsm_into, trsm_with};
use sunzi::{Accuracy, Op, Side, TrsmOptions, Uplo};

/// Calls into a result: the bits of calls that make one, whatever it holds and whatever contexts keep of other calls.
#[test]
fn results_that_are_there_are_filled() {
    let (order, bits) = (70, 100);
    let l = factor(order, bits, 4, 11);
    let columns = [9usize, 24, 5, 1, 16];
    let rights = columns.map(|columns| matrix(Kind::Unit, order, columns, bits, columns as u64));
    let map =
        |rows, cols, triangle| TileMap { rows, cols, tile_size: 16, grid: RankGrid { rows: 1, cols: 2 }, triangle };
    local::run(2, |rank| {
        let (ctx, team) = (threads(1), Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap());
        let l = scatter(rank, &l, map(order, order, Some(Uplo::Lower)));
        let options = [Side::Left, Side::Right].map(|side| TrsmOptions::new().side(side).op(Op::Transpose));
        for b in &rights {
            let b = scatter(rank, b, map(order, b.cols(), None));
            let turned = b.transposed(rank, map(b.map().cols, order, None)).unwrap();
            let fitting = DistMatrix::zeros(*b.map(), rank.rank(), bits).unwrap();
            let other = DistMatrix::zeros(map(order, 40, None), rank.rank(), bits + 64).unwrap();
            let [mut solved, mut left, mut right] = [fitting, other.clone(), other];
            let want = solve_with(&ctx, &team, &l, &b, bits, Accuracy::Norm).unwrap().solution;
            let wants = [(&b, &options[0]), (&turned, &options[1])]
                .map(|(b, options)| trsm_with(&ctx, &team, &l, b, bits, options).unwrap().solution);
            // Each of them twice: the second time it is filled with a solution.
            for _ in 0..2 {
                solve_into(&ctx, &team, &l, &b, bits, Accuracy::Norm, &mut solved).unwrap();
                trsm_into(&ctx, &team, &l, &b, bits, &options[0], &mut left).unwrap();
                trsm_into(&ctx, &team, &l, &turned, bits, &options[1], &mut right).unwrap();
                assert!(solved == want, "solve, {} columns", b.map().cols);
                assert!([&left, &right] == [&wants[0], &wants[1]], "trsm, {} columns", b.map().cols);
                // Tiles that callers have replaced are made anew.
                for (_, tile) in solved.tiles_mut().iter_mut().take(1) {
                    *tile = matrix(Kind::Unit, tile.rows(), tile.cols(), bits + 128, 1);
                }
            }
        }
    });
}
