// sunzi: dense linear algebra on big floats, from C, C++, Julia and whatever calls C.
//
// Made by cbindgen from the sources of the library; do not edit. docs/C_API.md is the how-to.
//
// Matrices. An argument `const sunzi_matrix *` describes a matrix in the caller's memory: arrays of mpfr_t or of mpf_t,
// or raw limbs. This header needs neither mpfr.h nor gmp.h: pointers to entries are `void *`. Entries keep the layout
// that MPFR and GMP promise in their binary interfaces, so any version of these libraries will do; the library brings
// its own copies and does not touch the caller's.
//
// Choices. `layout` is SUNZI_ROW_MAJOR or SUNZI_COL_MAJOR, `trans` SUNZI_NO_TRANS or SUNZI_TRANS, `uplo` SUNZI_UPPER or
// SUNZI_LOWER, for a symmetric matrix also SUNZI_BOTH, `diag` SUNZI_NON_UNIT or SUNZI_UNIT, `side` SUNZI_LEFT or
// SUNZI_RIGHT, `format` SUNZI_MPFR, SUNZI_MPF or SUNZI_LIMBS, `accuracy` SUNZI_NORM or SUNZI_ENTRYWISE. Factors
// (`alpha`, `beta`) are matrices of one entry, of any format.
//
// Precision. Operands are taken exactly, also where their precisions differ. A result is computed at the largest
// precision of the entries that it goes to (for mpf_t a limb more than mpf_get_prec says, as GMP's own sums have; at
// least 2 bits), then each entry is rounded to nearest even at its own. There is one zero, without sign. Exponents lie within +-(2^30 - 1), MPFR's
// default range.
//
// Failures. A call returns a status; `sunzi_last_error` has the message. What is NaN or infinite, null, negative or too
// small is a status, never an abort. After a failure results are as they were, but for `SUNZI_EXPONENT_RANGE` while
// they are stored. Entries outside of a triangle that is asked for are never looked at.
//
// Rules for pointers. Each is null where that is allowed, or points to live, initialised objects as many as the sizes
// say. During a call no other thread may write to its operands, or use the arrays of its results. Of raw limbs
// (SUNZI_LIMBS) that holds for every place from the first entry to the last: what lies between columns or in the other
// triangle belongs to the same arrays. It may be anything, also never written, and is never looked at, but no other
// thread may write there meanwhile. Operands and results may be the same arrays, or overlap.
//
// Threads. There is no state outside of contexts. Several threads may call on one context at the same time.
//
// Doubles. Calls expect doubles to be rounded to nearest (FE_TONEAREST, as a program starts) and small ones not to be
// flushed to 0; in another mode results can be wrong.


#ifndef SUNZI_H
#define SUNZI_H

#include <stddef.h>
#include <stdint.h>

// Entries are `mpfr_t`.
#define SUNZI_MPFR 1

// Entries are `mpf_t`.
#define SUNZI_MPF 2

// Entries are heads and limbs in the library's own form, see `sunzi_limb_matrix`.
#define SUNZI_LIMBS 3

// Entry `(i, j)` has index `i * ld + j` (the number of `CblasRowMajor`).
#define SUNZI_ROW_MAJOR 101

// Entry `(i, j)` has index `i + j * ld` (the number of `CblasColMajor`).
#define SUNZI_COL_MAJOR 102

// The matrix itself (the number of `CblasNoTrans`).
#define SUNZI_NO_TRANS 111

// Its transpose (the number of `CblasTrans`).
#define SUNZI_TRANS 112

// Entries with `row <= column` (the number of `CblasUpper`).
#define SUNZI_UPPER 121

// Entries with `row >= column` (the number of `CblasLower`).
#define SUNZI_LOWER 122

// Both triangles of a symmetric matrix: of an operand they must hold the same numbers, of a result both are written.
#define SUNZI_BOTH 123

// The diagonal is read (the number of `CblasNonUnit`).
#define SUNZI_NON_UNIT 131

// The diagonal is ones and not read (the number of `CblasUnit`).
#define SUNZI_UNIT 132

// `op(T) X = alpha B` (the number of `CblasLeft`).
#define SUNZI_LEFT 141

// `X op(T) = alpha B` (the number of `CblasRight`).
#define SUNZI_RIGHT 142

// Each entry is right beside the norms of a row and a column.
#define SUNZI_NORM 1

// Each entry is right beside the magnitudes of its own terms, as sums in loops are.
#define SUNZI_ENTRYWISE 2

// Every rank has all rows, or columns; Elemental's `STAR`.
#define SUNZI_ALONG_NONE 0

// Dealt out by the row of a rank in the grid; Elemental's `MC`.
#define SUNZI_ALONG_GRID_ROW 1

// Dealt out by the column of a rank in the grid; Elemental's `MR`.
#define SUNZI_ALONG_GRID_COL 2

// Dealt out by the number of a rank, counted column by column through the grid; Elemental's `VC`.
#define SUNZI_ALONG_COL_MAJOR 3

// Dealt out by the number of a rank, counted row by row through the grid; Elemental's `VR`.
#define SUNZI_ALONG_ROW_MAJOR 4

// What a call returns: 0, or what went wrong. `sunzi_last_error` has the message, with the numbers in it.
typedef enum sunzi_status {
    // All went well.
    SUNZI_OK = 0,
    // A pointer that must not be null is.
    SUNZI_NULL_POINTER = 1,
    // An argument makes no sense: an unknown choice, a factor that is not finite, an unknown kernel.
    SUNZI_INVALID_ARGUMENT = 2,
    // A size is negative, a leading dimension too small, or shapes do not fit each other.
    SUNZI_INVALID_SIZE = 3,
    // An entry is no number of its kind: not initialised, or limbs that break their form.
    SUNZI_INVALID_ENTRY = 4,
    // An entry is NaN or infinite.
    SUNZI_NOT_FINITE = 5,
    // An exponent lies outside +-(2^30 - 1).
    SUNZI_EXPONENT_RANGE = 6,
    // The precision is below or above what can be computed.
    SUNZI_PRECISION = 7,
    // The matrix is not positive definite at this precision; `sunzi_last_place` has the index.
    SUNZI_NOT_POSITIVE_DEFINITE = 8,
    // A triangular matrix has a zero on its diagonal; `sunzi_last_place` has the index.
    SUNZI_SINGULAR = 9,
    // The context's memory limit is too small; the message has the least for this step of the call, a later step may
    // ask for more.
    SUNZI_MEMORY_LIMIT = 10,
    // The system refused memory, or threads.
    SUNZI_OUT_OF_MEMORY = 11,
    // The progress function asked to stop.
    SUNZI_CANCELLED = 12,
    // A self-check failed: a residue or a product was wrong.
    SUNZI_SELF_CHECK = 13,
    // A kernel or a feature that this machine or this build lacks.
    SUNZI_UNAVAILABLE = 14,
    // Ranks could not reach each other, or another rank failed.
    SUNZI_COMMUNICATION = 15,
    // A device failed.
    SUNZI_DEVICE = 16,
    // A defect of the library.
    SUNZI_INTERNAL = 17,
    // Both triangles of a matrix were to count, and they differ; `sunzi_last_place` has the first entry below the
    // diagonal, column by column, that is not its mirror image.
    SUNZI_NOT_SYMMETRIC = 18,
} sunzi_status;

// Choices and kept state of all calls; made by `sunzi_context_new`, freed by `sunzi_context_free`.
typedef struct sunzi_context sunzi_context;

// A Cholesky factor in the library's memory; made by `sunzi_factor_new`, freed by `sunzi_factor_free`. It may be used
// by several threads at the same time, and with any context.
typedef struct sunzi_factor sunzi_factor;

// Factors `L D L^T` in the library's memory; made by `sunzi_ldlt_new`, freed by `sunzi_ldlt_free`. They may be used by
// several threads at the same time, and with any context.
typedef struct sunzi_ldlt sunzi_ldlt;

// A Cholesky factor over the ranks of a communicator, this rank's tiles of it; made by `sunzi_mpi_factor_new`, made
// that of another matrix by `sunzi_mpi_factor_renew`, freed by `sunzi_mpi_factor_free`. It may be used with any
// context on the same ranks in the same order.
typedef struct sunzi_mpi_factor sunzi_mpi_factor;

// A matrix in the caller's memory: made by `sunzi_mpfr_matrix`, `sunzi_mpf_matrix` or `sunzi_limb_matrix`, or filled
// by hand. Nothing is copied or owned.
typedef struct sunzi_matrix {
    // What the entries are: `SUNZI_MPFR`, `SUNZI_MPF` or `SUNZI_LIMBS`.
    int32_t format;
    // `SUNZI_ROW_MAJOR` or `SUNZI_COL_MAJOR`.
    int32_t layout;
    // Rows; may be 0.
    int64_t rows;
    // Columns; may be 0.
    int64_t cols;
    // Leading dimension: the distance in entries between rows (row-major) or columns (column-major).
    int64_t ld;
    // The first `mpfr_t`, `mpf_t` or head. Entries of operands that are only read are never written.
    void *entries;
    // `SUNZI_LIMBS` alone: the limbs of the first entry.
    uint64_t *limbs;
    // `SUNZI_LIMBS` alone: bits of every significand.
    int64_t precision_bits;
} sunzi_matrix;

// Told how far a call is, from any of the context's threads; another value than 0 stops the call with
// `SUNZI_CANCELLED`. Must not throw and must not call the library on the same context.
typedef int (*sunzi_progress)(void *user, const char *phase, uint64_t done, uint64_t total);

// Choices of a context. All zeros, or a null pointer in its place, chooses the defaults.
typedef struct sunzi_options {
    // Worker threads; 0 takes all processors that the process may use.
    int64_t threads;
    // Bytes that a call may take, results and copies of operands included and the caller's arrays excluded; 0 sets no
    // limit. A call over ranks: all ranks of a node together, which should say the same; kept factors and messages,
    // of 1 to 8 MiB on a rank, are excluded too.
    uint64_t memory_bytes;
    // Name of the kernel; null takes the fastest.
    const char *kernel;
    // Not 0: products are checked by a redundant prime.
    int self_check;
    // Not 0: products are tested with a random vector before they are rounded.
    int freivalds;
    // Progress and cancelling; may be null.
    sunzi_progress progress;
    // Handed to `progress`.
    void *user;
    // What entries of results are right beside, on this context: `SUNZI_NORM`, or `SUNZI_ENTRYWISE`, which 0 is as
    // well.
    int accuracy;
    // Devices that products and factorisations run on, by names with commas between them: `cuda` for all GPUs,
    // `cuda:0`, `soft` or `soft:BYTES` for plain memory behind the same code, `host` for the CPU as one more; null
    // for none. Over ranks either all have some or none. The bits are those without.
    const char *devices;
    // Most bytes to use of each device, that all ranks share which name it; 0 for all it has.
    uint64_t device_memory_bytes;
} sunzi_options;

// What the last call on a context took; see `sunzi_last_report`.
typedef struct sunzi_report {
    // Bytes that copies of operands and results took, beside the caller's arrays.
    uint64_t copied_bytes;
    // Bytes that the plan allows for, copies included. Without a memory limit, right sides of a solve that outgrow its
    // first try take more. After a call over ranks those of this rank at the step that takes most, messages and its
    // share of what ranks of a node have in common included, so that the sum over ranks is that of the node.
    uint64_t planned_bytes;
    // Most bytes that the library had allocated at one time of the call, beyond those at its start. Memory that the
    // context had kept is not among them. Exact where calls of the process do not overlap.
    uint64_t peak_bytes;
    // Bits of the result before each entry was stored.
    int64_t precision_bits;
    // What entries were right beside, `SUNZI_NORM` or `SUNZI_ENTRYWISE`; 0 after calls that know no such choice.
    int accuracy;
    // Bits that `SUNZI_ENTRYWISE` took beyond those of norms, for the range of exponents.
    int64_t range_bits;
    // Seconds of the call.
    double seconds;
    // Seconds of them in which operands were taken in; those of fewer than 256 entries do not count.
    double read_seconds;
    // Seconds of them in which results were stored; those of fewer than 256 entries do not count.
    double write_seconds;
} sunzi_report;

// How operands of a call about digits were rounded before it got them, each entry to nearest: `1/3` was, in any binary
// format. Digits are those of the answer to the problem as it was before. All zeros, or a null pointer in its place,
// says that the operands are exact.
typedef struct sunzi_rounding {
    // Bits that the entries of the matrix were rounded to; 0 where they are exact.
    int64_t matrix_bits;
    // Bits that the entries of the right sides were rounded to; 0 where they are exact.
    int64_t right_bits;
} sunzi_rounding;

// The part of a matrix over the ranks of a communicator that lies on this one, and how all of it is dealt out: made by
// `sunzi_dist_rows`, `sunzi_dist_scalapack` or `sunzi_dist_elemental`, or filled by hand. Nothing is copied or owned.
//
// Row i of the matrix belongs to number `(i / row_block + row_first) mod n` of the n along `row_along`, and the
// columns likewise; a rank stores its entries in the order of their indices. A block of 0 stands for consecutive rows:
// number 0 has the first ones, and each as many as its `local` says.
typedef struct sunzi_dist_matrix {
    // The entries of this rank.
    struct sunzi_matrix local;
    // Rows of the whole matrix; with a block of 0 they may be -1, for the sum over the ranks.
    int64_t rows;
    // Columns of the whole matrix; -1 as for the rows.
    int64_t cols;
    // Rows of the grid of ranks.
    int64_t grid_rows;
    // Columns of the grid of ranks.
    int64_t grid_cols;
    // How ranks are numbered in the grid: `SUNZI_ROW_MAJOR` or `SUNZI_COL_MAJOR`.
    int32_t grid_order;
    // Which number of a rank says what rows it has: `SUNZI_ALONG_NONE` and its kin.
    int32_t row_along;
    // Which number of a rank says what columns it has.
    int32_t col_along;
    // Rows of a block.
    int64_t row_block;
    // Columns of a block.
    int64_t col_block;
    // The number that has the first block of rows.
    int64_t row_first;
    // The number that has the first block of columns.
    int64_t col_first;
} sunzi_dist_matrix;

// What a call over ranks would take; see `sunzi_mpi_plan_syrk`.
typedef struct sunzi_mpi_plan {
    // Bytes of copies of operands and of the result on this rank, beside its arrays.
    uint64_t copied_bytes;
    // Bytes of everything on this rank at a time, copies included, with an even share of what its node has in common.
    uint64_t rank_bytes;
    // No less than that of all ranks of its node together; with it as `memory_bytes` the call is not refused, where
    // numbers and shares are as plans take them.
    uint64_t node_bytes;
} sunzi_mpi_plan;

// What a call would take; see `sunzi_plan_syrk`.
typedef struct sunzi_plan {
    // Bytes that copies of operands and the result will take beside the caller's arrays.
    uint64_t copied_bytes;
    // Bytes of everything, copies and result included.
    uint64_t planned_bytes;
} sunzi_plan;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A matrix whose entries are `mpfr_t`, the first at `entries`.
struct sunzi_matrix sunzi_mpfr_matrix(int32_t layout, int64_t rows, int64_t cols, const void *entries, int64_t ld);

// A matrix whose entries are `mpf_t`, the first at `entries`.
struct sunzi_matrix sunzi_mpf_matrix(int32_t layout, int64_t rows, int64_t cols, const void *entries, int64_t ld);

// A matrix of raw numbers: the entry of index i has the head `heads[i]` and the limbs from `limbs[i * w]` on, where
// `w = sunzi_limbs_for(precision_bits)`. Operands of this form are read where they are, without a copy.
//
// A number is `(-1)^sign * 0.s * 2^exponent`: s is the significand, least limb first, with the top bit of the last
// limb set and the bits below the precision 0. `sunzi_head` packs sign and exponent; the number 0 is the head 0 with
// limbs 0.
struct sunzi_matrix sunzi_limb_matrix(int32_t layout,
                                      int64_t rows,
                                      int64_t cols,
                                      const uint64_t *heads,
                                      const uint64_t *limbs,
                                      int64_t ld,
                                      int64_t precision_bits);

// Limbs of a number of `precision_bits` bits; 0 for a precision below 1.
int64_t sunzi_limbs_for(int64_t precision_bits);

// The head of a number other than 0: `exponent << 2 | 2 | negative`; 0 where the exponent is beyond +-(2^30 - 1).
uint64_t sunzi_head(int negative, int64_t exponent);

// The exponent of a head.
int64_t sunzi_head_exponent(uint64_t head);

// `sunzi_syrk` on `count` pairs: `C_i := alpha * A_i A_i^T + beta * C_i`, or with `A_i^T A_i`.
//
// `a` and `c` are arrays of `count` descriptions, whose shapes and precisions may differ. Each result has the bits of
// the single call. The threads of the context share out the problems. `statuses` takes the status of each problem; it
// may be null.
// One problem that fails leaves its own result as it was and costs the others nothing; the call returns the status of
// the first such problem, and `sunzi_last_error` says its number, from 0. A description or an entry that cannot be
// read, sizes that do not fit each other, a memory limit with no room for the plan of the batch, or a stop ends the
// whole call before anything is written, with that status for all. Under a limit, a problem that `SUNZI_ENTRYWISE`
// costs more bits than were planned may be refused by itself. The arrays of different problems must not overlap where
// one is written.
enum sunzi_status sunzi_syrk_batch(const struct sunzi_context *ctx,
                                   int32_t uplo,
                                   int32_t trans,
                                   const struct sunzi_matrix *alpha,
                                   const struct sunzi_matrix *a,
                                   const struct sunzi_matrix *beta,
                                   const struct sunzi_matrix *c,
                                   int64_t count,
                                   enum sunzi_status *statuses);

// `sunzi_gemm` on `count` triples: `C_i := alpha * op(A_i) op(B_i) + beta * C_i`; the rest as in `sunzi_syrk_batch`.
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

// `sunzi_cholesky` on `count` matrices, each in place; the rest as in `sunzi_syrk_batch`.
//
// A matrix that is not positive definite stays as it was and has `SUNZI_NOT_POSITIVE_DEFINITE` among `statuses`; all
// others become their factors.
enum sunzi_status sunzi_cholesky_batch(const struct sunzi_context *ctx,
                                       int32_t uplo,
                                       const struct sunzi_matrix *a,
                                       int64_t count,
                                       enum sunzi_status *statuses);

// `sunzi_trsm` on `count` pairs, each in place; the rest as in `sunzi_syrk_batch`.
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

// The Cholesky factor of a symmetric positive definite A, in place: L with `A = L L^T` in the lower triangle, or
// `U = L^T` in the upper one. The other triangle is neither read nor written. With `SUNZI_BOTH` A must hold the same
// numbers in both triangles, and becomes L with zeros above the diagonal.
//
// Accuracy: `|A - L L^T|_ij <= 2^(2 - p) (|L| |L^T|)_ij` with p the largest precision of the triangle's entries, for
// any order and condition; under `SUNZI_NORM`, or where `sunzi_last_report` says that norms alone were reached,
// `2^(2 - p) sqrt(a_ii a_jj)`; then each entry is rounded to its own. Cost: n^3 / 6 word products for each of about
// 2 p / 52 primes. After `SUNZI_NOT_POSITIVE_DEFINITE` A is as it was.
enum sunzi_status sunzi_cholesky(const struct sunzi_context *ctx, int32_t uplo, const struct sunzi_matrix *a);

// `B := A^-1 B` for a symmetric positive definite A, of which one triangle is read, or with `SUNZI_BOTH` both, which
// must hold the same numbers; A is not changed.
//
// Accuracy: `|b - A x|_i <= 2^(4 - p) ((|L| |L^T| |x|)_i + |b_i|)` for each column, with p the largest precision of
// B's entries, at which A is factored as well; under `SUNZI_NORM`
// `2^(4 - p) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)`; then each entry is rounded to its own.
enum sunzi_status sunzi_solve(const struct sunzi_context *ctx,
                              int32_t uplo,
                              const struct sunzi_matrix *a,
                              const struct sunzi_matrix *b);

// `B := A^-1 B` with a factor that `sunzi_cholesky` has left in one triangle of `factor`, which is all that is read of
// it.
//
// Accuracy as `sunzi_solve`, with p the smaller of B's largest precision and that of the factor.
enum sunzi_status sunzi_cholesky_solve(const struct sunzi_context *ctx,
                                       int32_t uplo,
                                       const struct sunzi_matrix *factor,
                                       const struct sunzi_matrix *b);

// `result := log det A = 2 sum log |l_ii|` from a factor of A, of which the diagonal alone is read. `result` is a
// matrix of one entry, whose precision the logarithm has.
enum sunzi_status sunzi_log_det(const struct sunzi_context *ctx,
                                const struct sunzi_matrix *factor,
                                const struct sunzi_matrix *result);

// All defaults: every processor, no memory limit, the fastest kernel, no checks.
struct sunzi_options sunzi_options_default(void);

// Makes a context as `options` say (null for the defaults) and puts it into `*ctx`.
//
// `*ctx` is a context after a failure too: one that answers `sunzi_last_error`, and every call with the same failure.
// Free it in either case.
//
// A fork of the process may go on with the context: its first call starts threads of its own. A call that is under way
// while the process forks, devices and communicators stay with the parent: calls over ranks are refused in the fork
// with `SUNZI_COMMUNICATION`, and freeing the context there gives back the fork's own memory and tells no rank.
enum sunzi_status sunzi_context_new(const struct sunzi_options *options, struct sunzi_context **ctx);

// A context on the communicator with the Fortran handle `communicator` (`MPI_Comm_c2f(comm)`), for the calls named
// `sunzi_mpi_...`; all others run on this rank alone. Collective over the communicator, which is duplicated.
//
// MPI stays the caller's: it must be initialised before, and finalised after `sunzi_context_free`. Threads of the
// context never call MPI. An intercommunicator is refused on all ranks of both groups. Contexts are freed in one order
// on all ranks that have several. Without the feature `mpi` this is `SUNZI_UNAVAILABLE`.
//
// `communicator` is the handle of a live communicator, or of none.
enum sunzi_status sunzi_context_from_mpi(int communicator,
                                         const struct sunzi_options *options,
                                         struct sunzi_context **ctx);

// Frees a context; null does nothing. No call may be under way on it. Texts of `sunzi_last_error` go with it.
// Collective for a context on a communicator, unless MPI has been finalised.
//
// `ctx` is null or came from `sunzi_context_new` or `sunzi_context_from_mpi`, and is not used again.
void sunzi_context_free(struct sunzi_context *ctx);

// Gives back the memory that the context keeps between calls: copies, windows, scratch. Tables and threads stay.
enum sunzi_status sunzi_context_release(const struct sunzi_context *ctx);

// Why the calling thread's last call on the context failed, as one line with the numbers; empty where it went well.
//
// The text stays until the thread's next call on the context.
const char *sunzi_last_error(const struct sunzi_context *ctx);

// The status of the calling thread's last call on the context, also of one that returned info.
enum sunzi_status sunzi_last_status(const struct sunzi_context *ctx);

// The row and the column, from 0, of the entry that the calling thread's last call failed at, as
// `sunzi_last_error` names it; for a matrix that is not positive definite, or singular, twice the index. Both are -1
// where the failure has no place. Null pointers are passed over.
void sunzi_last_place(const struct sunzi_context *ctx, int64_t *row, int64_t *column);

// Fills `report` with what the context's last call that went well took, whichever thread made it.
enum sunzi_status sunzi_last_report(const struct sunzi_context *ctx, struct sunzi_report *report);

// `*bits :=` about how many bits solves with a kept factor lose: log2 of the norm of the inverse of A, scaled by
// powers of two to a diagonal of about 1. Found once and kept in the factor. Cost: a few solves with one right side.
enum sunzi_status sunzi_factor_condition_bits(const struct sunzi_context *ctx,
                                              const struct sunzi_factor *factor,
                                              double *bits);

// `*digits :=` about how many decimal digits of `sunzi_factor_log_det` are right, at the factor's precision. Cost: a
// few solves with one right side.
enum sunzi_status sunzi_factor_log_det_digits(const struct sunzi_context *ctx,
                                              const struct sunzi_factor *factor,
                                              double *digits);

// `sunzi_factor_log_det_digits` of a matrix that may have been rounded.
enum sunzi_status sunzi_factor_log_det_digits_with(const struct sunzi_context *ctx,
                                                   const struct sunzi_factor *factor,
                                                   const struct sunzi_rounding *rounding,
                                                   double *digits);

// `*digits :=` about how many decimal digits of a solution X of `A X = B` are right, beside the largest entry of its
// worst column. A is the matrix that was factored, of which one triangle is read, or with `SUNZI_BOTH` both.
//
// Cost: for up to four columns, and for four where there are more, a product of A with a column and a solve.
enum sunzi_status sunzi_factor_solution_digits(const struct sunzi_context *ctx,
                                               const struct sunzi_factor *factor,
                                               int32_t uplo,
                                               const struct sunzi_matrix *a,
                                               const struct sunzi_matrix *b,
                                               const struct sunzi_matrix *x,
                                               double *digits);

// `sunzi_factor_solution_digits` of operands that may have been rounded.
enum sunzi_status sunzi_factor_solution_digits_with(const struct sunzi_context *ctx,
                                                    const struct sunzi_factor *factor,
                                                    const struct sunzi_rounding *rounding,
                                                    int32_t uplo,
                                                    const struct sunzi_matrix *a,
                                                    const struct sunzi_matrix *b,
                                                    const struct sunzi_matrix *x,
                                                    double *digits);

// `*digits :=` how many decimal digits of a solution X of `A X = B` are proven to be right, beside the largest entry
// of each column; 0 where nothing can be proven: where A could not be shown to be positive definite. Operands as
// `sunzi_factor_solution_digits`.
//
// Cost: a second factorisation with as many bits as the condition of the scaled A, and some tens more; a product of A
// with X and a solve.
enum sunzi_status sunzi_factor_certified_solution_digits(const struct sunzi_context *ctx,
                                                         const struct sunzi_factor *factor,
                                                         int32_t uplo,
                                                         const struct sunzi_matrix *a,
                                                         const struct sunzi_matrix *b,
                                                         const struct sunzi_matrix *x,
                                                         double *digits);

// `sunzi_factor_certified_solution_digits` of operands that may have been rounded.
enum sunzi_status sunzi_factor_certified_solution_digits_with(const struct sunzi_context *ctx,
                                                              const struct sunzi_factor *factor,
                                                              const struct sunzi_rounding *rounding,
                                                              int32_t uplo,
                                                              const struct sunzi_matrix *a,
                                                              const struct sunzi_matrix *b,
                                                              const struct sunzi_matrix *x,
                                                              double *digits);

// `*digits :=` about how many decimal digits of an inverse of A are right, beside its largest entry. A is the matrix
// that was factored; `uplo` names the triangle of A and of the inverse that is read, or with `SUNZI_BOTH` both.
//
// Cost: for up to four columns a product of A with a column and a solve.
enum sunzi_status sunzi_factor_inverse_digits(const struct sunzi_context *ctx,
                                              const struct sunzi_factor *factor,
                                              int32_t uplo,
                                              const struct sunzi_matrix *a,
                                              const struct sunzi_matrix *inverse,
                                              double *digits);

// `sunzi_factor_inverse_digits` of operands that may have been rounded.
enum sunzi_status sunzi_factor_inverse_digits_with(const struct sunzi_context *ctx,
                                                   const struct sunzi_factor *factor,
                                                   const struct sunzi_rounding *rounding,
                                                   int32_t uplo,
                                                   const struct sunzi_matrix *a,
                                                   const struct sunzi_matrix *inverse,
                                                   double *digits);

// `*digits :=` how many decimal digits of an inverse of A are proven to be right, beside its largest entry; 0 where
// nothing can be proven. Operands as `sunzi_factor_inverse_digits`, cost as `sunzi_factor_certified_solution_digits`
// for n right sides.
enum sunzi_status sunzi_factor_certified_inverse_digits(const struct sunzi_context *ctx,
                                                        const struct sunzi_factor *factor,
                                                        int32_t uplo,
                                                        const struct sunzi_matrix *a,
                                                        const struct sunzi_matrix *inverse,
                                                        double *digits);

// `sunzi_factor_certified_inverse_digits` of operands that may have been rounded.
enum sunzi_status sunzi_factor_certified_inverse_digits_with(const struct sunzi_context *ctx,
                                                             const struct sunzi_factor *factor,
                                                             const struct sunzi_rounding *rounding,
                                                             int32_t uplo,
                                                             const struct sunzi_matrix *a,
                                                             const struct sunzi_matrix *inverse,
                                                             double *digits);

// `*digits :=` how many decimal digits of `sunzi_factor_log_det` are proven to be right, at the factor's precision; 0
// where nothing can be proven. A is the matrix that was factored, of which one triangle is read, or with `SUNZI_BOTH`
// both. Cost: as `sunzi_factor_certified_solution_digits`, and a product of the factor with its transpose.
enum sunzi_status sunzi_factor_certified_log_det_digits(const struct sunzi_context *ctx,
                                                        const struct sunzi_factor *factor,
                                                        int32_t uplo,
                                                        const struct sunzi_matrix *a,
                                                        double *digits);

// `sunzi_factor_certified_log_det_digits` of a matrix that may have been rounded.
enum sunzi_status sunzi_factor_certified_log_det_digits_with(const struct sunzi_context *ctx,
                                                             const struct sunzi_factor *factor,
                                                             const struct sunzi_rounding *rounding,
                                                             int32_t uplo,
                                                             const struct sunzi_matrix *a,
                                                             double *digits);

// Factors a symmetric positive definite A, of which one triangle is read, or with `SUNZI_BOTH` both, which must hold
// the same numbers, and puts a handle of the factor into `*factor` (null where it fails).
//
// `precision_bits` is the precision of the factor; 0 takes the largest of the triangle's entries. Accuracy as
// `sunzi_cholesky`.
enum sunzi_status sunzi_factor_new(const struct sunzi_context *ctx,
                                   int32_t uplo,
                                   int64_t precision_bits,
                                   const struct sunzi_matrix *a,
                                   struct sunzi_factor **factor);

// Frees a factor; null does nothing.
//
// `factor` is null or came from `sunzi_factor_new`, and is not used again.
void sunzi_factor_free(struct sunzi_factor *factor);

// Rows of the factored matrix; -1 for a null pointer.
//
// `factor` is null or live.
int64_t sunzi_factor_order(const struct sunzi_factor *factor);

// Bits of the factor's entries; -1 for a null pointer.
//
// `factor` is null or live.
int64_t sunzi_factor_precision_bits(const struct sunzi_factor *factor);

// `B := A^-1 B` with a kept factor of A. Accuracy as `sunzi_cholesky_solve`.
enum sunzi_status sunzi_factor_solve(const struct sunzi_context *ctx,
                                     const struct sunzi_factor *factor,
                                     const struct sunzi_matrix *b);

// `inverse := A^-1` from a kept factor of A: one triangle of it, or with `SUNZI_BOTH` the whole matrix.
//
// Accuracy: with `Z = (L L^T)^-1` for the factor as it is `|inverse - Z|_ij <= 2^(2 - p) sqrt(z_ii z_jj)`, p being the
// largest precision of the entries of `inverse` that are written; then each entry is rounded to its own. Cost: n^3 / 3
// word products for each prime, at a precision raised by half the bits of the condition.
enum sunzi_status sunzi_factor_inverse(const struct sunzi_context *ctx,
                                       const struct sunzi_factor *factor,
                                       int32_t uplo,
                                       const struct sunzi_matrix *inverse);

// `result := log det A` from a kept factor, at the precision of `result`, a matrix of one entry.
enum sunzi_status sunzi_factor_log_det(const struct sunzi_context *ctx,
                                       const struct sunzi_factor *factor,
                                       const struct sunzi_matrix *result);

// Stores a kept factor in one triangle of `a`: L, or `L^T` in the upper one. The other triangle is not written.
enum sunzi_status sunzi_factor_get(const struct sunzi_context *ctx,
                                   const struct sunzi_factor *factor,
                                   int32_t uplo,
                                   const struct sunzi_matrix *a);

// The version of the library, as `"0.1.0"`.
const char *sunzi_version(void);

// 1 where this build has the feature `name` (`"mpi"`, `"blas"`, `"cuda"`) or this machine the kernel `name`
// (`"ifma52"`, `"i16"`, `"i8"`, `"f64"`, `"blas"`, `"reference"`), else 0; 0 for null.
//
// `name` is null or ends with a zero.
int sunzi_has(const char *name);

// What a status means, in a few words.
const char *sunzi_status_text(int status);

// `sunzi_cholesky` with the arguments of `Rpotrf`, info returned: `i > 0` where the i-th pivot, as computed,
// is not positive.
int64_t sunzi_rpotrf(const struct sunzi_context *ctx, const char *uplo, int64_t n, void *a, int64_t lda);

// `sunzi_rpotrf` on `mpf_t`: scalars and arrays.
int64_t sunzi_rpotrf_mpf(const struct sunzi_context *ctx, const char *uplo, int64_t n, void *a, int64_t lda);

// `sunzi_cholesky_solve` with the arguments of `Rpotrs`; returns info as `sunzi_rsyrk` does, and `i > 0` where entry
// (i, i) of the factor is 0.
int64_t sunzi_rpotrs(const struct sunzi_context *ctx,
                     const char *uplo,
                     int64_t n,
                     int64_t nrhs,
                     const void *a,
                     int64_t lda,
                     void *b,
                     int64_t ldb);

// `sunzi_rpotrs` on `mpf_t`: scalars and arrays.
int64_t sunzi_rpotrs_mpf(const struct sunzi_context *ctx,
                         const char *uplo,
                         int64_t n,
                         int64_t nrhs,
                         const void *a,
                         int64_t lda,
                         void *b,
                         int64_t ldb);

// `result := x^T y` with the arguments of `Rdot`, for vectors of `n` entries that lie `incx` and `incy` apart,
// backwards where negative; 0 where n is not positive. `result` points to an `mpfr_t`.
//
// Accuracy: `|computed - exact| <= 2^(1 - p) |x|^T |y|` with p the precision of `result`, to which it is rounded once.
// Cost: one product of limbs for each entry. Returns info as `sunzi_rsyrk` does.
int64_t sunzi_rdot(const struct sunzi_context *ctx,
                   int64_t n,
                   const void *x,
                   int64_t incx,
                   const void *y,
                   int64_t incy,
                   void *result);

// `sunzi_rdot` on `mpf_t`: scalars and arrays.
int64_t sunzi_rdot_mpf(const struct sunzi_context *ctx,
                       int64_t n,
                       const void *x,
                       int64_t incx,
                       const void *y,
                       int64_t incy,
                       void *result);

// `result := sqrt(x^T x)` with the arguments of `Rnrm2`, for `n` entries that lie `incx` apart; 0 where n is not
// positive. `result` points to an `mpfr_t`.
//
// Accuracy: `|computed - exact| <= 2^(1 - p) exact`; no square overflows. Returns info as `sunzi_rsyrk` does.
int64_t sunzi_rnrm2(const struct sunzi_context *ctx, int64_t n, const void *x, int64_t incx, void *result);

// `sunzi_rnrm2` on `mpf_t`: scalars and arrays.
int64_t sunzi_rnrm2_mpf(const struct sunzi_context *ctx, int64_t n, const void *x, int64_t incx, void *result);

// `y := alpha x + y` with the arguments of `Raxpy`, for vectors of `n` entries that lie `incx` and `incy` apart,
// backwards where negative; nothing where n is not positive or alpha is 0.
//
// Accuracy: every entry is the exact number, rounded once to the largest precision of y's entries, then to its own.
// `incy` must not be 0. Returns info as `sunzi_rsyrk` does.
int64_t sunzi_raxpy(const struct sunzi_context *ctx,
                    int64_t n,
                    const void *alpha,
                    const void *x,
                    int64_t incx,
                    void *y,
                    int64_t incy);

// `sunzi_raxpy` on `mpf_t`: scalars and arrays.
int64_t sunzi_raxpy_mpf(const struct sunzi_context *ctx,
                        int64_t n,
                        const void *alpha,
                        const void *x,
                        int64_t incx,
                        void *y,
                        int64_t incy);

// `y := alpha op(A) x + beta y` with the arguments of `Rgemv`: A is m x n, the entries of the vectors lie `incx` and
// `incy` apart, backwards where negative. Nothing where m or n is 0.
//
// Accuracy: `|computed - exact|_i <= 2^(1 - p) (|alpha| (|A| |x|)_i + |beta| |y_i|)` with p the largest precision of
// y's entries; then each entry is rounded to its own. Cost: one product of limbs for each entry of A. Returns info as
// `sunzi_rsyrk` does.
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

// `sunzi_rgemv` on `mpf_t`: scalars and arrays.
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

// `y := alpha A x + beta y` for a symmetric A with the arguments of `Rsymv`: the triangle `uplo` of A is read.
// Accuracy, vectors and info as in `sunzi_rgemv`.
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

// `sunzi_rsymv` on `mpf_t`: scalars and arrays.
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

// `A := alpha x y^T + A` with the arguments of `Rger`: A is m x n, x has m entries, y has n. Accuracy: every entry is
// the exact number, rounded once to the largest precision of A's entries, then to its own. Nothing where m or n or
// alpha is 0. Returns info as `sunzi_rsyrk` does.
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

// `sunzi_rger` on `mpf_t`: scalars and arrays.
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

// `x := op(T) x` for a triangular T with the arguments of `Rtrmv`: `a` holds T, of which the triangle `uplo` is read,
// with `diag` "U" without its diagonal. Accuracy as in `sunzi_rgemv`; returns info as `sunzi_rsyrk` does.
int64_t sunzi_rtrmv(const struct sunzi_context *ctx,
                    const char *uplo,
                    const char *trans,
                    const char *diag,
                    int64_t n,
                    const void *a,
                    int64_t lda,
                    void *x,
                    int64_t incx);

// `sunzi_rtrmv` on `mpf_t`: scalars and arrays.
int64_t sunzi_rtrmv_mpf(const struct sunzi_context *ctx,
                        const char *uplo,
                        const char *trans,
                        const char *diag,
                        int64_t n,
                        const void *a,
                        int64_t lda,
                        void *x,
                        int64_t incx);

// `x := op(T)^-1 x` for a triangular T with the arguments of `Rtrsv`, by substitution: T as in `sunzi_rtrmv`.
//
// Accuracy: `|b - op(T) x|_i <= 2^(1 - p) (|op(T)| |x|)_i`, row by row, with p the largest precision of x's entries;
// then each entry is rounded to its own. Returns info as `sunzi_rtrsm` does.
int64_t sunzi_rtrsv(const struct sunzi_context *ctx,
                    const char *uplo,
                    const char *trans,
                    const char *diag,
                    int64_t n,
                    const void *a,
                    int64_t lda,
                    void *x,
                    int64_t incx);

// `sunzi_rtrsv` on `mpf_t`: scalars and arrays.
int64_t sunzi_rtrsv_mpf(const struct sunzi_context *ctx,
                        const char *uplo,
                        const char *trans,
                        const char *diag,
                        int64_t n,
                        const void *a,
                        int64_t lda,
                        void *x,
                        int64_t incx);

// `sunzi_syrk` with the arguments of `Rsyrk`: `uplo` "U" or "L", `trans` "N" or "T"; `alpha`, `beta` point to an
// `mpfr_t`, `a` and `c` to the first of an array, column-major.
//
// Returns info: 0, or `-i` where argument i is wrong, counted from 1 after `ctx` as LAPACK does, or `-1000 - status`
// for all other failures; `sunzi_last_error` has the message.
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

// `sunzi_rsyrk` on `mpf_t`: scalars and arrays.
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

// `sunzi_gemm` with the arguments of `Rgemm`, entry by entry; returns info as `sunzi_rsyrk` does.
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

// `sunzi_rgemm` on `mpf_t`: scalars and arrays.
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

// `sunzi_trsm` with the arguments of `Rtrsm`: `side` "L" or "R", `diag` "N" or "U"; the triangle is `a`, the right
// sides `b`.
//
// Returns info as `sunzi_rsyrk` does, and `i > 0` where entry (i, i) of the triangle, from 1, is 0.
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

// `sunzi_rtrsm` on `mpf_t`: scalars and arrays.
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

// `B := alpha op(T) B` or `alpha B op(T)` for a triangular T with the arguments of `Rtrmm`, those of `sunzi_rtrsm`.
//
// Accuracy: that of `sunzi_rgemm`. Returns info as `sunzi_rsyrk` does.
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

// `sunzi_rtrmm` on `mpf_t`: scalars and arrays.
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

// `C := alpha A B + beta C` (`side` "L") or `alpha B A + beta C` for a symmetric A with the arguments of `Rsymm`: the
// triangle `uplo` of A is read. Accuracy: that of `sunzi_rgemm`. Returns info as `sunzi_rsyrk` does.
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

// `sunzi_rsymm` on `mpf_t`: scalars and arrays.
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

// `C := alpha (A B^T + B A^T) + beta C` (`trans` "N") or `alpha (A^T B + B^T A) + beta C` with the arguments of
// `Rsyr2k`: the triangle `uplo` of C. Accuracy: that of `sunzi_rgemm` for both products. Returns info as `sunzi_rsyrk`
// does.
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

// `sunzi_rsyr2k` on `mpf_t`: scalars and arrays.
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

// Factors a symmetric A, of which one triangle is read, or with `SUNZI_BOTH` both, which must hold the same numbers,
// as `A = L D L^T` without pivoting, and puts a handle of the factors into `*factor` (null where it fails).
//
// `precision_bits` is the precision of the factors; 0 takes the largest of the triangle's entries. Accuracy: with
// `g_i = (|L| |D| |L^T|)_ii` the residual is at most `2^(3 - precision_bits) sqrt(g_i g_j)`. For quasi-definite
// matrices `g_i` is moderate, for others it may be of any size: `sunzi_ldlt_solution_digits` tells what it has cost.
// A pivot that is 0 is `SUNZI_SINGULAR`.
enum sunzi_status sunzi_ldlt_new(const struct sunzi_context *ctx,
                                 int32_t uplo,
                                 int64_t precision_bits,
                                 const struct sunzi_matrix *a,
                                 struct sunzi_ldlt **factor);

// Frees factors; null does nothing.
//
// `factor` is null or came from `sunzi_ldlt_new`, and is not used again.
void sunzi_ldlt_free(struct sunzi_ldlt *factor);

// `B := A^-1 B` with kept factors of A.
enum sunzi_status sunzi_ldlt_solve(const struct sunzi_context *ctx,
                                   const struct sunzi_ldlt *factor,
                                   const struct sunzi_matrix *b);

// `*digits :=` about how many decimal digits of a solution X of `A X = B` are right, beside the largest entry of its
// worst column; 0 where the factors are too rough to tell. A is the matrix that was factored, of which one triangle is
// read, or with `SUNZI_BOTH` both; `rounding` says how A and B were rounded before, null that they are exact.
//
// Cost: at most five solves with two right sides, a product of A with X and a solve.
enum sunzi_status sunzi_ldlt_solution_digits(const struct sunzi_context *ctx,
                                             const struct sunzi_ldlt *factor,
                                             const struct sunzi_rounding *rounding,
                                             int32_t uplo,
                                             const struct sunzi_matrix *a,
                                             const struct sunzi_matrix *b,
                                             const struct sunzi_matrix *x,
                                             double *digits);

// `*digits :=` how many decimal digits of a solution X of `A X = B` are proven to be right, beside the largest entry
// of each column; 0 where nothing can be proven. Operands as `sunzi_ldlt_solution_digits`.
//
// Cost: two factorisations with as many bits as condition and growth take, and that of `sunzi_ldlt_solution_digits`.
enum sunzi_status sunzi_ldlt_certified_solution_digits(const struct sunzi_context *ctx,
                                                       const struct sunzi_ldlt *factor,
                                                       const struct sunzi_rounding *rounding,
                                                       int32_t uplo,
                                                       const struct sunzi_matrix *a,
                                                       const struct sunzi_matrix *b,
                                                       const struct sunzi_matrix *x,
                                                       double *digits);

// The ranks of a context's communicator and this one's number, from 0. `SUNZI_UNAVAILABLE` for a context without one.
// Null pointers are passed over. Not collective.
enum sunzi_status sunzi_mpi_size(const struct sunzi_context *ctx, int64_t *rank, int64_t *size);

// `sunzi_cholesky` on a matrix over the ranks of the context's communicator, in place. Collective: all ranks call it,
// with the same choices.
//
// The bits are those of one process, for any distribution and number of ranks. Memory of a rank beside the array: a
// copy of its part, its tiles of the matrix and of the factor, messages of about 8 MiB, and what the plan of the
// factorisation says. What fails on one rank fails on all, as `SUNZI_COMMUNICATION` where the cause is another rank's;
// A is as it was then, but where the ranks stop hearing of each other while the result is stored.
enum sunzi_status sunzi_mpi_cholesky(const struct sunzi_context *ctx, int32_t uplo, const struct sunzi_dist_matrix *a);

// `sunzi_trsm` on matrices over the ranks of the context's communicator, in place. Collective, with bits and errors as
// `sunzi_mpi_cholesky`; T and B are in distributions of their own.
//
// Memory of a rank beside the arrays: copies of its parts that are no arrays of limbs, its tiles of T, its share of
// the right sides twice, and rows of the triangle as they pass by.
enum sunzi_status sunzi_mpi_trsm(const struct sunzi_context *ctx,
                                 int32_t side,
                                 int32_t uplo,
                                 int32_t trans,
                                 int32_t diag,
                                 const struct sunzi_matrix *alpha,
                                 const struct sunzi_dist_matrix *t,
                                 const struct sunzi_dist_matrix *b);

// `sunzi_solve` on matrices over the ranks of the context's communicator: `B := A^-1 B`. Collective, with bits and
// errors as `sunzi_mpi_cholesky`, memory as that and `sunzi_mpi_trsm`.
enum sunzi_status sunzi_mpi_solve(const struct sunzi_context *ctx,
                                  int32_t uplo,
                                  const struct sunzi_dist_matrix *a,
                                  const struct sunzi_dist_matrix *b);

// The inverse of a symmetric positive definite A over the ranks of the context's communicator, the whole of it, into
// X, which has a distribution of its own and may be A itself. Collective, with bits, memory and errors as
// `sunzi_mpi_solve` with the identity as right side: each column is a solution, and the result is symmetric up to
// that accuracy only. The bits of `sunzi_factor_inverse`, which is a product, are others.
enum sunzi_status sunzi_mpi_inverse(const struct sunzi_context *ctx,
                                    int32_t uplo,
                                    const struct sunzi_dist_matrix *a,
                                    const struct sunzi_dist_matrix *x);

// `sunzi_cholesky_solve` on matrices over the ranks of the context's communicator, with a factor that
// `sunzi_mpi_cholesky` has left in one triangle. Collective; bits, memory and errors as `sunzi_mpi_trsm`.
enum sunzi_status sunzi_mpi_cholesky_solve(const struct sunzi_context *ctx,
                                           int32_t uplo,
                                           const struct sunzi_dist_matrix *factor,
                                           const struct sunzi_dist_matrix *b);

// `sunzi_log_det` of a factor over the ranks of the context's communicator, of which the lower or the upper triangle
// counts, and of that the diagonal alone is read; `result`, a matrix of one entry on each rank, or null where a rank
// does not ask. Collective; `SUNZI_SINGULAR` on all ranks for a zero on the diagonal.
enum sunzi_status sunzi_mpi_log_det(const struct sunzi_context *ctx,
                                    int32_t uplo,
                                    const struct sunzi_dist_matrix *factor,
                                    const struct sunzi_matrix *result);

// `sunzi_factor_new` on a matrix over the ranks of the context's communicator: A stays as it is, and the factor stays
// with the library, in tiles over the ranks. Collective, with bits and errors as `sunzi_mpi_cholesky`; `*factor` is
// null where it fails.
//
// `precision_bits` is the precision of the factor, the same on all ranks; 0 takes the largest of the entries that are
// read, over all ranks. Memory as `sunzi_mpi_cholesky`; this rank's tiles stay until the factor is freed, outside of
// the memory limit.
enum sunzi_status sunzi_mpi_factor_new(const struct sunzi_context *ctx,
                                       int32_t uplo,
                                       int64_t precision_bits,
                                       const struct sunzi_dist_matrix *a,
                                       struct sunzi_mpi_factor **factor);

// `sunzi_mpi_factor_new` into a factor that is there, which becomes that of A, in the memory that it has where order
// and precision are the same and there is no memory limit: repeated factorisations spare the time that the system
// takes for fresh memory. Collective, with bits and errors as `sunzi_mpi_factor_new`.
//
// `precision_bits` as there. Where arguments are refused, the factor is as it was; where the call fails after that, as
// for a matrix that is not symmetric or not positive definite or for want of memory, it is lost: it has no rows, and
// no call takes it until it is renewed. No other call may use it meanwhile.
enum sunzi_status sunzi_mpi_factor_renew(const struct sunzi_context *ctx,
                                         int32_t uplo,
                                         int64_t precision_bits,
                                         const struct sunzi_dist_matrix *a,
                                         struct sunzi_mpi_factor *factor);

// Frees this rank's tiles of a factor; null does nothing. Not collective, and allowed after `MPI_Finalize`.
//
// `factor` is null or came from `sunzi_mpi_factor_new`, and is not used again.
void sunzi_mpi_factor_free(struct sunzi_mpi_factor *factor);

// Rows of the factored matrix; -1 for a null pointer. Not collective.
//
// `factor` is null or live.
int64_t sunzi_mpi_factor_order(const struct sunzi_mpi_factor *factor);

// Bits of the factor's entries; -1 for a null pointer. Not collective.
//
// `factor` is null or live.
int64_t sunzi_mpi_factor_precision_bits(const struct sunzi_mpi_factor *factor);

// `B := A^-1 B` with a kept factor of A, B in any distribution. Collective; bits, memory and errors as
// `sunzi_mpi_cholesky_solve`, but nothing of the factor is taken in.
enum sunzi_status sunzi_mpi_factor_solve(const struct sunzi_context *ctx,
                                         const struct sunzi_mpi_factor *factor,
                                         const struct sunzi_dist_matrix *b);

// `sunzi_mpi_inverse` of the matrix behind a kept factor, into X. Collective.
enum sunzi_status sunzi_mpi_factor_inverse(const struct sunzi_context *ctx,
                                           const struct sunzi_mpi_factor *factor,
                                           const struct sunzi_dist_matrix *x);

// `sunzi_mpi_log_det` of a kept factor. Collective; `result` is null where a rank does not ask.
enum sunzi_status sunzi_mpi_factor_log_det(const struct sunzi_context *ctx,
                                           const struct sunzi_mpi_factor *factor,
                                           const struct sunzi_matrix *result);

// Stores a kept factor in one triangle of `a`: L, or `L^T` in the upper one. The other triangle is not written.
// Collective.
enum sunzi_status sunzi_mpi_factor_get(const struct sunzi_context *ctx,
                                       const struct sunzi_mpi_factor *factor,
                                       int32_t uplo,
                                       const struct sunzi_dist_matrix *a);

// Whole rows, as many as each rank's `local` has, in the order of the ranks; a matrix on one rank alone is one of
// which the others have no rows. `size` is the number of ranks.
struct sunzi_dist_matrix sunzi_dist_rows(struct sunzi_matrix local, int64_t size);

// A matrix of ScaLAPACK: of the nine integers of its descriptor M, N, MB, NB, RSRC and CSRC count. `local` has as many
// rows and columns as `numroc` says; the grid is that of the descriptor's context, with its ranks in the order
// `grid_order`: `SUNZI_ROW_MAJOR` for `blacs_gridinit(.., "R", ..)`.
//
// `desc` points to nine integers.
struct sunzi_dist_matrix sunzi_dist_scalapack(struct sunzi_matrix local,
                                              const int *desc,
                                              int64_t grid_rows,
                                              int64_t grid_cols,
                                              int32_t grid_order);

// A `DistMatrix` of Elemental, `rows x cols`: `col_dist` and `row_dist` are its `ColDist` and `RowDist` as
// `SUNZI_ALONG_...`, `col_align` and `row_align` its `ColAlign()` and `RowAlign()`; `local` is its `Matrix()`. The
// grid numbers its ranks column by column, as Elemental's do where nothing else is said.
struct sunzi_dist_matrix sunzi_dist_elemental(struct sunzi_matrix local,
                                              int64_t rows,
                                              int64_t cols,
                                              int64_t grid_rows,
                                              int64_t grid_cols,
                                              int32_t col_dist,
                                              int32_t row_dist,
                                              int64_t col_align,
                                              int64_t row_align);

// What `sunzi_mpi_syrk` would take for matrices of these descriptions, entries of A with `operand_bits` and of C with
// `precision_bits`, without beta; with it, tiles of C come on top. Collective: all ranks call it, and each is told of
// itself and of its node.
//
// The descriptions are those of the call, but their entries are not looked at and may be null. Nothing is computed;
// the kernel's tables are made and kept. Under a memory limit the plan is the one that the call would run within it,
// and `SUNZI_MEMORY_LIMIT` names the least for the step that does not fit; a later step may take more. Of unlike
// limits the plan of a product keeps the least, also between nodes. On a context without `SUNZI_NORM` the entries
// are taken to be of one size. What the context has kept of earlier calls is not counted. Of products on devices
// the host's memory is counted, not theirs.
enum sunzi_status sunzi_mpi_plan_syrk(const struct sunzi_context *ctx,
                                      int32_t trans,
                                      const struct sunzi_dist_matrix *a,
                                      const struct sunzi_dist_matrix *c,
                                      int64_t operand_bits,
                                      int64_t precision_bits,
                                      struct sunzi_mpi_plan *plan);

// What `sunzi_mpi_gemm` would take; the rest as in `sunzi_mpi_plan_syrk`.
enum sunzi_status sunzi_mpi_plan_gemm(const struct sunzi_context *ctx,
                                      int32_t trans_a,
                                      int32_t trans_b,
                                      const struct sunzi_dist_matrix *a,
                                      const struct sunzi_dist_matrix *b,
                                      const struct sunzi_dist_matrix *c,
                                      int64_t operand_bits,
                                      int64_t precision_bits,
                                      struct sunzi_mpi_plan *plan);

// What `sunzi_mpi_cholesky` would take with this `uplo` for a matrix with entries of `precision_bits`, and at most
// what `sunzi_mpi_factor_new` would with that precision; the rest as in `sunzi_mpi_plan_syrk`.
enum sunzi_status sunzi_mpi_plan_cholesky(const struct sunzi_context *ctx,
                                          int32_t uplo,
                                          const struct sunzi_dist_matrix *a,
                                          int64_t precision_bits,
                                          struct sunzi_mpi_plan *plan);

// What `sunzi_mpi_trsm` would take with this `side` and `diag` for a triangle with entries of `operand_bits` and right
// sides with entries of `precision_bits`; the rest as in `sunzi_mpi_plan_syrk`. Pivots are taken to be as in
// `sunzi_plan_trsm`.
enum sunzi_status sunzi_mpi_plan_trsm(const struct sunzi_context *ctx,
                                      int32_t side,
                                      int32_t diag,
                                      const struct sunzi_dist_matrix *t,
                                      const struct sunzi_dist_matrix *b,
                                      int64_t operand_bits,
                                      int64_t precision_bits,
                                      struct sunzi_mpi_plan *plan);

// What `sunzi_mpi_solve` would take at most with this `uplo` for entries of `precision_bits` in both matrices: the
// factorisation, then the solve beside the factor and what the context keeps of the factorisation. With null for `a`
// on every rank: what `sunzi_mpi_factor_solve` would take beside a factor of that precision. The rest as in
// `sunzi_mpi_plan_trsm`.
enum sunzi_status sunzi_mpi_plan_solve(const struct sunzi_context *ctx,
                                       int32_t uplo,
                                       const struct sunzi_dist_matrix *a,
                                       const struct sunzi_dist_matrix *b,
                                       int64_t precision_bits,
                                       struct sunzi_mpi_plan *plan);

// `sunzi_syrk` on matrices over the ranks of the context's communicator. Collective: all ranks call it, with the same
// choices and scalars.
//
// C is n x n, A is k x n with `SUNZI_TRANS`, else n x k, each in a distribution of its own. Scalars, accuracy and bits
// as in `sunzi_syrk` in one process, for any distribution and number of ranks; p is the largest precision over all
// ranks. What fails on one rank fails on all, as `SUNZI_COMMUNICATION` where the cause is another rank's; so does what
// differs between ranks, as `SUNZI_INVALID_ARGUMENT` with the argument and its values: choices, scalars by value, the
// numbers of descriptions, the accuracy of contexts. Precisions, formats and layouts of entries may differ.
//
// Memory of a rank beside the arrays: of A a copy of its part where that is no array of limbs, and where rows of A^T,
// or of A with `SUNZI_TRANS`, are not whole and about evenly on the ranks an even share of them; its tiles of C, its
// part of C where that is no array of limbs; messages of about 8 MiB, and what the plan of the product says.
enum sunzi_status sunzi_mpi_syrk(const struct sunzi_context *ctx,
                                 int32_t uplo,
                                 int32_t trans,
                                 const struct sunzi_matrix *alpha,
                                 const struct sunzi_dist_matrix *a,
                                 const struct sunzi_matrix *beta,
                                 const struct sunzi_dist_matrix *c);

// `sunzi_gemm` on matrices over the ranks of the context's communicator. Collective, with memory and errors as
// `sunzi_mpi_syrk`.
enum sunzi_status sunzi_mpi_gemm(const struct sunzi_context *ctx,
                                 int32_t trans_a,
                                 int32_t trans_b,
                                 const struct sunzi_matrix *alpha,
                                 const struct sunzi_dist_matrix *a,
                                 const struct sunzi_dist_matrix *b,
                                 const struct sunzi_matrix *beta,
                                 const struct sunzi_dist_matrix *c);

// `sunzi_mpi_cholesky` with the arguments of `PDPOTRF`, entry by entry. Operands, descriptors and info as in
// `psunzi_rsyrk`, and `i > 0` where the i-th pivot, as computed, is not positive; A is as it was then.
int64_t psunzi_rpotrf(const struct sunzi_context *ctx,
                      const char *uplo,
                      int64_t n,
                      void *a,
                      int64_t ia,
                      int64_t ja,
                      const int *desca);

// `psunzi_rpotrf` on `mpf_t`: scalars and arrays.
int64_t psunzi_rpotrf_mpf(const struct sunzi_context *ctx,
                          const char *uplo,
                          int64_t n,
                          void *a,
                          int64_t ia,
                          int64_t ja,
                          const int *desca);

// `sunzi_mpi_cholesky_solve` with the arguments of `PDPOTRS`, entry by entry: `a` has the factor that `psunzi_rpotrf`
// has left. Operands, descriptors and info as in `psunzi_rsyrk`, and `i > 0` where entry (i, i) of the factor is 0.
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

// `psunzi_rpotrs` on `mpf_t`: scalars and arrays.
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

// Says which grid a context of the BLACS stands for in calls on `ctx`: descriptors name it by `blacs_context`, their
// second integer, which may be any number that the program gives its grids.
//
// The grid has the first `grid_rows * grid_cols` ranks of the communicator, row by row (`SUNZI_ROW_MAJOR`, for
// `blacs_gridinit(.., "R", ..)`) or column by column. Collective; shape and order must be the same on all ranks, the
// number need not be: a rank beyond the grid may pass the -1 that the BLACS gave it, but for ranks beyond several
// grids, which need a number for each. Saying it anew replaces it.
enum sunzi_status sunzi_mpi_grid(const struct sunzi_context *ctx,
                                 int blacs_context,
                                 int64_t grid_rows,
                                 int64_t grid_cols,
                                 int32_t grid_order);

// `sunzi_mpi_syrk` with the arguments of `PDSYRK`: `uplo` "U" or "L", `trans` "N" or "T"; `alpha`, `beta` point to an
// `mpfr_t`, `a` and `c` to the first of this rank's array, column-major. Of a matrix the rows from `ia` and the
// columns from `ja` on count, from 1; no part has to begin with a block, and blocks need not be square or the same.
//
// A descriptor has ScaLAPACK's nine integers: 1; the context, of which `sunzi_mpi_grid` has been told; rows and
// columns of the whole matrix; those of a block; the row and the column of the grid that have the first block; this
// rank's leading dimension. All ranks of `ctx` call, those beyond the grid too.
//
// Returns info, on every rank: 0; `-i` where argument i is wrong on any rank, or differs between ranks, counted from 1
// after `ctx`; `-(100 i + j)` for entry j of a descriptor. What ScaLAPACK has no number for is `-10000 - status`, with
// `SUNZI_COMMUNICATION` where the cause is in another rank's numbers; `sunzi_last_error` has the message.
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

// `psunzi_rsyrk` on `mpf_t`: scalars and arrays.
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

// `sunzi_mpi_gemm` with the arguments of `PDGEMM`, entry by entry; operands, descriptors and info as in
// `psunzi_rsyrk`.
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

// `psunzi_rgemm` on `mpf_t`: scalars and arrays.
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

// `sunzi_mpi_trsm` with the arguments of `PDTRSM`, entry by entry: `side` "L" or "R", `diag` "N" or "U"; the triangle
// is `a`, the right sides `b`. Operands, descriptors and info as in `psunzi_rsyrk`, and `i > 0` where entry (i, i) of
// the triangle, from 1, is 0.
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

// `psunzi_rtrsm` on `mpf_t`: scalars and arrays.
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

// What `sunzi_syrk` would take on this context for C of order n and k contracted, with operands of `operand_bits` in
// the given format and a result of `precision_bits`, without beta; with it, a copy of C comes on top.
//
// Bits of an `mpf_t` are 64 for each limb in use, up to `mpf_get_prec` + 128. Nothing is computed; the kernel's tables
// are made and kept. Under a memory limit the plan is the one that the call would run within it. On a context without
// `SUNZI_NORM` the entries are taken to be of one size: the wider they are spread, the more a call takes.
enum sunzi_status sunzi_plan_syrk(const struct sunzi_context *ctx,
                                  int32_t format,
                                  int64_t n,
                                  int64_t k,
                                  int64_t operand_bits,
                                  int64_t precision_bits,
                                  struct sunzi_plan *plan);

// What `sunzi_gemm` would take for C of m x n and k contracted; the rest as in `sunzi_plan_syrk`.
enum sunzi_status sunzi_plan_gemm(const struct sunzi_context *ctx,
                                  int32_t format,
                                  int64_t m,
                                  int64_t n,
                                  int64_t k,
                                  int64_t operand_bits,
                                  int64_t precision_bits,
                                  struct sunzi_plan *plan);

// What `sunzi_cholesky` would take for order n, with entries of `precision_bits`; the rest as in `sunzi_plan_syrk`.
enum sunzi_status sunzi_plan_cholesky(const struct sunzi_context *ctx,
                                      int32_t format,
                                      int64_t n,
                                      int64_t precision_bits,
                                      struct sunzi_plan *plan);

// What `sunzi_trsm` would take for a triangle of order n with entries of `operand_bits`, and m right sides with
// entries of `precision_bits`; the rest as in `sunzi_plan_syrk`.
//
// The pivots are taken to lie within 2^-21 of the norms of their rows; with smaller ones a call takes some more, or
// goes in smaller steps where a memory limit says so.
enum sunzi_status sunzi_plan_trsm(const struct sunzi_context *ctx,
                                  int32_t format,
                                  int64_t n,
                                  int64_t m,
                                  int64_t operand_bits,
                                  int64_t precision_bits,
                                  struct sunzi_plan *plan);

// What `sunzi_solve` would take at most for A of order n with entries of `operand_bits`, and m right sides with
// entries of `precision_bits`: the factorisation, then the solve, beside copies of both; the rest as in
// `sunzi_plan_trsm`.
enum sunzi_status sunzi_plan_solve(const struct sunzi_context *ctx,
                                   int32_t format,
                                   int64_t n,
                                   int64_t m,
                                   int64_t operand_bits,
                                   int64_t precision_bits,
                                   struct sunzi_plan *plan);

// `C := alpha * A A^T + beta * C` (`SUNZI_NO_TRANS`, A is n x k) or `alpha * A^T A + beta * C`
// (`SUNZI_TRANS`, A is k x n): one triangle of C, or both.
//
// C is n x n; its other triangle is neither read nor written, nor is the whole of C read where beta is 0. With
// `SUNZI_BOTH` the whole symmetric result is written, and what is added must be symmetric.
// `alpha` and `beta` are matrices of one entry; null stands for 1 and 0. Where alpha is 0, A is not looked at.
// Accuracy: without scalars `|computed - exact|_ij <= 2^(1 - p) (|A| |A|^T)_ij`, where p is the largest precision of
// the triangle's entries, and `2^(1 - p) norm(a_i) norm(a_j)` under `SUNZI_NORM`; with them the same product, times
// alpha, plus beta C, rounded once; then each entry is rounded to its own precision. The same bits on any number of
// threads and any machine.
// Cost: n^2 k / 2 word products for each of about 2 p / 52 primes.
enum sunzi_status sunzi_syrk(const struct sunzi_context *ctx,
                             int32_t uplo,
                             int32_t trans,
                             const struct sunzi_matrix *alpha,
                             const struct sunzi_matrix *a,
                             const struct sunzi_matrix *beta,
                             const struct sunzi_matrix *c);

// `C := alpha * op(A) op(B) + beta * C`.
//
// `op(A)` is m x k, `op(B)` k x n, C m x n. Scalars, accuracy and precision as in `sunzi_syrk`, under `SUNZI_NORM`
// with the norms of row i of `op(A)` and column j of `op(B)`. Cost: m n k word products for each prime.
enum sunzi_status sunzi_gemm(const struct sunzi_context *ctx,
                             int32_t trans_a,
                             int32_t trans_b,
                             const struct sunzi_matrix *alpha,
                             const struct sunzi_matrix *a,
                             const struct sunzi_matrix *b,
                             const struct sunzi_matrix *beta,
                             const struct sunzi_matrix *c);

// `B := alpha op(T)^-1 B` (`SUNZI_LEFT`) or `alpha B op(T)^-1` (`SUNZI_RIGHT`) for a triangular T, in place.
//
// T is n x n, of which one triangle is read (with `SUNZI_UNIT` without its diagonal); B is n x m on the left, m x n on
// the right. `alpha` is a matrix of one entry; null is 1, and at 0 T is not looked at. Accuracy: `|alpha b - op(T)
// x|_ij <= 2^(2 - p) (|op(T)| |x|)_ij` with p the largest precision of B's entries, and under `SUNZI_NORM` `2^(1 - p)
// (norm(t_i) norm(x_j) + |alpha b_ij|)`; then each entry is rounded to its own. Cost: n^2 m / 2 word products for each
// prime.
enum sunzi_status sunzi_trsm(const struct sunzi_context *ctx,
                             int32_t side,
                             int32_t uplo,
                             int32_t trans,
                             int32_t diag,
                             const struct sunzi_matrix *alpha,
                             const struct sunzi_matrix *t,
                             const struct sunzi_matrix *b);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SUNZI_H */
