//! Products on ranks that are processes: the bits of one process, on every kind of window.

use crate::job::{Job, Launcher, RANK_FLAG};
use crate::{Case, Run};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;
use sunzi::advanced::Hooks;
use sunzi::advanced::kernels;
use sunzi::advanced::plan::Cut;
use sunzi::advanced::testing::effort;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::mpi::MpiRank;
use sunzi::comm::window::WindowKind;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{
    DistMatrix, DistOptions, RankGrid, Team, TeamOptions, cholesky, even_share, gemm, scatter_rows, solve, syrk,
    trsm_with,
};
use sunzi::gallery::{Kind, Size, generate};
use sunzi::{
    Cholesky, Context, GemmOptions, Matrix, MatrixView, Op, SyrkOptions, TrsmOptions, Uplo, gemm_with, syrk_with,
};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "products::syrk_gives_the_bits_of_one_process", ranks: &[1, 2, 3, 4, 5, 6], run: Run::Group(grid) },
    Case { name: "products::one_team_many_calls", ranks: &[2, 5], run: Run::Group(many_calls) },
    Case { name: "products::from_rows_to_a_factor", ranks: &[1, 3, 4], run: Run::Group(factor) },
    Case { name: "products::solves_with_a_factor_in_tiles", ranks: &[1, 2, 3, 4], run: Run::Group(solves) },
    Case {
        name: "products::solves_whose_ranks_make_residues_together",
        ranks: &[1, 2, 3, 4],
        run: Run::Group(together),
    },
    Case {
        name: "products::ranks_with_other_instructions_share_no_tiles",
        ranks: &[2],
        run: Run::Launcher(unlike_processors),
    },
    Case { name: UNLIKE, ranks: &[], run: Run::Part(unlike) },
    Case { name: "products::an_error_on_one_rank_is_that_of_all", ranks: &[2, 4], run: Run::Group(errors) },
];

fn one_thread() -> Context {
    Context::builder().threads(1).build().unwrap()
}

fn cuts() -> [Option<Cut>; 5] {
    let all = usize::MAX;
    let cut = |batch_primes, band_panels, chunk_rows| Some(Cut { batch_primes, band_panels, chunk_rows });
    [None, cut(3, all, all), cut(all, 4, all), cut(all, all, 37), cut(2, 3, 29)]
}

fn matrix(kind: Kind, rows: usize, cols: usize, precision_bits: u32, seed: u64) -> Matrix {
    generate(kind, Size { rows, cols, precision_bits }, seed).unwrap()
}

/// The blocks of `rank`, uneven and some empty; the same on all ranks.
fn random_blocks(rows: usize, ranks: usize, rank: usize, seed: u64) -> Vec<Range<usize>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let empty = 0..0;
    let (mut blocks, mut start) = (vec![empty], 0);
    while start < rows {
        let count = 1 + rng.random_range(0..rows - start).min(rng.random_range(0..rows / 2 + 2));
        if rng.random_range(0..ranks) == rank {
            blocks.push(start..start + count);
        }
        start += count;
    }
    blocks
}

fn views<'a>(matrix: &'a Matrix, blocks: &[Range<usize>]) -> Vec<MatrixView<'a>> {
    blocks.iter().map(|rows| matrix.view().block(rows.clone(), 0..matrix.cols()).unwrap()).collect()
}

/// Nodes of 1, 2, 3 and 6 ranks; 1, 10 and 67 columns; 0 to 1000 rows; every cut; both triangles; uneven blocks.
fn grid(rank: MpiRank) {
    let shapes = [1, 10, 67].into_iter().flat_map(|cols| [0, 1, 10, 100, 1000].map(|rows| (rows, cols)));
    // Nodes with room for more ranks than there are have all of them, as the last of these.
    let rooms = [1, 2, 3, 6].into_iter().filter(|&room| room < rank.size() || room == 6);
    let teams = rooms.flat_map(|room| [WindowKind::Mpi, WindowKind::Posix].map(|window| (room, window)));
    for (turn, (ranks_per_node, window)) in teams.enumerate() {
        let options = TeamOptions::new().ranks_per_node(ranks_per_node).window(window);
        let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
        for (shape, (rows, cols)) in shapes.clone().enumerate() {
            // The teams take turns at the shapes, and meet each with a cut of their own.
            if effort() == 1 && (turn + shape) % 5 != rank.size() % 5 {
                continue;
            }
            let combination = rank.size() + shape + 15 * turn;
            let uplo = if combination.is_multiple_of(2) { Uplo::Lower } else { Uplo::Upper };
            let (cut, seed) = (cuts()[(combination + turn) % 5], combination as u64);
            let p = matrix([Kind::Graded, Kind::Random][combination / 2 % 2], rows, cols, 200, seed);
            let blocks = random_blocks(rows, rank.size(), rank.rank(), seed);
            let options = DistOptions::new().uplo(uplo).hooks(Hooks::cut(cut));
            let ctx = Context::builder().threads(1 + rank.rank() % 2).build().unwrap();
            let outcome = syrk(&ctx, &mut team, &views(&p, &blocks), 200, &options).unwrap();
            if let Some(got) = outcome.result.gather(&rank, 0).unwrap() {
                let options = SyrkOptions::new().uplo(uplo);
                let want = syrk_with(&one_thread(), &p, 200, &options).unwrap().result;
                assert!(got == want, "{rows} x {cols}, nodes of {ranks_per_node}, {window:?}, {cut:?}, {uplo:?}");
            }
        }
        team.close().unwrap();
    }
}

/// Windows, groups and tables are kept, shrink and grow; the plan's bytes are those of the windows.
fn many_calls(rank: MpiRank) {
    let options = TeamOptions::new().ranks_per_node(2);
    let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
    let ctx = Context::builder().threads(1).memory_bytes(64 << 20).build().unwrap();
    for (rows, cols, bits) in [(50, 20, 100), (300, 67, 300), (10, 5, 60), (300, 67, 300), (300, 67, 300)] {
        let p = matrix(Kind::Random, rows, cols, bits, 3);
        let own = even_share(rows, rank.size(), rank.rank());
        let outcome =
            syrk(&ctx, &mut team, &views(&p, std::slice::from_ref(&own)), bits, &DistOptions::default()).unwrap();
        let report = outcome.report.team.unwrap();
        let planned = report.plan.per_node.iter().map(|node| node.bytes.operand_window + node.bytes.product_window);
        assert_eq!(planned.max(), Some(report.window_bytes));
        let got = outcome.result.gather(&rank, 0).unwrap();
        assert!(got.is_none_or(|got| got == sunzi::syrk(&one_thread(), &p, bits).unwrap()));
    }
    team.close().unwrap();
}

/// Rows from the root, their Gram matrix, its factor, and a product of it with itself, in tiles all the way.
fn factor(rank: MpiRank) {
    let p = matrix(Kind::Random, 150, 40, 160, 4);
    let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::from_environment().unwrap()).unwrap();
    let rows = scatter_rows(&rank, 0, (rank.rank() == 0).then(|| p.view())).unwrap();
    let ctx = one_thread();
    let gram = syrk(&ctx, &mut team, &[rows.view()], 160, &DistOptions::default()).unwrap().result;
    let factor = cholesky(&ctx, &team, &gram, 160).unwrap().factor;
    let options = DistOptions::default();
    let operands = ((&factor, Op::NoTranspose), (&factor, Op::Transpose));
    let product = gemm(&ctx, &mut team, operands.0, operands.1, 160, &options).unwrap().result;
    let (factor, product) = (factor.gather(&rank, 0).unwrap(), product.gather(&rank, 0).unwrap());
    if let (Some(factor), Some(product)) = (factor, product) {
        let want = sunzi::cholesky(&ctx, &sunzi::syrk(&ctx, &p, 160).unwrap(), 160).unwrap().into_factor();
        assert!(factor == want);
        let options = GemmOptions::new().op_b(Op::Transpose);
        assert!(product == gemm_with(&ctx, &want, &want, 160, &options).unwrap().result);
    }
    team.close().unwrap();
}

/// Every way of a solve: by vectors, by columns, and by parts that the ranks share out; an error on the way leaves
/// nothing behind.
fn solves(rank: MpiRank) {
    let team = Team::new(rank.split(0).unwrap(), TeamOptions::from_environment().unwrap()).unwrap();
    let ctx = one_thread();
    // The root alone has the factor of one process.
    let one = (rank.rank() == 0).then(|| {
        let p = matrix(Kind::Random, 260, 130, 200, 4);
        sunzi::cholesky(&ctx, &sunzi::syrk(&ctx, &p, 200).unwrap(), 200).unwrap()
    });
    let one = one.as_ref();
    let grid = RankGrid::for_ranks(rank.size());
    let map = TileMap { rows: 130, cols: 130, tile_size: 24, grid, triangle: Some(Uplo::Lower) };
    let factor = DistMatrix::scatter(&rank, 0, one.map(|one| one.factor()), map, 200).unwrap();
    for (turn, cols) in [0, 1, 3, 5, 8, 40].into_iter().enumerate() {
        let b = matrix(Kind::Graded, 130, cols, 200, 7);
        let map = TileMap { cols, tile_size: 16, triangle: None, ..map };
        let right = DistMatrix::scatter(&rank, 0, one.map(|_| &b), map, 200).unwrap();
        let solved = solve(&ctx, &team, &factor, &right, 200).unwrap();
        let got = solved.solution.gather(&rank, 0).unwrap();
        assert!(got == one.map(|one| one.solve(&ctx, &b, 200).unwrap()), "{cols} columns");
        // With little effort numbers of ranks and of columns take turns at the triangles.
        for (at, op) in [Op::NoTranspose, Op::Transpose].into_iter().enumerate() {
            if effort() == 1 && (at + turn + rank.size()) % 2 == 1 {
                continue;
            }
            let options = TrsmOptions::new().op(op);
            let solved = trsm_with(&ctx, &team, &factor, &right, 200, &options).unwrap();
            let got = solved.solution.gather(&rank, 0).unwrap();
            let want = |one: &Cholesky| sunzi::trsm_with(&ctx, one.factor(), &b, 200, &options).unwrap().result;
            assert!(got == one.map(want), "{cols} columns, {op:?}");
        }
        // With eight columns the last rank has none, and is not asked.
        if [1, 3, 5, 40].contains(&cols) {
            let stop = rank.rank() == rank.size() - 1;
            let ctx = Context::builder().threads(1).progress(move |_| !stop).build().unwrap();
            let outcome = solve(&ctx, &team, &factor, &right, 200);
            assert!(outcome.is_err_and(|error| error.exit_code() == 130), "{cols} columns");
        }
    }
}

/// Orders from which on the ranks of a node share a window: one that a later call finds, and one that a product took.
fn together(rank: MpiRank) {
    let (order, bits) = (280, 100);
    let ctx = one_thread();
    let p = matrix(Kind::Random, order + 20, order, bits, 4);
    // The root alone has what one process makes.
    let one = (rank.rank() == 0).then(|| {
        let product = sunzi::syrk(&ctx, &p, bits).unwrap();
        (sunzi::cholesky(&ctx, &product, bits).unwrap(), product.into_matrix())
    });
    let one = one.as_ref();
    let grid = RankGrid::for_ranks(rank.size());
    let map = TileMap { rows: order, cols: order, tile_size: 64, grid, triangle: Some(Uplo::Lower) };
    let factor = DistMatrix::scatter(&rank, 0, one.map(|(one, _)| one.factor()), map, bits).unwrap();
    let gram = DistMatrix::scatter(&rank, 0, one.map(|(_, product)| product), map, bits).unwrap();
    let solutions = [9, 40, 1, 7, 8, 15, 16, 17, 100].map(|cols| {
        let b = matrix(Kind::Graded, order, cols, bits, 7);
        (cols, one.map(|(one, _)| one.solve(&ctx, &b, bits).unwrap()), b)
    });
    for (window, ranks_per_node) in [(WindowKind::Auto, 4), (WindowKind::Posix, 2)] {
        // One rank is a node in both.
        if effort() == 1 && rank.size() == 1 && ranks_per_node == 2 {
            continue;
        }
        let options = TeamOptions::new().ranks_per_node(ranks_per_node).window(window);
        let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
        let widths = [1, 7, 8, 15, 16, 17, 100].map(|cols| (cols, None));
        let first = [(9, None), (40, None), (40, Some(1 << 30)), (9, None)];
        for (turn, (cols, memory_bytes)) in first.into_iter().chain(widths).enumerate() {
            // Both kinds of windows meet the first calls, and take turns at the widths.
            if effort() == 1 && turn >= 4 && (turn + ranks_per_node / 2) % 2 == 0 {
                continue;
            }
            let builder = Context::builder().threads(1);
            let ctx = memory_bytes.map_or(builder.clone(), |bytes| builder.memory_bytes(bytes)).build().unwrap();
            let (_, want, b) = solutions.iter().find(|(of, ..)| *of == cols).unwrap();
            let right = TileMap { cols, tile_size: 16, triangle: None, ..map };
            let right = DistMatrix::scatter(&rank, 0, one.map(|_| b), right, bits).unwrap();
            // Factors between solves of few columns and of many, and between some of one number of them.
            if effort() > 1 || turn < 5 {
                let made = cholesky(&ctx, &team, &gram, bits).unwrap();
                let whole = made.factor.gather(&rank, 0).unwrap();
                assert!(
                    whole.as_ref() == one.map(|(one, _)| one.factor()),
                    "{window:?}, {ranks_per_node} ranks a node"
                );
                let sent = made.report.ranks.unwrap().per_rank.iter().map(|rank| rank.sent_bytes).sum::<u64>();
                let is_apart = ranks_per_node < rank.size() || rank.size() > 1 && memory_bytes.is_some();
                assert_eq!(sent > 0, is_apart, "{window:?}, {ranks_per_node} ranks a node, limit {memory_bytes:?}");
            }
            let got = solve(&ctx, &team, &factor, &right, bits).unwrap().solution.gather(&rank, 0).unwrap();
            assert!(got == *want, "{cols} columns, {window:?}");
        }
        let own = even_share(p.rows(), rank.size(), rank.rank());
        let product = syrk(&ctx, &mut team, &views(&p, &[own]), bits, &DistOptions::default()).unwrap();
        let got = product.result.gather(&rank, 0).unwrap();
        assert!(got.as_ref() == one.map(|(_, product)| product));
        team.close().unwrap();
    }
}

const UNLIKE: &str = "factors on ranks with other instructions";

/// The second rank does not see the instructions with which the first one rounds entries; both have one kernel.
fn unlike_processors(launcher: &Launcher, ranks: usize) {
    let hide = "case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in 1) export SUNZI_CPU=vnni;; esac; exec \"$@\"";
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().expect("a path of letters");
    let arguments = ["-c", hide, "sh", program, RANK_FLAG, UNLIKE, &ranks.to_string()];
    launcher.run(&Job::of_program("sh", ranks, &arguments)).expect_success();
}

fn unlike(rank: MpiRank) {
    let has_kernel = kernels::available().iter().any(|kernel| kernel.name() == "i16");
    let mut all = vec![0; rank.size()];
    rank.all_gather(&[u64::from(has_kernel)], &mut all).unwrap();
    if all.contains(&0) {
        return;
    }
    let (order, grid) = (90, RankGrid::for_ranks(rank.size()));
    let map = TileMap { rows: order, cols: order, tile_size: 24, grid, triangle: Some(Uplo::Lower) };
    let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
    for bits in [64, 100, 150, 256, 400] {
        let p = matrix(Kind::Random, order + 20, order, bits, 4);
        let gram = sunzi::syrk(&one_thread(), &p, bits).unwrap();
        let one = sunzi::cholesky(&one_thread(), &gram, bits).unwrap();
        let gram = gram.into_matrix();
        let gram = DistMatrix::scatter(&rank, 0, (rank.rank() == 0).then_some(&gram), map, bits).unwrap();
        let ctx = Context::builder().threads(1).kernel("i16").build().unwrap();
        let made = cholesky(&ctx, &team, &gram, bits).unwrap();
        let whole = made.factor.gather(&rank, 0).unwrap();
        assert!(whole.is_none_or(|whole| whole == *one.factor()), "{bits} bits");
        let level = std::env::var("SUNZI_CPU").is_ok();
        let mut levels = vec![0; rank.size()];
        rank.all_gather(&[u64::from(level)], &mut levels).unwrap();
        let is_unlike = levels.contains(&0) && levels.contains(&1);
        assert!(is_unlike && !made.report.ranks.unwrap().shared_tiles, "{bits} bits");
    }
    team.close().unwrap();
}

fn errors(rank: MpiRank) {
    let last = rank.size() - 1;
    let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
    let p = matrix(Kind::Random, 20, if rank.rank() == last { 9 } else { 10 }, 100, 1);
    let error = syrk(&one_thread(), &mut team, &[p.view()], 100, &DistOptions::default()).map(drop).unwrap_err();
    assert_eq!(error.to_string(), format!("ranks have different numbers of columns: 10 on rank 0, 9 on rank {last}"));
    let stop = rank.rank() == last;
    let ctx = Context::builder().threads(1).progress(move |_| !stop).build().unwrap();
    let p = matrix(Kind::Random, 200, 30, 300, 1);
    let error = syrk(&ctx, &mut team, &[p.view()], 300, &DistOptions::default()).map(drop).unwrap_err();
    assert_eq!(error.exit_code(), 130, "{error}");
    // The same team goes on, with the same answer as threads give.
    let outcome = syrk(&one_thread(), &mut team, &[p.view()], 300, &DistOptions::default()).unwrap();
    let got = outcome.result.gather(&rank, 0).unwrap();
    let threads = local::run(2, |thread| {
        let mut team = Team::new(thread.split(0).unwrap(), TeamOptions::default()).unwrap();
        let copies = vec![p.view(); if thread.rank() == 0 { 1 } else { last }];
        let outcome = syrk(&one_thread(), &mut team, &copies, 300, &DistOptions::default()).unwrap();
        outcome.result.gather(thread, 0).unwrap()
    });
    assert!(got.is_none_or(|got| Some(got) == threads[0]));
    team.close().unwrap();
}
