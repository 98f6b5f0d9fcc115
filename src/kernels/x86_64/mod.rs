//! Kernels for x86-64 processors.

pub mod ifma52;
