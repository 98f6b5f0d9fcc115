//! Dense linear algebra on big floats, of any precision from 2 to 5000 bits, through word-size residues.
//!
//! Numbers are scaled to integers, reduced modulo many word-size primes, and multiplied prime by prime on the vector
//! units of the CPU or on GPUs; each entry of a result is then reconstructed and rounded once.
//!
//! ```
//! use sunzi::{Context, Matrix, rug::Float};
//!
//! let ctx = Context::new()?; // keeps threads, tables and memory between calls
//! let p = Matrix::from_fn(40, 3, 512, |row, col| Float::with_val(512, 1 + row + 7 * col).sqrt())?;
//! let q = sunzi::syrk(&ctx, &p, 512)?; // Q = P^T P, a SymmetricMatrix
//! let l = sunzi::cholesky(&ctx, &q, 512)?; // Q = L L^T
//! let b = Matrix::from_f64s(3, 1, 512, &[1.0, 2.0, 3.0])?;
//! let x = l.solve(&ctx, &b, 512)?; // Q x = b
//!
//! // Two other forms of a verb: with options and a report, and into memory of the caller, here a block of a matrix.
//! let minus = Float::with_val(2, -1);
//! let options = sunzi::GemmOptions::new().alpha(&minus).accumulate(b.view());
//! let residual = sunzi::gemm_with(&ctx, &q, &x, 512, &options)?; // b - Q x
//! assert!(residual.result.max_norm() < 1e-140);
//! println!("{} in {} s", residual.report.kernel, residual.report.seconds);
//! let mut both = Matrix::zeros(3, 2, 512)?;
//! let second = both.view_mut().block(0..3, 1..2)?;
//! sunzi::solve_into(&ctx, &q, &b, 512, &Default::default(), second)?;
//! assert!(both.float(2, 1) == x.float(2, 0)); // the same bits
//! # Ok::<(), sunzi::Error>(())
//! ```
//!
//! # Verbs
//!
//! | verb | computes | of |
//! |---|---|---|
//! | [`syrk`](syrk()) | `alpha P^T P + beta C`, or `P P^T` | any matrix |
//! | [`gemm`](gemm()) | `alpha op(A) op(B) + beta C` | any matrices |
//! | [`syr2k`](syr2k()) | `alpha (A^T B + B^T A) + beta C`, or `A B^T + B A^T` | any matrices |
//! | [`weighted_gram`](weighted_gram()) | `alpha P^T diag(d) P + beta C`, or `P diag(d) P^T` | any matrix and weights |
//! | [`symm`](symm()) | `alpha A B + beta C`, or `B A` | symmetric `A` |
//! | [`trmm`](trmm()) | `alpha op(T) B`, or `B op(T)` | triangular `T` |
//! | [`cholesky`](cholesky()) | `L` with `A = L L^T` | symmetric positive definite |
//! | [`trsm`](trsm()) | `X` with `op(T) X = alpha B` or `X op(T) = alpha B` | triangular |
//! | [`solve`](solve()), [`solve_refined`] | `X` with `A X = B` | symmetric positive definite |
//! | [`ldlt`](ldlt()) | `L`, `D` with `A = L D L^T`, without pivoting | symmetric quasi-definite |
//! | [`lu`](lu()) | `P`, `L`, `U` with `P A = L U`; then solutions, inverse, determinant | any square matrix |
//! | [`inverse`](inverse()) | `A^-1` | symmetric positive definite |
//!
//! Each verb has three forms:
//! - `verb(ctx, operands, precision)` returns the result,
//! - `verb_with(ctx, operands, precision, &options)` returns an [`Outcome`]: the result, and a report of time and
//!   memory,
//! - `verb_into(ctx, operands, precision, &options, result)` writes into the caller's memory, a matrix or a block of
//!   one ([`Destination`], [`SymmetricDestination`]), and returns the report.
//!
//! `cholesky_into`, `lu_into`, `inverse_into` and `solve_refined_into` reuse the memory of an earlier result; `ldlt`
//! has no `_into`. A [`Cholesky`], an [`Ldlt`] or an [`Lu`] can be used for any number of solves.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`blas`] | products, sums and substitutions on vectors, products entry by entry |
//! | [`sparse`] | matrices with few entries, times dense ones |
//! | [`batch`] | many small problems in one call |
//! | [`eigenvalue`] | intervals that hold the smallest or largest eigenvalue |
//! | [`estimate`] | whether a matrix is singular, in exact arithmetic; certificates; the logarithm of a determinant |
//! | [`ball`] | enclosures: balls that contain the exact result for every point of the operands' balls |
//! | [`verify`] | tests of results, independent of the computation |
//! | [`plans`], [`report`] | memory and time of a call, predicted and measured |
//! | [`distributed`] | the verbs over many ranks, which communicate through a [`comm::Transport`] |
//! | [`out_of_core`] | the verbs on matrices in files, larger than memory |
//! | [`double`] | Cholesky factors of doubles |
//! | [`devices`] | GPUs for a context |
//! | [`io`], [`gallery`] | matrices in files, test matrices |
//! | [`advanced`] | kernels, task graphs, storage, for extensions of the library; it may change in any release |
//!
//! Operands are borrowed [`Matrix`]es or views: blocks and transposes cost nothing ([`MatrixView`]). A symmetric
//! operand can be a [`SymmetricMatrix`], a plain matrix (then symmetry is checked), or one triangle, selected with
//! [`Symmetric`].
//!
//! # Accuracy
//!
//! By default ([`Accuracy::Entrywise`]) errors are bounded componentwise: for products `|computed - exact| <= 2^(1 -
//! precision_bits) (|A| |B|)_ij`, for any number of rows. [`Accuracy::Norm`] computes with fewer bits and bounds errors
//! by the norms of the row and the column instead. The page of each verb states its bound, and docs/ALGORITHM.md proves
//! it. The bits of a result depend only on the operands, the precision and the options, not on threads, memory limit,
//! kernel, devices or the number of ranks. A verb of [`distributed`] has the bits of the verb of the same name here,
//! with one exception: [`distributed::inverse`] has the bits of [`Cholesky::solve`] with the identity, and not those of
//! [`Cholesky::inverse`].
//!
//! [`Cholesky::solution_digits`] and similar methods estimate how many digits of a result are correct, and
//! [`Cholesky::certify`] proves a number of correct digits. Both take the operands as exact. If entries were rounded
//! before the call (1/3), [`Cholesky::certify_with`] and [`Cholesky::solution_digits_with`] include the effect, by an
//! [`estimate::InputRounding`].
//!
//! # Debug builds
//!
//! Without optimisation the verbs run about a hundred times slower. To optimise them in the debug builds of a crate
//! that depends on this one, add these lines to its `Cargo.toml`:
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 3
//! ```
//!
//! # Features
//!
//! `blas`: a kernel on OpenBLAS. `mpi`: ranks that are processes under MPI. `cuda`: NVIDIA GPUs, found at run time.
//! Without any of these features, all verbs run on the CPU, and on ranks that are threads.
//!
//! The repository has a book (`make book`, sources in `docs/`): a tutorial, a cookbook, troubleshooting, the proofs,
//! and manuals of the program, the C library and the Python package, which use this library.

pub mod advanced;
pub mod batch;
pub mod blas;
pub mod comm;
mod context;
pub mod devices;
mod drive;
pub mod eigenvalue;
pub mod estimate;
pub mod gallery;
pub mod io;
mod ops;
mod options;
pub mod plans;
pub mod report;
mod site;
pub mod sparse;
mod storage;

use sunzi_kernels::{device, error, kernels, math, matrix, plan, runtime, store, testing, tile};

pub use context::{Context, ContextBuilder, DiskProgress, Progress, ProgressCallback};
#[doc(inline)]
pub use error::{Error, ErrorText, IndexBase, MoreBits, Result};
#[doc(inline)]
pub use math::float::{FloatRef, Head};
#[doc(inline)]
pub use matrix::{Destination, MatrixViewMut, Symmetric, SymmetricDestination, SymmetricMatrix};
#[doc(inline)]
pub use matrix::{Diag, MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Op, Side, Uplo};
pub use ops::balls as ball;
pub use ops::{Accuracy, GemmOptions, Outcome, SyrkOptions, gemm, gemm_into, gemm_with, syrk, syrk_into, syrk_with};
pub use ops::{Cholesky, CholeskyOptions, cholesky, cholesky_into, cholesky_with};
pub use ops::{Inertia, Ldlt, LdltOptions, ldlt, ldlt_with};
pub use ops::{Lu, LuOptions, lu, lu_into, lu_with};
pub use ops::{RefineOptions, solve, solve_into, solve_refined, solve_refined_into, solve_refined_with, solve_with};
pub use ops::{SymmOptions, Syr2kOptions, symm, symm_into, symm_with, syr2k, syr2k_into, syr2k_with};
pub use ops::{TrmmOptions, TrsmOptions, trmm, trmm_into, trmm_with, trsm, trsm_into, trsm_with};
pub use ops::{distributed, double, out_of_core, verify};
pub use ops::{inverse, inverse_into, inverse_with};
pub use ops::{weighted_gram, weighted_gram_into, weighted_gram_with};
pub use rug;

/// Runs the examples of the pages as tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;

    #[doc = include_str!("../docs/CLUSTER.md")]
    struct Cluster;

    #[doc = include_str!("../docs/COOKBOOK.md")]
    struct Cookbook;

    #[doc = include_str!("../docs/PRECISION.md")]
    struct Precision;

    #[doc = include_str!("../docs/FORMATS.md")]
    struct Formats;

    #[doc = include_str!("../docs/OUT_OF_CORE.md")]
    struct OutOfCore;
}
