//! A harness for tests on ranks: every case is a job of processes that `mpirun` starts from the test's own program.
//!
//! Started by `cargo test` it looks for `mpirun` (variable `MPIRUN`, else the path), runs each case on several numbers
//! of ranks with a limit on its time, and reports as cargo's own harness does; arguments are parts of names to choose
//! by. Started by a launcher it is one rank of the case that its arguments name. Without `mpirun` it says so, and
//! passes.
//! Jobs leave nothing behind: their files live in folders of their own, which go after each job.

use crate::job::{self, Job, Launcher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;
use sunzi::comm::mpi::{Environment, MpiRank};
use sunzi::comm::{Transport, barrier};

/// Cases that run at the same time: a launcher spends most of its time asleep.
const TOGETHER: usize = 3;

/// One thing to be tested.
pub struct Case {
    /// What cargo's harness would call it.
    pub name: &'static str,
    /// The numbers of ranks to run it on.
    pub ranks: &'static [usize],
    /// How it runs.
    pub run: Run,
}

/// How a case runs.
pub enum Run {
    /// On every rank; a panic fails it.
    Group(fn(MpiRank)),
    /// On every rank, without MPI initialised before.
    Process(fn(usize)),
    /// In the program that launches, for jobs that must end in a certain way.
    Launcher(fn(&Launcher, usize)),
    /// The same while no other case runs: for jobs that are killed, whose windows are gone only after them.
    Alone(fn(&Launcher, usize)),
    /// On every rank of a job that a `Launcher` case starts; not a case by itself.
    Part(fn(MpiRank)),
}

/// Runs the cases whose names were asked for, or is one rank of the case that the arguments name.
pub fn run(cases: &[&Case]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(job::RANK_FLAG) => be_a_rank(cases, &arguments[1], arguments[2].parse().expect("a number of ranks")),
        _ => launch_all(cases, &arguments),
    }
}

fn be_a_rank(cases: &[&Case], name: &str, ranks: usize) {
    job::end_with_parent();
    assert_eq!(sunzi::comm::launched(), Some(ranks), "the launcher's variables");
    let case = cases.iter().find(|case| case.name == name).expect("a case of this program");
    match case.run {
        Run::Group(check) | Run::Part(check) => {
            let environment = Environment::start().unwrap();
            let world = environment.world().unwrap();
            assert_eq!(
                world.size(),
                ranks,
                "this program was built for {}, not for this mpirun",
                environment.library()
            );
            if catch_unwind(AssertUnwindSafe(|| check(environment.world().unwrap()))).is_err() {
                world.abort(101);
            }
            barrier(&world).unwrap();
            drop(world);
            environment.finish().unwrap();
        }
        Run::Process(check) => check(ranks),
        Run::Launcher(_) | Run::Alone(_) => panic!("'{name}' does not run on ranks"),
    }
}

fn launch_all(cases: &[&Case], arguments: &[String]) {
    let launcher = match Launcher::find() {
        Ok(launcher) => launcher,
        Err(reason) => {
            println!("\nskipped: {reason}\n\ntest result: ok. 0 passed; 0 failed; 0 ignored");
            return;
        }
    };
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |case: &Case| filters.is_empty() || filters.iter().any(|part| case.name.contains(part.as_str()));
    let start = Instant::now();
    println!("\nrunning under {}", launcher.name());
    let chosen = cases.iter().copied().filter(|case| wanted(case) && !matches!(case.run, Run::Part(_)));
    let (alone, together): (Vec<_>, Vec<_>) = chosen.partition(|case| matches!(case.run, Run::Alone(_)));
    let results = [run_cases(&launcher, &together, TOGETHER), run_cases(&launcher, &alone, 1)].concat();
    let failed = results.iter().filter(|(_, passed)| !passed).map(|(name, _)| name).collect::<Vec<_>>();
    let passed = results.len() - failed.len();
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    failed.iter().for_each(|name| println!("    {name}"));
    let seconds = start.elapsed().as_secs_f64();
    println!("\ntest result: {word}. {passed} passed; {} failed; 0 ignored; finished in {seconds:.2}s", failed.len());
    if !failed.is_empty() {
        std::process::exit(101);
    }
}

/// Runs the cases, so many at a time; their names, and whether they passed.
fn run_cases(launcher: &Launcher, cases: &[&Case], together: usize) -> Vec<(&'static str, bool)> {
    let (next, results) = (Mutex::new(cases.iter()), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = { next.lock().unwrap().next() } {
            let begin = Instant::now();
            let passed = catch_unwind(AssertUnwindSafe(|| run_on_all_sizes(launcher, case))).is_ok();
            let word = if passed { "ok" } else { "FAILED" };
            println!("test {} ... {word} ({:.1} s)", case.name, begin.elapsed().as_secs_f64());
            results.lock().unwrap().push((case.name, passed));
        }
    };
    std::thread::scope(|scope| (0..together).for_each(|_| drop(scope.spawn(work))));
    results.into_inner().unwrap()
}

/// A multiplier of cases; 1 in `make test`.
pub fn effort() -> u32 {
    sunzi::advanced::testing::effort() as u32
}

/// The numbers of ranks to run a case on: all where `SUNZI_TEST_EFFORT` is above 1, else the fewest, the most, and one
/// between, which differs from case to case: starting processes is most of what these tests cost.
fn sizes(case: &Case) -> Vec<usize> {
    match case.ranks {
        [first, between @ .., last] if between.len() > 1 && effort() <= 1 => {
            vec![*first, between[case.name.len() % between.len()], *last]
        }
        all => all.to_vec(),
    }
}

fn run_on_all_sizes(launcher: &Launcher, case: &Case) {
    for ranks in sizes(case) {
        match case.run {
            Run::Launcher(check) | Run::Alone(check) => check(launcher, ranks),
            _ => launcher.run(&Job::of_case(case.name, ranks)).expect_success(),
        }
    }
}
