//! A call with the ranks that make it: steps on which they agree, and the memory limit that the ranks of a node share.

use super::CallOutcome;
use super::account::CallAccount;
use super::caller::{CallFailure, Caller, LocalInput};
use crate::comm::{Reduction, Transport, agree};
use crate::context::Context;
use crate::error::Error;
use crate::site::Team;
use std::borrow::Cow;

/// The result of a step on this rank, if it succeeded on all ranks. Collective: a rank on which the step fails must not
/// leave the others waiting; it returns its own failure.
///
/// # Errors
/// The failure of this rank, or of another one.
pub fn together<T, F: CallFailure>(world: &dyn Transport, own: Result<T, F>) -> Result<T, F> {
    let outcome = own.as_ref().map(|_| ()).map_err(|failure| Error::InvalidArgument(failure.message().into()));
    let agreed = agree(world, outcome);
    let own = own?;
    agreed?;
    Ok(own)
}

/// A call with the ranks that make it.
pub struct CallRanks<'a, C> {
    pub(super) caller: &'a C,
    pub(super) world: &'a dyn Transport,
    pub(super) node: &'a dyn Transport,
}

impl<'a, C: Caller> CallRanks<'a, C> {
    /// The ranks of `team`.
    pub fn new(caller: &'a C, team: &'a Team) -> CallRanks<'a, C> {
        CallRanks { caller, world: team.world(), node: team.node() }
    }

    pub(super) fn account(&self) -> &'a CallAccount<'a> {
        self.caller.account()
    }

    /// The context, with the part of the memory limit that all ranks of the node do not hold. Collective.
    pub(super) fn context(&self) -> CallOutcome<Cow<'a, Context>, C> {
        self.count_held()?;
        Ok(self.account().context())
    }

    /// Counts the bytes that the node's ranks hold, where any rank has a limit. Collective.
    pub(super) fn count_held(&self) -> CallOutcome<(), C> {
        if self.account().is_limited() { self.count_node(0) } else { Ok(()) }
    }

    /// Takes `bytes` bytes of the memory limit, on each rank its own; refused on all ranks where a node has fewer.
    /// Collective.
    pub(super) fn hold(&self, bytes: u64) -> CallOutcome<(), C> {
        let account = self.account();
        if !account.is_limited() {
            return Ok(account.hold_bytes(bytes)?);
        }
        self.count_node(bytes)?;
        let fits = account.hold_bytes(bytes);
        // The bytes that the others take now have been counted already.
        together(self.world, fits.map_err(C::Failure::from))
    }

    /// Notes the bytes that the node's other ranks hold, with `bytes` more on each rank. Collective over the node.
    fn count_node(&self, bytes: u64) -> CallOutcome<(), C> {
        let own = self.account().held_bytes().saturating_add(bytes);
        let mut sum = [own];
        self.node.all_reduce(Reduction::Sum, &mut sum)?;
        self.account().note_others(sum[0].saturating_sub(own));
        Ok(())
    }

    /// Gives back the bytes that a copy of an operand has taken.
    pub(super) fn drop_input(&self, input: LocalInput<'_>) {
        let bytes = input.copied_bytes();
        self.account().release_bytes(bytes);
        self.account().count(|tally| tally.drop_copy(bytes));
        self.keep_input(input);
    }

    /// Keeps the memory of a copy for the next call.
    pub(super) fn keep_input(&self, input: LocalInput<'_>) {
        if let LocalInput::Copied(matrix, _) = input {
            self.caller.keep(matrix);
        }
    }
}
