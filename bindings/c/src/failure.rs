//! `Failure`: why a call ends, as the code, the message and the numbers that C programs read.

use crate::types::sunzi_status::{self, *};
use sunzi::Error;
use sunzi::advanced::calls::{ArgumentFault, CallFailure};

/// The reason why a call fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The code.
    pub status: sunzi_status,
    /// One line with the numbers.
    pub message: String,
    /// The argument that is at fault, by its name in the header.
    pub argument: Option<&'static str>,
    /// The number of the faulty entry of that argument, from 1, if the argument is a descriptor.
    pub entry: Option<usize>,
    /// Row and column, from 0, of the entry that is at fault; twice the same for an index.
    pub place: Option<(usize, usize)>,
}

impl Failure {
    /// A failure that belongs to no argument.
    pub fn new(status: sunzi_status, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), argument: None, entry: None, place: None }
    }

    /// A failure of an argument; `message` continues the sentence after its name.
    pub fn of(status: sunzi_status, argument: &'static str, message: impl AsRef<str>) -> Failure {
        let message = format!("{argument}: {}", message.as_ref());
        Failure { argument: Some(argument), ..Failure::new(status, message) }
    }

    /// A null pointer.
    pub fn null(argument: &'static str) -> Failure {
        Failure::of(SUNZI_NULL_POINTER, argument, "the pointer is null")
    }

    /// The library's error about an argument.
    pub fn about(argument: &'static str, error: Error) -> Failure {
        let Failure { status, message, place, .. } = Failure::from(error);
        Failure { place, ..Failure::of(status, argument, message) }
    }
}

impl CallFailure for Failure {
    fn about(argument: &'static str, error: Error) -> Failure {
        Failure::about(argument, error)
    }

    fn refused(argument: &'static str, why: ArgumentFault, message: String) -> Failure {
        let status = match why {
            ArgumentFault::Value => SUNZI_INVALID_ARGUMENT,
            ArgumentFault::Size => SUNZI_INVALID_SIZE,
            ArgumentFault::Precision => SUNZI_PRECISION,
        };
        Failure::of(status, argument, message)
    }

    fn elsewhere(message: String, argument: Option<&'static str>, entry: Option<usize>) -> Failure {
        Failure { argument, entry, ..Failure::new(SUNZI_COMMUNICATION, message) }
    }

    fn different(message: &str) -> Failure {
        Failure::new(SUNZI_INVALID_ARGUMENT, message)
    }

    fn defect(message: String) -> Failure {
        Failure::new(SUNZI_INTERNAL, message)
    }

    fn with_entry(self, entry: Option<usize>) -> Failure {
        Failure { entry, ..self }
    }

    fn message(&self) -> &str {
        &self.message
    }

    fn argument(&self) -> Option<&'static str> {
        self.argument
    }

    fn entry(&self) -> Option<usize> {
        self.entry
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        if let Error::Problem { problem, count, error } = error {
            let failure = Failure::from(*error);
            return Failure { message: format!("problem {problem} of {count}: {}", failure.message), ..failure };
        }
        if let Error::Rank { own: Some(own), .. } = error {
            return Failure::from(*own);
        }
        let status = match &error {
            Error::NotFinite { .. } => SUNZI_NOT_FINITE,
            Error::ExponentRange { .. } => SUNZI_EXPONENT_RANGE,
            Error::ShapeMismatch { .. } | Error::NotSquare { .. } | Error::DimensionOverflow { .. } => {
                SUNZI_INVALID_SIZE
            }
            Error::Precision { .. } => SUNZI_PRECISION,
            Error::MemoryLimit { .. } => SUNZI_MEMORY_LIMIT,
            Error::OutOfMemory { .. } | Error::Threads { .. } => SUNZI_OUT_OF_MEMORY,
            Error::KernelUnavailable { .. } | Error::NoDevice(_) => SUNZI_UNAVAILABLE,
            Error::Device(_) | Error::DeviceLost(_) | Error::DeviceMemory { .. } | Error::DeviceLimit { .. } => {
                SUNZI_DEVICE
            }
            Error::SelfCheck { .. } | Error::Verification(_) => SUNZI_SELF_CHECK,
            Error::NotPositiveDefinite { .. } => SUNZI_NOT_POSITIVE_DEFINITE,
            Error::NotSymmetric { .. } => SUNZI_NOT_SYMMETRIC,
            Error::Singular { .. } | Error::NoPivot { .. } => SUNZI_SINGULAR,
            Error::Cancelled => SUNZI_CANCELLED,
            Error::Transport(_) | Error::Rank { .. } => SUNZI_COMMUNICATION,
            _ => SUNZI_INVALID_ARGUMENT,
        };
        let place = match error {
            Error::NotFinite { row, column, .. }
            | Error::NotInteger { row, column }
            | Error::NotSymmetric { row, column }
            | Error::ExponentRange { row, column, .. }
            | Error::SelfCheck { row, column } => Some((row, column)),
            Error::NotPositiveDefinite { index, .. } | Error::Singular { index } | Error::NoPivot { index, .. } => {
                Some((index, index))
            }
            _ => None,
        };
        Failure { place, ..Failure::new(status, error.to_string()) }
    }
}

/// Result with a [`Failure`].
pub type Outcome<T> = Result<T, Failure>;
