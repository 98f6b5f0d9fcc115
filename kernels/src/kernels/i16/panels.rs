//! Products of panels that hold pairs of rows: nothing is copied.
//!
//! A vector of the left operand is joined of two panels as it is loaded, the integers of the right one are spread from
//! where they lie. Strips of the left operand stay in the second-level cache while all columns are multiplied with
//! them, and meanwhile the operands of the next product, which the caller names, are fetched there.
#![forbid(unsafe_code)]

use super::lanes::{I16Task, Lanes};
use super::micro::{COLUMNS, FoldedPrime, I16Tile, PanelStrip, TileFactors, blocks};
use super::product::strip_panels;
use crate::kernels::area::Target;
use crate::kernels::form::Form;
use crate::kernels::{NextRows, PanelRows};
use crate::plan::{BLOCK, BLOCK_WORDS};
use std::ops::Range;

/// `C := C + sum of X^T Y` or `C := sum of X^T Y` on the blocks of `target`.
pub struct MultiplyPanels<'a> {
    /// The prime.
    pub field: FoldedPrime,
    /// Panels that give the rows of C.
    pub x: &'a [PanelRows<'a>],
    /// Panels that give the columns of C, one for each of `x`.
    pub y: &'a [PanelRows<'a>],
    /// Rows of each: even, or all from the first one on.
    pub depth: usize,
    /// The operands that are multiplied next.
    pub next: NextRows<'a>,
    /// Its destination: operands and plane begin together.
    pub target: &'a Target,
    /// The blocks of the target.
    pub c: &'a mut [i16],
    /// Whether the product is added to C.
    pub adds: bool,
}

/// The rows of pairs of an operand, from the first one that is wanted of panel `panel` on, and those from one panel to
/// the next.
#[inline(always)]
fn pairs<'a>(rows: &PanelRows<'a>, panel: usize) -> (&'a [[i32; BLOCK]], usize) {
    let stride = Form::Pairs.panel_words(rows.of) / Form::Pairs.panel_words(1);
    (&bytemuck::cast_slice(rows.words)[panel * stride + rows.first / 2..], stride)
}

/// Prefetches part `part` of `parts` of some panels of operands, `depth` rows of each.
#[inline(always)]
fn fetch<L: Lanes>(rows: &[PanelRows<'_>], panels: Range<usize>, depth: usize, part: usize, parts: usize) {
    let count = rows.len() * panels.len();
    for at in part * count / parts..(part + 1) * count / parts {
        let (pairs, stride) = pairs(&rows[at / panels.len()], 0);
        let first = (panels.start + at % panels.len()) * stride;
        // Where an operand has no such panel there is nothing to fetch.
        let of_panel = pairs.get(first..(first + depth.div_ceil(2)).min(pairs.len())).unwrap_or_default();
        of_panel.iter().step_by(PAIRS_OF_LINE).for_each(|line| L::prefetch(line.as_ptr()));
    }
}

/// Rows of pairs in a cache line.
const PAIRS_OF_LINE: usize = 2;

/// The products of the panels from `row` on with panel `col`.
#[derive(Clone, Copy)]
struct OfTile<'a> {
    x: &'a [PanelRows<'a>],
    y: &'a [PanelRows<'a>],
    depth: usize,
    row: usize,
    panels: usize,
    col: usize,
}

impl<'a> TileFactors for OfTile<'a> {
    type Left = PanelStrip<'a>;

    #[inline(always)]
    fn stretches(&self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    fn stretch(&self, number: usize) -> (PanelStrip<'a>, &[[i32; COLUMNS]]) {
        let (left, stride) = pairs(&self.x[number], self.row);
        let right = pairs(&self.y[number], self.col).0;
        (PanelStrip { pairs: left, stride, panels: self.panels }, &right[..self.depth.div_ceil(2)])
    }
}

impl I16Task for MultiplyPanels<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let MultiplyPanels { field, x, y, depth, next, target, c, adds } = self;
        let whole = |rows: &PanelRows<'_>| rows.first + depth == rows.of;
        assert!(x.len() == y.len() && (depth.is_multiple_of(2) || x.iter().chain(y).all(whole)));
        assert!(x.iter().chain(y).all(|rows| rows.first.is_multiple_of(2)));
        let (columns, mut tile, rows) = (target.columns(), I16Tile::new(), target.row_window.end);
        let first = target.grid.first_row(columns.start).max(target.row_window.start).min(rows);
        let parts = columns.len() * (rows - first).div_ceil(L::WIDTH / BLOCK * V);
        let (mut strip, mut part) = (first..first + strip_panels::<L, V>(rows - first), 0);
        while !strip.is_empty() {
            let after = strip.end..strip.end + strip_panels::<L, V>(rows - strip.end);
            for (number, col) in columns.clone().enumerate() {
                match after.is_empty() {
                    false => fetch::<L>(x, after.clone(), depth, number, columns.len()),
                    true => fetch::<L>(next.x, 0..L::WIDTH / BLOCK * V, depth, number, columns.len()),
                }
                fetch::<L>(next.y, columns.clone(), depth, part.min(parts - 1), parts);
                part += 1;
                let (run, block) = target.run(col, &strip);
                if run.is_empty() {
                    continue;
                }
                let out = &mut c[block * BLOCK_WORDS..][..run.len() * BLOCK_WORDS];
                out.chunks(BLOCK_WORDS / 2).for_each(|line| L::prefetch(line.as_ptr()));
                let factors = OfTile { x, y, depth, row: run.start, panels: run.len(), col };
                let vectors = run.len().div_ceil(L::WIDTH / BLOCK);
                blocks::<L, V, C>(vectors, factors, &field, &mut tile, 0, bytemuck::cast_slice_mut(out), adds);
            }
            strip = after;
        }
    }
}
