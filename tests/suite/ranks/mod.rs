//! The same operations on many ranks, which are threads here: the bits of one process.

mod cholesky;
mod combinations;
mod devices;
mod distributions;
mod double;
mod exchange;
mod graded;
mod kernels;
mod local_parts;
mod mailbox;
mod matrix;
mod plan;
mod products;
mod refusals;
mod shared_devices;
mod solve;
mod solve_into;
mod solve_together;
