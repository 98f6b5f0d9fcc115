//! Solves with a factor in tiles over many ranks: the bits of one process, whatever the grid, tiles and threads.

use crate::common::solves::{Rows, assert_solved, dot, rows_of};
use crate::common::{Kind, Rng, in_turn, kernel_names, matrix, seeds};
use rug::Float;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{
    DistMatrix, RankGrid, Team, TeamOptions, inverse, log_det, solve, solve_with, trsm, trsm_with,
};
use sunzi::estimate::log_det_of;
use sunzi::{Accuracy, Cholesky, Context, Diag, Error, Matrix, Op, Side, TrsmOptions, Uplo};

pub(super) fn threads(count: usize) -> Context {
    Context::builder().threads(count).build().unwrap()
}

fn team(rank: &local::LocalRank) -> Team {
    Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap()
}

/// A factor with random rows. With `spread`, its rows are scaled by powers of two up to that, and its unknowns grow
/// and shrink on the way.
pub(super) fn factor(order: usize, precision_bits: u32, spread: i64, seed: u64) -> Matrix {
    let mut rng = Rng::new(seed);
    let mut l = Matrix::zeros(order, order, precision_bits).unwrap();
    for row in 0..order {
        let scale = rng.within(spread);
        for col in 0..=row {
            let down = if row == col { 0 } else { 3 + rng.within(3) + (row - col) as i64 / 8 };
            let exponent = scale - down - i64::from(precision_bits);
            l.set_integer_exponent(row, col, &rng.integer(precision_bits), exponent).unwrap();
        }
    }
    l
}

/// How a matrix lies on the ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lie {
    tile_size: usize,
    grid: (usize, usize),
}

impl Lie {
    pub fn map(self, rows: usize, cols: usize, triangle: Option<Uplo>) -> TileMap {
        let grid = RankGrid { rows: self.grid.0, cols: self.grid.1 };
        TileMap { rows, cols, tile_size: self.tile_size, grid, triangle }
    }

    pub fn random(ranks: usize, rng: &mut Rng) -> Lie {
        let rows = 1 + rng.below(ranks);
        Lie { tile_size: rng.pick(&[8, 16, 24, 40, 64]), grid: (rows, 1 + rng.below(ranks / rows)) }
    }
}

pub(super) fn scatter(rank: &local::LocalRank, whole: &Matrix, map: TileMap) -> DistMatrix {
    let root = (rank.rank() == 0).then_some(whole);
    DistMatrix::scatter(rank, 0, root, map, whole.precision_bits()).unwrap()
}

/// What to solve.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Task {
    Solve,
    SolveEntrywise,
    Trsm(Op),
}

const TASKS: [Task; 3] = [Task::Solve, Task::Trsm(Op::NoTranspose), Task::Trsm(Op::Transpose)];

/// In one process.
fn alone(task: Task, l: &Matrix, b: &Matrix, bits: u32) -> Result<Matrix, Error> {
    match task {
        Task::Solve => Cholesky::from_factor(l.clone())?.solve(&threads(1), b, bits),
        Task::SolveEntrywise => {
            Cholesky::from_factor(l.clone())?.with_accuracy(Accuracy::Entrywise).solve(&threads(1), b, bits)
        }
        Task::Trsm(op) => {
            sunzi::trsm_with(&threads(1), l, b, bits, &TrsmOptions::new().op(op)).map(|outcome| outcome.result)
        }
    }
}

/// On ranks: the solution on rank 0.
fn on_ranks(
    contexts: &[Context],
    task: Task,
    (l, b): (&Matrix, &Matrix),
    bits: u32,
    (of_factor, of_right): (Lie, Lie),
) -> Result<Matrix, Error> {
    let outcomes = local::run(contexts.len(), |rank| {
        let team = team(rank);
        let l = scatter(rank, l, of_factor.map(l.rows(), l.cols(), Some(Uplo::Lower)));
        let b = scatter(rank, b, of_right.map(b.rows(), b.cols(), None));
        let solved = match task {
            Task::Solve => solve(&contexts[rank.rank()], &team, &l, &b, bits),
            Task::SolveEntrywise => solve_with(&contexts[rank.rank()], &team, &l, &b, bits, Accuracy::Entrywise),
            Task::Trsm(op) => trsm_with(&contexts[rank.rank()], &team, &l, &b, bits, &TrsmOptions::new().op(op)),
        };
        solved.map(|solved| {
            assert_eq!(solved.solution.map(), b.map());
            solved.solution.gather(rank, 0).unwrap()
        })
    });
    let said = outcomes.iter().map(|outcome| outcome.as_ref().map(drop).map_err(Error::to_string));
    let said = said.collect::<Vec<_>>();
    assert!(said.iter().all(|one| *one == said[0]), "ranks disagree: {said:?}");
    Ok(outcomes.into_iter().next().unwrap()?.expect("rank 0 has the solution"))
}

/// Solutions on ranks against one process.
fn same(contexts: &[Context], task: Task, (l, b): (&Matrix, &Matrix), bits: u32, lies: (Lie, Lie)) {
    let want = alone(task, l, b, bits).unwrap();
    let got = on_ranks(contexts, task, (l, b), bits, lies).unwrap();
    let (n, m) = (b.rows(), b.cols());
    assert!(got == want, "{task:?}, {n} x {m}, {bits} bits, {} ranks, {lies:?}", contexts.len());
}

#[test]
fn all_sizes_give_the_bits_of_one_process() {
    let mut rng = Rng::new(1);
    for (place, order) in [0usize, 1, 7, 8, 9, 40, 130].into_iter().enumerate() {
        for (at, cols) in [0usize, 1, 2, 3, 4, 7, 8, 9, 40].into_iter().enumerate() {
            for task in if order < 40 { 0..3 } else { in_turn(3, place + at) }.map(|task| TASKS[task]) {
                let (ranks, bits) = (1 + rng.below(8), rng.pick(&[64, 150, 500]));
                let contexts = (0..ranks).map(|_| threads(1)).collect::<Vec<_>>();
                let l = factor(order, rng.pick(&[bits, 100]), 0, rng.word());
                let b = matrix(Kind::Unit, order, cols, 120, rng.word());
                let lies = (Lie::random(ranks, &mut rng), Lie::random(ranks, &mut rng));
                same(&contexts, task, (&l, &b), bits, lies);
            }
        }
    }
}

/// Both sides, triangles and diagonals, with and without a scalar, of whole matrices and of triangles.
#[test]
fn every_form_of_trsm_gives_the_bits_of_one_process() {
    let mut rng = Rng::new(3);
    let half = Float::with_val(60, -0.75);
    let forms = [Side::Left, Side::Right].into_iter().flat_map(|side| {
        [Uplo::Lower, Uplo::Upper].into_iter().flat_map(move |uplo| {
            [Op::NoTranspose, Op::Transpose].into_iter().flat_map(move |op| {
                [Diag::NonUnit, Diag::Unit].map(|diag| TrsmOptions::new().side(side).uplo(uplo).op(op).diag(diag))
            })
        })
    });
    for (at, form) in forms.enumerate() {
        for (order, columns, accuracy) in
            [(1, 3, Accuracy::Norm), (40, 5, Accuracy::Norm), (50, 20, Accuracy::Norm), (30, 17, Accuracy::Entrywise)]
        {
            let alpha = [None, Some(&half)][rng.below(2)];
            let options = form.accuracy(accuracy).alpha(alpha);
            let lower = factor(order, 120, 0, rng.word());
            let mut whole = matrix(Kind::Unit, order, order, 120, rng.word());
            for (i, j) in (0..order).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                let (row, col) = if form.uplo == Uplo::Lower { (i, j) } else { (j, i) };
                whole.set(row, col, lower.get(i, j));
            }
            let shape = if form.side == Side::Left { (order, columns) } else { (columns, order) };
            let b = matrix(Kind::Graded, shape.0, shape.1, 100, rng.word());
            let want = sunzi::trsm_with(&threads(1), &whole, &b, 130, &options).unwrap().result;
            let ranks = 1 + (at + rng.below(3)) % 5;
            let (of_t, of_b) = (Lie::random(ranks, &mut rng), Lie::random(ranks, &mut rng));
            let triangle = [None, Some(form.uplo)][rng.below(2)];
            local::run(ranks, |rank| {
                let (ctx, team) = (threads(1), team(rank));
                let t = scatter(rank, &whole, of_t.map(order, order, triangle));
                let b = scatter(rank, &b, of_b.map(shape.0, shape.1, None));
                let solved = trsm_with(&ctx, &team, &t, &b, 130, &options).unwrap();
                assert_eq!(solved.solution.map(), b.map());
                let got = solved.solution.gather(rank, 0).unwrap();
                assert!(got.is_none_or(|got| got == want), "{options:?}, {order}, {columns}, {triangle:?}, {of_t:?}");
                // The other triangle than the one that is held.
                if triangle.is_some() {
                    let other = if form.uplo == Uplo::Lower { Uplo::Upper } else { Uplo::Lower };
                    let error = trsm_with(&ctx, &team, &t, &b, 130, &options.uplo(other)).unwrap_err();
                    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
                }
            });
        }
    }
    let defaults = local::run(2, |rank| {
        let (l, b) = (factor(20, 100, 0, 1), matrix(Kind::Unit, 20, 9, 100, 2));
        let (of_l, of_b) = (Lie { tile_size: 8, grid: (1, 2) }, Lie { tile_size: 16, grid: (2, 1) });
        let held = (scatter(rank, &l, of_l.map(20, 20, None)), scatter(rank, &b, of_b.map(20, 9, None)));
        trsm(&threads(1), &team(rank), &held.0, &held.1, 100).unwrap().solution.gather(rank, 0).unwrap()
    });
    let (l, b) = (factor(20, 100, 0, 1), matrix(Kind::Unit, 20, 9, 100, 2));
    assert!(defaults[0] == Some(sunzi::trsm(&threads(1), &l, &b, 100).unwrap()));
}

#[test]
fn the_logarithm_of_a_determinant_is_that_of_one_process() {
    for (ranks, order, lie) in [
        (1, 0, Lie { tile_size: 8, grid: (1, 1) }),
        (4, 45, Lie { tile_size: 8, grid: (2, 2) }),
        (6, 90, Lie { tile_size: 24, grid: (2, 3) }),
        (5, 10, Lie { tile_size: 16, grid: (1, 3) }),
    ] {
        let l = factor(order, 180, 5, 9);
        let want = log_det_of(&l, 150);
        let got = local::run(ranks, |rank| {
            let team = team(rank);
            log_det(&team, &scatter(rank, &l, lie.map(order, order, Some(Uplo::Lower))), 150).unwrap()
        });
        assert!(got.iter().all(|got| *got == want), "{ranks} ranks, {order}: {got:?}, {want}");
    }
    local::run(2, |rank| {
        let lie = Lie { tile_size: 8, grid: (1, 2) };
        let wide = scatter(rank, &matrix(Kind::Unit, 5, 9, 100, 1), lie.map(5, 9, None));
        assert!(matches!(log_det(&team(rank), &wide, 100), Err(Error::ShapeMismatch { .. })));
    });
}

#[test]
fn every_grid_gives_the_bits_of_one_process() {
    let (l, wide) = (factor(130, 200, 4, 5), matrix(Kind::Graded, 130, 19, 200, 6));
    let narrow = wide.view().block(0..130, 0..2).unwrap().to_matrix().unwrap();
    let grids =
        [(1, 1, 1), (2, 1, 2), (2, 2, 1), (3, 1, 3), (3, 3, 1), (5, 1, 5), (7, 7, 1), (7, 2, 3), (8, 2, 4), (8, 8, 1)];
    for (turn, (ranks, rows, cols)) in grids.into_iter().enumerate() {
        let contexts = (0..ranks).map(|rank| threads(1 + rank % 2)).collect::<Vec<_>>();
        let few = wide.view().block(0..130, 3..3 + 4 + (rows + cols) % 4).unwrap().to_matrix().unwrap();
        for (at, tile_size) in [8, 24, 136].into_iter().enumerate() {
            let lies = (Lie { tile_size, grid: (rows, cols) }, Lie { tile_size: 16, grid: (1, ranks) });
            let task = |next: usize| TASKS[(ranks + tile_size / 8 + next) % 3];
            let cases = [(Task::Solve, &narrow), (task(0), &wide), (task(1), &few)];
            // Each grid has each size of tiles with one of them, and each of them with one size.
            for (task, right) in in_turn(3, turn + at).map(|case| cases[case]) {
                same(&contexts, task, (&l, right), 200, lies);
            }
        }
    }
}

/// Exponents that spread over thousands of bits, so that the common exponent of the unknowns grows again and again.
#[test]
fn widely_scaled_systems_give_the_bits_of_one_process() {
    for seed in seeds(12) {
        let mut rng = Rng::new(900 + seed);
        let (order, ranks, bits) = (1 + rng.below(200), 1 + rng.below(6), rng.pick(&[64, 333, 1000]));
        let l = factor(order, bits, rng.pick(&[0, 10, 20_000]), seed);
        let b =
            matrix(rng.pick(&[Kind::Graded, Kind::ZeroColumns, Kind::Extreme]), order, 1 + rng.below(3), bits, seed);
        let contexts = (0..ranks).map(|_| threads(1)).collect::<Vec<_>>();
        let lies = (Lie::random(ranks, &mut rng), Lie::random(ranks, &mut rng));
        same(&contexts, Task::Solve, (&l, &b), bits, lies);
        let b = matrix(Kind::Graded, order, 8 + rng.below(20), bits, seed);
        same(&contexts, rng.pick(&TASKS), (&l, &b), bits, lies);
    }
}

#[test]
fn solves_entry_by_entry_give_the_bits_of_one_process() {
    for seed in seeds(6) {
        let mut rng = Rng::new(1700 + seed);
        let (order, ranks, bits) = (1 + rng.below(120), 1 + rng.below(6), rng.pick(&[64, 333]));
        let l = factor(order, bits, rng.pick(&[0, 10, 20_000]), seed);
        let contexts = (0..ranks).map(|_| threads(1)).collect::<Vec<_>>();
        for cols in [1 + rng.below(3), 4 + rng.below(4), 8 + rng.below(20)] {
            let b = matrix(rng.pick(&[Kind::Graded, Kind::Unit]), order, cols, bits, seed);
            let lies = (Lie::random(ranks, &mut rng), Lie::random(ranks, &mut rng));
            same(&contexts, Task::SolveEntrywise, (&l, &b), bits, lies);
        }
    }
}

#[test]
fn larger_orders_give_the_bits_of_one_process() {
    let (l, b) = (factor(300, 700, 4, 3), matrix(Kind::Unit, 300, 40, 700, 4));
    let lies = (Lie { tile_size: 48, grid: (2, 3) }, Lie { tile_size: 32, grid: (3, 2) });
    let contexts = (0..6).map(|_| threads(1)).collect::<Vec<_>>();
    let few = b.view().block(0..300, 0..6).unwrap().to_matrix().unwrap();
    for (at, task) in TASKS.into_iter().enumerate() {
        for right in in_turn(2, at).map(|which| [&b, &few][which]) {
            same(&contexts, task, (&l, right), 700, lies);
        }
    }
    for cols in 1..=3 {
        let b = b.view().block(0..300, 0..cols).unwrap().to_matrix().unwrap();
        same(&contexts, Task::Solve, (&l, &b), 1000, lies);
    }
}

/// Ranks with kernels, threads and memory limits of their own.
#[test]
fn ranks_that_differ_give_the_bits_of_one_process() {
    let (l, wide) = (factor(90, 150, 30, 8), matrix(Kind::Unit, 90, 30, 150, 9));
    let narrow = wide.view().block(0..90, 3..5).unwrap().to_matrix().unwrap();
    let names = kernel_names();
    let contexts = (0..4).map(|rank| {
        let builder = Context::builder().threads(1 + rank).kernel(names[rank % names.len()]);
        let builder = if rank == 2 { builder.memory_bytes(64 << 20) } else { builder };
        builder.build().unwrap()
    });
    let contexts = contexts.collect::<Vec<_>>();
    let lies = (Lie { tile_size: 16, grid: (2, 2) }, Lie { tile_size: 8, grid: (4, 1) });
    for task in TASKS {
        same(&contexts, task, (&l, &wide), 150, lies);
    }
    same(&contexts, Task::Solve, (&l, &narrow), 150, lies);
}

/// 1 on the diagonal and -8 below it: some columns outgrow every try, and all ranks solve them by parts.
#[test]
fn columns_that_outgrow_every_try_give_the_bits_of_one_process() {
    let order = 90;
    let mut l = Matrix::zeros(order, order, 90).unwrap();
    for i in 0..order {
        l.set_f64(i, i, 1.0).unwrap();
        if i > 0 {
            l.set_f64(i, i - 1, -8.0).unwrap();
        }
    }
    let mut b = Matrix::zeros(order, 17, 90).unwrap();
    for col in 0..17 {
        // Right sides that begin late grow little.
        let row = if [2, 11].contains(&col) { 0 } else { order - 2 };
        b.set_f64(row, col, 3.0 + col as f64).unwrap();
    }
    let contexts = (0..3).map(|_| threads(1)).collect::<Vec<_>>();
    let lies = (Lie { tile_size: 16, grid: (1, 3) }, Lie { tile_size: 8, grid: (3, 1) });
    // All of them outgrow, on more ranks than there are panels of columns, and in more than one go.
    let all = Matrix::from_fn(order, 17, 90, |row, col| Float::with_val(90, if row == col % 3 { 3 + col } else { 0 }));
    let all = all.unwrap();
    let many = (0..6).map(|rank| threads(1 + rank % 2)).collect::<Vec<_>>();
    let over_many = (Lie { tile_size: 16, grid: (2, 3) }, lies.1);
    for task in TASKS.into_iter().chain([Task::SolveEntrywise]) {
        same(&contexts, task, (&l, &b), 90, lies);
        same(&many, task, (&l, &all), 90, over_many);
    }
}

/// A factor whose unknowns grow, so that most right-hand sides outgrow every try, with terms of all sizes, over more
/// rows than those whose bits are chosen together; neither ranks nor the columns beside one show.
#[test]
fn columns_that_outgrow_every_try_have_their_own_bits_entry_by_entry() {
    for seed in seeds(1) {
        let (order, columns, bits) = (300, 41, 120);
        let mut rng = Rng::new(6200 + seed);
        let mut l = factor(order, bits, 12, rng.word());
        for row in 1..order {
            let size = l.float(row - 1, row - 1) * (if row % 5 == 0 { -6.0 } else { 3.5 });
            l.set_float(row, row - 1, &size).unwrap();
        }
        // Some columns are 0 far down, some have entries of one size, some of all sizes.
        let graded = matrix(Kind::Graded, order, columns, bits, rng.word());
        let b = Matrix::from_fn(order, columns, bits, |row, col| match col % 4 {
            0 => Float::with_val(bits, if row == col { 3.0 } else { 0.0 }),
            1 => Float::with_val(bits, row as f64 + 1.5),
            _ => graded.float(row, col),
        });
        let b = b.unwrap();
        let want = alone(Task::SolveEntrywise, &l, &b, bits).unwrap();
        let rows = rows_of(&l);
        let entry = |i: usize, j: usize| dot(&rows[i][..=i.min(j)], &rows[j][..=i.min(j)]);
        let lower = (0..order).map(|i| (0..=i).map(|j| entry(i, j)).collect()).collect::<Rows>();
        let a = (0..order).map(|i| (0..order).map(|j| lower[i.max(j)][i.min(j)].clone()).collect()).collect::<Rows>();
        assert_solved((&a, &b, &want), (&l, None), "one process");
        let some = [1, 2, 5, 8, 13, 20, 21, 22, 23, 40];
        let few = Matrix::from_fn(order, some.len(), bits, |row, col| b.float(row, some[col])).unwrap();
        let few = alone(Task::SolveEntrywise, &l, &few, bits).unwrap();
        let same_bits = |(at, col): (usize, usize)| (0..order).all(|row| few.float(row, at) == want.float(row, col));
        assert!(some.into_iter().enumerate().all(same_bits), "columns know of each other");
        for ranks in [1, 2, 5] {
            let contexts = (0..ranks).map(|rank| threads(1 + rank % 2)).collect::<Vec<_>>();
            let lies = (Lie::random(ranks, &mut rng), Lie::random(ranks, &mut rng));
            let got = on_ranks(&contexts, Task::SolveEntrywise, (&l, &b), bits, lies).unwrap();
            assert!(got == want, "{ranks} ranks, {lies:?}");
        }
    }
}

/// Few right-hand sides and small orders, entry by entry and by norms, beyond the rows whose bits are chosen together.
#[test]
fn few_right_sides_give_the_bits_of_one_process_on_any_number_of_ranks() {
    for seed in seeds(1) {
        let mut rng = Rng::new(5100 + seed);
        for order in [1, 15, 16, 17, 31, 129, 200, 420] {
            let l = factor(order, 120, rng.pick(&[0, 6]), rng.word());
            for (cols, task) in [
                (1 + rng.below(3), Task::SolveEntrywise),
                (4 + rng.below(4), Task::SolveEntrywise),
                (4 + rng.below(4), Task::Solve),
                (1 + rng.below(7), rng.pick(&TASKS[1..])),
                (8 + rng.below(30), rng.pick(&[Task::Solve, Task::SolveEntrywise])),
            ] {
                let ranks = 1 + rng.below(7);
                let contexts = (0..ranks).map(|rank| threads(1 + rank % 2)).collect::<Vec<_>>();
                let b = matrix(rng.pick(&[Kind::Graded, Kind::Unit]), order, cols, 130, rng.word());
                let lies = (Lie::random(ranks, &mut rng), Lie::random(ranks, &mut rng));
                same(&contexts, task, (&l, &b), 140, lies);
            }
        }
    }
}

/// The inverse on ranks is the solution for the identity, and close to the inverse of one process.
#[test]
fn inverses_have_the_bits_of_a_solve() {
    for (order, ranks, tile_size) in [(0usize, 2, 8), (1, 3, 8), (6, 2, 8), (16, 4, 16), (17, 3, 8), (130, 4, 24)] {
        let l = factor(order, 150, 3, order as u64);
        let identity = Matrix::identity(order, 2).unwrap();
        let want = alone(Task::Solve, &l, &identity, 150).unwrap();
        let lie = Lie { tile_size, grid: (ranks / 2, 2) };
        let outcomes = local::run(ranks, |rank| {
            let (ctx, team) = (threads(1), team(rank));
            let l = scatter(rank, &l, lie.map(order, order, Some(Uplo::Lower)));
            let found = inverse(&ctx, &team, &l, 150, Accuracy::Norm).unwrap().solution;
            assert_eq!(found.map(), &lie.map(order, order, None));
            found.gather(rank, 0).unwrap()
        });
        let got = outcomes.into_iter().next().unwrap().unwrap();
        assert!(got == want, "order {order} on {ranks} ranks");
        let other = Cholesky::from_factor(l).unwrap().inverse(&threads(1), 150).unwrap();
        for (row, col) in (0..order).flat_map(|row| (0..order).map(move |col| (row, col))) {
            let (one, other) = (got.float(row, col), other.as_matrix().float(row, col));
            let scale = got.float(row, row).abs().max(&got.float(col, col).abs());
            assert!(Float::with_val(150, one - other).abs() <= scale >> 60, "order {order}: entry ({row}, {col})");
        }
    }
}

#[test]
fn errors_are_those_of_all_ranks() {
    let contexts = (0..4).map(|_| threads(1)).collect::<Vec<_>>();
    let lies = (Lie { tile_size: 8, grid: (2, 2) }, Lie { tile_size: 8, grid: (2, 2) });
    let refused =
        |task: Task, l: &Matrix, b: &Matrix, bits: u32| on_ranks(&contexts, task, (l, b), bits, lies).unwrap_err();
    let (mut l, b) = (factor(40, 100, 5, 2), matrix(Kind::Unit, 40, 9, 100, 3));
    let short = matrix(Kind::Unit, 39, 9, 100, 3);
    for task in TASKS {
        let error = refused(task, &l, &short, 100);
        assert!(matches!(error, Error::ShapeMismatch { left_rows: 40, right_rows: 39, .. }), "{error}");
        for bits in [0, 1, 1 << 20] {
            assert!(matches!(refused(task, &l, &b, bits), Error::Precision { .. }));
        }
    }
    let thin = b.view().block(0..40, 0..2).unwrap().to_matrix().unwrap();
    l.set_f64(33, 33, 0.0).unwrap();
    l.set_f64(21, 21, 0.0).unwrap();
    for (task, b) in [(TASKS[0], &thin), (TASKS[0], &b), (TASKS[1], &b), (TASKS[2], &b)] {
        assert!(matches!(refused(task, &l, b, 100), Error::Singular { index: 21 }));
    }
}

/// The place in B of an unknown beyond the exponent range, on every way.
#[test]
fn unknowns_beyond_the_exponent_range_are_named() {
    let contexts = (0..3).map(|_| threads(1)).collect::<Vec<_>>();
    let lies = (Lie { tile_size: 8, grid: (1, 3) }, Lie { tile_size: 8, grid: (3, 1) });
    let mut l = factor(40, 100, 2, 2);
    l.set_integer_exponent(30, 30, &1.into(), -900_000_000).unwrap();
    for (task, cols, bad) in [(TASKS[0], 2, 1), (TASKS[0], 20, 17), (TASKS[1], 20, 9), (TASKS[2], 5, 4)] {
        let mut b = Matrix::zeros(40, cols, 100).unwrap();
        b.set_integer_exponent(30, bad, &1.into(), 900_000_000).unwrap();
        let column = format!("column {bad} is outside the supported range");
        let one = alone(task, &l, &b, 100).unwrap_err().to_string();
        let all = on_ranks(&contexts, task, (&l, &b), 100, lies).unwrap_err();
        assert!(one.contains(&column) && all.to_string().contains(&column), "{task:?} {cols}: {one}; {all}");
        assert_eq!(all.exit_code(), alone(task, &l, &b, 100).unwrap_err().exit_code());
    }
}

#[test]
fn limits_that_do_not_hold_the_call_are_refused_on_all_ranks() {
    let (l, wide) = (factor(200, 300, 5, 2), matrix(Kind::Unit, 200, 9, 300, 3));
    let lies = (Lie { tile_size: 40, grid: (1, 3) }, Lie { tile_size: 40, grid: (1, 3) });
    let limited = |rank: usize, bytes: u64| {
        let contexts = (0..3).map(|own| {
            let builder = Context::builder().threads(1);
            if own == rank { builder.memory_bytes(bytes).build().unwrap() } else { builder.build().unwrap() }
        });
        contexts.collect::<Vec<_>>()
    };
    for (cols, rank) in [(2, 1), (9, 1), (5, 0)] {
        let b = wide.view().block(0..200, 0..cols).unwrap().to_matrix().unwrap();
        let error = on_ranks(&limited(rank, 10_000), Task::Solve, (&l, &b), 300, lies).unwrap_err();
        assert!(matches!(error, Error::MemoryLimit { limit_bytes: 10_000, .. }), "{error}");
        same(&limited(rank, 256 << 20), Task::Solve, (&l, &b), 300, lies);
    }
}

#[test]
fn a_call_can_be_cancelled_by_one_rank() {
    let (l, wide) = (factor(60, 100, 5, 2), matrix(Kind::Unit, 60, 20, 100, 3));
    let lies = (Lie { tile_size: 16, grid: (2, 2) }, Lie { tile_size: 16, grid: (2, 2) });
    for cols in [2, 20] {
        let b = wide.view().block(0..60, 0..cols).unwrap().to_matrix().unwrap();
        let contexts = (0..4).map(|rank| Context::builder().threads(1).progress(move |_| rank != 1).build().unwrap());
        let contexts = contexts.collect::<Vec<_>>();
        let error = on_ranks(&contexts, Task::Solve, (&l, &b), 100, lies).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{cols} columns: {error}");
    }
}
