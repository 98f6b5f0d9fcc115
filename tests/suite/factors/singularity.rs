//! Singular or not, against elimination with fractions.

use crate::common::{Rng, claims};
use rug::{Float, Integer, Rational};
use sunzi::estimate::{Singularity, general_singularity, singularity, singularity_as_written};
use sunzi::io::{self, FileFormat, Loaded, ReadOptions, Source, WrittenEntry};
use sunzi::{Error, Matrix, Symmetric};

/// The numbers of a matrix as fractions.
fn fractions(a: &Matrix) -> Vec<Vec<Rational>> {
    let entry = |i, j| a.float(i, j).to_rational().unwrap();
    (0..a.rows()).map(|i| (0..a.cols()).map(|j| entry(i, j)).collect()).collect()
}

/// The rank, by elimination with fractions.
fn rank(mut rows: Vec<Vec<Rational>>) -> usize {
    let mut rank = 0;
    for col in 0..rows.len() {
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
fn is_null_vector(a: &[Vec<Rational>], x: &[Integer]) -> bool {
    let product = |row: &Vec<Rational>| row.iter().zip(x).map(|(entry, x)| Rational::from(entry * x)).sum::<Rational>();
    x.len() == a.len() && x.iter().any(|x| *x != 0) && a.iter().all(|row| product(row) == 0)
}

fn check(a: &Matrix, label: &str) -> Singularity {
    let found = singularity(a).unwrap();
    check_verdict(&fractions(a), &found, label);
    found
}

/// What is said is what elimination with fractions finds, and is proven.
fn check_verdict(a: &[Vec<Rational>], found: &Singularity, label: &str) {
    let rank = rank(a.to_vec());
    match found {
        Singularity::Nonsingular => assert_eq!(rank, a.len(), "{label}"),
        Singularity::Singular { rank_at_least, null_vector } => {
            assert!(rank < a.len() && *rank_at_least == rank, "{label}: rank {rank}, {rank_at_least} modulo primes");
            assert!(is_null_vector(a, null_vector), "{label}: {null_vector:?}");
            let divisor = null_vector.iter().fold(Integer::new(), |divisor, entry| divisor.gcd(entry));
            assert_eq!(divisor, 1, "{label}");
        }
        other => panic!("{label}: {other:?}"),
    }
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

/// Products of two matrices of few columns, of fractions that are rounded when they become a matrix: singular or not as
/// they were written.
#[test]
fn general_matrices_of_any_rank_as_they_were_written() {
    let mut counts = [0, 0];
    for seed in claims(200) {
        let mut rng = Rng::new(40_000 + seed);
        let n = 1 + rng.below(9);
        let k = rng.below(n + 2);
        let mut factor = || -> Vec<Vec<Rational>> {
            let entry = |rng: &mut Rng| Rational::from((rng.within(40), 1 + rng.below(6) as u32));
            (0..n).map(|_| (0..k).map(|_| entry(&mut rng)).collect()).collect()
        };
        let (left, right) = (factor(), factor());
        let entry = |row: usize, col: usize| -> Rational {
            left[row].iter().zip(&right[col]).map(|(left, right)| Rational::from(left * right)).sum()
        };
        let rows: Vec<Vec<Rational>> = (0..n).map(|row| (0..n).map(|col| entry(row, col)).collect()).collect();
        let a = Matrix::from_fn(n, n, 30, |row, col| Float::with_val(30, &rows[row][col])).unwrap();
        let written: Vec<WrittenEntry> = (0..n)
            .flat_map(|row| (0..n).map(move |col| (row, col)))
            .filter(|&(row, col)| a.float(row, col) != rows[row][col])
            .map(|(row, col)| WrittenEntry { row, col, value: rows[row][col].clone() })
            .collect();
        let found = general_singularity(&a, &written).unwrap();
        check_verdict(&rows, &found, &format!("seed {seed}: {n} rows of {k}"));
        check_verdict(&fractions(&a), &general_singularity(&a, &[]).unwrap(), &format!("seed {seed}, rounded"));
        counts[usize::from(found.is_proven_singular())] += 1;
    }
    assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
    let outside = WrittenEntry { row: 0, col: 2, value: Rational::new() };
    assert!(matches!(
        general_singularity(&Matrix::identity(2, 30).unwrap(), &[outside]),
        Err(Error::InvalidArgument(_))
    ));
    assert!(matches!(general_singularity(&Matrix::zeros(2, 3, 30).unwrap(), &[]), Err(Error::NotSquare { .. })));
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
        assert!(is_null_vector(&fractions(&a), &null_vector), "{n}, {k}");
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

/// A number as it may be written: as a decimal where that is possible, else as a fraction.
fn text(number: &Rational) -> String {
    let millionths = Rational::from(number * 1_000_000);
    match *millionths.denom() == 1 {
        true => format!("{}e-6", millionths.numer()),
        false => format!("{}/{}", number.numer(), number.denom()),
    }
}

fn read(table: &str, options: &ReadOptions) -> Loaded {
    let source = Source::new("A.csv".as_ref(), FileFormat::Csv);
    io::read_stream(table.as_bytes(), &source, options).unwrap()
}

#[test]
fn numbers_of_a_file_count_as_they_were_written() {
    let mut counts = [0, 0];
    for seed in claims(200) {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(7);
        let (k, bits, denominators) = (
            rng.below(n + 2),
            2 + rng.below(90) as u32,
            rng.pick(&[&[1][..], &[1, 10, 1000], &[3, 7, 10, 1 << 20], &[97, 89]]),
        );
        let mut number = |_| Rational::from((rng.integer(20), rng.pick(denominators)));
        let rows = (0..n * k).map(&mut number).collect::<Vec<_>>();
        let entry =
            |i: usize, j: usize| (0..k).map(|t| Rational::from(&rows[t * n + i] * &rows[t * n + j])).sum::<Rational>();
        let a = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect::<Vec<Vec<Rational>>>();
        let line = |row: &Vec<Rational>| row.iter().map(text).collect::<Vec<_>>().join(",") + "\n";
        let table = a.iter().map(line).collect::<String>();
        let loaded = read(&table, &ReadOptions::new(bits).keep_written(true));
        let written = loaded.written.unwrap();
        let label = format!("seed {seed}: {n} rows of {k} at {bits} bits\n{table}");
        // What was rounded is kept, and nothing else.
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let kept = written.iter().find(|entry| (entry.row, entry.col) == (i, j)).map(|entry| &entry.value);
            let is_exact = loaded.matrix.float(i, j).to_rational().unwrap() == a[i][j];
            assert_eq!(kept, (!is_exact).then_some(&a[i][j]), "{label}");
        }
        let found = singularity_as_written(&loaded.matrix, &written).unwrap();
        check_verdict(&a, &found, &label);
        counts[usize::from(found.is_proven_singular())] += 1;
    }
    assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
}

#[test]
fn what_is_kept_as_written_has_its_limits() {
    let keeping = ReadOptions::new(64).keep_written(true);
    assert_eq!(read("0.1\n", &ReadOptions::new(64)).written, None);
    assert_eq!(read("0.5\n", &keeping).written, Some(Vec::new()));
    let tenth = WrittenEntry { row: 0, col: 0, value: Rational::from((1, 10)) };
    assert_eq!(read("0.1\n", &keeping).written, Some(vec![tenth.clone()]));
    assert_eq!(read("-1e-20000\n", &keeping).written.unwrap()[0].value.numer(), &-1);
    assert_eq!(read("0.1,1e-20001\n", &keeping).written, None);
    let tenths = |count: usize| "0.1\n".repeat(count);
    assert_eq!(read(&tenths(100_000), &keeping).written.unwrap().len(), 100_000);
    assert_eq!(read(&tenths(100_001), &keeping).written, None);
    // Decimals of a file that states their precision are what they were rounded to.
    let stated = "%%MatrixMarket matrix array real general\n%sunzi precision_bits=64\n1 1\n0.1\n";
    let source = Source::new("A.mtx".as_ref(), FileFormat::MatrixMarket);
    let loaded = io::read_stream(stated.as_bytes(), &source, &ReadOptions::new(None).keep_written(true)).unwrap();
    assert_eq!((loaded.rounded_bits, loaded.written), (None, Some(Vec::new())));
    let outside = singularity_as_written(&integers(1, &[1]), &[WrittenEntry { row: 1, ..tenth }]);
    assert!(matches!(outside, Err(Error::InvalidArgument(_))), "{outside:?}");
}

#[test]
fn a_denominator_that_a_prime_divides_is_no_obstacle() {
    let prime = (1u64 << 60..).find(|&p| Integer::from(p).is_probably_prime(30) != rug::integer::IsPrime::No).unwrap();
    let third = |numerator: u64| Rational::from((Integer::from(numerator), Integer::from(prime) * 3u32));
    let place = |(row, col, value)| WrittenEntry { row, col, value };
    let of = |last: u64| {
        let entries = [(0, 0, third(1)), (1, 0, third(1)), (1, 1, third(last))].map(place);
        singularity_as_written(&integers(2, &[1; 4]), &entries).unwrap()
    };
    assert_eq!(of(2), Singularity::Nonsingular);
    let null_vector = vec![Integer::from(-1), Integer::from(1)];
    let found = of(1);
    assert!(
        matches!(&found, Singularity::Singular { rank_at_least: 1, null_vector: x } if *x == null_vector),
        "{found:?}"
    );
}
