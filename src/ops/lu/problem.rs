//! The problem of an LU factorisation: the scaling of its columns, its bits, and its integers.
//!
//! Row `i` is scaled by `2^-r_i` and column `j` by `2^-c_j`: `2^c_j` exceeds all entries of the column, and `r_i` is 0
//! unless the sizes of the rows lie far apart. With `w` working bits the entries of the scaled matrix are integers
//! times `2^(-2 w)`, those of its factors integers times `2^-w`. All paths follow these rules, so that they give the
//! same bits. Proofs: docs/ALGORITHM.md, "LU with partial pivoting".

use crate::error::{Error, Result};
use crate::kernels::entries::Widths;
use crate::kernels::limbs;
use crate::math::bound::{LU_GUARD_BITS, lu_modulus_bits};
use crate::math::float::{FloatRef, Head, limbs_for, round_shifted};
#[cfg(test)]
use crate::math::pivot::round_shift;
use crate::matrix::{EntryIndex, MatrixView};
#[cfg(test)]
use rug::Integer;

/// A square matrix to factor at one precision.
pub(crate) struct LuProblem {
    /// Rows and columns.
    pub order: usize,
    /// Precision of the factors.
    pub precision_bits: u32,
    /// Fixed-point bits `w` of the scaled factors.
    pub working_bits: u32,
    /// `r_i`, by the rows of the matrix.
    pub row_exponents: Vec<i64>,
    /// `c_j`.
    pub col_exponents: Vec<i64>,
    /// Limbs of an entry of the matrix.
    pub source_limbs: usize,
}

/// The place of an entry of the factors: the row of the matrix that lies in its row, and its column.
#[derive(Clone, Copy)]
pub(crate) struct FactorPlace {
    pub row: usize,
    pub col: usize,
    /// The row of the matrix that has the pivot of the column, for an entry of `L`; `None` for one of `U`.
    pub pivot: Option<usize>,
}

/// The room for integers that are larger than those of the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headroom {
    /// Entries of the scaled `U` are at most `2^growth_bits`.
    pub growth_bits: u32,
    /// Bits whose power exceeds every sum of products in magnitude by a factor of 2.
    pub modulus_bits: u32,
    /// Limbs of the integers.
    pub widths: Widths,
}

impl LuProblem {
    /// Scales the columns of `a` for factors of `precision_bits`, with `range_bits` bits beyond those of the norms of
    /// columns.
    ///
    /// # Errors
    /// [`Error::NotSquare`].
    pub fn new(a: MatrixView<'_>, precision_bits: u32, range_bits: u32) -> Result<LuProblem> {
        let (order, cols) = (a.rows(), a.cols());
        if order != cols {
            return Err(Error::NotSquare { operation: "lu", rows: order, cols });
        }
        let row_exponents = row_exponents(&a);
        let scaled =
            |row: usize, col: usize| exponent_of(a.head(row, col)).map(|exponent| exponent - row_exponents[row]);
        let exponent = |col: usize| (0..order).filter_map(|row| scaled(row, col)).max().unwrap_or(0);
        let col_exponents = (0..order).map(exponent).collect();
        let working_bits = precision_bits + LU_GUARD_BITS + range_bits;
        let source_limbs = a.limbs_per_element();
        Ok(LuProblem { order, precision_bits, working_bits, row_exponents, col_exponents, source_limbs })
    }

    /// The problem for a matrix of `order` rows of `matrix_bits` bits, of which nothing else is known.
    pub fn of_order(order: usize, matrix_bits: u32, precision_bits: u32, range_bits: u32) -> LuProblem {
        LuProblem {
            order,
            precision_bits,
            working_bits: precision_bits + LU_GUARD_BITS + range_bits,
            row_exponents: Vec::new(),
            col_exponents: Vec::new(),
            source_limbs: limbs_for(matrix_bits),
        }
    }

    /// The exponent of the largest entry of the scaled matrix in the place of this entry: it lies below 2 to this
    /// power.
    pub fn exponent(&self, EntryIndex { row, col }: EntryIndex) -> i64 {
        self.row_exponents[row] + self.col_exponents[col]
    }

    /// The room for entries of the scaled `U` of at most `2^growth_bits`, at least 1 bit.
    pub fn headroom(&self, growth_bits: u32) -> Headroom {
        let modulus_bits = lu_modulus_bits(self.working_bits, growth_bits, self.order);
        let entry = limbs_for(self.working_bits + growth_bits + 1);
        Headroom {
            growth_bits,
            modulus_bits,
            widths: Widths { entry, rest: limbs_for(modulus_bits + 1).max(2 * entry + 1) },
        }
    }

    /// `round(a_ij 2^(2 w - r_i - c_j))` in two's complement, into all of `out`; ties to even.
    pub fn scaled_limbs(&self, entry: FloatRef<'_>, at: EntryIndex, out: &mut [u64]) {
        if entry.head.is_zero() {
            return out.fill(0);
        }
        let exponent = entry.head.exponent() - 64 * entry.limbs.len() as i64;
        let shift = exponent + 2 * i64::from(self.working_bits) - self.exponent(at);
        if shift >= 0 {
            // Nothing is rounded.
            out.fill(0);
            return limbs::add_shifted(out, entry.limbs, shift, entry.head.is_negative());
        }
        round_shifted(entry.limbs, -shift, out);
        if entry.head.is_negative() {
            limbs::negate(out);
        }
    }

    /// The same as an integer.
    #[cfg(test)]
    pub fn scaled_entry(&self, entry: FloatRef<'_>, at: EntryIndex) -> Integer {
        if entry.head.is_zero() {
            return Integer::new();
        }
        let (integer, exponent) = entry.to_integer_exponent();
        round_shift(&integer, exponent + 2 * i64::from(self.working_bits) - self.exponent(at))
    }

    /// The power of two of the last bit of an entry of the factors.
    pub fn entry_exponent(&self, FactorPlace { row, col, pivot }: FactorPlace) -> i64 {
        let other = pivot.map_or(self.col_exponents[col], |pivot| -self.row_exponents[pivot]);
        self.row_exponents[row] + other - i64::from(self.working_bits)
    }
}

/// Rows whose largest entries differ by no more than this number of bits are not scaled, so that the pivots are those
/// of the matrix itself.
const ROW_SPREAD_BITS: i64 = 32;

/// The exponent of a number, `None` for 0.
fn exponent_of(head: Head) -> Option<i64> {
    (!head.is_zero()).then(|| head.exponent())
}

/// The scaling of the rows: their largest entries relative to their columns, or zeros where these are of similar size.
fn row_exponents(a: &MatrixView<'_>) -> Vec<i64> {
    let (order, mut rows) = (a.rows(), Vec::with_capacity(a.rows()));
    let column = |col: usize| (0..order).filter_map(|row| exponent_of(a.head(row, col))).max().unwrap_or(0);
    let cols = (0..order).map(column).collect::<Vec<_>>();
    let entry = |row: usize, col: usize| exponent_of(a.head(row, col)).map(|exponent| exponent - cols[col]);
    rows.extend((0..order).map(|row| (0..order).filter_map(|col| entry(row, col)).max()));
    let known = || rows.iter().flatten();
    let spread = known().max().zip(known().min()).map_or(0, |(most, least)| most - least);
    let scaled = |exponent: Option<i64>| if spread > ROW_SPREAD_BITS { exponent.unwrap_or(0) } else { 0 };
    rows.into_iter().map(scaled).collect()
}

/// How a factorisation ended without factors.
#[derive(Debug)]
pub(crate) enum LuStop {
    /// All candidates for the pivot of this column are 0.
    NoPivot(usize),
    /// An entry of the scaled `U` takes this number of bits above the point.
    Growth(u32),
    Failed(Error),
}

/// A result, or how the factorisation ended without it.
pub(crate) type Stopped<T> = std::result::Result<T, LuStop>;

impl LuStop {
    /// The same with columns that are counted from one `first` columns earlier.
    pub fn behind(self, first: usize) -> LuStop {
        match self {
            LuStop::NoPivot(col) => LuStop::NoPivot(first + col),
            stop => stop,
        }
    }
}

impl From<Error> for LuStop {
    fn from(error: Error) -> LuStop {
        LuStop::Failed(error)
    }
}
