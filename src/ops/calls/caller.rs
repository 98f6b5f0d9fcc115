//! The interface that a caller of verbs over ranks provides: its arrays, its failures, and its statistics of a call.

use super::account::CallAccount;
use super::triangle::LocalTriangle;
use crate::error::Error;
use crate::matrix::{Matrix, MatrixView, MatrixViewMut};
use crate::ops::Accuracy;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why an argument is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentFault {
    /// It is not valid.
    Value,
    /// It has a wrong size.
    Size,
    /// It is not a valid precision.
    Precision,
}

/// The reason why a call fails, in the form of a caller.
pub trait CallFailure: From<Error> {
    /// The library's error about an argument; the message begins with its name.
    fn about(argument: &'static str, error: Error) -> Self;

    /// An argument that is refused; `message` goes on after its name.
    fn refused(argument: &'static str, why: ArgumentFault, message: String) -> Self;

    /// A failure of another rank: its message, and the argument and the entry at fault.
    fn elsewhere(message: String, argument: Option<&'static str>, entry: Option<usize>) -> Self;

    /// The ranks make different calls.
    fn different(message: &str) -> Self;

    /// A defect of the library.
    fn defect(message: String) -> Self;

    /// The same failure of an entry of its argument, counted from 1.
    fn with_entry(self, entry: Option<usize>) -> Self;

    /// One line with the numbers.
    fn message(&self) -> &str;

    /// The argument that is at fault.
    fn argument(&self) -> Option<&'static str>;

    /// The number of the faulty entry of that argument, from 1, if the argument is a descriptor.
    fn entry(&self) -> Option<usize>;
}

/// This rank's part of a matrix in the caller's arrays.
pub trait LocalArray: Sized {
    /// Its name as an argument, for messages.
    fn name(&self) -> &'static str;

    /// Rows.
    fn rows(&self) -> usize;

    /// Columns.
    fn cols(&self) -> usize;

    /// The same entries as the transpose.
    fn transposed(self) -> Self;

    /// Whether its numbers are read where they lie.
    fn is_in_place(&self) -> bool;

    /// Whether [`LocalArray::place_for`] gives a place for numbers of these bits; false if there are no entries.
    fn has_place_for(&self, precision_bits: u32) -> bool;

    /// The entries as a matrix of these bits that can be filled where it lies.
    fn place_for(&mut self, precision_bits: u32) -> Option<MatrixViewMut<'_>>;
}

/// An operand that has been read.
pub enum LocalInput<'a> {
    /// A copy, and whether it is a copy of the transpose.
    Copied(Matrix, bool),
    /// The caller's own memory.
    InPlace(MatrixView<'a>),
}

impl LocalInput<'_> {
    /// The numbers.
    pub fn view(&self) -> MatrixView<'_> {
        match self {
            LocalInput::Copied(matrix, false) => matrix.view(),
            LocalInput::Copied(matrix, true) => matrix.transposed(),
            LocalInput::InPlace(view) => *view,
        }
    }

    /// Bytes of the copy.
    pub fn copied_bytes(&self) -> u64 {
        match self {
            LocalInput::Copied(matrix, _) => matrix.bytes(),
            LocalInput::InPlace(_) => 0,
        }
    }
}

/// An item of a call's report.
#[derive(Clone, Copy, Debug)]
pub enum CallNote {
    /// Bits of the result.
    Precision(u32),
    /// The accuracy of entries that was reached, and the bits that it needed in addition to those for norms.
    Reached(Accuracy, u32),
    /// The bits of a solution.
    Solution(u32),
}

/// One call of a caller: the access to its arrays, and its account.
pub trait Caller {
    /// This rank's part of a matrix.
    type Array: LocalArray;

    /// Why a call fails.
    type Failure: CallFailure;

    /// The bytes of the call.
    fn account(&self) -> &CallAccount<'_>;

    /// Takes an operand in, or a triangle of it: copies its numbers, whose bytes it holds, or shows them where they
    /// are.
    ///
    /// # Errors
    /// A number that cannot be read; memory.
    fn read<'b>(
        &self,
        array: &'b Self::Array,
        triangle: Option<LocalTriangle>,
    ) -> Result<LocalInput<'b>, Self::Failure>;

    /// The precision of a result that goes to a triangle of the array, or to all of it, at least 2.
    ///
    /// # Errors
    /// An entry that has none.
    fn result_bits(&self, array: &Self::Array, triangle: Option<LocalTriangle>) -> Result<u32, Self::Failure>;

    /// Stores a matrix of the array's shape, each number rounded to the precision of its entry, and keeps its memory.
    ///
    /// # Errors
    /// A number that cannot be stored.
    fn write(
        &self,
        array: &mut Self::Array,
        triangle: Option<LocalTriangle>,
        matrix: Matrix,
    ) -> Result<(), Self::Failure>;

    /// A matrix of arbitrary contents for numbers from other ranks; its bytes are held already.
    ///
    /// # Errors
    /// Memory.
    fn space(&self, rows: usize, cols: usize, precision_bits: u32) -> Result<Matrix, Self::Failure>;

    /// Keeps the memory of a matrix for the next call.
    fn keep(&self, matrix: Matrix);

    /// Notes a line of the report.
    fn note(&self, _note: CallNote) {}
}

/// The result of `work`; a panic in it is a failure.
///
/// # Errors
/// The errors of `work`, an internal defect, and refused memory.
pub fn caught<T, F: CallFailure>(work: impl FnOnce() -> Result<T, F>) -> Result<T, F> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let panic = match panic.downcast::<Error>() {
            Ok(refused) => return Err(F::from(*refused)),
            Err(panic) => panic,
        };
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let text = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        Err(F::defect(format!("a defect of the library: {text}")))
    })
}

/// Returns an error for a call over ranks in a fork of the process `made_by`, which is not one of the ranks.
///
/// # Errors
/// The failure that names both processes.
pub fn check_process<F: CallFailure>(made_by: u32) -> Result<(), F> {
    let own = std::process::id();
    if own == made_by {
        return Ok(());
    }
    let message = format!("process {own} is a fork of process {made_by}; only that one may make calls over ranks");
    Err(F::elsewhere(message, None, None))
}
