//! Messages that no rank waits for, between processes under MPI.
//!
//! A header goes as one message, whose first word marks whether a payload follows; a payload goes in pieces with a tag
//! of their own. Headers are found by probing and payloads received when they are requested, in the order of their
//! headers, so that MPI matches them only by order. Each look takes the headers that are there and tests once which
//! requests are done. MPI moves messages only while it is called: a pause alternates between a look and a sleep of tens
//! of microseconds or more, as a worker may need the core.

use crate::comm::mailbox::{Arrival, Counts, Mailbox, Payload, Waker, check_message, make_room, not_announced};
use crate::comm::mpi::gate::Gate;
use crate::comm::mpi::result::{self, Tag};
use crate::comm::mpi::sys;
use crate::error::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// A sleep lasts for a part of the time since something last happened, within limits: so it adds little to a wait, and
/// long waits cost little time of the processor. Where words are moving the longest is short. The system's timer slack,
/// about 50 microseconds, comes on top.
const SLEEP_PART: u32 = 10;
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
const LONGEST_SLEEP_MOVING: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_micros(200);

/// Each look takes the core from a worker: it loses about ten microseconds and some of its caches. Words that leave
/// meanwhile take longer on their way, but looking more often for them costs more than that, as measured.
const PATIENT_SLEEP: Duration = Duration::from_millis(1);

/// The largest number of headers that one look takes: requests must have their turn, too.
const HEADERS_PER_LOOK: usize = 64;

/// The mailbox of one process, on a communicator of its own.
pub(super) struct MpiMailbox {
    comm: sys::MPI_Comm,
    rank: usize,
    piece_words: usize,
    /// All requests that MPI has under way, and the transfer of each.
    requests: Vec<sys::MPI_Request>,
    pieces: Vec<MessagePiece>,
    /// The memory that requests read and write, by number: here until the last of its requests is done.
    transfers: HashMap<u64, MessageTransfer>,
    next_transfer: u64,
    /// Headers that are being received, as they came.
    headers: VecDeque<u64>,
    /// Lengths of the payloads that have not been requested, by sender.
    announced: Vec<VecDeque<usize>>,
    /// The arrivals that `poll` is to return.
    ready: VecDeque<Arrival>,
    /// The first error of MPI; from then on the mailbox is unusable.
    failed: Option<String>,
    waker: Waker,
    counts: Counts,
    /// The last time at which a message began or a request was complete.
    active: Instant,
    patient: bool,
}

/// One request.
#[derive(Clone, Copy)]
struct MessagePiece {
    transfer: u64,
    /// The words that a receive must bring.
    expected: Option<usize>,
}

/// A header or a payload on its way.
struct MessageTransfer {
    /// Its requests that are not done.
    open: usize,
    content: Content,
}

enum Content {
    HeaderOut { words: Vec<u64> },
    PayloadOut { payload: Payload, token: u64 },
    HeaderIn { from: usize, words: Vec<u64> },
    PayloadIn { payload: Vec<u64>, token: u64 },
}

// SAFETY: handles of MPI may be used by any thread that MPI allows to call, which `Gate` checks; the memory of requests
// is owned by the mailbox.
unsafe impl Send for MpiMailbox {}

impl MpiMailbox {
    /// # Safety
    /// `comm` is a live communicator that nobody else uses or frees.
    pub(super) unsafe fn adopt(gate: &Gate, comm: sys::MPI_Comm, piece_words: usize) -> Result<MpiMailbox> {
        // SAFETY: live by contract.
        gate.call(|| unsafe { result::return_errors(comm) })?;
        // SAFETY: live by contract.
        let (rank, size) = gate.call(|| unsafe { result::rank_and_size(comm) })?;
        Ok(MpiMailbox {
            comm,
            rank,
            piece_words,
            requests: Vec::new(),
            pieces: Vec::new(),
            transfers: HashMap::new(),
            next_transfer: 0,
            headers: VecDeque::new(),
            announced: vec![VecDeque::new(); size],
            ready: VecDeque::new(),
            failed: None,
            waker: Waker::default(),
            counts: Counts::default(),
            active: Instant::now(),
            patient: false,
        })
    }

    /// Starts moving `content` to or from rank `other`, and keeps it while it moves. Returns its number.
    ///
    /// Where a piece cannot be started, those before it stay under way.
    fn start(&mut self, gate: &Gate, other: usize, content: Content) -> Result<u64> {
        self.active = Instant::now();
        let number = self.next_transfer;
        self.next_transfer += 1;
        let transfer = self.transfers.entry(number).or_insert(MessageTransfer { open: 0, content });
        let (comm, piece_words) = (self.comm, self.piece_words);
        let mut note = |request: sys::MPI_Request, expected: Option<usize>| {
            self.requests.push(request);
            self.pieces.push(MessagePiece { transfer: number, expected });
            transfer.open += 1;
        };
        // The words of a transfer stay where they are, and nobody touches them, until all of its requests are done:
        // only `settle` and `next_header` take a transfer out, after that, and `drop` forgets it before.
        match &mut transfer.content {
            Content::HeaderOut { words } => {
                // SAFETY: the communicator lives as long as `self`; the words stay, as said above.
                note(gate.call(|| unsafe { result::start_send(comm, other, Tag::Header, words) })?, None);
            }
            Content::HeaderIn { words, .. } => {
                let length = words.len();
                // SAFETY: as above.
                let request = gate.call(|| unsafe { result::start_receive(comm, other, Tag::Header, words) })?;
                note(request, Some(length));
            }
            Content::PayloadOut { payload, .. } => {
                for piece in payload.chunks(piece_words) {
                    // SAFETY: as above; the handle keeps the words from being written.
                    note(gate.call(|| unsafe { result::start_send(comm, other, Tag::Payload, piece) })?, None);
                }
            }
            Content::PayloadIn { payload, .. } => {
                for piece in payload.chunks_mut(piece_words) {
                    let length = piece.len();
                    // SAFETY: as above.
                    let request = gate.call(|| unsafe { result::start_receive(comm, other, Tag::Payload, piece) })?;
                    note(request, Some(length));
                }
            }
        }
        Ok(number)
    }
}

impl MpiMailbox {
    /// Takes in the headers that are there, then the finished requests; returns whether anything is ready.
    fn look(&mut self) -> Result<bool> {
        let gate = Gate::enter()?;
        for _ in 0..HEADERS_PER_LOOK {
            // SAFETY: the communicator lives as long as `self`.
            let Some((from, words)) = gate.call(|| unsafe { result::mailbox::probe(self.comm, Tag::Header) })? else {
                break;
            };
            // The probed message is the oldest, so the receive that follows gets it and no other.
            let number = self.start(&gate, from, Content::HeaderIn { from, words: vec![0; words] })?;
            self.headers.push_back(number);
        }
        // SAFETY: all in the list have been started and not been found done; those that are now leave it.
        let done = gate.call(|| unsafe { result::mailbox::test_some(&mut self.requests) })?;
        let mut outcome = Ok(());
        for (index, status) in done {
            // The indices fall, so what moves here from the end has been found open.
            self.requests.swap_remove(index);
            let piece = self.pieces.swap_remove(index);
            outcome = outcome.and(status.and_then(|status| gate.call(|| check_piece(&piece, &status))));
            self.settle(piece.transfer, 1);
        }
        outcome?;
        while let Some(arrival) = self.next_header()? {
            self.ready.push_back(arrival);
        }
        Ok(!self.ready.is_empty())
    }

    /// Records that `done` requests of a transfer are done. Where none remains the transfer is over; an incoming header
    /// waits for the earlier ones.
    fn settle(&mut self, number: u64, done: usize) {
        let Some(transfer) = self.transfers.get_mut(&number) else { return };
        transfer.open -= done;
        if transfer.open > 0 || matches!(transfer.content, Content::HeaderIn { .. }) {
            return;
        }
        let content = self.transfers.remove(&number).map(|transfer| transfer.content);
        match content {
            Some(Content::PayloadOut { payload, token }) => {
                drop(payload);
                self.ready.push_back(Arrival::Sent { token });
            }
            Some(Content::PayloadIn { payload, token }) => self.ready.push_back(Arrival::Payload { token, payload }),
            Some(Content::HeaderOut { .. }) => self.counts.leaving -= 1,
            Some(Content::HeaderIn { .. }) | None => {}
        }
    }

    /// The oldest header where it has come in: younger ones, though they may be done, come after it.
    fn next_header(&mut self) -> Result<Option<Arrival>> {
        let Some(number) = self.headers.front() else { return Ok(None) };
        if self.transfers.get(number).is_some_and(|transfer| transfer.open > 0) {
            return Ok(None);
        }
        let content = self.transfers.remove(number).map(|transfer| transfer.content);
        self.headers.pop_front();
        let Some(Content::HeaderIn { from, mut words }) = content else { return Ok(None) };
        if words.is_empty() {
            return Err(Error::Transport(format!("rank {from} sent an empty header")));
        }
        let payload_words = words.remove(0).checked_sub(1).map(|length| length as usize);
        Ok(Some(Arrival::Header { from, header: words, payload_words }))
    }

    /// Starts a payload; one of no words is over at once.
    fn start_payload(&mut self, gate: &Gate, other: usize, content: Content) -> Result<()> {
        let number = self.start(gate, other, content)?;
        self.settle(number, 0);
        Ok(())
    }

    fn start_message(&mut self, to: usize, header: &[u64], payload: Option<(Payload, u64)>) -> Result<()> {
        let gate = Gate::enter()?;
        let mark = payload.as_ref().map_or(0, |(payload, _)| payload.len() as u64 + 1);
        let words = [&[mark], header].concat();
        self.start(&gate, to, Content::HeaderOut { words })?;
        self.counts.sent += 1;
        self.counts.leaving += 1;
        if let Some((payload, token)) = payload {
            self.counts.leaving += 1;
            self.start_payload(&gate, to, Content::PayloadOut { payload, token })?;
        }
        Ok(())
    }

    /// The time to sleep before the next look.
    fn sleep(&self) -> Duration {
        if self.patient {
            return PATIENT_SLEEP;
        }
        let longest = if self.requests.is_empty() { LONGEST_SLEEP } else { LONGEST_SLEEP_MOVING };
        (self.active.elapsed() / SLEEP_PART).clamp(SHORTEST_SLEEP, longest)
    }

    /// Remembers the first error.
    fn noted<T>(&mut self, outcome: Result<T>) -> Result<T> {
        outcome.inspect_err(|error| {
            self.failed.get_or_insert_with(|| error.to_string());
        })
    }

    fn check(&self) -> Result<()> {
        self.failed.as_ref().map_or(Ok(()), |text| Err(Error::Transport(text.clone())))
    }
}

/// Checks the length of a received piece.
fn check_piece(piece: &MessagePiece, status: &sys::MPI_Status) -> Result<()> {
    let Some(expected) = piece.expected else { return Ok(()) };
    let words = result::words_received(status)?;
    let text = || format!("a message has {words} words instead of {expected}");
    if words == expected { Ok(()) } else { Err(Error::Transport(text())) }
}

impl Mailbox for MpiMailbox {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.announced.len()
    }

    fn send(&mut self, to: usize, header: &[u64], payload: Option<(Payload, u64)>) -> Result<()> {
        check_message(to, self.size(), header)?;
        self.check()?;
        let outcome = self.start_message(to, header, payload);
        self.noted(outcome)
    }

    fn receive(&mut self, from: usize, token: u64, mut buffer: Vec<u64>) -> Result<()> {
        self.check()?;
        let lengths = self.announced.get_mut(from).ok_or_else(|| not_announced(from))?;
        let &words = lengths.front().ok_or_else(|| not_announced(from))?;
        make_room(&mut buffer, words)?;
        buffer.resize(words, 0);
        lengths.pop_front();
        self.counts.arriving += 1;
        let start = |gate| self.start_payload(&gate, from, Content::PayloadIn { payload: buffer, token });
        let outcome = Gate::enter().and_then(start);
        self.noted(outcome)
    }

    fn poll(&mut self) -> Result<Option<Arrival>> {
        self.check()?;
        if self.ready.is_empty() {
            let outcome = self.look();
            self.noted(outcome)?;
        }
        let arrival = self.ready.pop_front();
        if arrival.is_some() {
            self.active = Instant::now();
        }
        match &arrival {
            Some(Arrival::Header { from, payload_words, .. }) => {
                self.counts.received += 1;
                self.announced[*from].extend(*payload_words);
            }
            Some(Arrival::Payload { .. }) => self.counts.arriving -= 1,
            Some(Arrival::Sent { .. }) => self.counts.leaving -= 1,
            None => {}
        }
        Ok(arrival)
    }

    fn pause(&mut self, most: Duration) {
        let start = Instant::now();
        while self.ready.is_empty() && self.failed.is_none() {
            let outcome = self.look();
            let left = most.saturating_sub(start.elapsed());
            let found = self.noted(outcome).unwrap_or(true);
            if found || left.is_zero() || self.waker.wait(self.sleep().min(left)) {
                return;
            }
        }
    }

    fn set_patient(&mut self, patient: bool) {
        self.patient = patient;
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn announced(&self) -> Option<usize> {
        self.announced.iter().position(|lengths| !lengths.is_empty())
    }
}

impl Drop for MpiMailbox {
    /// Frees the communicator where nothing is under way. Otherwise only other ranks could end the transfers, and they
    /// may have given up: waiting might never end, and MPI may read and write the words until it is finalised. So the
    /// words stay.
    fn drop(&mut self) {
        let quiet =
            !std::thread::panicking() && (self.requests.is_empty() || self.failed.is_none() && self.look().is_ok());
        if !quiet || !self.requests.is_empty() {
            return std::mem::forget(std::mem::take(&mut self.transfers));
        }
        if let Ok(gate) = Gate::enter() {
            // SAFETY: the communicator is ours alone, all its requests are done, and it is not used again.
            let _ = gate.call(|| unsafe { result::free(self.comm) });
        }
    }
}
