//! What every device must do, on software devices in many orders of execution, and on a GPU where there is one.

use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::testing::effort;
use sunzi::devices::{Device, open_cuda};
use sunzi_lab::conformance::{Setup, each};

/// A software device that does what streams allow in an order of its own.
fn soft(seed: u64) -> Arc<dyn Device> {
    Arc::new(SoftDevice::new(SoftOptions { seed: Some(seed), ..SoftOptions::default() }))
}

/// Runs the checks that `wanted` names; how many there were.
fn check(devices: Vec<Arc<dyn Device>>, threads: usize, wanted: impl Fn(&str, &str) -> bool) -> usize {
    let setup = Setup { devices, threads: Some(threads), quick: true, progress: Arc::new(|_| true) };
    let mut count = 0;
    let all = each(&setup, &mut |check| {
        if wanted(&check.device, check.name) {
            count += 1;
            let what = format!("{} {} {}", check.device, check.family.unwrap_or(""), check.name);
            check.run().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        Ok(())
    });
    all.unwrap();
    count
}

/// All checks once take seconds: each compares with the CPU.
#[test]
fn a_software_device_does_all_in_any_order() {
    for seed in 0..effort() {
        let all = check(vec![soft(seed)], 1 + seed as usize % 3, |_, _| true);
        assert!(all >= 40, "{all} checks");
    }
}

#[test]
fn little_memory_is_enough_in_many_orders() {
    for seed in 0..if effort() > 1 { 10 * effort() } else { 4 } {
        assert_eq!(check(vec![soft(seed)], 2, |_, name| name == "cholesky, little memory"), 2);
    }
}

#[test]
fn several_devices_share_the_work() {
    for count in [2, 3, 5] {
        assert_eq!(check((0..count).map(soft).collect(), 2, |device, _| device == "all together"), 4);
    }
}

#[test]
fn a_gpu_does_all_that_a_software_device_does() {
    match open_cuda(0) {
        Ok(gpu) => assert!(check(vec![gpu], 2, |_, _| true) >= 40),
        Err(error) => println!("skipped: {error}"),
    }
}
