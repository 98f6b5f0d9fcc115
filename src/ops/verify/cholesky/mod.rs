//! Is this stored triangle a Cholesky factor of that matrix? Every entry of `A - L L^T`, by exact integers.
//!
//! Promise: a factor is accepted if and only if `|A - L L^T|_ij <= 2^(2-b) sqrt(a_ii a_jj)` for all `i >= j`; nothing
//! is rounded before that is decided. Products come from the residue pipeline as exact integers, and Freivalds' test
//! must pass before one is believed; rows whose entries spread too far for that are summed one by one.
//! Does not know: how a factor is made. Source: docs/ALGORITHM.md, "Verification".

use super::exact::{Accumulator, KEEP_ALL, ProductSum, compare, term};
use super::{Verification, VerifyOptions, freivalds_gemm, freivalds_syrk, fresh_seed, map_indices};
use crate::context::Context;
use crate::error::{Error, ErrorText, IndexBase, Result};
use crate::math::bound::ceil_log2;
use crate::math::float::{FloatRef, Head};
use crate::math::pivot::diagonal_exponent;
use crate::matrix::{Matrix, MatrixView, Op, Symmetric, Uplo};
use crate::ops::{GemmOptions, SyrkOptions, gemm_with, syrk_with};
use rug::Integer;
use std::cmp::Ordering;
use std::ops::Range;

/// Rows and columns of the tiles in which the product is formed.
const TILE_ROWS: usize = 256;

/// Terms this many bits below the bound are left out at first; they come in where they could decide.
const SPARE_BITS: i64 = 96;

/// Checks that `l` is a Cholesky factor of `a` to `precision_bits` bits: lower triangular, with a positive diagonal,
/// and `|A - L L^T|_ij <= 2^(2 - precision_bits) sqrt(a_ii a_jj)` for all `i >= j`.
///
/// With [`Uplo::Upper`] in `options` the matrix `l` holds `U` with `A = U^T U`. Of the other options the seed alone
/// matters, which is that of Freivalds' test.
/// [`Verification::worst_entry`] is the largest residual in units of its bound, [`Verification::worst_place`] where.
/// Shapes: both `n x n`, of any two precisions; `a` is plain, known to be symmetric, or a named triangle, see
/// [`Symmetric`]. Entries of a [`Matrix`] are finite.
/// Accuracy: the decision is exact, whatever the exponents.
/// Cost: an exact product in tiles, `n^3 / 6` word products for each of about `2 precision_bits / 52` primes, and two
/// products of big integers for each entry; rows whose exponents spread over more than about three times their
/// precision, `n^2 / 2` big products each. Memory beside the plan of a product: `512 n` numbers.
///
/// # Errors
/// [`Error::Verification`] names the worst entry, or what else is wrong; [`Error::NotSymmetric`] for `a`;
/// [`Error::ShapeMismatch`];
/// [`Error::Precision`] for fewer than 2 bits; those of [`gemm_with`].
pub fn verify_cholesky<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    l: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    if precision_bits < 2 {
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: 1 << 24 });
    }
    let (a, l, uplo) = (a.into().lower_view("verify cholesky")?, l.into(), options.uplo);
    let shapes = Error::shape_mismatch("verify cholesky", (a.rows(), a.cols()), (l.rows(), l.cols()));
    if a.rows() != a.cols() || (l.rows(), l.cols()) != (a.rows(), a.cols()) {
        return Err(shapes);
    }
    let l = if uplo == Uplo::Lower { l } else { l.transposed() };
    let check = FactorCheck { a, l, uplo, precision_bits };
    let rows = check.look_at_rows(ctx)?;
    Verifier { check, rows, tile_rows: TILE_ROWS }.decide(ctx, options)
}

/// What is checked: whether `A = L L^T`. Both are seen as lower triangles.
#[derive(Clone, Copy)]
struct FactorCheck<'a> {
    a: MatrixView<'a>,
    l: MatrixView<'a>,
    /// The triangle that the caller has.
    uplo: Uplo,
    precision_bits: u32,
}

/// One row of the factor.
struct Row {
    /// `a_ii` is this integer times a power of two.
    diagonal: (Integer, i64),
    /// `s_i`: `a_ii 2^(-2 s_i)` lies in `[1/4, 1)`.
    scale: i64,
    /// Exponent of the lowest bit of the row.
    low: i64,
    /// Whether the row's integers `l_ij 2^-low` are short enough for residues.
    planar: bool,
}

/// The residual of one entry.
#[derive(Clone, Copy, Default)]
struct Residual {
    /// In units of its bound.
    ratio: f64,
    /// Whether it is beyond the bound.
    fails: bool,
    place: (usize, usize),
}

impl Residual {
    /// The worse of two; the first where they are equal.
    fn or_worse(self, other: Residual) -> Residual {
        if (other.fails, other.ratio) > (self.fails, self.ratio) { other } else { self }
    }
}

impl FactorCheck<'_> {
    /// Refuses what no factor can have, and measures the rows.
    ///
    /// `sum_k l_ik^2 <= a_ii + 2^(2-b) a_ii <= 2 a_ii` bounds every entry of an honest factor by `2^(s_i + 1)`, and
    /// `|a_ij| <= sqrt(2 a_ii) sqrt(2 a_jj) + sqrt(a_ii a_jj)` every entry of its matrix by `2^(s_i + s_j + 2)`.
    /// What passes these bounds is refused here, so that sums stay of a sane width.
    fn look_at_rows(&self, ctx: &Context) -> Result<Vec<Row>> {
        let n = self.a.rows();
        let diagonal = |i: usize| self.a.get(i, i).head;
        if let Some(i) = (0..n).find(|&i| diagonal(i).is_zero() || diagonal(i).is_negative()) {
            return Err(refusal(|base| {
                format!("{} of the matrix is not positive: it has no factor", base.one("diagonal entry", i))
            }));
        }
        self.check_triangle(ctx)?;
        let scales: Vec<i64> = (0..n).map(|i| diagonal_exponent(diagonal(i).exponent())).collect();
        let kernel_bits = i64::from(ctx.kernel().maximum_modulus_bits()) / 2 - 4 - i64::from(ceil_log2(n));
        let planar_bits = (3 * i64::from(self.l.precision_bits()) + 256).min(kernel_bits);
        let rows = map_indices(ctx, n, |i| self.look_at_row(&scales, planar_bits, i));
        rows.into_iter().collect()
    }

    /// Refuses entries on the wrong side of the diagonal; a factor of the other kind is named as such.
    fn check_triangle(&self, ctx: &Context) -> Result<()> {
        let n = self.a.rows();
        let is_set = |i: usize, j: usize| !self.l.get(i, j).head.is_zero();
        let beyond = map_indices(ctx, n, |i| (i + 1..n).find(|&j| is_set(i, j)));
        let Some(place) = beyond.into_iter().enumerate().find_map(|(i, j)| Some((i, j?))) else { return Ok(()) };
        let is_other = !(0..n).any(|i| (0..i).any(|j| is_set(i, j)));
        let (triangle, other) = match self.uplo {
            Uplo::Lower => ("lower", "; it is upper triangular: name an upper factor (--upper)"),
            Uplo::Upper => ("upper", "; it is lower triangular: name a lower factor (no --upper)"),
        };
        Err(refusal(|base| {
            let (place, other) = (self.name(place, base), if is_other { other } else { "" });
            format!("the factor is not {triangle} triangular: the entry at {place} is not 0{other}")
        }))
    }

    fn look_at_row(&self, scales: &[i64], planar_bits: i64, i: usize) -> Result<Row> {
        let scale = scales[i];
        let own = self.l.get(i, i).head;
        if own.is_zero() || own.is_negative() {
            return Err(refusal(|base| format!("{} of the factor is not positive", base.one("diagonal entry", i))));
        }
        let row = || (0..=i).map(|k| self.l.get(i, k)).filter(|entry| !entry.head.is_zero());
        let top = row().map(|entry| entry.head.exponent()).max().unwrap_or(0);
        if top > scale + 1 {
            let excess = 2 * (top - scale - 1);
            return Err(refusal(|base| {
                let row = base.one("row", i);
                format!("{row} of the factor is too long: its squares sum to over 2^{excess} a_ii")
            }));
        }
        let huge = |&j: &usize| {
            let head = self.a.get(i, j).head;
            !head.is_zero() && head.exponent() > scale + scales[j] + 2
        };
        if let Some(j) = (0..i).find(huge) {
            return Err(refusal(|base| {
                let place = self.name((i, j), base);
                format!("the entry at {place} of the matrix is beyond sqrt(a_ii a_jj): it has no factor")
            }));
        }
        let low = row().map(lowest_bit).min().unwrap_or(0);
        let diagonal = self.a.get(i, i).to_integer_exponent();
        Ok(Row { diagonal, scale, low, planar: scale + 1 - low <= planar_bits })
    }

    /// Names a place as the caller stored it.
    fn name(&self, place: (usize, usize), base: IndexBase) -> String {
        let (row, col) = self.stored_place(place);
        base.place(row, col)
    }

    fn stored_place(&self, (row, col): (usize, usize)) -> (usize, usize) {
        if self.uplo == Uplo::Lower { (row, col) } else { (col, row) }
    }

    fn failure(&self, worst: &Residual) -> Error {
        let product = if self.uplo == Uplo::Lower { "A - L L^T" } else { "A - U^T U" };
        let (ratio, bits) = (worst.ratio, self.precision_bits);
        refusal(|base| {
            let place = self.name(worst.place, base);
            format!("{product} at {place} is {ratio:.4e} times its bound 2^(2-{bits}) sqrt(a_ii a_jj)")
        })
    }
}

fn refusal(say: impl Fn(IndexBase) -> String) -> Error {
    Error::verification(ErrorText::counted(|base| format!("verify cholesky: {}", say(base))))
}

/// Exponent of the lowest bit of a number that is not 0.
fn lowest_bit(value: FloatRef<'_>) -> i64 {
    term(value, KEEP_ALL).map_or(0, |term| term.low + i64::from(term.limbs[0].trailing_zeros()))
}

/// The check with all that is known of the rows.
struct Verifier<'a> {
    check: FactorCheck<'a>,
    rows: Vec<Row>,
    tile_rows: usize,
}

impl Verifier<'_> {
    fn decide(&self, ctx: &Context, options: &VerifyOptions) -> Result<Verification> {
        let n = self.rows.len();
        let options = VerifyOptions { seed: Some(options.seed.unwrap_or_else(fresh_seed)), ..VerifyOptions::default() };
        let mut outcome = Verification { seed: options.seed.unwrap_or(0), ..Verification::default() };
        let tiles = |end: usize| (0..end).step_by(self.tile_rows).map(|start| start..(start + self.tile_rows).min(n));
        let mut worst: Option<Residual> = None;
        for rows in tiles(n) {
            let left = self.band(rows.clone(), rows.end)?;
            for cols in tiles(rows.end) {
                let product = self.product(ctx, &left, &cols, (cols == rows, &options), &mut outcome)?;
                let found = self.worst_of(ctx, &rows, &cols, &product);
                worst = Some(worst.map_or(found, |worst| worst.or_worse(found)));
            }
        }
        outcome.entry_count = n * (n + 1) / 2;
        match worst {
            Some(worst) if worst.fails => Err(self.check.failure(&worst)),
            Some(worst) => {
                let worst_place = Some(self.check.stored_place(worst.place));
                Ok(Verification { worst_entry: worst.ratio.min(1.0), worst_place, ..outcome })
            }
            None => Ok(outcome),
        }
    }

    /// The integers `l_ik 2^-low_i` of the planar rows, `k < depth`; a row of `L` is a column here. Other rows are 0.
    fn band(&self, rows: Range<usize>, depth: usize) -> Result<Matrix> {
        let mut band = Matrix::zeros(depth, rows.len(), self.check.l.precision_bits())?;
        for (at, i) in rows.enumerate().filter(|&(_, i)| self.rows[i].planar) {
            for k in 0..depth.min(i + 1) {
                let FloatRef { head, limbs } = self.check.l.get(i, k);
                if !head.is_zero() {
                    let head = Head::new(head.is_negative(), head.exponent() - self.rows[i].low);
                    band.set(k, at, FloatRef { head, limbs });
                }
            }
        }
        Ok(band)
    }

    /// The exact integers of a tile of `L L^T`, tested modulo a random prime.
    fn product(
        &self,
        ctx: &Context,
        left: &Matrix,
        cols: &Range<usize>,
        (is_diagonal, options): (bool, &VerifyOptions),
        outcome: &mut Verification,
    ) -> Result<Matrix> {
        let least_bits = 2; // the result has as many as its integers need
        let (product, tested) = if is_diagonal {
            let choices = SyrkOptions { exact_integers: true, ..SyrkOptions::default() };
            let product = syrk_with(ctx, left, least_bits, &choices)?.result;
            let tested = freivalds_syrk(ctx, left, &product, options)?;
            (product.into_matrix(), tested)
        } else {
            // Rows of the factor end at the diagonal, so the columns' last row bounds the contraction.
            let left = left.view().block(0..cols.end, 0..left.cols())?;
            let right = self.band(cols.clone(), cols.end)?;
            let choices = GemmOptions { op_a: Op::Transpose, exact_integers: true, ..GemmOptions::default() };
            let product = gemm_with(ctx, left, &right, least_bits, &choices)?.result;
            let options = VerifyOptions { op: Op::Transpose, ..options.clone() };
            let tested = freivalds_gemm(ctx, (left, &right), &product, &options)?;
            (product, tested)
        };
        outcome.vector_count += tested.vector_count;
        outcome.prime = tested.prime;
        Ok(product)
    }

    /// The worst entry of the lower triangle in a tile.
    fn worst_of(&self, ctx: &Context, rows: &Range<usize>, cols: &Range<usize>, product: &Matrix) -> Residual {
        let columns = map_indices(ctx, cols.len(), |at| {
            let j = cols.start + at;
            let entries = (rows.start.max(j)..rows.end).map(|i| {
                let planar = self.rows[i].planar && self.rows[j].planar;
                self.residual((i, j), planar.then(|| product.get(i - rows.start, at)))
            });
            entries.reduce(Residual::or_worse)
        });
        columns.into_iter().flatten().reduce(Residual::or_worse).unwrap_or_default()
    }

    /// The residual of entry `(i, j)`; `product` is `(L L^T)_ij 2^(-low_i - low_j)`, where it was computed.
    fn residual(&self, (i, j): (usize, usize), product: Option<FloatRef<'_>>) -> Residual {
        let (row, col) = (&self.rows[i], &self.rows[j]);
        let two_bits = 4 - 2 * i64::from(self.check.precision_bits);
        let bound = (Integer::from(&row.diagonal.0 * &col.diagonal.0), row.diagonal.1 + col.diagonal.1 + two_bits);
        // The bound is at least 2^(s_i + s_j - b).
        let floor = row.scale + col.scale - i64::from(self.check.precision_bits) - SPARE_BITS;
        let exceeds = |(size, exponent): (Integer, i64)| {
            let square = (size.square(), 2 * exponent);
            compare((&square.0, square.1), (&bound.0, bound.1)) == Ordering::Greater
        };
        let ((error, exponent), left_out) = self.difference((i, j), product, floor);
        let ratio = quotient_root((&error, exponent), (&bound.0, bound.1));
        let place = (i, j);
        if left_out == 0 {
            return Residual { ratio, fails: exceeds((error, exponent)), place };
        }
        // What is left out sums to less than `left_out * 2^floor`.
        let unit = exponent.min(floor);
        let size = error.abs() << (exponent - unit) as u32;
        let rest = Integer::from(left_out) << (floor - unit) as u32;
        let (least, most) = ((Integer::from(&size - &rest)).max(Integer::new()), size + rest);
        let fails = match (exceeds((least, unit)), exceeds((most, unit))) {
            (true, _) => true,
            (_, false) => false,
            _ => exceeds(self.difference((i, j), product, KEEP_ALL).0),
        };
        Residual { ratio, fails, place }
    }

    /// `a_ij - (L L^T)_ij` as `integer * 2^exponent` without terms below `2^floor`, and how many terms that leaves out.
    fn difference(&self, (i, j): (usize, usize), product: Option<FloatRef<'_>>, floor: i64) -> ((Integer, i64), usize) {
        let (mut sum, mut left_out) = (Accumulator::default(), 0);
        let own = self.check.a.get(i, j);
        if let Some(term) = term(own, KEEP_ALL) {
            if own.head.exponent() > floor {
                sum.add(term.negative, term.limbs, term.low);
            } else {
                left_out += 1;
            }
        }
        if let Some(product) = product {
            if let Some(term) = term(product, KEEP_ALL) {
                sum.add(!term.negative, term.limbs, term.low + self.rows[i].low + self.rows[j].low);
            }
            return (sum.take(), left_out);
        }
        let (mut products, mut factor) = (ProductSum::default(), Integer::new());
        for k in 0..=j {
            let (x, y) = (self.check.l.get(i, k), self.check.l.get(j, k));
            let (Some(left), Some(right)) = (term(x, KEEP_ALL), term(y, KEEP_ALL)) else { continue };
            if x.head.exponent() + y.head.exponent() <= floor {
                left_out += 1;
                continue;
            }
            products.set_left(left);
            factor.assign_digits(right.limbs, rug::integer::Order::Lsf);
            if !right.negative {
                factor = -factor;
            }
            products.add_to(&mut sum, &factor, left.low + right.low);
        }
        (sum.take(), left_out)
    }
}

/// `|x| 2^e / sqrt(y 2^f)` for `y > 0`, to about 50 bits.
fn quotient_root((x, e): (&Integer, i64), (y, f): (&Integer, i64)) -> f64 {
    if *x == 0 {
        return 0.0;
    }
    let ((x, x_bits), (y, y_bits)) = (x.to_f64_exp(), y.to_f64_exp());
    let (top, square_top) = (i64::from(x_bits) + e, i64::from(y_bits) + f);
    let root = (y * 2f64.powi(square_top.rem_euclid(2) as i32)).sqrt();
    let power = (top - square_top.div_euclid(2)).clamp(-1000, 1000) as i32;
    x.abs() / root * 2f64.powi(power)
}

#[cfg(test)]
#[path = "cholesky_tests.rs"]
mod tests;
