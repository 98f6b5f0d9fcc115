//! Factorisations as meant: `cholesky` and `verify cholesky`.

use super::{Engine, Output, Precision, check_reach, optional, precision, size};
use crate::error::{Error, Result};
use crate::front::cli::args::{RawCholesky, RawFactor, RawPrecision, RawTriangle, RawVerifyCholesky};
use crate::front::cli::units::parse_count;
use crate::matrix::Uplo;
use std::path::PathBuf;

/// A symmetric positive definite matrix and how it is factored.
#[derive(Clone, Debug)]
pub struct Factor {
    /// The file of A.
    pub a: PathBuf,
    /// The triangle that is read; `None` for both, which must agree.
    pub uplo: Option<Uplo>,
    /// Its precision.
    pub precision: Precision,
    /// Rows of a tile.
    pub tile_rows: Option<usize>,
    /// Whether the logarithm of the determinant is printed.
    pub log_det: bool,
    /// Where the trace goes.
    pub trace: Option<PathBuf>,
    /// The engine.
    pub engine: Engine,
}

/// A factorisation to compute.
#[derive(Clone, Debug)]
pub struct Factoring {
    /// What is factored and how.
    pub factor: Factor,
    /// Where the result goes.
    pub output: Output,
}

/// A stored factor to check.
#[derive(Clone, Debug)]
pub struct VerifyCholesky {
    /// The file of A.
    pub a: PathBuf,
    /// The file of the factor.
    pub l: PathBuf,
    /// The triangle that counts; `None` for both of A, which must agree, and a lower factor.
    pub uplo: Option<Uplo>,
    /// Precision of the bound.
    pub precision: Precision,
    /// Seed of the test of the product.
    pub seed: Option<u64>,
    /// The engine.
    pub engine: Engine,
}

impl RawTriangle {
    fn resolve(&self) -> Option<Uplo> {
        match (self.lower, self.upper) {
            (_, true) => Some(Uplo::Upper),
            (true, _) => Some(Uplo::Lower),
            _ => None,
        }
    }
}

impl RawPrecision {
    /// Refuses a precision that the kernel cannot serve before any file is read at it.
    fn resolve(self, kernel: Option<&'static str>) -> Result<Precision> {
        let bits = optional(self.precision, |text| precision("--precision", text))?;
        if let Some(bits) = bits {
            check_reach(bits, kernel)?;
        }
        Ok(Precision { bits, input_bits: optional(self.input_precision, |text| precision("--input-precision", text))? })
    }
}

impl RawFactor {
    fn resolve(self) -> Result<Factor> {
        let engine = self.engine.resolve()?;
        Ok(Factor {
            a: self.a,
            uplo: self.triangle.resolve(),
            precision: self.precision.resolve(engine.kernel)?,
            tile_rows: optional(self.tile, tile_rows)?,
            log_det: self.log_det,
            trace: self.trace,
            engine,
        })
    }
}

impl RawCholesky {
    /// Judges what was typed.
    ///
    /// # Errors
    /// As [`super::Arguments::resolve`].
    pub(super) fn resolve(self) -> Result<Factoring> {
        Ok(Factoring { factor: self.factor.resolve()?, output: self.output.resolve()? })
    }
}

impl RawVerifyCholesky {
    /// Judges what was typed.
    ///
    /// # Errors
    /// As [`super::Arguments::resolve`].
    pub(super) fn resolve(self) -> Result<VerifyCholesky> {
        let engine = self.engine.resolve()?;
        let typed = RawPrecision { precision: self.precision, input_precision: self.input_precision };
        Ok(VerifyCholesky {
            a: self.a,
            l: self.l,
            uplo: self.triangle.resolve(),
            precision: typed.resolve(engine.kernel)?,
            seed: optional(self.seed, |text| parse_count("--seed", text))?,
            engine,
        })
    }
}

fn tile_rows(text: &str) -> Result<usize> {
    match size("--tile", text)? {
        0 => Err(Error::InvalidArgument("--tile: a tile needs at least 1 row".into())),
        rows => Ok(rows),
    }
}
