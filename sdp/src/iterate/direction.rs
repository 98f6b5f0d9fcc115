//! Search directions: of `X dY + dX Y = centre I - X Y`, symmetrised, and of the residuals.
//!
//! `dX = P + A(dx)` and `dY = centre X^-1 - Y - sym(X^-1 (dX Y + corrector))`, in which all that does not hang on dx is
//! called `-Z`: `Z = Y - centre X^-1 + sym(X^-1 (P Y + corrector))`. Then `S dx - B dy = -d - A*(Z)` makes the dual
//! residual vanish, and `dY = -Z - sym(X^-1 A(dx) Y)`. Where P is small, its product with Y is left out of Z: that
//! changes the linearised complementarity, below all that counts, and no residual. There the predictor's dX counts in
//! the corrector as `A(dx)` alone. Where the matrices have few entries together, products with `A(dx)` are sparse.

use crate::block::{Block, Summand};
use crate::calls::{gemm_with, spmm, syr2k_with};
use crate::iterate::factors::{ConeFactors, exponent};
use crate::iterate::memory::{ConeTask, Step};
use crate::iterate::point::{Cone, Point};
use crate::iterate::residuals::{Residuals, adjoint, negated};
use crate::iterate::system::{Place, System};
use crate::numbers::{Arithmetic, column, entrywise};
use rug::Float;
use sunzi::{Accuracy, Matrix, Result, Symmetric, Syr2kOptions};

/// Bits by which `P Y` must lie below the complementarity to be left out.
const NEGLIGIBLE_BITS: i64 = 40;

/// What both directions of an iteration share.
pub struct Directions<'a> {
    /// The point.
    pub place: &'a Place<'a>,
    /// Its residuals.
    pub residuals: &'a Residuals,
    /// The factored equation.
    pub system: &'a System,
    /// `P Y` of each block, where it counts.
    pub residual_products: Vec<Option<Matrix>>,
    /// The power of two below which a product with P does not count.
    negligible: i64,
}

/// `sym(X^-1 M)` times `scale` plus `beta` times `add`.
fn symmetrised(
    k: Arithmetic<'_>,
    inverse: &Matrix,
    product: &Matrix,
    add: (&Matrix, f64),
    scale: f64,
) -> Result<Matrix> {
    let (half, beta) = (Float::with_val(53, scale / 2.0), Float::with_val(53, add.1));
    let options = Syr2kOptions::new().alpha(&half).beta(&beta).accuracy(Accuracy::Entrywise);
    let options = options.accumulate(Symmetric::lower(add.0));
    Ok(syr2k_with(k.ctx, inverse, product, k.bits, &options)?.result.into_matrix())
}

/// Z of a block.
enum Constant {
    Whole(Block),
    /// `base + sym(X^-1 product)`, of which few entries are asked for: the product goes into that of dY.
    Sum {
        base: Block,
        product: Matrix,
    },
}

impl<'a> Directions<'a> {
    /// Prepares both directions. Collective.
    ///
    /// # Errors
    /// Those of the library's products.
    pub fn new(place: &'a Place<'a>, parts: (&'a Residuals, &'a System), mu: &Float) -> Result<Directions<'a>> {
        let (residuals, system) = parts;
        let negligible = exponent(mu) - NEGLIGIBLE_BITS;
        let products = place.site.at(Step::Constants).map(ConeTask::Product, |k, at| {
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
    /// Those of the library's products and solves.
    pub fn find(&self, centre: &Float, predictor: Option<&Point>) -> Result<Point> {
        let (place, site) = (self.place, self.place.site.at(Step::Constants));
        let z = site.map(ConeTask::Constant, |k, at| self.constant_part(k, at, centre, predictor))?;
        let site = &site.at(Step::Directions);
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

    /// Z of one block.
    fn constant_part(
        &self,
        k: Arithmetic<'_>,
        at: usize,
        centre: &Float,
        predictor: Option<&Point>,
    ) -> Result<Constant> {
        let ConeFactors { x_inverse, .. } = &self.place.factors[at];
        let minus = Float::with_val(k.bits, -centre);
        let base = self.place.point.dual[at].plus(k, &minus, x_inverse)?;
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
                Block::Dense(symmetrised(k, x_inverse.stored(), &product, (matrix, 1.0), 1.0)?)
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
                let product = self.image_product(k, at, (image, dual), known)?;
                let ctx = k.beside(image.bytes() + product.bytes());
                let k = Arithmetic { ctx: &ctx, ..k };
                Ok(Block::Dense(symmetrised(k, x_inverse.stored(), &product, (z, -1.0), -1.0)?))
            }
            (_, z) => {
                let product = products(k, x_inverse.stored(), &products(k, image.stored(), dual)?)?;
                Ok(Block::Diagonal(negated(k.sum(&Float::with_val(2, 1), &product, z.stored())?)))
            }
        }
    }
}

impl Directions<'_> {
    /// `A(dx) Y` of a dense block, and what is added to it.
    fn image_product(
        &self,
        k: Arithmetic<'_>,
        at: usize,
        (image, dual): (&Matrix, &Matrix),
        known: Option<&Matrix>,
    ) -> Result<Matrix> {
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
