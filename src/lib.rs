//! Dense linear algebra on big floats, of any precision from 2 to 5000 bits, through word-size residues.
//!
//! Numbers are scaled to integers, split into residues modulo many word-size primes, and multiplied prime by prime on
//! the vector units of the CPU or on GPUs; each entry of a result is put together and rounded once.
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
//! // The other two forms: options and a report; memory of the caller, here a block of a larger matrix.
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
//! | [`symm`](symm()) | `alpha A B + beta C`, or `B A` | symmetric `A` |
//! | [`trmm`](trmm()) | `alpha op(T) B`, or `B op(T)` | triangular `T` |
//! | [`cholesky`](cholesky()) | `L` with `A = L L^T` | symmetric positive definite |
//! | [`trsm`](trsm()) | `X` with `op(T) X = alpha B` or `X op(T) = alpha B` | triangular |
//! | [`solve`](solve()), [`solve_refined`] | `X` with `A X = B` | symmetric positive definite |
//! | [`ldlt`](ldlt()) | `L`, `D` with `A = L D L^T`, without pivoting | symmetric quasi-definite |
//! | [`inverse`](inverse()) | `A^-1` | symmetric positive definite |
//! | [`extreme_eigenvalue`] | an interval that holds the smallest or largest eigenvalue | symmetric |
//! | [`pencil_eigenvalue`] | the same for `L^-1 X L^-T` | triangular `L`, symmetric `X` |
//!
//! On vectors, which are matrices or views of one column or one row:
//!
//! | verb | computes |
//! |---|---|
//! | [`gemv`](gemv()), [`symv`](symv()) | `alpha op(A) x + beta y`, general and symmetric |
//! | [`trmv`](trmv()) | `alpha op(T) x`, triangular |
//! | [`trsv`](trsv()) | `x` with `op(T) x = alpha b`, triangular |
//! | [`ger`](ger()), [`axpy`](axpy()) | `alpha x y^T + A`, `alpha x + y` |
//! | [`dot`](dot()), [`nrm2`](nrm2()) | `x^T y`, `sqrt(x^T x)`, as numbers |
//!
//! Products entry by entry, and with few entries, as on vectors:
//!
//! | verb | computes |
//! |---|---|
//! | [`hadamard`] | `A o B`, entry by entry; [`hadamard_into`]: `alpha` times a sum of such products |
//! | [`spmm`](spmm()) | `A B` for a [`SparseMatrix`] `A` or some of its rows |
//! | [`sddmm`](sddmm()) | those entries of `A B` that are named |
//!
//! Each has three forms:
//! - `verb(ctx, operands, precision)` gives the result,
//! - `verb_with(ctx, operands, precision, &options)` gives an [`Outcome`]: the result, and a report of time and memory,
//! - `verb_into(ctx, operands, precision, &options, result)` writes into memory of the caller, a matrix or a block of
//!   one ([`Destination`], [`SymmetricDestination`]), and gives the report.
//!
//! Many small problems at a time: [`syrk_batch`], [`gemm_batch`], [`cholesky_batch`], [`trsm_batch`], in the same three
//! forms. The threads share out the problems, and each of these has a result, or an error, of its own.
//!
//! `axpy`, `spmm` and `sddmm` have no options, `dot` and `nrm2` give numbers, `hadamard_into` takes several pairs. A
//! [`Cholesky`] is made in the memory of another one, so is an inverse or a refined solution; `ldlt` has no `_into`. A
//! [`Cholesky`] or an [`Ldlt`] solves again and again. `plan_*` tell beforehand how a call would run and what it takes.
//! Results are judged by [`verify`].
//!
//! Operands are borrowed [`Matrix`]es or views: blocks and transposes cost nothing ([`MatrixView`]). Where a symmetric
//! operand is wanted, it is a [`SymmetricMatrix`], a plain matrix, which is checked, or a triangle that is named
//! ([`Symmetric`]).
//!
//! # Accuracy
//!
//! All that lies between the operands and the one rounding of an entry is exact or has guard bits enough: for products
//! `|computed - exact| <= 2^(1 - precision_bits)` times the norms of the row and the column, for any number of rows.
//! The page of each verb states its bound, docs/ALGORITHM.md proves it. The bits of a result depend on the operands,
//! the precision and the options alone: not on threads, memory limit, kernel, devices or the number of ranks. A verb of
//! [`distributed`] has the bits of its namesake here, with one exception: [`distributed::inverse`] has those of
//! [`Cholesky::solve`] with the identity, and not those of [`Cholesky::inverse`].
//!
//! Enclosures, which hold the exact result for every point of balls, are those of [`ball`].
//! Whether a symmetric matrix is singular, [`singularity()`] decides in exact arithmetic, and
//! [`singularity_as_written`] where reading has rounded its numbers.
//! How many digits of an answer are right, [`Cholesky::solution_digits`] and its neighbours estimate, and
//! [`Cholesky::certify`] proves.
//!
//! # Features and modules
//!
//! - `blas`: a kernel on OpenBLAS. `mpi`: ranks that are processes under MPI. `cuda`: NVIDIA GPUs, found at run time.
//!   Without any, all verbs run on the CPU, and on ranks that are threads.
//! - [`distributed`]: the verbs over many ranks, which talk through a [`comm::Transport`].
//! - [`io`], [`gallery`]: matrices in files, test matrices. [`double`]: Cholesky factors of doubles.
//! - [`advanced`]: kernels, plans and task graphs, for those who measure or extend the library; it may
//!   change in any release.
//!
//! The repository has a book (`make book`, sources in `docs/`): a tutorial, a cookbook, troubleshooting, the proofs,
//! and manuals of the program, the C library and the Python package that stand on this library.

pub mod advanced;
pub mod comm;
mod context;
mod drive;
pub mod gallery;
pub mod io;
mod ops;
mod options;
mod site;
mod storage;

use sunzi_kernels::{device, error, kernels, math, matrix, plan, runtime, store, testing, tile};

pub use context::{Context, ContextBuilder, DiskProgress, Progress, ProgressCallback};
#[doc(inline)]
pub use device::{Device, cuda_devices, open_cuda};
#[doc(inline)]
pub use error::{Error, ErrorText, IndexBase, MoreBits, Result};
#[doc(inline)]
pub use math::float::{FloatRef, Head};
#[doc(inline)]
pub use matrix::{Destination, MatrixViewMut, Symmetric, SymmetricDestination, SymmetricMatrix};
#[doc(inline)]
pub use matrix::{Diag, MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Op, Side, Uplo};
#[doc(inline)]
pub use matrix::{SparseMatrix, SparseView};
#[doc(inline)]
pub use matrix::{TriangleConflict, triangle_conflict};
pub use ops::balls as ball;
pub use ops::device::{DeviceReport, DeviceSeconds};
pub use ops::nrm2;
pub use ops::{Accuracy, GemmOptions, SyrkOptions, gemm, gemm_into, gemm_with, syrk, syrk_into, syrk_with};
pub use ops::{
    BatchReport, GemmProblem, Operand, SyrkProblem, TrsmProblem, cholesky_batch, cholesky_batch_into,
    cholesky_batch_with, gemm_batch, gemm_batch_into, gemm_batch_with, syrk_batch, syrk_batch_into, syrk_batch_with,
    trsm_batch, trsm_batch_into, trsm_batch_with,
};
pub use ops::{
    Certificate, Cholesky, CholeskyOptions, CholeskyReport, Span, TaskKind, TaskTimes, cholesky, cholesky_into,
    cholesky_with,
};
pub use ops::{CholeskyPlan, Plan, SolvePlan, UpdatePlan};
pub use ops::{EigenvalueInterval, EigenvalueOptions, EigenvalueReport, Extreme};
pub use ops::{GemvOptions, GerOptions, HadamardOptions, SymvOptions, TriangleVectorOptions, VectorReport};
pub use ops::{
    Inertia, InputRounding, Ldlt, LdltCertificate, LdltOptions, RefineOptions, RefineReport, SolveReport, TrsmOptions,
};
pub use ops::{Outcome, Path, Phases, Report};
pub use ops::{
    ProductPlanOptions, plan_cholesky, plan_gemm, plan_gemm_with, plan_inverse, plan_solve, plan_solve_refined,
    plan_syrk, plan_syrk_with, plan_trsm,
};
pub use ops::{Singularity, singularity, singularity_as_written};
pub use ops::{SymmOptions, Syr2kOptions, TrmmOptions, symm, symm_into, symm_with, syr2k, syr2k_into, syr2k_with};
pub use ops::{axpy, axpy_into, dot, gemv, gemv_into, gemv_with, ger, ger_into, ger_with, hadamard, hadamard_into};
pub use ops::{distributed, double, log_det_of, out_of_core, verify};
pub use ops::{extreme_eigenvalue, extreme_eigenvalue_with, pencil_eigenvalue, pencil_eigenvalue_with};
pub use ops::{inverse, inverse_into, inverse_with, ldlt, ldlt_with, trsm, trsm_into, trsm_with};
pub use ops::{sddmm, sddmm_into, spmm, spmm_into};
pub use ops::{solve, solve_into, solve_refined, solve_refined_into, solve_refined_with, solve_with};
pub use ops::{symv, symv_into, symv_with, trmv, trmv_into, trmv_with, trsv, trsv_into, trsv_with};
pub use ops::{trmm, trmm_into, trmm_with};
pub use rug;

/// Runs the examples of the pages as tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;

    #[doc = include_str!("../docs/COOKBOOK.md")]
    struct Cookbook;

    #[doc = include_str!("../docs/PRECISION.md")]
    struct Precision;

    #[doc = include_str!("../docs/FORMATS.md")]
    struct Formats;

    #[doc = include_str!("../docs/OUT_OF_CORE.md")]
    struct OutOfCore;
}
