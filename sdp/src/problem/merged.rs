//! One-point blocks of a polynomial program combined, so that an iteration passes over them as over a vector.
//!
//! A block of one row at one point has one variable, a 1 x 1 matrix in X and one in Y. Thousands of them are programs
//! of linear inequalities, and an iteration makes some forty calls of the library for each, of a product or two. Put
//! together they are groups of [`Scalars`] with one diagonal each, behind the other groups. There are several of them,
//! of a fixed size, to share out among ranks and threads: no number depends on how many these are.
//! Independent of: files, iterations.

use super::{Constraints, Group, Problem, Scalars};
use crate::block::{Block, Shape};
use crate::numbers::column;
use rug::Float;
use sunzi::{Matrix, Result};

/// Variables of a combined group. Its products are no longer short relative to the overhead of a call, and a thousand
/// blocks still keep some threads at work.
const MOST_VARIABLES: usize = 128;

/// The positions of the groups and blocks of one program in another one; see the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged {
    /// The caller's groups that each group consists of: one, or one for each row.
    groups: Vec<Vec<usize>>,
    /// The same of blocks.
    blocks: Vec<Vec<usize>>,
    /// The first group and the first block that are combined: those before them are unchanged.
    first: (usize, usize),
}

/// Groups and blocks that a rank has, by their numbers among all, rising.
#[derive(Clone, Copy, Debug)]
pub struct Owned<'a> {
    /// The groups.
    pub groups: &'a [usize],
    /// The blocks.
    pub blocks: &'a [usize],
}

/// The ranks of a program's groups and blocks.
#[derive(Clone, Debug)]
pub struct Owners {
    /// The rank that represents each group.
    pub groups: Vec<usize>,
    /// The group of each block.
    pub blocks: Vec<usize>,
}

/// The only number of the basis of a one-point block.
fn root(group: &Group) -> Option<Float> {
    let Constraints::Sampled(sampled) = &group.constraints else { return None };
    let is_scalar = sampled.variables() == 1 && sampled.shapes() == [Shape::Dense(1)];
    is_scalar.then(|| sampled.basis(0).float(0, 0))
}

impl Merged {
    /// The combination of the one-point blocks of a program, if there are at least two.
    pub fn of(problem: &Problem) -> Option<Merged> {
        let shapes = problem.groups.iter().map(|group| group.constraints.shapes().len());
        let starts = shapes.scan(0, |next, count| Some(std::mem::replace(next, *next + count))).collect::<Vec<_>>();
        let (scalars, others) =
            (0..problem.groups.len()).partition::<Vec<_>, _>(|&at| root(&problem.groups[at]).is_some());
        if scalars.len() < 2 {
            return None;
        }
        let blocks_of = |group: usize| {
            let count = problem.groups[group].constraints.shapes().len();
            starts[group]..starts[group] + count
        };
        let mut groups = others.iter().map(|&group| vec![group]).collect::<Vec<_>>();
        let mut blocks = others.iter().flat_map(|&group| blocks_of(group)).map(|block| vec![block]).collect::<Vec<_>>();
        let first = (groups.len(), blocks.len());
        for piece in scalars.chunks(MOST_VARIABLES) {
            groups.push(piece.to_vec());
            blocks.push(piece.iter().map(|&group| starts[group]).collect());
        }
        Some(Merged { groups, blocks, first })
    }

    /// The program with its groups combined.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn applied(&self, problem: &Problem) -> Result<Problem> {
        let bits = problem.precision_bits;
        let group = |(at, list): (usize, &Vec<usize>)| {
            if at < self.first.0 {
                return Ok(problem.groups[list[0]].clone());
            }
            let rows = list.iter().map(|&group| &problem.groups[group]).collect::<Vec<_>>();
            let roots = rows.iter().filter_map(|group| root(group)).collect::<Vec<_>>();
            let free = |row: usize, col: usize| rows[row].free.float(0, col);
            Ok(Group {
                costs: column(rows.len(), bits, |row| rows[row].costs.float(0, 0))?,
                free: Matrix::from_fn(rows.len(), problem.free_variables(), bits, free)?,
                constraints: Constraints::Scalars(Scalars::of_roots(&roots, bits)?),
            })
        };
        Ok(Problem {
            groups: self.groups.iter().enumerate().map(group).collect::<Result<_>>()?,
            constant: problem.constant.clone(),
            objective: problem.objective.clone(),
            normalization: problem.normalization.clone(),
            ..*problem
        })
    }

    /// A rank's part of it, by the places among the rank's parts of this program and of the caller's.
    pub fn part(&self, own: Owned<'_>, callers: Owned<'_>) -> Merged {
        let part = |all: &[Vec<usize>], own: &[usize], callers: &[usize]| {
            let place = |number: &usize| callers.partition_point(|other| other < number);
            own.iter().map(|&at| all[at].iter().map(place).collect()).collect()
        };
        let before = |own: &[usize], first: usize| own.partition_point(|&at| at < first);
        Merged {
            groups: part(&self.groups, own.groups, callers.groups),
            blocks: part(&self.blocks, own.blocks, callers.blocks),
            first: (before(own.groups, self.first.0), before(own.blocks, self.first.1)),
        }
    }

    /// The caller's group of a row of a group.
    pub fn group(&self, group: usize, row: usize) -> usize {
        self.groups[group][if group < self.first.0 { 0 } else { row }]
    }

    /// The caller's block of a row of a block.
    pub fn block(&self, block: usize, row: usize) -> usize {
        self.blocks[block][if block < self.first.1 { 0 } else { row }]
    }

    /// The block that has a block of the caller, and its row there where it was combined with others.
    pub fn place(&self, number: usize) -> Option<(usize, Option<usize>)> {
        let found = self.blocks.iter().enumerate();
        let mut found = found.filter_map(|(at, list)| Some((at, list.binary_search(&number).ok()?)));
        found.next().map(|(at, row)| (at, (at >= self.first.1).then_some(row)))
    }

    /// Whether the rows of a group are groups of the caller.
    pub fn is_joined(&self, group: usize) -> bool {
        group >= self.first.0
    }

    /// Groups of the caller.
    pub fn callers_groups(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// Groups of the caller that were combined with others.
    pub fn singles(&self) -> usize {
        self.groups[self.first.0..].iter().map(Vec::len).sum()
    }

    /// The ranks of the caller's groups and blocks, from those of this program.
    pub fn owners(&self, owners: &Owners) -> Owners {
        let of_rows = |lists: &[Vec<usize>], owners: &[usize]| {
            let mut found = vec![0; lists.iter().map(Vec::len).sum()];
            for (list, &owner) in lists.iter().zip(owners) {
                list.iter().for_each(|&number| found[number] = owner);
            }
            found
        };
        Owners { groups: of_rows(&self.groups, &owners.groups), blocks: of_rows(&self.blocks, &owners.blocks) }
    }

    /// Columns of this program, from those of the caller's groups.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn columns(&self, columns: Vec<Matrix>) -> Result<Vec<Matrix>> {
        joined(&self.groups, self.first.0, columns, |list| stacked(list.iter()))
    }

    /// Columns of the caller's groups, from those of this program.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn own_columns(&self, columns: Vec<Matrix>) -> Result<Vec<Matrix>> {
        parted(&self.groups, self.first.0, columns, entry)
    }

    /// Blocks of this program, from the caller's.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn diagonals(&self, blocks: Vec<Block>) -> Result<Vec<Block>> {
        joined(&self.blocks, self.first.1, blocks, |list| Ok(Block::Diagonal(stacked(list.iter().map(Block::stored))?)))
    }

    /// The caller's blocks, from those of this program.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn own_blocks(&self, blocks: Vec<Block>) -> Result<Vec<Block>> {
        parted(&self.blocks, self.first.1, blocks, |block, row| Ok(Block::Dense(entry(block.stored(), row)?)))
    }
}

/// Numbers of single ones, one below the other.
fn stacked<'m>(numbers: impl Iterator<Item = &'m Matrix>) -> Result<Matrix> {
    let numbers = numbers.collect::<Vec<_>>();
    let bits = numbers.iter().map(|number| number.precision_bits()).max().unwrap_or(2);
    column(numbers.len(), bits, |row| numbers[row].float(0, 0))
}

/// A number of a column by itself.
fn entry(numbers: &Matrix, row: usize) -> Result<Matrix> {
    column(1, numbers.precision_bits(), |_| numbers.float(row, 0))
}

/// The `items` of the lists before `first`, and for each later list the one that `join` makes of its items.
fn joined<T>(lists: &[Vec<usize>], first: usize, items: Vec<T>, join: impl Fn(&[T]) -> Result<T>) -> Result<Vec<T>> {
    let mut items = items.into_iter().map(Some).collect::<Vec<_>>();
    let mut found = Vec::with_capacity(lists.len());
    for (at, list) in lists.iter().enumerate() {
        let own = list.iter().filter_map(|&number| items[number].take()).collect::<Vec<_>>();
        if at < first {
            found.extend(own);
        } else {
            found.push(join(&own)?);
        }
    }
    Ok(found)
}

/// The inverse of [`joined`]: `part` is one row of an item that was made of several.
fn parted<T>(
    lists: &[Vec<usize>],
    first: usize,
    items: Vec<T>,
    part: impl Fn(&T, usize) -> Result<T>,
) -> Result<Vec<T>> {
    let mut found = std::iter::repeat_with(|| None).take(lists.iter().map(Vec::len).sum()).collect::<Vec<_>>();
    for ((at, item), list) in items.into_iter().enumerate().zip(lists) {
        if at < first {
            found[list[0]] = Some(item);
            continue;
        }
        for (row, &number) in list.iter().enumerate() {
            found[number] = Some(part(&item, row)?);
        }
    }
    Ok(found.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Form, Sampled};

    fn numbers(values: &[f64]) -> Result<Matrix> {
        Matrix::from_f64s(values.len(), 1, 64, values)
    }

    /// Groups of these numbers of points, each of one or two blocks.
    fn program(points: &[usize]) -> Result<Problem> {
        let group = |(at, &points): (usize, &usize)| {
            let basis = |rows: usize| Matrix::from_fn(rows, points, 64, |row, col| Float::with_val(64, at + row + col));
            let ones = |cols| Matrix::from_fn(points, cols, 64, |_, _| Float::with_val(64, at));
            let constraints = Sampled::new(1, points, [basis(points.div_ceil(2))?, basis(points / 2)?])?;
            Ok(Group { costs: ones(1)?, free: ones(2)?, constraints: Constraints::Sampled(constraints) })
        };
        Ok(Problem {
            form: Form::Sdpb,
            precision_bits: 64,
            constant: Float::new(64),
            objective: numbers(&[1.0, 2.0])?,
            groups: points.iter().enumerate().map(group).collect::<Result<_>>()?,
            normalization: None,
        })
    }

    #[test]
    fn one_point_blocks_stand_behind_the_others_and_come_back_to_their_places() -> Result<()> {
        assert_eq!(Merged::of(&program(&[3, 1, 2])?), None);
        let problem = program(&[1, 3, 1, 2, 1])?;
        let merged = Merged::of(&problem).unwrap();
        assert_eq!(merged.groups, [vec![1], vec![3], vec![0, 2, 4]]);
        assert_eq!(merged.blocks, [vec![1], vec![2], vec![4], vec![5], vec![0, 3, 6]]);
        let inside = merged.applied(&problem)?;
        inside.check()?;
        let last = &inside.groups[2];
        let Constraints::Scalars(scalars) = &last.constraints else { panic!("scalars") };
        assert_eq!(scalars.weights().view().to_f64s(), [0.0, 4.0, 16.0]);
        assert_eq!((last.costs.view().to_f64s(), last.free.float(1, 1)), (vec![0.0, 2.0, 4.0], Float::with_val(64, 2)));
        assert_eq!((merged.group(1, 5), merged.group(2, 1), merged.block(1, 0), merged.block(4, 2)), (3, 2, 2, 6));
        assert_eq!(
            [2, 3, 6, 7].map(|number| merged.place(number)),
            [Some((1, None)), Some((4, Some(1))), Some((4, Some(2))), None]
        );
        let columns = (0..5).map(|at| numbers(&[f64::from(at)])).collect::<Result<Vec<_>>>()?;
        let together = merged.columns(columns.clone())?;
        assert_eq!(together[2].view().to_f64s(), [0.0, 2.0, 4.0]);
        assert!(together[0] == columns[1] && merged.own_columns(together)? == columns);
        let blocks = (0..7).map(|at| Ok(Block::Dense(numbers(&[f64::from(at)])?))).collect::<Result<Vec<_>>>()?;
        let together = merged.diagonals(blocks.clone())?;
        assert_eq!(together[4], Block::Diagonal(numbers(&[0.0, 3.0, 6.0])?));
        assert_eq!(merged.own_blocks(together)?, blocks);
        Ok(())
    }

    #[test]
    fn groups_have_so_many_variables_at_most_and_ranks_know_their_own() -> Result<()> {
        let merged = Merged::of(&program(&[vec![2], vec![1; 2 * MOST_VARIABLES + 1]].concat())?).unwrap();
        assert_eq!(merged.groups.iter().map(Vec::len).collect::<Vec<_>>(), [1, MOST_VARIABLES, MOST_VARIABLES, 1]);
        // A rank has the first and the last group.
        let last = 2 * MOST_VARIABLES + 1;
        let part = merged.part(
            Owned { groups: &[0, 3], blocks: &[0, 1, 4] },
            Owned { groups: &[0, last], blocks: &[0, 1, last + 1] },
        );
        assert_eq!(
            part,
            Merged { groups: vec![vec![0], vec![1]], blocks: vec![vec![0], vec![1], vec![2]], first: (1, 2) }
        );
        Ok(())
    }
}
