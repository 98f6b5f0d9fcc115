//! The path of small orders, where tiles of residues cost more than they save: the integers of the factorisation one
//! after the other, on limbs.
//!
//! The same rules as on tiles (`math::pivot`), so the same bits; no engine, no threads, one block of memory. A matrix
//! that is not positive definite is left to the definition, which knows what to say of it.

use crate::context::{Context, Progress};
use crate::error::Result;
use crate::kernels::entries::{self, Widths};
use crate::kernels::limbs;
use crate::math::float::round_integer;
use crate::math::pivot::RowWeight;
use crate::matrix::{Matrix, MatrixView, check_exponent};
use crate::ops::factor::options::CholeskyOptions;
use crate::ops::factor::problem::Problem;
use crate::ops::factor::scaling::scaled_limbs;

/// The kernel name in reports of this path.
pub(crate) const NAME: &str = "direct";

/// Rows up to which tiles cost more, for numbers of few limbs and of many.
const MOST_ROWS: usize = 12;
const MOST_ROWS_OF_LONG: usize = 10;

/// Limbs of an entry of the factor from which on products on limbs fall behind.
const LONG_LIMBS: usize = 12;

/// Whether a factorisation of so many rows with so many working bits is one for this path: where neither tiles are
/// asked for nor devices.
pub(crate) fn takes(ctx: &Context, (rows, working_bits): (usize, u32), options: &CholeskyOptions) -> bool {
    let most = if Widths::new(working_bits).entry < LONG_LIMBS { MOST_ROWS } else { MOST_ROWS_OF_LONG };
    rows <= most.min(ctx.kernel().most_rows_on_limbs(working_bits))
        && options.tile_rows.is_none()
        && ctx.devices().is_empty()
}

/// Bytes of the factor, and of what its entries are made with.
pub(crate) fn bytes(rows: usize, precision_bits: u32, working_bits: u32) -> u64 {
    Matrix::bytes_for(rows, rows, precision_bits)
        + 8 * words(Widths::new(working_bits), rows) as u64
        + (rows * (2 * size_of::<RowWeight>() + size_of::<i64>())) as u64
}

/// Words of all entries with a sign each, and of what they are made with.
fn words(widths: Widths, order: usize) -> usize {
    order * order * (widths.entry + 1) + widths.rest + 2 * widths.entry + widths.quotient()
}

/// Factors `problem` with the lower triangle `lower`, in `memory` of the factor's shape and precision if there is some;
/// `None` where a pivot is not positive.
///
/// # Errors
/// [`crate::Error::ExponentRange`] with the place in the matrix; [`crate::Error::Cancelled`].
pub(crate) fn factor(
    ctx: &Context,
    (problem, lower): (&Problem, MatrixView<'_>),
    memory: Option<Matrix>,
) -> Result<Option<Matrix>> {
    let order = problem.order;
    ctx.report_progress(Progress::new("factor", 0, order as u64))?;
    let mut factor = memory.map_or_else(|| Matrix::zeros(order, order, problem.precision_bits), Ok)?;
    factor.clear_above_diagonal();
    Ok(fill((problem, lower), &mut factor)?.then_some(factor))
}

/// Fills in the factor; whether all pivots are positive.
fn fill((problem, lower): (&Problem, MatrixView<'_>), factor: &mut Matrix) -> Result<bool> {
    let (order, widths) = (problem.order, Widths::new(problem.working_bits));
    let mut words = vec![0; words(widths, order)];
    let (entries, rest) = words.split_at_mut(order * order * (widths.entry + 1));
    let (rest, space) = rest.split_at_mut(widths.rest);
    let mut rows = Rows { problem, lower, widths, entries };
    let mut weights = problem.weights.clone();
    let (precision_bits, width) = (factor.precision_bits(), factor.limbs_per_element());
    let (heads, significands) = factor.parts_mut();
    for col in 0..order {
        for (row, weight) in weights.iter_mut().enumerate().skip(col) {
            let is_rejected = weight.is_rejected();
            if row == col && is_rejected {
                return Ok(false);
            }
            let mut negative = false;
            if !is_rejected {
                rows.reduce((row, col), rest, &mut space[..2 * widths.entry]);
                negative = limbs::to_magnitude(rest);
                let space = &mut space[2 * widths.entry..];
                if row > col {
                    rows.divide((row, col), (negative, rest), space, weight);
                } else if negative || !rows.root(col, rest, space) {
                    return Ok(false);
                }
            }
            let (_, magnitude) = rows.get(row, col);
            let exponent = problem.exponents[row] - i64::from(problem.working_bits);
            let at = row + col * order;
            let out = &mut significands[at * width..][..width];
            let head = round_integer(negative, magnitude, exponent, precision_bits, out);
            check_exponent(head.exponent(), row, col)?;
            heads[at] = head.0;
        }
    }
    Ok(true)
}

/// The entries of the factor so far, row by row: for each a word that is not 0 for a negative one, and its limbs.
struct Rows<'a> {
    problem: &'a Problem,
    lower: MatrixView<'a>,
    widths: Widths,
    entries: &'a mut [u64],
}

impl Rows<'_> {
    fn start(&self, row: usize, col: usize) -> usize {
        (row * self.problem.order + col) * (self.widths.entry + 1)
    }

    /// Whether an entry is negative, and its magnitude.
    fn get(&self, row: usize, col: usize) -> (bool, &[u64]) {
        let words = &self.entries[self.start(row, col)..][..self.widths.entry + 1];
        (words[0] != 0, &words[1..])
    }

    /// Sets an entry to a magnitude that fits.
    fn set(&mut self, (row, col): (usize, usize), negative: bool, magnitude: &[u64]) {
        let start = self.start(row, col);
        let words = &mut self.entries[start..][..self.widths.entry + 1];
        words[0] = u64::from(negative);
        let count = magnitude.len().min(self.widths.entry);
        words[1..=count].copy_from_slice(&magnitude[..count]);
        words[count + 1..].fill(0);
    }

    /// What is left of an entry of the matrix when the columns before are taken off, in two's complement.
    fn reduce(&self, (row, col): (usize, usize), rest: &mut [u64], product: &mut [u64]) {
        let Problem { exponents, working_bits, .. } = self.problem;
        let entry = self.lower.get(row, col);
        scaled_limbs(entry, exponents[row] + exponents[col], *working_bits, rest);
        if entry.head.is_negative() {
            limbs::negate(rest);
        }
        let each = self.widths.entry + 1;
        let (left, right) = (&self.entries[self.start(row, 0)..], &self.entries[self.start(col, 0)..]);
        for (left, right) in left.chunks_exact(each).zip(right.chunks_exact(each)).take(col) {
            limbs::add_product(rest, (&left[1..], &right[1..]), left[0] == right[0], product);
        }
    }

    /// The square root of what is left of a pivot, to nearest; whether it is positive.
    fn root(&mut self, col: usize, rest: &[u64], space: &mut [u64]) -> bool {
        let Some(root) = entries::root(rest, space) else { return false };
        self.set((col, col), false, root);
        true
    }

    /// What is left of an entry over the pivot of its column; rejects the row where that is too large.
    fn divide(
        &mut self,
        (row, col): (usize, usize),
        (negative, rest): (bool, &[u64]),
        space: &mut [u64],
        weight: &mut RowWeight,
    ) {
        let quotient = entries::quotient(rest, self.get(col, col).1, space);
        weight.add_limbs(quotient, self.problem.working_bits);
        let kept = if weight.is_rejected() { &[] } else { quotient };
        self.set((row, col), negative, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::factor::problem::working_bits;
    use crate::ops::factor::reference;
    use rug::{Float, Integer, rand::RandState};

    /// A symmetric matrix of random entries of at most 1 with `diagonal` on it; some are 0, some tiny.
    fn random(order: usize, bits: u32, diagonal: f64, rng: &mut RandState<'_>) -> Matrix {
        let mut a = Matrix::zeros(order, order, bits).unwrap();
        for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let down = [0, 0, 3, bits, 2 * bits + 5][rng.below(5) as usize] as i32;
            let value = Float::with_val(bits, Float::random_bits(rng)) - 0.5f64;
            let value = if row == col { value + diagonal } else { value >> down };
            let value = if rng.below(7) == 0 && row != col { Float::new(bits) } else { value };
            a.set_float(row, col, &value).unwrap();
        }
        a
    }

    #[test]
    fn factors_are_those_of_the_definition() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(11));
        let (mut factored, mut refused) = (0, 0);
        for case in 0..1500u32 {
            let order = (case % 19) as usize;
            let bits = [2, 20, 62, 63, 64, 126, 127, 256, 510, 1000][(case / 19 % 10) as usize];
            let extra = [0, 8, 200][(case % 3) as usize];
            let diagonal = [0.6, 1.2, 4.0][(case / 5 % 3) as usize];
            let a = random(order, bits.max(12), diagonal, &mut rng);
            let problem = Problem::new(a.view(), bits, working_bits(bits, 11_000).unwrap() + extra).unwrap();
            let mut got = Matrix::zeros(problem.order, problem.order, bits).unwrap();
            let done = fill((&problem, a.view()), &mut got).unwrap();
            match reference::factor(&problem, a.view()) {
                Ok(rows) => assert!(done && rows.to_matrix(&problem).unwrap() == got, "{order} rows, {bits} bits"),
                Err(_) => assert!(!done, "{order} rows, {bits} bits"),
            }
            factored += u32::from(done);
            refused += u32::from(!done);
        }
        assert!(factored > 300 && refused > 300, "{factored} factored, {refused} refused");
    }

    #[test]
    fn roots_and_entries_just_below_one_are_rounded_up() {
        for bits in [62, 126, 254] {
            let mut a = Matrix::zeros(2, 2, 3 * bits).unwrap();
            let below = Float::with_val(3 * bits, 1) - (Float::with_val(3 * bits, 1) >> (2 * bits + 40));
            (0..2).for_each(|i| a.set_float(i, i, &below).unwrap());
            let problem = Problem::new(a.view(), bits, working_bits(bits, 11_000).unwrap()).unwrap();
            assert_eq!(problem.working_bits % 64, 0);
            let mut got = Matrix::zeros(2, 2, bits).unwrap();
            assert!(fill((&problem, a.view()), &mut got).unwrap());
            assert!(got == Matrix::identity(2, bits).unwrap());
        }
    }
}
