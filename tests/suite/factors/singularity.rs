//! Singular or not, against elimination with fractions.

use crate::common::{Rng, claims};
use rug::{Float, Integer, Rational};
use sunzi::{Error, Matrix, Singularity, Symmetric, singularity};

/// The numbers of a matrix as fractions.
fn fractions(a: &Matrix) -> Vec<Vec<Rational>> {
    let entry = |i, j| a.float(i, j).to_rational().unwrap();
    (0..a.rows()).map(|i| (0..a.cols()).map(|j| entry(i, j)).collect()).collect()
}

/// The rank, by elimination with fractions.
fn rank(a: &Matrix) -> usize {
    let (mut rows, mut rank) = (fractions(a), 0);
    for col in 0..a.cols() {
        let Some(at) = (rank..rows.len()).find(|&row| rows[row][col] != 0) else { continue };
        rows.swap(rank, at);
        let pivot = rows[rank].clone();
        for row in &mut rows[rank + 1..] {
            let factor = Rational::from(&row[col] / &pivot[col]);
            row.iter_mut().zip(&pivot).for_each(|(entry, other)| *entry -= Rational::from(other * &factor));
        }
        rank += 1;
    }
    rank
}

/// Whether the integers solve `A x = 0` and are not all 0.
fn is_null_vector(a: &Matrix, x: &[Integer]) -> bool {
    let product = |row: &Vec<Rational>| row.iter().zip(x).map(|(entry, x)| Rational::from(entry * x)).sum::<Rational>();
    x.len() == a.cols() && x.iter().any(|x| *x != 0) && fractions(a).iter().all(|row| product(row) == 0)
}

/// What is said is what elimination with fractions finds, and is proven.
fn check(a: &Matrix, label: &str) -> Singularity {
    let (found, rank) = (singularity(a).unwrap(), rank(a));
    match &found {
        Singularity::Nonsingular => assert_eq!(rank, a.rows(), "{label}"),
        Singularity::Singular { rank_at_least, null_vector } => {
            assert!(rank < a.rows() && *rank_at_least == rank, "{label}: rank {rank}, {rank_at_least} modulo primes");
            assert!(is_null_vector(a, null_vector), "{label}: {null_vector:?}");
            let divisor = null_vector.iter().fold(Integer::new(), |divisor, entry| divisor.gcd(entry));
            assert_eq!(divisor, 1, "{label}");
        }
        other => panic!("{label}: {other:?}"),
    }
    found
}

fn integers(n: usize, entries: &[i64]) -> Matrix {
    let entries = entries.iter().map(|&entry| Integer::from(entry)).collect::<Vec<_>>();
    Matrix::from_integers(n, n, 100, &entries).unwrap()
}

#[test]
fn small_matrices_that_are_known() {
    assert_eq!(check(&Matrix::empty(), "no rows"), Singularity::Nonsingular);
    assert_eq!(check(&integers(1, &[5]), "one number"), Singularity::Nonsingular);
    let zero = check(&integers(1, &[0]), "zero");
    assert_eq!(zero, Singularity::Singular { rank_at_least: 0, null_vector: vec![Integer::from(1)] });
    assert!(check(&integers(4, &[0; 16]), "zero matrix").is_proven_singular());
    assert_eq!(check(&integers(2, &[0, 1, 1, 0]), "a swap"), Singularity::Nonsingular);
    // Positive semidefinite, of determinant 0, with a factor at 600 bits that rounding makes.
    let found = check(&integers(3, &[21, 15, 32, 15, 30, 25, 32, 25, 49]), "of rank 2");
    assert!(found.is_proven_singular());
    // The same number everywhere, whatever it is.
    for bits in [2, 53, 264, 5000] {
        let third = Float::with_val(bits, 1) / 3u32;
        let thirds = Matrix::from_fn(2, 2, bits, |_, _| third.clone()).unwrap();
        let null_vector = vec![Integer::from(-1), Integer::from(1)];
        assert_eq!(check(&thirds, "thirds"), Singularity::Singular { rank_at_least: 1, null_vector });
    }
    // Singular but for the last bit.
    let almost = Matrix::from_fn(2, 2, 5000, |i, j| Float::with_val(5000, 1) + (Float::with_val(64, i * j) >> 4900));
    assert_eq!(check(&almost.unwrap(), "one bit"), Singularity::Nonsingular);
}

#[test]
fn a_determinant_that_a_prime_divides_is_not_0() {
    // The first primes that are tried: modulo each the rank is smaller by one.
    let primes = [(1u64 << 60) + 33, (1 << 60) + 91, (1 << 60) + 105].map(Integer::from);
    assert!(primes.iter().all(|prime| prime.is_probably_prime(30) != rug::integer::IsPrime::No));
    let n = 2 + primes.len();
    for used in 0..=primes.len() {
        let mut a = Matrix::identity(n, 400).unwrap();
        for (at, prime) in primes[..used].iter().enumerate() {
            a.set_float(at + 1, at + 1, &Float::with_val(400, prime)).unwrap();
        }
        let found = singularity(&a).unwrap();
        // Nothing false is said where all of them divide it.
        match used == primes.len() {
            true => assert!(matches!(found, Singularity::ProbablySingular { .. }), "{found:?}"),
            false => assert_eq!(found, Singularity::Nonsingular, "{used}"),
        }
    }
}

#[test]
fn random_matrices_of_any_rank_and_spread_exponents() {
    let mut counts = [0, 0];
    for seed in claims(200) {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(9);
        let (k, bits, spread) = (rng.below(n + 2), 1 + rng.below(80) as u32, rng.pick(&[0, 3, 70, 900]));
        let rows = (0..n * k).map(|_| rng.integer(bits)).collect::<Vec<_>>();
        let signs = (0..k).map(|_| rng.coin()).collect::<Vec<_>>();
        let shifts = (0..n).map(|_| rng.within(spread) as i32).collect::<Vec<_>>();
        let a = Matrix::from_fn(n, n, 400, |i, j| {
            let term = |t: usize| {
                let product = Integer::from(&rows[t * n + i] * &rows[t * n + j]);
                if signs[t] { -product } else { product }
            };
            Float::with_val(400, (0..k).map(term).sum::<Integer>()) << (shifts[i] + shifts[j])
        });
        let found = check(&a.unwrap(), &format!("seed {seed}: {n} rows of {k}, {bits} bits, spread {spread}"));
        counts[usize::from(found.is_proven_singular())] += 1;
    }
    assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
}

#[test]
fn larger_matrices_are_proven_singular_too() {
    for (n, k, bits) in [(60, 59, 20), (100, 30, 200), (40, 1, 700)] {
        let mut rng = Rng::new(n as u64);
        let rows = (0..n * k).map(|_| rng.integer(bits)).collect::<Vec<_>>();
        let dot =
            |i: usize, j: usize| (0..k).map(|t| Integer::from(&rows[t * n + i] * &rows[t * n + j])).sum::<Integer>();
        let a = Matrix::from_fn(n, n, 2 * bits + 8, |i, j| Float::with_val(2 * bits + 8, dot(i, j))).unwrap();
        let found = singularity(&a).unwrap();
        let Singularity::Singular { rank_at_least, null_vector } = found else { panic!("{n}, {k}: {found:?}") };
        assert_eq!(rank_at_least, k);
        assert!(is_null_vector(&a, &null_vector), "{n}, {k}");
    }
}

#[test]
fn what_cannot_be_examined_is_said() {
    assert_eq!(singularity(&Matrix::zeros(301, 301, 64).unwrap()).unwrap(), Singularity::TooLarge);
    assert!(singularity(&Matrix::zeros(300, 300, 64).unwrap()).unwrap().is_proven_singular());
    assert!(matches!(singularity(&Matrix::zeros(2, 3, 64).unwrap()), Err(Error::NotSquare { .. })));
    let half = integers(2, &[1, 7, 2, 4]);
    assert!(matches!(singularity(&half), Err(Error::NotSymmetric { row: 1, column: 0 })));
    assert!(singularity(Symmetric::upper(&half)).unwrap().is_proven_singular());
    assert_eq!(singularity(Symmetric::lower(&half)).unwrap(), Singularity::Nonsingular);
    // Exponents beyond any integer that is formed: what is nonsingular is known, what is singular only suspected.
    let far = |coupling: u32| {
        let entry = |i, j| match (i, j) {
            (0, 0) => Float::with_val(60, 1) << (1 << 29),
            (1, 1) => Float::with_val(60, 1) >> (1 << 29),
            (2, 2) | (1, 0) | (0, 1) => Float::with_val(60, 1),
            (2, 1) | (1, 2) => Float::with_val(60, coupling),
            _ => Float::new(60),
        };
        singularity(&Matrix::from_fn(3, 3, 60, entry).unwrap()).unwrap()
    };
    assert_eq!(far(1), Singularity::Nonsingular);
    assert_eq!(far(0), Singularity::ProbablySingular { rank_at_least: 2, primes: 3 });
}
