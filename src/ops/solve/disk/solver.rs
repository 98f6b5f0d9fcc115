//! How a band of right-hand sides is solved with triangles in files, by the path of the call.

use super::blocks::{FileBlocks, FileTriangle, piece_row_bytes, stream_bytes};
use super::needs::{BandNeeds, BandPlan, FileBits};
use super::rows::FileRows;
use crate::context::Context;
use crate::error::Result;
use crate::io::MatrixFile;
use crate::matrix::{Diag, MatrixViewMut, Uplo};
use crate::ops::disk::DiskWatch;
use crate::ops::solve::cut::{TriangleCut, TrianglePieces};
use crate::ops::solve::dots::{DotSystem, store_columns};
use crate::ops::solve::fixed::{FixedTriangle, LowerForm};
use crate::ops::solve::memory::Bands;
use crate::ops::solve::parts::Parts;
use crate::ops::solve::path::{Method, Path};
use crate::ops::solve::problem::{SolveBits, SystemShape};
use crate::ops::solve::run::{Right, Solve, make_room};
use crate::ops::solve::step::{SolveStep, TriangleSolver};
use crate::site::{Site, Team};
use rug::Float;
use std::sync::Arc;

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
pub(super) enum BandSolver<'a> {
    /// By substitutions on all right-hand sides of a band.
    Bands(Box<Solve<'a>>),
    /// One right side after the other, with exact dot products.
    Dots(Box<DotSolve<'a>>),
}

/// `L L^T X = B` with the blocks of both triangles.
pub(super) struct DotSolve<'a> {
    ctx: &'a Context,
    system: DotSystem,
    triangles: [FileBlocks; 2],
    planned_bytes: u64,
}

impl BandSolver<'_> {
    /// Solves for all columns of `right` into `solution`; returns the columns that exceed the range of every try.
    ///
    /// # Errors
    /// The errors of [`crate::out_of_core::trsm`], with places in the call.
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

impl DiskSystem<'_> {
    /// All that the memory depends on.
    pub fn needs(&self, cuts: Vec<TriangleCut>) -> BandNeeds<'_> {
        let triangle_bits = self.steps[0].triangle.file.precision_bits();
        BandNeeds {
            ctx: self.ctx,
            shape: self.shape,
            method: self.method,
            bits: FileBits {
                right: self.right.precision_bits(),
                triangle: triangle_bits,
                solution: self.bits.precision,
            },
            piece_row_bytes: piece_row_bytes(
                self.shape.order,
                triangle_bits,
                self.scale.is_some() && self.method.path != Path::Dots,
            ),
            stream_bytes: stream_bytes(self.shape.order, triangle_bits),
            cuts,
        }
    }

    /// The bands of the call, and their solver.
    ///
    /// # Errors
    /// The errors of [`BandNeeds::plan`].
    pub fn solver(&self) -> Result<(BandPlan, BandSolver<'_>)> {
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
        let fixed = self.steps.iter().map(|step| self.fixed_point(step)).collect::<Vec<_>>();
        let cuts = fixed.iter().map(|fixed| self.cut(fixed.as_ref())).collect();
        let needs = self.needs(cuts);
        let plan = needs.plan()?;
        let memory = needs.memory(plan.columns, plan.piece_rows);
        let each = self.steps.iter().zip(fixed).zip(&memory.cuts);
        let steps =
            each.map(|((step, fixed), cut)| SolveStep::Triangle(self.triangle_solver(step, fixed, *cut))).collect();
        let (order, working_bits) = (self.shape.order, self.bits.working);
        let scale = self.scale.as_deref();
        let solve = Solve { memory, team: Team::one_process(), steps, scale, order, working_bits };
        Ok((plan, BandSolver::Bands(Box::new(solve))))
    }

    /// A triangle in fixed point, where the path takes it.
    fn fixed_point(&self, step: &Prepared) -> Option<FixedTriangle<'static>> {
        (self.method.path == Path::Tiles).then(|| {
            let rows = FileRows::new(step.triangle.clone());
            let (reversed, unit, exponents) = (step.triangle.reversed, step.unit, step.exponents.clone());
            let form = LowerForm { reversed, unit, exponents };
            FixedTriangle::of_rows(Box::new(rows), form, self.bits.working, self.method.accuracy)
        })
    }

    /// How a triangle is cut, before the plan sets the pieces of its blocks.
    fn cut(&self, fixed: Option<&FixedTriangle<'_>>) -> TriangleCut {
        TriangleCut {
            order: self.shape.order,
            working_bits: self.bits.working,
            first_try_bits: fixed.and_then(|fixed| fixed.tries().next()),
            accuracy: self.method.accuracy,
            pieces: TrianglePieces::WHOLE,
        }
    }

    fn triangle_solver(
        &self,
        step: &Prepared,
        fixed: Option<FixedTriangle<'static>>,
        cut: TriangleCut,
    ) -> TriangleSolver<'static> {
        let parts = self.method.by_parts_of_files().then(|| Parts {
            blocks: Box::new(FileBlocks::new(step.triangle.clone())),
            uplo: if step.triangle.reversed { Uplo::Upper } else { Uplo::Lower },
            diag: if step.unit { Diag::Unit } else { Diag::NonUnit },
            cut,
        });
        TriangleSolver::of_sources(cut, fixed, parts)
    }
}
