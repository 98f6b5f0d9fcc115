//! A rank of those that share an operation above their disks.

use crate::comm::{Transport, agreed, broadcast_bytes, local};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ops::distribution::team::Team;
use crate::storage::is_storage;
use bytemuck::{cast_slice, pod_collect_to_vec};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The rank that reads all of the inputs, and writes the result.
pub(crate) const ROOT: usize = 0;

/// A rank of those that share an operation, or the one process.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub world: &'a dyn Transport,
    /// Ranks of this node, which share its limit.
    pub ranks_here: u64,
}

impl Place<'static> {
    /// One process by itself.
    pub fn alone() -> Place<'static> {
        Place { world: local::alone(), ranks_here: 1 }
    }
}

impl<'a> Place<'a> {
    /// This rank of a team.
    pub fn of(team: &'a Team) -> Place<'a> {
        Place { world: team.world(), ranks_here: team.ranks_here() }
    }

    /// Whether it is the rank that reads all of the inputs, and writes the result.
    pub fn is_root(&self) -> bool {
        self.world.rank() == ROOT
    }

    /// A context with this rank's share of the node's limit.
    pub fn share(&self, ctx: &Context) -> Context {
        ctx.with_memory_bytes(ctx.memory_bytes().map(|bytes| bytes / self.ranks_here))
    }

    /// What a rank with its share of the limit says, as the node would.
    pub fn restated<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| match error {
            Error::MemoryLimit { limit_bytes, minimum_bytes } => Error::MemoryLimit {
                limit_bytes: limit_bytes.saturating_mul(self.ranks_here),
                minimum_bytes: minimum_bytes.saturating_mul(self.ranks_here),
            },
            other => other,
        })
    }

    /// Numbers that rank 0 finds, on all ranks. Collective.
    ///
    /// # Errors
    /// Those of `find`; [`Error::Transport`].
    pub fn told_by_root(&self, find: impl FnOnce() -> Result<Vec<u64>>) -> Result<Vec<u64>> {
        let found = agreed(self.world, self.is_root().then(find).transpose())?.unwrap_or_default();
        if self.world.size() == 1 {
            return Ok(found);
        }
        broadcast_bytes(self.world, ROOT, cast_slice(&found)).map(|bytes| pod_collect_to_vec(&bytes))
    }

    /// The exponents and the checksums that rank 0 finds in files, on all ranks. Collective.
    ///
    /// # Errors
    /// As [`Place::told_by_root`].
    pub fn scanned_by_root(&self, scan: impl FnOnce() -> Result<(Vec<i64>, [u64; 2])>) -> Result<(Vec<i64>, [u64; 2])> {
        let words = self.told_by_root(|| {
            let (exponents, checksums) = scan()?;
            Ok(checksums.into_iter().chain(exponents.into_iter().map(|exponent| exponent as u64)).collect())
        })?;
        let (checksums, exponents) = words.split_at(2);
        Ok((exponents.iter().map(|&word| word as i64).collect(), [checksums[0], checksums[1]]))
    }

    /// This rank's directory: the one given, of one process, or one of its own below it. What one process has begun
    /// rank 0 goes on with, and the other way round.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn directory(&self, storage: &Path) -> Result<PathBuf> {
        let own = storage.join(format!("rank-{}", self.world.rank()));
        let is_alone = self.world.size() == 1;
        if self.is_root() && !own.exists() && (is_alone || is_storage(storage)) {
            return Ok(storage.to_path_buf());
        }
        make_directory(storage)?;
        Ok(own)
    }
}

/// Makes a directory in a folder that exists, unless it is there.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::Io { path: path.to_path_buf(), action: "create", source: error })
        }
        _ => Ok(()),
    }
}
