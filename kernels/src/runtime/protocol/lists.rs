//! The list of clients that one server has for one tile, and the client that it serves next.

use super::{Client, Delivery};

/// A client that a server still has to deal with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ClientEntry {
    client: Client,
    /// The server of the client: `None` for this server, else where its request is to be forwarded.
    server: Option<u32>,
}

/// The clients that are to get a tile from one server, or are sent on to another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ClientList {
    entries: Vec<ClientEntry>,
}

/// The route of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Route {
    /// This server answers, now or when it has the tile.
    Here,
    /// Another server answers.
    Forward(u32),
}

impl ClientList {
    /// All to be served here.
    pub fn new(clients: impl IntoIterator<Item = Client>) -> ClientList {
        ClientList { entries: clients.into_iter().map(|client| ClientEntry { client, server: None }).collect() }
    }

    /// Whether no client is left.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Processes a request.
    pub fn request(&mut self, rank: u32) -> Route {
        let place = self.entries.iter().position(|entry| entry.client.rank == rank);
        let place = place.unwrap_or_else(|| panic!("rank {rank} requests a tile that it has or never reads"));
        match self.entries[place].server {
            Some(server) => {
                self.entries.swap_remove(place);
                Route::Forward(server)
            }
            None => {
                self.entries[place].client.asked = true;
                Route::Here
            }
        }
    }

    /// The next client that has requested the tile, with the clients that it will serve in turn.
    pub fn serve(&mut self, delivery: &dyn Delivery) -> Option<(u32, Vec<Client>)> {
        let waits = |entry: &ClientEntry| entry.server.is_none() && entry.client.asked;
        let place = self.entries.iter().position(waits)?;
        let rank = self.entries.remove(place).client.rank;
        let unserved = self.entries.iter().filter(|entry| entry.server.is_none()).count();
        let mut wanted = delivery.delegated(unserved);
        let mut clients = Vec::with_capacity(wanted);
        // The clients at the end: the first ones read the tile soonest.
        for entry in self.entries.iter_mut().rev().filter(|entry| entry.server.is_none()) {
            if wanted == 0 {
                break;
            }
            wanted -= 1;
            clients.push(entry.client);
            entry.server = Some(rank);
        }
        clients.reverse();
        // A client that has asked already does not ask again: there is nothing left to forward.
        self.entries.retain(|entry| entry.server.is_none() || !entry.client.asked);
        Some((rank, clients))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::protocol::{CsList, PointToPoint};

    fn list(count: u32, asked: bool) -> ClientList {
        ClientList::new((1..=count).map(|rank| Client { rank, asked }))
    }

    #[test]
    fn half_of_the_clients_go_with_the_tile_and_are_forwarded_once() {
        let rule = CsList { notices: true };
        let mut list = list(5, false);
        assert!(list.serve(&rule).is_none(), "nobody has asked");
        assert_eq!(list.request(3), Route::Here);
        let (first, clients) = list.serve(&rule).unwrap();
        assert_eq!((first, clients.iter().map(|client| client.rank).collect::<Vec<_>>()), (3, vec![4, 5]));
        assert_eq!(list.request(5), Route::Forward(3));
        assert_eq!(list.request(1), Route::Here);
        assert_eq!(list.serve(&rule).unwrap(), (1, vec![]), "the last one is served here");
        assert_eq!((list.request(4), list.is_empty()), (Route::Forward(3), false));
        assert_eq!((list.request(2), list.serve(&rule)), (Route::Here, Some((2, vec![]))));
        assert!(list.is_empty());
    }

    #[test]
    fn an_owner_sends_at_most_the_logarithm() {
        for count in 1..200u32 {
            for asked in [true, false] {
                let mut list = list(count, asked);
                let mut sends = 0;
                for rank in 1..=count {
                    if !asked && list.request(rank) != Route::Here {
                        continue;
                    }
                    while list.serve(&CsList { notices: true }).is_some() {
                        sends += 1;
                    }
                }
                assert!(list.is_empty() && sends <= 1 + count.ilog2(), "{count}: {sends}");
            }
        }
    }

    #[test]
    fn point_to_point_delegates_nobody() {
        let mut list = list(4, true);
        let served = std::iter::from_fn(|| list.serve(&PointToPoint)).collect::<Vec<_>>();
        assert_eq!(served, (1..=4).map(|rank| (rank, Vec::new())).collect::<Vec<_>>());
        assert!(list.is_empty());
    }
}
