//! Bounds of the optimal values of semidefinite programs, proven in exact arithmetic.
//!
//! [`read_exact`] reads a program with the decimals of its files as rational numbers, [`Proof::parse`] reads a proof,
//! and [`verify`] checks the proof for the program. The theorem is in docs/CHECKS.md, "Certificates of semidefinite
//! programs"; the design is in docs/decisions/056-certificates.md. This module uses no part of the solver: neither its
//! readers, nor its types, nor the products of the library.
//!
//! It is independent of the solver, floating-point numbers, and the search for proofs.

mod archive;
mod binary;
mod certificate;
mod check;
mod choices;
mod definite;
mod files;
mod group;
mod json;
mod limits;
mod number;
mod polynomial;
mod polynomial_file;
mod polynomial_json;
mod polynomial_parts;
mod polynomial_text;
mod program;
mod read;
mod room;
mod sampled;
mod scaled;
mod shape;
mod sizes;
mod sparse;
mod text;

pub use certificate::{GramProof, LowerGroup, LowerProof, Proof, UpperProof};
pub use check::verify;
pub use definite::Witness;
pub use group::{ProofConstraints, ProofGroup};
pub use polynomial::{ProofPolynomialMatrix, ProofSampling};
pub use program::Program;
pub use read::{read_exact, read_exact_as};
pub use sampled::ProofSampled;
pub use scaled::{Fixed, Scaled};
pub use shape::{Gram, ProofShape};
pub use sparse::{Place, ProofSparse};

pub(crate) use check::dual_blocks;
#[cfg(test)]
pub(crate) use limits::MAXIMUM_EXPONENT;
#[cfg(test)]
pub(crate) use scaled::power_of_two;
pub(crate) use scaled::{packed, triangle};
