//! Systems over the rational numbers: matrices that answers are hard of, their exact solutions, and how right answers
//! are.

use super::Rng;
use rug::ops::Pow;
use rug::{Float, Integer, Rational};
use sunzi::{Accuracy, Matrix};

/// A matrix of rational numbers, row by row.
pub type Rows = Vec<Vec<Rational>>;

/// Symmetric matrices that lose digits, each in its own way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Family {
    /// `1 / (i + j + s)`.
    Hilbert,
    /// `V^T V` of powers of fractions.
    Vandermonde,
    /// Moments `(i + j + s)!`, whose rows lie far apart.
    Moments,
    /// Second differences, with a corner that makes them nearly singular.
    Differences,
    /// `G^T G + 2^-k I` of fewer rows than columns.
    Deficient,
    /// `r^|i - j|` with `r` near 1.
    Autoregressive,
}

/// All of them.
pub const FAMILIES: [Family; 6] = [
    Family::Hilbert,
    Family::Vandermonde,
    Family::Moments,
    Family::Differences,
    Family::Deficient,
    Family::Autoregressive,
];

/// A positive definite matrix of `n` rows.
pub fn definite(family: Family, n: usize, rng: &mut Rng) -> Rows {
    let shift = 1 + rng.below(3) as u32;
    let lost = 4 + rng.below(300) as u32;
    let tiny = || Rational::from((1, Integer::from(1) << lost));
    let made = |entry: &dyn Fn(usize, usize) -> Rational| -> Rows {
        (0..n).map(|row| (0..n).map(|col| entry(row.max(col), row.min(col))).collect()).collect()
    };
    match family {
        Family::Hilbert => made(&|row, col| Rational::from((1, row as u32 + col as u32 + shift))),
        Family::Vandermonde => {
            let nodes: Vec<Rational> = (0..n + 2).map(|i| Rational::from((i as u32 + shift, n as u32 + 3))).collect();
            made(&|row, col| nodes.iter().map(|node| Rational::from(node.pow((row + col) as u32))).sum())
        }
        Family::Moments => {
            made(&|row, col| Rational::from(Integer::from(Integer::factorial((row + col) as u32 + shift))))
        }
        Family::Differences => {
            // With a corner of 1 in place of 2 at one end, the determinant is that corner's excess at the other.
            let corner = Rational::from(1) + tiny();
            made(&|row, col| match row - col {
                0 if row == 0 => Rational::from(1),
                0 if row == n - 1 => corner.clone(),
                0 => Rational::from(2),
                1 => Rational::from(-1),
                _ => Rational::new(),
            })
        }
        Family::Deficient => {
            let rank = n - 1 - rng.below(n / 2);
            let g: Vec<Vec<i64>> = (0..rank).map(|_| (0..n).map(|_| rng.within(9)).collect()).collect();
            made(&|row, col| {
                let sum = g.iter().map(|g| Rational::from(g[row] * g[col])).sum::<Rational>();
                if row == col { sum + tiny() } else { sum }
            })
        }
        Family::Autoregressive => {
            let near = Rational::from(1) - tiny();
            made(&|row, col| Rational::from((&near).pow((row - col) as u32)))
        }
    }
}

/// Matrices that are not symmetric, each losing digits in its own way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum GeneralFamily {
    /// Small integers.
    Integers,
    /// `1 / (2 i + j + s)`.
    Hilbert,
    /// Powers of fractions.
    Vandermonde,
    /// Upper Hessenberg with determinant 1.
    Frank,
    /// Upper triangular with rows `r^i (0, 1, -c, -c, ...)`.
    Kahan,
    /// Small integers with rows and columns scaled far apart.
    Graded,
    /// A product of fewer columns, and `2^-k` added to its diagonal.
    Deficient,
    /// A triangle whose rows are in another order.
    PermutedTriangle,
    /// Constant diagonals.
    Toeplitz,
    /// Ones on the diagonal and in the last column, -1 below: the growth of pivoting is `2^(n - 1)`.
    Growing,
}

/// All of them.
pub const GENERAL_FAMILIES: [GeneralFamily; 10] = [
    GeneralFamily::Integers,
    GeneralFamily::Hilbert,
    GeneralFamily::Vandermonde,
    GeneralFamily::Frank,
    GeneralFamily::Kahan,
    GeneralFamily::Graded,
    GeneralFamily::Deficient,
    GeneralFamily::PermutedTriangle,
    GeneralFamily::Toeplitz,
    GeneralFamily::Growing,
];

fn made(n: usize, mut entry: impl FnMut(usize, usize) -> Rational) -> Rows {
    (0..n).map(|row| (0..n).map(|col| entry(row, col)).collect()).collect()
}

/// Entries of different signs and sizes, a third of them 0.
fn small(rng: &mut Rng) -> Rational {
    Rational::from(if rng.below(3) == 0 { 0 } else { rng.within(30) })
}

/// A power of two with an exponent of at most `most` in magnitude.
fn scale(rng: &mut Rng, most: i64) -> Rational {
    let exponent = rng.within(most);
    let power = Integer::from(1) << exponent.unsigned_abs() as u32;
    if exponent < 0 { Rational::from((1, power)) } else { Rational::from(power) }
}

/// A square matrix of `n` rows, nearly always regular.
pub fn general(family: GeneralFamily, n: usize, rng: &mut Rng) -> Rows {
    let shift = 1 + rng.below(3) as u32;
    let tiny = Rational::from((1, Integer::from(1) << (4 + rng.below(300) as u32)));
    match family {
        GeneralFamily::Integers => made(n, |_, _| small(rng)),
        GeneralFamily::Hilbert => made(n, |row, col| Rational::from((1, 2 * row as u32 + col as u32 + shift))),
        GeneralFamily::Vandermonde => {
            made(n, |row, col| Rational::from((row as u32 + shift, n as u32)).pow(col as u32))
        }
        GeneralFamily::Frank => made(n, |row, col| {
            let entry = if col + 1 < row { 0 } else { n - row.max(col) };
            Rational::from(entry)
        }),
        GeneralFamily::Kahan => {
            let ratio = Rational::from((1, 1 + rng.below(1000) as u32));
            let cosine = Rational::from((rng.within(9), 10));
            made(n, |row, col| {
                let entry = match row.cmp(&col) {
                    std::cmp::Ordering::Equal => Rational::from(1),
                    std::cmp::Ordering::Less => -cosine.clone(),
                    std::cmp::Ordering::Greater => Rational::new(),
                };
                entry * Rational::from((&ratio).pow(row as u32))
            })
        }
        GeneralFamily::Graded => {
            let (rows, cols): (Rows, Rows) = {
                let mut scales = || (0..n).map(|_| vec![scale(rng, 500)]).collect();
                (scales(), scales())
            };
            made(n, |row, col| small(rng) * &rows[row][0] * &cols[col][0])
        }
        GeneralFamily::Deficient => {
            let rank = n - 1 - rng.below(n / 2);
            let mut factor = || (0..n).map(|_| (0..rank).map(|_| rng.within(9)).collect()).collect();
            let (left, right): (Vec<Vec<i64>>, Vec<Vec<i64>>) = (factor(), factor());
            made(n, |row, col| {
                let sum: i64 = left[row].iter().zip(&right[col]).map(|(left, right)| left * right).sum();
                if row == col { Rational::from(sum) + &tiny } else { Rational::from(sum) }
            })
        }
        GeneralFamily::PermutedTriangle => {
            let step = if n.is_multiple_of(2) { n - 1 } else { n.div_ceil(2) };
            made(n, |row, col| {
                let own = row * step % n;
                if own > col { Rational::new() } else { Rational::from((1 + rng.within(20).abs(), shift)) }
            })
        }
        GeneralFamily::Toeplitz => {
            let diagonals: Vec<Rational> = (0..2 * n).map(|_| small(rng) + &tiny).collect();
            made(n, |row, col| diagonals[n + row - col].clone())
        }
        GeneralFamily::Growing => made(n, |row, col| match row.cmp(&col) {
            std::cmp::Ordering::Greater => Rational::from(-1),
            std::cmp::Ordering::Equal => Rational::from(1),
            std::cmp::Ordering::Less => {
                Rational::from(u32::from(col == n - 1)) + if row == 0 { tiny.clone() } else { Rational::new() }
            }
        }),
    }
}

/// A system to solve, and how.
pub struct System {
    /// What it is, for messages.
    pub label: String,
    pub a: Rows,
    pub b: Rows,
    /// Bits to compute at.
    pub bits: u32,
    /// Bits to round to before.
    pub read_bits: u32,
    pub accuracy: Accuracy,
}

impl System {
    pub fn random(family: Family, seed: u64) -> System {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(9);
        let a = definite(family, n, &mut rng);
        System::of(a, &format!("{family:?}, seed {seed}"), &mut rng)
    }

    pub fn general(family: GeneralFamily, seed: u64) -> System {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(9);
        let a = general(family, n, &mut rng);
        System::of(a, &format!("{family:?}, seed {seed}"), &mut rng)
    }

    fn of(a: Rows, name: &str, rng: &mut Rng) -> System {
        let (n, b) = (a.len(), right_sides(a.len(), rng));
        let bits = 30 + rng.below(420) as u32;
        let read_bits = bits + rng.pick(&[0, 20, 64, 500, 2000]);
        let accuracy = if rng.coin() { Accuracy::Norm } else { Accuracy::Entrywise };
        let cols = b[0].len();
        let label = format!("{name}, {n} rows, {cols} columns, {bits} bits, read at {read_bits}, {accuracy:?}");
        System { label, a, b, bits, read_bits, accuracy }
    }
}

/// One, four or nine right-hand sides.
pub fn right_sides(n: usize, rng: &mut Rng) -> Rows {
    let cols = rng.pick(&[1, 1, 4, 9]);
    let entry = |rng: &mut Rng| Rational::from((rng.within(1000), 1 + rng.below(30) as u32));
    (0..n).map(|_| (0..cols).map(|_| entry(rng)).collect()).collect()
}

/// The solution of `a x = b` for all columns of `b`, by elimination with pivots; `None` for a singular matrix.
pub fn solve(a: &Rows, b: &Rows) -> Option<Rows> {
    let n = a.len();
    let mut rows: Rows = a.iter().zip(b).map(|(a, b)| a.iter().chain(b).cloned().collect()).collect();
    for col in 0..n {
        let pivot = (col..n).find(|&row| rows[row][col] != 0)?;
        rows.swap(col, pivot);
        let inverse = Rational::from(rows[col][col].recip_ref());
        rows[col].iter_mut().skip(col).for_each(|entry| *entry *= &inverse);
        let own = rows[col].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(row, _)| *row != col) {
            let factor = row[col].clone();
            if factor != 0 {
                row.iter_mut().zip(&own).skip(col).for_each(|(entry, own)| *entry -= Rational::from(&factor * own));
            }
        }
    }
    Some(rows.into_iter().map(|row| row[n..].to_vec()).collect())
}

/// The determinant, by elimination with pivots.
pub fn determinant(a: &Rows) -> Rational {
    let (n, mut rows, mut product) = (a.len(), a.clone(), Rational::from(1));
    for col in 0..n {
        let Some(pivot) = (col..n).find(|&row| rows[row][col] != 0) else { return Rational::new() };
        if pivot != col {
            rows.swap(col, pivot);
            product = -product;
        }
        product *= &rows[col][col];
        let own = rows[col].clone();
        for row in &mut rows[col + 1..] {
            let factor = Rational::from(&row[col] / &own[col]);
            if factor != 0 {
                row.iter_mut().zip(&own).skip(col).for_each(|(entry, own)| *entry -= Rational::from(&factor * own));
            }
        }
    }
    product
}

/// The identity.
pub fn identity(n: usize) -> Rows {
    (0..n).map(|row| (0..n).map(|col| Rational::from(u32::from(row == col))).collect()).collect()
}

/// Rounded to so many bits, as a file of fractions is read; and those bits, where any entry changed.
pub fn rounded(rows: &Rows, cols: usize, bits: u32) -> (Matrix, Option<u32>) {
    let entry = |row: usize, col: usize| Float::with_val(bits, &rows[row][col]);
    let matrix = Matrix::from_fn(rows.len(), cols, bits, entry).unwrap();
    let is_exact = rows.iter().enumerate().all(|(row, own)| (0..cols).all(|col| matrix.float(row, col) == own[col]));
    (matrix, (!is_exact).then_some(bits))
}

/// `-log10` of the relative error in the maximum norm, of the worst column or of the whole; infinite for no error.
pub fn digits_of(got: &Matrix, exact: &Rows, by_columns: bool) -> f64 {
    let (mut worst, cols) = (f64::INFINITY, got.cols());
    let groups: Vec<Vec<usize>> =
        if by_columns { (0..cols).map(|col| vec![col]).collect() } else { vec![(0..cols).collect()] };
    for group in groups {
        let (mut error, mut size) = (Rational::new(), Rational::new());
        for (row, col) in (0..got.rows()).flat_map(|row| group.iter().map(move |&col| (row, col))) {
            let own = got.float(row, col).to_rational().unwrap();
            error = error.max((own - &exact[row][col]).abs());
            size = size.max(exact[row][col].clone().abs());
        }
        if error != 0 {
            let ratio = Float::with_val(64, error / size);
            worst = worst.min(-ratio.log10().to_f64());
        }
    }
    worst
}
