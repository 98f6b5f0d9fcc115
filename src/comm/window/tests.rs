//! Windows on ranks that are threads.

use super::*;
use crate::comm::{agree, local};
use crate::error::Error;

/// Ranks write their runs, then read those of all; for every kind of window between threads.
#[test]
fn all_ranks_see_what_each_wrote() {
    for kind in [WindowKind::Heap, WindowKind::Posix] {
        for ranks in [1usize, 2, 5] {
            local::run(ranks, |rank| {
                let mut window = SharedWindow::open(rank, kind, 3000).unwrap();
                assert_eq!(window.bytes(), SharedWindow::bytes_for(3000));
                let fence = Fence::new(rank);
                let runs = (0..ranks).map(|rank| Run { words: rank * 10..rank * 10 + 7, rank }).collect();
                let (outer, inner) = (Level { count: 3, stride: 1000 }, Level { count: 4, stride: 100 });
                let partition = Partition::new(ranks, outer, inner, runs);
                for round in 0..20 {
                    let shares = window.write(&fence, Ok(()), &partition).unwrap();
                    for (cell, run) in shares.into_iter().enumerate() {
                        assert_eq!(run.len(), 7);
                        run.fill((round * 1000 + cell / 4 * 100 + cell % 4 * 10 + rank.rank()) as u64);
                    }
                    let words = window.read(&fence, Ok(())).unwrap();
                    for (i, j, owner) in (0..ranks).flat_map(|r| (0..12).map(move |ij| (ij / 4, ij % 4, r))) {
                        let first = i * 1000 + j * 100 + owner * 10;
                        let want = (round * 1000 + i * 100 + j * 10 + owner) as u64;
                        assert!(words[first..first + 7].iter().all(|&word| word == want));
                    }
                }
                window.close().unwrap();
            });
        }
    }
    let left = std::fs::read_dir("/dev/shm").map_or(0, |entries| {
        let own = format!("sunzi-{}-", std::process::id());
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).count()
    });
    assert_eq!(left, 0, "a window was left in /dev/shm");
}

#[test]
fn the_outer_level_may_have_the_smaller_stride() {
    local::run(2, |rank| {
        let mut window = SharedWindow::open(rank, WindowKind::Auto, 300).unwrap();
        let fence = Fence::new(rank);
        let runs = vec![Run { words: 0..2, rank: 0 }, Run { words: 3..5, rank: 1 }, Run { words: 5..6, rank: 0 }];
        let (outer, inner) = (Level { count: 4, stride: 10 }, Level { count: 3, stride: 100 });
        let partition = Partition::new(2, outer, inner, runs);
        let shares = window.write(&fence, Ok(()), &partition).unwrap();
        shares.into_iter().enumerate().for_each(|(at, run)| run.fill(at as u64));
        let words = window.read(&fence, Ok(())).unwrap();
        for (i, j) in (0..4).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let (cell, at) = (i * 10 + j * 100, (i * 3 + j) as u64);
            assert_eq!(words[cell..cell + 6], [2 * at, 2 * at, 0, at, at, 2 * at + 1]);
        }
    });
}

#[test]
fn words_outside_all_shares_can_be_read_while_others_write() {
    local::run(3, |rank| {
        let mut window = SharedWindow::open(rank, WindowKind::Auto, 90).unwrap();
        let fence = Fence::new(rank);
        let runs = (0..3).map(|rank| Run { words: rank * 10..rank * 10 + 9, rank }).collect();
        let partition = Partition::new(3, Level { count: 3, stride: 30 }, Level::ONCE, runs);
        let (walk, rest) = window.write(&fence, Ok(()), &partition).unwrap().with_rest();
        walk.for_each(|run| run.fill(1));
        assert_eq!(rest.words((2, 0), 9..10), [0]);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rest.words((0, 0), 8..10))).is_err());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rest.words((0, 0), 29..31))).is_err());
    });
}

#[test]
fn a_window_that_does_not_fit_is_an_error_on_every_rank() {
    for kind in [WindowKind::Heap, WindowKind::Posix] {
        let results = local::run(2, |rank| SharedWindow::open(rank, kind, 1 << 50).map(drop));
        for result in results {
            let error = result.unwrap_err();
            assert_eq!(error.exit_code(), 4, "{error}");
        }
    }
}

#[test]
fn a_window_without_words_has_no_memory() {
    local::run(2, |rank| {
        let mut window = SharedWindow::open(rank, WindowKind::Auto, 0).unwrap();
        let fence = Fence::new(rank);
        assert_eq!((window.bytes(), window.kind()), (0, "none"));
        assert!(window.read(&fence, Ok(())).unwrap().is_empty());
        let partition = Partition::new(2, Level::ONCE, Level::ONCE, Vec::new());
        assert!(window.write(&fence, Ok(()), &partition).unwrap().into_iter().next().is_none());
        window.close().unwrap();
    });
}

#[test]
fn an_error_of_one_rank_ends_the_phase_for_all() {
    let results = local::run(4, |rank| {
        let mut window = SharedWindow::open(rank, WindowKind::Auto, 10).unwrap();
        let outcome = match rank.rank() {
            2 => Err(Error::NotInteger { row: 3, column: 4 }),
            3 => Err(Error::Cancelled),
            _ => Ok(()),
        };
        let error = window.read(&Fence::new(rank), outcome).map(drop).unwrap_err();
        agree(rank, Ok(())).unwrap();
        (error.to_string(), error.exit_code())
    });
    for result in results {
        assert!(result.0.starts_with("rank 2: entry at row 3, column 4 is not an integer"), "{}", result.0);
        assert_eq!(result.1, 3);
    }
}

#[test]
#[should_panic(expected = "a rank panicked")]
fn a_fence_of_another_group_is_refused() {
    local::run(2, |rank| {
        let mut window = SharedWindow::open(rank, WindowKind::Auto, 100).unwrap();
        let alone = rank.split(rank.rank()).unwrap();
        let fence = Fence::new(&*alone);
        let runs = vec![Run { words: 0..100, rank: 0 }];
        let partition = Partition::new(1, Level::ONCE, Level::ONCE, runs);
        let _ = window.write(&fence, Ok(()), &partition);
    });
}

#[test]
fn shares_cover_a_window_once_in_whole_pages() {
    for (ranks, bytes) in [(1, 0), (3, 0), (1, 8), (4, 4096), (3, 5 * 4096 + 8), (7, 100 * 4096), (64, 1 << 46)] {
        let mut end = 0;
        for rank in 0..ranks {
            let share = page_share(rank, ranks, bytes);
            assert_eq!((share.start, share.start % PAGE_BYTES * usize::from(share.start < bytes)), (end, 0));
            assert!(share.len() <= (bytes / ranks).next_multiple_of(PAGE_BYTES) + PAGE_BYTES);
            end = share.end;
        }
        assert_eq!(end, bytes);
    }
}

/// Ranks write some words while they add up others, of which they read only words that no rank writes.
#[test]
fn words_are_exchanged_while_others_are_written() {
    for ranks in [1usize, 3] {
        local::run(ranks, |rank| {
            let mut window = SharedWindow::open(rank, WindowKind::Auto, 400).unwrap();
            let mut source = SharedWindow::open(rank, WindowKind::Auto, 10).unwrap();
            let fence = Fence::new(rank);
            let all = |first: usize| {
                let runs = (0..ranks).map(|rank| Run { words: rank * 20..rank * 20 + 20, rank }).collect();
                Partition::new(ranks, Level::ONCE, Level::ONCE, runs).at(first)
            };
            let first = all(0);
            let shares = window.write(&fence, Ok(()), &first).unwrap();
            shares.into_iter().for_each(|run| run.fill(7));
            // Two cells of the first part, in which each rank has three words of every thirty.
            let runs = (0..ranks).map(|rank| Run { words: rank * 3..rank * 3 + 3, rank }).collect();
            let own = Partition::new(ranks, Level { count: 2, stride: 10 }, Level::ONCE, runs);
            let (next, beside) = (all(100), Beside { partition: &own, end: 20 * ranks });
            let TwoParts { shares, beside: exchanged, .. } =
                window.write_beside(&mut source, &fence, Ok(()), (&next, beside)).unwrap();
            shares.for_each(|run| run.fill(9));
            let (shares, rest) = exchanged.with_rest();
            for (cell, share) in shares.enumerate() {
                assert_eq!(rest.words((cell, 0), 9..10), [7]);
                share.iter_mut().for_each(|word| *word += rank.rank() as u64);
            }
            let past =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rest.words((1, 0), 9..10 + 20 * ranks).len()));
            assert!(past.is_err(), "what lies beyond the part is written by others");
            let words = window.read(&fence, Ok(())).unwrap();
            assert!(words[100..100 + 20 * ranks].iter().all(|&word| word == 9));
            for (at, &word) in words[..20 * ranks].iter().enumerate() {
                let owner = Some(at % 10 / 3).filter(|&owner| at < 20 && owner < ranks);
                assert_eq!(word, 7 + owner.unwrap_or(0) as u64, "word {at} of {ranks} ranks");
            }
            let overlapping = all(20 * ranks - 1);
            let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                window.write_beside(&mut source, &fence, Ok(()), (&overlapping, beside)).map(drop)
            }));
            assert!(refused.is_err(), "parts that overlap");
        });
    }
}
