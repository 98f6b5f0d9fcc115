//! Tests of [`drain`] where payloads cannot be received at first, or messages come late.

use super::faulty::{Call, Faulty, PLANTED};
use super::*;
use crate::comm::local::{self, LocalRank};
use crate::comm::{barrier, broadcast_bytes};

const RANKS: usize = 3;

/// The rank whose mailbox is not sound.
const FAULTY: usize = 1;

/// Sends a header and a header with a payload to every rank, drains, and checks that no message remains.
fn leave_and_drain(rank: &LocalRank, mailbox: &mut dyn Mailbox) -> Result<()> {
    let payload: Payload = Arc::new(vec![7; 1000]);
    for to in 0..RANKS {
        mailbox.send(to, &[1], None)?;
        mailbox.send(to, &[2, 3], Some((payload.clone(), 0)))?;
    }
    barrier(rank)?;
    drain(rank, mailbox)?;
    assert_eq!(Arc::strong_count(&payload), 1, "all handles have been given back");
    let counts = mailbox.counts();
    assert_eq!((counts.leaving, counts.arriving, mailbox.announced()), (0, 0, None));
    Ok(())
}

/// The one message that each rank sends now is the only one that comes.
fn use_again(rank: &LocalRank, mailbox: &mut dyn Mailbox) {
    let (own, next) = (rank.rank() as u64, (rank.rank() + 1) % RANKS);
    mailbox.send(next, &[100 + own], None).unwrap();
    barrier(rank).unwrap();
    let before = (rank.rank() + RANKS - 1) % RANKS;
    match mailbox.poll().unwrap() {
        Some(Arrival::Header { from, header, payload_words: None }) => {
            assert_eq!((from, header), (before, vec![100 + from as u64]))
        }
        other => panic!("{other:?}"),
    }
    assert!(mailbox.poll().unwrap().is_none());
    drain(rank, mailbox).unwrap();
}

#[test]
fn drain_tries_again_where_a_payload_cannot_be_received_at_first() {
    for failures in [0, 1, DRAIN_TRIES as usize - 1] {
        local::run(RANKS, |rank| {
            let fails = if rank.rank() == FAULTY { 0..failures } else { 0..0 };
            let mut mailbox = Faulty::failing(rank.open_mailbox().unwrap(), Call::Receive, fails);
            leave_and_drain(rank, &mut mailbox).unwrap();
            use_again(rank, &mut mailbox);
        });
    }
}

#[test]
fn drain_waits_for_what_is_on_its_way() {
    for polls in [1, 7, 40] {
        local::run(RANKS, |rank| {
            let late = if rank.rank() == FAULTY { polls } else { 0 };
            let mut mailbox = Faulty::late(rank.open_mailbox().unwrap(), late);
            leave_and_drain(rank, &mut mailbox).unwrap();
            use_again(rank, &mut mailbox);
        });
    }
}

#[test]
fn what_stays_broken_ends_the_drain_of_all_ranks_and_not_their_group() {
    for call in [Call::Receive, Call::Poll] {
        let errors = local::run(RANKS, |rank| {
            let fails = if rank.rank() == FAULTY { 0..usize::MAX } else { 0..0 };
            let mut mailbox = Faulty::failing(rank.open_mailbox().unwrap(), call, fails);
            let error = leave_and_drain(rank, &mut mailbox).unwrap_err();
            let bytes = broadcast_bytes(rank, 0, &[rank.rank() as u8 + 5]).unwrap();
            assert_eq!(bytes, [5], "the ranks are at the same call");
            let mut next = rank.open_mailbox().unwrap();
            use_again(rank, &mut *next);
            error
        });
        for error in errors {
            let is_told = matches!(&error, Error::Rank { rank: FAULTY, message, .. } if message.contains(PLANTED));
            assert!(is_told, "{call:?}: {error}");
        }
    }
}
