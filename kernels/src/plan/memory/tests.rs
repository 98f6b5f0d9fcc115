//! Tests of the memory plan on plain engines.

use super::*;

fn window_bytes(words: usize) -> u64 {
    words as u64 * 8
}

/// Contracted rows, panels of both operands (one of a triangle), and primes.
struct Sizes {
    rows: usize,
    left: usize,
    right: Option<usize>,
    primes: usize,
}

/// Runs `check` with a plan input of a plain engine.
fn with_input(rows: usize, left: usize, right: Option<usize>, primes: usize, check: impl Fn(&PlanInput<'_>)) {
    with_disk(None, &Sizes { rows, left, right, primes }, check);
}

/// The same of operands on a disk.
fn with_disk(
    disk: Option<DiskInput<'_>>,
    &Sizes { rows, left, right, primes }: &Sizes,
    check: impl Fn(&PlanInput<'_>),
) {
    check(&PlanInput {
        contracted: rows,
        left_panels: left,
        right_panels: right.unwrap_or(left),
        triangle: right.is_none(),
        primes,
        workers: 3,
        least_workers: 3,
        result_bytes: 1000,
        table_bytes: 100,
        list_bytes: 10,
        integer_bytes: 500,
        block_words: 64,
        operand_limbs: 17,
        panel_words: &|rows| 8 * rows.next_multiple_of(4),
        scratch_words: &|rows, grid| rows.min(300) * 16 + if grid.triangle { 1000 } else { 0 },
        part_scratch_words: &|rows, _| rows.min(300) * 4,
        call_bytes: &|rows, _| rows as u64,
        window_bytes: &window_bytes,
        scratch_bytes: &window_bytes,
        disk,
        exchanges: false,
    });
}

#[test]
fn above_a_disk_bands_are_whole_tiles_and_pieces_count() {
    for (rows, left, right, primes) in [(4000, 500, None, 30), (90_000, 70, Some(300), 30), (5, 1, None, 3)] {
        let piece_bytes = |panels: usize, rows: usize| 2 * 832 * (panels * rows) as u64;
        let disk = |most_band_panels: usize| {
            let (entry_bytes, tile_panels, fixed_bytes) = (104, 32, 12_345);
            Some(DiskInput { piece_bytes: &piece_bytes, entry_bytes, tile_panels, most_band_panels, fixed_bytes })
        };
        with_disk(disk(64), &Sizes { rows, left, right, primes }, |input| {
            let minimum = input.choose(0).unwrap_err();
            let widest = [1, 4, 1000].map(|times| input.choose(minimum * times).unwrap().band_panels);
            assert!(widest.iter().all(|&panels| panels <= 64) && input.whole().band_panels <= 64, "{widest:?}");
        });
        with_disk(disk(usize::MAX), &Sizes { rows, left, right, primes }, |input| {
            let minimum = input.choose(0).unwrap_err();
            assert_eq!(input.choose(minimum - 1), Err(minimum));
            let mut bands = usize::MAX;
            for times in [1, 2, 4, 16, 64, 1000] {
                let cut = input.choose(minimum * times).unwrap();
                let bytes = input.bytes(&cut);
                assert!(bytes.total() <= minimum * times && bytes.lists > 12_345, "{cut:?} {bytes:?}");
                let panels = cut.band_panels.min(left.max(right.unwrap_or(0)));
                assert!(cut.band_panels.is_multiple_of(32) && cut.chunk_rows <= MOST_READ_ROWS, "{cut:?}");
                assert_eq!(bytes.pieces, piece_bytes(panels, cut.chunk_rows));
                // More memory never reads more.
                assert!(input.bands(&cut).0 * input.batches(&cut) <= bands, "{cut:?}");
                bands = input.bands(&cut).0 * input.batches(&cut);
            }
            assert_eq!((bands, input.batches(&input.choose(minimum * 1000).unwrap())), (1, 1));
        });
    }
}

#[test]
fn every_limit_gives_a_cut_within_it_or_the_least_limit_that_works() {
    for (rows, left, right, primes) in
        [(4000, 125, None, 40), (1, 1, None, 1), (10_000, 7, Some(90), 21), (300, 60, Some(1), 5), (70, 3, None, 80)]
    {
        with_input(rows, left, right, primes, |input| {
            let whole = input.bytes(&input.whole()).total();
            assert_eq!(input.choose(whole), Ok(input.whole()));
            let minimum = input.choose(0).unwrap_err();
            assert!(input.choose(minimum).is_ok() && input.choose(minimum - 1) == Err(minimum));
            for part in 0..=50 {
                let limit = minimum + (whole - minimum) * part / 50;
                let cut = input.choose(limit).unwrap();
                assert!(input.bytes(&cut).total() <= limit, "{rows} {left} {right:?} {primes} at {limit}");
            }
        });
    }
}

#[test]
fn the_cut_is_the_cheapest_of_all_that_fit() {
    for (rows, left, right, primes) in [(4000, 125, None, 40), (3000, 20, Some(90), 21), (100_000, 30, None, 12)] {
        with_input(rows, left, right, primes, |input| {
            let whole = input.bytes(&input.whole()).total();
            let minimum = input.choose(0).unwrap_err();
            for part in [1, 2, 3, 5, 10, 20, 40] {
                let limit = (whole / part).max(minimum);
                let chosen = input.choose(limit).unwrap();
                for bands in [1usize, 2, 3, 4, 7, 20] {
                    for batches in [1usize, 2, 3, 7, 20, 40] {
                        for chunks in [1usize, 2, 4, 9, 16] {
                            let cut = Cut {
                                batch_primes: primes.div_ceil(batches),
                                band_panels: left.max(right.unwrap_or(0)).div_ceil(bands),
                                chunk_rows: rows.div_ceil(chunks).next_multiple_of(64).min(rows),
                            };
                            let fits = input.bytes(&cut).total() <= limit && cut.chunk_rows >= 256;
                            // Batches are rounded up to the workers, which may cost a chunk more.
                            assert!(!fits || input.cost(&chosen) <= 1.05 * input.cost(&cut), "{chosen:?} {cut:?}");
                        }
                    }
                }
            }
        });
    }
}

#[test]
fn bands_come_only_where_the_product_window_is_too_large() {
    with_input(4000, 125, None, 40, |input| {
        let one_prime = Cut { batch_primes: 1, ..input.whole() };
        assert_eq!(input.bands(&input.choose(input.bytes(&one_prime).total()).unwrap()), (1, 1));
        let products = input.bytes(&one_prime).product_window;
        let banded = input.choose(products).unwrap();
        assert!(input.bands(&banded).0 == 2, "{banded:?}");
    });
}

/// A band has no more panels than there are, also where it may have more.
#[test]
fn grids_are_those_of_the_panels_that_there_are() {
    let shapes = |left: usize, right: Option<usize>, band_panels: usize| {
        let seen = std::cell::RefCell::new(Vec::new());
        with_input(4000, left, right, 40, |input| {
            let cut = Cut { band_panels, ..input.whole() };
            input.for_each_grid(&cut, |grid| seen.borrow_mut().push((grid.rows, grid.cols, grid.triangle)));
        });
        let mut seen = seen.into_inner();
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    assert_eq!(shapes(5, None, 8), [(5, 5, true)]);
    assert_eq!(shapes(8, None, 8), [(8, 8, true)]);
    assert_eq!(shapes(11, None, 8), [(3, 3, true), (3, 8, false), (8, 8, true)]);
    assert_eq!(shapes(5, Some(19), 8), [(5, 3, false), (5, 8, false)]);
}

#[test]
fn planning_a_large_product_is_quick() {
    let start = std::time::Instant::now();
    with_input(100_000, 1250, None, 400, |input| {
        let minimum = input.choose(0).unwrap_err();
        for limit in [minimum, minimum * 2, minimum * 100] {
            input.choose(limit).unwrap();
        }
    });
    assert!(start.elapsed().as_millis() < 400, "{:?}", start.elapsed());
}
