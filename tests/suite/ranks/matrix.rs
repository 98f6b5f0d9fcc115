//! Matrices in tiles over many ranks: redistribution, general products, and on to a factor.

use crate::common::{Kind, Rng, matrix, seeds};
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{
    Along, DistMatrix, DistOptions, Distribution, GridOrder, RankGrid, Team, TeamOptions, cholesky, even_share, gemm,
    redistribute, solve, syrk,
};
use sunzi::{Context, Error, GemmOptions, Matrix, MatrixView, Op, Uplo, gemm_with};

fn one_thread() -> Context {
    Context::builder().threads(1).build().unwrap()
}

fn team(rank: &local::LocalRank, per_node: usize) -> Team {
    let options = TeamOptions::new().ranks_per_node(per_node);
    Team::new(rank.split(0).unwrap(), options).unwrap()
}

fn tiles(rank: &local::LocalRank, whole: &Matrix, tile_size: usize) -> DistMatrix {
    let grid = RankGrid::for_ranks(rank.size());
    let map = TileMap { rows: whole.rows(), cols: whole.cols(), tile_size, grid, triangle: None };
    let root = (rank.rank() == 0).then_some(whole);
    DistMatrix::scatter(rank, 0, root, map, whole.precision_bits()).unwrap()
}

#[test]
fn slices_are_the_rows_and_columns_of_the_matrix() {
    for (rows, cols, ranks, tile_size) in [(67, 31, 6, 8), (3, 90, 5, 16), (0, 4, 3, 8), (40, 40, 1, 24)] {
        let whole = matrix(Kind::Graded, rows, cols, 150, 2);
        local::run(ranks, |rank| {
            let part = tiles(rank, &whole, tile_size);
            let (own_rows, own_cols) = (even_share(rows, ranks, rank.rank()), even_share(cols, ranks, rank.rank()));
            let want = whole.view().block(own_rows, 0..cols).unwrap().to_matrix().unwrap();
            assert!(part.row_slice(rank).unwrap() == want);
            let want = whole.view().block(0..rows, own_cols).unwrap().to_matrix().unwrap();
            assert!(part.col_slice(rank).unwrap() == want);
        });
    }
}

#[test]
fn gemm_of_tiles_gives_the_bits_of_one_process() {
    for seed in seeds(16) {
        let mut rng = Rng::new(seed);
        let (m, n, k, ranks) = (1 + rng.below(60), 1 + rng.below(60), rng.below(150), 1 + rng.below(6));
        let op = |coin: bool| if coin { Op::Transpose } else { Op::NoTranspose };
        let (op_a, op_b) = (op(seed % 2 == 0), op(seed % 4 < 2));
        let make = |op: Op, rows: usize, cols: usize, kind: Kind| match op {
            Op::NoTranspose => matrix(kind, rows, cols, 120, seed),
            Op::Transpose => matrix(kind, cols, rows, 120, seed),
        };
        let (a, b) = (make(op_a, m, k, Kind::Graded), make(op_b, k, n, Kind::ZeroColumns));
        let options = GemmOptions::new().op_a(op_a).op_b(op_b);
        let want = gemm_with(&one_thread(), &a, &b, 120, &options).unwrap().result;
        local::run(ranks, |rank| {
            let mut team = team(rank, 2);
            let (a, b) = (tiles(rank, &a, 8), tiles(rank, &b, 16));
            let options = DistOptions::default();
            let outcome = gemm(&one_thread(), &mut team, (&a, op_a), (&b, op_b), 120, &options).unwrap();
            let got = outcome.result.gather(rank, 0).unwrap();
            assert!(got.is_none_or(|got| got == want), "seed {seed}: {m} x {n}, {k} contracted, {op_a:?} {op_b:?}");
        });
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused_on_all_ranks() {
    let (a, b) = (matrix(Kind::Unit, 9, 8, 100, 1), matrix(Kind::Unit, 9, 8, 100, 2));
    let errors = local::run(3, |rank| {
        let mut team = team(rank, 3);
        let (a, b) = (tiles(rank, &a, 8), tiles(rank, &b, 8));
        let operands = ((&a, Op::NoTranspose), (&b, Op::NoTranspose));
        gemm(&one_thread(), &mut team, operands.0, operands.1, 100, &DistOptions::default()).map(drop).unwrap_err()
    });
    assert!(errors.iter().all(|error| matches!(error, Error::ShapeMismatch { left_cols: 8, right_rows: 9, .. })));
}

/// Blocks that groups of ranks share entry by entry, as bootstrap solvers hold them, beside blocks of single ranks.
#[test]
fn blocks_shared_by_groups_give_the_bits_of_one_process() {
    for (seed, order) in seeds(8).zip([GridOrder::RowMajor, GridOrder::ColumnMajor].into_iter().cycle()) {
        let mut rng = Rng::new(seed);
        let (first, second, cols) = (rng.below(90), rng.below(50), 1 + rng.below(40));
        let whole = matrix(Kind::Graded, first + second, cols, 140, seed);
        let want = sunzi::syrk(&one_thread(), &whole, 140).unwrap();
        // Ranks 0 to 5 share the first block, rank 6 has the second; a group of one is a group too.
        local::run(7, |rank| {
            let mut team = team(rank, 4);
            let shares = rank.rank() < 6;
            let group = rank.split(usize::from(shares)).unwrap();
            let grid = if shares { RankGrid { rows: 2, cols: 3 } } else { RankGrid { rows: 1, cols: 1 } };
            let (start, rows) = if shares { (0, first) } else { (first, second) };
            let (row, col) = match order {
                GridOrder::RowMajor => (group.rank() / grid.cols, group.rank() % grid.cols),
                GridOrder::ColumnMajor => (group.rank() % grid.rows, group.rank() / grid.rows),
            };
            let (own_rows, own_cols) = ((row..rows).step_by(grid.rows), (col..cols).step_by(grid.cols));
            let mut held = Matrix::zeros(own_rows.len(), own_cols.len(), 140).unwrap();
            for (j, col) in own_cols.enumerate() {
                for (i, row) in own_rows.clone().enumerate() {
                    held.set(i, j, whole.get(start + row, col));
                }
            }
            let entries = Some(Along::GridRow);
            let entries =
                Distribution::entry_cyclic((rows, cols), (grid, order), (entries, Some(Along::GridCol)), (0, 0));
            let by_rows =
                Distribution::entry_cyclic((rows, cols), (grid, order), (Some(Along::ColumnMajor), None), (0, 0));
            let rows = redistribute(&*group, (&entries, &held), &by_rows).unwrap();
            let outcome = syrk(&one_thread(), &mut team, &[rows.view()], 140, &DistOptions::default()).unwrap();
            let got = outcome.result.gather(rank, 0).unwrap();
            assert!(got.is_none_or(|got| got == want), "seed {seed}, {order:?}");
        });
    }
}

#[test]
fn a_matrix_of_other_ranks_is_refused() {
    let whole = matrix(Kind::Unit, 40, 40, 100, 2);
    let grid = RankGrid { rows: 2, cols: 2 };
    let map = TileMap { rows: 40, cols: 40, tile_size: 8, grid, triangle: None };
    let parts = local::run(4, |rank| {
        let root = (rank.rank() == 0).then_some(&whole);
        DistMatrix::scatter(rank, 0, root, map, 100).unwrap()
    });
    let errors = local::run(2, |rank| {
        let part = &parts[rank.rank()];
        [part.gather(rank, 0).map(drop), part.row_slice(rank).map(drop), part.col_slice(rank).map(drop)]
            .map(|result| result.unwrap_err().exit_code())
    });
    assert!(errors.iter().flatten().all(|&code| code == 2), "{errors:?}");
}

#[test]
fn tiles_and_grids_that_cannot_be_are_refused() {
    let map = TileMap { rows: 40, cols: 40, tile_size: 8, grid: RankGrid { rows: 1, cols: 1 }, triangle: None };
    assert!(DistMatrix::zeros(map, 0, 100).is_ok());
    let no_ranks = RankGrid { rows: 0, cols: 2 };
    for wrong in [TileMap { tile_size: 0, ..map }, TileMap { tile_size: 12, ..map }, TileMap { grid: no_ranks, ..map }]
    {
        let error = DistMatrix::zeros(wrong, 0, 100).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    }
    assert_eq!(RankGrid { rows: usize::MAX, cols: 2 }.size(), usize::MAX);
}

/// From rows on many ranks to a factor, without a whole matrix on the way.
#[test]
fn a_gram_matrix_goes_on_to_its_factor() {
    let p = matrix(Kind::Unit, 120, 30, 160, 4);
    let ctx = one_thread();
    let want = sunzi::cholesky(&ctx, &sunzi::syrk(&ctx, &p, 160).unwrap(), 160).unwrap().into_factor();
    local::run(5, |rank| {
        let mut team = team(rank, 2);
        let rows: MatrixView<'_> = p.view().block(even_share(120, 5, rank.rank()), 0..30).unwrap();
        let gram = syrk(&one_thread(), &mut team, &[rows], 160, &DistOptions::default()).unwrap().result;
        let factor = cholesky(&one_thread(), &team, &gram, 160).unwrap().factor;
        assert!(factor.gather(rank, 0).unwrap().is_none_or(|factor| factor == want));
    });
}

/// From rows on many ranks to the solution with their Gram matrix: only what is compared is gathered.
#[test]
fn rows_go_on_to_a_solution() {
    let (p, b) = (matrix(Kind::Unit, 170, 50, 160, 4), matrix(Kind::Graded, 50, 21, 160, 5));
    let ctx = one_thread();
    let factor = sunzi::cholesky(&ctx, &sunzi::syrk(&ctx, &p, 160).unwrap(), 160).unwrap();
    let want = factor.solve(&ctx, &b, 160).unwrap();
    for ranks in [1, 2, 3, 4, 6] {
        let roots = local::run(ranks, |rank| {
            let mut team = team(rank, 2);
            let rows = p.view().block(even_share(170, ranks, rank.rank()), 0..50).unwrap();
            let gram = syrk(&one_thread(), &mut team, &[rows], 160, &DistOptions::default()).unwrap().result;
            let l = cholesky(&one_thread(), &team, &gram, 160).unwrap().factor;
            let x = solve(&one_thread(), &team, &l, &tiles(rank, &b, 16), 160).unwrap().solution;
            let (l, x) = (l.gather(rank, 0).unwrap(), x.gather(rank, 0).unwrap());
            assert!(l.is_none_or(|l| &l == factor.factor()), "the factor of {ranks} ranks");
            x.map(|x| assert!(x == want, "the solution of {ranks} ranks")).is_some()
        });
        assert_eq!(roots.iter().filter(|&&is_root| is_root).count(), 1);
    }
}

/// The result of a SYRK is one triangle on the ranks and the full matrix to everything that reads it.
#[test]
fn a_symmetric_result_acts_as_the_full_matrix() {
    for (ranks, cols, uplo) in [(1, 20, Uplo::Upper), (3, 50, Uplo::Lower), (4, 67, Uplo::Upper), (6, 41, Uplo::Lower)]
    {
        let (p, b) = (matrix(Kind::Graded, 90, cols, 130, 8), matrix(Kind::Unit, cols, 9, 130, 9));
        let ctx = one_thread();
        let full = sunzi::syrk(&ctx, &p, 130).unwrap().into_matrix();
        let want = gemm_with(&ctx, &full, &b, 130, &GemmOptions::default()).unwrap().result;
        let definite = sunzi::syrk(&ctx, &matrix(Kind::Unit, 90, cols, 130, 10), 130).unwrap();
        let factor = sunzi::cholesky(&ctx, &definite, 130).unwrap().into_factor();
        local::run(ranks, |rank| {
            let (ctx, mut team) = (one_thread(), team(rank, 2));
            let own = even_share(90, ranks, rank.rank());
            let rows = p.view().block(own.clone(), 0..cols).unwrap();
            let options = DistOptions::new().uplo(uplo).tile_size(8);
            let q = syrk(&ctx, &mut team, &[rows], 130, &options).unwrap().result;
            assert!(q.is_symmetric() && q.map().triangle == Some(uplo));
            let is_full = |part: &DistMatrix| part.gather(rank, 0).unwrap().is_none_or(|whole| whole == full);
            assert!(is_full(&q), "{ranks} ranks, {uplo:?}: gathered");
            let share = even_share(cols, ranks, rank.rank());
            let want_rows = full.view().block(share.clone(), 0..cols).unwrap().to_matrix().unwrap();
            assert!(q.row_slice(rank).unwrap() == want_rows);
            assert!(q.col_slice(rank).unwrap() == full.view().block(0..cols, share).unwrap().to_matrix().unwrap());
            // Other tiles and grids, either triangle, and all of it.
            let wide = RankGrid { rows: 1, cols: ranks };
            for triangle in [None, Some(Uplo::Lower), Some(Uplo::Upper)] {
                for (tile_size, grid) in [(16, q.map().grid), (24, wide), (8, wide)] {
                    let map = TileMap { tile_size, grid, triangle, ..*q.map() };
                    let moved = q.redistribute(rank, map).unwrap();
                    assert!(moved.is_symmetric() == triangle.is_some() && is_full(&moved), "{uplo:?} to {triangle:?}");
                }
            }
            let b = tiles(rank, &b, 16);
            for op in [Op::NoTranspose, Op::Transpose] {
                let options = DistOptions::default();
                let product = gemm(&ctx, &mut team, (&q, op), (&b, Op::NoTranspose), 130, &options).unwrap().result;
                assert!(product.gather(rank, 0).unwrap().is_none_or(|got| got == want), "{ranks} ranks, {op:?}");
            }
            assert!(solve(&ctx, &team, &q, &b, 130).is_err(), "a symmetric matrix is no factor");
            let root = (rank.rank() == 0).then_some(definite.as_matrix());
            let a = DistMatrix::scatter(rank, 0, root, *q.map(), 130).unwrap();
            let got = cholesky(&ctx, &team, &a.into_symmetric().unwrap(), 130).unwrap().factor;
            assert!(!got.is_symmetric() && got.gather(rank, 0).unwrap().is_none_or(|got| got == factor));
        });
    }
}

#[test]
fn a_whole_matrix_that_is_not_symmetric_is_refused_on_all_ranks() {
    let good = sunzi::syrk(&one_thread(), &matrix(Kind::Unit, 60, 40, 130, 3), 130).unwrap();
    for (row, col, found) in [(39, 0, (39, 0)), (3, 17, (17, 3)), (20, 19, (20, 19))] {
        let mut whole = good.as_matrix().clone();
        whole.set_f64(row, col, 0.5).unwrap();
        let errors = local::run(4, |rank| {
            let (ctx, team) = (one_thread(), team(rank, 2));
            assert!(cholesky(&ctx, &team, &tiles(rank, &good, 8), 130).is_ok());
            cholesky(&ctx, &team, &tiles(rank, &whole, 8), 130).map(drop).unwrap_err()
        });
        let same = |error: &Error| matches!(error, Error::NotSymmetric { row, column } if (*row, *column) == found);
        assert!(errors.iter().all(same), "{errors:?}");
    }
}
