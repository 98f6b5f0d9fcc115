//! Code that the commands of a program share, whether they compute or measure.
//!
//! - [`mod@session`]: a command under way, as a trait of the program: printing, progress, its report, whether to stop;
//! - [`engine`]: its choices of threads, memory, kernel and devices; [`memory`]: the limit of the whole process;
//! - [`report`]: files of results; [`trace`]: files for trace viewers; [`plot`]: pictures;
//! - [`units`]: counts, sizes and times as people write and read them.
//!
//! Depends on: the library. Independent of: command lines, terminals, signals, benchmarks.

pub mod engine;
pub mod memory;
pub mod plot;
pub mod report;
pub mod session;
pub mod trace;
pub mod units;
