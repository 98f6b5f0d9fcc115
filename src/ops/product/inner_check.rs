//! Freivalds' test inside a product: is the integer product, before it is rounded, that of the scaled operands?
//!
//! With `X` and `Y` the scaled integer operands and `Q'` the reconstructed product, tests `Q' v = X^T (Y v)` for one
//! random vector modulo one random 61-bit prime. The operands are scaled anew, without the kernels' code, so the test
//! covers conversions, products and reconstruction. Source: docs/ALGORITHM.md, "Range check".

use crate::comm::{Reduction, Transport};
use crate::drive::map_indices;
use crate::error::{Error, ErrorText, Result};
use crate::math::check_field::CheckField;
use crate::matrix::{EntryIndex, MatrixView, Uplo};
use crate::ops::product::problem::OperandRows;
use crate::ops::seed::fresh_seed;
use crate::site::Site;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::{Mutex, PoisonError};

/// The random vector, the sums that it must give, and those found so far in the product.
pub(crate) struct InnerCheck {
    field: CheckField,
    seed: u64,
    vector: Vec<u64>,
    wanted: Vec<u64>,
    /// Whether each entry stands for its mirror image too.
    symmetric: bool,
    found: Mutex<Vec<u64>>,
}

/// The sums over the entries of one worker, for each row.
pub(crate) struct RowSums(Vec<u64>);

impl InnerCheck {
    /// Draws the vector and multiplies it by the scaled operands, of which every rank has some rows.
    /// Collective.
    ///
    /// Cost: every entry of the operands is read twice, on the context's threads.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn new(
        site: Site<'_>,
        left: OperandRows<'_>,
        right: Option<OperandRows<'_>>,
        half: Option<Uplo>,
    ) -> Result<InnerCheck> {
        let mut seed = [fresh_seed()];
        site.world().broadcast(0, &mut seed)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed[0]);
        let field = CheckField::random(&mut rng);
        let symmetric = right.is_none();
        let right = right.unwrap_or(left);
        let vector = right.shifts.iter().map(|_| field.draw(&mut rng)).collect::<Vec<_>>();
        let mut wanted = match half {
            Some(uplo) => half_images(site, &field, &vector, [left, right], uplo),
            None => images(site, &field, &vector, [left, right]),
        };
        sum_over_ranks(site.world(), &field, &mut wanted)?;
        let found = Mutex::new(vec![0; wanted.len()]);
        Ok(InnerCheck { field, seed: seed[0], vector, wanted, symmetric, found })
    }

    /// Bytes that the check takes in addition to the product, for a `rows x cols` result.
    ///
    /// The field's table; for each row the expected sum, the sum found and the sums of every worker; the random vector;
    /// its image under the right operand.
    pub fn bytes(rows: usize, cols: usize, contracted: usize, workers: usize) -> u64 {
        CheckField::TABLE_BYTES + 8 * (rows * (workers + 2) + cols + contracted) as u64
    }

    /// Sums for one worker to begin with.
    pub fn row_sums(&self) -> RowSums {
        RowSums(vec![0; self.wanted.len()])
    }

    /// Adds entry `(-1)^negative * magnitude` of the product.
    #[inline]
    pub fn add(&self, sums: &mut RowSums, place: EntryIndex, negative: bool, magnitude: &[u64]) {
        let residue = self.field.integer(negative, magnitude);
        let mut add = |row: usize, col: usize| {
            sums.0[row] = self.field.add(sums.0[row], self.field.multiply(residue, self.vector[col]));
        };
        add(place.row, place.col);
        if self.symmetric && place.row != place.col {
            add(place.col, place.row);
        }
    }

    /// Adds the sums of one worker.
    pub fn collect(&self, sums: RowSums) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter_mut().zip(sums.0).for_each(|(total, sum)| *total = self.field.add(*total, sum));
    }

    /// The verdict, once all ranks of `world` have added all their entries. Collective.
    ///
    /// # Errors
    /// [`Error::Verification`] names the first wrong row, the prime and the seed; [`Error::Transport`].
    pub fn finish(self, world: &dyn Transport) -> Result<()> {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        sum_over_ranks(world, &self.field, &mut found)?;
        match self.wanted.iter().zip(&found).position(|(want, got)| want != got) {
            None => Ok(()),
            Some(row) => Err(Error::verification(ErrorText::counted(|base| {
                let (row, prime, seed) = (base.one("row", row), self.field.prime(), self.seed);
                format!("{row} of the scaled product is wrong (Freivalds modulo {prime}, seed {seed})")
            }))),
        }
    }
}

/// `X^T (Y v)`, of the scaled rows of this rank.
fn images(site: Site<'_>, field: &CheckField, vector: &[u64], [left, right]: [OperandRows<'_>; 2]) -> Vec<u64> {
    let entry = |view: &MatrixView<'_>, row, col, shifts: &[i64]| field.scaled(view.get(row, col), shifts[col]);
    let image_of = |view: &MatrixView<'_>| {
        map_indices(site.ctx, view.rows(), |row| {
            let mut sum = field.product_sum();
            vector.iter().enumerate().for_each(|(col, &v)| sum.add(entry(view, row, col, right.shifts), v));
            sum.residue()
        })
    };
    let images = right.blocks.iter().map(image_of).collect::<Vec<_>>();
    map_indices(site.ctx, left.shifts.len(), |col| {
        let mut sum = field.product_sum();
        for (view, image) in left.blocks.iter().zip(&images) {
            image.iter().enumerate().for_each(|(row, &v)| sum.add(entry(view, row, col, left.shifts), v));
        }
        sum.residue()
    })
}

/// The same of one triangle of `X^T Y`: `Y v` is then summed only up to the column of each entry, or from it on, while
/// a row is walked through.
fn half_images(
    site: Site<'_>,
    field: &CheckField,
    vector: &[u64],
    [left, right]: [OperandRows<'_>; 2],
    uplo: Uplo,
) -> Vec<u64> {
    let (parts, order) = (site.ctx.threads(), vector.len());
    let sums = map_indices(site.ctx, parts, |part| {
        let mut sums = vec![0; order];
        for (x, y) in left.blocks.iter().zip(right.blocks) {
            for row in x.rows() * part / parts..x.rows() * (part + 1) / parts {
                let mut image = 0;
                for step in 0..order {
                    let col = if uplo == Uplo::Lower { step } else { order - 1 - step };
                    let [x, y] = [(x, left.shifts), (y, right.shifts)]
                        .map(|(view, shifts)| field.scaled(view.get(row, col), shifts[col]));
                    image = field.add(image, field.multiply(y, vector[col]));
                    sums[col] = field.add(sums[col], field.multiply(x, image));
                }
            }
        }
        sums
    });
    let mut all = vec![0; order];
    for sums in sums {
        all.iter_mut().zip(sums).for_each(|(all, sum)| *all = field.add(*all, sum));
    }
    all
}

/// Each residue becomes the sum of the residues of all ranks, added in two halves that cannot overflow. Collective.
fn sum_over_ranks(world: &dyn Transport, field: &CheckField, residues: &mut [u64]) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    let mut halves = residues.iter().map(|&residue| [residue & u64::from(u32::MAX), residue >> 32]).collect::<Vec<_>>();
    world.all_reduce(Reduction::Sum, halves.as_flattened_mut())?;
    for (residue, [low, high]) in residues.iter_mut().zip(halves) {
        *residue = field.add(low % field.prime(), field.multiply(high % field.prime(), 1 << 32));
    }
    Ok(())
}
