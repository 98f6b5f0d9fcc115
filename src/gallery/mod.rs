//! Test matrices by name: random matrices, matrices with known factors, and one from the conformal bootstrap.
//!
//! Promise: the same arguments give the same bits on any machine, with any number of threads; every entry is exact or
//! rounded once, to nearest even, at the requested precision (`bootstrap1d`: see its file). Independent of: operations.
//! Formulas follow N. J. Higham, "The Test Matrix Toolbox for Matlab" (1995), extended to any number of rows and
//! columns by the same formula.

mod bootstrap;
mod columns;
mod counter;
mod file;
mod known;
mod random;

pub use counter::counter_random;
pub use file::{FileMatrix, generate_file};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use columns::MatrixPart;
use std::ops::Range;

/// The kinds of test matrices; `i` and `j` count from 0 in the formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Uniform in (-1, 1), every significand full.
    Random,
    /// `2^(r_i + c_j)` times a random entry, `r_i` and `c_j` uniform integers in [-2000, 2000].
    Graded,
    /// `1 / (i + j + 1)`.
    Hilbert,
    /// `1 / (x_i + y_j)` with `x_i = i + 1`, `y_j = j + 1`.
    Cauchy,
    /// `min(i + 1, j + 1) / max(i + 1, j + 1)`.
    Lehmer,
    /// `min(i + 1, j + 1)`.
    Minij,
    /// `binomial(i + j, i)`.
    Pascal,
    /// `i + 1` on the diagonal, `min(i + 1, j + 1) - 2` off it: `U^T U` for the unit triangular U with -1 above.
    Moler,
    /// `2^-|i - j|` (Kac, Murdock, Szego).
    Kms,
    /// A row of ones above `mu I`, `mu = 2^-ceil(precision / 2)`: `P^T P` is singular at that precision.
    Lauchli,
    /// Odd derivatives at z = 1/2 of the 1D crossing functions; see the file `bootstrap.rs`.
    Bootstrap1d,
}

/// All kinds by name, in the order in which they are listed to users.
pub const KINDS: [(&str, Kind); 11] = [
    ("random", Kind::Random),
    ("graded", Kind::Graded),
    ("hilbert", Kind::Hilbert),
    ("cauchy", Kind::Cauchy),
    ("lehmer", Kind::Lehmer),
    ("minij", Kind::Minij),
    ("pascal", Kind::Pascal),
    ("moler", Kind::Moler),
    ("kms", Kind::Kms),
    ("lauchli", Kind::Lauchli),
    ("bootstrap1d", Kind::Bootstrap1d),
];

/// Shape and precision of a matrix to make.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Rows, any number.
    pub rows: usize,
    /// Columns, any number.
    pub cols: usize,
    /// Bits of every significand.
    pub precision_bits: u32,
}

impl Kind {
    /// The kind called `name`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the known names.
    pub fn by_name(name: &str) -> Result<Kind> {
        KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind).ok_or_else(|| {
            let known = KINDS.map(|(known, _)| known).join(", ");
            Error::InvalidArgument(format!("unknown kind of matrix '{name}': choose one of {known}"))
        })
    }

    /// Name of the kind.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Whether square matrices of this kind are symmetric.
    pub fn is_symmetric(self) -> bool {
        use Kind::{Cauchy, Hilbert, Kms, Lehmer, Minij, Moler, Pascal};
        matches!(self, Hilbert | Cauchy | Lehmer | Minij | Pascal | Moler | Kms)
    }

    /// Splits a matrix of this kind, or its lower triangle if `lower` is set, into blocks of about `bytes` bytes each;
    /// returns their rows and columns.
    ///
    /// A block has at least one column or, for `bootstrap1d`, at least 16 rows. Making all blocks by [`generate_block`]
    /// costs as much as making the matrix by [`generate`].
    pub fn blocks(self, size: Size, lower: bool, bytes: u64) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        columns::blocks(self, size, lower, bytes)
    }
}

/// The test matrix of this kind; `seed` affects only `random` and `graded`.
///
/// Cost: about one operation of that precision for each entry; for `pascal` the cost grows with the lengths of the
/// entries, for `bootstrap1d` with the precision. Memory: the matrix, and a column or a few rows more for each thread.
///
/// # Errors
/// The errors of [`Matrix::zeros`]; [`Error::ExponentRange`] for a `bootstrap1d` of more than about 10^7 columns.
pub fn generate(kind: Kind, size: Size, seed: u64) -> Result<Matrix> {
    generate_block(kind, size, seed, (0..size.rows, 0..size.cols))
}

/// The entries of some rows and columns of the matrix that [`generate`] makes, bit for bit.
///
/// Cost: as [`generate`] for the block; `random`, `graded` and `pascal` also compute the entries above it in its
/// columns, `bootstrap1d` the entries to its left in its rows. Memory: the block, and a column or a few rows more for
/// each thread.
///
/// # Errors
/// [`Error::InvalidArgument`] for a block that is not inside the matrix; the errors of [`generate`].
pub fn generate_block(kind: Kind, size: Size, seed: u64, (rows, cols): (Range<usize>, Range<usize>)) -> Result<Matrix> {
    if rows.start > rows.end || cols.start > cols.end || rows.end > size.rows || cols.end > size.cols {
        let (all_rows, all_cols) = (size.rows, size.cols);
        return Err(Error::InvalidArgument(format!(
            "rows {rows:?} and columns {cols:?} do not define a block of a {all_rows} x {all_cols} matrix"
        )));
    }
    Matrix::check_size(rows.len(), cols.len(), size.precision_bits)?;
    let part = MatrixPart { size, rows, cols };
    if part.rows.is_empty() || part.cols.is_empty() {
        return part.zeros();
    }
    let make = || match kind {
        Kind::Random => random::random(&part, seed),
        Kind::Graded => random::graded(&part, seed),
        Kind::Bootstrap1d => bootstrap::crossing_derivatives(&part),
        _ => known::known(kind, &part),
    };
    match rayon::current_thread_index() {
        Some(_) => make(),
        // Threads that the system may refuse: those of the process's own pool would be taken for granted.
        None => Context::builder().build()?.install(make),
    }
}

#[cfg(test)]
mod tests;
