//! Points moved onto their equations by the change that is least in the metric of the points themselves.
//!
//! With `S_pq = Tr(A_p M A_q M)` for a positive definite M: of all W with `A_p . W = r_p`, `M A^*(t) M` with `S t = r`
//! has the least `||M^-1/2 W M^-1/2||_F`, whose square is `r^T S^-1 r`. For `M = Y` and a number below 1, `Y + W` is
//! positive definite, however small the least eigenvalue of Y is: in each direction it changes by a fraction of Y
//! itself in that direction, whereas a change that is least in the Frobenius norm has to be smaller than the least
//! eigenvalue. For `M = X^-1` the same number of a change of x, `dx^T S dx`, keeps X positive definite.
//! Source: Renegar, A Mathematical View of Interior-Point Methods in Convex Optimization (2001), section 2.2.

use super::Attempt;
use super::floats::{exponent, factored, rounded_exact};
use crate::block::{Block, Shape, Summand};
use crate::numbers::{Arithmetic, column, entrywise};
use crate::problem::{Constraints, Entry, Sampled, SchurOperand, Sparse};
use crate::proof;
use crate::ranks::Ranks;
use crate::read::{PlacedEntry, grouped};
use crate::workers::Workers;
use rug::Float;
use sunzi::blas::GemvOptions;
use sunzi::blas::gemv_with;
use sunzi::{Accuracy, Cholesky, Matrix, Op, Result, SymmetricMatrix, SyrkOptions, TrsmOptions, Uplo};
use sunzi::{gemm_with, syrk_with, trsm_with};

/// Metrics at most, and corrections at most with each, which leave about the rounding of the first.
pub const METRICS: u32 = 12;
pub const CORRECTIONS: u32 = 6;

/// The exponent of a number above the size of a change, by its square.
pub fn size_of(square: &Float) -> i64 {
    exponent(square).div_euclid(2) + 1
}

/// The fraction of a change of this size that is used: 1 if the size is below 1, otherwise a fraction that makes it
/// less than a half.
pub fn part_of(size: i64) -> Float {
    let one = Float::with_val(2, 1);
    if size <= 0 { one } else { one >> (size + 1).min(1 << 20) as u32 }
}

/// The numbers of a group, rounded.
pub struct Rounded {
    /// The matrices.
    pub constraints: Constraints,
    /// B.
    pub free: Matrix,
    /// c.
    pub costs: Matrix,
}

impl Rounded {
    /// A group with numbers of `bits` bits, together with `free` free variables.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn new(group: &proof::ProofGroup, free: usize, bits: u32) -> Result<Rounded> {
        let constraints = match &group.constraints {
            proof::ProofConstraints::Sampled(sampled) => Constraints::Sampled(samples(sampled, bits)?),
            proof::ProofConstraints::Sparse(sparse) => Constraints::Sparse(entries(sparse, group.variables(), bits)),
        };
        let costs = rounded_exact(&group.costs, group.variables(), 1, bits)?;
        Ok(Rounded { constraints, free: rounded_exact(&group.free, group.variables(), free, bits)?, costs })
    }
}

/// Bases whose columns have the roots of the weights in them.
fn samples(sampled: &proof::ProofSampled, bits: u32) -> Result<Sampled> {
    let (points, cones) = (sampled.points(), sampled.shapes().len());
    let basis = |cone: usize| {
        let (rows, cols) = if cone < cones { (sampled.rows(cone), points) } else { (0, 0) };
        let root = |point| Float::with_val(bits, sampled.factor(cone, point)).sqrt();
        let roots = (0..cols).map(root).collect::<Vec<_>>();
        Matrix::from_fn(rows, cols, bits, |row, point| {
            Float::with_val(bits, sampled.entry(cone, row, point)) * &roots[point]
        })
    };
    Sampled::new(sampled.dim(), points, [basis(0)?, basis(1)?])
}

fn entries(sparse: &proof::ProofSparse, variables: usize, bits: u32) -> Sparse {
    let shape = |shape: &proof::ProofShape| match shape.diagonal {
        true => Shape::Diagonal(shape.order),
        false => Shape::Dense(shape.order),
    };
    let entry = |(at, place): (usize, &proof::Place)| {
        let value = Float::with_val(bits, sparse.values.get(at));
        let entry = Entry { row: place.row, col: place.col, value };
        PlacedEntry { variable: place.variable, cone: place.cone, entry }
    };
    let shapes = sparse.shapes.iter().map(shape).collect();
    grouped(variables, shapes, sparse.places.iter().enumerate().map(entry).collect())
}

/// M, block by block.
pub struct FactoredMetric {
    blocks: Vec<SeenBlock>,
}

/// A block of M.
struct SeenBlock {
    block: Block,
    /// T of a factor `T^T T`, of a dense block.
    root: Option<Matrix>,
}

impl FactoredMetric {
    /// `M = Y`, or the block that is not positive definite, from 0.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn from_dual(k: Arithmetic<'_>, blocks: &[Block]) -> Result<std::result::Result<FactoredMetric, usize>> {
        FactoredMetric::new(blocks, |block| match block {
            Block::Diagonal(diagonal) => Ok(positive(diagonal).then(|| SeenBlock { block: block.clone(), root: None })),
            Block::Dense(matrix) => {
                let Some(factor) = factored(k, matrix)? else { return Ok(None) };
                let root = Some(factor.factor().transposed().to_matrix()?);
                Ok(Some(SeenBlock { block: block.clone(), root }))
            }
        })
    }

    /// `M = X^-1`, or the block that is not positive definite, from 0.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn from_primal(k: Arithmetic<'_>, blocks: &[Block]) -> Result<std::result::Result<FactoredMetric, usize>> {
        FactoredMetric::new(blocks, |block| match block {
            Block::Diagonal(diagonal) if !positive(diagonal) => Ok(None),
            Block::Diagonal(diagonal) => {
                let inverse = column(diagonal.rows(), k.bits, |row| diagonal.float(row, 0).recip())?;
                Ok(Some(SeenBlock { block: Block::Diagonal(inverse), root: None }))
            }
            Block::Dense(matrix) => {
                let Some(factor) = factored(k, matrix)? else { return Ok(None) };
                let options = TrsmOptions::new().accuracy(Accuracy::Entrywise);
                let identity = Matrix::identity(matrix.rows(), 2)?;
                let inverse = trsm_with(k.ctx, factor.factor(), &identity, k.bits, &options)?.result;
                let options = SyrkOptions::new().accuracy(Accuracy::Entrywise);
                let whole = syrk_with(k.ctx, &inverse, k.bits, &options)?.result.into_matrix();
                Ok(Some(SeenBlock { block: Block::Dense(whole), root: Some(inverse) }))
            }
        })
    }

    fn new(
        blocks: &[Block],
        see: impl Fn(&Block) -> Result<Option<SeenBlock>>,
    ) -> Result<std::result::Result<FactoredMetric, usize>> {
        let mut found = Vec::with_capacity(blocks.len());
        for (at, block) in blocks.iter().enumerate() {
            match see(block)? {
                Some(seen) => found.push(seen),
                None => return Ok(Err(at)),
            }
        }
        Ok(Ok(FactoredMetric { blocks: found }))
    }
}

fn positive(diagonal: &Matrix) -> bool {
    (0..diagonal.rows()).all(|row| diagonal.float(row, 0) > 0)
}

/// S of a group, factored.
pub struct Metric {
    seen: FactoredMetric,
    factor: Cholesky,
}

impl Metric {
    /// The metric of M, or why there is none.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn new(
        workers: &Workers,
        bits: u32,
        constraints: &Constraints,
        seen: FactoredMetric,
    ) -> Result<Attempt<Metric>> {
        let k = Arithmetic { ctx: workers.all(), bits };
        let turned = seen.blocks.iter().map(|seen| seen.root.as_ref().map(|root| root.transposed().to_matrix()));
        let turned = turned.map(Option::transpose).collect::<Result<Vec<_>>>()?;
        let operands = seen.blocks.iter().zip(&turned).map(|(SeenBlock { block, root }, turned)| SchurOperand {
            x_inverse: block,
            x_lower_inverse: root.as_ref(),
            y: block,
            y_lower: turned.as_ref(),
        });
        let operands = operands.collect::<Vec<_>>();
        let schur = match constraints {
            Constraints::Sampled(sampled) => Some(sampled.schur(k, &operands)?),
            Constraints::Sparse(sparse) => sparse.schur(workers, &Ranks::alone(), k, &operands)?,
            // Groups of exact programs are of the other kinds.
            Constraints::Scalars(_) => None,
        };
        drop(turned);
        let factor = schur.map(|schur| factored(k, &schur)).transpose()?.flatten();
        Ok(factor
            .map(|factor| Metric { seen, factor })
            .ok_or_else(|| format!("the equations could not be shown to be independent at {bits} bits")))
    }

    /// `t = S^-1 r`, and `r^T S^-1 r`.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn solve(&self, k: Arithmetic<'_>, r: &Matrix) -> Result<(Matrix, Float)> {
        let t = self.factor.solve(k.ctx, r, k.bits)?;
        let square = k.inner(r, &t)?;
        Ok((t, square))
    }

    /// `L^-1 B` or `L^-T B` for `S = L L^T`.
    ///
    /// # Errors
    /// The errors of [`trsm_with`].
    pub fn substituted(&self, k: Arithmetic<'_>, b: &Matrix, op: Op) -> Result<Matrix> {
        let options = TrsmOptions::new().op(op).accuracy(Accuracy::Entrywise);
        Ok(trsm_with(k.ctx, self.factor.factor(), b, k.bits, &options)?.result)
    }

    /// Block `cone` of `M A^*(t) M`.
    ///
    /// # Errors
    /// The errors of the library's products.
    pub fn change(&self, k: Arithmetic<'_>, constraints: &Constraints, cone: usize, t: &Matrix) -> Result<Block> {
        match (&self.seen.blocks[cone].block, constraints.weighted_sum(k, cone, t)?) {
            (Block::Dense(m), Block::Dense(sum)) => {
                let product = gemm_with(k.ctx, &sum, m, k.bits, &entrywise())?.result;
                let whole = gemm_with(k.ctx, m, &product, k.bits, &entrywise())?.result;
                Ok(Block::Dense(SymmetricMatrix::from_triangle(whole, Uplo::Lower)?.into_matrix()))
            }
            (m, sum) => {
                let entry = |row: usize| m.stored().float(row, 0).square() * sum.stored().float(row, 0);
                Ok(sum.like(column(sum.stored().rows(), k.bits, entry)?))
            }
        }
    }
}

/// A change of M and of y: `W = M A^*(t) M`, with `B^T t = 0`.
pub struct DualChange {
    /// t, group by group.
    pub t: Vec<Matrix>,
    /// The change of y, where there are free variables.
    pub dy: Option<Matrix>,
    /// The square of the size of W.
    pub square: Float,
}

/// The metrics of all groups, and the part that joins them through free variables.
pub struct Linked {
    metrics: Vec<Metric>,
    /// `L^-1 B` of each group, for its `S = L L^T`.
    spread: Vec<Matrix>,
    /// The factor of `B^T S^-1 B`, where there are free variables.
    factor: Option<Cholesky>,
}

impl Linked {
    /// The metrics at these matrices of the groups, or why there are none: the group, from 0, and a text.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn new(
        workers: &Workers,
        bits: u32,
        groups: &[Rounded],
        seen: Vec<FactoredMetric>,
    ) -> Result<std::result::Result<Linked, (usize, String)>> {
        let k = Arithmetic { ctx: workers.all(), bits };
        let (mut metrics, mut spread) = (Vec::with_capacity(groups.len()), Vec::with_capacity(groups.len()));
        for (number, (group, seen)) in groups.iter().zip(seen).enumerate() {
            let metric = match Metric::new(workers, bits, &group.constraints, seen)? {
                Ok(metric) => metric,
                Err(message) => return Ok(Err((number, message))),
            };
            if group.free.cols() > 0 {
                spread.push(metric.substituted(k, &group.free, Op::NoTranspose)?);
            }
            metrics.push(metric);
        }
        if spread.is_empty() {
            return Ok(Ok(Linked { metrics, spread, factor: None }));
        }
        let factor = factored(k, &gram(k, spread.iter())?)?;
        let dependent = || (0, "the equations of the free variables depend on each other".to_string());
        Ok(factor.map(|factor| Linked { metrics, spread, factor: Some(factor) }).ok_or_else(dependent))
    }

    /// The metric of a group.
    pub fn of_group(&self, number: usize) -> &Metric {
        &self.metrics[number]
    }

    /// The least changes of x, group by group, with `B^T dx = rest`, and the square of their size.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn primal(&self, k: Arithmetic<'_>, rest: &Matrix) -> Result<(Vec<Matrix>, Float)> {
        let Some(factor) = &self.factor else { return Ok((Vec::new(), Float::new(k.bits))) };
        let t = factor.solve(k.ctx, rest, k.bits)?;
        let change = |(spread, metric): (&Matrix, &Metric)| {
            let image = gemv_with(k.ctx, spread, &t, k.bits, &GemvOptions::new())?.result;
            metric.substituted(k, &image, Op::Transpose)
        };
        let changes = self.spread.iter().zip(&self.metrics).map(change).collect::<Result<_>>()?;
        Ok((changes, k.inner(rest, &t)?))
    }

    /// The least W and its y with `A_p . W + (B dy)_p` the residuals.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn dual(&self, k: Arithmetic<'_>, rest: &[Matrix]) -> Result<DualChange> {
        let forward = rest.iter().zip(&self.metrics).map(|(rest, metric)| metric.substituted(k, rest, Op::NoTranspose));
        let mut forward = forward.collect::<Result<Vec<_>>>()?;
        let mut dy = None;
        if let Some(factor) = &self.factor {
            let mut sum = Matrix::zeros(self.spread[0].cols(), 1, k.bits)?;
            for (spread, forward) in self.spread.iter().zip(&forward) {
                let options = GemvOptions::new().op(Op::Transpose).accumulate(sum.view());
                sum = gemv_with(k.ctx, spread, forward, k.bits, &options)?.result;
            }
            let change = factor.solve(k.ctx, &sum, k.bits)?;
            let minus = Float::with_val(2, -1);
            for (spread, forward) in self.spread.iter().zip(&mut forward) {
                let options = GemvOptions::new().alpha(&minus).accumulate(forward.view());
                *forward = gemv_with(k.ctx, spread, &change, k.bits, &options)?.result;
            }
            dy = Some(change);
        }
        let mut square = Float::new(k.bits);
        for forward in &forward {
            square += k.inner(forward, forward)?;
        }
        let t =
            forward.iter().zip(&self.metrics).map(|(forward, metric)| metric.substituted(k, forward, Op::Transpose));
        Ok(DualChange { t: t.collect::<Result<_>>()?, dy, square })
    }
}

/// The sum of `V^T V`.
///
/// # Errors
/// The errors of the library.
pub fn gram<'a>(k: Arithmetic<'_>, parts: impl Iterator<Item = &'a Matrix> + Clone) -> Result<Matrix> {
    let cols = parts.clone().map(Matrix::cols).next().unwrap_or(0);
    let mut all = Matrix::zeros(parts.clone().map(Matrix::rows).sum(), cols, k.bits)?;
    let mut first = 0;
    for part in parts {
        let place = first..first + part.rows();
        first = place.end;
        all.view_mut().block(place, 0..cols)?.copy_from(part);
    }
    let options = SyrkOptions::new().accuracy(Accuracy::Entrywise);
    Ok(syrk_with(k.ctx, &all, k.bits, &options)?.result.into_matrix())
}

/// `A_p . M` of a group, a column.
///
/// # Errors
/// The errors of the library's products.
pub fn pairings(k: Arithmetic<'_>, constraints: &Constraints, blocks: &[Block]) -> Result<Matrix> {
    match constraints {
        Constraints::Sampled(sampled) => {
            let mut sum = vec![Float::new(k.bits); sampled.variables()];
            for (cone, block) in blocks.iter().enumerate() {
                let part = sampled.pairings(k, cone, block)?;
                sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
            }
            Matrix::from_floats(sum.len(), 1, k.bits, &sum)
        }
        Constraints::Sparse(sparse) => {
            let numbers = blocks.iter().enumerate();
            let numbers = numbers.map(|(cone, block)| sparse.numbers(k, cone, &Summand { block, product: None }));
            sparse.paired(k, &numbers.collect::<Result<Vec<_>>>()?)
        }
        Constraints::Scalars(scalars) => {
            let numbers = blocks.iter().flat_map(|block| scalars.pairings(k, block)).collect::<Vec<_>>();
            Matrix::from_floats(numbers.len(), 1, k.bits, &numbers)
        }
    }
}
