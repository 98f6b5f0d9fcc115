//! Descriptions of matrices over ranks.

use crate::types::*;
use std::ffi::c_int;

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
