//! What is said of a matrix without a factor, against exact elimination over the rationals.

use crate::common::rational::{self, FAMILIES, Family, Rows};
use crate::common::{Rng, claims};
use rug::{Integer, Rational};
use sunzi::estimate::{InputRounding, Singularity, singularity};
use sunzi::{Accuracy, CholeskyOptions, Context, Error, LdltOptions, MoreBits, cholesky_with, ldlt_with};

/// How many eigenvalues of a symmetric matrix are positive, by elimination without pivots; `None` where a pivot is 0.
fn positive_eigenvalues(a: &Rows) -> Option<usize> {
    let (n, mut rows, mut positive) = (a.len(), a.clone(), 0);
    for col in 0..n {
        if rows[col][col] == 0 {
            return None;
        }
        positive += usize::from(rows[col][col] > 0);
        let own = rows[col].clone();
        for row in &mut rows[col + 1..] {
            let factor = Rational::from(&row[col] / &own[col]);
            row.iter_mut().zip(&own).skip(col).for_each(|(entry, own)| *entry -= Rational::from(&factor * own));
        }
    }
    Some(positive)
}

fn is_definite(a: &Rows) -> bool {
    positive_eigenvalues(a) == Some(a.len())
}

/// A matrix whose last pivot is a power of two, positive or negative, or 0.
fn nearly_singular(family: Family, rng: &mut Rng) -> Rows {
    let n = 2 + rng.below(7);
    let mut a = rational::definite(family, n, rng);
    let leading: Rows = a[..n - 1].iter().map(|row| row[..n - 1].to_vec()).collect();
    let last: Rows = a[n - 1][..n - 1].iter().map(|entry| vec![entry.clone()]).collect();
    let solved = rational::solve(&leading, &last).unwrap();
    let dot = solved.iter().zip(&last).map(|(x, b)| Rational::from(&x[0] * &b[0])).sum::<Rational>();
    let size = Rational::from((1, Integer::from(1) << rng.below(400) as u32));
    let pivot = match rng.below(3) {
        0 => Rational::new(),
        1 => -size * a[n - 1][n - 1].clone(),
        _ => size * a[n - 1][n - 1].clone(),
    };
    a[n - 1][n - 1] = dot + pivot;
    a
}

/// How often each verdict was given.
#[derive(Default, Debug)]
struct Said {
    never: usize,
    singular: usize,
    enough: usize,
    open: usize,
}

#[test]
fn verdicts_on_matrices_without_a_factor_are_true() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let mut said = Said::default();
    for (seed, family) in claims(34).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let mut rng = Rng::new(77_000 + 10 * seed + family as u64);
        let a = nearly_singular(family, &mut rng);
        // The question is of the numbers in memory, whatever they were before.
        let (matrix, _) = rational::rounded(&a, a.len(), 60 + rng.below(1500) as u32);
        let entry = |row: usize, col: usize| matrix.float(row, col).to_rational().unwrap();
        let given: Rows = (0..a.len()).map(|row| (0..a.len()).map(|col| entry(row, col)).collect()).collect();
        let bits = 8 + rng.below(300) as u32;
        let accuracy = if rng.coin() { Accuracy::Norm } else { Accuracy::Entrywise };
        let options = CholeskyOptions::new().accuracy(accuracy);
        let label = format!("{family:?}, seed {seed}, {} rows, {bits} bits, {accuracy:?}", a.len());
        match cholesky_with(&ctx, &matrix, bits, &options) {
            Ok(_) => {}
            Err(Error::NotPositiveDefinite { more_bits, enough_bits, .. }) => {
                match more_bits {
                    MoreBits::Never => {
                        assert!(!is_definite(&given), "{label}: it is positive definite");
                        said.never += 1;
                    }
                    MoreBits::Singular => {
                        assert_eq!(rational::determinant(&given), 0, "{label}");
                        said.singular += 1;
                    }
                    _ => said.open += 1,
                }
                if let Some(bits) = enough_bits {
                    assert!(cholesky_with(&ctx, &matrix, bits, &options).is_ok(), "{label}: {bits} bits do not do");
                    said.enough += 1;
                }
            }
            Err(error) => panic!("{label}: {error}"),
        }
        match singularity(&matrix).unwrap() {
            Singularity::Nonsingular => assert_ne!(rational::determinant(&given), 0, "{label}"),
            Singularity::Singular { .. } => assert_eq!(rational::determinant(&given), 0, "{label}"),
            other => panic!("{label}: {other:?}"),
        }
    }
    println!("{said:?}");
    assert!(said.never > 20 && said.open > 10, "{said:?}");
}

/// A certificate says that no eigenvalue is near 0, of the matrix before it was rounded as well.
#[test]
fn certified_matrices_are_regular() {
    let (ctx, mut certified, mut singular) = (Context::builder().threads(1).build().unwrap(), 0, 0);
    for (seed, family) in claims(34).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let mut rng = Rng::new(88_000 + 10 * seed + family as u64);
        let mut a = nearly_singular(family, &mut rng);
        for row in 0..a.len() - 1 {
            if rng.below(4) == 0 {
                a[row][row] = -a[row][row].clone();
            }
        }
        let (matrix, matrix_bits) = rational::rounded(&a, a.len(), 100 + rng.below(900) as u32);
        let rounding = InputRounding::new().matrix_bits(matrix_bits);
        let bits = 20 + rng.below(400) as u32;
        let is_singular = rational::determinant(&a) == 0;
        let label = format!("{family:?}, seed {seed}, {} rows, {bits} bits", a.len());
        if let Ok(outcome) = ldlt_with(&ctx, &matrix, bits, &LdltOptions::new()) {
            let is_certified = outcome.result.certify(&ctx, &matrix, rounding).unwrap().is_some();
            assert!(!(is_certified && is_singular), "{label}: it is singular");
            certified += usize::from(is_certified);
        }
        if let Ok(outcome) = cholesky_with(&ctx, &matrix, bits, &CholeskyOptions::new()) {
            let is_certified = outcome.result.certify_with(&ctx, &matrix, rounding).unwrap().is_some();
            assert!(!is_certified || is_definite(&a), "{label}: it is not positive definite");
            certified += usize::from(is_certified);
        }
        singular += usize::from(is_singular);
    }
    assert!(certified > 100 && singular > 20, "{certified} certified, {singular} singular");
}
