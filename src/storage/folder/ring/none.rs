//! In place of rings, on systems without them.
//!
//! Independent of: transfers.

use super::TransferPart;
use rustix::fd::BorrowedFd;
use std::io;

/// There are none.
pub enum Rings {}

impl Rings {
    /// Reports this.
    ///
    /// # Errors
    /// Always.
    pub fn probe() -> io::Result<Rings> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn run(&self, _file: BorrowedFd<'_>, _parts: &mut [TransferPart<'_>]) -> io::Result<()> {
        match *self {}
    }
}
