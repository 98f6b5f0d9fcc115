//! dgemm and dsyrk of OpenBLAS with checked shapes.
//!
//! Promise: no call accesses memory outside its slices, for any arguments; calls from several threads are independent.

use super::{result, sys};
use crate::kernels::f64::dgemm::{Dgemm, DgemmShape, DoubleColumns};

/// A value of this type proves that OpenBLAS runs each call on one thread.
#[derive(Clone, Copy, Debug)]
pub struct OpenBlas(());

impl OpenBlas {
    /// Sets OpenBLAS to one thread per call.
    ///
    /// # Errors
    /// The errors of [`result::use_one_thread`].
    pub fn probe() -> Result<OpenBlas, &'static str> {
        result::use_one_thread().map(OpenBlas)
    }
}

/// A dimension as CBLAS takes it. Tiles and chunks are far below the limit; only a stride could be above (asserted).
fn int(size: usize) -> i32 {
    i32::try_from(size).expect("a dimension below 2^31")
}

impl Dgemm for OpenBlas {
    fn tile(&self) -> DgemmShape {
        DgemmShape { rows: 126, cols: 126, diagonal: 126 }
    }

    fn product(&self, x: DoubleColumns<'_>, y: DoubleColumns<'_>, out: &mut [f64]) {
        assert_eq!(x.rows(), y.rows(), "columns of different lengths");
        let out = &mut out[..x.count() * y.count()];
        #[cfg(test)]
        super::mock::count_dgemm(x.count() * y.count() * x.rows());
        // SAFETY: `DoubleColumns` keeps every element `(k, j)`, `k < rows`, `j < count`, at `k + j * stride` inside its
        // slice, as CBLAS reads it with these dimensions; `out` holds `x.count() * y.count()` words and overlaps
        // neither operand, since it is borrowed mutably. With beta = 0 CBLAS does not read it.
        unsafe {
            sys::cblas_dgemm(
                sys::CBLAS_LAYOUT::CblasColMajor,
                sys::CBLAS_TRANSPOSE::CblasTrans,
                sys::CBLAS_TRANSPOSE::CblasNoTrans,
                int(x.count()),
                int(y.count()),
                int(x.rows()),
                1.0,
                x.words().as_ptr(),
                int(x.stride()),
                y.words().as_ptr(),
                int(y.stride()),
                0.0,
                out.as_mut_ptr(),
                int(x.count()),
            );
        }
    }

    fn gram(&self, x: DoubleColumns<'_>, out: &mut [f64]) {
        let out = &mut out[..x.count() * x.count()];
        #[cfg(test)]
        super::mock::count_dsyrk(x.count() * (x.count() + 1) / 2 * x.rows());
        // SAFETY: as in `product`; dsyrk writes the lower triangle of `x.count()` columns in `out` and no more.
        unsafe {
            sys::cblas_dsyrk(
                sys::CBLAS_LAYOUT::CblasColMajor,
                sys::CBLAS_UPLO::CblasLower,
                sys::CBLAS_TRANSPOSE::CblasTrans,
                int(x.count()),
                int(x.rows()),
                1.0,
                x.words().as_ptr(),
                int(x.stride()),
                0.0,
                out.as_mut_ptr(),
                int(x.count()),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::f64::dgemm::tests::check;

    #[test]
    fn openblas_gives_the_plain_sums() {
        check(&OpenBlas::probe().unwrap());
    }
}
