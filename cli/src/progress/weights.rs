//! How long the stages of commands take relative to each other: seconds on some machine, which need not be this one.
//!
//! Measured with two threads on a CPU with AVX-512; only the ratios matter, and only as accurately as a bar needs them.

use super::Stage;
use sunzi::gallery::Kind;
use sunzi::io::{FileFormat, FileInfo};

/// Seconds for a bit of an entry of a file.
const READ_TEXT: f64 = 2.5e-9;
const WRITE_TEXT: f64 = 3e-9;
const BINARY: f64 = 0.5e-9;
const CHECKSUM: f64 = 0.08e-9;

/// Seconds for a product of words in products, factors, solves and inverses; the work around them included.
const PRODUCT: f64 = 0.2e-9;
const FACTOR: f64 = 0.8e-9;
const SOLVE: f64 = 0.6e-9;
const INVERSE: f64 = 1.6e-9;

/// Seconds for an entry of a test matrix, and for each of its bits: drawn or exact, a quotient, a derivative.
const ENTRY: f64 = 40e-9;
const PLAIN: f64 = 0.15e-9;
const DIVISION: f64 = 0.7e-9;
const BOOTSTRAP: f64 = 10e-9;

/// Seconds to convert an entry, for each pair of its words.
const CONVERT: f64 = 2e-9;

fn is_text(format: FileFormat) -> bool {
    !matches!(format, FileFormat::Binary | FileFormat::Npy)
}

/// Reading a file, at `bits` where it states none.
pub fn reading(info: &FileInfo, bits: u32) -> Stage {
    let rate = if is_text(info.format) { READ_TEXT } else { BINARY };
    let bits = info.precision_bits_comment.unwrap_or(bits);
    Stage::call("read", rate * info.stored_entries as f64 * f64::from(bits))
}

/// Writing a matrix.
pub fn writing(format: FileFormat, rows: usize, cols: usize, bits: u32) -> Stage {
    let rate = if is_text(format) { WRITE_TEXT } else { BINARY };
    Stage::call("write", rate * rows as f64 * cols as f64 * f64::from(bits))
}

/// Reading a binary file that was just written for its checksum, until it is safe on the disk.
pub fn checking(rows: usize, cols: usize, bits: u32) -> Stage {
    Stage::call("checksum", CHECKSUM * rows as f64 * cols as f64 * f64::from(bits))
}

/// Words of residues for numbers of `bits` bits in a product.
fn words(bits: u32) -> f64 {
    f64::from(bits) / 25.0 + 1.0
}

/// `contracted` rows times `rows` and `cols` columns; a symmetric result costs half.
pub fn product_seconds(contracted: usize, rows: usize, cols: usize, is_symmetric: bool, bits: u32) -> f64 {
    let (k, m, n, words) = (contracted as f64, rows as f64, cols as f64, words(bits));
    let half = if is_symmetric { 0.5 } else { 1.0 };
    half * (PRODUCT * k * m * n * words + CONVERT * (k * (m + n) + m * n) * words * words / 2.0)
}

/// Making the entries of a test matrix.
pub fn generate_seconds(kind: Kind, rows: usize, cols: usize, bits: u32) -> f64 {
    let (entries, bits) = (rows as f64 * cols as f64, f64::from(bits));
    let entry = match kind {
        Kind::Hilbert | Kind::Cauchy | Kind::Lehmer => DIVISION * bits,
        Kind::Pascal => DIVISION * bits.min((rows + cols) as f64),
        Kind::Bootstrap1d => BOOTSTRAP * bits,
        _ => PLAIN * bits,
    };
    entries * (ENTRY + entry)
}

/// A factorisation.
pub fn factor_seconds(order: usize, bits: u32) -> f64 {
    FACTOR * (order as f64).powi(3) / 6.0 * words(bits) + CONVERT * (order as f64).powi(2) * words(bits).powi(2)
}

/// The two substitutions with a factor.
pub fn solve_seconds(order: usize, cols: usize, bits: u32) -> f64 {
    2.0 * trsm_seconds(order, cols, bits)
}

/// One triangular solve.
pub fn trsm_seconds(order: usize, cols: usize, bits: u32) -> f64 {
    let (n, m) = (order as f64, cols as f64);
    SOLVE * n * n * m / 2.0 * words(bits) + CONVERT * n * (n + m) * words(bits).powi(2)
}

/// The inverse from a factor.
pub fn inverse_seconds(order: usize, bits: u32) -> f64 {
    INVERSE * (order as f64).powi(3) / 3.0 * words(bits) + CONVERT * (order as f64).powi(2) * words(bits).powi(2)
}
