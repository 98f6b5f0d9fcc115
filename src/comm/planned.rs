//! One rank of a group of which only this one exists, for plans of clusters that need not exist: every other rank is
//! taken to pass the same words.
//!
//! No message is sent, and no window is opened.

use crate::comm::mailbox::Mailbox;
use crate::comm::window::{Backing, WindowKind};
use crate::comm::{Incoming, Outgoing, Reduction, Transport};
use crate::error::{Error, Result};

/// A rank of a group in which all ranks pass the same words.
pub(crate) struct PlannedRank {
    rank: usize,
    size: usize,
    /// Ranks of each group that a split makes.
    part_size: usize,
}

impl PlannedRank {
    /// Rank `rank` of `size` ranks; a split makes groups of `part_size` consecutive ranks.
    pub fn new(rank: usize, size: usize, part_size: usize) -> PlannedRank {
        PlannedRank { rank, size, part_size }
    }
}

fn absent<T>() -> Result<T> {
    Err(Error::Transport("the ranks of a planned cluster send no messages".into()))
}

// SAFETY: windows rely on the order of accesses by several ranks; here is one rank, and no window can be opened.
unsafe impl Transport for PlannedRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_reduce(&self, reduction: Reduction, words: &mut [u64]) -> Result<()> {
        if reduction == Reduction::Sum {
            words.iter_mut().for_each(|word| *word = word.wrapping_mul(self.size as u64));
        }
        Ok(())
    }

    fn broadcast(&self, _root: usize, _words: &mut [u64]) -> Result<()> {
        Ok(())
    }

    fn all_gather(&self, own: &[u64], all: &mut [u64]) -> Result<()> {
        all.chunks_exact_mut(own.len().max(1)).for_each(|place| place.copy_from_slice(own));
        Ok(())
    }

    fn exchange(&self, _sends: &[Outgoing<'_>], _receives: &mut [Incoming<'_>]) -> Result<()> {
        absent()
    }

    fn post(&self, _to: usize, _words: &[u64]) -> Result<()> {
        absent()
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn split(&self, _color: usize) -> Result<Box<dyn Transport>> {
        let (rank, size) = (self.rank % self.part_size, self.part_size);
        Ok(Box::new(PlannedRank { rank, size, part_size: size }))
    }

    fn machine(&self) -> Result<usize> {
        Ok(0)
    }

    fn open_window(&self, _kind: WindowKind, _words: usize) -> Result<Box<dyn Backing>> {
        absent()
    }

    fn open_mailbox(&self) -> Result<Box<dyn Mailbox>> {
        absent()
    }

    fn abort(&self, exit_code: u8) -> ! {
        std::process::exit(exit_code.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::agreed;

    #[test]
    fn all_ranks_pass_the_same() {
        let rank = PlannedRank::new(5, 8, 4);
        let node = rank.split(1).unwrap();
        assert_eq!((node.rank(), node.size()), (1, 4));
        let reduced = |reduction| {
            let mut words = [3, 0];
            rank.all_reduce(reduction, &mut words).unwrap();
            words
        };
        assert_eq!([Reduction::Min, Reduction::Max, Reduction::Sum].map(reduced), [[3, 0], [3, 0], [24, 0]]);
        let mut all = [0; 16];
        rank.all_gather(&[7, 9], &mut all).unwrap();
        assert!(all.chunks(2).all(|words| words == [7, 9]));
        let limit = || Error::MemoryLimit { limit_bytes: 5, minimum_bytes: 6 };
        assert_eq!(agreed::<()>(&rank, Err(limit())).unwrap_err().to_string(), limit().to_string());
        agreed(&rank, Ok(())).unwrap();
        assert!(matches!(rank.post(0, &[1]), Err(Error::Transport(_))));
    }
}
