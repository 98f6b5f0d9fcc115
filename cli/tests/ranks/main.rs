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
mod signals;

use harness::{Case, Run};

fn main() {
    let all: [&[Case]; 6] =
        [program::CASES, memory::CASES, factors::CASES, above_disks::CASES, baselines::CASES, signals::CASES];
    harness::run(&all.into_iter().flatten().collect::<Vec<_>>());
}
