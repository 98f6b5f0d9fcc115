//! Numbers: bounds, floats on limbs, primes, moduli, scaling. No I/O, clock, thread or `unsafe`.
#![forbid(unsafe_code)]

pub mod bound;
pub mod check_field;
pub mod double;
pub mod family;
pub mod family_i16;
pub mod family_i8;
pub mod fixed;
pub mod float;
pub mod magnitude;
pub mod modulus;
pub mod pivot;
pub mod prime;
pub mod processor;
pub mod scale;
