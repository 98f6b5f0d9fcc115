//! The rule that determines the sender of a finished tile for each receiver.
//!
//! A tile and the ranks that read it, its owner first, are numbered from 0; a rule depends only on these numbers.

use crate::error::{Error, Result};
use serde::Serialize;

/// An algorithm for the delivery of tiles.
pub trait Delivery: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// Whether the owner notifies readers that a tile is finished, and they request it then. Otherwise they request it
    /// as soon as they have room for it, and the rank that they ask keeps the request.
    fn sends_notices(&self) -> bool;
    /// The number that reader `client` of `count` numbers asks: a number below its own, the owner by default.
    fn server(&self, _count: usize, _client: usize) -> usize {
        0
    }
    /// The numbers that `server` is to serve from the start, in this order: by default the owner serves all.
    fn served_by(&self, count: usize, server: usize) -> Vec<usize> {
        if server == 0 { (1..count).collect() } else { Vec::new() }
    }
    /// How many of the `unserved` clients of a server go with the tile that it sends to another one: by default none.
    fn delegated(&self, _unserved: usize) -> usize {
        0
    }
    /// Whether updates go column by column, all of one before any of the next.
    fn in_steps(&self) -> bool {
        false
    }
    /// Whether a reader of a tile, one of `readers`, may pass it on to others. Of two readers none does: the owner
    /// serves the second one as soon.
    fn passes_on(&self, readers: usize) -> bool {
        readers > 2
    }
}

/// The owner sends the tile to each reader.
#[derive(Clone, Copy, Debug)]
pub struct PointToPoint;

/// Lists of clients and servers: half of the clients that are not yet served are sent with the tile, so that a tree
/// grows in the order in which requests arrive. A single last client is served directly: that takes no longer, and the
/// other client need not keep the tile for it.
#[derive(Clone, Copy, Debug)]
pub struct CsList {
    /// Whether readers wait for a notice before they request a tile.
    pub notices: bool,
}

/// A binomial tree known in advance: each reader requests the tile from its parent.
#[derive(Clone, Copy, Debug)]
pub struct Binomial;

/// The synchronous algorithm: a binomial tree for each tile, and column by column.
#[derive(Clone, Copy, Debug)]
pub struct Synchronous;

impl Delivery for PointToPoint {
    fn name(&self) -> &'static str {
        "point_to_point"
    }

    fn passes_on(&self, _readers: usize) -> bool {
        false
    }

    fn sends_notices(&self) -> bool {
        true
    }
}

impl Delivery for CsList {
    fn name(&self) -> &'static str {
        if self.notices { "cs_list" } else { "cs_list_ahead" }
    }

    fn sends_notices(&self) -> bool {
        self.notices
    }

    fn delegated(&self, unserved: usize) -> usize {
        if unserved > 1 { unserved.div_ceil(2) } else { 0 }
    }
}

impl Delivery for Binomial {
    fn name(&self) -> &'static str {
        "binomial"
    }

    fn sends_notices(&self) -> bool {
        false
    }

    fn server(&self, _count: usize, client: usize) -> usize {
        client & (client - 1)
    }

    /// The children, that with the largest tree below it first.
    fn served_by(&self, count: usize, server: usize) -> Vec<usize> {
        let below = if server == 0 { usize::BITS } else { server.trailing_zeros() };
        let children = (0..below.min(usize::BITS - count.leading_zeros())).rev().map(|bit| server + (1 << bit));
        children.filter(|&child| child < count).collect()
    }
}

impl Delivery for Synchronous {
    fn name(&self) -> &'static str {
        "synchronous"
    }

    fn sends_notices(&self) -> bool {
        false
    }

    fn server(&self, count: usize, client: usize) -> usize {
        Binomial.server(count, client)
    }

    fn served_by(&self, count: usize, server: usize) -> Vec<usize> {
        Binomial.served_by(count, server)
    }

    fn in_steps(&self) -> bool {
        true
    }
}

/// The delivery algorithms by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryKind {
    /// [`PointToPoint`].
    PointToPoint,
    /// [`CsList`] with notices, as in the paper.
    CsList,
    /// [`CsList`] with requests in advance.
    #[default]
    CsListAhead,
    /// [`Binomial`].
    Binomial,
    /// [`Synchronous`].
    Synchronous,
}

impl DeliveryKind {
    /// All of them.
    pub const ALL: [DeliveryKind; 5] = [
        DeliveryKind::PointToPoint,
        DeliveryKind::CsList,
        DeliveryKind::CsListAhead,
        DeliveryKind::Binomial,
        DeliveryKind::Synchronous,
    ];

    /// The rule itself.
    pub fn rule(self) -> &'static dyn Delivery {
        match self {
            DeliveryKind::PointToPoint => &PointToPoint,
            DeliveryKind::CsList => &CsList { notices: true },
            DeliveryKind::CsListAhead => &CsList { notices: false },
            DeliveryKind::Binomial => &Binomial,
            DeliveryKind::Synchronous => &Synchronous,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.rule().name()
    }

    /// The algorithm of that name.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] lists the names.
    pub fn by_name(name: &str) -> Result<DeliveryKind> {
        let names = || DeliveryKind::ALL.map(DeliveryKind::name).join(", ");
        let unknown =
            || Error::InvalidArgument(format!("unknown broadcast algorithm '{name}': choose one of {}", names()));
        DeliveryKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_is_served_by_whom_it_asks() {
        for kind in DeliveryKind::ALL {
            let rule = kind.rule();
            for count in 1..140 {
                let mut served = vec![false; count];
                for server in 0..count {
                    for client in rule.served_by(count, server) {
                        assert!(client > server && !served[client], "{} {count} {server}", rule.name());
                        assert_eq!(rule.server(count, client), server);
                        served[client] = true;
                    }
                }
                assert!(served[1..].iter().all(|&done| done), "{} {count}", rule.name());
            }
        }
        assert_eq!(Binomial.served_by(128, 0).len(), 7);
    }
}
