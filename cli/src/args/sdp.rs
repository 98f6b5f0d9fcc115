//! Options of `sdp`: SDPB's names, as a command line of SDPB has them, and those of the engine.

use super::CpuEngineArgs;
use super::values::precision;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use rug::Float;
use std::path::{Path, PathBuf};
use sunzi::io::parse_number;
use sunzi::{Error, Result};
use sunzi_sdp::output::WriteSolution;
use sunzi_sdp::{Form, SolverOptions};
use sunzi_session::engine::check_reach;
use sunzi_session::units::parse_count;

/// Bits of numbers among the options.
const OPTION_BITS: u32 = 256;

/// Bits of all numbers where they are not given: SDPB's default.
const DEFAULT_BITS: u32 = 400;

/// Where files lie.
#[derive(Args, Clone, Debug, Default)]
pub struct Places {
    /// The semidefinite program: the directory or zip archive that pmp2sdp writes, an input file of pmp2sdp (.json, .m,
    /// .nsv), or a file in SDPA's sparse format (.dat-s); `-` reads such a file from standard input. Required, here or
    /// in --paramFile.
    #[arg(long = "sdpDir", short = 's', value_name = "PATH")]
    pub input: Option<PathBuf>,
    /// Directory of the results [default: the input's name followed by `_out`].
    // `--out` would also abbreviate `--output-format`, which SDPB does not have.
    #[arg(long = "outDir", alias = "out", short = 'o', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out_dir: Option<PathBuf>,
    /// Directory for checkpoints: the run writes them there, and resumes from one there that belongs to the same
    /// semidefinite program; with '' it does neither [default: the input's name followed by `.ck`].
    #[arg(long = "checkpointDir", short = 'c', value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub checkpoint_dir: Option<PathBuf>,
    /// Directory with a checkpoint from which the run starts, instead of one in --checkpointDir: a checkpoint of Sunzi,
    /// or text files of SDPB.
    #[arg(long = "initialCheckpointDir", short = 'i', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub initial_checkpoint_dir: Option<PathBuf>,
}

/// Options that a file of parameters may contain.
#[derive(Args, Clone, Debug, Default)]
pub struct Given {
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub choices: ParameterChoices,
}

/// `sunzi sdp`. SDPB takes options by their first letters.
#[derive(Args, Clone, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Examples:\n  sunzi sdp -s theta1.dat-s -o out --precision 256\n  \
                        sunzi sdp -s sdp -o out --precision 768 \\\n      \
                        --writeSolution x,y,z --maxIterations 1000\n  \
                        sunzi sdp -s sdp -o out -c ck --precision 768 --detectPrimalFeasibleJump\n  \
                        sunzi sdp -s theta1.dat-s -o out --precision 256 --certify\n\n\
                        The options have SDPB's names and meanings. The last lines and the file out.txt state how \
                        the run ended; the page on semidefinite programs (docs/SDP.md) lists all ends. The exit code \
                        is 8 after `precision too low`, 130 after a signal, and 0 after any other end; if --certify \
                        proves nothing, it is 5. Errors have other codes: see docs/TROUBLESHOOTING.md."
)]
pub struct Sdp {
    #[command(flatten)]
    pub places: Places,
    /// File of options: lines `option=value`, or SDPA's param.sdpa. Options on the command line take precedence.
    #[arg(long = "paramFile", short = 'p', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub param: Option<PathBuf>,
    /// After the run, prove bounds on the optimal value in exact arithmetic, and write the proof into the directory of
    /// the results as the file `certificate`.
    #[arg(long)]
    pub certify: bool,
    /// Print the memory that the run needs, without solving the program.
    #[arg(long)]
    pub plan: bool,
    /// Plot the gap, errors, steps and bits over the iterations, as SVG.
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    #[command(flatten)]
    pub choices: ParameterChoices,
    #[command(flatten)]
    pub engine: CpuEngineArgs,
}

/// A number of an option.
fn number(text: &str) -> std::result::Result<Float, String> {
    Ok(parse_number(text, OPTION_BITS).map_err(|error| error.to_string())?.value)
}

/// A level of SDPB's, by its name or its number.
fn verbosity(text: &str) -> std::result::Result<u64, String> {
    const NAMES: [&str; 4] = ["none", "regular", "debug", "trace"];
    match NAMES.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(level) => Ok(level as u64),
        None => parse_count(text).map_err(|error| format!("{error}; or one of none, regular, debug and trace")),
    }
}

/// A number above 0, as a threshold of a gap or an error.
fn threshold(text: &str) -> std::result::Result<Float, String> {
    number(text).and_then(|value| match value > 0 {
        true => Ok(value),
        false => Err("no gap or error can be below it: give a number above 0".into()),
    })
}

/// A number of at least 0, which is never reached.
fn threshold_or_never(text: &str) -> std::result::Result<Float, String> {
    number(text).and_then(|value| match value >= 0 {
        true => Ok(value),
        false => Err("give a number above 0, or 0 for never".into()),
    })
}

/// More options that a file of parameters may contain; no default of SDPB is used.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Solver")]
pub struct ParameterChoices {
    /// Precision of all numbers in bits [default: 400].
    #[arg(long, value_name = "B", value_parser = precision)]
    pub precision: Option<u32>,
    /// Stop at a primal feasible point.
    #[arg(long = "findPrimalFeasible")]
    find_primal_feasible: bool,
    /// Stop at a dual feasible point.
    #[arg(long = "findDualFeasible")]
    find_dual_feasible: bool,
    /// Stop after a primal step of length 1, which makes the point primal feasible up to rounding.
    #[arg(long = "detectPrimalFeasibleJump")]
    detect_primal_feasible_jump: bool,
    /// Stop after a dual step of length 1, which makes the point dual feasible up to rounding.
    #[arg(long = "detectDualFeasibleJump")]
    detect_dual_feasible_jump: bool,
    /// Maximum number of iterations of this run; iterations of earlier runs, from whose checkpoint it resumes, do not
    /// count [default: 500].
    #[arg(long = "maxIterations", value_name = "N", value_parser = parse_count)]
    max_iterations: Option<u64>,
    /// Maximum run time in seconds [default: no limit].
    #[arg(long = "maxRuntime", value_name = "S", value_parser = parse_count)]
    max_runtime: Option<u64>,
    /// Duality gap below which a primal and dual feasible point counts as optimal [default: 1e-30].
    #[arg(long = "dualityGapThreshold", value_name = "X", value_parser = threshold)]
    duality_gap_threshold: Option<Float>,
    /// Primal error below which a point counts as primal feasible [default: 1e-30].
    #[arg(long = "primalErrorThreshold", value_name = "X", value_parser = threshold)]
    primal_error_threshold: Option<Float>,
    /// Dual error below which a point counts as dual feasible [default: 1e-30].
    #[arg(long = "dualErrorThreshold", value_name = "X", value_parser = threshold)]
    dual_error_threshold: Option<Float>,
    /// X starts as this multiple of the identity; the factor should exceed the norm of X at the solution [default:
    /// 1e20, for SDPA's files 1e4].
    #[arg(long = "initialMatrixScalePrimal", value_name = "X", value_parser = number)]
    initial_matrix_scale_primal: Option<Float>,
    /// Y starts as this multiple of the identity; the factor should exceed the norm of Y at the solution [default:
    /// 1e20, for SDPA's files 1e4].
    #[arg(long = "initialMatrixScaleDual", value_name = "X", value_parser = number)]
    initial_matrix_scale_dual: Option<Float>,
    /// Centring at primal and dual feasible points: a step aims at X Y = beta mu I with at least this beta [default:
    /// 0.1].
    #[arg(long = "feasibleCenteringParameter", value_name = "X", value_parser = number)]
    feasible_centering_parameter: Option<Float>,
    /// Centring at all other points: a step aims at X Y = beta mu I with at least this beta [default: 0.3].
    #[arg(long = "infeasibleCenteringParameter", value_name = "X", value_parser = number)]
    infeasible_centering_parameter: Option<Float>,
    /// A step goes this fraction of the way to the boundary of the cone, but at most to length 1 [default: 0.7, for
    /// SDPA's files 0.9].
    #[arg(long = "stepLengthReduction", value_name = "X", value_parser = number)]
    step_length_reduction: Option<Float>,
    /// Stop after a primal step shorter than this [default: 0, which never stops the run].
    #[arg(long = "minPrimalStep", value_name = "X", value_parser = number)]
    min_primal_step: Option<Float>,
    /// Stop after a dual step shorter than this [default: 0, which never stops the run].
    #[arg(long = "minDualStep", value_name = "X", value_parser = number)]
    min_dual_step: Option<Float>,
    /// Stop if mu, which is Tr(X Y) divided by the number of rows of X, exceeds this [default: 1e100].
    #[arg(long = "maxComplementarity", value_name = "X", value_parser = number)]
    max_complementarity: Option<Float>,
    /// Look for rays (certificates of infeasibility) with a relative error below this, and stop if one shows that the
    /// primal or the dual program has no feasible point; 0 turns the search off [default: 1e-20 for SDPA's files, 0 for
    /// others].
    #[arg(long = "infeasibilityThreshold", value_name = "X", value_parser = threshold_or_never)]
    infeasibility_threshold: Option<Float>,
    /// Stop if the point is primal but not dual feasible and its primal objective is at most this [default: none].
    #[arg(long = "lowerBound", value_name = "X", value_parser = number, allow_negative_numbers = true)]
    lower_bound: Option<Float>,
    /// Stop if the point is dual but not primal feasible and its dual objective is at least this [default: none].
    #[arg(long = "upperBound", value_name = "X", value_parser = number, allow_negative_numbers = true)]
    upper_bound: Option<Float>,
    /// Compute all iterations with --precision bits; without this option the first iterations use fewer bits.
    #[arg(long = "no-ramp")]
    no_ramp: bool,
    /// Seconds between checkpoints [default: 3600].
    #[arg(long = "checkpointInterval", value_name = "S", value_parser = parse_count)]
    pub checkpoint_interval: Option<u64>,
    /// Write no checkpoint at the end of the run.
    #[arg(long = "noFinalCheckpoint")]
    pub no_final_checkpoint: bool,
    /// Parts of the solution to write: any of x, y, z, X and Y, separated by commas [default: x,y].
    #[arg(long = "writeSolution", value_name = "LIST")]
    write_solution: Option<String>,
    /// Amount of output: errors only (0 or none), or also the table of iterations and the outcome (1 or regular); 2
    /// (debug) and 3 (trace) print the same as 1 [default: 1].
    #[arg(long, value_name = "N", value_parser = verbosity)]
    pub verbosity: Option<u64>,
    /// Accepted for compatibility with SDPB and ignored: threads share memory here.
    #[arg(long = "procsPerNode", value_name = "N", value_parser = parse_count, hide = true)]
    procs_per_node: Option<u64>,
    /// Accepted for compatibility with SDPB and ignored.
    #[arg(long = "procGranularity", value_name = "N", value_parser = parse_count, hide = true)]
    proc_granularity: Option<u64>,
    /// Accepted for compatibility with SDPB and ignored: see --memory.
    #[arg(long = "maxSharedMemory", value_name = "SIZE", hide = true)]
    max_shared_memory: Option<String>,
}

impl Sdp {
    /// Checks combinations of options.
    ///
    /// # Errors
    /// [`Error::Precision`], [`Error::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        self.engine.refuse_devices("sdp")?;
        if self.param.is_none() {
            self.places.input()?;
        }
        self.choices.parts()?;
        self.check_precision()
    }

    pub fn check_precision(&self) -> Result<()> {
        self.choices.precision.map_or(Ok(()), |bits| check_reach(bits, self.engine.kernel))
    }
}

impl Places {
    /// These options, completed by those of `file`.
    pub fn or(self, file: Places) -> Places {
        Places {
            input: self.input.or(file.input),
            out_dir: self.out_dir.or(file.out_dir),
            checkpoint_dir: self.checkpoint_dir.or(file.checkpoint_dir),
            initial_checkpoint_dir: self.initial_checkpoint_dir.or(file.initial_checkpoint_dir),
        }
    }

    /// The program.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if no program is given.
    pub fn input(&self) -> Result<&Path> {
        let missing =
            || Error::InvalidArgument("no semidefinite program is given: set --sdpDir here or in --paramFile".into());
        self.input.as_deref().ok_or_else(missing)
    }
}

impl ParameterChoices {
    /// These options, completed by those of `file`.
    pub fn or(self, file: ParameterChoices) -> ParameterChoices {
        ParameterChoices {
            precision: self.precision.or(file.precision),
            find_primal_feasible: self.find_primal_feasible || file.find_primal_feasible,
            find_dual_feasible: self.find_dual_feasible || file.find_dual_feasible,
            detect_primal_feasible_jump: self.detect_primal_feasible_jump || file.detect_primal_feasible_jump,
            detect_dual_feasible_jump: self.detect_dual_feasible_jump || file.detect_dual_feasible_jump,
            max_iterations: self.max_iterations.or(file.max_iterations),
            max_runtime: self.max_runtime.or(file.max_runtime),
            duality_gap_threshold: self.duality_gap_threshold.or(file.duality_gap_threshold),
            primal_error_threshold: self.primal_error_threshold.or(file.primal_error_threshold),
            dual_error_threshold: self.dual_error_threshold.or(file.dual_error_threshold),
            initial_matrix_scale_primal: self.initial_matrix_scale_primal.or(file.initial_matrix_scale_primal),
            initial_matrix_scale_dual: self.initial_matrix_scale_dual.or(file.initial_matrix_scale_dual),
            feasible_centering_parameter: self.feasible_centering_parameter.or(file.feasible_centering_parameter),
            infeasible_centering_parameter: self.infeasible_centering_parameter.or(file.infeasible_centering_parameter),
            step_length_reduction: self.step_length_reduction.or(file.step_length_reduction),
            min_primal_step: self.min_primal_step.or(file.min_primal_step),
            min_dual_step: self.min_dual_step.or(file.min_dual_step),
            max_complementarity: self.max_complementarity.or(file.max_complementarity),
            infeasibility_threshold: self.infeasibility_threshold.or(file.infeasibility_threshold),
            lower_bound: self.lower_bound.or(file.lower_bound),
            upper_bound: self.upper_bound.or(file.upper_bound),
            no_ramp: self.no_ramp || file.no_ramp,
            checkpoint_interval: self.checkpoint_interval.or(file.checkpoint_interval),
            no_final_checkpoint: self.no_final_checkpoint || file.no_final_checkpoint,
            write_solution: self.write_solution.or(file.write_solution),
            verbosity: self.verbosity.or(file.verbosity),
            procs_per_node: None,
            proc_granularity: None,
            max_shared_memory: None,
        }
    }

    /// Bits of all numbers.
    pub fn bits(&self) -> u32 {
        self.precision.unwrap_or(DEFAULT_BITS)
    }

    /// The parts of the solution that are written.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the word that is not a part of the solution.
    pub fn parts(&self) -> Result<WriteSolution> {
        WriteSolution::parse(self.write_solution.as_deref().unwrap_or("x,y"))
    }

    /// The options of the solver for a program of this form.
    pub fn options(&self, form: Form) -> SolverOptions {
        let mut options = SolverOptions::new(form);
        options.find_primal_feasible = self.find_primal_feasible;
        options.find_dual_feasible = self.find_dual_feasible;
        options.detect_primal_feasible_jump = self.detect_primal_feasible_jump;
        options.detect_dual_feasible_jump = self.detect_dual_feasible_jump;
        options.ramp = !self.no_ramp;
        options.lower_bound = self.lower_bound.clone();
        options.upper_bound = self.upper_bound.clone();
        options.max_iterations = self.max_iterations.unwrap_or(options.max_iterations);
        options.max_runtime = self.max_runtime.unwrap_or(options.max_runtime);
        let numbers = [
            (&mut options.duality_gap_threshold, &self.duality_gap_threshold),
            (&mut options.primal_error_threshold, &self.primal_error_threshold),
            (&mut options.dual_error_threshold, &self.dual_error_threshold),
            (&mut options.initial_matrix_scale_primal, &self.initial_matrix_scale_primal),
            (&mut options.initial_matrix_scale_dual, &self.initial_matrix_scale_dual),
            (&mut options.feasible_centering_parameter, &self.feasible_centering_parameter),
            (&mut options.infeasible_centering_parameter, &self.infeasible_centering_parameter),
            (&mut options.step_length_reduction, &self.step_length_reduction),
            (&mut options.min_primal_step, &self.min_primal_step),
            (&mut options.min_dual_step, &self.min_dual_step),
            (&mut options.max_complementarity, &self.max_complementarity),
            (&mut options.infeasibility_threshold, &self.infeasibility_threshold),
        ];
        for (option, given) in numbers {
            if let Some(given) = given {
                *option = given.clone();
            }
        }
        options
    }
}
