//! `sunzi sdp`: a semidefinite program in, its solution out.

use crate::args::{Sdp, SdpChoices};
use crate::commands::sdp_certificate::{Certification, Certified};
use crate::commands::sdp_plot;
use crate::session::Session;
use crate::signals::{Mode, complete, in_mode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sunzi::advanced::store::keep_freed_memory;
use sunzi::{Context, Error, Result};
use sunzi_lab::engine::limited;
use sunzi_lab::memory::peak_resident_bytes;
use sunzi_lab::report::check_writable;
use sunzi_lab::session::Session as _;
use sunzi_lab::units::{counted, format_bytes, format_seconds};
use sunzi_sdp::output::{TABLE_HEADER, decimal, iterations_json, phase, sdpa_result, table_row};
use sunzi_sdp::output::{write_solution, write_text};
use sunzi_sdp::{Control, Form, Iteration, MemoryPlan, Problem, Solution, Solver, SolverOptions, State, Termination};
use sunzi_sdp::{load_checkpoint, read_problem, save_checkpoint};

/// Seconds between checkpoints: SDPB's default.
const CHECKPOINT_SECONDS: u64 = 3600;

/// Where the files of a run lie.
struct Folders {
    results: PathBuf,
    /// Where checkpoints are written; nowhere where the name is empty.
    checkpoints: Option<PathBuf>,
    /// Where a checkpoint is looked for, and whether one must be there.
    first: Option<(PathBuf, bool)>,
}

impl Folders {
    fn new(config: &Sdp) -> Folders {
        let results = match &config.out_dir {
            Some(folder) => folder.clone(),
            None => {
                let mut name = config.input.components().as_path().as_os_str().to_os_string();
                name.push("_out");
                PathBuf::from(name)
            }
        };
        let checkpoints = config.checkpoint_dir.clone().unwrap_or_else(|| results.join("checkpoint"));
        let checkpoints = Some(checkpoints).filter(|folder| !folder.as_os_str().is_empty());
        let first = match &config.initial_checkpoint_dir {
            Some(folder) => Some((folder.clone(), true)),
            None => checkpoints.clone().map(|folder| (folder, false)),
        };
        Folders { results, checkpoints, first }
    }

    /// Makes the folder of the results: what could not be written at the end is said before any work.
    fn make(&self, plot: Option<&Path>) -> Result<()> {
        plot.map_or(Ok(()), check_writable)?;
        let results = &self.results;
        std::fs::create_dir_all(results).map_err(|source| Error::Io {
            path: results.clone(),
            action: "create",
            source,
        })?;
        check_writable(&results.join("out.txt"))
    }
}

pub fn run(session: &mut Session, config: &Sdp) -> Result<()> {
    let choices = config.merged()?;
    let folders = Folders::new(config);
    if config.engine.memory_bytes.is_none() {
        // Matrices of the same sizes come and go in each iteration. Under a limit what is freed goes back at once.
        keep_freed_memory();
    }
    let start = Instant::now();
    let problem = read_problem(&config.input, choices.bits())?;
    let input_seconds = start.elapsed().as_secs_f64();
    let options = choices.options(problem.form);
    if choices.parts()?.z && problem.normalization.is_none() {
        return Err(Error::InvalidArgument("z is asked for, and the program has no normalization.json".into()));
    }
    let certification = Certification::new(config, &folders.results)?;
    let (builder, restate) = limited(config.engine.apply(Context::builder())?, config.engine.budget(problem.bytes()));
    let ctx = builder.build()?;
    let solver = Solver::new(ctx.clone(), &problem, options.clone()).map_err(&restate)?;
    let plan = solver.plan()?;
    if config.plan {
        return say_plan(session, config, &problem, &plan);
    }
    let speaks = choices.verbosity != Some(0);
    let state = first_state(session, &solver, &problem, &folders)?;
    folders.make(config.plot.as_deref())?;
    if speaks {
        session.say(&describe(&problem))?;
        session.say(TABLE_HEADER)?;
    }
    let interval = Duration::from_secs(choices.checkpoint_interval.unwrap_or(CHECKPOINT_SECONDS));
    let (mut iterations, mut saved) = (Vec::new(), Instant::now());
    let watch = |iteration: &Iteration, state: &State| {
        if speaks {
            session.say(&table_row(iteration))?;
        }
        iterations.push(iteration.clone());
        if let Some(folder) = folders.checkpoints.as_ref().filter(|_| saved.elapsed() >= interval) {
            save_checkpoint(folder, &problem, state)?;
            saved = Instant::now();
        }
        Ok(if session.stop_requested() { Control::Stop } else { Control::Continue })
    };
    let solution = in_mode(Mode::Computing, || solver.run(state, watch)).map_err(&restate)?;
    let stopped = solution.termination == Termination::Stopped;
    let found = Found { problem: &problem, solution: &solution, iterations: &iterations, stopped };
    in_mode(Mode::Writing, || {
        certification.iter().try_for_each(Certification::clear)?;
        found.write(config, &folders, (&choices, &options))
    })?;
    let certified = match certification.filter(|_| !stopped) {
        Some(certification) => Some(certification.prove(&ctx, &problem, &solution.point)?),
        None => None,
    };
    let phase = phase(&solution, &options);
    let summary =
        Summary { config, problem: &problem, solution: &solution, phase, plan, certified: certified.as_ref() };
    let dimacs = solver.dimacs_errors(&solution).map_err(&restate)?;
    session.finish_report(&summary.report(solver.threads(), input_seconds, dimacs))?;
    complete();
    session.say(&summary.text(&folders.results))?;
    certified.map_or(Ok(()), |certified| certified.say(session))?;
    if stopped { Err(Error::Cancelled) } else { Ok(()) }
}

/// What the run would take.
fn say_plan(session: &mut Session, config: &Sdp, problem: &Problem, plan: &MemoryPlan) -> Result<()> {
    let parts = [
        ("program", problem.bytes() + plan.program_bytes),
        ("blocks", plan.block_bytes),
        ("Schur complement", plan.system_bytes),
        ("calls", plan.call_bytes),
    ];
    session.say(&describe(problem))?;
    for (name, bytes) in parts {
        session.say(&format!("{name:<18}{:>12}", format_bytes(bytes)))?;
    }
    session.say(&format!("{:<18}{:>12}", "together", format_bytes(problem.bytes() + plan.planned_bytes)))?;
    session.finish_report(&json!({
        "operation": "plan sdp",
        "input": config.input,
        "precision_bits": problem.precision_bits,
        "problem_bytes": problem.bytes(),
        "memory": plan,
        "planned_bytes": plan.planned_bytes,
    }))
}

/// The state of a checkpoint, or the first one.
fn first_state(session: &Session, solver: &Solver<'_>, problem: &Problem, folders: &Folders) -> Result<State> {
    if let Some((folder, required)) = &folders.first {
        if let Some(state) = load_checkpoint(folder, problem)? {
            session.say(&format!("goes on from the checkpoint in {}", folder.display()))?;
            return Ok(state);
        }
        if *required {
            return Err(Error::InvalidArgument(format!("{}: there is no checkpoint", folder.display())));
        }
    }
    solver.begin()
}

fn describe(problem: &Problem) -> String {
    let form = if problem.form == Form::Sdpb { "SDPB's form" } else { "SDPA's form" };
    let blocks = problem.groups.iter().map(|group| group.constraints.shapes().len()).sum::<usize>();
    format!(
        "{form}: {}, {} free, {} of {} together, {} bits",
        counted(problem.variables(), "variable"),
        problem.free_variables(),
        counted(blocks, "block"),
        counted(problem.total_rows(), "row"),
        problem.precision_bits
    )
}

/// What is written at the end.
struct Found<'a> {
    problem: &'a Problem,
    solution: &'a Solution,
    iterations: &'a [Iteration],
    stopped: bool,
}

impl Found<'_> {
    fn write(&self, config: &Sdp, folders: &Folders, (choices, options): (&SdpChoices, &SolverOptions)) -> Result<()> {
        let Found { problem, solution, iterations, stopped } = *self;
        if let Some(folder) = folders.checkpoints.as_ref().filter(|_| stopped || !choices.no_final_checkpoint) {
            save_checkpoint(folder, problem, &solution.state())?;
        }
        write_solution(&folders.results, problem, solution, choices.parts()?)?;
        write_text(&folders.results.join("iterations.json"), &iterations_json(iterations))?;
        config.plot.iter().try_for_each(|path| sdp_plot::draw(iterations, path))?;
        if problem.form == Form::Sdpa {
            write_text(&folders.results.join("result.txt"), &sdpa_result(solution, options))?;
        }
        Ok(())
    }
}

/// What is said and reported at the end.
struct Summary<'a> {
    config: &'a Sdp,
    problem: &'a Problem,
    solution: &'a Solution,
    phase: &'static str,
    plan: MemoryPlan,
    certified: Option<&'a Certified>,
}

impl Summary<'_> {
    fn report(&self, threads: usize, input_seconds: f64, dimacs: [f64; 6]) -> Value {
        let Summary { config, problem, solution, phase, plan, certified } = self;
        let quality = &solution.quality;
        json!({
            "operation": "sdp",
            "input": config.input,
            "form": match problem.form { Form::Sdpb => "sdpb", Form::Sdpa => "sdpa" },
            "variables": problem.variables(),
            "free_variables": problem.free_variables(),
            "rows": problem.total_rows(),
            "precision_bits": problem.precision_bits,
            "termination": solution.termination.to_string(),
            "phase": phase,
            "remark": solution.remark,
            "iterations": solution.iterations,
            "primal_objective": decimal(&quality.primal_objective),
            "dual_objective": decimal(&quality.dual_objective),
            "duality_gap": quality.gap.to_f64(),
            "primal_error": quality.primal_error().to_f64(),
            "dual_error": quality.dual_error.to_f64(),
            "dimacs_errors": dimacs,
            "threads": threads,
            "seconds": solution.seconds,
            "phases": solution.phases,
            "input_seconds": input_seconds,
            "memory": plan,
            "planned_bytes": plan.planned_bytes,
            "certificate": certified.map(Certified::report),
            "peak_resident_bytes": peak_resident_bytes(),
        })
    }

    fn text(&self, folder: &Path) -> String {
        let Summary { solution, .. } = self;
        let quality = &solution.quality;
        let remark = solution.remark.as_ref().map_or(String::new(), |remark| format!(" ({remark})"));
        format!(
            "{}{remark} after {} in {}\nprimal objective {:.20e}, dual objective {:.20e}, gap {:.2e}, errors {:.2e} \
             and {:.2e}\n{}",
            solution.termination,
            counted(solution.iterations as usize, "iteration"),
            format_seconds(solution.seconds),
            quality.primal_objective,
            quality.dual_objective,
            quality.gap,
            quality.primal_error(),
            quality.dual_error,
            folder.display(),
        )
    }
}
