//! The laboratory: measurements and checks of `sunzi`, for the program that calls it and for people who develop it.
//!
//! - [`mod@bench`]: our operations compared with other implementations and with the machine's limit, every answer
//!   checked;
//! - [`baselines`]: those other implementations;
//! - [`conformance`]: what every device must compute; [`gpu_check`]: whether those of this machine do, and how fast;
//! - [`mod@forecast`]: how long an operation will take here;
//! - [`simulate`]: a factorisation on a cluster in virtual time;
//! - [`machine`]: a description of the machine, with the OpenBLAS that baselines call.
//!
//! They print through a [`Session`](sunzi_session::session::Session) of the caller's.
//!
//! Depends on: the library, and what commands share (`sunzi_session`). Independent of: command lines, terminals,
//! signals.

pub mod baselines;
pub mod bench;
pub mod conformance;
pub mod forecast;
pub mod gpu_check;
pub mod machine;
pub mod simulate;
