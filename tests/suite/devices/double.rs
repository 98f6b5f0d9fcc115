//! Cholesky factorisations of doubles on software devices: every order that streams allow, every policy, small
//! memories, several devices, faults.

use crate::common::residency::counted_traffic;
use crate::common::{effort, in_turn};
use std::sync::Arc;
use sunzi::advanced::device::soft::{Clock, Fault, Rates, SoftDevice, SoftOptions};
use sunzi::advanced::kernels::f64::tile::TileKernels;
use sunzi::advanced::runtime::{CholeskyGraph, CountOptions, Eviction, Policy, count_moves, least_room_tiles};
use sunzi::comm::local;
use sunzi::devices::Device;
use sunzi::double::{self, DeviceLayout, DoubleMatrix, DoubleReport, RankGrid};
use sunzi::{Context, ContextBuilder, Error, MoreBits};

/// Bytes of a slot for the tiles of these tests, of at most 5 rows.
const SLOT_BYTES: u64 = 256;

fn context() -> ContextBuilder {
    Context::builder().threads(1)
}

/// The choices of these tests.
#[derive(Clone)]
struct DoubleOptions {
    tile_rows: Option<usize>,
    policy: Policy,
    eviction: Eviction,
    device_bytes: Option<u64>,
    streams: usize,
    lookahead: usize,
    layout: DeviceLayout,
}

impl Default for DoubleOptions {
    fn default() -> DoubleOptions {
        let double::DoubleOptions { eviction, streams, lookahead, layout, .. } = Default::default();
        let (tile_rows, policy, device_bytes) = (None, Policy::default(), None);
        DoubleOptions { tile_rows, policy, eviction, device_bytes, streams, lookahead, layout }
    }
}

/// Factors the lower triangle of `a`, and copies back what the factorisation has left there, be it an error.
fn double_cholesky(
    builder: &ContextBuilder,
    devices: &[Arc<dyn Device>],
    order: usize,
    a: &mut [f64],
    options: &DoubleOptions,
) -> Result<DoubleReport, Error> {
    let &DoubleOptions { tile_rows, policy, eviction, device_bytes, streams, lookahead, layout } = options;
    let builder = builder.clone().devices(devices.to_vec());
    let ctx = device_bytes.into_iter().fold(builder, |builder, bytes| builder.device_memory_bytes(bytes)).build()?;
    let (grid, tile_rows) = (RankGrid { rows: 1, cols: 1 }, tile_rows.unwrap_or(DoubleMatrix::tile_rows_for(order)));
    let mut tiles = DoubleMatrix::from_fn(0, order, tile_rows, grid, |i, j| a[j * order + i])?;
    let options = double::DoubleOptions::new()
        .policy(policy)
        .eviction(eviction)
        .streams(streams)
        .lookahead(lookahead)
        .layout(layout);
    let outcome = double::double_cholesky(&ctx, local::alone(), &mut tiles, &options);
    let factor = tiles.gather(local::alone(), 0)?.expect("the only rank is the root");
    for (i, j) in (0..order).flat_map(|i| (0..=i).map(move |j| (i, j))) {
        a[j * order + i] = factor[j * order + i];
    }
    outcome
}

fn soft(capacity_bytes: u64, seed: Option<u64>) -> Arc<dyn Device> {
    Arc::new(SoftDevice::new(SoftOptions { capacity_bytes, seed, ..SoftOptions::default() }))
}

/// A symmetric positive definite matrix with numbers above the diagonal that must stay.
fn matrix(order: usize) -> Vec<f64> {
    let mut a = vec![0.0; order * order];
    let mut state = 7u64;
    for col in 0..order {
        for row in 0..order {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            a[col * order + row] = if row == col { order as f64 / 4.0 + 1.0 + value } else { value };
        }
    }
    a
}

/// Largest entry of `A - L L^T` over `order eps |A|`; and whether what lies above the diagonal stayed.
fn check(order: usize, a: &[f64], l: &[f64], what: &str) {
    let mut worst = 0.0f64;
    for col in 0..order {
        for row in 0..order {
            if row < col {
                assert_eq!(l[col * order + row], a[col * order + row], "{what}: above the diagonal");
                continue;
            }
            let sum = (0..=col).map(|k| l[k * order + row] * l[k * order + col]).sum::<f64>();
            worst = worst.max((a[col * order + row] - sum).abs());
        }
    }
    let largest = a.iter().fold(0.0f64, |most, entry| most.max(entry.abs()));
    let scaled = worst / (order.max(1) as f64 * f64::EPSILON * largest.max(1e-300));
    assert!(scaled <= 2.0, "{what}: residual {scaled}");
}

fn check_traffic(report: &DoubleReport, what: &str) {
    for share in &report.devices {
        assert_eq!(share.traffic, counted_traffic(&share.cache), "{what}");
        assert!(share.peak_bytes <= share.room_tiles as u64 * SLOT_BYTES, "{what}");
    }
    let moved = report.devices.iter().map(|share| share.traffic.h2d_bytes + share.traffic.d2h_bytes).sum::<u64>();
    assert_eq!(moved, report.h2d_bytes + report.d2h_bytes, "{what}");
}

/// Orders for 1 to 9 tiles of 5 rows, with last tiles of 1 to 5 rows.
fn orders() -> impl Iterator<Item = (usize, usize)> {
    (1..10).map(|tiles| (tiles, 5 * tiles - (3 * tiles) % 5))
}

#[test]
fn every_choice_and_every_order_of_execution_gives_the_same_factor() {
    let ctx = context();
    for (tiles, order) in orders() {
        let (graph, a) = (CholeskyGraph { tiles }, matrix(order));
        let mut expected: Option<Vec<f64>> = None;
        for (turn, policy) in Policy::ALL.into_iter().enumerate() {
            for (at, eviction) in Eviction::ALL.into_iter().enumerate() {
                // Every third seed, the others with the next policy, eviction or number of tiles.
                for seed in (0..20u64).filter(|&seed| in_turn(3, turn + at + tiles).contains(&(seed as usize % 3))) {
                    // From the least room upward, to room for all.
                    let least = least_room_tiles(graph);
                    let room_tiles = least.max(1) + seed as usize % (graph.tile_count() - least + 1).max(1);
                    let room_tiles = room_tiles.min(graph.tile_count());
                    let what = format!("{tiles} tiles, {policy:?}, {eviction:?}, room {room_tiles}, seed {seed}");
                    let (streams, lookahead) =
                        (1 + (seed / 3) as usize % 3, [0, 2, 16][(seed / 9 + seed) as usize % 3]);
                    let (tile_rows, device_bytes) = (Some(5), Some(room_tiles as u64 * SLOT_BYTES));
                    let options = DoubleOptions {
                        tile_rows,
                        policy,
                        eviction,
                        device_bytes,
                        streams,
                        lookahead,
                        ..Default::default()
                    };
                    let mut l = a.clone();
                    let device = soft(room_tiles as u64 * SLOT_BYTES, Some(seed));
                    let report = double_cholesky(&ctx, &[device], order, &mut l, &options).unwrap();
                    check(order, &a, &l, &what);
                    check_traffic(&report, &what);
                    // Updates come in one order, so that not even the bits depend on any of this.
                    assert_eq!(*expected.get_or_insert_with(|| l.clone()), l, "{what}");
                    let rows = move |index: usize| 5.min(order - 5 * index) as u64;
                    let choices = CountOptions { policy, eviction, room_tiles, lookahead };
                    let counted = count_moves(graph, choices, move |tile| 8 * rows(tile.row) * rows(tile.col));
                    assert_eq!(report.devices[0].cache, counted, "{what}");
                    assert_eq!(report.devices[0].room_tiles, room_tiles, "{what}");
                    assert_eq!(report.tasks - tiles as u64, report.devices[0].tasks, "{what}");
                }
            }
        }
    }
}

#[test]
fn several_devices_share_the_tiles() {
    let ctx = context();
    for (tiles, order) in orders() {
        let a = matrix(order);
        for (policy, seed) in Policy::ALL.into_iter().zip(0..) {
            for devices in 1..=3 {
                for layout in [DeviceLayout::Grid, DeviceLayout::Columns] {
                    let what = format!("{tiles} tiles, {policy:?}, {devices} devices, {layout:?}");
                    let room = 3 + seed as usize;
                    let all = (0..devices).map(|index| soft(1 << 20, Some(seed + index))).collect::<Vec<_>>();
                    let device_bytes = Some(room as u64 * SLOT_BYTES);
                    let options =
                        DoubleOptions { tile_rows: Some(5), policy, layout, device_bytes, ..Default::default() };
                    let mut l = a.clone();
                    let report = double_cholesky(&ctx, &all, order, &mut l, &options).unwrap();
                    check(order, &a, &l, &what);
                    check_traffic(&report, &what);
                    let tasks = report.devices.iter().map(|share| share.tasks).sum::<u64>();
                    assert_eq!(tasks, report.tasks - tiles as u64, "{what}");
                    let staged = report.devices.iter().map(|share| share.staged_bytes).sum::<u64>();
                    assert_eq!(staged > 0, devices > 1 && tiles > 1, "{what}: {staged}");
                }
            }
        }
    }
}

/// The table of bytes moved for a device that holds half of the tiles, as the device counts them.
#[test]
fn the_best_choice_moves_at_least_85_percent_less_than_every_task_for_itself() {
    let ctx = context();
    for tiles in [24, 32] {
        let (graph, order) = (CholeskyGraph { tiles }, 4 * tiles);
        let room_tiles = graph.tile_count() / 2;
        let capacity = room_tiles as u64 * SLOT_BYTES;
        let a = matrix(order);
        let mut best = 0.0f64;
        println!("{tiles} x {tiles} tiles, room for {room_tiles}: bytes in tiles");
        // With little effort the two that are best: fewer choices can only make the best one worse.
        let best_two = |policy: &Policy| matches!(policy, Policy::Greedy | Policy::Panels);
        for policy in Policy::ALL.into_iter().filter(|policy| effort() > 1 || best_two(policy)) {
            for eviction in Eviction::ALL {
                let options = DoubleOptions {
                    tile_rows: Some(4),
                    policy,
                    eviction,
                    device_bytes: Some(capacity),
                    ..DoubleOptions::default()
                };
                let mut l = a.clone();
                let report = double_cholesky(&ctx, &[soft(capacity, None)], order, &mut l, &options).unwrap();
                let what = format!("{tiles} tiles, {policy:?}, {eviction:?}");
                check_traffic(&report, &what);
                check(order, &a, &l, &what);
                let traffic = report.devices[0].traffic;
                let (up, down) = (traffic.h2d_bytes / 128, traffic.d2h_bytes / 128);
                let (name, rule, saved) = (policy.name(), eviction.name(), 100.0 * report.saved);
                println!("{name:>14} {rule:5} h2d {up:6} d2h {down:6} saved {saved:.1} %");
                best = best.max(report.saved);
            }
        }
        assert!(best >= 0.85, "{tiles} tiles: {best}");
    }
}

/// With rates as of a fast GPU, copies hide behind products on the device's clock.
#[test]
fn streams_overlap_copies_and_work() {
    let ctx = context();
    let (order, rows) = (4 * 24, 4.0f64);
    // A copy of a tile takes twice as long as a product of tiles.
    let products_per_second = 1e3;
    let rates = Rates {
        f64_per_second: rows.powi(3) * products_per_second,
        bytes_per_second: 8.0 * rows.powi(2) * products_per_second / 2.0,
        ..Rates::default()
    };
    let graph = CholeskyGraph { tiles: 24 };
    let capacity_bytes = graph.tile_count() as u64 / 2 * SLOT_BYTES;
    let run = |streams| {
        let device =
            SoftDevice::new(SoftOptions { capacity_bytes, clock: Clock::Virtual(rates), ..SoftOptions::default() });
        let options =
            DoubleOptions { tile_rows: Some(4), streams, device_bytes: Some(capacity_bytes), ..Default::default() };
        let report = double_cholesky(&ctx, &[Arc::new(device)], order, &mut matrix(order), &options).unwrap();
        report.devices[0].device_seconds * products_per_second
    };
    let [one, two, three] = [1, 2, 3].map(run);
    // 2024 products, 276 halves of products (SYRK runs in full at this size), 276 solves of half the work.
    let work = 2024.0 + 276.0 + 138.0;
    println!("in products of tiles: work {work}, with 1, 2, 3 streams {one} {two} {three}");
    assert!(three <= two && two <= one, "{one} {two} {three}");
    assert!(work / three >= 0.66, "{}", work / three);
}

#[test]
fn the_first_bad_pivot_is_named_whatever_the_choices() {
    let ctx = context();
    let order = 33;
    for bad in [0, 4, 5, 17, 32] {
        let mut a = matrix(order);
        a[bad * order + bad] = -1.0;
        for later in bad + 1..order {
            a[later * order + later] = if later % 3 == 0 { -2.0 } else { a[later * order + later] };
        }
        for (policy, seed) in Policy::ALL.into_iter().zip(0..) {
            for devices in 1..=3 {
                let all = (0..devices).map(|_| soft(1 << 20, Some(seed))).collect::<Vec<_>>();
                let device_bytes = Some(7 * SLOT_BYTES);
                let options = DoubleOptions { tile_rows: Some(5), policy, device_bytes, ..Default::default() };
                let mut l = a.clone();
                match double_cholesky(&ctx, &all, order, &mut l, &options).unwrap_err() {
                    Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, .. } => {
                        assert_eq!((index, more_bits), (bad, MoreBits::Never), "{policy:?}, {devices} devices");
                        assert!(pivot <= -1.0 && diagonal == -1.0);
                    }
                    other => panic!("{other}"),
                }
                assert_eq!(l, a, "the matrix changed");
            }
        }
    }
    // A matrix of rank one is singular up to rounding, which the error says.
    let mut ones = vec![1.0; 9];
    let options = DoubleOptions { tile_rows: Some(2), ..Default::default() };
    let error = double_cholesky(&ctx, &[soft(1 << 20, None)], 3, &mut ones, &options).unwrap_err();
    assert!(matches!(error, Error::NotPositiveDefinite { index: 1, more_bits: MoreBits::AtLeast(_), .. }), "{error}");
}

#[test]
fn a_memory_that_is_too_small_names_the_least() {
    let ctx = context();
    let (order, a) = (23, matrix(23));
    let options = DoubleOptions { tile_rows: Some(5), ..Default::default() };
    for capacity in [0, 1, SLOT_BYTES, 3 * SLOT_BYTES - 1] {
        for device_bytes in [None, Some(capacity), Some(1 << 40)] {
            let device = soft(capacity, None);
            let options = DoubleOptions { device_bytes, ..options.clone() };
            let mut l = a.clone();
            let error = double_cholesky(&ctx, std::slice::from_ref(&device), order, &mut l, &options).unwrap_err();
            assert!(matches!(error, Error::DeviceLimit { minimum_bytes: 768, .. }), "{capacity}: {error}");
            assert_eq!((l, device.used_bytes()), (a.clone(), 0));
        }
    }
    // The minimum named is enough, and a limit beyond the memory takes what is there.
    for (capacity, device_bytes, least) in [(768, Some(768), 3), (3000, Some(1 << 40), 3), (1 << 20, None, 15)] {
        let device = soft(capacity, None);
        let options = DoubleOptions { device_bytes, ..options.clone() };
        let mut l = a.clone();
        let report = double_cholesky(&ctx, std::slice::from_ref(&device), order, &mut l, &options).unwrap();
        check(order, &a, &l, "small memory");
        let share = &report.devices[0];
        assert!(share.room_tiles >= least && share.peak_bytes <= capacity, "{share:?}");
        assert_eq!(device.used_bytes(), 0, "memory is given back");
    }
}

#[test]
fn a_lost_device_leaves_the_matrix_as_it_was() {
    let ctx = context();
    let (order, a) = (28, matrix(28));
    for devices in 1..=2 {
        let mut lost = 0;
        for count in (0..400).step_by(7) {
            let mut all = vec![soft(1 << 20, Some(count))];
            let fault = Some(Fault::LostAfter(count));
            all.truncate(devices - 1);
            let options = SoftOptions { capacity_bytes: 1 << 20, seed: Some(count), fault, ..SoftOptions::default() };
            all.push(Arc::new(SoftDevice::new(options)));
            let options = DoubleOptions {
                tile_rows: Some(5),
                device_bytes: Some(6 * SLOT_BYTES),
                lookahead: 3,
                ..Default::default()
            };
            let mut l = a.clone();
            match double_cholesky(&ctx, &all, order, &mut l, &options) {
                Ok(_) => check(order, &a, &l, "a device lost too late"),
                Err(Error::DeviceLost(_)) => {
                    lost += 1;
                    assert_eq!(l, a, "lost after {count} commands");
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(lost > 20, "{lost}");
    }
}

#[test]
fn bad_input_is_refused_with_its_numbers() {
    let ctx = context();
    let device = || vec![soft(1 << 20, None)];
    let fine = DoubleOptions { tile_rows: Some(3), ..Default::default() };
    let run = |devices: &[Arc<dyn Device>], order, a: &mut [f64], options: &DoubleOptions| {
        double_cholesky(&ctx, devices, order, a, options).map(drop)
    };
    let mut a = matrix(8);
    for (value, kind) in [(f64::NAN, "NaN"), (f64::NEG_INFINITY, "infinite")] {
        let mut bad = a.clone();
        bad[5 * 8 + 2] = value; // above the diagonal: never read
        assert!(run(&device(), 8, &mut bad.clone(), &fine).is_ok());
        (bad[2 * 8 + 7], bad[2 * 8 + 6], bad[3 * 8 + 3]) = (value, value, value);
        match run(&device(), 8, &mut bad, &fine).unwrap_err() {
            Error::NotFinite { row, column, kind: found } => assert_eq!((row, column, found), (6, 2, kind)),
            other => panic!("{other}"),
        }
    }
    for streams in [0, 4] {
        let options = DoubleOptions { streams, ..fine.clone() };
        assert!(matches!(run(&device(), 8, &mut a, &options), Err(Error::InvalidArgument(_))));
    }
    let options = DoubleOptions { tile_rows: Some(0), ..fine.clone() };
    assert!(matches!(run(&device(), 8, &mut a, &options), Err(Error::InvalidArgument(_))));
    let limited = context().memory_bytes(100);
    let error = double_cholesky(&limited, &device(), 8, &mut a, &fine).unwrap_err();
    let needed = 344 + TileKernels::BYTES; // the tiles, and one thread's packed operands
    assert!(
        matches!(error, Error::MemoryLimit { limit_bytes: 100, minimum_bytes } if minimum_bytes == needed),
        "{error}"
    );
    assert_eq!(a, matrix(8), "errors leave the matrix as it was");
    let mut l = a.clone();
    let report = double_cholesky(&ctx, &[], 8, &mut l, &fine).unwrap();
    check(8, &a, &l, "without devices the CPUs factor");
    assert_eq!((report.devices.len(), report.tasks), (0, 10));
    for order in [0, 1] {
        let mut a = matrix(order);
        run(&device(), order, &mut a, &DoubleOptions::default()).unwrap();
        check(order, &matrix(order), &a, "tiny");
    }
}

/// Tiles large enough for strips of SYRK, on several threads of the host.
#[test]
fn larger_tiles_run_in_strips_and_on_threads() {
    let ctx = Context::builder().threads(2);
    let order = 420;
    let a = matrix(order);
    for tile_rows in [None, Some(150), Some(420)] {
        let mut l = a.clone();
        let options = DoubleOptions { tile_rows, device_bytes: Some(3 << 20), ..Default::default() };
        let report = double_cholesky(&ctx, &[soft(4 << 20, Some(1))], order, &mut l, &options).unwrap();
        assert_eq!(report.tiles, order.div_ceil(report.tile_rows));
        check(order, &a, &l, &format!("{tile_rows:?}"));
    }
}
