//! The rates of `sunzi gpu-check`: products of planes compared with plain products, transfers, and the CPU.
//!
//! Times on a device are between events on its own clock, of the run with the median time; the comparison with the CPU
//! uses the wall-clock time of whole calls. All operands are random: zeros multiply faster.

use super::GpuCheck;
use super::factor_rates::{self, FactorRates};
use super::product_rates::{FEW_COLUMNS, ProductRates, timed};
use super::table::{Table, Target, Unit};
use crate::conformance::{Fixture, Setup, is_gpu, square};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use sunzi::advanced::device::{Element, Gemm, GemmOperand, Pinned};
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::advanced::store::available_bytes;
use sunzi::devices::Device;
use sunzi::gallery::{Size, counter_random};
use sunzi::plans::plan_syrk;
use sunzi::report::Report;
use sunzi::verify::{VerifyOptions, verify_gemm, verify_syrk};
use sunzi::{Context, Error, Matrix, Op, Result};
use sunzi_session::session::Session;
use sunzi_session::units::{format_bytes, format_seconds};

/// Sizes on a GPU, and on other devices.
const GPU: Sizes = Sizes { rows: 16_384, cols: 8192, precision_bits: 1024, plain: 8192, copy_bytes: 1 << 28 };
const TINY: Sizes = Sizes { rows: 160, cols: 48, precision_bits: 192, plain: 64, copy_bytes: 1 << 16 };

/// Timed runs of everything.
const RUNS: usize = 5;

/// Host memory left to all else.
const RESERVE_BYTES: u64 = 2 << 30;

/// The product on the CPU has this many times fewer rows and columns.
const CPU_ROWS: usize = 4;
const CPU_COLS: usize = 8;

/// The targets for each family.
const TARGETS: [FamilyTargets; 2] =
    [FamilyTargets { plain_share: 0.85, over_products: 1.5 }, FamilyTargets { plain_share: 0.75, over_products: 2.5 }];

/// The targets for signed bytes against doubles, and for devices against the CPU.
const BYTES_OVER_DOUBLES: f64 = 4.0;
const DEVICE_OVER_CPU: f64 = 50.0;

/// The targets of a family.
struct FamilyTargets {
    /// The target: at least this fraction of the rate of the plain product.
    plain_share: f64,
    /// The target: the seconds of the whole call are at most this multiple of the seconds of its products.
    over_products: f64,
}

struct Sizes {
    rows: usize,
    cols: usize,
    precision_bits: u32,
    /// Rows and columns of a plain product.
    plain: usize,
    /// Bytes of a plain copy.
    copy_bytes: usize,
}

/// Plain products and copies of one device.
#[derive(Debug, Serialize)]
pub struct PlainRates {
    pub device: String,
    /// `m = n = k` of both products.
    pub size: usize,
    /// Multiply-adds per second, of doubles and of bytes.
    pub f64_per_second: f64,
    pub i8_per_second: f64,
    /// Bytes a second.
    pub h2d_per_second: f64,
    pub d2h_per_second: f64,
}

/// All measured rates.
#[derive(Debug, Serialize)]
pub struct RatesReport {
    pub rows: usize,
    pub cols: usize,
    pub precision_bits: u32,
    /// The sizes that were lowered, and why.
    pub notes: Vec<String>,
    pub plain: Vec<PlainRates>,
    pub products: Vec<ProductRates>,
    pub cpu: ProductRates,
    pub factors: FactorRates,
    pub table: Table,
}

/// Measures and prints.
///
/// # Errors
/// The errors of products, and [`Error::Verification`] where a large result is wrong.
pub fn measure(session: &dyn Session, setup: &Setup, config: &GpuCheck) -> Result<RatesReport> {
    let first = &setup.devices[0];
    let sizes = if is_gpu(&**first) { GPU } else { TINY };
    let precision_bits = config.precision_bits.unwrap_or(sizes.precision_bits);
    let (rows, cols) = (config.rows.unwrap_or(sizes.rows), config.cols.unwrap_or(sizes.cols));
    let cpu = setup.builder().build()?;
    let plain = setup.devices.iter().map(|device| plain_rates(&cpu, &**device, &sizes)).collect::<Result<Vec<_>>>()?;
    let (size, notes) = fit(setup, Size { rows, cols, precision_bits })?;
    let Size { rows, cols, .. } = size;
    notes.iter().try_for_each(|note| session.say(note))?;
    let start = Instant::now();
    let p = cpu.install(|| counter_random(size, 0, 1))?;
    let (bytes, seconds) = (format_bytes(p.bytes()), format_seconds(start.elapsed().as_secs_f64()));
    session.say(&format!("operand: {rows} x {cols}, {precision_bits} bits, {bytes}, made in {seconds}"))?;
    let mut products = Vec::new();
    for family in DeviceFamily::ALL {
        products.push(on_devices(setup, &cpu, &p, std::slice::from_ref(first), family)?);
    }
    if setup.devices.len() > 1 {
        let faster = products[1].report.seconds < products[0].report.seconds;
        let family = if faster { DeviceFamily::I8 } else { DeviceFamily::F64 };
        products.push(on_devices(setup, &cpu, &p, &setup.devices, family)?);
    }
    if products.iter().any(|product| product.hash != products[0].hash) {
        return Err(Error::verification("the families gave bitwise different results of the large product"));
    }
    let part = p.view().block(0..rows.div_ceil(CPU_ROWS), 0..cols.div_ceil(CPU_COLS))?;
    let on_cpu = timed(&cpu, part, "CPU".into())?.0;
    drop((p, cpu)); // factorisations need the memory
    let mut table = tabulate(is_gpu(&**first), &plain, &products, &on_cpu);
    let product = if products[1].report.seconds < products[0].report.seconds { &products[1] } else { &products[0] };
    let plain_rate = plain[0].f64_per_second;
    let factors = factor_rates::measure(session, setup, product, plain_rate, &mut table);
    session.say(&table.text())?;
    let factors = factors?; // what was measured before is printed all the same
    Ok(RatesReport { rows, cols, precision_bits, notes, plain, products, cpu: on_cpu, factors, table })
}

/// The requested size, halved until operand and result fit the memory of the host and any cut that of the device.
fn fit(setup: &Setup, wanted: Size) -> Result<(Size, Vec<String>)> {
    let (Size { mut rows, mut cols, precision_bits }, mut notes) = (wanted, Vec::new());
    let available = available_bytes().unwrap_or(u64::MAX).saturating_sub(RESERVE_BYTES);
    let contexts = DeviceFamily::ALL
        .map(|family| setup.builder().devices(vec![setup.devices[0].clone()]).kernel(family.name()).build());
    let contexts = contexts.into_iter().collect::<Result<Vec<_>>>()?;
    loop {
        let bytes = Matrix::bytes_for(rows, cols, precision_bits);
        let bytes = bytes.saturating_add(Matrix::bytes_for(cols, cols, precision_bits));
        let plans = contexts.iter().map(|ctx| plan_syrk(ctx, rows, cols, precision_bits).map(drop));
        let why = match plans.collect::<Result<()>>() {
            _ if bytes > available => format!("{} of host memory, of {}", format_bytes(bytes), format_bytes(available)),
            Ok(()) => return Ok((Size { rows, cols, precision_bits }, notes)),
            Err(Error::DeviceLimit { limit_bytes, minimum_bytes, .. }) => {
                format!("{} of device memory, of {}", format_bytes(minimum_bytes), format_bytes(limit_bytes))
            }
            Err(other) => return Err(other),
        };
        if rows.max(cols) == 1 {
            return Err(Error::OutOfMemory { bytes });
        }
        notes.push(format!("reduced: {rows} x {cols} takes {why}"));
        (rows, cols) = if rows >= cols { (rows.div_ceil(2), cols) } else { (rows, cols.div_ceil(2)) };
    }
}

/// Plain products and copies, each the median of several after one that is not counted.
fn plain_rates(ctx: &Context, device: &dyn Device, sizes: &Sizes) -> Result<PlainRates> {
    let free = device.capacity_bytes().saturating_sub(device.used_bytes()) / 2;
    let mut size = sizes.plain;
    while size > 16 && (24 * size * size) as u64 > free {
        size /= 2;
    }
    let pinned = device.allocate_pinned(8 * size * size)?;
    let mut rates = DeviceFamily::ALL.map(|_| 0.0);
    for (rate, family) in rates.iter_mut().zip(DeviceFamily::ALL) {
        let element = family.element();
        ctx.install(|| fill(element, &pinned))?;
        *rate = plain_product(device, element, size, &pinned)?;
    }
    let bytes = sizes.copy_bytes.min(free as usize);
    let fixture = Fixture::new(device)?;
    let (host, region) = (device.allocate_pinned(bytes)?, device.allocate(bytes)?.whole());
    let up = median_seconds(&fixture, || device.upload(fixture.stream, &host, 0, &region))?;
    let down = median_seconds(&fixture, || device.download(fixture.stream, &region, &host, 0))?;
    Ok(PlainRates {
        device: device.description().label(),
        size,
        f64_per_second: rates[0],
        i8_per_second: rates[1],
        h2d_per_second: bytes as f64 / up,
        d2h_per_second: bytes as f64 / down,
    })
}

fn plain_product(device: &dyn Device, element: Element, size: usize, pinned: &Pinned) -> Result<f64> {
    let fixture = Fixture::new(device)?;
    let operand = || -> Result<GemmOperand> {
        let region = device.allocate(size * size * element.operand_bytes())?.whole();
        device.upload(fixture.stream, pinned, 0, &region)?;
        Ok(GemmOperand { region, ld: size, stride: 0 })
    };
    let c = device.allocate(size * size * element.product_bytes())?.whole();
    let gemm = Gemm { element, a: operand()?, b: operand()?, ..square(size, &c) };
    Ok(gemm.work() as f64 / median_seconds(&fixture, || device.multiply(fixture.stream, &gemm))?)
}

/// Seconds on the device's clock of the work submitted to the fixture's stream.
fn median_seconds(fixture: &Fixture<'_>, submit: impl Fn() -> Result<()>) -> Result<f64> {
    let mut seconds = Vec::new();
    for run in 0..=RUNS {
        let start = fixture.device.record(fixture.stream)?;
        submit()?;
        let end = fixture.device.record(fixture.stream)?;
        fixture.device.synchronize(&end)?;
        if run > 0 {
            seconds.push(fixture.device.seconds_between(&start, &end)?);
        }
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2].max(1e-12))
}

/// Integers as large as balanced residues of either family, at random.
fn fill(element: Element, pinned: &Pinned) -> Result<()> {
    let mix = |at: usize| {
        let word = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let mut bytes = pinned.lock()?;
    bytes.par_chunks_mut(8).enumerate().with_min_len(1 << 14).for_each(|(at, chunk)| match element {
        Element::I8 => chunk.copy_from_slice(&mix(at).to_le_bytes()[..chunk.len()]),
        // 21 bits and a sign.
        Element::F64 => chunk.copy_from_slice(&(((mix(at) as i64) >> 42) as f64).to_le_bytes()[..chunk.len()]),
    });
    Ok(())
}

/// Times the product on some devices, and verifies blocks of the result.
fn on_devices(
    setup: &Setup,
    cpu: &Context,
    p: &Matrix,
    devices: &[Arc<dyn Device>],
    family: DeviceFamily,
) -> Result<ProductRates> {
    let ctx = setup.builder().devices(devices.to_vec()).kernel(family.name()).build()?;
    let names = devices.iter().map(|device| device.description().label()).collect::<Vec<_>>().join(", ");
    let (rates, result) = timed(&ctx, p.view(), names)?;
    verify(cpu, p, &result)?;
    Ok(rates)
}

/// Holds three blocks of the result, at two ends of the diagonal and in the far corner, against exact arithmetic.
fn verify(cpu: &Context, p: &Matrix, q: &Matrix) -> Result<()> {
    let (rows, cols, bits) = (0..p.rows(), p.cols(), p.precision_bits());
    let options = VerifyOptions::new().vector_count(2).sample_count(64);
    let (first, last) = (0..cols.min(FEW_COLUMNS), cols.saturating_sub(FEW_COLUMNS)..cols);
    let operand = |block: &std::ops::Range<usize>| p.view().block(rows.clone(), block.clone());
    for block in [&first, &last] {
        let result = q.view().block(block.clone(), block.clone())?;
        verify_syrk(cpu, operand(block)?, result, bits, &options)?;
    }
    let result = q.view().block(last.clone(), first.clone())?;
    if last.start < first.end {
        return Ok(()); // the corner reaches into the other triangle, and the diagonal blocks cover it
    }
    let options = options.op(Op::Transpose);
    verify_gemm(cpu, (operand(&last)?, operand(&first)?), result, bits, &options).map(drop)
}

/// All figures next to their targets.
fn tabulate(on_gpu: bool, plain: &[PlainRates], products: &[ProductRates], cpu: &ProductRates) -> Table {
    let mut table = Table::new(on_gpu);
    for PlainRates { device, size, f64_per_second, i8_per_second, h2d_per_second, d2h_per_second } in plain {
        table.figure(format!("{device}: plain dgemm, {size}^3"), *f64_per_second, Unit::MultiplyAddsPerSecond);
        table.figure(format!("{device}: plain int8 gemm, {size}^3"), *i8_per_second, Unit::MultiplyAddsPerSecond);
        table.figure(format!("{device}: plain copies to it"), *h2d_per_second, Unit::BytesPerSecond);
        table.figure(format!("{device}: plain copies from it"), *d2h_per_second, Unit::BytesPerSecond);
    }
    let rates = [plain[0].f64_per_second, plain[0].i8_per_second];
    for ((product, rate), targets) in products.iter().zip(rates).zip(TARGETS) {
        tabulate_family(&mut table, product, rate, &targets);
    }
    let [f64_seconds, i8_seconds] = [0, 1].map(|at| busy_seconds(&products[at].report));
    let ratio = f64_seconds / i8_seconds.max(1e-12);
    table.aim(
        "cuda-i8 over cuda-f64: products and conversions, times faster".into(),
        ratio,
        Unit::Ratio,
        Target::AtLeast(BYTES_OVER_DOUBLES),
    );
    for product in products {
        let what = format!("{}, {}: big-float multiply-adds", product.devices, product.report.kernel);
        table.figure(what, product.per_second, Unit::MultiplyAddsPerSecond);
    }
    let (threads, kernel) = (cpu.report.threads, cpu.report.kernel);
    let what = format!("{threads} thread(s), {kernel}: big-float multiply-adds");
    table.figure(what, cpu.per_second, Unit::MultiplyAddsPerSecond);
    let best = products[..2].iter().map(|product| product.per_second).fold(0.0, f64::max);
    let what = format!("one device over {threads} thread(s), times faster");
    table.aim(what, best / cpu.per_second, Unit::Ratio, Target::AtLeast(DEVICE_OVER_CPU));
    table
}

/// Seconds in which the device of a report converted and multiplied.
fn busy_seconds(report: &Report) -> f64 {
    let sum = |seconds: &sunzi::report::DeviceSeconds| {
        seconds.to_residues + seconds.product + seconds.reconstruct + seconds.round
    };
    report.devices.first().map_or(0.0, |device| sum(&device.seconds))
}

fn tabulate_family(table: &mut Table, product: &ProductRates, plain: f64, targets: &FamilyTargets) {
    let (report, Some(device)) = (&product.report, product.report.devices.first()) else { return };
    let Some(rate) = product.plane_rate() else { return };
    let name = |what: &str| format!("{}: {what}", report.kernel);
    let seconds = device.seconds;
    table.figure(name("products of planes"), rate, Unit::MultiplyAddsPerSecond);
    table.aim(
        name("products of planes, of the plain rate"),
        rate / plain,
        Unit::Share,
        Target::AtLeast(targets.plain_share),
    );
    let parts = [
        ("time in products", seconds.product),
        ("time in conversion to residues", seconds.to_residues),
        ("time in reconstruction", seconds.reconstruct),
        ("time in rounding", seconds.round),
        ("first copy in to last copy out", seconds.total),
        ("the whole call, as time passes", report.seconds),
    ];
    for (what, seconds) in parts {
        table.figure(name(what), seconds, Unit::Seconds);
    }
    let ratio = seconds.total / seconds.product.max(1e-12);
    table.aim(
        name("first copy to last copy, over products"),
        ratio,
        Unit::Ratio,
        Target::AtMost(targets.over_products),
    );
    for (way, bytes) in [("to", device.traffic.h2d_bytes), ("from", device.traffic.d2h_bytes)] {
        table.figure(name(&format!("bytes {way} the device")), bytes as f64, Unit::Bytes);
        let rate = bytes as f64 / seconds.total.max(1e-12);
        table.figure(name(&format!("bytes {way} the device, in that time")), rate, Unit::BytesPerSecond);
    }
}
