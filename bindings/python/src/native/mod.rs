//! The only code that reads and writes Python objects of another package by their layout.
//!
//! Promise: a layout is used only after it has been checked against objects with known contents. In addition: calls of
//! the C library on ranks under MPI.

#[cfg(not(feature = "mpi"))]
#[path = "no_factor.rs"]
pub mod factor;
#[cfg(feature = "mpi")]
pub mod factor;
pub mod gmpy2;
#[cfg(not(feature = "mpi"))]
#[path = "no_ranks.rs"]
pub mod ranks;
#[cfg(feature = "mpi")]
pub mod ranks;
pub mod verbs;
