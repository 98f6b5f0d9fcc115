//! The only code that reads and writes Python objects of another package by their layout.
//!
//! Promise: a layout is used only after it has been checked against objects with known contents.

pub mod gmpy2;
