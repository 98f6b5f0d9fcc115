//! Rings of the Linux kernel.
//!
//! Independent of: whether others move the same bytes.

use super::{Memory, TransferPart};
use io_uring::types::Fd;
use io_uring::{IoUring, Probe, opcode, squeue};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;
use std::sync::{Mutex, PoisonError};

/// Transfers of a ring under way at a time.
const ENTRIES: usize = 32;

/// Rings that are not in use. A call takes one, or makes it.
pub struct Rings(Mutex<Vec<IoUring>>);

impl Rings {
    /// Makes a ring, to see whether there are any here.
    ///
    /// # Errors
    /// The kernel's refusal: it is too old, or they are forbidden.
    pub fn probe() -> io::Result<Rings> {
        let ring = IoUring::new(ENTRIES as u32)?;
        let mut known = Probe::new();
        ring.submitter().register_probe(&mut known)?;
        match known.is_supported(opcode::Read::CODE) && known.is_supported(opcode::Write::CODE) {
            true => Ok(Rings(Mutex::new(vec![ring]))),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Carries out transfers of `file`, in any order.
    ///
    /// # Errors
    /// The kernel's refusal of one more ring; no byte was moved then.
    pub fn run(&self, file: BorrowedFd<'_>, parts: &mut [TransferPart<'_>]) -> io::Result<()> {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = free().pop();
        let mut ring = taken.map_or_else(|| IoUring::new(ENTRIES as u32), Ok)?;
        let file = Fd(file.as_raw_fd());
        let (mut begun, mut ended) = (0, 0);
        while ended < parts.len() {
            while begun < parts.len() && begun - ended < ENTRIES {
                let entry = entry(file, &mut parts[begun]).user_data(begun as u64);
                // SAFETY: the descriptor stays open and the memory stays borrowed until this function returns. It
                // returns only when every entry that was pushed has come back, and it does not unwind before.
                if unsafe { ring.submission().push(&entry) }.is_err() {
                    break;
                }
                begun += 1;
            }
            // Interrupted or short of resources for now: results so far are taken, and all is tried again. A wait that
            // is refused for good has no way out, as the kernel may still use the memory.
            let _ = ring.submit_and_wait(1);
            for completion in ring.completion() {
                if let Some(part) = parts.get_mut(completion.user_data() as usize) {
                    part.is_done = usize::try_from(completion.result()) == Ok(part.bytes());
                }
                ended += 1;
            }
        }
        free().push(ring);
        Ok(())
    }
}

fn entry(file: Fd, part: &mut TransferPart<'_>) -> squeue::Entry {
    let (offset, bytes) = (part.offset, part.bytes() as u32);
    match &mut part.memory {
        Memory::Read(memory) => opcode::Read::new(file, memory.as_mut_ptr(), bytes).offset(offset).build(),
        Memory::Write(memory) => opcode::Write::new(file, memory.as_ptr(), bytes).offset(offset).build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn many_parts_are_moved_and_those_beyond_the_end_are_told() {
        let Ok(rings) = Rings::probe() else { return println!("skipped: no io_uring here") };
        let file = tempfile::tempfile().unwrap();
        let data = (0..100_000u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>();
        let parts = data.chunks(1000).enumerate();
        let mut parts = parts
            .map(|(index, bytes)| TransferPart {
                memory: Memory::Write(bytes),
                offset: index as u64 * 1000,
                is_done: false,
            })
            .collect::<Vec<_>>();
        rings.run(file.as_fd(), &mut parts).unwrap();
        assert!(parts.len() > 3 * ENTRIES && parts.iter().all(|part| part.is_done));
        let mut read = vec![0; data.len()];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == data);
        let mut read = vec![0; data.len() + 1500];
        let parts = read.chunks_mut(1000).enumerate();
        let mut parts = parts
            .map(|(index, bytes)| TransferPart {
                memory: Memory::Read(bytes),
                offset: index as u64 * 1000,
                is_done: false,
            })
            .collect::<Vec<_>>();
        rings.run(file.as_fd(), &mut parts).unwrap();
        let undone = parts.iter().filter(|part| !part.is_done).map(|part| part.offset).collect::<Vec<_>>();
        assert_eq!(undone, [400_000, 401_000]);
        drop(parts);
        assert!(read[..data.len()] == data);
        rings.run(file.as_fd(), &mut []).unwrap();
        assert_eq!(rings.0.lock().unwrap().len(), 1);
    }
}
