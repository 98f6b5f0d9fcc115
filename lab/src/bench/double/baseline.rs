//! Another implementation for comparison: ScaLAPACK, where it is built in and the ranks are MPI processes; both sides
//! run in turns.

use super::{BenchDouble, BenchRanks};
use crate::bench::spread::Spread;
use serde::Serialize;
use sunzi::Result;
#[cfg(feature = "scalapack")]
use sunzi::comm::Transport;

/// Its measurements.
#[derive(Serialize)]
pub struct BaselineTimes {
    /// The name and the options of the baseline.
    pub name: String,
    /// Seconds of the slowest rank.
    pub seconds: Spread,
    pub gflops: f64,
}

/// Runs both sides in turns.
#[cfg(not(feature = "scalapack"))]
pub fn in_turns(
    _all: &BenchRanks<'_>,
    config: &BenchDouble,
    ours: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<BaselineTimes>> {
    (0..config.runs).try_for_each(|_| ours())?;
    Ok(None)
}

/// Runs both sides in turns, ScaLAPACK with the grid and the blocks that are best for it.
#[cfg(feature = "scalapack")]
pub fn in_turns(
    all: &BenchRanks<'_>,
    config: &BenchDouble,
    ours: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<BaselineTimes>> {
    use crate::baselines::scalapack::{BlockCyclicLayout, Pdpotrf};
    let Some(rank) = &all.mpi else {
        (0..config.runs).try_for_each(|_| ours())?;
        return Ok(None);
    };
    let entry = super::system::entry(config.rows);
    let grids = (1..=rank.size()).filter(|rows| rank.size().is_multiple_of(*rows));
    let layout = |grid_rows: usize, block_rows: usize| BlockCyclicLayout {
        order: config.rows,
        block_rows,
        grid_rows,
        grid_cols: rank.size() / grid_rows,
    };
    let mut best: Option<(f64, BlockCyclicLayout)> = None;
    for layout in grids.flat_map(|rows| [64, 128].map(|block| layout(rows, block))) {
        let seconds = Pdpotrf::new(rank, layout)?.measure(1, entry)?.min;
        best = best.filter(|(least, _)| *least <= seconds).or(Some((seconds, layout)));
    }
    let (_, layout) = best.expect("there is a grid");
    let mut baseline = Pdpotrf::new(rank, layout)?;
    let mut seconds = Vec::new();
    for _ in 0..config.runs {
        ours()?;
        seconds.push(baseline.measure(1, entry)?.min);
    }
    let seconds = Spread::of(&seconds);
    let name = format!("pdpotrf {} x {} blocks of {}", layout.grid_rows, layout.grid_cols, layout.block_rows);
    Ok(Some(BaselineTimes { name, gflops: super::gflops(config.rows, seconds.median), seconds }))
}
