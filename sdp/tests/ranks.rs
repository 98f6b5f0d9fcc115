//! Runs on ranks that are threads: on any number of them the bits of one process, in points, errors and checkpoints.

use sunzi::advanced::testing::effort;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{Team, TeamOptions};
use sunzi::rug::Float;
use sunzi::{Context, Error, Matrix, Result};
use sunzi_sdp::block::{Block, Shape};
use sunzi_sdp::{CHECKPOINT_FILE, Checkpoints, Constraints, Sampled, load_checkpoint, save_checkpoint};
use sunzi_sdp::{Control, Entry, Group, PolynomialMatrix, PolynomialProgram, Problem, Sampling, SparseCone};
use sunzi_sdp::{Iteration, Point, Quality, Solver, SolverOptions, State, Termination};

fn number(value: f64) -> Float {
    Float::with_val(64, value)
}

fn entry(row: usize, col: usize, value: f64) -> Entry {
    Entry { row, col, value: number(value) }
}

/// `count` blocks of rising order, with their diagonals free and a path as C, a block of one matrix for all variables,
/// and a diagonal.
fn paths(count: usize, bits: u32, equations: bool) -> Result<Problem> {
    let (mut blocks, mut variables) = (Vec::new(), 0);
    for order in 2..2 + count {
        blocks.push(SparseCone {
            shape: Shape::Dense(order),
            active: (variables..variables + order).collect(),
            entries: (0..order).map(|at| vec![entry(at, at, 1.0)]).collect(),
            constant: (1..order).map(|at| entry(at, at - 1, at as f64)).collect(),
        });
        variables += order;
    }
    let sign = |at: usize| if at.is_multiple_of(2) { 0.0625 } else { -0.0625 };
    let list = |at: usize| vec![entry(0, 0, 1.0 + at as f64), entry(2, 1, sign(at)), entry(3, 3, 2.0)];
    blocks.push(SparseCone {
        shape: Shape::Dense(4),
        active: (0..variables).collect(),
        entries: (0..variables).map(list).collect(),
        constant: (0..4).map(|at| entry(at, at, -1.0)).collect(),
    });
    blocks.push(SparseCone {
        shape: Shape::Diagonal(3),
        active: vec![0, variables - 1],
        entries: vec![vec![entry(0, 0, 1.0)], vec![entry(1, 1, -1.0), entry(2, 2, 1.0)]],
        constant: vec![entry(1, 1, -9.0), entry(2, 2, -5.0)],
    });
    let column = |values: &[f64]| Matrix::from_f64s(values.len(), 1, bits, values);
    let free = equations.then(|| {
        // Neighbours have the sum that they have where all are 8.
        let one = |row: usize, col: usize| number(f64::from(u8::from(row == col || row == col + 1)));
        let count = variables - 5;
        Ok((Matrix::from_fn(variables, count, bits, one)?, column(&vec![16.0; count])?))
    });
    let costs = (0..variables).map(|at| 1.0 + 0.25 * (at % 3) as f64).collect::<Vec<_>>();
    Problem::standard(bits, column(&costs)?, blocks, free.transpose()?)
}

/// `count` polynomial matrices of one or two rows, of rising degree, with `free` free variables.
fn polynomials(count: usize, free: usize, bits: u32) -> Result<Problem> {
    let entry = |number: usize, (r, s): (usize, usize)| -> Vec<Vec<Float>> {
        let degree = 2 + 2 * (number % 3);
        let mut first = (0..=degree).map(|at| self::number(((number + at) % 3) as f64 * 0.25)).collect::<Vec<_>>();
        first[degree] = self::number(if r == s { 2.0 } else { 0.125 });
        first[0] += 3 * u32::from(r == s);
        let on_diagonal = |value: f64| vec![self::number(if r == s { value } else { 0.0 })];
        let others = (1..free).map(|at| {
            let mut other = vec![Float::new(64); at];
            let value = if r == s { -0.5 } else { 0.25 };
            other.push(self::number(if number.is_multiple_of(2) { value } else { -value }));
            other
        });
        [first, on_diagonal(-1.0)].into_iter().chain(others).collect()
    };
    let matrix = |number: usize| {
        let dim = 1 + number % 2;
        let places = (0..dim).flat_map(|s| (0..=s).map(move |r| (r, s)));
        PolynomialMatrix {
            dim,
            entries: places.map(|place| entry(number, place)).collect(),
            sampling: Sampling::default(),
        }
    };
    let objective = (0..=free).map(|at| number(if at == 1 { 1.0 } else { 0.0 })).collect();
    PolynomialProgram { objective, normalization: None, matrices: (0..count).map(matrix).collect() }.problem(bits)
}

/// The same with so many one-point blocks around its matrices, which bound each of its free variables.
fn singles(count: usize, problem: Problem) -> Result<Problem> {
    let (bits, free) = (problem.precision_bits, problem.free_variables());
    let single = |at: usize| {
        let root = Matrix::from_fn(1, 1, bits, |_, _| number(1.0 + (at % 7) as f64).sqrt())?;
        let bound = |_: usize, col: usize| match (at + col) % 4 {
            0 => number(1.0),
            1 => number(-0.5),
            _ => Float::new(64),
        };
        Ok(Group {
            costs: Matrix::from_fn(1, 1, bits, |_, _| number(4.0 + (at % 5) as f64))?,
            free: Matrix::from_fn(1, free, bits, bound)?,
            constraints: Constraints::Sampled(Sampled::new(1, 1, [root, Matrix::zeros(0, 1, bits)?])?),
        })
    };
    let singles = (0..count).map(single).collect::<Result<Vec<_>>>()?;
    let (before, behind) = singles.split_at(count / 3);
    Ok(Problem { groups: [before, &problem.groups, behind].concat(), ..problem })
}

/// What a run comes to.
#[derive(PartialEq, Debug)]
struct Found {
    termination: Termination,
    point: Point,
    quality: Quality,
    iterations: Vec<(u32, Float, Float, Float)>,
    dimacs: [f64; 6],
}

fn options(problem: &Problem) -> SolverOptions {
    let scale = number(1e4);
    let (initial_matrix_scale_primal, initial_matrix_scale_dual) = (scale.clone(), scale);
    let defaults = SolverOptions::new(problem.form);
    SolverOptions { max_iterations: 200, initial_matrix_scale_primal, initial_matrix_scale_dual, ..defaults }
}

fn context(threads: usize) -> Result<Context> {
    Context::builder().threads(threads).build()
}

/// Runs to the end; the whole solution on rank 0.
fn run(solver: &Solver<'_>, state: State) -> Result<Option<Found>> {
    let mut iterations = Vec::new();
    let solution = solver.run(state, |iteration: &Iteration, _| {
        let Iteration { precision_bits, mu, primal_step, beta, .. } = iteration;
        iterations.push((*precision_bits, mu.clone(), primal_step.clone(), beta.clone()));
        Ok(Control::Continue)
    })?;
    let dimacs = solver.dimacs_errors(&solution)?;
    let (termination, quality) = (solution.termination, solution.quality.clone());
    Ok(solver.gathered(&solution.point)?.map(|point| Found { termination, point, quality, iterations, dimacs }))
}

fn team(rank: &local::LocalRank, per_node: usize) -> Result<Team> {
    Team::new(rank.split(0)?, TeamOptions::default().ranks_per_node(per_node))
}

/// The work of each rank with a solver of its part.
fn on_ranks<R: Send>(
    problem: &Problem,
    ranks: usize,
    work: impl Fn(&Solver<'_>) -> Result<R> + Sync,
) -> Vec<Result<R>> {
    local::run(ranks, |rank| {
        let solver = Solver::on_ranks(context(1 + ranks % 2)?, team(rank, 2)?, problem, options(problem))?;
        let found = work(&solver);
        solver.close()?;
        found
    })
}

fn check(name: &str, problem: &Problem, counts: &[usize]) -> Result<()> {
    let alone = Solver::new(context(1)?, problem, options(problem))?;
    let expected = run(&alone, alone.begin()?)?.unwrap();
    assert_eq!(expected.termination, Termination::PrimalDualOptimal, "{name}: {:?}", expected.quality);
    assert!(expected.iterations.len() > 10 && expected.iterations[0].0 < problem.precision_bits, "{name}");
    for &ranks in counts {
        let mut found = on_ranks(problem, ranks, |solver| run(solver, solver.begin()?)).into_iter();
        let whole = found.next().unwrap()?.unwrap();
        assert!(whole.iterations == expected.iterations, "{name}: iterations on {ranks} ranks");
        assert!(whole == expected, "{name}: the end on {ranks} ranks");
        found.for_each(|other| assert!(other.unwrap().is_none(), "{name}: only rank 0 has all of it"));
    }
    Ok(())
}

#[test]
fn polynomial_programs_have_the_bits_of_one_process() -> Result<()> {
    // Each run takes seconds: more ranks than divide the matrices, with one thread and with two.
    let (five, one) = if effort() > 1 { (&[1, 2, 3, 4][..], &[2, 3][..]) } else { (&[4][..], &[2][..]) };
    check("five matrices", &polynomials(5, 2, 300)?, five)?;
    check("one matrix", &polynomials(1, 1, 200)?, one)
}

/// They are put together in pieces, which lie on several ranks.
#[test]
fn one_point_blocks_have_the_bits_of_one_process() -> Result<()> {
    check(
        "one-point blocks",
        &singles(300, polynomials(2, 2, 256)?)?,
        if effort() > 1 { &[1, 2, 3, 4] } else { &[3] },
    )?;
    let sparse = paths(2, 200, true)?;
    check("beside sparse matrices", &singles(3, sparse)?, &[2])
}

#[test]
fn sparse_programs_have_the_bits_of_one_process() -> Result<()> {
    let (five, equations) = if effort() > 1 { (&[1, 2, 3, 4][..], &[2, 4][..]) } else { (&[1, 3][..], &[2][..]) };
    check("five blocks", &paths(3, 200, false)?, five)?;
    check("equations", &paths(4, 200, true)?, equations)
}

/// The third matrix is the sum of the others, so its variable is left out; the whole point has it.
#[test]
fn variables_that_are_left_out_come_back_over_ranks() -> Result<()> {
    let block = |order: usize| SparseCone {
        shape: Shape::Dense(order),
        active: vec![0, 1, 2],
        entries: vec![vec![entry(0, 0, 1.0)], vec![entry(1, 1, 1.0)], vec![entry(0, 0, 1.0), entry(1, 1, 1.0)]],
        constant: vec![entry(1, 0, order as f64)],
    };
    let costs = Matrix::from_f64s(3, 1, 200, &[1.0, 1.0, 2.0])?;
    let problem = Problem::standard(200, costs, vec![block(2), SparseCone { constant: Vec::new(), ..block(2) }], None)?;
    check("three equations", &problem, &[2, 3])
}

/// A program of both kinds of groups, joined by y.
#[test]
fn groups_of_both_kinds_have_the_bits_of_one_process() -> Result<()> {
    let sparse = paths(3, 240, true)?;
    let mut problem = polynomials(2, sparse.objective.rows(), 240)?;
    problem.objective = sparse.objective.clone();
    problem.groups.extend(sparse.groups);
    let scaled = problem.groups[..2].iter_mut();
    scaled.for_each(|group| group.free = group.free.scale(&Float::with_val(64, 0.125)).unwrap());
    check("both", &problem, &[3])
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problems = [polynomials(3, 1, 200)?, paths(2, 200, false)?, singles(140, polynomials(2, 1, 200)?)?];
    for (turn, problem) in problems.into_iter().enumerate() {
        let alone = Solver::new(context(2)?, &problem, options(&problem))?;
        let whole = run(&alone, alone.begin()?)?.unwrap();
        let save = |solver: &Solver<'_>, name: &str, stop: bool| {
            let solution = solver.run(solver.begin()?, |iteration, state| {
                if iteration.number == 12 {
                    assert!(state.course.is_some());
                    let whole = solver.gathered_state(state)?;
                    let kept = whole.map(|state| save_checkpoint(&folder.path().join(name), &problem, &state));
                    kept.transpose()?;
                }
                // Any rank may ask to stop.
                Ok(if stop && iteration.number == 12 { Control::Stop } else { Control::Continue })
            })?;
            Ok(solution.iterations)
        };
        assert!(save(&alone, "one", true)? == 12);
        for ended in on_ranks(&problem, 2, |solver| save(solver, "two", solver.rank().0 == 1)) {
            assert_eq!(ended?, 12);
        }
        let bytes = |name: &str| std::fs::read(folder.path().join(name).join(CHECKPOINT_FILE)).unwrap();
        assert!(bytes("one") == bytes("two"));
        let begin = || Ok::<_, Error>(load_checkpoint(&folder.path().join("two"), &problem)?.unwrap());
        let parts = |solver: &Solver<'_>| run(solver, solver.part_of(begin()?));
        let rest = if effort() > 1 { on_ranks(&problem, 3, parts) } else { Vec::new() };
        assert!(rest.into_iter().next().is_none_or(|first| first.unwrap().unwrap().point == whole.point));
        // Each rank reads its part alone, and it is the same one.
        let checkpoints = Checkpoints::new(&problem);
        let rest = on_ranks(&problem, 3, |solver| {
            let read = checkpoints.load(solver, Some(&folder.path().join("two")), false)?.unwrap();
            let part = solver.part_of(begin()?);
            assert!(read.point == part.point && read.iterations == 12 && read.steps == part.steps);
            assert_eq!(read.precision_bits, part.precision_bits);
            assert!(checkpoints.load(solver, Some(&folder.path().join("none")), false)?.is_none());
            run(solver, read)
        });
        assert!(rest.into_iter().next().unwrap()?.unwrap().point == whole.point);
        let texts = on_ranks(&problem, 3, |solver| {
            let name = if solver.rank().0 == 1 { "none" } else { "two" };
            Ok(checkpoints.load(solver, Some(&folder.path().join(name)), false).unwrap_err().to_string())
        });
        for text in texts {
            assert!(text?.contains("different states"));
        }
        // Each of these runs takes part of a second, and one process goes on alike with every kind of program.
        if effort() > 1 || turn == 0 {
            assert!(run(&alone, begin()?)?.unwrap().point == whole.point);
        }
    }
    Ok(())
}

/// SDPB's text files of a point.
fn write_texts(folder: &std::path::Path, problem: &Problem, point: &Point) {
    std::fs::create_dir_all(folder).unwrap();
    let write = |name: String, matrix: &Matrix| {
        let mut text = format!("{} {}\n", matrix.rows(), matrix.cols());
        for row in 0..matrix.rows() {
            (0..matrix.cols()).for_each(|col| text.push_str(&format!("{:e}\n", matrix.float(row, col))));
        }
        std::fs::write(folder.join(name), text).unwrap();
    };
    point.x.iter().enumerate().for_each(|(at, x)| write(format!("x_{at}.txt"), x));
    write("y.txt".into(), &point.y);
    let parities = problem.groups.iter().enumerate().flat_map(|(at, group)| match &group.constraints {
        Constraints::Sampled(sampled) => sampled.parities().iter().map(|parity| 2 * at + parity).collect::<Vec<_>>(),
        Constraints::Sparse(sparse) => (0..sparse.cones.len()).collect(),
        Constraints::Scalars(_) => panic!("no caller has them"),
    });
    for (at, number) in parities.enumerate() {
        write(format!("X_matrix_{number}.txt"), point.primal[at].stored());
        write(format!("Y_matrix_{number}.txt"), point.dual[at].stored());
    }
}

/// Ranks that find two files that are right, but differ in one number of one part, are refused on all; so are those
/// of which one names no folder, and none waits for the others.
#[test]
fn ranks_that_find_different_checkpoints_are_refused() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let singles = singles(3, polynomials(1, 1, 200)?)?;
    for (name, problem) in
        [("polynomials", polynomials(3, 1, 200)?), ("paths", paths(2, 200, false)?), ("singles", singles)]
    {
        let alone = Solver::new(context(1)?, &problem, options(&problem))?;
        let begun = alone.begin()?;
        let checkpoints = Checkpoints::new(&problem);
        let at = |kind: &str| folder.path().join(format!("{name}.{kind}"));
        let mut others = Vec::new();
        let mut keep = |kind: String, state: &State| -> Result<()> {
            checkpoints.save(&at(&kind), state)?;
            write_texts(&at(&format!("{kind}.text")), &problem, &state.point);
            others.push(kind);
            Ok(())
        };
        keep("same".into(), &begun)?;
        for block in 0..begun.point.dual.len() {
            let mut changed = begun.clone();
            let shape = changed.point.dual[block].shape();
            let mut stored = changed.point.dual[block].stored().clone();
            let other = stored.float(0, 0) * 1.5;
            stored.set_float(0, 0, &other)?;
            changed.point.dual[block] = Block::of_shape(shape, stored);
            keep(format!("Y{block}"), &changed)?;
        }
        for group in 0..begun.point.x.len() {
            let mut changed = begun.clone();
            changed.point.x[group].set_float(0, 0, &number(0.5))?;
            keep(format!("x{group}"), &changed)?;
        }
        let said = |other: Option<&str>, same: &str, odd: usize| {
            on_ranks(&problem, 3, |solver| {
                let name = if solver.rank().0 == odd { other } else { Some(same) };
                let folder = name.map(at);
                let found = checkpoints.load(solver, folder.as_deref(), true);
                Ok(found.map(|state| state.is_some()).map_err(|error| error.to_string()))
            })
        };
        for odd in 0..3 {
            for text in ["", ".text"] {
                let same = format!("same{text}");
                assert!(said(Some(&same), &same, odd).into_iter().all(|found| found.unwrap() == Ok(true)));
                let others = others[1..].iter().map(|other| Some(format!("{other}{text}"))).chain([None]);
                for other in others {
                    for found in said(other.as_deref(), &same, odd) {
                        let found = found?;
                        let is_refused = found.as_ref().is_err_and(|text| text.contains("different states"));
                        assert!(is_refused, "{name} {other:?} on {odd}: {found:?}");
                    }
                }
            }
        }
        // Those who have read for themselves are compared as well, in what lies on all ranks.
        if name == "paths" {
            let texts = on_ranks(&problem, 2, |solver| {
                let mut state = solver.part_of(begun.clone());
                let value = number(solver.rank().0 as f64);
                state.point.x[0].set_float(0, 0, &value)?;
                Ok(solver.run(state, |_, _| Ok(Control::Stop)).unwrap_err().to_string())
            });
            assert!(texts.into_iter().all(|text| text.unwrap().contains("parts of different states")));
        }
        let other = Checkpoints::new(&polynomials(1, 1, 200)?);
        assert!(other.load(&alone, Some(&at("same")), true).unwrap_err().to_string().contains("differ from"));
    }
    Ok(())
}

#[test]
fn an_error_of_one_rank_is_that_of_all() -> Result<()> {
    for problem in [polynomials(3, 1, 200)?, paths(2, 200, false)?] {
        let fails = |solver: &Solver<'_>| {
            let failed = solver.run(solver.begin()?, |iteration, _| match (solver.rank().0, iteration.number) {
                (1, 3) => Err(Error::InvalidArgument("of rank 1".into())),
                _ => Ok(Control::Continue),
            });
            Ok(failed.unwrap_err())
        };
        for error in on_ranks(&problem, 3, fails) {
            let error = error?;
            assert!(matches!(error, Error::Rank { rank: 1, exit_code: 2, .. }), "{error}");
            assert!(error.to_string().contains("of rank 1"), "{error}");
        }
        // A block that is not positive definite lies on one rank, and all say which it is.
        let mut state = Solver::new(context(1)?, &problem, options(&problem))?.begin()?;
        let last = state.point.dual.len() - 1;
        let shape = state.point.dual[last].shape();
        state.point.dual[last] = Block::scaled_identity(shape, &number(-1.0), 200)?;
        let texts = on_ranks(&problem, 3, |solver| {
            let failed = solver.run(solver.part_of(state.clone()), |_, _| Ok(Control::Continue));
            Ok(failed.unwrap_err().to_string())
        });
        let texts = texts.into_iter().collect::<Result<Vec<_>>>()?;
        assert!(texts[0].contains("of Y is not positive definite"), "{texts:?}");
        assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    }
    Ok(())
}

#[test]
fn ranks_with_different_states_are_refused() -> Result<()> {
    for problem in [polynomials(3, 1, 200)?, paths(2, 200, false)?] {
        let alone = Solver::new(context(1)?, &problem, options(&problem))?;
        let at = |iterations: u64| {
            let mut kept = None;
            alone.run(alone.begin()?, |iteration, state| {
                kept = Some(state.clone());
                Ok(if iteration.number == iterations { Control::Stop } else { Control::Continue })
            })?;
            Ok::<_, Error>(kept.unwrap())
        };
        let (second, third) = (at(2)?, at(3)?);
        let mut changed = second.clone();
        let stored = changed.point.dual[0].stored().float(0, 0) * 2u32;
        changed.point.dual[0] = Block::scaled_identity(changed.point.dual[0].shape(), &stored, 200)?;
        // One rank has none, another iteration, or another number of a block.
        for other in [None, Some(&third), Some(&changed)] {
            for odd in 0..3 {
                let texts = on_ranks(&problem, 3, |solver| {
                    let found = if solver.rank().0 == odd { other } else { Some(&second) };
                    Ok(solver.first_state(found.cloned()).unwrap_err().to_string())
                });
                for text in texts {
                    assert!(text?.contains("different states"));
                }
            }
        }
        let texts = on_ranks(&problem, 2, |solver| {
            let state = solver.part_of(if solver.rank().0 == 0 { second.clone() } else { third.clone() });
            Ok(solver.run(state, |_, _| Ok(Control::Stop)).unwrap_err().to_string())
        });
        for text in texts {
            assert!(text?.contains("parts of different states"));
        }
        let ended = on_ranks(&problem, 2, |solver| {
            let found = solver.first_state(Some(second.clone()))?;
            let begun = solver.first_state(None)?;
            Ok((found.iterations, begun.iterations))
        });
        assert!(ended.into_iter().all(|counts| counts.unwrap() == (2, 0)));
    }
    Ok(())
}

/// One number of the program differs on one rank, wherever it stands.
#[test]
fn ranks_with_different_numbers_are_refused() -> Result<()> {
    let refused = |problem: &Problem, name: &str, change: &(dyn Fn(&mut Problem) + Sync)| {
        let texts = local::run(2, |rank| {
            let mut own = problem.clone();
            if rank.rank() == 1 {
                change(&mut own);
            }
            Solver::on_ranks(context(1)?, team(rank, 1)?, &own, options(problem)).map(drop)
        });
        for text in texts {
            let text = text.unwrap_err().to_string();
            assert!(text.contains("different programs or options"), "{name}: {text}");
        }
    };
    let doubled = |matrix: &mut Matrix| {
        let (row, value) =
            (0..matrix.rows()).map(|row| (row, matrix.float(row, 0) * 2u32)).find(|(_, v)| *v != 0).unwrap();
        matrix.set_float(row, 0, &value).unwrap();
    };
    let (sampled, sparse) = (polynomials(2, 1, 200)?, paths(2, 200, true)?);
    refused(&sampled, "f", &|own| own.constant += 1u32);
    refused(&sampled, "b", &|own| doubled(&mut own.objective));
    refused(&sampled, "c", &|own| doubled(&mut own.groups[1].costs));
    refused(&sampled, "B", &|own| doubled(&mut own.groups[0].free));
    refused(&sampled, "a basis", &|own| {
        let Constraints::Sampled(old) = &own.groups[0].constraints else { panic!("of polynomials") };
        let mut bases = [0, 1].map(|parity| {
            let at = old.parities().iter().position(|&other| other == parity);
            at.map_or_else(|| Matrix::zeros(0, old.points(), 200).unwrap(), |at| old.basis(at).clone())
        });
        doubled(&mut bases[0]);
        own.groups[0].constraints = Constraints::Sampled(Sampled::new(old.dim(), old.points(), bases).unwrap());
    });
    let cone = |own: &mut Problem, change: &dyn Fn(&mut SparseCone)| {
        let Constraints::Sparse(old) = &mut own.groups[0].constraints else { panic!("of sparse matrices") };
        change(&mut old.cones[1]);
    };
    refused(&sparse, "an entry", &|own| cone(own, &|cone| cone.entries[0][0].value *= 2u32));
    refused(&sparse, "C", &|own| cone(own, &|cone| cone.constant[0].value *= 2u32));
    Ok(())
}

#[test]
fn ranks_that_do_not_fit_are_refused() -> Result<()> {
    let problem = polynomials(2, 1, 200)?;
    let refused = |change: &(dyn Fn(usize, &mut SolverOptions) -> Result<Context> + Sync)| {
        let all = local::run(2, |rank| {
            let mut options = options(&problem);
            let ctx = change(rank.rank(), &mut options)?;
            Solver::on_ranks(ctx, team(rank, 1)?, &problem, options).map(drop)
        });
        all.into_iter().map(|outcome| outcome.unwrap_err().to_string()).collect::<Vec<_>>()
    };
    let texts = refused(&|rank, options| {
        options.max_iterations = 100 + rank as u64;
        context(1)
    });
    assert!(texts.iter().all(|text| text.contains("different programs or options")), "{texts:?}");
    let texts = refused(&|rank, _| {
        let builder = Context::builder().threads(1);
        if rank == 1 { builder.memory_bytes(1 << 30).build() } else { builder.build() }
    });
    assert!(texts.iter().all(|text| text.contains("some have none")), "{texts:?}");
    Ok(())
}

/// A limit is that of all ranks of a node: one byte less than the least is refused on all with the same number, and
/// under it the bits are those of one process.
#[test]
fn ranks_keep_the_limit_of_their_node() -> Result<()> {
    for problem in [polynomials(3, 1, 200)?, paths(3, 200, true)?, singles(200, polynomials(1, 1, 200)?)?] {
        let alone = Solver::new(context(1)?, &problem, options(&problem))?;
        let alone = alone.run(alone.begin()?, |_, _| Ok(Control::Continue))?;
        let limited = |limit: u64| {
            let all = local::run(3, |rank| {
                let ctx = Context::builder().threads(1).memory_bytes(limit).build()?;
                let solver = Solver::on_ranks(ctx, team(rank, 3)?, &problem, options(&problem))?;
                let planned = solver.plan()?.planned_bytes;
                let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
                let whole = solver.gathered(&solution.point)?;
                solver.close()?;
                Ok::<_, Error>((planned, whole))
            });
            all.into_iter().collect::<Result<Vec<_>>>()
        };
        let least = |limit: u64| match limited(limit) {
            Err(Error::MemoryLimit { limit_bytes, minimum_bytes }) if limit_bytes == limit => minimum_bytes,
            other => panic!("{:?}", other.map(|_| limit)),
        };
        let minimum = least(1000);
        assert_eq!(least(minimum - 1), minimum);
        let found = limited(minimum)?;
        assert_eq!(found.iter().map(|(planned, _)| planned).sum::<u64>(), minimum);
        assert!(found[0].1.as_ref() == Some(&alone.point) && found[1].1.is_none());
    }
    Ok(())
}
