//! Messages that no rank waits for, on ranks that are threads; `tests/mpi/mailboxes.rs` has the same traffic under MPI.

use crate::common::seeds;
use crate::common::traffic::{self, Traffic};
use std::sync::Arc;
use std::time::Duration;
use sunzi::comm::mailbox::Arrival;
use sunzi::comm::{Transport, local};

const LENGTHS: &[usize] = &[0, 1, 7, 8, 1000, 40_000];

/// Sixteen threads wake each other tens of thousands of times, which takes most of the seconds here.
#[test]
fn random_traffic_arrives_whole_and_in_order() {
    for size in [1, 2, 3, 5, 16] {
        for seed in seeds(3) {
            let traffic = Traffic { seed, messages: 60, lengths: LENGTHS, quitters: 0 };
            local::run(size, |rank| traffic::run(rank, &traffic));
        }
    }
}

#[test]
fn drain_takes_what_ranks_that_gave_up_have_left() {
    for size in [1, 2, 4, 9] {
        for seed in seeds(8) {
            let traffic = Traffic { seed, messages: 30, lengths: LENGTHS, quitters: 4 };
            local::run(size, |rank| traffic::run(rank, &traffic));
        }
    }
}

#[test]
fn mailboxes_refuse_what_cannot_be_sent() {
    local::run(3, |rank| traffic::refusals(rank));
}

#[test]
fn wakers_end_pauses() {
    local::run(2, |rank| traffic::wakers(rank));
}

#[test]
fn mailboxes_of_one_group_are_apart() {
    local::run(2, |rank| {
        let (mut first, mut second) = (rank.open_mailbox().unwrap(), rank.open_mailbox().unwrap());
        first.send(1 - rank.rank(), &[1], None).unwrap();
        second.send(1 - rank.rank(), &[2], None).unwrap();
        for (mailbox, number) in [(&mut second, 2), (&mut first, 1)] {
            let arrival = loop {
                match mailbox.poll().unwrap() {
                    Some(arrival) => break arrival,
                    None => mailbox.pause(Duration::from_secs(10)),
                }
            };
            assert!(matches!(arrival, Arrival::Header { header, .. } if header == [number]));
        }
    });
}

#[test]
fn a_rank_that_is_gone_is_an_error() {
    let mut group = local::group(2);
    let (one, zero) = (group.pop().unwrap(), group.pop().unwrap());
    let opened = std::thread::spawn(move || one.open_mailbox().unwrap());
    let mut mailbox = zero.open_mailbox().unwrap();
    let other = opened.join().unwrap();
    let payload = Arc::new(vec![3; 10]);
    mailbox.send(1, &[1], Some((payload.clone(), 0))).unwrap();
    assert!(mailbox.poll().unwrap().is_none());
    let _ = std::thread::spawn(move || {
        let _other = other;
        panic!("for the test");
    })
    .join();
    mailbox.pause(Duration::from_secs(100));
    assert_eq!(mailbox.poll().unwrap_err().exit_code(), 6);
    assert_eq!(mailbox.send(1, &[2], None).unwrap_err().exit_code(), 6);
    assert_eq!(Arc::strong_count(&payload), 1, "what nobody will take is given back");
}
