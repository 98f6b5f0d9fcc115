//! What every device must do, on software devices in many orders of execution, and on a GPU where there is one.

use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::testing::effort;
use sunzi::devices::{Device, open_cuda};
use sunzi_lab::conformance::{Check, Setup, each};

/// A software device that does what streams allow in an order of its own.
fn soft(seed: u64) -> Arc<dyn Device> {
    Arc::new(SoftDevice::new(SoftOptions { seed: Some(seed), ..SoftOptions::default() }))
}

/// Runs the checks that `wanted` names; how many there were.
fn check(devices: Vec<Arc<dyn Device>>, threads: usize, wanted: impl Fn(&Check<'_>) -> bool) -> usize {
    let setup = Setup { devices, threads: Some(threads), quick: true, progress: Arc::new(|_| true) };
    let mut count = 0;
    let all = each(&setup, &mut |check| {
        if wanted(&check) {
            count += 1;
            let what = format!("{} {} {}", check.device, check.family.unwrap_or(""), check.name);
            check.run().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        Ok(())
    });
    all.unwrap();
    count
}

/// The checks that take most of the time, each of them about a second: the CPU's side is most of it.
const SLOW: [&str; 4] = ["precisions and exponents", "cholesky", "cholesky, sums of many tiles", "trsm and solve"];

/// All checks once take ten seconds: each compares with the CPU. With little effort the slow ones run with one family
/// here, and with both where the tests of the program run `sunzi gpu-check`.
#[test]
fn a_software_device_does_all_in_any_order() {
    for seed in 0..effort() {
        let is_left_out = |check: &Check<'_>| check.family == Some("cuda-i8") && SLOW.contains(&check.name);
        let all = check(vec![soft(seed)], 1 + seed as usize % 3, |check| effort() > 1 || !is_left_out(check));
        assert!(all >= 36, "{all} checks");
    }
}

#[test]
fn little_memory_is_enough_in_many_orders() {
    for seed in 0..if effort() > 1 { 10 * effort() } else { 4 } {
        assert_eq!(check(vec![soft(seed)], 2, |check| check.name == "cholesky, little memory"), 2);
    }
}

#[test]
fn several_devices_share_the_work() {
    for count in [2, 3, 5] {
        assert_eq!(check((0..count).map(soft).collect(), 2, |check| check.device == "all together"), 4);
    }
}

#[test]
fn a_gpu_does_all_that_a_software_device_does() {
    match open_cuda(0) {
        Ok(gpu) => assert!(check(vec![gpu], 2, |_| true) >= 40),
        Err(error) => println!("skipped: {error}"),
    }
}
