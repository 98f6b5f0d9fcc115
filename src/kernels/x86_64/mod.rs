//! Kernels for x86-64 processors.
//!
//! Kernels ask `cpu` for what they need; `rate` measures what instructions of vectors can do.

pub mod cpu;
pub mod ifma52;
pub(crate) mod rate;
