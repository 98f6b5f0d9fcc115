//! What can be said of a matrix in a file before it is read: its header, its precision, the memory that it takes.

use std::path::Path;
use sunzi::advanced::store::available_bytes;
use sunzi::io::{self, FileInfo, ReadOptions, is_device};
use sunzi::{Error, Matrix, Result};

/// Bytes of the matrix that a header announces.
pub fn bytes(info: &FileInfo, options: &ReadOptions) -> u64 {
    Matrix::bytes_for(info.rows, info.cols, options.precision_bits.max(options.input_precision_bits.unwrap_or(0)))
}

/// What the header of a file says; `None` for a pipe or device, which can be read only once.
///
/// # Errors
/// Those of [`io::read_info`].
pub fn header(path: &Path) -> Result<Option<FileInfo>> {
    if is_device(path) { Ok(None) } else { io::read_info(path).map(Some) }
}

/// Refuses a matrix that the machine's free memory cannot hold, rather than be killed while it is filled.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn admit(bytes: u64) -> Result<()> {
    match available_bytes() {
        // A size beyond all addresses has an error of its own, from the matrix.
        Some(available) if bytes > available && bytes < i64::MAX as u64 => Err(Error::OutOfMemory { bytes }),
        _ => Ok(()),
    }
}

/// The precision given, else the one that the file states.
///
/// # Errors
/// [`Error::InvalidArgument`] where neither is there.
pub fn stated_precision(given: Option<u32>, path: &Path, info: Option<&FileInfo>) -> Result<u32> {
    given.or(info.and_then(|info| info.precision_bits_comment)).ok_or_else(|| {
        Error::InvalidArgument(format!("{} does not state its precision: give --precision", path.display()))
    })
}

/// Precision to which decimals are read where the result is exact: integers take what they need.
const EXACT_BITS: u32 = 64;

/// The precision given, else the one that the file states; a product of integers needs neither.
///
/// # Errors
/// Those of [`header`] and [`stated_precision`].
pub fn product_precision(given: Option<u32>, path: &Path, exact_integers: bool) -> Result<u32> {
    let info = header(path)?;
    let stated = stated_precision(given, path, info.as_ref());
    if exact_integers { Ok(stated.unwrap_or(EXACT_BITS)) } else { stated }
}
