//! The problem of a factorisation, from the file of the matrix: every entry is read once, none is kept.

use crate::context::ProgressCallback;
use crate::error::Result;
use crate::io::MatrixFile;
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::math::pivot::RowWeight;
use crate::ops::factor::problem::FactorProblem;
use crate::ops::factor::scaling::{is_beyond_one, row_exponent, scaled_limbs};
use crate::site::Site;
use std::cell::OnceCell;
use std::iter;
use std::sync::Arc;

/// The problem of a file, and the checksum of the file's entries.
pub(super) struct ScannedProblem {
    pub problem: FactorProblem,
    pub checksum: u64,
}

impl FactorProblem {
    /// The problem of a file that stores a lower triangle, all of whose entries are checked. The file is read once, its
    /// heads twice.
    ///
    /// # Errors
    /// [`crate::Error::NotSquare`]; the errors of [`MatrixFile::check`].
    pub(super) fn of_file(
        file: &MatrixFile,
        precision_bits: u32,
        working_bits: u32,
        progress: Option<Arc<ProgressCallback>>,
    ) -> Result<ScannedProblem> {
        let mut problem = FactorProblem::unscaled(file.rows(), file.cols(), precision_bits, working_bits)?;
        let diagonal = file.diagonal_heads()?;
        problem.exponents = diagonal.iter().copied().map_while(row_exponent).collect();
        let exponents = &problem.exponents;
        let mut order = exponents.len();
        let checksum = file.check(progress, |row, col, head| {
            if row >= order || row <= col {
                return Ok(());
            }
            let (limbs, mut failed) = (OnceCell::new(), None);
            let entry = || {
                let limbs = limbs.get_or_init(|| {
                    file.entry_limbs(row, col).unwrap_or_else(|error| {
                        failed = Some(error);
                        vec![0; file.limbs()]
                    })
                });
                FloatRef { head, limbs }
            };
            if is_beyond_one(head, exponents[row] + exponents[col], working_bits, entry) {
                order = row;
            }
            failed.map_or(Ok(()), Err)
        })?;
        problem.cut(order);
        problem.weigh(file, &diagonal)?;
        Ok(ScannedProblem { problem, checksum })
    }

    /// The problem that rank 0 reads with `read`, sent to all ranks, for a matrix of `rows` rows. Collective.
    ///
    /// # Errors
    /// The errors of `read`; [`crate::Error::Transport`].
    pub(super) fn shared(
        site: Site<'_>,
        rows: usize,
        precision_bits: u32,
        working_bits: u32,
        read: impl FnOnce() -> Result<ScannedProblem>,
    ) -> Result<ScannedProblem> {
        let words = site.root_finds(|| {
            let ScannedProblem { problem, checksum } = read()?;
            let exponents = problem.exponents.iter().map(|&exponent| exponent as u64);
            let limits = problem.weights.iter().map(|weight| weight.limit);
            Ok(iter::once(checksum).chain(exponents).chain(limits).collect())
        })?;
        let (checksum, words) = words.split_first().expect("the checksum was sent");
        let order = words.len() / 2;
        let (exponents, limits) = words.split_at(order);
        let mut problem = FactorProblem::unscaled(rows, rows, precision_bits, working_bits)?;
        problem.exponents = exponents.iter().map(|&word| word as i64).collect();
        problem.weights = limits.iter().map(|&limit| RowWeight { sum: 0, limit }).collect();
        problem.cut(order);
        Ok(ScannedProblem { problem, checksum: *checksum })
    }

    /// The first weights of all rows, whose diagonal entries have these heads.
    fn weigh(&mut self, file: &MatrixFile, diagonal: &[Head]) -> Result<()> {
        let mut scaled = vec![0; limbs_for(2 * self.working_bits + 1)];
        for (row, &head) in diagonal.iter().enumerate().take(self.order) {
            let limbs = file.entry_limbs(row, row)?;
            let entry = FloatRef { head, limbs: &limbs };
            scaled_limbs(entry, 2 * self.exponents[row], self.working_bits, &mut scaled);
            self.weights.push(RowWeight::of_limbs(&scaled, self.working_bits));
        }
        Ok(())
    }
}
