//! Products of matrices whose rows lie on many ranks: the verbs, their options, their contract.

mod call;
mod devices;
pub(crate) mod plan;

use crate::comm::{Reduction, Said, Say, Transport, agree, agreed, check_alike, say_fields};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{MatrixView, Op, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::product::clock::RankSpan;
use crate::ops::product::plan::Plan;
use crate::ops::product::problem::{Accuracy, Hooks, in_order};
use crate::ops::product::report::Report;
use crate::ops::product::weights::{WeightedOperand, weights_of};
use crate::options::setters;
use crate::site::Team;
use crate::tile::RankGrid;
use call::RankProblem;
use rug::Float;

/// Options of a distributed product; the same on all ranks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DistOptions<'a> {
    /// The triangle of a SYRK's result that is computed and stored.
    pub uplo: Uplo,
    /// Operands are integers and the result is exact; `precision_bits` is then only a lower bound of the precision of
    /// the result.
    pub exact_integers: bool,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A matrix to add, distributed over the ranks of the team: the result is `alpha * product + beta * accumulate`,
    /// rounded once. For a SYRK the matrix must be symmetric: a triangle, or a whole matrix, whose symmetry is checked.
    /// A matrix in other tiles than the result is redistributed first, which needs memory in addition to the limit.
    pub accumulate: Option<&'a DistMatrix>,
    /// Rows and columns of a tile of the result, a multiple of 8; with `None` they are chosen. It does not affect the
    /// bits of the result.
    pub tile_size: Option<usize>,
    /// The grid of ranks that owns the result; with `None` it is chosen. It does not affect the bits of the result.
    pub grid: Option<RankGrid>,
    /// A function that receives the plan before anything is allocated; ranks may have different functions.
    pub on_plan: Option<PlanHook<'a>>,
    /// Faults that tests inject; they receive the window of each node before residues of nodes are summed.
    #[doc(hidden)]
    pub hooks: Hooks<'a>,
}

setters! { new DistOptions<'a> {
    uplo: Uplo,
    exact_integers: bool,
    accuracy: Accuracy,
    alpha: impl Into<Option<&'a Float>>,
    beta: impl Into<Option<&'a Float>>,
    accumulate: impl Into<Option<&'a DistMatrix>>,
    tile_size: impl Into<Option<usize>>,
    grid: impl Into<Option<RankGrid>>,
    on_plan: impl Into<Option<PlanHook<'a>>>,
    hooks: Hooks<'a>,
} }

say_fields! { DistOptions<'_> {
    uplo,
    exact_integers,
    accuracy,
    alpha,
    beta,
    accumulate,
    tile_size,
    grid,
    hooks,
} apart { on_plan } }

/// Each rank has its own function that damages a window, so only its presence is compared.
impl Say for Hooks<'_> {
    fn say(&self, said: &mut Said) {
        let Hooks { fault, cut, device_cut } = self;
        (fault.is_some(), cut, device_cut).say(said);
    }
}

/// A matrix in tiles is compared by the values that are equal on all its ranks.
impl Say for DistMatrix {
    fn say(&self, said: &mut Said) {
        (self.map(), self.precision_bits()).say(said);
    }
}

/// A function that receives the plan of a call.
#[derive(Clone, Copy)]
pub struct PlanHook<'a>(pub &'a dyn Fn(&Plan));

impl std::fmt::Debug for PlanHook<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PlanHook")
    }
}

/// One rank's part of a result, with the common report.
#[derive(Debug)]
#[non_exhaustive]
pub struct DistOutcome {
    /// The tiles of this rank.
    pub result: DistMatrix,
    /// The report of the call; the same on all ranks.
    pub report: Report,
    /// The phases of this rank, in nanoseconds since all ranks began.
    pub spans: Vec<RankSpan>,
}

/// `Q := alpha * P^T P + beta * C` for a matrix `P` whose rows lie on the ranks of `team`. Collective.
///
/// Shapes: `blocks` are this rank's rows of P, `K_i x N` each; the order of blocks and ranks does not matter. A rank
/// may have no blocks, and a block may have no rows. The result is `N x N`: one triangle in tiles over all ranks, which
/// represents the symmetric matrix. Accuracy and bits: as [`crate::syrk_with`] on all the rows. Memory: the context's
/// limit holds for each node, all its ranks together; without a limit, the free memory of the machine. Cost: as
/// [`crate::syrk_with`], divided among all workers; each node sends the residues of the result once to the others, with
/// as many bits as their moduli have. Devices: if the ranks' contexts have devices, each rank multiplies its rows on
/// its own devices, and computes the entries of its tiles there; ranks of a node then also exchange residues. All ranks
/// use the moduli of one kernel.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistOptions, Team, TeamOptions};
/// use sunzi::{Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let mut team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let rows = Matrix::from_f64s(1, 2, 128, &[[1.0, 2.0], [3.0, 4.0]][rank.rank()])?; // this rank's rows of P
///     let q = distributed::syrk(&ctx, &mut team, &[rows.view()], 128, &DistOptions::new())?;
///     q.result.gather(team.world(), 0) // the whole matrix on rank 0
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [10.0, 14.0, 14.0, 20.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::syrk_with`], on every rank, as [`crate::Error::Rank`] if it occurred on one rank: rows and columns then
/// refer to the block that the rank at fault passed. [`crate::Error::InvalidArgument`] if ranks differ in columns,
/// precision, options or kernel, including the kernel of devices; [`crate::Error::Transport`].
pub fn syrk(
    ctx: &Context,
    team: &mut Team,
    blocks: &[MatrixView<'_>],
    precision_bits: u32,
    options: &DistOptions<'_>,
) -> Result<DistOutcome> {
    check_addend(team.world(), options.accumulate)?;
    let problem = RankProblem { left: blocks, right: None, half: None, precision_bits, options };
    let outcome = call::run(ctx, team, &problem)?;
    Ok(DistOutcome { result: outcome.result.into_symmetric()?, ..outcome })
}

/// `Q := alpha * P^T diag(d) P + beta * C` for a matrix `P` whose rows, with their weights, lie on the ranks of `team`.
/// Collective.
///
/// Shapes: `blocks` are this rank's rows of P, and `weights` the weights of the rows of each block, as a column or a
/// row. The weighted rows of a rank, as in [`crate::weighted_gram_with`], are not counted by the memory limit. Accuracy
/// and bits: as [`crate::weighted_gram_with`] on all the rows. Otherwise as [`syrk`].
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistOptions, Team, TeamOptions};
/// use sunzi::{Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let mut team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let rows = Matrix::from_f64s(1, 2, 128, &[[1.0, 2.0], [3.0, 4.0]][rank.rank()])?; // this rank's rows of P
///     let d = Matrix::from_f64s(1, 1, 128, &[[10.0, -1.0][rank.rank()]])?;
///     let (p, d) = ([rows.view()], [d.view()]);
///     let q = distributed::weighted_gram(&ctx, &mut team, &p, &d, 128, &DistOptions::new())?;
///     q.result.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [1.0, 8.0, 8.0, 24.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syrk`]; [`crate::Error::ShapeMismatch`] if the number of weights of a block differs from that of its rows.
pub fn weighted_gram(
    ctx: &Context,
    team: &mut Team,
    blocks: &[MatrixView<'_>],
    weights: &[MatrixView<'_>],
    precision_bits: u32,
    options: &DistOptions<'_>,
) -> Result<DistOutcome> {
    check_addend(team.world(), options.accumulate)?;
    let weigh = || {
        if blocks.len() != weights.len() {
            let message = format!("there are {} blocks of P, but {} blocks of weights", blocks.len(), weights.len());
            return Err(Error::InvalidArgument(message));
        }
        let each = blocks
            .iter()
            .zip(weights)
            .map(|(&block, &d)| WeightedOperand::new(ctx, block, weights_of(d, block.rows())?, options.exact_integers));
        each.collect::<Result<Vec<_>>>()
    };
    let operands = agreed(team.world(), weigh())?;
    let views = operands.iter().map(WeightedOperand::views);
    let (x, y): (Vec<_>, Vec<_>) = views.map(|[x, y]| (x, y)).unzip();
    let [left, right] = in_order([&x[..], &y], options.uplo);
    let (right, half) = (Some(right), Some(options.uplo));
    let problem = RankProblem { left, right, half, precision_bits, options };
    let outcome = call::run(ctx, team, &problem)?;
    Ok(DistOutcome { result: outcome.result.into_symmetric()?, ..outcome })
}

/// Refuses a whole matrix to add that is not symmetric. Collective; a later check reports ranks that pass different
/// matrices.
fn check_addend(world: &dyn Transport, addend: Option<&DistMatrix>) -> Result<()> {
    let whole = addend.filter(|matrix| matrix.map().triangle.is_none() && matrix.map().rows == matrix.map().cols);
    let mut lacks = [u64::from(whole.is_none())];
    world.all_reduce(Reduction::Max, &mut lacks)?;
    match whole {
        Some(matrix) if lacks[0] == 0 => matrix.check_symmetric(world),
        _ => Ok(()),
    }
}

/// `C := alpha * A^T B + beta * C0` for matrices whose rows lie on the ranks of `team`; each rank has the rows with the
/// same indices of both matrices. Collective.
///
/// Shapes: `blocks.0` are this rank's rows of A, `blocks.1` its rows of B; the two blocks of a pair have equal numbers
/// of rows. Otherwise as [`syrk`].
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistOptions, Team, TeamOptions};
/// use sunzi::{Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let mut team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let a = Matrix::from_f64s(1, 2, 128, &[[1.0, 3.0], [2.0, 4.0]][rank.rank()])?; // this rank's rows
///     let b = Matrix::from_f64s(1, 1, 128, &[[5.0, 6.0][rank.rank()]])?;
///     let blocks = (&[a.view()][..], &[b.view()][..]);
///     let c = distributed::gemm_rows(&ctx, &mut team, blocks, 128, &DistOptions::new())?; // A^T B
///     c.result.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [17.0, 39.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syrk`]; [`crate::Error::ShapeMismatch`] if the blocks of a pair do not match.
pub fn gemm_rows(
    ctx: &Context,
    team: &mut Team,
    blocks: (&[MatrixView<'_>], &[MatrixView<'_>]),
    precision_bits: u32,
    options: &DistOptions<'_>,
) -> Result<DistOutcome> {
    let (left, right) = (blocks.0, Some(blocks.1));
    let problem = RankProblem { left, right, half: None, precision_bits, options };
    call::run(ctx, team, &problem)
}

/// `C := alpha * op(A) op(B) + beta * C0` for matrices in tiles over the ranks of `team`. Collective.
///
/// Each operand is first redistributed by the contracted index (every entry is sent once), then multiplied as in
/// [`gemm_rows`]; the redistributed operands, and messages of up to the size of a rank's tiles, are not counted by the
/// memory limit. Entries outside the triangle of an operand are 0, or the triangle's mirror image: see
/// [`DistMatrix::is_symmetric`].
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, DistOptions, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix, Op};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let mut team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `a`, the matrix [1 3; 2 4].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[1.0, 3.0], [2.0, 4.0]][rank.rank()])?;
/// #   let map = TileMap { triangle: None, ..TileMap::symmetric(2, 8) };
/// #   let a = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, map)?;
///     let operands = ((&a, Op::NoTranspose), (&a, Op::Transpose));
///     let c = distributed::gemm(&ctx, &mut team, operands.0, operands.1, 128, &DistOptions::new())?; // A A^T
///     c.result.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [10.0, 14.0, 14.0, 20.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`gemm_rows`]; [`crate::Error::InvalidArgument`] if ranks differ in shapes, tiles or transposes.
pub fn gemm(
    ctx: &Context,
    team: &mut Team,
    (a, op_a): (&DistMatrix, Op),
    (b, op_b): (&DistMatrix, Op),
    precision_bits: u32,
    options: &DistOptions<'_>,
) -> Result<DistOutcome> {
    let shape = |matrix: &DistMatrix, op: Op| match op {
        Op::NoTranspose => (matrix.map().rows, matrix.map().cols),
        Op::Transpose => (matrix.map().cols, matrix.map().rows),
    };
    let ((left_rows, left_cols), (right_rows, right_cols)) = (shape(a, op_a), shape(b, op_b));
    // All ranks return here together: the slices are collective.
    let fits = match left_cols == right_rows {
        true => Ok(()),
        false => Err(Error::ShapeMismatch { operation: "gemm", left_rows, left_cols, right_rows, right_cols }),
    };
    agree(team.world(), fits)?;
    let said = (op_a, a.map(), op_b, b.map());
    check_alike(team.world(), &said, "gemm: the ranks pass different shapes, tilings or transposes")?;
    let slice = |matrix: &DistMatrix, by_rows: bool| match by_rows {
        true => matrix.row_slice(team.world()),
        false => matrix.col_slice(team.world()),
    };
    let left = slice(a, op_a == Op::Transpose)?;
    let right = slice(b, op_b == Op::NoTranspose)?;
    let left = if op_a == Op::Transpose { left.view() } else { left.transposed() };
    let right = if op_b == Op::NoTranspose { right.view() } else { right.transposed() };
    gemm_rows(ctx, team, (&[left], &[right]), precision_bits, options)
}
