//! The last step of an entry: the exact product, times alpha, plus beta times an entry of the matrix added,
//! rounded once; and the check that operands of exact arithmetic are integers.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head, bit_length, round_integer};
use crate::matrix::{EntryIndex, MAXIMUM_EXPONENT, MatrixView, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::exact_sum::{ExactEntry, round_sum};
use rug::integer::Order;
use rug::{Float, Integer};

/// `alpha * product + beta * addend`; absent scalars are 1, an absent matrix is 0.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue<'a> {
    /// Scalar of the product.
    alpha: Option<&'a Float>,
    /// Scalar of the matrix added.
    beta: Option<&'a Float>,
    /// The matrix added.
    addend: Option<AddedMatrix<'a>>,
    /// The least that computes it.
    form: EpilogueForm,
}

/// The matrix that a product is added to.
#[derive(Clone, Copy)]
pub(crate) enum AddedMatrix<'a> {
    /// All of it.
    Whole(MatrixView<'a>),
    /// The triangle that is computed; the contents of the other are undefined.
    Triangle(MatrixView<'a>, Uplo),
    /// The tiles of one rank, which needs only their entries.
    Tiles(&'a DistMatrix),
}

impl<'a> AddedMatrix<'a> {
    #[inline]
    fn get(&self, place: EntryIndex) -> FloatRef<'a> {
        match self {
            AddedMatrix::Whole(view) | AddedMatrix::Triangle(view, _) => view.get(place.row, place.col),
            AddedMatrix::Tiles(matrix) => matrix.entry(place.row, place.col),
        }
    }

    fn precision_bits(&self) -> u32 {
        match self {
            AddedMatrix::Whole(view) | AddedMatrix::Triangle(view, _) => view.precision_bits(),
            AddedMatrix::Tiles(matrix) => matrix.precision_bits(),
        }
    }

    fn shape(&self) -> (usize, usize) {
        match self {
            AddedMatrix::Whole(view) | AddedMatrix::Triangle(view, _) => (view.rows(), view.cols()),
            AddedMatrix::Tiles(matrix) => (matrix.map().rows, matrix.map().cols),
        }
    }

    /// The parts that are held here, as views.
    fn try_each(&self, mut visit: impl FnMut(MatrixView<'a>) -> Result<()>) -> Result<()> {
        match self {
            AddedMatrix::Whole(view) => visit(*view),
            AddedMatrix::Triangle(view, uplo) => (0..view.cols()).try_for_each(|col| {
                let rows = if *uplo == Uplo::Lower { col..view.rows() } else { 0..col + 1 };
                let first = rows.start;
                visit(view.block(rows, col..col + 1)?).map_err(|error| match error {
                    Error::NotInteger { row, column } => Error::NotInteger { row: row + first, column: column + col },
                    other => other,
                })
            }),
            AddedMatrix::Tiles(matrix) => matrix.tiles().iter().try_for_each(|(_, tile)| visit(tile.view())),
        }
    }
}

/// The form that a combination reduces to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EpilogueForm {
    /// The product itself.
    Plain,
    /// The product times a power of two.
    Scaled(Power),
    /// The product and the matrix, each times a power of two.
    Sum { product: Power, added: Power },
    /// Other scalars.
    General,
}

/// A scalar whose product with a number needs no multiplication: `2^exponent`, or its negative.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Power {
    negative: bool,
    exponent: i64,
}

impl Power {
    /// The scalar as such a number, where it is one; an absent one is 1.
    fn of(scalar: Option<&Float>) -> Option<Power> {
        let Some(scalar) = scalar else { return Some(Power { negative: false, exponent: 0 }) };
        let exponent = scalar.get_exp()? - 1;
        let is_power = *scalar.as_abs() == Float::with_val(2, 1) << exponent;
        is_power.then(|| Power { negative: scalar.is_sign_negative(), exponent: exponent.into() })
    }

    fn is_one(self) -> bool {
        !self.negative && self.exponent == 0
    }

    #[inline]
    fn times<'e>(self, number: ExactEntry<'e>) -> ExactEntry<'e> {
        let (negative, exponent) = (number.negative != self.negative, number.exponent + self.exponent);
        ExactEntry { negative, exponent, ..number }
    }
}

impl<'a> Epilogue<'a> {
    /// `alpha * product + beta * addend`.
    pub fn new(alpha: Option<&'a Float>, beta: Option<&'a Float>, addend: Option<AddedMatrix<'a>>) -> Self {
        let form = match (Power::of(alpha), addend.map(|_| Power::of(beta))) {
            (Some(product), None) if product.is_one() => EpilogueForm::Plain,
            (Some(product), None) => EpilogueForm::Scaled(product),
            (Some(product), Some(Some(added))) => EpilogueForm::Sum { product, added },
            _ => EpilogueForm::General,
        };
        Epilogue { alpha, beta, addend, form }
    }

    /// Whether the result is the product, without scalars and without an added matrix.
    pub fn is_plain(&self) -> bool {
        self.form == EpilogueForm::Plain
    }

    /// Refuses an added matrix of another shape, scalars that are not finite, and, for exact integers, scalars and
    /// entries that are not integers.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], [`Error::ShapeMismatch`], [`Error::NotInteger`].
    pub fn check(&self, rows: usize, cols: usize, exact_integers: bool) -> Result<()> {
        self.check_scalars(exact_integers)?;
        let Some(addend) = self.addend else { return Ok(()) };
        if addend.shape() != (rows, cols) {
            return Err(Error::shape_mismatch("accumulate", (rows, cols), (addend.shape().0, addend.shape().1)));
        }
        if exact_integers { addend.try_each(check_integers) } else { Ok(()) }
    }

    /// Refuses scalars that are not finite or, for exact integers, not integers.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check_scalars(&self, exact_integers: bool) -> Result<()> {
        for (name, scalar) in [("alpha", self.alpha), ("beta", self.beta)] {
            let Some(scalar) = scalar else { continue };
            if !scalar.is_finite() {
                return Err(Error::InvalidArgument(format!("{name} is {scalar}: it must be finite")));
            }
            if exact_integers && !scalar.is_integer() {
                return Err(Error::InvalidArgument(format!(
                    "{name} is not an integer, which an exact integer product requires"
                )));
            }
        }
        Ok(())
    }

    /// Bits of the largest integer among the entries added that are held here.
    pub fn addend_bits(&self) -> u64 {
        let mut largest = 0;
        let each = |view: MatrixView<'_>| {
            let heads = (0..view.cols()).flat_map(|col| (0..view.rows()).map(move |row| view.get(row, col).head));
            largest = heads.fold(largest, |largest, head| head.exponent().max(0).max(largest));
            Ok(())
        };
        self.addend.map_or(Ok(()), |addend| addend.try_each(each)).expect("no visit fails");
        largest as u64
    }

    /// Bits that hold `alpha * q + beta * c` exactly, for integers `|q| < 2^product_bits` and `|c| < 2^addend_bits`.
    pub fn exact_bits(&self, product_bits: u32, addend_bits: u64) -> u64 {
        let bits = |scalar: Option<&Float>| {
            scalar.map_or(0, |value| value.get_exp().map_or(0, |exponent| exponent.max(0) as u64))
        };
        let product = u64::from(product_bits) + bits(self.alpha);
        if self.addend.is_none() {
            return product;
        }
        product.max(addend_bits + bits(self.beta)) + 1
    }

    /// The head of an entry of a plain product that was rounded elsewhere.
    ///
    /// # Errors
    /// As [`Epilogue::finish`].
    #[inline]
    pub fn check_rounded(&self, head: Head, place: EntryIndex) -> Result<Head> {
        check_range(head.exponent(), place)?;
        Ok(head)
    }

    /// Rounds one entry of the result to `precision_bits` into `limbs`.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] where the result leaves the exponent range.
    #[inline]
    pub fn finish(
        &self,
        exact: ExactEntry<'_>,
        place: EntryIndex,
        precision_bits: u32,
        limbs: &mut [u64],
    ) -> Result<Head> {
        let head = match self.form {
            EpilogueForm::Plain => {
                round_integer(exact.negative, exact.magnitude, exact.exponent, precision_bits, limbs)
            }
            EpilogueForm::Scaled(power) => {
                let ExactEntry { negative, magnitude, exponent } = power.times(exact);
                round_integer(negative, magnitude, exponent, precision_bits, limbs)
            }
            EpilogueForm::Sum { product, added } => {
                let addend = self.addend.map_or(ExactEntry::ZERO, |addend| addend.get(place).into());
                match round_sum(&product.times(exact), &added.times(addend), precision_bits, limbs) {
                    Some(head) => head,
                    None => self.combine(exact, place, precision_bits, limbs)?,
                }
            }
            EpilogueForm::General => self.combine(exact, place, precision_bits, limbs)?,
        };
        check_range(head.exponent(), place)?;
        Ok(head)
    }

    /// The general case, through MPFR's correctly rounded sum of two products.
    ///
    /// Exponents are taken out first, so that no intermediate leaves MPFR's range.
    fn combine(
        &self,
        exact: ExactEntry<'_>,
        place: EntryIndex,
        precision_bits: u32,
        limbs: &mut [u64],
    ) -> Result<Head> {
        let one = Float::with_val(2, 1);
        let zero = Float::new(2);
        let [alpha, beta] = [self.alpha, self.beta].map(|scalar| Normalized::new(scalar.unwrap_or(&one)));
        let added = self.addend.map_or(zero, |addend| addend.get(place).to_float(addend.precision_bits()));
        let (mut product, mut added) = (Normalized::exact(exact), Normalized::new(&added));
        let left = alpha.exponent + product.exponent;
        let right = beta.exponent + added.exponent;
        let common = match (alpha.is_zero() || product.is_zero(), beta.is_zero() || added.is_zero()) {
            (true, _) => right,
            (_, true) => left,
            _ => left.max(right),
        };
        // A part that lies 2^29 bits below the other only decides on which side of a tie the sum is.
        let shift = |exponent: i64| (exponent - common).clamp(-(1 << 29), 0) as i32;
        product.fraction <<= shift(left);
        added.fraction <<= shift(right);
        let sum = alpha.fraction.mul_add_mul_ref(&product.fraction, &beta.fraction, &added.fraction);
        let sum = Normalized::new(&Float::with_val(precision_bits, sum));
        if sum.is_zero() {
            limbs.fill(0);
            return Ok(Head::ZERO);
        }
        let (integer, exponent) = sum.fraction.to_integer_exp().expect("a sum of finite products is finite");
        let exponent = i64::from(exponent) + sum.exponent + common;
        check_range(exponent + i64::from(integer.significant_bits()), place)?;
        Ok(round_integer(integer < 0, integer.as_limbs(), exponent, precision_bits, limbs))
    }
}

/// A number as a fraction in `[1/2, 1)` and a power of two, or 0.
struct Normalized {
    fraction: Float,
    exponent: i64,
}

impl Normalized {
    fn new(value: &Float) -> Normalized {
        let exponent = value.get_exp().unwrap_or(0);
        Normalized { fraction: Float::with_val(value.prec(), value >> exponent), exponent: exponent.into() }
    }

    /// An exact number, without rounding.
    fn exact(value: ExactEntry<'_>) -> Normalized {
        let bits = bit_length(value.magnitude);
        let integer = Integer::from_digits(value.magnitude, Order::Lsf);
        let mut normalized = Normalized::new(&Float::with_val(bits.max(2) as u32, &integer));
        normalized.exponent += value.exponent;
        if value.negative {
            normalized.fraction = -normalized.fraction;
        }
        normalized
    }

    fn is_zero(&self) -> bool {
        self.fraction.is_zero()
    }
}

/// Refuses an exponent that a matrix cannot hold.
fn check_range(exponent: i64, place: EntryIndex) -> Result<()> {
    if exponent.unsigned_abs() > MAXIMUM_EXPONENT as u64 {
        let (row, column) = (place.row, place.col);
        return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
    }
    Ok(())
}

/// Refuses a matrix with an entry that is not an integer.
///
/// # Errors
/// [`Error::NotInteger`] names the first such entry, column by column.
pub(crate) fn check_integers(view: MatrixView<'_>) -> Result<()> {
    for column in 0..view.cols() {
        if let Some(row) = (0..view.rows()).find(|&row| !is_integer(view.get(row, column))) {
            return Err(Error::NotInteger { row, column });
        }
    }
    Ok(())
}

/// Whether the number has no fractional part.
fn is_integer(value: FloatRef<'_>) -> bool {
    if value.head.is_zero() {
        return true;
    }
    let fraction_bits = value.limbs.len() as i64 * 64 - value.head.exponent();
    let zeros = value
        .limbs
        .iter()
        .position(|&limb| limb != 0)
        .map_or(0, |first| first as i64 * 64 + i64::from(value.limbs[first].trailing_zeros()));
    zeros >= fraction_bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::limbs_for;
    use crate::matrix::Matrix;
    use rug::rand::RandState;

    #[test]
    fn scalars_that_are_powers_of_two_give_the_bits_of_the_general_way() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(84));
        let scalar = |value: f64| Float::with_val(53, value);
        let scalars = [1.0, -1.0, 0.5, -0.5, 4.0, -2f64.powi(-70), 2f64.powi(90), 0.75, 0.0].map(scalar);
        for case in 0..3000usize {
            let (bits, magnitude_bits) = (2 + rng.below(200), rng.below(500));
            let integer = Integer::from(Integer::random_bits(magnitude_bits, &mut rng));
            let mut magnitude = integer.to_digits::<u64>(Order::Lsf);
            magnitude.resize(magnitude.len() + case % 2, 0);
            let (negative, exponent) = (rng.below(2) == 1, i64::from(rng.below(300)) - 300);
            let exact = ExactEntry { negative, magnitude: &magnitude, exponent };
            let mut added = Matrix::zeros(1, 1, 100).unwrap();
            let entry = Float::with_val(100, Float::random_bits(&mut rng)) - 0.5f64;
            added.set_float(0, 0, &if case % 11 == 0 { Float::new(100) } else { entry }).unwrap();
            let mut pick = || Some(&scalars[rng.below(scalars.len() as u32) as usize]).filter(|_| case % 5 > 0);
            let (alpha, beta) = (pick(), pick());
            let addend = (case % 3 > 0).then(|| AddedMatrix::Whole(added.view()));
            let epilogue = Epilogue::new(alpha, beta, addend);
            let (mut found, mut wanted) = (vec![7; limbs_for(bits)], vec![9; limbs_for(bits)]);
            let place = EntryIndex { row: 0, col: 0 };
            let head = epilogue.finish(exact, place, bits, &mut found).unwrap();
            let want = epilogue.combine(exact, place, bits, &mut wanted).unwrap();
            let is_general = epilogue.form == EpilogueForm::General;
            assert_eq!((head, found), (want, wanted), "case {case}: {alpha:?}, {beta:?}, general: {is_general}");
            let powers = |scalar: Option<&Float>| scalar.is_none_or(|value| *value != 0.75 && *value != 0);
            assert_eq!(is_general, !(powers(alpha) && (addend.is_none() || powers(beta))), "case {case}");
        }
    }

    #[test]
    fn powers_of_two_leave_the_exponent_range_with_an_error() {
        let far = Float::with_val(2, 1) << (1 << 29);
        let exact = ExactEntry { negative: false, magnitude: &[1], exponent: MAXIMUM_EXPONENT };
        let outside = Epilogue::new(Some(&far), None, None).finish(exact, EntryIndex { row: 3, col: 4 }, 64, &mut [0]);
        let wanted = MAXIMUM_EXPONENT + (1 << 29) + 1;
        assert!(matches!(outside, Err(Error::ExponentRange { row: 3, column: 4, exponent, .. }) if exponent == wanted));
    }

    #[test]
    fn integers_are_told_from_fractions() {
        let values = [0.0, 1.0, -3.0, 0.5, 1e300, 2.25, 4_503_599_627_370_496.5, 1e-300];
        let matrix = Matrix::from_f64s(values.len(), 1, 200, &values).unwrap();
        for (row, value) in values.iter().enumerate() {
            assert_eq!(is_integer(matrix.get(row, 0)), value.fract() == 0.0, "{value}");
        }
    }
}
