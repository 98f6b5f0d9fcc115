//! The thread of a rank that moves messages: the only one that calls the mailbox.

use super::report::SpanLog;
use super::state::{Envelope, Moves, SharedState, bytes_of};
use super::{RankTiles, SpanKind};
use crate::comm::mailbox::{Arrival, Mailbox};
use crate::error::{Error, Result};
use crate::runtime::protocol::{Message, ProtocolEvent};
use crate::tile::TileId;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The longest pause. It delays no work: messages and workers end it early.
const PAUSE: Duration = Duration::from_millis(20);

/// A tile on its way from another rank.
struct IncomingTile {
    from: usize,
    message: Message,
    tile: TileId,
    start: Option<Instant>,
}

/// A tile on its way to another rank.
struct OutgoingTile {
    to: usize,
    tile: TileId,
    start: Option<Instant>,
}

/// Moves the messages of one rank.
pub(super) struct ProgressThread<'a, 's, W> {
    shared: &'a SharedState<'s, W>,
    mailbox: &'a mut dyn Mailbox,
    /// Tiles that others have announced and that do not fit in memory yet.
    announced: VecDeque<(usize, Message, TileId)>,
    incoming: HashMap<u64, IncomingTile>,
    outgoing: HashMap<u64, OutgoingTile>,
    /// The next transfer.
    token: u64,
    moves: Moves,
    log: SpanLog,
}

impl<'a, 's, W: RankTiles> ProgressThread<'a, 's, W> {
    pub fn new(shared: &'a SharedState<'s, W>, mailbox: &'a mut dyn Mailbox) -> ProgressThread<'a, 's, W> {
        ProgressThread {
            shared,
            mailbox,
            announced: VecDeque::new(),
            incoming: HashMap::new(),
            outgoing: HashMap::new(),
            token: 0,
            moves: Moves::default(),
            log: shared.span_log(),
        }
    }

    /// Moves messages until the rank is done, or a worker has panicked.
    ///
    /// An error of the mailbox, or an invalid message, counts as an error of this rank: the others are stopped, as far
    /// as the mailbox still works.
    pub fn run(&mut self) {
        let mut failed = false;
        loop {
            let moved = self.poll().and_then(|moved| self.receive().map(|()| moved));
            let (envelopes, over, patient) = {
                let mut state = self.shared.lock();
                let (envelopes, over) = state.take_envelopes();
                (envelopes, over, state.is_patient())
            };
            self.mailbox.set_patient(patient);
            let is_quiet = !matches!(moved, Ok(true)) && envelopes.is_empty();
            // Each is tried: the other ranks wait for these messages.
            let sent = envelopes.into_iter().map(|envelope| self.send(envelope)).fold(Ok(()), Result::and);
            match moved.and(sent) {
                Err(error) if !failed => {
                    failed = true;
                    self.shared.fail(&mut self.shared.lock(), error);
                }
                _ if over => return self.mailbox.set_patient(false),
                _ if is_quiet => self.mailbox.pause(PAUSE),
                _ => {}
            }
        }
    }

    /// Takes in arrivals; returns whether there were any.
    fn poll(&mut self) -> Result<bool> {
        match self.mailbox.poll()? {
            Some(arrival) => self.arrived(arrival).map(|()| true),
            None => Ok(false),
        }
    }

    pub fn into_moves(self) -> Moves {
        Moves { transfers: self.log.into_spans(), ..self.moves }
    }

    fn arrived(&mut self, arrival: Arrival) -> Result<()> {
        match arrival {
            Arrival::Header { from, header, payload_words } => {
                self.header(from, Message::from_words(&header)?, payload_words)
            }
            Arrival::Payload { token, payload } => {
                let known = self.incoming.remove(&token);
                let IncomingTile { from, message, tile, start } = known.expect("a payload arrives as it was requested");
                self.moves.received_bytes += bytes_of(payload.len());
                self.log.add(SpanKind::Receive { from: from as u32 }, tile, start);
                self.shared.came(&mut self.shared.lock(), from, message, tile, payload);
                Ok(())
            }
            Arrival::Sent { token } => {
                let known = self.outgoing.remove(&token);
                let OutgoingTile { to, tile, start } = known.expect("a payload leaves as it was sent");
                self.log.add(SpanKind::Send { to: to as u32 }, tile, start);
                self.shared.left(&mut self.shared.lock(), tile);
                Ok(())
            }
        }
    }

    /// Takes in a message, or requests the tile that it announces.
    fn header(&mut self, from: usize, message: Message, payload_words: Option<usize>) -> Result<()> {
        let Message::Tile { tile, .. } = message else {
            self.shared.handle(&mut self.shared.lock(), ProtocolEvent::Message { from, message });
            return Ok(());
        };
        let expected = self.shared.tiles.payload_words(tile);
        if payload_words != Some(expected) {
            let found = payload_words.unwrap_or(0);
            let text = format!("rank {from} announced {found} words for a tile of {expected} words");
            return Err(Error::Transport(text));
        }
        self.announced.push_back((from, message, tile));
        self.receive()
    }

    /// Requests announced tiles, in this order, as far as there is room.
    fn receive(&mut self) -> Result<()> {
        while let Some((from, message, tile)) = self.announced.pop_front() {
            let buffer = {
                let mut state = self.shared.lock();
                if state.is_stopped() {
                    return Ok(()); // nobody needs it: it is thrown away at the end
                }
                if !self.shared.takes_another(&mut state) {
                    self.announced.push_front((from, message, tile));
                    return Ok(());
                }
                state.take_buffer()
            };
            let token = self.next_token();
            self.mailbox.receive(from, token, buffer)?;
            self.incoming.insert(token, IncomingTile { from, message, tile, start: self.log.now() });
        }
        Ok(())
    }

    fn send(&mut self, envelope: Envelope) -> Result<()> {
        let Envelope { to, header, payload } = envelope;
        let token = self.next_token();
        if let Some((tile, payload)) = &payload {
            self.moves.sent_bytes += bytes_of(payload.len());
            self.outgoing.insert(token, OutgoingTile { to, tile: *tile, start: self.log.now() });
        }
        self.mailbox.send(to, &header, payload.map(|(_, payload)| (payload, token)))
    }

    fn next_token(&mut self) -> u64 {
        self.token += 1;
        self.token
    }
}
