//! Fewer than eight right sides.

use super::*;

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
    for (order, columns) in [(1, 1), (15, 3), (17, 1), (128, 2), (129, 1), (300, 3)] {
        let case = Case::new(spread(integer_gram(order + 30, order, 160, 5)), columns);
        let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
        let x = solve_with(&context(1), Symmetric::lower(&case.matrix), &case.right, BITS, &options).unwrap().result;
        let least = case.least(|ctx| case.solve(ctx));
        for limit in [None, Some(least)] {
            let report = case.solve(&context(2).with_memory_bytes(limit)).unwrap();
            assert!(limit.is_none_or(|limit| report.planned_bytes <= limit));
            assert_eq!((report.bands, report.band_columns), (1, columns));
            case.check(&x, &format!("{order} x {columns}, {limit:?} bytes"));
            let report = case.solve(&context(1)).unwrap();
            assert_eq!((report.bands, report.disk.tiles_found), (0, 1));
            case.check(&x, "again");
            case.forget();
        }
        let refused = case.solve(&context(2).with_memory_bytes(Some(least - 1))).unwrap_err();
        assert!(matches!(refused, Error::MemoryLimit { minimum_bytes, .. } if minimum_bytes == least), "{refused}");
    }
}

#[test]
fn a_solve_for_a_few_goes_on() {
    let case = Case::new(integer_gram(120, 100, 150, 3), 2);
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
