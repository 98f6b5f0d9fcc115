//! Search directions: of `X dY + dX Y = centre I - X Y`, symmetrised, and of the residuals.
//!
//! `dX = P + A(dx)` and `dY = centre X^-1 - Y - sym(X^-1 (dX Y + corrector))`, in which the part independent of dx is
//! called `-Z`: `Z = Y - centre X^-1 + sym(X^-1 (P Y + corrector))`. Then `S dx - B dy = -d - A*(Z)` makes the dual
//! residual vanish, and `dY = -Z - sym(X^-1 A(dx) Y)`. Where P is small, its product with Y is left out of Z: that
//! changes the linearised complementarity by a negligible amount, and no residual. There only the entries of the
//! predictor's dX at the positions of the matrices count in the corrector, where these are few. Where the matrices have
//! few entries together, products with `A(dx)` are sparse.

use crate::block::{Block, Summand};
use crate::calls::{gemm_with, spmm, syr2k_with};
use crate::iterate::factors::ConeFactors;
use crate::iterate::memory::{ConeTask, IterationStep};
use crate::iterate::point::{Cone, Point};
use crate::iterate::residuals::{Residuals, adjoint, negated};
use crate::iterate::system::{System, SystemPoint};
use crate::numbers::exponent;
use crate::numbers::{Arithmetic, column, entrywise};
use rug::Float;
use sunzi::{Accuracy, Matrix, Result, Symmetric, Syr2kOptions};

/// Bits by which `P Y` must lie below the complementarity to be left out.
const NEGLIGIBLE_BITS: i64 = 40;

/// The data that both directions of an iteration share.
pub struct Directions<'a> {
    /// The point.
    pub place: &'a SystemPoint<'a>,
    /// Its residuals.
    pub residuals: &'a Residuals,
    /// The factored equation.
    pub system: &'a System,
    /// `P Y` of each block, where it counts.
    pub residual_products: Vec<Option<Matrix>>,
    /// The power of two below which a product with P does not count.
    negligible: i64,
}

/// `sym(X^-1 M)` plus `add`, times `scale`.
fn symmetrised(k: Arithmetic<'_>, inverse: &Matrix, product: &Matrix, add: &Matrix, scale: f64) -> Result<Matrix> {
    let (half, beta) = (Float::with_val(53, scale / 2.0), Float::with_val(53, scale));
    let options = Syr2kOptions::new().alpha(&half).beta(&beta).accuracy(Accuracy::Entrywise);
    let options = options.accumulate(Symmetric::lower(add));
    Ok(syr2k_with(k.ctx, inverse, product, k.bits, &options)?.result.into_matrix())
}

/// Z of a block.
enum Constant {
    Whole(Block),
    /// `base + sym(X^-1 product)`, of which few entries are needed: the product goes into that of dY.
    Sum {
        base: Block,
        product: Matrix,
    },
}

impl<'a> Directions<'a> {
    /// Prepares both directions. Collective.
    ///
    /// # Errors
    /// The errors of the library's products.
    pub fn new(
        place: &'a SystemPoint<'a>,
        residuals: &'a Residuals,
        system: &'a System,
        mu: &Float,
    ) -> Result<Directions<'a>> {
        let negligible = exponent(mu) - NEGLIGIBLE_BITS;
        let products = place.site.at(IterationStep::Constants).map(ConeTask::Product, |k, at| {
            let (rest, dual) = (&residuals.primal[at], &place.point.dual[at]);
            if product_exponent(rest, dual) < negligible {
                return Ok(None);
            }
            Ok(Some(match rest {
                Block::Dense(rest) => gemm_with(k.ctx, rest, dual.stored(), k.bits, &entrywise())?.result,
                Block::Diagonal(rest) => products(k, rest, dual.stored())?,
            }))
        })?;
        Ok(Directions { place, residuals, system, residual_products: products, negligible })
    }

    /// The direction to complementarity `centre`; with the second-order term of `predictor` where it is given.
    /// Collective.
    ///
    /// # Errors
    /// The errors of the library's products and solves.
    pub fn find(&self, centre: &Float, predictor: Option<&Point>) -> Result<Point> {
        self.towards(Some(centre), predictor)
    }

    /// The direction that makes the residuals vanish and leaves `X Y` as it is, to first order: as small as they are.
    /// Collective.
    ///
    /// # Errors
    /// As [`Directions::find`].
    pub fn restoring(&self) -> Result<Point> {
        self.towards(None, None)
    }

    fn towards(&self, centre: Option<&Float>, predictor: Option<&Point>) -> Result<Point> {
        let (place, site) = (self.place, self.place.site.at(IterationStep::Constants));
        let z = site.map(ConeTask::Constant, |k, at| self.constant_part(k, at, centre, predictor))?;
        let site = &site.at(IterationStep::Directions);
        let summands = z.iter().zip(place.factors).map(|(z, factors)| match z {
            Constant::Whole(block) => Summand { block, product: None },
            Constant::Sum { base, product } => Summand { block: base, product: Some((&factors.x_inverse, product)) },
        });
        let of_z = adjoint(site, &summands.collect::<Vec<_>>())?;
        let k = site.arithmetic();
        let right = self
            .residuals
            .dual
            .iter()
            .zip(&of_z)
            .map(|(d, of_z)| Ok(negated(k.sum(&Float::with_val(2, 1), d, of_z)?)));
        let right = site.agreed(right.collect::<Result<Vec<_>>>())?;
        let (x, y) = self.system.solve(site, &right, &self.residuals.free)?;
        let blocks = site.map(ConeTask::Direction, |k, at| {
            let cone = site.cones[at];
            let constraints = &site.problem.groups[cone.group].constraints;
            let image = constraints.weighted_sum(k, cone.number, &x[cone.group])?;
            let dual = self.dual_part(k, at, &z[at], &image)?;
            Ok((self.residuals.primal[at].plus(k, &Float::with_val(2, 1), &image)?, dual))
        })?;
        let (primal, dual) = blocks.into_iter().unzip();
        Ok(Point { x, primal, y, dual })
    }

    /// Z of one block; without a centre only `sym(X^-1 P Y)`.
    fn constant_part(
        &self,
        k: Arithmetic<'_>,
        at: usize,
        centre: Option<&Float>,
        predictor: Option<&Point>,
    ) -> Result<Constant> {
        let ConeFactors { x_inverse, .. } = &self.place.factors[at];
        let base = match centre {
            Some(centre) => self.place.point.dual[at].plus(k, &Float::with_val(k.bits, -centre), x_inverse)?,
            None => Block::scaled_identity(x_inverse.shape(), &Float::new(k.bits), k.bits)?,
        };
        let mut product = self.residual_products[at].clone();
        let ctx = k.beside(base.stored().bytes() + product.as_ref().map_or(0, Matrix::bytes));
        let Cone { group, number, .. } = self.place.site.cones[at];
        let constraints = &self.place.site.problem.groups[group].constraints;
        if let Some(predictor) = predictor {
            let (dx, dy) = (&predictor.primal[at], predictor.dual[at].stored());
            let is_image = product_exponent(&self.residuals.primal[at], &predictor.dual[at]) < self.negligible;
            product = Some(match (dx, product) {
                (Block::Dense(dx), None) => {
                    let sparse = if is_image { constraints.sparse_image(number, dx, k.bits)? } else { None };
                    match sparse {
                        Some(sparse) => spmm(&ctx, &sparse, dy, k.bits)?,
                        None => gemm_with(&ctx, dx, dy, k.bits, &entrywise())?.result,
                    }
                }
                (Block::Dense(dx), Some(sum)) => {
                    gemm_with(&ctx, dx, dy, k.bits, &entrywise().accumulate(sum.view()))?.result
                }
                (Block::Diagonal(dx), None) => products(k, dx, dy)?,
                (Block::Diagonal(dx), Some(sum)) => k.sum(&Float::with_val(2, 1), &products(k, dx, dy)?, &sum)?,
            });
        }
        let Some(product) = product else { return Ok(Constant::Whole(base)) };
        if constraints.meets_few(number, k.bits)? {
            return Ok(Constant::Sum { base, product });
        }
        Ok(Constant::Whole(match &base {
            Block::Dense(matrix) => {
                let ctx = k.beside(matrix.bytes() + product.bytes());
                let k = Arithmetic { ctx: &ctx, ..k };
                Block::Dense(symmetrised(k, x_inverse.stored(), &product, matrix, 1.0)?)
            }
            Block::Diagonal(diagonal) => {
                let scaled = products(k, x_inverse.stored(), &product)?;
                Block::Diagonal(k.sum(&Float::with_val(2, 1), &scaled, diagonal)?)
            }
        }))
    }

    /// `-Z - sym(X^-1 A(dx) Y)` of one block.
    fn dual_part(&self, k: Arithmetic<'_>, at: usize, z: &Constant, image: &Block) -> Result<Block> {
        let ConeFactors { x_inverse, .. } = &self.place.factors[at];
        let dual = self.place.point.dual[at].stored();
        let (z, known) = match z {
            Constant::Whole(block) => (block, None),
            Constant::Sum { base, product } => (base, Some(product)),
        };
        match (image, z) {
            (Block::Dense(image), Block::Dense(z)) => {
                let product = self.image_product(k, at, image, known)?;
                let ctx = k.beside(image.bytes() + product.bytes());
                let k = Arithmetic { ctx: &ctx, ..k };
                Ok(Block::Dense(symmetrised(k, x_inverse.stored(), &product, z, -1.0)?))
            }
            (_, z) => {
                let product = products(k, x_inverse.stored(), &products(k, image.stored(), dual)?)?;
                Ok(Block::Diagonal(negated(k.sum(&Float::with_val(2, 1), &product, z.stored())?)))
            }
        }
    }
}

impl Directions<'_> {
    /// `A(dx) Y` of a dense block, and the matrix that is added to it.
    fn image_product(&self, k: Arithmetic<'_>, at: usize, image: &Matrix, known: Option<&Matrix>) -> Result<Matrix> {
        let dual = self.place.point.dual[at].stored();
        let Cone { group, number, .. } = self.place.site.cones[at];
        let constraints = &self.place.site.problem.groups[group].constraints;
        let Some(sparse) = constraints.sparse_image(number, image, k.bits)? else {
            let options = entrywise().accumulate(known.map(Matrix::view));
            return Ok(gemm_with(&k.beside(image.bytes()), image, dual, k.bits, &options)?.result);
        };
        let product = spmm(k.ctx, &sparse, dual, k.bits)?;
        match known {
            Some(known) => k.sum(&Float::with_val(2, 1), &product, known),
            None => Ok(product),
        }
    }
}

/// An exponent above that of the largest entry of the product of two blocks, but for the number of its terms.
fn product_exponent(left: &Block, right: &Block) -> i64 {
    exponent(&left.largest()).saturating_add(exponent(&right.largest()))
}

/// Products entry by entry of two columns.
fn products(k: Arithmetic<'_>, left: &Matrix, right: &Matrix) -> Result<Matrix> {
    column(left.rows(), k.bits, |row| Float::with_val(k.bits, &left.float(row, 0) * &right.float(row, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Shape;
    use crate::iterate::Solver;
    use crate::iterate::factors::factor;
    use crate::iterate::side::Sides;
    use crate::numbers::largest;
    use crate::options::SolverOptions;
    use crate::problem::{Entry, Problem, SparseCone};
    use sunzi::Context;

    const ORDER: usize = 9;

    /// A symmetric positive definite block of full matrices.
    fn definite(k: Arithmetic<'_>, seed: f64) -> Result<Matrix> {
        let number = |row: usize, col: usize| Float::with_val(k.bits, seed + (3 * row + 5 * col * col) as f64).sin();
        let half = Matrix::from_fn(ORDER, ORDER, k.bits, number)?;
        let whole = sunzi::syrk(k.ctx, &half, k.bits)?.into_matrix();
        k.sum(&Float::with_val(2, 1), &whole, &Matrix::identity(ORDER, k.bits)?)
    }

    /// A program in matrices with these entries, whose residual of X is a multiple of the identity where `x = 0`.
    fn program(bits: u32, lists: &[&[(usize, usize)]], x: &Matrix, rest: &Float) -> Result<Problem> {
        let entry = |at: usize, &(row, col): &(usize, usize)| {
            let value = Float::with_val(bits, 1.0 + (at + 2 * row + col) as f64).sqrt();
            Entry { row, col, value }
        };
        let constant = (0..ORDER).flat_map(|row| (0..=row).map(move |col| (row, col))).map(|(row, col)| {
            let mut value = -x.float(row, col);
            if row == col {
                value -= rest;
            }
            Entry { row, col, value }
        });
        let cone = SparseCone {
            shape: Shape::Dense(ORDER),
            active: (0..lists.len()).collect(),
            entries: lists.iter().enumerate().map(|(at, list)| list.iter().map(|p| entry(at, p)).collect()).collect(),
            constant: constant.collect(),
        };
        Problem::standard(bits, Matrix::from_f64s(lists.len(), 1, bits, &vec![1.0; lists.len()])?, vec![cone], None)
    }

    /// `centre X^-1 - Y - sym(X^-1 (dX Y + second))`, with whole matrices.
    fn wanted(
        k: Arithmetic<'_>,
        (inverse, y): (&Matrix, &Matrix),
        dx: &Matrix,
        centre: &Float,
        second: Option<(&Matrix, &Matrix)>,
    ) -> Result<Matrix> {
        let (one, half) = (Float::with_val(2, 1), Float::with_val(2, -0.5));
        let mut product = sunzi::gemm(k.ctx, dx, y, k.bits)?;
        if let Some((dx, dy)) = second {
            product = k.sum(&one, &sunzi::gemm(k.ctx, dx, dy, k.bits)?, &product)?;
        }
        let product = sunzi::gemm(k.ctx, inverse, &product, k.bits)?;
        let both = k.sum(&one, &product, &product.transposed().to_matrix()?)?;
        let first = k.difference(&k.sum(centre, inverse, &Matrix::zeros(ORDER, ORDER, k.bits)?)?, y)?;
        k.sum(&half, &both, &first)
    }

    /// Both directions of a program, checked by the equations that define them.
    fn check(bits: u32, lists: &[&[(usize, usize)]], rest: f64, (is_sparse, is_few): (bool, bool)) -> Result<()> {
        let ctx = Context::builder().threads(1).build()?;
        let k = Arithmetic { ctx: &ctx, bits };
        let (x, y) = (definite(k, 0.2)?, definite(k, 1.4)?);
        let rest = Float::with_val(53, rest);
        let problem = program(bits, lists, &x, &rest)?;
        let solver = Solver::new(ctx.clone(), &problem, SolverOptions::new(problem.form))?;
        let site = solver.site(&problem);
        let point = Point { primal: vec![Block::Dense(x)], dual: vec![Block::Dense(y)], ..solver.begin()?.point };
        let factors = factor(&site, &point)?.unwrap();
        let place = SystemPoint { site, point: &point, factors: &factors };
        let residuals = Residuals::new(&site, &point)?;
        assert_eq!(residuals.primal[0].largest(), rest);
        let system = System::new(&place)?.unwrap();
        let mu = point.primal[0].inner(k, &point.dual[0])? / ORDER as u32;
        let constraints = &problem.groups[0].constraints;
        assert_eq!(constraints.sparse_image(0, point.primal[0].stored(), bits)?.is_some(), is_sparse);
        assert_eq!(constraints.meets_few(0, bits)?, is_few);
        let directions = Directions::new(&place, &residuals, &system, &mu)?;
        let is_left_out = directions.residual_products[0].is_none();
        assert_eq!(is_left_out, rest < 1e-15);
        let centre = Float::with_val(bits, &mu / 3u32);
        let predictor = directions.find(&centre, None)?;
        let corrector = directions.find(&centre, Some(&predictor))?;
        let (inverse, dual) = (factors[0].x_inverse.stored(), point.dual[0].stored());
        let second = (predictor.primal[0].stored(), predictor.dual[0].stored());
        for (direction, second) in [(&predictor, None), (&corrector, Some(second))] {
            let (dx, dy) = (direction.primal[0].stored(), direction.dual[0].stored());
            let off = largest(&k.difference(dy, &wanted(k, (inverse, dual), dx, &centre, second)?)?);
            // The part left out of a product is as far below it as the residual, times the norms of X^-1 and dY.
            let bound = if is_left_out { 1e4 * rest.to_f64() } else { 0.0 } + 1e-45;
            assert!(off < bound, "{off} above {bound:e}");
            assert!(largest(dy) > 1e-3);
            let one = Float::with_val(2, 1);
            let next = point.moved(k, direction, Sides { primal: &one, dual: &one })?;
            let after = Residuals::new(&site, &next)?;
            assert!(after.primal[0].largest() < 1e-45 && largest(&after.dual[0]) < 1e-45);
        }
        Ok(())
    }

    #[test]
    fn directions_solve_their_equations_with_few_entries_and_with_many() -> Result<()> {
        let few: [&[(usize, usize)]; 5] = [&[(0, 0)], &[(3, 1), (2, 2)], &[(8, 0)], &[(5, 5), (7, 7)], &[(6, 4)]];
        let two: [&[(usize, usize)]; 2] = [&[(2, 2)], &[(7, 7)]];
        let all = (0..ORDER).flat_map(|row| (0..=row).map(move |col| (row, col))).collect::<Vec<_>>();
        let many: [&[(usize, usize)]; 3] = [&[(1, 0)], &all, &[(4, 4), (8, 2)]];
        // The residual counts, is negligible, or is 0.
        for rest in [0.25, 2f64.powi(-70), 0.0] {
            check(192, &few, rest, (true, true))?;
            check(4032, &two, rest, (false, false))?;
            check(192, &many, rest, (false, true))?;
            check(1024, &many, rest, (false, false))?;
        }
        Ok(())
    }
}
