//! Matrices that are singular, in the file or as they were read: a factor of one exists only by rounding, at any
//! precision.
//!
//! Independent of: how that is proven.

use super::{FactorInputs, Factoring, ReadAt, reader};
use crate::input::Reader;
use crate::session::Session;
use crate::triangles::FACTORED;
use sunzi::estimate::{Singularity, singularity, singularity_as_written};
use sunzi::io::{WrittenEntry, is_device};
use sunzi::{Result, SymmetricMatrix};

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
    Unknown,
}

impl From<Singularity> for InFile {
    fn from(found: Singularity) -> InFile {
        match found {
            Singularity::Singular { .. } => InFile::Singular,
            Singularity::Nonsingular => InFile::Nonsingular,
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

/// Warns that a matrix that has a factor is singular all the same, where it is small enough to examine.
///
/// # Errors
/// The errors of [`singularity`], and of reading.
pub fn warn_of_singular(session: &Session, config: &Factoring, inputs: &FactorInputs) -> Result<()> {
    let FactorInputs { a, bytes: held_bytes, rounding, .. } = inputs;
    if a.rows() > CHEAP_ROWS || !has_room(config, a, *held_bytes) {
        return Ok(());
    }
    let seen = match rounding.matrix_bits {
        None => Examined::of(a, Some(&[]))?,
        // A pipe can be read only once.
        Some(_) if is_device(&config.factor.a) => Examined::of(a, None)?,
        Some(_) => examine(session, config, None)?,
    };
    let what = match seen.in_file {
        InFile::Singular => "the matrix".to_string(),
        InFile::Unknown if seen.is_singular_as_read => format!("the matrix as read at {} bits", seen.bits),
        _ => return Ok(()),
    };
    session.note(&format!(
        "warning: {what} is singular, as an exact solution of A x = 0 proves: its factor exists only because of \
         rounding"
    ));
    Ok(())
}

/// Whether the memory limit has room for an examination in addition to the bytes held.
fn has_room(config: &Factoring, a: &SymmetricMatrix, held_bytes: u64) -> bool {
    // Integers of the scaled matrix and numbers as they were written, with their pointers, and a word for each entry
    // modulo a prime.
    let bytes = (a.rows() * a.rows()) as u64 * (160 + 4 * u64::from(a.precision_bits()) / 8);
    config.factor.engine.budget(held_bytes).is_none_or(|budget| budget.admit(bytes).is_ok())
}
