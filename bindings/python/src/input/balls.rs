//! Operands that are balls: midpoints, and radii that include the rounding errors of reading.

use super::{Bits, Operand, ReadNumbers};
use crate::errors::OrRaise;
use crate::kind::{Container, NumberKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rug::Float;
use sunzi::ball::BallMatrix;

/// Bits of fractions and decimals beyond those of the result.
const SPARE_BITS: u32 = 32;

/// Bits of radii.
const RADIUS_BITS: u32 = 64;

/// The radius of one entry.
pub struct Radius<'py> {
    index: usize,
    mantissa: u64,
    exponent: i64,
    ball: Bound<'py, PyAny>,
}

impl<'py> Radius<'py> {
    /// The radius of the entry with this index, row by row: an integer times a power of two.
    pub fn new(index: usize, mantissa: u64, exponent: i64, ball: Bound<'py, PyAny>) -> Radius<'py> {
        Radius { index, mantissa, exponent, ball }
    }

    /// The exception for a ball where a number is needed.
    pub fn refused(&self, cols: usize) -> PyErr {
        let (row, col) = (self.index / cols, self.index % cols);
        match self.ball.str() {
            Ok(ball) => PyValueError::new_err(format!(
                "entry at row {row}, column {col} is the ball {ball}: pass its midpoint, x.mid()"
            )),
            Err(error) => error,
        }
    }

    fn value(&self) -> Float {
        let shift = self.exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        Float::with_val(RADIUS_BITS, self.mantissa) << shift
    }
}

impl<'py> Operand<'py> {
    /// Whether the numbers are python-flint's, so that results of theirs are balls.
    pub fn is_ball(&self) -> bool {
        self.container != Container::Matrix && self.kind == NumberKind::Flint
    }

    /// The numbers as balls. Fractions and decimals are rounded to a few more than `bits` bits, and their radii include
    /// this rounding.
    ///
    /// # Errors
    /// The errors of [`Operand::view`], except for radii.
    pub fn balls(mut self, py: Python<'py>, bits: u32) -> PyResult<BallMatrix> {
        let (cols, radii) = (self.cols, std::mem::take(&mut self.radii));
        let bits = bits.saturating_add(SPARE_BITS);
        let ReadNumbers { view, rounded, .. } = self.midpoints(py, Bits::Round(bits), false)?;
        let midpoint = view.entries().to_matrix().or_raise(py)?;
        let mut radius = sunzi::Matrix::zeros(midpoint.rows(), midpoint.cols(), RADIUS_BITS).or_raise(py)?;
        for radius_of in &radii {
            let place = (radius_of.index / cols, radius_of.index % cols);
            radius.set_float(place.0, place.1, &radius_of.value()).or_raise(py)?;
        }
        // A number that was rounded to b bits is off by at most half a unit: 2^(e - b - 1) for |x| < 2^e.
        let mut widen = |row: usize, col: usize, bits: u32| {
            let head = midpoint.get(row, col).head;
            let power = (head.exponent() - i64::from(bits)).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            let unit = if head.is_zero() { Float::new(RADIUS_BITS) } else { Float::with_val(RADIUS_BITS, 1) << power };
            let own = radius.float(row, col);
            let sum = Float::with_val_round(RADIUS_BITS, &own + &unit, rug::float::Round::Up).0;
            radius.set_float(row, col, &sum).or_raise(py)
        };
        match view.rounded_bits() {
            // A matrix of the library whose numbers were rounded when it was made.
            Some(rounded_bits) if rounded.is_empty() => {
                for (row, col) in (0..view.cols()).flat_map(|col| (0..view.rows()).map(move |row| (row, col))) {
                    widen(row, col, rounded_bits)?;
                }
            }
            _ => rounded.iter().try_for_each(|&(row, col)| widen(row, col, bits))?,
        }
        BallMatrix::new(midpoint, &radius).or_raise(py)
    }
}
