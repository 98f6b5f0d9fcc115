//! Products on ranks with devices: the bits of one process, whatever devices the ranks have.

use crate::common::{Kind, integer_matrix, matrix};
use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{DistMatrix, DistOptions, RankGrid, Team, TeamOptions, gemm_rows, syrk};
use sunzi::{
    Accuracy, Context, ContextBuilder, Device, Error, GemmOptions, Matrix, MatrixView, Op, Report, SyrkOptions, Uplo,
    gemm_with, syrk_with,
};

/// Rank `rank` has one device more than the rank before, of one family or the other.
fn with_devices(rank: usize) -> ContextBuilder {
    let devices = (0..1 + rank % 2).map(|number| {
        let options = SoftOptions { seed: Some(number as u64), capacity_bytes: 64 << 20, ..SoftOptions::default() };
        Arc::new(SoftDevice::new(options)) as Arc<dyn Device>
    });
    Context::builder().threads(1).devices(devices.collect()).kernel(["cuda-i8", "cuda-f64"][rank / 2 % 2])
}

fn team(rank: &local::LocalRank, per_node: usize) -> Team {
    let options = TeamOptions::new().ranks_per_node(per_node);
    Team::new(rank.split(0).unwrap(), options).unwrap()
}

/// The rows of a rank, in two blocks; the last of several ranks has none.
fn blocks(matrix: &Matrix, rank: usize, ranks: usize) -> Vec<MatrixView<'_>> {
    let (rows, shares) = (matrix.rows(), ranks.max(2) - 1);
    let (start, end) = ((rank * rows / shares).min(rows), ((rank + 1) * rows / shares).min(rows));
    let middle = start + (end - start) / 3;
    [start..middle, middle..end].map(|rows| matrix.view().block(rows, 0..matrix.cols()).unwrap()).to_vec()
}

#[test]
fn devices_of_ranks_give_the_bits_of_one_process() {
    let one = Context::builder().threads(1).build().unwrap();
    let (alpha, beta) = (rug::Float::with_val(64, -3), rug::Float::with_val(64, 5));
    for (case, (rows, cols, ranks, per_node)) in
        [(70, 33, 1, 1), (90, 40, 3, 2), (50, 17, 4, 2), (9, 60, 5, 3)].into_iter().enumerate()
    {
        let exact_integers = case % 2 == 1;
        let of = |rows: usize, cols: usize, seed: u64| match exact_integers {
            true => integer_matrix(rows, cols, 70, seed),
            false => matrix(Kind::Graded, rows, cols, 150, seed),
        };
        let (p, b, c) = (of(rows, cols, 1), of(rows, 21, 2), of(cols, 21, 3));
        let uplo = [Uplo::Lower, Uplo::Upper][case % 2];
        let options = SyrkOptions::new().uplo(uplo).exact_integers(exact_integers).alpha(&alpha);
        let want = syrk_with(&one, &p, 150, &options).unwrap().result;
        let (scalar, added) = (Some(&beta), Some(&c));
        let op_a = Op::Transpose;
        let options = GemmOptions::new()
            .op_a(op_a)
            .exact_integers(exact_integers)
            .beta(scalar)
            .accumulate(added.map(Matrix::view));
        let want_general = gemm_with(&one, &p, &b, 150, &options).unwrap().result;
        local::run(ranks, |rank| {
            let mut team = team(rank, per_node);
            let check = case < 2;
            let ctx = with_devices(rank.rank()).self_check(check).freivalds(check).build().unwrap();
            let own = blocks(&p, rank.rank(), ranks);
            let options = DistOptions::new().uplo(uplo).exact_integers(exact_integers).alpha(&alpha);
            let outcome = syrk(&ctx, &mut team, &own, 150, &options).unwrap();
            assert!(outcome.report.checked == check && outcome.report.team.is_some());
            assert_eq!(outcome.report.devices.is_empty(), own.iter().all(|block| block.rows() == 0));
            let got = outcome.result.gather(rank, 0).unwrap();
            assert!(got.is_none_or(|got| got == want), "syrk, case {case}");
            let grid = RankGrid::for_ranks(ranks);
            let map = TileMap { rows: cols, cols: 21, tile_size: 24, grid, triangle: None };
            let root = (rank.rank() == 0).then_some(&c);
            let added = DistMatrix::scatter(rank, 0, root, map, c.precision_bits()).unwrap();
            let accumulate = Some(&added);
            let options = DistOptions::new().exact_integers(exact_integers).beta(scalar).accumulate(accumulate);
            let own_b = blocks(&b, rank.rank(), ranks);
            let outcome = gemm_rows(&ctx, &mut team, (&own, &own_b), 150, &options).unwrap();
            let got = outcome.result.gather(rank, 0).unwrap();
            assert!(got.is_none_or(|got| got == want_general), "gemm, case {case}");
        });
    }
}

#[test]
fn accuracy_entry_by_entry_gives_the_bits_of_one_process() {
    let one = Context::builder().threads(1).build().unwrap();
    for (case, (rows, cols, ranks, per_node)) in
        [(60, 33, 3, 2), (40, 35, 4, 4), (3, 3, 2, 1), (25, 40, 1, 1)].into_iter().enumerate()
    {
        // Some entries need so many bits more than the others that they are summed one by one.
        let mut p = matrix([Kind::Unit, Kind::Extreme][case % 2], rows, cols, 150, 1);
        let large = rug::Float::with_val(150, 1) << 4000u32;
        (0..cols).for_each(|col| p.set_f64(rows / 2, col, 0.0).unwrap());
        p.set_float(rows / 2, 1, &large).unwrap();
        let (b, c) = (matrix(Kind::Graded, rows, 21, 150, 2), matrix(Kind::Unit, cols, 21, 150, 3));
        let uplo = [Uplo::Lower, Uplo::Upper][case % 2];
        let want = syrk_with(&one, &p, 150, &SyrkOptions::new().uplo(uplo).accuracy(Accuracy::Entrywise)).unwrap();
        assert!(want.report.single_entries > 0, "{:?}", want.report);
        let options = GemmOptions::new().op_a(Op::Transpose).accuracy(Accuracy::Entrywise).accumulate(c.view());
        let want_general = gemm_with(&one, &p, &b, 150, &options).unwrap();
        local::run(ranks, |rank| {
            for builder in [Context::builder().threads(2), with_devices(rank.rank())] {
                let (mut team, ctx) = (team(rank, per_node), builder.build().unwrap());
                let own = blocks(&p, rank.rank(), ranks);
                let options = DistOptions::new().uplo(uplo).accuracy(Accuracy::Entrywise);
                let outcome = syrk(&ctx, &mut team, &own, 150, &options).unwrap();
                let chosen = |report: &Report| (report.accuracy, report.range_bits, report.single_entries);
                assert_eq!(chosen(&outcome.report), chosen(&want.report), "case {case}");
                let got = outcome.result.gather(rank, 0).unwrap();
                assert!(got.is_none_or(|got| got == want.result), "syrk, case {case}");
                let map =
                    TileMap { rows: cols, cols: 21, tile_size: 24, grid: RankGrid::for_ranks(ranks), triangle: None };
                let root = (rank.rank() == 0).then_some(&c);
                let added = DistMatrix::scatter(rank, 0, root, map, c.precision_bits()).unwrap();
                let options = DistOptions::new().accuracy(Accuracy::Entrywise).accumulate(&added).tile_size(24);
                let pair = (&own[..], &blocks(&b, rank.rank(), ranks)[..]);
                let outcome = gemm_rows(&ctx, &mut team, pair, 150, &options).unwrap();
                let got = outcome.result.gather(rank, 0).unwrap();
                assert!(got.is_none_or(|got| got == want_general.result), "gemm, case {case}");
            }
        });
    }
}

#[test]
fn ranks_with_and_without_devices_are_refused_and_limits_name_the_least() {
    let p = matrix(Kind::Unit, 60, 30, 150, 8);
    let outcomes = local::run(3, |rank| {
        let mut team = team(rank, 2);
        let own = blocks(&p, rank.rank(), 3);
        let options = DistOptions::default();
        let plain = Context::builder().threads(1).build().unwrap();
        let some = if rank.rank() == 1 { plain } else { with_devices(rank.rank()).build().unwrap() };
        let refused = syrk(&some, &mut team, &own, 150, &options).map(drop).unwrap_err();
        assert!(refused.to_string().contains("devices"), "{refused}");
        let ctx = |bytes| with_devices(rank.rank()).memory_bytes(bytes).build().unwrap();
        let Err(error) = syrk(&ctx(1000), &mut team, &own, 150, &options) else { panic!("1000 bytes cannot do") };
        assert_eq!(error.exit_code(), Error::MemoryLimit { limit_bytes: 0, minimum_bytes: 0 }.exit_code(), "{error}");
        let outcome = syrk(&ctx(64 << 20), &mut team, &own, 150, &options).unwrap();
        syrk(&ctx(outcome.report.planned_bytes), &mut team, &own, 150, &options).unwrap();
        outcome.report.planned_bytes
    });
    assert!(outcomes.iter().all(|&planned| planned == outcomes[0]));
}

#[test]
fn a_limit_gives_back_the_windows_of_products_before_one_on_devices() {
    let p = matrix(Kind::Unit, 60, 30, 150, 8);
    local::run(3, |rank| {
        let mut team = team(rank, 2);
        let own = blocks(&p, rank.rank(), 3);
        let options = DistOptions::default();
        let plain = Context::builder().threads(1).build().unwrap();
        syrk(&plain, &mut team, &own, 150, &options).unwrap();
        let kept = team.window_bytes();
        syrk(&with_devices(rank.rank()).build().unwrap(), &mut team, &own, 150, &options).unwrap();
        assert!(kept > 0 && team.window_bytes() == kept, "without a limit they stay");
        let limited = with_devices(rank.rank()).memory_bytes(64 << 20).build().unwrap();
        syrk(&limited, &mut team, &own, 150, &options).unwrap();
        assert_eq!(team.window_bytes(), 0);
        team.close().unwrap();
    });
}
