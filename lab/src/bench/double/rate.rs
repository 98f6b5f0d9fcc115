//! The rate of one large product of doubles on a device.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Instant;
use sunzi::Result;
use sunzi::advanced::device::{DeviceKind, Element, Gemm, GemmOperand, Region};
use sunzi::devices::Device;

/// Most rows of the operands on a GPU, and in plain memory.
const CARD_ROWS: usize = 8192;
const HOST_ROWS: usize = 1024;

/// Products in a row, so that the time to start them does not count.
const REPETITIONS: usize = 3;

/// Billions of floating-point operations per second, two for a multiply-add; `None` if the device memory is too small
/// for operands worth timing. A device is timed by its own clock; a software device, whose clock is simulated, is timed
/// by the host's.
pub fn products(device: &Arc<dyn Device>) -> Result<Option<f64>> {
    let kind = device.description().kind;
    let free_bytes = device.capacity_bytes().saturating_sub(device.used_bytes());
    let fitting = ((free_bytes / 2 / 24) as f64).sqrt() as usize / 64 * 64;
    let rows = fitting.min(if kind == DeviceKind::Cuda { CARD_ROWS } else { HOST_ROWS });
    if rows == 0 {
        return Ok(None);
    }
    let bytes = rows * rows * size_of::<f64>();
    let memory = device.allocate(3 * bytes)?;
    let [a, b, c] = [0, 1, 2].map(|at| memory.region(at * bytes..(at + 1) * bytes));
    let (stream, pinned) = (device.stream()?, device.allocate_pinned(bytes)?);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    // Zeros would be multiplied faster: they take less power.
    for word in bytemuck::cast_slice_mut::<u8, f64>(&mut pinned.lock()?) {
        *word = random.random_range(-1.0..1.0);
    }
    for region in [&a, &b, &c] {
        device.upload(stream, &pinned, 0, region)?;
    }
    let operand = |region: &Region| GemmOperand { region: region.clone(), ld: rows, stride: 0 };
    let gemm = Gemm {
        element: Element::F64,
        m: rows,
        n: rows,
        k: rows,
        a: operand(&a),
        b: operand(&b),
        c: operand(&c),
        batch: 1,
        negate: true,
        accumulate: true,
        by_rows: true,
    };
    device.multiply(stream, &gemm)?;
    let warm = device.record(stream)?;
    device.synchronize(&warm)?;
    let start = Instant::now();
    let first = device.record(stream)?;
    for _ in 0..REPETITIONS {
        device.multiply(stream, &gemm)?;
    }
    let last = device.record(stream)?;
    device.synchronize(&last)?;
    let host_seconds = start.elapsed().as_secs_f64();
    let seconds = if kind == DeviceKind::Soft { host_seconds } else { device.seconds_between(&first, &last)? };
    Ok(Some(REPETITIONS as f64 * 2.0 * (rows as f64).powi(3) / seconds.max(1e-9) * 1e-9))
}
