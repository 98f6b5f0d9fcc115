//! Programs some of whose equations follow from others, or contradict them.

use super::ends::{planted, program, random};
use super::{decimal, digits, is_long, solve};
use sunzi::rug::Float;
use sunzi::{Matrix, Result};
use sunzi_sdp::{Entry, Problem, SparseCone, Termination, block::Shape, load_checkpoint, save_checkpoint};

/// `x^2 - 4 x + 7 - y` and other free variables with these polynomials and objectives.
fn parabola(objective: &str, others: &str) -> String {
    format!(
        "{{\"objective\": [\"0\", \"1\"{objective}], \"PositiveMatrixWithPrefactorArray\": [\
         {{\"polynomials\": [[[[\"7\", \"-4\", \"1\"], [\"-1\"]{others}]]]}}]}}"
    )
}

/// The optimum, and which are left out; or why the program is refused.
#[test]
fn dependent_equations_are_left_out_or_refused() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    // [[x1 + x3, -1], [-1, x2 + x3]]: the third matrix is the sum of the others.
    let sum = |costs: &str| format!("3\n1\n2\n{costs}\n0 1 1 2 1\n1 1 1 1 1\n2 1 2 2 1\n3 1 1 1 1\n3 1 2 2 1\n");
    let twice =
        |costs: &str| format!("2\n1\n2\n{costs}\n0 1 1 2 1\n1 1 1 1 0.1\n1 1 2 2 0.1\n2 1 1 1 0.3\n2 1 2 2 0.3\n");
    let zero = |costs: &str| format!("2\n1\n2\n{costs}\n0 1 1 2 1\n1 1 1 1 1\n1 1 2 2 1\n2 1 1 1 0\n");
    let optimal = [
        ("a.dat-s", sum("1 1 2"), "2", "constraint 3"),
        (
            "a.dat-s",
            sum("0.1 0.2 0.3"),
            "0.28284271247461900976033774484193961571393437507538961463533594759814649569242141",
            "constraint 3",
        ),
        ("a.dat-s", twice("0.1 0.3"), "1", "constraint 2"),
        ("a.dat-s", zero("1 0"), "1", "constraint 2"),
        ("a.json", parabola(", \"0\"", ", [\"0\"]"), "3", "free variable 2"),
        ("a.json", parabola(", \"1\"", ", [\"-1\"]"), "3", "free variable 2"),
        ("a.json", parabola(", \"0\", \"2\"", ", [\"0\"], [\"-2\"]"), "3", "free variables 2, 3"),
    ];
    for (name, text, optimum, left_out) in optimal {
        let problem = program(folder.path(), name, &text, 256)?;
        let solution = solve(&problem, 1, |_| ())?;
        assert_eq!(solution.termination, Termination::PrimalDualOptimal, "{text}: {:?}", solution.remark);
        assert!(digits(&solution, &decimal(optimum)) > 28.0, "{text}: {}", solution.quality.primal_objective);
        let remark = solution.remark.clone().unwrap();
        assert!(remark.ends_with(&format!("counted from 1: {left_out}")), "{remark}");
        // All variables of the file are there, also in a checkpoint.
        assert_eq!(solution.point.y.rows(), problem.free_variables());
        assert_eq!(solution.point.x[0].rows(), problem.groups[0].costs.rows());
        save_checkpoint(folder.path(), &problem, &solution.state())?;
        let state = load_checkpoint(folder.path(), &problem)?.unwrap();
        assert!(state.point == solution.point);
    }
    let refused = [
        ("a.dat-s", sum("1 1 3"), "constraint 3 is inconsistent with constraints 1, 2"),
        ("a.dat-s", twice("0.1 0.30000000001"), "constraint 2 is inconsistent with constraints 1"),
        ("a.dat-s", zero("1 1"), "constraint 2 is inconsistent:"),
        ("a.json", parabola(", \"1\"", ", [\"0\"]"), "free variable 2 is inconsistent:"),
        ("a.json", parabola(", \"2\"", ", [\"-1\"]"), "free variable 2 is inconsistent with free variables 1"),
        ("a.dat-s", "1\n1\n2\n0\n0 1 1 2 1\n".into(), "nothing to optimise"),
    ];
    for (name, text, words) in refused {
        let error = solve(&program(folder.path(), name, &text, 256)?, 1, |_| ()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    Ok(())
}

/// More constraints than numbers in Y: the whole of Y is known, and the others follow.
#[test]
fn more_constraints_than_numbers_are_no_fault() -> Result<()> {
    let entry = |row, col, value: i64| Entry { row, col, value: Float::with_val(60, value) };
    let (count, y) = (6, [5, 1, 3]);
    let mut seed = 9;
    let lists = (0..count).map(|_| [random(&mut seed, 4) + 5, random(&mut seed, 4), random(&mut seed, 4) + 6]);
    let lists = lists.collect::<Vec<_>>();
    let costs = lists.iter().map(|a| (a[0] * y[0] + 2 * a[1] * y[1] + a[2] * y[2]) as f64).collect::<Vec<_>>();
    let block = SparseCone {
        shape: Shape::Dense(2),
        active: (0..count).collect(),
        entries: lists.iter().map(|a| vec![entry(0, 0, a[0]), entry(1, 0, a[1]), entry(1, 1, a[2])]).collect(),
        constant: vec![entry(0, 0, 2), entry(1, 0, -1)],
    };
    let problem = Problem::standard(256, Matrix::from_f64s(count, 1, 256, &costs)?, vec![block], None)?;
    // Y is the only point, so C . Y is the optimum.
    let solution = solve(&problem, 1, |_| ())?;
    assert!(solution.remark.as_ref().is_some_and(|remark| remark.contains("constraints 4, 5, 6")), "{solution:?}");
    let optimum = decimal(&(2 * y[0] - 2 * y[1]).to_string());
    assert!(digits(&solution, &optimum) > 10.0, "{}", solution.quality.primal_objective);
    Ok(())
}

/// Random combinations of the constraints of programs with a planted solution, put in among them, with fractions.
#[test]
fn planted_combinations_change_no_optimum() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 21;
    for turn in 0..if is_long() { 150 } else { 6 } {
        let (text, optimum) = planted(&mut seed, 3 + turn % 4, 2 + turn % 3);
        let plain = solve(&program(folder.path(), "a.dat-s", &text, 256)?, 1, |_| ())?;
        let lines = text.lines().collect::<Vec<_>>();
        let count = lines[0].parse::<usize>().unwrap();
        let factors = (0..count).map(|_| random(&mut seed, 5)).collect::<Vec<_>>();
        let mut costs = lines[3].split_whitespace().map(String::from).collect::<Vec<_>>();
        let sum = costs.iter().zip(&factors).map(|(cost, factor)| cost.parse::<i64>().unwrap() * factor).sum::<i64>();
        let is_wrong = turn % 3 == 2;
        costs.push(format!("{}", (sum + i64::from(is_wrong)) as f64 / 8.0));
        let mut entries = std::collections::BTreeMap::<String, i64>::new();
        let mut whole = format!("{}\n{}\n{}\n{}\n", count + 1, lines[1], lines[2], costs.join(" "));
        for line in &lines[4..] {
            whole.push_str(&format!("{line}\n"));
            let words = line.split_whitespace().collect::<Vec<_>>();
            if let Some(variable) = words[0].parse::<usize>().unwrap().checked_sub(1) {
                *entries.entry(words[1..4].join(" ")).or_default() +=
                    factors[variable] * words[4].parse::<i64>().unwrap();
            }
        }
        for (place, value) in entries {
            whole.push_str(&format!("{} {place} {}\n", count + 1, value as f64 / 8.0));
        }
        let problem = program(folder.path(), "a.dat-s", &whole, 256)?;
        match solve(&problem, 1, |_| ()) {
            Ok(solution) => {
                assert!(!is_wrong, "{turn}");
                assert_eq!(solution.termination, plain.termination, "{turn}: {:?}", solution.remark);
                if plain.termination == Termination::PrimalDualOptimal {
                    assert!(digits(&solution, &Float::with_val(512, optimum)) > 28.0, "{turn}");
                    assert!(solution.remark.unwrap().contains(&format!("constraint {}", count + 1)));
                }
            }
            Err(error) => assert!(is_wrong && error.to_string().contains("is inconsistent"), "{turn}: {error}"),
        }
    }
    Ok(())
}
