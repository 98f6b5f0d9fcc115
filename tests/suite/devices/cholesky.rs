//! Factorisations on software devices beyond what every device must do (`lab/tests/conformance.rs`): few bytes over the
//! bus, faults.

use crate::common::residency::room_for_tiles;
use rug::Float;
use std::sync::Arc;
use sunzi::advanced::device::soft::{Fault, SoftDevice, SoftOptions};
use sunzi::devices::Device;
use sunzi::{CholeskyOptions, Context, Error, Matrix, cholesky_with};

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
