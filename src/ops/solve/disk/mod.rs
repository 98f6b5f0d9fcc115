//! Triangular solves and solves larger than memory: from binary files to a binary file.
//!
//! The triangle is streamed once for each substitution of a band of right-hand sides; the right-hand sides come band by
//! band from their file, and panels of solutions go to a storage directory, so that a run that was ended continues from
//! them. The bits are those of a solve in memory, whose loop and tiles are used. Source: docs/OUT_OF_CORE.md.

mod blocks;
mod factored;
mod needs;
mod norms;
mod rows;
mod solver;
mod system;
mod triangular;

pub use factored::{solve, solve_over_ranks};
pub(crate) use triangular::{TriangleOptions, solve_triangle};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::MatrixFileShape;
use crate::ops::disk::{DiskUse, ResultCut, write_zeros};
use crate::ops::factor::disk::OutOfCoreReport;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::kernel_name;
use crate::ops::solve::memory::LEAST_COLUMNS;
use crate::ops::solve::path::{self, Method};
use crate::ops::solve::problem::{SolveBits, Substitution, SystemShape};
use crate::options::setters;
use crate::site::Site;
use crate::storage::Caching;
use crate::tile::RankGrid;
use serde::Serialize;
use std::path::Path;

/// Options of an out-of-core solve.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OutOfCoreSolveOptions {
    /// Whether only the lower triangle of a symmetric matrix stored with all entries is used; by default both triangles
    /// are read and must be equal. Triangular solves have their own option for the triangle.
    pub lower: bool,
    /// Rows of a tile of the factorisation; by default chosen from the order.
    pub tile_rows: Option<usize>,
    /// Whether the system's cache is used for the files of the storage directory.
    pub caching: Caching,
    /// Rows and columns of the grid of ranks that factor, if there are several; by default nearly square.
    pub grid: Option<RankGrid>,
}

setters! { new OutOfCoreSolveOptions {
    lower: bool,
    tile_rows: impl Into<Option<usize>>,
    caching: Caching,
    grid: impl Into<Option<RankGrid>>,
} }

/// The files of a solve, and the directory for finished parts.
#[derive(Clone, Copy, Debug)]
pub struct SolvePaths<'a> {
    /// The file of the matrix or triangle.
    pub matrix: &'a Path,
    /// The right-hand sides.
    pub right: &'a Path,
    /// The solution.
    pub solution: &'a Path,
    /// The directory.
    pub storage: &'a Path,
}

/// The report of an out-of-core solve.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreSolveReport {
    /// `trsm` or `solve`.
    pub operation: &'static str,
    /// Rows of the triangle, or of the matrix.
    pub order: usize,
    /// Right-hand sides.
    pub columns: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Working precision in bits of right-hand sides and unknowns.
    pub working_bits: u32,
    /// Accuracy of the residual.
    pub accuracy: Accuracy,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Worker threads of all ranks together.
    pub threads: usize,
    /// Ranks.
    pub ranks: usize,
    /// The largest number of right-hand sides that are solved together: the triangle is read once for each band of this
    /// width and each substitution, and again for columns that are solved with more bits.
    pub band_columns: usize,
    /// Bands of right-hand sides that were solved, by all ranks.
    pub bands: usize,
    /// Bytes that the plan allows for one rank.
    pub planned_bytes: u64,
    /// Panels of eight columns found in the directory of the solution, and bytes read and written, by all ranks.
    #[serde(flatten)]
    pub disk: DiskUse,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Seconds of the passes over the files before the solve.
    pub scan_seconds: f64,
    /// Seconds of the solve.
    pub solve_seconds: f64,
    /// Seconds of writing the solution.
    pub store_seconds: f64,
    /// The report of the factorisation at the start of the call, unless a finished factor was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factorisation: Option<OutOfCoreReport>,
}

impl OutOfCoreSolveReport {
    /// The report of a call about to begin.
    fn new(ctx: &Context, operation: &'static str, shape: SystemShape, bits: SolveBits, method: Method) -> Self {
        OutOfCoreSolveReport {
            operation,
            order: shape.order,
            columns: shape.columns,
            precision_bits: bits.precision,
            working_bits: bits.working,
            accuracy: method.accuracy,
            kernel: kernel_name(ctx, method, shape.order, bits.working),
            threads: ctx.threads(),
            ranks: 1,
            ..OutOfCoreSolveReport::default()
        }
    }
}

impl SystemShape {
    /// The panels of a solution: columns of it, as many as the narrowest band has.
    fn panels(self) -> ResultCut {
        let SystemShape { order: rows, columns: cols } = self;
        ResultCut { rows, cols, block_rows: rows.max(1), block_cols: LEAST_COLUMNS, is_triangle: false }
    }

    /// Writes a solution without entries. Collective.
    fn write_empty(self, site: Site<'_>, path: &Path, precision_bits: u32) -> Result<()> {
        let shape = MatrixFileShape { rows: self.order, cols: self.columns, precision_bits, symmetric: false };
        write_zeros(site, path, shape)
    }

    /// The method of a solve; one accurate by norms may be done by parts.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    fn method(self, operation: &str, substitutions: &[Substitution], accuracy: Accuracy) -> Result<Method> {
        let SystemShape { order, columns } = self;
        let method = Method::choose(substitutions, order, columns, accuracy);
        if method.path != path::Path::Parts || method.by_parts_of_files() || self.is_empty() {
            return Ok(method);
        }
        Err(Error::InvalidArgument(format!(
            "{operation} out of core with entrywise accuracy needs at least 8 right-hand sides of at least 8 rows, but \
             here are {columns} of {order} rows: choose accuracy by norms, or solve in memory"
        )))
    }
}
