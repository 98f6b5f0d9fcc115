//! Exact products of big-float matrices, the bits a product must have, and the bound it must meet.

use rug::{Float, Integer};
use std::cmp::Ordering;
use sunzi::advanced::math::bound::working_bits;
use sunzi::advanced::math::scale::column_exponent;
use sunzi::{Matrix, MatrixView, Uplo};

/// The number `integer * 2^exponent`.
#[derive(Clone, Debug)]
pub struct Exact {
    pub integer: Integer,
    pub exponent: i64,
}

impl Exact {
    pub fn zero() -> Exact {
        Exact { integer: Integer::new(), exponent: 0 }
    }

    pub fn entry(view: &MatrixView<'_>, row: usize, col: usize) -> Exact {
        let (integer, exponent) = view.get(row, col).to_integer_exponent();
        Exact { integer, exponent }
    }

    pub fn float(value: &Float) -> Exact {
        match value.to_integer_exp() {
            Some((integer, exponent)) => Exact { integer, exponent: exponent.into() },
            None => Exact::zero(),
        }
    }

    pub fn times(&self, other: &Exact) -> Exact {
        Exact { integer: Integer::from(&self.integer * &other.integer), exponent: self.exponent + other.exponent }
    }

    pub fn negated(self) -> Exact {
        Exact { integer: -self.integer, exponent: self.exponent }
    }

    pub fn plus(mut self, other: Exact) -> Exact {
        if other.integer == 0 {
            return self;
        }
        if self.integer == 0 {
            return other;
        }
        if self.exponent == other.exponent {
            self.integer += other.integer;
            return self;
        }
        if self.exponent < other.exponent {
            self.integer += other.integer << (other.exponent - self.exponent) as u32;
            return self;
        }
        other.plus(self)
    }

    /// To nearest, ties to even, by MPFR.
    pub fn round(&self, precision_bits: u32) -> Float {
        Float::with_val(precision_bits, &self.integer) << self.exponent as i32
    }

    /// `round(self * 2^shift)` to nearest, ties to even.
    pub fn scaled(&self, shift: i64) -> Integer {
        let exponent = self.exponent + shift;
        if exponent >= 0 {
            return Integer::from(&self.integer << exponent as u32);
        }
        let unit = -exponent;
        if unit > i64::from(self.integer.significant_bits()) + 2 {
            return Integer::new();
        }
        let (floor, rest) = self.integer.clone().div_rem_floor(Integer::from(1) << unit as u32);
        match (rest << 1u32).cmp(&(Integer::from(1) << unit as u32)) {
            Ordering::Less => floor,
            Ordering::Equal if floor.is_even() => floor,
            _ => floor + 1u32,
        }
    }

    fn top(&self) -> i64 {
        i64::from(self.integer.significant_bits()) + self.exponent
    }

    /// Compares magnitudes.
    pub fn compare(&self, other: &Exact) -> Ordering {
        if self.integer == 0 || other.integer == 0 {
            return (self.integer != 0).cmp(&(other.integer != 0));
        }
        self.top().cmp(&other.top()).then_with(|| {
            let low = self.exponent.min(other.exponent);
            let align = |value: &Exact| Integer::from(value.integer.abs_ref()) << (value.exponent - low) as u32;
            align(self).cmp(&align(other))
        })
    }

    /// At most 200 bits of the magnitude, rounded down (`extra` 0) or up (`extra` 1).
    fn leading(&self, extra: u32) -> Exact {
        let drop = self.integer.significant_bits().saturating_sub(200);
        let integer = Integer::from(self.integer.abs_ref()) >> drop;
        let extra = if drop == 0 { 0 } else { extra };
        Exact { integer: integer + extra, exponent: self.exponent + i64::from(drop) }
    }
}

/// `sum_k left_ki right_kj`, exactly.
pub fn dot(left: &MatrixView<'_>, i: usize, right: &MatrixView<'_>, j: usize) -> Exact {
    dot_of(&column(left, i), &column(right, j))
}

fn column(view: &MatrixView<'_>, col: usize) -> Vec<Exact> {
    (0..view.rows()).map(|row| Exact::entry(view, row, col)).collect()
}

/// All columns.
fn columns(view: &MatrixView<'_>) -> Vec<Vec<Exact>> {
    (0..view.cols()).map(|col| column(view, col)).collect()
}

fn dot_of(left: &[Exact], right: &[Exact]) -> Exact {
    left.iter().zip(right).fold(Exact::zero(), |sum, (x, y)| sum.plus(x.times(y)))
}

/// Exact squared norms of all columns.
pub fn squared_norms(view: &MatrixView<'_>) -> Vec<Exact> {
    (0..view.cols()).map(|col| dot(view, col, view, col)).collect()
}

/// The library's scale exponent of a column, after a check of what defines it against the exact squared norm.
pub fn scale_exponent(view: &MatrixView<'_>, col: usize, square: &Exact) -> i64 {
    if square.integer.is_zero() {
        return 0;
    }
    let exponent = column_exponent((0..view.rows()).map(|row| view.get(row, col).head));
    let power = |exponent: i64| Exact { integer: Integer::from(1), exponent: 2 * exponent };
    assert_ne!(square.compare(&power(exponent)), Ordering::Greater, "the norm exceeds 2^{exponent}");
    assert_eq!(square.compare(&power(exponent - 3)), Ordering::Greater, "{exponent} is more than two too large");
    exponent
}

/// What is done with a product.
#[derive(Clone, Copy, Default)]
pub struct Factors<'a> {
    pub alpha: Option<&'a Float>,
    pub beta: Option<&'a Float>,
    pub accumulate: Option<&'a Matrix>,
}

impl Factors<'_> {
    /// `alpha * product + beta * accumulate_ij`, exactly.
    pub fn combine(&self, product: Exact, row: usize, col: usize) -> Exact {
        let scale = |value: Exact, factor: Option<&Float>| match factor {
            Some(factor) => value.times(&Exact::float(factor)),
            None => value,
        };
        let added = self.accumulate.map_or(Exact::zero(), |matrix| Exact::entry(&matrix.view(), row, col));
        scale(product, self.alpha).plus(scale(added, self.beta))
    }
}

/// The bits that `alpha * left^T right + beta * C` must have: scaled integers, their exact product, one rounding.
pub fn expected(left: &MatrixView<'_>, right: &MatrixView<'_>, precision_bits: u32, factors: Factors<'_>) -> Matrix {
    let working = i64::from(working_bits(precision_bits, left.rows()));
    let scaled = |view: &MatrixView<'_>| {
        let squares = squared_norms(view);
        (0..view.cols())
            .map(|col| {
                let shift = working - scale_exponent(view, col, &squares[col]);
                let column = (0..view.rows()).map(|row| Exact::entry(view, row, col).scaled(shift)).collect::<Vec<_>>();
                (shift, column)
            })
            .collect::<Vec<_>>()
    };
    let (left, right) = (scaled(left), scaled(right));
    let mut result = Matrix::zeros(left.len(), right.len(), precision_bits).unwrap();
    for (row, (left_shift, left)) in left.iter().enumerate() {
        for (col, (right_shift, right)) in right.iter().enumerate() {
            let mut integer = Integer::new();
            left.iter().zip(right).for_each(|(a, b)| integer += a * b);
            let product = Exact { integer, exponent: -left_shift - right_shift };
            result.set_float(row, col, &factors.combine(product, row, col).round(precision_bits)).unwrap();
        }
    }
    result
}

/// The exact `alpha * left^T right + beta * C` of integer matrices, in as many bits as `like` has.
pub fn expected_integers(left: &MatrixView<'_>, right: &MatrixView<'_>, like: &Matrix, factors: Factors<'_>) -> Matrix {
    let mut result = Matrix::zeros(left.cols(), right.cols(), like.precision_bits()).unwrap();
    let (left, right) = (columns(left), columns(right));
    for (col, right) in right.iter().enumerate() {
        for (row, left) in left.iter().enumerate() {
            let exact = factors.combine(dot_of(left, right), row, col);
            let rounded = exact.round(like.precision_bits());
            assert_eq!(Exact::float(&rounded).compare(&exact), Ordering::Equal, "too few bits for an exact result");
            result.set_float(row, col, &rounded).unwrap();
        }
    }
    result
}

/// A square matrix whose other triangle is made the mirror image of one.
pub fn mirrored(full: &Matrix, uplo: Uplo) -> Matrix {
    let mut whole = full.clone();
    for col in 0..full.cols() {
        for row in 0..full.rows() {
            if (uplo == Uplo::Lower && row >= col) || (uplo == Uplo::Upper && row <= col) {
                whole.set(row, col, full.get(row, col));
                whole.set(col, row, full.get(row, col));
            }
        }
    }
    whole
}

/// Asserts `|result_ij - (left^T right)_ij| <= 2^(1-b) ||l_i|| ||r_j||` for all entries, by exact integers.
pub fn assert_bound(result: &Matrix, left: &MatrixView<'_>, right: &MatrixView<'_>, precision_bits: u32, label: &str) {
    let (left_squares, right_squares) = (squared_norms(left), squared_norms(right));
    let (left, right) = (columns(left), columns(right));
    for (col, y) in right_squares.iter().enumerate() {
        for (row, x) in left_squares.iter().enumerate() {
            let error = dot_of(&left[row], &right[col]).negated().plus(Exact::entry(&result.view(), row, col));
            let unit = Exact { integer: Integer::from(1), exponent: 2 - 2 * i64::from(precision_bits) };
            let holds = |error: &Exact, x: &Exact, y: &Exact| {
                error.times(error).compare(&x.times(y).times(&unit)) != Ordering::Greater
            };
            // Squares of very long numbers are formed only where the leading bits leave it open.
            let clear = holds(&error.leading(1), &x.leading(0), &y.leading(0));
            assert!(clear || holds(&error, x, y), "{label}: entry ({row}, {col}) is beyond the bound");
        }
    }
}

/// The number without its sign.
pub fn magnitude(value: &Exact) -> Exact {
    Exact { integer: value.integer.clone().abs(), exponent: value.exponent }
}

/// The sum of some numbers, and of their magnitudes.
pub fn sums(terms: &[Exact]) -> (Exact, Exact) {
    let add = |sum: Exact, term: Exact| sum.plus(term);
    let sizes = terms.iter().map(magnitude).fold(Exact::zero(), add);
    (terms.iter().cloned().fold(Exact::zero(), add), sizes)
}

/// Asserts `|got - sum of terms| <= 2^(1 - bits) (sum of their magnitudes)`.
pub fn assert_beside_terms(got: &Exact, terms: &[Exact], bits: u32, label: &str) {
    let (sum, size) = sums(terms);
    let error = magnitude(&sum.negated().plus(got.clone()));
    let promise = Exact { exponent: size.exponent + 1 - i64::from(bits), ..size };
    assert_ne!(error.compare(&promise), Ordering::Greater, "{label}: beyond the promise");
}
