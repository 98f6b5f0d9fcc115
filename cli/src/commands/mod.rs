//! One file for each command; those of the laboratory are called as they are.

mod bench;
mod compare;
mod convert;
mod demo;
mod factor;
mod gen_matrix;
mod info;
mod manual;
mod plan;
mod product;
mod ranks;
mod trsm;
mod verify;

use crate::args::{Command, Global, GpuCheck, Simulation, Soak, VerifyOperation};
use crate::ranks::Ranks;
use crate::session::Session;
use crate::signals::{Mode, in_mode};
use factor::Factoring;
use product::Product;
use sunzi::comm::window::WindowKind;
use sunzi::comm::{Transport, local};
use sunzi::{Error, Result};
use sunzi_lab::{gpu_check, simulate};

/// Carries out a command; the exit code is 0 unless the command says otherwise.
///
/// # Errors
/// Those of the command.
pub fn run(global: Global, command: Command, all: &Ranks) -> Result<u8> {
    let together = all.several().filter(|_| is_shared(&command));
    if together.is_none() && !all.is_root() {
        return Ok(0); // the root does it alone
    }
    let mut session = Session::begin(global, all.is_root(), together)?;
    if let (Some(world), None, true) = (all.several(), together, computes(&command)) {
        session.note(&format!("this command runs on the first of {} ranks alone", world.size()));
    }
    let session = &mut session;
    let outcome = match command {
        Command::Compare(args) => return compare::run(session, &args),
        Command::Syrk(args) => multiply(session, &args.into(), together),
        Command::Gemm(args) => multiply(session, &args.into(), together),
        Command::Info => info::run(session),
        Command::Gen(args) => gen_matrix::run(session, &args),
        Command::Cholesky(args) => factorise(session, &args.into(), together),
        Command::Solve(args) => factorise(session, &args.into(), together),
        Command::Inverse(args) => factorise(session, &args.into(), together),
        Command::Trsm(args) => trsm::run(session, &args),
        Command::Verify(args) => match args.operation {
            VerifyOperation::Syrk(args) => verify::run(session, &args.into()),
            VerifyOperation::Gemm(args) => verify::run(session, &args.into()),
            VerifyOperation::Cholesky(args) => factor::verify::run(session, &args),
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
    outcome.map(|()| 0)
}

/// Whether all ranks work on a command together.
fn is_shared(command: &Command) -> bool {
    match command {
        Command::Syrk(_) | Command::Gemm(_) => true,
        Command::Cholesky(args) => ranks::factor::is_shared(&args.factor),
        Command::Solve(args) => {
            args.refine_from.is_none() && !args.factor.log_det && ranks::factor::is_shared(&args.factor)
        }
        Command::Bench(args) => bench::is_shared(args),
        _ => false,
    }
}

fn multiply(session: &mut Session, config: &Product, together: Option<&dyn Transport>) -> Result<()> {
    match together {
        Some(world) => ranks::run(session, config, world),
        None => multiply_alone(session, config),
    }
}

/// A product in this process: by one rank where a trace or a window is asked for, which only ranks have.
fn multiply_alone(session: &mut Session, config: &Product) -> Result<()> {
    match (&config.choices.trace, config.choices.window) {
        (None, WindowKind::Auto) => product::run(session, config),
        (_, WindowKind::Mpi) => {
            Err(Error::InvalidArgument("--window mpi needs several ranks: start them with mpirun".into()))
        }
        _ => ranks::run(session, config, &local::group(1)[0]),
    }
}

fn factorise(session: &mut Session, config: &Factoring, together: Option<&dyn Transport>) -> Result<()> {
    match together {
        Some(world) => ranks::factor::run(session, config, world),
        None => factor::run(session, config),
    }
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

/// Whether a command is long work, which a user who starts several ranks may expect to be shared.
fn computes(command: &Command) -> bool {
    use Command::{Bench, Cholesky, Demo, GpuCheck, Inverse, Solve, Trsm, Verify};
    let factors = matches!(command, Cholesky(_) | Solve(_) | Inverse(_) | Trsm(_));
    factors || matches!(command, Verify(_) | GpuCheck(_) | Bench(_) | Demo(_))
}
