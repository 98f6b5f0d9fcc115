//! An upper bound from a primal point: x is moved onto `B^T x = b`, and `A(x) - C` factored.

use super::equations::{correction_square, independent};
use super::floats::{
    bits_within, exponent, fixed_column, log2_above, rational_exponent, rounded_column, rounded_exact, shown,
    to_rational,
};
use super::metric::{CORRECTIONS, FactoredMetric, Linked, METRICS, Rounded, gram, part_of, size_of};
use super::{Attempt, BoundTask};
use crate::block::Block;
use crate::numbers::Arithmetic;
use crate::proof::{Fixed, GramProof, UpperProof, Witness};
use rug::Float;
use sunzi::blas::{GemvOptions, gemv_with};
use sunzi::{Matrix, Op, Result};

/// Bits by which corrections stay below the largest that X allows.
const SLACK_BITS: i64 = 24;

/// The primal equations, rounded.
struct PrimalEquations<'a> {
    task: &'a BoundTask<'a>,
    k: Arithmetic<'a>,
    groups: Vec<Rounded>,
    /// b.
    objective: Matrix,
}

impl<'a> PrimalEquations<'a> {
    fn new(task: &'a BoundTask<'a>) -> Result<PrimalEquations<'a>> {
        let (program, k) = (task.program, task.arithmetic());
        let count = program.free_variables();
        let groups = program.groups.iter().map(|group| Rounded::new(group, count, k.bits)).collect::<Result<_>>()?;
        Ok(PrimalEquations { task, k, groups, objective: rounded_exact(&program.objective, count, 1, k.bits)? })
    }

    /// The blocks of X, group by group.
    fn slacks(&self, x: &[Matrix]) -> Result<Vec<Vec<Block>>> {
        let k = self.k;
        let of_group = |(group, x): (&Rounded, &Matrix)| {
            let constraints = &group.constraints;
            let cones = 0..constraints.shapes().len();
            let block = |cone| constraints.less_constant(cone, constraints.weighted_sum(k, cone, x)?);
            cones.map(block).collect::<Result<Vec<_>>>()
        };
        self.groups.iter().zip(x).map(of_group).collect()
    }

    /// `b - B^T x`.
    fn rest(&self, x: &[Matrix]) -> Result<Matrix> {
        let minus = Float::with_val(2, -1);
        let mut rest = self.objective.clone();
        for (group, x) in self.groups.iter().zip(x) {
            let options = GemvOptions::new().op(Op::Transpose).alpha(&minus).accumulate(rest.view());
            rest = gemv_with(self.k.ctx, &group.free, x, self.k.bits, &options)?.result;
        }
        Ok(rest)
    }

    /// The metrics at these blocks of X.
    fn linked(&self, slacks: &[Vec<Block>]) -> Result<Attempt<Linked>> {
        let mut all = Vec::with_capacity(slacks.len());
        for (number, slacks) in slacks.iter().enumerate() {
            match FactoredMetric::from_primal(self.k, slacks)? {
                Ok(seen) => all.push(seen),
                Err(at) => return Ok(Err(self.task.named(number, &indefinite(at)))),
            }
        }
        let linked = Linked::new(self.task.workers, self.k.bits, &self.groups, all)?;
        Ok(linked.map_err(|(number, message)| self.task.named(number, &message)))
    }

    /// Moves x onto the equations by changes in the metric of X, made anew where they are larger than X has room for.
    fn project(&self, x: &mut [Matrix]) -> Result<Attempt<()>> {
        let k = self.k;
        for _ in 0..METRICS {
            let linked = match self.linked(&self.slacks(x)?)? {
                Ok(linked) => linked,
                Err(message) => return Ok(Err(message)),
            };
            let mut before = i64::MAX;
            for _ in 0..CORRECTIONS {
                let (changes, square) = linked.primal(k, &self.rest(x)?)?;
                let size = size_of(&square);
                if size >= before.saturating_sub(1) {
                    return Ok(Ok(()));
                }
                before = size;
                let part = part_of(size);
                for (x, change) in x.iter_mut().zip(&changes) {
                    *x = k.sum(&part, change, x)?;
                }
                if part < 1 {
                    break;
                }
            }
            if part_of(before) == 1 {
                break;
            }
        }
        Ok(Ok(()))
    }

    /// Proofs that each block is positive definite, group by group.
    fn shown(&self, slacks: &[Vec<Block>]) -> Result<Attempt<Vec<Vec<Witness>>>> {
        let mut found = Vec::with_capacity(slacks.len());
        for (number, slacks) in slacks.iter().enumerate() {
            let mut witnesses = Vec::with_capacity(slacks.len());
            for (cone, block) in slacks.iter().enumerate() {
                let witness = match block {
                    Block::Dense(matrix) => shown(self.k, matrix)?,
                    Block::Diagonal(diagonal) => {
                        let least = (0..diagonal.rows()).map(|row| diagonal.float(row, 0)).min_by(Float::total_cmp);
                        let witness = |least| Witness { exponent: exponent(&least) - 2, factor: Fixed::zeros(0, 0) };
                        least.filter(|least| *least > 0).map(witness)
                    }
                };
                match witness {
                    Some(witness) => witnesses.push(witness),
                    None => return Ok(Err(self.task.named(number, &indefinite(cone)))),
                }
            }
            found.push(witnesses);
        }
        Ok(Ok(found))
    }

    /// The exponent of corrections of x that no block of X feels.
    fn room(&self, blocks: &[Vec<Witness>]) -> i64 {
        let mut least = i64::MAX;
        for (group, blocks) in self.task.program.groups.iter().zip(blocks) {
            for (cone, witness) in blocks.iter().enumerate() {
                let sum = rational_exponent(&group.square_sum(cone));
                least = least.min(witness.exponent - 2 - sum.div_euclid(2) - 1);
            }
        }
        least
    }
}

/// The message for block `at`, from 0.
fn indefinite(at: usize) -> String {
    format!("block {} of X = A(x) - C is not positive definite", at + 1)
}

/// `D B^T B D` for the D that a proof states, rounded: the matrix of the proof.
fn free_proof(side: &PrimalEquations<'_>) -> Result<Attempt<GramProof>> {
    independent(side.k, &gram(side.k, side.groups.iter().map(|group| &group.free))?)
}

/// A proof that there is a feasible point near x, which is nearly on the equations.
fn stated(side: &PrimalEquations<'_>, x: &[Matrix]) -> Result<Attempt<UpperProof>> {
    let (task, k) = (side.task, side.k);
    let gram = match task.program.free_variables() {
        0 => None,
        _ => match free_proof(side)? {
            Ok(gram) => Some(gram),
            Err(message) => return Ok(Err(message)),
        },
    };
    let blocks = match side.shown(&side.slacks(x)?)? {
        Ok(blocks) => blocks,
        Err(message) => return Ok(Err(message)),
    };
    // Rounding changes X, and leaves residuals of the equations that the correction takes away: both by less than X
    // has room for.
    let condition = gram.as_ref().map_or(0, |gram| (-gram.witness.exponent).max(0).div_euclid(2) + 1);
    let rows = x.iter().map(Matrix::rows).sum::<usize>() + task.program.free_variables();
    let wanted = SLACK_BITS + condition + 2 * log2_above(rows) - side.room(&blocks);
    let bits = bits_within(wanted.max(i64::from(task.bits) + 64));
    let x = x.iter().map(|x| fixed_column(x, bits)).collect::<Vec<_>>();
    let rounded = x.iter().map(|x| rounded_column(x, k.bits)).collect::<Result<Vec<_>>>()?;
    let blocks = match side.shown(&side.slacks(&rounded)?)? {
        Ok(blocks) => blocks,
        Err(message) => return Ok(Err(message)),
    };
    let square = match &gram {
        Some(gram) => correction_square(gram, &side.rest(&rounded)?, |_| 1),
        None => Float::new(64),
    };
    let (met, room) = (exponent(&square).div_euclid(2) + 1, side.room(&blocks));
    if met > room {
        return Ok(Err(format!(
            "to meet the primal equations exactly, x may have to change by 2^{met}, but X is known to stay positive \
             definite only for changes of at most 2^{room}"
        )));
    }
    let costs = Float::with_val(64, task.program.costs_square());
    let lost = to_rational(&((square * costs).sqrt() * 2u32));
    let claim = task.rounded_up(task.program.primal_objective(&x) + lost);
    Ok(Ok(UpperProof { claim, x, gram, blocks }))
}

/// An upper bound from the primal point of `task`, or why there is none.
///
/// # Errors
/// The errors of the library.
pub fn prove(task: &BoundTask<'_>) -> Result<Attempt<UpperProof>> {
    let (side, mut x) = (PrimalEquations::new(task)?, task.point.x.clone());
    if task.program.free_variables() > 0
        && let Err(message) = side.project(&mut x)?
    {
        return Ok(Err(message));
    }
    stated(&side, &x)
}
