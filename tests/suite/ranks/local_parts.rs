//! Verbs on the parts of matrices that callers have: the bits of one process from and to any distribution.

use super::distributions::{any, part};
use super::solve::{Lie, factor, scatter, threads};
use crate::common::{Kind, Rng, matrix, seeds};
use sunzi::comm::{Transport, local};
use sunzi::distributed::{
    DistOptions, Distribution, LocalPart, Team, TeamOptions, contracted_rows, even_rows, inverse_local, solve_local,
    solve_with, syrk, trsm_local, trsm_with,
};
use sunzi::rug::Float;
use sunzi::{Accuracy, Cholesky, Diag, Error, Matrix, MatrixViewMut, Op, Side, TrsmOptions, Uplo};

fn team(rank: &local::LocalRank) -> Team {
    Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap()
}

/// Every way of a solve: by vectors, by sums, by parts, by tiles, of a small order.
#[test]
fn solves_take_right_sides_from_anywhere_and_bring_solutions_anywhere() {
    for seed in seeds(12) {
        let mut rng = Rng::new(9100 + seed);
        let (ranks, bits) = (1 + rng.below(5), 120);
        let order = rng.pick(&[0, 1, 12, 40, 90]);
        let l = factor(order, bits, 4, rng.word());
        let lie = Lie::random(ranks, &mut rng);
        for (columns, accuracy) in [
            (1, Accuracy::Norm),
            (3, Accuracy::Entrywise),
            (5, Accuracy::Norm),
            (0, Accuracy::Norm),
            (21, Accuracy::Norm),
        ] {
            // Ranks may have fewer bits than others: they are those of the whole here.
            let b = matrix(Kind::Graded, order, columns, bits - 30, rng.word());
            let (from, to) = (any(&mut rng, (order, columns), ranks), any(&mut rng, (order, columns), ranks));
            let want =
                Cholesky::from_factor(l.clone()).map(|of| of.with_accuracy(accuracy).solve(&threads(1), &b, bits));
            let alpha = Float::with_val(60, -3);
            let options = TrsmOptions::new().op(Op::Transpose).accuracy(accuracy).alpha(&alpha);
            let unknowns = sunzi::trsm_with(&threads(1), &l, &b, bits, &options).unwrap().result;
            local::run(ranks, |rank| {
                let (ctx, team) = (threads(1), team(rank));
                let held = scatter(rank, &l, lie.map(order, order, Some(Uplo::Lower)));
                let own = part(&b, &from, rank.rank());
                let right = LocalPart { distribution: &from, local: own.view() };
                let what = format!("seed {seed}, {order} x {columns}, {ranks} ranks, {from:?} to {to:?}");
                // Twice: the second time in memory that is kept.
                for _ in 0..2 {
                    let found = solve_local(&ctx, &team, &held, right, bits, accuracy).unwrap();
                    let mut got =
                        matrix(Kind::Unit, to.local_shape(rank.rank()).0, to.local_shape(rank.rank()).1, bits, 1);
                    found.fill_local(rank, &to, got.view_mut()).unwrap();
                    found.give_back(&ctx);
                    let want = want.as_ref().ok().map(|want| part(want.as_ref().unwrap(), &to, rank.rank()));
                    assert!(want.is_none_or(|want| got == want), "{what}");
                    let found = trsm_local(&ctx, &team, &held, right, bits, &options).unwrap();
                    found.fill_local(rank, &to, got.view_mut()).unwrap();
                    assert!(got == part(&unknowns, &to, rank.rank()), "trsm, {what}");
                }
            });
        }
    }
}

/// Results go between the other entries of a larger array, and one triangle of a result alone.
#[test]
fn results_are_filled_where_they_lie() {
    let (rows, order, bits, ranks) = (50, 30, 100, 3);
    let p = matrix(Kind::Graded, rows, order, bits, 5);
    let want = sunzi::syrk(&threads(1), &p, bits).unwrap().into_matrix();
    for seed in seeds(20) {
        let mut rng = Rng::new(9200 + seed);
        let to = any(&mut rng, (order, order), ranks);
        let uplo = rng.pick(&[Uplo::Lower, Uplo::Upper]);
        local::run(ranks, |rank| {
            let (ctx, mut team) = (threads(1), team(rank));
            let own = part(&p, &even_rows(rows, order, ranks), rank.rank());
            let options = DistOptions::new().uplo(uplo);
            let result = syrk(&ctx, &mut team, &[own.view()], bits, &options).unwrap().result;
            let (height, width) = to.local_shape(rank.rank());
            let wanted = part(&want, &to, rank.rank());
            for triangle in [None, Some(Uplo::Lower), Some(Uplo::Upper)] {
                // Two rows more than the part has, which stay as they are.
                let mut larger = matrix(Kind::Unit, height + 2, width, bits, 3);
                let before = larger.clone();
                let view = larger.view_mut().block(1..1 + height, 0..width).unwrap();
                result.fill_local(rank, (&to, triangle), view).unwrap();
                let diagonal = to.local_diagonal(rank.rank());
                for (row, col) in (0..height + 2).flat_map(|row| (0..width).map(move |col| (row, col))) {
                    let inside = (1..=height).contains(&row)
                        && match triangle {
                            None => true,
                            Some(Uplo::Lower) => row > diagonal.row_on(col),
                            Some(Uplo::Upper) => row - 1 < diagonal.row_below(col),
                        };
                    let want = if inside { wanted.get(row - 1, col) } else { before.get(row, col) };
                    assert_eq!(larger.get(row, col), want, "{uplo:?} as {triangle:?}, ({row}, {col}) of {to:?}");
                }
            }
        });
    }
}

#[test]
fn an_inverse_comes_as_a_solution_on_any_number_of_ranks() {
    let (bits, mut rng) = (110, Rng::new(9300));
    // At the edges of blocks that are solved scalar by scalar, of tiles, and of the strips of the other inverse.
    for order in [1, 8, 15, 16, 17, 40, 255, 256, 257] {
        let l = factor(order, bits, 4, 3);
        let identity = Matrix::identity(order, bits).unwrap();
        let kept = Cholesky::from_factor(l.clone()).unwrap();
        let want = kept.solve(&threads(1), &identity, bits).unwrap();
        if order >= 40 {
            // A product, with bits of its own: where these agree one day, decision 108 has to go.
            assert!(*kept.inverse(&threads(1), bits).unwrap().as_matrix() != want, "order {order}");
        }
        for ranks in [1, 2, 3, 4] {
            let (lie, to) = (Lie::random(ranks, &mut rng), any(&mut rng, (order, order), ranks));
            local::run(ranks, |rank| {
                let (ctx, team) = (threads(1), team(rank));
                let held = scatter(rank, &l, lie.map(order, order, Some(Uplo::Lower)));
                let found = inverse_local(&ctx, &team, &held, bits, Accuracy::default()).unwrap();
                let (rows, cols) = to.local_shape(rank.rank());
                let mut got = Matrix::zeros(rows, cols, bits).unwrap();
                found.fill_local(rank, &to, got.view_mut()).unwrap();
                assert!(got == part(&want, &to, rank.rank()), "order {order} on {ranks} ranks");
            });
        }
    }
}

/// A factor and nine right-hand sides in rows on two ranks.
struct Small {
    order: usize,
    bits: u32,
    l: Matrix,
    b: Matrix,
    to: Distribution,
}

impl Small {
    fn new() -> Small {
        let (order, bits) = (20, 80);
        let (l, b) = (factor(order, bits, 4, 1), matrix(Kind::Unit, order, 9, bits, 2));
        Small { order, bits, l, b, to: even_rows(order, 9, 2) }
    }
}

#[test]
fn what_does_not_fit_is_refused_on_all_ranks() {
    let Small { order, bits, l, b, to } = Small::new();
    local::run(2, |rank| {
        let (ctx, team, own) = (threads(1), team(rank), part(&b, &to, rank.rank()));
        let held = scatter(rank, &l, Lie::random(1, &mut Rng::new(1)).map(order, order, Some(Uplo::Lower)));
        let right = LocalPart { distribution: &to, local: own.view() };
        // A part of another shape on rank 1 alone; distributions that differ; the wrong side.
        let short = part(&b, &even_rows(order, 9, 2), 0).view().block(0..3, 0..9).unwrap().to_matrix().unwrap();
        let wrong = LocalPart { local: if rank.rank() == 1 { short.view() } else { own.view() }, ..right };
        assert!(solve_local(&ctx, &team, &held, wrong, bits, Accuracy::Norm).is_err());
        let root = Distribution::on_root(order, 9, 2, rank.rank());
        let whole = LocalPart { distribution: &root, local: b.view() };
        let error = solve_local(&ctx, &team, &held, whole, bits, Accuracy::Norm).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        let options = TrsmOptions::new().side(Side::Right).diag(Diag::NonUnit);
        assert!(trsm_local(&ctx, &team, &held, right, bits, &options).is_err());
        // One rank alone asks for another side or triangle.
        for odd in [options, TrsmOptions::new().uplo(Uplo::Upper)] {
            let mine = if rank.rank() == 0 { odd } else { TrsmOptions::new() };
            assert!(trsm_local(&ctx, &team, &held, right, bits, &mine).is_err());
        }
        // The same of tiles, of a square that holds both triangles.
        let whole = |matrix: &Matrix| scatter(rank, matrix, Lie::random(1, &mut Rng::new(1)).map(order, order, None));
        let (t, sides) = (whole(&l), whole(&l));
        for odd in [
            TrsmOptions::new().side(Side::Right),
            TrsmOptions::new().uplo(Uplo::Upper),
            TrsmOptions::new().op(Op::Transpose),
            TrsmOptions::new().diag(Diag::Unit),
        ] {
            let mine = if rank.rank() == 0 { odd } else { TrsmOptions::new() };
            let error = trsm_with(&ctx, &team, &t, &sides, bits, &mine).unwrap_err();
            assert!(error.to_string().contains("the ranks pass different sides"), "{error}");
        }
        // The other triangle of a factor, which is no symmetric matrix.
        let mut square = Matrix::zeros(10, order, bits).unwrap();
        let rows = even_rows(order, order, 2);
        assert!(held.fill_local(rank, (&rows, Some(Uplo::Upper)), square.view_mut()).is_err());
        held.fill_local(rank, (&rows, Some(Uplo::Lower)), square.view_mut()).unwrap();
        // A triangle of a symmetric matrix on one rank, both on the other: these come in two moves.
        let symmetric = scatter(rank, &l, *held.map()).into_symmetric().unwrap();
        let wanted = Some(Uplo::Lower).filter(|_| rank.rank() == 1);
        let error = symmetric.fill_local(rank, (&rows, wanted), square.view_mut()).unwrap_err();
        assert!(error.to_string().contains("different distributions or triangles"), "{error}");
    });
}

#[test]
fn memory_that_does_not_fit_a_solution_is_refused_on_all_ranks() {
    let Small { order, bits, l, b, to } = Small::new();
    local::run(2, |rank| {
        let (ctx, team, own) = (threads(1), team(rank), part(&b, &to, rank.rank()));
        let held = scatter(rank, &l, Lie::random(1, &mut Rng::new(1)).map(order, order, Some(Uplo::Lower)));
        let right = LocalPart { distribution: &to, local: own.view() };
        // Memory of another shape or precision on one rank alone.
        let found = solve_local(&ctx, &team, &held, right, bits, Accuracy::Norm).unwrap();
        let mut memory = [own.clone(), Matrix::zeros(3, 9, bits).unwrap(), Matrix::zeros(10, 9, bits + 64).unwrap()];
        for at in [1, 2] {
            let target: MatrixViewMut<'_> = memory[if rank.rank() == 0 { at } else { 0 }].view_mut();
            assert!(found.fill_local(rank, &to, target).is_err());
        }
        // Each rank alone is another group.
        let (alone, all) = (rank.split(rank.rank()).unwrap(), even_rows(order, 9, 1));
        let error = found.fill_local(&*alone, &all, Matrix::zeros(order, 9, bits).unwrap().view_mut()).unwrap_err();
        let said = format!("the solution belongs to rank {} of 2, but is used on rank 0 of 1", rank.rank());
        assert!(error.to_string().contains(&said), "{error}");
        found.fill_local(rank, &to, memory[0].view_mut()).unwrap();
        let want = solve_with(
            &ctx,
            &team,
            &held,
            &scatter(rank, &b, Lie::random(1, &mut Rng::new(1)).map(order, 9, None)),
            bits,
            Accuracy::Norm,
        );
        assert!(memory[0] == want.unwrap().solution.to_local(rank, &to).unwrap());
    });
}

#[test]
fn products_leave_rows_where_they_are_whole_and_even() {
    let (rows, ranks) = (80, 4);
    let even = even_rows(rows, 7, ranks);
    let blocks = |starts: &[usize]| Distribution::row_blocks(starts.to_vec(), 7);
    // 22 rows are an eighth more than 20, and 23 too many.
    let (close, uneven) = (blocks(&[0, 22, 42, 60, 80]), blocks(&[0, 23, 42, 60, 80]));
    assert!(contracted_rows(&[&close], ranks) == close && contracted_rows(&[&uneven], ranks) == even);
    let root = Distribution::on_root(rows, 7, ranks, 2);
    assert_eq!(contracted_rows(&[&root, &close], ranks), close, "the rows of the second operand");
    // 16 rows on four of five ranks are even, but the fifth has no columns there.
    for (seed, (rows, ranks, most)) in seeds(200).zip([(80, 4, 22), (16, 5, 4)].into_iter().cycle()) {
        let mut rng = Rng::new(seed);
        let placed = any(&mut rng, (rows, 7), ranks);
        let to = contracted_rows(&[&placed], ranks);
        to.check(ranks).unwrap();
        let counts = (0..ranks).map(|rank| to.local_shape(rank));
        assert!(counts.clone().all(|(count, cols)| count <= most && cols == 7), "{placed:?}");
        assert_eq!(counts.map(|(count, _)| count).sum::<usize>(), rows, "each row on one rank: {placed:?}");
        let stays = placed.with_whole_rows(7).is_some_and(|whole| whole == to);
        assert!(stays || to == even_rows(rows, 7, ranks), "{placed:?}");
    }
    let four = even_rows(16, 7, 4);
    assert_eq!(contracted_rows(&[&four], 5), even_rows(16, 7, 5));
    assert_eq!(contracted_rows(&[&four], 4), four);
    // Neither has it those of the other operand where this one has none at all.
    let outside = Distribution::row_blocks(vec![0, 1], 0);
    assert_eq!(contracted_rows(&[&outside, &even_rows(1, 7, 1)], 2), even_rows(1, 0, 2));
    // What is no distribution is left out: no operands, no ranks, a grid of too many.
    assert_eq!(contracted_rows(&[], 0).rows, 0);
    assert_eq!(contracted_rows(&[&four], 3), even_rows(16, 7, 3));
}
