//! Ranks under MPI: the library's transport, windows, messages and operations on processes of their own.

mod doubles;
mod failures;
mod harness;
mod hosts;
mod job;
mod mailboxes;
mod memory;
mod messages;
mod products;
#[path = "../suite/common/traffic.rs"]
mod traffic;
mod windows;

use harness::{Case, Run};
use sunzi::advanced::store::CountingAllocator;

#[global_allocator]
static COUNTER: CountingAllocator = CountingAllocator;

const ALL: &[usize] = &[1, 2, 3, 4, 6];

fn main() {
    let all: [&[Case]; 8] = [
        messages::CASES,
        mailboxes::CASES,
        windows::CASES,
        failures::CASES,
        hosts::CASES,
        products::CASES,
        memory::CASES,
        doubles::CASES,
    ];
    harness::run(&all.into_iter().flatten().collect::<Vec<_>>());
}
