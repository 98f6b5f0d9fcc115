//! Transfers of a whole buffer, however few bytes the system moves at once.
//!
//! Independent of: what the bytes are.

use super::{Access, File};
use std::io;

/// The least that a disk moves: a direct transfer that ends early ends at a multiple of it, except at the end of a
/// file.
const SECTOR: usize = 512;

/// The part of `moved` bytes that counts: the next transfer must begin at a sector where access is direct.
fn counted(moved: usize, left: usize, access: Access) -> usize {
    match access {
        Access::Direct if moved < left => moved / SECTOR * SECTOR,
        _ => moved,
    }
}

/// Reads until `bytes` is full or the file ends; returns how many bytes there are.
///
/// # Errors
/// The system's refusal, other than an interruption.
pub fn read_whole<F: File + ?Sized>(file: &F, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let (mut done, access) = (0, file.access());
    while done < bytes.len() {
        let left = bytes.len() - done;
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(moved) => match counted(moved, left, access) {
                // The end of the file, or a last sector that is not whole.
                0 => return Ok(done + moved),
                moved => done += moved,
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `bytes`.
///
/// # Errors
/// The system's refusal, other than an interruption; `WriteZero` where it writes nothing and gives no reason.
pub fn write_whole<F: File + ?Sized>(file: &F, bytes: &[u8], offset: u64) -> io::Result<()> {
    let (mut done, access) = (0, file.access());
    while done < bytes.len() {
        let left = bytes.len() - done;
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(moved) => match counted(moved, left, access) {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                moved => done += moved,
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
