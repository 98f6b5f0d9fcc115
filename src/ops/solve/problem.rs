//! The problem of a solve: a list of substitutions, its shape, its bits, and its method.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{cholesky_solve_guard_bits, guard_bits, ldlt_solve_guard_bits, trsm_guard_bits};
use crate::matrix::Matrix;
use crate::ops::product::block::maximum_working_bits;
use crate::ops::product::problem::Accuracy;
use serde::Serialize;

/// One step of a solve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Substitution {
    /// `L X = B`, from the first row to the last.
    Lower,
    /// `D X = B`.
    Diagonal,
    /// `U X = B`, from the last row to the first.
    Upper,
}

/// `L L^T X = B`.
pub(crate) const CHOLESKY: &[Substitution] = &[Substitution::Lower, Substitution::Upper];

/// `L D L^T X = B`.
pub(crate) const LDLT: &[Substitution] = &[Substitution::Lower, Substitution::Diagonal, Substitution::Upper];

/// `L X = B`.
pub(crate) const LOWER: &[Substitution] = &[Substitution::Lower];

/// `U X = B`.
pub(crate) const UPPER: &[Substitution] = &[Substitution::Upper];

/// The shape of a linear system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SystemShape {
    /// Rows and columns of the matrix.
    pub order: usize,
    /// Right-hand sides.
    pub columns: usize,
}

impl SystemShape {
    /// Whether there are no unknowns.
    pub fn is_empty(self) -> bool {
        self.order == 0 || self.columns == 0
    }

    /// Bytes of right-hand sides or of a solution, at `precision_bits` bits.
    pub fn right_bytes(self, precision_bits: u32) -> u64 {
        Matrix::bytes_for(self.order, self.columns, precision_bits)
    }
}

/// Bits of the numbers of a solve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SolveBits {
    /// The requested precision of the solution.
    pub precision: u32,
    /// The precision of right-hand sides and unknowns during the solve.
    pub working: u32,
}

/// Precisions of the operands and the result of a triangular solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrsmBits {
    /// Bits of the entries of the triangle.
    pub triangle: u32,
    /// Bits of the entries of the right-hand sides.
    pub right: u32,
    /// Bits of the entries of the solution.
    pub solution: u32,
}

/// The working precision of a solve for results of `precision_bits`, with `guard` guard bits.
///
/// # Errors
/// [`Error::Precision`] where no kernel that the context may choose has enough primes.
pub(crate) fn working_bits(ctx: &Context, precision_bits: u32, guard: u32, order: usize) -> Result<u32> {
    let maximum_bits = maximum_working_bits(ctx).saturating_sub(guard + guard_bits(order));
    if !(2..=maximum_bits).contains(&precision_bits) {
        return Err(Error::precision(precision_bits, maximum_bits));
    }
    Ok(precision_bits + guard)
}

/// The bits of a solve by `substitutions`.
///
/// # Errors
/// As [`working_bits`].
pub(crate) fn solve_bits(
    ctx: &Context,
    substitutions: &[Substitution],
    precision_bits: u32,
    order: usize,
) -> Result<SolveBits> {
    let guard_bits = match substitutions {
        CHOLESKY => cholesky_solve_guard_bits(order),
        LDLT => ldlt_solve_guard_bits(order),
        _ => trsm_guard_bits(order),
    };
    Ok(SolveBits { precision: precision_bits, working: working_bits(ctx, precision_bits, guard_bits, order)? })
}

/// Most right-hand sides that are solved for one by one: the residues of the factor would cost more.
const DOTS_COLUMNS: usize = 3;

/// From this many right-hand sides on, and for triangles larger than a block, tiles cost less than parts.
const TILE_COLUMNS: usize = 8;

/// From this many rows on tiles cost less than sums scalar by scalar, where accuracy is entry by entry. By norms the
/// bits of earlier versions are kept: there the tiles begin above a block.
const ENTRYWISE_TILE_ROWS: usize = 8;

/// Rows of the blocks that are solved scalar by scalar.
pub(crate) const SCALAR_ROWS: usize = 16;

/// The method of a solve, and the accuracy promised for the residual.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    pub path: Path,
    pub accuracy: Accuracy,
}

impl Method {
    /// The method of a solve by `substitutions` with a factor of `order` rows, for `total_columns` right-hand sides in
    /// the whole call.
    pub fn choose(substitutions: &[Substitution], order: usize, total_columns: usize, accuracy: Accuracy) -> Method {
        let path = match (Path::choose(substitutions, order, total_columns), accuracy) {
            // Sums below one exponent for all unknowns lose small ones.
            (Path::Dots, Accuracy::Entrywise) => Path::Sums,
            (Path::Parts, Accuracy::Entrywise) if total_columns >= TILE_COLUMNS && order >= ENTRYWISE_TILE_ROWS => {
                Path::Tiles
            }
            (path, _) => path,
        };
        Method { path, accuracy }
    }

    /// Whether columns may be solved by parts where the triangle is in a file: entry by entry the bits of a product are
    /// chosen from all of its block.
    pub fn by_parts_of_files(&self) -> bool {
        self.accuracy == Accuracy::Norm
    }

    /// Unknowns by that path, accurate by norms.
    pub fn by_norms(path: Path) -> Method {
        Method { path, accuracy: Accuracy::Norm }
    }
}

/// The algorithm of a solve; it determines the bits of the solution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// One right-hand side after the other, with exact dot products of fixed-point digits.
    Dots,
    /// Recursive splitting of the triangle: products for the blocks off the diagonal, substitution with scalars within
    /// the blocks on it.
    #[default]
    Parts,
    /// One right-hand side after the other; the sum of each row is formed digit by digit, from its largest term
    /// downwards.
    Sums,
    /// In fixed point on tiles of residues; columns that exceed the range of fixed point are solved by recursive
    /// splitting.
    Tiles,
}

impl Path {
    /// The path of a solve by `substitutions` with a factor of `order` rows, for `total_columns` right-hand sides in
    /// the whole call.
    pub(crate) fn choose(substitutions: &[Substitution], order: usize, total_columns: usize) -> Path {
        match total_columns {
            1..=DOTS_COLUMNS if substitutions == CHOLESKY => Path::Dots,
            TILE_COLUMNS.. if order > SCALAR_ROWS => Path::Tiles,
            _ => Path::Parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_entry_by_entry_takes_tiles_from_fewer_rows_on() {
        let path =
            |substitutions, order, columns| Method::choose(substitutions, order, columns, Accuracy::Entrywise).path;
        for substitutions in [LOWER, CHOLESKY, LDLT] {
            for (columns, few) in [(1, Path::Sums), (3, Path::Sums), (4, Path::Parts), (7, Path::Parts)] {
                let few = if substitutions == CHOLESKY { few } else { Path::Parts };
                assert!([1, 8, 17, 1000].iter().all(|&order| path(substitutions, order, columns) == few));
            }
            let paths = [1, 7, 8, 16, 17].map(|order| path(substitutions, order, 8));
            assert_eq!(paths, [Path::Parts, Path::Parts, Path::Tiles, Path::Tiles, Path::Tiles]);
        }
    }

    #[test]
    fn the_path_depends_on_substitutions_order_and_columns_alone() {
        let path = |substitutions, order, columns| Path::choose(substitutions, order, columns);
        for order in [1, 16, 17, 1000] {
            let many = if order > 16 { Path::Tiles } else { Path::Parts };
            for (columns, alone, cholesky) in [(0, Path::Parts, Path::Parts), (1, Path::Parts, Path::Dots)] {
                assert_eq!((path(LOWER, order, columns), path(CHOLESKY, order, columns)), (alone, cholesky));
                assert_eq!(path(LDLT, order, columns), Path::Parts);
            }
            assert_eq!((path(CHOLESKY, order, 3), path(CHOLESKY, order, 4)), (Path::Dots, Path::Parts));
            for substitutions in [LOWER, CHOLESKY, LDLT] {
                assert_eq!(path(substitutions, order, 7), Path::Parts);
                assert_eq!((path(substitutions, order, 8), path(substitutions, order, 5000)), (many, many));
            }
        }
    }
}
