//! A product inside another operation: `C := A B` or `C := C0 - A B`, on views; its context counts the memory of that
//! operation against the limit.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound;
use crate::matrix::{Destination, Matrix, MatrixView, Op};
use crate::ops::product::call;
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::plan::{Plan, PlanRequest, plan_request};
use crate::ops::product::problem::{Accuracy, ColumnRange, ProductProblem};
use rug::Float;

pub(crate) use crate::ops::product::problem::BlockShape;

/// One product of two views.
#[derive(Clone, Copy)]
pub(crate) struct BlockProduct<'a> {
    /// `A`.
    pub left: MatrixView<'a>,
    /// `B`.
    pub right: MatrixView<'a>,
    /// `C0`; `None` gives `A B` itself.
    pub minuend: Option<MatrixView<'a>>,
    /// Precision of the result.
    pub precision_bits: u32,
    /// Bits of the scaled integers, at least those that the precision needs.
    pub working_bits: u32,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
}

impl BlockProduct<'_> {
    /// Computes the product into `result`, which is replaced where its shape or precision do not fit.
    ///
    /// # Errors
    /// As [`crate::gemm_into`]; the place in [`Error::ExponentRange`] is one of `result`.
    pub fn run(&self, ctx: &Context, result: &mut Matrix) -> Result<()> {
        self.run_in_range(ctx, None, result)
    }

    /// [`BlockProduct::run`], entry by entry with a choice that was made for each of the columns.
    ///
    /// # Errors
    /// As [`BlockProduct::run`].
    pub fn run_in_range(&self, ctx: &Context, range: Option<ColumnRange>, result: &mut Matrix) -> Result<()> {
        let minus = Float::with_val(2, -1);
        let alpha = self.minuend.map(|_| &minus);
        let epilogue = Epilogue::new(alpha, None, self.minuend.map(AddedMatrix::Whole));
        let problem = ProductProblem { epilogue, range, ..self.problem() };
        call::run(ctx, &problem, Destination::Matrix(result)).map(drop)
    }

    /// The bits that entrywise accuracy needs for each column, independent of the other columns; at least `least_bits`.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], [`Error::OutOfMemory`].
    pub fn column_ranges(&self, ctx: &Context, least_bits: u32) -> Result<Vec<ColumnRange>> {
        call::choose_columns(ctx, &self.problem(), least_bits)
    }

    /// `A B`.
    fn problem(&self) -> ProductProblem<'_> {
        let problem =
            ProductProblem::gemm(self.left, Op::NoTranspose, self.right, Op::NoTranspose, self.precision_bits);
        ProductProblem { inner_bits: Some(self.working_bits), accuracy: self.accuracy, ..problem }
    }
}

/// The plan of a product of shape `shape`.
///
/// # Errors
/// [`Error::MemoryLimit`] with the bytes already held and the least that the product needs.
pub(crate) fn plan(ctx: &Context, shape: BlockShape, precision_bits: u32, working_bits: u32) -> Result<Plan> {
    plan_request(ctx, &PlanRequest::inner(shape, precision_bits, working_bits))
}

/// `error` with its place, if it names one, moved by `rows` rows and `cols` columns.
pub(crate) fn moved(error: Error, rows: usize, cols: usize) -> Error {
    match error {
        Error::ExponentRange { row, column, exponent, limit } => {
            Error::ExponentRange { row: row + rows, column: column + cols, exponent, limit }
        }
        Error::SelfCheck { row, column } => Error::SelfCheck { row: row + rows, column: column + cols },
        other => other,
    }
}

/// Largest number of bits that scaled integers can have on the kernels that the context may choose.
pub(crate) fn maximum_working_bits(ctx: &Context) -> u32 {
    working_bits_below(ctx.maximum_modulus_bits())
}

/// Largest number of bits that scaled integers can have on the context's kernel or, if that is less than `least_bits`,
/// on the kernels that the context may choose: for uses where more bits help, but do not justify another kernel.
pub(crate) fn preferred_working_bits(ctx: &Context, least_bits: u32) -> u32 {
    let own = working_bits_below(ctx.kernel().maximum_modulus_bits());
    if least_bits <= own { own } else { maximum_working_bits(ctx) }
}

/// Largest number of bits that scaled integers can have with moduli of `modulus_bits` bits.
pub(crate) fn working_bits_below(modulus_bits: u32) -> u32 {
    (modulus_bits - bound::modulus_bits(0, 0)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_bits_as_there_are_are_those_of_the_context_s_kernel() {
        for kernel in [None, Some("i16"), Some("i8")] {
            let builder = Context::builder();
            let ctx = kernel.into_iter().fold(builder, |builder, name| builder.kernel(name)).build().unwrap();
            let own = working_bits_below(ctx.kernel().maximum_modulus_bits());
            for (least, most) in [(0, own), (own, own), (own + 1, maximum_working_bits(&ctx))] {
                assert_eq!(preferred_working_bits(&ctx, least), most, "{kernel:?}, {least} bits");
            }
        }
    }
}
