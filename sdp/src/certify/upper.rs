//! An upper bound from a primal point: x is moved onto `B^T x = b`, and `A(x) - C` factored.

use super::equations::Equations;
use super::floats::{
    bits_within, half_of_least_eigenvalue, nearest, rational_exponent, root_above, scaled_matrix, to_integer, witness,
};
use super::{Attempt, Task};
use crate::proof::{Fixed, Scaled, Shape, UpperProof, Witness, is_inside, packed, upper_value};
use rug::Rational;
use sunzi::Result;

/// Attempts at the bits of a factor, and bits more for each.
const ATTEMPTS: u32 = 4;
const MORE_BITS: u32 = 64;

/// Corrections of a point, at most.
const CORRECTIONS: u32 = 12;

/// Moves x onto the equations, as far as its bits go.
fn project(task: &Task<'_>, equations: &Equations, x: &mut [Fixed]) -> Result<()> {
    let (program, mut before) = (task.program, i64::MAX);
    let count = program.free_variables();
    for _ in 0..CORRECTIONS {
        let rest = program.free_rest(x);
        let size = equations.size(&rest);
        if size >= before - 1 {
            break;
        }
        before = size;
        let s = equations.solve(task.ctx, &rest, x[0].bits + 64)?;
        for (group, x) in program.groups.iter().zip(x.iter_mut()) {
            for (row, value) in x.values.iter_mut().enumerate() {
                *value += nearest(&group.free.dot(row * count, &s), x.bits);
            }
        }
    }
    Ok(())
}

/// What shows that a block of X is positive definite.
fn prove_block(task: &Task<'_>, block: &Scaled, shape: Shape) -> Result<Attempt<Witness>> {
    if shape.diagonal {
        let least = (0..shape.order).map(|at| block.get(at)).min().filter(|least| *least > 0);
        let Some(least) = least else { return Ok(Err("is not positive".into())) };
        let exponent = rational_exponent(&least) - 2;
        return Ok(Ok(Witness { exponent, factor: Fixed::zeros(0, 0) }));
    }
    let scales = vec![0; shape.order];
    let bits = 2 * task.bits + 64;
    let matrix = scaled_matrix(block, &scales, bits)?;
    let Some(exponent) = half_of_least_eigenvalue(task.ctx, &matrix)? else {
        return Ok(Err("is not positive definite".into()));
    };
    let diagonal = (0..shape.order).map(|row| rational_exponent(&block.get(packed(row, row))));
    let size = diagonal.max().unwrap_or(0).max(0) + 2 * i64::from(usize::BITS - shape.order.leading_zeros());
    for attempt in 0..ATTEMPTS {
        let fraction_bits = bits_within(size - exponent + 8 + i64::from(attempt * MORE_BITS));
        let wide = bits_within(i64::from(fraction_bits) + size + 32);
        let matrix = if wide > bits { scaled_matrix(block, &scales, wide)? } else { matrix.clone() };
        let Some(witness) = witness(task.ctx, &matrix, exponent, fraction_bits)? else { break };
        if is_inside(block, shape, &witness, task.ctx.threads()) {
            return Ok(Ok(witness));
        }
    }
    Ok(Err("has no factor that shows that it is positive definite".into()))
}

/// An upper bound from the primal point of `task`, or why there is none.
///
/// # Errors
/// Those of the library.
pub fn prove(task: &Task<'_>) -> Result<Attempt<UpperProof>> {
    let (program, point) = (task.program, task.point);
    let bits = 2 * task.bits + 64;
    let fixed = |x: &sunzi::Matrix| {
        let values = (0..x.rows()).map(|row| to_integer(&x.float(row, 0), bits)).collect();
        Fixed { bits, values }
    };
    let mut x = point.x.iter().map(fixed).collect::<Vec<_>>();
    let mut gram = None;
    if program.free_variables() > 0 {
        match Equations::new(task.ctx, program.free_gram(), task.bits + 64)? {
            Err(message) => return Ok(Err(message)),
            Ok(equations) => {
                project(task, &equations, &mut x)?;
                gram = Some(equations.proof);
            }
        }
    }
    let mut blocks = Vec::with_capacity(program.groups.len());
    for (number, (group, x)) in program.groups.iter().zip(&x).enumerate() {
        let mut witnesses = Vec::new();
        for (cone, &shape) in group.shapes().iter().enumerate() {
            match prove_block(task, &group.slack(cone, x), shape)? {
                Ok(witness) => witnesses.push(witness),
                Err(message) => return Ok(Err(task.named(number, &format!("block {} of X {message}", cone + 1)))),
            }
        }
        blocks.push(witnesses);
    }
    let mut proof = UpperProof { claim: Rational::new(), x, gram, blocks };
    Ok(upper_value(program, &proof, task.ctx.threads()).map(|(value, square)| {
        proof.claim = task.rounded_up(value + root_above(&square));
        proof
    }))
}
