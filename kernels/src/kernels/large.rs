//! The kernels, in addition to the preferred one, that are faster for large calls.

use super::{ConversionCosts, FactorCosts, Multipliers, PlaneKernel, TABLE, i8, i16};

/// The multipliers of this CPU.
pub fn multipliers() -> Multipliers {
    let digits = super::by_name("ifma52").is_ok();
    let pairs = i16::adds_pairs_at_once();
    #[cfg(target_arch = "x86_64")]
    let (one_a_cycle, of_intel) = {
        use super::x86_64::cpu;
        (digits && pairs && cpu::issues_one_ifma(), cpu::is_of_intel())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let (one_a_cycle, of_intel) = (false, false);
    Multipliers { digits, one_a_cycle, pairs, tiles: i8::has_tile_registers(), of_intel }
}

/// The kernels that replace [`super::preferred`] for large products if they are fastest on a processor with these
/// multipliers, with their extra costs and savings.
pub fn for_large_products(
    multipliers: Multipliers,
) -> impl Iterator<Item = (&'static dyn PlaneKernel, ConversionCosts)> {
    let kernels = TABLE.iter().filter_map(|(_, probe)| probe().ok());
    kernels.filter_map(move |kernel| Some((kernel, kernel.large_products_with(&multipliers)?)))
}

/// The kernel for large factorisations, if it is not [`super::preferred`], with the costs of its tiles.
pub fn preferred_for_large_factors() -> Option<(&'static dyn PlaneKernel, FactorCosts)> {
    let mut kernels = TABLE.iter().filter_map(|(_, probe)| probe().ok());
    kernels.find_map(|kernel| Some((kernel, kernel.large_factors()?)))
}

/// The kernel for large triangular solves, if it is not [`super::preferred`], with the costs of its tiles.
pub fn preferred_for_large_solves() -> Option<(&'static dyn PlaneKernel, FactorCosts)> {
    let mut kernels = TABLE.iter().filter_map(|(_, probe)| probe().ok());
    kernels.find_map(|kernel| Some((kernel, kernel.large_solves()?)))
}
