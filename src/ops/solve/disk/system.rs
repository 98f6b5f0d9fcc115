//! A list of substitutions with triangles in files, carried out band by band.

use super::blocks::{FileTriangle, piece_row_bytes, stream_bytes};
use super::panels::{PanelPlace, Panels, is_damage};
use super::solver::BandSolver;
use super::{OutOfCoreSolveReport, Shape};
use crate::context::{Context, Progress};
use crate::error::{Error, Result};
use crate::io::{Block, MatrixFile, MatrixFileShape, write_blocks};
use crate::matrix::Matrix;
use crate::ops::disk_use::progress_of;
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::dots::vector_bytes;
use crate::ops::solve::memory::{Bands, LEAST_COLUMNS, SolveMemory};
use crate::ops::solve::path::{Method, Path as SolvePath};
use crate::ops::solve::report::SolveBits;
use crate::ops::solve::run::Right;
use crate::plan::BLOCK;
use crate::storage::{StorageContents, StorageOptions};
use rug::Float;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of the passes over files: buffers, heads.
const PASS_BYTES: u64 = 4 << 20;

/// Bytes for each row: exponents of both triangles, norms on the way, scales.
const ROW_BYTES: u64 = 128;

/// Most rows of a piece of a triangle that is read for a few right sides: more would only take memory.
const PIECE_ROWS: usize = 128;

/// Bytes of the name of a panel.
const NAME_BYTES: u64 = 32;

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
    pub ctx: &'a Context,
    pub shape: Shape,
    pub right: Arc<MatrixFile>,
    pub alpha: Option<&'a Float>,
    pub steps: Vec<Prepared>,
    pub scale: Option<Arc<[i64]>>,
    pub bits: SolveBits,
    pub method: Method,
}

/// How wide the bands are, and what all takes with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandPlan {
    pub columns: usize,
    /// Rows of a piece of a triangle, where the solve leaves them to the plan.
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

/// What the memory of a solve above a disk depends on.
pub(super) struct BandNeeds<'a> {
    pub ctx: &'a Context,
    pub shape: Shape,
    pub path: SolvePath,
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
            + Panels::memory_bytes(order, solution)
            + storage
            + self.stream_bytes
            + PASS_BYTES
    }

    pub fn memory(&self, columns: usize) -> SolveMemory {
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
        if self.path == SolvePath::Dots {
            return self.plan_dots();
        }
        let mut columns = Bands::widest(self.shape.columns).columns;
        loop {
            let memory = self.memory(columns);
            match memory.bytes(memory.ctx.memory(), columns) {
                Err(Error::MemoryLimit { .. }) if columns > LEAST_COLUMNS => {
                    columns = (columns / 2).next_multiple_of(LEAST_COLUMNS).min(columns - 1);
                }
                bytes => return bytes.map(|planned_bytes| BandPlan { columns, piece_rows: 0, planned_bytes }),
            }
        }
    }

    /// All right sides in one band, with pieces as high as the limit allows.
    fn plan_dots(&self) -> Result<BandPlan> {
        let Shape { order, columns } = self.shape;
        let beside = self.held_bytes(columns) + vector_bytes(self.ctx, (order, columns), self.bits.solution);
        let mut piece_rows = PIECE_ROWS.min(order.next_multiple_of(BLOCK));
        loop {
            match self.ctx.memory().admit(beside + piece_rows as u64 * self.piece_row_bytes) {
                Err(Error::MemoryLimit { .. }) if piece_rows > BLOCK => {
                    piece_rows = (piece_rows / 2).next_multiple_of(BLOCK);
                }
                bytes => return bytes.map(|planned_bytes| BandPlan { columns, piece_rows, planned_bytes }),
            }
        }
    }
}

impl DiskSystem<'_> {
    /// What the memory depends on.
    pub fn needs(&self, cuts: Vec<TriangleCut>) -> BandNeeds<'_> {
        let triangle_bits = self.steps[0].triangle.file.precision_bits();
        BandNeeds {
            ctx: self.ctx,
            shape: self.shape,
            path: self.method.path,
            bits: FileBits {
                right: self.right.precision_bits(),
                triangle: triangle_bits,
                solution: self.bits.precision,
            },
            piece_row_bytes: piece_row_bytes(
                (self.shape.order, triangle_bits),
                self.scale.is_some() && self.method.path != SolvePath::Dots,
            ),
            stream_bytes: stream_bytes(self.shape.order, triangle_bits),
            cuts,
        }
    }

    /// Solves for all columns that are not in the directory, and writes the solution. A damaged panel is made again.
    ///
    /// # Errors
    /// Those of [`crate::out_of_core::trsm`].
    pub fn run(&self, place: PanelPlace<'_>, solution: &Path, report: &mut OutOfCoreSolveReport) -> Result<()> {
        let Shape { order, columns } = self.shape;
        let (plan, mut solve) = self.solver()?;
        (report.band_columns, report.planned_bytes) = (plan.columns, plan.planned_bytes);
        let mut panels = Panels::open(place, (order, columns), self.bits.precision)?;
        report.disk.tiles_found = (0..panels.count()).filter(|&panel| panels.has(panel)).count();
        let outcome = loop {
            let start = Instant::now();
            self.solve_missing(&mut solve, &plan, &mut panels, &mut report.bands)?;
            report.solve_seconds += start.elapsed().as_secs_f64();
            let start = Instant::now();
            let written = self.write(&mut panels, solution);
            report.store_seconds += start.elapsed().as_secs_f64();
            match written {
                Err(error) if is_damage(&error) => {}
                other => break other,
            }
        };
        report.disk.groups_repaired = panels.repaired;
        report.disk.add(panels.storage());
        outcome
    }

    fn solve_missing(
        &self,
        solve: &mut BandSolver<'_>,
        plan: &BandPlan,
        panels: &mut Panels,
        bands: &mut usize,
    ) -> Result<()> {
        let mut next = 0;
        while let Some(first) = (next..panels.count()).find(|&panel| !panels.has(panel)) {
            let most = first + plan.columns.div_ceil(LEAST_COLUMNS);
            let end = (first..most.min(panels.count())).find(|&panel| panels.has(panel));
            let band = first..end.unwrap_or(most.min(panels.count()));
            next = band.end;
            let x = self.solve_band(solve, plan, panels.columns(&band))?;
            panels.publish(band, &x)?;
            *bands += 1;
        }
        Ok(())
    }

    /// The solutions of some columns.
    fn solve_band(&self, solve: &mut BandSolver<'_>, plan: &BandPlan, cols: Range<usize>) -> Result<Matrix> {
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
        let outgrown = solve.run(bands, &right, x.view_mut())?;
        match outgrown.first() {
            None => Ok(x),
            Some(first) => Err(Error::InvalidArgument(format!(
                "the unknowns of right side {} (counted from 1) outgrow fixed point, in which columns are solved above \
                 a disk: solve it in memory",
                cols.start + first + 1
            ))),
        }
    }

    fn write(&self, panels: &mut Panels, solution: &Path) -> Result<()> {
        let Shape { order: rows, columns: cols } = self.shape;
        let shape = MatrixFileShape { rows, cols, precision_bits: self.bits.precision, symmetric: false };
        write_blocks(solution, shape, progress_of(self.ctx), |writer| {
            (0..panels.count()).try_for_each(|panel| {
                panels.copy(panel, writer)?;
                let (done, total) = (panel as u64 + 1, panels.count() as u64);
                self.ctx.report_progress(Progress::new("write", done, total))
            })
        })
    }
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
    let is_scaled = substitutions > 1 && method.path != SolvePath::Dots;
    BandNeeds {
        ctx,
        shape,
        path: method.path,
        bits,
        piece_row_bytes: piece_row_bytes((shape.order, bits.triangle), is_scaled),
        stream_bytes: stream_bytes(shape.order, bits.triangle),
        cuts: vec![cut; substitutions],
    }
    .plan()
}
