//! Ranks that are threads of one process: messages through queues under one lock, windows on the heap.
//!
//! For tests of all code above [`Transport`], and for programs that use ranks without MPI. A rank that is dropped while
//! others wait for it causes an error, not a deadlock. Messages travel in pieces, so that no second copy of a long one
//! takes memory: the sender waits for the receiver, as under MPI.

use crate::comm::mailbox::{Inboxes, LocalMailbox, Mailbox};
use crate::comm::window::{Backing, Heap, Posix, WindowKind, page_share};
use crate::comm::{Incoming, Outgoing, Reduction, Transport, left};
use crate::error::{Error, Result};
use crate::store::start_in;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

/// Words of a message that are on their way at a time, at most: 64 KiB.
const PIECE_WORDS: usize = 1 << 13;

/// One rank of a group of threads.
pub struct LocalRank {
    hub: Arc<Hub>,
    rank: usize,
    /// The number of collective calls made so far: it is the same on all ranks, so it identifies a call.
    calls: AtomicUsize,
}

/// The data that the ranks of a group share.
struct Hub {
    size: usize,
    state: Mutex<LocalState>,
    changed: Condvar,
}

#[derive(Default)]
struct LocalState {
    /// Words that the ranks have deposited for each collective call, and the number of ranks that have taken them.
    boards: HashMap<usize, Board>,
    /// Pieces of messages in transit, by sender and receiver.
    mail: HashMap<(usize, usize), VecDeque<Vec<u64>>>,
    /// Groups made by `split`, by call and color, and heaps made by `open_window`, by call.
    hubs: HashMap<(usize, usize), Arc<Hub>>,
    heaps: HashMap<usize, Result<Heap>>,
    /// The inboxes that `open_mailbox` makes, by call.
    inboxes: HashMap<usize, Arc<Inboxes>>,
    /// Ranks that are gone.
    gone: Vec<bool>,
}

#[derive(Default)]
struct Board {
    words: Vec<Option<Vec<u64>>>,
    readers: usize,
}

/// Makes the ranks of a new group of `size` ranks, one for each thread.
pub fn group(size: usize) -> Vec<LocalRank> {
    let hub = Arc::new(Hub::new(size));
    (0..size).map(|rank| LocalRank::new(hub.clone(), rank)).collect()
}

/// Makes a group of one rank, for a single process.
pub fn alone() -> &'static LocalRank {
    static ALONE: LazyLock<LocalRank> = LazyLock::new(|| LocalRank::new(Arc::new(Hub::new(1)), 0));
    &ALONE
}

/// Runs `work` on `size` ranks, one thread for each, and returns the results in the order of the ranks.
///
/// # Panics
/// If a rank panics.
pub fn run<R: Send>(size: usize, work: impl Fn(&LocalRank) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads = group(size).into_iter().map(|rank| start_in(scope, move || work(&rank))).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
    })
}

impl Hub {
    fn new(size: usize) -> Hub {
        let state = LocalState { gone: vec![false; size], ..LocalState::default() };
        Hub { size, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, LocalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, LocalState>) -> MutexGuard<'a, LocalState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pieces in which a message travels; one of no words is a piece of no words.
fn pieces(words: &[u64]) -> impl Iterator<Item = &[u64]> {
    words.chunks(PIECE_WORDS).chain(words.is_empty().then_some(words))
}

/// See [`pieces`].
fn pieces_mut(words: &mut [u64]) -> impl Iterator<Item = &mut [u64]> {
    let nothing = words.is_empty().then_some(&mut [] as &mut [u64]);
    words.chunks_mut(PIECE_WORDS).chain(nothing)
}

impl LocalState {
    /// Queues pieces from `rank` for others, those for one rank in order, as far as the queues have room.
    fn post(&mut self, rank: usize, outgoing: &mut VecDeque<Outgoing<'_>>) {
        let mut full = vec![false; self.gone.len()];
        outgoing.retain(|&Outgoing { to, words }| {
            let way = self.mail.entry((rank, to)).or_default();
            let under_way = way.iter().map(Vec::len).sum::<usize>();
            full[to] |= under_way > 0 && under_way + words.len() > PIECE_WORDS;
            if !full[to] {
                way.push_back(words.to_vec());
            }
            full[to]
        });
    }

    /// Takes the pieces for `rank` that are there, those from one rank in order.
    fn take(&mut self, rank: usize, incoming: &mut VecDeque<Incoming<'_>>) {
        let mut missing = vec![false; self.gone.len()];
        incoming.retain_mut(|Incoming { from, words }| {
            let from = *from;
            let piece = if missing[from] { None } else { self.mail.entry((from, rank)).or_default().pop_front() };
            missing[from] = piece.is_none();
            piece.map(|piece| words.copy_from_slice(&piece)).is_none()
        });
    }
}

impl LocalRank {
    fn new(hub: Arc<Hub>, rank: usize) -> LocalRank {
        LocalRank { hub, rank, calls: AtomicUsize::new(0) }
    }

    fn next_call(&self) -> usize {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Deposits `own`, waits for all ranks, and passes the words of all to `read`.
    fn meet<R>(&self, own: Vec<u64>, read: impl FnOnce(&[Option<Vec<u64>>]) -> R) -> Result<R> {
        let (call, size) = (self.next_call(), self.hub.size);
        let mut state = self.hub.lock();
        let board = state.boards.entry(call).or_default();
        board.words.resize(size, None);
        board.words[self.rank] = Some(own);
        self.hub.changed.notify_all();
        loop {
            let missing = state.boards[&call].words.iter().position(Option::is_none);
            let Some(missing) = missing else { break };
            if state.gone[missing] {
                return Err(left(missing));
            }
            state = self.hub.wait(state);
        }
        let board = state.boards.get_mut(&call).expect("only the last reader removes it");
        let result = read(&board.words);
        board.readers += 1;
        if board.readers == size {
            state.boards.remove(&call);
        }
        Ok(result)
    }
}

impl Drop for LocalRank {
    fn drop(&mut self) {
        self.hub.lock().gone[self.rank] = true;
        self.hub.changed.notify_all();
    }
}

// SAFETY: `meet`, which `all_reduce` is made of, waits until each rank has put its words down, and all ranks reduce the
// same words in the same order; the lock of the hub orders what each wrote before.
unsafe impl Transport for LocalRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.hub.size
    }

    fn all_reduce(&self, reduction: Reduction, words: &mut [u64]) -> Result<()> {
        self.meet(words.to_vec(), |all| {
            words.fill(if reduction == Reduction::Min { u64::MAX } else { 0 });
            for other in all.iter().flatten() {
                assert_eq!(other.len(), words.len(), "as many words on each rank");
                for (word, other) in words.iter_mut().zip(other) {
                    *word = match reduction {
                        Reduction::Max => (*word).max(*other),
                        Reduction::Min => (*word).min(*other),
                        Reduction::Sum => word.wrapping_add(*other),
                    };
                }
            }
        })
    }

    fn broadcast(&self, root: usize, words: &mut [u64]) -> Result<()> {
        for words in pieces_mut(words) {
            let own = if self.rank == root { words.to_vec() } else { Vec::new() };
            self.meet(own, |all| words.copy_from_slice(all[root].as_deref().expect("all ranks are there")))?;
        }
        Ok(())
    }

    fn all_gather(&self, own: &[u64], all: &mut [u64]) -> Result<()> {
        assert_eq!(all.len(), own.len() * self.hub.size);
        self.meet(own.to_vec(), |boards| {
            for (place, words) in all.chunks_exact_mut(own.len().max(1)).zip(boards.iter().flatten()) {
                place.copy_from_slice(words);
            }
        })
    }

    fn exchange(&self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<()> {
        let outgoing =
            sends.iter().flat_map(|send| pieces(send.words).map(move |words| Outgoing { to: send.to, words }));
        let outgoing = &mut outgoing.collect::<VecDeque<_>>();
        let incoming = receives.iter_mut().flat_map(|Incoming { from, words }| {
            let from = *from;
            pieces_mut(words).map(move |words| Incoming { from, words })
        });
        let incoming = &mut incoming.collect::<VecDeque<_>>();
        let mut state = self.hub.lock();
        loop {
            let before = outgoing.len() + incoming.len();
            state.post(self.rank, outgoing);
            state.take(self.rank, incoming);
            let left_over = outgoing.len() + incoming.len();
            if left_over < before {
                self.hub.changed.notify_all();
            }
            if left_over == 0 {
                return Ok(());
            }
            if left_over < before {
                continue;
            }
            let mut waited_for = outgoing.iter().map(|piece| piece.to).chain(incoming.iter().map(|piece| piece.from));
            if let Some(gone) = waited_for.find(|&rank| state.gone[rank]) {
                return Err(left(gone));
            }
            state = self.hub.wait(state);
        }
    }

    fn post(&self, to: usize, words: &[u64]) -> Result<()> {
        let mut state = self.hub.lock();
        let way = state.mail.entry((self.rank, to)).or_default();
        way.extend(pieces(words).map(<[u64]>::to_vec));
        self.hub.changed.notify_all();
        Ok(())
    }

    /// The words are on their way; a rank that is gone will not receive them.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn split(&self, color: usize) -> Result<Box<dyn Transport>> {
        let members = self.meet(vec![color as u64], |all| {
            let same = |words: &&Option<Vec<u64>>| words.as_deref() == Some(&[color as u64]);
            (all.iter().filter(same).count(), all[..self.rank].iter().filter(same).count())
        })?;
        let key = (self.calls.load(Ordering::Relaxed), color);
        let mut state = self.hub.lock();
        let hub = state.hubs.entry(key).or_insert_with(|| Arc::new(Hub::new(members.0))).clone();
        // The hub is found here until each member holds it.
        if Arc::strong_count(&hub) == members.0 + 1 {
            state.hubs.remove(&key);
        }
        Ok(Box::new(LocalRank::new(hub, members.1)))
    }

    fn machine(&self) -> Result<usize> {
        Ok(0)
    }

    fn open_window(&self, kind: WindowKind, words: usize) -> Result<Box<dyn Backing>> {
        match kind {
            WindowKind::Auto | WindowKind::Heap => {
                let call = self.next_call();
                let mut state = self.hub.lock();
                let heap = state.heaps.entry(call).or_insert_with(|| Heap::new(words));
                let heap = heap.as_ref().map(Heap::clone).map_err(|_| Error::OutOfMemory { bytes: words as u64 * 8 });
                drop(state);
                // A single rank leaves the pages to its threads.
                if let (Ok(heap), true) = (&heap, self.hub.size > 1) {
                    // SAFETY: shares are disjoint, and no rank uses more before all have met below.
                    unsafe { heap.touch(page_share(self.rank, self.hub.size, words * 8)) };
                }
                self.meet(Vec::new(), |_| ())?;
                self.hub.lock().heaps.remove(&call);
                Ok(Box::new(heap?))
            }
            WindowKind::Posix => Ok(Box::new(Posix::open(self, words)?)),
            WindowKind::Mpi => Err(Error::InvalidArgument("threads of one process have no MPI windows".into())),
        }
    }

    fn open_mailbox(&self) -> Result<Box<dyn Mailbox>> {
        let call = self.next_call();
        let make = || Arc::new(Inboxes::new(self.hub.size));
        let inboxes = self.hub.lock().inboxes.entry(call).or_insert_with(make).clone();
        self.meet(Vec::new(), |_| ())?;
        self.hub.lock().inboxes.remove(&call);
        Ok(Box::new(LocalMailbox::new(inboxes, self.rank)))
    }

    fn abort(&self, exit_code: u8) -> ! {
        std::process::exit(exit_code.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that name their message.
    fn message(from: usize, to: usize, words: usize) -> Vec<u64> {
        (0..words).map(|at| (from * 1000 + to * 100 + words % 7) as u64 ^ (at as u64) << 20).collect()
    }

    #[test]
    fn messages_of_many_pieces_arrive_whole_and_in_order() {
        const LENGTHS: [usize; 5] = [3 * PIECE_WORDS + 5, 0, 1, PIECE_WORDS, 2 * PIECE_WORDS];
        run(3, |rank| {
            let own = rank.rank();
            let others = (0..3).filter(|&other| other != own).collect::<Vec<_>>();
            let pairs = others.iter().flat_map(|&other| LENGTHS.map(|words| (other, words))).collect::<Vec<_>>();
            let sent = pairs.iter().map(|&(to, words)| (to, message(own, to, words))).collect::<Vec<_>>();
            let mut received = pairs.iter().map(|&(from, words)| (from, vec![1; words])).collect::<Vec<_>>();
            let sends = sent.iter().map(|(to, words)| Outgoing { to: *to, words }).collect::<Vec<_>>();
            let receives = received.iter_mut().map(|(from, words)| Incoming { from: *from, words });
            rank.exchange(&sends, &mut receives.collect::<Vec<_>>()).unwrap();
            for (from, words) in received {
                assert!(words == message(from, own, words.len()), "{} words from {from} to {own}", words.len());
            }
            for root in 0..3 {
                let mut words = if own == root { message(root, 9, LENGTHS[0]) } else { vec![1; LENGTHS[0]] };
                rank.broadcast(root, &mut words).unwrap();
                assert!(words == message(root, 9, LENGTHS[0]), "from {root} on {own}");
            }
        });
    }

    #[test]
    fn who_posts_does_not_wait() {
        run(2, |rank| {
            let (own, other) = (rank.rank(), 1 - rank.rank());
            let lengths = [2 * PIECE_WORDS + 1, 0, 3];
            lengths.iter().for_each(|&words| rank.post(other, &message(own, other, words)).unwrap());
            rank.settle().unwrap(); // nobody has received anything
            rank.all_reduce(Reduction::Sum, &mut [1]).unwrap();
            for words in lengths {
                let mut received = vec![1; words];
                rank.exchange(&[], &mut [Incoming { from: other, words: &mut received }]).unwrap();
                assert!(received == message(other, own, words), "{words} words");
            }
        });
    }

    #[test]
    fn who_sends_hears_that_the_receiver_has_left() {
        run(2, |rank| {
            let words = vec![1; 3 * PIECE_WORDS];
            let sent = match rank.rank() {
                0 => rank.exchange(&[Outgoing { to: 1, words: &words }], &mut []),
                _ => return drop(words),
            };
            assert!(matches!(sent, Err(Error::Transport(_))), "{sent:?}");
        });
    }
}
