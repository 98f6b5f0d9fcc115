//! `L D L^T` without pivoting: exact residuals against the promised bounds, inertia, growth, solves, and every refusal.

use crate::common::oracle::Exact;
use crate::common::solves::{assert_within, dot, power, rows_of, size, symmetric, transposed};
use crate::common::{Kind, Rng, effort, forced, in_turn, kernel_names, matrix};
use rug::Float;
use sunzi::{Context, Error, Inertia, Ldlt, Matrix, Symmetric, ldlt};

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

/// `[H B^T; B -K]` with `H`, `K` well conditioned and positive definite, `B` random; rows and columns are scaled by
/// powers of two up to `2^spread`. Numbers that must not be read stand above the diagonal.
fn quasi_definite((positive, negative): (usize, usize), bits: u32, spread: i64, seed: u64) -> Matrix {
    let order = positive + negative;
    let mut rng = Rng::new(seed);
    let scales: Vec<i32> = (0..order).map(|_| rng.within(spread) as i32).collect();
    let random = matrix(Kind::Unit, order, order, bits, seed + 1);
    let mut a = Matrix::zeros(order, order, bits).unwrap();
    for i in 0..order {
        for j in 0..order {
            let lehmer = Float::with_val(bits, j + 1) / (i + 1) as u32;
            let entry = match (i < positive, j < positive) {
                _ if j > i => Float::with_val(bits, 3),
                (true, _) => lehmer,
                (false, true) => random.float(i, j) >> 6,
                (false, false) => -lehmer,
            };
            a.set_float(i, j, &(entry << (scales[i] + scales[j]))).unwrap();
        }
    }
    a
}

/// `g_i = (|L| |D| |L^T|)_ii`.
fn sizes(factors: &Ldlt) -> Vec<Float> {
    let (rows, pivots) = (rows_of(factors.lower()), rows_of(factors.pivots()));
    let row = |row: &Vec<Exact>| {
        row.iter().zip(&pivots).fold(Float::new(128), |sum, (l, d)| sum + size(l).square() * size(&d[0]))
    };
    rows.iter().map(row).collect()
}

/// Asserts `|A - L D L^T|_ij <= 2^(3 - b) sqrt(g_i g_j)` and the form of the factors.
fn assert_factors(a: &Matrix, factors: &Ldlt, label: &str) -> f64 {
    let (l, bits) = (rows_of(factors.lower()), factors.lower().precision_bits());
    let pivots = transposed(&rows_of(factors.pivots())).pop().unwrap_or_default();
    let (rows, g) = (symmetric(a), sizes(factors));
    let mut worst = 0.0f64;
    for i in 0..l.len() {
        assert_eq!(factors.lower().float(i, i), 1, "{label}");
        assert!((i + 1..l.len()).all(|j| factors.lower().get(i, j).head.is_zero()), "{label}");
        assert!(!factors.pivots().get(i, 0).head.is_zero(), "{label}");
        let scaled: Vec<Exact> = l[i].iter().zip(&pivots).map(|(l, d)| l.times(d)).collect();
        for j in 0..=i {
            let residual = rows[i][j].clone().plus(dot(&scaled, &l[j]).negated());
            let bound = Float::with_val(128, &g[i] * &g[j]).sqrt() * power(3 - bits as i32);
            worst = worst.max(assert_within(&residual, &bound, (i, j), label));
        }
    }
    worst
}

#[test]
fn factors_meet_the_bound_at_every_size() {
    let ctx = context(1);
    for (positive, negative) in [(0, 0), (1, 0), (0, 1), (5, 4), (33, 30), (40, 24), (32, 33), (70, 60), (100, 35)] {
        for (bits, spread) in [(53, 0), (150, 2000)] {
            let label = format!("{positive} + {negative}, {bits} bits, spread {spread}");
            let a = quasi_definite((positive, negative), bits, spread, 3);
            let factors = ldlt(&ctx, Symmetric::lower(&a), bits).unwrap();
            assert_factors(&a, &factors, &label);
            assert_eq!(factors.inertia(), Inertia { positive, negative }, "{label}");
            let signs: Vec<bool> = (0..positive + negative).map(|i| i >= positive).collect();
            assert_eq!(factors.signs(), signs, "{label}");
            let flipped = a.transposed().to_matrix().unwrap();
            let upper = ldlt(&ctx, Symmetric::upper(&flipped), bits).unwrap();
            assert!(upper.lower() == factors.lower() && upper.pivots() == factors.pivots(), "{label}");
        }
    }
}

#[test]
fn the_bound_holds_where_elements_grow() {
    let ctx = context(2);
    for order in [2, 66, 130] {
        // A tiny first pivot makes all that follows large; random symmetric matrices grow by chance.
        let mut a = matrix(Kind::Unit, order, order, 200, 5);
        a.set_float(0, 0, &(Float::with_val(200, 1) >> 70)).unwrap();
        let factors = ldlt(&ctx, Symmetric::lower(&a), 200).unwrap();
        assert_factors(&a, &factors, &format!("order {order}"));
        let g = sizes(&factors);
        let rows = symmetric(&a);
        let largest = rows.iter().flatten().map(size).fold(Float::new(128), |x, y| x.max(&y));
        let want = g.iter().fold(Float::new(128), |x, y| x.max(y)) / largest;
        let ratio = Float::with_val(53, factors.growth() / &want).to_f64();
        assert!((ratio - 1.0).abs() < 1e-12 && *factors.growth() > 1e15, "growth {}", factors.growth());
    }
}

#[test]
fn solutions_meet_the_bound() {
    let ctx = context(1);
    for ((positive, negative), columns) in [((0, 0), 2), ((3, 2), 0), ((1, 0), 1), ((40, 30), 1), ((60, 45), 42)] {
        for (bits, spread) in [(100, 0), (80, 1500)] {
            let a = quasi_definite((positive, negative), bits, spread, 6);
            let b = matrix(Kind::Graded, positive + negative, columns, 90, 7);
            let factors = ldlt(&ctx, Symmetric::lower(&a), bits).unwrap();
            let (rows, g) = (symmetric(&a), sizes(&factors));
            let roots: Vec<Float> = g.into_iter().map(Float::sqrt).collect();
            for (precision_bits, held) in [(bits, bits), (bits / 2, bits / 2), (2 * bits, bits)] {
                let x = factors.solve(&ctx, &b, precision_bits).unwrap();
                let label = format!("{positive} + {negative}, {columns} columns, {precision_bits} bits");
                for (col, (right, x)) in transposed(&rows_of(&b)).iter().zip(&transposed(&rows_of(&x))).enumerate() {
                    let sum = x.iter().zip(&roots).fold(Float::new(128), |sum, (x, root)| sum + size(x) * root);
                    for (row, entries) in rows.iter().enumerate() {
                        let bound = Float::with_val(128, &roots[row] * &sum) + size(&right[row]);
                        let residual = right[row].clone().plus(dot(entries, x).negated());
                        assert_within(&residual, &(bound * power(4 - held as i32)), (row, col), &label);
                    }
                }
            }
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_threads_kernel_or_memory() {
    let (a, bits) = (quasi_definite((90, 60), 120, 300, 8), 120);
    let want = ldlt(&context(1), Symmetric::lower(&a), bits).unwrap();
    for (turn, kernel) in kernel_names().into_iter().enumerate() {
        for threads in [1, 2, 3] {
            // Besides two threads, which have limits, one or three.
            if effort() == 1 && threads != 2 && in_turn(2, turn).contains(&(threads / 2)) {
                continue;
            }
            let mut limits = vec![None];
            if threads == 2 {
                let tiny = forced(kernel, threads).memory_bytes(1).build().unwrap();
                let limit = match ldlt(&tiny, Symmetric::lower(&a), bits) {
                    Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
                    other => panic!("one byte cannot be enough: {other:?}"),
                };
                limits.extend([Some(limit), Some(limit + limit / 4)]);
            }
            for limit in limits {
                let builder = forced(kernel, threads);
                let ctx = limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap();
                let factors = ldlt(&ctx, Symmetric::lower(&a), bits).unwrap();
                let same = factors.lower() == want.lower() && factors.pivots() == want.pivots();
                assert!(same, "{kernel}, {threads} threads, limit {limit:?}");
                assert_eq!(factors.growth(), want.growth());
            }
        }
    }
}

#[test]
fn a_small_factorisation_is_exact() {
    let a = Matrix::from_f64s(2, 2, 60, &[2.0, 6.0, f64::MAX, 1.0]).unwrap();
    let factors = ldlt(&context(1), Symmetric::lower(&a), 60).unwrap();
    assert_eq!(*factors.lower(), Matrix::from_f64s(2, 2, 60, &[1.0, 3.0, 0.0, 1.0]).unwrap());
    assert_eq!(*factors.pivots(), Matrix::from_f64s(2, 1, 60, &[2.0, -17.0]).unwrap());
    assert_eq!(*factors.growth(), Float::with_val(53, 35) / 6u32); // 3 * 2 * 3 + 17 over 6
    let b = Matrix::from_f64s(2, 1, 60, &[8.0, 7.0]).unwrap();
    assert_eq!(factors.solve(&context(1), &b, 60).unwrap(), Matrix::from_f64s(2, 1, 60, &[1.0, 1.0]).unwrap());
}

#[test]
fn refusals_carry_the_numbers() {
    let ctx = context(1);
    let wide = matrix(Kind::Unit, 3, 4, 60, 1);
    assert!(matches!(ldlt(&ctx, &wide, 60), Err(Error::NotSquare { rows: 3, cols: 4, .. })));
    for (order, index) in [(5, 3), (100, 70)] {
        let mut a = quasi_definite((order, 0), 60, 0, 2);
        for k in 0..order {
            let (row, col) = (k.max(index), k.min(index));
            a.set_f64(row, col, 0.0).unwrap();
        }
        match ldlt(&ctx, Symmetric::lower(&a), 60) {
            Err(Error::Singular { index: found }) => assert_eq!(found, index),
            other => panic!("{other:?}"),
        }
    }
    let a = quasi_definite((3, 2), 60, 0, 2);
    for precision_bits in [0, 1, 100_000, u32::MAX] {
        assert!(matches!(ldlt(&ctx, Symmetric::lower(&a), precision_bits), Err(Error::Precision { .. })));
    }
    let factors = ldlt(&ctx, Symmetric::lower(&a), 60).unwrap();
    let b = matrix(Kind::Unit, 4, 1, 60, 1);
    assert!(matches!(factors.solve(&ctx, &b, 60), Err(Error::ShapeMismatch { left_rows: 5, right_rows: 4, .. })));
    let stop = Context::builder().threads(1).progress(|_| false).build().unwrap();
    assert!(matches!(ldlt(&stop, Symmetric::lower(&a), 60), Err(Error::Cancelled)));
    let limit = sunzi::MAXIMUM_EXPONENT;
    let mut far = Matrix::zeros(2, 2, 60).unwrap();
    far.set_integer_exponent(0, 0, &1.into(), 5 - limit).unwrap();
    far.set_integer_exponent(1, 0, &1.into(), limit - 5).unwrap();
    assert!(matches!(ldlt(&ctx, Symmetric::lower(&far), 60), Err(Error::ExponentRange { row: 1, column: 0, .. })));
}
