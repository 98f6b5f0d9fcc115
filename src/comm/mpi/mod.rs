//! Ranks that are processes under MPI (cargo feature `mpi`).
//!
//! Three layers: `sys` declares the parts of the library that are used, `result` turns its status codes into errors,
//! and [`Environment`], [`MpiRank`] and `window` need no `unsafe` of their callers. MPI is called only through `gate`,
//! which keeps the promises about threads with which MPI was initialised.
//! A host program may own MPI: [`MpiRank`] then works on a duplicate of a communicator of the host's, and nothing here
//! initialises or finalises MPI behind its back.

mod environment;
mod gate;
mod mailbox;
mod posted;
mod rank;
mod result;
mod sys;
mod wait;
mod window;

pub use environment::Environment;
pub use rank::MpiRank;
pub use sys::MPI_Comm;
