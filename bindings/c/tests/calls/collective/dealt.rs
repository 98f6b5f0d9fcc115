//! Matrices over ranks as C programs hold them: each rank's part of a whole, in any distribution.
#![allow(dead_code)]

use crate::common::{Array, Ctx, Kind};
use rug::Float;
use std::ptr;
use sunzi::comm::{Transport, local};
use sunzi_c::*;

/// Numbers that a seed decides.
pub struct Rng(pub u64);

impl Rng {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        (self.word() % count.max(1) as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Whether something happens that happens once in so many times.
    pub fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// A whole matrix, column by column, each entry with its own precision.
#[derive(Clone, Debug)]
pub struct Whole {
    pub rows: usize,
    pub cols: usize,
    pub entries: Vec<Float>,
}

impl Whole {
    pub fn new((rows, cols): (usize, usize), value: impl Fn(usize, usize) -> Float) -> Whole {
        let entries = (0..rows * cols).map(|at| value(at % rows, at / rows)).collect();
        Whole { rows, cols, entries }
    }

    pub fn at(&self, row: usize, col: usize) -> &Float {
        &self.entries[row + col * self.rows]
    }

    pub fn at_mut(&mut self, row: usize, col: usize) -> &mut Float {
        &mut self.entries[row + col * self.rows]
    }

    /// The array of one process.
    pub fn array(&self, kind: Kind, layout: i32) -> Array {
        Array::new(kind, layout, (self.rows, self.cols), |row, col| self.at(row, col).clone())
    }
}

/// How a matrix is dealt out.
#[derive(Clone, Debug)]
pub struct Deal {
    pub shape: [usize; 2],
    pub grid: [usize; 2],
    pub order: i32,
    /// For rows and columns: along what, in which blocks (0 for consecutive ones), from which number on.
    pub along: [i32; 2],
    pub block: [usize; 2],
    pub first: [usize; 2],
    /// Of consecutive rows or columns: how many each number has.
    pub counts: [Vec<usize>; 2],
}

impl Deal {
    /// Whole rows, so many on each rank.
    pub fn rows(counts: &[usize], cols: usize) -> Deal {
        Deal {
            shape: [counts.iter().sum(), cols],
            grid: [counts.len(), 1],
            order: SUNZI_ROW_MAJOR,
            along: [SUNZI_ALONG_GRID_ROW, SUNZI_ALONG_NONE],
            block: [0; 2],
            first: [0; 2],
            counts: [counts.to_vec(), Vec::new()],
        }
    }

    /// All on rank 0.
    pub fn on_first((rows, cols): (usize, usize), ranks: usize) -> Deal {
        let counts = (0..ranks).map(|rank| if rank == 0 { rows } else { 0 }).collect::<Vec<_>>();
        Deal::rows(&counts, cols)
    }

    /// Any distribution over at most so many ranks.
    pub fn any(rng: &mut Rng, (rows, cols): (usize, usize), ranks: usize) -> Deal {
        let grid_rows = 1 + rng.below(ranks);
        let grid = [grid_rows, 1 + rng.below(ranks / grid_rows)];
        let pairs = [[1, 2], [2, 1], [3, 0], [0, 4], [4, 0], [1, 0], [0, 2], [0, 0]];
        let mut deal = Deal {
            shape: [rows, cols],
            grid,
            order: rng.pick(&[SUNZI_ROW_MAJOR, SUNZI_COL_MAJOR]),
            along: rng.pick(&pairs),
            block: [0; 2],
            first: [0; 2],
            counts: [Vec::new(), Vec::new()],
        };
        for axis in 0..2 {
            let numbers = deal.numbers_along(axis);
            if deal.along[axis] == SUNZI_ALONG_NONE {
                continue;
            }
            if rng.once_in(3) {
                let mut ends = (1..numbers).map(|_| rng.below(deal.shape[axis] + 1)).collect::<Vec<_>>();
                ends.extend([0, deal.shape[axis]]);
                ends.sort_unstable();
                deal.counts[axis] = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
            } else {
                deal.block[axis] = rng.pick(&[1, 1, 2, 5, 16]);
                deal.first[axis] = rng.below(numbers);
            }
        }
        deal
    }

    fn numbers_along(&self, axis: usize) -> usize {
        match self.along[axis] {
            SUNZI_ALONG_NONE => 1,
            SUNZI_ALONG_GRID_ROW => self.grid[0],
            SUNZI_ALONG_GRID_COL => self.grid[1],
            _ => self.grid[0] * self.grid[1],
        }
    }

    /// The rows and the columns of a rank.
    pub fn places(&self, rank: usize) -> [Vec<usize>; 2] {
        let [grid_rows, grid_cols] = self.grid;
        if rank >= grid_rows * grid_cols {
            return [Vec::new(), Vec::new()];
        }
        let (row, col) = match self.order {
            SUNZI_ROW_MAJOR => (rank / grid_cols, rank % grid_cols),
            _ => (rank % grid_rows, rank / grid_rows),
        };
        [0, 1].map(|axis| {
            let number = match self.along[axis] {
                SUNZI_ALONG_NONE => 0,
                SUNZI_ALONG_GRID_ROW => row,
                SUNZI_ALONG_GRID_COL => col,
                SUNZI_ALONG_COL_MAJOR => col * grid_rows + row,
                _ => row * grid_cols + col,
            };
            let (count, numbers) = (self.shape[axis], self.numbers_along(axis));
            match (self.along[axis], self.block[axis]) {
                (SUNZI_ALONG_NONE, _) => (0..count).collect(),
                (_, 0) => {
                    let start = self.counts[axis][..number].iter().sum::<usize>();
                    (start..start + self.counts[axis][number]).collect()
                }
                (_, block) => (0..count).filter(|at| (at / block + self.first[axis]) % numbers == number).collect(),
            }
        })
    }

    /// The part of a rank.
    pub fn part(&self, whole: &Whole, rank: usize, (kind, layout): (Kind, i32)) -> Array {
        let [rows, cols] = self.places(rank);
        Array::new(kind, layout, (rows.len(), cols.len()), |row, col| whole.at(rows[row], cols[col]).clone())
    }

    pub fn describe(&self, local: sunzi_matrix) -> sunzi_dist_matrix {
        let [rows, cols] = [0, 1].map(|axis| self.shape[axis] as i64);
        sunzi_dist_matrix {
            local,
            rows,
            cols,
            grid_rows: self.grid[0] as i64,
            grid_cols: self.grid[1] as i64,
            grid_order: self.order,
            row_along: self.along[0],
            col_along: self.along[1],
            row_block: self.block[0] as i64,
            col_block: self.block[1] as i64,
            row_first: self.first[0] as i64,
            col_first: self.first[1] as i64,
        }
    }
}

/// The options of contexts that differ between tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice {
    pub accuracy: i32,
    pub memory_bytes: u64,
}

impl Choice {
    pub fn options(self) -> sunzi_options {
        let Choice { accuracy, memory_bytes } = self;
        sunzi_options { threads: 1, accuracy, memory_bytes, ..sunzi_options_default() }
    }
}

/// What `work` gives on each of so many ranks, which are threads, with a context over them.
pub fn on_ranks<R: Send>(ranks: usize, choice: Choice, work: impl Fn(&Ctx, usize) -> R + Sync) -> Vec<R> {
    local::run(ranks, |rank| {
        let mut ctx = ptr::null_mut();
        // SAFETY: all are live.
        let status = unsafe { context_over(rank.split(0).unwrap(), &choice.options(), &mut ctx) };
        assert_eq!(status, sunzi_status::SUNZI_OK);
        work(&Ctx(ctx), rank.rank())
    })
}
