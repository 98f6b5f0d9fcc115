//! A kept factor over ranks: factored once and used for many solves, so that its numbers are not read again.

use super::CallOutcome;
use super::caller::{ArgumentFault, CallFailure, Caller};
use super::factors::{factor_into, inverse_factored, log_det_factored, new_factor, no_factor, solve_factored};
use super::matrix::PlacedMatrix;
use super::opening::Opening;
use super::ranks::CallRanks;
use super::triangle::TrianglePart;
use crate::comm::Reduction;
use crate::error::Error;
use crate::matrix::{MAXIMUM_PRECISION_BITS, MatrixView, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::site::Team;
use std::sync::atomic::{AtomicU64, Ordering};

/// A Cholesky factor in tiles over the ranks: the tiles of this rank.
#[derive(Debug)]
pub struct KeptFactor {
    tiles: DistMatrix,
    /// Whether the last renewal failed.
    is_lost: bool,
    /// A number that no other factor of these ranks has.
    number: u64,
}

/// A number for a factor, the same on all ranks and larger than any that one of them has given before. Collective.
fn next_number(team: &Team) -> crate::Result<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut number = [NEXT.load(Ordering::Relaxed)];
    team.world().all_reduce(Reduction::Max, &mut number)?;
    NEXT.fetch_max(number[0] + 1, Ordering::Relaxed);
    Ok(number[0])
}

/// The bits of a factor of `a` in its lower triangle, or in both, where `asked_bits` are requested: with 0 the most
/// that its entries have, over all ranks. Collective.
fn bits_of<C: Caller>(
    ranks: &CallRanks<'_, C>,
    a: &PlacedMatrix<C::Array>,
    uplo: Option<Uplo>,
    asked_bits: u32,
) -> CallOutcome<u32, C> {
    if asked_bits == 0 { a.result_bits(ranks, uplo.map(TrianglePart::from)) } else { Ok(asked_bits) }
}

impl KeptFactor {
    /// The factor of `a`, with `asked_bits` bits, or with 0 at the largest precision of its entries. Collective.
    ///
    /// # Errors
    /// Shapes; the errors of the caller and of [`crate::distributed::cholesky_with`]; on all ranks.
    pub fn new<C: Caller>(
        caller: &C,
        team: &Team,
        uplo: Option<Uplo>,
        asked_bits: u32,
        a: PlacedMatrix<C::Array>,
    ) -> CallOutcome<KeptFactor, C> {
        let order = a.order::<C::Failure>();
        let a = a.into_lower(uplo);
        let uplo = uplo.map(|_| Uplo::Lower);
        let bits = bits_of(&CallRanks::new(caller, team), &a, uplo, asked_bits)?;
        order?;
        let tiles = new_factor(caller, team, uplo, &a, bits)?;
        Ok(KeptFactor { tiles, is_lost: false, number: next_number(team)? })
    }

    /// Replaces it by [`KeptFactor::new`], in its own memory if order and precision are unchanged and there is no
    /// memory limit. Collective.
    ///
    /// # Errors
    /// As [`KeptFactor::new`]; after an error of the factorisation the factor has no rows, and is refused until it is
    /// renewed.
    pub fn renew<C: Caller>(
        &mut self,
        caller: &C,
        team: &Team,
        uplo: Option<Uplo>,
        asked_bits: u32,
        a: PlacedMatrix<C::Array>,
    ) -> CallOutcome<(), C> {
        let order = a.order::<C::Failure>();
        let a = a.into_lower(uplo);
        let uplo = uplo.map(|_| Uplo::Lower);
        let bits = bits_of(&CallRanks::new(caller, team), &a, uplo, asked_bits)?;
        let number = next_number(team)?;
        order?;
        if !(2..=MAXIMUM_PRECISION_BITS).contains(&bits) {
            let maximum_bits = MAXIMUM_PRECISION_BITS.into();
            return Err(Error::Precision { precision_bits: bits.into(), maximum_bits }.into());
        }
        self.is_lost = true;
        if let Err(failure) = factor_into(caller, team, uplo, &a, bits, &mut self.tiles) {
            // The old one is still there where A could not be taken in.
            self.tiles = no_factor()?;
            return Err(failure);
        }
        (self.is_lost, self.number) = (false, number);
        Ok(())
    }

    /// Rows of the factored matrix.
    pub fn order(&self) -> usize {
        self.tiles.map().rows
    }

    /// Bits of the entries of the factor.
    pub fn precision_bits(&self) -> u32 {
        self.tiles.precision_bits()
    }

    /// Records it as the argument `factor` of a call, which must be the same factor on all ranks.
    pub fn describe(&self, open: &mut Opening<'_>) {
        let (map, bits) = (self.tiles.map(), self.precision_bits());
        let (rows, grid) = (map.rows, map.grid);
        open.say("factor", "its matrix has", format!("{rows} rows"));
        open.say("factor", "it has", format!("{bits} bits"));
        open.say("factor", "it lies in", format!("tiles of {} on {} x {} ranks", map.tile_size, grid.rows, grid.cols));
        open.say("factor", "it is the factor number", self.number);
    }

    /// Records it as [`KeptFactor::describe`], and returns an error if it is lost.
    ///
    /// # Errors
    /// The last renewal failed.
    pub fn usable<F: CallFailure>(&self, open: &mut Opening<'_>) -> Result<&KeptFactor, F> {
        self.describe(open);
        let message = "the last renewal of the factor failed; renew it again";
        if self.is_lost { Err(F::refused("factor", ArgumentFault::Value, message.into())) } else { Ok(self) }
    }

    /// Computes `b := a^-1 b` for the factored `a`. Collective.
    ///
    /// # Errors
    /// Shapes; the errors of the caller and of [`crate::distributed::solve_with`]; on all ranks.
    pub fn solve<C: Caller>(&self, caller: &C, team: &Team, b: PlacedMatrix<C::Array>) -> CallOutcome<(), C> {
        b.check_shape::<C::Failure>(self.order(), b.cols())?;
        let bits = b.result_place(&CallRanks::new(caller, team), None)?;
        solve_factored(caller, team, &self.tiles, b, bits)
    }

    /// Computes `x := a^-1` for the factored `a`. Collective.
    ///
    /// # Errors
    /// Shapes; the errors of the caller and of [`crate::distributed::inverse`]; on all ranks.
    pub fn inverse<C: Caller>(&self, caller: &C, team: &Team, x: PlacedMatrix<C::Array>) -> CallOutcome<(), C> {
        x.check_shape::<C::Failure>(self.order(), self.order())?;
        let bits = x.result_place(&CallRanks::new(caller, team), None)?;
        inverse_factored(caller, team, &self.tiles, x, bits)
    }

    /// The logarithm of the determinant of the factored matrix: `store` passes the pivots to [`super::stored_log_det`]
    /// on a rank that needs the number. Collective.
    ///
    /// # Errors
    /// [`Error::Singular`], and the errors of `store`; on all ranks.
    pub fn log_det<C: Caller>(
        &self,
        team: &Team,
        store: impl FnOnce(MatrixView<'_>) -> CallOutcome<(), C>,
    ) -> CallOutcome<(), C> {
        log_det_factored::<C>(team, &self.tiles, store)
    }

    /// Stores the factor in a triangle of `a`, transposed in the upper one. Collective.
    ///
    /// # Errors
    /// Errors of shapes; the errors of the caller; on all ranks.
    pub fn store<C: Caller>(
        &self,
        caller: &C,
        team: &Team,
        uplo: Uplo,
        a: PlacedMatrix<C::Array>,
    ) -> CallOutcome<(), C> {
        let ranks = CallRanks::new(caller, team);
        a.check_shape::<C::Failure>(self.order(), self.order())?;
        let mut a = a.into_lower(Some(uplo));
        let part = Some(TrianglePart::Lower);
        a.result_place(&ranks, part)?; // all of them are initialised
        a.give(&ranks, part, &self.tiles)
    }
}
