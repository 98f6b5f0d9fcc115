//! The laboratory: measurements and checks of `sunzi`, for the program that calls it and for people who develop it.
//!
//! - [`mod@bench`]: our operations compared with other implementations and with the machine's limit, every answer
//!   checked;
//! - [`baselines`]: those other implementations;
//! - [`conformance`]: what every device must compute; [`gpu_check`]: whether those of this machine do, and how fast;
//! - [`mod@forecast`]: how long an operation will take here;
//! - [`simulate`]: a factorisation on a cluster in virtual time;
//! - [`plot`] and [`trace`]: pictures, and files for trace viewers;
//! - parts that these share: the choices of an [`engine`], the [`machine`], the [`memory`] of the process, [`units`]
//!   and [`report`] files. They print through a [`session::Session`] of the caller's.
//!
//! Knows: the library. Does not know: command lines, terminals, signals.

pub mod baselines;
pub mod bench;
pub mod conformance;
pub mod engine;
pub mod forecast;
pub mod gpu_check;
pub mod machine;
pub mod memory;
pub mod plot;
pub mod report;
pub mod session;
pub mod simulate;
pub mod trace;
pub mod units;
