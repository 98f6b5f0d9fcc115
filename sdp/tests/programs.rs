//! Whole programs: files in, iterations, solutions with known optima out.
//!
//! Generated programs always run. Those of SDPLIB and of SDPB's own tests run where `../shared/data` stands beside the
//! repository; the larger ones where `SUNZI_TEST_EFFORT` is above 1.

#[path = "programs/checkpoints.rs"]
mod checkpoints;
#[path = "programs/dependent.rs"]
mod dependent;
#[path = "programs/ends.rs"]
mod ends;
#[path = "programs/one_point.rs"]
mod one_point;
#[path = "programs/ramp.rs"]
mod ramp;
#[path = "programs/scales.rs"]
mod scales;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use sunzi::io::AtomicFiles;
use sunzi::rug::{Float, float::Constant};
use sunzi::{Context, Result};
use sunzi_sdp::output::{WriteSolution, write_solution, write_text_among};
use sunzi_sdp::{CallTimes, Control, Problem, Solution, Solver, SolverOptions, Termination};
use sunzi_sdp::{load_checkpoint, read_problem, time_calls};

fn solve(problem: &Problem, threads: usize, change: impl FnOnce(&mut SolverOptions)) -> Result<Solution> {
    let mut options = SolverOptions::new(problem.form);
    options.max_iterations = 1000;
    change(&mut options);
    let solver = Solver::new(Context::builder().threads(threads).build()?, problem, options)?;
    solver.run(solver.begin()?, |_, _| Ok(Control::Continue))
}

fn decimal(text: &str) -> Float {
    Float::with_val(512, Float::parse(text).unwrap())
}

/// Both objectives beside the optimum, in digits.
fn digits(solution: &Solution, optimum: &Float) -> f64 {
    let quality = &solution.quality;
    let size = Float::with_val(512, optimum.abs_ref()).max(&decimal("1"));
    let off = [&quality.primal_objective, &quality.dual_objective];
    let off = off.map(|value| Float::with_val(512, value - optimum).abs() / &size);
    -off[0].clone().max(&off[1]).max(&decimal("1e-99")).to_f64().log10()
}

/// `min t` with `t I - A >= 0` for the path on `order` points: the largest eigenvalue is `2 cos(pi / (order + 1))`.
fn path_program(order: usize) -> String {
    let mut text = format!("\"largest eigenvalue\n1 = m\n2\n({order}, -2)\n{{1}}\n");
    for at in 1..=order {
        writeln!(text, "1 1 {at} {at} 1").unwrap();
        if at > 1 {
            writeln!(text, "0 1 {} {at} 1.0e0", at - 1).unwrap();
        }
    }
    text.push_str("1 2 1 1 1\n0 2 2 2 -5\n");
    text
}

/// SDPB's directory for `max y` with a matrix of polynomials of degree 2 that is positive semidefinite for `x >= 0`:
/// `[[x^2 + 2 - y, x], [x, x^2 + 1]]`, so `y <= 2`; or with `dim` 1 `x^2 - 4 x + 7 - y`, so `y <= 3`.
fn polynomial_program(folder: &Path, dim: usize) {
    let points = ["0.25", "1", "4"];
    let roots = ["0.5", "1", "2"];
    let list =
        |numbers: &[String]| format!("[{}]", numbers.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(","));
    let values = |f: &dyn Fn(f64) -> f64| points.iter().map(|x| f(x.parse().unwrap()).to_string()).collect::<Vec<_>>();
    let (c, b) = match dim {
        1 => (values(&|x| x * x - 4.0 * x + 7.0), vec![1.0; 3]),
        _ => {
            let parts = [values(&|x| x * x + 2.0), values(&|x| x), values(&|x| x * x + 1.0)];
            (parts.concat(), vec![1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        }
    };
    let b = b.iter().map(|number| list(&[number.to_string()])).collect::<Vec<_>>().join(",");
    let ones = list(&["1".into(), "1".into(), "1".into()]);
    let linear = list(&points.map(String::from));
    let odd = list(&roots.map(String::from));
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("control.json", r#"{"num_blocks": 1, "command": ""}"#.into());
    write("objectives.json", r#"{"constant": "0", "b": ["1"]}"#.into());
    write("normalization.json", r#"{"normalization": ["1", "0"]}"#.into());
    write("block_info_0.json", format!(r#"{{"dim": {dim}, "num_points": 3}}"#));
    let data = format!(
        "{{\"bilinear_bases_even\": [{ones}, {linear}], \"bilinear_bases_odd\": [{odd}], \"c\": {}, \"B\": [{b}]}}",
        list(&c)
    );
    write("block_data_0.json", data);
}

#[test]
fn the_largest_eigenvalue_of_a_path_is_found_on_any_number_of_threads() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for (order, bits) in [(2, 200), (12, 256)] {
        let path = folder.path().join("path.dat-s");
        std::fs::write(&path, path_program(order)).unwrap();
        let problem = read_problem(&path, bits)?;
        let one = solve(&problem, 1, |_| ())?;
        let pi = Float::with_val(512, Constant::Pi);
        let optimum = (pi / (order as u32 + 1)).cos() * 2u32;
        assert_eq!(one.termination, Termination::PrimalDualOptimal);
        assert!(digits(&one, &optimum) > 29.0, "order {order}: {}", one.quality.primal_objective);
        for threads in [2, 3] {
            assert!(solve(&problem, threads, |_| ())?.point == one.point, "order {order}, {threads} threads");
        }
    }
    Ok(())
}

/// Ones on the diagonal, and all entries together 0: there is no positive definite Y. Rounding ends the run, and its
/// solution is the best point of it.
#[test]
fn without_an_interior_the_best_point_is_the_solution() -> Result<()> {
    let order = 8;
    let mut text = format!("{}\n1\n{order}\n{}0\n", order + 1, "1 ".repeat(order));
    for at in 1..=order {
        writeln!(text, "{at} 1 {at} {at} 1").unwrap();
        for col in 1..=at {
            writeln!(text, "0 1 {at} {col} {}", (at * at + 3 * col) % 5).unwrap();
            writeln!(text, "{} 1 {at} {col} 1", order + 1).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dat-s");
    std::fs::write(&path, text).unwrap();
    let strict = |options: &mut SolverOptions| {
        let thresholds = [&mut options.primal_error_threshold, &mut options.dual_error_threshold];
        thresholds.into_iter().chain([&mut options.duality_gap_threshold]).for_each(|one| *one = decimal("1e-40"));
    };
    let mut reasons = String::new();
    for ramp in [true, false] {
        let one = solve(&read_problem(&path, 192)?, 1, |options| {
            strict(options);
            options.ramp = ramp;
        })?;
        assert_eq!(one.termination, Termination::PrecisionTooLow);
        let quality = &one.quality;
        let worst = quality.gap.clone().max(quality.primal_error()).max(&quality.dual_error);
        assert!(worst < 1e-10, "{worst:e} after {} iterations", one.iterations);
        let remark = one.remark.unwrap_or_default();
        assert!(remark.contains("later points are worse"), "{remark}");
        reasons.push_str(&remark);
    }
    // Which of both comes first hangs on the last bits.
    let is_known = |reason: &str| reasons.contains(reason);
    assert!(is_known("exceed the gap") || is_known("is not positive definite"), "{reasons}");
    // With more bits it goes further.
    let far = solve(&read_problem(&path, 400)?, 1, strict)?;
    assert!(far.quality.gap < 1e-25, "{}", far.quality.gap);
    Ok(())
}

#[test]
fn polynomials_have_their_minima_and_files_are_written() -> Result<()> {
    for (dim, optimum) in [(1, 3), (2, 2)] {
        let folder = tempfile::tempdir().unwrap();
        polynomial_program(folder.path(), dim);
        let problem = read_problem(folder.path(), 400)?;
        let one = solve(&problem, 1, |_| ())?;
        assert_eq!(one.termination, Termination::PrimalDualOptimal, "dim {dim}");
        assert!(digits(&one, &Float::with_val(64, optimum)) > 29.0, "dim {dim}: {}", one.quality.dual_objective);
        assert!(solve(&problem, 2, |_| ())?.point == one.point);
        let out = folder.path().join("out");
        let parts = WriteSolution::parse("x,y,z,X,Y")?;
        write_solution(&mut AtomicFiles::default(), &out, (&problem, &one), parts)?;
        let text = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        assert!(text("out.txt").starts_with("terminateReason = \"found primal-dual optimal solution\";\n"));
        // z has a number in front of y, with n . z = 1.
        assert!(text("z.txt").starts_with("2 1\n1\n"), "{}", text("z.txt"));
        for name in ["x_0.txt", "X_matrix_0.txt", "X_matrix_1.txt", "Y_matrix_0.txt", "Y_matrix_1.txt"] {
            assert!(text(name).lines().count() > dim, "{name}");
        }
        assert!(text("c_minus_By/c_minus_By.json").contains("c_minus_By"));
        // `out.txt` comes after the sync of all others, those of the caller included, and not where that fails.
        std::fs::remove_file(out.join("out.txt")).unwrap();
        let (gone, mut files) = (folder.path().join("gone"), AtomicFiles::default());
        std::fs::create_dir(&gone).unwrap();
        write_text_among(&mut files, &gone.join("a.txt"), "")?;
        std::fs::remove_dir_all(&gone).unwrap();
        let unsynced = write_solution(&mut files, &out, (&problem, &one), parts).unwrap_err().to_string();
        assert!(unsynced.contains("gone: cannot sync: ") && !out.join("out.txt").exists(), "{unsynced}");
        // The text files are a checkpoint of a run that has nothing left to do.
        let state = load_checkpoint(&out, &problem)?.unwrap();
        let solver = Solver::new(Context::builder().threads(1).build()?, &problem, SolverOptions::new(problem.form))?;
        let again = solver.run(state, |_, _| Ok(Control::Continue))?;
        assert_eq!((again.termination, again.iterations), (Termination::PrimalDualOptimal, 0));
        std::fs::write(out.join("y.txt"), "2 1\n1\n1\n").unwrap();
        assert!(load_checkpoint(&out, &problem).unwrap_err().to_string().contains("must have the sizes '1 1'"));
    }
    Ok(())
}

/// Calls that are made again to be timed change no bit, and those of an iteration are as many each time.
#[test]
fn calls_are_timed_alone_without_a_change_of_bits() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    polynomial_program(folder.path(), 2);
    let sparse = folder.path().join("path.dat-s");
    std::fs::write(&sparse, path_program(12)).unwrap();
    let kinds =
        [(folder.path(), ["cholesky", "hadamard", "spmm", "syrk"]), (&*sparse, ["cholesky", "gemm", "spmm", "sddmm"])];
    for (path, verbs) in kinds {
        let problem = read_problem(path, 160)?;
        let few = |options: &mut SolverOptions| options.max_iterations = 7;
        let plain = solve(&problem, 1, few)?;
        let (timed, calls) = time_calls(|| solve(&problem, 1, few));
        let timed = timed?;
        assert_eq!((timed.point, timed.iterations), (plain.point, 7));
        for verb in verbs {
            let of_verb = calls.iter().filter(|(call, _)| call.verb == verb);
            assert!(of_verb.clone().map(|(_, time)| time.count).sum::<u64>() >= 7, "{verb}");
            assert!(of_verb.map(|(_, time)| time.seconds).sum::<f64>() > 0.0, "{verb}");
        }
        let (again, others) = time_calls(|| solve(&problem, 1, few));
        again?;
        let counts = |calls: &CallTimes| calls.iter().map(|(call, time)| (*call, time.count)).collect::<Vec<_>>();
        assert_eq!(counts(&calls), counts(&others));
    }
    Ok(())
}

#[test]
fn few_bits_at_the_beginning_change_no_result() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    polynomial_program(folder.path(), 2);
    let problem = read_problem(folder.path(), 600)?;
    let solver = Solver::new(Context::builder().threads(1).build()?, &problem, SolverOptions::new(problem.form))?;
    let mut bits = Vec::new();
    let ramp = solver.run(solver.begin()?, |iteration, _| {
        bits.push(iteration.precision_bits);
        Ok(Control::Continue)
    })?;
    let full = solve(&problem, 1, |options| options.ramp = false)?;
    assert_eq!((ramp.termination, full.termination), (Termination::PrimalDualOptimal, Termination::PrimalDualOptimal));
    assert!(bits[0] < 600 && bits.is_sorted(), "{bits:?}");
    assert!(digits(&ramp, &Float::with_val(8, 2)) > 29.0 && digits(&full, &Float::with_val(8, 2)) > 29.0);
    assert!(ramp.iterations.abs_diff(full.iterations) <= 3, "{} and {}", ramp.iterations, full.iterations);
    assert_eq!(ramp.point.y.precision_bits(), 600);
    Ok(())
}

#[test]
fn ends_are_those_that_were_asked_for() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    polynomial_program(folder.path(), 1);
    let problem = read_problem(folder.path(), 300)?;
    let end = |change: fn(&mut SolverOptions)| Ok::<_, sunzi::Error>(solve(&problem, 1, change)?.termination);
    assert_eq!(end(|o| o.max_iterations = 3)?, Termination::MaxIterationsExceeded);
    assert_eq!(end(|o| o.max_runtime = 0)?, Termination::MaxRuntimeExceeded);
    assert_eq!(end(|o| o.find_primal_feasible = true)?, Termination::PrimalFeasible);
    assert_eq!(end(|o| o.find_dual_feasible = true)?, Termination::DualFeasible);
    assert_eq!(end(|o| o.detect_primal_feasible_jump = true)?, Termination::PrimalFeasibleJumpDetected);
    assert_eq!(end(|o| o.detect_dual_feasible_jump = true)?, Termination::DualFeasibleJumpDetected);
    assert_eq!(end(|o| o.min_primal_step = Float::with_val(8, 0.99))?, Termination::PrimalStepTooSmall);
    assert_eq!(end(|o| o.max_complementarity = Float::with_val(8, 1))?, Termination::MaxComplementarityExceeded);
    Ok(())
}

/// Nothing is feasible: `-1 >= x >= 1`, and its dual.
#[test]
fn rays_are_found() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dat-s");
    let termination = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Ok::<_, sunzi::Error>(solve(&read_problem(&path, 256)?, 1, |_| ())?.termination)
    };
    assert_eq!(
        termination("1\n1\n-2\n1\n1 1 1 1 1\n1 1 2 2 -1\n0 1 1 1 1\n0 1 2 2 1\n")?,
        Termination::PrimalInfeasible
    );
    assert_eq!(termination("1\n1\n2\n-1\n1 1 1 1 1\n1 1 2 2 1\n0 1 1 2 1\n")?, Termination::DualInfeasible);
    Ok(())
}

fn data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !folder.exists() {
        println!("skipped: programs of SDPLIB and SDPB: there is no ../shared/data");
        return None;
    }
    Some(folder)
}

fn is_long() -> bool {
    sunzi::advanced::testing::effort() > 1
}

#[test]
fn programs_of_sdplib_have_their_optima() -> Result<()> {
    let Some(data) = data() else { return Ok(()) };
    let short =
        [("truss1", "-8.9999963152868905"), ("control1", "17.784626717523405"), ("theta1", "23"), ("qap5", "-436")];
    let long = [
        ("arch0", "0.56651727321592959"),
        ("control2", "8.2999999857902351"),
        ("mcp100", "226.15735148330884"),
        ("truss5", "-132.63567797250604"),
        ("theta2", "32.879169015772581"),
        ("gpp100", "-44.943550775891146"),
        ("qap6", "-381.43840217367920"),
        ("control4", "19.794230376537536457"),
    ];
    let long = long.iter().filter(|_| is_long());
    for (name, optimum) in short.iter().chain(long) {
        let problem = read_problem(&data.join(format!("sdplib/{name}.dat-s")), 256)?;
        let solution = solve(&problem, 2, |_| ())?;
        let found = digits(&solution, &decimal(optimum));
        let errors = (solution.quality.primal_error().to_f64(), solution.quality.dual_error.to_f64());
        assert!(found > 15.5, "{name}: {found} digits, {}", solution.termination);
        assert!(errors.0 < 1e-30 && errors.1 < 1e-30, "{name}: errors {errors:?}");
    }
    for (name, termination) in [("infp1", Termination::PrimalInfeasible), ("infd1", Termination::DualInfeasible)] {
        let problem = read_problem(&data.join(format!("sdplib/{name}.dat-s")), 256)?;
        assert_eq!(solve(&problem, 2, |_| ())?.termination, termination, "{name}");
    }
    // Its least value is not attained: points near it grow without end, and more bits come nearer.
    let hinf1 = |bits: u32| read_problem(&data.join("sdplib/hinf1.dat-s"), bits);
    let ended = solve(&hinf1(200)?, 2, |_| ())?;
    assert_eq!(ended.termination, Termination::PrecisionTooLow);
    assert!(ended.quality.primal_objective > 0 && ended.quality.primal_objective < 1e-10);
    let again = solve(&hinf1(ended.advised_bits.unwrap())?, 2, |_| ())?;
    assert_eq!(again.termination, Termination::PrimalDualOptimal);
    assert!(again.quality.primal_objective < 1e-28);
    Ok(())
}

#[test]
fn programs_of_sdpb_have_its_results() -> Result<()> {
    let Some(data) = data() else { return Ok(()) };
    let problem = read_problem(&data.join("sdpb/1d/sdp"), 664)?;
    let solution = solve(&problem, 2, |_| ())?;
    assert_eq!(solution.termination, Termination::PrimalDualOptimal);
    assert!(digits(&solution, &decimal("1.84026576313204924668804017173")) > 28.0);
    if !is_long() {
        return Ok(());
    }
    let problem = read_problem(&data.join("sdpb/SingletScalar_cT_test_nmax6/sdp"), 768)?;
    let solution = solve(&problem, 2, |_| ())?;
    assert_eq!(solution.termination, Termination::PrimalDualOptimal);
    assert!(digits(&solution, &decimal("-0.28388466632834991310779120004343724536")) > 29.0);
    // From the blocks that pmp2sdp made, and from the polynomial program.
    for form in ["sdp", "pmp/pmp.nsv"] {
        let problem = read_problem(&data.join("sdpb/SingletScalarAllowed_dual_feasible_jump").join(form), 768)?;
        let solution = solve(&problem, 2, |options| {
            options.detect_primal_feasible_jump = true;
            options.detect_dual_feasible_jump = true;
            options.primal_error_threshold = decimal("1e-200");
            options.dual_error_threshold = decimal("1e-200");
        })?;
        assert_eq!((solution.termination, solution.iterations), (Termination::DualFeasibleJumpDetected, 33));
        let off = solution.quality.primal_objective / decimal("-7309009.4643476847673223067696803369") - 1u32;
        assert!(off.abs() < 1e-12);
    }
    Ok(())
}
