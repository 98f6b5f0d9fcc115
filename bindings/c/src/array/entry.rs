//! `Entry`: one number as a C library stores it.

use crate::failure::Failure;
use crate::types::sunzi_status::{SUNZI_INVALID_ENTRY, SUNZI_NOT_FINITE};
use sunzi::advanced::math::float::round_integer;
use sunzi::{Error, FloatRef, Head, MAXIMUM_EXPONENT};

/// The reason why an entry cannot be read or written.
#[derive(Clone, Debug, PartialEq)]
pub enum Flaw {
    /// NaN or infinite.
    NotFinite(&'static str),
    /// An exponent beyond those that a matrix can hold.
    Exponent(i64),
    /// No number of its kind, and why.
    Malformed(String),
    /// It has more bits than the matrix that it is read into.
    Wider,
}

impl Flaw {
    /// The failure of the argument `name` whose entry `(row, column)` it is.
    pub fn at(self, name: &'static str, row: usize, column: usize) -> Failure {
        let kind = match self {
            Flaw::Exponent(exponent) => {
                let error = Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT };
                return Failure::about(name, error);
            }
            Flaw::NotFinite(kind) => {
                let failure = Failure::about(name, Error::NotFinite { row, column, kind });
                debug_assert_eq!(failure.status, SUNZI_NOT_FINITE);
                return failure;
            }
            Flaw::Malformed(message) => message,
            Flaw::Wider => "changed while it was read".into(),
        };
        let message = format!("entry at row {row}, column {column} {kind}");
        Failure { place: Some((row, column)), ..Failure::of(SUNZI_INVALID_ENTRY, name, message) }
    }
}

/// A number as a C library stores it: a small head in an array, limbs behind a pointer.
pub trait Entry: Copy + Send + Sync {
    /// Bits that hold the number exactly.
    fn bits(self) -> Result<u32, Flaw>;

    /// Bits of a result that is stored here.
    fn result_bits(self) -> Result<u32, Flaw>;

    /// Copies the number into `limbs`, in the form of [`sunzi::FloatRef`] at `precision_bits`, all of them written.
    ///
    /// # Safety
    /// The pointer to the limbs is null, or points to as many as the precision of the head needs.
    unsafe fn read(self, precision_bits: u32, limbs: &mut [u64]) -> Result<Head, Flaw>;

    /// [`Entry::read`] of the most frequent kind of number, without a call; `None` for all others, whose limbs may have
    /// been written.
    ///
    /// # Safety
    /// As [`Entry::read`]; the entry is initialised.
    #[inline(always)]
    unsafe fn read_plain(_place: *const Self, _precision_bits: u32, _limbs: &mut [u64]) -> Option<Head> {
        None
    }

    /// Stores `value`, rounded to nearest even at the entry's own precision.
    ///
    /// # Safety
    /// `place` points to an initialised entry, with room for the limbs of its precision, that no other thread uses.
    unsafe fn write(place: *mut Self, value: Value<'_>) -> Result<(), Flaw>;
}

/// A number to be stored.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    /// The number.
    pub number: FloatRef<'a>,
    /// Its precision.
    pub precision_bits: u32,
}

impl Value<'_> {
    /// Writes the significand at `bits` bits, rounded to nearest even if that is less than it has; `limbs` has exactly
    /// the length for them. Returns the head.
    #[inline]
    pub fn fit(&self, bits: u32, limbs: &mut [u64]) -> Head {
        let FloatRef { head, limbs: magnitude } = self.number;
        if bits < self.precision_bits {
            let exponent = head.exponent() - magnitude.len() as i64 * 64;
            return round_integer(head.is_negative(), magnitude, exponent, bits, limbs);
        }
        let (low, top) = limbs.split_at_mut(limbs.len() - magnitude.len());
        if !low.is_empty() {
            low.fill(0); // a call, also for nothing
        }
        copy_limbs(top, magnitude);
        head
    }
}

/// Copies as many limbs as both have (asserted); without a call for the numbers that are met most often.
#[inline(always)]
pub fn copy_limbs(to: &mut [u64], from: &[u64]) {
    match to.len() {
        4 => copy::<4>(to, from),
        8 => copy::<8>(to, from),
        16 => copy::<16>(to, from),
        _ => to.copy_from_slice(from),
    }
}

#[inline(always)]
fn copy<const N: usize>(to: &mut [u64], from: &[u64]) {
    let to: &mut [u64; N] = to.try_into().expect("N limbs");
    *to = *<&[u64; N]>::try_from(from).expect("N limbs");
}

/// Refuses exponents that a matrix cannot hold.
#[inline]
pub fn check_exponent(exponent: i64) -> Result<i64, Flaw> {
    if exponent.unsigned_abs() > MAXIMUM_EXPONENT as u64 { Err(Flaw::Exponent(exponent)) } else { Ok(exponent) }
}
