//! Matrices that are singular, in the file or as they were read: a factor of one exists only by rounding, at any
//! precision.
//!
//! Independent of: how that is proven.

use super::{FactorInputs, Factoring, ReadAt, Task, reader};
use crate::input::Reader;
use crate::session::Session;
use crate::triangles::FACTORED;
use sunzi::estimate::{Singularity, singularity, singularity_as_written};
use sunzi::io::{WrittenEntry, is_device};
use sunzi::{Error, IndexBase, Result, SymmetricMatrix};

/// Rows of the largest matrix that is examined although it has a factor: it takes some milliseconds.
const CHEAP_ROWS: usize = 100;

/// The findings on a matrix.
#[derive(Clone, Copy, Debug)]
pub struct Examined {
    /// Bits to which its numbers were read.
    pub bits: u32,
    /// Whether it is proven to be singular with the numbers that it has after reading.
    pub is_singular_as_read: bool,
    /// Of the matrix in the file, its numbers as they were written.
    pub in_file: InFile,
}

/// The findings on a matrix with its numbers as they were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InFile {
    /// Proven.
    Singular,
    /// Proven.
    Nonsingular,
    /// The determinant is 0 modulo `primes` primes above `2^60`, which is no proof.
    ProbablySingular {
        primes: usize,
    },
    Unknown,
}

impl From<Singularity> for InFile {
    fn from(found: Singularity) -> InFile {
        match found {
            Singularity::Singular { .. } => InFile::Singular,
            Singularity::Nonsingular => InFile::Nonsingular,
            Singularity::ProbablySingular { primes, .. } => InFile::ProbablySingular { primes },
            _ => InFile::Unknown,
        }
    }
}

impl Examined {
    /// Of a matrix, in which the entries `written` were rounded; `None` where it is not known which.
    fn of(a: &SymmetricMatrix, written: Option<&[WrittenEntry]>) -> Result<Examined> {
        let as_read = singularity(a)?;
        let is_singular_as_read = as_read.is_proven_singular();
        let in_file = match written {
            Some([]) => as_read.into(),
            Some(written) => singularity_as_written(a, written)?.into(),
            None => InFile::Unknown,
        };
        Ok(Examined { bits: a.precision_bits(), is_singular_as_read, in_file })
    }
}

/// Examines the matrix in the file, and as it is read at the precision given or stated, or at `bits`. Nothing is known
/// if the memory limit is too small for the test.
///
/// # Errors
/// The errors of reading.
pub fn examine(session: &Session, config: &Factoring, bits: Option<u32>) -> Result<Examined> {
    let reader = reader(session, config, ReadAt { precision_bits: bits, ..ReadAt::default() })?;
    examine_by(&reader.keeping_written(), config)
}

/// Examines the matrix only as it is read at `bits`: nothing is concluded about the file.
///
/// # Errors
/// The errors of reading.
pub fn examine_as_read(session: &Session, config: &Factoring, bits: u32) -> Result<Examined> {
    examine_by(&reader(session, config, ReadAt { precision_bits: Some(bits), ..ReadAt::default() })?, config)
}

fn examine_by(reader: &Reader<'_>, config: &Factoring) -> Result<Examined> {
    let a = reader.symmetric(&config.factor.a, config.factor.triangle.named(), &FACTORED)?;
    match has_room(config, &a, reader.held_bytes()) {
        true => Examined::of(&a, reader.written().as_deref()),
        false => Ok(Examined { bits: a.precision_bits(), is_singular_as_read: false, in_file: InFile::Unknown }),
    }
}

/// The words of a proof of singularity, here and in messages of the library.
const PROOF: &str = "is singular, as an exact solution of A x = 0 proves";

/// The error for a matrix that is proven to be singular and has a factor all the same, where correct digits are
/// required.
pub fn singular_refused(config: &Factoring) -> Error {
    let message = format!("the matrix {PROOF}: {}; no precision gives a correct digit", no_answer(config));
    Error::Format { path: config.factor.a.clone(), message }
}

/// The error where no answer has a correct digit at any precision up to `bits` bits: what is known of the matrix.
pub fn no_digit(config: &Factoring, in_file: InFile, bits: u32) -> Error {
    let known = match in_file {
        InFile::Singular => return singular_refused(config),
        InFile::Nonsingular => format!("the matrix is nonsingular, but too ill-conditioned for {bits} bits"),
        InFile::ProbablySingular { primes } => probably_singular(primes),
        InFile::Unknown => format!("the matrix is singular, or too ill-conditioned for {bits} bits; {UNDECIDED}"),
    };
    let message = format!("no precision tried, up to {bits} bits, gives a correct digit: {known}");
    Error::Format { path: config.factor.a.clone(), message }
}

/// The error for a matrix without a factor at any precision up to `bits` bits, where rounding can explain each pivot:
/// what is known of it. `first` is the refusal at the precision that was given.
pub fn no_factor(config: &Factoring, in_file: InFile, first: &Error, bits: u32) -> Error {
    let place = match first {
        Error::NotPositiveDefinite { index, pivot, diagonal, .. } => {
            let row = IndexBase::One.number(*index);
            format!(" (row {row}: pivot {pivot:.3e}, diagonal entry {diagonal:.3e})")
        }
        _ => String::new(),
    };
    let known = match in_file {
        InFile::Nonsingular => format!("the matrix is not positive definite, or too ill-conditioned for {bits} bits"),
        InFile::Singular => format!("the matrix {PROOF}"),
        InFile::ProbablySingular { primes } => probably_singular(primes),
        InFile::Unknown => format!(
            "the matrix is singular, not positive definite, or too ill-conditioned for {bits} bits; {UNDECIDED}"
        ),
    };
    let message = format!(
        "the matrix has no factor at this precision{place}, nor at any other precision tried, up to {bits} bits: \
         {known}"
    );
    Error::Format { path: config.factor.a.clone(), message }
}

/// The reason that it may be unknown whether a matrix is singular.
const UNDECIDED: &str = "only matrices of at most 300 rows are tested for singularity";

fn probably_singular(primes: usize) -> String {
    format!(
        "the matrix is probably singular: its determinant is 0 modulo {primes} primes above 2^60, but no exact \
         solution of A x = 0 was found"
    )
}

/// The consequence of a singular matrix for the answer.
fn no_answer(config: &Factoring) -> &'static str {
    match config.task {
        Task::Solve { .. } => "A X = B has no solution, or more than one",
        Task::Inverse => "it has no inverse",
        Task::Cholesky => "its determinant is 0, and log det A is -infinity",
    }
}

/// Warns that a matrix that has a factor is singular all the same, where it is small enough to examine. Returns whether
/// the matrix in the file is singular, where that is proven.
///
/// # Errors
/// The errors of [`singularity`], and of reading.
pub fn warn_of_singular(session: &Session, config: &Factoring, inputs: &FactorInputs) -> Result<Option<bool>> {
    let FactorInputs { a, bytes: held_bytes, rounding, .. } = inputs;
    if a.rows() > CHEAP_ROWS || !has_room(config, a, *held_bytes) {
        return Ok(None);
    }
    let seen = match rounding.matrix_bits {
        None => Examined::of(a, Some(&[]))?,
        // A pipe can be read only once.
        Some(_) if is_device(&config.factor.a) => Examined::of(a, None)?,
        Some(_) => examine(session, config, None)?,
    };
    let because = "its factor exists only because of rounding";
    match seen.in_file {
        InFile::Singular => {
            let answer = if matches!(config.task, Task::Cholesky) && !config.factor.log_det {
                String::new()
            } else {
                format!("; {}", no_answer(config))
            };
            session.note(&format!("warning: the matrix {PROOF}: {because}{answer}"));
            return Ok(Some(true));
        }
        InFile::Nonsingular => return Ok(Some(false)),
        InFile::ProbablySingular { .. } | InFile::Unknown if seen.is_singular_as_read => {
            session.note(&format!("warning: the matrix as read at {} bits {PROOF}: {because}", seen.bits));
        }
        InFile::ProbablySingular { primes } => session.note(&format!("warning: {}", probably_singular(primes))),
        InFile::Unknown => {}
    }
    Ok(None)
}

/// Whether the memory limit has room for an examination in addition to the bytes held.
fn has_room(config: &Factoring, a: &SymmetricMatrix, held_bytes: u64) -> bool {
    // Integers of the scaled matrix and numbers as they were written, with their pointers, and a word for each entry
    // modulo a prime.
    let bytes = (a.rows() * a.rows()) as u64 * (160 + 4 * u64::from(a.precision_bits()) / 8);
    config.factor.engine.budget(held_bytes).is_none_or(|budget| budget.admit(bytes).is_ok())
}
