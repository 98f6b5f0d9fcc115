//! Ends of runs that are no optimum: programs without a solution, precisions that are too low, SDPA's names of them.

use super::{decimal, digits, path_program, polynomial_program, solve};
use std::fmt::Write;
use std::path::Path;
use sunzi::Result;
use sunzi::rug::Float;
use sunzi_sdp::output::{phase, sdpa_result};
use sunzi_sdp::{Control, Pace, Problem, Solution, Solver, SolverOptions, Termination, read_problem};

pub fn program(folder: &Path, name: &str, text: &str, bits: u32) -> Result<Problem> {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    read_problem(&path, bits)
}

/// Where precision ends a run, the one that is advised is enough.
#[test]
fn the_advised_precision_is_enough() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    polynomial_program(folder.path(), 2);
    let path = folder.path().join("path.dat-s");
    std::fs::write(&path, path_program(12)).unwrap();
    let cases = [(folder.path(), 40), (folder.path(), 100), (folder.path(), 128), (&path, 64), (&path, 80)];
    for (input, bits) in cases {
        let ended = solve(&read_problem(input, bits)?, 1, |_| ())?;
        let name = format!("{} at {bits} bits", input.display());
        // Where errors are 0 no test ends a run whose gap the objectives no longer show.
        let ends = [Termination::PrecisionTooLow, Termination::MaxIterationsExceeded];
        assert!(ends.contains(&ended.termination), "{name}: {}", ended.termination);
        let advised = ended.advised_bits.unwrap_or_else(|| panic!("{name}: {:?}", ended.remark));
        assert!(advised > bits && advised <= 512, "{name}: {advised}");
        let remark = ended.remark.unwrap();
        assert!(remark.contains(&format!("{advised} bits should suffice")), "{remark}");
        let again = solve(&read_problem(input, advised)?, 1, |_| ())?;
        assert_eq!((again.termination, again.advised_bits), (Termination::PrimalDualOptimal, None), "{name}");
    }
    Ok(())
}

/// No point has a gap or an error below 0, and none is known to have one below what its bits show.
#[test]
fn thresholds_that_nothing_is_seen_to_reach_end_no_run_as_optimal() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    polynomial_program(folder.path(), 2);
    let path = folder.path().join("path.dat-s");
    std::fs::write(&path, path_program(12)).unwrap();
    // The largest eigenvalue is the root of 2: its objectives have the same bits in the end.
    let root = folder.path().join("root.dat-s");
    std::fs::write(&root, "1\n1\n3\n1\n0 1 1 2 1\n0 1 2 3 1\n1 1 1 1 1\n1 1 2 2 1\n1 1 3 3 1\n").unwrap();
    for input in [folder.path(), &path, &root] {
        let problem = read_problem(input, 300)?;
        type Field = fn(&mut SolverOptions) -> &mut Float;
        let fields: [(&str, Field); 4] = [
            ("dualityGapThreshold", |options| &mut options.duality_gap_threshold),
            ("primalErrorThreshold", |options| &mut options.primal_error_threshold),
            ("dualErrorThreshold", |options| &mut options.dual_error_threshold),
            ("infeasibilityThreshold", |options| &mut options.infeasibility_threshold),
        ];
        for (name, field) in fields {
            for value in ["0", "-1e-30", "nan"] {
                let change = |options: &mut SolverOptions| *field(options) = decimal(value);
                if (name, value) == ("infeasibilityThreshold", "0") {
                    continue;
                }
                let refused = solve(&problem, 1, change).unwrap_err().to_string();
                assert!(refused.contains(name) && refused.contains("must be"), "{value}: {refused}");
            }
        }
        for ramp in [true, false] {
            let ended = solve(&problem, 1, |options| {
                (options.duality_gap_threshold, options.ramp) = (decimal("1e-400"), ramp);
            })?;
            let remark = ended.remark.unwrap_or_default();
            assert_eq!(ended.termination, Termination::PrecisionTooLow, "{remark}");
            assert!(input != root || remark.contains("gaps below 2.0e-87 are not resolved at 300 bits"), "{remark}");
            // Twice the bits between what shows and what was asked for.
            assert!(ended.advised_bits.is_some_and(|bits| bits > 300 + 2 * 1000), "{remark}");
            assert!(ended.quality.gap < 1e-40, "{}", ended.quality.gap);
        }
    }
    Ok(())
}

/// The gap that ends a run is the one of the files that it writes: SDPA's is up to twice SDPB's.
#[test]
fn the_gap_of_sdpas_form_is_that_of_its_file_of_results() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("path.dat-s");
    std::fs::write(&path, path_program(12)).unwrap();
    let problem = read_problem(&path, 256)?;
    for exponent in 20..32 {
        let threshold = decimal(&format!("1e-{exponent}"));
        let solution = solve(&problem, 1, |options| options.duality_gap_threshold = threshold.clone())?;
        let options = SolverOptions { duality_gap_threshold: threshold.clone(), ..SolverOptions::new(problem.form) };
        let text = sdpa_result(&solution, &options);
        let line = text.lines().find_map(|line| line.strip_prefix("relative gap = ")).unwrap();
        let written = decimal(line.trim());
        assert!(text.starts_with("phase.value = pdOPT") && written < threshold, "{line} and {threshold}");
        let off = Float::with_val(64, &written / &solution.quality.gap) - 1u32;
        assert!(off.abs() < 1e-15, "{line} and {}", solution.quality.gap);
    }
    Ok(())
}

/// `x^4 + 1 + y x^2` and `x^4 + 10^9 + y`, for the least y: its solution is large.
pub const FAR_PROGRAM: &str = r#"{"objective": ["0", "-1"], "PositiveMatrixWithPrefactorArray": [
    {"polynomials": [[[["1", "0", "0", "0", "1"], ["0", "0", "1"]]]]},
    {"polynomials": [[[["1e9", "0", "0", "0", "1"], ["1"]]]]}]}"#;

/// Where feasible points lie far beyond the first one, the end says which scales to begin with.
#[test]
fn a_first_point_that_is_too_small_is_said() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "far.json", FAR_PROGRAM, 200)?;
    let said = |scale: &str| {
        let ended = solve(&problem, 1, |options| {
            options.max_iterations = 12;
            (options.initial_matrix_scale_primal, options.initial_matrix_scale_dual) = (decimal(scale), decimal(scale));
        });
        let remark = ended?.remark.unwrap_or_default();
        println!("{scale}: {remark}");
        Ok::<_, sunzi::Error>(remark)
    };
    let remark = said("1")?;
    assert!(remark.contains("initialMatrixScalePrimal 1e20, initialMatrixScaleDual 1e20"), "{remark}");
    assert!(!said("1e20")?.contains("initialMatrixScale"));
    Ok(())
}

/// SDPB's programs for which there is no point on one side: its own options end them at a limit, a ray says why.
#[test]
fn programs_of_sdpb_without_a_solution_end_as_such() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let pmp = |list: &str| format!("{{\"objective\": [\"0\", \"1\"], \"PositiveMatrixWithPrefactorArray\": [{list}]}}");
    // y >= 1 and y <= 0; x^2 + 1 + y >= 0 for the largest y.
    let empty = pmp(r#"{"polynomials": [[[["-1"], ["1"]]]]}, {"polynomials": [[[["0"], ["-1"]]]]}"#);
    let unbounded = pmp(r#"{"polynomials": [[[["1", "0", "1"], ["1"]]]]}"#);
    // The ray of the second lies on the boundary of its cone, and half of the bits tell it from a large point.
    for (name, text, bits, ray) in [
        ("empty.json", empty, 200, Termination::DualInfeasible),
        ("unbounded.json", unbounded.clone(), 200, Termination::PrecisionTooLow),
        ("unbounded.json", unbounded, 768, Termination::PrimalInfeasible),
    ] {
        let problem = program(folder.path(), name, &text, bits)?;
        let plain = solve(&problem, 1, |_| ())?;
        let limits = [Termination::MaxComplementarityExceeded, Termination::PrecisionTooLow];
        assert!(limits.contains(&plain.termination), "{name}: {}", plain.termination);
        let found = solve(&problem, 1, |options| options.infeasibility_threshold = decimal("1e-20"))?;
        let remark = found.remark.unwrap();
        assert!(found.termination == ray && remark.contains("a ray shows"), "{name}: {} {remark}", found.termination);
    }
    Ok(())
}

/// With few bits precision ends the run: what a ray shows to half of them is said, and is no verdict.
#[test]
fn at_few_bits_a_ray_is_a_remark() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let pmp = |list: &str| format!("{{\"objective\": [\"0\", \"1\"], \"PositiveMatrixWithPrefactorArray\": [{list}]}}");
    let empty = pmp(r#"{"polynomials": [[[["-1"], ["1"]]]]}, {"polynomials": [[[["0"], ["-1"]]]]}"#);
    let unbounded = pmp(r#"{"polynomials": [[[["1", "0", "1"], ["1"]]]]}"#);
    let mut remarks = [0, 0];
    for (at, (name, text, ray)) in
        [("empty.json", empty, "may be dual infeasible"), ("unbounded.json", unbounded, "may be primal infeasible")]
            .into_iter()
            .enumerate()
    {
        for bits in [64, 100, 160] {
            let far = |options: &mut SolverOptions| options.max_complementarity = decimal("1e1000");
            let ended = solve(&program(folder.path(), name, &text, bits)?, 1, far)?;
            match ended.termination {
                Termination::MaxComplementarityExceeded => continue,
                end => assert_eq!(end, Termination::PrecisionTooLow, "{name} at {bits}: {:?}", ended.remark),
            }
            let remark = ended.remark.unwrap();
            assert!(remark.contains(ray) && ended.advised_bits.is_some(), "{name} at {bits}: {remark}");
            let way = "a run with infeasibilityThreshold 1e-20 and 512 bits can decide whether it is";
            assert!(remark.contains(way), "{name} at {bits}: {remark}");
            remarks[at] += 1;
        }
    }
    assert!(remarks.iter().all(|&count| count > 0), "{remarks:?}");
    // The way that is shown leads there.
    let decides = |options: &mut SolverOptions| options.infeasibility_threshold = decimal("1e-20");
    for (name, end) in [("empty.json", Termination::DualInfeasible), ("unbounded.json", Termination::PrimalInfeasible)]
    {
        let problem = read_problem(&folder.path().join(name), 512)?;
        assert_eq!(solve(&problem, 1, decides)?.termination, end, "{name}");
    }
    // What is feasible and large is no ray, whatever the remark says.
    let large = |size: &str| pmp(&format!("{{\"polynomials\": [[[[\"{size}\", \"0\", \"1\"], [\"-1\"]]]]}}"));
    let eigenvalue = |size: &str| format!("1\n1\n2\n1\n1 1 1 1 1\n1 1 2 2 1\n0 1 1 2 {size}\n0 1 2 2 -{size}\n");
    for (bits, size) in [64, 80].into_iter().flat_map(|bits| ["1e9", "1e10", "-1e10"].map(|size| (bits, size))) {
        for (name, text) in [("large.json", large(size)), ("large.dat-s", eigenvalue(size.trim_start_matches('-')))] {
            let ended = solve(&program(folder.path(), name, &text, bits)?, 1, |_| ())?;
            let wrong = [Termination::PrimalInfeasible, Termination::DualInfeasible];
            assert!(!wrong.contains(&ended.termination), "{name} {size} at {bits}: {}", ended.termination);
            let is_advised = ended.advised_bits.is_some_and(|advised| advised > bits);
            assert!(is_advised || ended.termination != Termination::PrecisionTooLow, "{name} {size} at {bits}");
        }
    }
    Ok(())
}

/// Without an interior a run ends, with the value where it is attained.
#[test]
fn programs_without_an_interior_end() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    // diag(x, 0) >= 0 for the least 0; [[x, 1], [1, z]] >= 0 for the least x, which is not attained.
    for (text, least) in [("1\n1\n2\n0\n1 1 1 1 1\n", "0"), ("2\n1\n2\n1 0\n0 1 1 2 1\n1 1 1 1 1\n2 1 2 2 1\n", "0")] {
        let problem = program(folder.path(), "a.dat-s", text, 200)?;
        let ended = solve(&problem, 1, |options| options.max_iterations = 400)?;
        let known =
            [Termination::PrimalDualOptimal, Termination::PrecisionTooLow, Termination::MaxComplementarityExceeded];
        assert!(known.contains(&ended.termination), "{text}: {}", ended.termination);
        assert!(digits(&ended, &decimal(least)) > 8.0, "{text}: {}", ended.quality.primal_objective);
    }
    Ok(())
}

/// What the errors of a solution make of the name of its phase.
#[test]
fn phases_are_those_of_sdpa() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "a.dat-s", &path_program(3), 200)?;
    let options = SolverOptions::new(problem.form);
    let solution = solve(&problem, 1, |_| ())?;
    let with = |termination, primal: bool, dual: bool| {
        let mut other = Solution { termination, ..solution.clone() };
        let error = |is_small: bool| Float::with_val(64, if is_small { 0.0 } else { 1.0 });
        (other.quality.primal_free_error, other.quality.dual_error) = (error(primal), error(dual));
        phase(&other, &options)
    };
    use Termination::{DualInfeasible, DualUnbounded, MaxIterationsExceeded, PrimalInfeasible, PrimalUnbounded};
    let expected = [
        (Termination::PrimalDualOptimal, true, true, "pdOPT"),
        (PrimalInfeasible, false, true, "pINF_dFEAS"),
        (PrimalInfeasible, false, false, "pdINF"),
        (DualInfeasible, true, false, "pFEAS_dINF"),
        (DualInfeasible, false, false, "pdINF"),
        (PrimalUnbounded, true, false, "pUNBD"),
        (DualUnbounded, false, true, "dUNBD"),
        (MaxIterationsExceeded, true, true, "pdFEAS"),
        (MaxIterationsExceeded, true, false, "pFEAS"),
        (MaxIterationsExceeded, false, true, "dFEAS"),
        (MaxIterationsExceeded, false, false, "noINFO"),
    ];
    for (termination, primal, dual, name) in expected {
        assert_eq!(with(termination, primal, dual), name, "{termination}, {primal}, {dual}");
    }
    Ok(())
}

#[test]
fn bounds_of_the_objectives_end_a_run() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    // The least -x for x >= 0; nothing is both above 1 and below -1.
    let falls = program(folder.path(), "falls.dat-s", "1\n1\n1\n-1\n1 1 1 1 1\n", 200)?;
    let rises =
        program(folder.path(), "rises.dat-s", "1\n1\n-2\n1\n1 1 1 1 1\n1 1 2 2 -1\n0 1 1 1 1\n0 1 2 2 1\n", 200)?;
    let bound = |options: &mut SolverOptions| {
        options.infeasibility_threshold = Float::new(64);
        (options.lower_bound, options.upper_bound) = (Some(decimal("-1e5")), Some(decimal("1e5")));
    };
    let (low, high) = (solve(&falls, 1, bound)?, solve(&rises, 1, bound)?);
    assert_eq!((low.termination, high.termination), (Termination::PrimalUnbounded, Termination::DualUnbounded));
    assert!(low.quality.primal_objective <= -1e5 && high.quality.dual_objective >= 1e5);
    // Where both sides are feasible a bound that is passed on the way ends nothing.
    let both = program(folder.path(), "path.dat-s", &path_program(3), 200)?;
    let optimal = solve(&both, 1, |options| {
        (options.lower_bound, options.upper_bound) = (Some(decimal("-1e9")), Some(decimal("1e9")));
    })?;
    assert_eq!(optimal.termination, Termination::PrimalDualOptimal);
    Ok(())
}

/// The lines of SDPA-GMP's file, in its order.
#[test]
fn the_result_file_is_that_of_sdpa() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "a.dat-s", &path_program(3), 200)?;
    let solution = solve(&problem, 1, |_| ())?;
    let mut options = SolverOptions::new(problem.form);
    options.upper_bound = Some(decimal("1e5"));
    let text = sdpa_result(&solution, &options);
    let starts = [
        "phase.value = pdOPT     ",
        "   Iteration = ",
        "          mu = ",
        "relative gap = ",
        "         gap = ",
        "      digits = ",
        "objValPrimal = 1.41421356237309504880",
        "objValDual   = 1.41421356237309504880",
        "p.feas.error = 0.0000000000000000e+00",
        "d.feas.error = ",
        "relative eps = 6.2230152778611417e-61",
        "total time   = ",
        "Parameters are",
        "** Parameters **",
        "maxIteration =    500",
        "epsilonStar  = 1.000e-30",
        "lambdaStar   = 1.000e+04",
        "lowerBound   = none",
        "upperBound   = 1.000e+05",
        "betaStar     = 1.000e-01",
        "betaBar      = 3.000e-01",
        "gammaStar    = 9.000e-01",
        "epsilonDash  = 1.000e-30",
        "precision    =    200",
        "xVec = ",
        "xMat = ",
        "yMat = ",
    ];
    let mut lines = text.lines();
    for start in starts {
        assert!(lines.any(|line| line.starts_with(start)), "'{start}' is missing or out of order:\n{text}");
    }
    let number = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split('=').nth(1).unwrap().trim().parse::<f64>().unwrap()
    };
    // The blocks have 3 rows and 2.
    assert!((number("gap") / number("mu") - 5.0).abs() < 1e-12 && number("mu") > 0.0);
    assert!((-number("relative gap").log10() - number("digits")).abs() < 0.4, "{text}");
    Ok(())
}

/// A whole number from -`most` to `most`.
pub fn random(seed: &mut u64, most: i64) -> i64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as i64 % (2 * most + 1) - most
}

/// A square matrix of whole numbers, row by row.
struct Square(usize, Vec<i64>);

impl Square {
    fn zeros(order: usize) -> Square {
        Square(order, vec![0; order * order])
    }

    fn at(&self, row: usize, col: usize) -> i64 {
        self.1[row * self.0 + col]
    }

    fn set(&mut self, row: usize, col: usize, value: i64) {
        self.1[row * self.0 + col] = value;
    }

    /// `A . Y`.
    fn inner(&self, other: &Square) -> i64 {
        self.1.iter().zip(&other.1).map(|(one, other)| one * other).sum()
    }

    fn from_fn(order: usize, entry: impl Fn(usize, usize) -> i64) -> Square {
        Square(order, (0..order * order).map(|at| entry(at / order, at % order)).collect())
    }
}

/// A triangle of determinant 1, and its inverse by substitution.
fn triangle(seed: &mut u64, order: usize) -> (Square, Square) {
    let (mut lower, mut inverse) = (Square::zeros(order), Square::zeros(order));
    for row in 0..order {
        (0..row).for_each(|col| lower.set(row, col, random(seed, 1)));
        lower.set(row, row, 1);
    }
    for col in 0..order {
        for row in col..order {
            let sum = (col..row).map(|k| lower.at(row, k) * inverse.at(k, col)).sum::<i64>();
            inverse.set(row, col, i64::from(row == col) - sum);
        }
    }
    (lower, inverse)
}

/// A program in whole numbers with this solution: `X = T^-T D T^-1` and `Y = T E T^T` with a triangular T of
/// determinant 1 and diagonals D and E of which one is 0 at each place, so that `X Y = 0`. Its optimum is `c^T x`.
pub fn planted(seed: &mut u64, order: usize, count: usize) -> (String, i64) {
    let (lower, inverse) = triangle(seed, order);
    let rank = order / 2;
    let x = |r: usize, c: usize| (0..rank).map(|k| inverse.at(k, r) * inverse.at(k, c) * (1 + k as i64)).sum::<i64>();
    let y = |r: usize, c: usize| (rank..order).map(|k| lower.at(r, k) * lower.at(c, k) * (2 + k as i64)).sum();
    let (x, y) = (Square::from_fn(order, x), Square::from_fn(order, y));
    // The first one is positive definite, so X can be moved inside; so can Y, as the matrices are few.
    let mut matrices = vec![Square::from_fn(order, |row, col| i64::from(row == col))];
    while matrices.len() < count {
        let mut matrix = Square::zeros(order);
        for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let value = random(seed, 3);
            matrix.set(row, col, value);
            matrix.set(col, row, value);
        }
        matrices.push(matrix);
    }
    let point = (0..count).map(|_| random(seed, 4)).collect::<Vec<_>>();
    let costs = matrices.iter().map(|matrix| matrix.inner(&y)).collect::<Vec<_>>();
    let list = costs.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    let mut text = format!("{count}\n1\n{order}\n{list}\n");
    for (row, col) in (0..order).flat_map(|row| (row..order).map(move |col| (row, col))) {
        let image = point.iter().zip(&matrices).map(|(value, matrix)| value * matrix.at(row, col)).sum::<i64>();
        let constant = image - x.at(row, col);
        let entries = std::iter::once(constant).chain(matrices.iter().map(|matrix| matrix.at(row, col)));
        for (number, entry) in entries.enumerate() {
            writeln!(text, "{number} 1 {} {} {entry}", row + 1, col + 1).unwrap();
        }
    }
    (text, costs.iter().zip(&point).map(|(cost, value)| cost * value).sum())
}

#[test]
fn planted_solutions_are_found() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 7;
    for (order, count) in [(2, 1), (3, 2), (4, 4), (6, 5), (8, 12)] {
        let (text, optimum) = planted(&mut seed, order, count);
        let problem = program(folder.path(), "planted.dat-s", &text, 256)?;
        let solution = solve(&problem, 1, |_| ())?;
        assert_eq!(solution.termination, Termination::PrimalDualOptimal, "order {order}: {:?}", solution.remark);
        assert!(digits(&solution, &Float::with_val(512, optimum)) > 29.0, "order {order}: {optimum}");
    }
    Ok(())
}

/// In the second half of a run its end is known to a third, or some iterations.
#[test]
fn the_end_of_a_run_is_foreseen() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    polynomial_program(folder.path(), 2);
    let path = folder.path().join("path.dat-s");
    std::fs::write(&path, path_program(12)).unwrap();
    for input in [folder.path(), &path] {
        let problem = read_problem(input, 400)?;
        let options = SolverOptions::new(problem.form);
        let mut pace = Pace::new(&options, problem.total_rows());
        let solver = Solver::new(sunzi::Context::builder().threads(1).build()?, &problem, options)?;
        let mut told = Vec::new();
        let solution = solver.run(solver.begin()?, |iteration, _| {
            told.push(pace.see(iteration).map(|left| left.iterations));
            assert!(iteration.conditions.free >= 1 && iteration.conditions.block >= 1);
            assert!(iteration.conditions.name.contains("_cholesky.block_"), "{}", iteration.conditions.name);
            Ok(Control::Continue)
        })?;
        assert_eq!(solution.termination, Termination::PrimalDualOptimal);
        for (at, left) in told.iter().enumerate().skip(told.len() / 2) {
            let (left, true_left) = (left.unwrap_or(f64::NAN), (told.len() - 1 - at) as f64);
            assert!((left - true_left).abs() <= 3.0 + true_left / 3.0, "iteration {at}: {left}, {true_left} in truth");
        }
    }
    Ok(())
}
