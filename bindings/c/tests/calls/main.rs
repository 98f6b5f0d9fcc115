//! The functions of the C library as a C program calls them, in one program: arrays of every kind, refusals, threads,
//! and calls over ranks. Plans and allocation have programs of their own, since what is counted is the whole process.

mod batches;
mod claims;
mod collective;
#[path = "../common/mod.rs"]
mod common;
#[path = "collective/compare.rs"]
mod compare;
#[path = "collective/dealt.rs"]
mod dealt;
mod edges;
mod factors;
mod general;
mod lapack;
#[path = "collective/problem.rs"]
mod problem;
mod products;
#[path = "collective/random.rs"]
mod random;
// Of what is shared with the tests of the library not all is used here.
#[allow(dead_code)]
#[path = "../../../../tests/suite/common/rational.rs"]
mod rational;
mod refusals;
#[allow(dead_code)]
#[path = "../../../../tests/suite/common/rng.rs"]
mod rng;
mod symmetric;
#[allow(dead_code)]
#[path = "../../../../tests/suite/common/tally.rs"]
mod tally;
mod threads;
mod vectors;

use rng::Rng;
