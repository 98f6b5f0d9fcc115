//! The processor features that kernels need. `kernels::on_model` has the same functions, which always return true.

use super::rate;
use crate::math::processor::{Level, level, processor_has};
use std::sync::OnceLock;

/// Whether instructions are emulated by a model.
#[cfg(test)]
pub const IS_MODEL: bool = false;

/// Whether the kernel `ifma52` can run, or the missing feature of the CPU.
pub fn has_ifma52() -> Result<(), &'static str> {
    if level() < Level::Native {
        return Err("SUNZI_CPU hides AVX-512 IFMA");
    }
    let has =
        processor_has!(Native: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512vbmi", "avx512ifma");
    if has { Ok(()) } else { Err("this CPU lacks AVX-512 IFMA or VBMI") }
}

/// Whether vector instructions can form sums digit by digit.
#[inline]
pub fn has_digit_sums() -> bool {
    processor_has!(Native: "avx512f", "avx512ifma", "avx512vbmi2")
}

/// Whether vector instructions can form scaled sums.
#[inline]
pub fn has_scaled_sums() -> bool {
    has_digit_sums() && is_x86_feature_detected!("avx512cd")
}

/// Whether a core issues one instruction of the kernel `ifma52` per cycle; measured at the first call if it is not
/// known.
pub fn issues_one_ifma() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    // SAFETY: the CPU has the instructions.
    *ANSWER.get_or_init(|| has_ifma52().is_ok() && unsafe { rate::issues_one() })
}

/// Whether the processor is made by Intel.
pub fn is_of_intel() -> bool {
    // A virtual machine interrupts for the question.
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(rate::is_of_intel)
}

/// IFMA instructions a second on the calling thread (best of `trials` short runs), or `None` without the instructions.
pub fn ifma_rate(trials: usize) -> Option<f64> {
    has_ifma52().ok()?;
    // SAFETY: the CPU has the instructions.
    Some(unsafe { crate::kernels::rate::ifma52(trials) })
}
