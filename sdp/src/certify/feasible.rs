//! A dual point on its equations: Y and y are moved together, by changes that are least in the metric of Y.
//!
//! A run ends where its residuals are below their thresholds, which are far above the least eigenvalues of Y: the first
//! iterations have few bits, and the residuals that they leave shrink only with the steps. With y as it is there need
//! not be a positive semidefinite Y at all; so both move. Residuals that are too large for one correction of Y are
//! removed in parts, each of which keeps Y positive definite, and the metric is made anew after each.

use super::metric::{CORRECTIONS, DualChange, FactoredMetric, Linked, METRICS, Rounded, pairings, part_of, size_of};
use super::{Attempt, BoundTask};
use crate::block::Block;
use crate::numbers::Arithmetic;
use rug::Float;
use sunzi::blas::{GemvOptions, gemv_with};
use sunzi::{Matrix, Result};

/// A dual point, group by group.
pub struct Dual {
    /// The numbers of the groups.
    pub groups: Vec<Rounded>,
    /// Blocks of Y.
    pub blocks: Vec<Vec<Block>>,
    /// y.
    pub y: Matrix,
}

/// `c - B y - A^*(Y)` of each group.
fn rests(k: Arithmetic<'_>, dual: &Dual) -> Result<Vec<Matrix>> {
    let minus = Float::with_val(2, -1);
    let of_group = |(group, blocks): (&Rounded, &Vec<Block>)| {
        let right = match group.free.cols() {
            0 => group.costs.clone(),
            _ => {
                let options = GemvOptions::new().alpha(&minus).accumulate(group.costs.view());
                gemv_with(k.ctx, &group.free, &dual.y, k.bits, &options)?.result
            }
        };
        k.difference(&right, &pairings(k, &group.constraints, blocks)?)
    };
    dual.groups.iter().zip(&dual.blocks).map(of_group).collect()
}

impl Dual {
    /// The point of `task`, as it is.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    fn new(task: &BoundTask<'_>) -> Result<Dual> {
        let (k, count) = (task.arithmetic(), task.program.free_variables());
        let groups = task.program.groups.iter().map(|group| Rounded::new(group, count, k.bits));
        let mut rest = task.point.dual.as_slice();
        let blocks = task.program.groups.iter().map(|group| {
            let (own, others) = rest.split_at(group.shapes().len());
            rest = others;
            own.to_vec()
        });
        let blocks = blocks.collect();
        Ok(Dual { groups: groups.collect::<Result<_>>()?, blocks, y: task.point.y.clone() })
    }

    /// The metrics at the point.
    fn linked(&self, task: &BoundTask<'_>) -> Result<Attempt<Linked>> {
        let k = task.arithmetic();
        let mut all = Vec::with_capacity(self.blocks.len());
        for (number, blocks) in self.blocks.iter().enumerate() {
            match FactoredMetric::from_dual(k, blocks)? {
                Ok(seen) => all.push(seen),
                Err(at) => {
                    return Ok(Err(task.named(number, &format!("block {} of Y is not positive definite", at + 1))));
                }
            }
        }
        let linked = Linked::new(task.workers, k.bits, &self.groups, all)?;
        Ok(linked.map_err(|(number, message)| task.named(number, &message)))
    }

    /// Adds a part of a change.
    fn add(&mut self, k: Arithmetic<'_>, linked: &Linked, change: &DualChange, part: &Float) -> Result<()> {
        for (number, (blocks, t)) in self.blocks.iter_mut().zip(&change.t).enumerate() {
            for (cone, block) in blocks.iter_mut().enumerate() {
                let change = linked.of_group(number).change(k, &self.groups[number].constraints, cone, t)?;
                *block = block.plus(k, part, &change)?;
            }
        }
        if let Some(dy) = &change.dy {
            self.y = k.sum(part, dy, &self.y)?;
        }
        Ok(())
    }

    /// The point of `task` moved onto the equations, as far as its digits go, and the metrics there; or why it is not.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn on_equations(task: &BoundTask<'_>) -> Result<Attempt<(Dual, Linked)>> {
        let (k, mut dual) = (task.arithmetic(), Dual::new(task)?);
        for _ in 0..METRICS {
            let linked = match dual.linked(task)? {
                Ok(linked) => linked,
                Err(message) => return Ok(Err(message)),
            };
            let mut before = i64::MAX;
            for _ in 0..CORRECTIONS {
                let change = linked.dual(k, &rests(k, &dual)?)?;
                let size = size_of(&change.square);
                if size >= before.saturating_sub(1) {
                    return Ok(Ok((dual, linked)));
                }
                before = size;
                let part = part_of(size);
                dual.add(k, &linked, &change, &part)?;
                if part < 1 {
                    break;
                }
            }
            if part_of(before) == 1 {
                return Ok(Ok((dual, linked)));
            }
        }
        dual.refused(task)
    }

    /// The first block that is not positive definite at twice the change that leads to the equations: where there is
    /// no interior, the change itself ends at the boundary.
    fn refused<T>(mut self, task: &BoundTask<'_>) -> Result<Attempt<T>> {
        let k = task.arithmetic();
        if let Ok(linked) = self.linked(task)? {
            let change = linked.dual(k, &rests(k, &self)?)?;
            self.add(k, &linked, &change, &Float::with_val(2, 2))?;
        }
        for (number, blocks) in self.blocks.iter().enumerate() {
            if let Err(at) = FactoredMetric::from_dual(k, blocks)? {
                return Ok(Err(task.named(number, &indefinite_on_equations(at))));
            }
        }
        Ok(Err("Y would not stay positive definite under the changes that Y and y need to meet the dual \
                equations"
            .into()))
    }
}

/// The message for block `at`, from 0.
pub fn indefinite_on_equations(at: usize) -> String {
    format!("block {} of Y is not positive definite once Y and y meet the dual equations exactly", at + 1)
}
