//! The ranks of a run: one process by itself, or several, each with its part of a program.
//!
//! Every method but [`Ranks::rank`] and its like is collective. Methods that take the results of a rank take a
//! `Result`: where one rank failed, all return the same error, so no rank waits for another one that is gone. Numbers
//! are combined in the order of a list that all ranks have: no bit depends on which rank made which.
//! Independent of: programs, what the matrices are.

use rug::Float;
use std::sync::{Mutex, PoisonError};
use sunzi::blas::axpy;
use sunzi::comm::{Incoming, Outgoing, Reduction, Transport, agreed};
use sunzi::distributed::{Axis, Distribution, GridOrder, RankGrid, Team, even_share};
use sunzi::{Context, Error, Matrix, Result};

/// The rank that writes files.
pub const ROOT: usize = 0;

/// Words of a message to all that need not be shorter.
const FEW_WORDS: usize = 1 << 14;

/// The ranks of a run, seen from one of them.
pub struct Ranks {
    several: Option<Several>,
}

struct Several {
    /// A group of its own, so that messages here and in the library's calls do not meet.
    world: Box<dyn Transport>,
    team: Mutex<Team>,
}

/// A matrix of a list: the rank that has it, and its shape.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The rank.
    pub owner: usize,
    /// Rows and columns.
    pub shape: (usize, usize),
}

impl Piece {
    fn words(&self, bits: u32) -> usize {
        self.shape.0 * self.shape.1 * (1 + bits.div_ceil(64) as usize)
    }
}

impl Ranks {
    /// One process by itself.
    pub fn alone() -> Ranks {
        Ranks { several: None }
    }

    /// All ranks of a team. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn of(team: Team) -> Result<Ranks> {
        if team.size() == 1 {
            return Ok(Ranks::alone());
        }
        let world = team.world().split(0)?;
        Ok(Ranks { several: Some(Several { world, team: Mutex::new(team) }) })
    }

    /// Gives back the resources that the library's calls keep. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn close(self) -> Result<()> {
        let Some(Several { team, .. }) = self.several else { return Ok(()) };
        team.into_inner().unwrap_or_else(PoisonError::into_inner).close()
    }

    /// The number of this rank, counted from 0.
    pub fn rank(&self) -> usize {
        self.several.as_ref().map_or(ROOT, |several| several.world.rank())
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.several.as_ref().map_or(1, |several| several.world.size())
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.several.is_some()
    }

    /// A call of the library on all ranks, of which there are several.
    ///
    /// # Errors
    /// The errors of the call.
    pub fn together<R>(&self, call: impl FnOnce(&mut Team) -> Result<R>) -> Result<R> {
        let alone = || Error::InvalidArgument("a call on several ranks in one process".into());
        let several = self.several.as_ref().ok_or_else(alone)?;
        call(&mut several.team.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The results of all ranks, or the error of the first rank that failed.
    ///
    /// # Errors
    /// As [`sunzi::comm::agreed`].
    pub fn agreed<T>(&self, made: Result<T>) -> Result<T> {
        match &self.several {
            None => made,
            Some(Several { world, .. }) => agreed(&**world, made),
        }
    }

    /// The least of the ranks' numbers.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn least(&self, own: u64) -> Result<u64> {
        let mut words = [own];
        if let Some(Several { world, .. }) = &self.several {
            world.all_reduce(Reduction::Min, &mut words)?;
        }
        Ok(words[0])
    }

    /// The sum of the numbers that the ranks of this node pass, and the number of these ranks.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn node_sum(&self, own: u64) -> Result<(u64, u64)> {
        let mut words = [own, 1];
        if self.are_several() {
            self.together(|team| team.node().all_reduce(Reduction::Sum, &mut words))?;
        }
        Ok((words[0], words[1]))
    }

    /// Whether it holds on any rank.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn any(&self, own: bool) -> Result<bool> {
        Ok(self.least(u64::from(!own))? == 0)
    }

    /// Whether `own` is true on the root.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn root_says(&self, own: bool) -> Result<bool> {
        self.any(own && self.rank() == ROOT)
    }

    /// Refuses ranks that have made different hashes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with `message`, on all ranks; [`Error::Transport`].
    pub fn compare(&self, hash: u64, message: &str) -> Result<()> {
        match self.least(hash)? == !self.least(!hash)? {
            true => Ok(()),
            false => Err(Error::InvalidArgument(message.into())),
        }
    }

    /// All matrices of `list`, of `bits` bits, on every rank; `made` are those of this rank, in the order of the list.
    ///
    /// # Errors
    /// The errors of any rank; [`Error::OutOfMemory`], [`Error::Transport`].
    pub fn everywhere(&self, bits: u32, list: &[Piece], made: Result<Vec<Matrix>>) -> Result<Vec<Matrix>> {
        let own = self.agreed(made)?;
        let Some(Several { world, .. }) = &self.several else { return Ok(own) };
        let sizes = self.sizes(bits, list);
        let most = sizes.iter().copied().max().unwrap_or(0);
        let mut words = packed(&own);
        drop(own);
        let parts = if most == 0 {
            vec![Vec::new(); sizes.len()]
        } else if most * sizes.len() <= FEW_WORDS.max(2 * sizes.iter().sum::<usize>()) {
            words.resize(most, 0);
            let mut all = vec![0; most * sizes.len()];
            world.all_gather(&words, &mut all)?;
            all.chunks(most).map(<[u64]>::to_vec).collect::<Vec<_>>()
        } else {
            let part = |rank: usize| {
                let mut part = if rank == world.rank() { std::mem::take(&mut words) } else { vec![0; sizes[rank]] };
                if !part.is_empty() {
                    world.broadcast(rank, &mut part)?;
                }
                Ok(part)
            };
            (0..sizes.len()).map(part).collect::<Result<Vec<_>>>()?
        };
        self.agreed(unpacked(bits, list, parts))
    }

    /// All matrices of `list` on the root; see [`Ranks::everywhere`].
    ///
    /// # Errors
    /// As [`Ranks::everywhere`].
    pub fn on_root(&self, bits: u32, list: &[Piece], made: Result<Vec<Matrix>>) -> Result<Option<Vec<Matrix>>> {
        let own = self.agreed(made)?;
        let Some(Several { world, .. }) = &self.several else { return Ok(Some(own)) };
        let (sizes, words) = (self.sizes(bits, list), packed(&own));
        drop(own);
        let mut parts = Vec::new();
        if world.rank() == ROOT {
            for (rank, &size) in sizes.iter().enumerate() {
                let mut part = vec![0; if rank == ROOT { 0 } else { size }];
                if !part.is_empty() {
                    world.exchange(&[], &mut [Incoming { from: rank, words: &mut part }])?;
                }
                parts.push(part);
            }
            parts[ROOT] = words;
        } else if !words.is_empty() {
            world.exchange(&[Outgoing { to: ROOT, words: &words }], &mut [])?;
        }
        let whole = (world.rank() == ROOT).then(|| unpacked(bits, list, parts)).transpose();
        self.agreed(whole)
    }

    /// Words of each rank's matrices.
    fn sizes(&self, bits: u32, list: &[Piece]) -> Vec<usize> {
        let mut sizes = vec![0; self.size()];
        list.iter().for_each(|piece| sizes[piece.owner] += piece.words(bits));
        sizes
    }

    /// The numbers of a list on every rank, in its order; `made` are those of this rank.
    ///
    /// # Errors
    /// As [`Ranks::everywhere`].
    pub fn numbers<const W: usize>(
        &self,
        bits: u32,
        owners: &[usize],
        made: Result<Vec<[Float; W]>>,
    ) -> Result<Vec<[Float; W]>> {
        if !self.are_several() {
            return made;
        }
        let count = |rank: usize| owners.iter().filter(|&&owner| owner == rank).count();
        let list = (0..self.size()).map(|owner| Piece { owner, shape: (count(owner), W) }).collect::<Vec<_>>();
        let own = made.and_then(|own| {
            Ok(vec![Matrix::from_fn(own.len(), W, bits, |row, col| Float::with_val(bits, &own[row][col]))?])
        });
        let parts = self.everywhere(bits, &list, own)?;
        let mut rows = vec![0; self.size()];
        let row = |&owner: &usize| {
            let row = rows[owner];
            rows[owner] += 1;
            std::array::from_fn(|col| parts[owner].float(row, col))
        };
        Ok(owners.iter().map(row).collect())
    }

    /// For each position, the largest of the numbers that the ranks pass.
    ///
    /// # Errors
    /// As [`Ranks::everywhere`].
    pub fn largest<const W: usize>(&self, bits: u32, made: Result<[Float; W]>) -> Result<[Float; W]> {
        let owners = (0..self.size()).collect::<Vec<_>>();
        let all = self.numbers(bits, &owners, made.map(|own| vec![own]))?;
        Ok(std::array::from_fn(|at| {
            all[1..]
                .iter()
                .fold(all[0][at].clone(), |most, other| if other[at] > most { other[at].clone() } else { most })
        }))
    }

    /// The sum of `start`, which all ranks have, and of the columns of a list in their order, on every rank.
    ///
    /// Each rank adds up its share of the rows.
    ///
    /// # Errors
    /// As [`Ranks::everywhere`]; the errors of [`axpy`].
    pub fn sum(&self, ctx: &Context, start: &Matrix, owners: &[usize], made: Result<Vec<Matrix>>) -> Result<Matrix> {
        let own = self.agreed(made)?;
        let (bits, rows) = (start.precision_bits(), start.rows());
        let added = |start: Matrix, parts: &[Matrix]| {
            let one = Float::with_val(2, 1);
            parts.iter().try_fold(start, |sum, part| axpy(ctx, &one, part, &sum, bits))
        };
        let Some(Several { world, .. }) = &self.several else { return added(start.clone(), &own) };
        let share = |rank: usize| even_share(rows, world.size(), rank);
        let cut = |column: &Matrix, rank: usize| column.view().block(share(rank), 0..1)?.to_matrix();
        let messages = (0..world.size())
            .map(|to| Ok(packed(&own.iter().map(|column| cut(column, to)).collect::<Result<Vec<_>>>()?)));
        let messages = self.agreed(messages.collect::<Result<Vec<_>>>())?;
        let shape = (share(world.rank()).len(), 1);
        let list = owners.iter().map(|&owner| Piece { owner, shape }).collect::<Vec<_>>();
        let mut parts = self.sizes(bits, &list).into_iter().map(|size| vec![0; size]).collect::<Vec<_>>();
        parts[world.rank()].clone_from(&messages[world.rank()]);
        let is_other = |rank: &usize| *rank != world.rank();
        let sends = messages.iter().enumerate().filter(|(to, words)| is_other(to) && !words.is_empty());
        let sends = sends.map(|(to, words)| Outgoing { to, words }).collect::<Vec<_>>();
        let receives = parts.iter_mut().enumerate().filter(|(from, words)| is_other(from) && !words.is_empty());
        let mut receives = receives.map(|(from, words)| Incoming { from, words }).collect::<Vec<_>>();
        world.exchange(&sends, &mut receives)?;
        let own = unpacked(bits, &list, parts).and_then(|parts| added(cut(start, world.rank())?, &parts));
        let list = (0..world.size()).map(|owner| Piece { owner, shape: (share(owner).len(), 1) }).collect::<Vec<_>>();
        let shares = self.everywhere(bits, &list, own.map(|own| vec![own]))?;
        let mut whole = self.agreed(Matrix::zeros(rows, 1, bits))?;
        for (rank, part) in shares.iter().enumerate() {
            whole.view_mut().block(share(rank), 0..1)?.copy_from(part);
        }
        Ok(whole)
    }

    /// A matrix of this shape that every rank has.
    pub fn on_all(&self, rows: usize, cols: usize) -> Distribution {
        let grid = RankGrid { rows: self.size(), cols: 1 };
        let (row_axis, col_axis) = (Axis::Whole, Axis::Whole);
        Distribution { rows, cols, grid, order: GridOrder::RowMajor, row_axis, col_axis }
    }
}

/// The words of matrices one after the other.
fn packed(matrices: &[Matrix]) -> Vec<u64> {
    let parts = matrices.iter().map(Matrix::parts);
    let mut words = Vec::with_capacity(parts.clone().map(|(heads, limbs)| heads.len() + limbs.len()).sum());
    parts.for_each(|(heads, limbs)| {
        words.extend_from_slice(heads);
        words.extend_from_slice(limbs);
    });
    words
}

/// The matrices of `list` from the words of each rank.
fn unpacked(bits: u32, list: &[Piece], parts: Vec<Vec<u64>>) -> Result<Vec<Matrix>> {
    let mut rests = parts.iter().map(Vec::as_slice).collect::<Vec<_>>();
    let matrices = list.iter().map(|piece| {
        let mut matrix = Matrix::zeros(piece.shape.0, piece.shape.1, bits)?;
        let (heads, limbs) = matrix.parts_mut();
        let (own, rest) = rests[piece.owner].split_at(piece.words(bits));
        rests[piece.owner] = rest;
        heads.copy_from_slice(&own[..heads.len()]);
        limbs.copy_from_slice(&own[heads.len()..]);
        Ok(matrix)
    });
    matrices.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::comm::local;
    use sunzi::distributed::TeamOptions;

    /// Runs `work` on `size` ranks; a single rank is one process by itself.
    fn on_ranks<R: Send>(size: usize, work: impl Fn(&Ranks) -> R + Sync) -> Vec<R> {
        local::run(size, |rank| {
            let ranks = Ranks::of(Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap()).unwrap();
            assert_eq!((ranks.rank(), ranks.size(), ranks.are_several()), (rank.rank(), size, size > 1));
            let found = work(&ranks);
            ranks.close().unwrap();
            found
        })
    }

    fn matrix(at: usize, (rows, cols): (usize, usize)) -> Matrix {
        let entry = |row: usize, col: usize| Float::with_val(130, 1 + at + row * 3 + col * 7).sqrt();
        Matrix::from_fn(rows, cols, 130, entry).unwrap()
    }

    #[test]
    fn lists_come_together_in_their_order() -> Result<()> {
        // Few words, many words on one rank, and many on all.
        for shapes in [[(2, 3), (0, 4), (1, 1), (5, 1)], [(90, 90), (1, 1), (2, 2), (0, 0)], [(70, 70); 4]] {
            let expected = shapes.iter().enumerate().map(|(at, &shape)| matrix(at, shape)).collect::<Vec<_>>();
            for size in [1, 2, 3, 5] {
                let owner = |at: usize| (2 * at + 1) % size;
                let list = shapes.iter().enumerate().map(|(at, &shape)| Piece { owner: owner(at), shape });
                let list = list.collect::<Vec<_>>();
                let found = on_ranks(size, |ranks| {
                    let own =
                        || (0..4).filter(|&at| owner(at) == ranks.rank()).map(|at| expected[at].clone()).collect();
                    let all = ranks.everywhere(130, &list, Ok(own())).unwrap();
                    (all, ranks.on_root(130, &list, Ok(own())).unwrap())
                });
                for (rank, (all, on_root)) in found.into_iter().enumerate() {
                    assert!(all == expected, "{shapes:?} on rank {rank} of {size}");
                    assert!(on_root == (rank == ROOT).then(|| expected.clone()), "{shapes:?} on rank {rank} of {size}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn sums_and_extremes_know_no_ranks() -> Result<()> {
        let ctx = Context::builder().threads(1).build()?;
        for rows in [0, 1, 3, 40] {
            let columns = (0..6).map(|at| matrix(at * at, (rows, 1))).collect::<Vec<_>>();
            let start = matrix(50, (rows, 1));
            let expected = columns
                .iter()
                .try_fold(start.clone(), |sum, part| axpy(&ctx, &Float::with_val(2, 1), part, &sum, 130))?;
            for size in [1, 2, 3, 4] {
                let owners = [0, 3, 1, 1, 2, 0].map(|rank| rank % size);
                let found = on_ranks(size, |ranks| {
                    let mine = (0..6).filter(|&at| owners[at] == ranks.rank()).collect::<Vec<_>>();
                    let own = mine.iter().map(|&at| columns[at].clone()).collect();
                    let sum = ranks.sum(&ctx, &start, &owners, Ok(own)).unwrap();
                    let number = |at: &usize| [Float::with_val(70, *at as f64 - 2.5), Float::with_val(70, -1)];
                    let numbers = ranks.numbers(70, &owners, Ok(mine.iter().map(number).collect())).unwrap();
                    let most = ranks.largest(70, Ok([Float::with_val(70, -3 - ranks.rank() as i32)])).unwrap();
                    (sum, numbers, most, ranks.any(ranks.rank() + 1 == size), ranks.root_says(ranks.rank() > 0))
                });
                for (sum, numbers, [most], any, root) in found {
                    assert!(sum == expected, "{rows} rows, {size} ranks");
                    assert!(
                        numbers.iter().enumerate().all(|(at, [one, other])| *one == at as f64 - 2.5 && *other == -1)
                    );
                    assert!(numbers.len() == 6 && most == -3 && any? && !root?);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn what_one_rank_lacks_is_the_error_of_all() {
        let failed = on_ranks(3, |ranks| {
            let made = match ranks.rank() {
                1 => Err(Error::InvalidArgument("nothing".into())),
                _ => Ok(Vec::new()),
            };
            let list = [Piece { owner: 1, shape: (2, 2) }];
            let compared = ranks.compare(ranks.rank() as u64 / 2, "they differ").unwrap_err().to_string();
            assert!(ranks.compare(3, "they differ").is_ok());
            (ranks.everywhere(64, &list, made).unwrap_err().to_string(), compared)
        });
        for (error, compared) in failed {
            assert!(error.contains("rank 1") && error.contains("nothing"), "{error}");
            assert_eq!(compared, "they differ");
        }
    }
}
