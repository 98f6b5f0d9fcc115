//! The memory that the search for a proof takes at most, from the sizes of the program and the bits of its numbers.
//!
//! The numbers of a proof are integers of a library in C: they are counted as that library allocates them. Their bits
//! depend on the program, and where a point is only just feasible, on the point; the additional bits in that case are
//! not counted.

use super::work_bits;
use crate::block::Shape;
use crate::iterate::of_iteration;
use crate::problem::{Constraints, Problem};
use crate::proof::{Program, triangle};
use sunzi::plans::plan_cholesky;
use sunzi::{Accuracy, CholeskyOptions, Context, Error, Matrix, Result};

/// Bytes of an integer in addition to its limbs: itself, the overhead of the allocator, and a limb to spare.
const INTEGER_BYTES: u64 = 40;

/// Bits of the bound of an eigenvalue, and of sums, in addition to those that are counted.
const SPARE_BITS: u32 = 192;

/// Bits that points and bases of a proof have for each bit of the solver's, where the program is one of polynomials.
const SAMPLING_FACTOR: u32 = 6;

fn integers(count: usize, bits: u32) -> u64 {
    count as u64 * (INTEGER_BYTES + 8 * u64::from(bits.div_ceil(64)))
}

/// The factor of a matrix of `bits` bits, copies of the matrix, and its least eigenvalue.
fn factored(ctx: &Context, order: usize, bits: u32) -> Result<u64> {
    let planned = |bits, range| {
        plan_cholesky(ctx, order, bits, &CholeskyOptions::new().accuracy(Accuracy::Entrywise).range_bits(range))
    };
    let plan = match planned(bits, bits / 2) {
        Err(Error::Precision { .. }) => match planned(bits, 0) {
            // A factor of more bits is refused when it is requested.
            Err(Error::Precision { maximum_bits, .. }) => planned(maximum_bits as u32, 0)?,
            other => other?,
        },
        other => other?,
    };
    // The matrix, the shifted one, a copy and the vectors of Lanczos' method.
    Ok(plan.planned_bytes + 3 * Matrix::bytes_for(order, order, bits) + 8 * (order * (order + order.min(256))) as u64)
}

/// A Gram matrix of numbers of `numbers` bits, its factor, and the check of it.
fn equations(ctx: &Context, order: usize, bits: u32, numbers: u32) -> Result<u64> {
    let count = triangle(order);
    let exact = 2 * integers(count, 2 * numbers + SPARE_BITS) + 3 * integers(count, 2 * bits + SPARE_BITS);
    Ok(exact + factored(ctx, order, work_bits(bits))?)
}

/// The largest number of bytes that [`super::certify`] needs in addition to the program, the problem and the point.
///
/// It is an upper bound if no attempt needs more bits than the first one, which holds if the point is well inside the
/// cone. If the context has a limit ([`Context::memory_bytes`]), the calls of the library stay below it.
///
/// # Errors
/// The errors of the library's plans.
pub fn certificate_bytes(ctx: &Context, program: &Program, problem: &Problem) -> Result<u64> {
    let ctx = &ctx.with_memory_bytes(None);
    let bits = problem.precision_bits;
    let numbers = match program.polynomials.is_empty() {
        true => program.largest_bits(),
        false => SAMPLING_FACTOR * bits,
    };
    let (mut proof, mut blocks, mut system) = (0, 0, 0);
    for group in &problem.groups {
        let (variables, free) = (group.costs.rows(), group.free.cols());
        let order = match &group.constraints {
            Constraints::Sampled(sampled) => sampled.points(),
            Constraints::Sparse(_) | Constraints::Scalars(_) => variables,
        };
        let mut together = 0;
        for shape in group.constraints.shapes() {
            let (count, own) = match shape {
                Shape::Diagonal(order) => (order, 0),
                Shape::Dense(order) => (triangle(order), factored(ctx, order, work_bits(bits))?),
            };
            // Y, its correction, and factors of both sides; and while a factor is checked, its products.
            together += 5 * integers(count, 2 * bits + SPARE_BITS);
            blocks = blocks.max(own + 3 * integers(count, 4 * bits + numbers + SPARE_BITS));
        }
        // Right sides, solutions and residuals of the equations.
        together += integers(4 * variables, 2 * bits + 2 * numbers + SPARE_BITS);
        if program.polynomials.is_empty() {
            proof += together;
        } else {
            proof += together + integers(variables * (free + 2), numbers) + integers(order * order, numbers);
        }
        let own = equations(ctx, order, bits, numbers)?;
        // The proof of both sides keeps a factor of it.
        proof += integers(triangle(order), 2 * bits + SPARE_BITS);
        system = system.max(own);
    }
    if problem.free_variables() > 0 {
        system = system.max(equations(ctx, problem.free_variables(), bits, numbers)?);
    }
    // The points are moved onto the equations with an iteration's Schur complement. The text has two letters for each
    // byte, and is combined from parts.
    let metrics = match of_iteration(ctx, problem, work_bits(bits)) {
        // Where the library has no such products there are no metrics either.
        Err(Error::Precision { .. }) => 2 * of_iteration(ctx, problem, bits)?,
        other => other?,
    };
    Ok(2 * proof + metrics + blocks.max(system))
}
