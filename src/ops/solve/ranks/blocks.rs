//! The blocks of a factor in tiles for a solve by parts: each rank gets the rows whose products it computes.

use crate::comm::{agree, agreed};
use crate::error::Result;
use crate::io::Block;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::distribution::rect::{Rect, pack, unpack};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::TrianglePieces;
use crate::ops::solve::ranks::source::{MessageBuffers, StreamSource};
use crate::ops::solve::triangle::{BlockOrder, TriangleBlocks};
use crate::plan::BLOCK;
use std::ops::Range;

/// Target bytes of the piece of a rank.
const PIECE_BYTES: u64 = 16 << 20;

/// How the blocks of a triangle of `order` rows are shared out.
pub(super) fn pieces(order: usize, factor_bits: u32, accuracy: Accuracy, ranks: usize) -> TrianglePieces {
    let entry_bytes = Matrix::bytes_for(1, 1, factor_bits);
    TrianglePieces::over_ranks(accuracy, ranks, rows_of(order, factor_bits), entry_bytes)
}

/// Rows of a factor of `order` rows in a piece of about [`PIECE_BYTES`], whole blocks.
pub(super) fn rows_of(order: usize, factor_bits: u32) -> usize {
    let rows = PIECE_BYTES / Matrix::bytes_for(1, order, factor_bits).max(1);
    (rows as usize).clamp(BLOCK, order.next_multiple_of(BLOCK).max(BLOCK)) / BLOCK * BLOCK
}

/// The blocks of `L`, or of `L^T`.
pub(super) struct RankBlocks<'a> {
    pub source: StreamSource<'a>,
    /// Whether the triangle is `L^T`.
    pub transposed: bool,
    pub pieces: TrianglePieces,
    pub accuracy: Accuracy,
    /// This rank's part of a block.
    pub piece: Matrix,
    pub buffers: MessageBuffers,
}

impl RankBlocks<'_> {
    /// The part of the factor that some rows of a block lie in.
    fn place(&self, rows: Range<usize>, cols: &Range<usize>) -> Rect {
        let cols = cols.clone();
        if self.transposed { Rect { rows: cols, cols: rows } } else { Rect { rows, cols } }
    }
}

impl TriangleBlocks for RankBlocks<'_> {
    fn begin(&mut self, _order: BlockOrder, most_entries: usize) -> Result<()> {
        let made = Matrix::zeros(1, most_entries, self.source.factor.precision_bits());
        self.piece = agreed(self.source.team.world(), made)?;
        Ok(())
    }

    fn block(&mut self, Block { rows, cols }: &Block) -> Result<MatrixView<'_>> {
        let (mut piece, mut buffers) = (std::mem::take(&mut self.piece), std::mem::take(&mut self.buffers));
        let brought = match rows == cols {
            // All ranks solve a block on the diagonal.
            true => self.source.bring_to_all(&self.place(rows.clone(), cols), &mut piece, &mut buffers),
            false => {
                let own = |rank| self.place(self.pieces.own(rows, self.accuracy, rank), cols);
                self.source.bring_shares(own, &mut piece, &mut buffers)
            }
        };
        (self.piece, self.buffers) = (piece, buffers);
        brought?;
        let view = self.piece.view();
        Ok(if self.transposed { view.transposed() } else { view })
    }

    fn own_rows(&self, rows: &Range<usize>) -> Range<usize> {
        self.pieces.own(rows, self.accuracy, self.source.team.world().rank())
    }

    fn exchange(&mut self, rows: &Range<usize>, w: &mut Matrix, done: Result<()>) -> Result<()> {
        let world = self.source.team.world();
        agree(world, done)?;
        let ranks = if world.size() == 1 { 0..0 } else { 0..world.size() };
        for rank in ranks {
            let place = Rect { rows: self.pieces.own(rows, self.accuracy, rank), cols: 0..w.cols() };
            if place.is_empty() {
                break;
            }
            let mut words = Vec::with_capacity(place.entries() * (1 + w.limbs_per_element()));
            if rank == world.rank() {
                pack(w.view(), &place, &mut words)?;
            }
            words.resize(place.entries() * (1 + w.limbs_per_element()), 0);
            world.broadcast(rank, &mut words)?;
            if rank != world.rank() {
                unpack(&words, &place, w);
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.piece = Matrix::empty(); // the next step counts on its memory
        self.buffers = MessageBuffers::default();
    }
}
