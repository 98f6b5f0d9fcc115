//! The only code that reads and writes Python objects of another package by their layout.
//!
//! Promise: a layout is used only after it has been checked against objects with known contents. In addition: the
//! handle of a communicator of mpi4py.

pub mod communicator;
pub mod flint;
pub mod gmpy2;
