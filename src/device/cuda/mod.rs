//! CUDA devices through `cudarc`, loaded at run time.
mod compile;
mod sys;
pub use compile::{compile, compiler_version};
