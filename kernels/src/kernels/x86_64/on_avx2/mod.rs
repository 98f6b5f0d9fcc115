//! Eight problems computed together on processors with AVX2 and without AVX-512 IFMA.
//!
//! The same sources as `ifma52::problem_lanes`: the build script copies them, lets `std::arch::x86_64` read `vectors`,
//! where eight lanes are two registers, and compiles them for AVX2 and FMA. The parts that differ are written here:
//! products of digits by doubles (`columns`, `sums`), and digits from limbs and back (`cut`, `reconstruct`). Reasons:
//! docs/decisions/087-lanes-on-avx2.md.

mod columns;
mod cpu;
mod cut;
mod reconstruct;
mod sums;
mod vectors;

include!(concat!(env!("OUT_DIR"), "/on_avx2/kernels.rs"));

#[cfg(test)]
use cpu::has_ifma52 as probe;

#[cfg(test)]
mod tests;
