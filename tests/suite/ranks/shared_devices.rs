//! Ranks that share devices: each plans with its share of the memory, takes turns with the others, and has the bits of
//! one process.

use crate::common::definite::integer_gram;
use crate::common::{Kind, matrix};
use std::cell::RefCell;
use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::kernels::tiles::TileTraffic;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::devices::Device;
use sunzi::distributed::{
    DistCholeskyOptions, DistMatrix, DistOptions, DistOutcome, PlanHook, RankGrid, Team, TeamOptions, cholesky_with,
    solve, syrk,
};
use sunzi::double::{DoubleMatrix, DoubleOptions, double_cholesky};
use sunzi::{Context, ContextBuilder, Error, Matrix, Result, cholesky, syrk as syrk_alone};

/// Which of the devices each rank opens.
const PLACES: [&[&[usize]]; 4] =
    [&[&[0], &[0]], &[&[0], &[0], &[0], &[0]], &[&[0], &[0], &[1], &[1]], &[&[0, 1], &[1, 0]]];

fn cards(capacity_bytes: u64) -> [SoftDevice; 2] {
    [0, 1].map(|index| SoftDevice::new(SoftOptions { capacity_bytes, index, seed: Some(3), ..SoftOptions::default() }))
}

/// The context of a rank that opens these of the `cards`.
fn context(cards: &[SoftDevice; 2], opened: &[usize]) -> ContextBuilder {
    let devices = opened.iter().map(|&card| Arc::new(cards[card].open_again()) as Arc<dyn Device>);
    Context::builder().threads(1).devices(devices.collect()).kernel("cuda-f64")
}

/// A team of emulated nodes of two ranks: they share the devices of their one machine.
fn team(rank: &local::LocalRank) -> Team {
    Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(2)).unwrap()
}

fn sharers(places: &[&[usize]], card: usize) -> usize {
    places.iter().filter(|opened| opened.contains(&card)).count()
}

/// The product of this rank's rows, and the parts of its devices in the plan.
fn product(
    cards: &[SoftDevice; 2],
    opened: &[usize],
    rank: &local::LocalRank,
    p: &Matrix,
) -> (Result<DistOutcome>, Planned) {
    let (ctx, planned) = (context(cards, opened).build().unwrap(), RefCell::new(Planned::new()));
    let share = sunzi::advanced::plan::even_share(p.rows(), rank.size(), rank.rank());
    let own = p.view().block(share, 0..p.cols()).unwrap();
    let tell = |plan: &sunzi::plans::Plan| {
        let parts = plan.devices.iter().map(|part| (part.planned_bytes, part.ranks, part.share_bytes));
        *planned.borrow_mut() = parts.collect();
    };
    let options = DistOptions::new().on_plan(PlanHook(&tell));
    let outcome = syrk(&ctx, &mut team(rank), &[own], 150, &options);
    (outcome, planned.into_inner())
}

/// Bytes planned, ranks that share the device, and the share.
type Planned = Vec<(u64, usize, Option<u64>)>;

#[test]
fn products_take_a_share_of_a_device_and_have_the_bits_of_one_process() {
    let p = matrix(Kind::Graded, 90, 60, 150, 4);
    let one = Context::builder().threads(1).build().unwrap();
    let want = syrk_alone(&one, &p, 150).unwrap();
    for places in PLACES {
        // Rates are measured where a rank has two devices, which takes room of its own.
        let is_small = places.iter().all(|opened| opened.len() == 1);
        let mut capacities = vec![16 << 20];
        if is_small {
            let small = cards(1024);
            let refused = local::run(places.len(), |rank| {
                product(&small, places[rank.rank()], rank, &p).0.map(drop).unwrap_err()
            });
            let named = |error: &Error| error.to_string().contains("the share of one of the");
            assert!(refused.iter().all(|error| error.exit_code() == 4 && named(error)), "{:?}", refused[0]);
            capacities.push(least_capacity(places, &p));
        }
        for capacity_bytes in capacities {
            let cards = cards(capacity_bytes);
            local::run(places.len(), |rank| {
                let opened = places[rank.rank()];
                let (outcome, planned) = product(&cards, opened, rank, &p);
                let outcome = outcome.unwrap();
                let got = outcome.result.gather(rank, 0).unwrap();
                assert!(got.is_none_or(|got| got == want), "{places:?}");
                assert_eq!((planned.len(), outcome.report.devices.len()), (opened.len(), opened.len()));
                for ((bytes, ranks, share), &card) in planned.into_iter().zip(opened) {
                    assert_eq!(ranks, sharers(places, card));
                    assert_eq!(share, Some(capacity_bytes / ranks as u64 / 256 * 256));
                    assert!(bytes * ranks as u64 <= capacity_bytes, "{bytes} of {capacity_bytes} for {ranks}");
                }
                for device in &outcome.report.devices {
                    assert!(device.ranks > 1 && device.device_bytes * device.ranks as u64 <= capacity_bytes);
                }
            });
        }
    }
}

/// The least bytes of each device with which the product runs on these ranks, to a kibibyte.
fn least_capacity(places: &[&[usize]], p: &Matrix) -> u64 {
    let does = |kibibytes: u64| {
        let cards = cards(kibibytes << 10);
        let done = local::run(places.len(), |rank| product(&cards, places[rank.rank()], rank, p).0.map(drop));
        done.into_iter().all(|done| done.is_ok())
    };
    let (mut low, mut high) = (1, 16 << 10);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if does(middle) { high = middle } else { low = middle }
    }
    assert!(high < 16 << 10);
    high << 10
}

#[test]
fn factorisations_and_solves_use_all_devices_of_a_rank_within_its_shares() {
    let (n, bits) = (70, 200);
    let a = integer_gram(n + 3, n, 100, 5);
    let one = Context::builder().threads(1).build().unwrap();
    let factor = cholesky(&one, &a, bits).unwrap();
    let (b, want) = (matrix(Kind::Unit, n, 9, bits, 6), factor.factor().clone());
    let want_solution = factor.solve(&one, &b, bits).unwrap();
    for places in PLACES {
        let capacity_bytes = 1 << 20;
        let cards = cards(capacity_bytes);
        let traffic = local::run(places.len(), |rank| {
            let (ctx, team) = (context(&cards, places[rank.rank()]).build().unwrap(), team(rank));
            let root = rank.rank() == 0;
            let grid = RankGrid::for_ranks(places.len());
            let scatter = |matrix: &Matrix| {
                let map = TileMap { rows: matrix.rows(), cols: matrix.cols(), tile_size: 16, grid, triangle: None };
                DistMatrix::scatter(rank, 0, root.then_some(matrix), map, matrix.precision_bits()).unwrap()
            };
            let options = DistCholeskyOptions::new().tile_rows(8);
            let made = cholesky_with(&ctx, &team, &scatter(&a), bits, &options).unwrap();
            let got = made.factor.gather(rank, 0).unwrap();
            assert!(got.is_none_or(|got| got == want), "{places:?}");
            let solution = solve(&ctx, &team, &made.factor, &scatter(&b), bits).unwrap().solution;
            let got = solution.gather(rank, 0).unwrap();
            assert!(got.is_none_or(|got| got == want_solution), "{places:?}");
            made.report.devices
        });
        for (devices, opened) in traffic.iter().zip(places) {
            assert_eq!(devices.len(), opened.len());
            for (device, &card) in devices.iter().zip(*opened) {
                let TileTraffic { products, device_bytes, ranks, .. } = device;
                assert!(*products > 0, "every device of a rank has work");
                assert_eq!(*ranks, sharers(places, card));
                assert!(device_bytes * *ranks as u64 <= capacity_bytes, "{device_bytes} for {ranks} ranks");
            }
        }
    }
}

#[test]
fn doubles_take_a_share_of_a_device_too() {
    let (order, tile_rows) = (60, 8);
    let entry = |i: usize, j: usize| if i == j { order as f64 } else { 1.0 / (1 + i + j) as f64 };
    let factor = |cards: &[SoftDevice; 2], places: &[&[usize]]| {
        let grid = RankGrid::for_ranks(places.len());
        let mut all = local::run(places.len(), |rank| {
            let ctx = context(cards, places[rank.rank()]).build().unwrap();
            let mut a = DoubleMatrix::from_fn(rank.rank(), order, tile_rows, grid, entry).unwrap();
            let report = double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default()).unwrap();
            let most = report.devices.iter().map(|share| share.peak_bytes).max().unwrap_or(0);
            (a.gather(rank, 0).unwrap(), most)
        });
        let most = all.iter().map(|(_, most)| *most).max().unwrap();
        (all[0].0.take().unwrap(), most)
    };
    let (want, _) = factor(&cards(1 << 20), &[&[0]]);
    // Room for 16 tiles, so for four of each rank.
    let capacity_bytes = 16 * 512;
    for places in PLACES {
        let (got, most) = factor(&cards(capacity_bytes), places);
        assert!(got == want, "{places:?}");
        let sharing = sharers(places, 0) as u64;
        assert!(most <= capacity_bytes / sharing, "{most} bytes for {sharing} ranks");
    }
}

/// Work of two openings of a device takes the time of both on its clock, of two devices that of the longer.
#[test]
fn openings_of_a_device_take_turns() {
    let p = matrix(Kind::Unit, 64, 40, 150, 4);
    let seconds = |places: &[&[usize]]| {
        let cards = cards(16 << 20);
        let ends = local::run(places.len(), |rank| {
            let outcome = product(&cards, places[rank.rank()], rank, &p).0.unwrap();
            outcome.report.devices.iter().map(|device| device.seconds.total).fold(0.0, f64::max)
        });
        ends.into_iter().fold(0.0, f64::max)
    };
    let (apart, together) = (seconds(&[&[0], &[1]]), seconds(&[&[0], &[0]]));
    assert!(together > 1.5 * apart, "{together} s together, {apart} s apart");
}
