//! Solves with symmetric positive definite matrices: exact residuals against the promised bounds, inverses, conditions,
//! determinants, refinement, and every refusal.

use crate::common::oracle::Exact;
use crate::common::solves::{assert_within, dot, power, rows_of, size, symmetric, transposed};
use crate::common::{Kind, Rng, effort, forced, in_turn, kernel_names, matrix};
use rug::Float;
use sunzi::estimate::log_det_of;
use sunzi::solve_refined_with;
use sunzi::{Cholesky, Context, Error, Matrix, RefineOptions, SymmetricMatrix, Uplo, cholesky, solve};

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

/// How a positive definite test matrix is made.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Definite {
    /// `min(i, j) / max(i, j)`: well conditioned.
    Lehmer,
    /// `1 / (i + j + 1)`: loses about five bits a row.
    Hilbert,
    /// A Lehmer matrix whose rows and columns are scaled by powers of two far apart.
    Graded,
}

/// A test matrix; the ones above its diagonal are replaced.
fn definite(kind: Definite, order: usize, bits: u32, seed: u64) -> SymmetricMatrix {
    let mut rng = Rng::new(seed);
    let scales: Vec<i32> =
        (0..order).map(|_| if kind == Definite::Graded { rng.within(3000) as i32 } else { 0 }).collect();
    let mut a = Matrix::zeros(order, order, bits).unwrap();
    for i in 0..order {
        for j in 0..order {
            let entry = match kind {
                _ if j > i => Float::with_val(bits, 1),
                Definite::Hilbert => Float::with_val(bits, i + j + 1).recip(),
                _ => Float::with_val(bits, j + 1) / (i + 1) as u32,
            };
            a.set_float(i, j, &(entry << (scales[i] + scales[j]))).unwrap();
        }
    }
    SymmetricMatrix::from_triangle(a, Uplo::Lower).unwrap()
}

/// Asserts `|b - A x|_i <= 2^log2 (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)`.
fn assert_solve_bound((a, b): (&Matrix, &Matrix), x: &Matrix, log2: i32, label: &str) -> f64 {
    let rows = symmetric(a);
    let roots: Vec<Float> = rows.iter().enumerate().map(|(i, row)| size(&row[i]).sqrt()).collect();
    let mut worst = 0.0f64;
    for (col, (right, solution)) in transposed(&rows_of(b)).iter().zip(&transposed(&rows_of(x))).enumerate() {
        let sum = solution.iter().zip(&roots).fold(Float::new(128), |sum, (x, root)| sum + size(x) * root);
        for (row, entries) in rows.iter().enumerate() {
            let bound = (Float::with_val(128, &roots[row] * &sum) + size(&right[row])) * power(log2);
            let residual = right[row].clone().plus(dot(entries, solution).negated());
            worst = worst.max(assert_within(&residual, &bound, (row, col), label));
        }
    }
    worst
}

/// Asserts `|b - A x| <= 2^log2 (|A| |x| + |b|)`, entry by entry.
fn assert_componentwise((a, b): (&Matrix, &Matrix), x: &Matrix, log2: i32, label: &str) {
    let rows = symmetric(a);
    let magnitude = |value: &Exact| Exact { integer: value.integer.clone().abs(), exponent: value.exponent };
    for (col, (right, solution)) in transposed(&rows_of(b)).iter().zip(&transposed(&rows_of(x))).enumerate() {
        let sizes: Vec<Exact> = solution.iter().map(magnitude).collect();
        for (row, entries) in rows.iter().enumerate() {
            let whole = dot(&entries.iter().map(magnitude).collect::<Vec<_>>(), &sizes).plus(magnitude(&right[row]));
            let residual = right[row].clone().plus(dot(entries, solution).negated());
            assert_within(&residual, &(size(&whole) * power(log2)), (row, col), label);
        }
    }
}

#[test]
fn solutions_meet_the_bound_at_every_size() {
    let ctx = context(1);
    for (order, columns) in [(0, 2), (1, 1), (9, 0), (10, 3), (33, 41), (63, 1), (64, 42), (65, 2), (100, 1)] {
        for (kind, bits) in [(Definite::Lehmer, 100), (Definite::Hilbert, 600), (Definite::Graded, 130)] {
            let (a, b) = (definite(kind, order, bits, 1), matrix(Kind::Graded, order, columns, 90, 2));
            let x = solve(&ctx, &a, &b, bits).unwrap();
            let worst = assert_solve_bound((&a, &b), &x, 4 - bits as i32, &format!("{kind:?} {order} x {columns}"));
            assert!(worst < 0.5, "{kind:?} {order} x {columns}: the proof leaves a factor of two: {worst}");
        }
    }
}

#[test]
fn fewer_and_more_bits_than_the_factor_has() {
    let ctx = context(1);
    let (a, b) = (definite(Definite::Graded, 40, 200, 1), matrix(Kind::Unit, 40, 2, 200, 2));
    let factor = cholesky(&ctx, &a, 120).unwrap();
    for (precision_bits, held) in [(53, 53), (120, 120), (300, 120)] {
        let x = factor.solve(&ctx, &b, precision_bits).unwrap();
        assert_eq!(x.precision_bits(), precision_bits);
        assert_solve_bound((&a, &b), &x, 4 - held, &format!("{precision_bits} bits"));
    }
}

#[test]
fn the_bits_do_not_depend_on_threads_kernel_or_memory() {
    let (order, bits) = (70, 110);
    let a = definite(Definite::Graded, order, bits, 1);
    let factor = cholesky(&context(1), &a, bits).unwrap();
    let options = RefineOptions::new().factor_bits(40);
    for columns in [1, 50] {
        let b = matrix(Kind::Unit, order, columns, bits, 2);
        let want = factor.solve(&context(1), &b, bits).unwrap();
        let refined = solve_refined_with(&context(1), &a, &b, bits, &options).unwrap();
        let inverse = factor.inverse(&context(1), bits).unwrap();
        for (turn, kernel) in kernel_names().into_iter().enumerate() {
            // With each number of right sides two of the three numbers of threads.
            for threads in [1, 2, 3] {
                if effort() == 1 && threads != 2 && in_turn(2, turn + columns / 50).contains(&(threads / 2)) {
                    continue;
                }
                let ctx = forced(kernel, threads).build().unwrap();
                let label = format!("{kernel}, {threads} threads, {columns} columns");
                assert!(factor.solve(&ctx, &b, bits).unwrap() == want, "{label}");
                assert!(factor.inverse(&ctx, bits).unwrap() == inverse, "{label}: inverse");
                let other = solve_refined_with(&ctx, &a, &b, bits, &options).unwrap();
                assert!(other.result == refined.result, "{label}: refined");
                assert_eq!(other.report.backward_error_log2, refined.report.backward_error_log2, "{label}");
                if threads == 2 {
                    same_bits_under_the_least_limit(kernel, &|ctx| factor.solve(ctx, &b, bits), &want);
                    same_bits_under_the_least_limit(
                        kernel,
                        &|ctx| Ok(factor.inverse(ctx, bits)?.into_matrix()),
                        &inverse,
                    );
                }
            }
        }
    }
}

fn same_bits_under_the_least_limit(kernel: &str, run: &dyn Fn(&Context) -> sunzi::Result<Matrix>, want: &Matrix) {
    let limited = |limit| forced(kernel, 2).memory_bytes(limit).build().unwrap();
    let least = match run(&limited(1)) {
        Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
        other => panic!("one byte cannot be enough: {other:?}"),
    };
    for limit in [least, 2 * least] {
        assert!(run(&limited(limit)).unwrap() == *want, "{kernel}, limit {limit}");
    }
}

/// `(L L^T)^-1`, to so many bits.
fn reference_inverse(factor: &Matrix, bits: u32) -> Vec<Vec<Float>> {
    let order = factor.rows();
    let mut v = vec![vec![Float::new(bits); order]; order]; // v[column][row] of L^-1
    for (j, column) in v.iter_mut().enumerate() {
        for i in j..order {
            let mut sum = Float::with_val(bits, u32::from(i == j));
            for (k, entry) in column.iter().enumerate().take(i).skip(j) {
                sum -= Float::with_val(bits, entry * &factor.float(i, k));
            }
            column[i] = sum / factor.float(i, i);
        }
    }
    let dot = |x: &[Float], y: &[Float]| {
        x.iter().zip(y).fold(Float::new(bits), |sum, (x, y)| sum + Float::with_val(bits, x * y))
    };
    v.iter().map(|x| v.iter().map(|y| dot(x, y)).collect()).collect()
}

#[test]
fn inverses_are_symmetric_and_right_whatever_the_condition() {
    let ctx = context(1);
    for (kind, order, bits) in [
        (Definite::Lehmer, 1, 60),
        (Definite::Graded, 30, 90),
        (Definite::Hilbert, 40, 500),
        (Definite::Lehmer, 100, 64),
    ] {
        let factor = cholesky(&ctx, &definite(kind, order, bits, 3), bits).unwrap();
        for precision_bits in [bits, bits / 2] {
            let inverse = factor.inverse(&ctx, precision_bits).unwrap();
            let want = reference_inverse(factor.factor(), 4 * bits + 200);
            let unit = power(2 - precision_bits as i32);
            for i in 0..order {
                for j in 0..order {
                    assert!(inverse.get(i, j) == inverse.get(j, i), "{kind:?} at ({i}, {j})");
                    let error = Float::with_val(100, inverse.float(i, j) - &want[i][j]).abs();
                    let bound = Float::with_val(100, &want[i][i] * &want[j][j]).sqrt() * &unit;
                    assert!(error <= bound, "{kind:?} {order}: {error:.3e} above {bound:.3e} at ({i}, {j})");
                }
            }
        }
    }
    assert_eq!(cholesky(&ctx, &Matrix::zeros(0, 0, 60).unwrap(), 60).unwrap().inverse(&ctx, 60).unwrap().rows(), 0);
}

#[test]
fn conditions_are_lower_bounds_within_a_factor_of_three() {
    let ctx = context(1);
    for (kind, order, bits) in [(Definite::Lehmer, 1, 60), (Definite::Lehmer, 50, 80), (Definite::Hilbert, 25, 400)] {
        let a = definite(kind, order, bits, 3);
        let factor = cholesky(&ctx, &a, bits).unwrap();
        let norm = |rows: &dyn Fn(usize, usize) -> Float| {
            let sum = |j: usize| (0..order).fold(Float::new(100), |sum, i| sum + rows(i, j).abs());
            (0..order).map(sum).fold(Float::new(100), |largest, sum| largest.max(&sum))
        };
        let one_norm = norm(&|i, j| a.float(i.max(j), i.min(j)));
        let inverse = reference_inverse(factor.factor(), 4 * bits);
        let want = norm(&|i, j| inverse[i][j].clone()) * &one_norm;
        let estimate = factor.condition_estimate(&ctx, &one_norm).unwrap();
        let ratio = Float::with_val(53, &estimate / &want).to_f64();
        assert!((0.33..1.0 + 1e-9).contains(&ratio), "{kind:?} {order}: {estimate:.4e}, condition {want:.4e}");
        assert_eq!(estimate, factor.condition_estimate(&context(3), &one_norm).unwrap());
    }
    let empty = cholesky(&ctx, &Matrix::zeros(0, 0, 60).unwrap(), 60).unwrap();
    assert_eq!(empty.condition_estimate(&ctx, &Float::with_val(53, 1)).unwrap(), 0);
}

#[test]
fn determinants_are_right_where_exponents_are_huge() {
    let (ctx, bits) = (context(1), 200);
    for (kind, order) in [(Definite::Lehmer, 30), (Definite::Hilbert, 20), (Definite::Graded, 50)] {
        let factor = cholesky(&ctx, &definite(kind, order, bits, 3), bits).unwrap();
        let wide = 3 * bits;
        let terms = (0..order).map(|i| Float::with_val(wide, factor.factor().float(i, i)).ln());
        let want = terms.fold(Float::new(wide), |sum, term| sum + term) * 2u32;
        let error = Float::with_val(53, factor.log_det() - &want).abs();
        let bound = Float::with_val(53, want.abs_ref()) * power(2 - bits as i32);
        assert!(error <= bound, "{kind:?}: {error:.3e} above {bound:.3e}");
        // At a precision of its own, from the factor or from its diagonal alone.
        let longer = log_det_of(factor.factor(), 500);
        let error = Float::with_val(53, &longer - &want).abs();
        let bound = Float::with_val(53, want.abs_ref()) * power(2 - 500);
        assert!(longer.prec() == 500 && error <= bound, "{kind:?}: {error:.3e} above {bound:.3e}");
        let entries = (0..order).map(|i| factor.factor().float(i, i)).collect::<Vec<_>>();
        let column = Matrix::from_floats(order, 1, bits, &entries).unwrap();
        assert_eq!(log_det_of(&column, 500), longer);
    }
    assert_eq!(log_det_of(&Matrix::zeros(0, 0, 60).unwrap(), 60), 0);
}

#[test]
fn refinement_reaches_full_precision_from_few_bits() {
    let ctx = context(1);
    for (kind, order, columns, precision_bits) in [
        (Definite::Lehmer, 60, 2, 400),
        (Definite::Hilbert, 8, 3, 300),
        (Definite::Graded, 30, 1, 256),
        (Definite::Graded, 70, 45, 200),
        (Definite::Lehmer, 1, 1, 100),
    ] {
        let (a, b) = (definite(kind, order, precision_bits, 4), matrix(Kind::Graded, order, columns, 100, 5));
        for factor_bits in [53, 128, precision_bits / 2] {
            let options = RefineOptions::new().factor_bits(factor_bits);
            let label = format!("{kind:?} {order} x {columns} from {factor_bits} bits");
            let refined = solve_refined_with(&ctx, &a, &b, precision_bits, &options).unwrap();
            assert_eq!(refined.result.precision_bits(), precision_bits);
            assert!(refined.report.backward_error_log2 <= 1 - i64::from(precision_bits), "{label}");
            assert_componentwise((&a, &b), &refined.result, refined.report.backward_error_log2 as i32, &label);
            let gains = (precision_bits / (factor_bits / 2)) as usize + 2;
            assert!(
                (1..=gains).contains(&refined.report.iterations),
                "{label}: {} corrections",
                refined.report.iterations
            );
        }
    }
}

#[test]
fn zeros_are_refined_to_zeros() {
    let ctx = context(1);
    let a = definite(Definite::Lehmer, 12, 90, 1);
    let refined =
        solve_refined_with(&ctx, &a, &Matrix::zeros(12, 2, 90).unwrap(), 90, &RefineOptions::default()).unwrap();
    assert_eq!(refined.result, Matrix::zeros(12, 2, 90).unwrap());
    assert_eq!(refined.report.backward_error_log2, i64::MIN);
    for (order, columns) in [(0, 3), (4, 0)] {
        let (a, b) = (definite(Definite::Lehmer, order, 90, 1), Matrix::zeros(order, columns, 90).unwrap());
        let refined = solve_refined_with(&ctx, &a, &b, 90, &RefineOptions::default()).unwrap();
        assert_eq!((refined.result.rows(), refined.result.cols(), refined.report.iterations), (order, columns, 0));
    }
}

/// `1 - 2^-60` beside the diagonal is rounded to 1 in a factor of 40 bits, which then sees a last pivot of `2^-61`
/// where the true one is five times that: every correction is five times too long.
fn misleading() -> SymmetricMatrix {
    let mut a = Matrix::zeros(2, 2, 200).unwrap();
    let one = Float::with_val(200, 1);
    a.set_float(0, 0, &one).unwrap();
    a.set_float(1, 0, &(one.clone() - (one.clone() >> 60))).unwrap();
    a.set_float(1, 1, &(one.clone() + (one.clone() >> 61))).unwrap();
    SymmetricMatrix::from_triangle(a, Uplo::Lower).unwrap()
}

#[test]
fn refinement_that_does_not_converge_says_how_far_it_came() {
    let (ctx, a) = (context(1), misleading());
    let b = Matrix::from_f64s(2, 1, 53, &[1.0, -1.0]).unwrap();
    let options = RefineOptions::new().factor_bits(40).max_iterations(100);
    match solve_refined_with(&ctx, &a, &b, 150, &options) {
        Err(Error::RefinementStalls { iterations, reached_log2, wanted_log2: -149, factor_bits: 40 }) => {
            assert!(iterations < 10 && reached_log2 > -149, "{iterations} corrections, 2^{reached_log2}");
        }
        other => panic!("{other:?}"),
    }
    let wide = options.factor_bits(70);
    let refined = solve_refined_with(&ctx, &a, &b, 150, &wide).unwrap();
    assert_componentwise((&a, &b), &refined.result, -149, "70 bits are enough");
    let none = wide.max_iterations(0);
    assert!(matches!(
        solve_refined_with(&ctx, &a, &b, 150, &none),
        Err(Error::RefinementStalls { iterations: 0, reached_log2: 0, .. })
    ));
}

#[test]
fn refusals_carry_the_numbers() {
    let ctx = context(1);
    let (a, b) = (definite(Definite::Hilbert, 30, 300, 1), matrix(Kind::Unit, 30, 1, 60, 2));
    let few = RefineOptions::new().factor_bits(30);
    assert!(matches!(solve_refined_with(&ctx, &a, &b, 100, &few), Err(Error::NotPositiveDefinite { .. })));
    let none = few.factor_bits(1);
    assert!(matches!(solve_refined_with(&ctx, &a, &b, 100, &none), Err(Error::Precision { precision_bits: 1, .. })));
    assert!(matches!(solve_refined_with(&ctx, &a, &b, 1, &few), Err(Error::Precision { precision_bits: 1, .. })));
    assert!(matches!(solve_refined_with(&ctx, &a, &b, u32::MAX, &few), Err(Error::Precision { .. })));
    let short = matrix(Kind::Unit, 29, 1, 60, 2);
    for result in
        [solve(&ctx, &a, &short, 300).map(|_| ()), solve_refined_with(&ctx, &a, &short, 300, &few).map(|_| ())]
    {
        assert!(matches!(result, Err(Error::ShapeMismatch { left_rows: 30, right_rows: 29, .. })));
    }
    let factor = Cholesky::from_factor(Matrix::from_f64s(1, 1, 60, &[2.0]).unwrap()).unwrap();
    assert!(matches!(factor.solve(&ctx, &b, 60), Err(Error::ShapeMismatch { left_rows: 1, right_rows: 30, .. })));
    assert!(matches!(factor.inverse(&ctx, 100_000), Err(Error::Precision { .. })));
    assert!(matches!(factor.solve(&ctx, &Matrix::zeros(1, 1, 60).unwrap(), 1), Err(Error::Precision { .. })));
    let stop = Context::builder().threads(1).progress(|_| false).build().unwrap();
    let one = Matrix::from_f64s(1, 1, 60, &[2.0]).unwrap();
    assert!(matches!(factor.solve(&stop, &one, 60), Err(Error::Cancelled)));
}
