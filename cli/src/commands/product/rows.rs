//! The operands of a product on several ranks: read by the root and distributed by rows, or a file for each rank.

use super::{Operands, Product};
use crate::args::{RANK, of_rank};
use crate::files::product_precision;
use crate::input::Reader;
use crate::session::Session;
use rug::Float;
use std::path::Path;
use sunzi::advanced::tile::{RankGrid, TileMap};
use sunzi::comm::{Transport, agreed};
use sunzi::distributed::{DistMatrix, Team, scatter_rows};
use sunzi::{Error, Matrix, MatrixView, Op, Result};
use sunzi_session::session::ROOT;

/// The operands of one rank.
pub struct RankInputs {
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

impl RankInputs {
    /// Reads and shares out. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn read(session: &Session, config: &Product, team: &Team) -> Result<RankInputs> {
        let world = team.world();
        let sources = match &config.operands {
            Operands::Syrk { p, op, weights, .. } => {
                let weights = weights.iter().map(|path| Source { path, transposed: false });
                std::iter::once(Source { path: p, transposed: *op == Op::Transpose }).chain(weights).collect()
            }
            Operands::Gemm { a, b, op_a, op_b } => vec![
                Source { path: a, transposed: *op_a == Op::NoTranspose },
                Source { path: b, transposed: *op_b == Op::Transpose },
            ],
        };
        let per_rank = sources.iter().map(|source| is_per_rank(source.path)).collect::<Vec<_>>();
        if per_rank.iter().any(|&each| each != per_rank[0]) {
            let message = format!(
                "only one operand has {RANK} in its name: either both operands or none must have one file for each rank"
            );
            return Err(Error::InvalidArgument(message));
        }
        let precision_bits = precision(config, &sources[0], world, per_rank[0])?;
        let (alpha, beta) = config.scalars(precision_bits)?;
        let rows = Rows { world, files: config.reader(session, precision_bits) };
        let read = |source: &Source<'_>| if per_rank[0] { rows.own(source) } else { rows.shared(source) };
        let operands = sources.iter().map(read).collect::<Result<Vec<_>>>()?;
        let accumulate = config.choices.accumulate.as_ref().map(|path| rows.tiles(path, config)).transpose()?;
        Ok(RankInputs { operands, alpha, beta, accumulate, precision_bits })
    }
}

/// Whether `path` names a file for each rank.
pub fn is_per_rank(path: &Path) -> bool {
    path.to_string_lossy().contains(RANK)
}

impl Source<'_> {
    /// The matrix with the contracted index as rows.
    fn by_rows<'m>(&self, matrix: &'m Matrix) -> MatrixView<'m> {
        if self.transposed { matrix.transposed() } else { matrix.view() }
    }
}

/// The precision given, else the one that the first file states: that of the root, or all ranks' own.
fn precision(config: &Product, source: &Source<'_>, world: &dyn Transport, per_rank: bool) -> Result<u32> {
    let (given, exact_integers) = (config.choices.precision.bits, config.choices.exact_integers);
    let look = || product_precision(given, &of_rank(source.path, world.rank()), exact_integers);
    let found = if per_rank || world.rank() == ROOT { look() } else { Ok(0) };
    let bits = agreed(world, found)?;
    let mut of_root = [u64::from(bits)];
    world.broadcast(ROOT, &mut of_root)?;
    // With a file for each rank, different precisions are for the operation to refuse.
    Ok(if per_rank { bits } else { of_root[0] as u32 })
}

/// Reads operands on all ranks, each function collectively.
struct Rows<'a> {
    world: &'a dyn Transport,
    files: Reader<'a>,
}

impl Rows<'_> {
    /// The rows in this rank's own file.
    fn own(&self, source: &Source<'_>) -> Result<Matrix> {
        let read = self.files.matrix(&of_rank(source.path, self.world.rank()));
        let rows = read.and_then(|matrix| if source.transposed { matrix.transposed().to_matrix() } else { Ok(matrix) });
        agreed(self.world, rows)
    }

    /// This rank's even share of the rows of a file that the root reads.
    fn shared(&self, source: &Source<'_>) -> Result<Matrix> {
        let whole = self.on_root(|| self.files.matrix(source.path))?;
        scatter_rows(self.world, ROOT, whole.as_ref().map(|matrix| source.by_rows(matrix)))
    }

    /// This rank's tiles of a matrix that the root reads, as the result of a product has them by default.
    fn tiles(&self, path: &Path, config: &Product) -> Result<DistMatrix> {
        let whole = self.on_root(|| config.addend(&self.files, path))?;
        let mut words = whole.as_ref().map_or([0; 2], |matrix| [matrix.rows() as u64, matrix.cols() as u64]);
        self.world.broadcast(ROOT, &mut words)?;
        let [rows, cols] = words.map(|word| word as usize);
        let grid = RankGrid::for_ranks(self.world.size());
        let tile_size = sunzi::advanced::plan::default_tile_size(rows.max(cols), grid);
        let triangle = match config.operands {
            Operands::Syrk { uplo, .. } => Some(uplo),
            Operands::Gemm { .. } => None,
        };
        let map = TileMap { rows, cols, tile_size, grid, triangle };
        DistMatrix::scatter(self.world, ROOT, whole.as_ref(), map, self.files.precision_bits())
    }

    fn on_root(&self, read: impl FnOnce() -> Result<Matrix>) -> Result<Option<Matrix>> {
        agreed(self.world, (self.world.rank() == ROOT).then(read).transpose())
    }
}
