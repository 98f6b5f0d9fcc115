//! The distribution of a program over the ranks.
//!
//! A group of samples lies on one rank, with its blocks. A group of sparse matrices lies on all, since its matrices
//! meet all of its blocks, and its blocks lie on one each. The most expensive parts are assigned first, each to the
//! rank with the least so far. One process has all of them. Where the program that is solved is not the caller's, as
//! one-point blocks are combined (`problem/merged.rs`), the caller's parts lie where those of this one do.

use crate::balance::assign;
use crate::block::Block;
use crate::iterate::point::{Cone, Point, cones};
use crate::problem::{Constraints, Group, Merged, Owned, Owners, Problem};
use crate::ranks::{Piece, Ranks};
use rug::Float;
use std::sync::Arc;
use sunzi::{Matrix, Result};

/// Work on a block in units of the cube of its order: factors, inverses, directions, eigenvalues.
const BLOCK_WORK: u64 = 16;

/// The part of this rank, and the distribution of the others.
pub struct Share {
    /// The ranks.
    pub ranks: Arc<Ranks>,
    /// All blocks of the program.
    pub all: Vec<Cone>,
    /// The blocks of this rank, by their numbers among all.
    pub own: Vec<usize>,
    /// The groups of this rank, by their numbers among all.
    pub groups: Vec<usize>,
    /// The rank of each block.
    pub cone_owners: Vec<usize>,
    /// The rank that represents each group.
    pub group_owners: Vec<usize>,
    /// Variables of each group.
    variables: Vec<usize>,
    /// Rows of all blocks.
    pub total_rows: usize,
    /// Whether all ranks have a group.
    is_shared: Vec<bool>,
    /// The caller's groups and blocks, where they are others.
    merged: Option<Merged>,
}

/// The cost of a group of samples in an iteration, in products of numbers.
fn cost(group: &Group) -> u64 {
    let (variables, free) = (group.costs.rows() as u64, group.free.cols() as u64);
    let blocks = group.constraints.shapes().iter().map(|shape| BLOCK_WORK * shape.cost()).sum::<u64>();
    let grams = match &group.constraints {
        Constraints::Sampled(sampled) => {
            let width = (sampled.dim() * sampled.points()) as u64;
            sampled.shapes().iter().map(|shape| 2 * shape.order() as u64 * width * width).sum::<u64>()
        }
        Constraints::Sparse(_) => 0,
        Constraints::Scalars(_) => return blocks + variables * (free + 1),
    };
    blocks + grams + variables * variables * (variables / 3 + free + 1)
}

impl Share {
    /// The parts of a program, the same on all ranks. `merged` describes the transformation of the caller's program to
    /// this one, if their groups differ.
    pub fn new(ranks: impl Into<Arc<Ranks>>, problem: &Problem, merged: Option<Merged>) -> Share {
        let (ranks, all) = (ranks.into(), cones(problem));
        let is_shared = |group: usize| matches!(problem.groups[group].constraints, Constraints::Sparse(_));
        // The parts to assign: groups of samples, then blocks of sparse matrices.
        let sampled = (0..problem.groups.len()).filter(|&group| !is_shared(group)).collect::<Vec<_>>();
        let single = (0..all.len()).filter(|&at| is_shared(all[at].group)).collect::<Vec<_>>();
        let costs = sampled.iter().map(|&group| cost(&problem.groups[group]));
        let costs = costs.chain(single.iter().map(|&at| BLOCK_WORK * all[at].shape.cost())).collect::<Vec<_>>();
        let given = assign(&costs, ranks.size());
        let mut group_owners = vec![crate::ranks::ROOT; problem.groups.len()];
        sampled.iter().zip(&given).for_each(|(&group, &rank)| group_owners[group] = rank);
        let mut cone_owners = all.iter().map(|cone| group_owners[cone.group]).collect::<Vec<_>>();
        single.iter().zip(&given[sampled.len()..]).for_each(|(&at, &rank)| cone_owners[at] = rank);
        let owners = Owners { groups: group_owners, blocks: cone_owners };
        Share { merged, ..Share::of_owners(ranks, problem, owners) }
    }

    /// The parts of the caller's program, of which that of this one was made: where those lie that were made of them.
    pub fn of_caller(&self, problem: &Problem) -> Share {
        let own = Owners { groups: self.group_owners.clone(), blocks: self.cone_owners.clone() };
        let owners = self.merged.as_ref().map_or_else(|| own.clone(), |merged| merged.owners(&own));
        Share::of_owners(Arc::clone(&self.ranks), problem, owners)
    }

    fn of_owners(ranks: Arc<Ranks>, problem: &Problem, owners: Owners) -> Share {
        let Owners { groups: group_owners, blocks: cone_owners } = owners;
        let (all, rank) = (cones(problem), ranks.rank());
        let is_shared = problem.groups.iter().map(|group| matches!(group.constraints, Constraints::Sparse(_)));
        let is_shared = is_shared.collect::<Vec<_>>();
        let groups = (0..problem.groups.len()).filter(|&group| is_shared[group] || group_owners[group] == rank);
        Share {
            own: (0..all.len()).filter(|&at| cone_owners[at] == rank).collect(),
            groups: groups.collect(),
            variables: problem.groups.iter().map(|group| group.constraints.variables()).collect(),
            total_rows: problem.total_rows(),
            ranks,
            all,
            cone_owners,
            group_owners,
            is_shared,
            merged: None,
        }
    }

    /// The groups of this rank that all ranks have, by their numbers there.
    pub fn shared(&self) -> impl Iterator<Item = usize> {
        (0..self.groups.len()).filter(|&at| self.is_shared[self.groups[at]])
    }

    /// The number among the caller's groups of a row of a group.
    pub fn callers_group(&self, group: usize, row: usize) -> usize {
        self.merged.as_ref().map_or(group, |merged| merged.group(group, row))
    }

    /// The rows of a group that are groups of the caller; one where it is a group of the caller itself.
    pub fn callers_rows(&self, group: usize) -> std::ops::Range<usize> {
        0..if self.is_joined(group) { self.variables[group] } else { 1 }
    }

    /// The number among the caller's blocks of a row of a block.
    pub fn callers_block(&self, block: usize, row: usize) -> usize {
        self.merged.as_ref().map_or(block, |merged| merged.block(block, row))
    }

    /// The block, by its number among all, in which one of the caller's is; and the row that it is there, where the
    /// block is made of several.
    pub fn place_of(&self, number: usize) -> (usize, Option<usize>) {
        self.merged.as_ref().and_then(|merged| merged.place(number)).unwrap_or((number, None))
    }

    /// Whether the rows of a group are groups of the caller.
    pub fn is_joined(&self, group: usize) -> bool {
        self.merged.as_ref().is_some_and(|merged| merged.is_joined(group))
    }

    /// Groups of the caller's program.
    pub fn callers_groups(&self) -> usize {
        self.merged.as_ref().map_or(self.variables.len(), Merged::callers_groups)
    }

    fn owned(&self) -> Owned<'_> {
        Owned { groups: &self.groups, blocks: &self.own }
    }

    /// This rank's part of `merged`, given its part of the caller's program.
    pub fn merged_part(&self, caller: &Share) -> Option<Merged> {
        let merged = self.merged.as_ref()?;
        Some(merged.part(self.owned(), caller.owned()))
    }

    /// Variables of the whole program.
    pub fn variables(&self) -> usize {
        self.variables.iter().sum()
    }

    /// Variables of the largest group.
    pub fn most_variables(&self) -> usize {
        self.variables.iter().copied().max().unwrap_or(0)
    }

    /// The groups of this rank as a program.
    pub fn part(&self, problem: &Problem) -> Problem {
        let groups = self.groups.iter().map(|&group| problem.groups[group].clone()).collect();
        Problem {
            groups,
            constant: problem.constant.clone(),
            objective: problem.objective.clone(),
            normalization: problem.normalization.clone(),
            ..*problem
        }
    }

    /// The blocks of this rank, with the groups of [`Share::part`].
    pub fn cones(&self) -> Vec<Cone> {
        let local = |group: usize| self.groups.partition_point(|&other| other < group);
        self.own.iter().map(|&at| Cone { group: local(self.all[at].group), ..self.all[at] }).collect()
    }

    /// The groups of [`Share::part`] that this rank represents.
    pub fn spoken_for(&self) -> impl Iterator<Item = usize> {
        let rank = self.ranks.rank();
        (0..self.groups.len()).filter(move |&at| self.group_owners[self.groups[at]] == rank)
    }

    /// The part of this rank of a point.
    pub fn part_of(&self, point: Point) -> Point {
        if !self.ranks.are_several() {
            return point;
        }
        let pick = |blocks: &[Block]| self.own.iter().map(|&at| blocks[at].clone()).collect();
        let x = self.groups.iter().map(|&group| point.x[group].clone()).collect();
        Point { x, primal: pick(&point.primal), y: point.y, dual: pick(&point.dual) }
    }

    /// The whole point on the root, from the parts of all ranks. Collective.
    ///
    /// # Errors
    /// The errors of [`Ranks::on_root`].
    pub fn gathered(&self, point: &Point) -> Result<Option<Point>> {
        if !self.ranks.are_several() {
            return Ok(Some(point.clone()));
        }
        let bits = point.y.precision_bits();
        let of_x = self.group_owners.iter().zip(&self.variables);
        let of_x = of_x.map(|(&owner, &variables)| Piece { owner, shape: (variables, 1) }).collect::<Vec<_>>();
        let own = Ok(self.spoken_for().map(|at| point.x[at].clone()).collect());
        let x = self.ranks.on_root(bits, &of_x, own)?;
        let list = self.pieces(0..self.all.len());
        let blocks = |blocks: &[Block]| -> Result<Option<Vec<Block>>> {
            let own = Ok(blocks.iter().map(|block| block.stored().clone()).collect());
            let whole = self.ranks.on_root(bits, &list, own)?;
            let block = |(cone, stored): (&Cone, Matrix)| Block::of_shape(cone.shape, stored);
            Ok(whole.map(|whole| self.all.iter().zip(whole).map(block).collect()))
        };
        let (primal, dual) = (blocks(&point.primal)?, blocks(&point.dual)?);
        let parts = x.zip(primal).zip(dual);
        Ok(parts.map(|((x, primal), dual)| Point { x, primal, y: point.y.clone(), dual }))
    }

    /// The stored form of blocks, by their numbers among all.
    pub fn pieces(&self, list: impl Iterator<Item = usize>) -> Vec<Piece> {
        list.map(|at| Piece { owner: self.cone_owners[at], shape: self.all[at].shape.stored() }).collect()
    }

    /// The numbers of all blocks on every rank; `made` are those of the blocks of this rank. Collective.
    ///
    /// # Errors
    /// The errors of [`Ranks::numbers`].
    pub fn of_cones<const W: usize>(&self, bits: u32, made: Result<Vec<[Float; W]>>) -> Result<Vec<[Float; W]>> {
        self.ranks.numbers(bits, &self.cone_owners, made)
    }

    /// The numbers of all groups on every rank; `made` are those of [`Share::spoken_for`]. Collective.
    ///
    /// # Errors
    /// The errors of [`Ranks::numbers`].
    pub fn of_groups<const W: usize>(&self, bits: u32, made: Result<Vec<[Float; W]>>) -> Result<Vec<[Float; W]>> {
        self.ranks.numbers(bits, &self.group_owners, made)
    }
}
