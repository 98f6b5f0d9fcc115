//! What [`drain`] does where bodies cannot be received at first, or messages come late.

use super::faulty::{Call, Faulty, PLANTED};
use super::*;
use crate::comm::local::{self, LocalRank};
use crate::comm::{barrier, broadcast_bytes};

const RANKS: usize = 3;

/// The rank whose post is not sound.
const FAULTY: usize = 1;

/// Sends a head and a head with a body to every rank, drains, and looks what is left.
fn leave_and_drain(rank: &LocalRank, post: &mut dyn Post) -> Result<()> {
    let body: Body = Arc::new(vec![7; 1000]);
    for to in 0..RANKS {
        post.send(to, &[1], None)?;
        post.send(to, &[2, 3], Some((body.clone(), 0)))?;
    }
    barrier(rank)?;
    drain(rank, post)?;
    assert_eq!(Arc::strong_count(&body), 1, "all handles have been given back");
    let counts = post.counts();
    assert_eq!((counts.leaving, counts.arriving, post.announced()), (0, 0, None));
    Ok(())
}

/// The one message that each rank sends now is the only one that comes.
fn use_again(rank: &LocalRank, post: &mut dyn Post) {
    let (own, next) = (rank.rank() as u64, (rank.rank() + 1) % RANKS);
    post.send(next, &[100 + own], None).unwrap();
    barrier(rank).unwrap();
    let before = (rank.rank() + RANKS - 1) % RANKS;
    match post.poll().unwrap() {
        Some(Arrival::Head { from, head, body_words: None }) => {
            assert_eq!((from, head), (before, vec![100 + from as u64]))
        }
        other => panic!("{other:?}"),
    }
    assert!(post.poll().unwrap().is_none());
    drain(rank, post).unwrap();
}

#[test]
fn drain_tries_again_where_a_body_cannot_be_received_at_first() {
    for failures in [0, 1, DRAIN_TRIES as usize - 1] {
        local::run(RANKS, |rank| {
            let fails = if rank.rank() == FAULTY { 0..failures } else { 0..0 };
            let mut post = Faulty::failing(rank.open_post().unwrap(), Call::Receive, fails);
            leave_and_drain(rank, &mut post).unwrap();
            use_again(rank, &mut post);
        });
    }
}

#[test]
fn drain_waits_for_what_is_on_its_way() {
    for polls in [1, 7, 40] {
        local::run(RANKS, |rank| {
            let late = if rank.rank() == FAULTY { polls } else { 0 };
            let mut post = Faulty::late(rank.open_post().unwrap(), late);
            leave_and_drain(rank, &mut post).unwrap();
            use_again(rank, &mut post);
        });
    }
}

#[test]
fn what_stays_broken_ends_the_drain_of_all_ranks_and_not_their_group() {
    for call in [Call::Receive, Call::Poll] {
        let errors = local::run(RANKS, |rank| {
            let fails = if rank.rank() == FAULTY { 0..usize::MAX } else { 0..0 };
            let mut post = Faulty::failing(rank.open_post().unwrap(), call, fails);
            let error = leave_and_drain(rank, &mut post).unwrap_err();
            let bytes = broadcast_bytes(rank, 0, &[rank.rank() as u8 + 5]).unwrap();
            assert_eq!(bytes, [5], "the ranks are at the same call");
            let mut next = rank.open_post().unwrap();
            use_again(rank, &mut *next);
            error
        });
        for error in errors {
            let is_told = matches!(&error, Error::Rank { rank: FAULTY, message, .. } if message.contains(PLANTED));
            assert!(is_told, "{call:?}: {error}");
        }
    }
}
