//! The declarations of the header other than functions: codes, choices, and the structures that calls take and fill.
//!
//! Names are those of C, so that header and code read alike.

use std::ffi::{c_char, c_int, c_void};
use sunzi::Accuracy;

/// The result of a call: `SUNZI_OK`, or the reason of a failure. `sunzi_last_error` returns a message with the numbers.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum sunzi_status {
    /// The call succeeded.
    SUNZI_OK = 0,
    /// A pointer is null where null is not allowed.
    SUNZI_NULL_POINTER = 1,
    /// The value of an argument is not valid: an unknown choice, a scalar that is not finite, an unknown kernel.
    SUNZI_INVALID_ARGUMENT = 2,
    /// A size is negative, a leading dimension is too small, or the shapes of two arguments do not match.
    SUNZI_INVALID_SIZE = 3,
    /// An entry is not a valid number of its format: it is not initialised, or its limbs violate the format.
    SUNZI_INVALID_ENTRY = 4,
    /// An entry is NaN or infinite.
    SUNZI_NOT_FINITE = 5,
    /// An exponent lies outside +-(2^30 - 1).
    SUNZI_EXPONENT_RANGE = 6,
    /// A precision is below or above the supported range.
    SUNZI_PRECISION = 7,
    /// The matrix is not positive definite at this precision; `sunzi_last_place` returns the index of the pivot.
    SUNZI_NOT_POSITIVE_DEFINITE = 8,
    /// A triangular matrix has a zero on its diagonal, or a pivot is zero; `sunzi_last_place` returns the index.
    SUNZI_SINGULAR = 9,
    /// The memory limit of the context is too small. The message names the least limit for this step of the call; a
    /// later step may need more.
    SUNZI_MEMORY_LIMIT = 10,
    /// The operating system refused memory, or threads.
    SUNZI_OUT_OF_MEMORY = 11,
    /// The progress function stopped the call.
    SUNZI_CANCELLED = 12,
    /// A self-check found a wrong residue or a wrong product.
    SUNZI_SELF_CHECK = 13,
    /// This machine or this build lacks a kernel or a feature.
    SUNZI_UNAVAILABLE = 14,
    /// The ranks could not reach each other, or the call failed on another rank.
    SUNZI_COMMUNICATION = 15,
    /// A device failed.
    SUNZI_DEVICE = 16,
    /// The library has a defect; please report it.
    SUNZI_INTERNAL = 17,
    /// `SUNZI_BOTH` was passed, and the two triangles of a matrix differ. `sunzi_last_place` returns the first entry
    /// below the diagonal, in column order, that differs from its mirror image.
    SUNZI_NOT_SYMMETRIC = 18,
}

/// Entries are `mpfr_t`.
pub const SUNZI_MPFR: i32 = 1;
/// Entries are `mpf_t`.
pub const SUNZI_MPF: i32 = 2;
/// Entries are heads and limbs in the library's own format; see `sunzi_limb_matrix`.
pub const SUNZI_LIMBS: i32 = 3;

/// Entry `(i, j)` has the index `i * ld + j` (the value of `CblasRowMajor`).
pub const SUNZI_ROW_MAJOR: i32 = 101;
/// Entry `(i, j)` has the index `i + j * ld` (the value of `CblasColMajor`).
pub const SUNZI_COL_MAJOR: i32 = 102;
/// `op(A) = A` (the value of `CblasNoTrans`).
pub const SUNZI_NO_TRANS: i32 = 111;
/// `op(A) = A^T` (the value of `CblasTrans`).
pub const SUNZI_TRANS: i32 = 112;
/// The upper triangle, the entries with `row <= column` (the value of `CblasUpper`).
pub const SUNZI_UPPER: i32 = 121;
/// The lower triangle, the entries with `row >= column` (the value of `CblasLower`).
pub const SUNZI_LOWER: i32 = 122;
/// Both triangles of a symmetric matrix. Both triangles of an operand are read and must hold the same numbers; both
/// triangles of a result are written.
pub const SUNZI_BOTH: i32 = 123;
/// The diagonal of a triangular matrix is read (the value of `CblasNonUnit`).
pub const SUNZI_NON_UNIT: i32 = 131;
/// The diagonal of a triangular matrix is taken as ones and is not read (the value of `CblasUnit`).
pub const SUNZI_UNIT: i32 = 132;
/// The triangular matrix is on the left: `op(T) X = alpha B` (the value of `CblasLeft`).
pub const SUNZI_LEFT: i32 = 141;
/// The triangular matrix is on the right: `X op(T) = alpha B` (the value of `CblasRight`).
pub const SUNZI_RIGHT: i32 = 142;

/// The error bound of an entry uses the norms of a row and a column; see Accuracy at the top of this header.
pub const SUNZI_NORM: c_int = 1;
/// The error bound of an entry uses the magnitudes of its own terms (componentwise accuracy); see Accuracy at the top
/// of this header.
pub const SUNZI_ENTRYWISE: c_int = 2;

/// The description of a matrix in the caller's memory. `sunzi_mpfr_matrix`, `sunzi_mpf_matrix` and `sunzi_limb_matrix`
/// make it; a program may also fill in the fields itself. A description neither copies nor owns the entries.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sunzi_matrix {
    /// The format of the entries: `SUNZI_MPFR`, `SUNZI_MPF` or `SUNZI_LIMBS`.
    pub format: i32,
    /// `SUNZI_ROW_MAJOR` or `SUNZI_COL_MAJOR`.
    pub layout: i32,
    /// Number of rows; may be 0.
    pub rows: i64,
    /// Number of columns; may be 0.
    pub cols: i64,
    /// Leading dimension: the distance, in entries, between consecutive rows (row-major) or columns (column-major).
    pub ld: i64,
    /// Pointer to the first `mpfr_t`, `mpf_t` or head. The library never writes to the entries of an input operand.
    pub entries: *mut c_void,
    /// Only for `SUNZI_LIMBS`: pointer to the limbs of the first entry.
    pub limbs: *mut u64,
    /// Only for `SUNZI_LIMBS`: precision of all entries, in bits.
    pub precision_bits: i64,
}

/// Every rank holds all rows (or columns); `STAR` in Elemental.
pub const SUNZI_ALONG_NONE: i32 = 0;
/// Rows (or columns) are distributed over the rows of the grid; `MC` in Elemental.
pub const SUNZI_ALONG_GRID_ROW: i32 = 1;
/// Rows (or columns) are distributed over the columns of the grid; `MR` in Elemental.
pub const SUNZI_ALONG_GRID_COL: i32 = 2;
/// Rows (or columns) are distributed over all ranks of the grid, numbered column by column; `VC` in Elemental.
pub const SUNZI_ALONG_COL_MAJOR: i32 = 3;
/// Rows (or columns) are distributed over all ranks of the grid, numbered row by row; `VR` in Elemental.
pub const SUNZI_ALONG_ROW_MAJOR: i32 = 4;

/// The description of a matrix that is distributed over the ranks of a communicator: the part of this rank, and the
/// rule of the distribution. `sunzi_dist_rows`, `sunzi_dist_scalapack` and `sunzi_dist_elemental` make it; a program
/// may also fill in the fields itself. A description neither copies nor owns the entries.
///
/// `row_along` selects a numbering of the ranks with n numbers in total. Row i of the matrix belongs to the ranks with
/// the number `(i / row_block + row_first) mod n`; columns follow the same rule with the fields of the columns. A rank
/// stores its entries in the order of their indices. A block size of 0 means consecutive rows: number 0 holds the first
/// rows, number 1 the next ones, and each rank as many rows as its `local` has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sunzi_dist_matrix {
    /// The entries of this rank.
    pub local: sunzi_matrix,
    /// Number of rows of the whole matrix. With a block size of 0 it may be -1: the sum over the ranks.
    pub rows: i64,
    /// Number of columns of the whole matrix; -1 as for `rows`.
    pub cols: i64,
    /// Number of rows of the grid of ranks.
    pub grid_rows: i64,
    /// Number of columns of the grid of ranks.
    pub grid_cols: i64,
    /// Order of the ranks in the grid: `SUNZI_ROW_MAJOR` or `SUNZI_COL_MAJOR`.
    pub grid_order: i32,
    /// Numbering of the ranks that determines their rows: one of the `SUNZI_ALONG_` constants.
    pub row_along: i32,
    /// Numbering of the ranks that determines their columns: one of the `SUNZI_ALONG_` constants.
    pub col_along: i32,
    /// Number of rows of a block.
    pub row_block: i64,
    /// Number of columns of a block.
    pub col_block: i64,
    /// The rank number that holds the first block of rows.
    pub row_first: i64,
    /// The rank number that holds the first block of columns.
    pub col_first: i64,
}

/// A function that receives the progress of a call: `done` of `total` units of the phase named `phase`. The library
/// calls it from any thread of the context. A return value other than 0 stops the call with `SUNZI_CANCELLED`. The
/// function must not throw an exception and must not call the library on the same context.
pub type sunzi_progress =
    Option<unsafe extern "C" fn(user: *mut c_void, phase: *const c_char, done: u64, total: u64) -> c_int>;

/// Options of a context. A structure of zeros, or a null pointer to it, selects the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sunzi_options {
    /// Number of worker threads, 1 to 4096; 0 selects all processors that the process may use.
    pub threads: i64,
    /// Memory limit of one call in bytes; 0 sets no limit. The limit covers results and copies of operands, but not the
    /// caller's arrays. In a call over ranks the limit applies to all ranks of a node together and should be the same
    /// on each of them; it then excludes kept factors and messages (1 to 8 MiB on each rank) as well.
    pub memory_bytes: u64,
    /// Name of the kernel; null selects the fastest.
    pub kernel: *const c_char,
    /// If not 0, one redundant prime checks each product.
    pub self_check: c_int,
    /// If not 0, a random vector tests each product before it is rounded (Freivalds' test).
    pub freivalds: c_int,
    /// Function for progress and cancellation; may be null.
    pub progress: sunzi_progress,
    /// Pointer that is passed to `progress`.
    pub user: *mut c_void,
    /// Accuracy of all results of this context: `SUNZI_NORM` or `SUNZI_ENTRYWISE`; 0 means `SUNZI_ENTRYWISE`.
    pub accuracy: c_int,
    /// Devices for products and factorisations: names separated by commas, or null for no device. `cuda` names all
    /// GPUs, `cuda:0` one GPU, `soft` or `soft:BYTES` a software device in main memory that runs the same code, and
    /// `host` the CPU as an additional device. In a call over ranks either all ranks or none of them must have devices.
    /// Devices do not change the bits of a result.
    pub devices: *const c_char,
    /// Largest number of bytes used on each device, shared by all ranks that name the device; 0 allows all of its
    /// memory.
    pub device_memory_bytes: u64,
}

/// For a call that estimates or proves correct digits: the roundings that its operands had before the call, each entry
/// to nearest. A number such as `1/3` is rounded in every binary format; the digits then refer to the answer of the
/// original problem, before these roundings. A structure of zeros, or a null pointer to it, means that the operands are
/// exact.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct sunzi_rounding {
    /// Precision, in bits, to which the entries of the matrix were rounded; 0 if they are exact.
    pub matrix_bits: i64,
    /// Precision, in bits, to which the entries of the right-hand sides were rounded; 0 if they are exact.
    pub right_bits: i64,
}

/// Statistics of a call; see `sunzi_last_report`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct sunzi_report {
    /// Bytes of the copies of operands and results, in addition to the caller's arrays.
    pub copied_bytes: u64,
    /// Bytes in the plan of the call, copies included. Without a memory limit, a solve takes more if its solution
    /// exceeds the range of numbers of the first attempt. After a call over ranks: bytes of this rank during the step
    /// with the largest need, including messages and this rank's share of the memory that the ranks of a node have in
    /// common; the sum over the ranks of a node is the need of the node.
    pub planned_bytes: u64,
    /// Largest number of bytes that the library had allocated at one time during the call, minus the number at its
    /// start. Memory that the context kept from earlier calls is not counted. The number is exact if no other call of
    /// the process overlaps.
    pub peak_bytes: u64,
    /// Precision of the result, in bits, before each entry was rounded to its own precision.
    pub precision_bits: i64,
    /// Accuracy that the result has: `SUNZI_NORM` or `SUNZI_ENTRYWISE`; 0 after a call for which the choice has no
    /// meaning.
    pub accuracy: c_int,
    /// Additional working bits that `SUNZI_ENTRYWISE` needed because of the range of the exponents.
    pub range_bits: i64,
    /// Duration of the call in seconds.
    pub seconds: f64,
    /// Part of `seconds` spent on reading operands; operands of fewer than 256 entries are not counted.
    pub read_seconds: f64,
    /// Part of `seconds` spent on storing results; results of fewer than 256 entries are not counted.
    pub write_seconds: f64,
}

/// Memory that a call would take; see `sunzi_plan_syrk`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct sunzi_plan {
    /// Bytes of the copies of operands and of the result, in addition to the caller's arrays.
    pub copied_bytes: u64,
    /// Bytes of the whole call, copies and result included.
    pub planned_bytes: u64,
}

/// Memory that a call over ranks would take; see `sunzi_mpi_plan_syrk`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct sunzi_mpi_plan {
    /// Bytes of the copies of operands and of the result on this rank, in addition to its arrays.
    pub copied_bytes: u64,
    /// Largest number of bytes on this rank at one time, including copies and an even share of the memory that the
    /// ranks of its node have in common.
    pub rank_bytes: u64,
    /// Upper bound of the bytes of all ranks of this rank's node together. With this number as `memory_bytes` the call
    /// is not refused, provided that its numbers and the shares of the ranks are as the plan assumes.
    pub node_bytes: u64,
}

/// The number in the header of a promise; 0 for one that it has no number for.
pub(crate) fn accuracy_code(accuracy: Accuracy) -> c_int {
    match accuracy {
        Accuracy::Norm => SUNZI_NORM,
        Accuracy::Entrywise => SUNZI_ENTRYWISE,
        _ => 0,
    }
}
