//! `trmm`: `alpha * op(T) B` and `alpha * B op(T)` for a triangular `T`.
//!
//! The triangle is cut into bands of rows. Each is one product with the part of `B` that the band meets: no work is
//! done outside of the triangle except in the squares on the diagonal, and every entry is rounded once.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Destination, Diag, Matrix, MatrixView, MatrixViewMut, Op, Side, Uplo};
use crate::ops::product::block::moved;
use crate::ops::product::call;
use crate::ops::product::combine::Epilogue;
use crate::ops::product::problem::{Accuracy, ProductProblem, check_precision};
use crate::ops::product::report::{Outcome, Report};
use crate::options::setters;
use rug::Float;
use std::ops::Range;
use std::time::Instant;

/// Rows of a band, at least, and bands, at most: products of fewer rows cost more for each of them.
const BAND_ROWS: usize = 64;
const MOST_BANDS: usize = 8;

/// Options of a TRMM in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TrmmOptions<'a> {
    /// `Left` gives `op(T) B` (the default), `Right` gives `B op(T)`.
    pub side: Side,
    /// The triangle of `T` that is read; the contents of the other triangle are ignored.
    pub uplo: Uplo,
    /// Whether `T` is used transposed.
    pub op: Op,
    /// Whether the diagonal of `T` is read or taken as ones.
    pub diag: Diag,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
}

setters! { new TrmmOptions<'a> {
    side: Side,
    uplo: Uplo,
    op: Op,
    diag: Diag,
    accuracy: Accuracy,
    alpha: impl Into<Option<&'a Float>>,
} }

/// `L B` for a lower triangular `L`; see [`trmm_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?;
/// let b = Matrix::from_f64s(2, 2, 128, &[10.0, 1.0, 0.0, 2.0])?;
/// assert_eq!(sunzi::trmm(&ctx, &l, &b, 128)?.view().to_f64s(), [10.0, 23.0, 0.0, 6.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trmm_with`].
pub fn trmm<'a, 'b>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(trmm_with(ctx, t, b, precision_bits, &TrmmOptions::default())?.result)
}

/// `alpha * op(T) B` or `alpha * B op(T)` for a triangular `T`, rounded to `precision_bits` bits.
///
/// Shapes: `t` is `n x n`, of which one triangle is read (with [`Diag::Unit`] without its diagonal); `b` and the result
/// are `n x m` for side left, `m x n` for side right. Any of them may be empty. Accuracy: that of [`crate::gemm_with`]
/// for the same operands with zeros outside the triangle: by norms or, with [`Accuracy::Entrywise`], componentwise. The
/// bits depend only on the operands, the precision and the options. Cost: `n^2 m / 2` word products for each prime, and
/// the products of the square blocks on the diagonal.
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let t = Matrix::from_f64s(2, 2, 256, &[1.0, 2.0, 99.0, 3.0])?; // what stands above the diagonal is not read
/// let b = Matrix::from_f64s(2, 1, 256, &[10.0, 1.0])?;
/// assert_eq!(sunzi::trmm(&ctx, &t, &b, 256)?.view().to_f64s(), [10.0, 23.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::gemm_with`].
pub fn trmm_with<'a, 'b>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &TrmmOptions<'_>,
) -> Result<Outcome> {
    let mut result = Matrix::empty();
    let report = trmm_into(ctx, t, b, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`trmm_with`] into the caller's memory: a matrix, which is replaced if its shape or precision do not fit, or a block
/// of a larger one, see [`Destination`].
///
/// After an error the contents of `result` are unspecified numbers.
///
/// # Errors
/// As [`trmm_with`]; [`Error::ShapeMismatch`] and [`Error::InvalidArgument`] for a block of another shape or precision.
pub fn trmm_into<'a, 'b, 'r>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &TrmmOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<Report> {
    let (start, b) = (Instant::now(), b.into());
    let bands = TriangleBands::new(t.into(), options);
    bands.check_shapes(&b)?;
    check_precision(ctx.maximum_modulus_bits(), precision_bits, bands.order())?;
    Epilogue::new(options.alpha, None, None).check_scalars(false)?;
    let result_bytes = Matrix::bytes_for(b.rows(), b.cols(), precision_bits);
    let held_bytes = result_bytes.saturating_add(bands.copy_bytes());
    ctx.admit(held_bytes)?;
    let mut result = result.into().prepare((b.rows(), b.cols()), precision_bits)?;
    let mut total = Report { operation: "trmm", precision_bits, accuracy: options.accuracy, ..Report::default() };
    for rows in bands.largest_first() {
        let block = bands.block_of(rows.clone(), result.reborrow())?;
        // The plan of a product counts its own part of the result.
        let own_bytes = Matrix::bytes_for(block.rows(), block.cols(), precision_bits);
        let inner = ctx.holding(held_bytes - own_bytes);
        let report = bands.multiply(&inner, rows, b, precision_bits, block)?;
        let planned_bytes = total.planned_bytes.max(report.planned_bytes + held_bytes - own_bytes);
        add(&mut total, report);
        total.planned_bytes = planned_bytes;
    }
    (total.rows, total.cols) = (bands.order(), b.cols());
    total.planned_bytes = total.planned_bytes.max(held_bytes);
    total.seconds = start.elapsed().as_secs_f64();
    Ok(total)
}

/// The triangle as rows that are contracted with the columns of `B`, or of its transpose, in bands.
struct TriangleBands<'t, 'o> {
    view: MatrixView<'t>,
    lower: bool,
    options: &'o TrmmOptions<'o>,
}

impl<'t, 'o> TriangleBands<'t, 'o> {
    fn new(t: MatrixView<'t>, options: &'o TrmmOptions<'o>) -> TriangleBands<'t, 'o> {
        // Columns of the right operand of B op(T) are rows of op(T)^T.
        let transposed = (options.op == Op::Transpose) != (options.side == Side::Right);
        let view = if transposed { t.transposed() } else { t };
        TriangleBands { view, lower: (options.uplo == Uplo::Lower) != transposed, options }
    }

    fn order(&self) -> usize {
        self.view.rows()
    }

    fn check_shapes(&self, b: &MatrixView<'_>) -> Result<()> {
        let met = if self.options.side == Side::Left { b.rows() } else { b.cols() };
        let (t, b) = ((self.view.rows(), self.view.cols()), (b.rows(), b.cols()));
        match t.0 == t.1 && t.0 == met {
            true => Ok(()),
            false if self.options.side == Side::Left => Err(Error::shape_mismatch("trmm", t, b)),
            false => Err(Error::shape_mismatch("trmm", b, t)),
        }
    }

    fn count(&self) -> usize {
        (self.order() / BAND_ROWS).clamp(1, MOST_BANDS)
    }

    /// The bands of rows, the one with most columns first: its memory is enough for all.
    fn largest_first(&self) -> impl Iterator<Item = Range<usize>> {
        let (order, count, lower) = (self.order(), self.count(), self.lower);
        let bands = (0..count).map(move |at| if lower { count - 1 - at } else { at });
        bands.map(move |at| at * order / count..(at + 1) * order / count).filter(|rows| !rows.is_empty())
    }

    /// The columns in which a band has entries.
    fn met(&self, rows: &Range<usize>) -> Range<usize> {
        if self.lower { 0..rows.end } else { rows.start..self.order() }
    }

    /// Bytes of the copy of the largest band.
    fn copy_bytes(&self) -> u64 {
        let bytes =
            |rows: Range<usize>| Matrix::bytes_for(rows.len(), self.met(&rows).len(), self.view.precision_bits());
        self.largest_first().map(bytes).max().unwrap_or(0)
    }

    /// A copy of a band, with zeros outside the triangle.
    fn copy(&self, rows: &Range<usize>) -> Result<Matrix> {
        let cols = self.met(rows);
        let mut copy = Matrix::zeros(rows.len(), cols.len(), self.view.precision_bits())?;
        let mut one = vec![0; self.view.limbs_per_element()];
        one.last_mut().into_iter().for_each(|top| *top = 1 << 63);
        for (row, col) in cols.clone().flat_map(|col| rows.clone().map(move |row| (row, col))) {
            let value = match row == col {
                true if self.options.diag == Diag::Unit => FloatRef { head: Head::new(false, 1), limbs: &one },
                false if (row > col) != self.lower => continue,
                _ => self.view.get(row, col),
            };
            copy.set(row - rows.start, col - cols.start, value);
        }
        Ok(copy)
    }

    /// The part of the result that a band gives.
    fn block_of<'r>(&self, rows: Range<usize>, result: MatrixViewMut<'r>) -> Result<MatrixViewMut<'r>> {
        let (height, width) = (result.rows(), result.cols());
        match self.options.side {
            Side::Left => result.block(rows, 0..width),
            Side::Right => result.block(0..height, rows),
        }
    }

    /// The product of one band into its part of the result.
    fn multiply(
        &self,
        ctx: &Context,
        rows: Range<usize>,
        b: MatrixView<'_>,
        precision_bits: u32,
        block: MatrixViewMut<'_>,
    ) -> Result<Report> {
        let (met, first) = (self.met(&rows), rows.start);
        let copy = self.copy(&rows)?;
        let plain = Op::NoTranspose;
        let product = match self.options.side {
            Side::Left => ProductProblem::gemm(copy.view(), plain, b.block(met, 0..b.cols())?, plain, precision_bits),
            Side::Right => {
                ProductProblem::gemm(b.block(0..b.rows(), met)?, plain, copy.transposed(), plain, precision_bits)
            }
        };
        let epilogue = Epilogue::new(self.options.alpha, None, None);
        let problem = ProductProblem { operation: "trmm", epilogue, accuracy: self.options.accuracy, ..product };
        call::run(ctx, &problem, Destination::Block(block)).map_err(|error| match self.options.side {
            Side::Left => moved(error, first, 0),
            Side::Right => moved(error, 0, first),
        })
    }
}

/// Adds the report of a band to those before it.
fn add(total: &mut Report, band: Report) {
    let (sum, phases) = (&mut total.phases, &band.phases);
    sum.scale += phases.scale;
    sum.to_residues += phases.to_residues;
    sum.product += phases.product;
    sum.reconstruct += phases.reconstruct;
    sum.unscale += phases.unscale;
    total.single_entries += band.single_entries;
    total.working_bits = total.working_bits.max(band.working_bits);
    total.range_bits = total.range_bits.max(band.range_bits);
    total.threads = total.threads.max(band.threads);
    total.primes = total.primes.max(band.primes);
    total.batches = total.batches.max(band.batches);
    total.chunks = total.chunks.max(band.chunks);
    total.bands += band.bands;
    total.checked |= band.checked;
    if total.kernel.is_empty() {
        (total.kernel, total.devices) = (band.kernel, band.devices);
    }
}
