//! What the ranks of nodes allocate together, counted by the allocator: no more than the plan of their nodes.
//!
//! The ranks are threads here, so that their windows and messages are on the one heap that is counted.

use crate::{alone, by_norms, matrix, rise};
use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::kernels;
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::advanced::testing::effort;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, barrier, local};
use sunzi::devices::Device;
use sunzi::distributed::{
    ClusterShape, DistMatrix, DistOptions, RankGrid, Team, TeamOptions, TrsmBits, even_share, plan_solve, plan_syrk,
    plan_syrk_cluster_with, plan_trsm, solve_into, solve_with, syrk, trsm_with,
};
use sunzi::{Accuracy, Context, Diag, Error, Matrix, Side, TrsmOptions, Uplo};

/// Bytes of the longest message between nodes.
const MESSAGE_BYTES: u64 = 8 << 16;

/// What a software device takes of the host for its queues, and no GPU does.
const QUEUE_BYTES: u64 = 320 << 10;

/// Bytes of a piece in which messages go between threads.
const PIECE_BYTES: u64 = 64 << 10;

#[test]
fn nodes_keep_their_plan() {
    let _alone = alone();
    let (rows, cols, bits) = (600, 300, 400);
    let p = matrix(rows, cols, bits, 4);
    let named = kernels::available().into_iter().map(|kernel| kernel.name()).filter(|kernel| *kernel != "reference");
    for (turn, kernel) in named.enumerate() {
        for (layout, (nodes, ranks_per_node, threads)) in
            [(1, 1, 2), (1, 3, 1), (2, 2, 1), (4, 1, 2)].into_iter().enumerate()
        {
            let cluster = ClusterShape { nodes, ranks_per_node, threads };
            let free = Context::builder().threads(1).kernel(kernel).build().unwrap();
            let whole = plan_syrk_cluster_with(&free, cluster, (rows, cols), bits, &by_norms()).unwrap().planned_bytes;
            // Kernels and layouts take turns at the limit.
            let limits = [None, Some(whole * 3 / 4)].into_iter().enumerate();
            for (_, limit) in limits.filter(|(at, _)| effort() > 1 || at % 2 == (turn + layout) % 2) {
                let on_rank = |rank: &local::LocalRank| {
                    let options = TeamOptions::new().ranks_per_node(ranks_per_node);
                    let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
                    let builder = Context::builder().threads(threads).kernel(kernel);
                    let ctx = limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap();
                    let block = p.view().block(even_share(rows, rank.size(), rank.rank()), 0..cols).unwrap();
                    let outcome =
                        syrk(&ctx, &mut team, &[block], bits, &DistOptions::new().accuracy(Accuracy::Norm)).unwrap();
                    team.close().unwrap();
                    outcome.report.team.unwrap().plan
                };
                let (peak, plans) = rise(|| local::run(nodes * ranks_per_node, on_rank));
                let planned = plans[0].per_node.iter().map(|node| node.count as u64 * node.planned_bytes).sum::<u64>();
                let what = format!("{kernel}, {cluster:?}, limit {limit:?}");
                println!("{what}: peak {peak}, planned {planned}");
                // A message between threads is copied once more on its way; each rank has at most one such copy.
                let mail = if nodes > 1 { (nodes * ranks_per_node) as u64 * MESSAGE_BYTES } else { 0 };
                assert!(peak <= planned + mail, "{what}: peak {peak} above planned {planned}");
                assert!(peak * 10 >= planned * 8, "{what}: peak {peak} far below planned {planned}");
            }
        }
    }
}

/// What a rank says of a product on a device of its own: bytes of the device, bytes that the plan has for a node, and
/// those by which the heap of all ranks rose.
struct Taken {
    on_device: u64,
    planned: u64,
    rise: u64,
}

/// A product of rows that the ranks share out, each on a device of its own, within its plan.
fn on_a_device(rank: &local::LocalRank, p: &Matrix, per_node: usize, family: &str, limit: Option<u64>) -> Taken {
    let (rows, cols, bits) = (p.rows(), p.cols(), p.precision_bits());
    let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(per_node)).unwrap();
    let block = p.view().block(even_share(rows, rank.size(), rank.rank()), 0..cols).unwrap();
    barrier(rank).unwrap();
    if rank.rank() == 0 {
        reset_peak_bytes();
    }
    let before = allocated_bytes();
    barrier(rank).unwrap();
    let device = Arc::new(SoftDevice::new(SoftOptions::default())) as Arc<dyn Device>;
    let builder = Context::builder().threads(1).devices(vec![device.clone()]).kernel(family);
    let ctx = limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap();
    let ahead = plan_syrk(&ctx, &team, (rows, cols), bits, &by_norms()).unwrap();
    let outcome = syrk(&ctx, &mut team, &[block], bits, &DistOptions::new().accuracy(Accuracy::Norm)).unwrap();
    barrier(rank).unwrap();
    let rise = peak_bytes() - before;
    assert_eq!(outcome.report.team.as_ref().unwrap().plan.sent_bytes, ahead.team.unwrap().sent_bytes);
    assert_eq!(outcome.report.planned_bytes, ahead.planned_bytes);
    let on_device = outcome.report.devices[0].device_bytes;
    assert!(on_device <= ahead.devices[0].planned_bytes);
    assert!(on_device * 100 >= ahead.devices[0].planned_bytes * 95);
    Taken { on_device: device.peak_bytes(), planned: ahead.planned_bytes, rise }
}

/// What the plan of such a product has for a node.
fn planned_on_a_device(rank: &local::LocalRank, p: &Matrix, per_node: usize, family: &str) -> u64 {
    let team = Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(per_node)).unwrap();
    let device = Arc::new(SoftDevice::new(SoftOptions::default())) as Arc<dyn Device>;
    let ctx = Context::builder().threads(1).devices(vec![device]).kernel(family).build().unwrap();
    let shape = (p.rows(), p.cols());
    plan_syrk(&ctx, &team, shape, p.precision_bits(), &by_norms()).unwrap().planned_bytes
}

/// Products on devices of ranks, each with one of its own: no rank holds the whole result, and all of them take what
/// their plan says, which is the same ahead of the call.
#[test]
fn ranks_with_devices_keep_their_plan() {
    let _alone = alone();
    // The ranks do not have as many rows each. What a software device does takes some seconds.
    let (rows, cols, bits) = (97, if effort() > 1 { 700 } else { 350 }, 400);
    let (p, narrow) = (matrix(rows, cols, bits, 4), matrix(rows, 40, bits, 4));
    let whole = Matrix::bytes_for(cols, cols, bits);
    let cases = [(1, 1, "cuda-f64"), (2, 2, "cuda-i8"), (2, 1, "cuda-f64"), (4, 4, "cuda-f64"), (4, 2, "cuda-i8")];
    for (turn, (ranks, per_node, family)) in cases.into_iter().enumerate() {
        let free = local::run(ranks, |rank| planned_on_a_device(rank, &p, per_node, family))[0];
        // The cases take turns at the limit: without one, and what is planned then.
        let limits = [None, Some(free)];
        let limits = if effort() > 1 { &limits[..] } else { &limits[turn % 2..][..1] };
        let on_rank = |rank: &local::LocalRank| {
            // The first product of a thread makes memory that the next ones of a software device use again: little,
            // but for a rank that is alone.
            on_a_device(rank, if ranks == 1 { &p } else { &narrow }, per_node, family, None);
            limits.iter().map(|&limit| on_a_device(rank, &p, per_node, family, limit)).collect::<Vec<_>>()
        };
        let all = local::run(ranks, on_rank);
        for (round, limit) in limits.iter().enumerate() {
            let taken = &all[0][round];
            assert_eq!(taken.planned, free);
            assert!(all.iter().all(|rank| rank[round].planned == taken.planned), "one plan of all nodes");
            // The memory of software devices is on the heap that is counted.
            let on_devices = all.iter().map(|rank| rank[round].on_device).sum::<u64>();
            let (host, planned) = (taken.rise - on_devices, taken.planned * (ranks / per_node) as u64);
            let what = format!("{ranks} ranks, {per_node} on a node, {family}, limit {limit:?}");
            println!("{what}: peak {host} beside {on_devices} of devices, planned {planned}, whole result {whole}");
            // Between threads a piece of a message is copied once more on its way.
            let beside = ranks as u64 * (PIECE_BYTES + QUEUE_BYTES);
            assert!(host <= planned + beside, "{what}: peak {host} above planned {planned}");
            assert!(host * 100 >= planned * least_percent(ranks), "{what}: peak {host} far below planned {planned}");
        }
    }
}

/// A plan of many small copies takes little by itself: it counts what they hold, one after the other.
#[test]
fn plans_of_many_copies_hold_none_of_them() {
    let _alone = alone();
    let (rows, cols, bits) = (100, 8000, 64);
    let (peak, refused) = rise(|| {
        local::run(1, |rank| {
            let team = Team::new(rank.split(0).unwrap(), TeamOptions::new()).unwrap();
            let device: Arc<dyn Device> = Arc::new(SoftDevice::new(SoftOptions::default()));
            let builder = Context::builder().threads(1).devices(vec![device]).kernel("cuda-f64");
            let ctx = builder.memory_bytes(1).build().unwrap();
            plan_syrk(&ctx, &team, (rows, cols), bits, &by_norms())
        })
    });
    assert!(matches!(refused[0], Err(Error::MemoryLimit { .. })), "{refused:?}");
    println!("{peak} bytes in a plan");
    assert!(peak < 2 << 20, "{peak} bytes in a plan");
}

/// How much of the plans of all ranks they take together, at least: more of them are at their peaks at times of their
/// own.
fn least_percent(ranks: usize) -> u64 {
    match ranks {
        1 => 95,
        2 => 90,
        _ => 75,
    }
}

/// A factor near the identity, so that no unknown outgrows a try.
fn factor(order: usize, bits: u32) -> Matrix {
    let mut l = matrix(order, order, bits, 8);
    for col in 0..order {
        for row in 0..order {
            let value =
                if row > col { l.float(row, col) >> 6 } else { rug::Float::with_val(bits, u32::from(row == col)) };
            l.set_float(row, col, &value).unwrap();
        }
    }
    l
}

/// What each rank holds of a factor and of right-hand sides, in tiles of 64 rows.
fn scattered(ranks: usize, l: &Matrix, b: &Matrix) -> Vec<(DistMatrix, DistMatrix)> {
    let (rows, bits) = (l.rows(), l.precision_bits());
    let map = |cols, triangle| TileMap { rows, cols, tile_size: 64, grid: RankGrid::for_ranks(ranks), triangle };
    local::run(ranks, |rank| {
        let root = rank.rank() == 0;
        let l = DistMatrix::scatter(rank, 0, root.then_some(l), map(rows, Some(Uplo::Lower)), bits).unwrap();
        (l, DistMatrix::scatter(rank, 0, root.then_some(b), map(b.cols(), None), bits).unwrap())
    })
}

/// Solves with few right-hand sides: ranks keep their plan, and none holds the factor.
#[test]
fn few_right_sides_keep_their_plan_and_gather_nothing() {
    let _alone = alone();
    let (order, bits) = (700, 400);
    let l = factor(order, bits);
    for (ranks, columns, accuracy) in [
        (1, 6, Accuracy::Norm),
        (2, 5, Accuracy::Norm),
        (4, 7, Accuracy::Norm),
        (3, 4, Accuracy::Entrywise),
        (3, 2, Accuracy::Entrywise),
    ] {
        let b = matrix(order, columns, bits, 9);
        let held = scattered(ranks, &l, &b);
        let plans = local::run(ranks, |rank| {
            let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
            let ctx = Context::builder().threads(1).build().unwrap();
            plan_solve(&ctx, &team, (order, columns), (bits, bits), accuracy).unwrap()
        });
        let (peak, _) = rise(|| {
            local::run(ranks, |rank| {
                let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
                let ctx = Context::builder().threads(1).build().unwrap();
                let (l, b) = &held[rank.rank()];
                solve_with(&ctx, &team, l, b, bits, accuracy).unwrap().solution
            })
        });
        let (planned, whole) = (plans.iter().sum::<u64>(), Matrix::bytes_for(order, order, bits));
        println!("{ranks} ranks, {columns} columns, {accuracy:?}: peak {peak}, planned {planned}, factor {whole}");
        // Between threads a piece of a message is copied once more on its way. Processes: `tests/mpi`.
        let mail = if ranks > 1 { ranks as u64 * PIECE_BYTES } else { 0 };
        assert!(peak <= planned + mail, "{ranks} ranks, {columns}, {accuracy:?}: peak {peak} above planned {planned}");
        assert!(ranks == 1 || plans.iter().all(|&bytes| bytes < whole), "a rank has room for the factor: {plans:?}");
        if accuracy == Accuracy::Entrywise {
            continue; // the plan has room for any range of exponents
        }
        let what = format!("{ranks} ranks, {columns}, {accuracy:?}: peak {peak}, planned {planned}");
        assert!(peak * 100 >= planned * least_percent(ranks), "{what}");
    }
}

/// Solves of many rows, whose residues the ranks of a node make together: no more than their plan, which is less than
/// that of ranks each on a node of its own.
#[test]
fn solves_together_keep_their_plan() {
    let _alone = alone();
    let (order, bits) = (520, 300);
    let l = factor(order, bits);
    for (ranks, columns) in [(1, 24), (2, 24), (4, 24), (2, 400), (2, 512), (3, 410)] {
        let b = matrix(order, columns, bits, 9);
        let held = scattered(ranks, &l, &b);
        let plans = |ranks_per_node: usize| {
            local::run(ranks, |rank| {
                let options = TeamOptions::new().ranks_per_node(ranks_per_node);
                let team = Team::new(rank.split(0).unwrap(), options).unwrap();
                let ctx = Context::builder().threads(1).build().unwrap();
                plan_solve(&ctx, &team, (order, columns), (bits, bits), Accuracy::Norm).unwrap()
            })
        };
        let (together, apart) = (plans(ranks).iter().sum::<u64>(), plans(1).iter().sum::<u64>());
        assert!(ranks == 1 || together < apart, "{ranks} ranks: {together} planned together, {apart} apart");
        // One rank is on a node of its own either way.
        for (ranks_per_node, planned) in [(ranks, together), (1, apart)].into_iter().take(ranks.min(2)) {
            let (peak, _) = rise(|| {
                local::run(ranks, |rank| {
                    let options = TeamOptions::new().ranks_per_node(ranks_per_node);
                    let team = Team::new(rank.split(0).unwrap(), options).unwrap();
                    let ctx = Context::builder().threads(1).build().unwrap();
                    let (l, b) = &held[rank.rank()];
                    solve_with(&ctx, &team, l, b, bits, Accuracy::Norm).unwrap().solution
                })
            });
            let what = format!("{columns} columns, {ranks} ranks, {ranks_per_node} a node: {peak} of {planned}");
            println!("{what}");
            assert!(peak <= planned, "{what}");
            assert!(peak * 100 >= planned * least_percent(ranks), "{what}");
        }
    }
}

/// Triangular solves, with the copies that their options ask for, whatever the number of columns: within the plan, and
/// within the least limit that it names.
#[test]
fn triangular_solves_over_ranks_keep_their_plan() {
    let _alone = alone();
    let (order, bits) = (520, 300);
    let of_bits = TrsmBits { triangle: bits, right: bits, solution: bits };
    let (l, lower) = (factor(order, bits), TrsmOptions::new().accuracy(Accuracy::Norm));
    let some = if effort() > 1 { 400 } else { 100 };
    let (upper, unit) = (lower.uplo(Uplo::Upper), lower.diag(Diag::Unit));
    for (ranks, ranks_per_node, columns, options) in [
        (1, 1, 24, lower),
        (2, 2, 400, lower),
        (3, 3, 410, lower),
        (2, 1, some, upper),
        (2, 2, some, unit),
        (2, 2, some, lower.side(Side::Right)),
        (3, 3, 5, upper.side(Side::Right)),
        (4, 2, 24, lower.accuracy(Accuracy::Entrywise)),
    ] {
        let (uplo, transposed) = (options.uplo, options.side == Side::Right);
        let b = matrix(if transposed { columns } else { order }, if transposed { order } else { columns }, bits, 9);
        let tiles =
            |rows, cols, triangle| TileMap { rows, cols, tile_size: 64, grid: RankGrid::for_ranks(ranks), triangle };
        let t = if uplo == Uplo::Upper { l.transposed().to_matrix().unwrap() } else { l.clone() };
        let held = local::run(ranks, |rank| {
            let root = rank.rank() == 0;
            let t = DistMatrix::scatter(rank, 0, root.then_some(&t), tiles(order, order, Some(uplo)), bits).unwrap();
            (t, DistMatrix::scatter(rank, 0, root.then_some(&b), tiles(b.rows(), b.cols(), None), bits).unwrap())
        });
        let with = |limit: Option<u64>, work: &(dyn Fn(&Context, &Team) -> u64 + Sync)| {
            local::run(ranks, |rank| {
                let options = TeamOptions::new().ranks_per_node(ranks_per_node);
                let team = Team::new(rank.split(0).unwrap(), options).unwrap();
                let builder = Context::builder().threads(1);
                work(&limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap(), &team)
            })
        };
        let plan = |ctx: &Context, team: &Team| plan_trsm(ctx, team, (order, columns), of_bits, &options);
        let least = with(Some(1), &|ctx, team| match plan(ctx, team) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("one byte cannot be enough: {other:?}"),
        });
        // What is refused has made no copy.
        let refused = |ctx: &Context, team: &Team| {
            let (t, b) = &held[team.rank()];
            u64::from(trsm_with(ctx, team, t, b, bits, &options).is_err())
        };
        let (peak, errors) = rise(|| with(Some(1000), &refused));
        let copied = held.iter().map(|(t, b)| if transposed { b.bytes() } else { t.bytes() }).sum::<u64>();
        let copies = transposed || (uplo, options.diag) != (Uplo::Lower, Diag::NonUnit);
        assert!(errors == vec![1; ranks] && (!copies || 2 * peak < copied), "refused: {peak} of {copied}");
        for limit in [None, least.iter().max().copied()] {
            let planned = with(limit, &|ctx, team| plan(ctx, team).unwrap()).iter().sum::<u64>();
            let (peak, _) = rise(|| {
                with(limit, &|ctx, team| {
                    let (t, b) = &held[team.rank()];
                    trsm_with(ctx, team, t, b, bits, &options).unwrap().solution.bytes()
                })
            });
            let of = format!("{:?}, {uplo:?}, {:?}, {:?}", options.side, options.diag, options.accuracy);
            let what = format!("{ranks} ranks of {ranks_per_node}, {columns}, {of}, {limit:?}: {peak} of {planned}");
            println!("{what}");
            let (mail, nodes) =
                (if ranks > 1 { ranks as u64 * PIECE_BYTES } else { 0 }, (ranks / ranks_per_node) as u64);
            assert!(peak <= planned + mail, "{what}");
            assert!(limit.is_none_or(|limit| planned <= limit * nodes), "{what}");
            // Entry by entry there is room for any range of exponents; under a limit for columns that are tried again.
            let least = if options.accuracy == Accuracy::Norm && limit.is_none() { least_percent(ranks) } else { 0 };
            assert!(peak * 100 >= planned * least, "{what}");
        }
    }
}

/// A second solve into the same result works in memory that is there: columns, pieces, windows and the result are kept.
#[test]
fn solves_into_results_take_little_fresh_memory() {
    let _alone = alone();
    let (order, columns, bits) = (520, 400, 300);
    let (l, b) = (factor(order, bits), matrix(order, columns, bits, 9));
    let held = scattered(2, &l, &b);
    let taken = local::run(2, |rank| {
        let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
        let ctx = Context::builder().threads(1).build().unwrap();
        let (l, b) = &held[rank.rank()];
        let mut result = b.clone();
        let mut taken = [0; 2];
        for taken in &mut taken {
            barrier(rank).unwrap();
            if rank.rank() == 0 {
                reset_peak_bytes();
            }
            let before = allocated_bytes();
            barrier(rank).unwrap();
            solve_into(&ctx, &team, l, b, bits, Accuracy::Norm, &mut result).unwrap();
            barrier(rank).unwrap();
            *taken = peak_bytes() - before;
            barrier(rank).unwrap();
        }
        taken
    });
    let right = Matrix::bytes_for(order, columns, bits);
    println!("first and second solve: {taken:?}, right sides {right}");
    // Right sides and solutions travel in messages of some MiB.
    assert!(taken[0][1] < 2 * right && taken[0][1] * 5 < taken[0][0], "first and second solve: {taken:?}");
}
