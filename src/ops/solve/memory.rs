//! The memory of a solve: the bands of right-hand sides that it runs in, and its bytes, computed from sizes only.
//!
//! Columns are independent of each other, so bands never change the result. Columns that exceed the range of a try are
//! tried again, or solved by recursive splitting, in narrower bands that take no more memory than the first try; so the
//! plan does not depend on the entries of the right-hand sides.

use crate::context::{Context, MemoryBudget, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::kernels::PlaneKernel;
use crate::matrix::Matrix;
use crate::ops::factor::kernel::solve_kernel;
use crate::ops::solve::cut::{ALL_LEVELS, TriangleCut, larger, least_limit};
use crate::ops::solve::problem::{LDLT, SolveBits, Substitution, SystemShape};
use crate::ops::solve::tiles::{NodeShared, TilePlan, TrySize, most_fixed_bits, workers};
use crate::ops::solve::triangle::ScaledRows;
use std::ops::Range;

/// Most right-hand sides in a band: the conversions of the triangle then cost some hundredths of the products, and more
/// right-hand sides would only take memory, which is slow to get.
const BAND_COLUMNS: usize = 512;

/// Fewest right-hand sides worth a band: products pad to as many.
pub(crate) const LEAST_COLUMNS: usize = 8;

/// Number of right-hand sides from which on a later try on the fewest columns takes less than the first one on all.
const ROOMY_COLUMNS: usize = 64;

/// All that the memory of a solve depends on.
#[derive(Clone)]
pub(crate) struct SolveMemory {
    /// Holds the memory outside the bands: results, scaled heads, the caller's memory.
    pub ctx: Context,
    /// The triangles of the solve, one after the other.
    pub cuts: Vec<TriangleCut>,
    /// Bytes that each row of a tile of the triangle costs where its rows come in pieces.
    pub piece_row_bytes: u64,
    /// Bytes of the messages that bring them.
    pub message_bytes: u64,
    /// Treatment of columns that exceed the range of every try, or of all columns if no try is made.
    pub left: UnsolvedColumns,
    /// Ranks of this node, where these make the tiles of a triangle together in the first try.
    pub together: Option<NodeShared>,
    /// The kernel of first tries.
    pub first_tries: FirstTryKernel,
}

/// The kernel of the first tries of a call.
#[derive(Clone, Copy)]
pub(crate) enum FirstTryKernel {
    /// The context's.
    Own,
    /// The treatment that suits the call.
    Suited,
    /// A kernel other than the context's, on which ranks have agreed.
    Agreed(&'static dyn PlaneKernel),
}

/// Treatment of columns that outgrow every try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnsolvedColumns {
    /// They stay unsolved.
    Stay,
    /// They are solved by parts.
    Parts,
    /// All ranks together solve these columns by recursive splitting, independent of their owner; the plan allows this
    /// number at a time.
    SharedParts(usize),
}

impl UnsolvedColumns {
    /// [`UnsolvedColumns::SharedParts`] of a call with `total` right-hand sides.
    pub fn shared(total: usize) -> UnsolvedColumns {
        UnsolvedColumns::SharedParts(total.min(LEAST_COLUMNS))
    }

    /// The columns of a later try for which a plan has room, in a band of `columns` columns.
    fn fewest(self, columns: usize) -> usize {
        match self {
            UnsolvedColumns::SharedParts(fewest) => fewest,
            _ => columns.min(LEAST_COLUMNS),
        }
    }

    /// Columns that are solved by parts where no try is made, in a band of `columns` columns.
    fn untried(self, columns: usize) -> usize {
        if let UnsolvedColumns::SharedParts(fewest) = self { fewest } else { columns }
    }
}

/// The bands of a solve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bands {
    /// Right-hand sides in all.
    pub total: usize,
    /// Right-hand sides of a band; the last may have fewer.
    pub columns: usize,
    /// Bytes of the call that they were planned for; `None` without a memory limit.
    pub limit_bytes: Option<u64>,
}

/// The repetition of columns with more bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// The largest number of columns at a time.
    pub columns: usize,
    /// Bytes of the whole call meanwhile.
    pub limit_bytes: u64,
}

impl Bands {
    /// The widest bands that are worth their memory.
    pub fn widest(total: usize) -> Bands {
        let even = total.div_ceil(total.div_ceil(BAND_COLUMNS).max(1));
        Bands { total, columns: even.next_multiple_of(LEAST_COLUMNS).min(total), limit_bytes: None }
    }

    /// Half as wide; `None` where that is not worth it.
    fn narrower(self) -> Option<Bands> {
        let columns = (self.columns / 2).next_multiple_of(LEAST_COLUMNS).min(self.columns.saturating_sub(1));
        (self.columns > LEAST_COLUMNS).then_some(Bands { columns, ..self })
    }

    /// The widest bands, these or narrower ones, that `plan` does not refuse for their memory, and its plan of them.
    ///
    /// # Errors
    /// The errors of `plan`.
    pub fn fitting<T>(self, plan: impl Fn(&Bands) -> Result<T>) -> Result<(Bands, T)> {
        let mut bands = self;
        loop {
            match (plan(&bands), bands.narrower()) {
                (Err(Error::MemoryLimit { .. }), Some(narrower)) => bands = narrower,
                (planned, _) => return planned.map(|planned| (bands, planned)),
            }
        }
    }

    /// Number of bands.
    pub fn count(&self) -> usize {
        self.total.div_ceil(self.columns.max(1))
    }

    /// The columns of a band; none beyond the last.
    pub fn band(&self, index: usize) -> Range<usize> {
        (index * self.columns).min(self.total)..((index + 1) * self.columns).min(self.total)
    }
}

impl SolveMemory {
    /// The memory of a solve with triangles that are in memory: on the context's kernel, and by parts for columns whose
    /// exponents exceed the range of every try.
    pub fn new(ctx: Context, cuts: Vec<TriangleCut>) -> SolveMemory {
        SolveMemory {
            ctx,
            cuts,
            piece_row_bytes: 0,
            message_bytes: 0,
            left: UnsolvedColumns::Parts,
            together: None,
            first_tries: FirstTryKernel::Own,
        }
    }

    /// The memory of a solve by `substitutions` in one process, which also holds its solution, and of a factor the
    /// scaled heads and the reciprocals of the pivots.
    pub fn of_system(
        ctx: &Context,
        substitutions: &[Substitution],
        shape: SystemShape,
        bits: SolveBits,
        cuts: Vec<TriangleCut>,
    ) -> SolveMemory {
        let order = shape.order;
        let scaled_bytes = if substitutions.len() > 1 { ScaledRows::bytes(order) } else { 0 };
        let pivot_bytes = || Matrix::bytes_for(order, 1, bits.working) + 64 * order as u64;
        let middle_bytes = if substitutions == LDLT { pivot_bytes() } else { 0 };
        let ctx = ctx.holding(shape.right_bytes(bits.precision)).holding(scaled_bytes).holding(middle_bytes);
        SolveMemory { first_tries: FirstTryKernel::Suited, ..SolveMemory::new(ctx, cuts) }
    }

    /// The widest bands that fit the context's limit, and the bytes that the whole solve takes with them.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the smallest limit that suffices.
    pub fn plan(&self, total: usize) -> Result<(Bands, u64)> {
        let widest = Bands::widest(total);
        let (bands, bytes) = widest.fitting(|bands| self.bytes(self.ctx.memory(), bands.columns))?;
        Ok((Bands { limit_bytes: self.ctx.memory_bytes().map(|_| bytes), ..bands }, bytes))
    }

    /// The smallest limit that suffices.
    ///
    /// # Errors
    /// The errors of planning, except [`Error::MemoryLimit`].
    pub fn least_bytes(&self, total: usize) -> Result<u64> {
        // With a cache of its own, since tables that only a limit requires would stay in the context's cache.
        let apart = SolveMemory { ctx: self.ctx.without_cache(), ..self.clone() };
        let none = self.ctx.memory().within(Some(0));
        let planned = Bands::widest(total).fitting(|bands| apart.bytes(none, bands.columns));
        least_limit(planned.map(|(_, bytes)| bytes))
    }

    /// The repetition of columns of a band within the memory of the first try, or the least memory that a try needs if
    /// that is more.
    ///
    /// # Errors
    /// The errors of [`SolveMemory::plan`].
    pub fn retry(&self, columns: usize) -> Result<Retry> {
        // Planning makes tables, which may be larger than those of the previous try: its windows are released to make
        // room.
        self.ctx.release();
        let limit_bytes = match (self.bytes(self.ctx.memory(), columns), self.ctx.memory_bytes()) {
            (Err(Error::MemoryLimit { .. }), Some(limit_bytes)) => limit_bytes,
            (bytes, _) => bytes?,
        };
        let memory = self.ctx.memory().within(Some(limit_bytes));
        let fits = |some: &Bands| self.retry_bytes(memory, columns, some.columns).is_ok();
        let widths = std::iter::successors(Some(Bands { columns, ..Bands::widest(columns) }), |bands| bands.narrower());
        let columns = widths.filter(fits).map(|bands| bands.columns).next();
        let fewest = self.left.fewest(LEAST_COLUMNS);
        Ok(Retry { columns: columns.unwrap_or(fewest).max(fewest.min(LEAST_COLUMNS)), limit_bytes })
    }

    /// Bytes of a solve in bands of `columns` columns, with room for every later try.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the smallest limit that suffices.
    pub fn bytes(&self, memory: MemoryBudget, columns: usize) -> Result<u64> {
        let first = self.first_bytes(memory, columns);
        let tries = self.cuts.iter().any(|cut| cut.first_try_bits.is_some());
        if !tries || !self.plans_retry(memory, columns) {
            return first;
        }
        match (first, self.retry_bytes(memory.within(Some(0)), columns, self.left.fewest(columns))) {
            (first, Err(Error::MemoryLimit { minimum_bytes, .. })) => larger(first, memory.admit_total(minimum_bytes)),
            (first, retry) => larger(first, retry),
        }
    }

    /// The largest need of a triangle.
    fn largest(&self, bytes: impl FnMut(&TriangleCut) -> Result<u64>) -> Result<u64> {
        self.cuts.iter().map(bytes).fold(Ok(0), larger)
    }

    /// Bytes of the first try on all columns of a band, or of the solve by parts where there is no try.
    fn first_bytes(&self, memory: MemoryBudget, columns: usize) -> Result<u64> {
        self.largest(|cut| {
            let beside = memory.holding(cut.right_bytes(columns));
            match cut.first_try_bits {
                Some(bits) => {
                    self.first_try_bytes(beside.holding(self.kept_bytes(memory, columns)?), cut, columns, bits)
                }
                None if self.left == UnsolvedColumns::Stay => beside.admit(0),
                None => {
                    let copied = self.copied_bytes(cut, columns);
                    self.parts_bytes(beside.holding(copied), cut, self.left.untried(columns))
                }
            }
        })
    }

    /// Bytes without a memory limit, in bands of `columns` columns: of the first try, or of the outermost products of a
    /// solve by parts. Takes almost no time; later tries may take more.
    ///
    /// # Errors
    /// The errors of planning.
    pub fn unlimited_bytes(&self, columns: usize) -> Result<u64> {
        self.largest(|cut| {
            let beside = self.ctx.memory().holding(cut.right_bytes(columns));
            match cut.first_try_bits {
                Some(bits) => self.first_try_bytes(beside.within(None), cut, columns, bits),
                None if self.left == UnsolvedColumns::Stay => Ok(beside.held_bytes()),
                None => {
                    let (copied, columns) = (self.copied_bytes(cut, columns), self.left.untried(columns));
                    let beside = beside.holding(copied).holding(self.own_parts_bytes(cut, columns));
                    cut.product_bytes(&self.ctx.with_memory(beside), columns, 1)
                }
            }
        })
    }

    /// Whether a first try on all columns of a band fits the context's limit.
    ///
    /// # Errors
    /// The errors of planning, except [`Error::MemoryLimit`].
    pub fn tries_in_place(&self, cut: &TriangleCut, columns: usize, fixed_bits: u32) -> Result<bool> {
        if self.ctx.memory_bytes().is_none() {
            return Ok(true);
        }
        let memory = self.ctx.memory().holding(self.held_by_try(cut, columns, 0)?);
        match self.first_try_bytes(memory, cut, columns, fixed_bits) {
            Err(Error::MemoryLimit { .. }) => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// Bytes while some columns of a band are tried again with the most bits, or solved by parts.
    fn retry_bytes(&self, memory: MemoryBudget, columns: usize, some: usize) -> Result<u64> {
        self.largest(|cut| {
            let beside = memory.holding(cut.right_bytes(columns)).holding(cut.right_bytes(some));
            let kept_bytes = self.kept_bytes(memory, columns)?;
            let again = match most_fixed_bits(cut.working_bits) {
                Some(bits) => self.try_bytes(beside.holding(kept_bytes), cut, some, bits),
                None => beside.admit(0),
            };
            match self.left {
                UnsolvedColumns::Stay => again,
                _ => larger(again, self.parts_bytes(beside, cut, some)),
            }
        })
    }

    /// Bytes of a first try on all columns of a band.
    fn first_try_bytes(&self, memory: MemoryBudget, cut: &TriangleCut, columns: usize, fixed_bits: u32) -> Result<u64> {
        let size = self.try_size(cut, columns, fixed_bits, self.together, self.first_kernel(columns));
        memory.admit(TilePlan::new(&self.ctx, memory, size)?.bytes())
    }

    /// Bytes of a later try, for which each rank makes all tiles of the triangle itself.
    fn try_bytes(&self, memory: MemoryBudget, cut: &TriangleCut, columns: usize, fixed_bits: u32) -> Result<u64> {
        let size = self.try_size(cut, columns, fixed_bits, None, None);
        memory.admit(TilePlan::new(&self.ctx, memory, size)?.bytes())
    }

    /// The problem of a try on some columns.
    pub fn try_size(
        &self,
        cut: &TriangleCut,
        columns: usize,
        fixed_bits: u32,
        together: Option<NodeShared>,
        kernel: Option<&'static dyn PlaneKernel>,
    ) -> TrySize {
        TrySize {
            order: cut.order,
            columns,
            fixed_bits,
            piece_row_bytes: self.piece_row_bytes,
            message_bytes: self.message_bytes,
            accuracy: cut.accuracy,
            together,
            kernel,
        }
    }

    /// The kernel of all first tries where it is not the context's, in bands of at most `columns` columns: one for all
    /// bands and triangles of the call.
    pub fn first_kernel(&self, columns: usize) -> Option<&'static dyn PlaneKernel> {
        match self.first_tries {
            FirstTryKernel::Own => None,
            FirstTryKernel::Suited => self.suited_kernel(columns, 1),
            FirstTryKernel::Agreed(kernel) => Some(kernel),
        }
    }

    /// The kernel that suits first tries in bands of at most `columns` columns, where it is not the context's; `ranks`
    /// ranks with as many columns each make the tiles of a triangle together.
    pub fn suited_kernel(&self, columns: usize, ranks: usize) -> Option<&'static dyn PlaneKernel> {
        let bits = self.cuts.iter().map(|cut| cut.first_try_bits).collect::<Option<Vec<_>>>()?;
        let order = self.cuts.iter().map(|cut| cut.order).max()?;
        let each = columns / workers(&self.ctx, columns);
        solve_kernel(&self.ctx, order, columns.saturating_mul(ranks), each, bits.into_iter().max()?)
    }

    /// Name of the kernel of the first try on bands, or of the products of a solve by parts.
    ///
    /// # Errors
    /// The errors of planning.
    pub fn kernel(&self, bands: Bands) -> Result<&'static str> {
        let Some(cut) = self.cuts.first() else { return Ok(self.ctx.kernel().name()) };
        let Some(bits) = cut.first_try_bits else { return Ok(cut.product_kernel(&self.ctx).name()) };
        let memory = self.ctx.memory().within(bands.limit_bytes);
        let size = self.try_size(cut, bands.columns, bits, self.together, self.first_kernel(bands.columns));
        Ok(TilePlan::new(&self.ctx, memory, size)?.kernel)
    }

    /// The kept memory that the first try of a solve with one triangle uses, without a limit; none where it is solved
    /// by parts.
    ///
    /// # Errors
    /// The errors of [`Context::tile_engine_for`].
    pub fn first_needs(&self, columns: usize) -> Result<WorkspaceNeeds> {
        let [cut] = &self.cuts[..] else { return Ok(WorkspaceNeeds::default()) };
        let Some(bits) = cut.first_try_bits else { return Ok(WorkspaceNeeds::default()) };
        let size = self.try_size(cut, columns, bits, None, self.first_kernel(columns));
        Ok(TilePlan::new(&self.ctx, self.ctx.memory().within(None), size)?.needs())
    }

    fn parts_bytes(&self, memory: MemoryBudget, cut: &TriangleCut, columns: usize) -> Result<u64> {
        let ctx = self.ctx.with_memory(memory.holding(self.own_parts_bytes(cut, columns)));
        cut.product_bytes(&ctx, columns, ALL_LEVELS)
    }

    /// The largest number of bytes that a solve of `columns` columns by parts holds. Between ranks the columns travel
    /// first, before there are pieces and products, and the rows of each product after it: both as the gathered columns
    /// and as a message.
    fn own_parts_bytes(&self, cut: &TriangleCut, columns: usize) -> u64 {
        let parts = cut.parts_bytes(columns);
        match self.left {
            UnsolvedColumns::SharedParts(_) => {
                let rows = Matrix::bytes_for(cut.scratch_rows(), columns, cut.working_bits);
                let most = parts.saturating_add(2 * rows).max(2 * cut.right_bytes(columns));
                most.saturating_add(self.message_bytes)
            }
            _ => parts,
        }
    }

    /// Bytes of the copies that are solved by parts where no try is made: of all ranks' columns.
    fn copied_bytes(&self, cut: &TriangleCut, columns: usize) -> u64 {
        let shared = matches!(self.left, UnsolvedColumns::SharedParts(_));
        if shared { cut.right_bytes(self.left.untried(columns)) } else { 0 }
    }

    /// Bytes of a first try, or of a solve by parts, that do not lie in the windows of the context.
    ///
    /// # Errors
    /// The errors of making the tables of products.
    pub fn held_beside_windows(&self, columns: usize) -> Result<u64> {
        let most = self.largest(|cut| match cut.first_try_bits {
            Some(_) => Ok(cut.right_bytes(columns)),
            None => {
                let parts = [cut.parts_bytes(columns), cut.choice_bytes(columns), cut.table_bytes(&self.ctx)?];
                Ok(parts.into_iter().fold(cut.right_bytes(columns), u64::saturating_add))
            }
        });
        most.map(|most| self.ctx.memory().total(most))
    }

    /// Bytes of a band held while products by parts run: on all its columns, or on copies of some of them.
    pub fn held_by_parts(&self, cut: &TriangleCut, columns: usize, copied: Option<usize>) -> u64 {
        let copies = copied.map_or(0, |some| cut.right_bytes(some));
        let parts = [cut.right_bytes(columns), copies, self.own_parts_bytes(cut, copied.unwrap_or(columns))];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Bytes of a band, and of copies of `copied` of its columns, held while a try runs.
    ///
    /// # Errors
    /// The errors of making the tables of products.
    pub fn held_by_try(&self, cut: &TriangleCut, columns: usize, copied: usize) -> Result<u64> {
        let kept_bytes = self.kept_bytes(self.ctx.memory(), columns)?;
        let held = [cut.right_bytes(columns), cut.right_bytes(copied), kept_bytes];
        Ok(held.into_iter().fold(0, u64::saturating_add))
    }

    /// Whether a plan looks at later tries: without a limit they count only for few columns, or where the columns are
    /// those of all ranks.
    fn plans_retry(&self, memory: MemoryBudget, columns: usize) -> bool {
        let shared = matches!(self.left, UnsolvedColumns::SharedParts(_));
        memory.limit_bytes().is_some() || columns < ROOMY_COLUMNS || shared
    }

    /// Bytes of the tables that the context keeps for products by parts, from planning them on.
    fn kept_bytes(&self, memory: MemoryBudget, columns: usize) -> Result<u64> {
        if self.left == UnsolvedColumns::Stay || !self.plans_retry(memory, columns) {
            return Ok(0);
        }
        self.largest(|cut| cut.table_bytes(&self.ctx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::solve::problem::{Method, Path};

    #[test]
    fn bands_cover_all_columns_and_narrow_until_they_fit() {
        for total in [0usize, 1, 7, 100, 513, 3000] {
            let path = Path::choose(&[], 300, total);
            let context = |limit| Context::builder().threads(1).build().unwrap().with_memory_bytes(limit);
            let plan = |limit| {
                let cuts = vec![TriangleCut::expected(300, 200, Method::by_norms(path))];
                let ctx = context(limit).holding(1000);
                SolveMemory::new(ctx, cuts).plan(total)
            };
            let (bands, most) = plan(None).unwrap();
            assert!(bands.columns <= BAND_COLUMNS);
            let mut next = 0;
            for band in (0..bands.count()).map(|index| bands.band(index)) {
                assert_eq!(band.start, next);
                next = band.end;
            }
            assert_eq!((next, bands.band(bands.count()).len()), (total, 0));
            let least = match plan(Some(1)) {
                Err(Error::MemoryLimit { minimum_bytes, limit_bytes: 1 }) => minimum_bytes,
                other => panic!("{other:?}"),
            };
            let (narrow, bytes) = plan(Some(least)).unwrap();
            assert!(narrow.columns <= bands.columns && bytes <= least && bytes <= most, "{total} columns");
            assert!(plan(Some(least - 1)).is_err(), "{total} columns");
        }
    }
}
