//! Accuracy entry by entry: how many bits a product takes beyond those of norm-wise accuracy, and which entries are
//! left to sums of their own.
//!
//! For entry `(i, j)` the norms of its columns are 2 to the power `e_i` and `f_j` at most, its largest term lies below
//! 2 to the power `m_ij`, and `e_i + f_j - m_ij` bits of the norm-wise promise are lost on it. These numbers are found
//! panel by panel, as a product in the (max, +) semiring of how far the entries of both operands lie below their norms
//! (their *depths*). The bits are chosen by cost: entries beyond them are summed term by term.
//! Promise: the choice depends only on the exponents, the precision and the shape, so every path makes the same. The
//! same code serves one process and the ranks of a team, each of which has some rows of both operands.
//! Source: docs/ALGORITHM.md, "Componentwise accuracy of products".

use crate::comm::{Reduction, Transport};
use crate::context::Progress;
use crate::error::Result;
use crate::kernels::max_plus::{self, DepthRow, EMPTY, PANEL, depth, largest_sums};
use crate::math::bound::{COMMON_WORKING_BITS, RANGE_STEP_BITS, ceil_log2, range_bits};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::{EntryIndex, Uplo};
use crate::ops::exact_sum::ExactEntry;
use crate::ops::fixed_sum::{FixedSum, Sign};
use crate::ops::product::combine::Epilogue;
use crate::ops::product::path::{direct_nanoseconds, plane_nanoseconds};
use crate::ops::product::problem::{Bits, ColumnRange, OperandRows, ProductProblem, ProductSize};
use crate::ops::product::scale::{NormPass, ordered, unordered};
use crate::ops::product::sink::{ResultTarget, in_triangle};
use crate::store::filled;

/// Work on single entries that a worker takes at a time: asking for it takes a microsecond.
const GROUP_NANOSECONDS: f64 = 50_000.0;

/// Estimate for choosing the bits of a tiny product.
const CHOICE_NANOSECONDS: f64 = 300.0;

/// Single entries whose sums are held at a time.
const TOGETHER: usize = 1024;

/// Step of the bits of columns that are chosen one by one: the steps are coarse so that few products serve all columns.
const COLUMN_STEP_BITS: u32 = 32;

/// Number of columns that a column with bits of its own is assumed to share its product with.
const COLUMNS_BESIDE: usize = 8;

/// The part of a product whose operands lie here.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub size: ProductSize,
    /// The triangle wanted of a symmetric result.
    pub uplo: Uplo,
    pub precision_bits: u32,
    /// Own rows of the left operand, and the norm exponents of its columns.
    pub left: OperandRows<'a>,
    /// The same of the right one; `None` for SYRK.
    pub right: Option<OperandRows<'a>>,
}

/// The needs of one product under entrywise accuracy.
#[derive(Default)]
pub(crate) struct Entrywise {
    /// Bits of the scaled integers beyond those of the norms.
    pub range_bits: u32,
    /// Entries that are summed term by term.
    pub singles: Singles,
}

/// The entries of a result that are summed term by term.
#[derive(Default)]
pub(crate) enum Singles {
    /// None of them.
    #[default]
    None,
    /// All of them: the product is not formed.
    All,
    /// A set bit marks such an entry: one column after the other, each starting at a new word.
    Some(Vec<u64>),
}

/// Whether a product is so small that sums term by term take less time for any entries.
pub(crate) fn takes_all(size: &ProductSize, precision_bits: u32) -> bool {
    let bits = Bits::scaled(precision_bits, size.contracted).working + RANGE_STEP_BITS;
    let product = plane_nanoseconds(size, bits).min(CHOICE_NANOSECONDS + direct_nanoseconds(size, bits));
    !size.is_empty() && size.entries() * single_nanoseconds(size, precision_bits) < product
}

/// Estimate for one entry summed term by term.
fn single_nanoseconds(size: &ProductSize, precision_bits: u32) -> f64 {
    let limbs = limbs_for(precision_bits) as f64 + 2.0;
    30.0 + size.contracted as f64 * (25.0 + 0.9 * limbs * limbs)
}

/// The largest terms of all entries of a product, ready to be visited.
enum LargestTerms {
    Panel(Box<OnePanel>),
    Depths(Depths),
}

impl LargestTerms {
    fn new(pass: &NormPass<'_>, terms: &Terms<'_>) -> Result<LargestTerms> {
        let (left, right) = (&terms.left, terms.right.as_ref());
        match OnePanel::new(pass, left, right, &terms.size) {
            Some(panel) => Ok(LargestTerms::Panel(Box::new(panel))),
            None => pass.site.agreed(Depths::new(pass, left, right)).map(LargestTerms::Depths),
        }
    }

    /// As [`Depths::visit`]. Collective.
    fn visit(
        &self,
        pass: &NormPass<'_>,
        Terms { size, uplo, .. }: &Terms<'_>,
        see: &mut dyn FnMut(EntryIndex, Option<u32>),
    ) -> Result<()> {
        match self {
            LargestTerms::Depths(depths) => depths.visit(pass, size, *uplo, see),
            LargestTerms::Panel(panel) => {
                panel.visit(size, *uplo, see);
                Ok(())
            }
        }
    }
}

/// Chooses; `range` has been chosen already where it is given. Collective.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::Transport`].
pub(crate) fn choose(pass: &NormPass<'_>, terms: &Terms<'_>, range: Option<ColumnRange>) -> Result<Entrywise> {
    if let Some(ColumnRange { range_bits, has_singles: false }) = range {
        return Ok(Entrywise { range_bits, singles: Singles::None });
    }
    let found = LargestTerms::new(pass, terms)?;
    let chosen = match range {
        Some(range) => range.range_bits,
        None => {
            let needs = needed_steps(pass, terms, &found)?;
            let chosen = cheapest(terms, &needs);
            if needs.iter().skip((chosen / RANGE_STEP_BITS) as usize + 1).all(|&count| count == 0) {
                return Ok(Entrywise { range_bits: chosen, singles: Singles::None });
            }
            chosen
        }
    };
    let words = terms.size.rows.div_ceil(64);
    let mut marks = vec![0u64; words * terms.size.cols];
    found.visit(pass, terms, &mut |EntryIndex { row, col }, depth| {
        if depth.is_some_and(|depth| range_bits(depth) > chosen) {
            marks[col * words + row / 64] |= 1 << (row % 64);
        }
    })?;
    Ok(Entrywise { range_bits: chosen, singles: Singles::Some(marks) })
}

/// Element `s` is the number of entries that need `s` steps of bits; the last element counts those that need more than
/// all kernels have.
fn needed_steps(pass: &NormPass<'_>, terms: &Terms<'_>, found: &LargestTerms) -> Result<Vec<u64>> {
    let most = most_steps(&terms.size, terms.precision_bits);
    let is_panel = matches!(found, LargestTerms::Panel(_));
    // Looking at a panel twice takes less time than a long list.
    let mut largest = if is_panel { 0 } else { most + 1 };
    if is_panel {
        found.visit(pass, terms, &mut |_, depth| {
            largest = depth.map_or(largest, |depth| largest.max(steps_of(depth, most)));
        })?;
    }
    let mut needs = vec![0u64; most.min(largest) + 2];
    found.visit(pass, terms, &mut |_, depth| {
        depth.into_iter().for_each(|depth| needs[steps_of(depth, most)] += 1);
    })?;
    Ok(needs)
}

/// Chooses for each column by itself: the choice depends only on that column and the left operand. No column gets less
/// than `least_bits`, or than all kernels have.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn choose_columns(pass: &NormPass<'_>, terms: &Terms<'_>, least_bits: u32) -> Result<Vec<ColumnRange>> {
    let (size, most) = (terms.size, most_steps(&terms.size, terms.precision_bits));
    let alone = Terms { size: ProductSize { cols: COLUMNS_BESIDE, ..size }, ..*terms };
    let choice = ColumnChoice { terms: &alone, most, least_bits: least_bits.min(most as u32 * RANGE_STEP_BITS) };
    // Panels of columns come one after the other.
    let mut panel: Vec<Vec<usize>> = vec![Vec::with_capacity(size.rows); PANEL.min(size.cols)];
    let mut ranges = Vec::with_capacity(size.cols);
    let found = LargestTerms::new(pass, terms)?;
    found.visit(pass, terms, &mut |EntryIndex { col, .. }, depth| {
        if col / PANEL > ranges.len() / PANEL {
            ranges.extend(panel.iter_mut().map(|column| choice.take(column)));
        }
        panel[col % PANEL].extend(depth.map(|depth| steps_of(depth, most)));
    })?;
    let rest = size.cols - ranges.len();
    ranges.extend(panel.iter_mut().take(rest).map(|column| choice.take(column)));
    Ok(ranges)
}

/// The choice for one column.
struct ColumnChoice<'a> {
    /// Terms of a product of [`COLUMNS_BESIDE`] columns like it.
    terms: &'a Terms<'a>,
    most: usize,
    least_bits: u32,
}

impl ColumnChoice<'_> {
    /// Chooses for the steps that the entries of a column need, and forgets them.
    fn take(&self, column: &mut Vec<usize>) -> ColumnRange {
        let &ColumnChoice { terms, most, least_bits } = self;
        let largest = column.iter().copied().max().unwrap_or(0);
        let mut range_bits = least_bits;
        if largest as u32 * RANGE_STEP_BITS > least_bits {
            let mut needs = vec![0; largest.min(most) + 2];
            column.iter().for_each(|&steps| needs[steps] += COLUMNS_BESIDE as u64);
            let more = cheapest(terms, &needs).saturating_sub(least_bits).next_multiple_of(COLUMN_STEP_BITS);
            range_bits = (least_bits + more).min(most as u32 * RANGE_STEP_BITS);
        }
        column.clear();
        ColumnRange { range_bits, has_singles: largest as u32 * RANGE_STEP_BITS > range_bits }
    }
}

/// The bits, in steps, that make product and single entries cost least; `needs[s]` entries need `s` steps, those in the
/// last place more than all kernels have.
fn cheapest(terms: &Terms<'_>, needs: &[u64]) -> u32 {
    let bits = Bits::scaled(terms.precision_bits, terms.size.contracted).working;
    let single = single_nanoseconds(&terms.size, terms.precision_bits);
    let mut singles = needs.iter().sum::<u64>();
    let mut best = (f64::INFINITY, 0);
    for (step, &count) in (0..).zip(&needs[..needs.len() - 1]) {
        singles -= count;
        if count > 0 || step == 0 {
            let range_bits = step * RANGE_STEP_BITS;
            let cost = plane_nanoseconds(&terms.size, bits + range_bits) + singles as f64 * single;
            if cost < best.0 {
                best = (cost, range_bits);
            }
        }
    }
    best.1
}

/// The steps of bits that an entry of depth `depth` needs; `most + 1` where it needs more than `most`.
fn steps_of(depth: u32, most: usize) -> usize {
    (range_bits(depth) / RANGE_STEP_BITS).min(most as u32 + 1) as usize
}

/// Steps that every kernel has beyond the bits of the norms.
fn most_steps(size: &ProductSize, precision_bits: u32) -> usize {
    let working = Bits::scaled(precision_bits, size.contracted).working;
    (COMMON_WORKING_BITS.saturating_sub(working) / RANGE_STEP_BITS) as usize
}

/// Bits that a product may choose, for a plan: the nearest possible ones above `wanted`, or, without `wanted`, those
/// for entries of one size.
pub(crate) fn possible_range_bits(size: &ProductSize, precision_bits: u32, wanted: Option<u32>) -> u32 {
    let wanted = wanted.unwrap_or_else(|| range_bits(ceil_log2(size.contracted) + 2));
    let most = most_steps(size, precision_bits) as u32 * RANGE_STEP_BITS;
    wanted.min(most).next_multiple_of(RANGE_STEP_BITS)
}

impl Singles {
    /// Bytes of the marks, and of the sums under way.
    pub fn bytes(&self, size: &ProductSize, precision_bits: u32) -> u64 {
        let marks = if let Singles::Some(marks) = self { 8 * marks.len() as u64 } else { 0 };
        let each = size_of::<SingleSum>() as u64 + FixedSum::bytes(precision_bits);
        marks + self.count(size).min(TOGETHER as u64) * each
    }

    /// The number of these entries.
    pub fn count(&self, size: &ProductSize) -> u64 {
        match self {
            Singles::None => 0,
            Singles::All => size.entries() as u64,
            Singles::Some(marks) => marks.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }

    /// Puts the sums of all terms of these entries into `result`, as far as this rank has them. Collective.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] on all ranks; [`Error::Cancelled`], [`Error::Transport`].
    pub fn finish(
        &self,
        pass: &NormPass<'_>,
        terms: &Terms<'_>,
        epilogue: &Epilogue<'_>,
        result: &mut ResultTarget<'_>,
    ) -> Result<()> {
        let precision_bits = result.precision_bits();
        self.sum(pass, terms, |place, exact| {
            if let Some((head, limbs)) = result.entry(place) {
                *head = epilogue.finish(exact, place, precision_bits, limbs)?.0;
            }
            Ok(())
        })
    }

    /// Passes the sum of all terms of each of these entries to `store`, one column after the other. Collective.
    ///
    /// # Errors
    /// The first error of `store`, on all ranks; [`Error::Cancelled`], [`Error::Transport`].
    fn sum(
        &self,
        pass: &NormPass<'_>,
        terms: &Terms<'_>,
        mut store: impl FnMut(EntryIndex, ExactEntry<'_>) -> Result<()>,
    ) -> Result<()> {
        let ProductSize { rows, cols, .. } = terms.size;
        let words = rows.div_ceil(64);
        let group = (GROUP_NANOSECONDS / single_nanoseconds(&terms.size, terms.precision_bits)) as usize + 1;
        let marked = |row: usize, col: usize| match self {
            Singles::None => false,
            Singles::All => !terms.size.is_half() || in_triangle(terms.uplo, row, col),
            Singles::Some(marks) => marks[col * words + row / 64] >> (row % 64) & 1 == 1,
        };
        let (mut done, total) = (0, self.count(&terms.size));
        let columns = if total == 0 { 0..0 } else { 0..cols };
        let mut places = columns
            .flat_map(|col| (0..rows).map(move |row| EntryIndex { row, col }))
            .filter(|place| marked(place.row, place.col))
            .peekable();
        let mut sums = Vec::with_capacity(total.min(TOGETHER as u64) as usize);
        while places.peek().is_some() {
            sums.clear();
            sums.extend(places.by_ref().take(TOGETHER).map(|place| SingleSum::new(place, terms)));
            pass.each_group(group, &mut sums, |_, sums| sums.iter_mut().for_each(|sum| sum.find_top(terms)));
            tops_over_ranks(pass.site.world(), &mut sums)?;
            pass.each_group(group, &mut sums, |_, sums| sums.iter_mut().for_each(|sum| sum.add_terms(terms)));
            add_over_ranks(pass.site.world(), &mut sums)?;
            done += sums.len() as u64;
            let told = pass.site.ctx.report_progress(Progress::new("entries", done, total));
            let mut each = sums.iter_mut();
            pass.site.agree(told.and_then(|()| each.try_for_each(|one| store(one.place, one.sum.exact()))))?;
        }
        Ok(())
    }
}

/// One entry that is summed term by term.
struct SingleSum {
    place: EntryIndex,
    sum: FixedSum,
    /// Power of two above the largest term; `None` where all are 0.
    top: Option<i64>,
}

impl SingleSum {
    fn new(place: EntryIndex, terms: &Terms<'_>) -> SingleSum {
        SingleSum { place, sum: FixedSum::new(terms.precision_bits), top: None }
    }

    fn find_top(&mut self, terms: &Terms<'_>) {
        self.top = FixedSum::top(terms.pairs(self.place));
    }

    fn add_terms(&mut self, terms: &Terms<'_>) {
        self.sum.begin(self.top.unwrap_or(0));
        self.sum.add_products(terms.pairs(self.place), Sign::Plus);
    }
}

impl<'a> Terms<'a> {
    /// The terms of a product in one process, with the norm exponents of the operands' columns.
    pub fn of(problem: &'a ProductProblem<'_>, left: &'a [i64], right: &'a [i64]) -> Terms<'a> {
        let (left, right) = problem.operands(left, right);
        let ProductProblem { uplo, precision_bits, .. } = *problem;
        Terms { size: problem.size(), uplo, precision_bits, left, right }
    }

    /// The factors of the own terms of an entry.
    fn pairs(&self, place: EntryIndex) -> impl Iterator<Item = (FloatRef<'a>, FloatRef<'a>)> + Clone + use<'a> {
        let EntryIndex { row, col } = place;
        let (left, right) = (self.left.blocks, self.right.unwrap_or(self.left).blocks);
        left.iter()
            .zip(right)
            .flat_map(move |(left, right)| (0..left.rows()).map(move |k| (left.get(k, row), right.get(k, col))))
    }
}

/// The largest terms of all ranks. Collective.
fn tops_over_ranks(world: &dyn Transport, sums: &mut [SingleSum]) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    // The least word is none.
    let mut words = sums.iter().map(|sum| sum.top.map_or(0, ordered)).collect::<Vec<_>>();
    world.all_reduce(Reduction::Max, &mut words)?;
    for (sum, word) in sums.iter_mut().zip(words) {
        sum.top = (word > 0).then_some(unordered(word));
    }
    Ok(())
}

/// The sums of all ranks' parts. Collective.
fn add_over_ranks(world: &dyn Transport, sums: &mut [SingleSum]) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    // Halves of limbs leave room for the carries of 2^32 ranks.
    let halves = |limb: u64| [limb & u64::from(u32::MAX), limb >> 32];
    let mut words =
        sums.iter_mut().flat_map(|sum| sum.sum.limbs().iter().copied().flat_map(halves)).collect::<Vec<_>>();
    world.all_reduce(Reduction::Sum, &mut words)?;
    let mut words = words.chunks_exact(2);
    for sum in sums {
        let mut carry = 0u128;
        for limb in sum.sum.limbs() {
            let halves = words.next().expect("two halves for each limb");
            carry += u128::from(halves[0]) + (u128::from(halves[1]) << 32);
            *limb = carry as u64;
            carry >>= 64;
        }
    }
    Ok(())
}

/// Bytes of a row of a panel.
const ROW_BYTES: u64 = size_of::<DepthRow>() as u64;

/// Approximate number of rows of panels that a worker takes at a time.
const GROUP_ROWS: usize = 4096;

/// Bytes of the depths of both operands, where all rows are here, and of the sums of a panel.
pub(crate) fn choice_bytes(size: &ProductSize) -> u64 {
    let panels = size.rows.div_ceil(PANEL) + if size.triangle { 0 } else { size.cols.div_ceil(PANEL) };
    let sums = (size.rows.div_ceil(PANEL) as u64).saturating_mul(PANEL as u64).saturating_mul(ROW_BYTES);
    (panels as u64).saturating_mul(size.contracted as u64).saturating_mul(ROW_BYTES).saturating_add(sums)
}

/// Bytes of the depths of an upper triangular operand of `order` rows, and of the sums of a panel.
pub(crate) fn triangle_bytes(order: usize) -> u64 {
    let panels = order.div_ceil(PANEL) as u64;
    let blocks = (panels + 1).saturating_mul(panels) / 2 + panels;
    blocks.saturating_mul(PANEL as u64).saturating_mul(ROW_BYTES)
}

/// The largest sums of a product of few rows and columns on one rank: one panel, on the stack.
pub(crate) struct OnePanel {
    sums: [DepthRow; PANEL],
}

impl OnePanel {
    /// Finds the sums; `None` where there are more rows or columns.
    pub fn new(
        pass: &NormPass<'_>,
        left: &OperandRows<'_>,
        right: Option<&OperandRows<'_>>,
        size: &ProductSize,
    ) -> Option<OnePanel> {
        let rows = size.contracted;
        if pass.site.team.size() > 1 || size.rows.max(size.cols).max(rows) > PANEL {
            return None;
        }
        let mut depths = [[[EMPTY; PANEL]; PANEL]; 2];
        let [of_left, of_right] = &mut depths;
        fill_panel(&mut of_left[..rows], left, 0);
        let of_left = &of_left[..rows];
        let of_right = match right {
            None => of_left,
            Some(right) => {
                fill_panel(&mut of_right[..rows], right, 0);
                &of_right[..rows]
            }
        };
        let mut panel = OnePanel { sums: [[EMPTY; PANEL]; PANEL] };
        largest_sums(of_left, of_right, &mut panel.sums);
        Some(panel)
    }

    /// As [`Depths::visit`].
    pub fn visit(&self, size: &ProductSize, uplo: Uplo, see: impl FnMut(EntryIndex, Option<u32>)) {
        show(size, uplo, EntryIndex { row: 0, col: 0 }, &self.sums, see);
    }
}

/// Passes on the sums of a panel of columns and of some rows of the product, as far as they are wanted; the first of
/// them is that of the entry at `first`.
fn show(
    size: &ProductSize,
    uplo: Uplo,
    first: EntryIndex,
    sums: &[DepthRow],
    mut see: impl FnMut(EntryIndex, Option<u32>),
) {
    for (row, sums) in (first.row..size.rows).zip(sums) {
        for (col, &sum) in (first.col..size.cols).zip(sums) {
            if !size.is_half() || in_triangle(uplo, row, col) {
                see(EntryIndex { row, col }, (sum != EMPTY).then(|| u32::from(sum.unsigned_abs())));
            }
        }
    }
}

/// The depths of the columns from `first` on, row by row.
fn fill_panel(part: &mut [DepthRow], operand: &OperandRows<'_>, first: usize) {
    let norms = &operand.shifts[first..operand.shifts.len().min(first + PANEL)];
    let places = operand.blocks.iter().flat_map(|block| (0..block.rows()).map(move |row| (block, row)));
    for (depths, (block, row)) in part.iter_mut().zip(places) {
        let heads = &block.all_heads()[block.element_index(row, first)..];
        if block.col_stride() == 1 {
            max_plus::depths(heads, norms, depths);
            continue;
        }
        let heads = heads.iter().step_by(block.col_stride().max(1));
        for ((own, &norm), &head) in depths.iter_mut().zip(norms).zip(heads) {
            *own = depth(Head(head), norm);
        }
    }
}

/// The depths of own rows of both operands.
pub(crate) struct Depths {
    left: Panels,
    /// `None` where it is the left operand.
    right: Option<Panels>,
}

/// The depths of an operand: of 32 columns and all rows that count for them, then of the next 32.
struct Panels {
    rows: usize,
    /// Whether rows below the diagonal of the operand are all 0, and left out.
    is_upper: bool,
    depths: Vec<DepthRow>,
}

impl Depths {
    /// Finds the depths of the entries below the norm exponents in `shifts`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(pass: &NormPass<'_>, left: &OperandRows<'_>, right: Option<&OperandRows<'_>>) -> Result<Depths> {
        let right = right.map(|right| Panels::new(pass, right, false)).transpose()?;
        Ok(Depths { left: Panels::new(pass, left, false)?, right })
    }

    /// The depths of an upper triangular operand, for the products of its columns with each other.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn of_upper(pass: &NormPass<'_>, operand: &OperandRows<'_>) -> Result<Depths> {
        Ok(Depths { left: Panels::new(pass, operand, true)?, right: None })
    }

    /// The depths of 32 neighbouring columns of the left operand, row by row.
    pub fn panel(&self, index: usize) -> &[DepthRow] {
        self.left.panel(index)
    }

    /// Visits all entries of the product, or of its triangle, with the distance of their largest term below the product
    /// of the norms; `None` where all terms are 0. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn visit(
        &self,
        pass: &NormPass<'_>,
        size: &ProductSize,
        uplo: Uplo,
        mut see: impl FnMut(EntryIndex, Option<u32>),
    ) -> Result<()> {
        let ProductSize { rows, cols, .. } = *size;
        let (left, right) = (&self.left, self.right.as_ref().unwrap_or(&self.left));
        let mut all = vec![[[EMPTY; PANEL]; PANEL]; rows.div_ceil(PANEL)];
        for panel in 0..cols.div_ceil(PANEL) {
            let wanted = match (size.is_half(), uplo) {
                (false, _) => 0..all.len(),
                (true, Uplo::Lower) => panel..all.len(),
                (true, Uplo::Upper) => 0..panel + 1,
            };
            let (sums, right) = (&mut all[wanted.clone()], right.panel(panel));
            pass.each_group(GROUP_ROWS.div_ceil(right.len() + 1), sums, |first, sums| {
                for (sums, other) in sums.iter_mut().zip(wanted.start + first..) {
                    // Two triangles have as many rows in common as the narrower one.
                    let left = left.panel(other);
                    let common = left.len().min(right.len());
                    largest_sums(&left[..common], &right[..common], sums);
                }
            });
            raise_over_ranks(pass.site.world(), sums)?;
            let first = EntryIndex { row: wanted.start * PANEL, col: panel * PANEL };
            show(size, uplo, first, sums.as_flattened(), &mut see);
        }
        Ok(())
    }
}

impl Panels {
    /// Columns beyond the last are empty.
    fn new(pass: &NormPass<'_>, operand: &OperandRows<'_>, is_upper: bool) -> Result<Panels> {
        let (rows, norms) = (operand.blocks.iter().map(|block| block.rows()).sum(), operand.shifts);
        let mut panels = Panels { rows, is_upper, depths: Vec::new() };
        let count = panels.start(norms.len().div_ceil(PANEL));
        panels.depths = filled([EMPTY; PANEL], count)?;
        let mut parts = Vec::with_capacity(norms.len().div_ceil(PANEL));
        let mut rest = &mut panels.depths[..];
        for panel in 0..norms.len().div_ceil(PANEL) {
            let (own, others) = rest.split_at_mut(if is_upper { ((panel + 1) * PANEL).min(rows) } else { rows });
            parts.push(own);
            rest = others;
        }
        pass.each_group(1, &mut parts, |panel, part| fill_panel(part[0], operand, panel * PANEL));
        drop(parts);
        Ok(panels)
    }

    /// The first row of a panel in the list of all.
    fn start(&self, panel: usize) -> usize {
        if self.is_upper {
            // All panels but the last have as many rows as columns up to their end.
            (PANEL * panel * (panel + 1) / 2).min(self.upper_rows())
        } else {
            self.rows * panel
        }
    }

    /// Rows of all panels of an upper triangle.
    fn upper_rows(&self) -> usize {
        let whole = self.rows / PANEL;
        let last = if self.rows.is_multiple_of(PANEL) { 0 } else { self.rows };
        PANEL * whole * (whole + 1) / 2 + last
    }

    fn panel(&self, index: usize) -> &[DepthRow] {
        &self.depths[self.start(index)..self.start(index + 1)]
    }
}

/// The largest of the sums of all ranks. Collective.
fn raise_over_ranks(world: &dyn Transport, sums: &mut [[DepthRow; PANEL]]) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    let sums = sums.as_flattened_mut().as_flattened_mut();
    // As unsigned words in the same order.
    let mut words = sums.iter().map(|&sum| u64::from(sum.abs_diff(EMPTY))).collect::<Vec<_>>();
    world.all_reduce(Reduction::Max, &mut words)?;
    sums.iter_mut().zip(words).for_each(|(sum, word)| *sum = EMPTY.wrapping_add_unsigned(word as u16));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::matrix::Matrix;

    #[test]
    fn one_panel_tells_what_all_panels_do() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let pass = NormPass::one_process(&ctx, 1);
        let mut state = 88_172_645_463_325_252u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for (contracted, rows, cols) in
            [(1, 1, 1), (3, 4, 5), (32, 32, 32), (32, 31, 2), (33, 4, 4), (4, 33, 4), (4, 4, 33)]
        {
            let mut matrix = |cols: usize| {
                let mut matrix = Matrix::zeros(contracted, cols, 60).unwrap();
                for (row, col) in (0..contracted).flat_map(|row| (0..cols).map(move |col| (row, col))) {
                    let value = if next(4) == 0 { 0.0 } else { 2f64.powi(-(next(900) as i32)) };
                    matrix.set_f64(row, col, value).unwrap();
                }
                matrix
            };
            let (left, right) = (matrix(rows), matrix(cols));
            let (left, right) = ([left.view()], [right.view()]);
            let shifts = vec![1; rows.max(cols)];
            let left = OperandRows { blocks: &left, shifts: &shifts[..rows] };
            for right in [None, Some(OperandRows { blocks: &right, shifts: &shifts[..cols] })] {
                let cols = if right.is_some() { cols } else { rows };
                let size = ProductSize { contracted, rows, cols, triangle: right.is_none(), half: None };
                let Some(panel) = OnePanel::new(&pass, &left, right.as_ref(), &size) else {
                    assert!(contracted.max(rows).max(cols) > PANEL);
                    continue;
                };
                assert!(contracted.max(rows).max(cols) <= PANEL);
                for uplo in [Uplo::Lower, Uplo::Upper] {
                    let (mut got, mut want) = (Vec::new(), Vec::new());
                    panel.visit(&size, uplo, |EntryIndex { row, col }, depth| got.push((row, col, depth)));
                    let depths = Depths::new(&pass, &left, right.as_ref()).unwrap();
                    let mut see = |EntryIndex { row, col }: EntryIndex, depth| want.push((row, col, depth));
                    depths.visit(&pass, &size, uplo, &mut see).unwrap();
                    assert!(!got.is_empty() && got == want, "{size:?}");
                }
            }
        }
    }
}
