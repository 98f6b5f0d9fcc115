//! A list of substitutions with triangles in files, carried out band by band.

use super::OutOfCoreSolveReport;
use super::needs::BandPlan;
use super::solver::{BandSolver, DiskSystem};
use crate::comm::{Reduction, agree, agreed};
use crate::error::{Error, Result};
use crate::io::Block;
use crate::matrix::Matrix;
use crate::ops::disk::{DiskUse, ResultPlace, StoredResult, rank_directory, until_whole, write_file};
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::solve::memory::{Bands, LEAST_COLUMNS};
use crate::ops::solve::run::Right;
use crate::storage::{Caching, Identity};
use crate::tile::TileId;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The paths of finished panels, and of the solution.
#[derive(Clone, Copy)]
pub(super) struct PanelPaths<'a> {
    pub storage: &'a Path,
    pub identity: &'a Identity,
    pub caching: Caching,
    pub solution: &'a Path,
}

impl DiskSystem<'_> {
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
                "the unknowns of right side {} (counted from 1) exceed the range of fixed point, which solves out of \
                 core with entrywise accuracy use: choose accuracy by norms, or solve in memory",
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
