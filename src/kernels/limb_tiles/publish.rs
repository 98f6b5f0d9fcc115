//! Finished integers to residues: operand panels, or the rows of a block of columns in one.

use super::LimbTiles;
use super::layout::{HEADER_WORDS, Layout};
use crate::kernels::PanelSource;
use crate::kernels::tiles::{EntrySource, PANEL_ROWS, TileShape, TileSource};
use crate::math::float::Head;
use crate::matrix::MatrixView;
use std::ops::Range;

/// Integers of the rows of a panel in some columns, as the plane kernel takes them in.
pub struct Publisher<'s> {
    /// Columns of each row.
    cols: usize,
    entry: usize,
    heads: &'s mut [u64],
    limbs: &'s mut [u64],
}

/// Exponents of two that the integers are scaled by: none.
const SHIFTS: [i64; PANEL_ROWS] = [0; PANEL_ROWS];

impl<'s> Publisher<'s> {
    /// Words of scratch for tiles of this shape, the plane kernel's own not counted.
    pub fn words(kernels: &LimbTiles, shape: TileShape) -> usize {
        let integers = PANEL_ROWS * shape.cols * kernels.slot_words();
        let magnitudes = (PANEL_ROWS + 1) * (2 + kernels.widths.entry);
        Publisher::words_for(kernels, shape.cols) + integers.max(magnitudes)
    }

    /// Words of scratch for so many columns.
    pub fn words_for(kernels: &LimbTiles, cols: usize) -> usize {
        PANEL_ROWS * cols * (1 + kernels.widths.entry)
    }

    /// For so many columns, in [`Publisher::words_for`] words.
    pub fn new(kernels: &LimbTiles, cols: usize, scratch: &'s mut [u64]) -> Publisher<'s> {
        let (heads, limbs) = scratch[..Publisher::words_for(kernels, cols)].split_at_mut(PANEL_ROWS * cols);
        Publisher { cols, entry: kernels.widths.entry, heads, limbs }
    }

    /// Sets an entry to a sign and limbs.
    #[inline]
    pub fn set(&mut self, lane: usize, col: usize, slot: &[u64]) {
        let at = lane * self.cols + col;
        let limbs = &slot[1..1 + self.entry];
        self.limbs[at * self.entry..][..self.entry].copy_from_slice(limbs);
        // An integer is a significand with the point behind it; its leading zeros do not matter.
        let is_zero = limbs.iter().all(|&limb| limb == 0);
        self.heads[at] = if is_zero { 0 } else { Head::new(slot[0] == 1, 64 * self.entry as i64).0 };
    }

    /// Writes the residues of the entries of `lanes` rows in columns `cols` of the tile to panel `panel` of all
    /// `planes`.
    pub fn write(
        &self,
        kernels: &LimbTiles,
        (layout, planes): (&Layout, &mut [u64]),
        (panel, cols): (usize, Range<usize>),
        scratch: &mut [u64],
    ) {
        let (engine, lanes) = (&*kernels.engine, layout.rows_of_panel(panel).len());
        let bits = 64 * self.entry as u32;
        let view = MatrixView::from_parts((self.heads, self.limbs), (cols.len(), lanes), self.cols, bits);
        let view = view.expect("lengths that fit each other");
        let runs = engine.row_runs(layout.shape.cols, cols.clone());
        let mut targets = Vec::with_capacity(kernels.primes() * runs.count);
        for plane in planes.chunks_exact_mut(layout.plane_words) {
            let mut rest = &mut plane[panel * layout.panel_words..][..layout.panel_words][runs.first..];
            for run in 0..runs.count {
                let (target, others) = std::mem::take(&mut rest).split_at_mut(runs.words);
                targets.push(target);
                let skipped = if run + 1 < runs.count { runs.stride - runs.words } else { 0 };
                rest = &mut others[skipped..];
            }
        }
        let source = PanelSource { view, columns: 0..lanes, rows: 0..cols.len(), shifts: &SHIFTS };
        engine.to_residues(0..kernels.primes(), &source, &mut targets, scratch);
    }
}

/// An operand with the entries of `source`.
pub fn load_operand(kernels: &LimbTiles, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
    let (shape, slot_words) = (source.shape(), kernels.slot_words());
    let layout = kernels.layout(shape);
    let (planes, slots) = words.split_at_mut(layout.operand_words());
    let (panel_slots, scratch) = scratch.split_at_mut(PANEL_ROWS * shape.cols * slot_words);
    let (own, scratch) = scratch.split_at_mut(Publisher::words_for(kernels, shape.cols));
    let mut publisher = Publisher::new(kernels, shape.cols, own);
    for panel in 0..shape.panels() {
        let rows = layout.rows_of_panel(panel);
        write_panel(kernels, source, rows.clone(), panel_slots);
        for (at, slot) in panel_slots.chunks_exact_mut(slot_words).take(rows.len() * shape.cols).enumerate() {
            let (lane, col) = (at / shape.cols, at % shape.cols);
            kernels.to_signed(slot);
            publisher.set(lane, col, slot);
            if shape.diagonal {
                slots[layout.slot(rows.start + lane, col)..][..slot_words].copy_from_slice(slot);
            }
        }
        publisher.write(kernels, (&layout, &mut planes[HEADER_WORDS..]), (panel, 0..shape.cols), scratch);
    }
}

/// The integers of some rows of a source, row after row.
fn write_panel(kernels: &LimbTiles, source: &TileSource<'_>, rows: Range<usize>, out: &mut [u64]) {
    let (cols, slot_words) = (source.cols.len(), kernels.slot_words());
    // Of a part below the diagonal the rows begin further right.
    let Some(offset) = source.offset() else {
        let own = TileSource { rows: source.rows.start + rows.start..source.rows.start + rows.end, ..source.clone() };
        return kernels.write_source(&own, out, |row, col| (row * cols + col) * slot_words);
    };
    out.fill(0);
    for (lane, row) in rows.enumerate() {
        let end = (row + 1).saturating_sub(offset).min(cols);
        let part = crate::kernels::tiles::TilePart::Whole;
        let own = TileSource {
            part,
            rows: source.rows.start + row..source.rows.start + row + 1,
            cols: source.cols.start..source.cols.start + end,
            ..source.clone()
        };
        kernels.write_source(&own, &mut out[lane * cols * slot_words..][..end * slot_words], |_, col| col * slot_words);
    }
}

/// An operand with the integers of `source`.
pub fn load_integers(
    kernels: &LimbTiles,
    shape: TileShape,
    (limbs, source): (usize, &mut EntrySource<'_>),
    words: &mut [u64],
    scratch: &mut [u64],
) {
    let (layout, each) = (kernels.layout(shape), 1 + kernels.widths.entry);
    let (planes, slots) = words.split_at_mut(layout.operand_words());
    let (magnitudes, scratch) = scratch.split_at_mut(PANEL_ROWS * limbs);
    let (slot, scratch) = scratch.split_at_mut(each);
    let (own, scratch) = scratch.split_at_mut(Publisher::words_for(kernels, shape.cols));
    let mut publisher = Publisher::new(kernels, shape.cols, own);
    if shape.diagonal {
        slots.fill(0);
    }
    for panel in 0..shape.panels() {
        publisher.heads.fill(0);
        for col in 0..shape.cols_of(panel) {
            let signs = source((panel, col), magnitudes);
            for (lane, row) in layout.rows_of_panel(panel).enumerate() {
                let magnitude = &magnitudes[lane * limbs..][..limbs];
                slot.fill(0);
                let kept = limbs.min(kernels.widths.entry);
                slot[0] = u64::from(signs >> lane & 1);
                slot[1..1 + kept].copy_from_slice(&magnitude[..kept]);
                publisher.set(lane, col, slot);
                if shape.diagonal {
                    slots[layout.slot(row, col)..][..each].copy_from_slice(slot);
                }
            }
        }
        publisher.write(kernels, (&layout, &mut planes[HEADER_WORDS..]), (panel, 0..shape.cols), scratch);
    }
}
