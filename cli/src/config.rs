//! The command line as meant: every value judged, every default filled in. The second step after `args`.
//!
//! Knows: the kernels' names, the file formats' names. Touches no file. Whatever is refused names the option.

mod bench;
mod device;
mod double;
mod factor;
mod plan;
mod simulate;

pub use factor::{Factoring, RankChoices, Task, Trsm, VerifyCholesky};
pub use plan::{Operation, Plan, PlanCholesky, PlanCluster};

use crate::args::*;
use std::path::PathBuf;
use sunzi::comm::window::WindowKind;
use sunzi::error::{Error, Result};
use sunzi::gallery::{Kind, Size};
use sunzi::io::{FileFormat, NumberForm};
use sunzi::kernels;
use sunzi::kernels::device::DeviceFamily;
use sunzi::matrix::{MAXIMUM_PRECISION_BITS, Op, Uplo};
use sunzi_lab::bench::{Bench, BenchDouble, BenchKernel};
use sunzi_lab::devices::DeviceChoice;
use sunzi_lab::engine::{Engine, check_reach};
use sunzi_lab::gpu_check::GpuCheck;
use sunzi_lab::simulate::{SimulateCholesky, Soak};
use sunzi_lab::units::{parse_count, parse_size};

/// A command with all its choices.
#[derive(Debug)]
pub enum Command {
    /// `sunzi info`.
    Info,
    /// `sunzi gen`.
    Gen(Gen),
    /// `sunzi syrk` and `sunzi gemm`.
    Product(Product),
    /// `sunzi cholesky`, `sunzi solve` and `sunzi inverse`.
    Factor(Factoring),
    /// `sunzi trsm`.
    Trsm(Trsm),
    /// `sunzi verify syrk` and `sunzi verify gemm`.
    Verify(Verify),
    /// `sunzi verify cholesky`.
    VerifyCholesky(VerifyCholesky),
    /// `sunzi convert`.
    Convert(Convert),
    /// `sunzi compare`.
    Compare(Compare),
    /// `sunzi plan` of a product.
    Plan(Plan),
    /// `sunzi plan cholesky`.
    PlanCholesky(PlanCholesky),
    /// `sunzi plan syrk` for a cluster.
    PlanCluster(PlanCluster),
    /// `sunzi bench` of an operation.
    Bench(Bench),
    /// `sunzi bench kernel`.
    BenchKernel(BenchKernel),
    /// `sunzi bench cholesky --element double`.
    BenchDouble(BenchDouble),
    /// `sunzi gpu-check`.
    GpuCheck(GpuCheck),
    /// `sunzi simulate cholesky`.
    SimulateCholesky(Box<SimulateCholesky>),
    /// `sunzi simulate soak`.
    SimulateSoak(Soak),
    /// `sunzi demo`.
    Demo(Engine),
}

/// What holds for every command.
#[derive(Clone, Debug, Default)]
pub struct Global {
    /// Print errors only.
    pub quiet: bool,
    /// Where the JSON report goes.
    pub report: Option<PathBuf>,
}

/// The two products, with what they read.
#[derive(Clone, Debug)]
pub enum Operands {
    /// `P^T P`, or `P P^T` with [`Op::Transpose`].
    Syrk {
        /// The file of P.
        p: PathBuf,
        /// Which of the two.
        op: Op,
        /// The triangle computed.
        uplo: Uplo,
    },
    /// `op(A) op(B)`.
    Gemm {
        /// The file of A.
        a: PathBuf,
        /// The file of B.
        b: PathBuf,
        /// How A is used.
        op_a: Op,
        /// How B is used.
        op_b: Op,
    },
}

/// Precision of a product or a check and of its input.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// Bits of the result; `None` for what the file states.
    pub bits: Option<u32>,
    /// Bits to which decimals are rounded, where they differ.
    pub input_bits: Option<u32>,
}

/// Where a result goes and in which form.
#[derive(Clone, Debug)]
pub struct Output {
    /// The file; its name has a known ending.
    pub path: PathBuf,
    /// Decimal or hexadecimal.
    pub number_form: NumberForm,
}

/// A product to compute.
#[derive(Clone, Debug)]
pub struct Product {
    /// Which product of which files.
    pub operands: Operands,
    /// Its precision.
    pub precision: Precision,
    /// Whether a redundant prime checks the result.
    pub self_check: bool,
    /// Whether a random vector tests the product.
    pub freivalds: bool,
    /// Whether operands are integers and the result is exact.
    pub exact_integers: bool,
    /// Factor of the product, as typed.
    pub alpha: Option<String>,
    /// Factor of `accumulate`, as typed.
    pub beta: Option<String>,
    /// The file of a matrix to add.
    pub accumulate: Option<PathBuf>,
    /// Where the trace goes.
    pub trace: Option<PathBuf>,
    /// Where the memory that ranks share comes from.
    pub window: WindowKind,
    /// The engine.
    pub engine: Engine,
    /// Where the result goes.
    pub output: Output,
}

/// A test matrix to write.
#[derive(Clone, Debug)]
pub struct Gen {
    /// Which kind.
    pub kind: Kind,
    /// Its shape and precision.
    pub size: Size,
    /// Seed of random kinds.
    pub seed: u64,
    /// Where it goes.
    pub output: Output,
}

/// A stored result to check.
#[derive(Clone, Debug)]
pub struct Verify {
    /// Which product of which files; the triangle is `Lower`.
    pub operands: Operands,
    /// The file of the result.
    pub result: PathBuf,
    /// Precision of the bound.
    pub precision: Precision,
    /// Whether the result must be the exact product of integers.
    pub exact_integers: bool,
    /// Seed of random choices.
    pub seed: Option<u64>,
    /// Worker threads.
    pub threads: Option<usize>,
}

/// A file to copy into another format.
#[derive(Clone, Debug)]
pub struct Convert {
    /// The file read.
    pub input: PathBuf,
    /// Bits to which decimals are rounded.
    pub precision_bits: Option<u32>,
    /// Where the copy goes.
    pub output: Output,
}

/// Two files to compare.
#[derive(Clone, Debug)]
pub struct Compare {
    /// One file.
    pub left: PathBuf,
    /// The other.
    pub right: PathBuf,
    /// Bits to which decimals are rounded.
    pub precision_bits: Option<u32>,
}

impl Arguments {
    /// Judges what was typed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], [`Error::Precision`], [`Error::UnknownKernel`], [`Error::KernelUnavailable`].
    pub fn resolve(self) -> Result<(Global, Command)> {
        let global = Global { quiet: self.quiet, report: self.report };
        let command = match self.command {
            None => return Err(Error::InvalidArgument("no command given: try 'sunzi --help'".into())),
            Some(RawCommand::Info) => Command::Info,
            Some(RawCommand::Gen(raw)) => Command::Gen(raw.resolve()?),
            Some(RawCommand::Syrk(raw)) => Command::Product(raw.resolve()?),
            Some(RawCommand::Gemm(raw)) => Command::Product(raw.resolve()?),
            Some(RawCommand::Cholesky(raw)) => Command::Factor(raw.resolve()?),
            Some(RawCommand::Solve(raw)) => Command::Factor(raw.resolve()?),
            Some(RawCommand::Inverse(raw)) => Command::Factor(raw.resolve()?),
            Some(RawCommand::Trsm(raw)) => Command::Trsm(raw.resolve()?),
            Some(RawCommand::Verify(raw)) => raw.operation.resolve()?,
            Some(RawCommand::Convert(raw)) => Command::Convert(raw.resolve()?),
            Some(RawCommand::Compare(raw)) => Command::Compare(Compare {
                left: raw.left,
                right: raw.right,
                precision_bits: optional(raw.precision, |text| precision("--precision", text))?,
            }),
            Some(RawCommand::Plan(raw)) => raw.resolve()?,
            Some(RawCommand::Bench(raw)) => raw.resolve()?,
            Some(RawCommand::GpuCheck(raw)) => Command::GpuCheck(raw.resolve()?),
            Some(RawCommand::Simulate(raw)) => raw.resolve()?,
            Some(RawCommand::Demo(raw)) => Command::Demo(raw.engine.resolve()?),
        };
        Ok((global, command))
    }
}

impl RawEngine {
    fn resolve(self) -> Result<Engine> {
        let kernel = match self.kernel.as_str() {
            "auto" => None,
            name => match DeviceFamily::by_name(name) {
                Some(family) => Some(family.name()),
                None => Some(kernels::by_name(name)?.name()),
            },
        };
        Ok(Engine {
            threads: optional(self.threads, threads)?,
            memory_bytes: optional(self.memory, |text| parse_size("--memory", text))?,
            kernel,
            devices: self.device.as_deref().map_or(Ok(Vec::new()), DeviceChoice::list)?,
            device_memory_bytes: optional(self.device_memory, |text| parse_size("--device-memory", text))?,
        })
    }
}

impl RawOutput {
    fn resolve(self) -> Result<Output> {
        output(self.output, self.hex)
    }
}

impl RawGen {
    fn resolve(self) -> Result<Gen> {
        let precision_bits = precision("--precision", &self.precision)?;
        Ok(Gen {
            kind: Kind::by_name(&self.kind)?,
            size: Size { rows: size("--rows", &self.rows)?, cols: size("--cols", &self.cols)?, precision_bits },
            seed: parse_count("--seed", &self.seed)?,
            output: self.output.resolve()?,
        })
    }
}

impl RawSyrk {
    fn resolve(self) -> Result<Product> {
        let uplo = if self.upper { Uplo::Upper } else { Uplo::Lower };
        self.product.resolve(Operands::Syrk { p: self.p, op: op(self.transpose), uplo }, self.output)
    }
}

impl RawGemm {
    fn resolve(self) -> Result<Product> {
        let (op_a, op_b) = (op(self.transpose_a), op(self.transpose_b));
        self.product.resolve(Operands::Gemm { a: self.a, b: self.b, op_a, op_b }, self.output)
    }
}

impl RawProduct {
    fn resolve(self, operands: Operands, output: RawOutput) -> Result<Product> {
        let engine = self.engine.resolve()?;
        let bits = optional(self.precision, |text| precision("--precision", text))?;
        if let Some(bits) = bits {
            check_reach(bits, engine.kernel)?;
        }
        let input_bits = optional(self.input_precision, |text| precision("--input-precision", text))?;
        Ok(Product {
            operands,
            precision: Precision { bits, input_bits },
            self_check: self.self_check,
            freivalds: self.freivalds,
            exact_integers: self.exact_integers,
            alpha: self.alpha,
            beta: self.beta,
            accumulate: self.accumulate,
            trace: self.trace,
            window: window(&self.window)?,
            engine,
            output: output.resolve()?,
        })
    }
}

impl RawVerifyOperation {
    fn resolve(self) -> Result<Command> {
        let (operands, result, check) = match self {
            RawVerifyOperation::Syrk(raw) => {
                (Operands::Syrk { p: raw.p, op: op(raw.transpose), uplo: Uplo::Lower }, raw.q, raw.check)
            }
            RawVerifyOperation::Gemm(raw) => {
                let (op_a, op_b) = (op(raw.transpose_a), op(raw.transpose_b));
                (Operands::Gemm { a: raw.a, b: raw.b, op_a, op_b }, raw.c, raw.check)
            }
            RawVerifyOperation::Cholesky(raw) => return Ok(Command::VerifyCholesky(raw.resolve()?)),
        };
        Ok(Command::Verify(Verify {
            operands,
            result,
            precision: Precision {
                bits: optional(check.precision, |text| precision("--precision", text))?,
                input_bits: optional(check.input_precision, |text| precision("--input-precision", text))?,
            },
            exact_integers: check.exact_integers,
            seed: optional(check.seed, |text| parse_count("--seed", text))?,
            threads: optional(check.threads, threads)?,
        }))
    }
}

impl RawConvert {
    fn resolve(self) -> Result<Convert> {
        let precision_bits = optional(self.precision, |text| precision("--precision", text))?;
        Ok(Convert { input: self.input, precision_bits, output: output(self.output, self.hex)? })
    }
}

fn optional<T>(text: Option<String>, parse: impl FnOnce(&str) -> Result<T>) -> Result<Option<T>> {
    text.as_deref().map(parse).transpose()
}

fn size(what: &str, text: &str) -> Result<usize> {
    let count = parse_count(what, text)?;
    usize::try_from(count).map_err(|_| Error::InvalidArgument(format!("{what}: '{text}' is too large")))
}

fn threads(text: &str) -> Result<usize> {
    match size("--threads", text)? {
        count @ 1..=4096 => Ok(count),
        count => Err(Error::InvalidArgument(format!("--threads: {count} threads: choose 1 to 4096"))),
    }
}

fn precision(what: &str, text: &str) -> Result<u32> {
    let precision_bits = parse_count(what, text)?;
    let maximum_bits = u64::from(MAXIMUM_PRECISION_BITS);
    if (2..=maximum_bits).contains(&precision_bits) {
        Ok(precision_bits as u32)
    } else {
        Err(Error::Precision { precision_bits, maximum_bits })
    }
}

fn window(name: &str) -> Result<WindowKind> {
    let unknown = || Error::InvalidArgument(format!("unknown window '{name}': choose one of auto, mpi, posix, heap"));
    WindowKind::by_name(name).ok_or_else(unknown)
}

fn op(transpose: bool) -> Op {
    if transpose { Op::Transpose } else { Op::NoTranspose }
}

fn output(path: PathBuf, hex: bool) -> Result<Output> {
    FileFormat::of(&path)?;
    Ok(Output { path, number_form: if hex { NumberForm::Hex } else { NumberForm::Decimal } })
}
