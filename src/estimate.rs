//! What can be said of a matrix or an answer: proven digits, whether a matrix is singular, its determinant.

pub use crate::ops::{Certificate, InputRounding, LdltCertificate, log_det_of};
pub use crate::ops::{Singularity, singularity, singularity_as_written};
