//! Matrices that have to be symmetric: whether their triangles agree, and the message where they do not.
//!
//! A matrix that is not symmetric never becomes another one unnoticed: the advice is only such that the result belongs
//! to the file. Independent of: options of commands, how matrices are read.

use crate::args::NamedTriangle;
use rug::Float;
use std::path::Path;
use sunzi::io::{Block, MatrixFile};
use sunzi::io::{TriangleConflict, triangle_conflict};
use sunzi::{Error, FloatRef, Head, Matrix, Result, Symmetric, Uplo};

/// The use of a symmetric matrix.
pub struct SymmetricUse {
    /// The use, as a sentence.
    purpose: &'static str,
    /// The options that name a triangle.
    lower: &'static str,
    upper: &'static str,
}

/// The matrix that `cholesky`, `solve` and `inverse` take, and the commands that check their results.
pub const FACTORED: SymmetricUse = SymmetricUse {
    purpose: "cholesky, solve and inverse accept only symmetric positive definite matrices",
    lower: "--lower",
    upper: "--upper",
};

/// The same where `solve` and `inverse` could take any square matrix.
pub const SOLVED: SymmetricUse = SymmetricUse {
    purpose: "without --general, solve and inverse accept only symmetric positive definite matrices",
    ..FACTORED
};

/// The matrix of which `eigenvalue` encloses eigenvalues.
pub const SPECTRAL: SymmetricUse =
    SymmetricUse { purpose: "eigenvalue accepts only symmetric matrices", lower: "--lower", upper: "--upper" };

/// The matrix that is added to the product of `syrk`.
pub const ADDED: SymmetricUse = SymmetricUse {
    purpose: "the matrix to add to a symmetric product must be symmetric",
    lower: "--accumulate-triangle lower",
    upper: "--accumulate-triangle upper",
};

/// The option that lets the other triangle be anything.
const IGNORE: &str = "--ignore-other-triangle";

impl SymmetricUse {
    /// Refuses a square matrix, known to `bits` bits, that is not its own transpose, or whose other triangle
    /// contradicts the one that is named. Rows and columns in the message count from 1, as in the file.
    ///
    /// # Errors
    /// [`Error::Format`] with two entries that differ.
    pub fn check(&self, path: &Path, matrix: &Matrix, bits: u32, named: Option<NamedTriangle>) -> Result<()> {
        let entry = |row: usize, col: usize| matrix.float(row, col);
        let conflict = |uplo: Uplo| triangle_conflict(matrix.view(), matrix.view(), uplo, bits);
        let found = match named {
            Some(NamedTriangle { ignores_other: true, .. }) => return Ok(()),
            Some(NamedTriangle { uplo, .. }) => {
                let Some(conflict) = conflict(uplo) else { return Ok(()) };
                let pair = Pair::of(conflict.row, conflict.column, entry);
                format!("{pair}; {}", self.named_advice(uplo, &conflict))
            }
            None => {
                let Err(error) = Symmetric::from(matrix).lower_view("a symmetric matrix") else { return Ok(()) };
                let Error::NotSymmetric { row, column } = error else { return Err(error) };
                let advice = self.advice(conflict(Uplo::Lower).is_none(), conflict(Uplo::Upper).is_none());
                format!("{}; {advice}", Pair::of(row, column, entry))
            }
        };
        Err(Error::Format { path: path.to_path_buf(), message: format!("not symmetric: {found}") })
    }

    /// As [`SymmetricUse::check`] for a file of which the triangle `named` is read block by block.
    ///
    /// # Errors
    /// [`Error::Format`] with two entries that differ; the errors of [`MatrixFile::triangle_conflict`].
    pub fn check_file(&self, file: &MatrixFile, named: Option<NamedTriangle>) -> Result<()> {
        let Some(NamedTriangle { uplo, ignores_other: false }) = named else { return Ok(()) };
        let Some(conflict) = file.triangle_conflict(uplo)? else { return Ok(()) };
        let (row, col) = (conflict.row, conflict.column);
        let read = |row: usize, col: usize| {
            let block = Block { rows: row..row + 1, cols: col..col + 1 };
            let mut words = vec![0; file.block_words(&block)];
            file.read_block(&block, &mut words)?;
            Ok(FloatRef { head: Head(words[0]), limbs: &words[1..] }.to_float(file.precision_bits()))
        };
        let (first, second) = (read(row, col)?, read(col, row)?);
        let pair = Pair { row, col, entries: [first, second] };
        let message = format!("not symmetric: {pair}; {}", self.named_advice(uplo, &conflict));
        Err(Error::Format { path: file.path().to_path_buf(), message })
    }

    /// The advice where no triangle is named, and naming `lower` or `upper` would be accepted or not.
    fn advice(&self, lower: bool, upper: bool) -> String {
        let SymmetricUse { purpose, lower: as_lower, upper: as_upper } = self;
        match (lower, upper) {
            (true, true) => {
                format!("the triangles agree up to rounding: choose the triangle to read by {as_lower} or {as_upper}")
            }
            (true, false) | (false, true) => {
                let (option, kept, empty) =
                    if lower { (as_lower, "lower", "upper") } else { (as_upper, "upper", "lower") };
                format!(
                    "{purpose}; if the {kept} triangle represents such a matrix, and the {empty} one is zero, give \
                     {option}"
                )
            }
            (false, false) => String::from(*purpose),
        }
    }

    /// The advice where the triangle that is named does not agree with the other one.
    fn named_advice(&self, uplo: Uplo, conflict: &TriangleConflict) -> String {
        let (option, other_option, other) = match uplo {
            Uplo::Lower => (self.lower, self.upper, "upper"),
            Uplo::Upper => (self.upper, self.lower, "lower"),
        };
        let purpose = self.purpose;
        match conflict.named_is_zero {
            true => format!(
                "{option} names a triangle that is zero off the diagonal, but the {other} one is not; {purpose}; if \
                 the {other} one represents such a matrix, give {other_option}"
            ),
            false => format!("{purpose}; to ignore the {other} triangle, give {option} {IGNORE}"),
        }
    }
}

/// Two mirrored entries, for a message.
struct Pair {
    row: usize,
    col: usize,
    entries: [Float; 2],
}

impl Pair {
    fn of(row: usize, col: usize, entry: impl Fn(usize, usize) -> Float) -> Pair {
        Pair { row, col, entries: [entry(row, col), entry(col, row)] }
    }
}

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, second) = show_both(&self.entries);
        let (i, j) = (self.row + 1, self.col + 1);
        write!(f, "entry ({i}, {j}) is {first}, entry ({j}, {i}) is {second} (counted from 1)")
    }
}

/// Both numbers with enough digits to distinguish them, if 200 suffice.
fn show_both([left, right]: &[Float; 2]) -> (String, String) {
    for digits in [6, 20, 60, 200] {
        let both = (format!("{left:.digits$e}"), format!("{right:.digits$e}"));
        if both.0 != both.1 {
            return both;
        }
    }
    (format!("{left:e}"), format!("{right:e}"))
}
