//! The processor features that the copies need.

use crate::math::processor::processor_has;

/// Whether eight problems can lie in the lanes of AVX2, or what is missing.
pub fn has_ifma52() -> Result<(), &'static str> {
    if processor_has!(Avx2: "avx2", "fma") {
        Ok(())
    } else {
        Err("this CPU lacks AVX2 or FMA, or SUNZI_CPU hides them")
    }
}
