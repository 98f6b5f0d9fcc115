//! Front ends: file formats and the command line. May print and choose exit codes.

pub mod generate;
