//! From the call of one rank to its tiles and the report of all: the ranks' requests are gathered, compared, planned as
//! one and run.

use crate::comm::window::NodeWindow;
use crate::comm::{Reduction, Said, Say, Transport, agree, agreed};
use crate::context::{Context, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::matrix::{EntryIndex, MatrixView, Op, Uplo};
use crate::ops::distribution::matrix::{DistMatrix, check_tile_size};
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::clock::{PhaseClock, RankPhase, spread_over_ranks};
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::entrywise::{self, Entrywise, Singles, Terms};
use crate::ops::product::path::{choice_of_kernels, most_modulus_bits};
use crate::ops::product::plan::Plan;
use crate::ops::product::problem::{Accuracy, Bits, IntegerBits, OperandRows, ProductOperand, ProductSize};
use crate::ops::product::ranks::devices::RankProduct;
use crate::ops::product::ranks::plan::{ClusterRequest, plan_cluster};
use crate::ops::product::ranks::{DistOptions, DistOutcome, PlanHook};
use crate::ops::product::report::{Phases, Report, TeamReport};
use crate::ops::product::run::{ProductRun, RunState};
use crate::ops::product::scale::{self, NormPass};
use crate::ops::product::sink::{ResultTarget, in_triangle};
use crate::ops::product::steps::worker_spaces;
use crate::plan::{NodeShape, default_tile_size};
use crate::site::{NodeLayout, Site, Team, Windows};
use crate::tile::{RankGrid, TileMap};
use std::borrow::Cow;

/// A product as one rank calls for it.
pub(crate) struct RankProblem<'a> {
    /// Rows of the operand whose columns are the rows of the result.
    pub left: &'a [MatrixView<'a>],
    /// The same rows of the other operand; `None` for SYRK.
    pub right: Option<&'a [MatrixView<'a>]>,
    /// The triangle that is wanted of the symmetric product of two operands.
    pub half: Option<Uplo>,
    pub precision_bits: u32,
    pub options: &'a DistOptions<'a>,
}

/// The data of all ranks together.
struct SharedRankData {
    /// Contracted rows of each rank.
    rows: Vec<usize>,
    /// Threads of each rank.
    threads: Vec<usize>,
    size: ProductSize,
    /// Whether all ranks would choose the same kernel for the product.
    alike: bool,
    /// Bytes that each node may take.
    node_bytes: Vec<u64>,
    /// Whether some rank of each node has a memory limit.
    limited: Vec<bool>,
    /// Bytes that each rank holds for single entries, taken off what its node may use.
    held_bytes: u64,
}

/// The facts that a rank sends to the others, one word each.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Fact {
    Rows,
    LeftCols,
    RightCols,
    Threads,
    NodeBytes,
    Precision,
    Options,
    Kernel,
    Choice,
    Limited,
    Devices,
}

const FACTS: usize = 11;

/// In place of the number of columns: this rank has no block that shows it.
const UNKNOWN: u64 = u64::MAX;

/// Computes `problem`. Collective.
///
/// # Errors
/// The errors of [`super::syrk`].
pub(crate) fn run(ctx: &Context, team: &Team, problem: &RankProblem<'_>) -> Result<DistOutcome> {
    agree(team.world(), problem.check(team.size()))?;
    let mut clock = PhaseClock::new();
    let mut shared = problem.share(ctx, team)?;
    let ctx = &with_shared_devices(ctx, team.world())?;
    let site = Site { ctx, team };
    let mut exponents = [Vec::new(), Vec::new()];
    for ((exponents, blocks), cols) in
        exponents.iter_mut().zip([Some(problem.left), problem.right]).zip([shared.size.rows, shared.size.cols])
    {
        if let Some(blocks) = blocks {
            exponents.resize(cols, 0);
            clock.time(RankPhase::Scale, || problem.norm_exponents(site, blocks, exponents))?;
        }
    }
    let map = problem.map(team, &shared);
    let addend = problem.addend(team.world(), map)?;
    let epilogue = problem.epilogue(addend.as_deref());
    let bits = problem.bits(site, &shared, &exponents, &epilogue)?;
    let entrywise = problem.entrywise(site, &shared, &exponents)?;
    let bits = bits.with_range(entrywise.range_bits);
    exponents.iter_mut().flatten().for_each(|exponent| *exponent = bits.shift(*exponent));
    let [left_shifts, right_shifts] = exponents;
    let size = shared.size;
    let left = OperandRows { blocks: problem.left, shifts: &left_shifts };
    let right = problem.right.map(|blocks| OperandRows { blocks, shifts: &right_shifts });
    let hooks = problem.options.hooks;
    let product = RankProduct { left, right, size, bits, map, epilogue, hooks };
    shared.hold(team.layout(), entrywise.singles.bytes(&size, problem.precision_bits));
    let outcome = match (&entrywise.singles, ctx.devices().is_empty()) {
        _ if size.is_empty() => without_product(team, map, bits.result, &shared, Some(&epilogue)),
        (Singles::All, _) => without_product(team, map, bits.result, &shared, None),
        (_, true) => run_on_cpus(site, problem, &shared, &product, clock),
        (_, false) => run_on_devices(site, problem, &shared, &product, clock),
    };
    let DistOutcome { mut result, report, spans } = outcome.map_err(|error| shared.restated(error))?;
    let terms = problem.terms(size, left, right);
    let pass = NormPass::of_ranks(site);
    entrywise.singles.finish(&pass, &terms, &epilogue, &mut ResultTarget::Tiles(&mut result))?;
    let (accuracy, range_bits) = (problem.options.accuracy, entrywise.range_bits);
    let report = Report { accuracy, range_bits, single_entries: entrywise.singles.count(&size), ..report };
    Ok(DistOutcome { result, report, spans })
}

/// The rest of a call on ranks without devices. Collective.
fn run_on_cpus(
    site: Site<'_>,
    problem: &RankProblem<'_>,
    shared: &SharedRankData,
    product: &RankProduct<'_>,
    mut clock: PhaseClock,
) -> Result<DistOutcome> {
    let Site { ctx, team } = site;
    let RankProduct { left, right, size, bits, map, epilogue, hooks } = *product;
    let layout = team.layout().clone();
    let (nodes, own_node) = (shared.shapes(&layout), layout.node_of[team.rank()]);
    let planned = plan_cluster(
        ctx,
        &ClusterRequest {
            size,
            bits,
            nodes: &nodes,
            ranks: &layout.nodes,
            map,
            node_bytes: &shared.node_bytes,
            cut: hooks.cut,
            chooses: shared.alike,
        },
        own_node,
    )?;
    if let Some(PlanHook(tell)) = problem.options.on_plan {
        tell(&planned.plan);
    }
    let mut result = tiles(team, shared.make_room(team, planned.plan.planned_bytes), map, bits.result)?;
    let run = ProductRun {
        site,
        shape: &nodes[own_node],
        plan: &planned.run,
        left,
        right,
        source: None,
        // A general product has no triangle to transpose.
        uplo: if right.is_some() { Uplo::Lower } else { problem.options.uplo },
        half: problem.half,
        bits,
        epilogue,
        owners: Some(&map),
        fault: hooks.fault,
    };
    let planned_bytes = planned.plan.planned_bytes;
    run_in_windows(&run, shared.limited[own_node], planned_bytes, &mut clock, &mut ResultTarget::Tiles(&mut result))?;
    let report = make_report(ctx, team, &planned.plan, problem.precision_bits, &clock)?;
    Ok(DistOutcome { result, report, spans: clock.into_spans() })
}

/// The rest of a call on ranks with devices. Collective.
fn run_on_devices(
    site: Site<'_>,
    problem: &RankProblem<'_>,
    shared: &SharedRankData,
    product: &RankProduct<'_>,
    mut clock: PhaseClock,
) -> Result<DistOutcome> {
    let Site { ctx, team } = site;
    let node = team.layout().node_of[team.rank()];
    let sends = shared.rows.iter().map(|&rows| rows > 0).collect::<Vec<_>>();
    let planned = product.plan(site, &sends, shared.node_bytes[node], shared.threads.iter().sum())?;
    let plan = planned.plan.clone();
    if let Some(PlanHook(tell)) = problem.options.on_plan {
        tell(&plan);
    }
    // Devices need no windows.
    let roomy = shared.make_room_without_windows(team, plan.planned_bytes);
    let mut result = tiles(team, roomy, product.map, product.bits.result)?;
    let devices = product.compute(site, &sends, planned, &mut clock, &mut result)?;
    let report = Report { devices, ..make_report(ctx, team, &plan, problem.precision_bits, &clock)? };
    Ok(DistOutcome { result, report, spans: clock.into_spans() })
}

impl SharedRankData {
    /// Subtracts `rank_bytes` for each rank from the bytes that the nodes may take.
    fn hold(&mut self, layout: &NodeLayout, rank_bytes: u64) {
        for (bytes, ranks) in self.node_bytes.iter_mut().zip(&layout.nodes) {
            *bytes = bytes.saturating_sub(rank_bytes * ranks.len() as u64);
        }
        self.held_bytes = rank_bytes * layout.nodes.iter().map(Vec::len).max().unwrap_or(0) as u64;
    }

    /// Makes room on this rank's node for `node_bytes` in addition to those held.
    fn make_room(&self, team: &Team, node_bytes: u64) -> Result<()> {
        let node = team.layout().node_of[team.rank()];
        team.make_room(node_bytes + self.held_bytes, self.limited[node])
    }

    /// Makes room for work that needs no windows: under a limit no window is kept.
    fn make_room_without_windows(&self, team: &Team, node_bytes: u64) -> Result<()> {
        let node = team.layout().node_of[team.rank()];
        let roomy = self.make_room(team, node_bytes);
        roomy.and(if self.limited[node] { team.close_product_windows() } else { Ok(()) })
    }

    /// A refusal in terms of the whole limit.
    fn restated(&self, error: Error) -> Error {
        let whole = |bytes: u64| bytes.saturating_add(self.held_bytes);
        match error {
            Error::MemoryLimit { limit_bytes, minimum_bytes } => {
                Error::MemoryLimit { limit_bytes: whole(limit_bytes), minimum_bytes: whole(minimum_bytes) }
            }
            other => other,
        }
    }

    /// The ranks of each node.
    fn shapes(&self, layout: &NodeLayout) -> Vec<NodeShape> {
        let shape = |ranks: &Vec<usize>| NodeShape {
            rows: ranks.iter().map(|&rank| self.rows[rank]).collect(),
            threads: ranks.iter().map(|&rank| self.threads[rank]).collect(),
        };
        layout.nodes.iter().map(shape).collect()
    }
}

/// This rank's tiles of the result, where all ranks have room for theirs. Collective.
fn tiles(team: &Team, roomy: Result<()>, map: TileMap, precision_bits: u32) -> Result<DistMatrix> {
    agree(team.world(), team.in_world(roomy))?;
    agreed(team.world(), DistMatrix::zeros(map, team.rank(), precision_bits))
}

/// Opens windows, takes scratch, runs; `limited` where a rank of the node has a memory limit. Collective.
fn run_in_windows(
    run: &ProductRun<'_>,
    limited: bool,
    planned_bytes: u64,
    clock: &mut PhaseClock,
    result: &mut ResultTarget<'_>,
) -> Result<()> {
    let (words, Site { ctx, team }) = (&run.plan.words, run.site);
    let take = || team.take_windows(words.operands, words.products, limited);
    let (opened, mut windows) = match clock.time(RankPhase::Windows, take) {
        Ok(windows) => (Ok(()), Some(windows)),
        Err(error) => (Err(error), None),
    };
    let mut workspace = ctx.workspace();
    let needs = WorkspaceNeeds {
        operand_bytes: 0,
        product_bytes: 0,
        workers: ctx.threads(),
        worker_bytes: words.scratch as u64 * 8 + words.call_bytes,
        // The memory that other ranks of the node keep is unknown here: under a common limit no rank keeps any.
        planned_bytes: if run.shape.ranks() > 1 { u64::MAX } else { planned_bytes },
    };
    workspace.trim(ctx.memory(), &needs);
    workspace.reserve_workers(ctx.threads());
    let limbs = run.plan.engine.magnitude_limbs();
    let spaces = worker_spaces(&mut workspace.workers[..ctx.threads()], limbs, words.scratch);
    let outcome = opened.and(match &spaces {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::OutOfMemory { bytes: needs.worker_bytes * ctx.threads() as u64 }),
    });
    let all = run.site.agree(team.in_world(outcome));
    let done = match (all, &mut windows, spaces) {
        (Ok(()), Some(Windows { operands, products }), Ok(spaces)) => {
            let (operands, products) = (NodeWindow::Shared(operands), NodeWindow::Shared(products));
            run.run(&mut RunState { operands, products, spaces, clock }, result).map(drop)
        }
        (all, ..) => all,
    };
    if let Some(windows) = windows {
        team.keep_windows(windows);
    }
    done
}

impl RankProblem<'_> {
    fn operation(&self) -> &'static str {
        match (self.right, self.half) {
            (None, _) => "syrk",
            (Some(_), None) => "gemm",
            (Some(_), Some(_)) => "weighted_gram",
        }
    }

    /// The checks that this rank can make on its arguments without the others.
    fn check(&self, ranks: usize) -> Result<()> {
        let same_cols = |blocks: &[MatrixView<'_>]| {
            let first = blocks.first().map_or(0, MatrixView::cols);
            match blocks.iter().position(|block| block.cols() != first) {
                Some(index) => Err(mismatch(self.operation(), &blocks[0], &blocks[index])),
                None => Ok(()),
            }
        };
        same_cols(self.left)?;
        if let Some(right) = self.right {
            same_cols(right)?;
            if right.len() != self.left.len() {
                let message = format!("there are {} blocks of A, but {} blocks of B", self.left.len(), right.len());
                return Err(Error::InvalidArgument(message));
            }
            if let Some((a, b)) = self.left.iter().zip(right).find(|(a, b)| a.rows() != b.rows()) {
                return Err(mismatch(self.operation(), a, b));
            }
        }
        self.options.grid.map_or(Ok(()), |grid| grid.check_ranks(ranks))?;
        self.options.tile_size.map_or(Ok(()), check_tile_size)?;
        self.epilogue(None).check_scalars(self.options.exact_integers)
    }

    /// Gathers the data of all ranks, and compares the values that must agree. Collective.
    fn share(&self, ctx: &Context, team: &Team) -> Result<SharedRankData> {
        let cols = |blocks: &[MatrixView<'_>]| blocks.first().map_or(UNKNOWN, |block| block.cols() as u64);
        let mut own = [0; FACTS];
        let mut tell = |fact: Fact, word: u64| own[fact as usize] = word;
        tell(Fact::Rows, self.left.iter().map(|block| block.rows() as u64).sum());
        tell(Fact::LeftCols, cols(self.left));
        tell(Fact::RightCols, self.right.map_or(UNKNOWN, cols));
        tell(Fact::Threads, ctx.threads() as u64);
        tell(Fact::NodeBytes, team.node_bytes(ctx.memory_bytes())?);
        tell(Fact::Precision, self.precision_bits.into());
        tell(Fact::Options, self.options_hash(ctx));
        tell(Fact::Kernel, hash(ctx.kernel().name()));
        tell(Fact::Choice, hash(&choice_of_kernels(ctx)));
        tell(Fact::Limited, ctx.memory_bytes().is_some().into());
        tell(Fact::Devices, (!ctx.devices().is_empty()).into());
        let mut all = vec![0; FACTS * team.size()];
        team.world().all_gather(&own, &mut all)?;
        let facts = all.chunks_exact(FACTS).collect::<Vec<_>>();
        let column = |fact: Fact| facts.iter().map(move |words| words[fact as usize]);
        let agreed = [(Fact::Precision, "precisions"), (Fact::Options, "options"), (Fact::Kernel, "kernels")];
        for (fact, what) in agreed.into_iter().chain([(Fact::Devices, "choices of devices (0 without, 1 with)")]) {
            same(column(fact), what)?;
        }
        let cols = [(Fact::LeftCols, "numbers of columns"), (Fact::RightCols, "numbers of columns of B")];
        let [left, right] =
            cols.map(|(fact, what)| same(column(fact), what).map(|cols| cols.map_or(0, |cols| cols as usize)));
        let left = left?;
        let nodes = &team.layout().nodes;
        let limited = |&rank: &usize| facts[rank][Fact::Limited as usize] != 0;
        let rows = column(Fact::Rows).map(|word| word as usize).collect::<Vec<_>>();
        let (contracted, triangle) = (rows.iter().sum(), self.right.is_none());
        let cols = if triangle { left } else { right? };
        Ok(SharedRankData {
            size: ProductSize { contracted, rows: left, cols, triangle, half: self.half },
            rows,
            threads: column(Fact::Threads).map(|word| word as usize).collect(),
            alike: same(column(Fact::Choice), "kernels of large products").is_ok(),
            node_bytes: nodes.iter().map(|ranks| facts[ranks[0]][Fact::NodeBytes as usize]).collect(),
            limited: nodes.iter().map(|ranks| ranks.iter().any(limited)).collect(),
            held_bytes: 0,
        })
    }

    fn options_hash(&self, ctx: &Context) -> u64 {
        hash(&(self.operation(), self.options, ctx.self_check(), ctx.freivalds()))
    }

    /// The norm exponents of one operand; in exact arithmetic its entries must be integers. Collective.
    fn norm_exponents(&self, site: Site<'_>, blocks: &[MatrixView<'_>], exponents: &mut [i64]) -> Result<()> {
        if self.options.exact_integers {
            let mut operands = blocks.iter().map(|&block| ProductOperand::new(block, Op::NoTranspose));
            let check = || operands.try_for_each(|operand| scale::check_operand_integers(site.ctx.threads(), &operand));
            site.agree(site.ctx.install(check))?;
        }
        scale::norm_exponents(&NormPass::of_ranks(site), blocks, false, exponents)
    }

    /// `alpha * product + beta * addend`.
    fn epilogue<'c>(&'c self, addend: Option<&'c DistMatrix>) -> Epilogue<'c> {
        Epilogue::new(self.options.alpha, self.options.beta, addend.map(AddedMatrix::Tiles))
    }

    /// The matrix to add, in the tiles of the result. Collective.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::NotInteger`], those of [`DistMatrix::redistribute`].
    fn addend(&self, world: &dyn Transport, map: TileMap) -> Result<Option<Cow<'_, DistMatrix>>> {
        let Some(matrix) = self.options.accumulate else { return Ok(None) };
        let checked = self.epilogue(Some(matrix)).check(map.rows, map.cols, self.options.exact_integers);
        agree(world, checked)?;
        matrix.check_group(world)?;
        if *matrix.map() == map {
            return Ok(Some(Cow::Borrowed(matrix)));
        }
        Ok(Some(Cow::Owned(matrix.redistribute(world, map)?)))
    }

    /// The bit counts, from the exponents of all columns. Collective.
    fn bits(
        &self,
        site: Site<'_>,
        shared: &SharedRankData,
        exponents: &[Vec<i64>; 2],
        epilogue: &Epilogue<'_>,
    ) -> Result<Bits> {
        let (size, most) = (shared.size, most_modulus_bits(site.ctx, shared.alike));
        size.check(most, self.precision_bits)?;
        if !self.options.exact_integers {
            return Ok(Bits::scaled(self.precision_bits, size.contracted));
        }
        let largest = |exponents: &[i64]| exponents.iter().copied().max().unwrap_or(0).max(0);
        let left = largest(&exponents[0]);
        let right = if self.right.is_some() { largest(&exponents[1]) } else { left };
        let mut addend = [epilogue.addend_bits()];
        site.world().all_reduce(Reduction::Max, &mut addend)?;
        let bits = IntegerBits { left, right, addend: addend[0] };
        Bits::integers(most, bits, epilogue, self.precision_bits)
    }

    /// The terms of all entries, as far as they are here.
    fn terms<'t>(&self, size: ProductSize, left: OperandRows<'t>, right: Option<OperandRows<'t>>) -> Terms<'t> {
        Terms { size, uplo: self.options.uplo, precision_bits: self.precision_bits, left, right }
    }

    /// The needs of the accuracy, from the norm exponents of all columns. Collective.
    fn entrywise(&self, site: Site<'_>, shared: &SharedRankData, exponents: &[Vec<i64>; 2]) -> Result<Entrywise> {
        let (size, team) = (shared.size, site.team);
        if self.options.accuracy == Accuracy::Norm || self.options.exact_integers || size.is_empty() {
            return Ok(Entrywise::default());
        }
        if entrywise::takes_all(&size, self.precision_bits) {
            return Ok(Entrywise { range_bits: 0, singles: Singles::All });
        }
        let ranks_here = &team.layout().nodes[team.layout().node_of[team.rank()]];
        let bytes = |&rank: &usize| entrywise::choice_bytes(&ProductSize { contracted: shared.rows[rank], ..size });
        site.agree(site.ctx.admit(ranks_here.iter().map(bytes).sum()))?;
        let left = OperandRows { blocks: self.left, shifts: &exponents[0] };
        let right = self.right.map(|blocks| OperandRows { blocks, shifts: &exponents[1] });
        entrywise::choose(&NormPass::of_ranks(site), &self.terms(size, left, right), None)
    }

    /// Tiles of the result and their owners.
    fn map(&self, team: &Team, shared: &SharedRankData) -> TileMap {
        let ProductSize { rows, cols, .. } = shared.size;
        let grid = self.options.grid.unwrap_or_else(|| RankGrid::for_ranks(team.size()));
        let tile_size = self.options.tile_size.unwrap_or_else(|| default_tile_size(rows.max(cols), grid));
        let triangle = if self.right.is_none() { Some(self.options.uplo) } else { self.half };
        TileMap { rows, cols, tile_size, grid, triangle }
    }
}

/// The common value of all ranks that have one.
fn same(words: impl Iterator<Item = u64>, what: &str) -> Result<Option<u64>> {
    let known = words.enumerate().filter(|(_, word)| *word != UNKNOWN).collect::<Vec<_>>();
    let Some(&(first, value)) = known.first() else { return Ok(None) };
    match known.iter().find(|(_, word)| *word != value) {
        None => Ok(Some(value)),
        // Only counts are meaningful as numbers.
        Some((other, word)) if value.max(*word) < 1 << 48 => Err(Error::InvalidArgument(format!(
            "ranks have different {what}: {value} on rank {first}, {word} on rank {other}"
        ))),
        Some((other, _)) => Err(Error::InvalidArgument(format!("ranks {first} and {other} have different {what}"))),
    }
}

fn hash(said: &(impl Say + ?Sized)) -> u64 {
    // The top bit keeps hashes apart from counts and from `UNKNOWN`.
    Said::hash(said) >> 1 | 1 << 62
}

fn mismatch(operation: &'static str, left: &MatrixView<'_>, right: &MatrixView<'_>) -> Error {
    Error::ShapeMismatch {
        operation,
        left_rows: left.rows(),
        left_cols: left.cols(),
        right_rows: right.rows(),
        right_cols: right.cols(),
    }
}

/// The result where no product is formed: 0, or `combination` applied to 0. Only this result counts against a limit;
/// kept windows do not. Collective.
///
/// # Errors
/// [`Error::MemoryLimit`] where a node has no room for it.
fn without_product(
    team: &Team,
    map: TileMap,
    precision_bits: u32,
    shared: &SharedRankData,
    epilogue: Option<&Epilogue<'_>>,
) -> Result<DistOutcome> {
    let layout = team.layout();
    let of = |ranks: &[usize]| ranks.iter().map(|&rank| DistMatrix::bytes_for(&map, rank, precision_bits)).sum::<u64>();
    for (ranks, &limit_bytes) in layout.nodes.iter().zip(&shared.node_bytes) {
        let minimum_bytes = of(ranks);
        if minimum_bytes > limit_bytes {
            return Err(Error::MemoryLimit { limit_bytes, minimum_bytes });
        }
    }
    let node = layout.node_of[team.rank()];
    let roomy = shared.make_room_without_windows(team, of(&layout.nodes[node]));
    let mut result = tiles(team, roomy, map, precision_bits)?;
    let report = Report { team: Some(TeamReport::default()), ..Report::default() };
    agree(team.world(), epilogue.map_or(Ok(()), |epilogue| finish_tiles(epilogue, &mut result)))?;
    Ok(DistOutcome { result, report, spans: Vec::new() })
}

/// Fills a rank's tiles where no row is contracted and the product is 0.
fn finish_tiles(epilogue: &Epilogue<'_>, result: &mut DistMatrix) -> Result<()> {
    let (map, precision_bits) = (*result.map(), result.precision_bits());
    for (id, tile) in result.tiles_mut() {
        let (rows, cols, width) = (map.row_range(id.row), map.col_range(id.col), tile.limbs_per_element());
        let (heads, limbs) = tile.parts_mut();
        let mut entries = heads.iter_mut().zip(limbs.chunks_exact_mut(width));
        for (col, row) in cols.flat_map(|col| rows.clone().map(move |row| (col, row))) {
            let (head, limbs) = entries.next().expect("an entry for each place");
            if map.triangle.is_none_or(|uplo| in_triangle(uplo, row, col)) {
                *head = epilogue.finish(ExactEntry::ZERO, EntryIndex { row, col }, precision_bits, limbs)?.0;
            }
        }
    }
    Ok(())
}

/// The report, the same on all ranks. Collective.
fn make_report(ctx: &Context, team: &Team, plan: &Plan, precision_bits: u32, clock: &PhaseClock) -> Result<Report> {
    let mut most = [clock.seconds().to_bits(), team.window_bytes()];
    team.world().all_reduce(Reduction::Max, &mut most)?; // positive doubles are ordered like their bits
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let exchange = [clock.hidden_seconds(), clock.seconds_in(RankPhase::Exchange)].map(nanoseconds);
    let mut sums = [8 * clock.sent_words(), exchange[0], exchange[1]];
    team.world().all_reduce(Reduction::Sum, &mut sums)?;
    let [exchanged_bytes, hidden, whole] = sums;
    let rank_phases = spread_over_ranks(team.world(), &clock.totals())?;
    let team_plan = plan.team.clone().unwrap_or_default();
    Ok(Report {
        seconds: f64::from_bits(most[0]),
        checked: ctx.self_check() || ctx.freivalds(),
        team: Some(TeamReport {
            plan: team_plan,
            rank_phases,
            window: team.window_kind(),
            window_bytes: most[1],
            exchanged_bytes,
            exchange_hidden: hidden as f64 / whole.max(1) as f64,
        }),
        ..Report::new(plan, precision_bits, Phases::longest(&rank_phases))
    })
}
