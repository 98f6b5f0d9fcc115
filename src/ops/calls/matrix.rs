//! Matrices over ranks where the caller has them, and how they get into tiles and back.

use super::CallOutcome;
use super::caller::{
    ArgumentFault, CallFailure, CallNote, CallRanks, Caller, LocalArray, LocalInput, LocalTriangle, TrianglePart,
    together,
};
use crate::comm::{Reduction, Transport};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView, MatrixViewMut, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::redistribute::LocalPart;
use crate::ops::distribution::travel::{redistribution_bytes, travel_bytes};
use crate::ops::solve::ranks::LocalSolution;
use crate::tile::{Distribution, TileMap};
use std::collections::HashMap;

/// A matrix over ranks whose description has been checked.
#[derive(Clone, Debug)]
pub struct PlacedMatrix<A> {
    /// The part of this rank.
    pub local: A,
    /// The parts of all ranks.
    pub distribution: Distribution,
}

impl<A: LocalArray> PlacedMatrix<A> {
    /// Whether it has no entries on any rank.
    pub fn is_empty(&self) -> bool {
        self.distribution.rows == 0 || self.distribution.cols == 0
    }

    /// Columns of the whole matrix.
    pub(super) fn cols(&self) -> usize {
        self.distribution.cols
    }

    /// Rows of the whole matrix.
    pub(super) fn rows(&self) -> usize {
        self.distribution.rows
    }

    /// Refuses another shape; the same on all ranks.
    ///
    /// # Errors
    /// The argument with both shapes.
    pub(super) fn check_shape<F: CallFailure>(&self, rows: usize, cols: usize) -> std::result::Result<(), F> {
        let (has_rows, has_cols) = (self.rows(), self.cols());
        if (has_rows, has_cols) == (rows, cols) {
            return Ok(());
        }
        let message = format!("the matrix is {has_rows} x {has_cols}; it must be {rows} x {cols}");
        Err(F::refused(self.local.name(), ArgumentFault::Size, message))
    }

    /// The order of a square matrix.
    ///
    /// # Errors
    /// As [`PlacedMatrix::check_shape`].
    pub(super) fn order<F: CallFailure>(&self) -> std::result::Result<usize, F> {
        let (rows, cols) = (self.rows(), self.cols());
        self.check_shape::<F>(rows, rows.max(cols))?;
        self.check_shape::<F>(cols, cols)?;
        Ok(rows)
    }

    /// The matrix as its transpose.
    pub fn transposed(self) -> PlacedMatrix<A> {
        PlacedMatrix { local: self.local.transposed(), distribution: self.distribution.transposed() }
    }

    /// The symmetric matrix given by its lower triangle: if `uplo` is the upper triangle, the transpose.
    pub(super) fn into_lower(self, uplo: Option<Uplo>) -> PlacedMatrix<A> {
        if uplo == Some(Uplo::Upper) { self.transposed() } else { self }
    }

    /// The entries of a triangle that lie on this rank.
    pub(super) fn part(&self, rank: usize, triangle: Option<TrianglePart>) -> Option<LocalTriangle> {
        triangle.map(|part| LocalTriangle { diagonal: self.distribution.local_diagonal(rank), part })
    }

    /// Bytes of this rank's part.
    pub(super) fn part_bytes(&self, bits: u32) -> u64 {
        Matrix::bytes_for(self.local.rows(), self.local.cols(), bits)
    }

    /// Bytes of a result of `bits` bits where it is not made in its place.
    pub(super) fn placed_bytes(&self, bits: u32) -> u64 {
        if self.local.has_place_for(bits) { 0 } else { self.part_bytes(bits) }
    }

    /// Bytes of the messages in which a solution becomes this rank's part beyond those for one of evenly dealt parts,
    /// each entry to one rank, which the plan of the solve counts.
    pub(super) fn more_messages(&self, world: &dyn Transport, bits: u32) -> u64 {
        let (rows, cols) = (self.rows(), self.cols());
        let all = Matrix::bytes_for(rows, cols, bits);
        let given = redistribution_bytes(world.size(), (rows, bits), (all, 0));
        let comes = |bytes| redistribution_bytes(world.size(), (rows, bits), (0, bytes));
        let share = comes(all.div_ceil(world.size() as u64));
        (most_holders(&self.distribution) - 1) * given + comes(self.part_bytes(bits)).saturating_sub(share)
    }

    /// The largest precision of the entries, over all ranks. Collective.
    ///
    /// # Errors
    /// As [`Caller::result_bits`], on all ranks.
    pub(super) fn result_bits<C: Caller<Array = A>>(
        &self,
        ranks: &CallRanks<'_, C>,
        triangle: Option<TrianglePart>,
    ) -> CallOutcome<u32, C> {
        let own = ranks.caller.result_bits(&self.local, self.part(ranks.world.rank(), triangle));
        let mut bits = [u64::from(together(ranks.world, own)?)];
        ranks.world.all_reduce(Reduction::Max, &mut bits)?;
        Ok(bits[0] as u32)
    }

    /// The precision of a result that goes here, the largest over all ranks; the bytes that it takes where it is not
    /// made in its place are held. Collective.
    ///
    /// # Errors
    /// As [`PlacedMatrix::result_bits`]; memory.
    pub(super) fn result_place<C: Caller<Array = A>>(
        &self,
        ranks: &CallRanks<'_, C>,
        triangle: Option<TrianglePart>,
    ) -> CallOutcome<u32, C> {
        let bits = self.result_bits(ranks, triangle)?;
        ranks.hold(self.placed_bytes(bits))?;
        Ok(bits)
    }

    /// The matrix in tiles; of a triangle, only that triangle is read. `map` decides which tiles are kept. Collective.
    ///
    /// # Errors
    /// As [`Caller::read`], on all ranks; memory.
    pub(super) fn take<C: Caller<Array = A>>(
        &self,
        ranks: &CallRanks<'_, C>,
        triangle: Option<TrianglePart>,
        map: TileMap,
    ) -> CallOutcome<DistMatrix, C> {
        let world = ranks.world;
        let read = ranks.caller.read(&self.local, self.part(world.rank(), triangle));
        let input = together(world, read)?;
        let tiles = DistMatrix::from_local(world, &self.distribution, input.view(), map)?;
        ranks.hold(tiles.bytes())?;
        let to = Distribution::of_tiles(&map);
        let messages = travel_bytes(world, &self.distribution, &to, map.triangle, tiles.precision_bits());
        ranks.account().count(|tally| {
            tally.hold(input.copied_bytes() + tiles.bytes());
            tally.travel(messages, 0);
        });
        ranks.drop_input(input);
        Ok(tiles)
    }

    /// This rank's rows as `to` deals them out, where they lie if they are dealt out like that. Collective.
    ///
    /// # Errors
    /// As [`PlacedMatrix::take`].
    pub(super) fn take_rows<'b, C: Caller<Array = A>>(
        &'b self,
        ranks: &CallRanks<'_, C>,
        to: &Distribution,
    ) -> CallOutcome<PlacedRows<'b>, C> {
        let (world, account) = (ranks.world, ranks.account());
        let input = together(world, ranks.caller.read(&self.local, None))?;
        account.count(|tally| tally.hold(input.copied_bytes()));
        let (placed, wanted) = (self.distribution.with_whole_rows(0), to.with_whole_rows(0));
        if placed.is_some() && placed == wanted {
            return Ok(PlacedRows::Placed(input));
        }
        let to = Distribution { cols: self.cols(), ..to.clone() };
        let (rows, cols) = to.local_shape(world.rank());
        // A rank without entries makes room for those of the others.
        let mut most = [u64::from(input.view().precision_bits())];
        world.all_reduce(Reduction::Max, &mut most)?;
        let bits = most[0] as u32;
        ranks.hold(Matrix::bytes_for(rows, cols, bits))?;
        let messages = travel_bytes(world, &self.distribution, &to, None, bits);
        account.count(|tally| {
            tally.hold(Matrix::bytes_for(rows, cols, bits));
            tally.travel(messages, 0);
        });
        let mut share = together(world, ranks.caller.space(rows, cols, bits))?;
        let part = LocalPart { distribution: &self.distribution, local: input.view() };
        part.redistribute_into(world, &to, &mut share)?;
        ranks.drop_input(input);
        Ok(PlacedRows::Moved(share))
    }

    /// Takes in the right-hand sides of a solve, and runs `work` on them in the context that it is given. Collective.
    ///
    /// # Errors
    /// As [`PlacedMatrix::take`], and those of `work`.
    pub(super) fn solve<C: Caller<Array = A>>(
        &mut self,
        ranks: &CallRanks<'_, C>,
        work: impl FnOnce(&Context, LocalPart<'_>) -> Result<LocalSolution>,
    ) -> CallOutcome<(), C> {
        let account = ranks.account();
        let input = together(ranks.world, ranks.caller.read(&self.local, None))?;
        // The copy makes room for the result.
        let copied = input.copied_bytes();
        account.release_bytes(copied);
        let found = work(&*ranks.context()?, LocalPart { distribution: &self.distribution, local: input.view() });
        ranks.keep_input(input);
        self.give_solution(ranks, account.done(found)?, copied)
    }

    /// Stores a solution that was found while a copy of the right-hand sides of `copied` bytes existed. Collective.
    ///
    /// # Errors
    /// As [`Caller::write`], on all ranks; memory.
    pub(super) fn give_solution<C: Caller<Array = A>>(
        &mut self,
        ranks: &CallRanks<'_, C>,
        solution: LocalSolution,
        copied: u64,
    ) -> CallOutcome<(), C> {
        let (bits, world) = (solution.precision_bits(), ranks.world);
        let placed = self.placed_bytes(bits);
        let messages = self.more_messages(world, bits);
        ranks.account().count(|tally| match tally.keeps() {
            true => tally.at_most(solution.planned_bytes() + copied.max(placed) + messages),
            false => {
                // The memory in which the solve worked is freed when the result is stored.
                tally.at_most(solution.planned_bytes() + copied);
                tally.travel(solution.travel_bytes(world, &self.distribution), solution.bytes() + placed);
            }
        });
        ranks.caller.note(CallNote::Solution(bits));
        self.store(ranks, None, bits, |to, local| solution.fill_local(world, to, local))?;
        solution.give_back(&ranks.account().context());
        Ok(())
    }

    /// Stores a matrix in tiles, or one triangle of it. Collective.
    ///
    /// # Errors
    /// As [`PlacedMatrix::give_solution`].
    pub(super) fn give<C: Caller<Array = A>>(
        &mut self,
        ranks: &CallRanks<'_, C>,
        triangle: Option<TrianglePart>,
        tiles: &DistMatrix,
    ) -> CallOutcome<(), C> {
        let (uplo, world) = (triangle.map(TrianglePart::uplo), ranks.world);
        self.store(ranks, triangle, tiles.precision_bits(), |to, local| tiles.fill_local(world, (to, uplo), local))
    }

    /// Stores the numbers that `fill` brings, of `precision_bits` bits: straight into the caller's memory where that
    /// has the library's form. Collective.
    fn store<C: Caller<Array = A>>(
        &mut self,
        ranks: &CallRanks<'_, C>,
        triangle: Option<TrianglePart>,
        precision_bits: u32,
        fill: impl FnOnce(&Distribution, MatrixViewMut<'_>) -> Result<()>,
    ) -> CallOutcome<(), C> {
        let (caller, world) = (ranks.caller, ranks.world);
        let (rows, cols, part) = (self.local.rows(), self.local.cols(), self.part(world.rank(), triangle));
        let mut own = None;
        let space = match self.local.place_for(precision_bits) {
            Some(view) => Ok(view),
            None => caller.space(rows, cols, precision_bits).map(|matrix| own.insert(matrix).view_mut()),
        };
        fill(&self.distribution, together(world, space)?)?;
        let stored = match own {
            Some(own) => caller.write(&mut self.local, part, own),
            None => Ok(()),
        };
        together(world, stored)
    }
}

/// This rank's rows of an operand.
pub(super) enum PlacedRows<'a> {
    /// The caller's entries, or a copy of them in the same order.
    Placed(LocalInput<'a>),
    /// Moved here.
    Moved(Matrix),
}

impl PlacedRows<'_> {
    /// The rows.
    pub fn view(&self) -> MatrixView<'_> {
        match self {
            PlacedRows::Placed(input) => input.view(),
            PlacedRows::Moved(share) => share.view(),
        }
    }
}

/// The most ranks that have one entry of a matrix.
fn most_holders(distribution: &Distribution) -> u64 {
    let mut counts = HashMap::new();
    for numbers in (0..distribution.grid.size()).filter_map(|rank| distribution.numbers(rank)) {
        *counts.entry(numbers).or_insert(0) += 1;
    }
    counts.into_values().max().unwrap_or(1)
}
