//! Ranks under MPI: the library's transport, windows, messages and operations on processes of their own.

#[path = "mpi/doubles.rs"]
mod doubles;
#[path = "mpi/failures.rs"]
mod failures;
#[path = "mpi/harness.rs"]
mod harness;
#[path = "mpi/hosts.rs"]
mod hosts;
#[path = "mpi/job.rs"]
mod job;
#[path = "mpi/messages.rs"]
mod messages;
#[path = "mpi/posts.rs"]
mod posts;
#[path = "mpi/products.rs"]
mod products;
#[path = "mpi/windows.rs"]
mod windows;

mod common;

use harness::{Case, Run};

const ALL: &[usize] = &[1, 2, 3, 4, 6];

fn main() {
    let all: [&[Case]; 7] =
        [messages::CASES, posts::CASES, windows::CASES, failures::CASES, hosts::CASES, products::CASES, doubles::CASES];
    harness::run(&all.into_iter().flatten().collect::<Vec<_>>());
}
