//! A lower bound from a dual point: Y is moved onto the equations, and written as `L L^T + tau I`.

use super::equations::{correction_square, independent};
use super::feasible::{Dual, indefinite_on_equations};
use super::floats::{
    bits_within, exponent, fixed_column, least_eigenvalue, log2_above, power, product, rounded_column,
    rounded_symmetric, to_rational, witness,
};
use super::metric::{CORRECTIONS, Linked, Metric, pairings, size_of};
use super::{Attempt, BoundTask};
use crate::block::Block;
use crate::numbers::Arithmetic;
use crate::problem::Constraints;
use crate::proof::{Fixed, Gram, GramProof, LowerGroup, LowerProof, Witness, dual_blocks};
use rug::Float;
use sunzi::{Matrix, Result};

/// Attempts at the bits of a factor.
const ATTEMPTS: u32 = 4;

/// Bits by which the errors of a factor are to lie below tau.
const SLACK_BITS: i64 = 24;

/// The dual equations of a group, rounded.
struct DualEquations<'a> {
    k: Arithmetic<'a>,
    constraints: &'a Constraints,
    /// `c - B y`.
    right: Matrix,
    gram: Gram,
    independent: GramProof,
}

/// The exponent of a number below all of a diagonal, or below the least eigenvalue of a block.
fn room(k: Arithmetic<'_>, block: &Block) -> Result<Option<i64>> {
    match block {
        Block::Diagonal(diagonal) => {
            let least = (0..diagonal.rows()).map(|row| diagonal.float(row, 0)).min_by(Float::total_cmp);
            Ok(least.filter(|least| *least > 0).map(|least| exponent(&least) - 2))
        }
        Block::Dense(matrix) => Ok(least_eigenvalue(k, matrix)?.map(|exponent| exponent - 1)),
    }
}

impl DualEquations<'_> {
    /// Moves the blocks onto the equations of the y that is stated, by changes in their metric.
    fn project(&self, metric: &Metric, y: &mut [Block]) -> Result<()> {
        let (k, one) = (self.k, Float::with_val(2, 1));
        let mut before = i64::MAX;
        for _ in 0..CORRECTIONS {
            let rest = k.difference(&self.right, &pairings(k, self.constraints, y)?)?;
            let (t, square) = metric.solve(k, &rest)?;
            let size = size_of(&square);
            if size >= before.saturating_sub(1) {
                break;
            }
            before = size;
            for (cone, block) in y.iter_mut().enumerate() {
                *block = block.plus(k, &one, &metric.change(k, self.constraints, cone, &t)?)?;
            }
        }
        Ok(())
    }

    /// A block as `L L^T + tau I`, with `bits` bits behind the point.
    fn factor(&self, block: &Block, exponent: i64, bits: u32) -> Result<Option<Witness>> {
        match block {
            Block::Diagonal(diagonal) => Ok(Some(Witness { exponent, factor: fixed_column(diagonal, bits) })),
            Block::Dense(matrix) => witness(self.k, matrix, exponent, bits),
        }
    }

    /// About the square of the correction that blocks in this form need.
    fn square(&self, blocks: &[Witness], like: &[Block]) -> Result<Float> {
        let stated = blocks.iter().zip(like).map(|(witness, like)| match like {
            Block::Diagonal(_) => Ok(Block::Diagonal(rounded_column(&witness.factor, self.k.bits)?)),
            Block::Dense(matrix) => {
                let mut whole = product(self.k, &witness.factor, matrix.rows())?;
                add_identity(&mut whole, &power(witness.exponent))?;
                Ok(Block::Dense(whole))
            }
        });
        let stated = stated.collect::<Result<Vec<_>>>()?;
        let rest = self.k.difference(&self.right, &pairings(self.k, self.constraints, &stated)?)?;
        Ok(correction_square(&self.independent, &rest, |row| self.gram.repeats[row / self.gram.order]))
    }

    /// Bits behind the point of factors from which corrections of `2^least` follow, about: with the digits lost to the
    /// size of the factors and to the condition of the equations.
    fn fraction_bits(&self, y: &[Block], least: i64) -> i64 {
        let largest = y.iter().map(|block| exponent(&block.largest())).max().unwrap_or(0);
        let rows = y.iter().map(|block| block.shape().order()).sum::<usize>() + self.right.rows();
        let condition = (-self.independent.witness.exponent).max(0).div_euclid(2) + 1;
        SLACK_BITS + largest.max(0) + log2_above(rows) + condition - least
    }

    /// The blocks as factors whose corrections leave them positive definite.
    fn stated(&self, y: &[Block], rooms: &[i64]) -> Result<Attempt<Vec<Witness>>> {
        let least = rooms.iter().copied().min().unwrap_or(0);
        let (mut bits, mut before) = (self.fraction_bits(y, least), i64::MAX);
        let mut refusal = String::new();
        for _ in 0..ATTEMPTS {
            let mut found = Vec::with_capacity(y.len());
            for (at, (block, &exponent)) in y.iter().zip(rooms).enumerate() {
                match self.factor(block, exponent, bits_within(bits))? {
                    Some(witness) => found.push(witness),
                    None => {
                        let number = at + 1;
                        return Ok(Err(format!(
                            "block {number} of Y is so close to singular that its factorisation fails"
                        )));
                    }
                }
            }
            let met = exponent(&self.square(&found, y)?).div_euclid(2) + 1;
            if met <= least - 4 {
                return Ok(Ok(found));
            }
            refusal = format!(
                "to meet the dual equations exactly, Y may have to change by 2^{met}, but it is known to stay positive \
                 definite only for changes of at most 2^{}",
                least - 4
            );
            if met >= before {
                break;
            }
            (bits, before) = (bits + (met - least).max(0) + SLACK_BITS, met);
        }
        Ok(Err(refusal))
    }
}

fn add_identity(matrix: &mut Matrix, tau: &Float) -> Result<()> {
    let bits = matrix.precision_bits();
    (0..matrix.rows()).try_for_each(|at| {
        let sum = Float::with_val(bits, matrix.float(at, at) + tau);
        matrix.set_float(at, at, &sum)
    })
}

/// A proof that the dual equations of a group have a solution near its blocks, and about the square of the distance.
fn prove_group(
    task: &BoundTask<'_>,
    number: usize,
    y: &Fixed,
    dual: &Dual,
    linked: &Linked,
) -> Result<Attempt<(LowerGroup, Float)>> {
    let (k, group) = (task.arithmetic(), &task.program.groups[number]);
    let gram = group.gram();
    let independent = match independent(k, &rounded_symmetric(&gram.matrix, gram.order, k.bits)?)? {
        Ok(independent) => independent,
        Err(message) => return Ok(Err(message)),
    };
    let right = group.rest(y).iter().map(|value| Float::with_val(k.bits, value)).collect::<Vec<_>>();
    let right = Matrix::from_floats(right.len(), 1, k.bits, &right)?;
    let side = DualEquations { k, constraints: &dual.groups[number].constraints, right, gram, independent };
    let mut moved = dual.blocks[number].clone();
    side.project(linked.of_group(number), &mut moved)?;
    let mut rooms = Vec::with_capacity(moved.len());
    for (at, block) in moved.iter().enumerate() {
        match room(k, block)? {
            Some(exponent) => rooms.push(exponent),
            None => {
                return Ok(Err(indefinite_on_equations(at)));
            }
        }
    }
    let found = match side.stated(&moved, &rooms)? {
        Ok(found) => found,
        Err(message) => return Ok(Err(message)),
    };
    let square = side.square(&found, &moved)?;
    Ok(Ok((LowerGroup { gram: side.independent, blocks: found }, square)))
}

/// A lower bound from the dual point of `task`, or why there is none.
///
/// # Errors
/// The errors of the library.
pub fn prove(task: &BoundTask<'_>) -> Result<Attempt<LowerProof>> {
    let program = task.program;
    let (dual, linked) = match Dual::on_equations(task)? {
        Ok(found) => found,
        Err(message) => return Ok(Err(message)),
    };
    let y = fixed_column(&dual.y, task.bits_of(&dual.y));
    let mut groups = Vec::with_capacity(program.groups.len());
    let mut value = program.constant.clone() + program.objective.dot(0, &y);
    let (mut corrections, mut constants) = (Float::new(64), Float::new(64));
    for (number, group) in program.groups.iter().enumerate() {
        match prove_group(task, number, &y, &dual, &linked)? {
            Ok((part, square)) => {
                value += group.constant_pairing(&dual_blocks(&group.shapes(), &part.blocks).unwrap_or_default());
                corrections += square;
                constants += Float::with_val(64, group.constant_square());
                groups.push(part);
            }
            Err(message) => return Ok(Err(task.named(number, &message))),
        }
    }
    // Twice the root, as the square is only approximate.
    let lost = to_rational(&((corrections * constants).sqrt() * 2u32));
    Ok(Ok(LowerProof { claim: task.rounded_down(value - lost), y, groups }))
}
