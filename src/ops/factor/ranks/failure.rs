//! The error for a matrix that is not positive definite: the same on all ranks, and the same as in one process.
//!
//! Only here data is gathered: the matrix and the rows of the factor before the failed one go to one rank, which
//! determines whether more precision might help. If they do not fit its memory limit, the error states that this is
//! unknown.

use crate::comm::{Reduction, Transport, agree, agreed, broadcast_bytes};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Matrix, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::factor::diagnose::{self, Evidence, refusal};
use crate::ops::factor::problem::{FactorInput, FactorProblem};
use crate::ops::factor::tile_work::FailedRow;
use crate::tile::{TileId, TileMap};
use rug::float::Special;
use rug::integer::Order;
use rug::{Float, Integer};

/// The rank that examines the failure.
const ROOT: usize = 0;

/// Bits of the numbers in the error.
const SHOWN_BITS: u32 = 53;

/// The data of a failed factorisation.
pub(super) struct FactorFailure<'a> {
    pub ctx: &'a Context,
    pub group: &'a dyn Transport,
    pub a: &'a DistMatrix,
    pub problem: &'a FactorProblem,
}

impl FactorFailure<'_> {
    /// The row at which the factorisation ends, if it does; `own` where this rank met it. Collective.
    ///
    /// A matrix that was cut from the start ends at the cut where all rows before it are `factored`; any other failure
    /// is a separate error.
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
            return agree(group, Err(self.bare(index, pivot.as_ref(), &diagonal)));
        }
        let made = DistMatrix::zeros(rows, group.rank(), problem.precision_bits);
        let factor = agreed(group, made.and_then(|mut made| store(&mut made).map(|()| made)))?;
        let (whole, factor) = (a.gather(group, ROOT)?, factor.gather(group, ROOT)?);
        let said = whole.zip(factor).map(|(whole, factor)| {
            Err(diagnose::failure(FactorInput { problem, lower: whole.view() }, index, &factor, pivot))
        });
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

    /// The error without a look at the matrix as a whole.
    fn bare(&self, index: usize, pivot: Option<&Integer>, diagonal: &Float) -> Error {
        // Row `order` was left out from the start, for a diagonal entry or a 2 x 2 minor that is not positive.
        let evidence = if index < self.problem.order { Evidence::Unexamined } else { Evidence::Indefinite };
        let pivot = pivot.map_or(Float::with_val(SHOWN_BITS, Special::NegZero), |scaled| {
            let exponent = 2 * (self.problem.exponents[index] - i64::from(self.problem.working_bits));
            Float::with_val(SHOWN_BITS, scaled) << exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32
        });
        refusal(index, &pivot, diagonal, &evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::error::MoreBits;
    use crate::ops::factor::problem::working_bits;
    use crate::tile::RankGrid;

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
