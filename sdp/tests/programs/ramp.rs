//! Ends with a precision that follows the gap beside those of runs that have all bits from the start.

use super::ends::{planted, program};
use super::{data, is_long, path_program, solve};
use std::path::Path;
use sunzi::rug::{Float, ops::Pow};
use sunzi::{Context, Result};
use sunzi_sdp::{Control, Problem, Solution, Solver, SolverOptions, Termination};
use sunzi_sdp::{load_checkpoint, read_problem, save_checkpoint};

/// The parabola `x^2 - 4 x + 7 - y`.
const PARABOLA: &str = r#"{"objective": ["0", "1"],
    "PositiveMatrixWithPrefactorArray": [{"polynomials": [[[["7", "-4", "1"], ["-1"]]]]}]}"#;

/// A program of polynomials of this degree that are positive, in two free variables.
fn polynomials(degree: i64) -> String {
    let list = |coefficient: &dyn Fn(i64) -> i64| {
        let numbers = (0..=degree).map(|at| format!("\"{}\"", coefficient(at)));
        format!("[{}]", numbers.collect::<Vec<_>>().join(","))
    };
    let constant = list(&|at| if at % 2 == 0 { 5 + at } else { -3 });
    let slope = list(&|at| i64::from(at == 1));
    let minus = list(&|at| -i64::from(at == 0));
    format!(
        "{{\"objective\": [\"0\", \"1\", \"-1\"], \"PositiveMatrixWithPrefactorArray\": [\
         {{\"polynomials\": [[[{constant}, {minus}, {slope}]]]}}]}}"
    )
}

fn power(digits: i32) -> Float {
    Float::with_val(64, 10).pow(digits)
}

/// Changes the thresholds and choices by which a run ends.
type Change = fn(&mut SolverOptions);

/// Such changes, by their names.
const CHOICES: [(&str, Change); 6] = [
    ("thresholds of 1e-30", |_| ()),
    ("errors of 1e-100", |options| {
        (options.primal_error_threshold, options.dual_error_threshold) = (power(-100), power(-100));
    }),
    ("errors of 1e-150, a gap of 1e-50", |options| {
        (options.primal_error_threshold, options.dual_error_threshold) = (power(-150), power(-150));
        options.duality_gap_threshold = power(-50);
    }),
    ("jumps", |options| {
        (options.detect_primal_feasible_jump, options.detect_dual_feasible_jump) = (true, true);
    }),
    ("a primal point to 1e-100", |options| {
        (options.find_primal_feasible, options.primal_error_threshold) = (true, power(-100));
    }),
    ("a dual point to 1e-150", |options| {
        (options.find_dual_feasible, options.dual_error_threshold) = (true, power(-150));
        options.primal_error_threshold = power(-40);
    }),
];

/// The contract: the same end, in at most 1.1 times the iterations, with an objective to the threshold.
fn check(name: &str, problem: &Problem) -> Result<()> {
    for (choice, change) in CHOICES {
        let run = |ramp: bool| -> Result<Solution> {
            solve(problem, 1, |options| {
                options.max_iterations = 400;
                change(options);
                options.ramp = ramp;
            })
        };
        let (ramp, full) = (run(true)?, run(false)?);
        let counts = (ramp.iterations, full.iterations);
        assert_eq!(ramp.termination, full.termination, "{name}, {choice}: {counts:?}");
        assert!(10 * counts.0 <= 11 * counts.1, "{name}, {choice}: {counts:?}");
        if ramp.termination == Termination::PrimalDualOptimal {
            let mut options = SolverOptions::new(problem.form);
            change(&mut options);
            let (one, other) = (&ramp.quality.primal_objective, &full.quality.primal_objective);
            let size = Float::with_val(64, one.abs_ref()) + Float::with_val(64, other.abs_ref());
            let most = size.max(&Float::with_val(64, 1)) * &options.duality_gap_threshold;
            assert!(Float::with_val(64, one - other).abs() <= most, "{name}, {choice}: {one:.50} and {other:.50}");
        }
    }
    Ok(())
}

#[test]
fn a_precision_that_follows_the_gap_changes_no_end() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, text: &str| program(folder.path(), name, text, 768);
    check("parabola", &read("parabola.json", PARABOLA)?)?;
    check("path", &read("path.dat-s", &path_program(6))?)?;
    for degree in (4..if is_long() { 13 } else { 5 }).step_by(2) {
        check(&format!("degree {degree}"), &read("polynomials.json", &polynomials(degree))?)?;
    }
    let mut seed = 11;
    for turn in 0..if is_long() { 20 } else { 2 } {
        let text = planted(&mut seed, 2 + turn % 6, 1 + turn % 6).0;
        check(&format!("planted {turn}"), &read("planted.dat-s", &text)?)?;
    }
    // No point is feasible, on either side.
    check("no primal", &read("a.dat-s", "1\n1\n-2\n1\n1 1 1 1 1\n1 1 2 2 -1\n0 1 1 1 1\n0 1 2 2 1\n")?)?;
    check("no dual", &read("a.dat-s", "1\n1\n2\n-1\n1 1 1 1 1\n1 1 2 2 1\n0 1 1 2 1\n")?)
}

/// Programs of others, among them some without an interior, whose residuals fall in all iterations by part of a step.
#[test]
fn programs_of_sdplib_and_sdpb_end_alike() -> Result<()> {
    let Some(data) = data() else { return Ok(()) };
    let read = |name: &str| read_problem(&data.join(name), 768);
    let short: [&str; 2] = ["sdpb/1d-isolated-zeros/pmp.json", "sdplib/truss1.dat-s"];
    let long = ["sdpb/1d/sdp", "control1", "infd1", "infp1", "hinf1", "qap5", "theta1", "mcp100", "gpp100", "arch0"];
    let long = long.iter().filter(|_| is_long());
    for &name in short.iter().chain(long) {
        let path =
            if Path::new(name).parent() == Some(Path::new("")) { format!("sdplib/{name}.dat-s") } else { name.into() };
        check(name, &read(&path)?)?;
    }
    Ok(())
}

/// What steps have reached goes along with a checkpoint: a run that was killed ends as the whole one.
#[test]
fn a_killed_run_keeps_what_its_steps_have_reached() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "parabola.json", PARABOLA, 512)?;
    let mut options = SolverOptions::new(problem.form);
    CHOICES[1].1(&mut options);
    let solver = Solver::new(Context::builder().threads(1).build()?, &problem, options)?;
    let at = |number: u64| folder.path().join(number.to_string());
    let mut bits = Vec::new();
    let whole = solver.run(solver.begin()?, |iteration, state| {
        bits.push(iteration.precision_bits);
        save_checkpoint(&at(iteration.number), &problem, state)?;
        Ok(Control::Continue)
    })?;
    assert_eq!(whole.termination, Termination::PrimalDualOptimal);
    assert!(bits[0] == 128 && bits.is_sorted() && bits[bits.len() - 2] < 512, "{bits:?}");
    for number in (1..=whole.iterations).step_by(if is_long() { 1 } else { 7 }) {
        let state = load_checkpoint(&at(number), &problem)?.unwrap();
        let again = solver.run(state, |_, _| Ok(Control::Continue))?;
        assert_eq!((again.termination, again.iterations), (whole.termination, whole.iterations), "{number}");
        assert!(again.point == whole.point && again.quality == whole.quality, "{number}");
    }
    Ok(())
}
