//! The C library of `sunzi`: its operations on arrays of `mpfr_t`, of `mpf_t`, and of raw limbs.
//!
//! `types` and `api` are the items that the header declares, under their names in C. Behind them: `array` (matrices in
//! the caller's memory), `convert` (numbers out of them and into them), `call` (one call from its checks to its
//! report), `context` (the data that is kept), `failure` (codes and messages). Nothing here computes: every entry point
//! checks, converts and calls `sunzi`.
//!
//! Promise: no panic leaves the library, no entry is read or written that an operation is not documented to touch, and
//! there is no state outside of contexts.
#![allow(non_camel_case_types)]

mod api;
mod array;
mod call;
mod context;
mod convert;
mod failure;
mod types;

pub use api::arrays::*;
pub use api::batches::*;
pub use api::cholesky::*;
pub use api::contexts::*;
pub use api::digits::*;
pub use api::factor::*;
pub use api::info::*;
pub use api::lapack::*;
pub use api::ldlt::*;
pub use api::lu::*;
pub use api::mpi::*;
pub use api::plans::*;
pub use api::products::*;
pub use api::triangular::*;
pub use context::sunzi_context;
pub use types::*;

/// Counts the memory that the library allocates, for `sunzi_report`.
#[global_allocator]
static COUNTER: sunzi::advanced::store::CountingAllocator = sunzi::advanced::store::CountingAllocator;
