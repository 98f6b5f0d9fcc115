//! The claim of a weighted Gram matrix, `P^T diag(d) P = X^T Y`, with operands and norms of its own.

use super::exact::{ColumnSize, UpperBound, column_size};
use super::{Bounds, Claim, ClaimedProduct, map_indices};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::product::combine::check_integers;
use rug::Float;

/// The claim for a weighted Gram matrix. The `n_i` are not the norms of the operands, so there is no exact comparison
/// with the squares of norms.
pub(super) const CLAIM: Claim =
    Claim { power: 0, unit: "2^(1-b) n_i n_j", row_unit: "2^(1-b) n_i sum_j n_j |x_j|", ..Claim::PRODUCT };

/// `X = diag(2^t) P` and `Y = diag(2^-t d) P`, exactly, where `4^t` is about `|d|`; with exact integers `t = 0`.
///
/// # Errors
/// [`Error::ShapeMismatch`], [`Error::NotInteger`]; [`Error::ExponentRange`] for numbers that no matrix holds.
pub(super) fn operands(
    operation: &'static str,
    p: MatrixView<'_>,
    d: MatrixView<'_>,
    exact_integers: bool,
) -> Result<[Matrix; 2]> {
    let (rows, cols) = (p.rows(), p.cols());
    let weights = if d.rows() == 1 { d.transposed() } else { d };
    if weights.rows() != rows || (weights.cols() != 1 && rows > 0) {
        return Err(Error::shape_mismatch(operation, (rows, 1), (d.rows(), d.cols())));
    }
    if exact_integers {
        check_integers(p)?;
        check_integers(weights)?;
    }
    let bits = p.precision_bits().saturating_add(d.precision_bits());
    let mut both = [Matrix::zeros(rows, cols, p.precision_bits())?, Matrix::zeros(rows, cols, bits)?];
    for row in 0..rows {
        let weight = weights.get(row, 0).to_float(weights.precision_bits());
        let shift = if exact_integers { 0 } else { weight.get_exp().unwrap_or(0).div_euclid(2) };
        for col in 0..cols {
            let entry = p.get(row, col).to_float(p.precision_bits());
            let product = Float::with_val(bits, &entry * &weight);
            let x = if weight.is_zero() { Float::new(2) } else { entry << shift };
            both[0].set_float(row, col, &x)?;
            both[1].set_float(row, col, &(product >> shift))?;
        }
    }
    Ok(both)
}

/// Bounds with `n_i^2 = ||x_i|| ||y_i||`, which is at least `sum_k |x_ki y_ki| = r_i^2`, and at most twice that.
pub(super) fn bounds(ctx: &Context, problem: &ClaimedProduct<'_>, precision_bits: u32) -> Bounds {
    let norm = |col: usize| {
        let norms = [problem.left, problem.right].map(|view| column_size(view, col).norm);
        norms[0].times(norms[1]).square_root()
    };
    let sizes = |view: MatrixView<'_>, power: i64| {
        map_indices(ctx, view.cols(), |col| {
            let norm = norm(col).times(UpperBound::power_of_two(power));
            ColumnSize { norm, ..column_size(view, col) }
        })
    };
    Bounds::with_sizes(problem, sizes(problem.left, 1), sizes(problem.right, 0), precision_bits)
}
