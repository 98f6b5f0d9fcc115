//! Matrices over the ranks of a team: the ranks of a computation, the owners of entries, and how entries travel.
//!
//! Knows: tiles and ranks. Does not know: products, factorisations.

pub(crate) mod matrix;
pub(crate) mod rect;
pub(crate) mod redistribute;
pub(crate) mod shared_devices;
pub(crate) mod travel;
