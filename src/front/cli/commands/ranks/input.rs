//! The operands of a product on several ranks: read by the root and shared out by rows, or a file for each rank.

use crate::comm::{Transport, agreed, broadcast_bytes};
use crate::distributed::{Team, scatter_rows};
use crate::error::{Error, Result};
use crate::front::cli::commands::{Session, header, read_within, stated_precision};
use crate::front::cli::config::{Operands, Product};
use crate::front::cli::number::parse_factor;
use crate::front::cli::ranks::ROOT;
use crate::front::formats::ReadOptions;
use crate::matrix::{Matrix, MatrixView, Op};
use rug::Float;
use std::path::{Path, PathBuf};

/// What in the name of a file stands for the number of the rank that reads it.
const RANK: &str = "{rank}";

/// Precision to which decimals are read where the result is exact: integers take what they need.
const EXACT_BITS: u32 = 64;

/// What one rank works on.
pub struct Inputs {
    /// This rank's contracted rows of each operand.
    pub operands: Vec<Matrix>,
    pub alpha: Option<Float>,
    pub precision_bits: u32,
}

/// A file and how its matrix is used.
struct Source<'a> {
    path: &'a Path,
    /// The columns of the matrix are contracted, not its rows.
    transposed: bool,
}

impl Inputs {
    /// Reads and shares out. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn read(session: &Session, config: &Product, team: &Team) -> Result<Inputs> {
        let world = team.world();
        let sources = match &config.operands {
            Operands::Syrk { p, op, .. } => vec![Source { path: p, transposed: *op == Op::Transpose }],
            Operands::Gemm { a, b, op_a, op_b } => vec![
                Source { path: a, transposed: *op_a == Op::NoTranspose },
                Source { path: b, transposed: *op_b == Op::Transpose },
            ],
        };
        let per_rank = sources.iter().map(|source| source.is_per_rank()).collect::<Vec<_>>();
        if per_rank.iter().any(|&each| each != per_rank[0]) {
            let message = format!("both operands are files for each rank ({RANK} in the name), or none is");
            return Err(Error::InvalidArgument(message));
        }
        let precision_bits = precision(config, &sources[0], world, per_rank[0])?;
        let alpha = config.alpha.as_ref().map(|text| parse_factor("--alpha", text, precision_bits)).transpose()?;
        let read = |source: &Source<'_>| match per_rank[0] {
            true => own_rows(session, config, source, world, precision_bits),
            false => shared_rows(session, config, source, world, precision_bits),
        };
        let operands = sources.iter().map(read).collect::<Result<_>>()?;
        Ok(Inputs { operands, alpha, precision_bits })
    }
}

impl Source<'_> {
    fn is_per_rank(&self) -> bool {
        self.path.to_string_lossy().contains(RANK)
    }

    /// The file of a rank.
    fn of_rank(&self, rank: usize) -> PathBuf {
        PathBuf::from(self.path.to_string_lossy().replace(RANK, &rank.to_string()))
    }

    /// The matrix with the contracted index as rows.
    fn by_rows<'m>(&self, matrix: &'m Matrix) -> MatrixView<'m> {
        if self.transposed { matrix.transposed() } else { matrix.view() }
    }
}

/// The precision given, else the one that the first file states: that of the root, or all ranks' own.
fn precision(config: &Product, source: &Source<'_>, world: &dyn Transport, per_rank: bool) -> Result<u32> {
    let look = || {
        let path = source.of_rank(world.rank());
        let first = header(&path)?;
        match config.precision.bits {
            None if config.exact_integers => {
                Ok(first.and_then(|info| info.precision_bits_comment).unwrap_or(EXACT_BITS))
            }
            given => stated_precision(given, &path, first.as_ref()),
        }
    };
    let found = if per_rank || world.rank() == ROOT { look() } else { Ok(0) };
    let bits = agreed(world, found)?;
    let bytes = broadcast_bytes(world, ROOT, &bits.to_le_bytes())?;
    let shared = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    // With a file for each rank, different precisions are for the operation to refuse.
    Ok(if per_rank { bits } else { shared })
}

fn read_file(session: &Session, config: &Product, path: &Path, precision_bits: u32) -> Result<Matrix> {
    let input_precision_bits = config.precision.input_bits;
    let options = ReadOptions { input_precision_bits, ..ReadOptions::new(precision_bits) };
    Ok(read_within(session, &config.engine, path, options)?.matrix)
}

/// The rows in this rank's own file. Collective.
fn own_rows(
    session: &Session,
    config: &Product,
    source: &Source<'_>,
    world: &dyn Transport,
    precision_bits: u32,
) -> Result<Matrix> {
    let read = read_file(session, config, &source.of_rank(world.rank()), precision_bits);
    let rows = read.and_then(|matrix| if source.transposed { matrix.transposed().to_matrix() } else { Ok(matrix) });
    agreed(world, rows)
}

/// This rank's even share of the rows of a file that the root reads. Collective.
fn shared_rows(
    session: &Session,
    config: &Product,
    source: &Source<'_>,
    world: &dyn Transport,
    precision_bits: u32,
) -> Result<Matrix> {
    let read =
        if world.rank() == ROOT { read_file(session, config, source.path, precision_bits).map(Some) } else { Ok(None) };
    let whole = agreed(world, read)?;
    scatter_rows(world, ROOT, whole.as_ref().map(|matrix| source.by_rows(matrix)))
}
