//! The grids that the contexts in ScaLAPACK's descriptors stand for.

use crate::api::mpi::collective;
use crate::array::invalid;
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{SUNZI_COL_MAJOR, SUNZI_ROW_MAJOR, sunzi_status};
use std::ffi::c_int;
use sunzi::advanced::calls::Routine;
use sunzi::distributed::{GridOrder, RankGrid};

/// Defines the grid of ranks that a BLACS context stands for in calls on `ctx`. Descriptors refer to the grid by the
/// number `blacs_context` in their second entry; it may be any number that the program uses for its grids. Collective.
///
/// The grid consists of the first `grid_rows * grid_cols` ranks of the communicator, row by row (`SUNZI_ROW_MAJOR`, for
/// `blacs_gridinit(.., "R", ..)`) or column by column (`SUNZI_COL_MAJOR`). Shape and order must be the same on all
/// ranks. The number may differ: a rank outside the grid may pass the -1 that the BLACS returned; a rank outside
/// several grids needs a different number for each of them. A second call with the same number replaces the grid.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_grid(
    ctx: *const sunzi_context,
    blacs_context: c_int,
    grid_rows: i64,
    grid_cols: i64,
    grid_order: i32,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_grid", arguments: &["blacs_context", "grid_rows", "grid_cols", "grid_order"] },
            |open| {
                let grid = grid_of(open.ranks(), grid_rows, grid_cols, grid_order)?;
                for (name, number) in
                    [("grid_rows", grid_rows), ("grid_cols", grid_cols), ("grid_order", grid_order.into())]
                {
                    open.choice(name, Ok(number))?;
                }
                Ok(grid)
            },
            |call, _, (grid, order), _| {
                call.owner().set_grid(blacs_context, grid, order);
                Ok(())
            },
        )
    }
}

fn grid_of(ranks: usize, rows: i64, cols: i64, order: i32) -> Outcome<(RankGrid, GridOrder)> {
    let order = match order {
        SUNZI_ROW_MAJOR => GridOrder::RowMajor,
        SUNZI_COL_MAJOR => GridOrder::ColumnMajor,
        other => {
            let known = "choose SUNZI_ROW_MAJOR (101) or SUNZI_COL_MAJOR (102)";
            return Err(invalid("grid_order", format!("{other} is not a valid value; {known}")));
        }
    };
    let size = (rows as i128).checked_mul(cols.into());
    if rows < 1 || cols < 1 || size.is_none_or(|size| size > ranks as i128) {
        let message = format!("a grid of {rows} x {cols} ranks does not fit {ranks} ranks");
        return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, "grid_rows", message));
    }
    Ok((RankGrid { rows: rows as usize, cols: cols as usize }, order))
}
