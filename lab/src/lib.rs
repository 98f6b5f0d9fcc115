//! The laboratory: measurements and checks of `sunzi`, for the program that calls it and for people who develop it.
//!
//! - [`mod@bench`]: our operations compared with other implementations and with the machine's limit, every answer
//!   checked;
//! - [`baselines`]: the other implementations;
//! - [`conformance`]: the checks that every device must pass; [`gpu_check`]: whether the devices of this machine pass
//!   them, and their rates;
//! - [`mod@forecast`]: a prediction of the time of an operation on this machine;
//! - [`simulate`]: a factorisation on a cluster in virtual time;
//! - [`machine`]: a description of the machine, with the OpenBLAS that baselines call.
//!
//! They print through a [`Session`](sunzi_session::session::Session) of the caller.
//!
//! Depends on: the library, and the code that commands share (`sunzi_session`). Independent of: command lines,
//! terminals, signals.

pub mod baselines;
pub mod bench;
pub mod conformance;
pub mod forecast;
pub mod gpu_check;
pub mod machine;
pub mod simulate;
