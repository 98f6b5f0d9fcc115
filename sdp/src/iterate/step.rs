//! How far a direction can be followed until a block is no longer positive definite.
//!
//! `M + t dM` is positive definite while `t lambda > -1`, with `lambda` the smallest eigenvalue of `L^-1 dM L^-T`,
//! `M = L L^T`. The library encloses it to a few bits, and the matrix is formed with just enough bits for these, given
//! the sizes of `L^-1` and `dM`, which are estimated for Y. The Cholesky factorisations of the next iteration, at full
//! precision, prove that the new point is inside, whatever the error of an estimate.

use crate::block::Block;
use crate::calls::{extreme_eigenvalue, gemm_with, spmm, trsm_with, trsv};
use crate::iterate::memory::IterationStep;
use crate::iterate::point::{Cone, Point};
use crate::iterate::residuals::Residuals;
use crate::iterate::side::Side;
use crate::iterate::system::SystemPoint;
use crate::numbers::is_zero;
use crate::numbers::{Arithmetic, rounded};
use crate::workers::TaskBytes;
use rug::Float;
use sunzi::TrsmOptions;
use sunzi::sparse::SparseMatrix;
use sunzi::{Accuracy, Error, GemmOptions, Head, Matrix, Op, Result, Side as Hand, Symmetric};

/// Bits to which eigenvalues are enclosed.
const EIGENVALUE_BITS: u32 = 16;

/// Bits of the matrix whose eigenvalue is computed.
const MATRIX_BITS: u32 = 128;

/// Bits by which a matrix lies above its errors: those of its eigenvalue, and a few for sums and roundings.
const FORMED_BITS: i64 = EIGENVALUE_BITS as i64 + 8;

/// Bits more where the size of `L^-1` is estimated.
const ESTIMATE_BITS: i64 = 16;

/// The smallest eigenvalues of `L_X^-1 dX L_X^-T` and of `L_Y^-1 dY L_Y^-T`, bounded from below, up to the contribution
/// of the residual of X where it is left out of dX: at most `2^-24`.
pub struct Eigenvalues {
    /// Eigenvalue of the primal side.
    pub primal: Float,
    /// Eigenvalue of the dual side.
    pub dual: Float,
}

impl Eigenvalues {
    /// The eigenvalues of a direction, of all blocks of the program, at a point with these residuals. Collective.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn new(place: &SystemPoint<'_>, residuals: &Residuals, direction: &Point) -> Result<Eigenvalues> {
        let SystemPoint { site, point, factors } = *place;
        let (cones, bits) = (site.cones, site.bits);
        let tasks = (0..cones.len()).flat_map(|at| [(at, Side::Primal), (at, Side::Dual)]).collect::<Vec<_>>();
        let cost = |&(at, _): &(usize, Side)| cones[at].shape.cost();
        let bytes = |&(at, side): &(usize, Side)| {
            site.crew.ledger().map_or_else(TaskBytes::default, |ledger| ledger.eigenvalue(at, side))
        };
        let found = site.at(IterationStep::Eigenvalues).workers.map(&tasks, (cost, bytes), |ctx, &(at, side)| {
            let k = Arithmetic { ctx, bits };
            match side {
                Side::Primal => smallest(k, &point.primal[at], &direction.primal[at], |change| {
                    let inverse = factors[at].x_lower_inverse.as_ref().ok_or_else(no_factor)?;
                    let image = Image { place, at, rest: &residuals.primal[at] };
                    image.congruence(k, inverse, change)
                }),
                Side::Dual => smallest(k, &point.dual[at], &direction.dual[at], |change| {
                    let lower = factors[at].y_lower.as_ref().ok_or_else(no_factor)?;
                    dual_congruence(k, lower, change)
                }),
            }
        });
        // The largest of the opposite numbers.
        let mut most = [Float::new(64), Float::new(64)];
        let found = found.map(|found| {
            for ((_, side), value) in tasks.iter().zip(found) {
                let most = &mut most[usize::from(*side == Side::Dual)];
                *most = Float::with_val(64, -value).max(most);
            }
            most
        });
        let [primal, dual] = site.share.ranks.largest(64, found)?;
        Ok(Eigenvalues { primal: -primal, dual: -dual })
    }
}

/// A block of dX, which is a sum of the program's matrices and a rest.
struct Image<'a> {
    place: &'a SystemPoint<'a>,
    at: usize,
    rest: &'a Block,
}

impl Image<'_> {
    /// `L_X^-1 dX L_X^-T` by the inverse of the factor; only from the few entries of the sum, where these are few and
    /// the rest changes no bit of an eigenvalue.
    fn congruence(&self, k: Arithmetic<'_>, inverse: &Matrix, change: &Matrix) -> Result<Matrix> {
        let Formed { bits, accuracy } = Formed::new(k.bits, 2 * norm_exponent(inverse) + norm_exponent(change));
        let options = GemmOptions::new().accuracy(accuracy);
        let rounded = inverse.view().rounded(bits)?;
        let Some(sparse) = self.entries(inverse, change, bits)? else {
            let change = change.view().rounded(bits)?;
            let held = rounded.bytes() + change.bytes();
            let half = gemm_with(&k.beside(held), &rounded, &change, bits, &options)?.result;
            let ctx = k.beside(held + half.bytes());
            return Ok(gemm_with(&ctx, &half, rounded.transposed(), bits, &options)?.result);
        };
        let half = spmm(k.ctx, &sparse, rounded.transposed(), bits)?;
        let ctx = k.beside(rounded.bytes() + half.bytes());
        Ok(gemm_with(&ctx, &rounded, &half, bits, &options)?.result)
    }

    fn entries(&self, inverse: &Matrix, change: &Matrix, bits: u32) -> Result<Option<SparseMatrix>> {
        let Cone { group, number, .. } = self.place.site.cones[self.at];
        let size = 2 * norm_exponent(inverse) + norm_exponent(self.rest.stored());
        match is_zero(self.rest.stored()) || size + FORMED_BITS <= 0 {
            true => self.place.site.problem.groups[group].constraints.sparse_image(number, change, bits),
            false => Ok(None),
        }
    }
}

/// `L_Y^-1 dY L_Y^-T` by solves with the factor.
fn dual_congruence(k: Arithmetic<'_>, lower: &Matrix, change: &Matrix) -> Result<Matrix> {
    // Solves lose the condition of L once more.
    let size = 3 * inverse_exponent(k, lower)? + norm_exponent(lower) + norm_exponent(change);
    let Formed { bits, accuracy } = Formed::new(k.bits, size + ESTIMATE_BITS);
    let (lower, change) = (lower.view().rounded(bits)?, change.view().rounded(bits)?);
    let options = TrsmOptions::new().accuracy(accuracy);
    let held = lower.bytes() + change.bytes();
    let half = trsm_with(&k.beside(held), &lower, &change, bits, &options)?.result;
    let options = options.side(Hand::Right).op(Op::Transpose);
    let ctx = k.beside(held + half.bytes());
    Ok(trsm_with(&ctx, &lower, &half, bits, &options)?.result)
}

/// An exponent: the Frobenius norm is below 2 to this power.
fn norm_exponent(matrix: &Matrix) -> i64 {
    let exponents = matrix.parts().0.iter().map(|&head| Head(head)).filter(|head| !head.is_zero());
    exponents.map(Head::exponent).max().unwrap_or(0) + i64::from(matrix.rows().next_power_of_two().trailing_zeros())
}

/// About the power of two above the norm of `L^-1`: by its diagonal and by one solve.
fn inverse_exponent(k: Arithmetic<'_>, lower: &Matrix) -> Result<i64> {
    let bits = MATRIX_BITS.min(k.bits);
    let signs = (0..lower.rows()).map(|row| if row % 3 == 1 { -1.0 } else { 1.0 }).collect::<Vec<_>>();
    let right = Matrix::from_f64s(lower.rows(), 1, 2, &signs)?;
    let solved = trsv(k.ctx, lower, &right, bits)?;
    let diagonal = (0..lower.rows()).map(|row| 1 - lower.get(row, row).head.exponent()).max();
    Ok(norm_exponent(&solved).max(diagonal.unwrap_or(0)))
}

/// The formation of a matrix whose smallest eigenvalue is computed.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Formed {
    bits: u32,
    accuracy: Accuracy,
}

impl Formed {
    /// By norms, where enough bits are left for factors of a size of 2 to the power `exponent` whose product is about
    /// 1; else entry by entry at all bits.
    fn new(most: u32, exponent: i64) -> Formed {
        let bits = (exponent + FORMED_BITS).clamp(64, 1 << 30) as u32;
        match bits <= most {
            true => Formed { bits: bits.next_multiple_of(64).min(most), accuracy: Accuracy::Norm },
            false => Formed { bits: most, accuracy: Accuracy::Entrywise },
        }
    }
}

fn no_factor() -> Error {
    Error::InvalidArgument("a dense block without its factor".into())
}

/// The smallest eigenvalue of one block, or 0 where it is positive.
fn smallest(
    k: Arithmetic<'_>,
    block: &Block,
    change: &Block,
    congruence: impl FnOnce(&Matrix) -> Result<Matrix>,
) -> Result<Float> {
    if is_zero(change.stored()) {
        return Ok(Float::new(64));
    }
    match (block, change) {
        (Block::Diagonal(diagonal), change) => {
            let quotient = |row| Float::with_val(64, &change.stored().float(row, 0) / &diagonal.float(row, 0));
            Ok((0..diagonal.rows()).map(quotient).fold(Float::new(64), |least, next| least.min(&next)))
        }
        (Block::Dense(_), change) => {
            let image = congruence(change.stored())?;
            let bits = MATRIX_BITS.min(image.precision_bits());
            let image = rounded(image, bits)?;
            let ctx = k.beside(image.bytes());
            let interval = extreme_eigenvalue(&ctx, Symmetric::lower(&image), EIGENVALUE_BITS)?;
            Ok(Float::with_val(64, interval.lower).min(&Float::new(64)))
        }
    }
}

/// The step: 1 where the boundary is further away than `1 / reduction`, else `reduction` of the way to it.
pub fn step_length(eigenvalue: &Float, reduction: &Float) -> Float {
    let bits = 64;
    let reach = Float::with_val(bits, -reduction);
    if *eigenvalue > reach { Float::with_val(bits, 1) } else { reach / eigenvalue }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Shape;
    use crate::iterate::Solver;
    use crate::iterate::factors::factor;
    use crate::numbers::largest;
    use crate::options::SolverOptions;
    use crate::problem::{Entry, Problem, SparseCone};
    use sunzi::Context;

    #[test]
    fn few_entries_and_a_whole_matrix_give_the_same() -> Result<()> {
        let (order, bits) = (9, 192);
        let entry = |at: usize| Entry { row: at, col: at / 2, value: Float::with_val(2, 1) };
        let cone = SparseCone {
            shape: Shape::Dense(order),
            active: (0..order).collect(),
            entries: (0..order).map(|at| vec![entry(at)]).collect(),
            constant: Vec::new(),
        };
        let costs = Matrix::from_f64s(order, 1, bits, &[1.0; 9])?;
        let problem = Problem::standard(bits, costs, vec![cone], None)?;
        let solver = Solver::new(Context::builder().threads(1).build()?, &problem, SolverOptions::new(problem.form))?;
        let (point, site) = (solver.begin()?.point, solver.site(&problem));
        let factors = factor(&site, &point)?.unwrap();
        let place = SystemPoint { site, point: &point, factors: &factors };
        let number = |row: usize, col: usize| Float::with_val(bits, 1.0 + (1 + 7 * row + 3 * col) as f64).ln();
        let inverse = Matrix::from_fn(
            order,
            order,
            bits,
            |row, col| {
                if row < col { Float::new(bits) } else { number(row, col) }
            },
        )?;
        let change = Matrix::from_fn(order, order, bits, |row, col| {
            let (high, low) = (row.max(col), row.min(col));
            if low == high / 2 { number(high, low) } else { Float::new(bits) }
        })?;
        let k = site.arithmetic();
        let whole = |change: &Matrix| {
            let half = sunzi::gemm(k.ctx, &inverse, change, bits)?;
            sunzi::gemm(k.ctx, &half, inverse.transposed(), bits)
        };
        // A rest that matters needs the whole matrix; any other is left out, except for the entries of the matrices.
        for (rest, is_sparse) in [(0.0, true), (2f64.powi(-80), true), (2f64.powi(-20), false)] {
            let size = Float::with_val(53, rest);
            let rest = Block::scaled_identity(Shape::Dense(order), &size, bits)?;
            let change = k.sum(&Float::with_val(2, 1), rest.stored(), &change)?;
            let image = Image { place: &place, at: 0, rest: &rest };
            assert_eq!(image.entries(&inverse, &change, 128)?.is_some(), is_sparse);
            let found = image.congruence(k, &inverse, &change)?;
            assert!(largest(&found) > 1);
            let off = largest(&k.difference(&found, &whole(&change)?)?);
            assert!(off < 2f64.powi(-24), "{off} with a rest of {size}");
            // The last entry of the rest is in no matrix.
            let last = inverse.float(order - 1, order - 1).square() * &size;
            let last_off = found.float(order - 1, order - 1) - whole(&change)?.float(order - 1, order - 1);
            assert!(last == 0 || is_sparse == (last_off.abs() > last / 2u32), "a rest of {size}");
        }
        Ok(())
    }

    #[test]
    fn steps_end_inside() {
        let gamma = Float::with_val(64, 0.5);
        let step = |eigenvalue: f64| step_length(&Float::with_val(64, eigenvalue), &gamma).to_f64();
        assert_eq!((step(0.0), step(-0.4), step(-0.5), step(-2.0)), (1.0, 1.0, 1.0, 0.25));
    }

    #[test]
    fn bits_are_those_that_sizes_ask_for() -> Result<()> {
        let ctx = Context::builder().threads(1).build()?;
        let k = Arithmetic { ctx: &ctx, bits: 256 };
        let formed = [-500, 0, 41, 104, 105, 276, 277].map(|exponent| Formed::new(300, exponent));
        assert_eq!(formed.map(|formed| formed.bits), [64, 64, 128, 128, 192, 300, 300]);
        let by_norms = formed.iter().filter(|formed| formed.accuracy == Accuracy::Norm);
        assert_eq!(by_norms.count(), 6);
        assert_eq!(Formed::new(53, 0), Formed { bits: 53, accuracy: Accuracy::Entrywise });
        let mut lower = Matrix::identity(5, 256)?;
        assert_eq!((norm_exponent(&lower), norm_exponent(&Matrix::zeros(1, 1, 64)?)), (4, 0));
        assert_eq!(inverse_exponent(k, &lower)?, 4);
        lower.set_f64(4, 4, 2f64.powi(-40))?;
        assert!((40..46).contains(&inverse_exponent(k, &lower)?));
        // A solve detects what the diagonal does not show.
        (1..4).try_for_each(|row| lower.set_f64(row, row - 1, 2f64.powi(30)))?;
        assert!(inverse_exponent(k, &lower)? >= 90);
        Ok(())
    }
}
