//! `sunzi bench cholesky`, `bench trsm` and `bench solve` on several ranks: the ranks compared with one process with as
//! many threads.
//!
//! In each round, one process on the root runs while the others wait, and then all ranks run; their matrices are stored
//! in tiles, and matrices to factor in the tiles that the factorisation works in. Every result of the ranks is compared
//! with the result of the one process, bit by bit.

use super::operands::Operands;
use super::rank_table::{header, row, total_threads};
use super::sides::hash;
use super::spread::Spread;
use super::{Bench, task};
use crate::baselines::Operation;
use crate::machine::Machine;
use serde::Serialize;
use std::time::Instant;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Reduction, Transport, agree, agreed, barrier};
use sunzi::distributed::{
    DistCholeskyOptions, DistMatrix, RankGrid, Team, TeamOptions, cholesky_into, cholesky_tiles, solve_into, trsm_into,
};
use sunzi::gallery::Size;
use sunzi::{Context, Error, Matrix, Result, TrsmOptions, Uplo};
use sunzi_session::session::{ROOT, Session};

/// Rows of a tile of the factor and of the right-hand sides.
const TILE_ROWS: usize = 64;

/// The report.
#[derive(Serialize)]
struct RankSolvesBench {
    operation: &'static str,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    runs: usize,
    ranks: usize,
    nodes: usize,
    threads: usize,
    /// The comparison with one process that has the threads of all ranks.
    one_process: Spread,
    seconds: Spread,
    /// The time of the ranks divided by the time of one process, of the medians and of the least times.
    ratio: f64,
    ratio_of_least: f64,
    machine: Machine,
}

/// The matrices over the ranks, and the seconds of each run.
struct OnRanks<'a> {
    config: &'a Bench,
    ctx: Context,
    team: Team,
    options: DistCholeskyOptions,
    /// The matrix to factor, or a factor.
    a: DistMatrix,
    /// The factor of the last run.
    factor: DistMatrix,
    /// The right-hand sides and the solution of the last run, for a solve.
    sides: Option<[DistMatrix; 2]>,
    seconds: Vec<f64>,
}

impl<'a> OnRanks<'a> {
    /// The parts of this rank; all ranks make the same operands.
    fn new(session: &dyn Session, config: &'a Bench, world: &dyn Transport, operands: &Operands) -> Result<Self> {
        let options = agreed(world, TeamOptions::from_environment())?;
        let team = Team::new(world.split(0)?, options)?;
        let ctx = agreed(world, session.context(&config.engine)?.build())?;
        let options = DistCholeskyOptions::new().tile_rows(config.tile_rows).accuracy(config.accuracy);
        let place = |matrix: &Matrix, map| {
            let whole = (world.rank() == ROOT).then_some(matrix);
            DistMatrix::scatter(world, ROOT, whole, map, config.precision_bits)
        };
        let (rows, cols, grid) = (config.rows, config.cols, RankGrid::for_ranks(world.size()));
        let map = |cols, triangle| TileMap { rows, cols, tile_size: TILE_ROWS, grid, triangle };
        let (map_of_a, sides) = match config.operation {
            Operation::Cholesky => (cholesky_tiles(&ctx, &team, rows, config.precision_bits, &options)?, None),
            _ => {
                let right = place(operands.second(), map(cols, None))?;
                (map(rows, Some(Uplo::Lower)), Some([right.clone(), right]))
            }
        };
        let a = place(&operands.a, map_of_a)?;
        let factor = agreed(world, DistMatrix::zeros(TileMap { rows: 0, cols: 0, ..map_of_a }, world.rank(), 2))?;
        Ok(OnRanks { config, ctx, team, options, a, factor, sides, seconds: Vec::new() })
    }

    /// One run, whose time counts where it is `timed`; the result on the root. Collective.
    fn run(&mut self, timed: bool) -> Result<Option<Matrix>> {
        let OnRanks { config, ctx, team, options, a, factor, sides, seconds } = self;
        let Bench { operation, precision_bits, accuracy, .. } = **config;
        barrier(team.world())?;
        let start = Instant::now();
        let result = match sides {
            None => {
                cholesky_into(ctx, team, a, precision_bits, options, factor)?;
                &*factor
            }
            Some([right, solution]) if operation == Operation::Trsm => {
                let options = TrsmOptions::new().accuracy(accuracy);
                trsm_into(ctx, team, a, right, precision_bits, &options, solution)?;
                &*solution
            }
            Some([right, solution]) => {
                solve_into(ctx, team, a, right, precision_bits, accuracy, solution)?;
                &*solution
            }
        };
        barrier(team.world())?;
        if timed {
            seconds.push(start.elapsed().as_secs_f64());
        }
        result.gather(team.world(), ROOT)
    }
}

/// Times factorisations or solves on all ranks and reports the results. Collective.
///
/// # Errors
/// [`Error::Verification`] for other bits than those of one process, [`Error::InvalidArgument`], and the errors of the
/// operation.
pub(super) fn run(session: &mut dyn Session, config: &Bench, world: &dyn Transport) -> Result<()> {
    config.engine.refuse_devices(match config.operation {
        Operation::Cholesky => "a factorisation on several ranks",
        _ => "a solve on several ranks",
    })?;
    session.hide_progress();
    let size = Size { rows: config.rows, cols: config.cols, precision_bits: config.precision_bits };
    let operands = agreed(world, Operands::new(config.operation, size))?;
    let mut ranks = OnRanks::new(session, config, world, &operands)?;
    let threads = total_threads(&ranks.ctx, world)?;
    let root = world.rank() == ROOT;
    let builder = session.context(&config.engine)?.threads(threads);
    let alone = agreed(world, builder.build())?;
    let mut task = agreed(world, task(config, &operands))?;
    let (mut one_process, mut right) = (Vec::new(), true);
    for round in 0..=config.runs {
        let start = Instant::now();
        let done = if root { task.run(&alone).map(drop) } else { Ok(()) };
        let seconds = start.elapsed().as_secs_f64();
        agree(world, done)?;
        let warm = round > 0;
        if warm {
            one_process.push(seconds);
        }
        let solution = ranks.run(warm)?;
        right &= solution.is_none_or(|solution| hash(&solution) == hash(task.result()));
    }
    let said = if root { say(session, &ranks, &one_process, threads) } else { Ok(()) };
    ranks.team.close()?;
    agree(world, said)?;
    let mut wrong = [u64::from(!right)];
    world.all_reduce(Reduction::Max, &mut wrong)?;
    if wrong[0] == 0 {
        Ok(())
    } else {
        Err(Error::verification("the result on several ranks differs bitwise from that of one process"))
    }
}

/// Reports the figures, on the root.
fn say(session: &mut dyn Session, ranks: &OnRanks<'_>, one_process: &[f64], threads: usize) -> Result<()> {
    let Bench { operation, rows, cols, precision_bits, runs, .. } = *ranks.config;
    let (one_process, seconds) = (Spread::of(one_process), Spread::of(&ranks.seconds));
    let report = RankSolvesBench {
        operation: operation.name(),
        rows,
        cols,
        precision_bits,
        runs,
        ranks: ranks.team.size(),
        nodes: ranks.team.layout().nodes.len(),
        threads,
        one_process,
        seconds,
        ratio: seconds.median / one_process.median,
        ratio_of_least: seconds.min / one_process.min,
        machine: Machine::look(),
    };
    session.finish_report(&report)?;
    let RankSolvesBench { operation, ranks: count, nodes, ratio, ratio_of_least, .. } = &report;
    let sides = if ranks.sides.is_some() { format!(", {cols} right-hand sides") } else { String::new() };
    let lines = [
        format!(
            "{operation} {rows} rows{sides}, {precision_bits} bits, {count} ranks on {nodes} nodes, {threads} threads, \
             {runs} runs"
        ),
        format!("{}  over one process", header()),
        row("one process", &one_process, ""),
        row("ranks", &seconds, &format!("{ratio:.3} (least {ratio_of_least:.3})")),
    ];
    session.say(&lines.join("\n"))
}
