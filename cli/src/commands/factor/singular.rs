//! Matrices that are singular as they were read: a factor of one exists by rounding alone, at any precision.
//!
//! Does not know: how that is proven.

use super::{Factoring, Inputs, ReadAt, reader};
use crate::session::Session;
use crate::triangles::FACTORED;
use sunzi::{Result, SymmetricMatrix, singularity};

/// Rows of the largest matrix that is examined although it has a factor: it takes some milliseconds.
const CHEAP_ROWS: usize = 100;

/// What is known of a matrix with the numbers that it has after reading.
pub struct AsRead {
    /// Bits of the numbers.
    pub bits: u32,
    /// Whether reading has rounded one: then the matrix in the file is another one.
    pub is_rounded: bool,
    /// Whether it is proven to be singular.
    pub is_singular: bool,
}

/// Examines the matrix as read at the precision given or stated, or at `bits`.
///
/// # Errors
/// Those of reading.
pub fn examine(session: &Session, config: &Factoring, bits: Option<u32>) -> Result<AsRead> {
    let reader = reader(session, config, ReadAt { precision_bits: bits, ..ReadAt::default() })?;
    let a = reader.symmetric(&config.factor.a, config.factor.triangle.named(), &FACTORED)?;
    let (bits, is_rounded) = (a.precision_bits(), reader.rounded_bits().is_some());
    Ok(AsRead { bits, is_rounded, is_singular: is_proven_singular(config, &a, reader.held_bytes())? })
}

/// Says of a matrix that has a factor, where it is small, that it is singular all the same.
///
/// # Errors
/// Those of [`singularity`].
pub fn warn_of_singular(session: &Session, config: &Factoring, inputs: &Inputs) -> Result<()> {
    let Inputs { a, bytes: held_bytes, .. } = inputs;
    if a.rows() <= CHEAP_ROWS && is_proven_singular(config, a, *held_bytes)? {
        session.note(&format!(
            "warning: the matrix as read at {} bits is singular, as an exact solution of A x = 0 proves: its factor \
             exists by rounding alone",
            a.precision_bits()
        ));
    }
    Ok(())
}

/// Whether the matrix is proven to be singular; nothing is proven where the memory limit has no room for it beside what
/// is held.
fn is_proven_singular(config: &Factoring, a: &SymmetricMatrix, held_bytes: u64) -> Result<bool> {
    // Integers of the scaled matrix with their pointers, and a word for each entry modulo a prime.
    let bytes = (a.rows() * a.rows()) as u64 * (64 + 2 * u64::from(a.precision_bits()) / 8);
    let has_room = config.factor.engine.budget(held_bytes).is_none_or(|budget| budget.admit(bytes).is_ok());
    Ok(has_room && singularity(a)?.is_proven_singular())
}
