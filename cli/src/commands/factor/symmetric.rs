//! A symmetric matrix from a file: stored as such, or as a general one whose triangles are compared.

use crate::session::{Session, header, read_within};
use rug::Float;
use std::path::Path;
use sunzi::io::ReadOptions;
use sunzi::{Error, Matrix, Result, SymmetricMatrix, Uplo};
use sunzi_lab::engine::Engine;

/// Reads the matrix in `path`, of which the triangle `uplo` counts; without one both must hold the same numbers.
///
/// The other triangle of what is returned is not to be looked at.
///
/// # Errors
/// [`Error::ShapeMismatch`] where it is not square, before it is read where that is possible; [`Error::Format`] with
/// the first pair of entries that differ; those of reading.
pub fn read_symmetric(
    session: &Session,
    engine: &Engine,
    path: &Path,
    uplo: Option<Uplo>,
    options: ReadOptions,
) -> Result<SymmetricMatrix> {
    if let Some(info) = header(path)? {
        check_square(info.rows, info.cols)?;
    }
    let loaded = read_within(session, engine, path, options)?;
    check_square(loaded.matrix.rows(), loaded.matrix.cols())?;
    if uplo.is_none() && !loaded.symmetric {
        check_triangles(path, &loaded.matrix)?;
    }
    SymmetricMatrix::from_triangle(loaded.matrix, uplo.unwrap_or_default())
}

/// Refuses a shape that no factorisation takes, by the header already.
fn check_square(rows: usize, cols: usize) -> Result<()> {
    if rows == cols {
        return Ok(());
    }
    let operation = "cholesky of a square matrix";
    Err(Error::ShapeMismatch { operation, left_rows: rows, left_cols: cols, right_rows: cols, right_cols: rows })
}

/// Refuses a matrix that is not its own transpose; rows and columns in the message count from 1, as in the file.
fn check_triangles(path: &Path, matrix: &Matrix) -> Result<()> {
    for col in 0..matrix.cols() {
        for row in col + 1..matrix.rows() {
            if matrix.get(row, col) != matrix.get(col, row) {
                let (lower, upper) = show_both(matrix.float(row, col), matrix.float(col, row));
                let (i, j) = (row + 1, col + 1);
                let message = format!(
                    "not symmetric: entry ({i}, {j}) is {lower}, entry ({j}, {i}) is {upper}; \
                     give --lower or --upper to say which triangle counts"
                );
                return Err(Error::Format { path: path.to_path_buf(), message });
            }
        }
    }
    Ok(())
}

/// Both numbers with digits enough to tell them apart, where 200 are.
fn show_both(left: Float, right: Float) -> (String, String) {
    for digits in [6, 20, 60, 200] {
        let both = (format!("{left:.digits$e}"), format!("{right:.digits$e}"));
        if both.0 != both.1 {
            return both;
        }
    }
    (format!("{left:e}"), format!("{right:e}"))
}
