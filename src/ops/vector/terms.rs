//! The terms of one entry: products of the entries of strided vectors with factors that have been cut into digits, and
//! their sum.

use crate::kernels::digit_sums::{
    self, DIGIT_BITS, DigitTerms, DigitVector, MOST_COLUMNS, NOTHING, Significands, Size, Sums,
};
use crate::math::bound::sum_columns;
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::MatrixView;
use crate::ops::fixed_sum::{FixedSum, Sign};
use std::ops::Range;

/// Columns of digits of a sum; 0 where whole products are faster.
pub(super) fn cut_columns(precision_bits: u32, terms: usize) -> usize {
    Some(sum_columns(precision_bits, terms)).filter(|columns| *columns <= MOST_COLUMNS).unwrap_or(0)
}

/// The right factors of the sums of a call.
pub(crate) struct RightFactors {
    heads: Vec<Head>,
    digits: DigitVector,
    /// The significands, for precisions at which whole products are faster.
    whole: Option<Vec<Vec<u64>>>,
}

impl RightFactors {
    /// `len` numbers, all 0, for sums of up to `terms` terms.
    pub fn zeros(len: usize, precision_bits: u32, terms: usize) -> RightFactors {
        let columns = sum_columns(precision_bits, terms);
        let cut = columns <= MOST_COLUMNS;
        RightFactors {
            heads: vec![Head::ZERO; len],
            digits: DigitVector::new(if cut { len } else { 0 }, columns.min(MOST_COLUMNS)),
            whole: (!cut).then(|| vec![Vec::new(); len]),
        }
    }

    /// The numbers of a column.
    pub fn new(column: &MatrixView<'_>, precision_bits: u32, terms: usize) -> RightFactors {
        let mut factors = RightFactors::zeros(column.rows(), precision_bits, terms);
        factors.set_all(column);
        factors
    }

    /// Sets the first ones to the numbers of a column.
    pub fn set_all(&mut self, column: &MatrixView<'_>) {
        if self.whole.is_some() {
            return (0..column.rows()).for_each(|index| self.set(index, column.get(index, 0)));
        }
        self.heads.iter_mut().zip(heads(column)).for_each(|(own, head)| *own = head);
        self.digits.set_all(0, &significands(column));
    }

    /// Bytes of `len` numbers of `limbs` limbs, for sums of up to `terms` terms.
    pub fn bytes(len: usize, precision_bits: u32, terms: usize, limbs: usize) -> u64 {
        let columns = sum_columns(precision_bits, terms);
        let whole = (size_of::<Vec<u64>>() + 8 * limbs) as u64;
        let digits = if columns <= MOST_COLUMNS { DigitVector::bytes(len, columns) } else { 0 };
        let each = if columns <= MOST_COLUMNS { 8 } else { 8 + whole };
        (len as u64).saturating_mul(each).saturating_add(digits)
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
pub(crate) struct TermRun<'a> {
    pub left: MatrixView<'a>,
    pub right: Range<usize>,
}

/// Room for the sum of one entry.
pub(crate) struct TermSum {
    pub sum: FixedSum,
    top: i64,
    columns: Sums,
    /// The sizes of terms, then where they stand.
    sizes: Vec<Size>,
}

/// The size of a product.
#[inline]
fn size(x: Head, y: Head) -> Size {
    let size = 2 * (x.exponent() + y.exponent()) + i64::from(x.is_negative() != y.is_negative());
    if x.is_zero() || y.is_zero() { NOTHING } else { size }
}

impl TermSum {
    /// Room for sums of up to `terms` terms.
    pub fn new(precision_bits: u32, terms: usize) -> TermSum {
        let sizes = Vec::with_capacity(terms);
        let columns = Sums::new(cut_columns(precision_bits, terms));
        TermSum { sum: FixedSum::new(precision_bits), top: 0, columns, sizes }
    }

    /// Bytes of the same.
    pub fn bytes(precision_bits: u32, terms: usize) -> u64 {
        let own = (size_of::<TermSum>() - size_of::<Sums>()) as u64;
        let own = own + Sums::bytes(cut_columns(precision_bits, terms));
        FixedSum::bytes(precision_bits) + own + 8 * terms as u64
    }

    /// Forms the sum of all terms.
    pub fn add_up(&mut self, factors: &RightFactors, runs: &[TermRun<'_>]) {
        self.sizes.clear();
        runs.iter().for_each(|run| self.note_sizes(factors, run));
        self.begin(factors);
        let mut first = 0;
        for run in runs {
            let terms = first..first + run.right.len();
            first = terms.end;
            self.add(factors, run, terms);
        }
        self.finish(factors);
    }

    /// Forms the sum of a number and of all terms of a run.
    pub fn add_up_to(&mut self, factors: &RightFactors, first: FloatRef<'_>, run: &TermRun<'_>) {
        self.sizes.clear();
        self.note_sizes(factors, run);
        if !first.head.is_zero() {
            self.sizes.push(2 * first.head.exponent());
        }
        self.begin(factors);
        self.add(factors, run, 0..run.right.len());
        self.finish(factors);
        self.sum.add(first);
    }

    /// Notes the sizes of the terms of a run.
    fn note_sizes(&mut self, factors: &RightFactors, run: &TermRun<'_>) {
        let right = factors.heads[run.right.clone()].iter();
        self.sizes.extend(right.zip(heads(&run.left)).map(|(&y, x)| size(x, y)));
    }

    /// Begins the sum of the products of two columns.
    pub fn begin_product(&mut self, factors: &RightFactors, x: &MatrixView<'_>, y: &MatrixView<'_>) {
        self.sizes.clear();
        self.sizes.extend(heads(x).zip(heads(y)).map(|(x, y)| size(x, y)));
        self.begin(factors);
    }

    /// Begins a sum of terms whose sizes are known.
    fn begin(&mut self, factors: &RightFactors) {
        if factors.whole.is_some() {
            let most = self.sizes.iter().copied().max().filter(|most| *most != NOTHING);
            return self.sum.begin(most.map_or(0, |most| most >> 1));
        }
        let columns = factors.digits.columns();
        self.columns.clear();
        self.top = digit_sums::place_terms(&mut self.sizes, columns).unwrap_or(0);
    }

    /// Adds a run; `terms` are the indices of its terms in the sum.
    pub fn add(&mut self, factors: &RightFactors, run: &TermRun<'_>, terms: Range<usize>) {
        if let Some(whole) = &factors.whole {
            let right = |index: usize| FloatRef { head: factors.heads[index], limbs: &whole[index] };
            let pairs = run.right.clone().enumerate().map(|(k, index)| (run.left.get(k, 0), right(index)));
            return self.sum.add_products(pairs, Sign::Plus);
        }
        let terms = DigitTerms { left: significands(&run.left), right: run.right.start, marks: &self.sizes[terms] };
        self.columns.add(&terms, &factors.digits);
    }

    /// Puts the sum together.
    pub fn finish(&mut self, factors: &RightFactors) {
        if factors.whole.is_none() {
            let columns = factors.digits.columns();
            let low = self.top - i64::from(DIGIT_BITS) * (columns as i64 + 1);
            let limbs = self.sum.take(low, digit_sums::sum_limbs(columns));
            digit_sums::write_sum(&self.columns, limbs);
        }
    }
}

/// The heads of a column.
#[inline]
fn heads(column: &MatrixView<'_>) -> impl Iterator<Item = Head> {
    let (stride, heads) = (column.row_stride(), column.all_heads());
    let first = if column.rows() == 0 { 0 } else { column.element_index(0, 0) };
    (0..column.rows()).map(move |k| Head(heads[first.wrapping_add(k.wrapping_mul(stride))]))
}

/// The significands of a column.
fn significands<'a>(column: &MatrixView<'a>) -> Significands<'a> {
    let (width, count) = (column.limbs_per_element(), column.rows());
    let first = if count == 0 { 0 } else { column.element_index(0, 0).wrapping_mul(width) };
    Significands { limbs: column.all_limbs(), width, first, stride: column.row_stride().wrapping_mul(width), count }
}

/// Estimate for one term.
pub(super) fn term_nanoseconds(precision_bits: u32) -> f64 {
    let limbs = limbs_for(precision_bits) as f64;
    8.0 + limbs * (1.0 + 0.1 * limbs)
}
