//! Kernels for x86-64 processors.
//!
//! Kernels query `cpu` for the features that they need; `rate` measures how many instructions a core issues per cycle.

pub mod cpu;
pub mod ifma52;
pub mod on_avx2;
mod rate;
