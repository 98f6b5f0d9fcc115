//! What a distributed call tells about itself: the plan, and the time of each phase on each rank.

use crate::comm::Transport;
use crate::error::Result;
use crate::ops::product::plan::TeamPlan;
use crate::ops::product::report::{Phases, RANK_PHASES, RankPhase};
use serde::Serialize;

/// What the ranks of a team tell of one call; the same on all of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TeamReport {
    /// How they shared it.
    #[serde(flatten)]
    pub plan: TeamPlan,
    /// Seconds of the phases over the ranks.
    pub rank_phases: RankPhases,
    /// `heap`, `mpi` or `posix`.
    pub window: &'static str,
    /// Bytes of the windows of the node that has most of them.
    pub window_bytes: u64,
}

/// Seconds over ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Least.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Most.
    pub max: f64,
}

/// Seconds of each phase over all ranks; waiting is counted apart from work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RankPhases {
    /// Norms and scale exponents.
    pub scale: Spread,
    /// Opening windows and placing their pages.
    pub windows: Spread,
    /// Scaled integers and their residues.
    pub to_residues: Spread,
    /// Plane products.
    pub product: Spread,
    /// Residues sent, received and added.
    pub exchange: Spread,
    /// Residues back to integers, rounded and stored.
    pub reconstruct: Spread,
    /// Waiting for other ranks.
    pub wait: Spread,
}

impl RankPhases {
    /// The longest of each phase over the ranks; what nodes exchange counts as reconstruction.
    pub(crate) fn longest(&self) -> Phases {
        Phases {
            scale: self.scale.max,
            to_residues: self.to_residues.max,
            product: self.product.max,
            reconstruct: self.exchange.max + self.reconstruct.max,
            unscale: 0.0,
        }
    }
}

/// Gathers the totals of all ranks. Collective.
///
/// # Errors
/// [`crate::Error::Transport`].
pub(crate) fn spread_over_ranks(world: &dyn Transport, totals: &[f64; RANK_PHASES.len()]) -> Result<RankPhases> {
    let own = totals.map(f64::to_bits);
    let mut all = vec![0; own.len() * world.size()];
    world.all_gather(&own, &mut all)?;
    let spread = |phase: RankPhase| {
        let of_rank = all.iter().skip(phase as usize).step_by(own.len());
        let mut seconds = of_rank.map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>();
        seconds.sort_by(f64::total_cmp);
        Spread { min: seconds[0], median: seconds[seconds.len() / 2], max: seconds[seconds.len() - 1] }
    };
    Ok(RankPhases {
        scale: spread(RankPhase::Scale),
        windows: spread(RankPhase::Windows),
        to_residues: spread(RankPhase::ToResidues),
        product: spread(RankPhase::Product),
        exchange: spread(RankPhase::Exchange),
        reconstruct: spread(RankPhase::Reconstruct),
        wait: spread(RankPhase::Wait),
    })
}
