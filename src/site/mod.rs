//! The site of a call: a context, and the ranks that compute together.
//!
//! Depends on: ranks, nodes, windows, memory limits. Independent of: matrices.

mod team;

use crate::comm::{Reduction, Transport, agree, agreed, broadcast_bytes};
use crate::context::Context;
use crate::error::{Error, Result};
use bytemuck::{cast_slice, pod_collect_to_vec};
pub use team::{NodeLayout, Team, TeamOptions};
pub(crate) use team::{Windows, close_all};

/// The rank that reads the files of a call, and writes its result.
pub(crate) const ROOT: usize = 0;

/// Where a call runs, seen from one of its ranks: the context with its threads, devices and memory limit, which is
/// that of the node, and the team of all ranks. One process is a team of one rank.
///
/// Methods that are collective are called by all ranks, in the same order.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub ctx: &'a Context,
    pub team: &'a Team,
}

impl<'a> Site<'a> {
    /// One process.
    pub fn one_process(ctx: &'a Context) -> Site<'a> {
        Site { ctx, team: Team::one_process() }
    }

    /// The same ranks with another context.
    pub fn with<'b>(self, ctx: &'b Context) -> Site<'b>
    where
        'a: 'b,
    {
        Site { ctx, team: self.team }
    }

    /// All ranks.
    pub fn world(&self) -> &'a dyn Transport {
        self.team.world()
    }

    /// Whether this rank reads the files of the call, and writes its result.
    pub fn is_root(&self) -> bool {
        self.team.rank() == ROOT
    }

    /// Returns `Ok` if every rank passes `Ok`, else the same error on every rank. Collective.
    ///
    /// # Errors
    /// As [`agree`].
    pub fn agree(&self, outcome: Result<()>) -> Result<()> {
        agree(self.world(), outcome)
    }

    /// Returns the value if every rank has one, else the same error on every rank. Collective.
    ///
    /// # Errors
    /// As [`agree`].
    pub fn agreed<T>(&self, made: Result<T>) -> Result<T> {
        agreed(self.world(), made)
    }

    /// The largest of the ranks' numbers. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn largest(&self, number: u64) -> Result<u64> {
        if self.team.size() == 1 {
            return Ok(number);
        }
        let mut words = [number];
        self.world().all_reduce(Reduction::Max, &mut words)?;
        Ok(words[0])
    }

    /// The smallest of the ranks' numbers. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn smallest(&self, number: u64) -> Result<u64> {
        self.largest(!number).map(|largest| !largest)
    }

    /// Returns an error on every rank if some node's limit does not allow `bytes` on each of its ranks. Collective.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`]; [`Error::Transport`].
    pub fn admit(&self, bytes: u64) -> Result<()> {
        self.agree(self.ctx.admit(self.on_node(bytes)))
    }

    /// Bytes of the node if each of its ranks uses `bytes`.
    pub fn on_node(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.team.ranks_here())
    }

    /// A context with an even share of the node's limit, and of the bytes that are held within it.
    pub fn share(&self) -> Context {
        self.ctx.with_memory(self.ctx.memory().divided(self.team.ranks_here()))
    }

    /// The context of a rank that holds `bytes`, which also counts the bytes that the other ranks of its node hold.
    /// Collective over the node.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn holding(&self, bytes: u64) -> Result<Context> {
        let mut sum = [bytes];
        self.team.node().all_reduce(Reduction::Sum, &mut sum)?;
        Ok(self.ctx.holding(sum[0]))
    }

    /// The outcome of a step within [`Site::share`]; an error of memory names the limit of the node.
    ///
    /// # Errors
    /// The errors of `outcome`.
    pub fn of_node<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| match error {
            // A rank without a limit of its own passes on the refusal of a rank with one.
            Error::MemoryLimit { minimum_bytes, .. } => Error::MemoryLimit {
                limit_bytes: self.ctx.memory_bytes().unwrap_or(u64::MAX),
                minimum_bytes: self.on_node(minimum_bytes),
            },
            other => other,
        })
    }

    /// Numbers that the root determines, on all ranks. Collective.
    ///
    /// # Errors
    /// The errors of `find`; [`Error::Transport`].
    pub fn root_finds(&self, find: impl FnOnce() -> Result<Vec<u64>>) -> Result<Vec<u64>> {
        let found = self.agreed(self.is_root().then(find).transpose())?.unwrap_or_default();
        if self.team.size() == 1 {
            return Ok(found);
        }
        broadcast_bytes(self.world(), ROOT, cast_slice(&found)).map(|bytes| pod_collect_to_vec(&bytes))
    }
}
