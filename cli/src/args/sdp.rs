//! Options of `sdp`: SDPB's names, as a command line of SDPB has them, and those of the engine.

use super::EngineArgs;
use super::values::precision;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Command, FromArgMatches, ValueHint};
use rug::Float;
use std::path::{Path, PathBuf};
use sunzi::io::parse_number;
use sunzi::{Error, Result};
use sunzi_lab::engine::check_reach;
use sunzi_lab::units::parse_count;
use sunzi_sdp::output::WriteSolution;
use sunzi_sdp::{Form, SolverOptions};

/// Bits of numbers among the options.
const OPTION_BITS: u32 = 256;

/// Bits of all numbers where nothing says how many: SDPB's default.
const DEFAULT_BITS: u32 = 400;

/// `sunzi sdp`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  sunzi sdp -s theta1.dat-s -o out --precision 256\n  \
                        sunzi sdp -s sdp -o out --precision 768 --writeSolution x,y,z --maxIterations 1000\n  \
                        sunzi sdp -s sdp -o out -c ck --precision 768 --detectPrimalFeasibleJump\n  \
                        sunzi sdp -s theta1.dat-s -o out --precision 256 --certify\n\n\
                        The options have SDPB's names and meanings. How a run ended is in out.txt; the exit code is 0 \
                        for every end but an error or a stop, and 5 where --certify finds no certificate.")]
pub struct Sdp {
    /// The program: SDPB's blocks in a directory or a zip archive, a polynomial program as pmp2sdp takes it (.json, .m,
    /// .nsv), or a file of SDPA's sparse format (.dat-s).
    #[arg(long = "sdpDir", short = 's', value_name = "PATH")]
    pub input: PathBuf,
    /// Directory of the results [default: the input's name with `_out` behind it].
    #[arg(long = "outDir", short = 'o', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out_dir: Option<PathBuf>,
    /// Directory of checkpoints, '' for none [default: `checkpoint` in that of the results].
    #[arg(long = "checkpointDir", short = 'c', value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub checkpoint_dir: Option<PathBuf>,
    /// Directory of the checkpoint to begin with, ours or SDPB's text files [default: that of checkpoints].
    #[arg(long = "initialCheckpointDir", short = 'i', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub initial_checkpoint_dir: Option<PathBuf>,
    /// File with lines `option=value`, or SDPA's param.sdpa; the command line counts first.
    #[arg(long = "paramFile", short = 'p', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub param: Option<PathBuf>,
    /// Prove bounds of the optimal value in exact arithmetic, and keep the proof as `certificate` beside the results.
    #[arg(long)]
    pub certify: bool,
    /// Say what the run takes of memory, and end.
    #[arg(long)]
    pub plan: bool,
    /// Draw gap, errors, steps and bits over the iterations, as SVG.
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    #[command(flatten)]
    pub choices: Choices,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// A number of an option.
fn number(text: &str) -> std::result::Result<Float, String> {
    Ok(parse_number(text, OPTION_BITS).map_err(|error| error.to_string())?.value)
}

/// What a file of parameters may say as well; nothing is left to SDPB's default.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Solver")]
pub struct Choices {
    /// Bits of all numbers [default: 400].
    #[arg(long, value_name = "B", value_parser = precision)]
    pub precision: Option<u32>,
    /// End at a primal feasible point.
    #[arg(long = "findPrimalFeasible")]
    find_primal_feasible: bool,
    /// End at a dual feasible point.
    #[arg(long = "findDualFeasible")]
    find_dual_feasible: bool,
    /// End after a primal step of 1.
    #[arg(long = "detectPrimalFeasibleJump")]
    detect_primal_feasible_jump: bool,
    /// End after a dual step of 1.
    #[arg(long = "detectDualFeasibleJump")]
    detect_dual_feasible_jump: bool,
    /// Iterations at most [default: 500].
    #[arg(long = "maxIterations", value_name = "N", value_parser = parse_count)]
    max_iterations: Option<u64>,
    /// Seconds at most [default: no limit].
    #[arg(long = "maxRuntime", value_name = "S", value_parser = parse_count)]
    max_runtime: Option<u64>,
    /// The gap of an optimal point [default: 1e-30].
    #[arg(long = "dualityGapThreshold", value_name = "X", value_parser = number)]
    duality_gap_threshold: Option<Float>,
    /// The error of a primal feasible point [default: 1e-30].
    #[arg(long = "primalErrorThreshold", value_name = "X", value_parser = number)]
    primal_error_threshold: Option<Float>,
    /// The error of a dual feasible point [default: 1e-30].
    #[arg(long = "dualErrorThreshold", value_name = "X", value_parser = number)]
    dual_error_threshold: Option<Float>,
    /// X begins as this multiple of the identity [default: 1e20, for SDPA's files 1e4].
    #[arg(long = "initialMatrixScalePrimal", value_name = "X", value_parser = number)]
    initial_matrix_scale_primal: Option<Float>,
    /// Y begins as this multiple of the identity [default: 1e20, for SDPA's files 1e4].
    #[arg(long = "initialMatrixScaleDual", value_name = "X", value_parser = number)]
    initial_matrix_scale_dual: Option<Float>,
    /// The factor by which X Y is to shrink at feasible points [default: 0.1].
    #[arg(long = "feasibleCenteringParameter", value_name = "X", value_parser = number)]
    feasible_centering_parameter: Option<Float>,
    /// The factor by which X Y is to shrink at other points [default: 0.3].
    #[arg(long = "infeasibleCenteringParameter", value_name = "X", value_parser = number)]
    infeasible_centering_parameter: Option<Float>,
    /// The part of the way to the boundary that a step takes [default: 0.7, for SDPA's files 0.9].
    #[arg(long = "stepLengthReduction", value_name = "X", value_parser = number)]
    step_length_reduction: Option<Float>,
    /// End where a primal step is smaller [default: 0].
    #[arg(long = "minPrimalStep", value_name = "X", value_parser = number)]
    min_primal_step: Option<Float>,
    /// End where a dual step is smaller [default: 0].
    #[arg(long = "minDualStep", value_name = "X", value_parser = number)]
    min_dual_step: Option<Float>,
    /// End where Tr(X Y) over the number of rows exceeds it [default: 1e100].
    #[arg(long = "maxComplementarity", value_name = "X", value_parser = number)]
    max_complementarity: Option<Float>,
    /// End where a ray shows to this error that nothing is feasible [default: 1e-20 for SDPA's files, else never].
    #[arg(long = "infeasibilityThreshold", value_name = "X", value_parser = number)]
    infeasibility_threshold: Option<Float>,
    /// Make all iterations at the full precision, not the first ones at fewer bits.
    #[arg(long = "no-ramp")]
    no_ramp: bool,
    /// Seconds between checkpoints [default: 3600].
    #[arg(long = "checkpointInterval", value_name = "S", value_parser = parse_count)]
    pub checkpoint_interval: Option<u64>,
    /// Keep no checkpoint of the end.
    #[arg(long = "noFinalCheckpoint")]
    pub no_final_checkpoint: bool,
    /// What of the solution is written: a list of x, y, z, X, Y [default: x,y].
    #[arg(long = "writeSolution", value_name = "LIST")]
    write_solution: Option<String>,
    /// 0 prints nothing, 1 the table of iterations [default: 1]; more prints no more.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub verbosity: Option<u64>,
    /// Taken for the sake of SDPB's command lines, and ignored: threads share one memory here.
    #[arg(long = "procsPerNode", value_name = "N", value_parser = parse_count, hide = true)]
    procs_per_node: Option<u64>,
    /// Taken for the sake of SDPB's command lines, and ignored.
    #[arg(long = "procGranularity", value_name = "N", value_parser = parse_count, hide = true)]
    proc_granularity: Option<u64>,
    /// Taken for the sake of SDPB's command lines, and ignored: see --memory.
    #[arg(long = "maxSharedMemory", value_name = "SIZE", hide = true)]
    max_shared_memory: Option<String>,
}

impl Sdp {
    /// Checks what options say together.
    ///
    /// # Errors
    /// [`Error::Precision`], [`Error::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        self.engine.refuse_devices("sdp")?;
        self.choices.parts()?;
        self.choices.precision.map_or(Ok(()), |bits| check_reach(bits, self.engine.kernel))
    }

    /// The choices of the command line, and behind them those of the file of parameters.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] with what the parser refuses.
    pub fn merged(&self) -> Result<Choices> {
        match &self.param {
            None => Ok(self.choices.clone()),
            Some(path) => Ok(self.choices.clone().or(read_parameters(path)?)),
        }
    }
}

/// Reads a file of parameters.
fn read_parameters(path: &Path) -> Result<Choices> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|source| Error::Io { path: path.to_path_buf(), action: "read", source })?;
    let refused = |message: String| Error::Format { path: path.to_path_buf(), message };
    let mut words = vec!["sunzi sdp".to_string()];
    for (line, text) in text.lines().enumerate() {
        let text = text.split('#').next().unwrap_or("").trim();
        if text.is_empty() {
            continue;
        }
        let word = match text.split_once('=') {
            Some((key, value)) => setting(key.trim(), value.trim()),
            None => of_sdpa(text),
        };
        words.extend(word.ok_or_else(|| refused(format!("line {}: '{text}' is not option=value", line + 1)))?);
    }
    let parser = Choices::augment_args(Command::new("sunzi sdp"));
    let matches = parser.try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        refused(text.lines().next().unwrap_or("a bad option").trim_start_matches("error: ").to_string())
    })?;
    Choices::from_arg_matches(&matches).map_err(|error| refused(error.to_string()))
}

/// An option with its value; of a switch `true` or `false`.
fn setting(key: &str, value: &str) -> Option<Option<String>> {
    if key.is_empty() || key.contains(char::is_whitespace) {
        return None;
    }
    Some(match value {
        "true" => Some(format!("--{key}")),
        "false" => None,
        _ => Some(format!("--{key}={value}")),
    })
}

/// A line of `param.sdpa`: a number, its type, a name. What is not used here is passed over.
fn of_sdpa(text: &str) -> Option<Option<String>> {
    let mut words = text.split_whitespace();
    let value = words.next()?;
    let name = words
        .map(|word| word.trim_end_matches([';', ',']))
        .find(|word| !matches!(*word, "double" | "unsigned" | "int" | "char*" | ""))?;
    let known = match name {
        "maxIteration" => "maxIterations",
        "epsilonStar" => "dualityGapThreshold",
        "epsilonDash" => "primalErrorThreshold",
        "lambdaStar" => "initialMatrixScalePrimal",
        "betaStar" => "feasibleCenteringParameter",
        "betaBar" => "infeasibleCenteringParameter",
        "gammaStar" => "stepLengthReduction",
        "precision" => "precision",
        "omegaStar" | "lowerBound" | "upperBound" => return Some(None),
        _ if name.ends_with("print") || name.ends_with("Print") => return Some(None),
        _ => return None,
    };
    Some(Some(format!("--{known}={value}")))
}

impl Choices {
    /// These, and what they leave open from `file`.
    fn or(self, file: Choices) -> Choices {
        Choices {
            precision: self.precision.or(file.precision),
            find_primal_feasible: self.find_primal_feasible || file.find_primal_feasible,
            find_dual_feasible: self.find_dual_feasible || file.find_dual_feasible,
            detect_primal_feasible_jump: self.detect_primal_feasible_jump || file.detect_primal_feasible_jump,
            detect_dual_feasible_jump: self.detect_dual_feasible_jump || file.detect_dual_feasible_jump,
            max_iterations: self.max_iterations.or(file.max_iterations),
            max_runtime: self.max_runtime.or(file.max_runtime),
            duality_gap_threshold: self.duality_gap_threshold.or(file.duality_gap_threshold),
            primal_error_threshold: self.primal_error_threshold.or(file.primal_error_threshold.clone()),
            // SDPA has one threshold, and one scale, for both.
            dual_error_threshold: self
                .dual_error_threshold
                .or(file.dual_error_threshold)
                .or(file.primal_error_threshold),
            initial_matrix_scale_primal: self.initial_matrix_scale_primal.or(file.initial_matrix_scale_primal.clone()),
            initial_matrix_scale_dual: self
                .initial_matrix_scale_dual
                .or(file.initial_matrix_scale_dual)
                .or(file.initial_matrix_scale_primal),
            feasible_centering_parameter: self.feasible_centering_parameter.or(file.feasible_centering_parameter),
            infeasible_centering_parameter: self.infeasible_centering_parameter.or(file.infeasible_centering_parameter),
            step_length_reduction: self.step_length_reduction.or(file.step_length_reduction),
            min_primal_step: self.min_primal_step.or(file.min_primal_step),
            min_dual_step: self.min_dual_step.or(file.min_dual_step),
            max_complementarity: self.max_complementarity.or(file.max_complementarity),
            infeasibility_threshold: self.infeasibility_threshold.or(file.infeasibility_threshold),
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

    /// What of the solution is written.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the word that names nothing.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Choices> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("param");
        std::fs::write(&path, text).unwrap();
        read_parameters(&path)
    }

    #[test]
    fn files_of_parameters_are_read_and_the_command_line_counts_first() {
        let file = read(
            "# a comment\nprecision = 512\nmaxIterations=7\ndetectDualFeasibleJump=true\nfindDualFeasible=false\n",
        );
        let file = file.unwrap();
        assert_eq!((file.precision, file.max_iterations, file.detect_dual_feasible_jump), (Some(512), Some(7), true));
        assert!(!file.find_dual_feasible);
        let line = Choices { precision: Some(300), ..Choices::default() };
        let merged = line.or(file);
        assert_eq!((merged.precision, merged.max_iterations), (Some(300), Some(7)));
        let sdpa = "200 unsigned int maxIteration;\n1.0E-40 double epsilonStar;\n1.0E3 double lambdaStar;\n\
                    2.0 double omegaStar;\n1.0E-41 double epsilonDash;\n256 precision\n%+8.3e char* xPrint\n";
        let sdpa = read(sdpa).unwrap();
        let options = Choices::default().or(sdpa).options(Form::Sdpa);
        assert_eq!(options.max_iterations, 200);
        assert_eq!(options.initial_matrix_scale_dual, 1000);
        assert_eq!(options.dual_error_threshold, options.primal_error_threshold);
        assert!(options.duality_gap_threshold < 1.1e-40 && options.dual_error_threshold < 1.1e-41);
    }

    #[test]
    fn bad_parameters_are_named() {
        let refused = |text: &str| read(text).map(drop).unwrap_err().to_string();
        assert!(refused("precison=512\n").contains("--precison"));
        assert!(refused("precision\n").contains("line 1"));
        assert!(refused("maxIterations=many\n").contains("many"));
    }
}
