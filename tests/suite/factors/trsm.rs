//! Triangular solves: exact residuals against the promised bound, the same bits on every path, and every refusal.

use crate::common::solves::assert_trsm_bound;
use crate::common::{Kind, Rng, forced, in_turn, kernel_names, matrix, seeds};
use rug::Float;
use sunzi::advanced::kernels;
use sunzi::{Accuracy, Context, Diag, Error, Matrix, Op, Side, TrsmOptions, Uplo, trsm, trsm_with};

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

/// A matrix whose diagonal entries are moved up by `lift` bits and are not 0.
fn square(kind: Kind, order: usize, bits: u32, lift: i64, seed: u64) -> Matrix {
    let mut t = matrix(kind, order, order, bits, seed);
    let mut rng = Rng::new(seed + 1000);
    for i in 0..order {
        let (integer, exponent) = t.get(i, i).to_integer_exponent();
        let integer = if integer == 0 { rng.integer(bits) } else { integer };
        t.set_integer_exponent(i, i, &integer, exponent + lift).unwrap();
    }
    t
}

/// All sides, triangles, transposes and diagonals.
fn choices() -> Vec<TrsmOptions<'static>> {
    let mut all = Vec::new();
    for side in [Side::Left, Side::Right] {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            for op in [Op::NoTranspose, Op::Transpose] {
                for diag in [Diag::NonUnit, Diag::Unit] {
                    all.push(TrsmOptions::new().side(side).uplo(uplo).op(op).diag(diag));
                }
            }
        }
    }
    all
}

/// `n x m` on the left side, `m x n` on the right.
fn right_side(kind: Kind, (order, columns): (usize, usize), bits: u32, (side, seed): (Side, u64)) -> Matrix {
    match side {
        Side::Left => matrix(kind, order, columns, bits, seed),
        Side::Right => matrix(kind, columns, order, bits, seed),
    }
}

#[test]
fn every_choice_meets_the_bound_at_every_size() {
    let ctx = context(1);
    let alpha = Float::with_val(80, -5) / 3u32;
    let sizes = [(0, 3), (1, 1), (5, 0), (17, 2), (33, 50), (63, 1), (64, 45), (65, 3), (130, 41)];
    for (case, &(order, columns)) in sizes.iter().enumerate() {
        for (index, choice) in choices().into_iter().enumerate() {
            if order > 64 && index % 3 != case % 3 {
                continue;
            }
            let seed = (case * 100 + index) as u64;
            let (kind, lift) = [(Kind::Unit, 6), (Kind::Graded, 3), (Kind::Unit, 0)][index % 3];
            let t = square(kind, order, 90 + 7 * index as u32, lift, seed);
            let b = right_side(Kind::Graded, (order, columns), 100, (choice.side, seed + 1));
            let options = choice.alpha((index % 2 == 0).then_some(&alpha));
            let precision_bits = [53, 64, 100, 200][(index + case) % 4];
            let x = trsm_with(&ctx, &t, &b, precision_bits, &options).unwrap().result;
            assert_eq!(x.precision_bits(), precision_bits);
            assert_trsm_bound(&t, &b, &x, &options, &format!("{order} x {columns}, seed {seed}, {options:?}"));
        }
    }
}

#[test]
fn the_bound_holds_whatever_the_condition() {
    let ctx = context(2);
    for (place, (order, columns)) in [(40, 44), (64, 48), (100, 42), (130, 2)].into_iter().enumerate() {
        // Rows of a Hilbert matrix below a diagonal that falls by 3 and by 9 bits a row; random rows without a lift
        // have inverses that grow by about a bit a row.
        for (turn, fall) in [0i64, 3, 9, -9].into_iter().enumerate() {
            let mut t = matrix(Kind::Unit, order, order, 150, 7);
            for i in 0..order {
                for j in 0..i {
                    t.set_float(i, j, &(Float::with_val(150, 1) / (i + j + 1) as u32)).unwrap();
                }
                let (integer, exponent) = t.get(i, i).to_integer_exponent();
                t.set_integer_exponent(i, i, &integer, exponent - fall * i as i64).unwrap();
            }
            let b = matrix(Kind::Unit, order, columns, 150, 8);
            for (at, op) in [Op::NoTranspose, Op::Transpose].into_iter().enumerate() {
                let options = TrsmOptions::new().op(op);
                for precision_bits in in_turn(2, place + turn + at).map(|which| [53, 150][which]) {
                    let x = trsm_with(&ctx, &t, &b, precision_bits, &options).unwrap().result;
                    assert_trsm_bound(&t, &b, &x, &options, &format!("{order} x {columns}, fall {fall}, {op:?}"));
                }
            }
        }
    }
}

#[test]
fn exponents_far_apart_meet_the_bound() {
    let ctx = context(1);
    for seed in seeds(3) {
        for (order, columns) in [(6, 2), (20, 41)] {
            let t = square(Kind::Extreme, order, 120, 0, seed);
            let b = matrix(Kind::Extreme, order, columns, 120, seed + 50);
            for choice in choices().into_iter().filter(|choice| choice.side == Side::Left) {
                let x = trsm_with(&ctx, &t, &b, 100, &choice).unwrap().result;
                assert_trsm_bound(&t, &b, &x, &choice, &format!("{order} x {columns}, seed {seed}, {choice:?}"));
            }
        }
    }
}

#[test]
fn what_must_not_be_read_may_hold_anything() {
    let ctx = context(1);
    for choice in choices() {
        let (order, columns) = (70, 42);
        let t = square(Kind::Unit, order, 90, 3, 5);
        let mut other = t.clone();
        for row in 0..order {
            for col in 0..order {
                let inside = if choice.uplo == Uplo::Lower { row > col } else { row < col };
                let diagonal = row == col && choice.diag == Diag::NonUnit;
                if !inside && !diagonal {
                    other.set_f64(row, col, if (row + col) % 3 == 0 { 0.0 } else { 1e300 }).unwrap();
                }
            }
        }
        let b = right_side(Kind::Unit, (order, columns), 90, (choice.side, 6));
        let (x, y) = (
            trsm_with(&ctx, &t, &b, 80, &choice).unwrap().result,
            trsm_with(&ctx, &other, &b, 80, &choice).unwrap().result,
        );
        assert!(x == y, "{choice:?}");
    }
}

#[test]
fn the_bits_do_not_depend_on_threads_kernel_or_memory() {
    let options = TrsmOptions::default();
    let shapes = [(130, 60, 120, false), (130, 60, 120, true), (150, 3, 90, false), (20, 300, 64, false)];
    for (at, (order, columns, precision_bits, grows)) in shapes.into_iter().enumerate() {
        let mut t = square(Kind::Unit, order, 110, 2, 3);
        let mut b = matrix(Kind::Graded, order, columns, 110, 4);
        if grows {
            growing(&mut t, &mut b);
        }
        let want = trsm_with(&context(1), &t, &b, precision_bits, &options).unwrap().result;
        assert_trsm_bound(&t, &b, &want, &options, "one thread");
        for (turn, kernel) in kernel_names().into_iter().enumerate() {
            // Of each kernel and shape one number of threads has no limit, and one that is not 3 has limits.
            for threads in [1, 2, 3] {
                let label = format!("{order} x {columns}, {kernel}, {threads} threads");
                if in_turn(3, turn + at).contains(&(threads - 1)) {
                    let free = forced(kernel, threads).build().unwrap();
                    assert!(trsm_with(&free, &t, &b, precision_bits, &options).unwrap().result == want, "{label}");
                }
                if threads == 3 || !in_turn(2, turn + at / 2).contains(&(threads - 1)) {
                    continue;
                }
                let least = least_memory(kernel, threads, |ctx| {
                    trsm_with(ctx, &t, &b, precision_bits, &options).map(|outcome| outcome.result)
                });
                let others = in_turn(2, turn + at).map(|which| [least * 5 / 4, least * 2][which]);
                for limit in others.chain([least]) {
                    let ctx = forced(kernel, threads).memory_bytes(limit).build().unwrap();
                    let x = trsm_with(&ctx, &t, &b, precision_bits, &options).unwrap().result;
                    assert!(x == want, "{label}, limit {limit}");
                }
            }
        }
    }
}

/// Unknowns that grow from row to row, and right-hand sides that begin at different rows: some outgrow fixed point.
fn growing(t: &mut Matrix, b: &mut Matrix) {
    for i in 1..t.rows() {
        t.set_f64(i, i - 1, 100.0).unwrap();
    }
    for col in 0..b.cols() {
        for row in 0..(17 * col) % b.rows() {
            b.set_f64(row, col, 0.0).unwrap();
        }
    }
}

/// The least limit that an operation names.
fn least_memory(kernel: &str, threads: usize, run: impl Fn(&Context) -> sunzi::Result<Matrix>) -> u64 {
    let tiny = forced(kernel, threads).memory_bytes(1).build().unwrap();
    match run(&tiny) {
        Err(Error::MemoryLimit { minimum_bytes, limit_bytes: 1 }) => minimum_bytes,
        other => panic!("one byte cannot be enough: {other:?}"),
    }
}

#[test]
fn bands_of_right_sides_change_no_bit() {
    // More right sides than a band takes.
    for (order, columns) in [(9, 4500), (40, 1100)] {
        let (mut t, ctx) = (square(Kind::Unit, order, 60, 2, 3), context(2));
        let mut b = matrix(Kind::Unit, order, columns, 60, 4);
        growing(&mut t, &mut b);
        let x = trsm(&ctx, &t, &b, 60).unwrap();
        for first in [0, columns / 2, columns - 100] {
            let part = b.view().block(0..order, first..first + 100).unwrap();
            let y = trsm(&ctx, &t, part, 60).unwrap();
            let want = x.view().block(0..order, first..first + 100).unwrap().to_matrix().unwrap();
            assert!(want == y, "{order} rows, columns from {first}");
        }
    }
}

#[test]
fn views_and_other_precisions_are_taken_as_they_are() {
    let ctx = context(1);
    let (large, wide) = (square(Kind::Unit, 50, 300, 2, 3), matrix(Kind::Unit, 60, 60, 40, 4));
    let (t, b) = (large.view().block(10..40, 10..40).unwrap(), wide.transposed().block(5..35, 7..12).unwrap());
    let x = trsm(&ctx, t, b, 90).unwrap();
    assert_trsm_bound(&t.to_matrix().unwrap(), &b.to_matrix().unwrap(), &x, &TrsmOptions::default(), "views");
}

#[test]
fn small_solutions_are_exact() {
    let ctx = context(1);
    let t = Matrix::from_f64s(2, 2, 60, &[2.0, 1.0, 0.0, 4.0]).unwrap();
    let b = Matrix::from_f64s(2, 1, 60, &[6.0, 11.0]).unwrap();
    let x = trsm(&ctx, &t, &b, 60).unwrap();
    assert_eq!(x, Matrix::from_f64s(2, 1, 60, &[3.0, 2.0]).unwrap());
    let zero = Float::new(53);
    let options = TrsmOptions::new().alpha(&zero);
    assert_eq!(trsm_with(&ctx, &t, &b, 60, &options).unwrap().result, Matrix::zeros(2, 1, 60).unwrap());
}

#[test]
fn refusals_carry_the_numbers() {
    let ctx = context(1);
    let (t, b) = (square(Kind::Unit, 5, 60, 0, 3), matrix(Kind::Unit, 5, 2, 60, 4));
    let plain = TrsmOptions::default();
    let right = plain.side(Side::Right);
    match trsm_with(&ctx, &t, &b, 60, &right) {
        Err(Error::ShapeMismatch { left_rows: 5, left_cols: 2, right_rows: 5, right_cols: 5, .. }) => {}
        other => panic!("{other:?}"),
    }
    let wide = matrix(Kind::Unit, 5, 6, 60, 3);
    assert!(matches!(trsm_with(&ctx, &wide, &b, 60, &plain), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(trsm_with(&ctx, &t, &b, 1, &plain), Err(Error::Precision { precision_bits: 1, .. })));
    let Err(Error::Precision { maximum_bits, .. }) =
        trsm_with(&ctx, &t, &b, 100_000, &plain).map(|outcome| outcome.result)
    else {
        panic!()
    };
    assert!(trsm_with(&ctx, &t, &b, maximum_bits as u32, &plain).map(|outcome| outcome.result).is_ok());
    let mut singular = t.clone();
    singular.set_f64(3, 3, 0.0).unwrap();
    assert!(matches!(trsm_with(&ctx, &singular, &b, 60, &plain), Err(Error::Singular { index: 3 })));
    assert!(trsm_with(&ctx, &singular, &b, 60, &plain.diag(Diag::Unit)).map(|outcome| outcome.result).is_ok());
    let infinite = Float::with_val(53, f64::INFINITY);
    let options = plain.alpha(&infinite);
    assert!(matches!(trsm_with(&ctx, &t, &b, 60, &options), Err(Error::InvalidArgument(_))));
    let stop = Context::builder().threads(1).progress(|_| false).build().unwrap();
    assert!(matches!(trsm_with(&stop, &t, &b, 60, &plain), Err(Error::Cancelled)));
}

#[test]
fn solutions_beyond_the_exponent_range_are_named() {
    let ctx = context(1);
    let limit = sunzi::MAXIMUM_EXPONENT;
    for (columns, side) in [(3, Side::Left), (3, Side::Right), (50, Side::Left)] {
        let mut t = square(Kind::Unit, 80, 60, 3, 3);
        t.set_integer_exponent(70, 70, &1.into(), 10 - limit).unwrap();
        let mut b = right_side(Kind::Unit, (80, columns), 60, (side, 4));
        let (row, column) = if side == Side::Left { (70, 2) } else { (2, 70) };
        b.set_integer_exponent(row, column, &1.into(), limit - 10).unwrap();
        match trsm_with(&ctx, &t, &b, 60, &TrsmOptions::new().side(side).op(Op::NoTranspose)) {
            Err(Error::ExponentRange { exponent, .. }) => assert!(exponent.abs() > limit),
            other => panic!("{columns} columns: {other:?}"),
        }
    }
}

/// Unknowns far below others of their column keep their own bits, also where so many right-hand sides are solved for
/// that they go in fixed point.
#[test]
fn small_unknowns_are_right_beside_large_ones() {
    let (order, bits) = (300, 100);
    let small: Float = Float::with_val(bits, 1) >> 5000;
    let b = Matrix::from_fn(order, order, bits, |row, _| match row {
        0 => Float::with_val(bits, 1),
        _ if row == order - 1 => small.clone(),
        _ => Float::new(bits),
    });
    let (b, identity) = (b.unwrap(), Matrix::identity(order, bits).unwrap());
    for accuracy in [Accuracy::Entrywise, Accuracy::Norm] {
        let x = trsm_with(&context(2), &identity, &b, bits, &TrsmOptions::new().accuracy(accuracy)).unwrap().result;
        assert!(x.get(0, 7) == b.get(0, 7), "{accuracy:?}");
        assert!(accuracy == Accuracy::Norm || x == b, "an unknown of 2^-5000 beside 1 is lost");
    }
}

/// A lower triangle of `order` rows and `columns` right-hand sides, with exponents far apart.
fn system(order: usize, columns: usize) -> [Matrix; 2] {
    let mut state = 1u64;
    let mut entry = |spread: i32| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 2f64.powi((state >> 3) as i32 % spread)
    };
    let mut t = Matrix::zeros(order, order, 60).unwrap();
    let mut b = Matrix::zeros(order, columns, 60).unwrap();
    for i in 0..order {
        (0..i).for_each(|j| t.set_f64(i, j, entry(40) / 2f64.powi(40) / order as f64).unwrap());
        t.set_f64(i, i, 1.0 + entry(1).abs()).unwrap();
        (0..columns).for_each(|j| b.set_f64(i, j, entry(60)).unwrap());
    }
    [t, b]
}

/// Solves so large that another kernel suits them have the bits of the context's own, in one band and in two; under a
/// memory limit they stay on their own. Each solve takes part of a second: the columns of one band are those of two.
#[test]
fn a_kernel_that_is_chosen_for_a_large_solve_gives_the_same_bits() {
    let free = context(2);
    let own = free.kernel().name();
    let large = kernels::preferred_for_large_solves();
    let chosen = large.map_or(own, |(kernel, _)| kernel.name());
    let order = large.map_or(700, |(_, costs)| costs.least_rows(200));
    let [t, b] = system(order, 801);
    let forced = Context::builder().threads(2).kernel(own).build().unwrap();
    let solved = |ctx: &Context, columns| {
        let b = b.view().block(0..order, 0..columns).unwrap();
        trsm_with(ctx, &t, b, 60, &TrsmOptions::default()).unwrap()
    };
    let want = solved(&forced, 801);
    assert_eq!((want.report.kernel, want.report.bands), (own, 2));
    for (columns, bands) in [(401, 1), (801, 2)] {
        let got = solved(&free, columns);
        assert_eq!((got.report.kernel, got.report.bands), (chosen, bands));
        let want = want.result.view().block(0..order, 0..columns).unwrap().to_matrix().unwrap();
        assert!(got.result == want, "{chosen} gives other bits than {own}");
    }
    let limited = solved(&free.with_memory_bytes(Some(1 << 40)), 401);
    let want = want.result.view().block(0..order, 0..401).unwrap().to_matrix().unwrap();
    assert_eq!((limited.report.kernel, limited.result == want), (own, true));
}
