//! Options of `sunzi simulate`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `sunzi simulate`.
#[derive(Args, Debug)]
pub struct RawSimulate {
    #[command(subcommand)]
    pub what: RawSimulation,
}

/// What is simulated.
#[derive(Subcommand, Debug)]
pub enum RawSimulation {
    /// A = L L^T in tiles on a cluster. Several deliveries, policies, victims or terminations make a table.
    Cholesky(Box<RawSimulateCholesky>),
    /// Many small factorisations drawn from seeds, under the worst conditions; exit code 5 if any goes wrong.
    Soak(RawSoak),
}

/// `sunzi simulate cholesky`.
#[derive(Args, Debug)]
pub struct RawSimulateCholesky {
    /// Processes [default: those of --grid].
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub processes: Option<String>,
    /// Rows and columns of processes, such as 60x68 [default: nearly square].
    #[arg(long, value_name = "PxQ", allow_hyphen_values = true)]
    pub grid: Option<String>,
    /// Rows of the matrix.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub order: Option<String>,
    /// Tile rows of the matrix, in place of --order.
    #[arg(long, value_name = "T", allow_hyphen_values = true, conflicts_with = "order")]
    pub tiles: Option<String>,
    /// A matrix of the literature, in place of --order: QAP5 to QAP10.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["order", "tiles"])]
    pub problem: Option<String>,
    /// Rows of a tile [default: the machine's].
    #[arg(long, value_name = "NB", allow_hyphen_values = true)]
    pub tile_rows: Option<String>,
    /// A machine: tsubame2.5, or a TOML file like machines/tsubame2.5.toml.
    #[arg(long, value_name = "NAME|FILE", default_value = "tsubame2.5")]
    pub machine: String,
    /// Who sends a tile to whom: point_to_point, cs_list, cs_list_ahead, binomial, synchronous.
    #[arg(long, value_name = "LIST", default_value = "cs_list", value_delimiter = ',')]
    pub delivery: Vec<String>,
    /// Which task runs next: fifo, lifo, random (or random:SEED), by_ij, greedy, critical_path, panels,
    /// leftmost.
    #[arg(long, value_name = "LIST", default_value = "random:1", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Which tile leaves a full device: fifo, lru.
    #[arg(long, value_name = "LIST", default_value = "fifo", value_delimiter = ',')]
    pub victim: Vec<String>,
    /// When a process may end: lists, all_to_all.
    #[arg(long, value_name = "LIST", default_value = "lists", value_delimiter = ',')]
    pub termination: Vec<String>,
    /// Tiles of others that a process has room for [default: what host memory leaves].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub slots: Option<String>,
    /// Host memory of a process, for its own tiles and those of others [default: the machine's].
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, conflicts_with = "slots")]
    pub host_memory: Option<String>,
    /// Workers of a process [default: the machine's].
    #[arg(long, value_name = "W", allow_hyphen_values = true)]
    pub workers: Option<String>,
    /// Seed of all times.
    #[arg(long, value_name = "S", default_value = "0", allow_hyphen_values = true)]
    pub seed: String,
    /// Every time is multiplied by 1 to 1 + J.
    #[arg(long, value_name = "J", default_value = "0", allow_hyphen_values = true)]
    pub jitter: String,
    /// Slow processes and the factors of their times, such as 3:10,7:2.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub slow: Vec<String>,
    /// Also write what the first processes did when, as JSON for a trace viewer.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Processes in the trace.
    #[arg(long, value_name = "N", default_value = "16", allow_hyphen_values = true)]
    pub trace_processes: String,
    /// Also draw ready tasks, slots and device memory over time, as SVG.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// `sunzi simulate soak`.
#[derive(Args, Debug)]
pub struct RawSoak {
    /// How many seeds.
    #[arg(long, value_name = "N", default_value = "1000", allow_hyphen_values = true)]
    pub seeds: String,
    /// The first seed.
    #[arg(long, value_name = "S", default_value = "0", allow_hyphen_values = true)]
    pub first: String,
}
