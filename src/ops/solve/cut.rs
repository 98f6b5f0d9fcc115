//! How a triangle is cut, computed from sizes only: the memory that a solve holds, the products that it may run, and
//! the order in which a solve by parts takes the blocks, which its read-ahead follows too.
//!
//! The plan assumes the worst case of the entries, so a limit that it accepts suffices for all entries.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::Block;
use crate::kernels::{EngineSpec, PlaneKernel};
use crate::math::bound::{RANGE_STEP_BITS, guard_bits};
use crate::math::float::limbs_for;
use crate::matrix::Matrix;
use crate::ops::product::block::{BlockShape, plan};
use crate::ops::product::entrywise::{choice_bytes, possible_range_bits};
use crate::ops::product::problem::{Accuracy, Bits, ProductSize};
use crate::ops::solve::problem::{Method, Path, SCALAR_ROWS};
use crate::ops::solve::tiles::{first_bits, tries};
use crate::plan::BLOCK;
use std::collections::BTreeSet;
use std::ops::Range;

/// The largest number of rows of a part that is cut into at most two.
const GROUP_ROWS: usize = 256;

/// Parts into which a larger range of rows is cut.
const PARTS: usize = 4;

/// A number of levels that exceeds the levels of every triangle.
pub(crate) const ALL_LEVELS: u32 = u32::MAX;

/// The numbers that decide how a triangle is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TriangleCut {
    /// Rows of the triangle.
    pub order: usize,
    /// Bits of right-hand sides and solutions.
    pub working_bits: u32,
    /// Bits after the point at which columns are first tried in fixed point; `None` where they are solved by parts.
    pub first_try_bits: Option<u32>,
    /// Accuracy of the products off the diagonal blocks.
    pub accuracy: Accuracy,
    /// The pieces in which a solve by parts gets its blocks.
    pub pieces: TrianglePieces,
}

/// Rows of a product whose bits are chosen together, where accuracy is entry by entry.
const ENTRYWISE_PIECE_ROWS: usize = 128;

/// Pieces of a triangle's blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrianglePieces {
    /// The largest number of rows of a product.
    pub rows: usize,
    /// Bytes that each row takes, where pieces are buffers of whole rows.
    pub row_bytes: u64,
    /// Bytes that each entry takes, where pieces are as large as the products need.
    pub entry_bytes: u64,
    /// Ranks that each compute some rows of a piece; the piece has `ranks` times the rows of one rank's part.
    pub ranks: usize,
}

impl TrianglePieces {
    /// Whole blocks of a triangle that lies in memory.
    pub const WHOLE: TrianglePieces = TrianglePieces { rows: usize::MAX, row_bytes: 0, entry_bytes: 0, ranks: 1 };

    /// The pieces of a triangle that lies in memory. By norms an entry of a product depends only on its own row of the
    /// triangle. Entry by entry the bits of a column are chosen for the rows of a piece, so pieces are the same as on
    /// ranks.
    pub const fn in_memory(accuracy: Accuracy) -> TrianglePieces {
        match accuracy {
            Accuracy::Entrywise => TrianglePieces { rows: ENTRYWISE_PIECE_ROWS, ..TrianglePieces::WHOLE },
            Accuracy::Norm => TrianglePieces::WHOLE,
        }
    }

    /// The pieces of a triangle whose entries, of `entry_bytes` bytes each, `ranks` ranks send to each other: by norms
    /// about `target_rows` rows.
    pub fn over_ranks(accuracy: Accuracy, ranks: usize, target_rows: usize, entry_bytes: u64) -> TrianglePieces {
        let rows = match accuracy {
            Accuracy::Norm => target_rows.clamp(SCALAR_ROWS, GROUP_ROWS),
            Accuracy::Entrywise => ENTRYWISE_PIECE_ROWS,
        };
        TrianglePieces { rows: rows / BLOCK * BLOCK, row_bytes: 0, entry_bytes, ranks }
    }

    /// Rows of all ranks' parts of a piece.
    pub fn rows_together(&self) -> usize {
        self.rows.saturating_mul(self.ranks)
    }

    /// The largest number of rows that one rank computes of a product of `rows` rows: an even share in whole blocks,
    /// or, entry by entry, whole products.
    pub fn most_own(&self, rows: usize, accuracy: Accuracy) -> usize {
        let even = match accuracy {
            Accuracy::Norm => rows.div_ceil(self.ranks).next_multiple_of(BLOCK),
            Accuracy::Entrywise => self.rows,
        };
        even.min(rows).min(self.rows)
    }

    /// The rows of a piece that `rank` computes.
    pub fn own(&self, rows: &Range<usize>, accuracy: Accuracy, rank: usize) -> Range<usize> {
        let each = self.most_own(rows.len(), accuracy);
        let start = (rows.start + rank * each).min(rows.end);
        start..(start + each).min(rows.end)
    }
}

/// Name of the kernel of a solve with triangles of `order` rows and `working_bits` bits, as far as sizes decide it.
pub(crate) fn kernel_name(ctx: &Context, method: Method, order: usize, working_bits: u32) -> &'static str {
    match method.path {
        Path::Dots | Path::Sums => ctx.kernel().name(),
        Path::Parts | Path::Tiles => TriangleCut::expected(order, working_bits, method).kernel(ctx).name(),
    }
}

impl TriangleCut {
    /// The cut of a triangle of which no entry is known: its pivots are taken to lie within `2^-21` of the norms of
    /// their rows, so that the first try is the one of fewest bits.
    pub fn expected(order: usize, working_bits: u32, method: Method) -> TriangleCut {
        let Method { path, accuracy } = method;
        let first = || tries(working_bits, first_bits(0, accuracy)).next().map(|bits| working_bits + bits);
        let first_try_bits = if path == Path::Tiles { first() } else { None };
        TriangleCut { order, working_bits, first_try_bits, accuracy, pieces: TrianglePieces::in_memory(accuracy) }
    }

    /// Bits of the scaled integers in all products off the diagonal blocks, the same so that one engine serves all.
    pub fn product_bits(&self) -> u32 {
        self.working_bits + guard_bits(self.order)
    }

    /// The parts into which a range of rows is cut, first to last; `None` where it is solved scalar by scalar.
    pub fn parts(&self, rows: &Range<usize>) -> Option<impl DoubleEndedIterator<Item = Range<usize>> + Clone + use<>> {
        let count = match rows.len() {
            0..=SCALAR_ROWS => return None,
            count if count <= GROUP_ROWS => rows.len().div_ceil(2).next_multiple_of(8),
            _ => rows.len().div_ceil(GROUP_ROWS).div_ceil(PARTS) * GROUP_ROWS,
        };
        Some(pieces(rows, count))
    }

    /// Bytes of `columns` right-hand sides while they travel between ranks.
    pub fn right_bytes(&self, columns: usize) -> u64 {
        Matrix::bytes_for(self.order, columns, self.working_bits)
    }

    /// The largest number of bytes that a solve of `columns` columns by parts holds: reciprocals of a block, the result
    /// of a product, and pieces.
    pub fn parts_bytes(&self, columns: usize) -> u64 {
        let prepared = (SCALAR_ROWS * (limbs_for(self.working_bits) + 9) * 8) as u64;
        let rows = (self.pieces.rows.min(self.order) as u64).saturating_mul(self.pieces.row_bytes);
        let entries = match self.pieces.entry_bytes {
            0 => 0,
            each => (self.most_piece_entries() as u64).saturating_mul(each),
        };
        let pieces = rows.saturating_add(entries);
        let result = Matrix::bytes_for(self.scratch_rows(), columns, self.working_bits);
        prepared.saturating_add(pieces).saturating_add(result)
    }

    /// The largest number of entries of a piece, or of a block on the diagonal.
    pub fn most_piece_entries(&self) -> usize {
        if self.pieces.entry_bytes == 0 {
            return self.pieces.rows.min(self.order) * self.order;
        }
        let mut most = self.order.min(SCALAR_ROWS).pow(2);
        self.visit(&(0..self.order), ALL_LEVELS, &mut |shape, _| most = most.max(shape.rows * shape.contracted));
        most
    }

    /// The largest number of bytes while the bits of a product are chosen, for accuracy entry by entry.
    pub fn choice_bytes(&self, columns: usize) -> u64 {
        let mut most = 0;
        if self.accuracy == Accuracy::Entrywise {
            self.visit(&(0..self.order), ALL_LEVELS, &mut |BlockShape { rows, contracted, .. }, _| {
                let size = ProductSize { contracted, rows, cols: columns, triangle: false, half: None };
                most = most.max(choice_bytes(&size));
            });
        }
        most
    }

    /// Rows of the largest result of a product.
    pub fn scratch_rows(&self) -> usize {
        let mut rows = 0;
        self.visit(&(0..self.order), ALL_LEVELS, &mut |shape, _| rows = rows.max(shape.rows));
        rows
    }

    /// Bits that these products may take beyond [`TriangleCut::product_bits`], entry by entry, where their terms are of
    /// similar size.
    pub fn most_range_bits(&self) -> u32 {
        let size = ProductSize { contracted: self.order, rows: 1, cols: 1, triangle: false, half: None };
        match self.accuracy {
            Accuracy::Norm => 0,
            Accuracy::Entrywise => possible_range_bits(&size, self.working_bits, None),
        }
    }

    /// Bytes of the tables of the widest of these products.
    ///
    /// # Errors
    /// The errors of [`Context::engine`].
    pub fn table_bytes(&self, ctx: &Context) -> Result<u64> {
        self.widened_table_bytes(ctx, self.most_range_bits())
    }

    /// The kernel of a solve by bands, where none suits its first try better: that of the tiles, or of the products of
    /// a solve by parts.
    pub fn kernel(&self, ctx: &Context) -> &'static dyn PlaneKernel {
        self.first_try_bits.map_or_else(|| self.product_kernel(ctx), |bits| ctx.tile_kernel(bits))
    }

    /// The kernel of these products.
    pub fn product_kernel(&self, ctx: &Context) -> &'static dyn PlaneKernel {
        ctx.kernel_for(self.product_spec(ctx, 0).modulus_bits)
    }

    /// The requirements on the engine for products with `more` additional bits.
    fn product_spec(&self, ctx: &Context, more: u32) -> EngineSpec {
        Bits::scaled(self.working_bits, 0).widened(self.product_bits() + more).spec(ctx.self_check())
    }

    /// Bytes of the tables of products that take `more` bits.
    fn widened_table_bytes(&self, ctx: &Context, more: u32) -> Result<u64> {
        let spec = self.product_spec(ctx, more);
        Ok(ctx.engine(ctx.kernel_for(spec.modulus_bits), spec)?.table_bytes())
    }

    /// Bytes of the tables that a context without a limit keeps for narrower products than the widest, entry by entry.
    fn narrower_table_bytes(&self, ctx: &Context) -> Result<u64> {
        if ctx.memory_bytes().is_some() {
            return Ok(0);
        }
        let steps = (0..self.most_range_bits()).step_by(RANGE_STEP_BITS as usize);
        steps.map(|more| self.widened_table_bytes(ctx, more)).sum()
    }

    /// The largest number of bytes while the products of a solve by parts run, on `columns` columns; `ctx` holds the
    /// scratch for the result of a product. Examines the outermost `levels` levels of the recursion.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the least that the most demanding product needs.
    pub fn product_bytes(&self, ctx: &Context, columns: usize, levels: u32) -> Result<u64> {
        let (mut most, mut seen) = (ctx.memory().admit(0), BTreeSet::new());
        let ctx = &ctx.holding(self.narrower_table_bytes(ctx)?);
        self.visit(&(0..self.order), levels, &mut |shape, bits| {
            if !seen.insert((shape.rows, shape.contracted)) {
                return;
            }
            // The result of the product lies in the scratch, which is held.
            let memory = ctx.memory().releasing(Matrix::bytes_for(shape.rows, columns, self.working_bits));
            let shape = BlockShape { cols: columns, ..shape };
            for bits in BTreeSet::from([bits, bits + self.most_range_bits()]) {
                let planned = plan(&ctx.with_memory(memory), shape, self.working_bits, bits);
                let bytes = planned.map(|plan| memory.total(plan.planned_bytes));
                most = larger(std::mem::replace(&mut most, Ok(0)), bytes);
            }
        });
        most
    }

    /// Passes the shapes, without columns, of all products that may run on the outer `levels` levels to `see`, with the
    /// bits of their integers.
    fn visit(&self, rows: &Range<usize>, levels: u32, see: &mut impl FnMut(BlockShape, u32)) {
        let Some(parts) = self.parts(rows).filter(|_| levels > 0) else { return };
        for part in parts {
            // From the first row down in a lower triangle, from the last one up in an upper one: the larger of the two.
            let contracted = (part.start - rows.start).max(rows.end - part.end);
            let together = self.pieces.rows_together();
            let most = [part.len().min(together), part.len() % together];
            let own = most.map(|rows| self.pieces.most_own(rows, self.accuracy));
            let last = [0, 1].map(|at| most[at].checked_rem(own[at]).unwrap_or(0));
            for rows in own.into_iter().chain(last).filter(|&rows| rows > 0) {
                see(BlockShape { rows, cols: 0, contracted }, self.product_bits());
            }
            self.visit(&part, levels - 1, see);
        }
    }
}

/// The larger need of two: of bytes, or of limits that would do; the first error otherwise.
pub(crate) fn larger(first: Result<u64>, second: Result<u64>) -> Result<u64> {
    match (first, second) {
        (Ok(one), Ok(other)) => Ok(one.max(other)),
        (
            Err(Error::MemoryLimit { limit_bytes, minimum_bytes: one }),
            Err(Error::MemoryLimit { minimum_bytes: other, .. }),
        ) => Err(Error::MemoryLimit { limit_bytes, minimum_bytes: one.max(other) }),
        (Ok(_), Err(error)) => Err(error),
        (first, _) => first,
    }
}

/// The least limit that would do: the bytes of a plan without a limit, or the least that its refusal names.
///
/// # Errors
/// The errors of planning, except [`Error::MemoryLimit`].
pub(crate) fn least_limit(planned: Result<u64>) -> Result<u64> {
    match planned {
        Err(Error::MemoryLimit { minimum_bytes, .. }) => Ok(minimum_bytes),
        other => other,
    }
}

/// Pieces of `count` rows each, the last with the rows that remain.
fn pieces(rows: &Range<usize>, count: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone + use<> {
    let rows = rows.clone();
    rows.clone().step_by(count).map(move |start| start..(start + count).min(rows.end))
}

/// A step of a solve by parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PartStep {
    /// The products of a block with the known unknowns of its columns are subtracted from the right-hand sides of its
    /// rows.
    Update(Block),
    /// A block on the diagonal is solved scalar by scalar.
    Scalar(Range<usize>),
}

impl PartStep {
    /// The block of the triangle that it needs.
    pub fn block(&self) -> Block {
        match self {
            PartStep::Update(block) => block.clone(),
            PartStep::Scalar(rows) => Block { rows: rows.clone(), cols: rows.clone() },
        }
    }
}

/// A range of rows that is cut, under way.
struct Frame {
    /// The parts to come, in the order in which their unknowns are found.
    parts: Box<dyn Iterator<Item = Range<usize>> + Send>,
    /// The rows of those before.
    known: Option<Range<usize>>,
}

/// The steps of a solve by parts.
pub(crate) struct SolveSchedule {
    cut: TriangleCut,
    is_lower: bool,
    /// Right-hand sides are 0 above this row, for a lower triangle.
    first: usize,
    /// The ranges that the one under way is part of, from the outermost on.
    frames: Vec<Frame>,
    /// The rest of an update.
    update: Option<Block>,
    /// The part to solve next, once its update is done.
    part: Option<Range<usize>>,
}

impl SolveSchedule {
    /// The steps with a lower or an upper triangle that is cut so, for right-hand sides that are 0 above row `first`.
    pub fn new(cut: TriangleCut, is_lower: bool, first: usize) -> SolveSchedule {
        SolveSchedule { cut, is_lower, first, frames: Vec::new(), update: None, part: Some(0..cut.order) }
    }

    /// The next piece of the update under way.
    fn piece(&mut self) -> Option<PartStep> {
        let rest = self.update.as_mut()?;
        let end = rest.rows.end.min(rest.rows.start.saturating_add(self.cut.pieces.rows_together()));
        let piece = Block { rows: rest.rows.start..end, cols: rest.cols.clone() };
        rest.rows.start = end;
        if rest.rows.is_empty() {
            self.update = None;
        }
        Some(PartStep::Update(piece))
    }

    /// Continues with the parts of `rows`, or with its step where it is not cut.
    fn enter(&mut self, rows: Range<usize>) -> Option<PartStep> {
        let Some(parts) = self.cut.parts(&rows) else { return Some(PartStep::Scalar(rows)) };
        let first = self.first;
        let parts: Box<dyn Iterator<Item = Range<usize>> + Send> = match self.is_lower {
            true => Box::new(parts.filter(move |part| part.end > first)),
            false => Box::new(parts.rev()),
        };
        self.frames.push(Frame { parts, known: None });
        None
    }
}

impl Iterator for SolveSchedule {
    type Item = PartStep;

    fn next(&mut self) -> Option<PartStep> {
        loop {
            if let Some(piece) = self.piece() {
                return Some(piece);
            }
            if let Some(step) = self.part.take().and_then(|rows| self.enter(rows)) {
                return Some(step);
            }
            let frame = self.frames.last_mut()?;
            match frame.parts.next() {
                None => drop(self.frames.pop()),
                Some(rows) => {
                    let both = |known: &Range<usize>| known.start.min(rows.start)..known.end.max(rows.end);
                    let known = frame.known.as_ref().map_or(rows.clone(), both);
                    self.update = frame.known.replace(known).map(|cols| Block { rows: rows.clone(), cols });
                    self.part = Some(rows);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::bound::ceil_log2;

    fn whole(order: usize, working_bits: u32) -> TriangleCut {
        let (accuracy, pieces) = (Accuracy::Norm, TrianglePieces::WHOLE);
        TriangleCut { order, working_bits, first_try_bits: None, accuracy, pieces }
    }

    /// The largest number of cuts above any row, by the rule of the tree without groups.
    fn depth(cut: &TriangleCut, rows: Range<usize>) -> u32 {
        let Some(parts) = cut.parts(&rows) else { return 0 };
        let mut next = rows.start;
        let mut deepest = 0;
        for part in parts {
            assert_eq!(part.start, next, "parts of {rows:?} follow each other");
            assert!(!part.is_empty() && part.len() < rows.len(), "{part:?} of {rows:?}");
            next = part.end;
            deepest = deepest.max(depth(cut, part));
        }
        assert_eq!(next, rows.end);
        1 + deepest
    }

    #[test]
    fn no_row_is_updated_more_often_than_the_bound_allows() {
        for order in (0..1200).chain([4097, 10_000, 16_384, 16_385, 100_001]) {
            let cut = whole(order, 100);
            assert!(depth(&cut, 0..order) <= ceil_log2(order), "order {order}");
        }
    }

    #[test]
    fn larger_solves_hold_more() {
        let cut = |order| whole(order, 200);
        for (small, large) in [((10, 5), (11, 5)), ((100, 50), (101, 50)), ((300, 50), (600, 50)), ((70, 5), (70, 50))]
        {
            let bytes = |(order, columns)| cut(order).right_bytes(columns) + cut(order).parts_bytes(columns);
            assert!(bytes(small) < bytes(large), "{small:?}");
            assert!(cut(small.0).scratch_rows() <= cut(large.0).scratch_rows(), "{small:?}");
        }
        assert_eq!(cut(0).scratch_rows(), 0);
    }

    #[test]
    fn every_entry_of_the_triangle_takes_part_once_and_in_time() {
        for (order, rows) in [(0, 16), (1, 16), (16, 16), (17, 16), (40, usize::MAX), (129, 24), (300, 16), (600, 128)]
        {
            for (is_lower, first) in [(true, 0), (true, order / 2), (false, 0)] {
                let pieces = TrianglePieces { rows, row_bytes: 0, entry_bytes: 0, ranks: 1 };
                let cut =
                    TriangleCut { order, working_bits: 100, first_try_bits: None, accuracy: Accuracy::Norm, pieces };
                let (mut known, mut taken) = (vec![false; order], vec![0; order * order]);
                for step in SolveSchedule::new(cut, is_lower, first) {
                    match step {
                        PartStep::Update(Block { rows: some, cols }) => {
                            assert!(!some.is_empty() && some.len() <= rows);
                            assert!(cols.clone().all(|col| known[col] || col < first));
                            assert!(some.clone().all(|row| !known[row]));
                            let places = some.flat_map(|row| cols.clone().map(move |col| row * order + col));
                            places.for_each(|place| taken[place] += 1);
                        }
                        PartStep::Scalar(own) => {
                            for row in own.clone() {
                                let cols = if is_lower { own.start..row } else { row + 1..own.end };
                                cols.for_each(|col| taken[row * order + col] += 1);
                                known[row] = true;
                            }
                        }
                    }
                }
                for (row, col) in (first..order).flat_map(|row| (first..order).map(move |col| (row, col))) {
                    let is_inside = if is_lower { col < row } else { col > row };
                    assert!(
                        known[row] && taken[row * order + col] == u32::from(is_inside),
                        "({row}, {col}) of {order}"
                    );
                }
            }
        }
    }
}
