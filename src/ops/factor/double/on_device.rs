//! The part of a device in a factorisation of doubles: its room for tiles, and the calls for each task.

use super::host::most_tile_bytes;
use crate::device::{Allowance, Device, Element, Gemm, GemmOperand, Region, Stream, Trsm};
use crate::drive::{TileStreams, slot_bytes};
use crate::error::Result;
use crate::runtime::{CholeskyGraph, Task, least_room_tiles};
use crate::tile::{TileId, TileMap};
use std::sync::Arc;

/// Strips of a tile on the diagonal that are updated each from its own diagonal on: only the fraction `(1 + 1 / strips)
/// / 2` of the product is computed.
const SYRK_STRIPS: usize = 4;

/// Narrower strips are not worth a product of their own.
const LEAST_STRIP_COLUMNS: usize = 32;

/// Streams with as much room as the limit and the device's memory allow, and at most for all tiles.
///
/// # Errors
/// [`Error::DeviceLimit`] with the least bytes that would do; [`Error::DeviceLost`].
pub(super) fn streams_of(
    device: &Arc<dyn Device>,
    tiling: &TileMap,
    allowance: &Allowance,
    streams: usize,
) -> Result<TileStreams<TileId>> {
    let slot = slot_bytes(most_tile_bytes(tiling)).max(1) as u64;
    let least = least_room_tiles(CholeskyGraph::of(tiling));
    let free_bytes = allowance.free_bytes(&**device);
    // A library that the device's driver loads takes some memory of its own.
    let limit_bytes = allowance.limit_bytes.map_or(free_bytes - free_bytes / 16, |bytes| bytes.min(free_bytes));
    let most = (limit_bytes / slot).min(CholeskyGraph::of(tiling).tile_count() as u64) as usize;
    if most < least {
        return Err(allowance.refusal(limit_bytes, least as u64 * slot));
    }
    TileStreams::new(device.clone(), most_tile_bytes(tiling), least..=most, streams)
}

/// Submits TRSM, SYRK or GEMM; the regions hold the inputs of the task in the graph's order, then its output.
///
/// # Errors
/// [`Error::DeviceLost`].
pub(super) fn submit(
    tiling: &TileMap,
    device: &dyn Device,
    stream: Stream,
    task: Task,
    regions: &[Region],
) -> Result<()> {
    let (m, n) = tiling.shape(CholeskyGraph::of(tiling).output(task));
    let operand = |region: &Region, ld: usize| GemmOperand { region: region.clone(), ld, stride: 0 };
    match (task, regions) {
        (Task::Trsm { .. }, [l, b]) => device.solve(stream, &Trsm { m, n, l: operand(l, n), b: operand(b, m) }),
        (Task::Gemm { k, .. }, [x, y, c]) => {
            let depth = tiling.row_range(k).len();
            device.multiply(stream, &take_off([m, n, depth], operand(x, m), operand(y, n), operand(c, m)))
        }
        (Task::Syrk { k, .. }, [x, c]) => {
            let depth = tiling.row_range(k).len();
            let width = n.div_ceil(SYRK_STRIPS).max(LEAST_STRIP_COLUMNS);
            for first in (0..n).step_by(width) {
                let x = operand(&x.from(first * size_of::<f64>()), m);
                let c = operand(&c.from((first * m + first) * size_of::<f64>()), m);
                let shape = [m - first, width.min(n - first), depth];
                device.multiply(stream, &take_off(shape, x.clone(), x, c))?;
            }
            Ok(())
        }
        _ => unreachable!("{task:?} with {} tiles is not for a device", regions.len()),
    }
}

/// `C := C - X Y^T` for `C` of `m x n` and the depth `k`.
fn take_off([m, n, k]: [usize; 3], a: GemmOperand, b: GemmOperand, c: GemmOperand) -> Gemm {
    let (batch, element) = (1, Element::F64);
    Gemm { element, m, n, k, a, b, c, batch, negate: true, accumulate: true, by_rows: true }
}
