//! Our side of a comparison, and the account of each run, for any operation.
//!
//! Depends on: the results of runs. Independent of: clocks, baselines.

use rug::Float;
use serde::{Serialize, Serializer};
use sunzi::advanced::kernels::tiles::TileTraffic;
use sunzi::report::DeviceReport;
use sunzi::{Context, Matrix, Result};
use sunzi_session::units::counted;

/// One operation of ours with its operands; it keeps its result.
pub trait Task {
    /// Does the whole operation once, from operands in memory to the result.
    ///
    /// # Errors
    /// The errors of the operation.
    fn run(&mut self, ctx: &Context) -> Result<Account>;

    /// The result of the last run.
    fn result(&self) -> &Matrix;

    /// Forgets the numbers of the last result, so that a run that writes nothing cannot pass.
    fn clear(&mut self);

    /// Entry (i, j) of the last result, in the sense of [`crate::baselines::Operation`].
    fn entry(&self, i: usize, j: usize) -> Float {
        self.result().float(i, j)
    }

    /// Tests of the whole last result, beyond the sampled entries.
    ///
    /// # Errors
    /// [`sunzi::Error::Verification`].
    fn verify(&self, _ctx: &Context) -> Result<()> {
        Ok(())
    }
}

/// The account of one run. Figures that an operation does not report are `None`.
#[derive(Clone, Debug)]
pub struct Account {
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Precision of the scaled integers.
    pub working_bits: Option<u32>,
    /// Planes.
    pub primes: Option<usize>,
    /// The sizes of the parts into which the operation was split.
    pub cut: Cut,
    /// The time of each phase.
    pub phases: Phases,
    /// The number of bytes that the plan allowed for.
    pub planned_bytes: Option<u64>,
    /// The work of each device; empty on the CPU.
    pub devices: Vec<DeviceReport>,
    /// The moves of the devices of a factorisation.
    pub tiles: Vec<TileTraffic>,
}

impl Account {
    /// Only the kernel is known.
    pub fn of_kernel(kernel: &'static str) -> Account {
        Account {
            kernel,
            working_bits: None,
            primes: None,
            cut: Cut::Unknown {},
            phases: Phases::default(),
            planned_bytes: None,
            devices: Vec::new(),
            tiles: Vec::new(),
        }
    }
}

/// The sizes of the parts into which an operation was split; its fields are fields of the report.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Cut {
    /// A product.
    Windows {
        /// Groups of primes.
        batches: usize,
        /// Bands of columns of the result.
        bands: usize,
        /// Chunks of contracted rows.
        chunks: usize,
    },
    /// A factorisation.
    Tiles {
        /// Rows of a tile.
        tile_rows: usize,
        /// Tile rows.
        tiles: usize,
    },
    /// The operation does not report it.
    Unknown {},
}

impl Cut {
    /// A phrase that follows the number of primes.
    pub fn describe(&self) -> String {
        match self {
            Cut::Windows { batches, bands, chunks } => {
                let batches = format!("{batches} {}", if *batches == 1 { "batch" } else { "batches" });
                format!(" in {batches}, {}, {}", counted(*bands, "band"), counted(*chunks, "chunk"))
            }
            Cut::Tiles { tile_rows, tiles } => format!(" in {} of {tile_rows} rows", counted(*tiles, "tile row")),
            Cut::Unknown {} => String::new(),
        }
    }
}

/// Seconds of phases, in order; an object in the report.
#[derive(Clone, Debug, Default)]
pub struct Phases(pub Vec<(&'static str, f64)>);

impl Serialize for Phases {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}
