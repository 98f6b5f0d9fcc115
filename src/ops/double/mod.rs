//! Cholesky factorisation of matrices of doubles on devices whose memory is smaller than the matrix.
//!
//! The tile algorithm of SDPARA on the task graph that big floats use: tiles live on the host, a device's memory is a
//! cache of them. Joins `runtime` (what to do next, what to move) and `drive` (streams and threads): one process is a
//! grid of one rank.
//! Promise: a small residual; a double has no fixed bits here, since devices sum in orders of their own.

mod devices;
mod on_device;
mod potrf;
mod report;
mod run;
mod tiles;

pub(in crate::ops) use devices::{DeviceChoices, DeviceTiles, UnderWay};
pub use report::{DeviceShare, DoubleReport};
pub(in crate::ops) use run::failure;
pub(in crate::ops) use tiles::HostTiles;

use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::runtime::{Eviction, Policy};
use crate::tile::TileMap;
use std::sync::Arc;

/// Choices of a factorisation of doubles.
#[derive(Clone, Debug)]
pub struct DoubleOptions {
    /// Rows of a tile; `None` for about 24 tiles a side, of 64 to 2048 rows.
    pub tile_rows: Option<usize>,
    /// Which task a device takes next.
    pub policy: Policy,
    /// Which tile leaves a device's memory.
    pub eviction: Eviction,
    /// Bytes of each device's memory that tiles may take; `None` for nearly all that is free.
    pub device_bytes: Option<u64>,
    /// Streams of each device: 3 overlap uploads, work and downloads; 2 overlap copies and work; 1 overlaps nothing.
    pub streams: usize,
    /// Tasks that a device has to work on while the host factors a diagonal tile.
    pub lookahead: usize,
    /// Who owns a tile, where there are several devices.
    pub layout: DeviceLayout,
}

impl Default for DoubleOptions {
    fn default() -> DoubleOptions {
        DoubleOptions {
            tile_rows: None,
            policy: Policy::default(),
            eviction: Eviction::default(),
            device_bytes: None,
            streams: 3,
            lookahead: 16,
            layout: DeviceLayout::default(),
        }
    }
}

/// Who owns a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeviceLayout {
    /// 2D block-cyclic on a grid of devices.
    #[default]
    Grid,
    /// Tile column `j` belongs to device `j` modulo their number.
    Columns,
}

/// The lower triangular `L` with `A = L L^T` for a symmetric positive definite `A` of doubles, on devices.
///
/// Shapes: `a` is `order x order`, column-major; its lower triangle is read, and becomes that of `L` at the very end,
/// so that every error leaves `a` as it was. What lies above the diagonal is neither read nor written.
/// Accuracy: `|A - L L^T| <= c order eps |A|` with a small constant c, as any Cholesky factorisation in doubles.
/// Cost: `order^3 / 6` multiply-adds; host memory for a second lower triangle; device memory for at least 3 tiles.
/// Source: docs/decisions/014-tiles-on-devices.md.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] with the first leading minor that is not positive; [`Error::NotFinite`];
/// [`Error::ShapeMismatch`] where `a` does not have `order * order` entries; [`Error::NoDevice`] without devices;
/// [`Error::DeviceLimit`] with the least device memory that would do; [`Error::DeviceLost`]; [`Error::Device`];
/// [`Error::MemoryLimit`], [`Error::OutOfMemory`] for the host; [`Error::InvalidArgument`] for 0 rows of a tile, or for
/// 0 or more than 3 streams; [`Error::Cancelled`].
pub fn double_cholesky(
    ctx: &Context,
    devices: &[Arc<dyn Device>],
    order: usize,
    a: &mut [f64],
    options: &DoubleOptions,
) -> Result<DoubleReport> {
    if order.checked_mul(order) != Some(a.len()) {
        let (left_rows, left_cols) = (order, order);
        let (right_rows, right_cols) = (a.len(), 1);
        let operation = "cholesky of doubles";
        return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
    }
    if devices.is_empty() {
        return Err(Error::NoDevice("none was given".into()));
    }
    if !(1..=3).contains(&options.streams) {
        return Err(Error::InvalidArgument(format!("{} streams: choose 1 to 3", options.streams)));
    }
    let tile_rows = options.tile_rows.unwrap_or_else(|| order.div_ceil(24).next_multiple_of(64).clamp(64, 2048));
    if tile_rows == 0 {
        return Err(Error::InvalidArgument("a tile of 0 rows: choose 1 or more".into()));
    }
    run::run(ctx, devices, a, TileMap::symmetric(order, tile_rows.min(order.max(1))), options)
}
