//! Factorisations of doubles on ranks that are threads, against the tile kernel on the whole matrix.

use super::*;
use crate::comm::local;
use crate::kernels::f64::tile::TileMut;
use crate::tile::RankGrid;

/// A positive definite matrix whose entries look random.
fn entry(order: usize) -> impl Fn(usize, usize) -> f64 + Sync + Copy {
    move |i, j| {
        let hash = ((i as u64) << 32 | j as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let noise = (hash >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
        if i == j { order as f64 + noise } else { noise }
    }
}

/// The factor by one call of the kernel.
fn reference(order: usize) -> Vec<f64> {
    let entry = entry(order);
    let mut a = (0..order * order).map(|at| entry(at % order, at / order)).collect::<Vec<_>>();
    TileKernels::new().potrf(TileMut::new(&mut a, order, order, order)).unwrap();
    a
}

fn factored(
    rank: &dyn Transport,
    order: usize,
    tile_rows: usize,
    grid: RankGrid,
    threads: usize,
    options: &DoubleOptions,
) -> (DoubleMatrix, DoubleReport) {
    let ctx = Context::builder().threads(threads).build().unwrap();
    let mut a = DoubleMatrix::from_fn(rank.rank(), order, tile_rows, grid, entry(order)).unwrap();
    let report = double_cholesky(&ctx, rank, &mut a, options).unwrap();
    (a, report)
}

fn grids(ranks: usize) -> impl Iterator<Item = RankGrid> {
    (1..=ranks).filter(move |rows| ranks.is_multiple_of(*rows)).map(move |rows| RankGrid { rows, cols: ranks / rows })
}

/// Runs on a grid and compares with the reference; returns the bits on the root.
fn check(ranks: usize, (order, tile_rows): (usize, usize), grid: RankGrid, options: DoubleOptions) -> Vec<u64> {
    let expected = reference(order);
    let tasks = CholeskyGraph { tiles: order.div_ceil(tile_rows) }.tasks().count() as u64;
    let place = format!("{order} rows in tiles of {tile_rows}, {grid:?} of {ranks}, {options:?}");
    let mut results = local::run(ranks, |rank| {
        let threads = 1 + (rank.rank() + order) % 2;
        let (l, report) = factored(rank, order, tile_rows, grid, threads, &options);
        let counters = report.rank.counters;
        assert!(counters.peak_slots <= report.slots as u64, "{place}");
        assert_eq!(report.rank.sent_bytes > 0, counters.tiles > 0, "{place}");
        (l.gather(rank, 0).unwrap(), counters.tasks)
    });
    assert_eq!(results.iter().map(|(_, tasks)| tasks).sum::<u64>(), tasks, "{place}");
    let l = results.swap_remove(0).0.unwrap();
    for at in 0..order * order {
        let (i, j) = (at % order, at / order);
        let close = (l[at] - expected[at]).abs() <= 1e-12 * order as f64;
        assert!(if i < j { l[at] == 0.0 } else { close }, "{place}: ({i}, {j}) is {}", l[at]);
    }
    l.into_iter().map(f64::to_bits).collect()
}

#[test]
fn every_grid_gives_the_same_bits_under_every_choice() {
    let policies = [Policy::Fifo, Policy::Lifo, Policy::Random(5), Policy::ByIj, Policy::Greedy, Policy::CriticalPath];
    for shape in [(0, 4), (1, 4), (9, 16), (40, 8), (61, 7)] {
        let mut bits = None;
        for ranks in [1, 2, 3, 4, 5, 6, 7, 8] {
            for (index, grid) in grids(ranks).enumerate() {
                let delivery = DeliveryKind::ALL[(ranks + index) % 5];
                let termination = [Termination::Lists, Termination::AllToAll][(ranks + index) % 2];
                let process_grid = RankGrid { rows: grid.rows, cols: grid.cols };
                let least = process_grid.least_slots(usize::div_ceil(shape.0, shape.1));
                let options = DoubleOptions {
                    delivery,
                    termination,
                    policy: Some(policies[(ranks * 2 + index) % 6]),
                    slots: [Some(least), None][index % 2],
                    most_updates: [1, usize::MAX, 3][ranks % 3],
                    spans: ranks % 2 == 0,
                    ..DoubleOptions::default()
                };
                let found = check(ranks, shape, grid, options);
                assert_eq!(bits.get_or_insert(found.clone()), &found, "{shape:?} on {grid:?}");
            }
        }
    }
}

#[test]
fn ranks_beyond_the_grid_stand_by() {
    check(5, (50, 8), RankGrid { rows: 2, cols: 2 }, DoubleOptions::default());
}

#[test]
fn all_deliveries_end_at_the_fewest_slots() {
    for (seed, delivery) in DeliveryKind::ALL.into_iter().enumerate() {
        for (rows, cols) in [(2, 3), (1, 4), (4, 1)] {
            let slots = Some(RankGrid { rows, cols }.least_slots(12));
            let policy = Some(Policy::Random(seed as u64));
            let options = DoubleOptions { delivery, slots, policy, ..DoubleOptions::default() };
            check(rows * cols, (95, 8), RankGrid { rows, cols }, options);
        }
    }
}

#[test]
fn a_matrix_that_is_not_definite_fails_alike_on_all_ranks() {
    for (bad, ranks) in [(0, 4), (33, 3), (57, 6), (20, 1)] {
        let grid = RankGrid::for_ranks(ranks);
        for delivery in DeliveryKind::ALL {
            let options = DoubleOptions { delivery, ..DoubleOptions::default() };
            let errors = local::run(ranks, |rank| {
                let ctx = Context::builder().threads(2).build().unwrap();
                let entry = |i, j| if (i, j) == (bad, bad) { -3.0 } else { entry(58)(i, j) };
                let mut a = DoubleMatrix::from_fn(rank.rank(), 58, 6, grid, entry).unwrap();
                double_cholesky(&ctx, rank, &mut a, &options).unwrap_err()
            });
            let first = errors[0].to_string();
            for error in errors {
                assert_eq!(error.to_string(), first);
                assert!(matches!(error, Error::NotPositiveDefinite { index, .. } if index == bad), "{error}");
            }
        }
    }
}

#[test]
fn entries_that_are_not_finite_are_refused_before_anything_is_sent() {
    let errors = local::run(3, |rank| {
        let ctx = Context::builder().threads(1).build().unwrap();
        let entry = |i, j| if (i, j) == (30, 12) { f64::INFINITY } else { entry(40)(i, j) };
        let mut a = DoubleMatrix::from_fn(rank.rank(), 40, 8, RankGrid { rows: 3, cols: 1 }, entry).unwrap();
        double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default()).unwrap_err()
    });
    for error in errors {
        assert!(error.to_string().contains("entry at row 30, column 12 is infinite"), "{error}");
    }
}

#[test]
fn one_slot_too_few_is_refused_on_all_ranks() {
    let least = RankGrid { rows: 2, cols: 2 }.least_slots(5);
    let options = DoubleOptions { slots: Some(least - 1), ..DoubleOptions::default() };
    let errors = local::run(4, |rank| {
        let ctx = Context::builder().threads(1).build().unwrap();
        let mut a = DoubleMatrix::from_fn(rank.rank(), 40, 8, RankGrid { rows: 2, cols: 2 }, entry(40)).unwrap();
        double_cholesky(&ctx, rank, &mut a, &options).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.contains(&format!("at least {least}"))), "{errors:?}");
}

#[test]
fn one_rank_that_cancels_ends_all() {
    for after in [0, 3, 11] {
        let errors = local::run(4, |rank| {
            let own = rank.rank();
            let builder = Context::builder().threads(1);
            let ctx = builder.progress(move |progress| own != 2 || progress.done < after).build().unwrap();
            let mut a = DoubleMatrix::from_fn(own, 64, 8, RankGrid { rows: 2, cols: 2 }, entry(64)).unwrap();
            double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default()).unwrap_err()
        });
        assert!(errors.iter().all(|error| matches!(error, Error::Cancelled)), "{errors:?}");
    }
}

#[test]
fn residuals_tell_a_factor_from_another() {
    let entry = entry(70);
    let residuals = local::run(3, |rank| {
        let grid = RankGrid { rows: 1, cols: 3 };
        let (l, _) = factored(rank, 70, 16, grid, 1, &DoubleOptions::default());
        let x = (0..70).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect::<Vec<_>>();
        let other = |i, j| if (i, j) == (50, 2) { entry(i, j) + 1e-6 } else { entry(i, j) };
        let vectors = [x];
        (l.residual(rank, entry, &vectors).unwrap(), l.residual(rank, other, &vectors).unwrap())
    });
    for (right, wrong) in residuals {
        assert!(right < 0.1 && wrong > 1.0, "{right} and {wrong}");
    }
}

/// Each on all ranks, none of which waits for another.
#[test]
fn groups_and_vectors_that_do_not_fit_are_refused() {
    let grid = RankGrid { rows: 1, cols: 2 };
    let refused = |order: usize, cut: fn(usize) -> (usize, usize, usize)| {
        local::run(2, |rank| {
            let (own, tile_rows, cols) = cut(rank.rank());
            let ctx = Context::builder().threads(1).build().unwrap();
            let grid = RankGrid { rows: 1, cols };
            let mut a = DoubleMatrix::from_fn(own, order, tile_rows, grid, entry(order)).unwrap();
            double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default()).unwrap_err().to_string()
        })
    };
    let all_say = |errors: Vec<String>, part: &str| assert!(errors.iter().all(|e| e.contains(part)), "{errors:?}");
    all_say(refused(40, |rank| (rank, 8, 3)), "passes the part of rank 0 of a matrix on a grid of 1 x 3 ranks");
    all_say(
        refused(40, |rank| (1 - rank, 8, 2)),
        "rank 0 of 2 passes the part of rank 1 of a matrix on a grid of 1 x 2 ranks",
    );
    all_say(refused(40, |rank| (rank, 8 << rank, 2)), "the ranks pass different tilings of a matrix of doubles");
    let with_options = |options: fn(usize) -> DoubleOptions| {
        local::run(2, |rank| {
            let ctx = Context::builder().threads(1).build().unwrap();
            let mut a = DoubleMatrix::from_fn(rank.rank(), 40, 8, grid, entry(40)).unwrap();
            let made = double_cholesky(&ctx, rank, &mut a, &options(rank.rank()));
            made.map(|_| a.gather(rank, 0).unwrap()).map_err(|error| error.to_string())
        })
    };
    let differ = with_options(|rank| DoubleOptions::new().delivery(DeliveryKind::ALL[rank]));
    assert!(differ.iter().all(|made| made.is_err()));
    all_say(
        differ.into_iter().filter_map(|made| made.err()).collect(),
        "the ranks pass different tilings of a matrix of doubles",
    );
    // Options that concern only one rank may differ.
    let own = |rank: usize| DoubleOptions::new().policy([Policy::Fifo, Policy::Lifo][rank]).spans(rank == 1);
    assert_eq!(with_options(own), with_options(|_| DoubleOptions::new()));
    let said = local::run(2, |rank| {
        let l = factored(rank, 40, 8, grid, 1, &DoubleOptions::default()).0;
        let rows = 40 - rank.rank();
        let vectors = [vec![1.0; 40], vec![1.0; rows]];
        let errors = [
            l.residual(rank, entry(40), &vectors).unwrap_err(),
            l.residual(rank, entry(40), &vec![vec![1.0; 40]; 1 + rank.rank()]).unwrap_err(),
            l.gather(rank, 2).unwrap_err(),
            l.gather(rank, rank.rank()).unwrap_err(),
        ];
        errors.map(|error| error.to_string())
    });
    let parts = [
        "a vector of 39 entries",
        "the ranks pass different",
        "there is no rank 2 among 2 ranks to be the root",
        "the ranks pass different",
    ];
    for (at, part) in parts.into_iter().enumerate() {
        all_say(said.iter().map(|errors| errors[at].clone()).collect(), part);
    }
}
