//! The problem of an LU factorisation: the scaling of its columns, its bits, and its integers.
//!
//! Column `j` is scaled by `2^-c_j`, where `2^c_j` exceeds all of its entries. With `w` working bits the entries of the
//! scaled matrix are integers times `2^(-2 w)`, those of `L` and of the scaled `U` integers times `2^-w`. All paths
//! follow these rules, so that they give the same bits. Proofs: docs/ALGORITHM.md, "LU with partial pivoting".

use crate::error::{Error, Result};
use crate::kernels::entries::Widths;
use crate::kernels::limbs;
use crate::math::bound::{LU_GUARD_BITS, lu_modulus_bits};
use crate::math::float::{FloatRef, limbs_for, round_shifted};
use crate::math::pivot::round_shift;
use crate::matrix::MatrixView;
use rug::Integer;

/// A square matrix to factor at one precision.
pub(crate) struct LuProblem {
    /// Rows and columns.
    pub order: usize,
    /// Precision of the factors.
    pub precision_bits: u32,
    /// Fixed-point bits `w` of the scaled factors.
    pub working_bits: u32,
    /// `c_j`.
    pub exponents: Vec<i64>,
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
        let exponent = |col: usize| {
            let entries = (0..order).map(|row| a.head(row, col)).filter(|head| !head.is_zero());
            entries.map(|head| head.exponent()).max().unwrap_or(0)
        };
        let working_bits = precision_bits + LU_GUARD_BITS + range_bits;
        Ok(LuProblem { order, precision_bits, working_bits, exponents: (0..order).map(exponent).collect() })
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

    /// `round(a_ij 2^(2 w - c_j))` in two's complement, into all of `out`; ties to even.
    pub fn scaled_limbs(&self, entry: FloatRef<'_>, col: usize, out: &mut [u64]) {
        if entry.head.is_zero() {
            return out.fill(0);
        }
        let exponent = entry.head.exponent() - 64 * entry.limbs.len() as i64;
        let shift = exponent + 2 * i64::from(self.working_bits) - self.exponents[col];
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
    pub fn scaled_entry(&self, entry: FloatRef<'_>, col: usize) -> Integer {
        if entry.head.is_zero() {
            return Integer::new();
        }
        let (integer, exponent) = entry.to_integer_exponent();
        round_shift(&integer, exponent + 2 * i64::from(self.working_bits) - self.exponents[col])
    }

    /// The power of two of the last bit of an entry in this row and column of the factors.
    pub fn entry_exponent(&self, is_upper: bool, col: usize) -> i64 {
        (if is_upper { self.exponents[col] } else { 0 }) - i64::from(self.working_bits)
    }
}

/// How a factorisation ended without factors.
#[derive(Debug)]
pub(crate) enum Stop {
    /// All candidates for the pivot of this column are 0.
    NoPivot(usize),
    /// An entry of the scaled `U` takes this number of bits above the point.
    Growth(u32),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}
