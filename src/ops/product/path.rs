//! The choice of the path and the kernel of a product: exact sums on limbs, residue planes, devices.
//!
//! Decides by models of the time that each takes, fitted to measurements. Independent of: plans, memory.

use crate::comm::Say;
use crate::context::Context;
use crate::kernels::digit_lanes::{DigitLanes, LANES};
use crate::kernels::problem_lanes::ProblemLanes;
use crate::kernels::row_lanes::RowLanes;
use crate::kernels::{self, ConversionCosts, PlaneKernel};
use crate::math::float::limbs_for;
use crate::ops::product::problem::{Bits, ProductSize};
use std::collections::BTreeSet;

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
    let panels = match size.is_half() {
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
    let entries = if size.is_half() { cols * (cols + 8.0) / 2.0 } else { rows * cols };
    let converted = size.contracted as f64 * if size.triangle { cols } else { rows + cols };
    let products = size.contracted as f64 * 0.06;
    let fixed = 1500.0 + 200.0 * primes;
    fixed + primes * (converted * (0.4 + 0.018 * primes) + entries * (1.0 + 0.04 * primes + products))
}

/// The path that a product takes where a limit refuses this one: only small products have another.
pub(crate) fn other_path(path: ProductMethod, ctx: &Context, size: &ProductSize, bits: &Bits) -> Option<ProductMethod> {
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

/// The kernel of a product on planes: the context's for moduli of this size ([`Context::kernel_for`]), or another one
/// that reaches as far and is faster for this size and precision.
///
/// The choice depends on the precision of the result and not on the bits that the operands turn out to need, so that
/// plan and call make the same one.
pub(crate) fn choose_kernel(ctx: &Context, size: &ProductSize, bits: &Bits) -> &'static dyn PlaneKernel {
    let modulus_bits = bits.spec(ctx.self_check()).modulus_bits;
    let kernel = ctx.kernel_for(modulus_bits);
    if ctx.forced_kernel().is_some() {
        return kernel;
    }
    kernels::for_large_products(ctx.multipliers())
        .filter(|(other, _)| modulus_bits <= other.maximum_modulus_bits())
        .map(|(other, costs)| (other, gain(&costs, size, bits.result)))
        .filter(|&(_, gain)| gain > 0.0)
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
        .map_or(kernel, |(other, _)| other)
}

/// The data of the machine that [`choose_kernel`] uses: contexts with the same kernel and the same data choose alike.
pub(crate) fn choice_of_kernels(ctx: &Context) -> impl Say + use<> {
    ctx.forced_kernel().is_none().then(|| {
        let large = kernels::for_large_products(ctx.multipliers()).map(|(other, costs)| (other.name(), costs));
        let beyond = kernels::beyond_preferred().map(PlaneKernel::name);
        (large.collect::<Vec<_>>(), beyond.collect::<Vec<_>>())
    })
}

/// The longest moduli of a product over ranks: where the ranks would choose different kernels, they stay on a common
/// one.
pub(crate) fn most_modulus_bits(ctx: &Context, alike: bool) -> u32 {
    if alike { ctx.maximum_modulus_bits() } else { ctx.kernel().maximum_modulus_bits() }
}

/// The bit counts below `modulus_bits` at which products may change kernels: the largest moduli of the kernels that end
/// there, the shortest first. A plan for operands that are only known to be no longer looks at these too, since a
/// kernel of fewer bits may take more bytes.
pub(crate) fn shorter_ends(ctx: &Context, modulus_bits: u32) -> BTreeSet<u32> {
    if ctx.forced_kernel().is_some() {
        return BTreeSet::new();
    }
    let chosen = kernels::for_large_products(ctx.multipliers()).map(|(kernel, _)| kernel);
    let all = std::iter::once(ctx.kernel()).chain(kernels::beyond_preferred()).chain(chosen);
    all.map(PlaneKernel::maximum_modulus_bits).filter(|&end| end < modulus_bits).collect()
}

/// The time that faster planes save beyond what their conversions take.
fn gain(costs: &ConversionCosts, size: &ProductSize, precision_bits: u32) -> f64 {
    let multiplications = size.contracted as f64 * size.entries();
    costs.gain(multiplications, size.contracted as f64 * size.operand_columns() as f64, size.entries(), precision_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Multipliers;
    use crate::kernels::i8::ON_TILE_REGISTERS;
    use crate::kernels::i16::{ONE_A_CYCLE, TWO_A_CYCLE};

    #[test]
    fn products_of_long_operands_go_through_planes_in_chunks() {
        let ctx = Context::new().unwrap();
        if ctx.kernel().family() != "ifma52" {
            return println!("skipped: no IFMA");
        }
        let path = |contracted, rows, cols, bits| {
            choose_path(&ctx, &ProductSize { contracted, rows, cols, triangle: false, half: None }, bits)
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

    fn gains(costs: &ConversionCosts, size: &ProductSize, precision_bits: u32) -> bool {
        gain(costs, size, precision_bits) > 0.0
    }

    fn size(contracted: usize, rows: usize, cols: usize, triangle: bool) -> ProductSize {
        ProductSize { contracted, rows, cols, triangle, half: None }
    }

    /// Triangles on tile registers: contracted, columns, bits, and whether they were faster.
    const ON_TILES: [(usize, usize, u32, bool); 9] = [
        (200, 200, 1024, false),
        (200, 1000, 512, false),
        (400, 400, 256, true),
        (400, 400, 1024, true),
        (1000, 300, 1024, true),
        (2000, 200, 512, true),
        (2000, 2000, 768, true),
        (4000, 1000, 1024, true),
        (5000, 500, 512, true),
    ];

    #[test]
    fn sizes_that_were_measured_go_where_they_were_faster() {
        // Triangles whose times differ by 3 % or more.
        let one = [
            (100, 50, 64, false),
            (100, 50, 2048, false),
            (30, 400, 64, false),
            (30, 400, 512, false),
            (30, 1000, 512, false),
            (60, 1000, 512, true),
            (1000, 40, 512, false),
            (1000, 60, 512, false),
            (100, 200, 64, true),
            (100, 200, 1024, true),
            (200, 100, 64, true),
            (200, 100, 768, true),
            (300, 100, 512, true),
            (400, 200, 64, true),
            (400, 200, 2048, true),
            (500, 500, 768, true),
            (500, 500, 2048, true),
            (1000, 300, 256, true),
            (1000, 300, 2048, true),
            (2000, 2000, 768, true),
            (3000, 300, 2048, true),
            (4000, 1000, 1024, true),
            (5000, 500, 512, true),
        ];
        assert!(gains(&ONE_A_CYCLE, &size(800, 400, 400, false), 512));
        assert!(gains(&ONE_A_CYCLE, &size(300, 300, 300, false), 300));
        let two = [
            (100, 50, 64, false),
            (200, 100, 64, false),
            (200, 100, 2048, false),
            (400, 200, 768, false),
            (500, 500, 64, true),
            (500, 500, 256, true),
            (500, 500, 768, true),
            (500, 500, 2048, true),
            (1000, 300, 64, true),
            (1000, 300, 2048, true),
            (2000, 500, 1536, true),
            (3000, 300, 2048, true),
            (4000, 1000, 256, true),
            (5000, 500, 512, true),
        ];
        for (costs, measured) in [(ONE_A_CYCLE, &one[..]), (TWO_A_CYCLE, &two), (ON_TILE_REGISTERS, &ON_TILES)] {
            for &(contracted, cols, precision_bits, faster) in measured {
                let size = size(contracted, cols, cols, true);
                assert_eq!(
                    gains(&costs, &size, precision_bits),
                    faster,
                    "{contracted} x {cols}, {precision_bits} bits"
                );
            }
            for (bits, less) in [(64, 0), (64, 1), (1024, 0), (1024, 1)] {
                let rows = costs.least_rows(bits) - less;
                assert_eq!(gains(&costs, &size(rows, rows, rows, true), bits), less == 0, "{rows} rows, {bits} bits");
            }
            assert!(!gains(&costs, &size(0, 400, 400, false), 64));
            assert!(!gains(&costs, &size(1 << 40, 0, 0, true), 64));
        }
    }

    /// The kernels that processors of other kinds choose, tested on any machine.
    #[test]
    fn each_processor_takes_the_kernel_that_gains_most_on_it() {
        let none = Multipliers { digits: false, one_a_cycle: false, pairs: false, tiles: false, of_intel: false };
        let pairs = Multipliers { digits: true, one_a_cycle: true, pairs: true, ..none };
        let here = Context::builder().threads(1).build().unwrap();
        let own = here.kernel().name();
        for (multipliers, large, small) in [
            (none, own, own),
            (Multipliers { tiles: true, ..none }, own, own),
            (Multipliers { digits: true, ..none }, own, own),
            (Multipliers { pairs: true, ..none }, own, own),
            (pairs, "i16", own),
            (Multipliers { one_a_cycle: false, ..pairs }, "i16", own),
            (Multipliers { one_a_cycle: false, tiles: true, ..pairs }, "i8", own),
            (Multipliers { digits: true, tiles: true, ..none }, "i8", own),
        ] {
            let ctx = here.with_multipliers(multipliers);
            let name =
                |size: &ProductSize, bits| choose_kernel(&ctx, size, &Bits::scaled(bits, size.contracted)).name();
            assert_eq!(name(&size(4000, 1000, 1000, true), 1024), large, "{multipliers:?}");
            assert_eq!(name(&size(2000, 2000, 2000, true), 768), large, "{multipliers:?}");
            assert_eq!(name(&size(100, 50, 50, true), 1024), small, "{multipliers:?}");
            let forced = Context::builder().kernel("f64").build().unwrap().with_multipliers(multipliers);
            let bits = Bits::scaled(1024, 4000);
            assert_eq!(choose_kernel(&forced, &size(4000, 1000, 1000, true), &bits).name(), "f64");
        }
    }

    /// A product that is large enough for bytes on tile registers runs on them by itself, with the bits of any other.
    #[test]
    fn a_product_runs_on_the_kernel_that_was_chosen() {
        let here = Context::builder().threads(2).build().unwrap();
        let tiles = Multipliers { digits: true, one_a_cycle: false, pairs: false, tiles: true, of_intel: false };
        let ctx = here.with_multipliers(tiles);
        let mut p = crate::Matrix::zeros(900, 560, 64).unwrap();
        let mut state = 1u64;
        for at in 0..900 * 560 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            p.set_f64(at % 900, at / 900, (state >> 11) as f64 * 2f64.powi((state % 19) as i32) - 1e16).unwrap();
        }
        let options = crate::SyrkOptions::new();
        let planned = crate::plans::plan_syrk(&ctx, 900, 560, 64).unwrap();
        let chosen = crate::syrk_with(&ctx, &p, 64, &options).unwrap();
        let forced = Context::builder().threads(2).kernel("f64").build().unwrap();
        let want = crate::syrk_with(&forced, &p, 64, &options).unwrap();
        assert_eq!((planned.kernel, chosen.report.kernel, want.report.kernel), ("i8", "i8", "f64"));
        assert!(chosen.result == want.result, "i8 gives other bits than f64");
    }

    #[test]
    fn a_forced_kernel_and_bits_beyond_its_moduli_are_kept() {
        let (free, forced) = (Context::new().unwrap(), Context::builder().kernel("f64").build().unwrap());
        let large = size(4000, 1000, 1000, true);
        let name = |ctx: &Context, bits| choose_kernel(ctx, &large, &bits).name();
        assert_eq!(name(&forced, Bits::scaled(1024, 4000)), "f64");
        let most = kernels::for_large_products(free.multipliers())
            .max_by(|(_, one), (_, other)| one.saved.total_cmp(&other.saved));
        let other = most.map(|(other, _)| other.name());
        assert_eq!(name(&free, Bits::scaled(1024, 4000)), other.unwrap_or(free.kernel().name()));
        assert_eq!(name(&free, Bits::scaled(1024, 4000).widened(6000)), free.kernel().name());
    }
}
