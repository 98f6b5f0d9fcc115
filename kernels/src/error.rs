//! The error type of the library: every invalid input has a variant with the numbers.
//!
//! Depends on: the exit code of each variant. Independent of: where an error is printed.

mod more_bits;
mod text;
mod words;

pub use more_bits::MoreBits;
pub use text::{ErrorText, IndexBase};

use std::path::PathBuf;
pub use words::is_full_disk;
use words::{bytes_in_words, process_in_words, share_in_words, whose_range};

/// The errors of the library and the program.
///
/// The `Display` text is one line, meant for a user; rows and columns in it count from 0, or from 1 in one form of
/// [`Error::text`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An entry is NaN or infinite; indices count from 0.
    #[error("entry at row {row}, column {column} is {kind}: every entry must be finite")]
    NotFinite {
        /// Row of the first such entry.
        row: usize,
        /// Column of the first such entry.
        column: usize,
        /// `NaN` or `infinite`.
        kind: &'static str,
    },
    /// An entry is not an integer although exact integer arithmetic was requested.
    #[error("entry at row {row}, column {column} is not an integer: exact integer arithmetic requires integer entries")]
    NotInteger {
        /// Row of the first such entry.
        row: usize,
        /// Column of the first such entry.
        column: usize,
    },
    /// An exponent lies outside the range that can be stored or converted.
    #[error("exponent {exponent} at row {row}, column {column} is outside the supported range of +-{limit}")]
    ExponentRange {
        /// Row of the entry.
        row: usize,
        /// Column of the entry.
        column: usize,
        /// The exponent found.
        exponent: i64,
        /// The largest magnitude supported.
        limit: i64,
    },
    /// The shapes of two operands do not match.
    #[error("{operation}: shapes do not fit: {left_rows} x {left_cols} against {right_rows} x {right_cols}")]
    ShapeMismatch {
        /// The operation that was requested.
        operation: &'static str,
        /// Rows of the first operand, as used.
        left_rows: usize,
        /// Columns of the first operand, as used.
        left_cols: usize,
        /// Rows of the second operand, as used.
        right_rows: usize,
        /// Columns of the second operand, as used.
        right_cols: usize,
    },
    /// A matrix that must be square is not square.
    #[error("{operation}: the matrix is {rows} x {cols}, but must be square")]
    NotSquare {
        /// The operation, or the kind of matrix, that was requested.
        operation: &'static str,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
    /// `rows * cols * limbs` does not fit the address space.
    #[error("a {rows} x {cols} matrix of {precision_bits} bits is too large to address")]
    DimensionOverflow {
        /// The rows requested.
        rows: usize,
        /// The columns requested.
        cols: usize,
        /// The precision requested.
        precision_bits: u32,
    },
    /// The precision is 0 or exceeds the kernel's maximum.
    #[error(
        "precision of {precision_bits} bits is outside the supported range of 2 to {maximum_bits} bits{}",
        whose_range(*maximum_bits)
    )]
    Precision {
        /// The precision requested.
        precision_bits: u64,
        /// The largest precision supported.
        maximum_bits: u64,
    },
    /// The memory limit is too small for the operation.
    #[error(
        "a memory limit of {} is too small: this operation needs at least {}",
        bytes_in_words(*limit_bytes),
        bytes_in_words(*minimum_bytes)
    )]
    MemoryLimit {
        /// The limit given.
        limit_bytes: u64,
        /// The smallest limit that suffices.
        minimum_bytes: u64,
    },
    /// No kernel of that name exists.
    #[error("unknown kernel '{name}': choose one of {known}")]
    UnknownKernel {
        /// The name given.
        name: String,
        /// The names of the existing kernels.
        known: String,
    },
    /// The kernel exists, but this CPU or this build lacks a feature that it needs.
    #[error("kernel '{name}' cannot run here: {reason}")]
    KernelUnavailable {
        /// The kernel requested.
        name: &'static str,
        /// The missing requirement.
        reason: &'static str,
    },
    /// A device that was requested does not exist, or cannot be used.
    #[error("device not available: {0}")]
    NoDevice(String),
    /// A device's memory is too small for a step.
    #[error("cannot allocate {bytes} bytes of device memory: {used_bytes} of {capacity_bytes} usable bytes are in use")]
    DeviceMemory {
        /// Bytes requested.
        bytes: u64,
        /// Bytes in use at the time of the request.
        used_bytes: u64,
        /// Bytes that the call may use.
        capacity_bytes: u64,
    },
    /// A device memory limit is too small for the operation.
    #[error(
        "{limit_bytes} bytes of device memory{} are too few: this operation needs at least {minimum_bytes} bytes",
        share_in_words(*ranks)
    )]
    DeviceLimit {
        /// Bytes that the call may use.
        limit_bytes: u64,
        /// The smallest limit that suffices.
        minimum_bytes: u64,
        /// Number of ranks of the machine that share the device; 1 if only this process uses it.
        ranks: usize,
    },
    /// A device stopped working in the middle of a call. Data on the host is intact.
    #[error("device lost: {0}")]
    DeviceLost(String),
    /// A device's library or compiler refused a call.
    #[error("device error: {0}")]
    Device(String),
    /// The self-check found a value outside its proven bound.
    #[error("self-check failed at row {row}, column {column}: a residue was wrong (faulty memory or processor?)")]
    SelfCheck {
        /// Row of the entry of the result.
        row: usize,
        /// Column of the entry of the result.
        column: usize,
    },
    /// A verification found that a stored result exceeds its error bound.
    #[error("verification failed: {0}")]
    Verification(ErrorText),
    /// A matrix to be factored is not positive definite at this precision.
    #[error(
        "the matrix is not positive definite: index {index}: pivot {pivot:.3e}, diagonal entry {diagonal:.3e}; {}",
        more_bits.hint(*enough_bits)
    )]
    NotPositiveDefinite {
        /// Index, from 0, of the first pivot that is not positive as computed at this precision (LAPACK's `info - 1`).
        /// If leading minors of the exact matrix are as small as rounding errors, the first minor that is not positive
        /// may have another index.
        index: usize,
        /// The computed pivot, or an upper bound of it if its row was rejected earlier; at most 0.
        pivot: rug::Float,
        /// The diagonal entry of that row.
        diagonal: rug::Float,
        /// Whether more bits of precision might help.
        more_bits: MoreBits,
        /// A precision at which the matrix was found to have a factor, if such a precision was searched for. Lower
        /// precisions may suffice.
        enough_bits: Option<u32>,
    },
    /// A matrix that must be symmetric is not symmetric.
    #[error(
        "the matrix is not symmetric: the entries at row {row}, column {column} and at row {column}, column {row} \
         differ; choose the triangle to read, or copy it to the other one"
    )]
    NotSymmetric {
        /// Row, from 0, of the first entry below the diagonal, column by column, that differs from its mirror image.
        row: usize,
        /// Column, from 0, of the same entry.
        column: usize,
    },
    /// A triangular matrix has a zero on its diagonal.
    #[error(
        "zero on the diagonal at index {index}: the triangular matrix is singular, or the pivot of L D L^T at this \
         precision is zero"
    )]
    Singular {
        /// Row and column, from 0, of the first zero.
        index: usize,
    },
    /// In a column of an LU factorisation all candidates for the pivot are 0 at the working precision.
    #[error(
        "the matrix is singular, or a singular one lies within the rounding of {working_bits} bits: in column {index} \
         all candidates for the pivot are 0"
    )]
    NoPivot {
        /// The column, from 0.
        index: usize,
        /// Bits of the integers of the factorisation.
        working_bits: u32,
    },
    /// Iterative refinement does not reach the requested precision.
    #[error(
        "refinement stalls after {iterations} iterations at a backward error of 2^{reached_log2} (requested: \
         2^{wanted_log2}): factor at a higher precision than {factor_bits} bits"
    )]
    RefinementStalls {
        /// Corrections made.
        iterations: usize,
        /// `log2` of the backward error reached.
        reached_log2: i64,
        /// `log2` of the requested backward error.
        wanted_log2: i64,
        /// Precision of the factor.
        factor_bits: u32,
    },
    /// A problem of a batch failed; the other problems are not affected.
    #[error("problem {problem} of {count}: {error}")]
    Problem {
        /// Number of the problem in the batch, from 0.
        problem: usize,
        /// Problems in the batch.
        count: usize,
        /// The error of this problem.
        error: Box<Error>,
    },
    /// The progress callback or a signal requested a stop.
    #[error("cancelled")]
    Cancelled,
    /// A file does not follow its format.
    #[error("{path}: {message}")]
    Format {
        /// The file.
        path: PathBuf,
        /// The fault, with the line number if there is one.
        message: String,
    },
    /// The operating system refused a file operation.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action: `read`, `write`, `create`, `rename`.
        action: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A disk has no space for the data to be written. Earlier contents are intact.
    #[error(
        "{path}: the disk is full: {} are to be written, {} are free",
        bytes_in_words(*bytes),
        bytes_in_words(*free_bytes)
    )]
    DiskFull {
        /// The file, or the folder.
        path: PathBuf,
        /// Bytes to be written.
        bytes: u64,
        /// Bytes that are free now.
        free_bytes: u64,
    },
    /// A storage directory belongs to another computation.
    #[error("{path}: the directory belongs to another computation: {key} is {found} there and {wanted} in this run")]
    StorageMismatch {
        /// The directory.
        path: PathBuf,
        /// The first property in which the computations differ.
        key: String,
        /// The value of the property in the directory.
        found: String,
        /// The value of the property in this run.
        wanted: String,
    },
    /// Another process uses a storage directory.
    #[error("{path}: {} is using this directory", process_in_words(*process))]
    StorageInUse {
        /// The directory.
        path: PathBuf,
        /// The number of the process, if it is known.
        process: Option<u32>,
    },
    /// The bytes of a stored object differ from the bytes that were written.
    #[error("{path}: object '{object}' is damaged: its checksum is {found:016x} instead of {expected:016x}")]
    Damaged {
        /// The file of the group that contains the object.
        path: PathBuf,
        /// Name of the object.
        object: String,
        /// The checksum of the bytes that were written.
        expected: u64,
        /// The checksum of the bytes that were read.
        found: u64,
    },
    /// The file of a stored object ends before the object does.
    #[error("{path}: object '{object}' is damaged: the file ends {missing_bytes} bytes too early")]
    Truncated {
        /// The file of the group that contains the object.
        path: PathBuf,
        /// Name of the object.
        object: String,
        /// Bytes missing at the end of the file.
        missing_bytes: u64,
    },
    /// An argument of the library or the command line is not valid.
    #[error("{0}")]
    InvalidArgument(String),
    /// Ranks could not communicate, or a shared window could not be allocated.
    #[error("communication failed: {0}")]
    Transport(String),
    /// The error of a rank, reported to all ranks.
    #[error("rank {rank}: {message}")]
    Rank {
        /// The first rank that failed.
        rank: usize,
        /// Exit code of the program for the error of this rank.
        exit_code: u8,
        /// The error of this rank, as one line.
        message: ErrorText,
        /// The error of this rank itself, if it is one of the ranks that failed.
        own: Option<Box<Error>>,
    },
    /// The system refused an allocation.
    #[error("the system refused {bytes} bytes of memory")]
    OutOfMemory {
        /// Size of the allocation.
        bytes: u64,
    },
    /// The system refused to start threads: each needs memory, and their number may be limited.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// The number of threads requested.
        threads: usize,
        /// The system's reason.
        reason: String,
    },
}

impl Error {
    /// The error of a failed verification, with a text that describes the finding.
    pub fn verification(text: impl Into<ErrorText>) -> Error {
        Error::Verification(text.into())
    }

    /// The text of the error, with rows and columns counted from 0 and from 1.
    pub fn text(&self) -> ErrorText {
        match (self, self.counted_from_one()) {
            (Error::Verification(text), _) => {
                ErrorText::counted(|base| format!("verification failed: {}", text.in_base(base)))
            }
            (Error::Rank { rank, message, .. }, _) => {
                ErrorText::counted(|base| format!("rank {rank}: {}", message.in_base(base)))
            }
            (Error::Problem { problem, count, error }, _) => {
                let (text, is_plain) = (error.text(), error.counted_from_one().is_none());
                ErrorText::counted(|base| {
                    let remark = if is_plain && base == IndexBase::One { " (counted from 1)" } else { "" };
                    format!("problem {} of {count}: {}{remark}", base.number(*problem), text.in_base(base))
                })
            }
            (_, Some(error)) => ErrorText::counted(|base| match base {
                IndexBase::Zero => self.to_string(),
                IndexBase::One => format!("{error} (counted from 1)"),
            }),
            (_, None) => self.to_string().into(),
        }
    }

    /// The error with indices from 1, where it has any.
    fn counted_from_one(&self) -> Option<Error> {
        let next = |index: &usize| IndexBase::One.number(*index);
        Some(match self {
            Error::NotFinite { row, column, kind } => Error::NotFinite { row: next(row), column: next(column), kind },
            Error::NotInteger { row, column } => Error::NotInteger { row: next(row), column: next(column) },
            Error::ExponentRange { row, column, exponent, limit } => {
                Error::ExponentRange { row: next(row), column: next(column), exponent: *exponent, limit: *limit }
            }
            Error::SelfCheck { row, column } => Error::SelfCheck { row: next(row), column: next(column) },
            Error::NotSymmetric { row, column } => Error::NotSymmetric { row: next(row), column: next(column) },
            Error::Singular { index } => Error::Singular { index: next(index) },
            Error::NoPivot { index, working_bits } => {
                Error::NoPivot { index: next(index), working_bits: *working_bits }
            }
            Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits } => {
                Error::NotPositiveDefinite {
                    index: next(index),
                    pivot: pivot.clone(),
                    diagonal: diagonal.clone(),
                    more_bits: *more_bits,
                    enough_bits: *enough_bits,
                }
            }
            _ => return None,
        })
    }

    /// Two shapes, rows and columns each, that do not match.
    #[doc(hidden)]
    pub fn shape_mismatch(operation: &'static str, left: (usize, usize), right: (usize, usize)) -> Error {
        let ((left_rows, left_cols), (right_rows, right_cols)) = (left, right);
        Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols }
    }

    /// A precision that is not between 2 and a maximum.
    #[doc(hidden)]
    pub fn precision(precision_bits: impl Into<u64>, maximum_bits: impl Into<u64>) -> Error {
        Error::Precision { precision_bits: precision_bits.into(), maximum_bits: maximum_bits.into() }
    }

    /// A copy of the error, for other callers that waited for the work that failed on a device; an error of another
    /// kind becomes [`Error::Device`] with its text.
    #[doc(hidden)]
    pub fn repeated(&self) -> Error {
        match self {
            Error::DeviceLost(reason) => Error::DeviceLost(reason.clone()),
            &Error::DeviceMemory { bytes, used_bytes, capacity_bytes } => {
                Error::DeviceMemory { bytes, used_bytes, capacity_bytes }
            }
            &Error::OutOfMemory { bytes } => Error::OutOfMemory { bytes },
            &Error::SelfCheck { row, column } => Error::SelfCheck { row, column },
            other => Error::Device(other.to_string()),
        }
    }

    /// Exit code of the program for this error: 2 for arguments, 3 for input, 4 for limits (including a full disk), 5
    /// for a failed check, 6 for failed communication, 7 for a failed device, 130 for a cancelled run.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::InvalidArgument(_)
            | Error::UnknownKernel { .. }
            | Error::KernelUnavailable { .. }
            | Error::NoDevice(_)
            | Error::Precision { .. } => 2,
            // One code for a full disk, whatever was to be written there.
            Error::Io { source, .. } if is_full_disk(source) => 4,
            Error::NotFinite { .. }
            | Error::NotInteger { .. }
            | Error::ExponentRange { .. }
            | Error::ShapeMismatch { .. }
            | Error::NotSquare { .. }
            | Error::DimensionOverflow { .. }
            | Error::NotPositiveDefinite { .. }
            | Error::NotSymmetric { .. }
            | Error::Singular { .. }
            | Error::NoPivot { .. }
            | Error::RefinementStalls { .. }
            | Error::Format { .. }
            | Error::StorageMismatch { .. }
            | Error::StorageInUse { .. }
            | Error::Damaged { .. }
            | Error::Truncated { .. }
            | Error::Io { .. } => 3,
            Error::MemoryLimit { .. }
            | Error::DiskFull { .. }
            | Error::OutOfMemory { .. }
            | Error::Threads { .. }
            | Error::DeviceMemory { .. }
            | Error::DeviceLimit { .. } => 4,
            Error::SelfCheck { .. } | Error::Verification(_) => 5,
            Error::Transport(_) => 6,
            Error::Device(_) | Error::DeviceLost(_) => 7,
            Error::Rank { exit_code, .. } => *exit_code,
            Error::Problem { error, .. } => error.exit_code(),
            Error::Cancelled => 130,
        }
    }
}

/// Result with the crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
