//! The search: quotients from above, factorisations from below, until the interval is narrow enough.

use super::doubles;
use super::{EigenvalueInterval, EigenvalueReport};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Matrix, Symmetric};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, cholesky_with};
use crate::ops::estimate::proven::shifted_lower;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::vector::{axpy, dot, gemv, nrm2};
use rug::Float;
use rug::float::Round;
use rug::ops::{AddAssignRound, SubAssignRound};

/// The largest number of factorisations.
const MOST_FACTORISATIONS: usize = 200;

/// Bits of the ends of an interval that was found in doubles.
const RESULT_BITS: u32 = 64;

/// The largest magnitude of the exponent of a matrix's largest entry: bounds of errors are products of up to three
/// norms, and the range of MPFR ends at `2^30`.
pub(super) const MOST_EXPONENT: i64 = 1 << 27;

/// Least bits of a factorisation beyond the requested ones: most matrices need no more.
const SPARE_BITS: u32 = 64;

/// The interval of the smallest eigenvalue: in doubles, where these give as many bits, else in big floats.
///
/// # Errors
/// The errors of [`super::extreme_eigenvalue_with`].
pub(super) fn find(
    ctx: &Context,
    matrix: &Matrix,
    precision_bits: u32,
) -> Result<(EigenvalueInterval, EigenvalueReport)> {
    if matrix.parts().0.iter().all(|&head| Head(head).is_zero()) {
        return Ok(of_zero_matrix(matrix.rows(), precision_bits));
    }
    if let Some(found) = find_in_doubles(ctx, matrix, precision_bits)? {
        return Ok(found);
    }
    check_exponents(matrix)?;
    let mut search = Search::new(ctx, matrix, precision_bits)?;
    let found = search.run()?;
    Ok((found, search.report))
}

/// The result for a zero matrix, whose eigenvalues are all 0, so that no shift has a scale.
pub(super) fn of_zero_matrix(order: usize, precision_bits: u32) -> (EigenvalueInterval, EigenvalueReport) {
    let [lower, upper] = [(); 2].map(|()| Float::new(RESULT_BITS.max(precision_bits)));
    (EigenvalueInterval { lower, upper }, EigenvalueReport { order, precision_bits, ..EigenvalueReport::default() })
}

/// The same in doubles, where they suffice.
fn find_in_doubles(
    ctx: &Context,
    matrix: &Matrix,
    precision_bits: u32,
) -> Result<Option<(EigenvalueInterval, EigenvalueReport)>> {
    let order = matrix.rows();
    if precision_bits > doubles::MOST_BITS || order > doubles::MOST_ROWS {
        return Ok(None);
    }
    let planned_bytes = doubles::bytes(order);
    ctx.admit(planned_bytes)?;
    let Some(largest) = largest_exponent(matrix) else { return Ok(None) };
    let Some(found) = doubles::enclose(&in_doubles(matrix, largest), order, precision_bits) else { return Ok(None) };
    let end = |end: f64| Float::with_val(RESULT_BITS, end) << largest as i32;
    let report = EigenvalueReport {
        order,
        precision_bits,
        working_bits: f64::MANTISSA_DIGITS,
        lanczos_steps: found.lanczos_steps,
        factorisations: found.factorisations,
        planned_bytes,
        ..EigenvalueReport::default()
    };
    Ok(Some((EigenvalueInterval { lower: end(found.lower), upper: end(found.upper) }, report)))
}

/// A search for the smallest eigenvalue.
struct Search<'a> {
    ctx: Context,
    matrix: &'a Matrix,
    precision_bits: u32,
    /// Precision of quotients, and of factors unless they need more.
    working_bits: u32,
    /// The Frobenius norm is at most 2 to this power.
    norm: i64,
    /// The vector of the last quotient.
    vector: Matrix,
    quotient: Float,
    /// Norm of the residual of the vector, of which the norm is about 1.
    residual: Float,
    lower: Float,
    upper: Float,
    /// The distance of the next shift below the quotient, until a factorisation has succeeded.
    distance: Option<Float>,
    /// The lowest shift at which one has failed.
    ceiling: Option<Float>,
    /// Bytes in addition to those of factorisations.
    own_bytes: u64,
    report: EigenvalueReport,
}

/// The exponent of the power of two above a number; far below all others for 0.
fn top(value: &Float) -> i64 {
    value.get_exp().map_or(-(1 << 40), i64::from)
}

/// Refuses a matrix whose largest entry is so large or small that a bound of an error would leave the range of
/// exponents, in which [`power`] is exact.
///
/// # Errors
/// [`Error::ExponentRange`] with that entry.
pub(super) fn check_exponents(matrix: &Matrix) -> Result<()> {
    let heads = matrix.parts().0.iter().enumerate().filter(|(_, head)| !Head(**head).is_zero());
    let Some((at, exponent)) = heads.map(|(at, &head)| (at, Head(head).exponent())).max_by_key(|entry| entry.1) else {
        return Ok(());
    };
    if exponent.abs() <= MOST_EXPONENT {
        return Ok(());
    }
    let (row, column) = (at % matrix.rows(), at / matrix.rows());
    Err(Error::ExponentRange { row, column, exponent, limit: MOST_EXPONENT })
}

/// `2^exponent` with two bits, for exponents up to `2^29`; the bounds of errors of matrices that [`check_exponents`]
/// accepts are within them.
pub(super) fn power(exponent: i64) -> Float {
    Float::with_val(2, 1) << exponent.clamp(-(1 << 29), 1 << 29) as i32
}

/// Bits of the first factorisation, and of most others.
pub(super) fn first_bits(precision_bits: u32) -> u32 {
    precision_bits + SPARE_BITS
}

/// Bytes of doubles, of vectors and of one shifted matrix of `bits` bits, in addition to its factorisation.
pub(super) fn search_bytes(order: usize, bits: u32) -> u64 {
    let doubles = 8 * (order as u64).saturating_mul(order as u64 + order.min(256) as u64);
    let shifted = Matrix::bytes_for(order, order, bits);
    doubles.saturating_add(shifted).saturating_add(6 * Matrix::bytes_for(order, 1, 2 * bits))
}

impl<'a> Search<'a> {
    /// Begins with a vector that Lanczos' method finds.
    ///
    /// # Errors
    /// The errors of [`super::extreme_eigenvalue_with`].
    fn new(ctx: &Context, matrix: &'a Matrix, precision_bits: u32) -> Result<Search<'a>> {
        let order = matrix.rows();
        let largest = largest_exponent(matrix).unwrap_or(0);
        let norm = largest + i64::from(ceil_log2(order));
        let working_bits = first_bits(precision_bits);
        let own_bytes = search_bytes(order, matrix.precision_bits().max(working_bits));
        ctx.admit(own_bytes)?;
        let start = doubles::start(&in_doubles(matrix, largest), order, 0.0);
        let vector = Matrix::from_f64s(order, 1, working_bits, &start.vector)?;
        let report = EigenvalueReport {
            order,
            precision_bits,
            working_bits,
            lanczos_steps: start.steps,
            planned_bytes: own_bytes,
            ..EigenvalueReport::default()
        };
        let (quotient, residual) = (Float::new(working_bits), Float::new(working_bits));
        let (lower, upper) = (-power(norm + 1), power(norm + 1));
        let ctx = ctx.holding(own_bytes);
        let mut search = Search {
            ctx,
            matrix,
            precision_bits,
            working_bits,
            norm,
            vector,
            quotient,
            residual,
            lower,
            upper,
            distance: None,
            ceiling: None,
            own_bytes,
            report,
        };
        search.take_quotient()?;
        search.distance = Some(search.residual.clone());
        Ok(search)
    }

    /// Narrows the interval until it is as narrow as promised.
    ///
    /// # Errors
    /// The errors of [`super::extreme_eigenvalue_with`].
    fn run(&mut self) -> Result<EigenvalueInterval> {
        while self.report.factorisations < MOST_FACTORISATIONS {
            self.choose_bits();
            let (shift, bits) = (self.next_shift(), self.working_bits);
            match self.factor(&shift)? {
                Some(factor) => {
                    self.raise(&shift);
                    if self.is_narrow() {
                        return Ok(self.interval());
                    }
                    self.vector = normalised(factor.solve(&self.ctx, &self.vector, bits)?)?;
                    self.take_quotient()?;
                    if self.is_narrow() {
                        return Ok(self.interval());
                    }
                }
                None => self.look_below(shift)?,
            }
        }
        let EigenvalueInterval { lower, upper } = self.interval();
        Err(Error::verification(format!(
            "the smallest eigenvalue is between {lower:.10e} and {upper:.10e}, but {MOST_FACTORISATIONS} \
             factorisations did not determine it to {} bits",
            self.precision_bits
        )))
    }

    /// Where to factor next: below the quotient by the residual, where the known bounds allow it.
    fn next_shift(&self) -> Float {
        let bits = self.working_bits;
        let least = power(self.unit() + 2);
        let below = |from: &Float, by: &Float| Float::with_val(bits, from - by);
        let natural = below(&self.quotient, &Float::with_val(bits, self.residual.max_ref(&least)));
        let Some(distance) = &self.distance else {
            let open = self.ceiling.as_ref().is_none_or(|ceiling| natural < *ceiling);
            if natural > self.lower && open {
                return natural;
            }
            // The vector is not close enough yet: halve the interval.
            let top = self.ceiling.as_ref().map_or_else(|| self.quotient.clone(), |top| self.quotient.clone().min(top));
            let gap = Float::with_val(bits, &top - &self.lower);
            return if gap <= least { below(&self.lower, &least) } else { below(&top, &(gap >> 1u32)) };
        };
        below(&self.quotient, &Float::with_val(bits, distance.max_ref(&least)))
    }

    /// After a factorisation at `shift` that failed: the eigenvalue lies lower than the vector suggests.
    fn look_below(&mut self, shift: Float) -> Result<()> {
        if let Some(distance) = self.distance.take() {
            if self.ceiling.is_none() {
                self.disturb()?; // the vector may have nothing of the one that is wanted
            }
            let further = distance.max(&power(self.unit() + 2)) << 4u32;
            self.distance = Some(further.min(&power(self.norm + 2)));
        }
        if self.ceiling.as_ref().is_none_or(|ceiling| shift < *ceiling) {
            self.ceiling = Some(shift);
        }
        Ok(())
    }

    /// The power of two below which an interval counts as narrow.
    fn goal(&self) -> i64 {
        let bits = i64::from(self.precision_bits);
        let size = top(&self.lower).min(top(&self.upper));
        (size - 1 - bits).max(self.norm - 2 * bits - 32)
    }

    fn is_narrow(&self) -> bool {
        let mut width = self.upper.clone();
        width.sub_assign_round(&self.lower, Round::Up);
        width <= power(self.goal())
    }

    fn interval(&self) -> EigenvalueInterval {
        EigenvalueInterval { lower: self.lower.clone(), upper: self.upper.clone() }
    }

    /// The resolution of a factorisation at the working precision, as a power of two: see the proof.
    fn unit(&self) -> i64 {
        6 - i64::from(self.working_bits) + self.norm + i64::from(ceil_log2(self.matrix.rows()))
    }

    /// Takes as many bits as an interval needs around the quotient.
    fn choose_bits(&mut self) {
        let missing = self.unit() + 5 - self.goal();
        if missing > 0 {
            let bits = self.working_bits + (missing as u32).next_multiple_of(32);
            // No goal is further below the norm than this.
            let most = 2 * self.precision_bits + 96 + 2 * ceil_log2(self.matrix.rows());
            if bits.min(most) > self.working_bits {
                self.working_bits = bits.min(most);
                self.ceiling = None; // more bits may succeed where fewer did not
            }
            self.report.working_bits = self.working_bits;
        }
    }

    /// The factor of the matrix less `shift`, or `None` where it is not positive definite.
    fn factor(&mut self, shift: &Float) -> Result<Option<Cholesky>> {
        self.report.factorisations += 1;
        let bits = self.matrix.precision_bits().max(self.working_bits);
        let shifted = shifted_lower(self.matrix.view(), bits, |_, entry| Float::with_val(bits, entry - shift))?;
        let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
        let outcome = cholesky_with(&self.ctx, Symmetric::lower(&shifted), self.working_bits, &options);
        match outcome {
            Ok(Outcome { result, report }) => {
                let planned_bytes = self.own_bytes.saturating_add(report.planned_bytes);
                self.report.planned_bytes = self.report.planned_bytes.max(planned_bytes);
                Ok(Some(result))
            }
            Err(Error::NotPositiveDefinite { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The eigenvalue lies at most the resolution of the factorisation below `shift`.
    fn raise(&mut self, shift: &Float) {
        self.distance = None;
        let mut proven = shift.clone();
        proven.sub_assign_round(&power(self.unit()), Round::Down);
        if proven > self.lower {
            self.lower = proven;
        }
    }

    /// The quotient of the vector and its residual; the eigenvalue is not above the quotient and its error.
    fn take_quotient(&mut self) -> Result<()> {
        let (ctx, bits) = (&self.ctx, self.working_bits);
        let image = gemv(ctx, self.matrix, &self.vector, bits)?;
        let square = dot(ctx, &self.vector, &self.vector, bits)?;
        self.quotient = dot(ctx, &self.vector, &image, bits)? / &square;
        let rest = axpy(ctx, &Float::with_val(bits, -&self.quotient), &self.vector, &image, bits)?;
        self.residual = nrm2(ctx, &rest, bits)? / square.sqrt();
        let mut proven = self.quotient.clone();
        proven.add_assign_round(&power(4 - i64::from(bits) + self.norm), Round::Up);
        if proven < self.upper {
            self.upper = proven;
        }
        Ok(())
    }

    /// Adds a little of every direction to the vector.
    fn disturb(&mut self) -> Result<()> {
        let order = self.matrix.rows();
        let entry = |at: usize| if at.is_multiple_of(2) { 1.0 } else { -1.0 } / (at + 1) as f64;
        let all = Matrix::from_f64s(order, 1, 53, &(0..order).map(entry).collect::<Vec<_>>())?;
        self.vector = axpy(&self.ctx, &Float::with_val(10, 0.125), &all, &self.vector, self.working_bits)?;
        Ok(())
    }
}

/// The matrix times `2^-largest`, in doubles; entries far below the largest one become 0.
fn in_doubles(matrix: &Matrix, largest: i64) -> Vec<f64> {
    let ((heads, limbs), width) = (matrix.parts(), matrix.limbs_per_element());
    let entries = heads.iter().zip(limbs.chunks_exact(width)).map(|(&head, limbs)| {
        let head = Head(head);
        match head.is_zero() || head.exponent() < largest - 1000 {
            true => 0.0,
            false => FloatRef { head: Head::new(head.is_negative(), head.exponent() - largest), limbs }.to_f64(),
        }
    });
    entries.collect()
}

/// The exponent of the largest entry; `None` where all are 0.
fn largest_exponent(matrix: &Matrix) -> Option<i64> {
    matrix.parts().0.iter().filter(|&&head| head != 0).map(|&head| Head(head).exponent()).max()
}

/// The vector times a power of two, so that its largest entry is about 1.
fn normalised(mut vector: Matrix) -> Result<Matrix> {
    let largest = largest_exponent(&vector);
    vector.shift_exponents(-largest.unwrap_or(0))?;
    Ok(vector)
}
