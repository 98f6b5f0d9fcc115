//! The operands of a product on several ranks: read by the root and shared out by rows, or a file for each rank.

use crate::commands::product;
use crate::commands::product::{Operands, Product};
use crate::number::parse_scalar;
use crate::session::Session;
use rug::Float;
use std::path::{Path, PathBuf};
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, agreed};
use sunzi::distributed::{DistMatrix, RankGrid, Team, scatter_rows};
use sunzi::{Error, Matrix, MatrixView, Op, Result};
use sunzi_lab::session::ROOT;

/// What in the name of a file stands for the number of the rank that reads it.
const RANK: &str = "{rank}";

/// What one rank works on.
pub struct Inputs {
    /// This rank's contracted rows of each operand.
    pub operands: Vec<Matrix>,
    pub alpha: Option<Float>,
    pub beta: Option<Float>,
    /// This rank's tiles of the matrix to add.
    pub accumulate: Option<DistMatrix>,
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
        let scalar = |name: &str, text: &Option<String>| {
            text.as_ref().map(|text| parse_scalar(name, text, precision_bits)).transpose()
        };
        let (alpha, beta) = (scalar("--alpha", &config.choices.alpha)?, scalar("--beta", &config.choices.beta)?);
        let reader = Reader { session, config, world, precision_bits };
        let read = |source: &Source<'_>| match per_rank[0] {
            true => reader.own_rows(source),
            false => reader.shared_rows(source),
        };
        let operands = sources.iter().map(read).collect::<Result<Vec<_>>>()?;
        let accumulate = config.choices.accumulate.as_ref().map(|path| reader.tiles(path)).transpose()?;
        Ok(Inputs { operands, alpha, beta, accumulate, precision_bits })
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
    let look = || product::precision_bits(config, &source.of_rank(world.rank()));
    let found = if per_rank || world.rank() == ROOT { look() } else { Ok(0) };
    let bits = agreed(world, found)?;
    let mut of_root = [u64::from(bits)];
    world.broadcast(ROOT, &mut of_root)?;
    // With a file for each rank, different precisions are for the operation to refuse.
    Ok(if per_rank { bits } else { of_root[0] as u32 })
}

/// Reads operands on all ranks.
struct Reader<'a> {
    session: &'a Session,
    config: &'a Product,
    world: &'a dyn Transport,
    precision_bits: u32,
}

impl Reader<'_> {
    /// The rows in this rank's own file. Collective.
    fn own_rows(&self, source: &Source<'_>) -> Result<Matrix> {
        let read = self.file(&source.of_rank(self.world.rank()));
        let rows = read.and_then(|matrix| if source.transposed { matrix.transposed().to_matrix() } else { Ok(matrix) });
        agreed(self.world, rows)
    }

    /// This rank's even share of the rows of a file that the root reads. Collective.
    fn shared_rows(&self, source: &Source<'_>) -> Result<Matrix> {
        let read = (self.world.rank() == ROOT).then(|| self.file(source.path)).transpose();
        let whole = agreed(self.world, read)?;
        scatter_rows(self.world, ROOT, whole.as_ref().map(|matrix| source.by_rows(matrix)))
    }

    /// This rank's tiles of a matrix that the root reads, as the result of a product has them by default. Collective.
    fn tiles(&self, path: &Path) -> Result<DistMatrix> {
        let read = (self.world.rank() == ROOT).then(|| self.file(path)).transpose();
        let whole = agreed(self.world, read)?;
        let mut words = whole.as_ref().map_or([0; 2], |matrix| [matrix.rows() as u64, matrix.cols() as u64]);
        self.world.broadcast(ROOT, &mut words)?;
        let [rows, cols] = words.map(|word| word as usize);
        let grid = RankGrid::for_ranks(self.world.size());
        let tile_size = sunzi::advanced::plan::default_tile_size(rows.max(cols), grid);
        let triangle = match self.config.operands {
            Operands::Syrk { uplo, .. } if rows == cols => Some(uplo),
            _ => None,
        };
        let map = TileMap { rows, cols, tile_size, grid, triangle };
        DistMatrix::scatter(self.world, ROOT, whole.as_ref(), map, self.precision_bits)
    }

    fn file(&self, path: &Path) -> Result<Matrix> {
        product::read(self.session, self.config, path, self.precision_bits)
    }
}
