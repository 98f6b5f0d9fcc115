//! Is this stored triangle a Cholesky factor of that matrix? Every entry of `A - L L^T`, by exact integers.
//!
//! Promise: a factor is accepted if and only if `|A - L L^T|_ij <= 2^(2-b) sqrt(a_ii a_jj)` for all `i >= j`; no
//! rounding takes place before the decision. Products come from the residue pipeline as exact integers, and Freivalds'
//! test must pass before one is believed; rows whose entries spread too far for that are summed one by one.
//! Independent of: how a factor is made. Source: docs/CHECKS.md, "Verification".
//!
//! Tiles of the product, and pieces of the contracted rows, are cut within a memory limit. The widest tiles that fit
//! are taken: a factor in a file is read about `2 n / (3 T)` times by tiles of `T` rows.

mod rows;
mod tile;

use super::{Verification, VerifyOptions, check_bits};
use crate::context::Context;
use crate::error::{Error, ErrorText, IndexBase, Result};
use crate::io::MatrixFile;
use crate::math::bound::{EXPECTED_SPREAD_BITS, ceil_log2};
use crate::matrix::{EntryIndex, Matrix, MatrixView, Symmetric, Uplo};
use crate::ops::product::block::working_bits_below;
use crate::ops::product::path::shorter_ends;
use crate::ops::product::plan::{larger_refusal, plan_integers};
use crate::ops::product::problem::ProductSize;
use crate::options::setters;
use rows::{LowerTriangle, Row};
use std::path::Path;
use tile::{EntryResidual, IntegerSums, Single, Verifier};

/// Entries that are summed one by one at a time.
const SINGLES_AT_ONCE: usize = 4096;

/// Rows and columns of tiles, in memory and out of core, the widest first.
const TILES_IN_MEMORY: [usize; 3] = [256, 128, 64];
const TILES: [usize; 11] = [2048, 1448, 1024, 768, 512, 384, 256, 192, 128, 96, 64];

/// The widest tiles, and the longest pieces, where no limit requires less: more would hardly be faster.
const TILE_WITHOUT_LIMIT: usize = 512;
const DEPTH_WITHOUT_LIMIT: usize = 2048;

/// Columns of pieces of the contracted rows, besides all.
const DEPTHS: [usize; 8] = [8192, 4096, 2048, 1024, 512, 256, 128, 64];

/// In pieces of fewer columns the reconstruction of each product is no small part of the work.
const DEEP: usize = 512;

/// Checks that `l` is a Cholesky factor of `a` to `precision_bits` bits: lower triangular, with a positive diagonal,
/// and `|A - L L^T|_ij <= 2^(2 - precision_bits) sqrt(a_ii a_jj)` for all `i >= j`.
///
/// With [`Uplo::Upper`] in `options` the matrix `l` is `U` with `A = U^T U`. The seed is used for Freivalds' test; all
/// other options are ignored. [`Verification::worst_entry`] is the largest residual in units of its bound, and
/// [`Verification::worst_place`] is its place. Shapes: both `n x n`, each of any precision; `a` is given as a plain
/// matrix, a symmetric matrix, or one triangle, see [`Symmetric`]. Entries of a [`crate::Matrix`] are finite. Accuracy:
/// the decision is exact, for any exponents. Cost: an exact product in tiles, `n^3 / 6` word products for each of about
/// `2 precision_bits / 52` primes, and two products of big integers for each entry; rows whose exponents spread over
/// more than about three times their precision need `n^2 / 2` products of big integers each. Memory: a few blocks of
/// 256 rows; smaller blocks under a memory limit.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_cholesky};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// let l = sunzi::cholesky(&ctx, &a, 128)?;
/// assert!(verify_cholesky(&ctx, &a, l.factor(), 128, &VerifyOptions::new())?.worst_entry <= 1.0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Verification`] names the worst entry, or another defect; [`Error::NotSymmetric`] for `a`;
/// [`Error::ShapeMismatch`]; [`Error::Precision`] for fewer than 2 bits; the errors of [`gemm_with`](crate::gemm_with).
pub fn verify_cholesky<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    l: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    check_bits(precision_bits)?;
    let (a, l, uplo) = (a.into().lower_view("verify cholesky")?, l.into(), options.uplo);
    check_shapes(LowerTriangle::Memory(a), LowerTriangle::Memory(l))?;
    let l = if uplo == Uplo::Lower { l } else { l.transposed() };
    let check =
        FactorCheck { a: LowerTriangle::Memory(a), l: LowerTriangle::Memory(l), uplo, precision_bits, compared: None };
    check.decide_by(check.look_at_rows(ctx)?, ctx, options.seed)
}

/// Choices of [`verify_cholesky_files`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FileFactorOptions {
    /// The triangle of the matrix that is read, and the triangle of the factor; by default both triangles of the
    /// matrix, which must be equal, and a lower factor.
    pub triangle: Option<Uplo>,
    /// Seed of Freivalds' test; `None` draws a random seed.
    pub seed: Option<u64>,
}

setters! { new FileFactorOptions {
    triangle: impl Into<Option<Uplo>>,
    seed: impl Into<Option<u64>>,
} }

/// [`verify_cholesky`] of the matrix in the binary file `matrix` and the factor in the binary
/// file `factor`, which are read block by block.
///
/// Shapes, accuracy, decision, worst entry and its place are the same as for the check in memory. Both files are read
/// once to check every number and the checksums; then the factor is read about `2 n / (3 T)` times, in tiles of `T`
/// rows that are as large as the context's memory limit allows (512 rows without a limit). Memory: the limit, which
/// must be at least a few MB.
///
/// ```
/// use sunzi::io::{self, WriteOptions};
/// use sunzi::verify::{FileFactorOptions, verify_cholesky_files};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let folder = tempfile::tempdir().unwrap();
/// let (matrix, factor) = (folder.path().join("a.bin"), folder.path().join("l.bin"));
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// io::write(&matrix, &a, &WriteOptions::new())?;
/// io::write(&factor, sunzi::cholesky(&ctx, &a, 128)?.factor(), &WriteOptions::new())?;
/// let checked = verify_cholesky_files(&ctx, (&matrix, &factor), 128, &FileFactorOptions::new())?;
/// assert!(checked.worst_entry <= 1.0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`verify_cholesky`]; [`Error::Format`] for a damaged file, [`Error::Io`];
/// [`Error::MemoryLimit`] if tiles of 64 rows do not fit.
pub fn verify_cholesky_files(
    ctx: &Context,
    (matrix, factor): (&Path, &Path),
    precision_bits: u32,
    options: &FileFactorOptions,
) -> Result<Verification> {
    check_bits(precision_bits)?;
    let (a, l) = (MatrixFile::open(matrix)?, MatrixFile::open(factor)?);
    if a.rows() != a.cols() {
        return Err(Error::NotSquare { operation: "verify cholesky", rows: a.rows(), cols: a.cols() });
    }
    check_shapes(
        LowerTriangle::File { file: &a, transposed: false },
        LowerTriangle::File { file: &l, transposed: false },
    )?;
    let uplo = options.triangle.unwrap_or_default();
    let is_upper = uplo == Uplo::Upper;
    let check = FactorCheck {
        a: LowerTriangle::File { file: &a, transposed: is_upper && !a.is_symmetric() },
        l: LowerTriangle::File { file: &l, transposed: is_upper },
        uplo,
        precision_bits,
        compared: if options.triangle.is_none() { Some(&a) } else { None },
    };
    // A refusal comes before a file is read.
    check.plan_least(ctx)?;
    check.decide_by(check.look_at_rows(ctx)?, ctx, options.seed)
}

/// Refuses shapes that are not the same square; both as the caller has them.
fn check_shapes(matrix: LowerTriangle<'_>, factor: LowerTriangle<'_>) -> Result<()> {
    let (matrix, factor) = (matrix.shape(), factor.shape());
    if matrix.0 != matrix.1 || matrix != factor {
        return Err(Error::shape_mismatch("verify cholesky", matrix, factor));
    }
    Ok(())
}

/// The claim to be checked: `A = L L^T`. Both are read as lower triangles.
#[derive(Clone, Copy)]
struct FactorCheck<'a> {
    a: LowerTriangle<'a>,
    l: LowerTriangle<'a>,
    /// The triangle that the caller has.
    uplo: Uplo,
    precision_bits: u32,
    /// A file with both triangles of the matrix, which must agree.
    compared: Option<&'a MatrixFile>,
}

impl FactorCheck<'_> {
    /// Plans the tiles within the context's limit, and looks at every entry. Rows of long integers are summed one by
    /// one where the limit has no room for them.
    fn decide_by(self, mut rows: Vec<Row>, ctx: &Context, seed: Option<u64>) -> Result<Verification> {
        let mut integer_bits = rows.iter().filter(|row| row.planar).map(Row::integer_bits).max().unwrap_or(0);
        let cut = match Cut::plan(ctx, &self, integer_bits) {
            Err(Error::MemoryLimit { .. }) if integer_bits > self.expected_bits(ctx) => {
                integer_bits = self.expected_bits(ctx);
                rows.iter_mut().for_each(|row| row.planar &= row.integer_bits() <= integer_bits);
                self.plan_least(ctx)
            }
            cut => cut,
        };
        Verifier { check: self, rows, cut: cut?, integer_bits }.decide(ctx, seed)
    }

    /// A plan before there are rows: for a refusal before a file is read.
    fn plan_least(&self, ctx: &Context) -> Result<Cut> {
        Cut::plan(ctx, self, self.expected_bits(ctx))
    }

    /// Integers of most rows are below 2 to this power, which allows for entries of different exponents.
    fn expected_bits(&self, ctx: &Context) -> i64 {
        (i64::from(self.l.precision_bits()) + i64::from(EXPECTED_SPREAD_BITS)).min(self.planar_bits(ctx))
    }

    fn order(&self) -> usize {
        self.a.shape().0
    }

    /// Rows of longer integers are summed one by one.
    fn planar_bits(&self, ctx: &Context) -> i64 {
        let reach = |modulus_bits: u32| i64::from(modulus_bits) / 2 - 4 - i64::from(ceil_log2(self.order()));
        let (bits, own) = (i64::from(self.l.precision_bits()), reach(ctx.kernel().maximum_modulus_bits()));
        // A few rows of longer integers than the preferred kernel holds are no reason for a slower one for all, but
        // most rows spread a little.
        let kernel_bits =
            if bits + i64::from(EXPECTED_SPREAD_BITS) <= own { own } else { reach(ctx.maximum_modulus_bits()) };
        (3 * bits + 256).min(kernel_bits)
    }

    /// Names a place as the caller stored it.
    fn name(&self, place: EntryIndex, base: IndexBase) -> String {
        let EntryIndex { row, col } = self.stored_place(place);
        base.place(row, col)
    }

    fn stored_place(&self, place: EntryIndex) -> EntryIndex {
        if self.uplo == Uplo::Lower { place } else { place.transposed() }
    }

    fn failure(&self, worst: &EntryResidual) -> Error {
        let product = if self.uplo == Uplo::Lower { "A - L L^T" } else { "A - U^T U" };
        let (ratio, bits) = (worst.ratio, self.precision_bits);
        refusal(|base| {
            let place = self.name(worst.place, base);
            format!("{product} at {place} is {ratio:.4e} times its bound 2^(2-{bits}) sqrt(a_ii a_jj)")
        })
    }
}

fn refusal(say: impl Fn(IndexBase) -> String) -> Error {
    Error::verification(ErrorText::counted(|base| format!("verify cholesky: {}", say(base))))
}

/// The division of the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cut {
    /// Rows and columns of a tile.
    tile_rows: usize,
    /// Columns of the factor that are multiplied at a time.
    depth: usize,
}

/// Bits of products that are planned for.
struct Width {
    /// The check's, or one of the same limit with tables of its own.
    ctx: Context,
    /// Norms of the rows of a tile are below 2 to this power.
    norm_bits: i64,
}

impl Width {
    /// The longest products of a check of `order` rows, and the shorter ones that other kernels may take: in some tiles
    /// all rows are shorter.
    fn of_products(ctx: &Context, order: usize, integer_bits: i64) -> Vec<Width> {
        // Norms of whole rows, whatever the depth: one set of primes is planned for.
        let longest = integer_bits + i64::from(ceil_log2(order).div_ceil(2)) + 1;
        let modulus_bits = u32::try_from(2 * longest + 2).unwrap_or(u32::MAX);
        let ends = shorter_ends(ctx, modulus_bits).into_iter().map(|end| i64::from(working_bits_below(end)));
        let shorter = ends.map(|norm_bits| Width { ctx: ctx.without_cache(), norm_bits });
        std::iter::once(Width { ctx: ctx.clone(), norm_bits: longest }).chain(shorter).collect()
    }
}

impl Cut {
    /// The cut of a check whose rows are integers below 2 to `integer_bits`.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the smallest limit that suffices.
    fn plan(ctx: &Context, check: &FactorCheck<'_>, integer_bits: i64) -> Result<Cut> {
        let n = check.order().max(1);
        let is_file = matches!((check.a, check.l), (LowerTriangle::File { .. }, _) | (_, LowerTriangle::File { .. }));
        let is_free = ctx.memory_bytes().is_none();
        let tiles: &[usize] = if is_file { &TILES } else { &TILES_IN_MEMORY };
        let tiles = tiles.iter().map(|&rows| rows.min(n)).filter(|&rows| !is_free || rows <= TILE_WITHOUT_LIMIT);
        let whole = if is_file && is_free { n.min(DEPTH_WITHOUT_LIMIT) } else { n };
        let depths = || std::iter::once(whole).chain(DEPTHS.into_iter().filter(move |&depth| depth < whole));
        let cuts = || tiles.clone().flat_map(|tile_rows| depths().map(move |depth| Cut { tile_rows, depth }));
        let widths = Width::of_products(ctx, n, integer_bits);
        let is_swift = |cut: &Cut| {
            cut.depth >= DEEP.min(n) && cut.plan_products(&widths, check, integer_bits).is_ok_and(|is_whole| is_whole)
        };
        let fits = |cut: &Cut| cut.plan_products(&widths, check, integer_bits).is_ok();
        if let Some(cut) = cuts().find(is_swift).or_else(|| cuts().find(fits)) {
            return Ok(cut);
        }
        let least = Cut { tile_rows: TILES[TILES.len() - 1].min(n), depth: DEPTHS[DEPTHS.len() - 1].min(n) };
        least.plan_products(&widths, check, integer_bits).map(|_| least)
    }

    /// The context for products, reduced by all that the check holds.
    fn inner(&self, ctx: &Context, check: &FactorCheck<'_>, integer_bits: i64) -> Context {
        ctx.holding(self.held_bytes(check, integer_bits))
    }

    /// Whether the products run in one piece, each with its width in `widths`.
    fn plan_products(&self, widths: &[Width], check: &FactorCheck<'_>, integer_bits: i64) -> Result<bool> {
        let Cut { tile_rows, depth } = *self;
        let triangle = tile_rows == check.order();
        let size = ProductSize { contracted: depth, rows: tile_rows, cols: tile_rows, triangle, half: None };
        let (mut admitted, mut is_whole) = (Ok(()), true);
        for Width { ctx, norm_bits } in widths {
            let plan = plan_integers(&self.inner(ctx, check, integer_bits), size, *norm_bits);
            is_whole &= plan.as_ref().is_ok_and(|plan| plan.batches <= 1 && plan.bands <= 1);
            admitted = larger_refusal(admitted, plan.map(|_| ()));
        }
        admitted.map(|()| is_whole)
    }

    /// Bytes of rows, sums, blocks of both matrices and entries that are summed one by one.
    fn held_bytes(&self, check: &FactorCheck<'_>, integer_bits: i64) -> u64 {
        let Cut { tile_rows, depth } = *self;
        let n = check.order();
        let width = IntegerSums::width(2 * integer_bits + i64::from(ceil_log2(n)) + 1);
        let sums = 8 * (tile_rows * tile_rows * width) as u64;
        let own = check.a.block_bytes(tile_rows, tile_rows);
        let bands =
            check.l.block_bytes(tile_rows, depth) + Matrix::bytes_for(tile_rows, depth, check.l.precision_bits());
        let singles = SINGLES_AT_ONCE.min(tile_rows * tile_rows) as u64;
        let singles = singles * Single::bytes(check.precision_bits, check.l.precision_bits());
        Row::bytes(n, check.a.precision_bits()) + sums + own + bands + singles
    }
}

#[cfg(test)]
mod tests;
