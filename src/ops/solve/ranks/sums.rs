//! A few right-hand sides entry by entry: each rank substitutes for some of them, while the rows of the factor are
//! streamed.

use super::{FactorTiles, LocalSolution, SolveCall};
use crate::context::{Context, Progress};
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, limbs_for};
use crate::matrix::{EntryIndex, Matrix};
use crate::ops::distribution::rect::{Rect, unpack};
use crate::ops::solve::problem::{SolveBits, SystemShape};
use crate::ops::solve::ranks::blocks::rows_of;
use crate::ops::solve::ranks::source::{MessageBuffers, StreamSource, message_bytes};
use crate::ops::solve::run::make_room;
use crate::ops::solve::sums::worker_bytes;
use crate::ops::vector::{RightSide, SubstitutionRoom, VectorTriangle};
use crate::plan::even_share;
use std::ops::Range;

/// Most rows of a piece: more would only take memory.
const PIECE_ROWS: usize = 64;

/// Rows of a piece.
fn sum_rows(order: usize, factor_bits: u32) -> usize {
    rows_of(order, factor_bits).min(PIECE_ROWS).min(order).max(1)
}

/// The sizes that the memory of a call depends on.
#[derive(Clone, Copy)]
pub(super) struct SumSizes {
    pub order: usize,
    pub columns: usize,
    pub bits: SolveBits,
    pub right_bits: u32,
    pub factor_bits: u32,
    pub ranks: usize,
}

impl SumSizes {
    /// Bytes of a rank: the right-hand sides and solutions of all, the memory of a substitution, a piece and a message.
    pub fn bytes(&self) -> u64 {
        let SumSizes { order, columns, bits, right_bits, factor_bits, ranks } = *self;
        let own = even_share(columns, ranks, 0).len() as u64;
        Matrix::bytes_for(order, columns, right_bits)
            + Matrix::bytes_for(order, columns, bits.precision)
            + own * (worker_bytes(order, bits, limbs_for(factor_bits)) + Matrix::bytes_for(order, 1, bits.precision))
            + Matrix::bytes_for(sum_rows(order, factor_bits), order, factor_bits)
            + message_bytes(sum_rows(order, factor_bits) * order, factor_bits, 1)
    }
}

/// A substitution of one right side.
struct SubstitutionColumn {
    index: usize,
    rooms: [SubstitutionRoom; 2],
    /// The unknowns of the first substitution, and the solution.
    values: [Matrix; 2],
}

impl SubstitutionColumn {
    fn new(index: usize, order: usize, bits: SolveBits) -> Result<SubstitutionColumn> {
        let bits = [bits.working, bits.precision];
        let values = [Matrix::zeros(order, 1, bits[0])?, Matrix::zeros(order, 1, bits[1])?];
        Ok(SubstitutionColumn { index, rooms: bits.map(|bits| SubstitutionRoom::new(order, bits)), values })
    }

    /// Finds the unknowns `rows` of a substitution, for which the rows of the triangle are at hand.
    fn solve(&mut self, triangle: &VectorTriangle<'_>, rows: Range<usize>, right: &Matrix, upper: bool) -> Result<()> {
        let [forward, backward] = &mut self.rooms;
        let [middle, solution] = &mut self.values;
        let order = middle.rows();
        let index = self.index;
        let solved = match upper {
            false => {
                let right = RightSide { b: right.view().block(0..order, index..index + 1)?, alpha: None };
                triangle.substitute_rows(rows, &right, forward, |row, value| middle.set(row, 0, value))
            }
            true => {
                let right = RightSide { b: middle.view(), alpha: None };
                triangle.substitute_rows(rows, &right, backward, |row, value: FloatRef<'_>| solution.set(row, 0, value))
            }
        };
        solved.map_err(|error| match error {
            Error::ExponentRange { row, exponent, limit, .. } => {
                Error::ExponentRange { row, column: index, exponent, limit }
            }
            other => other,
        })
    }
}

impl SolveCall<'_> {
    /// All right-hand sides by sums of digits, as one process finds them. Collective.
    pub(super) fn solve_sums(&self, tiles: &FactorTiles<'_>, working_bits: u32) -> Result<LocalSolution> {
        let (ctx, site) = (self.site.ctx, self.site);
        let world = site.world();
        let SystemShape { order, columns } = self.shape(tiles);
        let bits = SolveBits { working: working_bits, precision: self.precision_bits };
        let (right_bits, factor_bits) = (self.b.precision_bits(), self.factor.precision_bits());
        let sizes = SumSizes { order, columns, bits, right_bits, factor_bits, ranks: world.size() };
        site.admit(sizes.bytes())?;
        make_room(ctx, site.on_node(sizes.bytes()));
        let right = self.b.everywhere(world)?;
        let of_rank = |rank| even_share(columns, world.size(), rank);
        let own = of_rank(world.rank()).map(|index| SubstitutionColumn::new(index, order, bits));
        let mut own = site.agreed(own.collect::<Result<Vec<_>>>())?;
        let source = StreamSource { team: site.team, factor: self.factor, pivots: &right, scale: None, limited: false };
        for upper in [false, true] {
            self.pass(&source, &mut own, &right, upper)?;
        }
        let mut whole = site.agreed(Matrix::zeros(order, columns, self.precision_bits))?;
        let width = 1 + whole.limbs_per_element();
        for rank in 0..world.size() {
            for (at, index) in of_rank(rank).enumerate() {
                let mut words = Vec::new();
                if rank == world.rank() {
                    let (heads, limbs) = own[at].values[1].parts();
                    words = [heads, limbs].concat();
                }
                words.resize(order * width, 0);
                world.broadcast(rank, &mut words)?;
                unpack(&words, &Rect { rows: 0..order, cols: index..index + 1 }, &mut whole);
            }
        }
        Ok(LocalSolution::on_every_rank(world, whole).planned(site.share().memory().total(sizes.bytes())))
    }

    /// One of the two substitutions, on this rank's columns.
    fn pass(
        &self,
        source: &StreamSource<'_>,
        own: &mut [SubstitutionColumn],
        right: &Matrix,
        upper: bool,
    ) -> Result<()> {
        let order = source.order();
        let size = sum_rows(order, self.factor.precision_bits());
        let count = order.div_ceil(size);
        let mut buffers = MessageBuffers::default();
        let mut piece = self.site.agreed(Matrix::zeros(size, order, self.factor.precision_bits()))?;
        for step in 0..count {
            let at = if upper { count - 1 - step } else { step };
            let rows = at * size..((at + 1) * size).min(order);
            let place = match upper {
                false => Rect { rows: rows.clone(), cols: 0..rows.end },
                true => Rect { rows: rows.start..order, cols: rows.clone() },
            };
            source.bring_to_all(&place, &mut piece, &mut buffers)?;
            let view = if upper { piece.transposed() } else { piece.view() };
            let first = EntryIndex { row: rows.start, col: if upper { rows.start } else { 0 } };
            let triangle = VectorTriangle::of_piece(view, first, order, !upper);
            let solved = own.iter_mut().try_for_each(|column| column.solve(&triangle, rows.clone(), right, upper));
            self.site.agree(solved.and_then(|()| told(self.site.ctx, usize::from(upper) * count + step, 2 * count)))?;
        }
        Ok(())
    }
}

fn told(ctx: &Context, done: usize, total: usize) -> Result<()> {
    ctx.report_progress(Progress::new("solve", done as u64 + 1, total as u64))
}
