//! Verbs on vectors: sums of products and of two numbers, entry by entry, on limbs.
//!
//! A vector is a matrix or a view of one column or one row, with any distance between its entries. No entry passes
//! through residues: a sum is formed in fixed point below its largest term (`ops::fixed_sum`), or exactly, and rounded
//! once. Promise: every result is accurate relative to the sizes of its own terms, and its bits depend only on the
//! operands, the precision and the options. Proof: docs/decisions/032-vectors.md.

mod entries;
mod products;
mod sparse;
mod terms;
mod triangular;
mod update;

pub use entries::VectorReport;
pub use products::{GemvOptions, SymvOptions, gemv, gemv_into, gemv_with, symv, symv_into, symv_with};
pub use products::{dot, nrm2};
pub use sparse::{sddmm, sddmm_into, spmm, spmm_into};
pub(crate) use triangular::{RightSide, SubstitutionRoom, VectorTriangle, room_bytes};
pub use triangular::{TriangleVectorOptions, trmv, trmv_into, trmv_with, trsv, trsv_into, trsv_with};
pub use update::{GerOptions, axpy, axpy_into, ger, ger_into, ger_with};
pub use update::{HadamardOptions, hadamard, hadamard_into};
