//! The processor features that kernels need: the model has all of them.

/// Whether instructions are those of a model.
pub const IS_MODEL: bool = true;

pub fn has_ifma52() -> Result<(), &'static str> {
    Ok(())
}

pub fn has_digit_sums() -> bool {
    true
}

pub fn has_scaled_sums() -> bool {
    true
}

pub fn ifma_rate(_trials: usize) -> Option<f64> {
    None
}
