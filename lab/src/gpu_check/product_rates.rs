//! A large product that is timed.

use crate::bench::hash;
use serde::Serialize;
use sunzi::report::Report;
use sunzi::{Accuracy, Context, MatrixView, Result, SymmetricMatrix, SyrkOptions, syrk_into};

/// Timed runs of a whole product.
const PRODUCT_RUNS: usize = 3;

/// The number of columns of the product that compiles kernels and makes tables before anything is timed, and of
/// verified blocks.
pub const FEW_COLUMNS: usize = 48;

/// A SYRK that was timed.
#[derive(Debug, Serialize)]
pub struct ProductRates {
    pub devices: String,
    /// The wall-clock seconds of each call.
    pub all_seconds: Vec<f64>,
    /// Big-float multiply-adds per second of the reported run.
    pub per_second: f64,
    /// The run with the median time.
    pub report: Report,
    #[serde(skip)]
    pub hash: u128,
}

impl ProductRates {
    /// Multiply-adds of planes per second on the first device.
    pub fn plane_rate(&self) -> Option<f64> {
        let device = self.report.devices.first()?;
        Some(device.multiply_adds as f64 / device.seconds.product.max(1e-12))
    }
}

/// Runs the product a few times; the report is that of the run with the median time.
///
/// # Errors
/// The errors of [`syrk_into`].
pub fn timed(ctx: &Context, p: MatrixView<'_>, devices: String) -> Result<(ProductRates, SymmetricMatrix)> {
    let (bits, options) = (p.precision_bits(), SyrkOptions::new().accuracy(Accuracy::Norm));
    let few = p.block(0..p.rows(), 0..p.cols().min(FEW_COLUMNS))?;
    let mut result = SymmetricMatrix::default();
    syrk_into(ctx, few, bits, &options, &mut result)?;
    let mut reports = Vec::new();
    for _ in 0..PRODUCT_RUNS {
        reports.push(syrk_into(ctx, p, bits, &options, &mut result)?);
    }
    let all_seconds = reports.iter().map(|report| report.seconds).collect();
    reports.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let report = reports.swap_remove(PRODUCT_RUNS / 2);
    let work = p.rows() as f64 * p.cols() as f64 * (p.cols() as f64 + 1.0) / 2.0;
    let per_second = work / report.seconds.max(1e-9);
    Ok((ProductRates { devices, all_seconds, per_second, report, hash: hash(&result) }, result))
}
