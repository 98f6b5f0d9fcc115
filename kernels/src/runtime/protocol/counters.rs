//! The counters of the state machine of a rank.

use serde::Serialize;

/// The messages that a rank has sent and the tiles that it has held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counters {
    /// Notices sent.
    pub notices: u64,
    /// Requests sent, without forwarded ones.
    pub requests: u64,
    /// Requests forwarded.
    pub forwards: u64,
    /// Tiles sent.
    pub tiles: u64,
    /// Messages sent only for termination.
    pub finished: u64,
    /// Largest number of times that this rank sent one of its own tiles.
    pub most_sends: u32,
    /// Largest number of transfers between the owner of a tile and this rank.
    pub depth: u32,
    /// Largest number of times that a request answered here was forwarded.
    pub hops: u32,
    /// Largest number of slots in use.
    pub peak_slots: u64,
    /// Most ready tiles.
    pub peak_ready: u64,
    /// Tasks done.
    pub tasks: u64,
}
