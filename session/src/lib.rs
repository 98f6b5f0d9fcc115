//! Code that the commands of a program share, whether they compute or measure.
//!
//! - [`mod@session`]: the interface between a running command and the program: printing, progress, the report, requests
//!   to stop;
//! - [`engine`]: its choices of threads, memory, kernel and devices; [`memory`]: the limit of the whole process;
//! - [`report`]: files of results; [`trace`]: files for trace viewers; [`plot`]: pictures;
//! - [`units`]: conversion of counts, sizes and times to and from text.
//!
//! Depends on: the library. Independent of: command lines, terminals, signals, benchmarks.

pub mod engine;
pub mod memory;
pub mod plot;
pub mod report;
pub mod session;
pub mod trace;
pub mod units;
