//! The memory limit of commands on several ranks, compared with the headers of files before anything is read, so that
//! the first refusal names a limit in which the command runs to its end.

use crate::input::{Announced, Reader};
use std::path::Path;
use sunzi::comm::{Transport, agree, agreed};
use sunzi::distributed::Team;
use sunzi::{Context, ContextBuilder, Result};
use sunzi_session::engine::{Engine, larger_refusal, limited};
use sunzi_session::session::ROOT;

/// Words of an announced matrix in a message.
const WORDS: usize = 3;

/// The contents of the headers of files, read by the root and sent to all, and the precision of the work; `None` where
/// one has no header. Collective.
///
/// # Errors
/// The errors of reading headers, on every rank.
pub fn announced<'a>(
    world: &dyn Transport,
    files: &[&Path],
    reader: impl FnOnce() -> Result<Reader<'a>>,
) -> Result<Option<(u32, Vec<Announced>)>> {
    let look = || {
        let reader = reader()?;
        Ok(reader.announced(files)?.map(|found| (reader.precision_bits(), found)))
    };
    let found = agreed(world, if world.rank() == ROOT { look() } else { Ok(None) })?;
    let mut words = vec![0; 1 + WORDS * files.len()];
    if let Some((bits, found)) = found {
        words[0] = u64::from(bits);
        for (words, own) in words[1..].chunks_exact_mut(WORDS).zip(found) {
            words.copy_from_slice(&[own.rows as u64, own.cols as u64, own.bits.into()]);
        }
    }
    world.broadcast(ROOT, &mut words)?;
    let of_words =
        |words: &[u64]| Announced { rows: words[0] as usize, cols: words[1] as usize, bits: words[2] as u32 };
    let bits = words[0] as u32;
    Ok((bits > 0).then(|| (bits, words[1..].chunks_exact(WORDS).map(of_words).collect())))
}

/// The bytes that the ranks will hold in addition to the work.
pub struct Held {
    /// This rank's parts of the operands.
    pub own_bytes: u64,
    /// Operands that the root holds whole while it shares them out.
    pub whole_bytes: u64,
    /// The result, gathered on the root.
    pub gathered_bytes: u64,
}

/// Refuses a limit in which the ranks of a node could not read, compute and gather: `plan` gives the results of
/// planning the steps of the work within the limit that is left. Collective.
///
/// # Errors
/// [`sunzi::Error::MemoryLimit`] with the smallest limit that suffices for all steps, on every rank; the errors of
/// planning.
pub fn admit(
    team: &Team,
    engine: &Engine,
    builder: ContextBuilder,
    held: &Held,
    plan: impl FnOnce(&Context) -> Vec<Result<()>>,
) -> Result<()> {
    let Some(budget) = engine.budget(0) else { return Ok(()) };
    let budget = budget.with_held(held.own_bytes).of_node(team.node())?;
    let has_root = team.layout().node_of[team.rank()] == team.layout().node_of[ROOT];
    let with = |bytes: u64| if has_root { budget.with_held(bytes) } else { budget };
    let reading = with(held.whole_bytes).admit(0);
    let (builder, restate) = limited(builder, Some(with(held.gathered_bytes)));
    let ctx = agreed(team.world(), builder.build())?;
    let steps = plan(&ctx).into_iter().map(|step| step.map_err(&restate));
    agree(team.world(), steps.fold(reading, larger_refusal))
}
