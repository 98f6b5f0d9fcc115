//! Solves of many rows, for which the ranks of a node make the residues of the factor together: the bits of one
//! process, whatever the nodes, threads and kernels, and errors that all ranks hear of.

use super::solve::{Lie, factor, scatter, threads};
use crate::common::{Kind, Rng, in_turn, kernel_names, matrix, seeds};
use sunzi::comm::{Transport, local};
use sunzi::distributed::{Team, TeamOptions, solve, trsm_with};
use sunzi::{Cholesky, Context, Error, Matrix, Op, TrsmOptions, Uplo};

/// Rows of three tiles of a triangle, the last one short.
const ORDER: usize = 300;

/// `L X = B`, `L^T X = B` or `L L^T X = B` on ranks, so many of them a node: the solution on rank 0.
fn on_nodes(
    contexts: &[Context],
    (op, ranks_per_node): (Option<Op>, usize),
    (l, b): (&Matrix, &Matrix),
    (of_factor, of_right): (Lie, Lie),
) -> Result<Matrix, Error> {
    let bits = b.precision_bits();
    let outcomes = local::run(contexts.len(), |rank| {
        let options = TeamOptions::new().ranks_per_node(ranks_per_node);
        let (team, ctx) = (Team::new(rank.split(0).unwrap(), options).unwrap(), &contexts[rank.rank()]);
        let l = scatter(rank, l, of_factor.map(l.rows(), l.cols(), Some(Uplo::Lower)));
        let b = scatter(rank, b, of_right.map(b.rows(), b.cols(), None));
        let solved = match op {
            Some(op) => trsm_with(ctx, &team, &l, &b, bits, &TrsmOptions::new().op(op)),
            None => solve(ctx, &team, &l, &b, bits),
        };
        solved.map(|solved| solved.solution.gather(rank, 0).unwrap())
    });
    let said = outcomes.iter().map(|outcome| outcome.as_ref().map(drop).map_err(Error::to_string));
    let said = said.collect::<Vec<_>>();
    assert!(said.iter().all(|one| *one == said[0]), "ranks disagree: {said:?}");
    Ok(outcomes.into_iter().next().unwrap()?.expect("rank 0 has the solution"))
}

fn alone(op: Option<Op>, l: &Matrix, b: &Matrix) -> Matrix {
    let bits = b.precision_bits();
    match op {
        Some(op) => sunzi::trsm_with(&threads(1), l, b, bits, &TrsmOptions::new().op(op)).unwrap().result,
        None => Cholesky::from_factor(l.clone()).unwrap().solve(&threads(1), b, bits).unwrap(),
    }
}

#[test]
fn nodes_of_any_size_give_the_bits_of_one_process() {
    for seed in seeds(1) {
        let mut rng = Rng::new(8100 + seed);
        // Ranks without right sides make tiles as well.
        for (op, columns) in [(None, 9), (Some(Op::NoTranspose), 24), (Some(Op::Transpose), 41)] {
            let (l, b) = (factor(ORDER, 100, 4, rng.word()), matrix(Kind::Unit, ORDER, columns, 110, rng.word()));
            let want = alone(op, &l, &b);
            for (ranks, ranks_per_node) in [(2, 2), (3, 2), (3, 3), (4, 2), (4, 4)] {
                let contexts = (0..ranks).map(|rank| threads(1 + rank % 2)).collect::<Vec<_>>();
                let lies = (Lie::random(ranks, &mut rng), Lie::random(ranks, &mut rng));
                let got = on_nodes(&contexts, (op, ranks_per_node), (&l, &b), lies).unwrap();
                assert!(got == want, "{op:?}, {columns} columns, {ranks} ranks, {ranks_per_node} a node, {lies:?}");
            }
        }
    }
}

/// Right-hand sides of whole panels, of one more and of one less: ranks have as many panels but for one, or none at
/// all, and who has fewer makes more of the residues.
#[test]
fn widths_around_whole_panels_give_the_bits_of_one_process() {
    let mut rng = Rng::new(8150);
    let l = factor(ORDER, 60, 4, rng.word());
    for (at, columns) in [1, 7, 8, 9, 15, 16, 17, 100].into_iter().enumerate() {
        let b = matrix(Kind::Unit, ORDER, columns, 60, rng.word());
        for (turn, op) in [None, Some(Op::NoTranspose), Some(Op::Transpose)].into_iter().enumerate() {
            let want = alone(op, &l, &b);
            // Each width on each number of ranks with one of the triangles.
            let nodes = [(1, 1), (2, 2), (3, 3), (3, 2), (4, 4), (4, 3)].into_iter().enumerate();
            let taken = nodes.filter(|(place, _)| in_turn(3, at + place).contains(&turn));
            for (_, (ranks, ranks_per_node)) in taken {
                let contexts = (0..ranks).map(|rank| threads(1 + rank % 2)).collect::<Vec<_>>();
                let lies = (Lie::random(ranks, &mut rng), Lie::random(ranks, &mut rng));
                let got = on_nodes(&contexts, (op, ranks_per_node), (&l, &b), lies).unwrap();
                assert!(got == want, "{op:?}, {columns} columns, {ranks} ranks, {ranks_per_node} a node, {lies:?}");
            }
        }
    }
}

/// Every kernel, kernels that differ between ranks, and memory limits, under which some ranks take smaller tiles.
#[test]
fn kernels_and_limits_do_not_show() {
    let mut rng = Rng::new(8200);
    let (l, b) = (factor(ORDER, 90, 4, 1), matrix(Kind::Unit, ORDER, 20, 90, 2));
    let want = alone(None, &l, &b);
    let lies = (Lie::random(2, &mut rng), Lie::random(2, &mut rng));
    let names = kernel_names().into_iter().filter(|name| *name != "reference").collect::<Vec<_>>();
    for (at, name) in names.iter().enumerate() {
        for other in [name, names[(at + 1) % names.len()]] {
            let builder = |rank: usize| Context::builder().threads(1).kernel(if rank == 0 { name } else { other });
            let contexts = (0..2).map(|rank| builder(rank).build().unwrap()).collect::<Vec<_>>();
            let got = on_nodes(&contexts, (None, 2), (&l, &b), lies).unwrap();
            assert!(got == want, "{name} and {other}");
            let limit = match on_nodes(&limited(&contexts, 1), (None, 2), (&l, &b), lies) {
                Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
                other => panic!("{other:?}"),
            };
            let got = on_nodes(&limited(&contexts, limit), (None, 2), (&l, &b), lies).unwrap();
            assert!(got == want, "{name} and {other} within {limit} bytes");
        }
    }
}

/// What a team keeps from solve to solve is of no shape: larger and smaller ones follow, and one with a limit.
#[test]
fn kept_windows_serve_other_solves() {
    let mut rng = Rng::new(8250);
    let cases = [(300, 100, 20), (400, 200, 9), (260, 64, 17)].map(|(order, bits, columns)| {
        let (l, b) = (factor(order, bits, 4, rng.word()), matrix(Kind::Unit, order, columns, bits, rng.word()));
        let want = [Op::NoTranspose, Op::Transpose].map(|op| alone(Some(op), &l, &b));
        (l, b, want)
    });
    let lies = (Lie::random(3, &mut rng), Lie::random(3, &mut rng));
    local::run(3, |rank| {
        let options = TeamOptions::new().ranks_per_node(2);
        let team = Team::new(rank.split(0).unwrap(), options).unwrap();
        for (limit, again) in [(None, 0..3), (Some(64 << 20), 0..1), (None, 1..2), (Some(64 << 20), 2..3)] {
            let builder = Context::builder().threads(1);
            let ctx = limit.into_iter().fold(builder, |builder, limit| builder.memory_bytes(limit)).build().unwrap();
            for (l, b, want) in &cases[again] {
                let bits = b.precision_bits();
                let held = scatter(rank, l, lies.0.map(l.rows(), l.cols(), Some(Uplo::Lower)));
                let right = scatter(rank, b, lies.1.map(b.rows(), b.cols(), None));
                for (op, want) in [Op::NoTranspose, Op::Transpose].into_iter().zip(want) {
                    let options = TrsmOptions::new().op(op);
                    let found = trsm_with(&ctx, &team, &held, &right, bits, &options).unwrap().solution;
                    let whole = found.gather(rank, 0).unwrap();
                    assert!(whole.is_none_or(|whole| whole == *want), "{op:?} of {} rows, {limit:?}", l.rows());
                }
                if limit.is_some() {
                    assert_eq!(team.window_bytes(), 0, "a limit counts what is kept");
                }
            }
        }
    });
}

fn limited(contexts: &[Context], bytes: u64) -> Vec<Context> {
    let builder = |ctx: &Context| Context::builder().threads(1).kernel(ctx.kernel().name()).memory_bytes(bytes);
    contexts.iter().map(|ctx| builder(ctx).build().unwrap()).collect()
}

/// Columns that no try holds leave the first one, in which the ranks work together, for the solve by parts.
#[test]
fn columns_that_outgrow_a_try_together_give_the_bits_of_one_process() {
    let mut l = factor(ORDER, 100, 3, 5);
    for row in 1..ORDER {
        let size = l.float(row - 1, row - 1) * -7.0;
        l.set_float(row, row - 1, &size).unwrap();
    }
    let b = matrix(Kind::Unit, ORDER, 17, 100, 6);
    let want = alone(Some(Op::NoTranspose), &l, &b);
    let mut rng = Rng::new(8300);
    let lies = (Lie::random(4, &mut rng), Lie::random(4, &mut rng));
    let contexts = (0..4).map(|_| threads(1)).collect::<Vec<_>>();
    assert!(on_nodes(&contexts, (Some(Op::NoTranspose), 2), (&l, &b), lies).unwrap() == want);
}

#[test]
fn one_rank_that_cancels_or_fails_ends_the_work_of_all_nodes() {
    let (l, b) = (factor(ORDER, 100, 5, 2), matrix(Kind::Unit, ORDER, 20, 100, 3));
    let mut rng = Rng::new(8400);
    let lies = (Lie::random(4, &mut rng), Lie::random(4, &mut rng));
    for stops in 0..3 {
        let cancels = |rank: usize| Context::builder().threads(1).progress(move |_| rank != stops).build().unwrap();
        let contexts = (0..4).map(cancels).collect::<Vec<_>>();
        let error = on_nodes(&contexts, (None, 2), (&l, &b), lies).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "rank {stops}: {error}");
    }
    let mut singular = l;
    singular.set_f64(ORDER - 1, ORDER - 1, 0.0).unwrap();
    let error =
        on_nodes(&(0..4).map(|_| threads(1)).collect::<Vec<_>>(), (None, 2), (&singular, &b), lies).unwrap_err();
    assert!(matches!(error, Error::Singular { index } if index == ORDER - 1), "{error}");
}
