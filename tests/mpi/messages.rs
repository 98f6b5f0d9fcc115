//! Messages and collective calls: the same calls on ranks that are threads give the same words.

use crate::{ALL, Case, Run};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sunzi::advanced::testing::effort;
use sunzi::comm::mpi::MpiRank;
use sunzi::comm::{Fence, Incoming, Outgoing, Reduction, Transport, agree, barrier, broadcast_bytes, local};
use sunzi::{Error, Result};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "messages::calls_give_what_threads_give", ranks: ALL, run: Run::Group(calls) },
    Case { name: "messages::long_messages_go_in_pieces", ranks: ALL, run: Run::Group(pieces) },
    Case { name: "messages::a_wrong_length_is_an_error", ranks: &[2, 3], run: Run::Group(wrong_length) },
    Case { name: "messages::all_ranks_fail_with_the_first_that_fails", ranks: ALL, run: Run::Group(agreement) },
    Case { name: "messages::ranks_share_one_machine", ranks: ALL, run: Run::Group(machine) },
];

/// Random calls; returns all words that this rank received. All ranks know all random numbers.
fn script(rank: &dyn Transport, seed: u64, longest: usize) -> Result<Vec<u64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (size, own) = (rank.size(), rank.rank());
    let mut log = Vec::new();
    for call in 0..30u64 {
        let length = if rng.random_bool(0.2) { 0 } else { rng.random_range(0..longest) };
        let word = |rank: usize, index: usize| {
            (call << 48 | (rank as u64) << 32 | index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let words = |rank: usize| (0..length).map(|index| word(rank, index)).collect::<Vec<u64>>();
        let mut mine = words(own);
        match rng.random_range(0..5) {
            0 => rank.all_reduce(Reduction::Max, &mut mine)?,
            1 => rank.all_reduce(Reduction::Sum, &mut mine)?,
            2 => rank.broadcast(rng.random_range(0..size), &mut mine)?,
            3 => {
                let mut all = vec![u64::MAX; length * size];
                rank.all_gather(&mine, &mut all)?;
                mine = all;
            }
            _ => mine = exchange(rank, &mut rng, &words(own), word)?,
        }
        log.extend(mine);
    }
    Ok(log)
}

/// A random list of messages, some to the rank itself, some without words.
fn exchange(
    rank: &dyn Transport,
    rng: &mut ChaCha8Rng,
    mine: &[u64],
    word: impl Fn(usize, usize) -> u64,
) -> Result<Vec<u64>> {
    let (size, own, length) = (rank.size(), rank.rank(), mine.len());
    let messages: Vec<(usize, usize, std::ops::Range<usize>)> = (0..rng.random_range(0..3 * size))
        .map(|_| {
            let (from, to) = (rng.random_range(0..size), rng.random_range(0..size));
            let start = rng.random_range(0..=length);
            (from, to, start..rng.random_range(start..=length))
        })
        .collect();
    let sends: Vec<Outgoing<'_>> = messages
        .iter()
        .filter(|(from, ..)| *from == own)
        .map(|(_, to, range)| Outgoing { to: *to, words: &mine[range.clone()] })
        .collect();
    let received: Vec<_> = messages.iter().filter(|(_, to, _)| *to == own).collect();
    let mut places: Vec<Vec<u64>> = received.iter().map(|(_, _, range)| vec![u64::MAX; range.len()]).collect();
    let mut receives: Vec<Incoming<'_>> =
        received.iter().zip(&mut places).map(|((from, ..), place)| Incoming { from: *from, words: place }).collect();
    // Who posts goes on at once, and its messages are received like others.
    if rng.random_bool(0.5) {
        sends.iter().try_for_each(|send| rank.post(send.to, send.words))?;
        rank.exchange(&[], &mut receives)?;
        rank.settle()?;
    } else {
        rank.exchange(&sends, &mut receives)?;
    }
    for ((from, _, range), place) in received.iter().zip(&places) {
        assert!(place.iter().copied().eq(range.clone().map(|index| word(*from, index))), "a message from {from}");
    }
    Ok(places.concat())
}

/// The script on the whole group, then on its parts; ranks that are threads must log the same.
fn script_and_parts(rank: &dyn Transport, seed: u64, longest: usize) -> Vec<u64> {
    let mut log = script(rank, seed, longest).unwrap();
    // Colors that are far from small numbers, and one that a rank has for itself.
    let color = if rank.rank() == 0 { usize::MAX } else { rank.rank() % 2 * 0x1_0000_0001 };
    let part = rank.split(color).unwrap();
    log.extend([part.rank() as u64, part.size() as u64]);
    log.extend(script(&*part, seed ^ color as u64, longest).unwrap());
    let pairs = part.split(part.rank() / 2).unwrap();
    drop(part);
    log.extend([pairs.rank() as u64, pairs.size() as u64]);
    log.extend(script(&*pairs, seed + 1, longest).unwrap());
    log
}

fn hash(log: &[u64]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytemuck::cast_slice(log))
}

fn compare(rank: &MpiRank, seed: u64, longest: usize) {
    let log = script_and_parts(rank, seed, longest);
    let mut wanted = vec![0; rank.size()];
    if rank.rank() == 0 {
        wanted = local::run(rank.size(), |thread| hash(&script_and_parts(thread, seed, longest)));
    }
    rank.broadcast(0, &mut wanted).unwrap();
    assert!(hash(&log) == wanted[rank.rank()], "seed {seed}, messages of up to {longest} words");
}

fn calls(rank: MpiRank) {
    for seed in 0..6 * effort() {
        compare(&rank, seed, [2, 50, 5000][seed as usize % 3]);
    }
    // Far longer than what MPI sends without asking.
    compare(&rank, 100, if effort() > 1 { 200_000 } else { 50_000 });
}

fn pieces(mut rank: MpiRank) {
    for (seed, piece) in [(0, 1), (1, 7), (2, 16), (3, 1000)] {
        rank.set_piece_words(piece);
        compare(&rank, seed, 100);
    }
}

fn wrong_length(rank: MpiRank) {
    for (sent, wanted) in [(10, 9), (9, 10), (0, 1), (1, 0), (100_000, 99_999)] {
        let (own, size) = (rank.rank(), rank.size());
        let (words, mut place) = (vec![7; sent], vec![0; wanted]);
        let sends = [Outgoing { to: (own + 1) % size, words: &words }];
        let mut receives = [Incoming { from: (own + size - 1) % size, words: &mut place }];
        let error = rank.exchange(&sends, &mut receives).unwrap_err();
        assert_eq!(error.exit_code(), 6, "{error}");
        barrier(&rank).unwrap();
    }
}

fn agreement(rank: MpiRank) {
    let (own, last) = (rank.rank(), rank.size() - 1);
    let fence = Fence::new(&rank);
    for round in 0..100 {
        fence.pass(Ok(()), round).unwrap();
        barrier(&rank).unwrap();
    }
    let outcome = if own == last { Err(Error::NotInteger { row: 3, column: own }) } else { Ok(()) };
    let error = agree(&rank, outcome).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    // Where all ranks fail alike, as one alone does, none is named.
    let name = if last == 0 { String::new() } else { format!("rank {last}: ") };
    assert!(error.to_string().starts_with(&format!("{name}entry at row 3, column {last} ")), "{error}");
    let error = agree(&rank, Err(Error::NotInteger { row: 5, column: 6 })).unwrap_err();
    assert!(matches!(error, Error::NotInteger { row: 5, column: 6 }), "{error}");
    let error = fence.pass(if own == 0 { Err(Error::Cancelled) } else { Ok(()) }, 7).unwrap_err();
    assert!(matches!(error, Error::Cancelled));
    let text = "words of many bytes, no multiple of eight".repeat(own + 1);
    let told = broadcast_bytes(&rank, last, text.as_bytes()).unwrap();
    assert_eq!(told.len(), 41 * (last + 1));
}

fn machine(rank: MpiRank) {
    let machine = rank.machine().unwrap();
    assert_eq!(machine, rank.machine().unwrap());
    let mut all = vec![0; rank.size()];
    rank.all_gather(&[machine as u64], &mut all).unwrap();
    assert!(all.iter().all(|&other| other == 0), "one machine, named by its first rank: {all:?}");
}
