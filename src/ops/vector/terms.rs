//! The terms of one entry: products of the entries of strided vectors with factors that have been cut into digits, and
//! their sum.

use crate::kernels::digit_sums::{self, Columns, DIGIT_BITS, DigitVector, MOST_COLUMNS, Term};
use crate::math::bound::sum_columns;
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::MatrixView;
use crate::ops::fixed_sum::{FixedSum, Sign};
use std::ops::Range;

/// The right factors of the sums of a call.
pub(super) struct Factors {
    heads: Vec<Head>,
    digits: DigitVector,
    /// The significands, for precisions at which whole products are faster.
    whole: Option<Vec<Vec<u64>>>,
}

impl Factors {
    /// So many numbers, all 0, for sums of up to so many terms.
    pub fn zeros(len: usize, precision_bits: u32, terms: usize) -> Factors {
        let columns = sum_columns(precision_bits, terms);
        let cut = columns <= MOST_COLUMNS;
        Factors {
            heads: vec![Head::ZERO; len],
            digits: DigitVector::new(if cut { len } else { 0 }, columns.min(MOST_COLUMNS)),
            whole: (!cut).then(|| vec![Vec::new(); len]),
        }
    }

    /// The numbers of a column.
    pub fn new(column: &MatrixView<'_>, precision_bits: u32, terms: usize) -> Factors {
        let mut factors = Factors::zeros(column.rows(), precision_bits, terms);
        (0..column.rows()).for_each(|index| factors.set(index, column.get(index, 0)));
        factors
    }

    /// Bytes of so many numbers of so many limbs.
    pub fn bytes(len: usize, precision_bits: u32, terms: usize, limbs: usize) -> u64 {
        let columns = sum_columns(precision_bits, terms);
        let whole = (size_of::<Vec<u64>>() + 8 * limbs) as u64;
        let each = if columns <= MOST_COLUMNS { DigitVector::bytes(1, columns) } else { whole };
        (len as u64).saturating_mul(8 + each)
    }

    /// Sets one of them.
    #[inline]
    pub fn set(&mut self, index: usize, value: FloatRef<'_>) {
        self.heads[index] = value.head;
        match &mut self.whole {
            None => self.digits.set(index, value.limbs),
            Some(whole) => whole[index] = value.limbs.to_vec(),
        }
    }
}

/// Products of the entries of a column and of neighbouring factors, as many as the column has entries.
pub(super) struct Run<'a> {
    pub left: MatrixView<'a>,
    pub right: Range<usize>,
}

/// Room for the sum of one entry.
pub(super) struct TermSum {
    pub sum: FixedSum,
    top: i64,
    /// Sums of the terms that are added, and of those that are subtracted.
    columns: [Columns; 2],
    terms: [Vec<Term>; 2],
}

impl TermSum {
    /// Room for runs of up to so many terms.
    pub fn new(precision_bits: u32, terms: usize) -> TermSum {
        let columns = [[0; MOST_COLUMNS + 1]; 2];
        let terms = [Vec::with_capacity(terms), Vec::with_capacity(terms)];
        TermSum { sum: FixedSum::new(precision_bits), top: 0, columns, terms }
    }

    /// Bytes of the same.
    pub fn bytes(precision_bits: u32, terms: usize) -> u64 {
        let lists = 2 * (size_of::<Term>() as u64).saturating_mul(terms as u64);
        FixedSum::bytes(precision_bits) + size_of::<TermSum>() as u64 + lists
    }

    /// Forms the sum of all terms.
    pub fn add_up(&mut self, factors: &Factors, runs: &[Run<'_>]) {
        self.begin(factors, runs.iter().filter_map(|run| run.top(&factors.heads)).max());
        runs.iter().for_each(|run| self.add(factors, run));
        self.finish(factors);
    }

    /// Begins a sum of terms below 2 to the power `top`; `None` where all are 0.
    pub fn begin(&mut self, factors: &Factors, top: Option<i64>) {
        self.top = top.unwrap_or(0);
        match factors.whole {
            Some(_) => self.sum.begin(self.top),
            None => self.columns.iter_mut().for_each(|sums| sums[..factors.digits.columns() + 1].fill(0)),
        }
    }

    /// Adds the terms of a run.
    pub fn add(&mut self, factors: &Factors, run: &Run<'_>) {
        if let Some(whole) = &factors.whole {
            let right = |index: usize| FloatRef { head: factors.heads[index], limbs: &whole[index] };
            let pairs = run.right.clone().enumerate().map(|(k, index)| (run.left.get(k, 0), right(index)));
            return self.sum.add_products(pairs, Sign::Plus);
        }
        self.list(factors, run);
        let (limbs, width) = (run.left.all_limbs(), run.left.limbs_per_element());
        for (sums, terms) in self.columns.iter_mut().zip(&self.terms) {
            digit_sums::add_terms(sums, limbs, width, &factors.digits, terms);
        }
    }

    /// Lists the terms that are not too small to count, by their sign.
    fn list(&mut self, factors: &Factors, run: &Run<'_>) {
        let (width, columns) = (run.left.limbs_per_element(), factors.digits.columns());
        let most = i64::from(DIGIT_BITS) * columns as i64;
        let [plus, minus] = &mut self.terms;
        plus.clear();
        minus.clear();
        for ((index, &y), (at, x)) in run.right.clone().zip(&factors.heads[run.right.clone()]).zip(run.heads()) {
            let shift = self.top - x.exponent() - y.exponent();
            if shift < most && !x.is_zero() && !y.is_zero() {
                let term = Term { limb: at.wrapping_mul(width), right: index, shift: shift as u32 };
                if x.is_negative() == y.is_negative() { plus.push(term) } else { minus.push(term) }
            }
        }
    }

    /// Puts the sum together.
    pub fn finish(&mut self, factors: &Factors) {
        if factors.whole.is_none() {
            let columns = factors.digits.columns();
            let low = self.top - i64::from(DIGIT_BITS) * (columns as i64 + 1);
            let limbs = self.sum.take(low, digit_sums::sum_limbs(columns));
            digit_sums::difference(&self.columns[0], &self.columns[1], columns, limbs);
        }
    }
}

impl Run<'_> {
    /// Index and head of each entry of the column.
    #[inline]
    fn heads(&self) -> impl Iterator<Item = (usize, Head)> {
        let (stride, heads) = (self.left.row_stride(), self.left.all_heads());
        let first = if self.left.rows() == 0 { 0 } else { self.left.element_index(0, 0) };
        (0..self.left.rows()).map(move |k| {
            let at = first.wrapping_add(k.wrapping_mul(stride));
            (at, Head(heads[at]))
        })
    }

    /// The power of two above all terms; `None` where all are 0.
    pub fn top(&self, right: &[Head]) -> Option<i64> {
        let both = right[self.right.clone()].iter().zip(self.heads());
        let terms = both.filter(|(y, (_, x))| !x.is_zero() && !y.is_zero());
        terms.map(|(y, (_, x))| x.exponent() + y.exponent()).max()
    }
}

/// Estimate for one term.
pub(super) fn term_nanoseconds(precision_bits: u32) -> f64 {
    let limbs = limbs_for(precision_bits) as f64;
    8.0 + limbs * (1.0 + 0.1 * limbs)
}
