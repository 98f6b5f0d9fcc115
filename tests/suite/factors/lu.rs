//! LU with partial pivoting: exact residuals against the promised bounds, pivots, determinants, solves, and one result
//! on every kernel and number of threads.

use crate::common::oracle::Exact;
use crate::common::solves::{Rows, assert_within, dot, power, rows_of, size, transposed};
use crate::common::{Kind, effort, forced, in_turn, kernel_names, matrix};
use rug::{Float, Integer, Rational};
use sunzi::{Accuracy, Context, Error, Lu, LuOptions, Matrix, lu, lu_into, lu_with};

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

/// Rows scaled by powers of two up to `2^spread` in turn, so that every row has its own size.
fn with_rows_scaled(mut a: Matrix, spread: u32) -> Matrix {
    let order = a.rows();
    for (row, col) in (0..order).flat_map(|row| (0..order).map(move |col| (row, col))) {
        let scaled = a.float(row, col) >> (row as u32 * 37 % (spread + 1));
        a.set_float(row, col, &scaled).unwrap();
    }
    a
}

/// Matrices of several kinds: the names, and the entries.
fn matrices(order: usize, bits: u32) -> Vec<(&'static str, Matrix)> {
    let reciprocal = |row: usize, col: usize| Float::with_val(bits, 1) / (row + col + 1) as u32;
    let power = |row: usize, col: usize| {
        let point = Float::with_val(bits, row + 1) / (order + 1) as u32;
        (0..col).fold(Float::with_val(bits, 1), |power, _| power * &point)
    };
    let frank = |row: usize, col: usize| {
        let value = if col + 1 < row { 0 } else { order - row.max(col) };
        Float::with_val(bits, value)
    };
    let permuted = |row: usize, col: usize| {
        let place = (row * 3 + 1) % order.max(1);
        Float::with_val(bits, if col <= place { i64::from((col * 5 + place) as i32 % 7) - 3 } else { 0 })
    };
    let from = |of: &dyn Fn(usize, usize) -> Float| Matrix::from_fn(order, order, bits, of).unwrap();
    vec![
        ("uniform", matrix(Kind::Unit, order, order, bits, 3)),
        ("graded", matrix(Kind::Graded, order, order, bits, 4)),
        ("rows of many sizes", with_rows_scaled(matrix(Kind::Unit, order, order, bits, 5), 60)),
        ("Hilbert", from(&reciprocal)),
        ("Vandermonde", from(&power)),
        ("Frank", from(&frank)),
        ("permuted triangle", from(&permuted)),
    ]
}

/// `P A`.
fn in_order(a: &Rows, factors: &Lu) -> Rows {
    factors.rows().iter().map(|&row| a[row].clone()).collect()
}

/// `(|L| |U|)_ij`.
fn sizes(lower: &Rows, upper: &Rows) -> Vec<Vec<Float>> {
    let columns = transposed(upper);
    let sum =
        |row: &[Exact], col: &[Exact]| row.iter().zip(col).fold(Float::new(128), |sum, (l, u)| sum + size(l) * size(u));
    lower.iter().map(|row| columns.iter().map(|col| sum(row, col)).collect()).collect()
}

/// Asserts the form of the factors, the choice of the pivots, and the bound of every entry of `P A - L U`.
fn assert_factors(a: &Matrix, factors: &Lu, accuracy: Accuracy, label: &str) {
    let (order, bits) = (a.rows(), factors.factors().precision_bits());
    let (lower, upper) = (rows_of(&factors.lower().unwrap()), rows_of(&factors.upper().unwrap()));
    let mut rows = factors.rows().to_vec();
    rows.sort_unstable();
    assert!(rows.into_iter().eq(0..order), "{label}: an order of all rows");
    let (a, columns, sizes) = (in_order(&rows_of(a), factors), transposed(&upper), sizes(&lower, &upper));
    for row in 0..order {
        for col in 0..order {
            // Rounding a pivot may make it smaller than a candidate; a pivot that is itself an error of rounding much.
            let tiny = if label.starts_with("permuted") { -1 } else { 1 - bits as i32 };
            let most = Float::with_val(128, 1) + power(tiny);
            let scaled = label.starts_with("graded") || label.starts_with("rows of many sizes");
            assert!(scaled || size(&lower[row][col]) <= most, "{label}: no entry of L above 1");
            let residual = a[row][col].clone().plus(dot(&lower[row], &columns[col]).negated());
            let column =
                a.iter().map(|row| size(&row[col])).fold(size(&upper[col][col]), |most, entry| most.max(&entry));
            let more = if accuracy == Accuracy::Norm { column } else { Float::new(128) };
            let bound = (sizes[row][col].clone() + more) * power(2 - bits as i32);
            assert_within(&residual, &bound, (row, col), label);
        }
    }
}

#[test]
fn factors_meet_the_bounds() {
    let ctx = context(1);
    for (turn, order) in [1, 2, 5, 9, 24, 25, 41, 70].into_iter().enumerate() {
        for (bits, accuracy) in [(53, Accuracy::Entrywise), (200, Accuracy::Entrywise), (130, Accuracy::Norm)] {
            let all = matrices(order, bits);
            let wanted = if order < 30 || effort() > 1 { 0..all.len() } else { in_turn(all.len(), turn) };
            for (kind, a) in &all[wanted] {
                let label = format!("{kind}, {order} rows, {bits} bits, {accuracy:?}");
                match lu_with(&ctx, a, bits, &LuOptions::new().accuracy(accuracy)) {
                    Ok(made) => {
                        assert_eq!(made.report.accuracy, accuracy, "{label}");
                        assert_factors(a, &made.result, accuracy, &label);
                    }
                    // Too ill conditioned for so few bits, or exactly singular.
                    Err(Error::NoPivot { .. }) => {
                        assert!(["Hilbert", "Vandermonde", "permuted triangle"].contains(kind))
                    }
                    Err(error) => panic!("{label}: {error}"),
                }
            }
        }
    }
}

#[test]
fn every_kernel_and_number_of_threads_has_the_same_bits() {
    for (order, bits) in [(20, 100), (57, 300), (130, 120)] {
        let a = matrix(Kind::Graded, order, order, bits, 8);
        let want = lu(&context(1), &a, bits).unwrap();
        for (turn, kernel) in kernel_names().into_iter().enumerate() {
            let ctx = forced(kernel, 1 + turn % 3).build().unwrap();
            let got = lu(&ctx, &a, bits).unwrap();
            assert!(got.rows() == want.rows() && got.factors() == want.factors(), "{kernel}, {order} rows");
        }
        let limited = context(2).with_memory_bytes(Some(64 << 20));
        assert!(lu(&limited, &a, bits).unwrap().factors() == want.factors(), "{order} rows");
    }
}

/// Memory of other factors, of the same shape or not, changes no bit; after an error it holds the factors of nothing.
#[test]
fn factors_lie_in_the_memory_of_earlier_ones() {
    let ctx = context(2);
    let mut factors = Lu::default();
    for (order, bits, kind) in [
        (40, 200, Kind::Unit),
        (40, 200, Kind::Graded),
        (40, 200, Kind::Doubles),
        (12, 200, Kind::Unit),
        (40, 300, Kind::Unit),
    ] {
        let a = matrix(kind, order, order, bits, 8);
        let report = lu_into(&ctx, &a, bits, &LuOptions::new(), &mut factors).unwrap();
        let want = lu(&ctx, &a, bits).unwrap();
        assert!(factors.rows() == want.rows() && factors.factors() == want.factors(), "{order} rows");
        assert_eq!((report.order, factors.order()), (order, order));
    }
    let singular = Matrix::from_f64s(2, 2, 64, &[1.0, 2.0, 2.0, 4.0]).unwrap();
    let error = lu_into(&ctx, &singular, 64, &LuOptions::new(), &mut factors).unwrap_err();
    assert!(matches!(error, Error::NoPivot { index: 1, .. }) && factors.order() == 0, "{error}");
}

/// The determinant of exact rows by fractions.
fn determinant(mut rows: Vec<Vec<Rational>>) -> Rational {
    let mut det = Rational::from(1);
    for col in 0..rows.len() {
        let Some(pivot) = (col..rows.len()).find(|&row| rows[row][col] != 0) else { return Rational::new() };
        if pivot != col {
            rows.swap(pivot, col);
            det = -det;
        }
        let (above, below) = rows.split_at_mut(col + 1);
        let own = &above[col];
        det *= &own[col];
        for row in below {
            let factor = Rational::from(&row[col] / &own[col]);
            row.iter_mut().zip(own).for_each(|(entry, own)| *entry -= Rational::from(&factor * own));
        }
    }
    det
}

#[test]
fn determinants_have_the_sign_of_the_permutation() {
    let ctx = context(1);
    let mut negative = 0;
    for seed in 0..40 {
        let order = 1 + seed as usize % 9;
        let a = matrix(Kind::Unit, order, order, 60, 900 + seed);
        let fraction = |entry: Exact| Rational::from(entry.integer) << entry.exponent as i32;
        let rows = rows_of(&a).into_iter().map(|row| row.into_iter().map(fraction).collect()).collect();
        let exact = Float::with_val(400, determinant(rows));
        let got = lu(&ctx, &a, 300).unwrap().det().unwrap();
        let error = Float::with_val(53, (Float::with_val(400, &got) - &exact).abs() / exact.clone().abs());
        assert!(error < 1e-70, "seed {seed}: {got} for {exact}");
        negative += u32::from(exact < 0);
    }
    assert!((8..32).contains(&negative), "both signs occur: {negative}");
    assert_eq!(lu(&ctx, &Matrix::zeros(0, 0, 80).unwrap(), 80).unwrap().det().unwrap(), 1);
}

#[test]
fn solutions_meet_the_bound() {
    let ctx = context(1);
    for (order, columns) in [(0, 2), (1, 1), (3, 0), (30, 1), (30, 7), (65, 40)] {
        for (bits, precision_bits) in [(100, 100), (160, 90), (90, 200)] {
            let a = with_rows_scaled(matrix(Kind::Unit, order, order, 100, 11), 20);
            let b = matrix(Kind::Graded, order, columns, 80, 12);
            let factors = lu(&ctx, &a, bits).unwrap();
            let held = bits.min(precision_bits) as i32;
            let (lower, upper) = (rows_of(&factors.lower().unwrap()), rows_of(&factors.upper().unwrap()));
            let sizes = sizes(&lower, &upper);
            let (plain, places) = (rows_of(&a), factors.rows());
            let x = factors.solve(&ctx, &b, precision_bits).unwrap();
            let z = factors.solve_transposed(&ctx, &b, precision_bits).unwrap();
            assert_eq!((x.rows(), x.cols(), x.precision_bits()), (order, columns, precision_bits));
            for (transpose, solution) in [(false, &x), (true, &z)] {
                let rows = if transpose { transposed(&plain) } else { plain.clone() };
                let solved = transposed(&rows_of(solution)).into_iter().zip(transposed(&rows_of(&b)));
                for (col, (x, right)) in solved.enumerate() {
                    for (place, &row) in places.iter().enumerate() {
                        // Row `place` of P A, or column `place` of U^T L^T P.
                        let (row, terms) = match transpose {
                            false => {
                                (row, (0..order).map(|k| sizes[place][k].clone() * size(&x[k])).collect::<Vec<_>>())
                            }
                            true => {
                                (place, (0..order).map(|k| sizes[k][place].clone() * size(&x[places[k]])).collect())
                            }
                        };
                        let bound = terms.into_iter().fold(Float::new(128), |sum, term| sum + term);
                        let residual = right[row].clone().plus(dot(&rows[row], &x).negated());
                        let label = format!("{order} x {columns}, {bits} bits, transposed: {transpose}");
                        assert_within(&residual, &(bound * power(4 - held)), (row, col), &label);
                    }
                }
            }
        }
    }
}

#[test]
fn inverses_are_those_of_small_integer_matrices() {
    let ctx = context(1);
    // A triangle of ones times its transpose in another order: the inverse has integers.
    let order = 30;
    let entry = |row: usize, col: usize| Float::with_val(64, 1 + row.min(order - 1 - col));
    let a = Matrix::from_fn(order, order, 64, entry).unwrap();
    let inverse = lu(&ctx, &a, 120).unwrap().inverse(&ctx, 120).unwrap();
    let product = sunzi::gemm(&ctx, &a, &inverse, 120).unwrap();
    let identity = Matrix::identity(order, 120).unwrap();
    let difference =
        product.view().to_f64s().iter().zip(identity.view().to_f64s()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(difference < 1e-30, "{difference}");
    let nearest = |value: &Float| Float::with_val(120, value - value.clone().round()).abs() < 1e-30;
    assert!(inverse.view().to_floats().iter().all(nearest));
    assert!(inverse.view().to_floats().iter().any(|value| *value < -0.5));
}

#[test]
fn limits_shapes_and_precisions_are_refused_with_their_numbers() {
    let ctx = context(1);
    let a = matrix(Kind::Unit, 90, 90, 200, 3);
    let least = match lu(&ctx.with_memory_bytes(Some(10_000)), &a, 200) {
        Err(Error::MemoryLimit { minimum_bytes, limit_bytes }) => {
            assert_eq!(limit_bytes, 10_000);
            minimum_bytes
        }
        other => panic!("{:?}", other.map(|factors| factors.order())),
    };
    assert!(lu(&ctx.with_memory_bytes(Some(least - 1)), &a, 200).is_err());
    assert!(
        lu(&ctx.with_memory_bytes(Some(least)), &a, 200).unwrap().factors() == lu(&ctx, &a, 200).unwrap().factors()
    );
    let b = matrix(Kind::Unit, 89, 1, 200, 3);
    assert!(matches!(lu(&ctx, &a, 200).unwrap().solve(&ctx, &b, 200), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(lu(&ctx, &b, 200), Err(Error::NotSquare { operation: "lu", rows: 89, cols: 1 })));
    let cancelled = ctx.with_progress(|_| false);
    assert!(matches!(lu(&cancelled, &a, 200), Err(Error::Cancelled)));
    // The largest precision works, and one bit more is refused with it.
    let small = Matrix::from_f64s(2, 2, 64, &[1.0, 4.0, 2.0, 4.0]).unwrap();
    let Err(Error::Precision { maximum_bits, .. }) = lu(&ctx, &small, 1 << 20) else { panic!("refused") };
    let most = maximum_bits as u32;
    assert_eq!(lu(&ctx, &small, most).unwrap().det().unwrap(), Integer::from(-4));
    assert!(
        matches!(lu(&ctx, &small, most + 1), Err(Error::Precision { maximum_bits: same, .. }) if same == maximum_bits)
    );
}
