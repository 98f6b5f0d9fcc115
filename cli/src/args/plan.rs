//! Options of `plan`.

use super::EngineArgs;
use super::values::{accuracy, positive, precision, size};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use sunzi::distributed::ClusterShape;
use sunzi::{Accuracy, Error, Result};
use sunzi_session::engine::check_reach;

/// The end of `sunzi plan --help`.
const EXAMPLES: &str = "Without an operation, the command plans a syrk with the options of `sunzi plan syrk`.\n\n\
    Examples:\n  \
    sunzi plan cholesky --rows 1e4 --precision 512 --memory 8G\n  \
    sunzi plan solve --rows 1e4 --cols 100 --precision 512\n  \
    sunzi plan cholesky --nodes 4 --ranks-per-node 16 --rows 5e4 --precision 512\n  \
    sunzi plan --nodes 8 --ranks-per-node 128 --rows 1e5 --cols 1e4 \\\n      \
    --precision 1024 --memory 200G";

/// The end of `sunzi plan cholesky --help`.
const CHOLESKY: &str = "Examples:\n  sunzi plan cholesky --rows 1e4 --precision 512 --memory 8G\n  \
    sunzi plan cholesky --rows 5e4 --precision 512 --nodes 4 --ranks-per-node 16\n  \
    sunzi plan cholesky --rows 1e5 --precision 512 --accuracy norm --storage \\\n      --memory 16G";

/// The end of `sunzi plan solve --help`.
const SOLVE: &str = "Examples:\n  sunzi plan solve --rows 1e4 --cols 100 --precision 512 --refine-from 300\n  \
    sunzi plan solve --rows 5e4 --cols 100 --precision 512 --nodes 4 \\\n      --ranks-per-node 16 --memory 180G\n  \
    sunzi plan solve --rows 1e5 --cols 10 --precision 512 --accuracy norm \\\n      --storage --memory 16G";

/// `sunzi plan`: a syrk unless another operation is given.
#[derive(Debug)]
pub struct Plan(pub PlanOperation);

impl Args for Plan {
    fn augment_args(command: Command) -> Command {
        let command = PlanOperation::augment_subcommands(PlanSyrk::augment_args(command)).arg_required_else_help(true);
        command.args_conflicts_with_subcommands(true).subcommand_negates_reqs(true).after_help(EXAMPLES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Plan::augment_args(command)
    }
}

impl FromArgMatches for Plan {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Plan, clap::Error> {
        match matches.subcommand_name() {
            Some(_) => PlanOperation::from_arg_matches(matches).map(Plan),
            None => PlanSyrk::from_arg_matches(matches).map(|args| Plan(PlanOperation::Syrk(args))),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Plan::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The operation to plan.
#[derive(Subcommand, Clone, Debug)]
pub enum PlanOperation {
    /// Product Q = P^T P, on this machine or on a cluster.
    #[command(after_help = "Example:\n  sunzi plan syrk --rows 1e5 --cols 1e4 --precision 1024 --memory 64G")]
    Syrk(PlanSyrk),
    /// Product C = A^T B.
    #[command(after_help = "Example:\n  sunzi plan gemm --rows 5000 --cols 2000 --result-rows 300 --precision 512")]
    Gemm(PlanGemm),
    /// Cholesky factorisation A = L L^T, on this machine or on a cluster, in memory or out of core.
    #[command(after_help = CHOLESKY)]
    Cholesky(PlanCholesky),
    /// LU factorisation P A = L U of any square A.
    #[command(after_help = "Example:\n  sunzi plan lu --rows 3000 --precision 512 --memory 8G")]
    Lu(PlanMatrix),
    /// Triangular system T X = B.
    #[command(after_help = "Example:\n  sunzi plan trsm --rows 5000 --cols 100 --precision 512")]
    Trsm(PlanTrsm),
    /// System A X = B for a symmetric positive definite A or, with --general, for any square A, including its
    /// factorisation, on this machine or on a cluster, in memory or out of core.
    #[command(after_help = SOLVE)]
    Solve(PlanSystem),
    /// Inverse of a symmetric positive definite A or, with --general, of any square A, including its factorisation.
    #[command(after_help = "Example:\n  sunzi plan inverse --rows 3000 --precision 512")]
    Inverse(PlanInverse),
    /// Proven interval for an extreme eigenvalue of a symmetric A.
    #[command(after_help = "Example:\n  sunzi plan eigenvalue --rows 2000 --precision 256 --memory 8G")]
    Eigenvalue(PlanEigenvalue),
}

/// The accuracy of entries, and the bits that it needs.
#[derive(Args, Clone, Copy, Debug)]
pub struct PlanPromise {
    /// Error bound of each entry: a small multiple of 2^-B times the sum of the absolute values of its terms
    /// (entrywise, also called componentwise), or times a product of norms of rows and columns (norm).
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy())]
    pub accuracy: Accuracy,
    /// Extra bits for the range of exponents with --accuracy entrywise; the report of an earlier run states how many it
    /// needed [default: enough for entries of equal magnitude or, in a factorisation, for a Gram matrix].
    #[arg(long, value_name = "G")]
    pub range_bits: Option<u32>,
}

/// Options for the estimate of time.
#[derive(Args, Clone, Copy, Debug)]
pub struct PlanTime {
    /// Do not estimate the time, which needs small test runs of less than a second in total.
    #[arg(long)]
    pub no_time: bool,
}

impl PlanPromise {
    fn check(&self) -> Result<()> {
        match (self.range_bits, self.accuracy) {
            (Some(bits), Accuracy::Norm) => {
                Err(Error::InvalidArgument(format!("--range-bits {bits} requires --accuracy entrywise")))
            }
            _ => Ok(()),
        }
    }
}

/// The cluster of a plan.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "On a cluster")]
pub struct PlanCluster {
    /// Number of nodes of a cluster, each of which has the limit of --memory [default: 1 with --ranks-per-node].
    #[arg(long, value_name = "N", value_parser = positive)]
    nodes: Option<usize>,
    /// Ranks on each node of a cluster [default: 1 with --nodes]. Each rank has the threads of --threads, or 1.
    #[arg(long, value_name = "R", value_parser = positive)]
    ranks_per_node: Option<usize>,
}

impl PlanCluster {
    /// The cluster, if one is given, with the threads of each rank.
    pub fn shape(&self, threads: Option<usize>) -> Option<ClusterShape> {
        (self.nodes.is_some() || self.ranks_per_node.is_some()).then(|| ClusterShape {
            nodes: self.nodes.unwrap_or(1),
            ranks_per_node: self.ranks_per_node.unwrap_or(1),
            threads: threads.unwrap_or(1),
        })
    }
}

/// The place of the tiles of a factorisation.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Larger than memory")]
pub struct PlanStorage {
    /// Plan a run with --storage, whose tiles are in files; it requires --accuracy norm.
    #[arg(long)]
    pub storage: bool,
}

impl PlanStorage {
    fn check(self, accuracy: Accuracy) -> Result<()> {
        match self.storage && accuracy != Accuracy::Norm {
            true => Err(Error::InvalidArgument("--storage requires --accuracy norm".into())),
            false => Ok(()),
        }
    }
}

/// `sunzi plan syrk`.
#[derive(Args, Clone, Debug)]
pub struct PlanSyrk {
    /// Number of rows of the operands (K); each entry of the product is a sum of K terms.
    #[arg(long, value_name = "K", value_parser = size)]
    pub rows: usize,
    /// Number of columns of P (N).
    #[arg(long, value_name = "N", value_parser = size)]
    pub cols: usize,
    /// Bits of every significand.
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: u32,
    /// The rows have weights: plan P^T diag(d) P.
    #[arg(long, conflicts_with_all = ["nodes", "ranks_per_node"])]
    pub weights: bool,
    /// Include the redundant prime of the self-check.
    #[arg(long)]
    pub self_check: bool,
    #[command(flatten)]
    pub promise: PlanPromise,
    #[command(flatten)]
    pub time: PlanTime,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub cluster: PlanCluster,
}

/// `sunzi plan gemm`.
#[derive(Args, Clone, Debug)]
pub struct PlanGemm {
    /// Number of rows of the operands (K); each entry of the product is a sum of K terms.
    #[arg(long, value_name = "K", value_parser = size)]
    pub rows: usize,
    /// Number of columns of the result (N).
    #[arg(long, value_name = "N", value_parser = size)]
    pub cols: usize,
    /// Number of rows of the result (M) [default: as --cols].
    #[arg(long, value_name = "M", value_parser = size)]
    pub result_rows: Option<usize>,
    /// Bits of every significand.
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: u32,
    /// Include the redundant prime of the self-check.
    #[arg(long)]
    pub self_check: bool,
    #[command(flatten)]
    pub promise: PlanPromise,
    #[command(flatten)]
    pub time: PlanTime,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// `sunzi plan cholesky`.
#[derive(Args, Clone, Debug)]
pub struct PlanCholesky {
    #[command(flatten)]
    pub factor: PlanFactor,
    #[command(flatten)]
    pub cluster: PlanCluster,
    #[command(flatten)]
    pub storage: PlanStorage,
}

/// `sunzi plan inverse`.
#[derive(Args, Clone, Debug)]
pub struct PlanInverse {
    /// Plan for any square A, factored by LU with partial pivoting.
    #[arg(long, conflicts_with = "tile")]
    pub general: bool,
    #[command(flatten)]
    pub factor: PlanFactor,
}

/// The factorisation of a symmetric matrix.
#[derive(Args, Clone, Debug)]
pub struct PlanFactor {
    /// Number of rows of a tile [default: chosen by size and precision].
    #[arg(long, value_name = "NB", value_parser = positive)]
    pub tile: Option<usize>,
    #[command(flatten)]
    pub matrix: PlanMatrix,
}

/// A matrix to factor: `sunzi plan lu`, and what other plans share with it.
#[derive(Args, Clone, Debug)]
pub struct PlanMatrix {
    /// Number of rows of the matrix.
    #[arg(long, value_name = "K", value_parser = size)]
    pub rows: usize,
    /// Bits of every significand.
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: u32,
    #[command(flatten)]
    pub promise: PlanPromise,
    #[command(flatten)]
    pub time: PlanTime,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// `sunzi plan eigenvalue`.
#[derive(Args, Clone, Debug)]
pub struct PlanEigenvalue {
    /// Number of rows of the matrix.
    #[arg(long, value_name = "K", value_parser = size)]
    pub rows: usize,
    /// Precision B: the relative width of the interval is about 2^-B, and the entries of the matrix have B bits.
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: u32,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// `sunzi plan solve`.
#[derive(Args, Clone, Debug)]
pub struct PlanSystem {
    /// Factor at this precision in bits, and refine the solution to the full precision.
    #[arg(long, value_name = "BITS", value_parser = precision,
        conflicts_with_all = ["accuracy", "range_bits", "nodes", "ranks_per_node", "storage"])]
    pub refine_from: Option<u32>,
    /// Plan for any square A, factored by LU with partial pivoting.
    #[arg(long, conflicts_with_all = ["refine_from", "nodes", "ranks_per_node", "storage"])]
    pub general: bool,
    #[command(flatten)]
    pub solve: PlanSolve,
    #[command(flatten)]
    pub cluster: PlanCluster,
    #[command(flatten)]
    pub storage: PlanStorage,
}

/// `sunzi plan trsm`.
#[derive(Args, Clone, Debug)]
pub struct PlanTrsm {
    /// Number of rows of the matrix.
    #[arg(long, value_name = "K", value_parser = size)]
    pub rows: usize,
    /// Number of right-hand sides.
    #[arg(long, value_name = "M", value_parser = size)]
    pub cols: usize,
    /// Bits of every significand.
    #[arg(long, short, value_name = "B", value_parser = precision)]
    pub precision: u32,
    /// Error bound of each entry of the residual: a small multiple of 2^-B times the sum of the absolute values of its
    /// terms (entrywise, also called componentwise), or times a product of norms (norm).
    #[arg(long, value_name = "PROMISE", default_value = "entrywise", value_parser = accuracy())]
    pub accuracy: Accuracy,
    #[command(flatten)]
    pub time: PlanTime,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// The sizes of `sunzi plan solve`.
#[derive(Args, Clone, Debug)]
pub struct PlanSolve {
    /// Number of right-hand sides.
    #[arg(long, value_name = "M", value_parser = size)]
    pub cols: usize,
    #[command(flatten)]
    pub matrix: PlanMatrix,
}

impl Plan {
    /// Checks precision and kernel together.
    ///
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`], [`sunzi::Error::Precision`].
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            PlanOperation::Syrk(args) => {
                args.promise.check()?;
                check_reach(args.precision, args.engine.kernel)
            }
            PlanOperation::Gemm(args) => {
                args.promise.check()?;
                check_reach(args.precision, args.engine.kernel)
            }
            PlanOperation::Cholesky(PlanCholesky { factor, storage, .. }) => {
                factor.matrix.promise.check()?;
                storage.check(factor.matrix.promise.accuracy)
            }
            PlanOperation::Inverse(args) => args.factor.matrix.promise.check(),
            PlanOperation::Lu(args) => args.promise.check(),
            PlanOperation::Solve(PlanSystem { solve, storage, .. }) => {
                solve.matrix.promise.check()?;
                storage.check(solve.matrix.promise.accuracy)
            }
            PlanOperation::Eigenvalue(args) => check_reach(args.precision, args.engine.kernel),
            PlanOperation::Trsm(args) => check_reach(args.precision, args.engine.kernel),
        }
    }
}
