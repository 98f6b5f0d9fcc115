//! The instruction sets of the processor, and those that are used.
//!
//! The environment variable `SUNZI_CPU` hides instructions from the whole library: `portable` and `native` everywhere,
//! `avx2`, `avx-vnni`, `avx512` and `vnni` on x86-64, `neon` on AArch64. Results have the same bits; it is for tests,
//! and for measurements that emulate other processors.

use crate::error::{Error, Result};
use std::sync::LazyLock;

/// The variable that hides instructions.
pub const VARIABLE: &str = "SUNZI_CPU";

/// Levels of instruction sets; each level includes all lower levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The instructions that the compiler assumes.
    Portable,
    /// AVX2 with FMA and BMI2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX2 with AVX-VNNI (VNNI on vectors of 256 bits), which some processors without AVX-512 have.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// AVX-512 F, BW, DQ, VL and CD.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// NEON without extensions.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// All instructions of the processor.
    Native,
}

impl Level {
    /// The levels of this architecture, the smallest first.
    pub const ALL: &[Level] = &[
        Level::Portable,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2,
        #[cfg(target_arch = "x86_64")]
        Level::AvxVnni,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512,
        #[cfg(target_arch = "x86_64")]
        Level::Vnni,
        #[cfg(target_arch = "aarch64")]
        Level::Neon,
        Level::Native,
    ];

    /// Its name in the environment variable.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::AvxVnni => "avx-vnni",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Level::Vnni => "vnni",
            #[cfg(target_arch = "aarch64")]
            Level::Neon => "neon",
            Level::Native => "native",
        }
    }

    fn by_name(name: &str) -> Option<Level> {
        Level::ALL.iter().copied().find(|level| level.name() == name)
    }
}

static ASKED: LazyLock<std::result::Result<Level, String>> = LazyLock::new(|| {
    let Some(value) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else { return Ok(Level::Native) };
    let name = value.to_string_lossy().into_owned();
    Level::by_name(&name).ok_or(name)
});

/// The instructions that may be used: all, or those that `SUNZI_CPU` allows; the variable is read once.
pub fn level() -> Level {
    ASKED.as_ref().copied().unwrap_or(Level::Native)
}

/// Checks that `SUNZI_CPU`, if it is set, is the name of a level.
///
/// # Errors
/// [`Error::InvalidArgument`] with the names.
pub fn check() -> Result<()> {
    let Err(name) = &*ASKED else { return Ok(()) };
    let known = Level::ALL.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
    let architecture = std::env::consts::ARCH;
    let text = format!("{VARIABLE}={name} is not a set of instructions of {architecture}; choose one of {known}");
    Err(Error::InvalidArgument(text))
}

/// Whether `level` may be used and the processor has each of the features.
#[cfg(target_arch = "x86_64")]
macro_rules! processor_has {
    ($level:ident: $($feature:tt),+) => {
        $crate::math::processor::level() >= $crate::math::processor::Level::$level
            && $(std::arch::is_x86_feature_detected!($feature))&&+
    };
}

/// Whether `level` may be used and the processor has each of the features.
#[cfg(target_arch = "aarch64")]
macro_rules! processor_has {
    ($level:ident: $($feature:tt),+) => {
        $crate::math::processor::level() >= $crate::math::processor::Level::$level
            && $(std::arch::is_aarch64_feature_detected!($feature))&&+
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use processor_has;

/// Whether the crate `gemm` has code for this processor: it tests one of several extensions on which it then relies,
/// and the program would crash if another is missing (AMD's Piledriver has FMA and no AVX2).
#[cfg(target_arch = "x86_64")]
pub fn dgemm_crate_runs() -> bool {
    use gemm_common::simd::{MixedSimd, V3, V4};
    static RUNS: LazyLock<bool> = LazyLock::new(|| match () {
        () if level() == Level::Portable => false,
        () if processor_has!(Avx512: "avx512f") => <V4 as MixedSimd<f64, f64, f64, f64>>::try_new().is_some(),
        () if is_x86_feature_detected!("fma") => <V3 as MixedSimd<f64, f64, f64, f64>>::try_new().is_some(),
        () => true,
    });
    *RUNS
}

/// Whether the crate `gemm`, which has its own code for this architecture, may use it.
#[cfg(not(target_arch = "x86_64"))]
pub fn dgemm_crate_runs() -> bool {
    level() > Level::Portable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_an_order() {
        for &level in Level::ALL {
            assert_eq!(Level::by_name(level.name()), Some(level));
        }
        assert!(Level::ALL.is_sorted() && Level::by_name("sse9").is_none());
        assert!(level() >= Level::Portable && check().is_ok());
    }
}
