//! The width of the bands of a solve with files, and its memory, computed from sizes only.

use super::blocks::{piece_row_bytes, stream_bytes};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::ops::solve::cut::{TriangleCut, TrianglePieces};
use crate::ops::solve::dots::vector_bytes;
use crate::ops::solve::memory::{Bands, FirstTryKernel, LEAST_COLUMNS, SolveMemory, UnsolvedColumns};
use crate::ops::solve::path::{Method, Path, SCALAR_ROWS};
use crate::ops::solve::problem::SystemShape;
use crate::plan::overhead;
use crate::storage::{StorageContents, StorageOptions, padded_bytes};
use crate::store::IoBuffer;

/// Most rows of a piece of a triangle that is read for a few right-hand sides: more would only take memory.
const PIECE_ROWS: usize = 128;

/// Fewest rows of a piece, which has the blocks that are solved at once.
const LEAST_PIECE_ROWS: usize = SCALAR_ROWS;

/// The width of the bands, and the memory of the solve with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandPlan {
    pub columns: usize,
    /// Most rows of a piece of a triangle, for dot products and for a solve by parts.
    pub piece_rows: usize,
    pub planned_bytes: u64,
}

/// Bits of the numbers of a solve's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileBits {
    pub right: u32,
    pub triangle: u32,
    pub solution: u32,
}

/// All that the memory of a solve with files depends on.
pub(super) struct BandNeeds<'a> {
    pub ctx: &'a Context,
    pub shape: SystemShape,
    pub method: Method,
    pub bits: FileBits,
    /// Bytes of each row of a piece of a triangle, and of its read-ahead.
    pub piece_row_bytes: u64,
    pub stream_bytes: u64,
    pub cuts: Vec<TriangleCut>,
}

impl BandNeeds<'_> {
    /// Bytes in addition to the solve: the band's part of both files, and the data for each row and panel.
    fn held_bytes(&self, columns: usize) -> u64 {
        let SystemShape { order, columns: total } = self.shape;
        let FileBits { right, triangle, solution } = self.bits;
        let panels = total.div_ceil(LEAST_COLUMNS) as u64;
        let contents = StorageContents { groups: panels, objects: panels, name_bytes: panels * overhead::NAME };
        let storage = StorageOptions::default().memory_bytes(&contents);
        Matrix::bytes_for(order, columns, right)
            + Matrix::bytes_for(order, columns, solution)
            + Matrix::bytes_for(order, 1, triangle)
            + overhead::FILE_ROW * order as u64
            + IoBuffer::memory_bytes(padded_bytes(self.shape.panels().most_bytes(solution)))
            + storage
            + self.stream_bytes
            + overhead::FILE_PASS
    }

    /// The memory of a solve in bands of `columns` columns, by parts in pieces of `piece_rows` rows.
    pub fn memory(&self, columns: usize, piece_rows: usize) -> SolveMemory {
        let pieces = TrianglePieces { rows: piece_rows, row_bytes: self.piece_row_bytes, ..TrianglePieces::WHOLE };
        SolveMemory {
            ctx: self.ctx.holding(self.held_bytes(columns)),
            cuts: self.cuts.iter().map(|cut| TriangleCut { pieces, ..*cut }).collect(),
            piece_row_bytes: self.piece_row_bytes,
            message_bytes: 0,
            left: UnsolvedColumns::by_parts(self.method.by_parts_of_files()),
            together: None,
            first_tries: FirstTryKernel::Own,
        }
    }

    /// The widest bands that fit the context's limit.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the smallest limit that suffices.
    pub fn plan(&self) -> Result<BandPlan> {
        let mut columns = Bands::widest(self.shape.columns).columns;
        loop {
            match self.highest_pieces(columns) {
                Err(Error::MemoryLimit { .. }) if columns > LEAST_COLUMNS => {
                    columns = (columns / 2).next_multiple_of(LEAST_COLUMNS).min(columns - 1);
                }
                plan => return plan,
            }
        }
    }

    /// The plan of bands of `columns` columns, with pieces as high as the limit allows.
    fn highest_pieces(&self, columns: usize) -> Result<BandPlan> {
        let mut piece_rows = PIECE_ROWS.min(self.shape.order.next_multiple_of(LEAST_PIECE_ROWS));
        loop {
            match self.bytes(columns, piece_rows) {
                Err(Error::MemoryLimit { .. }) if piece_rows > LEAST_PIECE_ROWS => {
                    piece_rows = (piece_rows / 2).next_multiple_of(LEAST_PIECE_ROWS);
                }
                bytes => return bytes.map(|planned_bytes| BandPlan { columns, piece_rows, planned_bytes }),
            }
        }
    }

    /// Bytes of the whole call.
    fn bytes(&self, columns: usize, piece_rows: usize) -> Result<u64> {
        if self.method.path == Path::Dots {
            let band = SystemShape { columns, ..self.shape };
            let vectors = vector_bytes(self.ctx, band, self.bits.solution);
            let pieces = piece_rows as u64 * self.piece_row_bytes;
            return self.ctx.memory().admit(self.held_bytes(columns) + vectors + pieces);
        }
        let memory = self.memory(columns, piece_rows);
        memory.bytes(memory.ctx.memory(), columns)
    }
}

/// A plan from only the sizes of the triangles, for a refusal before a file is read.
///
/// # Errors
/// The errors of [`BandNeeds::plan`].
pub(super) fn plan_expected(
    ctx: &Context,
    shape: SystemShape,
    method: Method,
    bits: FileBits,
    working_bits: u32,
    substitutions: usize,
) -> Result<BandPlan> {
    let cut = TriangleCut::expected(shape.order, working_bits, method);
    let is_scaled = substitutions > 1 && method.path != Path::Dots;
    BandNeeds {
        ctx,
        shape,
        method,
        bits,
        piece_row_bytes: piece_row_bytes(shape.order, bits.triangle, is_scaled),
        stream_bytes: stream_bytes(shape.order, bits.triangle),
        cuts: vec![cut; substitutions],
    }
    .plan()
}
