//! What a run allocates, counted: no more than its plan, and under the least limit the same bits.
//!
//! A program of its own, since the counter sees all threads of the process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use sunzi::advanced::store::{CountingAllocator, allocated_bytes, count_numbers, peak_bytes, reset_peak_bytes};
use sunzi::advanced::testing::effort;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{Team, TeamOptions};
use sunzi::rug::Float;
use sunzi::{Context, Error, Matrix, Result};
use sunzi_sdp::block::Shape;
use sunzi_sdp::proof::read_exact;
use sunzi_sdp::{
    Checkpoints, Constraints, Control, Entry, Group, PolynomialMatrix, PolynomialProgram, Problem, Sampled, Sampling,
};
use sunzi_sdp::{Solution, Solver, SolverOptions, SparseCone, State};
use sunzi_sdp::{certificate_bytes, certify, read_problem};

#[global_allocator]
static COUNTER: CountingAllocator = CountingAllocator;

fn alone<R>(work: impl FnOnce() -> R) -> R {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody has a number yet the first time.
    static COUNTS: Once = Once::new();
    COUNTS.call_once(count_numbers);
    work()
}

/// One measurement, or the middle of three where it is beyond the plan: the harness allocates as well, where another
/// test has just ended, and programs of some KiB show it; an overrun of the run itself shows more than once.
fn measured(planned: u64, mut measure: impl FnMut() -> Result<u64>) -> Result<u64> {
    let first = measure()?;
    if first <= planned {
        return Ok(first);
    }
    let mut all = [first, measure()?, measure()?];
    all.sort_unstable();
    Ok(all[1])
}

fn number(value: f64) -> Float {
    Float::with_val(64, value)
}

/// `count` blocks of `order` rows, each with all of its diagonal free and a path of ones as C.
fn paths(count: usize, order: usize, bits: u32) -> Result<Problem> {
    let entry = |row, col, value| Entry { row, col, value: number(value) };
    let block = |number: usize| SparseCone {
        shape: Shape::Dense(order),
        active: (number * order..(number + 1) * order).collect(),
        entries: (0..order).map(|at| vec![entry(at, at, 1.0)]).collect(),
        constant: (1..order).map(|at| entry(at, at - 1, 1.0)).collect(),
    };
    let costs = Matrix::from_f64s(count * order, 1, bits, &vec![1.0; count * order])?;
    Problem::standard(bits, costs, (0..count).map(block).collect(), None)
}

/// One block with all of its diagonal free, and a C with entries everywhere.
fn cut(order: usize, bits: u32) -> Result<Problem> {
    let entry = |row, col, value| Entry { row, col, value: number(value) };
    let weight = |row: usize, col: usize| ((row * row * 5 + col * 11 + row * col) % 13) as f64 - 6.0;
    let block = SparseCone {
        shape: Shape::Dense(order),
        active: (0..order).collect(),
        entries: (0..order).map(|at| vec![entry(at, at, 1.0)]).collect(),
        constant: (1..order).flat_map(|row| (0..row).map(move |col| entry(row, col, weight(row, col)))).collect(),
    };
    Problem::standard(bits, Matrix::from_f64s(order, 1, bits, &vec![1.0; order])?, vec![block], None)
}

/// As many constraints as asked for, with entries everywhere in one block.
fn full(variables: usize, order: usize, bits: u32) -> Result<Problem> {
    let value = |at: usize| number(((at * 7 + 3) % 11) as f64 - 5.0);
    let all = |seed: usize| {
        let places = (0..order).flat_map(|row| (0..=row).map(move |col| (row, col)));
        let mut list =
            places.map(|(row, col)| Entry { row, col, value: value(seed + 3 * row + col * col) }).collect::<Vec<_>>();
        list.iter_mut().filter(|entry| entry.row == entry.col).for_each(|entry| entry.value += 40u32);
        list
    };
    let block = SparseCone {
        shape: Shape::Dense(order),
        active: (0..variables).collect(),
        entries: (0..variables).map(all).collect(),
        constant: vec![Entry { row: 1, col: 0, value: number(3.0) }],
    };
    Problem::standard(bits, Matrix::from_f64s(variables, 1, bits, &vec![1.0; variables])?, vec![block], None)
}

/// Polynomial matrices of `dim` rows and this degree.
fn polynomials(count: usize, dim: usize, degree: usize, bits: u32) -> Result<Problem> {
    let entry = |number: usize, r: usize, s: usize| -> Vec<Vec<Float>> {
        let mut first = (0..=degree).map(|at| self::number(((number + at) % 3) as f64 * 0.25)).collect::<Vec<_>>();
        first[degree] = self::number(if r == s { 2.0 } else { 0.125 });
        first[0] += 3 * u32::from(r == s);
        vec![first, vec![self::number(if r == s { -1.0 } else { 0.0 })]]
    };
    let matrix = |number: usize| PolynomialMatrix {
        dim,
        entries: (0..dim).flat_map(|s| (0..=s).map(move |r| (r, s))).map(|(r, s)| entry(number, r, s)).collect(),
        sampling: Sampling::default(),
    };
    let matrices = (0..count).map(matrix).collect();
    PolynomialProgram { objective: vec![number(0.0), number(1.0)], normalization: None, matrices }.problem(bits)
}

/// The same with so many one-point blocks behind them, which are bounds of the free variable.
fn singles(count: usize, mut problem: Problem) -> Result<Problem> {
    let bits = problem.precision_bits;
    for at in 0..count {
        let one = |value: f64| Matrix::from_f64s(1, 1, bits, &[value]);
        let constraints = Sampled::new(1, 1, [one(1.5)?, Matrix::zeros(0, 1, bits)?])?;
        let sign = if at.is_multiple_of(2) { 1.0 } else { -1.0 };
        let (costs, free) = (one(8.0 + (at % 9) as f64)?, one(sign)?);
        problem.groups.push(Group { costs, free, constraints: Constraints::Sampled(constraints) });
    }
    Ok(problem)
}

/// As many constraints as asked for, with all of a diagonal block.
fn diagonal(variables: usize, order: usize, bits: u32) -> Result<Problem> {
    let entry = |row: usize, value: usize| Entry { row, col: row, value: number(value as f64) };
    let block = SparseCone {
        shape: Shape::Diagonal(order),
        active: (0..variables).collect(),
        entries: (0..variables).map(|at| (0..order).map(|row| entry(row, 1 + (at * 7 + row) % 5)).collect()).collect(),
        constant: vec![entry(0, 3)],
    };
    let costs = Matrix::from_f64s(variables, 1, bits, &vec![order as f64; variables])?;
    Problem::standard(bits, costs, vec![block], None)
}

fn run_with(problem: &Problem, threads: usize, limit: Option<u64>, options: &SolverOptions) -> Result<Solution> {
    let builder = Context::builder().threads(threads);
    let ctx = limit.map_or(builder.clone(), |bytes| builder.memory_bytes(bytes)).build()?;
    let solver = Solver::new(ctx, problem, options.clone())?;
    solver.run(solver.begin()?, |_, _| Ok(Control::Continue))
}

fn run(problem: &Problem, threads: usize, limit: Option<u64>) -> Result<Solution> {
    run_with(problem, threads, limit, &SolverOptions::new(problem.form))
}

fn programs() -> Result<Vec<(&'static str, Problem)>> {
    let mut programs = vec![
        ("a path of 16", paths(1, 16, 192)?),
        ("four paths of 8", paths(4, 8, 192)?),
        ("full matrices", full(8, 14, 192)?),
        ("polynomials", polynomials(3, 1, 8, 256)?),
        ("matrices of polynomials", polynomials(2, 2, 4, 256)?),
        ("one-point blocks", singles(300, polynomials(1, 1, 4, 256)?)?),
    ];
    if effort() > 1 {
        programs.push(("a path of 24", paths(1, 24, 192)?));
        programs.push(("a path of 150", paths(1, 150, 512)?));
        programs.push(("full matrices of 50 rows", full(60, 50, 320)?));
        programs.push(("polynomials of degree 40", polynomials(6, 1, 40, 800)?));
        programs.push(("larger matrices of polynomials", polynomials(3, 3, 16, 640)?));
    }
    Ok(programs)
}

#[test]
fn runs_keep_their_plan_and_their_limit() -> Result<()> {
    alone(|| {
        for (turn, (name, problem)) in programs()?.into_iter().enumerate() {
            let free = run(&problem, 1, None)?;
            for threads in [1, 2] {
                let ctx = Context::builder().threads(threads).build()?;
                let plan = Solver::new(ctx, &problem, SolverOptions::new(problem.form))?.plan()?;
                let refused = run(&problem, threads, Some(plan.planned_bytes - 1)).unwrap_err();
                assert!(
                    matches!(refused, Error::MemoryLimit { minimum_bytes, .. } if minimum_bytes == plan.planned_bytes),
                    "{name}: {refused}"
                );
                // A run takes part of a second: with little effort the programs take turns at the threads.
                if effort() == 1 && (turn + threads) % 2 == 0 {
                    continue;
                }
                let peak = measured(plan.planned_bytes, || {
                    let problem = problem.rounded(problem.precision_bits)?; // without tables that a run has made
                    let before = allocated_bytes();
                    reset_peak_bytes();
                    let limited = run(&problem, threads, Some(plan.planned_bytes));
                    let limited = limited.unwrap_or_else(|error| panic!("{name} on {threads}: {error}, {plan:?}"));
                    let peak = peak_bytes() - before;
                    assert_eq!(limited.point, free.point, "{name}");
                    Ok(peak)
                })?;
                // A bound that is far above says little; small programs have what is planned for any beside them.
                let most = 2 * peak + (160 << 10);
                assert!(plan.planned_bytes <= most, "{name} on {threads}: {peak} bytes, {plan:?}");
                assert!(peak <= plan.planned_bytes, "{name} on {threads}: {peak} bytes, {plan:?}");
            }
        }
        Ok(())
    })
}

/// Where steps are made at the full precision, the plan is what is used, to some hundredths.
#[test]
fn plans_meet_the_peak() -> Result<()> {
    alone(|| {
        // A best point is there from the second iteration on, and all take the same; on two threads it is a matter of
        // time whether both take their most at once.
        let iterations = |threads: usize| if effort() > 1 { 500 } else { [5, 25][threads - 1] };
        let programs = [
            ("a cut of 60", cut(60, 256)?, [115, 130]),
            ("a diagonal of 1000", diagonal(8, 1000, 256)?, [130, 130]),
            ("larger matrices of polynomials", polynomials(2, 2, 10, 320)?, [130, 150]),
        ];
        for (name, problem, most) in programs {
            for (threads, hundredths) in (1..).zip(most) {
                let max_iterations = iterations(threads);
                let options = SolverOptions { ramp: false, max_iterations, ..SolverOptions::new(problem.form) };
                let plan =
                    Solver::new(Context::builder().threads(threads).build()?, &problem, options.clone())?.plan()?;
                assert_eq!(plan.precisions.len(), 1, "{plan:?}");
                let (planned, mut most) = (plan.planned_bytes, 0);
                // On a busy machine one thread may wait for the other for a whole run.
                for _ in 0..10 {
                    let problem = problem.rounded(problem.precision_bits)?;
                    let before = allocated_bytes();
                    reset_peak_bytes();
                    run_with(&problem, threads, Some(planned), &options)?;
                    let peak = peak_bytes() - before;
                    assert!(peak <= planned, "{name} on {threads}: {peak} bytes, {plan:?}");
                    most = most.max(peak);
                    if 100 * planned <= hundredths * most {
                        break;
                    }
                }
                assert!(100 * planned <= hundredths * most, "{name} on {threads}: {most} bytes, {plan:?}");
            }
        }
        Ok(())
    })
}

/// Products that are checked take more, which plans know.
#[test]
fn checked_products_keep_the_plan() -> Result<()> {
    alone(|| {
        // All iterations take the same where all are made at the full precision: a few are enough then.
        let max_iterations = if effort() > 1 { 500 } else { 10 };
        for (name, problem) in [("full matrices", full(8, 14, 192)?), ("polynomials", polynomials(2, 2, 4, 256)?)] {
            let ramp = effort() > 1;
            let options = SolverOptions { ramp, max_iterations, ..SolverOptions::new(problem.form) };
            let free = run_with(&problem, 1, None, &options)?;
            for (threads, self_check, freivalds) in [(1, true, false), (1, false, true), (2, true, true)] {
                let options = options.clone();
                let builder = Context::builder().threads(threads).self_check(self_check).freivalds(freivalds);
                let planned = Solver::new(builder.clone().build()?, &problem, options.clone())?.plan()?.planned_bytes;
                let problem = problem.rounded(problem.precision_bits)?;
                let before = allocated_bytes();
                reset_peak_bytes();
                let solver = Solver::new(builder.memory_bytes(planned).build()?, &problem, options)?;
                let made = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
                let peak = peak_bytes() - before;
                assert!(made.point == free.point, "{name}");
                assert!(peak <= planned, "{name} on {threads}, {self_check} {freivalds}: {peak} bytes, {planned}");
            }
        }
        Ok(())
    })
}

/// A run goes on from a checkpoint of a precision that it does not have at one that it has a plan for.
#[test]
fn other_precisions_keep_the_plan() -> Result<()> {
    alone(|| {
        let problem = polynomials(2, 2, 8, 768)?;
        let options = SolverOptions { max_iterations: 2, ..SolverOptions::new(problem.form) };
        let plan = Solver::new(Context::builder().threads(1).build()?, &problem, options.clone())?.plan()?;
        let before = allocated_bytes();
        reset_peak_bytes();
        let ctx = Context::builder().threads(1).memory_bytes(plan.planned_bytes).build()?;
        let solver = Solver::new(ctx, &problem, options)?;
        let begun = State { precision_bits: 760, ..solver.begin()? };
        let mut bits = Vec::new();
        solver.run(begun, |iteration, _| {
            bits.push(iteration.precision_bits);
            Ok(Control::Continue)
        })?;
        let peak = peak_bytes() - before;
        assert_eq!(bits, [768, 768]);
        assert!(peak <= plan.planned_bytes, "{peak} bytes, {plan:?}");
        Ok(())
    })
}

/// Proofs of both forms take no more than is said before; what a library in C allocates is not seen here.
#[test]
fn certificates_keep_their_plan() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let order = 16;
    let mut path = format!("{order}\n1\n{order}\n{}\n", "1 ".repeat(order));
    for at in 1..=order {
        path += &format!("{at} 1 {at} {at} 1\n");
        if at > 1 {
            path += &format!("0 1 {} {at} 1\n", at - 1);
        }
    }
    let polynomials = r#"{"objective": ["0", "1"], "normalization": ["1", "0"], "PositiveMatrixWithPrefactorArray": [
        {"polynomials": [[[["9", "-4", "2", "0", "1"], ["-1"]]]]},
        {"polynomials": [[[["8", "0", "1"], ["-1"]], [["0", "1"], ["0"]]],
                         [[["0", "1"], ["0"]], [["6", "0", "1"], ["-1"]]]]}]}"#;
    alone(|| {
        for (name, text) in [("path.dat-s", &*path), ("pmp.json", polynomials)] {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            let (program, problem) = (read_exact(&file)?, read_problem(&file, 200)?);
            let ctx = Context::builder().threads(1).build()?;
            let solution = run(&problem, 1, None)?;
            let planned = certificate_bytes(&ctx, &program, &problem)?;
            if program.polynomials.is_empty() {
                // Factors of so many bits are refused in the search, and not before.
                assert!(certificate_bytes(&ctx, &program, &read_problem(&file, 5000)?)? > planned, "{name}");
            }
            let before = allocated_bytes();
            reset_peak_bytes();
            let found = certify(&ctx, &program, &problem, &solution.point)?;
            let peak = peak_bytes() - before;
            assert!(found.proof.is_some_and(|proof| proof.lower.is_some() && proof.upper.is_some()), "{name}");
            assert!(peak <= planned, "{name}: {peak} bytes, {planned} planned");
            assert!(planned <= 8 * peak, "{name}: {peak} bytes, {planned} planned");
        }
        Ok(())
    })
}

/// The data beside the repository, or a note that there are none.
fn shared() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !data.exists() {
        println!("skipped: there is no ../shared/data");
    }
    data.exists().then_some(data)
}

/// What a run planned and took, counted with the plan as its limit.
struct Measured {
    planned: u64,
    /// The plan of the highest precision at which a step was made: no plan knows which this will be.
    of_steps: u64,
    peak: u64,
}

fn plan_and_peak(problem: &Problem, threads: usize, options: &SolverOptions) -> Result<Measured> {
    let ctx = Context::builder().threads(threads).build()?;
    let plan = Solver::new(ctx, problem, options.clone())?.plan()?;
    let mut last = 0;
    let peak = measured(plan.planned_bytes, || {
        let problem = problem.rounded(problem.precision_bits)?;
        let before = allocated_bytes();
        reset_peak_bytes();
        let ctx = Context::builder().threads(threads).memory_bytes(plan.planned_bytes).build()?;
        let solver = Solver::new(ctx, &problem, options.clone())?;
        solver.run(solver.begin()?, |iteration, _| {
            last = iteration.precision_bits;
            Ok(Control::Continue)
        })?;
        Ok(peak_bytes() - before)
    })?;
    let stepped = plan.precisions.iter().filter(|precision| precision.precision_bits <= last);
    let of_steps = stepped.map(|precision| precision.planned_bytes).max().unwrap_or(0);
    Ok(Measured { planned: plan.planned_bytes, of_steps, peak })
}

/// Programs of some KiB and of some MiB, to their ends: within 5 % of the peak, and 24 KiB for products of small
/// orders, whose bits hang on numbers and for which there is no narrower way; on two threads 112, as both may take
/// their most at once, and rarely do.
#[test]
fn plans_of_small_programs_meet_the_peak() -> Result<()> {
    let Some(data) = shared() else { return Ok(()) };
    alone(|| {
        // Lists of moduli are made once in a process, by the first product that may want them.
        let first = read_problem(&data.join("sdplib/control1.dat-s"), 256)?;
        run_with(&first, 2, None, &SolverOptions::new(first.form))?;
        for (turn, file) in ["truss1", "control1", "hinf1", "theta1"].into_iter().enumerate() {
            let problem = read_problem(&data.join(format!("sdplib/{file}.dat-s")), 256)?;
            for (at, (threads, ramp)) in [(2, false), (2, true), (1, false), (1, true)].into_iter().enumerate() {
                // With little effort one of them for each program: runs to the end take seconds.
                if effort() == 1 && at != turn {
                    continue;
                }
                let options = SolverOptions { ramp, ..SolverOptions::new(problem.form) };
                let mut largest = 0;
                // On two threads it is a matter of time whether both take their most at once: one of three runs.
                let mut is_near = false;
                for _ in 0..if threads == 1 { 1 } else { 3 } {
                    let Measured { planned, of_steps, peak } = plan_and_peak(&problem, threads, &options)?;
                    println!(
                        "{file} on {threads}, ramp {ramp}: {peak} bytes, {planned} planned, {of_steps} of its steps"
                    );
                    assert!(peak <= planned, "{file} on {threads}: {peak} bytes, {planned} planned");
                    assert!(ramp || of_steps == planned);
                    largest = largest.max(peak);
                    is_near = of_steps <= 105 * largest / 100 + if threads == 1 { 24 << 10 } else { 112 << 10 };
                    if is_near {
                        break;
                    }
                }
                assert!(is_near, "{file} on {threads}, ramp {ramp}: {largest} bytes at most");
            }
        }
        Ok(())
    })
}

/// Programs of SDPLIB and of SDPB, where `../shared/data` stands beside the repository: a best point is there from the
/// second iteration on.
#[test]
fn plans_of_known_programs_meet_the_peak() -> Result<()> {
    let Some(data) = shared() else { return Ok(()) };
    let files =
        [("sdplib/arch0.dat-s", 256), ("sdplib/gpp100.dat-s", 256), ("sdpb/SingletScalar_cT_test_nmax6/sdp", 768)];
    alone(|| {
        for (file, bits) in files {
            let problem = read_problem(&data.join(file), bits)?;
            let options = SolverOptions { ramp: false, max_iterations: 3, ..SolverOptions::new(problem.form) };
            // The largest program, which takes seconds, on one thread alone.
            for threads in if effort() > 1 || file != files[0].0 { 1..=2 } else { 1..=1 } {
                // Whether two tasks take their most at once is a matter of time: the largest of up to ten runs counts.
                let (most, runs) = if threads == 1 { (105, 1) } else { (118, 10) };
                let (mut planned, mut peak) = (u64::MAX, 0);
                for _ in 0..runs {
                    if 100 * u128::from(planned) <= most * u128::from(peak) {
                        break;
                    }
                    let run = plan_and_peak(&problem, threads, &options)?;
                    println!("{file} on {threads}: {} bytes, {} planned", run.peak, run.planned);
                    assert!(
                        run.peak <= run.planned,
                        "{file} on {threads}: {} bytes, {} planned",
                        run.peak,
                        run.planned
                    );
                    (planned, peak) = (run.planned, peak.max(run.peak));
                }
                let is_near = 100 * u128::from(planned) <= most * u128::from(peak);
                assert!(is_near, "{file} on {threads}: {peak} bytes, {planned} planned");
            }
        }
        Ok(())
    })
}

/// What ranks take to read a checkpoint: together both points, of which each keeps its part, and a buffer each.
#[test]
fn ranks_read_their_parts_of_a_checkpoint() -> Result<()> {
    alone(|| {
        let (problem, folder) = (paths(3, 100, 256)?, tempfile::tempdir().unwrap());
        let options = SolverOptions { ramp: false, max_iterations: 2, ..SolverOptions::new(problem.form) };
        let checkpoints = Checkpoints::new(&problem);
        checkpoints.save(folder.path(), &run_with(&problem, 1, None, &options)?.state())?;
        let both = 2 * problem.point_bytes();
        let peaks = local::run(3, |rank| {
            let team = Team::new(rank.split(0)?, TeamOptions::default())?;
            let ctx = Context::builder().threads(1).build()?;
            let solver = Solver::on_ranks(ctx, team, &problem, options.clone())?;
            solver.any_says(false)?;
            let before = allocated_bytes();
            if rank.rank() == 0 {
                reset_peak_bytes();
            }
            solver.any_says(false)?;
            let state = checkpoints.load(&solver, Some(folder.path()), false)?.unwrap();
            solver.any_says(false)?;
            let peak = peak_bytes() - before;
            solver.any_says(state.iterations == 0)?;
            solver.close()?;
            Ok::<_, Error>(peak)
        });
        for peak in peaks {
            let peak = peak?;
            // A buffer for each rank, and a half of a whole point.
            assert!(peak > both && peak < both + both / 4 + (3 << 20), "{peak} bytes, both points have {both}");
        }
        Ok(())
    })
}

/// A program without an interior, whose numbers spread further than is planned: factors that take more bits than there
/// is room for are made number by number, or, with a kernel that is forced, have room for all the bits they may want.
#[test]
fn a_program_without_interior_runs_under_its_plan() -> Result<()> {
    let Some(data) = shared() else { return Ok(()) };
    alone(|| {
        // Numbers outgrow their room at either precision; with more bits there are more iterations of that kind.
        let problem = read_problem(&data.join("sdplib/qap5.dat-s"), if effort() > 1 { 256 } else { 160 })?;
        let options = SolverOptions { ramp: false, ..SolverOptions::new(problem.form) };
        let free = run_with(&problem, 1, None, &options)?;
        let planned = Solver::new(Context::builder().threads(1).build()?, &problem, options.clone())?.plan()?;
        let limited = run_with(&problem, 1, Some(planned.planned_bytes), &options)?;
        assert!(limited.point == free.point && limited.termination == free.termination);
        // A forced kernel keeps its tiles for factors: with the ramp numbers spread no further than there is room for.
        let options = SolverOptions::new(problem.form);
        let run = |ctx: Context| {
            let solver = Solver::new(ctx, &problem, options.clone())?;
            solver.run(solver.begin()?, |_, _| Ok(Control::Continue))
        };
        let free = run(Context::builder().threads(1).build()?)?;
        // Each run takes seconds.
        for kernel in if effort() > 1 { &["f64", "i8"][..] } else { &["i8"] } {
            let builder = Context::builder().threads(1).kernel(kernel);
            let planned = Solver::new(builder.clone().build()?, &problem, options.clone())?.plan()?.planned_bytes;
            let forced = run(builder.memory_bytes(planned).build()?)?;
            assert!(forced.point == free.point && forced.termination == free.termination, "{kernel}");
        }
        Ok(())
    })
}
