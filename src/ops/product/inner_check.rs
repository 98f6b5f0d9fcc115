//! Freivalds' test inside a product: is the integer product what the scaled operands give, before it is rounded?
//!
//! With `X` and `Y` the scaled integer operands and `Q'` the reconstructed product, tests `Q' v = X^T (Y v)` for one
//! random vector modulo one random 61-bit prime. The operands are scaled anew, without the kernels' code, so the test
//! covers conversions, products and reconstruction. Source: docs/ALGORITHM.md, "Range check".

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::check_field::CheckField;
use crate::matrix::MatrixView;
use crate::ops::product::combine::Place;
use crate::ops::product::problem::Problem;
use crate::ops::verify::{fresh_seed, map_indices};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::{Mutex, PoisonError};

/// The vector, what it must give, and what the product has given so far.
pub(crate) struct InnerCheck {
    field: CheckField,
    seed: u64,
    vector: Vec<u64>,
    wanted: Vec<u64>,
    /// Whether each entry stands for its mirror image too.
    symmetric: bool,
    found: Mutex<Vec<u64>>,
}

/// What the entries of one worker have added to each row.
pub(crate) struct RowSums(Vec<u64>);

impl InnerCheck {
    /// Draws the vector and multiplies it by the scaled operands.
    ///
    /// Cost: every entry of the operands is read twice, on the context's threads.
    pub fn new(ctx: &Context, problem: &Problem<'_>, left_shifts: &[i64], right_shifts: &[i64]) -> InnerCheck {
        let seed = fresh_seed();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let field = CheckField::random(&mut rng);
        let (left, right) = (problem.left.view, problem.right_operand().view);
        let vector = (0..right.cols()).map(|_| field.draw(&mut rng)).collect::<Vec<_>>();
        let entry = |view: MatrixView<'_>, row, col, shifts: &[i64]| field.scaled(view.get(row, col), shifts[col]);
        let image = map_indices(ctx, right.rows(), |row| {
            let mut sum = field.product_sum();
            vector.iter().enumerate().for_each(|(col, &v)| sum.add(entry(right, row, col, right_shifts), v));
            sum.residue()
        });
        let wanted = map_indices(ctx, left.cols(), |col| {
            let mut sum = field.product_sum();
            image.iter().enumerate().for_each(|(row, &v)| sum.add(entry(left, row, col, left_shifts), v));
            sum.residue()
        });
        let found = Mutex::new(vec![0; wanted.len()]);
        InnerCheck { field, seed, vector, wanted, symmetric: problem.triangle(), found }
    }

    /// Bytes that the check takes beside the product, for a `rows x cols` result.
    ///
    /// The field's table; for each row what is wanted, what is found and the sums of every worker; the random vector;
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
    pub fn add(&self, sums: &mut RowSums, place: Place, negative: bool, magnitude: &[u64]) {
        let residue = self.field.integer(negative, magnitude);
        let mut add = |row: usize, col: usize| {
            sums.0[row] = self.field.add(sums.0[row], self.field.multiply(residue, self.vector[col]));
        };
        add(place.row, place.col);
        if self.symmetric && place.row != place.col {
            add(place.col, place.row);
        }
    }

    /// Takes over what one worker has added.
    pub fn collect(&self, sums: RowSums) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter_mut().zip(sums.0).for_each(|(total, sum)| *total = self.field.add(*total, sum));
    }

    /// The verdict, once all entries were added.
    ///
    /// # Errors
    /// [`Error::Verification`] names the first wrong row, the prime and the seed.
    pub fn finish(self) -> Result<()> {
        let found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        match self.wanted.iter().zip(&found).position(|(want, got)| want != got) {
            None => Ok(()),
            Some(row) => Err(Error::Verification(format!(
                "row {row} (from 0) of the scaled product is wrong (Freivalds modulo {}, seed {})",
                self.field.prime(),
                self.seed
            ))),
        }
    }
}
