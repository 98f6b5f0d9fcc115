//! Factorisations of doubles on ranks that are processes, as on ranks that are threads.

use crate::{ALL, Case, Run};
use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::runtime::protocol::DeliveryKind;
use sunzi::advanced::runtime::{Eviction, Policy};
use sunzi::advanced::testing::effort;
use sunzi::comm::mpi::MpiRank;
use sunzi::comm::{Transport, local};
use sunzi::devices::Device;
use sunzi::double::{DoubleMatrix, DoubleOptions, RankGrid, double_cholesky};
use sunzi::{Context, Error};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "doubles::factors_have_the_bits_of_threads", ranks: ALL, run: Run::Group(factors) },
    Case { name: "doubles::devices_of_ranks_give_the_bits_of_threads", ranks: ALL, run: Run::Group(devices) },
    Case { name: "doubles::all_ranks_fail_with_one_error", ranks: &[2, 4], run: Run::Group(failures) },
];

const ROWS: usize = 130;

fn entry(i: usize, j: usize) -> f64 {
    let hash = ((i as u64) << 32 | j as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let noise = (hash >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
    if i == j { ROWS as f64 + noise } else { noise }
}

fn factor(rank: &dyn Transport, grid: RankGrid, options: &DoubleOptions) -> Option<Vec<f64>> {
    let ctx = Context::builder().threads(2).build().unwrap();
    let mut a = DoubleMatrix::from_fn(rank.rank(), ROWS, 16, grid, entry).unwrap();
    double_cholesky(&ctx, rank, &mut a, options).unwrap();
    a.gather(rank, 0).unwrap()
}

fn factors(rank: MpiRank) {
    let expected = local::run(1, |alone| factor(alone, RankGrid { rows: 1, cols: 1 }, &Default::default()));
    let grids = (1..=rank.size()).filter(|rows| rank.size().is_multiple_of(*rows));
    for (turn, grid_rows) in grids.enumerate() {
        // With little effort the grids take turns at the deliveries: six ranks wait for each other most of the time.
        let all = DeliveryKind::ALL.into_iter().enumerate();
        for (seed, delivery) in all.filter(|(at, _)| effort() > 1 || rank.size() < 4 || (at + turn) % 2 == 0) {
            let policy = if seed % 2 == 0 { None } else { Some(Policy::Random(seed as u64)) };
            let options = DoubleOptions::new().delivery(delivery).policy(policy);
            let grid = RankGrid { rows: grid_rows, cols: rank.size() / grid_rows };
            let found = factor(&rank, grid, &options);
            assert_eq!(found, expected[0].clone().filter(|_| rank.rank() == 0), "{grid:?}, {delivery:?}");
        }
    }
}

/// Two software devices of each rank, which hold fewer tiles than it has.
fn on_devices(rank: &dyn Transport, grid: RankGrid, options: &DoubleOptions) -> Option<Vec<f64>> {
    let soft = |index: usize| {
        let seed = Some((rank.rank() * 2 + index) as u64);
        Arc::new(SoftDevice::new(SoftOptions { index, seed, ..SoftOptions::default() })) as Arc<dyn Device>
    };
    let bytes = 5 * 16 * 16 * size_of::<f64>() as u64;
    let builder = Context::builder().threads(1).devices(vec![soft(0), soft(1)]).device_memory_bytes(bytes);
    let ctx = builder.build().unwrap();
    let mut a = DoubleMatrix::from_fn(rank.rank(), ROWS, 16, grid, entry).unwrap();
    let report = double_cholesky(&ctx, rank, &mut a, options).unwrap();
    assert!(report.h2d_bytes > 0 && report.devices.iter().all(|share| share.room_tiles == 5));
    a.gather(rank, 0).unwrap()
}

fn devices(rank: MpiRank) {
    let expected = local::run(1, |alone| on_devices(alone, RankGrid { rows: 1, cols: 1 }, &Default::default()));
    for (policy, eviction) in
        [(None, Eviction::Lru), (Some(Policy::Panels), Eviction::Fifo), (Some(Policy::Random(3)), Eviction::Lru)]
    {
        let options = DoubleOptions::new().policy(policy).eviction(eviction);
        let found = on_devices(&rank, RankGrid::for_ranks(rank.size()), &options);
        assert_eq!(found, expected[0].clone().filter(|_| rank.rank() == 0), "{policy:?}, {eviction:?}");
    }
}

fn failures(rank: MpiRank) {
    let ctx = Context::builder().threads(1).build().unwrap();
    let grid = RankGrid::for_ranks(rank.size());
    for bad in [0, 77, ROWS - 1] {
        let entry = |i, j| if (i, j) == (bad, bad) { -1.0 } else { entry(i, j) };
        let mut a = DoubleMatrix::from_fn(rank.rank(), ROWS, 16, grid, entry).unwrap();
        let error = double_cholesky(&ctx, &rank, &mut a, &DoubleOptions::default()).unwrap_err();
        assert!(matches!(error, Error::NotPositiveDefinite { index, .. } if index == bad), "{error}");
    }
}
