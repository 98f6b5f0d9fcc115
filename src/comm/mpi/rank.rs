//! A rank that is a process under MPI.

use crate::comm::idle::Patience;
use crate::comm::mailbox::Mailbox;
use crate::comm::mpi::gate::Gate;
use crate::comm::mpi::mailbox::MpiMailbox;
use crate::comm::mpi::posted::Posted;
use crate::comm::mpi::result::Tag;
use crate::comm::mpi::wait::{patience_for, wait};
use crate::comm::mpi::window::MpiWindow;
use crate::comm::mpi::{result, sys};
use crate::comm::window::{Backing, Heap, Posix, WindowKind};
use crate::comm::{Incoming, Outgoing, Reduction, Transport};
use crate::error::{Error, Result};
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// One rank of a group of processes, on a communicator of its own.
///
/// Dropping it frees the communicator unless MPI has been finalised or the thread panics. The MPI standard declares the
/// freeing of a communicator collective; Open MPI and MPICH free it without communication, so that ranks may drop it at
/// different times. A communicator that is not freed exists until MPI is finalised.
pub struct MpiRank {
    comm: sys::MPI_Comm,
    rank: usize,
    size: usize,
    machine: OnceLock<usize>,
    /// Longest message in words; longer ones go in pieces.
    piece_words: usize,
    /// A lock that is held during an operation: MPI forbids two collective operations on one communicator at a time.
    turn: Mutex<()>,
    /// Posted sends that may not be complete: their requests, and the words that must stay allocated until then.
    posted: Mutex<Posted<sys::MPI_Request, Vec<u64>>>,
}

/// A gibibyte: counts stay far below the largest `int`, also as bytes.
const PIECE_WORDS: usize = 1 << 27;

// SAFETY: a handle of MPI may be used by any thread that MPI allows to call, which `Gate` checks.
unsafe impl Send for MpiRank {}
// SAFETY: as above; operations on the communicator take turns by `turn`.
unsafe impl Sync for MpiRank {}

/// Permission for one operation on one communicator.
struct GateTurn<'a> {
    gate: Gate,
    _turn: MutexGuard<'a, ()>,
}

impl MpiRank {
    /// All processes of the job, on a duplicate of `MPI_COMM_WORLD`. Collective.
    pub(crate) fn world() -> Result<MpiRank> {
        // SAFETY: `MPI_COMM_WORLD` lives as long as MPI, which `from_raw` checks before it is used.
        unsafe { MpiRank::from_raw(result::world()) }
    }

    /// The ranks of a communicator of the crate `mpi`, on a duplicate of it. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`], as for all methods below.
    pub fn from_communicator<C: ::mpi::traits::Communicator>(comm: &C) -> Result<MpiRank> {
        // SAFETY: `comm` owns a live communicator, or one of the library's own.
        unsafe { MpiRank::from_raw(comm.as_raw()) }
    }

    /// The ranks of `comm`, on a duplicate of it. Collective.
    ///
    /// # Safety
    /// `comm` is a live communicator.
    ///
    /// # Errors
    /// [`Error::Transport`], as for all methods below; [`Error::InvalidArgument`] for an intercommunicator.
    pub unsafe fn from_raw(comm: sys::MPI_Comm) -> Result<MpiRank> {
        let gate = Gate::enter()?;
        // SAFETY: live by contract. All of its ranks get the same answer.
        if gate.call(|| unsafe { result::is_inter(comm) })? {
            let message = "the communicator is an intercommunicator: pass an intracommunicator, such as one returned \
                           by MPI_Intercomm_merge";
            return Err(Error::InvalidArgument(message.into()));
        }
        // SAFETY: live by contract, and `gate` says that MPI is.
        let made = gate.call(|| unsafe { result::duplicate(comm) })?;
        // SAFETY: it has just been made, for us alone.
        unsafe { MpiRank::adopt(&gate, made, PIECE_WORDS) }
    }

    /// The ranks of the communicator with the Fortran handle `handle` (`MPI_Comm_c2f`), on a duplicate of it.
    /// Collective.
    ///
    /// # Safety
    /// `handle` is the handle of a live communicator, or of no communicator.
    ///
    /// # Errors
    /// [`Error::Transport`], as for all methods below; [`Error::InvalidArgument`] if the handle belongs to no
    /// communicator or to an intercommunicator.
    pub unsafe fn from_fortran(handle: sys::RSMPI_Fint) -> Result<MpiRank> {
        let gate = Gate::enter()?;
        match gate.call(|| result::from_fortran(handle)) {
            Some(comm) => {
                drop(gate); // it must not be asked for twice
                // SAFETY: live by contract.
                unsafe { MpiRank::from_raw(comm) }
            }
            None => Err(Error::InvalidArgument(format!("{handle} is not the Fortran handle of a communicator"))),
        }
    }

    /// # Safety
    /// `comm` is a live communicator that nobody else uses or frees.
    unsafe fn adopt(gate: &Gate, comm: sys::MPI_Comm, piece_words: usize) -> Result<MpiRank> {
        // SAFETY: live by contract.
        gate.call(|| unsafe { result::return_errors(comm) })?;
        // SAFETY: live by contract.
        let (rank, size) = gate.call(|| unsafe { result::rank_and_size(comm) })?;
        Ok(MpiRank {
            comm,
            rank,
            size,
            machine: OnceLock::new(),
            piece_words,
            turn: Mutex::default(),
            posted: Mutex::default(),
        })
    }

    /// Sets the length in words above which messages are sent in pieces; it must be the same on all ranks. For tests.
    #[doc(hidden)]
    pub fn set_piece_words(&mut self, words: usize) {
        assert!((1..=PIECE_WORDS).contains(&words));
        self.piece_words = words;
    }

    /// Lends the communicator of this group, which lives as long as the group, to another library. If MPI allows only
    /// one thread at a time to call it, no other thread of this process calls MPI until `work` returns. The library
    /// must have received all of its own messages by then.
    ///
    /// # Errors
    /// [`Error::Transport`] where MPI is not alive or must not be called by this thread.
    pub fn lend<R>(&self, work: impl FnOnce(sys::MPI_Comm) -> R) -> Result<R> {
        let turn = self.turn()?;
        Ok(turn.gate.call(|| work(self.comm)))
    }

    fn turn(&self) -> Result<GateTurn<'_>> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(GateTurn { gate: Gate::enter()?, _turn: turn })
    }

    /// A window of MPI's on all ranks of this group. Collective.
    fn open_mpi_window(&self, words: usize) -> Result<MpiWindow> {
        MpiWindow::open(self, words, |bytes| {
            let turn = self.turn()?;
            // SAFETY: the communicator lives as long as `self`; the caller promises that its ranks share a machine,
            // and MPI answers with an error where they do not.
            turn.gate.call(|| unsafe { result::window::allocate(self.comm, self.rank, bytes) })
        })
    }
}

impl MpiRank {
    /// Starts a send of a copy of `words` without waiting for it.
    fn start_posted(&self, turn: &GateTurn<'_>, to: usize, words: &[u64]) -> Result<()> {
        let own = words.to_vec();
        let mut posted = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the communicator lives as long as the group; the copy stays in the list until its request is done,
        // and its words go nowhere when the list moves it.
        let request = turn.gate.call(|| unsafe { result::start_send(self.comm, to, Tag::Exchange, &own) })?;
        // SAFETY: all in the list have been started, and those found done leave it.
        posted.push(request, own, |request| Ok(turn.gate.call(|| unsafe { result::test(request) })?.is_some()))
    }
}

impl GateTurn<'_> {
    /// Waits for one request of a collective call.
    ///
    /// # Safety
    /// As [`wait`].
    unsafe fn wait_one(&self, request: sys::MPI_Request, patience: Patience) -> Result<()> {
        // SAFETY: by contract.
        unsafe { wait(&self.gate, &mut [request], patience, |_, _| Ok(())) }
    }

    /// Gives every rank the words of `root`, in pieces.
    fn broadcast(&self, group: &MpiRank, root: usize, words: &mut [u64]) -> Result<()> {
        let patience = patience_for(words.len());
        for piece in words.chunks_mut(group.piece_words) {
            // SAFETY: the communicator lives as long as the group, and the piece until the wait below is over.
            let request = self.gate.call(|| unsafe { result::start_broadcast(group.comm, root, piece) })?;
            // SAFETY: the request just started, and nothing touches the piece before it is done.
            unsafe { self.wait_one(request, patience) }?;
        }
        Ok(())
    }
}

// SAFETY: a reduction that all ranks get depends on the words of all, so MPI returns it to none before each has called;
// windows are made visible by `Backing::sync` around it.
unsafe impl Transport for MpiRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_reduce(&self, reduction: Reduction, words: &mut [u64]) -> Result<()> {
        let (turn, patience) = (self.turn()?, patience_for(words.len()));
        // MPICH compares unsigned words as signed ones: so extremes go as signed words in the same order.
        let flip = if reduction == Reduction::Sum { 0 } else { 1 << 63 };
        for piece in words.chunks_mut(self.piece_words) {
            let own = piece.iter().map(|word| word ^ flip).collect::<Vec<u64>>();
            let start = || {
                // SAFETY: the communicator lives as long as `self`, both slices until the wait below is over.
                unsafe { result::start_all_reduce(self.comm, reduction, &own, piece) }
            };
            let request = turn.gate.call(start)?;
            // SAFETY: the request just started, and nothing touches its words before it is done.
            unsafe { turn.wait_one(request, patience) }?;
            piece.iter_mut().for_each(|word| *word ^= flip);
        }
        Ok(())
    }

    fn broadcast(&self, root: usize, words: &mut [u64]) -> Result<()> {
        self.turn()?.broadcast(self, root, words)
    }

    fn all_gather(&self, own: &[u64], all: &mut [u64]) -> Result<()> {
        assert_eq!(all.len(), own.len() * self.size);
        let turn = self.turn()?;
        if all.len() > self.piece_words {
            for (root, words) in all.chunks_exact_mut(own.len()).enumerate() {
                if root == self.rank {
                    words.copy_from_slice(own);
                }
                turn.broadcast(self, root, words)?;
            }
            return Ok(());
        }
        if own.is_empty() {
            return Ok(());
        }
        let patience = patience_for(all.len());
        // SAFETY: the communicator lives as long as `self`, both slices until the wait below is over; `all` has room
        // by the assert.
        let request = turn.gate.call(|| unsafe { result::start_all_gather(self.comm, own, all) })?;
        // SAFETY: the request just started, and nothing touches its words before it is done.
        unsafe { turn.wait_one(request, patience) }
    }

    fn exchange(&self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<()> {
        let turn = self.turn()?;
        let words = sends.iter().map(|send| send.words.len()).chain(receives.iter().map(|receive| receive.words.len()));
        let patience = patience_for(words.sum());
        let everybody = sends.iter().map(|send| send.to).chain(receives.iter().map(|receive| receive.from));
        assert!(everybody.max().is_none_or(|rank| rank < self.size), "a message to or from a rank that is not there");
        let (mut requests, mut expected) = (Vec::new(), Vec::new());
        let started = self.start_exchange(&turn, sends, receives, &mut requests, &mut expected);
        let finished = |index: usize, status: &sys::MPI_Status| match expected.get(index) {
            Some(&expected) => {
                let words = result::words_received(status)?;
                let text = || format!("a message has {words} words instead of {expected}");
                if words == expected { Ok(()) } else { Err(Error::Transport(text())) }
            }
            None => Ok(()),
        };
        // SAFETY: all requests were started above and have not been waited for; `sends` and `receives` are borrowed
        // until this returns.
        let done = unsafe { wait(&turn.gate, &mut requests, patience, finished) };
        started.and(done)
    }

    fn post(&self, to: usize, words: &[u64]) -> Result<()> {
        assert!(to < self.size, "a message to a rank that is not there");
        let turn = self.turn()?;
        let mut pieces = words.chunks(self.piece_words).chain(words.is_empty().then_some(words));
        pieces.try_for_each(|piece| self.start_posted(&turn, to, piece))
    }

    fn settle(&self) -> Result<()> {
        let turn = self.turn()?;
        let mut posted = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut requests, words) = posted.take();
        // SAFETY: live requests, whose words stay until they are dropped below.
        let done = unsafe { wait(&turn.gate, &mut requests, Patience::Sleep, |_, _| Ok(())) };
        drop(words);
        done
    }

    fn split(&self, color: usize) -> Result<Box<dyn Transport>> {
        // MPI's colors are non-negative `int`s: the first rank with the same color stands for it.
        let mut colors = vec![0; self.size];
        self.all_gather(&[color as u64], &mut colors)?;
        let first = colors.iter().position(|&other| other == color as u64).unwrap_or(self.rank);
        let turn = self.turn()?;
        // SAFETY: the communicator lives as long as `self`.
        let made = turn.gate.call(|| unsafe { result::split(self.comm, first as c_int, self.rank as c_int) })?;
        // SAFETY: it has just been made, for us alone.
        Ok(Box::new(unsafe { MpiRank::adopt(&turn.gate, made, self.piece_words) }?))
    }

    fn machine(&self) -> Result<usize> {
        if let Some(&machine) = self.machine.get() {
            return Ok(machine);
        }
        let (group, world) = {
            let turn = self.turn()?;
            // SAFETY: the communicator lives as long as `self`.
            let made = turn.gate.call(|| unsafe { result::split_by_machine(self.comm, self.rank as c_int) })?;
            // SAFETY: `MPI_COMM_WORLD` lives as long as MPI.
            let (world, _) = turn.gate.call(|| unsafe { result::rank_and_size(result::world()) })?;
            // SAFETY: it has just been made, for us alone.
            (unsafe { MpiRank::adopt(&turn.gate, made, self.piece_words) }?, world)
        };
        let mut machine = [world as u64];
        group.broadcast(0, &mut machine)?;
        Ok(*self.machine.get_or_init(|| machine[0] as usize))
    }

    fn open_window(&self, kind: WindowKind, words: usize) -> Result<Box<dyn Backing>> {
        match kind {
            WindowKind::Auto | WindowKind::Heap if self.size == 1 => Ok(Box::new(Heap::new(words)?)),
            WindowKind::Heap => Err(Error::InvalidArgument(
                "a window of kind heap serves a single process: choose auto, mpi or posix".into(),
            )),
            WindowKind::Auto | WindowKind::Mpi => Ok(Box::new(self.open_mpi_window(words)?)),
            WindowKind::Posix => Ok(Box::new(Posix::open(self, words)?)),
        }
    }

    fn open_mailbox(&self) -> Result<Box<dyn Mailbox>> {
        let turn = self.turn()?;
        // SAFETY: the communicator lives as long as `self`.
        let made = turn.gate.call(|| unsafe { result::duplicate(self.comm) })?;
        // SAFETY: it has just been made, for us alone.
        Ok(Box::new(unsafe { MpiMailbox::adopt(&turn.gate, made, self.piece_words) }?))
    }

    fn abort(&self, exit_code: u8) -> ! {
        if result::is_initialised() && !result::is_finalised() {
            // SAFETY: the communicator lives as long as `self`. Other threads may be inside MPI where it does not
            // allow that, but none of them goes on.
            unsafe { result::abort(self.comm, exit_code) };
        }
        std::process::exit(exit_code.into())
    }
}

impl MpiRank {
    /// Starts all receives, then all sends, each in pieces; `expected` becomes the words of each receive.
    fn start_exchange(
        &self,
        turn: &GateTurn<'_>,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
        requests: &mut Vec<sys::MPI_Request>,
        expected: &mut Vec<usize>,
    ) -> Result<()> {
        for Incoming { from, words } in receives {
            // A message of no words is a piece of no words.
            let nothing = words.is_empty().then_some(&mut [] as &mut [u64]);
            for piece in words.chunks_mut(self.piece_words).chain(nothing) {
                expected.push(piece.len());
                // SAFETY: the communicator lives as long as `self`; the caller waits for all requests while it
                // borrows the words, also after an error.
                requests
                    .push(turn.gate.call(|| unsafe { result::start_receive(self.comm, *from, Tag::Exchange, piece) })?);
            }
        }
        for Outgoing { to, words } in sends {
            for piece in words.chunks(self.piece_words).chain(words.is_empty().then_some(*words)) {
                // SAFETY: as above.
                requests.push(turn.gate.call(|| unsafe { result::start_send(self.comm, *to, Tag::Exchange, piece) })?);
            }
        }
        Ok(())
    }
}

impl Drop for MpiRank {
    fn drop(&mut self) {
        // MPI may read posted words until it is finalised, so words of unfinished sends stay in memory.
        std::mem::forget(std::mem::take(self.posted.get_mut().unwrap_or_else(PoisonError::into_inner)));
        if std::thread::panicking() {
            return;
        }
        if let Ok(gate) = Gate::enter() {
            // SAFETY: the communicator is ours alone and is not used again. Its requests are done but for posted sends,
            // which MPI brings to their end before it frees what they need.
            let _ = gate.call(|| unsafe { result::free(self.comm) });
        }
    }
}
