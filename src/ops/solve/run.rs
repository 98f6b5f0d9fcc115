//! Runs a solve: right-hand sides go in by bands, pass through the list of substitutions, and come out rounded.
//!
//! The same for one process, which has the whole factor, and for a rank that has some columns of the right-hand sides
//! while the rows of the factor are streamed: the differences are the source of a triangle's rows, and the ranks that
//! agree on it.

use crate::context::{Context, MemoryBudget, WorkspaceNeeds};
use crate::error::Result;
use crate::kernels::limbs;
use crate::math::float::{FloatRef, Head, round_integer};
use crate::matrix::{Matrix, MatrixView, MatrixViewMut, check_exponent};
use crate::ops::columns::each_column;
use crate::ops::exact_sum::ExactEntry;
use crate::ops::fixed_sum::{FixedSum, OwnFloat, Sign};
use crate::ops::product::block::moved;
use crate::ops::solve::band::{Band, Spaces};
use crate::ops::solve::cut::{TriangleCut, TrianglePieces};
use crate::ops::solve::fixed::FixedTriangle;
use crate::ops::solve::memory::{Bands, SolveMemory, UnsolvedColumns};
use crate::ops::solve::parts::Parts;
use crate::ops::solve::problem::{Method, Path};
use crate::ops::solve::triangle::Triangle;
use crate::site::{Site, Team};
use std::ops::Range;

/// A solve, prepared.
pub(crate) struct Solve<'a> {
    /// Its context and its memory, with a cut for each triangle.
    pub memory: SolveMemory,
    /// The ranks that take its steps together.
    pub team: &'a Team,
    /// The substitutions, in their order.
    pub steps: Vec<SolveStep<'a>>,
    /// Row `i` of the system is scaled by `2^-scale[i]`, and so is that of its unknowns.
    pub scale: Option<&'a [i64]>,
}

/// The right-hand sides of a solve.
pub(crate) struct Right<'a> {
    pub b: MatrixView<'a>,
    /// Scalar of `b`; `None` is 1.
    pub alpha: Option<OwnFloat>,
    /// Column of the call that is the first of `b`.
    pub first_column: usize,
    /// Whether the caller's right-hand sides and solution are the transposes.
    pub transposed: bool,
}

impl Solve<'_> {
    /// The bands in which `total` right-hand sides fit the memory limit, and the bytes that the call takes with them;
    /// releases kept memory if it would exceed the limit.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the smallest limit that suffices.
    pub fn bands(&self, total: usize) -> Result<(Bands, u64)> {
        if self.memory.ctx.memory_bytes().is_none() {
            let bands = Bands::widest(total);
            return Ok((bands, self.memory.unlimited_bytes(bands.columns)?));
        }
        let (bands, planned_bytes) = self.memory.plan(total)?;
        make_room(&self.memory.ctx, planned_bytes);
        Ok((bands, planned_bytes))
    }

    /// Solves for all columns of `right` into `solution`; returns the columns that exceed the range of every step,
    /// whose solutions are 0: none if the whole factor is available. Collective.
    ///
    /// # Errors
    /// The errors of [`crate::trsm()`], with rows and columns of the whole solution.
    pub fn run(&mut self, bands: Bands, right: &Right<'_>, solution: &mut MatrixViewMut<'_>) -> Result<Vec<usize>> {
        let ctx = self.memory.ctx.clone();
        let site = Site { ctx: &ctx, team: self.team };
        let count = site.largest(bands.count() as u64)?;
        let mut spaces = site.agreed(Spaces::take(&ctx))?;
        let mut outgrown = Vec::new();
        for index in 0..count as usize {
            let columns = bands.band(index);
            site.agreed(self.load(right, &columns, &mut spaces.w))?;
            let live = self.substitute(bands, right, &columns, &mut spaces)?;
            let gone = (0..columns.len()).filter(|col| !live.contains(col)).collect::<Vec<_>>();
            clear_columns(&mut spaces.w, &gone);
            outgrown.extend(gone.iter().map(|col| columns.start + col));
            let place = SolutionPlace { columns, transposed: right.transposed };
            let stored = self.store(&mut spaces.w, &place, solution.reborrow());
            site.agreed(stored.map_err(|error| moved(error, 0, right.first_column)))?;
        }
        spaces.give_back(&ctx);
        Ok(outgrown)
    }

    /// Fills `w` with a band of right-hand sides.
    fn load(&self, right: &Right<'_>, columns: &Range<usize>, w: &mut Matrix) -> Result<()> {
        let TriangleCut { order, working_bits, .. } = self.memory.cuts[0];
        w.reshape(order, columns.len(), working_bits)?;
        load(&self.memory.ctx, &right.b, columns.start, right.alpha.as_ref(), w)?;
        self.scale.map_or(Ok(()), |scale| unscale(&self.memory.ctx, w, scale))
    }

    /// Rounds a band of unknowns into the solution.
    fn store(&self, w: &mut Matrix, place: &SolutionPlace, solution: MatrixViewMut<'_>) -> Result<()> {
        if let Some(scale) = self.scale {
            unscale(&self.memory.ctx, w, scale)?;
        }
        store(&self.memory.ctx, w, place, solution)
    }

    /// All substitutions on a band; returns the columns that were solved.
    fn substitute(
        &mut self,
        bands: Bands,
        right: &Right<'_>,
        own: &Range<usize>,
        spaces: &mut Spaces,
    ) -> Result<Vec<usize>> {
        let (memory, team) = (&self.memory, self.team);
        let first_column = right.first_column + own.start;
        let Bands { columns, limit_bytes, .. } = bands;
        let transposed = right.transposed;
        let band = Band { memory, team, columns, limit_bytes, first_column, first_row: 0, transposed };
        let mut live = (0..own.len()).collect::<Vec<_>>();
        for step in &mut self.steps {
            match step {
                SolveStep::Triangle(solver) => {
                    let gone = solver.run(&band, live.clone(), spaces)?;
                    live.retain(|col| !gone.contains(col));
                }
                SolveStep::Diagonal(factors) => {
                    let done = multiply_rows(&memory.ctx, &mut spaces.w, factors);
                    band.site().agreed(done.map_err(|error| band.placed(error)))?;
                }
            }
        }
        Ok(live)
    }
}

/// Releases memory kept between calls that leaves no room for a call of `planned_bytes` bytes, held memory included.
pub(crate) fn make_room(ctx: &Context, planned_bytes: u64) {
    let needs = WorkspaceNeeds { planned_bytes, ..WorkspaceNeeds::default() };
    ctx.workspace().trim(MemoryBudget::new(ctx.memory_bytes()), &needs);
}

/// Zeros in some columns.
fn clear_columns(w: &mut Matrix, columns: &[usize]) {
    let (rows, width) = (w.rows(), w.limbs_per_element());
    let (heads, limbs) = w.parts_mut();
    for col in columns {
        heads[col * rows..(col + 1) * rows].fill(Head::ZERO.0);
        limbs[col * rows * width..(col + 1) * rows * width].fill(0);
    }
}

/// Fills `w` with `alpha b`, the columns of `b` from `first` on, each entry rounded once.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub(crate) fn load(
    ctx: &Context,
    b: &MatrixView<'_>,
    first: usize,
    alpha: Option<&OwnFloat>,
    w: &mut Matrix,
) -> Result<()> {
    let precision_bits = w.precision_bits();
    each_column(ctx, w, Vec::new, |space: &mut Vec<u64>, mut column| {
        for row in 0..b.rows() {
            let value = b.get(row, first + column.index);
            column.set(row, |limbs| round_scaled(value, alpha, precision_bits, space, limbs));
        }
        Ok(())
    })
}

/// `scalar * value`, rounded.
fn round_scaled(
    value: FloatRef<'_>,
    scalar: Option<&OwnFloat>,
    precision_bits: u32,
    space: &mut Vec<u64>,
    out: &mut [u64],
) -> Head {
    let entry = ExactEntry::from(value);
    let Some(scalar) = scalar else {
        return round_integer(entry.negative, entry.magnitude, entry.exponent, precision_bits, out);
    };
    let scalar = ExactEntry::from(scalar.get());
    space.resize(entry.magnitude.len() + scalar.magnitude.len(), 0);
    limbs::multiply_any(space, entry.magnitude, scalar.magnitude);
    let negative = entry.negative != scalar.negative;
    round_integer(negative, space, entry.exponent + scalar.exponent, precision_bits, out)
}

/// The place of a band of solutions in a result.
pub(crate) struct SolutionPlace {
    /// Columns of the solution that the band holds.
    pub columns: Range<usize>,
    /// Whether the result is the transpose of the solution.
    pub transposed: bool,
}

/// Rounds a band of solutions into the result.
///
/// # Errors
/// [`crate::Error::ExponentRange`] with the place in the result; [`crate::Error::Cancelled`].
pub(crate) fn store<'a>(
    ctx: &Context,
    w: &Matrix,
    place: &SolutionPlace,
    result: impl Into<MatrixViewMut<'a>>,
) -> Result<()> {
    let result = result.into();
    let precision_bits = result.precision_bits();
    let SolutionPlace { columns, transposed } = place;
    each_column(
        ctx,
        result,
        || (),
        |(), mut column| {
            let at = column.index;
            let rows = match (transposed, columns.contains(&at)) {
                (true, _) => columns.clone(),
                (false, true) => 0..w.rows(),
                (false, false) => return Ok(()),
            };
            for row in rows {
                let value = if *transposed { w.get(at, row - columns.start) } else { w.get(row, at - columns.start) };
                let entry = ExactEntry::from(value);
                column.set(row, |limbs| {
                    round_integer(entry.negative, entry.magnitude, entry.exponent, precision_bits, limbs)
                });
                check_exponent(column.get(row).head.exponent(), row, at)?;
            }
            Ok(())
        },
    )
}

/// Row `i` times `2^-exponents[i]`.
pub(crate) fn unscale(ctx: &Context, w: &mut Matrix, exponents: &[i64]) -> Result<()> {
    each_column(
        ctx,
        w,
        || (),
        |(), mut column| {
            column.shift(0, exponents);
            Ok(())
        },
    )
}

/// A substitution.
pub(crate) enum SolveStep<'a> {
    /// A lower or an upper triangle.
    Triangle(TriangleSolver<'a>),
    /// A diagonal, by its reciprocals.
    Diagonal(Vec<OwnFloat>),
}

impl SolveStep<'_> {
    /// The division of its triangle.
    pub fn cut(&self) -> Option<TriangleCut> {
        match self {
            SolveStep::Triangle(solver) => Some(solver.cut()),
            SolveStep::Diagonal(_) => None,
        }
    }
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
    /// [`crate::Error::ExponentRange`] with the place in the solution; [`crate::Error::MemoryLimit`];
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
fn multiply_rows(ctx: &Context, w: &mut Matrix, factors: &[OwnFloat]) -> Result<()> {
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
