//! A list of substitutions with triangles in files, carried out band by band.

use super::rows::{FileRows, FileTriangle, piece_row_bytes, stream_bytes};
use super::{OutOfCoreSolveReport, Shape};
use crate::comm::{Reduction, agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::{Block, MatrixFile};
use crate::matrix::Matrix;
use crate::ops::disk::{DiskUse, Place, ResultCut, ResultPlace, StoredResult, until_whole, write_file};
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::agreement::Agreement;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::fixed::FixedPoint;
use crate::ops::solve::memory::{Bands, LEAST_COLUMNS, SolveMemory};
use crate::ops::solve::path::Method;
use crate::ops::solve::report::SolveBits;
use crate::ops::solve::run::{Right, Solve};
use crate::ops::solve::step::{Step, TriangleSolver};
use crate::storage::{Caching, Identity, StorageContents, StorageOptions, padded_bytes};
use crate::store::IoBuffer;
use crate::tile::TileId;
use rug::Float;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of the passes over files: buffers, heads.
const PASS_BYTES: u64 = 4 << 20;

/// Bytes for each row: exponents of both triangles, norms on the way, scales.
const ROW_BYTES: u64 = 128;

/// Bytes of the name of a panel, and of its group.
const NAME_BYTES: u64 = 64;

/// One substitution.
pub(super) struct Prepared {
    pub triangle: FileTriangle,
    /// Of the norms of its rows, in the order of the unknowns.
    pub exponents: Vec<i64>,
    /// Whether the diagonal is ones.
    pub unit: bool,
}

/// A system whose triangles are in files.
pub(super) struct DiskSystem<'a> {
    /// With this rank's share of the limit.
    pub ctx: &'a Context,
    pub place: Place<'a>,
    pub shape: Shape,
    pub right: Arc<MatrixFile>,
    pub alpha: Option<&'a Float>,
    pub steps: Vec<Prepared>,
    pub scale: Option<Arc<[i64]>>,
    pub bits: SolveBits,
    pub accuracy: Accuracy,
}

/// Where finished panels go, and the solution.
#[derive(Clone, Copy)]
pub(super) struct PanelPaths<'a> {
    pub storage: &'a Path,
    pub identity: &'a Identity,
    pub caching: Caching,
    pub solution: &'a Path,
}

/// How wide the bands are, and what all takes with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandPlan {
    pub columns: usize,
    pub planned_bytes: u64,
}

/// Bits of the numbers of a solve's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileBits {
    pub right: u32,
    pub triangle: u32,
    pub solution: u32,
}

/// What the memory of a solve above a disk depends on.
pub(super) struct BandNeeds<'a> {
    pub ctx: &'a Context,
    pub shape: Shape,
    pub bits: FileBits,
    /// Bytes of each row of a piece of a triangle, and of its read-ahead.
    pub piece_row_bytes: u64,
    pub stream_bytes: u64,
    pub cuts: Vec<TriangleCut>,
}

impl BandNeeds<'_> {
    /// Bytes beside the solve: the band's part of both files, and what is there for each row and panel.
    fn held_bytes(&self, columns: usize) -> u64 {
        let Shape { order, columns: total } = self.shape;
        let FileBits { right, triangle, solution } = self.bits;
        let panels = total.div_ceil(LEAST_COLUMNS) as u64;
        let contents = StorageContents { groups: panels, objects: panels, name_bytes: panels * NAME_BYTES };
        let storage = StorageOptions::default().memory_bytes(&contents);
        Matrix::bytes_for(order, columns, right)
            + Matrix::bytes_for(order, columns, solution)
            + Matrix::bytes_for(order, 1, triangle)
            + ROW_BYTES * order as u64
            + IoBuffer::memory_bytes(padded_bytes(panels_of(self.shape).most_bytes(solution)))
            + storage
            + self.stream_bytes
            + PASS_BYTES
    }

    fn memory(&self, columns: usize) -> SolveMemory {
        SolveMemory {
            ctx: self.ctx.holding(self.held_bytes(columns)),
            cuts: self.cuts.clone(),
            piece_row_bytes: self.piece_row_bytes,
            by_parts: false,
        }
    }

    /// The widest bands that fit the context's limit.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the least limit that would do.
    pub fn plan(&self) -> Result<BandPlan> {
        let mut columns = Bands::widest(self.shape.columns).columns;
        loop {
            let memory = self.memory(columns);
            match memory.bytes(memory.ctx.memory(), columns) {
                Err(Error::MemoryLimit { .. }) if columns > LEAST_COLUMNS => {
                    columns = (columns / 2).next_multiple_of(LEAST_COLUMNS).min(columns - 1);
                }
                bytes => return bytes.map(|planned_bytes| BandPlan { columns, planned_bytes }),
            }
        }
    }
}

impl DiskSystem<'_> {
    /// The substitutions, prepared.
    fn solvers(&self) -> Vec<TriangleSolver<'static>> {
        let solver = |step: &Prepared| {
            let rows = FileRows::new(step.triangle.clone());
            let (turned, promise) = ((step.triangle.reversed, step.unit), (self.bits.working, self.accuracy));
            let fixed = FixedPoint::of_rows(&rows, step.exponents.clone(), turned, promise);
            TriangleSolver::of_rows(fixed, Box::new(rows), self.bits.working)
        };
        self.steps.iter().map(solver).collect()
    }

    fn needs(&self, cuts: Vec<TriangleCut>) -> BandNeeds<'_> {
        let triangle_bits = self.steps[0].triangle.file.precision_bits();
        BandNeeds {
            ctx: self.ctx,
            shape: self.shape,
            bits: FileBits {
                right: self.right.precision_bits(),
                triangle: triangle_bits,
                solution: self.bits.precision,
            },
            piece_row_bytes: piece_row_bytes((self.shape.order, triangle_bits), self.scale.is_some()),
            stream_bytes: stream_bytes(self.shape.order, triangle_bits),
            cuts,
        }
    }

    /// Solves for all columns that no rank has in its directory, and writes the solution. A damaged panel is made
    /// again. Collective.
    ///
    /// # Errors
    /// Those of [`crate::out_of_core::trsm`].
    pub fn run(&self, paths: PanelPaths<'_>, report: &mut OutOfCoreSolveReport) -> Result<()> {
        let (order, world) = (self.shape.order, self.place.world);
        let solvers = self.solvers();
        let needs = self.needs(solvers.iter().map(TriangleSolver::cut).collect());
        let plan = agreed(world, self.place.restated(needs.plan()))?;
        (report.band_columns, report.planned_bytes) = (plan.columns, plan.planned_bytes);
        let steps = solvers.into_iter().map(Step::Triangle).collect();
        let (memory, working_bits) = (needs.memory(plan.columns), self.bits.working);
        let scale = self.scale.as_deref();
        let mut solve = Solve { memory, agreement: Agreement(None), steps, scale, order, working_bits };
        let PanelPaths { storage, identity, caching, solution } = paths;
        let directory = &agreed(world, self.place.directory(storage))?;
        let place = ResultPlace { directory, identity, caching, buffers: 1 };
        let mut disk = DiskUse::default();
        until_whole(world, &mut disk, |disk| {
            let opened = StoredResult::open(place, (panels_of(self.shape), self.bits.precision), world.rank());
            let (mut panels, damaged) = agreed(world, opened)?;
            panels.share(world)?;
            disk.groups_repaired += damaged;
            disk.tiles_found = disk.tiles_found.max(panels.own_blocks());
            let start = Instant::now();
            let solved = self.solve_missing(&mut solve, &plan, &mut panels, &mut report.bands);
            // What was solved is written, whatever ended the solve.
            let finished = panels.finish();
            report.solve_seconds += start.elapsed().as_secs_f64();
            agree(world, solved.and(finished))?;
            panels.share(world)?;
            let start = Instant::now();
            let spaces = panels.take_spaces(1);
            let outcome = write_file((self.ctx, world), solution, &panels, spaces);
            report.store_seconds += start.elapsed().as_secs_f64();
            Ok(panels.attempt(outcome))
        })?;
        disk.sum(world)?;
        report.disk = disk;
        let mut sums = [report.bands as u64, self.ctx.threads() as u64];
        world.all_reduce(Reduction::Sum, &mut sums)?;
        (report.bands, report.threads, report.ranks) = (sums[0] as usize, sums[1] as usize, world.size());
        Ok(())
    }

    /// This rank's share of the panels that no rank has, band by band.
    fn solve_missing(
        &self,
        solve: &mut Solve<'_>,
        plan: &BandPlan,
        panels: &mut StoredResult,
        bands: &mut usize,
    ) -> Result<()> {
        let of = |col: usize| TileId { row: 0, col };
        let missing = panels.cut().blocks().map(|id| id.col).filter(|&col| !panels.has(of(col))).collect::<Vec<_>>();
        let (rank, ranks) = (self.place.world.rank(), self.place.world.size());
        let own = &missing[missing.len() * rank / ranks..missing.len() * (rank + 1) / ranks];
        let most = plan.columns.div_ceil(LEAST_COLUMNS);
        for run in own.chunk_by(|a, b| a + 1 == *b) {
            for band in run.chunks(most) {
                let cut = *panels.cut();
                let x = self.solve_band(
                    solve,
                    plan,
                    cut.block(of(band[0])).cols.start..cut.block(of(band[band.len() - 1])).cols.end,
                )?;
                for &panel in band {
                    publish(panels, (of(panel), of(band[0])), &x)?;
                }
                *bands += 1;
            }
        }
        Ok(())
    }

    /// The solutions of some columns.
    fn solve_band(&self, solve: &mut Solve<'_>, plan: &BandPlan, cols: Range<usize>) -> Result<Matrix> {
        let (order, width) = (self.shape.order, cols.len());
        let mut b = Matrix::zeros(order, width, self.right.precision_bits())?;
        let block = Block { rows: 0..order, cols: cols.clone() };
        self.right.read_block(&block, b.words_mut())?;
        self.right.forget_block(&block);
        let mut x = Matrix::zeros(order, width, self.bits.precision)?;
        let limit_bytes = self.ctx.memory_bytes().map(|_| plan.planned_bytes);
        let bands = Bands { total: width, columns: plan.columns, limit_bytes };
        let alpha = self.alpha.map(OwnFloat::new);
        let right = Right { b: b.view(), alpha, first_column: cols.start, transposed: false };
        let outgrown = solve.run(bands, &right, &mut x.view_mut())?;
        match outgrown.first() {
            None => Ok(x),
            Some(first) => Err(Error::InvalidArgument(format!(
                "the unknowns of right side {} (counted from 1) outgrow fixed point, in which columns are solved above \
                 a disk: solve it in memory",
                cols.start + first + 1
            ))),
        }
    }
}

/// The panels of a solution: columns of it, as many as the narrowest band has.
pub(super) fn panels_of(Shape { order, columns }: Shape) -> ResultCut {
    ResultCut { rows: order, cols: columns, block_rows: order.max(1), block_cols: LEAST_COLUMNS, is_triangle: false }
}

/// Begins to write a panel whose columns are in `x`, which begins with those of the panel `first`.
fn publish(panels: &mut StoredResult, (panel, first): (TileId, TileId), x: &Matrix) -> Result<()> {
    let (cut, (all_heads, all_limbs), width) = (*panels.cut(), x.parts(), x.limbs_per_element());
    let before = cut.block(panel).cols.start - cut.block(first).cols.start;
    let entries = before * cut.rows..before * cut.rows + cut.entries(panel);
    panels.publish(panel, |heads, limbs| {
        heads.copy_from_slice(&all_heads[entries.clone()]);
        limbs.copy_from_slice(&all_limbs[entries.start * width..entries.end * width]);
        Ok(())
    })
}

/// A plan before anything is known of the triangles: for a refusal before a file is read.
///
/// # Errors
/// Those of [`BandNeeds::plan`].
pub(super) fn plan_expected(
    ctx: &Context,
    (shape, method): (Shape, Method),
    bits: FileBits,
    (working_bits, substitutions): (u32, usize),
) -> Result<BandPlan> {
    let cut = TriangleCut::expected(shape.order, working_bits, method);
    BandNeeds {
        ctx,
        shape,
        bits,
        piece_row_bytes: piece_row_bytes((shape.order, bits.triangle), substitutions > 1),
        stream_bytes: stream_bytes(shape.order, bits.triangle),
        cuts: vec![cut; substitutions],
    }
    .plan()
}
