//! The choice of the path of a product, and its plan on that path: exact sums on limbs, residue planes, devices.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::digit_lanes::{DigitLanes, LANES};
use crate::kernels::problem_lanes::ProblemLanes;
use crate::kernels::row_lanes::RowLanes;
use crate::math::float::limbs_for;
use crate::ops::product::device::{CutCounts, DevicePlan, DeviceRequest};
use crate::ops::product::direct;
use crate::ops::product::plan::{Plan, PlanRequest, plan_planes};
use crate::ops::product::problem::Accuracy;
use crate::ops::product::size::ProductSize;
use crate::plan::PlanBytes;
use crate::site::Site;

/// Below this estimate a product on planes stays on the calling thread: handing work to other threads costs more than
/// it saves.
const ONE_WORKER_NANOSECONDS: f64 = 200_000.0;

/// Below this estimate a product inside another operation stays on the CPU: memory and copies of a device cost as much.
const DEVICE_NANOSECONDS: f64 = 20e6;

/// The path a product takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProductMethod {
    /// Sums of products on limbs.
    Direct,
    /// Residue planes on this number of workers.
    Planes(usize),
}

/// Chooses the direct path where the model of its time is below that of the planes.
///
/// `operand_bits` need only be about right. A forced kernel and the self-check, which needs a redundant prime, keep
/// the planes, unless there is nothing to multiply; a forced kernel also keeps all threads.
pub(crate) fn choose_path(ctx: &Context, size: &ProductSize, operand_bits: u32) -> ProductMethod {
    if size.is_empty() {
        return ProductMethod::Direct;
    }
    if ctx.forced_kernel().is_some() || ctx.devices().family.is_some() {
        return ProductMethod::Planes(ctx.threads());
    }
    let planes = kernel_nanoseconds(ctx, size, operand_bits);
    if may_go_direct(ctx) && direct_estimate(ctx, size, operand_bits, planes) < planes {
        return ProductMethod::Direct;
    }
    ProductMethod::Planes(if planes < ONE_WORKER_NANOSECONDS { 1 } else { ctx.threads() })
}

/// Whether several products of that size are faster side by side, a lane for each, than one after the other.
pub(crate) fn goes_side_by_side(ctx: &Context, size: &ProductSize, operand_bits: u32) -> bool {
    if size.is_empty() || ctx.forced_kernel().is_some() || ctx.devices().family.is_some() || !may_go_direct(ctx) {
        return false;
    }
    let planes = kernel_nanoseconds(ctx, size, operand_bits);
    let single = direct_estimate(ctx, size, operand_bits, planes).min(planes);
    match (RowLanes::new(operand_bits), ProblemLanes::new(operand_bits)) {
        (Some(lanes), _) => problem_lane_nanoseconds(size, &lanes) < single,
        (None, Some(lanes)) => avx2_lane_nanoseconds(size, lanes.digits()) < single,
        (None, None) => false,
    }
}

/// Estimate for the direct path in the form that this machine takes, comparable with the estimate `planes`.
fn direct_estimate(ctx: &Context, size: &ProductSize, operand_bits: u32, planes: f64) -> f64 {
    // Where planes are of 52-bit primes they were measured against eight rows side by side and against limbs, and only
    // where they are fast enough for one thread: beyond that they go through large operands in chunks.
    match ctx.kernel().family() == "ifma52" {
        true if planes >= ONE_WORKER_NANOSECONDS => f64::INFINITY,
        true => RowLanes::new(operand_bits)
            .map_or_else(|| direct_nanoseconds(size, operand_bits), |lanes| row_lane_nanoseconds(size, &lanes)),
        false => DigitLanes::new(operand_bits)
            .map_or_else(|| direct_nanoseconds(size, operand_bits), |lanes| lane_nanoseconds(size, &lanes)),
    }
}

/// Estimate for the planes of the context's kernel on one worker.
fn kernel_nanoseconds(ctx: &Context, size: &ProductSize, operand_bits: u32) -> f64 {
    // Three or four planes of the narrower primes do the work of one, and small matrix products have their own
    // overhead: measured with 16-bit residues on a Zen 3, from 4 columns at 256 bits to 64 at 1500.
    let slowdown = if ctx.kernel().family() == "ifma52" { 1.0 } else { 4.3 };
    slowdown * plane_nanoseconds(size, operand_bits)
}

/// Whether a product inside another operation is worth the copies to a device; a forced family always is.
pub(crate) fn is_worth_a_device(ctx: &Context, size: &ProductSize, operand_bits: u32) -> bool {
    ctx.devices().family.is_some() || plane_nanoseconds(size, operand_bits) > DEVICE_NANOSECONDS
}

/// Estimate for the direct path, fitted to measurements from 64 to 4000 bits.
pub(crate) fn direct_nanoseconds(size: &ProductSize, operand_bits: u32) -> f64 {
    let limbs = limbs_for(operand_bits + 1) as f64;
    // Schoolbook products, then Karatsuba's.
    let product = 3.0 + if limbs <= 20.0 { 0.9 * limbs * limbs } else { 360.0 * (limbs / 20.0).powf(1.58) };
    let convert = size.contracted as f64 * size.operand_columns() as f64 * (15.0 + 2.0 * limbs);
    convert + size.entries() * (30.0 + 5.0 * limbs + size.contracted as f64 * product)
}

/// Estimate for the direct path in digits.
fn lane_nanoseconds(size: &ProductSize, lanes: &DigitLanes) -> f64 {
    let panels = match size.triangle {
        true => (size.cols as f64 * (size.cols as f64 + LANES as f64) / (2 * LANES) as f64).floor(),
        false => size.rows.div_ceil(LANES) as f64 * size.cols as f64,
    };
    let convert = size.contracted as f64 * size.operand_columns() as f64 * (20.0 + lanes.set_nanoseconds());
    let round = size.entries() * (40.0 + 2.0 * lanes.digits() as f64);
    convert + panels * lanes.nanoseconds(size.contracted) + round
}

/// Estimate for the direct path in digits, eight rows side by side, on the scale of that for planes: measured on a
/// Zen 4 from 4 to 64 columns at 256 to 1024 bits, where planes took 1.6 times their estimate.
fn row_lane_nanoseconds(size: &ProductSize, lanes: &RowLanes) -> f64 {
    let digits = lanes.digits() as f64;
    let convert = size.contracted.div_ceil(8) as f64 * size.operand_columns() as f64 * (28.0 + 2.0 * digits);
    // Sums of one group of digits stay in registers.
    let product = if lanes.digits() <= 7 { 0.5 } else { 0.62 };
    // The last rows are half an eight where they are few.
    let sum = size.contracted.div_ceil(4) as f64 / 2.0 * (product * digits * digits + 2.0) + 1.3 * digits;
    convert + size.entries() * (sum + 7.0)
}

/// Estimate for one of eight products side by side, on the same scale: measured on a Zen 4, two thirds of the time.
fn problem_lane_nanoseconds(size: &ProductSize, lanes: &RowLanes) -> f64 {
    let (digits, rows) = (lanes.digits() as f64, size.contracted as f64);
    let sum = rows * 0.024 * digits * (digits + 4.0);
    10.0 * rows * size.operand_columns() as f64 + size.entries() * (sum + 15.0)
}

/// The same with AVX2: sums of 256 to 1100 bits as measured on a Zen 4.
fn avx2_lane_nanoseconds(size: &ProductSize, digits: usize) -> f64 {
    let (digits, rows) = (digits as f64, size.contracted as f64);
    let sum = rows * 0.077 * digits * (digits + 4.0);
    20.0 * rows * size.operand_columns() as f64 + size.entries() * (sum + 30.0)
}

/// Estimate for the planes of a kernel with 52-bit primes on one worker, columns padded to blocks of 8.
pub(crate) fn plane_nanoseconds(size: &ProductSize, operand_bits: u32) -> f64 {
    let primes = f64::from(operand_bits) / 26.0 + 1.0;
    let [rows, cols] = [size.rows, size.cols].map(|side| 8.0 * side.div_ceil(8) as f64);
    let entries = if size.triangle { cols * (cols + 8.0) / 2.0 } else { rows * cols };
    let converted = size.contracted as f64 * if size.triangle { cols } else { rows + cols };
    let products = size.contracted as f64 * 0.06;
    let fixed = 1500.0 + 200.0 * primes;
    fixed + primes * (converted * (0.4 + 0.018 * primes) + entries * (1.0 + 0.04 * primes + products))
}

/// The plan of any product.
///
/// # Errors
/// [`crate::Error::MemoryLimit`] with the smallest limit that suffices.
pub(crate) fn plan_request(ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    plan_on(choose_path(ctx, &request.size, request.bits.operand), ctx, request)
}

/// The plan of any product on this path.
///
/// # Errors
/// As [`plan_request`].
pub(crate) fn plan_on(path: ProductMethod, ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    match (plan_alone(path, ctx, request), other_path(path, ctx, request)) {
        (Err(refusal @ Error::MemoryLimit { .. }), Some(other)) => {
            plan_alone(other, ctx, request).map_err(|other| smaller(refusal, other))
        }
        (planned, _) => planned,
    }
}

/// The plan on this path, without a look at the other one.
///
/// # Errors
/// As [`plan_request`].
pub(crate) fn plan_alone(path: ProductMethod, ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    match path {
        ProductMethod::Direct => direct::plan(ctx, request).map(direct::as_one_job),
        ProductMethod::Planes(_) if !request.on_cpu && !ctx.devices().is_empty() => plan_devices(ctx, request),
        ProductMethod::Planes(workers) => plan_planes(ctx, request, workers, 0).map(|planned| planned.plan),
    }
}

/// The path that a product takes where a limit refuses this one: only small products have another.
pub(crate) fn other_path(path: ProductMethod, ctx: &Context, request: &PlanRequest) -> Option<ProductMethod> {
    let PlanRequest { size, bits, .. } = request;
    match path {
        ProductMethod::Direct => {
            let modulus_bits = bits.spec(ctx.self_check()).modulus_bits;
            let has_planes = !size.is_empty() && modulus_bits <= ctx.maximum_modulus_bits();
            has_planes.then_some(ProductMethod::Planes(1))
        }
        ProductMethod::Planes(_) => {
            let is_small = kernel_nanoseconds(ctx, size, bits.operand) < ONE_WORKER_NANOSECONDS;
            (is_small && may_go_direct(ctx)).then_some(ProductMethod::Direct)
        }
    }
}

/// Whether products in this context may take the direct path: no kernel and no device is prescribed, and no check that
/// only planes have.
fn may_go_direct(ctx: &Context) -> bool {
    ctx.forced_kernel().is_none() && ctx.devices().family.is_none() && !ctx.self_check() && !ctx.freivalds()
}

/// The refusal that names fewer bytes.
fn smaller(one: Error, other: Error) -> Error {
    let least = |error: &Error| match error {
        Error::MemoryLimit { minimum_bytes, .. } => *minimum_bytes,
        _ => u64::MAX,
    };
    if least(&other) < least(&one) { other } else { one }
}

/// Plans a product on the context's devices.
fn plan_devices(ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    let size = request.size;
    let input_limbs = limbs_for(request.bits.result);
    let device_request = DeviceRequest {
        size,
        upper: false,
        plain: true,
        input_limbs,
        bits: request.bits,
        cut: None,
        exchanged: 0,
        most_entries: usize::MAX,
    };
    let planned = DevicePlan::new(Site::one_process(ctx), &device_request, None)?;
    let CutCounts { batches, bands, chunks } = planned.cuts();
    let bytes = PlanBytes {
        result: request.result_bytes,
        scratch: planned.pinned_bytes(),
        lists: planned.list_bytes(ctx.freivalds().then(|| ctx.threads())),
        ..PlanBytes::default()
    };
    Ok(Plan {
        operation: request.operation,
        contracted: size.contracted,
        rows: size.rows,
        cols: size.cols,
        precision_bits: request.bits.result,
        working_bits: request.bits.working,
        kernel: planned.kernel(),
        threads: ctx.threads(),
        primes: planned.moduli(),
        batches,
        bands,
        chunks,
        bytes,
        planned_bytes: bytes.total(),
        load_max_over_mean: 1.0,
        devices: planned.describe(),
        accuracy: Accuracy::Norm,
        ..Plan::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_long_operands_go_through_planes_in_chunks() {
        let ctx = Context::new().unwrap();
        if ctx.kernel().family() != "ifma52" {
            return println!("skipped: no IFMA");
        }
        let path = |contracted, rows, cols, bits| {
            choose_path(&ctx, &ProductSize { contracted, rows, cols, triangle: false }, bits)
        };
        for (contracted, rows, cols, bits) in [(1000, 1000, 1, 256), (2000, 400, 1, 256), (20_000, 4, 4, 512)] {
            assert!(
                matches!(path(contracted, rows, cols, bits), ProductMethod::Planes(_)),
                "{rows} x {contracted} x {cols}"
            );
        }
        assert_eq!(path(20, 10, 10, 256), ProductMethod::Direct);
        assert_eq!(path(8, 8, 8, 256), ProductMethod::Direct);
    }
}
