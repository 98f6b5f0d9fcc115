//! Options of `lu`.

use super::values::{accuracy, precision};
use super::{CpuEngineArgs, GIVE_BITS, PLAIN, Precision};
use clap::Args;
use std::path::PathBuf;
use sunzi::{Accuracy, Error, Result};

/// The end of `sunzi lu --help`.
const EXAMPLES: &str = "Examples:\n  sunzi lu A.mtx --lower L.mtx --upper U.mtx --row-order P.csv\n  \
    sunzi lu A.csv --precision 256 --det --condition\n  sunzi verify lu A.mtx L.mtx U.mtx P.csv\n\nRow i of P A is the \
    row of A whose number is entry i of the row order. In each column the largest candidate becomes the pivot, the \
    first of equal ones.";

/// `sunzi lu`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Lu {
    /// The square matrix A.
    pub a: PathBuf,
    /// File for L, unit lower triangular; its suffix gives the format (.mtx, .bin, .csv, .npy, .json, ...).
    #[arg(long = "lower", value_name = "FILE", help_heading = "Output")]
    pub lower_factor: Option<PathBuf>,
    /// File for U, upper triangular.
    #[arg(long = "upper", value_name = "FILE", help_heading = "Output")]
    pub upper_factor: Option<PathBuf>,
    /// File for the order of the rows: a column of the numbers of the rows of A, counted from 1.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub row_order: Option<PathBuf>,
    /// Write hexadecimal floats instead of decimals.
    #[arg(long, help_heading = "Output")]
    pub hex: bool,
    /// Bits of every significand of the factors, from 2 to the kernel's maximum (at least 5000, shown by `sunzi info`)
    /// [default: as stated in the file of A].
    #[arg(long = "precision", short = 'p', value_name = "B", value_parser = precision, help_heading = "Precision")]
    bits: Option<u32>,
    /// Bits to which decimal input is rounded [default: as stated in the file, else the precision plus 64].
    #[arg(long = "input-precision", value_name = "B", value_parser = precision, help_heading = "Precision")]
    input_bits: Option<u32>,
    /// Also print the determinant, to its proven digits. The proof takes a few times as long as the factorisation.
    #[arg(long, help_heading = PLAIN)]
    pub det: bool,
    /// Also print an estimate of the condition number in the 1-norm.
    #[arg(long, help_heading = PLAIN)]
    pub condition: bool,
    /// Error bound of entry (i, j) of the residual P A - L U: 2^(2-B) times (|L| |U|)_ij (entrywise, also called
    /// componentwise), or times the sum of that and the largest entry of column j of A and U (norm).
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy(), help_heading = PLAIN)]
    pub accuracy: Accuracy,
    #[command(flatten)]
    pub engine: CpuEngineArgs,
}

impl Lu {
    /// The precision for a reader of matrices.
    pub fn precision(&self) -> Precision {
        Precision { bits: self.bits, input_bits: self.input_bits, advice: GIVE_BITS }
    }

    /// Refuses a precision that the kernel does not support, and a line that requests nothing.
    ///
    /// # Errors
    /// [`Error::Precision`], [`Error::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        let has_output = [&self.lower_factor, &self.upper_factor, &self.row_order].into_iter().any(Option::is_some);
        if !has_output && !self.det && !self.condition {
            let message =
                "nothing is requested: give --lower, --upper or --row-order with a file, --det or --condition";
            return Err(Error::InvalidArgument(message.into()));
        }
        self.precision().check(&self.engine)
    }
}
