//! Fewer than eight right-hand sides.

use super::*;
use crate::common::in_turn;
use sunzi::Accuracy;

/// The matrix with row and column `i` scaled by a power of two that depends on `i`.
fn spread(mut matrix: Matrix) -> Matrix {
    let (order, bits) = (matrix.rows(), matrix.precision_bits());
    let shift = |i: usize| (i * 37 % 90) as i32 - 45;
    for col in 0..order {
        for row in 0..order {
            let value = Float::with_val(bits, matrix.float(row, col) << (shift(row) + shift(col)));
            matrix.set_float(row, col, &value).unwrap();
        }
    }
    matrix
}

#[test]
fn a_solve_for_a_few_is_that_of_memory() {
    let dots = [(1, 1), (15, 3), (17, 1), (128, 2), (129, 1), (300, 3)];
    for (order, columns) in dots.into_iter().chain([(1, 8), (16, 17), (17, 4), (129, 7), (300, 5)]) {
        let case = Case::new(spread(integer_gram(order + 30, order, 160, 5)), columns);
        let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
        let x = solve_with(&context(1), Symmetric::lower(&case.matrix), &case.right, BITS, &options).unwrap().result;
        let least = case.least(|ctx| case.solve(ctx));
        for limit in [None, Some(least)] {
            let report = case.solve(&context(2).with_memory_bytes(limit)).unwrap();
            assert!(limit.is_none_or(|limit| report.planned_bytes <= limit));
            assert!(report.bands == 1 || columns > 8);
            case.check(&x, &format!("{order} x {columns}, {limit:?} bytes"));
            let report = case.solve(&context(1)).unwrap();
            assert_eq!((report.bands, report.disk.tiles_found), (0, columns.div_ceil(8)));
            case.check(&x, "again");
            case.forget();
        }
        let refused = case.solve(&context(2).with_memory_bytes(Some(least - 1))).unwrap_err();
        assert!(matches!(refused, Error::MemoryLimit { minimum_bytes, .. } if minimum_bytes == least), "{refused}");
    }
}

#[test]
fn triangles_for_a_few() {
    let kinds = [Uplo::Lower, Uplo::Upper].into_iter().flat_map(|uplo| {
        let ops = [Op::NoTranspose, Op::Transpose].into_iter();
        ops.flat_map(move |op| [Diag::NonUnit, Diag::Unit].map(|diag| (uplo, op, diag)))
    });
    let alpha = Float::with_val(60, -3) / 7u32;
    let shapes = [(0, 3), (1, 2), (15, 1), (16, 9), (17, 3), (128, 1), (129, 4), (300, 7)];
    for (at, (order, columns)) in shapes.into_iter().enumerate() {
        let case = Case::new(triangle(order, 200), columns);
        for (turn, (uplo, op, diag)) in kinds.clone().enumerate() {
            // Every two of uplo, op and diag meet in half of the kinds, which the next shape has not.
            if !in_turn(2, at + turn + turn / 2 + turn / 4).contains(&0) {
                continue;
            }
            let options = TrsmOptions::new().accuracy(Accuracy::Norm).uplo(uplo).op(op).diag(diag).alpha(&alpha);
            let x = trsm_with(&context(1), &case.matrix, &case.right, BITS, &options).unwrap().result;
            let what = format!("{order} x {columns}, {uplo:?} {op:?} {diag:?}");
            let report = case.trsm(&context(2), &options).unwrap();
            assert!(order == 0 || (report.bands, report.disk.tiles_found) == (1, 0), "{what}");
            case.check(&x, &what);
            if order > 0 {
                case.forget();
                let least = case.least(|ctx| case.trsm(ctx, &options));
                for limit in in_turn(2, at + turn / 2).map(|which| [least, least + least / 16][which]) {
                    let report = case.trsm(&context(3).with_memory_bytes(Some(limit)), &options).unwrap();
                    assert!(report.planned_bytes <= limit);
                    case.check(&x, &format!("{what}, {limit} bytes"));
                    case.forget();
                }
            }
        }
    }
}

#[test]
fn a_solve_for_a_few_goes_on() {
    for columns in [2, 4] {
        goes_on(columns);
    }
}

fn goes_on(columns: usize) {
    let case = Case::new(integer_gram(120, 100, 150, 3), columns);
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
    let x = solve_with(&context(1), Symmetric::lower(&case.matrix), &case.right, BITS, &options).unwrap().result;
    let (mut ended, mut factors_found) = (0, 0);
    for steps in (0..4000).step_by(29) {
        let left = Arc::new(AtomicU64::new(steps));
        let goes_on =
            move |_| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        let ctx = Context::builder().threads(2).progress(goes_on).build().unwrap();
        match case.solve(&ctx) {
            Err(Error::Cancelled) => ended += 1,
            Ok(report) => {
                factors_found += usize::from(report.factorisation.is_none());
                break;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(!case.path("x.bin").exists());
    }
    assert!(ended > 0 && factors_found > 0, "{ended} ended");
    case.check(&x, "after the runs that were ended");
}
