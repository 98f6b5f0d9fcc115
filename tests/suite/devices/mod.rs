//! Work on software devices: the bits of the CPU, the bytes that move, and devices that fail.

mod cholesky;
mod double;
mod products;
