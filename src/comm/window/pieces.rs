//! A phase of a window in pieces. One rank writes each piece and publishes it to the others when it is finished: no
//! rank waits for a fence, and none copies the words that it reads.
//!
//! In front of the pieces lies a mark for each. To publish a piece a rank gives up its only writing handle and sets the
//! mark; a rank that finds the mark set may read, and no rank writes the piece again before the next phase.

use crate::comm::window::SharedWindow;
use crate::comm::{Fence, Said};
use crate::error::Result;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a cache line: no piece shares one with another.
const LINE_WORDS: usize = 8;

/// The pieces of a window: the same on all ranks of the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WindowPieces {
    /// By rank: the number of its first piece among all of them; then the number of all pieces.
    firsts: Vec<usize>,
    /// Words of each.
    words: Vec<usize>,
    /// Where each begins; then where the last one ends.
    starts: Vec<usize>,
}

impl WindowPieces {
    /// Pieces of the given numbers of words, by rank.
    ///
    /// # Panics
    /// If they are larger than the address space.
    pub(crate) fn new<P: IntoIterator<Item = usize>>(by_rank: impl IntoIterator<Item = P>) -> WindowPieces {
        let (mut firsts, mut words) = (vec![0], Vec::new());
        for pieces in by_rank {
            words.extend(pieces);
            firsts.push(words.len());
        }
        // Starts that wrapped around would make pieces overlap.
        let after = |start: usize, words: usize| start.checked_add(words.checked_next_multiple_of(LINE_WORDS)?);
        let mut starts = vec![words.len().next_multiple_of(LINE_WORDS)];
        for &piece in &words {
            starts.push(after(starts[starts.len() - 1], piece).expect("pieces within the address space"));
        }
        WindowPieces { firsts, words, starts }
    }

    /// Words of the window.
    pub(crate) fn total_words(&self) -> usize {
        self.starts[self.words.len()]
    }

    /// Words that the pieces of a rank take with their marks.
    pub(crate) fn words_of(&self, rank: usize) -> usize {
        let own = self.of(rank);
        self.starts[own.end] - self.starts[own.start] + own.len()
    }

    /// Bytes of these lists.
    pub(crate) fn list_bytes(&self) -> u64 {
        8 * (self.firsts.capacity() + self.words.capacity() + self.starts.capacity()) as u64
    }

    /// The numbers of the pieces of a rank.
    fn of(&self, rank: usize) -> Range<usize> {
        self.firsts[rank]..self.firsts[rank + 1]
    }

    /// The number of piece `at` of a rank.
    fn number(&self, rank: usize, at: usize) -> usize {
        let own = self.of(rank);
        assert!(at < own.len(), "piece {at} of {} of rank {rank}", own.len());
        own.start + at
    }

    fn ranks(&self) -> usize {
        self.firsts.len() - 1
    }

    fn hash(&self) -> u64 {
        Said::hash(&(&self.firsts, &self.words))
    }
}

impl SharedWindow {
    /// Begins a phase in which each rank writes pieces of its own: returns these, in order, and the handle that
    /// publishes them and finds those of others. Contents are arbitrary. Collective.
    ///
    /// # Errors
    /// As [`Fence::pass`].
    pub(crate) fn pieces<'w>(
        &'w mut self,
        fence: &Fence<'_>,
        outcome: Result<()>,
        pieces: &'w WindowPieces,
    ) -> Result<(Vec<&'w mut [u64]>, Shown<'w>)> {
        self.begin_pieces(fence, outcome, pieces, "")
    }

    /// The same while all ranks may read `source`, whose words are returned with the pieces. Collective.
    ///
    /// # Errors
    /// As [`Fence::pass`].
    pub(crate) fn pieces_from<'w>(
        &'w mut self,
        source: &'w mut SharedWindow,
        fence: &Fence<'_>,
        pieces: &'w WindowPieces,
    ) -> Result<PiecesFrom<'w>> {
        source.sync();
        let (own, shown) = self.begin_pieces(fence, Ok(()), pieces, &format!(" from {:x}", source.id))?;
        source.sync();
        Ok(PiecesFrom { source: source.words(), own, shown })
    }

    fn begin_pieces<'w>(
        &'w mut self,
        fence: &Fence<'_>,
        outcome: Result<()>,
        pieces: &'w WindowPieces,
        from: &str,
    ) -> Result<(Vec<&'w mut [u64]>, Shown<'w>)> {
        assert!(pieces.total_words() <= self.len(), "pieces of {} words in {}", pieces.total_words(), self.len());
        assert!(pieces.ranks() == self.ranks, "pieces for {} ranks", pieces.ranks());
        let (hash, rank) = (pieces.hash(), self.rank);
        self.sync();
        fence.pass(outcome, self.token(fence, &format!("hide pieces{from}"), hash))?;
        let start = self.backing.as_ref().map_or(std::ptr::NonNull::dangling().as_ptr(), |backing| backing.start());
        let shown = Shown { start, pieces, rank, window: PhantomData };
        // All ranks have left the previous phase: no rank reads or writes anything but marks before the next fence.
        pieces.of(rank).for_each(|number| shown.mark(number).store(0, Ordering::Release));
        self.sync();
        fence.pass(Ok(()), self.token(fence, &format!("pieces{from}"), hash))?;
        self.sync();
        let own = pieces.of(rank).map(|number| {
            // SAFETY: inside the window by the first assertion, apart from the marks and from every other piece, as
            // `starts` ascends by at least the words of each. The ranks agreed on the pieces, so no other rank writes
            // it, and none reads it before `show`, which takes this handle. The window stays borrowed meanwhile.
            unsafe { std::slice::from_raw_parts_mut(start.add(pieces.starts[number]), pieces.words[number]) }
        });
        Ok((own.collect(), shown))
    }
}

/// The words that one rank may read and write in a phase of pieces together with another window.
pub(crate) struct PiecesFrom<'w> {
    /// The window that all ranks read.
    pub source: &'w [u64],
    /// This rank's pieces, in order.
    pub own: Vec<&'w mut [u64]>,
    /// Publishes them, and finds those of others.
    pub shown: Shown<'w>,
}

/// Publishes pieces of a window, and finds published ones.
pub(crate) struct Shown<'w> {
    start: *mut u64,
    pieces: &'w WindowPieces,
    rank: usize,
    window: PhantomData<&'w mut [u64]>,
}

// SAFETY: marks are atomic, and what else is reached through `start` are shared slices of words that nobody writes.
unsafe impl Send for Shown<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shown<'_> {}

impl<'w> Shown<'w> {
    fn mark(&self, number: usize) -> &AtomicU64 {
        assert!(number < self.pieces.words.len());
        // SAFETY: a word in front of the pieces, inside the window, aligned as every word of one; all ranks reach it
        // only by atomic operations while a phase of pieces lasts.
        unsafe { AtomicU64::from_ptr(self.start.add(number)) }
    }

    /// Lets all ranks read piece `at` of this rank, which is not written any more.
    ///
    /// # Panics
    /// Where `words` is not that piece.
    pub(crate) fn show(&self, at: usize, words: &'w mut [u64]) -> &'w [u64] {
        let number = self.pieces.number(self.rank, at);
        let place = self.start.wrapping_add(self.pieces.starts[number]);
        let is_whole = words.as_ptr() == place.cast_const() && words.len() == self.pieces.words[number];
        assert!(is_whole, "not piece {at} of this rank");
        self.mark(number).store(1, Ordering::Release);
        words
    }

    /// Piece `at` of a rank, where it was published.
    pub(crate) fn get(&self, rank: usize, at: usize) -> Option<&'w [u64]> {
        let number = self.pieces.number(rank, at);
        // SAFETY: inside the window, as in `SharedWindow::pieces`. The mark was cleared before the phase began, and is
        // set only by `show`, which has taken the only handle that writes; what was written before is visible, as the
        // mark is released there and acquired here. No phase begins on any rank while this one borrows the window.
        let words = || unsafe {
            std::slice::from_raw_parts(self.start.add(self.pieces.starts[number]), self.pieces.words[number])
        };
        (self.mark(number).load(Ordering::Acquire) == 1).then(words)
    }
}

#[cfg(test)]
mod tests {
    use crate::comm::window::{Level, Partition, PiecesFrom, Run, SharedWindow, WindowKind, WindowPieces};
    use crate::comm::{Fence, Transport, local};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Rank `r` has `r + 1` pieces, one of them without words; each is read by all once it is published, and withdrawn
    /// when the next phase begins.
    #[test]
    fn pieces_are_read_as_soon_as_they_are_shown() {
        let words = |rank: usize| (0..=rank).map(move |at| [9, 0, 16, 1][(rank + at) % 4]);
        for (kind, ranks) in [(WindowKind::Heap, 1), (WindowKind::Heap, 4), (WindowKind::Posix, 3)] {
            let pieces = WindowPieces::new((0..ranks).map(words));
            local::run(ranks, |rank| {
                let mut window = SharedWindow::open(rank, kind, pieces.total_words()).unwrap();
                let fence = Fence::new(rank);
                for round in 0..3u64 {
                    let (own, shown) = window.pieces(&fence, Ok(()), &pieces).unwrap();
                    assert!((0..=rank.rank()).all(|at| shown.get(rank.rank(), at).is_none()), "round {round}");
                    for (at, piece) in own.into_iter().enumerate().rev() {
                        assert!(piece.len() == words(rank.rank()).nth(at).unwrap() && piece.as_ptr().addr() % 64 == 0);
                        piece.fill(round << 32 | (rank.rank() * 10 + at) as u64);
                        assert!(shown.show(at, piece).iter().all(|&word| word >> 32 == round));
                    }
                    for (owner, at) in (0..ranks).flat_map(|owner| (0..=owner).map(move |at| (owner, at))) {
                        let piece = loop {
                            match shown.get(owner, at) {
                                Some(piece) => break piece,
                                None => std::thread::yield_now(),
                            }
                        };
                        assert!(piece.iter().all(|&word| word == round << 32 | (owner * 10 + at) as u64));
                    }
                }
                window.close().unwrap();
            });
        }
    }

    /// All ranks read the words that all have written into another window, while they write pieces.
    #[test]
    fn pieces_are_made_from_another_window() {
        let (ranks, words) = (3, 40);
        let pieces = WindowPieces::new((0..ranks).map(|rank| vec![8; rank]));
        let runs = (0..ranks).map(|rank| Run { words: rank * 10..rank * 10 + 10, rank }).collect();
        let partition = Partition::new(ranks, Level::ONCE, Level::ONCE, runs);
        local::run(ranks, |rank| {
            let [mut source, mut window] =
                [words, pieces.total_words()].map(|words| SharedWindow::open(rank, WindowKind::Heap, words).unwrap());
            let fence = Fence::new(rank);
            for round in 0..3 {
                let shares = source.write(&fence, Ok(()), &partition).unwrap();
                shares.into_iter().for_each(|words| words.fill(round * 10 + rank.rank() as u64));
                let PiecesFrom { source, own, shown } = window.pieces_from(&mut source, &fence, &pieces).unwrap();
                let want = (0..ranks as u64).flat_map(|rank| [round * 10 + rank; 10]);
                assert!(source[..30].iter().copied().eq(want), "round {round}");
                for (at, piece) in own.into_iter().enumerate() {
                    piece.copy_from_slice(&source[10..18]);
                    shown.show(at, piece);
                }
                let last = loop {
                    match shown.get(2, 1) {
                        Some(piece) => break piece,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(last, [round * 10 + 1; 8]);
            }
            source.close().and(window.close()).unwrap();
        });
    }

    #[test]
    fn only_whole_pieces_of_the_own_rank_are_shown() {
        let pieces = WindowPieces::new([vec![16, 16]]);
        assert_eq!((pieces.total_words(), pieces.words_of(0)), (8 + 32, 2 + 32));
        let mut window = SharedWindow::open(local::alone(), WindowKind::Heap, 40).unwrap();
        let fence = Fence::new(local::alone());
        let (mut own, shown) = window.pieces(&fence, Ok(()), &pieces).unwrap();
        let (second, first) = (own.pop().unwrap(), own.pop().unwrap());
        let refused = |at: usize, words| catch_unwind(AssertUnwindSafe(|| shown.show(at, words).len())).is_err();
        assert!(refused(0, second), "another piece");
        assert!(refused(0, &mut first[..8]), "a part");
        assert!(shown.get(0, 0).is_none() && shown.get(0, 1).is_none());
        assert!(catch_unwind(AssertUnwindSafe(|| shown.get(0, 2).is_some())).is_err());
        let large = WindowPieces::new([vec![1 << 10]]);
        assert!(catch_unwind(AssertUnwindSafe(|| window.pieces(&fence, Ok(()), &large).map(drop))).is_err());
    }

    #[test]
    fn pieces_do_not_wrap_around() {
        for words in [vec![usize::MAX], vec![usize::MAX - 7], vec![8, usize::MAX / 2, usize::MAX / 2]] {
            assert!(catch_unwind(|| WindowPieces::new([words.clone()])).is_err(), "{words:?}");
        }
    }
}
