//! One substitution of a solve, prepared: a triangle, solved in fixed point or by parts, or a diagonal.
//!
//! The result of a column depends only on the triangle, the precision, the column and the path.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, check_exponent};
use crate::ops::columns::each_column;
use crate::ops::fixed_sum::{FixedSum, OwnFloat, Sign};
use crate::ops::solve::band::Band;
use crate::ops::solve::cut::{TriangleCut, TrianglePieces};
use crate::ops::solve::fixed::FixedTriangle;
use crate::ops::solve::memory::UnsolvedColumns;
use crate::ops::solve::parts::Parts;
use crate::ops::solve::path::{Method, Path};
use crate::ops::solve::spaces::Spaces;
use crate::ops::solve::triangle::Triangle;

/// A substitution.
pub(crate) enum SolveStep<'a> {
    /// A lower or an upper triangle.
    Triangle(TriangleSolver<'a>),
    /// A diagonal, by its reciprocals.
    Diagonal(Vec<OwnFloat>),
}

/// A triangle prepared for solves at one working precision.
pub(crate) struct TriangleSolver<'a> {
    cut: TriangleCut,
    /// The solve in fixed point.
    fixed: Option<FixedTriangle<'a>>,
    /// Solves for the remaining columns; without it they stay unsolved.
    parts: Option<Parts<'a>>,
}

impl<'a> TriangleSolver<'a> {
    /// Prepares a triangle in memory.
    pub fn new(triangle: Triangle<'a>, working_bits: u32, method: Method) -> TriangleSolver<'a> {
        let Method { path, accuracy } = method;
        let fixed = (path == Path::Tiles).then(|| FixedTriangle::new(&triangle, working_bits, accuracy));
        let first_try_bits = fixed.as_ref().and_then(|fixed| fixed.tries().next());
        let pieces = TrianglePieces::in_memory(accuracy);
        let cut = TriangleCut { order: triangle.order(), working_bits, first_try_bits, accuracy, pieces };
        let (uplo, diag) = triangle.kind();
        TriangleSolver { cut, fixed, parts: Some(Parts { blocks: Box::new(triangle.view()), uplo, diag, cut }) }
    }

    /// A triangle whose rows or blocks come from elsewhere, in fixed point, by parts, or both.
    pub fn of_sources(
        cut: TriangleCut,
        fixed: Option<FixedTriangle<'a>>,
        parts: Option<Parts<'a>>,
    ) -> TriangleSolver<'a> {
        TriangleSolver { cut, fixed, parts }
    }

    /// The cut that its memory depends on.
    pub fn cut(&self) -> TriangleCut {
        self.cut
    }

    /// Replaces the right-hand sides `live` in `spaces.w`, of the working precision, by the solutions; returns the
    /// columns that exceed the range of every try, unchanged. Collective.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with a place in the call; [`crate::Error::MemoryLimit`];
    /// [`crate::Error::Cancelled`]; [`crate::Error::SelfCheck`]; [`crate::Error::OutOfMemory`]; the errors of the rows.
    pub fn run(&mut self, band: &Band<'_>, live: Vec<usize>, spaces: &mut Spaces) -> Result<Vec<usize>> {
        let left = match &mut self.fixed {
            Some(fixed) => fixed.run(band, &self.cut, live, spaces)?,
            None => live,
        };
        match (&mut self.parts, band.memory.left) {
            (None, _) => Ok(left),
            (Some(parts), UnsolvedColumns::SharedParts(_)) => {
                parts.run_shared(band, &left, spaces).map(|()| Vec::new())
            }
            (Some(parts), _) => parts.run(band, left, spaces).map(|()| Vec::new()),
        }
    }
}

/// Row `i` times `factors[i]`, each entry rounded once.
///
/// # Errors
/// [`crate::Error::ExponentRange`] with the place in `w`.
pub(crate) fn multiply_rows(ctx: &Context, w: &mut Matrix, factors: &[OwnFloat]) -> Result<()> {
    let precision_bits = w.precision_bits();
    each_column(
        ctx,
        w,
        || FixedSum::new(precision_bits),
        |sum, mut column| {
            for (row, factor) in factors.iter().enumerate() {
                sum.set(column.get(row), std::iter::empty(), Sign::Plus);
                column.set(row, |limbs| sum.round_product(factor, limbs));
                check_exponent(column.get(row).head.exponent(), row, column.index)?;
            }
            Ok(())
        },
    )
}
