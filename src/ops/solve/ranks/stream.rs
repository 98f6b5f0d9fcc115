//! A factor in tiles as the triangle of a solve: its rows, brought to all ranks one piece after the other, for a solve
//! in fixed point; its blocks, of which each rank gets the rows whose products it computes, for a solve by parts.

use crate::comm::window::{PiecesFrom, SharedWindow, WindowPieces};
use crate::comm::{Fence, Reduction, agree, agreed};
use crate::context::Context;
use crate::error::Result;
use crate::io::Block;
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::distribution::rect::Rect;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::TrianglePieces;
use crate::ops::solve::fixed::{Making, RowPiece, RowsFrom, SharedRows, TriangleRows};
use crate::ops::solve::ranks::source::{
    MESSAGE_WORDS, MessageBuffers, StreamSource, WindowStrip, broadcast_part, reserve,
};
use crate::ops::solve::triangle::{BlockOrder, TriangleBlocks, scaled_head};
use crate::plan::BLOCK;
use crate::site::{Team, close_all};
use std::ops::Range;

/// A piece of the factor as rows of the triangle.
fn in_order(view: MatrixView<'_>, reversed: bool) -> MatrixView<'_> {
    if reversed { view.reversed_rows().transposed().reversed_rows() } else { view }
}

/// The rows of `L`, or of `L^T` reversed so that it is lower: all ranks request the same rows, in order.
///
/// Each piece is sent once to every rank by the owners of its parts, or, where the ranks of a node make tiles together,
/// once to each node. Memory: the largest piece, and the message buffers.
pub(super) struct Stream<'a> {
    ctx: &'a Context,
    source: StreamSource<'a>,
    /// The diagonal of the factor, as a column.
    pivots: &'a Matrix,
    reversed: bool,
    /// The pivots, scaled as the rows are.
    pivot_heads: Vec<u64>,
    piece: Matrix,
    buffers: MessageBuffers,
    /// Rows requested so far, and rows of a piece.
    next: usize,
    piece_rows: usize,
    /// Where the ranks of this node put the entries of a row of tiles, and the tiles that they make together.
    windows: Option<[SharedWindow; 2]>,
    /// The part of the triangle in the first of them, from a row and a column on.
    strip: WindowStrip,
    first: (usize, usize),
}

impl<'a> Stream<'a> {
    /// The rows of `L`, or of `L^T` reversed.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(ctx: &'a Context, source: StreamSource<'a>, pivots: &'a Matrix, reversed: bool) -> Result<Stream<'a>> {
        let scale = |row: usize| source.scale.map_or(0, |scale| -scale[row]);
        let heads = pivots.parts().0.iter().enumerate();
        Ok(Stream {
            ctx,
            source,
            pivots,
            reversed,
            pivot_heads: heads.map(|(row, &head)| scaled_head(Head(head), scale(row)).0).collect(),
            piece: Matrix::zeros(0, 0, 2)?,
            buffers: MessageBuffers::default(),
            next: 0,
            piece_rows: 0,
            windows: None,
            strip: WindowStrip::new(Rect { rows: 0..0, cols: 0..0 }, 0),
            first: (0, 0),
        })
    }

    /// The part of the factor that some rows and columns of the triangle lie in.
    fn place(&self, rows: &Range<usize>, cols: Range<usize>) -> Rect {
        let turned = |range: Range<usize>| self.source.order() - range.end..self.source.order() - range.start;
        match self.reversed {
            false => Rect { rows: rows.clone(), cols },
            true => Rect { rows: turned(cols), cols: turned(rows.clone()) },
        }
    }

    /// Brings some rows into `piece`. Collective.
    fn fetch(&mut self, rows: Range<usize>) -> Result<()> {
        assert_eq!(rows.start, self.next, "the rows come in order");
        self.next = rows.end;
        let place = self.place(&rows, 0..rows.end);
        self.source.bring_to_all(&place, &mut self.piece, &mut self.buffers)
    }
}

impl TriangleRows for Stream<'_> {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        let at = if self.reversed { self.pivot_heads.len() - 1 - row } else { row };
        FloatRef { head: Head(self.pivot_heads[at]), limbs: self.pivots.get(at, 0).limbs }
    }

    fn begin(&mut self, piece_rows: usize) -> Result<()> {
        let (order, precision_bits) = (self.source.factor.map().rows, self.source.factor.precision_bits());
        (self.next, self.piece_rows) = (0, piece_rows);
        self.take_kept();
        self.piece.reshape(piece_rows.min(order), order, precision_bits)?;
        // Pieces grow from row to row.
        reserve(&mut self.buffers.incoming, self.source.words_for(piece_rows.min(order) * order).min(MESSAGE_WORDS));
        Ok(())
    }

    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>> {
        let first = rows.start;
        self.fetch(rows)?;
        Ok(RowPiece { view: in_order(self.piece.view(), self.reversed), first, first_col: 0 })
    }

    /// Takes part in the remaining pieces, so that the ranks that still need them get them.
    fn finish(&mut self) -> Result<()> {
        let order = self.source.order();
        while self.next < order {
            self.fetch(self.next..(self.next + self.piece_rows).min(order))?;
        }
        self.free();
        Ok(())
    }

    fn together(&mut self) -> Option<&mut dyn SharedRows> {
        Some(self)
    }
}

impl Stream<'_> {
    /// Takes the memory of an earlier pass, where there is no limit.
    fn take_kept(&mut self) {
        if self.ctx.memory_bytes().is_none() {
            let mut workspace = self.ctx.workspace();
            self.piece = std::mem::take(&mut workspace.piece);
            let [incoming, outgoing] = std::mem::take(&mut workspace.buffers);
            self.buffers = MessageBuffers { incoming, outgoing };
        }
    }

    /// Leaves all memory to the next pass, or releases it where a limit counts it for other uses.
    fn free(&mut self) {
        let MessageBuffers { incoming, outgoing } = std::mem::take(&mut self.buffers);
        let piece = std::mem::take(&mut self.piece);
        if self.ctx.memory_bytes().is_none() {
            let mut workspace = self.ctx.workspace();
            (workspace.piece, workspace.buffers) = (piece, [incoming, outgoing]);
        }
    }
}

impl SharedRows for Stream<'_> {
    fn team(&self) -> &Team {
        self.source.team
    }

    fn begin(&mut self, piece_entries: usize, tile_words: usize) -> Result<()> {
        let team = self.source.team;
        self.next = self.source.order(); // no rank asks for what is left
        self.take_kept();
        let opened = team.take_tile_windows([self.source.words_for(piece_entries), tile_words]);
        if team.layout().nodes.len() > 1 {
            let words = self.source.words_for(piece_entries).min(MESSAGE_WORDS);
            let MessageBuffers { incoming, outgoing } = &mut self.buffers;
            [incoming, outgoing].into_iter().for_each(|buffer| reserve(buffer, words));
        }
        let outcome = agree(team.world(), opened.map(|windows| self.windows = Some(windows)));
        if outcome.is_err() {
            self.end()?;
        }
        outcome
    }

    fn share(&mut self, from: RowsFrom<'_>, cols: &dyn Fn(usize) -> Range<usize>) -> Result<()> {
        let team = self.source.team;
        let node = team.node();
        let RowsFrom { rows, first_col } = from;
        let mut buffers = std::mem::take(&mut self.buffers);
        let mut windows = self.windows.take().expect("a pass has begun");
        let places = |rank: usize| self.place(rows, cols(rank));
        let place = self.place(rows, first_col..rows.end);
        let parts = self.source.writers(&place, &places);
        let strip = WindowStrip::new(place, limbs_for(self.source.factor.precision_bits()));
        let partition = strip.partition(node.size(), &parts);
        let shares = windows[0].write(&Fence::new(node), Ok(()), &partition);
        let filled = shares.and_then(|shares| {
            let writer = strip.writer(node.rank(), &partition, shares);
            self.source.fill(writer, &places, &mut buffers)
        });
        (self.buffers, self.windows) = (buffers, Some(windows));
        (self.strip, self.first) = (strip, (rows.start, first_col));
        filled
    }

    fn making<'a>(&'a mut self, tiles_of_row: &'a WindowPieces) -> Result<Making<'a>> {
        let [entries, tiles] = self.windows.as_mut().expect("a pass has begun");
        let fence = Fence::new(self.source.team.node());
        let PiecesFrom { source, own, shown } = tiles.pieces_from(entries, &fence, tiles_of_row)?;
        let view = in_order(self.strip.view(source, self.source.factor.precision_bits())?, self.reversed);
        Ok(Making { piece: RowPiece { view, first: self.first.0, first_col: self.first.1 }, own, shown })
    }

    fn end(&mut self) -> Result<()> {
        let team = self.source.team;
        let mut limited = [u64::from(self.ctx.memory_bytes().is_some())];
        team.node().all_reduce(Reduction::Max, &mut limited)?;
        let closed = match self.windows.take() {
            Some(windows) if limited[0] == 0 => {
                team.keep_tile_windows(windows);
                Ok(())
            }
            Some(windows) => close_all(windows),
            None => Ok(()),
        };
        self.free();
        closed
    }
}

/// Target bytes of the piece of a rank.
const PIECE_BYTES: u64 = 16 << 20;

/// The distribution of the blocks of a triangle of `order` rows.
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
    source: StreamSource<'a>,
    /// Whether the triangle is `L^T`.
    transposed: bool,
    pieces: TrianglePieces,
    accuracy: Accuracy,
    /// This rank's part of a block.
    piece: Matrix,
    buffers: MessageBuffers,
}

impl<'a> RankBlocks<'a> {
    /// The blocks of `L`, or of `L^T`, in these pieces.
    pub fn new(source: StreamSource<'a>, transposed: bool, pieces: TrianglePieces, accuracy: Accuracy) -> Self {
        let (piece, buffers) = (Matrix::empty(), MessageBuffers::default());
        RankBlocks { source, transposed, pieces, accuracy, piece, buffers }
    }

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
            broadcast_part(world, rank, &place, w)?;
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.piece = Matrix::empty(); // the next step counts on its memory
        self.buffers = MessageBuffers::default();
    }
}
