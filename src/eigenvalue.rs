//! Intervals that hold an extreme eigenvalue of a symmetric matrix.

pub use crate::ops::{EigenvalueInterval, EigenvalueOptions, Extreme};
pub use crate::ops::{extreme_eigenvalue, extreme_eigenvalue_with, pencil_eigenvalue, pencil_eigenvalue_with};
