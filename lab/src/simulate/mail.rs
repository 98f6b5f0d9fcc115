//! Envelopes: on links, and before the progress threads.

use super::clock::EventKind;
use super::record::Track;
use super::world::{Envelope, World, code};
use sunzi::Result;
use sunzi::advanced::runtime::protocol::{Message, ProtocolEvent};

impl World<'_> {
    /// Sends a message; a tile waits for its turn on the link out of its node, and before a process above a disk until
    /// few others come there.
    pub(super) fn send(&mut self, from: usize, to: usize, message: Message) -> Result<()> {
        let factor = self.noise.factor() * self.hosts[from].slowness;
        let Message::Tile { tile, .. } = message else {
            let envelope = self.envelopes.put(Envelope { from: from as u32, factor, message });
            self.post(to, self.now + self.links.latency(from, to) * factor, envelope);
            return Ok(());
        };
        self.watch.read(from, tile)?;
        let envelope = self.envelopes.put(Envelope { from: from as u32, factor, message });
        if self.levels.get_mut(to).is_none_or(|level| level.lets_come(envelope)) {
            self.ship(to, envelope);
        }
        Ok(())
    }

    /// A tile takes its turn on the link out of its node.
    pub(super) fn ship(&mut self, to: usize, envelope: u32) {
        let Envelope { from, factor, message } = self.envelopes.get(envelope);
        let (from, factor) = (*from as usize, *factor);
        let Message::Tile { tile, .. } = message else { return };
        let tile = *tile;
        if self.links.is_local(from, to) {
            let span = self.links.copy(from, self.now, factor);
            self.record(from, Track::Out, tile, span.start, span.end);
            self.clock.set(span.end, EventKind::Sent, from, code(tile));
            self.post(to, span.end, envelope);
            return;
        }
        let span = self.links.leave(from, self.now, factor);
        self.record(from, Track::Out, tile, span.start, span.end);
        self.clock.set(span.end, EventKind::Sent, from, code(tile));
        if span.start > self.now {
            self.clock.set(span.start, EventKind::Depart, to, envelope);
        } else {
            self.depart(to, envelope);
        }
    }

    /// The first bytes of a tile leave.
    pub(super) fn depart(&mut self, to: usize, envelope: u32) {
        let Envelope { from, factor, message } = self.envelopes.get(envelope);
        let (from, factor) = (*from as usize, *factor);
        let Message::Tile { tile, .. } = message else { return };
        let tile = *tile;
        let span = self.links.enter(from, to, self.now, factor);
        self.record(to, Track::In, tile, span.start, span.end);
        self.post(to, span.end, envelope);
    }

    /// Lays an envelope before the progress thread of a process; the time that this one takes is added at once.
    fn post(&mut self, to: usize, time: f64, envelope: u32) {
        let time = time + self.handling(to);
        self.clock.set(time, EventKind::Arrive, to, envelope);
    }

    fn handling(&self, process: usize) -> f64 {
        self.machine.network.message_seconds * self.hosts[process].slowness
    }

    /// An envelope has come; the progress thread takes one after the other.
    pub(super) fn arrive(&mut self, process: usize, envelope: u32) -> Result<()> {
        let handling = self.handling(process);
        let host = &mut self.hosts[process];
        let time = self.now.max(host.promised + handling);
        host.promised = time;
        self.statistics.progress_seconds += handling;
        if time > self.now {
            self.clock.set(time, EventKind::Take, process, envelope);
            return Ok(());
        }
        self.take(process, envelope)
    }

    /// The progress thread has dealt with an envelope.
    pub(super) fn take(&mut self, process: usize, envelope: u32) -> Result<()> {
        let Envelope { from, message, .. } = self.envelopes.take(envelope);
        let tile = if let Message::Tile { tile, .. } = message { Some(tile) } else { None };
        tile.map_or(Ok(()), |tile| self.watch.came(process, tile))?;
        self.processes[process].handle(ProtocolEvent::Message { from: from as usize, message });
        if let (Some(level), Some(tile)) = (self.levels.get_mut(process), tile) {
            level.keep(tile);
        }
        self.poll(process)
    }
}
