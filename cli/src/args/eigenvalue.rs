//! Options of `eigenvalue`.

use super::factor::Triangle;
use super::values::precision;
use super::{EngineArgs, GIVE_BITS, Precision};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use sunzi::Result;
use sunzi::eigenvalue::Extreme;

/// The ends of the spectrum that are wanted.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// The smallest and the largest eigenvalue.
    Both,
    /// The smallest eigenvalue; if there are negative eigenvalues, the most negative one.
    Smallest,
    /// The largest eigenvalue.
    Largest,
}

impl Ends {
    /// Each of them.
    pub fn each(self) -> &'static [Extreme] {
        match self {
            Ends::Both => &[Extreme::Smallest, Extreme::Largest],
            Ends::Smallest => &[Extreme::Smallest],
            Ends::Largest => &[Extreme::Largest],
        }
    }
}

/// The end of `sunzi eigenvalue --help`.
const EXAMPLES: &str = "Examples:\n  sunzi eigenvalue A.mtx\n  sunzi eigenvalue A.csv --precision 128 --which \
                        smallest\n  sunzi eigenvalue X.mtx --factor L.mtx --precision 64 --report e.json\n\nBoth ends \
                        of an interval are proven: one by a Rayleigh quotient, the other by a Cholesky factorisation \
                        of the shifted matrix. The width of the interval is at most 2^-B times the eigenvalue, unless \
                        the eigenvalue is far smaller than the norm of the matrix. The interval allows for the \
                        rounding of the decimals in the file of A to binary; in a file that states its precision, each \
                        decimal stands for the nearest number of that precision.";

/// `sunzi eigenvalue`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Eigenvalue {
    /// The symmetric matrix A.
    pub a: PathBuf,
    /// Lower triangular matrix L; enclose the eigenvalues t of A v = t L L^T v, which are those of L^-1 A L^-T.
    #[arg(long, value_name = "FILE")]
    pub factor: Option<PathBuf>,
    /// Eigenvalues to enclose.
    #[arg(long, value_name = "ENDS", value_enum, default_value = "both")]
    pub which: Ends,
    #[command(flatten)]
    pub triangle: Triangle,
    /// The relative width of each interval is about 2^-B [default: the precision that the file of A states].
    #[arg(long = "precision", short = 'p', value_name = "B", value_parser = precision, help_heading = "Precision")]
    bits: Option<u32>,
    /// Bits to which decimal input is rounded [default: as stated in the file, else the precision plus 64].
    #[arg(long = "input-precision", value_name = "B", value_parser = precision, help_heading = "Precision")]
    input_bits: Option<u32>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

impl Eigenvalue {
    /// The precision for a reader of matrices.
    pub fn precision(&self) -> Precision {
        Precision { bits: self.bits, input_bits: self.input_bits, advice: GIVE_BITS }
    }

    /// Refuses a precision that the kernel cannot serve.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`].
    pub fn check(&self) -> Result<()> {
        self.precision().check(&self.engine)
    }
}
