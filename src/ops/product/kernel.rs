//! The choice of the kernel of a product on planes.

use crate::comm::Say;
use crate::context::Context;
use crate::kernels::{self, ConversionCosts, PlaneKernel};
use crate::ops::product::problem::Bits;
use crate::ops::product::size::ProductSize;
use std::collections::BTreeSet;

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

    fn gains(costs: &ConversionCosts, size: &ProductSize, precision_bits: u32) -> bool {
        gain(costs, size, precision_bits) > 0.0
    }

    fn size(contracted: usize, rows: usize, cols: usize, triangle: bool) -> ProductSize {
        ProductSize { contracted, rows, cols, triangle }
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
