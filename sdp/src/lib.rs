//! Semidefinite programs at 100 to 5000 bits, on the products and factorisations of `sunzi`.
#![forbid(unsafe_code)]

pub mod block;
mod checkpoint;
mod numbers;
mod options;
pub mod output;
mod problem;
mod read;
mod solve;
mod workers;

pub use checkpoint::{CHECKPOINT_FILE, load_checkpoint, save_checkpoint};
pub use options::SolverOptions;
pub use problem::{Constraints, Entry, Form, Group, Problem, Sampled, Sparse, SparseCone};
pub use read::read_problem;
pub use solve::{Cone, Control, Iteration, PhaseSeconds, Point, Quality, Solution, Solver, State, Termination, cones};
