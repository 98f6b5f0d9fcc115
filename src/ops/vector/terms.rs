//! The terms of one entry: runs of products of the entries of two columns.

use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use crate::ops::fixed_sum::{FixedSum, Sign};

/// Products of the entries of two columns of the same length, added or subtracted.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub left: MatrixView<'a>,
    pub right: MatrixView<'a>,
    pub sign: Sign,
}

impl<'a> Run<'a> {
    /// `left^T right`.
    pub fn plus(left: MatrixView<'a>, right: MatrixView<'a>) -> Run<'a> {
        Run { left, right, sign: Sign::Plus }
    }

    /// `-left^T right`.
    pub fn minus(left: MatrixView<'a>, right: MatrixView<'a>) -> Run<'a> {
        Run { left, right, sign: Sign::Minus }
    }

    fn pairs(&self) -> impl Iterator<Item = (FloatRef<'a>, FloatRef<'a>)> + Clone + use<'a> {
        let Run { left, right, .. } = *self;
        (0..left.rows()).map(move |k| (left.get(k, 0), right.get(k, 0)))
    }
}

/// Forms the sum of all terms.
pub(super) fn add_up(sum: &mut FixedSum, runs: &[Run<'_>]) {
    let top = runs.iter().filter_map(|run| FixedSum::top(run.pairs())).max();
    sum.begin(top.unwrap_or(0));
    for run in runs {
        sum.add_products(run.pairs(), run.sign);
    }
}

/// Estimate for one term.
pub(super) fn term_nanoseconds(limbs: usize) -> f64 {
    10.0 + limbs as f64 * (1.0 + 0.5 * limbs as f64)
}
