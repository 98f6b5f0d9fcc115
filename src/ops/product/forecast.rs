//! Plans of products by their sizes, before there are operands.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::ops::product::combine::Epilogue;
use crate::ops::product::direct;
use crate::ops::product::entrywise::{Singles, choice_bytes, possible_range_bits, takes_all};
use crate::ops::product::path::{choose_path, plan_on, plan_request};
use crate::ops::product::plan::{Plan, PlanRequest};
use crate::ops::product::problem::{Accuracy, Bits, IntegerBits, check_precision};
use crate::ops::product::size::ProductSize;
use crate::options::setters;

/// The properties of the operands that the plan of a product needs.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ProductPlanOptions {
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// With [`Accuracy::Entrywise`]: the bits that the exponents of the operands need, in steps of 8 (`range_bits` in
    /// [`crate::report::Report`]); with `None`, the bits for entries of one size. The plan does not include entries
    /// that a product computes as separate sums.
    pub range_bits: Option<u32>,
}

setters! { new ProductPlanOptions {
    accuracy: Accuracy,
    range_bits: impl Into<Option<u32>>,
} }

/// [`plan_syrk_with`] with default options.
///
/// ```
/// use sunzi::{Context, Matrix, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_syrk(&ctx, 1000, 100, 256)?;
/// assert_eq!((plan.operation, plan.contracted, plan.rows, plan.cols), ("syrk", 1000, 100, 100));
/// assert!(plan.planned_bytes >= Matrix::bytes_for(100, 100, 256)); // the result is among them
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_syrk_with`].
pub fn plan_syrk(ctx: &Context, rows: usize, cols: usize, precision_bits: u32) -> Result<Plan> {
    plan_syrk_with(ctx, (rows, cols), precision_bits, &ProductPlanOptions::new())
}

/// The plan of [`crate::syrk`] for a `rows x cols` operand: bytes of every part, batches, bands, chunks, jobs.
///
/// Nothing is computed and no window allocated; only the kernel's tables are made and kept in the context.
///
/// ```
/// use sunzi::{Accuracy, Context, Error, plans};
/// let ctx = Context::builder().memory_bytes(1 << 20).build()?;
/// let options = plans::ProductPlanOptions::new().accuracy(Accuracy::Norm);
/// let refusal = plans::plan_syrk_with(&ctx, (1000, 500), 256, &options); // the result alone takes more than 1 MiB
/// assert!(matches!(refusal, Err(Error::MemoryLimit { .. })));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Precision`]; [`crate::Error::MemoryLimit`] with the smallest limit that suffices.
pub fn plan_syrk_with(
    ctx: &Context,
    (rows, cols): (usize, usize),
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    let size = ProductSize { contracted: rows, rows: cols, cols, triangle: true };
    plan_size(ctx, size, precision_bits, options)
}

/// [`plan_gemm_with`] with default options.
///
/// ```
/// use sunzi::{Accuracy, Context, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_gemm(&ctx, 100, 80, 1000, 256)?;
/// assert_eq!((plan.operation, plan.rows, plan.cols, plan.contracted), ("gemm", 100, 80, 1000));
/// assert_eq!(plan.accuracy, Accuracy::Entrywise); // as a product has it by default
/// println!("{} bytes, {} primes, kernel {}", plan.planned_bytes, plan.primes, plan.kernel);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_syrk_with`].
pub fn plan_gemm(ctx: &Context, rows: usize, cols: usize, contracted: usize, precision_bits: u32) -> Result<Plan> {
    plan_gemm_with(ctx, (rows, cols), contracted, precision_bits, &ProductPlanOptions::new())
}

/// The plan of [`crate::gemm`] for a product of a `rows x contracted` and a `contracted x cols` matrix; see
/// [`plan_syrk_with`].
///
/// ```
/// use sunzi::{Accuracy, Context, plans};
/// let ctx = Context::new()?;
/// let by_norms = plans::ProductPlanOptions::new().accuracy(Accuracy::Norm);
/// let wide_range = plans::ProductPlanOptions::new().accuracy(Accuracy::Entrywise).range_bits(64);
/// let short = plans::plan_gemm_with(&ctx, (100, 80), 1000, 256, &by_norms)?;
/// let long = plans::plan_gemm_with(&ctx, (100, 80), 1000, 256, &wide_range)?;
/// assert_eq!(long.working_bits, short.working_bits + 64);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_syrk_with`].
pub fn plan_gemm_with(
    ctx: &Context,
    (rows, cols): (usize, usize),
    contracted: usize,
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    let size = ProductSize { contracted, rows, cols, triangle: false };
    plan_size(ctx, size, precision_bits, options)
}

/// The plan of an exact product of integers: the norms of the columns contracted are below 2 to `bits`.
///
/// # Errors
/// As [`plan_syrk_with`].
pub(crate) fn plan_integers(ctx: &Context, size: ProductSize, bits: i64) -> Result<Plan> {
    let epilogue = Epilogue::new(None, None, None);
    let bits = IntegerBits { left: bits, right: bits, addend: 0 };
    let bits = Bits::integers(ctx.maximum_modulus_bits(), bits, &epilogue, 2)?;
    let result_bytes = Matrix::bytes_for(size.rows, size.cols, bits.result);
    let operation = size.operation();
    plan_request(ctx, &PlanRequest { operation, size, bits, result_bytes, cut: None, on_cpu: false, is_part: false })
}

fn plan_size(ctx: &Context, size: ProductSize, precision_bits: u32, options: &ProductPlanOptions) -> Result<Plan> {
    check_precision(ctx.maximum_modulus_bits(), precision_bits, size.contracted)?;
    size.check(precision_bits)?;
    let request = PlanRequest {
        operation: size.operation(),
        size,
        bits: Bits::scaled(precision_bits, size.contracted),
        result_bytes: Matrix::bytes_for(size.rows, size.cols, precision_bits),
        cut: None,
        on_cpu: false,
        is_part: false,
    };
    match options.accuracy {
        Accuracy::Entrywise if !size.is_empty() => plan_entrywise(ctx, &request, options.range_bits),
        _ => plan_request(ctx, &request),
    }
}

/// The plan of a product entry by entry, the choice of its bits included.
fn plan_entrywise(ctx: &Context, request: &PlanRequest, range_bits: Option<u32>) -> Result<Plan> {
    let PlanRequest { ref size, bits, .. } = *request;
    let accuracy = Accuracy::Entrywise;
    if takes_all(size, bits.result) {
        let sums = Singles::All.bytes(size, bits.result);
        let plan = direct::as_one_job(direct::plan_entries(&ctx.holding(sums), request)?);
        let planned_bytes = plan.planned_bytes + sums;
        return Ok(Plan { accuracy, working_bits: 0, planned_bytes, ..plan });
    }
    let range_bits = possible_range_bits(size, bits.result, range_bits);
    let choice = choice_bytes(size).saturating_add(request.result_bytes);
    let chosen = ctx.admit(choice);
    let plan = plan_widened(ctx, request, range_bits);
    let plan = larger_refusal(chosen, plan)?;
    let planned_bytes = plan.planned_bytes.max(choice);
    Ok(Plan { accuracy, range_bits, planned_bytes, ..plan })
}

/// The plan of a product with `range_bits` more bits than norm-wise accuracy needs, on the path that is chosen without
/// them.
pub(crate) fn plan_widened(ctx: &Context, request: &PlanRequest, range_bits: u32) -> Result<Plan> {
    let bits = request.bits;
    let widened = PlanRequest { bits: bits.widened(bits.working + range_bits), ..*request };
    plan_on(choose_path(ctx, &request.size, bits.operand), ctx, &widened)
}

/// `planned`, or `admitted` where it is a refusal; of two refusals the one that names more bytes.
pub(crate) fn larger_refusal<T>(admitted: Result<()>, planned: Result<T>) -> Result<T> {
    match (admitted, planned) {
        (Ok(()), planned) => planned,
        (
            Err(Error::MemoryLimit { limit_bytes, minimum_bytes: one }),
            Err(Error::MemoryLimit { minimum_bytes: other, .. }),
        ) => Err(Error::MemoryLimit { limit_bytes, minimum_bytes: one.max(other) }),
        (Err(refusal), _) => Err(refusal),
    }
}
