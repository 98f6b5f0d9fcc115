//! Cholesky factorisations of doubles over ranks with software devices: every order that streams allow, every choice,
//! small memories, several devices of a rank, faults.

use std::sync::Arc;
use sunzi::comm::{Transport, local};
use sunzi::device::Device;
use sunzi::device::soft::{Fault, SoftDevice, SoftOptions};
use sunzi::distributed::{DoubleMatrix, DoubleRankOptions, RankDevices, double_cholesky_ranks};
use sunzi::ops::double::{DoubleOptions, double_cholesky};
use sunzi::plan::RankGrid;
use sunzi::runtime::protocol::DeliveryKind;
use sunzi::runtime::{Policy, Victim};
use sunzi::{Context, Error};

/// Bytes of a slot for the tiles of these tests, of at most 5 rows.
const SLOT_BYTES: u64 = 256;

fn soft(capacity_bytes: u64, seed: Option<u64>, fault: Option<Fault>) -> Arc<dyn Device> {
    Arc::new(SoftDevice::new(SoftOptions { capacity_bytes, seed, fault, ..SoftOptions::default() }))
}

fn context(devices: Vec<Arc<dyn Device>>) -> Context {
    Context::builder().threads(1).devices(devices).build().unwrap()
}

/// A positive definite matrix whose entries look random.
fn entry(order: usize) -> impl Fn(usize, usize) -> f64 + Sync + Copy {
    move |i, j| {
        let hash = ((i as u64) << 32 | j as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let noise = (hash >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
        if i == j { order as f64 + noise } else { noise }
    }
}

/// One run on threads as ranks; what each rank says, and the factor.
struct Case {
    order: usize,
    tile_rows: usize,
    grid: RankGrid,
    /// Of each rank.
    devices: usize,
    /// Tiles that each device has room for.
    room_tiles: u64,
    seed: Option<u64>,
    options: DoubleRankOptions,
}

impl Case {
    fn run(&self) -> (Vec<f64>, Vec<RankDevices>) {
        let Case { order, tile_rows, grid, devices, room_tiles, seed, options } = self;
        let mut results = local::run(grid.size(), |rank| {
            let seed = |device: usize| seed.map(|seed| seed + (rank.rank() * devices + device) as u64);
            let devices = (0..*devices).map(|device| soft(room_tiles * SLOT_BYTES, seed(device), None)).collect();
            let ctx = Context::builder().threads(1).devices(devices).device_memory_bytes(room_tiles * SLOT_BYTES);
            let ctx = ctx.build().unwrap();
            let mut a = DoubleMatrix::from_fn(rank.rank(), *order, *tile_rows, *grid, entry(*order)).unwrap();
            let report = double_cholesky_ranks(&ctx, rank, &mut a, options).unwrap();
            assert!(ctx.devices().devices.iter().all(|device| device.used_bytes() == 0), "memory is given back");
            (a.gather(rank, 0).unwrap(), report.devices)
        });
        let l = results[0].0.take().unwrap();
        (l, results.into_iter().filter_map(|(_, devices)| devices).collect())
    }
}

#[test]
fn explore() {
    for (tiles, grid) in [(24, (1, 1)), (24, (2, 2)), (32, (2, 2)), (48, (2, 2))] {
        let grid = RankGrid { rows: grid.0, cols: grid.1 };
        let room = (tiles * (tiles + 1) / 2 / grid.size() / 2) as u64;
        for (slots, most_updates) in [(None, 1), (None, 4), (None, 100), (Some(tiles * tiles), 1), (Some(tiles * tiles), 4), (Some(tiles * tiles), 100)] {
            for policy in [Policy::Greedy, Policy::Panels, Policy::ByIj] {
                for victim in Victim::ALL {
                    let options = DoubleRankOptions { policy: Some(policy), victim, slots, most_updates, ..Default::default() };
                    let case = Case { order: 4 * tiles, tile_rows: 4, grid, devices: 1, room_tiles: room, seed: None, options };
                    let (_, ranks) = case.run();
                    let sum = |of: &dyn Fn(&RankDevices) -> u64| ranks.iter().map(of).sum::<u64>() as f64;
                    let up = 1.0 - sum(&|r| r.h2d_bytes) / sum(&|r| r.baseline_h2d_bytes);
                    let both = 1.0 - sum(&|r| r.h2d_bytes + r.d2h_bytes) / sum(&|r| r.baseline_h2d_bytes + r.baseline_d2h_bytes);
                    println!("{tiles} {}x{} room {room} slots {slots:?} most {most_updates} {} {}: up {:.1} both {:.1} (h2d {} d2h {})", grid.rows, grid.cols, policy.name(), victim.name(), up * 100.0, both * 100.0,
                      sum(&|r| r.h2d_bytes)/128.0, sum(&|r| r.d2h_bytes)/128.0);
                }
            }
        }
    }
}
