//! What is said of the digits of solutions and inverses, against exact rational solutions of the problem before
//! anything was rounded.

use crate::common::rational::{self, FAMILIES, GENERAL_FAMILIES, Rows, System};
use crate::common::tally::Tally;
use crate::common::{Rng, claims};
use rug::{Float, Rational};
use sunzi::estimate::InputRounding;
use sunzi::{
    Cholesky, CholeskyOptions, Context, Error, LdltOptions, LuOptions, Matrix, cholesky_with, ldlt_with, lu_with,
};

fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

/// Estimated, proven and right digits of a solution and of the inverse.
fn judge(case: &System, factor: &Cholesky, a: &Matrix, rounding: InputRounding, tallies: &mut [Tally; 2]) {
    let (ctx, bits) = (&context(), case.bits);
    let cols = case.b[0].len();
    let (b, right_bits) = rational::rounded(&case.b, cols, case.read_bits);
    let both = rounding.right_bits(right_bits);
    let x = factor.solve(ctx, &b, bits).unwrap();
    let exact = rational::solve(&case.a, &case.b).unwrap();
    let stated = factor.solution_digits_with(ctx, a, &b, &x, both).unwrap();
    let proof = factor.certify_with(ctx, a, both).unwrap();
    let proven = proof.as_ref().map_or(0.0, |proof| proof.solution_digits(ctx, &b, &x).unwrap());
    tallies[0].note((&case.label, bits), [stated, proven, rational::digits_of(&x, &exact, true)]);

    let inverse = factor.inverse(ctx, bits).unwrap();
    let exact = rational::solve(&case.a, &rational::identity(case.a.len())).unwrap();
    let stated = factor.inverse_digits_with(ctx, a, &inverse, rounding).unwrap();
    let proven = proof.as_ref().map_or(0.0, |proof| proof.inverse_digits(ctx, &inverse).unwrap());
    let truth = rational::digits_of(inverse.as_matrix(), &exact, false);
    tallies[1].note((&format!("{}, inverse", case.label), bits), [stated, proven, truth]);
}

#[test]
fn digits_of_rounded_input_are_those_of_what_was_written() {
    let mut tallies: [Tally; 2] = Default::default();
    for (seed, family) in claims(34).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let case = System::random(family, 91_000 + seed);
        let (a, matrix_bits) = rational::rounded(&case.a, case.a.len(), case.read_bits);
        let rounding = InputRounding::new().matrix_bits(matrix_bits);
        let options = CholeskyOptions::new().accuracy(case.accuracy);
        match cholesky_with(&context(), &a, case.bits, &options) {
            Ok(outcome) => judge(&case, &outcome.result, &a, rounding, &mut tallies),
            Err(Error::NotPositiveDefinite { .. }) => {}
            Err(error) => panic!("{}: {error}", case.label),
        }
    }
    println!("{tallies:?}");
    tallies.iter().for_each(Tally::check);
}

/// `U U^T` for an integer `U` with ones on its diagonal: the determinant is 1, or next to it.
fn of_determinant_one(n: usize, rng: &mut Rng) -> Rows {
    let entry = |row: usize, col: usize, rng: &mut Rng| if row == col { 1 } else { rng.within(20) };
    let u: Vec<Vec<i64>> = (0..n).map(|row| (0..=row).map(|col| entry(row, col, rng)).collect()).collect();
    let dot = |row: usize, col: usize| -> Rational {
        u[row].iter().zip(&u[col]).map(|(left, right)| Rational::from(left * right)).sum()
    };
    let mut a: Rows = (0..n).map(|row| (0..n).map(|col| dot(row, col)).collect()).collect();
    if rng.coin() {
        a[n - 1][n - 1] += Rational::from((1, rug::Integer::from(1) << rng.below(300) as u32));
    }
    a
}

#[test]
fn logarithms_of_determinants_are_within_their_proven_errors() {
    let (ctx, mut tally, mut near_zero) = (context(), Tally::default(), 0);
    for (seed, family) in claims(34).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let mut case = System::random(family, 94_000 + seed);
        if seed % 2 == 1 {
            case.a = of_determinant_one(case.a.len(), &mut Rng::new(500 + seed));
        }
        let (a, matrix_bits) = rational::rounded(&case.a, case.a.len(), case.read_bits);
        let rounding = InputRounding::new().matrix_bits(matrix_bits);
        let options = CholeskyOptions::new().accuracy(case.accuracy);
        let Ok(outcome) = cholesky_with(&ctx, &a, case.bits, &options) else { continue };
        let factor = outcome.result;
        let exact = Float::with_val(4000, rational::determinant(&case.a)).ln();
        let error = Float::with_val(64, factor.log_det() - &exact).abs();
        let truth = match error == 0 {
            true => f64::INFINITY,
            false => -Float::with_val(64, &error / exact.clone().abs()).log10().to_f64(),
        };
        let proof = factor.certify_with(&ctx, &a, rounding).unwrap();
        let proven = proof.as_ref().map_or(0.0, |proof| proof.log_det_digits(&ctx).unwrap());
        let stated = factor.log_det_digits_with(&ctx, rounding).unwrap();
        tally.note((&case.label, case.bits), [stated, proven, truth]);
        if let Some(bound) = proof.and_then(|proof| proof.log_det_error(&ctx).unwrap()) {
            assert!(error <= bound, "{}: off by {error}, at most {bound}", case.label);
            near_zero += usize::from(exact.clone().abs() < 0.5 && bound < 1e-3);
        }
    }
    println!("{near_zero} near 0, {tally:?}");
    assert!(near_zero > 10 && 1000 * tally.above <= tally.answers.max(999), "{near_zero}, {tally:?}");
}

/// Matrices that are definite by so little that a factor of few bits exists by luck: nothing is said of its answers.
#[test]
fn a_factor_by_luck_tells_no_digits() {
    let ctx = context();
    let g = [[5i64, 4, 2], [6, 1, 1]];
    let entry = |row: usize, col: usize| -> Rational {
        let sum: i64 = g.iter().map(|g| g[row] * g[col]).sum();
        (Rational::from(sum) << 200) + Rational::from(u32::from(row == col))
    };
    let a: Rows = (0..3).map(|row| (0..3).map(|col| entry(row, col)).collect()).collect();
    let solution = [-9, 8, -9];
    let right =
        |row: &Vec<Rational>| vec![row.iter().zip(solution).map(|(a, x)| Rational::from(a * x)).sum::<Rational>()];
    let b: Rows = a.iter().map(right).collect();
    let exact = solution.map(|x| vec![Rational::from(x)]).to_vec();
    let ([a, b], mut with_digits) = ([rational::rounded(&a, 3, 400).0, rational::rounded(&b, 1, 400).0], 0);
    for bits in 40..300 {
        let Ok(factor) = cholesky_with(&ctx, &a, bits, &CholeskyOptions::new()) else { continue };
        let x = factor.result.solve(&ctx, &b, bits).unwrap();
        let (truth, stated) =
            (rational::digits_of(&x, &exact, true).max(0.0), factor.result.solution_digits(&ctx, &a, &b, &x).unwrap());
        assert!(stated <= truth, "{bits} bits: {stated} digits, {truth} right");
        with_digits += usize::from(stated > 1.0);
    }
    assert!(with_digits > 20);
}

/// Of many right-hand sides combinations are looked at: what is formed of them must not be rounded to where an error
/// hides.
#[test]
fn scales_far_apart_hide_no_error_of_many_right_sides() {
    let (ctx, bits) = (context(), 200);
    let power = |exponent: u32| Float::with_val(bits, 1) << exponent;
    let entries = [[power(1), power(481)], [power(481), power(963)]];
    let a = Matrix::from_fn(2, 2, bits, |row, col| entries[row][col].clone()).unwrap();
    // The first column of the solution is (-4, -9), the others are 1; and (0, -9) is wrong.
    let b = Matrix::from_fn(2, 9, 2000, |row, col| {
        let x = if col == 0 { [-4, -9] } else { [1, 1] };
        Float::with_val(2000, &entries[row][0] * x[0]) + Float::with_val(2000, &entries[row][1] * x[1])
    });
    let b = b.unwrap();
    let factor = cholesky_with(&ctx, &a, bits, &CholeskyOptions::new()).unwrap().result;
    let guess = |first: i32| {
        let entry = |row: usize, col: usize| Float::with_val(bits, if col > 0 { 1 } else { [first, -9][row] });
        Matrix::from_fn(2, 9, bits, entry).unwrap()
    };
    assert!(factor.solution_digits(&ctx, &a, &b, &guess(0)).unwrap() < 1.0);
    assert!(factor.solution_digits(&ctx, &a, &b, &guess(-4)).unwrap() > 50.0);
}

/// Digits of solutions by `L D L^T` of symmetric matrices of any inertia, small pivots among them: those of the
/// definite families with signs, and some that ask for pivoting.
#[test]
fn digits_of_indefinite_systems_are_true() {
    let (ctx, mut tally, mut told) = (context(), Tally::default(), 0);
    for (seed, family) in claims(34).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let mut case = System::random(family, 92_000 + seed);
        let mut rng = Rng::new(7 + seed);
        let n = case.a.len();
        // A congruence by signs of the diagonal alone would leave it definite: parts of the diagonal change their sign.
        for row in 0..n {
            if rng.coin() {
                case.a[row][row] = match rng.below(3) {
                    0 => -case.a[row][row].clone(),
                    1 => Rational::from((1, rug::Integer::from(1) << rng.below(200) as u32)),
                    _ => case.a[row][row].clone(),
                };
            }
        }
        let Some(exact) = rational::solve(&case.a, &case.b) else { continue };
        let (a, matrix_bits) = rational::rounded(&case.a, n, case.read_bits);
        let (b, right_bits) = rational::rounded(&case.b, case.b[0].len(), case.read_bits);
        let rounding = InputRounding::new().matrix_bits(matrix_bits).right_bits(right_bits);
        let options = LdltOptions::new().accuracy(case.accuracy);
        let factors = match ldlt_with(&ctx, &a, case.bits, &options) {
            Ok(outcome) => outcome.result,
            Err(Error::Singular { .. }) => continue,
            Err(error) => panic!("{}: {error}", case.label),
        };
        let x = factors.solve(&ctx, &b, case.bits).unwrap();
        let stated = factors.solution_digits(&ctx, &a, &b, &x, rounding).unwrap();
        let proof = factors.certify(&ctx, &a, rounding).unwrap();
        let proven = proof.as_ref().map_or(0.0, |proof| proof.solution_digits(&ctx, &b, &x).unwrap());
        told += usize::from(stated > 3.0 && proven > 3.0);
        tally.note((&case.label, case.bits), [stated, proven, rational::digits_of(&x, &exact, true)]);
    }
    println!("{told} told: {tally:?}");
    assert!(1000 * tally.above <= tally.answers.max(999) && 2 * told > tally.answers, "{told}, {tally:?}");
}

/// Digits of solutions, inverses and determinants of general systems by LU.
#[test]
fn digits_of_general_systems_are_true() {
    let (ctx, mut tallies) = (context(), <[Tally; 3]>::default());
    for (seed, family) in claims(20).flat_map(|seed| GENERAL_FAMILIES.map(|family| (seed, family))) {
        let case = System::general(family, 93_000 + seed);
        let (n, bits, cols) = (case.a.len(), case.bits, case.b[0].len());
        let Some(exact) = rational::solve(&case.a, &case.b) else { continue };
        let (a, matrix_bits) = rational::rounded(&case.a, n, case.read_bits);
        let (b, right_bits) = rational::rounded(&case.b, cols, case.read_bits);
        let rounding = InputRounding::new().matrix_bits(matrix_bits).right_bits(right_bits);
        let factors = match lu_with(&ctx, &a, bits, &LuOptions::new().accuracy(case.accuracy)) {
            Ok(outcome) => outcome.result,
            Err(Error::NoPivot { .. }) => continue,
            Err(error) => panic!("{}: {error}", case.label),
        };
        let proof = factors.certify(&ctx, &a, rounding).unwrap();
        let proof = proof.as_ref();
        let x = factors.solve(&ctx, &b, bits).unwrap();
        let stated = factors.solution_digits(&ctx, &a, &b, &x, rounding).unwrap();
        let proven = proof.map_or(0.0, |proof| proof.solution_digits(&ctx, &b, &x).unwrap());
        tallies[0].note((&case.label, bits), [stated, proven, rational::digits_of(&x, &exact, true)]);

        let inverse = factors.inverse(&ctx, bits).unwrap();
        let exact = rational::solve(&case.a, &rational::identity(n)).unwrap();
        let stated = factors.inverse_digits(&ctx, &a, &inverse, rounding).unwrap();
        let proven = proof.map_or(0.0, |proof| proof.inverse_digits(&ctx, &inverse).unwrap());
        let label = format!("{}, inverse", case.label);
        tallies[1].note((&label, bits), [stated, proven, rational::digits_of(&inverse, &exact, false)]);

        // Of determinants there is no estimate.
        let (det, exact) = (factors.det().unwrap(), vec![vec![rational::determinant(&case.a)]]);
        let truth = rational::digits_of(&Matrix::from_floats(1, 1, bits, &[det]).unwrap(), &exact, false);
        let proven = proof.map_or(0.0, |proof| proof.det_digits(&ctx).unwrap());
        tallies[2].note((&format!("{}, determinant", case.label), bits), [proven, proven, truth]);
    }
    println!("{tallies:?}");
    tallies[..2].iter().for_each(Tally::check);
    assert!(4 * tallies[2].loose <= tallies[2].proofs, "{:?}", tallies[2]);
}

#[test]
fn a_small_pivot_of_ldlt_tells_no_digits() {
    let ctx = context();
    let tiny = Float::with_val(100, Float::parse("1e-40").unwrap());
    let a = Matrix::from_fn(2, 2, 100, |row, col| if row + col == 0 { tiny.clone() } else { Float::with_val(100, 1) })
        .unwrap();
    let b = Matrix::from_f64s(2, 1, 100, &[1.0, 2.0]).unwrap();
    for (bits, right) in [(100, false), (200, true)] {
        let factors = ldlt_with(&ctx, &a, bits, &LdltOptions::new()).unwrap().result;
        let x = factors.solve(&ctx, &b, bits).unwrap();
        let stated = factors.solution_digits(&ctx, &a, &b, &x, InputRounding::new()).unwrap();
        let proof = factors.certify(&ctx, &a, InputRounding::new()).unwrap();
        let proven = proof.map_or(0.0, |proof| proof.solution_digits(&ctx, &b, &x).unwrap());
        assert!((stated > 15.0) == right && (!right || proven > 15.0), "{bits} bits: {stated} stated, {proven} proven");
    }
}
