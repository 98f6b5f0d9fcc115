//! What cannot be, or what ranks say differently, is refused on all of them: nobody waits for a rank that has left.

use crate::common::{Kind, matrix};
use rug::Float;
use sunzi::advanced::Hooks;
use sunzi::advanced::plan::Cut;
use sunzi::advanced::runtime::Policy;
use sunzi::advanced::runtime::protocol::{DeliveryKind, Termination};
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, agree, local};
use sunzi::distributed::{
    DistCholeskyOptions, DistMatrix, DistOptions, Distribution, GridOrder, RankGrid, Team, TeamOptions, cholesky_tiles,
    cholesky_with, gemm, plan_cholesky, redistribute, solve_with, syrk, trsm_with,
};
use sunzi::{Accuracy, Context, Diag, Error, Matrix, Op, Result, Side, TrsmOptions, Uplo};

const GRID: RankGrid = RankGrid { rows: 2, cols: 1 };

fn map(rows: usize, cols: usize) -> TileMap {
    TileMap { rows, cols, tile_size: 8, grid: GRID, triangle: None }
}

fn ctx() -> Context {
    Context::builder().threads(1).build().unwrap()
}

fn team(rank: &local::LocalRank) -> Team {
    Team::new(rank.split(0).unwrap(), TeamOptions::new()).unwrap()
}

/// What each of two ranks is told.
fn refusals<T>(call: impl Fn(&local::LocalRank) -> Result<T> + Sync) -> Vec<String> {
    local::run(2, |rank| match call(rank) {
        Ok(_) => panic!("rank {} is not refused", rank.rank()),
        Err(error) => error.to_string(),
    })
}

/// Both ranks are told something with these words.
fn refused<T>(words: &str, call: impl Fn(&local::LocalRank) -> Result<T> + Sync) {
    let errors = refusals(call);
    assert!(errors.iter().all(|error| error.contains(words)), "{words}: {errors:?}");
}

/// All are told of the first rank that failed; each that did keeps what it met itself.
#[test]
fn a_rank_that_fails_keeps_its_own_error() {
    let beyond = |column| Error::ExponentRange { row: 3, column, exponent: 1 << 40, limit: 9 };
    for (failing, first) in [(&[1][..], 1), (&[0], 0), (&[1, 2], 1), (&[0, 1, 2, 3], 0)] {
        local::run(4, |rank| {
            let own = failing.contains(&rank.rank()).then(|| beyond(rank.rank()));
            // Told twice, as where one step of a call is part of another.
            let told = agree(rank, agree(rank, own.map_or(Ok(()), Err))).unwrap_err();
            let Error::Rank { rank: number, message, own, .. } = told else { panic!("{told}") };
            assert_eq!((number, message.to_string()), (first, beyond(first).to_string()));
            let wanted = failing.contains(&rank.rank()).then(|| beyond(rank.rank()).to_string());
            assert_eq!(own.map(|own| own.to_string()), wanted, "rank {} of {failing:?}", rank.rank());
        });
    }
}

#[test]
fn a_matrix_is_scattered_from_one_root_as_all_say() {
    let whole = matrix(Kind::Unit, 20, 12, 100, 3);
    let scatter = |rank: &local::LocalRank, root: usize, holder: usize, shape: TileMap, bits: u32| {
        DistMatrix::scatter(rank, root, (rank.rank() == holder).then_some(&whole), shape, bits)
    };
    let good = map(20, 12);
    refused("there is no rank 2 among 2 ranks to be the root", |rank| scatter(rank, 2, 2, good, 100));
    let wide = TileMap { grid: RankGrid { rows: 3, cols: 1 }, ..good };
    refused("a grid of 3 x 1 ranks has 3 ranks, but there are only 2", |rank| scatter(rank, 0, 0, wide, 100));
    refused("rank 0 must pass the matrix, and no other rank may", |rank| scatter(rank, 0, 1, good, 100));
    refused("rank 0 must pass the matrix, and no other rank may", |rank| scatter(rank, 0, 9, good, 100));
    refused("20 x 12 against 21 x 12", |rank| scatter(rank, 0, 0, map(21, 12), 100));
    refused("the matrix has 100 bits, but the result has 200", |rank| scatter(rank, 0, 0, good, 200));
    refused("the ranks pass different roots", |rank| {
        scatter(rank, 0, 0, TileMap { tile_size: 8 + 8 * rank.rank(), ..good }, 100)
    });
    let none = || {
        local::run(1, |rank| {
            DistMatrix::scatter(rank, 0, None, TileMap { grid: RankGrid::for_ranks(1), ..good }, 100).is_err()
        })
    };
    assert!(none().into_iter().all(|is_refused| is_refused));
    refused("gather: there is no rank 2 among 2 ranks", |rank| scatter(rank, 0, 0, good, 100)?.gather(rank, 2));
}

#[test]
fn factors_that_ranks_ask_for_differently_are_refused() {
    let options = DistCholeskyOptions::new();
    let factor = |rank: &local::LocalRank, shape: TileMap, bits: u32, options: DistCholeskyOptions| {
        cholesky_with(&ctx(), &team(rank), &DistMatrix::zeros(shape, rank.rank(), 100)?, bits, &options)
    };
    let (shape, differ) = (map(24, 24), "cholesky: the ranks pass different");
    refused(differ, |rank| {
        let grid = (rank.rank() == 1).then_some(RankGrid { rows: 1, cols: 2 });
        factor(rank, shape, 90, options.grid(grid))
    });
    refused(differ, |rank| {
        let accuracy = if rank.rank() == 0 { Accuracy::Norm } else { Accuracy::Entrywise };
        factor(rank, shape, 90, options.accuracy(accuracy))
    });
    refused(differ, |rank| factor(rank, shape, 90, options.tile_rows(8 + 8 * rank.rank())));
    refused(differ, |rank| factor(rank, shape, 90 + rank.rank() as u32, options));
    refused(differ, |rank| cholesky_tiles(&ctx(), &team(rank), 24 + rank.rank(), 90, &options));
    let others: [fn(DistCholeskyOptions) -> DistCholeskyOptions; 4] = [
        |options| options.tile_rows(8),
        |options| options.delivery(DeliveryKind::Binomial),
        |options| options.termination(Termination::AllToAll),
        |options| options.range_bits(64),
    ];
    for other in others {
        refused(differ, |rank| factor(rank, shape, 90, if rank.rank() == 0 { options } else { other(options) }));
    }
    refused(differ, |rank| factor(rank, TileMap { tile_size: 8 + 8 * rank.rank(), ..shape }, 90, options));
    // Each rank's own.
    let identity = |rank: &local::LocalRank| {
        let whole = Matrix::identity(24, 100).unwrap();
        DistMatrix::scatter(rank, 0, (rank.rank() == 0).then_some(&whole), shape, 100).unwrap()
    };
    local::run(2, |rank| {
        let own = options.policy(if rank.rank() == 0 { Policy::Fifo } else { Policy::Greedy }).spans(rank.rank() == 1);
        cholesky_with(&ctx(), &team(rank), &identity(rank), 90, &own).unwrap();
    });
}

#[test]
fn triangular_solves_that_ranks_ask_for_differently_are_refused() {
    let (one, two) = (Float::with_val(64, 2), Float::with_val(64, -2));
    let (plain, scaled) = (TrsmOptions::new(), TrsmOptions::new().alpha(&one));
    let odd = [
        (plain, plain.side(Side::Right)),
        (plain, plain.uplo(Uplo::Upper)),
        (plain, plain.op(Op::Transpose)),
        (plain, plain.diag(Diag::Unit)),
        (plain, plain.accuracy(Accuracy::Norm)),
        (plain, scaled),
        (scaled, plain.alpha(&two)),
    ];
    for (first, second) in odd {
        refused("trsm: the ranks pass different", |rank| {
            let zeros = || DistMatrix::zeros(map(24, 24), rank.rank(), 100);
            let options = if rank.rank() == 0 { first } else { second };
            trsm_with(&ctx(), &team(rank), &zeros()?, &zeros()?, 90, &options)
        });
    }
    refused("ranks differ in shapes, tiles, precision, accuracy or scalar: all ranks must pass the same", |rank| {
        let zeros = || DistMatrix::zeros(map(24, 24), rank.rank(), 100);
        let accuracy = if rank.rank() == 0 { Accuracy::Norm } else { Accuracy::Entrywise };
        solve_with(&ctx(), &team(rank), &zeros()?, &zeros()?, 90, accuracy)
    });
}

/// Sums over more columns than the bound of the kernels' sums allows would be wrong, so a factor has no such tiles.
#[test]
fn tiles_of_too_many_rows_are_refused() {
    for tile_rows in [4096, 1 << 33, 1 << 63, usize::MAX - 7] {
        let options = DistCholeskyOptions::new().tile_rows(tile_rows);
        let words = format!("tiles of {tile_rows} rows");
        let zeros = |rank: &local::LocalRank| DistMatrix::zeros(map(24, 24), rank.rank(), 100);
        refused(&words, |rank| cholesky_with(&ctx(), &team(rank), &zeros(rank)?, 90, &options));
        refused(&words, |rank| cholesky_tiles(&ctx(), &team(rank), 24, 90, &options));
        refused(&words, |rank| plan_cholesky(&ctx(), &team(rank), (&map(24, 24), 100), 90, &options));
    }
    let options = DistCholeskyOptions::new().tile_rows(4088);
    let tiles = local::run(2, |rank| cholesky_tiles(&ctx(), &team(rank), 24, 90, &options).unwrap());
    assert!(tiles.iter().all(|tiles| tiles.tile_size == 4088));
}

#[test]
fn sizes_beyond_any_memory_and_blocks_beyond_any_matrix_are_refused() {
    let options = DistCholeskyOptions::new();
    let order = 1 << 40;
    let huge = TileMap { rows: order, cols: order, ..map(8, 8) };
    let words = "is too large to address";
    refused(words, |rank| cholesky_tiles(&ctx(), &team(rank), order, 90, &options));
    refused(words, |rank| plan_cholesky(&ctx(), &team(rank), (&huge, 100), 90, &options));
    let from = map(20, 12);
    for blocks in [(1 << 63, 1), (1, usize::MAX)] {
        let to = Distribution::block_cyclic((20, 12), (GRID, GridOrder::RowMajor), blocks, (0, 0));
        refused("in blocks of", |rank| {
            let local = Matrix::zeros(20, 12, 100).unwrap();
            redistribute(rank, (&Distribution::replicated((20, 12), 2), &local), &to)
        });
    }
    let tall = TileMap { tile_size: 1 << 63, ..from };
    refused("tiles of", |rank| DistMatrix::zeros(tall, rank.rank(), 100));
}

#[test]
fn products_that_ranks_ask_for_differently_are_refused() {
    let product = |rank: &local::LocalRank, op: Op, cols: usize| {
        let zeros = |rows, cols| DistMatrix::zeros(map(rows, cols), rank.rank(), 100);
        let (a, b) = (zeros(16, 24)?, zeros(24, cols)?);
        gemm(&ctx(), &mut team(rank), (&a, op), (&b, Op::NoTranspose), 90, &DistOptions::default())
    };
    let turned = |rank: &local::LocalRank| if rank.rank() == 0 { Op::NoTranspose } else { Op::Transpose };
    // One of them does not fit, the other does.
    assert_eq!(refusals(|rank| product(rank, turned(rank), 16)).len(), 2);
    refused("gemm: the ranks pass different", |rank| product(rank, Op::NoTranspose, 16 + rank.rank()));
}

#[test]
fn options_of_products_that_differ_between_ranks_are_refused() {
    let p = matrix(Kind::Unit, 9, 16, 100, 4);
    let (one, two) = (Float::with_val(64, 2), Float::with_val(64, -2));
    // Zeros on each rank: what is added is there, or is not.
    let zeros = [0, 1].map(|rank| DistMatrix::zeros(map(16, 16), rank, 100).unwrap());
    let cut = |chunk_rows: usize| Hooks::cut(Cut { batch_primes: 1, band_panels: 1, chunk_rows });
    let options = |case: usize, rank: usize| {
        let plain = DistOptions::new();
        match (case, rank) {
            (0, 1) => plain.uplo(Uplo::Upper),
            (1, 1) => plain.exact_integers(true),
            (2, 1) => plain.accuracy(Accuracy::Norm),
            (3, 1) | (4, 0) => plain.alpha(&one),
            (4, 1) => plain.alpha(&two),
            (5, 0) => plain.accumulate(&zeros[0]).beta(&one),
            (5, 1) => plain.accumulate(&zeros[1]).beta(&two),
            (6, 1) => plain.accumulate(&zeros[1]),
            (7, 1) => plain.tile_size(16),
            (8, 1) => plain.grid(RankGrid { rows: 1, cols: 2 }),
            (9, 0) => plain.hooks(cut(8)),
            (9, 1) => plain.hooks(cut(16)),
            _ => plain,
        }
    };
    for case in 0..10 {
        let product =
            |rank: &local::LocalRank| syrk(&ctx(), &mut team(rank), &[p.view()], 90, &options(case, rank.rank()));
        let errors = refusals(product);
        assert!(errors.iter().all(|error| error.contains("have different options")), "case {case}: {errors:?}");
    }
}

#[test]
fn tiles_in_the_place_of_others_are_refused() {
    let changed = |rank: &local::LocalRank, change: fn(&mut DistMatrix)| {
        let mut a = DistMatrix::zeros(map(20, 12), rank.rank(), 100).unwrap();
        if rank.rank() == 1 {
            change(&mut a);
        }
        a.gather(rank, 0)
    };
    let words = "rank 1: a tile was replaced by one of another position, shape or precision";
    refused(words, |rank| changed(rank, |a| a.tiles_mut()[0].1 = Matrix::zeros(8, 7, 100).unwrap()));
    refused(words, |rank| changed(rank, |a| a.tiles_mut()[0].1 = Matrix::zeros(8, 8, 101).unwrap()));
    refused(words, |rank| changed(rank, |a| a.tiles_mut().swap(0, 1)));
    refused("gather: the ranks pass different roots", |rank| {
        DistMatrix::zeros(map(20, 12), rank.rank(), 100).unwrap().gather(rank, rank.rank())
    });
    let lower = TileMap { triangle: Some(Uplo::Lower), ..map(20, 20) };
    let mut triangle = DistMatrix::zeros(lower, 0, 100).unwrap();
    triangle.tiles_mut()[0].1 = Matrix::zeros(8, 7, 100).unwrap();
    assert!(triangle.into_symmetric().unwrap_err().to_string().contains("a tile was replaced"));
    let kept = |rank: &local::LocalRank| changed(rank, |a| a.tiles_mut()[0].1 = Matrix::zeros(8, 8, 100).unwrap());
    assert!(local::run(2, |rank| kept(rank).is_ok()).into_iter().all(|is_taken| is_taken));
}
