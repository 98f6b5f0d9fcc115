//! Many right-hand sides: whole columns on each rank, solved there in fixed point while the factor's rows stream by.

use crate::comm::{Reduction, agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::tiles::PANEL_ROWS;
use crate::math::float::Head;
use crate::matrix::Matrix;
use crate::ops::distributed::even_share;
use crate::ops::distributed::solve::factor::FactorTiles;
use crate::ops::distributed::solve::stream::{Stream, StreamSource};
use crate::ops::distribution::place::Place;
use crate::ops::product::block::moved;
use crate::ops::trsm::factored::unscale;
use crate::ops::trsm::fixed::{self, FixedPoint, Plan};
use crate::ops::trsm::layout::Layout;
use crate::ops::trsm::system::{Target, load, store};
use std::ops::Range;

/// Most right sides of a rank that are solved for at a time; the factor streams by once for so many of each rank.
const BAND_COLUMNS: usize = 512;

/// The columns of `rank`: whole panels, evenly.
pub(super) fn panel_share(cols: usize, ranks: usize, rank: usize) -> Range<usize> {
    let panels = even_share(cols.div_ceil(PANEL_ROWS), ranks, rank);
    panels.start * PANEL_ROWS..(panels.end * PANEL_ROWS).min(cols)
}

/// The place of a rank's columns in a matrix of this shape.
pub(super) fn panel_place((rows, cols): (usize, usize), ranks: usize, rank: usize) -> Place {
    Place { rows: 0..rows, cols: panel_share(cols, ranks, rank) }
}

/// The triangular solves of a call, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Triangles {
    /// `L X = B`.
    Lower,
    /// `L^T X = B`.
    Upper,
    /// `L L^T X = B`, in a system whose rows are scaled to norms of about 1.
    Both,
}

/// What a band works in.
struct Spaces {
    w: Matrix,
    again: Matrix,
}

/// A factor over the ranks, prepared for solves in fixed point.
pub(super) struct ColumnSolve<'a> {
    ctx: &'a Context,
    source: StreamSource<'a>,
    layout: Layout,
    /// Each triangle, and whether it is `L^T`.
    passes: Vec<(bool, FixedPoint)>,
}

impl<'a> ColumnSolve<'a> {
    /// Prepares the triangles; `source.scale` is that of [`Triangles::Both`]. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`], [`Error::OutOfMemory`].
    pub fn new(
        ctx: &'a Context,
        source: StreamSource<'a>,
        tiles: &FactorTiles<'_>,
        (triangles, layout): (Triangles, Layout),
    ) -> Result<ColumnSolve<'a>> {
        let turns: &[bool] = match triangles {
            Triangles::Lower => &[false],
            Triangles::Upper => &[true],
            Triangles::Both => &[false, true],
        };
        let mut passes = Vec::with_capacity(turns.len());
        for &turned in turns {
            let exponents = match (turned, source.scale) {
                (false, Some(_)) => vec![0; layout.order], // the scale is that of these norms
                (false, None) => tiles.row_exponents(ctx, source.world)?,
                (true, scale) => tiles.col_exponents(ctx, source.world, scale)?.into_iter().rev().collect(),
            };
            let pivots = agreed(source.world, Stream::new(source, turned, 0))?;
            passes.push((turned, FixedPoint::of_rows(&pivots, exponents, (turned, false), layout.working_bits)));
        }
        Ok(ColumnSolve { ctx, source, layout, passes })
    }

    /// Solves for the columns of `b`, this rank's own from column `first` of all on, into `x`; the columns that outgrow
    /// every try are left alone, and returned. Collective.
    ///
    /// # Errors
    /// As [`crate::distributed::solve`].
    pub fn run(&self, (b, first): (&Matrix, usize), x: &mut Matrix) -> Result<Vec<usize>> {
        let world = self.source.world;
        let held_bytes = b.bytes().saturating_add(x.bytes());
        let (columns, held_bytes) = agreed(world, self.band_columns(b.cols(), held_bytes))?;
        let mut bands = [b.cols().div_ceil(columns) as u64];
        world.all_reduce(Reduction::Max, &mut bands)?;
        let (w, again) = agreed(world, Matrix::zeros(0, 0, 2).and_then(|w| Ok((w, Matrix::zeros(0, 0, 2)?))))?;
        let mut spaces = Spaces { w, again };
        let mut outgrown = Vec::new();
        for band in 0..bands[0] as usize {
            let band = (band * columns).min(b.cols())..((band + 1) * columns).min(b.cols());
            let place = |error| moved(error, 0, first + band.start);
            agree(world, self.load(b, &band, &mut spaces))?;
            let mut live = (0..band.len()).collect::<Vec<_>>();
            for (turned, fixed) in &self.passes {
                let left = self.pass((*turned, fixed), live.clone(), &mut spaces, held_bytes, place)?;
                live.retain(|col| !left.contains(col));
            }
            let gone = (0..band.len()).filter(|col| !live.contains(col)).collect::<Vec<_>>();
            let stored = self.store((&gone, &band), &mut spaces, x);
            agree(world, stored.map_err(|error| moved(error, 0, first)))?;
            outgrown.extend(gone.iter().map(|col| band.start + col));
        }
        Ok(outgrown)
    }

    /// Fills the band's space with its right sides.
    fn load(&self, b: &Matrix, band: &Range<usize>, spaces: &mut Spaces) -> Result<()> {
        spaces.w.reshape(self.layout.order, band.len(), self.layout.working_bits)?;
        load(self.ctx, (&b.view(), band.start), None, &mut spaces.w)?;
        self.source.scale.map_or(Ok(()), |scale| unscale(self.ctx, &mut spaces.w, scale))
    }

    /// Rounds the solutions of a band into their columns of `x`, but for those in `gone`, which become 0.
    fn store(&self, (gone, band): (&[usize], &Range<usize>), spaces: &mut Spaces, x: &mut Matrix) -> Result<()> {
        let w = &mut spaces.w;
        let (rows, width) = (w.rows(), w.limbs_per_element());
        let (heads, limbs) = w.parts_mut();
        for col in gone {
            heads[col * rows..(col + 1) * rows].fill(Head::ZERO.0);
            limbs[col * rows * width..(col + 1) * rows * width].fill(0);
        }
        if let Some(scale) = self.source.scale {
            unscale(self.ctx, w, scale)?;
        }
        store(self.ctx, w, &Target { columns: band.clone(), flipped: false }, x)
    }

    /// One triangular solve of the columns `live` of the band: all tries, each with all ranks. Those that are left.
    fn pass(
        &self,
        (turned, fixed): (bool, &FixedPoint),
        live: Vec<usize>,
        spaces: &mut Spaces,
        held_bytes: u64,
        place: impl Fn(Error) -> Error,
    ) -> Result<Vec<usize>> {
        let (world, order) = (self.source.world, self.layout.order);
        let mut left = live;
        for fixed_bits in fixed.tries() {
            let mut count = [left.len() as u64];
            world.all_reduce(Reduction::Sum, &mut count)?;
            if count[0] == 0 {
                break;
            }
            let made = match left.len() {
                0 => Ok(None),
                columns => Plan::new(self.ctx, order, columns, fixed_bits, held_bytes).map(Some),
            };
            let plan = agreed(world, made)?;
            // All take the pieces of the rank that has the least memory for them.
            let mut least = [!plan.as_ref().map_or(u64::MAX, |plan| plan.tile_rows as u64)];
            world.all_reduce(Reduction::Max, &mut least)?;
            let piece_rows = !least[0] as usize;
            let mut stream = agreed(world, Stream::new(self.source, turned, piece_rows))?;
            let attempt = match plan {
                None => Ok(left),
                Some(plan) => {
                    let run = (&plan.with_tile_rows(piece_rows), &mut stream as &mut dyn fixed::TriangleRows);
                    fixed.attempt(self.ctx, run, left, (&mut spaces.w, &mut spaces.again), 0)
                }
            };
            let finished = stream.finish();
            left = agreed(world, finished.and(attempt).map_err(&place))?;
        }
        Ok(left)
    }

    /// The right sides of a band, at least 1, and the bytes held beside a try.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] where not even a panel fits.
    fn band_columns(&self, own: usize, base_bytes: u64) -> Result<(usize, u64)> {
        let even = own.div_ceil(own.div_ceil(BAND_COLUMNS).max(1));
        let mut columns = even.next_multiple_of(PANEL_ROWS).clamp(1, own.max(1));
        loop {
            let layout = &self.layout;
            let stream = Stream::bytes(self.source.factor, PANEL_ROWS);
            let held_bytes = [stream, 2 * Matrix::bytes_for(layout.order, columns, layout.working_bits)];
            let held_bytes = held_bytes.into_iter().fold(base_bytes, u64::saturating_add);
            if self.ctx.memory_bytes().is_none() {
                return Ok((columns, held_bytes));
            }
            let needed = fixed::least_bytes(self.ctx, layout, columns)?.saturating_add(held_bytes);
            match self.ctx.admit(needed) {
                Err(Error::MemoryLimit { .. }) if columns > PANEL_ROWS => {
                    columns = (columns / 2).next_multiple_of(PANEL_ROWS).min(columns - 1);
                }
                other => return other.map(|()| (columns, held_bytes)),
            }
        }
    }
}
