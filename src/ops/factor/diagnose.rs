//! The error of a failed factorisation: the pivot, and whether more precision might help.

use crate::comm::{Reduction, Transport, agree, agreed, broadcast_bytes};
use crate::context::Context;
use crate::error::{Error, MoreBits, Result};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Matrix, MatrixView, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::factor::problem::{FactorInput, FactorProblem};
use crate::ops::factor::tile_work::FailedRow;
use crate::tile::{TileId, TileMap};
use rug::float::{Round, Special};
use rug::integer::Order;
use rug::ops::AddAssignRound;
use rug::{Float, Integer};

/// Bits of the numbers shown.
const SHOWN_BITS: u32 = 53;

/// The evidence about a row whose computed pivot is not positive.
#[derive(Debug)]
enum Evidence {
    /// A vector `v != 0` with `v^T A v <= 0` exists: a proof for the matrix as given.
    Indefinite,
    /// Rounding at `precision_bits` bits moves the pivot by about `noise`.
    Noise { noise: Float, precision_bits: u32 },
    /// The pivot has not been compared with the whole matrix.
    Unexamined,
}

/// The error for row `index`: every factorisation of a matrix that is not positive definite ends with this one.
///
/// `pivot` and `diagonal` are shown. `diagonal` is also used: it must have the sign of the entry of the matrix as
/// given, since a diagonal entry that is not positive is already a proof. The hint promises no more than `evidence`
/// does.
fn refusal(index: usize, pivot: &Float, diagonal: &Float, evidence: &Evidence) -> Error {
    let more_bits = match evidence {
        Evidence::Indefinite => MoreBits::Never,
        _ if *diagonal <= 0 => MoreBits::Never,
        Evidence::Noise { noise, precision_bits } if Float::with_val(SHOWN_BITS, -pivot) <= *noise => {
            // Bits by which the noise exceeds the pivot, but never fewer than those that would reveal a pivot as large
            // as the noise.
            let hidden = match (noise.get_exp(), pivot.get_exp()) {
                (Some(noise), Some(pivot)) => noise.saturating_sub(pivot).max(0) as u32,
                _ => 0,
            };
            MoreBits::AtLeast(hidden.max(precision_bits / 8) + 8)
        }
        // A pivot beyond the noise is a strong sign, but no proof.
        _ => MoreBits::Unknown,
    };
    Error::NotPositiveDefinite {
        index,
        pivot: Float::with_val(SHOWN_BITS, pivot),
        diagonal: Float::with_val(SHOWN_BITS, diagonal),
        more_bits,
        enough_bits: None,
    }
}

/// The error for a pivot of a factorisation of doubles that is not positive: rounding moves it by about `index eps` of
/// the diagonal entry, and `diagonal` is the diagonal entry of the matrix as given.
///
/// The matrix was overwritten, so only its diagonal can prove anything about it.
pub(super) fn double_refusal(index: usize, pivot: f64, diagonal: &Float) -> Error {
    let size = Float::with_val(f64::MANTISSA_DIGITS, diagonal.abs_ref());
    let noise = size * (4.0 * (index + 1) as f64 * f64::EPSILON);
    let pivot = if pivot.is_nan() { f64::NEG_INFINITY } else { pivot };
    let evidence = Evidence::Noise { noise, precision_bits: f64::MANTISSA_DIGITS };
    refusal(index, &Float::with_val(f64::MANTISSA_DIGITS, pivot), diagonal, &evidence)
}

/// The scaled pivot of row `index` as one of the matrix.
fn unscaled_pivot(problem: &FactorProblem, index: usize, scaled: &Integer, bits: u32) -> Float {
    let exponent = 2 * (problem.exponents[index] - i64::from(problem.working_bits));
    Float::with_val(bits, scaled) << exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// The error for row `index`, given its scaled pivot, if it is known, without a look at the matrix as a whole.
pub(super) fn unexamined(problem: &FactorProblem, index: usize, pivot: Option<&Integer>, diagonal: &Float) -> Error {
    // Row `order` was left out from the start, for a diagonal entry or a 2 x 2 minor that is not positive.
    let evidence = if index < problem.order { Evidence::Unexamined } else { Evidence::Indefinite };
    let unknown = || Float::with_val(SHOWN_BITS, Special::NegZero);
    let pivot = pivot.map_or_else(unknown, |scaled| unscaled_pivot(problem, index, scaled, SHOWN_BITS));
    refusal(index, &pivot, diagonal, &evidence)
}

/// The error for a failure at `index` of the matrix with this lower triangle, given the factor of the rows before it
/// and the scaled pivot, if it is known.
///
/// The pivot is compared with its largest change by rounding: with `w` near `A_11^-1 a_i`, an error `E` in the matrix,
/// within the residual bound `|E_ij| <= 2^(2 - b) sqrt(a_ii a_jj)`, moves it by about `2^(2 - b) a (1 + sum
/// |w_k| sqrt(a_kk / a))^2`. For a pivot further below 0 than that, `v^T A v` of the matrix as given is bounded
/// from above by directed rounding, with `v = (-w, 1)`: a bound of at most 0 proves that no precision helps. Cost:
/// quadratic in `index`, paid on failure only.
pub(crate) fn failure(input: FactorInput<'_>, index: usize, factor: &Matrix, pivot: Option<Integer>) -> Error {
    let FactorInput { problem, lower } = input;
    let bits = problem.working_bits + 64;
    let diagonal = lower.get(index, index).to_float(lower.precision_bits());
    let mut y = Vec::with_capacity(index);
    for i in 0..index {
        let mut sum = lower.get(index, i).to_float(bits);
        for (k, entry) in y.iter().enumerate() {
            sum -= Float::with_val(bits, entry * &factor.float(i, k));
        }
        y.push(sum / factor.float(i, i));
    }
    let pivot = match pivot {
        Some(scaled) => unscaled_pivot(problem, index, &scaled, bits),
        // The row was rejected since the squares of its own entries reach the diagonal entry. The squares of the
        // rounded entries may stay below it; that difference is no pivot of this factorisation.
        None => {
            let rest = y
                .iter()
                .fold(Float::with_val(bits, &diagonal), |rest, entry| rest - Float::with_val(bits, entry * entry));
            if rest > 0 { Float::new(bits) } else { rest }
        }
    };
    // Numbers beyond MPFR's range cancel to nothing sensible; only rows left out from the start have such numbers.
    let pivot = if pivot.is_nan() { Float::with_val(bits, Special::NegInfinity) } else { pivot };
    // A row left out from the start has a diagonal entry or a 2 x 2 minor that is not positive.
    let is_certain = index == problem.order;
    let evidence = if is_certain { Evidence::Indefinite } else { examined(input, factor, y, &pivot) };
    refusal(index, &pivot, &diagonal, &evidence)
}

/// The evidence of the whole matrix about the pivot of the row whose factor entries to the left are `y`.
fn examined(input: FactorInput<'_>, factor: &Matrix, y: Vec<Float>, pivot: &Float) -> Evidence {
    let FactorInput { problem, lower } = input;
    let (bits, index) = (problem.working_bits + 64, y.len());
    let mut w = y;
    for i in (0..index).rev() {
        w[i] /= factor.float(i, i);
        let entry = w[i].clone();
        for (k, other) in w[..i].iter_mut().enumerate() {
            *other -= Float::with_val(bits, &entry * &factor.float(i, k));
        }
    }
    w.push(Float::with_val(bits, -1)); // the sign of the whole vector does not matter
    let root = |i: usize| lower.get(i, i).to_float(SHOWN_BITS).sqrt();
    let sizes = w.iter().enumerate().map(|(i, entry)| Float::with_val(SHOWN_BITS, entry).abs() * root(i));
    let sum = sizes.fold(Float::new(SHOWN_BITS), |sum, size| sum + size);
    let noise = Float::with_val(SHOWN_BITS, &sum * &sum) >> (problem.precision_bits as i32 - 2);
    // Within the noise no claim is made, although the matrix as given may be indefinite: its entries have usually been
    // rounded to this precision, and more bits might help.
    if Float::with_val(SHOWN_BITS, -pivot) > noise && quadratic_form_from_above(lower, &w) <= 0 {
        return Evidence::Indefinite;
    }
    Evidence::Noise { noise, precision_bits: problem.precision_bits }
}

/// An upper bound of `v^T A v` for the leading rows of the matrix with this lower triangle: infinite where a number
/// leaves MPFR's range.
fn quadratic_form_from_above(lower: MatrixView<'_>, v: &[Float]) -> Float {
    let entry_bits = lower.precision_bits();
    let Some(bits) = v.iter().map(Float::prec).max().map(|bits| 2 * bits) else { return Float::new(SHOWN_BITS) };
    let mut sum = Float::new(bits);
    for (i, left) in v.iter().enumerate() {
        for (j, right) in v[..=i].iter().enumerate().filter(|(j, _)| !lower.head(i, *j).is_zero()) {
            let pair = Float::with_val(bits, left * right); // exact, with bits for both
            let entry = lower.get(i, j).to_float(entry_bits);
            let is_lost = |number: &Float| number.is_zero() || !number.is_finite();
            if is_lost(&entry) || (is_lost(&pair) && !left.is_zero() && !right.is_zero()) {
                return Float::with_val(bits, Special::Infinity);
            }
            let (term, _) = Float::with_val_round(bits, &pair * &entry, Round::Up);
            sum.add_assign_round(if i == j { term } else { term << 1 }, Round::Up);
        }
    }
    sum
}

// Over ranks data is gathered only here: the matrix and the rows of the factor before the failed one go to one rank,
// which determines whether more precision might help. Where they do not fit its memory limit, the error says that this
// is unknown.

/// The rank that examines the failure.
const ROOT: usize = 0;

/// The data of a failed factorisation.
pub(crate) struct FactorFailure<'a> {
    pub ctx: &'a Context,
    pub group: &'a dyn Transport,
    pub a: &'a DistMatrix,
    pub problem: &'a FactorProblem,
}

impl FactorFailure<'_> {
    /// The row at which the factorisation ends, if it does; `own` is the failure on this rank. Collective.
    ///
    /// If only the first rows of the matrix were tried and all of them are `factored`, it ends at the first row that
    /// was not tried. Any other failure is a separate error.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn first(&self, own: Option<&FailedRow>, factored: bool) -> Result<Option<usize>> {
        let mut word = [own.map_or(0, |failed| failed.index as u64 + 1)];
        self.group.all_reduce(Reduction::Max, &mut word)?;
        Ok(match word[0] {
            0 => (factored && !self.problem.is_whole()).then_some(self.problem.order),
            index => Some(index as usize - 1),
        })
    }

    /// The error for row `index`; `store` fills tiles of the factor with the rows that were finished. Collective.
    pub fn explain(
        &self,
        index: usize,
        own: Option<FailedRow>,
        store: impl FnOnce(&mut DistMatrix) -> Result<()>,
    ) -> Error {
        self.look_into(index, own, store).expect_err("the root has an error")
    }

    /// Fails with the error of the root, or with the error that kept it from the examination.
    fn look_into(
        &self,
        index: usize,
        own: Option<FailedRow>,
        store: impl FnOnce(&mut DistMatrix) -> Result<()>,
    ) -> Result<()> {
        let FactorFailure { ctx, group, a, problem } = *self;
        let pivot = self.pivot(own)?;
        let rows = TileMap { rows: index, cols: index, triangle: Some(Uplo::Lower), ..*a.map() };
        let gathered_bytes = Matrix::bytes_for(a.map().rows, a.map().cols, a.precision_bits())
            + Matrix::bytes_for(index, index, problem.precision_bits);
        let mut refused = [u64::from(group.rank() == ROOT && ctx.admit(gathered_bytes).is_err())];
        group.all_reduce(Reduction::Max, &mut refused)?;
        if refused[0] == 1 {
            let diagonal = self.diagonal(index)?;
            return agree(group, Err(unexamined(problem, index, pivot.as_ref(), &diagonal)));
        }
        let made = DistMatrix::zeros(rows, group.rank(), problem.precision_bits);
        let factor = agreed(group, made.and_then(|mut made| store(&mut made).map(|()| made)))?;
        let (whole, factor) = (a.gather(group, ROOT)?, factor.gather(group, ROOT)?);
        let said = whole
            .zip(factor)
            .map(|(whole, factor)| Err(failure(FactorInput { problem, lower: whole.view() }, index, &factor, pivot)));
        agree(group, said.unwrap_or(Ok(())))
    }

    /// The scaled pivot that some rank met, on all ranks. Collective.
    fn pivot(&self, own: Option<FailedRow>) -> Result<Option<Integer>> {
        let pivot = own.and_then(|failed| failed.pivot);
        let mut holder = [pivot.as_ref().map_or(0, |_| self.group.rank() as u64 + 1)];
        self.group.all_reduce(Reduction::Max, &mut holder)?;
        if holder[0] == 0 {
            return Ok(None);
        }
        let bytes = pivot.map_or(Vec::new(), |pivot| {
            let sign = u8::from(pivot < 0);
            [&[sign][..], &pivot.to_digits::<u8>(Order::Lsf)].concat()
        });
        let bytes = broadcast_bytes(self.group, holder[0] as usize - 1, &bytes)?;
        let size = Integer::from_digits(&bytes[1..], Order::Lsf);
        Ok(Some(if bytes[0] == 1 { -size } else { size }))
    }

    /// The diagonal entry of row `index`, on all ranks. Collective.
    fn diagonal(&self, index: usize) -> Result<Float> {
        let (map, bits) = (self.a.map(), self.a.precision_bits());
        let number = index / map.tile_size;
        let owner = map.owner(TileId { row: number, col: number });
        let own = (self.group.rank() == owner).then(|| self.a.entry(index, index));
        let words = own.map_or(Vec::new(), |entry| [&[entry.head.0][..], entry.limbs].concat());
        let bytes = broadcast_bytes(self.group, owner, bytemuck::cast_slice(&words))?;
        let words = bytemuck::pod_collect_to_vec::<u8, u64>(&bytes);
        Ok(FloatRef { head: Head(words[0]), limbs: &words[1..] }.to_float(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::ops::factor::problem::working_bits;
    use crate::tile::RankGrid;

    fn more_bits(error: &Error) -> MoreBits {
        let Error::NotPositiveDefinite { more_bits, .. } = error else { panic!("{error}") };
        *more_bits
    }

    #[test]
    fn the_hint_promises_no_more_than_is_known() {
        let number = |value: f64| Float::with_val(53, value);
        let said = |pivot, diagonal, evidence| more_bits(&refusal(0, &number(pivot), &number(diagonal), &evidence));
        let noise = || Evidence::Noise { noise: number(1e-6), precision_bits: 64 };
        assert_eq!(said(-1e-9, 1.0, noise()), MoreBits::AtLeast(10 + 8));
        assert_eq!(said(0.0, 1.0, noise()), MoreBits::AtLeast(8 + 8));
        assert_eq!(said(-1.0, 1.0, noise()), MoreBits::Unknown);
        assert_eq!(said(-1.0, 1.0, Evidence::Unexamined), MoreBits::Unknown);
        assert_eq!(said(-1.0, 1.0, Evidence::Indefinite), MoreBits::Never);
        // A diagonal entry that is not positive is a proof, with any other evidence.
        for evidence in [noise(), Evidence::Unexamined, Evidence::Indefinite] {
            assert_eq!(said(0.0, 0.0, evidence), MoreBits::Never);
        }
    }

    #[test]
    fn a_quadratic_form_is_bounded_from_above() {
        let floats = |values: &[f64]| values.iter().map(|&value| Float::with_val(53, value)).collect::<Vec<_>>();
        // The upper triangle is not read.
        let a = Matrix::from_f64s(3, 3, 60, &[2.0, 1.0, -1.0, 9.0, 3.0, 0.0, 9.0, 9.0, 5.0]).unwrap();
        let form = |v: &[f64]| quadratic_form_from_above(a.view(), &floats(v));
        assert_eq!(form(&[1.0, 2.0, 3.0]), 2.0 + 2.0 * 2.0 - 2.0 * 3.0 + 12.0 + 45.0);
        assert_eq!(form(&[1.0, -1.0]), 3.0);
        assert_eq!(form(&[]), 0.0);
        // Exactly singular: the form is exactly 0; with rounding only a bound is found.
        let ones = Matrix::from_f64s(2, 2, 60, &[1.0; 4]).unwrap();
        assert_eq!(quadratic_form_from_above(ones.view(), &floats(&[3.5, -3.5])), 0.0);
        let third = Float::with_val(20, 1) / 3u32;
        let thirds = Matrix::from_fn(2, 2, 400, |_, _| Float::with_val(400, 1) / 3u32).unwrap();
        let bound = quadratic_form_from_above(thirds.view(), &[third.clone(), -third]);
        assert!(bound >= 0 && bound < 1e-10, "{bound}");
        // A vector out of range proves nothing.
        let far: Float = Float::with_val(53, 1) << (1 << 29);
        let signed = |sign: i32| Float::with_val(53, &far * sign);
        for pair in [[signed(1), signed(-1)], [signed(-1), signed(1)]] {
            assert!(quadratic_form_from_above(ones.view(), &pair).is_infinite());
        }
        let near: Float = Float::with_val(53, 1) >> ((1 << 29) + 5);
        let pair = [near.clone(), -near];
        assert!(quadratic_form_from_above(ones.view(), &pair).is_infinite());
    }

    /// A root that may not gather the matrix reports "unknown" where it otherwise reports that no precision helps, and
    /// names the diagonal entry as it is.
    #[test]
    fn a_root_without_memory_claims_nothing_it_has_not_seen() {
        let grid = RankGrid { rows: 2, cols: 1 };
        let map = TileMap { tile_size: 2, grid, ..TileMap::symmetric(5, 2) };
        let entry = |i: usize, j: usize| match (i, j) {
            (4, 4) => -7.0,
            (i, j) if i == j => 3.0,
            _ => 1.0,
        };
        let entries = (0..25).map(|at| entry(at % 5, at / 5)).collect::<Vec<_>>();
        let whole = Matrix::from_f64s(5, 5, 60, &entries).unwrap();
        let problem = FactorProblem::new(whole.view(), 50, working_bits(50, 11_000).unwrap()).unwrap();
        assert_eq!(problem.order, 4, "row 4 is left out from the start");
        let found = |index: usize, pivot: Option<Integer>| {
            let errors = local::run(2, |rank| {
                let ctx = Context::builder().threads(1).memory_bytes(64).build().unwrap();
                let a = DistMatrix::of_whole(&whole, map, rank.rank()).unwrap();
                let failure = FactorFailure { ctx: &ctx, group: rank, a: &a, problem: &problem };
                let own = (rank.rank() == 1).then(|| FailedRow { index, pivot: pivot.clone() });
                failure.explain(index, own, |_| unreachable!("there is no memory for the factor"))
            });
            assert_eq!(errors[0].to_string(), errors[1].to_string());
            let Error::NotPositiveDefinite { pivot, diagonal, more_bits, .. } = &errors[1] else {
                panic!("{errors:?}")
            };
            (pivot.to_f64(), diagonal.to_f64(), *more_bits)
        };
        let unit = Integer::from(1) << (2 * problem.working_bits);
        assert_eq!(problem.exponents[2], 1);
        assert_eq!(found(2, Some(-unit)), (-4.0, 3.0, MoreBits::Unknown));
        assert_eq!(found(3, None), (0.0, 3.0, MoreBits::Unknown));
        assert_eq!(found(4, None), (0.0, -7.0, MoreBits::Never));
    }
}
