//! The factorisation of a matrix of doubles by ScaLAPACK's `pdpotrf`, on ranks under MPI.
//!
//! The matrix lies block-cyclically on a grid of ranks, as ScaLAPACK needs it: its input is made in place by every
//! rank, outside the clock, and so is not moved. Each rank computes on one thread of OpenBLAS.

use std::ffi::{c_char, c_int};
use std::time::Instant;
use sunzi::comm::mpi::{MPI_Comm, MpiRank};
use sunzi::comm::{Reduction, Transport, agreed};
use sunzi::{Error, Result};

use super::sys;

/// The distribution of a square matrix over the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockCyclicLayout {
    /// Rows of the matrix.
    pub order: usize,
    /// Rows and columns of a block.
    pub block_rows: usize,
    /// Rows of the grid of ranks.
    pub grid_rows: usize,
    /// Columns of the grid of ranks: rank `r` is in row `r % grid_rows`, column `r / grid_rows`.
    pub grid_cols: usize,
}

/// Blocks of one dimension that go round the ranks of a grid row or column.
#[derive(Clone, Copy)]
struct Cycle {
    block: usize,
    ranks: usize,
    own: usize,
}

impl Cycle {
    /// Entries of this rank among `total`.
    fn count(self, total: usize) -> usize {
        let round = self.block * self.ranks;
        let (rounds, rest) = (total / round, total % round);
        rounds * self.block + rest.saturating_sub(self.own * self.block).min(self.block)
    }

    /// The entry of the matrix that is this rank's entry `local`.
    fn global(self, local: usize) -> usize {
        (local / self.block * self.ranks + self.own) * self.block + local % self.block
    }

    /// This rank's number of an entry of the matrix, if it is its own.
    fn local(self, global: usize) -> Option<usize> {
        let block = global / self.block;
        let is_own = block % self.ranks == self.own;
        is_own.then(|| block / self.ranks * self.block + global % self.block)
    }
}

/// One rank's share of a matrix on a grid of all ranks of a group.
pub struct Pdpotrf<'a> {
    rank: &'a MpiRank,
    layout: BlockCyclicLayout,
    rows: Cycle,
    cols: Cycle,
    /// The handle of the grid.
    context: c_int,
    /// The handle of the communicator under it.
    system: c_int,
    /// ScaLAPACK's descriptor of the matrix.
    descriptor: [c_int; 9],
    /// Column-major; there are as many rows as this rank has.
    words: Vec<f64>,
}

/// The least and the median time of several runs, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seconds {
    /// The least.
    pub min: f64,
    /// The median; for an even number of runs the mean of the two middle times.
    pub median: f64,
}

impl<'a> Pdpotrf<'a> {
    /// A share of zeros on a new grid of the ranks of `rank`. Collective.
    ///
    /// # Errors
    /// On all ranks alike: [`Error::InvalidArgument`] for a grid of another number of ranks, empty blocks, or a matrix
    /// beyond ScaLAPACK's 31-bit integers; [`Error::OutOfMemory`]; [`Error::Transport`].
    pub fn new(rank: &'a MpiRank, layout: BlockCyclicLayout) -> Result<Pdpotrf<'a>> {
        let BlockCyclicLayout { order, block_rows: block, grid_rows, grid_cols } = layout;
        if grid_rows.checked_mul(grid_cols) != Some(rank.size()) {
            let text = format!("a grid of {grid_rows} x {grid_cols} does not have {} ranks", rank.size());
            return Err(Error::InvalidArgument(text));
        }
        let order_int = int(order)?;
        if int(block)? == 0 {
            return Err(Error::InvalidArgument("ScaLAPACK needs blocks of at least 1 row".into()));
        }
        let rows = Cycle { block, ranks: grid_rows, own: rank.rank() % grid_rows };
        let cols = Cycle { block, ranks: grid_cols, own: rank.rank() / grid_rows };
        let stride = rows.count(order).max(1);
        let words = agreed(rank, zeros(stride, cols.count(order).max(1)))?;
        let (context, system) = rank.lend(|comm| open_grid(comm, grid_rows as c_int, grid_cols as c_int))?;
        // Dense, both blocks alike, the first block on the first rank: as `descinit` writes it.
        let descriptor = [1, context, order_int, order_int, block as c_int, block as c_int, 0, 0, stride as c_int];
        Ok(Pdpotrf { rank, layout, rows, cols, context, system, descriptor, words })
    }

    /// The distribution of the matrix over the ranks.
    pub fn layout(&self) -> BlockCyclicLayout {
        self.layout
    }

    /// Sets all entries of this rank: entry `(i, j)` of the matrix to `entry(i, j)`.
    pub fn fill(&mut self, entry: impl Fn(usize, usize) -> f64) {
        let (rows, cols) = (self.rows, self.cols);
        let count = rows.count(self.layout.order);
        for (j, column) in self.words.chunks_exact_mut(count.max(1)).take(cols.count(self.layout.order)).enumerate() {
            column
                .iter_mut()
                .take(count)
                .enumerate()
                .for_each(|(i, word)| *word = entry(rows.global(i), cols.global(j)));
        }
    }

    /// Entry `(i, j)` of the matrix, or of the factor after a run, where this rank has it.
    pub fn entry(&self, i: usize, j: usize) -> Option<f64> {
        let (i, j) = (self.rows.local(i)?, self.cols.local(j)?);
        let count = self.rows.count(self.layout.order);
        (i < count && j < self.cols.count(self.layout.order)).then(|| self.words[j * count + i])
    }

    /// Computes `A = L L^T` once, in place of the lower triangle; returns the seconds of the slowest rank. Collective.
    ///
    /// # Errors
    /// On all ranks alike: [`Error::Verification`] where a leading minor is not positive; [`Error::Transport`].
    pub fn factor(&mut self) -> Result<f64> {
        let (order, one, mut info) = (self.descriptor[2], 1, 0);
        let (words, descriptor, context) = (self.words.as_mut_ptr(), &self.descriptor, self.context);
        let seconds = self.rank.lend(|_| {
            // SAFETY: no other code changes the number of threads of OpenBLAS while a baseline runs.
            unsafe { sys::openblas_set_num_threads(1) };
            let lower = c"L".as_ptr();
            let all = c"A".as_ptr();
            // SAFETY: the grid is open until `self` is dropped, and all its ranks make these calls. `words` are the
            // entries that this rank has by the descriptor, with its stride, and no other code uses them. Strings end
            // in a zero; Fortran reads their first character.
            unsafe {
                sys::Cblacs_barrier(context, all);
                let start = Instant::now();
                sys::pdpotrf_(lower, &order, words, &one, &one, descriptor.as_ptr(), &mut info, 1);
                sys::Cblacs_barrier(context, all);
                start.elapsed()
            }
        })?;
        let mut most = [seconds.as_nanos() as u64];
        self.rank.all_reduce(Reduction::Max, &mut most)?;
        match info {
            0 => Ok(most[0] as f64 * 1e-9),
            _ => Err(Error::verification(format!("pdpotrf ends with info = {info}"))),
        }
    }

    /// The seconds of `runs` factorisations, each of a fresh matrix with entries `entry(i, j)`. Collective.
    ///
    /// # Errors
    /// The errors of [`Pdpotrf::factor`]; [`Error::InvalidArgument`] for no runs.
    pub fn measure(&mut self, runs: usize, entry: impl Fn(usize, usize) -> f64) -> Result<Seconds> {
        let mut all = Vec::with_capacity(runs);
        for _ in 0..runs {
            self.fill(&entry);
            all.push(self.factor()?);
        }
        all.sort_by(f64::total_cmp);
        match &all[..] {
            [] => Err(Error::InvalidArgument("no runs to measure".into())),
            [min, ..] => Ok(Seconds { min: *min, median: (all[(runs - 1) / 2] + all[runs / 2]) / 2.0 }),
        }
    }
}

impl Drop for Pdpotrf<'_> {
    fn drop(&mut self) {
        let (context, system) = (self.context, self.system);
        // Once MPI has ended there is nothing left to close.
        let _ = self.rank.lend(|_| {
            // SAFETY: both handles are this value's own, and not used again.
            unsafe {
                sys::Cblacs_gridexit(context);
                sys::Cfree_blacs_system_handle(system);
            }
        });
    }
}

/// A grid of all ranks of `comm`, column by column: its handle, and that of the communicator under it.
fn open_grid(comm: MPI_Comm, grid_rows: c_int, grid_cols: c_int) -> (c_int, c_int) {
    let by_columns: *const c_char = c"C".as_ptr();
    // SAFETY: the communicator is live, all its ranks make these calls, and the grid has as many places as it has
    // ranks.
    unsafe {
        let system = sys::Csys2blacs_handle(comm);
        let mut context = system;
        sys::Cblacs_gridinit(&mut context, by_columns, grid_rows, grid_cols);
        (context, system)
    }
}

/// # Errors
/// [`Error::OutOfMemory`].
fn zeros(rows: usize, cols: usize) -> Result<Vec<f64>> {
    let len = rows.saturating_mul(cols);
    let refused = || Error::OutOfMemory { bytes: 8 * len as u64 };
    Vec::<f64>::new().try_reserve_exact(len).map_err(|_| refused())?;
    Ok(vec![0.0; len])
}

fn int(size: usize) -> Result<c_int> {
    c_int::try_from(size)
        .map_err(|_| Error::InvalidArgument(format!("{size} is not below 2^31, as ScaLAPACK requires")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_round_the_ranks() {
        for (total, block, ranks) in [(0, 3, 2), (1, 3, 2), (17, 3, 2), (18, 3, 2), (20, 4, 3), (100, 7, 5), (9, 64, 2)]
        {
            let cycles = (0..ranks).map(|own| Cycle { block, ranks, own }).collect::<Vec<_>>();
            assert_eq!(cycles.iter().map(|cycle| cycle.count(total)).sum::<usize>(), total);
            for global in 0..total {
                let owners = cycles.iter().filter_map(|cycle| Some((cycle, cycle.local(global)?))).collect::<Vec<_>>();
                let [(owner, local)] = owners[..] else { panic!("{global} has {} owners", owners.len()) };
                assert_eq!((owner.global(local), owner.own), (global, global / block % ranks));
                assert!(local < owner.count(total));
            }
        }
    }
}
