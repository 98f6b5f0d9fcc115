//! One file for each command; those of the laboratory are called as they are.

mod compare;
mod convert;
mod demo;
mod factor;
mod gen_matrix;
mod info;
mod plan;
mod product;
mod ranks;
mod trsm;
mod verify;

use crate::config::{Command, Global, Product};
use crate::ranks::Ranks;
use crate::session::Session;
use crate::signals::{Mode, in_mode};
use sunzi::comm::local;
use sunzi::comm::window::WindowKind;
use sunzi::error::{Error, Result};
use sunzi_lab::baselines::Operation;
use sunzi_lab::{bench, gpu_check, simulate};

/// Carries out a command; the exit code is 0 unless the command says otherwise.
///
/// # Errors
/// Those of the command.
pub fn run(global: Global, command: Command, all: &Ranks) -> Result<u8> {
    let together = all.several().filter(|_| match &command {
        Command::Product(_) => true,
        Command::Bench(config) => config.operation == Operation::Syrk,
        Command::BenchDouble(_) => true,
        Command::Factor(config) => ranks::factor::is_shared(config),
        _ => false,
    });
    if together.is_none() && !all.is_root() {
        return Ok(0); // the root does it alone
    }
    let mut session = Session::begin(global, all.is_root(), together)?;
    if let (Some(world), None, true) = (all.several(), together, computes(&command)) {
        session.note(&format!("this command runs on the first of {} ranks alone", world.size()));
    }
    let done = |result: Result<()>| result.map(|()| 0);
    match command {
        Command::Product(config) => done(match together {
            Some(world) => ranks::run(&mut session, &config, world),
            None => multiply_alone(&mut session, &config),
        }),
        Command::Info => done(info::run(&mut session)),
        Command::Gen(config) => done(gen_matrix::run(&mut session, &config)),
        Command::Factor(config) => done(match together {
            Some(world) => ranks::factor::run(&mut session, &config, world),
            None => factor::run(&mut session, &config),
        }),
        Command::Trsm(config) => done(trsm::run(&mut session, &config)),
        Command::Verify(config) => done(verify::run(&mut session, &config)),
        Command::VerifyCholesky(config) => done(factor::verify::run(&mut session, &config)),
        Command::Convert(config) => done(convert::run(&mut session, &config)),
        Command::Compare(config) => compare::run(&mut session, &config),
        Command::Plan(config) => done(plan::run(&mut session, &config)),
        Command::PlanCholesky(config) => done(plan::run_cholesky(&mut session, &config)),
        Command::PlanCluster(config) => done(plan::cluster::run(&mut session, &config)),
        Command::Bench(config) => done(match together {
            Some(world) => bench::run_on_ranks(&mut session, &config, world),
            None => bench::run(&mut session, &config),
        }),
        Command::BenchKernel(config) => done(bench::run_kernel(&mut session, &config)),
        Command::BenchDouble(config) => done(match together {
            Some(world) => bench::run_double_on_ranks(&mut session, &config, &all.world(world)?),
            None => bench::run_double(&mut session, &config),
        }),
        Command::GpuCheck(config) => done(in_mode(Mode::Computing, || gpu_check::run(&mut session, &config))),
        Command::SimulateCholesky(config) => done(simulate::cholesky(&mut session, &config)),
        Command::SimulateSoak(config) => done(simulate::soak(&mut session, &config)),
        Command::Demo(engine) => done(demo::run(&mut session, &engine)),
    }
}

/// A product in this process: by one rank where a trace or a window is asked for, which only ranks have.
fn multiply_alone(session: &mut Session, config: &Product) -> Result<()> {
    match (&config.trace, config.window) {
        (None, WindowKind::Auto) => product::run(session, config),
        (_, WindowKind::Mpi) => {
            Err(Error::InvalidArgument("--window mpi needs several ranks: start them with mpirun".into()))
        }
        _ => ranks::run(session, config, &local::group(1)[0]),
    }
}

/// Whether a command is long work, which a user who starts several ranks may expect to be shared.
fn computes(command: &Command) -> bool {
    use Command::{Bench, Demo, Factor, GpuCheck, Trsm, Verify, VerifyCholesky};
    let checks = matches!(command, Verify(_) | VerifyCholesky(_) | GpuCheck(_));
    checks || matches!(command, Factor(_) | Trsm(_) | Bench(_) | Demo(_))
}
