//! A few right-hand sides over ranks. By norms: one substitution, tile row by tile row of the factor. Entry by entry:
//! each rank substitutes for some of the right-hand sides, while the rows of the factor are streamed.
//!
//! By norms all ranks have the unknowns. Each rank adds up the products with its own tiles, as exact integers; the
//! owner of the diagonal tile takes these sums, solves the blocks of 8 rows within it and sends the unknowns to all
//! ranks. Where an unknown makes the common exponent grow, all sums are made again with the unknowns cut to the new
//! exponent, as in one process, so the bits are the same.
//!
//! A step on the diagonal depends on the previous one, so it is done at once, and the sums that it needs from others
//! are sent at once, in messages whose senders wait for no receiver. All other products are added up ahead, while
//! others solve: in each step in which a rank waits for unknowns, an even part of the remaining ones, so that all ranks
//! have work to the end.

use crate::comm::{Incoming, Transport};
use crate::context::{Context, Progress};
use crate::drive;
use crate::error::Result;
use crate::kernels::dots::DIGIT_BITS;
use crate::math::float::{FloatRef, Head, limbs_for, round_integer};
use crate::matrix::{EntryIndex, Matrix};
use crate::ops::distribution::rect::Rect;
use crate::ops::product::block::moved;
use crate::ops::solve::band::scatter;
use crate::ops::solve::dots::{BlockSums, FactorPiece, Scaling, Sweep, Unknowns, bytes, store_columns};
use crate::ops::solve::problem::{SolveBits, SystemShape, TrsmBits};
use crate::ops::solve::ranks::SolveCall;
use crate::ops::solve::ranks::operands::{FactorTiles, LocalSolution};
use crate::ops::solve::ranks::source::{MessageBuffers, StreamSource, broadcast_part, message_bytes};
use crate::ops::solve::ranks::stream::rows_of;
use crate::ops::solve::run::make_room;
use crate::ops::solve::sums::worker_bytes;
use crate::ops::vector::{RightSide, SubstitutionRoom, VectorTriangle};
use crate::plan::{BLOCK, even_share};
use crate::site::Site;
use crate::tile::TileId;
use rug::integer::Order;
use rug::{Float, Integer};
use std::ops::Range;

/// In place of a head: an unknown that is not finite.
const NOT_FINITE: u64 = 1;

/// Bits by which a sum may be longer than its products: any order fits.
const SUM_BITS: u32 = 64;

/// Words of a message that MPI sends immediately. Longer ones, from 4 KiB under Open MPI, need an answer of the
/// receiver first, which may be busy for long.
const PROMPT_WORDS: usize = 448;

/// Ranks up to which the owner of a diagonal tile sends the unknowns to each of them, at about a microsecond each: the
/// ranks that would pass on a broadcast are busy.
const DIRECT_RANKS: usize = 32;

/// Tiles of a row far ahead that are worth a sum: each sum has a fixed cost, about that of half a tile.
const FEW_TILES: usize = 4;

/// The sums of a block of 8 rows over the first `taken` of this rank's tiles, for each right-hand side.
struct Partial {
    taken: usize,
    sums: Vec<BlockSums>,
}

impl Partial {
    fn new(columns: usize) -> Partial {
        Partial { taken: 0, sums: vec![[Integer::ZERO; BLOCK]; columns] }
    }
}

/// One substitution. A step is a row of tiles (forward) or a column of them (backward).
pub(super) struct SubstitutionPass<'a> {
    site: Site<'a>,
    tiles: &'a FactorTiles<'a>,
    scaling: &'a Scaling,
    sweep: Sweep,
    /// For each step this rank's tiles off the diagonal, with the steps that find their unknowns, in their order.
    own: Vec<Vec<(usize, &'a Matrix)>>,
    /// For each step and each of its blocks, in the order in which they are solved.
    partial: Vec<Vec<Partial>>,
    /// Rows for which sums may be made ahead: all sums are lost when the exponent grows, so no more rows than have been
    /// kept since then.
    trusted: usize,
    /// For each right-hand side.
    unknowns: Vec<Unknowns<'a>>,
    /// Words of a sum that travels: its sign and its limbs.
    sum_words: usize,
}

impl<'a> SubstitutionPass<'a> {
    pub fn new(
        site: Site<'a>,
        tiles: &'a FactorTiles<'a>,
        scaling: &'a Scaling,
        sweep: Sweep,
        columns: usize,
    ) -> SubstitutionPass<'a> {
        let (map, count) = (&tiles.map, tiles.map.tile_rows());
        let step_of = |tile: usize| if sweep == Sweep::Forward { tile } else { count - 1 - tile };
        let lists = if sweep == Sweep::Forward { &tiles.rows } else { &tiles.cols };
        let own = (0..count).map(|step| {
            let before = lists[step_of(step)].iter().map(|&(other, tile)| (step_of(other), tile));
            let mut before = before.filter(|(other, _)| *other < step).collect::<Vec<_>>();
            before.sort_by_key(|(other, _)| *other);
            before
        });
        let own = own.collect::<Vec<_>>();
        let blocks = |step: usize| map.row_range(step_of(step)).len().div_ceil(BLOCK);
        let partial = own.iter().enumerate().map(|(step, own)| match own.is_empty() {
            true => Vec::new(),
            false => (0..blocks(step)).map(|_| Partial::new(columns)).collect(),
        });
        let digits = scaling.bits.div_ceil(DIGIT_BITS);
        SubstitutionPass {
            site,
            tiles,
            scaling,
            sweep,
            partial: partial.collect(),
            own,
            trusted: 1,
            unknowns: (0..columns).map(|_| Unknowns::new(scaling, sweep)).collect(),
            sum_words: 1 + limbs_for(2 * digits * DIGIT_BITS + SUM_BITS),
        }
    }

    /// All unknowns, on all ranks; `right(column, row)` is the right side. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], [`crate::Error::Transport`].
    pub fn run(mut self, right: &dyn Fn(usize, usize) -> Float) -> Result<Vec<Vec<Float>>> {
        let count = self.tiles.map.tile_rows();
        let mut told = Ok(());
        // The number of blocks requested at a time; wasted sums are then at most about twice the useful ones.
        let mut ahead = usize::MAX;
        for step in 0..count {
            let blocks = self.blocks(step);
            let mut next = 0;
            while next < blocks {
                let end = blocks.min(next.saturating_add(ahead));
                let (solved, grown) = self.round(step, next..end, right)?;
                next += solved;
                ahead = if grown { solved } else { ahead.saturating_mul(2) };
                if grown {
                    self.invalidate();
                }
            }
            self.trusted += 1;
            self.partial[step] = Vec::new();
            let progress = Progress::new("solve", step as u64 + 1, count as u64);
            told = told.and_then(|()| self.site.ctx.report_progress(progress));
        }
        let told = self.site.agree(told);
        self.site.world().settle()?; // all ranks have what they asked for, also where the caller ends the solve
        told?;
        Ok(self.unknowns.into_iter().map(Unknowns::into_values).collect())
    }

    /// The row and column of tiles that a step solves for.
    fn tile(&self, step: usize) -> usize {
        if self.sweep == Sweep::Forward { step } else { self.tiles.map.tile_rows() - 1 - step }
    }

    /// Blocks of 8 rows of a step.
    fn blocks(&self, step: usize) -> usize {
        self.tiles.map.row_range(self.tile(step)).len().div_ceil(BLOCK)
    }

    /// The rows of block `block` of a step.
    fn block_rows(&self, step: usize, block: usize) -> Range<usize> {
        let rows = self.tiles.map.row_range(self.tile(step));
        let at = if self.sweep == Sweep::Forward { block } else { self.blocks(step) - 1 - block };
        rows.start + at * BLOCK..(rows.start + (at + 1) * BLOCK).min(rows.end)
    }

    /// The tile that multiplies the unknowns of step `known` in step `step`.
    fn place(&self, step: usize, known: usize) -> TileId {
        let (row, col) = (self.tile(step), self.tile(known));
        if self.sweep == Sweep::Forward { TileId { row, col } } else { TileId { row: col, col: row } }
    }

    fn owner(&self, step: usize, known: usize) -> usize {
        self.tiles.map.owner(self.place(step, known))
    }

    fn piece(&self, id: TileId, tile: &'a Matrix) -> FactorPiece<'a> {
        let size = self.tiles.map.tile_size;
        FactorPiece { view: tile.view(), first_row: id.row * size, first_col: id.col * size }
    }

    /// Solves some blocks of a step; returns their number, and whether the common exponent of some right side has
    /// grown. If so, the last of them made it grow, unless no sums were used.
    fn round(
        &mut self,
        step: usize,
        blocks: Range<usize>,
        right: &dyn Fn(usize, usize) -> Float,
    ) -> Result<(usize, bool)> {
        let owner = self.owner(step, step);
        self.advance(step, blocks.clone(), step);
        let sums = self.collect(step, blocks.clone(), owner)?;
        let mut answer = vec![0; 1 + blocks.len() * BLOCK * self.unknowns.len() * self.value_words()];
        if self.site.world().rank() == owner {
            let (solved, grown) = self.solve_blocks(step, blocks.clone(), sums, right);
            self.write_answer(step, blocks.start..blocks.start + solved, &mut answer);
            self.tell(owner, &mut answer)?;
            return Ok((solved, grown));
        }
        if blocks.len() == self.blocks(step) {
            self.look_ahead(step);
        }
        self.tell(owner, &mut answer)?;
        let solved = answer[0] as usize;
        Ok((solved, self.read_answer(step, blocks.start..blocks.start + solved, &answer)))
    }

    /// Gives all ranks the words of `owner`.
    fn tell(&self, owner: usize, words: &mut [u64]) -> Result<()> {
        let (rank, ranks) = (self.site.world().rank(), self.site.world().size());
        if ranks > DIRECT_RANKS {
            return self.site.world().broadcast(owner, words);
        }
        if rank == owner {
            return (0..ranks).filter(|&to| to != owner).try_for_each(|to| post(self.site.world(), to, words));
        }
        receive(self.site.world(), owner, words)
    }

    /// Adds to the sums of some blocks of a step the products with the tiles that wait, of those whose unknowns are
    /// found before step `known`.
    fn advance(&mut self, step: usize, blocks: Range<usize>, known: usize) {
        let ready = self.ready(step, known);
        let mut partial = std::mem::take(&mut self.partial[step]);
        if ready > 0 {
            let waiting = partial.iter_mut().enumerate().take(blocks.end).skip(blocks.start);
            let mut waiting = waiting.filter(|(_, partial)| partial.taken < ready);
            let mut locals = vec![(); self.site.ctx.threads().min(blocks.len()).max(1)];
            let work = |(): &mut (), (block, partial): (usize, &mut Partial)| {
                self.add_tiles(step, block, partial.taken..ready, &mut partial.sums);
                partial.taken = ready;
                Ok(())
            };
            self.site
                .ctx
                .install(|| drive::parallel_for(&mut locals, |()| waiting.next(), work))
                .expect("the work cannot fail");
        }
        self.partial[step] = partial;
    }

    /// This rank's tiles in a step whose unknowns are found before step `known`.
    fn ready(&self, step: usize, known: usize) -> usize {
        self.own[step].partition_point(|(other, _)| *other < known)
    }

    /// The number of ready tiles whose products are not added yet, in a step of which no block is solved.
    fn waiting(&self, step: usize, known: usize) -> usize {
        self.partial[step].first().map_or(0, |partial| self.ready(step, known) - partial.taken)
    }

    /// Adds the products of a block with some of this rank's tiles in its step, and the unknowns of their steps.
    fn add_tiles(&self, step: usize, block: usize, tiles: Range<usize>, sums: &mut [BlockSums]) {
        let rows = self.block_rows(step, block);
        let tiles = &self.own[step][tiles];
        let pieces = tiles.iter().map(|&(known, tile)| self.piece(self.place(step, known), tile)).collect::<Vec<_>>();
        for (unknowns, sums) in self.unknowns.iter().zip(sums) {
            unknowns.add_sums(self.site.ctx.kernel(), &rows, &pieces, sums);
        }
    }

    /// While another rank solves `step`: adds up sums that later steps will need, the next ones first. The remaining
    /// sums of this rank are spread evenly over the steps in which it waits.
    fn look_ahead(&mut self, step: usize) {
        let (count, rank) = (self.own.len(), self.site.world().rank());
        let turns = (step..count).filter(|&at| self.owner(at, at) != rank).count();
        let left = (step + 1..count).map(|next| self.waiting(next, next)).sum::<usize>();
        let mut wanted = left.div_ceil(turns.max(1));
        for next in (step + 1..count).take(self.trusted) {
            let waiting = self.waiting(next, step);
            if waiting > 0 && (next == step + 1 || waiting >= FEW_TILES) {
                self.advance(next, 0..self.blocks(next), step);
                wanted = wanted.saturating_sub(waiting);
            }
            if wanted == 0 {
                break;
            }
        }
    }

    /// All sums were made with unknowns that are cut anew.
    fn invalidate(&mut self) {
        self.trusted = 1;
        for partial in self.partial.iter_mut().flatten() {
            *partial = Partial::new(self.unknowns.len());
        }
    }

    /// The sums of some blocks over all ranks' tiles, on the owner of the diagonal tile: block by block, in each for
    /// one right side after the other; nothing on the others.
    fn collect(&mut self, step: usize, blocks: Range<usize>, owner: usize) -> Result<Vec<BlockSums>> {
        let (rank, columns) = (self.site.world().rank(), self.unknowns.len());
        let own = self.partial[step].get(blocks.clone()).into_iter().flatten();
        let mut sums = own.flat_map(|partial| partial.sums.iter().cloned()).collect::<Vec<_>>();
        let count = blocks.len() * columns;
        let mut others = (0..step).map(|known| self.owner(step, known)).filter(|&of| of != owner).collect::<Vec<_>>();
        others.sort_unstable();
        others.dedup();
        if rank == owner {
            sums.resize(count, [Integer::ZERO; BLOCK]);
            let mut message = vec![0; count * BLOCK * self.sum_words];
            for &from in &others {
                receive(self.site.world(), from, &mut message)?;
                for (sum, words) in sums.as_flattened_mut().iter_mut().zip(message.chunks_exact(self.sum_words)) {
                    let size = Integer::from_digits(&words[1..], Order::Lsf);
                    if words[0] == 1 { *sum -= size } else { *sum += size }
                }
            }
            return Ok(sums);
        }
        if others.contains(&rank) {
            let mut words = vec![0; count * BLOCK * self.sum_words];
            for (sum, words) in sums.as_flattened().iter().zip(words.chunks_exact_mut(self.sum_words)) {
                let limbs = sum.as_limbs();
                words[0] = u64::from(*sum < 0);
                words[1..1 + limbs.len()].copy_from_slice(limbs);
            }
            post(self.site.world(), owner, &words)?;
        }
        Ok(Vec::new())
    }

    /// The owner's part of a step: the blocks one after the other, until the sums of the next one are no longer right.
    fn solve_blocks(
        &mut self,
        step: usize,
        blocks: Range<usize>,
        mut sums: Vec<BlockSums>,
        right: &dyn Fn(usize, usize) -> Float,
    ) -> (usize, bool) {
        let tile = self.tiles.diagonal(self.tile(step)).expect("the owner of the diagonal tile has it");
        let (piece, columns) = (self.piece(self.place(step, step), tile), self.unknowns.len());
        let mut grown = false;
        for (at, sums) in sums.chunks_mut(columns).enumerate() {
            let rows = self.block_rows(step, blocks.start + at);
            for (column, (unknowns, sums)) in self.unknowns.iter_mut().zip(sums).enumerate() {
                let right = rows.clone().map(|row| right(column, row)).collect::<Vec<_>>();
                grown |= unknowns.solve_rows(self.site.ctx.kernel(), &piece, &rows, &right, sums);
            }
            if grown && step > 0 {
                return (at + 1, grown);
            }
        }
        (blocks.len(), grown)
    }

    /// Words of an unknown that travels.
    fn value_words(&self) -> usize {
        1 + limbs_for(self.scaling.bits)
    }

    /// The rows of some blocks and the right-hand sides, in the order in which the unknowns travel.
    fn answer_places(&self, step: usize, blocks: Range<usize>) -> Vec<(usize, usize)> {
        let rows = blocks.flat_map(|block| self.block_rows(step, block));
        rows.flat_map(|row| (0..self.unknowns.len()).map(move |column| (row, column))).collect()
    }

    fn write_answer(&self, step: usize, blocks: Range<usize>, words: &mut [u64]) {
        words[0] = blocks.len() as u64;
        let places = self.answer_places(step, blocks);
        for ((row, column), words) in places.into_iter().zip(words[1..].chunks_exact_mut(self.value_words())) {
            write_value(&self.unknowns[column].values()[row], self.scaling.bits, words);
        }
    }

    /// Takes the unknowns of some blocks; whether the common exponent of some right side has grown.
    fn read_answer(&mut self, step: usize, blocks: Range<usize>, words: &[u64]) -> bool {
        let places = self.answer_places(step, blocks.clone());
        for ((row, column), words) in places.into_iter().zip(words[1..].chunks_exact(self.value_words())) {
            self.unknowns[column].set(row, read_value(words, self.scaling.bits));
        }
        let ends = [blocks.start, blocks.end - 1].map(|block| self.block_rows(step, block));
        let rows = ends[0].start.min(ends[1].start)..ends[0].end.max(ends[1].end);
        self.unknowns.iter_mut().fold(false, |grown, unknowns| unknowns.commit(rows.clone()) | grown)
    }
}

/// Sends words in messages of at most [`PROMPT_WORDS`], without waiting.
fn post(world: &dyn Transport, to: usize, words: &[u64]) -> Result<()> {
    words.chunks(PROMPT_WORDS).try_for_each(|words| world.post(to, words))
}

/// Receives words that come in messages of at most [`PROMPT_WORDS`].
fn receive(world: &dyn Transport, from: usize, words: &mut [u64]) -> Result<()> {
    let pieces = words.chunks_mut(PROMPT_WORDS).map(|words| Incoming { from, words });
    world.exchange(&[], &mut pieces.collect::<Vec<_>>())
}

/// A number as its head and its limbs.
fn write_value(value: &Float, bits: u32, words: &mut [u64]) {
    match value.to_integer_exp() {
        Some((integer, exponent)) => {
            words[0] = round_integer(integer < 0, integer.as_limbs(), exponent.into(), bits, &mut words[1..]).0;
        }
        None => words[0] = NOT_FINITE,
    }
}

/// The number that [`write_value`] wrote.
fn read_value(words: &[u64], bits: u32) -> Float {
    match words[0] {
        NOT_FINITE => Float::with_val(bits, rug::float::Special::Nan),
        head => FloatRef { head: Head(head), limbs: &words[1..] }.to_float(bits),
    }
}

/// Bytes of a rank that has all right-hand sides, of `right_bits` bits, and their unknowns.
pub(super) fn vectors_bytes(ctx: &Context, shape: SystemShape, right_bits: u32, precision_bits: u32) -> u64 {
    // Each right side has its unknowns at the same time, and sums that are twice as long.
    3 * bytes(ctx, shape, precision_bits) + shape.right_bytes(right_bits)
}

/// The largest number of rows of a piece: more would only take memory.
const PIECE_ROWS: usize = 64;

/// Rows of a piece.
fn sum_rows(order: usize, factor_bits: u32) -> usize {
    rows_of(order, factor_bits).min(PIECE_ROWS).min(order).max(1)
}

/// The sizes that the memory of a call depends on.
#[derive(Clone, Copy)]
pub(super) struct SumSizes {
    pub shape: SystemShape,
    pub working_bits: u32,
    pub bits: TrsmBits,
    pub ranks: usize,
}

impl SumSizes {
    /// Bytes of a rank: the right-hand sides and solutions of all, the memory of a substitution, a piece and a message.
    pub fn bytes(&self) -> u64 {
        let SumSizes { shape, working_bits, bits, ranks } = *self;
        let (order, own) = (shape.order, even_share(shape.columns, ranks, 0).len() as u64);
        let (each, solution) = (SolveBits { precision: bits.solution, working: working_bits }, bits.solution);
        let piece_rows = sum_rows(order, bits.triangle);
        shape.right_bytes(bits.right)
            + shape.right_bytes(solution)
            + own * (worker_bytes(order, each, limbs_for(bits.triangle)) + Matrix::bytes_for(order, 1, solution))
            + Matrix::bytes_for(piece_rows, order, bits.triangle)
            + message_bytes(piece_rows * order, bits.triangle, 1)
    }
}

/// A substitution of one right side.
struct SubstitutionColumn {
    index: usize,
    rooms: [SubstitutionRoom; 2],
    /// The unknowns of the first substitution, and the solution.
    values: [Matrix; 2],
}

impl SubstitutionColumn {
    fn new(index: usize, order: usize, bits: SolveBits) -> Result<SubstitutionColumn> {
        let bits = [bits.working, bits.precision];
        let values = [Matrix::zeros(order, 1, bits[0])?, Matrix::zeros(order, 1, bits[1])?];
        Ok(SubstitutionColumn { index, rooms: bits.map(|bits| SubstitutionRoom::new(order, bits)), values })
    }

    /// Finds the unknowns `rows` of a substitution, for which the rows of the triangle are at hand.
    fn solve(&mut self, triangle: &VectorTriangle<'_>, rows: Range<usize>, right: &Matrix, upper: bool) -> Result<()> {
        let [forward, backward] = &mut self.rooms;
        let [middle, solution] = &mut self.values;
        let order = middle.rows();
        let index = self.index;
        let solved = match upper {
            false => {
                let right = RightSide { b: right.view().block(0..order, index..index + 1)?, alpha: None };
                triangle.substitute_rows(rows, &right, forward, |row, value| middle.set(row, 0, value))
            }
            true => {
                let right = RightSide { b: middle.view(), alpha: None };
                triangle.substitute_rows(rows, &right, backward, |row, value: FloatRef<'_>| solution.set(row, 0, value))
            }
        };
        solved.map_err(|error| moved(error, 0, index))
    }
}

impl SolveCall<'_> {
    /// All right-hand sides by substitution. Collective.
    pub(super) fn solve_vectors(&self, tiles: &FactorTiles<'_>) -> Result<LocalSolution> {
        let SystemShape { order, columns } = self.shape(tiles);
        let site = self.site;
        let needed = vectors_bytes(site.ctx, self.shape(tiles), self.b.precision_bits(), self.precision_bits);
        site.admit(needed)?;
        make_room(site.ctx, site.on_node(needed));
        let scaling = Scaling::new(self.precision_bits, &tiles.row_exponents(site)?);
        let right = self.b.everywhere(site.world())?;
        let pass = |sweep| SubstitutionPass::new(site, tiles, &scaling, sweep, columns);
        let middle = pass(Sweep::Forward).run(&|column, row| right.float(row, column))?;
        let solution = pass(Sweep::Backward).run(&|column, row| middle[column][row].clone())?;
        let whole = Matrix::zeros(order, solution.len(), self.precision_bits)
            .and_then(|mut whole| store_columns(&solution, whole.view_mut()).map(|()| whole));
        let planned_bytes = site.share().memory().total(needed);
        Ok(LocalSolution::on_every_rank(site.world(), site.agreed(whole)?).planned(planned_bytes))
    }

    /// All right-hand sides by sums of digits, as one process finds them. Collective.
    pub(super) fn solve_sums(&self, tiles: &FactorTiles<'_>, working_bits: u32) -> Result<LocalSolution> {
        let (ctx, site) = (self.site.ctx, self.site);
        let world = site.world();
        let shape = self.shape(tiles);
        let SystemShape { order, columns } = shape;
        let bits = SolveBits { working: working_bits, precision: self.precision_bits };
        let sizes = SumSizes { shape, working_bits, bits: self.bits(), ranks: world.size() };
        site.admit(sizes.bytes())?;
        make_room(ctx, site.on_node(sizes.bytes()));
        let right = self.b.everywhere(world)?;
        let of_rank = |rank| even_share(columns, world.size(), rank);
        let own = of_rank(world.rank()).map(|index| SubstitutionColumn::new(index, order, bits));
        let mut own = site.agreed(own.collect::<Result<Vec<_>>>())?;
        let source = StreamSource { team: site.team, factor: self.factor, scale: None };
        for upper in [false, true] {
            self.pass(&source, &mut own, &right, upper)?;
        }
        let mut whole = site.agreed(Matrix::zeros(order, columns, self.precision_bits))?;
        for rank in 0..world.size() {
            for (at, index) in of_rank(rank).enumerate() {
                if rank == world.rank() {
                    scatter(&own[at].values[1], &[index], &[], &mut whole);
                }
                broadcast_part(world, rank, &Rect { rows: 0..order, cols: index..index + 1 }, &mut whole)?;
            }
        }
        Ok(LocalSolution::on_every_rank(world, whole).planned(site.share().memory().total(sizes.bytes())))
    }

    /// One of the two substitutions, on this rank's columns.
    fn pass(
        &self,
        source: &StreamSource<'_>,
        own: &mut [SubstitutionColumn],
        right: &Matrix,
        upper: bool,
    ) -> Result<()> {
        let order = source.order();
        let size = sum_rows(order, self.factor.precision_bits());
        let count = order.div_ceil(size);
        let mut buffers = MessageBuffers::default();
        let mut piece = self.site.agreed(Matrix::zeros(size, order, self.factor.precision_bits()))?;
        for step in 0..count {
            let at = if upper { count - 1 - step } else { step };
            let rows = at * size..((at + 1) * size).min(order);
            let place = match upper {
                false => Rect { rows: rows.clone(), cols: 0..rows.end },
                true => Rect { rows: rows.start..order, cols: rows.clone() },
            };
            source.bring_to_all(&place, &mut piece, &mut buffers)?;
            let view = if upper { piece.transposed() } else { piece.view() };
            let first = EntryIndex { row: rows.start, col: if upper { rows.start } else { 0 } };
            let triangle = VectorTriangle::of_piece(view, first, order, !upper);
            let solved = own.iter_mut().try_for_each(|column| column.solve(&triangle, rows.clone(), right, upper));
            let done = (usize::from(upper) * count + step) as u64 + 1;
            let progress = Progress::new("solve", done, 2 * count as u64);
            self.site.agree(solved.and_then(|()| self.site.ctx.report_progress(progress)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknowns_travel_without_a_change() {
        for bits in [2, 53, 64, 65, 200] {
            let third: Float = Float::with_val(bits, 1) / 3;
            for value in [third.clone(), -third.clone() << 1_000_000, Float::new(bits), third >> 900_000_000] {
                let mut words = vec![7; 1 + limbs_for(bits)];
                write_value(&value, bits, &mut words);
                assert_eq!(read_value(&words, bits), value, "{bits} bits");
            }
            let mut words = vec![7; 1 + limbs_for(bits)];
            write_value(&Float::with_val(bits, rug::float::Special::Infinity), bits, &mut words);
            assert!(!read_value(&words, bits).is_finite());
        }
    }
}
