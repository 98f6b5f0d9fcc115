//! The foundation of the library `sunzi`: numbers, matrices, tiles, devices, plans of work, and products of residues.
//!
//! Programs use the package `sunzi`, which exports the public parts of this package; the other parts may change in any
//! release.

pub mod device;
pub mod error;
pub mod kernels;
pub mod math;
pub mod matrix;
pub mod plan;
pub mod runtime;
pub mod store;
#[doc(hidden)]
pub mod testing;
pub mod tile;

pub use error::{Error, Result};
