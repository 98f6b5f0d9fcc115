//! Products on software devices beyond what every device must do (`lab/tests/conformance.rs`): every cut, every order
//! of execution, slow devices, faults.

use crate::common::effort;
use rug::Float;
use std::sync::Arc;
use sunzi::advanced::Hooks;
use sunzi::advanced::device::soft::{Clock, Fault, Rates, SoftDevice, SoftOptions};
use sunzi::advanced::plan::DeviceCut;
use sunzi::devices::Device;
use sunzi::{Context, Error, GemmOptions, Matrix, Op, SyrkOptions, gemm_with, syrk, syrk_with};

const FAMILIES: [&str; 2] = ["cuda-f64", "cuda-i8"];

fn soft(options: SoftOptions) -> Arc<dyn Device> {
    Arc::new(SoftDevice::new(options))
}

fn seeded(seed: u64) -> Arc<dyn Device> {
    soft(SoftOptions { seed: Some(seed), capacity_bytes: 256 << 20, ..SoftOptions::default() })
}

fn context(family: &str, devices: Vec<Arc<dyn Device>>) -> Context {
    Context::builder().threads(2).devices(devices).kernel(family).build().unwrap()
}

/// Entries of all sizes: exponents over `spread` bits, zeros, powers of two, both signs.
fn matrix(rows: usize, cols: usize, bits: u32, spread: i32, seed: u64) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols, bits).unwrap();
    let mut rng = rug::rand::RandState::new();
    rng.seed(&rug::Integer::from(seed + 1));
    for col in 0..cols {
        for row in 0..rows {
            let mut value = Float::with_val(bits, Float::random_cont(&mut rng)) - 0.5f64;
            match rng.below(9) {
                0 => value = Float::new(bits),
                1 => value = Float::with_val(bits, 1),
                _ => {}
            }
            let exponent = if spread > 0 { rng.below(spread as u32) as i32 - spread / 2 } else { 0 };
            matrix.set_float(row, col, &(value << exponent)).unwrap();
        }
    }
    matrix
}

#[test]
fn every_cut_and_order_gives_the_same_bits() {
    let cpu = Context::builder().threads(1).build().unwrap();
    let (rows, cols, bits) = (150, 60, 100);
    let p = matrix(rows, cols, bits, 100, 7);
    let b = matrix(rows, 37, bits, 100, 8);
    let want = syrk(&cpu, &p, bits).unwrap();
    let gemm_options = GemmOptions::new().op_a(Op::Transpose);
    let want_gemm = gemm_with(&cpu, &p, &b, bits, &gemm_options).unwrap().result;
    let mut seed = 0;
    for family in FAMILIES {
        for (band_cols, strip_cols) in [(64, 64), (64, 16), (16, 16), (32, 32)] {
            for chunk_rows in [150, 64, 37] {
                for batch_moduli in [1, 5, 100] {
                    for piece_entries in [10_000, 100, 7] {
                        seed += 1;
                        if seed % 7 != 0 && effort() == 1 {
                            continue;
                        }
                        let cut = DeviceCut { band_cols, strip_cols, chunk_rows, batch_moduli, piece_entries };
                        let ctx = context(family, vec![seeded(seed)]);
                        let options = SyrkOptions::default();
                        let got =
                            syrk_with(&ctx, &p, bits, &options.clone().hooks(Hooks::device_cut(cut))).unwrap().result;
                        assert!(got == want, "{family}, {cut:?}, seed {seed}");
                        let got = gemm_with(&ctx, &p, &b, bits, &gemm_options.clone().hooks(Hooks::device_cut(cut)))
                            .unwrap()
                            .result;
                        assert!(got == want_gemm, "gemm, {family}, {cut:?}, seed {seed}");
                    }
                }
            }
        }
    }
}

#[test]
fn many_orders_of_execution_give_the_same_bits() {
    let cpu = Context::builder().threads(1).build().unwrap();
    let p = matrix(200, 40, 128, 30, 3);
    let want = syrk(&cpu, &p, 128).unwrap();
    let cut = DeviceCut { band_cols: 48, strip_cols: 16, chunk_rows: 64, batch_moduli: 3, piece_entries: 64 };
    for seed in 0..16 * effort() {
        for family in FAMILIES {
            let ctx = context(family, vec![seeded(seed)]);
            let got = syrk_with(&ctx, &p, 128, &SyrkOptions::default().hooks(Hooks::device_cut(cut))).unwrap().result;
            assert!(got == want, "{family}, seed {seed}");
        }
    }
}

#[test]
fn several_devices_and_the_host_share_the_moduli_of_any_cut() {
    let cpu = Context::builder().threads(2).build().unwrap();
    let p = matrix(90, 45, 256, 50, 5);
    let want = syrk(&cpu, &p, 256).unwrap();
    let cut = DeviceCut { band_cols: 32, strip_cols: 16, chunk_rows: 40, batch_moduli: 4, piece_entries: 50 };
    for family in FAMILIES {
        for (count, host) in [(2, false), (2, true), (5, true)] {
            let mut devices = (0..count).map(seeded).collect::<Vec<_>>();
            if host {
                devices.push(soft(SoftOptions { clock: Clock::Wall, ..SoftOptions::default() }));
            }
            let options = SyrkOptions::default().hooks(Hooks::device_cut(cut));
            let got = syrk_with(&context(family, devices), &p, 256, &options).unwrap().result;
            assert!(got == want, "{family}, {count} devices, host {host}");
        }
    }
}

#[test]
fn a_device_that_is_too_slow_has_no_share() {
    let cpu = Context::builder().threads(1).build().unwrap();
    let p = matrix(40, 30, 60, 10, 5);
    let want = syrk(&cpu, &p, 60).unwrap();
    for family in FAMILIES {
        let slow = Rates { f64_per_second: 1e8, i8_per_second: 1e8, ..Rates::default() };
        let slow = soft(SoftOptions { clock: Clock::Virtual(slow), ..SoftOptions::default() });
        let ctx = context(family, vec![slow, seeded(3)]);
        let cut = DeviceCut { band_cols: 32, strip_cols: 16, chunk_rows: 40, batch_moduli: 4, piece_entries: 7 };
        let outcome = syrk_with(&ctx, &p, 60, &SyrkOptions::default().hooks(Hooks::device_cut(cut))).unwrap();
        assert!(outcome.result == want, "{family}");
        assert_eq!(outcome.report.devices.len(), 1, "{family}");
    }
}

/// What a device has counts as a limit does.
#[test]
fn a_small_device_names_what_would_do() {
    let (rows, cols) = if effort() == 1 { (300, 70) } else { (700, 100) };
    let p = matrix(rows, cols, 300, 20, 6);
    let want = syrk(&Context::builder().threads(1).build().unwrap(), &p, 300).unwrap();
    for family in FAMILIES {
        let with = |capacity_bytes: u64| {
            let ctx = context(family, vec![soft(SoftOptions { capacity_bytes, ..SoftOptions::default() })]);
            syrk_with(&ctx, &p, 300, &SyrkOptions::default())
        };
        let Err(Error::DeviceLimit { minimum_bytes, .. }) = with(1000) else { panic!("1000 bytes do") };
        assert!(matches!(with(minimum_bytes - 1), Err(Error::DeviceLimit { .. })));
        let outcome = with(minimum_bytes).unwrap();
        assert!(outcome.result == want && outcome.report.devices[0].device_bytes <= minimum_bytes, "{family}");
    }
}

#[test]
fn a_device_that_is_lost_or_lies_is_noticed() {
    let p = matrix(60, 40, 200, 20, 6);
    for family in FAMILIES {
        for after in [0, 1, 5, 20, 40] {
            let fault = Some(Fault::LostAfter(after));
            let ctx = context(family, vec![soft(SoftOptions { fault, ..SoftOptions::default() })]);
            let result = syrk_with(&ctx, &p, 200, &SyrkOptions::default());
            assert!(matches!(result, Err(Error::DeviceLost(_))), "{family}, after {after}: {:?}", result.is_ok());
        }
        let fault = Some(Fault::FlipInProduct(0));
        let faulty = || vec![soft(SoftOptions { fault, ..SoftOptions::default() })];
        let checked = |self_check: bool, freivalds: bool| {
            let builder = Context::builder().threads(2).devices(faulty()).kernel(family);
            let ctx = builder.self_check(self_check).freivalds(freivalds).build().unwrap();
            syrk_with(&ctx, &p, 200, &SyrkOptions::default())
        };
        assert!(matches!(checked(true, false), Err(Error::SelfCheck { .. })), "{family}");
        assert!(matches!(checked(false, true), Err(Error::Verification(_))), "{family}");
        assert!(checked(false, false).is_ok(), "nobody looks");
    }
}

#[test]
fn empty_products_and_unusable_choices() {
    let device = || vec![seeded(1)];
    for family in FAMILIES {
        let ctx = context(family, device());
        for (rows, cols) in [(0, 3), (3, 0), (0, 0)] {
            let p = Matrix::zeros(rows, cols, 100).unwrap();
            assert_eq!(syrk(&ctx, &p, 100).unwrap(), Matrix::zeros(cols, cols, 100).unwrap());
        }
    }
    let refused = Context::builder().devices(device()).kernel("reference").build();
    assert!(matches!(refused, Err(Error::KernelUnavailable { .. })));
    let refused = Context::builder().kernel("cuda-i9").build();
    assert!(matches!(refused, Err(Error::UnknownKernel { .. })));
}
