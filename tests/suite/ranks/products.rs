//! Products on many ranks give the bits of one process: any ranks, nodes, blocks, cuts, tiles and kernels.
//!
//! The ranks are threads here; the same cases run under MPI in `mpi.rs`.

use crate::common::by_norms::{dist_options, gemm_options, syrk_options};
use crate::common::{Kind, Rng, by_norms, effort, forced, in_turn, integer_matrix, kernel_names, matrix, seeds};
use sunzi::advanced::Hooks;
use sunzi::advanced::plan::Cut;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{DistMatrix, RankGrid, Team, TeamOptions, TeamPlan, gemm_rows, syrk};
use sunzi::report::Report;
use sunzi::{Context, Error, Matrix, MatrixView, Op, Result, Uplo, gemm_with, syrk_with};

/// How a matrix is shared out: the blocks of rows of each rank.
type Blocks = Vec<Vec<std::ops::Range<usize>>>;

/// Random uneven blocks, some empty; some ranks have none.
fn random_blocks(rows: usize, ranks: usize, rng: &mut Rng) -> Blocks {
    let mut blocks = vec![Vec::new(); ranks];
    let mut start = 0;
    while start < rows {
        let count = 1 + rng.below(rows - start).min(rng.below(rows / 2 + 2));
        let rank = rng.below(ranks);
        blocks[rank].push(start..start + count);
        if rng.below(4) == 0 {
            blocks[rank].push(start..start);
        }
        start += count;
    }
    blocks
}

/// The first rank has all rows.
fn one_block(rows: usize, ranks: usize) -> Blocks {
    let all = 0..rows;
    (0..ranks).map(|rank| if rank == 0 { vec![all.clone()] } else { Vec::new() }).collect()
}

fn views<'a>(matrix: &'a Matrix, blocks: &[std::ops::Range<usize>]) -> Vec<MatrixView<'a>> {
    blocks.iter().map(|rows| matrix.view().block(rows.clone(), 0..matrix.cols()).unwrap()).collect()
}

/// Runs `work` on `ranks` threads in nodes of `per_node`, and returns what rank 0 gathered with the report.
fn on_ranks(
    ranks: usize,
    per_node: usize,
    work: impl Fn(&mut Team) -> Result<(DistMatrix, Report)> + Sync,
) -> (Matrix, Report) {
    let results = local::run(ranks, |rank| {
        let options = TeamOptions::new().ranks_per_node(per_node);
        let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
        let (part, report) = work(&mut team).unwrap();
        let whole = part.gather(team.world(), 0).unwrap();
        team.close().unwrap();
        whole.map(|whole| (whole, report))
    });
    results.into_iter().next().flatten().expect("rank 0 gathers")
}

fn team_plan(report: &Report) -> &TeamPlan {
    &report.team.as_ref().unwrap().plan
}

fn cuts() -> [Option<Cut>; 5] {
    let all = usize::MAX;
    let cut = |batch_primes, band_panels, chunk_rows| Some(Cut { batch_primes, band_panels, chunk_rows });
    [None, cut(3, all, all), cut(all, 4, all), cut(all, all, 37), cut(2, 3, 29)]
}

#[test]
fn syrk_gives_the_bits_of_one_process() {
    let one = Context::builder().threads(1).build().unwrap();
    let mut combinations = 0;
    for (case, rows) in [0usize, 1, 10, 100, 1000].into_iter().enumerate() {
        for cols in [1, 10, 67] {
            let kind = [Kind::Graded, Kind::Unit, Kind::ZeroColumns][(case + cols) % 3];
            let p = matrix(kind, rows, cols, 200, 7 + rows as u64);
            for (turn, uplo) in [Uplo::Lower, Uplo::Upper].into_iter().enumerate() {
                let options = syrk_options().uplo(uplo);
                let want = syrk_with(&one, &p, 200, &options).unwrap().result;
                for ranks in (1..=6).filter(|ranks| in_turn(2, ranks + case + cols).contains(&turn)) {
                    let per_node = [1, 2, 3, 6][(combinations + ranks) % 4];
                    let mut rng = Rng::new((rows * 1000 + cols * 10 + ranks) as u64);
                    let blocks =
                        if ranks % 3 == 0 { one_block(rows, ranks) } else { random_blocks(rows, ranks, &mut rng) };
                    let cut = cuts()[(combinations + cols) % 5];
                    let label = format!("{rows} x {cols}, {uplo:?}, {ranks} ranks in {per_node}, {cut:?}, {blocks:?}");
                    let (got, _) = on_ranks(ranks, per_node, |team| {
                        let ctx = Context::builder().threads(1 + team.rank() % 2).build()?;
                        let blocks = views(&p, &blocks[team.rank()]);
                        let options = dist_options().uplo(uplo).hooks(Hooks::cut(cut));
                        let outcome = syrk(&ctx, team, &blocks, 200, &options)?;
                        Ok((outcome.result, outcome.report))
                    });
                    let known = blocks.iter().any(|blocks| !blocks.is_empty());
                    if known {
                        assert!(got == want, "{label}");
                    } else {
                        assert_eq!((got.rows(), got.cols()), (0, 0), "nobody knows the columns");
                    }
                    combinations += 1;
                }
            }
        }
    }
    assert_eq!(combinations, if effort() > 1 { 180 } else { 90 });
}

#[test]
fn every_kernel_node_and_cut_gives_the_same_bits() {
    let p = matrix(Kind::Graded, 300, 67, 150, 3);
    let one = Context::builder().threads(1).build().unwrap();
    let want = syrk_with(&one, &p, 150, &syrk_options()).unwrap().result;
    for (turn, kernel) in kernel_names().into_iter().enumerate() {
        for (at, (ranks, per_node)) in [(1, 1), (2, 1), (3, 3), (5, 2), (6, 3)].into_iter().enumerate() {
            for (index, cut) in in_turn(5, turn + at).map(|index| (index, cuts()[index])) {
                let mut rng = Rng::new(index as u64);
                let blocks = random_blocks(300, ranks, &mut rng);
                let (got, report) = on_ranks(ranks, per_node, |team| {
                    let ctx = forced(kernel, 1 + index % 2).self_check(index == 1).build()?;
                    let options = dist_options().hooks(Hooks::cut(cut)).tile_size(8 * (1 + index));
                    let outcome = syrk(&ctx, team, &views(&p, &blocks[team.rank()]), 150, &options)?;
                    Ok((outcome.result, outcome.report))
                });
                assert!(got == want, "{kernel}, {ranks} ranks in nodes of {per_node}, {cut:?}");
                assert_eq!((report.kernel, team_plan(&report).ranks), (kernel, ranks));
                assert_eq!(team_plan(&report).nodes, ranks.div_ceil(per_node));
                let cut_in = [report.batches, report.bands, report.chunks].map(|count| count > 1);
                assert_eq!(cut_in[0], index == 1 || index == 4, "{kernel} {cut:?} {:?}", report.team);
            }
        }
    }
}

/// 1026 rows are multiplied in slabs of 260 rows, 1025 rows in slabs of 512: the second chunk needs more scratch.
#[test]
fn a_lower_chunk_may_need_more_scratch_than_the_first() {
    let p = matrix(Kind::Unit, 2051, 448, 64, 5);
    let one = Context::builder().threads(1).build().unwrap();
    let want = syrk_with(&one, &p, 64, &syrk_options()).unwrap().result;
    let (got, report) = on_ranks(1, 1, |team| {
        let ctx = Context::builder().threads(1).build()?;
        let cut = Some(Cut { batch_primes: usize::MAX, band_panels: usize::MAX, chunk_rows: 1026 });
        let options = dist_options().hooks(Hooks::cut(cut));
        let outcome = syrk(&ctx, team, &[p.view()], 64, &options)?;
        Ok((outcome.result, outcome.report))
    });
    assert_eq!((report.chunks, team_plan(&report).per_node[0].chunk_rows), (2, 1026));
    assert!(got == want);
}

#[test]
fn windows_hold_exactly_what_was_planned_and_are_kept() {
    let p = matrix(Kind::Unit, 200, 40, 128, 5);
    local::run(4, |rank| {
        let options = TeamOptions::new().ranks_per_node(2);
        let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
        let ctx = Context::builder().threads(1).build().unwrap();
        let rows = rank.rank() * 50..rank.rank() * 50 + 50;
        let mut first = None;
        for _ in 0..3 {
            let blocks = views(&p, std::slice::from_ref(&rows));
            let outcome = syrk(&ctx, &mut team, &blocks, 128, &dist_options()).unwrap();
            let team_report = outcome.report.team.as_ref().unwrap();
            let node = &team_report.plan.per_node[0];
            assert_eq!(team_report.window_bytes, node.bytes.operand_window + node.bytes.product_window);
            assert_eq!(team.window_bytes(), team_report.window_bytes);
            let kept = first.get_or_insert_with(|| outcome.result.clone());
            assert!(outcome.result == *kept);
        }
        team.close().unwrap();
    });
}

#[test]
fn memory_limits_of_a_node_choose_the_cut_and_name_the_least() {
    let p = matrix(Kind::Unit, 2000, 67, 128, 5);
    let one = Context::builder().threads(1).build().unwrap();
    let want = syrk_with(&one, &p, 128, &syrk_options()).unwrap().result;
    let run = |limit: u64| {
        local::run(4, |rank| {
            let options = TeamOptions::new().ranks_per_node(2);
            let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
            let ctx = Context::builder().threads(1).memory_bytes(limit).build().unwrap();
            let blocks = views(&p, std::slice::from_ref(&(rank.rank() * 500..rank.rank() * 500 + 500)));
            let outcome = syrk(&ctx, &mut team, &blocks, 128, &dist_options())?;
            assert!(outcome.report.planned_bytes <= limit);
            let plan = &outcome.report;
            let cuts = (plan.batches, plan.bands, plan.chunks);
            let whole = outcome.result.gather(team.world(), 0)?;
            assert!(whole.is_none_or(|whole| whole == want));
            Ok((plan.planned_bytes, cuts))
        })
    };
    let whole = run(u64::MAX / 2)[0].as_ref().unwrap().0;
    let Err(Error::MemoryLimit { minimum_bytes, .. }) = &run(1)[3] else { panic!("one byte cannot do") };
    let mut met = std::collections::BTreeSet::new();
    for eighths in 0..=8 {
        let limit = minimum_bytes + (whole - minimum_bytes) * eighths / 8;
        for result in run(limit) {
            let (_, (batches, bands, chunks)) = result.unwrap();
            met.insert((batches > 1, bands > 1, chunks > 1));
        }
    }
    assert!(met.iter().any(|cut| cut.0 || cut.2) && met.iter().any(|cut| cut.1), "{met:?}");
    assert!(run(minimum_bytes - 1).iter().all(|result| matches!(result, Err(Error::MemoryLimit { .. }))));
}

/// A node whose window still does must not run ahead of one that opens a larger one.
#[test]
fn nodes_whose_windows_grow_wait_for_those_that_keep_theirs() {
    let p = matrix(Kind::Unit, 300, 30, 128, 5);
    let want = |rows| {
        let part = p.view().block(0..rows, 0..30).unwrap();
        by_norms::syrk(&Context::builder().threads(1).build().unwrap(), part, 128).unwrap()
    };
    local::run(2, |rank| {
        let options = TeamOptions::new().ranks_per_node(1);
        let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
        let ctx = Context::builder().threads(1).build().unwrap();
        // The second node's rows grow, the first node's do not; then the other way round.
        for (middle, rows) in [(100, 150), (100, 300), (200, 250)] {
            let own = if rank.rank() == 0 { 0..middle } else { middle..rows };
            let outcome = syrk(&ctx, &mut team, &views(&p, std::slice::from_ref(&own)), 128, &dist_options()).unwrap();
            let got = outcome.result.gather(rank, 0).unwrap();
            assert!(got.is_none_or(|got| got == want(rows)));
        }
    });
}

/// Only one rank of a node has a limit: all must decide alike whether windows are kept.
#[test]
fn a_limit_on_one_rank_is_that_of_its_node() {
    local::run(2, |rank| {
        let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
        let builder = Context::builder().threads(1);
        let builder = if rank.rank() == 0 { builder.memory_bytes(1 << 30) } else { builder };
        let ctx = builder.build().unwrap();
        for (rows, cols) in [(300, 40), (20, 9), (300, 40)] {
            let p = matrix(Kind::Unit, rows, cols, 128, 5);
            let outcome = syrk(&ctx, &mut team, &[p.view()], 128, &dist_options()).unwrap();
            let bytes = &team_plan(&outcome.report).per_node[0].bytes;
            assert_eq!(team.window_bytes(), bytes.operand_window + bytes.product_window);
        }
    });
}

#[test]
fn a_grid_that_does_not_fit_is_refused() {
    let p = matrix(Kind::Unit, 20, 10, 100, 1);
    let errors = local::run(3, |rank| {
        let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
        let ctx = Context::builder().threads(1).build().unwrap();
        let options = dist_options().grid(RankGrid { rows: 2, cols: 2 });
        syrk(&ctx, &mut team, &[p.view()], 100, &options).map(drop).unwrap_err().to_string()
    });
    assert!(
        errors.iter().all(|error| error == "a grid of 2 x 2 ranks has 4 ranks, but there are only 3"),
        "{errors:?}"
    );
}

/// An error of a rank that is not the first of its node carries its number among all ranks.
#[test]
fn errors_of_later_nodes_name_the_rank() {
    let p = matrix(Kind::Unit, 400, 67, 500, 1);
    let errors = local::run(4, |rank| {
        let options = TeamOptions::new().ranks_per_node(2);
        let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
        let integers = integer_matrix(20, 10, 50, 1);
        let operand = if rank.rank() == 3 { &p } else { &integers };
        let ctx = Context::builder().threads(1).build().unwrap();
        let options = dist_options().exact_integers(true);
        let narrow = operand.view().block(0..20, 0..10).unwrap();
        syrk(&ctx, &mut team, &[narrow], 100, &options).map(drop).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.starts_with("rank 3: ")), "{errors:?}");
}

#[test]
fn exact_integers_and_factors_are_as_in_one_process() {
    let p = integer_matrix(90, 21, 70, 11);
    let alpha = rug::Float::with_val(64, -3);
    let one = Context::builder().threads(1).build().unwrap();
    for exact_integers in [true, false] {
        let options = syrk_options().exact_integers(exact_integers).alpha(&alpha);
        let want = syrk_with(&one, &p, 70, &options).unwrap().result;
        let (got, _) = on_ranks(3, 2, |team| {
            let ctx = Context::builder().threads(1).build()?;
            let blocks = views(&p, std::slice::from_ref(&(team.rank() * 30..team.rank() * 30 + 30)));
            let options = dist_options().exact_integers(exact_integers).alpha(&alpha);
            let outcome = syrk(&ctx, team, &blocks, 70, &options)?;
            Ok((outcome.result, outcome.report))
        });
        assert!(got == want, "exact integers: {exact_integers}");
    }
}

/// `matrix` with its entries below the diagonal in place of those above.
fn mirrored(matrix: &Matrix) -> Matrix {
    let mut whole = matrix.clone();
    for (row, col) in (0..whole.rows()).flat_map(|row| (0..row).map(move |col| (row, col))) {
        whole.set(col, row, matrix.get(row, col));
    }
    whole
}

/// However the added matrix lies on the ranks: the tiles of the result, other ones, the other triangle, no triangle.
#[test]
fn a_matrix_is_added_as_in_one_process() {
    let one = Context::builder().threads(1).build().unwrap();
    let scalars = [Some(rug::Float::with_val(64, -3)), Some(rug::Float::with_val(64, 7)), None];
    for seed in seeds(24) {
        let mut rng = Rng::new(seed);
        let (rows, cols, ranks) = (1 + rng.below(60), 1 + rng.below(50), 1 + rng.below(5));
        let exact_integers = seed % 3 == 0;
        let of = |rows: usize, cols: usize, seed: u64| match exact_integers {
            true => integer_matrix(rows, cols, 70, seed),
            false => matrix(Kind::Graded, rows, cols, 90, seed),
        };
        let (p, c) = (of(rows, cols, seed), mirrored(&of(cols, cols, seed + 100)));
        let [alpha, beta] = [0, 1].map(|_| scalars[rng.below(3)].as_ref());
        let uplo = [Uplo::Lower, Uplo::Upper][rng.below(2)];
        let accumulate = Some((&c).into());
        let options =
            syrk_options().uplo(uplo).exact_integers(exact_integers).alpha(alpha).beta(beta).accumulate(accumulate);
        let want = syrk_with(&one, &p, 90, &options).unwrap().result;
        let triangle = [None, Some(Uplo::Lower), Some(Uplo::Upper)][rng.below(3)];
        let (tile_size, grid) = (8 * (1 + rng.below(4)), RankGrid { rows: 1, cols: 1 + rng.below(ranks) });
        let map = TileMap { rows: cols, cols, tile_size, grid, triangle };
        let blocks = random_blocks(rows, ranks, &mut rng);
        let (got, _) = on_ranks(ranks, 1 + rng.below(3), |team| {
            let ctx = Context::builder().threads(1).build()?;
            let whole = (team.rank() == 0).then_some(&c);
            let added = DistMatrix::scatter(team.world(), 0, whole, map, c.precision_bits())?;
            let accumulate = Some(&added);
            let options =
                dist_options().uplo(uplo).exact_integers(exact_integers).alpha(alpha).beta(beta).accumulate(accumulate);
            let outcome = syrk(&ctx, team, &views(&p, &blocks[team.rank()]), 90, &options)?;
            Ok((outcome.result, outcome.report))
        });
        assert!(got == want, "seed {seed}: {rows} x {cols}, {ranks} ranks, {map:?}, {uplo:?}");
    }
}

#[test]
fn a_matrix_is_added_to_a_general_product_and_where_there_is_none() {
    let one = Context::builder().threads(1).build().unwrap();
    let beta = rug::Float::with_val(64, 0.75);
    for (rows, m, n) in [(40, 17, 30), (0, 9, 12)] {
        let (a, b) = (matrix(Kind::Unit, rows, m, 130, 1), matrix(Kind::Unit, rows, n, 130, 2));
        let c = matrix(Kind::Graded, m, n, 200, 3);
        let beta = Some(&beta);
        let options = gemm_options().op_a(Op::Transpose).beta(beta).accumulate(c.view());
        let want = gemm_with(&one, &a, &b, 130, &options).unwrap().result;
        let map = TileMap { rows: m, cols: n, tile_size: 8, grid: RankGrid { rows: 3, cols: 1 }, triangle: None };
        let (got, _) = on_ranks(3, 2, |team| {
            let ctx = Context::builder().threads(1).build()?;
            let added = DistMatrix::scatter(team.world(), 0, (team.rank() == 0).then_some(&c), map, 200)?;
            let own = std::slice::from_ref(&(team.rank() * rows / 3..(team.rank() + 1) * rows / 3)).to_vec();
            let options = dist_options().beta(beta).accumulate(&added);
            let outcome = gemm_rows(&ctx, team, (&views(&a, &own), &views(&b, &own)), 130, &options)?;
            let narrow = (&views(&a, &own)[..], &views(&a, &own)[..]);
            let misfit = gemm_rows(&ctx, team, narrow, 130, &options).map(drop);
            assert!(matches!(misfit, Err(Error::ShapeMismatch { operation: "accumulate", .. })), "{misfit:?}");
            Ok((outcome.result, outcome.report))
        });
        assert!(got == want, "{rows} rows, {m} x {n}");
    }
}

/// Freivalds' test accepts right products, and finds a block that is 0 in all planes, which no redundant prime can.
#[test]
fn freivalds_test_judges_products_on_ranks() {
    let p = matrix(Kind::Unit, 90, 30, 150, 8);
    let one = Context::builder().threads(1).build().unwrap();
    let want = syrk_with(&one, &p, 150, &syrk_options()).unwrap().result;
    let clear = |window: &mut [u64], plane_words: usize| {
        let block = plane_words / 10; // words of one of the ten blocks
        window.chunks_exact_mut(plane_words).for_each(|plane| plane[3 * block..4 * block].fill(0));
    };
    for kernel in kernel_names() {
        for (ranks, per_node) in [(1, 1), (3, 3), (4, 2), (3, 1)] {
            let run = |team: &mut Team, fault| {
                let ctx = forced(kernel, 1 + team.rank() % 2).freivalds(true).self_check(true).build().unwrap();
                let own = std::slice::from_ref(&(team.rank() * 90 / ranks..(team.rank() + 1) * 90 / ranks)).to_vec();
                let options = dist_options().hooks(fault);
                syrk(&ctx, team, &views(&p, &own), 150, &options)
            };
            let (got, report) = on_ranks(ranks, per_node, |team| {
                let found = run(team, Hooks::fault(&clear)).map(drop).unwrap_err();
                assert!(matches!(&found, Error::Verification(text) if text.starts_with("row 0 ")), "{kernel}: {found}");
                run(team, Hooks::default()).map(|outcome| (outcome.result, outcome.report))
            });
            assert!(got == want && report.checked, "{kernel}, {ranks} ranks");
        }
    }
}

#[test]
fn gemm_of_rows_gives_the_bits_of_one_process() {
    let one = Context::builder().threads(1).build().unwrap();
    for seed in seeds(12) {
        let mut rng = Rng::new(seed);
        let (rows, m, n) = (rng.below(300), 1 + rng.below(40), 1 + rng.below(90));
        let ranks = 1 + rng.below(6);
        let (a, b) = (matrix(Kind::Graded, rows, m, 130, seed), matrix(Kind::Unit, rows, n, 130, seed + 1));
        let options = gemm_options().op_a(Op::Transpose);
        let want = gemm_with(&one, &a, &b, 130, &options).unwrap().result;
        let mut blocks = random_blocks(rows, ranks, &mut rng);
        blocks[0].push(0..0);
        let cut = cuts()[seed as usize % 5];
        let (got, _) = on_ranks(ranks, 1 + rng.below(3), |team| {
            let ctx = Context::builder().threads(1 + team.rank() % 2).build()?;
            let own = &blocks[team.rank()];
            // A general product has no triangle: the option must not matter.
            let uplo = if seed % 2 == 0 { Uplo::Upper } else { Uplo::Lower };
            let options = dist_options().hooks(Hooks::cut(cut)).uplo(uplo);
            let outcome = gemm_rows(&ctx, team, (&views(&a, own), &views(&b, own)), 130, &options)?;
            Ok((outcome.result, outcome.report))
        });
        assert!(got == want, "seed {seed}: {rows} rows, {m} x {n}, {ranks} ranks, {cut:?}");
    }
}

#[test]
fn an_error_on_one_rank_is_the_error_of_all() {
    let good = matrix(Kind::Unit, 20, 10, 100, 1);
    let narrow = matrix(Kind::Unit, 20, 9, 100, 1);
    let mut wild = integer_matrix(20, 10, 100, 1);
    let half = Matrix::from_f64s(1, 1, 100, &[0.5]).unwrap();
    wild.set(7, 3, half.get(0, 0));
    let cases: [(&Matrix, bool, u32, u8, &str); 3] = [
        (&narrow, false, 100, 2, "ranks have different numbers of columns: 10 on rank 0, 9 on rank 2"),
        (&good, false, 101, 2, "ranks have different precisions: 100 on rank 0, 101 on rank 2"),
        (&wild, true, 100, 3, "rank 2: entry at row 7, column 3 is not an integer"),
    ];
    for (odd, exact_integers, precision_bits, code, text) in cases {
        let integers = integer_matrix(20, 10, 50, 1);
        let errors = local::run(4, |rank| {
            let options = TeamOptions::new().ranks_per_node(2);
            let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
            let ctx = Context::builder().threads(1).build().unwrap();
            let usual = if exact_integers { &integers } else { &good };
            let (p, bits) = if rank.rank() == 2 { (odd, precision_bits) } else { (usual, 100) };
            let options = dist_options().exact_integers(exact_integers);
            let error = syrk(&ctx, &mut team, &[p.view()], bits, &options).map(drop).unwrap_err();
            // The team still works.
            syrk(&ctx, &mut team, &[good.view()], 100, &dist_options()).unwrap();
            error
        });
        for error in errors {
            assert_eq!(error.exit_code(), code, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}

#[test]
fn cancelling_one_rank_ends_all() {
    let p = matrix(Kind::Unit, 400, 67, 500, 1);
    for stop_at in [0, 50, 400] {
        let errors = local::run(4, |rank| {
            let options = TeamOptions::new().ranks_per_node(2);
            let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
            let calls = std::sync::atomic::AtomicUsize::new(0);
            let cancels = rank.rank() == 3;
            let callback = move |_: sunzi::Progress| {
                !cancels || calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < stop_at
            };
            let ctx = Context::builder().threads(1).progress(callback).build().unwrap();
            let cut = Some(Cut { batch_primes: 2, band_panels: 4, chunk_rows: 100 });
            let options = dist_options().hooks(Hooks::cut(cut));
            syrk(&ctx, &mut team, &[p.view()], 500, &options).map(drop).unwrap_err()
        });
        assert!(errors.iter().all(|error| matches!(error, Error::Cancelled)), "{errors:?}");
    }
}

#[test]
fn matrices_are_scattered_and_gathered_unchanged() {
    for (rows, cols, ranks, tile_size) in [(67, 67, 6, 16), (1, 30, 3, 8), (0, 5, 2, 8), (50, 20, 5, 24)] {
        let whole = matrix(Kind::Graded, rows, cols, 200, 9);
        let grid = RankGrid::for_ranks(ranks);
        let map = TileMap { rows, cols, tile_size, grid, triangle: None };
        for root in [0, ranks - 1] {
            local::run(ranks, |rank| {
                let own = (rank.rank() == root).then_some(&whole);
                let part = DistMatrix::scatter(rank, root, own, map, 200).unwrap();
                assert_eq!(part.bytes(), DistMatrix::bytes_for(&map, rank.rank(), 200));
                let back = part.gather(rank, root).unwrap();
                assert_eq!(back.is_some(), rank.rank() == root);
                assert!(back.is_none_or(|back| back == whole));
            });
        }
    }
}
