//! Kernels for x86-64 processors.
//!
//! Kernels ask `cpu` for what they need; `rate` measures the limit of `ifma52`.

pub mod cpu;
pub mod ifma52;
mod rate;
