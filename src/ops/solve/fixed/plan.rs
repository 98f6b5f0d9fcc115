//! How a solve in fixed point is cut into tiles, and the memory it takes.

use crate::context::{Context, WorkspaceNeeds};
use crate::error::Result;
use crate::kernels::tiles::{PANEL_ROWS, TileEngine, TileShape};
use crate::ops::solve::cut::Layout;
use crate::store::Buffer;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that a call takes beside what is counted one by one: lists of tiles.
const CALL_BYTES: u64 = 16 << 10;

/// Tiles of one solve. Those of the solution are transposed: their rows are right sides.
pub(crate) struct Plan {
    /// Rows of the triangle.
    pub order: usize,
    /// Right sides.
    pub columns: usize,
    /// Bits after the point.
    pub fixed_bits: u32,
    /// The kernels.
    pub engine: Arc<dyn TileEngine>,
    /// Rows and columns of a tile of the triangle, a multiple of 8.
    pub tile_rows: usize,
    /// Right sides in a tile of the solution, a multiple of 8.
    pub right_rows: usize,
    /// Workers.
    pub threads: usize,
    /// Bytes of the memory limit that are taken.
    held_bytes: u64,
}

impl Plan {
    /// Tiles as large as the kernels prefer, or smaller where the memory limit asks for it; they never show in the
    /// solution.
    ///
    /// # Errors
    /// Those of [`Context::tile_engine`].
    pub fn new(ctx: &Context, order: usize, columns: usize, fixed_bits: u32, held_bytes: u64) -> Result<Plan> {
        let engine = ctx.tile_engine(ctx.kernel(), fixed_bits)?;
        let largest = whole_panels(engine.preferred_rows().min(order));
        let threads = ctx.threads().min(columns.div_ceil(PANEL_ROWS)).max(1);
        let plan = Plan { order, columns, fixed_bits, engine, tile_rows: largest, right_rows: 0, threads, held_bytes };
        let mut plan = plan.with_tile_rows(largest);
        while plan.tile_rows > PANEL_ROWS && ctx.admit(plan.bytes().saturating_add(held_bytes)).is_err() {
            let smaller = whole_panels(plan.tile_rows / 2);
            plan = plan.with_tile_rows(smaller);
        }
        Ok(plan)
    }

    /// The same with tiles of so many rows of the triangle, a multiple of 8.
    pub fn with_tile_rows(self, tile_rows: usize) -> Plan {
        // As many right sides for each worker, in tiles of about the same size.
        let each = self.columns.div_ceil(self.threads).max(1);
        let right_rows = whole_panels(each.div_ceil(each.div_ceil(tile_rows)));
        Plan { tile_rows, right_rows, ..self }
    }

    /// Rows of the triangle in tile row `index`.
    pub fn rows(&self, index: usize) -> Range<usize> {
        index * self.tile_rows..((index + 1) * self.tile_rows).min(self.order)
    }

    /// Tile rows of the triangle.
    pub fn tiles(&self) -> usize {
        self.order.div_ceil(self.tile_rows)
    }

    /// Right sides in tile row `index` of the solution.
    pub fn rights(&self, index: usize) -> Range<usize> {
        index * self.right_rows..((index + 1) * self.right_rows).min(self.columns)
    }

    /// Tile rows of the solution.
    pub fn strips(&self) -> usize {
        self.columns.div_ceil(self.right_rows)
    }

    /// Shape of a tile of the triangle.
    pub fn triangle_shape(&self, row: usize, col: usize) -> TileShape {
        TileShape { rows: self.rows(row).len(), cols: self.rows(col).len(), diagonal: row == col }
    }

    /// Shape of a tile of the solution: right sides by rows of the triangle.
    pub fn solution_shape(&self, strip: usize, row: usize) -> TileShape {
        TileShape { rows: self.rights(strip).len(), cols: self.rows(row).len(), diagonal: false }
    }

    /// Words of the tiles of a strip of right sides.
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

    /// Words of the largest tile row.
    pub fn largest_row_words(&self) -> usize {
        // The last row may have fewer rows, but more tiles, than the one before it.
        let tiles = self.tiles();
        (tiles.saturating_sub(2)..tiles).map(|row| self.row_words(row)).max().unwrap_or(0)
    }

    /// Words of scratch of one worker.
    pub fn scratch_words(&self) -> usize {
        self.engine.scratch_words(self.tile_rows)
    }

    /// What the call takes of kept memory.
    pub fn needs(&self) -> WorkspaceNeeds {
        WorkspaceNeeds {
            operand_bytes: Buffer::bytes_for(self.solution_words()),
            product_bytes: Buffer::bytes_for(self.largest_row_words()),
            workers: self.threads,
            worker_bytes: Buffer::bytes_for(self.scratch_words()),
            planned_bytes: self.bytes().saturating_add(self.held_bytes),
        }
    }

    /// Bytes of everything.
    pub fn bytes(&self) -> u64 {
        let tiles = (self.tiles() * (self.strips() + 1)) as u64;
        let numbers = self.order as u64 * (100 + u64::from(self.fixed_bits) / 8) + self.columns as u64 * 64;
        let scratch = Buffer::bytes_for(self.scratch_words()) + self.engine.call_bytes(self.tile_rows);
        Buffer::bytes_for(self.solution_words())
            + Buffer::bytes_for(self.largest_row_words())
            + self.threads as u64 * scratch
            + self.engine.diagonal_bytes(self.tile_rows)
            + self.engine.table_bytes()
            + numbers
            + tiles * 80
            + CALL_BYTES
    }
}

fn whole_panels(rows: usize) -> usize {
    rows.next_multiple_of(PANEL_ROWS).max(PANEL_ROWS)
}

/// Bytes that any try on so many right sides needs at least; 0 where none is made.
///
/// # Errors
/// Those of [`Context::tile_engine`].
pub fn least_bytes(ctx: &Context, layout: &Layout, columns: usize) -> Result<u64> {
    let Some(fixed_bits) = super::most_fixed_bits(layout).filter(|_| layout.takes_tiles()) else { return Ok(0) };
    Ok(Plan::new(ctx, layout.order, columns, fixed_bits, u64::MAX)?.bytes())
}
