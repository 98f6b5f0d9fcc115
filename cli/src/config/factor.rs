//! Factorisations and solves as meant: `cholesky`, `solve`, `inverse`, `trsm` and `verify cholesky`.

use super::{Output, Precision, op, optional, precision, size};
use crate::args::{
    RawCholesky, RawFactor, RawInverse, RawPrecision, RawRanks, RawSolve, RawTriangle, RawTrsm, RawVerifyCholesky,
};
use std::path::PathBuf;
use sunzi::error::{Error, Result};
use sunzi::matrix::{Diag, Op, Side, Uplo};
use sunzi::runtime::Policy;
use sunzi::runtime::protocol::{DeliveryKind, Termination};
use sunzi::tile::RankGrid;
use sunzi_lab::engine::{Engine, check_reach};
use sunzi_lab::units::parse_count;

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
    /// Whether the condition number is estimated and printed.
    pub condition: bool,
    /// Where the trace goes.
    pub trace: Option<PathBuf>,
    /// How it runs on several ranks.
    pub ranks: RankChoices,
    /// The engine.
    pub engine: Engine,
}

/// Choices that several ranks have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankChoices {
    /// Rows and columns of ranks.
    pub grid: Option<RankGrid>,
    /// Who sends a tile to whom.
    pub delivery: Option<DeliveryKind>,
    /// Which tile is worked on next.
    pub policy: Option<Policy>,
    /// How a rank ends.
    pub termination: Option<Termination>,
    /// Room for tiles of other ranks.
    pub slots: Option<usize>,
    /// Where the picture goes.
    pub plot: Option<PathBuf>,
}

/// What is made of a factor.
#[derive(Clone, Debug)]
pub enum Task {
    /// The factor itself.
    Cholesky,
    /// The solution of `A X = B`.
    Solve {
        /// The file of B.
        b: PathBuf,
        /// Precision of the factor, where the solution is refined from it.
        refine_from_bits: Option<u32>,
    },
    /// The inverse.
    Inverse,
}

/// A factorisation to compute, and what follows from it.
#[derive(Clone, Debug)]
pub struct Factoring {
    /// What is factored and how.
    pub factor: Factor,
    /// What is made of it.
    pub task: Task,
    /// Where the result goes.
    pub output: Output,
}

/// A triangular system to solve.
#[derive(Clone, Debug)]
pub struct Trsm {
    /// The file of T.
    pub t: PathBuf,
    /// The file of B.
    pub b: PathBuf,
    /// The side on which T stands.
    pub side: Side,
    /// The triangle of T that is read.
    pub uplo: Uplo,
    /// How T is used.
    pub op: Op,
    /// What its diagonal is.
    pub diag: Diag,
    /// Factor of B, as typed.
    pub alpha: Option<String>,
    /// Its precision.
    pub precision: Precision,
    /// The engine.
    pub engine: Engine,
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
            condition: self.condition,
            trace: self.trace,
            ranks: self.ranks.resolve()?,
            engine,
        })
    }
}

impl RawRanks {
    fn resolve(self) -> Result<RankChoices> {
        let termination = |text: &str| {
            choice("--termination", text, [("lists", Termination::Lists), ("all_to_all", Termination::AllToAll)])
        };
        Ok(RankChoices {
            grid: optional(self.grid, grid)?,
            delivery: optional(self.delivery, DeliveryKind::by_name)?,
            policy: optional(self.policy, Policy::by_name)?,
            termination: optional(self.termination, termination)?,
            slots: optional(self.slots, |text| size("--slots", text))?,
            plot: self.plot,
        })
    }
}

/// Rows and columns of ranks, each at least 1.
fn grid(text: &str) -> Result<RankGrid> {
    let (rows, cols) = text.split_once(['x', 'X']).unwrap_or((text, ""));
    match (size("--grid", rows)?, size("--grid", cols)?) {
        (rows @ 1.., cols @ 1..) => Ok(RankGrid { rows, cols }),
        _ => Err(Error::InvalidArgument(format!("--grid {text}: rows and columns of at least 1 rank"))),
    }
}

impl RawCholesky {
    /// Judges what was typed.
    ///
    /// # Errors
    /// As [`super::Arguments::resolve`].
    pub(super) fn resolve(self) -> Result<Factoring> {
        Ok(Factoring { factor: self.factor.resolve()?, task: Task::Cholesky, output: self.output.resolve()? })
    }
}

impl RawSolve {
    /// Judges what was typed.
    ///
    /// # Errors
    /// As [`super::Arguments::resolve`].
    pub(super) fn resolve(self) -> Result<Factoring> {
        let refine_from_bits = optional(self.refine_from, |text| precision("--refine-from", text))?;
        let task = Task::Solve { b: self.b, refine_from_bits };
        Ok(Factoring { factor: self.factor.resolve()?, task, output: self.output.resolve()? })
    }
}

impl RawInverse {
    /// Judges what was typed.
    ///
    /// # Errors
    /// As [`super::Arguments::resolve`].
    pub(super) fn resolve(self) -> Result<Factoring> {
        Ok(Factoring { factor: self.factor.resolve()?, task: Task::Inverse, output: self.output.resolve()? })
    }
}

impl RawTrsm {
    /// Judges what was typed.
    ///
    /// # Errors
    /// As [`super::Arguments::resolve`].
    pub(super) fn resolve(self) -> Result<Trsm> {
        let engine = self.engine.resolve()?;
        Ok(Trsm {
            t: self.t,
            b: self.b,
            side: choice("--side", &self.side, [("left", Side::Left), ("right", Side::Right)])?,
            uplo: choice("--uplo", &self.uplo, [("lower", Uplo::Lower), ("upper", Uplo::Upper)])?,
            op: op(self.transpose),
            diag: if self.unit { Diag::Unit } else { Diag::NonUnit },
            alpha: self.alpha,
            precision: self.precision.resolve(engine.kernel)?,
            engine,
            output: self.output.resolve()?,
        })
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

/// Rows of a tile, at least 1.
pub(super) fn tile_rows(text: &str) -> Result<usize> {
    match size("--tile", text)? {
        0 => Err(Error::InvalidArgument("--tile: a tile needs at least 1 row".into())),
        rows => Ok(rows),
    }
}

/// One of two words.
fn choice<T>(what: &str, text: &str, known: [(&str, T); 2]) -> Result<T> {
    let names = format!("{} or {}", known[0].0, known[1].0);
    let found = known.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| value).ok_or_else(|| Error::InvalidArgument(format!("{what}: '{text}' is not {names}")))
}
