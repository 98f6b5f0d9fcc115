//! `sunzi bench cholesky --element-type double`: a tiled factorisation on devices beside their plain rate of products.

mod ranks;
mod rate;
mod report;
mod system;

use super::spread::Spread;
use crate::engine::{Engine, limited};
use crate::machine::Machine;
use crate::session::Session;
pub use ranks::{World, run as run_on_ranks};
use report::{Counted, DoubleBenchReport, Moved, describe};
use std::sync::Arc;
use sunzi::advanced::device::{DeviceKind, Traffic};
use sunzi::advanced::runtime::{CholeskyGraph, CountOptions, Eviction, Policy, baseline_bytes, count_moves};
use sunzi::double::{DoubleOptions, DoubleReport, double_cholesky};
use sunzi::{Context, Device, Error, Result, cuda_devices};
pub use system::{System, largest_residual};

/// Residuals above this are wrong: those of a sound factorisation are far below 1.
pub const RESIDUAL_BOUND: f64 = 1.0;

/// Tile rows up to which every choice is counted without running it.
const COUNTED_TILES: usize = 64;

/// A factorisation of doubles on devices.
#[derive(Clone, Debug)]
pub struct BenchDouble {
    /// Rows of the matrix.
    pub rows: usize,
    /// Rows of a tile; `None` for the library's choice.
    pub tile_rows: Option<usize>,
    /// Which task runs next; `None` for the library's choice.
    pub policy: Option<Policy>,
    /// Which tile leaves a full device; `None` for the library's choice.
    pub victim: Option<Eviction>,
    /// Timed runs.
    pub runs: usize,
    /// Whether devices were asked for.
    pub devices_given: bool,
    /// Threads and memory of the host, and the devices: at least one.
    pub engine: Engine,
}

/// Times a factorisation of doubles in this process and says what was found.
///
/// # Errors
/// [`Error::Verification`] for a wrong factor, and those of the factorisation.
pub fn run(session: &mut dyn Session, config: &BenchDouble) -> Result<()> {
    session.hide_progress();
    let (builder, restate) = limited(session.context(&config.engine)?, config.engine.budget());
    let ctx = builder.build()?;
    let devices = &ctx.devices().devices[..];
    let system = System::new(&ctx, config.rows)?;
    let mut work = system.a.clone();
    let chosen = config.victim.unwrap_or_default();
    let others = Eviction::ALL.into_iter().filter(|&victim| victim != chosen);
    let mut moved = Vec::new();
    for victim in others {
        let report = once(&ctx, devices, config, victim, (&system, &mut work)).map_err(&restate)?;
        moved.push(Moved::of(&report));
    }
    let (mut seconds, mut products, mut factor) = (Vec::new(), Vec::new(), None::<DoubleReport>);
    let mut residual = largest_residual(&system, &work);
    for _ in 0..config.runs {
        let rates = devices.iter().map(rate::products).collect::<Result<Vec<_>>>()?;
        products.extend(rates.into_iter().collect::<Option<Vec<_>>>().map(|rates| rates.iter().sum::<f64>()));
        let report = once(&ctx, devices, config, chosen, (&system, &mut work)).map_err(&restate)?;
        seconds.push(report.factor_seconds);
        residual = residual.max(largest_residual(&system, &work));
        if factor.as_ref().is_none_or(|best| report.factor_seconds < best.factor_seconds) {
            factor = Some(report);
        }
    }
    let factor = factor.expect("there is a run");
    moved.insert(0, Moved::of(&factor));
    let report = summarise(config, factor, Measured { seconds, products, moved, residual });
    session.finish_report(&report)?;
    session.say(&describe(&report))?;
    match report.checked {
        true => Ok(()),
        false => Err(Error::Verification(format!("the residual is {residual:.3} times rows eps |A|"))),
    }
}

/// One factorisation of a fresh copy.
fn once(
    ctx: &Context,
    devices: &[Arc<dyn Device>],
    config: &BenchDouble,
    victim: Eviction,
    (system, work): (&System, &mut Vec<f64>),
) -> Result<DoubleReport> {
    work.copy_from_slice(&system.a);
    let options = DoubleOptions {
        tile_rows: config.tile_rows,
        policy: config.policy.unwrap_or_default(),
        eviction: victim,
        device_bytes: config.engine.device_memory_bytes,
        ..DoubleOptions::default()
    };
    double_cholesky(ctx, devices, config.rows, work, &options)
}

/// What was measured beside the report of the best run.
struct Measured {
    seconds: Vec<f64>,
    products: Vec<f64>,
    moved: Vec<Moved>,
    residual: f64,
}

fn summarise(config: &BenchDouble, factor: DoubleReport, measured: Measured) -> DoubleBenchReport {
    let seconds = Spread::of(&measured.seconds);
    let flops = (config.rows as f64).powi(3) / 3.0 * 1e-9;
    let gflops = flops / seconds.median.max(1e-9);
    let products = (!measured.products.is_empty()).then(|| Spread::of(&measured.products));
    let kinds = factor.devices.iter().map(|share| share.device.kind).collect::<Vec<_>>();
    let reason = match cuda_devices() {
        _ if kinds.contains(&DeviceKind::Cuda) => None,
        Ok(_) => Some("cards: there are some, but none was chosen".to_string()),
        Err(error) => Some(format!("cards: {error}")),
    };
    DoubleBenchReport {
        operation: "cholesky",
        element: "double",
        rows: config.rows,
        runs: config.runs,
        seconds,
        gflops,
        product_gflops: products,
        product_ratio: products.map(|rate| gflops / rate.median),
        product_clock: if kinds.contains(&DeviceKind::Soft) { "host" } else { "device" },
        moved: measured.moved,
        counted: counted(&factor),
        checked: measured.residual <= RESIDUAL_BOUND,
        residual: measured.residual,
        not_measured: reason.into_iter().collect(),
        factor,
        machine: Machine::look(),
    }
}

/// The bytes of all choices on one device with the room of this one, counted without running them.
fn counted(factor: &DoubleReport) -> Vec<Counted> {
    let (graph, rows) = (CholeskyGraph { tiles: factor.tiles }, factor.tile_rows);
    let [only] = &factor.devices[..] else { return Vec::new() };
    if factor.tiles > COUNTED_TILES {
        return Vec::new();
    }
    let order = factor.order;
    let side = move |index: usize| rows.min(order - index * rows) as u64;
    let bytes = move |tile: sunzi::advanced::tile::TileId| 8 * side(tile.row) * side(tile.col);
    let baseline = baseline_bytes(graph, bytes);
    let choices = Policy::ALL.into_iter().flat_map(|policy| Eviction::ALL.map(|victim| (policy, victim)));
    let count = |(policy, victim): (Policy, Eviction)| {
        let (room_tiles, lookahead) = (only.room_tiles, DoubleOptions::default().lookahead);
        let options = CountOptions { policy, eviction: victim, room_tiles, lookahead };
        let counters = count_moves(graph, options, bytes);
        let (h2d_bytes, d2h_bytes) = (counters.up_bytes, counters.down_bytes);
        let saved = if baseline == 0 { 0.0 } else { 1.0 - (h2d_bytes + d2h_bytes) as f64 / baseline as f64 };
        Counted { policy: policy.name(), traffic: Moved { victim: victim.name(), h2d_bytes, d2h_bytes, saved } }
    };
    choices.map(count).collect()
}

impl Moved {
    fn of(report: &DoubleReport) -> Moved {
        let sum = report.devices.iter().fold(Traffic::default(), |sum, share| sum.plus(&share.traffic));
        let (h2d_bytes, d2h_bytes) = (sum.h2d_bytes, sum.d2h_bytes);
        Moved { victim: report.eviction.name(), h2d_bytes, d2h_bytes, saved: report.saved }
    }
}
