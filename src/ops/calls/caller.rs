//! The interface that a caller of verbs over ranks implements (arrays, failures, the account of a call), and a call
//! with the ranks that make it: steps on which they agree, and the memory limit that the ranks of a node share.

use super::CallOutcome;
use super::account::CallAccount;
use crate::comm::{Reduction, Transport, agree};
use crate::context::Context;
use crate::error::Error;
use crate::matrix::{Matrix, MatrixView, MatrixViewMut, Uplo};
use crate::ops::Accuracy;
use crate::site::Team;
use crate::tile::LocalDiagonal;
use std::borrow::Cow;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

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
    pub(super) fn copied_bytes(&self) -> u64 {
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

    /// The reason for which a call fails.
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

/// A triangle of a matrix over ranks, or its diagonal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TrianglePart {
    /// `row >= column`.
    Lower,
    /// `row <= column`.
    Upper,
    /// `row > column`.
    StrictLower,
    /// `row < column`.
    StrictUpper,
    /// `row = column`.
    Diagonal,
}

impl TrianglePart {
    /// The triangle, of which this is all or a part.
    pub fn uplo(self) -> Uplo {
        match self {
            TrianglePart::Lower | TrianglePart::StrictLower | TrianglePart::Diagonal => Uplo::Lower,
            TrianglePart::Upper | TrianglePart::StrictUpper => Uplo::Upper,
        }
    }

    fn transposed(self) -> TrianglePart {
        match self {
            TrianglePart::Lower => TrianglePart::Upper,
            TrianglePart::Upper => TrianglePart::Lower,
            TrianglePart::StrictLower => TrianglePart::StrictUpper,
            TrianglePart::StrictUpper => TrianglePart::StrictLower,
            TrianglePart::Diagonal => TrianglePart::Diagonal,
        }
    }
}

impl From<Uplo> for TrianglePart {
    /// The triangle with its diagonal.
    fn from(uplo: Uplo) -> TrianglePart {
        if uplo == Uplo::Lower { TrianglePart::Lower } else { TrianglePart::Upper }
    }
}

/// The entries of a triangle that lie on this rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalTriangle {
    /// The diagonal within this rank's part.
    pub(super) diagonal: LocalDiagonal,
    /// The side of the diagonal that is used.
    pub(super) part: TrianglePart,
}

impl LocalTriangle {
    /// The same entries of the transpose.
    pub fn transposed(self) -> LocalTriangle {
        LocalTriangle { diagonal: self.diagonal.transposed(), part: self.part.transposed() }
    }

    /// The rows of column `col` in the part, of `rows` rows.
    pub fn rows(self, col: usize, rows: usize) -> Range<usize> {
        let LocalTriangle { diagonal, part } = self;
        match part {
            TrianglePart::Lower => diagonal.row_on(col)..rows,
            TrianglePart::Upper => 0..diagonal.row_below(col),
            TrianglePart::StrictLower => diagonal.row_below(col)..rows,
            TrianglePart::StrictUpper => 0..diagonal.row_on(col),
            TrianglePart::Diagonal => diagonal.row_on(col)..diagonal.row_below(col),
        }
    }

    /// Whether the triangle has no entry in a part of `rows` by `cols`.
    pub fn is_empty(self, rows: usize, cols: usize) -> bool {
        rows == 0 || (0..cols).all(|col| self.rows(col, rows).is_empty())
    }
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
    let message =
        format!("process {own} is a fork of process {made_by}, and only process {made_by} may make calls over ranks");
    Err(F::elsewhere(message, None, None))
}

/// Copies of operands and results that a caller keeps for calls of the same shape.
#[derive(Default)]
pub struct CopyPool(Mutex<Vec<Matrix>>);

/// The most copies that are kept.
const KEPT_MATRICES: usize = 4;

impl CopyPool {
    /// A matrix of the shape and precision with arbitrary numbers in it: a new one, or a kept one with the same number
    /// of entries.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Precision`].
    pub fn take(&self, rows: usize, cols: usize, precision_bits: u32) -> crate::Result<Matrix> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A copy of a transpose, along the caller's memory, also has room for a matrix that is copied as it is.
        let fits = |matrix: &Matrix| {
            Some(matrix.rows() * matrix.cols()) == rows.checked_mul(cols) && matrix.precision_bits() == precision_bits
        };
        if let Some(at) = kept.iter().rposition(fits) {
            return kept.remove(at).into_shape(rows, cols);
        }
        drop(kept);
        Matrix::zeros(rows, cols, precision_bits)
    }

    /// Keeps a matrix for the next call.
    pub fn give(&self, matrix: Matrix) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_MATRICES {
            kept.remove(0);
        }
        kept.push(matrix);
    }

    /// Frees what is kept.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The result of a step on this rank, if it succeeded on all ranks. Collective: a rank on which the step fails must not
/// leave the others waiting; it returns its own failure.
///
/// Cost: one reduction over the ranks.
///
/// # Errors
/// The failure of this rank, or of another one.
pub fn together<T, F: CallFailure>(world: &dyn Transport, own: Result<T, F>) -> Result<T, F> {
    let outcome = own.as_ref().map(|_| ()).map_err(|failure| Error::InvalidArgument(failure.message().into()));
    let agreed = agree(world, outcome);
    let own = own?;
    agreed?;
    Ok(own)
}

/// A call with the ranks that make it.
pub(super) struct CallRanks<'a, C> {
    pub caller: &'a C,
    pub world: &'a dyn Transport,
    pub node: &'a dyn Transport,
}

impl<'a, C: Caller> CallRanks<'a, C> {
    /// The ranks of `team`.
    pub fn new(caller: &'a C, team: &'a Team) -> CallRanks<'a, C> {
        CallRanks { caller, world: team.world(), node: team.node() }
    }

    pub fn account(&self) -> &'a CallAccount<'a> {
        self.caller.account()
    }

    /// The context, with the part of the memory limit that all ranks of the node do not hold. Collective.
    pub fn context(&self) -> CallOutcome<Cow<'a, Context>, C> {
        self.count_held()?;
        Ok(self.account().context())
    }

    /// Counts the bytes that the node's ranks hold, where any rank has a limit. Collective.
    pub fn count_held(&self) -> CallOutcome<(), C> {
        if self.account().is_limited() { self.count_node(0) } else { Ok(()) }
    }

    /// Takes `bytes` bytes of the memory limit, on each rank its own; refused on all ranks where a node has fewer.
    /// Collective.
    pub fn hold(&self, bytes: u64) -> CallOutcome<(), C> {
        let account = self.account();
        if !account.is_limited() {
            return Ok(account.hold_bytes(bytes)?);
        }
        self.count_node(bytes)?;
        let fits = account.hold_bytes(bytes);
        // The bytes that the others take now have been counted already.
        together(self.world, fits.map_err(C::Failure::from))
    }

    /// Notes the bytes that the node's other ranks hold, with `bytes` more on each rank. Collective over the node.
    fn count_node(&self, bytes: u64) -> CallOutcome<(), C> {
        let own = self.account().held_bytes().saturating_add(bytes);
        let mut sum = [own];
        self.node.all_reduce(Reduction::Sum, &mut sum)?;
        self.account().note_others(sum[0].saturating_sub(own));
        Ok(())
    }

    /// Gives back the bytes that a copy of an operand has taken.
    pub fn drop_input(&self, input: LocalInput<'_>) {
        let bytes = input.copied_bytes();
        self.account().release_bytes(bytes);
        self.account().count(|tally| tally.drop_copy(bytes));
        self.keep_input(input);
    }

    /// Keeps the memory of a copy for the next call.
    pub fn keep_input(&self, input: LocalInput<'_>) {
        if let LocalInput::Copied(matrix, _) = input {
            self.caller.keep(matrix);
        }
    }
}
