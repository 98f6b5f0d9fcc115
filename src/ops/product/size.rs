//! The sizes of a product.

use crate::error::{Error, Result};

/// The three sizes of a product and whether one triangle of it is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProductSize {
    pub contracted: usize,
    pub rows: usize,
    pub cols: usize,
    pub triangle: bool,
}

impl ProductSize {
    /// The verb with a result of this form: `syrk` or `gemm`.
    pub fn operation(&self) -> &'static str {
        if self.triangle { "syrk" } else { "gemm" }
    }

    /// Whether there is nothing to multiply.
    pub fn is_empty(&self) -> bool {
        self.contracted == 0 || self.rows == 0 || self.cols == 0
    }

    /// Refuses sizes whose planes could not be addressed by any plan, so that no later arithmetic overflows.
    ///
    /// # Errors
    /// [`Error::DimensionOverflow`] with the shape of the largest matrix.
    pub fn check(&self, precision_bits: u32) -> Result<()> {
        let (rows, cols) = match self.contracted > self.rows.max(self.cols) {
            true => (self.contracted, self.rows.max(self.cols)),
            false => (self.rows, self.cols),
        };
        let overflow = Error::DimensionOverflow { rows, cols, precision_bits };
        let [contracted, rows, cols] = [self.contracted, self.rows, self.cols].map(|size| size as u128 + 64);
        // Bytes of a plane are at most these times 8, and there are fewer planes than bits of precision and 64.
        let bits = u128::from(precision_bits) + 64;
        let most = [contracted, rows, cols].iter().copied().max().unwrap_or(0);
        let fits = most < 1 << 40 && (contracted * (rows + cols)).max(rows * cols) * 8 * bits < 1 << 62;
        if self.is_empty() || fits { Ok(()) } else { Err(overflow) }
    }

    /// Columns of the operands that are converted.
    pub fn operand_columns(&self) -> usize {
        if self.triangle { self.cols } else { self.rows.saturating_add(self.cols) }
    }

    /// Entries of the result that are computed.
    pub fn entries(&self) -> f64 {
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        if self.triangle { cols * (cols + 1.0) / 2.0 } else { rows * cols }
    }
}

/// The sizes of a product to plan: rows, columns, contracted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockShape {
    pub rows: usize,
    pub cols: usize,
    pub contracted: usize,
}
