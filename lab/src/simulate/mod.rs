//! A tiled Cholesky factorisation over many processes in virtual time: the protocol that threads and MPI run as well,
//! on a machine that is described by numbers.
//!
//! Promise: the same options give the same figures; a run in which a task is lost, done twice or starved is an error.
//! Depends on: the protocol, the memory of devices, the model of the machine. Independent of: the contents of tiles,
//! files, the presentation of figures. The model is in docs/SIMULATION.md.
#![forbid(unsafe_code)]

mod accelerator;
mod clock;
#[cfg(test)]
mod disk_tests;
mod disks;
mod host;
mod jobs;
mod level;
mod links;
mod machine;
mod mail;
mod moves;
mod options;
mod record;
mod report;
mod soak;
mod statistics;
mod study;
mod table;
#[cfg(test)]
mod tests;
mod watch;
mod world;

pub use machine::{Cluster, Device, Disk, Network, ProcessLayout, Rates, Tiles};
pub use options::SimulationOptions;
pub use record::{FigureSummary, Recorder, Sample, TraceSpan, Track};
pub use report::{Busy, DiskFigures, MessageCounts, Messages, Simulation};
pub use soak::{SoakCase, soak_case};
pub use study::{MatrixSize, SimulateCholesky, Soak, cholesky, soak};

use std::time::Instant;
use sunzi::Result;
use world::World;

/// Simulates a factorisation; `proceed` is called now and then and decides whether to continue.
///
/// # Errors
/// [`sunzi::Error::InvalidArgument`] for options that cannot be simulated, such as too few slots;
/// [`sunzi::Error::Verification`] where the protocol fails; [`sunzi::Error::Cancelled`] where `proceed` returns
/// `false`.
pub fn simulate(
    machine: &Cluster,
    options: &SimulationOptions,
    recorder: &mut Recorder,
    proceed: &dyn Fn() -> bool,
) -> Result<Simulation> {
    options.check(machine)?;
    let begin = Instant::now();
    let mut world = World::new(machine, options, recorder);
    world.run(proceed)?;
    Ok(world.report(begin))
}
