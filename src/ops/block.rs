//! A product inside another operation: `C := A B` or `C := C0 - A B`, on views, within what the operation leaves of
//! the memory limit.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound;
use crate::matrix::{Matrix, MatrixView, Op};
use crate::ops::combine::Combination;
use crate::ops::plan::{Plan, PlanRequest, plan_request};
use crate::ops::problem::{Inner, Problem, Target};
use crate::ops::{GemmOptions, gemm_problem, run};
use rug::Float;

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
    /// Bits of the scaled integers, and bytes held.
    pub inner: Inner,
}

impl BlockProduct<'_> {
    /// Computes the product into `result`, which is replaced where its shape or precision do not fit.
    ///
    /// # Errors
    /// As [`crate::gemm_into`]; the place in [`Error::ExponentRange`] is one of `result`.
    pub fn run(&self, ctx: &Context, result: &mut Matrix) -> Result<()> {
        let minus = Float::with_val(2, -1);
        let alpha = self.minuend.map(|_| &minus);
        let options = GemmOptions { op_a: Op::NoTranspose, ..GemmOptions::default() };
        let combination = Combination::new(alpha, None, self.minuend);
        let problem = gemm_problem(self.left, self.right, self.precision_bits, &options);
        run::run(ctx, &Problem { combination, inner: self.inner, ..problem }, Target::Into(result)).map(|_| ())
    }
}

/// The sizes of a product to plan: rows, columns, contracted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockShape {
    pub rows: usize,
    pub cols: usize,
    pub contracted: usize,
}

/// The plan of a product of that shape.
///
/// # Errors
/// [`Error::MemoryLimit`] with what is held and the least that the product needs.
pub(crate) fn plan(ctx: &Context, shape: BlockShape, precision_bits: u32, inner: Inner) -> Result<Plan> {
    plan_request(ctx, &PlanRequest::inner(shape, precision_bits, inner))
}

/// The error that names `place` moved by so many rows and columns, where it names one.
pub(crate) fn moved(error: Error, rows: usize, cols: usize) -> Error {
    match error {
        Error::ExponentRange { row, column, exponent, limit } => {
            Error::ExponentRange { row: row + rows, column: column + cols, exponent, limit }
        }
        Error::SelfCheck { row, column } => Error::SelfCheck { row: row + rows, column: column + cols },
        other => other,
    }
}

/// Largest number of bits that scaled integers can have on the context's kernel.
pub(crate) fn maximum_working_bits(ctx: &Context) -> u32 {
    (ctx.kernel().maximum_modulus_bits() - bound::modulus_bits(0, 0)) / 2
}
