//! What is typed after `gpu-check`.

use clap::Args;

/// `sunzi gpu-check`.
#[derive(Args, Debug)]
pub struct RawGpuCheck {
    /// Devices to check, as for products: numbers of CUDA cards, `all` of them, `soft` or `soft:SIZE`, `host`; several
    /// with commas. Rates are those of the first, beside all together.
    #[arg(long, value_name = "LIST", default_value = "all", allow_hyphen_values = true)]
    pub device: String,
    /// Worker threads [default: all processors].
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub threads: Option<String>,
    /// Check small sizes only, and measure no rates.
    #[arg(long, conflicts_with_all = ["rows", "cols", "precision"])]
    pub quick: bool,
    /// Rows of the product that is timed (K) [default: 16384 on a card; lowered to what memory takes].
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    pub rows: Option<String>,
    /// Its columns (N) [default: 8192 on a card; lowered to what memory takes].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub cols: Option<String>,
    /// Bits of its significands [default: 1024 on a card].
    #[arg(long, short, value_name = "B", allow_hyphen_values = true)]
    pub precision: Option<String>,
}
