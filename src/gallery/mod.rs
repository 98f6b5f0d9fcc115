//! Test matrices by name: random ones, ones with known factors, and one from the conformal bootstrap.
//!
//! Promise: the same arguments give the same bits on any machine, with any number of threads; every entry is exact or
//! rounded once, to nearest even, at the precision asked for (`bootstrap1d`: see its file). Does not know: files.
//! Formulas follow N. J. Higham, "The Test Matrix Toolbox for Matlab" (1995), extended to any number of rows and
//! columns by the same formula.

mod bootstrap;
mod counter;
mod known;
mod random;

pub use counter::counter_random;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;

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
}

/// The test matrix of this kind; `seed` matters to `random` and `graded` only.
///
/// Cost: linear in the entries, each about one operation of that precision; `pascal` grows with the entries' own
/// lengths, `bootstrap1d` with the precision. Memory: the matrix, and for `pascal` and `bootstrap1d` a few rows more.
///
/// # Errors
/// Those of [`Matrix::zeros`]; [`Error::ExponentRange`] for a `bootstrap1d` of more than about 10^7 columns.
pub fn generate(kind: Kind, size: Size, seed: u64) -> Result<Matrix> {
    if size.rows == 0 || size.cols == 0 {
        return Matrix::zeros(size.rows, size.cols, size.precision_bits);
    }
    let make = || match kind {
        Kind::Random => random::random(size, seed),
        Kind::Graded => random::graded(size, seed),
        Kind::Bootstrap1d => bootstrap::crossing_derivatives(size),
        _ => known::known(kind, size),
    };
    match rayon::current_thread_index() {
        Some(_) => make(),
        // Threads that the system may refuse: those of the process's own pool would be taken for granted.
        None => Context::builder().build()?.install(make),
    }
}

#[cfg(test)]
mod tests;
