//! Remarks on commands that were started on several ranks and run on the first of them.
//!
//! Independent of: how ranks work together.

use super::bench;
use crate::args::{Command, Factor};

/// A remark for the user of `ranks` ranks whose command runs on the first one; `None` for short work.
pub fn remark(command: &Command, ranks: usize) -> Option<String> {
    let OneRank { what, remedy } = reason(command)?;
    Some(format!("{what} runs in one process: the first of {ranks} ranks computes, the others wait; {remedy}"))
}

/// Part of a command that only one process can do.
struct OneRank {
    /// The option or the command.
    what: &'static str,
    /// Advice.
    remedy: &'static str,
}

/// Instead of several ranks.
const THREADS: &str = "start sunzi without mpirun, with --threads for all processors of the machine";

fn reason(command: &Command) -> Option<OneRank> {
    let of = |what, remedy| Some(OneRank { what, remedy });
    match command {
        Command::Cholesky(args) => factor_reason(&args.factor),
        Command::Lu(_) => of("lu", THREADS),
        Command::Solve(args) if args.general => of("--general", THREADS),
        Command::Inverse(args) if args.general => of("--general", THREADS),
        Command::Solve(args) if args.sweep.is_some() => of("--sweep", THREADS),
        Command::Solve(args) if args.refine_from.is_some() => {
            of("--refine-from", "without it all ranks factor at the full precision and solve")
        }
        Command::Solve(args) if args.factor.log_det => of(
            "solve with --log-det",
            "without --log-det all ranks compute the solution; sunzi cholesky --log-det uses all ranks too",
        ),
        Command::Solve(args) => factor_reason(&args.factor),
        Command::Inverse(_) => {
            of("inverse", "sunzi solve A.mtx I.mtx, where I.mtx is the identity matrix, uses all ranks")
        }
        Command::Trsm(_) => of("trsm without --storage", "sunzi trsm --storage DIR uses all ranks"),
        Command::Eigenvalue(_) => of("eigenvalue", THREADS),
        Command::Sdp(args) if args.plan => None,
        Command::Verify(_) => of("verify", THREADS),
        Command::Demo(_) => of("demo", THREADS),
        Command::GpuCheck(_) => of("gpu-check", "start sunzi without mpirun: it checks all devices of the machine"),
        Command::Bench(args) => of(bench::name(args), "sunzi bench syrk, cholesky, trsm, solve and step use all ranks"),
        Command::Syrk(_) | Command::Gemm(_) | Command::Sdp(_) => None,
        Command::Info { .. } | Command::Gen(_) | Command::Convert(_) | Command::Compare(_) | Command::Plan(_) => None,
        Command::Simulate(_) | Command::Completions { .. } | Command::Man { .. } => None,
    }
}

/// The first option of a factorisation that only one process can serve.
fn factor_reason(factor: &Factor) -> Option<OneRank> {
    let given = [
        (factor.condition, "--condition", "without it all ranks factor the matrix"),
        (
            factor.digits.certified,
            "--certified",
            "without it all ranks compute the answer, whose residual sunzi verify checks in one process",
        ),
        (
            factor.precision.automatic().is_some(),
            factor.precision.automatic_option(),
            "give --precision with a number of bits for a run on all ranks",
        ),
    ];
    given.into_iter().find(|(given, ..)| *given).map(|(_, what, remedy)| OneRank { what, remedy })
}
