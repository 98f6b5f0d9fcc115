// sunzi: multiprecision dense linear algebra for C, C++, Julia, and all languages that can call C functions.
//
// cbindgen generates this header from the sources of the library; do not edit it. docs/C_API.md has examples.
//
// Contents, in the order of this header
//
//   Constants and types         sunzi_status, sunzi_options, sunzi_report, sunzi_matrix, sunzi_dist_matrix, ...
//   Contexts                    sunzi_options_default, sunzi_context_new, sunzi_context_from_mpi, sunzi_context_free,
//                               sunzi_context_release
//   Result of the last call     sunzi_last_error, sunzi_last_status, sunzi_last_place, sunzi_last_report
//   Descriptions of matrices    sunzi_mpfr_matrix, sunzi_mpf_matrix, sunzi_limb_matrix, sunzi_limbs_for, sunzi_head,
//                               sunzi_head_exponent
//   Products                    sunzi_syrk, sunzi_gemm
//   Triangular systems          sunzi_trsm
//   Cholesky                    sunzi_cholesky, sunzi_solve, sunzi_cholesky_solve, sunzi_log_det
//   Cholesky, factor kept       sunzi_factor_new, sunzi_factor_free, sunzi_factor_order, sunzi_factor_precision_bits,
//                               sunzi_factor_solve, sunzi_factor_inverse, sunzi_factor_log_det, sunzi_factor_get
//   Correct digits of results   sunzi_factor_condition_bits, sunzi_factor_log_det_digits,
//                               sunzi_factor_solution_digits, sunzi_factor_certified_solution_digits,
//                               sunzi_factor_inverse_digits, sunzi_factor_certified_inverse_digits,
//                               sunzi_factor_certified_log_det_digits; with the suffix _with for rounded operands
//   L D L^T, factors kept       sunzi_ldlt_new, sunzi_ldlt_free, sunzi_ldlt_solve, sunzi_ldlt_solution_digits,
//                               sunzi_ldlt_certified_solution_digits
//   General matrices (LU)       sunzi_lu, sunzi_general_solve, sunzi_lu_solve, sunzi_lu_inverse, sunzi_lu_det
//   Batches                     sunzi_syrk_batch, sunzi_gemm_batch, sunzi_cholesky_batch, sunzi_trsm_batch
//   Memory plans                sunzi_plan_syrk, sunzi_plan_gemm, sunzi_plan_cholesky, sunzi_plan_trsm,
//                               sunzi_plan_solve
//   BLAS and LAPACK             sunzi_rdot, sunzi_rnrm2, sunzi_raxpy; sunzi_rgemv, sunzi_rsymv, sunzi_rger,
//                               sunzi_rtrmv, sunzi_rtrsv; sunzi_rsyrk, sunzi_rgemm, sunzi_rtrsm, sunzi_rtrmm,
//                               sunzi_rsymm, sunzi_rsyr2k; sunzi_rpotrf, sunzi_rpotrs; sunzi_rgetrf, sunzi_rgetrs,
//                               sunzi_rgesv, sunzi_rgetri; with the suffix _mpf for mpf_t
//   Ranks of MPI                sunzi_mpi_size; sunzi_dist_rows, sunzi_dist_scalapack, sunzi_dist_elemental;
//                               sunzi_mpi_syrk, sunzi_mpi_gemm, sunzi_mpi_cholesky, sunzi_mpi_trsm, sunzi_mpi_solve,
//                               sunzi_mpi_inverse, sunzi_mpi_cholesky_solve, sunzi_mpi_log_det;
//                               sunzi_mpi_factor_new, sunzi_mpi_factor_renew, sunzi_mpi_factor_free,
//                               sunzi_mpi_factor_order, sunzi_mpi_factor_precision_bits, sunzi_mpi_factor_solve,
//                               sunzi_mpi_factor_inverse, sunzi_mpi_factor_log_det, sunzi_mpi_factor_get;
//                               sunzi_mpi_plan_syrk, sunzi_mpi_plan_gemm, sunzi_mpi_plan_cholesky,
//                               sunzi_mpi_plan_trsm, sunzi_mpi_plan_solve
//   ScaLAPACK                   sunzi_mpi_grid; psunzi_rsyrk, psunzi_rgemm, psunzi_rtrsm, psunzi_rpotrf,
//                               psunzi_rpotrs; with the suffix _mpf for mpf_t
//   Library                     sunzi_version, sunzi_has, sunzi_status_text
//
// Conventions of all functions
//
// Matrices. An argument `const sunzi_matrix *` describes a matrix in the caller's memory: an array of mpfr_t, an array
// of mpf_t, or raw limbs. Operands and results may have different formats and layouts. This header needs neither mpfr.h
// nor gmp.h: a pointer to entries is a `void *`. The library relies only on the layout of entries that MPFR and GMP
// guarantee in their binary interfaces, so it works with any version of them. It contains copies of both libraries and
// does not call the caller's.
//
// Choices. `layout` is SUNZI_ROW_MAJOR or SUNZI_COL_MAJOR; `trans` is SUNZI_NO_TRANS or SUNZI_TRANS; `uplo` is
// SUNZI_UPPER or SUNZI_LOWER, and for a symmetric matrix also SUNZI_BOTH; `diag` is SUNZI_NON_UNIT or SUNZI_UNIT;
// `side` is SUNZI_LEFT or SUNZI_RIGHT; `format` is SUNZI_MPFR, SUNZI_MPF or SUNZI_LIMBS; `accuracy` is SUNZI_NORM or
// SUNZI_ENTRYWISE. Scalars (`alpha`, `beta`) are 1 x 1 matrices of any format.
//
// Precision. Each operand is used exactly, with the precision that each entry has. A result is computed at the largest
// precision of the entries that are written, called p in this header, and at no less than 2 bits; then each entry is
// rounded to nearest even at its own precision. The precision of an mpf_t counts here as one limb more than
// mpf_get_prec returns, as in GMP's own sums. There is one zero, without a sign. Exponents lie within +-(2^30 - 1), the
// default range of MPFR.
//
// Accuracy. The functions state error bounds before the last rounding to the precision of each entry. |A| is the matrix
// of the absolute values of A, and norm(a_i) is the Euclidean norm of row i of an operand. Contexts with
// SUNZI_ENTRYWISE (the default) use the componentwise bound; contexts with SUNZI_NORM use the bound by norms, which
// takes fewer bits. For the same operands, precisions and options, the bits of a result are the same on any number of
// threads, on any machine, and under any memory limit.
//
// Cost. A cost such as "n^3 / 6 word products per prime" is the number of products of machine words for each word-sized
// prime; a call uses about 2 p / 52 primes.
//
// Errors. A call returns a status; `sunzi_last_error` returns the message. Null pointers, negative sizes, NaN and
// infinities are reported as a status and never abort the program. After a failure all results are unchanged, with one
// exception: SUNZI_EXPONENT_RANGE may occur while a result is stored. Entries outside the selected triangle are never
// read.
//
// Pointers. A pointer is null where null is allowed, or points to live, initialised objects, in the number that the
// sizes state. During a call no other thread may write to the operands of the call, or read or write the arrays of its
// results. For raw limbs (SUNZI_LIMBS) this rule covers all memory from the first entry to the last, including the gaps
// between columns and the other triangle. That memory may be uninitialised, and the library never reads it, but no
// other thread may write to it during the call. Operands and results may be the same arrays, or overlap.
//
// Threads. The library has no state outside contexts. Several threads may make calls on one context at the same time.
//
// Doubles. A call expects the floating-point environment of a program's start: doubles are rounded to nearest
// (FE_TONEAREST) and subnormal numbers are not flushed to 0. In another mode results can be wrong.
//
// BLAS and LAPACK. The functions named `sunzi_r...` have the arguments of the MPLAPACK routine of the same name
// (`Rsyrk`) after the context. All matrices are column-major arrays of mpfr_t, each followed by its leading dimension;
// scalars are pointers to one mpfr_t. Choices are strings, of which only the first letter is read: `uplo` "U" or "L";
// `trans`, `transa` and `transb` "N" or "T" ("C" is "T"); `side` "L" or "R"; `diag` "N" or "U". `incx` is the distance
// between consecutive entries of a vector, in entries; a vector with a negative distance is stored backwards. The
// functions return info: 0 for success; -i if argument i is wrong, counted from 1 after `ctx`; `i > 0` if pivot i is
// zero or not positive, for the functions whose comment states it; and `-1000 - status` for all other failures, such as
// a memory limit.
//
// Collective calls. All ranks of the context's communicator must make a collective call together, in the same order,
// with the same choices, scalars (by value), sizes and distributions, and on contexts of the same accuracy. The
// precisions, formats and layouts of entries may differ between ranks; p is the largest precision over all ranks. A
// result has the bits and the accuracy of the function of the same name on one process, for any distribution and number
// of ranks. A failure on one rank is a failure on all ranks: the rank at fault returns its own status, and the others
// return SUNZI_COMMUNICATION with its message. If an argument differs between ranks, all of them return
// SUNZI_INVALID_ARGUMENT, and the message names the argument and its values. Results are unchanged after a failure,
// unless the communication breaks while a result is stored.
//
// ScaLAPACK. The functions named `psunzi_r...` have the arguments of the ScaLAPACK routine that their comment names,
// after the context. They are collective, and ranks of the communicator outside the grid call them as well. Matrices
// are this rank's column-major arrays of mpfr_t; an operand is the part of a matrix from row `ia` and column `ja` on,
// counted from 1. A part may begin anywhere, and blocks may have any shape; different operands may have different
// blocks. A descriptor has the nine integers of ScaLAPACK: 1; the number of a BLACS context, whose grid
// `sunzi_mpi_grid` must have defined; rows and columns of the whole matrix; rows and columns of a block; the row and
// the column of the grid that hold the first block; the leading dimension on this rank. The functions return info, on
// every rank: 0 for success; -i if argument i is wrong on any rank or differs between ranks, counted from 1 after
// `ctx`; `-(100 i + j)` for entry j of the descriptor that is argument i; `i > 0` if pivot i is zero or not positive,
// for the functions whose comment states it; and `-10000 - status` for all other failures, with SUNZI_COMMUNICATION if
// the cause is a number on another rank.


#ifndef SUNZI_H
#define SUNZI_H

#include <stddef.h>
#include <stdint.h>

// Entries are `mpfr_t`.
#define SUNZI_MPFR 1

// Entries are `mpf_t`.
#define SUNZI_MPF 2

// Entries are heads and limbs in the library's own format; see `sunzi_limb_matrix`.
#define SUNZI_LIMBS 3

// Entry `(i, j)` has the index `i * ld + j` (the value of `CblasRowMajor`).
#define SUNZI_ROW_MAJOR 101

// Entry `(i, j)` has the index `i + j * ld` (the value of `CblasColMajor`).
#define SUNZI_COL_MAJOR 102

// `op(A) = A` (the value of `CblasNoTrans`).
#define SUNZI_NO_TRANS 111

// `op(A) = A^T` (the value of `CblasTrans`).
#define SUNZI_TRANS 112

// The upper triangle, the entries with `row <= column` (the value of `CblasUpper`).
#define SUNZI_UPPER 121

// The lower triangle, the entries with `row >= column` (the value of `CblasLower`).
#define SUNZI_LOWER 122

// Both triangles of a symmetric matrix. Both triangles of an operand are read and must hold the same numbers; both
// triangles of a result are written.
#define SUNZI_BOTH 123

// The diagonal of a triangular matrix is read (the value of `CblasNonUnit`).
#define SUNZI_NON_UNIT 131

// The diagonal of a triangular matrix is taken as ones and is not read (the value of `CblasUnit`).
#define SUNZI_UNIT 132

// The triangular matrix is on the left: `op(T) X = alpha B` (the value of `CblasLeft`).
#define SUNZI_LEFT 141

// The triangular matrix is on the right: `X op(T) = alpha B` (the value of `CblasRight`).
#define SUNZI_RIGHT 142

// The error bound of an entry uses the norms of a row and a column; see Accuracy at the top of this header.
#define SUNZI_NORM 1

// The error bound of an entry uses the magnitudes of its own terms (componentwise accuracy); see Accuracy at the top
// of this header.
#define SUNZI_ENTRYWISE 2

// Every rank holds all rows (or columns); `STAR` in Elemental.
#define SUNZI_ALONG_NONE 0

// Rows (or columns) are distributed over the rows of the grid; `MC` in Elemental.
#define SUNZI_ALONG_GRID_ROW 1

// Rows (or columns) are distributed over the columns of the grid; `MR` in Elemental.
#define SUNZI_ALONG_GRID_COL 2

// Rows (or columns) are distributed over all ranks of the grid, numbered column by column; `VC` in Elemental.
#define SUNZI_ALONG_COL_MAJOR 3

// Rows (or columns) are distributed over all ranks of the grid, numbered row by row; `VR` in Elemental.
#define SUNZI_ALONG_ROW_MAJOR 4

// The result of a call: `SUNZI_OK`, or the reason of a failure. `sunzi_last_error` returns a message with the numbers.
typedef enum sunzi_status {
    // The call succeeded.
    SUNZI_OK = 0,
    // A pointer is null where null is not allowed.
    SUNZI_NULL_POINTER = 1,
    // The value of an argument is not valid: an unknown choice, a scalar that is not finite, an unknown kernel.
    SUNZI_INVALID_ARGUMENT = 2,
    // A size is negative, a leading dimension is too small, or the shapes of two arguments do not match.
    SUNZI_INVALID_SIZE = 3,
    // An entry is not a valid number of its format: it is not initialised, or its limbs violate the format.
    SUNZI_INVALID_ENTRY = 4,
    // An entry is NaN or infinite.
    SUNZI_NOT_FINITE = 5,
    // An exponent lies outside +-(2^30 - 1).
    SUNZI_EXPONENT_RANGE = 6,
    // A precision is below or above the supported range.
    SUNZI_PRECISION = 7,
    // The matrix is not positive definite at this precision; `sunzi_last_place` returns the index of the pivot.
    SUNZI_NOT_POSITIVE_DEFINITE = 8,
    // A triangular matrix has a zero on its diagonal, or a pivot is zero; `sunzi_last_place` returns the index.
    SUNZI_SINGULAR = 9,
    // The memory limit of the context is too small. The message names the least limit for this step of the call; a
    // later step may need more.
    SUNZI_MEMORY_LIMIT = 10,
    // The operating system refused memory, or threads.
    SUNZI_OUT_OF_MEMORY = 11,
    // The progress function stopped the call.
    SUNZI_CANCELLED = 12,
    // A self-check found a wrong residue or a wrong product.
    SUNZI_SELF_CHECK = 13,
    // This machine or this build lacks a kernel or a feature.
    SUNZI_UNAVAILABLE = 14,
    // The ranks could not reach each other, or the call failed on another rank.
    SUNZI_COMMUNICATION = 15,
    // A device failed.
    SUNZI_DEVICE = 16,
    // The library has a defect; please report it.
    SUNZI_INTERNAL = 17,
    // `SUNZI_BOTH` was passed, and the two triangles of a matrix differ. `sunzi_last_place` returns the first entry
    // below the diagonal, in column order, that differs from its mirror image.
    SUNZI_NOT_SYMMETRIC = 18,
} sunzi_status;

// A context: the options of calls, and the threads, tables and memory that calls share. `sunzi_context_new` or
// `sunzi_context_from_mpi` makes it, `sunzi_context_free` frees it.
typedef struct sunzi_context sunzi_context;

// A Cholesky factor in the library's memory. `sunzi_factor_new` makes it, `sunzi_factor_free` frees it. Several
// threads may use it at the same time, and with any context.
typedef struct sunzi_factor sunzi_factor;

// The factors of `A = L D L^T` in the library's memory. `sunzi_ldlt_new` makes them, `sunzi_ldlt_free` frees them.
// Several threads may use them at the same time, and with any context.
typedef struct sunzi_ldlt sunzi_ldlt;

// A Cholesky factor that is distributed over the ranks of a communicator: the tiles of this rank.
// `sunzi_mpi_factor_new` makes it, `sunzi_mpi_factor_renew` replaces it by the factor of another matrix,
// `sunzi_mpi_factor_free` frees it. It may be used with any context that has the same ranks in the same order.
typedef struct sunzi_mpi_factor sunzi_mpi_factor;

// A function that receives the progress of a call: `done` of `total` units of the phase named `phase`. The library
// calls it from any thread of the context. A return value other than 0 stops the call with `SUNZI_CANCELLED`. The
// function must not throw an exception and must not call the library on the same context.
typedef int (*sunzi_progress)(void *user, const char *phase, uint64_t done, uint64_t total);

// Options of a context. A structure of zeros, or a null pointer to it, selects the defaults.
typedef struct sunzi_options {
    // Number of worker threads, 1 to 4096; 0 selects all processors that the process may use.
    int64_t threads;
    // Memory limit of one call in bytes; 0 sets no limit. The limit covers results and copies of operands, but not the
    // caller's arrays. In a call over ranks the limit applies to all ranks of a node together and should be the same
    // on each of them; it then excludes kept factors and messages (1 to 8 MiB on each rank) as well.
    uint64_t memory_bytes;
    // Name of the kernel; null selects the fastest.
    const char *kernel;
    // If not 0, one redundant prime checks each product.
    int self_check;
    // If not 0, a random vector tests each product before it is rounded (Freivalds' test).
    int freivalds;
    // Function for progress and cancellation; may be null.
    sunzi_progress progress;
    // Pointer that is passed to `progress`.
    void *user;
    // Accuracy of all results of this context: `SUNZI_NORM` or `SUNZI_ENTRYWISE`; 0 means `SUNZI_ENTRYWISE`.
    int accuracy;
    // Devices for products and factorisations: names separated by commas, or null for no device. `cuda` names all
    // GPUs, `cuda:0` one GPU, `soft` or `soft:BYTES` a software device in main memory that runs the same code, and
    // `host` the CPU as an additional device. In a call over ranks either all ranks or none of them must have devices.
    // Devices do not change the bits of a result.
    const char *devices;
    // Largest number of bytes used on each device, shared by all ranks that name the device; 0 allows all of its
    // memory.
    uint64_t device_memory_bytes;
} sunzi_options;

// Statistics of a call; see `sunzi_last_report`.
typedef struct sunzi_report {
    // Bytes of the copies of operands and results, in addition to the caller's arrays.
    uint64_t copied_bytes;
    // Bytes in the plan of the call, copies included. Without a memory limit, a solve takes more if its solution
    // exceeds the range of numbers of the first attempt. After a call over ranks: bytes of this rank during the step
    // with the largest need, including messages and this rank's share of the memory that the ranks of a node have in
    // common; the sum over the ranks of a node is the need of the node.
    uint64_t planned_bytes;
    // Largest number of bytes that the library had allocated at one time during the call, minus the number at its
    // start. Memory that the context kept from earlier calls is not counted. The number is exact if no other call of
    // the process overlaps.
    uint64_t peak_bytes;
    // Precision of the result, in bits, before each entry was rounded to its own precision.
    int64_t precision_bits;
    // Accuracy that the result has: `SUNZI_NORM` or `SUNZI_ENTRYWISE`; 0 after a call for which the choice has no
    // meaning.
    int accuracy;
    // Additional working bits that `SUNZI_ENTRYWISE` needed because of the range of the exponents.
    int64_t range_bits;
    // Duration of the call in seconds.
    double seconds;
    // Part of `seconds` spent on reading operands; operands of fewer than 256 entries are not counted.
    double read_seconds;
    // Part of `seconds` spent on storing results; results of fewer than 256 entries are not counted.
    double write_seconds;
} sunzi_report;

// The description of a matrix in the caller's memory. `sunzi_mpfr_matrix`, `sunzi_mpf_matrix` and `sunzi_limb_matrix`
// make it; a program may also fill in the fields itself. A description neither copies nor owns the entries.
typedef struct sunzi_matrix {
    // The format of the entries: `SUNZI_MPFR`, `SUNZI_MPF` or `SUNZI_LIMBS`.
    int32_t format;
    // `SUNZI_ROW_MAJOR` or `SUNZI_COL_MAJOR`.
    int32_t layout;
    // Number of rows; may be 0.
    int64_t rows;
    // Number of columns; may be 0.
    int64_t cols;
    // Leading dimension: the distance, in entries, between consecutive rows (row-major) or columns (column-major).
    int64_t ld;
    // Pointer to the first `mpfr_t`, `mpf_t` or head. The library never writes to the entries of an input operand.
    void *entries;
    // Only for `SUNZI_LIMBS`: pointer to the limbs of the first entry.
    uint64_t *limbs;
    // Only for `SUNZI_LIMBS`: precision of all entries, in bits.
    int64_t precision_bits;
} sunzi_matrix;

// For a call that estimates or proves correct digits: the roundings that its operands had before the call, each entry
// to nearest. A number such as `1/3` is rounded in every binary format; the digits then refer to the answer of the
// original problem, before these roundings. A structure of zeros, or a null pointer to it, means that the operands are
// exact.
typedef struct sunzi_rounding {
    // Precision, in bits, to which the entries of the matrix were rounded; 0 if they are exact.
    int64_t matrix_bits;
    // Precision, in bits, to which the entries of the right-hand sides were rounded; 0 if they are exact.
    int64_t right_bits;
} sunzi_rounding;

// Memory that a call would take; see `sunzi_plan_syrk`.
typedef struct sunzi_plan {
    // Bytes of the copies of operands and of the result, in addition to the caller's arrays.
    uint64_t copied_bytes;
    // Bytes of the whole call, copies and result included.
    uint64_t planned_bytes;
} sunzi_plan;

// The description of a matrix that is distributed over the ranks of a communicator: the part of this rank, and the
// rule of the distribution. `sunzi_dist_rows`, `sunzi_dist_scalapack` and `sunzi_dist_elemental` make it; a program
// may also fill in the fields itself. A description neither copies nor owns the entries.
//
// `row_along` selects a numbering of the ranks with n numbers in total. Row i of the matrix belongs to the ranks with
// the number `(i / row_block + row_first) mod n`; columns follow the same rule with the fields of the columns. A rank
// stores its entries in the order of their indices. A block size of 0 means consecutive rows: number 0 holds the first
// rows, number 1 the next ones, and each rank as many rows as its `local` has.
typedef struct sunzi_dist_matrix {
    // The entries of this rank.
    struct sunzi_matrix local;
    // Number of rows of the whole matrix. With a block size of 0 it may be -1: the sum over the ranks.
    int64_t rows;
    // Number of columns of the whole matrix; -1 as for `rows`.
    int64_t cols;
    // Number of rows of the grid of ranks.
    int64_t grid_rows;
    // Number of columns of the grid of ranks.
    int64_t grid_cols;
    // Order of the ranks in the grid: `SUNZI_ROW_MAJOR` or `SUNZI_COL_MAJOR`.
    int32_t grid_order;
    // Numbering of the ranks that determines their rows: one of the `SUNZI_ALONG_` constants.
    int32_t row_along;
    // Numbering of the ranks that determines their columns: one of the `SUNZI_ALONG_` constants.
    int32_t col_along;
    // Number of rows of a block.
    int64_t row_block;
    // Number of columns of a block.
    int64_t col_block;
    // The rank number that holds the first block of rows.
    int64_t row_first;
    // The rank number that holds the first block of columns.
    int64_t col_first;
} sunzi_dist_matrix;

// Memory that a call over ranks would take; see `sunzi_mpi_plan_syrk`.
typedef struct sunzi_mpi_plan {
    // Bytes of the copies of operands and of the result on this rank, in addition to its arrays.
    uint64_t copied_bytes;
    // Largest number of bytes on this rank at one time, including copies and an even share of the memory that the
    // ranks of its node have in common.
    uint64_t rank_bytes;
    // Upper bound of the bytes of all ranks of this rank's node together. With this number as `memory_bytes` the call
    // is not refused, provided that its numbers and the shares of the ranks are as the plan assumes.
    uint64_t node_bytes;
} sunzi_mpi_plan;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the default options: all processors, no memory limit, the fastest kernel, no checks.
struct sunzi_options sunzi_options_default(void);

// Makes a context with `options` (null for the defaults) and stores it in `*ctx`.
//
// After a failure `*ctx` is a context as well: `sunzi_last_error` returns the reason, and every call on it fails with
// the same status. The caller must free it in both cases.
//
// Forks: a child process may continue to use the context, and the first call there starts new threads. Calls that were
// running during the fork, devices, and communicators remain with the parent: in the child, calls over ranks return
// `SUNZI_COMMUNICATION`, and `sunzi_context_free` frees the child's own memory without communication.
enum sunzi_status sunzi_context_new(const struct sunzi_options *options, struct sunzi_context **ctx);

// Makes a context for the calls named `sunzi_mpi_...` on the ranks of an MPI communicator, which is passed as its
// Fortran handle `MPI_Comm_c2f(comm)`. All other calls on the context run on the calling rank only. Collective over
// the communicator, which is duplicated.
//
// The program must initialise MPI before this call and finalise it after `sunzi_context_free`. Threads of the context
// never call MPI. An intercommunicator is refused on all ranks of both groups. Ranks with several contexts must make
// and free them in the same order. A build without the feature `mpi` returns `SUNZI_UNAVAILABLE`.
//
// `communicator` must be the handle of a live communicator, or of no communicator.
enum sunzi_status sunzi_context_from_mpi(int communicator,
                                         const struct sunzi_options *options,
                                         struct sunzi_context **ctx);

// Frees a context; a null pointer is ignored. No other call on the context may be running. The texts of
// `sunzi_last_error` become invalid. Collective for a context on a communicator, unless MPI has been finalised.
//
// `ctx` must be null or a result of `sunzi_context_new` or `sunzi_context_from_mpi`, and must not be used afterwards.
void sunzi_context_free(struct sunzi_context *ctx);

// Frees the memory that the context keeps between calls: copies, windows and work memory. Tables and threads stay.
enum sunzi_status sunzi_context_release(const struct sunzi_context *ctx);

// Returns the reason why the calling thread's last call on the context failed, as one line with the numbers; an empty
// string after a success. The text is valid until the next call of the same thread on the context.
const char *sunzi_last_error(const struct sunzi_context *ctx);

// Returns the status of the calling thread's last call on the context, including calls that return info.
enum sunzi_status sunzi_last_status(const struct sunzi_context *ctx);

// Stores the row and the column, counted from 0, of the entry at which the calling thread's last call failed, as
// `sunzi_last_error` names them. For a matrix that is not positive definite or is singular, both numbers are the index
// of the pivot. Both are -1 if the failure has no place. Null pointers are ignored.
void sunzi_last_place(const struct sunzi_context *ctx, int64_t *row, int64_t *column);

// Stores the statistics of the last successful call on the context, by any thread, in `*report`.
enum sunzi_status sunzi_last_report(const struct sunzi_context *ctx, struct sunzi_report *report);

// Returns the description of a `rows x cols` matrix of `mpfr_t`; `entries` points to the first entry, `ld` is the
// leading dimension.
struct sunzi_matrix sunzi_mpfr_matrix(int32_t layout, int64_t rows, int64_t cols, const void *entries, int64_t ld);

// Returns the description of a `rows x cols` matrix of `mpf_t`; `entries` points to the first entry, `ld` is the
// leading dimension.
struct sunzi_matrix sunzi_mpf_matrix(int32_t layout, int64_t rows, int64_t cols, const void *entries, int64_t ld);

// Returns the description of a `rows x cols` matrix in raw limbs. The entry with index i (see `layout` and `ld`) has
// the head `heads[i]` and the w limbs `limbs[i * w]` to `limbs[i * w + w - 1]`, where
// `w = sunzi_limbs_for(precision_bits)`. The library reads operands of this format in place, without a copy.
//
// Format: a number is `(-1)^sign * 0.s * 2^exponent`. The significand s is stored with the least limb first; the top
// bit of the last limb is set, and the bits below the precision are 0. `sunzi_head` packs sign and exponent. The
// number 0 has the head 0 and limbs of 0.
struct sunzi_matrix sunzi_limb_matrix(int32_t layout,
                                      int64_t rows,
                                      int64_t cols,
                                      const uint64_t *heads,
                                      const uint64_t *limbs,
                                      int64_t ld,
                                      int64_t precision_bits);

// Returns the number of limbs of a number with `precision_bits` bits; 0 for a precision below 1.
int64_t sunzi_limbs_for(int64_t precision_bits);

// Returns the head of a number other than 0: `exponent << 2 | 2 | negative`. Returns 0 if the exponent lies outside
// +-(2^30 - 1).
uint64_t sunzi_head(int negative, int64_t exponent);

// Returns the exponent in a head.
int64_t sunzi_head_exponent(uint64_t head);

// Computes `C := alpha A A^T + beta C` (`trans = SUNZI_NO_TRANS`) or `C := alpha A^T A + beta C` (`SUNZI_TRANS`).
//
// Arguments:
// - `uplo`: the triangle of C that is read and written. With `SUNZI_BOTH` the whole symmetric C is written; if C is
//   read, its two triangles must hold the same numbers (else `SUNZI_NOT_SYMMETRIC`). The other triangle is neither
//   read nor written.
// - `alpha`, `beta`: 1 x 1; null means 1 for `alpha` and 0 for `beta`. If `alpha` is 0, A is not read; if `beta` is 0,
//   C is not read.
// - `a`: n x k for `SUNZI_NO_TRANS`, k x n for `SUNZI_TRANS`.
// - `c`: n x n.
//
// Accuracy, for `alpha = 1` and `beta = 0`: `|computed - exact|_ij <= 2^(1 - p) (|A| |A|^T)_ij`; under `SUNZI_NORM`,
// `2^(1 - p) norm(a_i) norm(a_j)`. With scalars the product has the same error; the sum of alpha times this product
// and beta C is rounded once. Then each entry is rounded to its own precision.
//
// Cost: n^2 k / 2 word products per prime.
enum sunzi_status sunzi_syrk(const struct sunzi_context *ctx,
                             int32_t uplo,
                             int32_t trans,
                             const struct sunzi_matrix *alpha,
                             const struct sunzi_matrix *a,
                             const struct sunzi_matrix *beta,
                             const struct sunzi_matrix *c);

// Computes `C := alpha A diag(d) A^T + beta C` (`trans = SUNZI_NO_TRANS`) or `C := alpha A^T diag(d) A + beta C`
// (`SUNZI_TRANS`).
//
// Arguments:
// - `d`: k x 1 or 1 x k, weights of either sign. If `alpha` is 0, d is not read.
// - all others as in `sunzi_syrk`.
//
// Accuracy, for `alpha = 1` and `beta = 0`: `|computed - exact|_ij <= 2^(1 - p) (|A| |D| |A|^T)_ij`; under
// `SUNZI_NORM`, `2^(1 - p) r_i r_j`, where `r_i` is the square root of `(A |D| A^T)_ii`. Scalars as in `sunzi_syrk`.
//
// Cost: between half and five eighths of that of `sunzi_gemm`.
enum sunzi_status sunzi_weighted_gram(const struct sunzi_context *ctx,
                                      int32_t uplo,
                                      int32_t trans,
                                      const struct sunzi_matrix *alpha,
                                      const struct sunzi_matrix *a,
                                      const struct sunzi_matrix *d,
                                      const struct sunzi_matrix *beta,
                                      const struct sunzi_matrix *c);

// Computes `C := alpha op(A) op(B) + beta C`.
//
// Arguments:
// - `alpha`, `beta`: 1 x 1; null means 1 for `alpha` and 0 for `beta`. If `alpha` is 0, A and B are not read; if
//   `beta` is 0, C is not read.
// - `a`, `b`, `c`: `op(A)` is m x k, `op(B)` is k x n, and C is m x n.
//
// Accuracy, for `alpha = 1` and `beta = 0`: `|computed - exact|_ij <= 2^(1 - p) (|op(A)| |op(B)|)_ij`; under
// `SUNZI_NORM`, `2^(1 - p) norm(row i of op(A)) norm(column j of op(B))`. Scalars as in `sunzi_syrk`.
//
// Cost: m n k word products per prime.
enum sunzi_status sunzi_gemm(const struct sunzi_context *ctx,
                             int32_t trans_a,
                             int32_t trans_b,
                             const struct sunzi_matrix *alpha,
                             const struct sunzi_matrix *a,
                             const struct sunzi_matrix *b,
                             const struct sunzi_matrix *beta,
                             const struct sunzi_matrix *c);

// Solves a triangular system in place: `B := alpha op(T)^-1 B` (`side = SUNZI_LEFT`) or `B := alpha B op(T)^-1`
// (`SUNZI_RIGHT`).
//
// Arguments:
// - `uplo`, `diag`: the triangle of T that is read, and whether its diagonal is read.
// - `alpha`: 1 x 1; null means 1. If `alpha` is 0, T is not read and B becomes 0.
// - `t`: n x n.
// - `b`: n x m for `SUNZI_LEFT`, m x n for `SUNZI_RIGHT`.
//
// Accuracy, for the left side: `|alpha B - op(T) X|_ij <= 2^(2 - p) (|op(T)| |X|)_ij` for any condition of T; under
// `SUNZI_NORM`, `2^(1 - p) (norm(t_i) norm(x_j) + |alpha b_ij|)`. Then each entry is rounded to its own precision.
//
// Errors: `SUNZI_SINGULAR` if the diagonal of T has a zero.
//
// Cost: n^2 m / 2 word products per prime.
enum sunzi_status sunzi_trsm(const struct sunzi_context *ctx,
                             int32_t side,
                             int32_t uplo,
                             int32_t trans,
                             int32_t diag,
                             const struct sunzi_matrix *alpha,
                             const struct sunzi_matrix *t,
                             const struct sunzi_matrix *b);

// Replaces a symmetric positive definite A by its Cholesky factor: L with `A = L L^T` in the lower triangle, or
// `U = L^T` in the upper triangle.
//
// Arguments:
// - `uplo`: the triangle of A that is read and written; the other triangle is neither read nor written. With
//   `SUNZI_BOTH` the two triangles must hold the same numbers, and A becomes L with zeros above the diagonal.
// - `a`: n x n.
//
// Accuracy: `|A - L L^T|_ij <= 2^(2 - p) (|L| |L^T|)_ij` for any order and condition. Under `SUNZI_NORM`, or if
// `sunzi_last_report` returns the accuracy `SUNZI_NORM`, the bound is `2^(2 - p) sqrt(a_ii a_jj)`. Then each entry is
// rounded to its own precision.
//
// Errors: `SUNZI_NOT_POSITIVE_DEFINITE` with the index of the first pivot that is not positive as computed; A is
// unchanged then. `SUNZI_NOT_SYMMETRIC` if `SUNZI_BOTH` was passed and the triangles differ.
//
// Cost: n^3 / 6 word products per prime.
enum sunzi_status sunzi_cholesky(const struct sunzi_context *ctx, int32_t uplo, const struct sunzi_matrix *a);

// Computes `B := A^-1 B` for a symmetric positive definite A, which is not changed.
//
// Arguments:
// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
// - `a`: n x n.
// - `b`: n x m, the right-hand sides, which the solution X replaces.
//
// Accuracy, for each column: `|b - A x|_i <= 2^(4 - p) ((|L| |L^T| |x|)_i + |b_i|)`; under `SUNZI_NORM`,
// `2^(4 - p) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)`. p is the largest precision of the entries of B; A is
// factored at this precision as well. Then each entry is rounded to its own precision.
//
// Errors: those of `sunzi_cholesky`.
//
// Cost: one factorisation and one solve with m right-hand sides. For several solves with one A, see
// `sunzi_factor_new`.
enum sunzi_status sunzi_solve(const struct sunzi_context *ctx,
                              int32_t uplo,
                              const struct sunzi_matrix *a,
                              const struct sunzi_matrix *b);

// Computes `B := A^-1 B` from a Cholesky factor in an array, as `sunzi_cholesky` leaves it.
//
// Arguments:
// - `uplo`: the triangle of `factor` that holds the factor (`SUNZI_LOWER` or `SUNZI_UPPER`); only this triangle is
//   read.
// - `factor`: n x n.
// - `b`: n x m, the right-hand sides, which the solution replaces.
//
// Accuracy: as `sunzi_solve`, with p the smaller of the largest precision of B and the precision of the factor.
//
// Errors: `SUNZI_SINGULAR` if the diagonal of the factor has a zero.
enum sunzi_status sunzi_cholesky_solve(const struct sunzi_context *ctx,
                                       int32_t uplo,
                                       const struct sunzi_matrix *factor,
                                       const struct sunzi_matrix *b);

// Computes `result := log det A = 2 sum_i log |l_ii|` from a Cholesky factor in an array, of which only the diagonal
// is read. `factor` is n x n; `result` is 1 x 1, and its precision is the precision of the logarithm.
//
// Errors: `SUNZI_SINGULAR` if the diagonal has a zero.
enum sunzi_status sunzi_log_det(const struct sunzi_context *ctx,
                                const struct sunzi_matrix *factor,
                                const struct sunzi_matrix *result);

// Factors a symmetric positive definite A as `A = L L^T`, keeps the factor in the library's memory, and stores a
// handle in `*factor` (null after a failure). A is not changed.
//
// Arguments:
// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
// - `precision_bits`: precision of the factor; 0 selects the largest precision of the entries that are read.
// - `a`: n x n.
//
// Accuracy, errors and cost: as `sunzi_cholesky`, with p the precision of the factor.
enum sunzi_status sunzi_factor_new(const struct sunzi_context *ctx,
                                   int32_t uplo,
                                   int64_t precision_bits,
                                   const struct sunzi_matrix *a,
                                   struct sunzi_factor **factor);

// Frees a factor; a null pointer is ignored.
//
// `factor` must be null or a result of `sunzi_factor_new`, and must not be used afterwards.
void sunzi_factor_free(struct sunzi_factor *factor);

// Returns the number of rows of the factored matrix; -1 for a null pointer.
//
// `factor` must be null or a live factor.
int64_t sunzi_factor_order(const struct sunzi_factor *factor);

// Returns the precision of the factor in bits; -1 for a null pointer.
//
// `factor` must be null or a live factor.
int64_t sunzi_factor_precision_bits(const struct sunzi_factor *factor);

// Computes `B := A^-1 B` with a kept factor of A. `b` is n x m, the right-hand sides, which the solution replaces.
// Accuracy as `sunzi_cholesky_solve`.
enum sunzi_status sunzi_factor_solve(const struct sunzi_context *ctx,
                                     const struct sunzi_factor *factor,
                                     const struct sunzi_matrix *b);

// Computes `inverse := A^-1` from a kept factor of A.
//
// Arguments:
// - `uplo`: the triangle of `inverse` that is written; with `SUNZI_BOTH` the whole matrix is written.
// - `inverse`: n x n.
//
// Accuracy: `|inverse - Z|_ij <= 2^(2 - p) sqrt(z_ii z_jj)` with `Z = (L L^T)^-1` for the stored factor L. Then each
// entry is rounded to its own precision.
//
// Cost: n^3 / 3 word products per prime, with additional bits: half the binary logarithm of the condition number.
enum sunzi_status sunzi_factor_inverse(const struct sunzi_context *ctx,
                                       const struct sunzi_factor *factor,
                                       int32_t uplo,
                                       const struct sunzi_matrix *inverse);

// Computes `result := log det A` from a kept factor of A. `result` is 1 x 1, and its precision is the precision of the
// logarithm.
enum sunzi_status sunzi_factor_log_det(const struct sunzi_context *ctx,
                                       const struct sunzi_factor *factor,
                                       const struct sunzi_matrix *result);

// Stores a kept factor in one triangle of the n x n matrix `a`: L in the lower triangle (`SUNZI_LOWER`) or `L^T` in
// the upper triangle (`SUNZI_UPPER`). The other triangle is not written.
enum sunzi_status sunzi_factor_get(const struct sunzi_context *ctx,
                                   const struct sunzi_factor *factor,
                                   int32_t uplo,
                                   const struct sunzi_matrix *a);

// Estimates the number of bits that solves with a kept factor lose: `*bits` is log2 of the norm of the inverse of A
// after A has been scaled by powers of two to a diagonal of about 1.
//
// Cost: a few solves with one right-hand side at the first call; the factor keeps the result.
enum sunzi_status sunzi_factor_condition_bits(const struct sunzi_context *ctx,
                                              const struct sunzi_factor *factor,
                                              double *bits);

// Estimates the number of correct decimal digits of `sunzi_factor_log_det` at the precision of the factor, for an
// exact A, and stores it in `*digits`.
//
// Cost: a few solves with one right-hand side.
enum sunzi_status sunzi_factor_log_det_digits(const struct sunzi_context *ctx,
                                              const struct sunzi_factor *factor,
                                              double *digits);

// Same as `sunzi_factor_log_det_digits`, for a matrix that was rounded as `rounding` states.
enum sunzi_status sunzi_factor_log_det_digits_with(const struct sunzi_context *ctx,
                                                   const struct sunzi_factor *factor,
                                                   const struct sunzi_rounding *rounding,
                                                   double *digits);

// Estimates the number of correct decimal digits of a solution X of `A X = B`, and stores it in `*digits`: `-log10` of
// the error of the worst column, relative to the largest entry of that column.
//
// Arguments:
// - `factor`: the factor of A.
// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
// - `a`: n x n, the matrix that was factored.
// - `b`, `x`: n x m, the right-hand sides and the solution.
//
// Cost: a product of A with a column and a solve, for each of up to four columns.
enum sunzi_status sunzi_factor_solution_digits(const struct sunzi_context *ctx,
                                               const struct sunzi_factor *factor,
                                               int32_t uplo,
                                               const struct sunzi_matrix *a,
                                               const struct sunzi_matrix *b,
                                               const struct sunzi_matrix *x,
                                               double *digits);

// Same as `sunzi_factor_solution_digits`, for operands that were rounded as `rounding` states.
enum sunzi_status sunzi_factor_solution_digits_with(const struct sunzi_context *ctx,
                                                    const struct sunzi_factor *factor,
                                                    const struct sunzi_rounding *rounding,
                                                    int32_t uplo,
                                                    const struct sunzi_matrix *a,
                                                    const struct sunzi_matrix *b,
                                                    const struct sunzi_matrix *x,
                                                    double *digits);

// Computes a proven lower bound of the number of correct decimal digits of a solution X of `A X = B`, relative to the
// largest entry of each column, and stores it in `*digits`. The bound is 0 if nothing can be proven, because the proof
// that A is positive definite did not succeed. Arguments as in `sunzi_factor_solution_digits`.
//
// Cost: a second factorisation, whose precision exceeds the logarithm of the condition number of the scaled A by some
// tens of bits; a product of A with X, and a solve.
enum sunzi_status sunzi_factor_certified_solution_digits(const struct sunzi_context *ctx,
                                                         const struct sunzi_factor *factor,
                                                         int32_t uplo,
                                                         const struct sunzi_matrix *a,
                                                         const struct sunzi_matrix *b,
                                                         const struct sunzi_matrix *x,
                                                         double *digits);

// Same as `sunzi_factor_certified_solution_digits`, for operands that were rounded as `rounding` states.
enum sunzi_status sunzi_factor_certified_solution_digits_with(const struct sunzi_context *ctx,
                                                              const struct sunzi_factor *factor,
                                                              const struct sunzi_rounding *rounding,
                                                              int32_t uplo,
                                                              const struct sunzi_matrix *a,
                                                              const struct sunzi_matrix *b,
                                                              const struct sunzi_matrix *x,
                                                              double *digits);

// Estimates the number of correct decimal digits of an inverse of A, relative to its largest entry, and stores it in
// `*digits`.
//
// Arguments:
// - `factor`: the factor of A.
// - `uplo`: the triangle of both matrices that is read; with `SUNZI_BOTH` the two triangles of each matrix must hold
//   the same numbers.
// - `a`: n x n, the matrix that was factored.
// - `inverse`: n x n.
//
// Cost: a product of A with a column and a solve, for each of up to four columns.
enum sunzi_status sunzi_factor_inverse_digits(const struct sunzi_context *ctx,
                                              const struct sunzi_factor *factor,
                                              int32_t uplo,
                                              const struct sunzi_matrix *a,
                                              const struct sunzi_matrix *inverse,
                                              double *digits);

// Same as `sunzi_factor_inverse_digits`, for a matrix that was rounded as `rounding` states.
enum sunzi_status sunzi_factor_inverse_digits_with(const struct sunzi_context *ctx,
                                                   const struct sunzi_factor *factor,
                                                   const struct sunzi_rounding *rounding,
                                                   int32_t uplo,
                                                   const struct sunzi_matrix *a,
                                                   const struct sunzi_matrix *inverse,
                                                   double *digits);

// Computes a proven lower bound of the number of correct decimal digits of an inverse of A, relative to its largest
// entry, and stores it in `*digits`; the bound is 0 if nothing can be proven. Arguments as in
// `sunzi_factor_inverse_digits`.
//
// Cost: as `sunzi_factor_certified_solution_digits` with n right-hand sides.
enum sunzi_status sunzi_factor_certified_inverse_digits(const struct sunzi_context *ctx,
                                                        const struct sunzi_factor *factor,
                                                        int32_t uplo,
                                                        const struct sunzi_matrix *a,
                                                        const struct sunzi_matrix *inverse,
                                                        double *digits);

// Same as `sunzi_factor_certified_inverse_digits`, for a matrix that was rounded as `rounding` states.
enum sunzi_status sunzi_factor_certified_inverse_digits_with(const struct sunzi_context *ctx,
                                                             const struct sunzi_factor *factor,
                                                             const struct sunzi_rounding *rounding,
                                                             int32_t uplo,
                                                             const struct sunzi_matrix *a,
                                                             const struct sunzi_matrix *inverse,
                                                             double *digits);

// Computes a proven lower bound of the number of correct decimal digits of `sunzi_factor_log_det` at the precision of
// the factor, and stores it in `*digits`; the bound is 0 if nothing can be proven. `a` is the n x n matrix that was
// factored, of which the triangle `uplo` is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
//
// Cost: as `sunzi_factor_certified_solution_digits`, and a product of the factor with its transpose.
enum sunzi_status sunzi_factor_certified_log_det_digits(const struct sunzi_context *ctx,
                                                        const struct sunzi_factor *factor,
                                                        int32_t uplo,
                                                        const struct sunzi_matrix *a,
                                                        double *digits);

// Same as `sunzi_factor_certified_log_det_digits`, for a matrix that was rounded as `rounding` states.
enum sunzi_status sunzi_factor_certified_log_det_digits_with(const struct sunzi_context *ctx,
                                                             const struct sunzi_factor *factor,
                                                             const struct sunzi_rounding *rounding,
                                                             int32_t uplo,
                                                             const struct sunzi_matrix *a,
                                                             double *digits);

// Factors a symmetric A as `A = L D L^T` without pivoting, with L unit lower triangular and D diagonal, keeps the
// factors in the library's memory, and stores a handle in `*factor` (null after a failure). A need not be positive
// definite and is not changed.
//
// Arguments:
// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
// - `precision_bits`: precision of the factors; 0 selects the largest precision of the entries that are read.
// - `a`: n x n.
//
// Accuracy: `|A - L D L^T|_ij <= 2^(3 - p) sqrt(g_i g_j)` with p the precision of the factors and
// `g_i = (|L| |D| |L^T|)_ii`. For quasi-definite matrices g_i is moderate; for other matrices it may have any size,
// and `sunzi_ldlt_solution_digits` shows how many digits of a solution are correct.
//
// Errors: `SUNZI_SINGULAR` if a pivot is 0.
enum sunzi_status sunzi_ldlt_new(const struct sunzi_context *ctx,
                                 int32_t uplo,
                                 int64_t precision_bits,
                                 const struct sunzi_matrix *a,
                                 struct sunzi_ldlt **factor);

// Frees the factors; a null pointer is ignored.
//
// `factor` must be null or a result of `sunzi_ldlt_new`, and must not be used afterwards.
void sunzi_ldlt_free(struct sunzi_ldlt *factor);

// Computes `B := A^-1 B` with kept factors of A. `b` is n x m, the right-hand sides, which the solution replaces.
enum sunzi_status sunzi_ldlt_solve(const struct sunzi_context *ctx,
                                   const struct sunzi_ldlt *factor,
                                   const struct sunzi_matrix *b);

// Estimates the number of correct decimal digits of a solution X of `A X = B`, and stores it in `*digits`: `-log10` of
// the error of the worst column, relative to the largest entry of that column. The number is 0 if the factors are too
// inaccurate for an estimate.
//
// Arguments:
// - `factor`: the factors of A.
// - `rounding`: the roundings of A and B before the call; null means that A and B are exact.
// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
// - `a`: n x n, the matrix that was factored.
// - `b`, `x`: n x m, the right-hand sides and the solution.
//
// Cost: at most five solves with two right-hand sides, a product of A with X, and a solve.
enum sunzi_status sunzi_ldlt_solution_digits(const struct sunzi_context *ctx,
                                             const struct sunzi_ldlt *factor,
                                             const struct sunzi_rounding *rounding,
                                             int32_t uplo,
                                             const struct sunzi_matrix *a,
                                             const struct sunzi_matrix *b,
                                             const struct sunzi_matrix *x,
                                             double *digits);

// Computes a proven lower bound of the number of correct decimal digits of a solution X of `A X = B`, relative to the
// largest entry of each column, and stores it in `*digits`; the bound is 0 if nothing can be proven. Arguments as in
// `sunzi_ldlt_solution_digits`.
//
// Cost: two factorisations, with the bits that the condition and the growth of the factors require, and the cost of
// `sunzi_ldlt_solution_digits`.
enum sunzi_status sunzi_ldlt_certified_solution_digits(const struct sunzi_context *ctx,
                                                       const struct sunzi_ldlt *factor,
                                                       const struct sunzi_rounding *rounding,
                                                       int32_t uplo,
                                                       const struct sunzi_matrix *a,
                                                       const struct sunzi_matrix *b,
                                                       const struct sunzi_matrix *x,
                                                       double *digits);

// Factors a square A as `P A = L U` with partial pivoting, and replaces it by the factors as LAPACK's `getrf` stores
// them: U on and above the diagonal, and L below it, whose diagonal of ones is not stored.
//
// Arguments:
// - `a`: n x n.
// - `rows`: receives n indices from 0: row i of `P A` is row `rows[i]` of A.
//
// In each column the largest candidate becomes the pivot, and the first one among equals. If the largest entries of
// the rows, relative to those of their columns, differ by more than 2^32, pivots are chosen as if powers of two had
// scaled the rows to equal size.
//
// Accuracy: `|P A - L U|_ij <= 2^(2 - p) (|L| |U|)_ij`. Under `SUNZI_NORM`, or if `sunzi_last_report` returns the
// accuracy `SUNZI_NORM`, the bound is `2^(2 - p) ((|L| |U|)_ij + max(m_j, |u_jj|))`, where m_j is the largest
// magnitude in column j of A. Then each entry is rounded to its own precision.
//
// Errors: `SUNZI_SINGULAR` with the index of the first column in which all candidates for the pivot are 0 at the
// working precision; A and `rows` are unchanged then.
//
// Cost: n^3 / 3 word products per prime.
enum sunzi_status sunzi_lu(const struct sunzi_context *ctx, const struct sunzi_matrix *a, size_t *rows);

// Computes `B := A^-1 B` for any square A, which is not changed.
//
// Arguments:
// - `a`: n x n.
// - `b`: n x m, the right-hand sides, which the solution X replaces.
//
// Accuracy, for each column: `|b - A x|_i <= 2^(4 - p) (P^T |L| |U| |x|)_i`; under `SUNZI_NORM` the error of the
// factors is added, see `sunzi_lu`. p is the largest precision of the entries of B; A is factored at this precision as
// well. Then each entry is rounded to its own precision.
//
// Errors: those of `sunzi_lu`.
//
// Cost: one factorisation and one solve with m right-hand sides. For several solves with one A, see `sunzi_lu_solve`.
// If A is symmetric positive definite, `sunzi_solve` needs half as many word products.
enum sunzi_status sunzi_general_solve(const struct sunzi_context *ctx,
                                      const struct sunzi_matrix *a,
                                      const struct sunzi_matrix *b);

// Computes `B := op(A)^-1 B` from the factors of A in an array, as `sunzi_lu` leaves them.
//
// Arguments:
// - `trans`: `SUNZI_NO_TRANS` solves `A X = B`, `SUNZI_TRANS` solves `A^T X = B`.
// - `factors`: n x n, L and U.
// - `rows`: n indices, the order of the rows.
// - `b`: n x m, the right-hand sides, which the solution replaces.
//
// Accuracy, for each column: `|b - A x|_i <= 2^(4 - p) (P^T |L| |U| |x|)_i`, or, for the transpose, `|b - A^T x|_i <=
// 2^(4 - p) (|U^T| |L^T| |P x|)_i`. The bounds are those for factors with componentwise accuracy; the error of other
// factors is added. p is the smaller of the largest precision of B and the precision of the factors. Then each entry
// is rounded to its own precision.
//
// Errors: `SUNZI_SINGULAR` if the diagonal of U has a zero; `SUNZI_INVALID_ARGUMENT` if `rows` does not have each of
// the numbers from 0 to n - 1 once.
//
// Cost: n^2 m word products per prime.
enum sunzi_status sunzi_lu_solve(const struct sunzi_context *ctx,
                                 int32_t trans,
                                 const struct sunzi_matrix *factors,
                                 const size_t *rows,
                                 const struct sunzi_matrix *b);

// Computes `inverse := A^-1` from the factors of A in an array, as `sunzi_lu` leaves them: the solution for the
// columns of the identity.
//
// Arguments:
// - `factors`: n x n, L and U.
// - `rows`: n indices, the order of the rows.
// - `inverse`: n x n; it may be the array of the factors.
//
// Accuracy and errors: as `sunzi_lu_solve`, with the precision of `inverse` in place of that of B.
//
// Cost: n^3 word products per prime.
enum sunzi_status sunzi_lu_inverse(const struct sunzi_context *ctx,
                                   const struct sunzi_matrix *factors,
                                   const size_t *rows,
                                   const struct sunzi_matrix *inverse);

// Computes `result := det A` from the factors of A in an array, of which only the diagonal is read. `factors` is
// n x n; `rows` has n indices, the order of the rows; `result` is 1 x 1, and its precision is the precision of the
// determinant. The determinant is 1 if n is 0, and 0 if the diagonal of U has a zero.
//
// Accuracy: 2^(1 - p) relative to the determinant of `P^T L U`, taking the factors as exact.
//
// Errors: `SUNZI_INVALID_ARGUMENT` as in `sunzi_lu_solve`.
enum sunzi_status sunzi_lu_det(const struct sunzi_context *ctx,
                               const struct sunzi_matrix *factors,
                               const size_t *rows,
                               const struct sunzi_matrix *result);

// Computes `C_i := alpha A_i A_i^T + beta C_i` or `C_i := alpha A_i^T A_i + beta C_i` for `count` independent
// problems.
//
// Arguments:
// - `a`, `c`: arrays of `count` descriptions; shapes and precisions may differ between problems.
// - `statuses`: array for the status of each problem, or null.
// - All other arguments as in `sunzi_syrk`, common to all problems. The arrays of different problems must not overlap
//   if one of them is written.
//
// The threads of the context share the problems. Each result has the same bits as the single call.
//
// Errors: a problem that fails leaves its own result unchanged and does not affect the others; the call then returns
// the status of the first such problem, and `sunzi_last_error` names its number, counted from 0. Four failures end the
// whole call before anything is written, with the same status for all problems: a description or an entry that cannot
// be read, shapes that do not match, a memory limit that is too small for the plan of the batch, and cancellation.
// Under a memory limit a single problem may be refused if `SUNZI_ENTRYWISE` needs more bits for it than planned.
enum sunzi_status sunzi_syrk_batch(const struct sunzi_context *ctx,
                                   int32_t uplo,
                                   int32_t trans,
                                   const struct sunzi_matrix *alpha,
                                   const struct sunzi_matrix *a,
                                   const struct sunzi_matrix *beta,
                                   const struct sunzi_matrix *c,
                                   int64_t count,
                                   enum sunzi_status *statuses);

// Computes `C_i := alpha op(A_i) op(B_i) + beta C_i` for `count` independent problems. `a`, `b` and `c` are arrays of
// `count` descriptions; everything else as in `sunzi_syrk_batch` and `sunzi_gemm`.
enum sunzi_status sunzi_gemm_batch(const struct sunzi_context *ctx,
                                   int32_t trans_a,
                                   int32_t trans_b,
                                   const struct sunzi_matrix *alpha,
                                   const struct sunzi_matrix *a,
                                   const struct sunzi_matrix *b,
                                   const struct sunzi_matrix *beta,
                                   const struct sunzi_matrix *c,
                                   int64_t count,
                                   enum sunzi_status *statuses);

// Replaces each of `count` symmetric positive definite matrices by its Cholesky factor. `a` is an array of `count`
// descriptions; everything else as in `sunzi_syrk_batch` and `sunzi_cholesky`.
//
// A matrix that is not positive definite is unchanged and has the status `SUNZI_NOT_POSITIVE_DEFINITE`; all other
// matrices become their factors.
enum sunzi_status sunzi_cholesky_batch(const struct sunzi_context *ctx,
                                       int32_t uplo,
                                       const struct sunzi_matrix *a,
                                       int64_t count,
                                       enum sunzi_status *statuses);

// Solves `count` independent triangular systems in place. `t` and `b` are arrays of `count` descriptions; everything
// else as in `sunzi_syrk_batch` and `sunzi_trsm`.
enum sunzi_status sunzi_trsm_batch(const struct sunzi_context *ctx,
                                   int32_t side,
                                   int32_t uplo,
                                   int32_t trans,
                                   int32_t diag,
                                   const struct sunzi_matrix *alpha,
                                   const struct sunzi_matrix *t,
                                   const struct sunzi_matrix *b,
                                   int64_t count,
                                   enum sunzi_status *statuses);

// Computes the memory that `sunzi_syrk` would take on this context, without `beta`, and stores it in `*plan`; nothing
// else is computed. With `beta` the call also needs memory for a copy of C.
//
// Arguments:
// - `format`: format of the operands and of the result.
// - `n`, `k`: order of C, and length of the sums.
// - `operand_bits`: precision of the operands in bits. An `mpf_t` counts 64 bits for each limb in use, at most
//   `mpf_get_prec` + 128.
// - `precision_bits`: precision of the result in bits.
//
// The call makes and keeps the tables of the kernel. Under a memory limit the plan is the one that the operation would
// use within the limit. Unless the accuracy of the context is `SUNZI_NORM`, the plan assumes that all entries are of
// equal magnitude; the wider the range of their exponents, the more memory the operation needs.
enum sunzi_status sunzi_plan_syrk(const struct sunzi_context *ctx,
                                  int32_t format,
                                  int64_t n,
                                  int64_t k,
                                  int64_t operand_bits,
                                  int64_t precision_bits,
                                  struct sunzi_plan *plan);

// Computes the memory that `sunzi_gemm` would take for an m x n matrix C and sums of length k; everything else as in
// `sunzi_plan_syrk`.
enum sunzi_status sunzi_plan_gemm(const struct sunzi_context *ctx,
                                  int32_t format,
                                  int64_t m,
                                  int64_t n,
                                  int64_t k,
                                  int64_t operand_bits,
                                  int64_t precision_bits,
                                  struct sunzi_plan *plan);

// Computes the memory that `sunzi_cholesky` would take for a matrix of order n with entries of `precision_bits` bits;
// everything else as in `sunzi_plan_syrk`.
enum sunzi_status sunzi_plan_cholesky(const struct sunzi_context *ctx,
                                      int32_t format,
                                      int64_t n,
                                      int64_t precision_bits,
                                      struct sunzi_plan *plan);

// Computes the memory that `sunzi_trsm` would take for a triangle of order n with entries of `operand_bits` bits and m
// right-hand sides with entries of `precision_bits` bits; everything else as in `sunzi_plan_syrk`.
//
// The plan assumes that each pivot is at least 2^-21 times the norm of its row. With smaller pivots the operation
// takes more memory, or proceeds in smaller steps under a memory limit.
enum sunzi_status sunzi_plan_trsm(const struct sunzi_context *ctx,
                                  int32_t format,
                                  int64_t n,
                                  int64_t m,
                                  int64_t operand_bits,
                                  int64_t precision_bits,
                                  struct sunzi_plan *plan);

// Computes an upper bound of the memory that `sunzi_solve` would take for a matrix A of order n with entries of
// `operand_bits` bits and m right-hand sides with entries of `precision_bits` bits: the factorisation, then the solve,
// in addition to copies of both operands. Everything else as in `sunzi_plan_trsm`.
enum sunzi_status sunzi_plan_solve(const struct sunzi_context *ctx,
                                   int32_t format,
                                   int64_t n,
                                   int64_t m,
                                   int64_t operand_bits,
                                   int64_t precision_bits,
                                   struct sunzi_plan *plan);

// Computes `*result := x^T y`, with the arguments of `Rdot`. `x` and `y` have n entries at the distances `incx` and
// `incy`; `result` points to one `mpfr_t`. For n <= 0 the result is 0.
//
// Accuracy: `|computed - exact| <= 2^(1 - p) |x|^T |y|` with p the precision of `result`; the result is rounded once.
//
// Cost: one product of two numbers for each entry.
int64_t sunzi_rdot(const struct sunzi_context *ctx,
                   int64_t n,
                   const void *x,
                   int64_t incx,
                   const void *y,
                   int64_t incy,
                   void *result);

// Same as `sunzi_rdot`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rdot_mpf(const struct sunzi_context *ctx,
                       int64_t n,
                       const void *x,
                       int64_t incx,
                       const void *y,
                       int64_t incy,
                       void *result);

// Computes `*result := sqrt(x^T x)`, with the arguments of `Rnrm2`. `x` has n entries at the distance `incx`; `result`
// points to one `mpfr_t`. For n <= 0 the result is 0.
//
// Accuracy: `|computed - exact| <= 2^(1 - p) exact` with p the precision of `result`. No square overflows.
int64_t sunzi_rnrm2(const struct sunzi_context *ctx, int64_t n, const void *x, int64_t incx, void *result);

// Same as `sunzi_rnrm2`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rnrm2_mpf(const struct sunzi_context *ctx, int64_t n, const void *x, int64_t incx, void *result);

// Computes `y := alpha x + y`, with the arguments of `Raxpy`. `x` and `y` have n entries at the distances `incx` and
// `incy`; `incy` must not be 0. The call does nothing for n <= 0 or `alpha = 0`.
//
// Accuracy: each entry is the exact number, rounded once to p bits and then to its own precision.
int64_t sunzi_raxpy(const struct sunzi_context *ctx,
                    int64_t n,
                    const void *alpha,
                    const void *x,
                    int64_t incx,
                    void *y,
                    int64_t incy);

// Same as `sunzi_raxpy`, for scalars and arrays of `mpf_t`.
int64_t sunzi_raxpy_mpf(const struct sunzi_context *ctx,
                        int64_t n,
                        const void *alpha,
                        const void *x,
                        int64_t incx,
                        void *y,
                        int64_t incy);

// Computes `y := alpha op(A) x + beta y`, with the arguments of `Rgemv`. A is m x n; `incx` and `incy` must not be 0.
// The call does nothing if m or n is 0.
//
// Accuracy: `|computed - exact|_i <= 2^(1 - p) (|alpha| (|op(A)| |x|)_i + |beta| |y_i|)`. Then each entry is rounded
// to its own precision.
//
// Cost: one product of two numbers for each entry of A.
int64_t sunzi_rgemv(const struct sunzi_context *ctx,
                    const char *trans,
                    int64_t m,
                    int64_t n,
                    const void *alpha,
                    const void *a,
                    int64_t lda,
                    const void *x,
                    int64_t incx,
                    const void *beta,
                    void *y,
                    int64_t incy);

// Same as `sunzi_rgemv`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rgemv_mpf(const struct sunzi_context *ctx,
                        const char *trans,
                        int64_t m,
                        int64_t n,
                        const void *alpha,
                        const void *a,
                        int64_t lda,
                        const void *x,
                        int64_t incx,
                        const void *beta,
                        void *y,
                        int64_t incy);

// Computes `y := alpha A x + beta y` for a symmetric A, with the arguments of `Rsymv`. A is n x n, and its triangle
// `uplo` is read; `incx` and `incy` must not be 0. Accuracy as `sunzi_rgemv`.
int64_t sunzi_rsymv(const struct sunzi_context *ctx,
                    const char *uplo,
                    int64_t n,
                    const void *alpha,
                    const void *a,
                    int64_t lda,
                    const void *x,
                    int64_t incx,
                    const void *beta,
                    void *y,
                    int64_t incy);

// Same as `sunzi_rsymv`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rsymv_mpf(const struct sunzi_context *ctx,
                        const char *uplo,
                        int64_t n,
                        const void *alpha,
                        const void *a,
                        int64_t lda,
                        const void *x,
                        int64_t incx,
                        const void *beta,
                        void *y,
                        int64_t incy);

// Computes `A := alpha x y^T + A`, with the arguments of `Rger`. A is m x n, `x` has m entries, and `y` has n entries;
// `incx` and `incy` must not be 0. The call does nothing if m, n or `alpha` is 0.
//
// Accuracy: each entry is the exact number, rounded once to p bits and then to its own precision.
int64_t sunzi_rger(const struct sunzi_context *ctx,
                   int64_t m,
                   int64_t n,
                   const void *alpha,
                   const void *x,
                   int64_t incx,
                   const void *y,
                   int64_t incy,
                   void *a,
                   int64_t lda);

// Same as `sunzi_rger`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rger_mpf(const struct sunzi_context *ctx,
                       int64_t m,
                       int64_t n,
                       const void *alpha,
                       const void *x,
                       int64_t incx,
                       const void *y,
                       int64_t incy,
                       void *a,
                       int64_t lda);

// Computes `x := op(T) x` for a triangular T, with the arguments of `Rtrmv`. `a` holds the n x n matrix T, whose
// triangle `uplo` is read (without its diagonal for `diag` "U"); `incx` must not be 0. Accuracy as `sunzi_rgemv`.
int64_t sunzi_rtrmv(const struct sunzi_context *ctx,
                    const char *uplo,
                    const char *trans,
                    const char *diag,
                    int64_t n,
                    const void *a,
                    int64_t lda,
                    void *x,
                    int64_t incx);

// Same as `sunzi_rtrmv`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rtrmv_mpf(const struct sunzi_context *ctx,
                        const char *uplo,
                        const char *trans,
                        const char *diag,
                        int64_t n,
                        const void *a,
                        int64_t lda,
                        void *x,
                        int64_t incx);

// Computes `x := op(T)^-1 x` for a triangular T by substitution, with the arguments of `Rtrsv`. T and `incx` as in
// `sunzi_rtrmv`.
//
// Accuracy: `|b - op(T) x|_i <= 2^(1 - p) (|op(T)| |x|)_i` for each row, where b is the value of `x` before the call.
// Then each entry is rounded to its own precision.
//
// Returns info: `i > 0` if entry (i, i) of T, counted from 1, is 0.
int64_t sunzi_rtrsv(const struct sunzi_context *ctx,
                    const char *uplo,
                    const char *trans,
                    const char *diag,
                    int64_t n,
                    const void *a,
                    int64_t lda,
                    void *x,
                    int64_t incx);

// Same as `sunzi_rtrsv`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rtrsv_mpf(const struct sunzi_context *ctx,
                        const char *uplo,
                        const char *trans,
                        const char *diag,
                        int64_t n,
                        const void *a,
                        int64_t lda,
                        void *x,
                        int64_t incx);

// Computes `C := alpha A A^T + beta C` (`trans` "N") or `C := alpha A^T A + beta C` (`trans` "T") as `sunzi_syrk`
// does, with the arguments of `Rsyrk`. C is n x n, and its triangle `uplo` is read and written; A is n x k or k x n.
//
// Returns info; see BLAS and LAPACK at the top of this header.
int64_t sunzi_rsyrk(const struct sunzi_context *ctx,
                    const char *uplo,
                    const char *trans,
                    int64_t n,
                    int64_t k,
                    const void *alpha,
                    const void *a,
                    int64_t lda,
                    const void *beta,
                    void *c,
                    int64_t ldc);

// Same as `sunzi_rsyrk`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rsyrk_mpf(const struct sunzi_context *ctx,
                        const char *uplo,
                        const char *trans,
                        int64_t n,
                        int64_t k,
                        const void *alpha,
                        const void *a,
                        int64_t lda,
                        const void *beta,
                        void *c,
                        int64_t ldc);

// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_gemm` does, with the arguments of `Rgemm`. `op(A)` is m x k,
// `op(B)` is k x n, and C is m x n.
int64_t sunzi_rgemm(const struct sunzi_context *ctx,
                    const char *transa,
                    const char *transb,
                    int64_t m,
                    int64_t n,
                    int64_t k,
                    const void *alpha,
                    const void *a,
                    int64_t lda,
                    const void *b,
                    int64_t ldb,
                    const void *beta,
                    void *c,
                    int64_t ldc);

// Same as `sunzi_rgemm`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rgemm_mpf(const struct sunzi_context *ctx,
                        const char *transa,
                        const char *transb,
                        int64_t m,
                        int64_t n,
                        int64_t k,
                        const void *alpha,
                        const void *a,
                        int64_t lda,
                        const void *b,
                        int64_t ldb,
                        const void *beta,
                        void *c,
                        int64_t ldc);

// Solves a triangular system in place as `sunzi_trsm` does, with the arguments of `Rtrsm`: `B := alpha op(T)^-1 B`
// (`side` "L") or `B := alpha B op(T)^-1` (`side` "R"). `a` holds T; B is m x n.
//
// Returns info: `i > 0` if entry (i, i) of T, counted from 1, is 0.
int64_t sunzi_rtrsm(const struct sunzi_context *ctx,
                    const char *side,
                    const char *uplo,
                    const char *transa,
                    const char *diag,
                    int64_t m,
                    int64_t n,
                    const void *alpha,
                    const void *a,
                    int64_t lda,
                    void *b,
                    int64_t ldb);

// Same as `sunzi_rtrsm`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rtrsm_mpf(const struct sunzi_context *ctx,
                        const char *side,
                        const char *uplo,
                        const char *transa,
                        const char *diag,
                        int64_t m,
                        int64_t n,
                        const void *alpha,
                        const void *a,
                        int64_t lda,
                        void *b,
                        int64_t ldb);

// Computes `B := alpha op(T) B` (`side` "L") or `B := alpha B op(T)` (`side` "R") for a triangular T, with the
// arguments of `Rtrmm`. `a` holds T; B is m x n. Accuracy as `sunzi_rgemm`.
int64_t sunzi_rtrmm(const struct sunzi_context *ctx,
                    const char *side,
                    const char *uplo,
                    const char *transa,
                    const char *diag,
                    int64_t m,
                    int64_t n,
                    const void *alpha,
                    const void *a,
                    int64_t lda,
                    void *b,
                    int64_t ldb);

// Same as `sunzi_rtrmm`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rtrmm_mpf(const struct sunzi_context *ctx,
                        const char *side,
                        const char *uplo,
                        const char *transa,
                        const char *diag,
                        int64_t m,
                        int64_t n,
                        const void *alpha,
                        const void *a,
                        int64_t lda,
                        void *b,
                        int64_t ldb);

// Computes `C := alpha A B + beta C` (`side` "L") or `C := alpha B A + beta C` (`side` "R") for a symmetric A, with
// the arguments of `Rsymm`. The triangle `uplo` of A is read; B and C are m x n. Accuracy as `sunzi_rgemm`.
int64_t sunzi_rsymm(const struct sunzi_context *ctx,
                    const char *side,
                    const char *uplo,
                    int64_t m,
                    int64_t n,
                    const void *alpha,
                    const void *a,
                    int64_t lda,
                    const void *b,
                    int64_t ldb,
                    const void *beta,
                    void *c,
                    int64_t ldc);

// Same as `sunzi_rsymm`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rsymm_mpf(const struct sunzi_context *ctx,
                        const char *side,
                        const char *uplo,
                        int64_t m,
                        int64_t n,
                        const void *alpha,
                        const void *a,
                        int64_t lda,
                        const void *b,
                        int64_t ldb,
                        const void *beta,
                        void *c,
                        int64_t ldc);

// Computes `C := alpha (A B^T + B A^T) + beta C` (`trans` "N") or `C := alpha (A^T B + B^T A) + beta C` (`trans` "T"),
// with the arguments of `Rsyr2k`. C is n x n, and its triangle `uplo` is read and written; A and B are n x k or k x n.
// Accuracy as `sunzi_rgemm`, for both products.
int64_t sunzi_rsyr2k(const struct sunzi_context *ctx,
                     const char *uplo,
                     const char *trans,
                     int64_t n,
                     int64_t k,
                     const void *alpha,
                     const void *a,
                     int64_t lda,
                     const void *b,
                     int64_t ldb,
                     const void *beta,
                     void *c,
                     int64_t ldc);

// Same as `sunzi_rsyr2k`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rsyr2k_mpf(const struct sunzi_context *ctx,
                         const char *uplo,
                         const char *trans,
                         int64_t n,
                         int64_t k,
                         const void *alpha,
                         const void *a,
                         int64_t lda,
                         const void *b,
                         int64_t ldb,
                         const void *beta,
                         void *c,
                         int64_t ldc);

// Replaces a symmetric positive definite A by its Cholesky factor as `sunzi_cholesky` does, with the arguments of
// `Rpotrf`. A is n x n, and its triangle `uplo` is read and written.
//
// Returns info: `i > 0` if the i-th pivot, as computed and counted from 1, is not positive.
int64_t sunzi_rpotrf(const struct sunzi_context *ctx, const char *uplo, int64_t n, void *a, int64_t lda);

// Same as `sunzi_rpotrf`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rpotrf_mpf(const struct sunzi_context *ctx, const char *uplo, int64_t n, void *a, int64_t lda);

// Computes `B := A^-1 B` from a Cholesky factor in an array as `sunzi_cholesky_solve` does, with the arguments of
// `Rpotrs`. `a` holds the n x n factor in its triangle `uplo`; B is n x nrhs.
//
// Returns info: `i > 0` if entry (i, i) of the factor, counted from 1, is 0.
int64_t sunzi_rpotrs(const struct sunzi_context *ctx,
                     const char *uplo,
                     int64_t n,
                     int64_t nrhs,
                     const void *a,
                     int64_t lda,
                     void *b,
                     int64_t ldb);

// Same as `sunzi_rpotrs`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rpotrs_mpf(const struct sunzi_context *ctx,
                         const char *uplo,
                         int64_t n,
                         int64_t nrhs,
                         const void *a,
                         int64_t lda,
                         void *b,
                         int64_t ldb);

// Replaces A by the factors of `P A = L U` as `sunzi_lu` does, with the arguments of `Rgetrf`. A is m x n and must be
// square. `ipiv` receives n row numbers from 1: rows i and `ipiv[i - 1]` change places, for i from 1 to n.
//
// Returns info: `i > 0` if all candidates for the i-th pivot are 0 at the working precision. Then A and `ipiv` are
// unchanged, whereas LAPACK completes the factorisation with a zero at entry (i, i) of U.
int64_t sunzi_rgetrf(const struct sunzi_context *ctx, int64_t m, int64_t n, void *a, int64_t lda, int64_t *ipiv);

// Same as `sunzi_rgetrf`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rgetrf_mpf(const struct sunzi_context *ctx, int64_t m, int64_t n, void *a, int64_t lda, int64_t *ipiv);

// Computes `B := op(A)^-1 B` from the factors of A in an array as `sunzi_lu_solve` does, with the arguments of
// `Rgetrs`. `a` and `ipiv` hold what `sunzi_rgetrf` has stored for an A of order n; B is n x nrhs.
//
// Returns info: `i > 0` if entry (i, i) of U, counted from 1, is 0.
int64_t sunzi_rgetrs(const struct sunzi_context *ctx,
                     const char *trans,
                     int64_t n,
                     int64_t nrhs,
                     const void *a,
                     int64_t lda,
                     const int64_t *ipiv,
                     void *b,
                     int64_t ldb);

// Same as `sunzi_rgetrs`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rgetrs_mpf(const struct sunzi_context *ctx,
                         const char *trans,
                         int64_t n,
                         int64_t nrhs,
                         const void *a,
                         int64_t lda,
                         const int64_t *ipiv,
                         void *b,
                         int64_t ldb);

// Computes `B := A^-1 B` for any square A of order n, which its factors replace as in `sunzi_rgetrf`, with the
// arguments of `Rgesv`. B is n x nrhs. A is factored at the larger one of the precisions of A and B.
//
// Returns info: `i > 0` as `sunzi_rgetrf`; A, `ipiv` and B are unchanged then.
int64_t sunzi_rgesv(const struct sunzi_context *ctx,
                    int64_t n,
                    int64_t nrhs,
                    void *a,
                    int64_t lda,
                    int64_t *ipiv,
                    void *b,
                    int64_t ldb);

// Same as `sunzi_rgesv`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rgesv_mpf(const struct sunzi_context *ctx,
                        int64_t n,
                        int64_t nrhs,
                        void *a,
                        int64_t lda,
                        int64_t *ipiv,
                        void *b,
                        int64_t ldb);

// Replaces the factors of A by its inverse as `sunzi_lu_inverse` computes it, with the arguments of `Rgetri`. `a` and
// `ipiv` hold what `sunzi_rgetrf` has stored for an A of order n. `lwork`, the length of `work`, must be at least
// `max(n, 1)`, which `work[0]` receives; the rest of `work` is neither read nor written. If `lwork` is -1, the call
// only stores this number, and reads neither `a` nor `ipiv`.
//
// Returns info: `i > 0` if entry (i, i) of U, counted from 1, is 0; A is unchanged then.
int64_t sunzi_rgetri(const struct sunzi_context *ctx,
                     int64_t n,
                     void *a,
                     int64_t lda,
                     const int64_t *ipiv,
                     void *work,
                     int64_t lwork);

// Same as `sunzi_rgetri`, for scalars and arrays of `mpf_t`.
int64_t sunzi_rgetri_mpf(const struct sunzi_context *ctx,
                         int64_t n,
                         void *a,
                         int64_t lda,
                         const int64_t *ipiv,
                         void *work,
                         int64_t lwork);

// Stores the number of this rank, counted from 0, and the number of ranks of the context's communicator. Null pointers
// are ignored. Not collective. Returns `SUNZI_UNAVAILABLE` for a context without a communicator.
enum sunzi_status sunzi_mpi_size(const struct sunzi_context *ctx, int64_t *rank, int64_t *size);

// Returns the description of a matrix of consecutive whole rows, in the order of the ranks; each rank has as many rows
// as its `local`. `size` is the number of ranks. For a matrix that lies on one rank, all other ranks pass a `local` of
// 0 rows.
struct sunzi_dist_matrix sunzi_dist_rows(struct sunzi_matrix local, int64_t size);

// Returns the description of a block-cyclic matrix from its ScaLAPACK descriptor: `desc` points to the nine integers,
// of which M, N, MB, NB, RSRC and CSRC are used. `local` has the numbers of rows and columns that `numroc` returns.
// The grid is the one of the descriptor's BLACS context; `grid_order` is `SUNZI_ROW_MAJOR` for
// `blacs_gridinit(.., "R", ..)`.
//
// `desc` must point to nine integers.
struct sunzi_dist_matrix sunzi_dist_scalapack(struct sunzi_matrix local,
                                              const int *desc,
                                              int64_t grid_rows,
                                              int64_t grid_cols,
                                              int32_t grid_order);

// Returns the description of a `rows x cols` `DistMatrix` of Elemental. `col_dist` and `row_dist` are its `ColDist`
// and `RowDist` as `SUNZI_ALONG_` constants, `col_align` and `row_align` its `ColAlign()` and `RowAlign()`; `local` is
// its `Matrix()`. The grid numbers its ranks column by column, which is the default of Elemental.
struct sunzi_dist_matrix sunzi_dist_elemental(struct sunzi_matrix local,
                                              int64_t rows,
                                              int64_t cols,
                                              int64_t grid_rows,
                                              int64_t grid_cols,
                                              int32_t col_dist,
                                              int32_t row_dist,
                                              int64_t col_align,
                                              int64_t row_align);

// Computes `C := alpha A A^T + beta C` or `C := alpha A^T A + beta C` as `sunzi_syrk` does, on matrices that are
// distributed over the ranks. Collective.
//
// Arguments: as in `sunzi_syrk`; A and C each have their own distribution.
//
// Memory on each rank, in addition to the arrays: a copy of its part of A, unless A is in limbs; an even share of the
// rows of A^T (of A with `SUNZI_TRANS`), unless the ranks hold whole rows of it in about equal numbers; its tiles of
// C; a copy of its part of C, unless C is in limbs; messages of about 8 MiB; and the bytes in the plan of the product.
enum sunzi_status sunzi_mpi_syrk(const struct sunzi_context *ctx,
                                 int32_t uplo,
                                 int32_t trans,
                                 const struct sunzi_matrix *alpha,
                                 const struct sunzi_dist_matrix *a,
                                 const struct sunzi_matrix *beta,
                                 const struct sunzi_dist_matrix *c);

// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_gemm` does, on matrices that are distributed over the ranks.
// Collective. Each matrix has its own distribution. Memory as `sunzi_mpi_syrk`.
enum sunzi_status sunzi_mpi_gemm(const struct sunzi_context *ctx,
                                 int32_t trans_a,
                                 int32_t trans_b,
                                 const struct sunzi_matrix *alpha,
                                 const struct sunzi_dist_matrix *a,
                                 const struct sunzi_dist_matrix *b,
                                 const struct sunzi_matrix *beta,
                                 const struct sunzi_dist_matrix *c);

// Replaces a symmetric positive definite A, distributed over the ranks, by its Cholesky factor as `sunzi_cholesky`
// does. Collective.
//
// Memory on each rank, in addition to the array: a copy of its part of A, its tiles of A and of the factor, messages
// of about 8 MiB, and the bytes in the plan of the factorisation.
enum sunzi_status sunzi_mpi_cholesky(const struct sunzi_context *ctx, int32_t uplo, const struct sunzi_dist_matrix *a);

// Solves a triangular system in place as `sunzi_trsm` does, on matrices that are distributed over the ranks.
// Collective. T and B each have their own distribution.
//
// Memory on each rank, in addition to the arrays: copies of its parts of T and B, unless they are in limbs; its tiles
// of T; two copies of its share of the right-hand sides; and the rows of T that are in transit.
enum sunzi_status sunzi_mpi_trsm(const struct sunzi_context *ctx,
                                 int32_t side,
                                 int32_t uplo,
                                 int32_t trans,
                                 int32_t diag,
                                 const struct sunzi_matrix *alpha,
                                 const struct sunzi_dist_matrix *t,
                                 const struct sunzi_dist_matrix *b);

// Computes `B := A^-1 B` for a symmetric positive definite A as `sunzi_solve` does, on matrices that are distributed
// over the ranks. Collective. A and B each have their own distribution. Memory as `sunzi_mpi_cholesky` and
// `sunzi_mpi_trsm`.
enum sunzi_status sunzi_mpi_solve(const struct sunzi_context *ctx,
                                  int32_t uplo,
                                  const struct sunzi_dist_matrix *a,
                                  const struct sunzi_dist_matrix *b);

// Computes `X := A^-1`, the whole matrix, for a symmetric positive definite A that is distributed over the ranks.
// Collective. X has its own distribution and may be A itself.
//
// The call is `sunzi_mpi_solve` with the identity as right-hand side, with its accuracy, bits, memory and errors: each
// column is a solution, and X is symmetric only up to this accuracy. `sunzi_factor_inverse` computes the inverse as a
// product and returns other bits.
enum sunzi_status sunzi_mpi_inverse(const struct sunzi_context *ctx,
                                    int32_t uplo,
                                    const struct sunzi_dist_matrix *a,
                                    const struct sunzi_dist_matrix *x);

// Computes `B := A^-1 B` as `sunzi_cholesky_solve` does, from a factor that `sunzi_mpi_cholesky` has left in one
// triangle. Collective. Memory as `sunzi_mpi_trsm`.
enum sunzi_status sunzi_mpi_cholesky_solve(const struct sunzi_context *ctx,
                                           int32_t uplo,
                                           const struct sunzi_dist_matrix *factor,
                                           const struct sunzi_dist_matrix *b);

// Computes `result := log det A` as `sunzi_log_det` does, from a factor that is distributed over the ranks.
// Collective. Only the diagonal of the triangle `uplo` of `factor` is read. `result` is 1 x 1 on each rank, or null on
// a rank that does not need the number.
//
// Errors: `SUNZI_SINGULAR` on all ranks if the diagonal has a zero.
enum sunzi_status sunzi_mpi_log_det(const struct sunzi_context *ctx,
                                    int32_t uplo,
                                    const struct sunzi_dist_matrix *factor,
                                    const struct sunzi_matrix *result);

// Factors a symmetric positive definite A that is distributed over the ranks, keeps the factor in the library's
// memory, in tiles over the ranks, and stores a handle in `*factor` (null after a failure). Collective. A is not
// changed.
//
// Arguments: as in `sunzi_factor_new`. `precision_bits` must be the same on all ranks; 0 selects the largest precision
// of the entries that are read, over all ranks.
//
// Memory: as `sunzi_mpi_cholesky`. The tiles of this rank stay until the factor is freed; the memory limit does not
// cover them.
enum sunzi_status sunzi_mpi_factor_new(const struct sunzi_context *ctx,
                                       int32_t uplo,
                                       int64_t precision_bits,
                                       const struct sunzi_dist_matrix *a,
                                       struct sunzi_mpi_factor **factor);

// Replaces a kept factor by the factor of another matrix A. Collective. Arguments, bits and errors as
// `sunzi_mpi_factor_new`. If order and precision are unchanged and there is no memory limit, the new factor is written
// in the memory of the old one; repeated factorisations then save the time for fresh memory.
//
// After a refused argument the factor is unchanged. After a later failure (the matrix is not symmetric or not positive
// definite, or memory is missing) the factor is lost: it has no rows, and all calls refuse it until it is renewed. No
// other call may use the factor at the same time.
enum sunzi_status sunzi_mpi_factor_renew(const struct sunzi_context *ctx,
                                         int32_t uplo,
                                         int64_t precision_bits,
                                         const struct sunzi_dist_matrix *a,
                                         struct sunzi_mpi_factor *factor);

// Frees this rank's tiles of a factor; a null pointer is ignored. Not collective; allowed after `MPI_Finalize`.
//
// `factor` must be null or a result of `sunzi_mpi_factor_new`, and must not be used afterwards.
void sunzi_mpi_factor_free(struct sunzi_mpi_factor *factor);

// Returns the number of rows of the factored matrix; -1 for a null pointer. Not collective.
//
// `factor` must be null or a live factor.
int64_t sunzi_mpi_factor_order(const struct sunzi_mpi_factor *factor);

// Returns the precision of the factor in bits; -1 for a null pointer. Not collective.
//
// `factor` must be null or a live factor.
int64_t sunzi_mpi_factor_precision_bits(const struct sunzi_mpi_factor *factor);

// Computes `B := A^-1 B` with a kept factor of A, for B in any distribution. Collective. Accuracy, memory and errors
// as `sunzi_mpi_cholesky_solve`, without the memory for the factor.
enum sunzi_status sunzi_mpi_factor_solve(const struct sunzi_context *ctx,
                                         const struct sunzi_mpi_factor *factor,
                                         const struct sunzi_dist_matrix *b);

// Computes `X := A^-1` as `sunzi_mpi_inverse` does, from a kept factor of A. Collective.
enum sunzi_status sunzi_mpi_factor_inverse(const struct sunzi_context *ctx,
                                           const struct sunzi_mpi_factor *factor,
                                           const struct sunzi_dist_matrix *x);

// Computes `result := log det A` as `sunzi_mpi_log_det` does, from a kept factor of A. Collective. `result` is null on
// a rank that does not need the number.
enum sunzi_status sunzi_mpi_factor_log_det(const struct sunzi_context *ctx,
                                           const struct sunzi_mpi_factor *factor,
                                           const struct sunzi_matrix *result);

// Stores a kept factor in one triangle of the n x n matrix `a`: L in the lower triangle (`SUNZI_LOWER`) or `L^T` in
// the upper triangle (`SUNZI_UPPER`). Collective. The other triangle is not written.
enum sunzi_status sunzi_mpi_factor_get(const struct sunzi_context *ctx,
                                       const struct sunzi_mpi_factor *factor,
                                       int32_t uplo,
                                       const struct sunzi_dist_matrix *a);

// Computes the memory that `sunzi_mpi_syrk` would take on this rank and on its node, without `beta`, and stores it in
// `*plan`; nothing else is computed. Collective. With `beta` the call also needs tiles of C.
//
// Arguments:
// - `a`, `c`: the descriptions of the call. The entries are not read, and the pointers to them may be null.
// - `operand_bits`, `precision_bits`: precision in bits of the entries of A and of C.
//
// The call makes and keeps the tables of the kernel. Under a memory limit the plan is the one that the operation would
// use within the limit; `SUNZI_MEMORY_LIMIT` names the least limit for the step that does not fit, and a later step
// may need more. If the limits of ranks or nodes differ, the plan of a product uses the least. Unless the accuracy of
// the context is `SUNZI_NORM`, the plan assumes that all entries are of equal magnitude. Memory that the context keeps
// from earlier calls is not counted. For products on devices the plan counts the memory of the host, not of the
// devices.
enum sunzi_status sunzi_mpi_plan_syrk(const struct sunzi_context *ctx,
                                      int32_t trans,
                                      const struct sunzi_dist_matrix *a,
                                      const struct sunzi_dist_matrix *c,
                                      int64_t operand_bits,
                                      int64_t precision_bits,
                                      struct sunzi_mpi_plan *plan);

// Computes the memory that `sunzi_mpi_gemm` would take; everything else as in `sunzi_mpi_plan_syrk`.
enum sunzi_status sunzi_mpi_plan_gemm(const struct sunzi_context *ctx,
                                      int32_t trans_a,
                                      int32_t trans_b,
                                      const struct sunzi_dist_matrix *a,
                                      const struct sunzi_dist_matrix *b,
                                      const struct sunzi_dist_matrix *c,
                                      int64_t operand_bits,
                                      int64_t precision_bits,
                                      struct sunzi_mpi_plan *plan);

// Computes the memory that `sunzi_mpi_cholesky` would take with this `uplo` for entries of `precision_bits` bits; it
// is an upper bound for `sunzi_mpi_factor_new` at this precision. Everything else as in `sunzi_mpi_plan_syrk`.
enum sunzi_status sunzi_mpi_plan_cholesky(const struct sunzi_context *ctx,
                                          int32_t uplo,
                                          const struct sunzi_dist_matrix *a,
                                          int64_t precision_bits,
                                          struct sunzi_mpi_plan *plan);

// Computes the memory that `sunzi_mpi_trsm` would take with this `side` and `diag` for a triangle with entries of
// `operand_bits` bits and right-hand sides with entries of `precision_bits` bits. The assumption about pivots is the
// one of `sunzi_plan_trsm`; everything else as in `sunzi_mpi_plan_syrk`.
enum sunzi_status sunzi_mpi_plan_trsm(const struct sunzi_context *ctx,
                                      int32_t side,
                                      int32_t diag,
                                      const struct sunzi_dist_matrix *t,
                                      const struct sunzi_dist_matrix *b,
                                      int64_t operand_bits,
                                      int64_t precision_bits,
                                      struct sunzi_mpi_plan *plan);

// Computes an upper bound of the memory that `sunzi_mpi_solve` would take with this `uplo`, for entries of
// `precision_bits` bits in both matrices: the factorisation, then the solve, in addition to the factor and to the
// memory that the context keeps from the factorisation. If `a` is null on every rank, the result is the memory of
// `sunzi_mpi_factor_solve`, in addition to a factor of this precision. Everything else as in `sunzi_mpi_plan_trsm`.
enum sunzi_status sunzi_mpi_plan_solve(const struct sunzi_context *ctx,
                                       int32_t uplo,
                                       const struct sunzi_dist_matrix *a,
                                       const struct sunzi_dist_matrix *b,
                                       int64_t precision_bits,
                                       struct sunzi_mpi_plan *plan);

// Defines the grid of ranks that a BLACS context stands for in calls on `ctx`. Descriptors refer to the grid by the
// number `blacs_context` in their second entry; it may be any number that the program uses for its grids. Collective.
//
// The grid consists of the first `grid_rows * grid_cols` ranks of the communicator, row by row (`SUNZI_ROW_MAJOR`, for
// `blacs_gridinit(.., "R", ..)`) or column by column (`SUNZI_COL_MAJOR`). Shape and order must be the same on all
// ranks. The number may differ: a rank outside the grid may pass the -1 that the BLACS returned; a rank outside
// several grids needs a different number for each of them. A second call with the same number replaces the grid.
enum sunzi_status sunzi_mpi_grid(const struct sunzi_context *ctx,
                                 int blacs_context,
                                 int64_t grid_rows,
                                 int64_t grid_cols,
                                 int32_t grid_order);

// Computes `C := alpha A A^T + beta C` (`trans` "N") or `C := alpha A^T A + beta C` (`trans` "T") as `sunzi_mpi_syrk`
// does, with the arguments of `PDSYRK`. C is n x n, and its triangle `uplo` is read and written; A is n x k or k x n.
//
// Returns info; see ScaLAPACK at the top of this header.
int64_t psunzi_rsyrk(const struct sunzi_context *ctx,
                     const char *uplo,
                     const char *trans,
                     int64_t n,
                     int64_t k,
                     const void *alpha,
                     const void *a,
                     int64_t ia,
                     int64_t ja,
                     const int *desca,
                     const void *beta,
                     void *c,
                     int64_t ic,
                     int64_t jc,
                     const int *descc);

// Same as `psunzi_rsyrk`, for scalars and arrays of `mpf_t`.
int64_t psunzi_rsyrk_mpf(const struct sunzi_context *ctx,
                         const char *uplo,
                         const char *trans,
                         int64_t n,
                         int64_t k,
                         const void *alpha,
                         const void *a,
                         int64_t ia,
                         int64_t ja,
                         const int *desca,
                         const void *beta,
                         void *c,
                         int64_t ic,
                         int64_t jc,
                         const int *descc);

// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_mpi_gemm` does, with the arguments of `PDGEMM`. `op(A)` is m x
// k, `op(B)` is k x n, and C is m x n.
int64_t psunzi_rgemm(const struct sunzi_context *ctx,
                     const char *transa,
                     const char *transb,
                     int64_t m,
                     int64_t n,
                     int64_t k,
                     const void *alpha,
                     const void *a,
                     int64_t ia,
                     int64_t ja,
                     const int *desca,
                     const void *b,
                     int64_t ib,
                     int64_t jb,
                     const int *descb,
                     const void *beta,
                     void *c,
                     int64_t ic,
                     int64_t jc,
                     const int *descc);

// Same as `psunzi_rgemm`, for scalars and arrays of `mpf_t`.
int64_t psunzi_rgemm_mpf(const struct sunzi_context *ctx,
                         const char *transa,
                         const char *transb,
                         int64_t m,
                         int64_t n,
                         int64_t k,
                         const void *alpha,
                         const void *a,
                         int64_t ia,
                         int64_t ja,
                         const int *desca,
                         const void *b,
                         int64_t ib,
                         int64_t jb,
                         const int *descb,
                         const void *beta,
                         void *c,
                         int64_t ic,
                         int64_t jc,
                         const int *descc);

// Solves a triangular system in place as `sunzi_mpi_trsm` does, with the arguments of `PDTRSM`:
// `B := alpha op(T)^-1 B` (`side` "L") or `B := alpha B op(T)^-1` (`side` "R"). `a` holds T; B is m x n.
//
// Returns info: `i > 0` if entry (i, i) of T, counted from 1, is 0.
int64_t psunzi_rtrsm(const struct sunzi_context *ctx,
                     const char *side,
                     const char *uplo,
                     const char *transa,
                     const char *diag,
                     int64_t m,
                     int64_t n,
                     const void *alpha,
                     const void *a,
                     int64_t ia,
                     int64_t ja,
                     const int *desca,
                     void *b,
                     int64_t ib,
                     int64_t jb,
                     const int *descb);

// Same as `psunzi_rtrsm`, for scalars and arrays of `mpf_t`.
int64_t psunzi_rtrsm_mpf(const struct sunzi_context *ctx,
                         const char *side,
                         const char *uplo,
                         const char *transa,
                         const char *diag,
                         int64_t m,
                         int64_t n,
                         const void *alpha,
                         const void *a,
                         int64_t ia,
                         int64_t ja,
                         const int *desca,
                         void *b,
                         int64_t ib,
                         int64_t jb,
                         const int *descb);

// Replaces a symmetric positive definite A by its Cholesky factor as `sunzi_mpi_cholesky` does, with the arguments of
// `PDPOTRF`. A is n x n, and its triangle `uplo` is read and written.
//
// Returns info: `i > 0` if the i-th pivot, as computed and counted from 1, is not positive; A is unchanged then.
int64_t psunzi_rpotrf(const struct sunzi_context *ctx,
                      const char *uplo,
                      int64_t n,
                      void *a,
                      int64_t ia,
                      int64_t ja,
                      const int *desca);

// Same as `psunzi_rpotrf`, for scalars and arrays of `mpf_t`.
int64_t psunzi_rpotrf_mpf(const struct sunzi_context *ctx,
                          const char *uplo,
                          int64_t n,
                          void *a,
                          int64_t ia,
                          int64_t ja,
                          const int *desca);

// Computes `B := A^-1 B` from the factor that `psunzi_rpotrf` has left in `a`, with the arguments of `PDPOTRS`. `a` is
// n x n, and B is n x nrhs.
//
// Returns info: `i > 0` if entry (i, i) of the factor, counted from 1, is 0.
int64_t psunzi_rpotrs(const struct sunzi_context *ctx,
                      const char *uplo,
                      int64_t n,
                      int64_t nrhs,
                      const void *a,
                      int64_t ia,
                      int64_t ja,
                      const int *desca,
                      void *b,
                      int64_t ib,
                      int64_t jb,
                      const int *descb);

// Same as `psunzi_rpotrs`, for scalars and arrays of `mpf_t`.
int64_t psunzi_rpotrs_mpf(const struct sunzi_context *ctx,
                          const char *uplo,
                          int64_t n,
                          int64_t nrhs,
                          const void *a,
                          int64_t ia,
                          int64_t ja,
                          const int *desca,
                          void *b,
                          int64_t ib,
                          int64_t jb,
                          const int *descb);

// Returns the version of the library, such as `"0.1.0"`.
const char *sunzi_version(void);

// Returns 1 if this build has the feature `name` (`"mpi"`, `"blas"`, `"cuda"`) or if this machine has the kernel
// `name` (`"ifma52"`, `"i16"`, `"i8"`, `"f64"`, `"blas"`, `"reference"`); else, and for null, 0.
//
// `name` must be null or a string that ends with a zero.
int sunzi_has(const char *name);

// Returns a short description of a status.
const char *sunzi_status_text(int status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SUNZI_H */
