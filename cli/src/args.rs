//! The command line, typed: names, help texts, examples, and values that are right by the time a command sees them.
//!
//! One definition makes the parser, the help, the completions and the manual. Checks that need several options are in
//! [`Arguments::check`]. Touches no file.

mod bench;
mod eigenvalue;
mod engine;
mod factor;
mod files;
mod lu;
mod paths;
mod plan;
mod product;
mod sdp;
mod sdp_file;
mod simulate;
mod values;
mod verify;

pub use bench::{
    BatchOperation, Bench, BenchBatch, BenchCholesky, BenchOperation, BenchStep, Comparison, ElementType, GpuCheck,
};
pub use eigenvalue::Eigenvalue;
pub use engine::{CpuEngineArgs, EngineArgs, GIVE_BITS, GIVE_BITS_OR_DIGITS, Precision};
pub use factor::{Cholesky, Factor, Inverse, NamedTriangle, RankChoices, Solve, TriangularSystem, Trsm};
pub use files::{Compare, Convert, Gen, Output, SolutionOutput};
pub use lu::Lu;
pub use paths::{Paths, RANK, of_rank};
pub use plan::{Plan, PlanCholesky, PlanEigenvalue, PlanFactor, PlanGemm, PlanInverse, PlanMatrix, PlanOperation};
pub use plan::{PlanPromise, PlanSolve, PlanSyrk, PlanSystem, PlanTime, PlanTrsm};
pub use product::{Gemm, ProductArgs, ProductStorage, Syrk};
pub use sdp::{Places as SdpPlaces, Sdp};
pub use simulate::{Simulate, Simulation, Soak};
pub use verify::{Check, SystemCheck, Verify, VerifyCholesky, VerifyGemm, VerifyInverse, VerifyLu};
pub use verify::{VerifyOperation, VerifySdp, VerifySolve, VerifySyrk, VerifyTrsm};

use clap::{ArgAction, ArgMatches, Args, Command as Parser, CommandFactory, FromArgMatches, Subcommand, ValueHint};
use clap_complete::Shell;
use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use sunzi::Result;
use sunzi::io::{FileFormat, Headings};
use sunzi_session::units::counted;
use values::{format, progress, written_format};

/// The heading of options without one, where others precede them that have one: it would hold for them as well.
const PLAIN: Option<&'static str> = None;

/// Columns of the widest help: longer lines are hard to read on any terminal.
const WIDEST: usize = 120;

/// Multiprecision dense linear algebra by modular arithmetic: fast, with bitwise equal results on every machine.
///
/// The suffix of a file name gives the format: Matrix Market (.mtx), binary (.bin), tables (.csv, .tsv, .txt), NumPy
/// (.npy), JSON (.json; block.json:B names the matrix B in the file), Mathematica (.m), SDPA (.dat-s:1/1); .gz or .zst
/// may follow. `-` is standard input or output. Counts may be written as 1e5; sizes take K, M, G, T (powers of 1024)
/// and decimals. Exit codes: 0 success, 1 the matrices differ (compare), 2 wrong arguments, 3 wrong input, 4 not enough
/// memory or disk space, 5 a check failed, 6 the ranks cannot communicate, 7 a device failed, 130 cancelled.
#[derive(clap::Parser, Debug)]
#[command(
    name = "sunzi",
    version,
    max_term_width = WIDEST,
    arg_required_else_help = true,
    after_help = "Examples:\n  sunzi gen random --rows 4000 --cols 1000 --precision 1024 -o P.bin\n  \
                  sunzi syrk P.bin -o Q.bin\n  sunzi cholesky Q.bin -o L.bin\n  sunzi verify cholesky Q.bin L.bin"
)]
pub struct Arguments {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub global: Global,
    /// The files named on the command line.
    #[arg(skip)]
    pub paths: Paths,
    /// The memory limit of the process.
    #[arg(skip)]
    pub memory_bytes: Option<u64>,
    /// The number of worker threads given.
    #[arg(skip)]
    pub threads: Option<usize>,
}

/// The form in which progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProgressForm {
    /// A bar on a terminal that can show one, otherwise nothing.
    #[default]
    Auto,
    /// A bar on any terminal.
    Bar,
    /// A line for each tenth of the run and for each of its stages.
    Plain,
    /// Nothing.
    None,
}

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "In every command")]
pub struct Global {
    /// Print errors only.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Show the progress of the run on standard error: auto draws a bar if standard error is a capable terminal; bar
    /// draws a bar on any terminal; plain prints lines, also to files and pipes.
    #[arg(long, global = true, value_name = "FORM", default_value = "auto", value_parser = progress())]
    pub progress: ProgressForm,
    /// Also write a report as JSON.
    #[arg(long, global = true, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Format of inputs whose names do not show it, such as `-` [default: detected from the first bytes].
    #[arg(long, global = true, value_name = "FORMAT", value_parser = format())]
    pub input_format: Option<FileFormat>,
    /// Format of an output whose name does not show it [default: mtx for `-`].
    #[arg(long, global = true, value_name = "FORMAT", value_parser = written_format())]
    pub output_format: Option<FileFormat>,
    /// Read the first line of a table as headings, even if it holds numbers [default: only if it holds no number].
    #[arg(long, global = true, conflicts_with = "no_header")]
    header: bool,
    /// Read the first line of a table as a row of numbers, even if it looks like column numbers (0, 1, 2).
    #[arg(long, global = true)]
    no_header: bool,
}

impl Global {
    /// The meaning of the first line of a table.
    pub fn table_header(&self) -> Headings {
        match (self.header, self.no_header) {
            (true, _) => Headings::Present,
            (_, true) => Headings::Absent,
            _ => Headings::Detect,
        }
    }
}

/// The end of `sunzi completions --help`.
const COMPLETIONS: &str = "Examples:\n  \
    sunzi completions bash > ~/.local/share/bash-completion/completions/sunzi\n  \
    sunzi completions fish > ~/.config/fish/completions/sunzi.fish";

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Show the CPU, its memory, the devices, and the kernels with their largest precisions; or describe matrix files.
    #[command(after_help = "Examples:\n  sunzi info\n  sunzi info P.mtx A.csv block_data_0.json:B")]
    Info {
        /// Matrix files to describe.
        files: Vec<PathBuf>,
    },
    /// Write a test matrix.
    Gen(Gen),
    /// Compute one triangle of Q = P^T P (or P P^T).
    Syrk(Syrk),
    /// Compute C = A B, where either operand may be transposed.
    Gemm(Gemm),
    /// Factor a symmetric positive definite A as A = L L^T.
    Cholesky(Cholesky),
    /// Factor any square A as P A = L U with partial pivoting.
    Lu(Lu),
    /// Solve A X = B for a symmetric positive definite A or, with --general, for any square A.
    Solve(Solve),
    /// Compute the inverse of a symmetric positive definite A or, with --general, of any square A.
    Inverse(Inverse),
    /// Solve op(T) X = alpha B or X op(T) = alpha B for a triangular T.
    Trsm(Trsm),
    /// Enclose the smallest and the largest eigenvalue of a symmetric A in proven intervals.
    Eigenvalue(Eigenvalue),
    /// Solve a semidefinite program, given in a file format of SDPB or SDPA.
    Sdp(Box<Sdp>),
    /// Check a stored result against its error bound; the exit code is 0 if and only if the bound holds.
    Verify(Verify),
    /// Copy a matrix to a file of another format.
    Convert(Convert),
    /// Show the first and the largest difference between two matrices, and how many digits agree; the exit code is 1 if
    /// they differ by more than the tolerance, which is 0 by default.
    Compare(Compare),
    /// Show how an operation would run, on this machine or (syrk, cholesky, solve) on a cluster: its memory, its blocks
    /// and jobs, and an estimate of its time on this machine.
    Plan(Plan),
    /// Time Sunzi's and other implementations of an operation, check every result, and compare the time with the limit
    /// of the hardware.
    Bench(Bench),
    /// Check the devices of this machine and measure their rates; the exit code is 5 if a check fails.
    GpuCheck(GpuCheck),
    /// Simulate a Cholesky factorisation on a cluster: its time, its messages, and the causes of waiting.
    Simulate(Simulate),
    /// Compute, check, verify and time an ill-conditioned Gram matrix in less than a minute.
    #[command(after_help = "Example:\n  sunzi demo --threads 2")]
    Demo(EngineArgs),
    /// Print a script that makes the given shell complete commands and options.
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page of the program or of the given command.
    #[command(after_help = "Examples:\n  sunzi man > sunzi.1\n  sunzi man bench syrk | man -l -")]
    Man {
        /// Words of a command, such as `bench syrk`.
        words: Vec<String>,
    },
}

/// The definition of the command line, for code that describes it.
pub fn definition() -> Parser {
    let mut parser = Arguments::command();
    parser.build();
    parser
}

/// Numbers with a sign are values, so that they are refused by name; a name of a file never begins with a dash.
fn with_signs(parser: Parser) -> Parser {
    let parser = parser.mut_args(|arg| {
        let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let is_path = !matches!(arg.get_value_hint(), ValueHint::Unknown | ValueHint::Other);
        let is_option = arg.get_long().is_some();
        if is_option && takes_value && !is_path { arg.allow_hyphen_values(true) } else { arg }
    });
    parser.mut_subcommands(with_signs)
}

/// The end of the help of each command.
const COMMON: &str = "Every command also takes --quiet, --progress, --report, --input-format, --output-format, \
                      --header and --no-header: see sunzi --help.";

/// Options that every command takes are listed once, in the help of the program: commands accept them, and their help
/// says where they are described.
fn with_common_options_once(parser: Parser) -> Parser {
    fn end(parser: Parser) -> Parser {
        let examples = parser.get_after_help().map(ToString::to_string).unwrap_or_default();
        parser.after_help(format!("{examples}\n\n{COMMON}").trim_start().to_string()).mut_subcommands(end)
    }
    let hidden = parser.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.clone().hide(true));
    let hidden = hidden.collect::<Vec<_>>();
    parser.mut_subcommands(|command| end(command.args(hidden.clone())))
}

/// The parser of command lines.
fn parser() -> Parser {
    with_signs(with_common_options_once(Arguments::command()))
}

/// Reads a command line; the first word is the name of the program.
///
/// # Errors
/// Errors of the parser, and requests for help.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> std::result::Result<Arguments, clap::Error> {
    let matches = parser().try_get_matches_from(words)?;
    let mut paths = Paths::of(&matches);
    let (memory_bytes, threads) = (given(&matches, "memory"), given(&matches, "threads"));
    let arguments = Arguments::from_arg_matches(&matches)?;
    if let Command::Solve(solve @ Solve { sweep: None, .. }) = &arguments.command {
        paths.write(solve.output.chosen().path);
    }
    Ok(Arguments { paths, memory_bytes, threads, ..arguments })
}

/// The value of the option `name`, wherever a command has it.
fn given<T: Copy + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Option<T> {
    let own = matches.try_get_one::<T>(name).ok().flatten().copied();
    own.or_else(|| matches.subcommand().and_then(|(_, inner)| given(inner, name)))
}

/// Threads for each processor from which on they only wait for each other.
const TOO_MANY_THREADS: usize = 8;

impl Arguments {
    /// A warning where a command that runs here is given far more threads than the process has processors.
    pub fn warning(&self) -> Option<String> {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let runs_here = !matches!(self.command, Command::Plan(_)) && !self.global.quiet;
        let threads = self.threads.filter(|&threads| runs_here && threads / TOO_MANY_THREADS > processors)?;
        let processors = counted(processors, "processor");
        Some(format!(
            "warning: --threads {threads} is far more than the {processors} available to this process; fewer threads \
             would be as fast"
        ))
    }

    /// Checks combinations of options.
    ///
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`], [`sunzi::Error::Precision`].
    pub fn check(&self) -> Result<()> {
        self.paths.check_formats(self.global.output_format)?;
        match &self.command {
            Command::Syrk(Syrk { choices, .. }) | Command::Gemm(Gemm { choices, .. }) => {
                choices.precision.check(&choices.engine)
            }
            Command::Cholesky(args) => args.check(),
            Command::Lu(args) => args.check(),
            Command::Solve(Solve { factor, general, .. }) | Command::Inverse(Inverse { factor, general, .. }) => {
                factor.check(*general)
            }
            Command::Trsm(args) => args.precision.check(&args.engine),
            Command::Eigenvalue(args) => args.check(),
            Command::Sdp(args) => args.check(),
            Command::Verify(args) => args.check(),
            Command::Plan(args) => args.check(),
            Command::Bench(args) => args.check(),
            Command::GpuCheck(args) => args.check(),
            Command::Simulate(args) => args.check(),
            Command::Info { .. } | Command::Gen(_) | Command::Convert(_) | Command::Compare(_) | Command::Demo(_) => {
                Ok(())
            }
            Command::Completions { .. } | Command::Man { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every parameter that is a file is known to be read or written: a new one is added to either list.
    #[test]
    fn files_are_inputs_or_outputs() {
        const INPUTS: [&str; 18] = [
            "a",
            "accumulate",
            "b",
            "c",
            "certificate",
            "factor",
            "files",
            "input",
            "l",
            "left",
            "p",
            "param",
            "q",
            "right",
            "t",
            "u",
            "weights",
            "x",
        ];
        fn visit(parser: &Parser, found: &mut Vec<String>) {
            let is_file = |arg: &&clap::Arg| matches!(arg.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath);
            found.extend(parser.get_arguments().filter(is_file).map(|arg| arg.get_id().to_string()));
            parser.get_subcommands().for_each(|inner| visit(inner, found));
        }
        let mut found = Vec::new();
        visit(&definition(), &mut found);
        found.sort();
        found.dedup();
        let known = |name: &String| INPUTS.contains(&name.as_str()) || paths::is_output(name);
        assert!(found.len() > 12 && found.iter().all(known), "{found:?}");
    }

    /// The command lines of the examples in a help: from the program's name to the words that a shell passes.
    fn examples(help: &str) -> impl Iterator<Item = Vec<&str>> {
        let indented = help.lines().filter_map(|line| line.strip_prefix("  "));
        indented.filter_map(|line| {
            let words = line.split_whitespace().skip_while(|word| *word != "sunzi");
            Some(words.take_while(|word| !matches!(*word, ">" | "|")).collect())
                .filter(|words: &Vec<_>| words.len() > 1)
        })
    }

    /// Every help ends with examples, and every example is a command line that is accepted.
    #[test]
    fn every_command_has_examples_that_parse() {
        fn visit(parser: &Parser, seen: &mut usize) {
            let name = parser.get_bin_name().unwrap_or(parser.get_name()).to_string();
            if name.split(' ').any(|word| word == "help") {
                return;
            }
            let help = parser.get_after_help().map(ToString::to_string).unwrap_or_default();
            let longest = help.lines().filter(|line| line.starts_with("  ")).max_by_key(|line| line.len());
            assert!(longest.is_none_or(|line| line.len() <= 80), "{name}: {longest:?} does not fit 80 columns");
            let help = help.replace("\\\n", "");
            assert!(help.contains("Example") && examples(&help).next().is_some(), "{name}: no example");
            for words in examples(&help) {
                let parsed = parse(words.iter().map(OsString::from)).map_err(|error| error.to_string());
                let checked = parsed.and_then(|arguments| arguments.check().map_err(|error| error.to_string()));
                assert_eq!(checked, Ok(()), "{name}: {words:?}");
                *seen += 1;
            }
            parser.get_subcommands().for_each(|inner| visit(inner, seen));
        }
        let mut seen = 0;
        visit(&definition(), &mut seen);
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn the_command_line_is_well_formed() {
        parser().debug_assert();
    }
}
