//! Matrices over the ranks of a team: the ranks of a computation, the owners of entries, and how entries travel.
//!
//! Depends on: tiles and ranks. Independent of: products, factorisations.

pub(crate) mod matrix;
pub(crate) mod rect;
pub(crate) mod redistribute;
pub(crate) mod shared_devices;
pub(crate) mod travel;
