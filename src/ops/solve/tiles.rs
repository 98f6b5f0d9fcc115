//! How a solve in fixed point is cut into tiles, and the memory it takes.

use crate::comm::window::{SharedWindow, WindowPieces};
use crate::context::{Context, MemoryBudget, Workspace, WorkspaceNeeds};
use crate::error::Result;
use crate::kernels::PlaneKernel;
use crate::kernels::max_plus::{DepthRow, PANEL};
use crate::kernels::tiles::{PANEL_ROWS, TileEngine, TileShape};
use crate::math::bound::{COMMON_WORKING_BITS, TRSM_FIXED_BITS};
use crate::ops::product::problem::Accuracy;
use crate::plan::overhead;
use crate::store::Buffer;
use std::ops::Range;
use std::sync::Arc;

/// Ranks of a node that make the tiles of a triangle together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeShared {
    /// Their number.
    pub ranks: usize,
    /// Rows and columns of the tiles in which all ranks have the factor.
    pub factor_tile: usize,
    /// Whether all ranks are on one node, so that no messages are needed.
    pub one_node: bool,
}

/// The problem of a try.
#[derive(Clone, Copy)]
pub(crate) struct TrySize {
    /// Rows of the triangle.
    pub order: usize,
    /// Right-hand sides.
    pub columns: usize,
    /// Bits after the point.
    pub fixed_bits: u32,
    /// Bytes that each row of a tile of the triangle costs where its rows come in pieces.
    pub piece_row_bytes: u64,
    /// Bytes of the messages that bring them.
    pub message_bytes: u64,
    /// Promised accuracy.
    pub accuracy: Accuracy,
    /// Ranks of this node, where these make the tiles of the triangle together.
    pub together: Option<NodeShared>,
    /// Another kernel than the context's, for first tries without a limit.
    pub kernel: Option<&'static dyn PlaneKernel>,
}

/// Tiles of one solve. The tiles of the solution are transposed: their rows are right-hand sides.
pub(crate) struct TilePlan {
    /// The problem.
    pub size: TrySize,
    /// The kernels.
    pub engine: Arc<dyn TileEngine>,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Rows and columns of a tile of the triangle, a multiple of 8.
    pub tile_rows: usize,
    /// Right-hand sides in a tile of the solution, a multiple of 8.
    pub right_rows: usize,
    /// Workers.
    pub threads: usize,
    /// The memory that it was planned for.
    memory: MemoryBudget,
}

impl TilePlan {
    /// Tiles as large as the kernels prefer, or smaller where `memory` requires it; their size never changes the
    /// solution.
    ///
    /// # Errors
    /// The errors of [`Context::tile_engine`].
    pub fn new(ctx: &Context, memory: MemoryBudget, size: TrySize) -> Result<TilePlan> {
        let TrySize { order, columns, fixed_bits, kernel, .. } = size;
        let threads = workers(ctx, columns);
        // Calls under a limit stay on the context's kernel.
        let (engine, kernel) = match kernel.filter(|_| memory.limit_bytes().is_none()) {
            Some(kernel) => (ctx.tile_engine(kernel, fixed_bits)?, kernel.name()),
            None => (ctx.tile_engine_for(fixed_bits, order)?, ctx.tile_kernel(fixed_bits).name()),
        };
        let largest = whole_panels(engine.preferred_rows().min(order));
        let plan = TilePlan { size, engine, kernel, tile_rows: largest, right_rows: 0, threads, memory };
        let plan = plan.with_tile_rows(largest);
        // Where none fits, the refusal names the least: because of padding and lists the smallest tiles do not always
        // need the least.
        let sizes = halved(largest).map(|rows| (rows, plan.bytes_with(rows)));
        let fitting = sizes.clone().find(|&(_, bytes)| memory.admit(bytes).is_ok());
        let chosen = fitting.or_else(|| sizes.min_by_key(|&(_, bytes)| bytes));
        Ok(plan.with_tile_rows(chosen.map_or(largest, |(rows, _)| rows)))
    }

    /// The same plan with tiles of `tile_rows` rows of the triangle, a multiple of 8.
    pub fn with_tile_rows(self, tile_rows: usize) -> TilePlan {
        // As many right sides for each worker, in tiles of about the same size.
        let each = self.size.columns.div_ceil(self.threads).max(1);
        let right_rows = whole_panels(each.div_ceil(each.div_ceil(tile_rows)));
        TilePlan { tile_rows, right_rows, ..self }
    }

    /// Bytes of everything with tiles of `tile_rows` rows.
    fn bytes_with(&self, tile_rows: usize) -> u64 {
        TilePlan { engine: Arc::clone(&self.engine), ..*self }.with_tile_rows(tile_rows).bytes()
    }

    /// Rows of the triangle in tile row `index`.
    pub fn rows(&self, index: usize) -> Range<usize> {
        index * self.tile_rows..((index + 1) * self.tile_rows).min(self.size.order)
    }

    /// The columns of some neighbouring tiles of the triangle.
    pub fn cols(&self, tiles: Range<usize>) -> Range<usize> {
        (tiles.start * self.tile_rows).min(self.size.order)..(tiles.end * self.tile_rows).min(self.size.order)
    }

    /// Tile rows of the triangle.
    pub fn tiles(&self) -> usize {
        self.size.order.div_ceil(self.tile_rows)
    }

    /// Right-hand sides in tile row `index` of the solution.
    pub fn rights(&self, index: usize) -> Range<usize> {
        index * self.right_rows..((index + 1) * self.right_rows).min(self.size.columns)
    }

    /// Tile rows of the solution.
    pub fn strips(&self) -> usize {
        self.size.columns.div_ceil(self.right_rows)
    }

    /// Shape of a tile of the triangle.
    pub fn triangle_shape(&self, row: usize, col: usize) -> TileShape {
        TileShape { rows: self.rows(row).len(), cols: self.rows(col).len(), diagonal: row == col }
    }

    /// Shape of a tile of the solution: right-hand sides by rows of the triangle.
    pub fn solution_shape(&self, strip: usize, row: usize) -> TileShape {
        TileShape { rows: self.rights(strip).len(), cols: self.rows(row).len(), diagonal: false }
    }

    /// Words of the tiles of a strip of right-hand sides.
    pub fn strip_words(&self, strip: usize) -> usize {
        (0..self.tiles()).map(|row| self.engine.tile_words(self.solution_shape(strip, row))).sum()
    }

    /// Words of the solution.
    pub fn solution_words(&self) -> usize {
        (0..self.strips()).map(|strip| self.strip_words(strip)).sum()
    }

    /// Words of the tiles of a tile row of the triangle.
    pub fn row_words(&self, row: usize) -> usize {
        (0..=row).map(|col| self.engine.operand_words(self.triangle_shape(row, col))).sum()
    }

    /// The largest number of the last two tile rows: the last may have fewer rows, but more tiles, than the one before.
    fn largest_of_rows(&self, of_row: impl Fn(usize) -> usize) -> usize {
        let tiles = self.tiles();
        (tiles.saturating_sub(2)..tiles).map(of_row).max().unwrap_or(0)
    }

    /// Words of the tiles of the largest tile row that this rank makes for itself: none where ranks make them together.
    pub fn own_row_words(&self) -> usize {
        if self.size.together.is_some() { 0 } else { self.largest_of_rows(|row| self.row_words(row)) }
    }

    /// The tiles of a tile row of the triangle from the tile `first` on, as pieces of the window of a node: for each
    /// rank the tiles that it makes.
    pub fn row_pieces(&self, row: usize, first: usize, makers: impl IntoIterator<Item = Range<usize>>) -> WindowPieces {
        let words = move |col: usize| self.engine.operand_words(self.triangle_shape(row, first + col));
        WindowPieces::new(makers.into_iter().map(|tiles| tiles.map(words)))
    }

    /// Words of the largest tile row that the ranks of a node make together, for any assignment of tiles to ranks.
    pub fn window_words(&self) -> usize {
        let words = |row: usize| self.row_pieces(row, 0, std::iter::once(0..row + 1)).total_words();
        if self.size.together.is_some() { self.largest_of_rows(words) } else { 0 }
    }

    /// Most entries of the triangle that the ranks of a node see at a time, where they make its tiles together.
    pub fn most_strip_entries(&self) -> usize {
        self.tile_rows.min(self.size.order) * self.size.order
    }

    /// Bytes of the entries of a tile row, or of this rank's part of the node's entries and of their tiles.
    fn piece_bytes(&self) -> u64 {
        let Some(NodeShared { ranks, factor_tile, one_node }) = self.size.together else {
            return self.tile_rows as u64 * self.size.piece_row_bytes + self.size.message_bytes;
        };
        let entry_bytes = self.size.piece_row_bytes.div_ceil(self.size.order.max(1) as u64) as usize;
        let windows = [self.most_strip_entries() * entry_bytes.div_ceil(8), self.window_words()];
        let windows =
            windows.into_iter().map(|words| SharedWindow::bytes_for(words).div_ceil(ranks as u64)).sum::<u64>();
        // A column of the row of tiles, or a row of its transpose, in each tile of the factor that it goes through.
        let runs = self.size.order * (self.tile_rows / factor_tile + 2);
        windows + runs as u64 * overhead::RUN + if one_node { 0 } else { self.size.message_bytes }
    }

    /// Words of scratch of one worker.
    pub fn scratch_words(&self) -> usize {
        self.engine.scratch_words(self.tile_rows)
    }

    /// Gives back kept memory that exceeds the plan.
    pub fn trim(&self, workspace: &mut Workspace) {
        workspace.trim(self.memory, &self.needs());
    }

    /// The kept memory that the call uses.
    pub fn needs(&self) -> WorkspaceNeeds {
        WorkspaceNeeds {
            operand_bytes: Buffer::bytes_for(self.solution_words()),
            product_bytes: Buffer::bytes_for(self.own_row_words()),
            workers: self.threads,
            worker_bytes: Buffer::bytes_for(self.scratch_words()),
            planned_bytes: self.bytes(),
        }
    }

    /// Bytes of the depths of all unknowns and of a tile row of the triangle, for accuracy entry by entry.
    fn depth_bytes(&self) -> u64 {
        let panels = self.strips() * self.right_rows.div_ceil(PANEL) + self.tile_rows.div_ceil(PANEL);
        let bytes = (panels as u64).saturating_mul((self.size.order * size_of::<DepthRow>()) as u64);
        if self.size.accuracy == Accuracy::Entrywise { bytes } else { 0 }
    }

    /// Bytes of everything.
    pub fn bytes(&self) -> u64 {
        let tiles = (self.tiles() * (self.strips() + 1)) as u64;
        let numbers =
            self.size.order as u64 * (100 + u64::from(self.size.fixed_bits) / 8) + self.size.columns as u64 * 64;
        let scratch = Buffer::bytes_for(self.scratch_words()) + self.engine.call_bytes(self.tile_rows);
        Buffer::bytes_for(self.solution_words())
            + Buffer::bytes_for(self.own_row_words())
            + self.threads as u64 * scratch
            + self.engine.diagonal_bytes(self.tile_rows)
            + self.engine.table_bytes()
            + self.piece_bytes()
            + self.depth_bytes()
            + numbers
            + tiles * overhead::SOLVE_TILE
            + overhead::CALL
    }
}

/// The most rows of a piece of the triangle that `memory` has room for where there are no right-hand sides, the fewest
/// where it has room for none.
pub(crate) fn piece_rows(memory: MemoryBudget, size: &TrySize) -> usize {
    let bytes = |rows: usize| (rows as u64).saturating_mul(size.piece_row_bytes).saturating_add(size.message_bytes);
    let mut sizes = halved(whole_panels(size.order));
    sizes.find(|&rows| memory.admit(bytes(rows)).is_ok()).unwrap_or(PANEL_ROWS)
}

/// Whole panels of `largest` rows, then of half as many each time, down to one.
fn halved(largest: usize) -> impl Iterator<Item = usize> + Clone {
    let smaller = |&rows: &usize| (rows > PANEL_ROWS).then(|| whole_panels(rows / 2));
    std::iter::successors(Some(largest), smaller)
}

fn whole_panels(rows: usize) -> usize {
    rows.next_multiple_of(PANEL_ROWS).max(PANEL_ROWS)
}

/// The numbers of additional bits that a solve tries, beyond the `working_bits` of the unknowns. Each try has twice the
/// additional bits of the try before, up to half of `working_bits`; with more bits the solve by parts costs less.
pub(crate) fn tries(working_bits: u32, first_bits: i64) -> impl Iterator<Item = u32> {
    let most = (working_bits / 2).max(2 * TRSM_FIXED_BITS);
    let fits = move |&bits: &u32| bits <= most && working_bits + bits <= COMMON_WORKING_BITS;
    let first = u32::try_from(first_bits).ok();
    std::iter::successors(first, |bits| bits.checked_mul(2)).take_while(fits)
}

/// The additional bits of the first try, where the unknowns may exceed their right-hand sides by `growth` bits: a
/// multiple of [`TRSM_FIXED_BITS`]. Entrywise accuracy takes twice as many, since a row may be smaller than the scale
/// of its column by the same factor.
pub(crate) fn first_bits(growth: i64, accuracy: Accuracy) -> i64 {
    let step = i64::from(TRSM_FIXED_BITS);
    let bits = ((growth + 10).max(0) / step + 1) * step;
    if accuracy == Accuracy::Entrywise { 2 * bits } else { bits }
}

/// The most bits after the point that a solve may try; `None` where it tries none.
pub(crate) fn most_fixed_bits(working_bits: u32) -> Option<u32> {
    let all =
        (1..).map(|step| step * TRSM_FIXED_BITS).take_while(|&bits| tries(working_bits, bits.into()).next().is_some());
    all.last().map(|bits| working_bits + bits)
}

/// Workers of a try on `columns` right-hand sides.
pub(crate) fn workers(ctx: &Context, columns: usize) -> usize {
    ctx.threads().min(columns.div_ceil(PANEL_ROWS)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_without_right_sides_takes_pieces_that_fit() {
        let size = TrySize {
            order: 100,
            columns: 0,
            fixed_bits: 64,
            piece_row_bytes: 1000,
            message_bytes: 500,
            accuracy: Accuracy::Norm,
            together: None,
            kernel: None,
        };
        let limits = [None, Some(104_500), Some(104_499), Some(16_500), Some(16_499), Some(0)];
        let rows = limits.map(|limit_bytes| piece_rows(MemoryBudget::new(limit_bytes), &size));
        assert_eq!(rows, [104, 104, 56, 16, 8, 8]);
    }

    #[test]
    fn tries_double_up_to_half_the_precision() {
        assert_eq!(tries(1031, 32).collect::<Vec<_>>(), [32, 64, 128, 256, 512]);
        assert_eq!(tries(60, 32).collect::<Vec<_>>(), [32, 64]);
        assert_eq!(tries(1031, 320).collect::<Vec<_>>(), [320]);
        assert_eq!(tries(5030, 32).count() + tries(100, 1 << 40).count(), 0);
        for bits in [60, 1031, 4000, 5000, 5030] {
            let all = (1..200).flat_map(|step| tries(bits, step * 32));
            assert_eq!(most_fixed_bits(bits), all.max().map(|extra| bits + extra), "{bits} bits");
        }
    }
}
