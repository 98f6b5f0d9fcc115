//! The rates of factorisations: of big floats relative to the products of planes, of doubles relative to the plain
//! product.
//!
//! Seconds are wall-clock times of the whole call: a factorisation keeps the CPU busy as well.

use super::product_rates::ProductRates;
use super::table::{Table, Target, Unit};
use crate::bench::{RESIDUAL_BOUND, double_matrix, largest_residual};
use crate::conformance::{Setup, dominant, is_gpu};
use rug::Float;
use serde::Serialize;
use std::ops::Range;
use sunzi::advanced::device::Traffic;
use sunzi::advanced::kernels::EngineSpec;
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::advanced::math::bound::cholesky_modulus_bits;
use sunzi::advanced::runtime::Eviction;
use sunzi::advanced::store::available_bytes;
use sunzi::comm::local;
use sunzi::double::{DoubleMatrix, DoubleOptions, DoubleReport, double_cholesky};
use sunzi::plans::plan_cholesky;
use sunzi::report::CholeskyReport;
use sunzi::{
    Accuracy, CholeskyOptions, Context, Error, ErrorText, GemmOptions, IndexBase, Matrix, Op, Outcome, Result,
    Symmetric, cholesky_with, gemm_with,
};
use sunzi_session::session::Session;
use sunzi_session::units::{format_bytes, format_seconds};

/// The targets, as parts of the rate of the products of planes, and of that of the plain product of doubles.
const CHOLESKY_SHARE: f64 = 0.30;
const DOUBLE_SHARE: f64 = 0.66;

/// Orders of big floats on a GPU, and on other devices.
const GPU_ORDERS: [usize; 2] = [8192, 16_384];
const TINY_ORDERS: [usize; 2] = [48, 96];
const TINY_TILE_ROWS: usize = 16;

/// Device memory of doubles on a GPU, and on other devices.
const GPU_LIMIT_BYTES: u64 = 5000 << 20;
const TINY_LIMIT_BYTES: u64 = 12 * 8 * (TINY_DOUBLE_ROWS * TINY_DOUBLE_ROWS) as u64;
const TINY_DOUBLE_ROWS: usize = 32;

/// The lower triangle of doubles takes this many times the device memory.
const OVER_LIMIT: f64 = 1.5;

/// Timed runs of doubles.
const DOUBLE_RUNS: usize = 3;

/// Host memory left to all else.
const RESERVE_BYTES: u64 = 2 << 30;

/// Rows of a block of the factor that is verified.
const BLOCK_ROWS: usize = 24;

/// A factorisation of big floats that was timed.
#[derive(Debug, Serialize)]
pub struct CholeskyRates {
    /// Planes of the tiles on the device.
    pub planes: usize,
    /// The number of multiply-adds of each plane, `order^3 / 6`, per second of the call.
    pub per_second: f64,
    /// The same rate divided by the rate of the products of planes.
    pub share: f64,
    pub report: CholeskyReport,
}

/// Factorisations of a matrix of doubles that were timed.
#[derive(Debug, Serialize)]
pub struct DoubleRates {
    pub device_bytes: u64,
    /// `order^3 / 6` multiply-adds per second, from tiles to tiles, of the median run.
    pub per_second: f64,
    /// The same rate divided by the rate of the plain product.
    pub share: f64,
    /// The largest residual of all runs, in units of `rows eps |A|`.
    pub residual: f64,
    /// One entry for each rule of eviction; the rule that was timed is the last.
    pub reports: Vec<DoubleReport>,
}

/// All factorisations.
#[derive(Debug, Default, Serialize)]
pub struct FactorRates {
    /// The sizes that were lowered or left out, and why.
    pub notes: Vec<String>,
    pub cholesky: Vec<CholeskyRates>,
    pub double: Option<DoubleRates>,
}

impl FactorRates {
    fn note(&mut self, session: &dyn Session, note: String) -> Result<()> {
        session.say(&note)?;
        self.notes.push(note);
        Ok(())
    }
}

/// Measures factorisations on the first device, compared with a product by the faster family, at its precision, and the
/// plain product of doubles.
///
/// # Errors
/// The errors of factorisations, and [`Error::Verification`] where a factor is wrong.
pub fn measure(
    session: &dyn Session,
    setup: &Setup,
    product: &ProductRates,
    plain_per_second: f64,
    table: &mut Table,
) -> Result<FactorRates> {
    let mut rates = FactorRates::default();
    let on_gpu = is_gpu(&*setup.devices[0]);
    let precision_bits = product.report.precision_bits;
    let mut last = 0;
    for order in if on_gpu { GPU_ORDERS } else { TINY_ORDERS } {
        match big(session, setup, product, order, last, &mut rates) {
            Ok(Some(measured)) => {
                last = measured.report.order;
                tabulate_big(table, &measured);
                rates.cholesky.push(measured);
            }
            Ok(None) => {}
            // The products had room and moduli enough; a factorisation takes more of both.
            Err(error @ (Error::DeviceLimit { .. } | Error::Precision { .. })) => {
                rates.note(session, format!("not measured: cholesky n = {order} at {precision_bits} bits: {error}"))?;
            }
            Err(error) => return Err(error),
        }
    }
    match double(session, setup, plain_per_second, &mut rates) {
        Ok(measured) => {
            tabulate_double(table, &measured);
            rates.double = Some(measured);
        }
        Err(error @ (Error::DeviceLimit { .. } | Error::DeviceMemory { .. })) => {
            rates.note(session, format!("not measured: double cholesky: {error}"))?;
        }
        Err(error) => return Err(error),
    }
    Ok(rates)
}

fn free_bytes() -> u64 {
    available_bytes().unwrap_or(u64::MAX).saturating_sub(RESERVE_BYTES)
}

/// One factorisation of big floats, at the precision of `product`; `None` where memory leaves no larger order than
/// `last`.
fn big(
    session: &dyn Session,
    setup: &Setup,
    product: &ProductRates,
    wanted: usize,
    last: usize,
    rates: &mut FactorRates,
) -> Result<Option<CholeskyRates>> {
    let Some((family, plane_rate)) = DeviceFamily::by_name(product.report.kernel).zip(product.plane_rate()) else {
        return Ok(None);
    };
    let device = &setup.devices[0];
    let ctx = setup.builder().devices(vec![device.clone()]).kernel(family.name()).build()?;
    let tile_rows = (!is_gpu(&**device)).then_some(TINY_TILE_ROWS);
    let options = CholeskyOptions::new().tile_rows(tile_rows).accuracy(Accuracy::Norm);
    let (mut order, bits, free) = (wanted, product.report.precision_bits, free_bytes());
    let plan = loop {
        let plan = plan_cholesky(&ctx, order, bits, &options)?;
        let bytes = plan.planned_bytes.saturating_add(Matrix::bytes_for(order, order, bits));
        if bytes <= free {
            break plan;
        }
        let why = format!("takes {} of host memory, of {}", format_bytes(bytes), format_bytes(free));
        rates.note(session, format!("reduced: cholesky n = {order} {why}"))?;
        order -= order.div_ceil(4);
        if order <= last {
            return Ok(None);
        }
    };
    let a = ctx.install(|| dominant(order, bits))?;
    let options = options.tile_rows(plan.tile_rows);
    // Compiles kernels, and takes the device's memory for tiles of this size.
    let few = order.min(2 * plan.tile_rows);
    cholesky_with(&ctx, Symmetric::lower(a.view().block(0..few, 0..few)?), bits, &options)?;
    let Outcome { result: factor, report } = cholesky_with(&ctx, Symmetric::lower(&a), bits, &options)?;
    let working_bits = report.working_bits;
    let modulus_bits = cholesky_modulus_bits(working_bits);
    let planes = family.plane_count(&EngineSpec { operand_bits: working_bits, modulus_bits, redundant: false });
    drop(ctx); // the check below takes memory of its own
    verify(&setup.builder().build()?, &a, factor.factor())?;
    let per_second = (order as f64).powi(3) / 6.0 * planes as f64 / report.seconds.max(1e-9);
    Ok(Some(CholeskyRates { planes, per_second, share: per_second / plane_rate, report }))
}

/// Compares blocks of `L L^T` at the start, the middle and the end with the matrix, whose diagonal is 1.
fn verify(cpu: &Context, a: &Matrix, l: &Matrix) -> Result<()> {
    let (order, bits) = (a.rows(), a.precision_bits());
    let block = |first: usize| first..order.min(first + BLOCK_ROWS);
    let blocks = [block(0), block(order / 2), block(order.saturating_sub(BLOCK_ROWS))];
    let rows = |rows: &Range<usize>| l.view().block(rows.clone(), 0..order);
    let bound = Float::with_val(64, Float::i_exp(1, 2 - bits as i32)) * 1.01f64; // and what the product is rounded by
    for (at, left) in blocks.iter().enumerate() {
        for right in &blocks[..=at] {
            let options = GemmOptions::new().op_b(Op::Transpose);
            let product = gemm_with(cpu, rows(left)?, rows(right)?, bits + 64, &options)?.result;
            for (row, i) in left.clone().enumerate() {
                for (col, j) in right.clone().enumerate().filter(|&(_, j)| j <= i) {
                    let error = (product.float(row, col) - a.float(i, j)).abs();
                    if error > bound {
                        let error = error.to_f64();
                        let text = |base: IndexBase| format!("A - L L^T at {} is {error:e}", base.place(i, j));
                        return Err(Error::verification(ErrorText::counted(text)));
                    }
                }
            }
        }
    }
    Ok(())
}

fn tabulate_big(table: &mut Table, measured: &CholeskyRates) {
    let CholeskyRates { report, planes, .. } = measured;
    let what = format!("cholesky n = {} at {} bits", report.order, report.precision_bits);
    let name = |part: &str| format!("{what}: {part}");
    let aim = Target::AtLeast(CHOLESKY_SHARE);
    table.aim(format!("{what}, of the products' rate"), measured.share, Unit::Share, aim);
    table.figure(name(&format!("{planes} planes")), measured.per_second, Unit::MultiplyAddsPerSecond);
    table.figure(name("the whole call"), report.seconds, Unit::Seconds);
    let tasks = [
        ("update", report.tasks.update),
        ("potrf", report.tasks.potrf),
        ("trsm", report.tasks.trsm),
        ("load", report.tasks.load),
    ];
    for (task, seconds) in tasks {
        table.figure(name(&format!("{task}, {} thread(s) added up", report.threads)), seconds, Unit::Seconds);
    }
    // This one is of all threads together.
    table.figure(name("store"), report.tasks.store, Unit::Seconds);
    let [device] = &report.devices[..] else { return };
    table.figure(name("bytes to the device"), device.traffic.h2d_bytes as f64, Unit::Bytes);
    table.figure(name("bytes from the device"), device.traffic.d2h_bytes as f64, Unit::Bytes);
    table.figure(name("bytes if no tile stayed"), device.baseline_bytes as f64, Unit::Bytes);
}

/// Factorisations of doubles larger than the device memory they may use.
fn double(session: &dyn Session, setup: &Setup, plain_per_second: f64, rates: &mut FactorRates) -> Result<DoubleRates> {
    let device = &setup.devices[0];
    let (mut limit, tile_rows) = match is_gpu(&**device) {
        true => (GPU_LIMIT_BYTES, None),
        false => (TINY_LIMIT_BYTES, Some(TINY_DOUBLE_ROWS)),
    };
    // Half of `8 order^2` bytes.
    let order_for = |limit: u64| ((OVER_LIMIT * limit as f64 / 4.0).sqrt() as usize).next_multiple_of(64);
    loop {
        // The lower triangles of the matrix, of the copy that is factored, and of its tiles on the host.
        let host = 12 * (order_for(limit) as u64).pow(2);
        let (free, room) = (free_bytes(), device.capacity_bytes().saturating_sub(device.used_bytes()));
        let why = match () {
            () if host > free => format!("{} of host memory, of {}", format_bytes(host), format_bytes(free)),
            () if limit > room => format!("{} of device memory, of {}", format_bytes(limit), format_bytes(room)),
            () => break,
        };
        if limit < TINY_LIMIT_BYTES {
            return Err(Error::OutOfMemory { bytes: host });
        }
        rates.note(session, format!("reduced: double cholesky n = {} takes {why}", order_for(limit)))?;
        limit /= 2;
    }
    let order = order_for(limit);
    let ctx = setup.builder().devices(vec![device.clone()]).device_memory_bytes(limit).build()?;
    let matrix = double_matrix(local::alone(), order, tile_rows.unwrap_or_else(|| DoubleMatrix::tile_rows_for(order)))?;
    let (mut residual, mut seconds) = (0.0f64, Vec::new());
    let mut reports = Vec::new();
    // The rule that is timed comes last, when everything is warm.
    let others = Eviction::ALL.into_iter().filter(|&rule| rule != Eviction::default()).map(|rule| (rule, 1));
    for (eviction, runs) in others.chain([(Eviction::default(), DOUBLE_RUNS)]) {
        let options = DoubleOptions::new().eviction(eviction);
        seconds.clear();
        for run in 0..runs {
            let mut l = matrix.clone();
            let report = double_cholesky(&ctx, local::alone(), &mut l, &options)?;
            seconds.push(report.factor_seconds);
            if run + 1 == runs {
                residual = residual.max(largest_residual(local::alone(), &l)?);
                reports.push(report);
            }
        }
    }
    if residual > RESIDUAL_BOUND {
        let what = format!("double cholesky n = {order}: the residual is {residual:.3} times rows eps |A|");
        return Err(Error::verification(what));
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2].max(1e-9);
    session.say(&format!(
        "double cholesky: n = {order}, {} of device memory, {}",
        format_bytes(limit),
        format_seconds(median)
    ))?;
    let per_second = (order as f64).powi(3) / 6.0 / median;
    Ok(DoubleRates { device_bytes: limit, per_second, share: per_second / plain_per_second, residual, reports })
}

fn tabulate_double(table: &mut Table, measured: &DoubleRates) {
    let what = match measured.device_bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    };
    let what = format!("double cholesky, matrix larger than {what} of device memory, of the dgemm rate");
    table.aim(what, measured.share, Unit::Share, Target::AtLeast(DOUBLE_SHARE));
    let name = |part: &str| format!("double cholesky: {part}");
    table.figure(name("multiply-adds"), measured.per_second, Unit::MultiplyAddsPerSecond);
    for report in &measured.reports {
        let sum = report.devices.iter().fold(Traffic::default(), |sum, share| sum.plus(&share.traffic));
        for (way, bytes) in [("to", sum.h2d_bytes), ("from", sum.d2h_bytes)] {
            let what = name(&format!("{}, bytes {way} the device", report.eviction.name()));
            table.figure(what, bytes as f64, Unit::Bytes);
        }
    }
    let Some(report) = measured.reports.last() else { return };
    table.figure(
        name("bytes if no tile stayed"),
        (report.baseline_h2d_bytes + report.baseline_d2h_bytes) as f64,
        Unit::Bytes,
    );
    table.figure(name("diagonal tiles on the host"), report.potrf_seconds, Unit::Seconds);
    table.figure(name("tiles to tiles"), report.factor_seconds, Unit::Seconds);
}
