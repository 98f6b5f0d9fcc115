//! The program, and the baselines that need ranks, under MPI.

mod above_disks;
mod baselines;
mod factors;
// Other tests have cases of the other kinds.
#[allow(dead_code)]
#[path = "../../../tests/mpi/harness.rs"]
mod harness;
#[path = "../../../tests/mpi/job.rs"]
mod job;
mod memory;
mod program;
mod sdp;
mod signals;

use harness::{Case, Run};

fn main() {
    let commands = [program::CASES, factors::CASES, above_disks::CASES, sdp::CASES, baselines::CASES];
    let all = [memory::CASES, signals::CASES].into_iter().chain(commands);
    harness::run(&all.flatten().collect::<Vec<_>>());
}
