//! Factorisations and triangular solves whose updates run on a device: the bits of the CPU, and few bytes over the bus.

use crate::common::effort;
use crate::common::residency::room_for_tiles;
use rug::Float;
use std::sync::Arc;
use sunzi::advanced::device::soft::{Fault, SoftDevice, SoftOptions};
use sunzi::{CholeskyOptions, Context, Device, Error, Matrix, cholesky, cholesky_with, ldlt, solve, trsm};

const FAMILIES: [&str; 2] = ["cuda-f64", "cuda-i8"];

fn context(family: &str, threads: usize, options: SoftOptions) -> Context {
    let device: Arc<dyn Device> = Arc::new(SoftDevice::new(options));
    Context::builder().threads(threads).devices(vec![device]).kernel(family).build().unwrap()
}

/// `a_ij = min(i, j) + 1` scaled row by row, with a little noise: positive definite.
fn definite(order: usize, bits: u32) -> Matrix {
    let mut matrix = Matrix::zeros(order, order, bits).unwrap();
    let mut rng = rug::rand::RandState::new();
    rng.seed(&rug::Integer::from(order));
    let scale = |i: usize| (i * 7 % 40) as i32 - 20;
    for i in 0..order {
        for j in 0..=i {
            let noise = Float::with_val(bits, Float::random_cont(&mut rng)) / (order as u32 * 4);
            let value = Float::with_val(bits, j + 1) + if i == j { Float::with_val(bits, 1) } else { noise };
            let value = value << (scale(i) + scale(j));
            matrix.set_float(i, j, &value).unwrap();
            matrix.set_float(j, i, &value).unwrap();
        }
    }
    matrix
}

fn tiles(rows: usize) -> CholeskyOptions {
    CholeskyOptions::new().tile_rows(rows)
}

#[test]
fn factors_have_the_bits_of_the_cpu() {
    let cpu = Context::builder().threads(2).build().unwrap();
    for (case, order) in [1usize, 8, 15, 40, 65].into_iter().enumerate() {
        for bits in [64, 1024] {
            let a = definite(order, bits);
            let want = cholesky_with(&cpu, &a, bits, &CholeskyOptions::default()).unwrap().result.into_factor();
            for family in FAMILIES {
                for (threads, rows) in [(1, 8), (3, 16), (2, 24), (2, 104)] {
                    let seed = Some((case * 10 + threads) as u64);
                    let ctx = context(family, threads, SoftOptions { seed, ..SoftOptions::default() });
                    for _ in 0..2 {
                        let factor = cholesky_with(&ctx, &a, bits, &tiles(rows)).unwrap();
                        assert!(factor.result.factor() == &want, "{order}, {bits} bits, {family}, tiles of {rows}");
                        let device = &factor.report.devices[0];
                        assert!(order <= rows || device.traffic.h2d_bytes > 0);
                    }
                }
            }
        }
    }
}

#[test]
fn tiles_that_end_between_reductions_are_summed_once() {
    // Doubles are reduced after 1024 rows at most, which ends inside a tile of 104; padding goes to multiples of 16.
    let (rows, bits) = (104, 64);
    let a = definite(11 * rows, bits);
    let cpu = Context::builder().threads(2).build().unwrap();
    let want = cholesky_with(&cpu, &a, bits, &CholeskyOptions::default()).unwrap().result.into_factor();
    for family in FAMILIES {
        let ctx = context(family, 2, SoftOptions::default());
        assert!(cholesky_with(&ctx, &a, bits, &tiles(rows)).unwrap().result.factor() == &want, "{family}");
        // The memory of a factorisation is given back when it ends.
        assert_eq!(ctx.devices().devices[0].used_bytes(), 0);
    }
}

#[test]
fn orders_of_execution_and_little_memory_change_nothing() {
    let (order, bits) = (72, 128);
    let a = definite(order, bits);
    let cpu = Context::builder().threads(1).build().unwrap();
    let want = cholesky_with(&cpu, &a, bits, &CholeskyOptions::default()).unwrap().result.into_factor();
    for family in FAMILIES {
        let with = |capacity_bytes: u64, seed: Option<u64>| {
            let options = SoftOptions { capacity_bytes, seed, ..SoftOptions::default() };
            cholesky_with(&context(family, 4, options), &a, bits, &tiles(8))
        };
        let Err(Error::DeviceLimit { minimum_bytes, .. }) = with(1000, None) else { panic!("1000 bytes do") };
        assert!(matches!(with(minimum_bytes - 1, None), Err(Error::DeviceLimit { .. })));
        for seed in 0..20 * effort() {
            for capacity in [minimum_bytes, minimum_bytes * 3, 1 << 28] {
                let factor = with(capacity, Some(seed)).unwrap();
                assert!(factor.result.factor() == &want, "{family}, {capacity} bytes, seed {seed}");
                assert!(factor.report.devices[0].device_bytes <= capacity);
            }
        }
    }
}

#[test]
fn each_of_several_devices_updates_tiles_of_its_own() {
    let (order, bits) = (120, 128);
    let a = definite(order, bits);
    let cpu = Context::builder().threads(1).build().unwrap();
    let want = cholesky_with(&cpu, &a, bits, &CholeskyOptions::default()).unwrap().result.into_factor();
    for count in 1..=4 {
        for threads in [1, 3] {
            let device = |seed| {
                let options = SoftOptions { seed: Some(seed), ..SoftOptions::default() };
                Arc::new(SoftDevice::new(options)) as Arc<dyn Device>
            };
            let devices = (0..count).map(device).collect();
            let ctx = Context::builder().threads(threads).devices(devices).kernel("cuda-i8").build().unwrap();
            let factor = cholesky_with(&ctx, &a, bits, &tiles(16)).unwrap();
            assert!(factor.result.factor() == &want, "{count} devices, {threads} threads");
            let devices = &factor.report.devices;
            assert_eq!(devices.len(), count as usize);
            assert!(devices.iter().all(|device| device.products > 0), "{devices:?}");
            // Updates of 8 x 8 tiles: each is the product of two finished ones.
            assert_eq!(devices.iter().map(|device| device.products).sum::<u64>(), 84);
        }
    }
}

#[test]
fn residency_spares_most_of_the_bytes() {
    let (rows, tile_count, bits) = (16, 24, 64);
    let a = definite(rows * tile_count, bits);
    for family in FAMILIES {
        let factor = |capacity_bytes| {
            let ctx = context(family, 1, SoftOptions { capacity_bytes, ..SoftOptions::default() });
            cholesky_with(&ctx, &a, bits, &tiles(rows)).unwrap().report.devices[0].clone()
        };
        let roomy = factor(1 << 30);
        assert_eq!(roomy.cache.evictions, 0);
        // A device that has room for half of the tiles of the lower triangle, beside the memory of its lanes.
        let all = tile_count * (tile_count + 1) / 2;
        let half = factor(room_for_tiles(family, (bits, rows), all / 2));
        assert!(half.cache.evictions > 0);
        let moved = half.traffic.h2d_bytes + half.traffic.d2h_bytes;
        let spared = 1.0 - moved as f64 / half.baseline_bytes as f64;
        println!("{family}: {moved} of {} bytes, {:.1} % spared", half.baseline_bytes, 100.0 * spared);
        assert!(spared >= 0.85, "{family}: {spared}");
    }
}

#[test]
fn an_indefinite_matrix_fails_at_the_same_index() {
    let cpu = Context::builder().threads(2).build().unwrap();
    let (order, bits) = (60, 150);
    for at in [0, 7, 8, 31, 59] {
        let mut a = definite(order, bits);
        let pivot = Float::with_val(bits, a.float(at, at)) * -0.5f64;
        a.set_float(at, at, &if at % 2 == 0 { pivot } else { a.float(at, at) / 3u32 }).unwrap();
        let index = |ctx: &Context| match cholesky_with(ctx, &a, bits, &tiles(8)) {
            Err(Error::NotPositiveDefinite { index, .. }) => Some(index),
            Ok(_) => None,
            Err(other) => panic!("{other}"),
        };
        let want = index(&cpu);
        for family in FAMILIES {
            for (threads, seed) in [(1, None), (3, Some(5))] {
                let device: Arc<dyn Device> = Arc::new(SoftDevice::new(SoftOptions { seed, ..SoftOptions::default() }));
                let builder = Context::builder().threads(threads).devices(vec![device]).kernel(family);
                assert_eq!(index(&builder.self_check(true).build().unwrap()), want, "{family}, pivot {at}");
            }
        }
    }
}

#[test]
fn triangular_solves_have_the_bits_of_the_cpu() {
    let cpu = Context::builder().threads(2).build().unwrap();
    let (order, bits) = (150, 192);
    let a = definite(order, bits);
    let factor = cholesky_with(&cpu, &a, bits, &CholeskyOptions::default()).unwrap().result;
    let b = definite(order, bits).view().block(0..order, 0..40).unwrap().to_matrix().unwrap();
    let want = trsm(&cpu, factor.factor(), &b, bits).unwrap();
    let want_solution = solve(&cpu, &a, &b, bits).unwrap();
    for family in FAMILIES {
        let ctx = context(family, 2, SoftOptions { seed: Some(3), ..SoftOptions::default() });
        assert!(trsm(&ctx, factor.factor(), &b, bits).unwrap() == want, "{family}");
        assert!(solve(&ctx, &a, &b, bits).unwrap() == want_solution, "{family}");
    }
}

#[test]
fn faults_are_noticed() {
    let (order, bits) = (72, 128);
    let a = definite(order, bits);
    for family in FAMILIES {
        for threads in [1, 4] {
            for after in [0, 3, 30, 100] {
                let options = SoftOptions { fault: Some(Fault::LostAfter(after)), ..SoftOptions::default() };
                let result = cholesky_with(&context(family, threads, options), &a, bits, &tiles(8))
                    .map(|outcome| outcome.result);
                assert!(matches!(result, Err(Error::DeviceLost(_))), "{family}, {threads} threads, after {after}");
            }
        }
        let fault = Some(Fault::FlipInProduct(5));
        let device: Arc<dyn Device> = Arc::new(SoftDevice::new(SoftOptions { fault, ..SoftOptions::default() }));
        let builder = Context::builder().threads(2).devices(vec![device]).kernel(family);
        let result = cholesky_with(&builder.self_check(true).build().unwrap(), &a, bits, &tiles(8))
            .map(|outcome| outcome.result);
        assert!(matches!(result, Err(Error::SelfCheck { .. })), "{family}");
    }
}

#[test]
fn products_inside_solves_run_on_the_device_with_the_bits_of_the_cpu() {
    let (order, bits) = (72, 128);
    let (a, cpu) = (definite(order, bits), Context::builder().threads(2).build().unwrap());
    let factor = cholesky(&cpu, &a, bits).unwrap();
    let mut b = Matrix::zeros(order, 5, bits).unwrap();
    (0..order * 5).for_each(|at| b.set_f64(at % order, at / order, (at * 7 % 11) as f64 - 5.0).unwrap());
    let check = |name: &str, operation: &dyn Fn(&Context) -> Matrix| {
        let want = operation(&cpu);
        for family in FAMILIES {
            let device: Arc<dyn Device> = Arc::new(SoftDevice::new(SoftOptions::default()));
            let builder = Context::builder().threads(2).devices(vec![device.clone()]).kernel(family);
            let before = device.traffic().h2d_bytes;
            assert!(operation(&builder.build().unwrap()) == want, "{name}, {family}");
            assert!(device.traffic().h2d_bytes > before, "{name}, {family}: nothing went to the device");
        }
    };
    // Four to seven right sides go by parts, with a product for each part; an inverse and L D L^T multiply as well.
    check("trsm", &|ctx| trsm(ctx, factor.factor(), &b, bits).unwrap());
    check("solve", &|ctx| factor.solve(ctx, &b, bits).unwrap());
    check("inverse", &|ctx| factor.inverse(ctx, bits).unwrap().into_matrix());
    check("ldlt", &|ctx| ldlt(ctx, &a, bits).unwrap().lower().clone());
}
