//! What products on devices of one process take on the host, counted by the allocator: no more than their plan.

use crate::{alone, matrix, plan_gemm, plan_syrk, rise};
use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::devices::Device;
use sunzi::{Accuracy, Context, GemmOptions, Op, SyrkOptions, gemm_with, syrk_with};

/// What software devices take of the host for their queues, and no GPU does.
const QUEUE_BYTES: u64 = 200 << 10;

/// Residues of one device come to the other without room beside what is planned, tested products included.
#[test]
fn devices_that_share_moduli_keep_their_plan() {
    let _alone = alone();
    let (rows, cols, bits) = (20, 200, 400);
    let (p, b) = (matrix(rows, cols, bits, 4), matrix(rows, 170, bits, 5));
    let transposed = GemmOptions::new().accuracy(Accuracy::Norm).op_a(Op::Transpose);
    for (count, family, checked) in
        [(1, "cuda-f64", false), (2, "cuda-f64", false), (2, "cuda-i8", false), (2, "cuda-f64", true)]
    {
        for general in [false, true] {
            let mut limit = None;
            for _ in 0..2 {
                let device = |_| Arc::new(SoftDevice::new(SoftOptions::default())) as Arc<dyn Device>;
                let devices = (0..count).map(device).collect::<Vec<_>>();
                let builder = Context::builder().threads(1).devices(devices.clone()).kernel(family).freivalds(checked);
                let ctx = limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap();
                let planned = match general {
                    false => plan_syrk(&ctx, rows, cols, bits).unwrap().planned_bytes,
                    true => plan_gemm(&ctx, cols, b.cols(), rows, bits).unwrap().planned_bytes,
                };
                let (peak, report) = rise(|| match general {
                    false => syrk_with(&ctx, &p, bits, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap().report,
                    true => gemm_with(&ctx, &p, &b, bits, &transposed).unwrap().report,
                });
                // The memory of software devices is on the heap that is counted.
                let host = peak - devices.iter().map(|device| device.peak_bytes()).sum::<u64>();
                let what = format!("{count} devices, {family}, tested {checked}, general {general}, limit {limit:?}");
                println!("{what}: peak {host}, planned {planned}");
                assert_eq!(report.planned_bytes, planned, "{what}");
                assert!(host <= planned + QUEUE_BYTES, "{what}: peak {host} above planned {planned}");
                assert!(host * 100 >= planned * 98, "{what}: peak {host} far below planned {planned}");
                limit = Some(planned);
            }
        }
    }
}
