//! Matrices over ranks: their descriptions, and how they get into the library's tiles and back.

use super::{Ranks, check_same, together};
use crate::array::{Operand, Part, Triangle, invalid};
use crate::call::{Call, Input};
use crate::failure::{Failure, Outcome};
use crate::types::*;
use std::ffi::c_int;
use sunzi::comm::Reduction;
use sunzi::distributed::{
    Along, Axis, DistMatrix, Distribution, GridOrder, LocalPart, LocalSolution, RankGrid, TileMap,
};
use sunzi::{Matrix, MatrixView, MatrixViewMut, Uplo};

/// Whole rows, as many as each rank's `local` has, in the order of the ranks; a matrix on one rank alone is one of
/// which the others have no rows. `size` is the number of ranks.
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

/// A matrix of ScaLAPACK: of the nine integers of its descriptor M, N, MB, NB, RSRC and CSRC count. `local` has as many
/// rows and columns as `numroc` says; the grid is that of the descriptor's context, with its ranks in the order
/// `grid_order`: `SUNZI_ROW_MAJOR` for `blacs_gridinit(.., "R", ..)`.
///
/// # Safety
/// `desc` points to nine integers.
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

/// A `DistMatrix` of Elemental, `rows x cols`: `col_dist` and `row_dist` are its `ColDist` and `RowDist` as
/// `SUNZI_ALONG_...`, `col_align` and `row_align` its `ColAlign()` and `RowAlign()`; `local` is its `Matrix()`. The
/// grid numbers its ranks column by column, as Elemental's do where nothing else is said.
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

/// The numbers of a description, before the ranks have told each other of their parts.
struct Told {
    local: Operand,
    grid: RankGrid,
    order: GridOrder,
    axes: [(i64, Option<Along>, usize, usize); 2],
}

impl Told {
    /// # Safety
    /// The header's rules.
    unsafe fn new(name: &'static str, matrix: *const sunzi_dist_matrix) -> Outcome<Told> {
        // SAFETY: null or live by contract.
        let Some(matrix) = (unsafe { matrix.as_ref() }) else { return Err(Failure::null(name)) };
        // SAFETY: by contract.
        let local = unsafe { Operand::new(name, &matrix.local) }?;
        let count = |value: i64, what: &str| {
            let refuse = || invalid(name, format!("{what} is {value}"));
            usize::try_from(value).ok().filter(|&value| value <= u32::MAX as usize).ok_or_else(refuse)
        };
        let along = |value: i32, what: &str| match value {
            SUNZI_ALONG_NONE => Ok(None),
            SUNZI_ALONG_GRID_ROW => Ok(Some(Along::GridRow)),
            SUNZI_ALONG_GRID_COL => Ok(Some(Along::GridCol)),
            SUNZI_ALONG_COL_MAJOR => Ok(Some(Along::ColumnMajor)),
            SUNZI_ALONG_ROW_MAJOR => Ok(Some(Along::RowMajor)),
            other => Err(invalid(name, format!("{what} is {other}: choose SUNZI_ALONG_NONE (0) to _ROW_MAJOR (4)"))),
        };
        let order = match matrix.grid_order {
            SUNZI_ROW_MAJOR => GridOrder::RowMajor,
            SUNZI_COL_MAJOR => GridOrder::ColumnMajor,
            other => {
                return Err(invalid(name, format!("grid_order is {other}: choose SUNZI_ROW_MAJOR or SUNZI_COL_MAJOR")));
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
        Ok(Told { local, grid, order, axes: [rows, cols] })
    }
}

impl DistOperand {
    /// Checks what all ranks say of a matrix. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn new(ranks: &Ranks<'_>, name: &'static str, matrix: *const sunzi_dist_matrix) -> Outcome<DistOperand> {
        let world = ranks.world;
        // SAFETY: by contract.
        let told = together(world, unsafe { Told::new(name, matrix) })?;
        let (local, size) = (told.local, world.size());
        let mut counts = vec![0; 2 * size];
        world.all_gather(&[local.rows() as u64, local.cols() as u64], &mut counts)?;
        let numbers = |along: Along| {
            // What a matrix of one row says of the numbers of the ranks.
            let pair = (Some(along), None);
            Distribution::entry_cyclic((1, 1), (told.grid, told.order), pair, (0, 0))
        };
        let axis = |which: usize| -> Outcome<(usize, Axis)> {
            let (length, along, block, first) = told.axes[which];
            let what = ["rows", "columns"][which];
            let of = |rank: usize| counts[2 * rank + which] as usize;
            let known = usize::try_from(length).ok();
            match along {
                None => Ok((known.unwrap_or_else(|| of(world.rank())), Axis::Whole)),
                Some(along) if block == 0 && told.grid.size() <= size => {
                    let deal = numbers(along);
                    let most = (0..told.grid.size()).filter_map(|rank| deal.numbers(rank)).map(|(at, _)| at + 1).max();
                    let mut parts = vec![None; most.unwrap_or(0)];
                    for rank in 0..told.grid.size() {
                        let Some((at, _)) = deal.numbers(rank) else { continue };
                        if parts[at].is_some_and(|part| part != of(rank)) {
                            let message = format!("ranks of one number have {:?} and {} {what}", parts[at], of(rank));
                            return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message));
                        }
                        parts[at] = Some(of(rank));
                    }
                    let mut starts = vec![0];
                    for part in parts {
                        starts.push(starts[starts.len() - 1] + part.unwrap_or(0));
                    }
                    let sum = starts[starts.len() - 1];
                    match known {
                        Some(known) if known != sum => {
                            let message = format!("the ranks have {sum} of {known} {what}");
                            Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message))
                        }
                        _ => Ok((sum, Axis::Consecutive { starts, along })),
                    }
                }
                Some(along) => match known {
                    Some(known) => Ok((known, Axis::Cyclic { block, first, offset: 0, along })),
                    None => Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, format!("{length} {what}"))),
                },
            }
        };
        let (rows, cols) = together(world, axis(0).and_then(|rows| Ok((rows, axis(1)?))))?;
        let distribution = Distribution {
            rows: rows.0,
            cols: cols.0,
            grid: told.grid,
            order: told.order,
            row_axis: rows.1,
            col_axis: cols.1,
        };
        let fits = distribution.check(size).map_err(|error| Failure::about(name, error)).and_then(|()| {
            let (rows, cols) = distribution.local_shape(world.rank());
            local.check_shape(rows, cols)
        });
        together(world, fits)?;
        check_same(world, name, &distribution)?;
        Ok(DistOperand { local, distribution })
    }

    /// Rows and columns of the whole matrix.
    pub fn shape(&self) -> (usize, usize) {
        (self.distribution.rows, self.distribution.cols)
    }

    /// Refuses another shape, and a local part that is no such matrix; the same on all ranks.
    pub fn check_shape(&self, rows: usize, cols: usize) -> Outcome<()> {
        if self.shape() == (rows, cols) {
            return Ok(());
        }
        let message = format!("{} x {} where {rows} x {cols} is needed", self.shape().0, self.shape().1);
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

    /// The precision of a result that goes here: the largest over all ranks. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn result_bits(&self, ranks: &Ranks<'_>, triangle: Option<Triangle>) -> Outcome<u32> {
        let Ranks { call, world } = *ranks;
        // SAFETY: by contract.
        let own = unsafe { call.result_bits(&self.local, self.part(world.rank(), triangle)) };
        let mut bits = [u64::from(together(world, own)?)];
        world.all_reduce(Reduction::Max, &mut bits)?;
        Ok(bits[0] as u32)
    }

    /// The matrix in tiles; of a triangle that alone is read, and what the map says is kept. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn take(&self, ranks: &Ranks<'_>, triangle: Option<Triangle>, map: TileMap) -> Outcome<DistMatrix> {
        let world = ranks.world;
        // SAFETY: by contract.
        let read = unsafe { ranks.call.read(&self.local, self.part(world.rank(), triangle)) };
        let input = together(world, read)?;
        let tiles = DistMatrix::from_local(world, &self.distribution, input.view(), map);
        ranks.call.keep_input(input);
        Ok(tiles?)
    }

    /// This rank's rows as `to` deals them out, where they lie if that is how. Collective.
    ///
    /// # Safety
    /// The header's rules; nobody writes to the entries while the rows are in use.
    pub unsafe fn take_rows<'b>(&self, ranks: &Ranks<'_>, to: &Distribution) -> Outcome<Rows<'b>> {
        let Ranks { call, world } = *ranks;
        // SAFETY: by contract.
        let input = together(world, unsafe { call.read(&self.local, Part::All) })?;
        let (placed, wanted) = (self.distribution.with_whole_rows(0), to.with_whole_rows(0));
        if placed.is_some() && placed == wanted {
            return Ok(Rows::Placed(input));
        }
        let to = Distribution { cols: self.distribution.cols, ..to.clone() };
        let (rows, cols) = to.local_shape(world.rank());
        let mut share = together(world, call.space((rows, cols), input.view().precision_bits()))?;
        let part = LocalPart { distribution: &self.distribution, local: input.view() };
        part.redistribute_into(world, &to, &mut share)?;
        call.keep_input(input);
        Ok(Rows::Moved(share))
    }

    /// The right sides of a solve, and what `work` finds for them. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn solve(
        &self,
        ranks: &Ranks<'_>,
        work: impl FnOnce(LocalPart<'_>) -> sunzi::Result<LocalSolution>,
    ) -> Outcome<()> {
        let Ranks { call, world } = *ranks;
        // SAFETY: by contract, for all below.
        unsafe {
            let input = together(world, call.read(&self.local, Part::All))?;
            let found = work(LocalPart { distribution: &self.distribution, local: input.view() });
            call.keep_input(input);
            self.give_solution(ranks, call.done(found)?)
        }
    }

    /// Stores a solution. Collective.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn give_solution(&self, ranks: &Ranks<'_>, solution: LocalSolution) -> Outcome<()> {
        let fill = |local: MatrixViewMut<'_>| solution.fill_local(ranks.world, &self.distribution, local);
        ranks.call.note(|report| report.precision_bits = solution.precision_bits().into());
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
            Triangle::Lower | Triangle::StrictLower => Uplo::Lower,
            Triangle::Upper | Triangle::StrictUpper => Uplo::Upper,
        });
        let fill = |local: MatrixViewMut<'_>| tiles.fill_local(ranks.world, (&self.distribution, uplo), local);
        // SAFETY: by contract.
        unsafe { self.store(ranks, triangle, tiles.precision_bits(), fill) }
    }

    /// Stores what `fill` brings, of so many bits: straight into the caller's memory where that has the library's form.
    /// Collective.
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
        let Ranks { call, world } = *ranks;
        let shape = (self.local.rows(), self.local.cols());
        // SAFETY: by contract nobody else uses the entries, and views of operands are gone.
        let placed = unsafe { self.local.place_for(precision_bits) };
        let mut own = None;
        let space = match placed {
            Some(view) => Ok(view),
            None => call.space(shape, precision_bits).map(|matrix| own.insert(matrix).view_mut()),
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

/// This rank's rows of an operand.
pub(crate) enum Rows<'a> {
    /// Where the caller has them, or a copy in the same order.
    Placed(Input<'a>),
    /// Moved here.
    Moved(Matrix),
}

impl Rows<'_> {
    /// The rows.
    pub fn view(&self) -> MatrixView<'_> {
        match self {
            Rows::Placed(input) => input.view(),
            Rows::Moved(share) => share.view(),
        }
    }

    /// Keeps the memory of copies for the next call.
    pub fn give_back(self, call: &Call<'_>) {
        match self {
            Rows::Placed(input) => call.keep_input(input),
            Rows::Moved(share) => call.keep(share),
        }
    }
}

/// The triangle of a matrix, with its diagonal.
pub(super) fn triangle(uplo: Uplo) -> Triangle {
    if uplo == Uplo::Lower { Triangle::Lower } else { Triangle::Upper }
}
