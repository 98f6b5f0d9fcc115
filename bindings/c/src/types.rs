//! The declarations of the header other than functions: codes, choices, and the structures that calls take and fill.
//!
//! Names are those of C, so that header and code read alike.

use std::ffi::{c_char, c_int, c_void};
use sunzi::Accuracy;

/// What a call returns: 0, or what went wrong. `sunzi_last_error` has the message, with the numbers in it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum sunzi_status {
    /// All went well.
    SUNZI_OK = 0,
    /// A pointer that must not be null is.
    SUNZI_NULL_POINTER = 1,
    /// An argument makes no sense: an unknown choice, a factor that is not finite, an unknown kernel.
    SUNZI_INVALID_ARGUMENT = 2,
    /// A size is negative, a leading dimension too small, or shapes do not fit each other.
    SUNZI_INVALID_SIZE = 3,
    /// An entry is no number of its kind: not initialised, or limbs that break their form.
    SUNZI_INVALID_ENTRY = 4,
    /// An entry is NaN or infinite.
    SUNZI_NOT_FINITE = 5,
    /// An exponent lies outside +-(2^30 - 1).
    SUNZI_EXPONENT_RANGE = 6,
    /// The precision is below or above what can be computed.
    SUNZI_PRECISION = 7,
    /// The matrix is not positive definite at this precision; `sunzi_last_place` has the index.
    SUNZI_NOT_POSITIVE_DEFINITE = 8,
    /// A triangular matrix has a zero on its diagonal; `sunzi_last_place` has the index.
    SUNZI_SINGULAR = 9,
    /// The context's memory limit is too small; the message has the least for this step of the call, a later step may
    /// ask for more.
    SUNZI_MEMORY_LIMIT = 10,
    /// The system refused memory, or threads.
    SUNZI_OUT_OF_MEMORY = 11,
    /// The progress function asked to stop.
    SUNZI_CANCELLED = 12,
    /// A self-check failed: a residue or a product was wrong.
    SUNZI_SELF_CHECK = 13,
    /// A kernel or a feature that this machine or this build lacks.
    SUNZI_UNAVAILABLE = 14,
    /// Ranks could not reach each other, or another rank failed.
    SUNZI_COMMUNICATION = 15,
    /// A device failed.
    SUNZI_DEVICE = 16,
    /// A defect of the library.
    SUNZI_INTERNAL = 17,
    /// Both triangles of a matrix were to count, and they differ; `sunzi_last_place` has the first entry below the
    /// diagonal, column by column, that is not its mirror image.
    SUNZI_NOT_SYMMETRIC = 18,
}

/// Entries are `mpfr_t`.
pub const SUNZI_MPFR: i32 = 1;
/// Entries are `mpf_t`.
pub const SUNZI_MPF: i32 = 2;
/// Entries are heads and limbs in the library's own form, see `sunzi_limb_matrix`.
pub const SUNZI_LIMBS: i32 = 3;

/// Entry `(i, j)` has index `i * ld + j` (the number of `CblasRowMajor`).
pub const SUNZI_ROW_MAJOR: i32 = 101;
/// Entry `(i, j)` has index `i + j * ld` (the number of `CblasColMajor`).
pub const SUNZI_COL_MAJOR: i32 = 102;
/// The matrix itself (the number of `CblasNoTrans`).
pub const SUNZI_NO_TRANS: i32 = 111;
/// Its transpose (the number of `CblasTrans`).
pub const SUNZI_TRANS: i32 = 112;
/// Entries with `row <= column` (the number of `CblasUpper`).
pub const SUNZI_UPPER: i32 = 121;
/// Entries with `row >= column` (the number of `CblasLower`).
pub const SUNZI_LOWER: i32 = 122;
/// Both triangles of a symmetric matrix: of an operand they must hold the same numbers, of a result both are written.
pub const SUNZI_BOTH: i32 = 123;
/// The diagonal is read (the number of `CblasNonUnit`).
pub const SUNZI_NON_UNIT: i32 = 131;
/// The diagonal is ones and not read (the number of `CblasUnit`).
pub const SUNZI_UNIT: i32 = 132;
/// `op(T) X = alpha B` (the number of `CblasLeft`).
pub const SUNZI_LEFT: i32 = 141;
/// `X op(T) = alpha B` (the number of `CblasRight`).
pub const SUNZI_RIGHT: i32 = 142;

/// Each entry is right beside the norms of a row and a column.
pub const SUNZI_NORM: c_int = 1;
/// Each entry is right beside the magnitudes of its own terms, as sums in loops are.
pub const SUNZI_ENTRYWISE: c_int = 2;

/// A matrix in the caller's memory: made by `sunzi_mpfr_matrix`, `sunzi_mpf_matrix` or `sunzi_limb_matrix`, or filled
/// by hand. Nothing is copied or owned.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sunzi_matrix {
    /// What the entries are: `SUNZI_MPFR`, `SUNZI_MPF` or `SUNZI_LIMBS`.
    pub format: i32,
    /// `SUNZI_ROW_MAJOR` or `SUNZI_COL_MAJOR`.
    pub layout: i32,
    /// Rows; may be 0.
    pub rows: i64,
    /// Columns; may be 0.
    pub cols: i64,
    /// Leading dimension: the distance in entries between rows (row-major) or columns (column-major).
    pub ld: i64,
    /// The first `mpfr_t`, `mpf_t` or head. Entries of operands that are only read are never written.
    pub entries: *mut c_void,
    /// `SUNZI_LIMBS` alone: the limbs of the first entry.
    pub limbs: *mut u64,
    /// `SUNZI_LIMBS` alone: bits of every significand.
    pub precision_bits: i64,
}

/// Every rank has all rows, or columns; Elemental's `STAR`.
pub const SUNZI_ALONG_NONE: i32 = 0;
/// Dealt out by the row of a rank in the grid; Elemental's `MC`.
pub const SUNZI_ALONG_GRID_ROW: i32 = 1;
/// Dealt out by the column of a rank in the grid; Elemental's `MR`.
pub const SUNZI_ALONG_GRID_COL: i32 = 2;
/// Dealt out by the number of a rank, counted column by column through the grid; Elemental's `VC`.
pub const SUNZI_ALONG_COL_MAJOR: i32 = 3;
/// Dealt out by the number of a rank, counted row by row through the grid; Elemental's `VR`.
pub const SUNZI_ALONG_ROW_MAJOR: i32 = 4;

/// The part of a matrix over the ranks of a communicator that lies on this one, and how all of it is dealt out: made by
/// `sunzi_dist_rows`, `sunzi_dist_scalapack` or `sunzi_dist_elemental`, or filled by hand. Nothing is copied or owned.
///
/// Row i of the matrix belongs to number `(i / row_block + row_first) mod n` of the n along `row_along`, and the
/// columns likewise; a rank stores its entries in the order of their indices. A block of 0 stands for consecutive rows:
/// number 0 has the first ones, and each as many as its `local` says.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sunzi_dist_matrix {
    /// The entries of this rank.
    pub local: sunzi_matrix,
    /// Rows of the whole matrix; with a block of 0 they may be -1, for the sum over the ranks.
    pub rows: i64,
    /// Columns of the whole matrix; -1 as for the rows.
    pub cols: i64,
    /// Rows of the grid of ranks.
    pub grid_rows: i64,
    /// Columns of the grid of ranks.
    pub grid_cols: i64,
    /// How ranks are numbered in the grid: `SUNZI_ROW_MAJOR` or `SUNZI_COL_MAJOR`.
    pub grid_order: i32,
    /// Which number of a rank says what rows it has: `SUNZI_ALONG_NONE` and its kin.
    pub row_along: i32,
    /// Which number of a rank says what columns it has.
    pub col_along: i32,
    /// Rows of a block.
    pub row_block: i64,
    /// Columns of a block.
    pub col_block: i64,
    /// The number that has the first block of rows.
    pub row_first: i64,
    /// The number that has the first block of columns.
    pub col_first: i64,
}

/// Told how far a call is, from any of the context's threads; another value than 0 stops the call with
/// `SUNZI_CANCELLED`. Must not throw and must not call the library on the same context.
pub type sunzi_progress =
    Option<unsafe extern "C" fn(user: *mut c_void, phase: *const c_char, done: u64, total: u64) -> c_int>;

/// Choices of a context. All zeros, or a null pointer in its place, chooses the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sunzi_options {
    /// Worker threads; 0 takes all processors that the process may use.
    pub threads: i64,
    /// Bytes that a call may take, results and copies of operands included and the caller's arrays excluded; 0 sets no
    /// limit. A call over ranks: all ranks of a node together, which should say the same; kept factors and messages,
    /// of 1 to 8 MiB on a rank, are excluded too.
    pub memory_bytes: u64,
    /// Name of the kernel; null takes the fastest.
    pub kernel: *const c_char,
    /// Not 0: products are checked by a redundant prime.
    pub self_check: c_int,
    /// Not 0: products are tested with a random vector before they are rounded.
    pub freivalds: c_int,
    /// Progress and cancelling; may be null.
    pub progress: sunzi_progress,
    /// Handed to `progress`.
    pub user: *mut c_void,
    /// What entries of results are right beside, on this context: `SUNZI_NORM`, or `SUNZI_ENTRYWISE`, which 0 is as
    /// well.
    pub accuracy: c_int,
    /// Devices that products and factorisations run on, by names with commas between them: `cuda` for all GPUs,
    /// `cuda:0`, `soft` or `soft:BYTES` for plain memory behind the same code, `host` for the CPU as one more; null
    /// for none. Over ranks either all have some or none. The bits are those without.
    pub devices: *const c_char,
    /// Most bytes to use of each device, that all ranks share which name it; 0 for all it has.
    pub device_memory_bytes: u64,
}

/// How operands of a call about digits were rounded before it got them, each entry to nearest: `1/3` was, in any binary
/// format. Digits are those of the answer to the problem as it was before. All zeros, or a null pointer in its place,
/// says that the operands are exact.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct sunzi_rounding {
    /// Bits that the entries of the matrix were rounded to; 0 where they are exact.
    pub matrix_bits: i64,
    /// Bits that the entries of the right sides were rounded to; 0 where they are exact.
    pub right_bits: i64,
}

/// What the last call on a context took; see `sunzi_last_report`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct sunzi_report {
    /// Bytes that copies of operands and results took, beside the caller's arrays.
    pub copied_bytes: u64,
    /// Bytes that the plan allows for, copies included. Without a memory limit, right sides of a solve that outgrow its
    /// first try take more. After a call over ranks those of this rank at the step that takes most, messages and its
    /// share of what ranks of a node have in common included, so that the sum over ranks is that of the node.
    pub planned_bytes: u64,
    /// Most bytes that the library had allocated at one time of the call, beyond those at its start. Memory that the
    /// context had kept is not among them. Exact where calls of the process do not overlap.
    pub peak_bytes: u64,
    /// Bits of the result before each entry was stored.
    pub precision_bits: i64,
    /// What entries were right beside, `SUNZI_NORM` or `SUNZI_ENTRYWISE`; 0 after calls that know no such choice.
    pub accuracy: c_int,
    /// Bits that `SUNZI_ENTRYWISE` took beyond those of norms, for the range of exponents.
    pub range_bits: i64,
    /// Seconds of the call.
    pub seconds: f64,
    /// Seconds of them in which operands were taken in; those of fewer than 256 entries do not count.
    pub read_seconds: f64,
    /// Seconds of them in which results were stored; those of fewer than 256 entries do not count.
    pub write_seconds: f64,
}

/// What a call would take; see `sunzi_plan_syrk`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct sunzi_plan {
    /// Bytes that copies of operands and the result will take beside the caller's arrays.
    pub copied_bytes: u64,
    /// Bytes of everything, copies and result included.
    pub planned_bytes: u64,
}

/// What a call over ranks would take; see `sunzi_mpi_plan_syrk`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct sunzi_mpi_plan {
    /// Bytes of copies of operands and of the result on this rank, beside its arrays.
    pub copied_bytes: u64,
    /// Bytes of everything on this rank at a time, copies included, with an even share of what its node has in common.
    pub rank_bytes: u64,
    /// No less than that of all ranks of its node together; with it as `memory_bytes` the call is not refused, where
    /// numbers and shares are as plans take them.
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
