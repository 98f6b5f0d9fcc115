//! The phases of every rank in the trace of the root, on one time axis: all ranks begin a call at the same fence.

use sunzi::Result;
use sunzi::distributed::{RANK_PHASES, RankSpan, Team};
use sunzi_lab::session::ROOT;
use sunzi_lab::trace::{RankStep, Trace};

/// Adds the phases of all ranks to the latest step of the root's trace. Collective.
pub fn add(trace: &mut Trace, team: &Team, spans: &[RankSpan]) -> Result<()> {
    let own = spans.iter().flat_map(|span| [span.phase as u64, span.start_ns, span.end_ns]).collect::<Vec<_>>();
    let mut counts = vec![0; team.size()];
    team.world().all_gather(&[own.len() as u64], &mut counts)?;
    let most = counts.iter().copied().max().unwrap_or(0) as usize;
    let mut padded = own;
    padded.resize(most, 0);
    let mut all = vec![0; most * team.size()];
    team.world().all_gather(&padded, &mut all)?;
    if team.rank() != ROOT {
        return Ok(());
    }
    for (rank, &count) in counts.iter().enumerate() {
        let words = all[rank * most..][..count as usize].as_chunks::<3>().0;
        let steps = words.iter().map(|&[phase, start_ns, end_ns]| RankStep {
            name: RANK_PHASES[phase as usize].1,
            start: start_ns as f64 * 1e-9,
            end: end_ns as f64 * 1e-9,
        });
        trace.add_rank(team.layout().node_of[rank], rank, steps);
    }
    Ok(())
}
