//! How a band of right sides is solved with triangles in files, by the path of the call.

use super::blocks::FileBlocks;
use super::rows::FileRows;
use super::system::{BandPlan, DiskSystem, Prepared};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::MatrixViewMut;
use crate::ops::solve::agreement::Agreement;
use crate::ops::solve::dots::{DotSystem, store_columns};
use crate::ops::solve::fixed::FixedPoint;
use crate::ops::solve::memory::Bands;
use crate::ops::solve::path::Path;
use crate::ops::solve::run::{Right, Solve, make_room};
use crate::ops::solve::step::{Step, TriangleSolver};

/// A solve, prepared.
pub(super) enum BandSolver<'a> {
    /// By substitutions on all right sides of a band.
    Bands(Solve<'a>),
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
    /// Solves for all columns of `right` into `solution`; gives those that outgrow every try.
    ///
    /// # Errors
    /// Those of [`crate::out_of_core::trsm`], with places in the call.
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
    /// The bands of the call, and what solves them.
    ///
    /// # Errors
    /// Those of [`super::system::BandNeeds::plan`].
    pub fn solver(&self) -> Result<(BandPlan, BandSolver<'_>)> {
        if self.method.path == Path::Dots {
            let plan = self.needs(Vec::new()).plan()?;
            let blocks = |step: &Prepared| {
                // The sums scale by norms themselves.
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
        let solvers = self.steps.iter().map(|step| self.triangle_solver(step)).collect::<Vec<_>>();
        let needs = self.needs(solvers.iter().map(TriangleSolver::cut).collect());
        let plan = needs.plan()?;
        let memory = needs.memory(plan.columns);
        let steps = solvers.into_iter().map(Step::Triangle).collect();
        let (order, working_bits) = (self.shape.order, self.bits.working);
        let scale = self.scale.as_deref();
        Ok((plan, BandSolver::Bands(Solve { memory, agreement: Agreement(None), steps, scale, order, working_bits })))
    }

    fn triangle_solver(&self, step: &Prepared) -> TriangleSolver<'static> {
        let rows = FileRows::new(step.triangle.clone());
        let (turned, promise) = ((step.triangle.reversed, step.unit), (self.bits.working, self.method.accuracy));
        let fixed = FixedPoint::of_rows(&rows, step.exponents.clone(), turned, promise);
        TriangleSolver::of_rows(fixed, Box::new(rows), self.bits.working)
    }
}
