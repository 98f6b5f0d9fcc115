//! One file for each command; what they share is here: the session, reading and writing with a bar, numbers as text.

mod bench;
mod compare;
mod convert;
mod demo;
mod factor;
mod gen_matrix;
mod gpu_check;
mod info;
mod plan;
mod plot;
mod product;
mod ranks;
mod simulate;
mod trace;
mod trsm;
mod verify;

use super::config::{Command, Engine, Global, Output, Product};
use super::devices;
use super::memory::Budget;
use super::progress::{Bar, Visibility};
use super::ranks::Ranks;
use super::report::{ReportFile, check_writable};
use super::signals::{Mode, in_mode};
use crate::comm::window::WindowKind;
use crate::comm::{Transport, agreed, local};
use crate::context::{Context, ContextBuilder, ProgressCallback};
use crate::error::{Error, Result};
use crate::front::formats::{self, FileInfo, Loaded, ReadOptions, Symmetry, WriteOptions, is_device};
use crate::matrix::{Matrix, MatrixView};
use crate::rivals::Operation;
use crate::store::available_bytes;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

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
            Some(world) => bench::run_double_on_ranks(&mut session, &config, all, world),
            None => bench::run_double(&mut session, &config),
        }),
        Command::GpuCheck(config) => done(gpu_check::run(&mut session, &config)),
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

/// What a command needs beside its choices: where it may speak, and its report.
pub struct Session {
    quiet: bool,
    report: Option<ReportFile>,
    bar: Bar,
}

impl Session {
    /// The session of one rank; only the root speaks. Collective where ranks work `together`.
    fn begin(global: Global, root: bool, together: Option<&dyn Transport>) -> Result<Session> {
        let quiet = global.quiet || !root;
        let report = global.report.as_deref().filter(|_| root).map(ReportFile::new).transpose();
        let report = match together {
            Some(world) => agreed(world, report)?,
            None => report?,
        };
        let visibility = if quiet { Visibility::Hidden } else { Visibility::Auto };
        Ok(Session { quiet, report, bar: Bar::new(visibility) })
    }

    /// Prints a line, or several, to standard output.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn say(&self, text: &str) -> Result<()> {
        self.bar.finish();
        if self.quiet { Ok(()) } else { super::print(&format!("{text}\n")) }
    }

    /// Writes a remark to standard error, unless this session is quiet.
    fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.finish();
            super::print_note(text);
        }
    }

    /// Writes the report, where one was asked for.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn finish_report(&mut self, report: &impl Serialize) -> Result<()> {
        match self.report.take() {
            Some(file) => in_mode(Mode::Writing, || file.finish(report)),
            None => Ok(()),
        }
    }

    /// The callback of all that takes time: draws the bar, passes on the wish to stop.
    fn progress(&self) -> Arc<ProgressCallback> {
        let bar = self.bar.clone();
        Arc::new(move |progress| bar.advance(progress))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Those of [`formats::read`]; [`Error::OutOfMemory`] where the header announces more than the machine has.
    fn read(&self, path: &Path, options: ReadOptions) -> Result<Loaded> {
        if let Some(info) = header(path)? {
            let bits = options.precision_bits.max(options.input_precision_bits.unwrap_or(0));
            admit(Matrix::bytes_for(info.rows, info.cols, bits))?;
        }
        let loaded = formats::read(path, &ReadOptions { progress: Some(self.progress()), ..options });
        self.bar.finish();
        loaded
    }

    /// Writes a matrix to the place of `output`.
    ///
    /// # Errors
    /// Those of [`formats::write`].
    fn write<'a>(&self, output: &Output, matrix: impl Into<MatrixView<'a>>, symmetry: Symmetry) -> Result<()> {
        let options = WriteOptions { symmetry, number_form: output.number_form, progress: Some(self.progress()) };
        let written = in_mode(Mode::Writing, || formats::write(&output.path, matrix, &options));
        self.bar.finish();
        written
    }

    /// A builder with the choices of the command line but the memory limit, and the command's progress.
    ///
    /// # Errors
    /// [`Error::NoDevice`].
    fn context(&self, engine: &Engine) -> Result<ContextBuilder> {
        let callback = self.progress();
        let builder = Context::builder().progress(move |progress| callback(progress));
        let builder = match engine.threads {
            Some(threads) => builder.threads(threads),
            None => builder,
        };
        let builder = match engine.device_memory_bytes {
            Some(bytes) => builder.device_memory_bytes(bytes),
            None => builder,
        };
        Ok(builder.devices(devices::open(&engine.devices, engine.threads)?).kernel(engine.kernel.unwrap_or("auto")))
    }
}

/// Refuses, before any work, an output that could not be written.
fn check_output(output: &Output) -> Result<()> {
    check_writable(&output.path)
}

/// Threads that an engine will use.
fn thread_count(engine: &Engine) -> usize {
    engine.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get()))
}

/// The budget of the process at this moment, where a limit was given.
fn budget(engine: &Engine) -> Option<Budget> {
    engine.memory_bytes.map(|limit| Budget::now(limit, thread_count(engine)))
}

/// A builder with the memory limit that the budget leaves, and the way to restate a refusal for the whole process.
fn limited(builder: ContextBuilder, budget: Option<Budget>) -> (ContextBuilder, impl Fn(Error) -> Error) {
    let builder = match &budget {
        Some(budget) => builder.memory_bytes(budget.left()),
        None => builder,
    };
    (builder, move |error| match &budget {
        Some(budget) => budget.restate(error),
        None => error,
    })
}

/// What the header of a file says; `None` for a pipe or device, which can be read only once.
///
/// # Errors
/// Those of [`formats::read_info`].
fn header(path: &Path) -> Result<Option<FileInfo>> {
    if is_device(path) { Ok(None) } else { formats::read_info(path).map(Some) }
}

/// Reads a matrix; one that would pass the memory limit of the process is refused by its header.
///
/// # Errors
/// [`Error::MemoryLimit`], and those of [`Session::read`].
fn read_within(session: &Session, engine: &Engine, path: &Path, options: ReadOptions) -> Result<Loaded> {
    if let (Some(budget), Some(info)) = (budget(engine), header(path)?) {
        let bits = options.precision_bits.max(options.input_precision_bits.unwrap_or(0));
        budget.admit(Matrix::bytes_for(info.rows, info.cols, bits))?;
    }
    session.read(path, options)
}

/// Refuses a matrix that the machine's free memory cannot hold, rather than be killed while it is filled.
///
/// # Errors
/// [`Error::OutOfMemory`].
fn admit(bytes: u64) -> Result<()> {
    match available_bytes() {
        // A size beyond all addresses has an error of its own, from the matrix.
        Some(available) if bytes > available && bytes < i64::MAX as u64 => Err(Error::OutOfMemory { bytes }),
        _ => Ok(()),
    }
}

/// The precision given, else the one that the file states.
///
/// # Errors
/// [`Error::InvalidArgument`] where neither is there.
fn stated_precision(given: Option<u32>, path: &Path, info: Option<&FileInfo>) -> Result<u32> {
    given.or(info.and_then(|info| info.precision_bits_comment)).ok_or_else(|| {
        Error::InvalidArgument(format!("{} does not state its precision: give --precision", path.display()))
    })
}

/// `400 x 50, 256 bits`.
fn describe(matrix: &Matrix) -> String {
    format!("{} x {}, {} bits", matrix.rows(), matrix.cols(), matrix.precision_bits())
}
