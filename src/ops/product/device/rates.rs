//! How fast devices multiply planes of either family, measured once for each device and kept in the context.

use crate::comm::{Reduction, agreed};
use crate::context::Context;
use crate::device::{Device, DeviceKind, Element, Gemm, GemmOperand};
use crate::error::{Error, Result};
use crate::kernels::EngineSpec;
use crate::kernels::device::DeviceFamily;
use crate::site::Site;

/// Rows and columns of the products that are timed on a GPU; on the host and on software devices.
const CARD_SIZE: usize = 4096;
const HOST_SIZE: usize = 128;

/// Products timed, after one that is not.
const TRIALS: usize = 3;

/// The family with the least time for the planes of `spec`, on the first device of each rank: where ranks add up
/// residues they need the same moduli, so the slowest rank decides. A family that is forced is taken; the others follow
/// a rank that forces one. Collective.
///
/// # Errors
/// [`Error::InvalidArgument`] where ranks force different families; [`Error::DeviceLost`], [`Error::DeviceMemory`], on
/// all ranks.
pub(super) fn family(site: Site<'_>, spec: &EngineSpec) -> Result<DeviceFamily> {
    let (ctx, world) = (site.ctx, site.world());
    let number = |family: DeviceFamily| DeviceFamily::ALL.iter().position(|&other| other == family);
    let forced = ctx.devices().family.and_then(number).map_or(0, |number| 1 << number);
    let mut both = [forced & 1, forced >> 1];
    world.all_reduce(Reduction::Max, &mut both)?;
    match both {
        [1, 1] => return Err(Error::InvalidArgument("ranks have different kernels of devices".to_string())),
        [1, 0] => return Ok(DeviceFamily::ALL[0]),
        [0, 1] => return Ok(DeviceFamily::ALL[1]),
        _ => {}
    }
    let mut seconds = agreed(world, DeviceFamily::ALL.map(|family| seconds(ctx, spec, family)).into_iter().collect())
        .map(|seconds: Vec<f64>| seconds.into_iter().map(f64::to_bits).collect::<Vec<_>>())?;
    world.all_reduce(Reduction::Max, &mut seconds)?; // positive doubles are ordered like their bits
    Ok(DeviceFamily::ALL[usize::from(seconds[1] < seconds[0])])
}

/// Seconds of a multiply-add of all planes of a family on the first device; infinite where it has too few moduli.
fn seconds(ctx: &Context, spec: &EngineSpec, family: DeviceFamily) -> Result<f64> {
    if spec.modulus_bits > family.maximum_modulus_bits() {
        return Ok(f64::INFINITY);
    }
    Ok(family.plane_count(spec) as f64 / rate(ctx, 0, family)?)
}

/// Multiply-adds a second that this rank gets of every device; 1 where there is only one to choose from. Ranks that
/// share a device take turns.
///
/// # Errors
/// [`Error::DeviceLost`], [`Error::DeviceMemory`].
pub(super) fn speeds(ctx: &Context, family: DeviceFamily) -> Result<Vec<f64>> {
    match ctx.devices().devices.len() {
        1 => Ok(vec![1.0]),
        count => {
            let turns = |index: usize| ctx.devices().allowance(index).share.ranks as f64;
            (0..count).map(|index| Ok(rate(ctx, index, family)? / turns(index))).collect()
        }
    }
}

fn rate(ctx: &Context, index: usize, family: DeviceFamily) -> Result<f64> {
    let set = ctx.devices();
    set.rate(index, family, || ctx.install(|| measure(&*set.devices[index], family.element())))
}

/// Multiply-adds a second of a large product of operands that are not zero.
pub(crate) fn measure(device: &dyn Device, element: Element) -> Result<f64> {
    let size = if device.description().kind == DeviceKind::Cuda { CARD_SIZE } else { HOST_SIZE };
    let (inner, outer) = (size * size * element.operand_bytes(), size * size * element.product_bytes());
    let stream = device.stream()?;
    let pinned = device.allocate_pinned(inner)?;
    fill(element, &mut pinned.lock()?);
    let (a, c) = (device.allocate(inner)?, device.allocate(outer)?);
    device.upload(stream, &pinned, 0, &a.whole())?;
    let operand = GemmOperand { region: a.whole(), ld: size, stride: 0 };
    let gemm = Gemm {
        element,
        m: size,
        n: size,
        k: size,
        a: operand.clone(),
        b: operand,
        c: GemmOperand { region: c.whole(), ld: size, stride: 0 },
        batch: 1,
        negate: false,
        accumulate: false,
        by_rows: false,
    };
    let mut best = f64::INFINITY;
    for trial in 0..=TRIALS {
        let start = device.record(stream)?;
        device.multiply(stream, &gemm)?;
        let end = device.record(stream)?;
        device.synchronize(&end)?;
        if trial > 0 {
            best = best.min(device.seconds_between(&start, &end)?);
        }
    }
    device.retire(stream);
    Ok(gemm.work() as f64 / best.max(1e-9))
}

/// Small numbers without a pattern: a GPU multiplies zeros faster than anything else.
fn fill(element: Element, bytes: &mut [u8]) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    match element {
        Element::I8 => bytes.iter_mut().for_each(|byte| *byte = next()),
        Element::F64 => {
            for chunk in bytes.chunks_exact_mut(8) {
                chunk.copy_from_slice(&(f64::from(next()) - 127.5).to_le_bytes());
            }
        }
    }
}
