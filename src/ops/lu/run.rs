//! Factors a matrix in blocks of columns: products as residues, the last steps of every entry on integers.
//!
//! A block of columns takes the finished columns of `L` in, strip by strip: the rows of `U` that belong to a strip are
//! found by substitution, and their products with the rows below are added to the sums of the block. Then its own
//! columns are factored by halves: the left half, its rows of `U` in the right half, their products, the right half.
//! Eight columns are a leaf. Every entry is reconstructed once, and rounded once to `w` bits.

use crate::context::{Context, Progress, WorkspaceNeeds};
use crate::drive;
use crate::kernels::limbs;
use crate::kernels::{IntegerBlock, PanelSource, PlaneEngine};
use crate::math::float::{Head, round_integer};
use crate::matrix::{EntryIndex, Matrix, MatrixView, check_exponent};
use crate::ops::lu::lanes::LaneLeaf;
use crate::ops::lu::leaf::{Leaf, Rules, rows_of, substitute, substitute_words};
use crate::ops::lu::planes::{RowMove, Strip, StripProduct, Sums, entry_of_block};
use crate::ops::lu::problem::{FactorPlace, LuProblem, LuStop, Stopped};
use crate::ops::product::steps::{Space, worker_spaces};
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use crate::store::{Buffer, zeroed};
use std::ops::Range;

/// Columns of a block at most.
const MOST_WIDTH: usize = 128;

/// Exponents of two that integers are scaled by: none.
pub(super) const SHIFTS: [i64; BLOCK] = [0; BLOCK];

/// The factors of a matrix in one, and the row of the matrix at each place.
pub(crate) struct Factors {
    pub entries: Matrix,
    pub rows: Vec<usize>,
    /// Bits of the largest entry of the scaled `U` above the point.
    pub growth_bits: u32,
}

/// A matrix to factor, and a matrix of the same shape and the precision of the factors for them.
pub(crate) struct LuOperands<'a> {
    pub a: MatrixView<'a>,
    pub memory: Matrix,
}

/// The sizes of a factorisation.
#[derive(Clone, Copy)]
pub(crate) struct LuSizes {
    pub order: usize,
    /// Columns of a block, whole leaves.
    pub width: usize,
    pub workers: usize,
}

impl LuSizes {
    /// The sizes for a matrix of `order` rows.
    pub fn new(order: usize, workers: usize) -> LuSizes {
        let width = (order / 6).next_multiple_of(BLOCK).clamp(BLOCK, MOST_WIDTH);
        LuSizes { order, width, workers }
    }

    /// Panels of rows, or of columns.
    pub(super) fn panels(self) -> usize {
        self.order.div_ceil(BLOCK)
    }

    fn blocks(self) -> usize {
        self.width / BLOCK
    }

    /// Blocks of columns.
    fn strips(self) -> usize {
        self.order.div_ceil(self.width)
    }

    /// The leaves of a block of columns.
    fn leaves(self, strip: usize) -> Range<usize> {
        0..(self.order - strip * self.width).min(self.width).div_ceil(BLOCK)
    }

    /// The panel of the first row of a strip.
    pub(super) fn first_panel(self, strip: usize) -> usize {
        strip * self.blocks()
    }

    /// Words of scratch of a worker.
    fn scratch_words(self, engine: &dyn PlaneEngine, rules: &Rules) -> usize {
        let grid = BlockGrid::rectangle(self.width, self.order);
        let sums = Sums::scratch_words(engine, self.panels(), self.blocks(), self.width);
        let own = rules.lanes.map_or_else(|| LeafSpace::words(rules), |lanes| lanes.words())
            + engine.scratch_words(self.width, &grid);
        sums.max(own)
    }

    /// Words of all strips, and of the rows of `U`.
    fn operand_words(self, engine: &dyn PlaneEngine) -> usize {
        let panels = |strip: usize| self.panels() - self.first_panel(strip);
        let strips = (0..self.strips()).map(|strip| Strip::words(engine, panels(strip), self.width)).sum::<usize>();
        strips + Strip::words(engine, self.blocks(), self.width)
    }

    /// The memory between calls that a factorisation takes.
    fn needs(self, engine: &dyn PlaneEngine, rules: &Rules) -> WorkspaceNeeds {
        WorkspaceNeeds {
            operand_bytes: Buffer::bytes_for(self.operand_words(engine)),
            product_bytes: Buffer::bytes_for(Sums::words(engine, self.panels(), self.blocks())),
            workers: self.workers,
            worker_bytes: Buffer::bytes_for(self.scratch_words(engine, rules))
                + 8 * (BLOCK_WORDS * engine.magnitude_limbs()) as u64,
            planned_bytes: self.bytes(engine, rules),
        }
    }

    /// Bytes that a factorisation takes beyond its factors.
    pub fn bytes(self, engine: &dyn PlaneEngine, rules: &Rules) -> u64 {
        let strips = Buffer::bytes_for(self.operand_words(engine)) + self.place_bytes(engine, self.panels());
        let leaf = match &rules.lanes {
            Some(lanes) => LaneLeaf::bytes(lanes, self.order, self.workers),
            None => Leaf::bytes(rules, self.order, BLOCK) + 8 * self.diagonal_words(rules) as u64,
        };
        let worker = 8 * (self.scratch_words(engine, rules) + BLOCK_WORDS * engine.magnitude_limbs()) as u64
            + Strip::move_bytes(engine, self.order, self.width);
        strips
            + Buffer::bytes_for(Sums::words(engine, self.panels(), self.blocks()))
            + leaf
            + self.workers as u64 * worker
            + engine.table_bytes()
            + 16 * self.order as u64
    }

    /// Words of the entries of `L` among the rows of each leaf.
    fn diagonal_words(self, rules: &Rules) -> usize {
        self.panels() * BLOCK_WORDS * rules.entry_words()
    }

    /// Bytes of the lists of places of a strip, and of rows on the move.
    fn place_bytes(self, engine: &dyn PlaneEngine, panels: usize) -> u64 {
        let runs = engine.row_runs(self.width, 0..BLOCK).count;
        (panels * engine.moduli().len() * runs * size_of::<&mut [u64]>()) as u64
    }
}

/// Scratch of a worker for the integers of eight rows and columns.
struct LeafSpace<'s> {
    rests: &'s mut [u64],
    entries: &'s mut [u64],
    heads: &'s mut [u64],
    limbs: &'s mut [u64],
    rest: &'s mut [u64],
    engine: &'s mut [u64],
}

impl<'s> LeafSpace<'s> {
    fn words(rules: &Rules) -> usize {
        let widths = rules.headroom.widths;
        BLOCK * widths.rest + BLOCK_WORDS * (rules.entry_words() + 1 + widths.entry) + substitute_words(rules)
    }

    fn cut(rules: &Rules, scratch: &'s mut [u64]) -> LeafSpace<'s> {
        let widths = rules.headroom.widths;
        let (rests, scratch) = scratch.split_at_mut(BLOCK * widths.rest);
        let (entries, scratch) = scratch.split_at_mut(BLOCK_WORDS * rules.entry_words());
        let (heads, scratch) = scratch.split_at_mut(BLOCK_WORDS);
        let (limbs, scratch) = scratch.split_at_mut(BLOCK_WORDS * widths.entry);
        let (rest, engine) = scratch.split_at_mut(substitute_words(rules));
        LeafSpace { rests, entries, heads, limbs, rest, engine }
    }
}

/// The integers of a leaf.
enum IntegerLeaf {
    Limbs {
        leaf: Leaf,
        /// The entries of `L` among the rows of each leaf, row by row.
        diagonals: Vec<u64>,
    },
    Lanes(LaneLeaf),
}

impl IntegerLeaf {
    fn new(rules: Rules, sizes: LuSizes) -> crate::Result<IntegerLeaf> {
        Ok(match rules.lanes {
            Some(lanes) => IntegerLeaf::Lanes(LaneLeaf::new(lanes, sizes.order, sizes.workers)?),
            None => IntegerLeaf::Limbs {
                leaf: Leaf::new(rules, sizes.order, BLOCK.min(sizes.order))?,
                diagonals: zeroed(sizes.diagonal_words(&rules))?,
            },
        })
    }
}

/// What moves with two rows that are exchanged in a leaf.
pub(super) struct Exchanges<'a, 'w> {
    /// The row of the first pivot of the leaf.
    pub first: usize,
    pub strip: usize,
    pub leaf: usize,
    pub engine: &'a dyn PlaneEngine,
    pub sums: &'a mut Sums<'w>,
    pub rows: &'a mut [usize],
    pub strips: &'a mut [Strip<'w>],
}

impl Exchanges<'_, '_> {
    /// Exchanges two rows, counted from the first pivot.
    pub fn run(&mut self, one: usize, other: usize) {
        if one == other {
            return;
        }
        let (one, other) = (self.first + one, self.first + other);
        self.rows.swap(one, other);
        let behind = self.leaf + 1..self.sums.blocks;
        self.sums.swap_rows([one, other], &behind);
        if self.leaf > 0 {
            let moves = [RowMove { from: one, to: other }, RowMove { from: other, to: one }];
            self.strips[self.strip].move_rows(self.engine, &moves);
        }
    }
}

/// A factorisation under way.
pub(super) struct LuRun<'a, 'w> {
    pub(super) ctx: &'a Context,
    pub(super) a: MatrixView<'a>,
    pub(super) problem: &'a LuProblem,
    pub(super) engine: &'a dyn PlaneEngine,
    pub(super) rules: Rules,
    pub(super) sizes: LuSizes,
    /// The row of the matrix at each place.
    pub(super) rows: Vec<usize>,
    /// Finished columns of `L`.
    pub(super) strips: Vec<Strip<'w>>,
    /// Memory for more of them.
    pub(super) free: &'w mut [u64],
    /// Rows of `U` in the current block of columns.
    pub(super) upper: Strip<'w>,
    pub(super) sums: Sums<'w>,
    /// Taken out while it is worked on.
    leaf: Option<IntegerLeaf>,
    /// The factors, each row where it lies in the matrix.
    pub(super) factors: Matrix,
    pub(super) growth_bits: u32,
    pub(super) workers: Vec<Space<'w>>,
}

/// Factors a matrix on planes of `engine`, into another one of the same shape.
///
/// # Errors
/// [`LuStop`].
pub(crate) fn factor(
    ctx: &Context,
    LuOperands { a, memory: factors }: LuOperands<'_>,
    problem: &LuProblem,
    engine: &dyn PlaneEngine,
    rules: Rules,
    sizes: LuSizes,
) -> Stopped<Factors> {
    let LuSizes { order, width, workers } = sizes;
    let mut workspace = ctx.workspace();
    let workspace = &mut *workspace;
    workspace.trim(ctx.memory(), &sizes.needs(engine, &rules));
    workspace.reserve_workers(workers);
    let (limbs, scratch_words) = (engine.magnitude_limbs(), sizes.scratch_words(engine, &rules));
    let workers = worker_spaces(&mut workspace.workers[..workers], limbs, scratch_words)?;
    let operands = workspace.operands.words(sizes.operand_words(engine))?;
    let sums = workspace.products.words(Sums::words(engine, sizes.panels(), sizes.blocks()))?;
    let (upper, free) = Strip::cut(engine, 0..sizes.blocks(), width, operands);
    let mut factoring = LuRun {
        ctx,
        a,
        problem,
        engine,
        rules,
        sizes,
        rows: (0..order).collect(),
        strips: Vec::with_capacity(sizes.strips()),
        free,
        upper,
        sums: Sums::new(engine, sizes.panels(), sizes.blocks(), sums),
        leaf: Some(IntegerLeaf::new(rules, sizes)?),
        factors,
        growth_bits: 0,
        workers,
    };
    ctx.install(|| factoring.run())?;
    let LuRun { rows, factors, growth_bits, .. } = factoring;
    Ok(Factors { entries: in_places(factors, &rows)?, rows, growth_bits })
}

/// The rows of a matrix in another order: row `i` of the result is row `rows[i]`.
pub(super) fn in_places(mut matrix: Matrix, rows: &[usize]) -> crate::Result<Matrix> {
    let (order, width) = (matrix.rows(), matrix.limbs_per_element());
    let (cycles, mut first) = (cycles(rows), zeroed::<u64>(width)?);
    let (heads, all) = matrix.parts_mut();
    let columns = heads.chunks_exact_mut(order.max(1)).zip(all.chunks_exact_mut((order * width).max(1)));
    for (heads, limbs) in columns {
        for cycle in &cycles {
            let (start, end) = (cycle[0], cycle[cycle.len() - 1]);
            let head = heads[start];
            first.copy_from_slice(&limbs[start * width..][..width]);
            for (&to, &from) in cycle.iter().zip(&cycle[1..]) {
                heads[to] = heads[from];
                limbs.copy_within(from * width..(from + 1) * width, to * width);
            }
            heads[end] = head;
            limbs[end * width..][..width].copy_from_slice(&first);
        }
    }
    Ok(matrix)
}

/// The cycles of an order of rows: each row takes the place of the one before it, and the first that of the last.
fn cycles(rows: &[usize]) -> Vec<Vec<usize>> {
    let mut seen = vec![false; rows.len()];
    let mut all = Vec::new();
    for start in 0..rows.len() {
        let (mut at, mut cycle) = (start, Vec::new());
        while !std::mem::replace(&mut seen[at], true) {
            cycle.push(at);
            at = rows[at];
        }
        if cycle.len() > 1 {
            all.push(cycle);
        }
    }
    all
}

impl LuRun<'_, '_> {
    fn run(&mut self) -> Stopped<()> {
        let sizes = self.sizes;
        for strip in 0..sizes.strips() {
            let leaves = sizes.leaves(strip);
            self.sums.clear(leaves.len());
            for above in 0..strip {
                self.substitute(strip, above, sizes.leaves(above), leaves.clone())?;
                self.update(above, sizes.leaves(above), leaves.clone(), sizes.first_panel(above + 1)..sizes.panels())?;
            }
            let first = sizes.first_panel(strip);
            let free = std::mem::take(&mut self.free);
            let (own, free) = Strip::cut(self.engine, first..sizes.panels(), sizes.width, free);
            self.free = free;
            self.strips.push(own);
            let before = self.rows.clone();
            self.factor_leaves(strip, leaves)?;
            self.move_rows(strip, &before)?;
        }
        Ok(())
    }

    /// Factors some leaves of a block of columns, all sums of which are there but those among these leaves.
    fn factor_leaves(&mut self, strip: usize, leaves: Range<usize>) -> Stopped<()> {
        if leaves.len() == 1 {
            return self.factor_leaf(strip, leaves.start);
        }
        let middle = leaves.start + leaves.len().div_ceil(2);
        let (left, right) = (leaves.start..middle, middle..leaves.end);
        self.factor_leaves(strip, left.clone())?;
        self.substitute(strip, strip, left.clone(), right.clone())?;
        let below = self.sizes.first_panel(strip) + middle..self.sizes.panels();
        self.update(strip, left, right.clone(), below)?;
        self.factor_leaves(strip, right)
    }

    /// The rows of `U` of some leaves of strip `above`, in some blocks of the current columns.
    fn substitute(&mut self, strip: usize, above: usize, leaves: Range<usize>, blocks: Range<usize>) -> Stopped<()> {
        if leaves.len() == 1 {
            return self.substitute_leaf(strip, above, leaves.start, blocks);
        }
        let middle = leaves.start + leaves.len().div_ceil(2);
        let (top, bottom) = (leaves.start..middle, middle..leaves.end);
        self.substitute(strip, above, top.clone(), blocks.clone())?;
        let first = self.sizes.first_panel(above);
        self.update(above, top, blocks.clone(), first + bottom.start..first + bottom.end)?;
        self.substitute(strip, above, bottom, blocks)
    }

    /// Adds the products of some leaves to the sums.
    fn update(
        &mut self,
        above: usize,
        leaves: Range<usize>,
        blocks: Range<usize>,
        panels: Range<usize>,
    ) -> Stopped<()> {
        let LuSizes { order, width, .. } = self.sizes;
        let end = (leaves.end * BLOCK).min(order - above * width);
        let depth = leaves.start * BLOCK..end;
        let update = StripProduct { left: &self.strips[above], right: &self.upper, depth, panels, blocks };
        let (engine, shape) = (self.engine, self.sums.shape());
        let mut planes = self.sums.planes().enumerate();
        drive::parallel_for(
            &mut self.workers,
            |_| planes.next(),
            |worker, (prime, plane)| {
                shape.add(engine, prime, &update, plane, worker.scratch);
                Ok(())
            },
        )?;
        Ok(())
    }

    /// Finds the pivots of eight columns.
    fn factor_leaf(&mut self, strip: usize, leaf: usize) -> Stopped<()> {
        let (first, order) = (self.sizes.first_panel(strip) + leaf, self.sizes.order);
        self.ctx.report_progress(Progress::new("factor", (first * BLOCK) as u64, order as u64))?;
        let mut own = self.leaf.take().expect("a leaf that is not at work");
        let done = match &mut own {
            IntegerLeaf::Lanes(own) => self.factor_lanes(own, strip, leaf),
            IntegerLeaf::Limbs { leaf: own, diagonals } => self.factor_limbs(own, diagonals, strip, leaf),
        };
        self.leaf = Some(own);
        done
    }

    fn factor_limbs(&mut self, own: &mut Leaf, diagonals: &mut [u64], strip: usize, leaf: usize) -> Stopped<()> {
        let LuSizes { order, workers, .. } = self.sizes;
        let panel = self.sizes.first_panel(strip) + leaf;
        let first = panel * BLOCK;
        let cols = first..(first + BLOCK).min(order);
        own.shrink(order - first, cols.len());
        self.take_sums_off(own, panel, leaf, &cols)?;
        let LuRun { rows, sums, strips, engine, .. } = self;
        let mut exchanges = Exchanges { first, strip, leaf, engine: *engine, sums, rows, strips };
        own.factor(workers, |one, other| exchanges.run(one, other)).map_err(|stop| stop.behind(first))?;
        self.store_leaf(own, diagonals, first, &cols)?;
        self.publish_leaf(own, strip, leaf, cols.len())
    }

    /// Fills the leaf with the entries of the matrix less the sums.
    fn take_sums_off(&mut self, leaf: &mut Leaf, first_panel: usize, block: usize, cols: &Range<usize>) -> Stopped<()> {
        let LuRun { a, problem, engine, rules, sizes, rows, sums, workers, .. } = self;
        let rest = rules.headroom.widths.rest;
        let (first, count) = (first_panel * BLOCK, sizes.order - first_panel * BLOCK);
        let mut all = leaf.rows().collect::<Vec<_>>();
        let mut groups = all.chunks_mut(BLOCK).zip(first_panel..);
        drive::parallel_for(
            workers,
            |_| groups.next(),
            |Space { scratch, integers }, (group, panel)| {
                engine.reconstruct(&sums.residues(panel, block), integers, scratch);
                for (at, place) in rows_of(panel, first, count).enumerate() {
                    for (number, col) in cols.clone().enumerate() {
                        let out = &mut group[at].rests[number * rest..][..rest];
                        let row = rows[first + place];
                        problem.scaled_limbs(a.get(row, col), EntryIndex { row, col }, out);
                        take_off(out, integers, entry_of_block(at, number));
                    }
                }
                Ok(())
            },
        )?;
        Ok(())
    }

    /// Rounds the entries of a leaf into the factors.
    fn store_leaf(&mut self, leaf: &Leaf, diagonals: &mut [u64], first: usize, cols: &Range<usize>) -> Stopped<()> {
        let LuRun { problem, rules, rows, factors, growth_bits, .. } = self;
        for (number, col) in cols.clone().enumerate() {
            for (at, &row) in rows[first..].iter().enumerate() {
                let is_upper = at <= number;
                let entry = if is_upper { leaf.upper(at, number) } else { leaf.lower(at, number) };
                let pivot = (!is_upper).then(|| rows[col]);
                store(problem, entry, FactorPlace { row, col, pivot }, factors)?;
                if is_upper {
                    *growth_bits = (*growth_bits).max(growth_of(rules, entry));
                }
            }
        }
        let words = rules.entry_words();
        let own = &mut diagonals[first / BLOCK * BLOCK_WORDS * words..][..cols.len() * cols.len() * words];
        for (number, entry) in own.chunks_exact_mut(words).enumerate() {
            entry.copy_from_slice(leaf.lower(number / cols.len(), number % cols.len()));
        }
        Ok(())
    }

    /// The residues of the entries of a leaf below its pivots.
    fn publish_leaf(&mut self, own: &Leaf, strip: usize, leaf: usize, cols: usize) -> Stopped<()> {
        let LuRun { engine, rules, sizes, strips, workers, .. } = self;
        let engine = *engine;
        let rows = leaf * BLOCK..leaf * BLOCK + cols;
        let first = (sizes.first_panel(strip) + leaf) * BLOCK;
        let count = sizes.order - first;
        let places = strips[strip].places(engine, &rows);
        let mut places = places.into_iter().zip(sizes.first_panel(strip)..).skip(leaf + 1);
        drive::parallel_for(
            workers,
            |_| places.next(),
            |worker, (mut places, panel)| {
                let lanes = rows_of(panel, first, count);
                let mut space = LeafSpace::cut(rules, worker.scratch);
                let entry = |lane: usize, col: usize| own.lower(lanes.start + lane, col);
                EntryResidues { engine, rules, lanes: lanes.len(), rows: cols }.run(entry, &mut places, &mut space);
                Ok(())
            },
        )?;
        Ok(())
    }

    /// The rows of `U` of one leaf, in some blocks of the current columns.
    fn substitute_leaf(&mut self, strip: usize, above: usize, leaf: usize, blocks: Range<usize>) -> Stopped<()> {
        let own = self.leaf.take().expect("a leaf that is not at work");
        let done = match &own {
            IntegerLeaf::Lanes(own) => self.substitute_lanes(own, strip, above, leaf, blocks),
            IntegerLeaf::Limbs { diagonals, .. } => self.substitute_limbs(diagonals, strip, above, leaf, blocks),
        };
        self.leaf = Some(own);
        done
    }

    fn substitute_limbs(
        &mut self,
        diagonals: &[u64],
        strip: usize,
        above: usize,
        leaf: usize,
        blocks: Range<usize>,
    ) -> Stopped<()> {
        let LuRun { a, problem, engine, rules, sizes, rows, sums, upper, factors, workers, .. } = self;
        let (engine, order, width) = (*engine, sizes.order, factors.limbs_per_element());
        let panel = sizes.first_panel(above) + leaf;
        let own_rows = panel * BLOCK..((panel + 1) * BLOCK).min(order);
        let words = rules.entry_words();
        let lower = &diagonals[panel * BLOCK_WORDS * words..];
        let first_col = strip * sizes.width;
        let work = SubstitutedRows { a: *a, problem, rules, rows: &rows[own_rows.clone()], lower };
        let places = upper.places(engine, &(leaf * BLOCK..leaf * BLOCK + own_rows.len()));
        let (heads, limbs) = factors.parts_mut();
        let columns = heads.chunks_mut(BLOCK * order).zip(limbs.chunks_mut(BLOCK * order * width));
        let columns = columns.enumerate().skip(first_col / BLOCK);
        let mut items = places.into_iter().zip(columns).enumerate().skip(blocks.start).take(blocks.len());
        let stop = std::sync::Mutex::new((None, 0));
        drive::parallel_for(
            workers,
            |_| items.next(),
            |Space { scratch, integers }, (block, (mut places, (panel_of_cols, (heads, limbs))))| {
                let mut space = LeafSpace::cut(rules, scratch);
                engine.reconstruct(&sums.residues(panel, block), integers, space.engine);
                let first = panel_of_cols * BLOCK;
                let cols = first..(first + BLOCK).min(order);
                let done = work.columns(cols.clone(), integers, &mut space, heads, limbs);
                let mut shared = stop.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                match done {
                    Ok(growth) => shared.1 = shared.1.max(growth),
                    Err(LuStop::Failed(error)) => return Err(error),
                    Err(other) => shared.0 = Some(other),
                }
                drop(shared);
                let count = work.rows.len();
                let entries = std::mem::take(&mut space.entries);
                let entry = |lane: usize, row: usize| &entries[(lane * count + row) * words..][..words];
                EntryResidues { engine, rules, lanes: cols.len(), rows: count }.run(entry, &mut places, &mut space);
                Ok(())
            },
        )?;
        let (stopped, growth) = stop.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.growth_bits = self.growth_bits.max(growth);
        stopped.map_or(Ok(()), Err)
    }

    /// Moves the rows of all strips before `strip` to the places that the pivots of its columns have given them.
    fn move_rows(&mut self, strip: usize, before: &[usize]) -> Stopped<()> {
        let mut from = vec![0; before.len()];
        before.iter().enumerate().for_each(|(place, &row)| from[row] = place);
        let moves = self.rows.iter().enumerate().map(|(to, &row)| RowMove { from: from[row], to });
        let moves = moves.filter(|moved| moved.from != moved.to).collect::<Vec<_>>();
        let engine = self.engine;
        let mut strips = self.strips[..strip].iter_mut();
        drive::parallel_for(
            &mut self.workers,
            |_| strips.next(),
            |_, strip| {
                strip.move_rows(engine, &moves);
                Ok(())
            },
        )?;
        Ok(())
    }
}

/// Bits of an entry of the scaled `U` above the point.
pub(super) fn growth_of(rules: &Rules, entry: &[u64]) -> u32 {
    crate::math::float::bit_length(&entry[1..]).saturating_sub(rules.working_bits.into()) as u32
}

/// Takes a reconstructed integer off a number in two's complement.
fn take_off(rest: &mut [u64], integers: &IntegerBlock, entry: usize) {
    let magnitude = integers.magnitude(entry);
    let kept = magnitude.len().min(rest.len() - 1);
    match integers.negative[entry] {
        true => limbs::add_assign(rest, &magnitude[..kept]),
        false => limbs::subtract_assign(rest, &magnitude[..kept]),
    }
}

/// Rounds an entry into the factors.
pub(super) fn store(problem: &LuProblem, entry: &[u64], place: FactorPlace, factors: &mut Matrix) -> crate::Result<()> {
    let (order, precision_bits, width) = (factors.rows(), factors.precision_bits(), factors.limbs_per_element());
    let (heads, limbs) = factors.parts_mut();
    let FactorPlace { row, col, .. } = place;
    let at = row + col * order;
    let exponent = problem.entry_exponent(place);
    let head = round_integer(entry[0] == 1, &entry[1..], exponent, precision_bits, &mut limbs[at * width..][..width]);
    check_exponent(head.exponent(), row, col)?;
    heads[at] = head.0;
    Ok(())
}

/// The residues of at most eight lanes of at most eight entries each.
struct EntryResidues<'a> {
    engine: &'a dyn PlaneEngine,
    rules: &'a Rules,
    lanes: usize,
    /// Entries of a lane.
    rows: usize,
}

impl EntryResidues<'_> {
    /// Writes the residues to `places`, prime by prime; `entry(lane, row)` is a sign and limbs.
    fn run<'e>(&self, entry: impl Fn(usize, usize) -> &'e [u64], places: &mut [&mut [u64]], space: &mut LeafSpace<'_>) {
        let EntryResidues { engine, rules, lanes, rows } = *self;
        let width = rules.headroom.widths.entry;
        if lanes == 0 {
            places.iter_mut().for_each(|place| place.fill(0));
            return;
        }
        for (row, lane) in (0..rows).flat_map(|row| (0..lanes).map(move |lane| (row, lane))) {
            let (at, words) = (row * BLOCK + lane, entry(lane, row));
            let limbs = &mut space.limbs[at * width..][..width];
            limbs.copy_from_slice(&words[1..]);
            // An integer is a significand with the point behind it; its leading zeros do not matter.
            let is_zero = limbs.iter().all(|&limb| limb == 0);
            space.heads[at] = if is_zero { 0 } else { Head::new(words[0] == 1, 64 * width as i64).0 };
        }
        let (heads, limbs) = (&space.heads[..rows * BLOCK], &space.limbs[..rows * BLOCK * width]);
        let view = MatrixView::from_parts((heads, limbs), (BLOCK, rows), BLOCK, 64 * width as u32);
        let view = view.expect("lengths that fit each other").transposed();
        let source = PanelSource { view, columns: 0..lanes, rows: 0..rows, shifts: &SHIFTS };
        engine.to_residues(0..engine.moduli().len(), &source, places, space.engine);
    }
}

/// Rows of `U` that are found by substitution.
struct SubstitutedRows<'a> {
    a: MatrixView<'a>,
    problem: &'a LuProblem,
    rules: &'a Rules,
    /// The rows of the matrix.
    rows: &'a [usize],
    /// The unit triangle of `L` in these rows.
    lower: &'a [u64],
}

impl SubstitutedRows<'_> {
    /// The entries of some columns, into `space.entries` and into these columns of the factors; the largest growth.
    fn columns(
        &self,
        cols: Range<usize>,
        integers: &IntegerBlock,
        space: &mut LeafSpace<'_>,
        heads: &mut [u64],
        limbs: &mut [u64],
    ) -> Stopped<u32> {
        let SubstitutedRows { a, problem, rules, rows, lower } = self;
        let (rest, words, order) = (rules.headroom.widths.rest, rules.entry_words(), problem.order);
        let width = limbs.len() / heads.len();
        let mut growth = 0;
        for (number, col) in cols.enumerate() {
            for (at, &row) in rows.iter().enumerate() {
                let out = &mut space.rests[at * rest..][..rest];
                problem.scaled_limbs(a.get(row, col), EntryIndex { row, col }, out);
                take_off(out, integers, entry_of_block(at, number));
            }
            let own = &mut space.entries[number * rows.len() * words..][..rows.len() * words];
            substitute(rules, lower, &mut space.rests[..rows.len() * rest], own, space.rest)?;
            for (entry, &row) in own.chunks_exact(words).zip(*rows) {
                growth = growth.max(growth_of(rules, entry));
                let at = number * order + row;
                let place = FactorPlace { row, col, pivot: None };
                let (exponent, out) = (problem.entry_exponent(place), &mut limbs[at * width..][..width]);
                let head = round_integer(entry[0] == 1, &entry[1..], exponent, problem.precision_bits, out);
                check_exponent(head.exponent(), row, col)?;
                heads[at] = head.0;
            }
        }
        Ok(growth)
    }
}
