//! Symmetric positive definite matrices, most of them with a factor that is known exactly.

use super::Rng;
use rug::integer::Order;
use rug::{Float, Integer, Rational};
use sunzi::gallery::{self, Size, generate};
use sunzi::verify::{Verification, VerifyOptions, verify_cholesky};
use sunzi::{Context, Matrix};

/// Matrices with a formula for the factor; rows and columns count from 1 in the formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// `min(i, j)`; the factor is all ones.
    Minij,
    /// `binomial(i + j - 2, i - 1)`; the factor has `binomial(i - 1, j - 1)`.
    Pascal,
    /// The factor has 1 on the diagonal and -1 below.
    Moler,
    /// `2^-|i - j|`; the factor is `2^-(i - j)`, times `sqrt(3) / 2` but for the first column.
    Kms,
    /// `min(i, j) / max(i, j)`; the factor is `sqrt(2 j - 1) / i`.
    Lehmer,
    /// `gcd(i, j)`; the factor is `sqrt(phi(j))` where j divides i (Smith, 1876).
    Gcd,
    /// `1 / (i + j - 1)`; the factor is `sqrt(2 j - 1) (i - 1)!^2 / ((i - j)! (i + j - 1)!)`.
    Hilbert,
    /// `1 / (i + j)`; the factor is `sqrt(2 j) / (i + j)` times `(i - k) / (i + k)` for all `k < j`.
    Cauchy,
}

pub const KNOWN: [Known; 8] =
    [Known::Minij, Known::Pascal, Known::Moler, Known::Kms, Known::Lehmer, Known::Gcd, Known::Hilbert, Known::Cauchy];

impl Known {
    /// The matrix, each entry exact or rounded once.
    pub fn matrix(self, n: usize, precision_bits: u32) -> Matrix {
        let kind = match self {
            Known::Minij => gallery::Kind::Minij,
            Known::Pascal => gallery::Kind::Pascal,
            Known::Moler => gallery::Kind::Moler,
            Known::Kms => gallery::Kind::Kms,
            Known::Lehmer => gallery::Kind::Lehmer,
            Known::Hilbert => gallery::Kind::Hilbert,
            Known::Cauchy => gallery::Kind::Cauchy,
            Known::Gcd => {
                let gcd = |at: usize| Integer::from(at % n + 1).gcd(&Integer::from(at / n + 1));
                let entries = (0..n * n).map(gcd).collect::<Vec<_>>();
                return Matrix::from_integers(n, n, precision_bits, &entries).unwrap();
            }
        };
        generate(kind, Size { rows: n, cols: n, precision_bits }, 0).unwrap()
    }

    /// Whether matrix and factor are integers times powers of two.
    pub fn is_dyadic(self) -> bool {
        matches!(self, Known::Minij | Known::Pascal | Known::Moler)
    }

    /// At least log2 of the condition number of the matrix with its diagonal scaled to 1.
    pub fn condition_bits(self, n: usize) -> u32 {
        let n = n as u32;
        let squared = 2 * (32 - n.leading_zeros()) + 2;
        match self {
            Known::Minij | Known::Lehmer | Known::Gcd => squared,
            Known::Kms => 4,
            Known::Pascal | Known::Moler => 4 * n,
            Known::Hilbert | Known::Cauchy => 51 * n / 10 + 4,
        }
    }

    /// The factor's entry as `r sqrt(s)`; `row` and `col` from 0, `col <= row`.
    fn entry(self, row: usize, col: usize) -> (Rational, u32) {
        let (i, j) = (row as u32 + 1, col as u32 + 1);
        let factorial = |n: u32| Integer::from(Integer::factorial(n));
        match self {
            Known::Minij => (1.into(), 1),
            Known::Pascal => (Integer::from(i - 1).binomial(j - 1).into(), 1),
            Known::Moler => (if i == j { 1 } else { -1 }.into(), 1),
            Known::Kms if j == 1 => (Rational::from(1) >> (i - 1), 1),
            Known::Kms => (Rational::from(1) >> (i - j + 1), 3),
            Known::Lehmer => ((1, i).into(), 2 * j - 1),
            Known::Gcd if !i.is_multiple_of(j) => (0.into(), 1),
            Known::Gcd => (1.into(), (1..=j).filter(|&k| Integer::from(k).gcd(&Integer::from(j)) == 1).count() as u32),
            Known::Hilbert => ((factorial(i - 1).square(), factorial(i - j) * factorial(i + j - 1)).into(), 2 * j - 1),
            Known::Cauchy => {
                let product = (1..j).fold(Rational::from(1), |product, k| product * Rational::from((i - k, i + k)));
                (product / (i + j), 2 * j)
            }
        }
    }

    /// The factor's entry, rounded to `precision_bits` twice.
    pub fn factor(self, row: usize, col: usize, precision_bits: u32) -> Float {
        let (rational, square) = self.entry(row, col);
        Float::with_val(precision_bits, square).sqrt() * rational
    }
}

/// An `n x n` Gram matrix `P^T P` of a random integer `P` with `rows` rows, exactly; entries of `P` below `2^8`.
pub fn integer_gram(rows: usize, n: usize, precision_bits: u32, seed: u64) -> Matrix {
    let mut rng = Rng::new(seed);
    let p = (0..rows * n).map(|_| rng.within(255)).collect::<Vec<_>>();
    // A row of P is one integer, its entries 32 bits apart, and a row of the product a sum of multiples of them. Each
    // entry of the product is below 2^31: with 2^31 added to all of them they are the digits of that sum.
    assert!(rows < 1 << 15);
    let packed = |entry: &dyn Fn(usize) -> i64| {
        (0..n).rev().fold(Integer::new(), |above, col| (above << 32u32) + Integer::from(entry(col)))
    };
    let of_p = (0..rows).map(|k| packed(&|col| p[k + rows * col])).collect::<Vec<_>>();
    let offset = packed(&|_| 1 << 31);
    let mut entries = Vec::with_capacity(n * n);
    for row in 0..n {
        let mut sum = offset.clone();
        of_p.iter().zip(&p[rows * row..]).for_each(|(of_p, &entry)| sum += of_p * entry);
        let mut digits = sum.to_digits::<u32>(Order::Lsf);
        digits.resize(n, 0);
        entries.extend(digits.into_iter().map(|digit| Integer::from(i64::from(digit) - (1 << 31))));
    }
    Matrix::from_integers(n, n, precision_bits, &entries).unwrap()
}

/// A factor with unit diagonal times `2^-k_j`, `k_j` rising to `bits`, and the matrix it belongs to, exactly.
///
/// The condition number is about `2^(2 bits)`.
pub fn ill_conditioned(n: usize, bits: u32, seed: u64) -> (Matrix, Matrix) {
    const FRACTION: u32 = 20;
    let mut rng = Rng::new(seed);
    let grid = (bits + FRACTION) as usize; // entries are integers times 2^-grid
    let shift = |j: usize| grid - j * bits as usize / (n - 1).max(1) - FRACTION as usize;
    let mut factor = vec![Integer::new(); n * n];
    for j in 0..n {
        factor[j + n * j] = (Integer::from(1) << FRACTION) << shift(j) as u32;
        for i in j + 1..n {
            factor[i + n * j] = Integer::from(rng.within(1 << FRACTION)) << shift(j) as u32;
        }
    }
    let dot = |i: usize, j: usize| (0..=i.min(j)).map(|k| Integer::from(&factor[i + n * k] * &factor[j + n * k])).sum();
    let product: Vec<Integer> = (0..n * n).map(|at| dot(at % n, at / n)).collect();
    let exact = |entries: &[Integer], grid: i64| {
        let mut matrix = Matrix::zeros(n, n, 2 * bits + 2 * FRACTION + 32).unwrap();
        for (at, entry) in entries.iter().enumerate() {
            matrix.set_integer_exponent(at % n, at / n, entry, -grid).unwrap();
        }
        matrix
    };
    (exact(&factor, grid as i64), exact(&product, 2 * grid as i64))
}

/// Judges a factor; the error names `label`.
pub fn check_factor(a: &Matrix, factor: &Matrix, precision_bits: u32, label: &str) -> Verification {
    let ctx = Context::builder().threads(1).build().unwrap();
    let options = VerifyOptions::new().seed(1);
    let found = verify_cholesky(&ctx, a, factor, precision_bits, &options);
    found.unwrap_or_else(|error| panic!("{label}: {error}"))
}

/// Sets both entries `(i, j)` and `(j, i)`.
pub fn set_both(a: &mut Matrix, i: usize, j: usize, value: &Float) {
    a.set_float(i, j, value).unwrap();
    a.set_float(j, i, value).unwrap();
}

/// A copy at another precision, each entry rounded once.
pub fn rounded(a: &Matrix, precision_bits: u32) -> Matrix {
    Matrix::from_floats(a.rows(), a.cols(), precision_bits, &a.view().to_floats()).unwrap()
}
