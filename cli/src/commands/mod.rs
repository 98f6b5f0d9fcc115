//! One file for each command; those of the laboratory are called directly.

mod above_disk;
mod bench;
mod compare;
mod convert;
mod demo;
mod eigenvalue;
mod factor;
mod file_info;
mod gen_matrix;
mod info;
mod manual;
mod observe;
mod one_rank;
mod options_page;
mod plan;
mod product;
mod sdp;
mod sdp_certificate;
mod sdp_folders;
mod sdp_plot;
mod solve_above_disk;
mod trsm;
mod verify;
mod verify_system;

pub use options_page::options_page;

use crate::args::{Command, Factor, Global, GpuCheck, Simulation, Soak, VerifyOperation};
use crate::operands::NamedOperands;
use crate::ranks::Ranks;
use crate::session::Session;
use crate::signals::{Mode, in_mode};
use sunzi::Result;
use sunzi::comm::Transport;
use sunzi_lab::{gpu_check, simulate};

/// Carries out a command; the exit code is 0 unless the command returns another.
///
/// # Errors
/// The errors of the command.
pub fn run(global: Global, command: Command, all: &Ranks) -> Result<u8> {
    let together = all.several().filter(|_| is_shared(&command));
    if together.is_none() && !all.is_root() {
        return Ok(0); // the root does it alone
    }
    let mut session = Session::begin(global, all.is_root(), together)?;
    if let (Some(world), None) = (all.several(), together) {
        one_rank::remark(&command, world.size()).into_iter().for_each(|remark| session.note(&remark));
    }
    let operands = NamedOperands::of(&command);
    carry_out(&mut session, command, all, together).map_err(|error| operands.named_in(error))
}

/// Carries out a command in its session, on the ranks that work `together`.
fn carry_out(session: &mut Session, command: Command, all: &Ranks, together: Option<&dyn Transport>) -> Result<u8> {
    let outcome = match command {
        Command::Compare(args) => return compare::run(session, &args).inspect(|_| session.end()),
        Command::Syrk(args) => product::run(session, &args.into(), together),
        Command::Gemm(args) => product::run(session, &args.into(), together),
        Command::Info { files } if files.is_empty() => info::run(session),
        Command::Info { files } => file_info::run(session, &files),
        Command::Gen(args) => gen_matrix::run(session, &args),
        Command::Cholesky(args) if args.storage.directory.is_some() => factor::run_above_disk(session, &args, together),
        Command::Cholesky(args) => factor::run(session, &args.into(), together),
        Command::Lu(args) => factor::run_lu(session, &args),
        Command::Solve(args) if args.storage.directory.is_some() => solve_above_disk::solve(session, &args, together),
        Command::Solve(args) if args.general => factor::run_general(session, &args.into()),
        Command::Inverse(args) if args.general => factor::run_general(session, &args.into()),
        Command::Solve(args) => match args.sweep.clone() {
            Some(picture) => factor::sweep(session, &args.into(), &picture),
            None => factor::run(session, &args.into(), together),
        },
        Command::Inverse(args) => factor::run(session, &args.into(), together),
        Command::Trsm(args) if args.storage.directory.is_some() => solve_above_disk::trsm(session, &args, together),
        Command::Trsm(args) => trsm::run(session, &args),
        Command::Eigenvalue(args) => eigenvalue::run(session, &args),
        Command::Sdp(args) => return sdp::run(session, &args, together).inspect(|_| session.end()),
        Command::Verify(args) => match args.operation {
            VerifyOperation::Syrk(args) => verify::run(session, &args.into()),
            VerifyOperation::Gemm(args) => verify::run(session, &args.into()),
            VerifyOperation::Cholesky(args) => verify_system::cholesky(session, &args),
            VerifyOperation::Lu(args) => verify_system::lu(session, &args),
            VerifyOperation::Solve(args) => verify_system::solve(session, &args),
            VerifyOperation::Trsm(args) => verify_system::trsm(session, &args),
            VerifyOperation::Inverse(args) => verify_system::inverse(session, &args),
            VerifyOperation::Sdp(args) => sdp_certificate::check(session, &args),
        },
        Command::Convert(args) => convert::run(session, &args),
        Command::Plan(args) => plan::run(session, &args.0),
        Command::Bench(args) => bench::run(session, args, all, together),
        Command::GpuCheck(args) => in_mode(Mode::Computing, || gpu_check::run(session, &devices_to_check(args))),
        Command::Simulate(args) => match args.what {
            Simulation::Cholesky(args) => simulate::cholesky(session, &args.options()?),
            Simulation::Soak(Soak { first, seeds }) => simulate::soak(session, &simulate::Soak { first, seeds }),
        },
        Command::Demo(engine) => demo::run(session, &engine),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { words } => manual::page(&words),
    };
    outcome.map(|()| session.end()).map(|()| 0)
}

/// Whether all ranks work on a command together.
fn is_shared(command: &Command) -> bool {
    match command {
        Command::Syrk(_) | Command::Gemm(_) => true,
        Command::Cholesky(args) => is_factored_together(&args.factor),
        Command::Solve(args) => {
            let is_plain = args.refine_from.is_none() && args.sweep.is_none() && !args.factor.log_det;
            is_plain && !args.general && is_factored_together(&args.factor)
        }
        Command::Trsm(args) => args.storage.directory.is_some(),
        Command::Bench(args) => bench::is_shared(args),
        Command::Sdp(args) => !args.plan,
        _ => false,
    }
}

/// Whether a factorisation requests nothing that only one process can compute.
fn is_factored_together(factor: &Factor) -> bool {
    !factor.condition && !factor.digits.certified && factor.precision.automatic().is_none()
}

fn devices_to_check(args: GpuCheck) -> gpu_check::GpuCheck {
    gpu_check::GpuCheck {
        devices: args.device,
        threads: args.threads,
        quick: args.quick,
        rows: args.rows,
        cols: args.cols,
        precision_bits: args.precision,
    }
}
