//! Programs in any units: what their ends say, and that these are the same.

use super::ends::{planted, program, random};
use super::{decimal, digits, is_long, path_program, solve};
use sunzi::rug::{Float, float::Constant, ops::Pow};
use sunzi::{Matrix, Result};
use sunzi_sdp::{Control, Entry, Problem, Solver, SolverOptions, SparseCone, Termination, block::Shape};
use sunzi_sdp::{load_checkpoint, save_checkpoint};

/// `min x` with `x >= c` in units of costs and constraint.
fn bound(cost: &str, factor: &str, constant: &str) -> String {
    format!("1\n1\n1\n{cost}\n0 1 1 1 {constant}\n1 1 1 1 {factor}\n")
}

#[test]
fn large_and_small_numbers_have_their_optimum() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (bound("1", "1", "1e21"), "1e21"),
        (bound("1", "1", "1e26"), "1e26"),
        (bound("1", "1", "1e120"), "1e120"),
        (bound("1e-40", "1", "2.2e-3"), "2.2e-43"),
        (bound("1e-30", "1e40", "3e-90"), "3e-160"),
    ];
    for (text, optimum) in cases {
        let solution = solve(&program(folder.path(), "a.dat-s", &text, 256)?, 1, |_| ())?;
        assert_eq!(solution.termination, Termination::PrimalDualOptimal, "{optimum}: {:?}", solution.remark);
        let quality = &solution.quality;
        for value in [&quality.primal_objective, &quality.dual_objective] {
            let off = Float::with_val(256, value / decimal(optimum)) - 1u32;
            assert!(off.to_f64().abs() < 1e-28, "{optimum}: {value}");
        }
        assert!(solution.remark.unwrap().contains("refer to the program scaled"));
    }
    // The largest eigenvalue of a path, all data times 1e20.
    let text = path_program(6).replace(" 1.0e0\n", " 1.0e20\n").replace(" -5\n", " -5e20\n");
    let solution = solve(&program(folder.path(), "a.dat-s", &text, 256)?, 1, |_| ())?;
    let optimum = (Float::with_val(256, Constant::Pi) / 7u32).cos() * 2u32 * decimal("1e20");
    assert_eq!(solution.termination, Termination::PrimalDualOptimal);
    assert!(digits(&solution, &optimum) > 29.0, "{}", solution.quality.primal_objective);
    Ok(())
}

/// The same from matrices at hand: the largest eigenvalue of `[[0, 6e23], [6e23, 0]]`.
#[test]
fn matrices_at_hand_may_have_any_size() -> Result<()> {
    let entry = |row, col, value: &str| Entry { row, col, value: decimal(value) };
    let block = SparseCone {
        shape: Shape::Dense(2),
        active: vec![0],
        entries: vec![vec![entry(0, 0, "1"), entry(1, 1, "1")]],
        constant: vec![entry(1, 0, "6e23")],
    };
    let problem = Problem::standard(200, Matrix::from_f64s(1, 1, 200, &[1.0])?, vec![block], None)?;
    let solution = solve(&problem, 1, |_| ())?;
    assert_eq!(solution.termination, Termination::PrimalDualOptimal);
    assert!(digits(&solution, &decimal("6e23")) > 28.0, "{}", solution.quality.primal_objective);
    let x = solution.point.x[0].float(0, 0);
    assert!((x / decimal("6e23") - 1u32).abs() < 1e-28);
    Ok(())
}

/// A `.dat-s` text with whole numbers, whose constraints, rows of blocks and objectives are multiplied by powers of
/// two.
fn scaled(text: &str, seed: &mut u64) -> (String, i64) {
    let lines = text.lines().collect::<Vec<_>>();
    let count = lines[0].parse::<usize>().unwrap();
    let variables = (0..count).map(|_| random(seed, 300)).collect::<Vec<_>>();
    let [block, costs, constant] = [(); 3].map(|()| random(seed, 300));
    let value = |text: &str, exponent: i64| {
        let number = Float::with_val(53, Float::parse(text).unwrap()) * Float::with_val(53, 2).pow(exponent as i32);
        number.to_string_radix(10, Some(400))
    };
    let of_costs = lines[3].split_whitespace().zip(&variables).map(|(cost, by)| value(cost, by + costs));
    let mut whole = format!("{}\n{}\n{}\n{}\n", lines[0], lines[1], lines[2], of_costs.collect::<Vec<_>>().join(" "));
    for line in &lines[4..] {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let by = match words[0].parse::<usize>().unwrap() {
            0 => constant,
            variable => variables[variable - 1],
        };
        whole.push_str(&format!("{} {}\n", words[..4].join(" "), value(words[4], by + block)));
    }
    (whole, costs + constant)
}

#[test]
fn multiples_by_powers_of_two_have_the_same_end_and_digits() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 3;
    for turn in 0..if is_long() { 150 } else { 6 } {
        let (text, optimum) = planted(&mut seed, 2 + turn % 5, 1 + turn % 4);
        let (multiple, exponent) = scaled(&text, &mut seed);
        let problem = program(folder.path(), "a.dat-s", &multiple, 256)?;
        let solution = solve(&problem, 1, |_| ())?;
        let plain = solve(&program(folder.path(), "a.dat-s", &text, 256)?, 1, |_| ())?;
        assert_eq!(solution.termination, plain.termination, "{turn}: {:?}, {:?}", solution.remark, plain.remark);
        if plain.termination != Termination::PrimalDualOptimal {
            continue;
        }
        let unit = Float::with_val(64, 2).pow(-exponent as i32);
        for value in [&solution.quality.primal_objective, &solution.quality.dual_objective] {
            let off = Float::with_val(256, value * &unit) - optimum;
            assert!(
                off.to_f64().abs() < 1e-24 * (1.0 + optimum.abs() as f64),
                "{turn}: {value} for {optimum} 2^{exponent}"
            );
        }
    }
    Ok(())
}

/// States are in the units of the caller, and a run goes on from them with the same bits.
#[test]
fn checkpoints_are_in_the_units_of_the_program() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "2\n1\n-3\n1 1e-20\n0 1 1 1 1\n0 1 2 2 1e30\n1 1 1 1 1\n2 1 2 2 1e10\n2 1 3 3 1\n0 1 3 3 -1e21\n1 1 3 3 -1\n";
    let problem = program(folder.path(), "a.dat-s", text, 256)?;
    let solver = Solver::new(sunzi::Context::new()?, &problem, SolverOptions::new(problem.form))?;
    let at = |number: u64| folder.path().join(number.to_string());
    let whole = solver.run(solver.begin()?, |iteration, state| {
        save_checkpoint(&at(iteration.number), &problem, state)?;
        Ok(Control::Continue)
    })?;
    assert_eq!(whole.termination, Termination::PrimalDualOptimal);
    let x = [0, 1].map(|row| whole.point.x[0].float(row, 0));
    // The objective is small in the units that count, and has the digits that are said.
    let said = whole.remark.clone().unwrap();
    assert!(said.contains("the gap is an absolute difference; the objectives agree to about 9 digits"), "{said}");
    assert!(said.contains("refer to the program scaled to numbers near 1"), "{said}");
    assert!((x[0].clone() - 1u32).abs() < 1e-8 && (x[1].clone() / decimal("1e20") - 1u32).abs() < 1e-8, "{x:?}");
    let images = [x[0].clone() - 1u32, x[1].clone() * decimal("1e10") - decimal("1e30")];
    for (row, image) in images.iter().enumerate() {
        let stored = whole.point.primal[0].stored().float(row, 0);
        assert!((Float::with_val(256, image / &stored) - 1u32).to_f64().abs() < 1e-6, "row {row}");
    }
    for number in (1..=whole.iterations).step_by(5) {
        let state = load_checkpoint(&at(number), &problem)?.unwrap();
        let again = solver.run(state, |_, _| Ok(Control::Continue))?;
        assert_eq!((again.termination, again.iterations), (whole.termination, whole.iterations), "{number}");
        assert!(again.point == whole.point && again.quality == whole.quality, "{number}");
    }
    Ok(())
}

/// Programs with solutions beyond the inverse of the threshold for rays, some beyond what the precision tells: none is
/// called infeasible.
#[test]
fn far_feasible_points_are_no_infeasibility() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    // [[x, 2^k], [2^k, y]] with y <= 2^-k: x is at least 2^(3 k).
    for (k, bits, ends) in [(20i32, 128, true), (23, 128, true), (23, 256, true), (60, 128, false), (200, 256, false)] {
        let large = Float::with_val(53, 2).pow(k).to_string_radix(10, Some(80));
        let text = format!("2\n2\n2 -1\n1 0\n0 1 1 2 {large}\n1 1 1 1 1\n2 1 2 2 1\n2 2 1 1 -{large}\n0 2 1 1 -1\n");
        let solution = solve(&program(folder.path(), "a.dat-s", &text, bits)?, 1, |_| ())?;
        let infeasible = [Termination::PrimalInfeasible, Termination::DualInfeasible];
        assert!(!infeasible.contains(&solution.termination), "{k} at {bits} bits: {:?}", solution.remark);
        assert!(!ends || solution.termination == Termination::PrimalDualOptimal, "{k}: {}", solution.termination);
    }
    Ok(())
}

/// The least x_n with `x_(i+1) >= x_i^2` and `x_1 >= 2^20`: a program in small numbers with a solution of any size.
fn squares(count: usize) -> String {
    let blocks = vec!["2"; count - 1].join(" ") + " 1";
    let costs = vec!["0"; count - 1].join(" ") + " 1";
    let mut text = format!("{count}\n{count}\n{blocks}\n{costs}\n");
    for at in 1..count {
        text.push_str(&format!("0 {at} 2 2 -1\n{} {at} 1 1 1\n{at} {at} 1 2 1\n", at + 1));
    }
    text + &format!("0 {count} 1 1 1048576\n1 {count} 1 1 1\n")
}

/// What is stated of the size of feasible points holds for the least of them, also where the run takes it for none.
#[test]
fn feasible_points_are_as_large_as_stated() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let mut stated = 0;
    for (count, bits) in (3..7).flat_map(|count| [64, 100, 128, 200, 300].map(|bits| (count, bits))) {
        let solution = solve(&program(folder.path(), "a.dat-s", &squares(count), bits)?, 1, |_| ())?;
        let remark = solution.remark.unwrap_or_default();
        if let Some((_, power)) = remark.split_once("sum to more than 2^") {
            let digits = power.split(|letter: char| !letter.is_ascii_digit()).next().unwrap();
            let power = digits.parse::<u64>().unwrap();
            assert!(power <= 20 << (count - 1), "{count} at {bits} bits: {remark}");
            assert!(remark.contains("no feasible points x, or only some"), "{remark}");
            stated += 1;
        }
        // Where points of this size count as none is a matter of the bits, up to 2^256.
        let is_counted = (20 << (count - 1)) <= i64::from(bits).saturating_sub(24).min(256);
        assert!(!is_counted || solution.termination != Termination::PrimalInfeasible, "{count} at {bits} bits");
    }
    assert!(stated > 8, "{stated}");
    Ok(())
}

/// Whole numbers without a feasible point: `X = T diag(...) T^T` where the ray is `Y = T^-T D T^-1`.
#[test]
fn planted_rays_are_found() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 5;
    for turn in 0..if is_long() { 150 } else { 6 } {
        let order = 2 + turn % 4;
        // Matrices whose product with a ray Y, a diagonal with zeros, is 0; a constant whose product is positive.
        let ray = (0..order).map(|at| if at == 0 || random(&mut seed, 1) > 0 { 1 } else { 0 }).collect::<Vec<i64>>();
        let count = 1 + turn % 3;
        let mut text = format!("{count}\n1\n{order}\n{}\n", vec!["1"; count].join(" "));
        for variable in 0..=count {
            let mut diagonal = (0..order).map(|_| random(&mut seed, 3)).collect::<Vec<_>>();
            let sum = (1..order).map(|at| ray[at] * diagonal[at]).sum::<i64>();
            diagonal[0] = if variable == 0 { 1 - sum } else { -sum };
            for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
                let value = if row == col { diagonal[row] } else { random(&mut seed, 2) };
                text.push_str(&format!("{variable} 1 {} {} {value}\n", col + 1, row + 1));
            }
        }
        let problem = program(folder.path(), "a.dat-s", &text, 256);
        let solution = match solve(&problem?, 1, |_| ()) {
            Ok(solution) => solution,
            Err(error) => {
                // Constraints that are the same, or 0, with other costs have no Y.
                assert!(error.to_string().contains("is inconsistent"), "{turn}: {error}");
                continue;
            }
        };
        assert_ne!(solution.termination, Termination::PrimalDualOptimal, "{turn}");
        if ray.iter().all(|&entry| entry == 1) {
            assert_eq!(solution.termination, Termination::PrimalInfeasible, "{turn}: {:?}", solution.remark);
            assert!(solution.remark.unwrap().contains("a ray shows"), "{turn}");
        }
    }
    Ok(())
}
