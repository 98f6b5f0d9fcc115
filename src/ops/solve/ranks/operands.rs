//! Operands of a solve over ranks: right-hand sides in any distribution, and the data of a factor in tiles that all
//! ranks have: the norms of its rows and columns, and its diagonal; and solutions as the ranks find them.

use crate::comm::{Reduction, Said, Say, Transport, agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::tiles::PANEL_ROWS;
use crate::math::float::{FloatRef, Head};
use crate::math::scale::square_bound;
use crate::matrix::{MAXIMUM_EXPONENT, Matrix, MatrixViewMut, check_exponent};
use crate::ops::distributed::DistMatrix;
use crate::ops::distribution::redistribute::{LocalPart, check_target};
use crate::ops::distribution::travel::travel_bytes;
use crate::ops::product::scale::{ColumnHeads, Columns, exponent_of, exponents_over_ranks};
use crate::ops::solve::ranks::SolutionLayout;
use crate::ops::solve::triangle::scaled_head;
use crate::site::Site;
use crate::tile::{Distribution, RankGrid, TileId, TileMap};
use std::ops::Range;

/// Right-hand sides over ranks.
#[derive(Clone, Copy)]
pub(super) enum RightSides<'a> {
    /// In tiles.
    Tiles(&'a DistMatrix),
    /// As a caller has them, with the largest precision over all ranks.
    Local(LocalPart<'a>, u32),
}

impl<'a> RightSides<'a> {
    /// The right-hand sides of a caller. Collective.
    ///
    /// # Errors
    /// The errors of [`LocalPart::check`].
    pub fn of_local(world: &dyn Transport, part: LocalPart<'a>) -> Result<RightSides<'a>> {
        Ok(RightSides::Local(part, part.check(world)?))
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            RightSides::Tiles(tiles) => (tiles.map().rows, tiles.map().cols),
            RightSides::Local(part, _) => (part.distribution.rows, part.distribution.cols),
        }
    }

    /// Bits that hold every entry of every rank.
    pub fn precision_bits(&self) -> u32 {
        match self {
            RightSides::Tiles(tiles) => tiles.precision_bits(),
            RightSides::Local(_, precision_bits) => *precision_bits,
        }
    }

    /// Refuses tiles of another group. Collective.
    pub fn check_group(&self, world: &dyn Transport) -> Result<()> {
        match self {
            RightSides::Tiles(tiles) => tiles.check_group(world),
            RightSides::Local(..) => Ok(()),
        }
    }

    /// The layout of their solutions: that of the right-hand sides.
    pub fn target(&self) -> SolutionLayout {
        match self {
            RightSides::Tiles(tiles) => SolutionLayout::Tiles(TileMap { triangle: None, ..*tiles.map() }),
            RightSides::Local(..) => SolutionLayout::Caller,
        }
    }

    /// This rank's part in another distribution, into the memory of `local`. Collective.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Transport`]; on every rank.
    pub fn bring(&self, world: &dyn Transport, to: &Distribution, local: &mut Matrix) -> Result<()> {
        let (rows, cols) = to.local_shape(world.rank());
        agree(world, local.reshape(rows, cols, self.precision_bits()))?;
        match self {
            RightSides::Tiles(tiles) => tiles.fill_local(world, (to, None), local.view_mut()),
            RightSides::Local(part, _) => part.bring(world, to, local.view_mut()),
        }
    }

    /// All of them on every rank. Collective.
    ///
    /// # Errors
    /// As [`RightSides::bring`].
    pub fn everywhere(&self, world: &dyn Transport) -> Result<Matrix> {
        match self {
            RightSides::Tiles(tiles) => tiles.everywhere(world),
            RightSides::Local(part, _) => {
                // Each rank sends an even share of the rows to all others, so that a rank which has all of them need
                // not send all.
                let ((rows, cols), ranks) = (self.shape(), world.size());
                let tile_size = rows.div_ceil(ranks).max(1).next_multiple_of(PANEL_ROWS);
                let map = TileMap { rows, cols, tile_size, grid: RankGrid { rows: ranks, cols: 1 }, triangle: None };
                DistMatrix::from_local(world, part.distribution, part.local, map)?.everywhere(world)
            }
        }
    }
}

impl Say for RightSides<'_> {
    fn say(&self, said: &mut Said) {
        match self {
            RightSides::Tiles(tiles) => (0u64, tiles.map()).say(said),
            RightSides::Local(part, _) => (1u64, part.distribution).say(said),
        }
    }
}

/// A solution in the distribution in which it was computed: the result of [`crate::distributed::solve_local`] and
/// [`crate::distributed::trsm_local`].
///
/// The solution stays on the ranks in whole columns, or on every rank if there are few columns, until
/// [`LocalSolution::fill_local`] copies it to the caller's memory.
#[derive(Debug)]
pub struct LocalSolution {
    distribution: Distribution,
    /// This rank.
    rank: usize,
    /// This rank's part.
    part: Matrix,
    /// Memory of the right-hand sides, kept with that of the solution for the next call.
    spare: Option<Matrix>,
    planned_bytes: u64,
}

impl LocalSolution {
    /// Whole columns on each rank, and the memory of their right-hand sides for reuse.
    pub(super) fn of_columns(distribution: Distribution, rank: usize, part: Matrix, spare: Matrix) -> LocalSolution {
        LocalSolution { distribution, rank, part, spare: Some(spare), planned_bytes: 0 }
    }

    /// The whole solution, the same on every rank of `world`.
    pub(super) fn on_every_rank(world: &dyn Transport, whole: Matrix) -> LocalSolution {
        let distribution = Distribution::replicated((whole.rows(), whole.cols()), world.size());
        LocalSolution { distribution, rank: world.rank(), part: whole, spare: None, planned_bytes: 0 }
    }

    /// The solution of a call whose plan allowed for `planned_bytes` bytes on this rank.
    pub(super) fn planned(self, planned_bytes: u64) -> LocalSolution {
        LocalSolution { planned_bytes, ..self }
    }

    /// Bytes that the plan of the solve allowed on this rank, in addition to factor and right-hand sides, including its
    /// columns of the solution. Without a memory limit, right-hand sides that need more bits than planned need more
    /// memory.
    pub fn planned_bytes(&self) -> u64 {
        self.planned_bytes
    }

    /// Bits of every significand.
    pub fn precision_bits(&self) -> u32 {
        self.part.precision_bits()
    }

    /// Bytes of this rank's part, and of the memory that is kept with the part until it is released.
    pub fn bytes(&self) -> u64 {
        self.part.bytes() + self.spare.as_ref().map_or(0, Matrix::bytes)
    }

    /// Bytes of the messages of this rank of `group` in [`LocalSolution::fill_local`].
    pub fn travel_bytes(&self, group: &dyn Transport, distribution: &Distribution) -> u64 {
        travel_bytes(group, &self.distribution, distribution, None, self.precision_bits())
    }

    /// Copies this rank's part in the distribution `distribution`, in the order of the indices, into the caller's
    /// memory, which must have exactly its shape and precision. Collective over the ranks of the solve; the content of
    /// `local` after an error is arbitrary. Memory: messages of 1 to 8 MiB to and from this rank.
    ///
    /// # Errors
    /// As [`DistMatrix::fill_local`]; [`Error::InvalidArgument`] if `group` does not have the ranks of the solve.
    pub fn fill_local(
        &self,
        group: &dyn Transport,
        distribution: &Distribution,
        local: MatrixViewMut<'_>,
    ) -> Result<()> {
        let (ranks, rank, size) = (self.distribution.grid.size(), group.rank(), group.size());
        let refusal = || {
            let message =
                format!("the solution belongs to rank {} of {ranks}, but is used on rank {rank} of {size}", self.rank);
            Err(Error::InvalidArgument(message))
        };
        agree(group, if (ranks, self.rank) == (size, rank) { Ok(()) } else { refusal() })?;
        let ((rows, cols), bits) = (distribution.local_shape(rank), self.precision_bits());
        agree(group, distribution.check(size))?;
        agree(group, check_target(rows, cols, bits, &local))?;
        self.as_part().bring(group, distribution, local)
    }

    /// Gives the memory to the next call with this context, if the context has no memory limit.
    pub fn give_back(self, ctx: &Context) {
        if let (Some(spare), None) = (self.spare, ctx.memory_bytes()) {
            ctx.workspace().columns = vec![spare, self.part];
        }
    }

    /// The whole solution in the tiles of `like`, in the memory of `result` if that has the same distribution.
    /// Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::from_local`].
    pub(super) fn into_tiles(
        self,
        ctx: &Context,
        world: &dyn Transport,
        like: &TileMap,
        result: &mut DistMatrix,
    ) -> Result<()> {
        let to = TileMap { triangle: None, ..*like };
        if self.spare.is_none() {
            *result = agreed(world, DistMatrix::of_whole(&self.part, to, world.rank()))?;
            return Ok(());
        }
        result.take_local(world, &self.distribution, self.part.view(), to)?;
        self.give_back(ctx);
        Ok(())
    }

    fn as_part(&self) -> LocalPart<'_> {
        LocalPart { distribution: &self.distribution, local: self.part.view() }
    }
}

/// The tiles of one rank on and below the diagonal of a factor.
pub(super) struct FactorTiles<'a> {
    pub map: TileMap,
    precision_bits: u32,
    rank: usize,
    /// The tiles of each row of tiles, from the left, with their columns of tiles.
    pub rows: Vec<Vec<(usize, &'a Matrix)>>,
    /// The tiles of each column of tiles, from the top, with their rows of tiles.
    pub cols: Vec<Vec<(usize, &'a Matrix)>>,
}

impl<'a> FactorTiles<'a> {
    /// The tiles of a square matrix; entries above the diagonal are not read.
    pub fn new(factor: &'a DistMatrix) -> FactorTiles<'a> {
        let map = *factor.map();
        let (mut rows, mut cols) = (vec![Vec::new(); map.tile_rows()], vec![Vec::new(); map.tile_cols()]);
        for (TileId { row, col }, tile) in factor.tiles().iter().filter(|(id, _)| id.col <= id.row) {
            rows[*row].push((*col, tile));
            cols[*col].push((*row, tile));
        }
        FactorTiles { map, precision_bits: factor.precision_bits(), rank: factor.rank(), rows, cols }
    }

    /// Rows of the factor.
    pub fn order(&self) -> usize {
        self.map.rows
    }

    /// This rank's tile on the diagonal in row `row` of tiles.
    pub fn diagonal(&self, row: usize) -> Option<&'a Matrix> {
        self.rows[row].last().filter(|(col, _)| *col == row).map(|(_, tile)| *tile)
    }

    /// The first zero on the diagonal, on all ranks. Collective.
    ///
    /// # Errors
    /// [`Error::Singular`], [`Error::Transport`].
    pub fn check_diagonal(&self, world: &dyn Transport) -> Result<()> {
        let is_zero = |(_, pivot): &(usize, Option<FloatRef<'_>>)| pivot.is_some_and(|pivot| pivot.head.is_zero());
        let first = self.pivots_of(self.rank).find(is_zero);
        // The largest distance from the end belongs to the first.
        let mut distance = [first.map_or(0, |(row, _)| (self.order() - row) as u64)];
        world.all_reduce(Reduction::Max, &mut distance)?;
        match distance[0] {
            0 => Ok(()),
            distance => Err(Error::Singular { index: self.order() - distance as usize }),
        }
    }

    /// Rows whose diagonal entries `rank` has, with the entries where it is this rank.
    fn pivots_of(&self, rank: usize) -> impl Iterator<Item = (usize, Option<FloatRef<'a>>)> + '_ {
        let tiles = (0..self.map.tile_rows()).filter(move |&at| self.map.owner(TileId { row: at, col: at }) == rank);
        tiles.flat_map(|tile| {
            let own = self.diagonal(tile);
            self.map.row_range(tile).enumerate().map(move |(at, row)| (row, own.map(|tile| tile.get(at, at))))
        })
    }

    /// The diagonal as a column, on all ranks. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`], [`Error::OutOfMemory`].
    pub fn pivots(&self, world: &dyn Transport) -> Result<Matrix> {
        let mut pivots = agreed(world, Matrix::zeros(self.order(), 1, self.precision_bits))?;
        let width = pivots.limbs_per_element();
        for rank in 0..self.map.grid.size() {
            let places = self.pivots_of(rank).collect::<Vec<_>>();
            if places.is_empty() {
                continue;
            }
            let mut words = Vec::with_capacity(places.len() * (1 + width));
            for value in places.iter().filter_map(|(_, pivot)| *pivot) {
                words.push(value.head.0);
                words.extend_from_slice(value.limbs);
            }
            words.resize(places.len() * (1 + width), 0);
            world.broadcast(rank, &mut words)?;
            let (heads, limbs) = pivots.parts_mut();
            for ((row, _), value) in places.iter().zip(words.chunks_exact(1 + width)) {
                heads[*row] = value[0];
                limbs[row * width..][..width].copy_from_slice(&value[1..]);
            }
        }
        Ok(pivots)
    }

    /// For each row the exponent of its norm. Collective.
    ///
    /// # Errors
    /// [`Error::Rank`] around [`Error::ExponentRange`] for an entry beyond what any conversion makes, with its place
    /// in the factor; [`Error::Transport`].
    pub fn row_exponents(&self, site: Site<'_>) -> Result<Vec<i64>> {
        let exponents = exponents_over_ranks(site, self.order(), &FactorRowNorms(self))?;
        let in_range = exponents.iter().all(|exponent| exponent.unsigned_abs() <= 2 * MAXIMUM_EXPONENT as u64);
        site.agree(if in_range { Ok(()) } else { self.check_range() })?;
        Ok(exponents)
    }

    /// For each column the exponent of its norm, where row `i` is scaled by `2^-scale[i]`. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn col_exponents(&self, site: Site<'_>, scale: Option<&[i64]>) -> Result<Vec<i64>> {
        exponents_over_ranks(site, self.order(), &ColumnHeads(|col| self.col_heads(col, scale)))
    }

    /// Calls `visit` with runs of heads that make up the rows `rows`, each with the number of its first row, counted
    /// from the first of these: in the order in which tiles hold them, down their columns.
    fn visit_rows(&self, rows: Range<usize>, visit: &mut dyn FnMut(usize, &[u64])) {
        let size = self.map.tile_size;
        for tile_row in rows.start / size..rows.end.div_ceil(size) {
            let top = tile_row * size;
            for &(tile_col, tile) in &self.rows[tile_row] {
                let (heads, height) = (tile.parts().0, tile.rows());
                for col in 0..tile.cols() {
                    let first = rows.start.max(top).max(tile_col * size + col);
                    let end = rows.end.min(top + height);
                    if first < end {
                        visit(first - rows.start, &heads[col * height + first - top..col * height + end - top]);
                    }
                }
            }
        }
    }

    fn col_heads<'s>(&'s self, col: usize, scale: Option<&'s [i64]>) -> impl Iterator<Item = Head> + 's {
        let size = self.map.tile_size;
        self.cols[col / size].iter().flat_map(move |&(row, tile)| {
            let first = col.saturating_sub(row * size);
            (first..tile.rows()).map(move |at| {
                let head = tile.get(at, col % size).head;
                scale.map_or(head, |scale| scaled_head(head, -scale[row * size + at]))
            })
        })
    }

    /// Refuses the first entry of this rank, row by row, beyond the range of all conversions.
    fn check_range(&self) -> Result<()> {
        let size = self.map.tile_size;
        for row in 0..self.order() {
            for &(tile_col, tile) in &self.rows[row / size] {
                let known = tile.cols().min(row + 1 - tile_col * size);
                for at in 0..known {
                    check_exponent(tile.get(row % size, at).head.exponent(), row, tile_col * size + at)?;
                }
            }
        }
        Ok(())
    }
}

/// The rows of a factor, as columns whose norms are wanted.
struct FactorRowNorms<'a>(&'a FactorTiles<'a>);

impl Columns for FactorRowNorms<'_> {
    fn group(&self, _cols: usize, _workers: usize) -> usize {
        self.0.map.tile_size
    }

    fn raise_largest(&self, first: usize, largest: &mut [i64]) {
        self.0.visit_rows(first..first + largest.len(), &mut |at, heads| {
            let of_run = largest[at..].iter_mut().zip(heads);
            of_run.for_each(|(largest, &head)| *largest = (*largest).max(exponent_of(head)));
        });
    }

    fn add_squares(&self, first: usize, largest: &[i64], sums: &mut [u128]) {
        self.0.visit_rows(first..first + largest.len(), &mut |at, heads| {
            let of_run = sums[at..].iter_mut().zip(&largest[at..]).zip(heads);
            of_run.for_each(|((sum, &largest), &head)| *sum += u128::from(square_bound(Head(head), largest)));
        });
    }
}
