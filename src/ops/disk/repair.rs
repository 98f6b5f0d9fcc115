//! Attempts at a result until no stored object turns out damaged.

use super::DiskUse;
use crate::comm::{Reduction, Transport, agree};
use crate::error::{Error, Result};
use crate::storage::AnsweredStorage;

/// What came of one attempt.
pub(crate) struct Attempt {
    /// The directory that it worked in.
    pub objects: AnsweredStorage,
    /// An object that was found damaged there.
    pub damaged: Option<String>,
    /// Whether the result is there.
    pub outcome: Result<()>,
}

impl Attempt {
    /// The object that an error names as damaged.
    pub fn damage(error: &Error) -> Option<String> {
        match error {
            Error::Damaged { object, .. } | Error::Truncated { object, .. } => Some(object.clone()),
            _ => None,
        }
    }
}

/// Calls `attempt`, which takes the stored objects as found and makes the missing ones; repeats it as long as some rank
/// found a damaged object, which is discarded first. Collective.
///
/// # Errors
/// The error of an attempt without damage.
pub(crate) fn until_whole(
    world: &dyn Transport,
    used: &mut DiskUse,
    mut attempt: impl FnMut(&mut DiskUse) -> Result<Attempt>,
) -> Result<()> {
    loop {
        let Attempt { objects, damaged, outcome } = attempt(used)?;
        used.add(&objects.storage);
        let mut any_damaged = [u64::from(damaged.is_some())];
        world.all_reduce(Reduction::Max, &mut any_damaged)?;
        if outcome.is_ok() || any_damaged[0] == 0 {
            return outcome;
        }
        used.groups_repaired += usize::from(damaged.is_some());
        agree(world, damaged.map_or(Ok(()), |object| objects.discard(&object)))?;
    }
}
