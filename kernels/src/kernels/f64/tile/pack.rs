//! Operands of tile kernels in the order in which the register tile reads them.
//!
//! Strips of consecutive rows of the operand; inside a strip one group of rows per column. A strip with fewer rows is
//! filled up with zeros.
#![forbid(unsafe_code)]

use super::Tile;
use crate::kernels::f64::simd::LANES;
use std::ops::Range;

/// Rows `rows` and columns `cols` of `tile` as strips of `W` rows, the last one filled up with zeros; strip `s` starts
/// at word `s * W * cols.len()` of `out`.
#[inline(always)]
pub fn strips<const W: usize>(tile: Tile<'_>, rows: Range<usize>, cols: Range<usize>, out: &mut [f64]) {
    let strip_words = W * cols.len();
    for (k, col) in cols.enumerate() {
        let column = &tile.words[col * tile.stride..][rows.clone()];
        let (groups, rest) = column.as_chunks::<W>();
        for (s, group) in groups.iter().enumerate() {
            out[s * strip_words + k * W..][..W].copy_from_slice(group);
        }
        if !rest.is_empty() {
            let group = &mut out[groups.len() * strip_words + k * W..][..W];
            group[..rest.len()].copy_from_slice(rest);
            group[rest.len()..].fill(0.0);
        }
    }
}

/// As [`strips`] with strips of `R` vectors; the last one is only as many vectors wide as it needs.
#[inline(always)]
pub fn vectors<const R: usize>(tile: Tile<'_>, rows: Range<usize>, cols: Range<usize>, out: &mut [f64]) {
    let width = R * LANES;
    let whole = rows.len() / width * width;
    let middle = rows.start + whole;
    match R {
        3 => strips::<{ 3 * LANES }>(tile, rows.start..middle, cols.clone(), out),
        _ => strips::<LANES>(tile, rows.start..middle, cols.clone(), out),
    }
    let rest = &mut out[whole * cols.len()..];
    match (rows.end - middle).div_ceil(LANES) {
        0 => {}
        1 => strips::<LANES>(tile, middle..rows.end, cols, rest),
        2 => strips::<{ 2 * LANES }>(tile, middle..rows.end, cols, rest),
        _ => strips::<{ 3 * LANES }>(tile, middle..rows.end, cols, rest),
    }
}

/// The strips of `rows` rows: where each starts, and how many rows it has.
#[inline(always)]
pub fn ranges(rows: usize, width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(width).map(move |first| (first, width.min(rows - first)))
}
