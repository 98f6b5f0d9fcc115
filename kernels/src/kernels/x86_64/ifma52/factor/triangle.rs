//! POTRF and TRSM of one tile: left-looking by blocks of 8 columns, column by column inside a block.

use super::super::micro::Fold;
use super::super::reconstruct::pack_group;
use super::column::{self, Column, VECTORS};
use super::divide::{OwnPivot, PivotDivisor, space_words};
use super::update::{GroupPrefetch, Segment, subtract_block};
use super::weights::{First, LaneWeights, WeightLanes};
use super::{FactorTables, FactorTileLayout};
use crate::kernels::tiles::{DiagonalData, DiagonalTile, FailedPivot, SolveTile, TileShape};
use crate::math::modulus::Modulus;
use crate::math::pivot::RowWeight;
use crate::plan::BLOCK;
use rug::Integer;
use std::any::Any;
use std::arch::x86_64::*;

/// The data of a factored diagonal tile that the tiles below it need in addition to its residues.
pub struct FactoredDiagonal {
    working_bits: u32,
    pivots: Vec<OwnPivot>,
    /// For each column and prime 8 words, see [`Column`].
    couplings: Vec<u64>,
}

impl FactoredDiagonal {
    /// Bytes for `cols` columns.
    pub fn bytes(factor: &FactorTables, cols: usize) -> u64 {
        let each = OwnPivot::bytes(factor.digits) + (factor.tables.count() * BLOCK * 8) as u64;
        cols as u64 * each + 8 * space_words(factor.working_bits) as u64
    }
}

impl DiagonalData for FactoredDiagonal {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// See `TileEngine::factor`.
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
pub fn factor(
    factor: &FactorTables,
    shape: TileShape,
    words: &mut [u64],
    weights: &mut [RowWeight],
    scratch: &mut [u64],
) -> Result<Box<dyn DiagonalData>, FailedPivot> {
    let layout = factor.layout(shape);
    let per_column = factor.tables.count() * BLOCK;
    let working_bits = factor.working_bits;
    let couplings = vec![0; shape.cols * per_column];
    let mut diagonal = FactoredDiagonal { working_bits, pivots: Vec::with_capacity(shape.cols), couplings };
    assert!(shape.rows == shape.cols && words.len() >= layout.words());
    let (mut lanes, scratch) = WeightLanes::new(layout.panels, weights, scratch);
    assert!(scratch.len() >= column::scratch_words(factor.tables.count(), factor.digits));
    clear_above(&layout, words);
    let mut space = vec![0; space_words(working_bits)];
    for col in 0..shape.cols {
        let (block, lane) = (col / BLOCK, col % BLOCK);
        if lane == 0 {
            for panel in block..layout.panels {
                let own = TilePanels { layout, words: words.as_mut_ptr(), first: panel, count: 1 };
                subtract_earlier(factor, own, layout, words.as_ptr(), block);
            }
        }
        let couplings = &mut diagonal.couplings[col * per_column..][..per_column];
        couple(factor, &layout, words, col, couplings);
        let column = Column { factor, layout, col, couplings };
        if lanes.is_rejected(col) {
            return Err(FailedPivot { column: col, value: None });
        }
        // SAFETY: the tile and the scratch have the lengths that the layout and `scratch_words` give.
        let value = unsafe { column.value(words.as_ptr(), block, lane, scratch.as_mut_ptr()) };
        if value <= 0 {
            return Err(FailedPivot { column: col, value: Some(value) });
        }
        let pivot =
            PivotDivisor::root(value.as_limbs(), factor.quotient_bits(), &mut space).expect("the value is positive");
        run(&column, words, block..layout.panels, &pivot, First::Diagonal(lane), &mut lanes, scratch);
        diagonal.pivots.push(OwnPivot::from(&pivot));
    }
    lanes.give_back(weights);
    Ok(Box::new(diagonal))
}

/// See `TileEngine::triangle`.
pub fn given(factor: &FactorTables, shape: TileShape, words: &[u64], pivots: &[Integer]) -> FactoredDiagonal {
    let (layout, per_column) = (factor.layout(shape), factor.tables.count() * BLOCK);
    assert!(pivots.len() == shape.cols && words.len() >= layout.residue_words());
    let mut couplings = vec![0; shape.cols * per_column];
    for (col, couplings) in couplings.chunks_exact_mut(per_column).enumerate() {
        couple(factor, &layout, words, col, couplings);
    }
    let pivots = pivots.iter().map(|pivot| OwnPivot::new(pivot, factor.quotient_bits())).collect();
    FactoredDiagonal { working_bits: factor.working_bits, pivots, couplings }
}

/// See `TileEngine::solve`.
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
pub fn solve(factor: &FactorTables, tile: SolveTile<'_>, diagonal: DiagonalTile<'_>, scratch: &mut [u64]) {
    let SolveTile { shape, words, weights } = tile;
    let layout = factor.layout(shape);
    let order = TileShape { rows: shape.cols, cols: shape.cols, diagonal: true };
    let (above, data) = (factor.layout(order), diagonal.data.as_any().downcast_ref::<FactoredDiagonal>());
    let data = data.expect("the data of a diagonal tile of this kernel");
    assert!(
        words.len() >= layout.words()
            && diagonal.words.len() >= above.residue_words()
            && data.pivots.len() == shape.cols
    );
    assert!(data.working_bits == factor.working_bits);
    let per_column = factor.tables.count() * BLOCK;
    let (mut lanes, scratch) = WeightLanes::new(layout.panels, weights, scratch);
    assert!(scratch.len() >= column::scratch_words(factor.tables.count(), factor.digits));
    // A few panels at a time go through all columns: their residues stay in the second-level cache.
    for start in (0..layout.panels).step_by(VECTORS) {
        let panels = start..(start + VECTORS).min(layout.panels);
        for col in 0..shape.cols {
            if col % BLOCK == 0 {
                let own = TilePanels { layout, words: words.as_mut_ptr(), first: panels.start, count: panels.len() };
                subtract_earlier(factor, own, above, diagonal.words.as_ptr(), col / BLOCK);
            }
            let column = Column { factor, layout, col, couplings: &data.couplings[col * per_column..][..per_column] };
            run(&column, words, panels.clone(), &data.pivots[col].get(), First::Below, &mut lanes, scratch);
        }
    }
    lanes.give_back(weights);
}

/// The 8 entries of one column of a panel, see `TileEngine::entries`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn entries(factor: &FactorTables, vectors: &[u64], magnitudes: &mut [u64]) -> u8 {
    let count = factor.digits;
    let limbs = magnitudes.len() / BLOCK;
    assert!(vectors.len() >= (count + 1) * BLOCK && limbs * 64 >= count * 52);
    for group in (0..count).step_by(8) {
        let rows = std::array::from_fn(|at| match group + at < count {
            // SAFETY: the digit lies in `vectors`.
            true => unsafe { _mm512_loadu_si512(vectors.as_ptr().add((group + at) * BLOCK).cast()) },
            false => _mm512_setzero_si512(),
        });
        pack_group(rows, group / 8, limbs, magnitudes);
    }
    // SAFETY: the vector of signs follows the digits.
    unsafe {
        let signs = _mm512_loadu_si512(vectors.as_ptr().add(count * BLOCK).cast());
        _mm512_test_epi64_mask(signs, signs)
    }
}

/// Integers above the diagonal are 0.
fn clear_above(layout: &FactorTileLayout, words: &mut [u64]) {
    for panel in 0..layout.panels {
        let (start, end) = (layout.entry(panel, (panel + 1) * BLOCK), layout.entry(panel, layout.padded_cols));
        words[start.min(end)..end].fill(0);
    }
}

/// Panels of a tile that is worked on.
struct TilePanels {
    layout: FactorTileLayout,
    words: *mut u64,
    first: usize,
    count: usize,
}

/// `T := T - sum over earlier blocks` in block column `block` of some panels of a tile; `above` is the diagonal tile
/// (which may be the same).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn subtract_earlier(
    factor: &FactorTables,
    TilePanels { layout, words, first, count }: TilePanels,
    above: FactorTileLayout,
    diagonal: *const u64,
    block: usize,
) {
    if block == 0 {
        return;
    }
    for (index, &prime) in factor.tables.primes.iter().enumerate() {
        let fold = Fold::new(prime);
        for panel in first..first + count {
            // SAFETY: the callers pass whole tiles, whose panels and blocks these are; columns before the block are
            // read, and the block itself written. A tile has at most 4092 columns (asserted where tiles are cut).
            unsafe {
                let x = words.add(layout.residue(index, panel, 0)).cast_const();
                let y = diagonal.add(above.residue(index, block, 0));
                let c = words.add(layout.residue(index, panel, block * BLOCK));
                subtract_block(&fold, &[Segment { x, y }], block * BLOCK, c, &mut GroupPrefetch::default());
            }
        }
    }
}

/// `-w y_m` for the columns `m` before `col` in its block: `y_m` is entry `(col, m)` of the diagonal tile.
fn couple(factor: &FactorTables, layout: &FactorTileLayout, words: &[u64], col: usize, couplings: &mut [u64]) {
    let (block, lane) = (col / BLOCK, col % BLOCK);
    for (index, &prime) in factor.tables.primes.iter().enumerate() {
        let modulus = Modulus::new(prime);
        for m in 0..lane {
            let y = words[layout.residue(index, block, block * BLOCK + m) + lane];
            couplings[index * BLOCK + m] = modulus.multiply(factor.tables.weights[index], prime - y);
        }
    }
}

/// Finishes a column in `panels`, as many at a time as there are.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
fn run(
    column: &Column<'_>,
    words: &mut [u64],
    panels: std::ops::Range<usize>,
    pivot: &PivotDivisor<'_>,
    first: First,
    lanes: &mut WeightLanes<'_>,
    scratch: &mut [u64],
) {
    let mut panel = panels.start;
    while panel < panels.end {
        let first = if panel == panels.start { first } else { First::Below };
        let at = panel * BLOCK..;
        let weights = LaneWeights { sums: &mut lanes.sums[at.clone()], limits: &lanes.limits[at] };
        let (words, scratch) = (words.as_mut_ptr(), scratch.as_mut_ptr());
        // SAFETY: the panels and the column lie in the tile, whose length the callers assert; `scratch_words` of the
        // engine covers the column's scratch behind the lanes.
        unsafe {
            panel += match panels.end - panel {
                1 => {
                    column.run::<1>(words, panel, pivot, first, weights, scratch);
                    1
                }
                2 | 3 => {
                    column.run::<2>(words, panel, pivot, first, weights, scratch);
                    2
                }
                _ => {
                    column.run::<VECTORS>(words, panel, pivot, first, weights, scratch);
                    VECTORS
                }
            };
        }
    }
}
