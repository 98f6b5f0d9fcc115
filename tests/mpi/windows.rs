//! Windows that processes share: phases, zeros, two at a time, refusals, and memory that is given back.

use crate::{ALL, Case, Run};
use sunzi::advanced::testing::effort;
use sunzi::comm::mpi::MpiRank;
use sunzi::comm::window::{Level, Partition, Run as Words, SharedWindow, WindowKind};
use sunzi::comm::{Fence, Transport, barrier};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "windows::all_ranks_see_what_each_wrote", ranks: ALL, run: Run::Group(phases) },
    Case { name: "windows::large_ones_are_one_memory_on_huge_pages", ranks: &[2, 3], run: Run::Group(large) },
    Case { name: "windows::two_are_open_at_the_same_time", ranks: ALL, run: Run::Group(two) },
    Case { name: "windows::one_that_does_not_fit_is_an_error_on_every_rank", ranks: ALL, run: Run::Group(too_large) },
    Case { name: "windows::memory_is_given_back", ranks: &[1, 3], run: Run::Group(given_back) },
    Case { name: "windows::parts_of_a_machine_have_their_own", ranks: &[2, 4, 6], run: Run::Group(parts) },
    Case { name: "windows::one_that_is_dropped_does_no_harm", ranks: &[1, 3], run: Run::Group(dropped) },
];

/// What a group of this size can have, with the name that it gets.
fn kinds(ranks: usize) -> Vec<(WindowKind, &'static str)> {
    let shared = [(WindowKind::Mpi, "mpi"), (WindowKind::Posix, "posix")];
    let by_itself = if ranks == 1 { "heap" } else { "mpi" };
    let heap = (ranks == 1).then_some((WindowKind::Heap, "heap"));
    shared.into_iter().chain([(WindowKind::Auto, by_itself)]).chain(heap).collect()
}

/// Cells of `ranks` runs of 7 words, as in the tests of windows on threads.
fn partition(ranks: usize) -> Partition {
    let runs = (0..ranks).map(|rank| Words { words: rank * 10..rank * 10 + 7, rank }).collect();
    Partition::new(ranks, Level { count: 3, stride: 1000 }, Level { count: 4, stride: 100 }, runs)
}

fn write(window: &mut SharedWindow, rank: &dyn Transport, partition: &Partition, round: usize) {
    let shares = window.write(&Fence::new(rank), Ok(()), partition).unwrap();
    for (cell, run) in shares.into_iter().enumerate() {
        run.fill((round * 1000 + cell / 4 * 100 + cell % 4 * 10 + rank.rank()) as u64);
    }
}

fn check(window: &mut SharedWindow, rank: &dyn Transport, round: usize) {
    let ranks = rank.size();
    let words = window.read(&Fence::new(rank), Ok(())).unwrap();
    for (i, j, owner) in (0..ranks).flat_map(|rank| (0..12).map(move |cell| (cell / 4, cell % 4, rank))) {
        let first = i * 1000 + j * 100 + owner * 10;
        let want = (round * 1000 + i * 100 + j * 10 + owner) as u64;
        assert!(words[first..first + 7].iter().all(|&word| word == want), "round {round}, ranks {ranks}");
        assert_eq!(words[first + 7], 0, "a word that nobody writes");
    }
}

fn phases(rank: MpiRank) {
    let partition = partition(rank.size());
    for (kind, name) in kinds(rank.size()) {
        // The second time around the memory may have been used before.
        for words in [3000, 3000, 100_000] {
            let mut window = SharedWindow::open(&rank, kind, words).unwrap();
            assert_eq!(window.kind(), name);
            assert_eq!(window.bytes(), SharedWindow::bytes_for(words));
            let fresh = window.read(&Fence::new(&rank), Ok(())).unwrap();
            assert!(fresh.iter().all(|&word| word == 0), "a fresh {name} window");
            assert_eq!(fresh.as_ptr().align_offset(64), 0);
            for round in 0..if effort() > 1 { 30 } else { 5 } {
                write(&mut window, &rank, &partition, round);
                check(&mut window, &rank, round);
            }
            window.close().unwrap();
        }
    }
    if rank.size() > 1 {
        let refused = SharedWindow::open(&rank, WindowKind::Heap, 8).map(drop).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
    }
    let empty = SharedWindow::open(&rank, WindowKind::Mpi, 0).unwrap();
    assert_eq!((empty.kind(), empty.len()), ("none", 0));
    empty.close().unwrap();
}

/// Whether this system joins pages of shared memory for who asks.
fn joins_pages() -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse::<u32>().unwrap_or(0));
    let is_new = (numbers.next(), numbers.next()) >= (Some(6), Some(1));
    let setting = read("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    is_new && !setting.is_empty() && !setting.contains("[deny]")
}

fn large(rank: MpiRank) {
    let ranks = rank.size();
    let words = (10 << 20) / 8 + 1000;
    let each = words / ranks;
    for (kind, name) in kinds(ranks).into_iter().filter(|(_, name)| *name != "heap") {
        let mut window = SharedWindow::open(&rank, kind, words).unwrap();
        let fence = Fence::new(&rank);
        let runs = (0..ranks).map(|rank| Words { words: rank * each..(rank + 1) * each, rank }).collect();
        let partition = Partition::new(ranks, Level::ONCE, Level::ONCE, runs);
        for round in 1..4 {
            let shares = window.write(&fence, Ok(()), &partition).unwrap();
            shares.into_iter().for_each(|run| run.fill((round * 10 + rank.rank()) as u64));
            let all = window.read(&fence, Ok(())).unwrap();
            let is_right = |(at, &word): (usize, &u64)| word == (round * 10 + at / each) as u64;
            assert!(all[..ranks * each].iter().enumerate().all(is_right), "{name}, round {round}");
        }
        let start = window.read(&fence, Ok(())).unwrap().as_ptr().addr();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut own = maps.lines().skip_while(|line| !line.starts_with(&format!("{start:x}-")));
        let huge = own.find_map(|line| line.strip_prefix("ShmemPmdMapped:")).map(|kib| kib.trim().to_string());
        // Four or five pages, by where they begin; a system without room for some of them leaves these small.
        let has_some = huge.as_deref().is_some_and(|kib| !["0 kB", "1024 kB"].contains(&kib));
        assert!(!joins_pages() || has_some, "{name}: {huge:?} at {start:x}");
        window.close().unwrap();
    }
}

fn two(rank: MpiRank) {
    let partition = partition(rank.size());
    for (kind, _) in kinds(rank.size()) {
        let mut first = SharedWindow::open(&rank, kind, 3000).unwrap();
        let mut second = SharedWindow::open(&rank, kind, 5000).unwrap();
        for round in 0..10 {
            write(&mut first, &rank, &partition, round);
            let fence = Fence::new(&rank);
            let (from, shares) = second.write_from(&mut first, &fence, Ok(()), &partition).unwrap();
            for (cell, run) in shares.into_iter().enumerate() {
                let begin = cell / 4 * 1000 + cell % 4 * 100 + rank.rank() * 10;
                run.copy_from_slice(&from[begin..begin + 7]);
            }
            check(&mut second, &rank, round);
            check(&mut first, &rank, round);
        }
        first.close().unwrap();
        check(&mut second, &rank, 9);
        second.close().unwrap();
    }
}

fn too_large(rank: MpiRank) {
    for (kind, name) in kinds(rank.size()) {
        for words in [1 << 40, 1 << 50, usize::MAX / 64] {
            let error = SharedWindow::open(&rank, kind, words).map(drop).unwrap_err();
            assert_eq!(error.exit_code(), 4, "{name}, {words} words: {error}");
            barrier(&rank).unwrap();
        }
        // Nothing of it stays in the way.
        SharedWindow::open(&rank, kind, 1000).unwrap().close().unwrap();
    }
}

/// Open files, shared mappings and resident shared memory (in KiB) of this process.
fn held() -> (usize, usize, u64) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mappings = read("/proc/self/maps").lines().filter(|line| line.contains("rw-s")).count();
    let status = read("/proc/self/status");
    let shared = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).expect("Linux says it");
    (files, mappings, shared.trim().trim_end_matches(" kB").parse().unwrap())
}

fn given_back(rank: MpiRank) {
    for (kind, name) in kinds(rank.size()) {
        let open_and_close = || {
            // Large enough for huge pages, for which MPI's memory is mapped a second time.
            let mut window = SharedWindow::open(&rank, kind, 1 << 19).unwrap();
            write(&mut window, &rank, &partition(rank.size()), 1);
            check(&mut window, &rank, 1);
            window.close().unwrap();
        };
        (0..3).for_each(|_| open_and_close());
        let before = held();
        (0..if effort() > 1 { 50 } else { 10 }).for_each(|_| open_and_close());
        let after = held();
        assert_eq!((after.0, after.1), (before.0, before.1), "{name}: open files and mappings");
        assert!(after.2 <= before.2 + 1024, "{name}: {} KiB of shared memory grew to {}", before.2, after.2);
    }
}

fn parts(rank: MpiRank) {
    let part = rank.split(rank.rank() % 2).unwrap();
    let partition = partition(part.size());
    for (kind, _) in kinds(part.size()) {
        let mut window = SharedWindow::open(&*part, kind, 3000).unwrap();
        for round in 0..10 {
            write(&mut window, &*part, &partition, round + 100 * (rank.rank() % 2));
            check(&mut window, &*part, round + 100 * (rank.rank() % 2));
        }
        window.close().unwrap();
    }
}

fn dropped(rank: MpiRank) {
    for (kind, _) in kinds(rank.size()) {
        let mut window = SharedWindow::open(&rank, kind, 3000).unwrap();
        write(&mut window, &rank, &partition(rank.size()), 5);
    }
    let mut window = SharedWindow::open(&rank, WindowKind::Mpi, 3000).unwrap();
    write(&mut window, &rank, &partition(rank.size()), 6);
    check(&mut window, &rank, 6);
    window.close().unwrap();
}
