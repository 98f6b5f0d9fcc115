//! Checkpoints: of which program they are, runs that go on from them, files that are damaged.

use super::ends::{FAR_PROGRAM, program};
use super::{decimal, digits, path_program, polynomial_program, solve};
use std::fmt::Write;
use std::path::Path;
use sunzi::rug::Float;
use sunzi::{Context, Matrix, Result};
use sunzi_sdp::{CHECKPOINT_FILE, load_checkpoint, load_initial_checkpoint, save_checkpoint};
use sunzi_sdp::{Control, Solver, SolverOptions, State, Termination, has_foreign_checkpoint, read_problem};

/// Numbers of a checkpoint in front of its points.
const HEAD: usize = 33;

/// Those up to the end of the best point's, and all of version 2.
const HEAD_OF_BEST: usize = 28;

/// Those of version 3, which says nothing of what steps have reached.
const HEAD_OF_OUTSET: usize = 31;

fn rewrite(path: &Path, column: &Matrix) -> Result<()> {
    sunzi::io::write_as(path, sunzi::io::FileFormat::Binary, column, &sunzi::io::WriteOptions::new())
}

#[test]
fn a_run_that_was_ended_goes_on_with_the_same_bits() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    polynomial_program(folder.path(), 2);
    let problem = read_problem(folder.path(), 320)?;
    let whole = solve(&problem, 1, |_| ())?;
    let checkpoints = folder.path().join("ck");
    assert!(load_checkpoint(&checkpoints, &problem)?.is_none());
    let solver =
        |threads| Solver::new(Context::builder().threads(threads).build()?, &problem, SolverOptions::new(problem.form));
    let first = solver(2)?;
    let ended = first.run(first.begin()?, |iteration, state| {
        save_checkpoint(&checkpoints, &problem, state)?;
        Ok(if iteration.number == 20 { Control::Stop } else { Control::Continue })
    })?;
    assert_eq!((ended.termination, ended.iterations), (Termination::Stopped, 20));
    let second = solver(1)?;
    let state = load_checkpoint(&checkpoints, &problem)?.unwrap();
    assert_eq!(state.iterations, 20);
    let rest = second.run(state, |_, _| Ok(Control::Continue))?;
    assert_eq!((whole.termination, rest.iterations), (Termination::PrimalDualOptimal, whole.iterations));
    assert!(rest.point == whole.point);
    // Another precision goes on from it as well; another program does not.
    let finer = read_problem(folder.path(), 500)?;
    let solver = Solver::new(Context::builder().threads(1).build()?, &finer, SolverOptions::new(finer.form))?;
    let state = load_checkpoint(&checkpoints, &finer)?.unwrap();
    assert!(digits(&solver.run(state, |_, _| Ok(Control::Continue))?, &Float::with_val(8, 2)) > 29.0);
    let other = folder.path().join("path.dat-s");
    std::fs::write(&other, path_program(5)).unwrap();
    let refused = load_checkpoint(&checkpoints, &read_problem(&other, 320)?);
    assert!(refused.unwrap_err().to_string().contains("another program"));
    Ok(())
}

/// Numbers count, not how they are written; another program is one to begin with where that is asked for.
#[test]
fn a_checkpoint_knows_its_program() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.dat-s");
    let read = |text: &str, bits: u32| {
        std::fs::write(&file, text).unwrap();
        read_problem(&file, bits)
    };
    let text = path_program(5);
    let problem = read(&text, 200)?;
    let solver = Solver::new(Context::builder().threads(1).build()?, &problem, SolverOptions::new(problem.form))?;
    let (checkpoints, older) = (folder.path().join("ck"), folder.path().join("older"));
    solver.run(solver.begin()?, |iteration, state| {
        save_checkpoint(&checkpoints, &problem, state)?;
        Ok(if iteration.number == 9 { Control::Stop } else { Control::Continue })
    })?;
    // One entry of C is off in its 46th digit, or at another place.
    let long = format!("1.{:0>46}7", "");
    let edited = [&*format!("0 1 1 2 {long}\n"), "0 1 1 3 1\n"].map(|line| text.replace("0 1 1 2 1.0e0\n", line));
    for other in &edited {
        assert_ne!(*other, text);
        let other = read(other, 200)?;
        let refused = load_checkpoint(&checkpoints, &other).unwrap_err().to_string();
        assert!(
            refused.contains("another program") && refused.contains("option -i") && refused.contains("-c ''"),
            "{refused}"
        );
        let state = load_initial_checkpoint(&checkpoints, &other)?.unwrap();
        assert!(state.iterations == 0 && state.course.is_none() && state.steps.0 == 0 && state.steps.1 == 0);
        let solver = Solver::new(Context::builder().threads(1).build()?, &other, SolverOptions::new(other.form))?;
        let ended = solver.run(state, |_, _| Ok(Control::Continue))?;
        assert_eq!(ended.termination, Termination::PrimalDualOptimal);
    }
    assert!(load_checkpoint(&checkpoints, &read(&edited[1], 260)?).is_err());
    let spelled = read(&format!("\"a remark\n{}", text.replace("0 1 1 2 1.0e0\n", "0 1 1 2 +0.100e1\n")), 200)?;
    assert_eq!(load_checkpoint(&checkpoints, &spelled)?.unwrap().iterations, 9);
    // Nor in which order.
    let swapped =
        text.replace("0 1 1 2 1.0e0\n1 1 3 3 1\n0 1 2 3 1.0e0\n", "0 1 2 3 1.0e0\n1 1 3 3 1\n0 1 1 2 1.0e0\n");
    assert_ne!(swapped, text);
    assert_eq!(load_checkpoint(&checkpoints, &read(&swapped, 200)?)?.unwrap().iterations, 9);
    for (bits, has_course) in [(200, true), (260, true), (100, false)] {
        let state = load_checkpoint(&checkpoints, &read(&text, bits)?)?.unwrap();
        assert_eq!((state.iterations, state.course.is_some()), (9, has_course), "{bits}");
        assert_eq!(load_initial_checkpoint(&checkpoints, &problem)?.unwrap().iterations, 9);
    }
    // What earlier versions wrote says of no program to which it belongs.
    let column = sunzi::io::read(checkpoints.join(CHECKPOINT_FILE), &sunzi::io::ReadOptions::new(None))?.matrix;
    let (whole, head) = (load_checkpoint(&checkpoints, &problem)?.unwrap(), HEAD);
    let numbers = (column.rows() - head) / 2;
    let old = Matrix::from_fn(4 + numbers, 1, 200, |row, _| match row {
        0 => Float::with_val(200, 1),
        1..4 => column.float(row, 0),
        _ => column.float(row - 4 + head, 0),
    })?;
    std::fs::create_dir(&older).unwrap();
    let (binary, options) = (sunzi::io::FileFormat::Binary, sunzi::io::WriteOptions::new());
    sunzi::io::write_as(older.join(CHECKPOINT_FILE), binary, &old, &options)?;
    let refused = load_checkpoint(&older, &problem).unwrap_err().to_string();
    assert!(refused.contains("an earlier version") && refused.contains("option -i"), "{refused}");
    let begun = load_initial_checkpoint(&older, &problem)?.unwrap();
    assert!(begun.point == whole.point && begun.iterations == 0);
    Ok(())
}

/// Graph partition, as SDPLIB's gpp100: `X_ii = 1` and a sum of all entries of 0, so that X has no inverse.
fn partition(order: usize) -> String {
    let mut text = format!("{}\n1\n{order}\n{} 0\n", order + 1, "1 ".repeat(order));
    for (row, col) in (1..=order).flat_map(|row| (row..=order).map(move |col| (row, col))) {
        let weight = if row == col { 0 } else { (row * row * 5 + col * 11 + row * col) % 7 };
        writeln!(text, "0 1 {row} {col} -{weight}\n{} 1 {row} {col} 1", order + 1).unwrap();
        if row == col {
            writeln!(text, "{row} 1 {row} {row} 1").unwrap();
        }
    }
    text
}

/// A run that is killed after any iteration and goes on from its checkpoint ends as it would have, by rounding.
#[test]
fn a_killed_run_ends_by_rounding_as_the_whole_one() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for bits in [128, 220] {
        let problem = program(folder.path(), "a.dat-s", &partition(7), bits)?;
        let options = SolverOptions {
            duality_gap_threshold: decimal("1e-60"),
            primal_error_threshold: decimal("1e-60"),
            dual_error_threshold: decimal("1e-60"),
            ..SolverOptions::new(problem.form)
        };
        let context = || Context::builder().threads(1).build();
        let solver = Solver::new(context()?, &problem, options.clone())?;
        let at = |number: u64| folder.path().join(format!("ck{bits}.{number}"));
        let mut precisions = Vec::new();
        let whole = solver.run(solver.begin()?, |iteration, state| {
            precisions.push((iteration.number, iteration.precision_bits));
            save_checkpoint(&at(iteration.number), &problem, state)?;
            Ok(Control::Continue)
        })?;
        let remark = whole.remark.clone().unwrap();
        assert_eq!(whole.termination, Termination::PrecisionTooLow);
        assert!(remark.contains("later points are worse"), "{bits}: {remark}");
        println!("{bits}: {remark}");
        // Around each change of the precision, and all along the end.
        let changes =
            precisions.windows(2).filter(|pair| pair[0].1 != pair[1].1).flat_map(|pair| [pair[0].0, pair[1].0]);
        let last = whole.iterations;
        let kills = [1, 20].into_iter().chain(changes).chain((last.saturating_sub(9)..=last).step_by(2));
        for number in kills.filter(|&number| number < last) {
            let state = load_checkpoint(&at(number), &problem)?.unwrap();
            let again = solver.run(state, |_, _| Ok(Control::Continue))?;
            assert_eq!((again.termination, again.iterations), (whole.termination, whole.iterations), "{number}");
            assert_eq!((&again.remark, &again.quality), (&whole.remark, &whole.quality), "{number}");
            assert!(again.point == whole.point, "{number}");
        }
        // Under other thresholds other points are feasible, and what is known of them does not count.
        let state = load_checkpoint(&at(last - 1), &problem)?.unwrap();
        let other = SolverOptions { primal_error_threshold: decimal("1e-3"), ..options };
        let other = Solver::new(context()?, &problem, other)?;
        let [kept, none] = [state.clone(), State { course: None, ..state.clone() }]
            .map(|state| other.run(state, |_, _| Ok(Control::Continue)));
        let (kept, none) = (kept?, none?);
        assert_eq!((&kept.remark, kept.iterations, &kept.quality), (&none.remark, none.iterations, &none.quality));
        assert_ne!(kept.remark, whole.remark);
        // What a file says of its best point is not believed.
        let name = at(last - 1).join("checkpoint.bin");
        let mut column = sunzi::io::read(&name, &sunzi::io::ReadOptions::new(None))?.matrix;
        for (at, value) in [(HEAD_OF_BEST - 8, 1.0), (HEAD_OF_BEST - 7, 0.0), (HEAD_OF_BEST - 4, 0.0)] {
            column.set_float(at, 0, &Float::with_val(64, value))?;
        }
        rewrite(&name, &column)?;
        let state = load_checkpoint(&at(last - 1), &problem)?.unwrap();
        let again = solver.run(state, |_, _| Ok(Control::Continue))?;
        assert_eq!((&again.remark, &again.quality), (&whole.remark, &whole.quality));
        // A best point that is outside is refused.
        let length = (column.rows() - HEAD) / 2;
        (HEAD + length..column.rows()).try_for_each(|at| column.set_float(at, 0, &Float::with_val(64, -1)))?;
        rewrite(&name, &column)?;
        let state = load_checkpoint(&at(last - 1), &problem)?.unwrap();
        let refused = solver.run(state, |_, _| Ok(Control::Continue)).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("is not positive definite at the best point"), "{refused}");
    }
    Ok(())
}

/// A file has 64 bits at least, and says with how many its run went on.
#[test]
fn below_64_bits_a_run_goes_on_as_well() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "a.dat-s", &partition(5), 53)?;
    let context = Context::builder().threads(1).build()?;
    let solver = Solver::new(context, &problem, SolverOptions::new(problem.form))?;
    let whole = solver.run(solver.begin()?, |iteration, state| {
        save_checkpoint(&folder.path().join(iteration.number.to_string()), &problem, state)?;
        Ok(Control::Continue)
    })?;
    let state = load_checkpoint(&folder.path().join((whole.iterations - 1).to_string()), &problem)?.unwrap();
    assert!(state.course.is_some() && state.precision_bits == 53);
    let again = solver.run(state, |_, _| Ok(Control::Continue))?;
    assert_eq!((&again.remark, &again.quality), (&whole.remark, &whole.quality));
    assert!(again.point == whole.point);
    Ok(())
}

/// A step of 1 ends the run that takes it, and not the one that goes on from there.
#[test]
fn a_jump_is_one_of_this_run() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "a.dat-s", &path_program(4), 160)?;
    let mut options = SolverOptions::new(problem.form);
    options.detect_primal_feasible_jump = true;
    let solver = Solver::new(Context::builder().threads(1).build()?, &problem, options)?;
    let ended = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
    assert_eq!(ended.termination, Termination::PrimalFeasibleJumpDetected);
    save_checkpoint(folder.path(), &problem, &ended.state())?;
    let again = solver.run(load_checkpoint(folder.path(), &problem)?.unwrap(), |_, _| Ok(Control::Continue))?;
    assert!(again.iterations > ended.iterations);
    Ok(())
}

/// Of another program, and with fewer bits than it has, a point may be outside: it is pushed inside again.
#[test]
fn a_point_of_more_bits_is_one_to_begin_with() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let text = path_program(6);
    let far = |options: &mut SolverOptions| {
        let thresholds = [&mut options.primal_error_threshold, &mut options.dual_error_threshold];
        thresholds.into_iter().chain([&mut options.duality_gap_threshold]).for_each(|one| *one = decimal("1e-60"));
    };
    let problem = program(folder.path(), "a.dat-s", &text, 400)?;
    save_checkpoint(folder.path(), &problem, &solve(&problem, 1, far)?.state())?;
    for other in [text.clone(), text.replace("0 1 1 2 1.0e0\n", "0 1 1 2 0.9e0\n")] {
        let coarse = program(folder.path(), "b.dat-s", &other, 64)?;
        let state = load_initial_checkpoint(folder.path(), &coarse)?.unwrap();
        let options = SolverOptions::new(coarse.form);
        let solver = Solver::new(Context::builder().threads(1).build()?, &coarse, options)?;
        let ended = solver.run(state, |_, _| Ok(Control::Continue))?;
        assert_eq!(ended.precision_bits, 64);
    }
    Ok(())
}

#[test]
fn damaged_checkpoints_are_refused() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "a.dat-s", &path_program(4), 160)?;
    let solver = Solver::new(Context::builder().threads(1).build()?, &problem, SolverOptions::new(problem.form))?;
    let (whole, broken) = (folder.path().join("ck"), folder.path().join("broken"));
    solver.run(solver.begin()?, |iteration, state| {
        save_checkpoint(&whole, &problem, state)?;
        Ok(if iteration.number == 4 { Control::Stop } else { Control::Continue })
    })?;
    std::fs::create_dir(&broken).unwrap();
    let bytes = std::fs::read(whole.join("checkpoint.bin")).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(broken.join("checkpoint.bin"), bytes).unwrap();
        let error = load_checkpoint(&broken, &problem).map(|_| ()).expect_err(what);
        assert_eq!(error.exit_code(), 3, "{what}: {error}");
    };
    for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        refused(&bytes[..length], &format!("{length} bytes"));
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        refused(&changed, &format!("another byte {at}"));
    }
    assert!(load_checkpoint(&whole, &problem)?.is_some());
    // A head of other numbers under a right checksum is refused or taken, and no more.
    let column = sunzi::io::read(whole.join("checkpoint.bin"), &sunzi::io::ReadOptions::new(None))?.matrix;
    let top = [u64::MAX, u64::MAX - 8, 1 << 53].map(|count| Float::with_val(64, count));
    let values = [-1.0, 0.5, 1.0, 2.0, 1e300].map(|value| Float::with_val(64, value)).into_iter().chain(top);
    let mut refusals = String::new();
    for (at, value) in (0..HEAD).flat_map(|at| values.clone().map(move |value| (at, value))) {
        let mut other = column.clone();
        other.set_float(at, 0, &value)?;
        rewrite(&broken.join("checkpoint.bin"), &other)?;
        for load in [load_checkpoint, load_initial_checkpoint] {
            match load(&broken, &problem) {
                // Whatever it says, a run goes on from it, or is refused.
                Ok(state) => drop(solver.run(state.unwrap(), |_, _| Ok(Control::Stop))),
                Err(error) => {
                    assert_eq!(error.exit_code(), 3, "number {at} is {value}: {error}");
                    refusals.push_str(&error.to_string());
                }
            }
        }
    }
    assert!(refusals.contains("is 18446744073709551615, but must be a count of iterations of at most"), "{refusals}");
    // SDPB's own binary files are known by their names, and not read, nor passed over.
    assert!(!has_foreign_checkpoint(&whole));
    std::fs::remove_file(broken.join("checkpoint.bin")).unwrap();
    std::fs::write(broken.join("checkpoint.json"), "{\"current\": 1}").unwrap();
    assert!(has_foreign_checkpoint(&broken));
    for refused in [load_checkpoint(&broken, &problem), load_initial_checkpoint(&broken, &problem)] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("the directory has a binary checkpoint of SDPB, which cannot be read"), "{refused}");
    }
    Ok(())
}

/// A run that is killed behind the step that ends it ends by it as well; one that it has ended goes on behind it.
#[test]
fn a_small_step_ends_a_killed_run_as_the_whole_one() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "path.dat-s", &path_program(5), 200)?;
    type Change = fn(&mut SolverOptions);
    let cases: [(Termination, Change); 3] = [
        (Termination::PrimalStepTooSmall, |options| options.min_primal_step = Float::with_val(64, 0.999)),
        (Termination::DualStepTooSmall, |options| options.min_dual_step = Float::with_val(64, 0.999)),
        (Termination::PrimalFeasibleJumpDetected, |options| options.detect_primal_feasible_jump = true),
    ];
    for (end, change) in cases {
        let mut options = SolverOptions::new(problem.form);
        change(&mut options);
        let mut none = options.clone();
        none.max_iterations = 0;
        let ctx = Context::builder().threads(1).build()?;
        let (solver, idle) = (Solver::new(ctx.clone(), &problem, options)?, Solver::new(ctx, &problem, none)?);
        let at = |number: u64| folder.path().join(format!("{end}{number}"));
        let whole = solver.run(solver.begin()?, |iteration, state| {
            save_checkpoint(&at(iteration.number), &problem, state)?;
            Ok(Control::Continue)
        })?;
        assert_eq!(whole.termination, end);
        for number in 1..=whole.iterations {
            let state = load_checkpoint(&at(number), &problem)?.unwrap();
            assert!(!state.is_ended, "{end}: {number}");
            let again = solver.run(state, |_, _| Ok(Control::Continue))?;
            assert_eq!((again.termination, again.iterations), (end, whole.iterations), "{number}");
            assert!(again.point == whole.point && again.quality == whole.quality, "{end}: {number}");
        }
        save_checkpoint(folder.path(), &problem, &whole.state())?;
        let state = load_checkpoint(folder.path(), &problem)?.unwrap();
        assert!(state.is_ended);
        // A limit before the first step leaves the end as it was.
        let broken = idle.run(state, |_, _| Ok(Control::Continue))?;
        assert_eq!((broken.termination, broken.iterations), (Termination::MaxIterationsExceeded, whole.iterations));
        save_checkpoint(folder.path(), &problem, &broken.state())?;
        let state = load_checkpoint(folder.path(), &problem)?.unwrap();
        assert!(state.is_ended);
        let again = solver.run(state, |_, _| Ok(Control::Continue))?;
        assert!(again.iterations > whole.iterations, "{end}: {} {}", again.iterations, again.termination);
    }
    Ok(())
}

/// What the first steps come to is said at the end, also where the run was broken off among them or behind them. Files
/// of versions before say less, and are read as they were.
#[test]
fn what_the_first_steps_come_to_is_said_behind_a_break() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = program(folder.path(), "far.json", FAR_PROGRAM, 200)?;
    let last = 14;
    let solver = |iterations: u64| {
        let mut options = SolverOptions { max_iterations: iterations, ..SolverOptions::new(problem.form) };
        (options.initial_matrix_scale_primal, options.initial_matrix_scale_dual) = (decimal("1"), decimal("1"));
        Solver::new(Context::builder().threads(1).build()?, &problem, options)
    };
    let whole = solver(last)?;
    let at = |number: u64| folder.path().join(format!("ck.{number}"));
    let whole = whole.run(whole.begin()?, |iteration, state| {
        save_checkpoint(&at(iteration.number), &problem, state)?;
        Ok(Control::Continue)
    })?;
    let said = whole.remark.clone().unwrap();
    assert!(said.contains("the first 10 steps are below 0.01"), "{said}");
    let rest = |number: u64| {
        let solver = solver(last - number)?;
        let state = load_checkpoint(&at(number), &problem)?.unwrap();
        solver.run(state, |_, _| Ok(Control::Continue))
    };
    for number in [1, 4, 9, 10, 12] {
        let rest = rest(number)?;
        assert_eq!((rest.iterations, &rest.remark), (last, &whole.remark), "{number}");
        assert!(rest.point == whole.point, "{number}");
    }
    let file = at(4).join(CHECKPOINT_FILE);
    let column = sunzi::io::read(&file, &sunzi::io::ReadOptions::new(None))?.matrix;
    for (version, head) in [(2, HEAD_OF_BEST), (3, HEAD_OF_OUTSET)] {
        let rows = column.rows() - HEAD + head;
        let former = Matrix::from_fn(rows, 1, column.precision_bits(), |row, _| match row {
            0 => Float::with_val(64, version),
            _ if row < head => column.float(row, 0),
            _ => column.float(row + HEAD - head, 0),
        })?;
        rewrite(&file, &former)?;
        let former = rest(4)?;
        assert!(former.point == whole.point && former.iterations == last, "version {version}");
        assert_eq!(former.remark.unwrap_or_default().contains("the first 10 steps"), version == 3);
    }
    Ok(())
}
