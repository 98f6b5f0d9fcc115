//! Semidefinite programs at 100 to 5000 bits, on the products and factorisations of `sunzi`.
//!
//! [`read_problem`] reads SDPB's blocks and polynomial programs and SDPA's sparse files into a [`Problem`], and
//! [`PolynomialProgram::problem`] makes one from polynomials. A [`Solver`] takes it from [`State`] to [`State`], by a
//! primal-dual predictor-corrector method with SDPB's options ([`SolverOptions`]), until it has a [`Solution`].
//! [`output`] writes the files of both programs, and [`save_checkpoint`] stores a state. The manual is docs/SDP.md, the
//! design docs/decisions/054-a-solver-on-the-public-api.md.
//!
//! ```
//! use sunzi::Context;
//! use sunzi_sdp::{Control, Solver, SolverOptions, Termination, read_problem};
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("least.dat-s");
//! std::fs::write(&path, "1\n1\n2\n1\n0 1 1 2 1\n1 1 1 1 1\n1 1 2 2 1\n").unwrap(); // the largest eigenvalue, 1
//! let problem = read_problem(&path, 200)?;
//! let solver = Solver::new(Context::new()?, &problem, SolverOptions::new(problem.form))?;
//! let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
//! assert_eq!(solution.termination, Termination::PrimalDualOptimal);
//! assert!((solution.quality.primal_objective - 1u32).abs() < 1e-29);
//! # Ok::<(), sunzi::Error>(())
//! ```
//!
//! [`certify`] proves bounds of the optimal value near a solution, for the exact numbers in the files;
//! [`proof::verify`] checks a proof, independently of the solver (docs/decisions/056-certificates.md).
//!
//! Cost of an iteration, in products of numbers, for groups of P variables, blocks of n rows and N free variables: `P
//! N^2 / 2` for Q and `P^2 N / 2` for its operands, `P^3 / 6` for the factor of each Schur complement and `N^3 / 6` for
//! that of Q. Each block needs `4 n^3` and a few products for step lengths. The Schur complement needs, for m rows of
//! polynomials at D points, `m^4 D^2 / 2` in addition to two products of `n^2 m D`; for sparse matrices see
//! docs/decisions/055. Accuracy: every product and factor is componentwise accurate, except Q, which is accurate
//! relative to its norm; residuals of both sides reach the precision after the first iterations, which use fewer bits
//! (docs/SDP.md has their number). Memory: [`Solver::plan`]. Source: SDPB, arXiv:1502.02033; SDPA-GMP.
//!
//! Promise: the bits of a solution depend on the program, the options and the precision, not on threads or ranks. This
//! package depends only on the public API of the library. It is independent of the command line.
#![forbid(unsafe_code)]

mod balance;
pub mod block;
mod calls;
mod certify;
mod checkpoint;
mod forms;
mod iterate;
mod numbers;
mod options;
pub mod output;
mod pace;
mod polynomial;
mod problem;
pub mod proof;
mod ranks;
mod read;
mod workers;

pub use calls::{Call, CallTime, CallTimes, time_calls};
pub use certify::{Certificate, certificate_bytes, certify};
pub use checkpoint::{
    CHECKPOINT_FILE, CheckpointLock, Checkpoints, has_foreign_checkpoint, load_checkpoint, load_initial_checkpoint,
    save_checkpoint,
};
pub use iterate::{
    Conditions, Cone, Control, Course, Iteration, MemoryPlan, Outset, PhaseSeconds, Point, PrecisionPlan, Quality,
    Solution, Solver, State, Termination, cones,
};
pub use options::SolverOptions;
pub use pace::{Left, Pace};
pub use polynomial::{DampedRational, Polynomial, PolynomialMatrix, PolynomialProgram, Sampling};
pub use problem::{Constraints, Entry, Form, Group, Problem, Sampled, Sparse, SparseCone};
pub use read::{read_problem, read_problem_as, read_problem_from};

/// Runs the example of the page as a test.
#[cfg(doctest)]
mod page {
    #[doc = include_str!("../../docs/SDP.md")]
    struct Page;
}
