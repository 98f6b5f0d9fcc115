//! The integer part of tiles over planes: the layout of blocks of 8 rows and 8 columns, and how they are finished.

use crate::kernels::tiles::{FailedPivot, TileSource};
use crate::kernels::{BlockResidues, IntegerBlock, PlaneEngine};
use crate::math::pivot::RowWeight;
use rug::Integer;

/// Sums of products for one block, as residues, and the conversion to integers.
pub struct BlockSums<'a> {
    /// The kernel of the planes.
    pub engine: &'a dyn PlaneEngine,
    /// The residues.
    pub residues: BlockResidues<'a>,
    /// Memory for the integers.
    pub integers: &'a mut IntegerBlock,
    /// Scratch of the kernel.
    pub scratch: &'a mut [u64],
}

impl BlockSums<'_> {
    /// The sums as integers.
    pub fn reconstruct(&mut self) -> &IntegerBlock {
        self.engine.reconstruct(&self.residues, self.integers, self.scratch);
        self.integers
    }
}

/// A factored triangle of a block or a tile.
pub struct PivotedTriangle<'a, P> {
    /// Its words.
    pub words: &'a [u64],
    /// The pivots of its columns.
    pub pivots: &'a [P],
}

/// The integers of a block, and the steps of a factorisation or a solve within it.
///
/// A block has 8 rows and 8 columns, some of which may be padding. Before it is finished it contains integers of the
/// scaled matrix, at most `2^(2 working_bits + 2)`, afterwards entries of the factor or the solution.
pub trait BlockRules: Send + Sync {
    /// A pivot, ready for quotients.
    type Pivot: Send + Sync + 'static;

    /// The name of the form of tiles with these rules, which no other form has.
    const FORM: &'static str;

    /// Words of a block.
    fn block_words(&self) -> usize;
    /// Limbs of a finished entry.
    fn entry_limbs(&self) -> usize;
    /// Words of scratch that one call below needs.
    fn scratch_words(&self) -> usize;
    /// The largest number of bytes of a pivot.
    fn pivot_bytes(&self) -> u64;
    /// The largest number of bytes that a call allocates for itself.
    fn call_bytes(&self) -> u64;
    /// A pivot that is not 0 and at most `2^working_bits`.
    fn pivot(&self, value: &Integer) -> Self::Pivot;
    /// The rows of panel `panel` of a source, as `blocks` one after the other, which are dirty before; `finished` where
    /// its entries are finished ones, at most `2^working_bits`.
    fn load(&self, source: &TileSource<'_>, panel: usize, finished: bool, blocks: &mut [u64], scratch: &mut [u64]);
    /// Sets the finished entries of a column: sign bits and 8 magnitudes of as many limbs each.
    fn set(&self, block: &mut [u64], col: usize, signs: u8, magnitudes: &[u64], scratch: &mut [u64]);
    /// The finished entries of a column: sign bits, and magnitudes of [`BlockRules::entry_limbs`] limbs.
    fn get(&self, block: &[u64], col: usize, magnitudes: &mut [u64]) -> u8;
    /// Takes sums off the integers of the first `cols` columns of a block that is not finished.
    fn take_off(&self, block: &mut [u64], sums: &IntegerBlock, cols: usize, scratch: &mut [u64]);
    /// Takes the sums with these residues off, as [`BlockRules::take_off`]. By default as integers.
    fn take_residues_off(&self, block: &mut [u64], cols: usize, mut sums: BlockSums<'_>, scratch: &mut [u64]) {
        self.take_off(block, sums.reconstruct(), cols, scratch);
    }
    /// Writes the residues of the first `cols` columns of a finished block, 8 for each column, to a plane for each
    /// prime, where rules and engine have a short way; whether they have.
    fn to_residues(
        &self,
        _block: &[u64],
        _cols: usize,
        _engine: &dyn PlaneEngine,
        _planes: &mut [&mut [u64]],
        _scratch: &mut [u64],
    ) -> bool {
        false
    }
    /// Factors a block on the diagonal of as many columns as there are weights; its pivots are added to `pivots`. The
    /// entries above the diagonal become 0.
    ///
    /// # Errors
    /// The first pivot that is not positive, its column counted within the block; the rows before it are finished.
    fn factor(
        &self,
        block: &mut [u64],
        weights: &mut [RowWeight],
        pivots: &mut Vec<Self::Pivot>,
        scratch: &mut [u64],
    ) -> Result<(), FailedPivot>;
    /// Finishes a block below the triangle `above`, a block on the diagonal with a pivot for each column that counts.
    /// There is a weight for each row that does.
    fn solve(
        &self,
        block: &mut [u64],
        above: PivotedTriangle<'_, Self::Pivot>,
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    );
}
