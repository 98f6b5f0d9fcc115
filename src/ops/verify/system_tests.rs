//! Solutions that the operations give pass; changed ones pass if and only if an oracle in many bits finds them within
//! the bounds.

use super::*;
use crate::ops::{Accuracy, CholeskyOptions, RefineOptions, inverse, solve_refined_with, solve_with, trsm_with};
use rug::Integer;
use rug::rand::RandState;

const BITS: u32 = 130;
/// Bits of the oracle, enough for all sums here.
const MANY: u32 = 4000;

fn random(seed: u32) -> RandState<'static> {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    rng
}

fn context() -> Context {
    Context::builder().threads(2).build().unwrap()
}

fn seeded() -> VerifyOptions {
    VerifyOptions { seed: Some(5), sample_count: 10_000, ..VerifyOptions::default() }
}

/// Random entries, row `i` times `2^(scales_i)`.
fn matrix(rng: &mut RandState<'_>, cols: usize, scales: &[i64]) -> Matrix {
    let mut matrix = Matrix::zeros(scales.len(), cols, BITS).unwrap();
    for col in 0..cols {
        for (row, scale) in scales.iter().enumerate() {
            let integer = Integer::from(Integer::random_bits(60, rng)) - (Integer::from(1) << 59);
            matrix.set_integer_exponent(row, col, &integer, scale - 60).unwrap();
        }
    }
    matrix
}

/// A Gram matrix and a bit more on its diagonal, rows and columns times powers of two.
fn definite(rng: &mut RandState<'_>, scales: &[i64]) -> Matrix {
    let n = scales.len();
    let p = matrix(rng, n, &vec![0; n]);
    let mut a = Matrix::zeros(n, n, BITS).unwrap();
    for i in 0..n {
        for j in 0..n {
            let start = Float::with_val(MANY, if i == j { 0.01 } else { 0.0 });
            let sum = (0..n).fold(start, |sum, k| sum + p.float(k, i) * Float::with_val(MANY, p.float(k, j)));
            a.set_float(i, j, &(sum << (scales[i] + scales[j]) as i32)).unwrap();
        }
    }
    a
}

fn wide(value: Float) -> Float {
    Float::with_val(MANY, value)
}

/// The claim that `A X = C`.
struct Equation<'a> {
    a: &'a Matrix,
    x: &'a Matrix,
    c: &'a Matrix,
}

/// `|C - A X|_ij` over `2^(power - bits)` times the entry of `bound`.
fn ratios(system: &Equation<'_>, power: i32, bound: impl Fn(usize, usize) -> Float) -> Vec<((usize, usize), f64)> {
    let Equation { a, x, c } = *system;
    let mut found = Vec::new();
    for j in 0..c.cols() {
        for i in 0..c.rows() {
            let image = (0..a.cols()).fold(Float::new(MANY), |sum, k| sum + wide(a.float(i, k)) * x.float(k, j));
            let error = (wide(c.float(i, j)) - image).abs();
            let unit = bound(i, j) << (power - BITS as i32);
            found.push(((i, j), if error == 0 { 0.0 } else { (error / unit).to_f64() }));
        }
    }
    found
}

/// Whether the verdict and the worst entry are those of the oracle.
fn compare(found: Result<Verification>, ratios: &[((usize, usize), f64)], what: &str) {
    let worst = ratios.iter().fold(0.0, |worst, (_, ratio)| f64::max(worst, *ratio));
    match found {
        Ok(found) => {
            assert!(
                worst < 1.0 + 1e-9 && (found.worst_entry - worst).abs() <= 1e-9 * worst,
                "{what}: {worst} {found:?}"
            );
        }
        Err(Error::Verification(text)) => assert!(worst > 1.0 - 1e-9, "{what}: {worst} {text}"),
        Err(other) => panic!("{what}: {other}"),
    }
}

fn root(a: &Matrix, i: usize) -> Float {
    wide(a.float(i, i)).sqrt()
}

fn solve_ratios(a: &Matrix, b: &Matrix, x: &Matrix) -> Vec<((usize, usize), f64)> {
    ratios(&Equation { a, x, c: b }, 4, |i, j| {
        let sum = (0..a.rows()).fold(Float::new(MANY), |sum, k| sum + root(a, k) * wide(x.float(k, j)).abs());
        root(a, i) * sum + wide(b.float(i, j)).abs()
    })
}

/// The matrix with entry `(i, j)` off by a relative `2^power`.
fn changed(x: &Matrix, (i, j): (usize, usize), power: i32) -> Matrix {
    let mut exact = Matrix::zeros(x.rows(), x.cols(), 1000).unwrap();
    for col in 0..x.cols() {
        for row in 0..x.rows() {
            let value = Float::with_val(1000, x.float(row, col));
            let off = if (row, col) == (i, j) { Float::with_val(1000, &value >> -power) } else { Float::new(1000) };
            exact.set_float(row, col, &(value + off)).unwrap();
        }
    }
    exact
}

#[test]
fn solutions_are_judged_as_an_oracle_does() {
    let ctx = context();
    for (seed, n, m, spread) in [(1, 1, 1, 0), (2, 5, 1, 0), (3, 12, 3, 40), (4, 9, 7, 300)] {
        let mut rng = random(seed);
        let scales = (0..n).map(|_| i64::from(rng.below(2 * spread + 1)) - i64::from(spread)).collect::<Vec<_>>();
        let a = definite(&mut rng, &scales);
        let b = matrix(&mut rng, m, &scales);
        for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
            let options = CholeskyOptions::new().accuracy(accuracy);
            let x = solve_with(&ctx, &a, &b, BITS, &options).unwrap().result;
            compare(verify_solve(&ctx, (&a, &b), &x, BITS, &seeded()), &solve_ratios(&a, &b, &x), "right");
            for power in [-150, -131, -128, -126, -124, -120, -60, 3] {
                let wrong = changed(&x, (n / 2, m - 1), power);
                let found = verify_solve(&ctx, (Symmetric::lower(&a), &b), &wrong, BITS, &seeded());
                compare(found, &solve_ratios(&a, &b, &wrong), &format!("{n} x {m}, 2^{power}"));
            }
        }
        let refined = solve_refined_with(&ctx, &a, &b, BITS, &RefineOptions::new().factor_bits(90)).unwrap().result;
        verify_solve(&ctx, (&a, &b), &refined, BITS, &seeded()).unwrap();
    }
}

#[test]
fn triangular_solutions_of_every_form_are_judged_as_an_oracle_does() {
    let (ctx, mut rng) = (context(), random(9));
    let alpha = Float::with_val(70, -3) / 7;
    for case in 0..32 {
        let side = if case & 1 == 0 { Side::Left } else { Side::Right };
        let uplo = if case & 2 == 0 { Uplo::Lower } else { Uplo::Upper };
        let op = if case & 4 == 0 { Op::NoTranspose } else { Op::Transpose };
        let diag = if case & 8 == 0 { Diag::NonUnit } else { Diag::Unit };
        let alpha = (case & 16 == 0).then_some(&alpha);
        let (n, m) = (7, 3);
        let t = matrix(&mut rng, n, &[0, 3, -5, 30, 0, 0, -40]);
        let b = if side == Side::Left { matrix(&mut rng, m, &vec![9; n]) } else { matrix(&mut rng, n, &vec![9; m]) };
        let options = TrsmOptions::new().side(side).uplo(uplo).op(op).diag(diag).alpha(alpha);
        let x = trsm_with(&ctx, &t, &b, BITS, &options).unwrap().result;
        // The oracle sees `S X = C` with everything transposed on the right side.
        let is_transposed = (op == Op::Transpose) != (side == Side::Right);
        let s = turned(triangle(t.view(), uplo, diag).unwrap().view(), is_transposed).to_matrix().unwrap();
        let c = alpha.map_or(b.view().to_matrix().unwrap(), |alpha| times(b.view(), alpha).unwrap());
        let facing = |view: MatrixView<'_>| turned(view, side == Side::Right).to_matrix().unwrap();
        let c = facing(c.view());
        let norm =
            |values: Vec<Float>| values.into_iter().fold(Float::new(MANY), |sum, x| sum + wide(x).square()).sqrt();
        let oracle = |x: &Matrix| {
            let x = facing(x.view());
            ratios(&Equation { a: &s, x: &x, c: &c }, 1, |i, j| {
                let row = norm((0..n).map(|k| s.float(i, k)).collect());
                row * norm((0..n).map(|k| x.float(k, j)).collect()) + wide(c.float(i, j)).abs()
            })
        };
        let verify = |x: &Matrix| verify_trsm(&ctx, (&t, &b), x, BITS, (&options, &seeded()));
        compare(verify(&x), &oracle(&x), &format!("case {case}"));
        for power in [-140, -129, -126, -50, 4] {
            let wrong = changed(&x, (1, 2), power);
            compare(verify(&wrong), &oracle(&wrong), &format!("case {case}, 2^{power}"));
        }
        if side == Side::Right {
            let Err(Error::Verification(text)) = verify(&changed(&x, (1, 2), 4)) else { panic!("case {case}") };
            assert!(text.starts_with("verify trsm: the residual at row 1, column"), "{text}");
        }
    }
}

#[test]
fn inverses_are_judged_as_an_oracle_does() {
    let ctx = context();
    for (seed, n, spread) in [(1, 1, 0), (2, 6, 0), (3, 13, 200)] {
        let mut rng = random(seed);
        let scales = (0..n).map(|_| i64::from(rng.below(2 * spread + 1)) - i64::from(spread)).collect::<Vec<_>>();
        let a = definite(&mut rng, &scales);
        let x = inverse(&ctx, &a, BITS).unwrap().into_matrix();
        let oracle = |x: &Matrix| {
            let sum = (0..n).fold(Float::new(MANY), |sum, k| sum + root(&a, k) * root(x, k));
            ratios(&Equation { a: &a, x, c: &Matrix::identity(n, 2).unwrap() }, 4, |i, j| {
                root(&a, i) * root(x, j) * &sum
            })
        };
        compare(verify_inverse(&ctx, &a, &x, BITS, &seeded()), &oracle(&x), "right");
        for power in [-150, -130, -126, -123, -60] {
            let wrong = changed(&x, (n / 2, n / 2), power);
            compare(verify_inverse(&ctx, &a, &wrong, BITS, &seeded()), &oracle(&wrong), &format!("{n}, 2^{power}"));
        }
        if n > 1 {
            let found = verify_inverse(&ctx, &a, changed(&x, (1, 0), -20).view(), BITS, &seeded());
            let Err(Error::Verification(text)) = found else { panic!("{found:?}") };
            assert!(text.contains("not symmetric: the entries at row 1, column 0"), "{text}");
        }
    }
}

#[test]
fn what_is_no_system_is_refused() {
    let ctx = context();
    let a = Matrix::from_f64s(2, 2, 60, &[4.0, 1.0, 1.0, 3.0]).unwrap();
    let b = Matrix::from_f64s(2, 1, 60, &[1.0, 2.0]).unwrap();
    let refused = |a: &[f64], x: &Matrix, bits: u32| {
        let a = Matrix::from_f64s(2, 2, 60, a).unwrap();
        verify_solve(&ctx, (&a, &b), x, bits, &seeded()).unwrap_err()
    };
    let text = refused(&[4.0, 1.0, 1.0, -3.0], &b, 60).to_string();
    assert!(text.contains("diagonal entry 1 (from 0) of the matrix is not positive"), "{text}");
    let text = refused(&[4.0, 90.0, 90.0, 3.0], &b, 60).to_string();
    assert!(text.contains("row 1, column 0 (from 0) of the matrix is too large"), "{text}");
    assert!(matches!(refused(&[4.0, 1.0, 1.0, 3.0], &a, 60), Error::ShapeMismatch { .. }));
    assert!(matches!(refused(&[4.0, 1.0, 1.0, 3.0], &b, 4), Error::InvalidArgument(_)));
    assert!(matches!(refused(&[4.0, 1.0, 2.0, 3.0], &b, 60), Error::NotSymmetric { .. }));
    // Far above anything that the system can have as its right side.
    let mut far = Matrix::zeros(2, 1, 60).unwrap();
    far.set_integer_exponent(0, 0, &Integer::from(1), 1 << 29).unwrap();
    let text = refused(&[4.0, 1.0, 1.0, 3.0], &far, 60).to_string();
    assert!(text.contains("verify solve: "), "{text}");
    assert!(verify_solve(&ctx, (&a, &far), &b, 60, &seeded()).is_err());
    let (none, zero) = (Matrix::zeros(0, 0, 60).unwrap(), Matrix::zeros(0, 3, 60).unwrap());
    verify_solve(&ctx, (&none, &zero), &zero, 60, &seeded()).unwrap();
    verify_inverse(&ctx, &none, &none, 60, &seeded()).unwrap();
    let infinite = Float::with_val(60, rug::float::Special::Infinity);
    let options = TrsmOptions::new().alpha(&infinite);
    let found = verify_trsm(&ctx, (&a, &b), &b, 60, (&options, &seeded()));
    assert!(matches!(found, Err(Error::InvalidArgument(_))), "{found:?}");
}
