//! Front ends: file formats, test matrices and the command line. May print and choose exit codes.

pub mod cli;
pub mod compare;
pub mod formats;
pub mod generate;
