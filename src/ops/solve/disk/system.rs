//! A list of substitutions with triangles in files: the width of its bands and its memory, computed from sizes only;
//! how a band is solved, by the path of the call; and all bands, one after the other.

use crate::comm::{Reduction, agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::{Block, MatrixFile};
use crate::matrix::{Diag, Matrix, MatrixViewMut, Uplo};
use crate::ops::disk::{DiskUse, DiskWatch, ResultPlace, StoredResult, rank_directory, until_whole, write_file};
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::solve::cut::{TriangleCut, TrianglePieces};
use crate::ops::solve::disk::OutOfCoreSolveReport;
use crate::ops::solve::disk::blocks::{FileBlocks, FileTriangle, piece_row_bytes, stream_bytes};
use crate::ops::solve::dots::{DotSystem, store_columns, vector_bytes};
use crate::ops::solve::fixed::{FixedTriangle, LowerForm};
use crate::ops::solve::memory::{Bands, LEAST_COLUMNS, SolveMemory, UnsolvedColumns};
use crate::ops::solve::parts::Parts;
use crate::ops::solve::problem::{Method, Path, SCALAR_ROWS, SolveBits, SystemShape, TrsmBits};
use crate::ops::solve::run::{Right, Solve, SolveStep, TriangleSolver, make_room};
use crate::plan::overhead;
use crate::site::{Site, Team};
use crate::storage::{Caching, Identity, StorageContents, StorageOptions, padded_bytes};
use crate::store::IoBuffer;
use crate::tile::TileId;
use rug::Float;
use std::ops::Range;
use std::path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The largest number of rows of a piece of a triangle that is read for a few right-hand sides: more would only take
/// memory.
const PIECE_ROWS: usize = 128;

/// Fewest rows of a piece, which has the blocks that are solved at once.
const LEAST_PIECE_ROWS: usize = SCALAR_ROWS;

/// The width of the bands, and the memory of the solve with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandPlan {
    pub columns: usize,
    /// The largest number of rows of a piece of a triangle, for dot products and for a solve by parts.
    pub piece_rows: usize,
    pub planned_bytes: u64,
}

/// All that the memory of a solve with files depends on.
struct BandNeeds<'a> {
    pub ctx: &'a Context,
    pub shape: SystemShape,
    pub method: Method,
    pub bits: TrsmBits,
    /// Whether the rows of the triangles are scaled.
    pub is_scaled: bool,
    pub cuts: Vec<TriangleCut>,
}

impl BandNeeds<'_> {
    /// Bytes of each row of a piece of a triangle. Dot products do their own scaling.
    fn piece_row_bytes(&self) -> u64 {
        piece_row_bytes(self.shape.order, self.bits.triangle, self.is_scaled && self.method.path != Path::Dots)
    }

    /// Bytes in addition to the solve: the band's part of both files, and the data for each row and panel.
    fn held_bytes(&self, columns: usize) -> u64 {
        let SystemShape { order, columns: total } = self.shape;
        let TrsmBits { right, triangle, solution } = self.bits;
        let panels = total.div_ceil(LEAST_COLUMNS) as u64;
        let contents = StorageContents { groups: panels, objects: panels, name_bytes: panels * overhead::NAME };
        let storage = StorageOptions::default().memory_bytes(&contents);
        Matrix::bytes_for(order, columns, right)
            + Matrix::bytes_for(order, columns, solution)
            + Matrix::bytes_for(order, 1, triangle)
            + overhead::FILE_ROW * order as u64
            + IoBuffer::memory_bytes(padded_bytes(self.shape.panels().most_bytes(solution)))
            + storage
            + stream_bytes(order, triangle)
            + overhead::FILE_PASS
    }

    /// The memory of a solve in bands of `columns` columns, by parts in pieces of `piece_rows` rows.
    pub fn memory(&self, columns: usize, piece_rows: usize) -> SolveMemory {
        let piece_row_bytes = self.piece_row_bytes();
        let pieces = TrianglePieces { rows: piece_rows, row_bytes: piece_row_bytes, ..TrianglePieces::WHOLE };
        let cuts = self.cuts.iter().map(|cut| TriangleCut { pieces, ..*cut }).collect();
        let left = if self.method.by_parts_of_files() { UnsolvedColumns::Parts } else { UnsolvedColumns::Stay };
        let ctx = self.ctx.holding(self.held_bytes(columns));
        SolveMemory { piece_row_bytes, left, ..SolveMemory::new(ctx, cuts) }
    }

    /// The widest bands that fit the context's limit.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the smallest limit that suffices.
    pub fn plan(&self) -> Result<BandPlan> {
        let widest = Bands::widest(self.shape.columns);
        widest.fitting(|bands| self.highest_pieces(bands.columns)).map(|(_, plan)| plan)
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
            let pieces = piece_rows as u64 * self.piece_row_bytes();
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
    bits: TrsmBits,
    working_bits: u32,
    substitutions: usize,
) -> Result<BandPlan> {
    let cuts = vec![TriangleCut::expected(shape.order, working_bits, method); substitutions];
    BandNeeds { ctx, shape, method, bits, is_scaled: substitutions > 1, cuts }.plan()
}

/// One substitution.
pub(super) struct Prepared {
    pub triangle: FileTriangle,
    /// Exponents of the norms of its rows, in the order of the unknowns.
    pub exponents: Vec<i64>,
    /// Whether the diagonal is ones.
    pub unit: bool,
}

/// A system whose triangles are in files.
pub(super) struct DiskSystem<'a> {
    pub site: Site<'a>,
    /// The site's, with this rank's share of the limit.
    pub ctx: &'a Context,
    pub watch: DiskWatch,
    pub shape: SystemShape,
    pub right: Arc<MatrixFile>,
    pub alpha: Option<&'a Float>,
    pub steps: Vec<Prepared>,
    pub scale: Option<Arc<[i64]>>,
    pub bits: SolveBits,
    pub method: Method,
}

/// A solve, prepared.
enum BandSolver<'a> {
    /// By substitutions on all right-hand sides of a band.
    Bands(Box<Solve<'a>>),
    /// One right side after the other, with exact dot products.
    Dots(Box<DotSolve<'a>>),
}

/// `L L^T X = B` with the blocks of both triangles.
struct DotSolve<'a> {
    ctx: &'a Context,
    system: DotSystem,
    triangles: [FileBlocks; 2],
    planned_bytes: u64,
}

impl BandSolver<'_> {
    /// Solves for all columns of `right` into `solution`; returns the columns that exceed the range of every try.
    ///
    /// # Errors
    /// The errors of [`crate::out_of_core::trsm`], with rows and columns of the whole solution.
    pub fn run(&mut self, bands: Bands, right: &Right<'_>, mut solution: MatrixViewMut<'_>) -> Result<Vec<usize>> {
        match self {
            BandSolver::Bands(solve) => solve.run(bands, right, &mut solution),
            BandSolver::Dots(solve) => {
                let DotSolve { ctx, system, triangles: [lower, upper], planned_bytes } = &mut **solve;
                make_room(ctx, *planned_bytes);
                store_columns(&system.solve(ctx, [lower, upper], right.b)?, solution)?;
                Ok(Vec::new())
            }
        }
    }
}

/// The paths of finished panels, and of the solution.
#[derive(Clone, Copy)]
pub(super) struct PanelPaths<'a> {
    pub storage: &'a path::Path,
    pub identity: &'a Identity,
    pub caching: Caching,
    pub solution: &'a path::Path,
}

impl DiskSystem<'_> {
    /// All that the memory depends on.
    fn needs(&self, cuts: Vec<TriangleCut>) -> BandNeeds<'_> {
        let DiskSystem { ctx, shape, method, .. } = *self;
        let triangle = self.steps[0].triangle.file.precision_bits();
        let bits = TrsmBits { right: self.right.precision_bits(), triangle, solution: self.bits.precision };
        BandNeeds { ctx, shape, method, bits, is_scaled: self.scale.is_some(), cuts }
    }

    /// The bands of the call, and their solver.
    ///
    /// # Errors
    /// The errors of [`BandNeeds::plan`].
    fn solver(&self) -> Result<(BandPlan, BandSolver<'_>)> {
        if self.method.path == Path::Dots {
            let plan = self.needs(Vec::new()).plan()?;
            let blocks = |step: &Prepared| {
                // The sums do their own scaling by norms.
                let mut triangle = step.triangle.clone();
                triangle.scale = None;
                FileBlocks::new(triangle)
            };
            let norms = self.scale.as_deref().expect("a factor has the norms of its rows");
            let solve = DotSolve {
                ctx: self.ctx,
                system: DotSystem::new(self.bits.precision, norms, plan.piece_rows),
                triangles: [blocks(&self.steps[0]), blocks(&self.steps[1])],
                planned_bytes: plan.planned_bytes,
            };
            return Ok((plan, BandSolver::Dots(Box::new(solve))));
        }
        let (order, working_bits, accuracy) = (self.shape.order, self.bits.working, self.method.accuracy);
        let fixed = self.steps.iter().map(|step| self.fixed_point(step)).collect::<Vec<_>>();
        // The plan sets the pieces.
        let cuts = fixed.iter().map(|fixed| {
            let first_try_bits = fixed.as_ref().and_then(|fixed| fixed.tries().next());
            TriangleCut { order, working_bits, first_try_bits, accuracy, pieces: TrianglePieces::WHOLE }
        });
        let needs = self.needs(cuts.collect());
        let plan = needs.plan()?;
        let memory = needs.memory(plan.columns, plan.piece_rows);
        let steps = self.steps.iter().zip(fixed).zip(&memory.cuts).map(|((step, fixed), &cut)| {
            let parts = self.method.by_parts_of_files().then(|| Parts {
                blocks: Box::new(FileBlocks::new(step.triangle.clone())),
                uplo: if step.triangle.reversed { Uplo::Upper } else { Uplo::Lower },
                diag: if step.unit { Diag::Unit } else { Diag::NonUnit },
                cut,
            });
            SolveStep::Triangle(TriangleSolver::of_sources(cut, fixed, parts))
        });
        let (steps, scale) = (steps.collect(), self.scale.as_deref());
        let solve = Solve { memory, team: Team::one_process(), steps, scale };
        Ok((plan, BandSolver::Bands(Box::new(solve))))
    }

    /// A triangle in fixed point, where the path takes it.
    fn fixed_point(&self, step: &Prepared) -> Option<FixedTriangle<'static>> {
        (self.method.path == Path::Tiles).then(|| {
            let rows = FileBlocks::new(step.triangle.clone());
            let (reversed, unit, exponents) = (step.triangle.reversed, step.unit, step.exponents.clone());
            let form = LowerForm { reversed, unit, exponents };
            FixedTriangle::of_rows(Box::new(rows), form, self.bits.working, self.method.accuracy)
        })
    }

    /// Solves for all columns that no rank has in its directory, and writes the solution. A damaged panel is made
    /// again. Collective.
    ///
    /// # Errors
    /// The errors of [`crate::out_of_core::trsm`].
    pub fn run(&self, paths: PanelPaths<'_>, report: &mut OutOfCoreSolveReport) -> Result<()> {
        let (site, world) = (self.site, self.site.world());
        let (plan, mut solve) = site.agreed(site.of_node(self.solver()))?;
        (report.band_columns, report.planned_bytes) = (plan.columns, plan.planned_bytes);
        let PanelPaths { storage, identity, caching, solution } = paths;
        let directory = &site.agreed(rank_directory(site, storage))?;
        let place = ResultPlace { directory, identity, caching, buffers: 1 };
        let mut disk = DiskUse::default();
        until_whole(world, &mut disk, |disk| {
            let opened = StoredResult::open(place, self.shape.panels(), self.bits.precision, world.rank());
            let (mut panels, damaged) = agreed(world, opened)?;
            self.watch.opened(&panels.objects.storage);
            panels.share(world)?;
            disk.groups_repaired += damaged;
            disk.tiles_found = disk.tiles_found.max(panels.own_blocks());
            let start = Instant::now();
            let solved = self.solve_missing(&mut solve, &plan, &mut panels, &mut report.bands);
            // Solved panels are written even where the solve ended with an error.
            let finished = panels.finish();
            report.solve_seconds += start.elapsed().as_secs_f64();
            agree(world, solved.and(finished))?;
            panels.share(world)?;
            let start = Instant::now();
            let spaces = panels.take_spaces(1);
            let outcome = write_file(site.with(self.ctx), solution, &panels, spaces);
            report.store_seconds += start.elapsed().as_secs_f64();
            Ok(panels.attempt(outcome))
        })?;
        disk.read_bytes += self.watch.read_bytes.load(Ordering::Relaxed);
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
        solve: &mut BandSolver<'_>,
        plan: &BandPlan,
        panels: &mut StoredResult,
        bands: &mut usize,
    ) -> Result<()> {
        let of = |col: usize| TileId { row: 0, col };
        let missing = panels.cut().blocks().map(|id| id.col).filter(|&col| !panels.has(of(col))).collect::<Vec<_>>();
        let (rank, ranks) = (self.site.team.rank(), self.site.team.size());
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
                    publish(panels, of(panel), of(band[0]), &x)?;
                }
                *bands += 1;
            }
        }
        Ok(())
    }

    /// The solutions of some columns.
    fn solve_band(&self, solve: &mut BandSolver<'_>, plan: &BandPlan, cols: Range<usize>) -> Result<Matrix> {
        let (order, width) = (self.shape.order, cols.len());
        let mut b = Matrix::zeros(order, width, self.right.precision_bits())?;
        let block = Block { rows: 0..order, cols: cols.clone() };
        let read = self.right.read_block(&block, b.words_mut())?;
        self.watch.read_bytes.fetch_add(read, Ordering::Relaxed);
        self.right.forget_block(&block);
        let mut x = Matrix::zeros(order, width, self.bits.precision)?;
        let limit_bytes = self.ctx.memory_bytes().map(|_| plan.planned_bytes);
        let bands = Bands { total: width, columns: plan.columns, limit_bytes };
        let alpha = self.alpha.map(OwnFloat::new);
        let right = Right { b: b.view(), alpha, first_column: cols.start, transposed: false };
        let outgrown = solve.run(bands, &right, x.view_mut())?;
        match outgrown.first() {
            None => Ok(x),
            Some(first) => Err(Error::InvalidArgument(format!(
                "the unknowns of right-hand side {} (counted from 1) exceed the range of fixed-point numbers, which \
                 solves out of core with entrywise accuracy use: choose accuracy by norms, or solve in memory",
                cols.start + first + 1
            ))),
        }
    }
}

/// Begins to write a panel whose columns are in `x`; the first column of `x` belongs to the panel `first`.
fn publish(panels: &mut StoredResult, panel: TileId, first: TileId, x: &Matrix) -> Result<()> {
    let (cut, (all_heads, all_limbs), width) = (*panels.cut(), x.parts(), x.limbs_per_element());
    let before = cut.block(panel).cols.start - cut.block(first).cols.start;
    let entries = before * cut.rows..before * cut.rows + cut.entries(panel);
    panels.publish(panel, |heads, limbs| {
        heads.copy_from_slice(&all_heads[entries.clone()]);
        limbs.copy_from_slice(&all_limbs[entries.start * width..entries.end * width]);
        Ok(())
    })
}
