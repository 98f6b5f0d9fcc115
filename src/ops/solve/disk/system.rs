//! A list of substitutions with triangles in files, carried out band by band.

use super::needs::BandPlan;
use super::panels::{PanelPlace, Panels, is_damage};
use super::solver::{BandSolver, DiskSystem};
use super::{OutOfCoreSolveReport, Shape};
use crate::context::Progress;
use crate::error::{Error, Result};
use crate::io::{Block, MatrixFileShape, write_blocks};
use crate::matrix::Matrix;
use crate::ops::disk_use::progress_of;
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::solve::memory::{Bands, LEAST_COLUMNS};
use crate::ops::solve::run::Right;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

impl DiskSystem<'_> {
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
                 a disk entry by entry: ask for accuracy by norms, or solve it in memory",
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
