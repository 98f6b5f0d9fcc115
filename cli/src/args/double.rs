//! Options of `sunzi bench cholesky --element double`.

use clap::Args;

/// Choices of a factorisation on devices.
#[derive(Args, Debug)]
pub struct RawDouble {
    /// What cholesky factors: big (big floats) or double (doubles, in tiles, on the devices named by --device [soft; on
    /// several ranks the CPUs]; every rank takes them all).
    #[arg(long, value_name = "KIND", default_value = "big")]
    pub element: String,
    /// Of doubles: which task runs next: fifo, lifo, random, by_ij, greedy, critical_path, panels,
    /// leftmost [default: panels; on several ranks greedy on devices, else critical_path].
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Of doubles: which tile leaves a full device: fifo, lru [default: lru].
    #[arg(long, value_name = "NAME")]
    pub victim: Option<String>,
}
