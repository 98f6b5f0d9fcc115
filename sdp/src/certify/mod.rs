//! Proofs of bounds from the results of the solver: guesses in floating-point numbers of the library, each confirmed by
//! the check of [`crate::proof`] before it counts.
//!
//! Design: docs/decisions/056-certificates.md. Independent of: how proofs are stored.

mod equations;
mod feasible;
mod floats;
mod lower;
mod memory;
mod metric;
mod sampling;
#[cfg(test)]
mod tests;
mod upper;

pub use memory::certificate_bytes;

use crate::iterate::{Point, cones};
use crate::numbers::Arithmetic;
use crate::problem::Problem;
use crate::proof::{Program, Proof, verify};
use crate::workers::Workers;
use rug::ops::{DivRounding, Pow};
use rug::{Integer, Rational};
use sunzi::{Context, Error, Matrix, Result};

/// The largest number of bits of a factorisation, unless the point has more: all kernels reach them.
const MOST_WORK_BITS: u32 = 4800;

/// Bits of all numbers that are made from a point of `bits` bits: a number that is small relative to the point still
/// has as many digits as the point.
fn work_bits(bits: u32) -> u32 {
    (2 * bits + 64).min(MOST_WORK_BITS).max(bits + 64)
}

/// Something that was shown, or why it was not.
type Attempt<T> = std::result::Result<T, String>;

/// The result of [`certify`].
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The proof, of at least one bound or ray; `None` if none was found.
    pub proof: Option<Proof>,
    /// The reason why there is no lower bound: a proof that no dual point is feasible, or why the attempt failed.
    pub without_lower: Option<String>,
    /// The reason why there is no upper bound: a proof that no primal point is feasible, or why the attempt failed.
    pub without_upper: Option<String>,
}

/// The data that a bound is made from.
#[derive(Clone, Copy)]
struct BoundTask<'a> {
    workers: &'a Workers,
    program: &'a Program,
    point: &'a Point,
    /// Bits of the point.
    bits: u32,
}

impl BoundTask<'_> {
    /// A message with the group, from 1, where there are several.
    fn named(&self, group: usize, message: &str) -> String {
        match self.program.groups.len() {
            1 => message.into(),
            _ => format!("group {}: {message}", group + 1),
        }
    }

    /// The arithmetic of all computations.
    fn arithmetic(&self) -> Arithmetic<'_> {
        Arithmetic { ctx: self.workers.all(), bits: work_bits(self.bits) }
    }

    /// Bits behind the point that leave each number of a column those of the point.
    fn bits_of(&self, column: &Matrix) -> u32 {
        let exponents = (0..column.rows()).filter_map(|row| column.float(row, 0).get_exp());
        let least = exponents.min().unwrap_or(0);
        floats::bits_within(i64::from(self.bits) + 64 + i64::from((-least).clamp(0, 3 * self.bits as i32)))
    }

    /// Digits behind the point that are kept of a bound.
    fn places(&self, value: &Rational) -> i64 {
        let digits = (f64::from(self.bits) * std::f64::consts::LOG10_2) as i64;
        let front =
            (floats::rational_exponent(value).clamp(-1 << 20, 1 << 20) as f64 * std::f64::consts::LOG10_2) as i64;
        digits - if *value == 0 { 0 } else { front }
    }

    /// The largest decimal with the digits that are kept of a bound that is at most `value`.
    fn rounded_down(&self, value: Rational) -> Rational {
        let places = self.places(&value);
        let power = Integer::from(10).pow(places.unsigned_abs() as u32);
        let (numerator, denominator) = value.into_numer_denom();
        match places >= 0 {
            true => Rational::from(((numerator * &power).div_floor(denominator), power)),
            false => Rational::from(numerator.div_floor(denominator * &power) * power),
        }
    }

    /// The smallest one that is at least `value`.
    fn rounded_up(&self, value: Rational) -> Rational {
        -self.rounded_down(-value)
    }
}

/// Proves bounds of the optimal value of `program`, from whose files `problem` was read, near a point of the solver.
///
/// A dual point gives a lower bound, a primal point an upper one; either may be missing. If a bound is missing, the
/// point of the other side is also tried as a ray, which proves that the program of this side is infeasible. Each bound
/// holds for the decimals in the files, regardless of rounding in the solver.
///
/// Shapes: `point` has the blocks of `problem`, at any precision. Accuracy: the point is moved onto the equations by
/// the smallest changes relative to Y and X, so a bound is found if the residuals of the equations are small enough for
/// the point to stay positive definite; it differs from the objective of the point by about the residuals, and is
/// rounded outwards to the digits of the precision. Cost, at twice the bits: for each side the cost of an iteration of
/// the solver, mainly its Schur complement; a Gram matrix of the equations of each group and its factor; two
/// factorisations of each block; then [`verify`], once for each side. Memory: [`certificate_bytes`] at most. Source:
/// docs/decisions/056-certificates.md, docs/decisions/071-proofs-beside-small-eigenvalues.md.
///
/// # Errors
/// [`Error::InvalidArgument`] if `program` and `problem` do not belong together; the errors of the library.
pub fn certify(ctx: &Context, program: &Program, problem: &Problem, point: &Point) -> Result<Certificate> {
    if program.polynomials.is_empty() {
        return certify_at(ctx, program, problem, point);
    }
    let nothing =
        |why: String| Ok(Certificate { proof: None, without_lower: Some(why.clone()), without_upper: Some(why) });
    let changes = match sampling::changes(ctx, problem)? {
        Ok(changes) => changes,
        Err(why) => return nothing(why),
    };
    let samplings = changes.iter().map(|change| change.sampling.clone()).collect::<Vec<_>>();
    let sampled = match program.at(&samplings) {
        Ok(sampled) => sampled,
        Err(why) => return nothing(why),
    };
    let mut found = certify_at(ctx, &sampled, problem, &sampling::changed(ctx, &changes, problem, point)?)?;
    if let Some(proof) = &mut found.proof {
        proof.samplings = samplings;
    }
    Ok(found)
}

/// The reason why there is no bound from the points of a side. A ray is the answer where it is proven; where it is not,
/// that is stated too, as it does not follow that the side has feasible points.
fn without(why: &str, is_empty: bool, side: &str) -> String {
    match is_empty {
        true => format!("no {side} point is feasible"),
        false => format!("{why}; it is not proven either that no {side} point is feasible"),
    }
}

/// As [`certify`], for a program with groups.
fn certify_at(ctx: &Context, program: &Program, problem: &Problem, point: &Point) -> Result<Certificate> {
    let shapes = program.groups.iter().flat_map(|group| group.shapes());
    let orders = shapes.map(|shape| shape.order);
    let is_same = orders.eq(cones(problem).iter().map(|cone| cone.shape.order()))
        && program.free_variables() == problem.free_variables()
        && program.groups.iter().map(|group| group.variables()).eq(problem.groups.iter().map(|g| g.costs.rows()));
    if !is_same {
        return Err(Error::InvalidArgument("the point belongs to another program than the one to be certified".into()));
    }
    let workers = Workers::new(ctx.clone())?;
    let task = BoundTask { workers: &workers, program, point, bits: problem.precision_bits };
    let wide = point.clone().rounded(work_bits(task.bits))?;
    let task = BoundTask { point: &wide, ..task };
    let empty = Proof::new(&program.digest);
    let holds = |proof: &Proof| verify(program, proof, ctx.threads()).map_err(|error| error.to_string());
    let of_lower = |lower| Proof { lower: Some(lower), ..empty.clone() };
    let of_upper = |upper| Proof { upper: Some(upper), ..empty.clone() };
    let lower = lower::prove(&task)?.map(of_lower).and_then(|proof| holds(&proof).map(|()| proof));
    let upper = upper::prove(&task)?.map(of_upper).and_then(|proof| holds(&proof).map(|()| proof));
    let mut proof = empty.clone();
    // Where one side has no point, a ray of the other side may show that it cannot have any.
    if upper.is_err() {
        let ray = lower::prove(&BoundTask { program: &program.without_costs(), ..task })?;
        let ray = Proof { no_primal: ray.ok(), ..empty.clone() };
        proof.no_primal = ray.no_primal.clone().filter(|_| holds(&ray).is_ok());
    }
    if lower.is_err() {
        let ray = upper::prove(&BoundTask { program: &program.without_right_sides(), ..task })?;
        let ray = Proof { no_dual: ray.ok(), ..empty.clone() };
        proof.no_dual = ray.no_dual.clone().filter(|_| holds(&ray).is_ok());
    }
    let without_lower = lower.as_ref().err().map(|why| without(why, proof.no_dual.is_some(), "dual"));
    let without_upper = upper.as_ref().err().map(|why| without(why, proof.no_primal.is_some(), "primal"));
    proof.lower = lower.ok().and_then(|proof| proof.lower);
    proof.upper = upper.ok().and_then(|proof| proof.upper);
    let proof = (!proof.is_empty()).then_some(proof);
    Ok(Certificate { proof, without_lower, without_upper })
}
