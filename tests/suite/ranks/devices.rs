//! Products on ranks with devices: the bits of one process, whatever devices the ranks have.

use crate::common::{Kind, effort, integer_matrix, matrix};
use std::sync::Arc;
use sunzi::advanced::Hooks;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::math::family::f64_primes;
use sunzi::advanced::math::family_i8::i8_moduli;
use sunzi::advanced::plan::DeviceCut;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::devices::{Device, DeviceAllocator};
use sunzi::distributed::{DistMatrix, DistOptions, RankGrid, Team, TeamOptions, even_share, gemm_rows, syrk};
use sunzi::report::Report;
use sunzi::{
    Accuracy, Context, ContextBuilder, Error, GemmOptions, Matrix, MatrixView, Op, SyrkOptions, Uplo, gemm_with,
    syrk_with,
};

/// Moduli of signed bytes, and of doubles.
const FAMILIES: [&str; 2] = ["cuda-i8", "cuda-f64"];

/// Every second rank has two devices; all multiply modulo the same moduli, which are those of one family or the other.
fn with_devices(rank: usize, case: usize) -> ContextBuilder {
    let devices = (0..1 + rank % 2).map(|number| {
        let options = SoftOptions { seed: Some(number as u64), capacity_bytes: 64 << 20, ..SoftOptions::default() };
        Arc::new(SoftDevice::new(options)) as Arc<dyn Device>
    });
    Context::builder().threads(1).devices(devices.collect()).kernel(FAMILIES[case % 2])
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
            let ctx = with_devices(rank.rank(), case / 2).self_check(check).freivalds(check).build().unwrap();
            let own = blocks(&p, rank.rank(), ranks);
            let options = DistOptions::new().uplo(uplo).exact_integers(exact_integers).alpha(&alpha);
            let outcome = syrk(&ctx, &mut team, &own, 150, &options).unwrap();
            assert!(outcome.report.checked == check && outcome.report.team.is_some());
            assert_eq!(outcome.report.devices.len(), 1 + rank.rank() % 2, "who has no rows makes entries nevertheless");
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
            for builder in [Context::builder().threads(2), with_devices(rank.rank(), case)] {
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
        let some = if rank.rank() == 1 { plain } else { with_devices(rank.rank(), 0).build().unwrap() };
        let refused = syrk(&some, &mut team, &own, 150, &options).map(drop).unwrap_err();
        assert!(refused.to_string().contains("devices"), "{refused}");
        let ctx = |bytes| with_devices(rank.rank(), 0).memory_bytes(bytes).build().unwrap();
        let Err(error) = syrk(&ctx(1000), &mut team, &own, 150, &options) else { panic!("1000 bytes cannot do") };
        assert_eq!(error.exit_code(), Error::MemoryLimit { limit_bytes: 0, minimum_bytes: 0 }.exit_code(), "{error}");
        let outcome = syrk(&ctx(64 << 20), &mut team, &own, 150, &options).unwrap();
        syrk(&ctx(outcome.report.planned_bytes), &mut team, &own, 150, &options).unwrap();
        outcome.report.planned_bytes
    });
    assert!(outcomes.iter().all(|&planned| planned == outcomes[0]));
}

/// Grids and nodes of all kinds, tiles and pieces that cut the devices' strips and bands anywhere.
#[test]
fn residues_of_devices_are_summed_by_the_owners_of_entries() {
    let one = Context::builder().threads(1).build().unwrap();
    let (rows, bits) = (61, 100);
    let (p, b) = (matrix(Kind::Graded, rows, 150, bits, 5), matrix(Kind::Unit, rows, 90, bits, 6));
    let want = [Uplo::Lower, Uplo::Upper]
        .map(|uplo| syrk_with(&one, &p, bits, &SyrkOptions::new().uplo(uplo)).unwrap().result);
    let options = GemmOptions::new().op_a(Op::Transpose);
    let want_general = gemm_with(&one, &p, &b, bits, &options).unwrap().result;
    // Five ranks on nodes of two, two and one.
    for (case, (grid, ranks, per_node, tile_size)) in
        [((1, 2), 2, 2, 24), ((3, 1), 3, 1, 40), ((2, 2), 4, 2, 16), ((2, 2), 5, 2, 256), ((1, 3), 5, 4, 8)]
            .into_iter()
            .enumerate()
    {
        let (grid, uplo) = (RankGrid { rows: grid.0, cols: grid.1 }, [Uplo::Lower, Uplo::Upper][case % 2]);
        let cut = |piece_entries: usize| DeviceCut {
            band_cols: [160, 64, 48][case % 3],
            strip_cols: 32,
            chunk_rows: 7 + case,
            batch_moduli: 5,
            piece_entries,
        };
        // The first grid without a cut of its own, the others with long or with short pieces.
        let all = [Hooks::default(), Hooks::device_cut(cut(1 << 12)), Hooks::device_cut(cut(50))];
        let taken = all.into_iter().enumerate().filter(|(at, _)| effort() > 1 || *at == [0, 2, 1, 2, 1][case]);
        for (_, hooks) in taken {
            local::run(ranks, |rank| {
                let (mut team, ctx) = (team(rank, per_node), with_devices(rank.rank(), case).build().unwrap());
                let own = blocks(&p, rank.rank(), ranks);
                let options = DistOptions::new().uplo(uplo).grid(grid).tile_size(tile_size).hooks(hooks);
                let outcome = syrk(&ctx, &mut team, &own, bits, &options).unwrap();
                let got = outcome.result.gather(rank, 0).unwrap();
                assert!(got.is_none_or(|got| got == want[case % 2]), "syrk, case {case}, {hooks:?}");
                let pair = (&own[..], &blocks(&b, rank.rank(), ranks)[..]);
                let outcome = gemm_rows(&ctx, &mut team, pair, bits, &options).unwrap();
                let got = outcome.result.gather(rank, 0).unwrap();
                assert!(got.is_none_or(|got| got == want_general), "gemm, case {case}, {hooks:?}");
            });
        }
    }
}

/// Every residue that a rank has of another's entry travels once, in as many bits as its modulus has; between nodes
/// once from each node. The plan says how many bytes that makes.
#[test]
fn ranks_send_packed_residues_once() {
    let (cols, bits) = (240usize, 200);
    let p = matrix(Kind::Unit, 40, cols, bits, 12);
    let one = Context::builder().threads(1).build().unwrap();
    let want = syrk_with(&one, &p, bits, &SyrkOptions::new()).unwrap().result;
    for (family, moduli) in FAMILIES.into_iter().zip([i8_moduli(), f64_primes()]) {
        // On one node with one family, on two with the other one.
        let teams = [(2, 2), (2, 1), (4, 4), (4, 2)].into_iter();
        let is_taken = |nodes: usize| effort() > 1 || (nodes == 1) == (family == FAMILIES[0]);
        for (ranks, per_node) in teams.filter(|(ranks, per_node)| is_taken(ranks / per_node)) {
            let outcomes = local::run(ranks, |rank| {
                let (mut team, device) = (team(rank, per_node), SoftDevice::new(SoftOptions::default()));
                let ctx = Context::builder().threads(1).devices(vec![Arc::new(device)]).kernel(family).build().unwrap();
                let own = p.view().block(even_share(40, ranks, rank.rank()), 0..cols).unwrap();
                let outcome = syrk(&ctx, &mut team, &[own], bits, &DistOptions::new().tile_size(40)).unwrap();
                let got = outcome.result.gather(rank, 0).unwrap();
                assert!(got.is_none_or(|got| got == want), "{family}, {ranks} ranks");
                outcome.report
            });
            let (report, nodes) = (&outcomes[0], ranks / per_node);
            let of = |modulus: &u64| u64::from(64 - (modulus - 1).leading_zeros());
            let residue_bits = moduli[..report.primes].iter().map(of).sum::<u64>();
            // Each of a node's ranks but the one that collects, then each node but that of the owner.
            let times = nodes * (per_node - 1) + nodes - 1;
            let least = times as u64 * residue_bits * (cols * (cols + 1) / 2) as u64 / 8;
            let team = report.team.as_ref().unwrap();
            let (sent, ratio) = (team.exchanged_bytes, team.exchanged_bytes as f64 / least as f64);
            println!("{family}, {ranks} ranks, {nodes} nodes: {sent} bytes of at least {least}, {ratio:.3}");
            assert!((1.0..1.1).contains(&ratio), "{family}, {ranks} ranks, {nodes} nodes: {sent} bytes of {least}");
            assert!(sent <= nodes as u64 * team.plan.sent_bytes && sent > team.plan.sent_bytes * (nodes as u64 - 1));
            assert!(nodes > 1 || sent == team.plan.sent_bytes, "{sent} of {}", team.plan.sent_bytes);
        }
    }
}

#[test]
fn ranks_that_force_different_moduli_are_refused_and_others_follow_the_one_that_does() {
    let p = matrix(Kind::Unit, 60, 30, 150, 8);
    local::run(3, |rank| {
        let (mut team, own) = (team(rank, 2), blocks(&p, rank.rank(), 3));
        let options = DistOptions::default();
        let ctx = with_devices(rank.rank(), rank.rank()).build().unwrap();
        let refused = syrk(&ctx, &mut team, &own, 150, &options).map(drop).unwrap_err();
        assert!(refused.to_string().contains("different kernels of devices"), "{refused}");
        let device: Arc<dyn Device> = Arc::new(SoftDevice::new(SoftOptions::default()));
        let free = Context::builder().threads(1).devices(vec![device]).build().unwrap();
        let ctx = if rank.rank() == 1 { with_devices(1, 0).build().unwrap() } else { free };
        assert_eq!(syrk(&ctx, &mut team, &own, 150, &options).unwrap().report.kernel, FAMILIES[0]);
    });
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
        syrk(&with_devices(rank.rank(), 0).build().unwrap(), &mut team, &own, 150, &options).unwrap();
        assert!(kept > 0 && team.window_bytes() == kept, "without a limit they stay");
        let limited = with_devices(rank.rank(), 0).memory_bytes(64 << 20).build().unwrap();
        syrk(&limited, &mut team, &own, 150, &options).unwrap();
        assert_eq!(team.window_bytes(), 0);
        team.close().unwrap();
    });
}

#[test]
fn a_device_that_others_have_filled_is_told_alike_on_all_ranks() {
    let p = matrix(Kind::Unit, 60, 33, 150, 1);
    let (ranks, capacity_bytes) = (3, 64 << 20);
    let errors = local::run(ranks, |rank| {
        let mut team = team(rank, 2);
        let device = SoftDevice::new(SoftOptions { capacity_bytes, ..SoftOptions::default() });
        // Another process has nearly all of the memory of one rank's device, which no plan knows of.
        let other = device.open_again();
        let taken = (rank.rank() == 1).then(|| other.allocate(capacity_bytes as usize - 4096).unwrap());
        let ctx = Context::builder().threads(1).devices(vec![Arc::new(device)]).kernel(FAMILIES[0]).build().unwrap();
        let own = blocks(&p, rank.rank(), ranks);
        let refused = syrk(&ctx, &mut team, &own, 150, &DistOptions::new()).unwrap_err();
        drop(taken);
        (refused.exit_code(), refused.to_string())
    });
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    assert!(errors[0].0 == 4 && errors[0].1.contains("rank 1"), "{errors:?}");
}
