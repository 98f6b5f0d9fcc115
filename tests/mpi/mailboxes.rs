//! Messages that no rank waits for: the traffic that threads pass, and what only MPI can do to it.

use crate::traffic::{self, Traffic};
use crate::{ALL, Case, Run};
use std::sync::Arc;
use std::time::Duration;
use sunzi::advanced::testing::effort;
use sunzi::comm::mailbox::{Arrival, Mailbox, Payload, drain};
use sunzi::comm::mpi::MpiRank;
use sunzi::comm::{Transport, barrier};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "mailboxes::random_traffic_arrives_whole_and_in_order", ranks: ALL, run: Run::Group(random) },
    Case { name: "mailboxes::drain_takes_what_ranks_that_gave_up_have_left", ranks: ALL, run: Run::Group(quitters) },
    Case { name: "mailboxes::long_bodies_arrive", ranks: &[1, 2, 4], run: Run::Group(long) },
    Case { name: "mailboxes::mailboxes_refuse_what_cannot_be_sent", ranks: &[1, 2], run: Run::Group(refusals) },
    Case { name: "mailboxes::wakers_end_pauses", ranks: &[1, 2], run: Run::Group(wakers) },
    Case { name: "mailboxes::a_wrong_length_is_an_error", ranks: &[2], run: Run::Group(wrong_length) },
    Case { name: "mailboxes::a_mailbox_dropped_in_use_harms_nobody", ranks: &[2], run: Run::Group(dropped) },
];

/// The length of pieces in most cases, with payloads on both sides of it.
const PIECE: usize = 7;
const LENGTHS: &[usize] = &[0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 500];

fn random(mut rank: MpiRank) {
    for seed in 0..if effort() > 1 { 5 } else { 2 } {
        rank.set_piece_words(PIECE);
        traffic::run(&rank, &Traffic { seed, messages: 40, lengths: LENGTHS, quitters: 0 });
    }
    // Long enough that the sender keeps the words until the receiver asks.
    rank.set_piece_words(10_000);
    traffic::run(&rank, &Traffic { seed: 100, messages: 40, lengths: &[9_999, 10_001, 50_000], quitters: 0 });
}

/// One seed for each number of ranks, and pieces that are short, long, and longer than any payload. Short ones for few
/// ranks: where six share two processors, a drain of thousands of pieces takes long.
fn quitters(mut rank: MpiRank) {
    let seed = rank.size();
    rank.set_piece_words([PIECE, 10_000, 1 << 20][(seed - 1) % 3]);
    let lengths = &[0, 1, PIECE + 1, 500, 50_000];
    traffic::run(&rank, &Traffic { seed: seed as u64, messages: 20, lengths, quitters: 5 });
}

/// One long payload to everybody, itself included: MPI moves it in many parts.
fn long(rank: MpiRank) {
    let mut mailbox = rank.open_mailbox().unwrap();
    let (own, size, words) = (rank.rank(), rank.size(), if effort() > 1 { 1 << 22 } else { 1 << 19 });
    let payload: Payload = Arc::new((0..words).map(|index| index as u64 ^ own as u64).collect());
    (0..size).for_each(|to| mailbox.send(to, &[], Some((payload.clone(), to as u64))).unwrap());
    drop(payload);
    let (mut payloads, mut sent) = (0, 0);
    while payloads < size || sent < size {
        match mailbox.poll().unwrap() {
            Some(Arrival::Header { from, .. }) => mailbox.receive(from, from as u64, Vec::new()).unwrap(),
            Some(Arrival::Payload { token, payload }) => {
                assert!(payload.len() == words && payload.iter().zip(0..).all(|(&got, index)| got == index ^ token));
                payloads += 1;
            }
            Some(Arrival::Sent { .. }) => sent += 1,
            None => mailbox.pause(Duration::from_millis(1)),
        }
    }
    drain(&rank, &mut *mailbox).unwrap();
}

fn refusals(rank: MpiRank) {
    traffic::refusals(&rank);
}

fn wakers(rank: MpiRank) {
    traffic::wakers(&rank);
}

/// Ranks that do not agree on the length of pieces: the receiver sees it, and all ranks learn of it.
fn wrong_length(mut rank: MpiRank) {
    rank.set_piece_words(if rank.rank() == 0 { 5 } else { 10 });
    let mut mailbox = rank.open_mailbox().unwrap();
    rank.set_piece_words(1000);
    if rank.rank() == 0 {
        mailbox.send(1, &[], Some((Arc::new(vec![1; 10]), 0))).unwrap();
    }
    let error = drain(&rank, &mut *mailbox).unwrap_err();
    assert_eq!(error.exit_code(), 6);
    assert!(error.to_string().contains("5 words instead of 10"), "{error}");
    assert_eq!(mailbox.poll().is_err(), rank.rank() == 1, "the error stays with the rank that met it");
}

/// The receive of one rank stays open when its mailbox goes; the memory must outlive the words that come later.
fn dropped(rank: MpiRank) {
    let mut mailbox = rank.open_mailbox().unwrap();
    let words = 1 << 18;
    if rank.rank() == 0 {
        mailbox.send(1, &[], Some((Arc::new(vec![3; words]), 0))).unwrap();
        barrier(&rank).unwrap();
    } else {
        ask_for_one(&mut *mailbox);
        barrier(&rank).unwrap();
    }
    drop(mailbox);
    barrier(&rank).unwrap();
    // Were the buffer freed, these words would lie in it while MPI moves the message on.
    let own = vec![7u64; words];
    for _ in 0..50 {
        barrier(&rank).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(own.iter().all(|&word| word == 7));
}

fn ask_for_one(mailbox: &mut dyn Mailbox) {
    loop {
        match mailbox.poll().unwrap() {
            Some(Arrival::Header { from, .. }) => return mailbox.receive(from, 0, Vec::new()).unwrap(),
            _ => mailbox.pause(Duration::from_millis(1)),
        }
    }
}
