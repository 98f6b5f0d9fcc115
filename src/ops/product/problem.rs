//! The task, in one form for SYRK and GEMM: `C = alpha * X^T Y + beta * C0`, with its sizes and its bit counts.
//!
//! Every `op` becomes a transposed view here, so that all later steps contract rows. Checks shapes, precision and
//! scalars before any work.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::EngineSpec;
use crate::math::bound;
use crate::matrix::mirror::{Workers, mirror};
use crate::matrix::{MatrixView, MatrixViewMut, Op, Uplo};
use crate::ops::product::combine::Epilogue;
use crate::ops::product::sink::in_triangle;
use crate::plan::{BLOCK, BlockGrid, Cut, DeviceCut};
use serde::Serialize;

/// Rows from which the triangle of a result is mirrored by all threads: below, waking them takes longer.
const MIRROR_ROWS_OF_THREADS: usize = 256;

/// The accuracy that a product promises for each entry. Without scalars, for `C = A B` rounded to `b` bits:
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Accuracy {
    /// `|computed - exact|_ij <= 2^(1 - b) ||a_i|| ||b_j||`, with the norms of row `i` of `A` and column `j` of `B`.
    Norm,
    /// `|computed - exact|_ij <= 2^(1 - b) (|A| |B|)_ij`: a componentwise bound, for any exponents of the entries. It
    /// needs additional bits, about the logarithm to base 2 of the product of the norms divided by the largest term of
    /// a sum; if only a few entries need many bits, these entries are summed term by term. `syrk` of `P` and `gemm` of
    /// `P^T` and `P` may sum different entries term by term, so their bits agree only with [`Accuracy::Norm`].
    #[default]
    Entrywise,
}

/// One operand: its columns are contracted with those of the other.
#[derive(Clone, Copy)]
pub(crate) struct ProductOperand<'a> {
    /// The operand as a `contracted x columns` view.
    pub view: MatrixView<'a>,
    /// Whether the view is the transpose of the caller's operand, for the indices in errors.
    pub transposed: bool,
}

impl<'a> ProductOperand<'a> {
    /// The caller's view, transposed if `op` is a transpose.
    pub fn new(view: MatrixView<'a>, op: Op) -> ProductOperand<'a> {
        match op {
            Op::NoTranspose => ProductOperand { view, transposed: false },
            Op::Transpose => ProductOperand { view: view.transposed(), transposed: true },
        }
    }

    /// All its rows, as one block, with these shifts.
    fn rows<'s>(&'s self, shifts: &'s [i64]) -> OperandRows<'s> {
        OperandRows { blocks: std::slice::from_ref(&self.view), shifts }
    }
}

/// The rows of one operand that a rank holds, as blocks one above the other, and the scale shifts of its columns.
#[derive(Clone, Copy)]
pub(crate) struct OperandRows<'a> {
    /// The rows.
    pub blocks: &'a [MatrixView<'a>],
    /// One for each column.
    pub shifts: &'a [i64],
}

/// The operands of the symmetric product of two, in the order for its triangle `uplo`.
pub(crate) fn in_order<T>([one, other]: [T; 2], uplo: Uplo) -> [T; 2] {
    match uplo {
        Uplo::Lower => [one, other],
        Uplo::Upper => [other, one],
    }
}

/// Called with the product window and the words of a plane between products and reconstruction; for fault tests.
pub type FaultHook<'a> = dyn Fn(&mut [u64], usize) + Sync + 'a;

/// Changes that a test makes to a running product, through the options of the verb; by default none.
#[derive(Clone, Copy, Default)]
pub struct Hooks<'a> {
    /// Sees the product window before reconstruction, and may damage it.
    pub fault: Option<&'a FaultHook<'a>>,
    /// The cut to use; by default it is computed from the memory limit.
    pub cut: Option<Cut>,
    /// The cut to use on devices; by default it is computed from their memory.
    pub device_cut: Option<DeviceCut>,
}

impl<'a> Hooks<'a> {
    /// A function that sees the product window, and nothing else.
    pub fn fault(fault: &'a FaultHook<'a>) -> Hooks<'a> {
        Hooks { fault: Some(fault), ..Hooks::default() }
    }

    /// A cut, and nothing else.
    pub fn cut(cut: impl Into<Option<Cut>>) -> Hooks<'a> {
        Hooks { cut: cut.into(), ..Hooks::default() }
    }

    /// A cut for devices, and nothing else.
    pub fn device_cut(cut: DeviceCut) -> Hooks<'a> {
        Hooks { device_cut: Some(cut), ..Hooks::default() }
    }
}

/// The cuts; a closure has nothing to show.
impl std::fmt::Debug for Hooks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Hooks { fault, cut, device_cut } = self;
        write!(f, "Hooks(fault: {}, cut: {cut:?}, device cut: {device_cut:?})", fault.is_some())
    }
}

/// A product to compute.
pub(crate) struct ProductProblem<'a> {
    /// `syrk`, `gemm` or another verb that is a product.
    pub operation: &'static str,
    /// Its columns give the rows of the result.
    pub left: ProductOperand<'a>,
    /// Its columns give the columns of the result; `None` for SYRK, where both operands are the left one.
    pub right: Option<ProductOperand<'a>>,
    /// The triangle wanted of a symmetric result.
    pub uplo: Uplo,
    /// Whether the result is symmetric though the operands differ, and only its triangle is wanted.
    pub half: bool,
    /// Whether the other triangle becomes its mirror image.
    pub mirrored: bool,
    /// Requested precision.
    pub precision_bits: u32,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Whether operands are integers and the result exact.
    pub exact_integers: bool,
    /// The last steps on the product.
    pub epilogue: Epilogue<'a>,
    /// Changes that tests make.
    pub hooks: Hooks<'a>,
    /// Bits of the scaled integers that an outer operation requires of this product, at least those that the precision
    /// needs; `None` for a product by itself.
    pub inner_bits: Option<u32>,
    /// The bits that entrywise accuracy needs for all columns, where they have been chosen already.
    pub range: Option<ColumnRange>,
}

/// The needs of a column of a product under entrywise accuracy, independent of the other columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ColumnRange {
    /// Bits of the scaled integers beyond those of the norms.
    pub range_bits: u32,
    /// Whether some entries need more bits, and are summed term by term.
    pub has_singles: bool,
}

/// Sizes of the integers of an exact product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntegerBits {
    /// Norms of the left columns are at most 2 to this power.
    pub left: i64,
    /// Norms of the right columns are at most 2 to this power.
    pub right: i64,
    /// Entries of the matrix added are below 2 to this power.
    pub addend: u64,
}

/// The bit counts of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    /// Precision of the scaled integers; 0 in exact integer arithmetic, where nothing is scaled.
    pub working: u32,
    /// Scaled entries are at most `2^operand`.
    pub operand: u32,
    /// The moduli's product exceeds `2^modulus`.
    pub modulus: u32,
    /// Precision of the result.
    pub result: u32,
}

impl<'a> ProductProblem<'a> {
    /// Makes `result` symmetric where the problem requires it.
    pub fn complete(&self, ctx: &Context, result: MatrixViewMut<'_>) {
        if self.mirrored {
            match ctx.threads() > 1 && result.rows() >= MIRROR_ROWS_OF_THREADS {
                true => ctx.install(|| mirror(result, self.uplo, Workers::Pool)),
                false => mirror(result, self.uplo, Workers::One),
            }
        }
    }

    /// The lower triangle of `P^T P`, or of `P P^T`, depending on `op`.
    pub fn syrk(p: MatrixView<'a>, op: Op, precision_bits: u32) -> ProductProblem<'a> {
        ProductProblem {
            operation: "syrk",
            left: ProductOperand::new(p, op),
            right: None,
            uplo: Uplo::Lower,
            half: false,
            mirrored: false,
            precision_bits,
            accuracy: Accuracy::Norm,
            exact_integers: false,
            epilogue: Epilogue::new(None, None, None),
            hooks: Hooks::default(),
            inner_bits: None,
            range: None,
        }
    }

    /// `op(A) op(B)`.
    pub fn gemm(a: MatrixView<'a>, op_a: Op, b: MatrixView<'a>, op_b: Op, precision_bits: u32) -> ProductProblem<'a> {
        // The columns of the left operand are the rows of op(A).
        let op = match op_a {
            Op::NoTranspose => Op::Transpose,
            Op::Transpose => Op::NoTranspose,
        };
        let right = Some(ProductOperand::new(b, op_b));
        ProductProblem { operation: "gemm", right, ..ProductProblem::syrk(a, op, precision_bits) }
    }

    /// The triangle `uplo` of the symmetric product of two operands. The other triangle is that of the operands in the
    /// other order, so that an entry has the same bits in both.
    pub fn half(operands: [ProductOperand<'a>; 2], uplo: Uplo, precision_bits: u32) -> ProductProblem<'a> {
        let [left, right] = in_order(operands, uplo);
        let product = ProductProblem::syrk(left.view, Op::NoTranspose, precision_bits);
        ProductProblem { operation: "weighted_gram", left, right: Some(right), uplo, half: true, ..product }
    }

    /// Rows contracted (K).
    pub fn contracted(&self) -> usize {
        self.left.view.rows()
    }

    /// Rows and columns of the result.
    pub fn result_shape(&self) -> (usize, usize) {
        (self.left.view.cols(), self.right_operand().view.cols())
    }

    /// The operand that gives the result's columns.
    pub fn right_operand(&self) -> ProductOperand<'a> {
        self.right.unwrap_or(self.left)
    }

    /// The rows of both operands, with these shifts of their columns; no right one for SYRK.
    pub fn operands<'s>(
        &'s self,
        left_shifts: &'s [i64],
        right_shifts: &'s [i64],
    ) -> (OperandRows<'s>, Option<OperandRows<'s>>) {
        (self.left.rows(left_shifts), self.right.as_ref().map(|right| right.rows(right_shifts)))
    }

    /// Whether the result is one triangle of the product of an operand with itself.
    pub fn triangle(&self) -> bool {
        self.right.is_none()
    }

    /// Whether the entry is computed.
    pub fn wants(&self, row: usize, col: usize) -> bool {
        !(self.triangle() || self.half) || in_triangle(self.uplo, row, col)
    }

    /// The sizes of the product.
    pub fn size(&self) -> ProductSize {
        let (rows, cols) = self.result_shape();
        let half = self.half.then_some(self.uplo);
        ProductSize { contracted: self.contracted(), rows, cols, triangle: self.triangle(), half }
    }

    /// Approximate bits of the scaled entries, before the norms are known.
    pub fn expected_operand_bits(&self) -> u32 {
        match self.exact_integers {
            true => self.left.view.precision_bits().max(self.right_operand().view.precision_bits()),
            false => self.scaled_bits().working,
        }
    }

    /// Whether the accuracy is entrywise; exact integers need no such promise.
    pub fn is_entrywise(&self) -> bool {
        self.accuracy == Accuracy::Entrywise && !self.exact_integers
    }

    /// Bit counts of a product whose columns are scaled.
    pub fn scaled_bits(&self) -> Bits {
        Bits::scaled(self.precision_bits, self.contracted()).widened(self.inner_bits.unwrap_or(0))
    }

    /// Refuses invalid shapes, precisions and scalars.
    pub fn check(&self, maximum_modulus_bits: u32) -> Result<()> {
        let right = self.right_operand();
        if self.contracted() != right.view.rows() {
            return Err(Error::shape_mismatch(
                self.operation,
                (self.left.view.cols(), self.contracted()),
                (right.view.rows(), right.view.cols()),
            ));
        }
        self.size().check(maximum_modulus_bits, self.precision_bits)?;
        let (rows, cols) = self.result_shape();
        self.epilogue.check(rows, cols, self.exact_integers)
    }
}

impl Bits {
    /// Bit counts of a product whose columns are scaled to the working precision.
    pub fn scaled(precision_bits: u32, contracted: usize) -> Bits {
        let working = bound::working_bits(precision_bits, contracted);
        let modulus = bound::modulus_bits(working, working);
        Bits { working, operand: working, modulus, result: precision_bits }
    }

    /// The same bit counts with `working_bits`, if these are more.
    pub fn widened(self, working_bits: u32) -> Bits {
        let working = working_bits.max(self.working);
        Bits { working, operand: working, modulus: bound::modulus_bits(working, working), ..self }
    }

    /// The same bit counts with `range_bits` additional working bits for the range of exponents.
    pub fn with_range(self, range_bits: u32) -> Bits {
        if range_bits == 0 { self } else { self.widened(self.working + range_bits) }
    }

    /// The shift that scales a column with this norm exponent; 0 in exact arithmetic.
    pub fn shift(&self, norm_exponent: i64) -> i64 {
        if self.working == 0 { 0 } else { i64::from(self.working) - norm_exponent }
    }

    /// The requirements of such a product on an engine, with a redundant prime where wanted.
    pub fn spec(self, redundant: bool) -> EngineSpec {
        EngineSpec { operand_bits: self.operand, modulus_bits: self.modulus, redundant }
    }

    /// Bit counts of an exact product of integers of the given bits, with moduli up to `2^maximum_modulus_bits`.
    ///
    /// # Errors
    /// [`Error::Precision`] where no such modulus is large enough or the result cannot be stored.
    pub fn integers(
        maximum_modulus_bits: u32,
        IntegerBits { left: left_bits, right: right_bits, addend }: IntegerBits,
        epilogue: &Epilogue<'_>,
        precision_bits: u32,
    ) -> Result<Bits> {
        let needed = left_bits + right_bits + 2;
        let maximum_bits = u64::from(maximum_modulus_bits);
        let (Ok(left), Ok(right)) = (u32::try_from(left_bits), u32::try_from(right_bits)) else {
            return Err(Error::Precision { precision_bits: needed.unsigned_abs(), maximum_bits });
        };
        if needed as u64 > maximum_bits {
            return Err(Error::Precision { precision_bits: needed as u64, maximum_bits });
        }
        let modulus = bound::modulus_bits(left, right);
        let result = epilogue.exact_bits(modulus, addend).max(u64::from(precision_bits));
        let result = u32::try_from(result)
            .map_err(|_| Error::Precision { precision_bits: result, maximum_bits: u64::from(u32::MAX) })?;
        Ok(Bits { working: 0, operand: left.max(right), modulus, result })
    }
}

/// Refuses a precision below 2 bits or above what moduli of `maximum_modulus_bits` bits reach for `contracted` rows.
pub(crate) fn check_precision(maximum_modulus_bits: u32, precision_bits: u32, contracted: usize) -> Result<()> {
    let working = (maximum_modulus_bits - bound::modulus_bits(0, 0)) / 2;
    let maximum_bits = working.saturating_sub(bound::guard_bits(contracted));
    if !(2..=maximum_bits).contains(&precision_bits) {
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: maximum_bits.into() });
    }
    Ok(())
}

/// The three sizes of a product, and whether one triangle of it is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProductSize {
    pub contracted: usize,
    pub rows: usize,
    pub cols: usize,
    /// Whether both operands are the same one, and the result is one triangle.
    pub triangle: bool,
    /// The triangle that is wanted of the symmetric product of two operands.
    pub half: Option<Uplo>,
}

impl ProductSize {
    /// The verb with a result of this form.
    pub fn operation(&self) -> &'static str {
        match (self.triangle, self.half) {
            (true, _) => "syrk",
            (false, None) => "gemm",
            (false, Some(_)) => "weighted_gram",
        }
    }

    /// Whether one triangle of the result is computed.
    pub fn is_half(&self) -> bool {
        self.triangle || self.half.is_some()
    }

    /// Whether there is nothing to multiply.
    pub fn is_empty(&self) -> bool {
        self.contracted == 0 || self.rows == 0 || self.cols == 0
    }

    /// Refuses precisions as [`check_precision`] does, and sizes whose planes could not be addressed by any plan, so
    /// that no later arithmetic overflows.
    ///
    /// # Errors
    /// [`Error::Precision`]; [`Error::DimensionOverflow`] with the shape of the largest matrix.
    pub fn check(&self, maximum_modulus_bits: u32, precision_bits: u32) -> Result<()> {
        check_precision(maximum_modulus_bits, precision_bits, self.contracted)?;
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

    /// The panels of both operands, as rows and columns of a grid.
    pub fn panels(&self) -> BlockGrid {
        BlockGrid { rows: self.rows.div_ceil(BLOCK), cols: self.cols.div_ceil(BLOCK), triangle: self.triangle }
    }

    /// Columns of the operands that are converted.
    pub fn operand_columns(&self) -> usize {
        if self.triangle { self.cols } else { self.rows.saturating_add(self.cols) }
    }

    /// Entries of the result that are computed.
    pub fn entries(&self) -> f64 {
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        if self.is_half() { cols * (cols + 1.0) / 2.0 } else { rows * cols }
    }
}

/// The sizes of a product to plan: rows, columns, contracted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockShape {
    pub rows: usize,
    pub cols: usize,
    pub contracted: usize,
}
