//! Conversions, reductions and rounding on a device: the steps between big floats and a device's products.
//!
//! Every kernel is written once, in `cu/`, as CUDA C that is also C11: a CUDA device compiles the text at run time, and
//! the build script compiles it for the software device, so that both run the same source. Depends on: the trait
//! [`crate::device::Device`], moduli, layouts of integers and residues. Independent of: operations, tiles, other
//! streams.
//!
//! The steps of a product, all on the device, with a call of [`Launcher`] for each step:
//!
//! | from | by | to |
//! |---|---|---|
//! | heads and limbs | `scale` | digits: `[digit][entry]`, 32 bits each, the sign as one more digit |
//! | packed integers of the host | `unpack` | digits |
//! | digits | `to_planes` | operand planes: `[plane][entry]`, doubles or signed bytes |
//! | digits | `to_residues` | residues: `[modulus][entry]`, 32 or 16 bits each |
//! | operand planes | [`crate::device::Device::multiply`] | sums: `[plane][entry]`, doubles or 32-bit integers |
//! | sums | `reduce` | residues, overwritten, added to or subtracted from |
//! | residues | `select` | the residues of a rectangle of entries, one after the other |
//! | residues | `reconstruct` | integers: `[word][entry]`, 32 bits each, the sign as one more word |
//! | integers | `round` | heads and limbs |
//! | integers | `pack` | packed integers for the host |
//!
//! Proofs: docs/ALGORITHM.md, "Moduli of signed bytes" and "On a device".

mod checks;
mod engine;
mod finish;
mod launch;
mod prepare;
mod source;
mod tables;
mod tiles;

#[cfg(test)]
mod tests;

pub use engine::{DeviceEngine, DeviceFamily};
pub use finish::{DeviceReconstruct, PackIntegers, Reduce, ReduceInto, Round, Select};
pub use launch::{Integers, Launcher, Residues};
pub use prepare::{DeviceDigits, DeviceToResidues, Scale, ToPlanes, Unpack};
pub use source::kernels;
pub use tables::DeviceTables;
pub use tiles::{DeviceTiles, TileDevice};
