//! Verbs on vectors, which are matrices or views of one column or one row, and products entry by entry.

pub use crate::ops::{GemvOptions, GerOptions, HadamardOptions, SymvOptions, TriangleVectorOptions};
pub use crate::ops::{axpy, axpy_into, dot, gemv, gemv_into, gemv_with, ger, ger_into, ger_with, nrm2};
pub use crate::ops::{hadamard, hadamard_into, symv, symv_into, symv_with};
pub use crate::ops::{trmv, trmv_into, trmv_with, trsv, trsv_into, trsv_with};
