//! What each rank of a solve, or of a product on devices, allocates, counted by its own process: no more than its
//! plan, which is not far above it.
//!
//! Ranks that are threads are counted together, and at their peaks at times of their own.

use crate::{Case, Run};
use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::advanced::testing::effort;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::mpi::MpiRank;
use sunzi::comm::{Reduction, Transport, barrier};
use sunzi::devices::Device;
use sunzi::distributed::{
    DistMatrix, DistOptions, RankGrid, Team, TeamOptions, even_share, gemm_rows, plan_gemm, plan_solve, plan_syrk,
    solve_with, syrk,
};
use sunzi::gallery::{Kind, Size, generate};
use sunzi::plans::ProductPlanOptions;
use sunzi::{Accuracy, Context, GemmOptions, Matrix, Op, Uplo, gemm_with};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case {
        name: "memory::each_rank_of_a_solve_keeps_its_plan",
        ranks: &[1, 2, 3, 4],
        run: Run::Group(few_right_sides),
    },
    Case {
        name: "memory::each_rank_with_devices_keeps_its_plan",
        ranks: &[1, 2, 3, 4],
        run: Run::Group(products_on_devices),
    },
];

/// Bytes that lists and MPI's own calls may add.
const SLACK_BYTES: u64 = 32 << 10;

/// What a software device takes of the host for its queues, and no GPU does.
const QUEUE_BYTES: u64 = 320 << 10;

/// A factor near the identity, so that no unknown outgrows a try.
fn factor(order: usize, precision_bits: u32) -> Matrix {
    let random = generate(Kind::Random, Size { rows: order, cols: order, precision_bits }, 8).unwrap();
    let mut l = Matrix::identity(order, precision_bits).unwrap();
    for (row, col) in (0..order).flat_map(|row| (0..row).map(move |col| (row, col))) {
        l.set_float(row, col, &(random.float(row, col) >> 6)).unwrap();
    }
    l
}

/// One to seven right-hand sides, by norms: each rank keeps its plan, and from four on the one that takes most needs at
/// least 95 % of it.
fn few_right_sides(rank: MpiRank) {
    let (order, bits) = (700, 400);
    let (is_root, grid) = (rank.rank() == 0, RankGrid::for_ranks(rank.size()));
    // The root alone makes what is scattered.
    let scatter = |cols, whole: &dyn Fn() -> Matrix, triangle| {
        let map = TileMap { rows: order, cols, tile_size: 64, grid, triangle };
        DistMatrix::scatter(&rank, 0, is_root.then(whole).as_ref(), map, bits).unwrap()
    };
    let held = scatter(order, &|| factor(order, bits), Some(Uplo::Lower));
    let team = Team::new(rank.split(0).unwrap(), TeamOptions::new()).unwrap();
    for &columns in if effort() > 1 { &[1, 3, 4, 7][..] } else { &[3, 4, 7] } {
        let size = Size { rows: order, cols: columns, precision_bits: bits };
        let right = scatter(columns, &|| generate(Kind::Random, size, 9).unwrap(), None);
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

/// Products on a software device of each rank: each rank keeps its plan of the host and of the device, and the one that
/// takes most needs 95 % of it. The bits are those of one process.
fn products_on_devices(rank: MpiRank) {
    // What a software device does takes some seconds.
    let (rows, cols, bits) = (60, if effort() > 1 { 500 } else { 200 }, 400);
    let generated = |cols, seed| generate(Kind::Random, Size { rows, cols, precision_bits: bits }, seed).unwrap();
    let (p, b, narrow) = (generated(cols, 8), generated(150, 9), generated(40, 10));
    let one = Context::builder().threads(1).build().unwrap();
    let is_root = rank.rank() == 0;
    let want = is_root.then(|| sunzi::syrk(&one, &p, bits).unwrap().into_matrix());
    let transposed = GemmOptions::new().op_a(Op::Transpose);
    let want_general = is_root.then(|| gemm_with(&one, &p, &b, bits, &transposed).unwrap().result);
    let share = even_share(rows, rank.size(), rank.rank());
    let own = [&p, &b, &narrow].map(|matrix| [matrix.view().block(share.clone(), 0..matrix.cols()).unwrap()]);
    for (family, per_node) in [("cuda-i8", 2), ("cuda-f64", 4)] {
        // Fewer ranks than four, with one to three on a node, share the families.
        if effort() == 1 && rank.size() < 4 && (family == "cuda-f64") != (rank.size() == 1) {
            continue;
        }
        let options = TeamOptions::new().ranks_per_node(per_node);
        let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
        let device = || Arc::new(SoftDevice::new(SoftOptions::default())) as Arc<dyn Device>;
        let context = |device| Context::builder().threads(1).devices(vec![device]).kernel(family).build().unwrap();
        // The first product of a thread makes memory that the next ones of a software device use again.
        drop(syrk(&context(device()), &mut team, &own[2], bits, &DistOptions::new()).unwrap());
        for general in [false, true] {
            let device = device();
            let ctx = context(device.clone());
            let plan_options = ProductPlanOptions::new();
            let planned = match general {
                false => plan_syrk(&ctx, &team, (rows, cols), bits, &plan_options).unwrap(),
                true => plan_gemm(&ctx, &team, (cols, b.cols()), rows, bits, &plan_options).unwrap(),
            };
            barrier(&rank).unwrap();
            let before = allocated_bytes();
            reset_peak_bytes();
            let outcome = match general {
                false => syrk(&ctx, &mut team, &own[0], bits, &DistOptions::new()).unwrap(),
                true => gemm_rows(&ctx, &mut team, (&own[0], &own[1]), bits, &DistOptions::new()).unwrap(),
            };
            // The memory of a software device is on the heap that is counted.
            let (taken, plan) = (peak_bytes() - before - device.peak_bytes(), planned.bytes.total());
            let what = format!("{family}, {general}, rank {} of {}: {taken} of {plan}", rank.rank(), rank.size());
            println!("{what}, {} on the device", device.peak_bytes());
            assert!(taken <= plan + QUEUE_BYTES, "{what}");
            assert!(device.peak_bytes() <= planned.devices[0].planned_bytes, "{what}");
            let mut most = [taken, plan];
            rank.all_reduce(Reduction::Max, &mut most).unwrap();
            assert!(most[1] * 100 <= most[0] * 105, "{what}, at most {}", most[0]);
            let sent = outcome.report.team.as_ref().unwrap().exchanged_bytes;
            assert_eq!(sent > 0, rank.size() > 1);
            let got = outcome.result.gather(&rank, 0).unwrap();
            assert!(got.as_ref() == if general { want_general.as_ref() } else { want.as_ref() }, "{what}");
        }
        team.close().unwrap();
    }
}
