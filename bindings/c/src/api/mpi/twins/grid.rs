//! The grids that the contexts in ScaLAPACK's descriptors stand for.

use crate::api::mpi::collective;
use crate::api::mpi::opening::Routine;
use crate::array::invalid;
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{SUNZI_COL_MAJOR, SUNZI_ROW_MAJOR, sunzi_status};
use std::ffi::c_int;
use sunzi::distributed::{GridOrder, RankGrid};

/// Says which grid a context of the BLACS stands for in calls on `ctx`: descriptors name it by `blacs_context`, their
/// second integer, which may be any number that the program gives its grids.
///
/// The grid has the first `grid_rows * grid_cols` ranks of the communicator, row by row (`SUNZI_ROW_MAJOR`, for
/// `blacs_gridinit(.., "R", ..)`) or column by column. Collective; shape and order must be the same on all ranks, the
/// number need not be: a rank beyond the grid may pass the -1 that the BLACS gave it, but for ranks beyond several
/// grids, which need a number for each. Saying it anew replaces it.
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
                let grid = grid_of(open.ranks(), (grid_rows, grid_cols), grid_order)?;
                for (name, number) in
                    [("grid_rows", grid_rows), ("grid_cols", grid_cols), ("grid_order", grid_order.into())]
                {
                    open.choice(name, Ok(number))?;
                }
                Ok(grid)
            },
            |call, _, (grid, _)| {
                call.owner().set_grid(blacs_context, grid);
                Ok(())
            },
        )
    }
}

fn grid_of(ranks: usize, (rows, cols): (i64, i64), order: i32) -> Outcome<(RankGrid, GridOrder)> {
    let order = match order {
        SUNZI_ROW_MAJOR => GridOrder::RowMajor,
        SUNZI_COL_MAJOR => GridOrder::ColumnMajor,
        other => {
            let known = "choose SUNZI_ROW_MAJOR (101) or SUNZI_COL_MAJOR (102)";
            return Err(invalid("grid_order", format!("{other} is no order of ranks: {known}")));
        }
    };
    let size = (rows as i128).checked_mul(cols.into());
    if rows < 1 || cols < 1 || size.is_none_or(|size| size > ranks as i128) {
        let message = format!("a grid of {rows} x {cols} ranks for {ranks} ranks");
        return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, "grid_rows", message));
    }
    Ok((RankGrid { rows: rows as usize, cols: cols as usize }, order))
}
