//! Systems over the rational numbers, shared with the tests of the library; not all of it is used here.
#![allow(dead_code)]

#[path = "../../../tests/suite/common/rational.rs"]
pub mod rational;
#[path = "../../../tests/suite/common/rng.rs"]
mod rng;
#[path = "../../../tests/suite/common/tally.rs"]
pub mod tally;

pub use rng::{Rng, claims};
