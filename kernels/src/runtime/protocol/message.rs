//! The messages between ranks, and how they are encoded in words.

use crate::error::{Error, Result};
use crate::tile::TileId;

/// A rank that will receive a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    /// The rank.
    pub rank: u32,
    /// Whether it has sent a request already: its request will not be forwarded.
    pub asked: bool,
}

/// A message between ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// The sender has finished a tile that the receiver reads.
    Notice(TileId),
    /// The sender has finished a tile, which the receiver reads in place.
    Shown(TileId),
    /// `client` requests a tile; comes from the client, or is forwarded by the rank that sent the receiver the tile.
    Request {
        /// The tile.
        tile: TileId,
        /// The rank that requests it.
        client: u32,
        /// The number of times that it was forwarded.
        hops: u32,
    },
    /// A finished tile, whose data are sent with the message.
    Tile {
        /// The tile.
        tile: TileId,
        /// The clients to which the receiver must send it.
        clients: Vec<Client>,
        /// Number of transfers since its owner, including this one.
        depth: u32,
    },
    /// The sender's tasks are done ([`super::Termination::AllToAll`]).
    Finished,
    /// The sender has had an error: it will send nothing more.
    Stop,
}

const NOTICE: u64 = 0;
const REQUEST: u64 = 1;
const TILE: u64 = 2;
const FINISHED: u64 = 3;
const STOP: u64 = 4;
const SHOWN: u64 = 5;

/// A flag next to the number of a rank.
const ASKED: u64 = 1 << 32;

impl Message {
    /// The message as words.
    pub fn to_words(&self) -> Vec<u64> {
        let place = |tile: &TileId| [tile.row as u64, tile.col as u64];
        match self {
            Message::Notice(tile) => [&[NOTICE][..], &place(tile)].concat(),
            Message::Shown(tile) => [&[SHOWN][..], &place(tile)].concat(),
            Message::Request { tile, client, hops } => {
                [&[REQUEST][..], &place(tile), &[u64::from(*client), u64::from(*hops)]].concat()
            }
            Message::Tile { tile, clients, depth } => {
                let clients =
                    clients.iter().map(|client| u64::from(client.rank) | if client.asked { ASKED } else { 0 });
                let head = [&[TILE][..], &place(tile), &[u64::from(*depth)]].concat();
                head.into_iter().chain(clients).collect()
            }
            Message::Finished => vec![FINISHED],
            Message::Stop => vec![STOP],
        }
    }

    /// The message of these words.
    ///
    /// # Errors
    /// [`Error::Transport`] for words that are not a message.
    pub fn from_words(words: &[u64]) -> Result<Message> {
        let tile = |row: u64, col: u64| TileId { row: row as usize, col: col as usize };
        match *words {
            [NOTICE, row, col] => Ok(Message::Notice(tile(row, col))),
            [SHOWN, row, col] => Ok(Message::Shown(tile(row, col))),
            [REQUEST, row, col, client, hops] => {
                Ok(Message::Request { tile: tile(row, col), client: client as u32, hops: hops as u32 })
            }
            [TILE, row, col, depth, ref clients @ ..] => {
                let client = |&word: &u64| Client { rank: word as u32, asked: word & ASKED != 0 };
                let clients = clients.iter().map(client).collect();
                Ok(Message::Tile { tile: tile(row, col), clients, depth: depth as u32 })
            }
            [FINISHED] => Ok(Message::Finished),
            [STOP] => Ok(Message::Stop),
            _ => Err(Error::Transport(format!("a message of {} words is not part of the protocol", words.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_from_words() {
        let tile = TileId { row: 70_000, col: 3 };
        let clients = vec![Client { rank: 4079, asked: true }, Client { rank: 0, asked: false }];
        for message in [
            Message::Notice(tile),
            Message::Shown(tile),
            Message::Request { tile, client: 17, hops: 3 },
            Message::Tile { tile, clients: Vec::new(), depth: 1 },
            Message::Tile { tile, clients, depth: 9 },
            Message::Finished,
            Message::Stop,
        ] {
            assert_eq!(Message::from_words(&message.to_words()).unwrap(), message);
        }
        for words in [&[][..], &[NOTICE], &[REQUEST, 1, 2], &[99], &[FINISHED, 1]] {
            assert!(Message::from_words(words).is_err(), "{words:?}");
        }
    }
}
