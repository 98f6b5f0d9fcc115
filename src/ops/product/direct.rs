//! The path of tiny sizes, where residues cost more than they save: exact sums of products on limbs.
//!
//! The same scaled integers, the same exact product and the same rounding as on planes, so the same bits; no engine,
//! no thread, and one block of memory beside the result.

use crate::context::{Context, Workspace};
use crate::drive::Meter;
use crate::error::Result;
use crate::kernels::limbs;
use crate::math::float::{limbs_for, round_shifted};
use crate::matrix::{MatrixView, MatrixViewMut};
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::combine::Place;
use crate::ops::product::plan::{Plan, PlanRequest};
use crate::ops::product::problem::{Bits, Problem};
use crate::ops::product::segments::in_triangle;
use crate::ops::product::size::ProductSize;
use crate::plan::PlanBytes;
use crate::store::Buffer;
use std::ops::Range;

/// The kernel name in reports of this path.
pub(crate) const NAME: &str = "direct";

/// The layout of the scaled operands: for each entry a sign word and `width` limbs, column by column.
#[derive(Clone, Copy)]
struct Layout {
    width: usize,
    contracted: usize,
    left_words: usize,
    right_words: usize,
}

impl Layout {
    fn new(size: &ProductSize, operand_bits: u32) -> Layout {
        let width = limbs_for(operand_bits + 1); // a norm of exactly 2^operand_bits is allowed
        let column = size.contracted * (width + 1);
        let right_words = if size.triangle { 0 } else { size.cols * column };
        Layout { width, contracted: size.contracted, left_words: size.rows * column, right_words }
    }

    /// Words of all entries, one product, and the sum of products with room for every carry and the sign.
    fn words(&self) -> usize {
        self.left_words + self.right_words + 2 * self.width + (2 * self.width + 1)
    }

    fn column(&self, col: usize) -> Range<usize> {
        let words = self.contracted * (self.width + 1);
        col * words..(col + 1) * words
    }
}

/// The plan of the direct path.
///
/// # Errors
/// [`Error::MemoryLimit`].
pub(crate) fn plan(ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    let size = &request.size;
    let mut bytes = PlanBytes { result: request.result_bytes, ..PlanBytes::default() };
    if !size.is_empty() {
        bytes.operand_window = Buffer::bytes_for(Layout::new(size, request.bits.operand).words());
        bytes.lists = (size.operand_columns() * size_of::<i64>()) as u64;
    }
    ctx.admit(bytes.total())?;
    Ok(Plan {
        operation: request.operation,
        contracted: size.contracted,
        rows: size.rows,
        cols: size.cols,
        precision_bits: request.bits.result,
        working_bits: request.bits.working,
        kernel: NAME,
        threads: 1,
        batches: 1,
        bands: 1,
        band_columns: size.rows.max(size.cols),
        chunks: 1,
        chunk_rows: size.contracted,
        bytes,
        planned_bytes: bytes.total(),
        jobs_per_worker: vec![1],
        load_max_over_mean: 1.0,
        ..Plan::default()
    })
}

/// The plan of a product of which every entry is summed term by term.
///
/// # Errors
/// [`Error::MemoryLimit`].
pub(crate) fn plan_entries(ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    let nothing = ProductSize { contracted: 0, ..request.size };
    let plan = plan(ctx, &PlanRequest { size: nothing, ..*request })?;
    Ok(Plan { contracted: request.size.contracted, chunk_rows: request.size.contracted, ..plan })
}

/// Computes the product into `result`, with the shifts of the workspace.
///
/// # Errors
/// [`Error::ExponentRange`], [`Error::Cancelled`], [`Error::OutOfMemory`].
pub(crate) fn run(
    ctx: &Context,
    problem: &Problem<'_>,
    bits: &Bits,
    workspace: &mut Workspace,
    result: MatrixViewMut<'_>,
) -> Result<()> {
    if problem.size().is_empty() {
        return fill(ctx, problem, result, |_, finish| finish(ExactEntry::ZERO));
    }
    let layout = Layout::new(&problem.size(), bits.operand);
    let Workspace { operands, left_shifts, right_shifts, .. } = workspace;
    let (left, rest) = operands.words(layout.words())?.split_at_mut(layout.left_words);
    let (right, space) = rest.split_at_mut(layout.right_words);
    scale_columns(problem.left.view, left_shifts, layout.width, left);
    let (right, right_shifts) = match problem.right {
        Some(operand) => {
            scale_columns(operand.view, right_shifts, layout.width, right);
            (&*right, &*right_shifts)
        }
        None => (&*left, &*left_shifts),
    };
    fill(ctx, problem, result, |Place { row, col }, finish| {
        let (negative, magnitude) =
            sum_of_products(&left[layout.column(row)], &right[layout.column(col)], layout.width, space);
        finish(ExactEntry { negative, magnitude, exponent: -(left_shifts[row] + right_shifts[col]) })
    })
}

/// Fills the wanted entries of `result`: `entry` hands the exact product of a place to the function it is given.
fn fill(
    ctx: &Context,
    problem: &Problem<'_>,
    result: MatrixViewMut<'_>,
    mut entry: impl FnMut(Place, &mut dyn FnMut(ExactEntry<'_>) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let (rows, cols) = problem.result_shape();
    let meter = Meter::new(ctx, cols as u64);
    let (precision_bits, width) = (result.precision_bits(), result.limbs_per_element());
    let stride = result.leading_dimension();
    let (heads, significands) = result.into_parts();
    for col in 0..if rows == 0 { 0 } else { cols } {
        meter.add("product", 1)?;
        for row in (0..rows).filter(|&row| !problem.triangle() || in_triangle(problem.uplo, row, col)) {
            let (at, place) = (row + col * stride, Place { row, col });
            let limbs = &mut significands[at * width..][..width];
            entry(place, &mut |exact| {
                heads[at] = problem.combination.finish(exact, place, precision_bits, limbs)?.0;
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Writes `round(a_kj * 2^shifts[j])` as sign word and limbs, column by column.
fn scale_columns(view: MatrixView<'_>, shifts: &[i64], width: usize, out: &mut [u64]) {
    let mut entries = out.chunks_exact_mut(width + 1);
    for (col, shift) in shifts.iter().enumerate() {
        for (row, entry) in (0..view.rows()).zip(&mut entries) {
            let value = view.get(row, col);
            let (sign, magnitude) = entry.split_at_mut(1);
            sign[0] = u64::from(value.head.is_negative());
            if value.head.is_zero() {
                magnitude.fill(0);
            } else {
                let drop = value.limbs.len() as i64 * 64 - value.head.exponent() - shift;
                round_shifted(value.limbs, drop, magnitude);
            }
        }
    }
}

/// The exact sum of the products of two scaled columns: whether it is negative, and its magnitude.
///
/// `space` has room for one product and the sum.
fn sum_of_products<'s>(x: &[u64], y: &[u64], width: usize, space: &'s mut [u64]) -> (bool, &'s [u64]) {
    let (product, sum) = space.split_at_mut(2 * width);
    sum.fill(0);
    for (a, b) in x.chunks_exact(width + 1).zip(y.chunks_exact(width + 1)) {
        limbs::add_product(sum, (&a[1..], &b[1..]), a[0] != b[0], product);
    }
    (limbs::to_magnitude(sum), sum)
}
