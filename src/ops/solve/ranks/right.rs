//! Right-hand sides of a solve over ranks in any distribution, and solutions as the ranks find them.

use crate::comm::{Said, Say, Transport, agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::tiles::PANEL_ROWS;
use crate::matrix::{Matrix, MatrixViewMut};
use crate::ops::distributed::DistMatrix;
use crate::ops::distribution::redistribute::{LocalPart, check_target};
use crate::ops::distribution::travel::travel_bytes;
use crate::ops::solve::ranks::columns::SolutionLayout;
use crate::tile::{Distribution, RankGrid, TileMap};

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
/// It stays on the ranks in whole columns, or on every rank if there are few columns, until
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

    /// Bytes of this rank's part, and of the memory kept with it until it is released.
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
    /// As [`DistMatrix::fill_local`]; [`Error::InvalidArgument`] for other ranks than those of the solve.
    pub fn fill_local(
        &self,
        group: &dyn Transport,
        distribution: &Distribution,
        local: MatrixViewMut<'_>,
    ) -> Result<()> {
        let (ranks, rank, size) = (self.distribution.grid.size(), group.rank(), group.size());
        let refusal = || {
            let message = format!("a solution of rank {} of {ranks} on rank {rank} of {size}", self.rank);
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

    /// The solution in the tiles of `like`, all of them, in the memory that `result` has where it is distributed so.
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
