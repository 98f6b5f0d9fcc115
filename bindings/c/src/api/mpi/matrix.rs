//! Matrices over ranks: their descriptions, and how they get into the library's tiles and back.

use super::parts::Parts;
use super::rows::Rows;
use super::{Ranks, together};
use crate::array::{Array, Operand, Part, Triangle, invalid};
use crate::failure::{Failure, Outcome};
use crate::types::*;
use std::collections::HashMap;
use std::ffi::c_int;
use sunzi::comm::{Reduction, Transport};
use sunzi::distributed::{
    Along, Axis, DistMatrix, Distribution, GridOrder, LocalPart, LocalSolution, RankGrid, TileMap,
    redistribution_bytes, travel_bytes,
};
use sunzi::{Context, Matrix, MatrixViewMut, Uplo};

/// Returns the description of a matrix of consecutive whole rows, in the order of the ranks; each rank has as many rows
/// as its `local`. `size` is the number of ranks. For a matrix that lies on one rank, all other ranks pass a `local` of
/// 0 rows.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_dist_rows(local: sunzi_matrix, size: i64) -> sunzi_dist_matrix {
    sunzi_dist_matrix {
        local,
        rows: -1,
        cols: local.cols,
        grid_rows: size,
        grid_cols: 1,
        grid_order: SUNZI_ROW_MAJOR,
        row_along: SUNZI_ALONG_GRID_ROW,
        col_along: SUNZI_ALONG_NONE,
        row_block: 0,
        col_block: 0,
        row_first: 0,
        col_first: 0,
    }
}

/// Returns the description of a block-cyclic matrix from its ScaLAPACK descriptor: `desc` points to the nine integers,
/// of which M, N, MB, NB, RSRC and CSRC are used. `local` has the numbers of rows and columns that `numroc` returns.
/// The grid is the one of the descriptor's BLACS context; `grid_order` is `SUNZI_ROW_MAJOR` for
/// `blacs_gridinit(.., "R", ..)`.
///
/// # Safety
/// `desc` must point to nine integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_dist_scalapack(
    local: sunzi_matrix,
    desc: *const c_int,
    grid_rows: i64,
    grid_cols: i64,
    grid_order: i32,
) -> sunzi_dist_matrix {
    // SAFETY: by contract. A null pointer gives a description that every call refuses.
    let number = |at: usize| if desc.is_null() { -2 } else { unsafe { i64::from(desc.add(at).read()) } };
    sunzi_dist_matrix {
        local,
        rows: number(2),
        cols: number(3),
        grid_rows,
        grid_cols,
        grid_order,
        row_along: SUNZI_ALONG_GRID_ROW,
        col_along: SUNZI_ALONG_GRID_COL,
        row_block: number(4),
        col_block: number(5),
        row_first: number(6),
        col_first: number(7),
    }
}

/// Returns the description of a `rows x cols` `DistMatrix` of Elemental. `col_dist` and `row_dist` are its `ColDist`
/// and `RowDist` as `SUNZI_ALONG_` constants, `col_align` and `row_align` its `ColAlign()` and `RowAlign()`; `local` is
/// its `Matrix()`. The grid numbers its ranks column by column, which is the default of Elemental.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_dist_elemental(
    local: sunzi_matrix,
    rows: i64,
    cols: i64,
    grid_rows: i64,
    grid_cols: i64,
    col_dist: i32,
    row_dist: i32,
    col_align: i64,
    row_align: i64,
) -> sunzi_dist_matrix {
    sunzi_dist_matrix {
        local,
        rows,
        cols,
        grid_rows,
        grid_cols,
        grid_order: SUNZI_COL_MAJOR,
        row_along: col_dist,
        col_along: row_dist,
        row_block: 1,
        col_block: 1,
        row_first: col_align,
        col_first: row_align,
    }
}

/// A matrix over ranks, with its numbers checked.
pub(crate) struct DistOperand {
    /// The part of this rank.
    pub local: Operand,
    pub distribution: Distribution,
}

/// The numbers of a description, before the ranks have exchanged the sizes of their parts.
pub(crate) struct Told {
    pub local: Operand,
    /// The numbers that must be the same on all ranks, and how a sentence about each begins.
    pub numbers: [(&'static str, i64); 11],
    /// Which of the call's matrices it is.
    at: usize,
    grid: RankGrid,
    order: GridOrder,
    axes: [(i64, Option<Along>, usize, usize); 2],
}

impl Told {
    /// # Safety
    /// The header's rules.
    pub unsafe fn new(name: &'static str, matrix: *const sunzi_dist_matrix, at: usize) -> Outcome<Told> {
        // SAFETY: null or live by contract.
        let Some(matrix) = (unsafe { matrix.as_ref() }) else { return Err(Failure::null(name)) };
        // SAFETY: by contract.
        let local = unsafe { Operand::new(name, &matrix.local) }?;
        let count = |value: i64, what: &str| {
            let refuse = || invalid(name, format!("{what} = {value} is out of range; choose 0 to {}", u32::MAX));
            usize::try_from(value).ok().filter(|&value| value <= u32::MAX as usize).ok_or_else(refuse)
        };
        let along = |value: i32, what: &str| match value {
            SUNZI_ALONG_NONE => Ok(None),
            SUNZI_ALONG_GRID_ROW => Ok(Some(Along::GridRow)),
            SUNZI_ALONG_GRID_COL => Ok(Some(Along::GridCol)),
            SUNZI_ALONG_COL_MAJOR => Ok(Some(Along::ColumnMajor)),
            SUNZI_ALONG_ROW_MAJOR => Ok(Some(Along::RowMajor)),
            other => {
                let known = "choose SUNZI_ALONG_NONE (0) to SUNZI_ALONG_ROW_MAJOR (4)";
                Err(invalid(name, format!("{what} = {other} is not valid; {known}")))
            }
        };
        let order = match matrix.grid_order {
            SUNZI_ROW_MAJOR => GridOrder::RowMajor,
            SUNZI_COL_MAJOR => GridOrder::ColumnMajor,
            other => {
                let known = "choose SUNZI_ROW_MAJOR (101) or SUNZI_COL_MAJOR (102)";
                return Err(invalid(name, format!("grid_order = {other} is not valid; {known}")));
            }
        };
        let grid =
            RankGrid { rows: count(matrix.grid_rows, "grid_rows")?, cols: count(matrix.grid_cols, "grid_cols")? };
        let rows = (
            matrix.rows,
            along(matrix.row_along, "row_along")?,
            count(matrix.row_block, "row_block")?,
            count(matrix.row_first, "row_first")?,
        );
        let cols = (
            matrix.cols,
            along(matrix.col_along, "col_along")?,
            count(matrix.col_block, "col_block")?,
            count(matrix.col_first, "col_first")?,
        );
        let numbers = [
            ("rows is", matrix.rows),
            ("cols is", matrix.cols),
            ("grid_rows is", matrix.grid_rows),
            ("grid_cols is", matrix.grid_cols),
            ("grid_order is", matrix.grid_order.into()),
            ("row_along is", matrix.row_along.into()),
            ("col_along is", matrix.col_along.into()),
            ("row_block is", matrix.row_block),
            ("col_block is", matrix.col_block),
            ("row_first is", matrix.row_first),
            ("col_first is", matrix.col_first),
        ];
        Ok(Told { local, numbers, at, grid, order, axes: [rows, cols] })
    }

    /// The matrix, whose numbers are the same on all ranks, with its distribution and the parts of all ranks checked:
    /// every rank comes to the same end.
    pub fn place(self, parts: &Parts) -> Outcome<DistOperand> {
        let ((rows, row_axis), (cols, col_axis)) = (self.axis(0, parts)?, self.axis(1, parts)?);
        let Told { local, at, grid, order, .. } = self;
        let distribution = Distribution { rows, cols, grid, order, row_axis, col_axis };
        distribution.check(parts.ranks()).map_err(|error| Failure::about(local.name, error))?;
        for rank in 0..parts.ranks() {
            let ([has_rows, has_cols], (rows, cols)) = (parts.of(rank, at), distribution.local_shape(rank));
            if (has_rows, has_cols) != (rows, cols) {
                let own = format!("the distribution assigns {rows} x {cols} entries to it");
                let message = format!("rank {rank} has {has_rows} x {has_cols} entries, but {own}");
                return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, local.name, message));
            }
        }
        Ok(DistOperand { local, distribution })
    }

    /// The length of the matrix along its rows (0) or columns (1), and which rank has which part of it.
    fn axis(&self, which: usize, parts: &Parts) -> Outcome<(usize, Axis)> {
        let (length, along, block, first) = self.axes[which];
        let refuse = |message| Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, self.local.name, message));
        let what = ["rows", "columns"][which];
        let of = |rank: usize| parts.of(rank, self.at)[which];
        if length < -1 {
            return refuse(format!(
                "{length} {what} are not valid; pass their number, or -1 for the sum over the ranks"
            ));
        }
        let known = usize::try_from(length).ok();
        match (along, known) {
            (None, known) => Ok((known.unwrap_or_else(|| of(0)), Axis::Whole)),
            (Some(along), _) if block == 0 && self.grid.size() <= parts.ranks() => {
                // The numbers of the ranks, from a matrix of one row.
                let deal = Distribution::entry_cyclic((1, 1), (self.grid, self.order), (Some(along), None), (0, 0));
                let most = (0..self.grid.size()).filter_map(|rank| deal.numbers(rank)).map(|(at, _)| at + 1).max();
                let mut counts = vec![None; most.unwrap_or(0)];
                for rank in 0..self.grid.size() {
                    let Some((at, _)) = deal.numbers(rank) else { continue };
                    match counts[at] {
                        Some(count) if count != of(rank) => {
                            return refuse(format!("ranks with the same number have {count} and {} {what}", of(rank)));
                        }
                        _ => counts[at] = Some(of(rank)),
                    }
                }
                let (mut starts, mut sum) = (vec![0], 0_usize);
                for count in counts {
                    let Some(next) = sum.checked_add(count.unwrap_or(0)) else {
                        return refuse(format!("the sum of the {what} over the ranks is too large"));
                    };
                    sum = next;
                    starts.push(sum);
                }
                match known {
                    Some(known) if known != sum => {
                        refuse(format!("the ranks have {sum} {what} together, but the matrix has {known}"))
                    }
                    _ => Ok((sum, Axis::Consecutive { starts, along })),
                }
            }
            (Some(along), Some(known)) => Ok((known, Axis::Cyclic { block, first, offset: 0, along })),
            (Some(_), None) => refuse(format!("{length} {what} are only valid with a block size of 0")),
        }
    }
}

impl DistOperand {
    /// Rows and columns of the whole matrix.
    pub fn shape(&self) -> (usize, usize) {
        (self.distribution.rows, self.distribution.cols)
    }

    /// Whether it has no entries on any rank.
    pub fn is_empty(&self) -> bool {
        self.distribution.rows == 0 || self.distribution.cols == 0
    }

    /// Refuses another shape, and a local part that is no such matrix; the same on all ranks.
    pub fn check_shape(&self, rows: usize, cols: usize) -> Outcome<()> {
        if self.shape() == (rows, cols) {
            return Ok(());
        }
        let message = format!("the matrix is {} x {}; it must be {rows} x {cols}", self.shape().0, self.shape().1);
        Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, self.local.name, message))
    }

    /// The order of a square matrix.
    pub fn order(&self) -> Outcome<usize> {
        let (rows, cols) = self.shape();
        self.check_shape(rows, rows.max(cols))?;
        self.check_shape(cols, cols)?;
        Ok(rows)
    }

    /// The matrix as its transpose.
    pub fn transposed(&self) -> DistOperand {
        DistOperand { local: self.local.transposed(), distribution: self.distribution.transposed() }
    }

    /// The entries of a triangle that lie on this rank.
    pub fn part(&self, rank: usize, triangle: Option<Triangle>) -> Part {
        triangle.map_or(Part::All, |triangle| Part::Dealt(self.distribution.local_diagonal(rank), triangle))
    }

    /// The precision of a result that goes here, the largest over all ranks, and the bytes of the memory limit that are
    /// reserved for it where it is not made in its place. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn result_place(&self, ranks: &Ranks<'_>, triangle: Option<Triangle>) -> Outcome<u32> {
        // SAFETY: by contract, for all below.
        unsafe {
            let bits = self.result_bits(ranks, triangle)?;
            ranks.hold(self.placed_bytes(bits))?;
            Ok(bits)
        }
    }

    /// Bytes of a result of `bits` bits where it is not made in its place.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn placed_bytes(&self, bits: u32) -> u64 {
        // SAFETY: by contract; nothing is read or written.
        match unsafe { self.local.place_for(bits) } {
            Some(_) => 0,
            None => Matrix::bytes_for(self.local.rows(), self.local.cols(), bits),
        }
    }

    /// Whether its numbers are read where they lie.
    pub fn is_in_place(&self) -> bool {
        matches!(&self.local.array, Array::Limbs(_))
    }

    /// Bytes of the messages in which a solution becomes this rank's part beyond those for one of evenly dealt parts,
    /// each entry to one rank, which the plan of the solve counts.
    pub fn more_messages(&self, world: &dyn Transport, bits: u32) -> u64 {
        let (rows, cols) = self.shape();
        let all = Matrix::bytes_for(rows, cols, bits);
        let (given, comes) = (redistribution_bytes(world.size(), (rows, bits), (all, 0)), |bytes| {
            redistribution_bytes(world.size(), (rows, bits), (0, bytes))
        });
        let share = comes(all.div_ceil(world.size() as u64));
        let part = Matrix::bytes_for(self.local.rows(), self.local.cols(), bits);
        (most_holders(&self.distribution) - 1) * given + comes(part).saturating_sub(share)
    }

    /// The largest precision of the entries, over all ranks. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn result_bits(&self, ranks: &Ranks<'_>, triangle: Option<Triangle>) -> Outcome<u32> {
        let Ranks { call, world, .. } = *ranks;
        // SAFETY: by contract.
        let own = unsafe { call.result_bits(&self.local, self.part(world.rank(), triangle)) };
        let mut bits = [u64::from(together(world, own)?)];
        world.all_reduce(Reduction::Max, &mut bits)?;
        Ok(bits[0] as u32)
    }

    /// The matrix in tiles; of a triangle, only that triangle is read. `map` decides which tiles are kept. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn take(&self, ranks: &Ranks<'_>, triangle: Option<Triangle>, map: TileMap) -> Outcome<DistMatrix> {
        let world = ranks.world;
        // SAFETY: by contract.
        let read = unsafe { ranks.call.read(&self.local, self.part(world.rank(), triangle)) };
        let input = together(world, read)?;
        let tiles = DistMatrix::from_local(world, &self.distribution, input.view(), map);
        let tiles = tiles?;
        ranks.hold(tiles.bytes())?;
        let to = Distribution::of_tiles(&map);
        let messages = travel_bytes(world, &self.distribution, &to, map.triangle, tiles.precision_bits());
        ranks.call.count(|tally| {
            tally.hold(input.copied_bytes() + tiles.bytes());
            tally.travel(messages, 0);
        });
        ranks.drop_input(input);
        Ok(tiles)
    }

    /// This rank's rows as `to` deals them out, where they lie if they are dealt out like that. Collective.
    ///
    /// # Safety
    /// The header's rules; no thread writes to the entries while the rows are in use.
    pub unsafe fn take_rows<'b>(&self, ranks: &Ranks<'_>, to: &Distribution) -> Outcome<Rows<'b>> {
        let Ranks { call, world, .. } = *ranks;
        // SAFETY: by contract.
        let input = together(world, unsafe { call.read(&self.local, Part::All) })?;
        call.count(|tally| tally.hold(input.copied_bytes()));
        let (placed, wanted) = (self.distribution.with_whole_rows(0), to.with_whole_rows(0));
        if placed.is_some() && placed == wanted {
            return Ok(Rows::Placed(input));
        }
        let to = Distribution { cols: self.distribution.cols, ..to.clone() };
        let (rows, cols) = to.local_shape(world.rank());
        // A rank without entries makes room for those of the others.
        let mut most = [u64::from(input.view().precision_bits())];
        world.all_reduce(Reduction::Max, &mut most)?;
        let bits = most[0] as u32;
        ranks.hold(Matrix::bytes_for(rows, cols, bits))?;
        let messages = travel_bytes(world, &self.distribution, &to, None, bits);
        call.count(|tally| {
            tally.hold(Matrix::bytes_for(rows, cols, bits));
            tally.travel(messages, 0);
        });
        let mut share = together(world, call.space(rows, cols, bits))?;
        let part = LocalPart { distribution: &self.distribution, local: input.view() };
        part.redistribute_into(world, &to, &mut share)?;
        ranks.drop_input(input);
        Ok(Rows::Moved(share))
    }

    /// Takes in the right sides of a solve, and runs `work` on them in the context that it is given. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn solve(
        &self,
        ranks: &Ranks<'_>,
        work: impl FnOnce(&Context, LocalPart<'_>) -> sunzi::Result<LocalSolution>,
    ) -> Outcome<()> {
        let Ranks { call, world, .. } = *ranks;
        // SAFETY: by contract, for all below.
        unsafe {
            let input = together(world, call.read(&self.local, Part::All))?;
            // The copy makes room for the result.
            call.release_bytes(input.copied_bytes());
            let copied = input.copied_bytes();
            let found = work(&*ranks.context()?, LocalPart { distribution: &self.distribution, local: input.view() });
            call.keep_input(input);
            self.give_solution(ranks, call.done(found)?, copied)
        }
    }

    /// Stores a solution that was found while a copy of the right sides of `copied` bytes existed. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn give_solution(&self, ranks: &Ranks<'_>, solution: LocalSolution, copied: u64) -> Outcome<()> {
        let bits = solution.precision_bits();
        // SAFETY: by contract.
        let placed = unsafe { self.placed_bytes(bits) };
        let messages = self.more_messages(ranks.world, bits);
        ranks.call.count(|tally| match tally.keeps() {
            true => tally.at_most(solution.planned_bytes() + copied.max(placed) + messages),
            false => {
                // The memory in which the solve worked is freed when the result is stored.
                tally.at_most(solution.planned_bytes() + copied);
                tally.travel(solution.travel_bytes(ranks.world, &self.distribution), solution.bytes() + placed);
            }
        });
        let fill = |local: MatrixViewMut<'_>| solution.fill_local(ranks.world, &self.distribution, local);
        ranks.call.note_solution(&solution);
        // SAFETY: by contract.
        unsafe { self.store(ranks, None, solution.precision_bits(), fill) }?;
        solution.give_back(&ranks.call.context());
        Ok(())
    }

    /// Stores a matrix in tiles, or one triangle of it. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn give(&self, ranks: &Ranks<'_>, triangle: Option<Triangle>, tiles: &DistMatrix) -> Outcome<()> {
        let uplo = triangle.map(|triangle| match triangle {
            Triangle::Lower | Triangle::StrictLower | Triangle::Diagonal => Uplo::Lower,
            Triangle::Upper | Triangle::StrictUpper => Uplo::Upper,
        });
        let fill = |local: MatrixViewMut<'_>| tiles.fill_local(ranks.world, (&self.distribution, uplo), local);
        // SAFETY: by contract.
        unsafe { self.store(ranks, triangle, tiles.precision_bits(), fill) }
    }

    /// Stores the numbers that `fill` brings, of `precision_bits` bits: straight into the caller's memory where that
    /// has the library's form. Collective.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn store(
        &self,
        ranks: &Ranks<'_>,
        triangle: Option<Triangle>,
        precision_bits: u32,
        fill: impl FnOnce(MatrixViewMut<'_>) -> sunzi::Result<()>,
    ) -> Outcome<()> {
        let Ranks { call, world, .. } = *ranks;
        let (rows, cols) = (self.local.rows(), self.local.cols());
        // SAFETY: by contract no other thread uses the entries, and views of operands are gone.
        let placed = unsafe { self.local.place_for(precision_bits) };
        let mut own = None;
        let space = match placed {
            Some(view) => Ok(view),
            None => call.space(rows, cols, precision_bits).map(|matrix| own.insert(matrix).view_mut()),
        };
        fill(together(world, space)?)?;
        let stored = match own {
            // SAFETY: by contract.
            Some(own) => unsafe { call.write(&self.local, self.part(world.rank(), triangle), own) },
            None => Ok(()),
        };
        together(world, stored)
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

/// The triangle of a matrix, with its diagonal.
pub(super) fn triangle(uplo: Uplo) -> Triangle {
    if uplo == Uplo::Lower { Triangle::Lower } else { Triangle::Upper }
}
