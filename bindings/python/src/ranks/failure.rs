//! The reason why a call over ranks fails, and the exception for it.

use crate::errors::{self, DeviceError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use sunzi::Error;
use sunzi::advanced::calls::{ArgumentFault, CallFailure};

/// The reason why a call over ranks fails.
#[derive(Debug)]
pub struct RankFailure {
    message: String,
    argument: Option<&'static str>,
    entry: Option<usize>,
    cause: FailureCause,
}

/// The source of a failure.
#[derive(Debug)]
enum FailureCause {
    /// An error of the library, which contains more than the message.
    Library(Box<Error>),
    /// An argument that is refused, or differs between ranks.
    Argument,
    /// Another rank, a build without MPI, a defect.
    Elsewhere,
}

impl RankFailure {
    /// An argument that is not valid.
    pub fn invalid(argument: &'static str, message: impl AsRef<str>) -> RankFailure {
        let message = format!("{argument}: {}", message.as_ref());
        RankFailure { message, argument: Some(argument), entry: None, cause: FailureCause::Argument }
    }

    /// A failure that belongs to no argument of this rank.
    pub fn elsewhere(message: impl Into<String>) -> RankFailure {
        RankFailure { message: message.into(), argument: None, entry: None, cause: FailureCause::Elsewhere }
    }

    /// The exception.
    pub fn raise(self, py: Python<'_>) -> PyErr {
        let text = self.message;
        let error = match self.cause {
            FailureCause::Argument => return PyValueError::new_err(text),
            FailureCause::Elsewhere => return PyRuntimeError::new_err(text),
            FailureCause::Library(error) => *error,
        };
        match error {
            Error::KernelUnavailable { .. } | Error::NoDevice(_) | Error::Cancelled => PyRuntimeError::new_err(text),
            Error::DimensionOverflow { .. } | Error::Io { .. } | Error::DiskFull { .. } => PyValueError::new_err(text),
            Error::DeviceLimit { .. } => DeviceError::new_err(text),
            error => {
                let raised = errors::exception(py, error);
                match raised.value(py).setattr("args", (text,)) {
                    Ok(()) => raised,
                    Err(error) => error,
                }
            }
        }
    }
}

impl From<Error> for RankFailure {
    fn from(error: Error) -> RankFailure {
        match error {
            Error::Rank { own: Some(own), .. } => RankFailure::from(*own),
            error => {
                let message = error.to_string();
                RankFailure { cause: FailureCause::Library(Box::new(error)), ..RankFailure::elsewhere(message) }
            }
        }
    }
}

impl CallFailure for RankFailure {
    fn about(argument: &'static str, error: Error) -> RankFailure {
        let failure = RankFailure::from(error);
        RankFailure { message: format!("{argument}: {}", failure.message), argument: Some(argument), ..failure }
    }

    fn refused(argument: &'static str, _: ArgumentFault, message: String) -> RankFailure {
        RankFailure::invalid(argument, message)
    }

    fn elsewhere(message: String, argument: Option<&'static str>, entry: Option<usize>) -> RankFailure {
        RankFailure { argument, entry, ..RankFailure::elsewhere(message) }
    }

    fn different(message: &str) -> RankFailure {
        RankFailure { cause: FailureCause::Argument, ..RankFailure::elsewhere(message) }
    }

    fn defect(message: String) -> RankFailure {
        RankFailure::elsewhere(message)
    }

    fn with_entry(self, entry: Option<usize>) -> RankFailure {
        RankFailure { entry, ..self }
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
