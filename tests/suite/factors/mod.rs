//! Factorisations and solves in one process.

mod cholesky;
mod claims;
mod digits;
mod eigenvalues;
mod entrywise;
mod known;
mod ldlt;
mod lu;
mod singularity;
mod solve;
mod symmetric;
mod trsm;
mod verdicts;
