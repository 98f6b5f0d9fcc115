//! A factor over ranks that the C library keeps.

use sunzi_c::{sunzi_mpi_factor, sunzi_mpi_factor_free, sunzi_mpi_factor_order, sunzi_mpi_factor_precision_bits};

/// This rank's tiles of a factor that the C library keeps.
pub struct Factor(pub(super) *mut sunzi_mpi_factor);

// SAFETY: numbers that are only read, but by `Ranks::renew`, which has them to itself.
unsafe impl Send for Factor {}
// SAFETY: as above.
unsafe impl Sync for Factor {}

impl Drop for Factor {
    fn drop(&mut self) {
        // SAFETY: made by `sunzi_mpi_factor_new`, and freed nowhere else.
        unsafe { sunzi_mpi_factor_free(self.0) }
    }
}

impl Factor {
    /// Rows of the factored matrix.
    pub fn order(&self) -> i64 {
        // SAFETY: live.
        unsafe { sunzi_mpi_factor_order(self.0) }
    }

    /// Bits of its entries.
    pub fn precision_bits(&self) -> i64 {
        // SAFETY: live.
        unsafe { sunzi_mpi_factor_precision_bits(self.0) }
    }
}
