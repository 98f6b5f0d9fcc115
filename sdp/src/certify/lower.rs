//! A lower bound from a dual point: Y is moved onto the equations, and written as `L L^T + tau I`.

use super::equations::{Equations, add};
use super::floats::{bits_within, fixed_matrix, half_of_least_eigenvalue, rational_exponent, to_integer, witness};
use super::{Attempt, Task};
use crate::block::Block;
use crate::proof::{
    Fixed, Group, LowerGroup, LowerProof, Shape, Witness, lower_group, lower_value, packed, power_of_two,
};
use rug::Rational;
use sunzi::Result;

/// Attempts at the bits of a factor, and bits more for each.
const ATTEMPTS: u32 = 4;
const MORE_BITS: u32 = 96;

/// Corrections of a point, at most.
const CORRECTIONS: u32 = 12;

/// What a factor may be off by, beside tau.
const SLACK_BITS: i64 = 24;

/// The lower triangle of a block, or its diagonal.
pub fn fixed_block(block: &Block, shape: Shape, bits: u32) -> Fixed {
    let stored = block.stored();
    let mut values = Vec::with_capacity(shape.stored());
    for row in 0..shape.order {
        let cols = if shape.diagonal { 0..1 } else { 0..row + 1 };
        values.extend(cols.map(|col| to_integer(&stored.float(row, col), bits)));
    }
    Fixed { bits, values }
}

/// The exponent of the least number on a diagonal, or of half the least eigenvalue of a block.
fn room(task: &Task<'_>, block: &Fixed, shape: Shape) -> Result<Option<i64>> {
    if shape.diagonal {
        let least = block.values.iter().min().filter(|least| **least > 0);
        return Ok(least.map(|least| i64::from(least.significant_bits()) - 2 - i64::from(block.bits)));
    }
    half_of_least_eigenvalue(task.ctx, &fixed_matrix(block, shape.order, task.bits + block.bits)?)
}

/// Moves the blocks of a group onto its equations, as far as their bits go.
fn project(task: &Task<'_>, group: &Group, equations: &Equations, right: &[Rational], y: &mut [Fixed]) -> Result<()> {
    let mut before = i64::MAX;
    for _ in 0..CORRECTIONS {
        let mut rest = right.to_vec();
        rest.iter_mut().zip(group.pairings(y)).for_each(|(rest, pairing)| *rest -= pairing);
        let size = equations.size(&rest);
        if size >= before - 1 {
            break;
        }
        before = size;
        let t = equations.solve(task.ctx, &rest, y[0].bits + 64)?;
        y.iter_mut().enumerate().for_each(|(cone, block)| add(block, &group.weighted_sum(cone, &t)));
    }
    Ok(())
}

/// The blocks as `L L^T + tau I`, with so many bits more than they need at least.
fn factors(task: &Task<'_>, y: &[Fixed], rooms: &[(Shape, i64)], more: u32) -> Result<Attempt<Vec<Witness>>> {
    let least = rooms.iter().map(|(_, exponent)| *exponent).min().unwrap_or(0);
    let mut found = Vec::with_capacity(y.len());
    for (at, (block, &(shape, exponent))) in y.iter().zip(rooms).enumerate() {
        if shape.diagonal {
            found.push(Witness { exponent, factor: block.clone() });
            continue;
        }
        let largest = (0..shape.order).map(|row| block.values[packed(row, row)].significant_bits()).max().unwrap_or(0);
        let size =
            (i64::from(largest) - i64::from(block.bits)).max(0) + i64::from(usize::BITS - shape.order.leading_zeros());
        let wanted = (SLACK_BITS + size - least).max(i64::from(task.bits) * 3 / 4) + i64::from(more);
        let bits = bits_within(wanted);
        let matrix = fixed_matrix(block, shape.order, bits_within(i64::from(bits) + size + 32))?;
        match witness(task.ctx, &matrix, exponent, bits)? {
            Some(witness) => found.push(witness),
            None => return Ok(Err(format!("block {} of Y has no room", at + 1))),
        }
    }
    Ok(Ok(found))
}

/// What shows that the dual equations of a group have a solution near these blocks.
fn prove_group(task: &Task<'_>, group: &Group, y: &Fixed, blocks: &[Block]) -> Result<Attempt<LowerGroup>> {
    let equations = match Equations::new(task.ctx, group.gram(), task.bits + 64)? {
        Ok(equations) => equations,
        Err(message) => return Ok(Err(message)),
    };
    let (shapes, right) = (group.shapes(), group.rest(y));
    let convert = |(block, &shape): (&Block, &Shape)| fixed_block(block, shape, 2 * task.bits + 64);
    let mut fixed = blocks.iter().zip(&shapes).map(convert).collect::<Vec<_>>();
    project(task, group, &equations, &right, &mut fixed)?;
    let mut rooms = Vec::with_capacity(shapes.len());
    for (at, (block, &shape)) in fixed.iter().zip(&shapes).enumerate() {
        match room(task, block, shape)? {
            Some(exponent) => rooms.push((shape, exponent)),
            None => return Ok(Err(format!("block {} of Y is not positive definite on the equations", at + 1))),
        }
    }
    let mut refusal = "no number of bits was enough".to_string();
    for attempt in 0..ATTEMPTS {
        let blocks = match factors(task, &fixed, &rooms, attempt * MORE_BITS)? {
            Ok(blocks) => blocks,
            Err(message) => return Ok(Err(message)),
        };
        let part = LowerGroup { gram: equations.proof.clone(), blocks };
        match lower_group(group, y, &part, task.ctx.threads()) {
            Ok((_, square)) if rooms.iter().all(|(_, exponent)| square <= power_of_two(2 * exponent - 8)) => {
                return Ok(Ok(part));
            }
            Ok((_, square)) => {
                let short = rational_exponent(&square) / 2;
                refusal = format!("the equations are met to 2^{short} only, which is more than Y has room for");
            }
            Err(message) => refusal = message,
        }
    }
    Ok(Err(refusal))
}

/// A lower bound from the dual point of `task`, or why there is none.
///
/// # Errors
/// Those of the library.
pub fn prove(task: &Task<'_>) -> Result<Attempt<LowerProof>> {
    let (program, point) = (task.program, task.point);
    let numbers = 0..program.free_variables();
    let bits = task.bits + 64;
    let y = Fixed { bits, values: numbers.map(|row| to_integer(&point.y.float(row, 0), bits)).collect() };
    let mut groups = Vec::with_capacity(program.groups.len());
    let mut first = 0;
    for (number, group) in program.groups.iter().enumerate() {
        let count = group.shapes().len();
        match prove_group(task, group, &y, &point.dual[first..first + count])? {
            Ok(part) => groups.push(part),
            Err(message) => return Ok(Err(task.named(number, &message))),
        }
        first += count;
    }
    let mut proof = LowerProof { claim: Rational::new(), y, groups };
    Ok(lower_value(program, &proof, task.ctx.threads()).map(|(value, square)| {
        proof.claim = task.rounded_down(value - super::floats::root_above(&square));
        proof
    }))
}
