//! Cholesky factorisations of doubles over ranks with software devices: every order that streams allow, every choice,
//! small memories, several devices of a rank, faults.

use crate::common::residency::counted_traffic;
use crate::common::{effort, in_turn};
use std::sync::Arc;
use sunzi::advanced::device::Traffic;
use sunzi::advanced::device::soft::{Fault, SoftDevice, SoftOptions};
use sunzi::advanced::kernels::f64::tile::TileKernels;
use sunzi::advanced::runtime::protocol::DeliveryKind;
use sunzi::advanced::runtime::{Eviction, Policy};
use sunzi::comm::{Transport, local};
use sunzi::devices::Device;
use sunzi::double::{DoubleMatrix, DoubleOptions, DoubleReport, RankGrid, double_cholesky};
use sunzi::{Context, Error};

/// Bytes of a slot for the tiles of these tests, of at most 5 rows.
const SLOT_BYTES: u64 = 256;

fn soft(capacity_bytes: u64, seed: Option<u64>, fault: Option<Fault>) -> Arc<dyn Device> {
    Arc::new(SoftDevice::new(SoftOptions { capacity_bytes, seed, fault, ..SoftOptions::default() }))
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
    options: DoubleOptions,
}

impl Case {
    fn run(&self) -> (Vec<f64>, Vec<DoubleReport>) {
        let Case { order, tile_rows, grid, options, .. } = self;
        let mut results = local::run(grid.size(), |rank| {
            let ctx = self.context(rank.rank(), None);
            let mut a = DoubleMatrix::from_fn(rank.rank(), *order, *tile_rows, *grid, entry(*order)).unwrap();
            let report = double_cholesky(&ctx, rank, &mut a, options).unwrap();
            assert!(ctx.devices().devices.iter().all(|device| device.used_bytes() == 0), "memory is given back");
            let tasks = report.devices.iter().map(|share| share.tasks).sum::<u64>();
            let factored = a.tiles().filter(|(tile, _)| tile.row == tile.col).count() as u64;
            assert_eq!(tasks + factored, report.rank.counters.tasks, "POTRF alone runs on the host");
            (a.gather(rank, 0).unwrap(), report)
        });
        let l = results[0].0.take().unwrap();
        let devices =
            results.into_iter().map(|(_, report)| report).filter(|own| !own.devices.is_empty()).collect::<Vec<_>>();
        devices.iter().for_each(|own| check_traffic(own, self.room_tiles));
        (l, devices)
    }

    /// The context of one rank; `fault` happens to its last device.
    fn context(&self, rank: usize, fault: Option<Fault>) -> Context {
        let bytes = self.room_tiles * SLOT_BYTES;
        let device = |device: usize| {
            let seed = self.seed.map(|seed| seed + (rank * self.devices + device) as u64);
            soft(bytes, seed, fault.filter(|_| device + 1 == self.devices))
        };
        let devices = (0..self.devices).map(device).collect();
        Context::builder().threads(1).devices(devices).device_memory_bytes(bytes).build().unwrap()
    }

    /// The error of every rank, for a matrix with these entries.
    fn errors(
        &self,
        fault: impl Fn(usize) -> Option<Fault> + Sync,
        entry: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Vec<Option<Error>> {
        local::run(self.grid.size(), |rank| {
            let ctx = self.context(rank.rank(), fault(rank.rank()));
            let mut a = DoubleMatrix::from_fn(rank.rank(), self.order, self.tile_rows, self.grid, &entry).unwrap();
            double_cholesky(&ctx, rank, &mut a, &self.options).err()
        })
    }
}

fn case(order: usize, (rows, cols): (usize, usize), devices: usize, room_tiles: u64) -> Case {
    let options = DoubleOptions::default();
    Case { order, tile_rows: 5, grid: RankGrid { rows, cols }, devices, room_tiles, seed: Some(1), options }
}

fn check_traffic(own: &DoubleReport, room_tiles: u64) {
    for share in &own.devices {
        assert_eq!(share.traffic, counted_traffic(&share.cache));
        assert!(share.peak_bytes <= room_tiles * SLOT_BYTES);
    }
    let sum = |of: &dyn Fn(&Traffic) -> u64| own.devices.iter().map(|share| of(&share.traffic)).sum::<u64>();
    assert_eq!((own.h2d_bytes, own.d2h_bytes), (sum(&|one| one.h2d_bytes), sum(&|one| one.d2h_bytes)));
}

/// The factor by one device in one process, with zeros above the diagonal.
fn by_one_device(order: usize, tile_rows: usize) -> Vec<f64> {
    let device = soft(1 << 20, None, None);
    let ctx = Context::builder().threads(1).devices(vec![device]).build().unwrap();
    let mut a = DoubleMatrix::from_fn(0, order, tile_rows, RankGrid { rows: 1, cols: 1 }, entry(order)).unwrap();
    double_cholesky(&ctx, local::alone(), &mut a, &DoubleOptions::default()).unwrap();
    a.gather(local::alone(), 0).unwrap().unwrap()
}

/// The factor by the CPUs of two ranks.
fn by_processors(order: usize, tile_rows: usize) -> Vec<f64> {
    let mut factors = local::run(2, |rank| {
        let ctx = Context::builder().threads(1).build().unwrap();
        let grid = RankGrid { rows: 1, cols: 2 };
        let mut a = DoubleMatrix::from_fn(rank.rank(), order, tile_rows, grid, entry(order)).unwrap();
        let report = double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default()).unwrap();
        assert!(report.devices.is_empty());
        a.gather(rank, 0).unwrap()
    });
    factors[0].take().unwrap()
}

#[test]
fn every_choice_and_every_order_of_execution_gives_the_factor_of_one_device() {
    let mut count = 0u64;
    for (place, tiles) in [1, 2, 3, 5, 8, 11].into_iter().enumerate() {
        let order = 5 * tiles - (3 * tiles) % 5;
        let (expected, near) = (by_one_device(order, 5), by_processors(order, 5));
        let close = expected.iter().zip(&near).all(|(one, other)| (one - other).abs() <= 1e-13 * order as f64);
        assert!(close, "{order} rows");
        let choices = Policy::ALL.into_iter().flat_map(|policy| Eviction::ALL.map(|eviction| (policy, eviction)));
        for (turn, (policy, eviction)) in choices.enumerate() {
            let grids = [((1, 1), 1), ((1, 1), 2), ((1, 2), 1), ((2, 1), 2), ((2, 2), 1), ((2, 2), 2)];
            for (at, (grid, devices)) in grids.into_iter().enumerate() {
                count += 1;
                // Policy, eviction and grid meet at two of the six numbers of tiles, or at all of them.
                if !in_turn(3, turn + at).contains(&(place % 3)) {
                    continue;
                }
                let policy = if let Policy::Random(_) = policy { Policy::Random(count) } else { policy };
                let own = (tiles * (tiles + 1) / 2).div_ceil(grid.0 * grid.1 * devices) as u64;
                // Each choice is drawn for itself, or some would meet on some grids only.
                let draw = |axis: u64, choices: u64| {
                    let hash = (count * 8 + axis).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    ((hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) % choices
                };
                let least_slots = RankGrid { rows: grid.0, cols: grid.1 }.least_slots(tiles);
                // From the least room to half of the own tiles.
                let room = 3.max(own / [2, 4, 100][draw(0, 3) as usize]);
                let mut case = case(order, grid, devices, room);
                case.seed = Some(count);
                case.options = DoubleOptions::new()
                    .policy(policy)
                    .eviction(eviction)
                    .delivery(DeliveryKind::ALL[draw(1, 5) as usize])
                    .device_workers(1 + draw(2, 3) as usize)
                    .most_updates([4, 1, usize::MAX][draw(3, 3) as usize])
                    .slots([None, Some(least_slots), Some(tiles * tiles)][draw(4, 3) as usize]);
                let (l, ranks) = case.run();
                assert_eq!(l, expected, "{tiles} tiles, {grid:?}, {devices} devices, room {room}, {:?}", case.options);
                let busy = ranks.iter().flat_map(|own| &own.devices).filter(|share| share.tasks > 0).count();
                assert!(tiles < 5 || busy == grid.0 * grid.1 * devices, "{busy} devices work");
            }
        }
    }
}

/// The table of bytes moved, as the devices count them, beside those of tasks that each move their own tiles.
#[test]
fn the_best_choice_moves_at_least_85_percent_less_than_every_task_for_itself() {
    let all = |tiles: usize| tiles * (tiles + 1) / 2;
    // With 24 tile rows, what four ranks read of each other allows 87.8 % at most.
    let settings = [
        (24, (1, 1), all(24) / 2, "half of the matrix", 0.85),
        (24, (2, 2), all(24) / 4, "a rank's tiles", 0.85),
        (24, (2, 2), all(24) / 8, "half of a rank's tiles", 0.70),
        (64, (2, 2), all(64) / 8, "half of a rank's tiles", 0.85),
    ];
    for (tiles, grid, room, what, least) in settings {
        println!("{tiles} x {tiles} tiles, {} x {} ranks, room for {room} tiles, {what}:", grid.0, grid.1);
        let mut best = 0.0f64;
        // With little effort those that are best: fewer choices can only make the best one worse.
        let is_best = |policy: &Policy| *policy == Policy::Greedy || tiles == 24 && *policy == Policy::Panels;
        for policy in Policy::ALL.into_iter().filter(|policy| effort() > 1 || is_best(policy)) {
            for eviction in Eviction::ALL {
                let mut case = case(4 * tiles, grid, 1, room as u64);
                (case.tile_rows, case.seed) = (4, None);
                case.options = case.options.policy(policy).eviction(eviction);
                let (_, ranks) = case.run();
                let sum = |of: &dyn Fn(&DoubleReport) -> u64| ranks.iter().map(of).sum::<u64>() / 128;
                let (up, down) = (sum(&|own| own.h2d_bytes), sum(&|own| own.d2h_bytes));
                let (all_up, all_down) = (sum(&|own| own.baseline_h2d_bytes), sum(&|own| own.baseline_d2h_bytes));
                let saved = |moved: u64, all: u64| 1.0 - moved as f64 / all as f64;
                println!(
                    "{:>14} {:5} h2d {up:6} of {all_up}, {:.1} % less; d2h {down:6} of {all_down}; both {:.1} % less",
                    policy.name(),
                    eviction.name(),
                    100.0 * saved(up, all_up),
                    100.0 * saved(up + down, all_up + all_down)
                );
                best = best.max(saved(up, all_up));
            }
        }
        assert!(best >= least, "{tiles} tiles, {grid:?}, {what}: {best}");
    }
}

#[test]
fn devices_beyond_their_grid_stay_idle() {
    let expected = by_one_device(58, 5);
    for devices in [11, 13] {
        let (l, ranks) = case(58, (1, 2), devices, 6).run();
        assert_eq!(l, expected, "{devices} devices");
        assert!(ranks.iter().all(|own| own.devices.len() < devices && own.devices.iter().all(|one| one.tasks > 0)));
    }
}

#[test]
fn memory_is_planned_for_the_devices_of_the_grid_alone() {
    let least = |devices: usize| {
        let devices = (0..devices).map(|_| soft(1 << 20, None, None)).collect::<Vec<_>>();
        let ctx = Context::builder().threads(1).devices(devices).memory_bytes(1).build().unwrap();
        let mut errors = local::run(1, |rank| {
            let grid = RankGrid { rows: 1, cols: 1 };
            let mut a = DoubleMatrix::from_fn(0, 58, 5, grid, entry(58)).unwrap();
            double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default()).err()
        });
        match errors.pop().flatten() {
            Some(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(least(0), TileKernels::BYTES, "one rank needs no slots, and without devices no homes");
    assert!(least(1) > least(0) + 58 * 58 / 2 * 8);
    assert!(least(10) > least(1));
    assert_eq!(least(11), least(10));
}

#[test]
fn a_lost_device_ends_all_ranks_with_one_error() {
    for (grid, devices) in [((1, 1), 1), ((2, 1), 2), ((2, 2), 1)] {
        let mut lost = 0;
        for count in (0..240).step_by(7) {
            let case = Case { seed: Some(count), ..case(38, grid, devices, 4) };
            let unlucky = count as usize % case.grid.size();
            let fault = |rank| (rank == unlucky).then_some(Fault::LostAfter(count));
            let errors = case.errors(fault, entry(38));
            let texts = errors.iter().map(|error| error.as_ref().map(Error::to_string)).collect::<Vec<_>>();
            assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
            if let Some(text) = &texts[0] {
                assert!(text.contains("was lost after"), "{text}");
                lost += 1;
            }
        }
        assert!(lost > 10, "{grid:?}: {lost}");
    }
}

#[test]
fn the_first_bad_pivot_is_named_on_all_ranks() {
    for bad in [0, 4, 5, 17, 32] {
        for (grid, devices) in [((1, 1), 1), ((1, 2), 2), ((2, 2), 1)] {
            let case = case(33, grid, devices, 5);
            let sound = entry(33);
            let errors = case.errors(|_| None, |i, j| if i == j && i >= bad { -1.0 } else { sound(i, j) });
            for error in errors {
                match error {
                    Some(Error::NotPositiveDefinite { index, pivot, diagonal, .. }) => {
                        assert_eq!(index, bad, "{grid:?}");
                        assert!(pivot <= -1.0 && diagonal == -1.0);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_memory_that_is_too_small_names_the_least_on_all_ranks() {
    for (grid, room) in [((1, 1), 2), ((2, 2), 0), ((2, 1), 2)] {
        let case = case(33, grid, 1, room);
        for error in case.errors(|_| None, entry(33)) {
            let text = error.expect("there is no room").to_string();
            assert!(text.contains("768"), "{text}");
        }
    }
    // The least is enough, and a rank without tiles needs none.
    let expected = by_one_device(33, 5);
    assert_eq!(case(33, (2, 2), 1, 3).run().0, expected);
    let errors = local::run(3, |rank| {
        let ctx = case(33, (1, 2), 1, if rank.rank() == 2 { 0 } else { 3 }).context(rank.rank(), None);
        let grid = RankGrid { rows: 1, cols: 2 };
        let mut a = DoubleMatrix::from_fn(rank.rank(), 33, 5, grid, entry(33)).unwrap();
        let report = double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default()).unwrap();
        assert_eq!(report.devices.is_empty(), rank.rank() == 2);
        let no_workers = DoubleOptions::new().device_workers(0);
        double_cholesky(&ctx, rank, &mut a, &no_workers).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.contains("device_workers = 0")), "{errors:?}");
}
