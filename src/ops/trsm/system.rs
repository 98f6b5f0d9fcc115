//! One call of the solver: the operands in one form, right sides in, solutions out.
//!
//! Every side, triangle and transpose becomes `T X = alpha B` with a lower or an upper `T`.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::limbs;
use crate::math::bound::{guard_bits, trsm_guard_bits};
use crate::math::float::{FloatRef, Head, round_integer};
use crate::matrix::{MAXIMUM_EXPONENT, Matrix, MatrixView, Op, Side, Uplo};
use crate::ops::columns::each_column;
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::block::{maximum_working_bits, moved};
use crate::ops::product::problem::fits;
use crate::ops::product::sum::ExactEntry;
use crate::ops::trsm::Call;
use crate::ops::trsm::bands::Bands;
use crate::ops::trsm::layout::Layout;
use crate::ops::trsm::solver::Solver;
use crate::ops::trsm::spaces::Spaces;
use crate::ops::trsm::triangle::Triangle;
use rug::Float;
use std::ops::Range;

/// Solves; see [`crate::trsm()`].
///
/// # Errors
/// Those of [`crate::trsm()`].
pub(super) fn solve(ctx: &Context, call: &Call<'_>, result: &mut Matrix) -> Result<()> {
    let Call { t, b, precision_bits, options, among, held_bytes } = *call;
    let flipped = options.side == Side::Right;
    // X op(T) = B is op(T)^T X^T = B^T.
    let turned = (options.op == Op::Transpose) != flipped;
    let (t, b) = (if turned { t.transposed() } else { t }, if flipped { b.transposed() } else { b });
    let lower = (options.uplo == Uplo::Lower) != turned;
    check_shapes(options.side, &t, &b)?;
    let alpha = options.alpha.map(check_factor).transpose()?;
    let working_bits = working_bits(ctx, precision_bits, t.rows())?;
    let triangle = Triangle::new(t, if lower { Uplo::Lower } else { Uplo::Upper }, options.diag)?;
    let (rows, cols) = if flipped { (b.cols(), b.rows()) } else { (b.rows(), b.cols()) };
    if !fits(result, (rows, cols), precision_bits) {
        *result = Matrix::zeros(0, 0, 2)?; // give the old memory back before asking for the new
        *result = Matrix::zeros(rows, cols, precision_bits)?;
    }
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    let layout = Layout { order: b.rows(), working_bits, columns: among.unwrap_or(b.cols()) };
    let bands = Bands::plan(ctx, b.cols(), &[layout], held_bytes.saturating_add(result.bytes()))?;
    let solver = Solver::new(triangle, layout);
    let system = System { b, alpha, flipped, solver };
    let mut spaces = Spaces::take(ctx)?;
    for columns in bands.iter() {
        spaces.w.reshape(b.rows(), columns.len(), working_bits)?;
        let target = Target { columns, flipped };
        system.solve(ctx, &mut spaces, bands.held_bytes, (&target, result))?;
    }
    spaces.give_back(ctx);
    Ok(())
}

fn check_shapes(side: Side, t: &MatrixView<'_>, b: &MatrixView<'_>) -> Result<()> {
    if t.rows() == t.cols() && t.cols() == b.rows() {
        return Ok(());
    }
    let mismatch = |left: (usize, usize), right: (usize, usize)| Error::ShapeMismatch {
        operation: "trsm",
        left_rows: left.0,
        left_cols: left.1,
        right_rows: right.0,
        right_cols: right.1,
    };
    let (t, b) = ((t.rows(), t.cols()), (b.rows(), b.cols()));
    Err(match side {
        Side::Left => mismatch(t, b),
        Side::Right => mismatch((b.1, b.0), (t.1, t.0)),
    })
}

fn check_factor(alpha: &Float) -> Result<OwnFloat> {
    if alpha.is_finite() {
        return Ok(OwnFloat::new(alpha));
    }
    Err(Error::InvalidArgument(format!("alpha is {alpha}: it must be finite")))
}

/// The working precision for results of `precision_bits`.
///
/// # Errors
/// [`Error::Precision`] where the kernel has not enough primes.
pub(crate) fn working_bits(ctx: &Context, precision_bits: u32, order: usize) -> Result<u32> {
    let guards = trsm_guard_bits(order) + guard_bits(order);
    let maximum_bits = maximum_working_bits(ctx).saturating_sub(guards);
    if !(2..=maximum_bits).contains(&precision_bits) {
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: maximum_bits.into() });
    }
    Ok(precision_bits + trsm_guard_bits(order))
}

struct System<'a> {
    b: MatrixView<'a>,
    alpha: Option<OwnFloat>,
    /// Whether the caller's matrices are the transposes of `b` and of the solution.
    flipped: bool,
    solver: Solver<'a>,
}

impl System<'_> {
    /// Solves for the right sides of the target.
    fn solve(
        &self,
        ctx: &Context,
        spaces: &mut Spaces,
        held_bytes: u64,
        (target, result): (&Target, &mut Matrix),
    ) -> Result<()> {
        let first = target.columns.start;
        load(ctx, (&self.b, first), self.alpha.as_ref(), &mut spaces.w)?;
        let place = |error| self.caller_place(moved(error, 0, first));
        self.solver.run(ctx, spaces, held_bytes).map_err(place)?;
        store(ctx, &spaces.w, target, result)
    }

    /// An error's place in the caller's right side.
    fn caller_place(&self, error: Error) -> Error {
        match error {
            Error::ExponentRange { row, column, exponent, limit } if self.flipped => {
                Error::ExponentRange { row: column, column: row, exponent, limit }
            }
            other => other,
        }
    }
}

/// Fills `w` with `alpha b`, the columns of `b` from `first` on, each entry rounded once.
///
/// # Errors
/// [`Error::Cancelled`].
pub(crate) fn load(
    ctx: &Context,
    (b, first): (&MatrixView<'_>, usize),
    alpha: Option<&OwnFloat>,
    w: &mut Matrix,
) -> Result<()> {
    let precision_bits = w.precision_bits();
    each_column(ctx, w, Vec::new, |space: &mut Vec<u64>, mut column| {
        for row in 0..b.rows() {
            let value = b.get(row, first + column.index);
            column.set(row, |limbs| round_scaled(value, alpha, precision_bits, (space, limbs)));
        }
        Ok(())
    })
}

/// `factor * value`, rounded.
fn round_scaled(
    value: FloatRef<'_>,
    factor: Option<&OwnFloat>,
    precision_bits: u32,
    (space, out): (&mut Vec<u64>, &mut [u64]),
) -> Head {
    let entry = ExactEntry::from(value);
    let Some(factor) = factor else {
        return round_integer(entry.negative, entry.magnitude, entry.exponent, precision_bits, out);
    };
    let factor = ExactEntry::from(factor.get());
    space.resize(entry.magnitude.len() + factor.magnitude.len(), 0);
    limbs::multiply_any(space, entry.magnitude, factor.magnitude);
    let negative = entry.negative != factor.negative;
    round_integer(negative, space, entry.exponent + factor.exponent, precision_bits, out)
}

/// Where a band of solutions goes in a result.
pub(crate) struct Target {
    /// Columns of the solution that the band holds.
    pub columns: Range<usize>,
    /// Whether the result is the transpose of the solution.
    pub flipped: bool,
}

/// Rounds a band of solutions into the result.
///
/// # Errors
/// [`Error::ExponentRange`] with the place in the result; [`Error::Cancelled`].
pub(crate) fn store(ctx: &Context, w: &Matrix, target: &Target, result: &mut Matrix) -> Result<()> {
    let precision_bits = result.precision_bits();
    let Target { columns, flipped } = target;
    each_column(
        ctx,
        result,
        || (),
        |(), mut column| {
            let at = column.index;
            let rows = match (flipped, columns.contains(&at)) {
                (true, _) => columns.clone(),
                (false, true) => 0..w.rows(),
                (false, false) => return Ok(()),
            };
            for row in rows {
                let value = if *flipped { w.get(at, row - columns.start) } else { w.get(row, at - columns.start) };
                let entry = ExactEntry::from(value);
                column.set(row, |limbs| {
                    round_integer(entry.negative, entry.magnitude, entry.exponent, precision_bits, limbs)
                });
                let exponent = column.get(row).head.exponent();
                if exponent.abs() > MAXIMUM_EXPONENT {
                    return Err(Error::ExponentRange { row, column: at, exponent, limit: MAXIMUM_EXPONENT });
                }
            }
            Ok(())
        },
    )
}
