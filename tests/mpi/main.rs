//! Ranks under MPI: the library's transport, windows, messages and operations on processes of their own.

mod doubles;
mod failures;
mod harness;
mod hosts;
mod job;
mod mailboxes;
mod messages;
mod products;
#[path = "../suite/common/traffic.rs"]
mod traffic;
mod windows;

use harness::{Case, Run};

const ALL: &[usize] = &[1, 2, 3, 4, 6];

fn main() {
    let all: [&[Case]; 7] = [
        messages::CASES,
        mailboxes::CASES,
        windows::CASES,
        failures::CASES,
        hosts::CASES,
        products::CASES,
        doubles::CASES,
    ];
    harness::run(&all.into_iter().flatten().collect::<Vec<_>>());
}
