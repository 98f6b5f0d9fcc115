//! `sunzi sdp`: a semidefinite program in, its solution out.

use crate::args::Sdp;
use crate::commands::sdp_certificate::{Certification, Certified};
use crate::commands::sdp_folders::Folders;
use crate::commands::sdp_plot;
use crate::files::{INPUT, input_format, is_standard};
use crate::progress::Stage;
use crate::session::{Session, Work};
use crate::signals::{Mode, complete, even_after_a_signal, in_mode, is_interrupted, while_computing};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sunzi::advanced::store::keep_freed_memory;
use sunzi::comm::{Transport, agreed, local};
use sunzi::distributed::{Team, TeamOptions};
use sunzi::io::AtomicFiles;
use sunzi::{Context, Error, Progress, Result};
use sunzi_sdp::output::{IterationsFile, TABLE_HEADER, decimal, phase, sdpa_result, table_row};
use sunzi_sdp::output::{write_solution, write_text_among};
use sunzi_sdp::{CheckpointLock, Checkpoints, read_problem_as, read_problem_from};
use sunzi_sdp::{
    Control, Form, Iteration, Left, MemoryPlan, Pace, PrecisionPlan, Problem, Solution, Solver, SolverOptions, State,
    Termination,
};
use sunzi_session::engine::{larger_refusal, least_bytes, limited};
use sunzi_session::memory::{Budget, peak_resident_bytes};
use sunzi_session::session::{ROOT, Session as _};
use sunzi_session::units::{counted, format_bytes, format_seconds};

/// Seconds between checkpoints: SDPB's default.
const CHECKPOINT_SECONDS: u64 = 3600;

/// Exit code of a run that precision has ended: its results are there, and are not as accurate as requested.
const PRECISION_TOO_LOW: u8 = 8;

/// The data that a run needs besides its program.
struct SdpRun {
    config: Sdp,
    options: SolverOptions,
    folders: Folders,
    /// On the root, where a proof is requested.
    certification: Option<Certification>,
    input_seconds: f64,
    /// They contain the fingerprint of the program.
    checkpoints: Checkpoints,
}

/// Runs in this process, or on the ranks that work `together`, of which each reads the program and keeps its part.
/// Returns the exit code.
pub fn run(session: &mut Session, config: &Sdp, together: Option<&dyn Transport>) -> Result<u8> {
    let world = together.unwrap_or(local::alone());
    let (config, remark) = agreed(world, config.merged())?;
    let config = &config;
    Folders::compare(&config.places, world)?;
    if config.choices.verbosity == Some(0) {
        session.silence();
    }
    if let Some(remark) = remark {
        session.note(&remark);
    }
    if config.engine.memory_bytes.is_none() {
        // Matrices of the same sizes come and go in each iteration. Under a limit freed memory goes back at once.
        keep_freed_memory();
    }
    let (problem, run) = agreed(world, SdpRun::prepare(config, world))?;
    let team = match together {
        Some(world) => Some(Team::new(world.split(0)?, agreed(world, TeamOptions::from_environment())?)?),
        None => None,
    };
    let unlimited = Budget::now(u64::MAX, config.engine.thread_count(), problem.bytes());
    // On ranks the limit is that of a node.
    let budget = match (config.engine.budget(problem.bytes()), &team) {
        (Some(budget), Some(team)) => Some(budget.of_node(team.node())?),
        (budget, _) => budget,
    };
    let (builder, restate) = limited(agreed(world, config.engine.apply(Context::builder()))?, budget);
    let ctx = agreed(world, builder.build())?;
    let certificate = agreed(world, run.admit_certificate(&ctx, &problem));
    let options = run.options.clone();
    if let (Some(world), Some(team)) = (together, team) {
        let solver = Solver::on_ranks(ctx.clone(), team, &problem, options);
        let solver = with_room(solver, certificate).map_err(&restate)?;
        let (state, _lock) = run.first_state(session, &solver)?;
        // The others have their parts.
        let whole = (world.rank() == ROOT).then_some(problem);
        return run.solve(session, &ctx, solver, whole.as_ref(), state, None).map_err(restate);
    }
    let solver = with_room(Solver::new(ctx.clone(), &problem, options), certificate).map_err(&restate)?;
    if config.plan {
        return run.say_plan(session, &problem, &ctx, &solver.plan()?, unlimited).map(|()| 0);
    }
    // The plan of a small program takes as long as some of its iterations.
    let plan = session.is_reporting().then(|| solver.plan()).transpose()?;
    let (state, _lock) = run.first_state(session, &solver)?;
    run.solve(session, &ctx, solver, Some(&problem), state, plan).map_err(restate)
}

/// The value made under a limit that also has room for later steps, or the refusal that needs more.
fn with_room<T>(made: Result<T>, later: Result<()>) -> Result<T> {
    match (made, later) {
        (Err(one), Err(other)) => Err(larger_refusal(Err(one), Err(other)).err().unwrap_or(Error::Cancelled)),
        (made, later) => later.and(made),
    }
}

impl SdpRun {
    /// Reads the program, and checks whether everything requested can be done.
    fn prepare(config: &Sdp, world: &dyn Transport) -> Result<(Problem, SdpRun)> {
        let choices = &config.choices;
        let folders = Folders::new(&config.places)?;
        let start = Instant::now();
        let problem = read(config.places.input()?, choices.bits(), world)?;
        let input_seconds = start.elapsed().as_secs_f64();
        let options = choices.options(problem.form);
        if choices.parts()?.z && problem.normalization.is_none() {
            return Err(Error::InvalidArgument(
                "writeSolution lists z, but the program has no normalization.json".into(),
            ));
        }
        let (root, checkpoints) = (world.rank() == ROOT, Checkpoints::new(&problem));
        let certification = if root { Certification::new(config, &folders.results)? } else { None };
        Ok((problem, SdpRun { config: config.clone(), options, folders, certification, input_seconds, checkpoints }))
    }

    /// Refuses a limit in which the requested proof has no room after the run, whose memory is free then.
    fn admit_certificate(&self, ctx: &Context, problem: &Problem) -> Result<()> {
        // Without a limit a plan would only take time.
        if ctx.memory_bytes().is_none() {
            return Ok(());
        }
        self.certificate_bytes(ctx, problem)?.map_or(Ok(()), |bytes| ctx.admit(bytes))
    }

    /// The memory that the requested proof takes after the run, with the point.
    fn certificate_bytes(&self, ctx: &Context, problem: &Problem) -> Result<Option<u64>> {
        let bytes = self.certification.as_ref().map(|certification| certification.planned_bytes(ctx, problem));
        Ok(bytes.transpose()?.map(|bytes| bytes + problem.point_bytes()))
    }

    /// The smallest memory limit of a run in one process, whose budget without a limit is `unlimited`.
    fn least_limit(&self, problem: &Problem, unlimited: Budget) -> Result<u64> {
        let bytes = least_bytes(self.config.engine.apply(Context::builder())?, |ctx| {
            let solver = Solver::new(ctx.clone(), problem, self.options.clone());
            with_room(solver, self.admit_certificate(ctx, problem)).map(drop)
        })?;
        Ok(unlimited.least_limit(bytes))
    }

    /// Prints the memory that the run would take, and the proof after it.
    fn say_plan(
        &self,
        session: &mut Session,
        problem: &Problem,
        ctx: &Context,
        plan: &MemoryPlan,
        unlimited: Budget,
    ) -> Result<()> {
        let certificate = self.certificate_bytes(ctx, problem)?;
        let (process, least) = (unlimited.process_bytes(), self.least_limit(problem, unlimited)?);
        let planned_bytes = plan.planned_bytes.max(certificate.unwrap_or(0));
        let parts = [
            ("program", Some(problem.bytes() + plan.program_bytes)),
            ("blocks", Some(plan.block_bytes)),
            ("Schur complement", Some(plan.system_bytes)),
            ("calls", Some(plan.call_bytes)),
            ("total", Some(problem.bytes() + plan.planned_bytes)),
            ("certificate", certificate.map(|bytes| problem.bytes() + bytes)),
        ];
        session.say(&describe(problem))?;
        for (name, bytes) in parts {
            bytes.map_or(Ok(()), |bytes| session.say(&format!("{name:<18}{:>12}", format_bytes(bytes))))?;
        }
        for PrecisionPlan { precision_bits, planned_bytes } in &plan.precisions {
            let name = format!("at {precision_bits} bits");
            session.say(&format!("{name:<18}{:>12}", format_bytes(problem.bytes() + planned_bytes)))?;
        }
        session.say(&format!("{:<18}{:>12}  in addition, counted by --memory", "process", format_bytes(process)))?;
        let least_line = format!("{:<18}{:>12}  ({least} bytes)", "least --memory", format_bytes(least));
        session.say(&least_line)?;
        session.finish_report(&json!({
            "operation": "plan sdp",
            "input": self.config.places.input,
            "precision_bits": problem.precision_bits,
            "problem_bytes": problem.bytes(),
            "memory": plan,
            "certificate_bytes": certificate,
            "planned_bytes": planned_bytes,
            "process_bytes": process,
            "least_limit_bytes": least,
        }))
    }

    /// This rank's part of the state of a checkpoint, where there is one, else of that in which runs begin; on the root
    /// also the lock of their folder. Collective.
    fn first_state(&self, session: &Session, solver: &Solver<'_>) -> Result<(State, Option<CheckpointLock>)> {
        let lock = if solver.rank().0 == ROOT { self.folders.lock() } else { Ok(None) };
        let lock = solver.agreed(lock)?;
        // Collective calls here depend on nothing that only one rank has.
        let (folder, required) = self.folders.first.as_ref().map(|(folder, required)| (folder, *required)).unzip();
        let required = required.unwrap_or(false);
        // A folder named for the first checkpoint is used whatever the program of its checkpoint.
        let found = self.checkpoints.load(solver, folder.map(PathBuf::as_path), required)?;
        let said = folder.map_or(Ok(()), |folder| say_first(session, folder, required, found.as_ref()));
        solver.agreed(said)?;
        Ok((found.map_or_else(|| solver.begin(), Ok)?, lock))
    }

    /// Iterates, and writes the results: on the root, which has the `whole` program. Returns the exit code.
    fn solve(
        mut self,
        session: &mut Session,
        ctx: &Context,
        solver: Solver<'_>,
        whole: Option<&Problem>,
        state: State,
        plan: Option<MemoryPlan>,
    ) -> Result<u8> {
        let begun = whole.map(|problem| self.announce(session, problem)).transpose();
        let mut log = Log { file: solver.agreed(begun)?, iterations: Vec::new() };
        // Until all is written a signal ends only the iteration: the results are kept.
        let (own, gathered, mut stopped) = even_after_a_signal(Mode::Writing, || {
            let mut own = self.iterate(session, &solver, whole, state, &mut log)?;
            // A signal behind the last iteration, which has seen nothing of it, counts as well.
            let stopped = solver.any_says(session.stop_requested() || own.termination == Termination::Stopped)?;
            if own.termination == Termination::Stopped && solver.any_says(is_interrupted())? {
                own.termination = Termination::Interrupted;
            }
            // In one process the part at hand is the whole.
            let gathered = if solver.rank().1 > 1 { solver.gathered_solution(&own)? } else { None };
            let written = whole.map_or(Ok(()), |problem| {
                let solution = gathered.as_ref().unwrap_or(&own);
                self.write(&SdpResults { problem, solution, iterations: &log.iterations, stopped })
            });
            let written = written.and(log.file.take().map_or(Ok(()), IterationsFile::finish));
            solver.agreed(written)?;
            Ok::<_, Error>((own, gathered, stopped))
        })?;
        // Without a report they are not needed; they take as long as the products of an iteration's residuals.
        let is_reporting = solver.any_says(session.is_reporting())?;
        let dimacs = is_reporting.then(|| solver.dimacs_errors(&own)).transpose()?;
        // All is written, and only a proof may still be missing.
        stopped |= solver.any_says(self.config.certify && session.stop_requested())?;
        let (threads, (_, ranks)) = (solver.threads(), solver.rank());
        solver.close()?;
        let code = if own.termination == Termination::PrecisionTooLow { PRECISION_TOO_LOW } else { 0 };
        let Some(problem) = whole else {
            return if stopped { Err(Error::Cancelled) } else { Ok(code) };
        };
        // The part of this rank goes, where the whole is at hand.
        let solution = &gathered.unwrap_or(own);
        let certified = match self.certification.take().filter(|_| !stopped) {
            Some(certification) => Some(certification.prove(ctx, problem, solution, &self.options)?),
            None => None,
        };
        let phase = phase(solution, &self.options);
        let summary =
            Summary { run: &self, problem, solution, phase, ranks, threads, plan, certified: certified.as_ref() };
        if let Some(dimacs) = dimacs {
            session.finish_report(&summary.report(dimacs))?;
        }
        complete();
        session.say(&summary.text(&self.folders.results))?;
        certified.map_or(Ok(()), |certified| certified.say(session))?;
        if stopped { Err(Error::Cancelled) } else { Ok(code) }
    }

    /// Writes everything except a proof; the proof of an earlier run is removed.
    fn write(&self, found: &SdpResults<'_>) -> Result<()> {
        self.certification.iter().try_for_each(Certification::clear)?;
        found.write(self)
    }

    /// Checks whether results can be written, prints what is to be solved, and begins the list of iterations.
    fn announce(&self, session: &Session, problem: &Problem) -> Result<IterationsFile> {
        self.folders.make(self.config.plot.as_deref())?;
        let file = IterationsFile::begin(&self.folders.results)?;
        session.say(&describe(problem))?;
        session.say(TABLE_HEADER)?;
        session.expect(&[], problem.precision_bits, |_| Work { stages: vec![Stage::call(STAGE, 1.0)], output: None });
        session.stage(STAGE);
        Ok(file)
    }

    fn iterate(
        &self,
        session: &Session,
        solver: &Solver<'_>,
        whole: Option<&Problem>,
        state: State,
        log: &mut Log,
    ) -> Result<Solution> {
        let interval = Duration::from_secs(self.config.choices.checkpoint_interval.unwrap_or(CHECKPOINT_SECONDS));
        let mut saved = Instant::now();
        let most_bits = whole.map_or(0, |problem| problem.precision_bits);
        let mut pace = Pace::new(&self.options, whole.map_or(1, Problem::total_rows)).up_to(most_bits);
        let progress = session.progress();
        let watch = |iteration: &Iteration, state: &State| {
            let left = pace.see(iteration);
            log.add(iteration);
            let words = left.map(|left| format_seconds(left.seconds).replace(' ', ""));
            solver.agreed(session.say(&table_row(iteration, words.as_deref())))?;
            if let Some(done) = left.and_then(|left| done(iteration, left)) {
                progress(done);
            }
            if let Some(folder) = &self.folders.checkpoints
                && solver.root_says(saved.elapsed() >= interval)?
            {
                // In one process the part at hand is the whole.
                let gathered = if solver.rank().1 > 1 { solver.gathered_state(state)? } else { None };
                let write = |_| self.checkpoints.save(folder, gathered.as_ref().unwrap_or(state));
                solver.agreed(whole.map_or(Ok(()), write))?;
                saved = Instant::now();
            }
            Ok(if session.stop_requested() { Control::Stop } else { Control::Continue })
        };
        in_mode_of_ranks(solver, || solver.run(state, watch))
    }
}

/// Reads the program, from a file or from standard input.
fn read(path: &Path, bits: u32, world: &dyn Transport) -> Result<Problem> {
    if !is_standard(path) {
        return read_problem_as(path, input_format(), bits);
    }
    if world.size() > 1 {
        return Err(Error::InvalidArgument(
            "only one rank has standard input, but every rank reads the program: give a file".into(),
        ));
    }
    read_problem_from(std::io::stdin().lock(), (Path::new(INPUT), input_format()), bits)
}

/// Prints where a run begins, or why it does not.
fn say_first(session: &Session, folder: &Path, required: bool, found: Option<&State>) -> Result<()> {
    let shown = folder.display();
    // A folder that was named for the start is no surprise.
    let afresh = match required {
        true => String::new(),
        false => format!("; to start afresh, remove {shown}, or give -c another directory or ''"),
    };
    match found {
        Some(state) if state.iterations == 0 => {
            session.say(&format!("starts from the point of the checkpoint in {shown}, at iteration 1{afresh}"))
        }
        Some(state) => {
            let made = counted(state.iterations as usize, "iteration");
            session.say(&format!("resumes from the checkpoint in {shown}, after {made}{afresh}"))
        }
        None if required => Err(Error::InvalidArgument(format!(
            "{shown}: there is no checkpoint, neither checkpoint.bin nor SDPB's text files (x_0.txt, ...): correct \
             the directory that -i names, or leave -i out"
        ))),
        None => Ok(()),
    }
}

/// The name of iterations in the progress of the run.
const STAGE: &str = "iterations";

/// The progress of a run, by its time.
fn done(iteration: &Iteration, left: Left) -> Option<Progress> {
    let milliseconds = |seconds: f64| (1e3 * seconds) as u64;
    let (done, all) = (milliseconds(iteration.seconds.0), milliseconds(iteration.seconds.0 + left.seconds));
    (all > 0).then(|| Progress::new(STAGE, done.min(all), all))
}

/// The iterations of a run: for the picture, and in the file that the root writes.
struct Log {
    file: Option<IterationsFile>,
    iterations: Vec<Iteration>,
}

impl Log {
    fn add(&mut self, iteration: &Iteration) {
        self.file.iter_mut().for_each(|file| file.push(iteration));
        self.iterations.push(iteration.clone());
    }
}

/// Computes; on several ranks even where a signal came before, as only the iteration ends the work of all.
fn in_mode_of_ranks<T>(solver: &Solver<'_>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    if solver.rank().1 > 1 { while_computing(work) } else { in_mode(Mode::Computing, work) }
}

fn describe(problem: &Problem) -> String {
    let form = if problem.form == Form::Sdpb { "SDPB's form" } else { "SDPA's form" };
    let blocks = problem.groups.iter().map(|group| group.constraints.shapes().len()).sum::<usize>();
    format!(
        "{form}: {}, {} free, {} with {} in total, {} bits",
        counted(problem.variables(), "variable"),
        problem.free_variables(),
        counted(blocks, "block"),
        counted(problem.total_rows(), "row"),
        problem.precision_bits
    )
}

/// The results that are written at the end.
struct SdpResults<'a> {
    problem: &'a Problem,
    solution: &'a Solution,
    iterations: &'a [Iteration],
    stopped: bool,
}

impl SdpResults<'_> {
    fn write(&self, run: &SdpRun) -> Result<()> {
        let SdpRun { config, folders, options, checkpoints, .. } = run;
        let SdpResults { problem, solution, iterations, stopped } = *self;
        let choices = &config.choices;
        if let Some(folder) = folders.checkpoints.as_ref().filter(|_| stopped || !choices.no_final_checkpoint) {
            checkpoints.save(folder, &solution.state())?;
        }
        let mut files = AtomicFiles::default();
        write_solution(&mut files, &folders.results, (problem, solution), choices.parts()?)?;
        config.plot.iter().try_for_each(|path| sdp_plot::draw(iterations, path))?;
        if problem.form == Form::Sdpa {
            write_text_among(&mut files, &folders.results.join("result.txt"), &sdpa_result(solution, options))?;
        }
        Ok(())
    }
}

/// The summary that is printed and reported at the end.
struct Summary<'a> {
    run: &'a SdpRun,
    problem: &'a Problem,
    solution: &'a Solution,
    phase: &'static str,
    ranks: usize,
    /// Worker threads of a rank.
    threads: usize,
    /// Of a run in one process with a report.
    plan: Option<MemoryPlan>,
    certified: Option<&'a Certified>,
}

impl Summary<'_> {
    fn report(&self, dimacs: [f64; 6]) -> Value {
        let Summary { run, problem, solution, phase, ranks, threads, plan, certified } = self;
        let quality = &solution.quality;
        json!({
            "operation": "sdp",
            "input": run.config.places.input,
            "form": match problem.form { Form::Sdpb => "sdpb", Form::Sdpa => "sdpa" },
            "variables": problem.variables(),
            "free_variables": problem.free_variables(),
            "rows": problem.total_rows(),
            "precision_bits": problem.precision_bits,
            "termination": solution.termination.to_string(),
            "phase": phase,
            "remark": solution.remark,
            "advised_precision_bits": solution.advised_bits,
            "iterations": solution.iterations,
            "primal_objective": decimal(&quality.primal_objective),
            "dual_objective": decimal(&quality.dual_objective),
            "duality_gap": quality.gap.to_f64(),
            "primal_error": quality.primal_error().to_f64(),
            "dual_error": quality.dual_error.to_f64(),
            "dimacs_errors": dimacs,
            "ranks": ranks,
            "threads": threads,
            "seconds": solution.seconds,
            "phases": solution.phases,
            "input_seconds": run.input_seconds,
            "memory": plan,
            "planned_bytes": plan.as_ref().map(|plan| plan.planned_bytes),
            "certificate": certified.map(Certified::report),
            "peak_resident_bytes": peak_resident_bytes(),
        })
    }

    fn text(&self, folder: &Path) -> String {
        let Summary { solution, .. } = self;
        let quality = &solution.quality;
        let remark = solution.remark.as_ref().map_or(String::new(), |remark| format!(" ({remark})"));
        format!(
            "{}{remark} after {} in {}\nprimal objective {:.20e}, dual objective {:.20e}, gap {:.2e}, primal error \
             {:.2e}, dual error {:.2e}\n{}",
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
